/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs: exact boxes of small profiles, and profiles that are extreme. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden/profiles.h"
#include "failing_malloc.h"
#include "flames.h"
#include "model/metric.h"

/*
 *	main 0 (train.py)
 *	  step 10 (/lib/torch.py)
 *	    mm 20      kernel a 300, kernel b 100
 *	    mm 50 [backward]   kernel a 500
 *	  step2 0 (train.py) → step 0 (/lib/torch.py) → mm 20
 */
static void
make_small(struct plumb_profile *profile)
{
	struct made m = begin();
	uint32_t main = at(&m, 0, PLUMB_FRAME_PYTHON, "main", "train.py", 0);
	uint32_t step = at(&m, main, PLUMB_FRAME_PYTHON, "step", "/lib/torch.py", 0);
	uint32_t mm = at(&m, step, PLUMB_FRAME_OPERATOR, "mm", NULL, 0);
	uint32_t back = at(&m, step, PLUMB_FRAME_OPERATOR, "mm", NULL, PLUMB_CONTEXT_BACKWARD);
	uint32_t other = at(&m, main, PLUMB_FRAME_PYTHON, "step2", "train.py", 0);
	uint32_t inner = at(&m, other, PLUMB_FRAME_PYTHON, "step", "/lib/torch.py", 0);

	value(&m, step, PLUMB_METRIC_OP_TIME, 10);
	value(&m, mm, PLUMB_METRIC_OP_TIME, 20);
	value(&m, back, PLUMB_METRIC_OP_TIME, 50);
	value(&m, at(&m, inner, PLUMB_FRAME_OPERATOR, "mm", NULL, 0), PLUMB_METRIC_OP_TIME, 20);
	value(&m, at(&m, mm, PLUMB_FRAME_KERNEL, "a", NULL, 0), PLUMB_METRIC_GPU_TIME, 300);
	value(&m, at(&m, mm, PLUMB_FRAME_KERNEL, "b", NULL, 0), PLUMB_METRIC_GPU_TIME, 100);
	value(&m, at(&m, back, PLUMB_FRAME_KERNEL, "a", NULL, PLUMB_CONTEXT_BACKWARD),
	      PLUMB_METRIC_GPU_TIME, 500);
	end(&m, profile);
}

/* ---- boxes as text: one line "depth x0-x1 name value/self" each, x in parts of 1000 ---- */

static char *
show(const struct plumb_profile *profile, const struct plumb_flame_query *query)
{
	struct plumb_error error = { 0 };
	struct plumb_flame *flame = plumb_flame_make(profile, query, &error);
	struct plumb_answer a;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!flame || plumb_flame_boxes(flame, &query->range, &a, &error) < 0)
		fail_msg("%s", error.message);
	for (uint32_t r = 0; r < a.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&a, r, 0);

		fprintf(out, "%" PRId64 " %.0f-%.0f %s %.0f/%.0f", c[DEPTH].integer,
		        c[X0].number * 1000, c[X1].number * 1000, c[NAME].text, c[VALUE].number,
		        c[SELF].number);
		if (c[MANY].integer > 1)
			fprintf(out, " *%" PRId64, c[MANY].integer);
		if (c[FLAGS].integer)
			fprintf(out, " !%" PRId64, c[FLAGS].integer);
		fputc('\n', out);
	}
	plumb_answer_free(&a);
	plumb_flame_free(flame);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
check(const struct plumb_profile *profile, const struct plumb_flame_query *query,
      const char *expected)
{
	char *text = show(profile, query);

	assert_string_equal(text, expected);
	free(text);
}

static uint32_t
frame_of(const struct plumb_profile *p, const char *name)
{
	for (uint32_t f = 0; f < p->frames_count; f++)
		if (!strcmp(plumb_frame_label(p, f), name))
			return f;
	fail_msg("no frame %s", name);
	return 0;
}

/* ---- exact boxes ---- */

static void
test_down(void **state)
{
	struct plumb_profile p;

	(void)state;
	make_small(&p);
	check(&p, &(struct plumb_flame_query){ .metric = "op.time" },
	      "0 0-1000 main (train.py:7) 100/0\n"
	      "1 0-800 step (torch.py:7) 80/10\n"
	      "1 800-1000 step2 (train.py:7) 20/0\n"
	      "2 0-200 mm 20/20\n"
	      "2 200-700 mm [backward] 50/50 !64\n"
	      "2 800-1000 step (torch.py:7) 20/0\n"
	      "3 800-1000 mm 20/20\n");
	/* By default, the metric of reports. */
	check(&p, &(struct plumb_flame_query){ .hidden = 1 << PLUMB_FLAME_OPERATOR },
	      "0 0-1000 main (train.py:7) 900/0\n"
	      "1 0-1000 step (torch.py:7) 900/0\n"
	      "2 0-333 a 300/300\n"
	      "2 333-444 b 100/100\n"
	      "2 444-1000 a [backward] 500/500 !64\n");
	check(&p,
	      &(struct plumb_flame_query){ .metric = "op.time", .hidden = 1 << PLUMB_FLAME_PYTHON },
	      "0 0-400 mm 40/40\n"
	      "0 400-900 mm [backward] 50/50 !64\n");
	check(&p,
	      &(struct plumb_flame_query){
		      .metric = "op.time", .hide = "^/lib/", .hidden = 1 << PLUMB_FLAME_GPU },
	      "0 0-1000 main (train.py:7) 100/10\n"
	      "1 0-200 mm 20/20\n"
	      "1 200-700 mm [backward] 50/50 !64\n"
	      "1 700-900 step2 (train.py:7) 20/0\n"
	      "2 700-900 mm 20/20\n");
	check(&p, &(struct plumb_flame_query){ .metric = "op.time", .apart = true },
	      "0 0-500 forward 50/0\n"
	      "0 500-1000 backward 50/0\n"
	      "1 0-500 main (train.py:7) 50/0\n"
	      "1 500-1000 main (train.py:7) 50/0\n"
	      "2 0-300 step (torch.py:7) 30/10\n"
	      "2 300-500 step2 (train.py:7) 20/0\n"
	      "2 500-1000 step (torch.py:7) 50/0\n"
	      "3 0-200 mm 20/20\n"
	      "3 300-500 step (torch.py:7) 20/0\n"
	      "3 500-1000 mm [backward] 50/50 !64\n"
	      "4 300-500 mm 20/20\n");
	plumb_profile_free(&p);
}

static void
test_other_views(void **state)
{
	struct plumb_profile p;
	struct plumb_flame_query query = { .view = PLUMB_FLAME_HEAVY, .metric = "op.time" };

	(void)state;
	make_small(&p);
	check(&p, &query,
	      "0 0-1000 main (train.py:7) 100/0\n"
	      "1 0-800 step (torch.py:7) 80/10\n"
	      "1 800-1000 step2 (train.py:7) 20/0\n"
	      "2 0-700 mm 70/70\n"
	      "2 800-1000 step (torch.py:7) 20/0\n"
	      "3 800-1000 mm 20/20\n");
	query.view = PLUMB_FLAME_UP;
	check(&p, &query,
	      "0 0-900 mm 90/0\n"
	      "0 900-1000 step (torch.py:7) 10/0\n"
	      "1 0-900 step (torch.py:7) 90/0\n"
	      "1 900-1000 main (train.py:7) 10/10\n"
	      "2 0-700 main (train.py:7) 70/70\n"
	      "2 700-900 step2 (train.py:7) 20/0\n"
	      "3 700-900 main (train.py:7) 20/20\n");
	query.view = PLUMB_FLAME_CALLERS;
	query.of = frame_of(&p, "step");
	check(&p, &query,
	      "0 0-1000 step (torch.py:7) 100/0\n"
	      "1 0-800 main (train.py:7) 80/80\n"
	      "1 800-1000 step2 (train.py:7) 20/0\n"
	      "2 800-1000 main (train.py:7) 20/20\n");
	query.view = PLUMB_FLAME_CALLEES;
	check(&p, &query,
	      "0 0-1000 step (torch.py:7) 100/10\n"
	      "1 0-900 mm 90/90\n");
	query.of = frame_of(&p, "a");
	check(&p, &query, "");
	plumb_profile_free(&p);
}

/* The root, a part of its width, and depths. */
static void
test_ranges(void **state)
{
	struct plumb_profile p;
	struct plumb_flame_query query = { .metric = "op.time" };

	(void)state;
	make_small(&p);
	query.range = (struct plumb_flame_range){ .root = 2 }; /* step */
	check(&p, &query, "0 0-250 mm 20/20\n0 250-875 mm [backward] 50/50 !64\n");
	query.range = (struct plumb_flame_range){ .x0 = 0.8 };
	check(&p, &query,
	      "0 0-1000 main (train.py:7) 100/0\n"
	      "1 800-1000 step2 (train.py:7) 20/0\n"
	      "2 800-1000 step (torch.py:7) 20/0\n"
	      "3 800-1000 mm 20/20\n");
	query.range = (struct plumb_flame_range){ .x1 = 0.2, .depth = 1, .depths = 2 };
	check(&p, &query, "1 0-800 step (torch.py:7) 80/10\n2 0-200 mm 20/20\n");
	/* A pixel is a fourth: mm is narrower, the next one is not. */
	query.range = (struct plumb_flame_range){ .px = 4, .depth = 2 };
	check(&p, &query, "2 0-200 mm 20/20\n2 200-700 mm [backward] 50/50 !64\n");
	query.range = (struct plumb_flame_range){ .px = 1, .depth = 1 };
	check(&p, &query, "1 0-1000 step (torch.py:7) 100/10 *2\n");
	plumb_profile_free(&p);
}

static void
test_search(void **state)
{
	struct plumb_profile p;
	struct plumb_flame_query query = { .metric = "op.time", .range.search = "^mm$|torch.py:7" };
	struct plumb_flame *flame;
	struct plumb_answer total;
	struct plumb_error error;

	(void)state;
	make_small(&p);
	check(&p, &query,
	      "0 0-1000 main (train.py:7) 100/0 !8\n"
	      "1 0-800 step (torch.py:7) 80/10 !10\n"
	      "1 800-1000 step2 (train.py:7) 20/0 !8\n"
	      "2 0-200 mm 20/20 !2\n"
	      "2 200-700 mm [backward] 50/50 !66\n"
	      "2 800-1000 step (torch.py:7) 20/0 !10\n"
	      "3 800-1000 mm 20/20 !2\n");
	flame = plumb_flame_make(&p, &query, &error);
	assert_int_equal(plumb_flame_total(flame, &query.range, &total, &error), 0);
	assert_true(plumb_answer_at(&total, 0, 0)->number == 100);
	assert_true(plumb_answer_at(&total, 0, 4)->number == 100); /* nothing twice */
	assert_int_equal(plumb_answer_at(&total, 0, 5)->integer, 4);
	assert_int_equal(plumb_answer_at(&total, 0, 6)->integer, 7);
	plumb_answer_free(&total);
	query.range.search = "mm";
	assert_int_equal(plumb_flame_total(flame, &query.range, &total, &error), 0);
	assert_true(plumb_answer_at(&total, 0, 4)->number == 90);
	plumb_answer_free(&total);
	query.range.search = "(";
	assert_int_equal(plumb_flame_total(flame, &query.range, &total, &error), PLUMB_EUSAGE);
	assert_non_null(strstr(error.message, "search \"(\""));
	/* The search before is still there. */
	query.range = (struct plumb_flame_range){ .root = 2, .search = "mm" };
	assert_int_equal(plumb_flame_total(flame, &query.range, &total, &error), 0);
	assert_true(plumb_answer_at(&total, 0, 4)->number == 70);
	plumb_answer_free(&total);
	plumb_flame_free(flame);
	plumb_profile_free(&p);
}

/* A frame with a finding, and one that a compiler made of two operators. */
static void
test_frame(void **state)
{
	struct made m = begin();
	struct plumb_profile p;
	struct plumb_error error;
	uint32_t main = at(&m, 0, PLUMB_FRAME_PYTHON, "main", "train.py", 0);
	uint32_t region = at(&m, main, PLUMB_FRAME_OPERATOR, "compiled", NULL, 0);
	uint32_t fused = at(&m, region, PLUMB_FRAME_KERNEL, "triton", NULL, 0);
	uint32_t line = at(&m, region, PLUMB_FRAME_PYTHON, "loss", "model.py", 0);
	struct plumb_flame_query q = { .metric = "gpu.time" };
	struct plumb_finding_text finding = {
		.id = "f1", .rule = "rule", .title = "slow", .severity = PLUMB_NOTE, .saving_ns = 1
	};
	struct plumb_flame *flame;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	value(&m, fused, PLUMB_METRIC_GPU_TIME, 100);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			plumb_builder_origin(
				m.b, &(struct plumb_origin){ fused,
		                                             at(&m, line, PLUMB_FRAME_OPERATOR,
		                                                i ? "relu" : "add", NULL, 0),
		                                             PLUMB_ORIGIN_OF_FUSED }),
			0);
	end(&m, &p);
	for (uint32_t c = 0; c < p.contexts_count; c++)
		if (!strcmp(plumb_frame_label(&p, p.contexts[c].frame), "compiled"))
			finding.context = c;
	assert_int_equal(plumb_profile_set_findings(&p, &finding, 1, &error), 0);
	check(&p, &q,
	      "0 0-1000 main (train.py:7) 100/0\n"
	      "1 0-1000 compiled 100/0 !1\n"
	      "2 0-1000 triton 100/100 !4\n");
	flame = plumb_flame_make(&p, &q, &error);
	assert_int_equal(plumb_flame_frame(flame, 3, NULL, out, &error), 0);
	assert_int_equal(plumb_flame_frame(flame, 2, "+", out, &error), 0);
	assert_int_equal(plumb_flame_frame(flame, 4, NULL, out, &error), PLUMB_EUSAGE);
	assert_int_equal(plumb_flame_frame(flame, 3, "rule", out, &error), PLUMB_EUSAGE);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "{\"node\":3,\"frame\":"));
	assert_non_null(strstr(text, "\"name\":\"triton\",\"kind\":\"kernel\",\"layer\":4,"));
	assert_non_null(strstr(text, "\"path\":[\"main (train.py:7)\",\"compiled\",\"triton\"]"));
	assert_non_null(strstr(text, "{\"metric\":\"gpu.time\",\"unit\":\"ns\",\"self\":100,"
	                             "\"total\":100,\"count\":1,\"mean\":100,\"min\":100,"
	                             "\"max\":100}"));
	assert_non_null(strstr(text, "{\"reason\":\"fused\",\"operator\":\"relu\",\"stack\":"));
	assert_non_null(strstr(text, "{\"name\":\"loss\",\"file\":\"model.py\",\"line\":7}"));
	assert_non_null(strstr(text, "\"findings\":[],\"from\":[{"));
	assert_non_null(strstr(text, "\"findings\":[{\"id\":\"f1\""));
	free(text);
	plumb_flame_free(flame);
	plumb_profile_free(&p);
}

static void
test_queries(void **state)
{
	static const struct plumb_flame_query bad[] = {
		{ .metric = "no.such" },
		{ .metric = "gpu.registers" },
		{ .view = PLUMB_FLAME_VIEWS },
		{ .view = PLUMB_FLAME_CALLERS, .of = 1000 },
		{ .hide = "[" },
		{ .range.root = 1000 },
		{ .range.px = -1 },
	};
	struct plumb_profile p, empty = { 0 };
	struct plumb_flame_query query = { .metric = "op.time", .hide = "x" }, other = query;
	struct plumb_error error;
	struct plumb_flame *flame;

	(void)state;
	make_small(&p);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		error.message[0] = 0;
		assert_int_equal(plumb_view_flame(&p, &bad[i], PLUMB_VIEW_CSV, stderr, &error),
		                 PLUMB_EUSAGE);
		assert_true(error.message[0]);
	}
	for (int view = 0; view < PLUMB_FLAME_VIEWS; view++) {
		struct made m = begin();

		end(&m, &empty);
		check(&empty, &(struct plumb_flame_query){ .view = (enum plumb_flame_view)view },
		      "");
		plumb_profile_free(&empty);
	}
	flame = plumb_flame_make(&p, &query, &error);
	other.range.px = 5;
	other.of = 3; /* of no meaning here */
	assert_true(plumb_flame_is(flame, &p, &other));
	other.hide = NULL;
	assert_false(plumb_flame_is(flame, &p, &other));
	other = query;
	other.view = PLUMB_FLAME_UP;
	assert_false(plumb_flame_is(flame, &p, &other));
	plumb_flame_free(flame);
	plumb_profile_free(&p);
}

/* Every format has the boxes; columns have the total after them. */
static void
test_formats(void **state)
{
	struct plumb_profile p;
	struct plumb_error error;
	char *text[3];
	size_t bytes[3];
	uint64_t boxes;

	(void)state;
	make_small(&p);
	for (int i = 0; i < 3; i++) {
		FILE *out = open_memstream(&text[i], &bytes[i]);
		assert_int_equal(
			plumb_view_flame(&p, &(struct plumb_flame_query){ .metric = "op.time" },
		                         (enum plumb_view_format)i, out, &error),
			0);
		assert_int_equal(fclose(out), 0);
	}
	assert_true(plumb_json_valid(text[PLUMB_VIEW_JSON]));
	assert_non_null(strstr(text[PLUMB_VIEW_JSON], "\"flame.total\""));
	assert_non_null(strstr(text[PLUMB_VIEW_CSV], "\n1,,0,0,1,main (train.py:7),0,100,0,1,0,"));
	memcpy(&boxes, text[PLUMB_VIEW_COLUMNS] + 16, sizeof boxes);
	assert_true(boxes < bytes[PLUMB_VIEW_COLUMNS]);
	assert_memory_equal(text[PLUMB_VIEW_COLUMNS] + boxes, "plumbcol", 8);
	for (int i = 0; i < 3; i++)
		free(text[i]);
	plumb_profile_free(&p);
}

/* The whole of a view is that of a report, whatever is shown of it. */
static void
test_totals(void **state)
{
	static const char *const names[] = { "gpu", "cpu", "deep", "memory", "rude", "windows" };

	(void)state;
	for (size_t i = 0; i < PLUMB_METRIC_COUNT * sizeof names / sizeof *names; i++) {
		struct plumb_profile p;
		struct plumb_error error;
		struct plumb_answer a;
		struct plumb_report report;
		struct plumb_flame_query q = { .view = (enum plumb_flame_view)(i % 3),
			                       .hidden = i % 4 ? 0 : 5 };

		assert_true(sample_make(names[i / PLUMB_METRIC_COUNT], &p));
		q.metric = plumb_metrics[i % PLUMB_METRIC_COUNT].name;
		if (!q.metric || plumb_metrics[i % PLUMB_METRIC_COUNT].aggregation != PLUMB_SUM) {
			plumb_profile_free(&p);
			continue;
		}
		assert_int_equal(
			plumb_report_make(&p,
		                          &(struct plumb_report_query){ .by = PLUMB_BY_CONTEXT,
		                                                        .metric = q.metric },
		                          &report, &error),
			0);
		struct plumb_flame *flame = plumb_flame_make(&p, &q, &error);
		assert_non_null(flame);
		assert_int_equal(plumb_flame_total(flame, &q.range, &a, &error), 0);
		assert_true(plumb_answer_at(&a, 0, 0)->number == (double)report.total.sum);
		plumb_answer_free(&a);
		plumb_flame_free(flame);
		plumb_report_free(&report);
		plumb_profile_free(&p);
	}
}

/* ---- what harms others ---- */

/* A path 100,000 deep, a million children of one node, names that are no names. */
static void
test_extremes(void **state)
{
	struct made m = begin();
	struct plumb_profile p;
	struct plumb_error error;
	struct plumb_answer a;
	uint32_t deep = 0, wide;
	char name[16];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "d%d", i % 7);
		deep = at(&m, deep, PLUMB_FRAME_PYTHON, name, NULL, 0);
	}
	value(&m, deep, PLUMB_METRIC_OP_TIME, 1);
	wide = at(&m, 0, PLUMB_FRAME_PYTHON, "\x1b[2J\xe2\x80\xae<script>\n", "\xff\"", 0);
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "w%d", i);
		value(&m, at(&m, wide, PLUMB_FRAME_OPERATOR, name, NULL, 0), PLUMB_METRIC_OP_TIME,
		      i ? 1 : INT64_MAX);
	}
	end(&m, &p);
	for (int i = 0; i < 4 * PLUMB_FLAME_VIEWS; i++) {
		struct plumb_flame_query q = { .view = (enum plumb_flame_view)(i / 4),
			                       .metric = "op.time",
			                       .of = frame_of(&p, "d3"),
			                       .collapse = i & 1,
			                       .apart = i & 2 };
		struct plumb_flame_range range = { .px = 100 };
		struct plumb_flame *flame = plumb_flame_make(&p, &q, &error);

		assert_non_null(flame);
		assert_int_equal(plumb_flame_boxes(flame, &range, &a, &error), 0);
		assert_true(a.row_count > 0 && a.row_count < 300000);
		plumb_answer_free(&a);
		plumb_flame_free(flame);
	}
	plumb_profile_free(&p);
}

/* Whichever allocation fails, the error says so and nothing leaks. */
static void
test_no_memory(void **state)
{
	struct plumb_profile p;
	struct plumb_error error;
	FILE *out;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	out = fopen("/dev/null", "w");
	assert_non_null(out);
	make_small(&p);
	for (int i = 0; i < 2 * PLUMB_FLAME_VIEWS; i++) {
		int view = i / 2;
		uint32_t frame = i % 2;
		struct plumb_flame_query q = { .view = (enum plumb_flame_view)view,
			                       .metric = "op.time",
			                       .of = frame_of(&p, "step"),
			                       .hide = "train",
			                       .apart = true,
			                       .collapse = view % 2,
			                       .range.search = "mm" };
		bool reached = true;

		for (long n = 0; reached; n++) {
			struct plumb_flame *flame;
			struct plumb_answer a;
			int code = PLUMB_ESYSTEM;

			failing_malloc_at = n;
			flame = plumb_flame_make(&p, &q, &error);
			if (flame && frame)
				code = plumb_flame_frame(flame, frame, "+", out, &error);
			else if (flame)
				code = plumb_flame_boxes(flame, &q.range, &a, &error);
			reached = failing_malloc_stop();
			if (!code && !frame)
				plumb_answer_free(&a);
			/* regcomp takes memory, too, and says so in its own words. */
			assert_true(reached ? code == PLUMB_ESYSTEM || code == PLUMB_EUSAGE
			                    : !code);
			plumb_flame_free(flame);
		}
	}
	fclose(out);
	plumb_profile_free(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_down),     cmocka_unit_test(test_other_views),
		cmocka_unit_test(test_ranges),   cmocka_unit_test(test_search),
		cmocka_unit_test(test_frame),    cmocka_unit_test(test_queries),
		cmocka_unit_test(test_formats),  cmocka_unit_test(test_totals),
		cmocka_unit_test(test_extremes), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
