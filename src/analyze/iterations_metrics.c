/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeepProf's metrics of iterations, and its verdict. An interval lies between the last kernel of
 * one iteration and the first of the next, on the main track. Large intervals that copies from the
 * host fill are copy-bound, others host-bound. The paper's overlap is the mean of the intervals'
 * ratios. The verdict uses the share of all their time. Otherwise a copy that fills every short
 * interval would get the blame for the few long ones that hold the time.
 *
 * The paper leaves out two cases. If other streams have kernels in an interval, the device does not
 * wait, so this time does not count. And a device may wait for the host between any two kernels:
 * then it has no work on any stream for most of the time, and the program is host-bound too.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/iterations_private.h"
#include "analyze/slope.h"
#include "analyze/statistic.h"

/* The paper prints intervals whose overlap with copies is 13.96 % (bound by them) and 0.047 %
 * (not): a tenth lies between. */
const struct plumb_iteration_limits plumb_iteration_limits = {
	.interval = 100000,
	.overlap = 100000,
	.idle = 300000,
};

#define OUTLIER_DEVIATIONS 5.0 /* robust ones, from the median */
#define OUTLIER_SHARE 0.05     /* of the median at least */
#define OUTLIER_APART 0.02     /* of the median, from the nearest one that is none */

/* How much of [START, END) the merged set covers. *FROM goes on as windows ascend. */
static int64_t
add_up_covered(const struct plumb_interval_ns *items, uint32_t count, uint32_t *from, int64_t start,
               int64_t end)
{
	int64_t sum = 0;

	while (*from < count && items[*from].end <= start)
		++*from;
	for (uint32_t i = *from; i < count && items[i].start < end; i++) {
		int64_t a = items[i].start > start ? items[i].start : start;
		int64_t b = items[i].end < end ? items[i].end : end;

		sum += b > a ? b - a : 0;
	}
	return sum;
}

static void
measure_kernels(const struct plumb_iteration_work *work, const struct plumb_round *round,
                struct plumb_iteration *item)
{
	const struct plumb_span *kernel = plumb_iteration_kernel(work, (uint32_t)round->start);
	int64_t gaps = 0, last = kernel->end_ns;

	item->ops = (uint32_t)(round->end - round->start);
	item->first = (uint32_t)round->start;
	item->edits = (uint32_t)round->edits;
	item->start_ns = kernel->start_ns;
	item->end_ns = kernel->end_ns;
	for (int32_t i = round->start; i < round->end; i++) {
		kernel = plumb_iteration_kernel(work, (uint32_t)i);
		plumb_iteration_add(&item->op_time_ns, kernel->end_ns - kernel->start_ns);
		if (i > round->start)
			plumb_iteration_add(&gaps, kernel->start_ns - last);
		last = kernel->end_ns;
		if (last > item->end_ns)
			item->end_ns = last;
	}
	item->op_gap_ns = item->ops > 1 ? gaps / (item->ops - 1) : PLUMB_UNKNOWN;
}

/* Bytes of copies that began before UNTIL, from *FROM on. */
static int64_t
add_up_copied(const struct plumb_iteration_work *work, uint32_t *from, int64_t until)
{
	int64_t sum = 0;

	for (; *from < work->copies.count && work->copies.items[*from].start_ns < until; ++*from) {
		int64_t size = work->copies.items[*from].bytes;

		if (size == PLUMB_UNKNOWN || sum == PLUMB_UNKNOWN ||
		    __builtin_add_overflow(sum, size, &sum))
			sum = PLUMB_UNKNOWN;
	}
	return sum;
}

static void
measure_items(const struct plumb_iteration_work *work, const struct plumb_loop *loop,
              struct plumb_iteration_level *level)
{
	uint32_t copying = 0, busy = 0, copies = 0, elsewhere = 0, since_start = 0;
	/* Of all before: where kernels of a stream overlap, the one before may end first. */
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < level->count; i++) {
		const struct plumb_round *round = &loop->rounds.items[i];
		struct plumb_iteration *item = &level->items[i];

		if (i && item[-1].end_ns > last)
			last = item[-1].end_ns;

		measure_kernels(work, round, item);
		item->copy_bytes = add_up_copied(work, &copies, item->end_ns);
		item->interval_ns = item->overlap_ns = item->idle_ns = PLUMB_UNKNOWN;
		item->elsewhere_ns = item->busy_ns = PLUMB_UNKNOWN;
		/* A long time between two rounds is no interval. */
		if (!i || round->start - round[-1].end > loop->period / 8)
			continue;
		item->interval_ns = item->start_ns > last ? item->start_ns - last : 0;
		item->overlap_ns = add_up_covered(work->copying.items, work->copying.count,
		                                  &copying, last, last + item->interval_ns);
		item->elsewhere_ns = add_up_covered(work->elsewhere.items, work->elsewhere.count,
		                                    &elsewhere, last, last + item->interval_ns);
		item->idle_ns = item->end_ns <= last
		                        ? 0
		                        : item->end_ns - last -
		                                  add_up_covered(work->busy.items, work->busy.count,
		                                                 &busy, last, item->end_ns);
		item[-1].busy_ns = add_up_covered(work->busy.items, work->busy.count, &since_start,
		                                  item[-1].start_ns, item->start_ns);
	}
}

/* Over the known numbers at AT in each item. */
static struct plumb_iteration_stat
stat_of(const struct plumb_iteration_level *level, size_t at, double *room)
{
	struct plumb_iteration_stat stat = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		                             PLUMB_UNKNOWN };
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < level->count; i++) {
		int64_t number = *(const int64_t *)((const char *)&level->items[i] + at);

		if (number != PLUMB_UNKNOWN)
			sum += room[n++] = (double)number;
	}
	if (!n)
		return stat;
	stat.average = llround(sum / n);
	stat.p50 = plumb_whole(plumb_median(room, n));
	stat.p95 = plumb_whole(plumb_percentile(room, n, 95));
	stat.most = plumb_whole(plumb_percentile(room, n, 100));
	return stat;
}

/*
 * How far from the median outliers begin: beyond the limit, and apart from those within. Between
 * 4.40 and 4.41 ms nothing changes, so what follows the last regular one closely is regular too.
 * The COUNT distances in AWAY ascend.
 */
static double
outliers_from(const double *away, uint32_t count, double limit, double apart)
{
	double last = 0;

	for (uint32_t i = 0; i < count && (away[i] <= limit || away[i] - last < apart); i++)
		last = away[i];
	return fmax(last, limit);
}

static int
by_size(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* On one side of the median: of those that are longer, or shorter. ROOM is for each iteration. */
static void
flag_side(struct plumb_iteration_level *level, double median, double limit, bool longer,
          double *room)
{
	uint32_t n = 0;
	double from;

	for (uint32_t i = 0; i < level->count; i++) {
		double away = (double)plumb_iteration_time(&level->items[i]) - median;

		if (level->items[i].interval_ns != PLUMB_UNKNOWN && (away > 0) == longer)
			room[n++] = fabs(away);
	}
	if (n)
		qsort(room, n, sizeof *room, by_size);
	from = outliers_from(room, n, limit, OUTLIER_APART * median);
	for (uint32_t i = 0; i < level->count; i++) {
		struct plumb_iteration *item = &level->items[i];
		double away = (double)plumb_iteration_time(item) - median;

		/* Without its interval one can only be too long. */
		if ((away > 0) == longer && (longer || item->interval_ns != PLUMB_UNKNOWN) &&
		    fabs(away) > from) {
			item->outlier = true;
			level->outliers++;
		}
	}
}

static void
flag_outliers(struct plumb_iteration_level *level, double *room)
{
	uint32_t n = 0;
	double median, limit;

	for (uint32_t i = 0; i < level->count; i++)
		if (level->items[i].interval_ns != PLUMB_UNKNOWN)
			room[n++] = (double)plumb_iteration_time(&level->items[i]);
	if (n < 2)
		return;
	median = plumb_median(room, n);
	limit = fmax(OUTLIER_DEVIATIONS * plumb_median_deviation(room, n, median),
	             OUTLIER_SHARE * median);
	flag_side(level, median, limit, true, room);
	flag_side(level, median, limit, false, room);
}

/* The lines through the times from end to end, but for outliers', and the numbers of kernels. ROOM
 * is for each of them. */
static void
fit_slopes(struct plumb_iteration_level *level, double *room)
{
	struct plumb_slope line;

	for (uint32_t i = 0; i < level->count; i++)
		room[i] = level->items[i].interval_ns == PLUMB_UNKNOWN || level->items[i].outlier
		                  ? NAN
		                  : (double)plumb_iteration_time(&level->items[i]);
	line = plumb_slope_fit(room, level->count);
	level->slope_ns = line.slope;
	level->slope_error_ns = line.error;
	for (uint32_t i = 0; i < level->count; i++)
		room[i] = level->items[i].ops;
	level->ops_slope = plumb_slope_fit(room, level->count).slope;
}

static void
judge_level(struct plumb_iteration_level *level, const struct plumb_iteration_limits *limits)
{
	double interval = 0, time = 0, idle = 0, overlap = 0, ratio = 0, elsewhere = 0;
	uint32_t with = 0;

	for (uint32_t i = 1; i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];

		if (item->interval_ns == PLUMB_UNKNOWN)
			continue;
		interval += (double)item->interval_ns;
		time += (double)plumb_iteration_time(item);
		idle += (double)item->idle_ns;
		elsewhere += (double)item->elsewhere_ns;
		if (item->interval_ns > 0) {
			overlap += (double)item->overlap_ns;
			ratio += (double)item->overlap_ns / (double)item->interval_ns;
			with++;
		}
	}
	level->overlap_ratio = with ? ratio / with : NAN;
	level->overlap_share = with ? overlap / interval : NAN;
	level->interval_share = time > 0 ? interval / time : NAN;
	level->idle_share = time > 0 ? idle / time : NAN;
	level->elsewhere_share = time > 0 ? elsewhere / time : NAN;
	if (!(time > 0))
		level->verdict = PLUMB_UNDECIDED;
	else if (plumb_iterations_wait_between(level, limits))
		level->verdict = level->overlap_share * 1e6 > (double)limits->overlap
		                         ? PLUMB_COPY_BOUND
		                         : PLUMB_HOST_BOUND;
	else
		level->verdict = level->idle_share * 1e6 > (double)limits->idle ? PLUMB_HOST_BOUND
		                                                                : PLUMB_GPU_BOUND;
}

/* In how many iterations the number AT is known. */
static uint32_t
count_known(const struct plumb_iteration_level *level, size_t at)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < level->count; i++)
		known += *(const int64_t *)((const char *)&level->items[i] + at) != PLUMB_UNKNOWN;
	return known;
}

int
plumb_iterations_measure(const struct plumb_iteration_work *work, const struct plumb_loop *loop,
                         const struct plumb_iteration_limits *limits,
                         struct plumb_iteration_level *level)
{
	double *room = calloc((size_t)loop->rounds.count + 1, sizeof *room);

	level->items = calloc((size_t)loop->rounds.count + 1, sizeof *level->items);
	if (!room || !level->items) {
		free(room);
		return PLUMB_ESYSTEM;
	}
	level->count = loop->rounds.count;
	measure_items(work, loop, level);
#define OVER(field) stat_of(level, offsetof(struct plumb_iteration, field), room)
	level->interval = OVER(interval_ns);
	level->overlap = OVER(overlap_ns);
	level->op_gap = OVER(op_gap_ns);
	level->op_time = OVER(op_time_ns);
	level->copy_bytes = OVER(copy_bytes);
	if (2 * count_known(level, offsetof(struct plumb_iteration, copy_bytes)) <= level->count)
		level->copy_bytes = (struct plumb_iteration_stat){ PLUMB_UNKNOWN, PLUMB_UNKNOWN,
			                                           PLUMB_UNKNOWN, PLUMB_UNKNOWN };
#undef OVER
	for (uint32_t i = 0; i < level->count; i++) /* as a number at its place, for a while */
		level->items[i].end_ns -= level->items[i].start_ns;
	level->duration = stat_of(level, offsetof(struct plumb_iteration, end_ns), room);
	for (uint32_t i = 0; i < level->count; i++)
		level->items[i].end_ns += level->items[i].start_ns;
	flag_outliers(level, room);
	fit_slopes(level, room);
	judge_level(level, limits);
	free(room);
	return 0;
}
