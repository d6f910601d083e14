// SPDX-License-Identifier: Apache-2.0
// Kernels for the decoder of machine code: README.md says how the files beside this one were made.

__device__ __noinline__ double
slow(double x, double y)
{
	return x / y;
}

__global__ void
chase(int *const *p, int *out, int n)
{
	int *const *at = p + threadIdx.x;
	for (int i = 0; i < n; i++)
		at = (int *const *)*at;
	*out = (int)(size_t)at;
}

__global__ void
transpose(float *out, const float *in, int width)
{
	__shared__ float tile[32][33];
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	for (int i = 0; i < 32; i += 8)
		tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
	__syncthreads();
	for (int i = 0; i < 32; i += 8)
		out[(y + i) * width + x] = tile[threadIdx.x][threadIdx.y + i];
}

__global__ void
mix(double *d, unsigned *counters, float *f, short *s)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double sum = d[i];
	for (int k = 16; k; k /= 2)
		sum += __shfl_xor_sync(~0u, sum, k);
	if (s[i] > 3)
		atomicAdd(&counters[i & 7], (unsigned)__popc(__ballot_sync(~0u, f[i] > 1.f)));
	f[i] = __sinf(f[i]) + rsqrtf((float)s[i]);
	d[i] = slow(sum, d[i + 1]);
	__threadfence();
	if (atomicCAS(counters, 1u, 2u) == 1u)
		atomicAdd(f, 2.f);
}

__global__ void
local(int *out, const int *in, int n)
{
	int mine[64];
	for (int i = 0; i < 64; i++)
		mine[i] = in[i * n];
	out[threadIdx.x] = mine[in[0] & 63] + mine[in[1] & 63];
}

__global__ void
multiply(float *c, const unsigned *a, const unsigned *b)
{
	float sum[4] = { 0, 0, 0, 0 };
	for (int k = 0; k < 16; k++)
		asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3},"
			     " {%4, %5}, {%6}, {%0, %1, %2, %3};"
			     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
			     : "r"(a[threadIdx.x + 64 * k]), "r"(a[threadIdx.x + 64 * k + 32]),
			       "r"(b[threadIdx.x + 32 * k]));
	for (int i = 0; i < 4; i++)
		c[threadIdx.x + 32 * i] = sum[i];
}

#if __CUDA_ARCH__ >= 800
__global__ void
copy_async(float4 *out, const float4 *in, int n)
{
	__shared__ float4 tile[2][128];
	unsigned at = (unsigned)__cvta_generic_to_shared(&tile[0][threadIdx.x]);
	for (int i = 0; i < n; i++) {
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;\n"
			     "cp.async.wait_group 1;" ::"r"(at + (i & 1) * 2048),
			     "l"(in + i * 128 + threadIdx.x));
		__syncthreads();
		out[i] = tile[(i + 1) & 1][threadIdx.x ^ 1];
	}
}
#endif

#if __CUDA_ARCH__ >= 900
__global__ void
copy_bulk(float *out, const float *in)
{
	__shared__ alignas(128) float tile[1024];
	__shared__ alignas(8) unsigned long long arrived;
	unsigned to = (unsigned)__cvta_generic_to_shared(tile);
	unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
	if (threadIdx.x == 0) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(barrier));
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
			     " [%0], [%1], 4096, [%2];" ::"r"(to),
			     "l"(in), "r"(barrier));
	}
	__syncthreads();
	asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
		     "@!p bra L;\n}" ::"r"(barrier));
	out[threadIdx.x] = tile[threadIdx.x] + 1.f;
}
#endif
