/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of whole GPUs over time, by CUPTI's PM sampling (CUDA 12.8 and newer):
 * gpu/series.h has what becomes of the samples.
 *
 * A session belongs to a device. It is made with the first context on it, else before the first
 * launch. From then on the GPU writes samples into a buffer of its own, and the service thread does
 * the rest, several times a second: cuptiPmSamplingDecodeData into an image, then the host's side
 * evaluates each sample. No thread of the program waits for that: a session is claimed by one
 * thread at a time, and whoever finds it claimed goes on without.
 *
 * What others measured on an H100 (CUDA 12.8 and 13.3), and is built for:
 *   - An image that is too small for a decoding loses samples. So it has room for several times
 *     what comes between two of them.
 *   - An overflow of the hardware's buffer is for good: sampling has to stop and start again.
 *   - After the stop come samples that cover no time.
 *   - Disabling may take all of CUPTI down: it is the last thing that happens.
 *
 * Measured on an H200 with CUDA 13.0: records of kernels come as always, and so do those of copies.
 * The first sample begins when sampling was set up, half a second before the others. Times of
 * samples are on CUPTI's clock, as those of records: copies begin in both at once. A finished
 * sample was known 8 ms later at the earliest.
 *
 * No documentation says that the clocks are one. A sample was over when it was decoded, and the
 * first one ended after the start of sampling; so their distance is at most the one and at least
 * the other. If it can be 0, plumb takes it for 0, until the times at which samples are known move
 * away.
 * Otherwise the smallest distance of the newest decodings is taken, and the series is late by how
 * long a finished sample waits.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/gpu/cuda/claim.h"
#include "collect/gpu/cuda/host.h"
#include "collect/gpu/series.h"
#include "collect/recording.h"
#include "collect/table.h"

#if __has_include(<cupti_pmsampling.h>)
#include <cupti_pmsampling.h>
#define SAME(ours, last, theirs, member)                                                           \
	_Static_assert(offsetof(struct ours, last) == offsetof(theirs, member) &&                  \
	                       sizeof(((struct ours *)0)->last) == sizeof(((theirs *)0)->member),  \
	               #ours "." #last)
SAME(plumb_sampling_enable, sampler, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
SAME(plumb_sampling_plain, sampler, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
SAME(plumb_sampling_plain, sampler, CUpti_PmSampling_Start_Params, pPmSamplingObject);
SAME(plumb_sampling_config, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
SAME(plumb_sampling_config, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
SAME(plumb_sampling_decode, stopped, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
SAME(plumb_sampling_decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);
SAME(plumb_sampling_availability, image, CUpti_PmSampling_GetCounterAvailability_Params,
     pCounterAvailabilityImage);
SAME(plumb_sampling_image_size, bytes, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);
SAME(plumb_sampling_image, image, CUpti_PmSampling_CounterDataImage_Initialize_Params,
     pCounterData);
SAME(plumb_sampling_info, completed, CUpti_PmSampling_GetCounterDataInfo_Params,
     numCompletedSamples);
SAME(plumb_sampling_sample, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);
_Static_assert((int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL == PLUMB_SAMPLING_BY_TIME &&
                       (int)CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL ==
                               PLUMB_SAMPLING_IMAGE_FULL,
               "numbers of PM sampling");
#endif

#define DEVICES 64u
#define CONTEXTS 64u
#define WAIT_NS 1000000000u  /* for a session that another thread works on */
#define A_SAMPLE (16u << 10) /* bytes of the hardware's buffer: more than any set of metrics took */
#define HARDWARE_LEAST (64u << 20)
#define HARDWARE_MOST (512u << 20)
#define HARDWARE_NS 4000000000u /* that its buffer has room for */
#define IMAGE_NS 1000000000u    /* that an image has room for, … */
#define IMAGE_LEAST 128u        /* … in samples, at 16 KiB each */
#define IMAGE_MOST 4096u
#define DISTANCES 32u             /* decodings whose distance between the clocks is remembered */
#define CLOCK_NS 10000000000u     /* until then it is known whether the clocks are one */
#define APART_NS 10000000         /* by which they move apart before it counts */
#define LONGER 4u                 /* than the interval: a sample from before the start */
#define SYSTEM_CLOCKS_PER_US 1400 /* where samples come by clocks; times do not depend on it */

struct session {
	struct plumb_cuda_claim claim; /* first */
	_Atomic bool on, failed;
	uint32_t device;
	struct plumb_gpu_counters_plan plan;
	struct plumb_cuda_host host;
	void *sampler;
	uint8_t *image;
	size_t image_bytes;
	unsigned image_samples;
	bool by_clocks;                  /* this chip cannot sample by time */
	struct plumb_gpu_series *series; /* NULL: nothing came yet */
	uint64_t last;    /* end of the newest sample, GPU's ns; 0: none since a start */
	uint64_t fetched; /* when */
	uint64_t started; /* when, CUPTI's clock */
	struct {
		int64_t least; /* that it can be */
		int64_t newest[DISTANCES];
		unsigned count;
		bool one;        /* the clocks are one, … */
		int64_t waiting; /* … and so a finished sample waits so long */
	} distance;
};

PLUMB_HOT bool plumb_cuda_series_wanted;
static struct session *sessions;          /* DEVICES of them */
static struct plumb_cuda_claim *contexts; /* CONTEXTS of them; claimed: its device is decided */
static _Atomic bool have_slot, paused;

PLUMB_SAMPLING_FUNCTIONS(PLUMB_CUPTI_CALL)

static const char what[] = "hardware counters are not sampled";

static void
refuse(const char *call, CUptiResult result)
{
	char text[400];
	plumb_cuda_host_why(text, sizeof text, what, call, result);
	plumb_gpu_series_refuse(text);
}

static uint64_t
interval_ns(void)
{
	return (uint64_t)plumb_collector_options()->counters_every * 1000u;
}

/* ---- what fits into one pass ---- */

static CUptiResult
read_availability(uint32_t device, uint8_t **image)
{
	struct plumb_sampling_availability ask = { .device = device };
	CUptiResult result = cupti_PmSamplingGetCounterAvailability(&ask);
	if (result != CUPTI_SUCCESS)
		return result;
	ask.image = *image = calloc(1, ask.bytes);
	return *image ? cupti_PmSamplingGetCounterAvailability(&ask) : CUPTI_ERROR_OUT_OF_MEMORY;
}

struct choice {
	const char *chip;
	const uint8_t *availability;
	struct plumb_gpu_series_wish wishes[PLUMB_SERIES_MOST];
	const char *taken[PLUMB_SERIES_MOST]; /* the expression of each; NULL: none */
	unsigned count;
};

/* Makes the session's plan of the first COUNT wishes that are taken. False: it does not fit, or is
 * empty. */
static bool
try_choice(struct session *session, const struct choice *choice, unsigned count)
{
	struct plumb_gpu_counters_plan *plan = &session->plan;
	const char *call;
	plumb_cuda_host_end(&session->host);
	plumb_gpu_counters_plan_free(plan);
	memset(plan, 0, sizeof *plan);
	for (unsigned i = 0; i < count; i++) {
		const struct plumb_gpu_series_wish *wish = &choice->wishes[i];
		if (choice->taken[i] &&
		    !plumb_gpu_counters_plan_add(plan, wish->name, strlen(wish->name), wish->unit,
		                                 choice->taken[i]))
			return false;
	}
	if (!plan->counters ||
	    plumb_cuda_host_begin(&session->host, PLUMB_COUNTING_SAMPLES, choice->chip,
	                          choice->availability, &call) != CUPTI_SUCCESS)
		return false;
	for (unsigned i = 0; i < plan->metrics; i++)
		if (!plumb_cuda_host_knows(&session->host, plan->names[i]))
			return false;
	return plumb_cuda_host_configure(&session->host, plan->names, plan->metrics, &call) ==
	               CUPTI_SUCCESS &&
	       session->host.passes == 1;
}

/* All of them, if they fit together as they are; else as many as fit, in their order. */
static bool
choose(struct session *session, struct choice *choice)
{
	choice->count = plumb_gpu_series_wishes(choice->wishes, choice->chip);
	for (unsigned i = 0; i < choice->count; i++)
		choice->taken[i] = choice->wishes[i].expressions[0];
	bool fits = try_choice(session, choice, choice->count);
	for (unsigned i = 0; !fits && i < choice->count; i++) {
		bool found = false;
		for (unsigned e = 0; e < 2 && !found; e++) {
			choice->taken[i] = choice->wishes[i].expressions[e];
			found = choice->taken[i] && try_choice(session, choice, i + 1);
		}
		if (found)
			continue;
		choice->taken[i] = NULL;
		plumb_gpu_series_leave_out(&choice->wishes[i]);
	}
	if (!fits)
		fits = try_choice(session, choice, choice->count);
	if (fits)
		plumb_gpu_series_chosen(&session->plan);
	return fits;
}

/* ---- on and off ---- */

static CUptiResult
empty_image(struct session *session)
{
	struct plumb_sampling_image image = {
		.sampler = session->sampler,
		.bytes = session->image_bytes,
		.image = session->image,
	};
	return cupti_PmSamplingCounterDataImageInitialize(&image);
}

static CUptiResult
make_image(struct session *session, const char **call)
{
	uint64_t samples = IMAGE_NS / interval_ns();
	session->image_samples = samples < IMAGE_LEAST  ? IMAGE_LEAST
	                         : samples > IMAGE_MOST ? IMAGE_MOST
	                                                : (unsigned)samples;
	struct plumb_sampling_image_size size = {
		.sampler = session->sampler,
		.names = (const char **)session->plan.names,
		.count = session->plan.metrics,
		.most = session->image_samples,
	};
	*call = "cuptiPmSamplingGetCounterDataSize";
	CUptiResult result = cupti_PmSamplingGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return result;
	session->image_bytes = size.bytes;
	session->image = calloc(1, size.bytes);
	*call = "cuptiPmSamplingCounterDataImageInitialize";
	return session->image ? empty_image(session) : CUPTI_ERROR_OUT_OF_MEMORY;
}

static CUptiResult
start_sampling(struct session *session, const char **call)
{
	uint64_t bytes = HARDWARE_NS / interval_ns() * A_SAMPLE;
	struct plumb_sampling_config config = {
		.sampler = session->sampler,
		.config_bytes = session->host.config_bytes,
		.config = session->host.config,
		.hardware_bytes = bytes < HARDWARE_LEAST  ? HARDWARE_LEAST
		                  : bytes > HARDWARE_MOST ? HARDWARE_MOST
		                                          : bytes,
		.interval = session->by_clocks ? interval_ns() / 1000 * SYSTEM_CLOCKS_PER_US
		                               : interval_ns(),
		.trigger = session->by_clocks ? PLUMB_SAMPLING_BY_CLOCK : PLUMB_SAMPLING_BY_TIME,
		.append = PLUMB_SAMPLING_KEEP_OLDEST,
	};
	struct plumb_sampling_plain start = { .sampler = session->sampler };
	*call = "cuptiPmSamplingSetConfig";
	CUptiResult result = cupti_PmSamplingSetConfig(&config);
	if (result != CUPTI_SUCCESS)
		return result;
	session->last = 0;
	session->distance.least = INT64_MIN;
	session->distance.count = 0;
	session->distance.one = false;
	if (plumb_cupti.GetTimestamp(&session->started) != CUPTI_SUCCESS)
		session->started = 0;
	*call = "cuptiPmSamplingStart";
	return cupti_PmSamplingStart(&start);
}

/* With the claim. */
static void
switch_off(struct session *session)
{
	atomic_store(&session->on, false);
	if (session->sampler) {
		struct plumb_sampling_plain disable = { .sampler = session->sampler };
		cupti_PmSamplingDisable(&disable);
	}
	plumb_cuda_host_end(&session->host);
	plumb_gpu_counters_plan_free(&session->plan);
	plumb_gpu_series_free(session->series);
	free(session->image);
	session->sampler = NULL;
	session->series = NULL;
	session->image = NULL;
}

static CUptiResult
set_up(struct session *session, const char *chip, const uint8_t *availability, const char **call)
{
	struct choice choice = { .chip = chip, .availability = availability };
	enum plumb_counter_family family = plumb_counter_family(chip);
	*call = "no counter of --counters-series fits into one pass here";
	if (!choose(session, &choice))
		return CUPTI_ERROR_INVALID_METRIC_NAME;
	session->by_clocks = family == PLUMB_COUNTER_TURING || family == PLUMB_COUNTER_AMPERE;
	struct plumb_sampling_enable enable = { .device = session->device };
	*call = "cuptiPmSamplingEnable";
	CUptiResult result = cupti_PmSamplingEnable(&enable);
	if (result != CUPTI_SUCCESS)
		return result;
	session->sampler = enable.sampler;
	result = make_image(session, call);
	return result == CUPTI_SUCCESS ? start_sampling(session, call) : result;
}

/* With the claim. LAUNCHING: what fails now will not work later, either. */
static void
switch_on(struct session *session, const char *chip, bool launching)
{
	const char *call = "cuptiPmSamplingGetCounterAvailability";
	uint8_t *availability = NULL;
	CUptiResult result = read_availability(session->device, &availability);
	if (result == CUPTI_SUCCESS)
		result = set_up(session, chip, availability, &call);
	free(availability);
	if (result != CUPTI_SUCCESS) {
		if (launching)
			refuse(call, result);
		atomic_store(&session->failed, launching);
		switch_off(session);
		return;
	}
	session->fetched = plumb_clock_ns();
	atomic_store(&session->on, true);
}

/* True: nothing is to be done for its contexts any more. */
static bool
prepare_device(CUcontext context, bool launching)
{
	const char *chip = NULL, *call;
	uint32_t device;
	CUptiResult result = plumb_cuda_host_chip(context, &device, &chip, &call);
	if (result != CUPTI_SUCCESS || device >= DEVICES) {
		if (launching)
			refuse(call, result != CUPTI_SUCCESS ? result : CUPTI_ERROR_INVALID_DEVICE);
		return launching;
	}
	struct session *session = &sessions[device];
	if (!atomic_load(&session->on) && !atomic_load(&session->failed) &&
	    plumb_cuda_claim(&session->claim, 0)) {
		session->device = device;
		if (!atomic_load(&session->on) && atomic_load(&have_slot))
			switch_on(session, chip, launching);
		plumb_cuda_unclaim(&session->claim);
	}
	return atomic_load(&session->on) || atomic_load(&session->failed);
}

void
plumb_cuda_series_prepare(CUcontext context, bool launching)
{
	if (!sessions)
		return;
	struct plumb_cuda_claim *item =
		plumb_cuda_claim_find(contexts, sizeof *contexts, CONTEXTS, context);
	if ((item && atomic_load_explicit(&item->claimed, memory_order_relaxed)) ||
	    !atomic_load(&have_slot) || !plumb_control_is_on(plumb_control) ||
	    plumb_cuda_counters_capturing()) /* what waits for the GPU ends a capture */
		return;
	int saved = errno;
	if (!item)
		item = plumb_cuda_claim_add(contexts, sizeof *contexts, CONTEXTS, context);
	if (item && prepare_device(context, launching))
		atomic_store(&item->claimed, true);
	errno = saved;
}

void
plumb_cuda_series_destroyed(CUcontext context)
{
	struct plumb_cuda_claim *item =
		sessions ? plumb_cuda_claim_find(contexts, sizeof *contexts, CONTEXTS, context)
			 : NULL;
	if (!item)
		return;
	atomic_store(&item->claimed, false);
	atomic_store(&item->context, NULL);
}

/* ---- the clocks ---- */

/* Of the newest decodings, of which there is one at least. */
static int64_t
smallest_distance(const struct session *session)
{
	int64_t least = INT64_MAX;
	for (unsigned i = 0; i < session->distance.count && i < DISTANCES; i++)
		if (session->distance.newest[i] < least)
			least = session->distance.newest[i];
	return least;
}

/* A sample that ended at END, of the GPU's clock, was known NOW. */
static void
note_distance(struct session *session, uint64_t end, uint64_t now)
{
	__typeof__(&session->distance) distance = &session->distance;
	distance->newest[distance->count++ % DISTANCES] = (int64_t)(now - end);
	if (distance->least == INT64_MIN || now - session->started > CLOCK_NS)
		return;
	distance->waiting = smallest_distance(session);
	distance->one = distance->least <= 0 && distance->waiting >= 0;
}

/* From the GPU's clock to CUPTI's. */
static int64_t
distance_of(const struct session *session)
{
	if (!session->distance.count)
		return 0;
	int64_t distance = smallest_distance(session);
	if (!session->distance.one)
		return distance;
	distance -= session->distance.waiting;
	return distance > -APART_NS && distance < APART_NS ? 0 : distance;
}

/* ---- samples ---- */

/* The times of sample NUMBER of the image. False: it covers none. */
static bool
read_times(const struct session *session, size_t number, struct plumb_sampling_sample *sample)
{
	*sample = (struct plumb_sampling_sample){
		.sampler = session->sampler,
		.image = session->image,
		.bytes = session->image_bytes,
		.index = number,
	};
	return cupti_PmSamplingCounterDataGetSampleInfo(sample) == CUPTI_SUCCESS && sample->start &&
	       sample->end > sample->start;
}

/* Samples that the times of those before and after it show to be missing. */
static uint64_t
count_missing(const struct session *session, uint64_t start)
{
	uint64_t interval = interval_ns();
	if (!session->last || start < session->last || session->by_clocks)
		return 0;
	return (start - session->last + interval / 2) / interval;
}

static void
take_sample(struct plumb_thread *thread, struct session *session, size_t number)
{
	struct plumb_sampling_sample sample;
	double values[PLUMB_COUNTERS_TERMS_MOST];
	if (!read_times(session, number, &sample))
		return;
	if (!session->last && sample.end - sample.start > LONGER * interval_ns()) {
		session->last = sample.end;
		return;
	}
	plumb_gpu_series_lost(thread, PLUMB_FATE_CUPTI_DROPPED,
	                      count_missing(session, sample.start));
	session->last = sample.end;
	if (atomic_load(&paused)) {
		plumb_gpu_series_lost(thread, PLUMB_FATE_PAUSED, 1);
		return;
	}
	for (unsigned m = 0; m < session->plan.metrics; m++)
		values[m] = NAN;
	if (plumb_cuda_host_evaluate(&session->host, session->image, session->image_bytes, number,
	                             session->plan.names, session->plan.metrics,
	                             values) != CUPTI_SUCCESS) {
		plumb_gpu_series_lost(thread, PLUMB_FATE_CUPTI_DROPPED, 1);
		return;
	}
	int64_t distance = distance_of(session);
	plumb_gpu_series_add(thread, session->series, &session->plan,
	                     sample.start + (uint64_t)distance, sample.end + (uint64_t)distance,
	                     values);
}

/* The image's COUNT samples, decoded NOW. */
static void
take_samples(struct session *session, size_t count, uint64_t now)
{
	struct plumb_sampling_sample sample;
	struct plumb_thread *thread =
		plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	if (!thread)
		return;
	if (!session->series)
		session->series = plumb_gpu_series_new(
			thread, plumb_records_device(thread, session->device), &session->plan);
	for (size_t i = 0; i < count && session->distance.least == INT64_MIN; i++)
		if (read_times(session, i, &sample) && session->started)
			session->distance.least = (int64_t)(session->started - sample.end);
	for (size_t i = count; i-- > 0;)
		if (read_times(session, i, &sample)) {
			note_distance(session, sample.end, now);
			break;
		}
	for (size_t i = 0; session->series && i < count; i++)
		take_sample(thread, session, i);
	plumb_leave(thread);
}

/* The hardware's buffer was full, and stays so: samples since the newest one are lost. */
static void
restart(struct session *session)
{
	struct plumb_sampling_plain stop = { .sampler = session->sampler };
	const char *call;
	uint64_t now = 0, lost = 1;
	if (session->last && plumb_cupti.GetTimestamp(&now) == CUPTI_SUCCESS) {
		int64_t since = (int64_t)(now - session->last) - distance_of(session);
		lost = since > 0 ? (uint64_t)since / interval_ns() + 1 : 1;
	}
	struct plumb_thread *thread =
		plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	if (thread) {
		plumb_gpu_series_lost(thread, PLUMB_FATE_HARDWARE_FULL, lost);
		plumb_leave(thread);
	}
	CUptiResult result = cupti_PmSamplingStop(&stop);
	if (result == CUPTI_SUCCESS)
		result = start_sampling(session, &call);
	else
		call = "cuptiPmSamplingStop";
	if (result != CUPTI_SUCCESS) {
		refuse(call, result);
		atomic_store(&session->failed, true);
		switch_off(session);
	}
}

/* With the claim. ENDING: sampling was stopped. */
static void
fetch_samples(struct session *session, bool ending)
{
	struct plumb_sampling_decode decode = {
		.sampler = session->sampler,
		.image = session->image,
		.bytes = session->image_bytes,
	};
	struct plumb_sampling_info info = { .image = session->image,
		                            .bytes = session->image_bytes };
	uint64_t now = 0;
	session->fetched = plumb_clock_ns();
	CUptiResult result = empty_image(session);
	if (result == CUPTI_SUCCESS)
		result = cupti_PmSamplingDecodeData(&decode);
	plumb_cupti.GetTimestamp(&now);
	bool full = result == CUPTI_ERROR_OUT_OF_MEMORY || (!result && decode.overflow);
	if (result == CUPTI_SUCCESS)
		result = cupti_PmSamplingGetCounterDataInfo(&info);
	if (result == CUPTI_SUCCESS)
		take_samples(session, info.completed, now);
	if (full && !ending) {
		restart(session);
	} else if (result != CUPTI_SUCCESS && !full) {
		refuse("cuptiPmSamplingDecodeData", result);
		atomic_store(&session->failed, true);
		switch_off(session);
	}
}

void
plumb_cuda_series_fetch(bool force)
{
	uint64_t now = plumb_clock_ns();
	for (unsigned i = 0; sessions && i < DEVICES; i++) {
		struct session *session = &sessions[i];
		if (!atomic_load(&session->on) || !plumb_cuda_claim(&session->claim, 0))
			continue;
		uint64_t period = session->image_samples * interval_ns() / 4;
		if (atomic_load(&session->on) && (force || now - session->fetched >= period))
			fetch_samples(session, false);
		plumb_cuda_unclaim(&session->claim);
	}
}

void
plumb_cuda_series_pause(bool pause)
{
	if (!sessions || atomic_load(&paused) == pause)
		return;
	plumb_cuda_series_fetch(true);
	atomic_store(&paused, pause);
}

/* ---- the slot, the beginning, the end ---- */

static void
stop_session(struct session *session)
{
	if (!atomic_load(&session->on) || !plumb_cuda_claim(&session->claim, WAIT_NS))
		return;
	if (atomic_load(&session->on)) {
		struct plumb_sampling_plain stop = { .sampler = session->sampler };
		cupti_PmSamplingStop(&stop);
		fetch_samples(session, true);
		if (session->distance.count)
			plumb_gpu_series_clocks(distance_of(session), session->distance.least);
		if (atomic_load(&session->on))
			switch_off(session);
	}
	plumb_cuda_unclaim(&session->claim);
}

void
plumb_cuda_series_slot(bool ours)
{
	if (!sessions)
		return;
	for (unsigned i = 0; ours && i < CONTEXTS; i++)
		atomic_store(&contexts[i].claimed, false);
	atomic_store(&have_slot, ours);
	for (unsigned i = 0; !ours && i < DEVICES; i++)
		stop_session(&sessions[i]);
}

void
plumb_cuda_series_begin(void)
{
	plumb_cuda_series_wanted = plumb_gpu_series_begin();
	if (!plumb_cuda_series_wanted || sessions)
		return;
	const char *missing = plumb_cuda_host_find();
	char text[200];
	PLUMB_SAMPLING_FUNCTIONS(PLUMB_CUPTI_FIND)
	if (missing) {
		plumb_cuda_host_lacks(text, sizeof text, what, missing);
		plumb_gpu_series_refuse(text);
		return;
	}
	contexts = plumb_map(CONTEXTS * sizeof *contexts, true);
	sessions = contexts ? plumb_map(DEVICES * sizeof *sessions, true) : NULL;
	if (!sessions)
		plumb_gpu_series_refuse("hardware counters are not sampled: there is not enough "
		                        "memory");
}

void
plumb_cuda_series_renew(void)
{
	plumb_gpu_series_renew();
	for (unsigned i = 0; sessions && i < DEVICES; i++)
		atomic_store(&sessions[i].failed, false);
}

void
plumb_cuda_series_forked(void)
{
	plumb_gpu_series_renew();
	plumb_cuda_series_wanted = false;
	sessions = NULL; /* CUPTI does not work in a forked child */
}
