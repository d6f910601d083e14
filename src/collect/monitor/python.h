/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython frames of the calling thread, read without the GIL: the thread is blocked in our
 * callback, so its own frames cannot change. CPython 3.9 to 3.14, static interpreters and libpython
 * alike. The layouts are a table for 3.9–3.12 and _Py_DebugOffsets from 3.13 on; anything else is
 * refused.
 */
#ifndef PLUMB_COLLECT_MONITOR_PYTHON_H
#define PLUMB_COLLECT_MONITOR_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "region/layout.h"

/* A frame that is not looked at yet. `code` stays valid while the frame is on the stack. */
struct plumb_python_frame {
	const void *code;
	const void *frame; /* as a mark, see plumb_python_top */
	int32_t lasti; /* byte offset of the current instruction, as PyCode_Addr2Line takes it */
};

/* What tells a code object from another one that was later made at its address. Its own parts may
 * come back at their addresses, too: the last word counts what was freed there. */
struct plumb_python_identity {
	const void *file, *name, *lines;
	int32_t first_line;
	uint32_t freed;
};

/* Counts the code objects that were freed: while it stays, no code object has come to another's
 * address. 0: not counted, so compare identities each time. */
extern _Atomic uint32_t plumb_python_codes_freed;

struct plumb_python_symbol {
	char file[4096];     /* UTF-8, cut at a character when longer */
	char function[1024]; /* qualified name where the version has it (3.11), else the name */
	uint32_t line;       /* 0 unknown */
};

/* Finds the interpreter in this process. 0: ready (also when it was before). 1: no Python here yet.
 * Negative: refused, ERROR says why (unknown version, free-threaded build, no symbols). */
int plumb_python_attach(struct plumb_error *error);
bool plumb_python_ready(void);

/* Does an interpreter run in this process? One of a libpython that was loaded privately is known
 * once plumb_python_attach has met it. A signal handler may ask. */
bool plumb_python_runs(void);
/* Finds what plumb_python_runs asks. Once, outside of signal handlers. */
void plumb_python_look(void);

/* In a forked child: a thread that was attaching is gone. */
void plumb_python_forked(void);
/* What was found, once it is ready: the layout, and a symbol of the interpreter (NULL: none). */
struct plumb_python_layout;
const struct plumb_python_layout *plumb_python_layout_found(void);
void *plumb_python_symbol(const char *name);
/* Tells other processes how to read this one's frames; what was told stays. False: that is not
 * known. Async-signal-safe. */
bool plumb_python_publish(struct plumb_region_python *to);
int plumb_python_minor(void);           /* 11 of 3.11 */
const char *plumb_python_version(void); /* "3.11.7", or NULL */

/* See python_task.c: tells task.h where coroutines take turns, of CPython 3.MINOR, and greenlets,
 * whose extension module is LIBRARY (a handle of dlopen). */
void plumb_python_watch_tasks(int minor);
void plumb_python_watch_greenlets(void *library);

/* The calling thread's innermost frame, as an opaque mark; NULL when it runs no Python, or the
 * interpreter is finalising. A mark changes when a call is entered and comes back when it returns.
 * A few nanoseconds. */
const void *plumb_python_top(void);

/* The calling thread's thread state and CPython's minor version; NULL as plumb_python_top. */
const char *plumb_python_state(int *minor);

/* As plumb_python_top for use in a signal handler that interrupted the calling thread at PC: at any
 * instruction, also of the interpreter's own. Frames from it up to STOP can be walked. Keeps errno
 * not. See python_signal.c. */
const void *plumb_python_interrupted(uintptr_t pc, const void *stop);
bool plumb_python_walkable(const void *top, const void *stop);
/* Finds what that needs, once; HANDLE is the interpreter's. */
void plumb_python_signal_prepare(void *handle);
/* Samples will be taken; plumb_stack_prepare has run. */
void plumb_python_signal_begin(void);

/* Whether the frames from TOP outwards come to STOP. */
bool plumb_python_reaches(const void *top, const void *stop);

/* Collects frames from TOP outwards, innermost first, up to but without the frame STOP (NULL: all
 * of them), at most MAX. Returns how many; *truncated tells whether more were there.
 * Interpreter-internal frames are left out. */
size_t plumb_python_walk(const void *top, const void *stop, struct plumb_python_frame *frames,
                         size_t max, bool *truncated);

/* The addresses of the same frames, and of the interpreter's own, at most MAX. See
 * python_frame.h. */
size_t plumb_python_chain(const void *top, const void *stop, const void **chain, size_t max,
                          bool *truncated);

/*
 * Where the calling thread's C stack enters TOP, its innermost Python frame: an address in the C
 * frame that evaluates it, between LOW and HIGH; 0: there is none. A version that leaves no such
 * address (3.9) gives the function that evaluates in *function, else NULL.
 */
uintptr_t plumb_python_stack(const void *top, uintptr_t low, uintptr_t high, const void **function);

void plumb_python_identify(const void *code, struct plumb_python_identity *identity);

/* The str TEXT as UTF-8, as much as fits into OUT of SIZE bytes; returns its length. What is no str
 * gives "<unknown>". TEXT must be alive. */
size_t plumb_python_text(const void *text, char *out, size_t size);

/* Makes text of a frame. Only while the frame is on the calling thread's stack. */
void
plumb_python_symbolise(const struct plumb_python_frame *frame, struct plumb_python_symbol *symbol);

#endif
