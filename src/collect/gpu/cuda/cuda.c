/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, stop and the service thread: it reads what CUPTI delivers, flushes at a steady pace and
 * when asked, reads the clocks, and takes the slot back after the program used it. stop_cuda()
 * leaves the last flush to it and waits two seconds.
 */
#include <pthread.h>
#include <stdlib.h>

#include "collect/gpu/counters.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/gpu/series.h"
#include "collect/gpu/service.h"
#include "collect/recording.h"
#include "collect/wait.h"

#define STOP_NS 2000000000u
#define TICK_NS 100000000u /* a wish to flush waits no longer than this */

#define LINGER_NS 1000000000u /* records of what was launched before a pause are awaited so long */

static struct plumb_service service;
static uint64_t dropped;

PLUMB_HOT _Atomic bool plumb_cuda_live;
PLUMB_HOT struct plumb_gpu_activity *plumb_cuda_activity;

bool
plumb_cuda_own_process(void)
{
	return plumb_service_is_own(&service);
}

void
plumb_cuda_wake(void)
{
	plumb_service_wake(&service);
}

/* ---- knobs ---- */

static long
read_knob(const char *name, long otherwise)
{
	const char *text = getenv(name);
	char *end;
	if (!text || !*text)
		return otherwise;
	long value = strtol(text, &end, 10);
	return *end ? otherwise : value;
}

/* For measuring; struct plumb_cuda_knobs says what they do. */
static void
read_knobs(void)
{
	bool counts = plumb_collector_options()->counters[0]; /* see counters.c */
	plumb_cuda_knobs = (struct plumb_cuda_knobs){
		.buffer_bytes =
			(size_t)read_knob("PLUMB_CUPTI_BUFFER_BYTES", counts ? 16384 : 1 << 20),
		.buffers = (unsigned)read_knob("PLUMB_CUPTI_BUFFERS",
		                               counts ? PLUMB_CUDA_COUNTING_BUFFERS : 32),
		.ring_log2 = (unsigned)read_knob("PLUMB_CUPTI_RING_LOG2", 18),
		.kinds = (unsigned)read_knob("PLUMB_CUPTI_KINDS", 63),
		.callbacks = read_knob("PLUMB_CUPTI_CALLBACKS", 1) != 0,
		.zeroed = read_knob("PLUMB_CUPTI_ZEROED", 1) != 0,
		.per_thread = (int)read_knob("PLUMB_CUPTI_PER_THREAD", 1),
		.host_pinned = (int)read_knob("PLUMB_CUPTI_HOST_PINNED", -1),
		.hw_trace = (int)read_knob("PLUMB_CUPTI_HW_TRACE", -1),
		/* CUPTI's own 3.2 MB hold 100 000 kernels, and are touched piece by piece over the
		 * first 300 000: memory that seems to leak while training runs. */
		.device_buffer_bytes = read_knob("PLUMB_CUPTI_DEVICE_BUFFER_BYTES", 640000),
		.device_buffers = read_knob("PLUMB_CUPTI_DEVICE_BUFFERS", -1),
		.preallocate = read_knob("PLUMB_CUPTI_PREALLOCATE", -1),
		.stall_buffer_bytes = read_knob("PLUMB_CUPTI_STALL_BUFFER_BYTES", -1),
		.period_ms = read_knob("PLUMB_CUPTI_PERIOD_MS", -1),
	};
	if (plumb_cuda_knobs.buffer_bytes < 4096)
		plumb_cuda_knobs.buffer_bytes = 4096;
}

/* ---- the service thread ---- */

/* Reads the buffers that came back. */
static void
drain_buffers(void)
{
	struct plumb_buffer *buffer = plumb_buffers_take();
	struct plumb_thread *thread =
		buffer ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	while (buffer) {
		struct plumb_buffer *next = buffer->next;
		plumb_records_read(thread, buffer);
		plumb_buffer_recycle(buffer);
		buffer = next;
	}
	if (thread)
		plumb_leave(thread);
	plumb_buffers_prepare();
}

static bool
read_clock(uint64_t *gpu)
{
	return plumb_cupti.GetTimestamp(gpu) == CUPTI_SUCCESS;
}

/* Tells the ledger, the clocks and the environment what is new. */
static void
tell_news(bool force, bool end)
{
	struct plumb_buffer_news news;
	size_t lost = 0;
	if (!plumb_recording())
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	plumb_buffers_news(&news);
	if (plumb_cupti.ActivityGetNumDroppedRecords(NULL, 0, &lost) == CUPTI_SUCCESS)
		news.dropped_records += lost;
	plumb_records_merge(thread);
	plumb_gpu_replays_tell(plumb_cuda_activity, thread);
	dropped += news.dropped_records;
	if (news.requested)
		plumb_count(thread, PLUMB_SOURCE_BUFFER, PLUMB_FATE_RECEIVED, news.requested);
	if (news.requested > news.refused)
		plumb_count(thread, PLUMB_SOURCE_BUFFER, PLUMB_FATE_ATTRIBUTED,
		            news.requested - news.refused);
	if (news.refused)
		plumb_count(thread, PLUMB_SOURCE_BUFFER, PLUMB_FATE_BUFFERS_CAPPED, news.refused);
	plumb_slot_tell(thread, end);
	plumb_cuda_stalls_tell(thread);
	plumb_gpu_counters_tell(thread);
	plumb_gpu_series_tell(thread);
	plumb_gpu_clocks(plumb_cuda_activity, thread, force, read_clock);
	plumb_cuda_facts(thread);
	if (end)
		plumb_gpu_activity_finish(plumb_cuda_activity, thread, dropped);
	plumb_leave(thread);
}

/* Forced flushes that `plumb run` asked for, through the region. */
static void
serve_wishes(void)
{
	if (!plumb_recording())
		return;
	struct plumb_region_header *header = plumb_region_of_process()->header;
	uint32_t now = atomic_load(&header->flush_wanted);
	if (now == atomic_load(&header->flush_done))
		return;
	plumb_slot_flush(true);
	drain_buffers();
	plumb_cuda_stalls_fetch();
	plumb_cuda_counters_fetch();
	plumb_cuda_series_fetch(true);
	tell_news(true, false);
	atomic_store(&header->flush_done, now);
}

/* Follows recording's pauses. Records are switched off only when those of earlier launches came. */
static void
tend_pause(void)
{
	static uint64_t since;
	if (plumb_control_is_on(plumb_control)) {
		since = 0;
		plumb_slot_pause(false);
		plumb_cuda_stalls_pause(false);
		plumb_cuda_series_pause(false);
		return;
	}
	plumb_cuda_stalls_pause(true);
	plumb_cuda_series_pause(true);
	uint64_t now = plumb_clock_ns();
	if (!since)
		since = now;
	if (plumb_gpu_activity_complete(plumb_cuda_activity) || now - since > LINGER_NS)
		plumb_slot_pause(true);
}

static void
finish_records(void)
{
	plumb_slot_flush(true);
	drain_buffers();
	plumb_slot_leave();
	drain_buffers();
	tell_news(true, true);
	plumb_buffers_close();
}

/* From now on somebody fetches what a flush brings, though perhaps not at once: whoever asks
 * waits. */
static void
promise_flushes(bool promise)
{
	if (plumb_recording())
		atomic_store(&plumb_region_of_process()->header->flush_served, promise);
}

static void *
serve_records(void *data)
{
	uint64_t period = (uint64_t)plumb_collector_options()->flush_ms * 1000000u,
		 flushed = plumb_clock_ns();
	(void)data;
	pthread_setname_np(pthread_self(), "plumb");
	/* Its arena and tallies come now, while the region has room. */
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (thread) {
		plumb_gpu_activity_reserve(thread);
		plumb_wait_leave_out(thread);
		plumb_leave(thread);
		promise_flushes(true);
	}
	while (!plumb_service_is_stopping(&service)) {
		uint32_t seen = plumb_service_wakes(&service);
		drain_buffers();
		serve_wishes();
		plumb_slot_tend();
		tend_pause();
		plumb_cuda_counters_fetch(); /* an image is full, perhaps */
		plumb_cuda_series_fetch(false);
		uint64_t now = plumb_clock_ns();
		if (plumb_cuda_knobs.period_ms < 0 && now - flushed >= period) {
			flushed = now;
			plumb_slot_flush(false);
			drain_buffers();
			plumb_cuda_stalls_fetch();
			plumb_cuda_counters_fetch();
			tell_news(false, false);
		}
		plumb_service_sleep(&service, seen, period < TICK_NS && period ? period : TICK_NS);
	}
	finish_records();
	plumb_service_ended(&service);
	return NULL;
}

/* ---- the runtime ---- */

/* Records of an unknown layout are refused as a whole, and the ledger says so. */
static int
refuse_layout(struct plumb_error *error)
{
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (thread) {
		plumb_count(thread, PLUMB_SOURCE_BUFFER, PLUMB_FATE_UNKNOWN_LAYOUT, 1);
		plumb_leave(thread);
	}
	return plumb_fail(
		error, PLUMB_ESYSTEM,
		"GPU work is not recorded: CUPTI version %u (%s) has records that this plumb does "
		"not know; update plumb",
		plumb_cupti.version, plumb_cupti.path);
}

static void
at_exit(void)
{
	if (plumb_cuda_own_process())
		plumb_gpu_stop();
}

static int
start_cuda(struct plumb_error *error)
{
	struct plumb_cupti_layout layout;
	int result = plumb_driver_find(error);
	if (!result)
		result = plumb_cupti_find(error);
	if (result)
		return result;
	if (!plumb_cupti_layout(plumb_cupti.version, &layout))
		return refuse_layout(error);
	read_knobs();
	plumb_service_adopt(&service);
	plumb_records_init(&layout);
	if (!plumb_cuda_activity)
		plumb_cuda_activity =
			plumb_gpu_activity_new(plumb_cuda_knobs.ring_log2, "CUDA graph");
	if (!plumb_cuda_activity ||
	    !plumb_buffers_init(plumb_cuda_knobs.buffer_bytes, plumb_cuda_knobs.buffers,
	                        plumb_cuda_knobs.zeroed))
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "GPU work is not recorded: not enough memory for its records");
	atomic_store(&plumb_cuda_live, true);
	plumb_cuda_stalls_begin();
	plumb_cuda_counters_begin();
	plumb_cuda_series_begin();
	plumb_slot_pause(!plumb_control_is_on(plumb_control));
	result = plumb_slot_take(error);
	if (result)
		return result;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (thread) { /* the region is there: a signal may come before the service thread runs */
		promise_flushes(true);
		plumb_leave(thread);
	}
	result = plumb_service_start(&service, serve_records, "GPU work is not recorded", error);
	if (result) {
		promise_flushes(false);
		plumb_slot_leave();
		return result;
	}
	/* CUDA's own exit handlers are registered already, so this runs while CUPTI still works. */
	static bool registered;
	if (!registered)
		atexit(at_exit);
	registered = true;
	return 0;
}

static void
stop_cuda(void)
{
	plumb_service_stop(&service, STOP_NS);
}

static void
pause_records(bool paused)
{
	if (!plumb_cuda_own_process())
		return;
	if (!paused) {
		plumb_slot_pause(false);
		plumb_cuda_stalls_pause(false);
	}
	plumb_cuda_wake();
}

static bool
renew_cuda(void)
{
	if (!plumb_cuda_own_process() || !service.serving)
		return true; /* it never started, or failed to */
	if (!plumb_service_renew(&service))
		return false;
	plumb_gpu_activity_renew(plumb_cuda_activity);
	plumb_records_renew();
	plumb_cuda_facts_renew();
	plumb_slot_renew();
	plumb_cuda_stalls_renew();
	plumb_cuda_counters_renew();
	plumb_cuda_series_renew();
	plumb_cuda_copies_renew(false);
	dropped = 0;
	return true;
}

static void
leave_forked(void)
{
	plumb_service_forked(&service);
	plumb_cuda_stalls_forked();
	plumb_cuda_counters_forked();
	plumb_cuda_series_forked();
	plumb_cuda_copies_renew(true);
	atomic_store(&plumb_cuda_live, false);
}

const struct plumb_gpu_runtime plumb_gpu_cuda = {
	.name = "cuda",
	.driver = PLUMB_CUDA_DRIVER,
	.modes = PLUMB_GPU_MODE(ACTIVITY),
	.ready = plumb_driver_is_up,
	.start = start_cuda,
	.stop = stop_cuda,
	.pause = pause_records,
	.renew = renew_cuda,
	.forked = leave_forked,
};
