// SPDX-License-Identifier: Apache-2.0
/* Pairs after proxy applications and a layer of a language model; and two without headroom. */
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "pairs.h"
#include "pairs_all.h"

/* Like miniBUDE: the energy of a ligand in many poses beside a protein. */
enum { POSES = 1 << 16, LIGAND = 26, PROTEIN = 938, KINDS = 64, TILE = 128 };

struct atom {
	float x, y, z;
	int kind;
};
struct kind {
	float radius, charge;
};
struct pose {
	float c, s, x, y, z; /* turned about z, then moved */
};

static __device__ __forceinline__ float pull(float x, float y, float z, atom a, kind other, kind own)
{
	float dx = x - a.x, dy = y - a.y, dz = z - a.z;
	float distance = sqrtf(dx * dx + dy * dy + dz * dz);
	float gap = distance - other.radius - own.radius;
	float steric = gap < 0 ? -gap * 0.25f : 0.f;
	float electric = gap < 4.f ? other.charge * own.charge * (4.f - gap) : 0.f;
	return steric + electric;
}
static __device__ __forceinline__ void place(atom l, pose p, float &x, float &y, float &z)
{
	x = p.c * l.x - p.s * l.y + p.x;
	y = p.s * l.x + p.c * l.y + p.y;
	z = l.z + p.z;
}

/* Each step brings an atom, then looks up its kind: two loads, one after the other. */
__global__ void bude_before(const atom *protein, const atom *ligand, const kind *kinds,
                            const pose *poses, float *energies)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;
	for (int l = 0; l < LIGAND; ++l) {
		float x, y, z;
		place(ligand[l], poses[i], x, y, z);
		kind own = kinds[ligand[l].kind];
#pragma unroll 1
		for (int p = 0; p < PROTEIN; ++p) {
			atom a = protein[p];          // minibude: fix
			kind other = kinds[a.kind];   // minibude: fix
			sum += pull(x, y, z, a, other, own); // minibude: fix
		}
	}
	energies[i] = sum;
}

/* Atoms with their kind in shared memory; each serves all of the ligand. */
__global__ void bude_after(const atom *protein, const atom *ligand, const kind *kinds,
                           const pose *poses, float *energies)
{
	__shared__ atom atoms[TILE];
	__shared__ kind others[TILE];
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	pose pose = poses[i];
	float sum = 0;
	for (int first = 0; first < PROTEIN; first += TILE) {
		int count = min((int)TILE, PROTEIN - first);
		__syncthreads();
		for (int p = threadIdx.x; p < count; p += blockDim.x) {
			atoms[p] = protein[first + p];
			others[p] = kinds[protein[first + p].kind];
		}
		__syncthreads();
		for (int l = 0; l < LIGAND; ++l) {
			float x, y, z;
			place(ligand[l], pose, x, y, z);
			kind own = kinds[ligand[l].kind];
#pragma unroll 8
			for (int p = 0; p < count; ++p)
				sum += pull(x, y, z, atoms[p], others[p], own);
		}
	}
	energies[i] = sum;
}

/* Like Kripke: a sweep over zones, each of which needs what its neighbours gave. */
enum { EDGE = 8, SETS = 16, LANES = 2048, SWEEPERS = SETS * LANES };

__global__ void sweep_before(const float *__restrict__ source, const float *__restrict__ sigma,
                             float *psi, float *fi, float *fj, float *fk)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	for (int k = 0; k < EDGE; ++k)
		for (int j = 0; j < EDGE; ++j)
#pragma unroll 1
			for (int i = 0; i < EDGE; ++i) {
				int zone = i + EDGE * (j + EDGE * k);
				float *x = fi + (j + EDGE * k) * SWEEPERS + t;
				float *y = fj + (i + EDGE * k) * SWEEPERS + t;
				float *z = fk + (i + EDGE * j) * SWEEPERS + t;
				float flux = (source[zone * SWEEPERS + t] + *x + *y + *z) / (sigma[zone] + 3.f); // kripke: fix
				psi[zone * SWEEPERS + t] = flux;
				*x = 2 * flux - *x; // kripke: fix
				*y = 2 * flux - *y; // kripke: fix
				*z = 2 * flux - *z; // kripke: fix
			}
}

/* The faces along i and j stay in registers, and the sources of a row are brought together. */
__global__ void sweep_after(const float *__restrict__ source, const float *__restrict__ sigma,
                            float *__restrict__ psi, const float *__restrict__ fi,
                            const float *__restrict__ fj, float *__restrict__ fk)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	for (int k = 0; k < EDGE; ++k) {
		float y[EDGE];
#pragma unroll
		for (int i = 0; i < EDGE; ++i)
			y[i] = fj[(i + EDGE * k) * SWEEPERS + t];
#pragma unroll 1
		for (int j = 0; j < EDGE; ++j) {
			float x = fi[(j + EDGE * k) * SWEEPERS + t], z[EDGE], from[EDGE];
#pragma unroll
			for (int i = 0; i < EDGE; ++i) {
				z[i] = fk[(i + EDGE * j) * SWEEPERS + t];
				from[i] = source[(i + EDGE * (j + EDGE * k)) * SWEEPERS + t];
			}
#pragma unroll
			for (int i = 0; i < EDGE; ++i) {
				int zone = i + EDGE * (j + EDGE * k);
				float flux = (from[i] + x + y[i] + z[i]) / (sigma[zone] + 3.f);
				psi[zone * SWEEPERS + t] = flux;
				x = 2 * flux - x;
				y[i] = 2 * flux - y[i];
				fk[(i + EDGE * j) * SWEEPERS + t] = 2 * flux - z[i];
			}
		}
	}
}

__global__ void sweep_reset(float *fi, float *fj, float *fk)
{
	size_t i = blockIdx.x * blockDim.x + threadIdx.x;
	for (; i < (size_t)EDGE * EDGE * SWEEPERS; i += gridDim.x * blockDim.x)
		fi[i] = fj[i] = fk[i] = 0.5f;
}

/* Like LlamaRMSNorm with float16 in and float8 out. */
enum { ROWS = 8192, HIDDEN = 4096, NORM_THREADS = 256 };

static __device__ float block_sum(float x)
{
	__shared__ float parts[NORM_THREADS / 32];
	for (int step = 16; step; step /= 2)
		x += __shfl_xor_sync(~0u, x, step);
	if (threadIdx.x % 32 == 0)
		parts[threadIdx.x / 32] = x;
	__syncthreads();
	float sum = 0;
	for (int w = 0; w < NORM_THREADS / 32; ++w)
		sum += parts[w];
	return sum;
}

/* A number at a time: 2-byte loads, a conversion each, 1-byte stores. */
__global__ void norm_before(const __half *in, const __half *weight, __nv_fp8_e4m3 *out)
{
	const __half *row = in + (size_t)blockIdx.x * HIDDEN;
	float squares = 0;
#pragma unroll 1
	for (int i = threadIdx.x; i < HIDDEN; i += NORM_THREADS) {
		float x = __half2float(row[i]); // rmsnorm: fix
		squares += x * x;               // rmsnorm: fix
	}
	float scale = rsqrtf(block_sum(squares) / HIDDEN + 1e-5f);
#pragma unroll 1
	for (int i = threadIdx.x; i < HIDDEN; i += NORM_THREADS)
		out[(size_t)blockIdx.x * HIDDEN + i] = __nv_fp8_e4m3(__half2float(row[i]) * scale * __half2float(weight[i])); // rmsnorm: fix
}

/* Eight numbers at a time, which stay in registers. */
__global__ void norm_after(const __half *in, const __half *weight, __nv_fp8_e4m3 *out)
{
	enum { GROUPS = HIDDEN / NORM_THREADS / 8 };
	const uint4 *row = (const uint4 *)(in + (size_t)blockIdx.x * HIDDEN);
	uint4 words[GROUPS], weights[GROUPS];
	float squares = 0;
#pragma unroll
	for (int g = 0; g < GROUPS; ++g) {
		words[g] = row[g * NORM_THREADS + threadIdx.x];
		weights[g] = ((const uint4 *)weight)[g * NORM_THREADS + threadIdx.x];
	}
#pragma unroll
	for (int g = 0; g < GROUPS; ++g)
#pragma unroll
		for (int k = 0; k < 4; ++k) {
			float2 x = __half22float2(((const __half2 *)&words[g])[k]);
			squares += x.x * x.x + x.y * x.y;
		}
	float scale = rsqrtf(block_sum(squares) / HIDDEN + 1e-5f);
#pragma unroll
	for (int g = 0; g < GROUPS; ++g) {
		__nv_fp8x2_storage_t bytes[4];
#pragma unroll
		for (int k = 0; k < 4; ++k) {
			float2 x = __half22float2(((const __half2 *)&words[g])[k]);
			float2 w = __half22float2(((const __half2 *)&weights[g])[k]);
			float2 y = { x.x * scale * w.x, x.y * scale * w.y };
			bytes[k] = __nv_cvt_float2_to_fp8x2(y, __NV_SATFINITE, __NV_E4M3);
		}
		((uint2 *)(out + (size_t)blockIdx.x * HIDDEN))[g * NORM_THREADS + threadIdx.x] =
			*(uint2 *)bytes;
	}
}

/* Halves whose squares add up without rounding, so that the order of additions does not matter. */
static __half *device_halves(size_t count, int step)
{
	std::vector<__half> host(count);
	for (size_t i = 0; i < count; ++i)
		host[i] = __float2half((float)((int)(i * step % 31) - 15) / 16);
	__half *array = device_new<__half>(count);
	CHECK(cudaMemcpy(array, host.data(), count * sizeof(__half), cudaMemcpyHostToDevice));
	return array;
}

/* No headroom: memory is busy all the time. The "fix" loads 32 bytes at once. */
enum { TRIAD = 1 << 25 };
__global__ void triad_before(const float *a, const float *b, float *c)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	c[i] = a[i] + 3.f * b[i];
}
__global__ void triad_after(const float *__restrict__ a, const float *__restrict__ b, float *c)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float4 x = ((const float4 *)a)[i], y = ((const float4 *)b)[i];
	((float4 *)c)[i] =
		make_float4(x.x + 3.f * y.x, x.y + 3.f * y.y, x.z + 3.f * y.z, x.w + 3.f * y.w);
}

/* No headroom: the FP32 units are busy all the time. The "fix" has twice as many chains. */
enum { CHAINS = 16, STEPS = 2048, FMA_BLOCKS = 132 * 8, FMA_THREADS = 256 };
template <int AT_ONCE> static __device__ __forceinline__ void fma_chains(float *out, float a, float b)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	for (int first = 0; first < CHAINS; first += AT_ONCE) {
		float x[AT_ONCE];
#pragma unroll
		for (int c = 0; c < AT_ONCE; ++c)
			x[c] = (float)(t % 64 + first + c);
#pragma unroll 8
		for (int i = 0; i < STEPS; ++i)
#pragma unroll
			for (int c = 0; c < AT_ONCE; ++c)
				x[c] = fmaf(x[c], a, b);
#pragma unroll
		for (int c = 0; c < AT_ONCE; ++c)
			out[(first + c) * (FMA_BLOCKS * FMA_THREADS) + t] = x[c];
	}
}
__global__ void fma_before(float *out, float a, float b)
{
	fma_chains<8>(out, a, b);
}
__global__ void fma_after(float *out, float a, float b)
{
	fma_chains<16>(out, a, b);
}

static atom *device_atoms(size_t count, unsigned seed)
{
	std::vector<atom> host(count);
	for (size_t i = 0; i < count; ++i) {
		unsigned r = (unsigned)(i + 1) * 2654435761u * seed;
		host[i] = { (r & 255) / 16.f, (r >> 8 & 255) / 16.f, (r >> 16 & 255) / 16.f,
			    (int)(r >> 24) % KINDS };
	}
	atom *array = device_new<atom>(count);
	CHECK(cudaMemcpy(array, host.data(), count * sizeof(atom), cudaMemcpyHostToDevice));
	return array;
}

void pairs_apps(pairs &all)
{
	{
		atom *protein = device_atoms(PROTEIN, 3), *ligand = device_atoms(LIGAND, 7);
		kind *kinds = (kind *)device_random<float>(KINDS * 2, 0.1, 2, 21);
		pose *poses = (pose *)device_random<float>(POSES * 5, -1, 1, 22);
		float *x = device_new<float>(POSES), *y = device_new<float>(POSES);
		unsigned blocks = POSES / 128;
		all.push_back({ "minibude",
		                [=] { bude_before<<<blocks, 128>>>(protein, ligand, kinds, poses, x); },
		                [=] { bude_after<<<blocks, 128>>>(protein, ligand, kinds, poses, y); },
		                [=] { return difference(x, y, POSES); }, 1e-3 });
	}
	{
		size_t zones = EDGE * EDGE * EDGE, face = (size_t)EDGE * EDGE * SWEEPERS;
		float *source = device_random<float>(zones * SWEEPERS, 0, 1, 23);
		float *sigma = device_random<float>(zones, 1, 2, 24);
		float *x = device_new<float>(zones * SWEEPERS), *y = device_new<float>(zones * SWEEPERS);
		float *f[6];
		for (auto &one : f)
			one = device_new<float>(face);
		/* What a sweep leaves behind is where the next begins; for the comparison both
		 * begin with the same. */
		auto before = [=] { sweep_before<<<SWEEPERS / 256, 256>>>(source, sigma, x, f[0], f[1], f[2]); };
		auto after = [=] { sweep_after<<<SWEEPERS / 256, 256>>>(source, sigma, y, f[3], f[4], f[5]); };
		all.push_back({ "kripke", before, after,
		                [=] {
			                sweep_reset<<<1024, 256>>>(f[0], f[1], f[2]);
			                sweep_reset<<<1024, 256>>>(f[3], f[4], f[5]);
			                before();
			                after();
			                CHECK(cudaDeviceSynchronize());
			                return difference(x, y, zones * SWEEPERS);
		                },
		                1e-4 });
	}
	{
		size_t count = (size_t)ROWS * HIDDEN;
		__half *in = device_halves(count, 7), *weight = device_halves(HIDDEN, 11);
		auto *x = device_new<__nv_fp8_e4m3>(count), *y = device_new<__nv_fp8_e4m3>(count);
		all.push_back({ "rmsnorm", [=] { norm_before<<<ROWS, NORM_THREADS>>>(in, weight, x); },
		                [=] { norm_after<<<ROWS, NORM_THREADS>>>(in, weight, y); },
		                [=] { return difference(x, y, count); }, 0 });
	}
	{
		float *a = device_random<float>(TRIAD, 0, 1, 25), *b = device_random<float>(TRIAD, 0, 1, 26);
		float *x = device_new<float>(TRIAD), *y = device_new<float>(TRIAD);
		all.push_back({ "triad", [=] { triad_before<<<TRIAD / 256, 256>>>(a, b, x); },
		                [=] { triad_after<<<TRIAD / 1024, 256>>>(a, b, y); },
		                [=] { return difference(x, y, TRIAD); }, 0 });
	}
	{
		size_t count = (size_t)CHAINS * FMA_BLOCKS * FMA_THREADS;
		float *x = device_new<float>(count), *y = device_new<float>(count);
		all.push_back({ "fma", [=] { fma_before<<<FMA_BLOCKS, FMA_THREADS>>>(x, .999f, .001f); },
		                [=] { fma_after<<<FMA_BLOCKS, FMA_THREADS>>>(y, .999f, .001f); },
		                [=] { return difference(x, y, count); }, 0 });
	}
}

int main(int argc, char **argv)
{
	pairs all;
	pairs_loops(all);
	pairs_apps(all);
	return run_pairs(argc, argv, all);
}
