/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded objects with their tables. Private to src/collect/stack. */
#ifndef PLUMB_COLLECT_STACK_OBJECTS_H
#define PLUMB_COLLECT_STACK_OBJECTS_H

#include "collect/stack/eh_frame.h"
#include "collect/stack/stack.h"

struct plumb_stack_code {
	struct plumb_stack_object object; /* first: one is found by the other's address */
	const void *headers; /* tell it from another object that was later loaded there */
	bool stays;          /* the program, the vDSO: never unloaded */
	bool internal;       /* plumb, the driver or CUPTI */
	bool has_tables;
	bool is_go; /* its Go functions have no tables, but frame pointers */
	struct plumb_eh_image image;
};

/* As plumb_stack_object_of. */
struct plumb_stack_code *plumb_stack_code_of(uintptr_t address);

/* The same, outside of handlers: looks for new objects when none is known there. */
struct plumb_stack_code *plumb_stack_code_now(uintptr_t address);

/* Reads the list of objects for the first time. */
bool plumb_stack_objects_begin(void);

/* Whether ADDRESS may lie in a loaded object at all. Safe in handlers. */
bool plumb_stack_is_loaded(uintptr_t address);

/* Whether ADDRESS still lies in CODE, as far as a handler can tell: an object may have gone since
 * the list was read, and tables that are gone must not be read. */
bool plumb_stack_still_there(const struct plumb_stack_code *code, uintptr_t address);

#endif
