/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --traffic=full and sampled, from what the sanitizer tells to records in the region: programs of
 * tests/mock/traffic.c run under the real collector on the stand-in Compute Sanitizer. Each
 * scenario has a formula for what goes from which device to which.
 */
#include <elf.h>
#include <math.h>

#include "cuda_mock.h"

#define ANY UINT32_MAX
#define MEMORY UINT32_MAX /* the host's, or not known */

struct sum {
	uint64_t accesses, warps, bytes, rows;
	double variance;
};

/* All transfers of KIND from device FROM to device TO. */
static struct sum
transfers(const struct run *run, unsigned kind, uint32_t from, uint32_t to, uint32_t initiator)
{
	uint64_t cursor = 0;
	struct sum sum = { 0 };
	const struct plumb_record_transfer *r;
	while ((r = (const void *)next_of(run, &cursor, PLUMB_RECORD_TRANSFER))) {
		if (r->kind != kind || r->from != from || r->to != to ||
		    (initiator != ANY && r->initiator != initiator))
			continue;
		sum.accesses += r->accesses;
		sum.warps += r->warps;
		sum.bytes += r->bytes;
		sum.variance += r->variance;
		sum.rows++;
	}
	return sum;
}

static uint64_t
count_of(const struct run *run, enum plumb_record_type type)
{
	uint64_t cursor = 0, count = 0;
	while (next_of(run, &cursor, type))
		count++;
	return count;
}

static uint64_t
all_bytes(const struct run *run)
{
	uint64_t cursor = 0, sum = 0;
	const struct plumb_record_transfer *r;
	while ((r = (const void *)next_of(run, &cursor, PLUMB_RECORD_TRANSFER)))
		sum += r->bytes;
	return sum;
}

static void
run_with(struct run *run, const char *more, const char *what)
{
	char text[1024];
	snprintf(text, sizeof text, "PLUMB_GPU=2;%s", more);
	run_program(run, "traffic", text, what);
	if (run->status)
		fail_msg("%s: status %d", what, run->status);
	assert_true(run->recorded);
}

static void
run_full(struct run *run, const char *what)
{
	run_with(run, "PLUMB_TRAFFIC=full", what);
	assert_int_equal(ledger(run, PLUMB_SOURCE_ACCESS, PLUMB_FATE_TABLE_FULL), 0);
	assert_int_equal(ledger(run, PLUMB_SOURCE_TRAFFIC_LAUNCH, PLUMB_FATE_NOT_PATCHED), 0);
}

/* Oracles 1, 2 and 7: rings of stores, loads and atomics, with all widths. */
static void
test_ring(void **state)
{
	static const struct {
		unsigned flags, kind;
	} kinds[] = { { 2, PLUMB_ACCESS_STORE },
		      { 1, PLUMB_ACCESS_LOAD },
		      { 7, PLUMB_ACCESS_ATOMIC } };
	struct run run;
	char what[64];
	(void)state;
	for (unsigned k = 0; k < 3; k++)
		for (unsigned width = 1; width <= 16; width *= 4) {
			snprintf(what, sizeof what, "%s 3 1000 %u %u", k ? "late" : "ring", width,
			         kinds[k].flags);
			run_full(&run, what);
			bool load = kinds[k].kind == PLUMB_ACCESS_LOAD;
			for (uint32_t i = 0; i < 3; i++) {
				uint32_t next = (i + 1) % 3;
				struct sum sum = transfers(&run, kinds[k].kind, load ? next : i,
				                           load ? i : next, i);
				assert_int_equal(sum.bytes, 1000 * width);
				assert_int_equal(sum.accesses, 1000);
				assert_int_equal(sum.warps, 32); /* the last one is not full */
				assert_int_equal(sum.rows, 1);   /* one line */
			}
			assert_int_equal(all_bytes(&run), 3 * 1000 * width);
			assert_int_equal(count_of(&run, PLUMB_RECORD_OBJECT), 3);
			finish(&run);
		}
}

/* What a row says beside its numbers: instruction, code, object, context and device. */
static void
test_row(void **state)
{
	struct run run;
	uint64_t cursor = 0;
	char text[512];
	(void)state;
	run_full(&run, "ring 2 100 8 2");
	const struct plumb_record_transfer *r =
		(const void *)next_of(&run, &cursor, PLUMB_RECORD_TRANSFER);
	assert_non_null(r);
	assert_true(is_text(&run, r->function, "kernel1"));
	assert_int_equal(r->offset, 0x20);
	assert_int_equal(r->width, 8);
	assert_int_equal(r->route, PLUMB_ROUTE_PEER);
	assert_true(r->module != 0);
	assert_true(r->variance == 0);
	const struct plumb_record_object *object =
		plumb_region_get(&run.region, r->to_object, PLUMB_RECORD_OBJECT, sizeof *object);
	assert_non_null(object);
	assert_int_equal(object->ordinal, r->to);
	assert_int_equal(object->kind, PLUMB_OBJECT_DEVICE);
	/* 800 bytes of 1 MiB were reached by the other device, in granules of 16. */
	assert_int_equal(object->touched, 800);
	assert_int_equal(object->touchable, 1 << 20);
	assert_int_equal(r->from_object, 0);
	const struct plumb_record_node *node =
		plumb_region_get(&run.region, r->node, PLUMB_RECORD_NODE, sizeof *node);
	assert_int_equal(node->kind, PLUMB_FRAME_KERNEL);
	assert_true(is_text(&run, node->name, "kernel1"));
	assert_int_equal(API("cuLaunchKernel", GPU_LAUNCHES).sum, 2);
	/* Both devices are described, and that no times are known is said. */
	assert_int_equal(count_of(&run, PLUMB_RECORD_DEVICE), 2);
	assert_true(environment(&run, "gpu.times.gap", text, sizeof text));
	assert_non_null(strstr(text, "not recorded"));
	/* Bins: by bytes from the object's start. */
	uint64_t accesses = 0;
	const struct plumb_record_object_bin *bin;
	cursor = 0;
	while ((bin = (const void *)next_of(&run, &cursor, PLUMB_RECORD_OBJECT_BIN))) {
		assert_int_equal(bin->kind, PLUMB_ACCESS_STORE);
		assert_true(bin->offset < 1024);
		accesses += bin->accesses;
	}
	assert_int_equal(accesses, 200);
	assert_int_equal(LEDGER(TRAFFIC_LAUNCH, RECEIVED), 2);
	assert_int_equal(LEDGER(TRAFFIC_LAUNCH, ATTRIBUTED), 2);
	assert_int_equal(LEDGER(ACCESS, RECEIVED), 200);
	assert_int_equal(LEDGER(ACCESS, ATTRIBUTED), 200);
	finish(&run);
}

/* Oracle 3: lanes of one warp reach several devices, the own one among them. */
static void
test_mixed(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "mixed 4 1024");
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(transfers(&run, PLUMB_ACCESS_STORE, i, k, i).bytes,
			                 i == k ? 0 : 1024 * 4 / 4);
	finish(&run);
}

/* Oracle 4: with two devices, both neighbours are the same one. */
static void
test_halo(void **state)
{
	struct run run;
	(void)state;
	for (uint32_t n = 2; n <= 3; n++) {
		run_full(&run, n == 2 ? "halo 2 10 514" : "halo 3 10 514");
		for (uint32_t i = 0; i < n; i++) {
			uint64_t each = 10 * 512 * 4;
			struct sum sum = transfers(&run, PLUMB_ACCESS_STORE, i, (i + 1) % n, i);
			assert_int_equal(sum.bytes, n == 2 ? 2 * each : each);
			assert_true(sum.rows >= (n == 2 ? 2 : 1)); /* two lines */
		}
		finish(&run);
	}
}

/* Oracle 5. */
static void
test_transpose(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "transpose 4 131072");
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(transfers(&run, PLUMB_ACCESS_STORE, i, k, i).bytes,
			                 i == k ? 0 : 131072 / 16);
	finish(&run);
}

/* Oracle 6: the array on the wrong device costs 8 bytes a look, and is found as an object. */
static void
test_pointers(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "pointers 4 77");
	for (uint32_t i = 0; i < 4; i++) {
		struct sum loads = transfers(&run, PLUMB_ACCESS_LOAD, 3, i, i);
		assert_int_equal(loads.bytes, i == 3 ? 0 : 8 * 77);
		assert_int_equal(loads.warps, i == 3 ? 0 : 77);
		assert_int_equal(transfers(&run, PLUMB_ACCESS_STORE, i, (i + 1) % 4, i).bytes,
		                 4 * 77);
	}
	finish(&run);
}

/* Oracle 8: each period of an address has its own owner, though nobody waited in between. */
static void
test_reuse(void **state)
{
	struct run run;
	(void)state;
	static const char *const programs[] = { "reuse 3", "mapped 3" };
	for (int program = 0; program < 2; program++) {
		run_full(&run, programs[program]);
		for (uint32_t owner = 0; owner < 3; owner++)
			for (uint32_t i = 0; i < 3; i++)
				assert_int_equal(
					transfers(&run, PLUMB_ACCESS_STORE, i, owner, i).bytes,
					i == owner ? 0 : 4 * 64 * (owner + 1));
		finish(&run);
	}
}

/* Oracle 11: bulk copies count once for a warp, and have blocks of 16 bytes. */
static void
test_copies(void **state)
{
	struct run run;
	char text[256];
	(void)state;
	run_full(&run, "copies 2 50");
	assert_int_equal(transfers(&run, PLUMB_ACCESS_ASYNC_COPY, 1, 0, 0).bytes, 50 * 4);
	struct sum bulk = transfers(&run, PLUMB_ACCESS_BULK_LOAD, 1, 0, 0);
	assert_int_equal(bulk.bytes, 50 * 64);
	assert_int_equal(bulk.accesses, 50);
	assert_int_equal(transfers(&run, PLUMB_ACCESS_BULK_STORE, 0, 1, 0).bytes, 50 * 64);
	assert_int_equal(transfers(&run, PLUMB_ACCESS_BULK_REDUCTION, 0, 1, 0).bytes, 50 * 64);
	finish(&run);
	/* A library that has no patches for some of them: that is said. */
	run_with(&run, "PLUMB_TRAFFIC=full;SAN_OLD=1", "copies 2 50");
	assert_int_equal(transfers(&run, PLUMB_ACCESS_BULK_LOAD, 1, 0, 0).bytes, 50 * 64);
	assert_int_equal(transfers(&run, PLUMB_ACCESS_BULK_STORE, 0, 1, 0).bytes, 0);
	assert_true(environment(&run, "traffic.bulk.gap", text, sizeof text));
	finish(&run);
}

/* Kernels that wait for each other. The stand-in ends the process if plumb waits for one. */
static void
test_spin(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "spin 4");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(transfers(&run, PLUMB_ACCESS_STORE, i, (i + 1) % 4, i).bytes,
		                 6 * 32 * 4);
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=sampled:0.5", "spin 4");
	finish(&run);
}

/* Oracle 15. */
static void
test_replays(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "replays 2 320 7");
	for (uint32_t i = 0; i < 2; i++) {
		struct sum sum = transfers(&run, PLUMB_ACCESS_STORE, i, 1 - i, i);
		assert_int_equal(sum.bytes, 7 * 320 * 4);
		assert_int_equal(sum.warps, 7 * 10);
	}
	assert_int_equal(API("cuGraphLaunch", GPU_REPLAYS).sum, 14);
	finish(&run);
}

/* Oracle 10: what the host copies. And what a kernel writes into the host's memory. */
static void
test_host(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "host 2");
	struct sum peers = transfers(&run, PLUMB_ACCESS_COPY, 0, 1, 0);
	assert_int_equal(peers.bytes, 12345 + 100 + 200 + 7000);
	assert_int_equal(peers.accesses, 4);
	assert_int_equal(transfers(&run, PLUMB_ACCESS_COPY, MEMORY, 0, 0).bytes, 4096);
	assert_int_equal(transfers(&run, PLUMB_ACCESS_COPY, 1, MEMORY, 1).bytes, 128);
	assert_int_equal(transfers(&run, PLUMB_ACCESS_STORE, 0, MEMORY, 0).bytes, 8 * 64);
	finish(&run);
}

/* Oracle 12, one side: memory of another process has its owner and its key. */
static void
test_import(void **state)
{
	struct run run;
	uint64_t cursor = 0, keys = 0;
	(void)state;
	run_full(&run, "import 2");
	assert_int_equal(transfers(&run, PLUMB_ACCESS_LOAD, 1, 0, 0).bytes, 1600);
	const struct plumb_record_transfer *r =
		(const void *)next_of(&run, &cursor, PLUMB_RECORD_TRANSFER);
	assert_int_equal(r->route, PLUMB_ROUTE_IPC);
	const struct plumb_record_object_range *range;
	cursor = 0;
	while ((range = (const void *)next_of(&run, &cursor, PLUMB_RECORD_OBJECT_RANGE)))
		keys += range->key != 0;
	assert_int_equal(keys, 2);
	finish(&run);
}

static void
test_unload(void **state)
{
	struct run run;
	uint64_t cursor = 0;
	unsigned old = 0, new = 0;
	(void)state;
	run_full(&run, "unload 2");
	const struct plumb_record_transfer *r;
	while ((r = (const void *)next_of(&run, &cursor, PLUMB_RECORD_TRANSFER))) {
		old += is_text(&run, r->function, "kernel1") && r->bytes == 128;
		new += is_text(&run, r->function, "other2") && r->bytes == 256;
	}
	assert_int_equal(old, 1);
	assert_int_equal(new, 1);
	finish(&run);
}

static void
test_unknown(void **state)
{
	struct run run;
	(void)state;
	run_full(&run, "unknown 2");
	assert_int_equal(all_bytes(&run), 0);
	assert_int_equal(LEDGER(ACCESS, NO_ALLOCATION), 32);
	finish(&run);
}

static void
test_choice(void **state)
{
	struct run run;
	(void)state;
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_KERNELS=l2$", "ring 2 100 4 2");
	assert_int_equal(all_bytes(&run), 0);
	assert_int_equal(LEDGER(TRAFFIC_LAUNCH, NOT_CHOSEN), 2);
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_KERNELS=l1$", "ring 2 100 4 2");
	assert_int_equal(all_bytes(&run), 800);
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_OBJECTS=weights", "ring 2 100 4 2");
	assert_int_equal(all_bytes(&run), 0);
	assert_int_equal(LEDGER(ACCESS, NOT_CHOSEN), 200);
	finish(&run);
}

/* With --traffic-own, a device's own accesses are rows too, and parts of its objects. */
static void
test_own(void **state)
{
	struct run run;
	uint64_t cursor = 0, bins = 0;
	const struct plumb_record_object_bin *bin;
	(void)state;
	run_full(&run, "ghost 2 1000 10");
	assert_int_equal(transfers(&run, PLUMB_ACCESS_LOAD, 0, 0, 0).accesses, 0);
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_OWN=1", "ghost 2 1000 10");
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(transfers(&run, PLUMB_ACCESS_LOAD, 1 - i, i, i).accesses, 10000);
		assert_int_equal(transfers(&run, PLUMB_ACCESS_STORE, i, i, i).accesses, 10000);
		assert_int_equal(transfers(&run, PLUMB_ACCESS_LOAD, i, i, i).accesses, 100);
	}
	while ((bin = (const void *)next_of(&run, &cursor, PLUMB_RECORD_OBJECT_BIN)))
		bins += bin->accesses;
	assert_int_equal(bins, 2 * (10000 + 10000 + 100));
	assert_int_equal(ledger(&run, PLUMB_SOURCE_ACCESS, PLUMB_FATE_TABLE_FULL), 0);
	finish(&run);
	/* Without any peer, too: copies may fill what kernels read. */
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_OWN=1", "ring 1 100 4 1");
	assert_int_equal(transfers(&run, PLUMB_ACCESS_LOAD, 0, 0, 0).accesses, 200);
	finish(&run);
}

/* A module that reaches nothing is left alone for a while, which is counted; then it is looked at
 * again. */
static void
test_idle(void **state)
{
	struct run run;
	(void)state;
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_IDLE=16", "idle 2 90");
	assert_true(LEDGER(TRAFFIC_LAUNCH, REACHED_NOTHING) >= 64);
	assert_int_equal(
		LEDGER(TRAFFIC_LAUNCH, REACHED_NOTHING) + LEDGER(TRAFFIC_LAUNCH, ATTRIBUTED), 90);
	assert_int_equal(all_bytes(&run), 128); /* of the last launch */
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_TRAFFIC_IDLE=0", "idle 2 90");
	assert_int_equal(LEDGER(TRAFFIC_LAUNCH, ATTRIBUTED), 90);
	finish(&run);
}

/* Launches of unequal size: over 100 seeds the mean is the truth, and the stated error is right. */
static void
test_sampled(void **state)
{
	const double truth = 4000.0 / 8 * 255 * 32 * 4;
	double sum = 0, squares = 0, stated = 0;
	unsigned far = 0;
	struct run run;
	char more[128];
	(void)state;
	for (int seed = 1; seed <= 100; seed++) {
		snprintf(more, sizeof more, "PLUMB_TRAFFIC=sampled:0.1;PLUMB_TRAFFIC_SEED=%d",
		         seed);
		run_with(&run, more, "unequal 2 4000");
		struct sum told = transfers(&run, PLUMB_ACCESS_STORE, 0, 1, 0);
		double error = (double)told.bytes - truth;
		sum += error;
		squares += error * error;
		stated += told.variance;
		far += fabs(error) > 3 * sqrt(told.variance);
		assert_int_equal(LEDGER(TRAFFIC_LAUNCH, ATTRIBUTED) +
		                         LEDGER(TRAFFIC_LAUNCH, NOT_DRAWN),
		                 4000);
		finish(&run);
	}
	/* Within three standard errors of the mean of 100. */
	assert_true(fabs(sum / 100) < 3 * sqrt(stated / 100) / 10);
	/* The stated variance and that of the errors: 100 of them have a spread of a seventh. */
	assert_true(squares / stated > 0.6 && squares / stated < 1.6);
	/* 0.3 of 100 are expected: of the largest launches, 50 are drawn. */
	assert_true(far <= 2);
}

/* A program that never waits draws more units than there are banks: none is lost, the mean is the
 * truth, and the stated error is at least the real one. */
static void
test_sampled_without_waiting(void **state)
{
	const double truth = 6000.0 / 8 * 255 * 32 * 4;
	double sum = 0, squares = 0, stated = 0;
	struct run run;
	char more[128];
	(void)state;
	for (int seed = 1; seed <= 30; seed++) {
		snprintf(more, sizeof more, "PLUMB_TRAFFIC=sampled:0.1;PLUMB_TRAFFIC_SEED=%d",
		         seed);
		run_with(&run, more, "unequal 2 6000 6000");
		struct sum told = transfers(&run, PLUMB_ACCESS_STORE, 0, 1, 0);
		double error = (double)told.bytes - truth;
		sum += error;
		squares += error * error;
		stated += told.variance;
		assert_int_equal(LEDGER(TRAFFIC_LAUNCH, TABLE_FULL), 0);
		assert_true(LEDGER(TRAFFIC_LAUNCH, ATTRIBUTED) > 300);
		finish(&run);
	}
	assert_true(fabs(sum / 30) < 3 * sqrt(squares / 30) / sqrt(30));
	assert_true(stated > 0.6 * squares);
}

/* The same seed draws the same; a rate of 1 is full. */
static void
test_seed(void **state)
{
	struct run run;
	uint64_t bytes[3];
	(void)state;
	for (int i = 0; i < 3; i++) {
		run_with(&run,
		         i < 2 ? "PLUMB_TRAFFIC=sampled:0.3;PLUMB_TRAFFIC_SEED=5"
		               : "PLUMB_TRAFFIC=sampled:1",
		         "unequal 2 80");
		bytes[i] = all_bytes(&run);
		finish(&run);
	}
	assert_int_equal(bytes[0], bytes[1]);
	assert_int_equal(bytes[2], 10 * 255 * 32 * 4);
}

/* What makes it impossible is said in one line. */
static void
test_refused(void **state)
{
	struct run run;
	char text[1024];
	(void)state;
	run_with(&run, "PLUMB_TRAFFIC=full;SAN_REFUSE=2", "ring 2 100 4 2");
	assert_true(environment(&run, "gpu.sanitizer.off", text, sizeof text));
	assert_non_null(strstr(text, "Device not supported"));
	assert_non_null(strstr(text, "--traffic=calls"));
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=full;PLUMB_SANITIZER=/nothing/here.so", "ring 2 100 4 2");
	assert_true(environment(&run, "gpu.sanitizer.off", text, sizeof text));
	assert_non_null(strstr(text, "/nothing/here.so"));
	finish(&run);
	run_with(&run, "PLUMB_TRAFFIC=full;SAN_NO_PATCH=1", "ring 2 100 4 2");
	assert_true(environment(&run, "traffic.modules.gap", text, sizeof text));
	assert_int_equal(LEDGER(TRAFFIC_LAUNCH, NOT_PATCHED), 2);
	finish(&run);
}

/* Copies by tensor maps are counted in the code, because no patch sees them. */
static void
test_tensor(void **state)
{
	static const uint64_t code[] = { 0x04080075b4, 0, 0x04080073b5, 0,    0x04080073b6, 0,
		                         0x06080075b8, 0, 0x040c00798d, 0x1b4 };
	_Alignas(8) char image[1024] = { 0 };
	Elf64_Ehdr *head = (void *)image;
	Elf64_Shdr *sections = (void *)(image + 64);
	struct run run;
	char path[] = "/tmp/plumb-image-XXXXXX", more[128], text[256];
	(void)state;
	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_shentsize = sizeof *sections;
	head->e_shoff = 64;
	head->e_shnum = 2;
	sections[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
		                    .sh_flags = SHF_EXECINSTR,
		                    .sh_offset = 256,
		                    .sh_size = sizeof code };
	memcpy(image + 256, code, sizeof code);
	int file = mkstemp(path);
	assert_true(write(file, image, sizeof image) == sizeof image);
	close(file);
	snprintf(more, sizeof more, "PLUMB_TRAFFIC=full;SAN_IMAGE=%s", path);
	run_with(&run, more, "ring 2 100 4 2");
	unlink(path);
	assert_true(environment(&run, "traffic.tensor.gap", text, sizeof text));
	assert_memory_equal(text, "6 instructions", 14); /* of two modules */
	assert_int_equal(all_bytes(&run), 800);
	finish(&run);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_halo),
		cmocka_unit_test(test_transpose),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_spin),
		cmocka_unit_test(test_replays),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_import),
		cmocka_unit_test(test_unload),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_sampled_without_waiting),
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_tensor),
	};
	ssize_t length = readlink("/proc/self/exe", build, sizeof build - 1);
	if (length <= 0)
		return 1;
	build[length] = '\0';
	for (int i = 0; i < 2; i++) /* BUILD/unit/test_traffic_kernels */
		*strrchr(build, '/') = '\0';
	release = "13.0";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
