/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA through the Compute Sanitizer (`plumb run --traffic=full` and sampled). Private to
 * gpu/sanitizer.
 *
 *   sanitizer.c    start, stop; the service thread, which may call the driver
 *   library.c      the library, and the patches that plumb brings (patches.fatbin, from patch.cu)
 *   callbacks.c    what the sanitizer tells, on the program's threads
 *   memory.c       allocations → objects; copies → transfers
 *   share.c        memory that processes share by handles
 *   table.c        objects → the table of ranges that the patches search
 *   modules.c      modules and functions; what is patched
 *   launch.c       user data of launches; which launches are counted
 *   read.c         counts → transfers, bins and granules
 *   device.c       the memory that plumb has on a device, and what is copied there
 *   counting.h     the code that counts, on the GPU and in tests
 *   estimate.h     which launches are drawn, and what they stand for
 *
 * Callbacks call nothing of CUDA and wait for nothing: what they need of a device is reserved when
 * its context is first used, and what finds no room is counted. One lock guards the state. It is
 * held over no call of the sanitizer. Such calls may cause callbacks on the same thread, which are
 * ours and are ignored (plumb_sanitizer_enter).
 */
#ifndef PLUMB_COLLECT_GPU_SANITIZER_RUNTIME_H
#define PLUMB_COLLECT_GPU_SANITIZER_RUNTIME_H

#include <pthread.h>

#include "collect/gpu/sanitizer/api.h"
#include "collect/gpu/sanitizer/counting.h"
#include "collect/gpu/sanitizer/estimate.h"
#include "collect/gpu/sanitizer/sanitizer.h"
#include "collect/object.h"

/* ---- library.c ---- */

extern struct plumb_sanitizer_api plumb_sanitizer;
/* Negative: ERROR says what was tried. */
int plumb_sanitizer_find(struct plumb_error *error);
const char *plumb_sanitizer_message(sanitizer_result result);
/* The patches, and their bytes. */
const void *plumb_sanitizer_patches(size_t *bytes);

/* ---- device.c ---- */

/* Positions in a ring ascend for ever; a place is taken again when all launches that could use it
 * have surely ended: two synchronisations of the whole context later. */
struct plumb_ring {
	uint64_t head, before, tail; /* next; at the last synchronisation; the oldest in use */
	uint64_t capacity;
	char *device, *mirror; /* MIRROR: the host's copy */
};
/* BYTES in one piece; UINT64_MAX: there is no room. */
uint64_t plumb_ring_take(struct plumb_ring *ring, uint64_t bytes);
static inline bool
plumb_ring_holds(const struct plumb_ring *ring, uint64_t position)
{
	return position != UINT64_MAX && position >= ring->tail;
}
#define PLUMB_RING_AT(ring, place, position)                                                       \
	((void *)((ring)->place + (position) % (ring)->capacity))

#define PLUMB_SLOTS 65536u    /* of a context; a power of two */
#define PLUMB_BANK_SLOTS 256u /* of a unit of sampled launches */
#define PLUMB_BANKS (PLUMB_SLOTS / PLUMB_BANK_SLOTS)
#define PLUMB_BINS (1u << 19)      /* of a context */
#define PLUMB_BIT_WORDS (1u << 20) /* likewise, of 32 granules */
#define PLUMB_OBJECT_BINS 1024u    /* of an allocation, at most */
#define PLUMB_OBJECT_GRANULES 65536u
#define PLUMB_TABLE_BYTES (2u << 20)
#define PLUMB_LAUNCH_BYTES (4u << 20)
#define PLUMB_FIXED 1024u /* functions in graphs */

struct plumb_sanitizer_context;

/* A piece of the mirror that has to be on the device before a launch. */
struct plumb_push {
	void *to, *from;
	size_t bytes;
};
#define PLUMB_PUSHES 4

/* Gets a context's memory, once. False: it cannot be had. LAST: nor will it be asked for again.
 * Without the lock. */
bool plumb_sanitizer_prepare(struct plumb_sanitizer_context *context, bool last);
/* Without the lock. */
void plumb_sanitizer_push(const struct plumb_push *pushes, unsigned count, sanitizer_stream stream);

/* ---- state ---- */

/* Where the bins and granules of a range are, for one context. */
struct plumb_place {
	uint32_t range; /* OBJECT_RANGE; 0: free */
	uint32_t bins, bin_count, bits, bit_count;
	uint32_t bin_shift, bit_shift;
	uint64_t told; /* granules that were told as touched */
};
#define PLUMB_PLACES 4096u /* of a context; a power of two */

/* Launches that are counted together, or one: the unit of sampling. If the banks run out, several
 * units share one. */
struct plumb_bank {
	sanitizer_stream stream;
	bool several; /* streams: it has ended when the whole context has */
	bool used, closed;
	bool reading; /* it is read and cleared now */
};

struct plumb_sanitizer_context {
	sanitizer_context handle;
	uint32_t ordinal;
	bool live, ready, refused;
	bool patched; /* has the patches */
	bool reaches; /* some mapping of another device's memory is there */
	void *memory; /* all of it, on the device */
	sanitizer_stream null_stream;
	/* Parts of it. */
	struct plumb_counting_drops *drops;
	struct plumb_counting_slot *slots;
	plumb_u64 *bins;
	plumb_u32 *bits;
	struct plumb_counting *fixed;
	struct plumb_ring tables, launches;
	/* The host's copies, as they were read last. */
	struct plumb_counting_slot *seen;
	struct plumb_counting_drops seen_drops;
	plumb_u64 *seen_bins;
	plumb_u32 *seen_bits;
	uint64_t read_ns, read_bins_ns;
	bool dirty; /* something was launched since */
	/* The current table. */
	uint64_t epoch; /* plumb_objects_epoch when it was made; 0: none */
	uint64_t table; /* its position; UINT64_MAX: none */
	size_t table_bytes;
	struct plumb_counting head; /* all but the site and the slots */
	sanitizer_stream pushed[32];
	uint32_t pushed_count;
	struct plumb_place *places;
	uint32_t bins_used, bits_used;
	struct plumb_bank banks[PLUMB_BANKS];
	uint32_t banks_used, next_bank, fixed_used;
	struct plumb_counting fixed_now[PLUMB_FIXED]; /* what is on the device */
	struct plumb_draw graph_draw;
};
#define PLUMB_CONTEXTS 16u
extern struct plumb_sanitizer_context plumb_sanitizer_contexts[PLUMB_CONTEXTS];
extern pthread_mutex_t plumb_sanitizer_lock;
/* The context, if plumb has it; NULL: it has none. */
struct plumb_sanitizer_context *plumb_sanitizer_live_context(sanitizer_context handle);
/* With the lock: the context, made if it is missing and ORDINAL is known (not UINT32_MAX). */
struct plumb_sanitizer_context *
plumb_sanitizer_context_of(sanitizer_context handle, uint32_t ordinal);

/* ---- modules.c ---- */

struct plumb_sanitizer_module {
	sanitizer_module handle;
	struct plumb_sanitizer_context *context;
	uint64_t hash; /* in the store of code */
	char *image;   /* a copy, for its functions' names */
	size_t bytes;
	bool live, marked, patched, failed; /* MARKED: the sanitizer knows which instructions */
	uint64_t patch_ns;                  /* what patching it took */
	struct plumb_draw draw;             /* of units of its launches */
	uint32_t idle;                      /* launches in turn that reached nothing */
	uint32_t rest;                      /* launches until it is looked at again; 0: it is now */
	uint32_t next_rest;
	bool in_graph; /* a graph may launch it at any time */
	int bank;      /* of the unit that is drawn; -1: none */
};
struct plumb_sanitizer_function {
	sanitizer_function handle;
	struct plumb_sanitizer_module *module;
	const char *name; /* a copy */
	bool wanted;      /* --traffic-kernels */
	uint32_t fixed;   /* its place for graphs; UINT32_MAX: none */
};
/* A piece of code of a module. */
struct plumb_sanitizer_code {
	struct plumb_sanitizer_module *module;
	uint64_t pc, bytes;
	const char *name;
};

void plumb_sanitizer_module_loaded(const struct sanitizer_module_data *data);
void plumb_sanitizer_module_unloading(const struct sanitizer_module_data *data);
/* The context reaches another device's memory from now on: its modules are patched. */
void plumb_sanitizer_reaches(sanitizer_context handle);
/* May contexts of this device, even later ones, reach memory of another one? */
bool plumb_sanitizer_device_reaches(uint32_t ordinal);
/* With the lock. NULL: there is no room. */
struct plumb_sanitizer_function *plumb_sanitizer_function_of(const struct sanitizer_launch_data *);
/* Finds where the function is; its code is known from then on. Without the lock. */
void plumb_sanitizer_locate(struct plumb_sanitizer_function *function);
/* With the lock: the code of MODULE at PC; NULL: not known. */
const struct plumb_sanitizer_code *
plumb_sanitizer_code_at(struct plumb_sanitizer_module *module, uint64_t pc);
/* Patches it or takes the patches away, if nobody else is patching now. Without the lock. */
void plumb_sanitizer_switch(struct plumb_sanitizer_module *module, bool on);
/* All that was launched in the context has ended and was read: modules whose launches have reached
 * nothing for long are left alone for a while. */
void plumb_sanitizer_rest(struct plumb_sanitizer_context *context);
void plumb_sanitizer_modules_renew(void);

/* ---- table.c ---- */

/* With the lock: makes the table of the objects as they are now, if it is not made. False: no
 * room. */
bool plumb_sanitizer_table(struct plumb_sanitizer_context *context);
struct plumb_place *plumb_sanitizer_place(struct plumb_sanitizer_context *context, uint32_t range);

/* ---- launch.c ---- */

/* Where a kernel was launched: what a slot's site stands for. */
struct plumb_sanitizer_site {
	struct plumb_sanitizer_function *function;
	struct plumb_sanitizer_module *module;
	plumb_id node;
	uint64_t launch;         /* position of its user data; UINT64_MAX: none */
	sanitizer_stream stream; /* which has it */
};
#define PLUMB_SITES 16384u
extern struct plumb_sanitizer_site plumb_sanitizer_sites[PLUMB_SITES];

void plumb_sanitizer_launching(const struct sanitizer_launch_data *data);
void plumb_sanitizer_launched(const struct sanitizer_launch_data *data);
void plumb_sanitizer_graph_begins(const struct sanitizer_graph_data *data);
void plumb_sanitizer_graph_ends(const struct sanitizer_graph_data *data);
/* Does this thread launch a graph now? */
bool plumb_sanitizer_in_graph(void);
void plumb_sanitizer_node(const struct sanitizer_node_data *data);
void plumb_sanitizer_launches_renew(void);

/* ---- read.c ---- */

/* STREAM of the context, or all of it (NULL), has done what was launched. Reads the counts if that
 * is due, or NOW. Without the lock. */
void plumb_sanitizer_read(struct plumb_sanitizer_context *context, sanitizer_stream stream,
                          bool whole, bool now);
void plumb_sanitizer_reads_renew(void);

/* ---- callbacks.c ---- */

void plumb_sanitizer_told(void *user, int domain, uint32_t id, const void *data);

/* ---- memory.c ---- */

void plumb_sanitizer_allocated(const struct sanitizer_memory_data *data, bool host, bool pool);
void plumb_sanitizer_freed(const struct sanitizer_memory_data *data, bool host);
void plumb_sanitizer_pool_reached(const struct sanitizer_pool_data *data);
/* Before anything else happens: what memory is of another process. */
void plumb_sanitizer_settle_memory(void);
void plumb_sanitizer_copied(const struct sanitizer_memcpy_data *data);
void plumb_sanitizer_call(uint32_t id, const struct sanitizer_call_data *data);

/* ---- share.c ---- */

/* A handle of memory, where it was mapped last, and its key if processes share it. */
struct plumb_sanitizer_shared {
	uint64_t handle, address, bytes, key;
	bool imported;
};
/* A driver call that makes, maps, exports or imports a handle has ended. */
void plumb_sanitizer_share(uint32_t id, const struct sanitizer_call_data *data);
/* Was what begins at ADDRESS shared? */
bool plumb_sanitizer_shared_at(uint64_t address, struct plumb_sanitizer_shared *found);

/* ---- sanitizer.c ---- */

/* The program's options of traffic, read once. */
struct plumb_sanitizer_settings {
	double rate; /* 1: all */
	bool sampled;
	bool unpatch; /* modules are unpatched while nothing of them is counted */
	/* Launches of a module that reach nothing before it is left alone; 0: never. */
	uint32_t idle;
	bool early; /* memory on a device is taken with its context */
	bool own;   /* a device's accesses to its own memory are counted, too */
	uint64_t seed;
};
extern struct plumb_sanitizer_settings plumb_sanitizer_settings;
extern _Atomic bool plumb_sanitizer_live; /* not in forked children */
bool plumb_sanitizer_wants_kernel(const char *name);
bool plumb_sanitizer_wants_object(plumb_id object);
/* What cannot be seen, for one line of the environment. */
enum plumb_unseen {
	PLUMB_UNSEEN_MULTICAST,
	PLUMB_UNSEEN_DEVICE_GRAPHS,
	PLUMB_UNSEEN_MODULES, /* that could not be patched */
	PLUMB_UNSEEN_BULK,    /* the library has no patches for bulk stores and reductions */
	PLUMB_UNSEEN_CONTEXTS,
	PLUMB_UNSEEN_TENSOR, /* instructions that copy by tensor maps */
	PLUMB_UNSEEN_COUNT
};
void plumb_sanitizer_unseen(enum plumb_unseen what, uint64_t times);
/* The service thread has a device to describe. */
void plumb_sanitizer_wake(void);

/* Callbacks that a call of ours causes come back on this thread. */
extern _Thread_local bool plumb_sanitizer_inside
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
#define SANITIZER(call)                                                                            \
	({                                                                                         \
		bool before_ = plumb_sanitizer_inside;                                             \
		plumb_sanitizer_inside = true;                                                     \
		sanitizer_result result_ = plumb_sanitizer.call;                                   \
		plumb_sanitizer_inside = before_;                                                  \
		result_;                                                                           \
	})

#endif
