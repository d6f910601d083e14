// SPDX-License-Identifier: Apache-2.0
/* Pairs after the loops of the RAJA performance suite: what each computes, written anew. */
#include "pairs.h"
#include "pairs_all.h"

/* LTIMES: phi(m, g, z) = sum over d of ell(m, d) psi(d, g, z). */
enum { MOMENTS = 25, DIRECTIONS = 64, GROUPS = 32, ZONES = 2048 };

struct view2 {
	double *data;
	int stride;
	__device__ double &operator()(int i, int j) const { return data[i + stride * j]; }
};
struct view3 {
	double *data;
	int stride, plane;
	__device__ double &operator()(int i, int j, int k) const
	{
		return data[i + stride * j + plane * k];
	}
};

__global__ void ltimes_before(view3 phi, view2 ell, view3 psi)
{
	int m = threadIdx.x, g = blockIdx.x, z = blockIdx.y * blockDim.y + threadIdx.y;
	if (m >= MOMENTS)
		return;
	double sum = 0;
	for (int d = 0; d < DIRECTIONS; ++d)
		sum += ell(d, m) * psi(d, g, z); // ltimes: fix
	phi(m, g, z) = sum;
}

/* Both factors in shared memory, without a stride between the lanes. */
__global__ void ltimes_after(view3 phi, view2 ell, view3 psi)
{
	__shared__ double ells[DIRECTIONS][MOMENTS], psis[8][DIRECTIONS];
	int m = threadIdx.x, g = blockIdx.x, zone = threadIdx.y, z = blockIdx.y * 8 + zone;
	for (int i = zone * 32 + m; i < DIRECTIONS * MOMENTS; i += 256)
		ells[i % DIRECTIONS][i / DIRECTIONS] = ell(i % DIRECTIONS, i / DIRECTIONS);
	for (int d = m; d < DIRECTIONS; d += 32)
		psis[zone][d] = psi(d, g, z);
	__syncthreads();
	if (m >= MOMENTS)
		return;
	double sum = 0;
#pragma unroll 16
	for (int d = 0; d < DIRECTIONS; ++d)
		sum += ells[d][m] * psis[zone][d];
	phi(m, g, z) = sum;
}

/* LTIMES_NOVIEW: plain pointers, and the sum goes through memory. */
__global__ void noview_before(double *phi, double *ell, double *psi)
{
	int m = threadIdx.x, g = blockIdx.x, z = blockIdx.y * blockDim.y + threadIdx.y;
	if (m >= MOMENTS)
		return;
	double *to = phi + m + MOMENTS * (g + GROUPS * z);
	*to = 0;
	for (int d = 0; d < DIRECTIONS; ++d)
		*to += ell[d + DIRECTIONS * m] * psi[d + DIRECTIONS * (g + GROUPS * z)]; // noview: fix
}

__global__ void noview_after(double *phi, const double *__restrict__ ell,
                             const double *__restrict__ psi)
{
	__shared__ double ells[DIRECTIONS][MOMENTS], psis[8][DIRECTIONS];
	int m = threadIdx.x, g = blockIdx.x, zone = threadIdx.y, z = blockIdx.y * 8 + zone;
	for (int i = zone * 32 + m; i < DIRECTIONS * MOMENTS; i += 256)
		ells[i % DIRECTIONS][i / DIRECTIONS] = ell[i];
	for (int d = m; d < DIRECTIONS; d += 32)
		psis[zone][d] = psi[d + DIRECTIONS * (g + GROUPS * z)];
	__syncthreads();
	if (m >= MOMENTS)
		return;
	double sum = 0;
#pragma unroll 16
	for (int d = 0; d < DIRECTIONS; ++d)
		sum += ells[d][m] * psis[zone][d];
	phi[m + MOMENTS * (g + GROUPS * z)] = sum;
}

/* GEMM: c = a b, each SIDE × SIDE. */
enum { SIDE = 1024, TILE = 64, DEEP = 16 };

__global__ void gemm_before(const double *__restrict__ a, const double *__restrict__ b, double *c)
{
	int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
	double sum = 0;
	for (int k = 0; k < SIDE; ++k)
		sum += a[i * SIDE + k] * b[k * SIDE + j]; // gemm: fix
	c[i * SIDE + j] = sum;
}

/* Tiles in shared memory, 4 × 4 results a thread. */
__global__ void gemm_after(const double *__restrict__ a, const double *__restrict__ b, double *c)
{
	__shared__ double as[DEEP][TILE + 1], bs[DEEP][TILE];
	int x = threadIdx.x % 16, y = threadIdx.x / 16;
	double sums[4][4] = {};
	for (int k0 = 0; k0 < SIDE; k0 += DEEP) {
		for (int n = threadIdx.x; n < TILE * DEEP; n += 256) {
			as[n % DEEP][n / DEEP] =
				a[(blockIdx.y * TILE + n / DEEP) * SIDE + k0 + n % DEEP];
			bs[n / TILE][n % TILE] =
				b[(k0 + n / TILE) * SIDE + blockIdx.x * TILE + n % TILE];
		}
		__syncthreads();
#pragma unroll
		for (int k = 0; k < DEEP; ++k)
#pragma unroll
			for (int p = 0; p < 4; ++p)
#pragma unroll
				for (int q = 0; q < 4; ++q)
					sums[p][q] += as[k][y + 16 * p] * bs[k][x + 16 * q];
		__syncthreads();
	}
	for (int p = 0; p < 4; ++p)
		for (int q = 0; q < 4; ++q)
			c[(blockIdx.y * TILE + y + 16 * p) * SIDE + blockIdx.x * TILE + x + 16 * q] =
				sums[p][q];
}

/* MASS3DEA: the mass matrix of each element, by quadrature. */
enum { DOFS = 4, POINTS = 5, ELEMENTS = 1000, ROWS = DOFS * DOFS * DOFS, VOLUME = 125 };

__global__ void mass_before(const double *__restrict__ basis, const double *__restrict__ weights,
                            double *matrix)
{
	int e = blockIdx.x, i1 = threadIdx.x, j1 = threadIdx.y, k1 = threadIdx.z;
	for (int column = 0; column < ROWS; ++column) {
		int i2 = column % DOFS, j2 = column / DOFS % DOFS, k2 = column / (DOFS * DOFS);
		double sum = 0;
		for (int r = 0; r < POINTS; ++r)
			for (int s = 0; s < POINTS; ++s)
				for (int t = 0; t < POINTS; ++t)
					sum += basis[r + POINTS * i1] * basis[r + POINTS * i2] * basis[s + POINTS * j1] * basis[s + POINTS * j2] * basis[t + POINTS * k1] * basis[t + POINTS * k2] * weights[e + ELEMENTS * (r + POINTS * (s + POINTS * t))]; // mass3dea: fix
		matrix[((size_t)e * ROWS + column) * ROWS + i1 + DOFS * (j1 + DOFS * k1)] = sum;
	}
}

/* The weights in shared memory, the thread's part of the products in registers. */
__global__ void mass_after(const double *__restrict__ basis, const double *__restrict__ weights,
                           double *matrix)
{
	__shared__ double weight[VOLUME], bases[DOFS][POINTS];
	int e = blockIdx.x, i1 = threadIdx.x, j1 = threadIdx.y, k1 = threadIdx.z;
	int thread = i1 + DOFS * (j1 + DOFS * k1);
	for (int q = thread; q < VOLUME; q += ROWS)
		weight[q] = weights[e + ELEMENTS * q];
	if (thread < DOFS * POINTS)
		bases[thread / POINTS][thread % POINTS] = basis[thread];
	__syncthreads();
	double x[POINTS], y[POINTS], z[POINTS];
	for (int q = 0; q < POINTS; ++q) {
		x[q] = bases[i1][q];
		y[q] = bases[j1][q];
		z[q] = bases[k1][q];
	}
	for (int column = 0; column < ROWS; ++column) {
		int i2 = column % DOFS, j2 = column / DOFS % DOFS, k2 = column / (DOFS * DOFS);
		double px[POINTS], sum = 0;
#pragma unroll
		for (int r = 0; r < POINTS; ++r)
			px[r] = x[r] * bases[i2][r];
#pragma unroll
		for (int t = 0; t < POINTS; ++t) {
			double plane = 0;
#pragma unroll
			for (int s = 0; s < POINTS; ++s) {
				double line = 0;
#pragma unroll
				for (int r = 0; r < POINTS; ++r)
					line += px[r] * weight[r + POINTS * (s + POINTS * t)];
				plane += line * y[s] * bases[j2][s];
			}
			sum += plane * z[t] * bases[k2][t];
		}
		matrix[((size_t)e * ROWS + column) * ROWS + thread] = sum;
	}
}

/* PRESSURE: two loops over the same arrays, or one. */
enum { CELLS = 1 << 22 };
#define CELL() (blockIdx.x * blockDim.x + threadIdx.x)

static __device__ double limited(double p, double v, double cut, double most, double least)
{
	p = fabs(p) < cut ? 0 : p;
	p = v >= most ? 0 : p;
	return p < least ? least : p;
}
__global__ void pressure_before_1(double *bvc, const double *compression, double cls)
{
	int i = CELL();
	bvc[i] = cls * (compression[i] + 1.0); // pressure: fix
}
__global__ void pressure_before_2(double *p, const double *bvc, const double *e, const double *v)
{
	int i = CELL();
	p[i] = limited(bvc[i] * e[i], v[i], 1e-7, 0.9, 1e-4); // pressure: fix
}
__global__ void pressure_after(double *p, const double *compression, double cls, const double *e,
                               const double *v)
{
	int i = CELL();
	p[i] = limited(cls * (compression[i] + 1.0) * e[i], v[i], 1e-7, 0.9, 1e-4);
}

/* ENERGY: six loops, or one. */
struct energy {
	const double *e_old, *delvc, *p_old, *q_old, *work, *comp, *p_half, *bvc, *pbvc, *ql, *qq, *v;
	double *e, *q, *e2, *q2;
};
static __device__ double sound(double pbvc, double e, double v, double bvc, double p)
{
	double c = (pbvc * e + v * v * bvc * p) / 1.5;
	return c <= 0.1111111e-36 ? 0.3333333e-18 : sqrt(c);
}
__global__ void energy_before_1(energy a)
{
	int i = CELL();
	a.e[i] = a.e_old[i] - 0.5 * a.delvc[i] * (a.p_old[i] + a.q_old[i]) + 0.5 * a.work[i]; // energy: fix
}
__global__ void energy_before_2(energy a)
{
	int i = CELL();
	a.q[i] = a.delvc[i] > 0 ? 0 : sound(a.pbvc[i], a.e[i], 1 / (1 + a.comp[i]), a.bvc[i], a.p_half[i]) * a.ql[i] + a.qq[i]; // energy: fix
}
__global__ void energy_before_3(energy a)
{
	int i = CELL();
	a.e[i] += 0.5 * a.delvc[i] * (3 * (a.p_old[i] + a.q_old[i]) - 4 * (a.p_half[i] + a.q[i])); // energy: fix
}
__global__ void energy_before_4(energy a)
{
	int i = CELL();
	double e = a.e[i] + 0.5 * a.work[i]; // energy: fix
	a.e[i] = fabs(e) < 1e-7 ? 0 : e;     // energy: fix
}
__global__ void energy_before_5(energy a)
{
	int i = CELL();
	double q = a.delvc[i] > 0 ? 0 : sound(a.pbvc[i], a.e[i], a.v[i], a.bvc[i], a.p_half[i]) * a.ql[i] + a.qq[i]; // energy: fix
	a.e[i] -= (7 * (a.p_old[i] + a.q_old[i]) - 8 * (a.p_half[i] + a.q[i]) + q) * a.delvc[i] / 6; // energy: fix
}
__global__ void energy_before_6(energy a)
{
	int i = CELL();
	if (a.delvc[i] <= 0)
		a.q[i] = sound(a.pbvc[i], a.e[i], a.v[i], a.bvc[i], a.p_half[i]) * a.ql[i] + a.qq[i]; // energy: fix
}
__global__ void energy_after(energy a)
{
	int i = CELL();
	double delvc = a.delvc[i], p_old = a.p_old[i], q_old = a.q_old[i], work = a.work[i];
	double p_half = a.p_half[i], bvc = a.bvc[i], pbvc = a.pbvc[i], ql = a.ql[i], qq = a.qq[i];
	double v = a.v[i], e = a.e_old[i] - 0.5 * delvc * (p_old + q_old) + 0.5 * work;
	double q = delvc > 0 ? 0 : sound(pbvc, e, 1 / (1 + a.comp[i]), bvc, p_half) * ql + qq;
	e += 0.5 * delvc * (3 * (p_old + q_old) - 4 * (p_half + q));
	e += 0.5 * work;
	e = fabs(e) < 1e-7 ? 0 : e;
	double next = delvc > 0 ? 0 : sound(pbvc, e, v, bvc, p_half) * ql + qq;
	e -= (7 * (p_old + q_old) - 8 * (p_half + q) + next) * delvc / 6;
	a.e2[i] = e;
	a.q2[i] = delvc <= 0 ? sound(pbvc, e, v, bvc, p_half) * ql + qq : q;
}

void pairs_loops(pairs &all)
{
	{
		size_t count = (size_t)MOMENTS * GROUPS * ZONES;
		double *psi = device_random<double>((size_t)DIRECTIONS * GROUPS * ZONES, -1, 1, 2);
		double *ell = device_random<double>(MOMENTS * DIRECTIONS, -1, 1, 3);
		double *x = device_new<double>(count), *y = device_new<double>(count);
		view2 ells = { ell, DIRECTIONS };
		view3 psis = { psi, DIRECTIONS, DIRECTIONS * GROUPS };
		view3 xs = { x, MOMENTS, MOMENTS * GROUPS }, ys = { y, MOMENTS, MOMENTS * GROUPS };
		dim3 blocks(GROUPS, ZONES / 8), threads(32, 8);
		all.push_back({ "ltimes", [=] { ltimes_before<<<blocks, threads>>>(xs, ells, psis); },
		                [=] { ltimes_after<<<blocks, threads>>>(ys, ells, psis); },
		                [=] { return difference(x, y, count); }, 1e-12 });
		double *u = device_new<double>(count), *w = device_new<double>(count);
		all.push_back({ "noview", [=] { noview_before<<<blocks, threads>>>(u, ell, psi); },
		                [=] { noview_after<<<blocks, threads>>>(w, ell, psi); },
		                [=] { return difference(u, w, count); }, 1e-12 });
	}
	{
		size_t count = (size_t)SIDE * SIDE;
		double *a = device_random<double>(count, -1, 1, 4);
		double *b = device_random<double>(count, -1, 1, 5);
		double *x = device_new<double>(count), *y = device_new<double>(count);
		all.push_back({ "gemm",
		                [=] { gemm_before<<<dim3(SIDE / 32, SIDE / 8), dim3(32, 8)>>>(a, b, x); },
		                [=] { gemm_after<<<dim3(SIDE / TILE, SIDE / TILE), 256>>>(a, b, y); },
		                [=] { return difference(x, y, count); }, 1e-11 });
	}
	{
		size_t count = (size_t)ELEMENTS * ROWS * ROWS;
		double *basis = device_random<double>(DOFS * POINTS, 0, 1, 6);
		double *weights = device_random<double>(ELEMENTS * VOLUME, 0, 1, 7);
		double *x = device_new<double>(count), *y = device_new<double>(count);
		dim3 threads(DOFS, DOFS, DOFS);
		all.push_back({ "mass3dea",
		                [=] { mass_before<<<ELEMENTS, threads>>>(basis, weights, x); },
		                [=] { mass_after<<<ELEMENTS, threads>>>(basis, weights, y); },
		                [=] { return difference(x, y, count); }, 1e-11 });
	}
	unsigned blocks = CELLS / 256;
	const double *in[12];
	for (int k = 0; k < 12; ++k)
		in[k] = device_random<double>(CELLS, k == 1 ? -1 : 0, 1, 10 + k);
	{
		double *bvc = device_new<double>(CELLS);
		double *x = device_new<double>(CELLS), *y = device_new<double>(CELLS);
		const double *compression = in[0], *e = in[2], *v = in[3];
		all.push_back({ "pressure",
		                [=] {
			                pressure_before_1<<<blocks, 256>>>(bvc, compression, 0.6);
			                pressure_before_2<<<blocks, 256>>>(x, bvc, e, v);
		                },
		                [=] { pressure_after<<<blocks, 256>>>(y, compression, 0.6, e, v); },
		                [=] { return difference(x, y, CELLS); }, 1e-12 });
	}
	{
		energy a = { in[0], in[1], in[2], in[3], in[4],  in[5],
			     in[6], in[7], in[8], in[9], in[10], in[11] };
		a.e = device_new<double>(CELLS);
		a.q = device_new<double>(CELLS);
		a.e2 = device_new<double>(CELLS);
		a.q2 = device_new<double>(CELLS);
		all.push_back({ "energy",
		                [=] {
			                energy_before_1<<<blocks, 256>>>(a);
			                energy_before_2<<<blocks, 256>>>(a);
			                energy_before_3<<<blocks, 256>>>(a);
			                energy_before_4<<<blocks, 256>>>(a);
			                energy_before_5<<<blocks, 256>>>(a);
			                energy_before_6<<<blocks, 256>>>(a);
		                },
		                [=] { energy_after<<<blocks, 256>>>(a); },
		                [=] {
			                return std::max(difference(a.e, a.e2, CELLS),
			                                difference(a.q, a.q2, CELLS));
		                },
		                1e-9 });
	}
}
