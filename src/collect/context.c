/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program is: the stack of operators on a thread, with the Python frames between them.
 *
 * Python is walked at the enter of an operator and at GPU calls, and only as far as the operator
 * around it: frames outside that operator cannot have changed. So an operator called from C++
 * inside another one costs one comparison, and Python that runs inside an operator (a custom
 * autograd function, a hook, recomputation by checkpointing) stands where it belongs.
 *
 * Backward work hangs under the forward operator that caused it (forward.c). The engine wraps each
 * backward record in a frame of its own that does not say for whom it works: that frame gets its
 * place when the first thing happens inside it (engine_settle).
 */
#include "collect/context.h"

#include <ucontext.h>

#include "collect/clock.h"
#include "collect/event.h"
#include "collect/module.h"
#include "collect/monitor/python.h"
#include "collect/process.h"
#include "collect/shape.h"
#include "collect/span.h"
#include "collect/task.h"
#include "collect/wait.h"

/* ---- operators ---- */

/* A ticket that nobody holds, or NULL when so many operators are open. */
static struct plumb_ticket *
ticket_take(struct plumb_thread *thread)
{
	uint32_t index = thread->free_tickets;
	if (plumb_likely(index))
		thread->free_tickets = thread->tickets[index].next_free;
	else if (thread->tickets_made < PLUMB_OPERATORS_MAX)
		index = ++thread->tickets_made;
	return index ? &thread->tickets[index] : NULL;
}

static void
ticket_return(struct plumb_thread *thread, struct plumb_ticket *ticket)
{
	ticket->next_free = thread->free_tickets;
	thread->free_tickets = (uint32_t)(ticket - thread->tickets);
}

/* Takes the innermost operator off the stack, whose end has not come in order. Its ticket comes
 * back with its end, or now when that has come. FATE: what is counted when it has not. */
static void
drop_as(struct plumb_thread *thread, enum plumb_fate fate)
{
	struct plumb_operator_frame *frame = &thread->stack[thread->operators--];
	struct plumb_ticket *ticket = &thread->tickets[frame->ticket];
	uint32_t state = atomic_load_explicit(&ticket->abandoned, memory_order_acquire);
	if (state != PLUMB_TICKET_OPEN)
		ticket_return(thread, ticket);
	if (state == PLUMB_TICKET_ENDED)
		thread->ended_early--;
	else
		plumb_arena_tally(&thread->arena, frame->source, fate, 1);
}

static void
drop_innermost(struct plumb_thread *thread)
{
	drop_as(thread, PLUMB_FATE_ENDED_ELSEWHERE);
}

/* The innermost operator that is open; one whose end came on another thread is not. */
PLUMB_HOT_CODE static struct plumb_operator_frame *
find_innermost(struct plumb_thread *thread)
{
	while (thread->operators) {
		struct plumb_operator_frame *frame = &thread->stack[thread->operators];
		struct plumb_ticket *ticket = &thread->tickets[frame->ticket];
		if (plumb_likely(!atomic_load_explicit(&ticket->abandoned, memory_order_acquire)))
			return frame;
		drop_innermost(thread);
	}
	return NULL;
}

PLUMB_HOT_CODE plumb_id
plumb_context_light(struct plumb_thread *thread)
{
	struct plumb_operator_frame *outer = find_innermost(thread);
	uint32_t depth;
	return plumb_python_context(thread, outer, plumb_frame_inside(thread, outer), &depth,
	                            plumb_python_mark());
}

static uintptr_t
program_counter(const void *registers)
{
	const ucontext_t *context = registers;
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.pc;
#endif
}

/* An interpreter may have begun since: a program may embed one. */
static inline bool
walks_native(void)
{
	if (plumb_likely(!(plumb_layers & PLUMB_LAYER_NATIVE)))
		return false;
	if (plumb_layers & PLUMB_LAYER_NATIVE_ALONE && plumb_unlikely(plumb_python_runs()))
		plumb_process_choose_layers();
	return plumb_layers & PLUMB_LAYER_NATIVE;
}

plumb_id
plumb_context_interrupted(struct plumb_thread *thread, const void *registers)
{
	struct plumb_operator_frame *outer = find_innermost(thread);
	uint32_t depth;
	const void *top = plumb_layers & (PLUMB_LAYER_PYTHON | PLUMB_LAYER_MODULE)
	                          ? plumb_python_interrupted(program_counter(registers),
	                                                     outer ? outer->python_top : NULL)
	                          : NULL;
	/* A frame further out than the operator's own is all that could be proved. */
	if (outer && outer->python_top && !plumb_python_reaches(top, outer->python_top))
		top = outer->python_top;
	plumb_id here =
		plumb_python_context(thread, outer, plumb_frame_inside(thread, outer), &depth, top);
	if (walks_native() || !here)
		here = plumb_native_interrupted(thread, here, top, registers);
	return here;
}

PLUMB_HOT_CODE plumb_id
plumb_context_current(struct plumb_thread *thread)
{
	plumb_id here = plumb_context_light(thread);
	if (plumb_unlikely(walks_native()))
		here = plumb_native_context(thread, here);
	return here;
}

/* Where no Python says what calls a framework's operator (a program of libtorch), native frames
 * do. HERE: what is known so far. Operators inside others are where those are. */
static plumb_id
call_place(struct plumb_thread *thread, plumb_id here)
{
	for (uint32_t at = thread->operators; at; at--)
		if (!thread->stack[at].range)
			return here;
	return walks_native() ? plumb_native_caller(thread, here) : here;
}

/* ---- enter and exit ---- */

/* As plumb_child: a range mostly comes in the context where it came last. */
static inline plumb_id
range_child(struct plumb_thread *thread, plumb_id here, struct plumb_range_site *site,
            const struct plumb_key *key)
{
	if (plumb_likely(site->node && site->parent == here))
		return site->node;
	plumb_id node = plumb_child(thread, here, key);
	site->parent = here;
	site->node = node == PLUMB_LOST ? 0 : node;
	return node;
}

/* Fills in where FRAME stands: its Python, and its context under OUTER. */
static void
place_operator(struct plumb_thread *thread, struct plumb_operator_frame *outer,
               struct plumb_operator_frame *frame, const struct plumb_operator *op)
{
	struct plumb_key key = {
		.kind = op->range ? PLUMB_FRAME_RANGE : PLUMB_FRAME_OPERATOR,
		.name = op->id     ? op->id
		        : op->name ? plumb_name(thread, op->name)
		                   : 0,
	};
	/* An engine frame that has no place yet keeps its choice until it is needed. */
	const void *top = plumb_python_mark();
	bool undecided =
		outer && plumb_frame_is_open(outer) && op->backward && top == outer->python_top;
	plumb_id here = plumb_python_context(thread, outer,
	                                     undecided ? 0 : plumb_frame_inside(thread, outer),
	                                     &frame->python_depth, top);
	if (plumb_unlikely(plumb_layers & PLUMB_LAYER_NATIVE_ALONE) && !op->range && !op->backward)
		here = call_place(thread, here);
	frame->range = op->range;
	frame->module = thread->module;
	frame->loose = op->loose;
	frame->python_top = top;
	frame->python_floor = frame->python_depth;
	if (op->range) {
		frame->python_top = outer ? outer->python_top : NULL;
		frame->python_floor = outer ? outer->python_floor : 0;
	}
	frame->engine = op->engine;
	frame->stack = op->stack;
	frame->base = 0;
	frame->name = key.name;
	if (op->engine) {
		/* On an engine thread without Python of its own, the caller is all there is. */
		frame->base = here ? here : plumb_backward_caller(thread);
		frame->caller_known = here != 0;
		frame->node = 0;
	} else if (op->backward) {
		frame->node = plumb_backward_node(thread, outer, here, op, &key);
	} else if (op->site) {
		frame->node = range_child(thread, here, op->site, &key);
	} else {
		frame->node = plumb_operator_child(thread, here, &key);
	}
	if (!outer)
		atomic_store_explicit(&thread->last_context, here, memory_order_relaxed);
}

PLUMB_HOT_CODE struct plumb_ticket *
plumb_operator_enter(struct plumb_thread *thread, const struct plumb_operator *op)
{
	uint64_t now = plumb_ticks();
	enum plumb_source source = op->source ? op->source : PLUMB_SOURCE_OPERATOR;
	plumb_arena_tally(&thread->arena, source, PLUMB_FATE_RECEIVED, 1);
	struct plumb_operator_frame *outer = find_innermost(thread);
	struct plumb_ticket *ticket =
		thread->operators < PLUMB_OPERATORS_MAX ? ticket_take(thread) : NULL;
	if (plumb_unlikely(!ticket)) {
		plumb_arena_tally(&thread->arena, source, PLUMB_FATE_TOO_DEEP, 1);
		return NULL;
	}
	struct plumb_operator_frame *frame = &thread->stack[thread->operators + 1];
	place_operator(thread, outer, frame, op);
	if (op->sequence >= 0 && !op->backward && frame->node && frame->node != PLUMB_LOST)
		plumb_forward_put(thread, op->thread, op->sequence, frame->node);
	/* Brings in what the exit will add to; by then the operator has filled the caches with its
	 * own. */
	plumb_prefetch_values(thread, frame->node);
	if (plumb_unlikely(thread->native) && frame->node && frame->node != PLUMB_LOST)
		plumb_native_prefetch(thread, frame->node);
	ticket->thread = thread;
	ticket->depth = ++thread->operators;
	ticket->serial = frame->serial = ++thread->serial;
	atomic_store_explicit(&ticket->abandoned, 0, memory_order_relaxed);
	frame->ticket = (uint32_t)(ticket - thread->tickets);
	frame->epoch = thread->epoch;
	if (plumb_unlikely(thread->shapes))
		plumb_shape_enter(thread, frame, op->shape_bytes);
	frame->inner = frame->away = 0;
	frame->source = (uint8_t)source;
	frame->start = now;
	if (plumb_unlikely(plumb_waits))
		plumb_wait_enter(thread, frame);
	if (plumb_event_operators_wanted())
		plumb_event_operator_begin(thread, frame, op);
	return ticket;
}

/* Operators above DEPTH that did not end before it end with it. Where it is a range, and one above
 * it is still open, that one belongs to a task that cannot be told from the one that goes on. */
static inline void
drop_above(struct plumb_thread *thread, uint32_t depth)
{
	bool range = depth && thread->stack[depth].range;
	while (plumb_unlikely(thread->operators > depth)) {
		const struct plumb_operator_frame *frame = &thread->stack[thread->operators];
		bool open = !atomic_load_explicit(&thread->tickets[frame->ticket].abandoned,
		                                  memory_order_acquire);
		drop_as(thread, range && frame->range && open ? PLUMB_FATE_INTERLEAVED
		                                              : PLUMB_FATE_ENDED_ELSEWHERE);
	}
}

void
plumb_operators_drop(struct plumb_thread *thread)
{
	plumb_module_end(thread, 0);
	drop_above(thread, 0);
}

/* Of the time from FRAME's start to END (ticks), what its task did not give to others. */
static inline uint64_t
active_time(const struct plumb_operator_frame *frame, uint64_t end)
{
	uint64_t duration = plumb_ticks_between(frame->start, end);
	return duration > frame->away ? duration - frame->away : 0;
}

/* FRAME ended at END (ticks), and INNER ns of its time went by in operators that it called. EARLY:
 * those inside it are still open. */
PLUMB_HOT_CODE static inline void
observe_end(struct plumb_thread *thread, struct plumb_operator_frame *frame, uint64_t end,
            uint64_t inner, bool early)
{
	if (plumb_unlikely(frame->epoch != thread->epoch)) {
		/* Part of it was not recorded: what it called meanwhile would count as its own
		 * time. */
		plumb_arena_tally(&thread->arena, frame->source, PLUMB_FATE_PAUSED, 1);
		return;
	}
	plumb_id node = plumb_frame_node(thread, frame);
	uint64_t duration = plumb_ticks_between(frame->start, end);
	uint64_t self = duration > inner + frame->away ? duration - inner - frame->away : 0;
	if (plumb_operators_have_times() || frame->range) {
		plumb_observe(thread, node, PLUMB_METRIC_OP_TIME, thread->track, (int64_t)self);
		plumb_observe(thread, node, PLUMB_METRIC_OP_DURATION, thread->track,
		              (int64_t)duration);
	}
	plumb_arena_tally(&thread->arena, frame->source,
	                  node == PLUMB_LOST ? thread->arena.fate : PLUMB_FATE_ATTRIBUTED, 1);
	if (plumb_unlikely(plumb_waits))
		plumb_wait_exit(thread, frame, node, duration);
	/* A range has no shapes of its own; those of what is inside it are still on their stack. */
	if (plumb_unlikely(thread->shapes) && !early)
		plumb_shape_exit(thread, frame, node, self);
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_add(thread, node, thread->track, frame->start, end, 0);
}

/* A range ended before what is inside it: ranges of several domains, say, of which each closes its
 * own. What is inside stays where it is, and the frame stays below it. */
static void
end_early(struct plumb_thread *thread, uint32_t depth, struct plumb_ticket *ticket)
{
	struct plumb_operator_frame *frame = &thread->stack[depth];
	uint64_t now = plumb_ticks();
	uint64_t running = active_time(&thread->stack[depth + 1], now);
	observe_end(thread, frame, now, frame->inner + running, true);
	frame->cpu = 0; /* whoever is inside it waits for itself from now on */
	atomic_store_explicit(&ticket->abandoned, PLUMB_TICKET_ENDED, memory_order_relaxed);
	thread->ended_early++;
}

/* Takes frames that ended early off the stack now that nothing is inside them. To what called them
 * they lasted until NOW. */
static void
remove_ended(struct plumb_thread *thread, uint64_t now)
{
	while (thread->operators) {
		uint32_t depth = thread->operators;
		struct plumb_operator_frame *frame = &thread->stack[depth];
		struct plumb_ticket *ticket = &thread->tickets[frame->ticket];
		if (atomic_load_explicit(&ticket->abandoned, memory_order_relaxed) !=
		    PLUMB_TICKET_ENDED)
			break;
		if (depth > 1)
			thread->stack[depth - 1].inner += active_time(frame, now);
		drop_innermost(thread);
	}
	if (plumb_unlikely(plumb_waits))
		plumb_wait_settle(thread);
}

/* A range ends while its task waits for its turn: another one closed it, or the task was thrown
 * away. */
static __attribute__((noinline)) void
exit_parked(struct plumb_thread *thread, struct plumb_ticket *ticket)
{
	struct plumb_operator_frame frame, *parent;
	if (plumb_task_take(thread, ticket, &frame, &parent)) {
		uint64_t now = plumb_ticks();
		if (plumb_event_operators_wanted())
			plumb_event_operator_end(thread, &frame);
		observe_end(thread, &frame, now, frame.inner, true);
		if (parent)
			parent->inner += active_time(&frame, now);
	}
	ticket_return(thread, ticket);
}

PLUMB_HOT_CODE void
plumb_operator_exit(struct plumb_thread *thread, struct plumb_ticket *ticket)
{
	uint32_t depth = ticket->depth, serial = ticket->serial;
	if (plumb_unlikely(depth & PLUMB_TICKET_PARKED)) {
		exit_parked(thread, ticket);
		return;
	}
	struct plumb_operator_frame *frame = &thread->stack[depth];
	if (plumb_unlikely(depth > thread->operators || frame->serial != serial)) {
		ticket_return(thread, ticket);
		return; /* it ended with an operator around it, and that was counted */
	}
	if (plumb_event_operators_wanted())
		plumb_event_operator_end(thread, frame);
	if (plumb_unlikely(frame->loose && find_innermost(thread) != frame)) {
		end_early(thread, depth, ticket);
		return;
	}
	ticket_return(thread, ticket);
	drop_above(thread, depth);
	thread->operators = depth - 1;
	uint64_t now = plumb_ticks();
	observe_end(thread, frame, now, frame->inner, false);
	if (depth > 1)
		thread->stack[depth - 1].inner += active_time(frame, now);
	if (plumb_unlikely(thread->ended_early))
		remove_ended(thread, now);
}

void
plumb_operator_end_oddly(struct plumb_thread *thread, struct plumb_ticket *ticket)
{
	struct plumb_thread *own = ticket->thread;
	if (own->generation != plumb_generation) {
		/* It was open when this process was forked: its own time is its parent's to
		 * tell. */
		if (thread) {
			plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR,
			                  PLUMB_FATE_RECEIVED, 1);
			plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR,
			                  PLUMB_FATE_ENDED_ELSEWHERE, 1);
		}
	} else if (own != plumb_thread_get()) {
		/* A record that was moved to another thread: its own thread drops it. */
		atomic_store_explicit(&ticket->abandoned, 1, memory_order_release);
	} else if (!thread && (thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_EXIT))) {
		plumb_operator_exit(thread, ticket);
		plumb_leave(thread);
	}
}
