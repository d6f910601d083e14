/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/series.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/table.h"

#define LONGEST (1ull << 52) /* ns, 52 days: no sample comes later than that after the first */

struct plumb_gpu_series {
	struct plumb_record_counter_series *records[PLUMB_COUNTERS_MOST]; /* NULL: no room */
};

/* What is to be told; any thread writes it, under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char without[512], sampled[1024], clocks[64], refusal[400];
static bool told, told_clocks, told_off;

/* ---- what is asked for ---- */

bool
plumb_gpu_series_begin(void)
{
	return plumb_collector_options()->counters_series[0];
}

void
plumb_gpu_series_refuse(const char *why)
{
	pthread_mutex_lock(&lock);
	if (!refusal[0])
		snprintf(refusal, sizeof refusal, "%s", why);
	pthread_mutex_unlock(&lock);
}

void
plumb_gpu_series_clocks(int64_t distance, int64_t least)
{
	pthread_mutex_lock(&lock);
	if (!clocks[0])
		snprintf(clocks, sizeof clocks, "%" PRId64 " (at least %" PRId64 ")", distance,
		         least);
	pthread_mutex_unlock(&lock);
}

static void
append_name(char *list, size_t size, const char *separator, const char *name)
{
	size_t used = strlen(list);
	if (used + strlen(name) + strlen(separator) < size)
		snprintf(list + used, size - used, "%s%s", used ? separator : "", name);
}

/* Once each, though several devices leave it out. */
static void
leave_out(const char *name)
{
	pthread_mutex_lock(&lock);
	const char *found = strstr(without, name);
	if (!found || (found[strlen(name)] && found[strlen(name)] != ','))
		append_name(without, sizeof without, ", ", name);
	pthread_mutex_unlock(&lock);
}

void
plumb_gpu_series_leave_out(const struct plumb_gpu_series_wish *wish)
{
	leave_out(wish->name);
}

void
plumb_gpu_series_chosen(const struct plumb_gpu_counters_plan *plan)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; !told && i < plan->counters; i++)
		if (!strstr(sampled, plan->each[i].name))
			append_name(sampled, sizeof sampled, ",", plan->each[i].name);
	pthread_mutex_unlock(&lock);
}

/* A rate has the unit of what is counted, per second. NULL: the value is taken as it is. */
static const char *
unit_of_rate(const char *unit)
{
	if (unit && !strcmp(unit, "byte"))
		return "byte/s";
	if (unit && !strcmp(unit, "flop"))
		return "flop/s";
	return NULL;
}

static bool
is_rate(const char *unit)
{
	return unit && strlen(unit) > 2 && !strcmp(unit + strlen(unit) - 2, "/s");
}

/* One of the vendor's own: a sum grows with the time that a sample covers. */
static void
wish_own(struct plumb_gpu_series_wish *wish, const char *name, size_t length)
{
	static const char sum[] = ".sum", percent[] = ".pct";
	bool sums = length > 4 && !memcmp(name + length - 4, sum, 4);
	memcpy(wish->name, name, length);
	memcpy(wish->own, name, length);
	wish->expressions[0] = wish->own;
	wish->unit = sums ? "count/s" : strstr(wish->name, percent) ? "%" : NULL;
}

static bool
wish_ours(struct plumb_gpu_series_wish *wish, const struct plumb_counter *counter,
          enum plumb_counter_family family)
{
	snprintf(wish->name, sizeof wish->name, "%s", counter->name);
	if (family >= PLUMB_COUNTER_FAMILIES || !counter->expressions[family]) {
		leave_out(counter->name);
		return false;
	}
	const char *rate = unit_of_rate(counter->unit);
	wish->unit = rate ? rate : counter->unit;
	wish->expressions[0] = counter->expressions[family];
	wish->expressions[1] = counter->otherwise;
	return true;
}

/* The counters of the default list, in their order. */
static unsigned
wish_default(struct plumb_gpu_series_wish *wishes, unsigned count, enum plumb_counter_family family)
{
	for (unsigned place = 1; place <= PLUMB_SERIES_MOST; place++)
		for (const struct plumb_counter *c = plumb_counters; c->name; c++)
			if (c->sampled == place && count < PLUMB_SERIES_MOST)
				count += wish_ours(&wishes[count], c, family);
	return count;
}

unsigned
plumb_gpu_series_wishes(struct plumb_gpu_series_wish *wishes, const char *chip)
{
	enum plumb_counter_family family = plumb_counter_family(chip);
	const char *at = plumb_collector_options()->counters_series, *name;
	size_t length;
	unsigned count = 0;
	memset(wishes, 0, PLUMB_SERIES_MOST * sizeof *wishes);
	while (plumb_counter_listed(&at, &name, &length) && count < PLUMB_SERIES_MOST) {
		const struct plumb_counter *counter = plumb_counter_find(name, length);
		if (length == strlen(PLUMB_SERIES_DEFAULT) &&
		    !memcmp(name, PLUMB_SERIES_DEFAULT, length))
			count = wish_default(wishes, count, family);
		else if (counter)
			count += wish_ours(&wishes[count], counter, family);
		else if (length < sizeof wishes->name)
			wish_own(&wishes[count++], name, length);
	}
	return count;
}

/* ---- the reading thread ---- */

struct plumb_gpu_series *
plumb_gpu_series_new(struct plumb_thread *thread, plumb_id device,
                     const struct plumb_gpu_counters_plan *plan)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_gpu_series *series = calloc(1, sizeof *series);
	for (unsigned i = 0; series && i < plan->counters; i++) {
		const char *unit = plan->each[i].unit;
		plumb_id name =
			plumb_intern(thread, plan->each[i].name, strlen(plan->each[i].name));
		plumb_id unit_id = unit ? plumb_intern(thread, unit, strlen(unit)) : 0;
		struct plumb_record_counter_series *record =
			name ? plumb_arena_append(arena, PLUMB_RECORD_COUNTER_SERIES,
		                                  sizeof *record)
			     : NULL;
		if (!record) {
			plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
			continue;
		}
		record->device = device;
		record->name = name;
		record->unit = unit_id;
		plumb_arena_commit(arena, record);
		series->records[i] = record;
	}
	return series;
}

void
plumb_gpu_series_free(struct plumb_gpu_series *series)
{
	free(series);
}

static void
merge(struct plumb_counter_bin *into, const struct plumb_counter_bin *bin)
{
	if (!bin->samples)
		return;
	into->least = !into->samples || bin->least < into->least ? bin->least : into->least;
	into->most = !into->samples || bin->most > into->most ? bin->most : into->most;
	into->sum += bin->sum;
	into->ns += bin->ns;
	into->samples += bin->samples;
}

static void
coarsen(struct plumb_record_counter_series *record)
{
	for (unsigned i = 0; i < PLUMB_COUNTER_BINS; i++) {
		struct plumb_counter_bin bin = { 0 };
		if (i < PLUMB_COUNTER_BINS / 2) {
			bin = record->bins[2 * i];
			merge(&bin, &record->bins[2 * i + 1]);
		}
		record->bins[i] = bin;
	}
	record->width *= 2;
}

/* False: its time cannot be. */
static bool
add_sample(struct plumb_record_counter_series *record, uint64_t start, uint64_t end, double value)
{
	uint64_t middle = start + (end - start) / 2;
	if (!record->width) {
		record->width = (uint64_t)plumb_collector_options()->counters_every * 1000u;
		record->start = start;
	}
	/* The clocks were read anew since the first one. */
	if (middle < record->start)
		middle = record->start;
	if (middle - record->start > LONGEST)
		return false;
	while (middle - record->start >= PLUMB_COUNTER_BINS * record->width)
		coarsen(record);
	struct plumb_counter_bin sample = {
		.sum = value * (double)(end - start),
		.ns = end - start,
		.least = (float)value,
		.most = (float)value,
		.samples = 1,
	};
	merge(&record->bins[(middle - record->start) / record->width], &sample);
	return true;
}

void
plumb_gpu_series_add(struct plumb_thread *thread, struct plumb_gpu_series *series,
                     const struct plumb_gpu_counters_plan *plan, uint64_t start, uint64_t end,
                     const double *values)
{
	double sums[PLUMB_COUNTERS_MOST];
	bool known = false, placed = false;
	plumb_gpu_counters_sum(plan, values, sums);
	for (unsigned i = 0; i < plan->counters; i++) {
		struct plumb_record_counter_series *record = series->records[i];
		double value = sums[i];
		if (is_rate(plan->each[i].unit))
			value *= 1e9 / (double)(end - start);
		/* What is unknown is left out, never 0: a share of an idle time, say. */
		if (!(fabs(value) < 0x1p100))
			continue;
		known = true;
		if (!record)
			continue;
		plumb_sequence_begin(&record->sequence);
		placed |= add_sample(record, start, end, value);
		plumb_sequence_end(&record->sequence);
	}
	plumb_count(thread, PLUMB_SOURCE_COUNTER_SAMPLE, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_COUNTER_SAMPLE,
	            placed  ? PLUMB_FATE_ATTRIBUTED
	            : known ? PLUMB_FATE_REGION_FULL
	                    : PLUMB_FATE_CUPTI_DROPPED,
	            1);
}

void
plumb_gpu_series_lost(struct plumb_thread *thread, enum plumb_fate fate, uint64_t samples)
{
	if (!samples)
		return;
	plumb_count(thread, PLUMB_SOURCE_COUNTER_SAMPLE, PLUMB_FATE_RECEIVED, samples);
	plumb_count(thread, PLUMB_SOURCE_COUNTER_SAMPLE, fate, samples);
}

void
plumb_gpu_series_tell(struct plumb_thread *thread)
{
	char text[32];
	if (!plumb_gpu_series_begin())
		return;
	pthread_mutex_lock(&lock);
	if (!told && sampled[0]) {
		told = true;
		plumb_environment(thread, "gpu.counters.series", sampled);
		snprintf(text, sizeof text, "%u", plumb_collector_options()->counters_every * 1000);
		plumb_environment(thread, "gpu.counters.series.interval_ns", text);
		if (without[0])
			plumb_environment(thread, "gpu.counters.series.without", without);
	}
	if (!told_clocks && clocks[0]) {
		told_clocks = true;
		plumb_environment(thread, "gpu.counters.series.clock_ns", clocks);
	}
	if (!told_off && refusal[0]) {
		told_off = true;
		plumb_environment(thread, "gpu.counters.series.off", refusal);
	}
	pthread_mutex_unlock(&lock);
}

void
plumb_gpu_series_renew(void)
{
	without[0] = sampled[0] = clocks[0] = refusal[0] = '\0';
	told = told_clocks = told_off = false;
}
