/* SPDX-License-Identifier: Apache-2.0 */
/* The parts into which `plumb run` cuts a run: which neighbours become one, and what is kept. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "failing_malloc.h"
#include "watch/copies_parts.h"

#define LOOK UINT64_C(100000000) /* ns */
#define BOUND (UINT64_C(1) << 30)

static uint32_t random_state;

/* 0 … BELOW - 1 */
static uint32_t
random_below(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

static int
set_up(void **state)
{
	(void)state;
	random_state = 1;
	return 0;
}

/* What several observations are. */
struct observed {
	double sum, squares;
	uint64_t count;
};

static void
observe(struct observed *o, int64_t x)
{
	o->sum += (double)x;
	o->squares += (double)x * (double)x;
	o->count++;
}

static double
m2_of(const struct observed *o)
{
	return o->squares - o->sum * o->sum / (double)o->count;
}

static struct plumb_part_entry
entry_of(uint32_t item, const struct observed *o)
{
	return (struct plumb_part_entry){ .item = item & INT32_MAX,
		                          .is_time = true,
		                          .sum = (int64_t)o->sum,
		                          .count = o->count,
		                          .m2 = m2_of(o) };
}

/* An entry of time, observed once. */
static bool
add(struct plumb_parts *parts, uint32_t item, double share)
{
	return plumb_parts_add(parts, &(struct plumb_part_entry){ .item = item & INT32_MAX,
	                                                          .is_time = true,
	                                                          .sum = (int64_t)(share * LOOK),
	                                                          .count = 1 });
}

static uint64_t
now_of(const struct plumb_parts *parts)
{
	return parts->count ? parts->items[parts->count - 1].end : 7;
}

static void
begin(struct plumb_parts *parts)
{
	plumb_parts_begin(parts, now_of(parts));
}

static void
end(struct plumb_parts *parts)
{
	plumb_parts_end(parts, parts->items[parts->count].start + LOOK, true);
}

/* A look at a loop that takes SHARE of the time in ITEM and the next one, give or take a little. */
static void
look_at_loop(struct plumb_parts *parts, uint32_t item, double share)
{
	double noise = 0.02 * share * (random_below(1000) / 500.0 - 1);

	begin(parts);
	assert_true(add(parts, item, 0.75 * share + noise));
	assert_true(add(parts, item + 1, 0.25 * share - noise));
	end(parts);
}

static void
check_order(const struct plumb_parts *parts, uint32_t looks)
{
	assert_true(parts->count <= PLUMB_COPIES_PARTS);
	assert_int_equal(parts->items[0].start, 7);
	assert_int_equal(parts->items[parts->count - 1].end, 7 + looks * LOOK);
	for (uint32_t i = 1; i < parts->count; i++)
		assert_int_equal(parts->items[i].start, parts->items[i - 1].end);
}

/* Is there a border after LOOKS looks? */
static bool
has_border(const struct plumb_parts *parts, uint32_t looks)
{
	for (uint32_t i = 0; i < parts->count; i++)
		if (parts->items[i].end == 7 + looks * LOOK)
			return true;
	return false;
}

/* ---- sums ---- */

static void
joined_m2_is_that_of_all(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct observed a = { 0 }, b = { 0 }, both = { 0 };
		for (uint32_t i = 0, n = 1 + random_below(20); i < n; i++) {
			int64_t x = random_below(1000000);
			observe(&a, x);
			observe(&both, x);
		}
		for (uint32_t i = 0, n = 1 + random_below(20); i < n; i++) {
			int64_t x = 3000000 + random_below(1000);
			observe(&b, x);
			observe(&both, x);
		}
		struct plumb_part_entry x = entry_of(0, &a), y = entry_of(0, &b);
		double m2 = plumb_parts_joined_m2(&x, &y);
		assert_true(fabs(m2 - m2_of(&both)) <= 1e-9 * m2_of(&both) + 1e-3);
	}
}

/* What all parts have of ITEM, with its m2. */
static struct plumb_part_entry
all_of(const struct plumb_parts *parts, uint32_t item)
{
	struct plumb_part_entry all = { 0 };

	for (uint32_t i = 0; i < parts->count; i++)
		for (uint32_t k = 0; k < parts->items[i].count; k++) {
			const struct plumb_part_entry *e = &parts->items[i].entries[k];
			assert_true(!k || e[-1].item < e->item);
			if (e->item != item)
				continue;
			all.m2 = all.count ? plumb_parts_joined_m2(&all, e) : e->m2;
			all.sum += e->sum;
			all.count += e->count;
		}
	return all;
}

/* 300 looks at 40 items, each of which grows in some of them. */
static void
nothing_is_lost_by_joining(void **state)
{
	enum { ITEMS = 40, LOOKS = 300 };
	struct plumb_parts parts = { .bytes_bound = BOUND };
	struct observed all[ITEMS] = { 0 };
	(void)state;
	for (int l = 0; l < LOOKS; l++) {
		begin(&parts);
		for (uint32_t i = 0; i < ITEMS; i++) {
			struct observed here = { 0 };
			for (uint32_t k = random_below(4); k > 0; k--) {
				int64_t x = random_below(5000000);
				observe(&here, x);
				observe(&all[i], x);
			}
			struct plumb_part_entry e = entry_of(i, &here);
			assert_true(!here.count || plumb_parts_add(&parts, &e));
		}
		end(&parts);
		check_order(&parts, (uint32_t)l + 1);
	}
	assert_int_equal(parts.count, PLUMB_COPIES_PARTS);
	for (int after = 0; after < 2; after++) {
		for (uint32_t i = 0; i < ITEMS; i++) {
			struct plumb_part_entry is = all_of(&parts, i);
			assert_int_equal(is.sum, (int64_t)all[i].sum);
			assert_int_equal(is.count, all[i].count);
			assert_true(fabs(is.m2 - m2_of(&all[i])) < 1e-6 * m2_of(&all[i]));
		}
		plumb_parts_drop_small_borders(&parts);
		check_order(&parts, LOOKS);
	}
	assert_int_equal(parts.fate, 0);
	plumb_parts_free(&parts);
	assert_int_equal(parts.bytes, 0);
}

/* From the first work of the parts that became one to the last. */
static void
work_is_from_the_first_to_the_last(void **state)
{
	static const bool works[] = { false, true, false, true, false };
	struct plumb_parts parts = { .bytes_bound = BOUND };
	(void)state;
	for (uint32_t l = 0; l < PLUMB_COPIES_PARTS + 4; l++) {
		begin(&parts);
		/* All but the first five differ, so these become one. */
		assert_true(l < 5 || add(&parts, l, 1));
		plumb_parts_end(&parts, parts.items[parts.count].start + LOOK,
		                l < 5 ? works[l] : true);
	}
	assert_int_equal(parts.count, PLUMB_COPIES_PARTS);
	assert_int_equal(parts.items[0].end, 7 + 5 * LOOK);
	assert_int_equal(parts.items[0].first_work, 7 + 1 * LOOK);
	assert_int_equal(parts.items[0].last_work, 7 + 4 * LOOK);
	plumb_parts_free(&parts);
}

/* ---- which borders stay ---- */

static double
rate_in(const struct plumb_part *part, uint32_t item)
{
	for (uint32_t k = 0; k < part->count; k++)
		if (part->entries[k].item == item)
			return fmin((double)part->entries[k].sum / (double)LOOK, 1);
	return 0;
}

/* By how much squares of distances to the mean of roots of rates grow if A and B have one mean. */
static double
loss_of(const struct plumb_part *a, const struct plumb_part *b, uint32_t items)
{
	double an = (double)(a->end - a->start), bn = (double)(b->end - b->start), loss = 0;

	for (uint32_t i = 0; i < items; i++) {
		double x = sqrt(rate_in(a, i)), y = sqrt(rate_in(b, i));
		double mean = (an * x + bn * y) / (an + bn);
		loss += an * (x - mean) * (x - mean) + bn * (y - mean) * (y - mean);
	}
	return loss;
}

/* Of 49 parts the border goes that costs least (Ward). */
static void
the_least_border_goes(void **state)
{
	enum { ITEMS = 8 };
	(void)state;
	for (int round = 0; round < 50; round++) {
		struct plumb_parts parts = { .bytes_bound = BOUND };
		uint32_t least = 1, newest = PLUMB_COPIES_PARTS;
		double costs[PLUMB_COPIES_PARTS + 1];
		struct plumb_part before[PLUMB_COPIES_PARTS + 1];
		for (uint32_t l = 0; l <= newest; l++) {
			begin(&parts);
			for (uint32_t i = 0; i < ITEMS; i++)
				assert_true(!random_below(3) ||
				            add(&parts, i, random_below(200) / 1000.0));
			if (l < newest) {
				end(&parts);
				continue;
			}
			memcpy(before, parts.items, sizeof before);
			before[newest].end = before[newest].start + LOOK;
			for (uint32_t i = 1; i <= newest; i++) {
				costs[i] = loss_of(&before[i - 1], &before[i], ITEMS);
				least = costs[i] < costs[least] ? i : least;
			}
			end(&parts);
		}
		assert_int_equal(parts.count, PLUMB_COPIES_PARTS);
		assert_false(has_border(&parts, least));
		plumb_parts_free(&parts);
	}
}

/* Minutes of training are noise beside the border where it ends, however late it comes. */
static void
borders_stay_where_the_program_changes(void **state)
{
	struct plumb_parts parts = { .bytes_bound = BOUND };
	(void)state;
	for (uint32_t l = 0; l < 2000; l++)
		look_at_loop(&parts, l < 30 ? 0 : l < 1500 ? 2 : 4, l < 30 ? 0.5 : 0.9);
	check_order(&parts, 2000);
	assert_int_equal(parts.count, PLUMB_COPIES_PARTS);
	assert_true(has_border(&parts, 30) && has_border(&parts, 1500));
	plumb_parts_drop_small_borders(&parts);
	assert_int_equal(parts.count, 3);
	assert_true(has_border(&parts, 30) && has_border(&parts, 1500));
	plumb_parts_free(&parts);
}

/* Epochs: training and evaluation in turn. */
static void
all_epochs_stay(void **state)
{
	struct plumb_parts parts = { .bytes_bound = BOUND };
	(void)state;
	for (uint32_t epoch = 0; epoch < 10; epoch++) {
		for (uint32_t l = 0; l < 50; l++)
			look_at_loop(&parts, 0, 0.9);
		for (uint32_t l = 0; l < 20; l++)
			look_at_loop(&parts, 2, 0.6);
	}
	plumb_parts_drop_small_borders(&parts);
	check_order(&parts, 700);
	assert_int_equal(parts.count, 20);
	for (uint32_t epoch = 0; epoch < 10; epoch++)
		assert_true(has_border(&parts, 70 * epoch + 50) &&
		            has_border(&parts, 70 * epoch + 70));
	plumb_parts_free(&parts);
}

/* A wait in which nothing ends says nothing of how much looks at the same loop differ by chance. */
static void
quiet_looks_make_no_borders(void **state)
{
	struct plumb_parts parts = { .bytes_bound = BOUND };
	(void)state;
	for (uint32_t l = 0; l < 20; l++) {
		begin(&parts);
		plumb_parts_end(&parts, parts.items[parts.count].start + LOOK, false);
	}
	for (uint32_t l = 20; l < 44; l++)
		look_at_loop(&parts, 0, 0.9);
	plumb_parts_drop_small_borders(&parts);
	check_order(&parts, 44);
	assert_true(parts.count < 8);
	assert_true(has_border(&parts, 20));
	plumb_parts_free(&parts);
}

/* Only time says what a program does. Bytes and counts grow as they like. */
static void
counts_make_no_borders(void **state)
{
	struct plumb_parts parts = { .bytes_bound = BOUND };
	(void)state;
	for (uint32_t l = 0; l < 200; l++) {
		begin(&parts);
		assert_true(add(&parts, 0, (l < 100 ? 0.2 : 0.8) + random_below(100) / 1e4));
		assert_true(plumb_parts_add(
			&parts, &(struct plumb_part_entry){ .item = 1,
		                                            .sum = 1 << random_below(30),
		                                            .count = 1 + random_below(1000) }));
		end(&parts);
	}
	assert_true(has_border(&parts, 100));
	plumb_parts_drop_small_borders(&parts);
	assert_int_equal(parts.count, 2);
	assert_true(has_border(&parts, 100));
	plumb_parts_free(&parts);
}

/* ---- memory ---- */

/* Many values make fewer parts, and none is lost. */
static void
many_values_make_fewer_parts(void **state)
{
	enum { ITEMS = 200000, LOOKS = 24 };
	struct plumb_parts parts = { .bytes_bound = BOUND };
	uint64_t least_bytes = (uint64_t)ITEMS * sizeof(struct plumb_part_entry);
	(void)state;
	for (uint32_t l = 0; l < LOOKS; l++) {
		begin(&parts);
		for (uint32_t i = 0; i < ITEMS; i++)
			assert_true(add(&parts, i, (l < 12 ? 1e-6 : 2e-6) * (1 + i % 3)));
		end(&parts);
		assert_true(parts.bytes <= PLUMB_PARTS_MEMORY);
		assert_true(plumb_parts_entries(&parts) * sizeof(struct plumb_part_entry) ==
		            parts.bytes);
	}
	assert_true(parts.count < LOOKS && parts.count * least_bytes <= PLUMB_PARTS_MEMORY);
	assert_true(has_border(&parts, 12));
	assert_int_equal(all_of(&parts, 5).count, LOOKS);
	plumb_parts_free(&parts);
}

static void
the_bound_holds(void **state)
{
	struct plumb_parts parts = { .bytes_bound = 100000 };
	uint32_t added = 0;
	(void)state;
	begin(&parts);
	while (added < 100000 && add(&parts, added, 0.001))
		added++;
	assert_int_equal(parts.fate, PLUMB_FATE_MEMORY_BOUND);
	assert_true(added > 1000 && added * sizeof(struct plumb_part_entry) <= 100000);
	assert_true(parts.bytes_most <= 100000);
	end(&parts);
	plumb_parts_drop_small_borders(&parts); /* of no use, and harmless */
	plumb_parts_free(&parts);
	assert_int_equal(parts.bytes, 0);
}

/* If joining for a trial finds no room, small borders stay. */
static void
without_room_for_a_trial_all_borders_stay(void **state)
{
	enum { ITEMS = 100 };
	struct plumb_parts parts = { .bytes_bound = BOUND };
	(void)state;
	for (uint32_t l = 0; l < 20; l++) {
		begin(&parts);
		for (uint32_t i = 0; i < ITEMS; i++)
			assert_true(add(&parts, i, 0.001 + 0.0001 * random_below(10)));
		end(&parts);
	}
	parts.bytes_bound = parts.bytes + ITEMS * sizeof(struct plumb_part_entry);
	plumb_parts_drop_small_borders(&parts);
	assert_int_equal(parts.fate, 0);
	assert_int_equal(parts.count, 20);
	assert_int_equal(all_of(&parts, ITEMS - 1).count, 20);
	plumb_parts_free(&parts);
	assert_int_equal(parts.bytes, 0);
}

static void
no_memory_is_said(void **state)
{
	bool over = false;
	(void)state;
	for (long n = 0; FAILING_MALLOC && !over; n++) {
		struct plumb_parts parts = { .bytes_bound = BOUND };
		bool fine = true;
		failing_malloc_at = n;
		for (uint32_t l = 0; l < PLUMB_COPIES_PARTS + 5 && fine; l++) {
			begin(&parts);
			for (uint32_t i = 0; i < 70; i++)
				fine = fine && add(&parts, i, 0.01);
			end(&parts);
			fine = fine && !parts.fate;
		}
		bool before = failing_malloc_at >= 0;
		plumb_parts_drop_small_borders(&parts);
		over = !failing_malloc_stop();
		if (parts.fate)
			assert_int_equal(parts.fate, PLUMB_FATE_NO_MEMORY);
		else
			assert_int_equal(all_of(&parts, 69).count, PLUMB_COPIES_PARTS + 5);
		assert_true(fine || !before);
		plumb_parts_free(&parts);
		assert_int_equal(parts.bytes, 0);
	}
}

/* ---- what was open at a border ---- */

/* A look at which an item has SUM looks of time, BEFORE of them before it. */
static void
look_at_open(struct plumb_parts *parts, uint32_t item, double sum, double before)
{
	begin(parts);
	if (sum > 0)
		assert_true(plumb_parts_add(
			parts, &(struct plumb_part_entry){ .item = item & INT32_MAX,
		                                           .is_time = true,
		                                           .sum = (int64_t)(sum * LOOK),
		                                           .before = (int64_t)(before * LOOK),
		                                           .count = 1 }));
	end(parts);
}

static int64_t
sum_in(const struct plumb_parts *parts, uint32_t part, uint32_t item)
{
	for (uint32_t i = 0; i < parts->items[part].count; i++)
		if (parts->items[part].entries[i].item == item)
			return parts->items[part].entries[i].sum;
	return -1;
}

/* Five looks of time end in one: no part has the four that lie before it. */
static void
what_lies_before_a_part_is_not_of_it(void **state)
{
	struct plumb_parts parts = { .bytes_bound = BOUND };

	(void)state;
	for (int i = 0; i < 6; i++)
		look_at_open(&parts, 1, 0.5, 0);
	look_at_open(&parts, 2, 5, 4);
	plumb_parts_move_back(&parts);
	assert_int_equal(parts.count, 7);
	assert_int_equal(sum_in(&parts, 6, 2), LOOK);
	for (uint32_t p = 0; p < 6; p++) {
		assert_int_equal(sum_in(&parts, p, 1), LOOK / 2);
		assert_int_equal(sum_in(&parts, p, 2), -1);
	}
	plumb_parts_free(&parts);
}

/* Parts that have the item, too, get as much as has room in them. */
static void
what_lies_before_a_part_goes_to_those_before(void **state)
{
	struct plumb_parts parts = { .bytes_bound = BOUND };

	(void)state;
	look_at_open(&parts, 1, 0.25, 0);
	look_at_open(&parts, 1, 0.5, 0);
	look_at_open(&parts, 1, 2, 1);
	look_at_open(&parts, 2, 1, 0);
	plumb_parts_move_back(&parts);
	assert_int_equal(parts.count, 4);
	assert_int_equal(sum_in(&parts, 2, 1), LOOK);
	assert_int_equal(sum_in(&parts, 1, 1), LOOK);
	assert_int_equal(sum_in(&parts, 0, 1), 3 * LOOK / 4);
	assert_int_equal(sum_in(&parts, 3, 2), LOOK);
	plumb_parts_free(&parts);
}

/* Calls from the middle of a look to the middle of the next one: they fill the parts, but for half
 * a look before the first. */
static void
joined_parts_have_what_lies_in_both(void **state)
{
	const uint32_t looks = 6 * PLUMB_COPIES_PARTS;
	struct plumb_parts parts = { .bytes_bound = BOUND };
	int64_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < looks; i++)
		look_at_open(&parts, 2, 1, 0.5);
	plumb_parts_drop_small_borders(&parts);
	assert_true(parts.count < PLUMB_COPIES_PARTS);
	plumb_parts_move_back(&parts);
	for (uint32_t p = 0; p < parts.count; p++) {
		const struct plumb_part *part = &parts.items[p];
		int64_t own = sum_in(&parts, p, 2);
		assert_true(own <= (int64_t)(part->end - part->start));
		sum += own > 0 ? own : 0;
	}
	assert_int_equal(sum, looks * LOOK - LOOK / 2);
	plumb_parts_free(&parts);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		T(joined_m2_is_that_of_all),
		T(nothing_is_lost_by_joining),
		T(work_is_from_the_first_to_the_last),
		T(the_least_border_goes),
		T(borders_stay_where_the_program_changes),
		T(all_epochs_stay),
		T(quiet_looks_make_no_borders),
		T(counts_make_no_borders),
		T(many_values_make_fewer_parts),
		T(the_bound_holds),
		T(without_room_for_a_trial_all_borders_stay),
		T(no_memory_is_said),
		T(what_lies_before_a_part_is_not_of_it),
		T(what_lies_before_a_part_goes_to_those_before),
		T(joined_parts_have_what_lies_in_both),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
