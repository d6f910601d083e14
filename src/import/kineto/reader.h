/* SPDX-License-Identifier: Apache-2.0 */
/* What reading a trace of PyTorch's profiler (kineto.c) and taking its events (take.c) share. */
#ifndef PLUMB_IMPORT_KINETO_READER_H
#define PLUMB_IMPORT_KINETO_READER_H

#include "import/chrome/event.h"
#include "import/chrome/samples.h"
#include "import/kineto/kineto.h"
#include "import/shapes.h"

enum plumb_kineto_category {
	PLUMB_KINETO_OTHER,
	PLUMB_KINETO_OPERATOR,
	PLUMB_KINETO_ANNOTATION,
	PLUMB_KINETO_PYTHON,
	PLUMB_KINETO_CALL,
	PLUMB_KINETO_KERNEL,
	PLUMB_KINETO_COPY,
	PLUMB_KINETO_SET,
	PLUMB_KINETO_FLOW_GPU,
	PLUMB_KINETO_FLOW_BACKWARD,
	PLUMB_KINETO_REPEATED,
	PLUMB_KINETO_NATIVE,
	PLUMB_KINETO_SYNC,
	PLUMB_KINETO_INSTANT,
};

/* What an event "[memory]" says. */
struct plumb_kineto_memory {
	int64_t type, device;        /* of which device; PyTorch's number of its type */
	int64_t allocated, reserved; /* bytes, after it */
};
struct plumb_kineto_memory_event {
	int64_t at_ns, allocated, reserved;
	uint32_t track;
};
struct plumb_kineto_memory_track {
	uint32_t process, track;
	int64_t type, device;
};
struct plumb_kineto_memories {
	PLUMB_VEC(struct plumb_kineto_memory_event) events;
	PLUMB_VEC(struct plumb_kineto_memory_track) tracks;
	bool no_memory; /* of the importer itself */
};

struct plumb_kineto_arguments {
	int64_t correlation, device, stream, context, bytes, process;
	int64_t from_device, to_device; /* of a copy between two */
	int64_t rank, raw_pid;          /* in a file of several ranks */
	int64_t awaited, recorded;      /* of a synchronisation */
	struct plumb_slice collective;
	struct plumb_kineto_group group;
	struct plumb_import_inputs inputs; /* of an operator */
	struct plumb_trace_launch launch;
	struct plumb_kineto_memory memory;
};

struct plumb_kineto_flow {
	int64_t id, at;
	uint32_t track;
	bool finish;
};

struct plumb_kineto_reader {
	struct plumb_trace *trace;
	struct plumb_chrome chrome;
	struct plumb_kineto_arguments arguments; /* of the event that is read */
	bool namespaces;                         /* operators are called "aten::mm", not "mm" */
	bool rankless;                           /* an event said no rank: nor will others */
	struct plumb_kineto_processes processes;
	struct plumb_kineto_devices devices;
	int64_t repeated; /* events that repeat others */
	PLUMB_VEC(struct plumb_kineto_flow) flows;
	struct plumb_kineto_comms comms;
	struct plumb_kineto_memories memories;
	struct plumb_import_shapes_seen shapes;
	struct plumb_chrome_samples samples; /* the file's own list */
};

/* OTHER: none that is read. */
enum plumb_kineto_category plumb_kineto_category(struct plumb_slice name);

/* What an event says, but for its numbers: it holds for all events that are alike. */
struct plumb_kineto_memo {
	enum {
		PLUMB_KINETO_NOTHING,
		PLUMB_KINETO_SPAN,
		PLUMB_KINETO_WORK,
		PLUMB_KINETO_FLOW,
	} what;
	bool correlated, sized, finish; /* it has a correlation, bytes; the end of a flow */
	uint32_t track, frame, shapes;
	int64_t rank;
	bool launched;
	struct plumb_trace_work work;
	struct plumb_trace_launch launch;
};
/* For the dialect. */
void plumb_kineto_take(struct plumb_chrome *chrome, const struct plumb_chrome_event *event);
void plumb_kineto_again(struct plumb_chrome *chrome, const void *memo);
/* The process with the number PID of the event's rank. PLUMB_UNKNOWN: the process that its GPU
 * events belong to. */
uint32_t plumb_kineto_process_of(struct plumb_kineto_reader *reader, int64_t pid);
/* ORDINAL of the process with the number PID (PLUMB_UNKNOWN: the first). */
uint32_t plumb_kineto_device_of(struct plumb_kineto_reader *reader, int64_t pid, uint32_t process,
                                int64_t ordinal);
/* memory.c: takes an event at AT_NS of the file. False: it does not say enough. */
bool plumb_kineto_memory(struct plumb_kineto_reader *reader, int64_t at_ns, uint32_t process,
                         const struct plumb_kineto_memory *memory);
/* All is read: what was allocated over time. Negative: no memory. */
int plumb_kineto_memories_end(struct plumb_kineto_reader *reader);
void plumb_kineto_memories_free(struct plumb_kineto_reader *reader);

/* All is read: links from forward to backward. */
void plumb_kineto_link_flows(struct plumb_kineto_reader *reader);

#endif
