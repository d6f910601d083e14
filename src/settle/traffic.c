/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects and transfers. A record names objects and devices by numbers of its region. So a region
 * is read once more at its end, when its devices are known. At the very end, memory that a process
 * imported becomes the object of the process that exported it, by the key of the handle; records
 * that agree in all but their numbers become one row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "settle/settle_private.h"

static void
damaged(struct plumb_settle_region *region, const char *what)
{
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, what, 1);
}

/* ---- one region ---- */

static uint32_t
device_of(const uint32_t *ordinals, uint32_t ordinal)
{
	return ordinal < PLUMB_SETTLE_ORDINALS ? ordinals[ordinal] : PLUMB_NONE;
}

static uint32_t
context_of(struct plumb_settle_region *region, plumb_id node)
{
	return node ? plumb_settle_node(region, node) : PLUMB_NONE;
}

/* Bytes that an access met; PLUMB_OBJECT_UNTOUCHED is above INT64_MAX. */
static int64_t
touched_number(const _Atomic uint64_t *number)
{
	return plumb_settle_number(atomic_load_explicit(number, memory_order_relaxed));
}

/* The index of the object that is the record ID; PLUMB_NONE: it is none. INNER: it may be within
 * another one. */
static uint32_t
object_of(struct plumb_settle_region *region, const uint32_t *ordinals, plumb_id id, bool inner)
{
	struct plumb_settle_traffic *all = &region->settler->traffic;
	const struct plumb_record_object *record =
		id ? plumb_region_get(region->reader, id, PLUMB_RECORD_OBJECT, sizeof *record)
		   : NULL;
	struct plumb_settle_object *added;
	uint32_t within = PLUMB_NONE, context;

	if (!record || region->known[id] == PLUMB_SETTLE_NOTHING)
		return PLUMB_NONE;
	if (region->known[id])
		return region->known[id] - 1;
	uint64_t bytes = atomic_load_explicit(&record->bytes, memory_order_relaxed);
	uint64_t most = atomic_load_explicit(&record->most, memory_order_relaxed);
	uint64_t allocations = atomic_load_explicit(&record->allocations, memory_order_relaxed);
	if (!record->kind || record->kind >= PLUMB_OBJECT_KIND_COUNT || bytes > INT64_MAX ||
	    most > INT64_MAX || allocations > INT64_MAX || (record->within && !inner)) {
		damaged(region, "objects");
		region->known[id] = PLUMB_SETTLE_NOTHING;
		return PLUMB_NONE;
	}
	if (record->within)
		within = object_of(region, ordinals, record->within, false);
	context = context_of(region, record->node);
	added = plumb_vec_add(&all->objects);
	if (!added) {
		region->settler->no_memory = true;
		return PLUMB_NONE;
	}
	*added = (struct plumb_settle_object){
		.row = {
			.context = context,
			.process = region->process,
			.device = device_of(ordinals, record->ordinal),
			.kind = record->kind,
			.name = plumb_settle_string(region, record->name),
			.within = PLUMB_NONE,
			.allocations = allocations,
			.bytes = (int64_t)bytes,
			.most = (int64_t)most,
			.touched_bytes = touched_number(&record->touched),
			.touchable_bytes = touched_number(&record->touchable),
		},
		.within = within,
		.number = PLUMB_NONE,
	};
	region->known[id] = all->objects.count;
	return all->objects.count - 1;
}

uint32_t
plumb_settle_object(struct plumb_settle_region *region, const uint32_t *ordinals, plumb_id id)
{
	return object_of(region, ordinals, id, true);
}

static void
take_range(struct plumb_settle_region *region, const uint32_t *ordinals,
           const struct plumb_record_object_range *record)
{
	struct plumb_settle_traffic *all = &region->settler->traffic;
	uint32_t object = object_of(region, ordinals, record->object, true);
	uint64_t end = atomic_load_explicit(&record->end, memory_order_relaxed);
	struct plumb_settle_object_range range = {
		.object = object,
		.address = record->address,
		.bytes = plumb_settle_number(record->bytes),
		.start = plumb_settle_number(record->start),
		.end = end ? plumb_settle_number(end) : PLUMB_UNKNOWN,
		.key = record->key,
	};
	struct plumb_settle_object_range *added;

	if (object == PLUMB_NONE || range.bytes == PLUMB_UNKNOWN || range.start == PLUMB_UNKNOWN ||
	    (range.end != PLUMB_UNKNOWN && range.end < range.start)) {
		damaged(region, "allocations of objects");
		return;
	}
	added = plumb_vec_add(&all->ranges);
	if (!added) {
		region->settler->no_memory = true;
		return;
	}
	*added = range;
}

static void
take_bin(struct plumb_settle_region *region, const uint32_t *ordinals,
         const struct plumb_record_object_bin *record)
{
	struct plumb_settle_traffic *all = &region->settler->traffic;
	struct plumb_object_bin bin = {
		.object = object_of(region, ordinals, record->object, true),
		.device = device_of(ordinals, record->ordinal),
		.kind = record->kind,
		.offset = plumb_settle_number(record->offset),
		.width = plumb_settle_number(record->width),
		.accesses = atomic_load_explicit(&record->accesses, memory_order_relaxed),
	};
	struct plumb_object_bin *added;

	if (!bin.accesses)
		return;
	if (bin.object == PLUMB_NONE || !bin.kind || bin.kind >= PLUMB_ACCESS_KIND_COUNT ||
	    bin.offset == PLUMB_UNKNOWN || bin.width == PLUMB_UNKNOWN || bin.accesses > INT64_MAX) {
		damaged(region, "accesses to objects");
		return;
	}
	added = plumb_vec_add(&all->bins);
	if (added)
		*added = bin;
	else
		region->settler->no_memory = true;
}

static bool
transfer_is_sound(const struct plumb_record_transfer *record)
{
	return record->kind && record->kind < PLUMB_ACCESS_KIND_COUNT && record->route &&
	       record->route < PLUMB_ROUTE_COUNT && record->offset <= INT64_MAX &&
	       atomic_load_explicit(&record->accesses, memory_order_relaxed) <= INT64_MAX &&
	       atomic_load_explicit(&record->bytes, memory_order_relaxed) <= INT64_MAX &&
	       atomic_load_explicit(&record->warps, memory_order_relaxed) <= INT64_MAX &&
	       isfinite(record->variance) && record->variance >= 0;
}

static void
take_transfer(struct plumb_settle_region *region, const uint32_t *ordinals,
              const struct plumb_record_transfer *record)
{
	struct plumb_settle_transfer *added;
	bool by_kernel = record->kind < PLUMB_ACCESS_COPY;
	uint64_t accesses = atomic_load_explicit(&record->accesses, memory_order_relaxed);

	if (!accesses)
		return;
	if (!transfer_is_sound(record)) {
		damaged(region, "transfers");
		return;
	}
	struct plumb_settle_transfer transfer = {
		.row = {
			.context = context_of(region, record->node),
			.process = region->process,
			.kind = record->kind,
			.route = record->route,
			.initiator = device_of(ordinals, record->initiator),
			/* PLUMB_NONE + 1 is 0. */
			.ends = { device_of(ordinals, record->from) + 1,
			          device_of(ordinals, record->to) + 1 },
			.from_object = object_of(region, ordinals, record->from_object, true),
			.to_object = object_of(region, ordinals, record->to_object, true),
			.function = PLUMB_NONE,
			.offset = PLUMB_UNKNOWN,
			.width = record->width ? record->width : PLUMB_UNKNOWN,
			.accesses = accesses,
			.warps = by_kernel ? (int64_t)atomic_load_explicit(&record->warps,
			                                                   memory_order_relaxed)
			                   : PLUMB_UNKNOWN,
			.bytes = (int64_t)atomic_load_explicit(&record->bytes,
			                                       memory_order_relaxed),
			.error_bytes = record->variance,
		},
		.module = record->module,
		.name = record->module ? plumb_settle_string(region, record->function)
				       : PLUMB_NONE,
	};
	if (transfer.name == PLUMB_NONE)
		transfer.module = 0;
	else
		transfer.row.offset = (int64_t)record->offset;
	added = plumb_vec_add(&region->settler->traffic.transfers);
	if (added)
		*added = transfer;
	else
		region->settler->no_memory = true;
}

void
plumb_settle_region_traffic(struct plumb_settle_region *region)
{
	uint32_t ordinals[PLUMB_SETTLE_ORDINALS];
	const struct plumb_record *record;
	uint64_t cursor = 0;

	plumb_settle_ordinals(region, ordinals);
	while ((record = plumb_region_next(region->reader, &cursor))) {
		const void *it = record;
		if (record->type == PLUMB_RECORD_OBJECT &&
		    record->length >= sizeof(struct plumb_record_object))
			object_of(region, ordinals, plumb_region_reader_id(region->reader, record),
			          true);
		else if (record->type == PLUMB_RECORD_OBJECT_RANGE &&
		         record->length >= sizeof(struct plumb_record_object_range))
			take_range(region, ordinals, it);
		else if (record->type == PLUMB_RECORD_OBJECT_BIN &&
		         record->length >= sizeof(struct plumb_record_object_bin))
			take_bin(region, ordinals, it);
		else if (record->type == PLUMB_RECORD_TRANSFER &&
		         record->length >= sizeof(struct plumb_record_transfer))
			take_transfer(region, ordinals, it);
		else if (record->type == PLUMB_RECORD_COMMUNICATION &&
		         record->length >= sizeof(struct plumb_record_communication))
			plumb_settle_operations_told(region, ordinals, it);
	}
}

/* ---- memory of other processes ---- */

#define ORDER(a, b, field)                                                                         \
	if ((a)->field != (b)->field)                                                              \
	return (a)->field < (b)->field ? -1 : 1

static int
by_key(const void *x, const void *y)
{
	const struct plumb_settle_object_range *a = x, *b = y;

	ORDER(a, b, key);
	if (a->key == PLUMB_KEY_OF_FILE)
		ORDER(a, b, bytes);
	ORDER(a, b, start);
	ORDER(a, b, object);
	return 0;
}

/* Can memory R of another process be what RANGE imported by a file, of which no more is known? */
static bool
may_be(const struct plumb_settle_object *objects, const struct plumb_settle_object_range *r,
       const struct plumb_settle_object_range *range)
{
	const struct plumb_object *one = &objects[r->object].row,
				  *other = &objects[range->object].row;

	return one->device != PLUMB_NONE && one->device == other->device &&
	       r->bytes == range->bytes && (r->end == PLUMB_UNKNOWN || r->end >= range->start);
}

/* The object of the other process that exported what RANGE, which was imported, is: that which
 * lived when it was imported, of several with its key. RANGES are COUNT with that key. Of those
 * that only may be it, there must be one. */
static uint32_t
exporter_of(const struct plumb_settler *settler, const struct plumb_settle_object_range *ranges,
            uint32_t count, const struct plumb_settle_object_range *range)
{
	const struct plumb_settle_object *objects = settler->traffic.objects.items;
	uint32_t found = PLUMB_NONE, lived = PLUMB_NONE;

	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_settle_object_range *r = &ranges[i];
		if (objects[r->object].row.kind == PLUMB_OBJECT_IMPORTED ||
		    objects[r->object].row.process == objects[range->object].row.process)
			continue;
		if (range->key == PLUMB_KEY_OF_FILE && !may_be(objects, r, range))
			continue;
		found = found == PLUMB_NONE || found == r->object ? r->object : UINT32_MAX - 1;
		if (r->start <= range->start && (r->end == PLUMB_UNKNOWN || r->end >= range->start))
			lived = r->object;
	}
	if (range->key == PLUMB_KEY_OF_FILE)
		lived = PLUMB_NONE;
	return lived != PLUMB_NONE ? lived : found == UINT32_MAX - 1 ? PLUMB_NONE : found;
}

/* JOINED[object]: what it becomes. */
static void
join_imports(struct plumb_settler *settler, uint32_t *joined)
{
	struct plumb_settle_traffic *all = &settler->traffic;
	struct plumb_settle_object_range *ranges = all->ranges.items;
	uint32_t count = all->ranges.count, end;
	bool *unsure = calloc((size_t)all->objects.count + 1, sizeof *unsure);

	if (!unsure) {
		settler->no_memory = true;
		return;
	}
	if (count)
		qsort(ranges, count, sizeof *ranges, by_key);
	for (uint32_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && ranges[end].key == ranges[i].key; end++)
			if (ranges[i].key == PLUMB_KEY_OF_FILE &&
			    ranges[end].bytes != ranges[i].bytes)
				break;
		for (uint32_t k = i; ranges[i].key && k < end; k++) {
			uint32_t object = ranges[k].object, exporter;
			if (all->objects.items[object].row.kind != PLUMB_OBJECT_IMPORTED)
				continue;
			exporter = exporter_of(settler, &ranges[i], end - i, &ranges[k]);
			/* All its memory is of that object, or nobody knows. */
			if (exporter == PLUMB_NONE ||
			    (joined[object] != object && joined[object] != exporter))
				unsure[object] |= ranges[i].key == PLUMB_KEY_OF_FILE;
			if (exporter != PLUMB_NONE)
				joined[object] = unsure[object] ? object : exporter;
			else if (unsure[object])
				joined[object] = object;
		}
	}
	free(unsure);
}

/* ---- rows of objects ---- */

static uint64_t
hash_of(const struct plumb_object *row)
{
	uint64_t hash = plumb_hash_mix(row->context, row->process);

	hash = plumb_hash_mix(hash, (uint64_t)row->device << 32 | row->kind);
	return plumb_hash_mix(hash, (uint64_t)row->name << 32 | row->within);
}

static bool
is_same(const struct plumb_object *a, const struct plumb_object *b)
{
	return a->context == b->context && a->process == b->process && a->device == b->device &&
	       a->kind == b->kind && a->name == b->name && a->within == b->within;
}

/* A + B of counts, which are not above INT64_MAX. */
static uint64_t
sum_of_counts(uint64_t a, uint64_t b)
{
	return a + b > INT64_MAX ? INT64_MAX : a + b;
}

/* A + B, of which either may be unknown. */
static int64_t
sum_of_known(int64_t a, int64_t b)
{
	return a == PLUMB_UNKNOWN ? b : b == PLUMB_UNKNOWN ? a : plumb_settle_sum(a, b);
}

static void
add_object(struct plumb_object *to, const struct plumb_object *more)
{
	to->allocations = sum_of_counts(to->allocations, more->allocations);
	to->bytes = plumb_settle_sum(to->bytes, more->bytes);
	to->most = PLUMB_UNKNOWN; /* of several records: see find_most */
	to->touched_bytes = sum_of_known(to->touched_bytes, more->touched_bytes);
	to->touchable_bytes = sum_of_known(to->touchable_bytes, more->touchable_bytes);
}

/* Puts together what is the same, of those that are within another one or not. ROWS get the
 * objects in the order of their numbers. */
typedef PLUMB_VEC(struct plumb_object) row_list;

static void
number_objects(struct plumb_settler *settler, const uint32_t *joined, bool inner, row_list *rows,
               struct plumb_map *map)
{
	struct plumb_settle_traffic *all = &settler->traffic;

	for (uint32_t i = 0; i < all->objects.count; i++) {
		struct plumb_settle_object *o = &all->objects.items[i];
		struct plumb_map_cursor at;
		struct plumb_object row = o->row;
		if ((o->within != PLUMB_NONE) != inner || joined[i] != i || !row.allocations)
			continue;
		if (inner)
			row.within = all->objects.items[joined[o->within]].number;
		uint64_t hash = hash_of(&row);
		uint32_t id = plumb_map_first(map, hash, &at);
		while (id != PLUMB_MAP_NONE && !is_same(&rows->items[id], &row))
			id = plumb_map_next(map, &at);
		o->number = id;
		if (id != PLUMB_MAP_NONE) {
			add_object(&rows->items[id], &row);
			continue;
		}
		o->number = rows->count;
		struct plumb_object *added = plumb_vec_add(rows);
		if (added)
			*added = row;
		if (!added || plumb_map_add(map, hash, o->number)) {
			settler->no_memory = true;
			return;
		}
	}
}

/* Bytes of an object that came, or went. */
struct change {
	uint32_t object; /* in rows */
	int64_t at, bytes;
};

static int
by_change(const void *x, const void *y)
{
	const struct change *a = x, *b = y;

	ORDER(a, b, object);
	ORDER(a, b, at);
	ORDER(a, b, bytes); /* what goes before what comes */
	return 0;
}

/* The most that was live at once of an object of several records, if all its allocations have a
 * range. COUNT changes, in order. */
static void
find_most(row_list *rows, const struct change *changes, uint32_t count)
{
	uint32_t end;

	for (uint32_t i = 0; i < count; i = end) {
		struct plumb_object *row = &rows->items[changes[i].object];
		int64_t live = 0, most = 0;
		uint64_t came = 0;
		for (end = i; end < count && changes[end].object == changes[i].object; end++) {
			came += changes[end].bytes > 0;
			if (__builtin_add_overflow(live, changes[end].bytes, &live))
				live = 0;
			most = live > most ? live : most;
		}
		if (came == row->allocations)
			row->most = most;
	}
}

static void
find_unknown_most(struct plumb_settler *settler, const uint32_t *joined, row_list *rows)
{
	const struct plumb_settle_traffic *all = &settler->traffic;
	PLUMB_VEC(struct change) changes = { 0 };

	for (uint32_t i = 0; i < all->ranges.count; i++) {
		const struct plumb_settle_object_range *r = &all->ranges.items[i];
		uint32_t object = all->objects.items[r->object].number;
		/* A mapping is not an allocation. */
		if (object == PLUMB_NONE || joined[r->object] != r->object || !r->bytes ||
		    rows->items[object].most != PLUMB_UNKNOWN ||
		    rows->items[object].kind == PLUMB_OBJECT_MAPPED ||
		    rows->items[object].kind == PLUMB_OBJECT_IMPORTED)
			continue;
		for (int gone = 0; gone < 1 + (r->end != PLUMB_UNKNOWN); gone++) {
			struct change *change = plumb_vec_add(&changes);
			if (change)
				*change = (struct change){ object, gone ? r->end : r->start,
					                   gone ? -r->bytes : r->bytes };
			else
				settler->no_memory = true;
		}
	}
	if (changes.count)
		qsort(changes.items, changes.count, sizeof *changes.items, by_change);
	find_most(rows, changes.items, changes.count);
	plumb_vec_free(&changes);
}

static void
add_objects(struct plumb_settler *settler, const uint32_t *joined)
{
	struct plumb_settle_traffic *all = &settler->traffic;
	struct plumb_map map = { 0 };
	row_list rows = { 0 };

	number_objects(settler, joined, false, &rows, &map);
	if (!settler->no_memory)
		number_objects(settler, joined, true, &rows, &map);
	if (!settler->no_memory)
		find_unknown_most(settler, joined, &rows);
	for (uint32_t i = 0; i < rows.count && !settler->no_memory; i++)
		plumb_builder_object(settler->builder, &rows.items[i]);
	for (uint32_t i = 0; i < all->objects.count; i++)
		all->objects.items[i].number = all->objects.items[joined[i]].number;
	settler->captured += rows.count;
	plumb_vec_free(&rows);
	plumb_map_free(&map);
}

static uint32_t
number_of(const struct plumb_settler *settler, uint32_t object)
{
	return object == PLUMB_NONE ? PLUMB_NONE : settler->traffic.objects.items[object].number;
}

static void
add_ranges(struct plumb_settler *settler, const uint32_t *joined)
{
	const struct plumb_settle_traffic *all = &settler->traffic;

	for (uint32_t i = 0; i < all->ranges.count; i++) {
		const struct plumb_settle_object_range *r = &all->ranges.items[i];
		struct plumb_object_range row = {
			.object = number_of(settler, r->object),
			.address = (int64_t)r->address,
			.bytes = r->bytes,
			.start_ns = r->start,
			.end_ns = r->end,
		};
		/* What was imported has its range in the process that exported it. */
		if (row.object != PLUMB_NONE && joined[r->object] == r->object)
			plumb_builder_object_range(settler->builder, &row);
	}
}

/* From here on bins and transfers name objects by their rows. */
static void
number_all(struct plumb_settler *settler)
{
	struct plumb_settle_traffic *all = &settler->traffic;

	for (uint32_t i = 0; i < all->bins.count; i++)
		all->bins.items[i].object = number_of(settler, all->bins.items[i].object);
	for (uint32_t i = 0; i < all->transfers.count; i++) {
		struct plumb_transfer_row *row = &all->transfers.items[i].row;

		row->from_object = number_of(settler, row->from_object);
		row->to_object = number_of(settler, row->to_object);
	}
}

/* ---- rows of accesses ---- */

static int
by_bin(const void *x, const void *y)
{
	const struct plumb_object_bin *a = x, *b = y;

	ORDER(a, b, object);
	ORDER(a, b, device);
	ORDER(a, b, kind);
	ORDER(a, b, offset);
	ORDER(a, b, width);
	return 0;
}

static void
add_bins(struct plumb_settler *settler)
{
	struct plumb_object_bin *bins = settler->traffic.bins.items;
	uint32_t count = settler->traffic.bins.count, end;

	if (count)
		qsort(bins, count, sizeof *bins, by_bin);
	for (uint32_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && !by_bin(&bins[i], &bins[end]); end++)
			bins[i].accesses = sum_of_counts(bins[i].accesses, bins[end].accesses);
		if (bins[i].object != PLUMB_NONE)
			plumb_builder_object_bin(settler->builder, &bins[i]);
	}
}

/* ---- rows of transfers ---- */

/* By function first, so that the code of each is read once. */
static int
by_transfer(const void *x, const void *y)
{
	const struct plumb_settle_transfer *s = x, *t = y;
	const struct plumb_transfer_row *a = &s->row, *b = &t->row;

	ORDER(s, t, module);
	ORDER(s, t, name);
	ORDER(a, b, context);
	ORDER(a, b, process);
	ORDER(a, b, kind);
	ORDER(a, b, route);
	ORDER(a, b, initiator);
	ORDER(a, b, ends.from);
	ORDER(a, b, ends.to);
	ORDER(a, b, from_object);
	ORDER(a, b, to_object);
	ORDER(a, b, offset);
	ORDER(a, b, width);
	return 0;
}

typedef PLUMB_VEC(struct plumb_settle_function) function_list;

static bool
begins_function(const struct plumb_settle_transfer *t, uint32_t i)
{
	return t[i].module && (!i || t[i].module != t[i - 1].module || t[i].name != t[i - 1].name);
}

/* The functions of the ordered transfers. */
static void
list_functions(struct plumb_settler *settler, function_list *functions)
{
	const struct plumb_settle_transfer *t = settler->traffic.transfers.items;

	for (uint32_t i = 0; i < settler->traffic.transfers.count; i++) {
		if (begins_function(t, i)) {
			struct plumb_settle_function *function = plumb_vec_add(functions);
			if (!function) {
				settler->no_memory = true;
				return;
			}
			plumb_settle_function_of(settler, t[i].module, t[i].name, t[i].row.process,
			                         function);
		}
		if (t[i].module)
			functions->items[functions->count - 1].count += t[i].row.accesses;
	}
	if (functions->count)
		plumb_settle_gpu_functions(settler, functions->items, functions->count);
}

static void
add_transfer(struct plumb_transfer_row *to, const struct plumb_transfer_row *more)
{
	to->accesses = sum_of_counts(to->accesses, more->accesses);
	to->warps = sum_of_known(to->warps, more->warps);
	to->bytes = plumb_settle_sum(to->bytes, more->bytes);
	to->error_bytes += more->error_bytes;
}

static void
add_transfers(struct plumb_settler *settler)
{
	struct plumb_settle_transfer *t = settler->traffic.transfers.items;
	uint32_t count = settler->traffic.transfers.count, end, function = 0;
	function_list functions = { 0 };

	if (!count)
		return;
	qsort(t, count, sizeof *t, by_transfer);
	list_functions(settler, &functions);
	for (uint32_t i = 0; i < count && !settler->no_memory; i = end) {
		function += begins_function(t, i);
		for (end = i + 1; end < count && !by_transfer(&t[i], &t[end]); end++)
			add_transfer(&t[i].row, &t[end].row);
		if (t[i].module)
			t[i].row.function = functions.items[function - 1].row;
		/* Of damaged records it may be too large a number. */
		t[i].row.error_bytes =
			isfinite(t[i].row.error_bytes) ? sqrt(t[i].row.error_bytes) : NAN;
		plumb_builder_transfer(settler->builder, &t[i].row);
	}
	settler->captured += count;
	for (uint32_t i = 0; i < functions.count; i++)
		plumb_vec_free(&functions.items[i].lines);
	plumb_vec_free(&functions);
}

void
plumb_settle_traffic(struct plumb_settler *settler)
{
	uint32_t count = settler->traffic.objects.count;
	uint32_t *joined = count ? malloc(count * sizeof *joined) : NULL;

	if (count && !joined) {
		settler->no_memory = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		joined[i] = i;
	join_imports(settler, joined);
	add_objects(settler, joined);
	add_ranges(settler, joined);
	number_all(settler);
	plumb_settle_tensors(settler, joined);
	free(joined);
	add_bins(settler);
	add_transfers(settler);
}

void
plumb_settle_traffic_free(struct plumb_settler *settler)
{
	plumb_vec_free(&settler->traffic.objects);
	plumb_vec_free(&settler->traffic.ranges);
	plumb_vec_free(&settler->traffic.bins);
	plumb_vec_free(&settler->traffic.transfers);
}
