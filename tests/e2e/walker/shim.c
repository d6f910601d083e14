/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests/e2e/walker/cases.py calls through ctypes: the Python walker in a library of its own,
 * without Python's headers and without a link to Python, as the collector is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "collect/collector.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/python.h"
#include "collect/stack/stack.h"

enum { FRAMES = 40000 };

static __thread struct plumb_python_frame frames[FRAMES];
static __thread struct plumb_python_identity identities[FRAMES];
static __thread size_t kept;
static __thread char *text;
static __thread bool truncated;

/* ---- what the collector's core gives ---- */

void
plumb_python_watch_tasks(int minor)
{
	(void)minor;
}

void *
plumb_real_dlsym(void *handle, const char *name)
{
	return dlsym(handle, name);
}

struct search {
	const char *name;
	char *path;
	size_t size;
	bool found;
};

static int
look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	if (!strstr(base ? base : info->dlpi_name, search->name))
		return 0;
	snprintf(search->path, search->size, "%s", info->dlpi_name);
	search->found = true;
	return 1;
}

const char *
plumb_find_library(const char *name, char *path, size_t size)
{
	struct search search = { name, path, size, false };

	dl_iterate_phdr(look_at, &search);
	return search.found ? path : NULL;
}

void
plumb_framework_offer(const char *symbol)
{
	(void)symbol;
}

bool
plumb_stack_cold_part(uintptr_t start, uintptr_t end, uintptr_t *cold_start, uintptr_t *cold_end)
{
	(void)start, (void)end, (void)cold_start, (void)cold_end;
	return false;
}

/* ---- for the test ---- */

PLUMB_EXPORT int
shim_attach(char *message, size_t size)
{
	struct plumb_error error = { 0 };
	int rc;

	errno = 77;
	rc = plumb_python_attach(&error);
	if (errno != 77)
		return -1000;
	snprintf(message, size, "%s", rc < 0 ? error.message : "");
	return rc;
}

PLUMB_EXPORT const char *
shim_version(void)
{
	return plumb_python_version();
}

PLUMB_EXPORT const void *
shim_top(void)
{
	return plumb_python_top();
}

/* Walks and makes text of every frame, as "line US function US file RS". Returns how many. */
PLUMB_EXPORT int
shim_record(const void *stop, size_t max)
{
	struct plumb_python_symbol symbol;
	size_t count, bytes = 0;
	FILE *out;

	free(text);
	text = NULL;
	count = plumb_python_walk(plumb_python_top(), stop, frames, max < FRAMES ? max : FRAMES,
	                          &truncated);
	out = open_memstream(&text, &bytes);
	if (!out)
		return -1;
	for (size_t i = 0; i < count; i++) {
		plumb_python_symbolise(&frames[i], &symbol);
		fprintf(out, "%u\037%s\037%s\036", symbol.line, symbol.function, symbol.file);
	}
	fclose(out);
	return (int)count;
}

/* What the last shim_record of this thread made. */
PLUMB_EXPORT const char *
shim_text(void)
{
	return text;
}

PLUMB_EXPORT bool
shim_truncated(void)
{
	return truncated;
}

/* The identity of the innermost frame. */
PLUMB_EXPORT bool
shim_identity(struct plumb_python_identity *identity)
{
	struct plumb_python_frame frame;

	if (!plumb_python_walk(plumb_python_top(), NULL, &frame, 1, &truncated))
		return false;
	plumb_python_identify(frame.code, identity);
	return true;
}

/* Keeps the stack from the caller out to STOP, for shim_unchanged. */
PLUMB_EXPORT int
shim_remember(const void *stop)
{
	kept = plumb_python_walk(plumb_python_top(), stop, frames, FRAMES, &truncated);
	for (size_t i = 0; i < kept; i++)
		plumb_python_identify(frames[i].code, &identities[i]);
	return (int)kept;
}

/* Whether the stack is the one that was kept, with the same code. */
PLUMB_EXPORT int
shim_unchanged(const void *stop)
{
	static struct plumb_python_frame now[FRAMES];
	size_t count = plumb_python_walk(plumb_python_top(), stop, now, FRAMES, &truncated);
	bool same = count == kept;

	for (size_t i = 0; i < count && same; i++) {
		struct plumb_python_identity identity;
		plumb_python_identify(now[i].code, &identity);
		same = now[i].code == frames[i].code && now[i].lasti == frames[i].lasti &&
		       identity.file == identities[i].file && identity.name == identities[i].name &&
		       identity.lines == identities[i].lines &&
		       identity.first_line == identities[i].first_line &&
		       identity.freed == identities[i].freed;
	}
	return same;
}

/* Makes the outermost code object kept look like another in one of four ways; twice: as it was. */
PLUMB_EXPORT void
shim_spoil(int field)
{
	struct plumb_python_identity *last = &identities[kept - 1];
	const void **pointers[] = { &last->file, &last->name, &last->lines };

	if (field < 3)
		*pointers[field] = (const void *)((uintptr_t)*pointers[field] ^ 16);
	else
		last->first_line ^= 1;
}

/* Walks again and again for SECONDS, PAUSE microseconds apart, also when the interpreter ends. */
PLUMB_EXPORT int
shim_spin(double seconds, unsigned pause)
{
	struct timespec nap = { .tv_nsec = (long)pause * 1000 };
	struct plumb_python_symbol symbol;
	uint64_t end = plumb_clock_ns() + (uint64_t)(seconds * 1e9);
	int walks = 0;

	while (plumb_clock_ns() < end) {
		size_t count =
			plumb_python_walk(plumb_python_top(), NULL, frames, FRAMES, &truncated);
		if (count)
			plumb_python_symbolise(&frames[0], &symbol);
		walks++;
		if (pause)
			nanosleep(&nap, NULL);
	}
	return walks;
}

/* ---- every instruction ---- */

enum { DEPTH = 48, CODES = 256 };

static size_t steps, nowhere, codes;
static const void *code_seen[CODES], *step_stop;

static void
see(const void *code)
{
	for (size_t i = 0; i < codes; i++)
		if (code_seen[i] == code)
			return;
	if (codes < CODES)
		code_seen[codes++] = code;
}

/* As a sample at this instruction would. */
static void
on_step(int signal, siginfo_t *info, void *context)
{
	ucontext_t *all = context;
	uintptr_t pc = 0;
	int saved = errno;
	(void)signal, (void)info;
#if defined(__x86_64__)
	pc = (uintptr_t)all->uc_mcontext.gregs[REG_RIP];
#endif
	const void *top = plumb_python_interrupted(pc, NULL);
	size_t count = plumb_python_walk(top, NULL, frames, DEPTH, &truncated);
	for (size_t i = 0; i < count; i++)
		see(frames[i].code);
	steps++;
	nowhere += !count || !plumb_python_reaches(top, step_stop);
	errno = saved;
}

/* Calls FUNCTION, one of the interpreter's, with ARGUMENT, and looks at every instruction of it on
 * this thread. STOP is a frame that every path goes through. */
PLUMB_EXPORT void *
shim_step(void *(*function)(void *, void *), void *argument, void *other, const void *stop)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	void *result = NULL;
	step_stop = stop;
	sigaction(SIGTRAP, &action, NULL);
#if defined(__x86_64__)
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
	result = function(argument, other);
	__asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
#else
	(void)function, (void)argument, (void)other;
#endif
	return result;
}

PLUMB_EXPORT size_t
shim_steps(size_t *without, const void ***seen, size_t *count)
{
	*without = nowhere;
	*seen = code_seen;
	*count = codes;
	return steps;
}
