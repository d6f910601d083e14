/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where work happened. There is a process for each region, and a GPU for each UUID, whoever used
 * it.
 */
#include "settle/settle_private.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* ---- processes ---- */

/* The region's last PROCESS record: it may be written again when more is known. */
static const struct plumb_record_process *
find_process(const struct plumb_region_reader *reader)
{
	const struct plumb_record_process *found = NULL;
	const struct plumb_record *record;
	uint64_t cursor = 0;

	while ((record = plumb_region_next(reader, &cursor)))
		if (record->type == PLUMB_RECORD_PROCESS && record->length >= sizeof *found)
			found = (const struct plumb_record_process *)record;
	return found;
}

static int64_t
rank_number(int32_t rank)
{
	return rank < 0 ? PLUMB_UNKNOWN : rank;
}

/* 0 is unknown. */
static int64_t
time_number(uint64_t time)
{
	return time ? plumb_settle_number(time) : PLUMB_UNKNOWN;
}

/* What `plumb run` says about its child. */
static void
take_run(struct plumb_settle_region *region, const struct plumb_record_process *record)
{
	struct plumb_settle_run *run = &region->settler->runs.items[region->folder];

	run->known = true;
	run->command = plumb_settle_string(region, record->command);
	run->pid = record->pid;
	run->start = time_number(record->start_monotonic);
	run->end = time_number(record->end_monotonic);
	run->exit = record->exit_known ? record->exit_status : PLUMB_UNKNOWN;
}

void
plumb_settle_process(struct plumb_settle_region *region)
{
	const struct plumb_record_process *record = find_process(region->reader);
	const struct plumb_region_header *header = &region->reader->header;
	struct plumb_settle_process *own;
	struct plumb_process process = {
		.pid = header->pid,
		.ppid = PLUMB_UNKNOWN,
		.rank = PLUMB_UNKNOWN,
		.local_rank = PLUMB_UNKNOWN,
		.host = PLUMB_NONE,
		.command = PLUMB_NONE,
		.start_ns = time_number(header->start_monotonic),
		.end_ns = time_number(atomic_load(&header->end_monotonic)),
		.exit_code = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};

	region->process = PLUMB_NONE;
	if (region->is_run) {
		if (record)
			take_run(region, record);
		return;
	}
	if (record) {
		process.pid = record->pid;
		process.ppid = record->ppid;
		process.rank = rank_number(record->rank);
		process.local_rank = rank_number(record->local_rank);
		process.host = plumb_settle_string(region, record->host);
		process.command = plumb_settle_string(region, record->command);
		if (record->start_monotonic)
			process.start_ns = time_number(record->start_monotonic);
		if (record->end_monotonic)
			process.end_ns = time_number(record->end_monotonic);
		if (record->exit_known)
			process.exit_code = record->exit_status;
	}
	own = plumb_vec_add(&region->settler->processes);
	region->process = plumb_builder_process(region->settler->builder, &process);
	if (!own || region->process == PLUMB_NONE) {
		region->settler->no_memory = true;
		return;
	}
	own->folder = region->folder;
	own->pid = (uint32_t)process.pid;
	region->seen = process.end_ns;
}

/* ---- devices ---- */

uint32_t
plumb_settle_uuid(struct plumb_builder *builder, const uint8_t uuid[16])
{
	static const uint8_t unknown[16];
	char text[64];
	int n = snprintf(text, sizeof text, "GPU-");

	if (!memcmp(uuid, unknown, sizeof unknown))
		return PLUMB_NONE;
	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, sizeof text - (size_t)n,
		              i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
	return plumb_builder_text(builder, text);
}

/* The GPU with this description, if another record already named it. */
static uint32_t
find_device(const struct plumb_settler *settler, uint64_t hash,
            const struct plumb_settle_device *wanted)
{
	struct plumb_map_cursor at;

	for (uint32_t id = plumb_map_first(&settler->device_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&settler->device_map, &at)) {
		const struct plumb_settle_device *d = &settler->devices.items[id];
		if (d->uuid == wanted->uuid && d->process == wanted->process &&
		    d->ordinal == wanted->ordinal)
			return id;
	}
	return PLUMB_NONE;
}

static uint32_t
new_device(struct plumb_settle_region *region, const struct plumb_record_device *record,
           uint64_t hash, const struct plumb_settle_device *key)
{
	struct plumb_settler *settler = region->settler;
	struct plumb_settle_device *own;
	struct plumb_device device = {
		.name = plumb_settle_string(region, record->name),
		.uuid = key->uuid,
		.ordinal = plumb_settle_number32(record->ordinal),
		.rank = PLUMB_UNKNOWN,
		.capability_major = plumb_settle_number32(record->capability_major),
		.capability_minor = plumb_settle_number32(record->capability_minor),
		.multiprocessors = plumb_settle_number32(record->multiprocessors),
		.warps_per_multiprocessor = plumb_settle_number32(record->warps_per_multiprocessor),
		.clock_khz = plumb_settle_number32(record->clock_khz),
		.memory_clock_khz = plumb_settle_number32(record->memory_clock_khz),
		.memory_bytes = plumb_settle_number(record->memory_bytes),
		.kernels = PLUMB_UNKNOWN,
		.kernel_ns = PLUMB_UNKNOWN,
		.copies = PLUMB_UNKNOWN,
		.copy_ns = PLUMB_UNKNOWN,
		.copy_bytes = PLUMB_UNKNOWN,
		.sets = PLUMB_UNKNOWN,
		.set_ns = PLUMB_UNKNOWN,
		.set_bytes = PLUMB_UNKNOWN,
		.busy_ns = PLUMB_UNKNOWN,
		.first_ns = PLUMB_UNKNOWN,
		.last_ns = PLUMB_UNKNOWN,
		.late = PLUMB_UNKNOWN,
		.contended_ns = PLUMB_UNKNOWN,
	};
	uint32_t id = plumb_builder_device(settler->builder, &device);

	own = plumb_vec_add(&settler->devices);
	if (id == PLUMB_NONE || !own || plumb_map_add(&settler->device_map, hash, id)) {
		settler->no_memory = true;
		return PLUMB_NONE;
	}
	*own = *key;
	return id;
}

/* The region's process uses DEVICE. */
static void
use_device(struct plumb_settle_region *region, plumb_id record, uint32_t device, bool first)
{
	struct plumb_settle_device *own = &region->settler->devices.items[device];
	struct plumb_device *row = plumb_builder_get_device(region->settler->builder, device);
	const struct plumb_process *process =
		plumb_builder_get_process(region->settler->builder, region->process);
	int64_t rank = process ? process->rank : PLUMB_UNKNOWN;

	if (own->serial == region->serial)
		return;
	own->serial = region->serial;
	own->total = false;
	memset(&own->tally, 0, sizeof own->tally);
	if (first)
		row->rank = rank;
	else if (row->rank != rank)
		row->rank = PLUMB_UNKNOWN;
	plumb_settle_clock(region, record, device);
}

uint32_t
plumb_settle_device(struct plumb_settle_region *region, plumb_id id)
{
	const struct plumb_record_device *record =
		plumb_region_get(region->reader, id, PLUMB_RECORD_DEVICE, sizeof *record);
	struct plumb_settle_device key = { 0 };
	uint32_t device;
	bool first;

	if (!record || region->known[id] == PLUMB_SETTLE_NOTHING)
		return PLUMB_NONE;
	if (region->known[id])
		return region->known[id] - 1;
	key.uuid = plumb_settle_uuid(region->settler->builder, record->uuid);
	key.process = key.uuid == PLUMB_NONE ? region->process : PLUMB_NONE;
	key.ordinal = key.uuid == PLUMB_NONE ? record->ordinal : 0;
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(key.uuid, key.process), key.ordinal);
	device = find_device(region->settler, hash, &key);
	first = device == PLUMB_NONE;
	if (first)
		device = new_device(region, record, hash, &key);
	region->known[id] = device == PLUMB_NONE ? PLUMB_SETTLE_NOTHING : device + 1;
	if (device != PLUMB_NONE)
		use_device(region, id, device, first);
	return device;
}

/* ---- threads, streams and memory ---- */

static uint32_t
make_thread(struct plumb_settle_region *region, const struct plumb_record_thread *record)
{
	struct plumb_track track = {
		.kind = PLUMB_TRACK_THREAD,
		.process = region->process,
		.device = PLUMB_NONE,
		.name = plumb_settle_string(region, record->name),
		.tid = record->tid,
		.stream = PLUMB_UNKNOWN,
		.gpu_context = PLUMB_UNKNOWN,
		.start_ns = time_number(record->start),
		.end_ns = time_number(record->end),
		.overhead_ns = PLUMB_UNKNOWN,
	};

	return plumb_builder_track(region->settler->builder, &track);
}

static uint32_t
make_stream(struct plumb_settle_region *region, const struct plumb_record_stream *record)
{
	struct plumb_track track = {
		.kind = PLUMB_TRACK_STREAM,
		.process = region->process,
		.device = plumb_settle_device(region, record->device),
		.name = PLUMB_NONE,
		.tid = PLUMB_UNKNOWN,
		.stream = plumb_settle_number(record->stream),
		.gpu_context = plumb_settle_number32(record->context),
		.start_ns = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};

	if (track.device == PLUMB_NONE)
		return PLUMB_NONE;
	return plumb_builder_track(region->settler->builder, &track);
}

uint32_t
plumb_settle_track(struct plumb_settle_region *region, plumb_id id)
{
	const struct plumb_record_thread *thread =
		plumb_region_get(region->reader, id, PLUMB_RECORD_THREAD, sizeof *thread);
	const struct plumb_record_stream *stream =
		plumb_region_get(region->reader, id, PLUMB_RECORD_STREAM, sizeof *stream);
	const struct plumb_record_memory_pool *pool =
		plumb_region_get(region->reader, id, PLUMB_RECORD_MEMORY_POOL, sizeof *pool);

	if ((!thread && !stream && !pool) || region->process == PLUMB_NONE)
		return PLUMB_NONE;
	if (!region->known[id]) {
		uint32_t track = thread   ? make_thread(region, thread)
		                 : stream ? make_stream(region, stream)
		                          : plumb_settle_pool(region, pool);
		region->known[id] = track == PLUMB_NONE ? PLUMB_SETTLE_NOTHING : track + 1;
	}
	return region->known[id] == PLUMB_SETTLE_NOTHING ? PLUMB_NONE : region->known[id] - 1;
}
