/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is whose parent among spans of several tools, each of which measures one level and knows
 * nothing of the others (XSP). A span that names no parent gets one by level and time:
 *
 * - of the spans that include it that of the nearest higher level. Where its thread is known, those
 *   of that thread are asked first, on all levels, and there one of its own level may be it too;
 * - of asynchronous work the start of the call that launched it decides: the call is its parent,
 *   and the call's start says where the call belongs (PLUMB_PARENTS_LAUNCH); or its own interval
 *   does, as for all others (PLUMB_PARENTS_INCLUSION), but in no driver call: one that waits
 *   includes what others started. By the former, work whose launch is not known gets none;
 * - where several spans of one level include it, and do not lie one in the other on one thread, it
 *   is ambiguous: it hangs under the next higher level that has one, and says so.
 *
 * A parent that is given stands, but levels between it and the span are looked for among its
 * descendants: tools give the span that all of them run under.
 *
 * A span that ends when another begins is not included in it, nor is anything in a span without
 * duration. Time is O(n log n) in the number of spans, whatever they are.
 */
#ifndef PLUMB_IMPORT_SPANS_LEVELS_H
#define PLUMB_IMPORT_SPANS_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

enum plumb_level {
	PLUMB_LEVEL_UNKNOWN, /* nobody's parent but by name, and gets none by time */
	PLUMB_LEVEL_APPLICATION,
	PLUMB_LEVEL_MODEL,
	PLUMB_LEVEL_LAYER,
	PLUMB_LEVEL_OPERATOR,
	PLUMB_LEVEL_LIBRARY,
	PLUMB_LEVEL_CALL, /* of the driver or its runtime */
	PLUMB_LEVEL_KERNEL,
	PLUMB_LEVEL_COUNT
};

enum plumb_parents { PLUMB_PARENTS_LAUNCH, PLUMB_PARENTS_INCLUSION };

struct plumb_level_span {
	int64_t start_ns, end_ns;
	uint64_t group;  /* only spans of one group include one another */
	uint64_t thread; /* within the group; 0: not known */
	uint32_t level;
	uint32_t given;  /* the parent that was named, an index; UINT32_MAX: none */
	uint32_t launch; /* the call that started it, an index; UINT32_MAX: not known */
	bool asynchronous;
	/* found */
	bool ambiguous;
	uint32_t parent; /* an index, or UINT32_MAX */
};

struct plumb_level_counts {
	uint32_t ambiguous; /* spans */
	uint32_t circles;   /* of named parents; each is cut once */
};

/* Finds the parents of COUNT spans, which form no circles. Negative: memory is out. */
int plumb_levels_find(struct plumb_level_span *spans, uint32_t count, enum plumb_parents rule,
                      struct plumb_level_counts *counts);

#endif
