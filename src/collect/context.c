/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program is: the stack of operators on a thread, with the Python frames between them.
 *
 * Python is walked at the enter of an operator and at GPU calls, and only as far as the operator
 * around it: frames outside that operator cannot have changed. So an operator called from C++ inside
 * another one costs one comparison, and Python that runs inside an operator (a custom autograd
 * function, a hook, recomputation by checkpointing) stands where it belongs.
 *
 * Backward work hangs under the forward operator that caused it (forward.c). The engine wraps each
 * backward record in a frame of its own that does not say for whom it works: that frame gets its place
 * when the first thing happens inside it (engine_settle).
 */
#include "collect/clock.h"
#include "collect/monitor/framework.h"
#include "collect/thread.h"

/* ---- Python ---- */

static bool
same_identity(const struct plumb_python_identity *a, const struct plumb_python_identity *b)
{
	return a->file == b->file && a->name == b->name && a->lines == b->lines &&
	       a->first_line == b->first_line && a->freed == b->freed;
}

static bool
same_frame(const struct plumb_python_entry *entry, const struct plumb_python_frame *frame)
{
	return entry->code == frame->code && entry->lasti == frame->lasti;
}

/* Makes text of a frame and keeps it in LOCATION. Microseconds: the line table is decoded. */
static void
locate(struct plumb_thread *thread, struct plumb_python_location *location,
       const struct plumb_python_frame *frame, const struct plumb_python_identity *identity)
{
	struct plumb_python_symbol *symbol = thread->symbol;
	plumb_python_symbolise(frame, symbol);
	*location = (struct plumb_python_location){
		.code = frame->code,
		.lasti = frame->lasti,
		.identity = *identity,
		.line = symbol->line,
		.name = plumb_intern(thread, symbol->function, strlen(symbol->function)),
		.file = plumb_intern(thread, symbol->file, strlen(symbol->file)),
	};
}

/*
 * The text of a frame as a key. A set of ways for each hash: were there one, two frames that share it
 * and alternate would be decoded again at every turn. Newest first, the oldest gives way.
 */
static void
python_key(struct plumb_thread *thread, const struct plumb_python_frame *frame,
           const struct plumb_python_identity *identity, struct plumb_key *key)
{
	uint64_t hash = plumb_mix((uint64_t)(uintptr_t)frame->code, (uint64_t)frame->lasti);
	struct plumb_python_location *set =
		&thread->locations[hash % PLUMB_LOCATION_SETS * PLUMB_LOCATION_WAYS];
	struct plumb_python_location *location = set;
	while (location < set + PLUMB_LOCATION_WAYS &&
	       !(location->code == frame->code && location->lasti == frame->lasti &&
	         same_identity(&location->identity, identity)))
		location++;
	if (plumb_unlikely(location == set + PLUMB_LOCATION_WAYS)) {
		memmove(set + 1, set, (PLUMB_LOCATION_WAYS - 1) * sizeof *set);
		location = set;
		locate(thread, location, frame, identity);
	}
	*key = (struct plumb_key){
		.kind = PLUMB_FRAME_PYTHON,
		.name = location->name,
		.file = location->file,
		.line = location->line,
	};
}

/* The context of FRAME, AT deep and new or moved on, under PARENT. */
static plumb_id
python_step(struct plumb_thread *thread, uint32_t at, const struct plumb_python_frame *frame,
            plumb_id parent, uint8_t flags, uint32_t generation)
{
	struct plumb_python_entry *entry = &thread->python[at];
	struct plumb_python_identity identity;
	struct plumb_key key;
	plumb_python_identify(frame->code, &identity);
	if (same_frame(entry, frame) && entry->parent == parent &&
	    same_identity(&thread->identities[at], &identity)) {
		entry->generation = generation; /* other code was freed */
		return entry->node;
	}
	python_key(thread, frame, &identity, &key);
	key.flags = flags;
	thread->identities[at] = identity;
	*entry = (struct plumb_python_entry){
		.code = frame->code,
		.lasti = frame->lasti,
		.parent = parent,
		.node = plumb_child(thread, parent, &key),
		.generation = generation,
	};
	return entry->node;
}

/*
 * The Python frames inside OUTER (NULL: all there are) as a context under BASE. *depth gets the number
 * of frames that are outside whatever comes next, *top the innermost frame.
 *
 * An operator is a call: the frame that made it stays where it is, and walks stop there. A range is
 * opened by a call that returns (`with record_function(…)`), so there is no frame to stop at. Its
 * frames are told by comparing with the stack as it was when it opened: what is still the same is
 * outside, and the first frame that moved on, the one with the `with` statement, is inside.
 */
static plumb_id
python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer, plumb_id base,
               uint32_t *depth, const void **top)
{
	const void *stop = outer ? outer->python_top : NULL;
	uint32_t floor = outer ? outer->python_floor : 0;
	uint32_t outside = outer ? outer->python_depth : 0;
	*depth = outside;
	*top = plumb_python_top();
	if (!*top || (*top == stop && !outer->range))
		return base;

	bool truncated;
	uint32_t frames = (uint32_t)plumb_python_walk(*top, stop, thread->walk,
	                                              PLUMB_PYTHON_MAX - floor, &truncated);
	if (outer && outer->range) {
		uint32_t same = floor;
		while (same < outside && same < floor + frames &&
		       same_frame(&thread->python[same], &thread->walk[floor + frames - 1 - same]))
			same++;
		outside = outer->python_depth = same;
	}
	*depth = floor + frames;
	plumb_id parent = base;
	uint32_t generation = atomic_load_explicit(&plumb_python_codes_freed, memory_order_relaxed);
	for (uint32_t at = outside; at < floor + frames; at++) {
		const struct plumb_python_frame *frame = &thread->walk[floor + frames - 1 - at];
		const struct plumb_python_entry *entry = &thread->python[at];
		if (plumb_likely(same_frame(entry, frame) && entry->parent == parent &&
		                 entry->generation == generation && generation))
			parent = entry->node;
		else
			parent = python_step(thread, at, frame, parent,
			                     truncated && at == outside ? PLUMB_CONTEXT_TRUNCATED
			                                                : 0,
			                     generation);
	}
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_PYTHON, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_PYTHON,
	                  parent == PLUMB_LOST ? thread->arena.fate
	                  : truncated          ? PLUMB_FATE_TOO_DEEP
	                                       : PLUMB_FATE_ATTRIBUTED,
	                  1);
	return parent;
}

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

/* The innermost operator that is open; one whose end came on another thread is not. */
static struct plumb_operator_frame *
innermost(struct plumb_thread *thread)
{
	while (thread->operators) {
		struct plumb_operator_frame *frame = &thread->stack[thread->operators];
		struct plumb_ticket *ticket = &thread->tickets[frame->ticket];
		if (plumb_likely(!atomic_load_explicit(&ticket->abandoned, memory_order_acquire)))
			return frame;
		thread->operators--;
		ticket_return(thread, ticket);
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_ENDED_ELSEWHERE,
		                  1);
	}
	return NULL;
}

/* Gives an engine frame its place: under FORWARD, or for 0 where backward was called. */
static void
engine_settle(struct plumb_thread *thread, struct plumb_operator_frame *engine, plumb_id forward)
{
	struct plumb_key key = {
		.kind = PLUMB_FRAME_OPERATOR,
		.name = engine->name,
		.flags = forward ? PLUMB_CONTEXT_BACKWARD
		                 : PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION,
	};
	engine->node = plumb_child(thread, forward ? forward : engine->base, &key);
}

/* The context of an operator frame; an engine frame that never learnt of a forward operator gets its
 * place now. */
static plumb_id
node_of(struct plumb_thread *thread, struct plumb_operator_frame *frame)
{
	if (!frame->node)
		engine_settle(thread, frame, 0);
	return frame->node;
}

/* The context of the operator around, 0 for none, as a parent of what happens inside it now. What an
 * engine frame does before it names its forward operator is a hook on its gradients. */
static plumb_id
inside_of(struct plumb_thread *thread, struct plumb_operator_frame *outer)
{
	if (!outer)
		return 0;
	if (plumb_unlikely(!outer->node)) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_RECEIVED, 1);
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_HOOK, 1);
	}
	return node_of(thread, outer);
}

plumb_id
plumb_context_current(struct plumb_thread *thread)
{
	struct plumb_operator_frame *outer = innermost(thread);
	uint32_t depth;
	const void *top;
	return python_context(thread, outer, inside_of(thread, outer), &depth, &top);
}

/* ---- backward ---- */

/* Newest caller of backward in the process: for engine threads that met no forward operator yet. */
static _Atomic uint32_t newest_backward;

void
plumb_backward_begin(struct plumb_thread *thread)
{
	plumb_id context = plumb_context_current(thread);
	atomic_store_explicit(&thread->backward_context, context, memory_order_relaxed);
	atomic_store_explicit(&newest_backward, context, memory_order_relaxed);
}

/* Who called the backward pass that the thread runs: certain when it was this thread, which has the
 * caller on its stack, else what it learnt last. */
static plumb_id
caller_of_backward(struct plumb_thread *thread)
{
	for (uint32_t at = thread->operators; at; at--)
		if (thread->stack[at].engine && thread->stack[at].caller_known)
			return thread->stack[at].base;
	return thread->caller ? thread->caller
	                      : atomic_load_explicit(&newest_backward, memory_order_relaxed);
}

/* Learns from the thread that ran the forward pass who called this backward pass. */
static void
learn_caller(struct plumb_thread *thread, struct plumb_thread *forward_owner)
{
	plumb_id caller = 0;
	if (forward_owner)
		caller = atomic_load_explicit(&forward_owner->backward_context,
		                              memory_order_relaxed);
	if (!caller)
		caller = atomic_load_explicit(&newest_backward, memory_order_relaxed);
	if (!caller && forward_owner)
		caller = atomic_load_explicit(&forward_owner->last_context, memory_order_relaxed);
	if (caller)
		thread->caller = caller;
}

/* Remembers who called the backward pass that NODE belongs to, each caller once. */
static void
note_origin(struct plumb_thread *thread, plumb_id node)
{
	plumb_id caller = caller_of_backward(thread);
	if (!caller || caller == PLUMB_LOST || node == PLUMB_LOST)
		return;
	uint64_t mixed = plumb_mix(node, caller);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), at = hash, id;
	while ((id = plumb_table_next(&thread->origins, hash, &at))) {
		const struct plumb_record_origin *known = plumb_region_at(thread->arena.region, id);
		if (known->node == node && known->origin == caller)
			return;
	}
	struct plumb_record_origin *origin =
		plumb_arena_append(&thread->arena, PLUMB_RECORD_ORIGIN, sizeof *origin);
	if (!origin) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_REGION, thread->arena.fate, 1);
		return;
	}
	origin->node = node;
	origin->origin = caller;
	origin->kind = PLUMB_ORIGIN_BACKWARD_CALL;
	plumb_arena_commit(&thread->arena, origin);
	plumb_table_add(&thread->origins, hash, plumb_region_id(thread->arena.region, origin));
}

/* The context of a backward record. OUTER is what it is called from on this thread. */
static plumb_id
backward_node(struct plumb_thread *thread, struct plumb_operator_frame *outer, plumb_id here,
              const struct plumb_operator *op, struct plumb_key *key)
{
	bool by_engine = outer && outer->engine;
	key->flags = PLUMB_CONTEXT_BACKWARD;
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_RECEIVED, 1);
	if (op->sequence < 0) {
		/* Gradient accumulation: no forward operator made it. */
		key->flags |= PLUMB_CONTEXT_ACCUMULATION;
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_ACCUMULATION,
		                  1);
		return plumb_child(thread, by_engine ? node_of(thread, outer) : here, key);
	}
	struct plumb_thread *owner;
	plumb_id forward = plumb_forward_get(op->forward_thread, op->sequence, &owner);
	if (!by_engine || !outer->caller_known)
		learn_caller(thread, owner);
	if (!forward) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_FORWARD_MISS,
		                  1);
		return plumb_child(thread, by_engine ? node_of(thread, outer) : here, key);
	}
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_FORWARD, 1);
	plumb_id parent = forward;
	if (by_engine) {
		engine_settle(thread, outer, forward);
		parent = outer->node;
	}
	plumb_id node = plumb_child(thread, parent, key);
	note_origin(thread, by_engine ? outer->node : node);
	return node;
}

/* ---- enter and exit ---- */

/* Brings in what the exit will add to; by then the operator has filled the caches with its own. */
static inline void
prefetch_values(struct plumb_thread *thread, plumb_id node)
{
	if (!node || node == PLUMB_LOST)
		return;
	const struct plumb_record_node *record = plumb_region_at(thread->arena.region, node);
	const char *value = plumb_region_at(thread->arena.region, record->first_value);
	__builtin_prefetch(value, 1);
	__builtin_prefetch(value + 64, 1);
}

/* Fills in where FRAME stands: its Python, and its context under OUTER. */
static void
place_operator(struct plumb_thread *thread, struct plumb_operator_frame *outer,
               struct plumb_operator_frame *frame, const struct plumb_operator *op)
{
	struct plumb_key key = {
		.kind = op->range ? PLUMB_FRAME_RANGE : PLUMB_FRAME_OPERATOR,
		.name = plumb_name(thread, op->name),
	};
	/* An engine frame that has no place yet keeps its choice until it is needed. */
	bool undecided =
		outer && !outer->node && op->backward && plumb_python_top() == outer->python_top;
	const void *top;
	plumb_id here = python_context(thread, outer, undecided ? 0 : inside_of(thread, outer),
	                               &frame->python_depth, &top);
	frame->range = op->range;
	frame->python_top = top;
	frame->python_floor = frame->python_depth;
	if (op->range) {
		frame->python_top = outer ? outer->python_top : NULL;
		frame->python_floor = outer ? outer->python_floor : 0;
	}
	frame->engine = op->engine;
	frame->base = 0;
	frame->name = key.name;
	if (op->engine) {
		/* On an engine thread without Python of its own, the caller is all there is. */
		frame->base = here ? here : caller_of_backward(thread);
		frame->caller_known = here != 0;
		frame->node = 0;
	} else if (op->backward) {
		frame->node = backward_node(thread, outer, here, op, &key);
	} else {
		frame->node = plumb_child(thread, here, &key);
	}
	if (!outer)
		atomic_store_explicit(&thread->last_context, here, memory_order_relaxed);
}

struct plumb_ticket *
plumb_operator_enter(struct plumb_thread *thread, const struct plumb_operator *op)
{
	uint64_t now = plumb_ticks();
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_RECEIVED, 1);
	struct plumb_operator_frame *outer = innermost(thread);
	struct plumb_ticket *ticket =
		thread->operators < PLUMB_OPERATORS_MAX ? ticket_take(thread) : NULL;
	if (plumb_unlikely(!ticket)) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_TOO_DEEP, 1);
		return NULL;
	}
	struct plumb_operator_frame *frame = &thread->stack[thread->operators + 1];
	place_operator(thread, outer, frame, op);
	if (op->sequence >= 0 && !op->backward && frame->node && frame->node != PLUMB_LOST)
		plumb_forward_put(thread, op->thread, op->sequence, frame->node);
	prefetch_values(thread, frame->node);
	ticket->thread = thread;
	ticket->depth = ++thread->operators;
	ticket->serial = frame->serial = ++thread->serial;
	atomic_store_explicit(&ticket->abandoned, 0, memory_order_relaxed);
	frame->ticket = (uint32_t)(ticket - thread->tickets);
	frame->inner = 0;
	frame->start = now;
	return ticket;
}

/* Operators above DEPTH that did not end before it end with it. Their tickets come back when their
 * own ends come. */
static void
drop_above(struct plumb_thread *thread, uint32_t depth)
{
	if (plumb_unlikely(depth < thread->operators))
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_ENDED_ELSEWHERE,
		                  thread->operators - depth);
	thread->operators = depth;
}

void
plumb_operators_drop(struct plumb_thread *thread)
{
	drop_above(thread, 0);
}

void
plumb_operator_exit(struct plumb_thread *thread, struct plumb_ticket *ticket)
{
	uint32_t depth = ticket->depth, serial = ticket->serial;
	struct plumb_operator_frame *frame = &thread->stack[depth];
	ticket_return(thread, ticket);
	if (plumb_unlikely(depth > thread->operators || frame->serial != serial))
		return; /* it ended with an operator around it, and that was counted */
	drop_above(thread, depth);
	thread->operators = depth - 1;
	plumb_id node = node_of(thread, frame);
	uint64_t duration = plumb_ticks_between(frame->start, plumb_ticks());
	uint64_t self = duration > frame->inner ? duration - frame->inner : 0;
	plumb_observe(thread, node, PLUMB_METRIC_OP_TIME, thread->track, (int64_t)self);
	plumb_observe(thread, node, PLUMB_METRIC_OP_DURATION, thread->track, (int64_t)duration);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_OPERATOR,
	                  node == PLUMB_LOST ? thread->arena.fate : PLUMB_FATE_ATTRIBUTED, 1);
	if (depth > 1)
		thread->stack[depth - 1].inner += duration;
}
