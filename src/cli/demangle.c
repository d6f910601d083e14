/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demangle.h"

#include <stddef.h>
#include <string.h>

/* The C++ ABI's own function; <cxxabi.h> is C++ only. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

char *
plumb_demangle(const char *name)
{
	int status;
	/* Without this test "i" would come back as "int": it also reads bare types. */
	if (!name || strncmp(name, "_Z", 2) != 0)
		return NULL;
	return __cxa_demangle(name, NULL, NULL, &status);
}
