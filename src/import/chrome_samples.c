/* SPDX-License-Identifier: Apache-2.0 */
/* The operating system's samples, and all of them once the file is read; V8's events are in
 * chrome_v8.c. */
#include "import/chrome_samples.h"

#include "base/runs.h"
#include "base/search.h"
#include "import/chrome_v8.h"

#define SYSTEM_FRAMES 0 /* owner of "stackFrames" */

/* ---- the file's own lists ---- */

/* A number, or a text that may be one. */
static bool
read_number(struct plumb_pull *pull, int64_t *number)
{
	struct plumb_slice text;

	if (plumb_pull_next(pull) != '"')
		return plumb_pull_integer(pull, number);
	if (!plumb_pull_text(pull, &text))
		return false;
	if (!plumb_slice_decimal(text, 0, number))
		*number = plumb_chrome_number(PLUMB_UNKNOWN, text);
	return true;
}

/* {"category": "libc.so", "name": "read", "parent": 1} */
static void
read_frame(struct plumb_pull *pull, struct plumb_samples_function *function, int64_t *parent)
{
	struct plumb_slice key;

	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (plumb_slice_is(key, "name"))
			plumb_pull_text(pull, &function->name);
		else if (plumb_slice_is(key, "category"))
			plumb_pull_text(pull, &function->file);
		else if (plumb_slice_is(key, "parent"))
			read_number(pull, parent);
		else
			plumb_pull_skip(pull);
	}
}

/* {"1": FRAME, "a": FRAME} */
static void
read_frames(struct plumb_chrome_samples *samples, struct plumb_pull *pull)
{
	struct plumb_samples_function function;
	struct plumb_slice key;
	int64_t number = 0, parent;
	bool more = true;

	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			function = (struct plumb_samples_function){ 0 };
			parent = PLUMB_UNKNOWN;
			more = plumb_pull_member(pull, &key);
			if (more) {
				/* Before the value is read: it may move the window. */
				if (!plumb_slice_decimal(key, 0, &number))
					number = plumb_chrome_number(PLUMB_UNKNOWN, key);
				read_frame(pull, &function, &parent);
			}
		}
		if (!more || plumb_pull_failed(pull))
			return;
		samples->no_memory |=
			!plumb_samples_node(&samples->shared, &samples->functions, SYSTEM_FRAMES,
		                            number, parent, &function, false);
	}
}

/* Counts of a clock of the CPU are ns; 1 is what the format has where nobody says a weight. */
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

/* {"cpu": 0, "tid": 1, "ts": 1000.0, "name": "cycles:HG", "sf": 3, "weight": 1} */
static void
read_sample(struct plumb_pull *pull, struct plumb_chrome_system_sample *sample)
{
	struct plumb_slice key, event = { NULL, 0 };
	int64_t weight = PLUMB_UNKNOWN;

	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (plumb_slice_is(key, "ts"))
			plumb_pull_decimal(pull, 3, &sample->at);
		else if (plumb_slice_is(key, "tid"))
			plumb_pull_integer(pull, &sample->tid);
		else if (plumb_slice_is(key, "pid"))
			plumb_pull_integer(pull, &sample->pid);
		else if (plumb_slice_is(key, "sf"))
			read_number(pull, &sample->frame);
		else if (plumb_slice_is(key, "name"))
			plumb_pull_text(pull, &event);
		else if (plumb_slice_is(key, "weight"))
			plumb_pull_integer(pull, &weight);
		else
			plumb_pull_skip(pull);
	}
	sample->ns = ns_of(event, weight);
}

static void
read_samples(struct plumb_chrome_samples *samples, struct plumb_pull *pull)
{
	struct plumb_chrome_system_sample sample, *added;
	bool more = true;

	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			sample = (struct plumb_chrome_system_sample){
				PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
				PLUMB_UNKNOWN, PLUMB_UNKNOWN,
			};
			more = plumb_pull_item(pull);
			if (more)
				read_sample(pull, &sample);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		added = plumb_vec_add(&samples->system);
		samples->no_memory |= !added;
		if (added)
			*added = sample;
	}
}

bool
plumb_chrome_samples_member(struct plumb_chrome_samples *samples, struct plumb_pull *pull,
                            const char *key)
{
	bool frames = !strcmp(key, "stackFrames"), enters = false;

	if (!frames && strcmp(key, "samples") != 0)
		return false;
	PLUMB_PULL_WHOLE(pull)
	enters = plumb_pull_enter(pull, frames ? '{' : '[');
	if (!enters)
		plumb_pull_skip_long(pull);
	else if (frames)
		read_frames(samples, pull);
	else
		read_samples(samples, pull);
	return true;
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

/* A number that one process of the file has is that process's; else nobody knows whose it is. */
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
