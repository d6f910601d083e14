/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that plumb has for the signals of each sampled thread. It has two uses.
 *
 * - It is the thread's alternate signal stack while the program has none there. Some code keeps
 *   data below the stack pointer, or uses the stack pointer for something else (the matrix products
 *   that oneDNN writes at run time do). A signal on the thread's own stack would destroy such data.
 * - The handler works on it. The program's own alternate stack may be small: 8 KiB for a thread in
 *   a Rust program, without a guard page below. So there the handler uses at most
 *   PLUMB_HANDLER_FRAME bytes, beside what the kernel pushes for any signal (AT_MINSIGSTKSZ), and
 *   then switches to plumb's memory.
 *
 * The program's own handlers with SA_ONSTACK run on it too, where they had the thread's whole stack
 * without plumb. So it is large. Only what is used takes memory. It stays below 2 MiB, the size of
 * a huge page: otherwise the first use could take a whole one, in each thread.
 */
#ifndef PLUMB_COLLECT_HANDLER_STACK_H
#define PLUMB_COLLECT_HANDLER_STACK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define PLUMB_HANDLER_FRAME 512u
#define PLUMB_HANDLER_STACK ((size_t)1 << 20)
#define PLUMB_HANDLER_ROOM ((size_t)64 << 10) /* for the handler's work */

/* PLUMB_HANDLER_STACK bytes with a guard page at the bottom. The caller may keep data at its end.
 * NULL: no memory. */
void *plumb_handler_stack_map(void);

/* Is ADDRESS in that MEMORY? */
static inline bool
plumb_handler_stack_has(const void *memory, const void *address)
{
	return (uintptr_t)address - (uintptr_t)memory < PLUMB_HANDLER_STACK;
}

/* Makes MEMORY up to TOP the calling thread's alternate stack if the thread has none. Returns the
 * alternate stack that it has then. */
stack_t plumb_handler_stack_give(void *memory, void *top);
/* Ends that. False: the caller runs on it, so the memory has to stay. */
bool plumb_handler_stack_take(void *memory);

/* Calls FUNCTION with ARGUMENT on the stack that ends at TOP, a multiple of 16. */
__attribute__((visibility("hidden"))) void
plumb_handler_stack_call(void *top, void (*function)(const void *), const void *argument);

/* For a handler that runs on an alternate stack: are fewer than ROOM bytes of it left? CONTEXT is
 * the handler's third argument. The bounds of other stacks are unknown here. */
static inline bool
plumb_handler_stack_is_short(const ucontext_t *context, size_t room)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	return here - low < context->uc_stack.ss_size && here - low < room;
}

/* Is the alternate STACK too small for any handler? Then our signal would make the kernel kill the
 * program. */
bool plumb_handler_stack_is_small(const stack_t *stack);

#endif
