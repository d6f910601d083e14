/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one frame of CPython, in two steps: a caller that knows most frames of a stack from
 * earlier need not look at their code objects, which costs two cache lines each. Private to
 * python.c and python_context.c.
 */
#ifndef PLUMB_COLLECT_MONITOR_PYTHON_FRAME_H
#define PLUMB_COLLECT_MONITOR_PYTHON_FRAME_H

#include "collect/monitor/python.h"
#include "collect/monitor/python_layout.h"

/* What a walk reads on each step. */
struct plumb_python_path {
	uint32_t previous, code, instruction, owner, first_instruction, traceable, type;
	int32_t scale;
	uintptr_t tag;
	const void *code_type;
	bool interpreter_frames; /* 3.11 and newer */
};
/* Written before plumb_python_ready says true. */
extern struct plumb_python_path plumb_python_path;

static inline int64_t
plumb_python_lasti(const struct plumb_python_path *path, const char *frame, uintptr_t code)
{
	if (path->interpreter_frames)
		return (int64_t)((uintptr_t)plumb_python_pointer(frame, path->instruction) -
		                 (code + path->first_instruction));
	return (int64_t)plumb_python_int(frame, path->instruction) * path->scale;
}

/* Whether FRAME belongs to the interpreter, not to the program. */
static inline bool
plumb_python_is_internal(const struct plumb_python_path *path, const char *frame)
{
	return path->interpreter_frames &&
	       (unsigned char)frame[path->owner] >= PLUMB_PYTHON_OWNER_INTERNAL;
}

/* Whether FRAME may be one that the program itself would see, and if so, where it is. Reads nothing
 * but the frame. */
static inline bool
plumb_python_read(const struct plumb_python_path *path, const char *frame,
                  struct plumb_python_frame *into)
{
	if (plumb_python_is_internal(path, frame))
		return false;
	uintptr_t code = (uintptr_t)plumb_python_pointer(frame, path->code) & ~path->tag;
	if (__builtin_expect(!code, 0))
		return false;
	int64_t lasti = plumb_python_lasti(path, frame, code);
	into->code = (const void *)code;
	into->frame = frame;
	into->lasti = lasti >= -2 && lasti <= INT32_MAX ? (int32_t)lasti : -1;
	return true;
}

/* Not yet in its body: CPython's own stacks leave it out too, unless a generator is resumed. */
static inline bool
plumb_python_is_early(const struct plumb_python_path *path, const struct plumb_python_frame *frame)
{
	return path->interpreter_frames &&
	       plumb_python_lasti(path, frame->frame, (uintptr_t)frame->code) <
	               2 * (int64_t)plumb_python_int(frame->code, path->traceable);
}

/* Whether FRAME, which was read, is one by its code object, too. Unless it is early, that depends
 * on the code and lasti alone. */
static inline bool
plumb_python_is_traced(const struct plumb_python_path *path, const struct plumb_python_frame *frame)
{
	return plumb_python_pointer(frame->code, path->type) == path->code_type &&
	       (!plumb_python_is_early(path, frame) ||
	        ((const unsigned char *)frame->frame)[path->owner] == PLUMB_PYTHON_OWNER_GENERATOR);
}

#endif
