/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of several processes, and what is between them. */
#include "analyze/windows_private.h"

#define TOGETHER 0.8 /* of the shorter one's time: both are one loop of a job, as with loaders */
#define WITHIN 0.9   /* of a part's time, in a loop of another process */

/* How long part A overlaps with B. */
static int64_t
overlap_of(const struct plumb_windows_part *a, const struct plumb_windows_part *b)
{
	int64_t start = a->start > b->start ? a->start : b->start;
	int64_t end = a->end < b->end ? a->end : b->end;

	return end > start ? end - start : 0;
}

/* How long loops A and B last at the same time. */
static int64_t
overlap_of_loops(const struct plumb_windows_finding *finding, uint32_t a, uint32_t b)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < finding->count; i++)
		for (uint32_t k = 0; finding->parts[i].loop == a && k < finding->count; k++)
			if (finding->parts[k].loop == b)
				sum += overlap_of(&finding->parts[i], &finding->parts[k]);
	return sum;
}

/* Is loop A the same as B, another process'? */
static bool
is_same(const struct plumb_windows_finding *finding, uint32_t a, uint32_t b)
{
	const struct plumb_windows_loop *x = &finding->loops.items[a],
					*y = &finding->loops.items[b];
	int64_t both;

	if (plumb_activity_same(&x->activity, &y->activity))
		return true;
	both = overlap_of_loops(finding, a, b);
	return (double)both >= TOGETHER * (double)(x->wall < y->wall ? x->wall : y->wall);
}

/* The next loop that has no number: the one that began first. */
static uint32_t
next_loop(const struct plumb_windows_finding *finding)
{
	uint32_t next = PLUMB_NONE;

	for (uint32_t i = 0; i < finding->loops.count; i++) {
		const struct plumb_windows_loop *loop = &finding->loops.items[i];
		if (!loop->dropped && !loop->number &&
		    (next == PLUMB_NONE || loop->start < finding->loops.items[next].start))
			next = i;
	}
	return next;
}

static bool
has_number(const struct plumb_windows_finding *finding, uint32_t process, uint32_t number)
{
	for (uint32_t i = 0; i < finding->loops.count; i++)
		if (finding->loops.items[i].process == process &&
		    finding->loops.items[i].number == number)
			return true;
	return false;
}

/* Gives NUMBER to loop FIRST and to what is the same in other processes. */
static void
number_loop(struct plumb_windows_finding *finding, uint32_t first, uint32_t number)
{
	struct plumb_windows_loop *loops = finding->loops.items;

	loops[first].number = number;
	for (uint32_t i = 0; i < finding->loops.count; i++)
		if (!loops[i].dropped && !loops[i].number &&
		    !has_number(finding, loops[i].process, number) && is_same(finding, i, first))
			loops[i].number = number;
}

/* Of another process's loops the one that PART lies in, or PLUMB_NONE. */
static uint32_t
find_around(const struct plumb_windows_finding *finding, const struct plumb_windows_part *part)
{
	for (uint32_t l = 0; l < finding->loops.count; l++) {
		int64_t within = 0;
		for (uint32_t i = 0; !finding->loops.items[l].dropped && i < finding->count; i++)
			if (finding->parts[i].loop == l &&
			    finding->parts[i].process != part->process)
				within += overlap_of(part, &finding->parts[i]);
		if (within > 0 && (double)within > WITHIN * (double)(part->end - part->start))
			return l;
	}
	return PLUMB_NONE;
}

/* What PART is, if it is of no loop: start-up until START. */
static uint32_t
outside_of(const struct plumb_windows_part *part, int64_t start)
{
	return part->start + (part->end - part->start) / 2 < start ? PLUMB_WINDOW_STARTUP
	                                                           : PLUMB_WINDOW_REST;
}

/* Parts [FIRST, END) of a process, where some process has a loop from START on. */
static void
name_parts(struct plumb_windows_finding *finding, uint32_t first, uint32_t end, int64_t start)
{
	bool own = false;

	for (uint32_t i = first; i < end; i++) {
		struct plumb_windows_part *part = &finding->parts[i];
		if (part->loop != PLUMB_NONE && (!own || part->start < start)) {
			start = part->start;
			own = true;
		}
	}
	for (uint32_t i = first; i < end; i++) {
		struct plumb_windows_part *part = &finding->parts[i];
		uint32_t around = own ? PLUMB_NONE : find_around(finding, part);
		part->kind = part->loop != PLUMB_NONE || around != PLUMB_NONE
		                     ? PLUMB_WINDOW_LOOP
		                     : outside_of(part, start);
		part->around = around;
	}
}

uint32_t
plumb_windows_number_loops(struct plumb_windows_finding *finding, int64_t *start)
{
	uint32_t number = 0, loop;

	*start = INT64_MAX;
	while ((loop = next_loop(finding)) != PLUMB_NONE) {
		if (finding->loops.items[loop].start < *start)
			*start = finding->loops.items[loop].start;
		number_loop(finding, loop, ++number);
	}
	return number;
}

bool
plumb_windows_number(struct plumb_windows_finding *finding)
{
	int64_t start;
	uint32_t number = plumb_windows_number_loops(finding, &start);

	for (uint32_t first = 0, end; number && first < finding->count; first = end) {
		for (end = first + 1; end < finding->count; end++)
			if (finding->parts[end].process != finding->parts[first].process)
				break;
		name_parts(finding, first, end, start);
	}
	return number;
}
