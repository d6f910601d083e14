/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs: exact boxes of small profiles, and all views against a slow reference. */
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

#include "failing_malloc.h"
#include "model/builder.h"
#include "view/view.h"

enum { NODE, PARENT, DEPTH, X0, X1, NAME, LAYER, VALUE, SELF, MANY, FLAGS, FRAME, COLUMNS };

/* ---- profiles ---- */

struct made {
	struct plumb_builder *b;
	uint32_t track;
};

static struct made
begin(void)
{
	struct made m = { .b = plumb_builder_new() };

	m.track = plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                          .process = PLUMB_NONE,
	                                                          .device = PLUMB_NONE,
	                                                          .name = PLUMB_NONE });
	return m;
}

static uint32_t
at(struct made *m, uint32_t parent, uint32_t kind, const char *name, const char *file,
   uint32_t flags)
{
	uint32_t frame = plumb_builder_frame(m->b, kind, plumb_builder_text(m->b, name),
	                                     plumb_builder_text(m->b, file), file ? 7 : 0);

	return plumb_builder_context(m->b, parent, frame, flags);
}

static void
value(struct made *m, uint32_t context, uint32_t metric, int64_t sum)
{
	assert_int_equal(plumb_builder_value(m->b, &(struct plumb_value){ .context = context,
	                                                                  .metric = metric,
	                                                                  .track = m->track,
	                                                                  .sum = sum,
	                                                                  .count = 1,
	                                                                  .min = sum,
	                                                                  .max = sum,
	                                                                  .mean = (double)sum }),
	                 0);
}

static void
end(struct made *m, struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };

	if (plumb_builder_finish(m->b, profile, &error) < 0)
		fail_msg("%s", error.message);
	plumb_builder_free(m->b);
}

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
	      "2 200-700 mm [backward] 50/50\n"
	      "2 800-1000 step (torch.py:7) 20/0\n"
	      "3 800-1000 mm 20/20\n");
	/* By default, the metric of reports. */
	check(&p, &(struct plumb_flame_query){ .hidden = 1 << PLUMB_FLAME_OPERATOR },
	      "0 0-1000 main (train.py:7) 900/0\n"
	      "1 0-1000 step (torch.py:7) 900/0\n"
	      "2 0-333 a 300/300\n"
	      "2 333-444 b 100/100\n"
	      "2 444-1000 a [backward] 500/500\n");
	check(&p,
	      &(struct plumb_flame_query){ .metric = "op.time", .hidden = 1 << PLUMB_FLAME_PYTHON },
	      "0 0-400 mm 40/40\n"
	      "0 400-900 mm [backward] 50/50\n");
	check(&p,
	      &(struct plumb_flame_query){
		      .metric = "op.time", .hide = "^/lib/", .hidden = 1 << PLUMB_FLAME_GPU },
	      "0 0-1000 main (train.py:7) 100/10\n"
	      "1 0-200 mm 20/20\n"
	      "1 200-700 mm [backward] 50/50\n"
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
	      "3 500-1000 mm [backward] 50/50\n"
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
	check(&p, &query, "0 0-250 mm 20/20\n0 250-875 mm [backward] 50/50\n");
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
	check(&p, &query, "2 0-200 mm 20/20\n2 200-700 mm [backward] 50/50\n");
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
	      "2 200-700 mm [backward] 50/50 !2\n"
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

/* ---- against a reference: paths as lists of names, added up one by one ---- */

#define STEPS 64 /* of a path */
#define NAMES 7

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

struct step {
	uint32_t frame;
	bool back;
};

/* The path of CONTEXT as QUERY shows it, outermost first. */
static uint32_t
path_of(const struct plumb_profile *p, const struct plumb_flame_query *q, uint32_t context,
        struct step *path)
{
	struct step all[STEPS];
	uint32_t count = 0, length = 0, before = 0;
	bool marked = q->view == PLUMB_FLAME_DOWN && !q->collapse;

	for (uint32_t c = context; c; c = p->contexts[c].parent)
		all[count++] =
			(struct step){ p->contexts[c].frame, marked && p->contexts[c].flags };
	if (q->apart)
		path[before = length++] =
			(struct step){ p->contexts[context].flags ? UINT32_MAX : UINT32_MAX - 1,
			               false };
	while (count--) {
		uint32_t kind = p->frames[all[count].frame].kind, same = length;

		if (q->hidden >> plumb_flame_layer_of(kind) & 1)
			continue;
		for (uint32_t i = 0; q->collapse && i < length; i++)
			if (path[i].frame == all[count].frame)
				same = i;
		path[same] = all[count];
		length = same + 1;
	}
	(void)before;
	return length;
}

/* The same as the view has it. */
static uint32_t
turn_path(const struct plumb_flame_query *q, struct step *path, uint32_t length)
{
	uint32_t first = 0;

	if (q->view == PLUMB_FLAME_CALLERS || q->view == PLUMB_FLAME_CALLEES) {
		while (first < length && path[first].frame != q->of)
			first++;
		if (first == length)
			return PLUMB_NONE;
	}
	if (q->view == PLUMB_FLAME_CALLEES) {
		memmove(path, path + first, (length - first) * sizeof *path);
		return length - first;
	}
	if (q->view == PLUMB_FLAME_CALLERS)
		length = first + 1;
	for (uint32_t i = 0; i < length / 2 && q->view >= PLUMB_FLAME_UP; i++) {
		struct step swap = path[i];
		path[i] = path[length - 1 - i];
		path[length - 1 - i] = swap;
	}
	return length;
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

/* A tree of random frames; backward is inherited. NEGATIVE: some values are. */
static void
make_random(struct plumb_profile *p, bool negative)
{
	static const uint32_t kinds[NAMES] = { PLUMB_FRAME_PYTHON,   PLUMB_FRAME_PYTHON,
		                               PLUMB_FRAME_OPERATOR, PLUMB_FRAME_OPERATOR,
		                               PLUMB_FRAME_NATIVE,   PLUMB_FRAME_KERNEL,
		                               PLUMB_FRAME_RANGE };
	struct made m = begin();
	uint32_t contexts[80] = { 0 }, depths[80] = { 0 }, count = 1;
	bool backs[80] = { false };

	for (uint32_t size = 2 + (uint32_t)rand() % 78; count < size; count++) {
		uint32_t above = rand() % 2 ? count - 1 : (uint32_t)rand() % count;
		uint32_t name = (uint32_t)rand() % NAMES;
		char text[8];

		above = depths[above] > 30 ? 0 : above;
		snprintf(text, sizeof text, "f%u", name);
		backs[count] = backs[above] || rand() % 8 == 0;
		depths[count] = depths[above] + 1;
		contexts[count] = at(&m, contexts[above], kinds[name], text, NULL,
		                     backs[count] ? PLUMB_CONTEXT_BACKWARD : 0);
		if (rand() % 3)
			value(&m, contexts[count], PLUMB_METRIC_OP_TIME,
			      rand() % 100 - (negative ? 50 : 0));
	}
	if (rand() % 2)
		value(&m, 0, PLUMB_METRIC_OP_TIME, 13);
	value(&m, contexts[1], PLUMB_METRIC_GPU_TIME, 5);
	end(&m, p);
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
		plumb_flame_free(flame);
		plumb_profile_free(&p);
	}
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
		cmocka_unit_test(test_down),          cmocka_unit_test(test_other_views),
		cmocka_unit_test(test_ranges),        cmocka_unit_test(test_search),
		cmocka_unit_test(test_frame),         cmocka_unit_test(test_queries),
		cmocka_unit_test(test_formats),       cmocka_unit_test(test_reference),
		cmocka_unit_test(test_random_ranges), cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
