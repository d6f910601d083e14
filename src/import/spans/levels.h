/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds parents for the spans of several tools. Each tool measures one level and knows nothing
 * about the others (XSP). A span that names no parent gets one by level and time:
 *
 * - Its parent is the span of the nearest higher level that includes it. If its thread is known,
 *   the spans of that thread come first, on all levels. There the parent may also be of its own
 *   level.
 * - For asynchronous work, PLUMB_PARENTS_LAUNCH takes the call that launched it as the parent, and
 *   the start of the call says where the call belongs. Work whose launch is unknown gets no
 *   parent. PLUMB_PARENTS_INCLUSION takes the work's own interval, as for all other spans. But a
 *   driver call is then never the parent: a call that waits includes work that others started.
 * - If several spans of one level include it, and they do not lie one inside the other on one
 *   thread, the parent is ambiguous. The span then hangs under the next higher level that has one
 *   span, and says that it is ambiguous.
 *
 * A parent that a span names is kept. But levels between the two are looked for among the parent's
 * descendants, because tools name the span that everything runs under.
 *
 * A span that ends when another one begins does not lie inside it, and nothing lies inside a span
 * without duration. The time is O(n log n) for n spans, whatever they are.
 */
#ifndef PLUMB_IMPORT_SPANS_LEVELS_H
#define PLUMB_IMPORT_SPANS_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

enum plumb_level {
	PLUMB_LEVEL_UNKNOWN, /* has parents and children only by name, not by time */
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
