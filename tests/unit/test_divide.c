/* SPDX-License-Identifier: Apache-2.0 */
/* Folding of names that differ in an index, and what divides a line that holds most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/divide.h"
#include "analyze/group.h"
#include "model/builder.h"
#include "model/user_code.h"

/* ---- folding ---- */

static void
expect_pattern(const char *name, uint32_t stars, const char *pattern)
{
	char text[40];

	assert_int_equal(plumb_fold_pattern(name, text, sizeof text), stars);
	if (stars)
		assert_string_equal(text, pattern);
}

static void
test_patterns(void **state)
{
	(void)state;
	expect_pattern("encoder.layer.11.attention", 1, "encoder.layer.*.attention");
	expect_pattern("h.3", 1, "h.*");
	expect_pattern("3", 1, "*");
	expect_pattern("stages.0.blocks.12.mlp", 2, "stages.*.blocks.*.mlp");
	expect_pattern("layer1.conv2", 0, NULL);
	expect_pattern("", 0, NULL);
	expect_pattern("a..1.", 1, "a..*.");
	expect_pattern("a.0123456789012345678901234567890123456789", 0, NULL); /* too long */
}

static void
fold(const struct plumb_fold_item *items, uint32_t count, int64_t total, struct plumb_folds *folds)
{
	assert_int_equal(plumb_folds_make(items, count, total, folds), 0);
}

static void
test_alike(void **state)
{
	(void)state;
	static const struct plumb_fold_item items[] = {
		{ "h.0.mlp", "MLP", 100 }, { "head", "Linear", 10 },  { "h.1.mlp", "MLP", 110 },
		{ "h.2.mlp", "MoE", 300 }, { "h.10.mlp", "MLP", 90 }, { "x.0", "MLP", 5 },
		{ NULL, NULL, 7 },         { "h.3.mlp", NULL, 100 },
	};
	struct plumb_folds folds;

	fold(items, 8, 722, &folds);
	assert_int_equal(folds.count[0], 3);
	assert_int_equal(folds.first[2], 0);
	assert_int_equal(folds.first[4], 0);
	assert_int_equal(folds.count[2], 0);
	assert_string_equal(folds.label[0], "h.*.mlp");
	/* Of another class, alone, without an index, not to be folded. */
	for (uint32_t i = 1; i < 8; i++)
		if (i != 2 && i != 4) {
			assert_int_equal(folds.first[i], i);
			assert_int_equal(folds.count[i], 1);
			assert_null(folds.label[i]);
		}
	plumb_folds_free(&folds);
}

/* The star stands for what differs only. */
static void
test_two_indexes(void **state)
{
	(void)state;
	static const struct plumb_fold_item same[] = {
		{ "s.2.b.0.mlp", "MLP", 5 },
		{ "s.2.b.1.mlp", "MLP", 5 },
		{ "s.2.b.2.mlp", "MLP", 5 },
	};
	static const struct plumb_fold_item both[] = {
		{ "s.0.b.0.mlp", "MLP", 5 },
		{ "s.1.b.0.mlp", "MLP", 5 },
		{ "s.1.b.1.mlp", "MLP", 5 },
	};
	struct plumb_folds folds;

	fold(same, 3, 15, &folds);
	assert_string_equal(folds.label[0], "s.2.b.*.mlp");
	plumb_folds_free(&folds);
	fold(both, 3, 15, &folds);
	assert_string_equal(folds.label[0], "s.*.b.*.mlp");
	plumb_folds_free(&folds);
}

static void
test_stands_out(void **state)
{
	(void)state;
	static const struct plumb_fold_item items[] = {
		{ "h.0", "B", 100 }, { "h.1", "B", 150 }, { "h.2", "B", 100 },
		{ "h.3", "B", 151 }, { "h.4", "B", 1 },
	};
	static const struct plumb_fold_item two[] = { { "h.0", "B", 900 }, { "h.1", "B", 100 } };
	struct plumb_folds folds;

	fold(items, 5, 502, &folds);
	assert_int_equal(folds.first[3], 3);
	assert_int_equal(folds.usual[3], 100);
	assert_int_equal(folds.count[0], 4);
	assert_int_equal(folds.usual[1], 0);
	plumb_folds_free(&folds);
	/* Of so large a total it is too little to look at. */
	fold(items, 5, 100000, &folds);
	assert_int_equal(folds.count[0], 5);
	plumb_folds_free(&folds);
	/* The first one of all may be the one. */
	fold(two, 2, 1000, &folds);
	assert_int_equal(folds.usual[0], 100);
	assert_int_equal(folds.count[1], 1);
	assert_null(folds.label[1]);
	plumb_folds_free(&folds);
}

/* ---- dividing ---- */

#define LIBRARY "/usr/lib/python3/dist-packages/"

/* A path: "p:FILE:LINE", "m:NAME" or "o:NAME" each, outermost first, then a time. */
struct work {
	const char *frames[8];
	int64_t ns;
};

struct divided {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	unsigned char *user;
	uint32_t *user_of;
	struct plumb_division *division;
};

static uint32_t
add_frame(struct plumb_builder *b, const char *text)
{
	const char *colon = strrchr(text + 2, ':');
	char file[200];

	if (*text != 'p')
		return plumb_builder_frame(
			b, *text == 'm' ? PLUMB_FRAME_MODULE : PLUMB_FRAME_OPERATOR,
			plumb_builder_text(b, text + 2),
			*text == 'm' ? plumb_builder_text(b, "Class") : PLUMB_NONE, 0);
	snprintf(file, sizeof file, "%.*s", (int)(colon - text - 2), text + 2);
	return plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "f"),
	                           plumb_builder_text(b, file),
	                           (uint32_t)strtoul(colon + 1, NULL, 10));
}

static struct divided
divide(const struct work *works, size_t count)
{
	struct divided d = { .builder = plumb_builder_new() };
	struct plumb_builder *b = d.builder;
	struct plumb_process process = { .pid = 1,
		                         .ppid = PLUMB_UNKNOWN,
		                         .rank = PLUMB_UNKNOWN,
		                         .local_rank = PLUMB_UNKNOWN,
		                         .host = PLUMB_NONE,
		                         .command = PLUMB_NONE };
	struct plumb_track thread = { .kind = PLUMB_TRACK_THREAD,
		                      .device = PLUMB_NONE,
		                      .name = PLUMB_NONE };
	uint32_t track;

	thread.process = plumb_builder_process(b, &process);
	track = plumb_builder_track(b, &thread);
	for (size_t i = 0; i < count; i++) {
		struct plumb_value value = { .track = track,
			                     .metric = PLUMB_METRIC_OP_TIME,
			                     .sum = works[i].ns,
			                     .count = 1,
			                     .min = works[i].ns,
			                     .max = works[i].ns,
			                     .mean = (double)works[i].ns };
		for (const char *const *f = works[i].frames; *f; f++)
			value.context =
				plumb_builder_context(b, value.context, add_frame(b, *f), 0);
		plumb_builder_value(b, &value);
	}
	assert_int_equal(plumb_builder_finish(b, &d.profile, NULL), 0);
	d.user = plumb_user_code_frames(&d.profile, NULL, NULL);
	d.user_of = plumb_user_contexts(&d.profile, d.user);
	d.division = plumb_division_new(&d.profile, d.user, d.user_of, PLUMB_METRIC_OP_TIME);
	assert_non_null(d.division);
	return d;
}

static void
drop(struct divided *d)
{
	plumb_division_free(d->division);
	free(d->user_of);
	free(d->user);
	plumb_profile_free(&d->profile);
	plumb_builder_free(d->builder);
}

/* The place of the work of operator NAME. */
static void
expect(const struct divided *d, const char *name, const char *place)
{
	char text[300];

	for (uint32_t c = 0; c < d->profile.contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(&d->profile, c);

		if (frame->kind != PLUMB_FRAME_OPERATOR ||
		    strcmp(plumb_text(&d->profile, frame->name), name) != 0)
			continue;
		if (d->division->place_of[c] == PLUMB_NONE)
			strcpy(text, "-");
		else
			plumb_division_text(&d->profile, d->division, d->division->place_of[c],
			                    false, text, sizeof text);
		assert_string_equal(text, place);
		return;
	}
	fail_msg("there is no %s", name);
}

#define TRAIN "p:/home/me/a.py:10", "p:" LIBRARY "pkg/trainer.py:1"

static void
test_modules_divide(void **state)
{
	(void)state;
	static const struct work works[] = {
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:2", "m:Net", "m:h.0", "m:h.0.attn",
		    "o:a0" },
		  200 },
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:2", "m:Net", "m:h.1", "m:h.1.attn",
		    "o:a1" },
		  200 },
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:2", "m:Net", "m:h.0", "m:h.0.mlp", "o:m0" },
		  200 },
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:2", "m:Net", "m:h.1", "m:h.1.mlp", "o:m1" },
		  200 },
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:2", "m:Net", "m:head", "o:head" }, 50 },
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:3", "p:" LIBRARY "torch/optim/sgd.py:9",
		    "o:step" },
		  100 },
		{ { "p:/home/me/a.py:11", "o:mine" }, 50 },
	};
	struct divided d = divide(works, sizeof works / sizeof *works);

	expect(&d, "a0", "h.*.attn, 2 layers");
	expect(&d, "a1", "h.*.attn, 2 layers");
	expect(&d, "m1", "h.*.mlp, 2 layers");
	expect(&d, "head", "head");
	expect(&d, "step", "pkg/trainer.py:3 (package)");
	expect(&d, "mine", "a.py:11");
	assert_int_equal(d.profile.frames[d.division->line].line, 10);
	assert_true(d.division->share > 0.94 && d.division->share < 0.96);
	drop(&d);
}

/* A line with half is not divided, whatever is under it. */
static void
test_half_is_not_most(void **state)
{
	(void)state;
	static const struct work works[] = {
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:2", "o:a" }, 250 },
		{ { TRAIN, "p:" LIBRARY "pkg/trainer.py:3", "o:b" }, 250 },
		{ { "p:/home/me/a.py:11", "o:mine" }, 500 },
	};
	struct divided d = divide(works, 3);

	expect(&d, "a", "a.py:10");
	assert_true(d.division->share == 0);
	assert_int_equal(d.division->line, PLUMB_NONE);
	drop(&d);
}

/* One operator under a chain of lines: nothing divides it. With a second one, the outermost lines
 * that differ do. */
static void
test_what_does_not_divide(void **state)
{
	(void)state;
	static const struct work one[] = {
		{ { TRAIN, "p:" LIBRARY "torch/functional.py:2", "o:a" }, 990 },
		{ { "p:/home/me/a.py:11", "o:mine" }, 10 },
	};
	static const struct work two[] = {
		{ { TRAIN, "p:" LIBRARY "pkg/x.py:2", "p:" LIBRARY "torch/functional.py:2", "o:a" },
		  600 },
		{ { TRAIN, "p:" LIBRARY "pkg/x.py:3", "p:" LIBRARY "torch/functional.py:2", "o:b" },
		  300 },
		{ { TRAIN, "p:" LIBRARY "pkg/x.py:4", "p:/usr/lib/python3.11/json/decoder.py:5",
		    "o:c" },
		  10 },
	};
	struct divided d = divide(one, 2);

	expect(&d, "a", "a.py:10");
	drop(&d);
	d = divide(two, 3);
	expect(&d, "a", "pkg/x.py:2 (package)");
	expect(&d, "b", "pkg/x.py:3 (package)");
	expect(&d, "c", "pkg/x.py:4 (package)");
	drop(&d);
}

/* Lines that share a model are divided although none holds most; your own lines in a model stay. */
static void
test_shared_model(void **state)
{
	(void)state;
	static const struct work works[] = {
		{ { "p:/home/me/a.py:1", "m:Net", "m:h.0", "o:a" }, 240 },
		{ { "p:/home/me/a.py:1", "m:Net", "m:g", "o:b" }, 240 },
		{ { "p:/home/me/a.py:2", "m:Net", "m:h.0", "o:a" }, 240 },
		{ { "p:/home/me/a.py:2", "m:Net", "m:g", "o:b" }, 240 },
	};
	static const struct work own[] = {
		{ { "p:/home/me/a.py:1", "m:Net", "p:/home/me/a.py:20", "m:attn", "o:a" }, 400 },
		{ { "p:/home/me/a.py:1", "m:Net", "p:/home/me/a.py:21", "m:mlp", "o:b" }, 500 },
	};
	struct divided d = divide(works, 4);

	expect(&d, "a", "h.0");
	expect(&d, "b", "g");
	assert_int_equal(d.division->lines, 2);
	drop(&d);
	d = divide(own, 2);
	expect(&d, "a", "a.py:20");
	/* It holds most, but one module alone does not divide it. */
	expect(&d, "b", "a.py:21");
	drop(&d);
}

/* Without a line of your code packages' lines divide; without Python frames nothing does. */
static void
test_no_line_of_yours(void **state)
{
	(void)state;
	static const struct work packages[] = {
		{ { "p:/usr/lib/python3.11/threading.py:9", "p:" LIBRARY "vllm/core.py:1",
		    "p:" LIBRARY "vllm/core.py:5", "o:a" },
		  450 },
		{ { "p:/usr/lib/python3.11/threading.py:9", "p:" LIBRARY "vllm/core.py:1",
		    "p:" LIBRARY "vllm/core.py:6", "o:b" },
		  450 },
		{ { "p:/usr/lib/python3.11/threading.py:12", "o:c" }, 10 },
	};
	static const struct work bare[] = {
		{ { "m:Net", "m:h.0", "o:a" }, 500 },
		{ { "m:Net", "m:h.1", "o:b" }, 500 },
		{ { "o:c" }, 100 },
	};
	struct divided d = divide(packages, 3);

	expect(&d, "a", "vllm/core.py:5 (package)");
	expect(&d, "b", "vllm/core.py:6 (package)");
	expect(&d, "c", "-");
	assert_int_equal(d.division->line, PLUMB_NONE);
	drop(&d);
	d = divide(bare, 3);
	expect(&d, "a", "-");
	assert_true(d.division->share == 0);
	drop(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_two_indexes),
		cmocka_unit_test(test_stands_out),
		cmocka_unit_test(test_modules_divide),
		cmocka_unit_test(test_half_is_not_most),
		cmocka_unit_test(test_what_does_not_divide),
		cmocka_unit_test(test_shared_model),
		cmocka_unit_test(test_no_line_of_yours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
