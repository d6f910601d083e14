/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the starts and ends of slices, which a file may have in any order. All are kept until the
 * file is read, and paired then. An end closes the open slice of the same key that began last.
 * Edges of the same time keep the order of the file. A slice without an end ends at LAST. Such
 * slices, and ends without a start, are counted.
 */
#ifndef PLUMB_IMPORT_CHROME_PAIRS_H
#define PLUMB_IMPORT_CHROME_PAIRS_H

#include "base/vec.h"
#include "import/trace.h"

struct plumb_chrome_edge {
	uint64_t key; /* what pairs: a thread, an id */
	int64_t ns;
	uint32_t order; /* in the file; set by plumb_chrome_edge */
	uint32_t frame; /* of a beginning */
	uint32_t place; /* the caller's, of a beginning */
	bool begins;
};

struct plumb_chrome_pairs {
	PLUMB_VEC(struct plumb_chrome_edge) edges;
	bool no_memory;
};

/* A pair: BEGIN's slice ends at END; DEPTH others of its key are open around it. Inner ones come
 * first. */
typedef void
plumb_chrome_paired(void *own, const struct plumb_chrome_edge *begin, int64_t end, uint32_t depth);

void plumb_chrome_edge(struct plumb_chrome_pairs *pairs, struct plumb_chrome_edge edge);
void plumb_chrome_pair(struct plumb_chrome_pairs *pairs, struct plumb_trace *trace, int64_t last,
                       plumb_chrome_paired *paired, void *own);

#endif
