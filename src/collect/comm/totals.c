/* SPDX-License-Identifier: Apache-2.0 */
/* Operations added up, exactly: one COMMUNICATION record for each context, communicator, operation,
 * peer and pair of objects on each thread. */
#include "collect/comm/private.h"
#include "collect/object.h"

struct plumb_comm_thread *
plumb_comm_thread_of(struct plumb_thread *thread)
{
	if (plumb_unlikely(!thread->communication))
		thread->communication = plumb_map(sizeof *thread->communication, true);
	return thread->communication;
}

enum plumb_fate
plumb_comm_fate(struct plumb_thread *thread)
{
	return thread->arena.fate == PLUMB_FATE_NO_SPACE ? PLUMB_FATE_NO_SPACE
	                                                 : PLUMB_FATE_REGION_FULL;
}

static struct plumb_record_communication *
find_total(const struct plumb_comm_thread *own, const struct plumb_region *region,
           const struct plumb_record_communication *wanted, uint32_t hash)
{
	uint32_t at = hash, id;
	while ((id = plumb_id_table_next(&own->totals, hash, &at))) {
		struct plumb_record_communication *total = plumb_region_at(region, id);
		if (total->node == wanted->node && total->communicator == wanted->communicator &&
		    total->operation == wanted->operation && total->kind == wanted->kind &&
		    total->peer == wanted->peer && total->from_object == wanted->from_object &&
		    total->to_object == wanted->to_object)
			return total;
	}
	return NULL;
}

static struct plumb_record_communication *
make_total(struct plumb_comm_thread *own, struct plumb_arena *arena,
           const struct plumb_record_communication *wanted, uint32_t hash)
{
	struct plumb_record_communication *total =
		plumb_arena_append(arena, PLUMB_RECORD_COMMUNICATION, sizeof *total);
	if (!total)
		return NULL;
	total->node = wanted->node;
	total->communicator = wanted->communicator;
	total->operation = wanted->operation;
	total->kind = wanted->kind;
	total->peer = wanted->peer;
	total->from_object = wanted->from_object;
	total->to_object = wanted->to_object;
	plumb_arena_commit(arena, total);
	/* If the table has no memory, the next one makes another record; settle adds them up. */
	plumb_id_table_add(&own->totals, hash, plumb_region_id(arena->region, total));
	return total;
}

static void
add_to(_Atomic uint64_t *sum, uint64_t number)
{
	uint64_t was = atomic_load_explicit(sum, memory_order_relaxed);
	atomic_store_explicit(sum, was > INT64_MAX - number ? INT64_MAX : was + number,
	                      memory_order_relaxed);
}

enum plumb_fate
plumb_comm_add(struct plumb_thread *thread, struct plumb_comm_thread *own,
               const struct plumb_comm_operation *operation,
               const struct plumb_record_collective *told)
{
	const struct plumb_record_communication wanted = {
		.node = told->node,
		.communicator = told->communicator,
		.operation = told->operation,
		.kind = operation->kind,
		.peer = operation->peer,
		.from_object = plumb_object_at(operation->from, NULL),
		.to_object = plumb_object_at(operation->to, NULL),
	};
	uint64_t mixed = plumb_mix((uint64_t)wanted.node << 32 | wanted.communicator,
	                           (uint64_t)wanted.operation << 32 | wanted.kind << 24 |
	                                   ((uint32_t)wanted.peer & 0xffffff));
	mixed = plumb_mix(mixed, (uint64_t)wanted.from_object << 32 | wanted.to_object);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32);
	if (told->bytes < 0)
		return PLUMB_FATE_UNKNOWN_LAYOUT;
	struct plumb_record_communication *total =
		find_total(own, thread->arena.region, &wanted, hash);
	if (!total)
		total = make_total(own, &thread->arena, &wanted, hash);
	if (!total)
		return plumb_comm_fate(thread);
	add_to(&total->calls, 1);
	add_to(&total->bytes, (uint64_t)told->bytes);
	return PLUMB_FATE_ATTRIBUTED;
}
