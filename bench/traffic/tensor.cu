/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor tensor [GPUS]: each GPU copies a tile of the next GPU's memory into its shared memory and
 * from there to another place of the next GPU, both by tensor maps. The addresses are in the maps,
 * so no tool that looks at instructions sees what moves: plumb has to say so. Checks what arrived
 * and prints one line of JSON: {"ok": true, "gpus": 2}.
 */
#include "common.h"

#define SIDE 64 /* numbers of a row, and rows */
#define TILE 32

__global__ void
copy_tile(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to)
{
#if __CUDA_ARCH__ >= 900
	__shared__ alignas(128) int tile[TILE * TILE];
	__shared__ alignas(8) uint64_t barrier;
	uint32_t at = (uint32_t)__cvta_generic_to_shared(tile),
	         bar = (uint32_t)__cvta_generic_to_shared(&barrier), done = 0;
	if (threadIdx.x)
		return;
	asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(bar) : "memory");
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
	             "[%0], [%1, {%2, %3}], [%4];" ::"r"(at),
	             "l"(&from), "r"(TILE), "r"(0), "r"(bar)
	             : "memory");
	while (!done)
		asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; "
		             "selp.u32 %0, 1, 0, p; }"
		             : "=r"(done)
		             : "r"(bar)
		             : "memory");
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], "
	             "[%3];" ::"l"(&to),
	             "r"(0), "r"(TILE), "r"(at)
	             : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

static CUtensorMap
map_of(int *memory)
{
	CUtensorMap map;
	cuuint64_t sizes[] = { SIDE, SIDE }, stride = SIDE * sizeof(int);
	cuuint32_t box[] = { TILE, TILE }, steps[] = { 1, 1 };
	CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, memory, sizes, &stride,
	                             box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
	                             CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
	                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

int
main(int argc, char **argv)
{
	std::vector<int> numbers(SIDE * SIDE), arrived(SIDE * SIDE);
	std::vector<int *> from, to;
	bool ok = true;
	all_devices(argc > 2 ? atoi(argv[2]) : 0);
	for (int i = 0; i < SIDE * SIDE; i++)
		numbers[i] = i;
	for (int i = 0; i < devices; i++) {
		from.push_back((int *)allocate(i, SIDE * SIDE * sizeof(int)));
		to.push_back((int *)allocate(i, SIDE * SIDE * sizeof(int)));
		CHECK(cudaMemcpy(from[i], numbers.data(), SIDE * SIDE * sizeof(int),
		                 cudaMemcpyHostToDevice));
	}
	for (int i = 0; i < devices; i++) {
		int next = (i + 1) % devices;
		CHECK(cudaSetDevice(i));
		copy_tile<<<1, 32>>>(map_of(from[next]), map_of(to[next]));
		CHECK(cudaGetLastError());
	}
	synchronize();
	for (int i = 0; i < devices; i++) {
		CHECK(cudaMemcpy(arrived.data(), to[i], SIDE * SIDE * sizeof(int),
		                 cudaMemcpyDeviceToHost));
		for (int y = 0; y < SIDE; y++)
			for (int x = 0; x < SIDE; x++)
				ok = ok && arrived[y * SIDE + x] ==
				                   (y >= TILE && x < TILE
				                            ? numbers[(y - TILE) * SIDE + x + TILE]
				                            : 0);
	}
	printf("{\"ok\": %s, \"gpus\": %d}\n", ok ? "true" : "false", devices);
	return ok ? 0 : 1;
}
