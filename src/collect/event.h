/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells other tools what happens in the program (include/plumb/monitor.h). Code that notices
 * something first asks whether anybody wants to know, which costs one load and a branch. Only then
 * does it fill in an event:
 *
 *	if (plumb_event_wanted(PLUMB_MONITOR_TENSOR_ALLOC)) {
 *		struct plumb_monitor_event event = PLUMB_EVENT(TENSOR_ALLOC, AT);
 *		event.name = "cuda";
 *		event.device = index;
 *		event.address = (uintptr_t)pointer;
 *		event.bytes = bytes;
 *		plumb_event_emit(thread, 0, &event);
 *	}
 */
#ifndef PLUMB_COLLECT_EVENT_H
#define PLUMB_COLLECT_EVENT_H

#include <plumb/monitor.h>

#include "collect/collector.h"

extern _Atomic uint32_t plumb_events; /* kinds that somebody registered for */

static inline bool
plumb_event_wanted(enum plumb_monitor_kind kind)
{
	return plumb_unlikely(atomic_load_explicit(&plumb_events, memory_order_relaxed) >> kind &
	                      1);
}

/* An event where only the kind and the phase are known yet. */
#define PLUMB_EVENT(kind_, phase_)                                                                 \
	{ .size = sizeof(struct plumb_monitor_event),                                              \
	  .kind = PLUMB_MONITOR_##kind_,                                                           \
	  .phase = PLUMB_MONITOR_##phase_,                                                         \
	  .sequence = -1,                                                                          \
	  .address = PLUMB_MONITOR_UNKNOWN,                                                        \
	  .bytes = PLUMB_MONITOR_UNKNOWN,                                                          \
	  .device = -1 }

/*
 * Fills in time and thread, and calls everybody who registered for the event's kind. Call it
 * between plumb_enter and plumb_leave. NODE is the event's own context. 0: the current context,
 * which plumb looks up only if somebody asks for the path.
 */
void
plumb_event_emit(struct plumb_thread *thread, plumb_id node, struct plumb_monitor_event *event);

/* These work as monitor.h describes. */
int plumb_event_register(uint32_t kinds, plumb_monitor_callback callback, void *data);
int plumb_event_unregister(int handle);
/* For a forked child: registrations stay, and a lock that another thread held becomes free. */
void plumb_event_forked(void);

/* An operator, range or compiled region begins or ends; for context.c. */
#define PLUMB_EVENTS_OF_OPERATORS                                                                  \
	(1u << PLUMB_MONITOR_OPERATOR | 1u << PLUMB_MONITOR_RANGE | 1u << PLUMB_MONITOR_COMPILED)
struct plumb_operator;
struct plumb_operator_frame;
void plumb_event_operator_begin(struct plumb_thread *thread, struct plumb_operator_frame *frame,
                                const struct plumb_operator *op);
void plumb_event_operator_end(struct plumb_thread *thread, struct plumb_operator_frame *frame);

static inline bool
plumb_event_operators_wanted(void)
{
	return plumb_unlikely(atomic_load_explicit(&plumb_events, memory_order_relaxed) &
	                      PLUMB_EVENTS_OF_OPERATORS);
}

#endif
