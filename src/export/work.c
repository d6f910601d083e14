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

/* Is V before the value of METRIC that SPAN has a part in? */
static bool
is_before(const struct plumb_value *v, const struct plumb_span *span, uint32_t metric)
{
	if (v->context != span->context)
		return v->context < span->context;
	if (v->metric != metric)
		return v->metric < metric;
	if (v->track != span->track)
		return v->track < span->track;
	return v->ends.from != span->ends.from ? v->ends.from < span->ends.from
	                                       : v->ends.to < span->ends.to;
}

const struct plumb_value *
plumb_export_value(const struct plumb_profile *profile, const struct plumb_span *span,
                   uint32_t metric)
{
	uint32_t low = plumb_search(i, profile->values_count,
	                            is_before(&profile->values[i], span, metric));
	const struct plumb_value *v = low < profile->values_count ? &profile->values[low] : NULL;
	return v && v->context == span->context && v->metric == metric && v->track == span->track &&
	                       v->ends.from == span->ends.from && v->ends.to == span->ends.to
	               ? v
	               : NULL;
}
