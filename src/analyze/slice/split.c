/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stall is blamed on, and how much of it. The reason of the samples says first which kind of
 * producer was waited for. Four factors weigh what is left:
 *
 *	distance    how much of the producer's time was left when the warp came here
 *	efficiency  how many sectors its access takes, of those that it needs
 *	issue       how often it ran before this instruction did, at most once each time
 *	match       whether it is of the kind that the reason names
 *
 * The samples are divided by weight in whole numbers, so that they add up.
 */
#include <math.h>

#include "analyze/slice/slice_private.h"

#define MOST_CAUSES 16
#define LEAST_LEFT 0.05 /* of a producer's time: it may always take longer than the tables say */
#define SOURCES_READ 24 /* cycles until an access has read its registers, as a rule */
#define APART 4.0       /* weights that differ by this factor tell two producers apart */
#define WRONG_KIND 0.25 /* match of a producer that is not of the reason's kind */
#define MANY_SECTORS 32 /* of an access whose address is data */

static bool
fits(unsigned reason, const struct plumb_insn *from, const struct slice_link *link)
{
	/* A barrier in memory is waited for as long as what it stands for takes. */
	bool is_barrier = plumb_slice_waits_for_copies(from);

	switch (reason) {
	case PLUMB_REASON_LONG:
		return slice_kind(from) == SLICE_LONG || is_barrier;
	case PLUMB_REASON_SHORT:
		return slice_kind(from) == SLICE_SHORT || is_barrier;
	case PLUMB_REASON_FIXED:
		return slice_kind(from) == SLICE_FIXED;
	case PLUMB_REASON_TENSOR_GROUP:
		return from->class == PLUMB_INSN_TENSOR;
	default:
		return link->flags & SLICE_BY_COUNTER;
	}
}

static double
sectors_of(const struct slice_access *access)
{
	if (access->spread == SLICE_SPREAD_DATA)
		return MANY_SECTORS;
	if (access->ways)
		return access->ways;
	return access->sectors;
}

/* How many times as long an access takes as one of lanes next to each other. */
static double
efficiency_of(const struct slice_access *access)
{
	double ideal = access->ways || !access->ideal ? 1 : access->ideal;

	return fmax(1, sectors_of(access) / ideal);
}

static struct slice_candidate *
add(struct slice_work *work, enum plumb_cause_kind kind, uint32_t insn)
{
	struct slice_candidate *candidate = plumb_vec_add(&work->candidates);

	if (candidate)
		*candidate = (struct slice_candidate){ .kind = kind,
			                               .insn = insn,
			                               .link = PLUMB_NONE,
			                               .weight = 1,
			                               .factors = { NAN, NAN, NAN, NAN },
			                               .confidence = 0.5 };
	return candidate;
}

static bool
is_data(const struct slice_work *work, const struct slice_link *link)
{
	return work->graph.insns[link->from]->writes_count &&
	       (!link->parts || link->parts & PLUMB_SYNC_RESULT);
}

double
plumb_slice_left(const struct slice_work *work, const struct slice_link *link)
{
	const struct plumb_insn *from = work->graph.insns[link->from];
	double typical = plumb_slice_latency(from).typical;

	/* The sources of an instruction are read long before its result is there. */
	if (!is_data(work, link) && link->parts == PLUMB_SYNC_SOURCES)
		typical = SOURCES_READ;
	return fmax(typical - link->distance, LEAST_LEFT * typical);
}

double
plumb_slice_often(const struct slice_work *work, const struct slice_link *link)
{
	const struct slice_graph *g = &work->graph;

	return fmin(1, g->blocks.items[g->block_of[link->from]].frequency /
	                       g->blocks.items[g->block_of[link->to]].frequency);
}

static int
add_link(struct slice_work *work, const struct slice_stall *stall, uint32_t l, bool is_fit)
{
	const struct slice_link *link = &work->links.all.items[l];
	const struct slice_access *access = &work->access[link->from];
	struct slice_candidate *candidate =
		add(work, is_data(work, link) ? PLUMB_CAUSE_DATA : PLUMB_CAUSE_SYNC, link->from);

	if (!candidate)
		return PLUMB_ESYSTEM;
	candidate->link = l;
	candidate->proved = link->flags & SLICE_PROVED;
	candidate->confidence = candidate->proved ? 0.95 : 0.6;
	if (stall->reason == PLUMB_REASON_FIXED && !(link->flags & SLICE_CALLED))
		candidate->confidence = 0.8;
	candidate->factors.distance = plumb_slice_left(work, link);
	if (stall->reason == PLUMB_REASON_FIXED)
		candidate->factors.distance = 1; /* all that are left are as late as can be */
	if (slice_kind(work->graph.insns[link->from]) != SLICE_FIXED && sectors_of(access) > 0)
		candidate->factors.efficiency = efficiency_of(access);
	candidate->factors.issue = plumb_slice_often(work, link);
	candidate->factors.match = is_fit ? 1 : WRONG_KIND;
	candidate->weight =
		candidate->factors.distance * candidate->factors.issue * candidate->factors.match;
	if (link->flags & SLICE_SHADOWED)
		candidate->weight /= 2;
	return 0;
}

/* The same, but where a barrier in memory is waited for, the copies that complete it. */
static int
add_links(struct slice_work *work, const struct slice_stall *stall, uint32_t l, bool is_fit)
{
	uint32_t from = work->links.all.items[l].from;
	bool found = false;

	for (uint32_t a = work->links.first[from];
	     plumb_slice_waits_for_copies(work->graph.insns[from]) &&
	     a < work->links.first[from + 1];
	     a++)
		if (work->links.all.items[a].via == PLUMB_HOP_SHARED) {
			found = true;
			if (add_link(work, stall, a, is_fit) < 0)
				return PLUMB_ESYSTEM;
		}
	return found ? 0 : add_link(work, stall, l, is_fit);
}

/* An efficiency that is not known counts as the mean of those that are. */
static void
weigh_efficiency(slice_candidate_vec *candidates)
{
	double sum = 0, n = 0;

	for (uint32_t i = 0; i < candidates->count; i++)
		if (!isnan(candidates->items[i].factors.efficiency)) {
			sum += candidates->items[i].factors.efficiency;
			n++;
		}
	for (uint32_t i = 0; n > 0 && i < candidates->count; i++) {
		struct slice_candidate *it = &candidates->items[i];

		it->weight *= isnan(it->factors.efficiency) ? sum / n : it->factors.efficiency;
	}
}

/* The cycles that the instruction before waits on purpose, if there is one. */
static uint32_t
issue_before(const struct slice_graph *g, uint32_t insn)
{
	const struct slice_block *block = &g->blocks.items[g->block_of[insn]];

	return insn > block->first ? g->insns[insn - 1]->issue : 2;
}

static int
add_data(struct slice_work *work, const struct slice_stall *stall)
{
	bool fitting = false;
	/* Without a wait on purpose it only took its turn, unless it waits for a pipe. */
	bool in_turn =
		stall->reason == PLUMB_REASON_FIXED && issue_before(&work->graph, stall->insn) == 1;

	for (int turn = 0; turn < 2 && !fitting; turn++)
		for (uint32_t l = work->links.first[stall->insn];
		     l < work->links.first[stall->insn + 1]; l++) {
			const struct slice_link *link = &work->links.all.items[l];
			const struct plumb_insn *from = work->graph.insns[link->from];

			if (!(link->flags & SLICE_KEPT) || link->via == PLUMB_HOP_SPILL ||
			    link->via == PLUMB_HOP_SHARED ||
			    (in_turn && !(link->flags & SLICE_BY_COUNTER)))
				continue;
			if (!turn && !fits(stall->reason, from, link) &&
			    !(link->flags & SLICE_CALLED))
				continue;
			/* What has a fixed time raises no scoreboard. */
			if (turn && (stall->reason == PLUMB_REASON_FIXED ||
			             !(link->flags & SLICE_BY_COUNTER)))
				continue;
			fitting |= !turn;
			if (add_links(work, stall, l, !turn) < 0)
				return PLUMB_ESYSTEM;
		}
	weigh_efficiency(&work->candidates);
	return 0;
}

int
plumb_slice_candidates(struct slice_work *work, const struct slice_stall *stall)
{
	int result = 0;

	work->candidates.count = 0;
	switch (stall->reason) {
	case PLUMB_REASON_FIXED:
	case PLUMB_REASON_LONG:
	case PLUMB_REASON_SHORT:
	case PLUMB_REASON_COUNTER:
	case PLUMB_REASON_TENSOR_GROUP:
		result = add_data(work, stall);
		break;
	default:
		break;
	}
	if (!result && !work->candidates.count)
		result = plumb_slice_others(work, stall);
	if (!result && !work->candidates.count) {
		struct slice_candidate *candidate = add(work, PLUMB_CAUSE_UNKNOWN, PLUMB_NONE);

		if (!candidate)
			return PLUMB_ESYSTEM;
		candidate->confidence = 0;
	}
	return result;
}

/* ---- division ---- */

static int
heavier(const void *x, const void *y)
{
	const struct slice_candidate *a = x, *b = y;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->insn > b->insn) - (a->insn < b->insn);
}

/* Whole parts of SAMPLES by weight; what is left goes to the largest remainders. */
static void
divide(const slice_candidate_vec *candidates, uint64_t samples, uint64_t *parts)
{
	double sum = 0, rest[MOST_CAUSES];
	uint64_t given = 0;
	uint32_t n = candidates->count;

	for (uint32_t i = 0; i < n; i++)
		sum += candidates->items[i].weight;
	for (uint32_t i = 0; i < n; i++) {
		double part = (double)samples * (candidates->items[i].weight / sum);

		parts[i] = (uint64_t)part;
		/* Rounding of large numbers must not give more than there is. */
		if (parts[i] > samples - given)
			parts[i] = samples - given;
		given += parts[i];
		rest[i] = part - (double)parts[i];
	}
	/* Mostly fewer than N are left; of numbers too large for a double it may be more. */
	if (samples - given > n) {
		parts[0] += samples - given - n;
		given = samples - n;
	}
	for (; given < samples; given++) {
		uint32_t most = 0;

		for (uint32_t i = 1; i < n; i++)
			if (rest[i] > rest[most])
				most = i;
		parts[most]++;
		rest[most] -= 1;
	}
}

static void
normalise(slice_candidate_vec *candidates, size_t field)
{
	double sum = 0;

	for (uint32_t i = 0; i < candidates->count; i++) {
		double value = *(double *)((char *)&candidates->items[i].factors + field);

		sum += isnan(value) ? 0 : value;
	}
	for (uint32_t i = 0; sum > 0 && i < candidates->count; i++)
		*(double *)((char *)&candidates->items[i].factors + field) /= sum;
}

static void
clean(slice_candidate_vec *candidates)
{
	double sum = 0;

	for (uint32_t i = 0; i < candidates->count; i++) {
		if (!(candidates->items[i].weight > 0) || isinf(candidates->items[i].weight))
			candidates->items[i].weight = 0;
		sum += candidates->items[i].weight;
	}
	for (uint32_t i = 0; !(sum > 0) && i < candidates->count; i++)
		candidates->items[i].weight = 1;
	qsort(candidates->items, candidates->count, sizeof *candidates->items, heavier);
	if (candidates->count > MOST_CAUSES)
		candidates->count = MOST_CAUSES;
}

/* Data of a counter: the hardware says only that one of them was not there. */
static bool
may_be_ambiguous(const struct slice_candidate *candidate)
{
	return candidate->link != PLUMB_NONE &&
	       (candidate->kind == PLUMB_CAUSE_DATA || candidate->kind == PLUMB_CAUSE_SYNC);
}

int
plumb_slice_split(struct slice_work *work, struct slice_stall *stall)
{
	slice_candidate_vec *candidates = &work->candidates;
	uint64_t parts[MOST_CAUSES];
	uint32_t alike = 0;
	double sum = 0;

	clean(candidates);
	divide(candidates, stall->samples, parts);
	for (size_t field = 0; field < sizeof candidates->items->factors; field += sizeof(double))
		normalise(candidates, field);
	for (uint32_t i = 0; i < candidates->count; i++) {
		sum += candidates->items[i].weight;
		alike += may_be_ambiguous(&candidates->items[i]) &&
		         may_be_ambiguous(&candidates->items[0]) &&
		         candidates->items[i].weight * APART > candidates->items[0].weight;
	}
	stall->first_cause = work->causes.count;
	for (uint32_t i = 0; i < candidates->count; i++) {
		const struct slice_candidate *from = &candidates->items[i];
		struct plumb_stall_cause *cause = plumb_vec_add(&work->causes);

		if (!cause)
			return PLUMB_ESYSTEM;
		cause->kind = from->kind;
		cause->has_place = from->insn != PLUMB_NONE;
		if (cause->has_place)
			cause->place = slice_place(&work->graph, from->insn);
		cause->samples = parts[i];
		cause->share = from->weight / sum;
		cause->factors = from->factors;
		cause->proved = from->proved;
		cause->confidence = from->confidence;
		/* Of several, even of unequal ones, the greatest may be the wrong one. */
		if (may_be_ambiguous(from))
			cause->confidence *= cause->share;
		cause->saving = NAN;
		/* The first ALIKE are those, because they are in order of weight. */
		cause->ambiguity = alike > 1 && i < alike;
		cause->chain_count = from->link != PLUMB_NONE;
		if (from->link != PLUMB_NONE) {
			const struct slice_link *link = &work->links.all.items[from->link];

			cause->chain[0] = (struct plumb_slice_hop){ cause->place, link->via,
				                                    link->regs, link->counter };
		}
	}
	stall->cause_count = candidates->count;
	return 0;
}
