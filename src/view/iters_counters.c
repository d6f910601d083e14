/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters over time, by iteration. */
#include <math.h>
#include <string.h>

#include "view/iters_private.h"

bool
plumb_iters_counter_next(const struct plumb_iters *iters, uint32_t t, uint32_t *at,
                         struct plumb_counter_series *series)
{
	while (plumb_counter_series_next(iters->profile, at, series))
		if (series->device == iters->found.tracks[t].device && series->name)
			return true;
	return false;
}

double
plumb_iters_counter(const struct plumb_counter_series *series, const struct plumb_iteration *item)
{
	return plumb_counter_series_mean(series, plumb_iteration_from(item), item->end_ns);
}

struct plumb_iters_counter
plumb_iters_counter_of(const struct plumb_counter_series *series,
                       const struct plumb_iteration_level *level)
{
	struct plumb_iters_counter all = { .min = INFINITY, .max = -INFINITY };
	double sum = 0, ns = 0;

	for (uint32_t i = 0; i < level->count; i++) {
		double mean = plumb_iters_counter(series, &level->items[i]);
		double time = (double)plumb_iteration_time(&level->items[i]);

		if (isnan(mean))
			continue;
		sum += mean * time;
		ns += time;
		all.min = fmin(all.min, mean);
		all.max = fmax(all.max, mean);
		all.known++;
	}
	all.mean = sum / ns; /* NAN if none is known */
	return all;
}

void
plumb_iters_counters_item(const struct plumb_iters *iters, uint32_t t,
                          const struct plumb_iteration *item, struct plumb_json *json)
{
	struct plumb_counter_series series;

	if (!iters->profile->counter_series_count)
		return;
	plumb_json_key_object(json, "counters");
	for (uint32_t at = 0; plumb_iters_counter_next(iters, t, &at, &series);)
		plumb_json_key_number(json, series.name, plumb_iters_counter(&series, item));
	plumb_json_end(json);
}

void
plumb_iters_counters_json(const struct plumb_iters *iters, uint32_t t,
                          const struct plumb_iteration_level *level, struct plumb_json *json)
{
	struct plumb_counter_series series;

	if (!iters->profile->counter_series_count)
		return;
	plumb_json_key_array(json, "counters");
	for (uint32_t at = 0; plumb_iters_counter_next(iters, t, &at, &series);) {
		struct plumb_iters_counter all = plumb_iters_counter_of(&series, level);

		plumb_json_object(json);
		plumb_json_key_text(json, "name", series.name);
		plumb_json_key_text(json, "unit", series.unit);
		plumb_json_key_quantity(json, "iterations", all.known);
		plumb_json_key_number(json, "mean", all.mean);
		plumb_json_key_number(json, "min", all.known ? all.min : (double)NAN);
		plumb_json_key_number(json, "max", all.known ? all.max : (double)NAN);
		plumb_json_key_quantity(json, "width_ns", series.bins[0].width_ns);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* Is SERIES the first of its name? */
static bool
is_first(const struct plumb_iters *iters, const struct plumb_counter_series *series)
{
	struct plumb_counter_series before;

	for (uint32_t at = 0; plumb_counter_series_next(iters->profile, &at, &before);)
		if (before.name && !strcmp(before.name, series->name))
			return before.bins == series->bins;
	return true;
}

void
plumb_iters_counters_columns(const struct plumb_iters *iters, struct plumb_answer *answer)
{
	struct plumb_counter_series series;

	for (uint32_t at = 0; plumb_counter_series_next(iters->profile, &at, &series);)
		if (series.name && is_first(iters, &series))
			plumb_answer_column(answer, series.name, series.unit,
			                    PLUMB_SOURCE_IS_MEASURED);
}

/* In the order of the columns: the series of that name of the track's device. */
void
plumb_iters_counters_cells(const struct plumb_iters *iters, uint32_t t,
                           const struct plumb_iteration *item, struct plumb_answer *answer)
{
	struct plumb_counter_series series, own;

	for (uint32_t at = 0; plumb_counter_series_next(iters->profile, &at, &series);) {
		double value = (double)NAN;

		if (!series.name || !is_first(iters, &series))
			continue;
		for (uint32_t i = 0; item && plumb_iters_counter_next(iters, t, &i, &own);)
			if (!strcmp(own.name, series.name) && isnan(value))
				value = plumb_iters_counter(&own, item);
		plumb_answer_number(answer, value);
	}
}
