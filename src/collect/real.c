/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>

struct search {
	uintptr_t address;
	uintptr_t low;
	size_t bytes;
	char path[PATH_MAX];
};

/* Is it the object that holds the address? */
static int
search_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	uintptr_t low = UINTPTR_MAX, high = 0;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type != PT_LOAD)
			continue;
		uintptr_t start = info->dlpi_addr + header->p_vaddr;
		if (start < low)
			low = start;
		if (start + header->p_memsz > high)
			high = start + header->p_memsz;
	}
	if (search->address < low || search->address >= high)
		return 0;
	search->low = low;
	search->bytes = high - low;
	search->path[0] = '\0';
	if (info->dlpi_name && strlen(info->dlpi_name) < sizeof search->path)
		strcpy(search->path, info->dlpi_name);
	return 1;
}

/* The function as the library PATH sees it; NULL is what was loaded after us. */
static void *
look_up(const struct plumb_real *real, const char *path)
{
	void *scope = path ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : RTLD_NEXT;
	void *found = scope ? plumb_real_dlsym(scope, real->symbol) : NULL;
	if (path && scope)
		dlclose(scope);
	return found == real->ours ? NULL : found;
}

static void *
look_up_for(const struct plumb_real *real, const char *caller)
{
	char path[PATH_MAX];
	void *found = caller[0] ? look_up(real, caller) : NULL;
	if (!found && plumb_find_library(real->library, path, sizeof path))
		found = look_up(real, path);
	return found ? found : look_up(real, NULL);
}

void *
plumb_real_find(struct plumb_real *real, const void *caller)
{
	int saved = errno;
	for (unsigned i = 0; i < PLUMB_REAL_CALLERS; i++) {
		struct plumb_real_caller *known = &real->callers[i];
		void *function = atomic_load_explicit(&known->function, memory_order_acquire);
		if (function && (uintptr_t)caller - known->low < known->bytes)
			return function;
	}
	struct search search = { .address = (uintptr_t)caller };
	dl_iterate_phdr(search_object, &search);
	void *function = look_up_for(real, search.path);
	uint32_t slot = PLUMB_REAL_CALLERS;
	if (function && search.bytes)
		slot = atomic_load_explicit(&real->claimed, memory_order_relaxed);
	while (slot < PLUMB_REAL_CALLERS &&
	       !atomic_compare_exchange_weak(&real->claimed, &slot, slot + 1))
		;
	if (slot < PLUMB_REAL_CALLERS) {
		real->callers[slot].low = search.low;
		real->callers[slot].bytes = search.bytes;
		atomic_store_explicit(&real->callers[slot].function, function,
		                      memory_order_release);
	}
	errno = saved;
	return function;
}

bool
plumb_real_is_neighbour(const struct plumb_real *real, const void *caller, const void *function)
{
	for (unsigned i = 0; i < PLUMB_REAL_CALLERS; i++) {
		const struct plumb_real_caller *known = &real->callers[i];
		if (atomic_load_explicit(&known->function, memory_order_acquire) == function &&
		    (uintptr_t)caller - known->low < known->bytes)
			return (uintptr_t)function - known->low < known->bytes;
	}
	return false;
}
