/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path: schedules whose path is known to the nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/path/path.h"
#include "model/builder.h"

/* ---- schedules ---- */

struct schedule {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	struct plumb_path *path;
	uint32_t process[4], device[4];
};

static uint32_t
context_at(struct schedule *s, uint32_t parent, uint32_t kind, const char *name, uint32_t flags)
{
	struct plumb_builder *b = s->builder;

	return plumb_builder_context(
		b, parent, plumb_builder_frame(b, kind, plumb_builder_text(b, name), PLUMB_NONE, 0),
		flags);
}

static uint32_t
context(struct schedule *s, uint32_t kind, const char *name)
{
	return context_at(s, 0, kind, name, 0);
}

static void
begin(struct schedule *s, int ranks)
{
	*s = (struct schedule){ .builder = plumb_builder_new() };
	for (int i = 0; i < ranks; i++) {
		s->process[i] = plumb_builder_process(
			s->builder, &(struct plumb_process){ .pid = 10 + i,
		                                             .rank = i,
		                                             .host = PLUMB_NONE,
		                                             .command = PLUMB_NONE });
		s->device[i] = plumb_builder_device(
			s->builder,
			&(struct plumb_device){
				.name = PLUMB_NONE, .uuid = PLUMB_NONE, .ordinal = i, .rank = i });
	}
}

static uint32_t
track(struct schedule *s, int rank, bool stream, int64_t number)
{
	return plumb_builder_track(
		s->builder,
		&(struct plumb_track){ .kind = stream ? PLUMB_TRACK_STREAM : PLUMB_TRACK_THREAD,
	                               .process = s->process[rank],
	                               .device = stream ? s->device[rank] : PLUMB_NONE,
	                               .name = PLUMB_NONE,
	                               .tid = stream ? PLUMB_UNKNOWN : number,
	                               .stream = stream ? number : PLUMB_UNKNOWN,
	                               .gpu_context = PLUMB_UNKNOWN });
}

static void
span(struct schedule *s, uint32_t where, uint32_t what, int64_t start, int64_t end,
     uint64_t correlation)
{
	assert_int_equal(
		plumb_builder_span(s->builder, &(struct plumb_span){ .context = what,
	                                                             .track = where,
	                                                             .start_ns = start,
	                                                             .end_ns = end,
	                                                             .correlation = correlation }),
		0);
}

static void
make_path(struct schedule *s)
{
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_builder_finish(s->builder, &s->profile, &error), 0);
	plumb_builder_free(s->builder);
	s->path = plumb_path_new(&s->profile, NULL, &error);
	assert_non_null(s->path);
}

static void
end(struct schedule *s)
{
	plumb_path_free(s->path);
	plumb_profile_free(&s->profile);
}

/* Without a hole, and its sums are those of its segments. */
static void
check_whole(const struct plumb_path_window *w)
{
	int64_t sums[PLUMB_PATH_KINDS] = { 0 }, at = w->start_ns;

	for (uint32_t i = 0; i < w->count; i++) {
		assert_int_equal(w->segments[i].start_ns, at);
		at = w->segments[i].end_ns;
		sums[w->segments[i].kind] += at - w->segments[i].start_ns;
	}
	assert_int_equal(at, w->end_ns);
	assert_memory_equal(sums, w->sums, sizeof sums);
}

/* "host step 10, launch gemm 5, …": kind, name and length of each segment. */
static void
expect(const struct schedule *s, const struct plumb_path_window *w, const char *expected)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	for (uint32_t i = 0; i < w->count; i++) {
		const struct plumb_path_segment *g = &w->segments[i];

		fprintf(out, "%s%s %s %lld", i ? ", " : "", plumb_path_kinds[g->kind],
		        g->context == PLUMB_NONE
		                ? "-"
		                : plumb_frame_label(&s->profile,
		                                    s->profile.contexts[g->context].frame),
		        (long long)(g->end_ns - g->start_ns));
	}
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	check_whole(w);
}

/* Of itself, and within the whole: the same. */
static void
open_both(struct schedule *s, uint32_t where, int64_t start, int64_t until,
          struct plumb_path_window *w)
{
	struct plumb_path_window whole, within;
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_path_open_whole(s->path, &whole, &error), 0);
	assert_int_equal(plumb_path_within(&whole, where, start, until, &within, &error), 0);
	plumb_path_close(&within);
	plumb_path_close(&whole);
	assert_int_equal(plumb_path_open(s->path, where, start, until, w, &error), 0);
	assert_int_equal(within.start_ns, w->start_ns);
	assert_int_equal(within.end_ns, w->end_ns);
	assert_int_equal(within.peer_ns, w->peer_ns);
	assert_memory_equal(within.sums, w->sums, sizeof w->sums);
}

static void
open_window(struct schedule *s, uint32_t where, int64_t start, int64_t until,
            struct plumb_path_window *w)
{
	struct plumb_error error = { 0 };

	if (where == PLUMB_NONE)
		assert_int_equal(plumb_path_open_whole(s->path, w, &error), 0);
	else
		open_both(s, where, start, until, w);
	assert_true(plumb_path_list(w));
}

/* What the window saves without the contexts of that name. */
static int64_t
saving(const struct schedule *s, struct plumb_path_window *w, const char *name)
{
	unsigned char *gone = calloc(s->profile.contexts_count, 1);
	int64_t saved;
	bool any = false;

	for (uint32_t c = 1; c < s->profile.contexts_count; c++)
		if (!strcmp(plumb_frame_label(&s->profile, s->profile.contexts[c].frame), name))
			any = (gone[c] = 1);
	assert_true(any);
	saved = plumb_path_saving(w, gone);
	free(gone);
	return saved;
}

/* ---- one rank ---- */

/* Three short kernels that wait for their launches; host work between them. */
static void
test_host_bound(void **state)
{
	struct schedule s;
	struct plumb_path_window w;

	(void)state;
	begin(&s, 1);
	uint32_t thread = track(&s, 0, false, 1), stream = track(&s, 0, true, 7);
	uint32_t op = context(&s, PLUMB_FRAME_OPERATOR, "op");
	uint32_t call = context_at(&s, op, PLUMB_FRAME_GPU_API, "launch", 0);
	uint32_t kernel = context_at(&s, call, PLUMB_FRAME_KERNEL, "k", 0);
	for (int i = 0; i < 3; i++) {
		span(&s, thread, op, 100 * i, 100 * i + 90, 0);
		span(&s, thread, call, 100 * i + 60, 100 * i + 70, (uint64_t)i + 1);
		span(&s, stream, kernel, 100 * i + 75, 100 * i + 95, (uint64_t)i + 1);
	}
	make_path(&s);
	open_window(&s, PLUMB_NONE, 0, 0, &w);
	expect(&s, &w,
	       "host op 60, host launch 10, host op 20, host - 10, host op 60, host launch 10, "
	       "host op 20, host - 10, host op 60, launch k 15, kernel k 20");
	assert_int_equal(saving(&s, &w, "op"), 3 * 60 + 2 * 20);
	assert_int_equal(saving(&s, &w, "k"), 20); /* only the last one is on the path */
	plumb_path_close(&w);
	/* The second kernel's time alone: from the end of the first one on. */
	open_window(&s, stream, 95, 195, &w);
	expect(&s, &w, "host - 5, host op 60, launch k 15, kernel k 20");
	assert_int_equal(saving(&s, &w, "op"), 60);
	plumb_path_close(&w);
	assert_int_equal(plumb_path_facts(s.path)->launches, 3);
	end(&s);
}

/* All launched early: kernels one after another, 2 ns apart. */
static void
test_gpu_bound(void **state)
{
	struct schedule s;
	struct plumb_path_window w;

	(void)state;
	begin(&s, 1);
	uint32_t thread = track(&s, 0, false, 1), stream = track(&s, 0, true, 7);
	uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "launch");
	uint32_t a = context(&s, PLUMB_FRAME_KERNEL, "a"), b = context(&s, PLUMB_FRAME_KERNEL, "b");
	for (int i = 0; i < 4; i++) {
		span(&s, thread, call, 10 * i, 10 * i + 5, (uint64_t)i + 1);
		span(&s, stream, i % 2 ? b : a, 8 + 102 * i, 108 + 102 * i, (uint64_t)i + 1);
	}
	make_path(&s);
	open_window(&s, PLUMB_NONE, 0, 0, &w);
	expect(&s, &w,
	       "launch a 8, kernel a 100, gap b 2, kernel b 100, gap a 2, kernel a 100, gap b 2, "
	       "kernel b 100");
	assert_int_equal(saving(&s, &w, "b"), 2 * 100); /* the gaps before them stay */
	/* The first b is then there 8 after its call, which begins at 10, and its gap of 2. */
	assert_int_equal(saving(&s, &w, "a"), 414 - (10 + 8 + 2 + 100 + 2 + 2 + 100));
	assert_int_equal(saving(&s, &w, "launch"), 0); /* hidden */
	plumb_path_close(&w);
	end(&s);
}

/* A copy on a second stream that the last kernel waits for by an event; the copy hides behind a
 * kernel, or the kernel behind the copy. */
static void
test_event(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++)
		for (int recorded = 0; recorded < 2; recorded++) {
			struct schedule s;
			struct plumb_path_window w;
			int64_t us = 1000, copied = slow ? 400 * us : 150 * us;
			int64_t first = 300 * us, last = copied > first ? copied : first;

			begin(&s, 1);
			uint32_t thread = track(&s, 0, false, 1), main = track(&s, 0, true, 7);
			uint32_t side = track(&s, 0, true, 8);
			uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "launch");
			uint32_t record = context(&s, PLUMB_FRAME_GPU_API, "cudaEventRecord");
			uint32_t wait = context(&s, PLUMB_FRAME_GPU_API, "cudaStreamWaitEvent");
			uint32_t copy = context(&s, PLUMB_FRAME_COPY,
			                        "copy pinned\xe2\x86\x92"
			                        "device");
			uint32_t a = context(&s, PLUMB_FRAME_KERNEL, "a");
			uint32_t b = context(&s, PLUMB_FRAME_KERNEL, "b");
			span(&s, thread, call, 0, us, 1);
			span(&s, main, a, 5 * us, first, 1);
			span(&s, thread, call, 2 * us, 3 * us, 2);
			span(&s, side, copy, 8 * us, copied, 2);
			span(&s, thread, record, 4 * us, 5 * us, 3);
			span(&s, thread, wait, 6 * us, 7 * us, 4);
			span(&s, thread, call, 8 * us, 9 * us, 5);
			span(&s, main, b, last + us, last + 100 * us, 5);
			if (recorded)
				plumb_builder_wait(
					s.builder,
					&(struct plumb_wait){ main, side, PLUMB_NONE, 4, 3 });
			make_path(&s);
			open_window(&s, PLUMB_NONE, 0, 0, &w);
			if (slow)
				expect(&s, &w,
				       "host launch 1000, host - 1000, launch copy "
				       "pinned\xe2\x86\x92"
				       "device 6000, copy copy pinned\xe2\x86\x92"
				       "device 392000, gap b 1000, kernel b 99000");
			else
				expect(&s, &w,
				       "launch a 5000, kernel a 295000, gap b 1000, kernel b "
				       "99000");
			/* Without the record b could follow its launch at once. */
			assert_int_equal(saving(&s, &w, "a"), slow       ? 0
			                                      : recorded ? 150000
			                                                 : (301 - 14) * us);
			assert_int_equal(saving(&s, &w,
			                        "copy pinned\xe2\x86\x92"
			                        "device"),
			                 slow ? 100000 : 0);
			const struct plumb_path_facts *facts = plumb_path_facts(s.path);
			assert_int_equal(facts->events, recorded);
			assert_int_equal(facts->inferred_events, slow && !recorded);
			plumb_path_close(&w);
			end(&s);
		}
}

/* The host waits in the middle, as recorded or by the call's name, and goes on afterwards. */
static void
test_sync(void **state)
{
	(void)state;
	for (int recorded = 0; recorded < 3; recorded++) {
		struct schedule s;
		struct plumb_path_window w;

		begin(&s, 1);
		uint32_t thread = track(&s, 0, false, 1), stream = track(&s, 0, true, 7);
		uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "launch");
		uint32_t sync = context(&s, PLUMB_FRAME_GPU_API, "cudaStreamSynchronize");
		uint32_t item = context(&s, PLUMB_FRAME_OPERATOR, "item");
		uint32_t a = context(&s, PLUMB_FRAME_KERNEL, "a");
		uint32_t b = context(&s, PLUMB_FRAME_KERNEL, "b");
		span(&s, thread, call, 0, 10, 1);
		span(&s, stream, a, 15, 500, 1);
		span(&s, thread, item, 20, 520, 0);
		span(&s, thread, sync, 30, 510, 2);
		span(&s, thread, call, 600, 610, 3);
		span(&s, stream, b, 620, 700, 3);
		if (recorded)
			plumb_builder_wait(
				s.builder,
				&(struct plumb_wait){ thread, recorded == 1 ? stream : PLUMB_NONE,
			                              PLUMB_NONE, 2, 0 });
		make_path(&s);
		open_window(&s, PLUMB_NONE, 0, 0, &w);
		expect(&s, &w,
		       "launch a 15, kernel a 485, host cudaStreamSynchronize 10, host item 10, "
		       "host - 80, launch b 20, kernel b 80");
		/* Without the kernel the host is at the call's begin after 30. */
		assert_int_equal(saving(&s, &w, "a"), 500 - 30);
		/* The host does not wait: b is launched long before a ends, and begins 5 after it,
		 * as it did 5 later than a launch takes at least. */
		assert_int_equal(saving(&s, &w, "cudaStreamSynchronize"), 620 - 505);
		assert_int_equal(saving(&s, &w, "item"), 10);
		const struct plumb_path_facts *facts = plumb_path_facts(s.path);
		assert_int_equal(facts->syncs, recorded > 0);
		assert_int_equal(facts->inferred_syncs, !recorded);
		plumb_path_close(&w);
		end(&s);
	}
}

/* A blocking copy holds the host up until it is over. */
static void
test_blocking_copy(void **state)
{
	struct schedule s;
	struct plumb_path_window w;

	(void)state;
	begin(&s, 1);
	uint32_t thread = track(&s, 0, false, 1), stream = track(&s, 0, true, 7);
	uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "cudaMemcpy");
	uint32_t copy = context_at(&s, call, PLUMB_FRAME_COPY, "copy", 0);
	uint32_t work = context(&s, PLUMB_FRAME_PYTHON, "work");
	span(&s, thread, call, 10, 100, 1);
	span(&s, stream, copy, 25, 95, 1);
	span(&s, thread, work, 100, 300, 0);
	make_path(&s);
	open_window(&s, PLUMB_NONE, 0, 0, &w);
	expect(&s, &w, "launch copy 15, copy copy 70, host cudaMemcpy 5, host work 200");
	assert_int_equal(saving(&s, &w, "copy"), 70);
	assert_int_equal(plumb_path_facts(s.path)->inferred_syncs, 1);
	plumb_path_close(&w);
	end(&s);
}

/* Autograd: the main thread waits in Python while the engine's thread works. */
static void
test_engine(void **state)
{
	struct schedule s;
	struct plumb_path_window w;

	(void)state;
	begin(&s, 1);
	uint32_t main = track(&s, 0, false, 1), engine = track(&s, 0, false, 2);
	uint32_t step = context(&s, PLUMB_FRAME_PYTHON, "step");
	uint32_t op = context_at(&s, step, PLUMB_FRAME_OPERATOR, "op", 0);
	uint32_t back = context_at(&s, op, PLUMB_FRAME_OPERATOR, "back", PLUMB_CONTEXT_BACKWARD);
	for (int i = 0; i < 2; i++) {
		int64_t at = 1000 * i;

		span(&s, main, step, at, at + 900, 0);
		span(&s, main, op, at + 100, at + 200, 0);
		span(&s, engine, back, at + 250, at + 400, 0);
		span(&s, engine, back, at + 420, at + 700, 0);
		span(&s, main, op, at + 720, at + 800, 0);
	}
	make_path(&s);
	open_window(&s, PLUMB_NONE, 0, 0, &w);
	expect(&s, &w,
	       "host step 100, host op 100, host step 50, host back 150, host - 20, host back 280, "
	       "host step 20, host op 80, host step 100, host - 100, host step 100, host op 100, "
	       "host step 50, host back 150, host - 20, host back 280, host step 20, host op 80, "
	       "host step 100");
	assert_int_equal(saving(&s, &w, "back"), 2 * 430);
	assert_int_equal(plumb_path_facts(s.path)->inferred_threads, 2);
	plumb_path_close(&w);
	end(&s);
}

/* ---- ranks ---- */

/* Two ranks reduce together; the second one comes late, because of slow host work. */
static void
test_ranks(void **state)
{
	struct schedule s;
	struct plumb_path_window w;
	uint32_t thread[2], stream[2];
	int64_t us = 1000;

	(void)state;
	begin(&s, 2);
	uint32_t slow = context(&s, PLUMB_FRAME_PYTHON, "slow");
	uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "launch");
	uint32_t reduce = context(&s, PLUMB_FRAME_KERNEL, "ncclDevKernel_AllReduce_Sum_f32");
	uint32_t k = context(&s, PLUMB_FRAME_KERNEL, "k");
	for (int r = 0; r < 2; r++) {
		int64_t late = r ? 500 * us : 0;

		thread[r] = track(&s, r, false, 1);
		stream[r] = track(&s, r, true, 7);
		if (r)
			span(&s, thread[r], slow, 0, 500 * us, 0);
		span(&s, thread[r], call, late + us, late + 2 * us, 1);
		span(&s, stream[r], reduce, late + 6 * us, 600 * us, 1);
		span(&s, thread[r], call, late + 3 * us, late + 4 * us, 2);
		span(&s, stream[r], k, 601 * us, 650 * us, 2);
	}
	make_path(&s);
	assert_int_equal(plumb_path_facts(s.path)->collectives, 1);
	open_window(&s, stream[0], 0, 650 * us, &w);
	expect(&s, &w,
	       "host slow 500000, host - 1000, launch ncclDevKernel_AllReduce_Sum_f32 5000, "
	       "communication ncclDevKernel_AllReduce_Sum_f32 94000, gap k 1000, kernel k 49000");
	assert_int_equal(w.peer_ns, 506 * us);
	assert_int_equal(saving(&s, &w, "slow"), 500 * us);
	plumb_path_close(&w);
	open_window(&s, stream[1], 0, 650 * us, &w);
	assert_int_equal(w.peer_ns, 0);
	plumb_path_close(&w);
	end(&s);
}

/* ---- what is wrong or missing ---- */

static void
test_odd_profiles(void **state)
{
	struct schedule s;
	struct plumb_path_window w;
	struct plumb_error error = { 0 };

	(void)state;
	begin(&s, 1);
	assert_int_equal(plumb_builder_finish(s.builder, &s.profile, &error), 0);
	plumb_builder_free(s.builder);
	assert_null(plumb_path_new(&s.profile, NULL, &error));
	assert_int_equal(error.code, PLUMB_EEMPTY);
	plumb_profile_free(&s.profile);

	/* Work without calls, a wait for nothing known, times of no sense, a call after its
	 * work. */
	begin(&s, 1);
	uint32_t thread = track(&s, 0, false, 1), stream = track(&s, 0, true, 7);
	uint32_t k = context(&s, PLUMB_FRAME_KERNEL, "k");
	uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "launch");
	span(&s, stream, k, 10, 20, 0);
	span(&s, stream, k, 40, 50, 9);
	span(&s, stream, k, INT64_MIN + 5, INT64_MAX - 5, 1);
	span(&s, thread, call, 45, 48, 9);
	span(&s, thread, call, INT64_MIN + 5, INT64_MIN + 6, 3);
	plumb_builder_wait(s.builder, &(struct plumb_wait){ thread, stream, PLUMB_NONE, 77, 0 });
	plumb_builder_wait(s.builder, &(struct plumb_wait){ stream, thread, PLUMB_NONE, 9, 0 });
	make_path(&s);
	assert_int_equal(plumb_path_facts(s.path)->unmatched, 2);
	assert_int_equal(plumb_path_facts(s.path)->impossible, 1);
	open_window(&s, stream, 0, 60, &w);
	expect(&s, &w, "unknown - 10, kernel k 10, gap k 20, kernel k 10");
	plumb_path_close(&w);
	assert_int_equal(plumb_path_open(s.path, stream, 60, 70, &w, &error), PLUMB_EEMPTY);
	plumb_path_close(&w);
	assert_int_equal(plumb_path_open(s.path, thread, 40, 60, &w, &error), 0);
	assert_true(plumb_path_list(&w));
	plumb_path_close(&w);
	end(&s);
}

/* A file may give all calls one number: the latest one is meant, and finding it takes no longer for
 * it. */
static void
test_one_number(void **state)
{
	enum { MANY = 100000 };
	struct schedule s;
	struct plumb_path_window w;

	(void)state;
	begin(&s, 2);
	uint32_t thread = track(&s, 0, false, 1), stream = track(&s, 0, true, 7);
	uint32_t other = track(&s, 1, false, 1);
	uint32_t k = context(&s, PLUMB_FRAME_KERNEL, "k");
	uint32_t call = context(&s, PLUMB_FRAME_GPU_API, "launch");
	span(&s, thread, context(&s, PLUMB_FRAME_GPU_API, "outer"), -10, 6 * MANY, 5);
	span(&s, other, call, 5 * MANY, 5 * MANY + 1, 5);
	for (int i = 0; i < MANY; i++) {
		span(&s, thread, call, 2 * i, 2 * i + 1, 5);
		span(&s, stream, k, 3 * MANY + 2 * i, 3 * MANY + 2 * i + 1, 5);
	}
	make_path(&s);
	assert_int_equal(plumb_path_facts(s.path)->launches, MANY);
	assert_int_equal(plumb_path_facts(s.path)->impossible, 0);
	/* From the last call on, which began at 2 * MANY - 2. */
	open_window(&s, stream, 2 * MANY - 2, 3 * MANY + 1, &w);
	assert_int_equal(w.sums[PLUMB_PATH_LAUNCH], MANY + 2);
	assert_int_equal(w.sums[PLUMB_PATH_KERNEL], 1);
	plumb_path_close(&w);
	end(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host_bound),    cmocka_unit_test(test_gpu_bound),
		cmocka_unit_test(test_event),         cmocka_unit_test(test_sync),
		cmocka_unit_test(test_blocking_copy), cmocka_unit_test(test_engine),
		cmocka_unit_test(test_ranks),         cmocka_unit_test(test_odd_profiles),
		cmocka_unit_test(test_one_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
