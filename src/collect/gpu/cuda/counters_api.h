/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb needs of CUPTI's range profiler and of its host side, as its headers of CUDA 12.8,
 * 13.0 and 13.5 have it. Declared here because the header of the host's side needs C++ in 13.0, and
 * because `plumb doctor`, which is built without CUDA's headers, asks for passes. Structures begin
 * with their size, up to the last member that the caller knows. Members that later releases added
 * at the end (13.4: how caches are treated before a pass) are left out, and keep their meaning of
 * before. counters.c compares with the headers.
 *
 * All functions return a CUptiResult, 0 for success. The tests' stand-in for CUPTI is built with
 * this file, too.
 */
#ifndef PLUMB_COLLECT_GPU_CUDA_COUNTERS_API_H
#define PLUMB_COLLECT_GPU_CUDA_COUNTERS_API_H

#include <stddef.h>
#include <stdint.h>

#define PLUMB_PARAMS_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

enum {
	PLUMB_COUNTING_RANGES = 0,        /* CUPTI_PROFILER_TYPE_RANGE_PROFILER */
	PLUMB_COUNTING_AUTO_RANGE = 1,    /* CUPTI_AutoRange: each launch is a range */
	PLUMB_COUNTING_KERNEL_REPLAY = 2, /* CUPTI_KernelReplay */
};

struct plumb_profiler_begin {
	size_t size;
	void *priv;
};

struct plumb_profiler_chip {
	size_t size;
	void *priv;
	size_t device;
	const char *name; /* out */
};

struct plumb_profiler_availability {
	size_t size;
	void *priv;
	struct CUctx_st *context;
	size_t bytes; /* out, if there is no image */
	uint8_t *image;
};

struct plumb_host_begin {
	size_t size;
	void *priv;
	uint32_t type;
	const char *chip;
	const uint8_t *availability;
	void *host; /* out */
};

struct plumb_host_end {
	size_t size;
	void *priv;
	void *host;
};

struct plumb_host_metric {
	size_t size;
	void *priv;
	void *host;
	const char *name;
	const char *description, *unit, *dimension; /* out */
	uint32_t type;
};

struct plumb_host_add {
	size_t size;
	void *priv;
	void *host;
	const char **names;
	size_t count;
};

struct plumb_host_config_size {
	size_t size;
	void *priv;
	void *host;
	size_t bytes; /* out */
};

struct plumb_host_config {
	size_t size;
	void *priv;
	void *host;
	size_t bytes;
	uint8_t *config;
};

struct plumb_host_passes {
	size_t size;
	void *priv;
	size_t bytes;
	uint8_t *config;
	size_t passes; /* out */
};

struct plumb_host_evaluate {
	size_t size;
	void *priv;
	void *host;
	const uint8_t *image;
	size_t bytes;
	size_t range;
	const char **names;
	size_t count;
	double *values;
};

struct plumb_range_enable {
	size_t size;
	void *priv;
	struct CUctx_st *context;
	void *profiler; /* out */
};

/* Also of Disable and Start. */
struct plumb_range_plain {
	size_t size;
	void *priv;
	void *profiler;
};

struct plumb_range_config {
	size_t size;
	void *priv;
	void *profiler;
	size_t config_bytes;
	const uint8_t *config;
	size_t image_bytes;
	uint8_t *image;
	uint32_t range, replay;
	size_t most;
	uint16_t levels, least_level;
	size_t pass;
	uint16_t target_level;
};

struct plumb_range_stop {
	size_t size;
	void *priv;
	void *profiler;
	size_t pass, target_level; /* out */
	uint8_t complete;          /* out: every pass has run */
};

struct plumb_range_decode {
	size_t size;
	void *priv;
	void *profiler;
	size_t dropped; /* out */
};

struct plumb_range_image_size {
	size_t size;
	void *priv;
	void *profiler;
	const char **names;
	size_t count;
	size_t most;
	uint32_t most_nodes;
	size_t bytes; /* out */
};

struct plumb_range_image {
	size_t size;
	void *priv;
	void *profiler;
	size_t bytes;
	uint8_t *image;
};

struct plumb_range_info {
	size_t size;
	void *priv;
	const uint8_t *image;
	size_t bytes;
	size_t ranges; /* out */
};

/* X(name after "cupti", its parameters, the last member of them) */
#define PLUMB_COUNTING_FUNCTIONS(X)                                                                \
	X(ProfilerInitialize, plumb_profiler_begin, priv)                                          \
	X(DeviceGetChipName, plumb_profiler_chip, name)                                            \
	X(ProfilerGetCounterAvailability, plumb_profiler_availability, image)                      \
	X(ProfilerHostInitialize, plumb_host_begin, host)                                          \
	X(ProfilerHostDeinitialize, plumb_host_end, host)                                          \
	X(ProfilerHostGetMetricProperties, plumb_host_metric, type)                                \
	X(ProfilerHostConfigAddMetrics, plumb_host_add, count)                                     \
	X(ProfilerHostGetConfigImageSize, plumb_host_config_size, bytes)                           \
	X(ProfilerHostGetConfigImage, plumb_host_config, config)                                   \
	X(ProfilerHostGetNumOfPasses, plumb_host_passes, passes)                                   \
	X(ProfilerHostEvaluateToGpuValues, plumb_host_evaluate, values)                            \
	X(RangeProfilerEnable, plumb_range_enable, profiler)                                       \
	X(RangeProfilerDisable, plumb_range_plain, profiler)                                       \
	X(RangeProfilerSetConfig, plumb_range_config, target_level)                                \
	X(RangeProfilerStart, plumb_range_plain, profiler)                                         \
	X(RangeProfilerStop, plumb_range_stop, complete)                                           \
	X(RangeProfilerDecodeData, plumb_range_decode, dropped)                                    \
	X(RangeProfilerGetCounterDataSize, plumb_range_image_size, bytes)                          \
	X(RangeProfilerCounterDataImageInitialize, plumb_range_image, image)                       \
	X(RangeProfilerGetCounterDataInfo, plumb_range_info, ranges)

/* Layouts by number, for compilers of 64-bit machines. */
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_host_begin, host) == 48, "host begin");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_host_metric, type) == 60, "metric");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_host_evaluate, values) == 72, "evaluate");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_enable, profiler) == 32, "enable");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_config, target_level) == 90, "config");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_stop, complete) == 41, "stop");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_image_size, bytes) == 64, "image size");

#endif
