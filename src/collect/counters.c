/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of threads, whatever their source: opening what was asked for, and reading it. */
#include <stdio.h>
#include <string.h>

#include "collect/metric.h"
#include "collect/table.h"
#include "collect/thread.h"

static const struct plumb_counter_source *const sources[] = { &plumb_counters_perf };
enum { SOURCES = sizeof sources / sizeof *sources };

struct plumb_thread_counters {
	unsigned count;
	struct {
		const struct plumb_counter_source *source;
		enum plumb_metric metric;
		int handle;
		uint64_t last;
	} each[PLUMB_COUNTERS_MAX];
	struct plumb_thread_counters *next; /* of those that a thread left */
};

/* What could not be opened: a text that settles once and is told by the first sample. */
static char refusal[256];
static _Atomic int refused; /* 0 no, 1 being written, 2 to be told, 3 told */

static void
refuse_event(const char *name, size_t length, const char *why)
{
	int none = 0;
	if (!atomic_compare_exchange_strong(&refused, &none, 1))
		return;
	snprintf(refusal, sizeof refusal, "events are not counted: %.*s: %s", (int)length, name,
	         why);
	atomic_store(&refused, 2);
}

static void
open_one(struct plumb_thread_counters *counters, const char *name, size_t length)
{
	for (unsigned s = 0; s < SOURCES; s++) {
		enum plumb_metric metric = sources[s]->find(name, length);
		if (!metric)
			continue;
		int handle = sources[s]->open(metric);
		if (handle < 0) {
			refuse_event(name, length, strerror(-handle));
			return;
		}
		unsigned at = counters->count++;
		counters->each[at].source = sources[s];
		counters->each[at].metric = metric;
		counters->each[at].handle = handle;
		counters->each[at].last = 0;
		return;
	}
	refuse_event(name, length, "not a known event");
}

/* Memory of threads that ended is used again; few threads begin at the same instant. */
static struct plumb_thread_counters *_Atomic parked;

static struct plumb_thread_counters *
counters_new(void)
{
	struct plumb_thread_counters *counters = atomic_exchange(&parked, NULL);
	if (counters)
		atomic_store(&parked, counters->next);
	else
		counters = plumb_map(sizeof *counters, true);
	if (counters)
		counters->count = 0;
	return counters;
}

struct plumb_thread_counters *
plumb_thread_counters_open(void)
{
	const char *list = plumb_collector_options()->events;
	struct plumb_thread_counters *counters = *list ? counters_new() : NULL;
	while (counters && *list && counters->count < PLUMB_COUNTERS_MAX) {
		size_t length = strcspn(list, ",");
		open_one(counters, list, length);
		list += length;
		list += *list == ',';
	}
	return counters;
}

void
plumb_thread_counters_close(struct plumb_thread_counters *counters)
{
	if (!counters)
		return;
	for (unsigned i = 0; i < counters->count; i++)
		counters->each[i].source->close(counters->each[i].handle);
	counters->count = 0;
	counters->next = atomic_load(&parked);
	while (!atomic_compare_exchange_weak(&parked, &counters->next, counters))
		;
}

void
plumb_thread_counters_observe(struct plumb_thread_counters *counters, struct plumb_thread *thread,
                              plumb_id node)
{
	int tell = 2;
	if (atomic_compare_exchange_strong(&refused, &tell, 3))
		plumb_environment(thread, "events.off", refusal);
	for (unsigned i = 0; i < counters->count; i++) {
		uint64_t now;
		plumb_count(thread, PLUMB_SOURCE_EVENT, PLUMB_FATE_RECEIVED, 1);
		if (!counters->each[i].source->read(counters->each[i].handle, &now)) {
			plumb_count(thread, PLUMB_SOURCE_EVENT, PLUMB_FATE_UNKNOWN_LAYOUT, 1);
			continue;
		}
		plumb_observe(thread, node, counters->each[i].metric, plumb_thread_track(thread),
		              (int64_t)(now - counters->each[i].last));
		plumb_count(thread, PLUMB_SOURCE_EVENT, PLUMB_FATE_ATTRIBUTED, 1);
		counters->each[i].last = now;
	}
}
