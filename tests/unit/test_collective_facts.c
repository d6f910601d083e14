/* SPDX-License-Identifier: Apache-2.0 */
/* What a communication library told, put together: counts, waiting told from moving, bandwidths. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/collective_facts.h"
#include "model/builder.h"

#define RANKS 3
#define US INT64_C(1000)
#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-9 * fabs(b))

struct made {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	struct plumb_collective_facts facts;
	uint32_t stream[RANKS];
};

static void
begin(struct made *m)
{
	*m = (struct made){ .builder = plumb_builder_new() };
	for (int i = 0; i < RANKS; i++) {
		uint32_t process = plumb_builder_process(
			m->builder,
			&(struct plumb_process){
				.pid = i, .rank = i, .host = PLUMB_NONE, .command = PLUMB_NONE });
		uint32_t device = plumb_builder_device(
			m->builder,
			&(struct plumb_device){
				.name = PLUMB_NONE, .uuid = PLUMB_NONE, .ordinal = i, .rank = i });
		m->stream[i] = plumb_builder_track(
			m->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                           .process = process,
		                                           .device = device,
		                                           .name = PLUMB_NONE,
		                                           .tid = PLUMB_UNKNOWN,
		                                           .stream = 20,
		                                           .gpu_context = 1 });
	}
}

/* An operation of RANK, from START to END µs; END 0: without a kernel. */
static struct plumb_collective
told(struct made *m, int rank, const char *operation, int64_t sequence, int64_t start, int64_t end)
{
	struct plumb_builder *b = m->builder;
	struct plumb_collective row = {
		.context = 0,
		.track = end ? m->stream[rank] : PLUMB_NONE,
		.group = plumb_builder_text(b, "pg"),
		.ranks = plumb_builder_text(b, "[0, 1, 2]"),
		.operation = plumb_builder_text(b, operation),
		.datatype = plumb_builder_text(b, "ncclFloat32"),
		.algorithm = plumb_builder_text(b, "RING"),
		.protocol = plumb_builder_text(b, "SIMPLE"),
		.size = RANKS,
		.sequence = sequence,
		.called_ns = start * US,
		.start_ns = start * US,
		.end_ns = end ? end * US : PLUMB_UNKNOWN,
		.bytes = 6000000,
		.rank = rank,
		.peer = PLUMB_UNKNOWN,
		.root = PLUMB_UNKNOWN,
		.channels = 2,
	};
	return row;
}

static void
add(struct made *m, struct plumb_collective row)
{
	assert_true(plumb_builder_collective(m->builder, &row) >= 0);
}

static void
find(struct made *m)
{
	struct plumb_error error;
	assert_int_equal(plumb_builder_finish(m->builder, &m->profile, &error), 0);
	assert_int_equal(plumb_collective_facts_find(&m->profile, &m->facts), 0);
}

static void
end(struct made *m)
{
	plumb_collective_facts_free(&m->facts);
	plumb_profile_free(&m->profile);
	plumb_builder_free(m->builder);
}

/* Rank 2 comes 300 µs after rank 1, and that 100 µs after rank 0; then it takes 200 µs. */
static void
waiting_and_moving(void **state)
{
	struct made m;
	(void)state;
	begin(&m);
	for (int64_t i = 0; i < 10; i++) {
		int64_t at = 10000 * i;
		add(&m, told(&m, 0, "AllReduce", i, at, at + 600));
		add(&m, told(&m, 1, "AllReduce", i, at + 100, at + 600));
		add(&m, told(&m, 2, "AllReduce", i, at + 400, at + 590));
	}
	find(&m);
	assert_int_equal(m.facts.items.count, 1);
	const struct plumb_collective_fact *fact = m.facts.items.items;
	assert_int_equal(fact->calls, 30);
	assert_int_equal(fact->operations, 10);
	assert_int_equal(fact->matched, 10);
	assert_int_equal(fact->timed, 10);
	assert_int_equal(fact->shared, 0);
	assert_int_equal(fact->all_bytes, 30 * 6000000);
	assert_int_equal(fact->moving_ns, 10 * 200 * US);
	NEAR(fact->algorithm_bandwidth, 6000000 / 200e-6);
	NEAR(fact->bus_bandwidth, 6000000 / 200e-6 * 4 / 3);
	assert_int_equal(fact->rank_count, RANKS);
	const struct plumb_collective_fact_rank *rank = m.facts.ranks.items + fact->first_rank;
	static const int64_t waited[] = { 400, 300, 0 };
	for (int i = 0; i < RANKS; i++) {
		assert_int_equal(rank[i].rank, i);
		assert_int_equal(rank[i].process, i);
		assert_int_equal(rank[i].calls, 10);
		assert_int_equal(rank[i].waited_ns, 10 * waited[i] * US);
		assert_int_equal(rank[i].last, i == 2 ? 10 : 0);
		assert_int_equal(rank[i].late_ns, i == 2 ? 10 * 300 * US : 0);
		assert_int_equal(rank[i].caused_ns, i == 2 ? 10 * 700 * US : 0);
	}
	assert_int_equal(rank[2].most_late_ns, 300 * US);
	end(&m);
}

/* Ends that differ by more than the shortest takes: clocks differ. The shortest came last. */
static void
clocks_that_differ(void **state)
{
	struct made m;
	(void)state;
	begin(&m);
	add(&m, told(&m, 0, "AllReduce", 0, 0, 500));
	add(&m, told(&m, 1, "AllReduce", 0, 9000, 9200));
	add(&m, told(&m, 2, "AllReduce", 0, 100, 500));
	find(&m);
	const struct plumb_collective_fact_rank *rank = m.facts.ranks.items;
	assert_int_equal(m.facts.items.items->moving_ns, 200 * US);
	assert_int_equal(rank[0].waited_ns, 300 * US);
	assert_int_equal(rank[1].last, 1);
	assert_int_equal(rank[2].waited_ns, 200 * US);
	end(&m);
}

/* What is not known of all ranks, shares a kernel or has none is counted and not timed. */
static void
what_is_not_timed(void **state)
{
	struct made m;
	(void)state;
	begin(&m);
	for (int rank = 0; rank < 2; rank++) /* rank 2 is missing */
		add(&m, told(&m, rank, "AllReduce", 0, 0, 100));
	for (int rank = 0; rank < RANKS; rank++) { /* two in one kernel */
		add(&m, told(&m, rank, "AllReduce", 1, 1000, 1100));
		add(&m, told(&m, rank, "AllReduce", 2, 1000, 1100));
	}
	for (int rank = 0; rank < RANKS; rank++)
		add(&m, told(&m, rank, "AllReduce", 3, 2000, 0));
	for (int rank = 0; rank < RANKS; rank++) { /* without a number */
		struct plumb_collective row =
			told(&m, rank, "AllReduce", PLUMB_UNKNOWN, 3000, 3100);
		add(&m, row);
	}
	find(&m);
	const struct plumb_collective_fact *fact = m.facts.items.items;
	assert_int_equal(m.facts.items.count, 1);
	assert_int_equal(fact->calls, 14);
	assert_int_equal(fact->operations, 1 + 2 + 1 + 3);
	assert_int_equal(fact->matched, 3);
	assert_int_equal(fact->timed, 0);
	assert_int_equal(fact->shared, 6);
	assert_true(isnan(fact->algorithm_bandwidth));
	assert_int_equal(m.facts.told, 14);
	assert_int_equal(m.facts.untimed, 3);
	end(&m);
}

static void
rows_that_differ(void **state)
{
	struct made m;
	(void)state;
	begin(&m);
	struct plumb_collective small = told(&m, 0, "AllReduce", 0, 0, 10);
	struct plumb_collective unknown = told(&m, 0, "AllReduce", 1, 20, 30);
	struct plumb_collective send = told(&m, 0, "Send", 0, 40, 50);
	struct plumb_collective imported = told(&m, 0, "AllReduce", 5, 60, 70);
	small.bytes = 4;
	unknown.bytes = PLUMB_UNKNOWN;
	send.peer = 1;
	imported.operation = PLUMB_NONE;
	add(&m, small);
	add(&m, unknown);
	add(&m, send);
	add(&m, imported);
	find(&m);
	const struct plumb_collective_fact *facts = m.facts.items.items;
	assert_int_equal(m.facts.items.count, 3);
	assert_int_equal(m.facts.told, 3);
	assert_true(facts[0].pairs);
	assert_int_equal(facts[0].operations, 1);
	assert_int_equal(facts[0].matched, 0);
	assert_int_equal(facts[1].all_bytes, 4);
	assert_true(facts[2].all_bytes == PLUMB_UNKNOWN);
	end(&m);
}

static void
factors(void **state)
{
	(void)state;
	NEAR(plumb_collective_bus_factor("AllReduce", 2), 1.0);
	NEAR(plumb_collective_bus_factor("AllReduce", 8), 1.75);
	NEAR(plumb_collective_bus_factor("AllGather", 8), 0.875);
	NEAR(plumb_collective_bus_factor("ReduceScatter", 4), 0.75);
	NEAR(plumb_collective_bus_factor("AlltoAll", 4), 0.75);
	NEAR(plumb_collective_bus_factor("Broadcast", PLUMB_UNKNOWN), 1.0);
	assert_true(isnan(plumb_collective_bus_factor("AllReduce", PLUMB_UNKNOWN)));
	assert_true(isnan(plumb_collective_bus_factor("Something", 8)));
	assert_true(isnan(plumb_collective_bus_factor(NULL, 8)));
	assert_int_equal(plumb_collective_whole_bytes("AllReduce", 8, 100), 100);
	assert_int_equal(plumb_collective_whole_bytes("AllGather", 8, 100), 800);
	assert_int_equal(plumb_collective_whole_bytes("ReduceScatter", 8, 100), 800);
	assert_true(plumb_collective_whole_bytes("AllGather", 8, INT64_MAX) == PLUMB_UNKNOWN);
	assert_true(plumb_collective_whole_bytes("AllGather", 8, PLUMB_UNKNOWN) == PLUMB_UNKNOWN);
	assert_true(plumb_collective_whole_bytes("Something", 8, 1) == PLUMB_UNKNOWN);
}

static void
sent(void **state)
{
	(void)state;
	NEAR(plumb_collective_sent_bytes("AllReduce", "RING", "SIMPLE", 4, 1000), 1500.0);
	NEAR(plumb_collective_sent_bytes("AllReduce", "RING", "LL", 4, 1000), 3000.0);
	NEAR(plumb_collective_sent_bytes("AllReduce", "RING", "LL128", 4, 1000), 1600.0);
	/* A chain of 4: the ends send the data once, the others twice. */
	NEAR(plumb_collective_sent_bytes("AllReduce", "TREE", "SIMPLE", 4, 1000), 6000.0 / 4);
	NEAR(plumb_collective_sent_bytes("AllGather", "RING", "SIMPLE", 8, 100), 700.0);
	NEAR(plumb_collective_sent_bytes("ReduceScatter", "RING", "SIMPLE", 8, 100), 700.0);
	NEAR(plumb_collective_sent_bytes("Broadcast", "RING", "SIMPLE", 2, 100), 50.0);
	NEAR(plumb_collective_sent_bytes("Reduce", "RING", "LL", 2, 100), 100.0);
	assert_true(plumb_collective_sent_bytes("AllReduce", "RING", "SIMPLE", 1, 100) == 0);
	assert_true(isnan(plumb_collective_sent_bytes("AllReduce", "NVLS", "SIMPLE", 4, 100)));
	assert_true(isnan(plumb_collective_sent_bytes("AllGather", "TREE", "SIMPLE", 4, 100)));
	assert_true(isnan(plumb_collective_sent_bytes("AllReduce", "RING", NULL, 4, 100)));
	assert_true(isnan(plumb_collective_sent_bytes("AllReduce", NULL, "LL", 4, 100)));
	assert_true(isnan(plumb_collective_sent_bytes("Send", NULL, NULL, 2, 100)));
	assert_true(isnan(plumb_collective_sent_bytes(NULL, "RING", "LL", 2, 100)));
	assert_true(
		isnan(plumb_collective_sent_bytes("AllReduce", "RING", "LL", PLUMB_UNKNOWN, 1)));
	assert_true(isnan(plumb_collective_sent_bytes("AllReduce", "RING", "LL", 2, -1)));
}

static void
nothing_told(void **state)
{
	struct made m;
	(void)state;
	begin(&m);
	find(&m);
	assert_int_equal(m.facts.items.count, 0);
	end(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_and_moving),
		cmocka_unit_test(clocks_that_differ),
		cmocka_unit_test(what_is_not_timed),
		cmocka_unit_test(rows_that_differ),
		cmocka_unit_test(factors),
		cmocka_unit_test(sent),
		cmocka_unit_test(nothing_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
