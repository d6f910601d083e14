/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies where on a main track: its kernels cut into stretches, of loops and of what is outside
 * of them, how often these come again in one order, and which loop is the main one.
 */
#include "analyze/iterations_private.h"

#define PERIOD_MOST 4 /* kernels that repeat outside of loops */
#define REPEATS 0.5   /* of what is outside repeats */
#define FEW 4         /* names of a loop that may be tuning */
#define WORTH 0.05    /* of such a loop's time outranks it */

struct cut {
	const struct plumb_iteration_work *work;
	const struct plumb_iteration_names *names;
	const struct plumb_loops *loops;
	struct plumb_iteration_track *track;
	PLUMB_VEC(struct plumb_iteration_stretch) stretches;
	int64_t *times; /* by symbol */
};

/* ---- stretches ---- */

static bool
add_stretch(struct cut *c, struct plumb_iteration_stretch stretch)
{
	struct plumb_iteration_stretch *added = plumb_vec_add(&c->stretches);

	if (added)
		*added = stretch;
	return added;
}

/* The loop whose next round comes first, and that round; PLUMB_NONE: there are no more. */
static uint32_t
next_round(const struct cut *c, const uint32_t *at)
{
	uint32_t next = PLUMB_NONE;

	for (uint32_t l = 0; l < c->loops->count; l++) {
		const struct plumb_loop *loop = &c->loops->items[l];

		if (at[l] < loop->rounds.count &&
		    (next == PLUMB_NONE ||
		     loop->rounds.items[at[l]].start <
		             c->loops->items[next].rounds.items[at[next]].start))
			next = l;
	}
	return next;
}

static bool
continues(const struct cut *c, uint32_t loop, int32_t from)
{
	const struct plumb_iteration_stretch *last =
		c->stretches.count ? &c->stretches.items[c->stretches.count - 1] : NULL;

	return last && last->loop == loop &&
	       from - (int32_t)last->end <= PLUMB_LOOP_APART * c->loops->items[loop].period;
}

/* Rounds of all loops in order of time; what lies between them is outside. */
static bool
find_stretches(struct cut *c)
{
	uint32_t *at = calloc((size_t)c->loops->count + 1, sizeof *at), l, reached = 0;
	bool done = at;

	while (done && (l = next_round(c, at)) != PLUMB_NONE) {
		const struct plumb_round *round = &c->loops->items[l].rounds.items[at[l]];
		uint32_t start = (uint32_t)round->start, end = (uint32_t)round->end;

		if (continues(c, l, round->start)) {
			c->stretches.items[c->stretches.count - 1].end = end;
			c->stretches.items[c->stretches.count - 1].items++;
		} else {
			if (start > reached)
				done = add_stretch(
					c, (struct plumb_iteration_stretch){ .loop = PLUMB_NONE,
				                                             .first = reached,
				                                             .end = start });
			done = done &&
			       add_stretch(c, (struct plumb_iteration_stretch){ .loop = l,
			                                                        .first = start,
			                                                        .end = end,
			                                                        .item = at[l],
			                                                        .items = 1 });
		}
		reached = end;
		at[l]++;
	}
	if (done && reached < (uint32_t)c->names->count)
		done = add_stretch(
			c, (struct plumb_iteration_stretch){ .loop = PLUMB_NONE,
		                                             .first = reached,
		                                             .end = (uint32_t)c->names->count });
	free(at);
	return done;
}

/* ---- what they hold ---- */

static void
measure_stretch(struct cut *c, struct plumb_iteration_stretch *stretch)
{
	stretch->start_ns = plumb_iteration_kernel(c->work, stretch->first)->start_ns;
	stretch->end_ns = stretch->start_ns;
	stretch->frame = PLUMB_NONE;
	for (uint32_t i = stretch->first; i < stretch->end; i++) {
		const struct plumb_span *kernel = plumb_iteration_kernel(c->work, i);
		int32_t symbol = c->names->text[i];

		plumb_iteration_add(&stretch->kernel_ns, kernel->end_ns - kernel->start_ns);
		plumb_iteration_add(&c->times[symbol], kernel->end_ns - kernel->start_ns);
		if (kernel->end_ns > stretch->end_ns)
			stretch->end_ns = kernel->end_ns;
	}
	for (uint32_t i = stretch->first; i < stretch->end; i++) {
		int32_t symbol = c->names->text[i];

		if (stretch->frame == PLUMB_NONE || c->times[symbol] > stretch->frame_ns) {
			stretch->frame = c->names->frames[symbol];
			stretch->frame_ns = c->times[symbol];
		}
	}
	for (uint32_t i = stretch->first; i < stretch->end; i++)
		c->times[c->names->text[i]] = 0;
}

/* The shortest distance, of few kernels, at which most of an outside STRETCH repeats. */
static void
find_period(const struct cut *c, struct plumb_iteration_stretch *stretch)
{
	uint32_t kernels = stretch->end - stretch->first;
	const int32_t *text = c->names->text + stretch->first;

	for (uint32_t d = 1; d <= PERIOD_MOST && 4 * d <= kernels && !stretch->period; d++) {
		uint32_t same = 0;

		for (uint32_t i = d; i < kernels; i++)
			same += text[i] == text[i - d];
		if (same > REPEATS * kernels)
			stretch->period = d;
	}
}

/* ---- loops ---- */

static void
measure_loop(struct cut *c, uint32_t l)
{
	struct plumb_iteration_loop *loop = &c->track->loops[l];
	const struct plumb_iteration_level *level = &loop->levels[0];

	loop->start_ns = level->items[0].start_ns;
	for (uint32_t i = 0; i < level->count; i++)
		if (level->items[i].end_ns > loop->end_ns || !i)
			loop->end_ns = level->items[i].end_ns;
	for (uint32_t s = 0; s < c->stretches.count; s++) {
		const struct plumb_iteration_stretch *stretch = &c->stretches.items[s];

		if (stretch->loop != l)
			continue;
		loop->stretches++;
		loop->kernels += stretch->end - stretch->first;
		plumb_iteration_add(&loop->time_ns, stretch->end_ns - stretch->start_ns);
	}
}

bool
plumb_iterations_few_names(const struct plumb_loop *loop)
{
	int32_t seen[FEW];
	int count = 0;

	for (int32_t i = 0; i < loop->period; i++) {
		int s = 0;

		while (s < count && seen[s] != loop->pattern[i])
			s++;
		if (s == FEW)
			return false;
		if (s == count)
			seen[count++] = loop->pattern[i];
	}
	return true;
}

/* Does loop A yield to B, although it takes more time? Layers do, and kernels that are tried out,
 * which come again and again before the loop that they are tried for. */
static bool
yields(const struct cut *c, uint32_t a, uint32_t b)
{
	const struct plumb_loop *few = &c->loops->items[a], *many = &c->loops->items[b];
	const struct plumb_iteration_loop *first = &c->track->loops[a],
					  *second = &c->track->loops[b];

	if (few->layers)
		return !many->layers && 2 * few->period <= many->period;
	if ((double)second->time_ns < WORTH * (double)first->time_ns)
		return false;
	return few->period < many->period && plumb_iterations_few_names(few) &&
	       !plumb_iterations_few_names(many) && first->end_ns <= second->start_ns;
}

static void
choose_main(struct cut *c)
{
	struct plumb_iteration_track *track = c->track;
	uint32_t best = PLUMB_NONE;

	for (uint32_t a = 0; a < track->loop_count; a++) {
		bool last = false;

		for (uint32_t b = 0; b < track->loop_count && !last; b++)
			last = b != a && yields(c, a, b);
		if (!last &&
		    (best == PLUMB_NONE || track->loops[a].time_ns > track->loops[best].time_ns))
			best = a;
	}
	if (best == PLUMB_NONE)
		return;
	track->main_loop = best;
	track->levels = track->loops[best].levels;
	track->level_count = track->loops[best].level_count;
}

/* How often the stretches of loops, from the first one on, come in one order of two or more. */
static bool
find_cycles(struct cut *c)
{
	PLUMB_VEC(uint32_t) order = { 0 };

	for (uint32_t s = 0; s < c->stretches.count; s++) {
		uint32_t *loop;

		if (c->stretches.items[s].loop == PLUMB_NONE)
			continue;
		loop = plumb_vec_add(&order);
		if (!loop) {
			plumb_vec_free(&order);
			return false;
		}
		*loop = c->stretches.items[s].loop;
	}
	for (uint32_t d = 2; 2 * d <= order.count && !c->track->cycles; d++) {
		uint32_t i = d;

		while (i < order.count && order.items[i] == order.items[i - d])
			i++;
		if (i == order.count)
			c->track->cycles = (order.count + d - 1) / d;
	}
	plumb_vec_free(&order);
	return true;
}

int
plumb_iterations_cut(const struct plumb_iteration_work *work,
                     const struct plumb_iteration_names *names, const struct plumb_loops *loops,
                     struct plumb_iteration_track *track)
{
	struct cut c = { .work = work, .names = names, .loops = loops, .track = track };
	int code = 0;

	c.times = calloc((size_t)names->alphabet + 1, sizeof *c.times);
	if (!c.times || !find_stretches(&c))
		code = PLUMB_ESYSTEM;
	for (uint32_t s = 0; !code && s < c.stretches.count; s++) {
		measure_stretch(&c, &c.stretches.items[s]);
		if (c.stretches.items[s].loop == PLUMB_NONE)
			find_period(&c, &c.stretches.items[s]);
	}
	for (uint32_t l = 0; !code && l < track->loop_count; l++)
		measure_loop(&c, l);
	if (!code) {
		choose_main(&c);
		code = find_cycles(&c) ? 0 : PLUMB_ESYSTEM;
	}
	for (uint32_t s = 0; !code && s + 1 < c.stretches.count; s++)
		if (c.stretches.items[s].loop == PLUMB_NONE &&
		    c.stretches.items[s + 1].loop != PLUMB_NONE && !c.stretches.items[s + 1].item)
			track->loops[c.stretches.items[s + 1].loop].levels[0].before_period =
				c.stretches.items[s].period;
	track->stretches = c.stretches.items;
	track->stretch_count = c.stretches.count;
	free(c.times);
	return code;
}
