/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's injection hook: cuInit loads the library in CUDA_INJECTION64_PATH and calls this. It
 * is the moment to take CUPTI's slot: before any context exists. A library that was there before
 * plumb is loaded and called after it.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "collect/gpu/cuda/cuda.h"
#include "collect/monitor/framework.h"

PLUMB_EXPORT int InitializeInjection(void);

int
InitializeInjection(void)
{
	plumb_framework_offer(NULL);
	plumb_gpu_start(PLUMB_CUDA_DRIVER);
	const char *chained = getenv(PLUMB_ENV_CHAIN_CUDA);
	void *library = chained && *chained ? dlopen(chained, RTLD_LAZY | RTLD_LOCAL) : NULL;
	int (*initialize)(void) =
		library ? (int (*)(void))plumb_real_dlsym(library, "InitializeInjection") : NULL;
	if (initialize && initialize != InitializeInjection)
		initialize();
	return 1;
}
