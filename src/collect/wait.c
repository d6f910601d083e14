/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/wait.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/clock.h"
#include "collect/follow.h"
#include "collect/monitor/python.h"
#include "collect/process.h"

enum { LONG_ENOUGH = 100000 }; /* ns */

PLUMB_HOT bool plumb_waits;

/* Tells `plumb run` where the thread is. PLUMB_LOST: where its waiting is measured anyhow. */
static void
publish_place(struct plumb_thread *thread, plumb_id node)
{
	atomic_store_explicit(&thread->record->current, node, memory_order_relaxed);
}

/* The sum of the first two numbers in TEXT. */
static uint64_t
sum_of_two(const char *text)
{
	uint64_t sum = 0, number = 0;
	for (int left = 2; left && *text; text++) {
		if (*text >= '0' && *text <= '9') {
			number = number * 10 + (uint64_t)(*text - '0');
			continue;
		}
		sum += number;
		number = 0;
		left--;
	}
	return sum;
}

/* How long the calling thread has computed or been ready to, by the kernel's account; 0: unknown.
 * By bare system calls: the C library's would let the thread be cancelled here. */
static uint64_t
awake_now(void)
{
	char text[128];
	long fd =
		syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	long got = syscall(SYS_read, fd, text, sizeof text - 1);
	syscall(SYS_close, fd);
	text[got > 0 ? got : 0] = '\0';
	return sum_of_two(text);
}

void
plumb_wait_tell_end(struct plumb_thread *thread)
{
	if (plumb_waits)
		thread->record->awake_end = awake_now();
}

/* Tells other processes where the calling thread's Python frames are. */
static void
publish_python(struct plumb_thread *thread)
{
	int minor;
	struct plumb_record_thread *record = thread->record;
	bool shown = plumb_layers & PLUMB_LAYER_PYTHON;
	const char *state = shown ? plumb_python_state(&minor) : NULL;
	if (state && !plumb_python_publish(&thread->arena.region->header->python))
		state = NULL;
	record->self = (uint64_t)pthread_self();
	atomic_store_explicit(&record->python, (uintptr_t)state, memory_order_release);
}

void
plumb_wait_tell_where(struct plumb_thread *thread)
{
	struct plumb_record_thread *record = thread->record;
	if (!record->self) {
		record->awake = awake_now();
		if (record->awake)
			atomic_store_explicit(&record->awake_at, plumb_clock_ns(),
			                      memory_order_release);
	}
	publish_python(thread);
}

void
plumb_wait_tell_main(struct plumb_thread *thread)
{
	if (!plumb_waits && plumb_python_ready() && thread->record->tid == (uint32_t)getpid())
		publish_python(thread);
}

/* May the calling thread begin the recording of its process, only to be looked at from outside? */
static bool
begins_main(void)
{
	const struct plumb_collector_options *options = plumb_collector_options();
	return (plumb_layers & PLUMB_LAYER_PYTHON) && options->folder[0] && !options->cpu_hz &&
	       plumb_python_ready() && syscall(SYS_gettid) == getpid() && plumb_follow_process();
}

void
plumb_wait_met_python(void)
{
	if (plumb_waits ? !plumb_thread_get() : !begins_main())
		return;
	bool first = !plumb_recording();
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_SAMPLE);
	if (!thread)
		return;
	if (plumb_waits) {
		plumb_wait_tell_where(thread);
	} else {
		thread->arena.region->header->for_looks = first;
		plumb_wait_tell_main(thread);
	}
	plumb_leave(thread);
}

void
plumb_wait_leave_out(struct plumb_thread *thread)
{
	thread->record->head.flags |= PLUMB_THREAD_OWN;
}

/* What calls at NODE took on average so far, ns; 0 for none. */
static double
mean_duration(struct plumb_thread *thread, plumb_id node)
{
	if (!node || node == PLUMB_LOST)
		return 0;
	const struct plumb_record_node *record = plumb_region_at(thread->arena.region, node);
	const struct plumb_record_value *value;
	for (plumb_id id = record->first_value; id; id = value->next) {
		value = plumb_region_at(thread->arena.region, id);
		if (value->metric == PLUMB_METRIC_OP_DURATION && value->track == thread->track)
			return value->mean;
	}
	return 0;
}

static void
observe_wait(struct plumb_thread *thread, plumb_id node, uint64_t ns)
{
	_Atomic uint64_t *told = &thread->record->waited;
	atomic_store_explicit(told, atomic_load_explicit(told, memory_order_relaxed) + ns,
	                      memory_order_relaxed);
	thread->waited += ns;
	plumb_observe(thread, node, PLUMB_METRIC_WAIT_TIME, thread->track, (int64_t)ns);
}

void
plumb_wait_enter(struct plumb_thread *thread, struct plumb_operator_frame *frame)
{
	frame->cpu = 0;
	if (plumb_unlikely(!thread->record->self))
		plumb_wait_tell_where(thread);
	if (thread->operators > 1) {
		if (!thread->stack[1].cpu)
			publish_place(thread, frame->node);
		return;
	}
	/* In a range the line counts, which is found from outside. */
	if (frame->range || mean_duration(thread, frame->node) < LONG_ENOUGH) {
		publish_place(thread, frame->node);
		return;
	}
	publish_place(thread, PLUMB_LOST);
	frame->waited = thread->waited;
	frame->cpu = plumb_cpu_now();
}

void
plumb_wait_exit(struct plumb_thread *thread, const struct plumb_operator_frame *frame,
                plumb_id node, uint64_t duration)
{
	if (frame->cpu) {
		uint64_t spent = plumb_cpu_now() - frame->cpu + (thread->waited - frame->waited);
		if (duration > spent)
			observe_wait(thread, node, duration - spent);
	}
	plumb_wait_settle(thread);
}

void
plumb_wait_settle(struct plumb_thread *thread)
{
	if (!thread->operators)
		publish_place(thread, 0);
	else if (!thread->stack[1].cpu)
		publish_place(thread, thread->stack[thread->operators].node);
}

uint64_t
plumb_wait_begin(struct plumb_thread *thread)
{
	if (!plumb_waits)
		return 0;
	if (plumb_unlikely(!thread->record->self))
		plumb_wait_tell_where(thread);
	publish_place(thread, PLUMB_LOST);
	return plumb_cpu_now();
}

void
plumb_wait_end(struct plumb_thread *thread, plumb_id node, uint64_t begin, uint64_t wall)
{
	uint64_t spent = plumb_cpu_now() - begin;
	if (node && wall > spent)
		observe_wait(thread, node, wall - spent);
	plumb_wait_settle(thread);
}
