/* SPDX-License-Identifier: Apache-2.0 */
/* TRANSFER records: what moved data, put together by all that tells it apart. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/object.h"
#include "collect/table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plumb_id_table transfers; /* guarded by it */

static uint32_t
hash_of(const struct plumb_transfer_facts *f, plumb_id function)
{
	uint64_t hash = plumb_mix((uint64_t)f->node << 32 | function,
	                          (uint64_t)f->from_object << 32 | f->to_object);
	hash = plumb_mix(hash ^ f->offset, (uint64_t)f->from << 32 | f->to);
	hash = plumb_mix(hash ^ f->module, (uint64_t)f->initiator << 32 | f->width);
	hash = plumb_mix(hash, (uint64_t)f->kind << 8 | f->route);
	return (uint32_t)(hash ^ hash >> 32);
}

static bool
is_same(const struct plumb_record_transfer *r, const struct plumb_transfer_facts *f,
        plumb_id function)
{
	return r->node == f->node && r->kind == f->kind && r->route == f->route &&
	       r->initiator == f->initiator && r->from == f->from && r->to == f->to &&
	       r->from_object == f->from_object && r->to_object == f->to_object &&
	       r->module == f->module && r->function == function && r->width == f->width &&
	       r->offset == f->offset;
}

static struct plumb_record_transfer *
make(struct plumb_thread *thread, const struct plumb_transfer_facts *f, plumb_id function,
     uint32_t hash)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_transfer *r =
		plumb_arena_append(arena, PLUMB_RECORD_TRANSFER, sizeof *r);
	if (!r)
		return NULL;
	r->node = f->node;
	r->kind = (uint16_t)f->kind;
	r->route = (uint16_t)f->route;
	r->initiator = f->initiator;
	r->from = f->from;
	r->to = f->to;
	r->from_object = f->from_object;
	r->to_object = f->to_object;
	r->module = f->module;
	r->function = function;
	r->width = f->width;
	r->offset = f->offset;
	plumb_arena_commit(arena, r);
	/* What the table has no memory for becomes a second record, which settle adds up. */
	plumb_id_table_add(&transfers, hash, plumb_region_id(arena->region, r));
	return r;
}

static void
note_ordinals(const struct plumb_transfer_facts *f)
{
	const uint32_t ordinals[] = { f->initiator, f->from, f->to };
	uint64_t bits = 0;
	for (size_t i = 0; i < sizeof ordinals / sizeof *ordinals; i++)
		bits |= ordinals[i] < 64 ? 1ull << ordinals[i] : 0;
	if (bits & ~atomic_load_explicit(&plumb_objects_ordinals, memory_order_relaxed))
		atomic_fetch_or_explicit(&plumb_objects_ordinals, bits, memory_order_relaxed);
}

bool
plumb_transfer_add(struct plumb_thread *thread, const struct plumb_transfer_facts *given)
{
	struct plumb_transfer_facts facts = *given;
	plumb_id function = 0;
	if (plumb_unlikely(!plumb_traffic_wanted))
		return false;
	if (facts.node == PLUMB_LOST)
		facts.node = 0;
	if (facts.function)
		function = plumb_intern(thread, facts.function, strlen(facts.function));
	if (facts.function && !function)
		return false;
	uint32_t hash = hash_of(&facts, function), at = hash, id;
	struct plumb_record_transfer *record = NULL;
	pthread_mutex_lock(&lock);
	while (!record && (id = plumb_id_table_next(&transfers, hash, &at))) {
		record = plumb_region_at(plumb_region_of_process(), id);
		if (!is_same(record, &facts, function))
			record = NULL;
	}
	if (!record) {
		note_ordinals(&facts);
		record = make(thread, &facts, function, hash);
	}
	if (record) {
		atomic_fetch_add_explicit(&record->accesses, facts.accesses, memory_order_relaxed);
		atomic_fetch_add_explicit(&record->warps, facts.warps, memory_order_relaxed);
		atomic_fetch_add_explicit(&record->bytes, facts.bytes, memory_order_relaxed);
		record->variance += facts.variance;
	}
	pthread_mutex_unlock(&lock);
	return record != NULL;
}

void
plumb_transfers_renew(bool forked)
{
	struct plumb_id_table was = transfers;
	pthread_mutex_init(&lock, NULL);
	transfers = (struct plumb_id_table){ 0 };
	if (!forked && was.slots)
		munmap(was.slots, ((size_t)was.mask + 1) * sizeof *was.slots);
}
