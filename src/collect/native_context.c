/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames → contexts. A walk gives call sites; under a given parent a site is one context,
 * kept in a table of the thread, so that a stack that was seen before costs a look a frame. At a
 * call, whole paths are looked for first (native_memo.h).
 *
 * Samples meet ever more rare paths and instructions, however long a program runs. So they may make
 * a certain number of contexts only, in a process. From half of it on, an instruction that was not
 * met before stands for its function; after that a path goes as far as it is known.
 *
 * The walk goes outwards to what stands on the C stack innermost: the operator's record, which lies
 * in the C frame that runs it, or the C frame that evaluates the innermost Python frame. What is
 * further out is told by their contexts already.
 */
#include "collect/context.h"
#include "collect/native_memo.h"
#include "collect/stack/stack.h"

enum {
	NATIVE_MAX = 512,      /* frames between two operators */
	NATIVE_NODES = 4096,   /* contexts that a thread keeps at hand */
	STACKS_LOOKED_UP = 16, /* by samples, one after the other; from then on … */
	LOOK_UP_ONE_IN = 64,   /* … of so many: a program that changes stacks would pay each time */
};

static _Atomic uint32_t sampled; /* contexts that samples made */

static const char generated[] = "[generated code]";
static const char rare[] = "[other native code]";

struct plumb_native {
	struct plumb_stack_bounds bounds;
	struct plumb_stack_bounds other; /* of another stack that walks change to (Go's) */
	uint32_t generation;             /* of the objects that the table is about */
	uint32_t pid;                    /* of the region that it is about */
	uint32_t tid;                    /* whose stack the bounds are */
	uint32_t strays;                 /* samples on another stack */
	bool in_sample;
	uint8_t flags; /* of every frame of this walk: PLUMB_CONTEXT_OPERATORS and _HIDDEN */
	uintptr_t sites[NATIVE_MAX];
	struct native_node {
		uint64_t frame; /* frame_of */
		plumb_id parent, node;
	} nodes[NATIVE_NODES];
	struct plumb_stack_trail trail; /* scratch */
	struct plumb_native_memo memo;
};

/* ---- one frame ---- */

static plumb_id
intern_text(struct plumb_thread *thread, const char *text)
{
	return plumb_intern(thread, text, strlen(text));
}

/* The CODE record of OBJECT, written by whoever needs it first; 0: no room. A record that loses a
 * race is used by nobody. A forked child with a region of its own writes its own. */
static plumb_id
code_record(struct plumb_thread *thread, struct plumb_stack_object *object)
{
	struct plumb_region *region = thread->arena.region;
	uint64_t pid = region->header->pid;
	uint64_t known = atomic_load_explicit(&object->record, memory_order_acquire);
	if (known >> 32 == pid)
		return (plumb_id)known;
	plumb_id path = intern_text(thread, object->path[0] ? object->path : "[unknown file]");
	struct plumb_record_code *code =
		path ? plumb_arena_append(&thread->arena, PLUMB_RECORD_CODE, sizeof *code) : NULL;
	if (!code)
		return 0;
	code->path = path;
	code->build_id_bytes = object->build_id_bytes;
	memcpy(code->build_id, object->build_id, sizeof code->build_id);
	code->bias = object->bias;
	code->start = object->start;
	code->end = object->end;
	plumb_arena_commit(&thread->arena, code);
	plumb_id id = plumb_region_id(region, code);
	if (atomic_compare_exchange_strong(&object->record, &known, pid << 32 | id))
		return id;
	return known >> 32 == pid ? (plumb_id)known : id;
}

/* The child of PARENT with KEY; 0: it is new, and samples have made MOST contexts. */
static plumb_id
find_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key, uint32_t most)
{
	if (plumb_likely(!thread->native->in_sample))
		return plumb_child(thread, parent, key);
	plumb_id known = plumb_child_known(thread, parent, key);
	if (known)
		return known;
	if (atomic_load_explicit(&sampled, memory_order_relaxed) >= most)
		return 0;
	atomic_fetch_add_explicit(&sampled, 1, memory_order_relaxed);
	return plumb_child(thread, parent, key);
}

static plumb_id
make_node(struct plumb_thread *thread, plumb_id parent, uintptr_t site, uint8_t flags,
          uint32_t most)
{
	struct plumb_key key = { .kind = PLUMB_FRAME_NATIVE, .flags = flags };
	struct plumb_stack_object *object = plumb_stack_object_of(site);
	if (!object) {
		key.name = intern_text(thread, generated);
		return find_child(thread, parent, &key, most);
	}
	key.file = code_record(thread, object);
	if (key.file) {
		const struct plumb_record_code *code =
			plumb_region_at(thread->arena.region, key.file);
		uintptr_t offset = site - object->bias;
		key.name = code->path;
		key.line = offset <= UINT32_MAX ? (uint32_t)offset : 0;
	}
	return find_child(thread, parent, &key, most);
}

/* As make_node, of as many as samples may make. */
static plumb_id
make_site(struct plumb_thread *thread, plumb_id parent, uintptr_t site, uint8_t flags)
{
	uint32_t most = plumb_collector_options()->native_contexts;
	uintptr_t start, end;
	bool interrupted = flags & PLUMB_CONTEXT_INTERRUPTED;
	flags |= thread->native->flags;
	plumb_id made = make_node(thread, parent, site, flags, interrupted ? most / 2 : most);
	if (!made && interrupted && plumb_stack_function(site, &start, &end))
		made = make_node(thread, parent, start, flags, most);
	return made;
}

/* One address is two frames where a sample struck: it stands for its whole function there, and for
 * itself once a signal handler runs on top of it. Addresses of programs leave the highest byte
 * free. */
static inline uint64_t
frame_of(uintptr_t site, uint8_t flags)
{
	return site ^ (uint64_t)flags << 56;
}

static inline plumb_id
step_in(struct plumb_thread *thread, plumb_id parent, uintptr_t site, uint8_t flags)
{
	uint64_t frame = frame_of(site, flags | thread->native->flags);
	uint64_t hash = (frame ^ (uint64_t)parent << 32) * UINT64_C(0x9e3779b97f4a7c15);
	struct native_node *node = &thread->native->nodes[hash >> 32 & (NATIVE_NODES - 1)];
	if (plumb_likely(node->frame == frame && node->parent == parent))
		return node->node;
	plumb_id made = make_site(thread, parent, site, flags);
	if (made && made != PLUMB_LOST)
		*node = (struct native_node){ frame, parent, made };
	return made;
}

/* ---- the walk ---- */

/* The thread's scratch, fit for the region and the objects of now, in a signal handler for those
 * known before; NULL: no memory, no tables. */
PLUMB_HOT_CODE static struct plumb_native *
prepare_scratch(struct plumb_thread *thread, bool in_handler)
{
	struct plumb_native *native = thread->native;
	if (plumb_unlikely(!native)) {
		if (!in_handler && !plumb_stack_prepare())
			return NULL;
		native = thread->native = plumb_map(sizeof *native, true);
		if (!native)
			return NULL;
	}
	if (!in_handler &&
	    plumb_unlikely(atomic_load_explicit(&plumb_stack_stale, memory_order_relaxed)))
		plumb_stack_refresh();
	uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
	if (plumb_unlikely(native->tid != tid)) { /* a thread that took this over */
		native->bounds = native->other = (struct plumb_stack_bounds){ 0 };
		native->strays = 0;
		native->tid = tid;
	}
	uint32_t generation = plumb_stack_generation(), pid = thread->arena.region->header->pid;
	if (plumb_unlikely(native->generation != generation || native->pid != pid)) {
		memset(native->nodes, 0, sizeof native->nodes);
		/* Nor does a handler that comes here find the memo half written: where it
		 * interrupted plumb itself on this thread, it was refused (plumb_enter). */
		plumb_native_memo_clear(&native->memo);
		native->generation = generation;
		native->pid = pid;
	}
	return native;
}

/* The innermost address on the C stack where a context begins that is known already; 0: none. An
 * operator's record that lies on the heap (a range that Python opened) tells nothing. */
PLUMB_HOT_CODE static uintptr_t
known_from(const struct plumb_thread *thread, const void *top, uintptr_t sp, const void **function)
{
	uintptr_t high = thread->native->bounds.high, python = 0;
	*function = NULL;
	if (plumb_layers & PLUMB_LAYER_PYTHON)
		python = plumb_python_stack(top, sp, high, function);
	/* Operators that are no frames leave the native ones to say where the program is. */
	for (uint32_t at = plumb_operators_are_frames() ? thread->operators : 0; at; at--) {
		uintptr_t stack = (uintptr_t)thread->stack[at].stack;
		if (stack >= sp && stack < high)
			return python && python < stack ? python : stack;
	}
	return python;
}

/* As known_from, outside of handlers: mostly no Python has begun inside the innermost operator. */
static inline uintptr_t
known_from_here(const struct plumb_thread *thread, uintptr_t sp, const void **function)
{
	const struct plumb_operator_frame *inner = &thread->stack[thread->operators];
	const void *top = plumb_python_top();
	uintptr_t stack = (uintptr_t)inner->stack;
	*function = NULL;
	if (plumb_likely(thread->operators && plumb_operators_are_frames() && !inner->range &&
	                 top == inner->python_top && stack >= sp &&
	                 stack < thread->native->bounds.high))
		return stack;
	return known_from(thread, top, sp, function);
}

/* Cuts the walk where FUNCTION, the interpreter's, was called. */
static void
cut_at(struct plumb_stack_walk *walk, const void *function)
{
	uintptr_t start, end;
	if (!plumb_stack_function((uintptr_t)function, &start, &end))
		return;
	for (size_t i = 0; i < walk->count; i++) {
		if (walk->sites[i] >= start && walk->sites[i] < end) {
			walk->count = i;
			walk->end = PLUMB_STACK_STOP;
			return;
		}
	}
}

static _Atomic bool said;

/* Says once why nothing is walked here. */
static void
refuse_native(struct plumb_thread *thread, const char *why)
{
	if (!atomic_exchange(&said, true))
		plumb_environment(thread, "native.off", why);
}

/* How a walk counts in the ledger, by its end. */
static enum plumb_fate
fate_of(enum plumb_stack_end end)
{
	switch (end) {
	case PLUMB_STACK_STOP:
	case PLUMB_STACK_OUTERMOST:
		return PLUMB_FATE_ATTRIBUTED;
	case PLUMB_STACK_TOO_DEEP:
		return PLUMB_FATE_TOO_DEEP;
	default:
		return PLUMB_FATE_NO_UNWIND;
	}
}

static void
count_path(struct plumb_thread *thread, enum plumb_fate fate)
{
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_NATIVE, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_NATIVE, fate, 1);
}

/* The path of a walk. INNERMOST: flags of its first site. */
static plumb_id
make_path(struct plumb_thread *thread, plumb_id parent, const uintptr_t *sites, size_t count,
          enum plumb_stack_end end, uint8_t innermost)
{
	enum plumb_fate fate = fate_of(end);
	if (plumb_unlikely(!thread->native)) {
		count_path(thread, PLUMB_FATE_NO_UNWIND);
		return parent;
	}
	/* Where there should be more, the outermost frame says so; generated code says it by
	 * itself. */
	if (plumb_unlikely(fate != PLUMB_FATE_ATTRIBUTED && count)) {
		uint8_t flags = PLUMB_CONTEXT_TRUNCATED;
		count--;
		plumb_id made =
			make_site(thread, parent, sites[count], count ? flags : flags | innermost);
		count = made ? count : 0;
		fate = made ? fate : PLUMB_FATE_OVERFLOWED;
		parent = made ? made : parent;
	}
	while (count) {
		count--;
		plumb_id next = step_in(thread, parent, sites[count], count ? 0 : innermost);
		if (plumb_unlikely(!next)) {
			fate = PLUMB_FATE_OVERFLOWED;
			break;
		}
		parent = next;
	}
	if (plumb_unlikely(fate == PLUMB_FATE_OVERFLOWED && !parent))
		parent = plumb_child_named(thread, 0, PLUMB_FRAME_NATIVE, rare);
	count_path(thread, parent == PLUMB_LOST ? thread->arena.fate : fate);
	return parent;
}

static const char no_memory[] = "not enough memory for the tables that native frames need";
static const char no_bounds[] = "native frames are missing where a thread's stack is not in "
				"/proc/self/maps; mount /proc to see them";

void
plumb_native_prefetch(struct plumb_thread *thread, plumb_id parent)
{
	plumb_native_memo_prefetch(&thread->native->memo, parent);
}

/* What a path means: native frames, operators, or both. */
static inline uint8_t
path_flags(bool shown)
{
	if (plumb_likely(!(plumb_layers & PLUMB_LAYER_LEAN)))
		return 0;
	return shown || plumb_layers & PLUMB_LAYER_NATIVE_ALONE
	               ? PLUMB_CONTEXT_OPERATORS
	               : PLUMB_CONTEXT_OPERATORS | PLUMB_CONTEXT_HIDDEN;
}

/* Leaves out the innermost frames of the framework that runs the operator. */
static void
skip_framework(struct plumb_stack_walk *walk)
{
	size_t skipped = 0;
	while (skipped < walk->count && plumb_stack_is_framework(walk->sites[skipped]))
		skipped++;
	walk->sites += skipped;
	walk->count -= skipped;
}

static inline __attribute__((always_inline)) plumb_id
find_context(struct plumb_thread *thread, plumb_id parent, bool caller)
{
	struct plumb_native *native = prepare_scratch(thread, false);
	struct plumb_memo_place at = { .parent = parent };
	struct plumb_stack_walk walk = {
		.max = NATIVE_MAX,
		.skip_internal = true,
		.end = PLUMB_STACK_NO_TABLE,
	};
	struct plumb_stack_registers here;
	const void *function;
	plumb_stack_here(&here);
	if (plumb_unlikely(!native)) {
		refuse_native(thread, no_memory);
	} else if (plumb_unlikely(!plumb_stack_within(&native->bounds, here.sp) &&
	                          !plumb_stack_bounds_of(here.sp, &native->bounds))) {
		refuse_native(thread, no_bounds);
	} else {
		native->flags = path_flags(false);
		walk.sites = native->sites;
		walk.other = &native->other;
		walk.stop = known_from_here(thread, here.sp, &function);
		/* What is cut afterwards is not what the stop tells. */
		if (plumb_likely(!function && parent != PLUMB_LOST &&
		                 !plumb_collector_options()->no_memo)) {
			at.from = &here;
			at.bounds = &native->bounds;
			at.stop = walk.stop;
			if (plumb_likely(plumb_native_memo_find(&native->memo, &at, &parent))) {
				count_path(thread, PLUMB_FATE_ATTRIBUTED);
				return parent;
			}
			walk.trail = &native->trail;
		}
		plumb_stack_walk(&here, &native->bounds, &walk);
		if (plumb_unlikely(function))
			cut_at(&walk, function);
		if (caller)
			skip_framework(&walk);
	}
	plumb_id node = make_path(thread, parent, walk.sites, walk.count, walk.end, 0);
	if (walk.trail && node != PLUMB_LOST)
		plumb_native_memo_put(&native->memo, &at, walk.trail, node);
	return node;
}

/* Compiled into both: each begins its walks at an instruction of its own, so that the memo takes
 * none for the other's. */
PLUMB_HOT_CODE __attribute__((noinline)) plumb_id
plumb_native_context(struct plumb_thread *thread, plumb_id parent)
{
	return find_context(thread, parent, false);
}

__attribute__((noinline)) plumb_id
plumb_native_caller(struct plumb_thread *thread, plumb_id parent)
{
	return find_context(thread, parent, true);
}

/* ---- samples ---- */

void
plumb_native_prepare(void)
{
	if (plumb_stack_prepare())
		plumb_stack_refresh();
}

void
plumb_native_forked(void)
{
	plumb_stack_forked();
	atomic_store(&sampled, 0);
	atomic_store(&said, false);
}

/* Whether the bounds of the stack that SP lies in are known, perhaps from now on. */
static bool
find_bounds(struct plumb_thread *thread, struct plumb_native *native, uintptr_t sp)
{
	if (plumb_likely(plumb_stack_within(&native->bounds, sp)))
		return true;
	native->strays++;
	if (native->strays > STACKS_LOOKED_UP && native->strays % LOOK_UP_ONE_IN)
		return false;
	if (plumb_stack_bounds_of(sp, &native->bounds))
		return true;
	refuse_native(thread, no_bounds);
	return false;
}

plumb_id
plumb_native_interrupted(struct plumb_thread *thread, plumb_id parent, const void *top,
                         const void *registers)
{
	struct plumb_native *native = prepare_scratch(thread, true);
	struct plumb_stack_walk walk = {
		.max = NATIVE_MAX,
		.in_handler = true,
		.end = PLUMB_STACK_NO_TABLE,
	};
	struct plumb_stack_registers from;
	const void *function = NULL;
	plumb_stack_interrupted(registers, &from);
	if (plumb_unlikely(!native)) {
		refuse_native(thread, no_memory);
	} else if (plumb_likely(find_bounds(thread, native, from.sp))) {
		walk.sites = native->sites;
		walk.other = &native->other;
		/* Without a parent nothing further out is told yet. */
		walk.stop = parent ? known_from(thread, top, from.sp, &function) : 0;
		plumb_stack_walk(&from, &native->bounds, &walk);
		if (plumb_unlikely(function))
			cut_at(&walk, function);
	}
	if (native) {
		native->in_sample = true;
		native->flags = path_flags(!parent); /* nothing else says where it was */
	}
	plumb_id node = make_path(thread, parent, walk.sites, walk.count, walk.end,
	                          PLUMB_CONTEXT_INTERRUPTED);
	if (native)
		native->in_sample = false;
	return node;
}
