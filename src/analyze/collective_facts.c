/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/collective_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/study.h"

#define TOGETHER_NS 20000 /* ends of an operation may lie that far apart, or its shortest length */

/* A row of the table that a library told. */
struct row {
	const struct plumb_collective *of;
	uint32_t fact;   /* in items */
	uint32_t member; /* of plumb_collective_facts.ranks, from the fact's first on */
	bool shared, timed;
};

struct finding {
	const struct plumb_profile *profile;
	struct plumb_collective_facts *facts;
	struct row *rows;
	uint32_t count;
};

/* ---- operations ---- */

static bool
is_one_of(const char *name, const char *const *names)
{
	for (; name && *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

static const char *const pairs[] = { "Send", "Recv", "SendRecv", NULL };

double
plumb_collective_bus_factor(const char *operation, int64_t size)
{
	static const char *const once[] = {
		"Broadcast", "Reduce", "Send", "Recv", "SendRecv", NULL
	};
	static const char *const parts[] = { "AllGather", "ReduceScatter", "AlltoAll",
		                             "Gather",    "Scatter",       NULL };
	double n = (double)size;

	if (is_one_of(operation, once))
		return 1;
	if (size < 1 || !operation)
		return NAN;
	if (!strcmp(operation, "AllReduce"))
		return 2 * (n - 1) / n;
	return is_one_of(operation, parts) ? (n - 1) / n : NAN;
}

int64_t
plumb_collective_whole_bytes(const char *operation, int64_t size, int64_t bytes)
{
	static const char *const same[] = {
		"AllReduce", "Broadcast", "Reduce", "Send", "Recv", NULL
	};
	static const char *const parts[] = { "AllGather", "ReduceScatter", "AlltoAll",
		                             "Gather",    "Scatter",       NULL };
	int64_t whole;

	if (bytes < 0)
		return PLUMB_UNKNOWN;
	if (is_one_of(operation, same))
		return bytes;
	if (size < 1 || !is_one_of(operation, parts) || __builtin_mul_overflow(bytes, size, &whole))
		return PLUMB_UNKNOWN;
	return whole;
}

/* How many bytes a protocol sends for one byte of data: LL has a flag of 4 bytes for each 4, LL128
 * one of 8 bytes for each 120. */
static double
protocol_factor(const char *protocol)
{
	if (protocol && !strcmp(protocol, "SIMPLE"))
		return 1;
	if (protocol && !strcmp(protocol, "LL"))
		return 2;
	return protocol && !strcmp(protocol, "LL128") ? 128.0 / 120 : NAN;
}

double
plumb_collective_sent_bytes(const char *operation, const char *algorithm, const char *protocol,
                            int64_t size, int64_t bytes)
{
	static const char *const parts[] = { "AllGather", "ReduceScatter", NULL };
	static const char *const once[] = { "Broadcast", "Reduce", NULL };
	int64_t whole = plumb_collective_whole_bytes(operation, size, bytes);
	bool ring = algorithm && !strcmp(algorithm, "RING");
	double hops = NAN, n = (double)size;

	if (whole < 0 || size < 1)
		return NAN;
	/* In a ring and in a tree each byte of the sum goes over n - 1 links on its way in, and
	 * over as many on its way out. */
	if (operation && !strcmp(operation, "AllReduce") &&
	    (ring || (algorithm && !strcmp(algorithm, "TREE"))))
		hops = 2 * (n - 1);
	else if (ring && (is_one_of(operation, parts) || is_one_of(operation, once)))
		hops = n - 1;
	return hops * (double)whole / n * protocol_factor(protocol);
}

/* ---- facts ---- */

#define ORDER(a, b, field)                                                                         \
	if ((a)->field != (b)->field)                                                              \
	return (a)->field < (b)->field ? -1 : 1

static int
compare_facts(const struct plumb_collective *a, const struct plumb_collective *b)
{
	ORDER(a, b, group);
	ORDER(a, b, ranks);
	ORDER(a, b, size);
	ORDER(a, b, operation);
	ORDER(a, b, datatype);
	ORDER(a, b, algorithm);
	ORDER(a, b, protocol);
	ORDER(a, b, bytes);
	return 0;
}

static uint32_t
process_of(const struct plumb_profile *p, const struct plumb_collective *row)
{
	return row->track < p->tracks_count ? p->tracks[row->track].process : PLUMB_NONE;
}

/* By fact, then by rank. */
static int
by_fact(const void *x, const void *y)
{
	const struct plumb_collective *a = ((const struct row *)x)->of;
	const struct plumb_collective *b = ((const struct row *)y)->of;
	int order = compare_facts(a, b);

	if (order)
		return order;
	ORDER(a, b, rank);
	return (a > b) - (a < b);
}

static bool
add_fact(struct finding *f, const struct plumb_collective *row)
{
	struct plumb_collective_fact *fact = plumb_vec_add(&f->facts->items);
	const char *name = plumb_text(f->profile, row->operation);

	if (!fact)
		return false;
	*fact = (struct plumb_collective_fact){
		.group = row->group,
		.ranks = row->ranks,
		.size = row->size,
		.operation = row->operation,
		.datatype = row->datatype,
		.algorithm = row->algorithm,
		.protocol = row->protocol,
		.bytes = row->bytes,
		.all_bytes = row->bytes == PLUMB_UNKNOWN ? PLUMB_UNKNOWN : 0,
		.pairs = is_one_of(name, pairs),
		.first_rank = f->facts->ranks.count,
	};
	return true;
}

static bool
list_facts(struct finding *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		const struct plumb_collective *row = f->rows[i].of,
					      *before = i ? f->rows[i - 1].of : NULL;
		bool other = !before || compare_facts(row, before);
		struct plumb_collective_fact *fact;
		struct plumb_collective_fact_rank *rank;

		if (other && !add_fact(f, row))
			return false;
		fact = &f->facts->items.items[f->facts->items.count - 1];
		if (other || row->rank != before->rank) {
			rank = plumb_vec_add(&f->facts->ranks);
			if (!rank)
				return false;
			*rank = (struct plumb_collective_fact_rank){ .rank = row->rank,
				                                     .process = PLUMB_NONE };
			fact->rank_count++;
		}
		rank = &f->facts->ranks.items[f->facts->ranks.count - 1];
		rank->calls++;
		if (rank->process == PLUMB_NONE)
			rank->process = process_of(f->profile, row);
		f->rows[i].fact = f->facts->items.count - 1;
		f->rows[i].member = f->facts->ranks.count - 1;
		fact->calls++;
		if (row->bytes != PLUMB_UNKNOWN &&
		    __builtin_add_overflow(fact->all_bytes, row->bytes, &fact->all_bytes))
			fact->all_bytes = INT64_MAX;
		f->facts->told++;
		f->facts->untimed += !f->rows[i].timed;
	}
	return true;
}

/* ---- kernels that ran several operations ---- */

static int
by_kernel(const void *x, const void *y)
{
	const struct plumb_collective *a = ((const struct row *)x)->of;
	const struct plumb_collective *b = ((const struct row *)y)->of;

	ORDER(a, b, track);
	ORDER(a, b, start_ns);
	return (a > b) - (a < b);
}

static void
mark_shared(struct finding *f)
{
	qsort(f->rows, f->count, sizeof *f->rows, by_kernel);
	for (uint32_t i = 1; i < f->count; i++)
		if (f->rows[i].timed && f->rows[i - 1].timed &&
		    f->rows[i].of->track == f->rows[i - 1].of->track &&
		    f->rows[i].of->start_ns == f->rows[i - 1].of->start_ns)
			f->rows[i].shared = f->rows[i - 1].shared = true;
}

/* ---- operations of several ranks ---- */

static int
by_operation(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	ORDER(a, b, fact);
	ORDER(a, b, of->sequence);
	ORDER(a, b, of->rank);
	return (a->of > b->of) - (a->of < b->of);
}

/* The row of ROWS that came last, and when moving can begin. If the ends are too far apart for the
 * clocks to agree, it is the one that took the shortest time, and *BEGIN is PLUMB_UNKNOWN. */
static const struct row *
find_last(const struct row *rows, uint32_t count, int64_t *begin, int64_t *shortest)
{
	const struct row *last = rows, *quickest = rows;
	int64_t first_end = rows->of->end_ns, last_end = rows->of->end_ns;

	*shortest = rows->of->end_ns - rows->of->start_ns;
	for (uint32_t i = 1; i < count; i++) {
		const struct plumb_collective *c = rows[i].of;

		if (c->start_ns > last->of->start_ns)
			last = &rows[i];
		if (c->end_ns - c->start_ns < *shortest) {
			*shortest = c->end_ns - c->start_ns;
			quickest = &rows[i];
		}
		first_end = c->end_ns < first_end ? c->end_ns : first_end;
		last_end = c->end_ns > last_end ? c->end_ns : last_end;
	}
	*begin = last->of->start_ns;
	if (last_end - first_end <= (*shortest > TOGETHER_NS ? *shortest : TOGETHER_NS))
		return last;
	*begin = PLUMB_UNKNOWN;
	return quickest;
}

static void
add_moving(struct plumb_collective_fact *fact, const struct row *rows, uint32_t count,
           int64_t begin, int64_t shortest)
{
	int64_t end = rows->of->end_ns;

	for (uint32_t i = 1; i < count; i++)
		end = rows[i].of->end_ns > end ? rows[i].of->end_ns : end;
	fact->timed++;
	fact->moving_ns =
		plumb_add(fact->moving_ns, begin == PLUMB_UNKNOWN ? shortest : end - begin);
}

/* All ranks of an operation, whose times are known. */
static void
time_operation(struct finding *f, struct plumb_collective_fact *fact, const struct row *rows,
               uint32_t count)
{
	struct plumb_collective_fact_rank *ranks = f->facts->ranks.items;
	int64_t begin, shortest, waited = 0, least = INT64_MAX;
	const struct row *last = find_last(rows, count, &begin, &shortest);

	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_collective *c = rows[i].of;
		int64_t longer = c->end_ns - c->start_ns - shortest;

		/* Until the last one begins, but not beyond its own end. */
		if (begin != PLUMB_UNKNOWN)
			longer = (begin < c->end_ns ? begin : c->end_ns) - c->start_ns;
		if (&rows[i] == last)
			continue;
		ranks[rows[i].member].waited_ns =
			plumb_add(ranks[rows[i].member].waited_ns, longer);
		waited = plumb_add(waited, longer);
		least = longer < least ? longer : least;
	}
	add_moving(fact, rows, count, begin, shortest);
	if (count < 2 || least < TOGETHER_NS)
		return;
	struct plumb_collective_fact_rank *late = &ranks[last->member];

	late->last++;
	late->late_ns = plumb_add(late->late_ns, least);
	late->most_late_ns = least > late->most_late_ns ? least : late->most_late_ns;
	late->caused_ns = plumb_add(late->caused_ns, waited);
}

/* COUNT rows of one fact with the same number in their group. */
static void
take_operation(struct finding *f, struct plumb_collective_fact *fact, const struct row *rows,
               uint32_t count)
{
	bool known = rows->of->sequence != PLUMB_UNKNOWN && !fact->pairs, timed = known;

	for (uint32_t i = 0; i < count; i++) {
		fact->shared += rows[i].shared;
		timed = timed && rows[i].timed && !rows[i].shared;
		/* The same number twice on a rank: nothing says which is which. */
		known = known && (!i || rows[i].of->rank != rows[i - 1].of->rank);
	}
	if (!known) {
		fact->operations += count;
		return;
	}
	fact->operations++;
	if (fact->size == PLUMB_UNKNOWN ? count < 2 : (int64_t)count != fact->size)
		return;
	fact->matched++;
	if (timed)
		time_operation(f, fact, rows, count);
}

static void
match_rows(struct finding *f)
{
	qsort(f->rows, f->count, sizeof *f->rows, by_operation);
	for (uint32_t i = 0, n; i < f->count; i += n) {
		for (n = 1; i + n < f->count && f->rows[i + n].fact == f->rows[i].fact &&
		            f->rows[i + n].of->sequence == f->rows[i].of->sequence;
		     n++)
			;
		take_operation(f, &f->facts->items.items[f->rows[i].fact], &f->rows[i], n);
	}
}

/* ---- the whole ---- */

static int
by_bytes(const void *x, const void *y)
{
	const struct plumb_collective_fact *a = x, *b = y;

	if (a->all_bytes != b->all_bytes)
		return a->all_bytes > b->all_bytes ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	return (a->first_rank > b->first_rank) - (a->first_rank < b->first_rank);
}

static void
add_bandwidth(const struct plumb_profile *p, struct plumb_collective_fact *fact)
{
	const char *name = plumb_text(p, fact->operation);
	int64_t whole = plumb_collective_whole_bytes(name, fact->size, fact->bytes);

	fact->algorithm_bandwidth = fact->bus_bandwidth = NAN;
	if (whole == PLUMB_UNKNOWN || !fact->timed || fact->moving_ns <= 0)
		return;
	fact->algorithm_bandwidth =
		(double)whole * (double)fact->timed / ((double)fact->moving_ns * 1e-9);
	fact->bus_bandwidth =
		fact->algorithm_bandwidth * plumb_collective_bus_factor(name, fact->size);
}

/* The items are in their last order. Each has ranks of its own, so these tell which it is. */
static bool
find_rows(struct finding *f)
{
	const struct plumb_profile *p = f->profile;
	struct plumb_collective_facts *facts = f->facts;
	uint32_t *of_rank = malloc(((size_t)facts->ranks.count + 1) * sizeof *of_rank);

	facts->of_row = malloc(((size_t)p->collectives_count + 1) * sizeof *facts->of_row);
	for (uint32_t i = 0; of_rank && i < facts->items.count; i++)
		for (uint32_t k = 0; k < facts->items.items[i].rank_count; k++)
			of_rank[facts->items.items[i].first_rank + k] = i;
	for (uint32_t i = 0; facts->of_row && i < p->collectives_count; i++)
		facts->of_row[i] = PLUMB_NONE;
	for (uint32_t i = 0; of_rank && facts->of_row && i < f->count; i++)
		facts->of_row[f->rows[i].of - p->collectives] = of_rank[f->rows[i].member];
	free(of_rank);
	return of_rank && facts->of_row;
}

int
plumb_collective_facts_find(const struct plumb_profile *profile,
                            struct plumb_collective_facts *facts)
{
	struct finding f = { .profile = profile, .facts = facts };
	bool done;

	*facts = (struct plumb_collective_facts){ 0 };
	f.rows = calloc((size_t)profile->collectives_count + 1, sizeof *f.rows);
	if (!f.rows)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < profile->collectives_count; i++) {
		const struct plumb_collective *row = &profile->collectives[i];

		if (row->operation == PLUMB_NONE)
			continue; /* an import's, of which no library told */
		f.rows[f.count++] = (struct row){
			.of = row,
			.timed = row->track != PLUMB_NONE &&
			         plumb_is_time(row->start_ns, row->end_ns),
		};
	}
	mark_shared(&f);
	qsort(f.rows, f.count, sizeof *f.rows, by_fact);
	done = list_facts(&f);
	if (done) {
		match_rows(&f);
		for (uint32_t i = 0; i < facts->items.count; i++)
			add_bandwidth(profile, &facts->items.items[i]);
		if (facts->items.count)
			qsort(facts->items.items, facts->items.count, sizeof *facts->items.items,
			      by_bytes);
	}
	done = done && find_rows(&f);
	free(f.rows);
	return done ? 0 : PLUMB_ESYSTEM;
}

void
plumb_collective_facts_free(struct plumb_collective_facts *facts)
{
	plumb_vec_free(&facts->items);
	plumb_vec_free(&facts->ranks);
	free(facts->of_row);
	*facts = (struct plumb_collective_facts){ 0 };
}
