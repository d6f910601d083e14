/* SPDX-License-Identifier: Apache-2.0 */
/* What a program links in place of libcudart_static.a: functions of the runtime, on the stand-in
 * driver. It has no debug information, and so do NVIDIA's. */
#include <stdint.h>

#include "mock.h"

int cudaLaunchKernel(const char *name, uint64_t ns);
int cudaMemcpy(uint64_t bytes);
int cudart_launch(const char *name, uint64_t ns) __asm__("__cudart_launch");

__attribute__((noinline)) int
cudart_launch(const char *name, uint64_t ns)
{
	int result = mock_launch(name, ns);
	__asm__ volatile("");
	return result;
}

int
cudaLaunchKernel(const char *name, uint64_t ns)
{
	int result = cudart_launch(name, ns);
	__asm__ volatile("");
	return result;
}

int
cudaMemcpy(uint64_t bytes)
{
	struct mock_copy copy = { .from = MOCK_PAGEABLE,
		                  .to = MOCK_DEVICE,
		                  .bytes = bytes,
		                  .duration_ns = 5000,
		                  .blocking = 1 };
	return mock_copy(&copy);
}
