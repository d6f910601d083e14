/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dlsym hook. CPython looks PyInit__C up right after PyTorch's libraries are mapped and before
 * any of its code runs: that is when the shim attaches. dlsym itself must see its real caller
 * (RTLD_NEXT depends on it), so the hook jumps on to the real one rather than calling it.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/context.h"
#include "collect/gpu/cuda/interpose.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/python.h"
#include "collect/wait.h"

/* A sanitizer's runtime looks symbols up before its own memory is there. */
#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined")))

static void *(*_Atomic real_dlsym)(void *, const char *);

static BEFORE_SANITIZERS void *(*real(void))(void *, const char *)
{
	void *(*found)(void *, const char *) =
		atomic_load_explicit(&real_dlsym, memory_order_relaxed);
	/* The architecture's first version, which every glibc has: a look-up that fails would
	 * allocate, and an allocator that looks itself up by dlsym would come back here. */
#if defined(__x86_64__)
	static const char version[] = "GLIBC_2.2.5";
#else
	static const char version[] = "GLIBC_2.17";
#endif
	if (!found) {
		found = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", version);
		atomic_store_explicit(&real_dlsym, found, memory_order_relaxed);
	}
	return found;
}

void *
plumb_real_dlsym(void *handle, const char *name)
{
	return real()(handle, name);
}

/* What the assembly below asks: where to jump, or what to return instead. */
struct dlsym_answer {
	void *jump;
	void *result;
};
__attribute__((used, visibility("hidden"))) struct dlsym_answer
plumb_dlsym_hook(void *library, const char *name);

BEFORE_SANITIZERS struct dlsym_answer
plumb_dlsym_hook(void *library, const char *name)
{
	struct dlsym_answer answer = { (void *)real(), NULL };
	if (!name || library == RTLD_NEXT)
		return answer;
	if (plumb_unlikely(plumb_waits)) /* samples: a library may have been loaded before this */
		plumb_native_prepare();
	if (name[0] == 'P' && !strncmp(name, "PyInit_", 7)) {
		plumb_framework_offer(name);
		if (plumb_unlikely(strstr(name, "greenlet") != NULL))
			plumb_python_watch_greenlets(library);
	} else if (name[0] == 'c' && !strncmp(name, "cupti", 5) && real()(library, name))
		answer.result = plumb_cuda_interpose(name); /* only what the library does have */
	return answer;
}

#if defined(__x86_64__)
__asm__(".text\n.globl dlsym\n.type dlsym,@function\ndlsym:\n.cfi_startproc\nendbr64\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"
        "sub $8,%rsp\n.cfi_adjust_cfa_offset 8\ncall plumb_dlsym_hook\n"
        "add $8,%rsp\n.cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n.cfi_adjust_cfa_offset -8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"
        "test %rdx,%rdx\njnz 1f\njmp *%rax\n1: mov %rdx,%rax\nret\n"
        ".cfi_endproc\n.size dlsym,.-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl dlsym\n.type dlsym,%function\ndlsym:\n.cfi_startproc\nhint #34\n"
        "stp x29,x30,[sp,#-32]!\n.cfi_adjust_cfa_offset 32\n.cfi_offset 29,-32\n.cfi_offset "
        "30,-24\n"
        "stp x0,x1,[sp,#16]\nbl plumb_dlsym_hook\nmov x16,x0\nmov x17,x1\n"
        "ldp x0,x1,[sp,#16]\nldp x29,x30,[sp],#32\n.cfi_adjust_cfa_offset -32\n"
        ".cfi_restore 29\n.cfi_restore 30\ncbnz x17,1f\nbr x16\n1: mov x0,x17\nret\n"
        ".cfi_endproc\n.size dlsym,.-dlsym\n");
#else
#error "the dlsym hook is written for x86-64 and AArch64 only"
#endif

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
