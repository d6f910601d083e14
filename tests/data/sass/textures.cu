// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces of all kinds, for the tests of the decoder.
using Texture = cudaTextureObject_t;
using Surface = cudaSurfaceObject_t;

__device__ float
sum(float4 v)
{
	return v.x + 2 * v.y + 3 * v.z + 4 * v.w;
}

extern "C" __global__ void
kinds(Texture t, float *to, float x, float y, float z, int layer)
{
	float all = tex1D<float4>(t, x).w + sum(tex2D<float4>(t, x, y)) + tex3D<float2>(t, x, y, z).y;
	all += tex1Dfetch<float>(t, layer) + sum(tex1DLayered<float4>(t, x, layer));
	all += tex2DLayered<float4>(t, x, y, layer).z + texCubemap<float>(t, x, y, z);
	all += sum(texCubemapLayered<float4>(t, x, y, z, layer));
	to[threadIdx.x] = all;
}

extern "C" __global__ void
levels(Texture t, float *to, float x, float y, float z, int layer)
{
	float2 dx = { x, y }, dy = { y, z };
	float all = tex1DLod<float4>(t, x, y).x + sum(tex2DLod<float4>(t, x, y, z));
	all += tex3DLod<float2>(t, x, y, z, x + y).y + sum(tex2DLayeredLod<float4>(t, x, y, layer, z));
	all += sum(tex2DGrad<float4>(t, x, y, dx, dy)) + tex1DGrad<float>(t, x, y, z);
	all += tex2DLayeredGrad<float4>(t, x, y, layer, dx, dy).w;
	to[threadIdx.x] = all;
}

extern "C" __global__ void
gathers(Texture t, float *to, bool *there, float x, float y)
{
	bool is_resident;
	float all = sum(tex2Dgather<float4>(t, x, y, 0)) + tex2Dgather<float4>(t, x, y, 3).z;
	all += sum(tex2D<float4>(t, x, y, &is_resident));
	there[threadIdx.x] = is_resident;
	to[threadIdx.x] = all;
}

/* Each thread has a texture of its own. */
extern "C" __global__ void
many(const Texture *t, float *to, float x, float y)
{
	to[threadIdx.x] = sum(tex2D<float4>(t[threadIdx.x], x, y)) + tex1D<float>(t[threadIdx.x], y);
}

extern "C" __global__ void
surfaces(Surface s, int4 *to, int x, int y, int z)
{
	int4 all = surf2Dread<int4>(s, x * 16, y);
	short2 two = surf3Dread<short2>(s, x * 4, y, z);
	all.x += surf1Dread<unsigned char>(s, x) + two.x + surf1DLayeredread<int>(s, x * 4, z);
	all.y += surf2DLayeredread<int2>(s, x * 8, y, z).y + two.y;
	surf2Dwrite(all, s, x * 16, y, cudaBoundaryModeClamp);
	surf1Dwrite((char)all.x, s, x, cudaBoundaryModeZero);
	surf3Dwrite(make_int2(all.y, all.z), s, x * 8, y, z);
	surf2DLayeredwrite((short)all.w, s, x * 2, y, z);
	asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y), "r"(all.x));
	asm volatile("sured.b.max.1d.u64.clamp [%0, {%1}], %2;" ::"l"(s), "r"(x), "l"((long long)y));
	asm volatile("sust.p.2d.v2.b32.trap [%0, {%1, %2}], {%3, %4};" ::"l"(s), "r"(x), "r"(y), "r"(all.x),
	             "r"(all.y));
	asm volatile("pmevent 3;");
	to[threadIdx.x] = all;
}

/* The reference value, offsets and questions that CUDA C++ has no word for. */
extern "C" __global__ void
asked(Texture t, float *to, float x, float y, int dx, int dy)
{
	float a, b, c, d;
	int width;

	asm volatile("tex.level.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7, {%8, %9}, %6;"
	             : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
	             : "l"(t), "f"(x), "f"(y), "f"(x), "r"(dx), "r"(dy));
	to[threadIdx.x] = a + b + c + d;
	asm volatile("tld4.g.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], {%7, %8}, %6;"
	             : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
	             : "l"(t), "f"(x), "f"(y), "r"(dx), "r"(dy));
	to[threadIdx.x + 32] = a * b * c * d;
	asm volatile("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(t));
	to[threadIdx.x + 64] = width;
}
