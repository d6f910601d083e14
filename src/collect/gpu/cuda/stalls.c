/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of program counters, by CUPTI's PC sampling API, which works beside activity records.
 *
 * It is switched on for each CUDA context: when the context is made, else before the next launch in
 * it (a context that was there before us, recording that goes on after a pause, the slot that came
 * back). Samples are fetched by the service thread at its pace, and on the program's threads when a
 * module comes or goes, because program counters of an unloaded module may come again, and before a
 * context goes. If kernels run one at a time, they are fetched after each launch as well.
 *
 * A context is claimed by one thread at a time, and no lock is held while CUPTI works. A thread of
 * the program that finds a context claimed goes on without: it may be inside a callback of CUPTI,
 * for whose end the claimer waits. Only before a context is destroyed, and when sampling stops,
 * a claim waits, for a limited time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/gpu/code.h"
#include "collect/gpu/cuda/claim.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/gpu/stalls.h"
#include "collect/process.h"
#include "collect/recording.h"
#include "collect/table.h"

#define CONTEXTS 64u
#define REASONS 128u         /* of a GPU, at most */
#define FETCHED 4096u        /* program counters of one fetch */
#define RESTING 16384u       /* of the last one, which cannot be repeated */
#define TURNS 256u           /* of fetches until the rest waits for the next time */
#define LAUNCHES 65536u      /* that wait for their samples; a power of two */
#define WAIT_NS 1000000000u  /* for a context that another thread works on */
#define SCRATCH (16u << 20)  /* bytes in which CUPTI decodes */
#define HARDWARE (64u << 20) /* bytes of device memory for raw samples, … */
#define FAST_HARDWARE (256u << 20)
#define FAST 14u /* … and if the period is shorter than 2^FAST cycles */

/* Program counters with their samples, as CUPTI fills them in. */
struct fetch {
	CUpti_PCSamplingData data;
};

struct context {
	struct plumb_cuda_claim claim; /* first */
	_Atomic bool on;
	uint32_t device;
	size_t reasons;
	uint32_t numbers[REASONS];
	char names[REASONS][CUPTI_STALL_REASON_STRING_SIZE];
	struct fetch fetched, rest;
};

PLUMB_HOT bool plumb_cuda_stalls_wanted;
static struct context *contexts; /* CONTEXTS of them */
static _Atomic bool have_slot, paused, refused;
static _Atomic bool enabled_once;
static char refusal[400]; /* once `refused` is set */
static bool told, told_off;
static size_t pc_bytes, data_bytes; /* of the structures that this version of CUPTI has */
static bool has_correlation;
static _Atomic bool names_are_single, names_are_shared;

/* The newest launches, if samples belong to launches. */
static struct launch {
	uint32_t correlation; /* 0: free */
	plumb_id node;
	uint64_t start;
} launches[LAUNCHES];
static bool launched_any; /* some of them were used */
static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER;

static bool
is_serialised(void)
{
	return plumb_collector_options()->stalls_mode == PLUMB_STALLS_SERIALISED;
}

static bool
may_sample(void)
{
	return atomic_load(&have_slot) && !atomic_load(&paused) && !atomic_load(&refused) &&
	       plumb_control_is_on(plumb_control);
}

/* ---- contexts ---- */

static struct context *
find_context(CUcontext handle)
{
	return plumb_cuda_claim_find(contexts, sizeof *contexts, CONTEXTS, handle);
}

/* ---- refusals ---- */

static void
refuse(const char *call, CUptiResult result)
{
	if (atomic_load(&refused))
		return;
	if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
		snprintf(refusal, sizeof refusal,
		         "stalls are not sampled: NVIDIA's driver lets only administrators read "
		         "the GPU's counters; run as root (a container with --cap-add=SYS_ADMIN), "
		         "or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0");
	else if (result == CUPTI_ERROR_NOT_SUPPORTED ||
	         result == CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED)
		snprintf(refusal, sizeof refusal,
		         "stalls are not sampled: %s: %s; it takes a GPU from Volta on that is not "
		         "shared as a virtual GPU",
		         call, plumb_cupti_message(result));
	else
		snprintf(refusal, sizeof refusal, "stalls are not sampled: %s: %s", call,
		         plumb_cupti_message(result));
	atomic_store(&refused, true);
}

/* ---- buffers ---- */

static CUpti_PCSamplingPCData *
counter_at(const struct fetch *fetch, size_t i)
{
	return (CUpti_PCSamplingPCData *)(void *)((char *)fetch->data.pPcData + i * pc_bytes);
}

/* Room for COUNT program counters with all reasons. False: no memory. */
static bool
make_fetch(struct fetch *fetch, size_t count, size_t reasons)
{
	if (fetch->data.pPcData)
		return true; /* of an earlier context: all have room for REASONS */
	size_t a_counter = pc_bytes + reasons * sizeof(CUpti_PCSamplingStallReason);
	char *memory = plumb_map(count * a_counter, true);
	if (!memory)
		return false;
	fetch->data = (CUpti_PCSamplingData){
		.size = data_bytes,
		.collectNumPcs = count,
		.pPcData = (void *)memory,
	};
	char *at = memory + count * pc_bytes;
	for (size_t i = 0; i < count; i++, at += reasons * sizeof(CUpti_PCSamplingStallReason)) {
		counter_at(fetch, i)->size = pc_bytes;
		counter_at(fetch, i)->stallReason = (void *)at;
	}
	return true;
}

static void
empty_fetch(struct fetch *fetch)
{
	fetch->data.totalSamples = fetch->data.droppedSamples = 0;
	fetch->data.totalNumPcs = fetch->data.remainingNumPcs = 0;
	fetch->data.nonUsrKernelsTotalSamples = 0;
	fetch->data.hardwareBufferFull = 0;
}

/*
 * CUPTI's documentation says that names may be shared among records, and that they must be freed.
 * So it is measured: if records of one function have names of their own, each is freed. If they
 * have one, none ever is: it may be used again.
 */
static void
free_names(struct fetch *fetch, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const CUpti_PCSamplingPCData *a = counter_at(fetch, i - 1),
					     *b = counter_at(fetch, i);
		if (a->cubinCrc != b->cubinCrc || a->functionIndex != b->functionIndex ||
		    !a->functionName || !b->functionName)
			continue;
		if (a->functionName == b->functionName)
			atomic_store(&names_are_shared, true);
		else
			atomic_store(&names_are_single, true);
	}
	bool free_them = atomic_load(&names_are_single) && !atomic_load(&names_are_shared);
	for (size_t i = 0; i < count; i++) {
		if (free_them)
			free(counter_at(fetch, i)->functionName);
		counter_at(fetch, i)->functionName = NULL;
	}
}

/* ---- fetching ---- */

static const char *
reason_name(const struct context *context, uint32_t number)
{
	for (size_t i = 0; i < context->reasons; i++)
		if (context->numbers[i] == number)
			return context->names[i];
	return "?";
}

static struct launch
find_launch(uint32_t correlation)
{
	struct launch found = { 0 };
	pthread_mutex_lock(&launch_lock);
	struct launch *launch = &launches[correlation % LAUNCHES];
	if (correlation && launch->correlation == correlation)
		found = *launch;
	pthread_mutex_unlock(&launch_lock);
	return found;
}

static void
add_counter(struct plumb_thread *thread, const struct context *context,
            const CUpti_PCSamplingPCData *counter, uint32_t current)
{
	struct plumb_stall_sample sample = {
		.module = counter->cubinCrc,
		.function = counter->functionName,
		.offset = counter->pcOffset,
		.function_number = counter->functionIndex,
		.device = context->device,
	};
	if (is_serialised()) {
		uint32_t own = has_correlation ? counter->correlationId : 0;
		struct launch launch = find_launch(own ? own : current);
		sample.call = launch.node;
		sample.launch = launch.start;
	}
	for (size_t i = 0; i < counter->stallReasonCount && i < REASONS; i++) {
		sample.reason_number = counter->stallReason[i].pcSamplingStallReasonIndex;
		sample.reason = reason_name(context, sample.reason_number);
		sample.count = counter->stallReason[i].samples;
		plumb_stalls_add(thread, &sample);
	}
}

/* CURRENT: the launch that samples without one belong to, or 0. */
static void
take_fetch(struct context *context, struct fetch *fetch, CUptiResult result, uint32_t current)
{
	const CUpti_PCSamplingData *data = &fetch->data;
	size_t count =
		data->totalNumPcs < data->collectNumPcs ? data->totalNumPcs : data->collectNumPcs;
	struct plumb_stall_fetch news = {
		.told = data->totalSamples,
		.dropped = data->droppedSamples,
		.system = data->nonUsrKernelsTotalSamples,
		.full = result == CUPTI_ERROR_OUT_OF_MEMORY ||
		        (data_bytes == sizeof *data && data->hardwareBufferFull),
	};
	struct plumb_thread *thread =
		plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	if (plumb_recording() && atomic_load(&paused)) {
		plumb_stalls_lock();
		plumb_stalls_leave_out(thread, PLUMB_FATE_PAUSED, news.told);
		plumb_stalls_unlock();
	} else if (plumb_recording() && (count || news.told || news.full)) {
		plumb_stalls_lock();
		for (size_t i = 0; i < count; i++)
			add_counter(thread, context, counter_at(fetch, i), current);
		plumb_stalls_fetched(thread, &news);
		plumb_stalls_unlock();
	}
	if (thread)
		plumb_leave(thread);
	free_names(fetch, count);
}

/* With the claim. */
static void
fetch_samples(struct context *context, uint32_t current)
{
	struct fetch *fetch = &context->fetched;
	for (unsigned turn = 0; turn < TURNS; turn++) {
		CUpti_PCSamplingGetDataParams params = {
			.size = CUpti_PCSamplingGetDataParamsSize,
			.ctx = atomic_load(&context->claim.context),
			.pcSamplingData = &fetch->data,
		};
		empty_fetch(fetch);
		CUptiResult result = plumb_cupti.PCSamplingGetData(&params);
		take_fetch(context, fetch, result, current);
		if (result != CUPTI_SUCCESS || !fetch->data.totalNumPcs ||
		    !fetch->data.remainingNumPcs)
			break;
	}
}

static void
fetch_all(void)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		if (!atomic_load(&contexts[i].on) || !plumb_cuda_claim(&contexts[i].claim, 0))
			continue;
		if (atomic_load(&contexts[i].on))
			fetch_samples(&contexts[i], 0);
		plumb_cuda_unclaim(&contexts[i].claim);
	}
}

/* ---- on and off ---- */

/* How samples are taken, with a period of 2^EXPONENT cycles. */
static CUptiResult
configure(struct context *context)
{
	unsigned exponent = plumb_collector_options()->stalls;
	size_t hardware = plumb_cuda_knobs.stall_buffer_bytes > 0
	                          ? (size_t)plumb_cuda_knobs.stall_buffer_bytes
	                  : exponent < FAST ? FAST_HARDWARE
	                                    : HARDWARE;
	CUpti_PCSamplingConfigurationInfo wishes[6] = { 0 }, *wish = wishes;
	wish->attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
	wish->attributeData.stallReasonData.stallReasonCount = context->reasons;
	wish->attributeData.stallReasonData.pStallReasonIndex = context->numbers;
	wish++;
	wish->attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
	wish->attributeData.samplingPeriodData.samplingPeriod = exponent;
	wish++;
	wish->attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
	wish->attributeData.samplingDataBufferData.samplingDataBuffer = &context->rest.data;
	wish++;
	wish->attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
	wish->attributeData.collectionModeData.collectionMode =
		is_serialised() ? CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED
				: CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
	wish++;
	wish->attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
	wish->attributeData.scratchBufferSizeData.scratchBufferSize = SCRATCH;
	wish++;
	wish->attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
	wish->attributeData.hardwareBufferSizeData.hardwareBufferSize = hardware;
	CUpti_PCSamplingConfigurationInfoParams params = {
		.size = CUpti_PCSamplingConfigurationInfoParamsSize,
		.ctx = atomic_load(&context->claim.context),
		.numAttributes = sizeof wishes / sizeof *wishes,
		.pPCSamplingConfigurationInfo = wishes,
	};
	return plumb_cupti.PCSamplingSetConfigurationAttribute(&params);
}

static CUptiResult
read_reasons(struct context *context)
{
	CUcontext handle = atomic_load(&context->claim.context);
	char *names[REASONS];
	size_t count = 0;
	CUpti_PCSamplingGetNumStallReasonsParams ask = {
		.size = CUpti_PCSamplingGetNumStallReasonsParamsSize,
		.ctx = handle,
		.numStallReasons = &count,
	};
	CUptiResult result = plumb_cupti.PCSamplingGetNumStallReasons(&ask);
	if (result != CUPTI_SUCCESS || count > REASONS)
		return result != CUPTI_SUCCESS ? result : CUPTI_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < REASONS; i++)
		names[i] = context->names[i];
	CUpti_PCSamplingGetStallReasonsParams list = {
		.size = CUpti_PCSamplingGetStallReasonsParamsSize,
		.ctx = handle,
		.numStallReasons = count,
		.stallReasonIndex = context->numbers,
		.stallReasons = names,
	};
	result = plumb_cupti.PCSamplingGetStallReasons(&list);
	for (size_t i = 0; i < REASONS; i++)
		context->names[i][CUPTI_STALL_REASON_STRING_SIZE - 1] = '\0';
	context->reasons = count;
	return result;
}

/* After the last fetch. With the claim. */
static void
switch_off(struct context *context)
{
	CUpti_PCSamplingDisableParams params = {
		.size = CUpti_PCSamplingDisableParamsSize,
		.ctx = atomic_load(&context->claim.context),
	};
	atomic_store(&context->on, false);
	empty_fetch(&context->rest);
	CUptiResult result = plumb_cupti.PCSamplingDisable(&params);
	take_fetch(context, &context->rest, result, 0);
}

/* With the claim. */
static void
switch_on(struct context *context)
{
	CUpti_PCSamplingEnableParams params = {
		.size = CUpti_PCSamplingEnableParamsSize,
		.ctx = atomic_load(&context->claim.context),
	};
	context->device = UINT32_MAX;
	if (plumb_cupti.GetDeviceId)
		plumb_cupti.GetDeviceId(params.ctx, &context->device);
	if (!make_fetch(&context->fetched, FETCHED, REASONS) ||
	    !make_fetch(&context->rest, RESTING, REASONS)) {
		refuse("not enough memory", CUPTI_ERROR_OUT_OF_MEMORY);
		return;
	}
	CUptiResult result = plumb_cupti.PCSamplingEnable(&params);
	if (result != CUPTI_SUCCESS) {
		refuse("cuptiPCSamplingEnable", result);
		return;
	}
	result = read_reasons(context);
	if (result == CUPTI_SUCCESS)
		result = configure(context);
	if (result != CUPTI_SUCCESS) {
		refuse("cuptiPCSamplingSetConfigurationAttribute", result);
		switch_off(context);
		return;
	}
	atomic_store(&context->on, true);
	atomic_store(&enabled_once, true);
}

void
plumb_cuda_stalls_prepare(CUcontext handle)
{
	if (!contexts || !may_sample())
		return;
	int saved = errno;
	struct context *context = find_context(handle);
	if (!context)
		context = plumb_cuda_claim_add(contexts, sizeof *contexts, CONTEXTS, handle);
	if (context && !atomic_load(&context->on) && plumb_cuda_claim(&context->claim, 0)) {
		if (!atomic_load(&context->on) && may_sample())
			switch_on(context);
		plumb_cuda_unclaim(&context->claim);
	}
	errno = saved;
}

void
plumb_cuda_stalls_destroyed(CUcontext handle)
{
	struct context *context = contexts ? find_context(handle) : NULL;
	if (!context)
		return;
	int saved = errno;
	bool claimed = plumb_cuda_claim(&context->claim, WAIT_NS);
	if (claimed && atomic_load(&context->on)) {
		fetch_samples(context, 0);
		switch_off(context);
	}
	atomic_store(&context->on, false);
	atomic_store(&context->claim.context, NULL);
	if (claimed)
		plumb_cuda_unclaim(&context->claim);
	errno = saved;
}

void
plumb_cuda_stalls_modules(void)
{
	int saved = errno;
	if (contexts)
		fetch_all();
	errno = saved;
}

void
plumb_cuda_stalls_fetch(void)
{
	if (contexts)
		fetch_all();
}

static void
stop_all(void)
{
	for (unsigned i = 0; contexts && i < CONTEXTS; i++) {
		if (!atomic_load(&contexts[i].on) || !plumb_cuda_claim(&contexts[i].claim, WAIT_NS))
			continue;
		if (atomic_load(&contexts[i].on)) {
			fetch_samples(&contexts[i], 0);
			switch_off(&contexts[i]);
		}
		plumb_cuda_unclaim(&contexts[i].claim);
	}
}

void
plumb_cuda_stalls_slot(bool ours)
{
	atomic_store(&have_slot, ours);
	if (!ours)
		stop_all();
}

/*
 * On an H200, cuptiPCSamplingDisable on the service thread never came back while the program's
 * threads were in the driver: it waits for a lock of the driver, and the driver for it. So sampling
 * stays on in a pause. What is fetched meanwhile is not wanted.
 */
void
plumb_cuda_stalls_pause(bool pause)
{
	if (atomic_load(&paused) == pause)
		return;
	plumb_cuda_stalls_fetch();
	atomic_store(&paused, pause);
}

/* ---- one kernel at a time ---- */

void
plumb_cuda_stalls_launch(uint32_t correlation, plumb_id node)
{
	if (!is_serialised() || !node || node == PLUMB_LOST)
		return;
	uint64_t start = plumb_clock_ns();
	pthread_mutex_lock(&launch_lock);
	launches[correlation % LAUNCHES] = (struct launch){ correlation, node, start };
	launched_any = true;
	pthread_mutex_unlock(&launch_lock);
}

void
plumb_cuda_stalls_launched(CUcontext handle, uint32_t correlation)
{
	struct context *context = contexts && is_serialised() ? find_context(handle) : NULL;
	if (!context || !plumb_cuda_claim(&context->claim, 0))
		return;
	int saved = errno;
	if (atomic_load(&context->on))
		fetch_samples(context, correlation);
	plumb_cuda_unclaim(&context->claim);
	errno = saved;
}

/* ---- the beginning, what is told, the end ---- */

/* CUPTI asks for the number by which samples shall name a module that is loaded. */
static void CUPTIAPI
name_module(const void *image, size_t size, uint64_t *number)
{
	int saved = errno;
	*number = plumb_code_keep(image, size);
	errno = saved;
}

void
plumb_cuda_stalls_begin(void)
{
	plumb_cuda_stalls_wanted = plumb_collector_options()->stalls;
	if (!plumb_cuda_stalls_wanted || contexts)
		return;
	if (!plumb_cupti.PCSamplingEnable || !plumb_cupti.PCSamplingDisable ||
	    !plumb_cupti.PCSamplingGetData || !plumb_cupti.PCSamplingSetConfigurationAttribute ||
	    !plumb_cupti.PCSamplingGetNumStallReasons || !plumb_cupti.PCSamplingGetStallReasons ||
	    !plumb_cupti.RegisterComputeCrcCallback) {
		refuse("this CUPTI has no PC sampling", CUPTI_ERROR_NOT_SUPPORTED);
		return;
	}
	CUpti_PCSamplingPCData *pc = NULL;
	CUpti_PCSamplingData *data = NULL;
	has_correlation = plumb_cupti.version >= 26; /* CUDA 12.8, the first that was looked at */
	pc_bytes = has_correlation ? sizeof *pc : offsetof(CUpti_PCSamplingPCData, correlationId);
	data_bytes = plumb_cupti.version > 18 ? sizeof *data
	                                      : offsetof(CUpti_PCSamplingData, hardwareBufferFull);
	CUptiResult result = plumb_cupti.RegisterComputeCrcCallback(name_module);
	if (result != CUPTI_SUCCESS) {
		refuse("cuptiRegisterComputeCrcCallback", result);
		return;
	}
	contexts = plumb_map(CONTEXTS * sizeof *contexts, true);
	if (!contexts)
		refuse("not enough memory", CUPTI_ERROR_OUT_OF_MEMORY);
}

void
plumb_cuda_stalls_tell(struct plumb_thread *thread)
{
	char text[32];
	if (!plumb_cuda_stalls_wanted)
		return;
	plumb_code_tell(thread);
	if (!told && atomic_load(&enabled_once)) {
		told = true;
		snprintf(text, sizeof text, "%llu", 1ull << plumb_collector_options()->stalls);
		plumb_environment(thread, "gpu.stalls.period_cycles", text);
		plumb_environment(thread, "gpu.stalls.mode",
		                  is_serialised() ? "serialised" : "continuous");
	}
	if (!told_off && atomic_load(&refused)) {
		told_off = true;
		plumb_environment(thread, "gpu.stalls.off", refusal);
	}
}

static void
forget(void)
{
	plumb_stalls_renew();
	plumb_code_renew();
	launch_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (launched_any) /* else its pages were never touched */
		memset(launches, 0, sizeof launches);
	launched_any = false;
	told = told_off = false;
	atomic_store(&refused, false);
	atomic_store(&enabled_once, false);
	atomic_store(&paused, false);
}

void
plumb_cuda_stalls_renew(void)
{
	forget();
	for (unsigned i = 0; contexts && i < CONTEXTS; i++)
		atomic_store(&contexts[i].on, false);
}

void
plumb_cuda_stalls_forked(void)
{
	forget();
	plumb_cuda_stalls_wanted = false;
	contexts = NULL; /* what CUPTI's dead threads wrote to */
}
