/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are found once, by walking the records that came since the look before, and read at every
 * look. A part is what they gained between two looks. The region is untrusted: a program may write
 * anywhere.
 */
#include "watch/parts.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/vec.h"
#include "base/words.h"
#include "watch/segments.h"

enum {
	KEPT = 24, /* parts; more could be told apart, but nobody would read them */
	TRIES = 8, /* to read what is being written */
};
#define ROOM ((size_t)96 << 20) /* bytes for one process */

/* A VALUE, VARIANT or SHAPE record, and what it had at the look before. */
struct value {
	plumb_id record;
	bool timed;
	int64_t sum;
	uint64_t count;
	double m2;
};

/* A DEVICE_TOTAL record. */
struct device {
	plumb_id record;
	struct plumb_part_device had;
};

/* A chunk of the region, and how far it was walked. */
struct chunk {
	uint64_t offset;
	uint32_t walked;
};

struct plumb_watch_parts {
	const unsigned char *data;
	size_t size;
	uint64_t next_chunk; /* offset */
	PLUMB_VEC(struct chunk) chunks;
	PLUMB_VEC(struct value) values;
	PLUMB_VEC(struct device) devices;
	struct plumb_segments segments;
	uint64_t since; /* the look before */
	uint64_t looks;
};

struct plumb_watch_parts *
plumb_watch_parts_new(const struct plumb_region_header *header, size_t size)
{
	struct plumb_watch_parts *parts = calloc(1, sizeof *parts);

	if (!parts)
		return NULL;
	parts->data = (const unsigned char *)header;
	parts->size = size;
	parts->next_chunk = PLUMB_REGION_HEADER_SIZE;
	parts->segments.most = KEPT;
	parts->since = header->start_monotonic;
	return parts;
}

/* ---- finding records ---- */

static bool
add_value(struct plumb_watch_parts *parts, plumb_id id, bool timed)
{
	struct value *value = plumb_vec_add(&parts->values);

	if (value)
		*value = (struct value){ .record = id, .timed = timed };
	return value;
}

static bool
is_timed(uint16_t metric)
{
	return metric < PLUMB_METRIC_COUNT && plumb_metrics[metric].name &&
	       plumb_metrics[metric].aggregation == PLUMB_SUM &&
	       !strcmp(plumb_metrics[metric].unit, "ns");
}

static bool
take_record(struct plumb_watch_parts *parts, const struct plumb_record *record)
{
	plumb_id id = (plumb_id)(((const unsigned char *)record - parts->data) >> 3);
	struct device *device;

	switch (record->type) {
	case PLUMB_RECORD_VALUE:
		return record->length < sizeof(struct plumb_record_value) ||
		       add_value(parts, id,
		                 is_timed(((const struct plumb_record_value *)record)->metric));
	case PLUMB_RECORD_VARIANT:
		return record->length < sizeof(struct plumb_record_variant) ||
		       add_value(parts, id, false);
	case PLUMB_RECORD_SHAPE:
		return record->length < sizeof(struct plumb_record_shape) ||
		       add_value(parts, id, false);
	case PLUMB_RECORD_DEVICE_TOTAL:
		if (record->length < sizeof(struct plumb_record_device_total))
			return true;
		device = plumb_vec_add(&parts->devices);
		if (device)
			*device = (struct device){ .record = id };
		return device;
	default:
		return true;
	}
}

/* Records are whole up to the chunk's `used`. */
static bool
walk_chunk(struct plumb_watch_parts *parts, struct chunk *chunk)
{
	const struct plumb_chunk_header *header = (const void *)(parts->data + chunk->offset);
	uint32_t room = header->size - (uint32_t)sizeof *header;
	uint32_t used = atomic_load_explicit(&header->used, memory_order_acquire);

	if (used > room || header->size > parts->size - chunk->offset)
		return true; /* damaged */
	while (chunk->walked + sizeof(struct plumb_record) <= used) {
		const struct plumb_record *record =
			(const void *)((const unsigned char *)(header + 1) + chunk->walked);
		uint32_t length = record->length;
		if (length < sizeof *record || length % 8 || length > used - chunk->walked)
			break;
		if (!take_record(parts, record))
			return false;
		chunk->walked += length;
	}
	return true;
}

/* Chunks follow each other. One whose head is not written yet waits for the next look. */
static bool
find_chunks(struct plumb_watch_parts *parts)
{
	const struct plumb_region_header *header = (const void *)parts->data;
	uint64_t end = atomic_load_explicit(&header->next, memory_order_acquire);

	end = end < parts->size ? end : parts->size;
	while (parts->next_chunk + sizeof(struct plumb_chunk_header) <= end) {
		const struct plumb_chunk_header *at =
			(const void *)(parts->data + parts->next_chunk);
		uint32_t size = at->size;
		struct chunk *chunk;
		if (at->magic != PLUMB_CHUNK_MAGIC || size < sizeof *at || size % 8 ||
		    size > parts->size - parts->next_chunk)
			break;
		chunk = plumb_vec_add(&parts->chunks);
		if (!chunk)
			return false;
		*chunk = (struct chunk){ .offset = parts->next_chunk };
		parts->next_chunk += size;
	}
	for (uint32_t i = 0; i < parts->chunks.count; i++)
		if (!walk_chunk(parts, &parts->chunks.items[i]))
			return false;
	return true;
}

/* ---- reading them ---- */

/* Copies BYTES of the record AT if it is whole: its SEQUENCE word is even, and the same before and
 * after. */
static bool
read_whole(void *to, const void *at, size_t bytes, const _Atomic uint32_t *sequence)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t before = atomic_load_explicit(sequence, memory_order_acquire);
		memcpy(to, at, bytes);
		atomic_thread_fence(memory_order_acquire);
		if (!(before & 1) && before == atomic_load_explicit(sequence, memory_order_relaxed))
			return true;
	}
	return false;
}

/* What the value has now. False: it is being written. */
static bool
read_value(const struct plumb_watch_parts *parts, struct value *value)
{
	union {
		struct plumb_record head;
		struct plumb_record_value value;
		struct plumb_record_variant variant;
		struct plumb_record_shape shape;
	} copy;
	const void *at = parts->data + ((uint64_t)value->record << 3);
	const struct plumb_record_value *v = at;
	const struct plumb_record_variant *variant = at;
	const struct plumb_record_shape *shape = at;

	switch (v->head.type) {
	case PLUMB_RECORD_VALUE:
		if (!read_whole(&copy, at, sizeof *v, &v->sequence))
			return false;
		value->sum = copy.value.sum;
		value->count = copy.value.count;
		value->m2 = copy.value.m2;
		return true;
	case PLUMB_RECORD_VARIANT:
		if (!read_whole(&copy, at, sizeof *variant, &variant->sequence))
			return false;
		value->sum = copy.variant.time;
		value->count = copy.variant.count;
		return true;
	case PLUMB_RECORD_SHAPE:
		if (!read_whole(&copy, at, sizeof *shape, &shape->sequence))
			return false;
		value->sum = copy.shape.time;
		value->count = copy.shape.count;
		return true;
	default:
		return false;
	}
}

/* The part's own of NOW and what it HAD. False: it gained nothing that could be told. */
static bool
subtract_value(const struct value *now, const struct value *had, struct plumb_part_value *gained)
{
	double n = (double)had->count, m = (double)(now->count - had->count), between;

	if (now->count <= had->count || now->count > INT64_MAX ||
	    __builtin_sub_overflow(now->sum, had->sum, &gained->sum))
		return false;
	gained->count = now->count - had->count;
	between = n ? (double)gained->sum / m - (double)had->sum / n : 0;
	gained->m2 = now->m2 - had->m2 - between * between * n * m / (n + m);
	if (!(gained->m2 > 0)) /* rounding */
		gained->m2 = 0;
	return true;
}

static bool
read_values(struct plumb_watch_parts *parts, struct plumb_part *part)
{
	PLUMB_VEC(struct plumb_part_value) gained = { 0 };

	for (uint32_t i = 0; i < parts->values.count; i++) {
		struct value *value = &parts->values.items[i], now = *value;
		struct plumb_part_value it = { .record = i }, *added;
		if (!read_value(parts, &now) || !subtract_value(&now, value, &it))
			continue;
		added = plumb_vec_add(&gained);
		if (!added) {
			plumb_vec_free(&gained);
			return false;
		}
		*added = it;
		*value = now;
	}
	part->values = gained.items;
	part->value_count = gained.count;
	return true;
}

/* What the device did since it was seen first. */
static void
total_of(const struct plumb_record_device_total *total, struct plumb_part_device *now)
{
	*now = (struct plumb_part_device){
		.device = total->device,
		.kernels = total->kernels,
		.kernel_ns = total->kernel_ns,
		.copies = total->copies,
		.copy_ns = total->copy_ns,
		.copy_bytes = total->copy_bytes,
		.sets = total->sets,
		.set_ns = total->set_ns,
		.set_bytes = total->set_bytes,
		.busy_ns = total->busy_ns,
	};
	for (uint64_t i = 0; i < total->open_count && i < PLUMB_BUSY_OPEN; i++)
		if (total->open[i].end > total->open[i].start)
			now->busy_ns += total->open[i].end - total->open[i].start;
}

static uint64_t
gained_of(uint64_t now, uint64_t had)
{
	return now > had ? now - had : 0;
}

static bool
read_devices(struct plumb_watch_parts *parts, struct plumb_part *part)
{
	part->devices = malloc((parts->devices.count + (size_t)1) * sizeof *part->devices);
	for (uint32_t i = 0; part->devices && i < parts->devices.count; i++) {
		struct device *device = &parts->devices.items[i];
		struct plumb_record_device_total total;
		const struct plumb_record_device_total *at =
			(const void *)(parts->data + ((uint64_t)device->record << 3));
		struct plumb_part_device now, *had = &device->had;
		if (!read_whole(&total, at, sizeof total, &at->sequence))
			continue;
		total_of(&total, &now);
		part->devices[part->device_count++] = (struct plumb_part_device){
			.device = now.device,
			.kernels = gained_of(now.kernels, had->kernels),
			.kernel_ns = gained_of(now.kernel_ns, had->kernel_ns),
			.copies = gained_of(now.copies, had->copies),
			.copy_ns = gained_of(now.copy_ns, had->copy_ns),
			.copy_bytes = gained_of(now.copy_bytes, had->copy_bytes),
			.sets = gained_of(now.sets, had->sets),
			.set_ns = gained_of(now.set_ns, had->set_ns),
			.set_bytes = gained_of(now.set_bytes, had->set_bytes),
			.busy_ns = gained_of(now.busy_ns, had->busy_ns),
		};
		*had = now;
	}
	return part->devices;
}

/* ---- a look ---- */

static bool
timed_value(const void *data, uint32_t number)
{
	const struct plumb_watch_parts *parts = data;

	return parts->values.items[number].timed;
}

static size_t
bytes_of(const struct plumb_watch_parts *parts)
{
	return parts->segments.bytes + parts->values.capacity * sizeof *parts->values.items;
}

bool
plumb_watch_parts_look(struct plumb_watch_parts *parts)
{
	struct plumb_part part = { .start = parts->since };

	if (!find_chunks(parts))
		return false;
	part.end = plumb_clock_ns();
	if (part.end < part.start)
		part.end = part.start;
	if (!read_values(parts, &part) || !read_devices(parts, &part) ||
	    !plumb_segments_add(&parts->segments, &part, timed_value, parts)) {
		free(part.values);
		free(part.devices);
		return false;
	}
	parts->since = part.end;
	parts->looks++;
	while (bytes_of(parts) > ROOM)
		if (!plumb_segments_merge(&parts->segments, timed_value, parts))
			return false;
	return true;
}

void
plumb_watch_parts_finish(struct plumb_watch_parts *parts, const char *path)
{
	struct plumb_parts all = { .items = parts->segments.items };

	if (!plumb_watch_parts_look(parts))
		return;
	all.looks = parts->looks;
	all.count = parts->segments.count;
	for (uint32_t i = 0; i < all.count; i++)
		for (uint32_t v = 0; v < all.items[i].value_count; v++) {
			plumb_id *record = &all.items[i].values[v].record;
			*record = parts->values.items[*record].record;
		}
	/* What could not be written is unknown, as if plumb had not looked. */
	(void)!plumb_parts_write(&all, path, NULL);
}

void
plumb_watch_parts_free(struct plumb_watch_parts *parts)
{
	if (!parts)
		return;
	plumb_vec_free(&parts->chunks);
	plumb_vec_free(&parts->values);
	plumb_vec_free(&parts->devices);
	plumb_segments_free(&parts->segments);
	free(parts);
}
