/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a rank comes late. All ranks take the same time from one collective to the next. So a late
 * one, which waits less than the others, does something else for longer: its GPU computes, or it
 * idles because the host gives it nothing.
 *
 * Which kernels take longer is counted in the GPU work. Where the host is, CPU samples and waits
 * say best; then the operators' time; at least the gaps of the GPU: the line whose work ends a gap
 * comes late.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/late.h"

#define PART 0.5       /* of the lateness: a cause has to explain as much */
#define LINE_PART 0.3  /* of the lateness: what a line has to explain */
#define OTHERS_MOST 64 /* whose work is looked at one by one */
#define ALIKE 0.15     /* kernels whose times grow by nearly the same factor */
#define ALIKE_PART 0.8

/* Who is compared with the late rank: all that wait. */
static bool
is_other(const struct plumb_late *l, uint32_t rank)
{
	return !l->late[rank] && l->sums[rank].waiting_ns != PLUMB_UNKNOWN &&
	       l->waits.ranks[rank].matched;
}

static uint32_t
count_others(const struct plumb_late *l)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < l->waits.count; r++)
		n += is_other(l, r);
	return n;
}

static void
compare_sums(const struct plumb_late *l, struct plumb_late_why *why)
{
	const struct plumb_rank_sums *own = &l->sums[why->rank];
	double waited = 0, compute = 0, idle = 0, n = count_others(l);

	for (uint32_t r = 0; r < l->waits.count; r++) {
		if (!is_other(l, r))
			continue;
		waited += (double)l->waited[r];
		compute += (double)l->sums[r].compute_ns + (double)l->sums[r].copies_ns;
		idle += (double)l->sums[r].idle_ns;
	}
	if (n <= 0)
		return;
	why->late_ns = llround(waited / n) - l->waited[why->rank];
	why->compute_more_ns = own->compute_ns + own->copies_ns - llround(compute / n);
	why->idle_more_ns = own->idle_ns - llround(idle / n);
	if (why->late_ns <= 0)
		return;
	if ((double)why->compute_more_ns >= PART * (double)why->late_ns &&
	    why->compute_more_ns >= why->idle_more_ns)
		why->cause = PLUMB_LATE_DEVICE;
	else if ((double)why->idle_more_ns >= PART * (double)why->late_ns)
		why->cause = PLUMB_LATE_HOST;
}

/* ---- GPU work of ranks ---- */

struct item {
	int64_t start_ns, end_ns;
	uint32_t context;
	bool collective;
};

struct items {
	PLUMB_VEC(struct item) all;
};

static int
by_start(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* All work of RANK in what is looked at, over its streams, by start. */
static bool
load_items(const struct plumb_late *l, uint32_t rank, const unsigned char *is, struct items *items)
{
	const struct plumb_gpu_work *work = &l->waits.work;

	items->all.count = 0;
	for (uint32_t t = 0; t < work->profile->tracks_count; t++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(work, t);

		if (l->waits.together.rank_of[t] != rank)
			continue;
		for (uint32_t i = range.first; i < range.end; i++) {
			const struct plumb_span *s = &work->spans[i];
			struct item *added;

			if (s->start_ns < l->from_ns || s->start_ns >= l->to_ns ||
			    !plumb_is_time(s->start_ns, s->end_ns))
				continue;
			added = plumb_vec_add(&items->all);
			if (!added)
				return false;
			*added =
				(struct item){ s->start_ns, s->end_ns, s->context, is[s->context] };
		}
	}
	if (items->all.count)
		qsort(items->all.items, items->all.count, sizeof *items->all.items, by_start);
	return true;
}

/* An amount of the late rank and of all others, by frame. */
struct amounts {
	double *own, *others;
	double *own_count, *other_count;
	uint32_t *context; /* one of the late rank's */
};

static bool
new_amounts(const struct plumb_profile *p, struct amounts *a)
{
	size_t room = (size_t)p->frames_count + 1;

	a->own = calloc(room, sizeof *a->own);
	a->others = calloc(room, sizeof *a->others);
	a->own_count = calloc(room, sizeof *a->own_count);
	a->other_count = calloc(room, sizeof *a->other_count);
	a->context = calloc(room, sizeof *a->context);
	return a->own && a->others && a->own_count && a->other_count && a->context;
}

static void
free_amounts(struct amounts *a)
{
	free(a->own);
	free(a->others);
	free(a->own_count);
	free(a->other_count);
	free(a->context);
}

static void
add_amount(struct amounts *a, bool own, uint32_t frame, double ns, uint32_t context)
{
	if (own) {
		a->own[frame] += ns;
		a->own_count[frame]++;
		a->context[frame] = context;
	} else {
		a->others[frame] += ns;
		a->other_count[frame]++;
	}
}

/* The frame of which the late rank has most more than the mean of N others; PLUMB_NONE. */
static uint32_t
find_more(const struct amounts *a, uint32_t frames, double n, double *more)
{
	uint32_t best = PLUMB_NONE;

	*more = 0;
	for (uint32_t f = 0; f < frames; f++) {
		double own = a->own[f] - a->others[f] / n;

		if (own > *more) {
			*more = own;
			best = f;
		}
	}
	return best;
}

/* Kernels and copies by frame, and gaps by the line whose work ends them. */
static void
tally_items(const struct plumb_late *l, const struct items *items, bool own,
            struct amounts *kernels, struct amounts *gaps)
{
	const struct plumb_profile *p = l->study->profile;
	int64_t until = l->from_ns;

	for (uint32_t i = 0; i < items->all.count; i++) {
		const struct item *item = &items->all.items[i];
		uint32_t line = l->study->user_of[item->context];

		if (!item->collective)
			add_amount(kernels, own, p->contexts[item->context].frame,
			           (double)(item->end_ns - item->start_ns), item->context);
		if (item->start_ns > until && line < p->frames_count)
			add_amount(gaps, own, line, (double)(item->start_ns - until),
			           item->context);
		until = item->end_ns > until ? item->end_ns : until;
	}
}

/* ---- the device ---- */

/* How much longer the same kernels take, and whether all do. */
static void
compare_kernels(const struct plumb_profile *p, const struct amounts *k, double n,
                struct plumb_late_why *why)
{
	double own = 0, wanted = 0, alike = 0, count = 0, others = 0, more;

	for (uint32_t f = 0; f < p->frames_count; f++) {
		count += k->own_count[f];
		others += k->other_count[f];
		if (k->own_count[f] && k->other_count[f]) {
			own += k->own[f];
			wanted += k->own_count[f] * k->others[f] / k->other_count[f];
		}
	}
	why->slower = wanted > 0 ? own / wanted : NAN;
	why->kernels_more = others > 0 ? count / (others / n) : NAN;
	for (uint32_t f = 0; f < p->frames_count; f++)
		if (k->own_count[f] && k->other_count[f] && k->others[f] > 0) {
			double each = k->own_count[f] * k->others[f] / k->other_count[f];

			if (fabs(k->own[f] / each - why->slower) <= ALIKE * why->slower)
				alike += k->own[f];
		}
	why->all_slower = own > 0 && alike >= ALIKE_PART * own;
	why->kernel = find_more(k, p->frames_count, n, &more);
	if (why->kernel != PLUMB_NONE)
		why->context = k->context[why->kernel];
}

/* ---- the host ---- */

/* Values of the late rank's process, and of the processes of the others, by line. Of op.time each
 * context's longest call is left out: first calls load code. */
static bool
tally_host(const struct plumb_late *l, uint32_t rank, uint32_t metric, struct amounts *a, double *n)
{
	const struct plumb_profile *p = l->study->profile;
	unsigned char *side = calloc((size_t)p->processes_count + 1, 1);
	uint32_t own = l->waits.ranks[rank].process;

	*n = 0;
	for (uint32_t r = 0; side && r < l->waits.count; r++) {
		uint32_t process = l->waits.ranks[r].process;

		if (is_other(l, r) && process < p->processes_count && process != own &&
		    !side[process]) {
			side[process] = 2;
			++*n;
		}
	}
	if (side && own < p->processes_count)
		side[own] = 1;
	for (uint32_t i = 0; side && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t process =
			v->track < p->tracks_count ? p->tracks[v->track].process : PLUMB_NONE;
		uint32_t line = l->study->user_of[v->context];
		int64_t ns = v->sum;

		if (v->metric != metric || process >= p->processes_count || !side[process] ||
		    line >= p->frames_count || ns <= 0)
			continue;
		if (metric == PLUMB_METRIC_OP_TIME && v->count)
			ns -= v->max < ns ? v->max : ns;
		add_amount(a, side[process] == 1, line, (double)ns, v->context);
	}
	free(side);
	return side;
}

/* The line where the late rank's host spends more time than that of the others: the first metric
 * that knows one. */
static bool
compare_hosts(const struct plumb_late *l, struct plumb_late_why *why)
{
	static const struct {
		uint32_t metric;
		const char *name;
	} metrics[] = { { PLUMB_METRIC_WAIT_TIME, "wait.time" },
		        { PLUMB_METRIC_CPU_TIME, "cpu.time" },
		        { PLUMB_METRIC_OP_TIME, "op.time" } };
	const struct plumb_profile *p = l->study->profile;
	double most = 0;

	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
		struct amounts a = { 0 };
		double n, more = 0;
		bool done =
			new_amounts(p, &a) && tally_host(l, why->rank, metrics[i].metric, &a, &n);
		uint32_t line =
			done && n > 0 ? find_more(&a, p->frames_count, n, &more) : PLUMB_NONE;

		/* Samples know more than the operators' time. */
		if (line != PLUMB_NONE && more > most && more >= LINE_PART * (double)why->late_ns &&
		    !(why->metric && metrics[i].metric == PLUMB_METRIC_OP_TIME)) {
			most = more;
			why->line = line;
			why->metric = metrics[i].name;
			why->line_ns = llround(more);
			why->context = a.context[line];
		}
		free_amounts(&a);
		if (!done)
			return false;
	}
	return true;
}

int
plumb_late_explain(const struct plumb_late *l, uint32_t rank, struct plumb_late_why *why)
{
	const struct plumb_profile *p = l->study->profile;
	struct amounts kernels = { 0 }, gaps = { 0 };
	struct items items = { 0 };
	unsigned char *is = plumb_collective_contexts(p);
	double n = 0, more;
	bool done = is && new_amounts(p, &kernels) && new_amounts(p, &gaps);

	*why = (struct plumb_late_why){ .rank = rank,
		                        .slower = NAN,
		                        .kernels_more = NAN,
		                        .kernel = PLUMB_NONE,
		                        .line = PLUMB_NONE,
		                        .gap_line = PLUMB_NONE };
	compare_sums(l, why);
	for (uint32_t r = 0; done && r < l->waits.count; r++)
		if (r == rank || (n < OTHERS_MOST && is_other(l, r))) {
			n += r != rank;
			done = load_items(l, r, is, &items);
			if (done)
				tally_items(l, &items, r == rank, &kernels, &gaps);
		}
	if (done && n > 0 && why->cause == PLUMB_LATE_DEVICE) {
		compare_kernels(p, &kernels, n, why);
	} else if (done && n > 0 && why->cause == PLUMB_LATE_HOST) {
		why->gap_line = find_more(&gaps, p->frames_count, n, &more);
		if (more < LINE_PART * (double)why->late_ns)
			why->gap_line = PLUMB_NONE;
		if (why->gap_line != PLUMB_NONE) {
			why->gap_ns = llround(more);
			why->context = gaps.context[why->gap_line];
		}
		done = compare_hosts(l, why);
	}
	plumb_vec_free(&items.all);
	free_amounts(&kernels);
	free_amounts(&gaps);
	free(is);
	return done ? 0 : PLUMB_ESYSTEM;
}
