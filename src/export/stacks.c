/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stacks.h"

#include <stdlib.h>

#include "export/names.h"
#include "model/order.h"

/* A gap between two samples that is longer than this many of their times is nobody's. */
#define GAP 2

struct item {
	uint32_t context;
	int64_t start_ns, end_ns;
	bool drawn;
};

struct drawing {
	const struct plumb_profile *profile;
	struct plumb_stacks *stacks;
	bool all; /* every frame, not only those that have no times of their own */
	bool *started;
	uint32_t track;
	PLUMB_VEC(struct item) open; /* the innermost last */
	PLUMB_VEC(uint32_t) path;
	bool failed;
};

static bool
is_above(const struct plumb_profile *profile, uint32_t context, uint32_t below)
{
	return context <= below && below <= profile->contexts[context].last;
}

static void
close_last(struct drawing *d)
{
	struct item *item = &d->open.items[--d->open.count];
	struct plumb_span *slice = item->drawn ? plumb_vec_add(&d->stacks->slices) : NULL;

	d->failed |= item->drawn && !slice;
	if (slice)
		*slice = (struct plumb_span){ item->context, d->track, item->start_ns,
			                      item->end_ns,  0,        PLUMB_STACKS_DRAWN };
}

static void
push_open(struct drawing *d, uint32_t context, int64_t start, int64_t end, bool drawn)
{
	struct item *item = plumb_vec_add(&d->open);

	d->failed |= !item;
	if (item)
		*item = (struct item){ context, start, end, drawn };
}

/* What has ended by NOW, and frames that CONTEXT is not under. */
static void
close_others(struct drawing *d, uint32_t context, int64_t now)
{
	for (uint32_t i = 0; i < d->open.count; i++)
		if (!d->open.items[i].drawn && d->open.items[i].end_ns <= now)
			while (d->open.count > i)
				close_last(d);
	while (d->open.count && d->open.items[d->open.count - 1].drawn &&
	       !is_above(d->profile, d->open.items[d->open.count - 1].context, context))
		close_last(d);
}

static bool
is_drawn(const struct drawing *d, uint32_t context)
{
	uint32_t kind = plumb_context_frame(d->profile, context)->kind;

	if (plumb_export_folds(d->profile, context))
		return false;
	return d->all || kind == PLUMB_FRAME_PYTHON || kind == PLUMB_FRAME_MODULE;
}

/* Opens the frames from the innermost that is open down to CONTEXT; LAST: that one, too. */
static void
open_path(struct drawing *d, uint32_t context, int64_t start, int64_t end, bool last)
{
	uint32_t top = d->open.count ? d->open.items[d->open.count - 1].context : 0;

	if (!is_above(d->profile, top, context))
		return;
	d->path.count = 0;
	for (uint32_t c = context; c != top && c; c = d->profile->contexts[c].parent) {
		uint32_t *step =
			(c != context || last) && is_drawn(d, c) ? plumb_vec_add(&d->path) : NULL;
		if (step)
			*step = c;
	}
	for (uint32_t i = d->path.count; i-- > 0;)
		push_open(d, d->path.items[i], start, end, true);
}

/* What is drawn encloses all that is recorded while it is open. */
static void
extend_drawn(struct drawing *d, int64_t end)
{
	for (uint32_t i = 0; i < d->open.count; i++)
		if (d->open.items[i].drawn && d->open.items[i].end_ns < end)
			d->open.items[i].end_ns = end;
}

static void
end_track(struct drawing *d)
{
	while (d->open.count)
		close_last(d);
}

static bool
finish_stacks(struct drawing *d)
{
	end_track(d);
	plumb_vec_free(&d->open);
	plumb_vec_free(&d->path);
	free(d->started);
	return !d->failed &&
	       plumb_order_spans(d->stacks->slices.items, d->stacks->slices.count) == 0;
}

/* Ranges that were started and ended may cross what runs meanwhile. */
static bool
find_started(struct drawing *d)
{
	const struct plumb_profile *profile = d->profile;

	d->started = calloc((size_t)profile->contexts_count + 1, sizeof *d->started);
	if (!d->started)
		return false;
	for (uint32_t c = 0; c < profile->contexts_count; c++)
		d->started[c] = plumb_context_frame(profile, c)->kind == PLUMB_FRAME_RANGE;
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (profile->values[i].metric == PLUMB_METRIC_OP_TIME)
			d->started[profile->values[i].context] = false;
	return true;
}

/* Backward work stands under the frames of its forward pass, which do not run meanwhile. */
static void
draw_around(struct drawing *d, const struct plumb_span *s)
{
	uint32_t flags = d->profile->contexts[s->context].flags;

	if (d->started[s->context])
		return;
	close_others(d, s->context, s->start_ns);
	for (uint32_t i = d->open.count; i-- > 0;)
		if (!d->open.items[i].drawn) {
			if (d->open.items[i].end_ns < s->end_ns)
				return; /* they cross */
			break;
		}
	if (!(flags & (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION)))
		open_path(d, s->context, s->start_ns, s->end_ns, false);
	extend_drawn(d, s->end_ns);
	push_open(d, s->context, s->start_ns, s->end_ns, false);
}

bool
plumb_stacks_of_spans(struct plumb_stacks *stacks, const struct plumb_profile *profile,
                      const struct plumb_span *spans, uint32_t count)
{
	struct drawing d = { .profile = profile, .stacks = stacks };

	d.failed = !find_started(&d);
	for (uint32_t i = 0; i < count && !d.failed; i++) {
		if (profile->tracks[spans[i].track].kind != PLUMB_TRACK_THREAD)
			continue;
		if (spans[i].track != d.track)
			end_track(&d);
		d.track = spans[i].track;
		draw_around(&d, &spans[i]);
	}
	return finish_stacks(&d);
}

bool
plumb_stacks_of_samples(struct plumb_stacks *stacks, const struct plumb_profile *profile)
{
	struct drawing d = { .profile = profile, .stacks = stacks, .all = true };
	int64_t before = INT64_MIN;

	for (uint32_t i = 0; i < profile->cpu_samples_count && !d.failed; i++) {
		const struct plumb_cpu_sample *s = &profile->cpu_samples[i];
		int64_t start;
		if (s->track != d.track) {
			end_track(&d);
			before = INT64_MIN;
		}
		d.track = s->track;
		if (s->ns <= 0 || __builtin_sub_overflow(s->at_ns, s->ns, &start))
			continue;
		/* Where the thread waited meanwhile, nothing was open. */
		if (before == INT64_MIN || start - before > GAP * s->ns)
			end_track(&d);
		else
			start = before;
		close_others(&d, s->context, start);
		open_path(&d, s->context, start, s->at_ns, true);
		extend_drawn(&d, s->at_ns);
		before = s->at_ns;
	}
	return finish_stacks(&d);
}

void
plumb_stacks_free(struct plumb_stacks *stacks)
{
	plumb_vec_free(&stacks->slices);
}
