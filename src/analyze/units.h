/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of code: a finding about "this part of the program" names one. A unit is a module, a range,
 * or a call of a function of the user's own code from one place, with all lines of the function.
 * Where there is no line of the user's own code, it is an operator. Modules that differ in an index
 * only, in the same unit, are one (fold.h).
 *
 *	struct plumb_units units;
 *	if (plumb_units_new(study, &units) < 0) …
 *	units.of[context]          // the innermost unit that holds CONTEXT, or PLUMB_NONE
 *	units.items[u].parent      // always less than u, so that one pass from the end rolls up
 */
#ifndef PLUMB_ANALYZE_UNITS_H
#define PLUMB_ANALYZE_UNITS_H

#include "analyze/study.h"

struct plumb_unit {
	uint32_t parent;  /* unit, or PLUMB_NONE */
	uint32_t context; /* the first of its contexts */
};

struct plumb_units {
	uint32_t *of; /* by context */
	struct plumb_unit *items;
	uint32_t count;
};

int plumb_units_new(const struct plumb_study *study, struct plumb_units *units);
void plumb_units_free(struct plumb_units *units);

/* BEST is a context in UNIT. Returns the context it lies under, of those that make up the unit. */
uint32_t plumb_units_member(const struct plumb_study *study, const struct plumb_units *units,
                            uint32_t unit, uint32_t best);

/* "loss_fn (model.py:12)" for a title: the frame of CONTEXT, one of the unit's. Returns TEXT. */
char *plumb_units_title(const struct plumb_study *study, uint32_t context, char *text, size_t size);
/* Sets the key of DRAFT from the unit's place and name, without its own line. */
void plumb_units_key(const struct plumb_study *study, const struct plumb_units *units,
                     uint32_t unit, struct plumb_draft *draft);

#endif
