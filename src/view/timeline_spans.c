/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a range as they can be seen: one box for those that fit into a pixel together. */
#include "base/search.h"
#include "view/flame.h"
#include "view/timeline_private.h"

/* So many spans of a box are looked at for the longest, which names it. */
#define LOOKS 16

/* Spans [first, end) of a row are shown as one box. */
struct box {
	uint32_t first, end;
};

/* The first box at span AT or after it; false: the row has no more in the range. */
static bool
next_box(const struct plumb_lanes_asked *asked, const struct plumb_lane_row *row, uint32_t at,
         struct box *box)
{
	const struct plumb_lanes *l = asked->lanes;
	int64_t until;

	if (at >= row->end || l->start[at] >= asked->to)
		return false;
	*box = (struct box){ at, at + 1 };
	if (l->end[at] - l->start[at] >= asked->pixel)
		return true;
	if (__builtin_add_overflow(l->start[at], asked->pixel, &until))
		until = INT64_MAX;
	/* In a row, the ends are in order, too. */
	box->end += plumb_search(i, row->end - box->end, l->end[box->end + i] <= until);
	return true;
}

/* The first span of ROW that ends in the range or after it. */
static uint32_t
first_span(const struct plumb_lanes_asked *asked, const struct plumb_lane_row *row)
{
	const struct plumb_lanes *l = asked->lanes;

	return row->first +
	       plumb_search(i, row->end - row->first, l->end[row->first + i] < asked->from);
}

static uint32_t
longest_in(const struct plumb_lanes *l, const struct box *box)
{
	uint32_t step = (box->end - box->first + LOOKS - 1) / LOOKS, longest = box->first;

	for (uint32_t i = box->first; i < box->end; i += step)
		if (l->end[i] - l->start[i] > l->end[longest] - l->start[longest])
			longest = i;
	return longest;
}

static void
add_box(const struct plumb_lanes_asked *asked, const struct plumb_lane *lane, uint32_t depth,
        const struct box *box, struct plumb_answer *a)
{
	const struct plumb_lanes *l = asked->lanes;
	const struct plumb_profile *p = l->profile;
	uint32_t source = l->source[longest_in(l, box)], many = box->end - box->first;
	uint32_t frame = plumb_lane_frame(l, source);

	plumb_answer_integer(a, lane->id);
	plumb_answer_integer(a, depth);
	plumb_answer_integer(a, l->start[box->first] - l->base_ns);
	plumb_answer_integer(a, l->end[box->end - 1] - l->base_ns);
	plumb_answer_text(a, plumb_frame_label(p, frame));
	plumb_answer_integer(a, plumb_flame_layer_of(p->frames[frame].kind));
	plumb_answer_integer(a, many);
	plumb_answer_integer(a, plumb_lane_span(l, source).context);
	plumb_answer_integer(a, many == 1 ? (int64_t)source : PLUMB_UNKNOWN);
}

void
plumb_lanes_add_spans(const struct plumb_lanes_asked *asked, struct plumb_answer *a)
{
	const struct plumb_lanes *l = asked->lanes;
	struct box box;

	for (uint32_t i = 0; i < l->lane_count; i++) {
		const struct plumb_lane *lane = &l->lanes[i];

		for (uint32_t r = 0; asked->wanted[i] && r < lane->row_count; r++) {
			const struct plumb_lane_row *row = &l->rows[lane->row + r];
			uint32_t at = first_span(asked, row);

			for (; next_box(asked, row, at, &box); at = box.end)
				add_box(asked, lane, r, &box, a);
		}
	}
}

/* ---- arrows ---- */

/* The arrow of a box is that of its first span that has one. */
static void
add_arrow(const struct plumb_lanes_asked *asked, const struct plumb_lane *lane,
          const struct box *box, struct plumb_answer *a)
{
	struct plumb_lanes *l = asked->lanes;
	const struct plumb_profile *p = l->profile;
	uint32_t looks = box->end - box->first < LOOKS ? box->end - box->first : LOOKS;

	for (uint32_t i = box->first; i < box->first + looks; i++) {
		/* A lane of newest work has no arrows, so these are the profile's spans. */
		const struct plumb_span *to = &p->spans[l->source[i]], *from;
		uint32_t launch = plumb_launch_before(&l->launches, p->tracks[lane->track].process,
		                                      to->correlation, to->start_ns);
		int64_t start;

		if (launch == PLUMB_NONE)
			continue;
		from = &p->spans[launch];
		start = plumb_lane_time(l, from->track, from->start_ns);
		if (l->lane_of[from->track] == PLUMB_NONE ||
		    !asked->wanted[l->lane_of[from->track]] || !plumb_is_time(start, start))
			continue;
		plumb_answer_integer(a, from->track);
		plumb_answer_integer(a, start - l->base_ns);
		plumb_answer_integer(a, lane->track);
		plumb_answer_integer(a, l->start[i] - l->base_ns);
		plumb_answer_integer(a, l->source[i]);
		return;
	}
}

int
plumb_lanes_add_arrows(const struct plumb_lanes_asked *asked, struct plumb_answer *a)
{
	struct plumb_lanes *l = asked->lanes;
	struct box box;

	if (!l->has_launches && plumb_launches_find(l->profile, PLUMB_NONE, &l->launches) < 0)
		return PLUMB_ESYSTEM;
	l->has_launches = true;
	for (uint32_t i = 0; i < l->lane_count; i++) {
		const struct plumb_lane *lane = &l->lanes[i];

		if (!asked->wanted[i] || lane->newest ||
		    l->profile->tracks[lane->track].kind != PLUMB_TRACK_STREAM)
			continue;
		for (uint32_t r = 0; r < lane->row_count; r++) {
			const struct plumb_lane_row *row = &l->rows[lane->row + r];
			uint32_t at = first_span(asked, row);

			for (; next_box(asked, row, at, &box); at = box.end)
				add_arrow(asked, lane, &box, a);
		}
	}
	return 0;
}
