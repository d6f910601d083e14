/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb needs of CUPTI's range profiler, of its PM sampling and of the host's side of both, as
 * its headers of CUDA 12.8, 13.0 and 13.5 have it. Declared here because the header of the host's
 * side needs C++ in 13.0, and because `plumb doctor`, which is built without CUDA's headers, asks
 * for passes. Structures begin with their size, up to the last member that the caller knows.
 * Members that later releases added at the end (13.4: how caches are treated before a pass) are
 * left out, and keep their meaning of before. counters.c, series.c and host.c compare with the
 * headers.
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
	PLUMB_COUNTING_SAMPLES = 1,       /* CUPTI_PROFILER_TYPE_PM_SAMPLING */
	PLUMB_COUNTING_AUTO_RANGE = 1,    /* CUPTI_AutoRange: each launch is a range */
	PLUMB_COUNTING_KERNEL_REPLAY = 2, /* CUPTI_KernelReplay */
	PLUMB_SAMPLING_BY_CLOCK = 0,      /* CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL */
	PLUMB_SAMPLING_BY_TIME = 1,       /* CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL */
	PLUMB_SAMPLING_KEEP_OLDEST = 0,   /* CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_… */
	PLUMB_SAMPLING_IMAGE_FULL = 1,    /* CUPTI_PM_SAMPLING_DECODE_STOP_REASON_… */
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

struct plumb_sampling_enable {
	size_t size;
	void *priv;
	size_t device;
	void *sampler; /* out */
};

/* Of Disable, Start and Stop. */
struct plumb_sampling_plain {
	size_t size;
	void *priv;
	void *sampler;
};

struct plumb_sampling_config {
	size_t size;
	void *priv;
	void *sampler;
	size_t config_bytes;
	const uint8_t *config;
	size_t hardware_bytes;
	uint64_t interval;
	uint32_t trigger, append;
};

struct plumb_sampling_decode {
	size_t size;
	void *priv;
	void *sampler;
	uint8_t *image;
	size_t bytes;
	uint32_t stopped; /* out: why */
	uint8_t overflow; /* out */
};

struct plumb_sampling_availability {
	size_t size;
	void *priv;
	size_t device;
	size_t bytes; /* out, if there is no image */
	uint8_t *image;
};

struct plumb_sampling_image_size {
	size_t size;
	void *priv;
	void *sampler;
	const char **names;
	size_t count;
	uint32_t most;
	size_t bytes; /* out */
};

struct plumb_sampling_image {
	size_t size;
	void *priv;
	void *sampler;
	size_t bytes;
	uint8_t *image;
};

struct plumb_sampling_info {
	size_t size;
	void *priv;
	const uint8_t *image;
	size_t bytes;
	size_t total, populated, completed; /* out */
};

struct plumb_sampling_sample {
	size_t size;
	void *priv;
	void *sampler;
	const uint8_t *image;
	size_t bytes;
	size_t index;
	uint64_t start, end; /* out */
};

/* X(name after "cupti", its parameters, the last member of them) */
#define PLUMB_HOST_FUNCTIONS(X)                                                                    \
	X(ProfilerInitialize, plumb_profiler_begin, priv)                                          \
	X(DeviceGetChipName, plumb_profiler_chip, name)                                            \
	X(ProfilerHostInitialize, plumb_host_begin, host)                                          \
	X(ProfilerHostDeinitialize, plumb_host_end, host)                                          \
	X(ProfilerHostGetMetricProperties, plumb_host_metric, type)                                \
	X(ProfilerHostConfigAddMetrics, plumb_host_add, count)                                     \
	X(ProfilerHostGetConfigImageSize, plumb_host_config_size, bytes)                           \
	X(ProfilerHostGetConfigImage, plumb_host_config, config)                                   \
	X(ProfilerHostGetNumOfPasses, plumb_host_passes, passes)                                   \
	X(ProfilerHostEvaluateToGpuValues, plumb_host_evaluate, values)

#define PLUMB_RANGE_FUNCTIONS(X)                                                                   \
	X(ProfilerGetCounterAvailability, plumb_profiler_availability, image)                      \
	X(RangeProfilerEnable, plumb_range_enable, profiler)                                       \
	X(RangeProfilerDisable, plumb_range_plain, profiler)                                       \
	X(RangeProfilerSetConfig, plumb_range_config, target_level)                                \
	X(RangeProfilerStart, plumb_range_plain, profiler)                                         \
	X(RangeProfilerStop, plumb_range_stop, complete)                                           \
	X(RangeProfilerDecodeData, plumb_range_decode, dropped)                                    \
	X(RangeProfilerGetCounterDataSize, plumb_range_image_size, bytes)                          \
	X(RangeProfilerCounterDataImageInitialize, plumb_range_image, image)                       \
	X(RangeProfilerGetCounterDataInfo, plumb_range_info, ranges)

#define PLUMB_SAMPLING_FUNCTIONS(X)                                                                \
	X(PmSamplingEnable, plumb_sampling_enable, sampler)                                        \
	X(PmSamplingDisable, plumb_sampling_plain, sampler)                                        \
	X(PmSamplingSetConfig, plumb_sampling_config, append)                                      \
	X(PmSamplingStart, plumb_sampling_plain, sampler)                                          \
	X(PmSamplingStop, plumb_sampling_plain, sampler)                                           \
	X(PmSamplingDecodeData, plumb_sampling_decode, overflow)                                   \
	X(PmSamplingGetCounterAvailability, plumb_sampling_availability, image)                    \
	X(PmSamplingGetCounterDataSize, plumb_sampling_image_size, bytes)                          \
	X(PmSamplingCounterDataImageInitialize, plumb_sampling_image, image)                       \
	X(PmSamplingGetCounterDataInfo, plumb_sampling_info, completed)                            \
	X(PmSamplingCounterDataGetSampleInfo, plumb_sampling_sample, end)

/* Layouts by number, for compilers of 64-bit machines. */
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_host_begin, host) == 48, "host begin");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_host_metric, type) == 60, "metric");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_host_evaluate, values) == 72, "evaluate");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_enable, profiler) == 32, "enable");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_config, target_level) == 90, "config");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_stop, complete) == 41, "stop");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_range_image_size, bytes) == 64, "image size");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_sampling_config, append) == 64, "sampling config");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_sampling_decode, overflow) == 45, "decode");
_Static_assert(PLUMB_PARAMS_SIZE(struct plumb_sampling_sample, end) == 64, "sample");

#endif
