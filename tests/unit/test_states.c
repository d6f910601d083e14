/* SPDX-License-Identifier: Apache-2.0 */
/* The state graph of a loop: small ones by hand, random ones against a slow reference that follows
 * the definition, and the times of a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/pattern/states.h"
#include "failing_malloc.h"
#include "model/builder.h"
#include "view/view.h"

/* ---- a slow reference ---- */

#define PLACES 200
#define ROUNDS 20

struct slow {
	const struct plumb_states_input *in;
	uint32_t history, places;
	int32_t text[PLACES];
	uint32_t in_round[PLACES]; /* how many symbols of its round come before it */
	bool last[PLACES];         /* of its round */
};

static void
slow_new(struct slow *s, const struct plumb_states_input *in, uint32_t history)
{
	*s = (struct slow){ .in = in, .history = history };
	for (uint32_t r = 0; r < in->round_count; r++)
		for (int32_t i = in->rounds[r].start; i < in->rounds[r].end; i++) {
			s->text[s->places] = in->text[i];
			s->in_round[s->places] = (uint32_t)(i - in->rounds[r].start);
			s->last[s->places++] = i + 1 == in->rounds[r].end;
		}
}

/* Are A and B the same symbol with the same history? */
static bool
slow_same(const struct slow *s, uint32_t a, uint32_t b)
{
	for (uint32_t h = 0; h <= s->history; h++) {
		bool has_a = s->in_round[a] >= h, has_b = s->in_round[b] >= h;

		if (has_a != has_b)
			return false;
		if (has_a && s->text[a - h] != s->text[b - h])
			return false;
	}
	return true;
}

/* Is what follows place A always the same, and does nothing else come before that? */
static bool
slow_goes_on(const struct slow *s, uint32_t a)
{
	uint32_t next = a + 1;

	if (s->last[a])
		return false;
	for (uint32_t i = 0; i < s->places; i++) {
		if (slow_same(s, i, a) && (s->last[i] || !slow_same(s, i + 1, next)))
			return false;
		if (slow_same(s, i, next) && (!s->in_round[i] || !slow_same(s, i - 1, a)))
			return false;
	}
	return !slow_same(s, a, next);
}

static void
compare_slow(const struct plumb_states_input *in, const struct plumb_states *states)
{
	struct slow s;
	uint32_t within[PLACES], segments = 0;

	slow_new(&s, in, states->history);
	assert_int_equal(states->places, s.places);
	for (uint32_t i = 0; i < s.places; i++) {
		bool inside = s.in_round[i] && slow_goes_on(&s, i - 1);
		uint32_t head = 0, count = 0;

		within[i] = inside ? within[i - 1] + 1 : 0;
		assert_int_equal(states->within[i], within[i]);
		for (; head < i && !slow_same(&s, head, i - within[i]); head++)
			;
		/* Segments are numbered by where they come first. */
		if (head == i)
			segments++;
		assert_int_equal(states->state[i], head == i ? segments + 1 : states->state[head]);
		assert_true((states->through[i] == PLUMB_STATES_NONE) == inside);
		const struct plumb_state *state = &states->items[states->state[i]];
		assert_int_equal(states->symbols[state->first + within[i]], s.text[i]);
		assert_true(within[i] < state->length);
		for (uint32_t k = 0; k < s.places; k++)
			count += slow_same(&s, k, i - within[i]);
		assert_int_equal(state->count, count);
	}
	assert_int_equal(states->count, segments + PLUMB_STATES_FIRST);
	/* Every transition: between places, from a begin, to an end. */
	uint64_t counted[3 * PLACES] = { 0 };
	for (uint32_t i = 0, r = 0; i < s.places; i++) {
		if (!s.in_round[i] || states->through[i] != PLUMB_STATES_NONE) {
			const struct plumb_transition *t = &states->transitions[states->through[i]];

			assert_int_equal(t->to, states->state[i]);
			assert_int_equal(t->from,
			                 s.in_round[i] ? states->state[i - 1] : PLUMB_STATES_BEGIN);
			counted[states->through[i]]++;
		}
		if (s.last[i]) {
			const struct plumb_transition *t = &states->transitions[states->out[r]];

			assert_int_equal(t->from, states->state[i]);
			assert_int_equal(t->to, PLUMB_STATES_END);
			counted[states->out[r++]]++;
		}
	}
	for (uint32_t n = 0; n < states->transition_count; n++) {
		const struct plumb_transition *t = &states->transitions[n];

		assert_int_equal(t->count, counted[n]);
		for (uint32_t k = 0; k < n; k++)
			assert_true(states->transitions[k].from != t->from ||
			            states->transitions[k].to != t->to);
	}
}

/* ---- sequences ---- */

static void
find(const struct plumb_states_input *in, struct plumb_states *states)
{
	assert_int_equal(plumb_states_find(in, states), 0);
}

static void
test_by_hand(void **state)
{
	/* a b c b c d | a b c d */
	const int32_t text[] = { 0, 1, 2, 1, 2, 3, 9, 0, 1, 2, 3 };
	const struct plumb_round rounds[] = { { 0, 6, 0 }, { 7, 11, 0 } };
	struct plumb_states_input in = { .text = text, .rounds = rounds, .round_count = 2 };
	struct plumb_states states;

	(void)state;
	find(&in, &states); /* a, bc, d */
	assert_int_equal(states.count, 5);
	assert_int_equal(states.items[3].length, 2);
	assert_int_equal(states.items[3].count, 3);
	assert_int_equal(states.symbols[states.items[3].first], 1);
	assert_int_equal(states.symbols[states.items[3].first + 1], 2);
	assert_int_equal(states.transition_count, 5);
	assert_int_equal(states.transitions[2].from, 3); /* bc again */
	assert_int_equal(states.transitions[2].to, 3);
	assert_int_equal(states.transitions[2].count, 1);
	compare_slow(&in, &states);
	plumb_states_free(&states);
	in.history = 1; /* the b after c is another one than the b after a */
	find(&in, &states);
	assert_int_equal(states.history, 1);
	compare_slow(&in, &states);
	plumb_states_free(&states);
}

static void
test_one_round_is_one_segment(void **state)
{
	const int32_t text[] = { 4, 2, 7 };
	const struct plumb_round round = { 0, 3, 0 };
	const struct plumb_states_input in = { .text = text, .rounds = &round, .round_count = 1 };
	struct plumb_states states;

	(void)state;
	find(&in, &states);
	assert_int_equal(states.count, 3);
	assert_int_equal(states.items[2].length, 3);
	assert_int_equal(states.transition_count, 2);
	plumb_states_free(&states);
}

/* Rounds of a random pattern with changes, so that there are segments. */
static void
random_rounds(int32_t *text, struct plumb_round *rounds, uint32_t *count)
{
	int32_t pattern[16], period = 1 + rand() % 16, alphabet = 1 + rand() % 9, at = 0;

	*count = 1 + (uint32_t)(rand() % ROUNDS);
	for (int32_t i = 0; i < period; i++)
		pattern[i] = rand() % alphabet;
	for (uint32_t r = 0; r < *count; r++) {
		rounds[r] = (struct plumb_round){ at, at, 0 };
		for (int32_t i = 0; i < period && at < PLACES - 20; i++) {
			if (rand() % 20 == 0)
				continue;
			text[at++] = rand() % 20 ? pattern[i] : rand() % alphabet;
		}
		if (at == rounds[r].start)
			text[at++] = 0;
		rounds[r].end = at;
		at += at < PLACES - 20 ? rand() % 2 : 0; /* a symbol of no round */
		if (at >= PLACES - 20)
			*count = r + 1;
	}
}

static void
test_random(void **state)
{
	int32_t text[PLACES] = { 0 };
	struct plumb_round rounds[ROUNDS];

	(void)state;
	srand(7);
	for (int turn = 0; turn < 400; turn++) {
		struct plumb_states_input in = { .text = text, .rounds = rounds };
		struct plumb_states states, best;
		uint32_t least = UINT32_MAX;

		random_rounds(text, rounds, &in.round_count);
		for (in.history = 0; in.history <= PLUMB_STATES_HISTORY_MOST; in.history++) {
			find(&in, &states);
			compare_slow(&in, &states);
			if (states.count + states.transition_count < least)
				least = states.count + states.transition_count;
			plumb_states_free(&states);
		}
		in.history = -1;
		find(&in, &best);
		assert_int_equal(best.count + best.transition_count, least);
		plumb_states_free(&best);
	}
}

/* What is counted stays the same, however few states there may be. */
static void
test_joined(void **state)
{
	int32_t text[PLACES] = { 0 };
	struct plumb_round rounds[ROUNDS];

	(void)state;
	srand(8);
	for (int turn = 0; turn < 300; turn++) {
		struct plumb_states_input in = { .text = text, .rounds = rounds, .history = 1 };
		struct plumb_states whole, some;
		uint64_t visits = 0, transitions = 0;

		random_rounds(text, rounds, &in.round_count);
		find(&in, &whole);
		in.most = 4 + (uint32_t)(rand() % 6);
		find(&in, &some);
		assert_true(some.count <= in.most);
		assert_int_equal(some.joined,
		                 whole.count > in.most ? whole.count - in.most + 1 : 0);
		for (uint32_t s = 0; s < whole.count; s++)
			visits += whole.items[s].count;
		for (uint32_t s = 0; s < some.count; s++)
			visits -= some.items[s].count;
		assert_int_equal(visits, 0);
		for (uint32_t t = 0; t < whole.transition_count; t++)
			transitions += whole.transitions[t].count;
		for (uint32_t t = 0; t < some.transition_count; t++) {
			transitions -= some.transitions[t].count;
			assert_true(some.transitions[t].from < some.count);
			assert_true(some.transitions[t].to < some.count);
		}
		assert_int_equal(transitions, 0);
		for (uint32_t i = 0; i < some.places; i++) {
			const struct plumb_state *s = &some.items[some.state[i]];

			if (s->length)
				assert_int_equal(some.symbols[s->first + some.within[i]],
				                 whole.symbols[whole.items[whole.state[i]].first +
				                               whole.within[i]]);
			else
				assert_int_equal(some.state[i], some.count - 1);
		}
		plumb_states_free(&whole);
		plumb_states_free(&some);
	}
}

static void
test_the_heaviest_stay(void **state)
{
	const int32_t text[] = { 0, 1, 2, 3, 0, 2, 1, 3 };
	const int64_t weights[] = { 1, 9, 1, 7, 1, 1, 9, 7 };
	const struct plumb_round rounds[] = { { 0, 4, 0 }, { 4, 8, 0 } };
	const struct plumb_states_input in = {
		.text = text, .rounds = rounds, .round_count = 2, .weights = weights, .most = 5
	};
	struct plumb_states states;

	(void)state;
	find(&in, &states);
	assert_int_equal(states.count, 5);
	assert_int_equal(states.joined, 2); /* 0 and 2 */
	assert_int_equal(states.symbols[states.items[2].first], 1);
	assert_int_equal(states.symbols[states.items[3].first], 3);
	assert_int_equal(states.items[4].count, 4);
	plumb_states_free(&states);
}

/* Every allocation fails once. */
static void
test_no_memory(void **state)
{
	const int32_t text[] = { 0, 1, 2, 3, 0, 2, 1, 3 };
	const struct plumb_round rounds[] = { { 0, 4, 0 }, { 4, 8, 0 } };
	const struct plumb_states_input in = {
		.text = text, .rounds = rounds, .round_count = 2, .most = 4, .history = -1
	};
	long n = 0;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	for (;; n++) {
		struct plumb_states states;
		int code;

		failing_malloc_at = n;
		code = plumb_states_find(&in, &states);
		if (!failing_malloc_stop()) {
			assert_int_equal(code, 0);
			plumb_states_free(&states);
			break;
		}
		assert_int_equal(code, PLUMB_ESYSTEM);
		plumb_states_free(&states);
	}
	assert_true(n > 20);
}

/* ---- a profile ---- */

enum { ITERATIONS = 8, KERNEL_NS = 100, WAIT_NS = 10, INTERVAL_NS = 500, EACH = 8 };

/* Eight times f, three times a and b, then g. The second a of the third iteration starts late. */
static void
make_profile(struct plumb_profile *profile)
{
	static const char *const names[EACH] = { "f", "a", "b", "a", "b", "a", "b", "g" };
	struct plumb_builder *b = plumb_builder_new();
	int64_t at = 1000;

	plumb_builder_process(b,
	                      &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	plumb_builder_device(b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	plumb_builder_track(
		b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM, .name = PLUMB_NONE });
	for (int i = 0; i < ITERATIONS; i++, at += INTERVAL_NS - WAIT_NS)
		for (int k = 0; k < EACH; k++, at += KERNEL_NS + WAIT_NS) {
			uint32_t frame =
				plumb_builder_frame(b, PLUMB_FRAME_KERNEL,
			                            plumb_builder_text(b, names[k]), PLUMB_NONE, 0);

			at += i == 2 && k == 3 ? 7 : 0;
			assert_int_equal(
				plumb_builder_span(
					b, &(struct plumb_span){ .context = plumb_builder_context(
									 b, 0, frame, 0),
			                                         .start_ns = at,
			                                         .end_ns = at + KERNEL_NS }),
				0);
		}
	assert_int_equal(plumb_builder_finish(b, profile, NULL), 0);
	plumb_builder_free(b);
}

/* The cell of COLUMN in the row of ANSWER whose cells have these values, as many as are not below
 * 0. */
static const struct plumb_answer_cell *
cell(const struct plumb_answer *answer, int64_t first, int64_t second, const char *column)
{
	for (uint32_t r = 0; r < answer->row_count; r++) {
		if (plumb_answer_at(answer, r, 0)->integer != first ||
		    (second >= 0 && plumb_answer_at(answer, r, 1)->integer != second))
			continue;
		for (uint32_t c = 0; c < answer->column_count; c++)
			if (!strcmp(answer->columns[c].name, column))
				return plumb_answer_at(answer, r, c);
	}
	fail_msg("no %s of %d, %d", column, (int)first, (int)second);
	return NULL;
}

static void
test_times_of_a_loop(void **state)
{
	const struct plumb_states_query query = { .with_history = true };
	struct plumb_profile profile = { 0 };
	struct plumb_answer answers[PLUMB_STATES_TABLES];
	const struct plumb_answer *states = &answers[PLUMB_STATES_STATES];
	const struct plumb_answer *ways = &answers[PLUMB_STATES_TRANSITIONS];

	(void)state;
	make_profile(&profile);
	assert_int_equal(plumb_states_answer(&profile, &query, answers, NULL), 0);
	assert_int_equal(states->row_count, 5); /* begin, end, f, ab, g */
	assert_string_equal(cell(states, 2, -1, "name")->text, "f");
	assert_int_equal(cell(states, 3, -1, "kernels")->integer, 2);
	assert_int_equal(cell(states, 3, -1, "count")->integer, 3 * ITERATIONS);
	assert_int_equal(cell(states, 3, -1, "kernel_ns")->integer, 3 * ITERATIONS * 2 * KERNEL_NS);
	assert_int_equal(cell(states, 3, -1, "wait_ns")->integer, 3 * ITERATIONS * WAIT_NS);
	assert_int_equal(cell(states, 3, -1, "min_ns")->integer, 2 * KERNEL_NS + WAIT_NS);
	assert_int_equal(cell(states, 3, -1, "max_ns")->integer, 2 * KERNEL_NS + WAIT_NS);
	assert_true(cell(states, 3, -1, "share")->number == 0.75);
	assert_int_equal(cell(ways, 3, 3, "count")->integer, 2 * ITERATIONS);
	assert_int_equal(cell(ways, 3, 3, "wait_ns")->integer, 2 * ITERATIONS * WAIT_NS + 7);
	assert_int_equal(cell(ways, 3, 3, "max_ns")->integer, WAIT_NS + 7);
	assert_int_equal(cell(ways, 3, 4, "count")->integer, ITERATIONS);
	assert_int_equal(cell(ways, 0, 2, "wait_ns")->type, PLUMB_ANSWER_UNKNOWN);
	assert_int_equal(cell(ways, PLUMB_STATES_END, PLUMB_STATES_BEGIN, "count")->integer,
	                 ITERATIONS - 1);
	assert_int_equal(cell(ways, PLUMB_STATES_END, PLUMB_STATES_BEGIN, "max_ns")->integer,
	                 INTERVAL_NS);
	assert_int_equal(cell(&answers[PLUMB_STATES_TOTAL], 0, -1, "iterations")->integer,
	                 ITERATIONS);
	assert_int_equal(cell(&answers[PLUMB_STATES_KERNELS], 3, 1, "kernel_ns")->integer,
	                 3 * ITERATIONS * KERNEL_NS);
	for (int i = 0; i < PLUMB_STATES_TABLES; i++)
		plumb_answer_free(&answers[i]);
	plumb_profile_free(&profile);
}

static void
test_wrong_queries(void **state)
{
	const struct {
		struct plumb_states_query query;
		int code;
	} cases[] = {
		{ { .with_history = true, .history = 5 }, PLUMB_EUSAGE },
		{ { .most = 3 }, PLUMB_EUSAGE },
		{ { .loop = 2 }, PLUMB_EEMPTY },
		{ { .level = 7 }, PLUMB_EEMPTY },
		{ { .one = true, .track = 9 }, PLUMB_EEMPTY },
	};
	struct plumb_answer answers[PLUMB_STATES_TABLES];
	struct plumb_profile profile = { 0 };

	(void)state;
	make_profile(&profile);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(plumb_states_answer(&profile, &cases[i].query, answers, NULL),
		                 cases[i].code);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_one_round_is_one_segment),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_the_heaviest_stay),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_times_of_a_loop),
		cmocka_unit_test(test_wrong_queries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
