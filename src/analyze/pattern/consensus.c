/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pattern of a loop is a copy of one round, with what is odd about it. Its consensus has
 * at each place the symbol of most rounds (Boyer and Moore's majority), no place that most rounds
 * lack, and one more where most rounds have something inserted.
 */
#include "analyze/pattern/period.h"

struct place {
	int32_t symbol, lead;            /* at the place */
	int32_t extra, extra_lead;       /* first after it */
	int32_t rounds, inserted_rounds; /* that have it, that have something behind it */
};

static void
elect_symbol(int32_t *symbol, int32_t *lead, int32_t voted)
{
	if (voted == *symbol) {
		++*lead;
	} else if ((*lead)-- <= 0) {
		*symbol = voted;
		*lead = 1;
	}
}

/* items[0] stands before the first place. */
static void
count_votes(const struct plumb_loop *loop, const int32_t *text, const int32_t *places,
            struct place *items)
{
	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		int32_t last = -2;
		int32_t behind = r ? loop->rounds.items[r - 1].end : loop->rounds.items[r].start;
		int32_t gap = loop->rounds.items[r].start - behind;

		if (gap > 0 && gap <= loop->period / 8 &&
		    text[behind] >= 0) { /* the end of a round, or its beginning */
			items[0].inserted_rounds++;
			elect_symbol(&items[0].extra, &items[0].extra_lead, text[behind]);
		}

		for (int32_t i = loop->rounds.items[r].start; i < loop->rounds.items[r].end; i++) {
			if (text[i] < 0)
				continue; /* of something else */
			if (places[i] >= 0) {
				struct place *place = &items[places[i] + 1];

				last = places[i];
				place->rounds++;
				elect_symbol(&place->symbol, &place->lead, text[i]);
			} else if (last >= 0) {
				struct place *place = &items[last + 1];

				place->inserted_rounds++;
				elect_symbol(&place->extra, &place->extra_lead, text[i]);
				last = -2; /* the first one only */
			}
		}
	}
}

int
plumb_loop_settle(struct plumb_loop *loop, const int32_t *text, int32_t count, int32_t *places)
{
	struct place *items = calloc((size_t)loop->period + 1, sizeof *items);
	int32_t *pattern = malloc(((size_t)loop->period * 2 + 1) * sizeof *pattern), size = 0;
	int32_t half = (int32_t)(loop->rounds.count / 2);
	int code = items && pattern ? plumb_loop_places(loop, text, count, places) : PLUMB_ESYSTEM;

	if (code < 0 || !loop->rounds.count) {
		free(items);
		free(pattern);
		return code;
	}
	for (int32_t i = 0; i < loop->period; i++)
		items[i + 1].symbol = loop->pattern[i];
	count_votes(loop, text, places, items);
	for (int32_t i = 0; i <= loop->period; i++) {
		if (i && items[i].rounds > half)
			pattern[size++] = items[i].symbol;
		if (items[i].inserted_rounds > half)
			pattern[size++] = items[i].extra;
	}
	free(items);
	if (!size) {
		free(pattern);
		return 0;
	}
	free(loop->pattern);
	loop->pattern = pattern;
	loop->period = size;
	return plumb_loop_follow(loop, text, count);
}
