/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans for OpenTelemetry: a resource for each process, all of one trace. A thread's span hangs
 * under the one around it; GPU work under the driver call that started it, to which it has a link
 * too, since it ends when it likes. What has none of these hangs under the span of a context above
 * it that includes it.
 */
#include "export/otlp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/names.h"
#include "export/work.h"
#include "model/launches.h"
#include "model/times.h"

#define STEPS_MOST 64 /* spans, or contexts above one, that are asked whether they are around it */

/* The span of a process as a whole, written before its first one. */
struct root {
	uint32_t first; /* PLUMB_NONE: the process has no spans */
	int64_t start_ns, end_ns;
};

struct plumb_otlp {
	const struct plumb_profile *profile;
	uint64_t trace[2];
	uint32_t *parents;              /* by span; PLUMB_NONE */
	uint32_t *calls;                /* the call that started it */
	uint32_t *variants;             /* by context: the only one it has; PLUMB_NONE */
	bool *timed;                    /* by context: it has a time of its own */
	uint32_t *above;                /* by context: the nearest above it with spans on threads */
	struct plumb_sort_item *around; /* those spans by context, process and start */
	uint32_t around_count;
	bool *firsts;       /* by span: the first of its context on its track */
	struct root *roots; /* by process */
	struct plumb_launches launches;
};

/* ---- ids ---- */

/* FNV-1a: another day's plumb must make the same ids. */
static uint64_t
mix(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *at = data;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t
mix_text(uint64_t hash, const char *text)
{
	return mix(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* A one-to-one map of 64 bits that keeps 0 (splitmix64's). */
static uint64_t
scatter_bits(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void
make_trace_id(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	for (int half = 0; half < 2; half++) {
		uint64_t hash = UINT64_C(0xcbf29ce484222325) + (uint64_t)half;
		hash = mix(hash, &profile->run.start_ns, sizeof profile->run.start_ns);
		hash = mix(hash, &profile->run.wall_ns, sizeof profile->run.wall_ns);
		for (uint32_t i = 0; i < profile->processes_count; i++) {
			const struct plumb_process *p = &profile->processes[i];
			hash = mix_text(hash, plumb_text(profile, p->host));
			hash = mix_text(hash, plumb_text(profile, p->command));
			hash = mix(hash, &p->pid, sizeof p->pid);
			hash = mix(hash, &p->start_ns, sizeof p->start_ns);
		}
		otlp->trace[half] = hash | 1; /* all zero is none */
	}
}

static void
put_span_id(struct plumb_json *json, const char *key, uint32_t span)
{
	char text[17];
	snprintf(text, sizeof text, "%016" PRIx64, scatter_bits((uint64_t)span + 1));
	plumb_json_key_text(json, key, text);
}

/* Numbers from the other end than those of spans. */
static void
put_root_id(struct plumb_json *json, const char *key, uint32_t process)
{
	char text[17];
	snprintf(text, sizeof text, "%016" PRIx64, scatter_bits(UINT64_MAX - process));
	plumb_json_key_text(json, key, text);
}

static void
put_trace_id(const struct plumb_otlp *otlp, struct plumb_json *json)
{
	char text[33];
	snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, otlp->trace[0], otlp->trace[1]);
	plumb_json_key_text(json, "traceId", text);
}

/* ---- parents ---- */

static bool
is_above(const struct plumb_profile *profile, uint32_t context, uint32_t below)
{
	return context < below && below <= profile->contexts[context].last;
}

static bool
on_thread(const struct plumb_otlp *otlp, uint32_t span)
{
	return otlp->profile->tracks[otlp->profile->spans[span].track].kind == PLUMB_TRACK_THREAD;
}

static uint32_t
process_of(const struct plumb_otlp *otlp, uint32_t span)
{
	return otlp->profile->tracks[otlp->profile->spans[span].track].process;
}

static void
find_timed(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (profile->values[i].metric == PLUMB_METRIC_OP_TIME)
			otlp->timed[profile->values[i].context] = true;
}

/* Ranges that were started and ended have no time of their own, and may cross what runs
 * meanwhile. */
static bool
is_started(const struct plumb_otlp *otlp, uint32_t context)
{
	return plumb_context_frame(otlp->profile, context)->kind == PLUMB_FRAME_RANGE &&
	       !otlp->timed[context];
}

/* Nests the spans of a track, one inside the other. On a known thread they always nest. */
static int
nest_spans(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	PLUMB_VEC(uint32_t) open = { 0 };
	int code = 0;
	for (uint32_t i = 0; i < profile->spans_count && !code; i++) {
		const struct plumb_span *s = &profile->spans[i];
		if (!on_thread(otlp, i))
			continue;
		if (i && profile->spans[i - 1].track != s->track)
			open.count = 0;
		while (open.count &&
		       profile->spans[open.items[open.count - 1]].end_ns <= s->start_ns)
			open.count--;
		bool known = profile->tracks[s->track].tid != PLUMB_UNKNOWN;
		uint32_t steps = 0;
		for (uint32_t at = open.count;
		     at-- > 0 && otlp->parents[i] == PLUMB_NONE && steps++ < STEPS_MOST;) {
			const struct plumb_span *outer = &profile->spans[open.items[at]];
			if (outer->end_ns >= s->end_ns &&
			    (is_above(profile, outer->context, s->context) ||
			     (known && !is_started(otlp, outer->context))))
				otlp->parents[i] = open.items[at];
		}
		uint32_t *added = plumb_vec_add(&open);
		if (added)
			*added = i;
		else
			code = PLUMB_ESYSTEM;
	}
	plumb_vec_free(&open);
	return code;
}

/* The spans of threads by context, process and start. */
static int
order_around(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	size_t room = (size_t)profile->spans_count + 1;
	struct plumb_sort_item *spare = malloc(room * sizeof *spare), *items;
	items = otlp->around = malloc(room * sizeof *items);
	if (!spare || !items) {
		free(spare);
		return PLUMB_ESYSTEM;
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < profile->spans_count; i++)
		if (on_thread(otlp, i))
			items[count++] = (struct plumb_sort_item){
				plumb_sort_signed(profile->spans[i].start_ns), i
			};
	plumb_sort(items, spare, count);
	for (uint32_t i = 0; i < count; i++)
		items[i].key = (uint64_t)profile->spans[items[i].index].context << 32 |
		               process_of(otlp, items[i].index);
	plumb_sort(items, spare, count);
	otlp->around_count = count;
	free(spare);
	/* Contexts are in preorder: a parent stands before its children. */
	for (uint32_t i = 0; i < count; i++)
		otlp->above[profile->spans[items[i].index].context] = 0;
	for (uint32_t c = 0; c < profile->contexts_count; c++) {
		bool has = otlp->above[c] != PLUMB_NONE;
		uint32_t parent = profile->contexts[c].parent;
		uint32_t above = parent == PLUMB_NONE ? PLUMB_NONE : otlp->above[parent];
		/* Its own number where it has spans, until all below it have asked. */
		otlp->above[c] = has ? c : above;
	}
	return 0;
}

/* The newest span of CONTEXT that was open when SPAN began and ends no earlier; else PLUMB_NONE. */
static uint32_t
find_around(const struct plumb_otlp *otlp, uint32_t context, uint32_t span)
{
	const struct plumb_span *spans = otlp->profile->spans, *own = &spans[span];
	uint64_t key = (uint64_t)context << 32 | process_of(otlp, span);
	const struct plumb_sort_item *items = otlp->around;
	uint32_t low = plumb_search(
		i, otlp->around_count,
		items[i].key < key ||
			(items[i].key == key && spans[items[i].index].start_ns <= own->start_ns));
	if (!low || items[low - 1].key != key)
		return PLUMB_NONE;
	uint32_t found = items[low - 1].index;
	return found != span && spans[found].end_ns >= own->end_ns ? found : PLUMB_NONE;
}

static void
look_above(struct plumb_otlp *otlp, uint32_t span)
{
	const struct plumb_profile *profile = otlp->profile;
	uint32_t context = profile->contexts[profile->spans[span].context].parent;
	for (int i = 0; i < STEPS_MOST && context != PLUMB_NONE; i++) {
		context = otlp->above[context];
		if (context == PLUMB_NONE)
			break;
		otlp->parents[span] = find_around(otlp, context, span);
		if (otlp->parents[span] != PLUMB_NONE)
			break;
		context = profile->contexts[context].parent;
	}
}

static int
find_parents(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	find_timed(otlp);
	int code = nest_spans(otlp);
	if (!code)
		code = plumb_launches_find(profile, PLUMB_NONE, &otlp->launches);
	if (!code)
		code = order_around(otlp);
	for (uint32_t i = 0; i < profile->spans_count && !code; i++) {
		const struct plumb_span *s = &profile->spans[i];
		if (s->correlation && !on_thread(otlp, i))
			otlp->parents[i] = otlp->calls[i] = plumb_launch_before(
				&otlp->launches, process_of(otlp, i), s->correlation, s->start_ns);
		if (otlp->parents[i] == PLUMB_NONE)
			look_above(otlp, i);
	}
	return code;
}

/* From the process's start to its end, and around all of its spans. */
static void
find_roots(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	for (uint32_t i = 0; i < profile->processes_count; i++)
		otlp->roots[i] = (struct root){ PLUMB_NONE, profile->processes[i].start_ns,
			                        profile->processes[i].end_ns };
	for (uint32_t i = 0; i < profile->spans_count; i++) {
		const struct plumb_span *s = &profile->spans[i];
		uint32_t process = process_of(otlp, i);
		if (process >= profile->processes_count)
			continue;
		struct root *root = &otlp->roots[process];
		if (root->first == PLUMB_NONE)
			root->first = i;
		if (root->start_ns == PLUMB_UNKNOWN || root->start_ns > s->start_ns)
			root->start_ns = s->start_ns;
		if (root->end_ns == PLUMB_UNKNOWN || root->end_ns < s->end_ns)
			root->end_ns = s->end_ns;
	}
}

/* ---- attributes ---- */

static void
put_text(struct plumb_json *json, const char *key, const char *text)
{
	if (!text)
		return;
	plumb_json_object(json);
	plumb_json_key_text(json, "key", key);
	plumb_json_key(json, "value");
	plumb_json_object(json);
	plumb_json_key_text(json, "stringValue", text);
	plumb_json_end(json);
	plumb_json_end(json);
}

static void
put_number_value(struct plumb_json *json, int64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, number);
	plumb_json_object(json);
	plumb_json_key_text(json, "intValue", text);
	plumb_json_end(json);
}

static void
put_number(struct plumb_json *json, const char *key, int64_t number)
{
	if (number == PLUMB_UNKNOWN)
		return;
	plumb_json_object(json);
	plumb_json_key_text(json, "key", key);
	plumb_json_key(json, "value");
	put_number_value(json, number);
	plumb_json_end(json);
}

static void
put_three(struct plumb_json *json, const char *key, const int64_t three[3])
{
	if (three[0] == PLUMB_UNKNOWN || three[1] == PLUMB_UNKNOWN || three[2] == PLUMB_UNKNOWN)
		return;
	plumb_json_object(json);
	plumb_json_key_text(json, "key", key);
	plumb_json_key(json, "value");
	plumb_json_object(json);
	plumb_json_key(json, "arrayValue");
	plumb_json_object(json);
	plumb_json_key(json, "values");
	plumb_json_array(json);
	for (int i = 0; i < 3; i++)
		put_number_value(json, three[i]);
	plumb_json_end(json);
	plumb_json_end(json);
	plumb_json_end(json);
	plumb_json_end(json);
}

/* Spans are in the order of tracks. */
static void
find_firsts(struct plumb_otlp *otlp)
{
	const struct plumb_profile *profile = otlp->profile;
	uint32_t *track = otlp->above; /* done with */
	memset(track, 0xff, profile->contexts_count * sizeof *track);
	for (uint32_t i = 0; i < profile->spans_count; i++) {
		const struct plumb_span *s = &profile->spans[i];
		otlp->firsts[i] = track[s->context] != s->track;
		track[s->context] = s->track;
	}
}

static int64_t
deviation_of(const struct plumb_value *v)
{
	struct plumb_stat stat = plumb_value_stat(v);
	double result = plumb_stat_deviation(&stat);
	return result >= 0 && result < 1e15 ? (int64_t)(result + 0.5) : PLUMB_UNKNOWN;
}

/* The bytes of a copy, if they are known or those of its context and track are the same; else the
 * first says those of all. */
static void
put_bytes(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t index)
{
	const struct plumb_profile *profile = otlp->profile;
	const struct plumb_span *span = &profile->spans[index];
	const struct plumb_value *v =
		plumb_export_value(profile, span, PLUMB_METRIC_GPU_COPY_BYTES);
	if (span->bytes && span->bytes <= INT64_MAX) {
		put_number(json, "gpu.copy.bytes", (int64_t)span->bytes);
	} else if (plumb_export_is_even(v)) {
		put_number(json, "gpu.copy.bytes", v->min);
	} else if (v && otlp->firsts[index]) {
		put_number(json, "gpu.copies.bytes", v->sum);
		put_number(json, "gpu.copies.count", (int64_t)v->count);
		put_number(json, "gpu.copies.bytes.least", v->min);
		put_number(json, "gpu.copies.bytes.most", v->max);
		put_number(json, "gpu.copies.bytes.deviation", deviation_of(v));
	}
}

static void
put_work(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t index, uint32_t kind)
{
	const struct plumb_profile *profile = otlp->profile;
	const struct plumb_span *span = &profile->spans[index];
	const struct plumb_track *track = &profile->tracks[span->track];
	if (track->device < profile->devices_count) {
		const struct plumb_device *device = &profile->devices[track->device];
		put_number(json, "gpu.device.ordinal", device->ordinal);
		put_text(json, "gpu.device.uuid", plumb_text(profile, device->uuid));
		put_text(json, "gpu.device.name", plumb_text(profile, device->name));
	}
	put_number(json, "gpu.context", track->gpu_context);
	put_number(json, "gpu.stream", track->stream);
	if (kind != PLUMB_FRAME_KERNEL)
		put_bytes(otlp, json, index);
	if (otlp->variants[span->context] == PLUMB_NONE)
		return;
	const struct plumb_variant *v = &profile->variants[otlp->variants[span->context]];
	put_three(json, "gpu.kernel.grid", v->grid);
	put_three(json, "gpu.kernel.block", v->block);
	put_number(json, "gpu.kernel.registers", v->registers);
	put_number(json, "gpu.kernel.shared.static", v->static_shared);
	put_number(json, "gpu.kernel.shared.dynamic", v->dynamic_shared);
	put_number(json, "gpu.kernel.occupancy", v->occupancy);
}

/* The nearest line of Python. */
static void
put_line(const struct plumb_profile *profile, struct plumb_json *json, uint32_t context)
{
	for (; context != PLUMB_NONE; context = profile->contexts[context].parent) {
		const struct plumb_frame *frame = plumb_context_frame(profile, context);
		if (frame->kind != PLUMB_FRAME_PYTHON)
			continue;
		put_text(json, "code.function.name", plumb_text(profile, frame->name));
		put_text(json, "code.file.path", plumb_text(profile, frame->file));
		put_number(json, "code.line.number",
		           frame->line ? (int64_t)frame->line : PLUMB_UNKNOWN);
		return;
	}
}

static void
put_attributes(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t index)
{
	const struct plumb_profile *profile = otlp->profile;
	const struct plumb_span *span = &profile->spans[index];
	const struct plumb_track *track = &profile->tracks[span->track];
	const struct plumb_frame *frame = plumb_context_frame(profile, span->context);
	uint32_t flags = profile->contexts[span->context].flags;
	plumb_json_key(json, "attributes");
	plumb_json_array(json);
	put_text(json, "plumb.kind", plumb_frame_kind_names[frame->kind]);
	if (frame->kind == PLUMB_FRAME_MODULE) {
		put_text(json, "plumb.module.class", plumb_text(profile, frame->file));
		put_number(json, "plumb.module.number",
		           frame->line ? (int64_t)frame->line : PLUMB_UNKNOWN);
		put_number(json, "plumb.module.timed",
		           otlp->timed[span->context] ? 1 : PLUMB_UNKNOWN);
	}
	if (flags & PLUMB_CONTEXT_BACKWARD)
		put_text(json, "plumb.pass", "backward");
	if (track->kind == PLUMB_TRACK_THREAD) {
		put_number(json, "thread.id", track->tid);
		put_text(json, "thread.name", plumb_text(profile, track->name));
	} else {
		put_work(otlp, json, index, frame->kind);
	}
	if (span->correlation && span->correlation <= INT64_MAX)
		put_number(json, "gpu.correlation", (int64_t)span->correlation);
	put_line(profile, json, span->context);
	plumb_json_end(json);
}

/* ---- spans ---- */

static int64_t
time_of(const struct plumb_otlp *otlp, uint32_t span, int64_t time)
{
	int64_t real = plumb_realtime(otlp->profile, process_of(otlp, span), time);
	return real == PLUMB_UNKNOWN ? time
	                             : real; /* an import's are of day already, or nobody knows */
}

static void
put_time(struct plumb_json *json, const char *key, int64_t time)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, time);
	plumb_json_key_text(json, key, text);
}

static void
put_span(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t index)
{
	const struct plumb_profile *profile = otlp->profile;
	const struct plumb_span *span = &profile->spans[index];
	const char *name = plumb_text(profile, plumb_context_frame(profile, span->context)->name);
	plumb_json_object(json);
	put_trace_id(otlp, json);
	put_span_id(json, "spanId", index);
	if (otlp->parents[index] != PLUMB_NONE)
		put_span_id(json, "parentSpanId", otlp->parents[index]);
	else if (process_of(otlp, index) < profile->processes_count)
		put_root_id(json, "parentSpanId", process_of(otlp, index));
	plumb_json_key_text(json, "name", name ? name : "?");
	plumb_json_key(json, "kind");
	plumb_json_integer(json, 1); /* internal */
	put_time(json, "startTimeUnixNano", time_of(otlp, index, span->start_ns));
	put_time(json, "endTimeUnixNano", time_of(otlp, index, span->end_ns));
	put_attributes(otlp, json, index);
	if (otlp->calls[index] != PLUMB_NONE) {
		plumb_json_key(json, "links");
		plumb_json_array(json);
		plumb_json_object(json);
		put_trace_id(otlp, json);
		put_span_id(json, "spanId", otlp->calls[index]);
		plumb_json_end(json);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* The program's own name: the first word's last part. */
static const char *
program_name(const struct plumb_profile *profile, uint32_t process, char *name, size_t size)
{
	const char *command = process < profile->processes_count
	                              ? plumb_text(profile, profile->processes[process].command)
	                              : NULL;
	snprintf(name, size, "%.*s", command ? (int)strcspn(command, " ") : 15,
	         command ? command : "unknown_service");
	return plumb_export_base(name);
}

static void
put_root(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t process)
{
	const struct root *root = &otlp->roots[process];
	char name[256];
	plumb_json_object(json);
	put_trace_id(otlp, json);
	put_root_id(json, "spanId", process);
	plumb_json_key_text(json, "name", program_name(otlp->profile, process, name, sizeof name));
	plumb_json_key(json, "kind");
	plumb_json_integer(json, 1); /* internal */
	int64_t start = time_of(otlp, root->first, root->start_ns);
	put_time(json, "startTimeUnixNano",
	         start < 0 ? 0 : start); /* OTLP has no times before 1970 */
	put_time(json, "endTimeUnixNano", time_of(otlp, root->first, root->end_ns));
	plumb_json_key(json, "attributes");
	plumb_json_array(json);
	put_text(json, "plumb.kind", "process");
	plumb_json_end(json);
	plumb_json_end(json);
}

static void
put_resource(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t process)
{
	const struct plumb_profile *profile = otlp->profile;
	const struct plumb_process *own =
		process < profile->processes_count ? &profile->processes[process] : NULL;
	const char *command = own ? plumb_text(profile, own->command) : NULL;
	char name[256];
	plumb_json_key(json, "resource");
	plumb_json_object(json);
	plumb_json_key(json, "attributes");
	plumb_json_array(json);
	put_text(json, "service.name", program_name(profile, process, name, sizeof name));
	if (own) {
		put_text(json, "process.command_line", command);
		put_number(json, "process.pid", own->pid);
		put_text(json, "host.name", plumb_text(profile, own->host));
		put_number(json, "plumb.rank", own->rank);
	}
	plumb_json_end(json);
	plumb_json_end(json);
}

static void
begin_process(const struct plumb_otlp *otlp, struct plumb_json *json, uint32_t process)
{
	plumb_json_object(json);
	put_resource(otlp, json, process);
	plumb_json_key(json, "scopeSpans");
	plumb_json_array(json);
	plumb_json_object(json);
	plumb_json_key(json, "scope");
	plumb_json_object(json);
	plumb_json_key_text(json, "name", "plumb");
	plumb_json_key_text(json, "version", PLUMB_VERSION);
	plumb_json_end(json);
	plumb_json_key(json, "spans");
	plumb_json_array(json);
}

static void
end_process(struct plumb_json *json)
{
	for (int i = 0; i < 4; i++)
		plumb_json_end(json);
}

/* ---- the whole ---- */

int
plumb_otlp_write(const struct plumb_otlp *otlp, uint32_t from, uint32_t count, FILE *out)
{
	uint32_t end = otlp->profile->spans_count;
	struct plumb_json *json = plumb_json_new(out);
	if (!json)
		return PLUMB_ESYSTEM;
	if (end - from > count)
		end = from + count;
	plumb_json_object(json);
	plumb_json_key(json, "resourceSpans");
	plumb_json_array(json);
	for (uint32_t i = from; i < end && !ferror(out); i++) {
		bool fresh = i == from || process_of(otlp, i) != process_of(otlp, i - 1);
		if (fresh && i != from)
			end_process(json);
		if (fresh)
			begin_process(otlp, json, process_of(otlp, i));
		uint32_t process = process_of(otlp, i);
		if (process < otlp->profile->processes_count && otlp->roots[process].first == i)
			put_root(otlp, json, process);
		put_span(otlp, json, i);
	}
	if (end > from)
		end_process(json);
	plumb_json_end(json);
	plumb_json_end(json);
	return plumb_json_finish(json) < 0 ? PLUMB_ESYSTEM : 0;
}

void
plumb_otlp_free(struct plumb_otlp *otlp)
{
	if (!otlp)
		return;
	free(otlp->parents);
	free(otlp->calls);
	free(otlp->variants);
	free(otlp->timed);
	free(otlp->above);
	free(otlp->around);
	free(otlp->firsts);
	free(otlp->roots);
	plumb_vec_free(&otlp->launches);
	free(otlp);
}

/* An array of COUNT times PLUMB_NONE; NULL: no memory. */
static uint32_t *
alloc_unset(uint32_t count)
{
	uint32_t *made = malloc(((size_t)count + 1) * sizeof *made);
	if (made)
		memset(made, 0xff, ((size_t)count + 1) * sizeof *made);
	return made;
}

struct plumb_otlp *
plumb_otlp_new(const struct plumb_profile *profile, struct plumb_error *error)
{
	if (!profile->spans_count) {
		plumb_fail(error, PLUMB_EEMPTY,
		           "this profile has only totals, no spans; record with plumb run --trace");
		return NULL;
	}
	struct plumb_otlp *otlp = calloc(1, sizeof *otlp);
	if (otlp) {
		otlp->profile = profile;
		otlp->parents = alloc_unset(profile->spans_count);
		otlp->calls = alloc_unset(profile->spans_count);
		otlp->variants = plumb_export_launches(profile);
		otlp->above = alloc_unset(profile->contexts_count);
		otlp->firsts = calloc((size_t)profile->spans_count + 1, sizeof *otlp->firsts);
		otlp->roots = calloc((size_t)profile->processes_count + 1, sizeof *otlp->roots);
		otlp->timed = calloc((size_t)profile->contexts_count + 1, sizeof *otlp->timed);
	}
	if (!otlp || !otlp->parents || !otlp->calls || !otlp->variants || !otlp->above ||
	    !otlp->timed || !otlp->firsts || !otlp->roots || find_parents(otlp) < 0) {
		plumb_otlp_free(otlp);
		plumb_fail_memory(error, "to export the profile");
		return NULL;
	}
	for (uint32_t i = 0; i < profile->spans_count; i++)
		if (time_of(otlp, i, profile->spans[i].start_ns) < 0) {
			plumb_otlp_free(otlp);
			plumb_fail(error, PLUMB_EINPUT,
			           "a span begins before 1970, and OTLP cannot store that time");
			return NULL;
		}
	make_trace_id(otlp);
	find_firsts(otlp);
	find_roots(otlp);
	return otlp;
}

static int
otlp_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
           FILE *out, struct plumb_error *error)
{
	(void)options;
	struct plumb_otlp *otlp = plumb_otlp_new(profile, error);
	if (!otlp)
		return error ? error->code : PLUMB_ESYSTEM;
	int code = plumb_otlp_write(otlp, 0, profile->spans_count, out);
	plumb_otlp_free(otlp);
	if (code && !ferror(out)) /* a failed write is the caller's to see */
		return plumb_fail_memory(error, "to export the profile");
	return 0;
}

const struct plumb_export_format plumb_export_otlp = {
	.name = "otlp",
	.write = otlp_write,
};
