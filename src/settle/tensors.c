/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses of kernels to a segment of a framework's allocator → the tensor in it. The collector
 * counts them by allocation, with bins over its addresses. What one device did of one sort to a
 * segment belongs to a tensor if that is certain: whatever lay in the bins with accesses, at any
 * time, is this tensor, at one place; and the bins have all the accesses. Else it stays the
 * segment's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "settle/settle_private.h"

/* A tensor's allocation, as a part of the segment's. All numbers are of rows. */
struct part {
	uint32_t segment, tensor;
	int64_t start, end;
	int64_t reach; /* of this and all parts of the segment before it, the greatest end */
};

/* What a device did of one sort to a segment. */
struct deed {
	uint32_t segment, device;
	unsigned group;
	uint32_t tensor; /* PLUMB_NONE: it stays the segment's */
	uint64_t accesses;
};

struct finding {
	struct plumb_settler *settler;
	const uint32_t *joined;
	uint32_t rows; /* of objects */
	/* Allocations of segments, by the row of their object. */
	PLUMB_VEC(struct plumb_settle_object_range) segments;
	PLUMB_VEC(struct part) parts;
	PLUMB_VEC(struct deed) deeds;
	unsigned char *vague; /* by row: of a part of the segment it is not known what lay there */
	uint64_t *missing;    /* by row: allocations without a range */
};

/* Bins tell three sorts of accesses apart. */
static unsigned
group_of(uint32_t kind)
{
	switch (kind) {
	case PLUMB_ACCESS_STORE:
	case PLUMB_ACCESS_BULK_STORE:
		return PLUMB_ACCESS_STORE;
	case PLUMB_ACCESS_ATOMIC:
	case PLUMB_ACCESS_BULK_REDUCTION:
		return PLUMB_ACCESS_ATOMIC;
	default:
		return PLUMB_ACCESS_LOAD;
	}
}

#define ORDER(a, b, field)                                                                         \
	if ((a)->field != (b)->field)                                                              \
	return (a)->field < (b)->field ? -1 : 1

/* ---- where tensors lay ---- */

static const struct plumb_settle_object *
object_at(const struct finding *f, uint32_t index)
{
	return &f->settler->traffic.objects.items[index];
}

static int
by_segment(const void *x, const void *y)
{
	const struct plumb_settle_object_range *a = x, *b = y;

	ORDER(a, b, object);
	ORDER(a, b, address);
	ORDER(a, b, start);
	return 0;
}

static void
list_segments(struct finding *f)
{
	const struct plumb_settle_traffic *all = &f->settler->traffic;

	for (uint32_t i = 0; i < all->ranges.count; i++) {
		const struct plumb_settle_object_range *r = &all->ranges.items[i];
		const struct plumb_settle_object *object = object_at(f, r->object);
		struct plumb_settle_object_range *added;

		if (object->within != PLUMB_NONE || object->number == PLUMB_NONE ||
		    f->joined[r->object] != r->object)
			continue;
		added = plumb_vec_add(&f->segments);
		if (!added) {
			f->settler->no_memory = true;
			return;
		}
		*added = *r;
		added->object = object->number;
	}
	if (f->segments.count)
		qsort(f->segments.items, f->segments.count, sizeof *f->segments.items, by_segment);
}

/* The segment's allocation in which RANGE, of a tensor, lay. NULL: it is not known, or it reached
 * further. */
static const struct plumb_settle_object_range *
around(const struct finding *f, const struct plumb_settle_object_range *range, uint32_t segment)
{
	const struct plumb_settle_object_range *found = NULL, *r = f->segments.items;
	uint32_t first = plumb_search(i, f->segments.count, r[i].object < segment);

	for (uint32_t i = first; i < f->segments.count && r[i].object == segment; i++) {
		if (r[i].start > range->start ||
		    (r[i].end != PLUMB_UNKNOWN && r[i].end < range->start) ||
		    range->address < r[i].address ||
		    range->address - r[i].address > (uint64_t)r[i].bytes ||
		    (uint64_t)range->bytes > (uint64_t)r[i].bytes - (range->address - r[i].address))
			continue;
		if (found)
			return NULL;
		found = &r[i];
	}
	return found;
}

static void
add_part(struct finding *f, const struct plumb_settle_object_range *range)
{
	const struct plumb_settle_object *tensor = object_at(f, range->object);
	uint32_t segment = object_at(f, f->joined[tensor->within])->number;
	const struct plumb_settle_object_range *whole;
	struct part *part;

	if (segment == PLUMB_NONE)
		return;
	whole = around(f, range, segment);
	part = whole ? plumb_vec_add(&f->parts) : NULL;
	if (!part) {
		f->vague[segment] = 1;
		return;
	}
	part->segment = segment;
	part->tensor = tensor->number;
	part->start = (int64_t)(range->address - whole->address);
	part->end = part->start + range->bytes;
}

static int
by_place(const void *x, const void *y)
{
	const struct part *a = x, *b = y;

	ORDER(a, b, segment);
	ORDER(a, b, start);
	ORDER(a, b, end);
	ORDER(a, b, tensor);
	return 0;
}

static void
list_parts(struct finding *f)
{
	const struct plumb_settle_traffic *all = &f->settler->traffic;

	for (uint32_t i = 0; i < all->objects.count; i++)
		if (f->joined[i] == i && object_at(f, i)->number != PLUMB_NONE)
			f->missing[object_at(f, i)->number] += object_at(f, i)->row.allocations;
	for (uint32_t i = 0; i < all->ranges.count; i++) {
		const struct plumb_settle_object_range *r = &all->ranges.items[i];
		const struct plumb_settle_object *object = object_at(f, r->object);

		if (object->number == PLUMB_NONE || f->joined[r->object] != r->object)
			continue;
		f->missing[object->number] -= f->missing[object->number] > 0;
		if (object->within != PLUMB_NONE)
			add_part(f, r);
	}
	for (uint32_t i = 0; i < all->objects.count; i++) {
		const struct plumb_settle_object *object = object_at(f, i);
		uint32_t segment = object->within == PLUMB_NONE
		                           ? PLUMB_NONE
		                           : object_at(f, f->joined[object->within])->number;

		if (segment != PLUMB_NONE && object->number != PLUMB_NONE &&
		    f->missing[object->number])
			f->vague[segment] = 1;
	}
	if (f->parts.count)
		qsort(f->parts.items, f->parts.count, sizeof *f->parts.items, by_place);
	for (uint32_t i = 0; i < f->parts.count; i++) {
		struct part *part = &f->parts.items[i], *before = i ? part - 1 : NULL;

		part->reach =
			before && before->segment == part->segment && before->reach > part->end
				? before->reach
				: part->end;
	}
}

/* ---- what is certain ---- */

/* All that lay in BIN at any time, if it is one tensor at one place; PART is what the bins before
 * it had, or NULL. NULL: it is not certain. */
static const struct part *
part_of(const struct finding *f, const struct plumb_object_bin *bin, const struct part *part)
{
	const struct part *parts = f->parts.items;
	int64_t end = plumb_settle_sum(bin->offset, bin->width);
	bool any = false;
	/* The first that begins after the bin. */
	uint32_t low =
		plumb_search(i, f->parts.count,
	                     parts[i].segment < bin->object ||
	                             (parts[i].segment == bin->object && parts[i].start < end));

	for (; low && parts[low - 1].segment == bin->object && parts[low - 1].reach > bin->offset;
	     low--) {
		const struct part *here = &parts[low - 1];

		if (here->end <= bin->offset)
			continue;
		any = true;
		if (!part)
			part = here;
		if (here->tensor != part->tensor || here->start != part->start)
			return NULL;
	}
	return any ? part : NULL;
}

static int
by_deed(const void *x, const void *y)
{
	const struct plumb_object_bin *a = x, *b = y;

	ORDER(a, b, object);
	ORDER(a, b, device);
	ORDER(a, b, kind);
	ORDER(a, b, offset);
	return 0;
}

static uint32_t
same_deed(const struct plumb_object_bin *bins, uint32_t count)
{
	uint32_t n = 1;

	while (n < count && bins[n].object == bins->object && bins[n].device == bins->device &&
	       bins[n].kind == bins->kind)
		n++;
	return n;
}

static void
find_deeds(struct finding *f)
{
	struct plumb_object_bin *bins = f->settler->traffic.bins.items;
	uint32_t count = f->settler->traffic.bins.count, n;

	if (count)
		qsort(bins, count, sizeof *bins, by_deed);
	for (uint32_t i = 0; i < count; i += n) {
		struct deed deed = { bins[i].object, bins[i].device, group_of(bins[i].kind),
			             PLUMB_NONE, 0 };
		const struct part *part = NULL;
		struct deed *added;

		n = same_deed(&bins[i], count - i);
		if (deed.segment >= f->rows || f->vague[deed.segment])
			continue;
		for (uint32_t k = i; k < i + n && (k == i || part); k++) {
			part = part_of(f, &bins[k], part);
			deed.accesses += bins[k].accesses;
		}
		if (!part)
			continue;
		deed.tensor = part->tensor;
		added = plumb_vec_add(&f->deeds);
		if (added)
			*added = deed;
	}
}

/* The object that a kernel's access reached. */
static uint32_t *
reached(struct plumb_transfer_row *row)
{
	bool reads = group_of(row->kind) == PLUMB_ACCESS_LOAD;

	return reads ? &row->from_object : &row->to_object;
}

static struct deed *
deed_of(struct finding *f, uint32_t segment, uint32_t device, unsigned group)
{
	const struct deed *all = f->deeds.items;
	uint32_t low = plumb_search(i, f->deeds.count,
	                            all[i].segment != segment ? all[i].segment < segment
	                            : all[i].device != device ? all[i].device < device
	                                                      : all[i].group < group);
	struct deed *d = low < f->deeds.count ? &f->deeds.items[low] : NULL;

	return d && d->segment == segment && d->device == device && d->group == group ? d : NULL;
}

/* What the bins do not have of the rows' accesses may have been anywhere. */
static void
drop_uncertain(struct finding *f)
{
	struct plumb_settle_traffic *all = &f->settler->traffic;
	uint64_t *told = calloc((size_t)f->deeds.count + 1, sizeof *told);

	for (uint32_t i = 0; told && i < all->transfers.count; i++) {
		struct plumb_transfer_row *row = &all->transfers.items[i].row;
		struct deed *deed =
			row->kind < PLUMB_ACCESS_COPY
				? deed_of(f, *reached(row), row->initiator, group_of(row->kind))
				: NULL;

		if (deed)
			told[deed - f->deeds.items] += row->accesses;
	}
	for (uint32_t i = 0; i < f->deeds.count; i++)
		if (!told || told[i] != f->deeds.items[i].accesses)
			f->deeds.items[i].tensor = PLUMB_NONE;
	free(told);
}

static int64_t
start_of(const struct finding *f, const struct plumb_object_bin *bin)
{
	const struct part *part = part_of(f, bin, NULL);

	return part ? part->start : 0;
}

static void
move(struct finding *f)
{
	struct plumb_settle_traffic *all = &f->settler->traffic;

	for (uint32_t i = 0; i < all->transfers.count; i++) {
		struct plumb_transfer_row *row = &all->transfers.items[i].row;
		uint32_t *object = reached(row);
		const struct deed *deed =
			row->kind < PLUMB_ACCESS_COPY
				? deed_of(f, *object, row->initiator, group_of(row->kind))
				: NULL;

		if (deed && deed->tensor != PLUMB_NONE)
			*object = deed->tensor;
	}
	for (uint32_t i = 0; i < all->bins.count; i++) {
		struct plumb_object_bin *bin = &all->bins.items[i];
		const struct deed *deed = deed_of(f, bin->object, bin->device, group_of(bin->kind));
		int64_t start;

		if (!deed || deed->tensor == PLUMB_NONE)
			continue;
		start = start_of(f, bin);
		if (bin->offset < start) { /* the bin begins before the tensor */
			bin->width -= start - bin->offset;
			bin->offset = start;
		}
		bin->offset -= start;
		bin->object = deed->tensor;
	}
}

void
plumb_settle_tensors(struct plumb_settler *settler, const uint32_t *joined)
{
	struct finding f = { .settler = settler, .joined = joined };
	uint32_t tensors = 0;

	/* What was allocated while recording was paused has no range. */
	for (uint32_t i = 0; i < settler->runs.count; i++)
		if (settler->runs.items[i].was_off)
			return;
	for (uint32_t i = 0; i < settler->traffic.objects.count; i++) {
		const struct plumb_settle_object *object = &settler->traffic.objects.items[i];

		tensors += object->within != PLUMB_NONE;
		if (object->number != PLUMB_NONE && object->number >= f.rows)
			f.rows = object->number + 1;
	}
	if (!tensors || !settler->traffic.bins.count)
		return;
	f.vague = calloc(f.rows, sizeof *f.vague);
	f.missing = calloc(f.rows, sizeof *f.missing);
	if (f.vague && f.missing) {
		list_segments(&f);
		list_parts(&f);
		find_deeds(&f);
		drop_uncertain(&f);
		move(&f);
	} else if (f.rows) {
		settler->no_memory = true;
	}
	free(f.vague);
	free(f.missing);
	plumb_vec_free(&f.segments);
	plumb_vec_free(&f.parts);
	plumb_vec_free(&f.deeds);
}
