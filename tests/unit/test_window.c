/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: which a profile has, and what the profile of one holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/builder.h"
#include "model/window.h"

/*
 * One process: start-up from 0 to 100, training 100 to 200 and 250 to 350, evaluation 200 to 250
 * and 350 to 400, the rest until 420. An operator trains (10 calls of 5 ns in each stretch),
 * another evaluates (2 calls of 7), a third imports (1 call of 90).
 */
enum { STARTUP, TRAIN, EVALUATE, REST, WINDOWS };

static const struct {
	uint32_t kind, number;
	int64_t iterations;
} windows[WINDOWS] = {
	{ PLUMB_WINDOW_STARTUP, 0, PLUMB_UNKNOWN },
	{ PLUMB_WINDOW_LOOP, 1, 20 },
	{ PLUMB_WINDOW_LOOP, 2, 4 },
	{ PLUMB_WINDOW_REST, 0, PLUMB_UNKNOWN },
};
static const struct {
	uint32_t window;
	int64_t start, end;
} stretches[] = {
	{ STARTUP, 0, 100 }, { TRAIN, 100, 200 },    { EVALUATE, 200, 250 },
	{ TRAIN, 250, 350 }, { EVALUATE, 350, 400 }, { REST, 400, 420 },
};

struct made {
	struct plumb_profile profile;
	uint32_t process, device, thread, stream;
};

static uint32_t
add_operator(struct plumb_builder *b, const char *name)
{
	return plumb_builder_context(b, 0,
	                             plumb_builder_frame(b, PLUMB_FRAME_OPERATOR,
	                                                 plumb_builder_text(b, name), PLUMB_NONE,
	                                                 0),
	                             0);
}

static void
add_value(struct plumb_builder *b, uint32_t context, uint32_t track, int64_t each, uint64_t count)
{
	struct plumb_value value = {
		.context = context,
		.metric = PLUMB_METRIC_OP_TIME,
		.track = track,
		.sum = each * (int64_t)count,
		.count = count,
		.min = each - 1,
		.max = each + 1,
		.mean = (double)each,
		.m2 = 1,
	};
	assert_int_equal(plumb_builder_value(b, &value), 0);
}

static void
add_part(struct plumb_builder *b, uint32_t window, uint32_t context, uint32_t track, int64_t each,
         uint64_t count)
{
	struct plumb_window_value value = {
		.window = window,
		.context = context,
		.metric = PLUMB_METRIC_OP_TIME,
		.track = track,
		.sum = each * (int64_t)count,
		.count = count,
		.min = PLUMB_UNKNOWN,
		.max = PLUMB_UNKNOWN,
		.m2 = 0.5,
	};
	assert_int_equal(plumb_builder_window_value(b, &value), 0);
}

static void
add_variant(struct plumb_builder *b, uint32_t context, uint32_t track, const char *shapes,
            const uint64_t counts[WINDOWS])
{
	struct plumb_variant variant = {
		.context = context,
		.track = track,
		.shapes = plumb_builder_text(b, shapes),
		.min = 2,
		.max = 9,
	};
	for (uint32_t w = 0; w < WINDOWS; w++) {
		struct plumb_window_variant part = { .window = w, .variant = variant };
		part.variant.count = counts[w];
		part.variant.time = 5 * (int64_t)counts[w];
		variant.count += counts[w];
		assert_int_equal(plumb_builder_window_variant(b, &part), 0);
	}
	variant.time = 5 * (int64_t)variant.count;
	assert_int_equal(plumb_builder_variant(b, &variant), 0);
}

static void
add_device(struct plumb_builder *b, uint32_t window, uint32_t device, int64_t kernels)
{
	struct plumb_window_device row = { .window = window,
		                           .device = device,
		                           .kernels = kernels,
		                           .kernel_ns = 3 * kernels,
		                           .busy_ns = 2 * kernels };
	assert_int_equal(plumb_builder_window_device(b, &row), 0);
}

static void
add_places(struct plumb_builder *b, struct made *made)
{
	made->process = plumb_builder_process(b, &(struct plumb_process){ .pid = 1,
	                                                                  .host = PLUMB_NONE,
	                                                                  .command = PLUMB_NONE,
	                                                                  .start_ns = 0,
	                                                                  .end_ns = 420 });
	struct plumb_device device = { .name = PLUMB_NONE,
		                       .uuid = PLUMB_NONE,
		                       .kernels = 25,
		                       .kernel_ns = 75,
		                       .busy_ns = 50,
		                       .first_ns = 90,
		                       .last_ns = 399 };
	made->device = plumb_builder_device(b, &device);
	struct plumb_track track = { .kind = PLUMB_TRACK_THREAD,
		                     .process = made->process,
		                     .device = PLUMB_NONE,
		                     .name = PLUMB_NONE };
	made->thread = plumb_builder_track(b, &track);
	track.kind = PLUMB_TRACK_STREAM;
	track.device = made->device;
	made->stream = plumb_builder_track(b, &track);
	plumb_builder_device_process(
		b, &(struct plumb_device_process){ made->device, made->process, 50, 90, 399 });
}

static void
add_moments(struct plumb_builder *b, const struct made *made, uint32_t context)
{
	const struct plumb_span spans[] = {
		{ .context = context,
		  .track = made->thread,
		  .start_ns = 90,
		  .end_ns = 260,
		  .correlation = 7 },
		{ .context = context, .track = made->thread, .start_ns = 95, .end_ns = 98 },
		{ .context = context, .track = made->thread, .start_ns = 120, .end_ns = 130 },
		{ .context = context, .track = made->stream, .start_ns = 199, .end_ns = 230 },
		{ .context = context, .track = made->stream, .start_ns = 200, .end_ns = 240 },
	};
	for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
		assert_int_equal(plumb_builder_span(b, &spans[i]), 0);
	for (int64_t at = 90; at < 410; at += 100)
		plumb_builder_work(b,
		                   &(struct plumb_work_item){ context, made->stream, at, at + 20 });
	for (int64_t at = 0; at < 420; at += 70)
		plumb_builder_cpu_sample(
			b, &(struct plumb_cpu_sample){ made->thread, context, at, 70 });
}

static struct made
make(void)
{
	struct plumb_builder *b = plumb_builder_new();
	struct made made = { 0 };
	struct plumb_error error = { 0 };

	add_places(b, &made);
	for (uint32_t w = 0; w < WINDOWS; w++)
		assert_int_equal(plumb_builder_window(
					 b, &(struct plumb_window){ made.process, windows[w].kind,
		                                                    windows[w].number,
		                                                    windows[w].iterations }),
		                 w);
	for (size_t i = 0; i < sizeof stretches / sizeof *stretches; i++)
		plumb_builder_window_stretch(b, &(struct plumb_window_stretch){ stretches[i].window,
		                                                                stretches[i].start,
		                                                                stretches[i].end });
	/* Named so that the order of contexts is not the order in which they came. */
	uint32_t train = add_operator(b, "z_train"), evaluate = add_operator(b, "m_evaluate"),
		 import = add_operator(b, "a_import");
	add_value(b, train, made.thread, 5, 21);
	add_part(b, TRAIN, train, made.thread, 5, 20);
	add_part(b, STARTUP, train, made.thread, 5, 1);
	add_value(b, evaluate, made.thread, 7, 4);
	add_part(b, EVALUATE, evaluate, made.thread, 7, 4);
	add_value(b, import, made.thread, 90, 1);
	add_part(b, STARTUP, import, made.thread, 90, 1);
	add_variant(b, train, made.thread, "[8]", (const uint64_t[WINDOWS]){ 1, 10, 0, 0 });
	add_variant(b, train, made.thread, "[4]", (const uint64_t[WINDOWS]){ 0, 10, 0, 0 });
	add_device(b, STARTUP, made.device, 1);
	add_device(b, TRAIN, made.device, 20);
	add_device(b, EVALUATE, made.device, 4);
	add_moments(b, &made, train);
	plumb_builder_run(b)->start_ns = 0;
	plumb_builder_run(b)->wall_ns = 420;
	plumb_builder_run(b)->analyses = 99;
	plumb_builder_finding(b, &(struct plumb_finding){ .id = PLUMB_NONE,
	                                                  .rule = PLUMB_NONE,
	                                                  .title = PLUMB_NONE,
	                                                  .advice = PLUMB_NONE,
	                                                  .evidence = PLUMB_NONE,
	                                                  .severity = PLUMB_NOTE,
	                                                  .context = PLUMB_NONE });
	assert_int_equal(plumb_builder_finish(b, &made.profile, &error), 0);
	plumb_builder_free(b);
	return made;
}

/* The profile of the window that TEXT names. */
static struct plumb_profile
cut(const struct made *made, const char *text)
{
	struct plumb_window_choice choice;
	struct plumb_profile window;
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_window_parse(text, &choice, &error), 0);
	assert_int_equal(plumb_window_profile(&made->profile, &choice, &window, &error), 0);
	return window;
}

static const struct plumb_value *
value_of(const struct plumb_profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->values_count; i++)
		if (strcmp(plumb_frame_label(p, p->contexts[p->values[i].context].frame), name) ==
		    0)
			return &p->values[i];
	return NULL;
}

static void
names_are_parsed(void **state)
{
	struct plumb_window_choice choice;
	struct plumb_error error = { 0 };
	static const char *const wrong[] = { "",        "Loop",    "loop:",
		                             "loop:0",  "loop:-1", "loop: 1",
		                             "loop:1x", "part",    "loop:99999999999" };
	(void)state;

	assert_int_equal(plumb_window_parse("loop", &choice, &error), 0);
	assert_int_equal(choice.kind, PLUMB_WINDOW_LOOP);
	assert_int_equal(choice.number, 0);
	assert_int_equal(plumb_window_parse("loop:12", &choice, &error), 0);
	assert_int_equal(choice.number, 12);
	assert_int_equal(plumb_window_parse("rest", &choice, &error), 0);
	assert_int_equal(choice.kind, PLUMB_WINDOW_REST);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(plumb_window_parse(wrong[i], &choice, &error), PLUMB_EUSAGE);
}

static void
windows_are_listed(void **state)
{
	struct made made = make();
	struct plumb_window_sums sums;
	char text[PLUMB_WINDOW_NAME];
	(void)state;

	assert_int_equal(plumb_window_sums(&made.profile, &sums), 0);
	assert_int_equal(sums.count, 4);
	assert_int_equal(sums.main, 1);
	assert_int_equal(sums.items[1].wall_ns, 200);
	assert_int_equal(sums.items[1].stretches, 2);
	assert_int_equal(sums.items[1].iterations, 20);
	assert_int_equal(sums.items[1].start_ns, 100);
	assert_int_equal(sums.items[1].end_ns, 350);
	assert_int_equal(sums.items[2].wall_ns, 100);
	assert_string_equal(plumb_window_name(&made.profile, PLUMB_WINDOW_LOOP, 2, text), "loop:2");
	plumb_window_sums_free(&sums);
	plumb_profile_free(&made.profile);
}

static void
values_are_of_the_window(void **state)
{
	struct made made = make();
	struct plumb_profile window = cut(&made, "loop");
	const struct plumb_value *v = value_of(&window, "z_train");
	(void)state;

	assert_int_equal(window.values_count, 1);
	assert_int_equal(v->sum, 100);
	assert_int_equal(v->count, 20);
	assert_true(v->mean == 5);
	/* One of 21 calls was before. */
	assert_true(v->min == PLUMB_UNKNOWN && v->max == PLUMB_UNKNOWN);
	assert_int_equal(window.contexts_count, made.profile.contexts_count);
	assert_int_equal(window.run.wall_ns, 200);
	assert_int_equal(window.run.start_ns, 100);
	assert_int_equal(window.findings_count, 0);
	assert_true(window.run.analyses == PLUMB_UNKNOWN);
	plumb_profile_free(&window);
	window = cut(&made, "loop:2");
	v = value_of(&window, "m_evaluate");
	assert_int_equal(window.values_count, 1);
	assert_int_equal(v->count, 4);
	/* All calls were here. */
	assert_true(v->min == 6 && v->max == 8);
	plumb_profile_free(&window);
	window = cut(&made, "startup");
	assert_int_equal(window.values_count, 2);
	assert_int_equal(value_of(&window, "a_import")->sum, 90);
	assert_int_equal(value_of(&window, "z_train")->sum, 5);
	plumb_profile_free(&window);
	plumb_profile_free(&made.profile);
}

static void
unknown_extremes_stay_unknown(void **state)
{
	struct plumb_stat a = { 10, 2, PLUMB_UNKNOWN, PLUMB_UNKNOWN, 5, 1 };
	struct plumb_stat b = { 10, 2, 4, 6, 5, 1 };
	(void)state;

	plumb_stat_merge(&b, &a);
	assert_true(b.min == PLUMB_UNKNOWN && b.max == PLUMB_UNKNOWN);
	assert_int_equal(b.sum, 20);
}

static void
variants_are_of_the_window(void **state)
{
	struct made made = make();
	struct plumb_profile window = cut(&made, "loop:1");
	(void)state;

	assert_int_equal(window.variants_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct plumb_variant *v = &window.variants[i];
		bool whole = strcmp(plumb_text(&window, v->shapes), "[4]") == 0;
		assert_int_equal(v->count, 10);
		assert_int_equal(v->time, 50);
		assert_true(v->min == (whole ? 2 : PLUMB_UNKNOWN));
	}
	plumb_profile_free(&window);
	window = cut(&made, "loop:2");
	assert_int_equal(window.variants_count, 0);
	plumb_profile_free(&window);
	plumb_profile_free(&made.profile);
}

static void
devices_are_of_the_window(void **state)
{
	struct made made = make();
	struct plumb_profile window = cut(&made, "loop:1");
	(void)state;

	assert_int_equal(window.devices[0].kernels, 20);
	assert_int_equal(window.devices[0].busy_ns, 40);
	assert_int_equal(window.devices[0].first_ns, 100);
	assert_int_equal(window.devices[0].last_ns, 350);
	assert_int_equal(window.device_processes[0].busy_ns, 40);
	plumb_profile_free(&window);
	/* There are windows with work, and this has none: 0, and not unknown. */
	window = cut(&made, "rest");
	assert_int_equal(window.devices[0].kernels, 0);
	assert_true(window.devices[0].first_ns == PLUMB_UNKNOWN);
	plumb_profile_free(&window);
	plumb_profile_free(&made.profile);
}

static void
moments_are_of_the_window(void **state)
{
	struct made made = make();
	struct plumb_profile window = cut(&made, "loop:1");
	const struct plumb_span *s = window.spans;
	(void)state;

	/* The first span lies in both stretches; the call is known by the first part. */
	assert_int_equal(window.spans_count, 4);
	assert_true(s[0].start_ns == 100 && s[0].end_ns == 200 && s[0].correlation == 7);
	assert_true(s[1].start_ns == 120 && s[1].end_ns == 130);
	assert_true(s[2].start_ns == 250 && s[2].end_ns == 260 && !s[2].correlation);
	/* GPU work by its start. */
	assert_true(s[3].start_ns == 199 && s[3].end_ns == 230);
	/* At 190 and 290, of 90, 190, 290 and 390. */
	assert_int_equal(window.work_count, 2);
	assert_int_equal(window.work[0].start_ns, 190);
	/* At 140, 280, of 0, 70, 140, 210, 280, 350. */
	assert_int_equal(window.cpu_samples_count, 2);
	plumb_profile_free(&window);
	plumb_profile_free(&made.profile);
}

static void
sums_add_up_to_the_whole(void **state)
{
	static const char *const names[] = { "startup", "loop:1", "loop:2", "rest" };
	struct made made = make();
	int64_t sum = 0, whole = 0, wall = 0;
	(void)state;

	for (uint32_t i = 0; i < made.profile.values_count; i++)
		whole += made.profile.values[i].sum;
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		struct plumb_profile window = cut(&made, names[n]);
		wall += window.run.wall_ns;
		for (uint32_t i = 0; i < window.values_count; i++)
			sum += window.values[i].sum;
		plumb_profile_free(&window);
	}
	assert_int_equal(sum, whole);
	assert_int_equal(wall, 420);
	plumb_profile_free(&made.profile);
}

static void
all_is_the_profile(void **state)
{
	struct made made = make();
	struct plumb_profile window = cut(&made, "all");
	(void)state;

	assert_int_equal(window.findings_count, 1);
	assert_int_equal(window.windows_count, WINDOWS);
	assert_int_equal(window.spans_count, made.profile.spans_count);
	assert_memory_equal(window.values, made.profile.values,
	                    window.values_count * sizeof *window.values);
	plumb_profile_free(&window);
	plumb_profile_free(&made.profile);
}

static void
missing_windows_are_named(void **state)
{
	struct made made = make();
	struct plumb_profile window, none = { 0 };
	struct plumb_error error = { 0 };
	struct plumb_window_choice choice = { PLUMB_WINDOW_LOOP, 3 };
	(void)state;

	assert_int_equal(plumb_window_profile(&made.profile, &choice, &window, &error),
	                 PLUMB_EEMPTY);
	assert_string_equal(error.message, "this profile has no window loop:3; it has: startup, "
	                                   "loop:1, loop:2, rest");
	choice.number = 0;
	assert_int_equal(plumb_window_profile(&none, &choice, &window, &error), PLUMB_EEMPTY);
	assert_non_null(strstr(error.message, "no windows"));
	plumb_profile_free(&made.profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_parsed),
		cmocka_unit_test(windows_are_listed),
		cmocka_unit_test(values_are_of_the_window),
		cmocka_unit_test(unknown_extremes_stay_unknown),
		cmocka_unit_test(variants_are_of_the_window),
		cmocka_unit_test(devices_are_of_the_window),
		cmocka_unit_test(moments_are_of_the_window),
		cmocka_unit_test(sums_add_up_to_the_whole),
		cmocka_unit_test(all_is_the_profile),
		cmocka_unit_test(missing_windows_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
