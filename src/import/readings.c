/* SPDX-License-Identifier: Apache-2.0 */
/* Works with a number of their own, what counters read during them, and values that have no
 * events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/trace_private.h"

#define MILLION 1000000

static uint64_t
work_hash(uint32_t process, uint64_t id)
{
	return plumb_hash_mix(id, process);
}

/* The work with the number ID of PROCESS, or PLUMB_NONE. */
static uint32_t
find_work(const struct plumb_trace *trace, uint32_t process, uint64_t id)
{
	const struct plumb_trace_readings *r = &trace->readings;
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&r->work_map, work_hash(process, id), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&r->work_map, &at)) {
		const struct plumb_trace_numbered *numbered = &r->works.items[i];
		if (numbered->id == id && numbered->process == process)
			return numbered->work;
	}
	return PLUMB_NONE;
}

static bool
has_grid(const struct plumb_trace *trace, uint32_t work)
{
	uint32_t launch = trace->works.items[work].launch;
	return launch != PLUMB_NONE && trace->launches.items[launch].grid[0] != PLUMB_UNKNOWN;
}

int
plumb_trace_work_once(struct plumb_trace *trace, uint32_t process,
                      const struct plumb_trace_work *work, uint64_t id)
{
	struct plumb_trace_readings *r = &trace->readings;
	uint32_t known = find_work(trace, process, id), before = trace->works.count;
	if (known != PLUMB_NONE && (has_grid(trace, known) || !work->launch))
		return 1;
	int code = plumb_trace_work(trace, work);
	if (code < 0 || trace->works.count == before)
		return code;
	if (known != PLUMB_NONE) {
		trace->works.items[known] = trace->works.items[--trace->works.count];
		return 0;
	}
	struct plumb_trace_numbered *added = plumb_vec_add(&r->works);
	if (!added || plumb_map_add(&r->work_map, work_hash(process, id), r->works.count - 1) < 0)
		return plumb_trace_no_memory(trace);
	*added = (struct plumb_trace_numbered){ id, process, before };
	return 0;
}

/* The whole and the millionths of TEXT; false: it is no number that fits. */
static bool
split_number(struct plumb_slice text, int64_t *whole, int32_t *millionths)
{
	int64_t all;
	if (plumb_slice_decimal(text, 6, &all)) {
		*whole = all / MILLION;
		*millionths = (int32_t)(all % MILLION);
		return true;
	}
	*millionths = 0; /* too large for millionths to matter */
	return plumb_slice_decimal(text, 0, whole);
}

bool
plumb_trace_reading(struct plumb_trace *trace, uint32_t process, uint64_t id, uint32_t frame,
                    uint32_t counter, uint32_t unit, struct plumb_slice number)
{
	struct plumb_trace_reading reading = {
		.id = id,
		.process = process,
		.frame = frame,
		.counter = counter,
		.unit = unit,
	};
	if (!split_number(number, &reading.whole, &reading.millionths))
		return false;
	struct plumb_trace_reading *added = plumb_vec_add(&trace->readings.all);
	if (!added || counter == PLUMB_NONE || frame == PLUMB_NONE) {
		plumb_trace_no_memory(trace);
		return true;
	}
	*added = reading;
	trace->taken++;
	return true;
}

/* ---- when all is read ---- */

/* A counter of the file: its metric, in millionths when any of its readings needs them. */
struct counter {
	uint32_t name, unit, metric;
	bool fraction;
};

struct counters {
	PLUMB_VEC(struct counter) all;
	struct plumb_map map;
};

static struct counter *
counter_of(struct counters *counters, uint32_t name, uint32_t unit)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix(name, 0);
	for (uint32_t i = plumb_map_first(&counters->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&counters->map, &at))
		if (counters->all.items[i].name == name)
			return &counters->all.items[i];
	struct counter *added = plumb_vec_add(&counters->all);
	if (!added || plumb_map_add(&counters->map, hash, counters->all.count - 1) < 0)
		return NULL;
	added->name = name;
	added->unit = unit;
	return added;
}

/* Another trace of the same import may have the counter without fractions: it is another metric. */
static void
name_metric(struct plumb_builder *builder, struct counter *counter)
{
	uint32_t name = counter->name, unit = counter->unit;
	const char *text = plumb_builder_get_text(builder, name);
	const char *of = plumb_builder_get_text(builder, unit);
	char *longer;
	if (counter->fraction && asprintf(&longer, "1e-6%s%s", of ? " " : "", of ? of : "") >= 0) {
		unit = plumb_builder_text(builder, longer);
		free(longer);
	}
	if (counter->fraction && asprintf(&longer, "%s [1e-6]", text ? text : "?") >= 0) {
		name = plumb_builder_text(builder, longer);
		free(longer);
	}
	counter->metric = plumb_builder_metric(builder, name, unit);
}

static int
place_reading(struct plumb_trace *trace, const struct counter *counter,
              const struct plumb_trace_reading *reading)
{
	uint32_t work = find_work(trace, reading->process, reading->id);
	const struct plumb_trace_item *item = work == PLUMB_NONE ? NULL : &trace->works.items[work];
	uint32_t context = item ? item->span.context
	                        : plumb_builder_context(trace->builder, 0, reading->frame, 0);
	int64_t number = reading->whole;
	if (counter->fraction && (__builtin_mul_overflow(number, MILLION, &number) ||
	                          __builtin_add_overflow(number, reading->millionths, &number))) {
		plumb_trace_count(trace, PLUMB_FATE_UNUSED, "counter values out of range", 1);
		return 0;
	}
	struct plumb_value value = { context,
		                     counter->metric,
		                     item ? item->span.track : PLUMB_NONE,
		                     number,
		                     1,
		                     number,
		                     number,
		                     (double)number,
		                     0 };
	return plumb_builder_value(trace->builder, &value) < 0 ? plumb_trace_no_memory(trace) : 0;
}

int
plumb_trace_place_readings(struct plumb_trace *trace)
{
	struct plumb_trace_readings *r = &trace->readings;
	struct plumb_builder *builder = trace->builder;
	struct counters counters = { 0 };
	struct counter *counter = NULL;
	int code = 0;
	for (uint32_t i = 0; i < r->all.count && !code; i++) {
		counter = counter_of(&counters, r->all.items[i].counter, r->all.items[i].unit);
		if (counter)
			counter->fraction |= r->all.items[i].millionths != 0;
		else
			code = plumb_trace_no_memory(trace);
	}
	for (uint32_t i = 0; i < counters.all.count && !code; i++)
		name_metric(builder, &counters.all.items[i]);
	for (uint32_t i = 0; i < r->all.count && !code; i++) {
		counter = counter_of(&counters, r->all.items[i].counter, r->all.items[i].unit);
		if (counter && counter->metric)
			code = place_reading(trace, counter, &r->all.items[i]);
		else
			plumb_trace_count(trace, PLUMB_FATE_UNUSED,
			                  "values of more counters than a profile holds", 1);
	}
	plumb_vec_free(&counters.all);
	plumb_map_free(&counters.map);
	return code;
}

void
plumb_trace_forget_readings(struct plumb_trace *trace)
{
	plumb_vec_free(&trace->readings.works);
	plumb_map_free(&trace->readings.work_map);
	plumb_vec_free(&trace->readings.all);
}

/* ---- values without events ---- */

int
plumb_trace_summary(struct plumb_trace *trace, const struct plumb_value *value)
{
	if (value->context == PLUMB_NONE || plumb_builder_value(trace->builder, value) < 0)
		return plumb_trace_no_memory(trace);
	trace->taken++;
	return 0;
}
