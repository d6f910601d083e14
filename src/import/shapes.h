/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of an operator's inputs as PyTorch's profiler has them → as plumb writes them. */
#ifndef PLUMB_IMPORT_SHAPES_H
#define PLUMB_IMPORT_SHAPES_H

#include "import/trace.h"

/* The JSON text of each of these; `at` is NULL if it is missing. */
struct plumb_import_inputs {
	struct plumb_slice dims, strides, types; /* "Input Dims", "Input Strides", "Input type" */
	struct plumb_slice values;               /* "Concrete Inputs": of lists of numbers */
};

/* "(float32[64,32], float32[32,96] strides (1,32), [2, 2], scalar)". PLUMB_NONE: there is nothing
 * to say, or it is longer than plumb keeps. */
uint32_t plumb_import_shapes(struct plumb_trace *trace, const struct plumb_import_inputs *inputs);

#endif
