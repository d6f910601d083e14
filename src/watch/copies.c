/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look reads each record that adds up and notes by how much it grew since the look before: that
 * is a new part (copies_parts.c).
 *
 * A record that is torn while it is read is read again at the next look; its growth is then of that
 * part.
 */
#include "watch/copies.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/words.h"
#include "region/copies.h"
#include "region/reader.h"
#include "watch/copies_parts.h"

enum {
	LOOK_MS = 100,        /* between two looks, at least */
	COST_SHARE = 200,     /* looking takes at most this part of one processor, 0.5 %, … */
	COST_FREE = 20000000, /* … and these ns: the first looks map regions and learn names */
};

/* Something that adds up, as it was at the look before. */
struct item {
	plumb_id id;
	uint16_t type, which;
	bool is_time; /* ns that tell what the program does */
	bool is_work; /* it grows where an operator or GPU work ends */
	bool is_own;  /* a thread's time in an operator or a range without those that it calls */
	uint64_t
		read; /* when; it grows by no more than the time since, but by what was open then */
	int64_t sum;
	uint64_t count;
	double m2;
};

struct chunk {
	uint64_t offset, done; /* bytes of records that were walked */
};

struct region {
	struct plumb_region_header *header;
	size_t size;
	uint64_t next; /* chunks up to here are known */
	PLUMB_VEC(struct chunk) chunks;
	PLUMB_VEC(struct item) items;
};

struct plumb_copies {
	struct plumb_watch_regions *all;
	struct plumb_host *host; /* NULL: the main threads are not looked at */
	PLUMB_VEC(struct region) regions;
	struct plumb_parts parts;
	uint64_t not_before, looks, since;
	uint64_t began;        /* the newest look, or the run */
	uint64_t begin, spent; /* ns of CPU time */
};

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* As plumb_vec_add. The bytes are counted. */
#define ADD(copies, vec)                                                                           \
	({                                                                                         \
		void *grown_ = (vec)->items;                                                       \
		if ((vec)->count == (vec)->capacity)                                               \
			grown_ = plumb_parts_grow(&(copies)->parts, grown_, &(vec)->capacity,      \
			                          sizeof *(vec)->items);                           \
		if (grown_)                                                                        \
			(vec)->items = grown_;                                                     \
		grown_ ? plumb_vec_add(vec) : NULL;                                                \
	})

/* ---- regions and their records ---- */

/* One of ours for each of the run's, in the same order. */
static void
find_regions(struct plumb_copies *copies)
{
	plumb_watch_regions_find(copies->all);
	while (copies->regions.count < copies->all->regions.count) {
		struct region *region = ADD(copies, &copies->regions);
		if (!region)
			return;
		const struct plumb_watch_region *own =
			copies->all->regions.items[copies->regions.count - 1];
		*region = (struct region){ .header = plumb_watch_region_header(own),
			                   .size = own->tree.size,
			                   .next = PLUMB_REGION_HEADER_SIZE };
	}
}

/* The places of the main thread are too few in a look to compare. */
static bool
metric_is_time(uint32_t metric)
{
	return metric != PLUMB_METRIC_HOST_TIME && metric < PLUMB_METRIC_COUNT &&
	       plumb_metrics[metric].unit && plumb_metrics[metric].aggregation == PLUMB_SUM &&
	       strcmp(plumb_metrics[metric].unit, "ns") == 0;
}

static void
add_items(struct plumb_copies *copies, struct region *region, const struct plumb_record *record,
          uint16_t first, uint16_t last)
{
	plumb_id id = (plumb_id)(((const char *)record - (const char *)region->header) >> 3);
	const struct plumb_record_value *value = (const void *)record;

	for (uint16_t which = first; which <= last; which++) {
		struct item *item = ADD(copies, &region->items);
		if (!item)
			return;
		item->id = id;
		item->type = record->type;
		item->which = which;
		item->is_own =
			record->type == PLUMB_RECORD_VALUE && value->metric == PLUMB_METRIC_OP_TIME;
		item->read = copies->began;
		item->is_time = record->type == PLUMB_RECORD_VALUE && metric_is_time(value->metric);
		item->is_work = record->type == PLUMB_RECORD_DEVICE_TOTAL ||
		                (record->type == PLUMB_RECORD_VALUE &&
		                 (value->metric == PLUMB_METRIC_OP_TIME ||
		                  value->metric == PLUMB_METRIC_GPU_TIME));
	}
}

static void
meet_record(struct plumb_copies *copies, struct region *region, const struct plumb_record *record)
{
	static const struct {
		uint16_t type, first, last;
		size_t size;
	} kinds[] = {
		{ PLUMB_RECORD_VALUE, 0, 0, sizeof(struct plumb_record_value) },
		{ PLUMB_RECORD_VARIANT, 0, 0, sizeof(struct plumb_record_variant) },
		{ PLUMB_RECORD_SHAPE, 0, 0, sizeof(struct plumb_record_shape) },
		{ PLUMB_RECORD_DEVICE_TOTAL, PLUMB_COPIES_KERNELS, PLUMB_COPIES_BUSY,
		  sizeof(struct plumb_record_device_total) },
		{ PLUMB_RECORD_MEMORY, PLUMB_COPIES_ALLOCATED, PLUMB_COPIES_FREED,
		  sizeof(struct plumb_record_memory) },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (record->type == kinds[i].type && record->length >= kinds[i].size)
			add_items(copies, region, record, kinds[i].first, kinds[i].last);
}

static void
find_chunks(struct plumb_copies *copies, struct region *region)
{
	uint64_t end = atomic_load_explicit(&region->header->next, memory_order_acquire);

	while (region->next + sizeof(struct plumb_chunk_header) <= end && end <= region->size) {
		const struct plumb_chunk_header *head =
			(const void *)((const char *)region->header + region->next);
		uint32_t size = head->size;
		if (head->magic != PLUMB_CHUNK_MAGIC || !size || size % PLUMB_CHUNK_SIZE ||
		    size > region->size - region->next)
			return; /* it is being made */
		struct chunk *chunk = ADD(copies, &region->chunks);
		if (!chunk)
			return;
		chunk->offset = region->next;
		region->next += size;
	}
}

static void
find_items(struct plumb_copies *copies, struct region *region)
{
	find_chunks(copies, region);
	for (uint32_t i = 0; i < region->chunks.count; i++) {
		struct chunk *chunk = &region->chunks.items[i];
		const char *start = (const char *)region->header + chunk->offset;
		const struct plumb_chunk_header *head = (const void *)start;
		uint64_t used = atomic_load_explicit(&head->used, memory_order_acquire);
		if (used > head->size - sizeof *head)
			continue;
		while (chunk->done + sizeof(struct plumb_record) <= used) {
			const struct plumb_record *record =
				(const void *)(start + sizeof *head + chunk->done);
			uint32_t length = record->length;
			if (length < sizeof *record || length % 8 || length > used - chunk->done) {
				chunk->done = used;
				break;
			}
			meet_record(copies, region, record);
			chunk->done += length;
		}
	}
}

/* ---- growth ---- */

static struct item
from_observations(const struct plumb_observations *o)
{
	return (struct item){ .sum = o->sum, .count = o->count, .m2 = o->m2 };
}

static struct item
pair(uint64_t count, uint64_t sum)
{
	return (struct item){ .sum = (int64_t)sum, .count = count };
}

/* Entries without a count of their own have the sum as their count: what grows, counts. */
static struct item
of_device(const struct plumb_record_device_total *total, uint16_t which)
{
	uint64_t busy = total->busy_ns;

	switch (which) {
	case PLUMB_COPIES_KERNELS:
		return pair(total->kernels, total->kernel_ns);
	case PLUMB_COPIES_COPIES:
		return pair(total->copies, total->copy_ns);
	case PLUMB_COPIES_SETS:
		return pair(total->sets, total->set_ns);
	case PLUMB_COPIES_COPY_BYTES:
		return pair(total->copy_bytes, total->copy_bytes);
	case PLUMB_COPIES_SET_BYTES:
		return pair(total->set_bytes, total->set_bytes);
	default:
		for (uint64_t i = 0; i < total->open_count && i < PLUMB_BUSY_OPEN; i++)
			busy += total->open[i].end - total->open[i].start;
		return pair(busy, busy);
	}
}

/* Reads what ITEM is now. False: it is being written. */
static bool
read_item(const struct region *region, const struct item *item, struct item *now)
{
	const void *record = (const char *)region->header + ((size_t)item->id << 3);
	const struct plumb_record_value *value = record;
	const struct plumb_record_variant *variant = record;
	const struct plumb_record_shape *shape = record;
	const struct plumb_record_device_total *total = record;
	const struct plumb_record_memory *memory = record;
	const _Atomic uint32_t *sequence = item->type == PLUMB_RECORD_VALUE     ? &value->sequence
	                                   : item->type == PLUMB_RECORD_VARIANT ? &variant->sequence
	                                   : item->type == PLUMB_RECORD_SHAPE   ? &shape->sequence
	                                   : item->type == PLUMB_RECORD_MEMORY  ? &memory->sequence
	                                                                        : &total->sequence;
	uint32_t before = atomic_load_explicit(sequence, memory_order_acquire);

	switch (item->type) {
	case PLUMB_RECORD_VALUE:
		*now = from_observations(&value->moments);
		break;
	case PLUMB_RECORD_VARIANT:
		*now = pair(variant->count, (uint64_t)variant->time);
		break;
	case PLUMB_RECORD_SHAPE:
		*now = pair(shape->count, (uint64_t)shape->time);
		break;
	case PLUMB_RECORD_MEMORY:
		*now = from_observations(item->which == PLUMB_COPIES_FREED ? &memory->freed
		                                                           : &memory->allocated);
		break;
	default:
		*now = of_device(total, item->which);
	}
	atomic_thread_fence(memory_order_acquire);
	return !(before & 1) && before == atomic_load_explicit(sequence, memory_order_relaxed);
}

static struct plumb_part_entry
growth_of(const struct item *before, const struct item *now)
{
	struct plumb_part_entry e = { .sum = now->sum - before->sum,
		                      .count = now->count - before->count,
		                      .m2 = now->m2 };

	if (before->count) {
		struct plumb_part_entry old = { .sum = before->sum,
			                        .count = before->count,
			                        .m2 = before->m2 };
		struct plumb_part_entry none = e;
		none.m2 = 0;
		e.m2 = now->m2 - plumb_parts_joined_m2(&old, &none);
	}
	if (!(e.m2 > 0))
		e.m2 = 0;
	return e;
}

/* An operator or a range counts where it ends. What is longer than the time since the look before
 * was open then. */
static int64_t
time_before(const struct item *item, int64_t sum)
{
	int64_t since;

	if (!item->is_own || !item->read)
		return 0;
	since = (int64_t)(clock_ns(CLOCK_MONOTONIC) - item->read);
	return sum > since ? sum - since : 0;
}

/* Adds to the newest part what grew in a region. Did work end there? */
static bool
look_at_region(struct plumb_copies *copies, uint32_t number)
{
	struct region *region = &copies->regions.items[number];
	bool has_work = false;
	uint64_t began = clock_ns(CLOCK_MONOTONIC);

	find_items(copies, region);
	for (uint32_t i = 0; i < region->items.count && !copies->parts.fate; i++) {
		struct item *item = &region->items.items[i], now;
		if (!read_item(region, item, &now))
			continue;
		if (now.count <= item->count) {
			item->read = began;
			continue;
		}
		struct plumb_part_entry entry = growth_of(item, &now);
		entry.region = number;
		entry.item = i & INT32_MAX;
		entry.is_time = item->is_time;
		entry.before = time_before(item, entry.sum);
		item->read = began;
		plumb_parts_add(&copies->parts, &entry);
		item->sum = now.sum;
		item->count = now.count;
		item->m2 = now.m2;
		has_work |= item->is_work;
	}
	return has_work;
}

/* Of no use any more: memory ended, or all is written. */
static void
forget(struct plumb_copies *copies)
{
	plumb_parts_free(&copies->parts);
	for (uint32_t i = 0; i < copies->regions.count; i++) {
		struct region *region = &copies->regions.items[i];
		plumb_vec_free(&region->chunks);
		plumb_vec_free(&region->items);
	}
	plumb_vec_free(&copies->regions);
}

static void
look(struct plumb_copies *copies)
{
	bool has_work = false;

	find_regions(copies);
	if (copies->host)
		plumb_host_look(copies->host);
	plumb_parts_begin(&copies->parts, copies->since);
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < copies->regions.count && !copies->parts.fate; i++)
		has_work |= look_at_region(copies, i);
	copies->began = began;
	copies->since = clock_ns(CLOCK_MONOTONIC);
	plumb_parts_end(&copies->parts, copies->since, has_work);
	copies->looks++;
	if (copies->parts.fate)
		forget(copies);
}

/* ---- from outside ---- */

struct plumb_copies *
plumb_copies_new(struct plumb_watch_regions *regions, struct plumb_host *host)
{
	struct plumb_copies *copies = calloc(1, sizeof *copies);

	if (copies) {
		copies->all = regions;
		copies->host = host;
		copies->parts.bytes_bound = PLUMB_COPIES_MEMORY;
		copies->begin = copies->since = copies->began = clock_ns(CLOCK_MONOTONIC);
		copies->not_before = copies->since + UINT64_C(1000000) * LOOK_MS;
	}
	return copies;
}

int
plumb_copies_look(struct plumb_copies *copies)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (copies->parts.fate)
		return 1000000;
	if (now >= copies->not_before) {
		uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		look(copies);
		copies->spent += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		uint64_t over = copies->spent > COST_FREE ? copies->spent - COST_FREE : 0;
		uint64_t earned = copies->begin + over * COST_SHARE;
		now = clock_ns(CLOCK_MONOTONIC);
		copies->not_before = now + UINT64_C(1000000) * LOOK_MS;
		if (copies->not_before < earned)
			copies->not_before = earned;
	}
	return (int)((copies->not_before - now) / 1000000) + 1;
}

static void
write_entries(const struct plumb_copies *copies, uint32_t region, uint32_t at[PLUMB_COPIES_PARTS],
              FILE *out)
{
	const struct item *items = copies->regions.items[region].items.items;

	for (uint32_t p = 0; p < copies->parts.count; p++) {
		const struct plumb_part *part = &copies->parts.items[p];
		for (; at[p] < part->count && part->entries[at[p]].region == region; at[p]++) {
			const struct plumb_part_entry *e = &part->entries[at[p]];
			fwrite(&(struct plumb_copies_entry){ .id = items[e->item].id,
			                                     .part = (uint16_t)p,
			                                     .which = items[e->item].which,
			                                     .sum = e->sum,
			                                     .count = e->count,
			                                     .m2 = e->m2 },
			       sizeof(struct plumb_copies_entry), 1, out);
		}
	}
}

static void
write_file(const struct plumb_copies *copies, FILE *out)
{
	const struct plumb_parts *parts = &copies->parts;
	struct plumb_copies_header header = { .version = PLUMB_COPIES_VERSION,
		                              .parts = parts->count,
		                              .regions = copies->regions.count,
		                              .entries = (uint32_t)plumb_parts_entries(parts),
		                              .looks = copies->looks };
	uint32_t at[PLUMB_COPIES_PARTS] = { 0 };

	memcpy(header.magic, PLUMB_COPIES_MAGIC, sizeof header.magic);
	fwrite(&header, sizeof header, 1, out);
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct plumb_part *part = &parts->items[i];
		fwrite(&(struct plumb_copies_part){ part->start, part->end, part->first_work,
		                                    part->last_work },
		       sizeof(struct plumb_copies_part), 1, out);
	}
	for (uint32_t r = 0; r < copies->regions.count; r++) {
		const struct plumb_region_header *h = copies->regions.items[r].header;
		struct plumb_copies_region region = { h->start_monotonic, h->pid, 0 };
		for (uint32_t p = 0; p < parts->count; p++)
			for (uint32_t i = 0; i < parts->items[p].count; i++)
				region.entries += parts->items[p].entries[i].region == r;
		fwrite(&region, sizeof region, 1, out);
	}
	for (uint32_t r = 0; r < copies->regions.count; r++)
		write_entries(copies, r, at, out);
}

static bool
write_copies(const struct plumb_copies *copies)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof path, "%s/%s", copies->all->folder, PLUMB_COPIES_NAME) >=
	    (int)sizeof path)
		return false;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	write_file(copies, out);
	bool failed = ferror(out);
	if (fclose(out) || failed) {
		unlink(path);
		return false;
	}
	return true;
}

struct plumb_copies_told
plumb_copies_end(struct plumb_copies *copies)
{
	struct plumb_copies_told told = { .fate = PLUMB_FATE_NO_MEMORY,
		                          .bytes_bound = PLUMB_COPIES_MEMORY };

	if (!copies)
		return told;
	if (!copies->parts.fate)
		look(copies);
	plumb_parts_drop_small_borders(&copies->parts);
	plumb_parts_move_back(&copies->parts);
	told.fate = copies->parts.fate     ? copies->parts.fate
	            : write_copies(copies) ? PLUMB_FATE_ATTRIBUTED
	                                   : PLUMB_FATE_NOT_WRITTEN;
	told.looks = copies->looks;
	told.bytes = copies->parts.bytes;
	told.bytes_most = copies->parts.bytes_most;
	forget(copies);
	free(copies);
	return told;
}
