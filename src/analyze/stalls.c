/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls: why the warps of hot kernels wait, from samples of program counters (plumb run --stalls).
 * For each kernel, it names the cause that most of its waiting has.
 *
 * The saving is the part of the kernel's GPU time that its samples at this cause are, as far as no
 * other warp issued meanwhile, and as far as memory allows (kernel_causes.h). Left out: what the
 * change itself costs, and what waits next. Samples
 * of continuous recording belong to the code, so in a window they are those of the whole run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/kernel_causes.h"
#include "analyze/study.h"
#include "base/format.h"
#include "model/metric.h"

#define KERNELS_MOST 16 /* looked at */
#define REASONS_MOST 3

static const struct plumb_threshold thresholds[] = {
	{ "stalls.share", 0.05, "share", "minimum share of the GPU time for a kernel" },
	{ "stalls.waiting", 0.3, "share",
	  "minimum share of a kernel's samples in which warps wait and no other one issues" },
	{ "stalls.cause", 0.2, "share", "minimum share of a kernel's waiting for a cause" },
	{ "stalls.samples", 200, "count", "minimum number of samples of a kernel" },
	{ 0 },
};

struct stalled {
	struct plumb_study *study;
	const struct plumb_kernel *kernel;
	struct plumb_kernel_code code;
	struct plumb_sliced slice;
	struct plumb_kernel_causes causes;
};

/* ---- reasons ---- */

struct reason {
	uint16_t number;
	uint64_t samples; /* exposed */
};

static int
compare_reasons(const void *a, const void *b)
{
	const struct reason *one = a, *two = b;

	if (one->samples != two->samples)
		return one->samples > two->samples ? -1 : 1;
	return one->number < two->number ? -1 : one->number > two->number;
}

/* The reasons with most exposed samples, most first. */
static void
find_reasons(const struct plumb_kernel_code *code, struct reason reasons[PLUMB_REASON_COUNT])
{
	for (uint16_t r = 0; r < PLUMB_REASON_COUNT; r++)
		reasons[r] = (struct reason){ r, 0 };
	for (uint32_t i = 0; i < code->sample_count; i++) {
		const struct plumb_kernel_sample *s = &code->samples[i];
		const char *word = plumb_kernel_reason_word(code, s->reason);

		if (!s->issued && plumb_stall_reason_find(word)->class != PLUMB_STALL_NONE)
			reasons[s->reason].samples += s->count;
	}
	qsort(reasons, PLUMB_REASON_COUNT, sizeof *reasons, compare_reasons);
}

static void
write_reasons(const struct stalled *s, struct plumb_json *evidence)
{
	struct reason reasons[PLUMB_REASON_COUNT];

	find_reasons(&s->code, reasons);
	plumb_json_key_array(evidence, "reasons");
	for (int i = 0; i < REASONS_MOST && reasons[i].samples; i++) {
		plumb_json_object(evidence);
		plumb_json_key_text(evidence, "name",
		                    plumb_kernel_reason_word(&s->code, reasons[i].number));
		plumb_json_key_number(evidence, "share",
		                      (double)reasons[i].samples / (double)s->kernel->waiting);
		plumb_json_end(evidence);
	}
	plumb_json_end(evidence);
}

/* ---- findings ---- */

static const struct plumb_stall_cause *
cause_of(const struct stalled *s, const struct plumb_kernel_cause *item)
{
	return &s->slice.stalls[item->stall].causes[item->cause];
}

/* The part of the GPU time, or of the samples if that is not known, that the kernel has. */
static double
share_of(const struct stalled *s, uint64_t samples)
{
	if (s->kernel->gpu_ns != PLUMB_UNKNOWN && s->study->gpu_ns > 0)
		return (double)s->kernel->gpu_ns / (double)s->study->gpu_ns;
	return samples ? (double)s->kernel->samples / (double)samples : 0;
}

static char *
name_of(const struct stalled *s, char *text, size_t size)
{
	const struct plumb_profile *p = s->study->profile;
	const char *name = s->code.functions[0].name;

	if (s->kernel->context != PLUMB_NONE)
		return plumb_study_short(s->study, p->contexts[s->kernel->context].frame, text,
		                         size);
	snprintf(text, size, "%s", name ? name : "?");
	return text;
}

static void
write_cause(const struct stalled *s, const struct plumb_kernel_cause *item,
            struct plumb_json *evidence)
{
	const struct plumb_stall_cause *c = cause_of(s, item);
	const struct plumb_profile *p = s->study->profile;
	const struct plumb_code_line *line =
		c->has_place ? plumb_kernel_line(&s->code, c->place) : NULL;

	plumb_json_key_text(evidence, "cause",
	                    c->named ? c->named->name : plumb_cause_kind_names[c->kind]);
	plumb_json_key_number(evidence, "cause_share",
	                      (double)item->samples / (double)s->kernel->waiting);
	plumb_json_key_text(evidence, "file", line ? plumb_text(p, line->file) : NULL);
	plumb_json_key_line(evidence, "line", line ? line->line : 0);
	plumb_json_key_quantity(evidence, "offset",
	                        c->has_place ? plumb_kernel_insn(&s->code, c->place)->offset
	                                     : PLUMB_UNKNOWN);
	plumb_json_key_bool(evidence, "ambiguous", item->together > item->samples);
	if (*c->evidence)
		plumb_json_key_text(evidence, "seen", c->evidence);
}

static void
write_evidence(const struct stalled *s, double share, struct plumb_json *evidence)
{
	const struct plumb_kernel *k = s->kernel;

	plumb_json_key_text(evidence, "kernel", s->code.functions[0].name);
	plumb_json_key_quantity(evidence, "gpu_time_ns", k->gpu_ns);
	plumb_json_key_number(evidence, "share", share);
	plumb_json_key_quantity(evidence, "samples", (int64_t)k->samples);
	plumb_json_key_number(evidence, "waiting_share", (double)k->waiting / (double)k->samples);
	plumb_json_key_number(evidence, "covered_share", (double)k->hidden / (double)k->samples);
	write_reasons(s, evidence);
}

/* Marks the launches of the kernel: they would go with the cause, at most. */
static void
mark_launches(const struct stalled *s, struct plumb_draft *draft)
{
	const struct plumb_profile *p = s->study->profile;
	uint32_t name = p->code_functions[s->kernel->function].name;
	unsigned char *about = plumb_draft_about(s->study, draft);

	for (uint32_t c = 0; about && c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);

		about[c] = frame->kind == PLUMB_FRAME_KERNEL && frame->name == name;
	}
}

/* The key: the kernel, the cause and its line or place, without numbers that change. */
static void
set_key(const struct stalled *s, const struct plumb_stall_cause *c, const char *cause,
        struct plumb_draft *draft)
{
	char place[PLUMB_PLACE_SIZE] = "";
	const char *name = s->code.functions[0].name;

	if (c && c->has_place && plumb_kernel_line(&s->code, c->place))
		plumb_kernel_place(&s->code, c->place, place, sizeof place);
	plumb_draft_key(draft, "%s %s %s", name ? name : "?", cause, place);
}

static int
draft_cause(struct stalled *s, double share, const struct plumb_kernel_cause *item)
{
	const struct plumb_stall *stall = &s->slice.stalls[item->stall];
	const struct plumb_stall_cause *c = cause_of(s, item);
	const char *cause = c->named ? c->named->id : plumb_cause_kind_names[c->kind];
	char name[420], part[PLUMB_FORMAT_SIZE], whole[PLUMB_FORMAT_SIZE], what[600];
	uint32_t context = s->kernel->context == PLUMB_NONE ? 0 : s->kernel->context;
	struct plumb_draft draft;

	plumb_draft_begin(&draft, cause, context);
	set_key(s, c, cause, &draft);
	plumb_draft_title(
		&draft, "%s of the waiting of kernel %s (%s of the GPU time) is %s%s%s%s",
		plumb_format_share(part, (double)item->together, (double)s->kernel->waiting),
		name_of(s, name, sizeof name), plumb_format_share(whole, share, 1),
		plumb_kernel_cause_sentence(&s->code, stall, item->cause, what, sizeof what),
		c->named ? " (" : "", c->named ? c->named->name : "", c->named ? ")" : "");
	plumb_draft_advice(&draft, "%s plumb why shows the instructions%s",
	                   c->named ? c->named->advice
	                            : "The cause has no name that plumb knows advice for.",
	                   item->together > item->samples
	                           ? ", and which causes the hardware cannot tell apart."
	                           : ".");
	write_evidence(s, share, draft.evidence);
	write_cause(s, item, draft.evidence);
	mark_launches(s, &draft);
	if (s->kernel->gpu_ns != PLUMB_UNKNOWN && !isnan(item->saving))
		draft.saving_ns =
			(int64_t)((double)s->kernel->gpu_ns * (item->saving < 0   ? 0
		                                               : item->saving > 1 ? 1
		                                                                  : item->saving));
	draft.confidence = item->confidence;
	return plumb_draft_end(s->study, &draft);
}

/* Of a kernel whose code cannot be looked at, or whose stalls no rule explains, only the reasons
 * are known. */
static int
draft_reasons(struct stalled *s, double share)
{
	struct reason reasons[PLUMB_REASON_COUNT];
	char name[420], part[PLUMB_FORMAT_SIZE], whole[PLUMB_FORMAT_SIZE];
	const struct plumb_stall_reason_info *info;
	struct plumb_draft draft;
	const char *word;

	find_reasons(&s->code, reasons);
	word = plumb_kernel_reason_word(&s->code, reasons[0].number);
	info = plumb_stall_reason_find(word);
	plumb_draft_begin(&draft, "reason",
	                  s->kernel->context == PLUMB_NONE ? 0 : s->kernel->context);
	set_key(s, NULL, word, &draft);
	plumb_draft_title(
		&draft, "%s of the waiting of kernel %s (%s of the GPU time) is %s (%s)",
		plumb_format_share(part, (double)reasons[0].samples, (double)s->kernel->waiting),
		name_of(s, name, sizeof name), plumb_format_share(whole, share, 1), info->meaning,
		word);
	plumb_draft_advice(&draft, "The cause is unknown: %s.",
	                   s->code.problem ? s->code.problem
	                                   : "no rule explains it, and plumb why shows the "
	                                     "instructions");
	write_evidence(s, share, draft.evidence);
	mark_launches(s, &draft);
	draft.severity = PLUMB_NOTE;
	draft.confidence = NAN;
	return plumb_draft_end(s->study, &draft);
}

/* ---- kernels ---- */

static int
make_causes(struct stalled *s)
{
	struct plumb_error error;
	int code = plumb_slice_make(&s->code.input, &s->slice, &error);

	if (!code)
		return plumb_kernel_causes_make(&s->code, &s->slice, &s->causes, &error);
	if (code == PLUMB_ESYSTEM)
		return code;
	s->code.problem = strdup(error.message);
	return s->code.problem ? 0 : PLUMB_ESYSTEM;
}

static int
look_at(struct stalled *s, double share)
{
	double least = plumb_study_threshold(s->study, "stalls.cause");
	const struct plumb_kernel_cause *lead;
	int code = s->code.problem ? 0 : make_causes(s);

	if (code)
		return code;
	if (s->code.problem)
		return draft_reasons(s, share);
	lead = plumb_kernel_causes_lead(&s->causes, &s->slice);
	if (!lead || (double)lead->together < least * (double)s->kernel->waiting)
		return 0;
	return cause_of(s, lead)->kind == PLUMB_CAUSE_UNKNOWN ? draft_reasons(s, share)
	                                                      : draft_cause(s, share, lead);
}

static bool
is_hot(const struct stalled *s, double share)
{
	const struct plumb_kernel *k = s->kernel;

	return k->samples && k->waiting &&
	       (double)k->samples >= plumb_study_threshold(s->study, "stalls.samples") &&
	       share >= plumb_study_threshold(s->study, "stalls.share") &&
	       (double)k->waiting >=
	               plumb_study_threshold(s->study, "stalls.waiting") * (double)k->samples;
}

static int
find_stalls(struct plumb_study *study)
{
	struct plumb_kernels kernels;
	struct plumb_error error;
	uint64_t samples = 0;
	uint32_t looked_at = 0;
	int code = 0;

	if (!study->profile->code_samples_count)
		return 0;
	if (plumb_kernels_find(study->profile, &kernels, &error))
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < kernels.count; i++)
		samples += kernels.items[i].samples;
	for (uint32_t i = 0; !code && i < kernels.count && looked_at < KERNELS_MOST; i++) {
		struct stalled s = { .study = study, .kernel = &kernels.items[i] };
		double share = share_of(&s, samples);

		if (!is_hot(&s, share))
			continue;
		looked_at++;
		code = plumb_kernel_code_load(&kernels, i, &s.code, &error);
		if (code)
			break;
		code = look_at(&s, share);
		plumb_kernel_causes_free(&s.causes);
		plumb_slice_free(&s.slice);
		plumb_kernel_code_free(&s.code);
	}
	plumb_kernels_free(&kernels);
	return code;
}

const struct plumb_analysis plumb_analysis_stalls = {
	.name = "stalls",
	.summary =
		"what the warps of a hot kernel wait for, and which line causes it; needs samples "
		"of GPU code (plumb run --stalls)",
	.thresholds = thresholds,
	.run = find_stalls,
};
