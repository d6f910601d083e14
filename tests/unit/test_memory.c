/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations: what lives where, and who holds the bytes at the peak. A process records once in its
 * life, so each case runs in a process of its own, which this program starts by its name; the test
 * then settles the region that it left.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/gpu/device.h"
#include "collect/live.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/memory.h"
#include "collect/monitor/memory_series.h"
#include "settle/settle.h"

/* ---- what lives at an address ---- */

static void
test_live(void **state)
{
	enum { MANY = 100000 };
	static struct plumb_live live;
	struct plumb_live_object object = { 0 }, was;

	(void)state;
	for (uint64_t i = 1; i <= MANY; i++) {
		object.bytes = i;
		assert_int_equal(plumb_live_put(&live, i * 64, &object, &was), PLUMB_LIVE_NEW);
	}
	object.bytes = 7;
	assert_int_equal(plumb_live_put(&live, 64 * 500, &object, &was), PLUMB_LIVE_REPLACED);
	assert_int_equal(was.bytes, 500);
	for (uint64_t i = MANY; i; i--) {
		assert_true(plumb_live_take(&live, i * 64, &object));
		assert_int_equal(object.bytes, i == 500 ? 7 : i);
		assert_false(plumb_live_take(&live, i * 64, &object));
	}
	assert_int_equal(plumb_live_put(&live, 64, &object, &was), PLUMB_LIVE_NEW);
	plumb_live_clear(&live);
	assert_false(plumb_live_take(&live, 64, &object));
}

/* ---- what the cases do ---- */

enum { CONTEXTS = 12 };

static uint64_t
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static void
change(uint8_t kind, uint8_t index, uint64_t address, int64_t bytes)
{
	struct plumb_memory_change c = {
		.device_kind = kind,
		.device_index = index,
		.free = bytes < 0,
		.address = address,
		.bytes = bytes < 0 ? 0 : (uint64_t)bytes,
		.allocated = PLUMB_POOL_UNTOLD,
		.reserved = PLUMB_POOL_UNTOLD,
	};
	plumb_memory_changed(&c);
}

/* Allocates in the operator "c<number>". */
static void
allocate_at(unsigned number, uint64_t address, int64_t bytes)
{
	char name[24];
	struct plumb_operator op = { .name = name, .sequence = -1 };
	snprintf(name, sizeof name, "c%u", number);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_ticket *ticket = plumb_operator_enter(thread, &op);
	plumb_leave(thread);
	change(PLUMB_MEMORY_CPU, 0, address, bytes);
	thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT);
	if (ticket)
		plumb_operator_exit(thread, ticket);
	plumb_leave(thread);
}

static void
release(uint64_t address)
{
	change(PLUMB_MEMORY_CPU, 0, address, -1);
}

/* Random work of one thread, with the truth kept by hand: written to a file that the test reads. */
static int
case_truth(const char *folder)
{
	enum { SLOTS = 300, STEPS = 20000 };
	static struct {
		unsigned context;
		int64_t bytes;
	} slots[SLOTS];
	int64_t live[CONTEXTS] = { 0 }, held[CONTEXTS] = { 0 }, own[CONTEXTS] = { 0 };
	int64_t allocated[CONTEXTS] = { 0 }, total = 0, peak = 0;
	uint64_t seed = 42;
	for (int step = 0; step < STEPS; step++) {
		size_t s = next_random(&seed) % SLOTS;
		uint64_t address = 0x1000 + s * 64;
		if (slots[s].bytes) {
			total -= slots[s].bytes;
			live[slots[s].context] -= slots[s].bytes;
			slots[s].bytes = 0;
			release(address);
			continue;
		}
		unsigned c = (unsigned)(next_random(&seed) % CONTEXTS);
		slots[s].context = c;
		slots[s].bytes = (int64_t)(1 + next_random(&seed) % 100000);
		total += slots[s].bytes;
		live[c] += slots[s].bytes;
		allocated[c] += slots[s].bytes;
		own[c] = live[c] > own[c] ? live[c] : own[c];
		if (total > peak) {
			peak = total;
			memcpy(held, live, sizeof held);
		}
		allocate_at(c, address, slots[s].bytes);
	}
	char path[200];
	snprintf(path, sizeof path, "%s/truth", folder);
	FILE *out = fopen(path, "w");
	fprintf(out, "%lld %lld\n", (long long)peak, (long long)total);
	for (int c = 0; c < CONTEXTS; c++)
		fprintf(out, "%lld %lld %lld %lld\n", (long long)held[c], (long long)own[c],
		        (long long)allocated[c], (long long)live[c]);
	return fclose(out);
}

/* Threads that free what others allocated, through a board of addresses. */
enum { BOARD = 512, THREADS = 4 };
static _Atomic uint64_t board[BOARD]; /* address of what hangs there, 0 nothing */
static _Atomic bool stop_threads;

static void *
exchange(void *data)
{
	uint64_t seed = (uintptr_t)data, next = 0;
	for (int step = 0; step < 30000 && !atomic_load(&stop_threads); step++) {
		size_t place = next_random(&seed) % BOARD;
		uint64_t there = atomic_exchange(&board[place], 0);
		if (there) {
			release(there);
			continue;
		}
		/* An address is one thread's own, and used again when its object is gone. */
		uint64_t address = ((uint64_t)(uintptr_t)data << 32) + ++next * 64;
		allocate_at((unsigned)(next_random(&seed) % CONTEXTS), address,
		            (int64_t)(1 + next_random(&seed) % 5000));
		there = atomic_exchange(&board[place], address);
		if (there)
			release(there);
	}
	return NULL;
}

static void
run_threads(void)
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, exchange, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static int
case_threads(const char *folder)
{
	(void)folder;
	run_threads();
	for (int i = 0; i < BOARD; i++)
		if (board[i])
			release(board[i]);
	return 0;
}

static void *
kill_soon(void *data)
{
	usleep(20000);
	kill(getpid(), SIGKILL);
	return data;
}

static int
case_killed(const char *folder)
{
	pthread_t killer;
	(void)folder;
	pthread_create(&killer, NULL, kill_soon, NULL);
	while (!atomic_load(&stop_threads))
		run_threads();
	return 1;
}

/* More contexts than the region has room for: the device's sums stay what they are. */
static int
case_full(const char *folder)
{
	(void)folder;
	for (unsigned i = 0; i < 20000; i++)
		allocate_at(i, 0x1000 + i * 64, 10);
	for (unsigned i = 0; i < 20000; i += 2)
		release(0x1000 + i * 64);
	return 0;
}

static int
case_device(const char *folder)
{
	struct plumb_record_device gpu = { .ordinal = 1, .uuid = { 1 } };
	struct plumb_memory_change c = { .device_kind = PLUMB_MEMORY_CUDA,
		                         .device_index = 1,
		                         .address = 0x7000,
		                         .bytes = 512,
		                         .allocated = 600,
		                         .reserved = 2000 };
	(void)folder;
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	plumb_gpu_device_new(thread, &gpu, "Some GPU");
	plumb_leave(thread);
	plumb_memory_changed(&c);
	c.free = true;
	plumb_memory_changed(&c);
	/* Less than the peak, but more was taken from the device for it. */
	c = (struct plumb_memory_change){ .device_kind = PLUMB_MEMORY_CUDA,
		                          .device_index = 1,
		                          .address = 0x8000,
		                          .bytes = 100,
		                          .allocated = 188,
		                          .reserved = 5000 };
	plumb_memory_changed(&c);
	/* The same address on the CPU is something else. */
	change(PLUMB_MEMORY_CPU, 0, 0x7000, 100);
	change(PLUMB_MEMORY_CUDA, 0, 0x7000, 300);
	change(PLUMB_MEMORY_CUDA, 0, 0x7000, 200); /* the free of the first was not seen */
	change(PLUMB_MEMORY_CUDA, 0, 0x9000, -1);  /* was never allocated here */
	change(20, 3, 0x7000, 64);
	return 0;
}

/* Changes over a day, in random steps of 1 ns to 40 s, and each bin against all changes in it. */
static int
case_series(const char *folder)
{
	enum { CHANGES = 20000 };
	static struct {
		uint64_t at, live, reserved;
	} all[CHANGES];
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_MEMORY);
	struct plumb_record_memory_series *series = plumb_memory_series_new(thread, 0);
	uint64_t seed = 7, at = series->start, live = 0;
	uint32_t next = 0;

	(void)folder;
	plumb_leave(thread);
	change(PLUMB_MEMORY_CPU, 0, 64, 10); /* else nothing would be captured */
	for (int i = 0; i < CHANGES; i++) {
		uint64_t before = live;
		at += next_random(&seed) % (1ull << next_random(&seed) % 36);
		live = next_random(&seed) % (1u << next_random(&seed) % 31);
		all[i].at = at;
		all[i].live = live;
		all[i].reserved = i % 3 ? live + 5 : PLUMB_POOL_UNTOLD;
		plumb_memory_series_note_at(series, before, live, all[i].reserved, at);
	}
	if (series->width < 4000000u << 10 || series->open >= PLUMB_MEMORY_BINS)
		return 1;
	/* What was so at the end of a bin is so at the beginning of the next. */
	struct plumb_memory_bin truth = { 0, 0, 0, PLUMB_POOL_UNTOLD, PLUMB_POOL_UNTOLD };
	for (uint32_t b = 0; b <= series->open; b++) {
		const struct plumb_memory_bin *bin = &series->bins[b];
		uint32_t from = next;
		truth.least = truth.most = truth.last;
		truth.most_reserved = truth.last_reserved;
		for (; next < CHANGES && all[next].at < series->start + (b + 1) * series->width;
		     next++) {
			uint64_t now = all[next].live, reserved = all[next].reserved;
			truth.least = now < truth.least ? now : truth.least;
			truth.most = now > truth.most ? now : truth.most;
			truth.last = now;
			if (reserved == PLUMB_POOL_UNTOLD)
				continue;
			if (truth.most_reserved == PLUMB_POOL_UNTOLD ||
			    reserved > truth.most_reserved)
				truth.most_reserved = reserved;
			truth.last_reserved = reserved;
		}
		if (b == series->open) /* it is not closed */
			return next != CHANGES || series->now.most != truth.most ||
			       series->now.least != truth.least ||
			       series->now.most_reserved != truth.most_reserved ||
			       series->now.last_reserved != truth.last_reserved;
		if (from == next ? bin->last != PLUMB_POOL_UNTOLD
		                 : memcmp(bin, &truth, sizeof truth) != 0)
			return 2;
	}
	return 3;
}

/* A pool whose first change is noted long after its series was made. */
static int
case_late(const char *folder)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_MEMORY);
	struct plumb_arena *arena = plumb_thread_arena(thread);
	plumb_id name = plumb_intern(thread, "cuda:0", 6);
	struct plumb_record_memory_pool *pool =
		plumb_arena_append(arena, PLUMB_RECORD_MEMORY_POOL, sizeof *pool);

	(void)folder;
	pool->name = name;
	pool->peak_allocated = pool->peak_reserved = pool->most_reserved = PLUMB_POOL_UNTOLD;
	pool->live = 700ull << PLUMB_POOL_TAG_BITS;
	plumb_arena_commit(arena, pool);
	plumb_id id = plumb_region_id(arena->region, pool);
	struct plumb_record_memory_series *series = plumb_memory_series_new(thread, id);
	plumb_memory_series_note_at(series, 0, 700, 900, series->start + 2 * series->width);
	plumb_leave(thread);
	change(PLUMB_MEMORY_CPU, 0, 64, 10); /* else nothing would be captured */
	return 0;
}

/* The driver's memory of two contexts, which nobody holds. */
static int
case_driver(const char *folder)
{
	struct plumb_record_device gpu = { .ordinal = 0, .uuid = { 1 } };
	(void)folder;
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	struct plumb_gpu_device *device = plumb_gpu_device_new(thread, &gpu, "Some GPU");
	plumb_gpu_stream(thread, device, 7, 0);
	plumb_memory_driver(thread, 7, 5000);
	plumb_memory_driver(thread, 7, 3000);
	plumb_memory_driver(thread, 7, -5000);
	plumb_memory_driver(thread, 8, 100);
	plumb_memory_driver(thread, 8, -200); /* more than there is: refused */
	plumb_leave(thread);
	change(PLUMB_MEMORY_CPU, 0, 64, 10);
	return 0;
}

static int listened;
static void
listen(const struct plumb_memory_change *c)
{
	listened += c->free ? 100 : 1;
}

static int overheard;
static void
overhear(const struct plumb_memory_change *c)
{
	overheard += c->free ? 100 : 1;
}

static void
others(const struct plumb_memory_change *c)
{
	(void)c;
}

static void
more(const struct plumb_memory_change *c)
{
	(void)c;
}

static void
one_too_many(const struct plumb_memory_change *c)
{
	(void)c;
}

static int
case_listener(const char *folder)
{
	(void)folder;
	bool heard = plumb_memory_listen(listen) && plumb_memory_listen(listen) &&
	             plumb_memory_listen(overhear);
	change(PLUMB_MEMORY_CPU, 0, 64, 10);
	change(PLUMB_MEMORY_CPU, 0, 64, -1);
	plumb_memory_unlisten(listen);
	change(PLUMB_MEMORY_CPU, 0, 64, 10);
	bool full = plumb_memory_listen(others) && plumb_memory_listen(more) &&
	            plumb_memory_listen(listen) && !plumb_memory_listen(one_too_many);
	return !heard || listened != 101 || overheard != 102 || !full || !plumb_memory_is_wanted();
}

/* What a parent allocated a child knows nothing of, and its tables are its own. */
static int
case_forgets(const char *folder)
{
	int status;
	(void)folder;
	change(PLUMB_MEMORY_CPU, 0, 64, 10);
	pid_t child = fork();
	if (!child) {
		release(64);
		change(PLUMB_MEMORY_CPU, 0, 128, 1000);
		_exit(0);
	}
	waitpid(child, &status, 0);
	release(64);
	return status;
}

static const struct {
	const char *name;
	int (*run)(const char *folder);
} cases[] = {
	{ "truth", case_truth },     { "threads", case_threads }, { "killed", case_killed },
	{ "full", case_full },       { "device", case_device },   { "listener", case_listener },
	{ "forgets", case_forgets }, { "series", case_series },   { "driver", case_driver },
	{ "late", case_late },
};

/* ---- running a case and settling it ---- */

static char folder[64];
static struct plumb_profile profile;

static int
setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/plumb-memory-XXXXXX");
	profile = (struct plumb_profile){ 0 };
	return !mkdtemp(folder);
}

static int
teardown(void **state)
{
	char command[100];
	(void)state;
	plumb_profile_free(&profile);
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

/* Runs NAME in a process of its own; returns its status. */
static int
run_case(const char *name)
{
	const char *folders[] = { folder };
	struct plumb_error error = { 0 };
	char *warnings = NULL;
	int status;
	pid_t child = fork();
	if (!child) {
		setenv(PLUMB_ENV_FOLDER, folder, 1);
		setenv(PLUMB_ENV_LIMIT, "1500000", 1);
		setenv(PLUMB_ENV_MEMORY, "1", 1);
		setenv(PLUMB_ENV_LAYERS, "7", 1); /* PLUMB_LAYERS_LIGHT: no native frames */
		execl("/proc/self/exe", "test_memory", name, folder, (char *)NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	if (plumb_settle(folders, 1, NULL, &profile, &warnings, &error) != PLUMB_OK)
		fail_msg("%s", error.message);
	free(warnings);
	return status;
}

/* METRIC of all contexts whose frame is called NAME (NULL: all), added up; the greatest of
 * mem.peak. */
static int64_t
amount(const char *name, uint32_t metric, uint32_t memory)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile.values_count; i++) {
		const struct plumb_value *v = &profile.values[i];
		const struct plumb_frame *f = plumb_context_frame(&profile, v->context);
		if (v->metric != metric || v->track != profile.memory[memory].track ||
		    (name && strcmp(plumb_text(&profile, f->name), name) != 0))
			continue;
		if (metric != PLUMB_METRIC_MEM_PEAK)
			sum += v->sum;
		else if (v->max > sum)
			sum = v->max;
	}
	return sum;
}

static int64_t
ledger(uint32_t source, uint32_t fate)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile.ledger_count; i++)
		if (profile.ledger[i].source == source && profile.ledger[i].fate == fate)
			sum += profile.ledger[i].count;
	return sum;
}

/* The series of MEMORY has no holes, is bounded, ends with what is live at the
 * end, and its max is PEAK. */
static void
check_series(uint32_t memory, int64_t peak)
{
	const struct plumb_memory *m = &profile.memory[memory];
	const struct plumb_memory_series_bin *last = NULL;
	int64_t max = 0;
	uint32_t bins = 0;

	for (uint32_t i = 0; i < profile.memory_series_count; i++) {
		const struct plumb_memory_series_bin *bin = &profile.memory_series[i];
		if (bin->track != m->track)
			continue;
		if (last) {
			assert_int_equal(bin->width_ns, last->width_ns);
			assert_int_equal(bin->start_ns, last->start_ns + last->width_ns);
			assert_true(bin->min_bytes <= last->last_bytes);
			assert_true(bin->max_bytes >= last->last_bytes);
		}
		assert_true(bin->min_bytes <= bin->last_bytes && bin->last_bytes <= bin->max_bytes);
		max = bin->max_bytes > max ? bin->max_bytes : max;
		last = bin;
		bins++;
	}
	assert_in_range(bins, 1, PLUMB_MEMORY_BINS);
	assert_int_equal(max, peak);
	assert_int_equal(last->last_bytes, m->live_bytes);
}

#define AMOUNT(name, metric) amount(name, PLUMB_METRIC_##metric, 0)
#define LEDGER(fate) ledger(PLUMB_SOURCE_MEMORY, PLUMB_FATE_##fate)

static void
test_truth(void **state)
{
	char path[100], name[16];
	long long peak, live, held, own, allocated, left;
	(void)state;
	assert_int_equal(run_case("truth"), 0);
	snprintf(path, sizeof path, "%s/truth", folder);
	FILE *in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(fscanf(in, "%lld %lld", &peak, &live), 2);
	assert_int_equal(profile.memory_count, 1);
	assert_int_equal(profile.memory[0].peak_bytes, peak);
	assert_int_equal(profile.memory[0].live_bytes, live);
	assert_true(peak > live && live > 0);
	for (int c = 0; c < CONTEXTS; c++) {
		assert_int_equal(fscanf(in, "%lld %lld %lld %lld", &held, &own, &allocated, &left),
		                 4);
		snprintf(name, sizeof name, "c%d", c);
		assert_int_equal(AMOUNT(name, MEM_HELD), held);
		assert_int_equal(AMOUNT(name, MEM_PEAK), own);
		assert_int_equal(AMOUNT(name, MEM_ALLOC), allocated);
		assert_int_equal(AMOUNT(name, MEM_FREE), allocated - left);
	}
	fclose(in);
	assert_int_equal(AMOUNT(NULL, MEM_HELD), peak);
	check_series(0, peak);
	assert_int_equal(LEDGER(RECEIVED), LEDGER(ATTRIBUTED));
	const struct plumb_process *process = &profile.processes[0];
	assert_true(profile.memory[0].peak_ns >= process->start_ns);
	assert_true(profile.memory[0].peak_ns <= process->end_ns);
}

static void
test_threads(void **state)
{
	(void)state;
	assert_int_equal(run_case("threads"), 0);
	const struct plumb_memory *memory = &profile.memory[0];
	assert_int_equal(memory->live_bytes, 0);
	assert_int_equal(memory->allocated_bytes, memory->freed_bytes);
	assert_int_equal(memory->allocations, memory->frees);
	assert_int_equal(AMOUNT(NULL, MEM_HELD), memory->peak_bytes);
	assert_int_equal(AMOUNT(NULL, MEM_ALLOC), memory->allocated_bytes);
	check_series(0, memory->peak_bytes);
	for (int c = 0; c < CONTEXTS; c++) {
		char name[16];
		snprintf(name, sizeof name, "c%d", c);
		assert_true(AMOUNT(name, MEM_HELD) >= 0);
		assert_int_equal(AMOUNT(name, MEM_ALLOC), AMOUNT(name, MEM_FREE));
	}
	assert_int_equal(LEDGER(RECEIVED), memory->allocations + memory->frees);
	assert_int_equal(LEDGER(ATTRIBUTED), LEDGER(RECEIVED));
}

/* What the region holds after SIGKILL hangs together, but for what was being written. */
static void
test_killed(void **state)
{
	(void)state;
	int status = run_case("killed");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	const struct plumb_memory *memory = &profile.memory[0];
	assert_true(memory->peak_bytes >= memory->live_bytes && memory->peak_bytes > 0);
	if (!ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN)) {
		assert_int_equal(AMOUNT(NULL, MEM_HELD), memory->peak_bytes);
		assert_int_equal(memory->allocated_bytes - memory->freed_bytes, memory->live_bytes);
	}
	/* A thread may have died between a change and its note. */
	for (uint32_t i = 0; i < profile.memory_series_count; i++)
		assert_true(profile.memory_series[i].max_bytes <= memory->peak_bytes);
	assert_true(profile.memory_series_count > 0);
}

static void
test_driver(void **state)
{
	static const int64_t max[] = { 8000, 100, 10 }, last[] = { 3000, 100, 10 };
	(void)state;
	assert_int_equal(run_case("driver"), 0);
	assert_int_equal(profile.memory_count, 1);
	check_series(0, 10);
	assert_int_equal(profile.memory_series_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct plumb_memory_series_bin *bin = &profile.memory_series[i];
		const struct plumb_track *track = &profile.tracks[bin->track];
		assert_string_equal(plumb_text(&profile, track->name), i < 2 ? "driver" : "CPU");
		assert_int_equal(track->device, i ? PLUMB_NONE : 0); /* no stream is of context 8 */
		assert_int_equal(bin->max_bytes, max[i]);
		assert_int_equal(bin->last_bytes, last[i]);
	}
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT), 1);
}

static void
test_series(void **state)
{
	(void)state;
	assert_int_equal(run_case("series"), 0);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 1); /* it has no pool */
	check_series(0, 10);
}

/* The bins before the first change say nothing of what was reserved: they are not in the series. */
static void
test_late(void **state)
{
	(void)state;
	assert_int_equal(run_case("late"), 0);
	uint32_t bins = 0;
	for (uint32_t i = 0; i < profile.memory_series_count; i++) {
		const struct plumb_memory_series_bin *bin = &profile.memory_series[i];
		if (strcmp(plumb_text(&profile, profile.tracks[bin->track].name), "CPU") == 0)
			continue;
		assert_int_equal(bin->max_bytes, 700);
		assert_int_equal(bin->max_reserved_bytes, 900);
		bins++;
	}
	assert_int_equal(bins, 1);
}

static void
test_full(void **state)
{
	(void)state;
	assert_int_equal(run_case("full"), 0);
	const struct plumb_memory *memory = &profile.memory[0];
	assert_int_equal(memory->peak_bytes, 200000);
	assert_int_equal(memory->live_bytes, 100000);
	assert_int_equal(memory->allocations, 20000);
	assert_int_equal(memory->frees, 10000);
	assert_int_equal(AMOUNT(NULL, MEM_HELD), 200000);
	assert_true(LEDGER(REGION_FULL) > 0);
	assert_int_equal(LEDGER(RECEIVED), 30000);
	assert_int_equal(LEDGER(ATTRIBUTED) + LEDGER(REGION_FULL), 30000);
}

static void
test_device(void **state)
{
	static const char *const names[] = { "cuda:1", "CPU", "cuda:0", "privateuseone:3" };
	static const int64_t peaks[] = { 512, 100, 300, 64 };
	(void)state;
	assert_int_equal(run_case("device"), 0);
	assert_int_equal(profile.memory_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct plumb_memory *memory = &profile.memory[i];
		const struct plumb_track *track = &profile.tracks[memory->track];
		assert_int_equal(track->kind, PLUMB_TRACK_MEMORY);
		assert_string_equal(plumb_text(&profile, track->name), names[i]);
		assert_int_equal(memory->peak_bytes, peaks[i]);
		assert_int_equal(track->device, i ? PLUMB_NONE : 0);
	}
	assert_int_equal(profile.memory[0].peak_allocated_bytes, 600);
	assert_int_equal(profile.memory[0].peak_reserved_bytes, 2000);
	assert_int_equal(profile.memory[0].most_reserved_bytes, 5000);
	assert_int_equal(profile.memory[1].peak_reserved_bytes, PLUMB_UNKNOWN);
	for (uint32_t i = 0; i < 4; i++)
		check_series(i, peaks[i]);
	for (uint32_t i = 0; i < profile.memory_series_count; i++) {
		const struct plumb_memory_series_bin *bin = &profile.memory_series[i];
		bool told = bin->track == profile.memory[0].track;
		assert_true(told || bin->max_reserved_bytes == PLUMB_UNKNOWN);
		assert_true(told || bin->last_reserved_bytes == PLUMB_UNKNOWN);
		if (told && profile.memory_series[i + 1].track != bin->track)
			assert_int_equal(bin->max_reserved_bytes, 5000);
	}
	assert_int_equal(profile.memory[2].live_bytes, 200);
	assert_int_equal(profile.memory[2].frees, 1);
	assert_int_equal(LEDGER(UNKNOWN_OBJECT), 1);
	assert_int_equal(profile.devices[0].ordinal, 1);
}

static void
test_listener(void **state)
{
	(void)state;
	assert_int_equal(run_case("listener"), 0);
	assert_int_equal(profile.memory[0].allocations, 2);
}

static void
test_forgets(void **state)
{
	(void)state;
	assert_int_equal(run_case("forgets"), 0);
	assert_int_equal(profile.memory[0].peak_bytes, 10);
	assert_int_equal(profile.memory[0].frees, 1);
	assert_int_equal(profile.memory[0].live_bytes, 0);
}

/* ---- regions written by hand ---- */

static struct plumb_region region;
static struct plumb_arena arena;

static struct plumb_record_memory_pool *
put_pool(uint64_t live, uint64_t peak)
{
	struct plumb_record_memory_pool *pool =
		plumb_arena_append(&arena, PLUMB_RECORD_MEMORY_POOL, sizeof *pool);
	pool->ordinal = UINT32_MAX;
	pool->live = live << PLUMB_POOL_TAG_BITS;
	pool->peak = peak;
	pool->peak_allocated = pool->peak_reserved = pool->most_reserved = PLUMB_POOL_UNTOLD;
	plumb_arena_commit(&arena, pool);
	return pool;
}

static struct plumb_record_memory *
put_share(const void *pool, int64_t allocated, int64_t freed, uint64_t seen, int64_t held)
{
	struct plumb_record_memory *share =
		plumb_arena_append(&arena, PLUMB_RECORD_MEMORY, sizeof *share);
	share->pool = pool ? plumb_region_id(&region, pool) : 12345;
	if (allocated)
		plumb_observations_add(&share->allocated, allocated);
	if (freed)
		plumb_observations_add(&share->freed, freed);
	share->seen = seen;
	share->held = held;
	plumb_arena_commit(&arena, share);
	return share;
}

/* A series of POOL whose second bin is open and has had MOST, and whose first had BIN. */
static struct plumb_record_memory_series *
put_series(const void *pool, struct plumb_memory_bin bin, uint64_t most)
{
	struct plumb_record_memory_series *series =
		plumb_arena_append(&arena, PLUMB_RECORD_MEMORY_SERIES, sizeof *series);
	memset(series->bins, -1, sizeof series->bins);
	series->pool = plumb_region_id(&region, pool);
	series->start = 1000;
	series->width = 50;
	series->open = 2;
	series->now.least = 5;
	series->now.most = most;
	series->now.most_reserved = series->now.last_reserved = PLUMB_POOL_UNTOLD;
	series->bins[0] = bin;
	plumb_arena_commit(&arena, series);
	return series;
}

/* What is torn, absurd or of no pool is counted and left out; a newest change that nobody compared
 * with the peak yet is the peak. */
static void
test_by_hand(void **state)
{
	const char *folders[] = { folder };
	struct plumb_error error;
	char path[100], *warnings;
	(void)state;
	snprintf(path, sizeof path, "%s/1-1.region", folder);
	assert_int_equal(plumb_region_create(&region, path, 1 << 20, &error), 0);
	plumb_arena_init(&arena, &region);
	struct plumb_record_memory_pool *first = put_pool(700, 600);
	put_share(first, 900, 0, 600, 550); /* the peak is 700 now: held is what is live */
	put_share(first, 0, 200, 600, -50); /* another thread freed of it */
	struct plumb_record_memory_pool *second = put_pool(10, 600);
	put_share(second, 900, 890, 600, 450);
	put_share(second, 300, 300, 600, 150);
	put_share(second, 1, 0, 600, INT64_MIN);
	put_share(NULL, 1, 0, 600, 1);
	put_share(second, 1, 0, 600, 1)->sequence = 1;
	put_share(second, 1, 0, 600, 1)->allocated.mean = -1.0 / 0.0;
	put_pool(10, UINT64_MAX);
	const uint64_t untold = PLUMB_POOL_UNTOLD;
	put_series(second, (struct plumb_memory_bin){ 0, 500, 400, 900, 800 }, 600);
	put_series(first, (struct plumb_memory_bin){ 0, 500, 501, untold, untold }, 600);
	put_series(first, (struct plumb_memory_bin){ 0, 500, 400, 1, 1 }, PLUMB_POOL_MOST + 1)
		->open = PLUMB_MEMORY_BINS;
	put_series(first, (struct plumb_memory_bin){ 0, 500, 400, 1, 1 }, 600)->width = 0;
	put_series(first, (struct plumb_memory_bin){ 0, 500, 400, 1, 1 }, 600)->start = INT64_MAX;
	put_series(first, (struct plumb_memory_bin){ 0, 500, 400, 1, 1 }, 600)->sequence = 3;
	plumb_region_close(&region);
	assert_int_equal(plumb_settle(folders, 1, NULL, &profile, &warnings, &error), PLUMB_OK);
	assert_int_equal(profile.memory_count, 2);
	assert_int_equal(profile.memory[0].peak_bytes, 700);
	assert_int_equal(amount(NULL, PLUMB_METRIC_MEM_HELD, 0), 700);
	assert_int_equal(profile.memory[1].peak_bytes, 600);
	assert_int_equal(amount(NULL, PLUMB_METRIC_MEM_HELD, 1), 600);
	assert_int_equal(profile.memory[1].live_bytes, 10);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_VALUE, PLUMB_FATE_DAMAGED), 3);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 1 + 4);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_TORN), 1);
	const struct plumb_memory_series_bin *bins = profile.memory_series;
	assert_int_equal(profile.memory_series_count, 3);
	assert_int_equal(bins[0].max_bytes, 500);
	assert_int_equal(bins[0].max_reserved_bytes, 900);
	/* Nothing changed in the second. */
	assert_int_equal(bins[1].start_ns, 1050);
	assert_int_equal(bins[1].min_bytes, 400);
	assert_int_equal(bins[1].max_bytes, 400);
	assert_int_equal(bins[1].max_reserved_bytes, 800);
	assert_int_equal(bins[2].min_bytes, 5);
	assert_int_equal(bins[2].max_bytes, 600);
	assert_int_equal(bins[2].last_bytes, 10);
	assert_int_equal(bins[2].max_reserved_bytes, PLUMB_UNKNOWN);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),
		cmocka_unit_test_setup_teardown(test_truth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_device, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listener, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_driver, setup, teardown),
		cmocka_unit_test_setup_teardown(test_series, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_hand, setup, teardown),
	};
	if (argc > 2) {
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			if (!strcmp(argv[1], cases[i].name))
				return cases[i].run(argv[2]);
		return 98;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
