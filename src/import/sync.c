/* SPDX-License-Identifier: Apache-2.0 */
#include "import/sync.h"
#include "base/search.h"

bool
plumb_import_sync(struct plumb_trace *trace, int64_t kind, const struct plumb_trace_sync *record)
{
	struct plumb_trace_sync sync = *record;
	bool streams = kind == PLUMB_SYNC_STREAM_WAITS;

	if (kind == PLUMB_SYNC_EVENT || streams) {
		if (!sync.after || sync.awaited < 0)
			return false;
	} else if (kind == PLUMB_SYNC_CONTEXT || kind == PLUMB_SYNC_STREAM) {
		sync.awaited = kind == PLUMB_SYNC_STREAM ? sync.stream : PLUMB_UNKNOWN;
		sync.awaited_ordinal = sync.ordinal;
		sync.awaited_context = sync.gpu_context;
		sync.after = 0;
	} else {
		return false;
	}
	if (!streams)
		sync.stream = PLUMB_UNKNOWN;
	else if (sync.stream == PLUMB_UNKNOWN)
		return false;
	plumb_trace_sync(trace, &sync);
	return true;
}

/* ---- events ---- */

int
plumb_import_events_add(struct plumb_import_events *events, const struct plumb_import_event *event)
{
	struct plumb_import_event *added = plumb_vec_add(&events->items);

	if (!added)
		return PLUMB_ESYSTEM;
	*added = *event;
	return 0;
}

static int
by_event(const void *x, const void *y)
{
	const struct plumb_import_event *a = x, *b = y;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

struct numbered {
	int64_t process, number;
	uint32_t place;
};

static int
by_number(const void *x, const void *y)
{
	const struct numbered *a = x, *b = y;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

int
plumb_import_events_sort(struct plumb_import_events *events)
{
	uint32_t count = events->items.count;
	struct numbered *numbered = malloc(((size_t)count + 1) * sizeof *numbered);

	events->by_number = malloc(((size_t)count + 1) * sizeof *events->by_number);
	if (!numbered || !events->by_number) {
		free(numbered);
		return PLUMB_ESYSTEM;
	}
	if (count)
		qsort(events->items.items, count, sizeof *events->items.items, by_event);
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_import_event *event = &events->items.items[i];

		if (event->number > 0)
			numbered[events->numbered++] =
				(struct numbered){ event->process, event->number, i };
	}
	if (events->numbered)
		qsort(numbered, events->numbered, sizeof *numbered, by_number);
	for (uint32_t i = 0; i < events->numbered; i++)
		events->by_number[i] = numbered[i].place;
	free(numbered);
	return 0;
}

static const struct plumb_import_event *
find_number(const struct plumb_import_events *events, int64_t process, int64_t number)
{
	const struct plumb_import_event *items = events->items.items;
	const uint32_t *order = events->by_number;
	uint32_t low = plumb_search(
		i, events->numbered,
		items[order[i]].process < process ||
			(items[order[i]].process == process && items[order[i]].number < number));

	if (low == events->numbered)
		return NULL;
	items += order[low];
	return items->process == process && items->number == number ? items : NULL;
}

const struct plumb_import_event *
plumb_import_events_find(const struct plumb_import_events *events, int64_t process, int64_t number,
                         int64_t event, int64_t gpu_context, int64_t correlation)
{
	enum { LOOK_BACK = 256 }; /* records of events of other contexts */
	const struct plumb_import_event *items = events->items.items, *only = NULL;
	const struct plumb_import_event wanted = { .process = process,
		                                   .event = event,
		                                   .correlation = correlation };
	bool several = false;

	if (number > 0 && events->numbered)
		return find_number(events, process, number);
	uint32_t low = plumb_search(i, events->items.count, by_event(&items[i], &wanted) < 0);
	for (uint32_t i = low; i-- > 0 && low - i <= LOOK_BACK;) {
		if (items[i].process != process || items[i].event != event)
			break;
		if (items[i].gpu_context == gpu_context)
			return &items[i];
		if (!only)
			only = &items[i];
		several |= items[i].gpu_context != only->gpu_context;
	}
	return several ? NULL : only;
}

void
plumb_import_events_free(struct plumb_import_events *events)
{
	plumb_vec_free(&events->items);
	free(events->by_number);
	events->by_number = NULL;
	events->numbered = 0;
}
