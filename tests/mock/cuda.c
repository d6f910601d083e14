/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in libcuda.so.1: calls and their work; scenario.c has what a test sets. See
 * README.md. */
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"

#define DEVICES 8
#define STREAMS 64
#define FIRST_STREAM 7 /* what CUPTI calls stream 0 */

/* ---- state ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct mock_tool *tool;
static uint64_t base; /* the GPU's clock at cuInit */
static uint64_t ends[DEVICES][STREAMS];

struct graph {
	struct mock_work *nodes;
	size_t count;
	int whole; /* made executable while replays had one record */
};
static struct graph *captures[DEVICES][STREAMS];
static uint64_t graph_nodes;

/* What the driver's functions have no parameter for. */
static _Thread_local struct {
	uint32_t device;
	uint64_t duration, host_ns;
	uint8_t from, to; /* 0: the addresses say so */
	uint32_t registers, static_shared, to_device;
} now;

uint32_t
mock_current_device(void)
{
	return now.device;
}

MOCK_EXPORT void
mock_device(uint32_t device)
{
	now.device = device % DEVICES;
}

MOCK_EXPORT uint64_t
mock_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

MOCK_EXPORT void
mock_attach(const struct mock_tool *with)
{
	__atomic_store_n(&tool, with, __ATOMIC_SEQ_CST);
}

static void
host_sleep(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	while (ns && nanosleep(&left, &left))
		;
}

static CUstream
stream_handle(uint32_t stream)
{
	return stream ? (CUstream)(uintptr_t)(0x1000 + stream) : NULL;
}

static uint32_t
stream_number(CUstream stream)
{
	return stream ? (uint32_t)((uintptr_t)stream - 0x1000) % STREAMS : 0;
}

/* ---- calls and work ---- */

static int made[DEVICES]; /* contexts */

static void
begin(struct mock_call *call)
{
	long long *next = mock_value("correlation");
	cuInit(0);
	if (!__atomic_exchange_n(&made[now.device], 1, __ATOMIC_SEQ_CST) && tool)
		tool->context(now.device, 1);
	call->correlation =
		(uint32_t)__atomic_fetch_add(next, mock_get("stride"), __ATOMIC_SEQ_CST);
	call->context = now.device + 1;
	if (tool)
		tool->enter(call);
}

static CUresult
finish(struct mock_call *call, CUresult result)
{
	call->result = result;
	if (tool)
		tool->exit(call);
	return result;
}

/* Runs WORK on its stream, or keeps it for the graph that the stream is captured into. */
static void
run(struct mock_work *work, uint32_t stream)
{
	pthread_mutex_lock(&lock);
	struct graph *graph = captures[work->device][stream];
	work->context = work->device + 1;
	work->stream = stream + FIRST_STREAM;
	if (graph) {
		work->graph_node = __atomic_add_fetch(&graph_nodes, 1, __ATOMIC_SEQ_CST);
		graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *work);
		graph->nodes[graph->count++] = *work;
		pthread_mutex_unlock(&lock);
		if (tool)
			tool->graph_node(work->graph_node, 0);
		return;
	}
	uint64_t start = ends[work->device][stream] ? ends[work->device][stream] : base;
	if (mock_get("clock") && start < mock_now())
		start = mock_now();
	work->start = start;
	work->end = ends[work->device][stream] = start + work->duration;
	pthread_mutex_unlock(&lock);
	__atomic_fetch_add(mock_value("records"), 1, __ATOMIC_SEQ_CST);
	if (tool)
		tool->work(work);
}

/* Whether this launch is one that has to fail. */
static int
fails(void)
{
	long long n = __atomic_add_fetch(mock_value("launched"), 1, __ATOMIC_SEQ_CST),
		  every = mock_get("fail");
	return every && n % every == 0;
}

void
mock_begin(struct mock_call *call)
{
	begin(call);
}

CUresult
mock_finish(struct mock_call *call, CUresult result)
{
	return finish(call, result);
}

static int
is_host(uint8_t kind)
{
	return kind <= CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
}

void
mock_move(const struct mock_call *call, uint64_t from, uint64_t to, uint64_t bytes, CUstream stream)
{
	struct mock_memory source = mock_memory_at(from), target = mock_memory_at(to);
	int between = !is_host(source.kind) && !is_host(target.kind);
	int peers = between && source.device != target.device;
	struct mock_work work = {
		.kind = peers ? MOCK_PEER_COPY : MOCK_COPY,
		.device = now.device,
		.duration = 1000,
		.bytes = bytes,
		.from = source.kind,
		.to = target.kind,
		.direction = peers                   ? CUPTI_ACTIVITY_MEMCPY_KIND_PTOP
		             : between               ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
		             : !is_host(target.kind) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
		             : !is_host(source.kind) ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
		                                     : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH,
		.from_device = source.device,
		.to_device = target.device,
		.correlation = call->correlation,
	};
	struct mock_work other = work;
	run(&work, stream_number(stream));
	/* Where the devices do not reach each other, both have a part in the copy. */
	other.device = work.device == work.from_device ? work.to_device : work.from_device;
	if (peers && mock_get("unreached") && !work.graph_node)
		run(&other, stream_number(stream));
}

/* ---- the driver: its start ---- */

static int done; /* cuInit is */
static _Thread_local int initialising;

int
mock_is_initialised(void)
{
	return initialising || __atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

CUresult CUDAAPI
cuInit(unsigned flags)
{
	static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
	(void)flags;
	if (initialising || __atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&init_lock);
	if (!done) {
		initialising = 1;
		base = mock_now();
		const char *path = getenv("CUDA_INJECTION64_PATH");
		void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
		int (*injection)(void) =
			library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
		if (injection)
			injection();
		initialising = 0;
		__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&init_lock);
	return CUDA_SUCCESS;
}

/* ---- the driver: launches ---- */

static CUresult CUDAAPI
launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra)
{
	cuLaunchKernel_params params = {
		f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra
	};
	struct mock_call call = {
		.id = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
		.name = "cuLaunchKernel",
		.symbol = (const char *)f,
		.params = &params,
	};
	struct mock_work work = {
		.kind = MOCK_KERNEL,
		.name = (const char *)f,
		.device = now.device,
		.duration = now.duration,
		.grid = { gx, gy, gz },
		.block = { bx, by, bz },
		.registers = now.registers,
		.static_shared = now.static_shared,
		.dynamic_shared = shared,
	};
	begin(&call);
	if (mock_get("subscribed"))
		host_sleep((uint64_t)mock_get("slow"));
	if (fails())
		return finish(&call, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	work.correlation = call.correlation;
	run(&work, stream_number(stream));
	return finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra)
{
	return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}

/* What the runtime asks for functions. The mock has one version of each. The oldest headers do not
 * have the type of STATUS. */
MOCK_EXPORT CUresult CUDAAPI get_address(const char *symbol, void **found, int version,
                                         cuuint64_t flags,
                                         void *status) __asm__("cuGetProcAddress_v2");

CUresult CUDAAPI
get_address(const char *symbol, void **found, int version, cuuint64_t flags, void *status)
{
	(void)version, (void)flags, (void)status;
	*found = !strcmp(symbol, "cuLaunchKernel") ? (void *)launch_kernel : NULL;
	return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* cuLaunchKernel, as the setting `way` says that programs come to it. */
static __typeof__(&cuLaunchKernel)
find_launch(void)
{
	__typeof__(&get_address) ask;
	void *driver, *found = (void *)cuLaunchKernel;

	if (!mock_get("way"))
		return cuLaunchKernel;
	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (mock_get("way") == 1) {
		found = dlsym(driver, "cuLaunchKernel");
	} else {
		ask = (__typeof__(ask))dlsym(driver, "cuGetProcAddress_v2");
		ask("cuLaunchKernel", &found, 12000, 0, NULL);
	}
	return (__typeof__(&cuLaunchKernel))found;
}

MOCK_EXPORT int
mock_launch_ex(const struct mock_launch *l)
{
	now.device = l->device % DEVICES;
	now.duration = l->duration_ns;
	now.registers = l->registers ? l->registers : 32;
	now.static_shared = l->static_shared;
#define OR1(x) ((x) ? (x) : 1)
	return find_launch()((CUfunction)(uintptr_t)l->name, OR1(l->grid[0]), OR1(l->grid[1]),
	                     OR1(l->grid[2]), OR1(l->block[0]), OR1(l->block[1]), OR1(l->block[2]),
	                     l->dynamic_shared, stream_handle(l->stream), NULL, NULL);
}

MOCK_EXPORT int
mock_launch(const char *name, uint64_t duration_ns)
{
	struct mock_launch launch = { .name = name, .duration_ns = duration_ns };
	return mock_launch_ex(&launch);
}

/* ---- the driver: copies and sets ---- */

/* A copy of BYTES; the memory kinds come from `now`, or from the addresses. */
static CUresult
transfer(struct mock_call *call, uint8_t direction, uint64_t from, uint64_t to, size_t bytes,
         CUstream stream)
{
	struct mock_work work = {
		.kind = direction == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP ? MOCK_PEER_COPY : MOCK_COPY,
		.device = now.device,
		.duration = now.duration,
		.bytes = bytes,
		.from = now.from,
		.to = now.to,
		.direction = direction,
		.from_device = now.device,
		.to_device = now.to_device,
	};
	begin(call);
	if (!now.from) {
		mock_move(call, from, to, bytes, stream);
		return finish(call, CUDA_SUCCESS);
	}
	host_sleep(now.host_ns);
	if (fails())
		return finish(call, CUDA_ERROR_INVALID_VALUE);
	work.correlation = call->correlation;
	run(&work, stream_number(stream));
	return finish(call, CUDA_SUCCESS);
}

/* Under their exported names, which cuda.h's macros hide. */
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync

CUresult CUDAAPI
cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	CALL(cuMemcpyHtoD_v2, to, from, bytes);
	return transfer(&call, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, (uintptr_t)from, to, bytes, NULL);
}

CUresult CUDAAPI
cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	CALL(cuMemcpyDtoH_v2, to, from, bytes);
	return transfer(&call, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, from, (uintptr_t)to, bytes, NULL);
}

CUresult CUDAAPI
cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	CALL(cuMemcpyHtoDAsync_v2, to, from, bytes, stream);
	return transfer(&call, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, (uintptr_t)from, to, bytes, stream);
}

CUresult CUDAAPI
cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	CALL(cuMemcpyDtoHAsync_v2, to, from, bytes, stream);
	return transfer(&call, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, from, (uintptr_t)to, bytes, stream);
}

CUresult CUDAAPI
cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	CALL(cuMemcpyDtoDAsync_v2, to, from, bytes, stream);
	return transfer(&call, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, from, to, bytes, stream);
}

CUresult CUDAAPI
cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                  size_t bytes, CUstream stream)
{
	CALL(cuMemcpyPeerAsync, to, to_context, from, from_context, bytes, stream);
	return transfer(&call, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, from, to, bytes, stream);
}

MOCK_EXPORT int
mock_copy(const struct mock_copy *c)
{
	int from_host = c->from <= MOCK_PINNED, to_host = c->to <= MOCK_PINNED;
	CUstream stream = stream_handle(c->stream);
	now.device = c->device % DEVICES;
	now.duration = c->duration_ns;
	now.host_ns = c->host_ns;
	now.from = (uint8_t)c->from;
	now.to = (uint8_t)c->to;
	now.to_device = now.device;
	CUresult result;
	if (c->to_peer) {
		now.to_device = (now.device + (uint32_t)c->to_peer) % DEVICES;
		result = cuMemcpyPeerAsync(2, NULL, 1, NULL, c->bytes, stream);
	} else if (from_host && !to_host) {
		result = c->blocking ? cuMemcpyHtoD_v2(1, "", c->bytes)
		                     : cuMemcpyHtoDAsync_v2(1, "", c->bytes, stream);
	} else if (to_host && !from_host) {
		char to;
		result = c->blocking ? cuMemcpyDtoH_v2(&to, 1, c->bytes)
		                     : cuMemcpyDtoHAsync_v2(&to, 1, c->bytes, stream);
	} else {
		result = cuMemcpyDtoDAsync_v2(2, 1, c->bytes, stream);
	}
	now.host_ns = 0;
	now.from = 0;
	return result;
}

CUresult CUDAAPI
cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
	CALL(cuMemsetD8Async, to, value, bytes, stream);
	struct mock_work work = {
		.kind = MOCK_SET,
		.device = now.device,
		.duration = now.duration,
		.bytes = bytes,
		.to = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
	};
	begin(&call);
	if (fails())
		return finish(&call, CUDA_ERROR_INVALID_VALUE);
	work.correlation = call.correlation;
	run(&work, stream_number(stream));
	return finish(&call, CUDA_SUCCESS);
}

MOCK_EXPORT int
mock_memset(uint64_t bytes, uint64_t duration_ns, uint32_t stream)
{
	now.device = 0;
	now.duration = duration_ns;
	return cuMemsetD8Async(1, 0, bytes, stream_handle(stream));
}

/* ---- the driver: waiting ---- */

#define NO_STREAM UINT32_MAX

static CUresult
wait_for_it(struct mock_call *call, CUpti_ActivitySynchronizationType type, uint32_t stream,
            CUevent event)
{
	struct mock_work work = {
		.kind = MOCK_SYNC,
		.context = 1,
		.stream = stream == NO_STREAM ? stream : stream + FIRST_STREAM,
		.event = (uint32_t)(uintptr_t)event,
		.waits_type = type,
	};
	begin(call);
	work.correlation = call->correlation;
	work.start = mock_now();
	host_sleep(now.host_ns);
	work.end = mock_now();
	if (tool)
		tool->work(&work);
	return finish(call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuEventRecord(CUevent event, CUstream stream)
{
	CALL(cuEventRecord, event, stream);
	struct mock_work work = {
		.kind = MOCK_EVENT,
		.context = 1,
		.stream = stream_number(stream) + FIRST_STREAM,
		.event = (uint32_t)(uintptr_t)event,
	};
	begin(&call);
	work.correlation = call.correlation;
	if (tool)
		tool->work(&work);
	return finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuStreamSynchronize(CUstream stream)
{
	CALL(cuStreamSynchronize, stream);
	return wait_for_it(&call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
	                   stream_number(stream), NULL);
}

CUresult CUDAAPI
cuCtxSynchronize(void)
{
	struct mock_call call = {
		.id = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
		.name = "cuCtxSynchronize",
	};
	return wait_for_it(&call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
	                   NO_STREAM, NULL);
}

CUresult CUDAAPI
cuEventSynchronize(CUevent event)
{
	CALL(cuEventSynchronize, event);
	return wait_for_it(&call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, NO_STREAM,
	                   event);
}

CUresult CUDAAPI
cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	CALL(cuStreamWaitEvent, stream, event, flags);
	return wait_for_it(&call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
	                   stream_number(stream), event);
}

MOCK_EXPORT int
mock_wait(enum mock_wait what, uint64_t host_ns)
{
	now.host_ns = host_ns;
	CUresult result = what == MOCK_WAIT_STREAM    ? cuStreamSynchronize(NULL)
	                  : what == MOCK_WAIT_CONTEXT ? cuCtxSynchronize()
	                                              : cuEventSynchronize(NULL);
	now.host_ns = 0;
	return result;
}

MOCK_EXPORT int
mock_stream_wait(uint32_t stream, uint64_t host_ns)
{
	now.host_ns = host_ns;
	CUresult result = cuStreamSynchronize(stream_handle(stream));
	now.host_ns = 0;
	return result;
}

MOCK_EXPORT int
mock_stream_wait_event(uint32_t stream)
{
	return cuStreamWaitEvent(stream_handle(stream), NULL, 0);
}

MOCK_EXPORT int
mock_event_record(uint32_t event, uint32_t stream)
{
	return cuEventRecord((CUevent)(uintptr_t)event, stream_handle(stream));
}

MOCK_EXPORT int
mock_stream_waits(uint32_t stream, uint32_t event)
{
	return cuStreamWaitEvent(stream_handle(stream), (CUevent)(uintptr_t)event, 0);
}

MOCK_EXPORT int
mock_event_wait(uint32_t event, uint64_t host_ns)
{
	now.host_ns = host_ns;
	CUresult result = cuEventSynchronize((CUevent)(uintptr_t)event);
	now.host_ns = 0;
	return result;
}

/* ---- the driver: graphs ---- */

MOCK_EXPORT int
mock_capture_begin(uint32_t stream)
{
	pthread_mutex_lock(&lock);
	captures[now.device][stream % STREAMS] = calloc(1, sizeof(struct graph));
	pthread_mutex_unlock(&lock);
	CALL(cuStreamBeginCapture_v2, stream_handle(stream), CU_STREAM_CAPTURE_MODE_GLOBAL);
	begin(&call);
	__atomic_fetch_add(mock_value("capturing"), 1, __ATOMIC_SEQ_CST);
	return finish(&call, CUDA_SUCCESS);
}

/* Its length, of which the driver's own function knows nothing. */
static _Thread_local size_t image_bytes;

/* As a driver does, it takes no image whose tables lie elsewhere. */
CUresult CUDAAPI
cuModuleLoadData(CUmodule *module, const void *image)
{
	CALL(cuModuleLoadData, module, image);
	begin(&call);
	const Elf64_Ehdr *head = image;
	*module = (CUmodule)image;
	__atomic_fetch_add(mock_value("modules"), 1, __ATOMIC_SEQ_CST);
	int whole = image_bytes >= sizeof *head && head->e_shoff <= image_bytes &&
	            head->e_shnum * sizeof(Elf64_Shdr) <= image_bytes - head->e_shoff;
	if (whole && tool)
		tool->module(image, image_bytes);
	return finish(&call, whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE);
}

MOCK_EXPORT void
mock_module_load(const void *image, size_t bytes)
{
	CUmodule module;
	cuInit(0);
	image_bytes = bytes;
	cuModuleLoadData(&module, image);
}

MOCK_EXPORT void
mock_module_unload(void)
{
	if (tool)
		tool->unload();
}

MOCK_EXPORT void
mock_context_destroy(uint32_t device)
{
	if (tool && __atomic_exchange_n(&made[device % DEVICES], 0, __ATOMIC_SEQ_CST))
		tool->context(device % DEVICES, 0);
}

#define STALLS 256
static struct mock_stall stalls[STALLS];
static unsigned stall_count;

MOCK_EXPORT void
mock_stall(const char *function, uint64_t offset, const char *reason, uint32_t all, uint32_t idle)
{
	if (stall_count < STALLS)
		stalls[stall_count++] =
			(struct mock_stall){ function, reason, offset,
			                     all,      idle,   (uint32_t)mock_get("modules") };
}

static struct mock_count counts[STALLS];
static unsigned count_count;

MOCK_EXPORT void
mock_counter(const char *function, const char *metric, uint64_t value)
{
	if (count_count < STALLS)
		counts[count_count++] = (struct mock_count){ function, metric, value };
}

MOCK_EXPORT const struct mock_count *
mock_count_at(unsigned i)
{
	return i < count_count ? &counts[i] : NULL;
}

MOCK_EXPORT const struct mock_stall *
mock_stall_at(unsigned i)
{
	return i < stall_count ? &stalls[i] : NULL;
}

static void
end_capture(uint32_t stream)
{
	CUgraph captured = NULL;
	CALL(cuStreamEndCapture, stream_handle(stream), &captured);
	begin(&call);
	__atomic_fetch_sub(mock_value("capturing"), 1, __ATOMIC_SEQ_CST);
	finish(&call, CUDA_SUCCESS);
}

MOCK_EXPORT void *
mock_capture_end(uint32_t stream)
{
	end_capture(stream);
	pthread_mutex_lock(&lock);
	struct graph *graph = captures[now.device][stream % STREAMS];
	captures[now.device][stream % STREAMS] = NULL;
	pthread_mutex_unlock(&lock);
	CUgraphExec executable = NULL;
	CALL(cuGraphInstantiateWithFlags, &executable, (CUgraph)graph, 0);
	begin(&call);
	graph->whole = tool && tool->whole();
	/* As an executable graph its nodes have numbers of their own. */
	for (size_t i = 0; i < graph->count; i++) {
		uint64_t original = graph->nodes[i].graph_node;
		graph->nodes[i].graph_node = __atomic_add_fetch(&graph_nodes, 1, __ATOMIC_SEQ_CST);
		if (tool)
			tool->graph_node(graph->nodes[i].graph_node, original);
	}
	executable = (CUgraphExec)graph;
	finish(&call, CUDA_SUCCESS);
	return graph;
}

CUresult CUDAAPI
cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
	CALL(cuGraphLaunch, executable, stream);
	struct graph *graph = (struct graph *)executable;
	begin(&call);
	if (fails())
		return finish(&call, CUDA_ERROR_INVALID_VALUE);
	struct mock_work whole = { .kind = MOCK_REPLAY,
		                   .device = now.device,
		                   .correlation = call.correlation };
	if (tool && tool->whole()) {
		if (!graph->whole) /* as CUPTI 13 does, which crashes */
			abort();
		for (size_t i = 0; i < graph->count; i++)
			whole.duration += graph->nodes[i].duration;
		run(&whole, stream_number(stream));
		return finish(&call, CUDA_SUCCESS);
	}
	for (size_t i = 0; i < graph->count; i++) {
		struct mock_work work = graph->nodes[i];
		work.correlation = call.correlation;
		run(&work, stream_number(stream));
	}
	return finish(&call, CUDA_SUCCESS);
}

MOCK_EXPORT int
mock_graph_launch(void *graph, uint32_t stream)
{
	return cuGraphLaunch(graph, stream_handle(stream));
}

MOCK_EXPORT void
mock_gap(uint32_t device, uint32_t stream, uint64_t ns)
{
	cuInit(0);
	pthread_mutex_lock(&lock);
	uint64_t *end = &ends[device % DEVICES][stream % STREAMS];
	*end = (*end ? *end : base) + ns;
	pthread_mutex_unlock(&lock);
}

MOCK_EXPORT void
mock_stream_until(uint32_t device, uint32_t stream, uint64_t ns)
{
	cuInit(0);
	pthread_mutex_lock(&lock);
	uint64_t *end = &ends[device % DEVICES][stream % STREAMS];
	if (*end < ns)
		*end = ns;
	pthread_mutex_unlock(&lock);
}
