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

/* Replaces each FROM in TEXT by TO, which is not longer. */
static void
replace(char *text, const char *from, const char *to)
{
	size_t before = strlen(from), after = strlen(to);

	for (char *at = text; (at = strstr(at, from)); at += after) {
		memcpy(at, to, after);
		memmove(at + after, at + before, strlen(at + before) + 1);
	}
}

/* GCC before 13 does not know the codes of __bf16 and _Float16. Those of two other types, which it
 * knows, have the same place among the types. */
static char *
demangle_16_bits(const char *symbol)
{
	char *known = strstr(symbol, "DF16") && !strstr(symbol, "Di") && !strstr(symbol, "Ds")
	                      ? strdup(symbol)
	                      : NULL;
	char *text;
	int status;

	if (!known)
		return NULL;
	replace(known, "DF16b", "Di");
	replace(known, "DF16_", "Ds");
	text = __cxa_demangle(known, NULL, NULL, &status);
	if (text) {
		replace(text, "char32_t", "__bf16");
		replace(text, "char16_t", "_Float16");
	}
	free(known);
	return text;
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
	if (!text && plain && !strncmp(plain, "_Z", 2))
		text = demangle_16_bits(plain);
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
