/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where coroutines and greenlets of Python take turns. An event loop gives a coroutine its turn by
 * the type's slot for send (3.10 and newer; the interpreter's own _PyGen_Send in 3.9) or by its
 * methods, a greenlet gives its turn away by its method `switch`. We stand before these functions:
 * the slot and the tables of methods are data that anybody may change, and each pointer is proved
 * before it is.
 *
 * An `await` that the interpreter evaluates itself gives no turn: it runs inside the turn of the
 * task.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/monitor/python.h"
#include "collect/monitor/python_layout.h"
#include "collect/task.h"

/* ---- in a PyTypeObject and what it points to, of builds with the GIL since 3.9 ---- */

enum {
	TYPE_NAME = 24,
	TYPE_ASYNC = 80,
	TYPE_METHODS = 232,
	ASYNC_SEND = 24, /* 3.10 */
	METHODS_MOST = 64,
};
struct method {
	const char *name;
	void *_Atomic function;
	int flags;
	const char *documentation;
};

/* Can the word at ADDRESS be written? */
static bool
is_writable(void *address)
{
	void *word;
	struct iovec own = { &word, sizeof word }, there = { address, sizeof word };
	pid_t self = (pid_t)syscall(SYS_getpid);
	return syscall(SYS_process_vm_readv, self, &own, 1ul, &there, 1ul, 0ul) ==
	               (long)sizeof word &&
	       syscall(SYS_process_vm_writev, self, &own, 1ul, &there, 1ul, 0ul) ==
	               (long)sizeof word;
}

/* Is FUNCTION code of the object that holds DATA? */
static bool
is_of(const void *function, const void *data)
{
	Dl_info of_function, of_data;
	return function && dladdr(function, &of_function) && dladdr(data, &of_data) &&
	       of_function.dli_fbase == of_data.dli_fbase;
}

static bool
is_named(const char *type, const char *name)
{
	const char *text = plumb_python_readable(type, TYPE_NAME)
	                           ? plumb_python_pointer(type, TYPE_NAME)
	                           : NULL;
	return text && plumb_python_readable(text, 0) && !strncmp(text, name, strlen(name) + 1);
}

/* Puts OURS in place of what *place holds, which *REAL gets. OWNER: data of the same object. */
static bool
replace_function(void *_Atomic *place, void *ours, void **real, const void *owner)
{
	if (!plumb_python_readable((const void *)place, 0))
		return false;
	void *now = atomic_load_explicit(place, memory_order_relaxed);
	if (now == ours || !is_of(now, owner) || !is_writable((void *)place))
		return false;
	*real = now;
	atomic_store_explicit(place, ours, memory_order_release);
	return true;
}

static bool
replace_method(const char *type, const char *name, void *ours, void **real)
{
	if (!plumb_python_readable(type, TYPE_METHODS))
		return false;
	struct method *method =
		(struct method *)(uintptr_t)plumb_python_pointer(type, TYPE_METHODS);
	for (int i = 0; method && i < METHODS_MOST; i++, method++) {
		if (!plumb_python_readable(method, 0) || !method->name ||
		    !plumb_python_readable(method->name, 0))
			return false;
		if (!strcmp(method->name, name))
			return replace_function(&method->function, ours, real, type);
	}
	return false;
}

/* ---- coroutines ---- */

/* Methods take up to three arguments, by whichever of C Python's conventions. */
typedef void *method_function(void *self, void *first, void *second);
enum { NEXT = 1 }; /* of PySendResult: it gave its turn away */

static const void *coroutine_type;
static int (*slot_send)(void *coroutine, void *value, void **result);
static method_function *coroutine_send, *coroutine_throw, *coroutine_close;

static int
on_slot_send(void *coroutine, void *value, void **result)
{
	struct plumb_task_turn turn;
	plumb_task_begin(&turn, (uintptr_t)coroutine);
	int how = slot_send(coroutine, value, result);
	plumb_task_end(&turn, (uintptr_t)coroutine, how != NEXT);
	return how;
}

static void *
on_method(method_function *method, void *coroutine, void *first, void *second)
{
	struct plumb_task_turn turn;
	plumb_task_begin(&turn, (uintptr_t)coroutine);
	void *result = method(coroutine, first, second);
	plumb_task_end(&turn, (uintptr_t)coroutine, !result);
	return result;
}

static void *
on_send(void *coroutine, void *first, void *second)
{
	return on_method(coroutine_send, coroutine, first, second);
}

static void *
on_throw(void *coroutine, void *first, void *second)
{
	return on_method(coroutine_throw, coroutine, first, second);
}

static void *
on_close(void *coroutine, void *first, void *second)
{
	struct plumb_task_turn turn;
	plumb_task_begin(&turn, (uintptr_t)coroutine);
	void *result = coroutine_close(coroutine, first, second);
	plumb_task_end(&turn, (uintptr_t)coroutine, true);
	return result;
}

void
plumb_python_watch_tasks(int minor)
{
	const char *type = plumb_python_symbol("PyCoro_Type");
	if (!type || !is_named(type, "coroutine"))
		return;
	const char *table = minor >= 10 ? plumb_python_pointer(type, TYPE_ASYNC) : NULL;
	if (table)
		replace_function((void *_Atomic *)(uintptr_t)(table + ASYNC_SEND),
		                 (void *)on_slot_send, (void **)&slot_send, type);
	replace_method(type, "send", (void *)on_send, (void **)&coroutine_send);
	replace_method(type, "throw", (void *)on_throw, (void **)&coroutine_throw);
	replace_method(type, "close", (void *)on_close, (void **)&coroutine_close);
	coroutine_type = type;
}

/* CPython 3.9's asyncio calls it past the type. */
PLUMB_EXPORT void *_PyGen_Send(void *generator, void *value);

void *
_PyGen_Send(void *generator, void *value)
{
	static void *(*_Atomic found)(void *, void *);
	void *(*send)(void *, void *) = found;
	if (!send) {
		*(void **)&send = plumb_real_dlsym(RTLD_NEXT, "_PyGen_Send");
		if (!send)
			send = (void *(*)(void *, void *))(uintptr_t)coroutine_send;
		found = send;
	}
	if (!coroutine_type || plumb_python_pointer(generator, sizeof(void *)) != coroutine_type)
		return send(generator, value);
	struct plumb_task_turn turn;
	plumb_task_begin(&turn, (uintptr_t)generator);
	void *result = send(generator, value);
	plumb_task_end(&turn, (uintptr_t)generator, !result);
	return result;
}

/* ---- greenlets ---- */

static method_function *greenlet_switch, *greenlet_throw;

/* The key lies on the greenlet's own stack, which comes back with it. */
static void *
on_greenlet_switch(void *greenlet, void *first, void *second)
{
	uint64_t key = plumb_task_suspend();
	void *result = greenlet_switch(greenlet, first, second);
	plumb_task_resume(key);
	return result;
}

static void *
on_greenlet_throw(void *greenlet, void *first, void *second)
{
	uint64_t key = plumb_task_suspend();
	void *result = greenlet_throw(greenlet, first, second);
	plumb_task_resume(key);
	return result;
}

void
plumb_python_watch_greenlets(void *library)
{
	const char *type = plumb_real_dlsym(library, "PyGreenlet_Type");
	if (!type || greenlet_switch || !is_named(type, "greenlet.greenlet"))
		return;
	replace_method(type, "switch", (void *)on_greenlet_switch, (void **)&greenlet_switch);
	replace_method(type, "throw", (void *)on_greenlet_throw, (void **)&greenlet_throw);
}
