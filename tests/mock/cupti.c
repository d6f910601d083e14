/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in libcupti, compiled against the headers of one release: its records have that
 * release's structures. See README.md. Works as CUPTI was measured to: one subscriber; nothing
 * recorded without one; a buffer for each thread, asked for on that thread, given back on a thread
 * of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcsampling.h"

#if CUDA_VERSION >= 13000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#elif CUDA_VERSION >= 12080
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#elif CUDA_VERSION >= 12000
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#else
typedef CUpti_ActivityKernel8 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif
typedef CUpti_ActivityMemcpyPtoP4 peer_record;
typedef CUpti_ActivityMemset4 set_record;
typedef CUpti_ActivityGraphTrace replay_record;
#if CUDA_VERSION >= 12080
typedef CUpti_ActivityCudaEvent2 event_record;
typedef CUpti_ActivitySynchronization2 sync_record;
#else
typedef CUpti_ActivityCudaEvent event_record;
typedef CUpti_ActivitySynchronization sync_record;
#endif
#define LARGEST sizeof(kernel_record)

enum { UNKNOWN_KIND = 4000 }; /* the kind that nobody knows */

/* A buffer that the tool lent, and what belongs into it. It is filled when it goes back. */
struct filling {
	uint8_t *data;
	size_t size, most;
	struct mock_work *works;
	size_t count;
	struct filling *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_there = PTHREAD_COND_INITIALIZER, work_done = PTHREAD_COND_INITIALIZER;
static struct filling *open_list; /* one for each thread that made work */
static struct filling *queue, **queue_end = &queue;
static int delivering, worker_runs;
static bool held; /* CUPTI waits for the times of a counted launch, which never come */
static _Thread_local struct filling *mine;
static _Thread_local unsigned my_epoch;
static unsigned epoch; /* changes when all open buffers are taken back */

static CUpti_CallbackFunc callback;
static void *callback_data;
static uint8_t callback_enabled[4][4096];
static struct CUpti_Subscriber_st {
	int number;
} subscribers[64];
static int subscription; /* index of the one that holds the slot */
static CUpti_BuffersCallbackRequestFunc buffer_requested;
static CUpti_BuffersCallbackCompleteFunc buffer_completed;
static uint8_t kinds[256];
static size_t dropped;
static struct filling *late;

#define COUNT(key, n) __atomic_fetch_add(mock_value(key), (n), __ATOMIC_SEQ_CST)

/* ---- callbacks ---- */

static int
subscribed(void)
{
	return mock_get("subscribed") == 1;
}

static void
call_back(struct mock_call *call, CUpti_ApiCallbackSite site)
{
	CUpti_CallbackFunc function = callback;
	if (!subscribed() || !function || call->id >= 4096 ||
	    !callback_enabled[CUPTI_CB_DOMAIN_DRIVER_API][call->id])
		return;
	CUpti_CallbackData data = {
		.callbackSite = site,
		.functionName = call->name,
		.functionParams = call->params,
		.functionReturnValue = site == CUPTI_API_EXIT ? &call->result : NULL,
		.symbolName = call->symbol,
		.contextUid = call->context,
		.context = mock_context(call->context - 1),
		.correlationData = &call->data,
		.correlationId = call->correlation,
	};
	COUNT("callbacks", 1);
	function(callback_data, CUPTI_CB_DOMAIN_DRIVER_API, call->id, &data);
}

static void
on_enter(struct mock_call *call)
{
	call_back(call, CUPTI_API_ENTER);
}

static void
on_exit_of(struct mock_call *call)
{
	call_back(call, CUPTI_API_EXIT);
}

/* A node's handle is its number. */
static void
on_graph_node(uint64_t number, uint64_t original)
{
	CUpti_GraphData data = { .node = (CUgraphNode)(uintptr_t)number,
		                 .originalNode = (CUgraphNode)(uintptr_t)original };
	CUpti_ResourceData resource = { .resourceDescriptor = &data };
	CUpti_CallbackId id = original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
	                               : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;
	if (subscribed() && callback_enabled[CUPTI_CB_DOMAIN_RESOURCE][id])
		callback(callback_data, CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
}

static void
tell_resource(CUpti_CallbackId id, CUcontext context, void *data)
{
	CUpti_ResourceData resource = { .context = context, .resourceDescriptor = data };
	if (subscribed() && callback_enabled[CUPTI_CB_DOMAIN_RESOURCE][id])
		callback(callback_data, CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
}

static void
on_module(const char *image, size_t bytes)
{
	CUpti_ModuleResourceData data = { .moduleId = 1, .cubinSize = bytes, .pCubin = image };
	mock_pc_module(image, bytes);
	tell_resource(CUPTI_CBID_RESOURCE_MODULE_LOADED, mock_context(0), &data);
}

static void
on_unload(void)
{
	CUpti_ModuleResourceData data = { .moduleId = 1 };
	tell_resource(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, mock_context(0), &data);
}

static void
on_context(uint32_t device, int made)
{
	tell_resource(made ? CUPTI_CBID_RESOURCE_CONTEXT_CREATED
	                   : CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
	              mock_context(device), NULL);
}

static int
replays_whole(void)
{
	return kinds[CUPTI_ACTIVITY_KIND_GRAPH_TRACE];
}

CUptiResult CUPTIAPI
cuptiGetGraphExecId(CUgraphExec graph, uint32_t *number)
{
	if (!graph || !number)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*number = (uint32_t)((uintptr_t)graph >> 4) & 0xffffff;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiGetGraphNodeId(CUgraphNode node, uint64_t *number)
{
	if (!node || !number)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*number = (uint64_t)(uintptr_t)node;
	return CUPTI_SUCCESS;
}

/* ---- records ---- */

static size_t
encode(uint8_t *at, const struct mock_work *w)
{
	if (w->kind == MOCK_KERNEL) {
		kernel_record r = {
			.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
			.registersPerThread = (uint16_t)w->registers,
			.start = w->start,
			.end = w->end,
			.deviceId = w->device,
			.contextId = w->context,
			.streamId = w->stream,
			.gridX = (int32_t)w->grid[0],
			.gridY = (int32_t)w->grid[1],
			.gridZ = (int32_t)w->grid[2],
			.blockX = (int32_t)w->block[0],
			.blockY = (int32_t)w->block[1],
			.blockZ = (int32_t)w->block[2],
			.staticSharedMemory = (int32_t)w->static_shared,
			.dynamicSharedMemory = (int32_t)w->dynamic_shared,
			.correlationId = w->correlation,
			.name = w->name,
			.graphNodeId = w->graph_node,
		};
		memcpy(at, &r, sizeof r);
		return sizeof r;
	}
	if (w->kind == MOCK_COPY) {
		copy_record r = {
			.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
			.copyKind = w->direction,
			.srcKind = w->from,
			.dstKind = w->to,
			.bytes = w->bytes,
			.start = w->start,
			.end = w->end,
			.deviceId = w->device,
			.contextId = w->context,
			.streamId = w->stream,
			.correlationId = w->correlation,
			.graphNodeId = w->graph_node,
		};
		memcpy(at, &r, sizeof r);
		return sizeof r;
	}
	if (w->kind == MOCK_PEER_COPY) {
		peer_record r = {
			.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
			.copyKind = w->direction,
			.srcKind = w->from,
			.dstKind = w->to,
			.bytes = w->bytes,
			.start = w->start,
			.end = w->end,
			.deviceId = w->device,
			.contextId = w->context,
			.streamId = w->stream,
			.srcDeviceId = w->from_device,
			.dstDeviceId = w->to_device,
			.correlationId = w->correlation,
			.graphNodeId = w->graph_node,
		};
		memcpy(at, &r, sizeof r);
		return sizeof r;
	}
	if (w->kind == MOCK_REPLAY) {
		replay_record r = {
			.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
			.correlationId = w->correlation,
			.start = w->start,
			.end = w->end,
			.deviceId = w->device,
			.contextId = w->context,
			.streamId = w->stream,
		};
		memcpy(at, &r, sizeof r);
		return sizeof r;
	}
	if (w->kind == MOCK_EVENT) {
		event_record r = {
			.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
			.correlationId = w->correlation,
			.contextId = w->context,
			.streamId = w->stream,
			.eventId = w->event,
		};
		memcpy(at, &r, sizeof r);
		return sizeof r;
	}
	if (w->kind == MOCK_SYNC) {
		sync_record r = {
			.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
			.type = (CUpti_ActivitySynchronizationType)w->waits_type,
			.start = w->start,
			.end = w->end,
			.correlationId = w->correlation,
			.contextId = w->context,
			.streamId = w->stream,
			.cudaEventId = w->event,
		};
		memcpy(at, &r, sizeof r);
		return sizeof r;
	}
	set_record r = {
		.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		.bytes = w->bytes,
		.start = w->start,
		.end = w->end,
		.deviceId = w->device,
		.contextId = w->context,
		.streamId = w->stream,
		.correlationId = w->correlation,
		.memoryKind = w->to,
		.graphNodeId = w->graph_node,
	};
	memcpy(at, &r, sizeof r);
	return sizeof r;
}

static size_t
record_bytes(const CUpti_Activity *record)
{
	switch ((int)record->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return sizeof(kernel_record);
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		return sizeof(copy_record);
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return sizeof(peer_record);
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return sizeof(set_record);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		return sizeof(replay_record);
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
		return sizeof(event_record);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		return sizeof(sync_record);
	case UNKNOWN_KIND:
		return 64;
	default:
		return 0;
	}
}

/* Whether the N-th of something is struck by the fault KEY. */
static int
struck(const char *key, long long n)
{
	long long every = mock_get(key);
	return every && n % every == 0;
}

/* The tool's clock as a line through two readings; its rate is a whole number. */
static struct {
	CUpti_TimestampCallbackFunc now;
	uint64_t zero, at_zero;
	int64_t rate;
} clock_of_tool;

CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
	if (!function)
		return CUPTI_ERROR_INVALID_PARAMETER;
	uint64_t zero = mock_now(), at_zero = function();
	usleep(2000);
	double passed = (double)(mock_now() - zero), ticks = (double)(function() - at_zero);
	clock_of_tool.zero = zero;
	clock_of_tool.at_zero = at_zero;
	clock_of_tool.rate = (int64_t)(ticks / passed + 0.5);
	clock_of_tool.now = function;
	return CUPTI_SUCCESS;
}

static uint64_t
time_of_tool(uint64_t gpu)
{
	if (!clock_of_tool.now)
		return gpu;
	return clock_of_tool.at_zero +
	       (uint64_t)((int64_t)(gpu - clock_of_tool.zero) * clock_of_tool.rate);
}

/* Writes one record with the faults that its number N calls for. */
static size_t
write_one(uint8_t *at, struct mock_work work, long long n)
{
	size_t used = 0;
	if (struck("unknown", n)) {
		memset(at, 0, 64);
		((CUpti_Activity *)at)->kind = (CUpti_ActivityKind)UNKNOWN_KIND;
		used = 64;
	}
	if (work.end) { /* else it was counted */
		work.start = time_of_tool(work.start);
		work.end = time_of_tool(work.end);
	}
	if (struck("foreign", n))
		work.correlation += 1u << 30;
	if (struck("zero", n))
		work.start = work.end = 0;
	used += encode(at + used, &work);
	if (struck("duplicate", n))
		used += encode(at + used, &work);
	return used;
}
#define WORST (2 * LARGEST + 64) /* bytes that write_one takes at most */

static void
give_back(struct filling *f)
{
	static long long number;
	size_t valid = 0;
	for (size_t i = 0; i < f->count; i++) {
		struct mock_work *w = &f->works[mock_get("reverse") ? f->count - 1 - i : i];
		long long n = __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST);
		if (struck("lose", n))
			continue;
		if (struck("drop", n)) {
			__atomic_fetch_add(&dropped, 1, __ATOMIC_SEQ_CST);
			continue;
		}
		valid += write_one(f->data + valid, *w, n);
		COUNT("delivered", 1);
	}
	COUNT("completed", 1);
	if (buffer_completed)
		buffer_completed(NULL, 0, f->data, f->size, valid);
	free(f->works);
	free(f);
}

/* ---- buffers ---- */

static void *
worker(void *data)
{
	(void)data;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!queue || held)
			pthread_cond_wait(&work_there, &lock);
		struct filling *f = queue;
		queue = f->next;
		if (!queue)
			queue_end = &queue;
		delivering++;
		pthread_mutex_unlock(&lock);
		give_back(f);
		pthread_mutex_lock(&lock);
		delivering--;
		pthread_cond_broadcast(&work_done);
	}
	return NULL;
}

static void
lock_for_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void
unlock_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* A child would wait forever for a lock that the worker held in its parent. */
static __attribute__((constructor)) void
prepare_forks(void)
{
	pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

/* Called with the lock. */
static void
enqueue(struct filling *f)
{
	f->next = NULL;
	*queue_end = f;
	queue_end = &f->next;
	if (!worker_runs) {
		pthread_t thread;
		worker_runs = !pthread_create(&thread, NULL, worker, NULL);
	}
	pthread_cond_signal(&work_there);
}

/* Called with the lock: all threads' buffers go back. */
static void
take_back_all(void)
{
	while (open_list) {
		struct filling *f = open_list;
		open_list = f->next;
		enqueue(f);
	}
	epoch++;
}

static struct filling *
open_buffer(void)
{
	struct filling *f = calloc(1, sizeof *f);
	COUNT("requested", 1);
	buffer_requested(&f->data, &f->size, &f->most);
	if (!f->data || f->size < WORST) {
		free(f);
		return NULL;
	}
	size_t fit = f->size / WORST, limit = (size_t)mock_get("buffer_records");
	if (!f->most || f->most > fit)
		f->most = fit;
	if (limit && f->most > limit)
		f->most = limit;
	f->works = calloc(f->most, sizeof *f->works);
	return f;
}

static void
on_work(const struct mock_work *work)
{
	static const CUpti_ActivityKind kind_of[] = {
		[MOCK_KERNEL] = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		[MOCK_COPY] = CUPTI_ACTIVITY_KIND_MEMCPY,
		[MOCK_PEER_COPY] = CUPTI_ACTIVITY_KIND_MEMCPY2,
		[MOCK_SET] = CUPTI_ACTIVITY_KIND_MEMSET,
		[MOCK_REPLAY] = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		[MOCK_EVENT] = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
		[MOCK_SYNC] = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
	};
	mock_pc_work(work);
#if CUDA_VERSION >= 12080
	mock_series_work(work);
	struct mock_work unknown = *work;
	if (mock_count_work(work)) {
		pthread_mutex_lock(&lock);
		held = true;
		pthread_cond_broadcast(&work_done);
		pthread_mutex_unlock(&lock);
		unknown.start = unknown.end = 0;
		work = &unknown;
	}
#endif
	if (!subscribed() || !kinds[kind_of[work->kind]] || !buffer_requested)
		return;
	pthread_mutex_lock(&lock);
	if (mine && my_epoch != epoch)
		mine = NULL;
	if (!mine) {
		pthread_mutex_unlock(&lock);
		struct filling *f = open_buffer();
		pthread_mutex_lock(&lock);
		if (!f) {
			__atomic_fetch_add(&dropped, 1, __ATOMIC_SEQ_CST);
			pthread_mutex_unlock(&lock);
			return;
		}
		f->next = open_list;
		open_list = f;
		mine = f;
		my_epoch = epoch;
	}
	mine->works[mine->count++] = *work;
	if (mine->count == mine->most) {
		struct filling **at = &open_list;
		while (*at != mine)
			at = &(*at)->next;
		*at = mine->next;
		enqueue(mine);
		mine = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* Called with the lock: keeps back the newest thread's buffer. */
static void
keep_late(void)
{
	if (mock_get("late") && open_list && !late) {
		late = open_list;
		open_list = open_list->next;
		epoch++;
	}
}

static void
deliver_late(void)
{
	struct filling *f = late;
	late = NULL;
	if (f)
		give_back(f);
}

/* ---- the API ---- */

static const struct mock_tool tool = { on_enter,  on_exit_of, on_work,    on_graph_node,
	                               on_module, on_unload,  on_context, replays_whole };

CUptiResult CUPTIAPI
cuptiGetVersion(uint32_t *version)
{
	*version = mock_get("version") ? (uint32_t)mock_get("version") : CUPTI_API_VERSION;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiGetResultString(CUptiResult result, const char **text)
{
	*text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
	                ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
	        : result == CUPTI_SUCCESS ? "CUPTI_SUCCESS"
	                                  : "CUPTI_ERROR_MOCK";
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiGetTimestamp(uint64_t *timestamp)
{
	*timestamp = clock_of_tool.now ? clock_of_tool.now() : mock_now();
	return (CUptiResult)mock_get("timestamp");
}

CUptiResult CUPTIAPI
cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *data)
{
	if (mock_get("subscribe"))
		return (CUptiResult)mock_get("subscribe");
	pthread_mutex_lock(&lock);
	if (subscribed()) {
		pthread_mutex_unlock(&lock);
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	}
	static int watched;
	if (!watched++)
		atexit(deliver_late);
	callback = function;
	callback_data = data;
	memset(callback_enabled, 0, sizeof callback_enabled);
	subscription = (subscription + 1) % 64;
	*subscriber = &subscribers[subscription];
	mock_set("subscribed", 1);
	pthread_mutex_unlock(&lock);
	mock_attach(&tool);
	return CUPTI_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUptiResult CUPTIAPI
cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *data,
                  CUpti_SubscriberParams *params)
{
	CUptiResult result = cuptiSubscribe(subscriber, function, data);
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params &&
	    params->oldSubscriberName && params->oldSubscriberSize)
		strncpy(params->oldSubscriberName, "CUPTI for MockTool", params->oldSubscriberSize);
	return result;
}
#endif

CUptiResult CUPTIAPI
cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	if (!subscribed() || subscriber != &subscribers[subscription])
		return CUPTI_ERROR_INVALID_PARAMETER;
	mock_set("subscribed", 0);
	if (mock_get("late") == 1)
		deliver_late();
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                    CUpti_CallbackId id)
{
	if (!subscribed() || subscriber != &subscribers[subscription] || (int)domain >= 4 ||
	    id >= 4096 ||
	    (domain == CUPTI_CB_DOMAIN_DRIVER_API && id >= CUPTI_DRIVER_TRACE_CBID_SIZE))
		return CUPTI_ERROR_INVALID_PARAMETER;
	callback_enabled[domain][id] = enable != 0;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
	if (!subscribed() || subscriber != &subscribers[subscription] || (int)domain >= 4)
		return CUPTI_ERROR_INVALID_PARAMETER;
	memset(callback_enabled[domain], enable != 0, sizeof callback_enabled[domain]);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
	for (int domain = 1; domain < 4; domain++)
		if (cuptiEnableDomain(enable, subscriber, (CUpti_CallbackDomain)domain))
			return CUPTI_ERROR_INVALID_PARAMETER;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed)
{
	pthread_mutex_lock(&lock);
	buffer_requested = requested;
	buffer_completed = completed;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityEnable(CUpti_ActivityKind kind)
{
	if (mock_get("enable"))
		return (CUptiResult)mock_get("enable");
	mock_attach(&tool);
	if ((unsigned)kind < sizeof kinds && !kinds[kind]) {
		kinds[kind] = 1;
		COUNT("enabled", 1);
	}
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityDisable(CUpti_ActivityKind kind)
{
	if ((unsigned)kind < sizeof kinds && kinds[kind]) {
		kinds[kind] = 0;
		COUNT("enabled", -1);
	}
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityFlushAll(uint32_t flag)
{
	while (mock_get("hang"))
		usleep(10000);
	pthread_mutex_lock(&lock);
	if (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
		keep_late();
	if (mock_get("flush_on_caller")) {
		struct filling *list = open_list;
		open_list = NULL;
		epoch++;
		pthread_mutex_unlock(&lock);
		while (list) {
			struct filling *next = list->next;
			give_back(list);
			list = next;
		}
		return CUPTI_SUCCESS;
	}
	take_back_all();
	if (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) {
		held = false;
		pthread_cond_broadcast(&work_there);
	}
	while ((queue && !held) || delivering)
		pthread_cond_wait(&work_done, &lock);
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityFlushPeriod(uint32_t time)
{
	(void)time;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size, void *value)
{
	(void)attribute;
	return size && value ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI
cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *count)
{
	(void)context;
	(void)stream;
	*count = __atomic_exchange_n(&dropped, 0, __ATOMIC_SEQ_CST);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	uint8_t *at = *record ? (uint8_t *)*record + record_bytes(*record) : buffer;
	if (at >= buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)at;
	return record_bytes(*record) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult CUPTIAPI
cuptiFinalize(void)
{
	cuptiActivityFlushAll(1);
	for (unsigned kind = 0; kind < sizeof kinds; kind++)
		cuptiActivityDisable((CUpti_ActivityKind)kind);
	mock_set("subscribed", 0);
	buffer_requested = NULL;
	buffer_completed = NULL;
	return CUPTI_SUCCESS;
}
