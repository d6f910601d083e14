/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/ranks.h"

#include <math.h>

#include "base/search.h"
#include "base/sort.h"

#define VOTERS 64 /* iterations that are looked up to find how far two ranks' numbers are apart */
#define LOOK_BACK 4096 /* operations of an iteration, for one of the same group */
#define SPREAD 0.01    /* of the duration: from here on one is said to come last */

/* ---- which iterations belong together ---- */

static const struct plumb_iteration_level *
level_of(const struct plumb_iterations *found, const struct plumb_matched_rank *rank)
{
	return &found->tracks[rank->place].levels[0];
}

static uint32_t
host_of(const struct plumb_profile *p, const struct plumb_iterations *found,
        const struct plumb_matched_rank *rank)
{
	uint32_t process = found->tracks[rank->place].process;

	return process < p->processes_count ? p->processes[process].host : PLUMB_NONE;
}

/* The main tracks of different devices, or of processes with different ranks. */
static int
find_ranks(const struct plumb_profile *p, const struct plumb_iterations *found,
           struct plumb_moments *const *moments, const struct plumb_marked *marked,
           struct plumb_rank_match *match)
{
	match->ranks = calloc((size_t)found->count + 1, sizeof *match->ranks);
	if (!match->ranks)
		return PLUMB_ESYSTEM;
	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *track = &found->tracks[t];
		int64_t rank = track->process < p->processes_count
		                       ? p->processes[track->process].rank
		                       : PLUMB_UNKNOWN;
		bool other = track->level_count > 0 && moments[t];

		for (uint32_t r = 0; other && r < match->rank_count; r++)
			other = rank != PLUMB_UNKNOWN && match->ranks[r].rank != PLUMB_UNKNOWN
			                ? rank != match->ranks[r].rank
			                : track->device !=
			                          found->tracks[match->ranks[r].place].device;
		if (other)
			match->ranks[match->rank_count++] = (struct plumb_matched_rank){
				.place = t, .rank = rank, .numbers = marked[t].numbers
			};
	}
	return 0;
}

/* Of one host (or of hosts that nothing is known of), and at the same time for half of the
 * shorter. */
static bool
have_common_clock(const struct plumb_profile *p, const struct plumb_iterations *found,
                  const struct plumb_matched_rank *x, const struct plumb_matched_rank *y)
{
	const struct plumb_iteration_level *a = level_of(found, x), *b = level_of(found, y);
	int64_t start = a->items[0].start_ns, end = a->items[a->count - 1].end_ns;
	int64_t other = b->items[0].start_ns, other_end = b->items[b->count - 1].end_ns;
	int64_t shorter = end - start < other_end - other ? end - start : other_end - other;
	int64_t both = (end < other_end ? end : other_end) - (start > other ? start : other);

	return host_of(p, found, x) == host_of(p, found, y) && both >= shorter / 2;
}

static uint32_t
find_nearest(const struct plumb_iteration_level *level, int64_t start)
{
	uint32_t low = plumb_search(i, level->count, level->items[i].start_ns < start);
	if (low == level->count ||
	    (low && start - level->items[low - 1].start_ns < level->items[low].start_ns - start))
		low--;
	return low;
}

/* How far the numbers of iterations that begin together are apart: what most of some say. */
static int64_t
shift_between(const struct plumb_iteration_level *a, const struct plumb_iteration_level *b)
{
	int64_t votes[VOTERS], best = 0;
	uint32_t n = 0, step = a->count / VOTERS + 1;
	int most = 0;

	for (uint32_t i = 0; i < a->count && n < VOTERS; i += step)
		if (a->items[i].start_ns >=
		            b->items[0].start_ns - (a->items[i].end_ns - a->items[i].start_ns) &&
		    a->items[i].start_ns <= b->items[b->count - 1].end_ns)
			votes[n++] = (int64_t)find_nearest(b, a->items[i].start_ns) - i;
	plumb_sort_numbers(votes, n);
	for (uint32_t i = 0, same = 0; i < n; i++) {
		same = i && votes[i] == votes[i - 1] ? same + 1 : 1;
		if ((int)same > most) {
			most = (int)same;
			best = votes[i];
		}
	}
	return best;
}

/* Do all ranks mark their steps alike, and agree with that? */
static bool
have_marks(const struct plumb_rank_match *match, const struct plumb_marked *marked)
{
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_marked *own = &marked[match->ranks[r].place];

		if (own->frame == PLUMB_NONE ||
		    strcmp(own->name, marked[match->ranks[0].place].name) != 0 ||
		    own->agree < own->steps)
			return false;
	}
	return true;
}

/* Do all ranks number their steps alike? */
static bool
have_numbers(const struct plumb_rank_match *match, const struct plumb_marked *marked)
{
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_marked *own = &marked[match->ranks[r].place];

		if (!own->numbers ||
		    strcmp(own->numbered, marked[match->ranks[0].place].numbered) != 0)
			return false;
	}
	return true;
}

/* How ranks are matched that have no numbers; first of each rank, and how many iterations all of
 * them have. */
static uint32_t
align_ranks(const struct plumb_iterations *found, const struct plumb_marked *marked,
            struct plumb_rank_match *match)
{
	int64_t before = 0, after = INT64_MAX;

	match->matched = match->common_clock         ? PLUMB_MATCHED_BY_TIME
	                 : have_marks(match, marked) ? PLUMB_MATCHED_BY_MARK
	                                             : PLUMB_MATCHED_BY_INDEX;
	for (uint32_t r = 0; r < match->rank_count; r++) {
		struct plumb_matched_rank *rank = &match->ranks[r];

		if (r && match->matched == PLUMB_MATCHED_BY_TIME)
			rank->first = shift_between(level_of(found, &match->ranks[0]),
			                            level_of(found, rank));
		else if (r && match->matched == PLUMB_MATCHED_BY_MARK)
			rank->first = (int64_t)marked[match->ranks[0].place].before -
			              marked[rank->place].before;
		/* Iteration k of rank 0 is k + first of this one. */
		if (-rank->first > before)
			before = -rank->first;
	}
	for (uint32_t r = 0; r < match->rank_count; r++) {
		match->ranks[r].first += before;
		int64_t left =
			(int64_t)level_of(found, &match->ranks[r])->count - match->ranks[r].first;
		if (left < after)
			after = left;
	}
	return after > 0 && after < INT64_MAX ? (uint32_t)after : 0;
}

/* The iteration from *AT on that the program gives NUMBER, or PLUMB_NONE; numbers ascend, but for
 * unknown ones. */
static uint32_t
find_numbered(const struct plumb_iterations *found, const struct plumb_matched_rank *rank,
              int64_t number, uint32_t *at)
{
	uint32_t count = level_of(found, rank)->count;

	while (*at < count && (rank->numbers[*at] == PLUMB_UNKNOWN || rank->numbers[*at] < number))
		(*at)++;
	return *at < count && rank->numbers[*at] == number ? *at : PLUMB_NONE;
}

/* The steps that all ranks have, into each; AT is room for a number of each rank. */
static uint32_t
match_steps(const struct plumb_iterations *found, struct plumb_rank_match *match, uint32_t *at)
{
	const struct plumb_matched_rank *own = &match->ranks[0];
	uint32_t count = 0, all = level_of(found, own)->count;

	for (uint32_t i = 0; i < all; i++) {
		struct plumb_rank_iteration *each = &match->each[(size_t)count * match->rank_count];
		bool everywhere = own->numbers[i] != PLUMB_UNKNOWN;

		each[0].iteration = i;
		for (uint32_t r = 1; everywhere && r < match->rank_count; r++) {
			each[r].iteration =
				find_numbered(found, &match->ranks[r], own->numbers[i], &at[r]);
			everywhere = each[r].iteration != PLUMB_NONE;
		}
		if (everywhere)
			match->items[count++].step = own->numbers[i];
	}
	return count;
}

static void
match_in_order(struct plumb_rank_match *match)
{
	for (uint32_t k = 0; k < match->count; k++) {
		match->items[k].step = PLUMB_UNKNOWN;
		for (uint32_t r = 0; r < match->rank_count; r++)
			match->each[(size_t)k * match->rank_count + r].iteration =
				(uint32_t)(match->ranks[r].first + k);
	}
}

/* Iterations that are in no item. */
static int
find_left_out(const struct plumb_iterations *found, struct plumb_rank_match *match)
{
	for (uint32_t r = 0; r < match->rank_count; r++) {
		uint32_t count = level_of(found, &match->ranks[r])->count;

		for (uint32_t i = 0, k = 0; i < count; i++) {
			while (k < match->count && plumb_rank_of(match, k, r)->iteration < i)
				k++;
			if (k < match->count && plumb_rank_of(match, k, r)->iteration == i)
				continue;
			struct plumb_left_out *out = plumb_vec_add(&match->left_out);
			if (!out)
				return PLUMB_ESYSTEM;
			*out = (struct plumb_left_out){ r, i };
		}
	}
	return 0;
}

/* Which iteration of each rank belongs to which item. AT is room for a number of each rank. */
static int
match_iterations(const struct plumb_profile *p, const struct plumb_iterations *found,
                 const struct plumb_marked *marked, struct plumb_rank_match *match, uint32_t *at)
{
	size_t most = (size_t)level_of(found, &match->ranks[0])->count + 1;

	match->items = calloc(most, sizeof *match->items);
	match->each = calloc(most * match->rank_count, sizeof *match->each);
	if (!match->items || !match->each)
		return PLUMB_ESYSTEM;
	match->common_clock = true;
	for (uint32_t r = 1; r < match->rank_count; r++)
		match->common_clock &=
			have_common_clock(p, found, &match->ranks[0], &match->ranks[r]);
	bool by_step = have_numbers(match, marked);
	if (by_step)
		match->count = match_steps(found, match, at);
	/* Ranks that have no step in common are not shifted until they do; time may tell that these
	 * count otherwise. */
	if (!by_step || (!match->count && match->common_clock)) {
		match->count = align_ranks(found, marked, match);
		match_in_order(match);
	}
	return find_left_out(found, match);
}

/* ---- waiting ---- */

/* A collective that is not known to be one with others. */
struct left {
	uint32_t rank; /* place in ranks */
	/* The same numbers in all ranks; PLUMB_NONE and 0 if the group is not known. */
	uint32_t group, name;
	uint32_t order; /* among the rank's own of these in the iteration */
	int64_t start_ns, ns;
};

/* A rank waits from the begin of a collective on. */
struct wait {
	uint32_t rank;
	int64_t start_ns, end_ns;
};

struct waiting {
	const struct plumb_iterations *found;
	struct plumb_moments *const *moments;
	struct plumb_rank_match *match;
	PLUMB_VEC(struct left) left;
	PLUMB_VEC(struct wait) waits; /* of the iteration at hand */
	int64_t *until;               /* by rank: what is counted already */
};

static bool
add_wait(struct waiting *w, uint32_t rank, int64_t start, int64_t ns)
{
	struct wait *added = plumb_vec_add(&w->waits);

	if (added)
		*added = (struct wait){ rank, start, start + ns };
	return added != NULL;
}

/* Waits of rank R in iteration ITEM; what has no others goes to LEFT. */
static bool
wait_in_sets(struct waiting *w, const struct plumb_moments *m, const struct plumb_iteration *item,
             uint32_t r)
{
	const struct plumb_collectives *together = &w->match->together;
	int64_t from = plumb_iteration_from(item);

	for (uint32_t i = plumb_moments_op(m, from);
	     i < m->ops_count && plumb_moments_span(m, i)->start_ns < item->end_ns; i++) {
		const struct plumb_span *op = plumb_moments_span(m, i);
		int64_t ns = op->end_ns - op->start_ns;
		const struct plumb_collective_member *member;
		struct left *added;

		if (m->ops[i].sort != PLUMB_STEP_COLLECTIVE)
			continue;
		member = plumb_collectives_member(together, plumb_moments_span_of(m, i));
		if (member && member->set != PLUMB_NONE) {
			w->match->collectives = true;
			if (!add_wait(w, r, op->start_ns,
			              ns - together->sets.items[member->set].shortest_ns))
				return false;
			continue;
		}
		added = plumb_vec_add(&w->left);
		if (!added)
			return false;
		*added = (struct left){ r, PLUMB_NONE, 0, 0, op->start_ns, ns };
		if (member && member->group != PLUMB_NONE) {
			added->group = member->group;
			added->name = member->name;
		}
		for (uint32_t k = w->left.count - 1, back = 0;
		     k && back < LOOK_BACK && w->left.items[k - 1].rank == r; k--, back++)
			if (w->left.items[k - 1].group == added->group &&
			    w->left.items[k - 1].name == added->name) {
				added->order = w->left.items[k - 1].order + 1;
				break;
			}
	}
	return true;
}

static int
by_order(const void *x, const void *y)
{
	const struct left *a = x, *b = y;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Waits in what is left of an iteration, by its order there. */
static bool
wait_in_order(struct waiting *w)
{
	if (w->left.count)
		qsort(w->left.items, w->left.count, sizeof *w->left.items, by_order);
	for (uint32_t i = 0, n; i < w->left.count; i += n) {
		const struct left *first = &w->left.items[i];
		int64_t shortest = first->ns;

		for (n = 1; i + n < w->left.count && first[n].group == first->group &&
		            first[n].name == first->name && first[n].order == first->order;
		     n++)
			if (first[n].ns < shortest)
				shortest = first[n].ns;
		if (n < (first->group == PLUMB_NONE ? w->match->rank_count : 2))
			continue;
		w->match->collectives = true;
		for (uint32_t k = 0; k < n; k++)
			if (!add_wait(w, first[k].rank, first[k].start_ns, first[k].ns - shortest))
				return false;
	}
	return true;
}

static int
by_rank_and_start(const void *x, const void *y)
{
	const struct wait *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Waiting of all ranks in item K. What a rank waits for in two collectives at once, on two streams,
 * counts once, and in the iteration in which it began. */
static bool
find_waiting(struct waiting *w, uint32_t k)
{
	struct plumb_rank_iteration *each = &w->match->each[(size_t)k * w->match->rank_count];

	w->left.count = w->waits.count = 0;
	for (uint32_t r = 0; r < w->match->rank_count; r++) {
		const struct plumb_matched_rank *rank = &w->match->ranks[r];

		each[r].waiting_ns = 0;
		if (!wait_in_sets(w, w->moments[rank->place],
		                  &level_of(w->found, rank)->items[each[r].iteration], r))
			return false;
	}
	if (!wait_in_order(w))
		return false;
	if (w->waits.count)
		qsort(w->waits.items, w->waits.count, sizeof *w->waits.items, by_rank_and_start);
	for (uint32_t i = 0; i < w->waits.count; i++) {
		const struct wait *one = &w->waits.items[i];
		int64_t *until = &w->until[one->rank];
		int64_t start = one->start_ns > *until ? one->start_ns : *until;

		if (one->end_ns <= start)
			continue;
		each[one->rank].waiting_ns += one->end_ns - start;
		*until = one->end_ns;
	}
	return true;
}

static int
find_all_waiting(const struct plumb_iterations *found, struct plumb_moments *const *moments,
                 struct plumb_rank_match *match)
{
	struct waiting w = { .found = found, .moments = moments, .match = match };
	bool done;

	w.until = malloc(match->rank_count * sizeof *w.until);
	for (uint32_t r = 0; w.until && r < match->rank_count; r++)
		w.until[r] = INT64_MIN;
	done = w.until;
	for (uint32_t k = 0; done && k < match->count; k++)
		done = find_waiting(&w, k);
	plumb_vec_free(&w.left);
	plumb_vec_free(&w.waits);
	free(w.until);
	return done ? 0 : PLUMB_ESYSTEM;
}

/* ---- who comes last ---- */

static int64_t
measure_lateness(const struct plumb_iterations *found, const struct plumb_rank_match *match,
                 uint32_t k, uint32_t r)
{
	const struct plumb_rank_iteration *each = plumb_rank_of(match, k, r);
	const struct plumb_iteration *item =
		&level_of(found, &match->ranks[r])->items[each->iteration];

	return match->by == PLUMB_STRAGGLER_BY_COLLECTIVES ? -each->waiting_ns
	       : match->by == PLUMB_STRAGGLER_BY_END       ? item->end_ns
	                                                   : item->end_ns - item->start_ns;
}

static void
measure_item(const struct plumb_iterations *found, struct plumb_rank_match *match, uint32_t k)
{
	struct plumb_matched_item *one = &match->items[k];
	int64_t start = INT64_MAX, start_most = INT64_MIN, end = INT64_MAX, end_most = INT64_MIN;
	int64_t least = INT64_MAX, most = INT64_MIN, duration = 0;

	one->straggler = PLUMB_NONE;
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_iteration *item =
			&level_of(found, &match->ranks[r])
				 ->items[plumb_rank_of(match, k, r)->iteration];
		int64_t late = measure_lateness(found, match, k, r);

		start = item->start_ns < start ? item->start_ns : start;
		start_most = item->start_ns > start_most ? item->start_ns : start_most;
		end = item->end_ns < end ? item->end_ns : end;
		end_most = item->end_ns > end_most ? item->end_ns : end_most;
		least = late < least ? late : least;
		if (late > most) {
			most = late;
			one->straggler = r;
		}
		if (item->end_ns - item->start_ns > duration)
			duration = item->end_ns - item->start_ns;
	}
	bool common = match->common_clock;

	one->start_skew_ns = common ? start_most - start : PLUMB_UNKNOWN;
	one->end_skew_ns = common ? end_most - end : PLUMB_UNKNOWN;
	if ((double)(most - least) < SPREAD * (double)duration)
		one->straggler = PLUMB_NONE;
	else
		match->ranks[one->straggler].straggles++;
}

static void
sum_up(const struct plumb_iterations *found, struct plumb_rank_match *match)
{
	for (uint32_t r = 0; r < match->rank_count; r++) {
		struct plumb_matched_rank *rank = &match->ranks[r];
		double waiting = 0, duration = 0;

		for (uint32_t k = 0; k < match->count; k++) {
			const struct plumb_rank_iteration *each = plumb_rank_of(match, k, r);
			const struct plumb_iteration *item =
				&level_of(found, rank)->items[each->iteration];

			waiting += (double)each->waiting_ns;
			duration += (double)(item->end_ns - item->start_ns);
			if (!match->collectives)
				match->each[(size_t)k * match->rank_count + r].waiting_ns =
					PLUMB_UNKNOWN;
		}
		rank->waiting_ns =
			match->collectives ? llround(waiting / match->count) : PLUMB_UNKNOWN;
		rank->duration_ns = llround(duration / match->count);
	}
}

int
plumb_ranks_match(const struct plumb_profile *p, const struct plumb_iterations *found,
                  struct plumb_moments *const *moments, const struct plumb_marked *marked,
                  struct plumb_rank_match *match)
{
	uint32_t *at = NULL;
	int code;

	*match = (struct plumb_rank_match){ 0 };
	if (find_ranks(p, found, moments, marked, match) < 0)
		return PLUMB_ESYSTEM;
	if (match->rank_count < 2) {
		match->rank_count = 0;
		return 0;
	}
	at = calloc(match->rank_count, sizeof *at);
	code = at ? match_iterations(p, found, marked, match, at) : PLUMB_ESYSTEM;
	free(at);
	if (!code)
		code = plumb_collectives_find(p, &match->together);
	if (!code)
		code = find_all_waiting(found, moments, match);
	if (code < 0)
		return code;
	match->by = match->collectives    ? PLUMB_STRAGGLER_BY_COLLECTIVES
	            : match->common_clock ? PLUMB_STRAGGLER_BY_END
	                                  : PLUMB_STRAGGLER_BY_DURATION;
	for (uint32_t k = 0; k < match->count; k++)
		measure_item(found, match, k);
	if (match->count)
		sum_up(found, match);
	return 0;
}

void
plumb_rank_match_free(struct plumb_rank_match *match)
{
	free(match->ranks);
	free(match->items);
	free(match->each);
	plumb_vec_free(&match->left_out);
	plumb_collectives_free(&match->together);
	*match = (struct plumb_rank_match){ 0 };
}

/* The iteration of rank R that belongs to NUMBER of rank OWN, also where other ranks have none;
 * PLUMB_NONE. */
static uint32_t
same_iteration(const struct plumb_rank_match *match, const struct plumb_iterations *found,
               uint32_t own, uint32_t number, uint32_t r)
{
	const struct plumb_matched_rank *from = &match->ranks[own], *to = &match->ranks[r];
	uint32_t at_first = 0;

	if (match->matched == PLUMB_MATCHED_BY_STEP)
		return number < level_of(found, from)->count &&
		                       from->numbers[number] != PLUMB_UNKNOWN
		               ? find_numbered(found, to, from->numbers[number], &at_first)
		               : PLUMB_NONE;
	int64_t at = number - from->first + to->first;

	return at >= 0 && at < level_of(found, to)->count ? (uint32_t)at : PLUMB_NONE;
}

uint32_t
plumb_rank_peers(const struct plumb_rank_match *match, const struct plumb_iterations *found,
                 struct plumb_moments *const *moments, uint32_t place, uint32_t number,
                 struct plumb_explain_peer *peers)
{
	uint32_t count = 0, own = PLUMB_NONE;

	for (uint32_t r = 0; r < match->rank_count; r++)
		if (match->ranks[r].place == place)
			own = r;
	if (own == PLUMB_NONE)
		return 0;
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_iteration_level *level = level_of(found, &match->ranks[r]);
		uint32_t at = r == own ? PLUMB_NONE : same_iteration(match, found, own, number, r);

		if (at == PLUMB_NONE)
			continue;
		peers[count++] = (struct plumb_explain_peer){ moments[match->ranks[r].place],
			                                      level,
			                                      at,
			                                      match->ranks[r].rank,
			                                      match->common_clock,
			                                      &match->together };
	}
	return count;
}
