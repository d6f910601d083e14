/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that looks like a libpython, for what no interpreter at hand shows: CPython 3.13 whose
 * thread runs one frame. Each of the macros below, when given, puts a fault in.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifndef VERSION
#define VERSION "3.13.2 (main) [fake]"
#endif
#ifndef FREE_THREADED
#define FREE_THREADED 0
#endif
#ifndef COOKIE
#define COOKIE 0x7970677562656478 /* "xdebugpy" */
#endif
#ifndef HEX
#define HEX 0x030d02f0
#endif
#ifndef FRAME_AT
#define FRAME_AT 72
#endif
#ifndef FILE_AT
#define FILE_AT 112
#endif
#ifndef CODE_OF_FRAME
#define CODE_OF_FRAME &code
#endif
#ifndef PREVIOUS_OF_FRAME
#define PREVIOUS_OF_FRAME NULL
#endif
#ifndef OWNER
#define OWNER 0
#endif
#ifndef FIRST_LINE
#define FIRST_LINE 7
#endif

struct type {
	uint64_t count;
	void *type, *more[19];
	uint64_t flags;
};
EXPORT struct type PyCode_Type, PyBytes_Type;
EXPORT struct type PyUnicode_Type = { .flags = 1 << 28 };

static struct text {
	uint64_t count;
	void *type;
	int64_t length, hash;
	uint32_t state, gap;
	char data[16];
} text = { 1, &PyUnicode_Type, 4, -1, 1 << 2 | 1 << 5 | 1 << 6, 0, "name" };

static struct bytes {
	uint64_t count;
	void *type;
	int64_t size, hash;
	char data[8];
} lines = { 1, &PyBytes_Type, 4, -1, "" };

static struct code {
	uint64_t count;
	void *type;
	int64_t units;
	char more[44];
	int32_t first_line;
	char more2[40];
	void *file, *name, *qualified, *lines;
	char more3[40];
	int32_t traceable;
	void *extra;
	char instructions[16];
} code = { .count = 1,
	   .type = &PyCode_Type,
	   .units = 8,
	   .first_line = 7,
	   .file = &text,
	   .name = &text,
	   .qualified = &text,
	   .lines = &lines };
_Static_assert(offsetof(struct code, first_line) == 68, "as in 3.13");
_Static_assert(offsetof(struct code, file) == 112, "as in 3.13");
_Static_assert(offsetof(struct code, instructions) == 200, "as in 3.13");

static struct frame {
	void *code, *previous, *more[5], *instruction;
	int32_t top;
	uint16_t offset;
	unsigned char owner;
} frame = { CODE_OF_FRAME, PREVIOUS_OF_FRAME, { 0 }, code.instructions + 4, 0, 0, OWNER };

static struct thread {
	void *more[9], *frame;
} thread = { .frame = &frame };

EXPORT struct runtime {
	uint64_t cookie, version, free_threaded, more[16], thread[9], frame[6], code[10], object[2],
		type[4], more2[17], text[4];
} _PyRuntime = {
	COOKIE,
	HEX,
	FREE_THREADED,
	{ 0 },
	{ 304, 0, 0, 0, FRAME_AT },
	{ 80, 8, 0, 56, 72, 70 },
	{ 208, FILE_AT, 120, 128, 136, 68, 0, 0, 0, 200 },
	{ 16, 8 },
	{ 400, 0, 0, 168 },
	{ 0 },
	{ 64, 32, 16, 40 },
};
_Static_assert(offsetof(struct runtime, thread) == 152, "as in 3.13");
_Static_assert(offsetof(struct runtime, text) == 536, "as in 3.13");

EXPORT const char *
Py_GetVersion(void)
{
	return VERSION;
}

EXPORT void *
PyGILState_GetThisThreadState(void)
{
	return &thread;
}

EXPORT int
Py_IsFinalizing(void)
{
	return 0;
}

#ifndef NO_LINES
EXPORT int
PyCode_Addr2Line(void *of, int lasti)
{
	(void)of;
	return lasti < 0 ? FIRST_LINE : 9;
}
#endif
