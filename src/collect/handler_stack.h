/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack that the sampler's handler works on. The program's own may be small: 8 KiB as the
 * alternate stack of each thread of a Rust program, a few KiB as a coroutine's, without a guard
 * page below. So the handler takes PLUMB_HANDLER_FRAME bytes there at most, beside what the kernel
 * pushes for any signal (AT_MINSIGSTKSZ), and goes over to memory that plumb has for each thread.
 */
#ifndef PLUMB_COLLECT_HANDLER_STACK_H
#define PLUMB_COLLECT_HANDLER_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define PLUMB_HANDLER_FRAME 512u
#define PLUMB_HANDLER_STACK ((size_t)64 << 10)

/* Memory for a handler's stack: PLUMB_HANDLER_STACK bytes, the lowest page guarded; what stands at
 * its end is the caller's. NULL: no memory. */
void *plumb_handler_stack_map(void);

/* Calls FUNCTION with ARGUMENT on the stack that ends at TOP, a multiple of 16. */
__attribute__((visibility("hidden"))) void
plumb_handler_stack_call(void *top, void (*function)(const void *), const void *argument);

/* In a handler: are there fewer than PLUMB_HANDLER_FRAME bytes left of the alternate stack that it
 * runs on? CONTEXT is its third argument. The bounds of any other stack are not known here. */
static inline bool
plumb_handler_stack_is_short(const ucontext_t *context)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	return here - low < context->uc_stack.ss_size && here - low < PLUMB_HANDLER_FRAME;
}

/* Is an alternate stack of SIZE bytes too small for any handler, so that the kernel would kill the
 * program when our signal came? */
bool plumb_handler_stack_is_small(size_t size);

#endif
