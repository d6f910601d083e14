/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks side by side: their parts, steps and waits, against numbers that are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failing_malloc.h"
#include "model/builder.h"
#include "view/rank_rows.h"
#include "view/view.h"

#define US INT64_C(1000)
#define STEPS 20
#define PERIOD 2000 /* µs */

struct made {
	struct plumb_builder *b;
	uint32_t thread[2], stream[2][2]; /* by rank */
};

static struct made
begin(uint32_t ranks, bool gpu)
{
	struct made m = { .b = plumb_builder_new() };

	for (uint32_t i = 0; i < ranks; i++) {
		/* The second rank comes first in the profile. */
		uint32_t rank = ranks - 1 - i;
		uint32_t process = plumb_builder_process(
			m.b, &(struct plumb_process){ .pid = 40 + rank,
		                                      .rank = rank,
		                                      .host = plumb_builder_text(m.b, "a"),
		                                      .command = PLUMB_NONE });
		uint32_t device =
			!gpu ? PLUMB_NONE
			     : plumb_builder_device(m.b, &(struct plumb_device){ .name = PLUMB_NONE,
		                                                                 .uuid = PLUMB_NONE,
		                                                                 .ordinal = rank,
		                                                                 .rank = rank });

		m.thread[rank] =
			plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
		                                                        .process = process,
		                                                        .device = PLUMB_NONE,
		                                                        .name = PLUMB_NONE,
		                                                        .tid = 7 });
		for (int s = 0; gpu && s < 2; s++)
			m.stream[rank][s] = plumb_builder_track(
				m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
			                                    .process = process,
			                                    .device = device,
			                                    .name = PLUMB_NONE,
			                                    .tid = PLUMB_UNKNOWN,
			                                    .stream = 20 + s,
			                                    .gpu_context = 1 });
	}
	return m;
}

static void
span(struct made *m, uint32_t track, uint32_t outer, const char *name, int64_t start, int64_t end)
{
	uint32_t frame = plumb_builder_frame(m->b, PLUMB_FRAME_KERNEL,
	                                     plumb_builder_text(m->b, name), PLUMB_NONE, 0);

	plumb_builder_span(
		m->b, &(struct plumb_span){ .context = plumb_builder_context(m->b, outer, frame, 0),
	                                    .track = track,
	                                    .start_ns = start * US,
	                                    .end_ns = end * US });
}

static void
collective(struct made *m, int rank, const char *operation, int64_t start, int64_t end)
{
	uint32_t frame = plumb_builder_frame(m->b, PLUMB_FRAME_COLLECTIVE,
	                                     plumb_builder_text(m->b, operation), PLUMB_NONE, 0);
	char name[64];

	snprintf(name, sizeof name, "ncclDevKernel_%s", operation);
	span(m, m->stream[rank][1], plumb_builder_context(m->b, 0, frame, 0), name, start, end);
}

/* Rank 1 computes 300 µs longer before the operation, so rank 0 waits as long for it. 100 µs of
 * the operation are behind "add". */
static struct made
begin_steps(const char *operation)
{
	struct made m = begin(2, true);

	for (int i = 0; i < STEPS; i++)
		for (int r = 0; r < 2; r++) {
			int64_t at = (int64_t)i * PERIOD + 1000;

			span(&m, m.stream[r][0], 0, "mm", at, at + 400 + 300 * r);
			collective(&m, r, operation, at + 500 + 300 * r, at + 1000);
			span(&m, m.stream[r][0], 0, "add", at + 900, at + 1100);
		}
	return m;
}

static void
end(struct made *m, struct plumb_profile *p)
{
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_builder_finish(m->b, p, &error), 0);
	plumb_builder_free(m->b);
}

static void
make(const struct plumb_profile *p, struct plumb_rank_rows *rows)
{
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_rank_rows_make(p, rows, &error), 0);
}

static void
test_parts_steps_and_waits(void **state)
{
	struct made m = begin_steps("AllReduce");
	struct plumb_profile p;
	struct plumb_rank_rows rows;

	(void)state;
	end(&m, &p);
	assert_true(plumb_rank_rows_has(&p));
	make(&p, &rows);
	assert_int_equal(rows.of, PLUMB_RANK_ROWS_LOOP);
	assert_int_equal(rows.steps, STEPS);
	assert_int_equal(rows.to_ns - rows.from_ns, ((STEPS - 1) * PERIOD + 1100) * US);
	assert_int_equal(rows.count, 2);
	for (int r = 0; r < 2; r++) {
		const struct plumb_rank_row *row = &rows.items[r];
		const struct plumb_rank_sums *s = &row->sums;

		assert_int_equal(row->rank, r);
		assert_int_equal(row->pid, 40 + r);
		assert_int_equal(row->device, r);
		assert_int_equal(s->whole_ns, rows.to_ns - rows.from_ns);
		assert_int_equal(s->compute_ns, STEPS * (r ? 900 : 600) * US);
		assert_int_equal(s->hidden_ns, STEPS * 100 * US);
		assert_int_equal(s->collectives_ns, STEPS * (r ? 100 : 400) * US);
		assert_int_equal(s->waiting_ns, r ? 0 : STEPS * 300 * US);
		assert_int_equal(s->copies_ns, 0);
		assert_int_equal(s->whole_ns, s->compute_ns + s->collectives_ns + s->idle_ns);
		assert_int_equal(row->collectives, STEPS);
		assert_int_equal(row->steps,
		                 STEPS - 1); /* the interval before the first is unknown */
		assert_true(row->step.value == PERIOD * US);
		assert_int_equal(row->caused_ns, r ? STEPS * 300 * US : 0);
		assert_int_equal(row->times, r ? STEPS : 0);
	}
	assert_int_equal(rows.wait_count, 1);
	assert_int_equal(rows.waits[0].rank, 0);
	assert_int_equal(rows.waits[0].last, 1);
	assert_string_equal(rows.waits[0].operation, "AllReduce");
	assert_false(rows.waits[0].pair);
	assert_int_equal(rows.waits[0].times, STEPS);
	assert_int_equal(rows.waits[0].ns, STEPS * 300 * US);
	assert_int_equal(rows.waits[0].most_ns, 300 * US);
	plumb_rank_rows_free(&rows);
	plumb_profile_free(&p);
}

/* In a pipeline, ranks wait by design: it is said who waits, and nobody is late. */
static void
test_pairs_make_nobody_late(void **state)
{
	struct made m = begin_steps("SendRecv");
	struct plumb_profile p;
	struct plumb_rank_rows rows;

	(void)state;
	end(&m, &p);
	make(&p, &rows);
	assert_int_equal(rows.wait_count, 1);
	assert_true(rows.waits[0].pair);
	assert_int_equal(rows.waits[0].ns, STEPS * 300 * US);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(rows.items[r].caused_ns, 0);
		assert_int_equal(rows.items[r].times, 0);
	}
	plumb_rank_rows_free(&rows);
	plumb_profile_free(&p);
}

static void
test_without_collectives_all_work_is_compared(void **state)
{
	struct made m = begin(2, true);
	struct plumb_profile p;
	struct plumb_rank_rows rows;

	(void)state;
	span(&m, m.stream[0][0], 0, "mm", 100, 300);
	span(&m, m.stream[1][0], 0, "mm", 200, 500);
	end(&m, &p);
	make(&p, &rows);
	assert_int_equal(rows.of, PLUMB_RANK_ROWS_WORK);
	assert_int_equal(rows.steps, PLUMB_UNKNOWN);
	assert_int_equal(rows.from_ns, 100 * US);
	assert_int_equal(rows.to_ns, 500 * US);
	assert_int_equal(rows.items[0].sums.idle_ns, 200 * US);
	assert_int_equal(rows.items[1].sums.idle_ns, 100 * US);
	assert_int_equal(rows.items[0].sums.waiting_ns, PLUMB_UNKNOWN);
	assert_int_equal(rows.items[0].caused_ns, PLUMB_UNKNOWN);
	assert_int_equal(rows.wait_count, 0);
	plumb_rank_rows_free(&rows);
	plumb_profile_free(&p);
}

static char *
show(const struct plumb_profile *p, enum plumb_view_format format, uint32_t top)
{
	struct plumb_error error = { 0 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(plumb_view_ranks(p, top, format, out, &error), 0);
	fclose(out);
	return text;
}

static void
test_without_gpu_work_operators_are_known(void **state)
{
	struct made m = begin(2, false);
	struct plumb_profile p;
	char *text;

	(void)state;
	for (int r = 0; r < 2; r++)
		plumb_builder_value(m.b, &(struct plumb_value){ .context = 0,
		                                                .metric = PLUMB_METRIC_OP_TIME,
		                                                .track = m.thread[r],
		                                                .sum = 50 + r,
		                                                .count = 1,
		                                                .min = 50 + r,
		                                                .max = 50 + r,
		                                                .mean = 50 + r });
	end(&m, &p);
	text = show(&p, PLUMB_VIEW_JSON, 0);
	assert_non_null(strstr(text, "\"of\":null"));
	assert_non_null(strstr(text, "\"start_ns\":null"));
	free(text);
	text = show(&p, PLUMB_VIEW_CSV, 0);
	assert_non_null(strstr(text, "\n0,,,,,,,,,,,,0,,,,,50\n1,,,,,,,,,,,,0,,,,,51\n"));
	free(text);
	plumb_profile_free(&p);
}

static void
test_formats(void **state)
{
	struct made m = begin_steps("AllReduce");
	struct plumb_profile p;
	char *text;

	(void)state;
	end(&m, &p);
	text = show(&p, PLUMB_VIEW_CSV, 0);
	assert_string_equal(text,
	                    "rank,process,device,whole,computing,hidden,exposed,waiting,copies,"
	                    "idle,caused,late,matched,steps,step,step_low,step_high,operators\n"
	                    "0,40,0,39100000,10000000,2000000,2000000,6000000,0,19100000,0,0,20,"
	                    "19,2000000,2000000,2000000,0\n"
	                    "1,41,1,39100000,16000000,2000000,2000000,0,0,19100000,6000000,20,20,"
	                    "19,2000000,2000000,2000000,0\n");
	free(text);
	text = show(&p, PLUMB_VIEW_JSON, 0);
	assert_non_null(strstr(text, "\"of\":\"loop\""));
	assert_non_null(strstr(text, "\"waits_available\":1"));
	assert_non_null(strstr(text, "[0,40,0,1,41,1,\"AllReduce\",false,20,6000000,300000]"));
	free(text);
	plumb_profile_free(&p);
}

static void
test_one_rank_is_none(void **state)
{
	struct made m = begin(1, true);
	struct plumb_profile p;
	struct plumb_rank_rows rows;
	struct plumb_error error = { 0 };

	(void)state;
	span(&m, m.stream[0][0], 0, "mm", 100, 300);
	end(&m, &p);
	assert_false(plumb_rank_rows_has(&p));
	assert_int_equal(plumb_rank_rows_make(&p, &rows, &error), PLUMB_EEMPTY);
	assert_non_null(strstr(error.message, "one rank"));
	plumb_rank_rows_free(&rows);
	plumb_profile_free(&p);
}

static void
test_no_memory(void **state)
{
	struct made m;
	struct plumb_profile p;
	struct plumb_rank_rows rows;
	struct plumb_error error;
	bool reached = true;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	m = begin_steps("AllReduce");
	end(&m, &p);
	for (long n = 0; reached; n++) {
		int code;

		failing_malloc_at = n;
		code = plumb_rank_rows_make(&p, &rows, &error);
		reached = failing_malloc_stop();
		assert_int_equal(code, reached ? PLUMB_ESYSTEM : 0);
		plumb_rank_rows_free(&rows);
	}
	plumb_profile_free(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_steps_and_waits),
		cmocka_unit_test(test_pairs_make_nobody_late),
		cmocka_unit_test(test_without_collectives_all_work_is_compared),
		cmocka_unit_test(test_without_gpu_work_operators_are_known),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_one_rank_is_none),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
