/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in libcupti: the range profiler with kernel replay, and its host's side, as CUPTI has
 * them from CUDA 12.8 on. The chip is a GH100. What a launch of a kernel counts is what the test
 * said (mock_counter); other metrics are 0. Four metrics fit into a pass. Calls in a wrong order,
 * structures of a size that the release does not know, and ranges that are not there are refused.
 *
 * Nothing is computed, so nothing is put back between passes: the setting "count_passes" says how
 * often kernels ran.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcsampling.h"

#include "../../src/collect/gpu/cuda/counters_api.h"

#define DEVICES 8
#define RANGES 256
#define A_PASS 4 /* metrics */
#define MAGIC 0x706c756d62636e74u
#define COUNT(key, n) __atomic_fetch_add(mock_value(key), (n), __ATOMIC_SEQ_CST)

/* A session's hardware: what ran since the last decoding. */
struct profiler {
	CUcontext context;
	int configured, started;
	size_t most, passes, ran;
	uint8_t *image;
	const char *pending[RANGES];
};
struct image {
	uint64_t magic;
	size_t most, count;
	const char *functions[RANGES];
};
struct host {
	uint32_t type;
	size_t count;
	char names[64][128];
};
static struct profiler profilers[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Sizes are checked as CUPTI does: not smaller than the release's first layout. */
#define CHECK(params, last)                                                                        \
	if (!(params) || (params)->size < PLUMB_PARAMS_SIZE(__typeof__(*(params)), last) ||        \
	    (params)->priv)                                                                        \
		return CUPTI_ERROR_INVALID_PARAMETER;
#define EXPORTED(name, params)                                                                     \
	MOCK_EXPORT int cupti##name(struct params *p);                                             \
	MOCK_EXPORT int cupti##name(struct params *p)

bool
mock_count_work(const struct mock_work *work)
{
	struct profiler *profiler = &profilers[work->device % DEVICES];
	bool counted = false;
	if (work->kind != MOCK_KERNEL)
		return false;
	if (profiler->started)
		usleep((useconds_t)mock_get("count_us"));
	pthread_mutex_lock(&lock);
	if (profiler->started && profiler->ran < RANGES) {
		profiler->pending[profiler->ran++] = work->name;
		COUNT("count_passes", (long long)profiler->passes);
		counted = true;
	}
	pthread_mutex_unlock(&lock);
	return counted;
}

/* ---- the host's side ---- */

EXPORTED(ProfilerInitialize, plumb_profiler_begin)
{
	CHECK(p, priv);
	return CUPTI_SUCCESS;
}

EXPORTED(DeviceGetChipName, plumb_profiler_chip)
{
	CHECK(p, name);
	p->name = "GH100";
	return p->device < DEVICES ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_DEVICE;
}

EXPORTED(ProfilerGetCounterAvailability, plumb_profiler_availability)
{
	CHECK(p, image);
	if (mock_get("count_refuse"))
		return (int)mock_get("count_refuse");
	if (!p->image)
		p->bytes = 16;
	else
		memcpy(p->image, "0123456789abcdef", 16);
	return CUPTI_SUCCESS;
}

EXPORTED(ProfilerHostInitialize, plumb_host_begin)
{
	CHECK(p, host);
	if (p->type > PLUMB_COUNTING_SAMPLES || !p->chip || strcmp(p->chip, "GH100") ||
	    (p->availability && memcmp(p->availability, "0123456789abcdef", 16)))
		return CUPTI_ERROR_INVALID_PARAMETER;
	struct host *host = calloc(1, sizeof *host);
	host->type = p->type;
	p->host = host;
	return CUPTI_SUCCESS;
}

EXPORTED(ProfilerHostDeinitialize, plumb_host_end)
{
	CHECK(p, host);
	free(p->host);
	return CUPTI_SUCCESS;
}

/* Names of a unit that a GPU has, with what to make of their instances. With the setting
 * "count_lacks" the chip has no FP8. */
static int
is_known(const char *name)
{
	static const char *const units[] = { "dram__", "dramc__", "sm__", "smsp__", "lts__" };
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strncmp(name, units[i], strlen(units[i])))
			return strchr(name, '.') &&
			       !(mock_get("count_lacks") && strstr(name, "_fp8"));
	return 0;
}

EXPORTED(ProfilerHostGetMetricProperties, plumb_host_metric)
{
	CHECK(p, type);
	p->description = p->unit = p->dimension = "";
	return p->host && is_known(p->name) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_METRIC_NAME;
}

EXPORTED(ProfilerHostConfigAddMetrics, plumb_host_add)
{
	CHECK(p, count);
	struct host *host = p->host;
	for (size_t i = 0; i < p->count; i++) {
		if (!is_known(p->names[i]) || strlen(p->names[i]) >= sizeof host->names[0])
			return CUPTI_ERROR_INVALID_METRIC_NAME;
		strcpy(host->names[host->count++], p->names[i]);
	}
	return CUPTI_SUCCESS;
}

EXPORTED(ProfilerHostGetConfigImageSize, plumb_host_config_size)
{
	CHECK(p, bytes);
	p->bytes = 2 * sizeof(uint64_t);
	return CUPTI_SUCCESS;
}

EXPORTED(ProfilerHostGetConfigImage, plumb_host_config)
{
	CHECK(p, config);
	struct host *host = p->host;
	size_t a_pass =
		host->type == PLUMB_COUNTING_SAMPLES ? (size_t)mock_get("series_pass") : A_PASS;
	uint64_t words[2] = { MAGIC, (host->count + a_pass - 1) / a_pass };
	if (p->bytes < sizeof words)
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(p->config, words, sizeof words);
	return CUPTI_SUCCESS;
}

uint64_t
mock_passes_of(const uint8_t *config)
{
	uint64_t words[2];
	memcpy(words, config, sizeof words);
	return words[0] == MAGIC ? words[1] : 0;
}

EXPORTED(ProfilerHostGetNumOfPasses, plumb_host_passes)
{
	CHECK(p, passes);
	p->passes = mock_passes_of(p->config);
	return p->passes ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static double
value_of(const char *function, const char *metric)
{
	const struct mock_count *count;
	double value = 0;
	for (unsigned i = 0; (count = mock_count_at(i)); i++)
		if (!strcmp(count->function, function) && !strcmp(count->metric, metric))
			value = (double)count->value;
	return value;
}

EXPORTED(ProfilerHostEvaluateToGpuValues, plumb_host_evaluate)
{
	CHECK(p, values);
	const struct image *image = (const void *)p->image;
	for (size_t i = 0; i < p->count && mock_is_series(p->image); i++)
		p->values[i] = mock_series_value(p->image, p->range, p->names[i]);
	if (mock_is_series(p->image))
		return CUPTI_SUCCESS;
	if (image->magic != MAGIC || p->bytes < sizeof *image || p->range >= image->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->count; i++) {
		if (!is_known(p->names[i]))
			return CUPTI_ERROR_INVALID_METRIC_NAME;
		p->values[i] = value_of(image->functions[p->range], p->names[i]);
	}
	COUNT("count_evaluated", 1);
	return CUPTI_SUCCESS;
}

/* ---- the GPU's side ---- */

EXPORTED(RangeProfilerEnable, plumb_range_enable)
{
	CHECK(p, profiler);
	uintptr_t number = (uintptr_t)p->context - (uintptr_t)mock_context(0);
	if (number >= DEVICES || profilers[number].context)
		return CUPTI_ERROR_INVALID_PARAMETER;
	profilers[number] = (struct profiler){ .context = p->context };
	p->profiler = &profilers[number];
	COUNT("count_enabled", 1);
	return CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerDisable, plumb_range_plain)
{
	CHECK(p, profiler);
	struct profiler *profiler = p->profiler;
	if (!profiler->context || profiler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	profiler->context = NULL;
	COUNT("count_enabled", -1);
	return CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerGetCounterDataSize, plumb_range_image_size)
{
	CHECK(p, bytes);
	if (p->most_nodes < p->most || p->most > RANGES || !p->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->bytes = sizeof(struct image);
	return CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerCounterDataImageInitialize, plumb_range_image)
{
	CHECK(p, image);
	struct image *image = (void *)p->image;
	if (p->bytes < sizeof *image)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*image = (struct image){ .magic = MAGIC };
	return CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerSetConfig, plumb_range_config)
{
	CHECK(p, target_level);
	struct profiler *profiler = p->profiler;
	uint64_t words[2];
	if (profiler->started || p->config_bytes < sizeof words)
		return CUPTI_ERROR_INVALID_OPERATION;
	memcpy(words, p->config, sizeof words);
	if (words[0] != MAGIC || p->range != PLUMB_COUNTING_AUTO_RANGE ||
	    p->replay != PLUMB_COUNTING_KERNEL_REPLAY || p->levels != 1 || p->least_level != 1 ||
	    p->target_level != 1 || p->pass || ((struct image *)(void *)p->image)->magic != MAGIC)
		return CUPTI_ERROR_INVALID_PARAMETER;
	profiler->configured = 1;
	profiler->most = p->most;
	profiler->passes = words[1];
	profiler->image = p->image;
	((struct image *)(void *)p->image)->most = p->most;
	return CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerStart, plumb_range_plain)
{
	CHECK(p, profiler);
	struct profiler *profiler = p->profiler;
	if (mock_get("capturing"))
		COUNT("count_captured", 1);
	pthread_mutex_lock(&lock);
	int wrong = !profiler->context || !profiler->configured || profiler->started;
	profiler->started = 1;
	profiler->ran = 0;
	pthread_mutex_unlock(&lock);
	return wrong ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerStop, plumb_range_stop)
{
	CHECK(p, complete);
	struct profiler *profiler = p->profiler;
	pthread_mutex_lock(&lock);
	int wrong = !profiler->started;
	profiler->started = 0;
	pthread_mutex_unlock(&lock);
	p->complete = 1;
	return wrong ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerDecodeData, plumb_range_decode)
{
	CHECK(p, dropped);
	struct profiler *profiler = p->profiler;
	struct image *image = (void *)profiler->image;
	if (!profiler->configured || profiler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	p->dropped = 0;
	for (size_t i = 0; i < profiler->ran; i++) {
		if (image->count < image->most)
			image->functions[image->count++] = profiler->pending[i];
		else
			p->dropped++;
	}
	profiler->ran = 0;
	return CUPTI_SUCCESS;
}

EXPORTED(RangeProfilerGetCounterDataInfo, plumb_range_info)
{
	CHECK(p, ranges);
	const struct image *image = (const void *)p->image;
	p->ranges = image->count;
	return image->magic == MAGIC ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
