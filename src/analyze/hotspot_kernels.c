/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that compute nothing: layout conversions, and copies and conversions by kernels. */
#include <stdlib.h>
#include <string.h>

#include "analyze/hotspot.h"
#include "base/format.h"
#include "model/framework/framework.h"

#define LISTED 8

/* In the names of cuDNN's kernels. Padding kernels are left out: channels_last keeps them. */
static const char *const layout_names[] = {
	"nchwToNhwc",
	"nhwcToNchw",
	"nchwToFoldedNhwc",
	"foldedNhwcToNchw",
	"tensorTransformGeneric",
	"convertTensor_kernel",
};

static bool
is_layout_kernel(const char *name)
{
	for (size_t i = 0; i < sizeof layout_names / sizeof *layout_names; i++)
		if (strcasestr(name, layout_names[i]))
			return true;
	return false;
}

/* By frame: 1 for a kernel whose name IS_ONE accepts. NULL: no memory. */
static unsigned char *
match_kernels(const struct plumb_profile *p, bool (*is_one)(const char *name))
{
	unsigned char *match = calloc(p->frames_count + 1u, 1);

	for (uint32_t f = 0; match && f < p->frames_count; f++) {
		const char *name = plumb_text(p, p->frames[f].name);

		match[f] = name && p->frames[f].kind == PLUMB_FRAME_KERNEL && is_one(name);
	}
	return match;
}

/* The innermost native frame between the kernel at CONTEXT and its operator, or PLUMB_NONE: one
 * with a name, if there is any, since "library+0x1234" (no symbol there) tells nobody what
 * converts. */
static uint32_t
native_of(const struct plumb_study *s, uint32_t context)
{
	const struct plumb_profile *p = s->profile;
	uint32_t innermost = PLUMB_NONE;

	for (; context && context != s->operator_of[context];
	     context = p->contexts[context].parent) {
		uint32_t frame = p->contexts[context].frame;
		const char *name = plumb_text(p, p->frames[frame].name);

		if (p->frames[frame].kind != PLUMB_FRAME_NATIVE)
			continue;
		if (name && !strstr(name, "+0x"))
			return frame;
		if (innermost == PLUMB_NONE)
			innermost = frame;
	}
	return innermost;
}

/* ---- layout conversions ---- */

struct layout {
	struct plumb_tally operators, lines, natives;
	struct plumb_stat all;
	uint32_t best; /* the kernel's context with the most */
};

static void
tally_layout(const struct plumb_study *s, const unsigned char *match, struct layout *layout)
{
	const struct plumb_profile *p = s->profile;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_stat *own = &s->kernels[c];
		uint32_t op = s->operator_of[c], native;

		if (!own->count || !match[p->contexts[c].frame])
			continue;
		native = native_of(s, c);
		plumb_stat_merge(&layout->all, own);
		plumb_tally_add(&layout->operators,
		                op == PLUMB_NONE ? PLUMB_NONE : p->contexts[op].frame, own->sum,
		                own->count);
		plumb_tally_add(&layout->lines, s->place_of[c], own->sum, own->count);
		if (native != PLUMB_NONE)
			plumb_tally_add(&layout->natives, native, own->sum, own->count);
	}
}

/* The kernel's context with the most, under the operator that has the most. */
static void
find_best(const struct plumb_study *s, const unsigned char *match, struct layout *layout)
{
	const struct plumb_profile *p = s->profile;
	uint32_t top = plumb_tally_top(&layout->operators);

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t op = s->operator_of[c];

		if (!s->kernels[c].count || !match[p->contexts[c].frame] ||
		    (op == PLUMB_NONE ? PLUMB_NONE : p->contexts[op].frame) != top)
			continue;
		if (layout->best == PLUMB_NONE || s->kernels[c].sum > s->kernels[layout->best].sum)
			layout->best = c;
	}
}

static int
draft_layout(struct plumb_study *s, struct layout *layout, const unsigned char *match)
{
	double part = (double)layout->all.sum / (double)s->gpu_ns;
	uint32_t op = plumb_tally_top(&layout->operators), line = plumb_tally_top(&layout->lines);
	uint32_t native = plumb_tally_top(&layout->natives), context = s->operator_of[layout->best];
	char share[PLUMB_FORMAT_SIZE], where[420], name[420];
	struct plumb_draft draft;

	plumb_draft_begin(&draft, "layout", context == PLUMB_NONE ? layout->best : context);
	plumb_draft_key(&draft, "layout");
	plumb_format_share(share, part, 1);
	plumb_study_under(s, op == PLUMB_NONE ? ", mostly under " : " under ", line, where,
	                  sizeof where);
	if (op == PLUMB_NONE)
		plumb_draft_title(&draft, "layout conversions take %s of the GPU time%s", share,
		                  where);
	else
		plumb_draft_title(&draft,
		                  "layout conversions take %s of the GPU time, mostly in %s%s",
		                  share, plumb_study_name(s, op, name, sizeof name), where);
	plumb_draft_advice(
		&draft, "The library computes in NHWC but gets its tensors in NCHW, so it converts "
			"them before and after. Keep the model and its inputs in channels_last: "
			"model.to(memory_format=torch.channels_last), and the same for each "
			"input.");
	plumb_json_key_quantity(draft.evidence, "gpu_time_ns", layout->all.sum);
	plumb_json_key(draft.evidence, "share");
	plumb_json_number(draft.evidence, part);
	plumb_json_key(draft.evidence, "kernels");
	plumb_json_unsigned(draft.evidence, layout->all.count);
	plumb_study_line_json(s, draft.evidence, line);
	plumb_json_key_text(draft.evidence, "native",
	                    native == PLUMB_NONE ? NULL : plumb_frame_label(s->profile, native));
	plumb_tally_json(s, &layout->operators, draft.evidence, "operators", LISTED);
	plumb_tally_json(s, &layout->lines, draft.evidence, "lines", LISTED);
	unsigned char *about = plumb_draft_about(s, &draft);
	for (uint32_t c = 0; about && c < s->profile->contexts_count; c++)
		about[c] = s->kernels[c].count && match[s->profile->contexts[c].frame];
	draft.saving_ns = layout->all.sum;
	draft.confidence = 0.9;
	return plumb_draft_end(s, &draft);
}

int
plumb_hotspot_layout(struct plumb_study *s, unsigned char *explained)
{
	const struct plumb_profile *p = s->profile;
	double least = plumb_study_threshold(s, "hotspot.layout_share") * (double)s->gpu_ns;
	unsigned char *match = match_kernels(p, is_layout_kernel);
	struct layout layout = { .best = PLUMB_NONE };
	int code = PLUMB_ESYSTEM;

	if (match && !plumb_tally_new(s, &layout.operators) && !plumb_tally_new(s, &layout.lines) &&
	    !plumb_tally_new(s, &layout.natives)) {
		tally_layout(s, match, &layout);
		find_best(s, match, &layout);
		code = 0;
	}
	if (!code && layout.all.sum > 0 && (double)layout.all.sum >= least) {
		code = draft_layout(s, &layout, match);
		for (uint32_t c = 0; c < p->contexts_count; c++)
			if (match[p->contexts[c].frame])
				explained[c] = 1;
	}
	plumb_tally_free(&layout.operators);
	plumb_tally_free(&layout.lines);
	plumb_tally_free(&layout.natives);
	free(match);
	return code;
}

/* ---- copies and conversions, by line ---- */

/* The operator that wanted the copy at CONTEXT: outwards past those that only carry it out. */
static uint32_t
wanted_by(const struct plumb_study *s, uint32_t context)
{
	const struct plumb_profile *p = s->profile;
	uint32_t op = s->operator_of[context];

	while (op != PLUMB_NONE) {
		const struct plumb_framework_operator *row =
			plumb_framework_operator(plumb_text(p, plumb_context_frame(p, op)->name));
		uint32_t parent = p->contexts[op].parent;

		if (!row || !(row->flags & PLUMB_OPERATOR_CARRIES) ||
		    plumb_context_frame(p, parent)->kind != PLUMB_FRAME_OPERATOR)
			break;
		op = parent;
	}
	return op;
}

static int
draft_copies(struct plumb_study *s, const unsigned char *match, uint32_t line,
             const struct plumb_stat *stat, unsigned char *explained)
{
	const struct plumb_profile *p = s->profile;
	double part = (double)stat->sum / (double)s->gpu_ns;
	char share[PLUMB_FORMAT_SIZE], where[420], name[420], most[480] = "";
	struct plumb_tally operators = { 0 }, kernels = { 0 };
	uint32_t best = PLUMB_NONE, top;
	struct plumb_draft draft;
	int code = PLUMB_ESYSTEM;

	if (plumb_tally_new(s, &operators) < 0 || plumb_tally_new(s, &kernels) < 0)
		goto out;
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_stat *own = &s->kernels[c];
		uint32_t op;

		if (!own->count || !match[p->contexts[c].frame] || s->user_of[c] != line)
			continue;
		op = wanted_by(s, c);
		plumb_tally_add(&operators, op == PLUMB_NONE ? PLUMB_NONE : p->contexts[op].frame,
		                own->sum, own->count);
		plumb_tally_add(&kernels, p->contexts[c].frame, own->sum, own->count);
		if (best == PLUMB_NONE || own->sum > s->kernels[best].sum)
			best = c;
		explained[c] = 1;
	}
	top = plumb_tally_top(&operators);
	plumb_draft_begin(&draft, "copies",
	                  wanted_by(s, best) == PLUMB_NONE ? best : wanted_by(s, best));
	plumb_draft_key(&draft, "%s", plumb_study_line(s, line, where, sizeof where));
	plumb_study_line_at(s, line, best, where, sizeof where);
	if (top != PLUMB_NONE)
		snprintf(most, sizeof most, ", mostly for %s",
		         plumb_study_name(s, top, name, sizeof name));
	plumb_draft_title(&draft,
	                  "%s spends %s of the GPU time on copying and converting tensors%s",
	                  line == PLUMB_NONE ? "the program" : where,
	                  plumb_format_share(share, part, 1), most);
	plumb_draft_advice(&draft,
	                   "Such kernels move bytes and compute nothing. Keep tensors in one dtype "
	                   "and layout from one operator to the next. Convert once outside the "
	                   "loop, and call contiguous() only where it is needed.");
	plumb_json_key_quantity(draft.evidence, "gpu_time_ns", stat->sum);
	plumb_json_key(draft.evidence, "share");
	plumb_json_number(draft.evidence, part);
	plumb_json_key(draft.evidence, "kernels");
	plumb_json_unsigned(draft.evidence, stat->count);
	plumb_study_line_json(s, draft.evidence, line);
	plumb_tally_json(s, &operators, draft.evidence, "operators", LISTED);
	plumb_tally_json(s, &kernels, draft.evidence, "names", LISTED);
	unsigned char *about = plumb_draft_about(s, &draft);
	for (uint32_t c = 0; about && c < p->contexts_count; c++)
		about[c] =
			s->kernels[c].count && match[p->contexts[c].frame] && s->user_of[c] == line;
	draft.saving_ns = stat->sum;
	draft.confidence = 0.5;
	code = plumb_draft_end(s, &draft);
out:
	plumb_tally_free(&operators);
	plumb_tally_free(&kernels);
	return code;
}

int
plumb_hotspot_conversions(struct plumb_study *s, unsigned char *explained)
{
	const struct plumb_profile *p = s->profile;
	double least = plumb_study_threshold(s, "hotspot.copy_share") * (double)s->gpu_ns;
	unsigned char *match = match_kernels(p, plumb_framework_is_copy_kernel);
	struct plumb_stat *lines = calloc(p->frames_count + 1u, sizeof *lines);
	int code = match && lines ? 0 : PLUMB_ESYSTEM;

	for (uint32_t c = 0; !code && c < p->contexts_count; c++)
		if (s->kernels[c].count && match[p->contexts[c].frame] &&
		    s->user_of[c] < p->frames_count)
			plumb_stat_merge(&lines[s->user_of[c]], &s->kernels[c]);
	for (uint32_t f = 0; !code && f < p->frames_count; f++)
		if (lines[f].sum > 0 && (double)lines[f].sum >= least)
			code = draft_copies(s, match, f, &lines[f], explained);
	free(match);
	free(lines);
	return code;
}
