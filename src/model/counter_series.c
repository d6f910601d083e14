/* SPDX-License-Identifier: Apache-2.0 */
#include "model/counter_series.h"

bool
plumb_counter_series_next(const struct plumb_profile *profile, uint32_t *at,
                          struct plumb_counter_series *series)
{
	uint32_t first = *at, end = first;

	if (first >= profile->counter_series_count)
		return false;
	const struct plumb_counter_series_bin *bin = &profile->counter_series[first];
	while (end < profile->counter_series_count &&
	       profile->counter_series[end].device == bin->device &&
	       profile->counter_series[end].process == bin->process &&
	       profile->counter_series[end].metric == bin->metric)
		end++;
	*series = (struct plumb_counter_series){
		.device = bin->device,
		.process = bin->process,
		.name = plumb_text(profile, bin->metric),
		.unit = plumb_text(profile, bin->unit),
		.bins = bin,
		.count = end - first,
	};
	*at = end;
	return true;
}
