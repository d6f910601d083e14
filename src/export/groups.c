/* SPDX-License-Identifier: Apache-2.0 */
#include "export/groups.h"

#include <stdlib.h>

#include "base/search.h"

static int
compare(const struct plumb_collective *a, uint32_t track, int64_t start_ns)
{
	if (a->track != track)
		return a->track < track ? -1 : 1;
	return (a->start_ns > start_ns) - (a->start_ns < start_ns);
}

static int
by_place(const void *x, const void *y)
{
	const struct plumb_collective *a = *(const struct plumb_collective *const *)x;
	const struct plumb_collective *b = *(const struct plumb_collective *const *)y;
	int order = compare(a, b->track, b->start_ns);

	return order ? order : (a > b) - (a < b);
}

bool
plumb_export_groups_open(struct plumb_export_groups *groups, const struct plumb_profile *profile)
{
	*groups = (struct plumb_export_groups){ .count = profile->collectives_count };
	groups->rows = malloc(((size_t)groups->count + 1) * sizeof *groups->rows);
	if (!groups->rows)
		return false;
	for (uint32_t i = 0; i < groups->count; i++)
		groups->rows[i] = &profile->collectives[i];
	qsort(groups->rows, groups->count, sizeof *groups->rows, by_place);
	return true;
}

void
plumb_export_groups_free(struct plumb_export_groups *groups)
{
	free(groups->rows);
	*groups = (struct plumb_export_groups){ 0 };
}

const struct plumb_collective *
plumb_export_group_of(const struct plumb_export_groups *groups, const struct plumb_span *span)
{
	uint32_t low = plumb_search(i, groups->count,
	                            compare(groups->rows[i], span->track, span->start_ns) < 0);

	return low < groups->count && !compare(groups->rows[low], span->track, span->start_ns)
	               ? groups->rows[low]
	               : NULL;
}
