/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does not change while the program runs: devices and versions; and the readings of the
 * clocks. All on the service thread, after the program has initialised CUDA.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/gpu/cuda/runtime.h"

/* ---- devices ---- */

/* An attribute of a device, or UNKNOWN. */
static uint32_t
attribute(CUdevice device, CUdevice_attribute which, uint32_t unknown)
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
		.major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
		.minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
		.warp = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
		.threads = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0),
		.blocks = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0),
		.registers =
			attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0),
		.shared = attribute(device,
		                    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0),
		.shared_reserved =
			attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0),
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
		attribute(handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, UINT32_MAX);
	if (limits->warp && limits->threads)
		device->warps_per_multiprocessor = limits->threads / limits->warp;
	device->clock_khz = attribute(handle, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, UINT32_MAX);
	device->memory_clock_khz =
		attribute(handle, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, UINT32_MAX);
}

/* ---- versions ---- */

/* A function of a library that is loaded, or NULL. */
static void *
loaded(const char *library, const char *function)
{
	char path[4096];
	if (!plumb_find_library(library, path, sizeof path))
		return NULL;
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	return handle ? plumb_real_dlsym(handle, function) : NULL;
}

/* Writes KEY once. */
static void
fact(struct plumb_thread *thread, bool *said, const char *key, const char *value)
{
	plumb_environment(thread, key, value);
	*said = true;
}

static void
release_fact(struct plumb_thread *thread, bool *said, const char *key, int version)
{
	char text[32]; /* 13000 is 13.0 */
	snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
	fact(thread, said, key, text);
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
			fact(thread, said, "gpu.driver", version);
			return;
		}
	}
}

static void
cudnn_fact(struct plumb_thread *thread, bool *said)
{
	size_t (*get)(void) = (size_t (*)(void))loaded("libcudnn.so", "cudnnGetVersion");
	char text[32];
	if (!get)
		return;
	size_t v = get(); /* 90100 is 9.1.0, 8902 is 8.9.2 */
	size_t major = v >= 90000 ? v / 10000 : v / 1000, rest = v >= 90000 ? v % 10000 : v % 1000;
	snprintf(text, sizeof text, "%zu.%zu.%zu", major, rest / 100, rest % 100);
	fact(thread, said, "cudnn.version", text);
}

static void
nccl_fact(struct plumb_thread *thread, bool *said)
{
	int (*get)(int *) = (int (*)(int *))loaded("libnccl.so", "ncclGetVersion");
	char text[32];
	int v;
	if (!get || get(&v) != 0)
		return;
	/* 22703 is 2.27.3, before 2.9 2804 is 2.8.4 */
	int major = v >= 10000 ? v / 10000 : v / 1000, rest = v >= 10000 ? v % 10000 : v % 1000;
	snprintf(text, sizeof text, "%d.%d.%d", major, rest / 100, rest % 100);
	fact(thread, said, "nccl.version", text);
}

static void
cupti_fact(struct plumb_thread *thread, bool *said)
{
	char text[4200];
	snprintf(text, sizeof text, "%u (%s)", plumb_cupti.version, plumb_cupti.path);
	fact(thread, said, "cuda.cupti", text);
}

void
plumb_cuda_facts(struct plumb_thread *thread)
{
	static bool cupti, kernel_module, driver, runtime, cudnn, nccl;
	int version = 0;
	if (!cupti)
		cupti_fact(thread, &cupti);
	if (!kernel_module)
		driver_fact(thread, &kernel_module);
	if (!driver && plumb_driver.cuDriverGetVersion &&
	    plumb_driver.cuDriverGetVersion(&version) == CUDA_SUCCESS)
		release_fact(thread, &driver, "cuda.driver", version);
	if (!runtime) {
		int (*get)(int *) = (int (*)(int *))loaded("libcudart", "cudaRuntimeGetVersion");
		if (get && get(&version) == 0)
			release_fact(thread, &runtime, "cuda.runtime", version);
	}
	if (!cudnn)
		cudnn_fact(thread, &cudnn);
	if (!nccl)
		nccl_fact(thread, &nccl);
}

/* ---- clocks ---- */

/* One reading: the shortest of a few, as an interruption between the clocks spoils it. */
static bool
read_clocks(struct plumb_record_clock *best)
{
	best->uncertainty = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		struct timespec real;
		uint64_t gpu = 0, before = plumb_now();
		if (plumb_cupti.GetTimestamp(&gpu) != CUPTI_SUCCESS)
			return false;
		clock_gettime(CLOCK_REALTIME, &real);
		uint64_t after = plumb_now();
		if (after - before >= best->uncertainty)
			continue;
		best->monotonic = before + (after - before) / 2;
		best->realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
		best->gpu = gpu;
		best->uncertainty = after - before;
	}
	return true;
}

void
plumb_cuda_clocks(struct plumb_thread *thread, bool force)
{
	/* Eight readings, then eight at twice the distance, and so on: a day makes some hundred. */
	static uint64_t next, distance;
	static unsigned since;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_clock reading = { .device = 0 };
	uint64_t now = plumb_now();
	if ((!force && now < next) || !read_clocks(&reading))
		return;
	if (!distance)
		distance = (uint64_t)plumb_options()->flush_ms * 1000000u;
	if (++since == 8) {
		since = 0;
		distance *= 2;
	}
	next = now + distance;
	struct plumb_record_clock *record =
		plumb_arena_append(arena, PLUMB_RECORD_CLOCK, sizeof *record);
	if (!record) {
		plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
		return;
	}
	reading.head = record->head;
	*record = reading;
	plumb_arena_commit(arena, record);
}
