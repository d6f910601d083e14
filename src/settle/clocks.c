/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks. The GPU times of a region are those of the GPU runtime (for CUDA, what cuptiGetTimestamp
 * counts). Each CLOCK record reads all clocks at once. A straight line through the readings maps
 * one clock onto CLOCK_MONOTONIC. The longer a reading took, the less it counts: a reading that was
 * interrupted between two clocks is far off.
 */
#include "settle/settle_private.h"

#include <math.h>

#define STEEPEST 1e-3 /* the rates of two clocks of a machine differ by less than a thousandth */

void
plumb_settle_reading(struct plumb_settle_region *region, const struct plumb_record_clock *record)
{
	struct plumb_settle_reading *reading;

	if (!record->monotonic || record->monotonic > INT64_MAX || record->realtime > INT64_MAX ||
	    record->gpu > INT64_MAX) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
		                   "readings of clocks", 1);
		return;
	}
	reading = plumb_vec_add(&region->readings);
	if (!reading) {
		region->settler->no_memory = true;
		return;
	}
	reading->device = record->device;
	reading->monotonic = (int64_t)record->monotonic;
	reading->realtime = record->realtime ? (int64_t)record->realtime : PLUMB_UNKNOWN;
	reading->gpu = record->gpu ? (int64_t)record->gpu : PLUMB_UNKNOWN;
	reading->uncertainty =
		record->uncertainty > INT32_MAX ? INT32_MAX : (int64_t)record->uncertainty;
	if (region->seen < reading->monotonic)
		region->seen = reading->monotonic;
}

static int64_t
clock_of_gpu(const struct plumb_settle_reading *reading)
{
	return reading->gpu;
}

static int64_t
clock_of_day(const struct plumb_settle_reading *reading)
{
	return reading->realtime;
}

/* ---- the line ---- */

/* Weighted sums over the readings, relative to the first of them. */
struct sums {
	double w, x, y, xx, xy;
};

/* Rounds to a whole number; a number out of range becomes the limit. */
static int64_t
round_capped(double number)
{
	if (!(fabs(number) < 9e18))
		return number < 0 ? -INT64_MAX : INT64_MAX;
	return (int64_t)llround(number);
}

/* A - B. Today's times have more digits than a double, so the difference is made of integers. */
static double
subtract_times(int64_t a, int64_t b)
{
	return (double)((__int128)a - b);
}

static int64_t
line_offset(const struct plumb_settle_line *line, int64_t time)
{
	double drift = line->slope * subtract_times(time, line->reference);
	int64_t offset;

	if (__builtin_add_overflow(line->offset, round_capped(drift), &offset))
		return drift < 0 ? -INT64_MAX : INT64_MAX;
	return offset;
}

static void
measure_residual(const struct plumb_settle_reading *readings, uint32_t count,
                 int64_t (*clock)(const struct plumb_settle_reading *),
                 struct plumb_settle_line *line)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t time = clock(&readings[i]);
		if (time == PLUMB_UNKNOWN)
			continue;
		double off =
			fabs(subtract_times(readings[i].monotonic - time, line_offset(line, time)));
		if (off > (double)line->residual)
			line->residual = round_capped(off);
	}
}

/* Fits a line through (x, x + y) readings, weighted by their uncertainty. */
static void
fit_line(const struct plumb_settle_reading *readings, uint32_t count,
         int64_t (*clock)(const struct plumb_settle_reading *), struct plumb_settle_line *line)
{
	struct sums s = { 0 };
	int64_t first = 0;
	double spread;

	line->readings = 0;
	line->slope = 0;
	line->residual = 0;
	for (uint32_t i = 0; i < count; i++) {
		int64_t time = clock(&readings[i]);
		if (time == PLUMB_UNKNOWN)
			continue;
		/* Both are ≥ 0, so that their difference fits. */
		int64_t distance = readings[i].monotonic - time;
		if (!line->readings++) {
			line->reference = time;
			first = distance;
		}
		double width = (double)readings[i].uncertainty + 100, w = 1 / (width * width);
		double x = subtract_times(time, line->reference);
		double y = subtract_times(distance, first);
		s.w += w;
		s.x += w * x;
		s.y += w * y;
		s.xx += w * x * x;
		s.xy += w * x * y;
	}
	if (!line->readings)
		return;
	spread = s.xx - s.x * s.x / s.w;
	if (line->readings > 1 && spread > 0)
		line->slope = (s.xy - s.x * s.y / s.w) / spread;
	/* Readings that are close together say nothing about the slope. */
	if (!(fabs(line->slope) <= STEEPEST))
		line->slope = 0;
	if (__builtin_add_overflow(first, round_capped((s.y - line->slope * s.x) / s.w),
	                           &line->offset))
		line->offset = first;
	measure_residual(readings, count, clock, line);
}

int64_t
plumb_settle_time(const struct plumb_settle_line *line, uint64_t time)
{
	int64_t result;

	if (!line || time > INT64_MAX ||
	    __builtin_add_overflow((int64_t)time, line_offset(line, (int64_t)time), &result))
		return PLUMB_UNKNOWN;
	return result < 0 ? PLUMB_UNKNOWN : result;
}

/* ---- the lines of a region ---- */

static int
by_device(const void *x, const void *y)
{
	const struct plumb_settle_reading *a = x, *b = y;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->monotonic > b->monotonic) - (a->monotonic < b->monotonic);
}

static void
store_line(struct plumb_settle_region *region, uint32_t device,
           const struct plumb_settle_line *line)
{
	struct plumb_clock row = {
		.process = region->process,
		.device = device,
		.reference_ns = line->reference,
		.offset_ns = line->offset,
		.slope = line->slope,
		.residual_ns = line->residual,
		.readings = line->readings,
	};

	plumb_builder_clock(region->settler->builder, &row);
}

void
plumb_settle_lines(struct plumb_settle_region *region)
{
	struct plumb_settle_reading *readings = region->readings.items;
	uint32_t count = region->readings.count, end;
	struct plumb_settle_line line = { 0 };

	if (!count)
		return;
	qsort(readings, count, sizeof *readings, by_device);
	for (uint32_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && readings[end].device == readings[i].device; end++)
			;
		fit_line(readings + i, end - i, clock_of_gpu, &line);
		if (!line.readings)
			continue;
		line.device = readings[i].device;
		struct plumb_settle_line *added = plumb_vec_add(&region->lines);
		if (!added) {
			region->settler->no_memory = true;
			return;
		}
		*added = line;
	}
	fit_line(readings, count, clock_of_day, &line);
	if (line.readings && region->process != PLUMB_NONE)
		store_line(region, PLUMB_NONE, &line);
}

const struct plumb_settle_line *
plumb_settle_line_of(const struct plumb_settle_region *region, plumb_id device)
{
	const struct plumb_settle_line *common = NULL;

	for (uint32_t i = 0; i < region->lines.count; i++) {
		if (region->lines.items[i].device == device)
			return &region->lines.items[i];
		if (!region->lines.items[i].device)
			common = &region->lines.items[i];
	}
	return common;
}

void
plumb_settle_clock(struct plumb_settle_region *region, plumb_id id, uint32_t device)
{
	const struct plumb_settle_line *line = plumb_settle_line_of(region, id);

	if (line)
		store_line(region, device, line);
}
