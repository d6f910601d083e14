/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/segments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double
duration_of(const struct plumb_part *part)
{
	return part->end > part->start ? (double)(part->end - part->start) : 1;
}

/* ---- how much two parts differ ---- */

/* Rates are times per time, so they need no unit. */
static double
cost_of(const struct plumb_part *a, const struct plumb_part *b, plumb_segments_timed *timed,
        const void *data)
{
	double da = duration_of(a), db = duration_of(b), sum = 0;
	uint32_t i = 0, j = 0;

	while (i < a->value_count || j < b->value_count) {
		uint32_t x = i < a->value_count ? a->values[i].record : UINT32_MAX,
			 y = j < b->value_count ? b->values[j].record : UINT32_MAX;
		double ra = x <= y ? (double)a->values[i].sum / da : 0,
		       rb = y <= x ? (double)b->values[j].sum / db : 0;
		if (timed(data, x < y ? x : y))
			sum += (ra - rb) * (ra - rb);
		i += x <= y;
		j += y <= x;
	}
	return sum * da * db / (da + db);
}

static void
find_cost(struct plumb_segments *segments, uint32_t i, plumb_segments_timed *timed,
          const void *data)
{
	if (i + 1 < segments->count)
		segments->costs[i] =
			cost_of(&segments->items[i], &segments->items[i + 1], timed, data);
}

/* ---- two parts become one ---- */

static void
add_value(struct plumb_part_value *into, const struct plumb_part_value *from)
{
	double n = (double)into->count, m = (double)from->count;
	double between = (double)from->sum / m - (double)into->sum / n;

	into->m2 += from->m2 + between * between * n * m / (n + m);
	into->count += from->count;
	if (__builtin_add_overflow(into->sum, from->sum, &into->sum))
		into->sum = INT64_MAX;
}

static struct plumb_part_value *
join_values(const struct plumb_part *a, const struct plumb_part *b, uint32_t *count)
{
	struct plumb_part_value *values =
		malloc(((size_t)a->value_count + b->value_count + 1) * sizeof *values);
	uint32_t i = 0, j = 0;

	for (*count = 0; values && (i < a->value_count || j < b->value_count); ++*count) {
		uint32_t x = i < a->value_count ? a->values[i].record : UINT32_MAX,
			 y = j < b->value_count ? b->values[j].record : UINT32_MAX;
		values[*count] = x <= y ? a->values[i] : b->values[j];
		if (x == y)
			add_value(&values[*count], &b->values[j]);
		i += x <= y;
		j += y <= x;
	}
	return values;
}

static void
add_device(struct plumb_part_device *into, const struct plumb_part_device *from)
{
	into->kernels += from->kernels;
	into->kernel_ns += from->kernel_ns;
	into->copies += from->copies;
	into->copy_ns += from->copy_ns;
	into->copy_bytes += from->copy_bytes;
	into->sets += from->sets;
	into->set_ns += from->set_ns;
	into->set_bytes += from->set_bytes;
	into->busy_ns += from->busy_ns;
}

static struct plumb_part_device *
join_devices(const struct plumb_part *a, const struct plumb_part *b, uint32_t *count)
{
	struct plumb_part_device *devices =
		malloc(((size_t)a->device_count + b->device_count + 1) * sizeof *devices);

	*count = a->device_count;
	if (!devices)
		return NULL;
	if (a->device_count)
		memcpy(devices, a->devices, a->device_count * sizeof *devices);
	for (uint32_t j = 0; j < b->device_count; j++) {
		uint32_t i = 0;
		while (i < *count && devices[i].device != b->devices[j].device)
			i++;
		if (i < *count)
			add_device(&devices[i], &b->devices[j]);
		else
			devices[(*count)++] = b->devices[j];
	}
	return devices;
}

static size_t
bytes_of(const struct plumb_part *part)
{
	return part->value_count * sizeof *part->values +
	       part->device_count * sizeof *part->devices;
}

static bool
join_parts(struct plumb_segments *segments, uint32_t first, plumb_segments_timed *timed,
           const void *data)
{
	struct plumb_part *a = &segments->items[first], *b = a + 1;
	struct plumb_part both = { .start = a->start, .end = b->end };

	both.values = join_values(a, b, &both.value_count);
	both.devices = both.values ? join_devices(a, b, &both.device_count) : NULL;
	if (!both.devices) {
		free(both.values);
		return false;
	}
	segments->bytes += bytes_of(&both) - bytes_of(a) - bytes_of(b);
	free(a->values);
	free(a->devices);
	free(b->values);
	free(b->devices);
	*a = both;
	segments->count--;
	for (uint32_t i = first + 1; i < segments->count; i++) {
		segments->items[i] = segments->items[i + 1];
		segments->costs[i] = segments->costs[i + 1];
	}
	if (first)
		find_cost(segments, first - 1, timed, data);
	find_cost(segments, first, timed, data);
	return true;
}

bool
plumb_segments_merge(struct plumb_segments *segments, plumb_segments_timed *timed, const void *data)
{
	uint32_t least = 0;

	if (segments->count < 2)
		return false;
	for (uint32_t i = 1; i + 1 < segments->count; i++)
		if (segments->costs[i] < segments->costs[least])
			least = i;
	return join_parts(segments, least, timed, data);
}

bool
plumb_segments_add(struct plumb_segments *segments, const struct plumb_part *part,
                   plumb_segments_timed *timed, const void *data)
{
	if (segments->count > segments->most && !plumb_segments_merge(segments, timed, data))
		return false;
	segments->items[segments->count++] = *part;
	segments->bytes += bytes_of(part);
	if (segments->count > 1)
		find_cost(segments, segments->count - 2, timed, data);
	if (segments->count > segments->most)
		plumb_segments_merge(segments, timed, data); /* or next time */
	return true;
}

void
plumb_segments_free(struct plumb_segments *segments)
{
	for (uint32_t i = 0; i < segments->count; i++) {
		free(segments->items[i].values);
		free(segments->items[i].devices);
	}
	segments->count = 0;
	segments->bytes = 0;
}
