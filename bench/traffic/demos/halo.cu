/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halo wrong|right pull|push|copy [GPUS]: a stencil of five points. Each GPU has a part of the rows,
 * and the next and previous GPU's border in memory of its own (the halo), which it gets before each
 * step: a kernel of its own loads it (pull), the neighbours' kernels store it (push), or the host
 * copies it (copy). With `wrong` that is the neighbour's whole part, with `right` its row at the
 * border. Prints {"ok": true, "gpus": 2, "sum": …}: the sum is the same for all of them.
 */
#include "../common.h"

#define NX 1024
#define NY 256 /* rows of a part */
#define STEPS 20
#define ROW (NX * sizeof(float))

__global__ void
start(float *field, int part)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < NX * NY; i += gridDim.x * blockDim.x)
		field[i] = (float)((i + part * NX * NY) % 1000);
}

__global__ void
move(const float *from, float *to, int count)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		to[i] = from[i]; // the halo is moved
}

/* ABOVE is the last row of the halo above, BELOW the first one of that below. */
__global__ void
step(const float *old, float *now, const float *above, const float *below)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < NX * NY;
	     i += gridDim.x * blockDim.x) {
		int x = i % NX, y = i / NX;
		float north = y ? old[i - NX] : above[x];
		float south = y < NY - 1 ? old[i + NX] : below[x];
		float west = old[y * NX + (x + NX - 1) % NX], east = old[y * NX + (x + 1) % NX];
		now[i] = 0.25f * (north + south + west + east);
	}
}

static const char *way;

/* TO is GPU I's; FROM is GPU K's. */
static void
get(float *to, int i, const float *from, int k, int rows)
{
	if (!strcmp(way, "copy")) {
		CHECK(cudaMemcpyPeerAsync(to, i, from, k, rows * ROW, 0)); // the halo is copied
		return;
	}
	CHECK(cudaSetDevice(!strcmp(way, "push") ? k : i));
	move<<<64, 256>>>(from, to, rows * NX);
	CHECK(cudaGetLastError());
}

int
main(int argc, char **argv)
{
	bool right = argc > 1 && !strcmp(argv[1], "right");
	way = argc > 2 ? argv[2] : "";
	if ((!right && (argc < 2 || strcmp(argv[1], "wrong"))) ||
	    (strcmp(way, "pull") && strcmp(way, "push") && strcmp(way, "copy"))) {
		fprintf(stderr, "usage: halo wrong|right pull|push|copy [GPUS]\n");
		return 2;
	}
	all_devices(argc > 3 ? atoi(argv[3]) : 0);
	int rows = right ? 1 : NY;
	std::vector<float *> old(devices), now(devices), above(devices), below(devices);
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaMalloc((void **)&old[i], NY * ROW));
		CHECK(cudaMalloc((void **)&now[i], NY * ROW));
		CHECK(cudaMalloc((void **)&above[i], rows * ROW)); // the halo above
		CHECK(cudaMalloc((void **)&below[i], rows * ROW)); // the halo below
		start<<<64, 256>>>(old[i], i);
		CHECK(cudaGetLastError());
	}
	synchronize();
	for (int turn = 0; turn < STEPS; turn++) {
		for (int i = 0; i < devices; i++) {
			int before = (i + devices - 1) % devices, after = (i + 1) % devices;
			get(above[i], i, old[before] + (NY - rows) * NX, before, rows);
			get(below[i], i, old[after], after, rows);
		}
		synchronize();
		for (int i = 0; i < devices; i++) {
			CHECK(cudaSetDevice(i));
			step<<<64, 256>>>(old[i], now[i], above[i] + (rows - 1) * NX, below[i]);
			CHECK(cudaGetLastError());
		}
		synchronize();
		old.swap(now);
	}
	double sum = 0;
	std::vector<float> part(NX * NY);
	for (int i = 0; i < devices; i++) {
		CHECK(cudaMemcpy(part.data(), old[i], NY * ROW, cudaMemcpyDeviceToHost));
		for (int k = 0; k < NX * NY; k++)
			sum += part[k] * (double)(k % 17 + i + 1);
	}
	printf("{\"ok\": true, \"gpus\": %d, \"sum\": %.17g}\n", devices, sum);
	return 0;
}
