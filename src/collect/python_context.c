/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames → contexts: a cached stack per thread, compared frame by frame, so that an
 * unchanged stack costs a walk and no look-up.
 */
#include "collect/context.h"
#include "collect/module.h"
#include "collect/monitor/python_frame.h"
#include "collect/task.h"

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
locate_frame(struct plumb_thread *thread, struct plumb_python_location *location,
             const struct plumb_python_frame *frame, const struct plumb_python_identity *identity)
{
	struct plumb_python_symbol *symbol = thread->symbol;
	plumb_python_symbolise(frame, symbol);
	*location = (struct plumb_python_location){
		.code = frame->code,
		.lasti = frame->lasti,
		.identity = *identity,
		.line = symbol->line,
		.role = plumb_collector_options()->layers & PLUMB_LAYER_MODULE
		                ? plumb_python_role(symbol)
		                : PLUMB_PYTHON_PLAIN,
		.name = plumb_intern(thread, symbol->function, strlen(symbol->function)),
		.file = plumb_intern(thread, symbol->file, strlen(symbol->file)),
	};
}

/*
 * The text of a frame as a key. A set of ways for each hash: were there one, two frames that share
 * it and alternate would be decoded again at every turn. Newest first, the oldest gives way.
 */
static enum plumb_python_role
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
		locate_frame(thread, location, frame, identity);
	}
	*key = (struct plumb_key){
		.kind = PLUMB_FRAME_PYTHON,
		.name = location->name,
		.file = location->file,
		.line = location->line,
	};
	return location->role;
}

/* The context of FRAME at PLACE, new or moved on. */
static plumb_id
python_step(struct plumb_thread *thread, struct plumb_module_place *place,
            const struct plumb_python_frame *frame, uint32_t generation)
{
	struct plumb_python_entry *entry = &thread->python[place->at];
	struct plumb_python_identity identity;
	enum plumb_python_role role;
	struct plumb_key key;
	plumb_id node;
	plumb_python_identify(frame->code, &identity);
	if (!entry->object && same_frame(entry, frame) && entry->parent == place->parent &&
	    same_identity(&thread->identities[place->at], &identity)) {
		if (entry->generation) /* other code was freed */
			entry->generation = generation;
		return entry->node;
	}
	bool moved = !same_frame(entry, frame) || entry->parent != place->parent;
	role = python_key(thread, frame, &identity, &key);
	if (plumb_likely(!role) || !plumb_module_step(thread, place, frame, role, &node)) {
		key.flags = place->flags;
		node = plumb_layers & PLUMB_LAYER_PYTHON ? plumb_child(thread, place->parent, &key)
		                                         : place->parent;
		entry->object = NULL;
	}
	place->moved |= moved;
	thread->identities[place->at] = identity;
	*entry = (struct plumb_python_entry){
		.code = frame->code,
		.object = entry->object,
		.lasti = frame->lasti,
		.parent = place->parent,
		.node = node,
		/* One that is early is looked at each time; see python_frame.h. */
		.generation = plumb_unlikely(plumb_python_is_early(&plumb_python_path, frame))
		                      ? 0
		                      : generation,
	};
	return node;
}

/* The module's call around the frame at OUTSIDE, inside OUTER (NULL: none). */
static uint32_t
module_outside(const struct plumb_thread *thread, const struct plumb_operator_frame *outer,
               uint32_t outside)
{
	uint32_t module = outer ? outer->module : 0;
	while (module > outside) /* a range's frames that have gone */
		module = thread->calls[module - 1].outer;
	return module;
}

/* The frames from TOP to STOP into the thread's chain, as many as MAX of the program's. */
static inline uint32_t
frames_between(struct plumb_thread *thread, const void *top, const void *stop, uint32_t max,
               bool *truncated)
{
	size_t count = plumb_python_chain(top, stop, thread->chain, max, truncated);
	if (plumb_unlikely(*truncated)) {
		/* Too many, with those that are not the program's. */
		count = plumb_python_walk(top, stop, thread->walk, max, truncated);
		for (size_t i = 0; i < count; i++)
			thread->chain[i] = thread->walk[i].frame;
	}
	return (uint32_t)count;
}

/* Was FRAME's code object looked at when ENTRY was made, and is it the same one still? */
static inline bool
is_known(const struct plumb_python_entry *entry, const struct plumb_python_frame *frame,
         uint32_t generation)
{
	return same_frame(entry, frame) && entry->generation == generation && generation;
}

/* Reads FRAME at ADDRESS, which would be at ENTRY; *KNOWN: as is_known. False: it is none of the
 * program's. */
static inline __attribute__((always_inline)) bool
next_frame(const struct plumb_python_path *path, const struct plumb_python_entry *entry,
           const void *address, uint32_t generation, struct plumb_python_frame *frame, bool *known)
{
	if (!plumb_python_read(path, address, frame))
		return false;
	*known = is_known(entry, frame, generation);
	return plumb_likely(*known) || plumb_python_is_traced(path, frame);
}

/*
 * The Python frames inside OUTER (NULL: all there are) as a context under BASE. *depth gets the
 * number of frames that are outside whatever comes next, top the innermost frame.
 *
 * An operator is a call: the frame that made it stays where it is, and walks stop there. A range is
 * opened by a call that returns (`with record_function(…)`), so there is no frame to stop at. Its
 * frames are told by comparing with the stack as it was when it opened: what is still the same is
 * outside, and the first frame that moved on, the one with the `with` statement, is inside.
 */
plumb_id
plumb_python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer, plumb_id base,
                     uint32_t *depth, const void *top)
{
	const void *stop = outer ? outer->python_top : NULL;
	uint32_t floor = outer ? outer->python_floor : 0;
	uint32_t outside = outer ? outer->python_depth : 0;
	*depth = outside;
	thread->module = outer ? outer->module : 0;
	if (!top || (top == stop && !outer->range))
		return base;

	bool truncated;
	uint32_t left = frames_between(thread, top, stop, PLUMB_PYTHON_MAX - floor, &truncated);
	uint32_t generation = atomic_load_explicit(&plumb_python_codes_freed, memory_order_relaxed);
	uint32_t at = floor;
	const struct plumb_python_path path = plumb_python_path;
	const void *const *chain = thread->chain;
	const struct plumb_python_entry *entries = thread->python;
	struct plumb_python_frame frame;
	bool known;
	if (outer && outer->range) {
		for (; at < outside && left; left--) {
			if (!next_frame(&path, &entries[at], chain[left - 1], generation, &frame,
			                &known))
				continue;
			if (!known && !same_frame(&entries[at], &frame))
				break;
			at++;
		}
		outside = outer->python_depth = at;
	}
	plumb_id parent = base;
	struct plumb_module_place place = { .inside = module_outside(thread, outer, outside) };
	for (at = outside; left; left--) {
		const struct plumb_python_entry *entry = &entries[at];
		if (!next_frame(&path, entry, chain[left - 1], generation, &frame, &known))
			continue;
		bool same = known && entry->parent == parent;
		if (plumb_likely(same && !entry->object)) {
			parent = entry->node;
			at++;
			continue;
		}
		const struct plumb_python_frame found =
			frame; /* the loop's own stays in registers */
		if (same && !place.moved && plumb_module_goes_on(thread, at, &found)) {
			parent = entry->node;
			place.inside = ++at;
			continue;
		}
		place.at = at;
		place.parent = parent;
		place.flags = truncated && at == outside ? PLUMB_CONTEXT_TRUNCATED : 0;
		parent = python_step(thread, &place, &found, generation);
		at++;
	}
	*depth = at;
	thread->python_seen = at;
	thread->module = place.inside;
	if (plumb_unlikely(thread->module_open > place.inside))
		plumb_module_end(thread, place.inside);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_PYTHON, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_PYTHON,
	                  parent == PLUMB_LOST ? thread->arena.fate
	                  : truncated          ? PLUMB_FATE_TOO_DEEP
	                                       : PLUMB_FATE_ATTRIBUTED,
	                  1);
	return parent;
}

uint32_t
plumb_python_refresh(struct plumb_thread *thread)
{
	const void *top = plumb_python_mark();
	bool truncated;
	if (!top)
		return 0;
	uint32_t frames =
		(uint32_t)plumb_python_walk(top, NULL, thread->walk, PLUMB_PYTHON_MAX, &truncated);
	for (uint32_t at = 0; at < frames; at++) {
		const struct plumb_python_frame *frame = &thread->walk[frames - 1 - at];
		struct plumb_python_entry *entry = &thread->python[at];
		if (same_frame(entry, frame))
			continue;
		*entry = (struct plumb_python_entry){ .code = frame->code,
			                              .lasti = frame->lasti,
			                              .parent = PLUMB_LOST,
			                              .node = PLUMB_LOST };
	}
	return frames;
}
