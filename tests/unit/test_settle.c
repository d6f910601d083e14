/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: the tree that regions written here by hand must give, its values and the ledger. */
#include <math.h>

#include "settle_regions.h"

/* ---- the tree ---- */

static void
test_tree_over_arenas(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(11), u = thread(12);
	plumb_id line = node(0, PLUMB_FRAME_PYTHON, "main");
	/* In the other arena under this one's, and back. */
	plumb_id op = node_in(&other, line, PLUMB_FRAME_OPERATOR, "aten::mm", 0);
	plumb_id inner = node(op, PLUMB_FRAME_OPERATOR, "aten::empty");
	value(op, t, PLUMB_METRIC_OP_DURATION, 10, 30);
	value(inner, t, PLUMB_METRIC_OP_DURATION, 5, 5);
	/* The same path, made a second time by another thread. */
	plumb_id again = node_in(&other, node_in(&other, 0, PLUMB_FRAME_PYTHON, "main", 0),
	                         PLUMB_FRAME_OPERATOR, "aten::mm", 0);
	value(again, u, PLUMB_METRIC_OP_DURATION, 50, 70);
	/* Backward work is another context. */
	plumb_id back =
		node_in(&arena, op, PLUMB_FRAME_OPERATOR, "MmBackward0", PLUMB_CONTEXT_BACKWARD);
	value(back, u, PLUMB_METRIC_OP_DURATION, 1, 2);
	struct plumb_record_origin *o = RECORD(ORIGIN, origin);
	o->node = back;
	o->origin = line;
	o->kind = PLUMB_ORIGIN_BACKWARD_CALL;
	end();

	/* The same program's second process, its parent later in the file than the child. */
	begin(0, "2");
	process(2, -1);
	t = thread(21);
	plumb_id child = node(0, PLUMB_FRAME_OPERATOR, "aten::mm");
	plumb_id late = node_in(&other, 0, PLUMB_FRAME_PYTHON, "main", 0);
	((struct plumb_record_node *)plumb_region_at(&region, child))->parent = late;
	value(child, t, PLUMB_METRIC_OP_DURATION, 100, 100);
	end();

	assert_int_equal(settle(1), 0);
	assert_null(warnings);
	struct plumb_stat s = stat_of(find("main|aten::mm"), PLUMB_METRIC_OP_DURATION);
	assert_int_equal(s.count, 6);
	assert_int_equal(s.sum, 360);
	assert_int_equal(s.min, 10);
	assert_int_equal(s.max, 100);
	assert_true(s.mean == 60);
	/* Calls come from the durations. */
	s = stat_of(find("main|aten::mm"), PLUMB_METRIC_OP_CALLS);
	assert_int_equal(s.sum, 6);
	assert_int_equal(s.count, 6);
	assert_int_equal(stat_of(find("main|aten::mm|aten::empty"), PLUMB_METRIC_OP_CALLS).sum, 2);
	uint32_t backward = find_flagged("main|aten::mm|MmBackward0", PLUMB_CONTEXT_BACKWARD);
	assert_int_not_equal(backward, PLUMB_NONE);
	assert_int_equal(profile.origins_count, 1);
	assert_int_equal(profile.origins[0].context, backward);
	assert_int_equal(profile.origins[0].origin, find("main"));
	assert_int_equal(profile.contexts_count, 5);
	assert_int_equal(profile.tracks_count, 3);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 0);
	done();
}

static void
test_deep_tree(void **state)
{
	plumb_id at = 0, name;

	(void)state;
	begin(0, "1");
	process(1, -1);
	name = text("f");
	for (int i = 0; i < 50000; i++) {
		struct plumb_record_node *n = RECORD(NODE, node);
		n->parent = at;
		n->kind = PLUMB_FRAME_PYTHON;
		n->name = name;
		at = plumb_region_id(&region, n);
	}
	/* Asked for from the innermost. */
	value(at, thread(1), PLUMB_METRIC_OP_TIME, 1, 1);
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.contexts_count, 50001);
	assert_int_equal(profile.contexts[50000].depth, 50000);
	assert_int_equal(profile.values[0].context, 50000);
	done();
}

static void
test_hostile_tree(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(1);
	plumb_id a = node(0, PLUMB_FRAME_OPERATOR, "a");
	plumb_id b = node(a, PLUMB_FRAME_OPERATOR, "b");
	plumb_id self = node(0, PLUMB_FRAME_OPERATOR, "self");
	plumb_id lost = node(0x7fffffff, PLUMB_FRAME_OPERATOR, "lost");
	plumb_id odd = node(t, PLUMB_FRAME_OPERATOR, "odd"); /* its parent is a thread */
	plumb_id kind = node(0, (enum plumb_frame_kind)200, "kind");
	plumb_id under = node(kind, PLUMB_FRAME_OPERATOR, "under");
	((struct plumb_record_node *)plumb_region_at(&region, a))->parent = b;
	((struct plumb_record_node *)plumb_region_at(&region, self))->parent = self;
	((struct plumb_record_node *)plumb_region_at(&region, under))->name = 3;
	const plumb_id all[] = { a, b, self, lost, odd, under };
	for (int i = 0; i < 6; i++)
		value(all[i], t, PLUMB_METRIC_OP_TIME, 1, 2);
	/* Values that cannot be. */
	value(0x1000, t, PLUMB_METRIC_OP_TIME, 1, 1);
	value(a, a, PLUMB_METRIC_OP_TIME, 1, 1);
	value(a, t, (enum plumb_metric)999, 1, 1);
	value(a, t, PLUMB_METRIC_OP_TIME, 1, 1)->mean = (double)NAN;
	value(a, t, PLUMB_METRIC_OP_TIME, 1, 1)->count = UINT64_MAX;
	value(a, t, PLUMB_METRIC_OP_TIME, 1, 1)->min = 2;
	end();
	assert_int_equal(settle(1), 0);
	/* Nothing that was measured is lost: what has no way up hangs under the root. */
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile.values_count; i++)
		sum += profile.values[i].sum;
	assert_int_equal(sum, 6 * 3);
	assert_int_not_equal(find("lost"), PLUMB_NONE);
	assert_int_not_equal(find("self"), PLUMB_NONE);
	assert_int_not_equal(find("?"), PLUMB_NONE);
	/* a and b: one of them became the top. */
	assert_true((find("b|a") == PLUMB_NONE) != (find("a|b") == PLUMB_NONE));
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_DAMAGED), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_UNKNOWN_LAYOUT), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED), 12);
	assert_true(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED) >= 4);
	done();
}

static void
test_torn_values(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(1), op = node(0, PLUMB_FRAME_OPERATOR, "op");
	value(op, t, PLUMB_METRIC_OP_TIME, 3, 4);
	value(op, t, PLUMB_METRIC_OP_DURATION, 3, 4)->sequence++;
	struct plumb_record_variant *v = RECORD(VARIANT, variant);
	v->node = op;
	v->track = t;
	v->count = 1;
	v->sequence = 1;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_TIME).sum, 7);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_DURATION).count, 0);
	assert_int_equal(stat_of(find("op"), PLUMB_METRIC_OP_CALLS).count, 0);
	assert_int_equal(profile.variants_count, 0);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED), 1);
	done();
}

static struct plumb_record_shape *
shape(plumb_id at, plumb_id track, const char *shapes, uint64_t count, int64_t time)
{
	plumb_id id = text(shapes);
	struct plumb_record_shape *s = RECORD(SHAPE, shape);

	s->node = at;
	s->track = track;
	s->text = id;
	s->count = count;
	s->time = s->max = time;
	return s;
}

static void
test_shapes(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id t = thread(1), op = node(0, PLUMB_FRAME_OPERATOR, "op");
	value(op, t, PLUMB_METRIC_OP_TIME, 35, 50);
	shape(op, t, "(float32[2])", 3, 30);
	shape(op, t, "(float32[4])", 1, 5);
	shape(op, t, "(float32[2])", 2, 50); /* of another arena: the same variant */
	shape(op, t, "made, not used", 0, 0);
	shape(op, t, "torn", 1, 1)->sequence = 1;
	shape(op, t, NULL, 1, 1);
	shape(op, op, "no track", 1, 1);
	shape(0x1000, t, "no node", 1, 1);
	shape(op, t, "times", 1, 1)->min = 2;
	shape(op, t, "time", 1, 1)->time = -1;
	shape(op, t, "many", UINT64_MAX, 1);
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.variants_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct plumb_variant *v = &profile.variants[i];
		bool first = !strcmp(plumb_text(&profile, v->shapes), "(float32[2])");

		assert_int_equal(v->count, first ? 5 : 1);
		assert_int_equal(v->time, first ? 80 : 5);
		assert_int_equal(v->max, first ? 50 : 5);
		assert_true(v->grid[0] == PLUMB_UNKNOWN && v->registers == PLUMB_UNKNOWN &&
		            v->occupancy == PLUMB_UNKNOWN);
	}
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_DAMAGED), 6);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED), 4);
	done();
}

/* ---- the ledger ---- */

static void
test_ledger(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	plumb_id d = device(0, 1), s = stream(d, 7), t = thread(1);
	plumb_id op = node(node(0, PLUMB_FRAME_PYTHON, "main"), PLUMB_FRAME_OPERATOR, "op");
	value(node(op, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	value(node(0, PLUMB_FRAME_KERNEL, "alone"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	plumb_id back = node_in(&arena, op, PLUMB_FRAME_OPERATOR, "b", PLUMB_CONTEXT_BACKWARD);
	value(node(back, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	plumb_id gather = node_in(&arena, op, PLUMB_FRAME_OPERATOR, "a",
	                          PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION);
	value(node(gather, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 1, 1);
	value(op, t, PLUMB_METRIC_OP_TIME, 1, 1);
	plumb_arena_count(&arena, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_RECEIVED, 12);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, 10);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED, 6);
	plumb_arena_count(&other, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED, 2);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RING_MISS, 1);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_LAUNCH, 1);
	plumb_arena_count(&arena, PLUMB_SOURCE_VALUE, PLUMB_FATE_REGION_FULL, 5);
	region.header->lost_full = 9;
	region.header->lost_no_space = 4;
	region.header->lost[PLUMB_SOURCE_OPERATOR] =
		(struct plumb_region_lost){ .received = 21, .full = 17, .no_space = 3 };
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED), 8);
	assert_int_equal(ledger(PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED), 3);
	assert_int_equal(ledger(PLUMB_SOURCE_LAUNCH, PLUMB_FATE_ATTRIBUTED), 9);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_FORWARD), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_ACCUMULATION), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED), 5 + 5);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_PROCESS, PLUMB_FATE_ATTRIBUTED), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_REGION_FULL), 9);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_NO_SPACE), 4);
	assert_int_equal(ledger(PLUMB_SOURCE_OPERATOR, PLUMB_FATE_RECEIVED), 21);
	assert_int_equal(ledger(PLUMB_SOURCE_OPERATOR, PLUMB_FATE_REGION_FULL), 17);
	assert_int_equal(ledger(PLUMB_SOURCE_OPERATOR, PLUMB_FATE_NO_SPACE), 3);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_RECEIVED),
	                 ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_ATTRIBUTED) + 13);
	done();
}

static void
test_overhead(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, -1);
	for (uint32_t i = 0; i < 2; i++) {
		plumb_id t = thread(i + 1);
		struct plumb_record_overhead *o = RECORD(OVERHEAD, overhead);
		o->thread = t;
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].calls = 6400 * (i + 1);
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].timed = 100;
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].timed_ns = 10000;
		o->kinds[PLUMB_CALLBACK_OPERATOR_ENTER].empty_ns_x1000 = 2500;
		o->kinds[PLUMB_CALLBACK_GPU_RECORDS].calls = 1000000;
		o->kinds[PLUMB_CALLBACK_GPU_RECORDS].timed = 1;
		o->kinds[PLUMB_CALLBACK_GPU_RECORDS].timed_ns = 1000000;
		value(node(0, PLUMB_FRAME_OPERATOR, "op"), t, PLUMB_METRIC_OP_TIME, 1, 1);
	}
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.tracks[0].overhead_ns, 656000);
	assert_int_equal(profile.tracks[1].overhead_ns, 1312000);
	assert_int_equal(profile.processes[0].overhead_ns, 1312000);
	assert_int_equal(profile.run.overhead_ns, 1312000);
	done();
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_tree_over_arenas), T(test_deep_tree), T(test_hostile_tree),
		T(test_torn_values),      T(test_shapes),    T(test_ledger),
		T(test_overhead),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
