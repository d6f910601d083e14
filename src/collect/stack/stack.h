/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native stack of the calling thread, by the unwind tables that every ELF object carries for
 * C++ exceptions (.eh_frame; they are loaded, so stripped libraries have them). No frame pointers,
 * no heap, no lock and nothing of libgcc or libunwind.
 *
 *	struct plumb_stack_registers here;
 *	struct plumb_stack_bounds bounds;
 *	uintptr_t sites[64];
 *	struct plumb_stack_walk walk = { .sites = sites, .max = 64, .stop = address };
 *
 *	plumb_stack_prepare();                      // once, outside of signal handlers
 *	plumb_stack_here(&here);                    // in the very function that walks
 *	if (plumb_stack_bounds_of(here.sp, &bounds))
 *		plumb_stack_walk(&here, &bounds, &walk);   // sites[0 … walk.count), innermost first
 *
 * In a signal handler: plumb_stack_interrupted(context, &registers) and .in_handler = true. Walking
 * then takes no lock, calls no function of libc and never looks at the list of loaded objects
 * again: an object that was loaded since ends the walk with PLUMB_STACK_UNKNOWN, leaves a note, and
 * is known once plumb_stack_refresh() has run outside.
 *
 * How a frame is left is decoded when its call site is first seen (a binary search in the object's
 * own index, a microsecond) and then kept, shared by all threads: see walk.c. Nothing is built up
 * front.
 */
#ifndef PLUMB_COLLECT_STACK_STACK_H
#define PLUMB_COLLECT_STACK_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plumb_stack_registers {
	uintptr_t pc, sp, fp;
	uintptr_t link;     /* AArch64: x30 */
	uintptr_t kept[5];  /* x86-64: rbx, r12 … r15, which a few frames are found by */
	const void *others; /* all registers, as a ucontext_t; NULL: only those above are known */
};

/* The memory that a stack lies in: nothing outside is read. */
struct plumb_stack_bounds {
	uintptr_t low, high;
};

enum plumb_stack_end {
	PLUMB_STACK_STOP,         /* the next frame holds the address `stop` */
	PLUMB_STACK_OUTERMOST,    /* the thread begins there */
	PLUMB_STACK_NO_TABLE,     /* the last site lies in an object without a rule for it */
	PLUMB_STACK_GENERATED,    /* the last site lies in no object: code made at run time */
	PLUMB_STACK_INCONSISTENT, /* the tables do not fit what is on the stack */
	PLUMB_STACK_TOO_DEEP,     /* more frames than `max`; the innermost were kept */
	PLUMB_STACK_UNKNOWN,      /* the last site may lie in an object that was loaded just now */
};

/*
 * What a walk went by, as seen from the stack pointer where it began: a later walk that finds all
 * of it again goes the same way, so that it need not be gone.
 *
 * A walk is a chain of steps. The first instruction chooses a row of the unwind tables, and the row
 * says where the frame ends: at a distance from the stack pointer, or from a pointer to the stack,
 * which is the frame pointer or lies on the stack. From there it says where the return address is,
 * which chooses the next row. So when the first instruction is the same, and each step finds the
 * same return address and a pointer that leads as far from the beginning, each step is the same,
 * one after the other: what is compared are the very words that the walk would read, at the places
 * where it would read them, and not words somewhere on the stack that look alike. Words that a walk
 * reads and never goes by (the saved frame pointers of callers that do not use them) do not count.
 *
 * Rows stay while plumb_stack_generation() does. Steps that go by anything else (a signal's frame,
 * any other register) leave no trail.
 */
enum { PLUMB_STACK_TRAIL = 160, PLUMB_STACK_REGISTER = UINT16_MAX };
struct plumb_stack_trail {
	uintptr_t pc;             /* where the walk began */
	uint32_t reach;           /* bytes from there to the end of what it looked at */
	uint16_t calls, pointers; /* words; 0 calls: there is no trail */
	/* Return addresses, then pointers as distances from the beginning; each with its place, in
	 * words from the beginning, or PLUMB_STACK_REGISTER: the frame pointer there. */
	uint16_t at[PLUMB_STACK_TRAIL];
	uintptr_t word[PLUMB_STACK_TRAIL];
};

struct plumb_stack_walk {
	/*
	 * Call sites, innermost first: the last byte of the calling instruction (return address -
	 * 1), so that it lies in the function and on the line that called. Of a frame that a signal
	 * interrupted, and of the first frame, it is the instruction itself.
	 */
	uintptr_t *sites;
	size_t max;
	uintptr_t stop;  /* an address on the stack: the frame that holds it is left out; 0 none */
	bool in_handler; /* the walk runs in a signal handler */
	bool skip_internal; /* leave out plumb's, CUPTI's and the driver's innermost frames */
	struct plumb_stack_trail *trail; /* NULL: none is wanted */
	/* Of a stack that the last walk changed to: kept, because looking it up is slow. NULL:
	 * walks stay on their stack. */
	struct plumb_stack_bounds *other;
	/* Set by the walk: */
	size_t count;
	enum plumb_stack_end end;
};

/* Gets ready, outside of signal handlers. False: no memory, or no loaded object has tables; then
 * all walks end at once. Cheap when it was called before. */
bool plumb_stack_prepare(void);

void plumb_stack_walk(const struct plumb_stack_registers *from,
                      const struct plumb_stack_bounds *bounds, struct plumb_stack_walk *walk);

/* The registers of a calling function, which has to stay on the stack during the walk. */
static inline __attribute__((always_inline)) void
plumb_stack_here(struct plumb_stack_registers *registers)
{
	*registers = (struct plumb_stack_registers){ 0 };
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
	                 : "=r"(registers->pc), "=r"(registers->sp), "=r"(registers->fp));
	__asm__ volatile("mov %%rbx, 0(%0)\n\tmov %%r12, 8(%0)\n\tmov %%r13, 16(%0)\n\t"
	                 "mov %%r14, 24(%0)\n\tmov %%r15, 32(%0)"
	                 :
	                 : "r"(registers->kept)
	                 : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
	                 : "=r"(registers->pc), "=r"(registers->sp), "=r"(registers->fp),
	                   "=r"(registers->link));
#endif
}

/* The registers of what a signal interrupted, from a handler's third argument. */
void plumb_stack_interrupted(const void *context, struct plumb_stack_registers *registers);

/* Finds the stack that SP lies in. Reads /proc/self/maps (from 50 µs to milliseconds, by system
 * calls that a handler may make), so keep the result: it holds while SP is within. False:
 * unreadable. */
bool plumb_stack_bounds_of(uintptr_t sp, struct plumb_stack_bounds *bounds);

static inline bool
plumb_stack_within(const struct plumb_stack_bounds *bounds, uintptr_t sp)
{
	return sp >= bounds->low && sp < bounds->high;
}

/* AArch64: a return address may be signed in its upper bits; the hint is a no-op elsewhere. */
static inline uintptr_t
plumb_stack_plain(uintptr_t address)
{
#if defined(__aarch64__)
	register uintptr_t x30 __asm__("x30") = address;
	__asm__("hint #7" : "+r"(x30));
	return x30;
#else
	return address;
#endif
}

/* The extent of the function whose code holds ADDRESS, as the tables have it; of objects that are
 * known already. */
bool plumb_stack_function(uintptr_t address, uintptr_t *start, uintptr_t *end);

/* The part of the function from START to END that its compiler laid apart, of objects that are
 * known already. False: there is none. Reads the whole function. */
bool
plumb_stack_cold_part(uintptr_t start, uintptr_t end, uintptr_t *cold_start, uintptr_t *cold_end);

/* ---- loaded objects ---- */

/* The program, a library or the vDSO. Never freed or moved, also when it is unloaded. */
struct plumb_stack_object {
	uintptr_t start, end, bias;
	const char *path; /* absolute where there is a file */
	uint32_t build_id_bytes;
	uint8_t build_id[32];
	_Atomic uint64_t record; /* for the caller's use, at first 0 */
};

/* The object that ADDRESS lies in, as of the last refresh; NULL none. Safe in signal handlers. */
struct plumb_stack_object *plumb_stack_object_of(uintptr_t address);

/* Does ADDRESS lie in one of PyTorch's own libraries? As of the last refresh. */
bool plumb_stack_is_framework(uintptr_t address);

/* Changes when an object was unloaded: what was kept about addresses may hold no more. */
uint32_t plumb_stack_generation(void);

/* A walk in a handler met code of no known object. */
extern _Atomic bool plumb_stack_stale;

/* Looks for objects that were loaded and unloaded. Outside of signal handlers. */
void plumb_stack_refresh(void);

/* In a forked child: no other thread is loading, and each object's `record` is 0 again. */
void plumb_stack_forked(void);

#endif
