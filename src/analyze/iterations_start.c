/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where an iteration begins. A round could begin at any of its kernels, so the order of names
 * does not say. The first rule that finds a place decides:
 *
 *  1. The program marks it: the first kernel launched after the start of a range that comes once an
 *     iteration, or after the end of a range that ends one (marks.h).
 *  2. The wait before a kernel has the largest mean, and is well above any other. The longest wait
 *     of each kernel does not count, because one slow iteration proves nothing.
 *  3. In most iterations a copy from the host comes right before the kernel.
 *  4. The wait before the kernel is the longest after all.
 */
#include "analyze/iterations_private.h"
#include "base/search.h"

#define GAP_DISTINCT 1.5 /* times the next longest one */
#define PLACE_SHARE 0.5  /* of iterations that have a copy or marker at one place */

/* ---- when kernels were launched ---- */

static uint32_t
process_of(const struct plumb_iteration_work *work)
{
	return work->profile->tracks[plumb_iteration_kernel(work, 0)->track].process;
}

/* By when each kernel and all before it were launched, as far as is known; malloced. NULL: no
 * memory. A kernel without a call is taken to be launched with the one before: when it ran tells
 * nothing where the GPU lags behind. */
static int64_t *
find_launches(const struct plumb_iteration_work *work)
{
	const struct plumb_profile *p = work->profile;
	struct plumb_launches *launches =
		work->host ? NULL : plumb_track_index_launches(work->tracks);
	uint32_t process = process_of(work);
	int64_t *times = launches || work->host
	                         ? malloc(((size_t)work->kernels.count + 1) * sizeof *times)
	                         : NULL;

	for (uint32_t i = 0; times && i < work->kernels.count; i++) {
		const struct plumb_span *op = plumb_iteration_kernel(work, i);
		uint32_t call = work->host ? work->kernels.items[i]
		                           : plumb_launch_before(launches, process, op->correlation,
		                                                 op->start_ns);

		times[i] = call != PLUMB_NONE ? p->spans[call].start_ns
		           : i                ? times[i - 1]
		                              : op->start_ns;
		if (i && times[i] < times[i - 1])
			times[i] = times[i - 1];
	}
	return times;
}

/* ---- votes of places ---- */

struct turn {
	double *gap;  /* by place: time before its kernel, added up */
	double *most; /* by place: the longest of them, which one slow iteration may have made */
	uint32_t *seen, *votes;
	int32_t period, rounds;
	uint32_t stretches; /* without a long pause */
};

/* A vote for the place of the first kernel whose time is NS or later; TIMES by kernel, NULL: their
 * starts. */
static void
vote_after(struct turn *turn, const struct plumb_iteration_work *work, const int64_t *times,
           const int32_t *places, int64_t ns)
{
	uint32_t first =
		plumb_search(i, work->kernels.count,
	                     (times ? times[i] : plumb_iteration_kernel(work, i)->start_ns) < ns);

	if (first < work->kernels.count && places[first] >= 0)
		turn->votes[places[first]]++;
}

/* The place that most iterations voted for, or -1. Votes begin anew. */
static int32_t
most_voted(const struct turn *turn)
{
	int32_t best = 0;

	for (int32_t i = 1; i < turn->period; i++)
		if (turn->votes[i] > turn->votes[best])
			best = i;
	best = turn->votes[best] > PLACE_SHARE * turn->rounds ? best : -1;
	memset(turn->votes, 0, (size_t)turn->period * sizeof *turn->votes);
	return best;
}

static int32_t
longest_gap(const struct turn *turn, bool *distinct)
{
	double first = -1, second = -1;
	int32_t best = 0;

	for (int32_t i = 0; i < turn->period; i++) {
		bool several = turn->seen[i] >= 3;
		double gap = turn->seen[i] ? (turn->gap[i] - (several ? turn->most[i] : 0)) /
		                                     (turn->seen[i] - several)
		                           : 0;

		if (gap > first) {
			second = first;
			first = gap;
			best = i;
		} else if (gap > second) {
			second = gap;
		}
	}
	*distinct = first > 0 && first >= GAP_DISTINCT * second;
	return best;
}

/* ---- markers ---- */

/* When the first and the last kernel of the loop were launched; false: it has none. */
static bool
find_loop(const struct plumb_iteration_work *work, const int32_t *places, const int64_t *launches,
          struct plumb_marks_loop *loop)
{
	uint32_t first = 0, last = work->kernels.count;

	while (first < last && places[first] < 0)
		first++;
	while (last > first && places[last - 1] < 0)
		last--;
	if (first == last)
		return false;
	loop->from_ns = launches[first];
	loop->until_ns = launches[last - 1];
	return true;
}

static int32_t
by_marker(const struct plumb_iteration_work *work, const int32_t *places, struct turn *turn)
{
	const struct plumb_marks *marks = plumb_track_index_marks(work->tracks, process_of(work));
	int64_t *launches = marks && marks->groups.count ? find_launches(work) : NULL;
	struct plumb_marks_loop loop = { .iterations = (uint32_t)turn->rounds,
		                         .stretches = turn->stretches };
	uint32_t group = PLUMB_NONE;

	if (launches && find_loop(work, places, launches, &loop))
		group = plumb_marks_choose(marks, &loop, PLUMB_MARKS_ONCE);
	if (group == PLUMB_NONE) {
		free(launches);
		return -1;
	}
	for (uint32_t i = 0; i < marks->groups.items[group].count; i++) {
		const struct plumb_mark *mark = &marks->items[marks->groups.items[group].first + i];

		vote_after(turn, work, launches, places,
		           marks->groups.items[group].ends ? mark->end_ns : mark->start_ns);
	}
	free(launches);
	return most_voted(turn);
}

static int32_t
by_copy(const struct plumb_iteration_work *work, const int32_t *places, struct turn *turn)
{
	for (uint32_t i = 0; i < work->copies.count; i++)
		vote_after(turn, work, NULL, places, work->copies.items[i].start_ns);
	return most_voted(turn);
}

static int32_t
choose_start(const struct plumb_iteration_work *work, const int32_t *places, struct turn *turn,
             uint32_t *phase)
{
	int32_t gap, best;
	bool distinct;

	for (uint32_t i = 1; i < work->kernels.count; i++) {
		int64_t time = plumb_iteration_kernel(work, i)->start_ns -
		               plumb_iteration_kernel(work, i - 1)->end_ns;

		if (places[i] >= 0) {
			turn->gap[places[i]] += time > 0 ? (double)time : 0;
			if ((double)time > turn->most[places[i]])
				turn->most[places[i]] = (double)time;
			turn->seen[places[i]]++;
		}
	}
	gap = longest_gap(turn, &distinct);
	best = by_marker(work, places, turn);
	*phase = distinct && (best < 0 || best == gap) ? PLUMB_BY_GAP : PLUMB_BY_MARKER;
	if (distinct && best < 0)
		best = gap;
	if (best < 0) {
		*phase = PLUMB_BY_COPY;
		best = by_copy(work, places, turn);
	}
	if (best < 0) {
		*phase = PLUMB_BY_GAP;
		best = gap;
	}
	return best;
}

int
plumb_iterations_turn(const struct plumb_iteration_work *work, const int32_t *text,
                      struct plumb_loop *loop, int32_t *places, uint32_t *phase)
{
	int32_t count = (int32_t)work->kernels.count;
	struct turn turn = { .period = loop->period, .rounds = (int32_t)loop->rounds.count };
	int code = plumb_loop_places(loop, text, count, places);

	for (uint32_t r = 0; r < loop->rounds.count; r++)
		turn.stretches +=
			!r || loop->rounds.items[r].start - loop->rounds.items[r - 1].end >
				      PLUMB_LOOP_APART * loop->period;
	turn.gap = calloc((size_t)loop->period, sizeof *turn.gap);
	turn.most = calloc((size_t)loop->period, sizeof *turn.most);
	turn.seen = calloc((size_t)loop->period, sizeof *turn.seen);
	turn.votes = calloc((size_t)loop->period, sizeof *turn.votes);
	if (!turn.gap || !turn.most || !turn.seen || !turn.votes)
		code = PLUMB_ESYSTEM;
	if (!code) {
		int32_t by = choose_start(work, places, &turn, phase);

		code = by ? plumb_loop_turn(loop, text, count, by) : 0;
	}
	free(turn.gap);
	free(turn.most);
	free(turn.seen);
	free(turn.votes);
	return code;
}
