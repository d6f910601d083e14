/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in libsanitizer-public.so. See sanitizer.h. */
#include "sanitizer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/gpu/sanitizer/api.h"
#include "collect/gpu/sanitizer/counting.h"

#define EXPORT __attribute__((visibility("default")))

struct sanitizer_stream {
	int device, number;
};
struct work {
	struct work *next;
	/* A copy or set of the tool's, or a launch. */
	void *to;
	void *bytes;
	size_t size;
	struct sanitizer_function *function;
	const void *data;         /* the launch's user data */
	bool of_function;         /* it is the function's, as it was when the graph was launched */
	bool patched, marked[64]; /* when it was launched */
	struct san_access *accesses;
	uint32_t count;
};
struct sanitizer_context {
	int device;
	bool live, has_patches;
	struct sanitizer_stream streams[SAN_STREAMS];
	struct work *first[SAN_STREAMS], **last[SAN_STREAMS];
};
struct sanitizer_function {
	struct sanitizer_module *module;
	char name[64];
	uint64_t pc;
	const void *data;
};
struct sanitizer_module {
	struct sanitizer_context *context;
	struct sanitizer_function functions[SAN_FUNCTIONS];
	_Alignas(8) char image[1024];
	bool marked[64], patched, live;
};

static struct sanitizer_context contexts[SAN_DEVICES];
static struct sanitizer_module modules[64];
static int modules_count;
static sanitizer_callback callback;
static void *user;
static bool domains[16];
static bool calls[1024];
static uint64_t switches;
static _Thread_local struct work *launching;
static _Thread_local int depth;

static void
die(const char *why)
{
	fprintf(stderr, "stand-in sanitizer: %s\n", why);
	_exit(3);
}

static void
tell(int domain, uint32_t id, const void *data)
{
	if (!callback || !domains[domain])
		return;
	depth++;
	callback(user, domain, id, data);
	depth--;
}

static struct sanitizer_context *
context_of(int device)
{
	if (device < 0 || device >= SAN_DEVICES)
		die("no such device");
	return &contexts[device];
}

/* ---- work ---- */

static void
append(struct sanitizer_context *context, int stream, struct work *work)
{
	if (!context->last[stream])
		context->last[stream] = &context->first[stream];
	*context->last[stream] = work;
	context->last[stream] = &work->next;
}

static uint64_t
bulk_bytes(const struct san_access *access)
{
	return (uint64_t)(access->flags & 0xffff) * 16;
}

/* What patch.cu does. */
static void
play(const struct plumb_counting *counting, const struct work *work,
     const struct san_access *access)
{
	uint64_t pc = work->function->pc + access->pc;
	uint32_t active = access->active, kind = 0;
	if (!counting || !work->marked[access->patch])
		return;
	switch (access->patch) {
	case SANITIZER_GLOBAL:
		kind = plumb_counting_kind(access->flags);
		break;
	case SANITIZER_ASYNC_COPY:
		kind = PLUMB_COUNTING_ASYNC_COPY;
		break;
	default:
		plumb_counting_bulk(counting, pc, access->address[0],
		                    access->patch == SANITIZER_BULK_LOAD ? PLUMB_COUNTING_BULK_LOAD
		                    : access->patch == SANITIZER_BULK_STORE
		                            ? PLUMB_COUNTING_BULK_STORE
		                            : PLUMB_COUNTING_BULK_REDUCTION,
		                    bulk_bytes(access));
		return;
	}
	for (int lane = 0; lane < 32; lane++)
		if (!access->address[lane] ||
		    plumb_counting_is_own(counting, access->address[lane]))
			active &= ~(1u << lane);
	if (active && kind)
		plumb_counting_warp(counting, pc, access->address, active, kind, access->width);
}

static void
run(struct sanitizer_context *context, int stream)
{
	struct work *work;
	while ((work = context->first[stream])) {
		context->first[stream] = work->next;
		if (!work->next)
			context->last[stream] = &context->first[stream];
		if (work->bytes)
			memcpy(work->to, work->bytes, work->size);
		else if (work->to)
			memset(work->to, 0, work->size);
		const void *data = work->of_function ? work->function->data : work->data;
		for (uint32_t i = 0; work->patched && i < work->count; i++)
			play(data, work, &work->accesses[i]);
		free(work->bytes);
		free(work->accesses);
		free(work);
	}
}

static struct sanitizer_stream *
stream_of(sanitizer_stream stream)
{
	if (!stream)
		die("the null stream of no context");
	return stream;
}

static struct work *
new_work(void)
{
	struct work *work = calloc(1, sizeof *work);
	if (!work)
		die("no memory");
	return work;
}

/* The legacy default stream, 0, waits for all others and they wait for it. */
static void
must_be_done(struct sanitizer_stream *stream)
{
	struct sanitizer_context *context = context_of(stream->device);
	for (int i = 0; i < SAN_STREAMS; i++)
		if (context->first[i] && (i == stream->number || !stream->number))
			for (struct work *w = context->first[i]; w; w = w->next)
				if (w->function)
					die("the tool waits for work that is not done");
	for (int i = 0; i < SAN_STREAMS; i++)
		if (i == stream->number || !stream->number)
			run(context, i);
}

/* ---- the sanitizer's functions ---- */

EXPORT sanitizer_result
sanitizerSubscribe(sanitizer_subscriber *out, sanitizer_callback function, void *data)
{
	const char *refuse = getenv("SAN_REFUSE");
	if (refuse)
		return atoi(refuse);
	*out = (sanitizer_subscriber)&callback;
	callback = function;
	user = data;
	return 0;
}

EXPORT sanitizer_result
sanitizerUnsubscribe(sanitizer_subscriber of)
{
	(void)of;
	callback = NULL;
	return 0;
}

EXPORT sanitizer_result
sanitizerEnableDomain(uint32_t on, sanitizer_subscriber of, int domain)
{
	(void)of;
	domains[domain] = on;
	return 0;
}

EXPORT sanitizer_result
sanitizerEnableCallback(uint32_t on, sanitizer_subscriber of, int domain, uint32_t id)
{
	(void)of;
	if (domain != SANITIZER_DRIVER || id >= 1024)
		return 1;
	domains[domain] = true;
	calls[id] = on;
	return 0;
}

EXPORT sanitizer_result
sanitizerAddPatches(const void *image, sanitizer_context context)
{
	static const uint32_t magic = 0xba55ed50; /* of a fatbin */
	if (memcmp(image, &magic, 4))
		return 1;
	context->has_patches = true;
	return 0;
}

EXPORT sanitizer_result
sanitizerPatchInstructions(int id, sanitizer_module module, const char *function)
{
	const char *old = getenv("SAN_OLD"); /* CUDA 12.6 */
	if (!module->context->has_patches || strncmp(function, "plumb_patch_", 12) ||
	    (old && id > 30))
		return 1;
	module->marked[id] = true;
	return 0;
}

EXPORT sanitizer_result
sanitizerPatchModule(sanitizer_module module)
{
	const char *fail = getenv("SAN_NO_PATCH");
	if (fail)
		return 1;
	switches++;
	module->patched = true;
	return 0;
}

EXPORT sanitizer_result
sanitizerUnpatchModule(sanitizer_module module)
{
	switches++;
	module->patched = false;
	memset(module->marked, 0, sizeof module->marked);
	return 0;
}

EXPORT sanitizer_result
sanitizerSetCallbackData(sanitizer_function function, const void *data)
{
	function->data = data;
	return 0;
}

EXPORT sanitizer_result
sanitizerSetLaunchCallbackData(sanitizer_launch launch, sanitizer_function function,
                               sanitizer_stream stream, const void *data)
{
	(void)stream;
	if (!launching || (void *)launch != launching || function != launching->function)
		return 1;
	launching->data = data;
	return 0;
}

EXPORT sanitizer_result
sanitizerGetFunctionPcAndSize(sanitizer_module module, const char *name, uint64_t *pc,
                              uint64_t *size)
{
	for (int i = 0; i < SAN_FUNCTIONS; i++)
		if (!strcmp(module->functions[i].name, name)) {
			*pc = module->functions[i].pc;
			*size = 0x1000;
			return 0;
		}
	return 1;
}

EXPORT sanitizer_result
sanitizerGetStreamHandle(sanitizer_context context, void *stream, sanitizer_stream *handle)
{
	*handle = stream ? (sanitizer_stream)stream : &context->streams[0];
	return 0;
}

EXPORT sanitizer_result
sanitizerAlloc(sanitizer_context context, void **memory, size_t bytes)
{
	*memory = malloc(bytes);
	if (*memory)
		memset(*memory, 0xa5, bytes);
	/* Ours too is told: a tool has to know its own. */
	struct sanitizer_memory_data data = { .address = (uintptr_t)*memory,
		                              .size = bytes,
		                              .context = context,
		                              .device = context->device };
	tell(SANITIZER_RESOURCE, SANITIZER_MEMORY_ALLOCATED, &data);
	return *memory ? 0 : 7;
}

EXPORT sanitizer_result
sanitizerFree(sanitizer_context context, void *memory)
{
	(void)context;
	free(memory);
	return 0;
}

EXPORT sanitizer_result
sanitizerMemcpyHostToDeviceAsync(void *to, void *from, size_t bytes, sanitizer_stream handle)
{
	struct sanitizer_stream *stream = stream_of(handle);
	struct work *work = new_work();
	work->to = to;
	work->bytes = malloc(bytes);
	work->size = bytes;
	memcpy(work->bytes, from, bytes);
	append(context_of(stream->device), stream->number, work);
	return 0;
}

EXPORT sanitizer_result
sanitizerMemset(void *to, int value, size_t bytes, sanitizer_stream handle)
{
	struct sanitizer_stream *stream = stream_of(handle);
	struct work *work = new_work();
	if (value)
		die("not zero");
	work->to = to;
	work->size = bytes;
	append(context_of(stream->device), stream->number, work);
	return 0;
}

EXPORT sanitizer_result
sanitizerMemcpyDeviceToHost(void *to, void *from, size_t bytes, sanitizer_stream handle)
{
	must_be_done(stream_of(handle));
	memcpy(to, from, bytes);
	return 0;
}

EXPORT sanitizer_result
sanitizerGetResultString(sanitizer_result result, const char **text)
{
	*text = result == 2 ? "Device not supported" : "unknown";
	return 0;
}

/* ---- what a test says ---- */

EXPORT void
san_context(int device)
{
	struct sanitizer_context *context = context_of(device);
	context->device = device;
	context->live = true;
	for (int i = 0; i < SAN_STREAMS; i++)
		context->streams[i] = (struct sanitizer_stream){ device, i };
	struct sanitizer_context_data data = { context };
	tell(SANITIZER_RESOURCE, SANITIZER_CONTEXT_CREATED, &data);
}

EXPORT void
san_context_destroy(int device)
{
	struct sanitizer_context *context = context_of(device);
	struct sanitizer_context_data data = { context };
	for (int i = 0; i < SAN_STREAMS; i++)
		run(context, i);
	tell(SANITIZER_RESOURCE, SANITIZER_CONTEXT_DESTROYING, &data);
	context->live = false;
}

EXPORT int
san_module(int device, const char *prefix)
{
	int number = modules_count++;
	struct sanitizer_module *module = &modules[number];
	module->context = context_of(device);
	module->live = true;
	const char *path = getenv("SAN_IMAGE");
	FILE *file = path ? fopen(path, "rb") : NULL;
	if (file && !fread(module->image, 1, sizeof module->image, file))
		die("an empty image");
	if (file)
		fclose(file);
	else
		snprintf(module->image, sizeof module->image, "code of %s for %d", prefix, device);
	for (int i = 0; i < SAN_FUNCTIONS; i++) {
		snprintf(module->functions[i].name, 64, "%s%d", prefix, i);
		module->functions[i].module = module;
		module->functions[i].pc =
			0x100000ull * (uint64_t)(number + 1) + 0x1000ull * (uint64_t)i;
	}
	struct sanitizer_module_data data = { module->context, module, sizeof module->image,
		                              module->image };
	tell(SANITIZER_RESOURCE, SANITIZER_MODULE_LOADED, &data);
	return number;
}

EXPORT void
san_module_unload(int module)
{
	struct sanitizer_module_data data = { .context = modules[module].context,
		                              .module = &modules[module] };
	tell(SANITIZER_RESOURCE, SANITIZER_MODULE_UNLOADING, &data);
	modules[module].live = false;
}

static void
tell_memory(uint32_t id, int device, int source, uint64_t address, uint64_t bytes, uint32_t flags)
{
	struct sanitizer_memory_data data = {
		.address = address,
		.size = bytes,
		.context = context_of(device),
		.device = device,
		.flags = flags,
		.source = source,
	};
	tell(SANITIZER_RESOURCE, id, &data);
}

EXPORT void
san_allocate(int device, uint64_t address, uint64_t bytes, uint32_t flags)
{
	tell_memory(SANITIZER_MEMORY_ALLOCATED, device, device, address, bytes, flags);
}

EXPORT void
san_free(int device, uint64_t address, uint64_t bytes, uint32_t flags)
{
	tell_memory(SANITIZER_MEMORY_FREED, device, device, address, bytes, flags);
}

EXPORT void
san_peer(int device, int peer, uint64_t address, uint64_t bytes)
{
	tell_memory(SANITIZER_MEMORY_ALLOCATED, peer, device, address, bytes, SANITIZER_PEER);
}

EXPORT void
san_host(uint64_t address, uint64_t bytes)
{
	tell_memory(SANITIZER_HOST_ALLOCATED, 0, 0, address, bytes, SANITIZER_HOST_PINNED);
}

static struct work *
new_launch(int module, int function, const struct san_access *accesses, uint32_t count)
{
	struct work *work = new_work();
	size_t bytes = count * sizeof *accesses;
	work->function = &modules[module].functions[function];
	work->accesses = malloc(bytes ? bytes : 1);
	work->count = count;
	memcpy(work->accesses, accesses, bytes);
	/* It is not documented that patching at the beginning of a launch changes this one. */
	work->patched = modules[module].patched;
	memcpy(work->marked, modules[module].marked, sizeof work->marked);
	return work;
}

static struct sanitizer_launch_data
launch_data(int module, int function, int stream, struct work *work)
{
	struct sanitizer_context *context = modules[module].context;
	return (struct sanitizer_launch_data){
		.context = context,
		.stream = &context->streams[stream],
		.stream_handle = &context->streams[stream],
		.module = &modules[module],
		.function = work->function,
		.name = work->function->name,
		.launch = (sanitizer_launch)work,
		.device = context->device,
		.grid = { 1, 1, 1 },
		.block = { 32, 1, 1 },
	};
	(void)function;
}

EXPORT void
san_launch(int module, int function, int stream, const struct san_access *accesses, uint32_t count)
{
	struct work *work = new_launch(module, function, accesses, count);
	struct sanitizer_launch_data data = launch_data(module, function, stream, work);
	launching = work;
	work->data = work->function->data;
	tell(SANITIZER_LAUNCH, SANITIZER_LAUNCH_BEGIN, &data);
	launching = NULL;
	append(data.context, stream, work);
	tell(SANITIZER_LAUNCH, SANITIZER_LAUNCH_END, &data);
}

EXPORT void
san_replay(int module, int function, int stream, const struct san_access *accesses, uint32_t count)
{
	struct work *work = new_launch(module, function, accesses, count);
	struct sanitizer_context *context = modules[module].context;
	struct sanitizer_graph_data graph = { .context = context,
		                              .stream = &context->streams[stream],
		                              .stream_handle = &context->streams[stream] };
	struct sanitizer_node_data node = { .type = SANITIZER_NODE_KERNEL };
	node.launch = launch_data(module, function, stream, work);
	node.launch.launch = NULL;
	work->of_function = true;
	tell(SANITIZER_GRAPHS, SANITIZER_GRAPH_BEGIN, &graph);
	tell(SANITIZER_GRAPHS, SANITIZER_NODE_BEGIN, &node);
	append(context, stream, work);
	tell(SANITIZER_GRAPHS, SANITIZER_GRAPH_END, &graph);
}

static struct sanitizer_memcpy_data
copy_data(int from, uint64_t from_address, int to, uint64_t to_address, uint64_t bytes)
{
	return (struct sanitizer_memcpy_data){
		.from_context = from < 0 ? NULL : context_of(from),
		.to_context = to < 0 ? NULL : context_of(to),
		.from = from_address,
		.to = to_address,
		.size = bytes,
		.direction = from < 0 ? 2
		             : to < 0 ? 3
		                      : 4,
		.api_context = context_of(from < 0 ? to : from),
	};
}

/* The sanitizer of CUDA 13.0 tells a copy of a graph as a node, and as any other copy. */
EXPORT void
san_replay_copy(int from, uint64_t from_address, int to, uint64_t to_address, uint64_t bytes)
{
	struct sanitizer_graph_data graph = { .context = context_of(from) };
	struct sanitizer_node_data node = { .type = SANITIZER_NODE_MEMCPY };
	node.copy = copy_data(from, from_address, to, to_address, bytes);
	tell(SANITIZER_GRAPHS, SANITIZER_GRAPH_BEGIN, &graph);
	tell(SANITIZER_GRAPHS, SANITIZER_NODE_BEGIN, &node);
	tell(SANITIZER_MEMCPY, SANITIZER_MEMCPY_STARTING, &node.copy);
	tell(SANITIZER_GRAPHS, SANITIZER_GRAPH_END, &graph);
}

EXPORT void
san_copy(int from, uint64_t from_address, int to, uint64_t to_address, uint64_t bytes)
{
	struct sanitizer_memcpy_data data = copy_data(from, from_address, to, to_address, bytes);
	tell(SANITIZER_MEMCPY, SANITIZER_MEMCPY_STARTING, &data);
}

static void
tell_call(int device, uint32_t id, const char *name, const void *parameters)
{
	int result = 0;
	struct sanitizer_call_data data = { .site = 1,
		                            .name = name,
		                            .parameters = parameters,
		                            .result = &result,
		                            .context = context_of(device) };
	if (calls[id])
		tell(SANITIZER_DRIVER, id, &data);
}

EXPORT void
san_batch(int device, const uint64_t *from, const uint64_t *to, const uint64_t *bytes,
          uint64_t count)
{
	struct {
		const uint64_t *to, *from, *bytes;
		size_t count;
		void *rest[5];
	} parameters = { to, from, bytes, count, { NULL } };
	tell_call(device, SANITIZER_CU_COPY_BATCH_V2, "cuMemcpyBatchAsync_v2", &parameters);
}

EXPORT void
san_access(int owner, uint64_t address, uint64_t bytes)
{
	struct {
		int type, device, flags;
	} each[SAN_DEVICES] = { { 0 } };
	struct {
		uint64_t address;
		size_t bytes;
		const void *each;
		size_t count;
	} parameters = { address, bytes, each, SAN_DEVICES };
	for (int i = 0; i < SAN_DEVICES; i++) {
		each[i].type = 1;
		each[i].device = i;
		each[i].flags = 3;
	}
	tell_call(owner, SANITIZER_CU_SET_ACCESS, "cuMemSetAccess", &parameters);
}

EXPORT void
san_ipc(int device, int opens, uint64_t address, unsigned char key)
{
	unsigned char handle[64];
	struct {
		const void *handle;
		uint64_t address;
	} get = { handle, address };
	struct {
		uint64_t *address;
		unsigned char handle[64];
		unsigned flags;
	} open = { &address, { 0 }, 1 };
	memset(handle, key, sizeof handle);
	memset(open.handle, key, sizeof open.handle);
	if (opens)
		tell_call(device, SANITIZER_CU_IPC_OPEN, "cuIpcOpenMemHandle_v2", &open);
	else
		tell_call(device, SANITIZER_CU_IPC_GET, "cuIpcGetMemHandle", &get);
}

EXPORT void
san_call(int device, unsigned id, const char *name, const void *parameters)
{
	tell_call(device, id, name, parameters);
}

EXPORT void
san_run(int device, int stream)
{
	run(context_of(device), stream);
}

EXPORT void
san_synchronize(int device, int stream)
{
	struct sanitizer_context *context = context_of(device);
	for (int i = 0; i < SAN_STREAMS; i++)
		if (stream < 0 || i == stream)
			run(context, i);
	struct sanitizer_synchronize_data data = {
		.context = context,
		.stream = stream < 0 ? NULL : &context->streams[stream],
		.stream_handle = stream < 0 ? NULL : &context->streams[stream],
	};
	tell(SANITIZER_SYNCHRONIZE, stream < 0 ? SANITIZER_CONTEXT_DONE : SANITIZER_STREAM_DONE,
	     &data);
}

EXPORT uint64_t
san_switches(void)
{
	return switches;
}
