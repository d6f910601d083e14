/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI and the driver as the process has them. A second CUPTI in a process does not work beside
 * the first, so the one that is loaded is taken. Where none is, it is looked for next to the CUDA
 * libraries that are loaded, since it must be of their release.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "collect/gpu/cuda/runtime.h"

struct plumb_cupti plumb_cupti;
struct plumb_driver plumb_driver;

#define NAME(name) NAME_(name)
#define NAME_(name) #name

int
plumb_driver_find(struct plumb_error *error)
{
	char path[4096];
	void *library = NULL;
	if (plumb_find_library("libcuda.so", path, sizeof path))
		library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "GPU work is not recorded: the program's CUDA driver is not a "
		                  "library named libcuda.so; run it with the driver's own library");
#define X(name) plumb_driver.name = (__typeof__(&name))plumb_real_dlsym(library, NAME(name));
	PLUMB_DRIVER_FUNCTIONS(X)
#undef X
	return 0;
}

bool
plumb_driver_is_up(void)
{
	char path[4096];
	CUdevice device;
	void *library = plumb_find_library("libcuda.so", path, sizeof path)
	                        ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD)
	                        : NULL;
	__typeof__(&cuDeviceGet) get =
		library ? (__typeof__(&cuDeviceGet))plumb_real_dlsym(library, "cuDeviceGet") : NULL;
	bool up = get && get(&device, 0) != CUDA_ERROR_NOT_INITIALIZED;
	if (library)
		dlclose(library);
	return up;
}

const char *
plumb_cupti_message(CUptiResult result)
{
	const char *message = NULL;
	if (!plumb_cupti.GetResultString ||
	    plumb_cupti.GetResultString(result, &message) != CUPTI_SUCCESS || !message)
		return "unknown CUPTI error";
	return message;
}

/* What was tried, for the error. */
struct trial {
	char text[700];
	size_t used;
};

static void *
try_path(struct trial *trial, const char *folder, size_t length, const char *below,
         const char *name)
{
	char path[4096];
	if (length + strlen(below) + strlen(name) + 2 > sizeof path)
		return NULL;
	snprintf(path, sizeof path, "%.*s%s%s", (int)length, folder, below, name);
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (library) {
		strcpy(plumb_cupti.path, path);
		return library;
	}
	int wrote = snprintf(trial->text + trial->used, sizeof trial->text - trial->used, "%s%s",
	                     trial->used ? ", " : "", path);
	if (wrote > 0 && trial->used + (size_t)wrote < sizeof trial->text)
		trial->used += (size_t)wrote;
	else
		trial->text[trial->used] = '\0';
	return NULL;
}

/* The file names of CUPTI for a major release of CUDA; NULL-terminated. */
static const char *const *
names_of(unsigned major)
{
	static const char *const eleven[] = { "libcupti.so.11.8", NULL };
	static const char *const twelve[] = { "libcupti.so.12", NULL };
	static const char *const thirteen[] = { "libcupti.so.13", NULL };
	static const char *const none[] = { NULL };
	return major == 11 ? eleven : major == 12 ? twelve : major == 13 ? thirteen : none;
}

/* The major release in a name such as libcudart.so.12 or libcudart-1a2b.so.11.0; 0: not said. */
static unsigned
major_of(const char *path)
{
	unsigned major = 0;
	const char *at = strstr(path, ".so.");
	return at && sscanf(at, ".so.%u", &major) == 1 ? major : 0;
}

static void *
try_release(struct trial *trial, unsigned major, const char *beside)
{
	/* Wheels keep CUPTI in the same folder (13) or a sister (11, 12), toolkits below extras. */
	static const char *const places[] = { "/", "/../../cuda_cupti/lib/",
		                              "/../extras/CUPTI/lib64/",
		                              "/../../extras/CUPTI/lib64/", NULL };
	const char *const *names = names_of(major);
	void *library;
	for (; *names; names++) {
		const char *end = beside ? strrchr(beside, '/') : NULL;
		for (size_t i = 0; end && places[i]; i++)
			if ((library = try_path(trial, beside, (size_t)(end - beside), places[i],
			                        *names)))
				return library;
		if ((library = try_path(trial, "", 0, "", *names)) ||
		    (library = try_path(trial, "/usr/local/cuda", 15, "/extras/CUPTI/lib64/",
		                        *names)))
			return library;
	}
	return NULL;
}

static void *
find_cupti(struct trial *trial)
{
	static const char *const marks[] = { "libcudart.so", "libcudart-", "libcublas.so",
		                             "libnvrtc.so", NULL };
	char path[4096];
	void *library;
	if (plumb_find_library("libcupti.so", path, sizeof path) &&
	    (library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD))) {
		strcpy(plumb_cupti.path, path);
		return library;
	}
	for (size_t i = 0; marks[i]; i++) {
		if (!plumb_find_library(marks[i], path, sizeof path))
			continue;
		unsigned major = major_of(path);
		return try_release(trial, major, path);
	}
	/* The runtime is linked in statically: the driver tells the newest release it can be. */
	int version = 0;
	if (plumb_driver.cuDriverGetVersion)
		plumb_driver.cuDriverGetVersion(&version);
	for (unsigned major = (unsigned)version / 1000; major >= 11; major--)
		if ((library = try_release(trial, major, NULL)))
			return library;
	return NULL;
}

int
plumb_cupti_find(struct plumb_error *error)
{
	struct trial trial = { .used = 0 };
	void *library = find_cupti(&trial);
	if (!library)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"GPU work is not recorded: CUPTI was not found (tried %s); install the "
			"nvidia-cuda-cupti package of the program's CUDA release, or put its "
			"folder into LD_LIBRARY_PATH",
			trial.used ? trial.text
				   : "no file name, because the CUDA release is unknown");
	plumb_cupti.library = library;
	const char *missing = NULL;
#define X(name, needed)                                                                            \
	plumb_cupti.name = (__typeof__(&cupti##name))plumb_real_dlsym(library, "cupti" #name);     \
	if (needed && !plumb_cupti.name)                                                           \
		missing = "cupti" #name;
	PLUMB_CUPTI_FUNCTIONS(X)
#undef X
	if (missing)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "GPU work is not recorded: %s has no %s; plumb needs CUPTI 11.8 "
		                  "or newer",
		                  plumb_cupti.path, missing);
	CUptiResult result = plumb_cupti.GetVersion(&plumb_cupti.version);
	if (result != CUPTI_SUCCESS)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "GPU work is not recorded: %s does not report its version: %s",
		                  plumb_cupti.path, plumb_cupti_message(result));
	return 0;
}

void *
plumb_cupti_function(const char *name)
{
	return plumb_real_dlsym(plumb_cupti.library, name);
}
