/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/task.h"

#include "collect/clock.h"
#include "collect/context.h"
#include "collect/wait.h"

#define HEADS 4096u /* a power of two */

/* What a task has open while others have their turn. */
struct slot {
	uint64_t key;   /* 0: free */
	uint64_t since; /* ticks: when it was parked */
	uint32_t next;  /* index of the next slot of its hash, or of the next free one; 0: none */
	uint32_t frames, ranges;
	uint32_t outside;                /* Python frames that were outside the task */
	uint32_t python_from, python_to; /* entries [python_from … python_to) of the cached stack */
	struct plumb_operator_frame frame[PLUMB_TASK_FRAMES];
	struct plumb_open_range range[PLUMB_TASK_FRAMES];
	struct plumb_python_entry entry[PLUMB_TASK_PYTHON];
	struct plumb_python_identity identity[PLUMB_TASK_PYTHON];
};

struct plumb_tasks {
	uint32_t free, made; /* slots [1 … made] */
	uint32_t heads[HEADS];
	struct slot slots[PLUMB_TASKS_MAX + 1];
};

/* ---- slots ---- */

static uint32_t *
head_of(struct plumb_tasks *tasks, uint64_t key)
{
	return &tasks->heads[key * 0x9e3779b97f4a7c15u >> 52];
}
_Static_assert(HEADS == 1u << (64 - 52), "as many as the hash has");

static struct slot *
slot_make(struct plumb_thread *thread, uint64_t key)
{
	if (!thread->tasks)
		thread->tasks = plumb_map(sizeof *thread->tasks, true);
	struct plumb_tasks *tasks = thread->tasks;
	if (!tasks)
		return NULL;
	uint32_t index = tasks->free;
	if (index)
		tasks->free = tasks->slots[index].next;
	else if (tasks->made < PLUMB_TASKS_MAX)
		index = ++tasks->made;
	else
		return NULL;
	struct slot *slot = &tasks->slots[index];
	uint32_t *head = head_of(tasks, key);
	slot->key = key;
	slot->next = *head;
	*head = index;
	thread->parked++;
	return slot;
}

static struct slot *
slot_find(struct plumb_tasks *tasks, uint64_t key)
{
	uint32_t index = tasks ? *head_of(tasks, key) : 0;
	while (index && tasks->slots[index].key != key)
		index = tasks->slots[index].next;
	return index ? &tasks->slots[index] : NULL;
}

static void
slot_free(struct plumb_thread *thread, struct slot *slot)
{
	struct plumb_tasks *tasks = thread->tasks;
	uint32_t index = (uint32_t)(slot - tasks->slots), *at = head_of(tasks, slot->key);
	while (*at != index)
		at = &tasks->slots[*at].next;
	*at = slot->next;
	slot->key = 0;
	slot->frames = slot->ranges = 0;
	slot->next = tasks->free;
	tasks->free = index;
	thread->parked--;
}

/* ---- parking ---- */

/* The cached Python stack around the frames: what is outside of a range is told by it
 * (context.c). */
static void
park_python(struct plumb_thread *thread, struct slot *slot)
{
	uint32_t to = slot->outside;
	for (uint32_t i = 0; i < slot->frames; i++)
		if (slot->frame[i].python_depth > to)
			to = slot->frame[i].python_depth;
	uint32_t from = to > PLUMB_TASK_PYTHON ? to - PLUMB_TASK_PYTHON : 0;
	if (from < slot->outside)
		from = slot->outside;
	slot->python_from = from;
	slot->python_to = to;
	memcpy(slot->entry, &thread->python[from], (to - from) * sizeof *slot->entry);
	memcpy(slot->identity, &thread->identities[from], (to - from) * sizeof *slot->identity);
}

/* Takes the frames above OPERATORS and the ranges above RANGES off their stacks. OUTSIDE: the
 * Python frames that are not the task's. */
static void
park_frames(struct plumb_thread *thread, uint64_t key, uint32_t operators, uint32_t ranges,
            uint32_t outside)
{
	uint32_t frames = thread->operators - operators;
	uint32_t open = thread->ranges_open - ranges;
	struct slot *slot = NULL;
	if (frames <= PLUMB_TASK_FRAMES && open <= PLUMB_TASK_FRAMES)
		slot = slot_make(thread, key);
	if (!slot) { /* they stay open for everybody */
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED, frames);
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_INTERLEAVED, frames);
		return;
	}
	slot->frames = frames;
	slot->ranges = open;
	slot->outside = outside;
	slot->since = plumb_ticks();
	memcpy(slot->frame, &thread->stack[operators + 1], frames * sizeof *slot->frame);
	memcpy(slot->range, &thread->ranges[ranges], open * sizeof *slot->range);
	park_python(thread, slot);
	uint32_t mark = PLUMB_TICKET_PARKED | (uint32_t)(slot - thread->tasks->slots);
	for (uint32_t i = 0; i < frames; i++) {
		slot->frame[i].cpu = 0; /* others compute and wait meanwhile */
		thread->tickets[slot->frame[i].ticket].depth = mark;
	}
	thread->operators = operators;
	thread->ranges_open = ranges;
	if (plumb_unlikely(plumb_waits))
		plumb_wait_settle(thread);
}

/* ---- coming back ---- */

static void
restore_python(struct plumb_thread *thread, const struct slot *slot, uint32_t from)
{
	uint32_t count = slot->python_to - slot->python_from;
	if (from + count > PLUMB_PYTHON_MAX)
		return;
	memcpy(&thread->python[from], slot->entry, count * sizeof *slot->entry);
	memcpy(&thread->identities[from], slot->identity, count * sizeof *slot->identity);
}

/* FRAME was parked for AWAY ns, and the Python frames outside of its task are MORE than they
 * were. */
static void
restore_frame(struct plumb_thread *thread, struct plumb_operator_frame *frame,
              const struct slot *slot, uint64_t away, int64_t more)
{
	const struct plumb_operator_frame *outer =
		thread->operators ? &thread->stack[thread->operators] : NULL;
	frame->away += away;
	if (frame->python_depth > slot->outside)
		frame->python_depth = (uint32_t)(frame->python_depth + more);
	if (frame->module > slot->outside)
		frame->module = 0;
	if (frame->range) {
		frame->python_top = outer ? outer->python_top : NULL;
		frame->python_floor = outer ? outer->python_floor : 0;
	}
	thread->stack[++thread->operators] = *frame;
	thread->tickets[frame->ticket].depth = thread->operators;
}

/* Puts what the task has open on top of what is open now. OUTSIDE as in `park_frames`. */
static void
restore_task(struct plumb_thread *thread, struct slot *slot, uint32_t outside)
{
	uint64_t away = plumb_ticks_between(slot->since, plumb_ticks());
	int64_t more = (int64_t)outside - slot->outside;
	if (thread->operators + slot->frames > PLUMB_OPERATORS_MAX ||
	    thread->ranges_open + slot->ranges > PLUMB_RANGES_MAX)
		return; /* it stays parked; its ends are told all the same */
	restore_python(thread, slot, (uint32_t)(slot->python_from + more));
	for (uint32_t i = 0; i < slot->frames; i++)
		restore_frame(thread, &slot->frame[i], slot, away, more);
	memcpy(&thread->ranges[thread->ranges_open], slot->range,
	       slot->ranges * sizeof *slot->range);
	thread->ranges_open += slot->ranges;
	slot_free(thread, slot);
	if (plumb_unlikely(plumb_waits))
		plumb_wait_settle(thread);
}

/* ---- turns of coroutines ---- */

static __attribute__((noinline)) void
begin_slowly(uint64_t key)
{
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct slot *slot = thread ? slot_find(thread->tasks, key) : NULL;
	if (slot)
		restore_task(thread, slot, plumb_python_refresh(thread));
	if (thread)
		plumb_leave(thread);
}

void
plumb_task_begin(struct plumb_task_turn *turn, uint64_t key)
{
	struct plumb_thread *thread = plumb_thread_get();
	*turn = (struct plumb_task_turn){ .thread = thread };
	if (!thread)
		return;
	turn->operators = thread->operators;
	turn->ranges = thread->ranges_open;
	if (plumb_unlikely(thread->parked))
		begin_slowly(key);
}

static __attribute__((noinline)) void
end_slowly(const struct plumb_task_turn *turn, uint64_t key)
{
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_EXIT);
	if (!thread)
		return;
	if (thread->operators >= turn->operators && thread->ranges_open >= turn->ranges)
		park_frames(thread, key, turn->operators, turn->ranges,
		            plumb_python_refresh(thread));
	plumb_leave(thread);
}

void
plumb_task_end(const struct plumb_task_turn *turn, uint64_t key, bool ended)
{
	struct plumb_thread *thread = plumb_thread_get();
	if (!thread || ended || (turn->thread && turn->thread != thread))
		return;
	if (plumb_unlikely(thread->operators > turn->operators ||
	                   thread->ranges_open > turn->ranges))
		end_slowly(turn, key);
}

/* ---- greenlets ---- */

uint64_t
plumb_task_suspend(void)
{
	static _Atomic uint64_t last;
	struct plumb_thread *thread = plumb_thread_get();
	if (!thread || (!thread->operators && !thread->ranges_open) ||
	    !(thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_EXIT)))
		return 0;
	/* Odd, and so no address. */
	uint64_t key = 2 * atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
	park_frames(thread, key, 0, 0, 0);
	plumb_leave(thread);
	return key;
}

void
plumb_task_resume(uint64_t key)
{
	struct plumb_thread *thread =
		key ? plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_ENTER) : NULL;
	struct slot *slot = thread ? slot_find(thread->tasks, key) : NULL;
	if (slot) {
		(void)plumb_python_refresh(thread);
		restore_task(thread, slot, 0);
	}
	if (thread)
		plumb_leave(thread);
}

/* ---- ends while parked ---- */

bool
plumb_task_take(struct plumb_thread *thread, const struct plumb_ticket *ticket,
                struct plumb_operator_frame *frame, struct plumb_operator_frame **parent)
{
	uint32_t index = ticket->depth & ~PLUMB_TICKET_PARKED;
	struct slot *slot =
		thread->tasks && index <= PLUMB_TASKS_MAX ? &thread->tasks->slots[index] : NULL;
	for (uint32_t i = 0; slot && slot->key && i < slot->frames; i++) {
		if (slot->frame[i].serial != ticket->serial)
			continue;
		*frame = slot->frame[i];
		frame->away += plumb_ticks_between(slot->since, plumb_ticks());
		*parent = i ? &slot->frame[i - 1] : NULL;
		memmove(&slot->frame[i], &slot->frame[i + 1],
		        (--slot->frames - i) * sizeof *slot->frame);
		if (!slot->frames && !slot->ranges)
			slot_free(thread, slot);
		return true;
	}
	return false;
}

struct plumb_ticket *
plumb_task_take_range(struct plumb_thread *thread, const struct plumb_range_domain *domain,
                      const char *key)
{
	for (uint32_t s = thread->parked ? thread->tasks->made : 0; s; s--) {
		struct slot *slot = &thread->tasks->slots[s];
		for (uint32_t i = slot->key ? slot->ranges : 0; i-- > 0;) {
			struct plumb_ticket *ticket = slot->range[i].ticket;
			if (slot->range[i].domain != domain || slot->range[i].key != key)
				continue;
			memmove(&slot->range[i], &slot->range[i + 1],
			        (--slot->ranges - i) * sizeof *slot->range);
			if (!ticket && !slot->frames && !slot->ranges)
				slot_free(thread, slot);
			return ticket;
		}
	}
	return NULL;
}

void
plumb_tasks_drop(struct plumb_thread *thread)
{
	for (uint32_t s = thread->parked ? thread->tasks->made : 0; s; s--) {
		struct slot *slot = &thread->tasks->slots[s];
		if (!slot->key)
			continue;
		/* They end with the thread's other ones; their own ends come or not. */
		for (uint32_t i = 0; i < slot->ranges; i++)
			if (slot->range[i].ticket)
				atomic_store_explicit(&slot->range[i].ticket->abandoned,
				                      PLUMB_TICKET_ABANDONED, memory_order_relaxed);
		slot->ranges = 0;
		restore_task(thread, slot, slot->outside);
	}
}
