/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace for Perfetto, as protobuf: what happened when.
 *
 *	process ─┬─ thread            operators, ranges and driver calls, one inside the other
 *	         ├─ GPU ─┬─ stream    kernels, copies and sets; arrows from the calls to them
 *	         │       └─ counters  how busy the device was, from its series; its memory
 *	         └─ counters          memory that is on no GPU
 *
 * Perfetto wants the spans of a track to nest: what overlaps goes to a second track of the same
 * name, and so does a range that was started, whether it overlaps or not.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/perfetto.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/names.h"
#include "export/perfetto_packet.h"
#include "export/timeline.h"
#include "model/times.h"

/* Numbers of tracks: kind, index, and which of the tracks of one name. */
enum track_number { PROCESS = 1, GPU, TRACK, BUSY, WORK, SAMPLES, ALLOCATED, RESERVED, SAMPLED };
#define UUID(kind, index, lane)                                                                    \
	((uint64_t)(kind) << 56 | (uint64_t)(index) << 16 | ((uint64_t)(lane) & 0xffff))
#define LANES_MOST 4096u

struct lane {
	bool used;
	PLUMB_VEC(int64_t) ends; /* of the spans that are open, the innermost last */
};

struct writer {
	const struct plumb_profile *profile;
	struct plumb_packets packets;
	struct plumb_timeline timeline;
	PLUMB_VEC(struct lane) lanes;
	bool too_deep;
	FILE *out;
};

/* ---- times ---- */

/* So that Perfetto knows the time of day. */
static void
put_clocks(struct writer *p)
{
	int64_t start = p->profile->run.start_ns, real;

	if (p->timeline.of_day || start == PLUMB_UNKNOWN || start < 0)
		return;
	real = plumb_realtime(p->profile, 0, start);
	if (real != PLUMB_UNKNOWN && real >= 0)
		plumb_packet_clocks(&p->packets, start, real);
}

/* ---- tracks ---- */

static void
put_process(struct writer *p, uint32_t process)
{
	const struct plumb_profile *profile = p->profile;
	const struct plumb_process *own = &profile->processes[process];
	const char *command = plumb_text(profile, own->command);
	const char *host = plumb_text(profile, own->host);
	char name[128], rank[40];
	const char *labels[3] = { NULL }, **label = labels;

	snprintf(rank, sizeof rank, "rank %" PRId64, own->rank);
	if (own->rank != PLUMB_UNKNOWN)
		*label++ = rank;
	if (host)
		*label++ = host;
	/* The program's own name: the first word's last part. */
	snprintf(name, sizeof name, "%.*s", command ? (int)strcspn(command, " ") : 1,
	         command ? command : "?");
	plumb_track_begin(&p->packets, UUID(PROCESS, process, 0), 0, NULL);
	plumb_track_process(&p->packets, plumb_timeline_pid(profile, process),
	                    plumb_export_base(name), command, labels);
	plumb_track_end(&p->packets);
}

/* The number of the track that holds all of DEVICE in PROCESS. */
static uint64_t
gpu_of(const struct writer *p, uint32_t process, uint32_t device)
{
	return UUID(GPU, (uint64_t)process * p->profile->devices_count + device, 0);
}

static void
put_gpu(struct writer *p, uint32_t process, uint32_t device)
{
	const struct plumb_device *own = &p->profile->devices[device];
	const char *model = plumb_text(p->profile, own->name);
	char name[128];

	if (own->ordinal != PLUMB_UNKNOWN)
		snprintf(name, sizeof name, "GPU %" PRId64 "%s%s", own->ordinal, model ? " " : "",
		         model ? model : "");
	else
		snprintf(name, sizeof name, "GPU%s%s", model ? " " : "", model ? model : "");
	plumb_track_begin(&p->packets, gpu_of(p, process, device), UUID(PROCESS, process, 0), name);
	plumb_track_end(&p->packets);
}

/* Every GPU that a process has a stream or a series of. */
static bool
put_gpus(struct writer *p)
{
	const struct plumb_profile *profile = p->profile;
	size_t count = (size_t)profile->processes_count * profile->devices_count;
	bool *seen = calloc(count + 1, sizeof *seen);

	if (!seen)
		return false;
	for (uint32_t i = 0; i < profile->tracks_count; i++) {
		const struct plumb_track *t = &profile->tracks[i];
		if (t->process < profile->processes_count && t->device < profile->devices_count)
			seen[(size_t)t->process * profile->devices_count + t->device] = true;
	}
	for (uint32_t i = 0; i < profile->series_count; i++) {
		const struct plumb_series_bin *s = &profile->series[i];
		if (s->process < profile->processes_count && s->device < profile->devices_count)
			seen[(size_t)s->process * profile->devices_count + s->device] = true;
	}
	for (size_t i = 0; i < count; i++)
		if (seen[i])
			put_gpu(p, (uint32_t)(i / profile->devices_count),
			        (uint32_t)(i % profile->devices_count));
	free(seen);
	return true;
}

/* The track of a thread or stream; LANE 0 is the first of its name. */
static void
put_track(struct writer *p, uint32_t track, uint32_t lane)
{
	const struct plumb_profile *profile = p->profile;
	const struct plumb_track *t = &profile->tracks[track];
	bool process = t->process < profile->processes_count;
	uint64_t parent = process ? UUID(PROCESS, t->process, 0) : 0;
	char name[200];

	if (t->kind == PLUMB_TRACK_STREAM && process && t->device < profile->devices_count)
		parent = gpu_of(p, t->process, t->device);
	plumb_export_track(profile, track, name, sizeof name);
	if (t->kind == PLUMB_TRACK_STREAM && t->stream != PLUMB_UNKNOWN)
		snprintf(name, sizeof name, "stream %" PRId64, t->stream);
	bool thread = t->kind == PLUMB_TRACK_THREAD && !lane && process && t->tid != PLUMB_UNKNOWN;
	plumb_track_begin(&p->packets, UUID(TRACK, track, lane), parent, thread ? NULL : name);
	if (thread)
		plumb_track_thread(&p->packets, plumb_timeline_pid(profile, t->process), t->tid,
		                   plumb_text(profile, t->name));
	plumb_track_end(&p->packets);
}

/* ---- spans ---- */

static void
put_end(struct writer *p, uint32_t track, uint32_t lane)
{
	struct lane *l = &p->lanes.items[lane];
	uint32_t process = p->profile->tracks[track].process;
	int64_t end = l->ends.items[--l->ends.count];

	plumb_packet_begin(&p->packets, plumb_timeline_time(&p->timeline, process, end));
	plumb_event_begin(&p->packets, TYPE_END, UUID(TRACK, track, lane));
	plumb_event_end(&p->packets);
	plumb_packet_end(&p->packets);
}

static bool
add_lane(struct writer *p, uint32_t track, uint32_t *lanes)
{
	p->too_deep = *lanes == LANES_MOST;
	if (p->too_deep)
		return false;
	if (*lanes == p->lanes.count && !plumb_vec_add(&p->lanes)) {
		p->packets.failed = true;
		return false;
	}
	put_track(p, track, (*lanes)++);
	return true;
}

/* The lane from FIRST on that can take the span, made when there is none; what has ended there,
 * ends. */
static uint32_t
find_lane(struct writer *p, uint32_t track, const struct plumb_span *span, uint32_t first,
          uint32_t *lanes)
{
	bool nests = p->profile->tracks[track].kind == PLUMB_TRACK_THREAD;

	for (uint32_t lane = first; lane < *lanes; lane++) {
		struct lane *l = &p->lanes.items[lane];
		while (l->ends.count && l->ends.items[l->ends.count - 1] <= span->start_ns)
			put_end(p, track, lane);
		if (!l->ends.count || (nests && l->ends.items[l->ends.count - 1] >= span->end_ns))
			return lane;
	}
	while (*lanes < first)
		if (!add_lane(p, track, lanes))
			return PLUMB_NONE;
	return add_lane(p, track, lanes) ? *lanes - 1 : PLUMB_NONE;
}

static bool
put_span(struct writer *p, const struct plumb_span *span, uint32_t first, uint32_t *lanes)
{
	const struct plumb_track *track = &p->profile->tracks[span->track];
	uint32_t lane = find_lane(p, span->track, span, first, lanes);
	int64_t *end;

	if (lane == PLUMB_NONE)
		return false;
	bool drawn = plumb_timeline_drawn(span);
	bool begins = !drawn && !p->lanes.items[lane].used;
	p->lanes.items[lane].used |= !drawn;
	end = plumb_vec_add(&p->lanes.items[lane].ends);
	if (!end)
		return false;
	*end = span->end_ns;
	plumb_packet_begin(&p->packets,
	                   plumb_timeline_time(&p->timeline, track->process, span->start_ns));
	plumb_event_begin(&p->packets, TYPE_BEGIN, UUID(TRACK, span->track, lane));
	uint32_t arrow = drawn ? 0 : plumb_timeline_arrow(&p->timeline, span);
	if (arrow)
		plumb_event_flow(&p->packets, arrow, track->kind == PLUMB_TRACK_STREAM);
	plumb_event_span(&p->packets, span, begins);
	plumb_event_end(&p->packets);
	plumb_packet_end(&p->packets);
	return true;
}

static bool
put_spans(struct writer *p)
{
	uint32_t lanes = 0;

	for (uint32_t i = 0; i < p->timeline.spans_count && !ferror(p->out); i++) {
		uint32_t track = p->timeline.spans[i].track;
		bool apart = p->packets.facts.started[p->timeline.spans[i].context];
		if (!i || p->timeline.spans[i - 1].track != track)
			plumb_perfetto_facts_track(&p->packets.facts, p->timeline.spans + i,
			                           p->timeline.spans_count - i);
		if (!put_span(p, &p->timeline.spans[i], apart, &lanes))
			return false;
		if (i + 1 < p->timeline.spans_count && p->timeline.spans[i + 1].track == track)
			continue;
		for (uint32_t lane = 0; lane < lanes; lane++) {
			while (p->lanes.items[lane].ends.count)
				put_end(p, track, lane);
			p->lanes.items[lane].used = false;
		}
		lanes = 0;
	}
	return true;
}

/* ---- samples of CPU time ---- */

static void
put_edge(struct writer *p, const struct plumb_span *slice, bool begins)
{
	uint32_t process = p->profile->tracks[slice->track].process;
	int64_t time = begins ? slice->start_ns : slice->end_ns;

	plumb_packet_begin(&p->packets, plumb_timeline_time(&p->timeline, process, time));
	plumb_event_begin(&p->packets, begins ? TYPE_BEGIN : TYPE_END,
	                  UUID(SAMPLES, slice->track, 0));
	if (begins)
		plumb_event_span(&p->packets, slice, false);
	plumb_event_end(&p->packets);
	plumb_packet_end(&p->packets);
}

static void
put_samples_track(struct writer *p, uint32_t track)
{
	char name[240], of[200];
	uint32_t process = p->profile->tracks[track].process;

	plumb_export_track(p->profile, track, of, sizeof of);
	snprintf(name, sizeof name, "%s: CPU samples", of);
	plumb_track_begin(&p->packets, UUID(SAMPLES, track, 0),
	                  process < p->profile->processes_count ? UUID(PROCESS, process, 0) : 0,
	                  name);
	plumb_track_end(&p->packets);
}

/* A track beside each thread's own: samples and spans need not nest. */
static bool
put_samples(struct writer *p)
{
	const struct plumb_span *slices = p->timeline.samples.slices.items;
	uint32_t count = p->timeline.samples.slices.count;
	PLUMB_VEC(uint32_t) open = { 0 };
	bool memory = true;

	for (uint32_t i = 0; i < count && memory && !ferror(p->out); i++) {
		bool fresh = !i || slices[i - 1].track != slices[i].track;
		while (open.count &&
		       (fresh || slices[open.items[open.count - 1]].end_ns <= slices[i].start_ns))
			put_edge(p, &slices[open.items[--open.count]], false);
		if (fresh)
			put_samples_track(p, slices[i].track);
		put_edge(p, &slices[i], true);
		uint32_t *added = plumb_vec_add(&open);
		memory = added != NULL;
		if (added)
			*added = i;
	}
	while (open.count)
		put_edge(p, &slices[open.items[--open.count]], false);
	plumb_vec_free(&open);
	return memory;
}

/* ---- counters ---- */

static void
put_value(struct writer *p, uint32_t process, uint64_t track, int64_t time, double value)
{
	plumb_packet_begin(&p->packets, plumb_timeline_time(&p->timeline, process, time));
	plumb_event_begin(&p->packets, TYPE_COUNTER, track);
	plumb_event_value(&p->packets, value);
	plumb_event_end(&p->packets);
	plumb_packet_end(&p->packets);
}

/* One device in one process: bins [FROM, TO). A value holds until the next one. */
static void
put_counters(struct writer *p, uint32_t from, uint32_t to)
{
	const struct plumb_series_bin *bins = p->profile->series;
	uint32_t process = bins[from].process;
	uint64_t index = (uint64_t)process * p->profile->devices_count + bins[from].device;
	uint64_t parent = gpu_of(p, process, bins[from].device);
	int64_t end = bins[to - 1].start_ns;

	plumb_track_begin(&p->packets, UUID(BUSY, index, 0), parent, "busy");
	plumb_track_counter(&p->packets, "%");
	plumb_track_end(&p->packets);
	plumb_track_begin(&p->packets, UUID(WORK, index, 0), parent, "kernels and copies begun");
	plumb_track_counter(&p->packets, "count");
	plumb_track_end(&p->packets);
	for (uint32_t i = from; i < to && !ferror(p->out); i++) {
		if (bins[i].busy_ns != PLUMB_UNKNOWN && bins[i].width_ns > 0)
			put_value(p, process, UUID(BUSY, index, 0), bins[i].start_ns,
			          100 * (double)bins[i].busy_ns / (double)bins[i].width_ns);
		if (bins[i].kernels != PLUMB_UNKNOWN && bins[i].copies != PLUMB_UNKNOWN)
			put_value(p, process, UUID(WORK, index, 0), bins[i].start_ns,
			          (double)bins[i].kernels + (double)bins[i].copies);
	}
	if (!__builtin_add_overflow(end, bins[to - 1].width_ns, &end)) {
		put_value(p, process, UUID(BUSY, index, 0), end, 0);
		put_value(p, process, UUID(WORK, index, 0), end, 0);
	}
}

static void
put_series(struct writer *p)
{
	const struct plumb_series_bin *bins = p->profile->series;
	uint32_t to;

	for (uint32_t from = 0; from < p->profile->series_count; from = to) {
		for (to = from + 1;
		     to < p->profile->series_count && bins[to].device == bins[from].device &&
		     bins[to].process == bins[from].process;
		     to++)
			;
		if (bins[from].device < p->profile->devices_count &&
		    bins[from].process < p->profile->processes_count)
			put_counters(p, from, to);
	}
}

/* Hardware counters over time: the mean of each bin, shares as percentages. Where there were no
 * samples, the last value holds. */
static void
put_samples_of(struct writer *p, uint64_t number, const struct plumb_counter_series *series,
               const char *unit, double divisor)
{
	uint64_t track = UUID(SAMPLED, number, 0);

	plumb_track_begin(&p->packets, track, gpu_of(p, series->process, series->device),
	                  series->name);
	plumb_track_counter(&p->packets, unit ? unit : "");
	plumb_track_end(&p->packets);
	for (uint32_t i = 0; i < series->count && !ferror(p->out); i++)
		put_value(p, series->process, track, series->bins[i].start_ns,
		          series->bins[i].mean / divisor);
}

static void
put_counter_series(struct writer *p)
{
	struct plumb_counter_series series;
	uint64_t number = 0;
	const char *unit;
	double divisor;

	for (uint32_t at = 0; plumb_export_counter_next(p->profile, &at, &series, &unit, &divisor);)
		put_samples_of(p, number++, &series, unit, divisor);
}

/* ---- memory ---- */

static void
put_memory_track(struct writer *p, enum track_number kind, uint32_t track, const char *what)
{
	const struct plumb_profile *profile = p->profile;
	const struct plumb_track *t = &profile->tracks[track];
	bool process = t->process < profile->processes_count;
	char name[200];

	plumb_export_memory(profile, track, what, name, sizeof name);
	plumb_track_begin(&p->packets, UUID(kind, track, 0),
	                  !process                             ? 0
	                  : t->device < profile->devices_count ? gpu_of(p, t->process, t->device)
	                                                       : UUID(PROCESS, t->process, 0),
	                  name);
	plumb_track_counter(&p->packets, "bytes");
	plumb_track_end(&p->packets);
}

/* The max of each bin, so that no peak is lost, and at the end what was there last. */
static void
put_memory(struct writer *p)
{
	const struct plumb_memory_series_bin *bins = p->profile->memory_series;
	uint32_t count = p->profile->memory_series_count;

	for (uint32_t i = 0; i < count && !ferror(p->out); i++) {
		const struct plumb_memory_series_bin *bin = &bins[i];
		uint32_t process = p->profile->tracks[bin->track].process;
		uint64_t allocated = UUID(ALLOCATED, bin->track, 0);
		uint64_t reserved = UUID(RESERVED, bin->track, 0);
		bool keeps = bin->max_reserved_bytes != PLUMB_UNKNOWN;
		int64_t end;

		if (!i || bins[i - 1].track != bin->track) {
			put_memory_track(p, ALLOCATED, bin->track, "allocated");
			if (keeps)
				put_memory_track(p, RESERVED, bin->track, "reserved");
		}
		put_value(p, process, allocated, bin->start_ns, (double)bin->max_bytes);
		if (keeps)
			put_value(p, process, reserved, bin->start_ns,
			          (double)bin->max_reserved_bytes);
		if ((i + 1 < count && bins[i + 1].track == bin->track) ||
		    __builtin_add_overflow(bin->start_ns, bin->width_ns, &end))
			continue;
		put_value(p, process, allocated, end, (double)bin->last_bytes);
		if (keeps)
			put_value(p, process, reserved, end, (double)bin->last_reserved_bytes);
	}
}

/* ---- the whole ---- */

static bool
put_all(struct writer *p)
{
	put_clocks(p);
	for (uint32_t i = 0; i < p->profile->processes_count; i++)
		put_process(p, i);
	if (!put_gpus(p) || !put_spans(p) || !put_samples(p))
		return false;
	put_series(p);
	put_counter_series(p);
	put_memory(p);
	return !p->packets.failed;
}

static int
perfetto_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
               FILE *out, struct plumb_error *error)
{
	struct writer p = { .profile = profile, .out = out };
	bool done;

	(void)options;
	if (!profile->series_count && !profile->memory_series_count &&
	    !profile->counter_series_count && plumb_timeline_check(profile, error) < 0)
		return PLUMB_EEMPTY;
	done = plumb_timeline_open(&p.timeline, profile) &&
	       plumb_packets_init(&p.packets, profile, out) && put_all(&p);
	bool no_time = p.timeline.no_time;
	plumb_packets_free(&p.packets);
	for (uint32_t i = 0; i < p.lanes.count; i++)
		plumb_vec_free(&p.lanes.items[i].ends);
	plumb_vec_free(&p.lanes);
	plumb_timeline_free(&p.timeline);
	if (p.too_deep)
		return plumb_fail(error, PLUMB_EINPUT, "more than %u spans of one track overlap",
		                  LANES_MOST);
	if (!done)
		return plumb_fail_memory(error, "to export the profile");
	return no_time ? plumb_timeline_no_time(error) : 0;
}

const struct plumb_export_format plumb_export_perfetto = {
	.name = "perfetto",
	.binary = true,
	.write = perfetto_write,
};
