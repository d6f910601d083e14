/* SPDX-License-Identifier: Apache-2.0 */
#include "export/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

static bool
is_same(const struct plumb_variant *a, const struct plumb_variant *b)
{
	return !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) && a->registers == b->registers &&
	       a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared &&
	       a->occupancy == b->occupancy;
}

uint32_t *
plumb_export_launches(const struct plumb_profile *profile)
{
	size_t room = (size_t)profile->contexts_count + 1;
	uint32_t *launches = malloc(room * sizeof *launches);
	bool *several = calloc(room, sizeof *several);
	if (!launches || !several) {
		free(launches);
		free(several);
		return NULL;
	}
	memset(launches, 0xff, room * sizeof *launches);
	for (uint32_t i = 0; i < profile->variants_count; i++) {
		const struct plumb_variant *v = &profile->variants[i];
		uint32_t *first = &launches[v->context];
		if (v->shapes != PLUMB_NONE)
			continue;
		if (*first == PLUMB_NONE)
			*first = i;
		several[v->context] |= !is_same(v, &profile->variants[*first]);
	}
	for (uint32_t c = 0; c < profile->contexts_count; c++)
		if (several[c])
			launches[c] = PLUMB_NONE;
	free(several);
	return launches;
}

const struct plumb_value *
plumb_export_bytes(const struct plumb_profile *profile, uint32_t context, uint32_t track)
{
	uint32_t low = plumb_search(i, profile->values_count, profile->values[i].context < context);
	for (; low < profile->values_count && profile->values[low].context == context; low++)
		if (profile->values[low].metric == PLUMB_METRIC_GPU_COPY_BYTES &&
		    profile->values[low].track == track)
			return &profile->values[low];
	return NULL;
}
