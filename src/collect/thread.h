/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's part of the collector. Private to src/collect and its monitor/; GPU runtimes use
 * collector.h only.
 *
 * A plumb_thread outlives its thread. It is parked when the thread ends, and the next new thread
 * takes it over with its arena and tables. So memory depends on the number of threads that live at
 * the same time, not on the number that ever lived.
 */
#ifndef PLUMB_COLLECT_THREAD_H
#define PLUMB_COLLECT_THREAD_H

#include "collect/collector.h"
#include "collect/monitor/python_object.h"
#include "collect/table.h"

#define PLUMB_OPERATORS_MAX 16384u     /* nested operators on one thread */
#define PLUMB_PYTHON_MAX 131072u       /* nested Python frames on one thread */
#define PLUMB_RANGES_MAX 4096u         /* nested ranges on one thread; see range.c */
#define PLUMB_BACKWARD_ENTRIES 2048u   /* backward work by forward context */
#define PLUMB_ENGINE_TYPES 1024u       /* of autograd nodes; see torch_lean.c */
#define PLUMB_NAME_CACHE 512u          /* operator names by pointer */
#define PLUMB_RANGE_SITES 512u         /* ranges by the name's pointer */
#define PLUMB_LOCATION_SETS 4096u      /* Python locations by code object and instruction, … */
#define PLUMB_LOCATION_WAYS 4u         /* … this many for each hash */
#define PLUMB_FORWARD_SLOTS (1u << 17) /* forward operators that may wait for their backward */

/*
 * The framework keeps a ticket for us between an operator's enter and exit. The first word must
 * look like that of a C++ object (see torch.c). A ticket stays in use until its own end comes, even
 * if that is late or on another thread. So an end never meets another operator.
 */
struct plumb_ticket {
	const void *const *vtable;
	struct plumb_thread *thread;
	uint32_t serial;            /* of the operator; its frame has the same while it is open */
	uint32_t depth;             /* index of that frame on the stack, from 1 */
	uint32_t next_free;         /* index of the next free ticket */
	_Atomic uint32_t abandoned; /* enum plumb_ticket_state */
};

enum plumb_ticket_state {
	PLUMB_TICKET_OPEN = 0,
	PLUMB_TICKET_ABANDONED = 1, /* its end came on another thread */
	PLUMB_TICKET_ENDED = 2, /* it ended, and its frame waits until those inside it have, too */
};

/* What most events need comes first: they find it in one cache line. */
struct plumb_operator_frame {
	_Alignas(64) plumb_id node; /* 0: an engine frame without its forward operator yet */
	uint32_t serial, ticket;
	uint32_t epoch;  /* the thread's at the begin; another at the end: recording was paused */
	uint64_t start;  /* ticks */
	uint64_t inner;  /* ns in operators that this one called */
	uint64_t away;   /* ns in which its task was parked; see task.h */
	uint32_t module; /* index + 1 of the innermost module's call outside it; see module.h */
	bool engine;
	bool range;
	bool caller_known;          /* engine frames: backward was called on this very thread */
	bool loose;                 /* its end may come before the ends of what is inside it */
	uint8_t source;             /* enum plumb_source: where it is counted */
	uint8_t event, event_flags; /* as it was told at its begin; see event.c */
	plumb_id base; /* engine frames: where it belongs until then, the caller of backward */
	plumb_id name; /* interned */
	/* Python outside this operator: walks inside it stop at python_top, and their frames have
	 * indexes from python_floor. Frames from python_depth are inside. See context.c. */
	const void *python_top;
	uint32_t python_floor, python_depth;
	const void *stack;    /* in the C frame that runs the operator; it may be elsewhere */
	uint64_t cpu, waited; /* see wait.c; cpu 0: its waiting is not measured */
	uint32_t shape_at, shape_bytes; /* its inputs' shapes, on the stack of shape.h */
};

/* A range that a call opened. These have their own stack; a call closes the newest of its
 * domain. */
struct plumb_open_range {
	const struct plumb_range_domain *domain;
	const char *key;             /* the name's pointer */
	struct plumb_ticket *ticket; /* NULL: it was not recorded */
	uint32_t level;              /* in its domain, from 0 */
};

/* One entry of the cached Python stack: the context NODE of the frame (code, lasti) under PARENT.
 * It is from the time when the program had freed GENERATION code objects. The struct is small,
 * because a walk reads one for each frame. */
struct plumb_python_entry {
	const void *code;
	const void *frame; /* where it was met last; only a hint: it may be gone */
	int32_t lasti;
	plumb_id parent, node;
	uint32_t generation : 31;
	uint32_t is_call : 1; /* it calls a module, see module.h, that is not called further out */
};
#define PLUMB_PYTHON_GENERATION 0x7fffffffu
_Static_assert(sizeof(struct plumb_python_entry) == 32, "two in a cache line");

struct plumb_python_location {
	const void *code;
	int32_t lasti;
	uint32_t line;
	plumb_id name, file;
	struct plumb_python_identity identity;
	enum plumb_python_role role;
};

/* A range of NAME in DOMAIN: its interned name, and its context under PARENT. */
struct plumb_range_site {
	const char *pointer; /* of the name; NULL: free */
	const struct plumb_range_domain *domain;
	plumb_id name;
	uint32_t bytes;        /* of the name with its domain */
	plumb_id parent, node; /* node 0: not looked for yet */
};
_Static_assert(sizeof(struct plumb_range_site) == 32, "never in two cache lines");

/* Backward work NAME of a FORWARD operator, called from CALLER, below the engine's frame: one look
 * instead of one for each frame and one for the origin. */
struct plumb_backward_entry {
	plumb_id forward, caller, engine_name, name;
	plumb_id engine, node; /* node 0: free */
	uint64_t pad;
};
_Static_assert(sizeof(struct plumb_backward_entry) == 32, "never in two cache lines");

struct plumb_name_entry {
	const char *pointer;
	plumb_id id;
	uint32_t bytes;
};

/* Maps the sequence numbers of one thread to forward contexts, for engine threads to read. The last
 * operator with a number wins, because it made the autograd node. */
struct plumb_forward_slot {
	_Atomic uint64_t key; /* sequence, tagged with the thread; see forward.c */
	_Atomic uint32_t node;
	uint32_t pad;
};
struct plumb_forward_ring {
	_Atomic uint64_t thread; /* the framework's number of its thread */
	struct plumb_thread *owner;
	struct plumb_forward_ring *next; /* all rings, newest first; never freed */
	struct plumb_forward_slot slots[PLUMB_FORWARD_SLOTS];
};

/* Its first three cache lines are what most events need: cold caches are what an event costs. */
struct plumb_thread {
	uint32_t generation; /* plumb_generation when it was made */
	_Atomic bool busy;   /* its thread is in our own code */
	bool in_event;       /* somebody is being told of an event, … */
	enum plumb_callback_kind callback;
	uint64_t callback_start; /* 0: this callback is not timed */
	int saved_errno;
	uint32_t epoch; /* the control's word at this callback's start, its low half */
	struct plumb_record_overhead *overhead;
	plumb_id track;
	uint32_t operators;    /* depth of the stack */
	uint32_t free_tickets; /* the newest that came back, 0 none */
	uint32_t tickets_made;
	uint32_t serial;
	uint32_t ended_early; /* frames of ENDED tickets on the stack */

	struct plumb_operator_frame *stack; /* [1 … operators] */
	struct plumb_ticket *tickets;       /* [1 … PLUMB_OPERATORS_MAX] */
	struct plumb_id_table nodes;
	struct plumb_open_range *ranges; /* [0 … ranges_open) */
	struct plumb_range_site *sites;
	struct plumb_shapes *shapes; /* NULL: they are not kept; see shape.h */
	struct plumb_native *native; /* see native_context.c; NULL until it is needed */

	const void **chain; /* scratch, innermost first */
	struct plumb_python_entry *python;
	uint32_t ranges_open;
	uint32_t python_seen;          /* entries that the last walk met or stopped at */
	_Atomic uint32_t last_context; /* newest context of an operator outside any other */
	uint32_t module;               /* index + 1 of the innermost call, after a walk; module.h */
	struct plumb_arena arena;

	uint32_t module_open; /* likewise, of calls whose shapes are still to be written */
	uint32_t module_serial;
	struct plumb_record_thread *record;
	struct plumb_thread *next; /* all threads, newest first; never freed */
	struct plumb_thread *next_parked;
	_Atomic uint32_t tid; /* 0 while parked */
	plumb_id event_node;  /* … of this context; 0: the current one */
	size_t bytes;         /* of the mapping that this struct begins */
	uint64_t waited;      /* ns of waiting told so far */

	struct plumb_name_entry *names;
	plumb_id *call_names;   /* see plumb_call_name */
	plumb_id *engine_names; /* of engine frames, by the node's type */
	struct plumb_id_table strings;
	struct plumb_id_table origins; /* ORIGIN records, by node and origin */
	struct plumb_id_table memory;  /* MEMORY records, by node and pool */

	struct plumb_python_frame *walk;          /* scratch, innermost first */
	struct plumb_python_identity *identities; /* of the entries */
	struct plumb_python_location *locations;
	struct plumb_python_symbol *symbol; /* scratch */
	struct plumb_module_call *calls;    /* beside the entries */
	struct plumb_modules *modules;      /* NULL: none was called yet */

	struct plumb_span_ring *spans; /* made when the first one is kept */

	struct plumb_forward_ring *forward;
	_Atomic uint32_t backward_context; /* where this thread called backward last */
	struct plumb_backward_entry *backward;
	plumb_id caller; /* engine threads: who called the backward pass they run */

	struct plumb_tasks *tasks;               /* NULL: none was parked yet; see task.h */
	uint32_t parked;                         /* tasks that are */
	plumb_id root_value;                     /* chain of the values at the root */
	struct plumb_id_table range_names;       /* strings that were a range's name */
	struct plumb_metric_slot *metrics;       /* the program's own; see user_metric.c */
	struct plumb_comm_thread *communication; /* NULL: none yet; see comm/totals.c */
};
_Static_assert(sizeof(struct plumb_operator_frame) == 128, "two cache lines");
_Static_assert(offsetof(struct plumb_thread, arena.ledger) == 192, "three cache lines");

/* Call it before signals come: makes the key whose destructor ends a thread's part. */
void plumb_threads_prepare(void);

/* The calling thread's, whatever its state; NULL when it has none. For exit and tests. */
struct plumb_thread *plumb_thread_get(void);
/* Is the calling thread in our own code? After a fork this means that a signal handler forked. */
bool plumb_thread_inside(void);
/* For a forked child: forgets the parent's threads. Their memory stays, because the framework still
 * has tickets of open operators. */
void plumb_threads_forked(void);
/* Waits until no thread is in our own code. Recording is over, so no thread enters. False: a thread
 * stays there. */
bool plumb_threads_quiesce(void);
/* After that, in a new generation: forgets all threads, and frees what nobody uses. */
void plumb_threads_renew(void);
/* Writes every living thread's name and end into its record. */
void plumb_threads_finish(struct plumb_thread *self);

/* Ends all operators that are open on THREAD, which is ending. */
void plumb_operators_drop(struct plumb_thread *thread);

/* context.c: ends an operator that does not end by a normal exit on its own thread. THREAD is the
 * calling thread between enter and leave, or NULL if it may not enter (recording is paused or over,
 * or the thread is in our own code). */
void plumb_operator_end_oddly(struct plumb_thread *thread, struct plumb_ticket *ticket);

/* backward.c and forward.c in a forked child: nothing of the parent is known. */
void plumb_backward_forked(void);
void plumb_forward_forked(void);

/* forward.c */
void plumb_forward_put(struct plumb_thread *thread, uint64_t framework_thread, int64_t sequence,
                       plumb_id node);
/* The context, or 0. *owner gets the thread that ran the forward pass, or NULL. */
plumb_id
plumb_forward_get(uint64_t framework_thread, int64_t sequence, struct plumb_thread **owner);

#endif
