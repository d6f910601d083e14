/* SPDX-License-Identifier: Apache-2.0 */
/* Which operations of several ranks are one collective: each rule alone, and its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/collectives.h"
#include "model/builder.h"

#define RANKS 4
#define US INT64_C(1000)

struct made {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	struct plumb_collectives found;
	uint32_t stream[RANKS][2];
};

/* Each rank is on one of HOSTS, and the clock of each is off by RESIDUAL µs. */
static void
begin_on(struct made *m, int hosts, int64_t residual)
{
	*m = (struct made){ .builder = plumb_builder_new() };
	for (int i = 0; i < RANKS; i++) {
		uint32_t host = plumb_builder_text(m->builder, i % hosts ? "b" : "a");
		uint32_t process = plumb_builder_process(
			m->builder,
			&(struct plumb_process){
				.pid = i, .rank = i, .host = host, .command = PLUMB_NONE });
		assert_int_equal(
			plumb_builder_clock(m->builder,
		                            &(struct plumb_clock){ .process = process,
		                                                   .device = PLUMB_NONE,
		                                                   .residual_ns = residual * US,
		                                                   .readings = 9 }),
			0);
		uint32_t device = plumb_builder_device(
			m->builder,
			&(struct plumb_device){
				.name = PLUMB_NONE, .uuid = PLUMB_NONE, .ordinal = i, .rank = i });

		for (int s = 0; s < 2; s++)
			m->stream[i][s] = plumb_builder_track(
				m->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
			                                           .process = process,
			                                           .device = device,
			                                           .name = PLUMB_NONE,
			                                           .tid = PLUMB_UNKNOWN,
			                                           .stream = 20 + s,
			                                           .gpu_context = 1 });
	}
}

static void
begin(struct made *m)
{
	begin_on(m, 1, 0);
}

/* A kernel of NCCL under its operation, from START to END µs. */
static void
kernel(struct made *m, int rank, int stream, const char *operation, int64_t start, int64_t end)
{
	struct plumb_builder *b = m->builder;
	char name[64];

	snprintf(name, sizeof name, "ncclDevKernel_%s", operation);
	uint32_t outer = plumb_builder_context(b, 0,
	                                       plumb_builder_frame(b, PLUMB_FRAME_COLLECTIVE,
	                                                           plumb_builder_text(b, operation),
	                                                           PLUMB_NONE, 0),
	                                       0);
	uint32_t context = plumb_builder_context(b, outer,
	                                         plumb_builder_frame(b, PLUMB_FRAME_KERNEL,
	                                                             plumb_builder_text(b, name),
	                                                             PLUMB_NONE, 0),
	                                         0);
	assert_int_equal(
		plumb_builder_span(b, &(struct plumb_span){ .context = context,
	                                                    .track = m->stream[rank][stream],
	                                                    .start_ns = start * US,
	                                                    .end_ns = end * US }),
		0);
}

/* What the recording says of the kernel of RANK that begins at START µs. */
static void
says(struct made *m, int rank, int stream, int64_t start, const char *group, const char *ranks,
     int64_t size, int64_t sequence)
{
	assert_int_equal(plumb_builder_collective(
				 m->builder,
				 &(struct plumb_collective){ m->stream[rank][stream],
	                                                     plumb_builder_text(m->builder, group),
	                                                     plumb_builder_text(m->builder, ranks),
	                                                     start * US, size, sequence }),
	                 0);
}

static void
find(struct made *m)
{
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_builder_finish(m->builder, &m->profile, &error), 0);
	plumb_builder_free(m->builder);
	assert_int_equal(plumb_collectives_find(&m->profile, &m->found), 0);
}

/* How many sets of SIZE there are by that rule. */
static int
sets(const struct made *m, uint32_t by, uint32_t size)
{
	int count = 0;

	for (uint32_t i = 0; i < m->found.sets.count; i++)
		count += m->found.sets.items[i].by == by && m->found.sets.items[i].count == size;
	return count;
}

static void
end(struct made *m)
{
	plumb_collectives_free(&m->found);
	plumb_profile_free(&m->profile);
}

static void
test_numbers_need_no_clock(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	/* Rank 1 is a second ahead, and the recording of rank 0 begins one operation later. */
	for (int i = 0; i < 5; i++)
		for (int r = 0; r < 2; r++) {
			int64_t at = 1000 * i + 1000000 * r;

			if (i || r) {
				kernel(&m, r, 0, "AllReduce", at, at + 100);
				says(&m, r, 0, at, "tp", "[0, 1]", 2, i);
			}
		}
	find(&m);
	assert_int_equal(m.found.sets.count, 4);
	assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_SEQUENCE, 2), 4);
	for (uint32_t i = 0; i < m.found.sets.count; i++) {
		const struct plumb_collective_member *x =
			&m.found.members.items[m.found.sets.items[i].first];

		assert_int_equal(x[1].start_ns - x[0].start_ns, 1000000 * US);
		assert_ptr_equal(plumb_collectives_of(&m.found, x->span), &m.found.sets.items[i]);
	}
	end(&m);
}

/* An operation of two kernels, in groups of one name whose ranks tell them apart, or only their
 * sizes do. */
static void
test_kernels_of_one_number(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct made m;

		begin(&m);
		for (int r = 0; r < 4; r++)
			for (int k = 0; k < 2; k++) {
				kernel(&m, r, 0, "AllGather", 1000 * k, 1000 * k + 100);
				says(&m, r, 0, 1000 * k, "tp",
				     named ? r < 2 ? "[0, 1]" : "[2, 3]" : "[0, 1, 2, 3]",
				     named ? 2 : 4, 7);
			}
		find(&m);
		assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_SEQUENCE, named ? 2 : 4),
		                 named ? 4 : 2);
		assert_int_equal(m.found.sets.count, named ? 4 : 2);
		end(&m);
	}
}

/* Numbers of SendRecv are each pair's own in a larger group: there ends tell. */
static void
test_pairs_within_a_group(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	for (int r = 0; r < 4; r++) {
		int64_t at = r < 2 ? 0 : 500;

		kernel(&m, r, 0, "SendRecv", at, at + 100);
		says(&m, r, 0, at, "pp", "[0, 1, 2, 3]", 4, 1);
	}
	find(&m);
	assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_GROUP, 2), 2);
	assert_int_equal(m.found.sets.count, 2);
	end(&m);
}

/* A known group's operations come one after another: their ends may lie apart as clocks do. No more
 * are one than it has ranks. */
static void
test_ends_of_a_group(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	for (int r = 0; r < 4; r++) {
		kernel(&m, r, 0, "AllReduce", 0, 100 + 20 * (r % 2) + r / 2);
		says(&m, r, 0, 0, "dp", NULL, 2, PLUMB_UNKNOWN);
	}
	for (int r = 0; r < 2; r++)
		kernel(&m, r, 1, "AllReduce", 1000,
		       1100 + 60 * r); /* too far apart without a group */
	find(&m);
	assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_GROUP, 2), 2);
	assert_int_equal(m.found.sets.count, 2);
	end(&m);
}

/* Two pairs, each on a stream of its own: one is at times as early as the other. On one stream
 * names alone are left. */
static void
test_streams_of_pairs(void **state)
{
	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		struct made m;

		begin(&m);
		for (int i = 0; i < 20; i++)
			for (int r = 0; r < 4; r++) {
				int64_t at = 1000 * i + (r < 2 ? 0 : i % 5 * 10 * apart);

				kernel(&m, r, 0, "AllReduce", at, at + 100);
			}
		find(&m);
		assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_STREAM, apart ? 2 : 4),
		                 apart ? 40 : 20);
		assert_int_equal(m.found.sets.count, apart ? 40 : 20);
		end(&m);
	}
}

/* A stream that two groups share ends with each half of the time: then it is the name that
 * tells. */
static void
test_a_stream_of_two_groups(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	for (int i = 0; i < 20; i++) {
		int other = i % 2 ? 1 : 2;

		kernel(&m, 0, 0, "AllReduce", 1000 * i, 1000 * i + 100);
		kernel(&m, other, 0, "AllReduce", 1000 * i + 5, 1000 * i + 101);
	}
	find(&m);
	assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_NAME, 2), 20);
	assert_int_equal(m.found.sets.count, 20);
	end(&m);
}

/* A file may number all operations alike. */
static void
test_very_many_of_one_number(void **state)
{
	enum { MANY = 200000 };
	struct made m;

	(void)state;
	begin(&m);
	for (int k = 0; k < MANY; k++)
		for (int r = 0; r < 2 && k + r < MANY; r++) {
			kernel(&m, r, 0, "AllReduce", 10 * k, 10 * k + 5);
			says(&m, r, 0, 10 * k, "tp", "[0, 1]", 2, 7);
		}
	alarm(60); /* a step for each two of them takes longer */
	find(&m);
	alarm(0);
	assert_int_equal(m.found.sets.count, MANY - 1);
	assert_int_equal(sets(&m, PLUMB_COLLECTIVES_BY_SEQUENCE, 2), MANY - 1);
	end(&m);
}

static void
test_one_rank_has_none(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	kernel(&m, 0, 0, "AllReduce", 0, 100);
	kernel(&m, 0, 1, "AllReduce", 0, 100);
	find(&m);
	assert_int_equal(m.found.sets.count, 0);
	assert_null(plumb_collectives_of(&m.found, 0));
	assert_null(plumb_collectives_member(&m.found, PLUMB_NONE));
	end(&m);
}

/* Ends are 100 µs apart. A quarter of the shorter kernel is 25 µs. Both clocks may be off. */
static void
test_clocks_of_hosts(void **state)
{
	static const struct {
		int hosts, residual, found;
	} cases[] = { { 2, 0, 0 }, { 2, 30, 0 }, { 2, 40, 1 }, { 1, 40, 0 } };
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_on(&m, cases[i].hosts, cases[i].residual);
		kernel(&m, 0, 0, "AllReduce", 1000, 1100);
		kernel(&m, 1, 0, "AllReduce", 1090, 1200);
		find(&m);
		assert_int_equal(m.found.sets.count, cases[i].found);
		end(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_need_no_clock),
		cmocka_unit_test(test_clocks_of_hosts),
		cmocka_unit_test(test_kernels_of_one_number),
		cmocka_unit_test(test_pairs_within_a_group),
		cmocka_unit_test(test_ends_of_a_group),
		cmocka_unit_test(test_streams_of_pairs),
		cmocka_unit_test(test_a_stream_of_two_groups),
		cmocka_unit_test(test_very_many_of_one_number),
		cmocka_unit_test(test_one_rank_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
