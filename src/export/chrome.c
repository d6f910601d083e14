/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome trace events, which Perfetto, chrome://tracing and tools for PyTorch's traces read:
 * categories, names and arguments are those of PyTorch's profiler, and plumb reads them back by the
 * same way.
 *
 * A span knows its call path, and not its own bytes or size of launch: a call path that had one
 * size only has it with each of its spans. Bytes of copies of several sizes are in total under
 * "plumb", so that the file holds all of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/search.h"
#include "export/chrome_names.h"
#include "export/chrome_private.h"
#include "export/export.h"
#include "export/names.h"
#include "export/work.h"

#define GPU_PIDS INT64_C(2000000000) /* of process and device, for viewers */
#define OTHER_TIDS INT64_C(1000000000)
#define SAMPLE_TIDS INT64_C(3000000000) /* of a thread's samples, by track */

/* ---- what is known of a span ---- */

static int
by_place(const void *x, const void *y, void *variants)
{
	const struct plumb_variant *a =
		(const struct plumb_variant *)variants + *(const uint32_t *)x;
	const struct plumb_variant *b =
		(const struct plumb_variant *)variants + *(const uint32_t *)y;

	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return (a->track > b->track) - (a->track < b->track);
}

static int
by_stream(const void *x, const void *y, void *tracks)
{
	const struct plumb_track *a = (const struct plumb_track *)tracks + *(const uint32_t *)x;
	const struct plumb_track *b = (const struct plumb_track *)tracks + *(const uint32_t *)y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->stream > b->stream) - (a->stream < b->stream);
}

/* What every call of a context on a track had, or PLUMB_UNKNOWN. */
static int64_t
constant_of(const struct chrome *c, const struct plumb_span *span, uint32_t metric)
{
	const struct plumb_value *v = plumb_export_value(c->profile, span, metric);

	return v && v->count && v->min == v->max ? v->min : PLUMB_UNKNOWN;
}

/* Streams are called by their numbers where those tell them apart. */
static bool
number_tracks(struct chrome *c)
{
	const struct plumb_profile *profile = c->profile;
	uint32_t count = profile->tracks_count;
	uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);

	c->tids = malloc(((size_t)count + 1) * sizeof *c->tids);
	if (!order || !c->tids) {
		free(order);
		return false;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof *order, by_stream, profile->tracks);
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_track *t = &profile->tracks[order[i]];
		int64_t number = t->kind == PLUMB_TRACK_STREAM ? t->stream : t->tid;
		bool shared =
			t->kind == PLUMB_TRACK_STREAM &&
			((i && !by_stream(&order[i - 1], &order[i], profile->tracks)) ||
		         (i + 1 < count && !by_stream(&order[i], &order[i + 1], profile->tracks)));
		c->tids[order[i]] =
			number == PLUMB_UNKNOWN || shared ? OTHER_TIDS + order[i] : number;
	}
	free(order);
	return true;
}

static bool
gather_rows(struct chrome *c)
{
	const struct plumb_profile *profile = c->profile;
	size_t room = (size_t)profile->variants_count + 1;

	c->drawn = calloc((size_t)profile->values_count + 1, sizeof *c->drawn);
	c->variants = malloc(room * sizeof *c->variants);
	if (!c->drawn || !c->variants || !number_tracks(c) ||
	    !plumb_export_groups_open(&c->groups, profile))
		return false;
	for (uint32_t i = 0; i < profile->variants_count; i++)
		if (profile->variants[i].shapes == PLUMB_NONE)
			c->variants[c->variants_count++] = i;
	qsort_r(c->variants, c->variants_count, sizeof *c->variants, by_place, profile->variants);
	for (uint32_t i = 0; i < c->timeline.spans_count; i++) {
		const struct plumb_span *s = &c->timeline.spans[i];
		const struct plumb_value *v =
			plumb_export_value(profile, s, PLUMB_METRIC_GPU_COPY_BYTES);
		if (v && !s->bytes && !plumb_timeline_drawn(s))
			c->drawn[v - profile->values]++;
	}
	return true;
}

static void
begin_at(struct chrome *c, uint32_t process, int64_t start)
{
	start = plumb_timeline_time(&c->timeline, process, start);
	if (start < c->base)
		c->base = start;
}

/* Times count from the first thing that is drawn: viewers do not expect negative ones. */
static void
find_base(struct chrome *c)
{
	const struct plumb_profile *p = c->profile;
	const struct plumb_span *slices = c->timeline.samples.slices.items;

	c->base = INT64_MAX;
	for (uint32_t i = 0; i < c->timeline.spans_count; i++)
		begin_at(c, p->tracks[c->timeline.spans[i].track].process,
		         c->timeline.spans[i].start_ns);
	for (uint32_t i = 0; i < c->timeline.samples.slices.count; i++)
		begin_at(c, p->tracks[slices[i].track].process, slices[i].start_ns);
	for (uint32_t i = 0; i < p->memory_series_count; i++)
		begin_at(c, p->tracks[p->memory_series[i].track].process,
		         p->memory_series[i].start_ns);
	for (uint32_t i = 0; i < p->counter_series_count; i++)
		if (p->counter_series[i].process < p->processes_count)
			begin_at(c, p->counter_series[i].process, p->counter_series[i].start_ns);
}

/* ---- values ---- */

/* Ns as µs, exactly. */
void
plumb_chrome_time(struct chrome *c, const char *key, int64_t ns)
{
	char text[48];

	snprintf(text, sizeof text, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "",
	         (ns < 0 ? -(uint64_t)ns : (uint64_t)ns) / 1000,
	         (ns < 0 ? -(uint64_t)ns : (uint64_t)ns) % 1000);
	plumb_json_key(c->json, key);
	plumb_json_raw(c->json, text);
}

static void
put_known(struct chrome *c, const char *key, int64_t number)
{
	if (number != PLUMB_UNKNOWN)
		plumb_json_key_quantity(c->json, key, number);
}

static void
put_known_text(struct chrome *c, const char *key, const char *text)
{
	if (text)
		plumb_json_key_text(c->json, key, text);
}

/* The number of a device in a process, for viewers. */
int64_t
plumb_chrome_gpu(const struct chrome *c, uint32_t process, uint32_t device)
{
	return GPU_PIDS + (int64_t)process * c->profile->devices_count + device;
}

/* … and for who reads it back: its ordinal. */
static int64_t
ordinal_of(const struct chrome *c, uint32_t process, uint32_t device)
{
	int64_t ordinal = c->profile->devices[device].ordinal;

	return ordinal != PLUMB_UNKNOWN ? ordinal : plumb_chrome_gpu(c, process, device);
}

static bool
is_gpu(const struct chrome *c, uint32_t track)
{
	const struct plumb_track *t = &c->profile->tracks[track];

	return t->kind == PLUMB_TRACK_STREAM && t->process < c->profile->processes_count &&
	       t->device < c->profile->devices_count;
}

int64_t
plumb_chrome_pid(const struct chrome *c, uint32_t track)
{
	const struct plumb_track *t = &c->profile->tracks[track];

	if (is_gpu(c, track))
		return plumb_chrome_gpu(c, t->process, t->device);
	return t->process < c->profile->processes_count ? plumb_timeline_pid(c->profile, t->process)
	                                                : 0;
}

/* ---- names ---- */

/* The number of the next step on TRACK: a profile has steps as one range, and their numbers as a
 * fact about the run. */
static int64_t
next_step(struct chrome *c, uint32_t track)
{
	if (!c->steps || c->steps_track != track) {
		c->steps = "";
		for (uint32_t i = 0; i < c->profile->environment_count; i++) {
			const struct plumb_environment_row *row = &c->profile->environment[i];
			const char *key = plumb_text(c->profile, row->key);
			const char *value = plumb_text(c->profile, row->value);
			uint32_t process = c->profile->tracks[track].process;
			if (key && value && !strcmp(key, PLUMB_PROFILER_STEPS) &&
			    (row->process == process || (row->process == PLUMB_NONE && !*c->steps)))
				c->steps = value;
		}
		c->steps_track = track;
		c->step = -1;
	}
	char *end;
	long long number = strtoll(c->steps, &end, 10);
	c->step = end == c->steps ? c->step + 1 : number;
	c->steps = end;
	return c->step;
}

static void
put_name(struct chrome *c, const struct plumb_frame *frame, const char *label, uint32_t track)
{
	const char *file = plumb_text(c->profile, frame->file);
	char text[4096];

	if (frame->kind == PLUMB_FRAME_COPY || frame->kind == PLUMB_FRAME_SET)
		plumb_chrome_transfer(frame->transfer, label, text, sizeof text);
	else if (frame->kind == PLUMB_FRAME_PYTHON && file)
		snprintf(text, sizeof text, "%s(%" PRIu32 "): %s", file, frame->line, label);
	else if (frame->kind == PLUMB_FRAME_MODULE)
		snprintf(text, sizeof text, "nn.Module: %s", label);
	else if (frame->kind == PLUMB_FRAME_RANGE && !strcmp(label, "ProfilerStep"))
		snprintf(text, sizeof text, "ProfilerStep#%" PRId64, next_step(c, track));
	else {
		plumb_json_key_text(c->json, "name", label);
		return;
	}
	plumb_json_key_text(c->json, "name", text);
}

/* ---- events ---- */

void
plumb_chrome_begin(struct chrome *c, const char *phase)
{
	fputc('\n', c->out);
	plumb_json_object(c->json);
	plumb_json_key_text(c->json, "ph", phase);
}

/* A process's or (TID) thread's name, or place in the list. */
static void
put_metadata(struct chrome *c, const char *what, int64_t pid, int64_t tid, const char *key,
             const char *text, int64_t number)
{
	plumb_chrome_begin(c, "M");
	plumb_json_key_text(c->json, "name", what);
	plumb_json_key_quantity(c->json, "pid", pid);
	put_known(c, "tid", tid);
	plumb_json_key(c->json, "args");
	plumb_json_object(c->json);
	if (text)
		plumb_json_key_text(c->json, key, text);
	else
		plumb_json_key_quantity(c->json, key, number);
	plumb_json_end(c->json);
	plumb_json_end(c->json);
}

static void
put_process(struct chrome *c, uint32_t process)
{
	const struct plumb_process *own = &c->profile->processes[process];
	const char *command = plumb_text(c->profile, own->command);
	const char *host = plumb_text(c->profile, own->host);
	int64_t pid = plumb_timeline_pid(c->profile, process);
	char text[300] = "";

	if (own->rank != PLUMB_UNKNOWN)
		snprintf(text, sizeof text, "rank %" PRId64 "%s", own->rank, host ? ", " : "");
	if (host)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%.200s", host);
	if (*text)
		put_metadata(c, "process_labels", pid, PLUMB_UNKNOWN, "labels", text, 0);
	if (command)
		put_metadata(c, "process_name", pid, PLUMB_UNKNOWN, "name", command, 0);
	put_metadata(c, "process_sort_index", pid, PLUMB_UNKNOWN, "sort_index", NULL, 2 * process);
}

static void
put_gpu(struct chrome *c, uint32_t process, uint32_t device)
{
	const struct plumb_device *own = &c->profile->devices[device];
	const char *model = plumb_text(c->profile, own->name);
	int64_t pid = plumb_chrome_gpu(c, process, device),
		rank = c->profile->processes[process].rank;
	char text[300];
	int used = snprintf(text, sizeof text, "GPU");

	if (own->ordinal != PLUMB_UNKNOWN)
		used += snprintf(text + used, sizeof text - (size_t)used, " %" PRId64,
		                 own->ordinal);
	used += snprintf(text + used, sizeof text - (size_t)used, "%s%.200s", model ? " " : "",
	                 model ? model : "");
	if (rank != PLUMB_UNKNOWN)
		snprintf(text + used, sizeof text - (size_t)used, " of rank %" PRId64, rank);
	put_metadata(c, "process_name", pid, PLUMB_UNKNOWN, "name", text, 0);
	put_metadata(c, "process_sort_index", pid, PLUMB_UNKNOWN, "sort_index", NULL,
	             2 * (int64_t)process + 1);
}

static void
put_track(struct chrome *c, uint32_t track)
{
	const struct plumb_track *t = &c->profile->tracks[track];
	const char *own = plumb_text(c->profile, t->name);
	char text[200];

	if (t->kind == PLUMB_TRACK_THREAD && own)
		snprintf(text, sizeof text, "%.190s", own);
	else if (t->kind == PLUMB_TRACK_STREAM && t->stream != PLUMB_UNKNOWN)
		snprintf(text, sizeof text, "stream %" PRId64, t->stream);
	else
		plumb_export_track(c->profile, track, text, sizeof text);
	put_metadata(c, "thread_name", plumb_chrome_pid(c, track), c->tids[track], "name", text, 0);
}

/* Names of what has spans. */
static bool
put_names(struct chrome *c)
{
	const struct plumb_profile *profile = c->profile;
	size_t count = (size_t)profile->processes_count * profile->devices_count;
	bool *seen = calloc(count + 1, sizeof *seen);

	if (!seen)
		return false;
	for (uint32_t i = 0; i < profile->processes_count; i++)
		put_process(c, i);
	for (uint32_t i = 0; i < c->timeline.spans_count && !ferror(c->out); i++) {
		uint32_t track = c->timeline.spans[i].track;
		const struct plumb_track *t = &profile->tracks[track];
		if (i && c->timeline.spans[i - 1].track == track)
			continue;
		size_t gpu = (size_t)t->process * profile->devices_count + t->device;
		if (is_gpu(c, track) && !seen[gpu]) {
			seen[gpu] = true;
			put_gpu(c, t->process, t->device);
		}
		put_track(c, track);
	}
	free(seen);
	return true;
}

/* A field that all launches of a context on a stream agree on. */
#define AGREED(field)                                                                              \
	do {                                                                                       \
		launch.field = first->field;                                                       \
		for (uint32_t k = low; k < end; k++)                                               \
			if (c->profile->variants[c->variants[k]].field != first->field)            \
				launch.field = PLUMB_UNKNOWN;                                      \
	} while (0)

static void
put_three(struct chrome *c, const char *key, const int64_t three[3])
{
	if (three[0] == PLUMB_UNKNOWN || three[1] == PLUMB_UNKNOWN || three[2] == PLUMB_UNKNOWN)
		return;
	plumb_json_key(c->json, key);
	plumb_json_array(c->json);
	for (int i = 0; i < 3; i++)
		plumb_json_integer(c->json, three[i]);
	plumb_json_end(c->json);
}

static bool
is_variant_before(const struct plumb_variant *v, const struct plumb_span *span)
{
	return v->context != span->context ? v->context < span->context : v->track < span->track;
}

static void
put_launch(struct chrome *c, const struct plumb_span *span)
{
	const struct plumb_variant *all = c->profile->variants;
	uint32_t low =
		plumb_search(i, c->variants_count, is_variant_before(&all[c->variants[i]], span));
	uint32_t end;
	struct plumb_variant launch;

	for (end = low; end < c->variants_count; end++) {
		const struct plumb_variant *v = &c->profile->variants[c->variants[end]];
		if (v->context != span->context || v->track != span->track)
			break;
	}
	if (low == end)
		return;
	const struct plumb_variant *first = &c->profile->variants[c->variants[low]];
	for (int i = 0; i < 3; i++) {
		AGREED(grid[i]);
		AGREED(block[i]);
	}
	AGREED(registers);
	put_three(c, "grid", launch.grid);
	put_three(c, "block", launch.block);
	put_known(c, "registers per thread", launch.registers);
	put_known(c, "shared memory", constant_of(c, span, PLUMB_METRIC_GPU_SHARED_BYTES));
}

/* In the words of PyTorch's profiler. */
static void
put_group(struct chrome *c, const struct plumb_span *span)
{
	const struct plumb_collective *row = plumb_export_group_of(&c->groups, span);

	if (!row)
		return;
	put_known_text(c, "Process Group Name", plumb_text(c->profile, row->group));
	put_known_text(c, "Process Group Ranks", plumb_text(c->profile, row->ranks));
	put_known(c, "Group size", row->size);
	put_known(c, "Seq", row->sequence);
}

static void
put_work(struct chrome *c, const struct plumb_span *span, uint32_t kind)
{
	const struct plumb_track *t = &c->profile->tracks[span->track];
	uint32_t parent = c->profile->contexts[span->context].parent;
	const struct plumb_frame *above =
		parent == PLUMB_NONE ? NULL : plumb_context_frame(c->profile, parent);

	plumb_json_key_quantity(c->json, "process", plumb_timeline_pid(c->profile, t->process));
	plumb_json_key_quantity(c->json, "device", ordinal_of(c, t->process, t->device));
	put_known(c, "context", t->gpu_context);
	put_known(c, "stream", t->stream);
	if (kind != PLUMB_FRAME_KERNEL)
		put_known(c, "bytes",
		          span->bytes && span->bytes <= INT64_MAX
		                  ? (int64_t)span->bytes
		                  : constant_of(c, span, PLUMB_METRIC_GPU_COPY_BYTES));
	else
		put_launch(c, span);
	if (span->ends.from && span->ends.to) {
		plumb_json_key_quantity(c->json, "fromDevice",
		                        ordinal_of(c, t->process, span->ends.from - 1));
		plumb_json_key_quantity(c->json, "toDevice",
		                        ordinal_of(c, t->process, span->ends.to - 1));
	}
	if (above && above->kind == PLUMB_FRAME_COLLECTIVE)
		put_known_text(c, "Collective name", plumb_text(c->profile, above->name));
	put_group(c, span);
}

static void
put_flow(struct chrome *c, const struct plumb_span *span, int64_t start)
{
	uint32_t arrow = plumb_timeline_arrow(&c->timeline, span);
	bool ends = is_gpu(c, span->track);

	if (!arrow)
		return;
	plumb_chrome_begin(c, ends ? "f" : "s");
	plumb_json_key_quantity(c->json, "id", arrow);
	plumb_json_key_quantity(c->json, "pid", plumb_chrome_pid(c, span->track));
	plumb_json_key_quantity(c->json, "tid", c->tids[span->track]);
	plumb_chrome_time(c, "ts", start - c->base);
	plumb_json_key_text(c->json, "cat", "ac2g");
	plumb_json_key_text(c->json, "name", "ac2g");
	if (ends)
		plumb_json_key_text(c->json, "bp", "e");
	plumb_json_end(c->json);
}

static void
put_span(struct chrome *c, const struct plumb_span *span)
{
	const struct plumb_profile *profile = c->profile;
	const struct plumb_context *context = &profile->contexts[span->context];
	const struct plumb_frame *frame = &profile->frames[context->frame];
	const char *label = plumb_frame_label(profile, context->frame);
	uint32_t process = profile->tracks[span->track].process;
	int64_t start = plumb_timeline_time(&c->timeline, process, span->start_ns);
	int64_t end = plumb_timeline_time(&c->timeline, process, span->end_ns);

	plumb_chrome_begin(c, "X");
	plumb_json_key_text(c->json, "cat", plumb_chrome_category(frame->kind, label));
	put_name(c, frame, label, span->track);
	plumb_json_key_quantity(c->json, "pid", plumb_chrome_pid(c, span->track));
	plumb_json_key_quantity(c->json, "tid", c->tids[span->track]);
	plumb_chrome_time(c, "ts", start - c->base);
	plumb_chrome_time(c, "dur", end - start);
	plumb_json_key(c->json, "args");
	plumb_json_object(c->json);
	plumb_json_key_quantity(c->json, "call path", span->context);
	if (context->flags & PLUMB_CONTEXT_BACKWARD)
		plumb_json_key_text(c->json, "pass", "backward");
	if (span->correlation) {
		plumb_json_key(c->json, "correlation");
		plumb_json_unsigned(c->json, span->correlation);
	}
	if (is_gpu(c, span->track))
		put_work(c, span, frame->kind);
	plumb_json_end(c->json);
	plumb_json_end(c->json);
	put_flow(c, span, start);
}

/* ---- what is drawn around it ---- */

/* A slice that was not recorded: a Python frame or module around spans, or a sample of CPU time. */
static void
put_drawn(struct chrome *c, const struct plumb_span *slice, const char *category, int64_t tid)
{
	const struct plumb_profile *profile = c->profile;
	const struct plumb_frame *frame = plumb_context_frame(profile, slice->context);
	uint32_t process = profile->tracks[slice->track].process;
	int64_t start = plumb_timeline_time(&c->timeline, process, slice->start_ns);
	int64_t end = plumb_timeline_time(&c->timeline, process, slice->end_ns);
	bool step =
		frame->kind == PLUMB_FRAME_RANGE; /* steps are numbered where they were recorded */

	plumb_chrome_begin(c, "X");
	plumb_json_key_text(c->json, "cat", category);
	if (step)
		plumb_json_key_text(
			c->json, "name",
			plumb_frame_label(profile, profile->contexts[slice->context].frame));
	else
		put_name(c, frame,
		         plumb_frame_label(profile, profile->contexts[slice->context].frame),
		         slice->track);
	plumb_json_key_quantity(c->json, "pid", plumb_chrome_pid(c, slice->track));
	plumb_json_key_quantity(c->json, "tid", tid);
	plumb_chrome_time(c, "ts", start - c->base);
	plumb_chrome_time(c, "dur", end - start);
	plumb_json_key(c->json, "args");
	plumb_json_object(c->json);
	plumb_json_key_quantity(c->json, "call path", slice->context);
	plumb_json_end(c->json);
	plumb_json_end(c->json);
}

static void
put_samples(struct chrome *c)
{
	const struct plumb_span *slices = c->timeline.samples.slices.items;
	char name[240], of[200];

	for (uint32_t i = 0; i < c->timeline.samples.slices.count && !ferror(c->out); i++) {
		int64_t tid = SAMPLE_TIDS + slices[i].track;
		if (!i || slices[i - 1].track != slices[i].track) {
			plumb_export_track(c->profile, slices[i].track, of, sizeof of);
			snprintf(name, sizeof name, "%s: CPU samples", of);
			put_metadata(c, "thread_name", plumb_chrome_pid(c, slices[i].track), tid,
			             "name", name, 0);
		}
		put_drawn(c, &slices[i], "cpu_sample", tid);
	}
}

/* ---- the rest of the file ---- */

/* Bytes of copies or sets on a device in a process that no event has, though all of them are
 * there. */
static void
put_bytes(struct chrome *c, uint32_t process, uint32_t device)
{
	const struct plumb_profile *profile = c->profile;
	int64_t copies = 0, sets = 0;

	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i];
		const struct plumb_track *t =
			v->track < profile->tracks_count ? &profile->tracks[v->track] : NULL;
		if (v->metric != PLUMB_METRIC_GPU_COPY_BYTES || plumb_export_is_even(v) || !t ||
		    t->process != process || t->device != device || c->drawn[i] != v->count)
			continue;
		if (plumb_context_frame(profile, v->context)->kind == PLUMB_FRAME_COPY)
			copies += v->sum;
		else
			sets += v->sum;
	}
	if (!copies && !sets)
		return;
	plumb_json_object(c->json);
	plumb_json_key_quantity(c->json, "process", plumb_timeline_pid(profile, process));
	plumb_json_key_quantity(c->json, "device", ordinal_of(c, process, device));
	plumb_json_key_quantity(c->json, "copied", copies);
	plumb_json_key_quantity(c->json, "set", sets);
	plumb_json_end(c->json);
}

/* Threads in a warp, by whose GPU it is: a profile counts warps alone, and those of AMD and Intel
 * have several sizes. */
static int64_t
warp_size(const struct plumb_device *device, const struct plumb_profile *profile)
{
	static const char *const families[] = { "NVIDIA", "Tesla", "GeForce",
		                                "Quadro", "TITAN", "GRID" };
	const char *name = plumb_text(profile, device->name);

	for (size_t i = 0; name && i < sizeof families / sizeof *families; i++)
		if (!strncmp(name, families[i], strlen(families[i])))
			return 32;
	return PLUMB_UNKNOWN;
}

static void
put_properties(struct chrome *c, uint32_t process, uint32_t device)
{
	const struct plumb_device *own = &c->profile->devices[device];
	int64_t warps = own->warps_per_multiprocessor, threads;
	int64_t warp = warps == PLUMB_UNKNOWN ? PLUMB_UNKNOWN : warp_size(own, c->profile);

	if (warp == PLUMB_UNKNOWN || __builtin_mul_overflow(warps, warp, &threads))
		threads = PLUMB_UNKNOWN;
	plumb_json_object(c->json);
	plumb_json_key_quantity(c->json, "id", ordinal_of(c, process, device));
	plumb_json_key_quantity(c->json, "process", plumb_timeline_pid(c->profile, process));
	put_known_text(c, "name", plumb_text(c->profile, own->name));
	put_known_text(c, "uuid", plumb_text(c->profile, own->uuid));
	put_known(c, "totalGlobalMem", own->memory_bytes);
	put_known(c, "computeMajor", own->capability_major);
	put_known(c, "computeMinor", own->capability_minor);
	put_known(c, "numSms", own->multiprocessors);
	put_known(c, "maxThreadsPerMultiprocessor", threads);
	put_known(c, "warpSize", warp);
	put_known(c, "warpsPerMultiprocessor", warps); /* not PyTorch's: what plumb reads back */
	plumb_json_end(c->json);
}

/* PUT for every device of every process that has a stream on it. */
static bool
each_device(struct chrome *c, void (*put)(struct chrome *c, uint32_t process, uint32_t device))
{
	const struct plumb_profile *profile = c->profile;
	size_t count = (size_t)profile->processes_count * profile->devices_count;
	bool *seen = calloc(count + 1, sizeof *seen);

	for (uint32_t i = 0; seen && i < profile->tracks_count; i++) {
		const struct plumb_track *t = &profile->tracks[i];
		if (is_gpu(c, i))
			seen[(size_t)t->process * profile->devices_count + t->device] = true;
	}
	for (size_t i = 0; seen && i < count; i++)
		if (seen[i])
			put(c, (uint32_t)(i / profile->devices_count),
			    (uint32_t)(i % profile->devices_count));
	free(seen);
	return seen != NULL;
}

static bool
put_head(struct chrome *c)
{
	const struct plumb_profile *profile = c->profile;
	bool done, one_rank = profile->processes_count > 0;

	plumb_json_key_quantity(c->json, "schemaVersion", 1);
	plumb_json_key_text(c->json, "displayTimeUnit", "ns");
	plumb_json_key_quantity(c->json, "baseTimeNanoseconds", c->base);
	for (uint32_t i = 0; i < profile->processes_count; i++)
		one_rank &= profile->processes[i].rank == profile->processes[0].rank;
	if (one_rank && profile->processes[0].rank != PLUMB_UNKNOWN) {
		plumb_json_key(c->json, "distributedInfo");
		plumb_json_object(c->json);
		plumb_json_key_quantity(c->json, "rank", profile->processes[0].rank);
		plumb_json_end(c->json);
	}
	plumb_json_key(c->json, "deviceProperties");
	plumb_json_array(c->json);
	done = each_device(c, put_properties);
	plumb_json_end(c->json);
	plumb_json_key(c->json, "plumb");
	plumb_json_object(c->json);
	plumb_json_key_text(c->json, "version", PLUMB_VERSION);
	plumb_json_key(c->json, "bytes");
	plumb_json_array(c->json);
	done &= each_device(c, put_bytes);
	plumb_json_end(c->json);
	plumb_json_end(c->json);
	return done;
}

static bool
put_all(struct chrome *c)
{
	bool done;

	find_base(c);
	plumb_json_object(c->json);
	done = put_head(c);
	plumb_json_key(c->json, "traceEvents");
	plumb_json_array(c->json);
	done = done && put_names(c);
	for (uint32_t i = 0; done && i < c->timeline.spans_count && !ferror(c->out); i++)
		if (plumb_timeline_drawn(&c->timeline.spans[i]))
			put_drawn(c, &c->timeline.spans[i], "python_stack",
			          c->tids[c->timeline.spans[i].track]);
		else
			put_span(c, &c->timeline.spans[i]);
	if (done) {
		put_samples(c);
		plumb_chrome_counters(c);
	}
	plumb_json_end(c->json);
	plumb_json_end(c->json);
	return done;
}

static int
chrome_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
             FILE *out, struct plumb_error *error)
{
	struct chrome c = { .profile = profile, .out = out };
	bool done;

	(void)options;
	if (!profile->memory_series_count && !profile->counter_series_count &&
	    plumb_timeline_check(profile, error) < 0)
		return PLUMB_EEMPTY;
	c.json = plumb_json_new(out);
	done = c.json && plumb_timeline_open(&c.timeline, profile) && gather_rows(&c) &&
	       put_all(&c);
	if (c.json)
		done &= plumb_json_finish(c.json) == 0 || ferror(out);
	bool no_time = c.timeline.no_time;
	plumb_timeline_free(&c.timeline);
	free(c.tids);
	free(c.drawn);
	free(c.variants);
	plumb_export_groups_free(&c.groups);
	if (!done)
		return plumb_fail_memory(error, "to export the profile");
	return no_time ? plumb_timeline_no_time(error) : 0;
}

const struct plumb_export_format plumb_export_chrome = {
	.name = "chrome",
	.write = chrome_write,
};
