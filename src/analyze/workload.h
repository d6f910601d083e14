/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says about its workload: batch size and framework. */
#ifndef PLUMB_ANALYZE_WORKLOAD_H
#define PLUMB_ANALYZE_WORKLOAD_H

#include "analyze/layers.h"

/*
 * The batch size, or 0. *SOURCE says where it is from:
 *
 * - "shapes": the first size of the output of the first layer with recorded shapes, if its calls
 *   agree. If outputs are not recorded, it is the first size of the input.
 * - else "trace": an XSP trace says it.
 * - else "command": the command has `--batch-size N`, `--batch_size=N` or `--batch N`.
 */
int64_t plumb_batch_size_of(const struct plumb_layers *layers, const char **source);

/* "PyTorch", "TensorFlow", "JAX", what an XSP trace says, or NULL. */
const char *plumb_framework_of(const struct plumb_profile *profile);
/* The framework's version in its own words, or NULL. */
const char *plumb_framework_version_of(const struct plumb_profile *profile);

#endif
