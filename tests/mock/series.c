/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in libcupti: PM sampling, as CUPTI has it from CUDA 12.8 on. A sample ends at each
 * multiple of the interval since the start. What it counts is what the test said of the function
 * "gpu" (mock_counter), and of the kernels that ran during it, by how much of it they filled. A sum
 * belongs to a whole launch, and is spread over its time.
 *
 * As on an H200: the first sample begins when sampling was configured. As measured by others: a
 * decoding fills the image from its first place on and loses what finds no room, an overflow lasts
 * until sampling starts anew, and a decoding after the stop has a sample without time at its end.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pcsampling.h"

#include "../../src/collect/gpu/cuda/counters_api.h"

#define DEVICES 8
#define SAMPLES 8192      /* of an image */
#define WORKS 4096        /* that are remembered, of all devices */
#define BEFORE 500000000u /* ns */
#define MAGIC 0x706c756d62706d73u
#define COUNT(key, n) __atomic_fetch_add(mock_value(key), (n), __ATOMIC_SEQ_CST)

struct sampler {
	int enabled, configured, started, full, decodings, tail, first;
	uint64_t interval, begun, decoded; /* the GPU's clock */
};
struct sample {
	uint64_t start, end;
};
struct image {
	uint64_t magic;
	uint32_t device;
	size_t most, count;
	struct sample samples[];
};
static struct sampler samplers[DEVICES];
static struct mock_work works[WORKS];
static size_t work_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define CHECK(params, last)                                                                        \
	if (!(params) || (params)->size < PLUMB_PARAMS_SIZE(__typeof__(*(params)), last) ||        \
	    (params)->priv)                                                                        \
		return CUPTI_ERROR_INVALID_PARAMETER;
#define EXPORTED(name, params)                                                                     \
	MOCK_EXPORT int cupti##name(struct params *p);                                             \
	MOCK_EXPORT int cupti##name(struct params *p)

/* The GPU's clock is ahead of CUPTI's by the setting "series_skew". */
static uint64_t
gpu_now(void)
{
	return mock_now() + (uint64_t)mock_get("series_skew");
}

void
mock_series_work(const struct mock_work *work)
{
	if (work->kind != MOCK_KERNEL)
		return;
	pthread_mutex_lock(&lock);
	works[work_count++ % WORKS] = *work;
	pthread_mutex_unlock(&lock);
}

static double
told(const char *function, const char *metric)
{
	const struct mock_count *count;
	double value = 0;
	for (unsigned i = 0; (count = mock_count_at(i)); i++)
		if (!strcmp(count->function, function) && !strcmp(count->metric, metric))
			value = (double)count->value;
	return value;
}

int
mock_is_series(const uint8_t *image)
{
	return ((const struct image *)(const void *)image)->magic == MAGIC;
}

double
mock_series_value(const uint8_t *bytes, size_t number, const char *metric)
{
	const struct image *image = (const void *)bytes;
	const struct sample *sample = &image->samples[number];
	size_t length = strlen(metric);
	int sums = length > 4 && !strcmp(metric + length - 4, ".sum");
	double value = told("gpu", metric);
	uint64_t skew = (uint64_t)mock_get("series_skew");
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < WORKS && i < work_count; i++) {
		uint64_t start = works[i].start + skew, end = works[i].end + skew;
		uint64_t from = start > sample->start ? start : sample->start;
		uint64_t to = end < sample->end ? end : sample->end;
		uint64_t whole = sums ? end - start : sample->end - sample->start;
		if (works[i].device == image->device && from < to)
			value += told(works[i].name, metric) * (double)(to - from) / (double)whole;
	}
	pthread_mutex_unlock(&lock);
	return value;
}

EXPORTED(PmSamplingGetCounterAvailability, plumb_sampling_availability)
{
	CHECK(p, image);
	if (mock_get("count_refuse"))
		return (int)mock_get("count_refuse");
	if (!p->image)
		p->bytes = 16;
	else
		memcpy(p->image, "0123456789abcdef", 16);
	return p->device < DEVICES ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_DEVICE;
}

EXPORTED(PmSamplingEnable, plumb_sampling_enable)
{
	CHECK(p, sampler);
	if (mock_get("series_refuse"))
		return (int)mock_get("series_refuse");
	if (mock_get("capturing"))
		COUNT("count_captured", 1);
	if (p->device >= DEVICES || samplers[p->device].enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	samplers[p->device] = (struct sampler){ .enabled = 1 };
	p->sampler = &samplers[p->device];
	COUNT("series_enabled", 1);
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingDisable, plumb_sampling_plain)
{
	CHECK(p, sampler);
	struct sampler *sampler = p->sampler;
	if (!sampler->enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	sampler->enabled = 0;
	COUNT("series_enabled", -1);
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingSetConfig, plumb_sampling_config)
{
	CHECK(p, append);
	struct sampler *sampler = p->sampler;
	if (!sampler->enabled || sampler->started || !p->interval || p->hardware_bytes < 65536 ||
	    p->trigger != PLUMB_SAMPLING_BY_TIME || mock_passes_of(p->config) != 1)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sampler->configured = 1;
	sampler->interval = p->interval;
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingStart, plumb_sampling_plain)
{
	CHECK(p, sampler);
	struct sampler *sampler = p->sampler;
	if (!sampler->configured || sampler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	sampler->started = 1;
	sampler->full = 0;
	sampler->begun = sampler->decoded = gpu_now();
	sampler->first = 1;
	COUNT("series_starts", 1);
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingStop, plumb_sampling_plain)
{
	CHECK(p, sampler);
	struct sampler *sampler = p->sampler;
	if (!sampler->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	sampler->started = 0;
	sampler->tail = 1;
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingGetCounterDataSize, plumb_sampling_image_size)
{
	CHECK(p, bytes);
	if (!p->count || !p->most || p->most > SAMPLES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->bytes = sizeof(struct image) + p->most * sizeof(struct sample);
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingCounterDataImageInitialize, plumb_sampling_image)
{
	CHECK(p, image);
	struct sampler *sampler = p->sampler;
	struct image *image = (void *)p->image;
	*image = (struct image){
		.magic = MAGIC,
		.device = (uint32_t)(sampler - samplers),
		.most = (p->bytes - sizeof *image) / sizeof(struct sample),
	};
	if (mock_get("series_places"))
		image->most = (size_t)mock_get("series_places");
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingDecodeData, plumb_sampling_decode)
{
	CHECK(p, overflow);
	struct sampler *sampler = p->sampler;
	struct image *image = (void *)p->image;
	uint64_t now = gpu_now(), interval = sampler->interval;
	if (!sampler->configured || image->magic != MAGIC || image->count)
		return CUPTI_ERROR_INVALID_OPERATION;
	p->stopped = p->overflow = 0;
	if (++sampler->decodings == mock_get("series_full"))
		sampler->full = 1;
	if (sampler->full) {
		p->overflow = 1;
		return CUPTI_ERROR_OUT_OF_MEMORY;
	}
	COUNT("series_decodings", 1);
	if (sampler->first && image->count < image->most)
		image->samples[image->count++] =
			(struct sample){ sampler->decoded - BEFORE, sampler->decoded };
	sampler->first = 0;
	for (; sampler->decoded + interval <= now; sampler->decoded += interval) {
		if (image->count < image->most)
			image->samples[image->count++] =
				(struct sample){ sampler->decoded, sampler->decoded + interval };
		else
			p->stopped = PLUMB_SAMPLING_IMAGE_FULL;
	}
	if (sampler->tail && image->count < image->most)
		image->samples[image->count++] = (struct sample){ sampler->begun, sampler->begun };
	return CUPTI_SUCCESS;
}

EXPORTED(PmSamplingGetCounterDataInfo, plumb_sampling_info)
{
	CHECK(p, completed);
	const struct image *image = (const void *)p->image;
	p->total = image->most;
	p->populated = p->completed = image->count;
	return image->magic == MAGIC ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORTED(PmSamplingCounterDataGetSampleInfo, plumb_sampling_sample)
{
	CHECK(p, end);
	const struct image *image = (const void *)p->image;
	if (image->magic != MAGIC || p->index >= image->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->start = image->samples[p->index].start;
	p->end = image->samples[p->index].end;
	return CUPTI_SUCCESS;
}
