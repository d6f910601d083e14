/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Periods. A stretch of names that a loop repeats comes again one period later. The suffix array
 * tells equal stretches of every length: suffixes next to each other that have at least `scale`
 * symbols in common begin with the same stretch, and get the same number; how far back each number
 * was seen last is a vote for that distance. Short stretches vote for inner loops; long ones, which
 * lie in an inner loop's run no more than once, for outer ones. Distances to the next neighbour in
 * the suffix array itself would vote for any multiple of the period, and in a long noisy text for
 * all of them alike; distances to the last occurrence do not.
 *
 * A candidate is confirmed by how many places agree with the place one period later, against
 * chance, and by following its rounds with insertions and deletions. Of the confirmed ones the
 * shortest is the loop, unless a longer one accounts for most of what it leaves out: then the short
 * one is an inner loop. A multiple of the period accounts for nothing more.
 */
#include "analyze/pattern/period.h"

#include <math.h>

#include "analyze/pattern/equal.h"
#include "analyze/pattern/suffix.h"
#include "base/large.h"

#define CANDIDATES_MOST 24
#define CANDIDATES_A_SCALE 4
#define VOTES_LEAST 0.02 /* of the votes of its scale */
#define SHORT 32         /* symbols; insertions are no excuse for so short a period not to agree */
#define DRIFTING 0.03    /* agreement beyond chance that a longer one needs, for they shift it */
#define COVERS_NEARLY 0.9
#define GAIN 0.5 /* of what an inner loop leaves out, an outer one explains */

static const int32_t scales[] = { 1, 4, 32, 256, 2048 };

struct search {
	const int32_t *text;
	int32_t count, alphabet;
	double chance; /* that two places agree */
	int32_t *suffixes, *common, *number, *last;
	int32_t *votes;   /* by distance; 0 beyond the farthest */
	int32_t farthest; /* distance that was voted for */
	int32_t candidates[CANDIDATES_MOST];
	int candidate_count;
};

static void
add_candidate(struct search *s, int32_t period)
{
	int at = 0;

	while (at < s->candidate_count && s->candidates[at] < period)
		at++;
	if (s->candidate_count == CANDIDATES_MOST ||
	    (at < s->candidate_count && s->candidates[at] == period))
		return;
	for (int i = s->candidate_count++; i > at; i--)
		s->candidates[i] = s->candidates[i - 1];
	s->candidates[at] = period;
}

/* The distances up to MOST with most votes into BEST, the most first; of equals the shorter. */
static void
find_frequent(const struct search *s, int32_t most, int32_t best[CANDIDATES_A_SCALE])
{
	memset(best, 0, CANDIDATES_A_SCALE * sizeof *best); /* no distance, and no votes */
	for (int32_t d = 1; d <= most; d++) {
		int at = CANDIDATES_A_SCALE;

		for (; at > 0 && s->votes[d] > s->votes[best[at - 1]]; at--)
			if (at < CANDIDATES_A_SCALE)
				best[at] = best[at - 1];
		if (at < CANDIDATES_A_SCALE)
			best[at] = d;
	}
}

/* Votes of one scale, whose stretches have DIFFERENT numbers; the most frequent distances become
 * candidates. Returns how many there were. */
static int32_t
vote_scale(struct search *s, const int32_t *number, int32_t different)
{
	int32_t half = s->count / 2, all = 0, most = 0, best[CANDIDATES_A_SCALE];

	memset(s->last, 0xff, (size_t)different * sizeof *s->last);
	memset(s->votes, 0, ((size_t)s->farthest + 1) * sizeof *s->votes);
	for (int32_t i = 0; i < s->count; i++) {
		int32_t before = s->last[number[i]];

		s->last[number[i]] = i;
		if (before >= 0 && i - before <= half) {
			s->votes[i - before]++;
			most = i - before > most ? i - before : most;
			all++;
		}
	}
	s->farthest = most;
	find_frequent(s, most, best);
	for (int c = 0; c < CANDIDATES_A_SCALE; c++) {
		int32_t votes = s->votes[best[c]];

		if (votes < 2 || votes < VOTES_LEAST * all)
			break;
		add_candidate(s, best[c]);
	}
	return all;
}

static int
find_candidates(struct search *s)
{
	int code = plumb_suffix_array(s->text, s->count, s->alphabet, s->suffixes);

	if (!code)
		plumb_suffix_common(s->text, s->suffixes, s->count, s->common, s->number);
	for (size_t i = 0; !code && i < sizeof scales / sizeof *scales; i++) {
		if (scales[i] > s->count / 2)
			break;
		int32_t different = scales[i] > 1
		                            ? plumb_suffix_stretches(s->suffixes, s->common,
		                                                     s->count, scales[i], s->number)
		                            : s->alphabet;
		if (vote_scale(s, scales[i] > 1 ? s->number : s->text, different) < s->count / 64)
			break; /* so long a stretch hardly ever comes again */
	}
	return code;
}

/* The share of places that agree with the place PERIOD later; *RUN is where the longest agreement
 * begins. */
static double
shift_match(const struct search *s, int32_t period, int32_t *run)
{
	int32_t same = 0, longest = 0, most = s->count - period;

	*run = 0;
	for (int32_t i = 0; i < most; i++) {
		int32_t length = plumb_equal(s->text + i, s->text + i + period, most - i);

		if (length > longest) {
			longest = length;
			*run = i;
		}
		same += length;
		i += length;
	}
	return most > 0 ? (double)same / most : 0;
}

static void
find_chance(struct search *s)
{
	memset(s->votes, 0, (size_t)s->alphabet * sizeof *s->votes);
	for (int32_t i = 0; i < s->count; i++)
		s->votes[s->text[i]]++;
	for (int32_t c = 0; c < s->alphabet; c++) {
		double share = (double)s->votes[c] / s->count;

		s->chance += share * share;
	}
}

/* Of a loop that covers nearly all, a multiple is worth following only where places agree better at
 * that distance. */
static bool
is_known(const struct plumb_loop *best, int32_t period, double match)
{
	return best->coverage > COVERS_NEARLY && period % best->period == 0 &&
	       match - best->match < GAIN / 2 * (1 - best->match);
}

/* Follows PERIOD, but for a multiple of BEST's; 1: it is a loop. */
static int
try_period(struct search *s, int32_t period, double least, const struct plumb_loop *best,
           struct plumb_loop *loop)
{
	int32_t run;
	double beyond;
	int code;

	*loop = (struct plumb_loop){ .period = period, .match = shift_match(s, period, &run) };
	beyond = s->chance < 1 ? (loop->match - s->chance) / (1 - s->chance) : loop->match;
	if (beyond < (period < SHORT ? least : DRIFTING + 3 / sqrt(s->count)) ||
	    is_known(best, period, loop->match))
		return 0;
	loop->pattern = malloc((size_t)period * sizeof *loop->pattern);
	if (!loop->pattern)
		return PLUMB_ESYSTEM;
	memcpy(loop->pattern, s->text + run, (size_t)period * sizeof *loop->pattern);
	code = plumb_loop_follow(loop, s->text, s->count);
	for (int32_t before = 0, turns = 0; !code && loop->coverage < 1 && turns < 3; turns++) {
		if (before == loop->period)
			break;
		before = loop->period;
		code = plumb_loop_settle(loop, s->text, s->count, s->number);
	}
	if (!code && loop->period != period)
		loop->match = shift_match(s, loop->period, &run);
	return code ? code : loop->rounds.count >= 2 && loop->coverage >= least;
}

static bool
is_multiple(int32_t period, int32_t of)
{
	int32_t rest = period % of;

	return period >= 2 * of - of / 8 && (rest <= of / 8 || of - rest <= of / 8);
}

/* Takes LOOP for *BEST where it is the outer loop, or the first one. */
static void
choose_loop(struct plumb_loop *best, struct plumb_loop *loop, int32_t count)
{
	double left = 1 - best->coverage, gain = loop->coverage - best->coverage;
	double least = loop->rounds.count;

	/* Noise may cost the short one a round at an end, which is no reason for a multiple of
	 * it. */
	if (best->period && is_multiple(loop->period, best->period) && best->period > least)
		least = best->period;
	if (!best->period || (gain > 0 && gain >= GAIN * left && gain * count >= least)) {
		plumb_loop_free(best);
		*best = *loop;
		*loop = (struct plumb_loop){ 0 };
	}
}

static int
search_candidates(struct search *s, double least, struct plumb_loop *best)
{
	int code = find_candidates(s);

	find_chance(s);
	for (int i = 0; code >= 0 && i < s->candidate_count && best->coverage < 1; i++) {
		struct plumb_loop loop;

		code = try_period(s, s->candidates[i], least, best, &loop);
		if (code > 0)
			choose_loop(best, &loop, s->count);
		plumb_loop_free(&loop);
	}
	return code < 0 ? code : best->period > 0;
}

int
plumb_loop_find(const int32_t *text, int32_t count, int32_t alphabet, double least,
                struct plumb_loop *loop)
{
	struct search s = { .text = text, .count = count, .alphabet = alphabet };
	size_t bytes = ((size_t)(count > alphabet ? count : alphabet) + 1) * sizeof *text;
	int code = PLUMB_ESYSTEM;

	*loop = (struct plumb_loop){ 0 };
	if (count < 2)
		return 0;
	s.suffixes = plumb_large(bytes);
	s.common = plumb_large(bytes);
	s.number = plumb_large(bytes);
	s.last = plumb_large(bytes);
	s.votes = calloc(bytes, 1);
	if (s.suffixes && s.common && s.number && s.last && s.votes)
		code = search_candidates(&s, least, loop);
	free(s.suffixes);
	free(s.common);
	free(s.number);
	free(s.last);
	free(s.votes);
	return code;
}

void
plumb_loop_free(struct plumb_loop *loop)
{
	free(loop->pattern);
	plumb_vec_free(&loop->rounds);
	*loop = (struct plumb_loop){ 0 };
}
