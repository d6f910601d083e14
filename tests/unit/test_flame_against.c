/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graphs of two profiles: random trees against a slow reference, and what a box says. */
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
#include "random_flames.h"

enum { BEFORE = COLUMNS, BEFORE_SELF, CHANGE };
enum {
	TOTAL_VALUE,
	TOTAL_SELF,
	TOTAL_MATCHED = 4,
	TOTAL_BEFORE = 8,
	TOTAL_BEFORE_SELF,
	TOTAL_BEFORE_MATCHED,
	UNSEEN,
	ITERATIONS,
	BEFORE_ITERATIONS
};

/* ---- the reference: paths as lists of names ---- */

struct both {
	char path[STEPS * 16];
	struct step steps[STEPS];
	uint32_t length;
	double value[2], self[2], mass; /* mass: with its children */
	bool there[2];
};

struct boths {
	struct both items[8192];
	uint32_t count;
};

static const char *
step_name(const struct step *step, char text[16])
{
	if (step->frame >= UINT32_MAX - 1)
		return step->frame == UINT32_MAX ? "backward" : "forward";
	snprintf(text, 16, "f%" PRIu32, step->frame);
	return text;
}

static struct both *
both_of(struct boths *all, const struct step *steps, uint32_t length)
{
	char path[STEPS * 16] = "", text[16];
	struct both *found;

	for (uint32_t i = 0; i < length; i++)
		snprintf(strchr(path, 0), 40, "/%s%s", step_name(&steps[i], text),
		         steps[i].back && !(i && steps[i - 1].back) ? " [backward]" : "");
	for (uint32_t i = 0; i < all->count; i++)
		if (!strcmp(all->items[i].path, path))
			return &all->items[i];
	assert_true(all->count < sizeof all->items / sizeof *all->items);
	found = &all->items[all->count++];
	*found = (struct both){ .length = length };
	memcpy(found->steps, steps, length * sizeof *steps);
	strcpy(found->path, path);
	return found;
}

/* The number in the name of a frame, which is the same in all profiles. */
static uint32_t
name_number(const struct plumb_profile *p, uint32_t frame)
{
	return (uint32_t)atoi(plumb_frame_label(p, frame) + 1);
}

/* Each call path with what it holds itself in each profile. */
static void
add_profile(struct boths *all, const struct plumb_profile *p, const struct plumb_flame_query *q,
            unsigned side, double per)
{
	struct step steps[STEPS];
	struct plumb_flame_query plain = *q; /* forward and backward are told apart until the end */

	plain.view = q->view == PLUMB_FLAME_HEAVY ? q->view : PLUMB_FLAME_DOWN;
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t length = path_of(p, &plain, c, steps);

		for (uint32_t i = 0; i < length; i++)
			if (steps[i].frame < UINT32_MAX - 1)
				steps[i].frame = name_number(p, steps[i].frame);
		for (uint32_t i = length; i < UINT32_MAX; i--) /* those above it are there, too */
			both_of(all, steps, i)->there[side] = true;
	}
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_OP_TIME) {
			uint32_t length = path_of(p, &plain, p->values[i].context, steps);

			for (uint32_t k = 0; k < length; k++)
				if (steps[k].frame < UINT32_MAX - 1)
					steps[k].frame = name_number(p, steps[k].frame);
			both_of(all, steps, length)->self[side] += (double)p->values[i].sum / per;
		}
}

static double
width_of(const struct both *b, enum plumb_flame_width width)
{
	return width == PLUMB_FLAME_AFTER    ? fabs(b->self[0])
	       : width == PLUMB_FLAME_BEFORE ? fabs(b->self[1])
	                                     : fmax(fabs(b->self[0]), fabs(b->self[1]));
}

/* The paths of PLAIN as the view has them, with sums of all that is below. */
static void
turn_paths(const struct boths *plain, const struct plumb_flame_query *q, struct boths *turned)
{
	struct step steps[STEPS];

	turned->count = 0;
	both_of(turned, steps, 0);
	for (uint32_t i = 0; i < plain->count; i++) {
		const struct both *from = &plain->items[i];
		double mass = width_of(from, q->width);
		uint32_t length;

		memcpy(steps, from->steps, sizeof steps);
		length = turn_path(q, steps, from->length);
		if (length == PLUMB_NONE)
			continue;
		for (uint32_t k = 0; q->view >= PLUMB_FLAME_UP && k < length; k++)
			steps[k].back = false;
		for (uint32_t k = 0; k <= length; k++) {
			struct both *to = both_of(turned, steps, k);

			for (int s = 0; s < 2; s++) {
				to->value[s] += from->self[s];
				to->self[s] += k == length ? from->self[s] : 0;
				to->there[s] |= from->there[s];
			}
			to->mass += mass;
		}
	}
}

/* ---- one random case ---- */

struct pair {
	struct plumb_profile after, before;
	double per[2];
};

static void
make_pair(struct pair *pair, bool normal)
{
	make_random(&pair->after, false);
	make_random(&pair->before, false);
	pair->per[0] = pair->per[1] = 1;
	if (!normal)
		return;
	pair->after.window.kind = pair->before.window.kind = PLUMB_WINDOW_LOOP;
	pair->after.window.iterations = 1 + rand() % 4;
	pair->before.window.iterations = 1 + rand() % 4;
	pair->per[0] = (double)pair->after.window.iterations;
	pair->per[1] = (double)pair->before.window.iterations;
}

static struct plumb_flame_query
make_query(const struct pair *pair, uint32_t *of)
{
	uint32_t frames = pair->after.frames_count;
	struct plumb_flame_query q = {
		.view = (enum plumb_flame_view)(rand() % PLUMB_FLAME_VIEWS),
		.metric = "op.time",
		.hidden = rand() % 2 ? (unsigned)rand() % 64 : 0,
		.collapse = rand() % 2,
		.apart = rand() % 4 == 0,
		.against = &pair->before,
		.width = (enum plumb_flame_width)(rand() % PLUMB_FLAME_WIDTHS),
	};
	/* Any frame of the profile; its name is that of the reference. Frame 0 is the root. */
	q.of = 1 + (uint32_t)rand() % (frames - 1);
	*of = name_number(&pair->after, q.of);
	return q;
}

static bool
is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

static void
check_box(const struct both *want, const struct plumb_answer_cell *c,
          const struct plumb_flame_query *q, double whole)
{
	unsigned flags = (unsigned)c[FLAGS].integer;

	if (!is_near(c[VALUE].number, want->value[0]) || !is_near(c[SELF].number, want->self[0]) ||
	    !is_near(c[BEFORE].number, want->value[1]) ||
	    !is_near(c[BEFORE_SELF].number, want->self[1]))
		fail_msg("%s: %f/%f, before %f/%f", want->path, c[VALUE].number, c[SELF].number,
		         c[BEFORE].number, c[BEFORE_SELF].number);
	assert_true(is_near(c[CHANGE].number, want->value[0] - want->value[1]));
	assert_true(is_near(c[X1].number - c[X0].number, want->mass / whole));
	if (q->view > PLUMB_FLAME_HEAVY)
		return; /* paths that hold nothing begin nowhere */
	assert_int_equal(!!(flags & PLUMB_FLAME_IS_AFTER), want->there[0]);
	assert_int_equal(!!(flags & PLUMB_FLAME_IS_BEFORE), want->there[1]);
}

/* All boxes of the whole view are those of the reference. */
static void
check_all(const struct plumb_flame_query *q, struct plumb_flame *flame, struct boths *want)
{
	static char paths[8192][STEPS * 16];
	const struct plumb_flame_range all = { .search = "f[12]" };
	struct plumb_answer a, total;
	struct plumb_error error;
	uint32_t expected = 0;
	double matched[2] = { 0, 0 };

	assert_int_equal(plumb_flame_boxes(flame, &all, &a, &error), 0);
	assert_int_equal(plumb_flame_total(flame, &all, &total, &error), 0);
	for (uint32_t r = 0; r < a.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&a, r, 0);
		char *path = paths[c[NODE].integer];
		uint32_t found = 0;

		snprintf(path, sizeof *paths, "%.900s/%s",
		         c[DEPTH].integer ? paths[c[PARENT].integer] : "", c[NAME].text);
		while (found < want->count && strcmp(want->items[found].path, path))
			found++;
		if (found == want->count)
			fail_msg("%s: no profile has it", path);
		check_box(&want->items[found], c, q, want->items[0].mass);
	}
	for (uint32_t i = 1; i < want->count; i++) {
		const struct both *b = &want->items[i];
		bool is_match = false;

		expected += b->mass > 0;
		for (uint32_t k = 0; k < b->length; k++)
			is_match |= b->steps[k].frame == 1 || b->steps[k].frame == 2;
		for (int s = 0; s < 2 && is_match && b->mass > 0; s++)
			matched[s] += b->self[s];
	}
	assert_int_equal(a.row_count, expected);
	const struct plumb_answer_cell *t = plumb_answer_at(&total, 0, 0);
	assert_true(is_near(t[TOTAL_VALUE].number, want->items[0].value[0]));
	assert_true(is_near(t[TOTAL_BEFORE].number, want->items[0].value[1]));
	assert_true(is_near(t[TOTAL_BEFORE_SELF].number, want->items[0].self[1]));
	if (q->width == PLUMB_FLAME_EITHER) { /* then all that matches has a box */
		assert_true(is_near(t[TOTAL_MATCHED].number, matched[0]));
		assert_true(is_near(t[TOTAL_BEFORE_MATCHED].number, matched[1]));
		assert_true(t[UNSEEN].number == 0);
	}
	plumb_answer_free(&a);
	plumb_answer_free(&total);
}

static void
test_reference(void **state)
{
	static struct boths plain, turned;

	(void)state;
	srand(23);
	for (int i = 0; i < 1200; i++) {
		struct pair pair;
		struct plumb_error error;
		struct plumb_flame_query q;
		struct plumb_flame *flame, *akin;
		uint32_t of;

		make_pair(&pair, i % 3);
		q = make_query(&pair, &of);
		flame = plumb_flame_make(&pair.after, &q, &error);
		assert_non_null(flame);
		assert_true(plumb_flame_is_akin(flame, &pair.after, &q));
		akin = plumb_flame_make_akin(flame, &pair.after, &q, &error);
		assert_non_null(akin);
		q.of = of;
		plain.count = 0;
		add_profile(&plain, &pair.after, &q, 0, pair.per[0]);
		add_profile(&plain, &pair.before, &q, 1, pair.per[1]);
		turn_paths(&plain, &q, &turned);
		check_all(&q, flame, &turned);
		plumb_flame_free(flame);
		check_all(&q, akin, &turned);
		plumb_flame_free(akin);
		plumb_profile_free(&pair.after);
		plumb_profile_free(&pair.before);
	}
}

/* ---- by hand ---- */

/* step: mm AFTER, and OTHER with 6. */
static void
make_step(struct plumb_profile *p, int64_t mm, const char *other, int64_t iterations)
{
	struct made m = begin();
	uint32_t step = at(&m, 0, PLUMB_FRAME_PYTHON, "step", "train.py", 0);

	value(&m, at(&m, step, PLUMB_FRAME_OPERATOR, "mm", NULL, 0), PLUMB_METRIC_OP_TIME, mm);
	value(&m, at(&m, step, PLUMB_FRAME_OPERATOR, other, NULL, 0), PLUMB_METRIC_OP_TIME, 6);
	end(&m, p);
	p->window.kind = PLUMB_WINDOW_LOOP;
	p->window.iterations = iterations;
}

static const struct plumb_answer_cell *
box_of(const struct plumb_answer *a, const char *name)
{
	for (uint32_t r = 0; r < a->row_count; r++)
		if (!strncmp(plumb_answer_at(a, r, 0)[NAME].text, name, strlen(name)))
			return plumb_answer_at(a, r, 0);
	return NULL;
}

static void
show(struct plumb_profile *p, struct plumb_flame_query *q, struct plumb_flame **flame,
     struct plumb_answer *a, struct plumb_answer *total)
{
	const struct plumb_flame_range all = { .named = "relu\nsoftmax" };
	struct plumb_error error;

	*flame = plumb_flame_make(p, q, &error);
	assert_non_null(*flame);
	assert_int_equal(plumb_flame_boxes(*flame, &all, a, &error), 0);
	assert_int_equal(plumb_flame_total(*flame, &all, total, &error), 0);
}

/* Per iteration; frames of one side only are there with the width of that side, or of either. */
static void
test_one_side_only(void **state)
{
	struct plumb_profile after, before;
	struct plumb_flame_query q = { .against = &before, .width = PLUMB_FLAME_EITHER };
	struct plumb_flame *flame;
	struct plumb_answer a, total;
	const struct plumb_answer_cell *c;

	(void)state;
	make_step(&after, 30, "relu", 3);
	make_step(&before, 8, "softmax", 2);
	show(&after, &q, &flame, &a, &total);
	c = box_of(&a, "mm");
	assert_true(c[VALUE].number == 10 && c[BEFORE].number == 4 && c[CHANGE].number == 6);
	c = box_of(&a, "relu");
	assert_true(c[VALUE].number == 2 && c[BEFORE].number == 0);
	assert_int_equal(c[FLAGS].integer, PLUMB_FLAME_IS_AFTER | PLUMB_FLAME_MATCHES);
	c = box_of(&a, "softmax");
	assert_true(c[VALUE].number == 0 && c[BEFORE].number == 3 && c[CHANGE].number == -3);
	assert_int_equal(c[FLAGS].integer, PLUMB_FLAME_IS_BEFORE | PLUMB_FLAME_MATCHES);
	assert_true(is_near(c[X1].number - c[X0].number, 3.0 / 15));
	c = plumb_answer_at(&total, 0, 0);
	assert_true(c[TOTAL_VALUE].number == 12 && c[TOTAL_BEFORE].number == 7);
	assert_true(c[TOTAL_MATCHED].number == 2 && c[TOTAL_BEFORE_MATCHED].number == 3);
	assert_true(c[ITERATIONS].number == 3 && c[BEFORE_ITERATIONS].number == 2);
	plumb_answer_free(&a);
	plumb_answer_free(&total);
	plumb_flame_free(flame);
	q.width = PLUMB_FLAME_AFTER;
	show(&after, &q, &flame, &a, &total);
	assert_null(box_of(&a, "softmax"));
	assert_true(plumb_answer_at(&total, 0, 0)[UNSEEN].number == 3);
	assert_true(plumb_answer_at(&total, 0, 0)[TOTAL_BEFORE].number == 7);
	plumb_answer_free(&a);
	plumb_answer_free(&total);
	plumb_flame_free(flame);
	plumb_profile_free(&after);
	plumb_profile_free(&before);
}

/* Details have the values of both, of a box that only the other profile has, too. */
static void
test_details(void **state)
{
	struct plumb_profile after, before;
	struct plumb_flame_query q = { .against = &before, .width = PLUMB_FLAME_EITHER };
	struct plumb_flame *flame;
	struct plumb_answer a, total;
	struct plumb_error error;
	char *text = NULL;
	size_t bytes;

	(void)state;
	make_step(&after, 30, "relu", 3);
	make_step(&before, 8, "softmax", 2);
	show(&after, &q, &flame, &a, &total);
	FILE *out = open_memstream(&text, &bytes);
	assert_int_equal(plumb_flame_frame(flame, (uint32_t)box_of(&a, "softmax")[NODE].integer,
	                                   NULL, out, &error),
	                 0);
	fclose(out);
	assert_true(plumb_json_valid(text));
	assert_non_null(strstr(text, "\"name\":\"softmax\",\"kind\":\"operator\""));
	assert_non_null(strstr(text, "\"values\":[],\"before_values\":[{\"metric\":\"op.time\""));
	free(text);
	plumb_answer_free(&a);
	plumb_answer_free(&total);
	plumb_flame_free(flame);
	plumb_profile_free(&after);
	plumb_profile_free(&before);
}

/* A metric that one of them lacks. */
static void
test_no_metric(void **state)
{
	struct plumb_profile after, before;
	struct plumb_flame_query q = { .against = &before, .metric = "loss" };
	struct plumb_error error;

	(void)state;
	make_step(&after, 30, "relu", 3);
	make_step(&before, 8, "softmax", 2);
	assert_null(plumb_flame_make(&after, &q, &error));
	assert_int_equal(error.code, PLUMB_EUSAGE);
	assert_string_equal(error.message, "the profile after has no metric \"loss\"");
	plumb_profile_free(&after);
	plumb_profile_free(&before);
}

/* Without memory there is an error, whichever allocation fails. */
static void
test_no_memory(void **state)
{
	struct plumb_profile after, before;
	struct plumb_flame_query q = { .against = &before, .range.named = "mm" };
	struct plumb_error error;
	FILE *out = fopen("/dev/null", "w");
	bool reached = true;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	make_step(&after, 30, "relu", 3);
	make_step(&before, 8, "softmax", 2);
	for (long n = 0; reached; n++) {
		int code;

		failing_malloc_at = n;
		code = plumb_view_flame(&after, &q, PLUMB_VIEW_JSON, out, &error);
		reached = failing_malloc_stop();
		assert_true(reached ? code == PLUMB_ESYSTEM : !code);
	}
	fclose(out);
	plumb_profile_free(&after);
	plumb_profile_free(&before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference), cmocka_unit_test(test_one_side_only),
		cmocka_unit_test(test_details),   cmocka_unit_test(test_no_metric),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
