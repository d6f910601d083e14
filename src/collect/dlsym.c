/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/dlsym.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "collect/collector.h"

static void *(*_Atomic real_dlsym)(void *, const char *);

static PLUMB_BEFORE_SANITIZERS void *(*real(void))(void *, const char *)
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

void *
plumb_dlsym_address(void)
{
	return (void *)real();
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
