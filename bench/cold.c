/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as a real program makes them: between two of them it uses the processor's caches for other
 * things. For bench/cold.py, as a program (without Python) and as a library that Python calls.
 *
 *	cold KIB ROUNDS EVENT…     "RESULT EVENT ns", the median; an event is one of `events`
 *
 * Before each event this walks KIB of memory and as much code, at most 64 KiB of it. There are
 * PLACES ranges and places of launches, which take turns. Preloaded into a program of PyTorch, the
 * library makes each operator on the CPU launch: cold_in_torch() says when.
 */
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "mock.h"

#define PLACES 86 /* as many ranges as a step of a program compiled by XLA has */
#define LINE 64
#define KEEP 65536

/* ---- other things ---- */

static volatile char *memory;
static char *code;
static size_t memory_bytes, code_bytes;

static void
make_others(size_t kib)
{
	memory_bytes = kib << 10;
	code_bytes = kib < 64 ? kib << 10 : 64 << 10;
	memory = malloc(memory_bytes + 1);
	code = mmap(NULL, code_bytes + LINE, PROT_READ | PROT_WRITE | PROT_EXEC,
	            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!memory || code == MAP_FAILED)
		exit(1);
#if defined(__x86_64__)
	memset(code, 0xc3, code_bytes);
#else
	for (size_t at = 0; at < code_bytes; at += 4)
		memcpy(code + at, &(uint32_t){ 0xd65f03c0 }, 4);
	__builtin___clear_cache(code, code + code_bytes);
#endif
}

static void
use_caches(void)
{
	for (size_t at = 0; at < memory_bytes; at += LINE)
		memory[at]++;
	for (size_t at = 0; at < code_bytes; at += LINE)
		((void (*)(void))(uintptr_t)(code + at))();
}

/* ---- events ---- */

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t registered[PLACES];
static char texts[PLACES][96];

static void
make_ranges(void)
{
	if (domain)
		return;
	domain = nvtxDomainCreateA("TSL");
	for (int i = 0; i < PLACES; i++) {
		snprintf(texts[i], sizeof texts[i],
		         "Thunk:#name=fusion.%d,hlo_op=wrapped_reduce_fusion.%d#", i, i);
		registered[i].version = NVTX_VERSION;
		registered[i].size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
		registered[i].messageType = NVTX_MESSAGE_TYPE_REGISTERED;
		registered[i].message.registered = nvtxDomainRegisterStringA(domain, texts[i]);
	}
}

__attribute__((noinline)) static void
event_push(int place)
{
	nvtxDomainRangePushEx(domain, &registered[place]);
}

__attribute__((noinline)) static void
event_pop(int place)
{
	(void)place;
	nvtxDomainRangePop(domain);
}

__attribute__((noinline)) static void
event_push_text(int place)
{
	nvtxRangePushA(texts[place]);
}

__attribute__((noinline)) static void
event_pop_text(int place)
{
	(void)place;
	nvtxRangePop();
}

/* Places of launches: each a call site of its own. */
__attribute__((noinline)) static void
event_launch(int place)
{
	switch (place % 8) {
#define SITE(n)                                                                                    \
	case n:                                                                                    \
		mock_launch("_Z4axpyPf", 1000);                                                    \
		__asm__ volatile("# site " #n);                                                    \
		break;
		SITE(0)
		SITE(1)
		SITE(2)
		SITE(3)
		SITE(4)
		SITE(5)
		SITE(6)
		SITE(7)
	}
	__asm__ volatile("");
}

static const struct {
	const char *name;
	void (*begin)(int place);
	void (*end)(int place); /* or NULL */
} events[] = {
	{ "range", event_push, event_pop },
	{ "text", event_push_text, event_pop_text },
	{ "launch", event_launch, NULL },
};
enum { EVENTS = sizeof events / sizeof *events };

/* ---- measuring ---- */

static uint64_t times[KEEP];
static size_t kept;

static uint64_t
now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t
timed(void (*event)(int place), int place)
{
	use_caches();
	now(); /* reading the clock is not cold, too */
	uint64_t start = now();
	event(place);
	return now() - start;
}

void
cold_prepare(int kib)
{
	make_others((size_t)kib);
	make_ranges();
	nvtxDomainRangePushEx(domain, &registered[0]); /* one around all */
	event_launch(0);
}

/* For a caller whose own lines are the places: one event. */
void
cold_event(int event, int place)
{
	uint64_t took = timed(events[event].begin, place);
	if (events[event].end)
		took += timed(events[event].end, place);
	if (kept < KEEP)
		times[kept++] = took;
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The median of the events so far; forgets them. */
double
cold_median(void)
{
	qsort(times, kept, sizeof *times, compare);
	double median = kept ? (double)times[kept / 2] : -1;
	kept = 0;
	return median;
}

/* ---- in PyTorch ---- */

static int in_torch;
static uint64_t launches, spent; /* ns of the thread's processor time, on the caches */

static uint64_t
thread_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* From now on, each tensor that PyTorch makes on the CPU launches with cold caches. */
void
cold_in_torch(int on)
{
	in_torch = on;
}

/* Launches until now; *NS gets the time that was spent on making the caches cold. */
uint64_t
cold_launches(uint64_t *ns)
{
	*ns = spent;
	return launches;
}

void *allocate(size_t bytes) __asm__("_ZN3c109alloc_cpuEm");
void *
allocate(size_t bytes)
{
	void *allocated = NULL;
	if (!bytes || posix_memalign(&allocated, 64, bytes))
		return NULL;
	if (in_torch) {
		uint64_t start = thread_time();
		use_caches();
		spent += thread_time() - start;
		launches++;
		mock_launch("_Z4axpyPf", 1000);
	}
	return allocated;
}

int
cold_number(const char *name)
{
	for (int i = 0; i < EVENTS; i++)
		if (!strcmp(events[i].name, name))
			return i;
	return -1;
}

int
main(int count, char **arguments)
{
	int rounds = count > 2 ? atoi(arguments[2]) : 20;
	cold_prepare(count > 1 ? atoi(arguments[1]) : 0);
	for (int a = 3; a < count; a++) {
		int event = cold_number(arguments[a]);
		for (int i = 0; event >= 0 && i < (rounds + 2) * PLACES; i++) {
			if (i == 2 * PLACES)
				kept = 0; /* contexts are made */
			cold_event(event, i % PLACES);
		}
		printf("RESULT %s %.1f\n", arguments[a], cold_median());
	}
	return 0;
}
