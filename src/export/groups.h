/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile keeps of collectives, by the span that it is about. */
#ifndef PLUMB_EXPORT_GROUPS_H
#define PLUMB_EXPORT_GROUPS_H

#include "model/profile.h"

struct plumb_export_groups {
	const struct plumb_collective **rows; /* by track, then start */
	uint32_t count;
};

/* For plumb_export_groups_free in any case; false: memory is out. */
bool
plumb_export_groups_open(struct plumb_export_groups *groups, const struct plumb_profile *profile);
void plumb_export_groups_free(struct plumb_export_groups *groups);

/* NULL: nothing is kept of SPAN. */
const struct plumb_collective *
plumb_export_group_of(const struct plumb_export_groups *groups, const struct plumb_span *span);

#endif
