/* SPDX-License-Identifier: Apache-2.0 */
/* Kineto's synchronisation events: who waited for what, and how long. */
#include "import/sync.h"
#include "import/kineto/kineto.h"

/* One whose event is not known says nothing that the call's name does not. */
void
plumb_kineto_sync(struct plumb_trace *trace, const struct plumb_chrome_event *event,
                  const struct plumb_trace_sync *arguments)
{
	struct plumb_trace_sync sync = *arguments;
	int64_t end = plumb_chrome_end(event);
	static const struct {
		const char *name;
		enum plumb_sync_kind kind;
	} kinds[] = {
		{ "Event Sync", PLUMB_SYNC_EVENT },
		{ "Stream Wait Event", PLUMB_SYNC_STREAM_WAITS },
		{ "Stream Sync", PLUMB_SYNC_STREAM },
		{ "Context Sync", PLUMB_SYNC_CONTEXT },
	};
	int64_t kind = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (plumb_slice_is(event->name, kinds[i].name))
			kind = kinds[i].kind;
	if (sync.ordinal == PLUMB_UNKNOWN)
		sync.ordinal = event->pid;
	sync.awaited_ordinal = sync.ordinal;
	sync.awaited_context = sync.gpu_context;
	if (end == PLUMB_UNKNOWN || end < event->start || !plumb_import_sync(trace, kind, &sync)) {
		plumb_trace_count_slice(trace, PLUMB_FATE_UNUSED, event->category, 1);
		return;
	}
	plumb_trace_wait(trace, sync.process, sync.call,
	                 kind == PLUMB_SYNC_STREAM_WAITS ? 0 : end - event->start);
}
