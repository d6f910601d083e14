/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/range.h"

#include "base/utf8.h"
#include "collect/clock.h"
#include "collect/context.h"
#include "collect/process.h"
#include "collect/span.h"
#include "collect/task.h"

/* ---- names ---- */

static const char many_names[] = "(further names)";

/*
 * The string of a range's name, among those of other ranges. Programs number their ranges ("step
 * 1", "step 2", …), and a context for each would fill the region: beyond a number of names they
 * share one.
 */
static plumb_id
name_intern(struct plumb_thread *thread, const char *text, size_t bytes)
{
	uint32_t hash = plumb_hash_text(text, bytes), at = hash, id;
	while ((id = plumb_id_table_next(&thread->range_names, hash, &at))) {
		const struct plumb_record_string *string =
			plumb_region_at(thread->arena.region, id);
		if (string->bytes == bytes && !memcmp(string + 1, text, bytes))
			return id;
	}
	if (thread->range_names.count >= PLUMB_RANGE_NAMES_MAX) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_RANGE, PLUMB_FATE_OVERFLOWED, 1);
		return plumb_intern(thread, many_names, sizeof many_names - 1);
	}
	id = plumb_intern(thread, text, bytes);
	if (id)
		plumb_id_table_add(&thread->range_names, hash, id);
	return id;
}

static bool
is_text(const struct plumb_thread *thread, plumb_id id, const char *text, size_t bytes)
{
	const struct plumb_record_string *string = plumb_region_at(thread->arena.region, id);
	return string->bytes == bytes && !memcmp(string + 1, text, bytes);
}

/* Interns the name, and makes SITE its own. */
static __attribute__((noinline, cold)) void
fill_site(struct plumb_thread *thread, struct plumb_range_site *site,
          const struct plumb_range_domain *domain, const char *name)
{
	char text[PLUMB_RANGE_NAME_MAX];
	size_t prefix = domain ? domain->bytes : 0;
	if (prefix > sizeof text / 2)
		prefix = plumb_utf8_cut(domain->text, sizeof text / 2);
	size_t bytes = plumb_utf8_cut(name, sizeof text - prefix);
	if (prefix)
		memcpy(text, domain->text, prefix);
	memcpy(text + prefix, name, bytes);
	plumb_id id = name_intern(thread, text, prefix + bytes);
	*site = (struct plumb_range_site){ .domain = domain, .name = id };
	/* A name that shares its context with others is counted each time. */
	if (id && is_text(thread, id, text, prefix + bytes)) {
		site->pointer = name;
		site->bytes = (uint32_t)(prefix + bytes);
	}
}

/* Is SITE's name still what its pointer points to? */
static bool
has_name(const struct plumb_thread *thread, const struct plumb_range_site *site)
{
	size_t prefix = site->domain ? site->domain->bytes : 0;
	if (site->bytes < prefix)
		return false;
	const struct plumb_record_string *string =
		plumb_region_at(thread->arena.region, site->name);
	const char *text = (const char *)(string + 1), *name = site->pointer;
	size_t rest = site->bytes - prefix;
	return (!prefix || !memcmp(text, site->domain->text, prefix)) &&
	       !strncmp(name, text + prefix, rest) && !name[rest];
}

/* The site of a range with NAME. Names usually come by the same pointer again, with the same text
 * there, which is compared unless it is KEPT: then it stays. Its name is 0: there is no room. */
static inline struct plumb_range_site *
site_of(struct plumb_thread *thread, const struct plumb_range_domain *domain, const char *name,
        bool kept)
{
	uintptr_t mixed = (uintptr_t)name ^ (uintptr_t)domain >> 1;
	struct plumb_range_site *site =
		&thread->sites[(mixed >> 3 ^ mixed >> 12) % PLUMB_RANGE_SITES];
	if (plumb_unlikely(site->pointer != name || site->domain != domain ||
	                   !(kept || has_name(thread, site))))
		fill_site(thread, site, domain, name);
	return site;
}

/* ---- pushed ranges ---- */

/* The newest open range of DOMAIN, by KEY if that is not NULL; ranges_open when there is none. */
static uint32_t
find_open(const struct plumb_thread *thread, const struct plumb_range_domain *domain,
          const char *key)
{
	for (uint32_t at = thread->ranges_open; at-- > 0;)
		if (thread->ranges[at].domain == domain && (!key || thread->ranges[at].key == key))
			return at;
	return thread->ranges_open;
}

/* Puts a range on the thread's stack of open ones; NULL: there is no room. The count comes first,
 * so that a signal handler that annotates, too, leaves the entry alone. */
static struct plumb_open_range *
open_range(struct plumb_thread *thread, const struct plumb_range_domain *domain, const char *key)
{
	if (thread->ranges_open >= PLUMB_RANGES_MAX)
		return NULL;
	uint32_t below = find_open(thread, domain, NULL);
	uint32_t level = below < thread->ranges_open ? thread->ranges[below].level + 1 : 0;
	struct plumb_open_range *range = &thread->ranges[thread->ranges_open++];
	atomic_signal_fence(memory_order_seq_cst);
	*range = (struct plumb_open_range){ domain, key, NULL, level };
	return range;
}

static void
observe_payload(struct plumb_thread *thread, plumb_id node, const int64_t *payload)
{
	/* The least number stands for an unknown one. */
	if (payload)
		plumb_observe(thread, node, PLUMB_METRIC_RANGE_PAYLOAD, thread->track,
		              *payload == INT64_MIN ? INT64_MIN + 1 : *payload);
}

static inline int
push_range(const struct plumb_range_domain *domain, const char *name, bool kept,
           const int64_t *payload)
{
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_RANGE);
	if (!thread) {
		/* Not recorded; its end must not end another one. */
		thread = plumb_thread_get();
		struct plumb_open_range *range = thread ? open_range(thread, domain, name) : NULL;
		return range ? (int)range->level : 0;
	}
	struct plumb_open_range *range = open_range(thread, domain, name);
	int level = 0;
	if (plumb_likely(range)) {
		struct plumb_range_site *site = site_of(thread, domain, name, kept);
		struct plumb_operator op = {
			.id = site->name,
			.site = site,
			.sequence = -1,
			.range = true,
			.loose = true,
			.source = PLUMB_SOURCE_RANGE,
			.name = "",
		};
		level = (int)range->level;
		range->ticket = plumb_operator_enter(thread, &op);
		if (range->ticket && payload)
			observe_payload(thread, thread->stack[range->ticket->depth].node, payload);
	} else {
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED, 1);
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_TOO_DEEP, 1);
	}
	plumb_leave(thread);
	return level;
}

int
plumb_ranges_push(const struct plumb_range_domain *domain, const char *name, const int64_t *payload)
{
	return push_range(domain, name, false, payload);
}

int
plumb_ranges_push_kept(const struct plumb_range_domain *domain,
                       const struct plumb_range_domain *name, const int64_t *payload)
{
	return push_range(domain, name->text, true, payload);
}

/* The range of TICKET, of the calling thread, ends while recording is paused, or in our own
 * code. */
static void
end_unrecorded(struct plumb_thread *own, struct plumb_ticket *ticket)
{
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU);
	if (thread == own)
		plumb_operator_exit(thread, ticket);
	else
		atomic_store_explicit(&ticket->abandoned, PLUMB_TICKET_ABANDONED,
		                      memory_order_release);
	if (thread)
		plumb_leave(thread);
}

static int
pop_range(const struct plumb_range_domain *domain, const char *key)
{
	struct plumb_thread *entered = plumb_enter_of(PLUMB_CALLBACK_GPU, 0);
	struct plumb_thread *thread = entered ? entered : plumb_thread_get();
	if (!thread)
		return -1;
	uint32_t at = find_open(thread, domain, key);
	int level = -1;
	if (plumb_likely(at < thread->ranges_open)) {
		struct plumb_ticket *ticket = thread->ranges[at].ticket;
		level = (int)thread->ranges[at].level;
		if (plumb_unlikely(at + 1 < thread->ranges_open))
			memmove(&thread->ranges[at], &thread->ranges[at + 1],
			        (thread->ranges_open - at - 1) * sizeof *thread->ranges);
		thread->ranges_open--;
		if (ticket && entered)
			plumb_operator_exit(thread, ticket);
		else if (ticket)
			end_unrecorded(thread, ticket);
	} else if (entered) {
		struct plumb_ticket *ticket =
			key ? plumb_task_take_range(thread, domain, key) : NULL;
		if (ticket) {
			plumb_operator_exit(thread, ticket);
		} else {
			plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED, 1);
			plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_UNBALANCED, 1);
		}
	}
	if (entered)
		plumb_leave(thread);
	return level;
}

int
plumb_ranges_pop(const struct plumb_range_domain *domain)
{
	return pop_range(domain, NULL);
}

int
plumb_ranges_pop_named(const struct plumb_range_domain *domain, const char *name)
{
	return pop_range(domain, name);
}

/* ---- started ranges, of the process ---- */

#define STARTED 65536u /* a power of two */
#define WINDOW 32u     /* where an id may stand from its hash on */
#define OWN (UINT64_C(0x504c) << 48)
#define BUSY UINT64_MAX

struct started {
	_Atomic uint64_t id; /* 0 free */
	struct plumb_thread *thread;
	plumb_id node, track;
	uint64_t start; /* ticks */
	uint32_t epoch;
};
static _Atomic(struct started *) started;
static _Atomic uint64_t next_id;

static struct started *
started_table(void)
{
	struct started *table = atomic_load_explicit(&started, memory_order_acquire);
	if (plumb_likely(table))
		return table;
	struct started *made = plumb_map(STARTED * sizeof *made, true);
	/* Two threads at once: the other's table stays, ours is never touched and costs nothing. */
	if (made && !atomic_compare_exchange_strong(&started, &table, made))
		return table;
	return made;
}

static struct started *
window_at(struct started *table, uint64_t id, uint32_t i)
{
	return &table[((id * 0x9e3779b97f4a7c15u >> 40) + i) % STARTED];
}

/* Takes a slot of ID's window: the one that has FROM, which is ID itself or 0 for a free one. */
static struct started *
take_slot(struct started *table, uint64_t id, uint64_t from)
{
	for (uint32_t i = 0; table && i < WINDOW; i++) {
		struct started *slot = window_at(table, id, i);
		uint64_t found = from;
		if (atomic_load_explicit(&slot->id, memory_order_relaxed) == from &&
		    atomic_compare_exchange_strong_explicit(
			    &slot->id, &found, BUSY, memory_order_acquire, memory_order_relaxed))
			return slot;
	}
	return NULL;
}

bool
plumb_ranges_is_own(uint64_t id)
{
	return id >> 48 == OWN >> 48;
}

static plumb_id
range_node(struct plumb_thread *thread, const struct plumb_range_domain *domain, const char *name)
{
	struct plumb_key key = { .kind = PLUMB_FRAME_RANGE,
		                 .name = site_of(thread, domain, name, false)->name };
	return plumb_child(thread, plumb_context_current(thread), &key);
}

uint64_t
plumb_ranges_start(const struct plumb_range_domain *domain, const char *name,
                   const int64_t *payload, uint64_t id)
{
	if (!id)
		id = OWN |
		     (1 + atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed)) << 16 >> 16;
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_RANGE);
	if (!thread)
		return id;
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED, 1);
	plumb_id node = range_node(thread, domain, name);
	struct started *slot = node == PLUMB_LOST ? NULL : take_slot(started_table(), id, 0);
	if (slot) {
		slot->thread = thread;
		slot->node = node;
		slot->track = thread->track;
		slot->epoch = plumb_epoch(thread);
		slot->start = plumb_ticks();
		atomic_store_explicit(&slot->id, id, memory_order_release);
	} else {
		/* No room, or too many at once: its end will not be known. */
		plumb_count(thread, PLUMB_SOURCE_RANGE,
		            node == PLUMB_LOST ? thread->arena.fate : PLUMB_FATE_ENDED_ELSEWHERE,
		            1);
	}
	observe_payload(thread, node, payload);
	plumb_leave(thread);
	return id;
}

/* The calling thread's own context that equals NODE of another thread. */
static plumb_id
own_node(struct plumb_thread *thread, plumb_id node)
{
	const struct plumb_record_node *theirs = plumb_region_at(thread->arena.region, node);
	const struct plumb_record_string *name =
		plumb_region_at(thread->arena.region, theirs->name);
	struct plumb_key key = {
		.kind = theirs->kind,
		.flags = theirs->flags,
		.name = plumb_intern(thread, (const char *)(name + 1), name->bytes),
	};
	return plumb_child(thread, theirs->parent, &key);
}

void
plumb_ranges_end(uint64_t id)
{
	struct started *table = atomic_load_explicit(&started, memory_order_acquire);
	/* What was started before recording was paused may end meanwhile. */
	struct plumb_thread *thread = table ? plumb_enter_paused(PLUMB_CALLBACK_GPU)
	                                    : plumb_enter_of(PLUMB_CALLBACK_GPU, 0);
	if (!thread)
		return;
	uint64_t now = plumb_ticks();
	struct started *slot = id && id != BUSY ? take_slot(table, id, id) : NULL;
	if (slot) {
		struct started range = { .thread = slot->thread,
			                 .node = slot->node,
			                 .track = slot->track,
			                 .start = slot->start,
			                 .epoch = slot->epoch };
		atomic_store_explicit(&slot->id, 0, memory_order_release);
		if (range.epoch != plumb_epoch(thread)) { /* part of it was not recorded */
			plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_PAUSED, 1);
			plumb_leave(thread);
			return;
		}
		plumb_id node = range.thread == thread ? range.node : own_node(thread, range.node);
		plumb_observe(thread, node, PLUMB_METRIC_OP_DURATION, range.track,
		              (int64_t)plumb_ticks_between(range.start, now));
		plumb_count(thread, PLUMB_SOURCE_RANGE,
		            node == PLUMB_LOST ? thread->arena.fate : PLUMB_FATE_ATTRIBUTED, 1);
		if (plumb_unlikely(plumb_trace_on))
			plumb_span_started(thread, node, range.track, range.start, now);
	} else if (plumb_process_gate_word() & PLUMB_CONTROL_ON) {
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED, 1);
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_UNBALANCED, 1);
	}
	plumb_leave(thread);
}

void
plumb_ranges_mark(const struct plumb_range_domain *domain, const char *name, const int64_t *payload)
{
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_RANGE);
	if (!thread)
		return;
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_RANGE, PLUMB_FATE_RECEIVED, 1);
	plumb_id node = range_node(thread, domain, name);
	plumb_observe(thread, node, PLUMB_METRIC_RANGE_MARKS, thread->track, 1);
	observe_payload(thread, node, payload);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_RANGE,
	                  node == PLUMB_LOST ? thread->arena.fate : PLUMB_FATE_ATTRIBUTED, 1);
	plumb_leave(thread);
}

/* ---- ends ---- */

void
plumb_ranges_forked(void)
{
	struct started *table = atomic_load_explicit(&started, memory_order_relaxed);
	for (uint32_t i = 0; table && i < STARTED; i++)
		if (atomic_load_explicit(&table[i].id, memory_order_relaxed))
			atomic_store_explicit(&table[i].id, 0, memory_order_relaxed);
}

void
plumb_ranges_drop(struct plumb_thread *thread)
{
	/* Nobody will close them; their tickets come back when their frames go. */
	for (uint32_t i = 0; i < thread->ranges_open; i++)
		if (thread->ranges[i].ticket)
			atomic_store_explicit(&thread->ranges[i].ticket->abandoned,
			                      PLUMB_TICKET_ABANDONED, memory_order_relaxed);
	thread->ranges_open = 0;
}

void
plumb_ranges_finish(struct plumb_thread *thread)
{
	struct started *table = atomic_load_explicit(&started, memory_order_acquire);
	uint64_t open = 0;
	for (uint32_t i = 0; table && i < STARTED; i++)
		open += atomic_load_explicit(&table[i].id, memory_order_relaxed) != 0;
	if (open)
		plumb_count(thread, PLUMB_SOURCE_RANGE, PLUMB_FATE_UNBALANCED, open);
}
