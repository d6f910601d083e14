/* SPDX-License-Identifier: Apache-2.0 */
/* The frameworks that framework.c lists. Private to this folder. */
#ifndef PLUMB_MODEL_FRAMEWORK_REGISTRY_H
#define PLUMB_MODEL_FRAMEWORK_REGISTRY_H

#include "model/framework/framework.h"

extern const struct plumb_framework_names plumb_framework_pytorch;
extern const struct plumb_framework_names plumb_framework_tensorflow;
extern const struct plumb_framework_names plumb_framework_jax;

#endif
