/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters by CUPTI's range profiler (CUDA 12.8 and newer): kernel replay, each launch a
 * range. gpu/counters.h says which launches.
 *
 * A session belongs to a CUDA context. It is made with the context, else before the first launch
 * that is to be counted. A launch goes
 *
 *	the call begins   cuptiRangeProfilerStart, on the program's thread
 *	                  … CUPTI runs the kernel once for each pass, and puts memory back between
 *	the call ends     cuptiRangeProfilerStop, cuptiRangeProfilerDecodeData
 *	at a flush        cuptiProfilerHostEvaluateToGpuValues, on the service thread; or on the
 *	                  program's, if the image is full
 *
 * so that the service thread makes no call that may wait for the driver (see stalls.c for what
 * happens then), but for switching off when the slot is given up. A context is claimed by one
 * thread at a time; a launch that finds it claimed is not counted.
 *
 * The profiler looks at the whole context. A launch of another thread between start and stop is a
 * range of its own: then more ranges came than one, nobody knows which is whose, and none counts.
 * Nothing is counted while any stream is being captured, as starting waits for the GPU, which ends
 * a capture.
 *
 * Measured with CUDA 13.0: a launch is only seen by the profiler while records of kernels are on.
 * Its own record has no times, and CUPTI waits for them: it delivers no later record, until the
 * end. So a forced flush follows each counted launch. The GPU has finished all work then, and no
 * record is lost, but for those of launches that other threads make meanwhile. If there are several
 * passes, CUPTI keeps one buffer of records for each counted launch all the same. So there are many
 * small buffers (cuda.c), and a limit.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/gpu/counters.h"
#include "collect/gpu/cuda/claim.h"
#include "collect/gpu/cuda/host.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/recording.h"
#include "collect/table.h"

#if __has_include(<cupti_range_profiler.h>)
#include <cupti_range_profiler.h>
#define SAME(ours, last, theirs, member)                                                           \
	_Static_assert(offsetof(struct ours, last) == offsetof(theirs, member) &&                  \
	                       sizeof(((struct ours *)0)->last) == sizeof(((theirs *)0)->member),  \
	               #ours "." #last)
SAME(plumb_profiler_availability, image, CUpti_Profiler_GetCounterAvailability_Params,
     pCounterAvailabilityImage);
SAME(plumb_range_enable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
SAME(plumb_range_plain, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
SAME(plumb_range_plain, profiler, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
SAME(plumb_range_config, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME(plumb_range_config, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME(plumb_range_config, most, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME(plumb_range_config, target_level, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
SAME(plumb_range_stop, complete, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
SAME(plumb_range_decode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
SAME(plumb_range_image_size, most, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
SAME(plumb_range_image_size, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
SAME(plumb_range_image, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
     pCounterData);
SAME(plumb_range_info, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);
_Static_assert((int)CUPTI_AutoRange == PLUMB_COUNTING_AUTO_RANGE &&
                       (int)CUPTI_KernelReplay == PLUMB_COUNTING_KERNEL_REPLAY,
               "numbers of the range profiler");
#endif

#define CONTEXTS 64u
#define RANGES 64u            /* launches that wait to be evaluated */
#define WAIT_NS 1000000000u   /* for a context that another thread works on */
#define PATIENCE_NS 20000000u /* the same, of a launch that is to be counted */
#define COUNTED_MOST (PLUMB_CUDA_COUNTING_BUFFERS - 96u) /* launches of a process */

struct session {
	struct plumb_cuda_claim claim; /* first */
	_Atomic bool on, failed;
	struct plumb_gpu_counters_plan plan;
	struct plumb_cuda_host host;
	void *profiler;
	uint8_t *image;
	size_t image_bytes;
	bool stale; /* all ranges of the image were read */
	unsigned ranges;
	_Atomic unsigned waiting;                  /* ranges to read */
	struct plumb_gpu_counted launches[RANGES]; /* node 0: a range of nobody's */
};

/* The launch that this thread is in. */
static __thread struct {
	struct session *session;
	uint32_t correlation;
	uint64_t begun_ns;
	struct plumb_gpu_counted launch;
} counting;

PLUMB_HOT bool plumb_cuda_counters_wanted;
static struct session *sessions; /* CONTEXTS of them */
static _Atomic bool have_slot;
static _Atomic unsigned started;  /* launches */
static _Atomic unsigned captures; /* streams that are being captured */

PLUMB_RANGE_FUNCTIONS(PLUMB_CUPTI_CALL)

/* ---- refusals ---- */

static void
refuse(const char *call, CUptiResult result)
{
	char text[400];
	plumb_cuda_host_why(text, sizeof text, "kernels are not counted", call, result);
	plumb_gpu_counters_refuse(text);
}

/* ---- sessions ---- */

static struct session *
find_session(CUcontext context)
{
	return plumb_cuda_claim_find(sessions, sizeof *sessions, CONTEXTS, context);
}

/* What its chip offers here: some of it may be taken by the driver or another program. */
static CUptiResult
read_availability(CUcontext context, uint8_t **image)
{
	struct plumb_profiler_availability ask = { .context = context };
	CUptiResult result = cupti_ProfilerGetCounterAvailability(&ask);
	if (result != CUPTI_SUCCESS)
		return result;
	ask.image = *image = calloc(1, ask.bytes);
	return *image ? cupti_ProfilerGetCounterAvailability(&ask) : CUPTI_ERROR_OUT_OF_MEMORY;
}

/* The host's side: which metrics there are, and in how many passes they come. */
static CUptiResult
plan_metrics(struct session *session, const char *chip, const uint8_t *availability,
             const char **call)
{
	struct plumb_gpu_counters_plan *plan = &session->plan;
	CUptiResult result = plumb_cuda_host_begin(&session->host, PLUMB_COUNTING_RANGES, chip,
	                                           availability, call);
	if (result != CUPTI_SUCCESS)
		return result;
	*call = "no counter of --counters is known here";
	plumb_gpu_counters_plan(plan, chip);
	for (unsigned i = 0; i < plan->metrics; i++)
		if (!plumb_cuda_host_knows(&session->host, plan->names[i]))
			plumb_gpu_counters_drop(plan, i);
	if (!plumb_gpu_counters_pack(plan))
		return CUPTI_ERROR_INVALID_METRIC_NAME;
	result = plumb_cuda_host_configure(&session->host, plan->names, plan->metrics, call);
	if (result == CUPTI_SUCCESS)
		plumb_gpu_counters_passes((unsigned)session->host.passes);
	return result;
}

/* Empties the image of ranges. */
static CUptiResult
renew_image(struct session *session)
{
	struct plumb_range_image image = {
		.profiler = session->profiler,
		.bytes = session->image_bytes,
		.image = session->image,
	};
	CUptiResult result = cupti_RangeProfilerCounterDataImageInitialize(&image);
	if (result != CUPTI_SUCCESS)
		return result;
	struct plumb_range_config config = {
		.profiler = session->profiler,
		.config_bytes = session->host.config_bytes,
		.config = session->host.config,
		.image_bytes = session->image_bytes,
		.image = session->image,
		.range = PLUMB_COUNTING_AUTO_RANGE,
		.replay = PLUMB_COUNTING_KERNEL_REPLAY,
		.most = RANGES,
		.levels = 1,
		.least_level = 1,
		.target_level = 1,
	};
	session->ranges = 0;
	session->stale = false;
	return cupti_RangeProfilerSetConfig(&config);
}

static CUptiResult
enable_ranges(struct session *session, const char **call)
{
	struct plumb_range_enable enable = { .context = atomic_load(&session->claim.context) };
	*call = "cuptiRangeProfilerEnable";
	CUptiResult result = cupti_RangeProfilerEnable(&enable);
	if (result != CUPTI_SUCCESS)
		return result;
	session->profiler = enable.profiler;
	struct plumb_range_image_size size = {
		.profiler = session->profiler,
		.names = (const char **)session->plan.names,
		.count = session->plan.metrics,
		.most = RANGES,
		.most_nodes = RANGES,
	};
	*call = "cuptiRangeProfilerGetCounterDataSize";
	result = cupti_RangeProfilerGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return result;
	session->image_bytes = size.bytes;
	session->image = calloc(1, size.bytes);
	*call = "cuptiRangeProfilerSetConfig";
	return session->image ? renew_image(session) : CUPTI_ERROR_OUT_OF_MEMORY;
}

/* After the ranges were read. With the claim. */
static void
switch_off(struct session *session)
{
	atomic_store(&session->on, false);
	if (session->profiler) {
		struct plumb_range_plain disable = { .profiler = session->profiler };
		cupti_RangeProfilerDisable(&disable);
	}
	plumb_cuda_host_end(&session->host);
	free(session->image);
	plumb_gpu_counters_plan_free(&session->plan);
	session->profiler = NULL;
	session->image = NULL;
	session->ranges = 0;
	atomic_store(&session->waiting, 0);
}

/* With the claim. LAUNCHING: what fails now will not work later, either. */
static void
switch_on(struct session *session, bool launching)
{
	const char *call, *chip = NULL;
	uint8_t *availability = NULL;
	uint32_t device;
	CUptiResult result =
		plumb_cuda_host_chip(atomic_load(&session->claim.context), &device, &chip, &call);
	if (result == CUPTI_SUCCESS) {
		call = "cuptiProfilerGetCounterAvailability";
		result = read_availability(atomic_load(&session->claim.context), &availability);
	}
	if (result == CUPTI_SUCCESS)
		result = plan_metrics(session, chip, availability, &call);
	if (result == CUPTI_SUCCESS)
		result = enable_ranges(session, &call);
	free(availability);
	if (result != CUPTI_SUCCESS) {
		if (launching)
			refuse(call, result);
		atomic_store(&session->failed, launching);
		switch_off(session);
		return;
	}
	atomic_store(&session->on, true);
}

void
plumb_cuda_counters_prepare(CUcontext context, bool launching)
{
	if (!sessions || !atomic_load(&have_slot) || !plumb_control_is_on(plumb_control))
		return;
	int saved = errno;
	struct session *session = find_session(context);
	if (!session)
		session = plumb_cuda_claim_add(sessions, sizeof *sessions, CONTEXTS, context);
	if (session && !atomic_load(&session->on) && !atomic_load(&session->failed) &&
	    plumb_cuda_claim(&session->claim, 0)) {
		if (!atomic_load(&session->on) && atomic_load(&have_slot))
			switch_on(session, launching);
		plumb_cuda_unclaim(&session->claim);
	}
	errno = saved;
}

/* ---- reading ---- */

/* With the claim. */
static void
read_ranges(struct session *session)
{
	double values[PLUMB_COUNTERS_TERMS_MOST];
	unsigned count = session->stale ? 0 : session->ranges;
	struct plumb_thread *thread =
		count && plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	for (unsigned i = 0; thread && i < count; i++) {
		for (unsigned m = 0; m < session->plan.metrics; m++)
			values[m] = NAN;
		if (!session->launches[i].node)
			continue;
		if (plumb_cuda_host_evaluate(&session->host, session->image, session->image_bytes,
		                             i, session->plan.names, session->plan.metrics,
		                             values) == CUPTI_SUCCESS)
			plumb_gpu_counters_add(thread, &session->plan, &session->launches[i],
			                       values);
		else
			plumb_gpu_counters_left(thread, PLUMB_FATE_CUPTI_DROPPED);
	}
	if (thread)
		plumb_leave(thread);
	session->stale = true;
	atomic_store(&session->waiting, 0);
}

void
plumb_cuda_counters_fetch(void)
{
	for (unsigned i = 0; sessions && i < CONTEXTS; i++) {
		if (!atomic_load(&sessions[i].waiting) || !plumb_cuda_claim(&sessions[i].claim, 0))
			continue;
		if (atomic_load(&sessions[i].on))
			read_ranges(&sessions[i]);
		plumb_cuda_unclaim(&sessions[i].claim);
	}
}

static void
stop_session(struct session *session)
{
	if (!atomic_load(&session->on) || !plumb_cuda_claim(&session->claim, WAIT_NS))
		return;
	if (atomic_load(&session->on)) {
		read_ranges(session);
		switch_off(session);
	}
	plumb_cuda_unclaim(&session->claim);
}

void
plumb_cuda_counters_destroyed(CUcontext context)
{
	struct session *session = sessions ? find_session(context) : NULL;
	if (!session)
		return;
	int saved = errno;
	stop_session(session);
	atomic_store(&session->failed, false);
	atomic_store(&session->claim.context, NULL);
	errno = saved;
}

void
plumb_cuda_counters_slot(bool ours)
{
	atomic_store(&have_slot, ours);
	for (unsigned i = 0; sessions && !ours && i < CONTEXTS; i++)
		stop_session(&sessions[i]);
}

/* ---- launches ---- */

void
plumb_cuda_counters_captured(bool begins)
{
	unsigned now = atomic_load(&captures);
	if (begins)
		atomic_fetch_add(&captures, 1);
	else
		while (now && !atomic_compare_exchange_weak(&captures, &now, now - 1))
			;
}

bool
plumb_cuda_counters_capturing(void)
{
	return atomic_load(&captures);
}

/* On several GPUs, or a graph. */
static bool
cannot_replay(CUpti_CallbackId id)
{
	return id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice ||
	       id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
	       id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

void
plumb_cuda_counters_launch(struct plumb_thread *thread, CUpti_CallbackId id,
                           const CUpti_CallbackData *info, plumb_id node)
{
	struct session *session = sessions ? find_session(info->context) : NULL;
	enum plumb_fate fate = PLUMB_FATE_NOT_COUNTED;
	counting.session = NULL;
	if (cannot_replay(id))
		fate = PLUMB_FATE_NO_REPLAY;
	else if (!session || !atomic_load(&session->on))
		fate = PLUMB_FATE_NOT_COUNTED;
	else if (atomic_load(&started) >= COUNTED_MOST)
		fate = PLUMB_FATE_ENOUGH;
	else if (atomic_load(&captures) || !plumb_cuda_claim(&session->claim, PATIENCE_NS))
		fate = PLUMB_FATE_BUSY;
	else {
		fate = plumb_gpu_counters_choose(thread, &counting.launch, node, info->symbolName);
		if (fate == PLUMB_FATE_ATTRIBUTED && atomic_load(&session->on)) {
			counting.session = session;
			counting.correlation = info->correlationId;
			return;
		}
		plumb_cuda_unclaim(&session->claim);
	}
	plumb_gpu_counters_left(thread, fate);
}

/* Tells the ledger of a launch that was to be counted. Outside a callback of plumb's. */
static void
leave_out(enum plumb_fate fate)
{
	struct plumb_thread *thread =
		plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	if (!thread)
		return;
	plumb_gpu_counters_left(thread, fate);
	plumb_leave(thread);
}

void
plumb_cuda_counters_start(void)
{
	struct session *session = counting.session;
	if (!session)
		return;
	int saved = errno;
	counting.begun_ns = plumb_clock_ns();
	struct plumb_range_plain start = { .profiler = session->profiler };
	const char *call = "cuptiRangeProfilerSetConfig";
	CUptiResult result = session->stale ? renew_image(session) : CUPTI_SUCCESS;
	if (result == CUPTI_SUCCESS) {
		call = "cuptiRangeProfilerStart";
		result = cupti_RangeProfilerStart(&start);
	}
	atomic_fetch_add(&started, 1);
	if (result != CUPTI_SUCCESS) {
		counting.session = NULL;
		refuse(call, result);
		plumb_cuda_unclaim(&session->claim);
		leave_out(PLUMB_FATE_NOT_COUNTED);
	}
	errno = saved;
}

/* Gives the ranges that came the launch that they are of. */
static enum plumb_fate
take_ranges(struct session *session)
{
	struct plumb_range_decode decode = { .profiler = session->profiler };
	struct plumb_range_info info = { .image = session->image, .bytes = session->image_bytes };
	CUptiResult result = cupti_RangeProfilerDecodeData(&decode);
	if (result == CUPTI_SUCCESS)
		result = cupti_RangeProfilerGetCounterDataInfo(&info);
	if (result != CUPTI_SUCCESS) {
		refuse("cuptiRangeProfilerDecodeData", result);
		return PLUMB_FATE_CUPTI_DROPPED;
	}
	unsigned before = session->ranges;
	unsigned now = info.ranges < RANGES ? (unsigned)info.ranges : RANGES;
	if (now <= before)
		return PLUMB_FATE_CUPTI_DROPPED; /* the launch failed, say */
	for (unsigned i = before; i < now; i++)
		session->launches[i].node = 0;
	session->ranges = now;
	bool alone = now == before + 1 && !decode.dropped;
	if (alone)
		session->launches[before] = counting.launch;
	atomic_store(&session->waiting, now);
	return alone ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_AMBIGUOUS;
}

void
plumb_cuda_counters_stop(uint32_t correlation)
{
	struct session *session = counting.session;
	if (!session || counting.correlation != correlation)
		return;
	int saved = errno;
	struct plumb_range_stop stop = { .profiler = session->profiler };
	enum plumb_fate fate = PLUMB_FATE_CUPTI_DROPPED;
	counting.session = NULL;
	CUptiResult result = cupti_RangeProfilerStop(&stop);
	if (result != CUPTI_SUCCESS)
		refuse("cuptiRangeProfilerStop", result);
	else
		fate = take_ranges(session);
	if (session->ranges >= RANGES)
		read_ranges(session);
	plumb_cuda_unclaim(&session->claim);
	plumb_slot_deliver();
	plumb_gpu_counters_spent(plumb_clock_ns() - counting.begun_ns);
	if (fate != PLUMB_FATE_ATTRIBUTED)
		leave_out(fate);
	errno = saved;
}

/* ---- the beginning, the end ---- */

void
plumb_cuda_counters_begin(void)
{
	plumb_cuda_counters_wanted = plumb_gpu_counters_begin();
	if (!plumb_cuda_counters_wanted || sessions)
		return;
	const char *missing = plumb_cuda_host_find();
	char text[200];
	PLUMB_RANGE_FUNCTIONS(PLUMB_CUPTI_FIND)
	if (missing) {
		plumb_cuda_host_lacks(text, sizeof text, "kernels are not counted", missing);
		plumb_gpu_counters_refuse(text);
		return;
	}
	sessions = plumb_map(CONTEXTS * sizeof *sessions, true);
	if (!sessions)
		plumb_gpu_counters_refuse("kernels are not counted: there is not enough memory");
}

void
plumb_cuda_counters_renew(void)
{
	plumb_gpu_counters_renew();
	atomic_store(&started, 0);
	for (unsigned i = 0; sessions && i < CONTEXTS; i++)
		atomic_store(&sessions[i].failed, false);
}

void
plumb_cuda_counters_forked(void)
{
	plumb_gpu_counters_renew();
	plumb_cuda_counters_wanted = false;
	sessions = NULL; /* CUPTI does not work in a forked child */
}
