/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/rank.h"
#include "base/secret.h"
#include "collect/clock.h"
#include "collect/comm/comm.h"
#include "collect/context.h"
#include "collect/event.h"
#include "collect/exec.h"
#include "collect/follow.h"
#include "collect/gpu/gpu.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/memory.h"
#include "collect/object.h"
#include "collect/range.h"
#include "collect/recording.h"
#include "collect/sampler.h"
#include "collect/span.h"
#include "collect/thread.h"
#include "collect/user_metric.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define DEFAULT_LIMIT (256ull << 20)
#define DEFAULT_FLUSH_MS 100
#define DEFAULT_NATIVE_CONTEXTS 16384

static struct plumb_collector_options options;
PLUMB_HOT unsigned plumb_layers;
PLUMB_HOT static struct plumb_region region;
static char region_path[PATH_MAX + 64];
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t empty_costs[PLUMB_CALLBACK_KINDS];

enum { OFF, RECORDING, OVER, REFUSED };
/*
 * The gate lies on a page of its own that the kernel wipes in a forked child, however it forked:
 * the child reads OFF, and the pid that began recording (kept elsewhere) is not its own.
 */
struct plumb_process_gate_page plumb_process_gate_page;
static _Atomic int *const state = &plumb_process_gate_page.gate.state;

static _Atomic pid_t owner; /* who records, or is about to, under begin_lock; 0: nobody yet */
#define RESETTING                                                                                  \
	((pid_t) - 1) /* a thread of a child that no fork handler saw is forgetting the parent */

static _Atomic bool ended;
static _Thread_local bool ending;

static pid_t
own_pid(void)
{
	return (pid_t)syscall(SYS_getpid); /* past any cache, right also after a raw clone */
}

/* ---- small helpers ---- */

size_t
plumb_read_file(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	if (fd >= 0) {
		ssize_t got;
		while (have + 1 < size && (got = read(fd, buffer + have, size - 1 - have)) > 0)
			have += (size_t)got;
		close(fd);
	}
	buffer[have] = '\0';
	return have;
}

static uint64_t
number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	if (!text || !*text)
		return otherwise;
	unsigned long long number = strtoull(text, &end, 10);
	return *end ? otherwise : number;
}

/* The variable NAME in TEXT of SIZE bytes; "" when it is not set or too long. */
static void
text_from(const char *name, char *text, size_t size)
{
	const char *value = getenv(name);
	if (value && strlen(value) < size)
		strcpy(text, value);
}

const struct plumb_collector_options *
plumb_collector_options(void)
{
	return &options;
}

void
plumb_process_choose_layers(void)
{
	unsigned layers = options.layers & ~(unsigned)PLUMB_LAYER_NATIVE_ALONE;
	unsigned asked = PLUMB_LAYER_NATIVE | PLUMB_LAYER_NATIVE_ALONE;
	if (options.layers & asked && !plumb_python_runs())
		layers |= asked;
	if (options.layers & PLUMB_LAYER_LEAN)
		layers |= PLUMB_LAYER_NATIVE;
	__atomic_store_n(&plumb_layers, layers, __ATOMIC_RELAXED);
}

void
plumb_process_leave_lean(void)
{
	options.layers &= ~(unsigned)PLUMB_LAYER_LEAN;
	plumb_process_choose_layers();
}

bool
plumb_recording(void)
{
	return atomic_load_explicit(state, memory_order_relaxed) == RECORDING;
}

struct plumb_region *
plumb_region_of_process(void)
{
	return &region;
}

void
plumb_process_lost(enum plumb_source source, enum plumb_fate fate)
{
	static _Atomic int newest = PLUMB_FATE_REGION_FULL;
	if (fate)
		atomic_store_explicit(&newest, fate, memory_order_relaxed);
	else
		fate = (enum plumb_fate)atomic_load_explicit(&newest, memory_order_relaxed);
	if (!region.header || !source)
		return;
	if (fate != PLUMB_FATE_NO_SPACE)
		fate = PLUMB_FATE_REGION_FULL;
	if (source == PLUMB_SOURCE_REGION) { /* settle adds up what it received */
		plumb_region_lost(&region, 0, fate, fate, 1);
		return;
	}
	plumb_region_lost(&region, source, PLUMB_FATE_RECEIVED, fate, 1);
	plumb_region_lost(&region, source, fate, fate, 1);
}

void
plumb_process_empty_costs(struct plumb_record_overhead *overhead)
{
	for (int i = 0; i < PLUMB_CALLBACK_KINDS; i++)
		overhead->kinds[i].empty_ns_x1000 = empty_costs[i];
}

void
plumb_process_set_empty_cost(enum plumb_callback_kind kind, uint64_t ns_x1000)
{
	empty_costs[kind] = ns_x1000;
}

/* ---- beginning ---- */

/* argv of this process as one line: spaces between, quoted where a shell would need it. */
static size_t
command_line(char *line, size_t size)
{
	static char raw[32768];
	size_t bytes = plumb_read_file("/proc/self/cmdline", raw, sizeof raw), used = 0;
	struct plumb_secret secret = { 0 };
	for (size_t i = 0; i < bytes && used + 8 < size;) {
		char *word = raw + i;
		size_t whole = strlen(word);
		plumb_secret_mask(&secret, word);
		size_t length = strlen(word);
		bool plain = length &&
		             strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		                          "0123456789_-+=./,:@%") == length;
		if (used)
			line[used++] = ' ';
		if (!plain)
			line[used++] = '\'';
		for (size_t k = 0; k < length && used + 6 < size; k++) {
			if (word[k] == '\'') {
				memcpy(line + used, "'\\'", 3);
				used += 3;
			}
			line[used++] = word[k];
		}
		if (!plain)
			line[used++] = '\'';
		i += whole + 1;
	}
	line[used] = '\0';
	return used;
}

static void
write_process(struct plumb_arena *arena)
{
	static const char *const ranks[] = PLUMB_RANK_VARIABLES;
	static const char *const local_ranks[] = PLUMB_LOCAL_RANK_VARIABLES;
	static char line[32768];
	struct utsname host;
	char executable[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", executable, sizeof executable);
	plumb_id command =
		number_from(PLUMB_ENV_COMMAND, 1)
			? plumb_arena_string(arena, line, command_line(line, sizeof line))
			: 0;
	plumb_id name =
		uname(&host) ? 0 : plumb_arena_string(arena, host.nodename, strlen(host.nodename));
	plumb_id path = length > 0 ? plumb_arena_string(arena, executable, (size_t)length) : 0;
	struct plumb_record_process *process =
		plumb_arena_append(arena, PLUMB_RECORD_PROCESS, sizeof *process);
	if (!process)
		return;
	process->pid = (uint32_t)own_pid();
	process->ppid = (uint32_t)getppid();
	process->rank = plumb_rank_from(ranks);
	process->local_rank = plumb_rank_from(local_ranks);
	process->command = command;
	process->host = name;
	process->executable = path;
	process->start_monotonic = region.header->start_monotonic;
	plumb_arena_commit(arena, process);
}

static void
write_clock(struct plumb_arena *arena)
{
	struct plumb_record_clock *clock =
		plumb_arena_append(arena, PLUMB_RECORD_CLOCK, sizeof *clock);
	if (!clock)
		return;
	struct timespec real;
	uint64_t before = plumb_clock_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t after = plumb_clock_ns();
	clock->monotonic = before + (after - before) / 2;
	clock->realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	clock->uncertainty = after - before;
	plumb_arena_commit(arena, clock);
}

/* An arena for what belongs to the process rather than to a thread; used under begin_lock and at
 * the end only. */
static struct plumb_arena process_arena;

/* Leaves the reason where `plumb run` finds it: a process must not be missing in silence. */
static void
leave_word(const struct plumb_error *error)
{
	char path[PATH_MAX + 64];
	snprintf(path, sizeof path, "%s/%d" PLUMB_REFUSAL_SUFFIX, options.folder, (int)own_pid());
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	ssize_t written = write(fd, error->message, strlen(error->message));
	(void)written;
	close(fd);
}

static bool
make_region(void)
{
	struct plumb_error error;
	uint64_t now = plumb_clock_ns();
	snprintf(region_path, sizeof region_path, "%s/%d-%llu" PLUMB_REGION_SUFFIX, options.folder,
	         (int)own_pid(), (unsigned long long)now);
	if (!options.folder[0]) { /* for another tool alone (monitor.h): nothing is written */
		if (plumb_region_create_private(&region, options.limit, &error))
			return false;
	} else if (plumb_region_create(&region, region_path, options.limit, &error)) {
		if (faccessat(AT_FDCWD, options.folder, W_OK | X_OK, AT_EACCESS) &&
		    errno == EACCES) {
			/* It became another user: no word can be left there either. */
			atomic_fetch_add(&plumb_control->unreachable, 1);
			atomic_store(&plumb_control->user, (uint32_t)geteuid());
		} else {
			leave_word(&error);
		}
		return false;
	}
	plumb_arena_init(&process_arena, &region);
	write_process(&process_arena);
	write_clock(&process_arena);
	if (options.traffic)
		plumb_comm_describe_plugin(&process_arena);
	if (options.traffic == PLUMB_TRAFFIC_CALLS) /* the others: once their tool works */
		plumb_arena_environment(&process_arena, PLUMB_TRAFFIC_MODE,
		                        plumb_traffic_mode_names[options.traffic]);
	plumb_framework_describe_python(&process_arena);
	if (plumb_gpu_inherited())
		plumb_arena_environment(
			&process_arena, "gpu.forked",
			"forked after its parent had initialised the GPU driver; the driver does "
			"not work in such a process");
	return true;
}

/* Under begin_lock. */
static void
begin_process(void)
{
	pid_t self = own_pid();
	atomic_store_explicit(&owner, self, memory_order_release);
	if (options.folder[0] && !plumb_follow_process()) {
		atomic_fetch_add(&plumb_control->not_followed, 1);
		atomic_store_explicit(state, REFUSED, memory_order_release);
		return;
	}
	plumb_process_choose_layers();
	bool made = make_region();
	if (made && !plumb_clock_cost) /* a forked child knows its parent's */
		plumb_clock_calibrate();
	if (own_pid() != self) {
		/* A signal's handler forked meanwhile, and this is the child: the region is its
		 * parent's. */
		atomic_fetch_add(&plumb_control->forked, 1);
		made = false;
	}
	if (made)
		plumb_trace_begin(&process_arena);
	if (made)
		atomic_store_explicit(&plumb_process_gate_page.gate.word, &plumb_control->word,
		                      memory_order_release);
	atomic_store_explicit(state, made ? RECORDING : REFUSED, memory_order_release);
}

static void forget_parent(void);

bool
plumb_process_begin(void)
{
	int now = atomic_load_explicit(state, memory_order_acquire);
	if (now != OFF || !plumb_process_wanted())
		return now == RECORDING;
	pid_t by = atomic_load_explicit(&owner, memory_order_acquire);
	if (by && by != own_pid()) {
		/* A child that no fork handler saw (a bare clone). */
		if (by == RESETTING || !atomic_compare_exchange_strong(&owner, &by, RESETTING))
			return false;
		forget_parent();
	}
	pthread_mutex_lock(&begin_lock);
	if (atomic_load_explicit(state, memory_order_relaxed) == OFF)
		begin_process();
	pthread_mutex_unlock(&begin_lock);
	return plumb_recording();
}

bool
plumb_process_may_begin(void)
{
	if (pthread_mutex_trylock(&begin_lock))
		return false;
	pthread_mutex_unlock(&begin_lock);
	return true;
}

/* ---- end ---- */

/* Another thread is ending the recording: leaving now would cut it short. Two seconds at most. */
static void
await_end(void)
{
	const struct timespec step = { 0, 5000000 };
	for (int i = 0; i < 400 && plumb_recording(); i++)
		nanosleep(&step, NULL);
}

/* Flushes, writes what is known at the end only, and closes the region for writing. The first call
 * does it, later ones return at once. Does nothing in a child that forked. */
static void
end_recording(void)
{
	if (ending)
		return;
	/* First of all, as in plumb_enter. A child of vfork has this very variable. */
	ending = true;
	plumb_sampler_end();
	if (!plumb_recording() || owner != own_pid()) {
		ending = false;
		return;
	}
	if (atomic_exchange(&ended, true)) {
		await_end();
		return;
	}
	int saved = errno;
	plumb_gpu_stop();
	struct plumb_thread *self = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (self) {
		plumb_ranges_finish(self);
		plumb_threads_finish(self);
		plumb_leave(self);
	}
	write_clock(&process_arena);
	plumb_trace_end(&process_arena);
	atomic_store_explicit(&plumb_process_gate_page.gate.word, NULL, memory_order_release);
	atomic_store_explicit(state, OVER, memory_order_release);
	atomic_store_explicit(&region.header->end_monotonic, plumb_clock_ns(),
	                      memory_order_relaxed);
	atomic_store_explicit(&region.header->state, PLUMB_REGION_ENDED, memory_order_release);
	ending = false;
	errno = saved;
}

/* Programs that leave without exit(): the last records are flushed all the same. */
PLUMB_EXPORT void _exit(int status) __attribute__((noreturn));
PLUMB_EXPORT void _Exit(int status) __attribute__((noreturn));

void
_exit(int status)
{
	end_recording();
	for (;;)
		syscall(SYS_exit_group, status);
}

void
_Exit(int status)
{
	_exit(status);
}

/* ---- loading ---- */

static _Atomic bool monitoring; /* another tool uses us without `plumb run` */

bool
plumb_process_wanted(void)
{
	return options.folder[0] || atomic_load_explicit(&monitoring, memory_order_acquire);
}

static void
wipe_on_fork(void)
{
	/* Linux before 4.14 has none of it: then the fork handler alone. */
	(void)madvise(&plumb_process_gate_page, sizeof plumb_process_gate_page, MADV_WIPEONFORK);
}

/* Takes the options from the environment. False: it names no folder, so nothing is to be
 * recorded. */
static bool
load_options(void)
{
	const char *folder = getenv(PLUMB_ENV_FOLDER);
	if (!folder || folder[0] != '/' || strlen(folder) >= sizeof options.folder)
		return false;
	wipe_on_fork();
	memset(&options, 0, sizeof options);
	options.limit = number_from(PLUMB_ENV_LIMIT, DEFAULT_LIMIT);
	options.flush_ms = (unsigned)number_from(PLUMB_ENV_FLUSH, DEFAULT_FLUSH_MS);
	const struct plumb_gpu_mode_info *mode =
		plumb_gpu_mode_of((unsigned)number_from(PLUMB_ENV_GPU, PLUMB_GPU_ACTIVITY));
	options.gpu = mode ? mode->mode : PLUMB_GPU_OFF;
	options.keep_cupti = number_from(PLUMB_ENV_KEEP_CUPTI, 0) != 0;
	options.layers = (unsigned)number_from(PLUMB_ENV_LAYERS, PLUMB_LAYERS_DEFAULT);
	options.cpu_hz = (unsigned)number_from(PLUMB_ENV_CPU, 0);
	options.replays = number_from(PLUMB_ENV_REPLAYS, 0) != 0;
	options.stalls = (unsigned)number_from(PLUMB_ENV_STALLS, 0);
	if (options.stalls < PLUMB_STALLS_LEAST || options.stalls > PLUMB_STALLS_MOST)
		options.stalls = 0;
	options.stalls_mode = number_from(PLUMB_ENV_STALLS_MODE, PLUMB_STALLS_CONTINUOUS) ==
	                                      PLUMB_STALLS_SERIALISED
	                              ? PLUMB_STALLS_SERIALISED
	                              : PLUMB_STALLS_CONTINUOUS;
	const char *traffic = getenv(PLUMB_ENV_TRAFFIC);
	if (!traffic || !plumb_traffic_parse(traffic, &options.traffic, &options.traffic_rate))
		options.traffic = 0;
	options.traffic_own = number_from(PLUMB_ENV_TRAFFIC_OWN, 0) != 0;
	options.memory = number_from(PLUMB_ENV_MEMORY, 0) != 0;
	options.shapes = number_from(PLUMB_ENV_SHAPES, 0) != 0;
	options.no_memo = number_from(PLUMB_ENV_MEMO, 1) == 0;
	options.sample_traced = number_from(PLUMB_ENV_TRACED, 0) != 0;
	options.native_contexts =
		(unsigned)number_from(PLUMB_ENV_CONTEXTS, DEFAULT_NATIVE_CONTEXTS);
	options.paused = number_from(PLUMB_ENV_PAUSED, 0) != 0;
	text_from(PLUMB_ENV_EVENTS, options.events, sizeof options.events);
	text_from(PLUMB_ENV_TRACE, options.trace, sizeof options.trace);
	text_from(PLUMB_ENV_FOLLOW, options.follow, sizeof options.follow);
	text_from(PLUMB_ENV_TRAFFIC_KERNELS, options.traffic_kernels,
	          sizeof options.traffic_kernels);
	text_from(PLUMB_ENV_COUNTERS, options.counters, sizeof options.counters);
	text_from(PLUMB_ENV_COUNTERS_KERNELS, options.counters_kernels,
	          sizeof options.counters_kernels);
	options.counters_launches =
		(unsigned)number_from(PLUMB_ENV_COUNTERS_LAUNCHES, PLUMB_COUNTERS_LAUNCHES_DEFAULT);
	options.counters_cost =
		(unsigned)number_from(PLUMB_ENV_COUNTERS_COST, PLUMB_COUNTERS_COST_DEFAULT);
	text_from(PLUMB_ENV_COUNTERS_SERIES, options.counters_series,
	          sizeof options.counters_series);
	options.counters_every =
		(unsigned)number_from(PLUMB_ENV_COUNTERS_EVERY, PLUMB_SERIES_US_DEFAULT);
	if (options.counters_every < PLUMB_SERIES_US_LEAST ||
	    options.counters_every > PLUMB_SERIES_US_MOST)
		options.counters_every = PLUMB_SERIES_US_DEFAULT;
	text_from(PLUMB_ENV_TRAFFIC_OBJECTS, options.traffic_objects,
	          sizeof options.traffic_objects);
	strcpy(options.folder, folder);
	plumb_objects_start();
	plumb_control_attach(folder, options.paused);
	plumb_follow_load(options.follow);
	plumb_python_look();
	plumb_process_choose_layers();
	return true;
}

static __attribute__((constructor)) void
process_load(void)
{
	if (!load_options())
		return;
	plumb_exec_load(options.folder);
	plumb_memory_start();
	plumb_sampler_begin();
}

int
plumb_process_monitor(const struct plumb_collector_options *wanted)
{
	int result = 0;
	pthread_mutex_lock(&begin_lock);
	if (atomic_load_explicit(state, memory_order_relaxed) == OVER ||
	    atomic_load_explicit(state, memory_order_relaxed) == REFUSED) {
		result = -1;
	} else if (!plumb_process_wanted()) {
		options = *wanted;
		options.folder[0] = '\0';
		if (!options.limit)
			options.limit = DEFAULT_LIMIT;
		options.flush_ms = DEFAULT_FLUSH_MS;
		plumb_process_choose_layers();
		wipe_on_fork();
		atomic_store_explicit(&monitoring, true, memory_order_release);
	}
	pthread_mutex_unlock(&begin_lock);
	return result;
}

/* ---- forks ---- */

PLUMB_HOT uint32_t plumb_generation;

/*
 * The parent's region is left alone: it is shared memory. Where a signal's handler forked in the
 * middle of one of our own callbacks, that callback goes on in the child, so the mapping stays and
 * becomes a private copy; else it goes, since it would keep the parent's file on the disk.
 */
static void
leave_region(void)
{
	struct plumb_region_header *header = region.header;
	if (!header)
		return;
	if (!plumb_thread_inside() && !ending) {
		plumb_region_close(&region);
		return;
	}
	if (!options.folder[0])
		return; /* no file: the child's copy is its own already */
	size_t size = header->size;
	int fd = open(region_path, O_RDONLY | O_CLOEXEC), flags = MAP_PRIVATE | MAP_FIXED;
	if (fd < 0 || mmap(header, size, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED)
		(void)mmap(header, size, PROT_READ | PROT_WRITE,
		           flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fd >= 0)
		close(fd);
}

/* What forked children and second recordings share: nobody records, and nothing is known. Each part
 * of the collector that keeps ids has its line here. */
static void
forget_region(void)
{
	plumb_forward_forked();
	plumb_backward_forked();
	plumb_native_forked();
	plumb_memory_forget();
	plumb_ranges_forked();
	plumb_user_metrics_forked();
	plumb_comm_forget();
	atomic_store(&ended, false);
	atomic_store_explicit(&plumb_process_gate_page.gate.word, NULL, memory_order_relaxed);
	atomic_store_explicit(state, OFF, memory_order_relaxed);
	atomic_store_explicit(&owner, 0, memory_order_release);
}

/*
 * A forked child starts afresh: nothing that is left of its parent is used or written, and its
 * first operator, GPU call or sample makes a region of its own. It has one thread, and locks that
 * another one held stay locked in it. Each part of the collector that keeps threads or locks has
 * its line here.
 */
static void
forget_parent(void)
{
	int saved = errno;
	leave_region();
	plumb_generation++;
	plumb_threads_forked();
	plumb_python_forked();
	plumb_gpu_forked();
	plumb_event_forked();
	plumb_comm_forked();
	plumb_objects_renew(true);
	plumb_sampler_forked();
	pthread_mutex_init(&begin_lock, NULL);
	forget_region();
	errno = saved;
}

int
plumb_process_session(void)
{
	int now = atomic_load_explicit(state, memory_order_acquire);
	if (now == RECORDING || (now == OFF && plumb_process_wanted()))
		return 1;
	if (now != OFF) {
		/* No thread may hold an id of the old region when the new one comes. */
		if (!plumb_threads_quiesce() || !plumb_gpu_renew())
			return 2;
		plumb_region_close(&region);
		plumb_generation++;
		plumb_objects_renew(false);
		plumb_threads_renew();
		forget_region();
	}
	if (!load_options())
		return 2;
	if (!plumb_process_begin()) {
		options.folder[0] = '\0';
		return 2;
	}
	return 0;
}

void
plumb_process_session_end(void)
{
	end_recording();
	options.folder[0] = '\0';
}

static void
forked_child(void)
{
	if (plumb_process_wanted() || atomic_load(state) != OFF)
		forget_parent();
}

static __attribute__((constructor)) void
process_watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

static __attribute__((destructor)) void
process_unload(void)
{
	end_recording();
}
