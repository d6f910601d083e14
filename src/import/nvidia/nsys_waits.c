/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nsight Systems' records of synchronisation and of events. A wait for an event names it by
 * eventId, and the one record of it that it was for by eventSyncId, in exports that have that
 * column; CUPTI_ACTIVITY_KIND_CUDA_EVENT says on which stream and by which call an event was
 * recorded.
 */
#include "import/nvidia/nsys.h"
#include "import/sync.h"

#define NONE INT64_C(0xffffffff) /* for ids that do not apply */
#define COLUMNS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Of both tables, the first ones. */
enum { PROCESS, CORRELATION, DEVICE, CONTEXT, STREAM, EVENT, NUMBER, START, END, TYPE };
#define RECORD_COLUMNS                                                                             \
	"globalPid", "correlationId", "deviceId", "contextId", "streamId", "eventId", "eventSyncId"

static int64_t
id_of(const struct plumb_rows *rows, int column)
{
	int64_t id = plumb_rows_integer(rows, column);

	return id < 0 || id == NONE ? PLUMB_UNKNOWN : id;
}

static bool
load_events(struct plumb_sqlite *sqlite, struct plumb_import_events *events)
{
	struct plumb_rows rows;
	bool done = true;

	plumb_rows_open(&rows, sqlite, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", COLUMNS(RECORD_COLUMNS));
	while (done && plumb_rows_next(&rows)) {
		int64_t global = plumb_rows_integer(&rows, PROCESS), number = id_of(&rows, NUMBER);
		struct plumb_import_event event = {
			.process = global >> 24,
			.event = id_of(&rows, EVENT),
			.number = number > 0 ? number : 0,
			.ordinal = plumb_rows_integer(&rows, DEVICE),
			.gpu_context = plumb_rows_integer(&rows, CONTEXT),
			.stream = id_of(&rows, STREAM),
			.correlation = plumb_rows_integer(&rows, CORRELATION),
		};

		/* Without its process a correlation number says nothing. */
		if (global != PLUMB_UNKNOWN && event.stream != PLUMB_UNKNOWN &&
		    event.correlation > 0 && (event.event != PLUMB_UNKNOWN || event.number))
			done = plumb_import_events_add(events, &event) == 0;
	}
	plumb_rows_close(&rows);
	return done && plumb_import_events_sort(events) == 0;
}

/* False: it waited for an event of which nothing is known. */
static bool
take_sync(struct plumb_trace *trace, const struct plumb_rows *rows,
          const struct plumb_import_events *events, uint32_t process, uint64_t call)
{
	int64_t type = plumb_rows_integer(rows, TYPE), event = id_of(rows, EVENT);
	struct plumb_trace_sync sync = {
		.process = process,
		.ordinal = plumb_rows_integer(rows, DEVICE),
		.gpu_context = plumb_rows_integer(rows, CONTEXT),
		.stream = id_of(rows, STREAM),
		.awaited = PLUMB_UNKNOWN,
		.call = call,
	};
	bool by_event = type == PLUMB_SYNC_EVENT || type == PLUMB_SYNC_STREAM_WAITS;

	if (!call)
		return true;
	if (by_event) {
		const struct plumb_import_event *record =
			event == PLUMB_UNKNOWN
				? NULL
				: plumb_import_events_find(
					  events, plumb_rows_integer(rows, PROCESS) >> 24,
					  id_of(rows, NUMBER), event, sync.gpu_context,
					  plumb_rows_integer(rows, CORRELATION));

		if (!record)
			return false;
		sync.after = (uint64_t)record->correlation;
		sync.awaited = record->stream;
		sync.awaited_ordinal = record->ordinal;
		sync.awaited_context = record->gpu_context;
	}
	plumb_import_sync(trace, type, &sync);
	return true;
}

void
plumb_nsys_waits(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                 uint32_t (*process_of)(void *reader, int64_t global), void *reader)
{
	struct plumb_import_events events = { 0 };
	struct plumb_rows rows;
	int64_t unknown = 0;

	if (!load_events(sqlite, &events) && !sqlite->code)
		sqlite->code = plumb_fail_memory(sqlite->error, "to read %s", sqlite->path);
	plumb_rows_open(&rows, sqlite, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	                COLUMNS(RECORD_COLUMNS, "start", "end", "syncType"));
	while (plumb_rows_next(&rows)) {
		int64_t start = plumb_rows_integer(&rows, START);
		int64_t end = plumb_rows_integer(&rows, END), length;
		int64_t global = plumb_rows_integer(&rows, PROCESS);
		int64_t number = plumb_rows_integer(&rows, CORRELATION);
		uint32_t process = process_of(reader, global);
		uint64_t call = global != PLUMB_UNKNOWN && number > 0 ? (uint64_t)number : 0;
		bool streams = plumb_rows_integer(&rows, TYPE) == PLUMB_SYNC_STREAM_WAITS;

		if (streams || start == PLUMB_UNKNOWN || end < start ||
		    __builtin_sub_overflow(end, start, &length))
			length = 0;
		plumb_trace_wait(trace, process, call, length);
		unknown += !take_sync(trace, &rows, &events, process, call);
	}
	plumb_rows_close(&rows);
	plumb_import_events_free(&events);
	plumb_trace_count(trace, PLUMB_FATE_UNUSED, "waits for events that are not in the file",
	                  unknown);
}
