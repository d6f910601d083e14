/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of one process. */
#include <math.h>

#include "analyze/windows_private.h"

/* How far looks at the values are apart: a hundredth of the time since the first work, but at least
 * and at most this. Where more of them became one part, it is longer. */
#define LOOK_LEAST INT64_C(50000000)
#define LOOK_MOST INT64_C(1000000000)
#define LOOK_SHARE 100
#define SHORT 2   /* looks; parts that are shorter are never a loop of their own */
#define BETWEEN 4 /* looks; nor are mixtures of their neighbours that are shorter */

#define LEAST_STEPS 3    /* that a program marks in a part */
#define LEAST_EVEN 8     /* calls of a range that comes evenly */
#define FILLS 0.5        /* of the time: these calls */
#define EVEN 0.5         /* of their mean: how much they deviate from it */
#define NEAR 1.5         /* of their mean: the time between two parts that have such calls */
#define MARKED 0.8       /* of a loop's time: has marks: its iterations, if calls agree */
#define LEAST_WORK 0.001 /* of a part's time: in operators and kernels */
#define LEAST_EXTENT 0.5 /* of a part's time: from its first work to its last */
#define LEAST_DENSE 0.25 /* as dense as the loop's other parts: at its end, or if little repeats */
#define WARM_UP 0.1      /* of the later loops' time: a shorter loop before them is start-up */

static int64_t
wall_of(const struct plumb_windows_part *part)
{
	return part->end > part->start ? part->end - part->start : 1;
}

static double
density_of(const struct plumb_windows_part *part)
{
	return part->activity.ns / (double)wall_of(part);
}

static bool
is_loop(const struct plumb_windows_part *part)
{
	int64_t iterations;

	if (part->setup.ns > part->activity.ns)
		return false;
	if (part->gpu_loop != PLUMB_NONE)
		return true;
	if (!part->is_even && (double)part->extent < LEAST_EXTENT * (double)wall_of(part))
		return false;
	return part->steps >= LEAST_STEPS || part->is_even ||
	       (density_of(part) >= LEAST_WORK &&
	        plumb_activity_repeats(&part->activity, 1, &iterations));
}

struct search {
	struct plumb_windows_finding *finding;
	struct plumb_windows_part *parts; /* the process' own */
	uint32_t count;
	uint32_t first_loop; /* the process' own loops are from here on */
};

static struct plumb_windows_loop *
loop_of(const struct search *search, const struct plumb_windows_part *part)
{
	return part->loop == PLUMB_NONE ? NULL : &search->finding->loops.items[part->loop];
}

/* When work began, at the latest: imports come before it. */
static int64_t
find_first_work(const struct search *search)
{
	for (uint32_t i = 0; i < search->count; i++)
		if (search->parts[i].extent > 0)
			return search->parts[i].end - search->parts[i].extent;
	return search->parts[0].start;
}

/* How long a look was at the time of part AT. */
static int64_t
look_at(const struct search *search, uint32_t at)
{
	int64_t look = (search->parts[at].start - find_first_work(search)) / LOOK_SHARE;

	return look < LOOK_LEAST ? LOOK_LEAST : look > LOOK_MOST ? LOOK_MOST : look;
}

/* GPU work counts when it was delivered: a brief part may have that of the loop before the one
 * whose work ran then. */
static bool
put(const struct search *search, struct plumb_windows_part *part, uint32_t loop)
{
	struct plumb_windows_loop *into = &search->finding->loops.items[loop];
	int64_t look = look_at(search, (uint32_t)(part - search->parts));

	part->loop = loop;
	if (into->gpu_loop == PLUMB_NONE && (!into->wall || wall_of(part) >= BETWEEN * look))
		into->gpu_loop = part->gpu_loop;
	into->wall += wall_of(part);
	return plumb_activity_add(&into->activity, &part->activity);
}

/* ---- ranges that come evenly ---- */

/* Parts [FIRST, *END) have calls of the same range, with little between. Do these come evenly, and
 * do they fill the time? A burst of equal ranges in what is mostly something else does not. */
static bool
is_even_run(const struct search *search, uint32_t first, uint32_t *end)
{
	const struct plumb_windows_part *parts = search->parts;
	double calls = 0, ns = 0, squares = 0, wall = 0, mean;

	*end = first;
	for (uint32_t i = first; i < search->count; i++) {
		if (parts[i].range != parts[first].range)
			continue;
		if (i > first && (double)(parts[i].start - parts[*end - 1].end) > NEAR * ns / calls)
			break;
		calls += parts[i].range_calls;
		ns += parts[i].range_ns;
		squares += parts[i].range_squares;
		*end = i + 1;
	}
	wall = (double)(parts[*end - 1].end - parts[first].start);
	mean = ns / calls;
	return calls >= LEAST_EVEN && ns >= FILLS * wall &&
	       squares / calls - mean * mean <= EVEN * EVEN * mean * mean;
}

/* One range for each iteration, and little else, may be all that a program has. */
static void
find_even(const struct search *search)
{
	for (uint32_t i = 0, end; i < search->count; i = end) {
		end = i + 1;
		if (search->parts[i].range == PLUMB_NONE || !is_even_run(search, i, &end))
			continue;
		for (uint32_t k = i; k < end; k++) {
			search->parts[k].is_even = true;
			if (search->parts[k].range != search->parts[i].range)
				search->parts[k].range_calls = 0;
		}
	}
}

/* The loop that does what PART does, or PLUMB_NONE. */
static uint32_t
find_loop(const struct search *search, const struct plumb_windows_part *part)
{
	for (uint32_t i = search->first_loop; i < search->finding->loops.count; i++) {
		const struct plumb_windows_loop *loop = &search->finding->loops.items[i];
		if (loop->dropped)
			continue;
		if ((part->gpu_loop != PLUMB_NONE && part->gpu_loop == loop->gpu_loop) ||
		    plumb_activity_same(&part->activity, &loop->activity))
			return i;
	}
	return PLUMB_NONE;
}

static bool
put_loops(const struct search *search)
{
	for (uint32_t i = 0; i < search->count; i++) {
		struct plumb_windows_part *part = &search->parts[i];
		uint32_t loop;
		if (!is_loop(part))
			continue;
		/* Within a step that is longer than a look, no call ends. */
		loop = part->is_even && !(part->range_calls > 0) ? part[-1].loop
		                                                 : find_loop(search, part);
		if (loop == PLUMB_NONE) {
			struct plumb_windows_loop *added = plumb_vec_add(&search->finding->loops);
			if (!added)
				return false;
			*added = (struct plumb_windows_loop){ .process = part->process,
				                              .gpu_loop = PLUMB_NONE };
			loop = search->finding->loops.count - 1;
		}
		if (!put(search, part, loop))
			return false;
	}
	return true;
}

/* ---- what lies between ---- */

/* Of parts [FIRST, END), how much is of the neighbour before them; NAN: they are no mixture. */
static double
mixture_of(const struct search *search, uint32_t first, uint32_t end)
{
	struct plumb_activity what = { 0 };
	double part = NAN;
	bool ok = first > 0 && end < search->count;

	for (uint32_t i = first; ok && i < end; i++)
		ok = plumb_activity_add(&what, &search->parts[i].activity);
	if (ok)
		part = plumb_activity_mixture(&what, &search->parts[first - 1].activity,
		                              &search->parts[end].activity);
	plumb_activity_free(&what);
	return part;
}

/* The first part after FIRST that is not of the same loop. */
static uint32_t
end_of(const struct search *search, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < search->count && search->parts[end].loop == search->parts[first].loop)
		end++;
	return end;
}

/* A loop must somewhere last longer than a boundary. */
static void
drop_short_loops(const struct search *search)
{
	struct plumb_windows_loop *loops = search->finding->loops.items;

	for (uint32_t l = search->first_loop; l < search->finding->loops.count; l++)
		loops[l].dropped = loops[l].gpu_loop == PLUMB_NONE;
	for (uint32_t i = 0, end; i < search->count; i = end) {
		struct plumb_windows_loop *loop = loop_of(search, &search->parts[i]);
		int64_t look = look_at(search, i), wall;
		end = end_of(search, i);
		wall = search->parts[end - 1].end - search->parts[i].start;
		if (loop && (wall >= BETWEEN * look ||
		             (wall >= SHORT * look && isnan(mixture_of(search, i, end)))))
			loop->dropped = false;
	}
	for (uint32_t i = 0; i < search->count; i++) {
		struct plumb_windows_loop *loop = loop_of(search, &search->parts[i]);
		if (loop && loop->dropped)
			search->parts[i].loop = PLUMB_NONE;
	}
}

static double
dense_as(const struct plumb_windows_loop *loop)
{
	return loop->wall > 0 ? loop->activity.ns / (double)loop->wall : 0;
}

/* Parts in which too little repeats, but which do the same as a loop. */
static bool
put_alike(const struct search *search)
{
	for (uint32_t i = 0; i < search->count; i++) {
		struct plumb_windows_part *part = &search->parts[i];
		uint32_t loop = part->loop == PLUMB_NONE ? find_loop(search, part) : PLUMB_NONE;
		if (loop == PLUMB_NONE ||
		    density_of(part) < LEAST_DENSE * dense_as(&search->finding->loops.items[loop]))
			continue;
		if (!put(search, part, loop))
			return false;
	}
	return true;
}

/* A moment in which one loop ended and another began. */
static bool
put_mixtures(const struct search *search)
{
	for (uint32_t i = 1; i + 1 < search->count; i++) {
		struct plumb_windows_part *part = &search->parts[i];
		uint32_t before = part[-1].loop, after = part[1].loop;
		double share;
		if (part->loop != PLUMB_NONE || before == PLUMB_NONE || after == PLUMB_NONE ||
		    wall_of(part) >= BETWEEN * look_at(search, i))
			continue;
		share = mixture_of(search, i, i + 1);
		if (!isnan(share) && !put(search, part, share >= 0.5 ? before : after))
			return false;
	}
	return true;
}

/* ---- start-up ---- */

/* Is PART, next to the loop's OTHERS, mostly something else? */
static bool
is_sparse(const struct plumb_windows_part *part, const struct plumb_activity *others, int64_t wall)
{
	return wall > 0 && density_of(part) < LEAST_DENSE * others->ns / (double)wall;
}

/* What the other parts of the loop did, and how long. */
static bool
add_others(const struct search *search, uint32_t at, struct plumb_activity *others, int64_t *wall)
{
	for (uint32_t i = 0; i < search->count; i++) {
		if (i == at || search->parts[i].loop != search->parts[at].loop)
			continue;
		*wall += wall_of(&search->parts[i]);
		if (!plumb_activity_add(others, &search->parts[i].activity))
			return false;
	}
	return true;
}

/* The part in which start-up ended may look like the loop already: it does what the loop's other
 * parts do not, or it mostly does nothing that plumb sees. Likewise the part in which a loop ended
 * and something else took most of it. */
static bool
drop_moments(const struct search *search)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < search->count; i++) {
		struct plumb_windows_part *part = &search->parts[i];
		bool first = !i || part[-1].loop == PLUMB_NONE;
		bool last = i + 1 == search->count || part[1].loop == PLUMB_NONE;
		bool brief = wall_of(part) < BETWEEN * look_at(search, i);
		struct plumb_activity others = { 0 };
		int64_t wall = 0;
		if (part->loop == PLUMB_NONE || (!first && !last))
			continue;
		ok = add_others(search, i, &others, &wall);
		if (ok && wall &&
		    (is_sparse(part, &others, wall) ||
		     (first && brief && plumb_activity_differs(&part->activity, &others)))) {
			part->loop = PLUMB_NONE;
			i++; /* just one part */
		}
		plumb_activity_free(&others);
	}
	return ok;
}

/* When, how long and how often: from the parts that are left. */
static bool
sum_loops(const struct search *search)
{
	for (uint32_t l = search->first_loop; l < search->finding->loops.count; l++) {
		struct plumb_windows_loop *loop = &search->finding->loops.items[l];
		double steps = 0, even = 0;
		int64_t marked = 0, filled = 0;
		plumb_activity_free(&loop->activity);
		loop->wall = 0;
		loop->stretches = 0;
		for (uint32_t i = 0; i < search->count; i++) {
			const struct plumb_windows_part *part = &search->parts[i];
			if (part->loop != l)
				continue;
			if (!loop->wall)
				loop->start = part->start;
			loop->wall += wall_of(part);
			loop->stretches += !i || part[-1].loop != l;
			steps += part->steps;
			marked += part->steps >= LEAST_STEPS ? wall_of(part) : 0;
			even += part->is_even ? part->range_calls : 0;
			filled += part->is_even ? wall_of(part) : 0;
			if (!plumb_activity_add(&loop->activity, &part->activity))
				return false;
		}
		loop->dropped |= !loop->wall;
		plumb_activity_repeats(&loop->activity, loop->stretches, &loop->iterations);
		if ((double)marked > MARKED * (double)loop->wall && steps < 9e18 &&
		    (loop->iterations == PLUMB_UNKNOWN ||
		     plumb_activity_fits(&loop->activity, steps, loop->stretches)))
			loop->iterations = (int64_t)llround(steps);
		else if (loop->iterations == PLUMB_UNKNOWN && even < 9e18 &&
		         (double)filled > MARKED * (double)loop->wall)
			loop->iterations = (int64_t)llround(even);
	}
	return true;
}

static void
drop_warm_ups(const struct search *search)
{
	struct plumb_windows_loop *loops = search->finding->loops.items;

	for (uint32_t l = search->first_loop; l < search->finding->loops.count; l++) {
		int64_t later = 0;
		for (uint32_t m = search->first_loop; m < search->finding->loops.count; m++)
			if (!loops[m].dropped && loops[m].start > loops[l].start)
				later += loops[m].wall;
		if ((double)loops[l].wall < WARM_UP * (double)later)
			loops[l].dropped = true;
	}
	for (uint32_t i = 0; i < search->count; i++) {
		struct plumb_windows_loop *loop = loop_of(search, &search->parts[i]);
		if (loop && loop->dropped)
			search->parts[i].loop = PLUMB_NONE;
	}
}

bool
plumb_windows_loops(struct plumb_windows_finding *finding, uint32_t first, uint32_t end)
{
	struct search search = { finding, &finding->parts[first], end - first,
		                 finding->loops.count };

	find_even(&search);
	if (!put_loops(&search))
		return false;
	drop_short_loops(&search);
	if (!put_alike(&search) || !put_mixtures(&search) || !drop_moments(&search) ||
	    !sum_loops(&search))
		return false;
	drop_warm_ups(&search);
	return true;
}
