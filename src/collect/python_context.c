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
PLUMB_HOT_CODE static enum plumb_python_role
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
PLUMB_HOT_CODE static plumb_id
python_step(struct plumb_thread *thread, struct plumb_module_place *place,
            const struct plumb_python_frame *frame, uint32_t generation)
{
	struct plumb_python_entry *entry = &thread->python[place->at];
	struct plumb_python_identity identity;
	enum plumb_python_role role;
	struct plumb_key key;
	plumb_id node;
	plumb_python_identify(frame->code, &identity);
	if (!entry->is_call && same_frame(entry, frame) && entry->parent == place->parent &&
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
		entry->is_call = false;
	}
	place->moved |= moved;
	thread->identities[place->at] = identity;
	*entry = (struct plumb_python_entry){
		.code = frame->code,
		.frame = frame->frame,
		.is_call = entry->is_call,
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

/* Reads FRAME at ADDRESS, and compares it with ENTRY; *KNOWN: as is_known. False: it does not
 * belong to the program. */
static inline __attribute__((always_inline)) bool
next_frame(const struct plumb_python_path *path, const struct plumb_python_entry *entry,
           const void *address, uint32_t generation, struct plumb_python_frame *frame, bool *known)
{
	if (!plumb_python_read(path, address, frame))
		return false;
	*known = is_known(entry, frame, generation);
	return plumb_likely(*known) || plumb_python_is_traced(path, frame);
}

/* ---- the walk ---- */

/* One walk: what does not change, and how far it has come. */
struct walk {
	struct plumb_thread *thread;
	const struct plumb_python_path *path;
	uint32_t generation;
	uint32_t floor;   /* the entry of the outermost frame before the stop */
	uint32_t outside; /* entries from here on get contexts; before it a range's own Python */
	bool truncated;
	struct plumb_module_place place; /* of the next frame, which goes inwards */
};

/* The frame at ADDRESS is the next one. */
static inline __attribute__((always_inline)) void
step_in(struct walk *w, const void *address)
{
	struct plumb_module_place *place = &w->place;
	struct plumb_python_entry *entry = &w->thread->python[place->at];
	struct plumb_python_frame frame;
	bool known;
	if (!next_frame(w->path, entry, address, w->generation, &frame, &known))
		return;
	entry->frame = address;
	bool same = known && entry->parent == place->parent;
	if (plumb_likely(same && !entry->is_call)) {
		place->parent = entry->node;
		place->at++;
		return;
	}
	const struct plumb_python_frame found = frame; /* the loop's own stays in registers */
	if (same && !place->moved && plumb_module_goes_on(w->thread, place->at, &found)) {
		place->parent = entry->node;
		place->inside = ++place->at;
		return;
	}
	place->flags = w->truncated && place->at == w->outside ? PLUMB_CONTEXT_TRUNCATED : 0;
	place->parent = python_step(w->thread, place, &found, w->generation);
	place->at++;
}

enum { NEW_MAX = 24, KNOWN_MAX = 64, INTERNAL_MAX = 8 };

/* FRAME, or what is outside it if it is the interpreter's own. */
PLUMB_HOT_CODE static const char *
skip_internal(const struct plumb_python_path *path, const char *frame, const void *stop)
{
	for (int i = 0; i < INTERNAL_MAX && frame && frame != stop; i++) {
		if (plumb_likely(!plumb_python_is_internal(path, frame)))
			break;
		frame = plumb_python_pointer(frame, path->previous);
	}
	return frame;
}

/* Whether the module's call at ENTRY, whose frame is as it was, goes on. */
PLUMB_HOT_CODE static __attribute__((noinline)) bool
call_goes_on(const struct plumb_thread *thread, const struct plumb_python_entry *entry)
{
	const struct plumb_python_frame frame = {
		.code = entry->code,
		.lasti = entry->lasti,
		.frame = entry->frame,
	};
	return plumb_module_goes_on(thread, (uint32_t)(entry - thread->python), &frame);
}

/* An address that was compared with one that was read. What is read there need not wait for that
 * comparison: the processor guesses how it ends. The compiler would take either for the other. */
static inline const char *
guessed(const void *address)
{
	__asm__("" : "+r"(address));
	return address;
}

/* Frames from TOP outwards that were not at hand, innermost first, into the thread's chain; returns
 * how many. *KNOWN gets how many entries are around them: the last of these has the next frame's
 * address. False: that is not told so easily. */
static inline bool
find_known(const struct walk *w, const void *top, const void *stop, uint32_t *fresh,
           uint32_t *known)
{
	const struct plumb_python_entry *entries = w->thread->python;
	const char *frame = top;
	uint32_t seen = w->thread->python_seen, lowest = w->floor;
	if (seen <= lowest || seen - lowest > KNOWN_MAX || !w->generation)
		return false;
	for (*fresh = 0; *fresh < NEW_MAX && frame && frame != stop; ++*fresh) {
		for (uint32_t at = seen; at > lowest && at + 8 > seen; at--)
			if (entries[at - 1].frame == frame) {
				*known = at;
				return true;
			}
		w->thread->chain[*fresh] = frame;
		frame = skip_internal(w->path, plumb_python_pointer(frame, w->path->previous),
		                      stop);
	}
	return false;
}

/*
 * Compares entries below KNOWN with the frames that they were made of, outwards to STOP. *SAME gets
 * how many of them, from the outermost on, are as they were, and *INSIDE the module's call around
 * what comes after these, 0 for that around the walk. False: other frames are there.
 *
 * Frames lie apart, in memory that may be cold. Reading them one after the other would wait for
 * each; here the next address is known before it is read.
 */
static inline __attribute__((always_inline)) bool
compare_frames(const struct walk *w, uint32_t known, const void *stop, uint32_t *same,
               uint32_t *inside, bool modern)
{
	/* Few enough to stay in registers. */
	const struct plumb_python_path *path = w->path;
	const size_t previous = path->previous, instruction = path->instruction, code = path->code;
	const uintptr_t tag = ~path->tag, first = path->first_instruction;
	const struct plumb_python_entry *entries = w->thread->python;
	const struct plumb_python_entry *outside = &entries[w->outside], *entry = &entries[known];
	const struct plumb_python_entry *changed = entry, *call = NULL;
	const uint32_t generation = w->generation;
	for (;;) {
		entry--;
		const char *frame = guessed(entry->frame);
		uintptr_t at = (uintptr_t)plumb_python_pointer(frame, code) & tag;
		bool is_same = at == (uintptr_t)entry->code;
		if (modern)
			is_same &= (uintptr_t)plumb_python_pointer(frame, instruction) ==
			           at + first + (uintptr_t)(intptr_t)entry->lasti;
		else
			is_same &=
				plumb_python_int(frame, instruction) * path->scale == entry->lasti;
		if (plumb_likely(entry > outside))
			is_same &= (entry->generation == generation) &
			           (entry->parent == entry[-1].node);
		else if (entry == outside)
			is_same &=
				entry->generation == generation && entry->parent == w->place.parent;
		else if (!is_same)
			return false;
		if (plumb_unlikely(!is_same || entry->is_call) && entry >= outside) {
			if (is_same)
				is_same = call_goes_on(w->thread, entry);
			if (!is_same)
				changed = entry;
			if (!is_same || !call)
				call = is_same ? entry : NULL;
		}
		const char *next = plumb_python_pointer(frame, previous);
		if (plumb_unlikely(entry == &entries[w->floor])) {
			*same = (uint32_t)(changed - entries);
			*inside = call ? (uint32_t)(call - entries) + 1 : 0;
			return skip_internal(path, next, stop) == stop;
		}
		if (plumb_unlikely(next != entry[-1].frame))
			next = skip_internal(path, next, stop);
		if (plumb_unlikely(!next || next != entry[-1].frame))
			return false;
	}
}

PLUMB_HOT_CODE static __attribute__((noinline)) bool
compare_known(const struct walk *w, uint32_t known, const void *stop, uint32_t *same,
              uint32_t *inside)
{
	return plumb_likely(w->path->interpreter_frames)
	               ? compare_frames(w, known, stop, same, inside, true)
	               : compare_frames(w, known, stop, same, inside, false);
}

/* Walks where most frames are at the addresses where the last walk met them. False: they are not,
 * and nothing was done. */
PLUMB_HOT_CODE static inline bool
walk_known(struct walk *w, const void *top, const void *stop)
{
	uint32_t fresh, known, same, inside;
	if (!find_known(w, top, stop, &fresh, &known) || known < w->outside ||
	    !compare_known(w, known, stop, &same, &inside))
		return false;
	w->truncated = false;
	w->place.at = same;
	if (same > w->outside)
		w->place.parent = w->thread->python[same - 1].node;
	if (inside)
		w->place.inside = inside;
	for (uint32_t at = same; at < known; at++)
		step_in(w, w->thread->python[at].frame);
	while (fresh)
		step_in(w, w->thread->chain[--fresh]);
	return true;
}

/* Skips LEFT frames of the chain that are still as they were when the range OUTER was opened. Gives
 * back how many are left. */
static uint32_t
skip_outside(struct walk *w, struct plumb_operator_frame *outer, uint32_t left)
{
	const struct plumb_python_entry *entries = w->thread->python;
	struct plumb_python_frame frame;
	uint32_t at = w->floor;
	bool known;
	for (; at < w->outside && left; left--) {
		if (!next_frame(w->path, &entries[at], w->thread->chain[left - 1], w->generation,
		                &frame, &known))
			continue;
		if (!known && !same_frame(&entries[at], &frame))
			break;
		at++;
	}
	w->outside = outer->python_depth = at;
	return left;
}

static void
walk_all(struct walk *w, struct plumb_operator_frame *outer, const void *top, const void *stop)
{
	uint32_t left =
		frames_between(w->thread, top, stop, PLUMB_PYTHON_MAX - w->floor, &w->truncated);
	if (outer && outer->range)
		left = skip_outside(w, outer, left);
	w->place.at = w->outside;
	w->place.inside = module_outside(w->thread, outer, w->outside);
	for (; left; left--)
		step_in(w, w->thread->chain[left - 1]);
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
PLUMB_HOT_CODE plumb_id
plumb_python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer, plumb_id base,
                     uint32_t *depth, const void *top)
{
	const void *stop = outer ? outer->python_top : NULL;
	uint32_t outside = outer ? outer->python_depth : 0;
	*depth = outside;
	thread->module = outer ? outer->module : 0;
	if (!top || (top == stop && !outer->range))
		return base;

	const struct plumb_python_path path = plumb_python_path;
	struct walk w = {
		.thread = thread,
		.path = &path,
		.generation =
			atomic_load_explicit(&plumb_python_codes_freed, memory_order_relaxed) &
			PLUMB_PYTHON_GENERATION,
		.floor = outer ? outer->python_floor : 0,
		.outside = outside,
		.place = { .parent = base, .inside = module_outside(thread, outer, outside) },
	};
	if (!walk_known(&w, top, stop))
		walk_all(&w, outer, top, stop);
	*depth = w.place.at;
	thread->python_seen = w.place.at;
	thread->module = w.place.inside;
	if (plumb_unlikely(thread->module_open > w.place.inside))
		plumb_module_end(thread, w.place.inside);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_PYTHON, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_PYTHON,
	                  w.place.parent == PLUMB_LOST ? thread->arena.fate
	                  : w.truncated                ? PLUMB_FATE_TOO_DEEP
	                                               : PLUMB_FATE_ATTRIBUTED,
	                  1);
	return w.place.parent;
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
