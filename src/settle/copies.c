/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `plumb run` notes parts of the run (region/copies.h). Each becomes a window of kind "part" of
 * each process, with what its values added up to in that part. analyze says later which part of the
 * program it is.
 */
#include "settle/settle_private.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/regular.h"
#include "region/copies.h"

#define FILE_MOST (UINT64_C(256) << 20)

/* ---- the file ---- */

static bool
read_all(int fd, char *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, to + done, size - done, (off_t)done);
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* Do the counts of the header fit the file? Fills in where everything is. */
static bool
lay_out(struct plumb_settle_copies *copies, size_t size)
{
	const struct plumb_copies_header *header = (const void *)copies->bytes;
	uint64_t entries = 0, wanted;

	if (size < sizeof *header ||
	    memcmp(header->magic, PLUMB_COPIES_MAGIC, sizeof header->magic) ||
	    header->version != PLUMB_COPIES_VERSION || !header->parts ||
	    header->parts > PLUMB_COPIES_PARTS)
		return false;
	copies->parts = (const void *)(header + 1);
	copies->part_count = header->parts;
	copies->regions = (const void *)(copies->parts + header->parts);
	copies->region_count = header->regions;
	wanted = sizeof *header + header->parts * sizeof *copies->parts +
	         header->regions * (uint64_t)sizeof *copies->regions +
	         header->entries * (uint64_t)sizeof *copies->entries;
	if (wanted != size)
		return false;
	copies->entries = (const void *)(copies->regions + header->regions);
	for (uint32_t i = 0; i < header->regions; i++)
		entries += copies->regions[i].entries;
	for (uint32_t i = 0; i < header->parts; i++) {
		const struct plumb_copies_part *part = &copies->parts[i];
		if (part->start > part->end || part->end > INT64_MAX / 4 ||
		    (i && part->start != part[-1].end) || part->first_work > part->last_work ||
		    (part->last_work &&
		     (part->first_work < part->start || part->last_work > part->end)))
			return false;
	}
	return entries == header->entries;
}

bool
plumb_settle_copies_take(struct plumb_settler *settler, char *bytes, size_t size, uint32_t number)
{
	struct plumb_settle_copies *copies = &settler->runs.items[number].copies;

	plumb_settle_copies_free(copies);
	copies->bytes = bytes;
	if (lay_out(copies, size))
		return true;
	plumb_settle_copies_free(copies);
	return false;
}

void
plumb_settle_copies_read(struct plumb_settler *settler, const char *folder, uint32_t number)
{
	char path[4096], *bytes = NULL;
	int fd = snprintf(path, sizeof path, "%s/" PLUMB_COPIES_NAME, folder) < (int)sizeof path
	                 ? plumb_regular_open(AT_FDCWD, path, O_NOFOLLOW)
	                 : -1;
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	bool whole;

	if (size > 0 && (uint64_t)size <= FILE_MOST)
		bytes = malloc((size_t)size);
	whole = bytes && read_all(fd, bytes, (size_t)size);
	if (bytes && !whole)
		free(bytes);
	if (fd >= 0 &&
	    (!whole || !plumb_settle_copies_take(settler, bytes, (size_t)size, number))) {
		plumb_settle_warn(settler, "%s is damaged; the windows of the run are unknown",
		                  path);
		settler->runs.items[number].windows_told = true;
	}
	if (fd >= 0)
		close(fd);
}

void
plumb_settle_copies_miss(struct plumb_settler *settler, const char *folder, uint32_t number)
{
	const struct plumb_settle_run *run = &settler->runs.items[number];

	if (!run->known || run->windows_told || run->copies.bytes)
		return;
	if (run->end != PLUMB_UNKNOWN && !run->looked)
		return; /* the recording was without looks */
	plumb_settle_warn(settler,
	                  "%s lacks what plumb run notes at its end (was it killed?); the windows "
	                  "of the run are unknown",
	                  folder);
	plumb_builder_environment(settler->builder, PLUMB_NONE, "plumb.windows",
	                          "unknown: plumb run did not write them");
}

void
plumb_settle_copies_free(struct plumb_settle_copies *copies)
{
	free(copies->bytes);
	*copies = (struct plumb_settle_copies){ 0 };
}

/* ---- entries ---- */

/* What an entry is part of. */
struct place {
	struct plumb_settle_region *region;
	const struct plumb_copies_entry *entry;
	uint32_t window;
};

static bool
is_plausible(const struct plumb_copies_entry *entry)
{
	return entry->count && entry->count <= INT64_MAX && entry->sum != PLUMB_UNKNOWN &&
	       isfinite(entry->m2) && entry->m2 >= 0;
}

static bool
add_value(const struct place *place, plumb_id node, plumb_id track, uint32_t metric)
{
	struct plumb_settle_region *region = place->region;
	struct plumb_window_value value = {
		.window = place->window,
		.context = plumb_settle_node(region, node),
		.metric = metric,
		.track = plumb_settle_track(region, track),
		.sum = place->entry->sum,
		.count = place->entry->count,
		.min = PLUMB_UNKNOWN,
		.max = PLUMB_UNKNOWN,
		.m2 = place->entry->m2,
		.ends = plumb_settle_ends(region, node),
	};

	if (!metric || value.context == PLUMB_NONE || value.track == PLUMB_NONE)
		return false;
	plumb_builder_window_value(region->settler->builder, &value);
	if (metric == PLUMB_METRIC_OP_DURATION) {
		value.metric = PLUMB_METRIC_OP_CALLS;
		value.sum = (int64_t)value.count;
		value.m2 = 0;
		plumb_builder_window_value(region->settler->builder, &value);
	}
	return true;
}

static bool
add_variant(const struct place *place, struct plumb_variant *variant, plumb_id node, plumb_id track)
{
	struct plumb_window_variant row = { .window = place->window };

	variant->context = plumb_settle_node(place->region, node);
	variant->track = plumb_settle_track(place->region, track);
	variant->count = place->entry->count;
	variant->time = place->entry->sum;
	variant->min = variant->max = PLUMB_UNKNOWN;
	if (variant->context == PLUMB_NONE || variant->track == PLUMB_NONE)
		return false;
	row.variant = *variant;
	plumb_builder_window_variant(place->region->settler->builder, &row);
	return true;
}

static bool
add_kernel_variant(const struct place *place, const struct plumb_record_variant *record)
{
	struct plumb_variant variant = plumb_settle_kernel_shape(record);

	return add_variant(place, &variant, record->node, record->track);
}

static bool
add_shape(const struct place *place, const struct plumb_record_shape *record)
{
	struct plumb_variant variant =
		plumb_settle_operator_shape(plumb_settle_string(place->region, record->text));

	return variant.shapes != PLUMB_NONE &&
	       add_variant(place, &variant, record->node, record->track);
}

static bool
add_memory(const struct place *place, const struct plumb_record_memory *record)
{
	return add_value(place, record->node, record->pool,
	                 place->entry->which == PLUMB_COPIES_FREED ? PLUMB_METRIC_MEM_FREE
	                                                           : PLUMB_METRIC_MEM_ALLOC);
}

/* Adds to the row of the window and device. ROW is the newest of them. */
static bool
add_total(const struct place *place, const struct plumb_record_device_total *record,
          struct plumb_window_device *row)
{
	uint32_t device = plumb_settle_device(place->region, record->device);
	int64_t sum = place->entry->sum < 0 ? 0 : place->entry->sum;
	int64_t count = (int64_t)place->entry->count;

	if (device == PLUMB_NONE)
		return false;
	if (row->window != place->window || row->device != device) {
		if (row->device != PLUMB_NONE)
			plumb_builder_window_device(place->region->settler->builder, row);
		*row = (struct plumb_window_device){ .window = place->window, .device = device };
	}
	switch (place->entry->which) {
	case PLUMB_COPIES_KERNELS:
		row->kernels = count;
		row->kernel_ns = sum;
		return true;
	case PLUMB_COPIES_COPIES:
		row->copies = count;
		row->copy_ns = sum;
		return true;
	case PLUMB_COPIES_SETS:
		row->sets = count;
		row->set_ns = sum;
		return true;
	case PLUMB_COPIES_COPY_BYTES:
		row->copy_bytes = sum;
		return true;
	case PLUMB_COPIES_SET_BYTES:
		row->set_bytes = sum;
		return true;
	case PLUMB_COPIES_BUSY:
		row->busy_ns = sum;
		return true;
	default:
		return false;
	}
}

static bool
add_entry(const struct place *place, struct plumb_window_device *device)
{
	const struct plumb_region_reader *reader = place->region->reader;
	plumb_id id = place->entry->id;
	const struct plumb_record_value *value =
		plumb_region_get(reader, id, PLUMB_RECORD_VALUE, sizeof *value);
	const struct plumb_record_variant *variant =
		plumb_region_get(reader, id, PLUMB_RECORD_VARIANT, sizeof *variant);
	const struct plumb_record_shape *shape =
		plumb_region_get(reader, id, PLUMB_RECORD_SHAPE, sizeof *shape);
	const struct plumb_record_device_total *total =
		plumb_region_get(reader, id, PLUMB_RECORD_DEVICE_TOTAL, sizeof *total);
	const struct plumb_record_memory *memory =
		plumb_region_get(reader, id, PLUMB_RECORD_MEMORY, sizeof *memory);

	if (!is_plausible(place->entry))
		return false;
	return value     ? add_value(place, value->node, value->track,
	                             plumb_settle_metric_of(place->region, value->metric))
	       : variant ? add_kernel_variant(place, variant)
	       : shape   ? add_shape(place, shape)
	       : total   ? add_total(place, total, device)
	       : memory  ? add_memory(place, memory)
	                 : false;
}

static uint32_t
add_windows(struct plumb_settle_region *region, const struct plumb_settle_copies *copies)
{
	struct plumb_builder *builder = region->settler->builder;
	uint32_t first = PLUMB_NONE;

	for (uint32_t i = 0; i < copies->part_count; i++) {
		const struct plumb_copies_part *part = &copies->parts[i];
		uint32_t id = plumb_builder_window(
			builder,
			&(struct plumb_window){ region->process, PLUMB_WINDOW_PART, i + 1,
		                                (int64_t)(part->last_work - part->first_work) });
		if (!i)
			first = id;
		plumb_builder_window_stretch(
			builder, &(struct plumb_window_stretch){ id, (int64_t)part->start,
		                                                 (int64_t)part->end });
	}
	return first;
}

void
plumb_settle_copies(struct plumb_settle_region *region)
{
	const struct plumb_settle_copies *copies =
		&region->settler->runs.items[region->folder].copies;
	const struct plumb_region_header *header = &region->reader->header;
	const struct plumb_copies_entry *entry = copies->entries;
	struct plumb_window_device device = { .device = PLUMB_NONE };
	uint32_t r = 0;

	for (; r < copies->region_count; entry += copies->regions[r++].entries)
		if (copies->regions[r].pid == header->pid &&
		    copies->regions[r].start_monotonic == header->start_monotonic)
			break;
	if (r >= copies->region_count)
		return;
	uint32_t first = add_windows(region, copies);
	for (uint32_t i = 0; first != PLUMB_NONE && i < copies->regions[r].entries; i++) {
		struct place place = { region, &entry[i], first + entry[i].part };
		if (entry[i].part >= copies->part_count || !add_entry(&place, &device))
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "values of windows", 1);
	}
	if (device.device != PLUMB_NONE)
		plumb_builder_window_device(region->settler->builder, &device);
}
