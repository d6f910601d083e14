/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of a Perfetto trace (perfetto, protos/perfetto/trace/trace_packet.proto): the few fields
 * that an export needs, and texts that are written once and then named by number (interned). All
 * packets are of one sequence. Private to export/.
 *
 *	plumb_packet_begin(&t, time);
 *	plumb_event_begin(&t, TYPE_BEGIN, track);
 *	plumb_event_span(&t, span, true);
 *	plumb_event_end(&t);
 *	plumb_packet_end(&t);
 */
#ifndef PLUMB_EXPORT_PERFETTO_PACKET_H
#define PLUMB_EXPORT_PERFETTO_PACKET_H

#include <stdio.h>

#include "base/protobuf.h"
#include "export/perfetto_facts.h"
#include "model/profile.h"

struct plumb_packets {
	const struct plumb_profile *profile;
	FILE *out;
	struct plumb_protobuf packet;
	struct plumb_protobuf interned; /* what the packet uses first */
	/* By context: the line that says most about it, the nearest operator above it; 0 none. */
	uint32_t *python, *op;
	unsigned char *flags;    /* by context: its own and those of all above it */
	unsigned char *named;    /* bits, by frame: its name was written */
	unsigned char *placed;   /* likewise its place, "train.py:22 (step)" */
	unsigned char *operated; /* likewise its name as an annotation */
	unsigned char *pathed;   /* by context: its path was written */
	uint32_t kinds;          /* bits, by kind of frame: the category was written */
	struct plumb_perfetto_facts facts;
	bool annotations; /* their names were written */
	bool started;     /* the first packet was */
	bool failed;      /* no memory */
};

/* False: no memory. plumb_packets_free is due either way. */
bool
plumb_packets_init(struct plumb_packets *packets, const struct plumb_profile *profile, FILE *out);
void plumb_packets_free(struct plumb_packets *packets);

/* TIME: PLUMB_UNKNOWN for a packet without. */
void plumb_packet_begin(struct plumb_packets *packets, int64_t time);
void plumb_packet_end(struct plumb_packets *packets);

/* A track: what a thread, process or counter needs comes between these two. */
void
plumb_track_begin(struct plumb_packets *packets, uint64_t uuid, uint64_t parent, const char *name);
void plumb_track_process(struct plumb_packets *packets, int64_t pid, const char *name,
                         const char *command, const char *const *labels);
void plumb_track_thread(struct plumb_packets *packets, int64_t pid, int64_t tid, const char *name);
void plumb_track_counter(struct plumb_packets *packets, const char *unit);
void plumb_track_end(struct plumb_packets *packets);

/* MONOTONIC and REALTIME are readings of the same moment; the trace's times are monotonic. */
void plumb_packet_clocks(struct plumb_packets *packets, int64_t monotonic, int64_t realtime);

/* TYPE: TYPE_BEGIN, TYPE_END or TYPE_COUNTER of base/perfetto.h. */
void plumb_event_begin(struct plumb_packets *packets, uint32_t type, uint64_t track);
/* Name, category and annotations of a span: its context's line, operator, pass and path, and the
 * facts. FIRST: of its track. */
void plumb_event_span(struct plumb_packets *packets, const struct plumb_span *span, bool first);
/* An arrow to the next event with that number. */
void plumb_event_flow(struct plumb_packets *packets, uint64_t flow, bool last);
void plumb_event_value(struct plumb_packets *packets, double value);
void plumb_event_end(struct plumb_packets *packets);

#endif
