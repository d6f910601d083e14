/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of kernels to a segment → the tensor in it, if that is certain. */
#include "settle_regions.h"

#define SEGMENT UINT64_C(0x10000000)

static struct plumb_record_object *
object(enum plumb_object_kind kind, plumb_id within, uint64_t allocations)
{
	struct plumb_record_object *o = RECORD(OBJECT, object);

	o->ordinal = 1;
	o->kind = kind;
	o->within = within;
	o->allocations = allocations;
	o->bytes = o->most = 4096;
	o->touched = o->touchable = PLUMB_OBJECT_UNTOUCHED;
	return o;
}

static void
range(plumb_id of, uint64_t address, uint64_t bytes, uint64_t start, uint64_t end_at)
{
	struct plumb_record_object_range *r = RECORD(OBJECT_RANGE, object_range);

	r->object = of;
	r->address = address;
	r->bytes = bytes;
	r->start = start * SECOND;
	r->end = end_at * SECOND;
}

static void
bin(plumb_id of, uint32_t ordinal, enum plumb_access_kind kind, uint64_t offset, uint64_t accesses)
{
	struct plumb_record_object_bin *b = RECORD(OBJECT_BIN, object_bin);

	b->object = of;
	b->ordinal = ordinal;
	b->kind = kind;
	b->offset = offset;
	b->width = 1024;
	b->accesses = accesses;
}

static void
accessed(plumb_id of, enum plumb_access_kind kind, uint64_t accesses)
{
	struct plumb_record_transfer *t = RECORD(TRANSFER, transfer);
	bool reads = kind == PLUMB_ACCESS_LOAD || kind == PLUMB_ACCESS_BULK_LOAD;

	t->kind = (uint16_t)kind;
	t->route = PLUMB_ROUTE_PEER;
	t->initiator = 0;
	t->from = reads ? 1 : 0;
	t->to = reads ? 0 : 1;
	*(reads ? &t->from_object : &t->to_object) = of;
	t->accesses = t->warps = accesses;
	t->bytes = accesses * 4;
	t->width = 4;
}

/* What a test changes. */
struct change {
	bool other_tensor;  /* lies in a bin with accesses, earlier */
	bool elsewhere;     /* the tensor's second allocation is at another place */
	bool no_tensor;     /* in one of the bins */
	bool more_accesses; /* than the bins have */
	bool lost_range;    /* of a tensor */
	bool overlong;      /* a tensor reaches further than the segment */
};

/* A segment of 16 KiB with a tensor of 6 KiB from 2 KiB on, that was allocated twice there, and
 * another one from 12 KiB on. Device 0 loads from the first, and stores to the other one. */
static void
settle_segment(struct change change)
{
	begin(0, "1");
	process(10, 0);
	device(0, 1);
	device(1, 2);
	plumb_id segment = plumb_region_id(&region, object(PLUMB_OBJECT_DEVICE, 0, 1));
	plumb_id tensor = plumb_region_id(
		&region, object(PLUMB_OBJECT_TENSOR, segment, change.lost_range ? 3 : 2));
	struct plumb_record_object *second = object(PLUMB_OBJECT_TENSOR, segment, 1);
	second->name = 0;
	second->ordinal = 0; /* so that it is another object */
	plumb_id other_tensor = plumb_region_id(&region, second);

	range(segment, SEGMENT, 16384, 101, 0);
	range(tensor, SEGMENT + 2048, 6144, 102, 103);
	range(tensor, SEGMENT + (change.elsewhere ? 3072 : 2048), 6144, 104, 0);
	range(other_tensor, SEGMENT + (change.other_tensor ? 1024 : 12288),
	      change.overlong ? 8192 : 4096, 101, 102);
	bin(segment, 0, PLUMB_ACCESS_LOAD, 2048, 10);
	bin(segment, 0, PLUMB_ACCESS_LOAD, change.no_tensor ? 9216 : 7168, 5);
	bin(segment, 0, PLUMB_ACCESS_STORE, 12288, 7);
	accessed(segment, PLUMB_ACCESS_LOAD, change.more_accesses ? 9 : 8);
	accessed(segment, PLUMB_ACCESS_BULK_LOAD, 7);
	accessed(segment, PLUMB_ACCESS_STORE, 7);
	end();
	settle(1);
}

static uint32_t
object_of(enum plumb_access_kind kind)
{
	for (uint32_t i = 0; i < profile.transfers_count; i++)
		if (profile.transfers[i].kind == kind)
			return kind == PLUMB_ACCESS_STORE ? profile.transfers[i].to_object
			                                  : profile.transfers[i].from_object;
	return PLUMB_NONE;
}

static bool
is_tensor(enum plumb_access_kind kind)
{
	uint32_t reached = object_of(kind);

	assert_true(reached < profile.objects_count);
	return profile.objects[reached].kind == PLUMB_OBJECT_TENSOR;
}

static void
one_tensor(void **state)
{
	uint64_t loads = 0;

	(void)state;
	settle_segment((struct change){ 0 });
	assert_int_equal(profile.transfers_count, 3);
	assert_true(is_tensor(PLUMB_ACCESS_LOAD) && is_tensor(PLUMB_ACCESS_BULK_LOAD) &&
	            is_tensor(PLUMB_ACCESS_STORE));
	assert_int_equal(object_of(PLUMB_ACCESS_LOAD), object_of(PLUMB_ACCESS_BULK_LOAD));
	assert_int_not_equal(object_of(PLUMB_ACCESS_LOAD), object_of(PLUMB_ACCESS_STORE));
	assert_int_equal(profile.object_bins_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct plumb_object_bin *b = &profile.object_bins[i];

		if (b->kind == PLUMB_ACCESS_STORE) {
			assert_int_equal(b->object, object_of(PLUMB_ACCESS_STORE));
			assert_int_equal(b->offset, 0);
			continue;
		}
		assert_int_equal(b->object, object_of(PLUMB_ACCESS_LOAD));
		assert_int_equal(b->offset, b->accesses == 10 ? 0 : 5120);
		loads += b->accesses;
	}
	assert_int_equal(loads, 15);
	done();
}

/* What is not certain stays the segment's, also its bins. */
static void
uncertain(void **state)
{
	static const struct change changes[] = {
		{ .other_tensor = true },  { .elsewhere = true },  { .no_tensor = true },
		{ .more_accesses = true }, { .lost_range = true }, { .overlong = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		settle_segment(changes[i]);
		assert_false(is_tensor(PLUMB_ACCESS_LOAD));
		assert_false(is_tensor(PLUMB_ACCESS_BULK_LOAD));
		/* Where it does not matter, the other one is as before. */
		if (i == 1 || i == 2 || i == 3)
			assert_true(is_tensor(PLUMB_ACCESS_STORE));
		for (uint32_t k = 0; k < profile.object_bins_count; k++)
			if (profile.object_bins[k].kind == PLUMB_ACCESS_LOAD)
				assert_int_equal(profile.object_bins[k].object,
				                 object_of(PLUMB_ACCESS_LOAD));
		done();
		unlink(paths[--path_count]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_tensor, setup, teardown),
		cmocka_unit_test_setup_teardown(uncertain, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
