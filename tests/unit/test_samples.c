/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread computed where it has no span: stretches shared out by samples of CPU time, made by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/steps/moments.h"
#include "analyze/steps/words.h"
#include "model/builder.h"

enum { PERIOD = 100 };

/* A process with a thread whose spans and samples a test adds: `call` at a line of `main`; `burn`
 * and `parse` are functions of the person's own without spans, `sleep` one of a library. */
struct scene {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	struct plumb_moments_shared shared;
	struct plumb_moments moments;
	struct plumb_step_rows rows;
	uint32_t *user_of;
	uint32_t process, device, thread, other, stream;
	uint32_t call, range, kernel, burn, burn_too, parse, library; /* contexts */
};

static uint32_t
context(struct scene *s, uint32_t parent, enum plumb_frame_kind kind, const char *name,
        const char *file, uint32_t line)
{
	struct plumb_builder *b = s->builder;

	return plumb_builder_context(b, parent,
	                             plumb_builder_frame(b, kind, plumb_builder_text(b, name),
	                                                 plumb_builder_text(b, file), line),
	                             0);
}

static void
begin(struct scene *s)
{
	*s = (struct scene){ .builder = plumb_builder_new() };
	struct plumb_builder *b = s->builder;
	struct plumb_process process = { .pid = 1, .host = PLUMB_NONE, .command = PLUMB_NONE };
	struct plumb_device device = { .name = PLUMB_NONE, .uuid = PLUMB_NONE };

	s->process = plumb_builder_process(b, &process);
	s->device = plumb_builder_device(b, &device);
	struct plumb_track track = { .kind = PLUMB_TRACK_THREAD,
		                     .process = s->process,
		                     .device = PLUMB_NONE,
		                     .name = PLUMB_NONE,
		                     .tid = 1 };
	s->thread = plumb_builder_track(b, &track);
	track.tid = 2;
	s->other = plumb_builder_track(b, &track);
	track.kind = PLUMB_TRACK_STREAM;
	track.device = s->device;
	s->stream = plumb_builder_track(b, &track);
	uint32_t main_ = context(s, 0, PLUMB_FRAME_PYTHON, "main", "train.py", 3);
	s->call = context(s, main_, PLUMB_FRAME_GPU_API, "cuLaunchKernel", NULL, 0);
	s->kernel = context(s, s->call, PLUMB_FRAME_KERNEL, "gemm", NULL, 0);
	s->range = context(s, main_, PLUMB_FRAME_RANGE, "load", NULL, 0);
	s->burn = context(s, main_, PLUMB_FRAME_PYTHON, "burn", "train.py", 20);
	s->burn_too = context(s, main_, PLUMB_FRAME_PYTHON, "burn", "train.py", 21);
	s->parse = context(s, main_, PLUMB_FRAME_PYTHON, "parse", "train.py", 30);
	s->library = context(s, s->parse, PLUMB_FRAME_PYTHON, "loads", "json.py", 7);
}

static void
span(struct scene *s, uint32_t at, int64_t start, int64_t end)
{
	assert_int_equal(plumb_builder_span(s->builder, &(struct plumb_span){ .context = at,
	                                                                      .track = s->thread,
	                                                                      .start_ns = start,
	                                                                      .end_ns = end,
	                                                                      .correlation = 7 }),
	                 0);
}

static void
sample(struct scene *s, uint32_t at, int64_t when, int64_t ns)
{
	struct plumb_cpu_sample row = { s->thread, at, when, ns };

	assert_int_equal(plumb_builder_cpu_sample(s->builder, &row), 0);
}

/* Every PERIOD a sample at AT of as much CPU time, from after FROM up to TO. */
static void
busy(struct scene *s, uint32_t at, int64_t from, int64_t to)
{
	for (int64_t when = from + PERIOD; when <= to; when += PERIOD)
		sample(s, at, when, PERIOD);
}

static void
finish(struct scene *s)
{
	struct plumb_error error;

	assert_int_equal(plumb_builder_finish(s->builder, &s->profile, &error), 0);
	const struct plumb_profile *p = &s->profile;
	s->user_of = malloc(p->contexts_count * sizeof *s->user_of);
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);
		const char *file = plumb_text(p, frame->file);

		s->user_of[c] = c ? s->user_of[p->contexts[c].parent] : PLUMB_NONE;
		if (file && !strcmp(file, "train.py"))
			s->user_of[c] = p->contexts[c].frame;
	}
	assert_int_equal(plumb_moments_share(p, s->user_of, NULL, &s->shared), 0);
	assert_int_equal(
		plumb_moments_new(&s->shared, s->device, s->process, PLUMB_NONE, &s->moments), 0);
}

/* What the thread did from FROM to TO, all of which is told. */
static void
tell(struct scene *s, int64_t from, int64_t to)
{
	int64_t sum = 0;

	s->rows.count = 0;
	assert_int_equal(plumb_moments_host(&s->moments, s->thread, from, to, &s->rows), 0);
	plumb_step_rows_sum(&s->rows);
	for (uint32_t r = 0; r < s->rows.count; r++) {
		assert_true(s->rows.items[r].ns >= 0);
		sum += s->rows.items[r].ns;
	}
	assert_int_equal(sum, to - from);
}

/* The row whose words begin with TEXT; NULL: there is none with any time. */
static const struct plumb_step_row *
find(struct scene *s, const char *text)
{
	char name[300];

	for (uint32_t r = 0; r < s->rows.count; r++) {
		const struct plumb_step_row *row = &s->rows.items[r];

		plumb_step_name(&s->moments, &s->moments.keys.items[row->key], name, sizeof name);
		if (row->ns && !strncmp(name, text, strlen(text)))
			return row;
	}
	return NULL;
}

static int64_t
ns_of(struct scene *s, const char *text)
{
	const struct plumb_step_row *row = find(s, text);

	return row ? row->ns : 0;
}

static void
done(struct scene *s)
{
	plumb_moments_free(&s->moments);
	plumb_moments_unshare(&s->shared);
	plumb_vec_free(&s->rows);
	plumb_profile_free(&s->profile);
	plumb_builder_free(s->builder);
	free(s->user_of);
}

/* ---- long stretches ---- */

static void
test_computing(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 1000);
	busy(&s, s.call, 0, 1000); /* in a span the span counts */
	busy(&s, s.burn, 1000, 7000);
	busy(&s, s.library, 7000, 9000);
	sample(&s, s.burn, 9050, 50);
	span(&s, s.call, 9000, 9100);
	finish(&s);
	tell(&s, 0, 9100);
	assert_int_equal(ns_of(&s, "cuLaunchKernel"), 1100);
	/* The last sample of the stretch lies on its end, and so outside. */
	assert_int_equal(ns_of(&s, "burn at train.py:20 (CPU samples)") +
	                         ns_of(&s, "loads at train.py:30 (CPU samples)"),
	                 8000);
	assert_in_range(ns_of(&s, "burn"), 5900, 6100);
	assert_int_equal(find(&s, "burn")->count, 60);
	assert_int_equal(find(&s, "loads")->count, 19);
	assert_null(find(&s, "nothing recorded"));
	/* A part of it. */
	tell(&s, 2000, 5000);
	assert_int_equal(ns_of(&s, "burn"), 3000);
	done(&s);
}

static void
test_sleeping(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 1000);
	busy(&s, s.burn, 1000, 3000);
	busy(&s, s.parse, 8000, 9000);
	span(&s, s.call, 9000, 9100);
	span(&s, s.call, 19100, 19200); /* without a sample before it */
	sample(&s, s.call, 19150, 50);
	finish(&s);
	tell(&s, 0, 19200);
	assert_int_equal(ns_of(&s, "burn"), 2000);
	assert_in_range(ns_of(&s, "parse"), 900, 1000);
	assert_int_equal(ns_of(&s, "nothing recorded, at train.py:3"),
	                 19200 - 1200 - ns_of(&s, "burn") - ns_of(&s, "parse"));
	tell(&s, 9100, 19100);
	assert_int_equal(s.rows.count, 1);
	assert_int_equal(ns_of(&s, "nothing recorded, at train.py:3"), 10000);
	done(&s);
}

/* The first sample tells of what was before the stretch too, the one after it of its end. */
static void
test_ends(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 1060);
	busy(&s, s.call, 0, 1000);
	busy(&s, s.burn, 1000, 1900);
	span(&s, s.call, 1960, 2100);
	sample(&s, s.call, 2000, PERIOD);
	finish(&s);
	tell(&s, 1060, 1960);
	assert_int_equal(ns_of(&s, "burn"), 900);
	done(&s);
	/* Not when the thread slept from the last sample on, and computed only in the call. */
	begin(&s);
	span(&s, s.call, 0, 1060);
	busy(&s, s.call, 0, 1000);
	busy(&s, s.burn, 1000, 1900);
	span(&s, s.call, 1960, 2100);
	sample(&s, s.call, 2000, 40);
	finish(&s);
	tell(&s, 1060, 1960);
	assert_int_equal(ns_of(&s, "burn"), 840 + 24); /* evenly */
	assert_int_equal(ns_of(&s, "nothing recorded"), 36);
	done(&s);
}

static void
test_ranges_own_time(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 100);
	span(&s, s.range, 100, 3100);
	busy(&s, s.parse, 100, 1600);
	span(&s, s.call, 3100, 3200);
	finish(&s);
	tell(&s, 100, 3100);
	assert_in_range(ns_of(&s, "parse at train.py:30"), 1500, 1500);
	assert_int_equal(ns_of(&s, "nothing recorded within load"), 1500);
	done(&s);
}

/* Before the first span of the thread, and after its last. */
static void
test_outside_of_all_spans(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	busy(&s, s.burn, 0, 5000);
	span(&s, s.call, 5000, 5100);
	busy(&s, s.parse, 5100, 8000);
	finish(&s);
	tell(&s, 0, 8001);
	assert_in_range(ns_of(&s, "burn"), 4900, 5000);
	assert_in_range(ns_of(&s, "parse"), 2850,
	                2901); /* which of it was in the span is not known */
	done(&s);
}

/* On a busy machine samples come late: what was computed in a stretch is told by one after it, and
 * the names by other stretches between the same lines. */
static void
test_late_samples(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 1);
	busy(&s, s.burn, 0, 20000);
	span(&s, s.call, 20001, 20002);
	span(&s, s.call, 22000, 22001);
	sample(&s, s.call, 22000, 2000);
	span(&s, s.call, 24000, 24001); /* not more than a sample has by chance */
	sample(&s, s.call, 24000, 90);
	finish(&s);
	tell(&s, 20002, 22000);
	assert_in_range(ns_of(&s, "burn"), 1995, 1998);
	tell(&s, 22001, 24000);
	assert_int_equal(ns_of(&s, "nothing recorded"), 1999);
	done(&s);
}

/* The lines of a function are one row, with the line that most samples met. */
static void
test_lines_of_a_function(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 10);
	busy(&s, s.burn, 0, 1000);
	busy(&s, s.burn_too, 1000, 3000);
	span(&s, s.call, 3001, 3010);
	sample(&s, s.call, 3005, 5);
	finish(&s);
	tell(&s, 10, 3001);
	assert_int_equal(s.rows.count, 1);
	assert_int_equal(ns_of(&s, "burn at train.py:21"), 2991);
	assert_int_equal(
		s.profile.frames[plumb_step_line(&s.moments.keys.items[s.rows.items[0].key])].line,
		21);
	done(&s);
}

/* ---- short ones ---- */

/* A thousand gaps of half a period between calls as long: each holds a sample now and then, and all
 * together as many as they should. A QUARTER: only each fourth is computed through. */
static void
check_short(bool quarter)
{
	struct scene s;
	int64_t cpu = 0, told = 0;

	begin(&s);
	for (int64_t i = 0, met = 0; i < 1000; i++) {
		int64_t at = i * PERIOD;
		bool computes = !quarter || i % 4 == 0;

		span(&s, s.call, at, at + PERIOD / 2);
		for (int64_t ns = 0; ns < PERIOD; ns++) {
			bool gap = ns >= PERIOD / 2;

			cpu += !gap || computes;
			/* Samples wander through the calls and gaps. */
			if (cpu - met < PERIOD + 7 || !(!gap || computes))
				continue;
			sample(&s, gap ? s.burn : s.call, at + ns, cpu - met);
			met = cpu;
		}
	}
	span(&s, s.call, 1000 * PERIOD, 1000 * PERIOD + 1);
	finish(&s);
	tell(&s, 0, 1000 * PERIOD);
	told = ns_of(&s, "burn");
	if (quarter)
		assert_in_range(told, 1000 * PERIOD / 8 * 85 / 100, 1000 * PERIOD / 8 * 115 / 100);
	else
		assert_in_range(told, 1000 * PERIOD / 2 * 95 / 100, 1000 * PERIOD / 2);
	/* Each gap has the shares of all, as far as it can have computed. */
	tell(&s, 70 * PERIOD + PERIOD / 2, 71 * PERIOD);
	assert_in_range(ns_of(&s, "burn"), 1, PERIOD / 2);
	done(&s);
}

static void
test_short_gaps(void **state)
{
	(void)state;
	check_short(false);
	check_short(true);
}

/* A part of a long gap has the shares of what lies around it there. */
static void
test_part_of_a_gap(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 10);
	busy(&s, s.burn, 0, 5000);
	span(&s, s.call, 20000, 20010);
	sample(&s, s.call, 20005, 5);
	finish(&s);
	tell(&s, 3010, 3020);
	assert_int_equal(ns_of(&s, "burn"), 10);
	tell(&s, 15010, 15020);
	assert_int_equal(ns_of(&s, "nothing recorded"), 10);
	done(&s);
}

/* A gap as others, but longer than a period: it cannot hold more CPU time than the sample after it
 * has. */
static void
test_sleep_in_a_gap_like_others(void **state)
{
	struct scene s;
	int64_t at = 0;

	(void)state;
	begin(&s);
	for (int i = 0; i < 50; i++, at += PERIOD) {
		span(&s, s.call, at, at + 10);
		sample(&s, s.burn, at + PERIOD - 5, PERIOD);
	}
	span(&s, s.call, at, at + 10);
	span(&s, s.call, at + 10 + 3 * PERIOD, at + 20 + 3 * PERIOD);
	sample(&s, s.call, at + 20 + 3 * PERIOD, 25);
	finish(&s);
	tell(&s, PERIOD + 10, 2 * PERIOD);
	assert_int_equal(ns_of(&s, "burn"), PERIOD - 10);
	tell(&s, at + 10, at + 10 + 3 * PERIOD);
	assert_in_range(ns_of(&s, "burn"), 0, 25);
	assert_true(ns_of(&s, "nothing recorded") >= 3 * PERIOD - 25);
	done(&s);
}

/* ---- others ---- */

static void
test_no_samples(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	span(&s, s.call, 0, 10);
	span(&s, s.call, 2000, 2010);
	struct plumb_cpu_sample elsewhere = { s.other, s.burn, 1000, 1000 };
	plumb_builder_cpu_sample(s.builder, &elsewhere);
	finish(&s);
	tell(&s, 0, 2010);
	assert_int_equal(s.rows.count, 2);
	assert_int_equal(ns_of(&s, "nothing recorded, at train.py:3"), 1990);
	done(&s);
}

/* Times without sense: all is told once all the same (tell), and nothing overflows. */
static void
test_any(void **state)
{
	static const int64_t odd[] = { INT64_MIN + 1, -PLUMB_TIME_MOST, 0,        PLUMB_TIME_MOST,
		                       INT64_MAX,     INT64_MAX / 2,    INT64_MAX };

	(void)state;
	srand(5);
	for (int turn = 0; turn < 200; turn++) {
		struct scene s;
		int64_t at = 0;

		begin(&s);
		for (int i = 0; i < 30; i++) {
			int64_t start = at + rand() % 300;

			at = start + rand() % 100;
			span(&s, rand() % 3 ? s.call : s.range, start, at);
		}
		for (int i = 0; i < 60; i++) {
			int64_t when = rand() % 8 ? rand() % (at + 200) : odd[rand() % 7];
			int64_t ns = rand() % 8 ? rand() % 200 : odd[rand() % 5 + 2];
			uint32_t where[] = { s.burn, s.parse, s.library, s.call, 0 };

			sample(&s, where[rand() % 5], when, ns);
		}
		finish(&s);
		for (int i = 0; i < 20; i++) {
			int64_t from = rand() % (at + 1);

			tell(&s, from, from + rand() % 2000);
		}
		tell(&s, -PLUMB_TIME_MOST + 1, PLUMB_TIME_MOST - 1);
		done(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_computing),
		cmocka_unit_test(test_sleeping),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_ranges_own_time),
		cmocka_unit_test(test_outside_of_all_spans),
		cmocka_unit_test(test_late_samples),
		cmocka_unit_test(test_lines_of_a_function),
		cmocka_unit_test(test_short_gaps),
		cmocka_unit_test(test_part_of_a_gap),
		cmocka_unit_test(test_sleep_in_a_gap_like_others),
		cmocka_unit_test(test_no_samples),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
