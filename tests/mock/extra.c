/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-ins of libcudart, libcudnn and libnccl that tell a version: -DLIBRARY=1, 2, 3. */
#include <stddef.h>

#define MOCK_EXPORT __attribute__((visibility("default")))

#if LIBRARY == 1
MOCK_EXPORT int cudaRuntimeGetVersion(int *version);
int
cudaRuntimeGetVersion(int *version)
{
	*version = CUDART;
	return 0;
}
#elif LIBRARY == 2
MOCK_EXPORT size_t cudnnGetVersion(void);
size_t
cudnnGetVersion(void)
{
	return 91300;
}
#else
MOCK_EXPORT int ncclGetVersion(int *version);
int
ncclGetVersion(int *version)
{
	*version = 22703;
	return 0;
}
#endif
