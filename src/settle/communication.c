/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a communication library told: its operations become rows of collectives, and all of them
 * together transfers. Each rank has its own record of a communicator. Those with the same number
 * are one group; so a rank's number says in which process and on which device it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/search.h"
#include "settle/settle_private.h"

#define RANKS_MOST 4096              /* of a group, whose numbers are listed */
#define CALLS_MOST (INT64_MAX >> 24) /* of one record, so that no sum of them is too large */

static void
damaged(struct plumb_settle_region *region)
{
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, "operations", 1);
}

/* Numbers below 0 are unknown, or damaged. */
static int64_t
natural(int64_t number)
{
	return number < 0 ? PLUMB_UNKNOWN : number;
}

/* ---- one region ---- */

/* The device of STREAM (a STREAM record), PLUMB_NONE: it is not known. */
static uint32_t
device_of(struct plumb_settle_region *region, plumb_id stream)
{
	const struct plumb_record_stream *record =
		stream ? plumb_region_get(region->reader, stream, PLUMB_RECORD_STREAM,
	                                  sizeof *record)
		       : NULL;

	return record ? plumb_settle_device(region, record->device) : PLUMB_NONE;
}

uint32_t
plumb_settle_communicator(struct plumb_settle_region *region, plumb_id id)
{
	struct plumb_settle_communication *all = &region->settler->communication;
	const struct plumb_record_communicator *record =
		plumb_region_get(region->reader, id, PLUMB_RECORD_COMMUNICATOR, sizeof *record);
	struct plumb_settle_communicator *added;

	if (!record || region->known[id] == PLUMB_SETTLE_NOTHING)
		return PLUMB_NONE;
	if (region->known[id])
		return region->known[id] - 1;
	added = plumb_vec_add(&all->communicators);
	if (!added) {
		region->settler->no_memory = true;
		return PLUMB_NONE;
	}
	*added = (struct plumb_settle_communicator){
		.id = record->id,
		.name = plumb_settle_string(region, record->name),
		.size = natural(record->size),
		.rank = natural(record->rank),
		.process = region->process,
		.device = device_of(region,
		                    atomic_load_explicit(&record->stream, memory_order_relaxed)),
		.group = PLUMB_NONE,
		.ranks = PLUMB_NONE,
	};
	region->known[id] = all->communicators.count;
	return all->communicators.count - 1;
}

/* When and where its kernel ran. */
static void
take_times(struct plumb_settle_region *region, const struct plumb_record_collective *record,
           struct plumb_collective *row)
{
	plumb_id stream = atomic_load_explicit(&record->stream, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&record->end, memory_order_relaxed);
	const struct plumb_record_stream *of =
		stream ? plumb_region_get(region->reader, stream, PLUMB_RECORD_STREAM, sizeof *of)
		       : NULL;
	const struct plumb_settle_line *line =
		of && end ? plumb_settle_line_of(region, of->device) : NULL;
	int64_t from =
		plumb_settle_time(line, atomic_load_explicit(&record->start, memory_order_relaxed));
	int64_t to = plumb_settle_time(line, end);

	if (from == PLUMB_UNKNOWN || to == PLUMB_UNKNOWN || to < from)
		return;
	row->track = plumb_settle_track(region, stream);
	if (row->track == PLUMB_NONE)
		return;
	row->start_ns = from;
	row->end_ns = to;
}

void
plumb_settle_collective(struct plumb_settle_region *region,
                        const struct plumb_record_collective *record)
{
	struct plumb_settle_collective *added;
	struct plumb_collective row = {
		.track = PLUMB_NONE,
		.group = PLUMB_NONE,
		.ranks = PLUMB_NONE,
		.size = PLUMB_UNKNOWN,
		.rank = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.operation = plumb_settle_string(region, record->operation),
		.datatype = plumb_settle_string(region, record->datatype),
		.algorithm = plumb_settle_string(region, record->algorithm),
		.protocol = plumb_settle_string(region, record->protocol),
		.called_ns = plumb_settle_number(record->called),
		.bytes = natural(record->bytes),
		.sequence = natural(record->sequence),
		.peer = natural(record->peer),
		.root = natural(record->root),
		.channels = natural(record->channels),
	};

	if (atomic_load_explicit(&record->writes, memory_order_relaxed) % 2) {
		plumb_settle_count(region, PLUMB_SOURCE_COLLECTIVE, PLUMB_FATE_TORN, NULL, 1);
		return;
	}
	uint32_t communicator = plumb_settle_communicator(region, record->communicator);

	row.context = plumb_settle_node(region, record->node);
	if (communicator == PLUMB_NONE || row.called_ns == PLUMB_UNKNOWN) {
		if (record->called) /* else it was not written yet */
			damaged(region);
		return;
	}
	row.start_ns = row.called_ns;
	take_times(region, record, &row);
	added = plumb_vec_add(&region->settler->communication.collectives);
	if (added)
		*added = (struct plumb_settle_collective){ row, communicator };
	else
		region->settler->no_memory = true;
}

void
plumb_settle_operations_told(struct plumb_settle_region *region, const uint32_t *ordinals,
                             const struct plumb_record_communication *record)
{
	uint32_t communicator = plumb_settle_communicator(region, record->communicator);
	uint64_t calls = atomic_load_explicit(&record->calls, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&record->bytes, memory_order_relaxed);
	struct plumb_settle_told *added;

	if (!calls)
		return;
	if (communicator == PLUMB_NONE || bytes > INT64_MAX || calls > CALLS_MOST ||
	    record->kind < PLUMB_ACCESS_COLLECTIVE || record->kind > PLUMB_ACCESS_RECEIVE) {
		damaged(region);
		return;
	}
	added = plumb_vec_add(&region->settler->communication.told);
	if (added)
		*added = (struct plumb_settle_told){
			.context = plumb_settle_node(region, record->node),
			.communicator = communicator,
			.kind = record->kind,
			.peer = natural(record->peer),
			.from_object = plumb_settle_object(region, ordinals, record->from_object),
			.to_object = plumb_settle_object(region, ordinals, record->to_object),
			.calls = calls,
			.bytes = (int64_t)bytes,
		};
	else
		region->settler->no_memory = true;
}

/* ---- the whole run ---- */

static int
by_group(const void *x, const void *y)
{
	const struct plumb_settle_communicator *a =
		*(const struct plumb_settle_communicator *const *)x;
	const struct plumb_settle_communicator *b =
		*(const struct plumb_settle_communicator *const *)y;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a > b) - (a < b);
}

static uint32_t
name_of(struct plumb_builder *builder, const struct plumb_settle_communicator *member)
{
	const char *name =
		member->name == PLUMB_NONE ? NULL : plumb_builder_get_text(builder, member->name);
	char text[256];

	if (!member->id)
		return member->name;
	if (name && *name)
		snprintf(text, sizeof text, "%.200s (0x%" PRIx64 ")", name, member->id);
	else
		snprintf(text, sizeof text, "0x%" PRIx64, member->id);
	return plumb_builder_text(builder, text);
}

/* The rank of the job that MEMBER's process is; PLUMB_UNKNOWN. */
static int64_t
job_rank(struct plumb_builder *builder, const struct plumb_settle_communicator *member)
{
	const struct plumb_process *process = plumb_builder_get_process(builder, member->process);

	return process ? process->rank : PLUMB_UNKNOWN;
}

/* "[0, 1]": the ranks of the job, if each member is one; else those of the group. PLUMB_NONE: not
 * all members are known. */
static uint32_t
list_ranks(struct plumb_builder *builder, struct plumb_settle_communicator *const *members,
           uint32_t count)
{
	int64_t size = members[0]->size, next = 0, before = -1;
	bool job = true;
	PLUMB_VEC(char) text = { 0 };
	uint32_t string = PLUMB_NONE;
	char number[32];

	/* A rank has more than one only if two threads made it at once. */
	if (size < 1 || size > RANKS_MOST || count > 4 * size)
		return PLUMB_NONE;
	for (uint32_t i = 0; i < count; i++) {
		if (members[i]->rank == next - 1)
			continue; /* the same member again */
		if (members[i]->rank != next || members[i]->size != size)
			return PLUMB_NONE;
		int64_t rank = job_rank(builder, members[i]);
		for (uint32_t k = 0; k < i && job; k++)
			job = members[k]->rank == next || rank != job_rank(builder, members[k]);
		job = job && rank != PLUMB_UNKNOWN;
		next++;
	}
	if (next != size)
		return PLUMB_NONE;
	for (uint32_t i = 0; i < count; i++) {
		int64_t rank = job ? job_rank(builder, members[i]) : members[i]->rank;
		if (members[i]->rank == before)
			continue;
		snprintf(number, sizeof number, "%s%" PRId64, before < 0 ? "[" : ", ", rank);
		before = members[i]->rank;
		for (const char *c = number; *c; c++) {
			char *added = plumb_vec_add(&text);
			if (!added)
				goto done;
			*added = *c;
		}
	}
	char *last = plumb_vec_add(&text);
	if (last) {
		*last = ']';
		string = plumb_builder_string(builder, text.items, text.count);
	}
done:
	plumb_vec_free(&text);
	return string;
}

/* By process: its device in all groups, if it is the same; SEVERAL. */
#define SEVERAL (UINT32_MAX - 1)

/* Without records of kernels, a member's device is that of the data which it hands to NCCL. */
static void
take_devices_of_data(struct plumb_settler *settler)
{
	struct plumb_settle_communication *all = &settler->communication;

	for (uint32_t i = 0; i < all->told.count; i++) {
		const struct plumb_settle_told *told = &all->told.items[i];
		struct plumb_settle_communicator *member =
			&all->communicators.items[told->communicator];
		uint32_t object =
			told->from_object != PLUMB_NONE ? told->from_object : told->to_object;

		if (member->device == PLUMB_NONE && object != PLUMB_NONE)
			member->device = settler->traffic.objects.items[object].row.device;
	}
}

/* Members without a device get the one that their process has in other groups. */
static bool
guess_devices(struct plumb_settler *settler)
{
	struct plumb_settle_communication *all = &settler->communication;
	uint32_t *device = malloc(((size_t)settler->processes.count + 1) * sizeof *device);

	for (uint32_t i = 0; device && i < settler->processes.count; i++)
		device[i] = PLUMB_NONE;
	for (uint32_t i = 0; device && i < all->communicators.count; i++) {
		const struct plumb_settle_communicator *member = &all->communicators.items[i];
		uint32_t *of = &device[member->process];

		if (member->device != PLUMB_NONE)
			*of = *of == PLUMB_NONE || *of == member->device ? member->device : SEVERAL;
	}
	for (uint32_t i = 0; device && i < all->communicators.count; i++) {
		struct plumb_settle_communicator *member = &all->communicators.items[i];

		if (member->device == PLUMB_NONE && device[member->process] != SEVERAL)
			member->device = device[member->process];
	}
	free(device);
	return device;
}

static void
name_groups(struct plumb_settler *settler, struct plumb_settle_communicator **ordered)
{
	struct plumb_settle_communication *all = &settler->communication;
	uint32_t count = all->communicators.count;

	for (uint32_t i = 0; i < count; i++) {
		ordered[i] = &all->communicators.items[i];
		ordered[i]->group = name_of(settler->builder, ordered[i]);
	}
	qsort(ordered, count, sizeof(*ordered), by_group);
	for (uint32_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && ordered[i + n]->id == ordered[i]->id; n++)
			;
		uint32_t ranks =
			ordered[i]->id ? list_ranks(settler->builder, ordered + i, n) : PLUMB_NONE;
		for (uint32_t k = 0; k < n; k++)
			ordered[i + k]->ranks = ranks;
	}
}

/* The device of the rank PEER of MEMBER's group. */
static uint32_t
peer_device(struct plumb_settle_communicator *const *ordered, uint32_t count,
            const struct plumb_settle_communicator *member, int64_t peer)
{
	uint32_t low = plumb_search(i, count,
	                            ordered[i]->id < member->id || (ordered[i]->id == member->id &&
	                                                            ordered[i]->rank < peer));

	for (; member->id && peer != PLUMB_UNKNOWN && low < count &&
	       ordered[low]->id == member->id && ordered[low]->rank == peer;
	     low++)
		if (ordered[low]->device != PLUMB_NONE)
			return ordered[low]->device;
	return PLUMB_NONE;
}

/* They become rows with the other transfers (traffic.c). */
static void
add_transfers(struct plumb_settler *settler, struct plumb_settle_communicator *const *ordered)
{
	struct plumb_settle_communication *all = &settler->communication;

	for (uint32_t i = 0; i < all->told.count; i++) {
		const struct plumb_settle_told *told = &all->told.items[i];
		const struct plumb_settle_communicator *member =
			&all->communicators.items[told->communicator];
		uint32_t other = peer_device(ordered, all->communicators.count, member, told->peer);
		/* PLUMB_NONE + 1 is 0: not known. */
		struct plumb_ends ends = { member->device + 1, 0 };
		struct plumb_settle_transfer *added = plumb_vec_add(&settler->traffic.transfers);

		if (told->kind == PLUMB_ACCESS_SEND)
			ends.to = other + 1;
		else if (told->kind == PLUMB_ACCESS_RECEIVE)
			ends = (struct plumb_ends){ other + 1, member->device + 1 };
		if (!added) {
			settler->no_memory = true;
			return;
		}
		*added = (struct plumb_settle_transfer){
			.row = {
				.context = told->context,
				.process = member->process,
				.kind = told->kind,
				.route = PLUMB_ROUTE_UNKNOWN,
				.initiator = member->device,
				.ends = ends,
				.from_object = told->from_object,
				.to_object = told->to_object,
				.function = PLUMB_NONE,
				.offset = PLUMB_UNKNOWN,
				.width = PLUMB_UNKNOWN,
				.accesses = told->calls,
				.warps = PLUMB_UNKNOWN,
				.bytes = told->bytes,
			},
			.name = PLUMB_NONE,
		};
	}
}

void
plumb_settle_communications(struct plumb_settler *settler)
{
	struct plumb_settle_communication *all = &settler->communication;
	uint32_t count = all->communicators.count;
	struct plumb_settle_communicator **ordered = calloc((size_t)count + 1, sizeof(*ordered));

	take_devices_of_data(settler);
	if (!ordered || !guess_devices(settler)) {
		settler->no_memory = true;
		free(ordered);
		return;
	}
	if (count)
		name_groups(settler, ordered);
	for (uint32_t i = 0; i < all->collectives.count; i++) {
		struct plumb_collective *row = &all->collectives.items[i].row;
		const struct plumb_settle_communicator *member =
			&all->communicators.items[all->collectives.items[i].communicator];

		row->group = member->group;
		row->ranks = member->ranks;
		row->size = member->size;
		row->rank = member->rank;
		plumb_builder_collective(settler->builder, row);
	}
	add_transfers(settler, ordered);
	free(ordered);
}

void
plumb_settle_communications_free(struct plumb_settler *settler)
{
	plumb_vec_free(&settler->communication.communicators);
	plumb_vec_free(&settler->communication.collectives);
	plumb_vec_free(&settler->communication.told);
}
