/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demangle.h"
#include "cli/demangle_rust.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C++ ABI's own function; <cxxabi.h> is C++ only. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Cuts END off the BYTES of NAME. */
static bool
cut_end(const char *name, size_t *bytes, const char *end)
{
	size_t length = strlen(end);
	if (*bytes <= length || memcmp(name + *bytes - length, end, length) != 0)
		return false;
	*bytes -= length;
	return true;
}

/* "_Z1fi [clone .isra.0]": the mangled part is before the blank. */
static char *
demangle_clone(const char *symbol)
{
	const char *clone = strstr(symbol, " [clone ");
	char *plain = strndup(symbol, clone ? (size_t)(clone - symbol) : strlen(symbol)), *whole;
	int status;
	/* Without this test "i" would come back as "int": it also reads bare types. */
	char *text = plain && !strncmp(plain, "_Z", 2) ? __cxa_demangle(plain, NULL, NULL, &status)
	                                               : NULL;
	free(plain);
	if (!text || !clone)
		return text;
	if (asprintf(&whole, "%s%s", text, clone) < 0)
		whole = NULL;
	free(text);
	return whole;
}

char *
plumb_demangle(const char *name)
{
	size_t bytes = name ? strlen(name) : 0, whole = bytes;
	/* ".kd" says that the symbol is the descriptor of an AMD kernel. */
	while (cut_end(name, &bytes, " [clone .kd]") || cut_end(name, &bytes, ".kd"))
		;
	char *symbol = bytes ? strndup(name, bytes) : NULL;
	char *text = symbol ? plumb_demangle_rust(symbol) : NULL;
	if (symbol && !text)
		text = demangle_clone(symbol);
	if (text || bytes == whole) {
		free(symbol);
		return text;
	}
	return symbol;
}
