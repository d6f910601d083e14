/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/counter_series.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"

struct plumb_counter_summary
plumb_counter_series_summary(const struct plumb_counter_series *series)
{
	struct plumb_counter_summary all = { .min = series->bins[0].min,
		                             .max = series->bins[0].max };
	double sum = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		const struct plumb_counter_series_bin *bin = &series->bins[i];

		sum += bin->mean * (double)bin->sampled_ns;
		all.min = bin->min < all.min ? bin->min : all.min;
		all.max = bin->max > all.max ? bin->max : all.max;
		if (__builtin_add_overflow(all.samples, bin->samples, &all.samples) ||
		    __builtin_add_overflow(all.sampled_ns, bin->sampled_ns, &all.sampled_ns))
			all.samples = all.sampled_ns = INT64_MAX;
	}
	all.mean = all.sampled_ns > 0 ? sum / (double)all.sampled_ns : (double)NAN;
	return all;
}

/* The first bin that ends after TIME. */
static uint32_t
find_bin(const struct plumb_counter_series *series, int64_t time)
{
	uint32_t low = 0, high = series->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct plumb_counter_series_bin *bin = &series->bins[middle];

		if ((double)bin->start_ns + (double)bin->width_ns > (double)time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

double
plumb_counter_series_mean(const struct plumb_counter_series *series, int64_t start, int64_t end)
{
	double sum = 0, covered = 0, whole = (double)end - (double)start;

	if (series->bins[0].width_ns <= 0 || whole < (double)series->bins[0].width_ns)
		return (double)NAN;
	for (uint32_t i = find_bin(series, start); i < series->count; i++) {
		const struct plumb_counter_series_bin *bin = &series->bins[i];
		double width = (double)bin->width_ns, from = (double)bin->start_ns;
		double to = from + width;

		if (from >= (double)end)
			break;
		from = from < (double)start ? (double)start : from;
		to = to > (double)end ? (double)end : to;
		double part = (double)bin->sampled_ns * (to - from) / width;
		sum += bin->mean * part;
		covered += part;
	}
	return covered >= whole / 2 ? sum / covered : (double)NAN;
}

const char *
plumb_counter_series_text(char *text, const char *unit, double value)
{
	size_t length = unit ? strlen(unit) : 0;
	bool rate = length > 2 && !strcmp(unit + length - 2, "/s");
	char number[PLUMB_FORMAT_SIZE];

	if (isnan(value) || fabs(value) >= 0x1p62) {
		snprintf(text, PLUMB_FORMAT_SIZE, "?");
		return text;
	}
	if (unit && !strcmp(unit, "ppm"))
		return plumb_format_share(text, value, 1e6);
	if (unit && !strcmp(unit, "%"))
		return plumb_format_share(text, value, 100);
	if (rate && !strncmp(unit, "byte", 4))
		snprintf(text, PLUMB_FORMAT_SIZE, "%.*s/s", PLUMB_FORMAT_SIZE - 3,
		         plumb_format_bytes(number, llround(value)));
	else
		snprintf(text, PLUMB_FORMAT_SIZE, "%.4g%s", value, rate ? "/s" : "");
	return text;
}
