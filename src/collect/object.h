/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of the program and what moves it (`plumb run --traffic`): OBJECT, OBJECT_RANGE and TRANSFER
 * records. What allocates memory or moves data calls the functions here; they know no vendor.
 *
 * An object is what one context allocated of one kind on one device. Its single allocations are
 * ranges. Memory lies in at most two objects: an allocation, and a part of it that a framework or
 * the program has made a tensor.
 *
 * Any thread may call these functions, between plumb_enter and plumb_leave where they take a
 * THREAD. They take one lock, which is held for no call but plumb's own, and nothing from the heap.
 * Without --traffic they return at once.
 *
 * Ordinals are those of DEVICE records; PLUMB_HOST_ORDINAL: the host's memory, or not known.
 */
#ifndef PLUMB_COLLECT_OBJECT_H
#define PLUMB_COLLECT_OBJECT_H

#include "collect/collector.h"

#define PLUMB_HOST_ORDINAL UINT32_MAX

/* --traffic was given: one load for hot paths. */
extern bool plumb_traffic_wanted;

/* ---- allocations ---- */

struct plumb_allocation {
	plumb_id node; /* of the call; 0: not known; PLUMB_LOST: no room for it */
	uint32_t ordinal;
	enum plumb_object_kind kind;
	uint64_t address, bytes;
	uint64_t key; /* of memory that processes share: see plumb_record_object_range; 0: none */
};

/*
 * Memory was allocated, is about to be freed, or has been: address 0 and 0 bytes are nothing. What
 * an allocation overlaps has ended: nobody saw its end. A TENSOR is put within the allocation that
 * it lies in. The calling thread counts it in the ledger (source OBJECT).
 */
void plumb_object_add(struct plumb_thread *thread, const struct plumb_allocation *allocation);
/* The same at the context where the thread is now. */
void
plumb_object_allocated(struct plumb_thread *thread, uint32_t ordinal, enum plumb_object_kind kind,
                       uint64_t address, uint64_t bytes, uint64_t key);
/* The allocation that begins at ADDRESS ends, with all tensors in it. False: there is none. */
bool plumb_object_freed(struct plumb_thread *thread, uint64_t address);
/* The same of tensors. */
bool plumb_tensor_freed(struct plumb_thread *thread, uint64_t address);
/* All allocations that begin in these BYTES end. */
void plumb_objects_freed(struct plumb_thread *thread, uint64_t address, uint64_t bytes);

/* A key was made for the allocation that ADDRESS lies in, which is now shared. */
void plumb_object_shared(uint64_t address, uint64_t key);

/*
 * The program calls what lies at ADDRESS by this NAME: the tensor or the allocation there. With
 * BYTES, it means so many of them: if these are a part of an allocation, they become a tensor
 * there, unless a framework's allocator told of one. False: nothing is known to lie there, which
 * counts in the ledger.
 */
bool
plumb_object_name(struct plumb_thread *thread, uint64_t address, uint64_t bytes, const char *name);
/* The same on a thread that is in no callback. */
bool plumb_object_named(uint64_t address, uint64_t bytes, const char *name);

/*
 * Memory that is made first and gets addresses later (a handle of cuMemCreate): it counts for its
 * object from plumb_memory_made until it was released as often as it was made or taken again, and
 * no address is left. HANDLE is not 0.
 */
void plumb_memory_made(struct plumb_thread *thread, const struct plumb_allocation *allocation,
                       uint64_t handle);
/* One more reference to it. False: it is not known. */
bool plumb_memory_retained(uint64_t handle);
/* True: that was the last one. */
bool plumb_memory_released(uint64_t handle);
/* BYTES of it are at ADDRESS from now on. */
void
plumb_memory_mapped(struct plumb_thread *thread, uint64_t handle, uint64_t address, uint64_t bytes);
/* As plumb_object_shared. */
void plumb_memory_shared(uint64_t handle, uint64_t key);

/* ---- what lies where ---- */

/* A range that is live. */
struct plumb_object_place {
	plumb_id object; /* OBJECT record; 0: it found no room */
	plumb_id range;  /* OBJECT_RANGE record; 0: none was kept */
	uint32_t ordinal;
	enum plumb_object_kind kind;
	uint64_t address, bytes, key;
};
/* The object at ADDRESS, the tensor if there is one; 0: none is known. PLACE may be NULL; it is set
 * if a range is known there, also where its record found no room. */
plumb_id plumb_object_at(uint64_t address, struct plumb_object_place *place);
/* As plumb_object_at, but the whole allocation. */
plumb_id plumb_allocation_at(uint64_t address, struct plumb_object_place *place);

/* Changes whenever what plumb_objects_list tells has changed. */
extern _Atomic uint64_t plumb_objects_epoch;
/* The live ranges that end after FROM, ascending by address: allocations, or TENSORS. Fills at most
 * MOST of INTO, and returns how many it filled. *EPOCH (may be NULL): of this state. Go on with
 * FROM the end of the last one. */
uint32_t plumb_objects_list(bool tensors, uint64_t from, struct plumb_object_place *into,
                            uint32_t most, uint64_t *epoch);

/* Ordinals below 64 that objects and transfers name, one bit each: the GPU runtime makes DEVICE
 * records of them. */
extern _Atomic uint64_t plumb_objects_ordinals;

/* ---- transfers ---- */

/* As struct plumb_record_transfer: all but the numbers tells transfers apart. */
struct plumb_transfer_facts {
	plumb_id node;
	enum plumb_access_kind kind;
	enum plumb_route route;
	uint32_t initiator, from, to;    /* ordinals */
	plumb_id from_object, to_object; /* 0: none */
	uint64_t module;                 /* 0: no code */
	const char *function;            /* mangled; NULL: no code */
	uint32_t width;                  /* 0: not known */
	uint64_t offset;
	uint64_t accesses, warps, bytes; /* added */
	double variance;                 /* of BYTES, if they are an estimate; added */
};
/* Adds to the TRANSFER record of these facts. False: there is no room for it. The caller counts in
 * the ledger what it adds, under a source of its own. */
bool plumb_transfer_add(struct plumb_thread *thread, const struct plumb_transfer_facts *facts);

/* ---- tensors: monitor/memory_objects.c ---- */

/* From now on, tensors on GPUs that frameworks' allocators report are objects. */
void plumb_objects_of_tensors(void);

/* ---- life ---- */

/* Once the options are known. */
void plumb_objects_start(void);
/* Another recording, no other thread is in plumb's code; or a FORKED child. */
void plumb_objects_renew(bool forked);
void plumb_transfers_renew(bool forked); /* a part of it */

#endif
