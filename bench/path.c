/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the critical path of a million spans takes, in time of the processor, how much memory,
 * and how both grow: it compares with a profile of a tenth of the size.
 *
 *	make BUILD=build build/tool.a
 *	gcc -std=gnu17 -O2 -D_GNU_SOURCE -Isrc bench/path.c build/tool.a -lm \
 *	  -lsqlite3 -lz -lzstd -llzma -o build/bench_path
 *	build/bench_path
 *
 * A thread launches kernels on three streams from nested operators, some of which wait for an event
 * of another stream; every hundredth time the thread waits for a stream.
 *
 * More spans than a path is made of: a profile with so many kernels, whose launches repeat every
 * thousand and have no operators around them, is written for
 *
 *	build/bench_path 10000000 big.plumb
 *	/usr/bin/time -v build/plumb iters big.plumb
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "analyze/path/path.h"
#include "model/builder.h"
#include "processor_time.h"
#include "store/store.h"

#define STREAMS 3
#define LAYERS 3 /* nested operators around a launch */
#define ROUND 1000

struct maker {
	struct plumb_builder *builder;
	uint32_t thread, streams[STREAMS], operators[LAYERS], calls[4], kernels[8];
	int64_t host, ends[STREAMS];
	uint64_t calls_count;
	int layers; /* that have spans */
};

static uint32_t
frame(struct maker *m, uint32_t kind, const char *name, int number)
{
	char text[64];

	snprintf(text, sizeof text, "%s%d", name, number);
	return plumb_builder_frame(m->builder, kind, plumb_builder_text(m->builder, text),
	                           PLUMB_NONE, 0);
}

static void
add(struct maker *m, uint32_t track, uint32_t context, int64_t start, int64_t end, uint64_t call)
{
	plumb_builder_span(m->builder, &(struct plumb_span){ .context = context,
	                                                     .track = track,
	                                                     .start_ns = start,
	                                                     .end_ns = end,
	                                                     .correlation = call });
}

static void
begin(struct maker *m)
{
	static const char *const names[] = { "launch", "record", "wait", "synchronize" };

	*m = (struct maker){ .builder = plumb_builder_new(), .layers = LAYERS };
	plumb_builder_process(m->builder,
	                      &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	plumb_builder_device(m->builder,
	                     &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	m->thread =
		plumb_builder_track(m->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                               .device = PLUMB_NONE,
	                                                               .name = PLUMB_NONE });
	for (int s = 0; s < STREAMS; s++)
		m->streams[s] = plumb_builder_track(
			m->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                           .name = PLUMB_NONE,
		                                           .stream = s });
	for (int i = 0; i < LAYERS; i++)
		m->operators[i] =
			plumb_builder_context(m->builder, i ? m->operators[i - 1] : 0,
		                              frame(m, PLUMB_FRAME_OPERATOR, "operator", i), 0);
	for (int i = 0; i < 4; i++)
		m->calls[i] = plumb_builder_context(m->builder, m->operators[LAYERS - 1],
		                                    frame(m, PLUMB_FRAME_GPU_API, names[i], 0), 0);
	for (int i = 0; i < 8; i++)
		m->kernels[i] = plumb_builder_context(m->builder, m->calls[0],
		                                      frame(m, PLUMB_FRAME_KERNEL, "kernel", i), 0);
}

/* Operators around a call of 5 µs and its kernel, or a synchronisation. */
static uint32_t
step(struct maker *m, uint32_t i)
{
	int s = rand() % STREAMS, other = (s + 1) % STREAMS;
	int64_t start = m->host, call = start + 3000, end = call + 5000;
	uint64_t number = ++m->calls_count;

	if (i % 100 == 99) {
		end = (m->ends[s] > call ? m->ends[s] : call) + 4000;
		add(m, m->thread, m->calls[3], call, end, number);
		plumb_builder_wait(m->builder, &(struct plumb_wait){ m->thread, m->streams[s],
		                                                     PLUMB_NONE, number, 0 });
	} else {
		int64_t from = call + 6000;

		if (i % 20 == 7 && m->ends[other]) {
			add(m, m->thread, m->calls[2], start + 1000, start + 2000,
			    ++m->calls_count);
			plumb_builder_wait(m->builder,
			                   &(struct plumb_wait){ m->streams[s], m->streams[other],
			                                         PLUMB_NONE, m->calls_count, 0 });
			from = m->ends[other] > from ? m->ends[other] : from;
		}
		from = m->ends[s] > from ? m->ends[s] : from;
		m->ends[s] = from + 2000 + rand() % 20000;
		add(m, m->thread, m->calls[0], call, end, number);
		add(m, m->streams[s], m->kernels[rand() % 8], from, m->ends[s], number);
	}
	for (int l = 0; l < m->layers; l++)
		add(m, m->thread, m->operators[l], start + 200 * l, end + 1000 - 200 * l, 0);
	m->host = end + 2000;
	return (uint32_t)m->layers + 2;
}

static double
measure(uint32_t spans)
{
	struct plumb_profile profile;
	struct plumb_path_window window;
	struct plumb_error error;
	struct rusage usage[2];
	struct maker m;
	double times[4];

	srand(3);
	begin(&m);
	for (uint32_t n = 0, i = 0; n < spans; i++)
		n += step(&m, i);
	if (plumb_builder_finish(m.builder, &profile, &error) < 0)
		return 0;
	plumb_builder_free(m.builder);
	unsigned char *gone = calloc(profile.contexts_count, 1);
	gone[profile.contexts_count - 1] = 1;
	getrusage(RUSAGE_SELF, &usage[0]);
	times[0] = now();
	struct plumb_path *path = plumb_path_new(&profile, NULL, &error);
	times[1] = now();
	int code = plumb_path_open_whole(path, &window, &error);
	times[2] = now();
	int64_t saved = plumb_path_saving(&window, gone);
	times[3] = now();
	getrusage(RUSAGE_SELF, &usage[1]);
	printf("%7u spans: graph %.3f s, path %.3f s, a saving %.3f s (%.1f ms of "
	       "%.1f), %.0f bytes a span%s\n",
	       profile.spans_count, times[1] - times[0], times[2] - times[1], times[3] - times[2],
	       (double)saved / 1e6, (double)(window.end_ns - window.start_ns) / 1e6,
	       (double)(usage[1].ru_maxrss - usage[0].ru_maxrss) * 1024 / profile.spans_count,
	       code ? ": failed" : "");
	plumb_path_close(&window);
	plumb_path_free(path);
	plumb_profile_free(&profile);
	free(gone);
	return times[3] - times[0];
}

static int
write_big(uint32_t kernels, const char *file)
{
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	struct maker m;

	begin(&m);
	m.layers = 0;
	for (uint32_t i = 0; i < kernels; i++) {
		if (i % ROUND == 0)
			srand(3);
		step(&m, i);
	}
	if (plumb_builder_finish(m.builder, &profile, &error) < 0 ||
	    plumb_store_write(&profile, file, NULL, NULL, &error) < 0) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	printf("%u spans\n", profile.spans_count);
	return 0;
}

int
main(int count, char **words)
{
	if (count == 3)
		return write_big((uint32_t)strtoul(words[1], NULL, 10), words[2]);
	double tenth = measure(100000), whole = measure(1000000);

	printf("ten times as many spans take %.1f times as long\n", whole / tenth);
	return 0;
}
