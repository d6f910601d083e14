/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the GPU and pageable memory, by line and direction.
 *
 * To the device the host is held up (host.wait) while the driver takes the bytes through memory of
 * its own; from pinned memory, and non_blocking, it would not wait at all: the wait bounds the
 * saving. From the device most of the wait is for the work before the copy, which pinning does not
 * shorten: there the bound is the copy's own time, less what the same bytes take at the bandwidth
 * that this profile shows for pinned copies.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/hotspot.h"
#include "base/format.h"
#include "base/vec.h"
#include "model/framework/framework.h"

struct group {
	uint32_t user, frame; /* the line; the copy's frame, which names the kinds of memory */
	uint32_t context;     /* with the most time */
	bool to_device;
	uint64_t count;
	int64_t time, bytes, wait;
};

struct pageable {
	struct plumb_study *study;
	struct plumb_stat *time, *bytes, *wait; /* by context, exclusive */
	double pinned
		[2]; /* bytes per ns between pinned memory and the device: from it, to it; or 0 */
	PLUMB_VEC(struct group) groups;
};

/* Is it a copy between KIND of host memory and the device? */
static bool
is_copy(struct plumb_transfer transfer, enum plumb_memory_kind kind)
{
	return (transfer.from == kind && transfer.to == PLUMB_MEMORY_DEVICE) ||
	       (transfer.from == PLUMB_MEMORY_DEVICE && transfer.to == kind);
}

/* Parameters that a model moves to the GPU once: what the person copies each step is elsewhere. */
static bool
moves_module(const struct plumb_profile *p, uint32_t context)
{
	for (; context; context = p->contexts[context].parent)
		if (plumb_framework_place(p, p->contexts[context].frame, NULL) ==
		    PLUMB_PURPOSE_PARAMETERS)
			return true;
	return false;
}

static int
by_place(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	if (a->user != b->user)
		return a->user < b->user ? -1 : 1;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return a->context < b->context ? -1 : a->context > b->context;
}

static bool
collect_copies(struct pageable *s)
{
	const struct plumb_profile *p = s->study->profile;
	int64_t pinned_ns[2] = { 0 }, pinned_bytes[2] = { 0 };

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);
		bool to_device = frame->transfer.to == PLUMB_MEMORY_DEVICE;
		struct group *group;

		if (frame->kind != PLUMB_FRAME_COPY || !s->time[c].count)
			continue;
		if (is_copy(frame->transfer, PLUMB_MEMORY_PINNED)) {
			pinned_ns[to_device] = plumb_add(pinned_ns[to_device], s->time[c].sum);
			pinned_bytes[to_device] =
				plumb_add(pinned_bytes[to_device], s->bytes[c].sum);
		}
		if (!is_copy(frame->transfer, PLUMB_MEMORY_PAGEABLE) || moves_module(p, c))
			continue;
		group = plumb_vec_add(&s->groups);
		if (!group)
			return false;
		*group = (struct group){ s->study->user_of[c],
			                 p->contexts[c].frame,
			                 c,
			                 to_device,
			                 s->time[c].count,
			                 s->time[c].sum,
			                 s->bytes[c].sum,
			                 s->wait[c].sum };
	}
	for (int way = 0; way < 2; way++)
		if (pinned_ns[way] > 0 && pinned_bytes[way] > 0)
			s->pinned[way] = (double)pinned_bytes[way] / (double)pinned_ns[way];
	return true;
}

/* Puts the groups of one line and direction together. */
static void
join_groups(struct pageable *s)
{
	uint32_t kept = 0;

	if (s->groups.count)
		qsort(s->groups.items, s->groups.count, sizeof *s->groups.items, by_place);
	for (uint32_t i = 0; i < s->groups.count; i++) {
		struct group *from = &s->groups.items[i];
		struct group *to = kept ? &s->groups.items[kept - 1] : NULL;

		if (!to || to->user != from->user || to->frame != from->frame) {
			s->groups.items[kept++] = *from;
			continue;
		}
		if (from->time > s->time[to->context].sum)
			to->context = from->context;
		to->count += from->count;
		to->time = plumb_add(to->time, from->time);
		to->bytes = plumb_add(to->bytes, from->bytes);
		to->wait = plumb_add(to->wait, from->wait);
	}
	s->groups.count = kept;
}

/* The copy's time less what it would be at pinned memory's bandwidth; all of it where that is
 * unknown. */
static int64_t
slower_by(const struct pageable *s, const struct group *g)
{
	double rest = 0;

	if (s->pinned[g->to_device] > 0)
		rest = (double)g->bytes / s->pinned[g->to_device];
	return rest < (double)g->time ? g->time - (int64_t)rest : 0;
}

static void
put_rate(struct plumb_json *json, const char *key, double bytes_per_ns)
{
	plumb_json_key(json, key);
	if (bytes_per_ns > 0)
		plumb_json_number(json, bytes_per_ns);
	else
		plumb_json_null(json);
}

/* The copies, and the calls that make them. */
static void
tell_group(const struct plumb_study *study, const struct group *g, struct plumb_draft *draft)
{
	const struct plumb_profile *p = study->profile;
	unsigned char *about = plumb_draft_about(study, draft);

	for (uint32_t c = 1; about && c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;

		if (p->contexts[c].frame != g->frame || study->user_of[c] != g->user)
			continue;
		about[c] = 1;
		if (plumb_context_frame(p, parent)->kind == PLUMB_FRAME_GPU_API)
			about[parent] = 1;
	}
}

static int
draft_group(struct pageable *s, const struct group *g, int64_t cost)
{
	char where[420], bytes[PLUMB_FORMAT_SIZE], count[PLUMB_FORMAT_SIZE],
		time[PLUMB_FORMAT_SIZE];
	const char *name = plumb_text(s->study->profile, s->study->profile->frames[g->frame].name);
	const char *who = g->user == PLUMB_NONE ? "the program" : where;
	struct plumb_draft draft;

	plumb_study_line(s->study, g->user, where, sizeof where);
	plumb_draft_begin(&draft, "pageable", g->context);
	plumb_draft_key(&draft, "%s %s", where, name);
	plumb_study_line_at(s->study, g->user, g->context, where, sizeof where);
	plumb_format_bytes(bytes, g->bytes);
	plumb_format_count(count, (int64_t)g->count);
	if (g->to_device) {
		plumb_draft_title(
			&draft, "%s copies %s from pageable memory to the GPU in %s copies; %s %s",
			who, bytes, count, g->wait > 0 ? "the host waits" : "they take",
			plumb_format_time(time, g->wait > 0 ? g->wait : g->time));
		plumb_draft_advice(
			&draft, "Copy from pinned memory without waiting: pin_memory=True in the "
				"DataLoader (or tensor.pin_memory() once), and .to(device, "
				"non_blocking=True).");
	} else {
		plumb_draft_title(
			&draft,
			"%s copies %s from the GPU to pageable memory in %s copies, which take %s "
			"on the GPU",
			who, bytes, count, plumb_format_time(time, g->time));
		plumb_draft_advice(
			&draft, "Copy with non_blocking=True into a pinned tensor that you keep "
				"(torch.empty(…, pin_memory=True)), and wait for an event before "
				"you read it. Or copy less, or later.");
	}
	plumb_json_key_text(draft.evidence, "direction", name + strlen("copy "));
	plumb_json_key_quantity(draft.evidence, "bytes", g->bytes);
	plumb_json_key(draft.evidence, "count");
	plumb_json_unsigned(draft.evidence, g->count);
	plumb_json_key_quantity(draft.evidence, "copy_time_ns", g->time);
	plumb_json_key_quantity(draft.evidence, "host_wait_ns",
	                        g->wait > 0 ? g->wait : PLUMB_UNKNOWN);
	put_rate(draft.evidence, "gb_per_s", g->time > 0 ? (double)g->bytes / (double)g->time : 0);
	put_rate(draft.evidence, "pinned_gb_per_s", s->pinned[g->to_device]);
	plumb_json_key_quantity(draft.evidence, "slower_than_pinned_ns",
	                        s->pinned[g->to_device] > 0 ? slower_by(s, g) : PLUMB_UNKNOWN);
	plumb_study_line_json(s->study, draft.evidence, g->user);
	tell_group(s->study, g, &draft);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = cost;
	draft.confidence = g->count >= 3 ? 0.8 : 0.2; /* once or twice is setting up */
	return plumb_draft_end(s->study, &draft);
}

static int
draft_groups(struct pageable *s)
{
	double least = plumb_study_threshold(s->study, "hotspot.pageable_share") *
	               (double)s->study->scale_ns;
	double size = plumb_study_threshold(s->study, "hotspot.pageable_bytes");
	int code = 0;

	for (uint32_t i = 0; !code && i < s->groups.count; i++) {
		const struct group *g = &s->groups.items[i];
		int64_t cost = slower_by(s, g);

		if (g->to_device)
			cost = g->wait > 0 ? g->wait : g->time;
		if (cost > 0 && (double)cost >= least &&
		    (double)g->bytes >= size * (double)g->count)
			code = draft_group(s, g, cost);
	}
	return code;
}

int
plumb_hotspot_pageable(struct plumb_study *study)
{
	const struct plumb_profile *p = study->profile;
	struct pageable s = { .study = study };
	int code = PLUMB_ESYSTEM;

	s.time = calloc(p->contexts_count + 1u, sizeof *s.time);
	s.bytes = calloc(p->contexts_count + 1u, sizeof *s.bytes);
	s.wait = calloc(p->contexts_count + 1u, sizeof *s.wait);
	if (s.time && s.bytes && s.wait) {
		plumb_study_load(p, PLUMB_METRIC_GPU_COPY_TIME, s.time);
		plumb_study_load(p, PLUMB_METRIC_GPU_COPY_BYTES, s.bytes);
		plumb_study_load(p, PLUMB_METRIC_HOST_WAIT, s.wait);
		code = collect_copies(&s) ? 0 : PLUMB_ESYSTEM;
	}
	if (!code) {
		join_groups(&s);
		code = draft_groups(&s);
	}
	plumb_vec_free(&s.groups);
	free(s.time);
	free(s.bytes);
	free(s.wait);
	return code;
}
