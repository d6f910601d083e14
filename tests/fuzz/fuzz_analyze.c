/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever spans a trace has, the analyses come to an end: iterations, findings, the critical path. */
#include "analyze/analyze.h"
#include "analyze/iterations.h"
#include "analyze/path/path.h"

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
analyze(struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };
	struct plumb_iterations found;

	if (plumb_analyze(profile, NULL, &error) < 0)
		abort();
	if (plumb_iterations_find(profile, NULL, &found, &error) < 0)
		abort();
	plumb_iterations_free(&found);
	find_path(profile);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
	return import_fuzz(&plumb_format_kineto, data, bytes);
}
