/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/pattern/growing.h"

#include <math.h>

#include "analyze/pattern/suffix.h"

#define ROUNDS_LEAST 6
#define GROWTH_LEAST 0.03 /* of a round, over all rounds together */
#define SYMBOLS_LEAST 3   /* likewise */
#define OFF_LINE 0.02     /* of a round, or two symbols, may a distance lie beside the line */
#define MISSING_MOST 64   /* symbols of the pattern that a round may lack */
#define OFF_MOST 0.1      /* of the distances may lie farther */

static const int32_t scales[] = { 1, 4, 16, 64 };

struct growing {
	const int32_t *text;
	const int64_t *gaps;
	int32_t count, alphabet;
	int32_t *suffixes, *common, *number; /* by place: of the stretch that begins there */
	int32_t *first, *places;             /* places by number of their stretch */
	/* the best so far: */
	int32_t *starts, rounds;
	double slope, at_first; /* of the distances, over their number */
	double coverage, gap;
};

/* Places by the number of their stretch. */
static void
sort_places(struct growing *g, int32_t numbers)
{
	memset(g->first, 0, ((size_t)numbers + 2) * sizeof *g->first);
	for (int32_t i = 0; i < g->count; i++)
		g->first[g->number[i] + 2]++;
	for (int32_t n = 0; n < numbers; n++)
		g->first[n + 2] += g->first[n + 1];
	for (int32_t i = 0; i < g->count; i++)
		g->places[g->first[g->number[i] + 1]++] = i;
}

struct line {
	double slope, at_first;
};

static bool
is_rising(const int32_t *at, int32_t rounds)
{
	int32_t falls = 0, most = (int32_t)(OFF_MOST * rounds) + 1;

	for (int32_t k = 2; k < rounds && falls <= most; k++)
		falls += at[k] - at[k - 1] < at[k - 1] - at[k - 2];
	return falls <= most;
}

/* The line through the distances between ROUNDS places, if that is one and rises. */
static bool
find_line(const int32_t *at, int32_t rounds, struct line *line)
{
	double n = rounds - 1, middle = (n - 1) / 2, mean = (at[rounds - 1] - at[0]) / n;
	double xx = 0, xy = 0, growth;
	int32_t off = 0;

	for (int32_t k = 0; k + 1 < rounds; k++) {
		xx += (k - middle) * (k - middle);
		xy += (k - middle) * (at[k + 1] - at[k] - mean);
	}
	line->slope = xy / xx;
	line->at_first = mean - line->slope * middle;
	growth = line->slope * (n - 1);
	if (growth < SYMBOLS_LEAST || growth < GROWTH_LEAST * mean)
		return false;
	for (int32_t k = 0; k + 1 < rounds; k++) {
		double told = line->at_first + line->slope * k;

		off += fabs(at[k + 1] - at[k] - told) > fmax(2, OFF_LINE * told);
	}
	return off <= OFF_MOST * n;
}

static double
mean_gap(const struct growing *g, const int32_t *at, int32_t rounds)
{
	double sum = 0;

	for (int32_t k = 1; g->gaps && k < rounds; k++)
		sum += g->gaps[at[k]] > 0 ? (double)g->gaps[at[k]] : 0;
	return sum / rounds;
}

/* Does the stretch whose places are AT come once a round? Then it may be where rounds begin. */
static void
try_stretch(struct growing *g, const int32_t *at, int32_t rounds)
{
	double coverage, gap, mean;
	struct line line;

	if (rounds < ROUNDS_LEAST || (double)(at[rounds - 1] - at[0]) < 0.4 * g->count ||
	    !is_rising(at, rounds) || !find_line(at, rounds, &line))
		return;
	mean = (double)(at[rounds - 1] - at[0]) / (rounds - 1);
	double last = line.at_first + line.slope * (rounds - 1), left = g->count - at[rounds - 1];
	coverage = (at[rounds - 1] - at[0] + fmin(last, left)) / g->count;
	gap = mean_gap(g, at, rounds);
	/* Rounds that begin elsewhere may cover one less. */
	if (g->rounds && (coverage < g->coverage - mean / g->count ||
	                  (coverage < g->coverage + mean / g->count && gap <= g->gap)))
		return;
	memcpy(g->starts, at, (size_t)rounds * sizeof *at);
	g->rounds = rounds;
	g->slope = line.slope;
	g->at_first = line.at_first;
	g->coverage = coverage;
	g->gap = gap;
}

static int
search_scales(struct growing *g)
{
	int code = plumb_suffix_array(g->text, g->count, g->alphabet, g->suffixes);

	if (!code)
		plumb_suffix_common(g->text, g->suffixes, g->count, g->common, g->number);
	for (size_t s = 0; !code && s < sizeof scales / sizeof *scales; s++) {
		int32_t numbers = plumb_suffix_stretches(g->suffixes, g->common, g->count,
		                                         scales[s], g->number);

		sort_places(g, numbers);
		/* first[n] is now where the places of number n begin. */
		for (int32_t n = 0; n < numbers; n++)
			try_stretch(g, g->places + g->first[n], g->first[n + 1] - g->first[n]);
	}
	return code;
}

static int32_t
end_of(const struct growing *g, int32_t round)
{
	double last = g->at_first + g->slope * round;

	if (round + 1 < g->rounds)
		return g->starts[round + 1];
	return (int32_t)fmin(g->count, g->starts[round] + rint(last));
}

int32_t
plumb_loop_place_growing(const struct plumb_loop *loop, const int32_t *text,
                         const struct plumb_round *round, int32_t *places)
{
	int32_t length = round->end - round->start, head = 0, tail = 0, at, placed, missing = 0;
	int32_t size = length < loop->period ? length : loop->period;

	while (head < size && text[round->start + head] == loop->pattern[head])
		head++;
	while (head + tail < size &&
	       text[round->end - 1 - tail] == loop->pattern[loop->period - 1 - tail])
		tail++;
	for (int32_t i = 0; i < length; i++)
		places[round->start + i] = i < head            ? i
		                           : i < length - tail ? -1
		                                               : loop->period - (length - i);
	/* Between them each as early as it can be. */
	at = round->start + head;
	placed = head + tail;
	for (int32_t j = head; j < loop->period - tail && missing < MISSING_MOST; j++) {
		int32_t next = at;

		while (next < round->end - tail && text[next] != loop->pattern[j])
			next++;
		if (next == round->end - tail) {
			missing++;
			continue;
		}
		places[next] = j;
		placed++;
		at = next + 1;
	}
	return placed;
}

static int
add_rounds(const struct growing *g, struct plumb_loop *loop, int32_t *places)
{
	int64_t agree = 0;

	for (int32_t r = 0; r < g->rounds; r++) {
		int32_t start = g->starts[r], end = end_of(g, r);
		struct plumb_round *round;

		/* The last one may lack its end; it would be as long as the line says. */
		if (r + 1 == g->rounds && end - start < (g->at_first + g->slope * r) * 7 / 8)
			break;
		round = plumb_vec_add(&loop->rounds);
		if (!round)
			return PLUMB_ESYSTEM;
		*round = (struct plumb_round){ start, end, 0 };
		int32_t placed = plumb_loop_place_growing(loop, g->text, round, places);
		round->edits = end - start - placed + loop->period - placed;
		agree += end - start;
	}
	loop->agree = agree;
	loop->coverage = (double)agree / g->count;
	return 0;
}

/* Rounds against the shortest of them. */
static int
make_loop(struct growing *g, struct plumb_loop *loop)
{
	int32_t shortest = 0;

	for (int32_t r = 1; r + 1 < g->rounds; r++)
		if (end_of(g, r) - g->starts[r] < end_of(g, shortest) - g->starts[shortest])
			shortest = r;
	loop->growing = true;
	loop->period = end_of(g, shortest) - g->starts[shortest];
	loop->pattern = malloc((size_t)loop->period * sizeof *loop->pattern);
	if (!loop->pattern)
		return PLUMB_ESYSTEM;
	memcpy(loop->pattern, g->text + g->starts[shortest],
	       (size_t)loop->period * sizeof *loop->pattern);
	return add_rounds(g, loop, g->places);
}

int
plumb_loop_find_growing(const int32_t *text, int32_t count, int32_t alphabet, double least,
                        const int64_t *gaps, struct plumb_loop *loop)
{
	struct growing g = { .text = text, .gaps = gaps, .count = count, .alphabet = alphabet };
	size_t bytes = ((size_t)(count > alphabet ? count : alphabet) + 3) * sizeof *text;
	int code = PLUMB_ESYSTEM;

	*loop = (struct plumb_loop){ 0 };
	if (count < ROUNDS_LEAST)
		return 0;
	g.suffixes = malloc(bytes);
	g.common = malloc(bytes);
	g.number = malloc(bytes);
	g.first = malloc(bytes);
	g.places = malloc(bytes);
	g.starts = malloc(bytes);
	if (g.suffixes && g.common && g.number && g.first && g.places && g.starts)
		code = search_scales(&g);
	if (!code && g.rounds && g.coverage >= least)
		code = make_loop(&g, loop);
	if (!code && loop->period) {
		int32_t steps = g.starts[g.rounds - 1] - g.starts[0];

		loop->match = steps > 0 ? (double)loop->period * (g.rounds - 1) / steps : 0;
		code = loop->rounds.count >= ROUNDS_LEAST - 1;
	}
	free(g.suffixes);
	free(g.common);
	free(g.number);
	free(g.first);
	free(g.places);
	free(g.starts);
	return code;
}
