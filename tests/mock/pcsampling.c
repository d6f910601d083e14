/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in libcupti: sampling of program counters. What a kernel's launch is sampled at is what
 * the test said (mock_stall). Works as CUPTI was measured to on a GPU: samples of a context that is
 * not switched on are not there; without serialisation no sample has a correlation id; what is not
 * fetched stays for the next fetch.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pcsampling.h"

#define DEVICES 8
#define MODULES 64
static const char *const words[] = {
	"barrier",
	"branch_resolving",
	"dispatch_stall",
	"drain",
	"imc_miss",
	"lg_throttle",
	"long_scoreboard",
	"math_pipe_throttle",
	"membar",
	"mio_throttle",
	"misc",
	"no_instructions",
	"not_selected",
	"selected",
	"short_scoreboard",
	"sleeping",
	"tex_throttle",
	"wait",
	"warpgroup_arrive",
};
#define WORDS (sizeof words / sizeof *words)
#define REASONS (2 * WORDS) /* those with the suffix have odd indices, + 100 */

struct counter {
	uint64_t crc, offset;
	uint32_t function, correlation;
	const char *name;
	uint32_t counts[REASONS];
	struct counter *next, *next_name;
};
static struct counter *names;
static struct device {
	int enabled, serialised;
	unsigned period;
	CUpti_PCSamplingData *rest;
	struct counter *first, **last;
	uint64_t told, dropped, system;
} devices[DEVICES];
static uint64_t crcs[MODULES];
static CUpti_ComputeCrcCallbackFunc compute;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long fetches;

#define COUNT(key, n) __atomic_fetch_add(mock_value(key), (n), __ATOMIC_SEQ_CST)

static struct device *
device_of(CUcontext context)
{
	uintptr_t number = (uintptr_t)context - (uintptr_t)mock_context(0);
	return number < DEVICES ? &devices[number] : NULL;
}

/* ---- what happens ---- */

void
mock_pc_module(const char *image, size_t bytes)
{
	long long number = mock_get("modules");
	uint64_t crc = 77; /* CUPTI's own, of which nobody is told */
	if (compute)
		compute(image, bytes, &crc);
	if (number < MODULES)
		crcs[number] = crc;
}

/* Called with the lock. */
static struct counter *
find_counter(struct device *device, const struct mock_stall *stall, uint32_t correlation)
{
	uint64_t crc = stall->module < MODULES ? crcs[stall->module] : 0;
	struct counter *c = device->first;
	while (c && !(c->crc == crc && c->offset == stall->offset &&
	              !strcmp(c->name, stall->function) && c->correlation == correlation))
		c = c->next;
	if (c)
		return c;
	c = calloc(1, sizeof *c);
	c->crc = crc;
	c->offset = stall->offset;
	/* One text for all counters of a function. */
	for (struct counter *other = names; other && !c->name; other = other->next_name)
		if (!strcmp(other->name, stall->function))
			c->name = other->name;
	if (!c->name) {
		struct counter *kept = calloc(1, sizeof *kept);
		kept->name = c->name = stall->function;
		kept->next_name = names;
		names = kept;
	}
	c->correlation = correlation;
	for (const char *at = stall->function; *at; at++) /* an index, as a symbol has one */
		c->function = c->function * 31 + (unsigned char)*at;
	if (!device->first)
		device->last = &device->first;
	*device->last = c;
	device->last = &c->next;
	return c;
}

void
mock_pc_work(const struct mock_work *work)
{
	struct device *device = &devices[work->device % DEVICES];
	const struct mock_stall *stall;
	if (work->kind != MOCK_KERNEL || !device->enabled)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; (stall = mock_stall_at(i)); i++) {
		unsigned word = 0;
		if (strcmp(stall->function, work->name))
			continue;
		while (word < WORDS - 1 && strcmp(words[word], stall->reason))
			word++;
		struct counter *c =
			find_counter(device, stall, device->serialised ? work->correlation : 0);
		c->counts[2 * word] += stall->all - (mock_get("pc_disjoint") ? stall->idle : 0);
		c->counts[2 * word + 1] += stall->idle;
		device->told += stall->all;
	}
	device->dropped += (uint64_t)mock_get("pc_dropped");
	device->system += (uint64_t)mock_get("pc_system");
	device->told += (uint64_t)(mock_get("pc_dropped") + mock_get("pc_system"));
	pthread_mutex_unlock(&lock);
}

/* ---- CUPTI's functions ---- */

static void
fill_counter(CUpti_PCSamplingPCData *to, const struct counter *from)
{
	to->cubinCrc = from->crc;
	to->pcOffset = from->offset;
	to->functionIndex = from->function;
	to->functionName =
		mock_get("pc_names") ? (char *)(uintptr_t)from->name : strdup(from->name);
	to->stallReasonCount = 0;
	for (unsigned i = 0; i < REASONS; i++)
		if (from->counts[i])
			to->stallReason[to->stallReasonCount++] =
				(CUpti_PCSamplingStallReason){ i + 100, from->counts[i] };
#if CUDA_VERSION >= 12080
	to->correlationId = from->correlation;
#endif
}

static CUptiResult
fill(struct device *device, CUpti_PCSamplingData *data)
{
	size_t most = data->collectNumPcs, batch = (size_t)mock_get("pc_batch");
	if (!data->pPcData || data->size > sizeof *data)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (batch && batch < most)
		most = batch;
	pthread_mutex_lock(&lock);
	data->totalNumPcs = data->remainingNumPcs = 0;
	data->totalSamples = device->told;
	data->droppedSamples = device->dropped;
	data->nonUsrKernelsTotalSamples = device->system;
	device->told = device->dropped = device->system = 0;
	while (device->first && data->totalNumPcs < most) {
		struct counter *c = device->first;
		fill_counter(&data->pPcData[data->totalNumPcs++], c);
		device->first = c->next;
		free(c);
	}
	for (struct counter *c = device->first; c; c = c->next)
		data->remainingNumPcs++;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
	struct device *d = device_of(context);
	if (!d || !device)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*device = (uint32_t)(d - devices);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiRegisterComputeCrcCallback(CUpti_ComputeCrcCallbackFunc function)
{
	compute = function;
	return function ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI
cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams *params)
{
	struct device *device = device_of(params->ctx);
	if (mock_get("pc_refuse"))
		return (CUptiResult)mock_get("pc_refuse");
	if (!device || device->enabled)
		return CUPTI_ERROR_INVALID_PARAMETER;
	device->enabled = 1;
	COUNT("pc_enabled", 1);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams *params)
{
	struct device *device = device_of(params->ctx);
	if (!device || !device->enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	device->enabled = 0;
	COUNT("pc_enabled", -1);
	return device->rest ? fill(device, device->rest) : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams *params)
{
	struct device *device = device_of(params->ctx);
	long long every = mock_get("pc_full"),
		  n = __atomic_add_fetch(&fetches, 1, __ATOMIC_SEQ_CST);
	if (!device || !device->enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	COUNT("pc_fetches", 1);
	if (every && n % every == 0)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	return fill(device, params->pcSamplingData);
}

CUptiResult CUPTIAPI
cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams *params)
{
	*params->numStallReasons = REASONS;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams *params)
{
	for (unsigned i = 0; i < params->numStallReasons && i < REASONS; i++) {
		params->stallReasonIndex[i] = i + 100;
		strcpy(params->stallReasons[i], "smsp__pcsamp_warps_issue_stalled_");
		strcat(params->stallReasons[i], words[i / 2]);
		strcat(params->stallReasons[i], i % 2 ? "_not_issued" : "");
	}
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams *params)
{
	struct device *device = device_of(params->ctx);
	if (!device || !device->enabled)
		return CUPTI_ERROR_INVALID_OPERATION;
	for (size_t i = 0; i < params->numAttributes; i++) {
		CUpti_PCSamplingConfigurationInfo *info = &params->pPCSamplingConfigurationInfo[i];
		switch (info->attributeType) {
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD:
			device->period = info->attributeData.samplingPeriodData.samplingPeriod;
			if (device->period < 5 || device->period > 31)
				return CUPTI_ERROR_INVALID_OPERATION;
			mock_set("pc_period", device->period);
			break;
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE:
			device->serialised =
				info->attributeData.collectionModeData.collectionMode ==
				CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
			break;
		case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER:
			device->rest =
				info->attributeData.samplingDataBufferData.samplingDataBuffer;
			break;
		default:
			break;
		}
	}
	return CUPTI_SUCCESS;
}
