/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs of random trees: all views against a slow reference, and random ranges. */
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

#include "random_flames.h"

/* ---- against a reference: paths as lists of names, added up one by one ---- */

struct sum {
	char path[STEPS * 16];
	int64_t value, self;
};

struct sums {
	struct sum items[8192];
	uint32_t count;
};

static struct sum *
sum_of(struct sums *sums, const char *path)
{
	for (uint32_t i = 0; i < sums->count; i++)
		if (!strcmp(sums->items[i].path, path))
			return &sums->items[i];
	assert_true(sums->count < sizeof sums->items / sizeof *sums->items);
	snprintf(sums->items[sums->count].path, sizeof sums->items->path, "%s", path);
	sums->items[sums->count].value = sums->items[sums->count].self = 0;
	return &sums->items[sums->count++];
}

static void
add_path(struct sums *sums, const struct plumb_profile *p, const struct step *path, uint32_t length,
         int64_t self)
{
	char text[STEPS * 16] = "";

	sum_of(sums, text)->value += self;
	for (uint32_t i = 0; i < length; i++) {
		const char *name = path[i].frame == UINT32_MAX ? "backward"
		                   : path[i].frame == UINT32_MAX - 1
		                           ? "forward"
		                           : plumb_frame_label(p, path[i].frame);
		bool mark = path[i].back && !(i && path[i - 1].back);

		snprintf(strchr(text, 0), 40, "/%s%s", name, mark ? " [backward]" : "");
		sum_of(sums, text)->value += self;
	}
	sum_of(sums, text)->self += self;
}

static void
make_reference(const struct plumb_profile *p, const struct plumb_flame_query *q, struct sums *sums)
{
	struct step path[STEPS];

	sums->count = 0;
	sum_of(sums, "");
	for (uint32_t i = 0; i < p->values_count; i++) {
		uint32_t length;

		if (p->values[i].metric != PLUMB_METRIC_OP_TIME)
			continue;
		length = path_of(p, q, p->values[i].context, path);
		length = turn_path(q, path, length);
		if (length != PLUMB_NONE)
			add_path(sums, p, path, length, p->values[i].sum);
	}
}

static struct plumb_flame_query
random_query(const struct plumb_profile *p)
{
	return (struct plumb_flame_query){
		.view = (enum plumb_flame_view)(rand() % PLUMB_FLAME_VIEWS),
		.metric = "op.time",
		.of = (uint32_t)rand() % p->frames_count,
		.hidden = rand() % 2 ? (unsigned)rand() % 64 : 0,
		.collapse = rand() % 2,
		.apart = rand() % 4 == 0,
	};
}

/* All boxes of a whole view, with their paths. */
static void
check_whole(const struct plumb_profile *p, const struct plumb_flame_query *q,
            struct plumb_flame *flame)
{
	static struct sums sums;
	static char paths[8192][STEPS * 16];
	struct plumb_flame_range all = { 0 };
	struct plumb_answer a, total;
	struct plumb_error error;
	uint32_t expected = 0;
	double selves;

	make_reference(p, q, &sums);
	assert_int_equal(plumb_flame_boxes(flame, &all, &a, &error), 0);
	assert_int_equal(plumb_flame_total(flame, &all, &total, &error), 0);
	assert_true(plumb_answer_at(&total, 0, 0)->number == (double)sums.items[0].value);
	selves = plumb_answer_at(&total, 0, 1)->number;
	assert_true(selves == (double)sums.items[0].self);
	for (uint32_t r = 0; r < a.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&a, r, 0);
		bool top = c[PARENT].type == PLUMB_ANSWER_UNKNOWN;
		const struct sum *sum;

		assert_true(top == !c[DEPTH].integer);
		assert_true(top || c[PARENT].integer < c[NODE].integer);
		snprintf(paths[c[NODE].integer], sizeof *paths, "%.900s/%s",
		         top ? "" : paths[c[PARENT].integer], c[NAME].text);
		sum = sum_of(&sums, paths[c[NODE].integer]);
		if (c[VALUE].number != (double)sum->value || c[SELF].number != (double)sum->self)
			fail_msg("%s: %f/%f", sum->path, c[VALUE].number, c[SELF].number);
		selves += c[SELF].number;
	}
	for (uint32_t i = 1; i < sums.count; i++)
		expected += sums.items[i].value > 0;
	assert_int_equal(a.row_count, expected);
	assert_true(selves == (double)sums.items[0].value);
	plumb_answer_free(&a);
	plumb_answer_free(&total);
}

/* The number behind KEY in the values of op.time; 0 if it has none. */
static double
detail_of(struct plumb_flame *flame, uint32_t node, const char *key)
{
	struct plumb_error error;
	char *text = NULL;
	const char *at;
	double number = 0;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(plumb_flame_frame(flame, node, NULL, out, &error), 0);
	assert_int_equal(fclose(out), 0);
	assert_true(plumb_json_valid(text));
	at = strstr(text, "\"metric\":\"op.time\"");
	if (at)
		number = strtod(strstr(at, key) + strlen(key), NULL);
	free(text);
	return number;
}

/* Details of nodes have the values of their boxes. */
static void
check_details(struct plumb_flame *flame)
{
	struct plumb_answer a;
	struct plumb_error error;

	assert_int_equal(plumb_flame_boxes(flame, &(struct plumb_flame_range){ 0 }, &a, &error), 0);
	for (uint32_t r = 0; r < a.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&a, r, 0);
		uint32_t node = (uint32_t)c[NODE].integer;

		if (rand() % 8)
			continue;
		assert_true(detail_of(flame, node, "\"total\":") == c[VALUE].number);
		assert_true(detail_of(flame, node, "\"self\":") == c[SELF].number);
	}
	plumb_answer_free(&a);
	assert_int_equal(plumb_flame_total(flame, &(struct plumb_flame_range){ 0 }, &a, &error), 0);
	assert_true(detail_of(flame, 0, "\"total\":") == plumb_answer_at(&a, 0, 0)->number);
	assert_true(detail_of(flame, 0, "\"self\":") == plumb_answer_at(&a, 0, 1)->number);
	plumb_answer_free(&a);
}

/* The node of a context has its path. ROWS: by node, the row of its box. */
static void
check_node_of(const struct plumb_profile *p, const struct plumb_flame_query *q,
              struct plumb_flame *flame)
{
	static uint32_t rows[8192];
	struct plumb_answer a;
	struct plumb_error error;
	struct step path[STEPS];

	assert_int_equal(plumb_flame_boxes(flame, &(struct plumb_flame_range){ 0 }, &a, &error), 0);
	for (uint32_t r = 0; r < a.row_count; r++)
		rows[plumb_answer_at(&a, r, 0)[NODE].integer] = r;
	for (uint32_t i = 0; i < p->values_count; i++) {
		uint32_t context = p->values[i].context, node, length;

		if (p->values[i].metric != PLUMB_METRIC_OP_TIME || !p->values[i].sum)
			continue;
		assert_int_equal(plumb_flame_node_of(flame, context, &node, &error), 0);
		length = path_of(p, q, context, path);
		length = q->view > PLUMB_FLAME_UP ? 0 : turn_path(q, path, length);
		length = q->view == PLUMB_FLAME_UP && length ? 1 : length;
		while (length--) {
			const struct plumb_answer_cell *c = plumb_answer_at(&a, rows[node], 0);

			assert_int_equal(c[NODE].integer, node);
			if (path[length].frame < UINT32_MAX - 1)
				assert_int_equal(c[FRAME].integer, path[length].frame);
			node = c[PARENT].type == PLUMB_ANSWER_UNKNOWN ? 0
			                                              : (uint32_t)c[PARENT].integer;
		}
		assert_int_equal(node, 0);
	}
	plumb_answer_free(&a);
}

static unsigned akins;

/* One that has a part of another one, which is freed before it is looked at. */
static void
check_akin(const struct plumb_profile *p, struct plumb_flame_query q, struct plumb_flame *flame)
{
	struct plumb_error error;
	struct plumb_flame *other;
	bool akin;

	q.view = (enum plumb_flame_view)(rand() % PLUMB_FLAME_VIEWS);
	q.of = (uint32_t)rand() % p->frames_count;
	akin = plumb_flame_is_akin(flame, p, &q);
	other = plumb_flame_make_akin(akin ? flame : NULL, p, &q, &error);
	assert_non_null(other);
	plumb_flame_free(flame);
	check_whole(p, &q, other);
	check_details(other);
	check_node_of(p, &q, other);
	plumb_flame_free(other);
	akins += akin;
}

static void
test_reference(void **state)
{
	(void)state;
	srand(7);
	for (int i = 0; i < 1500; i++) {
		struct plumb_profile p;
		struct plumb_error error;
		struct plumb_flame_query q;
		struct plumb_flame *flame;

		make_random(&p, false);
		q = random_query(&p);
		flame = plumb_flame_make(&p, &q, &error);
		assert_non_null(flame);
		check_whole(&p, &q, flame);
		check_details(flame);
		check_node_of(&p, &q, flame);
		check_akin(&p, q, flame);
		plumb_profile_free(&p);
	}
	assert_in_range(akins, 200, 1499);
}

/* ---- random ranges ---- */

/* Boxes lie side by side in their parents, and what is narrow is put together. */
static void
check_range(const struct plumb_answer *a, const struct plumb_flame_range *range)
{
	double x1 = range->x1 > 0 ? range->x1 : 1;
	double pixel = range->px > 0 ? (x1 - range->x0) / range->px : 0, end = 0;

	for (uint32_t r = 0; r < a->row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(a, r, 0);
		const struct plumb_answer_cell *before = r ? plumb_answer_at(a, r - 1, 0) : NULL;
		double width = c[X1].number - c[X0].number;

		if (!before || before[DEPTH].integer < c[DEPTH].integer)
			end = 0;
		else
			assert_int_equal(before[DEPTH].integer, c[DEPTH].integer);
		assert_true(c[X0].number >= end - 1e-9 && width >= -1e-9);
		assert_true(c[X0].number <= x1 + 1e-9 && c[X1].number >= range->x0 - 1e-9);
		assert_true(c[MANY].integer == 1 || width <= pixel + 1e-9);
		end = c[X1].number;
		if (c[PARENT].type == PLUMB_ANSWER_UNKNOWN)
			continue;
		/* The parent is shown, holds it, and is at least a pixel wide. */
		for (uint32_t s = 0; !range->depth; s++) {
			const struct plumb_answer_cell *d = plumb_answer_at(a, s, 0);

			assert_true(s < r);
			if (d[NODE].integer != c[PARENT].integer)
				continue;
			assert_true(d[X0].number <= c[X0].number + 1e-9 &&
			            d[X1].number >= c[X1].number - 1e-9);
			assert_true(d[X1].number - d[X0].number >= pixel - 1e-9);
			break;
		}
	}
}

static void
test_random_ranges(void **state)
{
	static const double widths[] = { 0, 0.5, 1, 3, 10, 100, 1e9, (double)INFINITY };

	(void)state;
	srand(11);
	for (int i = 0; i < 2000; i++) {
		struct plumb_profile p;
		struct plumb_error error;
		struct plumb_flame_query q;
		struct plumb_flame *flame;
		struct plumb_answer a;

		make_random(&p, i % 2);
		q = random_query(&p);
		flame = plumb_flame_make(&p, &q, &error);
		assert_non_null(flame);
		for (int k = 0; k < 4; k++) {
			struct plumb_flame_range range = {
				.root = k ? (uint32_t)rand() % 8 : 0,
				.x0 = rand() % 2 ? (double)rand() / RAND_MAX : 0,
				.px = widths[rand() % 8],
				.depth = rand() % 4 ? 0 : (uint32_t)rand() % 4,
				.search = rand() % 2 ? "f[12]" : NULL,
			};
			range.x1 = range.x0 + (1.0001 - range.x0) * rand() / RAND_MAX;
			if (plumb_flame_boxes(flame, &range, &a, &error) < 0)
				continue; /* there is no such root */
			check_range(&a, &range);
			plumb_answer_free(&a);
		}
		plumb_flame_free(flame);
		plumb_profile_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_random_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
