/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph of two profiles: which frames are the same, what values are of, and the metric. The
 * rest of the folder sees one tree, whose nodes have a value of each profile.
 */
#include <stdlib.h>
#include <string.h>

#include "model/metric.h"
#include "view/diff.h"
#include "view/flame_private.h"

/* Numbers of the graph for the frames of both sides: one that the first side has, has its number
 * there. */
static int
number_frames(struct plumb_flame *flame, const struct plumb_diff *diff, struct plumb_error *error)
{
	uint32_t *keys[PLUMB_FLAME_SIDES], count, *first;
	int code = plumb_diff_frames(diff, keys, &count, error);

	if (code)
		return code;
	/* The runs of the comparison are in the order of time. */
	flame->sides[0].frame_of = keys[1];
	flame->sides[1].frame_of = keys[0];
	first = malloc((count + (size_t)1) * sizeof *first);
	if (!first)
		return plumb_fail_memory(error, "for the flame graph");
	for (uint32_t k = 0; k < count; k++)
		first[k] = PLUMB_NONE;
	for (uint32_t s = 0, behind = 0; s < PLUMB_FLAME_SIDES; s++) {
		const struct plumb_flame_side *side = &flame->sides[s];

		for (uint32_t f = 0; f < side->profile->frames_count; f++) {
			uint32_t *of = &first[side->frame_of[f]];

			if (*of == PLUMB_NONE)
				*of = behind + f;
			side->frame_of[f] = *of;
		}
		behind = side->profile->frames_count;
	}
	free(first);
	return 0;
}

static int
find_metrics(struct plumb_flame *flame, struct plumb_error *error)
{
	const struct plumb_profile *profiles[] = { flame->query.against, flame->profile };
	const char *name = flame->query.metric
	                           ? flame->query.metric
	                           : plumb_diff_default_metric(profiles, 2, PLUMB_DIFF_CONTEXT);

	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++) {
		struct plumb_flame_side *side = &flame->sides[s];

		side->metric = plumb_profile_metric_find(side->profile, name);
		if (!side->metric)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "the profile %s has no metric \"%s\"",
			                  s ? "before" : "after", name);
	}
	return 0;
}

/* What AKIN has found. */
static int
take_numbers(struct plumb_flame *flame, const struct plumb_flame *akin, struct plumb_error *error)
{
	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++) {
		const struct plumb_flame_side *from = &akin->sides[s];
		size_t count = from->profile->frames_count + (size_t)1;
		uint32_t *copy = malloc(count * sizeof *copy);

		if (!copy)
			return plumb_fail_memory(error, "for the flame graph");
		flame->sides[s].frame_of = memcpy(copy, from->frame_of, (count - 1) * sizeof *copy);
		flame->sides[s].per = from->per;
		flame->iterations[s] = akin->iterations[s];
	}
	return 0;
}

int
plumb_flame_compare(struct plumb_flame *flame, const struct plumb_flame *akin,
                    struct plumb_error *error)
{
	const struct plumb_profile *profiles[] = { flame->query.against, flame->profile };
	const struct plumb_diff_options options = { .by = PLUMB_DIFF_CONTEXT };
	const struct plumb_diff_run *runs;
	struct plumb_diff *diff;
	uint32_t count, before;
	int code;

	flame->side_count = PLUMB_FLAME_SIDES;
	flame->sides[1].profile = flame->query.against;
	code = find_metrics(flame, error);
	if (code)
		return code;
	if (akin)
		return take_numbers(flame, akin, error);
	diff = plumb_diff_new(profiles, 1, 2, &options, error);
	if (!diff)
		return PLUMB_ESYSTEM;
	runs = plumb_diff_runs(diff, &count, &before);
	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES && plumb_diff_is_normal(diff); s++) {
		flame->iterations[s] = runs[!s].iterations;
		flame->sides[s].per = runs[!s].iterations;
	}
	code = number_frames(flame, diff, error);
	plumb_diff_free(diff);
	return code;
}
