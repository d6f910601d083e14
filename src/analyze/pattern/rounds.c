/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds of a loop whose pattern is known. They mostly follow one another, so the next one is
 * aligned where the last one ends; where none is (before the loop, an evaluation between two
 * epochs), the search goes on where the first symbols of the pattern come again. Symbols inserted
 * before a round are no part of it.
 */
#include "analyze/pattern/align.h"
#include "analyze/pattern/growing.h"
#include "analyze/pattern/period.h"

#define ANCHOR 8                      /* symbols to find a round again by */
#define WORK_MOST (UINT64_C(1) << 28) /* for rounds that differ */
#define WORK_A_SYMBOL 48u /* then rounds must be exact: time stays linear whatever the text */

/* One in eight symbols may differ; more is another loop. */
static int32_t
most_edits(const struct plumb_align *align, int32_t period, int32_t count)
{
	return align->work > (uint64_t)count * WORK_A_SYMBOL + (1u << 20) ? 0 : period / 8;
}

static int32_t
next_anchor(const struct plumb_loop *loop, const int32_t *text, int32_t count, int32_t at)
{
	int32_t size = loop->period < ANCHOR ? loop->period : ANCHOR;

	for (; at + size <= count; at++) {
		int32_t same = 0;

		while (same < size && text[at + same] == loop->pattern[same])
			same++;
		if (same == size)
			return at;
	}
	return count;
}

static int32_t
count_agreeing(const int32_t *a, const int32_t *b, int32_t count)
{
	int32_t same = 0;

	for (int32_t i = 0; i < count; i++)
		same += a[i] == b[i];
	return same;
}

/* Part of a round before the first one and after the last. */
static int32_t
agreeing_ends(const struct plumb_loop *loop, const int32_t *text, int32_t count)
{
	int32_t first = loop->rounds.items[0].start;
	int32_t last = loop->rounds.items[loop->rounds.count - 1].end;
	int32_t head = first < loop->period ? first : loop->period;
	int32_t tail = count - last < loop->period ? count - last : loop->period;

	return count_agreeing(text + first - head, loop->pattern + loop->period - head, head) +
	       count_agreeing(text + last, loop->pattern, tail);
}

void
plumb_loop_cover(struct plumb_loop *loop, const int32_t *text, int32_t count)
{
	int64_t ends = loop->rounds.count ? agreeing_ends(loop, text, count) : 0;
	int64_t agree = ends, all = ends;

	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];
		int32_t gap = r ? round->start - round[-1].end : 0;

		agree += loop->period > round->edits ? loop->period - round->edits : 0;
		all += round->end - round->start;
		for (int32_t i = gap > PLUMB_LOOP_APART * loop->period ? 0 : gap; i > 0; i--)
			all += text[round->start - i] >= 0;
	}
	loop->agree = agree;
	loop->coverage = all ? (double)agree / (double)all : 0;
}

static void
reverse(int32_t *items, int32_t count)
{
	for (int32_t i = 0, j = count - 1; i < j; i++, j--) {
		int32_t item = items[i];

		items[i] = items[j];
		items[j] = item;
	}
}

/* Rounds that end where one begins, back to FROM: their own first symbols are not those to find a
 * round again by. MOST is how many edits a round may have. */
static int
follow_back(struct plumb_loop *loop, struct plumb_align *align, const int32_t *text, int32_t from,
            int32_t to, int32_t most)
{
	int32_t size = to - from, at = 0, end = 0;
	int32_t *backwards = malloc(((size_t)size + 1) * sizeof *backwards);
	uint32_t first = loop->rounds.count;
	int code = backwards ? 0 : PLUMB_ESYSTEM;

	if (!code) {
		memcpy(backwards, text + from, (size_t)size * sizeof *backwards);
		reverse(backwards, size);
		reverse(loop->pattern, loop->period);
	}
	while (!code && size - at >= loop->period - most) {
		int32_t edits = plumb_align_round(align, loop->pattern, loop->period,
		                                  backwards + at, size - at, most, &end, NULL);
		struct plumb_round *round = edits < 0 ? NULL : plumb_vec_add(&loop->rounds);

		if (edits < 0)
			break;
		if (!round)
			code = PLUMB_ESYSTEM;
		else
			*round = (struct plumb_round){ to - at - end, to - at, edits };
		at += end;
	}
	if (backwards)
		reverse(loop->pattern, loop->period);
	free(backwards);
	for (uint32_t i = first, j = loop->rounds.count; i + 1 < j; i++) {
		struct plumb_round round = loop->rounds.items[i];

		loop->rounds.items[i] = loop->rounds.items[--j];
		loop->rounds.items[j] = round;
	}
	return code;
}

struct rounds {
	PLUMB_VEC(struct plumb_round) items;
};

/* Fills [FROM, TO) with rounds of LOOP of which half agrees: 1, or 0 if they do not fit in. */
static int
fill_gap(struct plumb_loop *loop, struct plumb_align *align, const int32_t *text, int32_t from,
         int32_t to, struct rounds *rounds)
{
	int32_t slack = loop->period / 8, most = loop->period / 2;
	uint32_t before = rounds->items.count;

	while (to - from > slack) {
		int32_t end, edits = -1, left;
		struct plumb_round *added;

		if (to - from >= loop->period - slack && align->work <= WORK_MOST)
			edits = plumb_align_round(align, loop->pattern, loop->period, text + from,
			                          to - from, most, &end, NULL);
		left = edits < 0 ? 0 : to - from - end;
		left = left <= slack ? left : 0;
		if (edits < 0 || edits + left > most) {
			rounds->items.count = before;
			return 0;
		}
		added = plumb_vec_add(&rounds->items);
		if (!added)
			return PLUMB_ESYSTEM;
		*added = (struct plumb_round){ from, from + end + left, edits + left };
		from += end + left;
	}
	return 1;
}

/* What lies between two rounds may be rounds that differ: a batch of another size may run other
 * kernels. */
static int
add_different(struct plumb_loop *loop, struct plumb_align *align, const int32_t *text)
{
	int32_t slack = loop->period / 8;
	struct rounds all = { 0 };
	int code = 0;

	for (uint32_t r = 0; code >= 0 && r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];
		struct plumb_round *added;

		if (r && round->start - round[-1].end >= loop->period - slack)
			code = fill_gap(loop, align, text, round[-1].end, round->start, &all);
		added = code < 0 ? NULL : plumb_vec_add(&all.items);
		if (!added) {
			plumb_vec_free(&all.items);
			return PLUMB_ESYSTEM;
		}
		*added = *round;
	}
	plumb_vec_free(&loop->rounds);
	loop->rounds.items = all.items.items;
	loop->rounds.count = all.items.count;
	loop->rounds.capacity = all.items.capacity;
	return 0;
}

/* A round that follows no other was found by its first symbols. Where it begins within a loop of
 * its own, these come once more before it: up to MOST symbols later there may be a place with fewer
 * EDITS. Moves AT there; the edits. */
static int32_t
choose_anchor(const struct plumb_loop *loop, struct plumb_align *align, const int32_t *text,
              int32_t count, int32_t most, int32_t edits, int32_t *at)
{
	int32_t size = loop->period < ANCHOR ? loop->period : ANCHOR, end;
	int32_t limit = count - *at > most + size ? *at + most + size : count;

	for (int32_t i = next_anchor(loop, text, limit, *at + 1);
	     edits > 0 && i < limit && most_edits(align, loop->period, count);
	     i = next_anchor(loop, text, limit, i + 1)) {
		int32_t fewer = plumb_align_round(align, loop->pattern, loop->period, text + i,
		                                  count - i, edits - 1, &end, NULL);

		if (fewer >= 0) {
			edits = fewer;
			*at = i;
		}
	}
	return edits;
}

int
plumb_loop_follow(struct plumb_loop *loop, const int32_t *text, int32_t count)
{
	int32_t at = next_anchor(loop, text, count, 0), reached = 0, *places = NULL;
	struct plumb_align align = { 0 };
	int code = plumb_align_new(&align);

	loop->rounds.count = 0;
	places = malloc(((size_t)loop->period + PLUMB_ALIGN_MOST + 1) * sizeof *places);
	if (!places)
		code = PLUMB_ESYSTEM;
	while (!code && at < count) {
		int32_t end = 0, skipped = 0, most = most_edits(&align, loop->period, count);
		int32_t edits = plumb_align_round(&align, loop->pattern, loop->period, text + at,
		                                  count - at, most, &end, places);
		if (edits < 0) {
			at = next_anchor(loop, text, count, at + 1);
			continue;
		}
		if (edits && (at != reached || !reached)) {
			int32_t first = at;

			edits = choose_anchor(loop, &align, text, count, most, edits, &at);
			if (at != first)
				edits = plumb_align_round(&align, loop->pattern, loop->period,
				                          text + at, count - at, edits, &end,
				                          places);
		}
		while (edits && skipped < end && places[skipped] < 0)
			skipped++;
		if (at + skipped - reached >= loop->period - most)
			code = follow_back(loop, &align, text, reached, at + skipped, most);
		struct plumb_round *round = code ? NULL : plumb_vec_add(&loop->rounds);
		if (!round) {
			code = PLUMB_ESYSTEM;
			break;
		}
		*round = (struct plumb_round){ at + skipped, at + end, edits - skipped };
		at += end;
		reached = at;
	}
	if (!code)
		code = add_different(loop, &align, text);
	if (!code)
		plumb_loop_cover(loop, text, count);
	free(places);
	plumb_align_free(&align);
	return code;
}

int
plumb_loop_places(const struct plumb_loop *loop, const int32_t *text, int32_t count,
                  int32_t *places)
{
	struct plumb_align align = { 0 };

	if (plumb_align_new(&align) < 0)
		return PLUMB_ESYSTEM;
	for (int32_t i = 0; i < count; i++)
		places[i] = -1;
	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];
		int32_t end;

		/* The text ends with the round, so it is aligned as it was found or better. */
		if (!round->edits)
			for (int32_t i = round->start; i < round->end; i++)
				places[i] = i - round->start;
		else if (loop->growing)
			plumb_loop_place_growing(loop, text, round, places);
		else if (plumb_align_round(&align, loop->pattern, loop->period, text + round->start,
		                           count - round->start, round->edits, &end,
		                           places + round->start) >= 0)
			for (int32_t i = round->end; i < round->start + end && i < count; i++)
				places[i] = -1;
	}
	plumb_align_free(&align);
	return 0;
}

int
plumb_loop_turn(struct plumb_loop *loop, const int32_t *text, int32_t count, int32_t by)
{
	reverse(loop->pattern, by);
	reverse(loop->pattern + by, loop->period - by);
	reverse(loop->pattern, loop->period);
	return plumb_loop_follow(loop, text, count);
}
