/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows a report has if nobody says: those that explain most of the metric.
 *
 * A kind of row explains a part of a metric if that part lies under frames of its kind. The first
 * kind that explains PLUMB_EXPLAINS_MOST or more is taken, in this order: operators, modules,
 * kernels, ranges, then functions (Python and native mixed: the tree; else Python functions or
 * native ones). Modules and ranges have to divide it too: none may have more than
 * PLUMB_DIVIDES_MOST. If none explains so much, the one that explains most is taken.
 */
#ifndef PLUMB_VIEW_REPORT_CHOICE_H
#define PLUMB_VIEW_REPORT_CHOICE_H

#include "analyze/group.h"
#include "base/error.h"

#define PLUMB_EXPLAINS_MOST (2.0 / 3)
#define PLUMB_DIVIDES_MOST 0.9

struct plumb_report_choice {
	enum plumb_group_by by;
	char why[200]; /* why no operators, and what the rows leave open; "" if there is nothing to
	                  say */
};

/* Negative: no memory. */
int plumb_report_choose(const struct plumb_profile *profile, uint32_t metric,
                        struct plumb_report_choice *choice) PLUMB_MUST_CHECK;

#endif
