/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single spans (`plumb run --trace`). Those of threads are in ticks of the processor's counter: the
 * readings of both clocks, which lie around them, are joined by straight lines, so that times keep
 * their order and spans stay one inside the other, however the clock was adjusted meanwhile.
 */
#include "settle/settle_private.h"

#include <math.h>

#include "base/search.h"

/* Readings that are closer together say little about the rate. */
#define APART 10000000 /* ns */

struct plumb_settle_anchor {
	int64_t ticks, monotonic;
};

struct plumb_settle_trace {
	PLUMB_VEC(struct plumb_settle_anchor) anchors; /* ascending in both */
	double scale;                                  /* ns a tick, as calibrated; 0 unknown */
	int64_t keep_ns;                               /* 0 all */
	uint32_t keep_iterations;                      /* 0 all */
	uint64_t entries, overwritten, notes, samples;
};

/* ---- clocks ---- */

static int
by_ticks(const void *x, const void *y)
{
	const struct plumb_settle_anchor *a = x, *b = y;

	return (a->ticks > b->ticks) - (a->ticks < b->ticks);
}

/* Orders the readings and drops those that are out of line or too close to the one before. */
static void
order_anchors(struct plumb_settle_trace *trace)
{
	struct plumb_settle_anchor *a = trace->anchors.items;
	uint32_t kept = 0;

	if (!trace->anchors.count)
		return;
	qsort(a, trace->anchors.count, sizeof *a, by_ticks);
	for (uint32_t i = 1; i < trace->anchors.count; i++) {
		bool last = i + 1 == trace->anchors.count;
		if (a[i].ticks <= a[kept].ticks || a[i].monotonic <= a[kept].monotonic ||
		    (!last && a[i].monotonic - a[kept].monotonic < APART))
			continue;
		/* The last one counts for more than one just before it. */
		if (last && kept && a[i].monotonic - a[kept].monotonic < APART)
			a[kept] = a[i];
		else
			a[++kept] = a[i];
	}
	trace->anchors.count = kept + 1;
}

static bool
take_reading(struct plumb_settle_trace *trace, const struct plumb_record_ticks *record)
{
	struct plumb_settle_anchor *anchor;

	if (!record->ticks || record->ticks > INT64_MAX || record->clock.monotonic > INT64_MAX)
		return true;
	trace->scale = record->scale ? (double)record->scale / 4294967296.0 : 1;
	anchor = plumb_vec_add(&trace->anchors);
	if (!anchor)
		return false;
	anchor->ticks = (int64_t)record->ticks;
	anchor->monotonic = (int64_t)record->clock.monotonic;
	return true;
}

/* The monotonic time of TICKS. PLUMB_UNKNOWN: it cannot be known. */
static int64_t
time_of_ticks(const struct plumb_settle_trace *trace, uint64_t ticks)
{
	const struct plumb_settle_anchor *a = trace->anchors.items;
	uint32_t count = trace->anchors.count, low;
	double rate = trace->scale, distance;
	int64_t result;

	if (!count || ticks > INT64_MAX)
		return PLUMB_UNKNOWN;
	low = plumb_search(i, count, a[i].ticks <= (int64_t)ticks);
	/* Before the first reading and after the last one, the nearest line goes on. */
	low = low ? low - 1 : 0;
	if (low + 1 == count && low)
		low--;
	if (low + 1 < count)
		rate = (double)(a[low + 1].monotonic - a[low].monotonic) /
		       (double)(a[low + 1].ticks - a[low].ticks);
	distance = rate * (double)((int64_t)ticks - a[low].ticks);
	if (!(rate > 0) || !(fabs(distance) < 9e18) ||
	    __builtin_add_overflow(a[low].monotonic, (int64_t)llround(distance), &result) ||
	    result < 0)
		return PLUMB_UNKNOWN;
	return result;
}

/* ---- entries ---- */

/* The entries of a piece that are whole, and how many it lost. */
static uint32_t
entries_of(const struct plumb_record_span *record, uint64_t *lost)
{
	uint64_t state = atomic_load_explicit(&record->state, memory_order_relaxed);
	uint64_t room = (record->head.length - sizeof *record) / sizeof(struct plumb_span_entry);
	uint32_t count = (uint32_t)state;

	if (record->capacity > room || count > record->capacity)
		return UINT32_MAX;
	*lost = (state >> 32) * record->capacity;
	return count;
}

/* False: damaged. */
static bool
take_sample_entry(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                  const struct plumb_sample_entry *entry, struct plumb_cpu_sample *sample)
{
	*sample = (struct plumb_cpu_sample){
		.track = plumb_region_get(region->reader, entry->track, PLUMB_RECORD_THREAD,
		                          sizeof(struct plumb_record))
		                 ? plumb_settle_track(region, entry->track)
		                 : PLUMB_NONE,
		.context = plumb_settle_node(region, entry->node),
		.at_ns = time_of_ticks(trace, entry->at),
		.ns = plumb_settle_number(entry->ns),
	};
	return sample->track != PLUMB_NONE && sample->context != PLUMB_NONE &&
	       sample->at_ns != PLUMB_UNKNOWN && sample->ns >= 0 && sample->ns < PLUMB_TIME_MOST;
}

/* False: damaged. */
static bool
take_entry(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
           const struct plumb_span_entry *entry, struct plumb_settle_span *span)
{
	const struct plumb_host_entry *host = &entry->host; /* of work up to the track too */
	const struct plumb_record_stream *stream =
		plumb_region_get(region->reader, host->track, PLUMB_RECORD_STREAM, sizeof *stream);

	*span = (struct plumb_settle_span){
		.context = plumb_settle_node(region, host->node),
		.track = plumb_settle_track(region, host->track),
		.node = host->node,
		.started = plumb_entry_kind(entry) == PLUMB_ENTRY_STARTED,
	};
	if (stream) {
		const struct plumb_work_entry *work = &entry->work;
		const struct plumb_settle_line *line = plumb_settle_line_of(region, stream->device);
		span->correlation = work->correlation;
		span->bytes = plumb_entry_bytes(work->size);
		span->ends = plumb_settle_ends(region, work->node);
		span->start = plumb_settle_time(line, work->start);
		span->end = plumb_settle_time(line, work->end);
	} else {
		span->correlation = span->started ? 0 : host->correlation;
		span->start = time_of_ticks(trace, host->start);
		span->end = time_of_ticks(trace, host->end);
	}
	return span->context != PLUMB_NONE && span->track != PLUMB_NONE &&
	       span->start != PLUMB_UNKNOWN && span->end != PLUMB_UNKNOWN &&
	       span->end >= span->start;
}

/* Calls TAKE with each whole entry of the file's pieces. */
static bool
each_entry(struct plumb_settle_region *region,
           bool (*take)(void *data, const struct plumb_span_entry *entry), void *data)
{
	const struct plumb_record *record;
	uint64_t cursor = 0, lost;

	while ((record = plumb_region_next(region->reader, &cursor))) {
		const struct plumb_record_span *piece = (const struct plumb_record_span *)record;
		const struct plumb_span_entry *entries =
			(const struct plumb_span_entry *)(piece + 1);
		if (record->type != PLUMB_RECORD_SPAN || record->length < sizeof *piece)
			continue;
		uint32_t count = entries_of(piece, &lost);
		for (uint32_t i = 0; count != UINT32_MAX && i < count; i++)
			if (!take(data, &entries[i]))
				return false;
	}
	return true;
}

struct taking {
	struct plumb_settle_region *region;
	const struct plumb_settle_trace *trace;
	bool (*take)(void *data, const struct plumb_settle_span *span);
	bool (*take_note)(void *data, const struct plumb_note_entry *note);
	void *data;
};

static bool
take_span(void *data, const struct plumb_span_entry *entry)
{
	struct taking *t = data;
	enum plumb_entry_kind kind = plumb_entry_kind(entry);
	struct plumb_settle_span span;

	return (kind != PLUMB_ENTRY_SPAN && kind != PLUMB_ENTRY_STARTED) ||
	       !take_entry(t->region, t->trace, entry, &span) || t->take(t->data, &span);
}

static bool
take_note(void *data, const struct plumb_span_entry *entry)
{
	struct taking *t = data;

	return plumb_entry_kind(entry) > PLUMB_ENTRY_SYNC || t->take_note(t->data, &entry->note);
}

bool
plumb_settle_each_span(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                       bool (*take)(void *data, const struct plumb_settle_span *span), void *data)
{
	struct taking t = { region, trace, take, NULL, data };

	return each_entry(region, take_span, &t);
}

bool
plumb_settle_each_note(struct plumb_settle_region *region,
                       bool (*take)(void *data, const struct plumb_note_entry *note), void *data)
{
	struct taking t = { region, NULL, NULL, take, data };

	return each_entry(region, take_note, &t);
}

struct taking_samples {
	struct plumb_settle_region *region;
	const struct plumb_settle_trace *trace;
	bool (*take)(void *data, const struct plumb_cpu_sample *sample);
	void *data;
};

static bool
take_sample(void *data, const struct plumb_span_entry *entry)
{
	struct taking_samples *t = data;
	struct plumb_cpu_sample sample;

	if (plumb_entry_kind(entry) != PLUMB_ENTRY_SAMPLE)
		return true;
	bool whole = take_sample_entry(t->region, t->trace, &entry->sample, &sample);
	return t->take(t->data, whole ? &sample : NULL);
}

bool
plumb_settle_each_sample(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
                         bool (*take)(void *data, const struct plumb_cpu_sample *sample),
                         void *data)
{
	struct taking_samples t = { region, trace, take, data };

	return each_entry(region, take_sample, &t);
}

/* ---- what is kept ---- */

struct keeping {
	struct plumb_settle_region *region;
	int64_t cutoff; /* only spans that end later are kept */
	int64_t latest;
	uint64_t seen, kept, older, too_many;
};

static bool
look_at(void *data, const struct plumb_settle_span *span)
{
	struct keeping *k = data;

	k->seen++;
	if (span->end > k->latest)
		k->latest = span->end;
	return true;
}

static bool
look_at_sample(void *data, const struct plumb_cpu_sample *sample)
{
	struct keeping *k = data;

	if (sample && sample->at_ns > k->latest)
		k->latest = sample->at_ns;
	return true;
}

static bool
keep_span(void *data, const struct plumb_settle_span *span)
{
	struct keeping *k = data;
	struct plumb_span row = {
		.context = span->context,
		.track = span->track,
		.start_ns = span->start,
		.end_ns = span->end,
		.correlation = span->correlation,
		.bytes = span->bytes,
		.ends = span->ends,
	};
	int code;

	if (span->end <= k->cutoff) {
		k->older++;
		return true;
	}
	code = plumb_builder_span(k->region->settler->builder, &row);
	if (code < 0) {
		k->region->settler->no_memory = true;
		return false;
	}
	if (code)
		k->too_many++;
	else
		k->kept++;
	return true;
}

/* Takes in what the region's pieces say. False: no memory. */
static bool
look_around(struct plumb_settle_region *region, struct plumb_settle_trace *trace)
{
	const struct plumb_record *record;
	uint64_t cursor = 0, lost;
	bool memory = true;

	while (memory && (record = plumb_region_next(region->reader, &cursor))) {
		const struct plumb_record_span *piece = (const struct plumb_record_span *)record;
		if (record->type == PLUMB_RECORD_CLOCK &&
		    record->length >= sizeof(struct plumb_record_ticks))
			memory = take_reading(trace, (const struct plumb_record_ticks *)record);
		if (record->type != PLUMB_RECORD_SPAN || record->length < sizeof *piece)
			continue;
		uint32_t count = entries_of(piece, &lost);
		if (count == UINT32_MAX) {
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "pieces of a trace", 1);
			continue;
		}
		trace->entries += count;
		trace->overwritten = (uint64_t)plumb_settle_sum(
			plumb_settle_number(trace->overwritten), plumb_settle_number(lost));
		trace->keep_ns = plumb_settle_number(piece->keep_ns);
		trace->keep_iterations = piece->keep_iterations;
	}
	order_anchors(trace);
	return memory;
}

static bool
count_other(void *data, const struct plumb_span_entry *entry)
{
	struct plumb_settle_trace *trace = data;

	enum plumb_entry_kind kind = plumb_entry_kind(entry);

	trace->notes += kind <= PLUMB_ENTRY_SYNC;
	trace->samples += kind == PLUMB_ENTRY_SAMPLE;
	return true;
}

static void
choose_kept(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
            struct keeping *keeping)
{
	if (trace->keep_ns > 0 &&
	    __builtin_sub_overflow(keeping->latest, trace->keep_ns, &keeping->cutoff))
		keeping->cutoff = INT64_MIN;
	if (!trace->keep_iterations)
		return;
	keeping->cutoff = plumb_settle_iterations(region, trace, trace->keep_iterations);
	if (keeping->cutoff != PLUMB_SETTLE_NO_ITERATIONS)
		return;
	keeping->cutoff = INT64_MIN;
	plumb_builder_environment(region->settler->builder, region->process, "trace.iterations",
	                          "no iterations were found; all spans are kept");
}

static void
count_spans(struct plumb_settle_region *region, const struct plumb_settle_trace *trace,
            const struct keeping *k)
{
	const int64_t *row = region->ledger[PLUMB_SOURCE_SPAN];
	int64_t received = 0;

	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_ATTRIBUTED, NULL, k->kept);
	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN, NULL,
	                   trace->overwritten);
	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN,
	                   "older than --trace asks for", k->older);
	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN,
	                   "a profile cannot hold more", k->too_many);
	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_DAMAGED, NULL,
	                   trace->entries - trace->notes - trace->samples - k->seen);
	for (int fate = 0; fate < PLUMB_FATE_COUNT; fate++)
		if (fate != PLUMB_FATE_RECEIVED)
			received = plumb_settle_sum(received, row[fate]);
	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_RECEIVED, NULL,
	                   (uint64_t)received);
}

void
plumb_settle_spans(struct plumb_settle_region *region)
{
	struct plumb_settle_trace trace = { 0 };
	struct keeping keeping = { .region = region, .cutoff = INT64_MIN, .latest = INT64_MIN };

	if (region->is_run || region->process == PLUMB_NONE)
		return;
	if (!look_around(region, &trace)) {
		region->settler->no_memory = true;
	} else if (trace.entries || region->ledger[PLUMB_SOURCE_SPAN][PLUMB_FATE_REGION_FULL] ||
	           region->ledger[PLUMB_SOURCE_SAMPLE_TIME][PLUMB_FATE_RECEIVED]) {
		each_entry(region, count_other, &trace);
		plumb_settle_each_span(region, &trace, look_at, &keeping);
		plumb_settle_each_sample(region, &trace, look_at_sample, &keeping);
		choose_kept(region, &trace, &keeping);
		plumb_settle_each_span(region, &trace, keep_span, &keeping);
		trace.overwritten -=
			plumb_settle_samples(region, &trace, keeping.cutoff, trace.overwritten);
		if (trace.notes)
			plumb_settle_waits(region, &trace);
		count_spans(region, &trace, &keeping);
		if (keeping.seen && keeping.latest > region->seen)
			region->seen = keeping.latest;
	}
	plumb_vec_free(&trace.anchors);
}
