/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of start-up and loops: one iteration, causes, findings by window. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../golden/profiles.h"
#include "analyze/analyze.h"
#include "analyze/other_loops.h"
#include "model/rows.h"
#include "view/findings.h"
#include "view/report.h"
#include "view/windows.h"

static struct plumb_profile
make(void)
{
	struct plumb_profile profile = { 0 };

	assert_true(sample_make("windows", &profile));
	return profile;
}

static struct plumb_profile
cut(const struct plumb_profile *profile, const char *name)
{
	struct plumb_window_choice choice;
	struct plumb_profile window;

	assert_int_equal(plumb_window_parse(name, &choice, NULL), 0);
	assert_int_equal(plumb_window_profile(profile, &choice, &window, NULL), 0);
	return window;
}

static void
test_one_iteration(void **state)
{
	struct plumb_profile profile = make();
	struct plumb_windows w;

	(void)state;
	assert_int_equal(plumb_windows_find(&profile, &w, NULL), 0);
	assert_int_equal(w.loop_count, 2);
	assert_int_equal(w.main, 0);
	assert_int_equal(w.startup_ns, 21400 * WINDOWS_MS);
	assert_int_equal(w.rest_ns, 1600 * WINDOWS_MS);
	assert_int_equal(w.loops[0].mean_ns, 60 * WINDOWS_MS);
	/* By turns 59 and 61 ms: 19 times, 10 of them 61. */
	assert_in_range(w.loops[0].spread_ns, 1025000, 1027000);
	assert_int_equal(w.loops[0].device_count, 1);
	assert_int_equal(w.loops[0].devices[0].busy_ns, 48 * WINDOWS_MS);
	assert_int_equal(w.loops[0].devices[0].idle_ns, 12 * WINDOWS_MS);
	assert_int_equal(w.loops[0].devices[0].wait_ns, 0);
	assert_int_equal(w.loops[0].devices[0].copy_ns, 0);
	assert_int_equal(w.loops[1].devices[0].copy_ns, PLUMB_UNKNOWN);
	/* The newest work has none of the second loop. */
	assert_int_equal(w.loops[1].mean_ns, 20 * WINDOWS_MS);
	assert_int_equal(w.loops[1].spread_ns, PLUMB_UNKNOWN);
	assert_int_equal(w.loops[1].devices[0].busy_ns, 10 * WINDOWS_MS);
	plumb_windows_free(&w);
	plumb_profile_free(&profile);
}

static void
test_no_windows(void **state)
{
	struct plumb_profile profile = { 0 };
	struct plumb_windows w;

	(void)state;
	assert_true(sample_make("gpu", &profile));
	assert_int_equal(plumb_windows_find(&profile, &w, NULL), 0);
	assert_int_equal(w.main, PLUMB_NONE);
	assert_int_equal(w.loop_count, 0);
	plumb_windows_free(&w);
	plumb_profile_free(&profile);
}

static void
test_startup(void **state)
{
	struct plumb_profile profile = make(), startup = cut(&profile, "startup");
	struct plumb_startup s;

	(void)state;
	assert_int_equal(plumb_startup_find(&startup, &s), 0);
	assert_int_equal(s.metric, PLUMB_METRIC_CPU_TIME);
	assert_int_equal(s.ns[PLUMB_STARTUP_IMPORTS], 2800 * WINDOWS_MS);
	/* Waiting counts, too. */
	assert_int_equal(s.ns[PLUMB_STARTUP_COMPILING], 6000 * WINDOWS_MS);
	/* It lies in what compiles, and has its own remedy. */
	assert_int_equal(s.ns[PLUMB_STARTUP_TUNING], 11900 * WINDOWS_MS);
	assert_int_equal(s.ns[PLUMB_STARTUP_OTHER], 0);
	plumb_profile_free(&startup);
	plumb_profile_free(&profile);
}

/* As a recording without --cpu has it: looks at the main thread instead of samples. */
static struct plumb_profile
make_looked_at(void)
{
	struct plumb_profile profile = make();

	for (uint32_t i = 0; i < profile.values_count; i++)
		if (profile.values[i].metric == PLUMB_METRIC_CPU_TIME)
			profile.values[i].metric = PLUMB_METRIC_HOST_TIME;
	for (uint32_t i = 0; i < profile.window_values_count; i++)
		if (profile.window_values[i].metric == PLUMB_METRIC_CPU_TIME)
			profile.window_values[i].metric = PLUMB_METRIC_HOST_TIME;
	return profile;
}

static void
test_startup_from_outside(void **state)
{
	struct plumb_profile profile = make_looked_at(), startup = cut(&profile, "startup");
	struct plumb_startup s;

	(void)state;
	assert_int_equal(plumb_startup_find(&startup, &s), 0);
	assert_int_equal(s.metric, PLUMB_METRIC_HOST_TIME);
	assert_int_equal(s.ns[PLUMB_STARTUP_IMPORTS], 2800 * WINDOWS_MS);
	/* A look sees waiting as well as computing, so wait.time is not added. */
	assert_int_equal(s.ns[PLUMB_STARTUP_COMPILING], 5000 * WINDOWS_MS);
	assert_int_equal(s.samples[PLUMB_STARTUP_COMPILING], 500);
	assert_int_equal(s.ns[PLUMB_STARTUP_TUNING], 11900 * WINDOWS_MS);
	assert_true(plumb_startup_is_known(&s));
	plumb_profile_free(&startup);
	plumb_profile_free(&profile);
}

static uint32_t
count_of(const struct plumb_profile *p, const char *window)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->findings_count; i++) {
		const char *of = plumb_text(p, p->findings[i].window);
		count += window ? of && !strcmp(of, window) : !of;
	}
	return count;
}

static const struct plumb_finding *
find(const struct plumb_profile *p, const char *begin)
{
	for (uint32_t i = 0; i < p->findings_count; i++)
		if (!strncmp(plumb_text(p, p->findings[i].id), begin, strlen(begin)))
			return &p->findings[i];
	return NULL;
}

static void
test_findings(void **state)
{
	struct plumb_profile profile = make(), loop = cut(&profile, "loop");
	const struct plumb_analyze_options whole = { .whole = true };
	const struct plumb_finding *f;
	struct plumb_finding_part part;
	uint32_t of_loop;

	(void)state;
	assert_int_equal(plumb_analyze(&profile, NULL, NULL), 0);
	of_loop = count_of(&profile, "loop:1");
	assert_true(of_loop >= 3);
	assert_int_equal(count_of(&profile, "startup"), 2);
	assert_int_equal(count_of(&profile, NULL), 0);
	/* The loop comes first: programs are run for it. */
	assert_string_equal(plumb_text(&profile, profile.findings[0].window), "loop:1");
	/* What start-up did is not of the loop. */
	for (uint32_t i = 0; i < profile.findings_count; i++)
		assert_null(strstr(plumb_text(&profile, profile.findings[i].title), "fill"));
	f = find(&profile, "startup-tuning");
	assert_non_null(f);
	assert_int_equal(f->saving_ns, 11900 * WINDOWS_MS);
	assert_non_null(strstr(plumb_text(&profile, f->title), "11.9 s of its 21.4 s"));
	assert_non_null(strstr(plumb_text(&profile, f->title), "train.py:40"));
	part = plumb_finding_part(&profile, f);
	assert_int_equal(part.whole_ns, 21400 * WINDOWS_MS);
	assert_int_equal(part.each_ns, PLUMB_UNKNOWN);
	part = plumb_finding_part(&profile, &profile.findings[0]);
	assert_int_equal(part.whole_ns, 24000 * WINDOWS_MS);
	assert_int_equal(part.iterations, WINDOWS_STEPS);

	/* A window alone gives the same ids; the whole has the kernel of start-up. */
	assert_int_equal(plumb_analyze(&loop, NULL, NULL), 0);
	assert_int_equal(loop.findings_count, of_loop);
	for (uint32_t i = 0; i < loop.findings_count; i++)
		assert_non_null(find(&profile, plumb_text(&loop, loop.findings[i].id)));
	assert_int_equal(plumb_analyze(&profile, &whole, NULL), 0);
	assert_int_equal(count_of(&profile, NULL), profile.findings_count);
	assert_null(find(&profile, "startup-"));
	plumb_profile_free(&loop);
	plumb_profile_free(&profile);
}

/* A GPU that idles: the line at which the main thread was is named, with the number of looks. */
static void
test_idle_from_outside(void **state)
{
	const struct plumb_analyze_options options = { .thresholds = "latency.idle=10%" };
	struct plumb_profile profile = make_looked_at(), loop = cut(&profile, "loop:1");
	const struct plumb_finding *f;

	(void)state;
	loop.devices[0].first_ns = 0;
	loop.devices[0].last_ns = 24000 * WINDOWS_MS;
	assert_int_equal(plumb_analyze(&loop, &options, NULL), 0);
	f = find(&loop, "latency-idle");
	assert_non_null(f);
	assert_non_null(strstr(plumb_text(&loop, f->title),
	                       "; the main thread was at train.py:44 in 2200 of 2200 looks"));
	assert_non_null(strstr(plumb_text(&loop, f->evidence), "\"looks\":2200"));
	/* Too few looks may be chance. */
	for (uint32_t i = 0; i < loop.values_count; i++)
		if (loop.values[i].metric == PLUMB_METRIC_HOST_TIME)
			loop.values[i].count = 4;
	assert_int_equal(plumb_analyze(&loop, &options, NULL), 0);
	f = find(&loop, "latency-idle");
	assert_non_null(f);
	assert_null(strstr(plumb_text(&loop, f->title), "looks"));
	plumb_profile_free(&loop);
	plumb_profile_free(&profile);
}

/* ---- findings of other loops ---- */

/* The second loop takes 2 of 26 s, and idles for half of it; the main one for a fifth. */
#define SMALL_LOOPS "loops.share=5%,latency.idle=30%"

static void
test_small_loops_have_none(void **state)
{
	const struct plumb_analyze_options some = { .thresholds = "latency.idle=10%" };
	struct plumb_profile profile = make();

	(void)state;
	windows_add_use(&profile);
	assert_int_equal(plumb_analyze(&profile, &some, NULL), 0);
	assert_int_equal(count_of(&profile, "loop:2"), 0);
	plumb_profile_free(&profile);
}

/* It is as severe as one of the main loop that saves as much. What could be saved is known. */
static void
test_findings_of_another_loop(void **state)
{
	const struct plumb_analyze_options some = { .thresholds = SMALL_LOOPS };
	struct plumb_profile profile = make(), second;
	const struct plumb_finding *f = NULL, *alone;
	struct plumb_finding_part part;

	(void)state;
	windows_add_use(&profile);
	assert_int_equal(plumb_analyze(&profile, &some, NULL), 0);
	for (uint32_t i = 0; i < profile.findings_count; i++) {
		const struct plumb_finding *at = &profile.findings[i];
		const char *of = plumb_text(&profile, at->window);

		if (!of || strcmp(of, "loop:2") != 0)
			continue;
		assert_true(at->saving_ns > 0);
		assert_int_equal(at->severity, PLUMB_NOTE); /* at most 1 s of the main 24 s */
		f = at;
	}
	assert_non_null(f);
	part = plumb_finding_part(&profile, f);
	assert_int_equal(part.loop, 2);
	assert_int_equal(part.whole_ns, 2000 * WINDOWS_MS);
	assert_int_equal(part.iterations, 100);
	assert_int_equal(plumb_finding_part(&profile, find(&profile, "startup-")).loop, 0);
	second = cut(&profile, "loop:2");
	/* Asked for alone, it is a great part of its own loop. */
	assert_int_equal(plumb_analyze(&second, &some, NULL), 0);
	alone = find(&second, plumb_text(&profile, f->id));
	assert_non_null(alone);
	assert_int_equal(alone->saving_ns, f->saving_ns);
	assert_int_equal(alone->severity, PLUMB_WARNING);
	plumb_profile_free(&second);
	plumb_profile_free(&profile);
}

static uint32_t
count_idle(const struct plumb_profile *p)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->findings_count; i++)
		count += !strncmp(plumb_text(p, p->findings[i].id), "latency-idle", 12);
	return count;
}

/* Both loops idle. That is one thing, if nobody knows why. */
static void
test_both_loops_idle(void **state)
{
	const struct plumb_analyze_options some = { .thresholds =
		                                            "loops.share=5%,latency.idle=10%" };
	struct plumb_profile profile = make_looked_at();
	const struct plumb_finding *f;

	(void)state;
	windows_add_use(&profile);
	assert_int_equal(plumb_analyze(&profile, &some, NULL), 0);
	assert_int_equal(count_idle(&profile), 1);
	f = find(&profile, "latency-idle");
	assert_string_equal(plumb_text(&profile, f->window), "loop:1");
	assert_non_null(
		strstr(plumb_text(&profile, f->evidence),
	               "\"also_in\": [{\"window\": \"loop:2\", \"saving_ns\": 1000000000}]"));
	plumb_profile_free(&profile);
}

/* Lets looks find the main thread of the main loop at the caller of the function that launches. */
static void
move_training_up(struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_HOST_TIME && p->values[i].count == 2200)
			p->values[i].context = p->contexts[p->values[i].context].parent;
	for (uint32_t i = 0; i < p->window_values_count; i++) {
		struct plumb_window_value *v = &p->window_values[i];

		if (v->metric == PLUMB_METRIC_HOST_TIME && v->count == 2200)
			v->context = p->contexts[v->context].parent;
	}
	assert_int_equal(plumb_row_order(p, &plumb_row_tables[PLUMB_TABLE_VALUES]), 0);
	assert_int_equal(plumb_row_order(p, &plumb_row_tables[PLUMB_TABLE_WINDOW_VALUES]), 0);
}

/* A line that launches nothing is a reason, which the other loop does not have. */
static void
test_loops_idle_for_their_own_reasons(void **state)
{
	const struct plumb_analyze_options some = { .thresholds =
		                                            "loops.share=5%,latency.idle=10%" };
	struct plumb_profile profile = make_looked_at();
	const struct plumb_finding *f;

	(void)state;
	windows_add_use(&profile);
	move_training_up(&profile);
	assert_int_equal(plumb_analyze(&profile, &some, NULL), 0);
	assert_int_equal(count_idle(&profile), 2);
	for (uint32_t i = 0; i < profile.findings_count; i++) {
		f = &profile.findings[i];
		if (strncmp(plumb_text(&profile, f->id), "latency-idle", 12) != 0)
			continue;
		assert_non_null(strstr(plumb_text(&profile, f->title),
		                       !strcmp(plumb_text(&profile, f->window), "loop:1")
		                               ? "train.py:40"
		                               : "train.py:52"));
	}
	plumb_profile_free(&profile);
}

static double
weigh(const struct plumb_finding_text *finding)
{
	return finding->saving_ns == PLUMB_UNKNOWN ? -1 : (double)finding->saving_ns;
}

/* The better one stays, at the place of the first, and says where else it is. */
static void
test_the_same_cause_is_said_once(void **state)
{
	struct plumb_profile profile = make();
	struct plumb_thresholds *defaults = plumb_thresholds_new(NULL, NULL);
	struct plumb_study *study = plumb_study_new(&profile, defaults, NULL, NULL);
	struct plumb_finding_text rows[] = {
		{ .id = "a", .window = "loop:1", .saving_ns = 5, .severity = PLUMB_WARNING },
		{ .id = "b", .window = "loop:1", .saving_ns = 7 },
		{ .id = "b", .window = "loop:1", .saving_ns = 8 },
		{ .id = "a",
		  .window = "loop:2",
		  .saving_ns = 9,
		  .severity = PLUMB_NOTE,
		  .evidence = "{\"x\":1}" },
		{ .id = "c", .window = NULL, .saving_ns = 1 },
		{ .id = "a", .window = "loop:3", .saving_ns = PLUMB_UNKNOWN },
	};
	uint32_t count = 6;

	(void)state;
	assert_non_null(study);
	assert_int_equal(plumb_other_loops_join(study, rows, &count, weigh), 0);
	assert_int_equal(count, 4);
	assert_string_equal(rows[0].window, "loop:2");
	assert_int_equal(rows[0].saving_ns, 9);
	assert_int_equal(rows[0].severity, PLUMB_WARNING);
	assert_string_equal(rows[0].evidence,
	                    "{\"x\":1, \"also_in\": [{\"window\": \"loop:1\", "
	                    "\"saving_ns\": 5}, {\"window\": \"loop:3\", \"saving_ns\": null}]}");
	/* Two of one window are not the same thing. */
	assert_int_equal(rows[1].saving_ns, 7);
	assert_int_equal(rows[2].saving_ns, 8);
	assert_string_equal(rows[3].id, "c");
	plumb_study_free(study);
	plumb_thresholds_free(defaults);
	plumb_profile_free(&profile);
}

/* A start-up that takes little of the run, or little time, has no findings. */
static void
test_short_startup(void **state)
{
	struct plumb_profile profile = make();
	const struct plumb_analyze_options share = { .thresholds = "startup.share=50%" };
	const struct plumb_analyze_options time = { .thresholds = "startup.time=22s" };
	const struct plumb_analyze_options cause = { .thresholds = "startup.cause=50%" };

	(void)state;
	assert_int_equal(plumb_analyze(&profile, &share, NULL), 0);
	assert_int_equal(count_of(&profile, "startup"), 0);
	assert_int_equal(plumb_analyze(&profile, &time, NULL), 0);
	assert_int_equal(count_of(&profile, "startup"), 0);
	assert_int_equal(plumb_analyze(&profile, &cause, NULL), 0);
	assert_int_equal(count_of(&profile, "startup"), 1);
	plumb_profile_free(&profile);
}

/* ---- rows of one iteration ---- */

static const struct plumb_spread *
spread_of(const struct plumb_report *report, const char *name)
{
	for (uint32_t i = 0; i < report->order_count; i++) {
		struct plumb_report_place place;
		plumb_report_row_place(report, report->order[i], &place);
		if (!strcmp(place.name, name))
			return &report->spreads[report->order[i]];
	}
	return NULL;
}

static void
test_rows_of_an_iteration(void **state)
{
	struct plumb_profile profile = make(), loop = cut(&profile, "loop"),
			     evaluation = cut(&profile, "loop:2");
	struct plumb_report_query query = { .by = PLUMB_BY_OPERATOR, .per_iteration = true };
	struct plumb_report report;

	(void)state;
	assert_int_equal(plumb_report_make(&loop, &query, &report, NULL), 0);
	assert_int_equal(report.iterations, WINDOWS_STEPS);
	assert_int_equal(plumb_report_each(&report, report.total.sum), 48 * WINDOWS_MS);
	/* The newest work has the same time of it in each iteration. */
	assert_true(spread_of(&report, "aten::relu")->exact);
	assert_true(spread_of(&report, "aten::relu")->deviation < 1);
	plumb_report_free(&report);

	/* One kernel in each, which varies by 100 µs. */
	assert_int_equal(plumb_report_make(&evaluation, &query, &report, NULL), 0);
	assert_false(spread_of(&report, "aten::convolution")->exact);
	assert_true(fabs(spread_of(&report, "aten::convolution")->deviation - 100000) < 1);
	plumb_report_free(&report);

	/* The whole has no iterations. */
	assert_int_equal(plumb_report_make(&profile, &query, &report, NULL), PLUMB_EEMPTY);
	plumb_report_free(&report);
	plumb_profile_free(&evaluation);
	plumb_profile_free(&loop);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_iteration),
		cmocka_unit_test(test_no_windows),
		cmocka_unit_test(test_startup),
		cmocka_unit_test(test_startup_from_outside),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_idle_from_outside),
		cmocka_unit_test(test_small_loops_have_none),
		cmocka_unit_test(test_findings_of_another_loop),
		cmocka_unit_test(test_both_loops_idle),
		cmocka_unit_test(test_loops_idle_for_their_own_reasons),
		cmocka_unit_test(test_the_same_cause_is_said_once),
		cmocka_unit_test(test_short_startup),
		cmocka_unit_test(test_rows_of_an_iteration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
