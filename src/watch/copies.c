/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look reads each record that adds up and notes by how much it grew since the look before: that
 * is a new part. When there are too many parts, two neighbours become one: those whose joining
 * changes least how each value's rate differs from part to part (Ward's criterion). So borders stay
 * where the program changes what it does, and parts inside a loop, which differ by chance, grow
 * together.
 *
 * A record that is torn while it is read is read again at the next look; its growth is then of that
 * part.
 */
#include "watch/copies.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/words.h"
#include "region/copies.h"

enum {
	LOOK_MS = 100,        /* between two looks, at least */
	COST_SHARE = 200,     /* looking takes at most this part of one processor, 0.5 %, … */
	COST_FREE = 20000000, /* … and these ns: the first looks map regions and learn names */
	ROOM = PLUMB_COPIES_PARTS + 1,
};
/* A clear border costs so much of what the clearest one does, or so often as much as one between
 * two looks at the same loop. */
#define CLEAR_SHARE 0.3
#define CLEAR_TIMES 10
#define ENTRIES_MOST (PLUMB_COPIES_MEMORY / sizeof(struct entry))

/* Something that adds up, as it was at the look before. */
struct item {
	plumb_id id;
	uint16_t type, which;
	bool is_time; /* ns that tell what the program does */
	bool is_work; /* it grows where an operator or GPU work ends */
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

/* How much an item grew in a part. */
struct entry {
	uint32_t region, item;
	int64_t sum;
	uint64_t count;
	double m2;
};

struct part {
	uint64_t start, end;
	uint64_t first_work, last_work; /* from and to a look at which work had ended */
	struct entry *entries;          /* by region, then item */
	uint32_t count, capacity;
	double cost; /* of joining it with the one before */
};

struct plumb_copies {
	struct plumb_watch_regions *all;
	struct plumb_host *host; /* NULL: the main threads are not looked at */
	PLUMB_VEC(struct region) regions;
	struct part parts[ROOM];
	uint32_t part_count;
	uint64_t not_before, looks, since;
	uint64_t begin, spent; /* ns of CPU time */
	bool no_memory;
};

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- regions and their records ---- */

/* One of ours for each of the run's, in the same order. */
static void
find_regions(struct plumb_copies *copies)
{
	plumb_watch_regions_find(copies->all);
	while (copies->regions.count < copies->all->regions.count) {
		struct region *region = plumb_vec_add(&copies->regions);
		if (!region) {
			copies->no_memory = true;
			return;
		}
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
		struct item *item = plumb_vec_add(&region->items);
		if (!item) {
			copies->no_memory = true;
			return;
		}
		item->id = id;
		item->type = record->type;
		item->which = which;
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
		struct chunk *chunk = plumb_vec_add(&region->chunks);
		if (!chunk) {
			copies->no_memory = true;
			return;
		}
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

/* The m2 of A and B together. */
static double
joined_m2(const struct entry *a, const struct entry *b)
{
	double an = (double)a->count, bn = (double)b->count;
	double delta = (double)b->sum / bn - (double)a->sum / an;

	return a->m2 + b->m2 + delta * delta * (an * bn / (an + bn));
}

static struct entry
growth_of(const struct item *before, const struct item *now)
{
	struct entry e = { .sum = now->sum - before->sum,
		           .count = now->count - before->count,
		           .m2 = now->m2 };

	if (before->count) {
		struct entry old = { .sum = before->sum, .count = before->count, .m2 = before->m2 };
		struct entry none = e;
		none.m2 = 0;
		e.m2 = now->m2 - joined_m2(&old, &none);
	}
	if (!(e.m2 > 0))
		e.m2 = 0;
	return e;
}

/* Adds to PART what grew in a region. Did work end there? */
static bool
look_at_region(struct plumb_copies *copies, uint32_t number, struct part *part)
{
	struct region *region = &copies->regions.items[number];
	bool has_work = false;

	find_items(copies, region);
	for (uint32_t i = 0; i < region->items.count; i++) {
		struct item *item = &region->items.items[i], now;
		if (!read_item(region, item, &now) || now.count <= item->count)
			continue;
		if (part->count == part->capacity) {
			void *grown =
				plumb_vec_grow(part->entries, &part->capacity,
			                       (uint64_t)part->count + 1, sizeof *part->entries);
			if (!grown) {
				copies->no_memory = true;
				return has_work;
			}
			part->entries = grown;
		}
		struct entry *entry = &part->entries[part->count++];
		*entry = growth_of(item, &now);
		entry->region = number;
		entry->item = i;
		item->sum = now.sum;
		item->count = now.count;
		item->m2 = now.m2;
		has_work |= item->is_work;
	}
	return has_work;
}

/* ---- parts ---- */

static int
compare_entries(const struct entry *a, const struct entry *b)
{
	if (a->region != b->region)
		return a->region < b->region ? -1 : 1;
	return (a->item > b->item) - (a->item < b->item);
}

/* Part of the time; a long operator that ends in a short part counts there as all of it. */
static double
rate_of(const struct plumb_copies *copies, const struct entry *entry, double ns)
{
	const struct item *item = &copies->regions.items[entry->region].items.items[entry->item];

	return item->is_time ? fmin((double)entry->sum / ns, 1) : 0;
}

/* How much is lost if A and B become one. Roots, so that work of many contexts counts as much as
 * the same time in one, and a part with little work has borders, too. */
static double
cost_of(const struct plumb_copies *copies, const struct part *a, const struct part *b)
{
	double an = (double)(a->end - a->start) + 1, bn = (double)(b->end - b->start) + 1, sum = 0;

	for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
		int order = i == a->count   ? 1
		            : k == b->count ? -1
		                            : compare_entries(&a->entries[i], &b->entries[k]);
		double difference = 0;
		if (order <= 0)
			difference += sqrt(rate_of(copies, &a->entries[i++], an));
		if (order >= 0)
			difference -= sqrt(rate_of(copies, &b->entries[k++], bn));
		sum += difference * difference;
	}
	return an * bn / (an + bn) * sum;
}

/* Part I takes in the one after it. */
static void
join_parts(struct plumb_copies *copies, uint32_t i)
{
	struct part *a = &copies->parts[i], *b = a + 1, both = { 0 };

	both.start = a->start;
	both.end = b->end;
	both.first_work = a->first_work ? a->first_work : b->first_work;
	both.last_work = b->last_work ? b->last_work : a->last_work;
	both.cost = a->cost;
	both.capacity = a->count + b->count;
	both.entries = malloc(((size_t)both.capacity + 1) * sizeof *both.entries);
	for (uint32_t m = 0, n = 0; both.entries && (m < a->count || n < b->count);) {
		int order = m == a->count   ? 1
		            : n == b->count ? -1
		                            : compare_entries(&a->entries[m], &b->entries[n]);
		struct entry *to = &both.entries[both.count++];
		*to = order <= 0 ? a->entries[m] : b->entries[n];
		if (!order) {
			to->m2 = joined_m2(&a->entries[m], &b->entries[n]);
			to->sum += b->entries[n].sum;
			to->count += b->entries[n].count;
		}
		m += order <= 0;
		n += order >= 0;
	}
	copies->no_memory |= !both.entries;
	free(a->entries);
	free(b->entries);
	*a = both;
	copies->part_count--;
	memmove(b, b + 1, (copies->part_count - i - 1) * sizeof *b);
	if (i)
		a->cost = cost_of(copies, a - 1, a);
	if (i + 1 < copies->part_count)
		b->cost = cost_of(copies, a, b);
}

static uint64_t
count_entries(const struct plumb_copies *copies)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < copies->part_count; i++)
		count += copies->parts[i].count;
	return count;
}

static uint32_t
least_border(const struct plumb_copies *copies)
{
	uint32_t least = 1;

	for (uint32_t i = 2; i < copies->part_count; i++)
		if (copies->parts[i].cost < copies->parts[least].cost)
			least = i;
	return least;
}

static void
thin_out(struct plumb_copies *copies)
{
	while (copies->part_count > 1 && !copies->no_memory &&
	       (copies->part_count > PLUMB_COPIES_PARTS || count_entries(copies) > ENTRIES_MOST))
		join_parts(copies, least_border(copies) - 1);
}

/* The parts of COPIES, with entries of their own. */
static void
copy_parts(const struct plumb_copies *copies, struct plumb_copies *to)
{
	*to = *copies;
	for (uint32_t i = 0; i < copies->part_count; i++) {
		const struct part *from = &copies->parts[i];
		size_t bytes = from->count * sizeof *from->entries;
		struct entry *entries = malloc(bytes + 1);
		if (entries && bytes)
			memcpy(entries, from->entries, bytes);
		to->no_memory |= !entries;
		to->parts[i].entries = entries;
	}
}

/* How many parts differ clearly. All parts are joined, one after another: first those that differ
 * by chance. */
static uint32_t
count_clear_parts(const struct plumb_copies *copies)
{
	struct plumb_copies trial;
	double costs[ROOM + 1] = { 0 }, most = 0, chance;
	uint32_t clear = 1;

	copy_parts(copies, &trial);
	while (trial.part_count > 1 && !trial.no_memory) {
		uint32_t least = least_border(&trial);
		costs[trial.part_count] = trial.parts[least].cost;
		most = fmax(most, trial.parts[least].cost);
		join_parts(&trial, least - 1);
	}
	chance = costs[copies->part_count - copies->part_count / 4];
	for (uint32_t count = 2; count <= copies->part_count; count++)
		if (costs[count] >= fmin(CLEAR_SHARE * most, CLEAR_TIMES * chance))
			clear = count;
	for (uint32_t i = 0; i < trial.part_count; i++)
		free(trial.parts[i].entries);
	return trial.no_memory ? copies->part_count : clear;
}

/* A look may take less time than an iteration, and then shows a part of it. Such borders mean
 * little beside those between start-up, training and evaluation. */
static void
drop_small_borders(struct plumb_copies *copies)
{
	uint32_t clear = copies->no_memory ? 0 : count_clear_parts(copies);

	while (clear && copies->part_count > clear && !copies->no_memory)
		join_parts(copies, least_border(copies) - 1);
}

static void
look(struct plumb_copies *copies)
{
	struct part *part = &copies->parts[copies->part_count];
	bool has_work = false;

	find_regions(copies);
	if (copies->host)
		plumb_host_look(copies->host);
	*part = (struct part){ .start = copies->since };
	for (uint32_t i = 0; i < copies->regions.count && !copies->no_memory; i++)
		has_work |= look_at_region(copies, i, part);
	part->end = copies->since = clock_ns(CLOCK_MONOTONIC);
	if (has_work) {
		part->first_work = part->start;
		part->last_work = part->end;
	}
	copies->looks++;
	copies->part_count++;
	if (copies->part_count > 1)
		part->cost = cost_of(copies, part - 1, part);
	if (!copies->no_memory)
		thin_out(copies);
}

/* ---- from outside ---- */

struct plumb_copies *
plumb_copies_new(struct plumb_watch_regions *regions, struct plumb_host *host)
{
	struct plumb_copies *copies = calloc(1, sizeof *copies);

	if (copies) {
		copies->all = regions;
		copies->host = host;
		copies->begin = copies->since = clock_ns(CLOCK_MONOTONIC);
		copies->not_before = copies->since + UINT64_C(1000000) * LOOK_MS;
	}
	return copies;
}

int
plumb_copies_look(struct plumb_copies *copies)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (copies->no_memory)
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
write_entries(const struct plumb_copies *copies, uint32_t region, uint32_t at[ROOM], FILE *out)
{
	const struct item *items = copies->regions.items[region].items.items;

	for (uint32_t p = 0; p < copies->part_count; p++) {
		const struct part *part = &copies->parts[p];
		for (; at[p] < part->count && part->entries[at[p]].region == region; at[p]++) {
			const struct entry *e = &part->entries[at[p]];
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
	struct plumb_copies_header header = { .version = PLUMB_COPIES_VERSION,
		                              .parts = copies->part_count,
		                              .regions = copies->regions.count,
		                              .entries = (uint32_t)count_entries(copies),
		                              .looks = copies->looks };
	uint32_t at[ROOM] = { 0 };

	memcpy(header.magic, PLUMB_COPIES_MAGIC, sizeof header.magic);
	fwrite(&header, sizeof header, 1, out);
	for (uint32_t i = 0; i < copies->part_count; i++)
		fwrite(&(struct plumb_copies_part){ copies->parts[i].start, copies->parts[i].end,
		                                    copies->parts[i].first_work,
		                                    copies->parts[i].last_work },
		       sizeof(struct plumb_copies_part), 1, out);
	for (uint32_t r = 0; r < copies->regions.count; r++) {
		const struct plumb_region_header *h = copies->regions.items[r].header;
		struct plumb_copies_region region = { h->start_monotonic, h->pid, 0 };
		for (uint32_t p = 0; p < copies->part_count; p++)
			for (uint32_t i = 0; i < copies->parts[p].count; i++)
				region.entries += copies->parts[p].entries[i].region == r;
		fwrite(&region, sizeof region, 1, out);
	}
	for (uint32_t r = 0; r < copies->regions.count; r++)
		write_entries(copies, r, at, out);
}

static void
write_copies(const struct plumb_copies *copies)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof path, "%s/%s", copies->all->folder, PLUMB_COPIES_NAME) >=
	    (int)sizeof path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		if (fd >= 0)
			close(fd);
		return;
	}
	write_file(copies, out);
	bool failed = ferror(out);
	if (fclose(out) || failed)
		unlink(path);
}

void
plumb_copies_end(struct plumb_copies *copies)
{
	if (!copies)
		return;
	if (!copies->no_memory)
		look(copies);
	drop_small_borders(copies);
	if (!copies->no_memory)
		write_copies(copies);
	for (uint32_t i = 0; i < copies->part_count; i++)
		free(copies->parts[i].entries);
	for (uint32_t i = 0; i < copies->regions.count; i++) {
		struct region *region = &copies->regions.items[i];
		plumb_vec_free(&region->chunks);
		plumb_vec_free(&region->items);
	}
	plumb_vec_free(&copies->regions);
	free(copies);
}
