/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in libcuda.so.1: what a test sets, and what the device says of itself. See
 * README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* ---- scenario ---- */

static struct {
	const char *key;
	long long value;
} values[] = {
	{ "devices", 1 },
	{ "capability", 90 },
	{ "clock", 0 },
	{ "version", 0 },
	{ "subscribe", 0 },
	{ "enable", 0 },
	{ "timestamp", 0 },
	{ "fail", 0 },
	{ "lose", 0 },
	{ "drop", 0 },
	{ "duplicate", 0 },
	{ "reverse", 0 },
	{ "foreign", 0 },
	{ "zero", 0 },
	{ "unknown", 0 },
	{ "late", 0 },
	{ "buffer_records", 0 },
	{ "hang", 0 },
	{ "flush_on_caller", 0 },
	{ "stride", 1 },
	{ "correlation", 1 },
	{ "way", 0 },
	{ "slow", 0 },
	{ "reuse", 0 },
	{ "pc_refuse", 0 },
	{ "pc_batch", 0 },
	{ "pc_full", 0 },
	{ "pc_dropped", 0 },
	{ "pc_system", 0 },
	{ "pc_disjoint", 0 },
	{ "pc_names", 0 },
	{ "unreached", 0 },
	{ "count_refuse", 0 },
	{ "count_lacks", 0 },
	{ "count_us", 0 },
	{ "series_refuse", 0 },
	{ "series_pass", 16 },
	{ "series_full", 0 },
	{ "series_places", 0 },
	{ "series_skew", 0 },
	/* counters */
	{ "capturing", 0 },
	{ "count_enabled", 0 },
	{ "count_passes", 0 },
	{ "count_evaluated", 0 },
	{ "count_captured", 0 },
	{ "series_enabled", 0 },
	{ "series_starts", 0 },
	{ "series_decodings", 0 },
	{ "launched", 0 },
	{ "records", 0 },
	{ "delivered", 0 },
	{ "requested", 0 },
	{ "completed", 0 },
	{ "subscribed", 0 },
	{ "enabled", 0 },
	{ "callbacks", 0 },
	{ "modules", 0 },
	{ "pc_enabled", 0 },
	{ "pc_fetches", 0 },
	{ "pc_period", 0 },
};

long long *
mock_value(const char *key)
{
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (!strcmp(values[i].key, key))
			return &values[i].value;
	return NULL;
}

MOCK_EXPORT int
mock_set(const char *key, long long value)
{
	long long *at = mock_value(key);
	if (!at)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(at, value, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

MOCK_EXPORT long long
mock_get(const char *key)
{
	long long *at = mock_value(key);
	return at ? __atomic_load_n(at, __ATOMIC_SEQ_CST) : -1;
}

static __attribute__((constructor)) void
read_scenario(void)
{
	const char *text = getenv("PLUMB_MOCK");
	char key[64];
	long long value;
	for (; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
		if (sscanf(text, "%63[^=,]=%lld", key, &value) != 2 || mock_set(key, value))
			fprintf(stderr, "mock: PLUMB_MOCK: bad item at \"%s\"\n", text);
}

/* ---- the device ---- */

CUresult CUDAAPI
cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetCount(int *count)
{
	*count = (int)mock_get("devices");
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGet(CUdevice *device, int ordinal)
{
	if (!mock_is_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	*device = ordinal;
	return ordinal < mock_get("devices") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI
cuDeviceGetName(char *name, int length, CUdevice device)
{
	(void)device;
	snprintf(name, (size_t)length, "NVIDIA Mock GPU");
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = 80ull << 30;
	return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult CUDAAPI
cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	for (int i = 0; i < 16; i++)
		uuid->bytes[i] = (char)(0xa0 + i);
	uuid->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	int capability = (int)mock_get("capability");
	(void)device;
	switch ((int)attribute) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = capability / 10;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = capability % 10;
		break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		*value = 32;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = 132;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*value = 2048;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*value = 32;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		*value = 233472;
		break;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		*value = 1980000;
		break;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
		*value = 3201000;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}
