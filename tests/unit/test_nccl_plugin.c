/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layouts of NCCL's interface for profilers. The numbers are what a compiler makes of the
 * headers of NCCL 2.26.2 (version 3), 2.27.3 (version 4) and 2.28.3 and 2.28.9 (version 5) on
 * 64-bit machines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/comm/comm.h"
#include "collect/comm/nccl.h"

#define AT(type, field, offset) assert_int_equal(offsetof(struct type, field), offset)

static void
version_3(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct plumb_nccl_event_3), 120);
	AT(plumb_nccl_event_3, parent, 8);
	AT(plumb_nccl_event_3, rank, 16);
	AT(plumb_nccl_event_3, collective.name, 24);
	AT(plumb_nccl_event_3, collective.communicator, 32);
	AT(plumb_nccl_event_3, collective.sequence, 40);
	AT(plumb_nccl_event_3, collective.function, 48);
	AT(plumb_nccl_event_3, collective.count, 72);
	AT(plumb_nccl_event_3, collective.root, 80);
	AT(plumb_nccl_event_3, collective.datatype, 88);
	AT(plumb_nccl_event_3, collective.channels, 96);
	AT(plumb_nccl_event_3, collective.warps, 97);
	AT(plumb_nccl_event_3, collective.algorithm, 104);
	AT(plumb_nccl_event_3, collective.protocol, 112);
	AT(plumb_nccl_event_3, p2p.communicator, 32);
	AT(plumb_nccl_event_3, p2p.function, 40);
	AT(plumb_nccl_event_3, p2p.datatype, 56);
	AT(plumb_nccl_event_3, p2p.count, 64);
	AT(plumb_nccl_event_3, p2p.peer, 72);
	AT(plumb_nccl_event_3, proxy_op.pid, 24);
	AT(plumb_nccl_event_3, proxy_op.is_send, 44);
	AT(plumb_nccl_event_3, channel, 24);
	AT(plumb_nccl_event_3, net.data, 32);
	assert_int_equal(sizeof(union plumb_nccl_state_3), 16);
	assert_int_equal(sizeof(struct plumb_nccl_profiler_3), 48);
}

static void
version_4(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct plumb_nccl_event_4), 104);
	AT(plumb_nccl_event_4, parent, 8);
	AT(plumb_nccl_event_4, rank, 16);
	AT(plumb_nccl_event_4, collective.sequence, 24);
	AT(plumb_nccl_event_4, collective.function, 32);
	AT(plumb_nccl_event_4, collective.count, 56);
	AT(plumb_nccl_event_4, collective.root, 64);
	AT(plumb_nccl_event_4, collective.datatype, 72);
	AT(plumb_nccl_event_4, collective.channels, 80);
	AT(plumb_nccl_event_4, collective.warps, 81);
	AT(plumb_nccl_event_4, collective.algorithm, 88);
	AT(plumb_nccl_event_4, collective.protocol, 96);
	AT(plumb_nccl_event_4, p2p.function, 24);
	AT(plumb_nccl_event_4, p2p.datatype, 40);
	AT(plumb_nccl_event_4, p2p.count, 48);
	AT(plumb_nccl_event_4, p2p.peer, 56);
	AT(plumb_nccl_event_4, p2p.channels, 60);
	AT(plumb_nccl_event_4, proxy_op.pid, 24);
	AT(plumb_nccl_event_4, proxy_op.is_send, 44);
	AT(plumb_nccl_event_4, channel.channel, 24);
	AT(plumb_nccl_event_4, channel.timer, 32);
	AT(plumb_nccl_event_4, net.data, 32);
	assert_int_equal(sizeof(union plumb_nccl_state_4), 8);
	assert_int_equal(sizeof(struct plumb_nccl_profiler_4), 48);
}

static void
version_5(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct plumb_nccl_event_5), 112);
	AT(plumb_nccl_event_5, parent, 8);
	AT(plumb_nccl_event_5, rank, 16);
	AT(plumb_nccl_event_5, group_call.depth, 28);
	AT(plumb_nccl_event_5, collective_call.datatype, 40);
	AT(plumb_nccl_event_5, collective_call.stream, 56);
	AT(plumb_nccl_event_5, collective_call.captured, 64);
	AT(plumb_nccl_event_5, p2p_call.datatype, 40);
	AT(plumb_nccl_event_5, p2p_call.captured, 56);
	AT(plumb_nccl_event_5, launch_stream, 24);
	AT(plumb_nccl_event_5, collective.sequence, 24);
	AT(plumb_nccl_event_5, collective.function, 32);
	AT(plumb_nccl_event_5, collective.count, 56);
	AT(plumb_nccl_event_5, collective.root, 64);
	AT(plumb_nccl_event_5, collective.datatype, 72);
	AT(plumb_nccl_event_5, collective.channels, 80);
	AT(plumb_nccl_event_5, collective.warps, 81);
	AT(plumb_nccl_event_5, collective.algorithm, 88);
	AT(plumb_nccl_event_5, collective.protocol, 96);
	AT(plumb_nccl_event_5, collective.group, 104);
	AT(plumb_nccl_event_5, p2p.datatype, 40);
	AT(plumb_nccl_event_5, p2p.count, 48);
	AT(plumb_nccl_event_5, p2p.peer, 56);
	AT(plumb_nccl_event_5, p2p.channels, 60);
	AT(plumb_nccl_event_5, p2p.group, 64);
	AT(plumb_nccl_event_5, proxy_op.pid, 24);
	AT(plumb_nccl_event_5, proxy_op.is_send, 44);
	AT(plumb_nccl_event_5, net.data, 32);
	assert_int_equal(sizeof(struct plumb_nccl_profiler_5), 48);
}

static void
kernels(void **state)
{
	static const char *const own[] = {
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		"_Z39ncclSymkDevKernel_AllReduce_AGxLLMC_R_f16i",
		"ncclKernel_AllReduce_RING_LL_Sum_float",
	};
	static const char *const others[] = { "_Z4axpyPf", "ncclWindow", "", "_Z",
		                              "my_ncclDevKernel" };
	(void)state;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		assert_true(plumb_comm_is_kernel(own[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(plumb_comm_is_kernel(others[i]));
	assert_false(plumb_comm_is_kernel(NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_3),
		cmocka_unit_test(version_4),
		cmocka_unit_test(version_5),
		cmocka_unit_test(kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
