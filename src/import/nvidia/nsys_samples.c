/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample has a moment, a thread, and how many cycles its processor counted for the thread since
 * its last one; its call chain lies in another table, innermost function first. CPU time in ns is
 * not in the file: the threads that were busiest between two samples tell how many cycles a
 * nanosecond has, and no sample stands for more time than has passed.
 */
#include <stdlib.h>

#include "base/runs.h"
#include "base/search.h"
#include "import/nvidia/nsys.h"
#include "import/samples.h"

#define BUSY 0.9 /* of all pairs of samples: so many have fewer cycles a ns than the clock's rate */

struct sample {
	int64_t id, start, cycles;
	uint32_t track;
	struct plumb_samples_chain chain;
	double passed; /* ns since the thread's sample before; 0 for its first */
};

struct link {
	uint32_t sample, frame;
	int64_t depth; /* 0 is innermost */
};

struct samples {
	struct plumb_sqlite *sqlite;
	struct plumb_trace *trace;
	struct plumb_samples shared;
	PLUMB_VEC(struct sample) items;
	PLUMB_VEC(struct link) links;
	int64_t elsewhere; /* of processes that did nothing else */
};

static void
no_memory(struct samples *s)
{
	if (!s->sqlite->code)
		s->sqlite->code =
			plumb_fail_memory(s->sqlite->error, "to read %s", s->sqlite->path);
}

/* ---- reading ---- */

static void
read_samples(struct samples *s, uint32_t (*thread_of)(void *reader, int64_t global), void *reader)
{
	enum { ID, START, THREAD, CYCLES };
	struct plumb_rows rows;

	plumb_rows_open(&rows, s->sqlite, "COMPOSITE_EVENTS",
	                (const char *const[]){ "id", "start", "globalTid", "cpuCycles", NULL });
	while (plumb_rows_next(&rows)) {
		uint32_t track = thread_of(reader, plumb_rows_integer(&rows, THREAD));
		struct sample *sample = NULL;

		if (track == PLUMB_NONE || plumb_rows_integer(&rows, START) == PLUMB_UNKNOWN) {
			s->elsewhere++;
			continue;
		}
		sample = plumb_vec_add(&s->items);
		if (!sample) {
			no_memory(s);
			break;
		}
		*sample = (struct sample){ .id = plumb_rows_integer(&rows, ID),
			                   .start = plumb_rows_integer(&rows, START),
			                   .cycles = plumb_rows_integer(&rows, CYCLES),
			                   .track = track };
	}
	plumb_rows_close(&rows);
}

static bool
swapped_ids(const void *x, const void *y, const void *data)
{
	const struct sample *a = x, *b = y;

	(void)data;
	return b->id < a->id;
}

static bool
swapped_times(const void *x, const void *y, const void *data)
{
	const struct sample *a = x, *b = y;

	(void)data;
	return a->track != b->track ? b->track < a->track : b->start < a->start;
}

static bool
swapped_links(const void *x, const void *y, const void *data)
{
	const struct link *a = x, *b = y;

	(void)data;
	return a->sample != b->sample ? b->sample < a->sample : b->depth > a->depth;
}

/* The first sample with ID, or PLUMB_NONE. The samples are ordered by id. */
static uint32_t
find_sample(const struct samples *s, int64_t id)
{
	uint32_t low = plumb_search(i, s->items.count, s->items.items[i].id < id);
	return low < s->items.count && s->items.items[low].id == id ? low : PLUMB_NONE;
}

static void
read_chains(struct samples *s, struct plumb_sqlite_texts *texts)
{
	enum { ID, SYMBOL, MODULE, UNRESOLVED, SPECIAL, DEPTH };
	struct plumb_rows rows;

	plumb_rows_open(&rows, s->sqlite, "SAMPLING_CALLCHAINS",
	                (const char *const[]){ "id", "symbol", "module", "unresolved",
	                                       "specialEntry", "stackDepth", NULL });
	while (plumb_rows_next(&rows)) {
		uint32_t sample = find_sample(s, plumb_rows_integer(&rows, ID));
		struct plumb_slice name =
			plumb_sqlite_texts_slice(texts, plumb_rows_integer(&rows, SYMBOL));
		struct link *link;

		/* An entry of the tool's own says how its walk ended. */
		if (sample == PLUMB_NONE || plumb_rows_integer(&rows, SPECIAL) == 1)
			continue;
		if (plumb_rows_integer(&rows, UNRESOLVED) == 1)
			name.bytes = 0;
		link = plumb_vec_add(&s->links);
		if (!link) {
			no_memory(s);
			break;
		}
		*link = (struct link){
			sample,
			plumb_samples_frame(
				s->trace, name,
				plumb_sqlite_texts_slice(texts, plumb_rows_integer(&rows, MODULE)),
				0),
			plumb_rows_integer(&rows, DEPTH),
		};
	}
	plumb_rows_close(&rows);
}

/* ---- what they are ---- */

static void
build_chains(struct samples *s)
{
	if (plumb_runs_sort(s->links.items, s->links.count, sizeof *s->links.items, swapped_links,
	                    NULL) < 0)
		no_memory(s);
	for (uint32_t i = 0; i < s->links.count && !s->sqlite->code; i++) {
		const struct link *link = &s->links.items[i];

		plumb_samples_under(&s->shared, &s->items.items[link->sample].chain, link->frame);
	}
}

static int
by_number(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Cycles a nanosecond of a thread that computes; 0: the file does not tell. Orders by thread and
 * time. */
static double
find_rate(struct samples *s)
{
	double *rates = malloc(((size_t)s->items.count + 1) * sizeof *rates), rate = 0;
	uint32_t count = 0;

	if (!rates || plumb_runs_sort(s->items.items, s->items.count, sizeof *s->items.items,
	                              swapped_times, NULL) < 0)
		no_memory(s);
	for (uint32_t i = 1; i < s->items.count && !s->sqlite->code; i++) {
		struct sample *own = &s->items.items[i];

		if (own->track != own[-1].track || own->start <= own[-1].start)
			continue;
		own->passed = (double)own->start - (double)own[-1].start;
		if (own->cycles > 0)
			rates[count++] = (double)own->cycles / own->passed;
	}
	if (count) {
		qsort(rates, count, sizeof *rates, by_number);
		rate = rates[(uint32_t)((double)(count - 1) * BUSY)];
	}
	free(rates);
	return rate;
}

static void
keep_samples(struct samples *s, double rate)
{
	for (uint32_t i = 0; i < s->items.count && !s->sqlite->code; i++) {
		const struct sample *own = &s->items.items[i];
		double ns = (double)own->cycles / rate;

		if (own->passed > 0 && ns > own->passed)
			ns = own->passed;
		plumb_samples_take(&s->shared, own->track, &own->chain, own->start,
		                   own->cycles < 0 ? PLUMB_UNKNOWN
		                   : ns < 9e18     ? (int64_t)ns
		                                   : INT64_MAX);
	}
}

void
plumb_nsys_samples(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                   struct plumb_sqlite_texts *texts,
                   uint32_t (*thread_of)(void *reader, int64_t global), void *reader)
{
	struct samples s = { .sqlite = sqlite, .trace = trace, .shared = { .trace = trace } };
	double rate = 0;

	read_samples(&s, thread_of, reader);
	if (s.items.count && !sqlite->code &&
	    plumb_runs_sort(s.items.items, s.items.count, sizeof *s.items.items, swapped_ids,
	                    NULL) < 0)
		no_memory(&s);
	if (s.items.count && !sqlite->code) {
		read_chains(&s, texts);
		build_chains(&s);
		rate = find_rate(&s);
	}
	if (rate > 0)
		keep_samples(&s, rate);
	else
		s.shared.timeless = s.items.count;
	plumb_samples_end(&s.shared);
	plumb_trace_count(trace, PLUMB_FATE_UNUSED, "CPU samples of other processes", s.elsewhere);
	plumb_vec_free(&s.items);
	plumb_vec_free(&s.links);
}
