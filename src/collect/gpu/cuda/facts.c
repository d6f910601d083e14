/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does not change while the program runs: devices and versions. All on the service thread,
 * after the program has initialised CUDA.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/gpu/cuda/runtime.h"

/* ---- devices ---- */

/* An attribute of a device, or UNKNOWN. */
static uint32_t
read_attribute(CUdevice device, CUdevice_attribute which, uint32_t unknown)
{
	int value;
	if (!plumb_driver.cuDeviceGetAttribute ||
	    plumb_driver.cuDeviceGetAttribute(&value, which, device) != CUDA_SUCCESS || value < 0)
		return unknown;
	return (uint32_t)value;
}

static void
limits_of(CUdevice device, struct plumb_occupancy_limits *limits)
{
	*limits = (struct plumb_occupancy_limits){
		.major = read_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
		.minor = read_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
		.warp = read_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
		.threads = read_attribute(device,
		                          CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0),
		.blocks = read_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
		                         0),
		.registers = read_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0),
		.shared = read_attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0),
		.shared_reserved = read_attribute(
			device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0),
	};
}

void
plumb_cuda_describe(uint32_t ordinal, struct plumb_record_device *device, char name[256],
                    struct plumb_occupancy_limits *limits)
{
	CUdevice handle;
	CUuuid uuid;
	size_t bytes;
	*device = (struct plumb_record_device){
		.ordinal = ordinal,
		.capability_major = UINT32_MAX,
		.capability_minor = UINT32_MAX,
		.multiprocessors = UINT32_MAX,
		.warps_per_multiprocessor = UINT32_MAX,
		.clock_khz = UINT32_MAX,
		.memory_clock_khz = UINT32_MAX,
		.memory_bytes = UINT64_MAX,
	};
	*limits = (struct plumb_occupancy_limits){ 0 };
	name[0] = '\0';
	if (!plumb_driver.cuDeviceGet ||
	    plumb_driver.cuDeviceGet(&handle, (int)ordinal) != CUDA_SUCCESS)
		return;
	if (!plumb_driver.cuDeviceGetName ||
	    plumb_driver.cuDeviceGetName(name, 256, handle) != CUDA_SUCCESS)
		name[0] = '\0';
	name[255] = '\0';
	if (plumb_driver.cuDeviceGetUuid &&
	    plumb_driver.cuDeviceGetUuid(&uuid, handle) == CUDA_SUCCESS)
		memcpy(device->uuid, uuid.bytes, sizeof device->uuid);
	if (plumb_driver.cuDeviceTotalMem &&
	    plumb_driver.cuDeviceTotalMem(&bytes, handle) == CUDA_SUCCESS)
		device->memory_bytes = bytes;
	limits_of(handle, limits);
	if (limits->major) {
		device->capability_major = limits->major;
		device->capability_minor = limits->minor;
	}
	device->multiprocessors =
		read_attribute(handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, UINT32_MAX);
	if (limits->warp && limits->threads)
		device->warps_per_multiprocessor = limits->threads / limits->warp;
	device->clock_khz = read_attribute(handle, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, UINT32_MAX);
	device->memory_clock_khz =
		read_attribute(handle, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, UINT32_MAX);
}

/* ---- versions ---- */

/* Writes KEY once. */
static void
write_fact(struct plumb_thread *thread, bool *said, const char *key, const char *value)
{
	plumb_environment(thread, key, value);
	*said = true;
}

static void
release_text(int version, char text[32])
{
	snprintf(text, 32, "%d.%d", version / 1000, version % 1000 / 10); /* 13000 is 13.0 */
}

/* The driver's own version, e.g. 580.95.05: the kernel module tells it. */
static void
driver_fact(struct plumb_thread *thread, bool *said)
{
	char text[512], version[64];
	int fd = open("/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	*said = true;
	if (bytes <= 0)
		return;
	text[bytes] = '\0';
	for (const char *at = text; *at; at++) {
		unsigned a, b;
		if (*at >= '0' && *at <= '9' && at != text && at[-1] == ' ' &&
		    sscanf(at, "%3u.%3u", &a, &b) == 2 && a >= 100) {
			snprintf(version, sizeof version, "%.*s", (int)strspn(at, "0123456789."),
			         at);
			write_fact(thread, said, "gpu.driver", version);
			return;
		}
	}
}

static bool
runtime_version(void *function, char text[32])
{
	int v;
	if (((int (*)(int *))function)(&v) != 0)
		return false;
	release_text(v, text);
	return true;
}

static bool
cudnn_version(void *function, char text[32])
{
	size_t v = ((size_t (*)(void))function)(); /* 90100 is 9.1.0, 8902 is 8.9.2 */
	size_t major = v >= 90000 ? v / 10000 : v / 1000, rest = v >= 90000 ? v % 10000 : v % 1000;
	snprintf(text, 32, "%zu.%zu.%zu", major, rest / 100, rest % 100);
	return true;
}

static bool
nccl_version(void *function, char text[32])
{
	int v;
	if (((int (*)(int *))function)(&v) != 0)
		return false;
	/* 22703 is 2.27.3, before 2.9 2804 is 2.8.4 */
	int major = v >= 10000 ? v / 10000 : v / 1000, rest = v >= 10000 ? v % 10000 : v % 1000;
	snprintf(text, 32, "%d.%d.%d", major, rest / 100, rest % 100);
	return true;
}

static int
read_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
		*(unsigned long long *)adds = info->dlpi_adds;
	return 1;
}

unsigned long long
plumb_libraries_added(void)
{
	unsigned long long adds = 0;
	dl_iterate_phdr(read_adds, &adds);
	return adds;
}

/* Versions of libraries, which may be loaded late: looked for when some library was loaded. */
static struct {
	const char *library, *function, *key;
	bool (*version)(void *function, char text[32]);
	bool said;
} facts[] = {
	{ "libcudart", "cudaRuntimeGetVersion", "cuda.runtime", runtime_version, false },
	{ "libcudnn.so", "cudnnGetVersion", "cudnn.version", cudnn_version, false },
	{ "libnccl.so", "ncclGetVersion", "nccl.version", nccl_version, false },
};
static unsigned long long seen; /* libraries ever loaded when they were looked for */
static struct {
	bool cupti, kernel_module, driver;
} told;

static void
library_facts(struct plumb_thread *thread)
{
	unsigned long long adds = plumb_libraries_added();
	char path[4096], text[32];
	if (adds == seen)
		return;
	seen = adds;
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
		if (facts[i].said || !plumb_find_library(facts[i].library, path, sizeof path))
			continue;
		void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
		void *function = library ? plumb_real_dlsym(library, facts[i].function) : NULL;
		if (function && facts[i].version(function, text))
			write_fact(thread, &facts[i].said, facts[i].key, text);
		if (library)
			dlclose(library);
	}
}

static void
cupti_fact(struct plumb_thread *thread, bool *said)
{
	char text[4200];
	snprintf(text, sizeof text, "%u (%s)", plumb_cupti.version, plumb_cupti.path);
	write_fact(thread, said, "cuda.cupti", text);
}

void
plumb_cuda_facts(struct plumb_thread *thread)
{
	char text[32];
	int version = 0;
	if (!told.cupti)
		cupti_fact(thread, &told.cupti);
	if (!told.kernel_module)
		driver_fact(thread, &told.kernel_module);
	if (!told.driver && plumb_driver.cuDriverGetVersion &&
	    plumb_driver.cuDriverGetVersion(&version) == CUDA_SUCCESS) {
		release_text(version, text);
		write_fact(thread, &told.driver, "cuda.driver", text);
	}
	library_facts(thread);
}

void
plumb_cuda_facts_renew(void)
{
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		facts[i].said = false;
	seen = 0;
	memset(&told, 0, sizeof told);
}
