/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI serves one subscriber. While plumb holds the slot, the program's own profiler would get
 * nothing: so when the program wants it (interpose.c), plumb flushes, disables its records and
 * unsubscribes before the program's call goes on, and takes the slot back once the program is done.
 *
 * Done means: it unsubscribed; or it called cuptiFinalize; or, having disabled every kind of record
 * and every callback, it flushed. The last is torch.profiler's end: it subscribes once and never
 * unsubscribes. plumb then unsubscribes it, and subscribes it anew, with the same callback, when it
 * comes back; since its handle is another one then, interpose.c translates. Callbacks for the
 * making of contexts and the like, which torch.profiler leaves enabled for good, do not count and
 * are enabled again then.
 *
 * CUPTI also has one clock: torch.profiler makes it count ticks of the processor, and never undoes
 * that. A clock that is not CLOCK_REALTIME in ns, as CUPTI's own is, is replaced while plumb has
 * the slot.
 *
 * The slot is taken back by the service thread and not in the program's call, which may be made
 * inside a CUPTI callback. No lock is held over the program's own calls.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/object.h"
#include "collect/span.h"

struct plumb_cuda_knobs plumb_cuda_knobs;

enum owner { NOBODY, OURS, GIVEN, LEFT };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int owner;
static CUpti_SubscriberHandle ours;
static _Thread_local bool inside; /* CUPTI calls itself, or plumb calls it */

static struct {
	bool subscribed;
	bool suspended;                     /* unsubscribed by us, until it comes back */
	CUpti_SubscriberHandle known, real; /* as the program has it, as CUPTI has it */
	CUpti_CallbackFunc callback;
	void *data;
	uint64_t kinds[4]; /* bits: enabled kinds of records */
	struct {
		uint32_t domain, id; /* id EVERY: the whole domain */
	} callbacks[64];
	unsigned callback_count;
	bool too_many;                     /* callbacks to remember: it is never done by flushing */
	CUpti_TimestampCallbackFunc clock; /* NULL: it set none */
	bool recorded;                     /* it enabled records since it took the slot */
	bool done;
	uint64_t done_at;
} program;
#define EVERY UINT32_MAX
#define MODULES_NS 100000000u    /* between two looks at what is loaded */
#define PATIENCE_NS 100000000    /* waits so long for another thread */
#define FIRST_OF_REPLAYS 130000u /* CUPTI 13.0 */
#define PAUSE_NS                                                                                   \
	100000000u /* one session may follow the other at once, and teardown takes a while */

/* What happened, for the ledger. */
static uint64_t given, given_told, gap_start, gap_ns, refusals, refusals_told;
static bool lost;
static struct plumb_error lost_why;

/* ---- taking ---- */

static const struct {
	CUpti_ActivityKind kind;
	unsigned bit;
	bool traces; /* for traces alone, which do without where a version refuses */
} kinds[] = {
	{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1, false },
	{ CUPTI_ACTIVITY_KIND_MEMCPY, 2, false },
	{ CUPTI_ACTIVITY_KIND_MEMCPY2, 4, false },
	{ CUPTI_ACTIVITY_KIND_MEMSET, 8, false },
	{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 16, true },
	{ CUPTI_ACTIVITY_KIND_CUDA_EVENT, 32, true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Is the I-th of kinds[] asked for? */
static bool
is_wanted(size_t i)
{
	return plumb_cuda_knobs.kinds & kinds[i].bit && (plumb_trace_on || !kinds[i].traces);
}

/* Libraries of tools that take the slot, by the start of their file names. */
static const struct {
	const char *library, *tool;
} tools[] = {
	{ "libToolsInjection", "Nsight Systems" },
	{ "libcuda-injection", "Nsight Compute" },
	{ "libInterceptorInjection", "NVIDIA Compute Sanitizer" },
	{ "libsanitizer-collection", "NVIDIA Compute Sanitizer" },
	{ "libcuinj64", "nvprof" },
	{ "libproton", "Proton" },
	{ "libhpcrun", "HPCToolkit" },
	{ "libTAU", "TAU" },
	{ "libscorep_adapter_cuda", "Score-P" },
	{ "libcudatrace", "Extrae" },
	{ "libparcagpucupti", "Parca" },
	{ "libdlprof", "DLProf" },
	{ "libcudadebugger", "cuda-gdb" },
};

/* Who has the slot, from CUPTI itself where it tells (13.0), else from what is loaded. */
static const char *
name_holder(char *text, size_t size)
{
	char path[4096];
	if (plumb_cupti.Subscribe_v2) {
		char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
		CUpti_SubscriberParams params = {
			.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
			.subscriberName = "plumb",
			.oldSubscriberName = name,
			.oldSubscriberSize = sizeof name,
		};
		CUpti_SubscriberHandle handle;
		if (plumb_cupti.Subscribe_v2(&handle, plumb_cuda_callback, NULL, &params) ==
		    CUPTI_SUCCESS)
			plumb_cupti.Unsubscribe(handle);
		name[sizeof name - 1] = '\0';
		if (name[0] && !strstr(name, "<not provided>")) {
			snprintf(text, size, "%s", name);
			return text;
		}
	}
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
		if (plumb_find_library(tools[i].library, path, sizeof path))
			return tools[i].tool;
	if (plumb_find_library("libtorch_cpu.so", path, sizeof path))
		return "another profiler in this process (torch.profiler keeps it once it was "
		       "used)";
	return "another tool in this process that does not give its name";
}

static void
set_attribute(CUpti_ActivityAttribute attribute, const void *value, size_t size)
{
	/* An attribute that a version lacks leaves CUPTI as it is. */
	plumb_cupti.ActivitySetAttribute(attribute, &size, (void *)(uintptr_t)value);
}

static void
set_attributes(void)
{
	const struct plumb_cuda_knobs *k = &plumb_cuda_knobs;
	size_t number;
	uint8_t flag;
	if (k->zeroed) {
		flag = 1;
		set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &flag, sizeof flag);
	}
	if (k->per_thread >= 0 && plumb_cupti.version >= 21) {
		flag = (uint8_t)k->per_thread;
		set_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &flag, sizeof flag);
	}
	if (k->host_pinned >= 0) {
		flag = (uint8_t)k->host_pinned;
		set_attribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &flag,
		              sizeof flag);
	}
	if (k->device_buffer_bytes >= 0) {
		number = (size_t)k->device_buffer_bytes;
		set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &number, sizeof number);
	}
	if (k->device_buffers >= 0) {
		number = (size_t)k->device_buffers;
		set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &number, sizeof number);
	}
	if (k->preallocate >= 0) {
		number = (size_t)k->preallocate;
		set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &number,
		              sizeof number);
	}
	if (k->hw_trace >= 0 && plumb_cupti.ActivityEnableHWTrace)
		plumb_cupti.ActivityEnableHWTrace((uint8_t)k->hw_trace);
}

static void
disable_kinds(void)
{
	for (size_t i = 0; i < KINDS; i++)
		if (is_wanted(i))
			plumb_cupti.ActivityDisable(kinds[i].kind);
}

static CUptiResult
enable_kinds(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		CUptiResult result =
			is_wanted(i) ? plumb_cupti.ActivityEnable(kinds[i].kind) : CUPTI_SUCCESS;
		if (result != CUPTI_SUCCESS && !kinds[i].traces)
			return result;
	}
	return CUPTI_SUCCESS;
}

/* ---- records of replays ---- */

static _Atomic bool replays;

bool
plumb_slot_replays(void)
{
	return atomic_load_explicit(&replays, memory_order_relaxed);
}

/* Called with the lock, at the driver's start, when there is no graph yet. */
static void
replays_begin(void)
{
	static bool before;
	bool first = !before;
	before = true;
	/* What is known of other releases is not enough. */
	if (first && plumb_collector_options()->replays &&
	    plumb_cupti.version >= FIRST_OF_REPLAYS && plumb_cupti.GetGraphExecId &&
	    plumb_gpu_replays_init(plumb_cuda_activity) &&
	    plumb_cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) == CUPTI_SUCCESS)
		atomic_store(&replays, true);
}

static void
replays_end(void)
{
	if (atomic_exchange(&replays, false))
		plumb_cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

/* What is launched from the moment that the flag is set has no record that counts; so it is set
 * before records go off and cleared when they are on. */
void
plumb_slot_pause(bool pause)
{
	if (plumb_gpu_activity_paused(plumb_cuda_activity) == pause)
		return;
	pthread_mutex_lock(&lock);
	inside = true;
	if (pause)
		plumb_gpu_activity_pause(plumb_cuda_activity, true);
	if (atomic_load(&owner) == OURS && pause)
		disable_kinds();
	else if (atomic_load(&owner) == OURS)
		enable_kinds();
	if (!pause)
		plumb_gpu_activity_pause(plumb_cuda_activity, false);
	inside = false;
	pthread_mutex_unlock(&lock);
}

static uint64_t
read_realtime(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t CUPTIAPI
own_clock(void)
{
	return read_realtime();
}

/* Makes CUPTI count CLOCK_REALTIME again when somebody made it count something else. */
static void
set_clock(void)
{
	uint64_t gpu = 0, real = read_realtime();
	if (!plumb_cupti.ActivityRegisterTimestampCallback)
		return;
	bool other = plumb_cupti.GetTimestamp(&gpu) == CUPTI_SUCCESS &&
	             (gpu > real ? gpu - real : real - gpu) > 1000000000u;
	if (program.clock || other)
		plumb_cupti.ActivityRegisterTimestampCallback(own_clock);
}

/* To tell of modules, CUPTI unpacks each of them, those of the libraries that PyTorch brings too,
 * which have no lines and take 70 MB: there the calls that load code tell (callbacks.c), which is
 * how Triton's and nvrtc's kernels come. Called with the lock, now and then. */
static _Atomic bool modules; /* are told */

static bool
libraries_are_small(void)
{
	static unsigned long long seen;
	unsigned long long adds = plumb_libraries_added();
	char path[4096];
	if (adds == seen)
		return false;
	seen = adds;
	return !plumb_find_library("libtorch_cpu.so", path, sizeof path);
}

/* ANEW: the subscriber is a new one. */
static void
watch_modules(bool anew)
{
	/* Samples need the code of each module that they meet. */
	if (modules ? !anew : !plumb_cuda_stalls_wanted && !libraries_are_small())
		return;
	atomic_store(&modules, true);
	plumb_cupti.EnableCallback(1, ours, CUPTI_CB_DOMAIN_RESOURCE,
	                           CUPTI_CBID_RESOURCE_MODULE_LOADED);
}

bool
plumb_slot_has_modules(void)
{
	return atomic_load_explicit(&modules, memory_order_relaxed);
}

/* What stalls.c, counters.c and series.c have to know. */
static void
watch_contexts(void)
{
	static const CUpti_CallbackId events[] = { CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
		                                   CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
		                                   CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING };
	bool wanted =
		plumb_cuda_stalls_wanted || plumb_cuda_counters_wanted || plumb_cuda_series_wanted;
	for (size_t i = 0; wanted && i < sizeof events / sizeof *events; i++)
		plumb_cupti.EnableCallback(1, ours, CUPTI_CB_DOMAIN_RESOURCE, events[i]);
}

/* Subscribes and enables. Called with the lock. */
static int
take_slot(struct plumb_error *error)
{
	char name[128];
	CUptiResult result = plumb_cupti.Subscribe(&ours, plumb_cuda_callback, NULL);
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"GPU work is not recorded: CUPTI serves one tool at a time, and %s has it; "
			"run the program without that tool",
			name_holder(name, sizeof name));
	if (result != CUPTI_SUCCESS)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "GPU work is not recorded: cuptiSubscribe: %s (%s)",
		                  plumb_cupti_message(result), plumb_cupti.path);
	set_attributes();
	set_clock();
	/* Functions that a version lacks are refused one by one. */
	for (uint32_t id = 0; plumb_cuda_knobs.callbacks && id < PLUMB_CALLS_MAX; id++)
		if (plumb_calls[id] &&
		    (plumb_traffic_wanted || !plumb_call_is_of_traffic(plumb_calls[id])) &&
		    (plumb_cuda_counters_wanted || plumb_cuda_series_wanted ||
		     plumb_calls[id] < PLUMB_CALL_CAPTURE))
			plumb_cupti.EnableCallback(1, ours, CUPTI_CB_DOMAIN_DRIVER_API, id);
	plumb_cupti.EnableCallback(1, ours, CUPTI_CB_DOMAIN_RESOURCE,
	                           CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	plumb_cupti.EnableCallback(1, ours, CUPTI_CB_DOMAIN_RESOURCE,
	                           CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
	replays_begin();
	watch_modules(true);
	watch_contexts();
	result = plumb_cupti.ActivityRegisterCallbacks(plumb_buffer_requested,
	                                               plumb_buffer_completed);
	if (result == CUPTI_SUCCESS && !plumb_gpu_activity_paused(plumb_cuda_activity))
		result = enable_kinds();
	if (result != CUPTI_SUCCESS) {
		replays_end();
		disable_kinds();
		plumb_cupti.Unsubscribe(ours);
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "GPU work is not recorded: CUPTI's records cannot be switched "
		                  "on: %s (%s)",
		                  plumb_cupti_message(result), plumb_cupti.path);
	}
	if (plumb_cuda_knobs.period_ms >= 0 && plumb_cupti.ActivityFlushPeriod)
		plumb_cupti.ActivityFlushPeriod((uint32_t)plumb_cuda_knobs.period_ms);
	atomic_store(&owner, OURS);
	plumb_cuda_stalls_slot(true);
	plumb_cuda_counters_slot(true);
	plumb_cuda_series_slot(true);
	return 0;
}

int
plumb_slot_take(struct plumb_error *error)
{
	pthread_mutex_lock(&lock);
	inside = true;
	int result = take_slot(error);
	inside = false;
	pthread_mutex_unlock(&lock);
	return result;
}

/* Called with the lock. */
static void
release_slot(enum owner next)
{
	plumb_cuda_stalls_slot(false);
	plumb_cuda_counters_slot(false);
	plumb_cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	replays_end();
	disable_kinds();
	plumb_cupti.Unsubscribe(ours);
	plumb_cuda_series_slot(false); /* the last: see there */
	atomic_store(&owner, next);
}

void
plumb_slot_leave(void)
{
	pthread_mutex_lock(&lock);
	inside = true;
	if (atomic_load(&owner) == OURS)
		release_slot(LEFT);
	if (atomic_load(&owner) == GIVEN && gap_start)
		gap_ns += plumb_clock_ns() - gap_start;
	atomic_store(&owner, LEFT);
	inside = false;
	pthread_mutex_unlock(&lock);
}

void
plumb_slot_renew(void)
{
	pthread_mutex_lock(&lock);
	given = given_told = gap_start = gap_ns = refusals = refusals_told = 0;
	lost = false;
	atomic_store(&modules, false);
	atomic_store(&owner, NOBODY);
	pthread_mutex_unlock(&lock);
}

/* With the lock, which it gives back. */
static void
flush(bool force)
{
	inside = true;
	if (atomic_load(&owner) == OURS)
		plumb_cupti.ActivityFlushAll(force ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
	inside = false;
	pthread_mutex_unlock(&lock);
}

void
plumb_slot_flush(bool force)
{
	pthread_mutex_lock(&lock);
	flush(force);
}

void
plumb_slot_deliver(void)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PATIENCE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (!pthread_mutex_timedlock(&lock, &until))
		flush(true);
}

/* ---- taking back ---- */

void
plumb_slot_tend(void)
{
	static uint64_t looked;
	pthread_mutex_lock(&lock);
	inside = true;
	if (atomic_load(&owner) == GIVEN && program.done &&
	    plumb_clock_ns() - program.done_at > PAUSE_NS) {
		if (program.subscribed && !program.suspended) {
			plumb_cupti.Unsubscribe(program.real);
			program.suspended = true;
		}
		program.recorded = false;
		gap_ns += plumb_clock_ns() - gap_start;
		gap_start = 0;
		if (take_slot(&lost_why)) {
			lost = true;
			atomic_store(&owner, NOBODY);
		}
	}
	if (atomic_load(&owner) == OURS && plumb_clock_ns() - looked > MODULES_NS) {
		looked = plumb_clock_ns();
		watch_modules(false);
	}
	inside = false;
	pthread_mutex_unlock(&lock);
}

void
plumb_slot_tell(struct plumb_thread *thread, bool end)
{
	char text[160];
	pthread_mutex_lock(&lock);
	uint64_t more = given - given_told, refused = refusals - refusals_told;
	given_told = given;
	refusals_told = refusals;
	uint64_t gap = gap_ns;
	bool gone = lost;
	lost = false;
	pthread_mutex_unlock(&lock);
	if (more) {
		plumb_count(thread, PLUMB_SOURCE_CUPTI_SLOT, PLUMB_FATE_RECEIVED, more);
		plumb_count(thread, PLUMB_SOURCE_CUPTI_SLOT, PLUMB_FATE_SLOT_GIVEN, more);
	}
	if (gone)
		plumb_environment(thread, "gpu.cuda.off", lost_why.message);
	if (refused && refused == refusals)
		plumb_environment(thread, "gpu.cuda.kept",
		                  "plumb kept CUPTI (--keep-cupti), so the program's own profiler "
		                  "saw no GPU work");
	if (end && given) {
		snprintf(text, sizeof text,
		         "the program's own profiler used CUPTI %llu times, for %llu ms in total; "
		         "plumb recorded no GPU work then",
		         (unsigned long long)given, (unsigned long long)(gap / 1000000));
		plumb_environment(thread, "gpu.cuda.gap", text);
	}
}

/* ---- the program ---- */

bool
plumb_slot_watched(void)
{
	int now = atomic_load_explicit(&owner, memory_order_relaxed);
	return !inside && (now == OURS || now == GIVEN) && plumb_cuda_own_process();
}

bool
plumb_slot_inside(void)
{
	return inside;
}

void
plumb_slot_enter(void)
{
	inside = true;
}

void
plumb_slot_leave_call(void)
{
	inside = false;
}

/* Subscribes the program as it was before it was suspended. */
static void
resume_program(void)
{
	if (!program.suspended ||
	    plumb_cupti.Subscribe(&program.real, program.callback, program.data) != CUPTI_SUCCESS)
		return;
	program.suspended = false;
	for (unsigned i = 0; i < program.callback_count; i++) {
		CUpti_CallbackDomain domain = (CUpti_CallbackDomain)program.callbacks[i].domain;
		if (program.callbacks[i].id != EVERY)
			plumb_cupti.EnableCallback(1, program.real, domain,
			                           program.callbacks[i].id);
		else if (plumb_cupti.EnableDomain)
			plumb_cupti.EnableDomain(1, program.real, domain);
	}
}

bool
plumb_slot_program(void)
{
	bool refuse = false;
	pthread_mutex_lock(&lock);
	inside = true;
	if (atomic_load(&owner) == OURS && plumb_collector_options()->keep_cupti) {
		refusals++;
		refuse = true;
	} else if (atomic_load(&owner) == OURS) {
		release_slot(GIVEN);
		given++;
		gap_start = plumb_clock_ns();
		if (program.clock)
			plumb_cupti.ActivityRegisterTimestampCallback(program.clock);
		resume_program();
	}
	program.done = false;
	inside = false;
	pthread_mutex_unlock(&lock);
	return refuse;
}

static bool
records_enabled(void)
{
	return program.kinds[0] || program.kinds[1] || program.kinds[2] || program.kinds[3];
}

static void
mark_done(bool so)
{
	program.done = so;
	program.done_at = plumb_clock_ns();
}

void
plumb_slot_subscribed(CUpti_SubscriberHandle handle, CUpti_CallbackFunc callback, void *data)
{
	pthread_mutex_lock(&lock);
	if (handle) {
		program.subscribed = true;
		program.suspended = false;
		program.known = program.real = handle;
		program.callback = callback;
		program.data = data;
		program.callback_count = 0;
		program.too_many = false;
	} else { /* it failed */
		mark_done(!program.subscribed && !records_enabled());
	}
	pthread_mutex_unlock(&lock);
}

void
plumb_slot_unsubscribed(void)
{
	pthread_mutex_lock(&lock);
	program.subscribed = program.suspended = false;
	program.callback_count = 0;
	program.too_many = false;
	mark_done(true);
	memset(program.kinds, 0, sizeof program.kinds);
	pthread_mutex_unlock(&lock);
	plumb_cuda_wake();
}

void
plumb_slot_callbacks(bool enabled, uint32_t domain, uint32_t id)
{
	unsigned most = sizeof program.callbacks / sizeof *program.callbacks, i = 0;
	pthread_mutex_lock(&lock);
	while (i < program.callback_count && !(program.callbacks[i].domain == domain &&
	                                       (program.callbacks[i].id == id || id == EVERY)))
		i++;
	if (enabled && i == program.callback_count) {
		if (i < most) {
			program.callbacks[i].domain = domain;
			program.callbacks[i].id = id;
			program.callback_count++;
		} else {
			program.too_many = true;
		}
	} else if (!enabled && id == EVERY) {
		unsigned kept = 0;
		for (i = 0; i < program.callback_count; i++)
			if (program.callbacks[i].domain != domain)
				program.callbacks[kept++] = program.callbacks[i];
		program.callback_count = kept;
	} else if (!enabled && i < program.callback_count) {
		program.callbacks[i] = program.callbacks[--program.callback_count];
	}
	pthread_mutex_unlock(&lock);
}

/* Whether the program wants to be called for what it does, rather than for contexts alone. */
static bool
calls_enabled(void)
{
	for (unsigned i = 0; i < program.callback_count; i++)
		if (program.callbacks[i].domain != CUPTI_CB_DOMAIN_RESOURCE)
			return true;
	return program.too_many;
}

void
plumb_slot_kind(bool enabled, CUpti_ActivityKind kind)
{
	unsigned bit = (unsigned)kind;
	if (bit >= 64 * (sizeof program.kinds / sizeof *program.kinds))
		return;
	pthread_mutex_lock(&lock);
	if (enabled) {
		program.kinds[bit / 64] |= 1ull << bit % 64;
		program.recorded = true;
	} else {
		program.kinds[bit / 64] &= ~(1ull << bit % 64);
	}
	pthread_mutex_unlock(&lock);
}

void
plumb_slot_clock(CUpti_TimestampCallbackFunc clock)
{
	pthread_mutex_lock(&lock);
	program.clock = clock;
	pthread_mutex_unlock(&lock);
}

void
plumb_slot_flushed(void)
{
	pthread_mutex_lock(&lock);
	mark_done(program.recorded && !records_enabled() && !calls_enabled());
	pthread_mutex_unlock(&lock);
	plumb_cuda_wake();
}

bool
plumb_slot_ours(void)
{
	return atomic_load(&owner) == OURS;
}

bool
plumb_slot_forget(CUpti_SubscriberHandle handle)
{
	pthread_mutex_lock(&lock);
	bool suspended = program.subscribed && program.suspended && handle == program.known;
	if (suspended)
		program.subscribed = program.suspended = false;
	pthread_mutex_unlock(&lock);
	return suspended;
}

CUpti_SubscriberHandle
plumb_slot_handle(CUpti_SubscriberHandle handle)
{
	pthread_mutex_lock(&lock);
	if (program.subscribed && handle == program.known)
		handle = program.real;
	pthread_mutex_unlock(&lock);
	return handle;
}
