/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's CPU profiles in trace events. "Profile" stands on the thread that is sampled and says when
 * it began; a "ProfileChunk" of the same id has nodes of the tree of functions (each names its
 * parent), samples (nodes) and the time from each sample to the next. Chunks are written by another
 * thread, so they may come before their profile; their own times say how they follow each other. A
 * sample counts for the time since the one before it. V8 has a node of its own for a thread that is
 * idle.
 */
#include "import/chrome/v8.h"

#include "base/hash.h"
#include "base/runs.h"

/* ---- reading an event ---- */

void
plumb_chrome_samples_begin(struct plumb_chrome_samples *samples)
{
	struct plumb_chrome_v8_event *event = &samples->event;

	event->nodes.count = event->samples.count = event->deltas.count = 0;
	event->start = PLUMB_UNKNOWN;
}

#define AT(member) PLUMB_PULL_AT(struct plumb_chrome_v8_node, member)
static const struct plumb_pull_field function_fields[] = {
	PLUMB_PULL_FIELD("functionName", TEXT, AT(name)),
	PLUMB_PULL_FIELD("url", TEXT, AT(url)),
	PLUMB_PULL_FIELD("lineNumber", INTEGER, AT(line)),
	{ 0 },
};

/* {"id": 2, "parent": 1, "callFrame": {"functionName": "f", "url": "a.js", "lineNumber": 3}} */
static const struct plumb_pull_field node_fields[] = {
	PLUMB_PULL_FIELD("callFrame", OBJECT, .inner = function_fields),
	PLUMB_PULL_FIELD("id", INTEGER, AT(number)),
	PLUMB_PULL_FIELD("parent", INTEGER, AT(parent)),
	{ 0 },
};
#undef AT

static void
read_node(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_chrome_v8_node node = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, -1, { 0 }, { 0 } };
	struct plumb_chrome_samples *samples = into;
	struct plumb_chrome_v8_node *added;

	if (!plumb_pull_object(pull, node_fields, &node, own))
		return;
	added = plumb_vec_add(&samples->event.nodes);
	samples->no_memory |= !added;
	if (added)
		*added = node;
}

static void
read_sample(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_chrome_samples *samples = into;
	int64_t node = PLUMB_UNKNOWN, *added = plumb_vec_add(&samples->event.samples);

	(void)own;
	plumb_pull_decimal(pull, 0, &node);
	samples->no_memory |= !added;
	if (added)
		*added = node;
}

static void
read_delta(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_chrome_samples *samples = into;
	int64_t delta = PLUMB_UNKNOWN, *added = plumb_vec_add(&samples->event.deltas);

	(void)own;
	plumb_pull_decimal(pull, 3, &delta);
	samples->no_memory |= !added;
	if (added)
		*added = delta;
}

/* Times stand in the data or in its "cpuProfile". */
#define START PLUMB_PULL_AT(struct plumb_chrome_samples, event.start)
static const struct plumb_pull_field profile_fields[] = {
	PLUMB_PULL_FIELD("nodes", LIST, .read = read_node),
	PLUMB_PULL_FIELD("samples", LIST, .read = read_sample),
	PLUMB_PULL_FIELD("startTime", MICROS, START),
	PLUMB_PULL_FIELD("timeDeltas", LIST, .read = read_delta),
	{ 0 },
};
static const struct plumb_pull_field data_fields[] = {
	PLUMB_PULL_FIELD("cpuProfile", OBJECT, .inner = profile_fields),
	PLUMB_PULL_FIELD("startTime", MICROS, START),
	PLUMB_PULL_FIELD("timeDeltas", LIST, .read = read_delta),
	{ 0 },
};

static bool
is_profile(struct plumb_slice name)
{
	return name.at && (plumb_slice_is(name, "Profile") || plumb_slice_is(name, "ProfileChunk"));
}

void
plumb_chrome_samples_data(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_chrome *chrome = own;
	const struct plumb_chrome_event *event = chrome->event;
	/* Arguments may stand before what says which event it is. */
	bool other = (event->phase && event->phase != 'P') ||
	             (event->name.at && !is_profile(event->name));

	(void)into;
	if (other)
		plumb_pull_skip(pull);
	else
		plumb_pull_object(pull, data_fields, chrome->samples, NULL);
}

/* ---- taking it in ---- */

static uint32_t
profile_of(struct plumb_chrome_samples *samples, uint32_t process, int64_t id)
{
	uint64_t hash = plumb_hash_mix(process, (uint64_t)id);
	struct plumb_chrome_v8_profile *added;
	struct plumb_map_cursor at;

	for (uint32_t i = plumb_map_first(&samples->profile_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&samples->profile_map, &at))
		if (samples->profiles.items[i].process == process &&
		    samples->profiles.items[i].id == id)
			return i;
	added = plumb_vec_add(&samples->profiles);
	if (!added || plumb_map_add(&samples->profile_map, hash, samples->profiles.count - 1) < 0) {
		samples->no_memory = true;
		return PLUMB_NONE;
	}
	*added = (struct plumb_chrome_v8_profile){ id, PLUMB_UNKNOWN, process, PLUMB_NONE };
	return samples->profiles.count - 1;
}

static void
keep_nodes(struct plumb_chrome_samples *samples, uint32_t profile)
{
	for (uint32_t i = 0; i < samples->event.nodes.count; i++) {
		const struct plumb_chrome_v8_node *node = &samples->event.nodes.items[i];
		bool root = node->name.at && plumb_slice_is(node->name, "(root)");
		bool idle = node->name.at && plumb_slice_is(node->name, "(idle)");
		/* Lines count from 0. */
		const struct plumb_samples_function function = {
			node->name.bytes ? node->name : (struct plumb_slice){ "(anonymous)", 11 },
			node->url.bytes ? node->url : (struct plumb_slice){ NULL, 0 },
			node->line >= 0 && node->line < UINT32_MAX ? node->line + 1 : 0,
		};

		if (node->number == PLUMB_UNKNOWN)
			continue;
		samples->no_memory |= !plumb_samples_node(
			&samples->shared, &samples->functions, profile + UINT64_C(1), node->number,
			node->parent, root ? NULL : &function, idle);
	}
}

static void
keep_samples(struct plumb_chrome_samples *samples, uint32_t profile, int64_t at)
{
	const struct plumb_chrome_v8_event *event = &samples->event;
	struct plumb_chrome_v8_chunk chunk = {
		at,
		profile,
		samples->moments.count,
		event->samples.count,
		event->samples.count != event->deltas.count,
	};
	struct plumb_chrome_v8_chunk *kept = NULL;

	for (uint32_t i = 0; i < event->samples.count; i++) {
		struct plumb_chrome_v8_sample *added = plumb_vec_add(&samples->moments);

		samples->no_memory |= !added;
		if (!added)
			return;
		*added = (struct plumb_chrome_v8_sample){
			event->samples.items[i],
			i < event->deltas.count ? event->deltas.items[i] : PLUMB_UNKNOWN,
		};
	}
	if (event->samples.count || event->deltas.count)
		samples->no_memory |= !(kept = plumb_vec_add(&samples->chunks));
	if (kept)
		*kept = chunk;
}

bool
plumb_chrome_samples_take(struct plumb_chrome_samples *samples, struct plumb_chrome *chrome,
                          const struct plumb_chrome_event *event)
{
	uint32_t i;

	if (event->phase != 'P' || !is_profile(event->name))
		return false;
	i = profile_of(samples, plumb_chrome_process(chrome, event),
	               plumb_chrome_number(event->id, event->id_text));
	if (i == PLUMB_NONE)
		return true;
	if (plumb_slice_is(event->name, "Profile") &&
	    samples->profiles.items[i].track == PLUMB_NONE) {
		/* Its moment is on the trace's clock, what it says of its start maybe not. */
		samples->profiles.items[i].track = plumb_chrome_thread(chrome, event);
		samples->profiles.items[i].start =
			event->start != PLUMB_UNKNOWN ? event->start : samples->event.start;
	}
	keep_nodes(samples, i);
	keep_samples(samples, i, event->start);
	return true;
}

/* ---- when all is read ---- */

static bool
swapped_chunks(const void *x, const void *y, const void *data)
{
	const struct plumb_chrome_v8_chunk *a = x, *b = y;

	(void)data;
	return a->profile != b->profile ? b->profile < a->profile : b->at < a->at;
}

/* The samples of CHUNK; AT: the moment of the one before, PLUMB_UNKNOWN. Returns the last one's. */
static int64_t
take_chunk(struct plumb_chrome_samples *samples, const struct plumb_chrome_v8_chunk *chunk,
           int64_t at)
{
	uint32_t track = samples->profiles.items[chunk->profile].track;

	for (uint32_t i = 0; i < chunk->count && !samples->no_memory; i++) {
		const struct plumb_chrome_v8_sample *sample =
			&samples->moments.items[chunk->first + i];

		if (at == PLUMB_UNKNOWN || sample->delta == PLUMB_UNKNOWN ||
		    __builtin_add_overflow(at, sample->delta, &at)) {
			at = PLUMB_UNKNOWN;
			plumb_trace_count(samples->shared.trace, PLUMB_FATE_BACKWARDS, NULL, 1);
			continue;
		}
		samples->no_memory |= !plumb_samples_take_at(
			&samples->shared, &samples->functions, chunk->profile + UINT64_C(1),
			sample->node, track, at, sample->delta);
	}
	return chunk->uneven ? PLUMB_UNKNOWN : at;
}

void
plumb_chrome_v8_end(struct plumb_chrome_samples *samples)
{
	const struct plumb_chrome_v8_chunk *chunks = samples->chunks.items;
	int64_t at = PLUMB_UNKNOWN;

	if (!samples->chunks.count)
		return;
	if (plumb_runs_sort(samples->chunks.items, samples->chunks.count, sizeof *chunks,
	                    swapped_chunks, NULL) < 0)
		samples->no_memory = true;
	for (uint32_t i = 0; i < samples->chunks.count && !samples->no_memory; i++) {
		const struct plumb_chrome_v8_profile *profile =
			&samples->profiles.items[chunks[i].profile];

		if (profile->track == PLUMB_NONE) {
			plumb_trace_count(samples->shared.trace, PLUMB_FATE_OVERWRITTEN,
			                  "samples of V8 profiles whose Profile event is missing",
			                  chunks[i].count);
			continue;
		}
		if (!i || chunks[i].profile != chunks[i - 1].profile)
			at = profile->start;
		at = take_chunk(samples, &chunks[i], at);
	}
}
