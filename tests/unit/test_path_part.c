/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of a part of a profile: which part, and that it says of a step what all of it
 * says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "analyze/path/path.h"
#include "analyze/path/steps.h"
#include "analyze/path/summary.h"
#include "base/words.h"
#include "model/builder.h"

#define US 1000
#define STEPS 41
#define STEP_SPANS                                                                                 \
	8 /* of a step: an operator, three calls that launch, one that waits, three works */

enum { OPERATOR, LAUNCH, WAIT, GEMM, LAYOUT, OTHER, PROGRAM, NAMES };

struct run {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	uint32_t thread, streams[2], contexts[NAMES];
	uint64_t call;
};

static void
begin(struct run *r)
{
	static const struct {
		uint32_t kind;
		const char *name;
		int under;
	} names[NAMES] = {
		{ PLUMB_FRAME_OPERATOR, "aten::conv2d", PROGRAM },
		{ PLUMB_FRAME_GPU_API, "cuLaunchKernel", OPERATOR },
		{ PLUMB_FRAME_GPU_API, "cuCtxSynchronize", PROGRAM },
		{ PLUMB_FRAME_KERNEL, "gemm", LAUNCH },
		{ PLUMB_FRAME_KERNEL, "nchwToNhwcKernel", LAUNCH },
		{ PLUMB_FRAME_KERNEL, "other", LAUNCH },
		{ PLUMB_FRAME_PYTHON, "main", -1 },
	};
	static const int order[NAMES] = { PROGRAM, OPERATOR, LAUNCH, WAIT, GEMM, LAYOUT, OTHER };

	*r = (struct run){ .builder = plumb_builder_new() };
	plumb_builder_process(r->builder,
	                      &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	plumb_builder_device(r->builder,
	                     &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	r->thread =
		plumb_builder_track(r->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                               .device = PLUMB_NONE,
	                                                               .name = PLUMB_NONE });
	for (int s = 0; s < 2; s++)
		r->streams[s] = plumb_builder_track(
			r->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                           .name = PLUMB_NONE,
		                                           .stream = s });
	for (int i = 0; i < NAMES; i++) {
		int n = order[i];

		r->contexts[n] = plumb_builder_context(
			r->builder, names[n].under < 0 ? 0 : r->contexts[names[n].under],
			plumb_builder_frame(r->builder, names[n].kind,
		                            plumb_builder_text(r->builder, names[n].name),
		                            PLUMB_NONE, 0),
			0);
	}
}

static void
span(struct run *r, uint32_t track, int name, int64_t start, int64_t length, uint64_t call)
{
	assert_int_equal(plumb_builder_span(r->builder,
	                                    &(struct plumb_span){ .context = r->contexts[name],
	                                                          .track = track,
	                                                          .start_ns = start * US,
	                                                          .end_ns = (start + length) * US,
	                                                          .correlation = call }),
	                 0);
	if (track == r->thread)
		return;
	assert_int_equal(plumb_builder_value(r->builder,
	                                     &(struct plumb_value){ .context = r->contexts[name],
	                                                            .track = track,
	                                                            .metric = PLUMB_METRIC_GPU_TIME,
	                                                            .sum = length * US,
	                                                            .count = 1,
	                                                            .min = length * US,
	                                                            .max = length * US,
	                                                            .mean = (double)length * US }),
	                 0);
}

static void
launch(struct run *r, int stream, int name, int64_t at, int64_t start, int64_t length)
{
	span(r, r->thread, LAUNCH, at, 1, ++r->call);
	span(r, r->streams[stream], name, start, length, r->call);
}

/* Of 300 µs of conversions 200 hide behind another stream; then the host waits for both. Step K is
 * K µs longer than the first one, for as long the host does nothing; so the one in the middle is
 * the median. */
static void
loop(struct run *r, int steps)
{
	int64_t at = 0;

	begin(r);
	for (int k = 0; k < steps; k++) {
		span(r, r->thread, OPERATOR, at, 60, 0);
		launch(r, 0, GEMM, at + 5, at + 100, 500);
		launch(r, 0, LAYOUT, at + 30, at + 600, 300);
		launch(r, 1, OTHER, at + 40, at + 100, 700);
		span(r, r->thread, WAIT, at + 70, 840, ++r->call);
		plumb_builder_wait(r->builder, &(struct plumb_wait){ r->thread, PLUMB_NONE,
		                                                     PLUMB_NONE, r->call, 0 });
		at += 2000 + k;
	}
	span(r, r->thread, PROGRAM, 0, at, 0); /* over all of it */
	assert_int_equal(plumb_builder_finish(r->builder, &r->profile, NULL), 0);
	plumb_builder_free(r->builder);
}

/* What a step's path is, and what it saves without conversions and without the operator. */
struct told {
	int64_t start_ns, end_ns, sums[PLUMB_PATH_KINDS], savings[2];
	uint32_t median;
};

static void
tell(const struct run *r, const struct plumb_iteration_track *track,
     const struct plumb_path_part *part, struct told *told)
{
	static const int without[2] = { LAYOUT, OPERATOR };
	struct plumb_path *path = plumb_path_new(&r->profile, part, NULL);
	struct plumb_path_window whole, step;
	uint32_t nodes[2];

	assert_non_null(path);
	*told = (struct told){ .median = plumb_path_median_step(path, track) };
	assert_int_equal(plumb_path_open_whole(path, &whole, NULL), 0);
	assert_int_equal(plumb_path_step(&whole, track, told->median, &step, NULL), 0);
	told->start_ns = step.start_ns;
	told->end_ns = step.end_ns;
	memcpy(told->sums, step.sums, sizeof told->sums);
	plumb_path_close(&step);
	plumb_path_step_nodes(path, track, nodes);
	for (int i = 0; i < 2; i++) {
		unsigned char *gone = calloc(r->profile.contexts_count + 1, 1);
		int64_t saved[2 * PLUMB_PATH_PLAYS], ends[2];

		gone[r->contexts[without[i]]] = 1;
		assert_true(plumb_path_savings(&whole, gone, nodes, 2, saved));
		ends[0] = saved[0];
		ends[1] = saved[PLUMB_PATH_PLAYS];
		told->savings[i] = plumb_path_step_saving(path, track, ends, INT64_MAX);
		free(gone);
	}
	plumb_path_close(&whole);
	plumb_path_free(path);
}

static const struct plumb_iteration_track *
main_of(const struct plumb_iterations *found)
{
	for (uint32_t t = 0; t < found->count; t++)
		if (found->tracks[t].role == PLUMB_ROLE_MAIN)
			return &found->tracks[t];
	fail_msg("no main track");
	return NULL;
}

static void
test_iterations(void **state)
{
	struct run r;
	struct plumb_iterations found;
	struct plumb_path_part part;
	struct told all, some;

	(void)state;
	loop(&r, STEPS);
	/* The builder sorts contexts: find them anew. */
	for (uint32_t c = 0; c < r.profile.contexts_count; c++) {
		const char *name = plumb_frame_label(&r.profile, r.profile.contexts[c].frame);

		if (!strcmp(name, "nchwToNhwcKernel"))
			r.contexts[LAYOUT] = c;
		if (!strcmp(name, "aten::conv2d"))
			r.contexts[OPERATOR] = c;
	}
	assert_int_equal(plumb_iterations_find(&r.profile, NULL, &found, NULL), 0);
	const struct plumb_iteration_track *track = main_of(&found);
	assert_int_equal(track->levels[0].count, STEPS);
	tell(&r, track, NULL, &all);
	assert_int_equal(all.savings[0], 100 * US);
	for (uint32_t most = 2 * STEP_SPANS; most < STEPS * STEP_SPANS + 1; most += 17) {
		uint32_t count;

		assert_int_equal(
			plumb_path_part_find(&r.profile, &found, PLUMB_NONE, most, &part, NULL), 0);
		assert_false(part.whole);
		assert_int_equal(part.track, track->track);
		assert_in_range(all.median, part.first, part.last);
		/* As many as there is room for: but for the one over all, each has eight. */
		assert_in_range(part.last - part.first + 1, most / STEP_SPANS - 1,
		                most / STEP_SPANS);
		free(plumb_path_part_spans(&r.profile, &part, &count));
		assert_in_range(count, most - 2 * STEP_SPANS, most);
		tell(&r, track, &part, &some);
		assert_int_equal(some.median, all.median);
		assert_int_equal(some.start_ns, all.start_ns);
		assert_int_equal(some.end_ns, all.end_ns);
		assert_memory_equal(some.sums, all.sums, sizeof some.sums);
		if (part.first < part.last)
			assert_memory_equal(some.savings, all.savings, sizeof some.savings);
	}
	assert_int_equal(plumb_path_part_find(&r.profile, &found, PLUMB_NONE,
	                                      STEPS * STEP_SPANS + 1, &part, NULL),
	                 0);
	assert_true(part.whole);
	plumb_iterations_free(&found);
	plumb_profile_free(&r.profile);
}

/* A profile that gives its spans up has none afterwards, and the graph has the same. */
static void
test_last(void **state)
{
	struct run r;
	struct plumb_iterations found;
	struct plumb_path_part part;
	struct plumb_error error;

	(void)state;
	loop(&r, STEPS);
	assert_int_equal(plumb_iterations_find(&r.profile, NULL, &found, NULL), 0);
	assert_int_equal(
		plumb_path_part_find(&r.profile, &found, PLUMB_NONE, 5 * STEP_SPANS, &part, NULL),
		0);
	struct plumb_path *kept = plumb_path_new(&r.profile, &part, &error);
	assert_true(r.profile.spans_count);
	struct plumb_path *last = plumb_path_new_last(&r.profile, &part, &error);
	assert_int_equal(r.profile.spans_count, 0);
	const struct plumb_profile *a = plumb_path_profile(kept), *b = plumb_path_profile(last);
	assert_int_equal(a->spans_count, b->spans_count);
	assert_memory_equal(a->spans, b->spans, a->spans_count * sizeof *a->spans);
	assert_memory_equal(plumb_path_facts(kept), plumb_path_facts(last),
	                    sizeof(struct plumb_path_facts));
	plumb_path_free(kept);
	plumb_path_free(last);
	plumb_iterations_free(&found);
	plumb_profile_free(&r.profile);
}

/* Not one iteration fits, or there is none: what was over last, and the path of that is the whole's
 * last stretch. */
static void
test_last_stretch(void **state)
{
	struct run r;
	struct plumb_iterations found, none = { 0 };
	struct plumb_path_part part;
	struct plumb_path_window whole, last;
	struct plumb_error error;

	(void)state;
	loop(&r, STEPS);
	assert_int_equal(plumb_iterations_find(&r.profile, NULL, &found, NULL), 0);
	assert_int_equal(plumb_path_part_find(&r.profile, &found, PLUMB_NONE, 5, &part, NULL), 0);
	assert_int_equal(part.track, PLUMB_NONE);
	assert_int_equal(plumb_path_part_find(&r.profile, &none, PLUMB_NONE, 0, &part, &error),
	                 PLUMB_EEMPTY);
	struct plumb_path *all = plumb_path_new(&r.profile, NULL, NULL);
	assert_int_equal(plumb_path_open_whole(all, &whole, NULL), 0);
	assert_true(plumb_path_list(&whole));
	for (uint32_t most = 3; most < STEPS * STEP_SPANS; most += 10) {
		uint32_t count, i = 0;

		assert_int_equal(
			plumb_path_part_find(&r.profile, &none, PLUMB_NONE, most, &part, NULL), 0);
		assert_int_equal(part.end_ns, whole.end_ns);
		struct plumb_path *path = plumb_path_new(&r.profile, &part, NULL);
		assert_non_null(path);
		count = plumb_path_profile(path)->spans_count;
		assert_true(count <= most && count + 2 * STEP_SPANS > most);
		assert_int_equal(plumb_path_open_whole(path, &last, NULL), 0);
		assert_true(plumb_path_list(&last));
		assert_true(last.start_ns >= part.start_ns);
		assert_int_equal(last.end_ns, whole.end_ns);
		/* From the first step that lies in it on. */
		while (last.segments[i].start_ns < part.start_ns + 2100 * US && i + 1 < last.count)
			i++;
		for (uint32_t k = last.count; k-- > i;) {
			const struct plumb_path_segment *a = &last.segments[k];
			const struct plumb_path_segment *b =
				&whole.segments[whole.count - (last.count - k)];

			assert_int_equal(a->kind, b->kind);
			assert_int_equal(a->context, b->context);
			assert_int_equal(a->end_ns, b->end_ns);
		}
		plumb_path_close(&last);
		plumb_path_free(path);
	}
	plumb_path_close(&whole);
	plumb_path_free(all);
	plumb_iterations_free(&found);
	plumb_profile_free(&r.profile);
}

/* The saving of the finding of conversions, and its evidence. */
static int64_t
layout_saving(struct plumb_profile *p, uint32_t spans, const char *evidence)
{
	struct plumb_analyze_options options = { .path_spans = spans };

	assert_int_equal(plumb_analyze(p, &options, NULL), 0);
	for (uint32_t i = 0; i < p->findings_count; i++) {
		const struct plumb_finding *f = &p->findings[i];

		if (!strstr(plumb_text(p, f->evidence), "\"layout\""))
			continue;
		if (!strstr(plumb_text(p, f->evidence), evidence))
			fail_msg("%s is not in %s", evidence, plumb_text(p, f->evidence));
		assert_non_null(strstr(plumb_text(p, f->evidence), "\"step_saving_ns\":100000"));
		return f->saving_ns;
	}
	fail_msg("no finding of conversions");
	return 0;
}

/* What a part saves stands for the whole run. */
static void
test_findings(void **state)
{
	struct run r;
	int64_t all, some;

	(void)state;
	loop(&r, STEPS);
	all = layout_saving(&r.profile, 0, "\"saving_bound\":\"critical path\"");
	assert_int_equal(all, STEPS * 100 * US);
	some = layout_saving(&r.profile, 10 * STEP_SPANS,
	                     "\"saving_bound\":\"critical path of iterations 1");
	if (some < all - all / 10 || some > all + all / 10)
		fail_msg("%lld of %lld", (long long)some, (long long)all);
	plumb_profile_free(&r.profile);
}

/* The run is played again for what is asked for alone. */
static void
test_only_what_is_asked(void **state)
{
	struct run r;
	struct plumb_iterations found;
	struct plumb_path_window whole;
	struct plumb_path_summaries all, some;
	struct plumb_path_asked asked = { .most = PLUMB_PATH_ROWS_MOST,
		                          .track = PLUMB_NONE,
		                          .whole_always = true };
	uint32_t t = 0;

	(void)state;
	loop(&r, STEPS);
	uint32_t *user_of = malloc(r.profile.contexts_count * sizeof *user_of);
	memset(user_of, 0xff, r.profile.contexts_count * sizeof *user_of); /* PLUMB_NONE */
	assert_int_equal(plumb_iterations_find(&r.profile, NULL, &found, NULL), 0);
	while (found.tracks[t].role != PLUMB_ROLE_MAIN)
		t++;
	struct plumb_path *path = plumb_path_new(&r.profile, NULL, NULL);
	assert_int_equal(plumb_path_open_whole(path, &whole, NULL), 0);
	assert_int_equal(plumb_path_summarize(&whole, &found, user_of, &asked, &all, NULL), 0);
	assert_true(all.whole.count > 2 && all.whole.savings[0] != PLUMB_UNKNOWN);
	/* Two rows of a track with a loop: nothing of the whole. */
	asked = (struct plumb_path_asked){ .most = 2, .track = PLUMB_NONE };
	assert_int_equal(plumb_path_summarize(&whole, &found, user_of, &asked, &some, NULL), 0);
	assert_true(some.tries <= 2 && some.tries < all.tries);
	assert_int_equal(some.whole.savings[0], PLUMB_UNKNOWN);
	for (int i = 0; i < 2; i++)
		assert_int_equal(some.tracks[t].savings[i], all.tracks[t].savings[i]);
	plumb_path_summaries_free(&some);
	/* Of another track: nothing at all. */
	asked.track = found.tracks[t].track + 1000;
	assert_int_equal(plumb_path_summarize(&whole, &found, user_of, &asked, &some, NULL), 0);
	assert_int_equal(some.tries, 0);
	plumb_path_summaries_free(&some);
	plumb_path_summaries_free(&all);
	plumb_path_close(&whole);
	plumb_path_free(path);
	plumb_iterations_free(&found);
	plumb_profile_free(&r.profile);
	free(user_of);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_iterations),         cmocka_unit_test(test_last),
		cmocka_unit_test(test_last_stretch),       cmocka_unit_test(test_findings),
		cmocka_unit_test(test_only_what_is_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
