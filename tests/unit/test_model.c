/* SPDX-License-Identifier: Apache-2.0 */
/* The profile in memory: interning, joining, order, sums. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_malloc.h"
#include "model/builder.h"
#include "sample.h"

static uint32_t
next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void
finish(struct plumb_builder *b, struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };
	if (plumb_builder_finish(b, profile, &error))
		fail_msg("%s", error.message);
	plumb_builder_free(b);
}

static uint32_t
python_frame(struct plumb_builder *b, const char *name)
{
	return plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, name),
	                           plumb_builder_text(b, "a.py"), 1);
}

/* What preorder means, checked without the code under test. */
static void
assert_preorder(const struct plumb_profile *p)
{
	assert_int_equal(p->contexts[0].parent, PLUMB_NONE);
	assert_int_equal(p->contexts[0].last, p->contexts_count - 1);
	for (uint32_t i = 1; i < p->contexts_count; i++) {
		const struct plumb_context *c = &p->contexts[i], *parent = &p->contexts[c->parent];
		assert_true(c->parent < i);
		assert_true(c->last >= i && c->last <= parent->last);
		assert_int_equal(c->depth, parent->depth + 1);
		/* What comes next is a child, or comes after this subtree. */
		if (i + 1 < p->contexts_count && c->last > i)
			assert_int_equal(p->contexts[i + 1].parent, i);
		if (c->last + 1 < p->contexts_count)
			assert_true(p->contexts[c->last + 1].parent < i);
	}
}

/* ---- strings ---- */

static void
test_strings(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	assert_int_equal(plumb_builder_text(b, NULL), PLUMB_NONE);
	assert_int_equal(plumb_builder_string(b, NULL, 5), PLUMB_NONE);
	uint32_t one = plumb_builder_text(b, "one");
	assert_int_equal(plumb_builder_string(b, "one more", 3), one);
	assert_int_equal(plumb_builder_string(b, "one\0more", 8), one);
	assert_int_not_equal(plumb_builder_text(b, ""), PLUMB_NONE);
	assert_string_equal(plumb_builder_get_text(b, one), "one");
	assert_null(plumb_builder_get_text(b, 12345));
	assert_null(plumb_builder_get_text(b, PLUMB_NONE));

	static const struct {
		const char *bytes, *text;
	} broken[] = {
		{ "a\xff"
		  "b",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* cut short */
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* overlong */
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* surrogate */
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80" }, /* valid */
		{ "0123456789\x80", "0123456789\xef\xbf\xbd" },
	};
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
		assert_string_equal(
			plumb_builder_get_text(b, plumb_builder_text(b, broken[i].bytes)),
			broken[i].text);
	/* Many, with long ones between. */
	char *text = malloc(100001);
	for (uint32_t i = 0; i < 5000; i++) {
		size_t length = i % 1000 ? (size_t)snprintf(text, 100, "text %u", i) : 100000;
		if (!(i % 1000)) {
			memset(text, 'a' + (int)(i / 1000), length);
			text[length] = 0;
		}
		uint32_t id = plumb_builder_string(b, text, length);
		assert_string_equal(plumb_builder_get_text(b, id), text);
		assert_int_equal(plumb_builder_string(b, text, length), id);
	}
	free(text);
	plumb_builder_free(b);
	plumb_builder_free(NULL);
}

/* ---- contexts ---- */

static void
test_join(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t f = python_frame(b, "f"), g = python_frame(b, "g");
	assert_int_equal(python_frame(b, "f"), f);
	assert_int_equal(plumb_builder_frame_count(b), 3); /* and the root's */
	assert_int_equal(plumb_builder_get_frame(b, g)->line, 1);
	uint32_t a = plumb_builder_context(b, 0, f, 0);
	assert_int_equal(plumb_builder_context(b, 0, f, 0), a);
	assert_int_not_equal(plumb_builder_context(b, 0, f, PLUMB_CONTEXT_BACKWARD), a);
	assert_int_not_equal(plumb_builder_context(b, 0, g, 0), a);
	assert_int_not_equal(plumb_builder_context(b, a, f, 0), a);
	struct plumb_profile p;
	finish(b, &p);
	assert_int_equal(p.contexts_count, 5);
	assert_preorder(&p);
	plumb_profile_free(&p);
	plumb_profile_free(&p);
	plumb_profile_free(NULL);
}

/* The same paths in another order give the same tree. */
static void
test_order(void **state)
{
	(void)state;
	static const char *const paths[] = { "abc", "abd", "ac", "b", "ba", "bab", "aa", "c" };
	enum { PATHS = sizeof paths / sizeof *paths };
	char first[4096] = "";
	for (uint32_t round = 1; round <= 20; round++) {
		uint32_t seed = round;
		struct plumb_builder *b = plumb_builder_new();
		int order[PATHS];
		for (int i = 0; i < PATHS; i++)
			order[i] = i;
		for (int i = PATHS - 1; i > 0; i--) {
			int j = (int)(next_random(&seed) % (uint32_t)(i + 1)), swap = order[i];
			order[i] = order[j];
			order[j] = swap;
		}
		for (int i = 0; i < PATHS; i++) {
			uint32_t at = 0;
			for (const char *c = paths[order[i]]; *c; c++)
				at = plumb_builder_context(b, at,
				                           python_frame(b, (char[]){ *c, 0 }), 0);
		}
		struct plumb_profile p;
		finish(b, &p);
		assert_preorder(&p);
		char text[4096] = "";
		for (uint32_t i = 1; i < p.contexts_count; i++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%u:%s ",
			         p.contexts[i].depth, plumb_frame_label(&p, p.contexts[i].frame));
		if (!*first)
			strcpy(first, text);
		assert_string_equal(text, first);
		plumb_profile_free(&p);
	}
	assert_string_equal(first, "1:a 2:a 2:b 3:c 3:d 2:c 1:b 2:a 3:b 1:c ");
}

static void
test_sibling_order(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t x = plumb_builder_text(b, "x"), y = plumb_builder_text(b, "y");
	struct {
		uint32_t kind, name, file, line, flags;
	} wanted[] = {
		{ PLUMB_FRAME_PYTHON, PLUMB_NONE, x, 1, 0 },
		{ PLUMB_FRAME_PYTHON, x, PLUMB_NONE, 9, 0 },
		{ PLUMB_FRAME_PYTHON, x, x, 1, 0 },
		{ PLUMB_FRAME_PYTHON, x, x, 1, 1 },
		{ PLUMB_FRAME_PYTHON, x, x, 2, 0 },
		{ PLUMB_FRAME_PYTHON, x, y, 1, 0 },
		{ PLUMB_FRAME_PYTHON, y, x, 1, 0 },
		{ PLUMB_FRAME_OPERATOR, x, x, 0, 0 },
		{ PLUMB_FRAME_KERNEL, x, x, 0, 2 },
	};
	enum { WANTED = sizeof wanted / sizeof *wanted };
	for (int i = WANTED; i-- > 0;)
		plumb_builder_context(b, 0,
		                      plumb_builder_frame(b, wanted[i].kind, wanted[i].name,
		                                          wanted[i].file, wanted[i].line),
		                      wanted[i].flags);
	struct plumb_profile p;
	finish(b, &p);
	assert_int_equal(p.contexts_count, WANTED + 1);
	for (uint32_t i = 0; i < WANTED; i++) {
		const struct plumb_frame *f = plumb_context_frame(&p, i + 1);
		assert_int_equal(f->kind, wanted[i].kind);
		assert_int_equal(f->name, wanted[i].name);
		assert_int_equal(f->file, wanted[i].file);
		assert_int_equal(f->line, wanted[i].line);
		assert_int_equal(p.contexts[i + 1].flags, wanted[i].flags);
	}
	plumb_profile_free(&p);
}

static void
test_deep_chain(void **state)
{
	(void)state;
	enum { DEPTH = 100000 };
	struct plumb_builder *b = plumb_builder_new();
	uint32_t frame = python_frame(b, "f"), at = 0;
	for (int i = 0; i < DEPTH; i++) {
		at = plumb_builder_context(b, at, frame, 0);
		sample_value(b, at, PLUMB_METRIC_OP_TIME, PLUMB_NONE, 1);
	}
	struct plumb_profile p;
	finish(b, &p);
	assert_preorder(&p);
	assert_int_equal(p.contexts[DEPTH].depth, DEPTH);
	struct plumb_stat *inclusive = malloc((size_t)p.contexts_count * sizeof *inclusive);
	plumb_inclusive(&p, PLUMB_METRIC_OP_TIME, PLUMB_NONE, NULL, inclusive);
	for (uint32_t i = 1; i <= DEPTH; i++)
		assert_int_equal(inclusive[i].sum, DEPTH - (int)i + 1);
	assert_int_equal(inclusive[0].sum, DEPTH);
	free(inclusive);
	plumb_profile_free(&p);
}

static void
test_large_random_tree(void **state)
{
	(void)state;
	enum { CONTEXTS = 300000 };
	struct plumb_builder *b = plumb_builder_new();
	uint32_t random = 7, *ids = malloc(CONTEXTS * sizeof *ids);
	uint32_t frames[200];
	for (uint32_t i = 0; i < 200; i++)
		frames[i] = plumb_builder_frame(b, 1 + i % 17, plumb_builder_text(b, "n"),
		                                PLUMB_NONE, i);
	ids[0] = 0;
	for (uint32_t i = 1; i < CONTEXTS; i++) {
		uint32_t back = 1 + next_random(&random) % (i < 50 ? i : 50);
		ids[i] = plumb_builder_context(b, ids[i - back], frames[next_random(&random) % 200],
		                               0);
		sample_value(b, ids[i], 1 + i % 3, PLUMB_NONE, 1);
	}
	struct plumb_profile p;
	finish(b, &p);
	assert_preorder(&p);
	int64_t sum = 0;
	for (uint32_t metric = 1; metric <= 3; metric++) {
		struct plumb_stat *inclusive = malloc((size_t)p.contexts_count * sizeof *inclusive);
		plumb_inclusive(&p, metric, PLUMB_NONE, NULL, inclusive);
		sum += inclusive[0].sum;
		free(inclusive);
	}
	assert_int_equal(sum, CONTEXTS - 1);
	free(ids);
	plumb_profile_free(&p);
}

/* ---- copies ---- */

static void
test_transfers(void **state)
{
	(void)state;
	char text[PLUMB_TRANSFER_NAME];
	for (uint16_t from = 0; from <= PLUMB_MEMORY_HOST; from++)
		for (uint16_t to = 1; to < 2 * PLUMB_MEMORY_PEER; to++) {
			struct plumb_transfer made = { from, to };
			if (!(to & ~PLUMB_MEMORY_PEER))
				continue;
			struct plumb_transfer read =
				plumb_transfer_of(plumb_transfer_name(text, made));
			assert_true(read.from == from && read.to == to);
		}
	const struct plumb_transfer peer = { PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_PEER_DEVICE };
	assert_string_equal(plumb_transfer_name(text, peer), "copy device→peer device");
	static const char *const others[] = { "copy",
		                              "copy pinned",
		                              "copy pinned→",
		                              "copy →device",
		                              "copy pinned→devices",
		                              "set",
		                              "set ",
		                              "",
		                              NULL };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct plumb_transfer read = plumb_transfer_of(others[i]);
		assert_true(!read.from && !read.to);
	}
}

/* A frame has what its name says; values with other ends are other rows. */
static void
test_ends(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t devices[3];
	for (int i = 0; i < 3; i++)
		devices[i] = plumb_builder_device(
			b, &(struct plumb_device){ PLUMB_NONE, PLUMB_NONE, i });
	uint32_t copy = plumb_builder_context(
		b, 0,
		plumb_builder_frame(b, PLUMB_FRAME_COPY,
	                            plumb_builder_text(b, "copy device→peer device"), PLUMB_NONE,
	                            0),
		0);
	struct plumb_value value = { .context = copy,
		                     .metric = PLUMB_METRIC_GPU_COPY_BYTES,
		                     .track = PLUMB_NONE,
		                     .sum = 5,
		                     .count = 1,
		                     .min = 5,
		                     .max = 5,
		                     .mean = 5 };
	plumb_builder_value(b, &value);
	for (uint32_t i = 3; i-- > 1;) {
		value.ends = (struct plumb_ends){ devices[0] + 1, devices[i] + 1 };
		plumb_builder_value(b, &value);
		plumb_builder_value(b, &value);
	}
	struct plumb_profile p;
	finish(b, &p);
	assert_int_equal(p.values_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(p.values[i].ends.from, i ? 1 : 0);
		assert_int_equal(p.values[i].ends.to, i ? i + 1 : 0);
		assert_int_equal(p.values[i].sum, i ? 10 : 5);
	}
	struct plumb_transfer transfer = plumb_context_frame(&p, copy)->transfer;
	assert_int_equal(transfer.from, PLUMB_MEMORY_DEVICE);
	assert_int_equal(transfer.to, PLUMB_MEMORY_PEER_DEVICE);
	plumb_profile_free(&p);
	b = plumb_builder_new();
	value.ends.to = 9;
	value.context = 0;
	plumb_builder_value(b, &value);
	assert_int_equal(plumb_builder_finish(b, &p, NULL), PLUMB_EINPUT);
	plumb_builder_free(b);
}

/* ---- values ---- */

static void
test_values_merge_and_sort(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t z = plumb_builder_context(b, 0, python_frame(b, "z"), 0);
	uint32_t a = plumb_builder_context(b, 0, python_frame(b, "a"), 0);
	struct plumb_track track = { .kind = PLUMB_TRACK_THREAD,
		                     .process = PLUMB_NONE,
		                     .device = PLUMB_NONE,
		                     .name = PLUMB_NONE };
	uint32_t t0 = plumb_builder_track(b, &track), t1 = plumb_builder_track(b, &track);
	sample_value(b, z, 2, t1, 10);
	sample_value(b, z, 2, t0, 5);
	sample_value(b, a, 2, t1, 1);
	sample_value(b, z, 1, t1, 7);
	sample_value(b, z, 2, t1, 30);
	struct plumb_value nothing = { z, 3, t0, 9, 0, 9, 9, 9, 9 };
	assert_int_equal(plumb_builder_value(b, &nothing), 0); /* no observation: no row */
	struct plumb_profile p;
	finish(b, &p);
	assert_int_equal(p.values_count, 4);
	/* a sorts before z */
	const int64_t wanted[4][4] = {
		{ 1, 2, t1, 1 }, { 2, 1, t1, 7 }, { 2, 2, t0, 5 }, { 2, 2, t1, 40 }
	};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(p.values[i].context, wanted[i][0]);
		assert_int_equal(p.values[i].metric, wanted[i][1]);
		assert_int_equal(p.values[i].track, wanted[i][2]);
		assert_int_equal(p.values[i].sum, wanted[i][3]);
	}
	assert_int_equal(p.values[3].count, 2);
	assert_int_equal(p.values[3].min, 10);
	assert_int_equal(p.values[3].max, 30);
	assert_true(p.values[3].mean == 20 && p.values[3].m2 == 200);
	/* Limited to a track. */
	struct plumb_stat exclusive[3], inclusive[3];
	plumb_inclusive(&p, 2, t0, exclusive, inclusive);
	assert_int_equal(exclusive[0].count, 0);
	assert_int_equal(inclusive[0].sum, 5);
	plumb_inclusive(&p, 2, PLUMB_NONE, exclusive, NULL);
	assert_int_equal(exclusive[2].sum, 45);
	plumb_inclusive(&p, 2, PLUMB_NONE, NULL, NULL);
	plumb_profile_free(&p);
}

static bool
close_to(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b) + 1);
}

static void
assert_same_stat(const struct plumb_stat *a, const struct plumb_stat *b)
{
	assert_int_equal(a->sum, b->sum);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->min, b->min);
	assert_int_equal(a->max, b->max);
	assert_true(close_to(a->mean, b->mean));
	assert_true(close_to(a->m2, b->m2));
}

static struct plumb_stat
stat_of(const int64_t *numbers, size_t count)
{
	struct plumb_stat s = { .count = count };
	for (size_t i = 0; i < count; i++) {
		s.sum += numbers[i];
		s.min = !i || numbers[i] < s.min ? numbers[i] : s.min;
		s.max = !i || numbers[i] > s.max ? numbers[i] : s.max;
	}
	s.mean = count ? (double)s.sum / (double)count : 0;
	for (size_t i = 0; i < count; i++)
		s.m2 += ((double)numbers[i] - s.mean) * ((double)numbers[i] - s.mean);
	return s;
}

static void
test_merge_is_associative(void **state)
{
	(void)state;
	uint32_t random = 3;
	for (int round = 0; round < 2000; round++) {
		int64_t numbers[60];
		size_t count = next_random(&random) % 60;
		for (size_t i = 0; i < count; i++)
			numbers[i] = (int64_t)(next_random(&random) % 2000000) - 1000000;
		size_t i = next_random(&random) % (count + 1);
		size_t j = i + next_random(&random) % (count - i + 1);
		struct plumb_stat a = stat_of(numbers, i), b = stat_of(numbers + i, j - i),
				  c = stat_of(numbers + j, count - j),
				  all = stat_of(numbers, count);
		struct plumb_stat left = a, right = b, swapped = c;
		plumb_stat_merge(&left, &b);
		plumb_stat_merge(&left, &c);
		plumb_stat_merge(&right, &c);
		struct plumb_stat last = a;
		plumb_stat_merge(&last, &right);
		plumb_stat_merge(&swapped, &b);
		plumb_stat_merge(&swapped, &a);
		assert_int_equal(left.count, count);
		if (count) {
			assert_same_stat(&left, &all);
			assert_same_stat(&last, &all);
			assert_same_stat(&swapped, &all);
		}
	}
	struct plumb_stat one = stat_of((int64_t[]){ 5 }, 1),
			  four = stat_of((int64_t[]){ 2, 4, 4, 6 }, 4);
	assert_true(plumb_stat_deviation(&one) == 0);
	assert_true(close_to(plumb_stat_deviation(&four), sqrt(8.0 / 3)));
}

static void
test_sums_stop_at_the_limit(void **state)
{
	(void)state;
	struct plumb_stat a = { INT64_MAX - 1, UINT64_MAX - 1, 1, 1, 1, 0 },
			  b = { 5, 5, 1, 1, 1, 0 };
	plumb_stat_merge(&a, &b);
	assert_true(a.sum == INT64_MAX);
	assert_true(a.count == UINT64_MAX);
	a = (struct plumb_stat){ INT64_MIN + 2, 1, 1, 1, 1, 0 };
	b.sum = -100;
	plumb_stat_merge(&a, &b);
	assert_true(a.sum == INT64_MIN + 1); /* INT64_MIN means unknown */
}

static void
test_recursion(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct sample_ids ids;
	assert_int_equal(sample_build(&p, &ids, NULL), 0);
	assert_preorder(&p);
	struct plumb_stat *inclusive = malloc((size_t)p.contexts_count * sizeof *inclusive);
	plumb_inclusive(&p, PLUMB_METRIC_GPU_TIME, PLUMB_NONE, NULL, inclusive);
	int64_t seen[3], found = 0;
	for (uint32_t i = 0; i < p.contexts_count; i++)
		if (p.contexts[i].frame == ids.fib) {
			assert_true(found <= 2);
			seen[found++] = inclusive[i].sum;
		}
	assert_int_equal(found, 3);
	assert_int_equal(seen[0], 3000);
	assert_int_equal(seen[1], 2000);
	assert_int_equal(seen[2], 1000);
	assert_int_equal(inclusive[0].sum, 3700);
	assert_string_equal(plumb_frame_label(&p, ids.kernel), "gemm(float const*)");
	assert_string_equal(plumb_frame_label(&p, ids.mul), "aten::mul");
	assert_string_equal(plumb_frame_label(&p, 0), "?");
	assert_string_equal(plumb_frame_label(&p, 999), "?");
	free(inclusive);
	plumb_profile_free(&p);
}

/* ---- other rows ---- */

static void
test_rows_join(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t c = plumb_builder_context(b, 0, python_frame(b, "f"), 0);
	struct plumb_variant v = { .context = c,
		                   .track = PLUMB_NONE,
		                   .shapes = PLUMB_NONE,
		                   .grid = { 1, 2, 3 },
		                   .count = 2,
		                   .time = 30,
		                   .min = 10,
		                   .max = 20 };
	plumb_builder_variant(b, &v);
	v.time = 5, v.min = 5, v.max = 5, v.count = 1;
	plumb_builder_variant(b, &v);
	v.grid[2] = 4;
	plumb_builder_variant(b, &v);
	struct plumb_origin o = { c, 0, PLUMB_ORIGIN_OF_FUSED };
	plumb_builder_origin(b, &o);
	plumb_builder_origin(b, &o);
	o.reason = PLUMB_ORIGIN_OF_INLINED;
	plumb_builder_origin(b, &o);
	plumb_builder_ledger(b, PLUMB_NONE, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     5);
	plumb_builder_ledger(b, PLUMB_NONE, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     6);
	plumb_builder_ledger(b, PLUMB_NONE, PLUMB_SOURCE_KERNEL, PLUMB_FATE_LATE, PLUMB_NONE,
	                     INT64_MAX);
	plumb_builder_ledger(b, PLUMB_NONE, PLUMB_SOURCE_KERNEL, PLUMB_FATE_LATE, PLUMB_NONE, 1);
	plumb_builder_environment(b, PLUMB_NONE, "k", "first");
	plumb_builder_environment(b, PLUMB_NONE, "k", "second");
	struct plumb_profile p;
	finish(b, &p);
	assert_int_equal(p.variants_count, 2);
	assert_int_equal(p.variants[0].time, 35); /* the longest first */
	assert_int_equal(p.variants[0].count, 3);
	assert_int_equal(p.variants[0].min, 5);
	assert_int_equal(p.variants[0].max, 20);
	assert_int_equal(p.origins_count, 2);
	assert_int_equal(p.ledger_count, 2);
	assert_int_equal(p.ledger[0].count, 11);
	assert_true(p.ledger[1].count == INT64_MAX);
	assert_int_equal(p.environment_count, 1);
	assert_string_equal(plumb_text(&p, p.environment[0].value), "first");
	plumb_profile_free(&p);
}

static void
test_work_order(void **state)
{
	(void)state;
	struct plumb_profile p;
	struct sample_ids ids;
	assert_int_equal(sample_build(&p, &ids, NULL), 0);
	assert_int_equal(p.work_count, 5);
	for (uint32_t i = 1; i < p.work_count; i++)
		assert_true(p.work[i - 1].start_ns <= p.work[i].start_ns);
	assert_int_equal(plumb_context_frame(&p, p.work[1].context) - p.frames, ids.copy);
	plumb_profile_free(&p);
}

/* ---- what must not leave the builder ---- */

static void
test_bad_rows(void **state)
{
	(void)state;
	for (int which = 0; which < 10; which++) {
		struct plumb_builder *b = plumb_builder_new();
		struct plumb_value value = { .context = which == 0 ? 9 : 0,
			                     .count = 1,
			                     .metric = which == 1 ? 999 : 1,
			                     .track = which == 2 ? 3 : PLUMB_NONE };
		struct plumb_track track = {
			.kind = 1, .process = 4, .device = PLUMB_NONE, .name = PLUMB_NONE
		};
		if (which < 3)
			assert_int_equal(plumb_builder_value(b, &value), PLUMB_EINPUT);
		if (which == 3)
			assert_int_equal(plumb_builder_context(b, 0, 77, 0), PLUMB_NONE);
		if (which == 4)
			assert_int_equal(plumb_builder_frame(b, 99, PLUMB_NONE, PLUMB_NONE, 0),
			                 PLUMB_NONE);
		if (which == 5)
			assert_int_equal(plumb_builder_frame(b, 1, 1000, PLUMB_NONE, 0),
			                 PLUMB_NONE);
		if (which == 6)
			assert_int_equal(plumb_builder_track(b, &track), PLUMB_NONE);
		if (which == 7)
			plumb_builder_work(b, &(struct plumb_work_item){ 0, 0, 5, 4 });
		if (which == 8)
			plumb_builder_ledger(b, PLUMB_NONE, 999, 0, PLUMB_NONE, 1);
		if (which == 9)
			plumb_builder_environment(b, PLUMB_NONE, "key", NULL);
		struct plumb_profile p;
		struct plumb_error error = { 0 };
		assert_int_equal(plumb_builder_finish(b, &p, &error), PLUMB_EINPUT);
		assert_true(*error.message);
		plumb_builder_free(b);
	}
}

/* Wherever a row is said to be, the outcome is that of plumb_builder_row. */
static void
test_rows_near(void **state)
{
	(void)state;
	struct plumb_builder *b[2] = { plumb_builder_new(), plumb_builder_new() };
	uint32_t random = 1, near[3] = { 0, 77, 1 };
	for (int i = 0; i < 2; i++)
		for (uint32_t name = 0; name < 4; name++) {
			char text[2] = { (char)('a' + name), 0 };
			plumb_builder_context(b[i], 0, python_frame(b[i], text), 0);
		}
	for (int i = 0; i < 500; i++) {
		uint32_t context = next_random(&random) % 5, metric = 1 + next_random(&random) % 2;
		int64_t number = next_random(&random) % 1000;
		struct plumb_value value = {
			context, metric, PLUMB_NONE,     number, next_random(&random) % 8 > 0,
			number,  number, (double)number, 0
		};
		assert_int_equal(plumb_builder_value(b[0], &value), 0);
		assert_int_equal(plumb_builder_row_near(b[1], PLUMB_TABLE_VALUES, &value,
		                                        &near[context % 3]),
		                 0);
	}
	struct plumb_profile p, q;
	finish(b[0], &p);
	finish(b[1], &q);
	assert_int_equal(p.values_count, 10);
	assert_int_equal(q.values_count, 10);
	for (uint32_t i = 0; i < p.values_count; i++) {
		const struct plumb_value *x = &p.values[i], *y = &q.values[i];
		assert_int_equal(x->context, y->context);
		assert_int_equal(x->metric, y->metric);
		assert_int_equal(x->sum, y->sum);
		assert_int_equal(x->count, y->count);
		assert_true(x->min == y->min && x->max == y->max);
		assert_true(x->mean == y->mean && x->m2 == y->m2);
	}
	plumb_profile_free(&p);
	plumb_profile_free(&q);
	struct plumb_value bad = { .context = 9, .count = 1, .metric = 1, .track = PLUMB_NONE };
	b[0] = plumb_builder_new();
	assert_int_equal(plumb_builder_row_near(b[0], PLUMB_TABLE_VALUES, &bad, near),
	                 PLUMB_EINPUT);
	plumb_builder_free(b[0]);
}

static void
test_rows_together(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_track track = { .kind = PLUMB_TRACK_THREAD,
		                     .process = PLUMB_NONE,
		                     .device = PLUMB_NONE,
		                     .name = PLUMB_NONE };
	struct plumb_span spans[2] = { { 0, 0, 5, 9, 1 }, { 0, 0, 1, 2, 0 } };
	plumb_builder_track(b, &track);
	assert_int_equal(plumb_builder_rows(b, PLUMB_TABLE_SPANS, spans, 2), 2);
	assert_int_equal(plumb_builder_rows(b, PLUMB_TABLE_SPANS, spans, 1), 1);
	struct plumb_profile p;
	finish(b, &p);
	assert_int_equal(p.spans_count, 3);
	assert_int_equal(p.spans[0].start_ns, 1);
	assert_int_equal(p.spans[2].end_ns, 9);
	plumb_profile_free(&p);
	/* One that ends before it begins, or is on no track. */
	for (int which = 0; which < 2; which++) {
		b = plumb_builder_new();
		plumb_builder_track(b, &track);
		spans[1] = (struct plumb_span){ 0, which ? 1 : 0, 5, which ? 6 : 4, 0 };
		assert_int_equal(plumb_builder_rows(b, PLUMB_TABLE_SPANS, spans, 2), PLUMB_EINPUT);
		assert_int_equal(plumb_builder_finish(b, &p, NULL), PLUMB_EINPUT);
		plumb_builder_free(b);
	}
}

static void
test_finish_twice(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile p, q;
	assert_int_equal(plumb_builder_finish(b, &p, NULL), 0);
	assert_int_equal(p.contexts_count, 1);
	assert_int_equal(plumb_builder_finish(b, &q, NULL), PLUMB_EINPUT);
	assert_int_equal(plumb_builder_text(b, "late"), PLUMB_NONE);
	plumb_builder_free(b);
	plumb_profile_free(&p);
	plumb_profile_free(&q);
}

static void
test_no_memory(void **state)
{
	(void)state;
	if (!FAILING_MALLOC)
		skip();
	bool reached = true;
	for (long n = 0; reached; n++) {
		struct plumb_profile p;
		struct sample_ids ids;
		struct plumb_error error = { 0 };
		failing_malloc_at = n;
		int code = sample_build(&p, &ids, &error);
		reached = failing_malloc_stop();
		assert_int_equal(code, reached ? PLUMB_ESYSTEM : 0);
		assert_true(n < 100000);
		plumb_profile_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_sibling_order),
		cmocka_unit_test(test_deep_chain),
		cmocka_unit_test(test_large_random_tree),
		cmocka_unit_test(test_transfers),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_values_merge_and_sort),
		cmocka_unit_test(test_merge_is_associative),
		cmocka_unit_test(test_sums_stop_at_the_limit),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_rows_join),
		cmocka_unit_test(test_work_order),
		cmocka_unit_test(test_bad_rows),
		cmocka_unit_test(test_rows_near),
		cmocka_unit_test(test_rows_together),
		cmocka_unit_test(test_finish_twice),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
