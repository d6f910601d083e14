/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/diff/diff.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/diff/diff_private.h"

const char *const plumb_steps_names[] = { NULL, "given", "loop", "marker", "window" };

int
diff_no_memory(struct plumb_error *error)
{
	return plumb_fail_memory(error, NULL);
}

/* ---- by what sums are divided ---- */

static bool
all_have(const struct plumb_diff *diff, enum plumb_steps_from from)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct diff_steps *s = &diff->runs[r].steps;
		double count = from == PLUMB_STEPS_LOOP ? s->loops : s->markers;

		if (!(count > 0))
			return false;
	}
	return true;
}

/* Do the loops come as often as the markers, in every run? */
static bool
is_marked(const struct plumb_diff *diff)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct diff_steps *s = &diff->runs[r].steps;

		if (!(fabs(s->loops - s->markers) <= 0.1 * s->markers + 1))
			return false;
	}
	return true;
}

/* Are there about as many loops, or markers, as the person says iterations? Else these are
 * something else. */
static bool
is_said(const struct plumb_diff *diff, enum plumb_steps_from from)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct diff_steps *s = &diff->runs[r].steps;
		double count = from == PLUMB_STEPS_LOOP ? s->loops : s->markers;
		double said = diff->options.iterations[r >= diff->before];

		if (!(fabs(count - said) <= 0.1 * said + 1))
			return false;
	}
	return true;
}

/* Are all runs windows that say how many iterations they have? */
static bool
are_windows(const struct plumb_diff *diff)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct plumb_profile_window *w = &diff->runs[r].profile->window;

		if (w->kind != PLUMB_WINDOW_LOOP || w->iterations <= 0)
			return false;
	}
	return true;
}

static void
choose_steps(struct plumb_diff *diff)
{
	const struct plumb_diff_options *o = &diff->options;
	bool loops = all_have(diff, PLUMB_STEPS_LOOP), markers = all_have(diff, PLUMB_STEPS_MARKER);

	/* Loops that are not the same may be the steps of one run and the layers of another. */
	if (loops && markers && !diff->alike) {
		diff->alike = is_marked(diff);
		loops = diff->alike;
	}
	if (o->iterations[0] > 0 && o->iterations[1] > 0) {
		diff->from = PLUMB_STEPS_GIVEN;
		loops = loops && is_said(diff, PLUMB_STEPS_LOOP);
		markers = markers && is_said(diff, PLUMB_STEPS_MARKER);
	} else {
		diff->from = loops               ? PLUMB_STEPS_LOOP
		             : markers           ? PLUMB_STEPS_MARKER
		             : are_windows(diff) ? PLUMB_STEPS_WINDOW
		                                 : PLUMB_STEPS_NONE;
	}
	for (uint32_t r = 0; r < diff->count; r++) {
		struct diff_run *run = &diff->runs[r];
		struct plumb_diff_run *facts = &diff->facts[r];

		if (!loops)
			diff_steps_forget(&run->steps);
		if (diff->from == PLUMB_STEPS_GIVEN && !markers)
			run->steps.host.count = 0;
		*facts = (struct plumb_diff_run){
			.profile = run->profile,
			.iterations = diff->from == PLUMB_STEPS_GIVEN
			                      ? o->iterations[r >= diff->before]
			              : diff->from == PLUMB_STEPS_WINDOW
			                      ? (double)run->profile->window.iterations
			              : loops ? run->steps.loops
			                      : run->steps.markers,
			.measured = diff_windows_count(diff, r),
			.level = run->steps.level,
			.newest = loops && run->steps.newest,
		};
		run->per = o->total || diff->from == PLUMB_STEPS_NONE ? 1 : facts->iterations;
	}
}

uint32_t
diff_windows_count(const struct plumb_diff *diff, uint32_t r)
{
	const struct diff_steps *s = &diff->runs[r].steps;
	uint32_t least = s->gpu_count ? UINT32_MAX : s->host.count;

	for (uint32_t i = 0; i < s->gpu_count; i++)
		if (s->gpus[i].count < least)
			least = s->gpus[i].count;
	return least;
}

static int
count_outliers(struct plumb_diff *diff)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct diff_steps *s = &diff->runs[r].steps;
		int count = diff_windows_outliers(s->gpu_count ? &s->gpus[0] : &s->host,
		                                  diff->facts[r].measured, NULL);

		if (count < 0)
			return count;
		diff->facts[r].left_out = (uint32_t)count;
	}
	return 0;
}

/* ---- all of it ---- */

struct plumb_diff *
plumb_diff_new(const struct plumb_profile *const *profiles, uint32_t before, uint32_t count,
               const struct plumb_diff_options *options, struct plumb_error *error)
{
	struct plumb_diff *diff = calloc(1, sizeof *diff);
	int code = PLUMB_ESYSTEM;

	if (diff) {
		diff->options = *options;
		diff->count = count;
		diff->before = before;
		diff->runs = calloc(count, sizeof *diff->runs);
		diff->facts = calloc(count, sizeof *diff->facts);
	}
	if (diff && diff->runs && diff->facts) {
		for (uint32_t r = 0; r < count; r++)
			diff->runs[r].profile = profiles[r];
		code = diff_steps_find(diff, error);
		if (!code)
			code = diff_lines_align(diff);
	}
	if (!code) {
		choose_steps(diff);
		code = count_outliers(diff);
	}
	if (!code)
		return diff;
	diff_no_memory(error);
	plumb_diff_free(diff);
	return NULL;
}

void
plumb_diff_free(struct plumb_diff *diff)
{
	if (!diff)
		return;
	if (diff->runs)
		diff_lines_free(diff);
	for (uint32_t r = 0; diff->runs && r < diff->count; r++) {
		plumb_iterations_free(&diff->runs[r].found);
		plumb_gpu_work_free(&diff->runs[r].gpu);
		diff_steps_free(&diff->runs[r].steps);
	}
	free(diff->runs);
	free(diff->facts);
	free(diff);
}

const struct plumb_diff_run *
plumb_diff_runs(const struct plumb_diff *diff, uint32_t *count, uint32_t *before)
{
	*count = diff->count;
	*before = diff->before;
	return diff->facts;
}

enum plumb_steps_from
plumb_diff_from(const struct plumb_diff *diff)
{
	return diff->from;
}

bool
plumb_diff_is_normal(const struct plumb_diff *diff)
{
	return diff->from != PLUMB_STEPS_NONE && !diff->options.total;
}

bool
plumb_diff_is_alike(const struct plumb_diff *diff)
{
	return diff->alike || diff->from != PLUMB_STEPS_LOOP;
}
