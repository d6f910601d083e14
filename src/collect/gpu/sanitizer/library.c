/* SPDX-License-Identifier: Apache-2.0 */
/* The Compute Sanitizer's library: $PLUMB_SANITIZER, the one that is loaded, or one of the
 * program's own CUDA; and the patches. */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/gpu/sanitizer/runtime.h"

#define LIBRARY "libsanitizer-public.so"

struct plumb_sanitizer_api plumb_sanitizer;

/* The generated file, between these two. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".hidden plumb_patches_begin\n"
        ".globl plumb_patches_begin\n"
        "plumb_patches_begin:\n"
        ".incbin \"src/collect/gpu/sanitizer/patches.fatbin\"\n"
        ".hidden plumb_patches_end\n"
        ".globl plumb_patches_end\n"
        "plumb_patches_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char plumb_patches_begin[] __attribute__((visibility("hidden")));
extern const char plumb_patches_end[] __attribute__((visibility("hidden")));

const void *
plumb_sanitizer_patches(size_t *bytes)
{
	*bytes = (size_t)(plumb_patches_end - plumb_patches_begin);
	return plumb_patches_begin;
}

const char *
plumb_sanitizer_message(sanitizer_result result)
{
	const char *message = NULL;
	if (!plumb_sanitizer.GetResultString || plumb_sanitizer.GetResultString(result, &message) ||
	    !message)
		return "unknown error";
	return message;
}

static void *
try_path(const char *path)
{
	size_t length = strlen(path);
	void *library =
		length < sizeof plumb_sanitizer.path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	if (library)
		memcpy(plumb_sanitizer.path, path, length + 1);
	return library;
}

/* Beside a library of CUDA: wheels and toolkits of all releases. */
static void *
try_beside(const char *path)
{
	static const char *const places[] = {
		"/",
		"/../compute-sanitizer/",
		"/../../compute-sanitizer/",
		"/../../../compute-sanitizer/",
		"/../../cuda_sanitizer_api/lib/",
		"/../../cu13/compute-sanitizer/",
		NULL,
	};
	char text[4200];
	const char *end = strrchr(path, '/');
	for (size_t i = 0; end && places[i]; i++) {
		snprintf(text, sizeof text, "%.*s%s" LIBRARY, (int)(end - path), path, places[i]);
		void *library = try_path(text);
		if (library)
			return library;
	}
	return NULL;
}

static void *
try_toolkits(void)
{
	static const char *const patterns[] = { "/usr/local/cuda/compute-sanitizer/" LIBRARY,
		                                "/usr/local/cuda-*/compute-sanitizer/" LIBRARY,
		                                "/opt/cuda/extras/compute-sanitizer/" LIBRARY,
		                                NULL };
	void *library = NULL;
	for (size_t i = 0; !library && patterns[i]; i++) {
		glob_t found;
		if (!glob(patterns[i], 0, NULL, &found) && found.gl_pathc)
			library = try_path(found.gl_pathv[found.gl_pathc - 1]);
		globfree(&found);
	}
	return library;
}

static void *
find_library(void)
{
	static const char *const marks[] = { "libcudart.so", "libcudart-", "libcublas.so",
		                             "libnvrtc.so", NULL };
	const char *home = getenv("CUDA_HOME");
	char path[4096], text[4200];
	void *library;
	if (plumb_find_library(LIBRARY, path, sizeof path) &&
	    (library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD))) {
		strcpy(plumb_sanitizer.path, path);
		return library;
	}
	for (size_t i = 0; marks[i]; i++)
		if (plumb_find_library(marks[i], path, sizeof path) && (library = try_beside(path)))
			return library;
	if (home && *home) {
		snprintf(text, sizeof text, "%.4000s/compute-sanitizer/" LIBRARY, home);
		if ((library = try_path(text)))
			return library;
	}
	library = try_path(LIBRARY);
	return library ? library : try_toolkits();
}

int
plumb_sanitizer_find(struct plumb_error *error)
{
	const char *given = getenv("PLUMB_SANITIZER"), *missing = NULL;
	void *library = given && *given ? try_path(given) : find_library();
	if (!library && given && *given)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "traffic of kernels is not recorded: PLUMB_SANITIZER is %s, "
		                  "which cannot be loaded",
		                  given);
	if (!library)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"traffic of kernels is not recorded: the Compute Sanitizer (" LIBRARY
			") was not found next to the program's CUDA libraries or in a CUDA "
			"toolkit; install the package nvidia-cuda-sanitizer-api (for CUDA 12: "
			"nvidia-cuda-sanitizer-api-cu12), or say in PLUMB_SANITIZER where it is");
#define X(name_, parameters, needed)                                                               \
	plumb_sanitizer.name_ =                                                                    \
		(sanitizer_result(*) parameters)plumb_real_dlsym(library, "sanitizer" #name_);     \
	if (needed && !plumb_sanitizer.name_)                                                      \
		missing = "sanitizer" #name_;
	SANITIZER_FUNCTIONS(X)
#undef X
	if (missing)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "traffic of kernels is not recorded: %s has no %s; plumb needs "
		                  "the Compute Sanitizer of CUDA 12.6 or later",
		                  plumb_sanitizer.path, missing);
	return 0;
}
