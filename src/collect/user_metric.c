/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/user_metric.h"

#include "base/utf8.h"
#include "collect/context.h"

#define NAME_MAX_BYTES 119u

/*
 * The process's names. A thread that finds none claims a free entry; two that do so at once for one
 * name get two numbers, which settle takes for one metric.
 */
enum { FREE, WRITING, READY };
static struct {
	_Atomic int state;
	char name[NAME_MAX_BYTES + 1];
} known[PLUMB_USER_METRICS_MAX];

/* The number of a new metric, described in the thread's arena; 0: no room there, or no number
 * left. */
static uint32_t
claim_metric(struct plumb_thread *thread, const char *name, size_t bytes, const char *unit,
             enum plumb_fate *fate)
{
	for (uint32_t i = 0; i < PLUMB_USER_METRICS_MAX; i++) {
		int state = FREE;
		if (!atomic_compare_exchange_strong(&known[i].state, &state, WRITING))
			continue;
		plumb_id text = plumb_intern(thread, name, bytes);
		plumb_id unit_text = unit ? plumb_intern(thread, unit, strlen(unit)) : 0;
		struct plumb_record_metric *record = NULL;
		if (text)
			record = plumb_arena_append(&thread->arena, PLUMB_RECORD_METRIC,
			                            sizeof *record);
		if (!record) {
			*fate = thread->arena.fate;
			atomic_store(&known[i].state, FREE);
			return 0;
		}
		record->number = PLUMB_METRIC_USER + i;
		record->name = text;
		record->unit = unit_text;
		plumb_arena_commit(&thread->arena, record);
		memcpy(known[i].name, name, bytes);
		atomic_store_explicit(&known[i].state, READY, memory_order_release);
		return record->number;
	}
	*fate = PLUMB_FATE_OVERFLOWED;
	return 0;
}

static bool
is_named(uint32_t number, const char *name, size_t bytes)
{
	const char *text = known[number - PLUMB_METRIC_USER].name;
	return !strncmp(text, name, bytes) && !text[bytes];
}

/* The number of the metric NAME; 0: *FATE says why there is none. */
static uint32_t
number_of(struct plumb_thread *thread, const char *name, const char *unit, enum plumb_fate *fate)
{
	uintptr_t mixed = (uintptr_t)name >> 3 ^ (uintptr_t)name >> 9;
	struct plumb_metric_slot *slot = &thread->metrics[mixed % PLUMB_METRIC_SLOTS];
	size_t bytes = plumb_utf8_cut(name, NAME_MAX_BYTES);
	if (plumb_likely(slot->pointer == name && slot->number) &&
	    is_named(slot->number, name, bytes))
		return slot->number;
	uint32_t number = 0;
	for (uint32_t i = 0; i < PLUMB_USER_METRICS_MAX && !number; i++)
		if (atomic_load_explicit(&known[i].state, memory_order_acquire) == READY &&
		    is_named(PLUMB_METRIC_USER + i, name, bytes))
			number = PLUMB_METRIC_USER + i;
	if (!number)
		number = claim_metric(thread, name, bytes, unit, fate);
	*slot = (struct plumb_metric_slot){ name, number };
	return number;
}

void
plumb_user_metric(const char *name, int64_t value)
{
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_METRIC);
	if (!thread)
		return;
	enum plumb_fate fate = PLUMB_FATE_ATTRIBUTED;
	uint32_t number = number_of(thread, name && *name ? name : "?", NULL, &fate);
	plumb_count(thread, PLUMB_SOURCE_METRIC, PLUMB_FATE_RECEIVED, 1);
	if (number) {
		plumb_id node = plumb_context_current(thread);
		/* The least number stands for an unknown one. */
		plumb_observe(thread, node, number, thread->track,
		              value == INT64_MIN ? INT64_MIN + 1 : value);
		if (node == PLUMB_LOST)
			fate = thread->arena.fate;
	}
	plumb_count(thread, PLUMB_SOURCE_METRIC, fate, 1);
	plumb_leave(thread);
}

bool
plumb_user_metric_at(struct plumb_thread *thread, plumb_id node, plumb_id track, const char *name,
                     const char *unit, int64_t value)
{
	enum plumb_fate fate;
	uint32_t number = number_of(thread, name, unit, &fate);
	if (number)
		plumb_observe(thread, node, number, track, value);
	return number;
}

void
plumb_user_metrics_forked(void)
{
	for (uint32_t i = 0; i < PLUMB_USER_METRICS_MAX; i++) {
		memset(known[i].name, 0, sizeof known[i].name);
		atomic_store_explicit(&known[i].state, FREE, memory_order_relaxed);
	}
}
