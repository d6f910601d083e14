/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for a framework shim: PyTorch today; JAX, NVTX and others are one more file beside
 * monitor/torch.c and one more row in monitor/framework.c.
 *
 * A shim notices its framework when CPython looks a symbol up (the dlsym hook), attaches without
 * compiling or linking against it, checks every layout it uses, and refuses what it does not know:
 * a refusal is one line in the environment ("framework.<name>.off"), and the program goes on.
 */
#ifndef PLUMB_COLLECT_MONITOR_FRAMEWORK_H
#define PLUMB_COLLECT_MONITOR_FRAMEWORK_H

#include <stdbool.h>

#include "collect/collector.h"

struct plumb_framework {
	const char *name;   /* "torch" */
	const char *symbol; /* what the dlsym hook waits for, e.g. "PyInit__C" */
	/*
	 * Called after each look-up of `symbol`, and once from the GPU's injection hook. Returns 0
	 * when attached, 1 when the framework is not there yet (it is called again), negative when
	 * it refuses (not called again).
	 */
	int (*attach)(struct plumb_error *error);
	/* Whether its callbacks are to be called, once it is attached: off between two recordings
	 * in one process. The program's threads may be in one of them. */
	void (*listen)(bool on);
	/* Writes again what attach() wrote into the environment: for a forked child's region. */
	void (*describe)(struct plumb_thread *thread);
};

extern const struct plumb_framework plumb_framework_torch;

/* The dlsym hook and the injection hook call this; SYMBOL NULL tries all. Cheap when nothing waits.
 * Nothing is detached at the end of the process: other threads may still run operators, and their
 * callbacks find recording over. */
void plumb_framework_offer(const char *symbol);

/* Switches the callbacks of attached frameworks off or on again. */
void plumb_framework_listen(bool on);

/* In a forked child's first thread: describes the frameworks that its parent attached. */
void plumb_framework_describe(struct plumb_thread *thread);

/* Writes which Python was met, or why its lines are off; nothing where none was met yet. For a new
 * region: one that is there already (samples need no Python) is told when Python is met. */
void plumb_framework_describe_python(struct plumb_arena *arena);

/* ---- for shims ---- */

/* Operator enter and exit on the calling thread. They nest; an exit without its enter is
 * ignored. */
struct plumb_operator {
	const char *name;         /* need not outlive the call */
	int64_t sequence;         /* autograd sequence number, -1 none */
	bool backward;            /* this is the backward record of (forward_thread, sequence) */
	bool engine;              /* this is the engine's own frame around a backward record. Its
	                             name may be NULL until then */
	bool range;               /* a span that the person marked, not an operator */
	bool loose;               /* its end ends nothing but itself, in whatever order ends come */
	enum plumb_source source; /* where it is counted; 0: as an operator */
	plumb_id id;              /* the name, interned already; or 0 */
	struct plumb_range_site *site; /* of a range that range.c knows; or NULL */
	uint64_t thread;               /* the framework's number of the calling thread */
	uint64_t forward_thread;
	uint32_t shape_bytes; /* of the inputs' shapes, written where shape.h has room */
	/* An address in the C frame that runs the operator; what is not on the stack is ignored. */
	const void *stack;
};
#define PLUMB_ENGINE_PREFIX "autograd::engine::evaluate_function: "
/* The name of the engine's frame around a node of that name. */
plumb_id plumb_engine_name(struct plumb_thread *thread, const char *node);
/* Returns a ticket for the exit, NULL when nothing was pushed. Whoever gets one gives it back once:
 * by plumb_operator_exit on the same thread, else by marking it abandoned. See thread.h. */
struct plumb_ticket *
plumb_operator_enter(struct plumb_thread *thread, const struct plumb_operator *op);
void plumb_operator_exit(struct plumb_thread *thread, struct plumb_ticket *ticket);

/* The calling thread starts a backward pass: what the engine does from now on for no forward
 * operator belongs to the current context. */
void plumb_backward_begin(struct plumb_thread *thread);

#endif
