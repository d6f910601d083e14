/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under every profiler that samples program counters by CUPTI: sampling is on in each
 * context, in continuous mode, with all reasons, and what is fetched every 100 ms is thrown away.
 * bench/overhead.py builds it (mode "pcsampling") and injects it by CUDA_INJECTION64_PATH. The
 * period is 2^EXPONENT cycles; buffers are as large as plumb's.
 */
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef EXPONENT
#define EXPONENT 14
#endif
enum { COUNTERS = 4096, CONTEXTS = 16 };

struct sampled {
	CUcontext context;
	size_t reasons;
	uint32_t *numbers;
	CUpti_PCSamplingData fetched, rest;
};
static struct sampled contexts[CONTEXTS];
static _Atomic int count;
static CUpti_SubscriberHandle subscriber;

static void
make_buffer(CUpti_PCSamplingData *data, size_t reasons)
{
	data->size = sizeof *data;
	data->collectNumPcs = COUNTERS;
	data->pPcData = calloc(COUNTERS, sizeof *data->pPcData);
	for (size_t i = 0; i < COUNTERS; i++) {
		data->pPcData[i].size = sizeof *data->pPcData;
		data->pPcData[i].stallReason = calloc(reasons, sizeof(CUpti_PCSamplingStallReason));
	}
}

static void
drop(CUpti_PCSamplingData *data)
{
	for (size_t i = 0; i < data->totalNumPcs && i < COUNTERS; i++)
		free(data->pPcData[i].functionName);
	data->totalNumPcs = 0;
}

static void
switch_on(CUcontext context)
{
	struct sampled *s = &contexts[count];
	CUpti_PCSamplingEnableParams enable = { CUpti_PCSamplingEnableParamsSize, NULL, context };
	if (count == CONTEXTS || cuptiPCSamplingEnable(&enable) != CUPTI_SUCCESS)
		return;
	s->context = context;
	CUpti_PCSamplingGetNumStallReasonsParams ask = {
		CUpti_PCSamplingGetNumStallReasonsParamsSize, NULL, context, &s->reasons
	};
	cuptiPCSamplingGetNumStallReasons(&ask);
	s->numbers = calloc(s->reasons, sizeof *s->numbers);
	char **names = calloc(s->reasons, sizeof *names);
	for (size_t i = 0; i < s->reasons; i++)
		names[i] = calloc(1, CUPTI_STALL_REASON_STRING_SIZE);
	CUpti_PCSamplingGetStallReasonsParams list = { CUpti_PCSamplingGetStallReasonsParamsSize,
		                                       NULL,
		                                       context,
		                                       s->reasons,
		                                       s->numbers,
		                                       names };
	cuptiPCSamplingGetStallReasons(&list);
	make_buffer(&s->fetched, s->reasons);
	make_buffer(&s->rest, s->reasons);
	CUpti_PCSamplingConfigurationInfo wish[6] = { 0 };
	wish[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
	wish[0].attributeData.stallReasonData.stallReasonCount = s->reasons;
	wish[0].attributeData.stallReasonData.pStallReasonIndex = s->numbers;
	wish[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
	wish[1].attributeData.samplingPeriodData.samplingPeriod = EXPONENT;
	wish[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
	wish[2].attributeData.samplingDataBufferData.samplingDataBuffer = &s->rest;
	wish[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
	wish[3].attributeData.collectionModeData.collectionMode =
		CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
	wish[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
	wish[4].attributeData.scratchBufferSizeData.scratchBufferSize = 16u << 20;
	wish[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
	wish[5].attributeData.hardwareBufferSizeData.hardwareBufferSize =
		EXPONENT < 14 ? 256u << 20 : 64u << 20;
	CUpti_PCSamplingConfigurationInfoParams set = { CUpti_PCSamplingConfigurationInfoParamsSize,
		                                        NULL, context, 6, wish };
	if (cuptiPCSamplingSetConfigurationAttribute(&set) == CUPTI_SUCCESS)
		count++;
}

static void *
fetch_all(void *data)
{
	(void)data;
	for (;; usleep(100000))
		for (int i = 0; i < count; i++) {
			CUpti_PCSamplingData *fetched = &contexts[i].fetched;
			CUpti_PCSamplingGetDataParams params = { CUpti_PCSamplingGetDataParamsSize,
				                                 NULL, contexts[i].context,
				                                 fetched };
			do {
				fetched->totalNumPcs = fetched->remainingNumPcs = 0;
				if (cuptiPCSamplingGetData(&params) != CUPTI_SUCCESS)
					break;
				drop(fetched);
			} while (fetched->remainingNumPcs);
		}
	return NULL;
}

static void CUPTIAPI
notice(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
	(void)data;
	if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
		switch_on(((const CUpti_ResourceData *)info)->context);
}

__attribute__((visibility("default"))) int
InitializeInjection(void)
{
	pthread_t thread;
	cuptiSubscribe(&subscriber, notice, NULL);
	cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
	                    CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
	pthread_create(&thread, NULL, fetch_all, NULL);
	return 1;
}
