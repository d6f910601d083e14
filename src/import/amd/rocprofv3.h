/* SPDX-License-Identifier: Apache-2.0 */
/* What rocprofv3.c reads of one process, and rocprofv3_process.c makes of it. Private to the
 * two. */
#ifndef PLUMB_IMPORT_AMD_ROCPROFV3_H
#define PLUMB_IMPORT_AMD_ROCPROFV3_H

#include "base/json_fields.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/trace.h"

enum rocprofv3_what {
	ROCPROFV3_DISPATCH,
	ROCPROFV3_COPY,
	ROCPROFV3_CALL,
	ROCPROFV3_LIBRARY,
	ROCPROFV3_MARKER,
};

struct rocprofv3_record {
	enum rocprofv3_what what;
	int64_t start, end, correlation, thread;
	int64_t kind, operation; /* numbers in the file's strings */
	uint32_t name;           /* string, where the file has the operation's name itself */
	int64_t agent, from, to; /* handles */
	int64_t queue, stream, kernel, bytes, shared;
	int64_t grid[3], group[3];
};

struct rocprofv3_agent {
	int64_t handle, type, ordinal, units, waves;
	uint32_t name; /* string */
};
#define ROCPROFV3_GPU 2 /* a type of agent */
#define ROCPROFV3_AGENTS_MAX 1024u

struct rocprofv3_symbol {
	int64_t id, registers;
	uint32_t name; /* string */
};

/* A kind of record and its operations' names, [first, first + count) of `operations`. */
struct rocprofv3_kind {
	uint32_t name, first, count;
};

struct rocprofv3_message {
	int64_t correlation;
	uint32_t text;
};

struct rocprofv3_reader {
	struct plumb_trace *trace;
	struct plumb_pull pull;
	int64_t pid;
	uint32_t process, host, command;
	PLUMB_VEC(struct rocprofv3_record) records;
	PLUMB_VEC(struct rocprofv3_agent) agents;
	PLUMB_VEC(struct rocprofv3_symbol) symbols;
	struct plumb_map symbol_map;
	PLUMB_VEC(struct rocprofv3_kind) kinds;
	PLUMB_VEC(uint32_t) operations;
	PLUMB_VEC(struct rocprofv3_message) messages;
	struct plumb_map message_map;
	uint32_t gpus;
	bool no_memory;
};

/* By their numbers; NULL and PLUMB_NONE: the file has not told them yet. */
const struct rocprofv3_symbol *
plumb_rocprofv3_symbol(const struct rocprofv3_reader *reader, int64_t id);
uint32_t plumb_rocprofv3_message(const struct rocprofv3_reader *reader, int64_t correlation);
/* All of a process is read: its records go into the trace. */
void plumb_rocprofv3_take_process(struct rocprofv3_reader *reader);

#endif
