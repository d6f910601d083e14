/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling of spans: regions written here by hand, and what of them stands in the profile.
 * `test_settle_spans PATH` writes a region with a trace to PATH instead, as an input for the fuzz
 * target.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "region/writer.h"
#include "settle/settle.h"

#define SECOND 1000000000ull
#define MILLI 1000000ull
#define CAPACITY 16u
#define SCALE(ns_a_tick) ((uint64_t)((ns_a_tick) * 4294967296.0))

static char folder[64], path[128];
static struct plumb_region region;
static struct plumb_arena arena;
static plumb_id thread, stream, op, call, kernel;

static void *
record(enum plumb_record_type type, size_t length)
{
	void *made = plumb_arena_append(&arena, type, length);

	assert_non_null(made);
	plumb_arena_commit(&arena, made);
	return made;
}

static plumb_id
node(plumb_id parent, enum plumb_frame_kind kind, const char *name)
{
	plumb_id text = plumb_arena_string(&arena, name, strlen(name));
	struct plumb_record_node *made = record(PLUMB_RECORD_NODE, sizeof *made);

	made->parent = parent;
	made->kind = (uint8_t)kind;
	made->name = text;
	return plumb_region_id(&region, made);
}

/* A region with a thread, a stream whose clock is 5 s behind, and a value, which makes it a
 * profile. */
static void
begin(void)
{
	struct plumb_error error = { 0 };

	if (plumb_region_create(&region, path, 4 << 20, &error))
		fail_msg("%s", error.message);
	region.header->start_monotonic = 100 * SECOND;
	region.header->state = PLUMB_REGION_ENDED;
	plumb_arena_init(&arena, &region);
	struct plumb_record_process *process = record(PLUMB_RECORD_PROCESS, sizeof *process);
	process->pid = 7;
	struct plumb_record_thread *own = record(PLUMB_RECORD_THREAD, sizeof *own);
	own->tid = region.header->pid;
	thread = plumb_region_id(&region, own);
	struct plumb_record_device *device = record(PLUMB_RECORD_DEVICE, sizeof *device);
	device->uuid[0] = 1;
	struct plumb_record_stream *s = record(PLUMB_RECORD_STREAM, sizeof *s);
	s->device = plumb_region_id(&region, device);
	stream = plumb_region_id(&region, s);
	struct plumb_record_clock *clock = record(PLUMB_RECORD_CLOCK, sizeof *clock);
	clock->device = s->device;
	clock->monotonic = 105 * SECOND;
	clock->gpu = 100 * SECOND;
	op = node(0, PLUMB_FRAME_OPERATOR, "op");
	call = node(op, PLUMB_FRAME_GPU_API, "call");
	kernel = node(call, PLUMB_FRAME_KERNEL, "kernel");
	struct plumb_record_value *value = record(PLUMB_RECORD_VALUE, sizeof *value);
	value->node = op;
	value->track = thread;
	value->metric = PLUMB_METRIC_OP_DURATION;
	plumb_value_add(value, 10);
}

static void
reading(uint64_t ticks, uint64_t monotonic, uint64_t scale)
{
	struct plumb_record_ticks *made = record(PLUMB_RECORD_CLOCK, sizeof *made);

	made->clock.monotonic = monotonic;
	made->ticks = ticks;
	made->scale = scale;
}

static struct plumb_record_span *
piece(void)
{
	struct plumb_record_span *made = record(
		PLUMB_RECORD_SPAN, sizeof *made + CAPACITY * sizeof(struct plumb_span_entry));

	made->capacity = CAPACITY;
	made->next = plumb_region_id(&region, made);
	return made;
}

static void
add(struct plumb_record_span *to, plumb_id at, plumb_id track, uint64_t start, uint64_t end,
    uint64_t correlation)
{
	struct plumb_span_entry *entries = (struct plumb_span_entry *)(to + 1);

	entries[(uint32_t)to->state] =
		(struct plumb_span_entry){ .host = { start, end, at, track, correlation } };
	to->state++;
}

static struct plumb_profile profile;
static char *warnings;

static void
settle(void)
{
	const char *const list[] = { folder };
	struct plumb_error error = { 0 };

	plumb_region_close(&region);
	if (plumb_settle(list, 1, NULL, &profile, &warnings, &error))
		fail_msg("%s", error.message);
}

static void
done(void)
{
	plumb_profile_free(&profile);
	free(warnings);
	unlink(path);
}

static int64_t
ledger(enum plumb_source source, enum plumb_fate fate)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile.ledger_count; i++)
		if (profile.ledger[i].source == source && profile.ledger[i].fate == fate)
			sum += profile.ledger[i].count;
	return sum;
}

static void
check(uint32_t at, const char *name, int64_t start, int64_t end, uint64_t correlation)
{
	const struct plumb_span *span = &profile.spans[at];

	assert_true(at < profile.spans_count);
	assert_string_equal(plumb_frame_label(&profile, profile.contexts[span->context].frame),
	                    name);
	assert_int_equal(span->start_ns, start);
	assert_int_equal(span->end_ns, end);
	assert_int_equal(span->correlation, correlation);
}

/* ---- clocks ---- */

/* The counter ticks once in 2 ns, and from the second reading on once in 3. */
static void
test_ticks(void **state)
{
	(void)state;
	begin();
	/* In any order, one too close to the next, one that goes backwards. */
	reading(1500 * MILLI, 103 * SECOND, SCALE(7));
	reading(500 * MILLI, 100 * SECOND, SCALE(7));
	reading(1000 * MILLI, 101 * SECOND, SCALE(7));
	reading(1000 * MILLI + 5, 101 * SECOND - 100, SCALE(7));
	reading(1001 * MILLI, 101 * SECOND + 9 * MILLI, SCALE(7));
	struct plumb_record_span *p = piece();
	add(p, op, thread, 400 * MILLI, 1500 * MILLI, 0);   /* before all, at the last */
	add(p, call, thread, 750 * MILLI, 1000 * MILLI, 5); /* between */
	add(p, op, thread, 1600 * MILLI, 1700 * MILLI, 0);  /* after all */
	add(p, kernel, stream, 97 * SECOND, 98 * SECOND, 5);
	settle();
	assert_int_equal(profile.spans_count, 4);
	check(0, "op", 99800 * MILLI, 103 * SECOND, 0);
	check(1, "call", 100500 * MILLI, 101 * SECOND, 5);
	check(2, "op", 103400 * MILLI, 103800 * MILLI, 0);
	check(3, "kernel", 102 * SECOND, 103 * SECOND, 5);
	assert_int_equal(profile.tracks[profile.spans[3].track].kind, PLUMB_TRACK_STREAM);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_RECEIVED), 4);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_ATTRIBUTED), 4);
	done();
}

static void
test_one_reading(void **state)
{
	(void)state;
	begin();
	reading(1000, 100 * SECOND, SCALE(2));
	add(piece(), op, thread, 2000, 3000, 0);
	settle();
	check(0, "op", 100 * SECOND + 2000, 100 * SECOND + 4000, 0);
	done();
	/* Ticks that are nanoseconds. */
	begin();
	reading(100 * SECOND, 100 * SECOND, 0);
	add(piece(), op, thread, 101 * SECOND, 102 * SECOND, 0);
	settle();
	check(0, "op", 101 * SECOND, 102 * SECOND, 0);
	done();
}

static void
test_no_reading(void **state)
{
	(void)state;
	begin();
	struct plumb_record_span *p = piece();
	add(p, op, thread, 2000, 3000, 0);
	add(p, kernel, stream, 97 * SECOND, 98 * SECOND, 5);
	settle();
	assert_int_equal(profile.spans_count, 1); /* the stream has its own clock */
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_RECEIVED), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_DAMAGED), 1);
	done();
}

/* ---- what is kept ---- */

static void
test_rounds(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	for (unsigned i = 0; i < CAPACITY; i++)
		add(p, op, thread, 100 + 10 * i, 105 + 10 * i, 0);
	p->state = 3ull << 32 | 2; /* two whole entries of the fourth round */
	settle();
	assert_int_equal(profile.spans_count, 2);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN), 3 * CAPACITY);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_RECEIVED), 3 * CAPACITY + 2);
	done();
}

static void
test_last_seconds(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	p->keep_ns = 2 * SECOND;
	add(p, op, thread, 1, 1 + 2 * SECOND, 0); /* ends when the last 2 s begin */
	add(p, op, thread, 2 + 2 * SECOND, 3 + 2 * SECOND, 0);
	add(p, op, thread, 2, 4 + 2 * SECOND, 0);
	add(p, op, thread, 4 * SECOND, 1 + 4 * SECOND, 0);
	settle();
	assert_int_equal(profile.spans_count, 3);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN), 1);
	done();
}

static void
test_iterations_of_a_loop(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	plumb_id main_ = node(0, PLUMB_FRAME_PYTHON, "main");
	plumb_id step = node(main_, PLUMB_FRAME_PYTHON, "step");
	plumb_id a = node(node(step, PLUMB_FRAME_PYTHON, "a"), PLUMB_FRAME_OPERATOR, "a");
	plumb_id b = node(node(step, PLUMB_FRAME_PYTHON, "b"), PLUMB_FRAME_OPERATOR, "b");
	struct plumb_record_span *p = piece();
	p->keep_iterations = 2;
	for (unsigned i = 0; i < 5; i++) { /* a b b, five times; inside a another one */
		uint64_t at = 1000 * (i + 1);
		add(p, op, thread, at + 10, at + 20, 0);
		p->state--; /* room is short: only one of them */
		add(p, a, thread, at, at + 100, 0);
		add(p, b, thread, at + 200, at + 250, 0);
		add(p, b, thread, at + 300, at + 350, 0);
	}
	settle();
	assert_int_equal(profile.spans_count, 6);
	check(0, "a", 100 * SECOND + 3999, 100 * SECOND + 4099, 0);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN), 9);
	done();
}

/* How long operator K of round I takes; round -1: of the loop before. */
typedef uint64_t blur(int i, int k);

static uint64_t
even(int i, int k)
{
	(void)i, (void)k;
	return 1000;
}

/* Anything from 1 to 2 us, the same in each run. */
static uint64_t
noise(int i, int k)
{
	static uint32_t seed = 1;

	(void)i, (void)k;
	return 1000 + (seed = seed * 1103515245u + 12345u) / 4294968u;
}

static uint64_t
stall(int i, int k)
{
	return i == 4 && k == 2 ? 50000 : 1000; /* ten rounds */
}

static uint64_t
stall_between(int i, int k)
{
	return i == 7 && !k ? 50000 : 1000;
}

static uint64_t
stall_before(int i, int k)
{
	return i == -1 && k == 2 ? SECOND : 1000;
}

static uint64_t
long_first(int i, int k)
{
	(void)k;
	return i ? 1000 : SECOND;
}

/* A loop of five rounds, then one of ROUNDS, each a head, three times a layer and a tail. FIRST:
 * what the first head does besides, as often, in a loop of its own. The last KEEP rounds are kept,
 * whatever the operators' durations are. */
static void
check_loop(blur *duration, unsigned rounds, unsigned keep, unsigned first)
{
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	plumb_id infer = node(0, PLUMB_FRAME_PYTHON, "infer");
	plumb_id run = node(0, PLUMB_FRAME_PYTHON, "run");
	plumb_id warm = node(infer, PLUMB_FRAME_OPERATOR, "warm");
	plumb_id at[5] = { node(node(run, PLUMB_FRAME_PYTHON, "1"), PLUMB_FRAME_OPERATOR, "head") };
	at[1] = at[2] = at[3] =
		node(node(run, PLUMB_FRAME_PYTHON, "2"), PLUMB_FRAME_OPERATOR, "layer");
	at[4] = node(node(run, PLUMB_FRAME_PYTHON, "3"), PLUMB_FRAME_OPERATOR, "tail");
	plumb_id deep = node(node(node(run, PLUMB_FRAME_PYTHON, "1"), PLUMB_FRAME_PYTHON, "c"),
	                     PLUMB_FRAME_OPERATOR, "compile");
	struct plumb_record_span *p = NULL;
	uint64_t now = 1000, kept_from = 0;
	unsigned added = 0;
	const unsigned total = 5 + first + 5 * rounds;
	for (unsigned n = 0; n < total; n++) {
		unsigned inside = n < 5 + first ? 0 : n - 5 - first;
		int i = n < 5 ? -1 : (int)inside / 5;
		int k = n < 5 ? (int)n : (int)inside % 5;
		plumb_id where = n < 5 ? warm : n < 5 + first ? deep : at[k];
		uint64_t took = duration(i, k);
		if (added++ % CAPACITY == 0) {
			p = piece();
			p->keep_iterations = keep;
		}
		if (i == (int)(rounds - keep) && !k)
			kept_from = now;
		add(p, where, thread, now, now + took, 0);
		now += took + took / 8;
	}
	settle();
	assert_int_equal(profile.spans_count, 5 * keep);
	check(0, "head", (int64_t)(100 * SECOND + kept_from - 1), profile.spans[0].end_ns, 0);
	check(4, "tail", profile.spans[4].start_ns, profile.spans[4].end_ns, 0);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN), total - 5 * keep);
	done();
}

static void
test_iterations_of_a_busy_machine(void **state)
{
	static blur *const blurs[] = {
		even, noise, stall, stall_between, stall_before, long_first,
	};

	(void)state;
	for (unsigned i = 0; i < sizeof blurs / sizeof *blurs; i++) {
		check_loop(blurs[i], 10, 4, 0);
		check_loop(blurs[i], 10, 1, 0);
	}
}

/* What a first round does alone, however much it is, is inside the loop. */
static void
test_iterations_after_a_compiler(void **state)
{
	(void)state;
	check_loop(even, 10, 4, 200);
	check_loop(long_first, 10, 4, 200);
}

/* ---- damage ---- */

static void
test_damaged_pieces(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	add(piece(), op, thread, 10, 20, 0);
	struct plumb_record_span *p = piece();
	add(p, op, thread, 10, 20, 0);
	p->capacity = CAPACITY + 1; /* more than there is room for */
	p = piece();
	p->state = CAPACITY + 1;
	p = piece();
	p->state = UINT64_MAX;
	p->capacity = UINT32_MAX;
	settle();
	assert_int_equal(profile.spans_count, 1);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 3);
	done();
}

static void
test_damaged_entries(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	p->keep_iterations = 1;
	p->keep_ns = UINT64_MAX;
	add(p, op, thread, 20, 10, 0);     /* ends before it begins */
	add(p, thread, thread, 10, 20, 0); /* a track is no place */
	add(p, op, op, 10, 20, 0);         /* nor is a place a track */
	add(p, op, 12345, 10, 20, 0);      /* nowhere */
	add(p, 99999999, thread, 10, 20, 0);
	add(p, op, thread, 10, UINT64_MAX, 0);
	add(p, op, thread, INT64_MAX, INT64_MAX, 0);
	add(p, kernel, stream, INT64_MAX - 1, INT64_MAX, 0);
	add(p, 0, thread, 10, 20, UINT64_MAX); /* under nothing */
	settle();
	assert_int_equal(profile.spans_count, 1);
	assert_int_equal(profile.spans[0].context, 0);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_DAMAGED), 8);
	done();
}

/* A node that is its own ancestor hangs at the root, also when loops are looked for. */
static void
test_circle(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	plumb_id a = node(0, PLUMB_FRAME_PYTHON, "a"), b = node(a, PLUMB_FRAME_PYTHON, "b");
	((struct plumb_record_node *)plumb_region_at(&region, a))->parent = b;
	struct plumb_record_span *p = piece();
	p->keep_iterations = 1;
	for (unsigned i = 0; i < 4; i++)
		add(p, i % 2 ? a : b, thread, 100 * i, 100 * i + 50, 0);
	settle();
	assert_true(profile.spans_count >= 1 && profile.spans_count <= 4);
	done();
}

/* ---- samples of CPU time ---- */

static void
sample(struct plumb_record_span *to, plumb_id at, plumb_id track, uint64_t when, uint64_t ns)
{
	add(to, at, track, ns, when, PLUMB_ENTRY_IS_SAMPLE);
}

static void
count_samples(uint64_t count)
{
	struct plumb_record_ledger *made = record(PLUMB_RECORD_LEDGER, sizeof *made);

	made->source = PLUMB_SOURCE_SAMPLE_TIME;
	made->fate = PLUMB_FATE_RECEIVED;
	made->count = count;
}

static void
test_samples(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	sample(p, call, thread, 31, 7);
	add(p, op, thread, 5, 9, 0);
	sample(p, op, thread, 11, 6);
	count_samples(2);
	settle();
	assert_int_equal(profile.spans_count, 1);
	assert_int_equal(profile.cpu_samples_count, 2);
	const struct plumb_cpu_sample *s = profile.cpu_samples;
	assert_string_equal(plumb_frame_label(&profile, profile.contexts[s[0].context].frame),
	                    "op");
	assert_int_equal(s[0].at_ns, 100 * SECOND + 10);
	assert_int_equal(s[0].ns, 6);
	assert_string_equal(plumb_frame_label(&profile, profile.contexts[s[1].context].frame),
	                    "call");
	assert_int_equal(s[1].at_ns, 100 * SECOND + 30);
	assert_int_equal(profile.tracks[s[1].track].kind, PLUMB_TRACK_THREAD);
	assert_int_equal(ledger(PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_ATTRIBUTED), 2);
	assert_int_equal(ledger(PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_OVERWRITTEN), 0);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_RECEIVED), 1);
	done();
}

static void
test_damaged_samples(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	sample(p, op, stream, 31, 7); /* a stream computes nothing */
	sample(p, op, 12345, 31, 7);
	sample(p, thread, thread, 31, 7);
	sample(p, op, thread, UINT64_MAX, 7);
	sample(p, op, thread, 31, UINT64_MAX);
	sample(p, op, thread, 31, PLUMB_TIME_MOST);
	sample(p, op, thread, 0, 7); /* before the first reading is no damage */
	count_samples(UINT64_MAX);
	settle();
	assert_int_equal(profile.spans_count, 0);
	assert_int_equal(profile.cpu_samples_count, 1);
	assert_int_equal(profile.cpu_samples[0].at_ns, 100 * SECOND - 1);
	assert_int_equal(ledger(PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_DAMAGED), 6);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_DAMAGED), 0);
	done();
}

/* Of what a ring went over, the samples are those that were counted and are not there. */
static void
test_overwritten_samples(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	add(p, op, thread, 5, 9, 0);
	sample(p, op, thread, 11, 6);
	p->state += 1ull << 32;
	count_samples(6);
	settle();
	assert_int_equal(profile.cpu_samples_count, 1);
	assert_int_equal(ledger(PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_OVERWRITTEN), 5);
	assert_int_equal(ledger(PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN), CAPACITY - 5);
	done();
}

/* What --trace asks for holds for samples, too. */
static void
test_last_seconds_of_samples(void **state)
{
	(void)state;
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	struct plumb_record_span *p = piece();
	p->keep_ns = 2 * SECOND;
	add(p, op, thread, 1, 2 * SECOND, 0);
	sample(p, op, thread, 1 + 2 * SECOND, 6);
	sample(p, op, thread, 2 + 2 * SECOND, 6);
	sample(p, op, thread, 1 + 4 * SECOND, 6);
	count_samples(3);
	settle();
	assert_int_equal(profile.spans_count, 0);
	assert_int_equal(profile.cpu_samples_count, 2);
	assert_int_equal(ledger(PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_OVERWRITTEN), 1);
	done();
}

static void
write_input(const char *to)
{
	FILE *out = fopen(to, "wb");

	assert_non_null(out);
	begin();
	reading(1, 100 * SECOND, SCALE(1));
	reading(SECOND, 101 * SECOND, SCALE(1));
	plumb_id main_ = node(0, PLUMB_FRAME_PYTHON, "main");
	plumb_id a = node(main_, PLUMB_FRAME_OPERATOR, "a");
	plumb_id b = node(main_, PLUMB_FRAME_RANGE, "Optimizer.step#SGD");
	struct plumb_record_span *p = piece();
	p->keep_iterations = 2;
	for (unsigned i = 0; i < 4; i++) {
		add(p, a, thread, 100 * i + 10, 100 * i + 20, i);
		add(p, b, thread, 100 * i + 30, 100 * i + 40, 0);
		add(p, kernel, stream, 100 * SECOND + i, 100 * SECOND + 2 * i, i);
		sample(p, a, thread, 100 * i + 15, 7);
	}
	fputc(0, out); /* not to be mended */
	/* Up to the last record: the rest of its chunk is empty. */
	fwrite(region.header, 1,
	       (size_t)((char *)(arena.chunk + 1) + arena.chunk->used - (char *)region.header),
	       out);
	fclose(out);
	plumb_region_close(&region);
	unlink(path);
}

static int
setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/plumb-spans-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/1.region", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int
main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_ticks),
		T(test_one_reading),
		T(test_no_reading),
		T(test_rounds),
		T(test_last_seconds),
		T(test_iterations_of_a_loop),
		T(test_damaged_pieces),
		T(test_damaged_entries),
		T(test_circle),
		T(test_iterations_of_a_busy_machine),
		T(test_iterations_after_a_compiler),
		T(test_samples),
		T(test_damaged_samples),
		T(test_overwritten_samples),
		T(test_last_seconds_of_samples),
	};
	if (argc == 2) {
		setup(NULL);
		write_input(argv[1]);
		return teardown(NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
