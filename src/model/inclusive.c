/* SPDX-License-Identifier: Apache-2.0 */
#include "model/profile.h"

#include <stdlib.h>
#include <string.h>

static void
sum_exclusive(const struct plumb_profile *profile, uint32_t metric, uint32_t track,
              struct plumb_stat *exclusive)
{
	memset(exclusive, 0, (size_t)profile->contexts_count * sizeof *exclusive);
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i];
		if (v->metric != metric || (track != PLUMB_NONE && v->track != track))
			continue;
		struct plumb_stat stat = plumb_value_stat(v);
		plumb_stat_merge(&exclusive[v->context], &stat);
	}
}

void
plumb_inclusive(const struct plumb_profile *profile, uint32_t metric, uint32_t track,
                struct plumb_stat *exclusive, struct plumb_stat *inclusive)
{
	if (!inclusive) {
		if (exclusive)
			sum_exclusive(profile, metric, track, exclusive);
		return;
	}
	sum_exclusive(profile, metric, track, inclusive);
	if (exclusive)
		memcpy(exclusive, inclusive, (size_t)profile->contexts_count * sizeof *exclusive);
	/* In preorder every descendant has a greater number than its parent, so that one pass from
	 * the end meets each context when it is complete. */
	for (uint32_t i = profile->contexts_count; i-- > 1;)
		plumb_stat_merge(&inclusive[profile->contexts[i].parent], &inclusive[i]);
}
