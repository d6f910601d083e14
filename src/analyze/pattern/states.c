/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First each symbol with its history is a state of its own, and the transitions between these are
 * counted. Then a state that has one follower becomes one segment with it, if the follower has no
 * other one before it.
 */
#include "analyze/pattern/states.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"

/* Pairs of numbers, numbered in the order in which they come first. */
struct pair {
	uint32_t a, b;
	uint64_t count;
};
struct pairs {
	PLUMB_VEC(struct pair) items;
	struct plumb_map map;
};

/* Counts (A, B). Its number, or PLUMB_STATES_NONE: no memory. */
static uint32_t
count_pair(struct pairs *pairs, uint32_t a, uint32_t b, uint64_t count)
{
	uint64_t hash = plumb_hash_mix(a, b);
	struct plumb_map_cursor at;
	struct pair *added;

	for (uint32_t id = plumb_map_first(&pairs->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&pairs->map, &at))
		if (pairs->items.items[id].a == a && pairs->items.items[id].b == b) {
			pairs->items.items[id].count += count;
			return id;
		}
	added = plumb_vec_add(&pairs->items);
	if (!added || plumb_map_add(&pairs->map, hash, pairs->items.count - 1) < 0)
		return PLUMB_STATES_NONE;
	*added = (struct pair){ a, b, count };
	return pairs->items.count - 1;
}

static void
free_pairs(struct pairs *pairs)
{
	plumb_vec_free(&pairs->items);
	plumb_map_free(&pairs->map);
}

/* ---- states with their history ---- */

/* Fills STATE with the symbols of all rounds, numbered from PLUMB_STATES_FIRST on. */
static int
take_symbols(const struct plumb_states_input *in, uint32_t *state, uint32_t *states)
{
	struct pairs pairs = { 0 };
	uint32_t at = 0;
	int code = 0;

	for (uint32_t r = 0; !code && r < in->round_count; r++)
		for (int32_t i = in->rounds[r].start; !code && i < in->rounds[r].end; i++) {
			uint32_t number = count_pair(&pairs, (uint32_t)in->text[i], 0, 1);

			code = number == PLUMB_STATES_NONE ? PLUMB_ESYSTEM : 0;
			state[at++] = number + PLUMB_STATES_FIRST;
		}
	*states = pairs.items.count + PLUMB_STATES_FIRST;
	free_pairs(&pairs);
	return code;
}

/* Tells states apart by the symbol AGO places before them, too. */
static int
refine(const struct plumb_states_input *in, uint32_t ago, uint32_t *state, uint32_t *states)
{
	struct pairs pairs = { 0 };
	uint32_t at = 0;
	int code = 0;

	for (uint32_t r = 0; !code && r < in->round_count; r++)
		for (int32_t i = in->rounds[r].start; !code && i < in->rounds[r].end; i++, at++) {
			bool has = i - in->rounds[r].start >= (int32_t)ago;
			uint32_t before = has ? (uint32_t)in->text[i - (int32_t)ago] + 1 : 0;
			uint32_t number = count_pair(&pairs, state[at], before, 1);

			code = number == PLUMB_STATES_NONE ? PLUMB_ESYSTEM : 0;
			state[at] = number + PLUMB_STATES_FIRST;
		}
	*states = pairs.items.count + PLUMB_STATES_FIRST;
	free_pairs(&pairs);
	return code;
}

/* Counts what follows what. THROUGH and OUT get the numbers of the transitions. */
static int
count_transitions(const struct plumb_states_input *in, const uint32_t *state, uint32_t *through,
                  uint32_t *out, struct pairs *pairs)
{
	uint32_t at = 0;

	for (uint32_t r = 0; r < in->round_count; r++) {
		uint32_t last = PLUMB_STATES_BEGIN;

		for (int32_t i = in->rounds[r].start; i < in->rounds[r].end; i++, at++) {
			through[at] = count_pair(pairs, last, state[at], 1);
			if (through[at] == PLUMB_STATES_NONE)
				return PLUMB_ESYSTEM;
			last = state[at];
		}
		out[r] = count_pair(pairs, last, PLUMB_STATES_END, 1);
		if (out[r] == PLUMB_STATES_NONE)
			return PLUMB_ESYSTEM;
	}
	return 0;
}

/* ---- segments ---- */

struct segments {
	uint32_t states;         /* with their history */
	uint32_t *next, *before; /* by these: the only follower, and what alone comes before */
	uint32_t *ways_out, *ways_in;
	uint32_t *segment, *within; /* where each state went */
};

static int
new_segments(uint32_t states, struct segments *s)
{
	uint32_t **const all[] = { &s->next,    &s->before,  &s->ways_out,
		                   &s->ways_in, &s->segment, &s->within };

	*s = (struct segments){ .states = states };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!(*all[i] = calloc((size_t)states + 1, sizeof **all[i])))
			return PLUMB_ESYSTEM;
	return 0;
}

static void
free_segments(struct segments *s)
{
	free(s->next);
	free(s->before);
	free(s->ways_out);
	free(s->ways_in);
	free(s->segment);
	free(s->within);
}

/* Does A become one segment with what follows it? */
static bool
goes_on(const struct segments *s, uint32_t a)
{
	uint32_t b = s->next[a];

	return a >= PLUMB_STATES_FIRST && b >= PLUMB_STATES_FIRST && s->ways_out[a] == 1 &&
	       s->ways_in[b] == 1 && a != b;
}

/* Finds the segments; returns how many states there are then. */
static uint32_t
find_segments(const struct pairs *pairs, struct segments *s)
{
	uint32_t count = PLUMB_STATES_FIRST;

	for (uint32_t i = 0; i < pairs->items.count; i++) {
		const struct pair *pair = &pairs->items.items[i];

		s->ways_out[pair->a]++;
		s->ways_in[pair->b]++;
		s->next[pair->a] = pair->b;
		s->before[pair->b] = pair->a;
	}
	s->segment[PLUMB_STATES_END] = PLUMB_STATES_END;
	for (uint32_t a = PLUMB_STATES_FIRST; a < s->states; a++) {
		uint32_t place = 0;

		if (s->ways_in[a] == 1 && s->next[s->before[a]] == a && goes_on(s, s->before[a]))
			continue;
		s->segment[a] = count;
		for (uint32_t b = a; goes_on(s, b); b = s->next[b]) {
			s->segment[s->next[b]] = count;
			s->within[s->next[b]] = ++place;
		}
		count++;
	}
	return count;
}

/* Puts segments in the place of the states of all places, and their symbols into the list. */
static int
take_segments(const struct plumb_states_input *in, const struct segments *s, uint32_t count,
              struct plumb_states *to)
{
	uint32_t at = 0, first = 0;

	to->items = calloc(count, sizeof *to->items);
	to->symbols = calloc((size_t)s->states + 1, sizeof *to->symbols);
	if (!to->items || !to->symbols)
		return PLUMB_ESYSTEM;
	to->count = count;
	for (uint32_t a = PLUMB_STATES_FIRST; a < s->states; a++)
		to->items[s->segment[a]].length++;
	for (uint32_t i = PLUMB_STATES_FIRST; i < count; i++) {
		to->items[i].first = first;
		first += to->items[i].length;
	}
	to->items[PLUMB_STATES_BEGIN].count = to->items[PLUMB_STATES_END].count = in->round_count;
	for (uint32_t r = 0; r < in->round_count; r++)
		for (int32_t i = in->rounds[r].start; i < in->rounds[r].end; i++, at++) {
			uint32_t own = to->state[at];
			struct plumb_state *item = &to->items[s->segment[own]];

			to->state[at] = s->segment[own];
			to->within[at] = s->within[own];
			item->count += !s->within[own];
			to->symbols[item->first + s->within[own]] = in->text[i];
		}
	return 0;
}

/* Keeps the transitions between segments, and gives them their new numbers. */
static int
take_transitions(const struct plumb_states_input *in, const struct segments *s,
                 const struct pairs *pairs, struct plumb_states *to)
{
	uint32_t *number = calloc((size_t)pairs->items.count + 1, sizeof *number);

	to->transitions = calloc((size_t)pairs->items.count + 1, sizeof *to->transitions);
	if (!number || !to->transitions) {
		free(number);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < pairs->items.count; i++) {
		const struct pair *pair = &pairs->items.items[i];

		number[i] = goes_on(s, pair->a) ? PLUMB_STATES_NONE : to->transition_count;
		if (number[i] != PLUMB_STATES_NONE)
			to->transitions[to->transition_count++] =
				(struct plumb_transition){ s->segment[pair->a], s->segment[pair->b],
				                           pair->count };
	}
	for (uint32_t i = 0; i < to->places; i++)
		to->through[i] = number[to->through[i]];
	for (uint32_t r = 0; r < in->round_count; r++)
		to->out[r] = number[to->out[r]];
	free(number);
	return 0;
}

static int
find_with(const struct plumb_states_input *in, uint32_t history, struct plumb_states *to)
{
	struct pairs pairs = { 0 };
	struct segments s = { 0 };
	uint32_t states = 0, places = 0;
	int code = PLUMB_ESYSTEM;

	for (uint32_t r = 0; r < in->round_count; r++)
		places += (uint32_t)(in->rounds[r].end - in->rounds[r].start);
	*to = (struct plumb_states){ .history = history, .places = places };
	to->state = calloc((size_t)places + 1, sizeof *to->state);
	to->within = calloc((size_t)places + 1, sizeof *to->within);
	to->through = calloc((size_t)places + 1, sizeof *to->through);
	to->out = calloc((size_t)in->round_count + 1, sizeof *to->out);
	if (to->state && to->within && to->through && to->out)
		code = take_symbols(in, to->state, &states);
	for (uint32_t h = 1; !code && h <= history; h++)
		code = refine(in, h, to->state, &states);
	if (!code)
		code = count_transitions(in, to->state, to->through, to->out, &pairs);
	if (!code)
		code = new_segments(states, &s);
	if (!code)
		code = take_segments(in, &s, find_segments(&pairs, &s), to);
	if (!code)
		code = take_transitions(in, &s, &pairs, to);
	free_pairs(&pairs);
	free_segments(&s);
	return code;
}

/* ---- no more than so many ---- */

struct heavy {
	int64_t weight;
	uint32_t state;
};

static int
by_weight(const void *x, const void *y)
{
	const struct heavy *a = x, *b = y;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->state > b->state) - (a->state < b->state);
}

/* TO[state] becomes its new number: the KEPT heaviest in their order, all others the one behind. */
static int
choose_heaviest(const struct plumb_states_input *in, const struct plumb_states *states,
                uint32_t kept, uint32_t *to)
{
	struct heavy *all = calloc((size_t)states->count + 1, sizeof *all);
	uint32_t at = 0, next = PLUMB_STATES_FIRST;

	if (!all)
		return PLUMB_ESYSTEM;
	for (uint32_t s = 0; s < states->count; s++) {
		all[s].state = s;
		to[s] = kept;
	}
	for (uint32_t r = 0; r < in->round_count; r++)
		for (int32_t i = in->rounds[r].start; i < in->rounds[r].end; i++, at++) {
			int64_t *sum = &all[states->state[at]].weight;

			if (__builtin_add_overflow(*sum, in->weights ? in->weights[i] : 1, sum))
				*sum = INT64_MAX;
		}
	qsort(all + PLUMB_STATES_FIRST, states->count - PLUMB_STATES_FIRST, sizeof *all, by_weight);
	for (uint32_t i = PLUMB_STATES_FIRST; i < kept; i++)
		to[all[i].state] = 0;
	to[PLUMB_STATES_BEGIN] = PLUMB_STATES_BEGIN;
	to[PLUMB_STATES_END] = PLUMB_STATES_END;
	for (uint32_t s = PLUMB_STATES_FIRST; s < states->count; s++)
		to[s] = to[s] == kept ? kept : next++;
	free(all);
	return 0;
}

/* Numbers the transitions between NEW states. */
static int
join_transitions(const struct plumb_states_input *in, const uint32_t *to,
                 struct plumb_states *states)
{
	struct pairs pairs = { 0 };
	uint32_t *number = calloc((size_t)states->transition_count + 1, sizeof *number);
	int code = number ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; !code && i < states->transition_count; i++) {
		const struct plumb_transition *one = &states->transitions[i];

		number[i] = count_pair(&pairs, to[one->from], to[one->to], one->count);
		code = number[i] == PLUMB_STATES_NONE ? PLUMB_ESYSTEM : 0;
	}
	for (uint32_t i = 0; !code && i < states->places; i++)
		if (states->through[i] != PLUMB_STATES_NONE)
			states->through[i] = number[states->through[i]];
	for (uint32_t r = 0; !code && r < in->round_count; r++)
		states->out[r] = number[states->out[r]];
	states->transition_count = pairs.items.count;
	for (uint32_t i = 0; !code && i < pairs.items.count; i++) {
		const struct pair *pair = &pairs.items.items[i];

		states->transitions[i] = (struct plumb_transition){ pair->a, pair->b, pair->count };
	}
	free_pairs(&pairs);
	free(number);
	return code;
}

/* Makes one of those that matter least. */
static int
join_lightest(const struct plumb_states_input *in, struct plumb_states *states)
{
	uint32_t kept = in->most - 1, *to = calloc((size_t)states->count + 1, sizeof *to);
	struct plumb_state others = { 0 };
	int code = to ? choose_heaviest(in, states, kept, to) : PLUMB_ESYSTEM;

	if (!code)
		code = join_transitions(in, to, states);
	for (uint32_t i = 0; !code && i < states->places; i++) {
		states->state[i] = to[states->state[i]];
		if (states->state[i] == kept)
			states->within[i] = 0;
	}
	for (uint32_t s = 0; !code && s < states->count; s++) {
		if (to[s] == kept)
			others.count += states->items[s].count;
		else
			states->items[to[s]] = states->items[s]; /* never further back */
	}
	if (!code) {
		states->joined = states->count - kept;
		states->items[kept] = others;
		states->count = kept + 1;
	}
	free(to);
	return code;
}

/* ---- the one to show ---- */

static bool
is_better(const struct plumb_states *a, const struct plumb_states *b, uint32_t most)
{
	bool fits_a = !most || a->count <= most, fits_b = !most || b->count <= most;

	if (fits_a != fits_b)
		return fits_a;
	return a->count + a->transition_count < b->count + b->transition_count;
}

int
plumb_states_find(const struct plumb_states_input *input, struct plumb_states *states)
{
	uint32_t first = input->history < 0 ? 0 : (uint32_t)input->history;
	uint32_t last = input->history < 0 ? PLUMB_STATES_HISTORY_MOST : first;
	int code = find_with(input, first, states);

	for (uint32_t history = first + 1; !code && history <= last; history++) {
		struct plumb_states other;

		code = find_with(input, history, &other);
		if (!code && is_better(&other, states, input->most)) {
			plumb_states_free(states);
			*states = other;
		} else {
			plumb_states_free(&other);
		}
	}
	if (!code && input->most && states->count > input->most)
		code = join_lightest(input, states);
	return code;
}

void
plumb_states_free(struct plumb_states *states)
{
	free(states->items);
	free(states->symbols);
	free(states->transitions);
	free(states->state);
	free(states->within);
	free(states->through);
	free(states->out);
	*states = (struct plumb_states){ 0 };
}
