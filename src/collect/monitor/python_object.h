/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of CPython 3.9 to 3.14 read without the GIL: who receives the call that a frame runs, and
 * what the dict of `_modules` in an object's own dict holds. For collect/module.c.
 *
 * Two ways to read. The slow ones (find, next, class) copy through the kernel, which refuses a bad
 * address: another thread may change a dict meanwhile, and then they find nothing or nonsense, but
 * do not fault. What they find is evidence: where each pointer on the way lay, and its value. The
 * quick ones (…_hold) load it again, from an object that is known to live towards the inside: as
 * long as each place still holds what it held, what it points to lives.
 */
#ifndef PLUMB_COLLECT_MONITOR_PYTHON_OBJECT_H
#define PLUMB_COLLECT_MONITOR_PYTHON_OBJECT_H

#include "collect/monitor/python.h"
#include "collect/monitor/python_layout.h"

/* What calls a module in torch/nn/modules/module.py. */
enum plumb_python_role {
	PLUMB_PYTHON_PLAIN = 0,
	PLUMB_PYTHON_MODULE_CALL,  /* Module._call_impl, Module._wrapped_call_impl */
	PLUMB_PYTHON_MODULE_INNER, /* Module._call_impl.<locals>.inner */
};
enum plumb_python_role plumb_python_role(const struct plumb_python_symbol *symbol);

/*
 * FRAME runs a PLUMB_PYTHON_MODULE_CALL. Reads it, its receiver, its class and its dict in every
 * way that is used later and compares with what they must be. 0: all fits. 1: nothing is proved
 * (this frame is unlike any that could prove it). Negative: refused, ERROR says why; it does not
 * fit, and nothing else may be called. Once proved, it is not asked again.
 */
int plumb_python_objects_prove(const struct plumb_python_frame *frame, struct plumb_error *error);

/*
 * The call that FRAME (on the calling thread's stack) runs: who receives it (NULL: nobody), its
 * type, and what tells the call from another one of the same object in the same place. Up to 3.13
 * that is exact: the version of the dict of its keyword arguments, which is made for each call.
 * From 3.14 on dicts have none, and it is the first of its other arguments. A few nanoseconds.
 */
struct plumb_python_call {
	const void *object, *type;
	uint64_t mark;
};
void plumb_python_call(const struct plumb_python_frame *frame, struct plumb_python_call *call);

/* Where an object's members are: its dict, in it the value of "_modules", and that dict's keys. */
struct plumb_python_members {
	const char *dict_at, *dict; /* the object's own dict, and where it is named */
	const char *keys, *values;
	const char *slot, *members; /* of "_modules" */
	const char *member_keys;
};
/* False: OBJECT has none that can be read. */
bool plumb_python_members_find(const void *object, struct plumb_python_members *members);
/* OBJECT, of which MEMBERS were found, lives. */
bool plumb_python_members_hold(const void *object, const struct plumb_python_members *members);

struct plumb_python_member {
	const char *at; /* of the key in the entry; the value follows */
	const char *key, *value;
	int64_t hash; /* of the key's text */
};
/* The first member from *INDEX on that is not None; *INDEX gets what follows it. */
bool plumb_python_member_next(const struct plumb_python_members *members, uint32_t *index,
                              struct plumb_python_member *member);
/* The members hold. */
bool plumb_python_member_holds(const struct plumb_python_member *member);

/* "torch.nn.modules.linear.Linear", or without the first part where it is not known; returns its
 * length. *NAME gets where the class's own name begins. TYPE must be alive. */
size_t plumb_python_class(const void *type, char *text, size_t size, size_t *name);
/* Changes with the class's own name. */
uint64_t plumb_python_class_hash(const void *type);

#endif
