/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees and the summary. `test_report NAME FILE` writes the sample profile NAME to FILE instead,
 * which the golden tests read (tests/e2e/test_golden.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden/profiles.h"
#include "analyze/analyze.h"
#include "cli/summary.h"
#include "failing_malloc.h"
#include "store/store.h"
#include "view/tree.h"

static struct plumb_tree
tree_of(const struct plumb_profile *profile, uint32_t metric, uint32_t limit, bool compact)
{
	struct plumb_tree_options options = { metric, limit, compact, NULL };
	struct plumb_tree tree;

	assert_int_equal(plumb_tree_contexts(profile, &options, &tree), 0);
	return tree;
}

/* Parents come first, depths fit, children stand under their parent, the greater first. */
static void
check_order(const struct plumb_tree *tree, uint32_t metric)
{
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct plumb_tree_node *node = &tree->nodes[i], *before = node - 1;

		if (node->parent == PLUMB_NONE) {
			assert_int_equal(node->depth, 0);
		} else {
			assert_true(node->parent < i);
			assert_int_equal(node->depth, tree->nodes[node->parent].depth + 1);
		}
		if (i && before->parent == node->parent)
			assert_true(plumb_stat_amount(metric, &before->inclusive) >=
			            plumb_stat_amount(metric, &node->inclusive));
		if (i)
			assert_true(node->depth <= before->depth + 1);
	}
}

static void
test_whole_tree(void **state)
{
	struct plumb_profile profile = { 0 };
	struct plumb_tree tree;

	(void)state;
	assert_true(sample_make("gpu", &profile));
	tree = tree_of(&profile, PLUMB_METRIC_GPU_TIME, 0, false);
	assert_int_equal(tree.count, profile.contexts_count - 1);
	check_order(&tree, PLUMB_METRIC_GPU_TIME);
	plumb_tree_free(&tree);
	plumb_profile_free(&profile);
}

static void
test_limit_keeps_ancestors(void **state)
{
	struct plumb_profile profile = { 0 };
	struct plumb_tree tree;

	(void)state;
	assert_true(sample_make("gpu", &profile));
	tree = tree_of(&profile, PLUMB_METRIC_GPU_TIME, 5, false);
	assert_int_equal(tree.count, 5);
	check_order(&tree, PLUMB_METRIC_GPU_TIME);
	for (uint32_t i = 1; i < tree.count; i++)
		assert_int_equal(tree.nodes[i].parent, i - 1);
	assert_int_equal(tree.nodes[0].inclusive.sum, 6900000);
	assert_true(tree.available > 5);
	plumb_tree_free(&tree);
	plumb_profile_free(&profile);
}

static void
test_deep_recursion(void **state)
{
	struct plumb_profile profile = { 0 };
	struct plumb_tree_options options = { PLUMB_METRIC_OP_TIME, 0, false, NULL };
	struct plumb_tree tree;

	(void)state;
	assert_true(sample_make("deep", &profile));
	tree = tree_of(&profile, PLUMB_METRIC_OP_TIME, 20, true);
	assert_int_equal(tree.count, 1);
	assert_int_equal(tree.nodes[0].length, SAMPLE_DEPTH + 1);
	plumb_tree_free(&tree);
	tree = tree_of(&profile, PLUMB_METRIC_OP_TIME, 0, false);
	assert_int_equal(tree.count, SAMPLE_DEPTH + 1);
	assert_int_equal(tree.nodes[tree.count - 1].depth, SAMPLE_DEPTH);
	plumb_tree_free(&tree);
	assert_int_equal(plumb_tree_inverted(&profile, NULL, &options, &tree), 0);
	assert_int_equal(tree.count, SAMPLE_DEPTH + 1);
	check_order(&tree, PLUMB_METRIC_OP_TIME);
	plumb_tree_free(&tree);
	plumb_profile_free(&profile);
}

static void
test_inverted(void **state)
{
	struct plumb_profile profile = { 0 };
	struct plumb_tree_options options = { PLUMB_METRIC_OP_TIME, 0, false, NULL };
	struct plumb_grouping *grouping;
	struct plumb_tree tree;
	int64_t top = 0;

	(void)state;
	assert_true(sample_make("cpu", &profile));
	grouping = plumb_grouping_new(&profile, PLUMB_BY_OPERATOR, NULL);
	assert_int_equal(plumb_tree_inverted(&profile, grouping, &options, &tree), 0);
	check_order(&tree, PLUMB_METRIC_OP_TIME);
	for (uint32_t i = 0; i < tree.count; i++)
		if (tree.nodes[i].parent == PLUMB_NONE)
			top += tree.nodes[i].inclusive.sum;
	assert_int_equal(top, 300 + 600 + 150 + 1000);
	/* aten::to: 150 came through aten::_to_copy, 300 straight from main. */
	assert_string_equal(
		plumb_frame_label(&profile, profile.contexts[tree.nodes[2].context].frame),
		"aten::to");
	plumb_tree_free(&tree);
	plumb_grouping_free(grouping);
	plumb_profile_free(&profile);
}

/* A finding of a loop that is not the main one says so, and how long that loop takes. */
static void
test_summary_names_the_loop(void **state)
{
	static const struct plumb_finding_text findings[] = {
		{ .id = "a", .title = "it waits", .window = "loop:2", .severity = PLUMB_SERIOUS },
		{ .id = "b", .title = "it copies", .window = "loop:1", .severity = PLUMB_WARNING },
	};
	const struct plumb_summary_options options = { .path = "x.plumb", .width = 100 };
	struct plumb_profile profile = { 0 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	assert_true(sample_make("windows", &profile));
	assert_int_equal(plumb_findings_add(&profile, findings, 2, NULL), 0);
	plumb_summary_print(&profile, out, &options);
	fclose(out);
	assert_non_null(strstr(text, "  finding   serious: loop 2: it waits\n"));
	assert_non_null(strstr(text, "  finding   warning: it copies\n"));
	assert_non_null(strstr(text, "; loop 2 takes 2.00 s\n"));
	free(text);
	plumb_profile_free(&profile);
}

static void
test_summary_fits(void **state)
{
	static const char *const names[] = { "gpu", "cpu", "deep", "rude", "empty", "windows" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct plumb_summary_options options = { .path = "x.plumb", .width = 100 };
		struct plumb_profile profile = { 0 };
		char *text = NULL;
		size_t bytes, lines = 0;
		FILE *out = open_memstream(&text, &bytes);

		assert_true(sample_make(names[i], &profile));
		plumb_summary_print(&profile, out, &options);
		fclose(out);
		for (size_t b = 0; b < bytes; b++)
			lines += text[b] == '\n';
		assert_true(lines >= 4 && lines <= PLUMB_SUMMARY_LINES);
		assert_null(strchr(text, '\033'));
		assert_non_null(strstr(text, "plumb report x.plumb"));
		if (!strcmp(names[i], "gpu")) {
			assert_non_null(strstr(text, "busy 79.0 %"));
			assert_non_null(strstr(text, "aten::mm"));
			assert_non_null(strstr(text, "gemm_bwd_h200"));
			assert_non_null(strstr(text, "/home/ada/model.py:12"));
			assert_non_null(strstr(text, "dropped 2 kernel records"));
		}
		if (!strcmp(names[i], "windows")) {
			assert_non_null(strstr(text, "trying variants of kernels 11.9 s"));
			assert_non_null(
				strstr(text, "400 iterations of 60.0 ms (\xc2\xb1 1.03 ms)"));
			assert_non_null(strstr(text, "of the main loop only"));
			assert_non_null(strstr(text, "implicit_gemm"));
			assert_null(strstr(text, "aten::fill_")); /* of start-up */
		}
		free(text);
		plumb_profile_free(&profile);
	}
}

/* One after the other each allocation fails: the caller learns of it, and nothing leaks or
 * crashes. */
static void
test_no_memory(void **state)
{
	struct plumb_profile profile = { 0 };
	FILE *nowhere = fopen("/dev/null", "w");
	bool reached = true;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	assert_true(sample_make("gpu", &profile));
	for (long n = 0; reached; n++) {
		struct plumb_tree_options options = { PLUMB_METRIC_GPU_TIME, 20, true, NULL };
		struct plumb_grouping *grouping;
		struct plumb_tree tree = { 0 };
		int contexts, inverted = 0;

		failing_malloc_at = n;
		contexts = plumb_tree_contexts(&profile, &options, &tree);
		plumb_tree_free(&tree);
		grouping = plumb_grouping_new(&profile, PLUMB_BY_OPERATOR, NULL);
		if (grouping)
			inverted = plumb_tree_inverted(&profile, grouping, &options, &tree);
		reached = failing_malloc_stop();
		assert_true(!reached || contexts < 0 || !grouping || inverted < 0);
		assert_true(reached || (!contexts && grouping && !inverted));
		plumb_tree_free(&tree);
		plumb_grouping_free(grouping);
	}
	reached = true;
	for (long n = 0; reached; n++) {
		failing_malloc_at = n;
		plumb_summary_print(&profile, nowhere, NULL);
		reached = failing_malloc_stop();
	}
	fclose(nowhere);
	plumb_profile_free(&profile);
}

static int
write_sample(const char *name, const char *path)
{
	struct plumb_profile profile = { 0 };
	struct plumb_error error;

	if (!sample_make(name, &profile)) {
		fprintf(stderr, "there is no sample profile %s\n", name);
		return 1;
	}
	if (plumb_store_write(&profile, path, NULL, NULL, &error) < 0) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	plumb_profile_free(&profile);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_tree),
		cmocka_unit_test(test_limit_keeps_ancestors),
		cmocka_unit_test(test_deep_recursion),
		cmocka_unit_test(test_inverted),
		cmocka_unit_test(test_summary_names_the_loop),
		cmocka_unit_test(test_summary_fits),
		cmocka_unit_test(test_no_memory),
	};

	if (argc == 3)
		return write_sample(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
