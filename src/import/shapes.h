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

/* Inputs that were seen, with their shapes, by a hash of the lists. Zero it to start. */
#define PLUMB_IMPORT_SHAPES_SEEN 256
#define PLUMB_IMPORT_SHAPES_BYTES 1000 /* longer lists are not kept */
struct plumb_import_shapes_seen {
	struct plumb_import_shapes_one {
		uint32_t count, shapes; /* bytes of LISTS; 0: none */
		char lists[PLUMB_IMPORT_SHAPES_BYTES];
	} items[PLUMB_IMPORT_SHAPES_SEEN];
};

/* "(float32[64,32], float32[32,96] strides (1,32), [2, 2], scalar)". PLUMB_NONE: there is nothing
 * to say, or it is longer than plumb keeps. SEEN is of TRACE, and nobody else uses it. */
uint32_t plumb_import_shapes(struct plumb_trace *trace, struct plumb_import_shapes_seen *seen,
                             const struct plumb_import_inputs *inputs);

#endif
