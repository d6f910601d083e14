/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fusion: a part of the program whose work on the GPU is many short kernels.
 *
 * Only kernels that could be fused with their neighbours count, in the mean and in the saving.
 * Matrix products, convolutions, attention, collectives, library kernels and what a compiler fused
 * already do not. The finding names the innermost unit (units.h) that passes all thresholds. What
 * lies in a unit that does not pass counts for the unit around it.
 *
 * The bound of the saving assumes that each repetition of the sequence becomes one kernel forwards
 * and one backwards, each as long as the mean of its kernels. The rest would vanish. If the newest
 * work is known, so would the gaps between the kernels, as far as the device was idle at all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/units.h"
#include "base/format.h"
#include "base/vec.h"
#include "model/framework/framework.h"

#define LISTED 8
#define GAP_MOST 100000 /* ns: a longer gap is no matter of launching */
#define GAPS_LEAST 20   /* gaps seen before they are projected */

static const struct plumb_threshold thresholds[] = {
	{ "fusion.kernel_time", 10000, "ns", "kernels with a mean below this are short" },
	{ "fusion.kernels", 100, "count", "minimum number of kernels" },
	{ "fusion.sequence", 3, "count", "minimum number of different kernels" },
	{ "fusion.share", 0.10, "share", "minimum share of the GPU time" },
	{ 0 },
};

static const char *const no_neighbours[] = {
	"gemm",  "xmma", "cutlass", "conv",  "flash", "fmha",    "attention", "cublas",
	"cudnn", "nccl", "wgrad",   "dgrad", "fprop", "triton_", "nvjet",
};

struct sums {
	int64_t ns;
	uint64_t kernels;
	uint32_t contexts;
};

struct fusion {
	struct plumb_study *study;
	struct plumb_units units;
	unsigned char *light; /* by context: a kernel that counts */
	/* by context: in the backward pass, in which only its root has the flag */
	unsigned char *back;
	struct sums *sums; /* by unit */
	uint32_t *rolled;  /* by unit: the flagged unit that it is part of, or PLUMB_NONE */
	struct plumb_stat *registers, *shared; /* by context */
};

/* ---- which kernels and which units ---- */

static bool
mark_light(struct fusion *f)
{
	const struct plumb_profile *p = f->study->profile;
	unsigned char *frames = calloc(p->frames_count + 1u, 1);

	for (uint32_t i = 0; frames && i < p->frames_count; i++) {
		const char *name = plumb_text(p, p->frames[i].name);

		frames[i] = name && p->frames[i].kind == PLUMB_FRAME_KERNEL;
		for (size_t n = 0; frames[i] && n < sizeof no_neighbours / sizeof *no_neighbours;
		     n++)
			frames[i] = !strcasestr(name, no_neighbours[n]);
	}
	for (uint32_t c = 0; frames && c < p->contexts_count; c++)
		f->light[c] = f->study->kernels[c].count && frames[p->contexts[c].frame];
	free(frames);
	return frames != NULL;
}

static void
mark_back(struct fusion *f)
{
	const struct plumb_profile *p = f->study->profile;

	for (uint32_t c = 0; c < p->contexts_count; c++)
		f->back[c] = (p->contexts[c].flags & PLUMB_CONTEXT_BACKWARD) != 0 ||
		             (c && f->back[p->contexts[c].parent]);
}

static bool
passes_limits(const struct fusion *f, const struct sums *s)
{
	const struct plumb_study *study = f->study;

	return s->kernels && (double)s->kernels >= plumb_study_threshold(study, "fusion.kernels") &&
	       (double)s->contexts >= plumb_study_threshold(study, "fusion.sequence") &&
	       (double)s->ns <
	               plumb_study_threshold(study, "fusion.kernel_time") * (double)s->kernels &&
	       (double)s->ns >=
	               plumb_study_threshold(study, "fusion.share") * (double)study->gpu_ns;
}

/* From the innermost unit outwards: what does not pass is counted for the unit around it. */
static void
choose_units(struct fusion *f)
{
	for (uint32_t c = 0; c < f->study->profile->contexts_count; c++) {
		struct sums *s = f->light[c] && f->units.of[c] != PLUMB_NONE
		                         ? &f->sums[f->units.of[c]]
		                         : NULL;

		if (!s)
			continue;
		s->ns = plumb_add(s->ns, f->study->kernels[c].sum);
		s->kernels += f->study->kernels[c].count;
		s->contexts++;
	}
	for (uint32_t u = f->units.count; u-- > 0;) {
		uint32_t parent = f->units.items[u].parent;

		f->rolled[u] = passes_limits(f, &f->sums[u]) ? u : PLUMB_NONE;
		if (f->rolled[u] == u || parent == PLUMB_NONE)
			continue;
		f->sums[parent].ns = plumb_add(f->sums[parent].ns, f->sums[u].ns);
		f->sums[parent].kernels += f->sums[u].kernels;
		f->sums[parent].contexts += f->sums[u].contexts;
	}
	for (uint32_t u = 0; u < f->units.count; u++)
		if (f->rolled[u] == PLUMB_NONE && f->units.items[u].parent != PLUMB_NONE)
			f->rolled[u] = f->rolled[f->units.items[u].parent];
}

static bool
is_in(const struct fusion *f, uint32_t context, uint32_t unit)
{
	uint32_t of = f->units.of[context];

	return f->light[context] && of != PLUMB_NONE && f->rolled[of] == unit;
}

/* ---- what a unit's kernels are like ---- */

struct shape {
	int64_t ns[2]; /* forwards, backwards */
	uint64_t kernels[2];
	uint32_t contexts[2];
	uint64_t repetitions; /* of a fixed sequence; 0: there is none */
	double equal;         /* part of the time in kernels that run once a repetition */
	struct plumb_stat registers, shared;
	uint32_t best; /* context with the most */
	int64_t gap_ns;
	uint64_t gaps;
};

struct repeated {
	uint64_t count;
	int64_t ns;
};

static int
by_count(const void *left, const void *right)
{
	const struct repeated *a = left, *b = right;

	return a->count < b->count ? -1 : a->count > b->count;
}

/* Kernels of a fixed sequence run equally often: the count that has the most time. */
static void
find_repetitions(struct repeated *items, uint32_t count, struct shape *shape)
{
	int64_t whole = plumb_add(shape->ns[0], shape->ns[1]), best = 0;

	if (count)
		qsort(items, count, sizeof *items, by_count);
	for (uint32_t i = 0; i < count;) {
		uint64_t same = items[i].count;
		int64_t ns = 0;

		for (; i < count && items[i].count == same; i++)
			ns = plumb_add(ns, items[i].ns);
		if (ns <= best)
			continue;
		best = ns;
		shape->repetitions = same;
	}
	shape->equal = whole > 0 ? (double)best / (double)whole : 0;
	if (shape->equal < 0.5)
		shape->repetitions = 0;
}

/* Gaps between kernels of the unit that followed each other on one stream. */
static void
find_gaps(const struct fusion *f, uint32_t unit, struct shape *shape)
{
	const struct plumb_profile *p = f->study->profile;

	for (uint32_t i = 1; i < p->work_count; i++) {
		const struct plumb_work_item *a = &p->work[i - 1], *b = &p->work[i];
		int64_t gap;

		if (a->track != b->track || !is_in(f, a->context, unit) ||
		    !is_in(f, b->context, unit) ||
		    __builtin_sub_overflow(b->start_ns, a->end_ns, &gap) || gap <= 0 ||
		    gap > GAP_MOST)
			continue;
		shape->gap_ns = plumb_add(shape->gap_ns, gap);
		shape->gaps++;
	}
}

static int
measure_unit(const struct fusion *f, uint32_t unit, struct shape *shape,
             struct plumb_tally *kernels)
{
	const struct plumb_profile *p = f->study->profile;
	PLUMB_VEC(struct repeated) counts = { 0 };
	bool ok = true;

	*shape = (struct shape){ .best = PLUMB_NONE };
	for (uint32_t c = 0; ok && c < p->contexts_count; c++) {
		const struct plumb_stat *own = &f->study->kernels[c];
		int backward = f->back[c];
		struct repeated *item;

		if (!is_in(f, c, unit))
			continue;
		shape->ns[backward] = plumb_add(shape->ns[backward], own->sum);
		shape->kernels[backward] += own->count;
		shape->contexts[backward]++;
		plumb_stat_merge(&shape->registers, &f->registers[c]);
		plumb_stat_merge(&shape->shared, &f->shared[c]);
		plumb_tally_add(kernels, p->contexts[c].frame, own->sum, own->count);
		if (shape->best == PLUMB_NONE || own->sum > f->study->kernels[shape->best].sum)
			shape->best = c;
		item = plumb_vec_add(&counts);
		ok = item != NULL;
		if (ok)
			*item = (struct repeated){ own->count, own->sum };
	}
	if (ok) {
		find_repetitions(counts.items, counts.count, shape);
		find_gaps(f, unit, shape);
	}
	plumb_vec_free(&counts);
	return ok ? 0 : PLUMB_ESYSTEM;
}

/* Kernels left when each repetition is one kernel in each direction. */
static double
kernels_left(const struct shape *shape, int backward)
{
	double kernels = (double)shape->kernels[backward];

	if (!shape->contexts[backward])
		return 0;
	if (shape->repetitions)
		return (double)shape->repetitions < kernels ? (double)shape->repetitions : kernels;
	return kernels / shape->contexts[backward];
}

static int64_t
bound_saving(const struct fusion *f, const struct shape *shape, double *gaps)
{
	int64_t idle = plumb_study_idle(f->study);
	double saved = 0, launches = 0;

	for (int way = 0; way < 2; way++) {
		double kernels = (double)shape->kernels[way], left = kernels_left(shape, way);

		if (!shape->kernels[way])
			continue;
		saved += (double)shape->ns[way] * (1 - left / kernels);
		launches += kernels - left;
	}
	*gaps = 0;
	if (shape->gaps >= GAPS_LEAST && idle != PLUMB_UNKNOWN) {
		*gaps = (double)shape->gap_ns / (double)shape->gaps * launches;
		if (*gaps > (double)idle)
			*gaps = (double)idle;
	}
	return (int64_t)fmin(saved + *gaps, 9e18);
}

/* ---- the finding ---- */

/* Does UNIT hold another that has a finding of its own, whose kernels are not counted here? */
static bool
holds_another(const struct fusion *f, uint32_t unit)
{
	for (uint32_t u = 0; u < f->units.count; u++) {
		uint32_t parent = f->units.items[u].parent;

		if (f->rolled[u] == u && parent != PLUMB_NONE && f->rolled[parent] == unit)
			return true;
	}
	return false;
}

static double
confidence_of(const struct shape *shape)
{
	double confidence = 0.4;

	if (shape->equal >= 0.75 && shape->repetitions)
		confidence += 0.3;
	if (shape->registers.count && shape->registers.mean <= 64 && shape->shared.count &&
	    shape->shared.mean <= 16384)
		confidence += 0.2;
	return confidence;
}

static void
mean_or_null(struct plumb_json *json, const char *key, const struct plumb_stat *stat)
{
	plumb_json_key(json, key);
	if (stat->count)
		plumb_json_number(json, stat->mean);
	else
		plumb_json_null(json);
}

static void
write_evidence(const struct fusion *f, const struct shape *shape, double gaps,
               struct plumb_tally *kernels, struct plumb_json *json)
{
	int64_t ns = plumb_add(shape->ns[0], shape->ns[1]);
	uint64_t count = shape->kernels[0] + shape->kernels[1];

	plumb_json_key_quantity(json, "gpu_time_ns", ns);
	plumb_json_key(json, "share");
	plumb_json_number(json, (double)ns / (double)f->study->gpu_ns);
	plumb_json_key(json, "kernels");
	plumb_json_unsigned(json, count);
	plumb_json_key(json, "mean_ns");
	plumb_json_number(json, (double)ns / (double)count);
	plumb_json_key_quantity(json, "different_kernels",
	                        (int64_t)shape->contexts[0] + shape->contexts[1]);
	plumb_json_key_quantity(json, "repetitions",
	                        shape->repetitions ? (int64_t)shape->repetitions : PLUMB_UNKNOWN);
	plumb_json_key(json, "equal_share");
	plumb_json_number(json, shape->equal);
	mean_or_null(json, "registers", &shape->registers);
	mean_or_null(json, "shared_bytes", &shape->shared);
	plumb_json_key_quantity(json, "gaps_ns", gaps > 0 ? (int64_t)gaps : PLUMB_UNKNOWN);
	plumb_study_line_json(f->study, json, f->study->place_of[shape->best]);
	plumb_tally_json(f->study, kernels, json, "names", LISTED);
}

/* The kernels, with the operators and calls that launch them: a fused kernel has one of each. */
static void
tell_unit(const struct fusion *f, uint32_t unit, struct plumb_draft *draft)
{
	const struct plumb_profile *p = f->study->profile;
	unsigned char *about = plumb_draft_about(f->study, draft);

	for (uint32_t c = 1; about && c < p->contexts_count; c++)
		for (uint32_t at = is_in(f, c, unit) ? c : 0; at; at = p->contexts[at].parent) {
			uint32_t kind = plumb_context_frame(p, at)->kind;

			if (about[at] || kind == PLUMB_FRAME_PYTHON || kind == PLUMB_FRAME_MODULE ||
			    kind == PLUMB_FRAME_RANGE)
				break;
			about[at] = 1;
		}
}

static int
draft_unit(struct fusion *f, uint32_t unit)
{
	char name[900], count[PLUMB_FORMAT_SIZE], mean[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE];
	const struct plumb_framework_names *framework =
		plumb_framework_of_operators(f->study->profile);
	struct plumb_tally kernels = { 0 };
	struct plumb_draft draft;
	struct shape shape;
	uint32_t member;
	uint64_t number;
	int64_t ns;
	double gaps;
	int code = plumb_tally_new(f->study, &kernels);

	if (!code)
		code = measure_unit(f, unit, &shape, &kernels);
	if (!code) {
		number = shape.kernels[0] + shape.kernels[1];
		ns = plumb_add(shape.ns[0], shape.ns[1]);
		member = plumb_units_member(f->study, &f->units, unit, shape.best);
		plumb_draft_begin(&draft, NULL, member);
		plumb_units_key(f->study, &f->units, unit, &draft);
		plumb_draft_title(&draft,
		                  "%s launches %s %sshort kernels, mean %s, %s of the GPU time",
		                  plumb_units_title(f->study, member, name, sizeof name),
		                  plumb_format_count(count, (int64_t)number),
		                  holds_another(f, unit) ? "more " : "",
		                  plumb_format_time(mean, ns / (int64_t)number),
		                  plumb_format_share(share, (double)ns, (double)f->study->gpu_ns));
		plumb_draft_advice(
			&draft, "%s",
			framework && framework->short_kernels
				? framework->short_kernels
				: "Each kernel reads and writes memory and has to be launched. "
				  "Fuse this part into fewer kernels. If kernels cannot be "
				  "fused, a graph (CUDA or HIP) or a larger batch makes launching "
				  "cheaper.");
		tell_unit(f, unit, &draft);
		draft.saving_ns = bound_saving(f, &shape, &gaps);
		draft.confidence = confidence_of(&shape);
		write_evidence(f, &shape, gaps, &kernels, draft.evidence);
		code = plumb_draft_end(f->study, &draft);
	}
	plumb_tally_free(&kernels);
	return code;
}

static int
find_small_kernels(struct plumb_study *study)
{
	uint32_t contexts = study->profile->contexts_count;
	struct fusion f = { .study = study };
	int code;

	if (study->gpu_ns <= 0)
		return 0;
	code = plumb_units_new(study, &f.units);
	f.light = calloc(contexts + 1u, 1);
	f.back = calloc(contexts + 1u, 1);
	f.registers = calloc(contexts + 1u, sizeof *f.registers);
	f.shared = calloc(contexts + 1u, sizeof *f.shared);
	f.sums = calloc(f.units.count + 1u, sizeof *f.sums);
	f.rolled = calloc(f.units.count + 1u, sizeof *f.rolled);
	if (!f.light || !f.back || !f.registers || !f.shared || !f.sums || !f.rolled ||
	    (!code && !mark_light(&f)))
		code = PLUMB_ESYSTEM;
	if (!code) {
		plumb_study_load(study->profile, PLUMB_METRIC_GPU_REGISTERS, f.registers);
		plumb_study_load(study->profile, PLUMB_METRIC_GPU_SHARED_BYTES, f.shared);
		mark_back(&f);
		choose_units(&f);
	}
	for (uint32_t u = 0; !code && u < f.units.count; u++)
		if (f.rolled[u] == u)
			code = draft_unit(&f, u);
	plumb_units_free(&f.units);
	free(f.light);
	free(f.back);
	free(f.registers);
	free(f.shared);
	free(f.sums);
	free(f.rolled);
	return code;
}

const struct plumb_analysis plumb_analysis_fusion = {
	.name = "fusion",
	.summary = "functions, modules and ranges that launch many short kernels",
	.thresholds = thresholds,
	.run = find_small_kernels,
};
