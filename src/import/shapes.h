/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of an operator's inputs as PyTorch's profiler has them → as plumb writes them. */
#ifndef PLUMB_IMPORT_SHAPES_H
#define PLUMB_IMPORT_SHAPES_H

#include "import/trace.h"

/* The JSON text of "Input Dims", "Input Strides" and "Input type" (at NULL: there is none): "(float32[64,32],
 * float32[32,96] strides (1,32), scalar)". PLUMB_NONE: there is nothing to say, or it is longer than plumb keeps. */
uint32_t plumb_import_shapes(struct plumb_trace *trace, struct plumb_slice dims,
                             struct plumb_slice strides, struct plumb_slice types);

#endif
