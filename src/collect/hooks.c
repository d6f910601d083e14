/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program looks up by name. CPython looks PyInit__C up right after PyTorch's libraries are
 * mapped and before any of its code runs: that is when the shim attaches.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/context.h"
#include "collect/dlsym.h"
#include "collect/gpu/cuda/interpose.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/python.h"
#include "collect/wait.h"

PLUMB_BEFORE_SANITIZERS struct plumb_dlsym_answer
plumb_dlsym_hook(void *library, const char *name)
{
	struct plumb_dlsym_answer answer = { plumb_dlsym_address(), NULL };
	if (!name || library == RTLD_NEXT)
		return answer;
	if (plumb_unlikely(plumb_waits)) /* samples: a library may have been loaded before this */
		plumb_native_prepare();
	if (name[0] == 'P' && !strncmp(name, "PyInit_", 7)) {
		plumb_framework_offer(name);
		if (plumb_unlikely(strstr(name, "greenlet") != NULL))
			plumb_python_watch_greenlets(library);
	} else if (name[0] == 'c' && !strncmp(name, "cupti", 5)) {
		if (plumb_real_dlsym(library, name)) /* only what the library does have */
			answer.result = plumb_cuda_interpose(name);
	} else if (name[0] == 'n' && !strncmp(name, "nvshmem_", 8)) {
		if (plumb_real_dlsym(library, name))
			answer.result = plumb_nvshmem_interpose(name);
	} else if (name[0] == 'c' && plumb_unlikely(plumb_count_answer != NULL)) {
		answer.result = plumb_count_answer(library, name);
	}
	return answer;
}

struct search {
	const char *name;
	char *path;
	size_t size;
	bool found;
};

static int
search_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	(void)size;
	const char *path = info->dlpi_name;
	const char *base = path ? strrchr(path, '/') : NULL;
	base = base ? base + 1 : path;
	if (!base || strncmp(base, search->name, strlen(search->name)) ||
	    strlen(path) >= search->size)
		return 0;
	strcpy(search->path, path);
	search->found = true;
	return 1;
}

const char *
plumb_find_library(const char *name, char *path, size_t size)
{
	struct search search = { .name = name, .path = path, .size = size };
	dl_iterate_phdr(search_library, &search);
	return search.found ? path : NULL;
}
