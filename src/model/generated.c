/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generated.h"

#include <string.h>

#define RANDOM 8 /* characters that tempfile draws */
static const char drawn[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

static const char *
base_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

static bool
begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

bool
plumb_generated_by_inductor(const char *file)
{
	const char *name = file ? base_of(file) : "";

	return name != file && strlen(name) == 55 && name[0] == 'c' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == 52 && !strcmp(name + 52, ".py");
}

size_t
plumb_generated_temporary(const char *file)
{
	static const char *const folders[] = { "/tmp/", "/var/tmp/", "/usr/tmp/", "/dev/shm/",
		                               "/private/tmp/" };

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (begins(file, folders[i]))
			return strlen(folders[i]);
	return 0;
}

/* "tmpa_8x01qk", as tempfile names files and folders if nobody asks for another name; of a file
 * with a suffix. */
static bool
is_tempfile(const char *component, size_t length)
{
	return length >= 3 + RANDOM && begins(component, "tmp") &&
	       strspn(component + 3, drawn) == RANDOM &&
	       (length == 3 + RANDOM || component[3 + RANDOM] == '.');
}

static bool
lies_in(const char *file, bool (*is)(const char *component, size_t length))
{
	for (const char *at = file; *at;) {
		size_t length = strcspn(at, "/");

		if (is(at, length))
			return true;
		at += length;
		at += strspn(at, "/");
	}
	return false;
}

static bool
is_cache(const char *component, size_t length)
{
	return component[length] == '/' && (begins(component, "torchinductor_") ||
	                                    (length == 7 && begins(component, ".triton")));
}

/* "pkg.module_etx2fnc3.py" */
static bool
is_impossible(const char *name)
{
	size_t length = strlen(name), stem;

	if (length < RANDOM + 5 || strcmp(name + length - 3, ".py") != 0)
		return false;
	stem = length - 3 - RANDOM;
	return strspn(name + stem, drawn) == RANDOM && name[stem - 1] == '_' &&
	       memchr(name, '.', stem) != NULL;
}

enum plumb_generated
plumb_generated_file(const char *file)
{
	const char *name = base_of(file);
	size_t temporary = plumb_generated_temporary(file);

	if (plumb_generated_by_inductor(file) || begins(name, "__autograph_generated_file") ||
	    begins(name, "_remote_module_") || is_impossible(name) || lies_in(file, is_cache))
		return PLUMB_GENERATED_NAME;
	return temporary && lies_in(file + temporary, is_tempfile) ? PLUMB_GENERATED_FOLDER
	                                                           : PLUMB_NOT_GENERATED;
}
