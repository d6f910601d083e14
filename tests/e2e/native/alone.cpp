// SPDX-License-Identifier: Apache-2.0
// A program of C++ as nvcc makes it: for each kernel a stub of the same name, which calls the runtime. The
// runtime (alone_runtime.c) is another file, as libcudart_static.a is.
#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" int cudaLaunchKernel(const char *name, uint64_t ns);
extern "C" int cudaMemcpy(uint64_t bytes);

namespace solver {

// The stubs.
__attribute__((noinline)) void
smooth(const float *, int)
{
	cudaLaunchKernel("_ZN6solver6smoothEPKfi", 30000);
	asm volatile("");
}

__attribute__((noinline)) void
residual(const float *, int)
{
	cudaLaunchKernel("_ZN6solver8residualEPKfi", 10000);
	asm volatile("");
}

template <typename T> struct Field {
	std::vector<T> values;
	__attribute__((noinline)) void relax(int times)
	{
		for (int i = 0; i < times; i++)
			smooth(values.data(), i); // RELAX
		asm volatile("");
	}
};

__attribute__((noinline)) void
step(Field<float> &field)
{
	field.relax(2);
	residual(field.values.data(), 1); // STEP
	asm volatile("");
}

} // namespace solver

int
main(int count, char **arguments)
{
	solver::Field<float> field{ std::vector<float>(16) };
	int steps = count > 1 ? atoi(arguments[1]) : 10;

	cudaMemcpy(4096);
	for (int i = 0; i < steps; i++)
		solver::step(field);
	return 0;
}
