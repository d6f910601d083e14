/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/rank_waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "model/collective.h"

#define NOTABLE_NS 20000
#define NOTABLE_PART 0.01 /* of a step */

/* ---- sets of time ---- */

static bool
add_time(struct plumb_rank_times *times, int64_t start, int64_t end)
{
	if (times->count == times->room) {
		struct plumb_interval_ns *grown =
			plumb_vec_grow(times->items, &times->room, (uint64_t)times->count + 1,
		                       sizeof *times->items);
		if (!grown)
			return false;
		times->items = grown;
	}
	times->items[times->count++] = (struct plumb_interval_ns){ start, end };
	return true;
}

static bool
merge_times(struct plumb_rank_times *times)
{
	int64_t sum = 0;

	plumb_intervals_merge(times->items, &times->count);
	free(times->before);
	times->before = malloc(((size_t)times->count + 1) * sizeof *times->before);
	for (uint32_t i = 0; times->before && i <= times->count; i++) {
		times->before[i] = sum;
		if (i < times->count)
			sum += times->items[i].end - times->items[i].start;
	}
	return times->before;
}

static void
free_times(struct plumb_rank_times *times)
{
	free(times->items);
	free(times->before);
}

/* How much of the time until AT is in TIMES. */
static int64_t
time_until(const struct plumb_rank_times *times, int64_t at)
{
	uint32_t i = plumb_search(k, times->count, times->items[k].start < at);
	int64_t over;

	if (!i)
		return 0;
	over = times->items[i - 1].end - at;
	return times->before[i] - (over > 0 ? over : 0);
}

static int64_t
time_within(const struct plumb_rank_times *times, int64_t from, int64_t to)
{
	return to > from ? time_until(times, to) - time_until(times, from) : 0;
}

/* How long both last at once between FROM and TO. */
static int64_t
common_within(const struct plumb_rank_times *a, const struct plumb_rank_times *b, int64_t from,
              int64_t to)
{
	uint32_t i = plumb_search(k, a->count, a->items[k].end <= from);
	int64_t sum = 0;

	for (; i < a->count && a->items[i].start < to; i++) {
		int64_t start = a->items[i].start > from ? a->items[i].start : from;
		int64_t end = a->items[i].end < to ? a->items[i].end : to;

		sum += time_within(b, start, end);
	}
	return sum;
}

/* ---- what each rank does ---- */

static bool
load_track(struct plumb_rank_waits *w, uint32_t track, const unsigned char *is)
{
	const struct plumb_profile *p = w->work.profile;
	struct plumb_waiting_rank *rank = &w->ranks[w->together.rank_of[track]];
	struct plumb_gpu_range range = plumb_gpu_work_of(&w->work, track);
	bool done = true;

	rank->process = p->tracks[track].process;
	rank->device = p->tracks[track].device;
	rank->rank = rank->process < p->processes_count ? p->processes[rank->process].rank
	                                                : PLUMB_UNKNOWN;
	for (uint32_t i = range.first; done && i < range.end; i++) {
		const struct plumb_span *s = &w->work.spans[i];

		if (!plumb_is_time(s->start_ns, s->end_ns))
			continue;
		rank->first_ns = s->start_ns < rank->first_ns ? s->start_ns : rank->first_ns;
		rank->last_ns = s->end_ns > rank->last_ns ? s->end_ns : rank->last_ns;
		rank->all += is[s->context];
		done = add_time(&rank->busy, s->start_ns, s->end_ns);
		if (done && (is[s->context] ||
		             plumb_context_frame(p, s->context)->kind == PLUMB_FRAME_KERNEL))
			done = add_time(is[s->context] ? &rank->collectives : &rank->compute,
			                s->start_ns, s->end_ns);
	}
	return done;
}

static bool
load_ranks(struct plumb_rank_waits *w)
{
	unsigned char *is = plumb_collective_contexts(w->work.profile);
	bool done;

	w->count = w->together.rank_count;
	w->ranks = calloc((size_t)w->count + 1, sizeof *w->ranks);
	done = is && w->ranks;
	for (uint32_t r = 0; done && r < w->count; r++)
		w->ranks[r] =
			(struct plumb_waiting_rank){ .first_ns = INT64_MAX, .last_ns = INT64_MIN };
	for (uint32_t t = 0; done && t < w->work.profile->tracks_count; t++)
		if (w->together.rank_of[t] != PLUMB_NONE)
			done = load_track(w, t, is);
	for (uint32_t r = 0; done && r < w->count; r++)
		done = merge_times(&w->ranks[r].compute) && merge_times(&w->ranks[r].collectives) &&
		       merge_times(&w->ranks[r].busy);
	free(is);
	return done;
}

/* ---- who waits for whom ---- */

struct finding {
	struct plumb_rank_waits *w;
	int64_t *until;      /* by rank: what is counted as waiting already */
	unsigned char *seen; /* by track: it had a set */
};

static int
by_end(const void *x, const void *y)
{
	const struct plumb_rank_set *a = x, *b = y;

	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return (a->set > b->set) - (a->set < b->set);
}

static const struct plumb_collective_member *
members_of(const struct plumb_rank_waits *w, uint32_t set)
{
	return &w->together.members.items[w->together.sets.items[set].first];
}

/* Is it the operation of two ranks that send to each other? */
static bool
is_pair(const struct plumb_rank_waits *w, const struct plumb_collective_member *m, uint32_t count)
{
	const char *name = plumb_text(w->work.profile, m->name);
	const char *operation = name ? plumb_collective_name(name) : NULL;

	operation = operation ? operation : name;
	return count == 2 && operation && !strcmp(operation, "SendRecv");
}

static bool
list_sets(struct plumb_rank_waits *w)
{
	for (uint32_t s = 0; s < w->together.sets.count; s++) {
		const struct plumb_collective_set *set = &w->together.sets.items[s];
		const struct plumb_collective_member *m = members_of(w, s);
		struct plumb_rank_set *added = plumb_vec_add(&w->sets);

		if (!added)
			return false;
		*added = (struct plumb_rank_set){ .set = s,
			                          .name = m->name,
			                          .end_ns = m->end_ns,
			                          .pair = is_pair(w, m, set->count) };
		for (uint32_t i = 1; i < set->count; i++)
			if (m[i].end_ns > added->end_ns)
				added->end_ns = m[i].end_ns;
	}
	if (w->sets.count)
		qsort(w->sets.items, w->sets.count, sizeof *w->sets.items, by_end);
	return true;
}

/* The member that came last: by the clock if the ends say that the clocks agree, else the one that
 * took the shortest time. *STARTS is when it came, or INT64_MAX for clocks that differ. */
static const struct plumb_collective_member *
find_last(const struct plumb_collectives *found, const struct plumb_collective_set *set,
          const struct plumb_collective_member *m, int64_t *starts)
{
	const struct plumb_collective_member *last = m, *shortest = m;
	int64_t end = m->end_ns, first_end = m->end_ns;

	for (uint32_t i = 1; i < set->count; i++) {
		if (m[i].start_ns > last->start_ns)
			last = &m[i];
		if (m[i].end_ns - m[i].start_ns < shortest->end_ns - shortest->start_ns)
			shortest = &m[i];
		end = m[i].end_ns > end ? m[i].end_ns : end;
		first_end = m[i].end_ns < first_end ? m[i].end_ns : first_end;
	}
	if (end - first_end <= plumb_collectives_apart(found, set->shortest_ns) ||
	    end - first_end <= set->shortest_ns) {
		*starts = last->start_ns;
		return last;
	}
	*starts = INT64_MAX;
	return shortest;
}

/* What M's rank waits in SET and was not counted yet. */
static int64_t
wait_of(struct finding *f, const struct plumb_collective_set *set,
        const struct plumb_collective_member *m, int64_t starts)
{
	struct plumb_waiting_rank *rank = &f->w->ranks[m->rank];
	int64_t longer = m->end_ns - m->start_ns - set->shortest_ns, *until = &f->until[m->rank];
	int64_t end, start = m->start_ns > *until ? m->start_ns : *until;

	if (starts != INT64_MAX && starts - m->start_ns < longer)
		longer = starts - m->start_ns;
	end = m->start_ns + longer;
	if (end <= start)
		return 0;
	*until = end;
	if (!add_time(&rank->waits, start, end))
		return -1;
	return end - start - time_within(&rank->compute, start, end);
}

static bool
wait_in_set(struct finding *f, struct plumb_rank_set *own)
{
	const struct plumb_collective_set *set = &f->w->together.sets.items[own->set];
	const struct plumb_collective_member *m = members_of(f->w, own->set), *last;
	int64_t starts;

	last = find_last(&f->w->together, set, m, &starts);
	own->last = last->rank;
	own->least_ns = INT64_MAX;
	own->opens = true;
	own->first_wait = f->w->waits.count;
	for (uint32_t i = 0; i < set->count; i++) {
		struct plumb_rank_wait *added;
		int64_t ns;

		own->opens = own->opens && !f->seen[m[i].track];
		f->w->ranks[m[i].rank].matched++;
		if (&m[i] == last)
			continue;
		ns = wait_of(f, set, &m[i], starts);
		added = ns < 0 ? NULL : plumb_vec_add(&f->w->waits);
		if (!added)
			return false;
		*added = (struct plumb_rank_wait){ m[i].rank, ns };
		own->wait_count++;
		own->least_ns = ns < own->least_ns ? ns : own->least_ns;
		own->most_ns = ns > own->most_ns ? ns : own->most_ns;
	}
	for (uint32_t i = 0; i < set->count; i++)
		f->seen[m[i].track] = 1;
	return true;
}

static bool
find_waits(struct plumb_rank_waits *w)
{
	struct finding f = { .w = w };
	bool done;

	f.until = malloc(((size_t)w->count + 1) * sizeof *f.until);
	f.seen = calloc((size_t)w->work.profile->tracks_count + 1, 1);
	done = f.until && f.seen && list_sets(w);
	for (uint32_t r = 0; done && r < w->count; r++)
		f.until[r] = INT64_MIN;
	for (uint32_t i = 0; done && i < w->sets.count; i++)
		done = wait_in_set(&f, &w->sets.items[i]);
	for (uint32_t r = 0; done && r < w->count; r++)
		done = merge_times(&w->ranks[r].waits);
	free(f.until);
	free(f.seen);
	return done;
}

/* ---- the whole ---- */

int
plumb_rank_waits_find(const struct plumb_profile *profile, struct plumb_rank_waits *w)
{
	bool done;

	*w = (struct plumb_rank_waits){ 0 };
	done = plumb_gpu_work_find(profile, &w->work) == 0 &&
	       plumb_collectives_find_in(&w->work, &w->together) == 0 && load_ranks(w) &&
	       find_waits(w);
	return done ? 0 : PLUMB_ESYSTEM;
}

void
plumb_rank_waits_free(struct plumb_rank_waits *w)
{
	for (uint32_t r = 0; w->ranks && r < w->count; r++) {
		free_times(&w->ranks[r].compute);
		free_times(&w->ranks[r].collectives);
		free_times(&w->ranks[r].waits);
		free_times(&w->ranks[r].busy);
	}
	free(w->ranks);
	plumb_vec_free(&w->sets);
	plumb_vec_free(&w->waits);
	plumb_collectives_free(&w->together);
	plumb_gpu_work_free(&w->work);
	*w = (struct plumb_rank_waits){ 0 };
}

struct plumb_rank_sums
plumb_rank_waits_sum(const struct plumb_rank_waits *w, uint32_t rank, int64_t from, int64_t to)
{
	const struct plumb_waiting_rank *r = &w->ranks[rank];
	struct plumb_rank_sums sums = { .waiting_ns = PLUMB_UNKNOWN };
	int64_t waits;

	if (to <= from)
		return sums;
	sums.whole_ns = to - from;
	sums.compute_ns = time_within(&r->compute, from, to);
	sums.hidden_ns = common_within(&r->collectives, &r->compute, from, to);
	sums.collectives_ns = time_within(&r->collectives, from, to) - sums.hidden_ns;
	sums.idle_ns = sums.whole_ns - time_within(&r->busy, from, to);
	sums.copies_ns = sums.whole_ns - sums.idle_ns - sums.compute_ns - sums.collectives_ns;
	if (!r->all || r->matched < r->all / 2 + r->all % 2)
		return sums;
	waits = time_within(&r->waits, from, to);
	sums.waiting_ns = waits - common_within(&r->waits, &r->compute, from, to);
	return sums;
}

/* ---- what is compared ---- */

static uint32_t
count_sets(const struct plumb_rank_waits *w, int64_t from, int64_t to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->sets.count; i++)
		n += w->sets.items[i].end_ns > from && w->sets.items[i].end_ns <= to;
	return n;
}

struct plumb_rank_range
plumb_rank_waits_range(const struct plumb_rank_waits *w, const struct plumb_iterations *found)
{
	struct plumb_rank_range range = { 0 };
	uint32_t most = 0;

	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *track = &found->tracks[t];
		const struct plumb_iteration_level *level = &track->levels[0];

		if (track->role != PLUMB_ROLE_MAIN || !track->level_count || level->count < 3 ||
		    level->count <= most)
			continue;
		int64_t from = plumb_iteration_from(&level->items[0]);
		int64_t to = level->items[level->count - 1].end_ns;

		if (count_sets(w, from, to) < w->sets.count / 2 + 1)
			continue;
		most = level->count;
		range = (struct plumb_rank_range){ from, to, level };
	}
	if (range.loop || !w->sets.count)
		return range;
	range.from_ns = range.to_ns = w->sets.items[w->sets.count - 1].end_ns;
	for (uint32_t i = w->sets.count; i-- > 0;)
		if (w->sets.items[i].opens) {
			range.from_ns = w->sets.items[i].end_ns;
			break;
		}
	return range;
}

int64_t
plumb_rank_notable(int64_t whole_ns, double steps)
{
	if (isnan(steps) || steps <= 0)
		return NOTABLE_NS;
	return llround(fmax(NOTABLE_NS, NOTABLE_PART * (double)whole_ns / steps));
}
