/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backward work → the forward operator that caused it, and who called backward. See context.h.
 */
#include "collect/context.h"

#include <stdio.h>

/* ---- the engine's own frames ---- */

plumb_id
plumb_engine_name(struct plumb_thread *thread, const char *node)
{
	char text[256];
	int bytes = snprintf(text, sizeof text, PLUMB_ENGINE_PREFIX "%s", node);
	return plumb_intern(thread, text,
	                    (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1);
}

/* Gives an engine frame its place: under FORWARD, or for 0 where backward was called. */
PLUMB_HOT_CODE static void
engine_settle(struct plumb_thread *thread, struct plumb_operator_frame *engine, plumb_id forward)
{
	struct plumb_key key = {
		.kind = PLUMB_FRAME_OPERATOR,
		.name = engine->name ? engine->name : plumb_engine_name(thread, "?"),
		.flags = forward ? PLUMB_CONTEXT_BACKWARD
		                 : PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION,
	};
	engine->node = plumb_operator_child(thread, forward ? forward : engine->base, &key);
}

plumb_id
plumb_frame_node(struct plumb_thread *thread, struct plumb_operator_frame *frame)
{
	if (plumb_frame_is_open(frame))
		engine_settle(thread, frame, 0);
	return frame->node;
}

PLUMB_HOT_CODE plumb_id
plumb_frame_inside(struct plumb_thread *thread, struct plumb_operator_frame *outer)
{
	if (!outer)
		return 0;
	if (plumb_unlikely(plumb_frame_is_open(outer))) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_RECEIVED, 1);
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_HOOK, 1);
	}
	return plumb_frame_node(thread, outer);
}

/* Newest caller of backward in the process: for engine threads that met no forward operator yet. */
static _Atomic uint32_t newest_backward;

void
plumb_backward_forked(void)
{
	atomic_store_explicit(&newest_backward, 0, memory_order_relaxed);
}

void
plumb_backward_begin(struct plumb_thread *thread)
{
	plumb_id context = plumb_context_light(thread);
	atomic_store_explicit(&thread->backward_context, context, memory_order_relaxed);
	atomic_store_explicit(&newest_backward, context, memory_order_relaxed);
}

/* Who called the backward pass that the thread runs: certain when it was this thread, which has the
 * caller on its stack, else what it learnt last. */
plumb_id
plumb_backward_caller(struct plumb_thread *thread)
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

/* As plumb_backward_node, of what the engine runs for the operator FORWARD. */
static plumb_id
node_below_engine(struct plumb_thread *thread, struct plumb_operator_frame *engine,
                  plumb_id forward, const struct plumb_key *key)
{
	plumb_id caller = plumb_backward_caller(thread);
	struct plumb_backward_entry *entry =
		&thread->backward[plumb_mix(forward, key->name) % PLUMB_BACKWARD_ENTRIES];
	if (plumb_likely(entry->forward == forward && entry->name == key->name &&
	                 entry->caller == caller && entry->engine_name == engine->name &&
	                 entry->node)) {
		engine->node = entry->engine;
		return entry->node;
	}
	engine_settle(thread, engine, forward);
	plumb_id node = plumb_operator_child(thread, engine->node, key);
	if (plumb_operators_are_frames())
		plumb_origin(thread, engine->node, caller, PLUMB_ORIGIN_BACKWARD_CALL);
	if (node != PLUMB_LOST && engine->name)
		*entry = (struct plumb_backward_entry){
			.forward = forward,
			.caller = caller,
			.engine_name = engine->name,
			.name = key->name,
			.engine = engine->node,
			.node = node,
		};
	return node;
}

PLUMB_HOT_CODE plumb_id
plumb_backward_node(struct plumb_thread *thread, struct plumb_operator_frame *outer, plumb_id here,
                    const struct plumb_operator *op, struct plumb_key *key)
{
	bool by_engine = outer && outer->engine;
	if (by_engine && plumb_unlikely(!outer->name))
		outer->name = plumb_engine_name(thread, op->name);
	key->flags = PLUMB_CONTEXT_BACKWARD;
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_RECEIVED, 1);
	if (op->sequence < 0) {
		/* Gradient accumulation: no forward operator made it. */
		key->flags |= PLUMB_CONTEXT_ACCUMULATION;
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_ACCUMULATION,
		                  1);
		return plumb_operator_child(
			thread, by_engine ? plumb_frame_node(thread, outer) : here, key);
	}
	struct plumb_thread *owner;
	plumb_id forward = plumb_forward_get(op->forward_thread, op->sequence, &owner);
	if (!by_engine || !outer->caller_known)
		learn_caller(thread, owner);
	if (!forward) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_FORWARD_MISS,
		                  1);
		return plumb_operator_child(
			thread, by_engine ? plumb_frame_node(thread, outer) : here, key);
	}
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_BACKWARD, PLUMB_FATE_FORWARD, 1);
	if (plumb_likely(by_engine))
		return node_below_engine(thread, outer, forward, key);
	plumb_id node = plumb_operator_child(thread, forward, key);
	if (plumb_operators_are_frames())
		plumb_origin(thread, node, plumb_backward_caller(thread),
		             PLUMB_ORIGIN_BACKWARD_CALL);
	return node;
}
