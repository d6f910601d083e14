/* SPDX-License-Identifier: Apache-2.0 */
/* See torch_lean.h. Operators themselves are found by settle, in the native path of a call. */
#include "collect/monitor/torch_lean.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "collect/context.h"
#include "collect/monitor/framework.h"
#include "collect/real.h"

static _Atomic(uint64_t (*)(void)) current_thread; /* NULL: nobody listens */

static inline bool
is_listening(void)
{
	return plumb_unlikely(atomic_load_explicit(&current_thread, memory_order_relaxed) != NULL);
}

/* ---- the number of an autograd node ---- */

/* Every operator that has a gradient makes its node here, inside itself, so the native path from
 * here is that of the operator. Other nodes (of Python's autograd functions) are made at their
 * call. */
#define GET_AND_INCREMENT "_ZN2at15sequence_number17get_and_incrementEv"
PLUMB_EXPORT uint64_t plumb_torch_sequence(void) __asm__(GET_AND_INCREMENT);

PLUMB_HOT_CODE static __attribute__((noinline)) void
note_sequence(uint64_t number)
{
	uint64_t (*thread_number)(void) = atomic_load(&current_thread);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (!thread)
		return;
	plumb_id here = plumb_context_current(thread);
	if (thread_number && here && here != PLUMB_LOST)
		plumb_forward_put(thread, thread_number(), (int64_t)number, here);
	plumb_leave(thread);
}

PLUMB_HOT_CODE uint64_t
plumb_torch_sequence(void)
{
	static struct plumb_real real = { .symbol = GET_AND_INCREMENT,
		                          .library = "libtorch_cpu.so",
		                          .ours = (const void *)plumb_torch_sequence };
	uint64_t (*function)(void) =
		(uint64_t (*)(void))plumb_real_function(&real, __builtin_return_address(0));
	uint64_t number = function ? function() : 0;
	if (is_listening())
		note_sequence(number);
	return number;
}

/* ---- the engine's frame around a node ---- */

#define EVALUATE                                                                                   \
	"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_"       \
	"4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE"

/* What the thunks below keep on the stack, lowest address first. The function has no arguments on
 * the stack. */
struct call {
#if defined(__x86_64__)
	uint64_t r9, r8, rcx;
	const void *node; /* rdx */
	uint64_t rsi, rdi;
	struct plumb_ticket *ticket;
	const void *caller;
#define TICKET_AT 0 /* bytes from the stack pointer while the function runs */
#elif defined(__aarch64__)
#define TICKET_AT 80
	const void *frame, *caller;
	uint64_t x0, x1;
	const void *node;
	uint64_t x3, x4, x5, x6, x7;
	struct plumb_ticket *ticket;
	uint64_t pad;
#endif
};

__attribute__((used, visibility("hidden"))) void *plumb_torch_evaluate_begin(struct call *call);
__attribute__((used, visibility("hidden"))) void
plumb_torch_evaluate_end(struct plumb_ticket *ticket);
__attribute__((used, visibility("hidden"))) _Unwind_Reason_Code
plumb_torch_evaluate_thrown(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                            struct _Unwind_Exception *exception, struct _Unwind_Context *context);
extern const char plumb_torch_evaluate[] __asm__(EVALUATE);

/*
 * The name that PyTorch gives to a node whose type has this mangled name. Classes that PyTorch
 * generates have their bare name, others their whole one. False: it is a template or of Python,
 * whose backward record says it.
 */
static bool
spell_class(const char *mangled, char *text, size_t size)
{
	size_t used = 0;
	bool generated = false;
	if (*mangled++ != 'N')
		return false;
	while (*mangled >= '1' && *mangled <= '9') {
		size_t length = 0;
		while (*mangled >= '0' && *mangled <= '9' && length < size)
			length = length * 10 + (size_t)(*mangled++ - '0');
		if (length > strnlen(mangled, size) || used + length + 3 > size)
			return false;
		if (generated)
			used = 0;
		else if (used)
			used += (size_t)sprintf(text + used, "::");
		memcpy(text + used, mangled, length);
		text[used += length] = '\0';
		generated = generated || (length == 9 && !memcmp(mangled, "generated", length));
		mangled += length;
	}
	return mangled[0] == 'E' && !mangled[1] && strcmp(text, "torch::autograd::PyNode");
}

/* Engine frames by the node's type, which its table of virtual functions tells. A program has a
 * hundred types. They are found by one cache line; each thread interns a name once. */
#define TYPES PLUMB_ENGINE_TYPES
static struct type {
	_Atomic(const void *) vtable; /* NULL: free */
	_Atomic(const char *) name;   /* NULL: not known yet; "": the type does not say it */
} types[TYPES];

/* The name of the engine's frame around a node of this type, made once. */
static const char *
make_name(const void *vtable)
{
	static char names[TYPES][120];
	static _Atomic uint32_t used;
	const size_t prefix = sizeof PLUMB_ENGINE_PREFIX - 1;
	const char *const *info = ((const void *const *)vtable)[-1];
	const char *mangled = info ? info[1] : NULL;
	uint32_t mine = atomic_fetch_add(&used, 1);
	if (!mangled || mine >= TYPES ||
	    !spell_class(mangled, names[mine] + prefix, sizeof names[mine] - prefix))
		return "";
	memcpy(names[mine], PLUMB_ENGINE_PREFIX, prefix);
	return names[mine];
}

/* The number of NODE's type, from 1; 0: there are too many. *NAME as in struct type. */
static inline uint32_t
type_of(const void *node, const char **name)
{
	const void *vtable = *(const void *const *)node, *taken;
	uint32_t at = (uint32_t)(plumb_mix((uintptr_t)vtable, 0) >> 20);
	for (uint32_t i = 0; vtable && i < TYPES; i++) {
		struct type *type = &types[(at + i) % TYPES];
		taken = atomic_load_explicit(&type->vtable, memory_order_relaxed);
		if (plumb_unlikely(!taken) &&
		    atomic_compare_exchange_strong(&type->vtable, &taken, vtable)) {
			atomic_store_explicit(&type->name, make_name(vtable), memory_order_release);
			taken = vtable;
		}
		if (plumb_likely(taken == vtable)) {
			*name = atomic_load_explicit(&type->name, memory_order_acquire);
			return (at + i) % TYPES + 1;
		}
	}
	*name = NULL;
	return 0;
}

/* The interned name of the engine's frame around NODE; 0: its backward record says it. */
static plumb_id
engine_name(struct plumb_thread *thread, const void *node)
{
	const char *name;
	uint32_t type = type_of(node, &name);
	if (!type || !name || !name[0])
		return 0;
	plumb_id *known = &thread->engine_names[type - 1];
	if (plumb_unlikely(!*known))
		*known = plumb_intern(thread, name, strlen(name));
	return *known;
}

PLUMB_HOT_CODE void *
plumb_torch_evaluate_begin(struct call *call)
{
	static struct plumb_real real = { .symbol = EVALUATE,
		                          .library = "libtorch_cpu.so",
		                          .ours = plumb_torch_evaluate };
	void *address = plumb_real_function(&real, call->caller);
	call->ticket = NULL;
	struct plumb_thread *thread =
		is_listening() ? plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER) : NULL;
	if (!thread)
		return address;
	struct plumb_operator op = {
		.id = call->node ? engine_name(thread, call->node) : 0,
		.sequence = -1,
		.engine = true,
		.stack = &call->ticket,
	};
	call->ticket = plumb_operator_enter(thread, &op);
	plumb_leave(thread);
	return address;
}

PLUMB_HOT_CODE void
plumb_torch_evaluate_end(struct plumb_ticket *ticket)
{
	struct plumb_thread *thread = ticket ? plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT) : NULL;
	if (plumb_likely(thread && thread == ticket->thread))
		plumb_operator_exit(thread, ticket);
	else if (ticket)
		plumb_operator_end_oddly(thread, ticket);
	if (thread)
		plumb_leave(thread);
}

/* libgcc's _Unwind_GetCFA: while an exception passes through a function, its stack pointer. */
static _Unwind_Word (*stack_pointer)(struct _Unwind_Context *context);

/* The thunk's personality: an exception passes through it. */
_Unwind_Reason_Code
plumb_torch_evaluate_thrown(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                            struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	(void)version, (void)class, (void)exception;
	if (actions & _UA_CLEANUP_PHASE && stack_pointer)
		plumb_torch_evaluate_end(
			*(struct plumb_ticket **)(stack_pointer(context) + TICKET_AT));
	return _URC_CONTINUE_UNWIND;
}

#if defined(__x86_64__)
__asm__(".text\n.globl " EVALUATE "\n.type " EVALUATE ",@function\n" EVALUATE ":\n"
        ".cfi_startproc\n.cfi_personality 0x1b,plumb_torch_evaluate_thrown\nendbr64\n"
        "sub $8,%rsp\n.cfi_adjust_cfa_offset 8\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"
        "push %rdx\n.cfi_adjust_cfa_offset 8\npush %rcx\n.cfi_adjust_cfa_offset 8\n"
        "push %r8\n.cfi_adjust_cfa_offset 8\npush %r9\n.cfi_adjust_cfa_offset 8\n"
        "mov %rsp,%rdi\ncall plumb_torch_evaluate_begin\n"
        "pop %r9\n.cfi_adjust_cfa_offset -8\npop %r8\n.cfi_adjust_cfa_offset -8\n"
        "pop %rcx\n.cfi_adjust_cfa_offset -8\npop %rdx\n.cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n.cfi_adjust_cfa_offset -8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"
        "call *%rax\n"
        "mov (%rsp),%rdi\ncall plumb_torch_evaluate_end\n"
        "add $8,%rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n"
        ".size " EVALUATE ",.-" EVALUATE "\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl " EVALUATE "\n.type " EVALUATE ",%function\n" EVALUATE ":\n"
        ".cfi_startproc\n.cfi_personality 0x1b,plumb_torch_evaluate_thrown\nhint #34\n"
        "stp x29,x30,[sp,#-96]!\n.cfi_adjust_cfa_offset 96\n.cfi_offset 29,-96\n.cfi_offset "
        "30,-88\n"
        "mov x29,sp\n"
        "stp x0,x1,[sp,#16]\nstp x2,x3,[sp,#32]\nstp x4,x5,[sp,#48]\nstp x6,x7,[sp,#64]\n"
        "mov x0,sp\nbl plumb_torch_evaluate_begin\nmov x16,x0\n"
        "ldp x0,x1,[sp,#16]\nldp x2,x3,[sp,#32]\nldp x4,x5,[sp,#48]\nldp x6,x7,[sp,#64]\n"
        "blr x16\n"
        "ldr x0,[sp,#80]\nbl plumb_torch_evaluate_end\n"
        "ldp x29,x30,[sp],#96\n.cfi_adjust_cfa_offset -96\n"
        ".cfi_restore 29\n.cfi_restore 30\nret\n.cfi_endproc\n"
        ".size " EVALUATE ",.-" EVALUATE "\n");
#endif

/* ---- listening ---- */

void
torch_lean_listen(const struct torch_abi *abi, bool on)
{
	atomic_store(&current_thread, on ? abi->current_thread : NULL);
}

/* The program's libgcc, which the exceptions of PyTorch come from. */
static bool
find_unwinder(void)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_NOLOAD | RTLD_LAZY);
	if (library) {
		stack_pointer = (_Unwind_Word(*)(struct _Unwind_Context *))plumb_real_dlsym(
			library, "_Unwind_GetCFA");
		dlclose(library); /* PyTorch keeps it */
	}
	return stack_pointer;
}

bool
torch_lean_can(const struct torch_abi *abi)
{
	static const char *const names[] = { GET_AND_INCREMENT, EVALUATE };
	const void *const ours[] = { (const void *)plumb_torch_sequence, plumb_torch_evaluate };
	void *library = dlopen(abi->library, RTLD_NOLOAD | RTLD_LAZY);
	void *program = dlopen(NULL, RTLD_LAZY); /* what every library looks in first */
	bool first = library && program && find_unwinder();
	for (size_t i = 0; i < 2 && first; i++)
		first = plumb_real_dlsym(library, names[i]) &&
		        plumb_real_dlsym(program, names[i]) == ours[i];
	if (library)
		dlclose(library);
	if (program)
		dlclose(program);
	return first;
}
