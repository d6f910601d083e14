/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/slice/slice.h"

#include <math.h>

#include "analyze/slice/slice_private.h"
#include "base/sort.h"

const char *const plumb_cause_kind_names[PLUMB_CAUSE_UNKNOWN + 1] = {
	"data", "sync", "barrier", "fetch", "throttle", "structural", "unknown",
};

/* ---- samples ---- */

struct sample {
	uint32_t insn;
	uint16_t reason;
	bool issued;
	uint64_t count;
};

static uint64_t
by_place(const void *row, int which, const void *data)
{
	const struct sample *sample = row;

	(void)data;
	return which ? sample->reason : sample->insn;
}

/* Sums may not overflow: a file may say anything. */
static void
add_to(uint64_t *sum, uint64_t count)
{
	if (__builtin_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
}

static int
add_stall(struct slice_work *work, const struct sample *samples, uint32_t count)
{
	struct slice_stall *stall;

	for (uint32_t i = 0; i < count; i++)
		add_to(samples->reason == PLUMB_REASON_SELECTED ? &work->issued[samples->insn]
		                                                : &work->waited[samples->insn],
		       samples[i].count);
	for (uint32_t i = 0; i < count && samples->reason == PLUMB_REASON_BARRIER; i++)
		add_to(&work->held[samples->insn], samples[i].count);
	if (plumb_slice_reason_class(samples->reason) == PLUMB_STALL_NONE)
		return 0;
	stall = plumb_vec_add(&work->stalls);
	if (!stall)
		return PLUMB_ESYSTEM;
	stall->insn = samples->insn;
	stall->reason = samples->reason;
	for (uint32_t i = 0; i < count; i++)
		add_to(samples[i].issued ? &stall->hidden : &stall->samples, samples[i].count);
	return 0;
}

static int
add_samples(struct slice_work *work, struct plumb_sliced *slice)
{
	const struct plumb_slice_input *input = work->input;
	PLUMB_VEC(struct sample) rows = { 0 };
	int result = 0;

	for (uint32_t i = 0; !result && i < input->sample_count; i++) {
		const struct plumb_slice_sample *sample = &input->samples[i];
		struct sample *row;

		add_to(&slice->samples, sample->count);
		if (sample->place.function >= input->function_count ||
		    sample->place.insn >= input->functions[sample->place.function].insns->count) {
			add_to(&slice->outside, sample->count);
			continue;
		}
		if (!sample->count)
			continue;
		row = plumb_vec_add(&rows);
		if (!row)
			result = PLUMB_ESYSTEM;
		else
			*row = (struct sample){ slice_insn(&work->graph, sample->place),
				                sample->reason < PLUMB_REASON_COUNT
				                        ? sample->reason
				                        : (uint16_t)PLUMB_REASON_OTHER,
				                sample->issued, sample->count };
	}
	if (!result)
		result = plumb_sort_rows(rows.items, rows.count, sizeof *rows.items, by_place, 2,
		                         NULL);
	for (uint32_t from = 0, to; !result && from < rows.count; from = to) {
		for (to = from + 1; to < rows.count &&
		                    rows.items[to].insn == rows.items[from].insn &&
		                    rows.items[to].reason == rows.items[from].reason;)
			to++;
		result = add_stall(work, &rows.items[from], to - from);
	}
	plumb_vec_free(&rows);
	return result;
}

/* ---- without samples ---- */

/* Warps of a multiprocessor that want a unit of memory at the same time, as a rule. */
#define QUEUED 16

/* Cycles that INSN's access takes longer than one of lanes next to each other, because other warps
 * have such accesses, too. */
static double
extra_turns(const struct slice_work *work, uint32_t insn)
{
	const struct plumb_insn *it = work->graph.insns[insn];
	const struct slice_access *access = &work->access[insn];
	double turns = 0;

	if (it->class != PLUMB_INSN_LOAD && it->class != PLUMB_INSN_STORE &&
	    it->class != PLUMB_INSN_ATOMIC)
		return 0;
	if (it->class == PLUMB_INSN_ATOMIC) /* one lane after the other updates one address */
		turns = access->spread == SLICE_SPREAD_STRIDE && !access->stride ? 31 : 0;
	else if (it->space == PLUMB_SPACE_CONSTANT)
		turns = access->spread == SLICE_SPREAD_DATA || access->stride ? 31 : 0;
	else if (!slice_is_far(it))
		turns = access->ways > 1
		                ? (access->ways - 1.0) * (it->width > 4 ? it->width / 4 : 1)
		                : 0;
	else if (access->spread == SLICE_SPREAD_RUNTIME)
		turns = 32.0 - access->ideal;
	else if (access->sectors > 2 * access->ideal)
		turns = access->sectors - (double)access->ideal;
	return work->is_static && turns > 0 ? turns * QUEUED : 0;
}

/* Cycles that INSN waits for what is linked to it, by the tables; and the reason they would have.
 */
static double
waits_for(const struct slice_work *work, uint32_t insn, uint16_t *reason)
{
	const struct slice_graph *g = &work->graph;
	double most = 0;

	if (g->insns[insn]->class == PLUMB_INSN_BARRIER && !g->insns[insn]->arrives_only) {
		*reason = PLUMB_REASON_BARRIER;
		most = 24;
	}
	for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++) {
		const struct slice_link *link = &work->links.all.items[l];
		const struct plumb_insn *from = g->insns[link->from];
		double left;

		if (!(link->flags & SLICE_KEPT) || link->via == PLUMB_HOP_SPILL ||
		    link->via == PLUMB_HOP_SHARED || link->flags & SLICE_CALLED)
			continue;
		left = slice_kind(from) == SLICE_FIXED
		               ? (insn > 0 ? g->insns[insn - 1]->issue : 1) - 1.0
		               : plumb_slice_left(work, link);
		if (link->parts != PLUMB_SYNC_SOURCES)
			left += extra_turns(work, link->from);
		left *= plumb_slice_often(work, link);
		if (left <= most)
			continue;
		most = left;
		*reason = slice_kind(from) == SLICE_FIXED    ? PLUMB_REASON_FIXED
		          : slice_kind(from) == SLICE_LONG   ? PLUMB_REASON_LONG
		          : from->class == PLUMB_INSN_TENSOR ? PLUMB_REASON_TENSOR_GROUP
		                                             : PLUMB_REASON_SHORT;
	}
	return most;
}

static bool
by_tables(const struct slice_work *work, uint32_t insn)
{
	uint32_t function = work->graph.blocks.items[work->graph.block_of[insn]].function;

	return work->is_static || (work->input->unplaced && slice_is_silent(work, function));
}

static double
often(const struct slice_work *work, uint32_t insn)
{
	return work->graph.blocks.items[work->graph.block_of[insn]].frequency;
}

static int
add_estimate(struct slice_work *work, uint32_t insn, uint16_t reason, double cycles)
{
	struct slice_stall *stall;

	if (cycles < 1)
		return 0;
	stall = plumb_vec_add(&work->stalls);
	if (!stall)
		return PLUMB_ESYSTEM;
	stall->insn = insn;
	stall->reason = reason;
	stall->samples = (uint64_t)cycles;
	add_to(&work->waited[insn], stall->samples);
	if (work->is_static)
		add_to(&work->all, stall->samples);
	return 0;
}

/* Stalls by the tables, of all instructions or of those of functions without samples. SCALE:
 * samples for each cycle. */
static int
add_by_tables(struct slice_work *work, double scale)
{
	const struct slice_graph *g = &work->graph;

	for (uint32_t i = 0; i < g->insn_count; i++) {
		uint16_t reason = PLUMB_REASON_OTHER;
		double cycles;

		if (!by_tables(work, i))
			continue;
		cycles = waits_for(work, i, &reason) * often(work, i) * scale;
		if (work->is_static)
			add_to(&work->all, (uint64_t)(often(work, i) * slice_issue(g->insns[i])));
		if (add_estimate(work, i, reason, cycles))
			return PLUMB_ESYSTEM;
		/* Nothing waits for a store, as it has no result. Other stores queue up. */
		if (g->insns[i]->class == PLUMB_INSN_STORE &&
		    add_estimate(work, i,
		                 slice_is_far(g->insns[i]) ? PLUMB_REASON_LOCAL_GLOBAL_THROTTLE
		                                           : PLUMB_REASON_SHARED_THROTTLE,
		                 extra_turns(work, i) * often(work, i) * scale))
			return PLUMB_ESYSTEM;
	}
	return 0;
}

static uint64_t
by_insn(const void *row, int which, const void *data)
{
	const struct slice_stall *stall = row;

	(void)data;
	return which ? stall->reason : stall->insn;
}

/* The samples without a place go to the functions without samples. */
static int
place_unplaced(struct slice_work *work)
{
	uint64_t unplaced = work->input->unplaced, given = 0;
	uint32_t first = work->stalls.count, most = first;
	double cycles = 0;
	int result;

	for (uint32_t i = 0; i < work->graph.insn_count; i++) {
		uint16_t reason;

		if (by_tables(work, i))
			cycles += waits_for(work, i, &reason) * often(work, i);
	}
	if (!(cycles > 0))
		return 0;
	result = add_by_tables(work, (double)unplaced / cycles);
	for (uint32_t s = first; s < work->stalls.count; s++) {
		given += work->stalls.items[s].samples;
		if (work->stalls.items[s].samples > work->stalls.items[most].samples)
			most = s;
	}
	/* What is left of rounding belongs to the greatest. */
	if (!result && most < work->stalls.count && given < unplaced)
		work->stalls.items[most].samples += unplaced - given;
	return result ? result
	              : plumb_sort_rows(work->stalls.items, work->stalls.count,
	                                sizeof *work->stalls.items, by_insn, 2, NULL);
}

static int
find_silent(struct slice_work *work)
{
	const struct slice_graph *g = &work->graph;
	uint32_t functions = work->input->function_count;

	work->silent = calloc(functions / 64 + 1, sizeof *work->silent);
	for (uint32_t f = 1; work->silent && work->input->unplaced && f < functions; f++) {
		bool silent = g->base[f] < g->base[f + 1];

		for (uint32_t i = g->base[f]; i < g->base[f + 1]; i++)
			silent &= !work->issued[i] && !work->waited[i];
		if (silent)
			slice_set(work->silent, f);
	}
	return work->silent ? 0 : PLUMB_ESYSTEM;
}

/* ---- all steps ---- */

static int
prepare(struct slice_work *work, struct plumb_sliced *slice)
{
	int result = plumb_slice_graph_make(work->input, &work->graph);
	uint32_t n = work->graph.insn_count;

	if (result < 0)
		return result;
	work->issued = calloc(n + 1, sizeof *work->issued);
	work->waited = calloc(n + 1, sizeof *work->waited);
	work->held = calloc(n + 1, sizeof *work->held);
	work->stall_of = malloc((n + 1) * sizeof *work->stall_of);
	work->stamps = calloc(n + 1, sizeof *work->stamps);
	if (!work->issued || !work->waited || !work->held || !work->stall_of || !work->stamps)
		return PLUMB_ESYSTEM;
	memset(work->stall_of, 0xff, (n + 1) * sizeof *work->stall_of);
	work->is_static = !work->input->samples;
	if (!work->is_static)
		result = add_samples(work, slice);
	if (!work->is_static)
		add_to(&slice->samples, work->input->unplaced);
	work->all = slice->samples;
	if (!result)
		result = find_silent(work);
	if (!result)
		plumb_slice_frequencies(&work->graph, work->issued, work->silent);
	if (!result)
		result = plumb_slice_pending(&work->graph, &work->links);
	if (!result)
		result = plumb_slice_flow(&work->graph, &work->links);
	slice->edges = work->links.all.count;
	if (!result)
		result = plumb_slice_links_finish(&work->graph, &work->links);
	slice->edges = work->links.all.count;
	slice->edges_kept = work->links.kept;
	work->blamed = calloc(work->links.all.count / 64 + 1, sizeof *work->blamed);
	if (!work->blamed)
		return PLUMB_ESYSTEM;
	if (!result)
		result = plumb_slice_accesses(work);
	if (!result && work->is_static)
		result = add_by_tables(work, 1);
	if (!result && !work->is_static && work->input->unplaced)
		result = place_unplaced(work);
	if (work->is_static)
		slice->samples = work->all;
	return result;
}

static int
blame_stall(struct slice_work *work, uint32_t s)
{
	struct slice_stall *stall = &work->stalls.items[s];
	uint32_t *of = &work->stall_of[stall->insn];
	int result = plumb_slice_candidates(work, stall);

	for (uint32_t c = 0; c < work->candidates.count; c++)
		if (work->candidates.items[c].link != PLUMB_NONE)
			slice_set(work->blamed, work->candidates.items[c].link);
	if (!result)
		result = plumb_slice_split(work, stall);
	/* Nobody saw this stall. */
	for (uint32_t c = 0;
	     !result && !work->is_static && by_tables(work, stall->insn) && c < stall->cause_count;
	     c++)
		work->causes.items[stall->first_cause + c].confidence /= 2;
	if (*of == PLUMB_NONE || stall->samples > work->stalls.items[*of].samples)
		*of = s;
	return result;
}

static int
blame(struct slice_work *work)
{
	int result = 0;

	/* What makes warps late at a barrier may be what they wait for on their way to it. */
	for (int turn = 0; turn < 2; turn++)
		for (uint32_t s = 0; !result && s < work->stalls.count; s++)
			if ((work->stalls.items[s].reason == PLUMB_REASON_BARRIER) == turn)
				result = blame_stall(work, s);
	for (uint32_t s = 0; !result && s < work->stalls.count; s++) {
		const struct slice_stall *stall = &work->stalls.items[s];

		for (uint32_t c = 0; c < stall->cause_count; c++) {
			struct plumb_stall_cause *cause =
				&work->causes.items[stall->first_cause + c];

			plumb_slice_chain(work, cause);
			plumb_slice_name(work, stall, cause);
		}
	}
	return result;
}

static uint64_t
by_samples(const void *row, int which, const void *data)
{
	const struct plumb_stall *stall = row;

	(void)data;
	return UINT64_MAX - (which ? stall->hidden : stall->samples);
}

static int
answer(struct slice_work *work, struct plumb_sliced *slice)
{
	slice->stalls = calloc(work->stalls.count + 1, sizeof *slice->stalls);
	if (!slice->stalls)
		return PLUMB_ESYSTEM;
	for (uint32_t s = 0; s < work->stalls.count; s++) {
		const struct slice_stall *from = &work->stalls.items[s];

		slice->stalls[s] = (struct plumb_stall){
			.place = slice_place(&work->graph, from->insn),
			.reason = from->reason,
			.class = (uint8_t)plumb_slice_reason_class(from->reason),
			.samples = from->samples,
			.hidden = from->hidden,
			.causes = &work->causes.items[from->first_cause],
			.cause_count = from->cause_count,
		};
	}
	slice->stall_count = work->stalls.count;
	return plumb_sort_rows(slice->stalls, slice->stall_count, sizeof *slice->stalls, by_samples,
	                       2, NULL);
}

/* Does a stall of INSN say which of its links it was about? */
static bool
tells(const struct slice_work *work, uint32_t insn)
{
	for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++)
		if (slice_bit(work->blamed, l))
			return true;
	return false;
}

/* GPA's count: at most one of what waits for memory, and at most one of the rest. As there, a link
 * is pruned if it is of a kind that no reason of the instruction's stalls names. */
static void
cover(const struct slice_work *work, struct plumb_sliced *slice)
{
	double nodes = 0, single = 0, samples = 0, single_samples = 0;

	for (uint32_t i = 0; i < work->graph.insn_count; i++) {
		uint32_t memory = 0, rest = 0;
		double at = 0;
		bool told = !work->is_static && tells(work, i);

		for (uint32_t l = work->links.first[i]; l < work->links.first[i + 1]; l++) {
			const struct slice_link *link = &work->links.all.items[l];

			if (!(link->flags & SLICE_KEPT) || link->via == PLUMB_HOP_SPILL ||
			    link->via == PLUMB_HOP_SHARED ||
			    (!slice_bit(work->blamed, l) &&
			     (told || slice_bit(work->links.hidden, l))))
				continue;
			if (slice_kind(work->graph.insns[link->from]) == SLICE_LONG)
				memory++;
			else
				rest++;
		}
		if (!memory && !rest)
			continue;
		at = (double)work->waited[i];
		nodes++;
		samples += at;
		if (memory <= 1 && rest <= 1) {
			single++;
			single_samples += at;
		}
	}
	slice->coverage = nodes > 0 ? single / nodes : NAN;
	slice->coverage_weighted = samples > 0 ? single_samples / samples : NAN;
}

static void
free_work(struct slice_work *work)
{
	if (!work)
		return;
	plumb_slice_graph_free(&work->graph);
	plumb_slice_links_free(&work->links);
	plumb_vec_free(&work->stalls);
	plumb_vec_free(&work->causes);
	plumb_vec_free(&work->candidates);
	free(work->issued);
	free(work->waited);
	free(work->held);
	free(work->stall_of);
	free(work->access);
	free(work->stamps);
	free(work->silent);
	free(work->blamed);
	free(work);
}

int
plumb_slice_make(const struct plumb_slice_input *input, struct plumb_sliced *slice,
                 struct plumb_error *error)
{
	struct slice_work *work = calloc(1, sizeof *work);
	uint64_t insns = 0;
	int result = 0;

	*slice = (struct plumb_sliced){ .coverage = NAN,
		                        .coverage_weighted = NAN,
		                        .warp_bytes = NAN };
	for (uint32_t f = 0; f < input->function_count; f++)
		insns += input->functions[f].insns->count;
	if (work && !insns) {
		free(work);
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the kernel has no instruction; its code was not recorded");
	}
	if (work) {
		work->input = input;
		work->function_count = input->function_count;
		result = prepare(work, slice);
	}
	if (work && !result)
		result = blame(work);
	if (work && !result)
		result = answer(work, slice);
	if (!work || result < 0) {
		free_work(work);
		free(slice->stalls);
		*slice = (struct plumb_sliced){ 0 };
		return plumb_fail_memory(error, "to find what made the kernel wait");
	}
	cover(work, slice);
	slice->warp_bytes = plumb_slice_traffic(work);
	slice->memory = work;
	return 0;
}

void
plumb_slice_free(struct plumb_sliced *slice)
{
	free_work(slice->memory);
	free(slice->stalls);
	*slice = (struct plumb_sliced){ 0 };
}

uint32_t
plumb_slice_edges(const struct plumb_sliced *slice, struct plumb_slice_place to,
                  struct plumb_slice_edge *edges, uint32_t most)
{
	const struct slice_work *work = slice->memory;
	uint32_t insn, count = 0;

	if (!work || to.function >= work->function_count ||
	    to.insn >= work->graph.base[to.function + 1] - work->graph.base[to.function])
		return 0;
	insn = slice_insn(&work->graph, to);
	for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++) {
		const struct slice_link *link = &work->links.all.items[l];

		if (!(link->flags & SLICE_KEPT))
			continue;
		if (count < most)
			edges[count] =
				(struct plumb_slice_edge){ slice_place(&work->graph, link->from),
				                           link->regs, link->via, link->counter,
				                           link->flags & SLICE_PROVED };
		count++;
	}
	return count;
}
