/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sweep in time for each group. What begins is put on a lane: a stack of spans of one level,
 * one inside the other, on one thread. For every level (and for every level of a thread) only the
 * two lanes are kept that reach furthest: what looks for a parent has none when the first ends too
 * early, one when the second does, and is ambiguous otherwise. What has ended needs no removal,
 * since it does not reach.
 */
#include "import/spans/levels.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

#define NONE UINT32_MAX

/* The two lanes of those put here that reach furthest. */
struct reach {
	uint32_t lane[2];
	int64_t end[2];
};

struct moment {
	uint64_t group;
	int64_t at, end;
	uint32_t span;
	bool asks; /* for a parent; else it begins */
};

struct thread_level {
	uint64_t thread;
	uint32_t level, lane;
	struct reach reach;
};

struct levels {
	struct plumb_level_span *spans;
	uint32_t count;
	enum plumb_parents rule;
	bool *launches;         /* it started something */
	uint32_t *enter, *last; /* preorder numbers by named parents */
	struct moment *moments;
	uint32_t moment_count;
	/* Of the group in hand. */
	struct reach reach[PLUMB_LEVEL_COUNT];
	PLUMB_VEC(struct thread_level) threads;
	struct plumb_map thread_map;
	/* By span: its lane, what holds it there, one further out, and how many do. */
	uint32_t *lane, *below, *jump, *depth;
	uint32_t *top; /* by lane */
	uint32_t lane_count;
	uint32_t *own; /* the span of its own level that holds it on its thread */
};

/* ---- named parents ---- */

/* Cuts each circle of parents at one span: the first that may be cut. */
static uint32_t
cut_circles(struct levels *l, bool named, uint32_t *seen)
{
	uint32_t cut = 0;
	memset(seen, 0, (size_t)l->count * sizeof *seen);
	for (uint32_t i = 0; i < l->count; i++) {
		uint32_t at = i;
		for (; at != NONE && !seen[at]; at = l->spans[at].parent)
			seen[at] = i + 1;
		if (at == NONE || seen[at] != i + 1)
			continue;
		/* AT is on a circle. Of all parents, one that was found here is given up first. */
		while (!named && l->spans[at].parent == l->spans[at].given)
			at = l->spans[at].parent;
		l->spans[at].parent = NONE;
		if (named)
			l->spans[at].given = NONE;
		l->spans[at].ambiguous |= !named;
		cut++;
	}
	return cut;
}

/* Numbers the forest of named parents in preorder. */
static int
number_forest(struct levels *l)
{
	uint32_t *child = malloc(((size_t)l->count + 1) * sizeof *child);
	uint32_t *next = malloc(((size_t)l->count + 1) * sizeof *next);
	uint32_t now = 0;
	if (!child || !next) {
		free(child);
		free(next);
		return PLUMB_ESYSTEM;
	}
	memset(child, 0xff, ((size_t)l->count + 1) * sizeof *child);
	for (uint32_t i = l->count; i-- > 0;) {
		uint32_t parent = l->spans[i].given;
		if (parent == NONE)
			continue;
		next[i] = child[parent];
		child[parent] = i;
	}
	for (uint32_t root = 0; root < l->count; root++) {
		if (l->spans[root].given != NONE)
			continue;
		uint32_t at = root;
		l->enter[at] = now++;
		for (;;) {
			if (child[at] != NONE) { /* down, each child once */
				uint32_t down = child[at];
				child[at] = next[down];
				at = down;
				l->enter[at] = now++;
				continue;
			}
			l->last[at] = now - 1;
			if (at == root)
				break;
			at = l->spans[at].given;
		}
	}
	free(child);
	free(next);
	return 0;
}

static bool
descends_from(const struct levels *l, uint32_t span, uint32_t from)
{
	return l->enter[span] > l->enter[from] && l->enter[span] <= l->last[from];
}

/* ---- lanes ---- */

static bool
encloses_span(const struct plumb_level_span *outer, const struct plumb_level_span *inner)
{
	return outer->start_ns <= inner->start_ns && outer->end_ns >= inner->end_ns;
}

static bool
same_time(const struct plumb_level_span *a, const struct plumb_level_span *b)
{
	return a->start_ns == b->start_ns && a->end_ns == b->end_ns;
}

static void
reach_add(struct reach *reach, uint32_t lane, int64_t end)
{
	int at = lane == reach->lane[0] ? 0 : 1;
	if (lane != reach->lane[at] && reach->lane[1] != NONE && end <= reach->end[1])
		return;
	if (lane == reach->lane[at] && end <= reach->end[at])
		return;
	if (reach->lane[0] == NONE)
		at = 0;
	reach->lane[at] = lane;
	reach->end[at] = end;
	if (at == 1 && end > reach->end[0]) {
		reach->lane[1] = reach->lane[0];
		reach->end[1] = reach->end[0];
		reach->lane[0] = lane;
		reach->end[0] = end;
	}
}

/* The state of a level on a thread, made when ADD says so; NULL: there is none, or memory is
 * out. */
static struct thread_level *
thread_level(struct levels *l, uint64_t thread, uint32_t level, bool add)
{
	uint64_t hash = plumb_hash_mix(thread, level);
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&l->thread_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&l->thread_map, &at))
		if (l->threads.items[i].thread == thread && l->threads.items[i].level == level)
			return &l->threads.items[i];
	struct thread_level *made = add ? plumb_vec_add(&l->threads) : NULL;
	if (!made || plumb_map_add(&l->thread_map, hash, l->threads.count - 1) < 0)
		return NULL;
	*made = (struct thread_level){ thread, level, NONE, { { NONE, NONE }, { 0, 0 } } };
	return made;
}

static uint32_t
lane_new(struct levels *l)
{
	l->top[l->lane_count] = NONE;
	return l->lane_count++;
}

/* The innermost span of a lane, from TOP outwards, that reaches END. */
static uint32_t
find_innermost(const struct levels *l, uint32_t top, int64_t end)
{
	while (top != NONE && l->spans[top].end_ns < end) {
		uint32_t jump = l->jump[top];
		top = jump != NONE && l->spans[jump].end_ns < end ? jump : l->below[top];
	}
	return top;
}

static void
lane_push(struct levels *l, uint32_t lane, uint32_t span)
{
	uint32_t top = l->top[lane], jump = top == NONE ? NONE : l->jump[top];
	uint32_t further = jump == NONE ? NONE : l->jump[jump];
	l->lane[span] = lane;
	l->below[span] = top;
	l->depth[span] = top == NONE ? 0 : l->depth[top] + 1;
	/* Jumps of lengths 1, 1, 3, 1, 1, 3, 7 …, so that a search takes a number of steps that is
	 * the logarithm. */
	l->jump[span] = further != NONE && l->depth[top] - l->depth[jump] ==
	                                           l->depth[jump] - l->depth[further]
	                        ? further
	                        : top;
	l->top[lane] = span;
}

/* The lane that takes SPAN; what has ended there is gone. */
static uint32_t
lane_for(struct levels *l, struct thread_level *thread, uint32_t span)
{
	struct plumb_level_span *own = &l->spans[span];
	uint32_t named = own->given, lane = thread ? thread->lane : NONE;
	if (!thread && named != NONE && l->lane[named] != NONE &&
	    l->spans[named].level == own->level && l->spans[named].group == own->group)
		lane = l->lane[named]; /* it says whose it is, so there is no choice between two */
	if (lane == NONE) {
		lane = lane_new(l);
		if (thread)
			thread->lane = lane;
		return lane;
	}
	while (l->top[lane] != NONE && l->spans[l->top[lane]].end_ns <= own->start_ns)
		l->top[lane] = l->below[l->top[lane]];
	uint32_t top = l->top[lane];
	if (top != NONE && (!encloses_span(&l->spans[top], own) ||
	                    (top != named && (!thread || same_time(&l->spans[top], own)))))
		return lane_new(l); /* it crosses, or nobody can say which is which */
	return lane;
}

static int
begin_span(struct levels *l, uint32_t span)
{
	struct plumb_level_span *own = &l->spans[span];
	struct thread_level *thread = NULL;
	if (own->thread && !(thread = thread_level(l, own->thread, own->level, true)))
		return PLUMB_ESYSTEM;
	uint32_t lane = lane_for(l, thread, span);
	if (thread && !own->asynchronous) {
		uint32_t holder = find_innermost(l, l->top[thread->lane], own->end_ns);
		while (holder != NONE && same_time(&l->spans[holder], own))
			holder = l->below[holder];
		l->own[span] = holder;
	}
	if (own->start_ns == own->end_ns)
		return 0; /* includes nothing */
	lane_push(l, lane, span);
	reach_add(&l->reach[own->level], lane, own->end_ns);
	if (thread)
		reach_add(&thread->reach, lane, own->end_ns);
	return 0;
}

/* ---- parents ---- */

/* The one span that reaches END; NONE, with AMBIGUOUS set if there are several. */
static uint32_t
find_only(const struct levels *l, const struct reach *reach, int64_t end, bool *ambiguous)
{
	if (reach->lane[0] == NONE || reach->end[0] < end)
		return NONE;
	if (reach->lane[1] != NONE && reach->end[1] >= end) {
		*ambiguous = true;
		return NONE;
	}
	return find_innermost(l, l->top[reach->lane[0]], end);
}

/* Finds the span that is open at AT and reaches END on the nearest of the levels [LOWEST, BELOW)
 * that has exactly one such span. THREAD 0: on any thread. */
static uint32_t
search_levels(struct levels *l, uint64_t thread, uint32_t lowest, uint32_t below, int64_t at,
              int64_t end, bool *ambiguous)
{
	uint32_t found = NONE;
	if (end <= at && __builtin_add_overflow(at, 1, &end))
		return NONE;
	for (uint32_t level = below; level-- > lowest && found == NONE;) {
		struct thread_level *own = thread ? thread_level(l, thread, level, false) : NULL;
		if (own || !thread)
			found = find_only(l, own ? &own->reach : &l->reach[level], end, ambiguous);
	}
	return found;
}

static void
find_parent(struct levels *l, uint32_t span, int64_t at)
{
	struct plumb_level_span *own = &l->spans[span];
	const struct plumb_level_span *named = own->given == NONE ? NULL : &l->spans[own->given];
	uint32_t lowest = named && named->level ? named->level + 1 : 1;
	bool point = l->rule == PLUMB_PARENTS_LAUNCH && l->launches[span];
	bool ambiguous = false;
	int64_t end = point ? at : own->end_ns;
	/* A call that waits includes whatever runs meanwhile, and has started none of it. */
	uint32_t below =
		own->asynchronous && own->level > PLUMB_LEVEL_CALL ? PLUMB_LEVEL_CALL : own->level;
	uint32_t found =
		own->thread ? search_levels(l, own->thread, 1, below, at, end, &ambiguous) : NONE;
	if (found == NONE)
		found = search_levels(l, 0, lowest, below, at, end, &ambiguous);
	else if (l->spans[found].level < lowest)
		found = NONE;
	if (found != NONE &&
	    (descends_from(l, found, span) || (named && !descends_from(l, found, own->given))))
		found = NONE;
	uint32_t holder = l->own[span];
	if (holder != NONE && named && !descends_from(l, holder, own->given))
		holder = NONE;
	if (holder != NONE && (found == NONE || l->spans[found].thread != own->thread ||
	                       !encloses_span(&l->spans[holder], &l->spans[found]))) {
		found = holder;
		ambiguous = false;
	}
	if (found != NONE)
		own->parent = found;
	own->ambiguous = ambiguous;
}

/* Does SPAN look for a parent in time, and when? What was launched has its parent already. */
static bool
wants_parent(struct levels *l, uint32_t span, int64_t *at)
{
	struct plumb_level_span *own = &l->spans[span];
	const struct plumb_level_span *named = own->given == NONE ? NULL : &l->spans[own->given];
	if (own->level <= PLUMB_LEVEL_APPLICATION && !own->thread)
		return false;
	if (own->level == PLUMB_LEVEL_UNKNOWN ||
	    (named && (named->group != own->group || named->level >= own->level)))
		return false;
	*at = own->start_ns;
	if (!own->asynchronous || l->rule == PLUMB_PARENTS_INCLUSION)
		return true;
	if (own->launch != NONE &&
	    (!named || own->launch == own->given || descends_from(l, own->launch, own->given) ||
	     l->spans[own->launch].given == own->given))
		own->parent = own->launch;
	return false;
}

static int
by_moment(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	if (a->asks != b->asks)
		return a->asks ? 1 : -1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

static void
gather_moments(struct levels *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		const struct plumb_level_span *s = &l->spans[i];
		int64_t at;
		if (s->level && s->end_ns >= s->start_ns)
			l->moments[l->moment_count++] =
				(struct moment){ s->group, s->start_ns, s->end_ns, i, false };
		if (wants_parent(l, i, &at))
			l->moments[l->moment_count++] =
				(struct moment){ s->group, at, s->end_ns, i, true };
	}
	if (l->moment_count)
		qsort(l->moments, l->moment_count, sizeof *l->moments, by_moment);
}

static void
next_group(struct levels *l)
{
	for (int i = 0; i < PLUMB_LEVEL_COUNT; i++)
		l->reach[i] = (struct reach){ { NONE, NONE }, { 0, 0 } };
	l->threads.count = 0;
	plumb_map_free(&l->thread_map);
}

static int
sweep_moments(struct levels *l)
{
	int code = 0;
	for (uint32_t i = 0; i < l->moment_count && !code; i++) {
		const struct moment *m = &l->moments[i];
		if (!i || m->group != l->moments[i - 1].group)
			next_group(l);
		if (m->asks)
			find_parent(l, m->span, m->at);
		else
			code = begin_span(l, m->span);
	}
	return code;
}

static int
find_all(struct levels *l, struct plumb_level_counts *counts)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct plumb_level_span *s = &l->spans[i];
		if (s->given >= l->count)
			s->given = NONE;
		if (s->launch >= l->count || s->launch == i)
			s->launch = NONE;
		if (s->level >= PLUMB_LEVEL_COUNT)
			s->level = PLUMB_LEVEL_UNKNOWN;
		if (s->launch != NONE && s->asynchronous)
			l->launches[s->launch] = true;
		s->parent = s->given;
		s->ambiguous = false;
	}
	counts->circles = cut_circles(l, true, l->depth);
	int code = number_forest(l);
	if (code)
		return code;
	memset(l->depth, 0, (size_t)l->count * sizeof *l->depth);
	gather_moments(l);
	code = sweep_moments(l);
	if (code)
		return code;
	cut_circles(l, false, l->depth);
	counts->ambiguous = 0;
	for (uint32_t i = 0; i < l->count; i++)
		counts->ambiguous += l->spans[i].ambiguous;
	return 0;
}

int
plumb_levels_find(struct plumb_level_span *spans, uint32_t count, enum plumb_parents rule,
                  struct plumb_level_counts *counts)
{
	struct levels l = { .spans = spans, .count = count, .rule = rule };
	size_t room = (size_t)count + 1;
	uint32_t *numbers = malloc(room * 8 * sizeof *numbers);
	l.launches = calloc(room, sizeof *l.launches);
	l.moments = malloc(room * 2 * sizeof *l.moments);
	int code = PLUMB_ESYSTEM;
	if (numbers && l.launches && l.moments) {
		uint32_t **parts[] = { &l.enter, &l.last, &l.lane,  &l.below,
			               &l.jump,  &l.top,  &l.depth, &l.own };
		memset(numbers, 0xff, room * 8 * sizeof *numbers);
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			*parts[i] = numbers + i * room;
		code = find_all(&l, counts);
	}
	plumb_vec_free(&l.threads);
	plumb_map_free(&l.thread_map);
	free(numbers);
	free(l.launches);
	free(l.moments);
	return code;
}
