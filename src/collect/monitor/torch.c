/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch: global record-function callbacks, registered from C without its headers, a C++ runtime
 * or a compile step. Every operator, backward function and marked range enters and leaves through
 * here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "collect/monitor/framework.h"
#include "collect/monitor/torch_abi.h"
#include "collect/monitor/torch_lean.h"
#include "collect/monitor/torch_memory.h"
#include "collect/monitor/torch_shape.h"
#include "collect/process.h"
#include "collect/real.h"
#include "collect/shape.h"
#include "collect/thread.h"

static struct torch_abi abi;
static uint64_t handle;
static bool listening; /* the callback of `handle` is registered */
static bool keep_shapes;
static bool lean; /* no callbacks for operators: see torch_lean.h */
static bool lean_refused;

/* ---- the ObserverContext that PyTorch keeps between start and end ---- */

/* PyTorch destroys it through its virtual destructor; ours lie in the thread's own memory, so both
 * destructors (complete, deleting) do nothing. Before them: offset to top, type information. */
static void
ticket_destroy(void *ticket)
{
	(void)ticket;
}
static void *const ticket_vtable[] = { NULL, NULL, (void *)ticket_destroy, (void *)ticket_destroy };

/* ---- callbacks ---- */

static uint64_t
read_field(const void *record, int offset)
{
	uint64_t value;
	memcpy(&value, (const char *)record + offset, sizeof value);
	return value;
}

/*
 * Two kinds of node have a number that no operator had when it began. What starts a backward pass
 * of several losses (GraphRoot) is nobody's. CopySlices is made by an operator in place on a view,
 * right after the node of the operator itself.
 */
static int64_t
forward_sequence(const char *name, int64_t sequence)
{
	static const char ours[] = "torch::autograd::";
	if (name[0] != 't' || strncmp(name, ours, sizeof ours - 1))
		return sequence;
	name += sizeof ours - 1;
	if (!strcmp(name, "GraphRoot"))
		return -1;
	return sequence > 0 && !strcmp(name, "CopySlices") ? sequence - 1 : sequence;
}

static void
torch_enter(const void *record, void **result)
{
	*result = NULL;
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (!thread)
		return;
	struct plumb_operator op = { .name = abi.name(record), .sequence = -1, .stack = record };
	uint8_t scope = abi.scope > 0 ? ((const uint8_t *)record)[abi.scope] : TORCH_SCOPE_FUNCTION;
	if (!op.name)
		op.name = "?";
	if (abi.sequence > 0)
		op.sequence = (int64_t)read_field(record, abi.sequence);
	op.backward = scope == TORCH_SCOPE_BACKWARD;
	op.range = scope == TORCH_SCOPE_USER;
	op.engine = scope == TORCH_SCOPE_FUNCTION && op.name[0] == 'a' && op.name[1] == 'u' &&
	            !strncmp(op.name, PLUMB_ENGINE_PREFIX, sizeof PLUMB_ENGINE_PREFIX - 1);
	if (op.backward) {
		op.forward_thread =
			abi.forward_thread > 0 ? read_field(record, abi.forward_thread) : 0;
		op.sequence = forward_sequence(op.name, op.sequence);
	} else if (op.sequence >= 0) {
		op.thread = abi.current_thread();
	}
	if (plumb_unlikely(keep_shapes)) {
		struct plumb_shapes *shapes = plumb_shape_of(thread, torch_shape_outputs);
		char *room = shapes ? plumb_shape_room(shapes) : NULL;
		if (room)
			op.shape_bytes = (uint32_t)torch_shape_inputs(record, op.name, room,
			                                              PLUMB_SHAPE_TEXT);
	}
	struct plumb_ticket *ticket = plumb_operator_enter(thread, &op);
	if (ticket) {
		ticket->vtable = (const void *const *)&ticket_vtable[2];
		*result = ticket;
	}
	plumb_leave(thread);
}

PLUMB_HOT_CODE static void
torch_exit(const void *record, void *context)
{
	struct plumb_ticket *ticket = context;
	if (!ticket)
		return;
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT);
	if (plumb_likely(thread && thread == ticket->thread)) {
		if (plumb_unlikely(thread->shapes))
			thread->shapes->record = record;
		plumb_operator_exit(thread, ticket);
	} else {
		plumb_operator_end_oddly(thread, ticket);
	}
	if (plumb_likely(thread))
		plumb_leave(thread);
}

/* See torch_abi.c: the result is returned in memory, by a pointer that comes first on x86-64 and in
 * x8 on AArch64. */
#if defined(__x86_64__)
PLUMB_HOT_CODE static void *
torch_start(void **result, const void *record)
{
	torch_enter(record, result);
	return result;
}
#elif defined(__aarch64__)
__attribute__((used, visibility("hidden"))) void
plumb_torch_start_c(const void *record, void **result);
void
plumb_torch_start_c(const void *record, void **result)
{
	torch_enter(record, result);
}
__attribute__((visibility("hidden"))) void torch_start(void) __asm__("plumb_torch_start");
__asm__(".text\n.globl plumb_torch_start\n.hidden plumb_torch_start\n.type "
        "plumb_torch_start,%function\n"
        "plumb_torch_start:\n.cfi_startproc\nhint #34\nmov x1,x8\nb plumb_torch_start_c\n"
        ".cfi_endproc\n.size plumb_torch_start,.-plumb_torch_start\n");
#endif

/* ---- who calls backward ---- */

/*
 * torch::autograd::Engine::execute, reached through the procedure linkage table by every caller of
 * backward(), comes here first (preloading puts us in front of libtorch). We note where the program
 * is and jump on with all arguments as they were.
 */
#define ENGINE_EXECUTE                                                                             \
	"_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_" \
	"EEbbbS7_"

__attribute__((used, visibility("hidden"))) void *plumb_torch_backward(const void *caller);
extern const char plumb_torch_thunk[] __asm__(ENGINE_EXECUTE);

/* Notes who calls backward; returns where to jump on. */
void *
plumb_torch_backward(const void *caller)
{
	static struct plumb_real real = { .symbol = ENGINE_EXECUTE,
		                          .library = "libtorch_cpu.so",
		                          .ours = plumb_torch_thunk };
	void *address = plumb_real_function(&real, caller);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (thread) {
		plumb_backward_begin(thread);
		plumb_leave(thread);
	}
	return address;
}

#if defined(__x86_64__)
__asm__(".text\n.globl " ENGINE_EXECUTE "\n.type " ENGINE_EXECUTE ",@function\n" ENGINE_EXECUTE
        ":\n"
        ".cfi_startproc\nendbr64\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"
        "push %rdx\n.cfi_adjust_cfa_offset 8\npush %rcx\n.cfi_adjust_cfa_offset 8\n"
        "push %r8\n.cfi_adjust_cfa_offset 8\npush %r9\n.cfi_adjust_cfa_offset 8\n"
        "sub $8,%rsp\n.cfi_adjust_cfa_offset 8\nmov 56(%rsp),%rdi\ncall plumb_torch_backward\n"
        "add $8,%rsp\n.cfi_adjust_cfa_offset -8\n"
        "pop %r9\n.cfi_adjust_cfa_offset -8\npop %r8\n.cfi_adjust_cfa_offset -8\n"
        "pop %rcx\n.cfi_adjust_cfa_offset -8\npop %rdx\n.cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n.cfi_adjust_cfa_offset -8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"
        "jmp *%rax\n.cfi_endproc\n.size " ENGINE_EXECUTE ",.-" ENGINE_EXECUTE "\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl " ENGINE_EXECUTE "\n.type " ENGINE_EXECUTE ",%function\n" ENGINE_EXECUTE
        ":\n"
        ".cfi_startproc\nhint #34\n"
        "stp x29,x30,[sp,#-96]!\n.cfi_adjust_cfa_offset 96\n.cfi_offset 29,-96\n.cfi_offset "
        "30,-88\n"
        "stp x0,x1,[sp,#16]\nstp x2,x3,[sp,#32]\nstp x4,x5,[sp,#48]\nstp x6,x7,[sp,#64]\n"
        "str x8,[sp,#80]\nmov x0,x30\nbl plumb_torch_backward\nmov x16,x0\n"
        "ldp x0,x1,[sp,#16]\nldp x2,x3,[sp,#32]\nldp x4,x5,[sp,#48]\nldp x6,x7,[sp,#64]\n"
        "ldr x8,[sp,#80]\nldp x29,x30,[sp],#96\n.cfi_adjust_cfa_offset -96\n"
        ".cfi_restore 29\n.cfi_restore 30\nbr x16\n.cfi_endproc\n"
        ".size " ENGINE_EXECUTE ",.-" ENGINE_EXECUTE "\n");
#endif

/* ---- attaching ---- */

/* PyTorch's version, as far as its files tell: version.py beside a wheel's library, else the suffix
 * of a distribution's. NULL: unknown. */
static const char *
torch_version(char *text, size_t size)
{
	static const char marker[] = "__version__ = '";
	char path[sizeof abi.library + 32];
	const char *slash = strrchr(abi.library, '/'), *suffix = strstr(abi.library, ".so.");
	if (slash) {
		snprintf(path, sizeof path, "%.*s/../version.py", (int)(slash - abi.library),
		         abi.library);
		plumb_read_file(path, text, size);
		char *start = strstr(text, marker);
		char *end = start ? strchr(start + sizeof marker - 1, '\'') : NULL;
		if (end) {
			*end = '\0';
			return start + sizeof marker - 1;
		}
	}
	return suffix ? suffix + 4 : NULL;
}

/* One line for each thing that is off, and what is there. */
static void
torch_describe(struct plumb_thread *thread)
{
	char text[512];
	plumb_environment(thread, "torch.library", abi.library);
	plumb_environment(thread, "torch.version", torch_version(text, sizeof text));
	plumb_torch_memory_describe(thread);
	if (lean)
		plumb_environment(thread, "framework.torch.operators",
		                  "from native frames (--mode lean), so their time on the host and "
		                  "their calls are unknown");
	else if (lean_refused)
		plumb_environment(
			thread, "framework.torch.partly",
			"--mode lean does not work with this PyTorch, or plumb was loaded "
			"after it; operators were recorded by callbacks");
	if (abi.sequence < 0 || abi.forward_thread < 0 || abi.scope < 0)
		plumb_environment(
			thread, "framework.torch.partly",
			"operator names only: this PyTorch's at::RecordFunction could not be "
			"probed, so backward work is not joined with its forward operators");
}

/* Whether shapes are kept, as they are when asked for. */
static bool
torch_keep_shapes(void)
{
	struct plumb_error error = { 0 };
	const char *note = NULL;
	bool kept = plumb_collector_options()->shapes && !torch_shape_find(&abi, &note, &error);
	struct plumb_thread *thread;
	if (kept && !note)
		return true;
	if (!plumb_collector_options()->shapes ||
	    !(thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_ENTER)))
		return kept;
	plumb_environment(thread, kept ? "shapes.partly" : "shapes.off",
	                  kept ? note : error.message);
	plumb_leave(thread);
	return kept;
}

static void
torch_listen(bool on)
{
	/* All but data-type dispatch and build features, which are no operators. */
	static const uint8_t scopes[] = { TORCH_SCOPE_FUNCTION,    TORCH_SCOPE_BACKWARD,
		                          TORCH_SCOPE_TORCHSCRIPT, TORCH_SCOPE_CUSTOM_CLASS,
		                          TORCH_SCOPE_LITE,        TORCH_SCOPE_USER,
		                          TORCH_SCOPE_STATIC_OP,   TORCH_SCOPE_STATIC_MODEL };
	struct torch_callback callback = {
		.start = (void *)torch_start,
		.end = (void *)torch_exit,
		.sampling_probability = 1.0,
	};
	if (on == listening)
		return;
	listening = on;
	if (lean)
		torch_lean_listen(&abi, on);
	if (!on) {
		abi.remove_callback(handle);
		return;
	}
	keep_shapes = !lean && torch_keep_shapes();
	callback.needs_inputs = callback.needs_outputs = keep_shapes;
	/* Where no layer of call paths is recorded, ranges are all that is left. */
	for (size_t i = 0; i < sizeof scopes; i++)
		callback.scopes[scopes[i]] =
			plumb_collector_options()->layers || scopes[i] == TORCH_SCOPE_USER;
	if (lean)
		callback.scopes[TORCH_SCOPE_FUNCTION] = callback.scopes[TORCH_SCOPE_STATIC_OP] = 0;
	handle = abi.add_global_callback(callback);
}

static int
torch_attach(struct plumb_error *error)
{
	int result = torch_abi_find(&abi, error);
	if (result)
		return result;
	if (plumb_collector_options()->layers & PLUMB_LAYER_LEAN) {
		lean = abi.scope > 0 && abi.sequence > 0 && abi.forward_thread > 0 &&
		       torch_lean_can(&abi);
		lean_refused = !lean;
		if (lean_refused)
			plumb_process_leave_lean();
	}
	/* The pair's cost is shared between enter and exit. */
	uint64_t half = (uint64_t)(abi.empty_pair_ns * 1000 / 2);
	plumb_process_set_empty_cost(PLUMB_CALLBACK_OPERATOR_ENTER, half);
	plumb_process_set_empty_cost(PLUMB_CALLBACK_OPERATOR_EXIT, half);
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (thread) {
		torch_describe(thread);
		plumb_leave(thread);
	}
	torch_listen(true);
	return 0;
}

const struct plumb_framework plumb_framework_torch = {
	.name = "torch",
	.symbol = "PyInit__C",
	.attach = torch_attach,
	.listen = torch_listen,
	.describe = torch_describe,
};
