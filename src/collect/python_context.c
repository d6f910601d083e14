/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames → contexts: a cached stack per thread, compared frame by frame, so that an unchanged
 * stack costs a walk and no look-up.
 */
#include "collect/context.h"

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
plumb_id
plumb_python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer, plumb_id base,
                     uint32_t *depth, const void **top)
{
	const void *stop = outer ? outer->python_top : NULL;
	uint32_t floor = outer ? outer->python_floor : 0;
	uint32_t outside = outer ? outer->python_depth : 0;
	*depth = outside;
	*top = plumb_python_mark();
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
