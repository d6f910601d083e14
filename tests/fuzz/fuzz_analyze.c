/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever spans a trace has, the analyses come to an end: iterations, steps and ranks, findings,
 * the critical path of all and of a part. */
#include "analyze/analyze.h"
#include "analyze/path/summary.h"
#include "view/iters.h"

static void analyze(struct plumb_profile *profile);
#define IMPORT_FUZZ_THEN analyze
#include "import_fuzz.h"

extern const struct plumb_format plumb_format_kineto;
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

static void
find_path(const struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };
	struct plumb_path_window window;
	struct plumb_path *path = plumb_path_new(profile, NULL, &error);
	unsigned char *gone = calloc((size_t)profile->contexts_count + 1, 1);

	if (!gone)
		abort();
	if (path && !plumb_path_open_whole(path, &window, &error)) {
		int64_t sum = 0;

		for (int k = 0; k < PLUMB_PATH_KINDS; k++)
			if (__builtin_add_overflow(sum, window.sums[k], &sum))
				abort();
		if (sum != window.end_ns - window.start_ns)
			abort();
		memset(gone, 1, profile->contexts_count);
		if (plumb_path_saving(&window, gone) < 0)
			abort();
		plumb_path_close(&window);
	}
	free(gone);
	plumb_path_free(path);
}

static void
find_part(const struct plumb_profile *profile, const struct plumb_iterations *found,
          const uint32_t *user_of)
{
	struct plumb_path_asked asked = { .most = PLUMB_PATH_ROWS_MOST,
		                          .track = PLUMB_NONE,
		                          .whole_always = true };
	struct plumb_path_summaries summaries = { 0 };
	struct plumb_path_window window;
	struct plumb_path_part part;
	struct plumb_path *path;

	if (plumb_path_part_find(profile, found, PLUMB_NONE, profile->spans_count / 2, &part, NULL))
		return;
	path = plumb_path_new(profile, &part, NULL);
	if (path && !plumb_path_open_whole(path, &window, NULL)) {
		if (plumb_path_summarize(&window, found, user_of, &asked, &summaries, NULL))
			abort();
		plumb_path_close(&window);
	}
	plumb_path_summaries_free(&summaries);
	plumb_path_free(path);
}

static void
find_steps(const struct plumb_profile *profile)
{
	struct plumb_iteration_limits limits = { 0 };
	struct plumb_iters_query query = { .limits = &limits, .explains = true };
	struct plumb_error error = { 0 };
	struct plumb_iters iters;

	if (plumb_iters_make(profile, &query, &iters, &error))
		abort();
	for (uint32_t t = 0; t < iters.found.count; t++) {
		struct plumb_step_rows rows = { 0 };

		if (!iters.steps.moments[t])
			continue;
		if (plumb_moments_both(iters.steps.moments[t], -PLUMB_TIME_MOST + 1,
		                       PLUMB_TIME_MOST - 1, &rows) < 0)
			abort();
		plumb_vec_free(&rows);
	}
	find_part(profile, &iters.found, iters.steps.user_of);
	plumb_iters_free(&iters);
}

static void
analyze(struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };

	if (plumb_analyze(profile, NULL, &error) < 0)
		abort();
	find_steps(profile);
	find_path(profile);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
	return import_fuzz(&plumb_format_kineto, data, bytes);
}
