/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, stop and the service thread, which alone may call the driver: it describes devices, writes
 * what the environment is told, and reads the last counts.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/gpu/code.h"
#include "collect/gpu/cuda/cuda.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/gpu/sanitizer/runtime.h"
#include "collect/gpu/service.h"
#include "collect/recording.h"
#include "collect/wait.h"

#define STOP_NS 2000000000u
#define TICK_NS 100000000u

struct plumb_sanitizer_settings plumb_sanitizer_settings;
_Atomic bool plumb_sanitizer_live;

static sanitizer_subscriber subscriber;
static struct plumb_service service;
static _Atomic uint64_t unseen[PLUMB_UNSEEN_COUNT];
static regex_t kernels, objects;
static bool choose_kernels, choose_objects;

void
plumb_sanitizer_wake(void)
{
	plumb_service_wake(&service);
}

void
plumb_sanitizer_unseen(enum plumb_unseen what, uint64_t times)
{
	atomic_fetch_add_explicit(&unseen[what], times, memory_order_relaxed);
}

/* ---- what the program's user chose ---- */

bool
plumb_sanitizer_wants_kernel(const char *name)
{
	return !choose_kernels || (name && !regexec(&kernels, name, 0, NULL, 0));
}

bool
plumb_sanitizer_wants_object(plumb_id object)
{
	struct plumb_region *region = plumb_region_of_process();
	const struct plumb_record_object *record =
		choose_objects && object ? plumb_region_at(region, object) : NULL;
	const struct plumb_record_string *name =
		record && record->name ? plumb_region_at(region, record->name) : NULL;
	char text[256];
	if (!choose_objects)
		return true;
	if (!name)
		return false;
	snprintf(text, sizeof text, "%.*s", (int)name->bytes, (const char *)(name + 1));
	return !regexec(&objects, text, 0, NULL, 0);
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	if (!text || !*text)
		return otherwise;
	uint64_t value = strtoull(text, &end, 0);
	return *end ? otherwise : value;
}

static void
read_settings(void)
{
	const struct plumb_collector_options *options = plumb_collector_options();
	bool sampled = options->traffic == PLUMB_TRAFFIC_SAMPLED && options->traffic_rate < 1;
	plumb_sanitizer_settings = (struct plumb_sanitizer_settings){
		.sampled = sampled,
		.rate = sampled ? options->traffic_rate : 1,
		.unpatch = number_of("PLUMB_TRAFFIC_UNPATCH", 1) != 0,
		.idle = (uint32_t)number_of("PLUMB_TRAFFIC_IDLE", 64),
		.early = number_of("PLUMB_TRAFFIC_EARLY", 1) != 0,
		.seed = number_of("PLUMB_TRAFFIC_SEED", 1),
		.own = options->traffic_own,
	};
	choose_kernels = options->traffic_kernels[0] &&
	                 !regcomp(&kernels, options->traffic_kernels, REG_EXTENDED | REG_NOSUB);
	choose_objects = options->traffic_objects[0] &&
	                 !regcomp(&objects, options->traffic_objects, REG_EXTENDED | REG_NOSUB);
}

/* ---- the service thread ---- */

static void
describe_device(struct plumb_thread *thread, uint32_t ordinal)
{
	struct plumb_occupancy_limits limits;
	struct plumb_record_device description;
	char name[256];
	plumb_cuda_describe(ordinal, &description, name, &limits);
	plumb_id text = name[0] ? plumb_intern(thread, name, strlen(name)) : 0;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_device *record =
		plumb_arena_append(arena, PLUMB_RECORD_DEVICE, sizeof *record);
	if (!record)
		return;
	struct plumb_record head = record->head;
	*record = description;
	record->head = head;
	record->name = text;
	plumb_arena_commit(arena, record);
}

static void
describe_devices(struct plumb_thread *thread)
{
	static uint64_t described;
	uint64_t wanted = atomic_load(&plumb_objects_ordinals);
	pthread_mutex_lock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < PLUMB_CONTEXTS; i++)
		if (plumb_sanitizer_contexts[i].live && plumb_sanitizer_contexts[i].ordinal < 64)
			wanted |= 1ull << plumb_sanitizer_contexts[i].ordinal;
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < 64; i++)
		if (wanted & ~described & 1ull << i)
			describe_device(thread, i);
	described |= wanted;
}

static void
tell_unseen(struct plumb_thread *thread)
{
	static const char *const texts[PLUMB_UNSEEN_COUNT][2] = {
		[PLUMB_UNSEEN_MULTICAST] = { "traffic.multicast.gap",
		                             "multicast objects were made: traffic through "
		                             "them cannot be seen" },
		[PLUMB_UNSEEN_DEVICE_GRAPHS] = { "traffic.device_graphs.gap",
		                                 "graphs that kernels launch were made: what "
		                                 "they do cannot be seen" },
		[PLUMB_UNSEEN_MODULES] = { "traffic.modules.gap",
		                           "modules of GPU code could not be patched: their "
		                           "traffic cannot be seen" },
		[PLUMB_UNSEEN_BULK] = { "traffic.bulk.gap",
		                        "kinds of instruction, of all modules together, have no "
		                        "patch in this Compute Sanitizer (that of CUDA 12.9 has)" },
		[PLUMB_UNSEEN_TENSOR] = { "traffic.tensor.gap",
		                          "instructions of loaded GPU code copy by tensor maps: "
		                          "these copies are not counted" },
		[PLUMB_UNSEEN_CONTEXTS] = { "traffic.contexts.gap",
		                            "times, a GPU context was one more than plumb keeps" },
	};
	static uint64_t told[PLUMB_UNSEEN_COUNT];
	char text[160];
	for (int i = 0; i < PLUMB_UNSEEN_COUNT; i++) {
		uint64_t now = atomic_load(&unseen[i]);
		if (now == told[i])
			continue;
		told[i] = now;
		snprintf(text, sizeof text, "%llu %s", (unsigned long long)now, texts[i][1]);
		plumb_environment(thread, texts[i][0], text);
	}
}

static void
tell_settings(struct plumb_thread *thread)
{
	char text[64];
	plumb_environment(thread, "gpu.sanitizer", plumb_sanitizer.path);
	plumb_environment(thread, "gpu.times.gap",
	                  "times on the GPU are not recorded: --traffic=full and sampled use the "
	                  "Compute Sanitizer, which excludes CUPTI");
	if (plumb_sanitizer_settings.own)
		plumb_environment(thread, "traffic.own",
		                  "accesses of GPUs to their own memory are counted, too");
	if (!plumb_sanitizer_settings.sampled) {
		plumb_environment(thread, PLUMB_TRAFFIC_MODE,
		                  plumb_traffic_mode_names[PLUMB_TRAFFIC_FULL]);
		return;
	}
	snprintf(text, sizeof text, "%s:%g", plumb_traffic_mode_names[PLUMB_TRAFFIC_SAMPLED],
	         plumb_sanitizer_settings.rate);
	plumb_environment(thread, PLUMB_TRAFFIC_MODE, text);
	snprintf(text, sizeof text, "%llu", (unsigned long long)plumb_sanitizer_settings.seed);
	plumb_environment(thread, "traffic.seed", text);
}

static void
tell_news(bool first, bool last)
{
	if (!plumb_recording())
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	if (first) {
		plumb_wait_leave_out(thread);
		tell_settings(thread);
	}
	describe_devices(thread);
	plumb_code_tell(thread);
	if (last)
		tell_unseen(thread);
	plumb_leave(thread);
}

static void *
serve(void *data)
{
	(void)data;
	pthread_setname_np(pthread_self(), "plumb");
	tell_news(true, false);
	while (!plumb_service_is_stopping(&service)) {
		uint32_t seen = plumb_service_wakes(&service);
		tell_news(false, false);
		plumb_service_sleep(&service, seen, TICK_NS);
	}
	for (uint32_t i = 0; i < PLUMB_CONTEXTS; i++)
		if (plumb_sanitizer_contexts[i].live)
			plumb_sanitizer_read(&plumb_sanitizer_contexts[i], NULL, true, true);
	tell_news(false, true);
	plumb_service_ended(&service);
	return NULL;
}

/* ---- the runtime ---- */

static int
subscribe(struct plumb_error *error)
{
	static const uint32_t of_handles[] = { SANITIZER_CU_CREATE, SANITIZER_CU_MAP,
		                               SANITIZER_CU_EXPORT, SANITIZER_CU_IMPORT };
	static const int domains[] = { SANITIZER_RESOURCE, SANITIZER_SYNCHRONIZE, SANITIZER_LAUNCH,
		                       SANITIZER_MEMCPY, SANITIZER_GRAPHS };
	static const uint32_t calls[] = {
		SANITIZER_CU_PEER_ACCESS,       SANITIZER_CU_SET_ACCESS,
		SANITIZER_CU_IPC_GET,           SANITIZER_CU_IPC_OPEN,
		SANITIZER_CU_MULTICAST_CREATE,  SANITIZER_CU_COPY_BATCH,
		SANITIZER_CU_COPY_BATCH_PTSZ,   SANITIZER_CU_COPY_BATCH_V2,
		SANITIZER_CU_COPY_BATCH_V2_PTSZ
	};
	sanitizer_result result = SANITIZER(Subscribe(&subscriber, plumb_sanitizer_told, NULL));
	for (size_t i = 0; !result && i < sizeof domains / sizeof *domains; i++)
		result = SANITIZER(EnableDomain(1, subscriber, domains[i]));
	if (result == SANITIZER_MAX_LIMIT)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "traffic of kernels is not recorded: another tool uses the "
		                  "Compute Sanitizer in this process; run without it");
	if (result)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "traffic of kernels is not recorded: the Compute Sanitizer (%s) "
		                  "says \"%s\"; some containers and virtual machines refuse it, "
		                  "then use --traffic=calls",
		                  plumb_sanitizer.path, plumb_sanitizer_message(result));
	/* An older library does not know all of them. */
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		SANITIZER(EnableCallback(1, subscriber, SANITIZER_DRIVER, calls[i]));
	for (size_t i = 0; i < sizeof of_handles / sizeof *of_handles; i++)
		SANITIZER(EnableCallback(1, subscriber, SANITIZER_DRIVER, of_handles[i]));
	return 0;
}

static void
at_exit(void)
{
	if (plumb_service_is_own(&service))
		plumb_gpu_stop();
}

static int
start_sanitizer(struct plumb_error *error)
{
	static bool registered;
	int result = plumb_driver_find(error);
	if (!result)
		result = plumb_sanitizer_find(error);
	if (result)
		return result;
	read_settings();
	plumb_service_adopt(&service);
	atomic_store(&plumb_sanitizer_live, true);
	result = subscribe(error);
	if (!result)
		result = plumb_service_start(&service, serve, "traffic of kernels is not recorded",
		                             error);
	if (result) {
		atomic_store(&plumb_sanitizer_live, false);
		return result;
	}
	if (!registered)
		atexit(at_exit);
	registered = true;
	return 0;
}

static void
stop_sanitizer(void)
{
	if (plumb_service_stop(&service, STOP_NS))
		atomic_store(&plumb_sanitizer_live, false);
}

/* One recording for each process: patches stay in the program's code. */
static bool
renew_sanitizer(void)
{
	return !service.serving;
}

static void
leave_forked(void)
{
	plumb_service_forked(&service);
	atomic_store(&plumb_sanitizer_live, false);
	plumb_sanitizer_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	plumb_sanitizer_modules_renew();
	plumb_sanitizer_launches_renew();
	plumb_sanitizer_reads_renew();
}

static bool
never_ready(void)
{
	/* It must be there before the driver is: it follows modules and memory from the start. */
	return false;
}

const struct plumb_gpu_runtime plumb_gpu_sanitizer = {
	.name = "sanitizer",
	.driver = PLUMB_CUDA_DRIVER,
	.modes = PLUMB_GPU_MODE(TRAFFIC),
	.ready = never_ready,
	.start = start_sanitizer,
	.stop = stop_sanitizer,
	.renew = renew_sanitizer,
	.forked = leave_forked,
};
