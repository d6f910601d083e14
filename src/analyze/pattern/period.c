/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops. Candidates are stretches of the text that mostly repeat at some distance (candidates.h),
 * the shortest distance first. One is confirmed by how many places of its stretch agree with the
 * place one period later, against chance, and by following its rounds with insertions and
 * deletions. What lies outside of its stretch does not count.
 *
 * Several loops with one period that follow one another are one candidate. So what the rounds of
 * the first one found leave out of it is looked at, too.
 *
 * A confirmed one is a loop if it explains most of what the loops so far leave out where it lies.
 * Then it gets the rounds that it has elsewhere, too, and those of the others that it overlaps,
 * because it is an outer loop of theirs. A multiple of a period explains nothing more.
 */
#include "analyze/pattern/period.h"

#include <math.h>

#include "analyze/pattern/candidates.h"
#include "analyze/pattern/equal.h"
#include "base/large.h"

#define LEAST 0.5     /* of its own extent, by a loop */
#define SHORT 32      /* symbols; insertions are no excuse for so short a period not to agree */
#define DRIFTING 0.03 /* agreement beyond chance that a longer one needs, for they shift it */
#define MULTIPLE 4    /* symbols a round that a multiple of a period must explain */
#define HELPS 0.01    /* of coverage */
#define UNLIKELY 3    /* powers of e */
#define RARE_ROUNDS                                                                                \
	8 /* so many rounds of rare names are no chance, however few symbols they have */
#define COVERS_NEARLY 0.9
#define COVERS_ALL 0.98
#define GAIN 0.5       /* of what an inner loop leaves out, an outer one explains */
#define TRIES_MOST 16  /* of one candidate */
#define PIECES_MOST 64 /* that are kept for that */

struct search {
	int32_t *text;
	int32_t count;
	double chance; /* that two places agree */
	float *news;   /* by symbol: how unlikely it is in one place, as powers of e */
	struct plumb_candidates candidates;
	struct plumb_loops *loops;
};

/* ---- what loops have in common ---- */

/* Of the symbols that it has; what a round lacks counts against it. */
static int64_t
explaining(const struct plumb_round *round)
{
	int32_t symbols = round->end - round->start - round->edits;

	return symbols > 0 ? symbols : 0;
}

/* What LOOP explains of [FROM, END). The part of it in rounds that overlap OTHER's goes to
 * *OVER. */
static int64_t
explained(const struct plumb_loop *loop, int32_t from, int32_t end, const struct plumb_loop *other,
          int64_t *over)
{
	int64_t sum = 0;
	uint32_t o = 0;

	*over = 0;
	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];
		int32_t start = round->start > from ? round->start : from;
		int32_t until = round->end < end ? round->end : end;

		if (start >= until)
			continue;
		int64_t part = explaining(round) * (until - start) / (round->end - round->start);
		sum += part;
		while (o < other->rounds.count && other->rounds.items[o].end <= start)
			o++;
		if (o < other->rounds.count && other->rounds.items[o].start < until)
			*over += part;
	}
	return sum;
}

/* How many symbols in a direction of STEP agree with the pattern, from its end or beginning on. */
static int32_t
count_part(const struct plumb_loop *loop, const int32_t *text, int32_t most, int32_t step)
{
	const int32_t *pattern = step > 0 ? loop->pattern : loop->pattern + loop->period - 1;
	int32_t same = 0, part = 0;

	for (int32_t i = 0; i < most && i < loop->period; i++) {
		same += text[i * step] == pattern[i * step];
		if (same * 8 >= (i + 1) * 7)
			part = i + 1;
	}
	return part;
}

/* The rounds of a loop, and the parts of rounds between which they lie. `edits` is the longest
 * period that gives way: a part of a round takes what comes twice in it. */
struct covered {
	PLUMB_VEC(struct plumb_round) items;
};

static bool
add_covered(struct covered *covered, int32_t start, int32_t end, int32_t longest)
{
	struct plumb_round *added = start < end ? plumb_vec_add(&covered->items) : NULL;

	if (added)
		*added = (struct plumb_round){ start, end, longest };
	return added || start >= end;
}

static bool
find_covered(const struct plumb_loop *loop, const int32_t *text, int32_t count,
             struct covered *covered)
{
	int32_t reached = 0;
	bool done = true;

	for (uint32_t r = 0; done && r <= loop->rounds.count; r++) {
		bool last = r == loop->rounds.count;
		int32_t next = last ? count : loop->rounds.items[r].start;
		int32_t tail = 0, head = 0;

		if (r && !loop->growing)
			tail = count_part(loop, text + reached, next - reached, 1);
		if (!last && !loop->growing)
			head = count_part(loop, text + next - 1, next - reached - tail, -1);
		done = add_covered(covered, reached, reached + tail, tail / 2) &&
		       add_covered(covered, next - head, next, head / 2);
		if (!last) {
			reached = loop->rounds.items[r].end;
			done = done && add_covered(covered, next, reached, INT32_MAX);
		}
	}
	return done;
}

/* Leaves out LOOP's rounds that overlap what is COVERED. */
static void
cut_rounds(struct plumb_loop *loop, const struct covered *covered)
{
	uint32_t o = 0, kept = 0;

	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];

		while (o < covered->items.count && covered->items.items[o].end <= round->start)
			o++;
		if (o == covered->items.count || covered->items.items[o].start >= round->end ||
		    covered->items.items[o].edits < loop->period)
			loop->rounds.items[kept++] = *round;
	}
	loop->rounds.count = kept;
}

int
plumb_loops_cut(struct plumb_loops *loops, uint32_t own, const int32_t *text, int32_t count)
{
	struct covered covered = { 0 };
	uint32_t kept = 0;

	if (!find_covered(&loops->items[own], text, count, &covered)) {
		plumb_vec_free(&covered.items);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t l = 0; l < loops->count; l++) {
		struct plumb_loop *loop = &loops->items[l];

		if (l != own)
			cut_rounds(loop, &covered);
		if (l == own || loop->rounds.count >= 2)
			loops->items[kept++] = *loop;
		else
			plumb_loop_free(loop);
	}
	loops->count = kept;
	plumb_vec_free(&covered.items);
	return 0;
}

/* ---- candidates ---- */

/* The share of places in [FROM, END) that agree with the place PERIOD later; *RUN is where the
 * longest agreement begins. */
static double
shift_match(const struct search *s, int32_t period, int32_t from, int32_t end, int32_t *run)
{
	int32_t same = 0, longest = 0, most = end - period;

	*run = from;
	for (int32_t i = from; i < most; i++) {
		int32_t length = plumb_equal(s->text + i, s->text + i + period, most - i);

		if (length > longest) {
			longest = length;
			*run = i;
		}
		same += length;
		i += length;
	}
	return most > from ? (double)same / (most - from) : 0;
}

static bool
find_chance(struct search *s, int32_t alphabet)
{
	int32_t *counts = s->candidates.number;

	s->news = malloc(((size_t)alphabet + 1) * sizeof *s->news);
	if (!s->news)
		return false;
	memset(counts, 0, (size_t)alphabet * sizeof *counts);
	for (int32_t i = 0; i < s->count; i++)
		counts[s->text[i]]++;
	for (int32_t c = 0; c < alphabet; c++) {
		double share = (double)counts[c] / s->count;

		s->chance += share * share;
		s->news[c] = counts[c] ? (float)-log(share) : 0;
	}
	return true;
}

/* Is it likely that, of all the places of the text, those of [FROM, END) agree with the place
 * PERIOD later, a share of MATCH of them? If they are many rounds, it counts how rare their names
 * are. */
static bool
is_chance(const struct search *s, int32_t period, double match, int32_t from, int32_t end)
{
	double agree = match * (end - from - period), least = 2 * log(s->count) + UNLIKELY;
	double sum = 0;

	if (s->chance >= 1 || -log(s->chance) * agree >= least)
		return false;
	if (agree < RARE_ROUNDS * (double)period)
		return true;
	for (int32_t i = from; i + period < end && sum < least; i++)
		sum += s->text[i] == s->text[i + period] ? s->news[s->text[i]] : 0;
	return sum < least;
}

/* Whether the loops so far explain [FROM, END) so well that PERIOD is not worth following: one of
 * them nearly all, and the period is a multiple of its own at which no more places agree; or all of
 * it. */
static bool
is_known(const struct search *s, int32_t period, double match, int32_t from, int32_t end)
{
	const struct plumb_loop none = { 0 };
	int64_t over;

	for (uint32_t l = 0; l < s->loops->count; l++) {
		const struct plumb_loop *loop = &s->loops->items[l];
		int64_t here = explained(loop, from, end, &none, &over);
		int32_t ends = 2 * (loop->period - 1);

		if (here > (double)(end - from) * COVERS_NEARLY - ends &&
		    period % loop->period == 0 &&
		    match - loop->match < GAIN / 2 * (1 - loop->match))
			return true;
		if (here >= end - from - ends && loop->coverage >= 1)
			return true;
	}
	return false;
}

/* Finds the rounds of LOOP in [FROM, END), and what most of them have, as long as this helps. */
static int
settle(const struct search *s, struct plumb_loop *loop, int32_t from, int32_t end)
{
	int code = plumb_loop_follow(loop, s->text + from, end - from);
	int32_t period = 0;
	double covered = 0;

	for (int turns = 0; !code && loop->coverage < 1 && turns < 3; turns++) {
		if (period == loop->period && loop->coverage < covered + HELPS)
			break;
		period = loop->period;
		covered = loop->coverage;
		code = plumb_loop_settle(loop, s->text + from, end - from, s->candidates.number);
	}
	return code;
}

/* Follows candidate C; 1: it is a loop. LOOP has the rounds in any case. */
static int
try_candidate(struct search *s, const struct plumb_candidate *c, struct plumb_loop *loop)
{
	int32_t period = c->period, run, from, end, least;
	double beyond;
	int code = 0;

	from = c->from > period ? c->from - period : 0;
	*loop = (struct plumb_loop){ .period = period };
	loop->match = shift_match(s, period, from, c->end, &run);
	beyond = s->chance < 1 ? (loop->match - s->chance) / (1 - s->chance) : loop->match;
	if (is_chance(s, period, loop->match, from, c->end) ||
	    beyond < (period < SHORT ? LEAST : DRIFTING + 3 / sqrt(c->end - from)) ||
	    is_known(s, period, loop->match, from, c->end))
		return 0;
	loop->pattern = malloc((size_t)period * sizeof *loop->pattern);
	if (!loop->pattern)
		return PLUMB_ESYSTEM;
	memcpy(loop->pattern, s->text + run, (size_t)period * sizeof *loop->pattern);
	/* A round that differs may lie at each end. */
	from = from > period ? from - period : 0;
	end = s->count - c->end > period ? c->end + period : s->count;
	least = loop->period;
	code = settle(s, loop, from, end);
	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		loop->rounds.items[r].start += from;
		loop->rounds.items[r].end += from;
	}
	if (!code && loop->period != least)
		loop->match = shift_match(s, loop->period, from, end, &run);
	return code ? code : loop->rounds.count >= 2 && loop->coverage >= LEAST;
}

static bool
is_multiple(int32_t period, int32_t of)
{
	int32_t rest = period % of;

	return period >= 2 * of - of / 8 && (rest <= of / 8 || of - rest <= of / 8);
}

/* Is LOOP one more, or the outer one of some? */
static bool
is_wanted(const struct search *s, const struct plumb_loop *loop)
{
	int32_t from = loop->rounds.items[0].start;
	int32_t end = loop->rounds.items[loop->rounds.count - 1].end;
	int64_t own = 0, had = 0, beside = 0;
	double least = loop->rounds.count;
	bool multiple = false;
	int inner = 0;

	for (uint32_t r = 0; r < loop->rounds.count; r++)
		own += explaining(&loop->rounds.items[r]);
	for (uint32_t l = 0; l < s->loops->count; l++) {
		const struct plumb_loop *other = &s->loops->items[l];
		int64_t over, here = explained(other, from, end, loop, &over);

		had += over;
		beside += here - over;
		inner += over * 8 > own && other->period < loop->period;
		/* Noise is no reason for a multiple of a period; where there happens to be little
		 * of it, even less. */
		if (over * 2 <= own || !is_multiple(loop->period, other->period))
			continue;
		multiple = true;
		least = fmax(least, MULTIPLE * loop->rounds.count);
		if ((double)over < COVERS_NEARLY * (double)other->agree)
			least = fmax(least, other->period);
	}
	if (inner > 1 && own >= COVERS_ALL * (double)(end - from - beside))
		return true;
	double gain = (double)(own - had), left = (double)(end - from - had - beside);
	/* The pattern is one of its rounds, and explains that one anyway. */
	if (multiple)
		gain -= left / loop->rounds.count;
	return gain >= GAIN * left && gain >= least;
}

/* Gives LOOP the rounds that it has beyond its candidate. */
static int
spread_loop(const struct search *s, struct plumb_loop *loop)
{
	int32_t first = loop->rounds.items[0].start;
	int32_t last = loop->rounds.items[loop->rounds.count - 1].end;

	return first < loop->period && s->count - last < loop->period
	               ? 0
	               : settle(s, loop, 0, s->count);
}

/* Parts of a candidate that are not looked at yet. */
struct pieces {
	struct plumb_candidate items[PIECES_MOST];
	int count;
};

static void
add_piece(struct pieces *pieces, const struct plumb_candidate *of, int32_t from, int32_t end)
{
	if (end - from >= 2 * of->period && pieces->count < PIECES_MOST)
		pieces->items[pieces->count++] =
			(struct plumb_candidate){ of->period, from, end, of->votes };
}

/* What LOOP, which was found in C, leaves out of it may be another loop of the same period: one
 * that follows it, or comes between its rounds. */
static void
add_pieces(struct pieces *pieces, const struct plumb_candidate *c, const struct plumb_loop *loop)
{
	int32_t reached = c->from;

	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		const struct plumb_round *round = &loop->rounds.items[r];

		add_piece(pieces, c, reached, round->start < c->end ? round->start : c->end);
		reached = round->end > reached ? round->end : reached;
	}
	if (loop->rounds.count)
		add_piece(pieces, c, reached, c->end);
}

/* Narrows C to where most places agree with the place one period later, and keeps the rest as
 * pieces. False: two rounds do not agree anywhere. */
static bool
narrow(const struct search *s, struct pieces *pieces, struct plumb_candidate *c)
{
	int32_t sum = 0, most = 0, start = c->from, from = c->from, end = c->from;

	for (int32_t i = c->from; i + c->period < c->end; i++) {
		sum += s->text[i] == s->text[i + c->period] ? 1 : -1;
		if (sum <= 0) {
			sum = 0;
			start = i + 1;
		} else if (sum > most) {
			most = sum;
			from = start;
			end = i + 1 + c->period;
		}
	}
	if (most < c->period)
		return false;
	add_piece(pieces, c, c->from, from);
	add_piece(pieces, c, end, c->end);
	c->from = from;
	c->end = end;
	return true;
}

/* Keeps LOOP, or frees it if it is not wanted. */
static int
take_loop(struct search *s, struct plumb_loop *loop)
{
	struct plumb_loop *added;
	int code;

	if (!is_wanted(s, loop)) {
		plumb_loop_free(loop);
		return 0;
	}
	code = spread_loop(s, loop);
	added = code ? NULL : plumb_vec_add(s->loops);
	if (!added) {
		plumb_loop_free(loop);
		return PLUMB_ESYSTEM;
	}
	*added = *loop;
	return plumb_loops_cut(s->loops, s->loops->count - 1, s->text, s->count);
}

static int
search_candidate(struct search *s, const struct plumb_candidate *c)
{
	struct pieces pieces = { .count = 0 };
	struct plumb_candidate piece = *c;
	int code = 0;

	for (int tries = 0; code >= 0 && tries < TRIES_MOST; tries++) {
		struct plumb_loop loop;

		code = try_candidate(s, &piece, &loop);
		add_pieces(&pieces, &piece, &loop);
		if (code > 0)
			code = take_loop(s, &loop);
		else
			plumb_loop_free(&loop);
		do {
			if (!pieces.count)
				return code;
			piece = pieces.items[--pieces.count];
		} while (!narrow(s, &pieces, &piece));
	}
	return code;
}

static int
search_candidates(struct search *s)
{
	int code = 0;

	for (int i = 0; code >= 0 && i < s->candidates.count; i++)
		code = search_candidate(s, &s->candidates.items[i]);
	return code;
}

/* ---- all loops ---- */

void
plumb_loops_hide(const struct plumb_loops *loops, uint32_t from, uint32_t end, int32_t *text)
{
	for (uint32_t l = from; l < end; l++)
		for (uint32_t r = 0; r < loops->items[l].rounds.count; r++) {
			const struct plumb_round *round = &loops->items[l].rounds.items[r];

			for (int32_t i = round->start; i < round->end; i++)
				text[i] = ~text[i];
		}
}

/* What most rounds of a loop have, now that others have taken rounds that were only alike. */
static int
settle_all(struct search *s)
{
	struct plumb_loops *loops = s->loops;
	uint32_t kept = 0;
	int code = 0;

	for (uint32_t l = 0; !code && loops->count > 1 && l < loops->count; l++) {
		plumb_loops_hide(loops, 0, l, s->text);
		plumb_loops_hide(loops, l + 1, loops->count, s->text);
		code = settle(s, &loops->items[l], 0, s->count);
		plumb_loops_hide(loops, 0, l, s->text);
		plumb_loops_hide(loops, l + 1, loops->count, s->text);
	}
	for (uint32_t l = 0; l < loops->count; l++) {
		if (loops->items[l].rounds.count)
			loops->items[kept++] = loops->items[l];
		else
			plumb_loop_free(&loops->items[l]);
	}
	loops->count = kept;
	return code;
}

static int
by_agreement(const void *x, const void *y)
{
	const struct plumb_loop *a = x, *b = y;

	return (b->agree > a->agree) - (b->agree < a->agree);
}

int
plumb_loops_find(int32_t *text, int32_t count, int32_t alphabet, struct plumb_loops *loops)
{
	struct search s = { .text = text, .count = count, .loops = loops };
	int code;

	*loops = (struct plumb_loops){ 0 };
	if (count < 2)
		return 0;
	code = plumb_candidates_find(&s.candidates, text, count, alphabet);
	if (!code)
		code = find_chance(&s, alphabet) ? search_candidates(&s) : PLUMB_ESYSTEM;
	if (loops->count > 1)
		qsort(loops->items, loops->count, sizeof *loops->items, by_agreement);
	if (code >= 0)
		code = settle_all(&s);
	for (uint32_t l = 0; l < loops->count; l++)
		plumb_loop_cover(&loops->items[l], text, count);
	if (loops->count)
		qsort(loops->items, loops->count, sizeof *loops->items, by_agreement);
	plumb_candidates_free(&s.candidates);
	free(s.news);
	return code < 0 ? code : 0;
}

void
plumb_loops_free(struct plumb_loops *loops)
{
	for (uint32_t l = 0; l < loops->count; l++)
		plumb_loop_free(&loops->items[l]);
	plumb_vec_free(loops);
}

int
plumb_loop_find(int32_t *text, int32_t count, int32_t alphabet, double least,
                struct plumb_loop *loop)
{
	struct plumb_loops loops;
	int code = plumb_loops_find(text, count, alphabet, &loops);

	*loop = (struct plumb_loop){ 0 };
	if (!code && loops.count && (double)loops.items[0].agree >= least * count) {
		*loop = loops.items[0];
		loops.items[0] = (struct plumb_loop){ 0 };
		code = 1;
	}
	plumb_loops_free(&loops);
	return code;
}

void
plumb_loop_free(struct plumb_loop *loop)
{
	free(loop->pattern);
	plumb_vec_free(&loop->rounds);
	*loop = (struct plumb_loop){ 0 };
}
