/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of steps where memory runs out, at each allocation in turn: one error that says so,
 * or all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/path/summary.h"
#include "failing_malloc.h"
#include "model/builder.h"
#include "view/iters.h"

#define US INT64_C(1000)
#define RANKS 2
#define STEPS 12

enum { RANGE, LAUNCH, GEMM, LAYOUT, REDUCE, NAMES };

struct made {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	uint32_t thread[RANKS], stream[RANKS], contexts[NAMES];
	uint64_t call;
};

static void
begin(struct made *m)
{
	static const struct {
		uint32_t kind;
		const char *name;
	} names[NAMES] = {
		{ PLUMB_FRAME_RANGE, "ProfilerStep" },
		{ PLUMB_FRAME_GPU_API, "cuLaunchKernel" },
		{ PLUMB_FRAME_KERNEL, "gemm" },
		{ PLUMB_FRAME_KERNEL, "nchwToNhwcKernel" },
		{ PLUMB_FRAME_KERNEL, "ncclDevKernel_AllReduce" },
	};
	struct plumb_builder *b = m->builder = plumb_builder_new();

	for (int r = 0; r < RANKS; r++) {
		uint32_t process = plumb_builder_process(
			b,
			&(struct plumb_process){
				.pid = r, .rank = r, .host = PLUMB_NONE, .command = PLUMB_NONE });
		uint32_t device = plumb_builder_device(
			b,
			&(struct plumb_device){
				.name = PLUMB_NONE, .uuid = PLUMB_NONE, .ordinal = r, .rank = r });

		m->thread[r] =
			plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
		                                                      .process = process,
		                                                      .device = PLUMB_NONE,
		                                                      .name = PLUMB_NONE });
		m->stream[r] =
			plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
		                                                      .process = process,
		                                                      .device = device,
		                                                      .name = PLUMB_NONE });
		plumb_builder_environment(b, process, PLUMB_PROFILER_STEPS, "3..14");
	}
	for (int i = 0; i < NAMES; i++)
		m->contexts[i] = plumb_builder_context(
			b, 0,
			plumb_builder_frame(b, names[i].kind, plumb_builder_text(b, names[i].name),
		                            PLUMB_NONE, 0),
			0);
}

static void
span(struct made *m, uint32_t track, int name, int64_t start, int64_t length, uint64_t call)
{
	assert_int_equal(plumb_builder_span(m->builder,
	                                    &(struct plumb_span){ .context = m->contexts[name],
	                                                          .track = track,
	                                                          .start_ns = start * US,
	                                                          .end_ns = (start + length) * US,
	                                                          .correlation = call }),
	                 0);
}

static void
step(struct made *m, int rank, int64_t at)
{
	static const int kernels[] = { GEMM, LAYOUT, GEMM, REDUCE };

	span(m, m->thread[rank], RANGE, at, 900, 0);
	for (int k = 0; k < 4; k++) {
		int64_t start = at + 100 * k + 20 + rank;

		span(m, m->thread[rank], LAUNCH, at + 100 * k + 10, 5, ++m->call);
		span(m, m->stream[rank], kernels[k], start, 80 - rank, m->call);
		if (kernels[k] == REDUCE)
			assert_int_equal(
				plumb_builder_collective(
					m->builder,
					&(struct plumb_collective){
						m->stream[rank],
						plumb_builder_text(m->builder, "tp"),
						plumb_builder_text(m->builder, "[0, 1]"),
						start * US, 2, at < 6000 ? at : PLUMB_UNKNOWN }),
				0);
	}
	for (int k = 0; k < 5; k++)
		assert_int_equal(
			plumb_builder_cpu_sample(
				m->builder,
				&(struct plumb_cpu_sample){ m->thread[rank], m->contexts[RANGE],
		                                            (at + 400 + 100 * k) * US, 100 * US }),
			0);
}

static void
make(struct made *m)
{
	*m = (struct made){ 0 };
	begin(m);
	for (int i = 0; i < STEPS; i++)
		for (int r = 0; r < RANKS; r++)
			step(m, r, 1000 * i);
	assert_int_equal(plumb_builder_finish(m->builder, &m->profile, NULL), 0);
	plumb_builder_free(m->builder);
}

static void
test_steps(void **state)
{
	struct plumb_iteration_limits limits = { 0 };
	struct plumb_iters_query query = { .limits = &limits, .explains = true };
	struct plumb_error error = { 0 };
	struct made m;
	bool all = false;

	(void)state;
	make(&m);
	for (long n = 0; FAILING_MALLOC && !all; n++) {
		struct plumb_iters iters;
		int code;

		failing_malloc_at = n;
		code = plumb_iters_make(&m.profile, &query, &iters, &error);
		all = !failing_malloc_stop();
		assert_true(code == 0 || code == PLUMB_ESYSTEM);
		if (all) {
			assert_int_equal(code, 0);
			assert_int_equal(iters.steps.match.rank_count, RANKS);
			assert_true(iters.steps.match.collectives);
			assert_int_equal(iters.steps.match.matched, PLUMB_MATCHED_BY_STEP);
		}
		plumb_iters_free(&iters);
	}
	plumb_profile_free(&m.profile);
}

static int
find_path(const struct made *m, const struct plumb_iterations *found, const uint32_t *user_of,
          uint32_t most, struct plumb_path_summaries *summaries)
{
	struct plumb_path_asked asked = { .most = PLUMB_PATH_ROWS_MOST,
		                          .track = PLUMB_NONE,
		                          .whole_always = true };
	struct plumb_path_window whole = { 0 };
	struct plumb_path_part part;
	struct plumb_path *path = NULL;
	struct plumb_error error = { 0 };
	int code = plumb_path_part_find(&m->profile, found, PLUMB_NONE, most, &part, &error);

	if (!code) {
		path = plumb_path_new(&m->profile, &part, &error);
		code = path ? 0 : error.code;
	}
	if (!code) {
		code = plumb_path_open_whole(path, &whole, &error);
		if (!code)
			code = plumb_path_summarize(&whole, found, user_of, &asked, summaries,
			                            &error);
		plumb_path_close(&whole);
	}
	plumb_path_free(path);
	return code;
}

static void
test_path(void **state)
{
	struct plumb_iterations found;
	struct made m;

	(void)state;
	make(&m);
	assert_int_equal(plumb_iterations_find(&m.profile, NULL, &found, NULL), 0);
	uint32_t *user_of = malloc((m.profile.contexts_count + 1) * sizeof *user_of);
	assert_non_null(user_of);
	for (uint32_t c = 0; c < m.profile.contexts_count; c++)
		user_of[c] = PLUMB_NONE;
	for (int whole = 0; whole < 2; whole++)
		for (long n = 0, all = 0; FAILING_MALLOC && !all; n++) {
			struct plumb_path_summaries summaries = { 0 };
			int code;

			failing_malloc_at = n;
			code = find_path(&m, &found, user_of,
			                 whole ? UINT32_MAX : m.profile.spans_count / 2,
			                 &summaries);
			all = !failing_malloc_stop();
			assert_true(code == 0 || code == PLUMB_ESYSTEM);
			assert_true(!all || (code == 0 && summaries.tries > 0));
			plumb_path_summaries_free(&summaries);
		}
	free(user_of);
	plumb_iterations_free(&found);
	plumb_profile_free(&m.profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
