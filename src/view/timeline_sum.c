/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by name of a range. Of each name's spans, those that begin in the range are counted by two
 * binary searches. What lies across a border is in few places: at most one span of each row.
 */
#include <stdlib.h>

#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "view/flame.h"
#include "view/timeline_private.h"

/* ---- the spans of each name ---- */

static bool
add_name(struct plumb_lanes_found *f, uint32_t frame, uint32_t place)
{
	if (f->name_count == f->name_room) {
		void *grown = plumb_vec_grow(f->names, &f->name_room, f->name_count + 1ul,
		                             sizeof *f->names);
		if (!grown)
			return false;
		f->names = grown;
	}
	f->names[f->name_count++] = (struct plumb_lane_name){ frame, place, place };
	return true;
}

/* ITEMS and SPARE have room for the spans of LANE. */
static bool
sort_by_name(const struct plumb_lanes *l, const struct plumb_lane *lane,
             struct plumb_sort_item *items, struct plumb_sort_item *spare,
             struct plumb_lanes_found *f)
{
	uint32_t count = lane->end - lane->first;

	/* The spans of a lane have their starts in the order of their sources. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t source = l->source[lane->first + i];

		items[i] = (struct plumb_sort_item){
			(uint64_t)plumb_lane_frame(l, source) << 32 | source, lane->first + i
		};
	}
	if (count)
		plumb_sort(items, spare, count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = lane->first + i, place = items[i].index;
		uint32_t frame = (uint32_t)(items[i].key >> 32);

		if ((!i || frame != items[i - 1].key >> 32) && !add_name(f, frame, at))
			return false;
		f->by_name[at] = place;
		f->sum[at + 1] = f->sum[at] + ((uint64_t)l->end[place] - (uint64_t)l->start[place]);
		f->names[f->name_count - 1].end = at + 1;
	}
	return true;
}

bool
plumb_lanes_find_names(const struct plumb_lanes *l, struct plumb_lanes_found *f)
{
	struct plumb_sort_item *items, *spare;
	uint32_t most = 0;
	bool ok;

	for (uint32_t i = 0; i < l->lane_count; i++)
		if (l->lanes[i].end - l->lanes[i].first > most)
			most = l->lanes[i].end - l->lanes[i].first;
	items = malloc(most * sizeof *items + 1);
	spare = malloc(most * sizeof *spare + 1);
	f->by_name = malloc(l->count * sizeof *f->by_name + 1);
	f->sum = malloc(((size_t)l->count + 1) * sizeof *f->sum);
	f->first_name = calloc(l->lane_count + (size_t)1, sizeof *f->first_name);
	ok = items && spare && f->by_name && f->sum && f->first_name;
	if (ok)
		f->sum[0] = 0;
	for (uint32_t i = 0; ok && i < l->lane_count; i++) {
		ok = sort_by_name(l, &l->lanes[i], items, spare, f);
		f->first_name[i + 1] = f->name_count;
	}
	free(items);
	free(spare);
	return ok;
}

/* ---- sums ---- */

struct sum {
	uint64_t count, ns;
};

struct sums {
	const struct plumb_lanes_asked *asked;
	struct plumb_answer *answer;
	struct sum *by_frame;
	uint32_t *frames; /* those that have a sum */
	uint32_t count;
	struct plumb_sort_item *items, *spare;
};

static void
add(struct sums *s, uint32_t frame, uint64_t count, uint64_t ns)
{
	struct sum *sum = &s->by_frame[frame];

	if (!sum->count)
		s->frames[s->count++] = frame;
	sum->count += count;
	sum->ns += ns;
}

/* Those of lane number LANE that begin in the range, with all their time. */
static void
add_starts(struct sums *s, uint32_t lane)
{
	const struct plumb_lanes *l = s->asked->lanes;
	const struct plumb_lanes_found *f = l->parts[PLUMB_LANES_NAMES];

	for (uint32_t n = f->first_name[lane]; n < f->first_name[lane + 1]; n++) {
		const struct plumb_lane_name *name = &f->names[n];
		const uint32_t *places = &f->by_name[name->first];
		uint32_t count = name->end - name->first;
		uint32_t from = plumb_search(i, count, l->start[places[i]] < s->asked->from);
		uint32_t to = plumb_search(i, count, l->start[places[i]] < s->asked->to);

		if (from < to)
			add(s, name->frame, to - from,
			    f->sum[name->first + to] - f->sum[name->first + from]);
	}
}

/* Adds what began before the range, and takes off what is after it. */
static void
cut_row(struct sums *s, const struct plumb_lane_row *row)
{
	const struct plumb_lanes *l = s->asked->lanes;
	int64_t from = s->asked->from, to = s->asked->to;
	uint32_t first = row->first, count = row->end - first;
	uint32_t open = first + plumb_search(i, count, l->end[first + i] <= from);
	uint32_t last = first + plumb_search(i, count, l->start[first + i] < to);

	if (open < row->end && l->start[open] < from && from < to) {
		int64_t end = l->end[open] < to ? l->end[open] : to;
		add(s, plumb_lane_frame(l, l->source[open]), 1, (uint64_t)end - (uint64_t)from);
	}
	if (last > first && l->start[last - 1] >= from && l->end[last - 1] > to)
		add(s, plumb_lane_frame(l, l->source[last - 1]), 0,
		    (uint64_t)to - (uint64_t)l->end[last - 1]);
}

/* Writes the sums, the greatest first, and forgets them. */
static void
write_sums(struct sums *s, uint32_t track)
{
	const struct plumb_profile *p = s->asked->lanes->profile;
	uint32_t top = s->asked->range->top;

	for (uint32_t i = 0; i < s->count; i++)
		s->items[i] =
			(struct plumb_sort_item){ ~s->by_frame[s->frames[i]].ns, s->frames[i] };
	if (s->count)
		plumb_sort(s->items, s->spare, s->count);
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t frame = s->items[i].index;
		struct sum *sum = &s->by_frame[frame];

		if (!top || i < top) {
			plumb_answer_text(s->answer, plumb_frame_label(p, frame));
			plumb_answer_integer(s->answer,
			                     plumb_flame_layer_of(p->frames[frame].kind));
			plumb_answer_integer(s->answer, (int64_t)sum->count);
			plumb_answer_integer(s->answer, (int64_t)sum->ns);
			plumb_answer_integer(s->answer,
			                     track == PLUMB_NONE ? PLUMB_UNKNOWN : track);
		}
		*sum = (struct sum){ 0 };
	}
	s->count = 0;
}

static void
add_lanes(struct sums *s)
{
	const struct plumb_lanes *l = s->asked->lanes;
	bool by_track = s->asked->range->by_track, spans = false;

	/* What was sampled is in spans, too: it counts only if nothing else is asked for. */
	for (uint32_t i = 0; i < l->lane_count; i++)
		spans |= s->asked->wanted[i] && !l->lanes[i].sampled;
	for (uint32_t i = 0; i < l->lane_count; i++) {
		const struct plumb_lane *lane = &l->lanes[i];

		if (!s->asked->wanted[i] || (spans && lane->sampled))
			continue;
		add_starts(s, i);
		for (uint32_t r = 0; r < lane->row_count; r++)
			cut_row(s, &l->rows[lane->row + r]);
		if (by_track)
			write_sums(s, lane->id);
	}
	write_sums(s, PLUMB_NONE);
}

int
plumb_lanes_add_sums(const struct plumb_lanes_asked *asked, struct plumb_answer *answer)
{
	size_t frames = asked->lanes->profile->frames_count + (size_t)1;
	struct sums s = {
		.asked = asked,
		.answer = answer,
		.by_frame = calloc(frames, sizeof *s.by_frame),
		.frames = malloc(frames * sizeof *s.frames),
		.items = malloc(frames * sizeof *s.items),
		.spare = malloc(frames * sizeof *s.spare),
	};
	bool ok = s.by_frame && s.frames && s.items && s.spare;

	if (ok)
		add_lanes(&s);
	free(s.by_frame);
	free(s.frames);
	free(s.items);
	free(s.spare);
	return ok ? 0 : PLUMB_ESYSTEM;
}
