/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch size must keep: "latency<50ms", "throughput>=900", "memory<8GB", several parted by
 * commas. */
#ifndef PLUMB_ANALYZE_CONSTRAINT_H
#define PLUMB_ANALYZE_CONSTRAINT_H

#include <stdbool.h>
#include <stdint.h>

enum plumb_constraint_kind {
	PLUMB_CONSTRAINT_IS_LATENCY,    /* µs */
	PLUMB_CONSTRAINT_IS_THROUGHPUT, /* inputs a second */
	PLUMB_CONSTRAINT_IS_MEMORY,     /* bytes of a device, at the peak */
	PLUMB_CONSTRAINT_KINDS,
};

struct plumb_constraint {
	enum plumb_constraint_kind kind;
	bool above; /* at least or more than VALUE, else at most or less */
	bool equal; /* VALUE itself will do */
	double value;
};

struct plumb_constraints {
	struct plumb_constraint items[4];
	uint32_t count;
};

/* False: TEXT is no such expression. Times end in ns, us, ms or s, sizes in B, KB, MB, GB (of 1000)
 * or KiB, MiB, GiB (of 1024); spaces do not count. */
bool plumb_constraints_read(const char *text, struct plumb_constraints *constraints);

/* 1: VALUES, by kind, keep all of them; 0: one they do not; -1: one of those that it would take is
 * NAN. */
int plumb_constraints_hold(const struct plumb_constraints *constraints,
                           const double values[PLUMB_CONSTRAINT_KINDS]);

#endif
