/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of modules. plumb reads a root's tree once (scan_tree), and keeps every pointer on the way
 * as evidence. A call of a module then costs a look-up and a comparison of the evidence on its
 * path. That tells whether the name is still right: objects go, others come to their addresses, and
 * programs move modules about. If it is not, plumb reads the tree again.
 *
 * A frame is a new call or the same call as before. The frame's address, the receiver and a mark of
 * the call (python_object.h) tell, and whether anything outside it moved. With CPython 3.14 the
 * mark is only the first argument. So two calls in a row from one place look like one if they have
 * the same argument and no operator runs between them outside the module. plumb does not see a call
 * without an operator and without a GPU call.
 */
#include "collect/module.h"

#include <sched.h>

#include "collect/clock.h"
#include "collect/shape.h"

enum {
	MODULES = 1 << 16, /* that a thread knows at once, all roots together */
	BUCKETS = 1 << 16,
	DEPTH = 64, /* modules in each other */
	NAME_BYTES = 1024,
	TRIES = 256,          /* frames that may prove the layout */
	CREDIT_MAX = 1 << 20, /* calls saved up for reading trees again */
	SCAN_SHARE = 4,       /* modules read again for each call, on average */
};

struct module {
	const void *object, *type;
	uint32_t root;                   /* index of the root, itself for a root */
	uint32_t parent;                 /* index */
	uint32_t generation;             /* of the root's tree when it was read */
	uint32_t next;                   /* in its bucket */
	struct plumb_python_member link; /* how the parent holds it */
	struct plumb_python_members members;
	plumb_id name, class;
	uint64_t class_hash;
	uint32_t around, calls; /* serial of the call around, and calls under it */
	/* Of a root: */
	uint32_t held; /* modules that were read */
	bool scanned;
};

struct plumb_modules {
	uint32_t count; /* modules[1 … count] */
	uint32_t credit;
	bool overflowed;
	uint32_t buckets[BUCKETS];
	struct module modules[MODULES];
};

/* ---- the proof ---- */

static _Atomic int state;
enum { UNKNOWN, BUSY, READY, OFF };

static void
prove_objects(struct plumb_thread *thread, const struct plumb_python_frame *frame)
{
	static int tries;
	struct plumb_error error = { 0 };
	int expected = UNKNOWN, rc;

	if (!atomic_compare_exchange_strong(&state, &expected, BUSY))
		return;
	rc = plumb_python_objects_prove(frame, &error);
	if (rc > 0 && ++tries == TRIES)
		rc = plumb_fail(&error, PLUMB_ESYSTEM,
		                "modules are not shown: calls of torch.nn.Module do not look as "
		                "expected in CPython %s",
		                plumb_python_version());
	if (rc < 0)
		plumb_environment(thread, "module.off", error.message);
	atomic_store_explicit(&state, rc < 0 ? OFF : rc ? UNKNOWN : READY, memory_order_release);
}

static bool
is_ready(struct plumb_thread *thread, const struct plumb_python_frame *frame)
{
	int now = atomic_load_explicit(&state, memory_order_acquire);

	if (plumb_unlikely(now == UNKNOWN))
		prove_objects(thread, frame);
	/* A frame that is once taken for any other stays so in the cached stack: it is worth
	 * waiting for, microseconds, but not for ever (a forked child has no other thread). */
	for (int i = 0; plumb_unlikely(now != READY && now != OFF) && i < 10000; i++) {
		now = atomic_load_explicit(&state, memory_order_acquire);
		if (now == UNKNOWN)
			break;
		if (now == BUSY)
			sched_yield();
	}
	if (now != READY)
		return false;
	if (plumb_unlikely(!thread->modules))
		thread->modules = plumb_map(sizeof *thread->modules, true);
	return thread->modules != NULL;
}

/* ---- the modules that are known ---- */

static uint32_t
bucket_of(uint32_t root, const void *object)
{
	return (uint32_t)(plumb_mix((uintptr_t)object, root) >> 7) % BUCKETS;
}

/* What ROOT (0: any root) holds at OBJECT, as its tree was read last; 0: nothing known. */
PLUMB_HOT_CODE static uint32_t
find_module(const struct plumb_modules *known, uint32_t root, const void *object)
{
	for (uint32_t i = known->buckets[bucket_of(root, object)]; i; i = known->modules[i].next) {
		const struct module *m = &known->modules[i];

		if (m->object != object)
			continue;
		if (root ? m->root == root && m->generation == known->modules[root].generation
		         : m->root == i)
			return i;
	}
	return 0;
}

/* A new module under ROOT (0: a root itself); 0: no room. */
static uint32_t
add_module(struct plumb_modules *known, uint32_t root, const void *object)
{
	uint32_t index = known->count + 1, *bucket = &known->buckets[bucket_of(root, object)];
	struct module *m;

	if (index == MODULES)
		return 0;
	known->count = index;
	m = &known->modules[index];
	*m = (struct module){
		.object = object,
		.root = root ? root : index,
		.generation = root ? known->modules[root].generation : 1,
		.next = *bucket,
	};
	*bucket = index;
	return index;
}

/* Reads the tree of ROOT anew, parents before children and in the order of definition, so that a
 * module with several names gets the first. */
static void
scan_tree(struct plumb_modules *known, uint32_t root)
{
	struct {
		uint32_t module, next;
	} path[DEPTH];
	struct module *top = &known->modules[root];
	uint32_t depth = 1, first = known->count;

	top->generation++;
	top->scanned = true;
	path[0].module = root;
	path[0].next = 0;
	if (!plumb_python_members_find(top->object, &top->members))
		depth = 0;
	while (depth) {
		struct plumb_python_member link;
		uint32_t parent = path[depth - 1].module, child;

		if (!plumb_python_member_next(&known->modules[parent].members,
		                              &path[depth - 1].next, &link)) {
			depth--;
			continue;
		}
		if (link.value == top->object || find_module(known, root, link.value))
			continue;
		child = add_module(known, root, link.value);
		if (!child) {
			known->overflowed = true;
			break;
		}
		known->modules[child].parent = parent;
		known->modules[child].link = link;
		if (depth < DEPTH &&
		    plumb_python_members_find(link.value, &known->modules[child].members)) {
			path[depth].module = child;
			path[depth++].next = 0;
		}
	}
	top->held = known->count - first;
}

/* Whether MODULE is still where ROOT, which lives, held it. */
static bool
still_holds(const struct plumb_modules *known, uint32_t root, uint32_t module)
{
	uint32_t path[DEPTH + 1], depth = 0, parent = root;

	for (uint32_t i = module; i != root && depth <= DEPTH; i = known->modules[i].parent)
		path[depth++] = i;
	while (depth) {
		const struct module *container = &known->modules[parent];
		const struct module *m = &known->modules[path[--depth]];

		if (!plumb_python_members_hold(container->object, &container->members) ||
		    !plumb_python_member_holds(&m->link))
			return false;
		parent = path[depth];
	}
	return true;
}

/* Whether the tree of ROOT may be read again: that costs as much as it has modules, and a program
 * that changes its modules at every call would pay for it at every call. */
static bool
may_scan(struct plumb_modules *known, uint32_t root)
{
	uint32_t cost = known->modules[root].held / SCAN_SHARE;

	if (!known->modules[root].scanned)
		return true;
	if (known->credit < cost)
		return false;
	known->credit -= cost;
	return true;
}

/* ---- names ---- */

/* "h.0.attn" of a module that its root holds now. */
static plumb_id
path_name(struct plumb_thread *thread, const struct plumb_modules *known, uint32_t root,
          uint32_t module)
{
	uint32_t path[DEPTH + 1], depth = 0;
	char text[NAME_BYTES];
	size_t bytes = 0;

	for (uint32_t i = module; i != root && depth <= DEPTH; i = known->modules[i].parent)
		path[depth++] = i;
	while (depth && bytes + 2 < sizeof text) {
		const struct module *m = &known->modules[path[--depth]];

		if (bytes)
			text[bytes++] = '.';
		bytes += plumb_python_text(m->link.key, text + bytes, sizeof text - bytes);
	}
	return plumb_intern(thread, text, bytes);
}

/* Gives MODULE its class, and as long as it has no other name that of its class. */
static void
describe_module(struct plumb_thread *thread, struct module *m, const void *type, uint64_t hash)
{
	char text[NAME_BYTES];
	size_t name, bytes = plumb_python_class(type, text, sizeof text, &name);

	m->type = type;
	m->class_hash = hash;
	m->class = plumb_intern(thread, text, bytes);
	if (m->root == (uint32_t)(m - thread->modules->modules))
		m->name = plumb_intern(thread, text + name, bytes - name);
}

/* The root at OBJECT, made when missing; 0: no room. */
static uint32_t
root_of(struct plumb_thread *thread, const void *object, const void *type)
{
	struct plumb_modules *known = thread->modules;
	uint64_t hash = plumb_python_class_hash(type);
	uint32_t root = find_module(known, 0, object);

	if (!root)
		root = add_module(known, 0, object);
	if (!root)
		return 0;
	if (known->modules[root].type != type || known->modules[root].class_hash != hash) {
		known->modules[root].scanned = false;
		describe_module(thread, &known->modules[root], type, hash);
	}
	return root;
}

/* The module at OBJECT as ROOT holds it now, or 0. */
static uint32_t
held_by(struct plumb_modules *known, uint32_t root, const void *object)
{
	uint32_t module = known->modules[root].scanned ? find_module(known, root, object) : 0;

	if (module && still_holds(known, root, module))
		return module;
	if (!may_scan(known, root))
		return 0;
	scan_tree(known, root);
	return find_module(known, root, object);
}

/* The module that CALL calls under a root, named; NULL: no room. */
PLUMB_HOT_CODE static struct module *
look_up(struct plumb_thread *thread, const struct plumb_python_call *call, const void *root_object,
        const void *root_type)
{
	struct plumb_modules *known = thread->modules;
	uint32_t root, module;
	struct module *m;

	known->credit += known->credit < CREDIT_MAX;
	if (plumb_unlikely(known->count > MODULES - MODULES / 8)) {
		known->count = 0;
		memset(known->buckets, 0, sizeof known->buckets);
	}
	root = root_of(thread, root_object, root_type);
	if (!root || call->object == root_object)
		return root ? &known->modules[root] : NULL;
	module = held_by(known, root, call->object);
	if (!module)
		module = root_of(thread, call->object, call->type);
	if (!module)
		return NULL;
	m = &known->modules[module];
	if (m->root == module)
		return m;
	uint64_t hash = plumb_python_class_hash(call->type);
	if (m->type != call->type || m->class_hash != hash)
		describe_module(thread, m, call->type, hash);
	if (!m->name)
		m->name = path_name(thread, known, root, module);
	return m;
}

/* ---- calls ---- */

/* Which call of M under AROUND this is: 0 for the first, then 2, 3, … */
static uint32_t
count_call(const struct plumb_modules *known, struct module *m,
           const struct plumb_module_call *around)
{
	if (!around || m->root == (uint32_t)(m - known->modules))
		return 0;
	if (m->around != around->serial) {
		m->around = around->serial;
		m->calls = 0;
	}
	m->calls += m->calls < PLUMB_MODULE_CALLS_MAX;
	return m->calls > 1 ? m->calls : 0;
}

static void
tally_call(struct plumb_thread *thread, plumb_id node)
{
	struct plumb_arena *arena = &thread->arena;

	plumb_arena_tally(arena, PLUMB_SOURCE_MODULE, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(arena, PLUMB_SOURCE_MODULE,
	                  node == PLUMB_LOST ? arena->fate : PLUMB_FATE_ATTRIBUTED, 1);
	plumb_observe(thread, node, PLUMB_METRIC_MODULE_CALLS, thread->track, 1);
	if (plumb_unlikely(thread->modules->overflowed)) {
		thread->modules->overflowed = false;
		plumb_arena_tally(arena, PLUMB_SOURCE_MODULE, PLUMB_FATE_OVERFLOWED, 1);
	}
}

/* A call begins. Returns its context, 0 when it cannot be named. */
PLUMB_HOT_CODE static plumb_id
begin_call(struct plumb_thread *thread, const struct plumb_module_place *place,
           const struct plumb_python_frame *frame, const struct plumb_python_call *call)
{
	struct plumb_module_call *mine = &thread->calls[place->at];
	const struct plumb_module_call *around =
		place->inside ? &thread->calls[place->inside - 1] : NULL;
	const void *root = around ? around->root : call->object;
	const void *root_type = around ? around->root_type : call->type;
	struct module *m = look_up(thread, call, root, root_type);
	struct plumb_key key = { .kind = PLUMB_FRAME_MODULE, .flags = place->flags };
	plumb_id node;

	plumb_module_end(thread, place->inside);
	if (!m || !m->name)
		return 0;
	key.name = m->name;
	key.file = m->class;
	key.line = count_call(thread->modules, m, around);
	node = plumb_child(thread, place->parent, &key);
	*mine = (struct plumb_module_call){
		.frame = frame->frame,
		.object = call->object,
		.type = call->type,
		.mark = call->mark,
		.root = root,
		.root_type = root_type,
		.node = node,
		.outer = place->inside,
		.serial = ++thread->module_serial,
	};
	tally_call(thread, node);
	if (plumb_unlikely(thread->shapes)) {
		mine->start = plumb_ticks();
		thread->module_open = place->at + 1;
	}
	return node;
}

PLUMB_HOT_CODE bool
plumb_module_step(struct plumb_thread *thread, struct plumb_module_place *place,
                  const struct plumb_python_frame *frame, enum plumb_python_role role,
                  plumb_id *node)
{
	struct plumb_python_entry *entry = &thread->python[place->at];
	struct plumb_module_call *mine = &thread->calls[place->at];
	const struct plumb_python_entry *around =
		place->inside ? &thread->python[place->inside - 1] : NULL;
	bool direct = around && around->node == place->parent;
	struct plumb_python_call call;

	if (!is_ready(thread, frame))
		return false;
	if (role == PLUMB_PYTHON_MODULE_INNER) {
		*node = place->parent;
		entry->is_call = false;
		return direct;
	}
	plumb_python_call(frame, &call);
	if (!call.object || !call.type)
		return false;
	if (direct && around->is_call && thread->calls[place->inside - 1].object == call.object) {
		*node = place->parent;
		entry->is_call = false;
		return true;
	}
	/* It may have moved on, from a hook to the next. */
	if (!place->moved && place->at < thread->python_seen && entry->is_call &&
	    mine->object == call.object && entry->code == frame->code &&
	    entry->parent == place->parent && mine->frame == frame->frame &&
	    mine->type == call.type && mine->mark == call.mark) {
		*node = entry->node;
	} else {
		*node = begin_call(thread, place, frame, &call);
		place->moved = true;
		entry->is_call = *node != 0;
	}
	if (*node)
		place->inside = place->at + 1;
	return *node != 0;
}

void
plumb_module_end(struct plumb_thread *thread, uint32_t inside)
{
	while (plumb_unlikely(thread->module_open > inside)) {
		uint32_t at = thread->module_open - 1;

		plumb_shape_module(thread, thread->calls[at].node, thread->calls[at].start);
		thread->module_open = thread->calls[at].outer;
	}
}
