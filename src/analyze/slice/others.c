/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls that are no data flow: barriers, full queues, flushes, fetches, and what an instruction
 * costs of its own. Each has a kind of its own, so nobody takes the instruction for its own cause
 * without a reason.
 */
#include <math.h>

#include "analyze/slice/slice_private.h"

#define LOOK_BARRIER 4096 /* instructions back */
#define LOOK_QUEUE 64
#define LOOK_STORES 2048
#define LOOK_GROUP 1024
#define AFTER_WAIT 2 /* instructions between a wait and that at which it is counted */

struct look {
	struct slice_work *work;
	const struct slice_stall *stall;
	const struct plumb_insn *insn; /* of the stall */
	uint8_t pipe;
	bool by_tables; /* there are no samples between the barriers */
	bool touched;   /* between here and the barrier, memory is accessed */
	bool passed;    /* a barrier before that one; a wait for copies */
	int result;
};

static struct slice_candidate *
add(struct look *look, enum plumb_cause_kind kind, uint32_t insn, double weight, double confidence)
{
	struct slice_candidate *candidate = plumb_vec_add(&look->work->candidates);

	if (candidate)
		*candidate = (struct slice_candidate){ .kind = kind,
			                               .insn = insn,
			                               .link = PLUMB_NONE,
			                               .weight = weight,
			                               .factors = { NAN, NAN, NAN, NAN },
			                               .confidence = confidence };
	else
		look->result = PLUMB_ESYSTEM;
	return candidate;
}

static double
frequency(const struct look *look, uint32_t insn)
{
	return look->work->graph.blocks.items[look->work->graph.block_of[insn]].frequency;
}

/* ---- barriers ---- */

/* Time that warps spend at an instruction. Those that come late to the barrier were here, but not
 * those that wait at a barrier. */
static double
time_at(const struct look *look, uint32_t insn)
{
	const struct slice_work *work = look->work;

	if (look->by_tables)
		return frequency(look, insn) *
		       (slice_issue(work->graph.insns[insn]) +
		        (slice_kind(work->graph.insns[insn]) == SLICE_FIXED
		                 ? 0
		                 : plumb_slice_latency(work->graph.insns[insn]).typical));
	return (double)work->issued[insn] + (double)(work->waited[insn] - work->held[insn]);
}

/* Do some warps skip block B on the way to the stall, by their own number or by data? */
static bool
is_divided(const struct look *look, uint32_t b)
{
	const struct slice_graph *g = &look->work->graph;
	uint32_t to = g->block_of[look->stall->insn];
	uint64_t most = g->blocks.count;

	while (b != PLUMB_NONE && most--) {
		const struct slice_block *block;
		const struct slice_access *branch;
		uint32_t above = to, last;

		/* All warps that come to the barrier pass what dominates it. */
		while (above != PLUMB_NONE && above != b)
			above = g->blocks.items[above].above;
		if (above == b)
			return false;
		b = g->blocks.items[b].above;
		if (b == PLUMB_NONE)
			return false;
		block = &g->blocks.items[b];
		last = block->first + block->count - 1;
		branch = &look->work->access[last];
		if (g->insns[last]->class == PLUMB_INSN_BRANCH &&
		    g->insns[last]->guard != PLUMB_INSN_ALWAYS &&
		    (branch->spread != SLICE_SPREAD_STRIDE || branch->stride))
			return true;
	}
	return false;
}

static bool
is_same_barrier(const struct plumb_insn *a, const struct plumb_insn *b)
{
	return b->class == PLUMB_INSN_BARRIER &&
	       (a->class != PLUMB_INSN_BARRIER || a->barrier == b->barrier || a->barrier == 0xff ||
	        b->barrier == 0xff);
}

static bool
visit_late(void *own, uint32_t insn, uint32_t away)
{
	struct look *look = own;
	const struct slice_graph *g = &look->work->graph;
	double time;

	(void)away;
	if (look->result)
		return false;
	/* The hardware may let a warp go on from a barrier until it accesses memory or comes to the
	 * next one (BAR.SYNC.DEFER_BLOCKING). Then it waits there for the one before. */
	if (is_same_barrier(look->insn, g->insns[insn])) {
		if (look->touched || look->passed)
			return false;
		look->passed = true;
		return true;
	}
	look->touched |= g->insns[insn]->space != PLUMB_SPACE_NONE &&
	                 g->insns[insn]->space != PLUMB_SPACE_CONSTANT;
	time = time_at(look, insn);
	/* What all warps pass makes nobody late: of code that some skip, time counts more. */
	if (time > 0) {
		double often = frequency(look, insn) / frequency(look, look->stall->insn);
		bool divides =
			look->work->access[insn].some_lanes || is_divided(look, g->block_of[insn]);
		struct slice_candidate *candidate =
			add(look, PLUMB_CAUSE_BARRIER, insn, divides ? 4 * time : time,
		            look->by_tables ? 0.3
		            : divides       ? 0.7
		                            : 0.4);

		if (candidate)
			candidate->factors.issue = often;
	}
	slice_is_new(look->work, insn);
	return true;
}

/* The first stall of INSN or of an instruction behind it. */
static uint32_t
first_stall(const struct slice_work *work, uint32_t insn)
{
	uint32_t low = 0, high = work->stalls.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->stalls.items[middle].insn < insn)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of the time at FROM's instruction, what is a wait for something on this way is that one's. MOVED:
 * by instruction, how much weight it gains. */
static void
pass_on(const struct slice_work *work, const struct slice_candidate *from, double time,
        double *moved)
{
	uint32_t search = work->stamps[work->graph.insn_count];

	for (uint32_t s = first_stall(work, from->insn);
	     s < work->stalls.count && work->stalls.items[s].insn == from->insn; s++) {
		const struct slice_stall *stall = &work->stalls.items[s];
		double waited = (double)stall->samples + (double)stall->hidden;

		for (uint32_t c = 0; c < stall->cause_count; c++) {
			const struct plumb_stall_cause *cause =
				&work->causes.items[stall->first_cause + c];
			double part = from->weight * waited * cause->share / time;
			uint32_t to;

			if (cause->kind != PLUMB_CAUSE_DATA && cause->kind != PLUMB_CAUSE_SYNC)
				continue;
			to = slice_insn(&work->graph, cause->place);
			if (work->stamps[to] != search)
				continue;
			moved[to] += part;
			moved[from->insn] -= part;
		}
	}
}

/* A late warp may itself wait on its way to the barrier. Then what it waits for is what makes it
 * late, if that is on this way, too. */
static void
add_late(struct look *look)
{
	struct slice_work *work = look->work;
	uint32_t count;
	double *moved;

	slice_search(work);
	if (plumb_slice_back(&work->graph, look->stall->insn, LOOK_BARRIER, visit_late, look))
		look->result = PLUMB_ESYSTEM;
	count = work->candidates.count;
	if (look->result || look->by_tables || !count)
		return;
	moved = calloc(work->graph.insn_count, sizeof *moved);
	if (!moved) {
		look->result = PLUMB_ESYSTEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		pass_on(work, &work->candidates.items[i],
		        time_at(look, work->candidates.items[i].insn), moved);
	for (uint32_t i = 0; i < count; i++) {
		struct slice_candidate *candidate = &work->candidates.items[i];

		candidate->weight = fmax(0, candidate->weight + moved[candidate->insn]);
		moved[candidate->insn] = 0;
	}
	for (uint32_t i = 0; i < work->graph.insn_count; i++)
		if (moved[i] > 0)
			add(look, PLUMB_CAUSE_BARRIER, i, moved[i], 0.4);
	free(moved);
}

/* ---- queues ---- */

static bool
is_queued(const struct look *look, const struct plumb_insn *it)
{
	/* The queue of shared memory is also that of units with a variable time. */
	if (look->stall->reason == PLUMB_REASON_SHARED_THROTTLE &&
	    (it->pipe == PLUMB_PIPE_SPECIAL ||
	     (it->pipe == PLUMB_PIPE_NONE && slice_kind(it) == SLICE_SHORT)))
		return true;
	return it->pipe == look->pipe && it->pipe != PLUMB_PIPE_CONTROL;
}

/* How long an access holds up a queue: one turn for each sector of global memory, or for each time
 * that a bank of shared memory is asked. */
static double
turns_of(const struct look *look, uint32_t insn)
{
	const struct slice_access *access = &look->work->access[insn];
	uint32_t width = look->work->graph.insns[insn]->width;

	if (slice_is_far(look->work->graph.insns[insn])) {
		if (access->sectors)
			return access->sectors;
		return access->spread == SLICE_SPREAD_DATA ? 32 : access->ideal ? access->ideal : 4;
	}
	return (access->ways ? access->ways : 1) * (width > 4 ? width / 4 : 1);
}

static bool
visit_queue(void *own, uint32_t insn, uint32_t away)
{
	struct look *look = own;

	slice_is_new(look->work, insn);
	if (is_queued(look, look->work->graph.insns[insn]))
		add(look, PLUMB_CAUSE_THROTTLE, insn,
		    frequency(look, insn) * turns_of(look, insn) / (1 + away / 8.0), 0.6);
	return !look->result;
}

/* The instructions that fill the queue of the stall's reason most, wherever they are. They are
 * found once for each reason. */
static const struct slice_queue *
fullest(struct look *look)
{
	struct slice_work *work = look->work;
	struct slice_queue *queue = &work->queues[look->stall->reason % SLICE_QUEUES];

	if (queue->reason == look->stall->reason)
		return queue;
	*queue = (struct slice_queue){ .reason = look->stall->reason };
	for (uint32_t i = 0; i < work->graph.insn_count; i++) {
		double turns = is_queued(look, work->graph.insns[i])
		                       ? frequency(look, i) * turns_of(look, i)
		                       : 0;
		uint32_t at = queue->count;

		if (!(turns > 0) || (at == SLICE_QUEUED && !(turns > queue->turns[at - 1])))
			continue;
		queue->count += at < SLICE_QUEUED;
		for (at = queue->count - 1; at && queue->turns[at - 1] < turns; at--) {
			queue->insns[at] = queue->insns[at - 1];
			queue->turns[at] = queue->turns[at - 1];
		}
		queue->insns[at] = i;
		queue->turns[at] = turns;
	}
	return queue;
}

/* All warps of a multiprocessor share the queues of memory, and they are anywhere in the code. */
static int
add_queue(struct look *look)
{
	struct slice_work *work = look->work;
	bool is_shared = look->stall->reason != PLUMB_REASON_MATH_THROTTLE;
	const struct slice_queue *queue = is_shared && !look->by_tables ? fullest(look) : NULL;
	int result;

	/* The estimate is about the access itself. */
	if (look->by_tables) {
		add(look, PLUMB_CAUSE_THROTTLE, look->stall->insn, 1, 0.5);
		return look->result;
	}
	slice_search(work);
	result = plumb_slice_back(&work->graph, look->stall->insn, LOOK_QUEUE, visit_queue, look);
	for (uint32_t i = 0; !result && queue && i < queue->count; i++)
		if (slice_is_new(work, queue->insns[i]))
			visit_queue(look, queue->insns[i], LOOK_QUEUE);
	if (!result && !work->candidates.count)
		add(look, PLUMB_CAUSE_THROTTLE, look->stall->insn, 1, 0.4);
	return result;
}

static uint8_t
pipe_of(unsigned reason, const struct plumb_insn *insn)
{
	switch (reason) {
	case PLUMB_REASON_LOCAL_GLOBAL_THROTTLE:
		return PLUMB_PIPE_LOCAL_GLOBAL;
	case PLUMB_REASON_SHARED_THROTTLE:
		return PLUMB_PIPE_SHARED;
	case PLUMB_REASON_TEXTURE_THROTTLE:
		return PLUMB_PIPE_TEXTURE;
	default:
		return insn->pipe;
	}
}

/* ---- stores, groups ---- */

static bool
visit_stores(void *own, uint32_t insn, uint32_t away)
{
	struct look *look = own;
	const struct plumb_insn *it = look->work->graph.insns[insn];
	bool writes = it->class == PLUMB_INSN_STORE || it->class == PLUMB_INSN_ATOMIC;

	if (!slice_is_new(look->work, insn))
		return !look->result;
	if (it->class == PLUMB_INSN_MEMORY_BARRIER)
		return false;
	if (writes) {
		double left = plumb_slice_latency(it).upper;

		left = fmax(left - away, left / 20);
		add(look, PLUMB_CAUSE_SYNC, insn,
		    left * fmin(1, frequency(look, insn) / frequency(look, look->stall->insn)),
		    0.6);
	}
	return !look->result;
}

static bool
visit_group(void *own, uint32_t insn, uint32_t away)
{
	struct look *look = own;

	/* One that writes nothing only ends a group of them. */
	if (slice_is_new(look->work, insn) &&
	    look->work->graph.insns[insn]->class == PLUMB_INSN_TENSOR &&
	    look->work->graph.insns[insn]->writes_count)
		add(look, PLUMB_CAUSE_SYNC, insn,
		    fmin(1, frequency(look, insn) / frequency(look, look->stall->insn)) /
		            (1 + away / 8.0),
		    0.6);
	return !look->result;
}

/* The hardware counts a wait for copies at the instruction after it. */
static bool
visit_copies(void *own, uint32_t insn, uint32_t away)
{
	struct look *look = own;
	const struct plumb_insn *it = look->work->graph.insns[insn];

	if (!look->passed) {
		look->passed = it->class == PLUMB_INSN_WAIT;
		return look->passed || away < AFTER_WAIT;
	}
	if (it->class == PLUMB_INSN_COPY && slice_is_new(look->work, insn))
		add(look, PLUMB_CAUSE_SYNC, insn,
		    fmin(1, frequency(look, insn) / frequency(look, look->stall->insn)), 0.6);
	return !look->result;
}

/* ---- instructions ---- */

/* The branches that lead here, if it is the first of its block; else the instruction itself. */
static void
add_fetch(struct look *look)
{
	const struct slice_graph *g = &look->work->graph;
	uint32_t insn = look->stall->insn;
	const struct slice_block *block = &g->blocks.items[g->block_of[insn]];
	uint32_t count = look->work->candidates.count;

	for (uint32_t i = 0; insn == block->first && i < block->in_count; i++) {
		const struct slice_block *from =
			&g->blocks.items[g->arcs.items[g->arcs_in[block->in + i]].from];
		uint32_t last = from->first + from->count - 1;
		uint8_t class = g->insns[last]->class;

		if (class == PLUMB_INSN_BRANCH || class == PLUMB_INSN_CALL ||
		    class == PLUMB_INSN_RETURN)
			add(look, PLUMB_CAUSE_FETCH, last, from->frequency, 0.6);
	}
	if (look->work->candidates.count == count)
		add(look, PLUMB_CAUSE_FETCH, insn, 1, 0.7);
}

/* A constant operand of its own; else the constants that it waits for. */
static void
add_constant(struct look *look)
{
	const struct slice_work *work = look->work;
	uint32_t insn = look->stall->insn;

	for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++) {
		const struct slice_link *link = &work->links.all.items[l];

		if (!look->insn->reads_constant && (link->flags & SLICE_KEPT) &&
		    work->graph.insns[link->from]->space == PLUMB_SPACE_CONSTANT)
			add(look, PLUMB_CAUSE_FETCH, link->from, 1, 0.7);
	}
	if (!look->work->candidates.count)
		add(look, PLUMB_CAUSE_FETCH, insn, 1, look->insn->reads_constant ? 0.9 : 0.4);
}

int
plumb_slice_others(struct slice_work *work, const struct slice_stall *stall)
{
	struct look look = { .work = work,
		             .stall = stall,
		             .insn = work->graph.insns[stall->insn],
		             .by_tables = work->is_static };
	int result = 0;

	look.pipe = pipe_of(stall->reason, look.insn);
	slice_search(work); /* a loop leads to its first block twice */
	switch (stall->reason) {
	case PLUMB_REASON_BARRIER:
		/* NVIDIA counts the wait for a group of matrix instructions as one at a barrier. */
		if (look.insn->class == PLUMB_INSN_WAIT && look.pipe == PLUMB_PIPE_TENSOR) {
			result = plumb_slice_back(&work->graph, stall->insn, LOOK_GROUP,
			                          visit_group, &look);
			break;
		}
		add_late(&look);
		look.by_tables = true;
		look.touched = look.passed = false;
		if (!work->candidates.count)
			add_late(&look);
		break;
	case PLUMB_REASON_LOCAL_GLOBAL_THROTTLE:
	case PLUMB_REASON_SHARED_THROTTLE:
	case PLUMB_REASON_TEXTURE_THROTTLE:
	case PLUMB_REASON_MATH_THROTTLE:
		result = add_queue(&look);
		break;
	case PLUMB_REASON_MEMBAR:
	case PLUMB_REASON_DRAIN:
		result = plumb_slice_back(&work->graph, stall->insn, LOOK_STORES, visit_stores,
		                          &look);
		break;
	case PLUMB_REASON_LONG:
		look.passed = look.insn->class == PLUMB_INSN_WAIT;
		result = plumb_slice_back(&work->graph, stall->insn, LOOK_GROUP, visit_copies,
		                          &look);
		break;
	case PLUMB_REASON_TENSOR_GROUP:
		result =
			plumb_slice_back(&work->graph, stall->insn, LOOK_GROUP, visit_group, &look);
		break;
	case PLUMB_REASON_NO_INSTRUCTIONS:
	case PLUMB_REASON_BRANCH:
		add_fetch(&look);
		break;
	case PLUMB_REASON_CONSTANT:
		add_constant(&look);
		break;
	case PLUMB_REASON_FIXED:
		add(&look, PLUMB_CAUSE_STRUCTURAL, stall->insn, 1, 0.8);
		break;
	case PLUMB_REASON_DISPATCH:
	case PLUMB_REASON_SLEEP:
		add(&look, PLUMB_CAUSE_STRUCTURAL, stall->insn, 1, 0.7);
		break;
	default:
		break;
	}
	return result < 0 ? result : look.result;
}
