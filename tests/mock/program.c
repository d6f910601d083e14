/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-in driver: its arguments are what it does, in order.
 *
 *   launch:NAME:NS[:STREAM[:DEVICE]]      a kernel of one block of 32 threads
 *   kernel:NAME:NS:GRID:BLOCK:REGISTERS:STATIC:DYNAMIC
 *   copy:FROM:TO:BYTES:NS[:HOST_NS]       places: pageable pinned device array managed peer
 *   blocking:FROM:TO:BYTES:NS[:HOST_NS]   the synchronous function
 *   set:BYTES:NS     wait:stream|context|event:HOST_NS     waitevent
 *   alloc:BYTES      free                 cuMemAlloc, and cuMemFree of the newest
 *   allocasync:BYTES freeasync
 *   capture:COUNT:NAME:NS                 a graph of COUNT kernels     replay:TIMES
 *   names:COUNT:NS                        kernels k0, k1, …, one of each
 *   threads:COUNT:TIMES:NAME:NS           COUNT threads with TIMES launches each, then waits
 *   repeat:TIMES                          the next action, so often
 *   gap:STREAM:NS    mock:KEY:VALUE       sleep:MS
 *   module:FILE                           loads the image of GPU code that the file is
 *   unmodule                              unloads it
 *   stall:FUNCTION:OFFSET:REASON:ALL:IDLE what each launch of FUNCTION, in it, is sampled at
 *   counter:FUNCTION:METRIC:VALUE         what each launch of FUNCTION counts
 *   show:KEY                              prints what mock.h says of it
 *   destroy:DEVICE                        destroys the device's context
 *   fork:NAME:NS                          a child launches and leaves by _exit; waits for it
 *   exit:CODE  _exit:CODE  kill:SIGNAL
 *
 * mock-profiled also links CUPTI and can profile itself, as torch.profiler does:
 *   profile:begin  (subscribe when not yet, set a clock and buffers, enable kernels)
 *   profile:end    (disable, flush; prints "profiled N kernels"; stays subscribed)
 *   profile:leave  (unsubscribe)          profile:finalize
 *   profile:callbacks  (prints how often its callback for graph nodes, on all the time, was called)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mock.h"
#ifdef PROFILED
#include "tool.h"
#endif

#define FIELDS 10
struct action {
	char *text[FIELDS]; /* "" where not given */
	unsigned long long number[FIELDS];
};

static uint64_t newest;
static void *graph;

static void
parse(char *argument, struct action *action)
{
	static char empty[] = "";
	for (int i = 0; i < FIELDS; i++) {
		char *end = argument ? strchr(argument, ':') : NULL;
		action->text[i] = argument ? argument : empty;
		action->number[i] = strtoull(action->text[i], NULL, 10);
		if (end)
			*end = '\0';
		argument = end ? end + 1 : NULL;
	}
}

static enum mock_place
place(const char *name)
{
	static const char *const names[] = {
		"", "pageable", "pinned", "device", "array", "managed"
	};
	for (int i = 1; i < 6; i++)
		if (!strcmp(name, names[i]))
			return (enum mock_place)i;
	return MOCK_DEVICE;
}

static void
copy(const struct action *a, int blocking)
{
	mock_copy(&(struct mock_copy){
		.from = place(a->text[1]),
		.to = place(a->text[2]),
		.bytes = a->number[3],
		.duration_ns = a->number[4],
		.host_ns = a->number[5],
		.blocking = blocking,
		.to_peer = !strcmp(a->text[2], "peer"),
	});
}

/* The image is gone when the call has returned, as a driver's may be. */
static void
load(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *image = malloc(1 << 20);
	size_t bytes = file && image ? fread(image, 1, 1 << 20, file) : 0;
	if (!bytes)
		exit(2);
	mock_module_load(image, bytes);
	memset(image, 0xff, bytes);
	free(image);
	fclose(file);
}

struct work {
	const char *name;
	unsigned long long times, ns;
};

static void *
launch_many(void *data)
{
	const struct work *work = data;
	for (unsigned long long i = 0; i < work->times; i++)
		mock_launch(work->name, work->ns);
	return NULL;
}

/* Names stay, as those of a loaded module do. */
static void
names(const struct action *a)
{
	static char text[4096][8];
	for (unsigned i = 0; i < a->number[1] && i < 4096; i++) {
		snprintf(text[i], sizeof text[i], "k%u", i);
		mock_launch(text[i], a->number[2]);
	}
}

static void
threads(const struct action *a)
{
	struct work work = { a->text[3], a->number[2], a->number[4] };
	pthread_t thread[64];
	unsigned count = a->number[1] < 64 ? (unsigned)a->number[1] : 64;
	for (unsigned i = 0; i < count; i++)
		pthread_create(&thread[i], NULL, launch_many, &work);
	for (unsigned i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

static void
fork_child(const struct action *a)
{
	pid_t child = fork();
	if (!child) {
		mock_launch(a->text[1], a->number[2]);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- a profiler of its own ---- */

#ifdef PROFILED
static CUpti_SubscriberHandle subscriber;
static int profiled, own_callbacks;

static void CUPTIAPI
own_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
	(void)data, (void)info;
	own_callbacks +=
		domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;
}

/* torch.profiler sets a clock of its own, too; this one counts half nanoseconds. */
static uint64_t CUPTIAPI
own_ticks(void)
{
	return 2 * (mock_now() - 1700000000000000000u);
}

static void CUPTIAPI
own_requested(uint8_t **buffer, size_t *size, size_t *records)
{
	*size = 1 << 16;
	*buffer = calloc(1, *size);
	*records = 0;
}

static void CUPTIAPI
own_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	(void)context, (void)stream, (void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		profiled += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	free(buffer);
}

static void
profile(const char *what)
{
	CUptiResult result = CUPTI_SUCCESS;
	if (!strcmp(what, "begin")) {
		profiled = 0;
		if (!subscriber) {
			result = cuptiSubscribe(&subscriber, own_callback, NULL);
			/* Left on for good. */
			cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
			                    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
		}
		cuptiActivityRegisterTimestampCallback(own_ticks);
		cuptiActivityRegisterCallbacks(own_requested, own_completed);
		cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
		printf("subscribe %d\n", (int)result);
	} else if (!strcmp(what, "end")) {
		cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
		cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
		printf("profiled %d kernels\n", profiled);
	} else if (!strcmp(what, "callbacks")) {
		printf("%d callbacks\n", own_callbacks);
	} else if (!strcmp(what, "leave")) {
		printf("unsubscribe %d\n", (int)cuptiUnsubscribe(subscriber));
		subscriber = NULL;
	} else {
		cuptiFinalize();
		subscriber = NULL;
	}
	fflush(stdout);
}
#else
static void
profile(const char *what)
{
	fprintf(stderr, "mock-program: cannot profile itself (%s); take mock-profiled\n", what);
}
#endif

/* ---- actions ---- */

static int
gpu_action(const struct action *a)
{
	const char *verb = a->text[0];
	if (!strcmp(verb, "launch")) {
		mock_launch_ex(&(struct mock_launch){
			.name = a->text[1],
			.duration_ns = a->number[2],
			.stream = (uint32_t)a->number[3],
			.device = (uint32_t)a->number[4],
		});
	} else if (!strcmp(verb, "kernel")) {
		mock_launch_ex(&(struct mock_launch){
			.name = a->text[1],
			.duration_ns = a->number[2],
			.grid = { (uint32_t)a->number[3], 1, 1 },
			.block = { (uint32_t)a->number[4], 1, 1 },
			.registers = (uint32_t)a->number[5],
			.static_shared = (uint32_t)a->number[6],
			.dynamic_shared = (uint32_t)a->number[7],
		});
	} else if (!strcmp(verb, "copy")) {
		copy(a, 0);
	} else if (!strcmp(verb, "blocking")) {
		copy(a, 1);
	} else if (!strcmp(verb, "set")) {
		mock_memset(a->number[1], a->number[2], 0);
	} else if (!strcmp(verb, "wait")) {
		mock_wait(!strcmp(a->text[1], "stream")    ? MOCK_WAIT_STREAM
		          : !strcmp(a->text[1], "context") ? MOCK_WAIT_CONTEXT
		                                           : MOCK_WAIT_EVENT,
		          a->number[2]);
	} else if (!strcmp(verb, "waitevent")) {
		mock_stream_wait_event(1);
	} else if (!strcmp(verb, "alloc") || !strcmp(verb, "allocasync")) {
		newest = mock_alloc(a->number[1], verb[5] ? 0 : -1);
	} else if (!strcmp(verb, "free") || !strcmp(verb, "freeasync")) {
		mock_free(newest, verb[4] ? 0 : -1);
	} else if (!strcmp(verb, "capture")) {
		mock_capture_begin(0);
		for (unsigned long long i = 0; i < a->number[1]; i++)
			mock_launch(a->text[2], a->number[3]);
		graph = mock_capture_end(0);
	} else if (!strcmp(verb, "module")) {
		load(a->text[1]);
	} else if (!strcmp(verb, "unmodule")) {
		mock_module_unload();
	} else if (!strcmp(verb, "stall")) {
		mock_stall(a->text[1], a->number[2], a->text[3], (uint32_t)a->number[4],
		           (uint32_t)a->number[5]);
	} else if (!strcmp(verb, "counter")) {
		mock_counter(a->text[1], a->text[2], a->number[3]);
	} else if (!strcmp(verb, "show")) {
		printf("%s=%lld\n", a->text[1], mock_get(a->text[1]));
		fflush(stdout);
	} else if (!strcmp(verb, "destroy")) {
		mock_context_destroy((uint32_t)a->number[1]);
	} else if (!strcmp(verb, "replay")) {
		for (unsigned long long i = 0; i < a->number[1]; i++)
			mock_graph_launch(graph, 0);
	} else if (!strcmp(verb, "threads")) {
		threads(a);
	} else if (!strcmp(verb, "names")) {
		names(a);
	} else if (!strcmp(verb, "gap")) {
		mock_gap(0, (uint32_t)a->number[1], a->number[2]);
	} else {
		return 0;
	}
	return 1;
}

static void
act(const struct action *a)
{
	const char *verb = a->text[0];
	if (gpu_action(a)) {
		return;
	} else if (!strcmp(verb, "mock")) {
		mock_set(a->text[1], (long long)a->number[2]);
	} else if (!strcmp(verb, "sleep")) {
		usleep((useconds_t)a->number[1] * 1000);
	} else if (!strcmp(verb, "fork")) {
		fork_child(a);
	} else if (!strcmp(verb, "profile")) {
		profile(a->text[1]);
	} else if (!strcmp(verb, "exit")) {
		exit((int)a->number[1]);
	} else if (!strcmp(verb, "_exit")) {
		fflush(stdout);
		_exit((int)a->number[1]);
	} else if (!strcmp(verb, "kill")) {
		raise((int)a->number[1]);
	} else {
		fprintf(stderr, "mock-program: unknown action %s\n", verb);
		exit(64);
	}
}

int
main(int count, char **arguments)
{
	unsigned long long times = 1;
	for (int i = 1; i < count; i++) {
		struct action action;
		parse(arguments[i], &action);
		if (!strcmp(action.text[0], "repeat")) {
			times = action.number[1];
			continue;
		}
		while (times--)
			act(&action);
		times = 1;
	}
	return 0;
}
