/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speed NAME: programs for the table of costs: stencil (a halo of one row beside a large local
 * grid), bfs (flags in a ring through an array of pointers, beside local work), spmv (rows gather a
 * vector of which each GPU has a part). Prints the seconds of the timed part as JSON.
 */
#include <chrono>

#include "common.h"

static double
now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

__global__ void
stencil(const float *old, float *now, float *above, float *below, int nx, int ny)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
	if (x < 1 || x >= nx - 1 || y > ny)
		return;
	float value = 0.25f * (old[(y - 1) * nx + x] + old[(y + 1) * nx + x] + old[y * nx + x - 1] +
	                       old[y * nx + x + 1]);
	now[y * nx + x] = value;
	if (y == 1)
		above[(ny + 1) * nx + x] = value;
	if (y == ny)
		below[x] = value;
}

static double
run_stencil()
{
	const int nx = 8192, ny = 8192, steps = 200;
	std::vector<float *> grids[2];
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < devices; i++)
			grids[k].push_back(
				(float *)allocate(i, (size_t)nx * (ny + 2) * sizeof(float)));
	double start = now();
	for (int step = 0; step < steps; step++) {
		std::vector<float *> &next = grids[(step + 1) % 2];
		for (int i = 0; i < devices; i++) {
			CHECK(cudaSetDevice(i));
			stencil<<<dim3(nx / 32, ny / 8), dim3(32, 8)>>>(
				grids[step % 2][i], next[i], next[(i + devices - 1) % devices],
				next[(i + 1) % devices], nx, ny);
		}
		synchronize();
	}
	return now() - start;
}

/* Local search work, and one lane that passes a flag on. */
__global__ void
visit(const int *edges, int *distance, int n, int level, int **flags, int next)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
	for (int k = 0; k < 64 && i < n; k++) /* arithmetic, as a search mostly has */
		at = (at * 1103515245 + 12345 + k) & (n - 1);
	if (i < n && edges[i] == level)
		distance[at] = level;
	if (!i)
		*(volatile int *)flags[next] = level;
}

static double
run_bfs()
{
	const int n = 1 << 22, levels = 300;
	std::vector<int *> edges, distance, flags;
	for (int i = 0; i < devices; i++) {
		edges.push_back((int *)allocate(i, n * sizeof(int)));
		distance.push_back((int *)allocate(i, n * sizeof(int)));
		flags.push_back((int *)allocate(i, 256));
	}
	int **array = (int **)allocate(devices - 1, 4096);
	CHECK(cudaMemcpy(array, flags.data(), devices * sizeof(int *), cudaMemcpyHostToDevice));
	double start = now();
	for (int level = 0; level < levels; level++) {
		for (int i = 0; i < devices; i++) {
			CHECK(cudaSetDevice(i));
			visit<<<n / 256, 256>>>(edges[i], distance[i], n, level, array,
			                        (i + 1) % devices);
		}
		synchronize();
	}
	return now() - start;
}

struct parts {
	const float *of[8];
};

__global__ void
multiply(const int *columns, const float *values, parts x, float *y, int rows, int each, int part)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;
	for (int k = 0; row < rows && k < each; k++) {
		int column = columns[(size_t)k * rows + row];
		sum += values[(size_t)k * rows + row] * x.of[column / part][column % part];
	}
	if (row < rows)
		y[row] = sum;
}

static double
run_spmv()
{
	const int part = 1 << 20, rows = 1 << 20, each = 16, times = 100;
	std::vector<int *> columns;
	std::vector<float *> values, y;
	parts x = {};
	std::vector<int> numbers((size_t)rows * each);
	for (size_t i = 0; i < numbers.size(); i++) /* one of eight is another GPU's */
		numbers[i] = (int)((i * 2654435761u) % part);
	for (int i = 0; i < devices; i++) {
		std::vector<int> mine(numbers);
		for (size_t k = 0; k < mine.size(); k++)
			mine[k] += part * (k % 8 ? i : (i + 1) % devices);
		columns.push_back((int *)allocate(i, mine.size() * sizeof(int)));
		CHECK(cudaMemcpy(columns[i], mine.data(), mine.size() * sizeof(int),
		                 cudaMemcpyHostToDevice));
		values.push_back((float *)allocate(i, mine.size() * sizeof(float)));
		y.push_back((float *)allocate(i, rows * sizeof(float)));
		x.of[i] = (float *)allocate(i, part * sizeof(float));
	}
	double start = now();
	for (int k = 0; k < times; k++) {
		for (int i = 0; i < devices; i++) {
			CHECK(cudaSetDevice(i));
			multiply<<<rows / 256, 256>>>(columns[i], values[i], x, y[i], rows, each,
			                              part);
		}
		synchronize();
	}
	return now() - start;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	double (*run)() = !strcmp(name, "stencil") ? run_stencil
	                  : !strcmp(name, "bfs")   ? run_bfs
	                  : !strcmp(name, "spmv")  ? run_spmv
	                                           : nullptr;
	if (!run) {
		fprintf(stderr, "usage: speed stencil|bfs|spmv [GPUS]\n");
		return 2;
	}
	all_devices(argc > 2 ? atoi(argv[2]) : 0);
	printf("{\"ok\": true, \"gpus\": %d, \"seconds\": %.6f}\n", devices, run());
	return 0;
}
