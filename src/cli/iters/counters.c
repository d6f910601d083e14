/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters over time, by iteration, for people. */
#include "base/format.h"
#include "cli/iters/iters.h"

void
plumb_iters_counters_print(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	const struct plumb_iteration_level *level = &iters->found.tracks[t].levels[0];
	char mean[PLUMB_FORMAT_SIZE], least[PLUMB_FORMAT_SIZE], most[PLUMB_FORMAT_SIZE];
	struct plumb_counter_series series;
	bool any = false, known = false;

	for (uint32_t at = 0; plumb_iters_counter_next(iters, t, &at, &series);) {
		struct plumb_iters_counter all = plumb_iters_counter_of(&series, level);

		any = true;
		if (!all.known)
			continue;
		known = true;
		fprintf(out, "    %s: mean %s, min %s, max %s of an iteration\n", series.name,
		        plumb_counter_series_text(mean, series.unit, all.mean),
		        plumb_counter_series_text(least, series.unit, all.min),
		        plumb_counter_series_text(most, series.unit, all.max));
	}
	if (any && !known)
		fprintf(out,
		        "    counters: an iteration is shorter than what is kept of them; record a "
		        "shorter run\n");
}
