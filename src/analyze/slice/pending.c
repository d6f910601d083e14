/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which signals may be pending at each instruction that waits for counters. A forward dataflow to a
 * fixpoint: a counter has all its producers since the last wait, through loops and joins, and of
 * what returns in order also how many younger ones there are at least and at most.
 *
 * An instruction that waits for a counter ends the way of what it waits for. So what was waited for
 * on all ways is not pending, whatever registers say.
 */
#include "analyze/slice/slice_private.h"

#define OLDEST 64 /* ages of this and more are one */

struct pending {
	uint32_t producer; /* an instruction; from insn_count on: what a procedure began with */
	uint8_t counter;
	uint8_t part, order;
	uint8_t youngest, oldest; /* how many younger ones of its order there are */
	uint16_t distance;        /* fewest issue cycles since it */
};

typedef PLUMB_VEC(struct pending) pending_vec;

struct flow {
	const struct slice_graph *graph;
	struct slice_links *links; /* NULL: not yet */
	pending_vec *in;           /* by block */
	uint8_t *dirty;            /* by block */
	uint64_t *open;            /* by procedure: counters that it leaves alone on some way */
	uint64_t used;             /* counters */
	uint8_t most[PLUMB_INSN_COUNTERS]; /* by counter: greatest threshold of a wait */
	pending_vec now, merged;
};

/* ---- one instruction ---- */

static bool
is_own(const struct flow *f, const struct pending *p)
{
	return p->producer < f->graph->insn_count;
}

static bool
is_in_order(const struct flow *f, const struct pending *p)
{
	return p->order || (is_own(f, p) && !f->graph->insns[p->producer]->variable);
}

/* What this wait may be about: it is released by it. */
static bool
may_wait(const struct flow *f, const struct pending *p, const struct plumb_wait_for *wait)
{
	if (!(wait->counters >> p->counter & 1) || !(wait->parts & p->part))
		return false;
	if (!is_in_order(f, p))
		return true;
	/* Arithmetic of a pipe takes a known time: the youngest that must be done is the last. */
	if (!f->graph->insns[p->producer]->variable)
		return p->youngest <= wait->threshold && p->oldest >= wait->threshold;
	return p->oldest >= wait->threshold;
}

static int
add_link(struct flow *f, const struct pending *p, const struct plumb_wait_for *wait, uint32_t insn)
{
	struct slice_link *link = plumb_vec_add(&f->links->all);
	bool in_order = is_in_order(f, p);

	if (!link)
		return PLUMB_ESYSTEM;
	link->from = p->producer;
	link->to = insn;
	link->via = PLUMB_HOP_COUNTER;
	link->counter = p->counter;
	link->parts = p->part;
	link->distance = p->distance;
	link->flags = SLICE_BY_COUNTER;
	if (!wait->threshold || (in_order && p->youngest >= wait->threshold))
		link->flags |= SLICE_PROVED;
	if (in_order && p->youngest > wait->threshold)
		link->flags |= SLICE_SHADOWED;
	return 0;
}

/* Forgets what WAIT releases. */
static void
release(struct flow *f, const struct plumb_wait_for *wait)
{
	uint8_t parts = wait->parts;
	uint32_t kept = 0;

	/* What is written was read before. */
	if (parts & PLUMB_SYNC_RESULT)
		parts |= PLUMB_SYNC_SOURCES;
	for (uint32_t i = 0; i < f->now.count; i++) {
		struct pending p = f->now.items[i];

		if ((wait->counters >> p.counter & 1) && (parts & p.part)) {
			if (!wait->threshold)
				continue;
			if (is_own(f, &p) && is_in_order(f, &p)) {
				if (p.youngest >= wait->threshold)
					continue;
				if (p.oldest >= wait->threshold)
					p.oldest = (uint8_t)(wait->threshold - 1);
			}
		}
		f->now.items[kept++] = p;
	}
	f->now.count = kept;
}

static bool
is_before(const struct pending *a, const struct pending *b)
{
	if (a->counter != b->counter)
		return a->counter < b->counter;
	if (a->producer != b->producer)
		return a->producer < b->producer;
	return a->part < b->part;
}

static int
signal(struct flow *f, uint32_t insn, const struct plumb_signal *signal)
{
	struct pending new = { .producer = insn,
		               .counter = signal->counter,
		               .part = signal->part,
		               .order = signal->order };
	uint32_t at = 0, kept = 0;

	if (signal->counter >= PLUMB_INSN_COUNTERS)
		return 0;
	/* Younger ones push the others back. Of arithmetic, what no wait reaches is gone. */
	for (uint32_t i = 0; i < f->now.count; i++) {
		struct pending p = f->now.items[i];

		if (p.counter == new.counter && is_own(f, &p) &&
		    p.order == new.order &&is_in_order(f, &p)) {
			p.youngest += p.youngest < OLDEST;
			p.oldest += p.oldest < OLDEST;
			if (!f->graph->insns[p.producer]->variable &&
			    p.youngest > f->most[p.counter])
				continue;
		}
		f->now.items[kept++] = p;
	}
	f->now.count = kept;
	while (at < f->now.count && is_before(&f->now.items[at], &new))
		at++;
	if (at < f->now.count && !is_before(&new, &f->now.items[at])) {
		f->now.items[at].youngest = 0;
		f->now.items[at].distance = 0;
		return 0;
	}
	if (!plumb_vec_add(&f->now))
		return PLUMB_ESYSTEM;
	memmove(&f->now.items[at + 1], &f->now.items[at],
	        (f->now.count - 1 - at) * sizeof *f->now.items);
	f->now.items[at] = new;
	return 0;
}

static int
step(struct flow *f, uint32_t at)
{
	const struct plumb_insn *insn = f->graph->insns[at];
	uint32_t cycles = slice_issue(insn);

	for (uint8_t w = 0; w < insn->waits_count && f->now.count; w++)
		for (uint32_t i = 0; f->links && i < f->now.count; i++)
			if (is_own(f, &f->now.items[i]) &&
			    may_wait(f, &f->now.items[i], &insn->waits[w]) &&
			    add_link(f, &f->now.items[i], &insn->waits[w], at) < 0)
				return PLUMB_ESYSTEM;
	/* A wait of its own that is not always executed may not have been. */
	if (insn->class != PLUMB_INSN_WAIT || insn->guard == PLUMB_INSN_ALWAYS)
		for (uint8_t w = 0; w < insn->waits_count && f->now.count; w++)
			release(f, &insn->waits[w]);
	for (uint8_t s = 0; s < insn->signals_count; s++)
		if (signal(f, at, &insn->signals[s]) < 0)
			return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < f->now.count; i++) {
		uint32_t sum = f->now.items[i].distance + cycles;

		f->now.items[i].distance = (uint16_t)(sum < SLICE_FAR ? sum : SLICE_FAR);
	}
	return 0;
}

/* ---- between blocks ---- */

static bool
passes(const struct flow *f, const struct slice_arc *arc, const struct pending *p)
{
	const struct slice_procedure *procedure;

	if (arc->kind == SLICE_ARC_NEXT)
		return true;
	procedure = &f->graph->procedures.items[arc->procedure];
	if (arc->kind == SLICE_ARC_OVER)
		return f->open[arc->procedure] >> p->counter & 1;
	if (!is_own(f, p))
		return false;
	return arc->kind == SLICE_ARC_CALL ||
	       slice_bit(procedure->blocks, f->graph->block_of[p->producer]);
}

/* Joins NOW into what block TO begins with. 1: that changed it. */
static int
join(struct flow *f, const struct slice_arc *arc)
{
	const struct slice_block *blocks = f->graph->blocks.items;
	bool back = blocks[arc->to].rank <= blocks[arc->from].rank, changed = false;
	pending_vec *in = &f->in[arc->to];
	uint32_t i = 0;

	f->merged.count = 0;
	for (uint32_t k = 0; k < f->now.count; k++) {
		struct pending p = f->now.items[k], *to;

		if (!passes(f, arc, &p))
			continue;
		for (; i < in->count && is_before(&in->items[i], &p); i++) {
			to = plumb_vec_add(&f->merged);
			if (!to)
				return PLUMB_ESYSTEM;
			*to = in->items[i];
		}
		to = plumb_vec_add(&f->merged);
		if (!to)
			return PLUMB_ESYSTEM;
		*to = p;
		if (i == in->count || is_before(&p, &in->items[i])) {
			changed = true;
			continue;
		}
		*to = in->items[i++];
		changed |= p.youngest < to->youngest || p.oldest > to->oldest ||
		           p.distance < to->distance;
		if (p.youngest < to->youngest)
			to->youngest = p.youngest;
		if (p.distance < to->distance)
			to->distance = p.distance;
		/* It grows with each turn of a loop, so it goes to the end at once. */
		if (p.oldest > to->oldest)
			to->oldest = back ? OLDEST : p.oldest;
	}
	if (!changed)
		return 0;
	for (; i < in->count; i++) {
		struct pending *to = plumb_vec_add(&f->merged);

		if (!to)
			return PLUMB_ESYSTEM;
		*to = in->items[i];
	}
	pending_vec old = *in;

	*in = f->merged;
	f->merged = old;
	return 1;
}

static void
open_procedures(struct flow *f, const struct slice_block *block)
{
	if (!block->returns)
		return;
	for (uint32_t i = 0; i < f->now.count; i++) {
		uint32_t p = f->now.items[i].producer - f->graph->insn_count;

		if (is_own(f, &f->now.items[i]) || f->open[p] >> f->now.items[i].counter & 1)
			continue;
		f->open[p] |= UINT64_C(1) << f->now.items[i].counter;
		for (uint32_t a = 0; a < f->graph->arcs.count; a++)
			if (f->graph->arcs.items[a].kind == SLICE_ARC_OVER &&
			    f->graph->arcs.items[a].procedure == p)
				f->dirty[f->graph->arcs.items[a].from] = 1;
	}
}

static int
play(struct flow *f, uint32_t b)
{
	const struct slice_block *block = &f->graph->blocks.items[b];

	f->now.count = 0;
	for (uint32_t i = 0; i < f->in[b].count; i++) {
		struct pending *to = plumb_vec_add(&f->now);

		if (!to)
			return PLUMB_ESYSTEM;
		*to = f->in[b].items[i];
	}
	for (uint32_t i = 0; i < block->count; i++)
		if (step(f, block->first + i) < 0)
			return PLUMB_ESYSTEM;
	return 0;
}

static int
to_fixpoint(struct flow *f)
{
	const struct slice_graph *g = f->graph;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t r = 0; r < g->blocks.count; r++) {
			uint32_t b = g->order[r];
			const struct slice_block *block = &g->blocks.items[b];

			if (!f->dirty[b])
				continue;
			f->dirty[b] = 0;
			changed = true;
			if (play(f, b) < 0)
				return PLUMB_ESYSTEM;
			open_procedures(f, block);
			for (uint32_t i = 0; i < block->out_count; i++) {
				const struct slice_arc *arc =
					&g->arcs.items[g->arcs_out[block->out + i]];
				int joined = join(f, arc);

				if (joined < 0)
					return joined;
				f->dirty[arc->to] |= joined;
			}
		}
	}
	return 0;
}

/* What procedures begin with stands for what their callers left pending. */
static int
seed(struct flow *f)
{
	const struct slice_graph *g = f->graph;

	for (uint32_t i = 0; i < g->insn_count; i++) {
		const struct plumb_insn *insn = g->insns[i];

		for (uint8_t s = 0; s < insn->signals_count; s++)
			if (insn->signals[s].counter < PLUMB_INSN_COUNTERS)
				f->used |= UINT64_C(1) << insn->signals[s].counter;
		for (uint8_t w = 0; w < insn->waits_count; w++)
			for (unsigned c = 0; c < PLUMB_INSN_COUNTERS; c++)
				if ((insn->waits[w].counters >> c & 1) &&
				    insn->waits[w].threshold > f->most[c])
					f->most[c] = insn->waits[w].threshold < OLDEST
					                     ? (uint8_t)insn->waits[w].threshold
					                     : OLDEST;
	}
	for (uint32_t p = 0; p < g->procedures.count; p++)
		for (uint8_t c = 0; c < PLUMB_INSN_COUNTERS; c++) {
			pending_vec *in = &f->in[g->procedures.items[p].entry];
			struct pending *new = f->used >> c & 1 ? plumb_vec_add(in) : NULL;

			if (!(f->used >> c & 1))
				continue;
			if (!new)
				return PLUMB_ESYSTEM;
			*new = (struct pending){ .producer = g->insn_count + p,
				                 .counter = c,
				                 .part = PLUMB_SYNC_RESULT | PLUMB_SYNC_SOURCES };
		}
	return 0;
}

int
plumb_slice_pending(const struct slice_graph *g, struct slice_links *links)
{
	struct flow f = { .graph = g };
	int result = PLUMB_ESYSTEM;

	f.in = calloc(g->blocks.count + 1, sizeof *f.in);
	f.dirty = malloc(g->blocks.count + 1);
	f.open = calloc(g->procedures.count + 1, sizeof *f.open);
	if (f.in && f.dirty && f.open) {
		memset(f.dirty, 1, g->blocks.count + 1);
		result = seed(&f);
	}
	if (!result)
		result = to_fixpoint(&f);
	f.links = links;
	for (uint32_t b = 0; !result && b < g->blocks.count; b++)
		result = play(&f, b);
	for (uint32_t b = 0; f.in && b < g->blocks.count; b++)
		plumb_vec_free(&f.in[b]);
	plumb_vec_free(&f.now);
	plumb_vec_free(&f.merged);
	free(f.in);
	free(f.dirty);
	free(f.open);
	return result;
}
