/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost Python frame of a thread that a signal interrupted anywhere.
 *
 * In 3.9, 3.10 and from 3.13 on, the thread state names a frame at every instruction. In 3.11 and
 * 3.12 it does not. The interpreter's evaluation function publishes a structure on the C stack (the
 * "cframe") before it sets anything in it, even the pointer to the cframe before. And 3.11 frees a
 * frame before it stops naming it. So in these versions a frame counts only with proof:
 *
 * - It lies in the thread's own stack of frames, below the top of that stack. So do the frames
 *   before it, down to the one by which this call of the evaluation function was entered.
 * - That one names, as the frame before it, the frame of the cframe before this one.
 *
 * Without proof plumb leaves the frame out and uses the frame of the cframe before: one call
 * further out. A frame of a generator lies elsewhere. plumb believes it if the signal came outside
 * the evaluation function, where 3.12 is consistent.
 *
 * Compilers order stores as they like, so in every version a pointer may be stale at any
 * instruction of the interpreter. So plumb returns a frame only if all that a walk from it would
 * read is there and is what it should be.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>

#include "collect/collector.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/python.h"
#include "collect/monitor/python_layout.h"
#include "collect/stack/stack.h"

/* Offsets of 3.11 and 3.12, from their headers; `limit == chunk + size` is checked at each use. */
struct shape {
	uint16_t cframe, chunk, top, limit;     /* thread state */
	uint16_t current, outer;                /* cframe */
	uint16_t previous, owner, entry, frame; /* frame; entry: is_entry (3.11); its least size */
};
static const struct shape shapes[] = {
	[11] = { 56, 296, 304, 312, 8, 16, 48, 69, 68, 80 },
	[12] = { 56, 232, 240, 248, 0, 8, 8, 70, PLUMB_PYTHON_ABSENT, 80 },
};
enum { CHUNK_PREVIOUS = 0, CHUNK_SIZE = 8, CHUNK_TOP = 16, CHUNK_DATA = 24 };
enum { FRAMES_MAX = 100000, CHUNKS_MAX = 1000 };
enum { OWNED_BY_THREAD = 0, NEAR_CFRAME = 1024 };

/* _PyEval_EvalFrameDefault, and the part that its compiler laid apart, which may be most of it. */
static uintptr_t eval_start, eval_end;
static uintptr_t cold_start, cold_end;
static bool sampling;
static int (*add_pending_call)(int (*call)(void *), void *argument);

/* Both the interpreter and the sampler may come first. */
static void
find_cold(void)
{
	if (sampling && eval_start && !cold_end)
		(void)plumb_stack_cold_part(eval_start, eval_end, &cold_start, &cold_end);
}

void
plumb_python_signal_prepare(void *handle)
{
	void *eval = plumb_real_dlsym(handle, "_PyEval_EvalFrameDefault");
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;
	if (!eval || !dladdr1(eval, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return;
	eval_start = (uintptr_t)eval;
	eval_end = eval_start + symbol->st_size;
	*(void **)&add_pending_call = plumb_real_dlsym(handle, "Py_AddPendingCall");
	find_cold();
}

void
plumb_python_signal_begin(void)
{
	sampling = true;
	find_cold();
}

static bool
is_evaluating(uintptr_t pc)
{
	return (pc >= eval_start && pc < eval_end) || (pc >= cold_start && pc < cold_end);
}

static int
attach_now(void *argument)
{
	(void)argument;
	plumb_framework_offer("");
	return 0;
}

/*
 * A program that loads no extension module never comes to the dlsym hook, where Python is met
 * otherwise. The interpreter is asked to call us at its next safe point. That takes a lock of its
 * own, which a thread that is in the middle of evaluating does not hold.
 */
static void
ask_to_attach(uintptr_t pc)
{
	static _Atomic bool asked;
	if (is_evaluating(pc) && add_pending_call && !atomic_exchange(&asked, true))
		add_pending_call(attach_now, NULL);
}

struct stack {
	const struct shape *shape;
	const char *state;
};

/* Whether FRAME lies in the part in use of the thread's stack of frames. */
static bool
on_stack(const struct stack *stack, const char *frame)
{
	const char *chunk = plumb_python_pointer(stack->state, stack->shape->chunk);
	const char *top = plumb_python_pointer(stack->state, stack->shape->top);
	const char *limit = plumb_python_pointer(stack->state, stack->shape->limit);
	if (!chunk || chunk + plumb_python_size(chunk, CHUNK_SIZE) != limit || top > limit ||
	    (uintptr_t)frame % 8)
		return false;
	for (int i = 0; chunk && i < CHUNKS_MAX; i++) {
		if (frame >= chunk + CHUNK_DATA && frame + stack->shape->frame <= top)
			return true;
		chunk = plumb_python_pointer(chunk, CHUNK_PREVIOUS);
		if (chunk)
			top = chunk + CHUNK_DATA + 8 * plumb_python_size(chunk, CHUNK_TOP);
	}
	return false;
}

/* Whether FRAME is the one by which CFRAME's call of the evaluation function was entered. */
static bool
is_entry(const struct stack *stack, const char *cframe, const char *frame)
{
	const char *outer = plumb_python_pointer(cframe, stack->shape->outer);
	const char *before = outer ? plumb_python_pointer(outer, stack->shape->current) : NULL;
	bool entry;
	if (stack->shape->entry != PLUMB_PYTHON_ABSENT) { /* 3.11: it says so itself */
		if (!on_stack(stack, frame))
			return false;
		entry = frame[stack->shape->entry] != 0;
	} else { /* 3.12: a frame of the interpreter's own, beside the cframe */
		ptrdiff_t distance = frame - cframe;
		entry = distance > -NEAR_CFRAME && distance < NEAR_CFRAME &&
		        !((uintptr_t)frame % 8) &&
		        (unsigned char)frame[stack->shape->owner] >= PLUMB_PYTHON_OWNER_INTERNAL;
	}
	return entry && plumb_python_pointer(frame, stack->shape->previous) == before;
}

/* Whether FRAME, which CFRAME names, is whole. */
static bool
is_whole(const struct stack *stack, const char *cframe, const char *frame)
{
	for (int i = 0; frame && i < FRAMES_MAX; i++) {
		if (is_entry(stack, cframe, frame))
			return true;
		if (!on_stack(stack, frame) || frame[stack->shape->owner] != OWNED_BY_THREAD)
			return false;
		frame = plumb_python_pointer(frame, stack->shape->previous);
	}
	return false;
}

/* 3.11 and 3.12: the innermost frame, or the one of the call around it. */
static const char *
by_cframe(const struct stack *stack, uintptr_t pc)
{
	const char *cframe = plumb_python_pointer(stack->state, stack->shape->cframe);
	const char *frame = plumb_python_pointer(cframe, stack->shape->current);
	const char *outer = plumb_python_pointer(cframe, stack->shape->outer);
	bool outside = !is_evaluating(pc);
	if (!outer) /* the thread state's own, in which no frame ever changes by halves */
		return frame;
	if (!plumb_python_readable(outer, stack->shape->current) ||
	    !plumb_python_readable(outer, stack->shape->outer)) /* it is stale */
		return NULL;
	if ((outside && stack->shape == &shapes[12]) || is_whole(stack, cframe, frame))
		return frame;
	return plumb_python_pointer(outer, stack->shape->current);
}

const void *
plumb_python_interrupted(uintptr_t pc, const void *stop)
{
	int minor;
	const void *top;
	struct stack stack = { .state = plumb_python_state(&minor) };
	if (plumb_unlikely(!plumb_python_ready()))
		ask_to_attach(pc);
	if (!stack.state)
		return NULL;
	if (minor != 11 && minor != 12) {
		top = plumb_python_top();
	} else {
		stack.shape = &shapes[minor];
		top = eval_start ? by_cframe(&stack, pc) : NULL;
	}
	return plumb_python_walkable(top, stop) ? top : NULL;
}
