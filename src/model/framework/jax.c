/* SPDX-License-Identifier: Apache-2.0 */
#include "model/framework/registry.h"

const struct plumb_framework_names plumb_framework_jax = {
	.name = "JAX",
	.version_key = "jax.version",
	.format = "jax",
	.paths = "jit", /* "jit(step)/jit(main)/dot_general" */
	.packages = "jax jaxlib flax",
	.generated = "*fusion*",
};
