/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/event.h"

#include <pthread.h>
#include <string.h>

#include "collect/context.h"
#include "collect/shape.h"

PLUMB_HOT _Atomic uint32_t plumb_events;

/*
 * One for each that registered. A reader copies the pair and looks whether the word in front stayed
 * the same, so that nobody's function is called with somebody else's data.
 */
static struct {
	_Atomic uint32_t changes; /* odd while it is changed */
	_Atomic uint32_t kinds;   /* 0: free */
	_Atomic(plumb_monitor_callback) callback;
	_Atomic(void *) data;
} slots[PLUMB_MONITOR_CALLBACKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* registering only */

/* ---- who wants to know ---- */

static void
slot_set(size_t at, uint32_t kinds, plumb_monitor_callback callback, void *data)
{
	uint32_t changes = atomic_load(&slots[at].changes);
	atomic_store(&slots[at].changes, changes + 1);
	atomic_store(&slots[at].callback, callback);
	atomic_store(&slots[at].data, data);
	atomic_store(&slots[at].kinds, kinds);
	atomic_store(&slots[at].changes, changes + 2);
}

/* Under the lock. */
static void
sum_up(void)
{
	uint32_t wanted = 0;
	for (size_t i = 0; i < PLUMB_MONITOR_CALLBACKS; i++)
		wanted |= atomic_load(&slots[i].kinds);
	atomic_store(&plumb_events, wanted);
}

int
plumb_event_register(uint32_t kinds, plumb_monitor_callback callback, void *data)
{
	int handle = PLUMB_MONITOR_EFULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < PLUMB_MONITOR_CALLBACKS && handle < 0; i++)
		if (!atomic_load(&slots[i].kinds)) {
			slot_set(i, kinds, callback, data);
			handle = (int)i + 1;
		}
	sum_up();
	pthread_mutex_unlock(&lock);
	return handle;
}

int
plumb_event_unregister(int handle)
{
	if (handle < 1 || handle > PLUMB_MONITOR_CALLBACKS)
		return PLUMB_MONITOR_EARGUMENT;
	pthread_mutex_lock(&lock);
	bool known = atomic_load(&slots[handle - 1].kinds) != 0;
	slot_set((size_t)handle - 1, 0, NULL, NULL);
	sum_up();
	pthread_mutex_unlock(&lock);
	return known ? PLUMB_MONITOR_OK : PLUMB_MONITOR_EARGUMENT;
}

void
plumb_event_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* ---- telling ---- */

void
plumb_event_emit(struct plumb_thread *thread, plumb_id node, struct plumb_monitor_event *event)
{
	event->time_ns = plumb_clock_ns();
	event->thread = atomic_load_explicit(&thread->tid, memory_order_relaxed);
	thread->event_node = node;
	thread->in_event = true;
	for (size_t i = 0; i < PLUMB_MONITOR_CALLBACKS; i++) {
		uint32_t changes = atomic_load(&slots[i].changes);
		uint32_t kinds = atomic_load(&slots[i].kinds);
		plumb_monitor_callback callback = atomic_load(&slots[i].callback);
		void *data = atomic_load(&slots[i].data);
		if (changes & 1 || atomic_load(&slots[i].changes) != changes)
			continue; /* it registers or leaves at this moment */
		if (callback && kinds >> event->kind & 1)
			callback(event, data);
	}
	thread->in_event = false;
}

static const char compiled_prefix[] = "Torch-Compiled Region";

static uint32_t
kind_of(const struct plumb_operator *op)
{
	if (op->range)
		return PLUMB_MONITOR_RANGE;
	return op->name && !strncmp(op->name, compiled_prefix, sizeof compiled_prefix - 1)
	               ? PLUMB_MONITOR_COMPILED
	               : PLUMB_MONITOR_OPERATOR;
}

static const char *
text_of(struct plumb_thread *thread, plumb_id string)
{
	const struct plumb_record_string *record =
		string ? plumb_region_at(thread->arena.region, string) : NULL;
	return record ? (const char *)(record + 1) : "?";
}

/* Where the event of a frame is. The engine's own frame has no place yet: it is told at its
 * caller. */
static plumb_id
place_of(const struct plumb_operator_frame *frame)
{
	if (frame->node)
		return frame->node;
	return frame->base ? frame->base : PLUMB_LOST;
}

/* The text of the frame's inputs, which are the newest ones on the stack of shapes; NULL: not
 * known. */
static const char *
shapes_of(struct plumb_thread *thread, const struct plumb_operator_frame *frame)
{
	struct plumb_shapes *shapes = thread->shapes;
	if (!shapes || !frame->shape_bytes || shapes->used >= PLUMB_SHAPE_STACK)
		return NULL;
	shapes->stack[shapes->used] = '\0';
	return shapes->stack + frame->shape_at;
}

void
plumb_event_operator_begin(struct plumb_thread *thread, struct plumb_operator_frame *frame,
                           const struct plumb_operator *op)
{
	struct plumb_monitor_event event = PLUMB_EVENT(OPERATOR, BEGIN);
	frame->event = (uint8_t)kind_of(op);
	event.kind = frame->event;
	event.name = text_of(thread, frame->name);
	event.sequence = op->sequence;
	event.shapes = shapes_of(thread, frame);
	event.flags = op->backward || op->engine ? PLUMB_MONITOR_BACKWARD : 0;
	frame->event_flags = (uint8_t)event.flags;
	if (plumb_event_wanted(event.kind))
		plumb_event_emit(thread, place_of(frame), &event);
}

void
plumb_event_operator_end(struct plumb_thread *thread, struct plumb_operator_frame *frame)
{
	struct plumb_monitor_event event = PLUMB_EVENT(OPERATOR, END);
	event.kind = frame->event;
	event.name = text_of(thread, frame->name);
	event.flags = frame->event_flags;
	if (plumb_event_wanted(event.kind))
		plumb_event_emit(thread, place_of(frame), &event);
}
