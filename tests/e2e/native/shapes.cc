/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of many shapes, for test_native_walk.py: shapes CASE [LIBRARY]. At the bottom of each, plumb's
 * walk is compared with libgcc's, site by site. Built with the walk's sources in many ways.
 *
 * Prints "CASE: N stacks, deepest D, known K, crashes C" and fails when one differs.
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <stdatomic.h>
extern "C" {
#define _Atomic /* the header's objects are not touched from here */
#include "collect/stack/stack.h"
#undef _Atomic

void *
plumb_real_dlsym(void *handle, const char *name)
{
	return dlsym(handle, name);
}
}

#include "memoed.h"

#define NOINLINE __attribute__((noinline, noclone))
enum { MOST = 4096 };

static unsigned long stacks, deepest, differences;

/* ---- the two walks ---- */

struct Sites {
	uintptr_t at[MOST];
	size_t count;
};

static _Unwind_Reason_Code
take(struct _Unwind_Context *context, void *data)
{
	Sites *sites = static_cast<Sites *>(data);
	int exact = 0;
	uintptr_t ip = _Unwind_GetIPInfo(context, &exact);
	if (!ip || sites->count == MOST)
		return _URC_END_OF_STACK;
	sites->at[sites->count++] = exact ? ip : ip - 1;
	return _URC_NO_REASON;
}

static NOINLINE void
report(const char *what, const Sites *ours, const Sites *theirs, int end)
{
	if (++differences > 3)
		return;
	fprintf(stderr, "%s: the walk ended with %d after %zu, libgcc's after %zu\n", what, end,
	        ours->count, theirs->count);
	for (size_t i = 0; i < ours->count || i < theirs->count; i++) {
		uintptr_t a = i < ours->count ? ours->at[i] : 0;
		uintptr_t b = i < theirs->count ? theirs->at[i] : 0;
		const plumb_stack_object *object = plumb_stack_object_of(b ? b : a);
		fprintf(stderr, "  %2zu %16lx %16lx %c %s+%lx\n", i, a, b, a == b ? ' ' : '!',
		        object ? object->path : "?", (b ? b : a) - (object ? object->bias : 0));
	}
}

static void
compare(const char *what, const Sites *ours, const Sites *theirs, int end, int wanted)
{
	stacks++;
	if (theirs->count > deepest)
		deepest = theirs->count;
	if (ours->count != theirs->count || (wanted >= 0 && end != wanted) ||
	    memcmp(ours->at, theirs->at, ours->count * sizeof ours->at[0]))
		report(what, ours, theirs, end);
}

/* Both from here on, without this function's own site. WANTED: how the walk has to end; -1 any. */
static NOINLINE void
check(int wanted = PLUMB_STACK_OUTERMOST)
{
	static thread_local Sites ours, theirs;
	plumb_stack_registers here;
	plumb_stack_bounds bounds;
	struct plumb_stack_walk walk = {};
	walk.sites = ours.at;
	walk.max = MOST;
	theirs.count = 0;
	_Unwind_Backtrace(take, &theirs);
	plumb_stack_here(&here);
	if (plumb_stack_bounds_of(here.sp, &bounds)) {
		plumb_stack_walk(&here, &bounds, &walk);
		memoed_check(&here, &bounds);
	}
	ours.count = walk.count;
	if (ours.count && theirs.count)
		ours.at[0] = theirs.at[0] = 0;
	compare("call", &ours, &theirs, walk.end, wanted);
}

/* On some machines libgcc itself crashes at a step of its own: it is the measure, so that stack is left out. */
static sigjmp_buf libgcc_crashed;
static volatile bool in_libgcc;
static unsigned crashes;

static void
on_crash(int)
{
	if (!in_libgcc)
		signal(SIGSEGV, SIG_DFL);
	else
		siglongjmp(libgcc_crashed, 1);
}

static NOINLINE bool
backtrace(Sites *sites)
{
	struct sigaction action = {};
	action.sa_handler = on_crash;
	sigaction(SIGSEGV, &action, nullptr);
	sites->count = 0;
	if (sigsetjmp(libgcc_crashed, 1)) {
		in_libgcc = false;
		crashes++;
		return false;
	}
	in_libgcc = true;
	_Unwind_Backtrace(take, sites);
	in_libgcc = false;
	return true;
}

/* In a signal handler: from its context on, against libgcc's from behind the trampoline on. */
static NOINLINE void
check_interrupted(const void *context)
{
	static Sites ours, theirs;
	plumb_stack_registers there;
	static plumb_stack_bounds bounds;
	struct plumb_stack_walk walk = {};
	size_t skip = 0;
	walk.sites = ours.at;
	walk.max = MOST;
	walk.in_handler = true;
	plumb_stack_interrupted(context, &there);
	if (!plumb_stack_within(&bounds, there.sp))
		plumb_stack_bounds_of(there.sp, &bounds);
	plumb_stack_walk(&there, &bounds, &walk);
	if (!backtrace(&theirs))
		return;
	while (skip < theirs.count && theirs.at[skip] != there.pc)
		skip++;
	theirs.count -= skip;
	memmove(theirs.at, theirs.at + skip, theirs.count * sizeof theirs.at[0]);
	ours.count = walk.count;
	compare("interrupted", &ours, &theirs, walk.end, -1);
}

/* ---- shapes ---- */

static volatile int sink;

static NOINLINE int
recurse(int depth)
{
	if (!depth) {
		check();
		return 1;
	}
	int below = recurse(depth - 1);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static NOINLINE int
with_alloca(int bytes)
{
	char *memory = static_cast<char *>(alloca(static_cast<size_t>(bytes)));
	memset(memory, 1, static_cast<size_t>(bytes));
	check();
	return memory[bytes / 2];
}

static NOINLINE int
with_large_frame(int value)
{
	char memory[600000];
	memset(memory, value, sizeof memory);
	check();
	return memory[sink & 1023];
}

static NOINLINE int
variadic(int count, ...)
{
	va_list list;
	int sum = 0;
	va_start(list, count);
	for (int i = 0; i < count; i++)
		sum += va_arg(list, int);
	va_end(list);
	check();
	return sum;
}

/* Wants its locals aligned: the compiler aligns the frame anew and keeps the old end in a register. */
static NOINLINE int
realigned(int value, ...)
{
	alignas(64) volatile int local[32];
	va_list list;
	va_start(list, value);
	for (int i = 0; i < 32; i++)
		local[i] = value + i;
	char *more = static_cast<char *>(alloca(static_cast<size_t>(va_arg(list, int))));
	more[0] = 1;
	va_end(list);
	check();
	return local[7] + more[0];
}

static NOINLINE int
many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
	alignas(32) volatile int local[8] = { a, b, c, d, e, f, g, h };
	check();
	return local[i & 7] + j;
}

/*
 * Two frames of changing sizes that are as large together: what is called stands as deep each time, and the
 * frame between lies elsewhere. It is full of the return address of the other call of it, as stale
 * words might be, so that only its frame pointer tells where the true one is.
 */
static uintptr_t first_call;

static NOINLINE int
full_of_returns(int bytes)
{
	size_t words = static_cast<size_t>(bytes) / sizeof(uintptr_t);
	volatile uintptr_t *memory = static_cast<uintptr_t *>(alloca(static_cast<size_t>(bytes)));
	if (!first_call)
		first_call = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
	for (size_t i = 0; i < words; i++)
		memory[i] = first_call;
	check();
	return memory[words / 2] != 0;
}

static NOINLINE int
shifted(int bytes, bool second)
{
	volatile char *memory = static_cast<char *>(alloca(static_cast<size_t>(bytes)));
	memory[0] = 1;
	int result = second ? 3 * full_of_returns(640 - bytes) : full_of_returns(640 - bytes) + 5;
	return result + memory[0];
}

static NOINLINE int
stale_returns()
{
	int sum = 0;
	first_call = 0;
	for (int bytes = 512; bytes > 64; bytes -= 64)
		sum += shifted(bytes, bytes < 512);
	return sum;
}

/* The same depth, called from two places. */
static NOINLINE int
changed_callers()
{
	int sum = 0;
	for (int i = 0; i < 6; i++)
		sum += i % 2 ? many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, i)
		             : many_arguments(i, 2, 3, 4, 5, 6, 7, 8, 9, 9) * 2;
	return sum;
}

static int
compare_ints(const void *a, const void *b)
{
	check();
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static NOINLINE void
sorted()
{
	int numbers[] = { 4, 1, 3, 2 };
	qsort(numbers, 4, sizeof numbers[0], compare_ints);
}

struct Guard {
	~Guard()
	{
		check();
	}
};

static NOINLINE void
thrower(int depth)
{
	Guard guard;
	if (!depth)
		throw 7;
	thrower(depth - 1);
	sink++;
}

static NOINLINE int
exceptions()
{
	try {
		thrower(5);
	} catch (int seven) {
		check();
		return seven;
	}
	return 0;
}

template <typename F>
static NOINLINE void
twice(F function)
{
	function();
	function();
}

static void
shapes()
{
	sink += recurse(0) + recurse(30) + recurse(300);
	for (int bytes = 1; bytes < 100000; bytes = bytes * 3 + 1)
		sink += with_alloca(bytes);
	sink += with_large_frame(3);
	sink += variadic(3, 1, 2, 3) + variadic(9, 1, 2, 3, 4, 5, 6, 7, 8, 9);
	sink += realigned(5, 100) + many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	sink += stale_returns() + changed_callers();
	sorted();
	sink += exceptions();
	twice([] { twice([] { sink += realigned(1, 5000); }); });
}

static void *
on_thread(void *)
{
	shapes();
	return nullptr;
}

static void
case_calls()
{
	pthread_t thread;
	for (int i = 0; i < 2; i++)
		shapes();
	pthread_create(&thread, nullptr, on_thread, nullptr);
	pthread_join(thread, nullptr);
}

/* ---- signals ---- */

static void
handle(int, siginfo_t *, void *context)
{
	check();
	check_interrupted(context);
}

static void
on_signals(int signal, void (*handler)(int, siginfo_t *, void *))
{
	static char other[1 << 16];
	stack_t stack = {};
	struct sigaction action = {};
	stack.ss_sp = other;
	stack.ss_size = sizeof other;
	sigaltstack(&stack, nullptr);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(signal, &action, nullptr);
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR2, &action, nullptr);
}

static NOINLINE int
raiser(int depth)
{
	if (depth)
		return 1 + raiser(depth - 1) * sink;
	raise(SIGUSR1); /* on the other stack */
	raise(SIGUSR2); /* on this one */
	return 0;
}

static void
case_signals()
{
	on_signals(SIGUSR1, handle);
	sink += raiser(0) + raiser(20);
}

/* A trap after every instruction: prologues, epilogues, PLT stubs, and the loader that binds them. */
static volatile bool stepping;

static void
on_trap(int, siginfo_t *, void *context)
{
	ucontext_t *all = static_cast<ucontext_t *>(context);
	check_interrupted(all);
	if (!stepping)
		all->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
}

static NOINLINE int
work(int depth)
{
	struct timespec now;
	char text[64];
	double number;
	if (depth)
		return work(depth - 1) + 1;
	snprintf(text, sizeof text, "%d %s %f", sink, "text", 1.5);
	number = strtod(text, nullptr);
	clock_gettime(CLOCK_MONOTONIC, &now); /* in the vDSO */
	char *copy = strdup(text);
	number += static_cast<double>(strlen(copy));
	free(copy);
	try {
		throw number;
	} catch (double caught) {
		number = caught + 1;
	}
	return static_cast<int>(number);
}

static void
case_steps()
{
	on_signals(SIGTRAP, on_trap);
	stepping = true;
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
	sink += work(3);
	stepping = false;
}

/* ---- code made at run time, and libraries that come and go ---- */

static void
end_generated()
{
	check(PLUMB_STACK_GENERATED);
}

static void
case_generated()
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof code);
	reinterpret_cast<void (*)(void (*)())>(page)(end_generated);
	munmap(page, 4096);
}

#ifndef STATIC
static const char *library;

static void
called_back()
{
	check();
}

static void
case_library()
{
	for (int i = 0; i < 3; i++) {
		void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		auto *run = reinterpret_cast<void (*)(void (*)(), int)>(dlsym(handle, "run"));
		if (!run) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		for (int depth = 0; depth < 4; depth++)
			run(called_back, depth);
		uintptr_t address = reinterpret_cast<uintptr_t>(run);
		const plumb_stack_object *object = plumb_stack_object_of(address);
		if (!object || !strstr(object->path, "library.so") || object->path[0] != '/' ||
		    object->build_id_bytes != 20)
			differences++;
		uint32_t before = plumb_stack_generation();
		dlclose(handle);
		if (plumb_stack_object_of(address) || plumb_stack_generation() == before)
			differences++;
	}
}
#endif

/* A walk in a handler, of code that was loaded since: it ends there, and the next one after a refresh
 * goes through. */
static int handler_end;

static void
handle_new(int, siginfo_t *, void *context)
{
	static uintptr_t sites[64];
	plumb_stack_registers there;
	plumb_stack_bounds bounds;
	struct plumb_stack_walk walk = {};
	walk.sites = sites;
	walk.max = 64;
	walk.in_handler = true;
	plumb_stack_interrupted(context, &there);
	plumb_stack_bounds_of(there.sp, &bounds);
	plumb_stack_walk(&there, &bounds, &walk);
	handler_end = walk.end;
}

static void
raise_only()
{
	raise(SIGUSR1);
}

#ifndef STATIC
static void
case_new_library()
{
	on_signals(SIGUSR1, handle_new);
	raise_only();
	if (handler_end != PLUMB_STACK_OUTERMOST)
		differences++;
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	auto *run = reinterpret_cast<void (*)(void (*)(), int)>(dlsym(handle, "run"));
	run(raise_only, 1);
	if (handler_end != PLUMB_STACK_UNKNOWN)
		differences++;
	plumb_stack_refresh();
	run(raise_only, 1);
	if (handler_end != PLUMB_STACK_OUTERMOST)
		differences++;
	stacks += 3;
	dlclose(handle);
}
#endif

/* ---- stops, limits and damage ---- */

static void
expect(bool holds, const char *what)
{
	stacks++;
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		differences++;
	}
}

static NOINLINE size_t
walk_to(uintptr_t stop, size_t max, int end)
{
	static uintptr_t sites[MOST];
	plumb_stack_registers here;
	plumb_stack_bounds bounds;
	struct plumb_stack_walk walk = {};
	walk.sites = sites;
	walk.max = max;
	walk.stop = stop;
	plumb_stack_here(&here);
	plumb_stack_bounds_of(here.sp, &bounds);
	plumb_stack_walk(&here, &bounds, &walk);
	expect(static_cast<int>(walk.end) == end, "the end");
	return walk.count;
}

static NOINLINE size_t
between(uintptr_t stop, int depth)
{
	size_t found = depth ? between(stop, depth - 1) : walk_to(stop, MOST, PLUMB_STACK_STOP);
	sink++;
	return found;
}

static NOINLINE void
stops()
{
	volatile int local = 1;
	uintptr_t stop = reinterpret_cast<uintptr_t>(&local);
	expect(between(stop, 0) == 2, "walk_to and between");
	expect(between(stop, 7) == 9, "walk_to and eight times between");
	expect(walk_to(0, 2, PLUMB_STACK_TOO_DEEP) == 2, "two sites");
	expect(walk_to(16, MOST, PLUMB_STACK_OUTERMOST) > 3, "a stop that is not on the stack");
	sink += local;
}

static NOINLINE void
damaged()
{
	static uintptr_t sites[MOST];
	plumb_stack_registers here;
	plumb_stack_bounds bounds;
	struct plumb_stack_walk walk = {};
	walk.sites = sites;
	walk.max = MOST;
	plumb_stack_here(&here);
	plumb_stack_bounds_of(here.sp, &bounds);
	/* Wherever sp and fp point to, nothing outside of the stack is read. */
	for (uintptr_t sp = bounds.high - 4096; sp < bounds.high; sp += 8) {
		plumb_stack_registers wrong = here;
		wrong.sp = wrong.fp = sp;
		plumb_stack_walk(&wrong, &bounds, &walk);
		expect(walk.count >= 1, "the first site is there");
	}
	plumb_stack_registers wrong = here;
	wrong.sp = 8;
	plumb_stack_walk(&wrong, &bounds, &walk);
	expect(walk.end == PLUMB_STACK_INCONSISTENT && !walk.count, "no stack");
	wrong = here;
	wrong.pc = 0;
	plumb_stack_walk(&wrong, &bounds, &walk);
	expect(walk.end == PLUMB_STACK_OUTERMOST && !walk.count, "a null address");
	wrong.pc = 16;
	plumb_stack_walk(&wrong, &bounds, &walk);
	expect(walk.end == PLUMB_STACK_GENERATED && walk.count == 1, "no object");
}

static void
case_limits()
{
	stops();
	damaged();
}

/* ---- for gdb: prints the walk's sites, then stops ---- */

static NOINLINE void
print_and_stop()
{
	static uintptr_t sites[MOST];
	plumb_stack_registers here;
	plumb_stack_bounds bounds;
	struct plumb_stack_walk walk = {};
	walk.sites = sites;
	walk.max = MOST;
	plumb_stack_here(&here);
	plumb_stack_bounds_of(here.sp, &bounds);
	plumb_stack_walk(&here, &bounds, &walk);
	for (size_t i = 1; i < walk.count; i++) /* without this function's own */
		printf("site %lx\n", sites[i]);
	fflush(stdout);
	raise(SIGTRAP);
	stacks++;
}

static int
stop_in_qsort(const void *, const void *)
{
	print_and_stop();
	return 0;
}

static void
on_usr1(int, siginfo_t *, void *)
{
	int numbers[] = { 1, 2 };
	qsort(numbers, 2, sizeof numbers[0], stop_in_qsort);
}

static void
case_gdb()
{
	on_signals(SIGUSR1, on_usr1);
	sink += raiser(3);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)();
	} cases[] = {
		{ "calls", case_calls },     { "signals", case_signals },
		{ "steps", case_steps },     { "generated", case_generated },
		{ "limits", case_limits },   { "gdb", case_gdb },
#ifndef STATIC
		{ "library", case_library }, { "new_library", case_new_library },
#endif
	};
	if (argc < 2 || !plumb_stack_prepare())
		return 2;
#ifndef STATIC
	library = argc > 2 ? argv[2] : "";
#endif
	for (const auto &one : cases) {
		if (strcmp(one.name, argv[1]))
			continue;
		one.run();
		printf("%s: %lu stacks, deepest %lu, known %lu, crashes %u\n", one.name, stacks, deepest,
		       memoed_known, crashes);
		return differences || !stacks || memoed_wrong;
	}
	return 2;
}
