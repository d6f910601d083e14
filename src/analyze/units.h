/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of code: what a finding about "this part of the program" names. A unit is a call of a
 * function of the person's own code from one place (its lines together), a module or a range; where
 * there is no line of the person's own, an operator.
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

/* Of the contexts that make up UNIT, the one under which BEST (a context in the unit) lies. */
uint32_t plumb_units_member(const struct plumb_study *study, const struct plumb_units *units,
                            uint32_t unit, uint32_t best);

/* "loss_fn (model.py:12)" for a title: the frame of CONTEXT, one of the unit's. Returns TEXT. */
char *plumb_units_title(const struct plumb_study *study, uint32_t context, char *text, size_t size);
/* What an id of the unit is made of: its place and name, and no line of its own. */
void plumb_units_key(const struct plumb_study *study, const struct plumb_units *units,
                     uint32_t unit, struct plumb_draft *draft);

#endif
