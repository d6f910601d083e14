/* SPDX-License-Identifier: Apache-2.0 */
#include "model/framework/registry.h"

const struct plumb_framework_names plumb_framework_tensorflow = {
	.name = "TensorFlow",
	.version_key = "tensorflow.version",
	.format = "tf1",
	.packages = "tensorflow keras",
};
