/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stretch of names that a loop repeats comes again one period later. The suffix array tells equal
 * stretches of every length: suffixes next to each other that have at least `scale` symbols in
 * common begin with the same stretch, and get the same number; how far back each number was seen
 * last is a vote for that distance. Short stretches vote for inner loops; long ones, which lie in
 * an inner loop's run no more than once, for outer ones. Distances to the next neighbour in the
 * suffix array itself would vote for any multiple of the period, and in a long noisy text for all
 * of them alike; distances to the last occurrence do not.
 *
 * Votes for one distance that follow one another closely are a candidate: so a loop is seen
 * wherever it lies, and whatever else the text has. Each scale names those with most votes.
 */
#include "analyze/pattern/candidates.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/pattern/suffix.h"
#include "base/large.h"

#define A_PERIOD 3    /* candidates of one period and scale */
#define VOTES_LEAST 2 /* and a 32nd of the places */
#define VOTES_SHARE 32
#define SHIFTED_VOTES 4 /* times as many has the distance that they were moved from */
#define ROUND_SHARE 0.7 /* of a second round */
#define DENSE 0.9       /* of a loop's places vote for it */
#define DENSE_ROUNDS 3  /* one round's places do where something is inserted before it */

static const int32_t scales[] = { 1, 4, 32, 256, 2048 };

/* The best of one scale, most votes first. */
struct best {
	struct plumb_candidate items[PLUMB_CANDIDATES_SCALE];
	int count;
};

static void
add_best(struct best *best, const struct plumb_candidate *c, int32_t scale)
{
	int at = best->count, alike = 0, fewest = -1;
	int32_t places = c->end - c->from;

	if (c->votes < VOTES_LEAST || (int64_t)c->votes * VOTES_SHARE < places ||
	    places + scale < ROUND_SHARE * c->period)
		return;
	for (int i = 0; i < best->count; i++)
		if (best->items[i].period == c->period) {
			alike++;
			fewest = i;
		}
	if (alike == A_PERIOD) {
		if (best->items[fewest].votes >= c->votes)
			return;
		memmove(&best->items[fewest], &best->items[fewest + 1],
		        (size_t)(--best->count - fewest) * sizeof *best->items);
	}
	for (at = best->count; at > 0 && c->votes > best->items[at - 1].votes; at--)
		if (at < PLUMB_CANDIDATES_SCALE)
			best->items[at] = best->items[at - 1];
	if (at < PLUMB_CANDIDATES_SCALE) {
		best->items[at] = *c;
		best->count += best->count < PLUMB_CANDIDATES_SCALE;
	}
}

/* One of what another scale told is no news. */
static void
add_candidate(struct plumb_candidates *all, const struct plumb_candidate *c)
{
	int at = 0;

	for (int i = 0; i < all->count; i++) {
		struct plumb_candidate *known = &all->items[i];

		if (known->period != c->period || known->from > c->end + c->period ||
		    c->from > known->end + c->period)
			continue;
		known->from = c->from < known->from ? c->from : known->from;
		known->end = c->end > known->end ? c->end : known->end;
		known->votes = c->votes > known->votes ? c->votes : known->votes;
		return;
	}
	while (at < all->count &&
	       (all->items[at].period < c->period ||
	        (all->items[at].period == c->period && all->items[at].from < c->from)))
		at++;
	memmove(&all->items[at + 1], &all->items[at],
	        (size_t)(all->count - at) * sizeof *all->items);
	all->items[at] = *c;
	all->count++;
}

/* Votes of one scale, whose stretches have DIFFERENT numbers. Returns how many there were. */
static int32_t
vote_scale(struct plumb_candidates *all, const int32_t *number, int32_t count, int32_t different,
           int32_t scale)
{
	int32_t half = count / 2, votes = 0, farthest = 0;
	struct best best = { .count = 0 };

	memset(all->last, 0xff, (size_t)different * sizeof *all->last);
	for (int32_t i = 0; i < count; i++) {
		int32_t before = all->last[number[i]], d = i - before;

		all->last[number[i]] = i;
		if (before < 0 || d > half)
			continue;
		struct plumb_candidate *open = &all->open[d];
		if (open->votes && i - open->end > 2 * (d + scale)) {
			add_best(&best, open, scale);
			open->votes = 0;
		}
		if (!open->votes++)
			open->from = i;
		open->end = i + 1;
		open->period = d;
		farthest = d > farthest ? d : farthest;
		votes++;
	}
	for (int32_t d = 1; d <= farthest; d++) {
		if (all->open[d].votes)
			add_best(&best, &all->open[d], scale);
		all->open[d].votes = 0;
	}
	for (int i = 0; i < best.count; i++) {
		best.items[i].end = count - best.items[i].end > scale - 1
		                            ? best.items[i].end + scale - 1
		                            : count;
		add_candidate(all, &best.items[i]);
	}
	return votes;
}

/* Do nearly all places of a few rounds vote for it? */
static bool
is_dense(const struct plumb_candidate *c)
{
	int32_t places = c->end - c->from;

	return places >= DENSE_ROUNDS * c->period && c->votes >= DENSE * places;
}

/* What is inserted or missing in some rounds moves votes to distances nearby, which are no loops of
 * their own. But nearly all places of a few rounds vote for that of another loop, which lies
 * between two of one period. */
static void
drop_shifted(struct plumb_candidates *all)
{
	int kept = 0;
	bool shifted[PLUMB_CANDIDATES_MOST] = { false };

	for (int a = 0; a < all->count; a++)
		for (int b = 0; b < all->count; b++) {
			const struct plumb_candidate *few = &all->items[a], *many = &all->items[b];

			shifted[a] |= few->period != many->period &&
			              abs(few->period - many->period) <= many->period / 8 &&
			              few->votes < many->votes / SHIFTED_VOTES && !is_dense(few) &&
			              few->from >= many->from - many->period &&
			              few->end <= many->end + many->period;
		}
	for (int a = 0; a < all->count; a++)
		if (!shifted[a])
			all->items[kept++] = all->items[a];
	all->count = kept;
}

static int
search_scales(struct plumb_candidates *all, const int32_t *text, int32_t count, int32_t alphabet)
{
	int code = plumb_suffix_array(text, count, alphabet, all->suffixes);

	if (!code)
		plumb_suffix_common(text, all->suffixes, count, all->common, all->number);
	for (size_t i = 0; !code && i < sizeof scales / sizeof *scales; i++) {
		int32_t different = alphabet;

		if (scales[i] > count / 2)
			break;
		if (scales[i] > 1)
			different = plumb_suffix_stretches(all->suffixes, all->common, count,
			                                   scales[i], all->number);
		if (!vote_scale(all, scales[i] > 1 ? all->number : text, count, different,
		                scales[i]))
			break; /* so long a stretch never comes again */
	}
	return code;
}

int
plumb_candidates_find(struct plumb_candidates *all, const int32_t *text, int32_t count,
                      int32_t alphabet)
{
	size_t symbols = (size_t)(count > alphabet ? count : alphabet) + 1;

	*all = (struct plumb_candidates){ 0 };
	all->suffixes = plumb_large(symbols * sizeof *text);
	all->common = plumb_large(symbols * sizeof *text);
	all->number = plumb_large(symbols * sizeof *text);
	all->last = plumb_large(symbols * sizeof *text);
	all->open = calloc((size_t)count / 2 + 1, sizeof *all->open);
	if (!all->suffixes || !all->common || !all->number || !all->last || !all->open)
		return PLUMB_ESYSTEM;
	int code = search_scales(all, text, count, alphabet);
	drop_shifted(all);
	return code;
}

void
plumb_candidates_free(struct plumb_candidates *all)
{
	free(all->suffixes);
	free(all->common);
	free(all->number);
	free(all->last);
	free(all->open);
	*all = (struct plumb_candidates){ 0 };
}
