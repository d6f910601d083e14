/* SPDX-License-Identifier: Apache-2.0 */
/* The operating system's samples, and all of them once the file is read; V8's events are in
 * chrome_v8.c. */
#include "import/chrome/samples.h"

#include "base/runs.h"
#include "base/search.h"
#include "import/chrome/v8.h"

#define SYSTEM_FRAMES 0 /* owner of "stackFrames" */

/* ---- the file's own lists ---- */

/* A number, or a text that may be one. */
static void
read_number(struct plumb_pull *pull, void *number, void *own)
{
	struct plumb_slice text;

	(void)own;
	if (plumb_pull_next(pull) != '"')
		plumb_pull_integer(pull, number);
	else if (plumb_pull_text(pull, &text) && !plumb_slice_decimal(text, 0, number))
		*(int64_t *)number = plumb_chrome_number(PLUMB_UNKNOWN, text);
}

struct frame {
	struct plumb_samples_function function;
	int64_t parent;
};

/* {"category": "libc.so", "name": "read", "parent": 1} */
#define AT(member) PLUMB_PULL_AT(struct frame, member)
static const struct plumb_pull_field frame_fields[] = {
	PLUMB_PULL_FIELD("category", TEXT, AT(function.file)),
	PLUMB_PULL_FIELD("name", TEXT, AT(function.name)),
	PLUMB_PULL_FIELD("parent", CALL, AT(parent), .read = read_number),
	{ 0 },
};
#undef AT

/* {"1": FRAME, "a": FRAME} */
void
plumb_chrome_samples_frames(void *own)
{
	struct plumb_chrome *chrome = own;
	struct plumb_chrome_samples *samples = chrome->samples;
	struct plumb_pull *pull = &chrome->pull;
	struct frame frame;
	struct plumb_slice key;
	int64_t number = 0;
	bool more = plumb_pull_enter_long(pull, '{');

	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			frame = (struct frame){ .parent = PLUMB_UNKNOWN };
			more = plumb_pull_member(pull, &key);
			if (more) {
				/* Before the value is read: it may move the window. */
				if (!plumb_slice_decimal(key, 0, &number))
					number = plumb_chrome_number(PLUMB_UNKNOWN, key);
				plumb_pull_object(pull, frame_fields, &frame, NULL);
			}
		}
		if (!more || plumb_pull_failed(pull))
			return;
		samples->no_memory |=
			!plumb_samples_node(&samples->shared, &samples->functions, SYSTEM_FRAMES,
		                            number, frame.parent, &frame.function, false);
	}
}

/* Counts of a CPU clock are ns. The format uses 1 if no weight is given. */
static int64_t
ns_of(struct plumb_slice event, int64_t weight)
{
	const char *colon = event.at ? memchr(event.at, ':', event.bytes) : NULL;

	if (colon)
		event.bytes = (size_t)(colon - event.at);
	return weight > 1 && event.at &&
	                       (plumb_slice_is(event, "cpu-clock") ||
	                        plumb_slice_is(event, "task-clock"))
	               ? weight
	               : PLUMB_UNKNOWN;
}

struct sample {
	struct plumb_chrome_system_sample sample;
	struct plumb_slice event;
	int64_t weight;
};

/* {"cpu": 0, "tid": 1, "ts": 1000.0, "name": "cycles:HG", "sf": 3, "weight": 1} */
#define AT(member) PLUMB_PULL_AT(struct sample, member)
static const struct plumb_pull_field sample_fields[] = {
	PLUMB_PULL_FIELD("pid", INTEGER, AT(sample.pid)),
	PLUMB_PULL_FIELD("tid", INTEGER, AT(sample.tid)),
	PLUMB_PULL_FIELD("ts", MICROS, AT(sample.at)),
	PLUMB_PULL_FIELD("name", TEXT, AT(event)),
	PLUMB_PULL_FIELD("sf", CALL, AT(sample.frame), .read = read_number),
	PLUMB_PULL_FIELD("weight", INTEGER, AT(weight)),
	{ 0 },
};
#undef AT

void
plumb_chrome_samples_list(void *own)
{
	static const struct sample initial = {
		{ PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		{ 0 },
		PLUMB_UNKNOWN,
	};
	struct plumb_chrome *chrome = own;
	struct plumb_chrome_samples *samples = chrome->samples;
	struct plumb_chrome_system_sample *added;
	struct sample row;
	bool list = plumb_pull_enter_long(&chrome->pull, '[');

	while (list &&
	       plumb_pull_row(&chrome->pull, sample_fields, &row, &initial, sizeof row, chrome)) {
		row.sample.ns = ns_of(row.event, row.weight);
		added = plumb_vec_add(&samples->system);
		samples->no_memory |= !added;
		if (added)
			*added = row.sample;
	}
}

/* ---- which threads they are of ---- */

struct thread {
	int64_t tid;
	uint32_t track;
};

struct threads {
	PLUMB_VEC(struct thread) items;
	bool no_memory;
};

static void
note_thread(void *data, int64_t tid, uint32_t track)
{
	struct threads *threads = data;
	struct thread *added = plumb_vec_add(&threads->items);

	threads->no_memory |= !added;
	if (added)
		*added = (struct thread){ tid, track };
}

static bool
swapped_threads(const void *x, const void *y, const void *data)
{
	const struct thread *a = x, *b = y;

	(void)data;
	return b->tid < a->tid;
}

/* If one process of the file has the number, it is that process's. Otherwise its owner is
 * unknown. */
static uint32_t
track_of(struct plumb_trace *trace, const struct threads *threads, int64_t pid, int64_t tid)
{
	const struct thread *items = threads->items.items;
	uint32_t count = threads->items.count;
	uint32_t low = plumb_search(i, count, items[i].tid < tid);

	if (pid == PLUMB_UNKNOWN && low < count && items[low].tid == tid &&
	    (low + 1 == count || items[low + 1].tid != tid))
		return items[low].track;
	return plumb_trace_thread(trace, plumb_trace_process(trace, pid), tid);
}

static void
take_system(struct plumb_chrome_samples *samples, const struct threads *threads)
{
	struct plumb_trace *trace = samples->shared.trace;

	for (uint32_t i = 0; i < samples->system.count && !samples->no_memory; i++) {
		const struct plumb_chrome_system_sample *sample = &samples->system.items[i];

		/* One that is not taken makes no thread. */
		if (sample->ns == PLUMB_UNKNOWN) {
			samples->shared.timeless++;
			continue;
		}
		if (sample->tid == PLUMB_UNKNOWN) {
			plumb_trace_count(trace, PLUMB_FATE_UNUSED, "CPU samples without a thread",
			                  1);
			continue;
		}
		uint32_t track = track_of(trace, threads, sample->pid, sample->tid);

		if (sample->frame == PLUMB_UNKNOWN)
			plumb_samples_take(&samples->shared, track,
			                   &(struct plumb_samples_chain){ 0 }, sample->at,
			                   sample->ns);
		else
			samples->no_memory |= !plumb_samples_take_at(
				&samples->shared, &samples->functions, SYSTEM_FRAMES, sample->frame,
				track, sample->at, sample->ns);
	}
}

void
plumb_chrome_samples_end(struct plumb_chrome_samples *samples)
{
	struct threads threads = { 0 };

	plumb_trace_each_thread(samples->shared.trace, note_thread, &threads);
	samples->no_memory |= threads.no_memory;
	if (threads.items.count &&
	    plumb_runs_sort(threads.items.items, threads.items.count, sizeof *threads.items.items,
	                    swapped_threads, NULL) < 0)
		samples->no_memory = true;
	take_system(samples, &threads);
	plumb_chrome_v8_end(samples);
	plumb_samples_end(&samples->shared);
	plumb_vec_free(&threads.items);
}

void
plumb_chrome_samples_free(struct plumb_chrome_samples *samples)
{
	plumb_samples_tree_free(&samples->functions);
	plumb_vec_free(&samples->system);
	plumb_vec_free(&samples->event.nodes);
	plumb_vec_free(&samples->event.samples);
	plumb_vec_free(&samples->event.deltas);
	plumb_vec_free(&samples->profiles);
	plumb_map_free(&samples->profile_map);
	plumb_vec_free(&samples->chunks);
	plumb_vec_free(&samples->moments);
}
