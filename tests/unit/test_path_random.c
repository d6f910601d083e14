/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of random schedules. A small simulator plays two ranks, each a thread and three
 * streams, with launches, events, synchronisation and collectives; it knows what everything waited
 * for, and it can play the same again with some of the work taken out. Path and savings must be the
 * same to the nanosecond.
 */
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

#define RANKS 2
#define STREAMS 3
#define ROUNDS 12
#define STEPS 24
#define NAMES 5 /* of each kind of work */
#define MOST 4096
#define LAUNCH 3000 /* a launch takes that long */

enum what { OP, KERNEL, COPY, SYNC, SYNC_ALL, RECORD, WAIT, COLLECTIVE, WHATS };

/* ---- programs ---- */

struct instruction {
	enum what what;
	int stream, name;
	int64_t length, call; /* of the work; of its call */
	int64_t delay;        /* that nothing explains */
};

struct program {
	struct instruction items[ROUNDS * (STEPS + 1) + STREAMS + 2];
	int count;
};

static int64_t
between(int64_t low, int64_t high)
{
	return low + (int64_t)((double)(high - low) * ((double)rand() / ((double)RAND_MAX + 1)));
}

static struct instruction
draw(enum what what)
{
	bool device = what == KERNEL || what == COPY || what == COLLECTIVE;

	return (struct instruction){
		.what = what,
		.stream = what == COPY         ? 1
		          : what == COLLECTIVE ? 2
		                               : (int)between(0, STREAMS),
		.name = (int)between(0, NAMES),
		.length = what == OP           ? between(100, 60000)
		          : what == COLLECTIVE ? between(30000, 90000)
		          : device             ? between(500, 120000)
		                               : 0,
		.call = what == OP ? 0 : between(500, 5000),
		.delay = device && what != COLLECTIVE && between(0, 3) == 0 ? between(1, 3000) : 0,
	};
}

/* Each stream's first launch finds it empty, so that the shortest launch is known; each round ends
 * in a collective. */
static void
write_program(struct program *program)
{
	static const enum what often[] = { OP,   OP,       KERNEL, KERNEL, KERNEL, COPY,
		                           SYNC, SYNC_ALL, RECORD, WAIT,   WAIT };

	program->count = 0;
	for (int s = 0; s < STREAMS; s++) {
		struct instruction first = draw(KERNEL);

		first.stream = s;
		first.delay = 0;
		program->items[program->count++] = first;
	}
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < STEPS; i++)
			program->items[program->count++] =
				draw(often[rand() % (int)(sizeof often / sizeof *often)]);
		program->items[program->count++] = draw(COLLECTIVE);
	}
	program->items[program->count++] = draw(SYNC_ALL);
}

/* ---- playing them ---- */

/* A point in time, what it waited for, and as what the time since then counts. */
struct point {
	int64_t at;
	int cause; /* a point, or -1: the beginning */
	enum plumb_path_kind kind;
};

struct work {
	int rank, stream, begin, end; /* points */
	int launch;                   /* point: its call's begin */
	const struct instruction *instruction;
};

struct call {
	int rank, begin, end; /* points */
	const struct instruction *instruction;
	int work;         /* that it launched, or -1 */
	int event_stream; /* of a wait, or -1 */
	uint64_t event;   /* correlation of its record */
};

struct rank {
	int now;              /* point: the host's */
	int last[STREAMS];    /* point: end of the last work, or -1 */
	int pending[STREAMS]; /* point: what the next work waits for beside, or -1 */
	int event, event_stream;
	uint64_t event_call;
	int at;      /* in the program */
	int waiting; /* the collective it is in: its work, or -1 */
};

struct play {
	const unsigned char (*gone)[NAMES]; /* by what and name, or NULL */
	struct point points[MOST * 4];
	struct work works[MOST];
	struct call calls[MOST];
	int points_count, works_count, calls_count;
	struct rank ranks[RANKS];
};

static bool
is_gone(const struct play *play, const struct instruction *i)
{
	return play->gone && play->gone[i->what][i->name];
}

static int
point(struct play *play, int64_t at, int cause, enum plumb_path_kind kind)
{
	assert_true(play->points_count < MOST * 4);
	play->points[play->points_count] = (struct point){ at, cause, kind };
	return play->points_count++;
}

static int64_t
at(const struct play *play, int where)
{
	return where < 0 ? INT64_MIN : play->points[where].at;
}

static int
launch(struct play *play, struct rank *rank, int number, const struct instruction *i)
{
	/* Without the work its launch and what delays it stay: they are not the work's own time. */
	int64_t ready = at(play, rank->now) + LAUNCH, delay = i->delay;
	int cause = rank->now, beside = rank->pending[i->stream], last = rank->last[i->stream];
	enum plumb_path_kind kind = PLUMB_PATH_LAUNCH;
	struct work *work = &play->works[play->works_count];

	if (at(play, beside) >= ready) {
		ready = at(play, beside);
		cause = beside;
		kind = PLUMB_PATH_GAP;
	}
	if (at(play, last) >= ready) {
		ready = at(play, last);
		cause = last;
		kind = PLUMB_PATH_GAP;
	}
	*work = (struct work){ number, i->stream, point(play, ready + delay, cause, kind),
		               -1,     rank->now, i };
	rank->pending[i->stream] = -1;
	if (i->what != COLLECTIVE) {
		int64_t length = is_gone(play, i) ? 0 : i->length;

		work->end = point(play, at(play, work->begin) + length, work->begin,
		                  i->what == COPY ? PLUMB_PATH_COPY : PLUMB_PATH_KERNEL);
		rank->last[i->stream] = work->end;
	}
	return play->works_count++;
}

/* The end of the call that waits for the streams FROM to TO. */
static int
synchronise(struct play *play, struct rank *rank, const struct instruction *i, int from, int to)
{
	int cause = rank->now;

	if (is_gone(play, i))
		return point(play, at(play, rank->now), rank->now, PLUMB_PATH_HOST);
	for (int s = from; s < to; s++)
		if (at(play, rank->last[s]) > at(play, cause))
			cause = rank->last[s];
	return point(play, at(play, cause) + i->call, cause, PLUMB_PATH_HOST);
}

/* One instruction; false: it began a collective. */
static bool
step(struct play *play, int number, const struct instruction *i)
{
	struct rank *rank = &play->ranks[number];
	struct call *call = &play->calls[play->calls_count++];
	bool device = i->what == KERNEL || i->what == COPY || i->what == COLLECTIVE;
	/* A call that starts work is not gone with it. */
	int64_t length = !device && is_gone(play, i) ? 0 : i->what == OP ? i->length : i->call;

	*call = (struct call){ number, rank->now, -1, i, -1, -1, 0 };
	if (device)
		call->work = launch(play, rank, number, i);
	if (i->what == SYNC)
		call->end = synchronise(play, rank, i, i->stream, i->stream + 1);
	else if (i->what == SYNC_ALL)
		call->end = synchronise(play, rank, i, 0, STREAMS);
	else
		call->end = point(play, at(play, rank->now) + length, rank->now, PLUMB_PATH_HOST);
	if (i->what == RECORD) {
		rank->event = rank->last[i->stream];
		rank->event_stream = i->stream;
		rank->event_call = (uint64_t)play->calls_count;
	} else if (i->what == WAIT && rank->event_stream >= 0 && rank->event >= 0 &&
	           rank->event_stream != i->stream && rank->pending[i->stream] < 0) {
		rank->pending[i->stream] = rank->event;
		call->event_stream = rank->event_stream;
		call->event = rank->event_call;
	}
	rank->now = call->end;
	rank->waiting = i->what == COLLECTIVE ? call->work : -1;
	return i->what != COLLECTIVE;
}

/* All ranks are in it: it runs from the last one's begin on. */
static void
finish_collective(struct play *play)
{
	int last = play->works[play->ranks[0].waiting].begin;

	for (int r = 1; r < RANKS; r++)
		if (at(play, play->works[play->ranks[r].waiting].begin) > at(play, last))
			last = play->works[play->ranks[r].waiting].begin;
	for (int r = 0; r < RANKS; r++) {
		struct work *work = &play->works[play->ranks[r].waiting];
		int64_t length = is_gone(play, work->instruction) ? 0 : work->instruction->length;

		work->end = point(play, at(play, last) + length, last, PLUMB_PATH_COMMUNICATION);
		play->ranks[r].last[work->stream] = work->end;
	}
}

static void
run(struct play *play, const struct program *programs, const unsigned char (*gone)[NAMES])
{
	*play = (struct play){ .gone = gone };
	for (int r = 0; r < RANKS; r++) {
		struct rank *rank = &play->ranks[r];

		*rank = (struct rank){ .now = point(play, 0, -1, PLUMB_PATH_HOST),
			               .event = -1,
			               .event_stream = -1,
			               .waiting = -1 };
		for (int s = 0; s < STREAMS; s++)
			rank->last[s] = rank->pending[s] = -1;
	}
	for (int round = 0; round <= ROUNDS; round++) {
		for (int r = 0; r < RANKS; r++) {
			struct rank *rank = &play->ranks[r];

			while (rank->at < programs[r].count &&
			       step(play, r, &programs[r].items[rank->at++]))
				;
		}
		if (round < ROUNDS)
			finish_collective(play);
	}
}

static int
end_of(const struct play *play)
{
	int last = play->ranks[0].now;

	for (int r = 1; r < RANKS; r++)
		if (at(play, play->ranks[r].now) > at(play, last))
			last = play->ranks[r].now;
	return last;
}

/* ---- as a profile ---- */

static const unsigned kinds[WHATS] = {
	[OP] = PLUMB_FRAME_OPERATOR,      [KERNEL] = PLUMB_FRAME_KERNEL,
	[COPY] = PLUMB_FRAME_COPY,        [SYNC] = PLUMB_FRAME_GPU_API,
	[SYNC_ALL] = PLUMB_FRAME_GPU_API, [RECORD] = PLUMB_FRAME_GPU_API,
	[WAIT] = PLUMB_FRAME_GPU_API,     [COLLECTIVE] = PLUMB_FRAME_KERNEL,
};
static const char *const whats[WHATS] = {
	"op", "kernel", "copy", "await", "await all", "record", "wait", "ncclDevKernel_AllReduce"
};

struct made {
	struct plumb_profile profile;
	struct plumb_path *path;
	uint32_t names[WHATS * NAMES]; /* strings */
};

static uint32_t
context_of(struct plumb_builder *b, enum what what, int name, bool call)
{
	char text[64];

	snprintf(text, sizeof text, "%s%s %d", call ? "start " : "", whats[what], name);
	/* A collective has one name on all ranks, whatever its number. */
	if (what == COLLECTIVE && !call)
		snprintf(text, sizeof text, "%s", whats[what]);
	uint32_t context = plumb_builder_context(
		b, 0,
		plumb_builder_frame(b, call ? PLUMB_FRAME_GPU_API : kinds[what],
	                            plumb_builder_text(b, text), PLUMB_NONE, 0),
		0);
	if (what == COLLECTIVE && !call) {
		snprintf(text, sizeof text, "reduce %d", name);
		context = plumb_builder_context(b, 0,
		                                plumb_builder_frame(b, PLUMB_FRAME_COLLECTIVE,
		                                                    plumb_builder_text(b, text),
		                                                    PLUMB_NONE, 0),
		                                0);
		context = plumb_builder_context(
			b, context,
			plumb_builder_frame(b, PLUMB_FRAME_KERNEL,
		                            plumb_builder_text(b, whats[what]), PLUMB_NONE, 0),
			0);
	}
	return context;
}

struct tracks {
	uint32_t thread, streams[STREAMS];
};

static void
add_track(struct plumb_builder *b, int rank, int stream, uint32_t *track)
{
	*track = plumb_builder_track(
		b,
		&(struct plumb_track){ .kind = stream < 0 ? PLUMB_TRACK_THREAD : PLUMB_TRACK_STREAM,
	                               .process = (uint32_t)rank,
	                               .device = stream < 0 ? PLUMB_NONE : (uint32_t)rank,
	                               .name = PLUMB_NONE,
	                               .tid = rank,
	                               .stream = stream });
}

static void
add_wait(struct plumb_builder *b, const struct tracks *t, const struct call *call, uint64_t number)
{
	struct plumb_wait wait = { t->thread, PLUMB_NONE, PLUMB_NONE, number, 0 };
	const struct instruction *i = call->instruction;

	if (i->what == SYNC)
		wait.awaited = t->streams[i->stream];
	else if (i->what == WAIT && call->event_stream >= 0)
		wait = (struct plumb_wait){ t->streams[i->stream], t->streams[call->event_stream],
			                    PLUMB_NONE, number, call->event };
	else if (i->what != SYNC_ALL)
		return;
	plumb_builder_wait(b, &wait);
}

static void
make(const struct play *play, struct made *made)
{
	struct plumb_builder *b = plumb_builder_new();
	struct tracks tracks[RANKS];
	struct plumb_error error = { 0 };

	for (int r = 0; r < RANKS; r++) {
		plumb_builder_process(b, &(struct plumb_process){ .pid = r,
		                                                  .rank = r,
		                                                  .host = PLUMB_NONE,
		                                                  .command = PLUMB_NONE });
		plumb_builder_device(
			b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
		add_track(b, r, -1, &tracks[r].thread);
		for (int s = 0; s < STREAMS; s++)
			add_track(b, r, s, &tracks[r].streams[s]);
	}
	for (int c = 0; c < play->calls_count; c++) {
		const struct call *call = &play->calls[c];
		const struct instruction *i = call->instruction;
		const struct tracks *t = &tracks[call->rank];
		uint64_t number = (uint64_t)c + 1;

		plumb_builder_span(b,
		                   &(struct plumb_span){ .context = context_of(b, i->what, i->name,
		                                                               call->work >= 0),
		                                         .track = t->thread,
		                                         .start_ns = at(play, call->begin),
		                                         .end_ns = at(play, call->end),
		                                         .correlation = number });
		add_wait(b, t, call, number);
		if (call->work < 0)
			continue;
		plumb_builder_span(b, &(struct plumb_span){
					      .context = context_of(b, i->what, i->name, false),
					      .track = t->streams[i->stream],
					      .start_ns = at(play, play->works[call->work].begin),
					      .end_ns = at(play, play->works[call->work].end),
					      .correlation = number });
	}
	assert_int_equal(plumb_builder_finish(b, &made->profile, &error), 0);
	plumb_builder_free(b);
	made->path = plumb_path_new(&made->profile, NULL, &error);
	assert_non_null(made->path);
}

/* ---- the comparison ---- */

/* The contexts of the work that is gone; the calls that start work stay. */
static unsigned char *
contexts_of(const struct plumb_profile *p, const unsigned char (*gone)[NAMES])
{
	unsigned char *contexts = calloc(p->contexts_count + 1, 1);
	char text[64];

	for (uint32_t c = 1; c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;
		const char *name = plumb_frame_label(p, p->contexts[c].frame);

		for (int w = 0; w < WHATS; w++)
			for (int n = 0; n < NAMES; n++) {
				snprintf(text, sizeof text, "%s %d",
				         w == COLLECTIVE ? "reduce" : whats[w], n);
				if (gone[w][n] && !strcmp(text, name))
					contexts[c] = 1;
			}
		if (parent)
			contexts[c] = contexts[parent];
	}
	return contexts;
}

static void
check_path(const struct play *play, const struct plumb_path_window *w)
{
	int64_t sums[PLUMB_PATH_KINDS] = { 0 };
	int64_t length = at(play, end_of(play));

	for (int i = end_of(play); i >= 0 && play->points[i].cause >= 0; i = play->points[i].cause)
		sums[play->points[i].kind] += at(play, i) - at(play, play->points[i].cause);
	assert_int_equal(w->start_ns, 0);
	assert_int_equal(w->end_ns, length);
	for (int k = 0; k < PLUMB_PATH_KINDS; k++)
		if (w->sums[k] != sums[k])
			fail_msg("%s: %lld, not %lld", plumb_path_kinds[k], (long long)w->sums[k],
			         (long long)sums[k]);
}

/* How long the spans of the contexts that are GONE take together: no more can be saved. */
static int64_t
taken_by(const struct plumb_profile *p, const unsigned char *gone)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->spans_count; i++)
		if (gone[p->spans[i].context] && p->spans[i].start_ns > INT64_MIN / 2)
			sum += p->spans[i].end_ns - p->spans[i].start_ns;
	return sum;
}

static void
check_schedule(unsigned seed)
{
	struct program programs[RANKS];
	struct play *play = malloc(sizeof *play), *without = malloc(sizeof *without);
	struct made made;
	struct plumb_path_window w;
	struct plumb_error error = { 0 };

	srand(seed);
	for (int r = 0; r < RANKS; r++)
		write_program(&programs[r]);
	/* A collective is as long on every rank. */
	for (int i = 0; i < programs[0].count; i++)
		if (programs[0].items[i].what == COLLECTIVE) {
			programs[1].items[i].length = programs[0].items[i].length;
			programs[1].items[i].name = programs[0].items[i].name;
		}
	run(play, programs, NULL);
	make(play, &made);
	assert_int_equal(plumb_path_facts(made.path)->collectives, ROUNDS);
	assert_int_equal(plumb_path_facts(made.path)->inferred_events, 0);
	assert_int_equal(plumb_path_facts(made.path)->impossible, 0);
	assert_int_equal(plumb_path_open_whole(made.path, &w, &error), 0);
	assert_true(plumb_path_list(&w));
	check_path(play, &w);
	for (int trial = 0; trial < 12; trial++) {
		unsigned char gone[WHATS][NAMES] = { { 0 } }, *contexts;

		for (int n = trial ? 1 + rand() % 6 : 0; n > 0; n--)
			gone[rand() % WHATS][rand() % NAMES] = 1;
		run(without, programs, (const unsigned char(*)[NAMES])gone);
		contexts = contexts_of(&made.profile, (const unsigned char(*)[NAMES])gone);
		/* Of the same end: the other rank may be the last now. */
		int64_t end = 0;
		for (int r = 0; r < RANKS; r++)
			if (play->ranks[r].now == end_of(play))
				end = at(without, without->ranks[r].now);
		int64_t saved = plumb_path_saving(&w, contexts);
		if (saved != at(play, end_of(play)) - end)
			fail_msg("seed %u, trial %d: saves %lld, not %lld", seed, trial,
			         (long long)saved, (long long)(at(play, end_of(play)) - end));
		if (saved > taken_by(&made.profile, contexts))
			fail_msg("seed %u, trial %d: saves %lld of %lld", seed, trial,
			         (long long)saved, (long long)taken_by(&made.profile, contexts));
		free(contexts);
	}
	plumb_path_close(&w);
	plumb_path_free(made.path);
	plumb_profile_free(&made.profile);
	free(play);
	free(without);
}

static void
test_random_schedules(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 200; seed++)
		check_schedule(seed);
}

/* ---- what no program does ---- */

/* Times, tracks, numbers and waits without sense: a path all the same, without a hole, and savings
 * in bounds. */
static void
check_garbage(unsigned seed)
{
	struct plumb_builder *b = plumb_builder_new();
	struct tracks tracks[RANKS];
	struct plumb_profile profile;
	struct plumb_path_window w;
	struct plumb_error error = { 0 };
	unsigned char gone[WHATS * NAMES * 4] = { 0 };

	srand(seed);
	for (int r = 0; r < RANKS; r++) {
		plumb_builder_process(
			b, &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
		plumb_builder_device(
			b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
		add_track(b, r, -1, &tracks[r].thread);
		for (int s = 0; s < STREAMS; s++)
			add_track(b, r, s, &tracks[r].streams[s]);
	}
	for (int i = 0; i < 300; i++) {
		const struct tracks *t = &tracks[rand() % RANKS];
		int64_t start = between(-50, 300), end = start + between(0, 80);

		if (rand() % 50 == 0)
			start = INT64_MIN + 1;
		plumb_builder_span(
			b, &(struct plumb_span){
				   .context = context_of(b, (enum what)(rand() % WHATS),
		                                         rand() % NAMES, rand() % 2),
				   .track = rand() % 2 ? t->thread : t->streams[rand() % STREAMS],
				   .start_ns = start,
				   .end_ns = end,
				   .correlation = (uint64_t)(rand() % 20) });
		if (i % 4 == 0)
			plumb_builder_wait(
				b, &(struct plumb_wait){
					   (uint32_t)rand() % (RANKS * (1 + STREAMS)),
					   rand() % 4 ? (uint32_t)rand() % (RANKS * (1 + STREAMS))
						      : PLUMB_NONE,
					   rand() % 2 ? 0 : PLUMB_NONE, (uint64_t)(rand() % 20),
					   (uint64_t)(rand() % 20) });
	}
	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);
	assert_true(profile.contexts_count < sizeof gone);
	struct plumb_path *path = plumb_path_new(&profile, NULL, &error);
	for (uint32_t t = 0; t <= profile.tracks_count; t++) {
		int code = t < profile.tracks_count ? plumb_path_open(path, t, 20, 250, &w, &error)
		                                    : plumb_path_open_whole(path, &w, &error);
		int64_t at = w.start_ns, sum = 0, saved;

		assert_true(code || plumb_path_list(&w));
		for (uint32_t i = 0; i < w.count; i++) {
			assert_int_equal(w.segments[i].start_ns, at);
			at = w.segments[i].end_ns;
		}
		for (int k = 0; k < PLUMB_PATH_KINDS; k++)
			sum += w.sums[k];
		if (!code) {
			assert_int_equal(at, w.end_ns);
			assert_int_equal(sum, w.end_ns - w.start_ns);
			assert_int_equal(plumb_path_saving(&w, gone), 0);
			for (uint32_t c = 0; c < profile.contexts_count; c++)
				gone[c] = (unsigned char)(rand() % 2);
			saved = plumb_path_saving(&w, gone);
			assert_true(saved >= 0 && saved <= w.end_ns + 50);
			assert_true(saved <= taken_by(&profile, gone));
			memset(gone, 0, sizeof gone);
		}
		plumb_path_close(&w);
	}
	plumb_path_free(path);
	plumb_profile_free(&profile);
}

static void
test_garbage(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 400; seed++)
		check_garbage(seed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_schedules),
		cmocka_unit_test(test_garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
