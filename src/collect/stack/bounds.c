/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which mapping a stack lies in, from /proc/self/maps: the main thread's, a thread's, a coroutine's
 * or a signal handler's alike. Plain system calls and no heap, so that a handler may ask, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/stack/stack.h"

/* The kernel keeps this much free below a stack that grows; what is in there is still the stack. */
#define GROWTH ((uintptr_t)1 << 20)

struct text {
	int fd;
	size_t at, have;
	char buffer[4096];
};

/* The next character, or -1. */
static int
read_character(struct text *text)
{
	if (text->at == text->have) {
		long got = syscall(SYS_read, text->fd, text->buffer, sizeof text->buffer);
		text->at = 0;
		text->have = got > 0 ? (size_t)got : 0;
		if (!text->have)
			return -1;
	}
	return (unsigned char)text->buffer[text->at++];
}

/* A hexadecimal number and the character behind it, which is returned. */
static int
read_number(struct text *text, uintptr_t *value)
{
	int c;
	*value = 0;
	for (;;) {
		c = read_character(text);
		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return c;
	}
}

/* Skips to the next line; whether this one ends with "[stack]". */
static int
skip_rest(struct text *text, bool *main_stack)
{
	static const char name[] = "[stack]";
	size_t matched = 0;
	int c;
	*main_stack = false;
	while ((c = read_character(text)) >= 0 && c != '\n') {
		if (*main_stack || name[matched] != c)
			matched = c == name[0];
		else
			matched++;
		*main_stack = matched == sizeof name - 1;
	}
	return c;
}

static bool
search_maps(struct text *text, uintptr_t sp, struct plumb_stack_bounds *bounds)
{
	struct plumb_stack_bounds line;
	bool main_stack;
	while (read_number(text, &line.low) == '-' && read_number(text, &line.high) == ' ') {
		int readable = read_character(text), writable = read_character(text);
		int end = skip_rest(text, &main_stack);
		if (main_stack && line.low > GROWTH)
			line.low -= GROWTH;
		if (plumb_stack_within(&line, sp)) {
			*bounds = line;
			return readable == 'r' && writable == 'w';
		}
		if (end < 0)
			return false;
	}
	return false;
}

bool
plumb_stack_bounds_of(uintptr_t sp, struct plumb_stack_bounds *bounds)
{
	struct text text = { .fd = -1 };
	int saved = errno;
	text.fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found = text.fd >= 0 && search_maps(&text, sp, bounds);
	if (text.fd >= 0)
		syscall(SYS_close, text.fd);
	errno = saved;
	return found;
}
