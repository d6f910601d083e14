/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/handler_stack.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/table.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
enum { KERNEL_FRAME = 2048 }; /* where the kernel does not tell it: before Linux 5.14 */

void *
plumb_handler_stack_map(void)
{
	char *memory = plumb_map(PLUMB_HANDLER_STACK, true);
	if (memory)
		(void)mprotect(memory, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
	return memory;
}

bool
plumb_handler_stack_is_small(const stack_t *stack)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);
	return !(stack->ss_flags & SS_DISABLE) &&
	       stack->ss_size < (frame ? frame : KERNEL_FRAME) + PLUMB_HANDLER_FRAME;
}

/* The bare calls: our own wrapper would hide the stack (shield.c). */
stack_t
plumb_handler_stack_give(void *memory, void *top)
{
	char *low = (char *)memory + sysconf(_SC_PAGESIZE);
	stack_t ours = { .ss_sp = low, .ss_size = (size_t)((char *)top - low) };
	stack_t now = { .ss_flags = SS_DISABLE };
	syscall(SYS_sigaltstack, NULL, &now);
	if (now.ss_flags & SS_DISABLE && !syscall(SYS_sigaltstack, &ours, NULL))
		return ours;
	return now;
}

bool
plumb_handler_stack_take(void *memory)
{
	stack_t none = { .ss_flags = SS_DISABLE }, now = none;
	syscall(SYS_sigaltstack, NULL, &now);
	/* A handler of the program's may end its thread. */
	return !plumb_handler_stack_has(memory, now.ss_sp) ||
	       !syscall(SYS_sigaltstack, &none, NULL);
}

/* The frame pointer keeps the way back, and unwinders find it. */
#if defined(__x86_64__)
__asm__(".text\n.globl plumb_handler_stack_call\n.hidden plumb_handler_stack_call\n"
        ".type plumb_handler_stack_call,@function\nplumb_handler_stack_call:\n.cfi_startproc\n"
        "endbr64\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp,-16\n"
        "mov %rsp,%rbp\n.cfi_def_cfa_register %rbp\n"
        "mov %rdi,%rsp\nmov %rdx,%rdi\ncall *%rsi\n"
        "mov %rbp,%rsp\npop %rbp\n.cfi_def_cfa %rsp,8\nret\n"
        ".cfi_endproc\n.size plumb_handler_stack_call,.-plumb_handler_stack_call\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl plumb_handler_stack_call\n.hidden plumb_handler_stack_call\n"
        ".type plumb_handler_stack_call,%function\nplumb_handler_stack_call:\n.cfi_startproc\n"
        "hint #34\nstp x29,x30,[sp,#-16]!\n.cfi_def_cfa_offset 16\n"
        ".cfi_offset 29,-16\n.cfi_offset 30,-8\n"
        "mov x29,sp\n.cfi_def_cfa_register 29\n"
        "mov sp,x0\nmov x0,x2\nblr x1\n"
        "mov sp,x29\nldp x29,x30,[sp],#16\n.cfi_def_cfa 31,0\n.cfi_restore 29\n.cfi_restore "
        "30\nret\n"
        ".cfi_endproc\n.size plumb_handler_stack_call,.-plumb_handler_stack_call\n");
#else
#error "the handler's stack is written for x86-64 and AArch64 only"
#endif
