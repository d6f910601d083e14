/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says of the workload that it is of: batch size and framework. */
#ifndef PLUMB_ANALYZE_WORKLOAD_H
#define PLUMB_ANALYZE_WORKLOAD_H

#include "analyze/layers.h"

/*
 * The batch size, or 0, and in *SOURCE where it is from: "shapes", the first size of what comes out
 * of the first layer with recorded shapes (of what goes in, where outputs are not recorded) if its
 * calls agree; else "trace", what an XSP trace says of itself; else "command", `--batch-size N`,
 * `--batch_size=N` or `--batch N` of the command that was run.
 */
int64_t plumb_batch_size_of(const struct plumb_layers *layers, const char **source);

/* "PyTorch", "TensorFlow", "JAX", what an XSP trace says, or NULL. */
const char *plumb_framework_of(const struct plumb_profile *profile);
/* Its version as it says it, or NULL. */
const char *plumb_framework_version_of(const struct plumb_profile *profile);

#endif
