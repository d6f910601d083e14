/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes: their contention for a device, collectives by kernel name, the control
 * file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/collective.h"
#include "region/control.h"
#include "settle/contention.h"

/* ---- contention ---- */

static void
expect(const struct plumb_use *uses, size_t count, int64_t busy, int64_t contended)
{
	struct plumb_use *copy = calloc(count + 1, sizeof *copy);
	struct plumb_contention result;

	if (count)
		memcpy(copy, uses, count * sizeof *copy);
	assert_true(plumb_contention_find(copy, count, &result));
	assert_int_equal(result.busy, busy);
	assert_int_equal(result.contended, contended);
	free(copy);
}
#define EXPECT(busy, contended, ...)                                                               \
	expect((const struct plumb_use[]){ __VA_ARGS__ },                                          \
	       sizeof((const struct plumb_use[]){ __VA_ARGS__ }) / sizeof(struct plumb_use), busy, \
	       contended)

static void
contention_is_between_processes(void **state)
{
	(void)state;
	expect(NULL, 0, 0, 0);
	EXPECT(10, 0, { 0, 10, 1 });
	/* Overlap within one process is none. */
	EXPECT(20, 0, { 0, 10, 1 }, { 5, 20, 1 }, { 6, 7, 1 });
	EXPECT(15, 5, { 0, 10, 1 }, { 5, 15, 2 });
	/* One inside the other, in any order; three at once count once. */
	EXPECT(100, 30, { 20, 50, 2 }, { 0, 100, 1 }, { 30, 40, 3 });
	/* What ends does not meet what begins at that moment. */
	EXPECT(20, 0, { 0, 10, 1 }, { 10, 20, 2 });
	EXPECT(20, 0, { 10, 20, 1 }, { 0, 10, 2 });
	/* Pieces of one process that touch are one. */
	EXPECT(20, 20, { 0, 10, 1 }, { 10, 20, 1 }, { 0, 20, 2 });
	/* Nothing takes nothing; times may be negative. */
	EXPECT(5, 5, { -10, -5, 1 }, { -10, -5, 2 }, { 7, 7, 1 }, { 9, 3, 2 });
}

/* ---- collectives ---- */

static void
kernels_are_named_by_their_collective(void **state)
{
	static const struct {
		const char *kernel, *collective;
	} cases[] = {
		{ "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		  "AllReduce" },
		{ "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		  "AllGather" },
		{ "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "ReduceScatter" },
		{ "ncclDevKernel_Reduce_Sum_f32_RING_LL", "Reduce" },
		{ "ncclDevKernel_Broadcast_RING_LL", "Broadcast" },
		{ "ncclDevKernel_SendRecv", "SendRecv" },
		{ "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
		  "AllReduce" },
		{ "_Z41ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork",
		  "SendRecv" },
		{ "ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "AllReduce" },
		{ "ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32(ncclSymDevArgs)", "AllReduce" },
		{ "ncclSymkDevKernel_ReduceScatter_LDMC_sum_f8e4m3", "ReduceScatter" },
		{ "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "Generic" },
		{ "ncclDevKernel_Generic", "Generic" },
		{ "_Z10ncclKernel8AllReduce", "Generic" },
		{ "_Z9ncclThingv", NULL },
		{ "_Z4ncclv", NULL },
		{ "_Z99999999999999999999ncclDevKernel_AllReduce", NULL },
		{ "_Z", NULL },
		{ "_ZN4nccl9AllReduceEv", NULL },
		{ "AllReduceKernel", NULL },
		{ "void at::native::reduce_kernel<512, 1>()", NULL },
		{ "ncc", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *found = plumb_collective_name(cases[i].kernel);
		if (cases[i].collective)
			assert_string_equal(found ? found : cases[i].kernel, cases[i].collective);
		else
			assert_null(found);
	}
}

/* ---- the control file ---- */

static void
recording_is_on_and_off(void **state)
{
	struct plumb_control control;

	(void)state;
	plumb_control_init(&control, true, 1000);
	assert_false(plumb_control_is_on(&control));
	assert_true(plumb_control_was_off(&control));
	assert_int_equal(plumb_control_recorded(&control, 5000), 0);
	assert_false(plumb_control_stop(&control, 1100));
	assert_true(plumb_control_start(&control, 2000));
	uint64_t first = atomic_load(&control.word);
	assert_false(plumb_control_start(&control, 2500));
	assert_true(plumb_control_is_on(&control));
	assert_int_equal(plumb_control_since(&control), 2000);
	assert_int_equal(plumb_control_recorded(&control, 2600), 600);
	assert_true(plumb_control_stop(&control, 3000));
	assert_int_equal(plumb_control_since(&control), 0);
	assert_int_equal(plumb_control_recorded(&control, 9000), 1000);
	assert_true(plumb_control_start(&control, 4000));
	/* No two periods have one word. */
	assert_true(atomic_load(&control.word) != first);
	assert_int_equal(plumb_control_recorded(&control, 4500), 1500);

	plumb_control_init(&control, false, 1000);
	assert_true(plumb_control_is_on(&control));
	assert_false(plumb_control_was_off(&control));
	assert_int_equal(plumb_control_recorded(&control, 3000), 2000);
	assert_true(plumb_control_stop(&control, 2000));
	assert_true(plumb_control_was_off(&control));
}

static void
processes_share_the_file(void **state)
{
	char folder[] = "/tmp/plumb-control-XXXXXX", path[64];
	struct plumb_control *control, *other;
	struct plumb_error error;
	int status;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/" PLUMB_CONTROL_NAME, folder);
	assert_null(plumb_control_map(path, true));
	assert_int_equal(plumb_control_create(&control, path, true, &error), 0);
	assert_int_equal(plumb_control_create(&other, path, true, &error), PLUMB_ESYSTEM);
	pid_t child = fork();
	if (!child) {
		struct plumb_control *own = plumb_control_map(path, true);
		_exit(!own || !plumb_control_start(own, 10));
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_true(plumb_control_is_on(control));
	/* A private one is a copy. */
	other = plumb_control_map(path, false);
	assert_true(plumb_control_stop(other, 20));
	assert_true(plumb_control_is_on(control));
	plumb_control_unmap(other);

	/* What is none of ours is not mapped. */
	int fd = open(path, O_RDWR);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_null(plumb_control_map(path, true));
	assert_int_equal(ftruncate(fd, PLUMB_CONTROL_SIZE), 0);
	assert_int_equal(pwrite(fd, "another.", 8, 0), 8);
	assert_null(plumb_control_map(path, true));
	close(fd);
	plumb_control_unmap(control);
	unlink(path);
	rmdir(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contention_is_between_processes),
		cmocka_unit_test(kernels_are_named_by_their_collective),
		cmocka_unit_test(recording_is_on_and_off),
		cmocka_unit_test(processes_share_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
