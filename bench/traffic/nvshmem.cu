/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvshmem [GPUS]: a ring of PEs, one process and one GPU each, which this program forks. Each stores
 * COUNT numbers into the next one's memory one by one (nvshmem_int_p) and in a block
 * (nvshmemx_int_put_block), and gets COUNT of them from it. Checks what arrived and prints one line
 * of JSON: {"ok": true, "gpus": 2}.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "common.h"

#define COUNT 10000

__global__ void
put_each(int *to, int next, int value)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < COUNT; i += gridDim.x * blockDim.x)
		nvshmem_int_p(to + i, value + i, next);
}

__global__ void
put_block(int *to, const int *from, int next)
{
	nvshmemx_int_put_block(to, from, COUNT, next);
}

__global__ void
get_block(int *to, const int *from, int next)
{
	nvshmemx_int_get_block(to, from, COUNT, next);
}

static bool
holds(const int *memory, int first)
{
	std::vector<int> copy(COUNT);
	CHECK(cudaMemcpy(copy.data(), memory, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		if (copy[i] != first + i)
			return false;
	return true;
}

static bool
run_pe(int pe, int all, nvshmemx_uniqueid_t *id)
{
	nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
	int next = (pe + 1) % all, before = (pe + all - 1) % all;
	CHECK(cudaSetDevice(pe));
	CHECK(nvshmemx_set_attr_uniqueid_args(pe, all, id, &attributes));
	CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
	int *each = (int *)nvshmem_malloc(COUNT * sizeof(int)); // the target of single stores
	int *block = (int *)nvshmem_malloc(COUNT * sizeof(int)); // the target of blocks
	int *source = (int *)nvshmem_malloc(COUNT * sizeof(int)); // the source of gets
	std::vector<int> numbers(COUNT);
	int *own, *got;
	CHECK(cudaMalloc(&own, COUNT * sizeof(int)));
	CHECK(cudaMalloc(&got, COUNT * sizeof(int)));
	for (int i = 0; i < COUNT; i++)
		numbers[i] = 1000000 * (pe + 1) + i;
	CHECK(cudaMemcpy(own, numbers.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(source, numbers.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));
	nvshmem_barrier_all();
	put_each<<<20, 128>>>(each, next, 1000000 * (pe + 1));
	put_block<<<1, 128>>>(block, own, next);
	get_block<<<1, 128>>>(got, source, next);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	nvshmem_barrier_all();
	bool ok = holds(each, 1000000 * (before + 1)) && holds(block, 1000000 * (before + 1)) &&
	          holds(got, 1000000 * (next + 1));
	nvshmem_free(each);
	nvshmem_free(block);
	nvshmem_free(source);
	nvshmem_finalize();
	return ok;
}

int
main(int argc, char **argv)
{
	int all = argc > 1 ? atoi(argv[1]) : 2, status;
	std::vector<int> pipes(2 * all);
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
	for (int pe = 1; pe < all; pe++) { /* before CUDA is there */
		CHECK(pipe(&pipes[2 * pe]));
		if (fork())
			continue;
		CHECK(read(pipes[2 * pe], &id, sizeof id) != sizeof id);
		exit(run_pe(pe, all, &id) ? 0 : 1);
	}
	CHECK(nvshmemx_get_uniqueid(&id));
	for (int pe = 1; pe < all; pe++)
		CHECK(write(pipes[2 * pe + 1], &id, sizeof id) != sizeof id);
	bool ok = run_pe(0, all, &id);
	for (int pe = 1; pe < all; pe++)
		ok = wait(&status) >= 0 && !status && ok;
	printf("{\"ok\": %s, \"gpus\": %d}\n", ok ? "true" : "false", all);
	return ok ? 0 : 1;
}
