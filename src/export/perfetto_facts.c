/* SPDX-License-Identifier: Apache-2.0 */
#include "export/perfetto_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/perfetto.h"
#include "export/timeline.h"
#include "export/work.h"

/* Ranges that were started, which may cross what runs meanwhile: their durations are nobody's own
 * time. */
static void
find_started(struct plumb_perfetto_facts *facts)
{
	const struct plumb_profile *profile = facts->profile;

	for (uint32_t c = 0; c < profile->contexts_count; c++)
		facts->started[c] =
			profile->frames[profile->contexts[c].frame].kind == PLUMB_FRAME_RANGE;
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (profile->values[i].metric == PLUMB_METRIC_OP_TIME)
			facts->started[profile->values[i].context] = false;
}

bool
plumb_perfetto_facts_init(struct plumb_perfetto_facts *facts, const struct plumb_profile *profile,
                          uint64_t names)
{
	size_t contexts = (size_t)profile->contexts_count + 1, deepest = 0;

	for (uint32_t c = 0; c < profile->contexts_count; c++)
		if (profile->contexts[c].depth > deepest)
			deepest = profile->contexts[c].depth;
	*facts = (struct plumb_perfetto_facts){ .profile = profile, .names = names };
	facts->started = calloc(contexts, sizeof *facts->started);
	facts->launches = plumb_export_launches(profile);
	facts->drawn = calloc(contexts, sizeof *facts->drawn);
	facts->frames = calloc((size_t)profile->frames_count / 8 + 1, 1);
	facts->made = calloc(contexts / 8 + 1, 1);
	facts->path = malloc((deepest + 1) * sizeof *facts->path);
	if (!facts->started || !facts->launches || !facts->drawn || !facts->frames ||
	    !facts->made || !facts->path)
		return false;
	facts->made[0] = 1; /* the root is 0 everywhere */
	find_started(facts);
	return true;
}

void
plumb_perfetto_facts_free(struct plumb_perfetto_facts *facts)
{
	free(facts->started);
	free(facts->launches);
	free(facts->drawn);
	free(facts->frames);
	free(facts->made);
	free(facts->path);
}

void
plumb_perfetto_facts_track(struct plumb_perfetto_facts *facts, const struct plumb_span *spans,
                           uint32_t count)
{
	memset(facts->drawn, 0, (size_t)facts->profile->contexts_count * sizeof *facts->drawn);
	for (uint32_t i = 0; i < count && spans[i].track == spans[0].track; i++)
		facts->drawn[spans[i].context] +=
			!spans[i].bytes; /* of slices that are drawn: none */
}

/* ---- one fact ---- */

static void
begin_fact(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, enum plumb_fact fact)
{
	plumb_protobuf_begin(m, fact ? ANNOTATION_ENTRIES : EVENT_ANNOTATION);
	plumb_protobuf_number(m, ANNOTATION_NAME_NUMBER, facts->names + fact);
}

static void
put_number(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, enum plumb_fact fact,
           int64_t number)
{
	if (number == PLUMB_UNKNOWN)
		return;
	begin_fact(facts, m, fact);
	plumb_protobuf_number(m, number < 0 ? ANNOTATION_SIGNED : ANNOTATION_UNSIGNED,
	                      (uint64_t)number);
	plumb_protobuf_end(m);
}

static void
put_word(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, enum plumb_fact fact,
         const char *word)
{
	begin_fact(facts, m, fact);
	plumb_protobuf_text(m, ANNOTATION_STRING, word);
	plumb_protobuf_end(m);
}

static void
put_text(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, enum plumb_fact fact,
         uint32_t string)
{
	if (plumb_text(facts->profile, string))
		put_word(facts, m, fact, plumb_text(facts->profile, string));
}

static void
put_three(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, enum plumb_fact fact,
          const int64_t three[3])
{
	if (three[0] < 0 || three[1] < 0 || three[2] < 0)
		return;
	begin_fact(facts, m, fact);
	for (int i = 0; i < 3; i++) {
		plumb_protobuf_begin(m, ANNOTATION_VALUES);
		plumb_protobuf_number(m, ANNOTATION_UNSIGNED, (uint64_t)three[i]);
		plumb_protobuf_end(m);
	}
	plumb_protobuf_end(m);
}

/* ---- what is described once ---- */

static bool
is_new(const unsigned char *bits, uint32_t number)
{
	return !(bits[number / 8] >> number % 8 & 1);
}

static void
put_frame(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, uint32_t frame)
{
	const struct plumb_frame *f = &facts->profile->frames[frame];

	plumb_protobuf_begin(m, ANNOTATION_VALUES);
	put_number(facts, m, PLUMB_FACT_FRAME, frame);
	put_word(facts, m, PLUMB_FACT_KIND, plumb_frame_kind_names[f->kind]);
	put_text(facts, m, PLUMB_FACT_NAME, f->name);
	put_text(facts, m, PLUMB_FACT_FILE, f->file);
	if (f->line)
		put_number(facts, m, PLUMB_FACT_LINE, f->line);
	if (f->display != f->name)
		put_text(facts, m, PLUMB_FACT_DISPLAY, f->display);
	put_text(facts, m, PLUMB_FACT_SOURCE, f->source_file);
	if (f->source_line)
		put_number(facts, m, PLUMB_FACT_SOURCE_LINE, f->source_line);
	plumb_protobuf_end(m);
}

static void
put_context(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, uint32_t context)
{
	const struct plumb_context *c = &facts->profile->contexts[context];
	uint32_t launch = facts->launches[context];

	plumb_protobuf_begin(m, ANNOTATION_VALUES);
	put_number(facts, m, PLUMB_FACT_CONTEXT, context);
	put_number(facts, m, PLUMB_FACT_PARENT, c->parent);
	put_number(facts, m, PLUMB_FACT_FRAME, c->frame);
	if (c->flags)
		put_number(facts, m, PLUMB_FACT_FLAGS, c->flags);
	if (facts->started[context])
		put_number(facts, m, PLUMB_FACT_APART, 1);
	if (launch != PLUMB_NONE) {
		const struct plumb_variant *v = &facts->profile->variants[launch];
		put_three(facts, m, PLUMB_FACT_GRID, v->grid);
		put_three(facts, m, PLUMB_FACT_BLOCK, v->block);
		put_number(facts, m, PLUMB_FACT_REGISTERS, v->registers);
		put_number(facts, m, PLUMB_FACT_STATIC_SHARED, v->static_shared);
		put_number(facts, m, PLUMB_FACT_DYNAMIC_SHARED, v->dynamic_shared);
		put_number(facts, m, PLUMB_FACT_OCCUPANCY, v->occupancy);
	}
	plumb_protobuf_end(m);
}

/* CONTEXT and those above it, as far as they were not yet: frames first, outer ones before inner
 * ones. */
static void
put_path(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, uint32_t context)
{
	const struct plumb_context *contexts = facts->profile->contexts;
	uint32_t count = 0;
	bool frames = false;

	for (uint32_t c = context; is_new(facts->made, c); c = contexts[c].parent)
		facts->path[count++] = c;
	for (uint32_t i = count; i-- > 0;) {
		uint32_t frame = contexts[facts->path[i]].frame;
		if (!is_new(facts->frames, frame))
			continue;
		if (!frames)
			begin_fact(facts, m, PLUMB_FACT_FRAMES);
		frames = true;
		facts->frames[frame / 8] |= (unsigned char)(1u << frame % 8);
		put_frame(facts, m, frame);
	}
	if (frames)
		plumb_protobuf_end(m);
	if (count)
		begin_fact(facts, m, PLUMB_FACT_CONTEXTS);
	for (uint32_t i = count; i-- > 0;) {
		uint32_t c = facts->path[i];
		facts->made[c / 8] |= (unsigned char)(1u << c % 8);
		put_context(facts, m, c);
	}
	if (count)
		plumb_protobuf_end(m);
}

static void
put_track(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m, uint32_t track)
{
	const struct plumb_profile *profile = facts->profile;
	const struct plumb_track *t = &profile->tracks[track];

	begin_fact(facts, m, PLUMB_FACT_TRACK);
	put_number(facts, m, PLUMB_FACT_INDEX, track);
	put_word(facts, m, PLUMB_FACT_KIND, t->kind == PLUMB_TRACK_THREAD ? "thread" : "stream");
	if (t->process < profile->processes_count) {
		const struct plumb_process *process = &profile->processes[t->process];
		put_number(facts, m, PLUMB_FACT_PID, process->pid);
		put_number(facts, m, PLUMB_FACT_RANK, process->rank);
		put_text(facts, m, PLUMB_FACT_HOST, process->host);
	}
	if (t->kind == PLUMB_TRACK_THREAD) {
		put_number(facts, m, PLUMB_FACT_THREAD, t->tid);
		put_text(facts, m, PLUMB_FACT_NAME, t->name);
	} else {
		put_number(facts, m, PLUMB_FACT_STREAM, t->stream);
		put_number(facts, m, PLUMB_FACT_GPU_CONTEXT, t->gpu_context);
	}
	if (t->device < profile->devices_count) {
		const struct plumb_device *device = &profile->devices[t->device];
		put_number(facts, m, PLUMB_FACT_ORDINAL, device->ordinal);
		put_text(facts, m, PLUMB_FACT_UUID, device->uuid);
		put_text(facts, m, PLUMB_FACT_MODEL, device->name);
	}
	plumb_protobuf_end(m);
}

/* ---- a slice ---- */

/* Where a span does not tell, a profile has the sum of a context's copies on a track. Where they
 * differ, the first says it for all, if all are in the trace. */
static void
put_bytes(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m,
          const struct plumb_span *span)
{
	const struct plumb_value *v =
		plumb_export_value(facts->profile, span, PLUMB_METRIC_GPU_COPY_BYTES);
	uint32_t *drawn = &facts->drawn[span->context];

	if (span->bytes && span->bytes <= INT64_MAX)
		put_number(facts, m, PLUMB_FACT_BYTES, (int64_t)span->bytes);
	else if (plumb_export_is_even(v)) {
		put_number(facts, m, PLUMB_FACT_BYTES, v->min);
	} else if (v && *drawn == v->count) {
		begin_fact(facts, m, PLUMB_FACT_ALL_BYTES);
		put_number(facts, m, PLUMB_FACT_BYTES, v->sum);
		put_number(facts, m, PLUMB_FACT_COPIES, (int64_t)v->count);
		put_number(facts, m, PLUMB_FACT_LEAST, v->min);
		put_number(facts, m, PLUMB_FACT_MOST, v->max);
		begin_fact(facts, m, PLUMB_FACT_SQUARES);
		plumb_protobuf_double(m, ANNOTATION_REAL, v->m2);
		plumb_protobuf_end(m);
		plumb_protobuf_end(m);
	}
	*drawn = 0; /* it was said */
}

void
plumb_perfetto_facts_put(struct plumb_perfetto_facts *facts, struct plumb_protobuf *m,
                         const struct plumb_span *span, bool first)
{
	const struct plumb_frame *frame = plumb_context_frame(facts->profile, span->context);

	begin_fact(facts, m, PLUMB_FACT_PLUMB);
	if (plumb_timeline_drawn(span)) {
		put_number(facts, m, PLUMB_FACT_DRAWN, 1);
		plumb_protobuf_end(m);
		return;
	}
	if (first)
		put_track(facts, m, span->track);
	put_path(facts, m, span->context);
	put_number(facts, m, PLUMB_FACT_CONTEXT, span->context);
	if (span->correlation) {
		begin_fact(facts, m, PLUMB_FACT_CORRELATION);
		plumb_protobuf_number(m, ANNOTATION_UNSIGNED, span->correlation);
		plumb_protobuf_end(m);
	}
	if (frame->kind == PLUMB_FRAME_COPY || frame->kind == PLUMB_FRAME_SET)
		put_bytes(facts, m, span);
	plumb_protobuf_end(m);
}
