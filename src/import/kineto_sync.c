/* SPDX-License-Identifier: Apache-2.0 */
/* Kineto's synchronisation events: who waited for what, and how long. */
#include "import/kineto.h"

bool
plumb_kineto_sync_key(struct plumb_pull *pull, struct plumb_slice key, int64_t *awaited,
                      int64_t *recorded)
{
	if (plumb_slice_is(key, "wait_on_stream"))
		plumb_pull_integer(pull, awaited);
	else if (plumb_slice_is(key, "wait_on_cuda_event_record_corr_id"))
		plumb_pull_integer(pull, recorded);
	else
		return false;
	return true;
}

/* One whose event is not known says nothing that the call's name does not. */
void
plumb_kineto_sync(struct plumb_trace *trace, const struct plumb_chrome_event *event,
                  const struct plumb_trace_sync *arguments)
{
	struct plumb_trace_sync sync = *arguments;
	int64_t end = plumb_chrome_end(event);
	bool streams = plumb_slice_is(event->name, "Stream Wait Event"), known = true;

	if (sync.ordinal == PLUMB_UNKNOWN)
		sync.ordinal = event->pid;
	if (plumb_slice_is(event->name, "Context Sync"))
		sync.awaited = PLUMB_UNKNOWN;
	else if (plumb_slice_is(event->name, "Stream Sync"))
		sync.awaited = arguments->stream;
	else
		known = (streams || plumb_slice_is(event->name, "Event Sync")) && sync.after &&
		        sync.awaited >= 0;
	if (!streams)
		sync.stream = PLUMB_UNKNOWN;
	if (!known || end == PLUMB_UNKNOWN || end < event->start ||
	    (streams && sync.stream == PLUMB_UNKNOWN)) {
		plumb_trace_count_slice(trace, PLUMB_FATE_UNUSED, event->category, 1);
		return;
	}
	plumb_trace_wait(trace, sync.process, sync.call, streams ? 0 : end - event->start);
	plumb_trace_sync(trace, &sync);
}
