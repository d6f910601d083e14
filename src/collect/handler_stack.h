/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack that the sampler's handler works on. The program's own stack may be small: 8 KiB for
 * the alternate stack of a thread in a Rust program, a few KiB for a coroutine, without a guard
 * page below. So the handler uses at most PLUMB_HANDLER_FRAME bytes of it, beside what the kernel
 * pushes for any signal (AT_MINSIGSTKSZ). Then it switches to memory that plumb has for each
 * thread.
 */
#ifndef PLUMB_COLLECT_HANDLER_STACK_H
#define PLUMB_COLLECT_HANDLER_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define PLUMB_HANDLER_FRAME 512u
#define PLUMB_HANDLER_STACK ((size_t)64 << 10)

/* Memory for a handler's stack: PLUMB_HANDLER_STACK bytes, with a guard page at the bottom. The
 * caller may keep data at its end. NULL: no memory. */
void *plumb_handler_stack_map(void);

/* Calls FUNCTION with ARGUMENT on the stack that ends at TOP, a multiple of 16. */
__attribute__((visibility("hidden"))) void
plumb_handler_stack_call(void *top, void (*function)(const void *), const void *argument);

/* For a handler that runs on an alternate stack: are fewer than PLUMB_HANDLER_FRAME bytes of it
 * left? CONTEXT is the handler's third argument. The bounds of other stacks are unknown here. */
static inline bool
plumb_handler_stack_is_short(const ucontext_t *context)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	return here - low < context->uc_stack.ss_size && here - low < PLUMB_HANDLER_FRAME;
}

/* Is an alternate stack of SIZE bytes too small for any handler? Then our signal would make the
 * kernel kill the program. */
bool plumb_handler_stack_is_small(size_t size);

#endif
