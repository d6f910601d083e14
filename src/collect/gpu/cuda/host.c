/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/cuda/host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The header of the host's side in 13.0 wants C++: its layouts are checked by number. */
#if __has_include(<cupti_target.h>)
#include <cupti_target.h>
_Static_assert(offsetof(struct plumb_profiler_chip, name) ==
                       offsetof(CUpti_Device_GetChipName_Params, pChipName),
               "chip name");
#endif

PLUMB_HOST_FUNCTIONS(PLUMB_CUPTI_CALL)

/* CUPTI looks for the library of its host's side by its bare name, and packages of Python have it
 * in CUPTI's folder, which nobody searches. Once loaded, it is found. */
static void
load_library(void)
{
	Dl_info info;
	char path[4096];
	if (!dladdr((void *)plumb_cupti.GetVersion, &info) || !info.dli_fname)
		return;
	const char *end = strrchr(info.dli_fname, '/');
	if (end && snprintf(path, sizeof path, "%.*s/libnvperf_host.so",
	                    (int)(end - info.dli_fname), info.dli_fname) < (int)sizeof path)
		dlopen(path, RTLD_LAZY);
}

const char *
plumb_cuda_host_find(void)
{
	const char *missing = NULL;
	PLUMB_HOST_FUNCTIONS(PLUMB_CUPTI_FIND)
	if (!missing)
		load_library();
	return missing;
}

CUptiResult
plumb_cuda_host_chip(CUcontext context, uint32_t *device, const char **chip, const char **call)
{
	static _Atomic bool begun;
	struct plumb_profiler_begin begin = { 0 };
	CUptiResult result = CUPTI_SUCCESS;
	*call = "cuptiProfilerInitialize";
	if (!atomic_load(&begun))
		result = cupti_ProfilerInitialize(&begin);
	if (result != CUPTI_SUCCESS)
		return result;
	atomic_store(&begun, true);
	*device = 0;
	*call = "cuptiGetDeviceId";
	if (plumb_cupti.GetDeviceId)
		result = plumb_cupti.GetDeviceId(context, device);
	if (result != CUPTI_SUCCESS)
		return result;
	struct plumb_profiler_chip ask = { .device = *device };
	*call = "cuptiDeviceGetChipName";
	result = cupti_DeviceGetChipName(&ask);
	*chip = ask.name;
	return result;
}

CUptiResult
plumb_cuda_host_begin(struct plumb_cuda_host *host, uint32_t type, const char *chip,
                      const uint8_t *availability, const char **call)
{
	struct plumb_host_begin begin = {
		.type = type,
		.chip = chip,
		.availability = availability,
	};
	*call = "cuptiProfilerHostInitialize";
	CUptiResult result = cupti_ProfilerHostInitialize(&begin);
	if (result == CUPTI_SUCCESS)
		host->handle = begin.host;
	return result;
}

bool
plumb_cuda_host_knows(const struct plumb_cuda_host *host, const char *name)
{
	struct plumb_host_metric ask = { .host = host->handle, .name = name };
	return cupti_ProfilerHostGetMetricProperties(&ask) == CUPTI_SUCCESS;
}

CUptiResult
plumb_cuda_host_configure(struct plumb_cuda_host *host, char **names, unsigned count,
                          const char **call)
{
	struct plumb_host_add add = {
		.host = host->handle,
		.names = (const char **)names,
		.count = count,
	};
	*call = "cuptiProfilerHostConfigAddMetrics";
	CUptiResult result = cupti_ProfilerHostConfigAddMetrics(&add);
	if (result != CUPTI_SUCCESS)
		return result;
	struct plumb_host_config_size size = { .host = host->handle };
	*call = "cuptiProfilerHostGetConfigImageSize";
	result = cupti_ProfilerHostGetConfigImageSize(&size);
	if (result != CUPTI_SUCCESS)
		return result;
	host->config_bytes = size.bytes;
	host->config = calloc(1, size.bytes);
	if (!host->config)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	struct plumb_host_config config = {
		.host = host->handle,
		.bytes = size.bytes,
		.config = host->config,
	};
	*call = "cuptiProfilerHostGetConfigImage";
	result = cupti_ProfilerHostGetConfigImage(&config);
	if (result != CUPTI_SUCCESS)
		return result;
	struct plumb_host_passes passes = { .bytes = size.bytes, .config = host->config };
	*call = "cuptiProfilerHostGetNumOfPasses";
	result = cupti_ProfilerHostGetNumOfPasses(&passes);
	host->passes = passes.passes;
	return result;
}

CUptiResult
plumb_cuda_host_evaluate(const struct plumb_cuda_host *host, const uint8_t *image, size_t bytes,
                         size_t number, char **names, unsigned count, double *values)
{
	struct plumb_host_evaluate evaluate = {
		.host = host->handle,
		.image = image,
		.bytes = bytes,
		.range = number,
		.names = (const char **)names,
		.count = count,
		.values = values,
	};
	return cupti_ProfilerHostEvaluateToGpuValues(&evaluate);
}

void
plumb_cuda_host_end(struct plumb_cuda_host *host)
{
	if (host->handle) {
		struct plumb_host_end end = { .host = host->handle };
		cupti_ProfilerHostDeinitialize(&end);
	}
	free(host->config);
	*host = (struct plumb_cuda_host){ 0 };
}

void
plumb_cuda_host_lacks(char *text, size_t size, const char *what, const char *missing)
{
	snprintf(text, size, "%s: this CUPTI has no %s; the program has to use CUDA 12.8 or newer",
	         what, missing);
}

void
plumb_cuda_host_why(char *text, size_t size, const char *what, const char *call, CUptiResult result)
{
	if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
	    result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
		snprintf(text, size,
		         "%s: NVIDIA's driver lets only administrators read the GPU's counters "
		         "(ERR_NVGPUCTRPERM); run as root (a container with --cap-add=SYS_ADMIN), "
		         "or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0",
		         what);
	else
		snprintf(text, size, "%s: %s: %s", what, call, plumb_cupti_message(result));
}
