/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Perfetto trace as it is read: sequences of packets with the texts that each interned, clocks,
 * tracks, and what plumb itself wrote about its slices (base/facts.h). Private to import/.
 */
#ifndef PLUMB_IMPORT_PERFETTO_PERFETTO_H
#define PLUMB_IMPORT_PERFETTO_PERFETTO_H

#include "base/facts.h"
#include "base/map.h"
#include "base/protobuf_read.h"
#include "base/vec.h"
#include "import/chrome/pairs.h"
#include "import/samples.h"
#include "import/trace.h"

/* What numbers of a sequence mean: names of events, names of annotations, plumb's frames and
 * contexts, and what call stacks are made of. */
enum perfetto_table {
	PERFETTO_NAME,
	PERFETTO_FACT,
	PERFETTO_FRAME,
	PERFETTO_CONTEXT,
	PERFETTO_FUNCTION,
	PERFETTO_PATH,
	PERFETTO_SOURCE,
	PERFETTO_MAPPING,
	PERFETTO_STACK_FRAME,
	PERFETTO_STACK,
};

struct perfetto_entry {
	uint64_t number;
	uint32_t table;
	uint32_t value; /* place of a name or message in `text`; the fact; a frame or context */
	uint32_t bytes; /* of a name or message */
	/* What it was found to be when it was used: a name's frame, a path's string, a stack's
	 * place in `chains`, a context's launch; PLUMB_NONE: it was not. */
	uint32_t second;
	bool apart; /* a context that others may cross */
};

/* Packets of one writer, in order. */
struct perfetto_sequence {
	uint32_t number;
	bool sound;            /* nothing that it interned was lost */
	uint64_t track, clock; /* of events and packets that name none; 0 none */
	int64_t sample_ns;     /* what a CPU sample stands for; 0: not said */
	PLUMB_VEC(struct perfetto_entry) entries;
	struct plumb_map map;
	PLUMB_VEC(char) text;
	PLUMB_VEC(struct plumb_samples_chain) chains;
};

void perfetto_forget(struct perfetto_sequence *sequence);
/* The entry, or NULL. */
struct perfetto_entry *
perfetto_find(const struct perfetto_sequence *sequence, enum perfetto_table table, uint64_t number);
/* Finds the entry or adds it; NULL if memory runs out. */
struct perfetto_entry *
perfetto_add(struct perfetto_sequence *sequence, enum perfetto_table table, uint64_t number);
/* The name or message that ENTRY keeps. */
struct plumb_slice
perfetto_text(const struct perfetto_sequence *sequence, const struct perfetto_entry *entry);
/* A packet's interned data. False: they are damaged. */
bool perfetto_intern(struct perfetto_sequence *sequence, struct plumb_slice bytes, bool *no_memory);

/* ---- clocks ---- */

struct perfetto_reading {
	int64_t own, trace;
};

struct perfetto_clock {
	uint64_t key; /* number, and the sequence for those that are a sequence's own */
	int64_t unit, last;
	bool incremental;
	PLUMB_VEC(struct perfetto_reading) readings; /* ascending */
};

struct perfetto_clocks {
	PLUMB_VEC(struct perfetto_clock) items;
	struct plumb_map map;
	uint64_t trace; /* the trace's own clock; 0: not said yet */
	bool no_memory;
};

void perfetto_clocks_free(struct perfetto_clocks *clocks);
/* False: it is damaged. */
bool perfetto_clocks_snapshot(struct perfetto_clocks *clocks, uint32_t sequence,
                              struct plumb_slice bytes);
/* TIME of clock NUMBER (0: the trace's) in the trace's; PLUMB_UNKNOWN. */
int64_t perfetto_clocks_time(struct perfetto_clocks *clocks, uint32_t sequence, uint64_t number,
                             uint64_t time);

/* ---- what plumb wrote ---- */

/* A track, of a thread or stream, as plumb's profile had it. */
struct perfetto_own_track {
	bool stream;
	int64_t index; /* the same of the same track */
	int64_t pid, rank, tid, number, gpu_context, ordinal;
	uint32_t host, name, uuid, model; /* strings */
};

/* A slice. */
struct perfetto_own {
	uint32_t context; /* the builder's; PLUMB_NONE: it is not plumb's, or not described */
	uint32_t launch;  /* in `launches`, or PLUMB_NONE */
	uint64_t correlation;
	int64_t bytes; /* PLUMB_UNKNOWN */
	int64_t all_bytes, all_count, all_least, all_most;
	double all_squares;
	bool apart;
	bool drawn; /* around what was recorded: it says nothing new */
};

struct perfetto_facts {
	struct plumb_trace *trace;
	PLUMB_VEC(struct plumb_trace_launch) launches;
	PLUMB_VEC(struct perfetto_own_track) tracks;
	bool no_memory;
};

/* Is ANNOTATION plumb's? */
bool perfetto_own_is(const struct perfetto_sequence *sequence, struct plumb_slice annotation);
/* Reads it: OWN, and *TRACK (an index, or PLUMB_NONE). False: it is damaged. */
bool perfetto_own_read(struct perfetto_facts *facts, struct perfetto_sequence *sequence,
                       struct plumb_slice annotation, struct perfetto_own *own, uint32_t *track);
void perfetto_facts_free(struct perfetto_facts *facts);

/* ---- the whole ---- */

/* Of an edge's frame: it is one of `owns`, not a frame. */
#define PERFETTO_OWN (UINT32_C(1) << 31)

struct perfetto_track {
	uint64_t uuid, parent;
	int64_t pid, tid;       /* PLUMB_UNKNOWN */
	uint32_t name, command; /* strings */
	uint32_t own;           /* in the facts' tracks, or PLUMB_NONE */
	uint32_t process, row;  /* found; PLUMB_NONE: not yet */
	bool is_process, is_thread;
};

struct perfetto {
	struct plumb_trace *trace;
	struct perfetto_clocks clocks;
	struct perfetto_facts facts;
	PLUMB_VEC(struct perfetto_sequence *) sequences;
	struct plumb_map sequence_map;
	PLUMB_VEC(struct perfetto_track) tracks;
	struct plumb_map track_map;
	struct plumb_chrome_pairs pairs;
	struct plumb_samples samples;
	PLUMB_VEC(struct perfetto_own) owns;
	int64_t last;
	const char *why; /* a packet cannot be taken */
	bool no_memory;
};

/* By its number; PLUMB_NONE. */
uint32_t perfetto_find_track(const struct perfetto *reader, uint64_t uuid);
/* What samples of SEQUENCE stand for from now on. False: it is damaged. */
bool perfetto_sample_defaults(struct perfetto_sequence *sequence, struct plumb_slice bytes);
/* A CPU sample at NS (PLUMB_UNKNOWN), or several that tell no CPU time. False: it is damaged. */
bool perfetto_sample(struct perfetto *reader, struct perfetto_sequence *sequence, int64_t ns,
                     struct plumb_slice bytes);
bool perfetto_streamed_samples(struct perfetto *reader, struct plumb_slice bytes);
/* All is read: slices are handed over. */
void perfetto_place(struct perfetto *reader);

#endif
