/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython 3.9 to 3.14 keep what plumb reads, in bytes, and the proof that they do. For
 * monitor/python.c only.
 *
 *	struct plumb_python_layout layout;
 *	if (plumb_python_layout_find(&version, runtime, &layout, error) < 0)
 *		return …;                                   // an unknown interpreter
 *	if (plumb_python_layout_prove(&layout, &api, thread_state, error) == 0)
 *		…                                           // its frames may be read
 */
#ifndef PLUMB_COLLECT_MONITOR_PYTHON_LAYOUT_H
#define PLUMB_COLLECT_MONITOR_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "region/python.h"

/* Owners of a frame. A generator's frame is never incomplete; from INTERNAL on up a frame is the
 * interpreter's own (3.12 and newer). */
enum {
	PLUMB_PYTHON_OWNER_GENERATOR = 1,
	PLUMB_PYTHON_OWNER_INTERNAL = 3,
	PLUMB_PYTHON_OWNER_LAST = 4,
};

struct plumb_python_layout {
	uint16_t entry;    /* in the thread state: the innermost frame … */
	uint16_t indirect; /* … or, where there is this, what holds it at this offset */
	uint16_t stack;    /* 3.10 to 3.12: in the thread state, an address in the C frame of the
	                   innermost evaluation */
	/* In a frame. `instruction`: a pointer where there is `first_instruction`, else an int. */
	uint16_t previous, code, instruction, owner;
	uint16_t tag;         /* low bits of the code pointer that are no address */
	uint16_t lasti_scale; /* bytes in a unit of an int instruction */
	uint16_t locals;      /* the first local variable */
	/* In a code object. */
	uint16_t file, name, qualified_name, lines, first_line;
	uint16_t bytecode;          /* 3.9, 3.10: the bytes object with the instructions */
	uint16_t first_instruction; /* 3.11 and newer: the instructions */
	uint16_t traceable;         /* 3.11 and newer: number of the first traceable instruction */
	/* In any object, a type, a str. */
	uint16_t type, flags;
	uint16_t length, state;
	uint16_t ascii_data, wide_data;
	/* For readers outside the process; ABSENT where they could not be found. */
	uint16_t thread_id;  /* in the thread state: pthread_self() of its thread */
	uint16_t bytes_data; /* in a bytes object: its first byte */
};

struct plumb_python_release {
	int major, minor, micro;
	bool final;    /* no alpha or beta: their layouts still move */
	char text[32]; /* "3.11.7" */
};

/* What of the interpreter's own interface the proof uses. */
struct plumb_python_api {
	const void *code_type, *unicode_type, *bytes_type;
	int (*line)(const void *code, int lasti); /* PyCode_Addr2Line */
};

/* Reads what Py_GetVersion tells. False: that is no version. */
bool plumb_python_release_parse(const char *text, struct plumb_python_release *release);

/* RUNTIME is _PyRuntime, whose beginning 3.13 and newer publish for debuggers; it may be NULL. */
int plumb_python_layout_find(const struct plumb_python_release *release, const void *runtime,
                             struct plumb_python_layout *layout, struct plumb_error *error);

/* Reads the calling thread's frames through LAYOUT, each address probed first, and compares what
 * it finds with what the interpreter says. 0: it fits. 1: the thread runs no Python that could
 * prove it. Negative: it does not fit. */
int plumb_python_layout_prove(const struct plumb_python_layout *layout,
                              const struct plumb_python_api *api, const void *thread_state,
                              struct plumb_error *error);

/* Whether a walk from TOP outwards up to STOP reads nothing but frames and code objects, each
 * address probed first: for a TOP that is not known to be a frame. Costs system calls, and keeps
 * errno not. */
bool
plumb_python_layout_walkable(const struct plumb_python_layout *layout,
                             const struct plumb_python_api *api, const void *top, const void *stop);

/* Whether 8 bytes at BASE + OFFSET can be read. Keeps errno not. */
bool plumb_python_readable(const void *base, size_t offset);

/* Finds `thread_id` and `bytes_data` in what plumb_python_layout_prove found right: SELF is the
 * calling thread's pthread_self(), BYTES_AT the interpreter's PyBytes_AsString or NULL. */
void plumb_python_layout_widen(struct plumb_python_layout *layout, const void *thread_state,
                               uint64_t self, char *(*bytes_at)(void *bytes));

/* ---- reading foreign memory ---- */

static inline const char *
plumb_python_pointer(const void *base, size_t offset)
{
	const char *value;
	memcpy(&value, (const char *)base + offset, sizeof value);
	return value;
}

static inline int32_t
plumb_python_int(const void *base, size_t offset)
{
	int32_t value;
	memcpy(&value, (const char *)base + offset, sizeof value);
	return value;
}

static inline int64_t
plumb_python_size(const void *base, size_t offset)
{
	int64_t value;
	memcpy(&value, (const char *)base + offset, sizeof value);
	return value;
}

/* Whether TYPE is str or a class made from it. */
static inline bool
plumb_python_is_text(const struct plumb_python_layout *layout, const void *unicode_type,
                     const void *type)
{
	return type == unicode_type ||
	       (type && plumb_python_size(type, layout->flags) & (int64_t)PLUMB_PYTHON_TEXT_TYPE);
}

#endif
