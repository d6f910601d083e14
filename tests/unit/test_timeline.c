/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of the viewer: exact rows of small profiles, and random ones against all spans. */
#include <inttypes.h>
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

#define BEGAN 1000 /* the start of the run */

struct made {
	struct plumb_builder *b;
	uint32_t process, device, threads[2], streams[2];
};

static struct made
begin(void)
{
	struct made m = { .b = plumb_builder_new() };

	plumb_builder_run(m.b)->start_ns = BEGAN;
	m.process = plumb_builder_process(
		m.b, &(struct plumb_process){
			     .pid = 42, .rank = 3, .host = PLUMB_NONE, .command = PLUMB_NONE });
	m.device = plumb_builder_device(
		m.b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	for (int i = 0; i < 2; i++) {
		m.streams[i] =
			plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                                        .process = m.process,
		                                                        .device = m.device,
		                                                        .name = PLUMB_NONE,
		                                                        .stream = 7 + i });
		m.threads[i] = plumb_builder_track(
			m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
		                                    .process = m.process,
		                                    .device = PLUMB_NONE,
		                                    .name = plumb_builder_text(m.b, "worker"),
		                                    .tid = 100 + i });
	}
	return m;
}

static uint32_t
context(struct made *m, uint32_t kind, const char *name)
{
	return plumb_builder_context(
		m->b, 0,
		plumb_builder_frame(m->b, kind, plumb_builder_text(m->b, name), PLUMB_NONE, 0), 0);
}

/* Times count from the start of the run. */
static void
span(struct made *m, uint32_t track, uint32_t kind, const char *name, int64_t start, int64_t stop,
     uint64_t call)
{
	struct plumb_span s = { .context = context(m, kind, name),
		                .track = track,
		                .start_ns = BEGAN + start,
		                .end_ns = BEGAN + stop,
		                .correlation = call };

	assert_int_equal(plumb_builder_span(m->b, &s), 0);
}

static void
end(struct made *m, struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };

	if (plumb_builder_finish(m->b, profile, &error) < 0)
		fail_msg("%s", error.message);
	plumb_builder_free(m->b);
}

/* The rows of an answer, with commas; unknown is "?". */
static char *
show(const struct plumb_profile *profile, enum plumb_lanes_table table,
     const struct plumb_lanes_range *range)
{
	struct plumb_error error = { 0 };
	struct plumb_lanes *lanes = plumb_lanes_make(profile, &error);
	struct plumb_answer a;
	char *text = NULL, buffer[PLUMB_VIEW_CELL_SIZE];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!lanes || plumb_lanes_answer(lanes, table, range, &a, &error) < 0)
		fail_msg("%s", error.message);
	for (uint32_t r = 0; r < a.row_count; r++)
		for (uint32_t c = 0; c < a.column_count; c++) {
			const struct plumb_answer_cell *cell = plumb_answer_at(&a, r, c);
			bool known = cell->type != PLUMB_ANSWER_UNKNOWN;
			fprintf(out, "%s%s", known ? plumb_view_cell_text(cell, 0, buffer) : "?",
			        c + 1 < a.column_count ? "," : "\n");
		}
	plumb_answer_free(&a);
	plumb_lanes_free(lanes);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
check(const struct plumb_profile *profile, enum plumb_lanes_table table,
      const struct plumb_lanes_range *range, const char *expected)
{
	char *text = show(profile, table, range);

	assert_string_equal(text, expected);
	free(text);
}

/*
 *	thread   op 0–100 { launch 10–20 (1), launch 30–40 (2) }   op 100–130
 *	stream   kernel 50–70 (1), kernel 60–90 (2): they overlap
 */
static void
make_small(struct plumb_profile *p)
{
	struct made m = begin();

	span(&m, m.threads[0], PLUMB_FRAME_OPERATOR, "op", 0, 100, 0);
	span(&m, m.threads[0], PLUMB_FRAME_GPU_API, "launch", 10, 20, 1);
	span(&m, m.threads[0], PLUMB_FRAME_GPU_API, "launch", 30, 40, 2);
	span(&m, m.threads[0], PLUMB_FRAME_OPERATOR, "op", 100, 130, 0);
	span(&m, m.streams[0], PLUMB_FRAME_KERNEL, "mm", 50, 70, 1);
	span(&m, m.streams[0], PLUMB_FRAME_KERNEL, "add", 60, 90, 2);
	plumb_builder_work(m.b,
	                   &(struct plumb_work_item){ context(&m, PLUMB_FRAME_KERNEL, "mm"),
	                                              m.streams[1], BEGAN + 200, BEGAN + 210 });
	/* Of a stream with spans, the newest work is there already. */
	plumb_builder_work(m.b, &(struct plumb_work_item){ context(&m, PLUMB_FRAME_KERNEL, "add"),
	                                                   m.streams[0], BEGAN + 60, BEGAN + 90 });
	end(&m, p);
}

static void
test_small(void **state)
{
	struct plumb_profile p;
	uint32_t thread = 1, both[] = { 0, 1 };

	(void)state;
	make_small(&p);
	check(&p, PLUMB_LANES_TRACKS, &(struct plumb_lanes_range){ 0 },
	      "1,3,42,thread,thread 100 (worker),2,0,130,4,spans,?,?,?\n"
	      "0,3,42,stream,stream 7 on device 0,2,50,90,2,spans,?,?,?\n"
	      "2,3,42,stream,stream 8 on device 0,1,200,210,1,newest,?,?,?\n");
	check(&p, PLUMB_LANES_SPANS, &(struct plumb_lanes_range){ 0 },
	      "1,0,0,100,op,2,1,1,2\n"
	      "1,0,100,130,op,2,1,1,5\n"
	      "1,1,10,20,launch,5,1,2,3\n"
	      "1,1,30,40,launch,5,1,2,4\n"
	      "0,0,50,70,mm,4,1,4,0\n"
	      "0,1,60,90,add,4,1,3,1\n"
	      "2,0,200,210,mm,4,1,4,7\n");
	check(&p, PLUMB_LANES_SPANS,
	      &(struct plumb_lanes_range){
		      .tracks = &thread, .track_count = 1, .t0 = 25, .t1 = 35 },
	      "1,0,0,100,op,2,1,1,2\n"
	      "1,1,30,40,launch,5,1,2,4\n");
	/* A pixel is 65 ns. */
	check(&p, PLUMB_LANES_SPANS,
	      &(struct plumb_lanes_range){
		      .tracks = &thread, .track_count = 1, .t1 = 130, .px = 2 },
	      "1,0,0,100,op,2,1,1,2\n"
	      "1,0,100,130,op,2,1,1,5\n"
	      "1,1,10,40,launch,5,2,2,?\n");
	check(&p, PLUMB_LANES_ARROWS, &(struct plumb_lanes_range){ 0 },
	      "1,10,0,50,0\n1,30,0,60,1\n");
	check(&p, PLUMB_LANES_ARROWS,
	      &(struct plumb_lanes_range){ .tracks = both, .track_count = 1 }, "");
	check(&p, PLUMB_LANES_ARROWS,
	      &(struct plumb_lanes_range){ .tracks = both, .track_count = 2, .t0 = 75, .t1 = 80 },
	      "1,30,0,60,1\n");
	plumb_profile_free(&p);
}

static void
test_sums(void **state)
{
	struct plumb_profile p;

	(void)state;
	make_small(&p);
	check(&p, PLUMB_LANES_SUM, &(struct plumb_lanes_range){ 0 },
	      "op,2,2,130,?\nmm,4,2,30,?\nadd,4,1,30,?\nlaunch,5,2,20,?\n");
	/* 15 to 65: op in part, launches of 5 and 10, kernels of 15 and 5. */
	check(&p, PLUMB_LANES_SUM,
	      &(struct plumb_lanes_range){ .t0 = 15, .t1 = 65, .by_track = true },
	      "op,2,1,50,1\nlaunch,5,2,15,1\nmm,4,1,15,0\nadd,4,1,5,0\n");
	check(&p, PLUMB_LANES_SUM, &(struct plumb_lanes_range){ .t0 = 62, .t1 = 64, .top = 1 },
	      "op,2,1,2,?\n");
	plumb_profile_free(&p);
}

/* Samples are spans of their own lane. Neighbours are joined, but not over a time in which the
 * thread did not compute. */
static void
test_samples(void **state)
{
	static const struct {
		int64_t at, ns;
		bool deep;
	} samples[] = {
		{ 1000, 400, true }, { 1400, 399, true }, { 1800, 402, false },
		{ 2200, 400, true }, { 4000, 400, true }, { 4300, 100, false },
		{ 4400, 0, false },
	};
	struct made m = begin();
	struct plumb_profile p;
	uint32_t lane = 5, thread = 1, both[] = { 1, 5 };

	(void)state;
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		struct plumb_cpu_sample s = { .track = m.threads[0] };

		s.at_ns = BEGAN + samples[i].at;
		s.ns = samples[i].ns;
		s.context = context(&m, PLUMB_FRAME_PYTHON, "a");
		if (samples[i].deep)
			s.context = plumb_builder_context(
				m.b, s.context,
				plumb_builder_frame(m.b, PLUMB_FRAME_PYTHON,
			                            plumb_builder_text(m.b, "b"), PLUMB_NONE, 0),
				0);
		assert_int_equal(plumb_builder_cpu_sample(m.b, &s), 0);
	}
	span(&m, m.threads[0], PLUMB_FRAME_OPERATOR, "op", 900, 950, 0);
	end(&m, &p);
	check(&p, PLUMB_LANES_TRACKS, &(struct plumb_lanes_range){ 0 },
	      "1,3,42,thread,thread 100 (worker),1,900,950,1,spans,?,?,?\n"
	      "5,3,42,samples,samples of thread 100 (worker),2,600,4400,7,samples,?,?,?\n");
	check(&p, PLUMB_LANES_SPANS,
	      &(struct plumb_lanes_range){ .tracks = &lane, .track_count = 1 },
	      "5,0,600,2200,a,0,1,1,1\n"
	      "5,0,3600,4000,a,0,1,1,4\n"
	      "5,0,4200,4300,a,0,1,1,6\n"
	      "5,0,4400,4400,a,0,1,1,7\n"
	      "5,1,600,1400,b,0,1,2,2\n"
	      "5,1,1800,2200,b,0,1,2,3\n"
	      "5,1,3600,4000,b,0,1,2,5\n");
	/* Sums are of spans. Samples count alone. */
	check(&p, PLUMB_LANES_SUM, &(struct plumb_lanes_range){ 0 }, "op,2,1,50,?\n");
	check(&p, PLUMB_LANES_SUM, &(struct plumb_lanes_range){ .tracks = both, .track_count = 2 },
	      "op,2,1,50,?\n");
	check(&p, PLUMB_LANES_SUM,
	      &(struct plumb_lanes_range){ .tracks = &thread, .track_count = 1 }, "op,2,1,50,?\n");
	check(&p, PLUMB_LANES_SUM, &(struct plumb_lanes_range){ .tracks = &lane, .track_count = 1 },
	      "a,0,4,2100,?\nb,0,3,1600,?\n");
	plumb_profile_free(&p);
}

/* Two hosts, whose clocks are an hour apart: the kernels began at the same time of day. */
static void
test_hosts(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		struct made m = begin();
		const int64_t apart = INT64_C(3600000000000);
		struct plumb_profile p;
		struct plumb_error error;
		struct plumb_lanes *lanes;
		uint32_t other = plumb_builder_process(
			m.b, &(struct plumb_process){ .pid = 43,
		                                      .rank = 4,
		                                      .host = plumb_builder_text(m.b, "host2"),
		                                      .command = PLUMB_NONE });
		uint32_t stream =
			plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                                        .process = other,
		                                                        .device = m.device,
		                                                        .name = PLUMB_NONE,
		                                                        .stream = 9 });

		/* monotonic = time of day + offset */
		plumb_builder_clock(m.b, &(struct plumb_clock){ .process = m.process,
		                                                .device = PLUMB_NONE,
		                                                .offset_ns = -apart });
		if (known)
			plumb_builder_clock(m.b, &(struct plumb_clock){ .process = other,
			                                                .device = PLUMB_NONE,
			                                                .offset_ns = -2 * apart });
		span(&m, m.threads[0], PLUMB_FRAME_GPU_API, "launch", 2000, 2100, 1);
		span(&m, m.streams[0], PLUMB_FRAME_KERNEL, "mm", 2200, 2300, 1);
		span(&m, stream, PLUMB_FRAME_KERNEL, "mm", 2200 - apart, 2300 - apart, 0);
		end(&m, &p);
		lanes = plumb_lanes_make(&p, &error);
		assert_int_equal(lanes != NULL, known);
		if (!known)
			assert_int_equal(error.code, PLUMB_EINPUT);
		plumb_lanes_free(lanes);
		if (known) {
			check(&p, PLUMB_LANES_ARROWS, &(struct plumb_lanes_range){ 0 },
			      "1,0,0,200,0\n");
			check(&p, PLUMB_LANES_SUM,
			      &(struct plumb_lanes_range){ .t0 = 250, .t1 = 1000 },
			      "mm,4,2,100,?\n");
		}
		plumb_profile_free(&p);
	}
}

/* What is found apart gives the same answers as what an answer finds. */
static void
check_parts(const struct plumb_profile *p)
{
	static const enum plumb_lanes_table tables[] = { PLUMB_LANES_SUM, PLUMB_LANES_BANDS };
	struct plumb_lanes_range range = { 0 };
	struct plumb_error error;

	for (int part = 0; part < PLUMB_LANES_PARTS; part++) {
		struct plumb_lanes *lanes[2];
		struct plumb_answer answers[2];

		for (int i = 0; i < 2; i++) {
			lanes[i] = plumb_lanes_make(p, &error);
			assert_non_null(lanes[i]);
			assert_int_equal(plumb_lanes_lacks(lanes[i], tables[part]), part);
			assert_int_equal(plumb_lanes_lacks(lanes[i], PLUMB_LANES_SPANS),
			                 PLUMB_LANES_PARTS);
			if (i)
				plumb_lanes_give(lanes[i], plumb_lanes_find(lanes[i], part));
			if (i)
				assert_int_equal(plumb_lanes_lacks(lanes[i], tables[part]),
				                 PLUMB_LANES_PARTS);
			assert_int_equal(plumb_lanes_answer(lanes[i], tables[part], &range,
			                                    &answers[i], &error),
			                 0);
			assert_int_equal(plumb_lanes_lacks(lanes[i], tables[part]),
			                 PLUMB_LANES_PARTS);
		}
		assert_int_equal(answers[0].row_count, answers[1].row_count);
		assert_true(answers[0].row_count > 0);
		/* What is there stays. */
		plumb_lanes_give(lanes[0], plumb_lanes_find(lanes[0], part));
		for (int i = 0; i < 2; i++) {
			plumb_answer_free(&answers[i]);
			plumb_lanes_free(lanes[i]);
		}
	}
}

/* Three kernels follow each other, twenty times. */
static void
test_bands(void **state)
{
	static const char *const names[] = { "copy", "multiply", "add" };
	struct made m = begin();
	struct plumb_profile p;
	char *text;
	int lines = 0;

	(void)state;
	for (int i = 0; i < 60; i++)
		span(&m, m.streams[0], PLUMB_FRAME_KERNEL, names[i % 3], 1000 * i + 500 * (i / 3),
		     1000 * i + 500 * (i / 3) + 900, 0);
	end(&m, &p);
	text = show(&p, PLUMB_LANES_BANDS, &(struct plumb_lanes_range){ 0 });
	assert_non_null(strstr(text, "0,1,0,0,0,2900,1\n0,1,0,1,3500,6400,1\n"));
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, 20);
	free(text);
	check(&p, PLUMB_LANES_BANDS, &(struct plumb_lanes_range){ .t0 = 6500, .t1 = 14000 },
	      "0,1,0,2,7000,9900,1\n0,1,0,3,10500,13400,1\n");
	check_parts(&p);
	/* A pixel is 14 us. */
	check(&p, PLUMB_LANES_BANDS, &(struct plumb_lanes_range){ .t1 = 70000, .px = 5 },
	      "0,1,0,0,0,13400,4\n0,1,0,4,14000,27400,4\n0,1,0,8,28000,41400,4\n"
	      "0,1,0,12,42000,55400,4\n0,1,0,16,56000,69400,4\n");
	plumb_profile_free(&p);
}

static void
test_queries(void **state)
{
	uint32_t none = 99;
	const struct plumb_lanes_range bad[] = {
		{ .tracks = &none, .track_count = 1 },
		{ .t0 = 10, .t1 = 5 },
		{ .px = -1 },
	};
	struct plumb_profile p, empty;
	struct made m = begin();
	struct plumb_error error;

	(void)state;
	make_small(&p);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct plumb_timeline_query query = { PLUMB_LANES_SPANS, bad[i] };

		assert_int_equal(plumb_view_timeline(&p, &query, PLUMB_VIEW_CSV, stderr, &error),
		                 PLUMB_EUSAGE);
		assert_true(error.message[0]);
	}
	end(&m, &empty);
	for (int table = 0; table < PLUMB_LANES_TABLES; table++)
		check(&empty, (enum plumb_lanes_table)table, &(struct plumb_lanes_range){ .px = 5 },
		      "");
	plumb_profile_free(&empty);
	plumb_profile_free(&p);
}

/* ---- random spans ---- */

static void
make_random(struct plumb_profile *p, uint32_t *count)
{
	struct made m = begin();
	char name[8];

	*count = 1 + (uint32_t)rand() % 200;
	for (uint32_t i = 0; i < *count; i++) {
		int64_t start = rand() % 1000, length = rand() % 3 ? rand() % 10 : rand() % 400;

		snprintf(name, sizeof name, "n%d", rand() % 5);
		span(&m, rand() % 2 ? m.threads[0] : m.streams[rand() % 2], PLUMB_FRAME_OPERATOR,
		     name, start, start + length, 0);
	}
	end(&m, p);
}

/* In a row, spans do not overlap; each of the range is in one box. */
static void
check_spans(const struct plumb_profile *p, struct plumb_lanes *lanes,
            const struct plumb_lanes_range *range)
{
	struct plumb_answer a;
	struct plumb_error error;
	int64_t many = 0,
		pixel = range->px > 0 ? (int64_t)((double)(range->t1 - range->t0) / range->px) : 0;
	uint32_t expected = 0;

	assert_int_equal(plumb_lanes_answer(lanes, PLUMB_LANES_SPANS, range, &a, &error), 0);
	for (uint32_t r = 0; r < a.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&a, r, 0), *d = c - 9;

		if (r && c[0].integer == d[0].integer && c[1].integer == d[1].integer)
			assert_true(d[3].integer <= c[2].integer);
		assert_true(c[6].integer == 1 || c[3].integer - c[2].integer <= pixel);
		/* A box may go on after the range. */
		if (c[3].integer < range->t1)
			many += c[6].integer;
		if (c[6].integer == 1) {
			const struct plumb_span *s = &p->spans[c[8].integer];
			assert_int_equal(s->track, c[0].integer);
			assert_int_equal(s->start_ns - BEGAN, c[2].integer);
			assert_int_equal(s->end_ns - BEGAN, c[3].integer);
		}
	}
	for (uint32_t i = 0; i < p->spans_count; i++)
		expected += p->spans[i].end_ns - BEGAN >= range->t0 &&
		            p->spans[i].end_ns - BEGAN < range->t1;
	/* What a box holds that goes on may end before. */
	assert_true(range->px > 0 ? many <= expected : many == expected);
	plumb_answer_free(&a);
}

static void
check_sums(const struct plumb_profile *p, struct plumb_lanes *lanes,
           const struct plumb_lanes_range *range)
{
	struct plumb_answer a;
	struct plumb_error error;
	int64_t whole = 0, count = 0;

	assert_int_equal(plumb_lanes_answer(lanes, PLUMB_LANES_SUM, range, &a, &error), 0);
	for (uint32_t r = 0; r < a.row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(&a, r, 0);
		int64_t sum = 0;

		for (uint32_t i = 0; i < p->spans_count; i++) {
			const struct plumb_span *s = &p->spans[i];
			int64_t from = s->start_ns - BEGAN, to = s->end_ns - BEGAN;

			if (strcmp(plumb_frame_label(p, p->contexts[s->context].frame), c[0].text))
				continue;
			from = from > range->t0 ? from : range->t0;
			to = to < range->t1 ? to : range->t1;
			sum += to > from ? to - from : 0;
		}
		assert_int_equal(c[3].integer, sum);
		assert_true(r == 0 || plumb_answer_at(&a, r - 1, 3)->integer >= sum);
		whole += c[2].integer;
	}
	for (uint32_t i = 0; i < p->spans_count; i++) {
		int64_t from = p->spans[i].start_ns - BEGAN, to = p->spans[i].end_ns - BEGAN;

		count += (from >= range->t0 && from < range->t1) ||
		         (from < range->t0 && to > range->t0 && range->t0 < range->t1);
	}
	assert_int_equal(whole, count);
	plumb_answer_free(&a);
}

static void
test_random(void **state)
{
	static const double widths[] = { 0, 0.1, 1, 7, 50, 1e12 };

	(void)state;
	srand(5);
	for (int i = 0; i < 500; i++) {
		struct plumb_profile p;
		struct plumb_error error;
		uint32_t count;

		make_random(&p, &count);
		struct plumb_lanes *lanes = plumb_lanes_make(&p, &error);
		assert_non_null(lanes);
		assert_int_equal(plumb_lanes_count(lanes), count);
		for (int k = 0; k < 6; k++) {
			struct plumb_lanes_range range = { .t0 = rand() % 1200 - 100,
				                           .px = widths[rand() % 6] };
			range.t1 = (range.t0 > 0 ? range.t0 : 0) + 1 + rand() % 700;
			check_spans(&p, lanes, &range);
			check_sums(&p, lanes, &range);
		}
		plumb_lanes_free(lanes);
		plumb_profile_free(&p);
	}
}

static void
bin(struct made *m, const char *metric, int64_t start, int64_t sampled, double mean)
{
	struct plumb_counter_series_bin b = { .device = m->device,
		                              .process = m->process,
		                              .metric = plumb_builder_text(m->b, metric),
		                              .unit = plumb_builder_text(m->b, "ppm"),
		                              .start_ns = BEGAN + start,
		                              .width_ns = 10,
		                              .samples = 1,
		                              .sampled_ns = sampled,
		                              .min = mean - 1,
		                              .mean = mean,
		                              .max = mean + 2 };

	assert_int_equal(plumb_builder_counter_series(m->b, &b), 0);
}

/*
 *	thread   op 0–100
 *	stream   kernel 50–70
 *	a        0–10: 100, 10–20: 250 (half of it), nothing, 40–50: 50
 *	b        0–10: 7
 */
static void
make_counters(struct plumb_profile *p, bool spans)
{
	struct made m = begin();

	if (spans) {
		span(&m, m.threads[0], PLUMB_FRAME_OPERATOR, "op", 0, 100, 0);
		span(&m, m.streams[0], PLUMB_FRAME_KERNEL, "mm", 50, 70, 1);
	}
	bin(&m, "a", 0, 10, 100);
	bin(&m, "a", 10, 5, 250);
	bin(&m, "a", 40, 10, 50);
	bin(&m, "b", 0, 10, 7);
	end(&m, p);
}

static void
test_counters(void **state)
{
	struct plumb_profile p;
	uint32_t a = 8, b = 9;

	(void)state;
	make_counters(&p, true);
	check(&p, PLUMB_LANES_TRACKS, &(struct plumb_lanes_range){ 0 },
	      "1,3,42,thread,thread 100 (worker),1,0,100,1,spans,?,?,?\n"
	      "0,3,42,stream,stream 7 on device 0,1,50,70,1,spans,?,?,?\n"
	      "8,3,42,counter,a on device 0,1,0,50,?,counters,a,ppm,0\n"
	      "9,3,42,counter,b on device 0,1,0,10,?,counters,b,ppm,0\n");
	check(&p, PLUMB_LANES_COUNTERS, &(struct plumb_lanes_range){ 0 },
	      "8,0,10,100,99,102,10,1\n"
	      "8,10,20,250,249,252,5,1\n"
	      "8,40,50,50,49,52,10,1\n"
	      "9,0,10,7,6,9,10,1\n");
	/* A pixel of 25: the first two are one, by the time that their samples cover. A gap that
	 * is wider than a pixel stays. */
	check(&p, PLUMB_LANES_COUNTERS,
	      &(struct plumb_lanes_range){ .tracks = &a, .track_count = 1, .t1 = 100, .px = 4 },
	      "8,0,20,150,99,252,15,2\n"
	      "8,40,50,50,49,52,10,1\n");
	check(&p, PLUMB_LANES_COUNTERS, &(struct plumb_lanes_range){ .t0 = 12, .t1 = 40 },
	      "8,10,20,250,249,252,5,1\n");
	check(&p, PLUMB_LANES_COUNTERS,
	      &(struct plumb_lanes_range){ .tracks = &b, .track_count = 1 }, "9,0,10,7,6,9,10,1\n");
	check(&p, PLUMB_LANES_SPANS, &(struct plumb_lanes_range){ .tracks = &a, .track_count = 1 },
	      "");
	plumb_profile_free(&p);
	/* Without spans they are there, too. */
	make_counters(&p, false);
	check(&p, PLUMB_LANES_TRACKS, &(struct plumb_lanes_range){ 0 },
	      "8,3,42,counter,a on device 0,1,0,50,?,counters,a,ppm,0\n"
	      "9,3,42,counter,b on device 0,1,0,10,?,counters,b,ppm,0\n");
	check(&p, PLUMB_LANES_BANDS, &(struct plumb_lanes_range){ 0 }, "");
	plumb_profile_free(&p);
}

/* Two hosts, whose clocks are an hour apart: what the other one sampled is where its spans are. */
static void
test_counters_of_hosts(void **state)
{
	const int64_t apart = INT64_C(3600000000000);

	(void)state;
	for (int known = 0; known < 2; known++) {
		struct made m = begin();
		struct plumb_profile p;
		struct plumb_error error;
		struct plumb_lanes *lanes;
		uint32_t other = plumb_builder_process(
			m.b, &(struct plumb_process){ .pid = 43,
		                                      .rank = 4,
		                                      .host = plumb_builder_text(m.b, "host2"),
		                                      .command = PLUMB_NONE });

		plumb_builder_clock(m.b, &(struct plumb_clock){ .process = m.process,
		                                                .device = PLUMB_NONE,
		                                                .offset_ns = -apart });
		if (known)
			plumb_builder_clock(m.b, &(struct plumb_clock){ .process = other,
			                                                .device = PLUMB_NONE,
			                                                .offset_ns = -2 * apart });
		span(&m, m.streams[0], PLUMB_FRAME_KERNEL, "mm", 2200, 2300, 1);
		m.process = other;
		bin(&m, "a", 2220 - apart, 10, 5);
		end(&m, &p);
		lanes = plumb_lanes_make(&p, &error);
		assert_int_equal(lanes != NULL, known);
		if (!known)
			assert_int_equal(error.code, PLUMB_EINPUT);
		plumb_lanes_free(lanes);
		if (known)
			check(&p, PLUMB_LANES_COUNTERS, &(struct plumb_lanes_range){ 0 },
			      "8,20,30,5,4,7,10,1\n");
		plumb_profile_free(&p);
	}
}

static void
check_no_memory(const struct plumb_profile *p)
{
	struct plumb_error error = { 0 };

	for (int table = 0; table < PLUMB_LANES_TABLES; table++) {
		bool reached = true;

		for (long n = 0; reached; n++) {
			struct plumb_lanes *lanes;
			struct plumb_answer a;
			int code = PLUMB_ESYSTEM;

			failing_malloc_at = n;
			lanes = plumb_lanes_make(p, &error);
			if (lanes)
				code = plumb_lanes_answer(lanes, (enum plumb_lanes_table)table,
				                          &(struct plumb_lanes_range){ 0 }, &a,
				                          &error);
			reached = failing_malloc_stop();
			assert_int_equal(code, reached ? PLUMB_ESYSTEM : 0);
			if (!code)
				plumb_answer_free(&a);
			plumb_lanes_free(lanes);
		}
	}
}

static void
test_no_memory(void **state)
{
	struct plumb_profile p;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	for (int counters = 0; counters < 2; counters++) {
		if (counters)
			make_counters(&p, true);
		else
			make_small(&p);
		check_no_memory(&p);
		plumb_profile_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),    cmocka_unit_test(test_sums),
		cmocka_unit_test(test_samples),  cmocka_unit_test(test_bands),
		cmocka_unit_test(test_hosts),    cmocka_unit_test(test_queries),
		cmocka_unit_test(test_random),   cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_counters), cmocka_unit_test(test_counters_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
