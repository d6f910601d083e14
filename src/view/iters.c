/* SPDX-License-Identifier: Apache-2.0 */
#include "view/iters.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/group.h"
#include "analyze/statistic.h"
#include "model/metric.h"
#include "model/user_code.h"
#include "view/iters_path.h"

const char *const plumb_iters_roles[] = { "main", "copy", "assist" };
const char *const plumb_iters_phases[] = { "gap", "copy", "marker" };
const char *const plumb_iters_verdicts[] = { NULL, "host-bound", "copy-bound", "GPU-bound" };
const char *const plumb_iters_odd[] = { "before", "between", "after", "inserted", "missing" };

bool
plumb_iters_shown(const struct plumb_iters *iters, const struct plumb_iteration_track *track)
{
	return iters->track < 0 || track->track == iters->track;
}

enum plumb_odd_kind
plumb_iters_where(const struct plumb_iteration_track *track, uint32_t stretch)
{
	return !stretch                              ? PLUMB_ODD_BEFORE
	       : stretch + 1 == track->stretch_count ? PLUMB_ODD_AFTER
	                                             : PLUMB_ODD_BETWEEN;
}

/* Puts loop NUMBER in the place of the main loop, on tracks that are shown and have it. Returns
 * whether one does. */
static bool
choose_loop(struct plumb_iters *iters, int64_t number)
{
	bool any = false;

	for (uint32_t t = 0; t < iters->found.count; t++) {
		struct plumb_iteration_track *track = &iters->found.tracks[t];

		if (number > track->loop_count || !plumb_iters_shown(iters, track))
			continue;
		track->main_loop = (uint32_t)number - 1;
		track->levels = track->loops[number - 1].levels;
		track->level_count = track->loops[number - 1].level_count;
		any = true;
	}
	return any;
}

/* Finds what is shown for TRACK, which is number T of those found. */
static int
make_track(const struct plumb_iteration_track *track, uint32_t t,
           const struct plumb_iteration_limits *limits, struct plumb_iters_steps *steps)
{
	struct plumb_iters_track *own = &steps->tracks[t];
	int code;

	steps->moments[t] = &own->moments;
	code = plumb_moments_new(&steps->shared, track->device, track->process, track->track,
	                         &own->moments);
	if (!code)
		code = plumb_filled_find(&own->moments, &track->levels[0], limits, &own->filled);
	if (!code)
		code = plumb_marked_find(&own->moments, &track->levels[0], &steps->marked[t]);
	if (!code)
		own->contended =
			plumb_contended_find(&own->moments, &track->levels[0], &own->others);
	return own->contended ? code : PLUMB_ESYSTEM;
}

static int
make_steps(const struct plumb_profile *p, const struct plumb_iterations *found,
           const struct plumb_iteration_limits *limits, bool explains,
           struct plumb_iters_steps *steps, struct plumb_error *error)
{
	int code = 0;

	steps->user =
		plumb_user_code_frames(p, plumb_profile_environment(p, "run.user_code"), error);
	if (!steps->user)
		return error->code;
	steps->user_of = plumb_user_contexts(p, steps->user);
	if (steps->user_of)
		steps->division =
			plumb_division_new(p, steps->user, steps->user_of, plumb_metric_default(p));
	steps->tracks = calloc((size_t)found->count + 1, sizeof *steps->tracks);
	steps->moments = calloc((size_t)found->count + 1, sizeof *steps->moments);
	steps->marked = calloc((size_t)found->count + 1, sizeof *steps->marked);
	if (!steps->division || !steps->tracks || !steps->moments || !steps->marked)
		return plumb_fail_memory(error, NULL);
	steps->count = found->count;
	code = plumb_moments_share(p, steps->division->place_of, steps->division, &steps->shared);
	for (uint32_t t = 0; !code && t < found->count; t++)
		if (found->tracks[t].level_count)
			code = make_track(&found->tracks[t], t, limits, steps);
	if (!code)
		code = plumb_ranks_match(p, found, steps->moments, steps->marked, &steps->match);
	for (uint32_t t = 0; !explains && t < found->count; t++)
		plumb_moments_finish(&steps->tracks[t].moments);
	if (!explains)
		plumb_moments_unshare(&steps->shared);
	return code ? plumb_fail_memory(error, NULL) : 0;
}

static void
free_steps(struct plumb_iters_steps *steps)
{
	for (uint32_t t = 0; t < steps->count; t++) {
		plumb_filled_free(&steps->tracks[t].filled);
		free(steps->tracks[t].contended);
		if (steps->marked)
			plumb_marked_free(&steps->marked[t]);
		if (steps->tracks[t].moments.profile)
			plumb_moments_free(&steps->tracks[t].moments);
	}
	plumb_moments_unshare(&steps->shared);
	plumb_rank_match_free(&steps->match);
	free(steps->moments);
	free(steps->marked);
	free(steps->tracks);
	plumb_division_free(steps->division);
	free(steps->user_of);
	free(steps->user);
}

int
plumb_iters_make(const struct plumb_profile *profile, const struct plumb_iters_query *query,
                 struct plumb_iters *iters, struct plumb_error *error)
{
	const struct plumb_iteration_limits *limits =
		query->limits ? query->limits : &plumb_iteration_limits;
	int code;

	*iters = (struct plumb_iters){ .profile = profile,
		                       .has_spans = profile->spans_count,
		                       .track = query->one ? query->track : -1,
		                       .loop = query->loop };
	code = plumb_iterations_find(profile, limits, &iters->found, error);
	if (!code && query->loop && !choose_loop(iters, query->loop))
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "there is no loop %" PRId64 "; plumb iters lists the loops",
		                  query->loop);
	if (!code && !iters->found.count && !plumb_host_steps_find(profile, &iters->host))
		code = plumb_fail_memory(error, NULL);
	if (!code)
		code = make_steps(profile, &iters->found, limits, query->explains, &iters->steps,
		                  error);
	if (!code && query->paths != PLUMB_ITERS_NO_PATHS)
		iters->paths = plumb_iters_path_new(iters, query, &code, error);
	return code;
}

void
plumb_iters_free(struct plumb_iters *iters)
{
	plumb_iters_path_free(iters->paths);
	plumb_host_steps_free(&iters->host);
	free_steps(&iters->steps);
	plumb_iterations_free(&iters->found);
}

int64_t
plumb_iters_step(const struct plumb_iters *iters, uint32_t t, uint32_t i)
{
	const int64_t *numbers = iters->steps.marked ? iters->steps.marked[t].numbers : NULL;

	return numbers ? numbers[i] : PLUMB_UNKNOWN;
}

bool
plumb_iters_steps_differ(const struct plumb_iters *iters, uint32_t t)
{
	for (uint32_t i = 0; i < iters->found.tracks[t].levels[0].count; i++) {
		int64_t step = plumb_iters_step(iters, t, i);

		if (step != PLUMB_UNKNOWN && step != i)
			return true;
	}
	return false;
}

/* ---- steps of the host ---- */

bool
plumb_iters_host_shown(const struct plumb_iters *iters)
{
	const struct plumb_host_steps *host = &iters->host;

	return !iters->found.count && host->count >= 1 &&
	       (iters->track < 0 || iters->track == host->track);
}

int64_t
plumb_iters_host_duration(const struct plumb_host_steps *host, uint32_t i)
{
	return i + 1 < host->starts ? host->start[i + 1] - host->start[i] : PLUMB_UNKNOWN;
}

int
plumb_iters_host_measure(const struct plumb_host_steps *host, struct plumb_iteration_stat *stat)
{
	uint32_t count = host->starts ? host->starts - 1 : 0;
	double *values = malloc((count + (size_t)1) * sizeof *values), sum = 0;

	*stat = (struct plumb_iteration_stat){ PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		                               PLUMB_UNKNOWN };
	if (!values)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		sum += values[i] = (double)plumb_iters_host_duration(host, i);
	if (count) {
		stat->average = llround(sum / count);
		stat->p50 = plumb_whole(plumb_median(values, count));
		stat->p95 = plumb_whole(plumb_percentile(values, count, 95));
		stat->most = plumb_whole(plumb_percentile(values, count, 100));
	}
	free(values);
	return 0;
}

const char *
plumb_iters_why_empty(const struct plumb_iters *iters, bool explains)
{
	bool host = plumb_iters_host_shown(iters);

	for (uint32_t t = 0; t < iters->found.count; t++)
		if (plumb_iters_shown(iters, &iters->found.tracks[t]))
			return NULL;
	if (host && !explains)
		return NULL;
	if (iters->found.count)
		return "this track has no GPU work; leave out --track to list all tracks";
	if (host)
		return "--explain needs GPU work, and the profile has none";
	if (iters->has_spans)
		return "the profile has no GPU work, the order of operators and ranges shows no "
		       "loop, and the program marks no steps (ProfilerStep, Optimizer.step); "
		       "plumb report shows what the host did";
	return "the profile has no times of GPU work; record with --trace";
}
