/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a type, a dict and its keys, a tuple, a cell. The public structs have not moved since
 * 3.9; a dict's keys changed with 3.11, where an object keeps its dict with 3.11, 3.12 and 3.13,
 * and its values' own head with 3.13. Everything is proved on the first module that is called.
 */
#include "collect/monitor/python_object.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/table.h"

enum {
	/* Of an object that has a size, a type, a tuple, a dict, a cell, a str. */
	SIZE = 16,
	TYPE_NAME = 24,
	TYPE_DICT = 264,
	TYPE_DICT_OFFSET = 288,
	TYPE_MRO = 344,
	DICT_VERSION = 24,
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	CELL_VALUE = 16,
	TEXT_HASH = 24,
	/* Of a type's flags. */
	MANAGED_DICT = 1 << 4,
	DICT_SUBCLASS = 1 << 29,
	/* Of a code object of 3.9 and 3.10. */
	CODE_LOCALS = 28,
	CODE_CELLS = 88,
	CODE_CELL_ARGUMENTS = 96,
	/* Bounds: nothing that is real is larger. */
	MRO_MAX = 512,
	ENTRIES_MAX = 1 << 20,
	KEYS_MAX = 4096,
	CLASS_BYTES = 256,
	KIND_GENERAL = 0, /* entries begin with a hash */
};

static struct {
	const void *cell, *tuple, *dict, *none;
	uint16_t items;     /* of a tuple */
	const void *module; /* torch.nn.Module; NULL until all is proved */
	/* The str "_modules", where it is the one that code uses, too: it stays. */
	const void *modules;
} known;

enum plumb_python_role
plumb_python_role(const struct plumb_python_symbol *symbol)
{
	static const char file[] = "torch/nn/modules/module.py";
	size_t bytes = strlen(symbol->file);
	const char *name = strrchr(symbol->function, '.');

	if (bytes < sizeof file - 1 || strcmp(symbol->file + bytes - (sizeof file - 1), file))
		return PLUMB_PYTHON_PLAIN;
	name = name ? name + 1 : symbol->function;
	if (!strcmp(name, "_call_impl") || !strcmp(name, "_wrapped_call_impl"))
		return PLUMB_PYTHON_MODULE_CALL;
	return strcmp(name, "inner") ? PLUMB_PYTHON_PLAIN : PLUMB_PYTHON_MODULE_INNER;
}

/* ---- reading with care ---- */

/* Copies BYTES from FROM; false when they cannot be read. */
static bool
copy_bytes(const void *from, void *into, size_t bytes)
{
	static _Atomic bool refused; /* by a container */
	struct iovec local = { into, bytes }, remote = { (void *)(uintptr_t)from, bytes };

	if ((uintptr_t)from < 4096)
		return false;
	if (!refused) {
		/* The kernel's number of this process, past any cache: it may be a forked child. */
		pid_t self = (pid_t)syscall(SYS_getpid);
		ssize_t got = process_vm_readv(self, &local, 1, &remote, 1, 0);
		if (got >= 0 || errno == EFAULT)
			return got == (ssize_t)bytes;
		refused = true;
	}
	/* As in python_layout.c: the kernel reads 8 bytes and then refuses the call. */
	for (uintptr_t at = (uintptr_t)from & ~(uintptr_t)7; at < (uintptr_t)from + bytes;
	     at = (at | 4095) + 1)
		if (syscall(SYS_rt_sigprocmask, -1, at, NULL, (size_t)8) && errno == EFAULT)
			return false;
	memcpy(into, from, bytes);
	return true;
}

static bool
copy_pointer(const void *base, int64_t offset, const char **value)
{
	return base && copy_bytes((const char *)base + offset, value, sizeof *value);
}

/* ---- the keys of a dict ---- */

struct keys {
	const char *entries;
	uint32_t count, entry_bytes;
	bool hashes; /* before the key */
};

/* Reads the head of KEYS. */
static bool
read_keys(const char *keys, struct keys *into)
{
	int64_t head[5];
	uint64_t index_bytes;
	unsigned char sizes[8];

	if (!copy_bytes(keys, head, sizeof head))
		return false;
	if (plumb_python_minor() < 11) { /* references, size, look-up, usable, entries */
		if (head[1] <= 0 || head[1] > ENTRIES_MAX)
			return false;
		index_bytes = (uint64_t)head[1] * (head[1] <= 0xff ? 1 : head[1] <= 0xffff ? 2 : 4);
		into->entries = keys + 40 + index_bytes;
		into->hashes = true;
		if (head[4] < 0 || head[4] > head[1])
			return false;
		into->count = (uint32_t)head[4];
	} else { /* references, logarithms of sizes and kind, usable, entries */
		memcpy(sizes, &head[1], sizeof sizes);
		if (sizes[1] > 24 || sizes[2] > 2 || head[3] < 0 || head[3] > ENTRIES_MAX)
			return false;
		into->entries = keys + 32 + ((size_t)1 << sizes[1]);
		into->hashes = sizes[2] == KIND_GENERAL;
		into->count = (uint32_t)head[3];
	}
	into->entry_bytes = into->hashes ? 24 : 16;
	return true;
}

/* Where entry INDEX has its key; the value, of a dict that is not split, follows. */
static const char *
entry_at(const struct keys *keys, uint32_t index)
{
	return keys->entries + (size_t)index * keys->entry_bytes + (keys->hashes ? 8 : 0);
}

/* Whether the object KEY is a str with just the ASCII text NAME. */
static bool
is_name(const char *key, const char *name)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	int64_t length;
	int32_t state;
	char text[32];
	size_t bytes = strlen(name);

	if (bytes > sizeof text || !copy_bytes(key + layout->length, &length, sizeof length) ||
	    length != (int64_t)bytes || !copy_bytes(key + layout->state, &state, sizeof state))
		return false;
	if (!(state & PLUMB_PYTHON_TEXT_COMPACT) || !(state & PLUMB_PYTHON_TEXT_ASCII))
		return false;
	return copy_bytes(key + layout->ascii_data, text, bytes) && !memcmp(text, name, bytes);
}

/* The index of NAME among KEYS, or -1. */
static int64_t
find_key(const struct keys *keys, const char *name)
{
	for (uint32_t i = 0; i < keys->count && i < KEYS_MAX; i++) {
		const char *key;

		if (!copy_bytes(entry_at(keys, i), &key, sizeof key))
			return -1;
		if (key && is_name(key, name))
			return i;
	}
	return -1;
}

/* As find_key for "_modules", which is mostly one and the same object. */
static int64_t
find_modules(const struct keys *keys)
{
	unsigned char entries[64 * 24];
	uint32_t count = keys->count < 64 ? keys->count : 64;

	if (copy_bytes(keys->entries, entries, (size_t)count * keys->entry_bytes))
		for (uint32_t i = 0; i < count; i++)
			if (known.modules &&
			    plumb_python_pointer(entries, entry_at(keys, i) - keys->entries) ==
			            known.modules)
				return i;
	return find_key(keys, "_modules");
}

/* ---- the dict of an object ---- */

/* Where the object's own dict is named, or NULL. */
static const char *
dict_place(const char *object, const char *type)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	int64_t flags, offset;

	if (!copy_bytes(type + layout->flags, &flags, sizeof flags) ||
	    !copy_bytes(type + TYPE_DICT_OFFSET, &offset, sizeof offset))
		return NULL;
	if (plumb_python_minor() >= 11 && flags & MANAGED_DICT)
		return object - 24;
	return offset > 0 && offset < 1 << 16 && offset % 8 == 0 ? object + offset : NULL;
}

static bool
is_dict(const char *object)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	const char *type;
	int64_t flags;

	return copy_pointer(object, layout->type, &type) &&
	       copy_bytes(type + layout->flags, &flags, sizeof flags) && flags & DICT_SUBCLASS;
}

/* Reads what DICT is made of; VALUES is NULL unless it shares its keys. */
static bool
read_dict(const char *dict, const char **at, const char **values, struct keys *keys)
{
	const char *both[2];

	if (!copy_bytes(dict + DICT_KEYS, both, sizeof both) || !read_keys(both[0], keys))
		return false;
	*at = both[0];
	*values = both[1];
	return true;
}

/* Where the value of entry INDEX is. */
static const char *
value_place(const struct keys *keys, const char *values, uint32_t index)
{
	if (!values)
		return entry_at(keys, index) + 8;
	/* From 3.13 on four bytes and a gap come first. */
	return values + (plumb_python_minor() >= 13 ? 8 : 0) + (size_t)index * 8;
}

bool
plumb_python_members_find(const void *object, struct plumb_python_members *m)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	const char *type, *values;
	struct keys keys;
	int64_t index;

	if (!copy_pointer(object, layout->type, &type))
		return false;
	m->dict_at = dict_place(object, type);
	/* In 3.12 an odd word is no dict yet: its values are kept elsewhere. */
	if (!m->dict_at || !copy_pointer(m->dict_at, 0, &m->dict) || (uintptr_t)m->dict & 7 ||
	    !is_dict(m->dict) || !read_dict(m->dict, &m->keys, &m->values, &keys))
		return false;
	index = find_modules(&keys);
	if (index < 0)
		return false;
	m->slot = value_place(&keys, m->values, (uint32_t)index);
	return copy_pointer(m->slot, 0, &m->members) && is_dict(m->members) &&
	       read_dict(m->members, &m->member_keys, &values, &keys) && !values;
}

bool
plumb_python_members_hold(const void *object, const struct plumb_python_members *m)
{
	(void)object; /* dict_at lies in it */
	return plumb_python_pointer(m->dict_at, 0) == m->dict &&
	       plumb_python_pointer(m->dict, DICT_KEYS) == m->keys &&
	       plumb_python_pointer(m->dict, DICT_VALUES) == m->values &&
	       plumb_python_pointer(m->slot, 0) == m->members &&
	       plumb_python_pointer(m->members, DICT_KEYS) == m->member_keys;
}

bool
plumb_python_member_next(const struct plumb_python_members *members, uint32_t *index,
                         struct plumb_python_member *member)
{
	struct keys keys;

	if (!read_keys(members->member_keys, &keys))
		return false;
	while (*index < keys.count) {
		const char *both[2];

		member->at = entry_at(&keys, (*index)++);
		if (!copy_bytes(member->at, both, sizeof both))
			return false;
		if (!both[0] || !both[1] || both[1] == known.none)
			continue;
		member->key = both[0];
		member->value = both[1];
		if (copy_bytes(both[0] + TEXT_HASH, &member->hash, sizeof member->hash))
			return true;
	}
	return false;
}

bool
plumb_python_member_holds(const struct plumb_python_member *member)
{
	return plumb_python_pointer(member->at, 0) == member->key &&
	       plumb_python_pointer(member->at, 8) == member->value &&
	       plumb_python_size(member->key, TEXT_HASH) == member->hash;
}

/* ---- calls ---- */

/* Up to 3.10 a cell has a place of its own; the argument's own place is then empty. */
static const char *
cell_of_argument(const char *frame, const char *code, int64_t argument)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	const char *arguments = plumb_python_pointer(code, CODE_CELL_ARGUMENTS);
	const char *cells = plumb_python_pointer(code, CODE_CELLS);
	int64_t count = arguments && cells ? plumb_python_size(cells, SIZE) : 0;

	for (int64_t i = 0; i < count; i++)
		if (plumb_python_size(arguments, (size_t)i * 8) == argument)
			return plumb_python_pointer(
				frame,
				layout->locals +
					(size_t)(plumb_python_int(code, CODE_LOCALS) + i) * 8);
	return NULL;
}

/* Local variable INDEX of a frame, which is an argument; NULL: it has no value. */
static inline const char *
argument_of(const struct plumb_python_frame *frame, size_t index)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	/* References carry tags from 3.14 on, as code does. */
	const char *value = (const char *)((uintptr_t)plumb_python_pointer(
						   frame->frame, layout->locals + index * 8) &
	                                   ~(uintptr_t)layout->tag);

	if (plumb_unlikely(!value) && layout->bytecode != PLUMB_PYTHON_ABSENT)
		value = cell_of_argument(frame->frame, frame->code, (int64_t)index);
	if (value && plumb_unlikely(plumb_python_pointer(value, layout->type) == known.cell))
		value = plumb_python_pointer(value, CELL_VALUE);
	return value;
}

PLUMB_HOT_CODE void
plumb_python_call(const struct plumb_python_frame *frame, struct plumb_python_call *call)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	enum { POSITIONAL = 1, BY_KEYWORD = 2, LAST_WITH_VERSION = 13 };
	bool versions = plumb_python_minor() <= LAST_WITH_VERSION;
	const char *rest;

	call->object = argument_of(frame, 0);
	call->type = call->object ? plumb_python_pointer(call->object, layout->type) : NULL;
	call->mark = 0;
	rest = argument_of(frame, versions ? BY_KEYWORD : POSITIONAL);
	if (!rest)
		return;
	if (versions && plumb_python_pointer(rest, layout->type) == known.dict)
		call->mark = (uint64_t)plumb_python_size(rest, DICT_VERSION);
	else if (!versions && plumb_python_pointer(rest, layout->type) == known.tuple &&
	         plumb_python_size(rest, SIZE) > 0)
		call->mark = (uintptr_t)plumb_python_pointer(rest, known.items);
}

/* ---- classes ---- */

/* Class INDEX in the order in which TYPE looks for attributes, or NULL. */
static const char *
class_in_order(const char *type, int64_t index)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	const char *mro, *of, *found;
	int64_t count;

	if (!copy_pointer(type, TYPE_MRO, &mro) || !copy_pointer(mro, layout->type, &of) ||
	    of != known.tuple || !copy_bytes(mro + SIZE, &count, sizeof count) || index >= count ||
	    index >= MRO_MAX)
		return NULL;
	return copy_pointer(mro, known.items + index * 8, &found) ? found : NULL;
}

/* The value of NAME in the class's own dict, or NULL. */
static const char *
class_attribute(const char *type, const char *name)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	const char *dict, *of, *at, *values, *value;
	struct keys keys;
	int64_t index;

	if (!copy_pointer(type, TYPE_DICT, &dict) || !copy_pointer(dict, layout->type, &of) ||
	    of != known.dict || !read_dict(dict, &at, &values, &keys))
		return NULL;
	index = find_key(&keys, name);
	if (index < 0 ||
	    !copy_bytes(value_place(&keys, values, (uint32_t)index), &value, sizeof value))
		return NULL;
	return value;
}

/* The class's own name. */
static size_t
class_name(const void *type, char *text, size_t size)
{
	const char *name;

	if (copy_pointer(type, TYPE_NAME, &name) && copy_bytes(name, text, 1)) {
		size_t bytes = strnlen(name, size - 1);
		memcpy(text, name, bytes);
		text[bytes] = '\0';
		return bytes;
	}
	return (size_t)snprintf(text, size, "?");
}

size_t
plumb_python_class(const void *type, char *text, size_t size, size_t *name)
{
	const char *module = class_attribute(type, "__module__");
	size_t bytes = 0;

	if (module && size > 2 * CLASS_BYTES) {
		bytes = plumb_python_text(module, text, size - CLASS_BYTES);
		if (strcmp(text, "<unknown>"))
			text[bytes++] = '.';
		else
			bytes = 0;
	}
	*name = bytes;
	return bytes + class_name(type, text + bytes, size - bytes);
}

uint64_t
plumb_python_class_hash(const void *type)
{
	const char *name = plumb_python_pointer(type, TYPE_NAME);
	return plumb_hash_text(name, strnlen(name, CLASS_BYTES));
}

/* ---- the proof ---- */

static bool
find_types(void)
{
	const struct {
		const char *name;
		const void **to;
	} symbols[] = {
		{ "PyCell_Type", &known.cell },
		{ "PyTuple_Type", &known.tuple },
		{ "PyDict_Type", &known.dict },
		{ "_Py_NoneStruct", &known.none },
	};

	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
		if (!(*symbols[i].to = plumb_python_symbol(symbols[i].name)))
			return false;
	return true;
}

/* The tuple of classes begins with the class itself: where? */
static bool
find_items(const char *type)
{
	const char *mro, *first;

	for (uint16_t items = 24; items <= 32; items += 8)
		if (copy_pointer(type, TYPE_MRO, &mro) && copy_pointer(mro, items, &first) &&
		    first == type) {
			known.items = items;
			return true;
		}
	return false;
}

/* Whether the class TYPE itself defines NAME as the function of CODE. */
static bool
defines_function(const char *type, const char *name, const void *code)
{
	const char *function = class_attribute(type, name), *part;

	for (int offset = 16; function && offset <= 64; offset += 8)
		if (copy_pointer(function, offset, &part) && part == code)
			return true;
	return false;
}

/* The class of OBJECT that defines what CODE is. */
static const char *
defining_class(const char *type, const void *code)
{
	const char *class, *name;
	char text[8] = "";

	for (int64_t i = 0; (class = class_in_order(type, i)); i++) {
		if (!defines_function(class, "_call_impl", code) &&
		    !defines_function(class, "_wrapped_call_impl", code))
			continue;
		if (copy_pointer(class, TYPE_NAME, &name) && copy_bytes(name, text, 7) &&
		    !strcmp(text, "Module"))
			return class;
	}
	return NULL;
}

/* Keeps the key of "_modules", if the interpreter knows no other str of that text. */
static void
keep_name(const struct plumb_python_members *members)
{
	enum { INTERNED = 3 };
	const char *at, *values, *key;
	struct keys keys;
	int64_t index;
	int32_t state;

	if (!read_dict(members->dict, &at, &values, &keys))
		return;
	index = find_key(&keys, "_modules");
	if (index >= 0 && copy_bytes(entry_at(&keys, (uint32_t)index), &key, sizeof key) &&
	    copy_bytes(key + plumb_python_layout_found()->state, &state, sizeof state) &&
	    state & INTERNED)
		known.modules = key;
}

int
plumb_python_objects_prove(const struct plumb_python_frame *frame, struct plumb_error *error)
{
	const struct plumb_python_layout *layout = plumb_python_layout_found();
	struct plumb_python_members members;
	const char *object, *type, *module;

	if (!find_types())
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "this Python does not export its types; use a build of "
		                  "python.org's sources to see modules");
	/* The first local of a running call is an object, or a cell with one; see argument_of. */
	if (!copy_bytes((const char *)frame->frame + layout->locals, &object, sizeof object))
		return 1;
	object = (const char *)((uintptr_t)object & ~(uintptr_t)layout->tag);
	if (object && !copy_pointer(object, layout->type, &type))
		return 1;
	object = argument_of(frame, 0);
	if (!object || !copy_pointer(object, layout->type, &type) || !find_items(type))
		return 1;
	module = defining_class(type, frame->code);
	if (!module || !plumb_python_members_find(object, &members) ||
	    !plumb_python_members_hold(object, &members))
		return 1;
	keep_name(&members);
	known.module = module;
	return 0;
}
