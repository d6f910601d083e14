/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the viewer's answers take, in time of the processor, and how much memory their values
 * hold: flame graphs of 2^20 contexts, and the timeline of two million spans.
 *
 *	make BUILD=build build/tool.a
 *	gcc -std=gnu17 -O2 -D_GNU_SOURCE -Isrc bench/view.c build/tool.a -lm \
 *	  -lsqlite3 -lz -lzstd -llzma -o build/bench_view
 *	build/bench_view [CONTEXTS [SPANS [FILE]]]
 *
 * With FILE, it only writes a profile there, for a browser; of 0 CONTEXTS one whose flame graph
 * fills 40 rows with 1500 boxes each, of different names. Contexts are of three shapes: `wide`
 * nests 32 names four deep, `deep` has 1024 levels with 32 calls at each of them below 32 others,
 * and `flat` has one caller of all. An answer is of 1500 pixels: the whole, then 100 random ranges.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "base/sort.h"
#include "model/builder.h"
#include "processor_time.h"
#include "store/store.h"
#include "view/view.h"

#define ROUNDS 5
#define RANGES 100

/* The middle one of COUNT times in seconds, as milliseconds; *MOST gets the greatest. */
static double
median(const double *times, int count, double *most)
{
	int64_t sorted[RANGES];

	for (int i = 0; i < count; i++)
		sorted[i] = (int64_t)(times[i] * 1e9);
	plumb_sort_numbers(sorted, (size_t)count);
	*most = (double)sorted[count - 1] / 1e6;
	return (double)sorted[count / 2] / 1e6;
}

/* ---- contexts ---- */

struct maker {
	struct plumb_builder *b;
	uint32_t thread, streams[2], names[32];
	uint32_t made, wanted;
};

static uint32_t
add_context(struct maker *m, uint32_t parent, uint32_t frame)
{
	uint32_t context = plumb_builder_context(m->b, parent, frame, 0);
	int64_t ns = 100 + rand() % 10000;

	m->made++;
	plumb_builder_value(m->b, &(struct plumb_value){ .context = context,
	                                                 .metric = PLUMB_METRIC_OP_TIME,
	                                                 .track = m->thread,
	                                                 .sum = ns,
	                                                 .count = 1,
	                                                 .min = ns,
	                                                 .max = ns,
	                                                 .mean = (double)ns });
	return context;
}

static void
make_wide(struct maker *m)
{
	for (uint32_t i = 0, parents[5] = { 0 }; m->made < m->wanted; i++) {
		int level = 1;

		for (uint32_t rest = i; level < 4 && rest % 32 == 0 && rest; rest /= 32)
			level++;
		level = i ? 5 - level : 1;
		for (; level < 5 && m->made < m->wanted; level++)
			parents[level] = add_context(m, parents[level - 1],
			                             m->names[i >> (5 * (4 - level)) & 31]);
	}
}

static void
make_deep(struct maker *m)
{
	for (int i = 0; i < 32; i++)
		for (uint32_t depth = 0, at = add_context(m, 0, m->names[i]);
		     depth < m->wanted / 1024 && m->made < m->wanted; depth++) {
			for (int k = 0; k < 31 && m->made < m->wanted; k++)
				add_context(m, at, m->names[k]);
			at = add_context(m, at, m->names[31]);
		}
}

static void
make_flat(struct maker *m)
{
	uint32_t parent = add_context(m, 0, m->names[0]);
	char name[24];

	while (m->made < m->wanted) {
		snprintf(name, sizeof name, "call %u", m->made);
		add_context(m, parent,
		            plumb_builder_frame(m->b, PLUMB_FRAME_OPERATOR,
		                                plumb_builder_text(m->b, name), PLUMB_NONE, 0));
	}
}

static struct maker
begin(uint32_t contexts)
{
	struct maker m = { .b = plumb_builder_new(), .wanted = contexts };
	char name[24];

	srand(3);
	plumb_builder_process(m.b,
	                      &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	plumb_builder_device(m.b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	m.thread = plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                           .device = PLUMB_NONE,
	                                                           .name = PLUMB_NONE });
	for (int i = 0; i < 2; i++)
		m.streams[i] =
			plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                                        .name = PLUMB_NONE,
		                                                        .stream = i + 7 });
	for (int i = 0; i < 32; i++) {
		snprintf(name, sizeof name, "part %d", i);
		m.names[i] = plumb_builder_frame(m.b, PLUMB_FRAME_RANGE,
		                                 plumb_builder_text(m.b, name), PLUMB_NONE, 0);
	}
	return m;
}

/* ---- flame graphs ---- */

static int
measure_flame(const struct plumb_profile *p, const char *shape, struct plumb_flame_query *query)
{
	struct plumb_error error = { 0 };
	struct plumb_answer answer;
	struct plumb_flame *flame = NULL;
	double makes[ROUNDS], whole = 0, times[RANGES], most, answer_most, start;
	uint32_t rows = 0;

	for (int i = 0; i < ROUNDS; i++) {
		plumb_flame_free(flame);
		start = now();
		flame = plumb_flame_make(p, query, &error);
		makes[i] = now() - start;
		if (!flame)
			return 1;
	}
	for (int i = 0; i <= RANGES; i++) {
		struct plumb_flame_range range = { .px = 1500 };

		if (i) {
			double width = 1.0 / (1 << rand() % 12);
			range.x0 = (1 - width) * rand() / RAND_MAX;
			range.x1 = range.x0 + width;
		}
		start = now();
		if (plumb_flame_boxes(flame, &range, &answer, &error) < 0)
			return 1;
		if (i)
			times[i - 1] = now() - start;
		else
			whole = now() - start;
		rows = answer.row_count > rows ? answer.row_count : rows;
		plumb_answer_free(&answer);
	}
	double found[2], details[2];
	for (int i = 0; i < 2; i++) {
		struct plumb_flame_range range = { .px = 1500, .search = i ? "part 1" : "t 3" };
		FILE *out = fopen("/dev/null", "w");

		start = now();
		if (plumb_flame_boxes(flame, &range, &answer, &error) < 0)
			return 1;
		found[i] = now() - start;
		plumb_answer_free(&answer);
		start = now();
		if (!out || plumb_flame_frame(flame, 1, NULL, out, &error) < 0)
			return 1;
		details[i] = now() - start;
		fclose(out);
	}
	double middle = median(times, RANGES, &answer_most);
	double make = median(makes, ROUNDS, &most);
	printf("| %s, %s%s%s%s | %.0f ms | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %.0f, %.0f ms "
	       "| %u | %.0f MB |\n",
	       shape, plumb_flame_view_names[query->view],
	       query->collapse ? ", recursion collapsed" : "",
	       query->hidden ? ", layers hidden" : "", query->against ? ", against another" : "",
	       make, whole * 1e3, middle, answer_most, found[1] * 1e3, details[0] * 1e3,
	       details[1] * 1e3, rows, (double)plumb_flame_bytes(flame) / 1e6);
	plumb_flame_free(flame);
	return 0;
}

static int
make_profile(void (*make)(struct maker *m), uint32_t contexts, struct plumb_profile *p)
{
	struct plumb_error error = { 0 };
	struct maker m = begin(contexts);

	make(&m);
	if (plumb_builder_finish(m.b, p, &error) < 0) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	plumb_builder_free(m.b);
	return 0;
}

static int
measure_shape(const char *shape, void (*make)(struct maker *m), uint32_t contexts)
{
	struct plumb_flame_query query = { .metric = "op.time" };
	struct plumb_profile p, before;
	int failed = 0;

	/* The one that it is compared with has other values, and lacks a part. */
	if (make_profile(make, contexts, &p) || make_profile(make, contexts / 8 * 7, &before))
		return 1;
	for (int view = 0; view < PLUMB_FLAME_VIEWS; view++) {
		query.view = (enum plumb_flame_view)view;
		query.of = p.contexts[p.contexts_count / 2].frame;
		failed |= measure_flame(&p, shape, &query);
	}
	query = (struct plumb_flame_query){ .metric = "op.time", .collapse = true };
	failed |= measure_flame(&p, shape, &query);
	query = (struct plumb_flame_query){ .metric = "op.time",
		                            .against = &before,
		                            .width = PLUMB_FLAME_EITHER };
	failed |= measure_flame(&p, shape, &query);
	query.view = PLUMB_FLAME_HEAVY;
	failed |= measure_flame(&p, shape, &query);
	plumb_profile_free(&p);
	plumb_profile_free(&before);
	return failed;
}

/* ---- the timeline ---- */

static void
add_span(struct maker *m, uint32_t track, uint32_t context, int64_t start, int64_t end,
         uint64_t call)
{
	plumb_builder_span(m->b, &(struct plumb_span){ .context = context,
	                                               .track = track,
	                                               .start_ns = start,
	                                               .end_ns = end,
	                                               .correlation = call });
	m->made++;
}

/* Three nested operators around a launch, and its kernel on one of two streams. */
static void
make_spans(struct maker *m, uint32_t spans)
{
	uint32_t operators[3], launch, kernels[32];
	int64_t host = 1000, ends[2] = { 0 };
	char name[24];

	for (int i = 0; i < 3; i++)
		operators[i] =
			plumb_builder_context(m->b, i ? operators[i - 1] : 0, m->names[i], 0);
	launch = plumb_builder_context(m->b, operators[2], m->names[3], 0);
	for (int i = 0; i < 32; i++) {
		snprintf(name, sizeof name, "kernel %d", i);
		kernels[i] = plumb_builder_context(
			m->b, launch,
			plumb_builder_frame(m->b, PLUMB_FRAME_KERNEL,
		                            plumb_builder_text(m->b, name), PLUMB_NONE, 0),
			0);
	}
	m->made = 0;
	for (uint64_t call = 1; m->made < spans; call++) {
		int s = rand() % 2;
		int64_t from = host + 9000 > ends[s] ? host + 9000 : ends[s];

		ends[s] = from + 2000 + rand() % 10000;
		for (int i = 0; i < 3; i++)
			add_span(m, m->thread, operators[i], host + 300 * i, host + 9000 - 300 * i,
			         0);
		add_span(m, m->thread, launch, host + 1000, host + 5000, call);
		add_span(m, m->streams[s], kernels[call % 32], from, ends[s], call);
		host += 10000;
	}
}

static int
measure_table(struct plumb_lanes *lanes, enum plumb_lanes_table table, int64_t whole)
{
	struct plumb_error error = { 0 };
	struct plumb_answer answer;
	double times[RANGES], first = 0, most, start;
	uint32_t rows = 0;

	for (int i = 0; i <= RANGES; i++) {
		struct plumb_lanes_range range = { .t1 = whole, .px = 1500 };

		if (i) {
			range.t1 = whole >> rand() % 12;
			range.t0 = (int64_t)((double)(whole - range.t1) * rand() / RAND_MAX);
			range.t1 += range.t0;
		}
		start = now();
		if (plumb_lanes_answer(lanes, table, &range, &answer, &error) < 0)
			return 1;
		if (i)
			times[i - 1] = now() - start;
		else
			first = now() - start;
		rows = answer.row_count > rows ? answer.row_count : rows;
		plumb_answer_free(&answer);
	}
	double middle = median(times, RANGES, &most);
	printf("| %s | %.1f ms | %.1f ms | %.1f ms | %u |\n", plumb_lanes_table_names[table],
	       first * 1e3, middle, most, rows);
	return 0;
}

static int
measure_timeline(uint32_t spans)
{
	struct plumb_profile p;
	struct plumb_error error = { 0 };
	struct plumb_lanes *lanes = NULL;
	struct maker m = begin(0);
	double makes[ROUNDS], most, start;
	int failed = 0;

	make_spans(&m, spans);
	if (plumb_builder_finish(m.b, &p, &error) < 0)
		return 1;
	plumb_builder_free(m.b);
	for (int i = 0; i < ROUNDS; i++) {
		plumb_lanes_free(lanes);
		start = now();
		lanes = plumb_lanes_make(&p, &error);
		makes[i] = now() - start;
		if (!lanes)
			return 1;
	}
	printf("\n%u spans: make %.0f ms, %.0f MB\n\n| timeline | whole, the first time | range | "
	       "worst range | rows at most |\n|---|---|---|---|---|\n",
	       plumb_lanes_count(lanes), median(makes, ROUNDS, &most),
	       (double)plumb_lanes_bytes(lanes) / 1e6);
	for (int table = 0; table < PLUMB_LANES_TABLES; table++)
		failed |= measure_table(lanes, (enum plumb_lanes_table)table,
		                        INT64_C(10000) * (spans / 5));
	plumb_lanes_free(lanes);
	plumb_profile_free(&p);
	return failed;
}

/* ---- a profile for a browser: `wide`, and the spans ---- */

/* Stacks of 40 frames side by side, no two boxes of a row with the same name. */
static void
make_full(struct maker *m)
{
	char name[40];

	for (int i = 0; i < 1500; i++)
		for (uint32_t row = 0, at = 0; row < 40; row++) {
			snprintf(name, sizeof name, "box %d of row %u", i, row);
			at = plumb_builder_context(
				m->b, at,
				plumb_builder_frame(m->b, 1 + (uint32_t)rand() % 10,
			                            plumb_builder_text(m->b, name), PLUMB_NONE, 0),
				0);
			if (row == 39)
				plumb_builder_value(
					m->b, &(struct plumb_value){ .context = at,
				                                     .metric = PLUMB_METRIC_OP_TIME,
				                                     .track = m->thread,
				                                     .sum = 1000,
				                                     .count = 1,
				                                     .min = 1000,
				                                     .max = 1000,
				                                     .mean = 1000 });
		}
}

static int
write_profile(uint32_t contexts, uint32_t spans, const char *file)
{
	struct plumb_profile p;
	struct plumb_error error = { 0 };
	struct maker m = begin(contexts);

	if (contexts)
		make_wide(&m);
	else
		make_full(&m);
	if (spans)
		make_spans(&m, spans);
	/* A recorded profile has its findings, too. */
	if (plumb_builder_finish(m.b, &p, &error) < 0 || plumb_analyze(&p, NULL, &error) < 0 ||
	    plumb_store_write(&p, file, NULL, NULL, &error) < 0) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	plumb_builder_free(m.b);
	plumb_profile_free(&p);
	return 0;
}

int
main(int count, char **words)
{
	uint32_t contexts = count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : UINT32_C(1) << 20;
	uint32_t spans = count > 2 ? (uint32_t)strtoul(words[2], NULL, 10) : 2000000;
	int failed;

	if (count > 3)
		return write_profile(contexts, spans, words[3]);
	printf("%u contexts\n\n| flame graph | make | whole | range | worst range | new search "
	       "| details: first, next | boxes at most | memory |\n"
	       "|---|---|---|---|---|---|---|---|---|\n",
	       contexts);
	failed = measure_shape("wide", make_wide, contexts);
	failed |= measure_shape("deep", make_deep, contexts);
	failed |= measure_shape("flat", make_flat, contexts);
	failed |= measure_timeline(spans);
	return failed;
}
