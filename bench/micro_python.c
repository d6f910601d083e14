/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a look at the Python stack; loaded by bench/micro_python.py, which builds it with
 * src/collect/monitor/python*.c. Each function runs its subject COUNT times on the calling thread's
 * stack and returns ns for one time.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/monitor/python.h"

enum { FRAMES = 1024 };

void *
plumb_real_dlsym(void *handle, const char *name)
{
	return dlsym(handle, name);
}

const char *
plumb_find_library(const char *name, char *path, size_t size)
{
	(void)name, (void)path, (void)size;
	return NULL;
}

PLUMB_EXPORT int
bench_attach(char *message, size_t size)
{
	struct plumb_error error = { 0 };
	int rc = plumb_python_attach(&error);

	strncpy(message, error.message, size - 1);
	return rc;
}

static double
each(uint64_t start, int count)
{
	return (double)(plumb_clock_ns() - start) / count;
}

PLUMB_EXPORT double
bench_top(int count)
{
	uint64_t start = plumb_clock_ns();

	for (int i = 0; i < count; i++) {
		const void *top = plumb_python_top();
		__asm__ volatile("" : : "r"(top) : "memory");
	}
	return each(start, count);
}

PLUMB_EXPORT double
bench_walk(int count)
{
	struct plumb_python_frame frames[FRAMES];
	uint64_t start = plumb_clock_ns();
	bool truncated;

	for (int i = 0; i < count; i++) {
		plumb_python_walk(plumb_python_top(), NULL, frames, FRAMES, &truncated);
		__asm__ volatile("" : : "r"(frames) : "memory");
	}
	return each(start, count);
}

/* The walk, and then for every frame the comparison with what was there. */
PLUMB_EXPORT double
bench_unchanged(int count, int *differences)
{
	struct plumb_python_frame frames[FRAMES], was[FRAMES];
	struct plumb_python_identity identities[FRAMES], now;
	uint64_t start;
	bool truncated;
	size_t depth = plumb_python_walk(plumb_python_top(), NULL, was, FRAMES, &truncated);

	for (size_t i = 0; i < depth; i++)
		plumb_python_identify(was[i].code, &identities[i]);
	*differences = 0;
	start = plumb_clock_ns();
	for (int i = 0; i < count; i++) {
		size_t n = plumb_python_walk(plumb_python_top(), NULL, frames, FRAMES, &truncated);
		for (size_t k = 0; k < n && k < depth; k++) {
			plumb_python_identify(frames[k].code, &now);
			*differences +=
				frames[k].code != was[k].code || frames[k].lasti != was[k].lasti ||
				now.file != identities[k].file || now.name != identities[k].name ||
				now.lines != identities[k].lines ||
				now.first_line != identities[k].first_line;
		}
		*differences += n != depth;
	}
	return each(start, count);
}

/* The documented way: take the GIL, and ask frame by frame for the code and the line. */
PLUMB_EXPORT double
bench_interface(int count, int *depth)
{
	int (*ensure)(void), (*line)(void *);
	void (*release)(int), (*drop)(void *);
	void *(*state)(void), *(*top)(void *), *(*back)(void *), *(*code)(void *);
	uint64_t start;

	*(void **)&ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	*(void **)&release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
	*(void **)&state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	*(void **)&top = dlsym(RTLD_DEFAULT, "PyThreadState_GetFrame");
	*(void **)&back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
	*(void **)&code = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
	*(void **)&line = dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
	*(void **)&drop = dlsym(RTLD_DEFAULT, "Py_DecRef");
	start = plumb_clock_ns();
	for (int i = 0; i < count; i++) {
		int gil = ensure();
		void *frame = top(state()), *next;
		for (*depth = 0; frame; frame = next, (*depth)++) {
			drop(code(frame));
			line(frame);
			next = back(frame);
			drop(frame);
		}
		release(gil);
	}
	return each(start, count);
}
