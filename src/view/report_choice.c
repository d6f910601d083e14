/* SPDX-License-Identifier: Apache-2.0 */
#include "view/report_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "model/metric.h"

/* The parts of a metric that lie under frames of each kind. */
struct parts {
	int64_t whole;
	int64_t under[PLUMB_FRAME_KIND_COUNT];
	int64_t replays; /* kernels that are whole graphs */
	bool seen[PLUMB_FRAME_KIND_COUNT];
};

/* "CUDA graph of 12 nodes": a replay that was timed as a whole. */
static bool
is_replay(const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = plumb_text(p, frame->name);
	size_t bytes = name ? strlen(name) : 0;

	return frame->kind == PLUMB_FRAME_KERNEL && bytes > 6 && strstr(name, " graph of ") &&
	       !strcmp(name + bytes - 6, " nodes");
}

static void
add(int64_t *sum, int64_t amount)
{
	if (__builtin_add_overflow(*sum, amount, sum))
		*sum = INT64_MAX;
}

/* Contexts are in preorder, so a parent's kinds are known before its children's. */
static int
find_parts(const struct plumb_profile *p, uint32_t metric, struct parts *parts)
{
	uint32_t *kinds = calloc(p->contexts_count + 1u, sizeof *kinds);

	if (!kinds)
		return PLUMB_ESYSTEM;
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t kind = plumb_context_frame(p, c)->kind;

		kinds[c] = c ? kinds[p->contexts[c].parent] : 0;
		if (kind < PLUMB_FRAME_KIND_COUNT)
			kinds[c] |= UINT32_C(1) << kind;
	}
	for (uint32_t f = 0; f < p->frames_count; f++)
		if (p->frames[f].kind < PLUMB_FRAME_KIND_COUNT)
			parts->seen[p->frames[f].kind] = true;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (v->metric != metric || v->sum <= 0)
			continue;
		add(&parts->whole, v->sum);
		for (uint32_t kind = 0; kind < PLUMB_FRAME_KIND_COUNT; kind++)
			if (kinds[v->context] >> kind & 1)
				add(&parts->under[kind], v->sum);
		if (is_replay(p, v->context))
			add(&parts->replays, v->sum);
	}
	free(kinds);
	return 0;
}
_Static_assert(PLUMB_FRAME_KIND_COUNT <= 32, "a bit for each kind");

static double
share_of(const struct parts *parts, int64_t part)
{
	return parts->whole ? (double)part / (double)parts->whole : 0;
}

/* The kinds of rows in the order of preference. */
static const struct candidate {
	enum plumb_group_by by;
	uint32_t kind;
	bool must_divide;
	const char *plural;
} candidates[] = {
	{ PLUMB_BY_OPERATOR, PLUMB_FRAME_OPERATOR, false, "operators" },
	{ PLUMB_BY_MODULE, PLUMB_FRAME_MODULE, true, "modules" },
	{ PLUMB_BY_KERNEL, PLUMB_FRAME_KERNEL, false, "kernels" },
	{ PLUMB_BY_RANGE, PLUMB_FRAME_RANGE, true, "ranges" },
	{ PLUMB_BY_PYTHON, PLUMB_FRAME_PYTHON, false, "Python functions" },
	{ PLUMB_BY_NATIVE, PLUMB_FRAME_NATIVE, false, "native functions" },
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

/* Has no row of BY more than PLUMB_DIVIDES_MOST of the metric? Negative: no memory. */
static int
divides(const struct plumb_profile *p, uint32_t metric, enum plumb_group_by by,
        const struct parts *parts)
{
	struct plumb_grouping *g = plumb_grouping_new(p, by, NULL);
	uint32_t count = g ? plumb_grouping_count(g) : 0;
	struct plumb_stat *stats = calloc(count + 1u, sizeof *stats);
	int result =
		g && stats ? plumb_grouping_values(g, metric, stats, NULL, NULL) : PLUMB_ESYSTEM;

	if (!result)
		result = 1;
	for (uint32_t r = 0; result > 0 && r < count; r++)
		if (share_of(parts, stats[r].sum) > PLUMB_DIVIDES_MOST)
			result = 0;
	free(stats);
	plumb_grouping_free(g);
	return result;
}

/* The candidate for METRIC; CANDIDATES: nothing has any of it. Negative: no memory. */
static int
choose(const struct plumb_profile *p, uint32_t metric, const struct parts *parts)
{
	int best = CANDIDATES;
	double most = 0;

	for (int i = 0; i < CANDIDATES; i++) {
		double share = share_of(parts, parts->under[candidates[i].kind]);
		int divided = 1;

		if (share >= PLUMB_EXPLAINS_MOST && candidates[i].must_divide)
			divided = divides(p, metric, candidates[i].by, parts);
		if (divided < 0)
			return divided;
		if (share >= PLUMB_EXPLAINS_MOST && divided)
			return i;
		if (share > most)
			best = i, most = share;
	}
	return best;
}

/* Why there are no operators, though there could be, and what the rows leave open. */
static void
explain(const struct plumb_profile *p, uint32_t metric, const struct parts *parts,
        struct plumb_report_choice *choice)
{
	const char *name = plumb_profile_metric(p, metric).name;
	double operators = share_of(parts, parts->under[PLUMB_FRAME_OPERATOR]);
	double replays = share_of(parts, parts->replays);
	const char *plural = "functions";
	char share[PLUMB_FORMAT_SIZE];
	size_t used = 0;

	for (int i = 0; i < CANDIDATES; i++)
		if (candidates[i].by == choice->by)
			plural = candidates[i].plural;
	if (parts->seen[PLUMB_FRAME_OPERATOR] && choice->by != PLUMB_BY_OPERATOR)
		used = (size_t)snprintf(choice->why, sizeof choice->why,
		                        "rows are %s, because operators explain only %s of %s",
		                        plural, plumb_format_share(share, operators, 1), name);
	if (choice->by == PLUMB_BY_KERNEL && replays >= 0.5)
		snprintf(choice->why + used, sizeof choice->why - used,
		         "%sreplays of graphs, timed as a whole, are %s; --graphs=nodes times "
		         "their kernels",
		         used ? "; " : "", plumb_format_share(share, replays, 1));
}

/* Nothing has the metric: rows that the profile could have. */
static enum plumb_group_by
guess(const struct parts *parts, uint32_t metric)
{
	if (parts->seen[PLUMB_FRAME_OPERATOR] && !parts->seen[PLUMB_FRAME_KERNEL])
		return PLUMB_BY_OPERATOR;
	if (parts->seen[PLUMB_FRAME_KERNEL])
		return metric == PLUMB_METRIC_GPU_TIME ? PLUMB_BY_KERNEL : PLUMB_BY_OPERATOR;
	if (parts->seen[PLUMB_FRAME_RANGE])
		return PLUMB_BY_RANGE;
	if (metric < PLUMB_METRIC_USER && metric != PLUMB_METRIC_CPU_TIME)
		return PLUMB_BY_OPERATOR;
	return parts->seen[PLUMB_FRAME_PYTHON] ? PLUMB_BY_PYTHON : PLUMB_BY_NATIVE;
}

int
plumb_report_choose(const struct plumb_profile *profile, uint32_t metric,
                    struct plumb_report_choice *choice)
{
	struct parts parts = { 0 };
	int best = find_parts(profile, metric, &parts);

	*choice = (struct plumb_report_choice){ .by = PLUMB_BY_OPERATOR };
	if (best >= 0)
		best = choose(profile, metric, &parts);
	if (best < 0)
		return best;
	choice->by = best == CANDIDATES ? guess(&parts, metric) : candidates[best].by;
	/* Where native frames stand under Python ones, one table has no room for both. */
	if ((choice->by == PLUMB_BY_PYTHON || choice->by == PLUMB_BY_NATIVE) &&
	    parts.seen[PLUMB_FRAME_PYTHON] && parts.seen[PLUMB_FRAME_NATIVE])
		choice->by = PLUMB_BY_CONTEXT;
	explain(profile, metric, &parts, choice);
	return 0;
}
