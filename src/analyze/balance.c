/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balance: operators whose backward pass takes far longer on the GPU than their forward pass.
 *
 * Backward usually costs up to twice the forward (a gradient of the input and one of the weights);
 * much more means that its kernel is a worse algorithm: it serialises, sorts or fills memory.
 * Operators are taken together by name and line of the user's code. The whole backward pass bounds
 * the saving: that of index_select, which replaces index, takes less than the forward pass. What
 * checkpointing computes again, in the middle of the backward pass, is forward work and left out.
 * An operator without GPU work of its own forwards (a view) has no ratio; it is judged only if its
 * framework's table has advice on its backward pass.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/study.h"
#include "base/format.h"
#include "base/vec.h"
#include "model/framework/framework.h"

#define LISTED 5

static const struct plumb_threshold thresholds[] = {
	{ "balance.ratio", 5, "ratio",
	  "minimum backward GPU time over forward GPU time; up to 2 is usual" },
	{ "balance.share", 0.01, "share", "minimum share of the GPU time for the backward pass" },
	{ 0 },
};

struct pair {
	uint32_t op, user; /* frames */
	uint32_t context;  /* of the forward operator with the most backward time */
	int64_t most;
	int64_t forward, backward;
};

struct root { /* the topmost context of some backward work */
	uint32_t op, user, context;
};

enum { BEHIND = 1, COUNTED = 2, AGAIN = 4 };

struct balance {
	struct plumb_study *study;
	int64_t *forward;  /* by context: inclusive, forward work only */
	int64_t *backward; /* by context: inclusive, whatever it is */
	/* by context: BEHIND backward work, COUNTED in a pair, forward work AGAIN */
	unsigned char *behind;
	PLUMB_VEC(struct pair) pairs;
	PLUMB_VEC(struct root) roots;
};

static const char *
advice_of(const char *name)
{
	const struct plumb_framework_operator *row = plumb_framework_operator(name);

	return row ? row->backward : NULL;
}

static void
add_up(struct balance *b)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;

		bool back = (p->contexts[c].flags & PLUMB_CONTEXT_BACKWARD) != 0;

		b->behind[c] = back || (c && b->behind[parent] & BEHIND) ? BEHIND : 0;
		if ((b->behind[c] & BEHIND) &&
		    ((c && b->behind[parent] & AGAIN) ||
		     plumb_framework_place(p, p->contexts[c].frame, NULL) == PLUMB_PURPOSE_AGAIN))
			b->behind[c] |= AGAIN;
		b->backward[c] = b->behind[c] & AGAIN ? 0 : b->study->kernels[c].sum;
		b->forward[c] = b->behind[c] & BEHIND ? 0 : b->study->kernels[c].sum;
	}
	for (uint32_t c = p->contexts_count; c-- > 1;) {
		uint32_t parent = p->contexts[c].parent;

		b->backward[parent] = plumb_add(b->backward[parent], b->backward[c]);
		b->forward[parent] = plumb_add(b->forward[parent], b->forward[c]);
	}
}

/* Each forward operator with backward work right under it. */
static bool
collect_pairs(struct balance *b)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t c = 1; c < p->contexts_count; c++) {
		uint32_t op = p->contexts[c].parent;
		struct root *root;
		struct pair *pair;

		if (!(b->behind[c] & BEHIND) || (b->behind[op] & BEHIND) ||
		    (p->contexts[c].flags & PLUMB_CONTEXT_ACCUMULATION) ||
		    plumb_context_frame(p, op)->kind != PLUMB_FRAME_OPERATOR)
			continue;
		root = plumb_vec_add(&b->roots);
		if (!root)
			return false;
		*root = (struct root){ p->contexts[op].frame, b->study->place_of[op], c };
		pair = plumb_vec_add(&b->pairs);
		if (!pair)
			return false;
		*pair = (struct pair){
			.op = root->op,
			.user = root->user,
			.context = op,
			.most = b->backward[c],
			.forward = b->behind[op] & COUNTED ? 0 : b->forward[op],
			.backward = b->backward[c],
		};
		b->behind[op] |= COUNTED;
	}
	return true;
}

static int
by_operator(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;

	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	if (a->user != b->user)
		return a->user < b->user ? -1 : 1;
	return a->context < b->context ? -1 : a->context > b->context;
}

static void
join_pairs(struct balance *b)
{
	uint32_t kept = 0;

	if (b->pairs.count)
		qsort(b->pairs.items, b->pairs.count, sizeof *b->pairs.items, by_operator);
	for (uint32_t i = 0; i < b->pairs.count; i++) {
		struct pair *from = &b->pairs.items[i];
		struct pair *to = kept ? &b->pairs.items[kept - 1] : NULL;

		if (!to || to->op != from->op || to->user != from->user) {
			b->pairs.items[kept++] = *from;
			continue;
		}
		if (from->most > to->most) {
			to->most = from->most;
			to->context = from->context;
		}
		to->forward = plumb_add(to->forward, from->forward);
		to->backward = plumb_add(to->backward, from->backward);
	}
	b->pairs.count = kept;
}

static void
tally_kernels(const struct balance *b, const struct pair *pair, struct plumb_tally *kernels)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t i = 0; i < b->roots.count; i++) {
		const struct root *root = &b->roots.items[i];

		if (root->op != pair->op || root->user != pair->user)
			continue;
		for (uint32_t c = root->context; c <= p->contexts[root->context].last; c++)
			if (b->study->kernels[c].count && !(b->behind[c] & AGAIN))
				plumb_tally_add(kernels, p->contexts[c].frame,
				                b->study->kernels[c].sum,
				                b->study->kernels[c].count);
	}
}

/* Those kernels into ABOUT (by context), which may be NULL. */
static void
tell_kernels(const struct balance *b, const struct pair *pair, unsigned char *about)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t i = 0; about && i < b->roots.count; i++) {
		const struct root *root = &b->roots.items[i];

		if (root->op != pair->op || root->user != pair->user)
			continue;
		for (uint32_t c = root->context; c <= p->contexts[root->context].last; c++)
			about[c] |= b->study->kernels[c].count && !(b->behind[c] & AGAIN);
	}
}

static int
draft_pair(struct balance *b, const struct pair *pair)
{
	const struct plumb_profile *p = b->study->profile;
	const char *name = plumb_text(p, p->frames[pair->op].name), *advice = advice_of(name);
	char label[420], where[420], times[80], share[PLUMB_FORMAT_SIZE];
	char forward[PLUMB_FORMAT_SIZE], backward[PLUMB_FORMAT_SIZE];
	struct plumb_tally kernels = { 0 };
	struct plumb_draft draft;
	int code;

	if (plumb_tally_new(b->study, &kernels) < 0)
		return PLUMB_ESYSTEM;
	tally_kernels(b, pair, &kernels);
	plumb_study_key(b->study, pair->user, where, sizeof where);
	plumb_format_time(forward, pair->forward);
	if (pair->forward > 0)
		snprintf(times, sizeof times, ", %.1f times its forward pass (%s)",
		         (double)pair->backward / (double)pair->forward, forward);
	else
		snprintf(times, sizeof times, ", its forward pass %s", forward);
	plumb_draft_begin(&draft, NULL, pair->context);
	plumb_draft_key(&draft, "%s %s", name ? name : "", where);
	plumb_study_under(b->study, " at ", pair->user, where, sizeof where);
	plumb_draft_title(
		&draft, "the backward pass of %s%s takes %s%s; backward is %s of the GPU time",
		plumb_study_name(b->study, pair->op, label, sizeof label), where,
		plumb_format_time(backward, pair->backward), times,
		plumb_format_share(share, (double)pair->backward, (double)b->study->gpu_ns));
	plumb_draft_advice(
		&draft, "%s",
		advice ? advice
		       : "Its backward kernels do far more than its forward kernels, or "
			 "take turns. Look for an operator with the same "
			 "result and another backward pass, and for settings that ask for "
			 "determinism.");
	plumb_json_key_text(draft.evidence, "operator", name);
	plumb_json_key_quantity(draft.evidence, "forward_ns", pair->forward);
	plumb_json_key_quantity(draft.evidence, "backward_ns", pair->backward);
	plumb_json_key(draft.evidence, "ratio");
	if (pair->forward > 0)
		plumb_json_number(draft.evidence, (double)pair->backward / (double)pair->forward);
	else
		plumb_json_null(draft.evidence);
	plumb_json_key(draft.evidence, "share");
	plumb_json_number(draft.evidence, (double)pair->backward / (double)b->study->gpu_ns);
	plumb_study_line_json(b->study, draft.evidence, pair->user);
	plumb_tally_json(b->study, &kernels, draft.evidence, "backward_kernels", LISTED);
	tell_kernels(b, pair, plumb_draft_about(b->study, &draft));
	draft.saving_ns = pair->backward;
	draft.confidence = advice ? 0.8 : 0.4;
	code = plumb_draft_end(b->study, &draft);
	plumb_tally_free(&kernels);
	return code;
}

static int
draft_pairs(struct balance *b)
{
	const struct plumb_profile *p = b->study->profile;
	double ratio = plumb_study_threshold(b->study, "balance.ratio");
	double least = plumb_study_threshold(b->study, "balance.share") * (double)b->study->gpu_ns;
	int code = 0;

	for (uint32_t i = 0; !code && i < b->pairs.count; i++) {
		const struct pair *pair = &b->pairs.items[i];

		if (pair->backward <= 0 || (double)pair->backward < least ||
		    (double)pair->backward < ratio * (double)pair->forward ||
		    pair->backward / 2 < pair->forward)
			continue;
		if (pair->forward <= 0 && !advice_of(plumb_text(p, p->frames[pair->op].name)))
			continue;
		code = draft_pair(b, pair);
	}
	return code;
}

static int
find_imbalance(struct plumb_study *study)
{
	uint32_t contexts = study->profile->contexts_count;
	struct balance b = { .study = study };
	int code = PLUMB_ESYSTEM;

	if (study->gpu_ns <= 0)
		return 0;
	b.forward = calloc(contexts + 1u, sizeof *b.forward);
	b.backward = calloc(contexts + 1u, sizeof *b.backward);
	b.behind = calloc(contexts + 1u, 1);
	if (b.forward && b.backward && b.behind) {
		add_up(&b);
		code = collect_pairs(&b) ? 0 : PLUMB_ESYSTEM;
	}
	if (!code) {
		join_pairs(&b);
		code = draft_pairs(&b);
	}
	plumb_vec_free(&b.pairs);
	plumb_vec_free(&b.roots);
	free(b.forward);
	free(b.backward);
	free(b.behind);
	return code;
}

const struct plumb_analysis plumb_analysis_balance = {
	.name = "balance",
	.summary =
		"operators whose backward pass takes far longer on the GPU than their forward pass",
	.thresholds = thresholds,
	.run = find_imbalance,
};
