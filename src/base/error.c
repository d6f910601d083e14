/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This file is part of the collector too, which lives in other people's programs: errno is kept,
 * nothing is allocated, and a message that is too long is cut.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
clean_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

int
plumb_fail(struct plumb_error *error, int code, const char *format, ...)
{
	int saved = errno;
	if (error) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(error->message, sizeof error->message, format, arguments);
		va_end(arguments);
		clean_line(error->message);
		error->code = code;
	}
	errno = saved;
	return code;
}

int
plumb_fail_memory(struct plumb_error *error, const char *format, ...)
{
	/* A long path is cut, not the remedy behind it. */
	char purpose[sizeof error->message - 100] = "";
	va_list arguments;
	va_start(arguments, format);
	if (format)
		vsnprintf(purpose, sizeof purpose, format, arguments);
	va_end(arguments);
	return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory%s%s; close other programs",
	                  *purpose ? " " : "", purpose);
}

int
plumb_fail_errno(struct plumb_error *error, const char *format, ...)
{
	int saved = errno;
	if (error) {
		char reason[128];
		va_list arguments;
		va_start(arguments, format);
		int used = vsnprintf(error->message, sizeof error->message, format, arguments);
		va_end(arguments);
		/* Leave room for the reason: it matters more than the end of a long path. */
		size_t most = sizeof error->message - sizeof reason - 2;
		size_t at = used < 0 ? 0 : (size_t)used < most ? (size_t)used : most;
		/* The GNU variant returns the text, which need not be in the buffer. */
		const char *text = strerror_r(saved, reason, sizeof reason);
		snprintf(error->message + at, sizeof error->message - at, ": %s", text);
		clean_line(error->message);
		error->code = PLUMB_ESYSTEM;
	}
	errno = saved;
	return PLUMB_ESYSTEM;
}

int
plumb_fail_in(struct plumb_error *error, const char *format, ...)
{
	if (!error)
		return PLUMB_ESYSTEM;
	int saved = errno;
	char old[sizeof error->message];
	memcpy(old, error->message, sizeof old);
	old[sizeof old - 1] = 0;
	va_list arguments;
	va_start(arguments, format);
	int used = vsnprintf(error->message, sizeof error->message, format, arguments);
	va_end(arguments);
	size_t most = sizeof error->message / 2;
	size_t at = used < 0 ? 0 : (size_t)used < most ? (size_t)used : most;
	snprintf(error->message + at, sizeof error->message - at, ": %.*s",
	         (int)(sizeof error->message - at - 3), old);
	clean_line(error->message);
	errno = saved;
	return error->code;
}
