/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfs wrong|right [GPUS]: breadth-first search over a graph whose parts lie on the GPUs of a ring:
 * edges lead to vertices of the own part or of the next one. After each warp's worth of vertices,
 * one lane tells the next GPU how far it is, by a flag whose address it reads from an array. With
 * `wrong` there is one such array, on the last GPU, so each flag costs a trip there; with `right`
 * each GPU has its own. Checks the distances on the host and prints {"ok": true, "gpus": 2}.
 */
#include "../common.h"

#define PART (1 << 15) /* vertices of a GPU */
#define DEGREE 4

/* Edge J of vertex V: within the part of V, or into the next part. */
static __host__ __device__ unsigned
target(unsigned v, unsigned j, unsigned all)
{
	unsigned x = (v * DEGREE + j) * 2654435761u;
	x ^= x >> 15;
	return (v / PART * PART + x % (2 * PART)) % all;
}

__global__ void
expand(int *mine, int *after, unsigned first, unsigned all, int level, int **flags, int next,
       int *found)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < PART;
	     i += gridDim.x * blockDim.x) {
		for (unsigned j = 0; j < DEGREE && mine[i] == level; j++) {
			unsigned to = target(first + i, j, all);
			int *part = to / PART == first / PART ? mine : after;
			if (atomicCAS(&part[to % PART], -1, level + 1) == -1)
				atomicAdd(found, 1);
		}
		if (threadIdx.x % 32 == 0) {
			int *flag = *(int *volatile *)&flags[next]; // the load of an address
			*(volatile int *)flag = (int)i;
		}
	}
}

int
main(int argc, char **argv)
{
	bool right = argc > 1 && !strcmp(argv[1], "right"), ok = true;
	if (!right && (argc < 2 || strcmp(argv[1], "wrong"))) {
		fprintf(stderr, "usage: bfs wrong|right [GPUS]\n");
		return 2;
	}
	all_devices(argc > 2 ? atoi(argv[2]) : 0);
	unsigned all = (unsigned)devices * PART;
	std::vector<int *> distance(devices), flag(devices), found(devices);
	std::vector<int **> flags(devices);
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaMalloc((void **)&distance[i], PART * sizeof(int)));
		CHECK(cudaMemset(distance[i], 0xff, PART * sizeof(int)));
		CHECK(cudaMalloc((void **)&flag[i], sizeof(int)));
		CHECK(cudaMalloc((void **)&found[i], sizeof(int)));
	}
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(right ? i : devices - 1));
		if (right || !i)
			CHECK(cudaMalloc((void **)&flags[i], devices * sizeof(int *))); // the array of addresses
		else
			flags[i] = flags[0];
		CHECK(cudaMemcpy(flags[i], flag.data(), devices * sizeof(int *),
		                 cudaMemcpyHostToDevice));
	}
	CHECK(cudaMemset(distance[0], 0, sizeof(int))); /* from vertex 0 on */
	for (int level = 0, more = 1; more; level++) {
		for (int i = 0; i < devices; i++) {
			int next = (i + 1) % devices;
			CHECK(cudaSetDevice(i));
			CHECK(cudaMemset(found[i], 0, sizeof(int)));
			expand<<<64, 128>>>(distance[i], distance[next], (unsigned)i * PART, all,
			                    level, flags[i], next, found[i]);
			CHECK(cudaGetLastError());
		}
		synchronize();
		more = 0;
		for (int i = 0, here = 0; i < devices; i++) {
			CHECK(cudaMemcpy(&here, found[i], sizeof(int), cudaMemcpyDeviceToHost));
			more += here;
		}
	}
	/* The same on the host. */
	std::vector<int> expected(all, -1), queue(1, 0), part(PART);
	expected[0] = 0;
	for (size_t k = 0; k < queue.size(); k++)
		for (unsigned j = 0; j < DEGREE; j++) {
			unsigned to = target((unsigned)queue[k], j, all);
			if (expected[to] >= 0)
				continue;
			expected[to] = expected[queue[k]] + 1;
			queue.push_back((int)to);
		}
	for (int i = 0; i < devices; i++) {
		CHECK(cudaMemcpy(part.data(), distance[i], PART * sizeof(int),
		                 cudaMemcpyDeviceToHost));
		ok = ok && !memcmp(part.data(), &expected[(size_t)i * PART], PART * sizeof(int));
	}
	printf("{\"ok\": %s, \"gpus\": %d, \"reached\": %zu}\n", ok ? "true" : "false", devices,
	       queue.size());
	return ok ? 0 : 1;
}
