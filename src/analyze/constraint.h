/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch size must keep: a comma-separated list such as
 * "latency<50ms,throughput>=900,memory<8GB". */
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
	bool above; /* it must be above VALUE, else below */
	bool equal; /* VALUE itself is allowed */
	double value;
};

struct plumb_constraints {
	struct plumb_constraint items[4];
	uint32_t count;
};

/* False: TEXT is no such expression. Times end in ns, us, ms or s, sizes in B, KB, MB, GB (of 1000)
 * or KiB, MiB, GiB (of 1024); spaces do not count. */
bool plumb_constraints_read(const char *text, struct plumb_constraints *constraints);

/* VALUES has a number for each kind. 1: they keep all constraints; 0: they break one; -1: a number
 * that a constraint needs is NAN. */
int plumb_constraints_hold(const struct plumb_constraints *constraints,
                           const double values[PLUMB_CONSTRAINT_KINDS]);

#endif
