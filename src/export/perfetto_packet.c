/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts need numbers that are theirs for the whole trace:
 *
 *	event names        frame + 1
 *	categories         kind of frame + 1
 *	annotation names   NAMED_*, NAMED_FACTS + PLUMB_FACT_*
 *	annotation texts   2 * frame + 1: the frame's place; 2 * frame + 2: its name;
 *	                   PASSES + pass; PATHS + context: its path
 */
#include "export/perfetto_packet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/perfetto.h"
#include "export/names.h"
#include "model/user_code.h"

#define SEQUENCE 1
enum {
	NAMED_LINE = 1,
	NAMED_OPERATOR,
	NAMED_PASS,
	NAMED_PATH,
	NAMED_FACTS, /* all of them: + PLUMB_FACT_* */
};

/* Of a path at most so many frames from the outside, and so many from the inside. */
#define PATH_OUTER 16u
#define PATH_INNER 48u

static uint64_t
first_pass_iid(const struct plumb_packets *p)
{
	return 2 * (uint64_t)p->profile->frames_count + 1;
}

static uint64_t
first_path_iid(const struct plumb_packets *p)
{
	return first_pass_iid(p) + 4;
}

/* ---- setting up ---- */

/* The line that tells you most: the nearest line of your code, else the nearest of any code. */
static bool
find_lines(struct plumb_packets *p)
{
	const struct plumb_profile *profile = p->profile;
	unsigned char *user = plumb_user_code_frames(profile, NULL, NULL);

	for (uint32_t c = 1; user && c < profile->contexts_count; c++) {
		uint32_t parent = profile->contexts[c].parent, line = p->python[parent];
		uint32_t frame = profile->contexts[c].frame;
		bool python = profile->frames[frame].kind == PLUMB_FRAME_PYTHON;
		bool own = line && user[profile->contexts[line].frame];
		p->flags[c] = (unsigned char)(profile->contexts[c].flags | p->flags[parent]);
		p->python[c] = python && (user[frame] || !own) ? c : line;
		p->op[c] = plumb_context_frame(profile, parent)->kind == PLUMB_FRAME_OPERATOR
		                   ? parent
		                   : p->op[parent];
	}
	free(user);
	return user != NULL;
}

bool
plumb_packets_init(struct plumb_packets *packets, const struct plumb_profile *profile, FILE *out)
{
	*packets = (struct plumb_packets){ .profile = profile, .out = out };
	packets->python = calloc((size_t)profile->contexts_count + 1, sizeof(uint32_t));
	packets->op = calloc((size_t)profile->contexts_count + 1, sizeof(uint32_t));
	packets->flags = calloc((size_t)profile->contexts_count + 1, 1);
	packets->named = calloc((size_t)profile->frames_count / 8 + 1, 1);
	packets->placed = calloc((size_t)profile->frames_count / 8 + 1, 1);
	packets->operated = calloc((size_t)profile->frames_count / 8 + 1, 1);
	packets->pathed = calloc((size_t)profile->contexts_count / 8 + 1, 1);
	if (!packets->python || !packets->op || !packets->flags || !packets->named ||
	    !packets->placed || !packets->operated || !packets->pathed)
		return false;
	return plumb_perfetto_facts_init(&packets->facts, profile, NAMED_FACTS) &&
	       find_lines(packets);
}

void
plumb_packets_free(struct plumb_packets *packets)
{
	plumb_protobuf_free(&packets->packet);
	plumb_protobuf_free(&packets->interned);
	free(packets->python);
	free(packets->op);
	free(packets->flags);
	free(packets->named);
	free(packets->placed);
	free(packets->operated);
	free(packets->pathed);
	plumb_perfetto_facts_free(&packets->facts);
}

/* ---- packets ---- */

void
plumb_packet_begin(struct plumb_packets *packets, int64_t time)
{
	struct plumb_protobuf *m = &packets->packet;

	plumb_protobuf_clear(m);
	plumb_protobuf_clear(&packets->interned);
	plumb_protobuf_begin(m, TRACE_PACKET);
	if (time != PLUMB_UNKNOWN)
		plumb_protobuf_number(m, PACKET_TIME, (uint64_t)time);
	plumb_protobuf_number(m, PACKET_SEQUENCE, SEQUENCE);
	plumb_protobuf_number(m, PACKET_FLAGS,
	                      packets->started ? FLAG_NEEDS_STATE
	                                       : FLAG_STATE_CLEARED | FLAG_NEEDS_STATE);
	packets->started = true;
}

void
plumb_packet_end(struct plumb_packets *packets)
{
	struct plumb_protobuf *m = &packets->packet;

	if (plumb_protobuf_failed(&packets->interned))
		packets->failed = true;
	else if (packets->interned.size)
		plumb_protobuf_bytes(m, PACKET_INTERNED, packets->interned.data,
		                     packets->interned.size);
	plumb_protobuf_end(m);
	if (plumb_protobuf_failed(m))
		packets->failed = true;
	else
		fwrite(m->data, 1, m->size, packets->out);
}

static void
put_clock(struct plumb_protobuf *m, unsigned clock, int64_t time)
{
	plumb_protobuf_begin(m, SNAPSHOT_CLOCK);
	plumb_protobuf_number(m, CLOCK_NUMBER, clock);
	plumb_protobuf_number(m, CLOCK_TIME, (uint64_t)time);
	plumb_protobuf_end(m);
}

void
plumb_packet_clocks(struct plumb_packets *packets, int64_t monotonic, int64_t realtime)
{
	struct plumb_protobuf *m = &packets->packet;

	plumb_packet_begin(packets, monotonic);
	plumb_protobuf_begin(m, PACKET_CLOCKS);
	put_clock(m, CLOCK_IS_MONOTONIC, monotonic);
	put_clock(m, CLOCK_IS_REALTIME, realtime);
	plumb_protobuf_number(m, SNAPSHOT_PRIMARY, CLOCK_IS_MONOTONIC);
	plumb_protobuf_end(m);
	plumb_packet_end(packets);
}

/* ---- tracks ---- */

void
plumb_track_begin(struct plumb_packets *packets, uint64_t uuid, uint64_t parent, const char *name)
{
	plumb_packet_begin(packets, PLUMB_UNKNOWN);
	plumb_protobuf_begin(&packets->packet, PACKET_TRACK);
	plumb_protobuf_number(&packets->packet, TRACK_UUID, uuid);
	if (parent)
		plumb_protobuf_number(&packets->packet, TRACK_PARENT, parent);
	if (name)
		plumb_protobuf_text(&packets->packet, TRACK_NAME, name);
}

void
plumb_track_process(struct plumb_packets *packets, int64_t pid, const char *name,
                    const char *command, const char *const *labels)
{
	struct plumb_protobuf *m = &packets->packet;

	plumb_protobuf_begin(m, TRACK_PROCESS);
	plumb_protobuf_number(m, PROCESS_PID, (uint64_t)pid);
	if (command)
		plumb_protobuf_text(m, PROCESS_COMMAND, command);
	plumb_protobuf_text(m, PROCESS_NAME, name);
	for (; *labels; labels++)
		plumb_protobuf_text(m, PROCESS_LABEL, *labels);
	plumb_protobuf_end(m);
}

void
plumb_track_thread(struct plumb_packets *packets, int64_t pid, int64_t tid, const char *name)
{
	struct plumb_protobuf *m = &packets->packet;

	plumb_protobuf_begin(m, TRACK_THREAD);
	plumb_protobuf_number(m, THREAD_PID, (uint64_t)pid);
	plumb_protobuf_number(m, THREAD_TID, (uint64_t)tid);
	if (name)
		plumb_protobuf_text(m, THREAD_NAME, name);
	plumb_protobuf_end(m);
}

void
plumb_track_counter(struct plumb_packets *packets, const char *unit)
{
	plumb_protobuf_begin(&packets->packet, TRACK_COUNTER);
	plumb_protobuf_text(&packets->packet, COUNTER_UNIT, unit);
	plumb_protobuf_end(&packets->packet);
}

void
plumb_track_end(struct plumb_packets *packets)
{
	plumb_protobuf_end(&packets->packet);
	plumb_packet_end(packets);
}

/* ---- interned texts ---- */

static void
intern_bytes(struct plumb_packets *p, uint32_t kind, uint64_t iid, const char *text, size_t bytes)
{
	plumb_protobuf_begin(&p->interned, kind);
	plumb_protobuf_number(&p->interned, ENTRY_NUMBER, iid);
	plumb_protobuf_bytes(&p->interned, ENTRY_TEXT, text, bytes);
	plumb_protobuf_end(&p->interned);
}

static void
intern_text(struct plumb_packets *p, uint32_t kind, uint64_t iid, const char *text)
{
	intern_bytes(p, kind, iid, text, strlen(text));
}

/* Was bit NUMBER not set yet? Sets it. */
static bool
first_time(unsigned char *bits, uint32_t number)
{
	bool first = !(bits[number / 8] >> number % 8 & 1);

	bits[number / 8] |= (unsigned char)(1u << number % 8);
	return first;
}

static void
append_place(struct plumb_packets *p, uint32_t frame, struct plumb_export_text *text)
{
	uint32_t line;
	const char *file = plumb_export_source(p->profile, frame, &line);
	char number[16];

	plumb_export_append(text, file ? file : "?");
	snprintf(number, sizeof number, line ? ":%" PRIu32 " (" : " (", line);
	plumb_export_append(text, number);
	plumb_export_append(text, plumb_frame_label(p->profile, frame));
	plumb_export_append(text, ")");
}

/* The frames from the root to CONTEXT; of a deep path both ends. */
static void
append_path(struct plumb_packets *p, uint32_t context, struct plumb_export_text *text)
{
	const struct plumb_context *contexts = p->profile->contexts;
	uint32_t depth = contexts[context].depth, shown[PATH_OUTER + PATH_INNER], count = 0;
	bool whole = depth <= PATH_OUTER + PATH_INNER;
	char number[48];

	for (uint32_t c = context; c; c = contexts[c].parent)
		if (whole || contexts[c].depth <= PATH_OUTER ||
		    contexts[c].depth > depth - PATH_INNER)
			shown[count++] = c;
	for (uint32_t i = count; i-- > 0;) {
		plumb_export_label(p->profile, shown[i], text);
		if (!whole && contexts[shown[i]].depth == PATH_OUTER) {
			snprintf(number, sizeof number, " > (%" PRIu32 " more)",
			         depth - PATH_OUTER - PATH_INNER);
			plumb_export_append(text, number);
		}
		if (i)
			plumb_export_append(text, " > ");
	}
}

static void
intern_made(struct plumb_packets *p, uint64_t iid, uint32_t number,
            void (*append)(struct plumb_packets *, uint32_t, struct plumb_export_text *))
{
	struct plumb_export_text text = { 0 };

	append(p, number, &text);
	p->failed |= text.failed;
	intern_bytes(p, INTERNED_TEXT, iid, text.bytes.items, text.bytes.count);
	plumb_vec_free(&text.bytes);
}

/* ---- events ---- */

void
plumb_event_begin(struct plumb_packets *packets, uint32_t type, uint64_t track)
{
	plumb_protobuf_begin(&packets->packet, PACKET_EVENT);
	plumb_protobuf_number(&packets->packet, EVENT_TYPE, type);
	plumb_protobuf_number(&packets->packet, EVENT_TRACK, track);
}

void
plumb_event_end(struct plumb_packets *packets)
{
	plumb_protobuf_end(&packets->packet);
}

void
plumb_event_flow(struct plumb_packets *packets, uint64_t flow, bool last)
{
	plumb_protobuf_fixed64(&packets->packet, last ? EVENT_LAST_FLOW : EVENT_FLOW, flow);
}

void
plumb_event_value(struct plumb_packets *packets, double value)
{
	plumb_protobuf_double(&packets->packet, EVENT_DOUBLE, value);
}

static void
annotate_text(struct plumb_packets *p, uint64_t name, uint64_t text)
{
	plumb_protobuf_begin(&p->packet, EVENT_ANNOTATION);
	plumb_protobuf_number(&p->packet, ANNOTATION_NAME_NUMBER, name);
	plumb_protobuf_number(&p->packet, ANNOTATION_TEXT_NUMBER, text);
	plumb_protobuf_end(&p->packet);
}

/* What is the same in every trace. */
static void
intern_words(struct plumb_packets *p)
{
	if (p->annotations)
		return;
	p->annotations = true;
	intern_text(p, INTERNED_ANNOTATION, NAMED_LINE, "line");
	intern_text(p, INTERNED_ANNOTATION, NAMED_OPERATOR, "operator");
	intern_text(p, INTERNED_ANNOTATION, NAMED_PASS, "pass");
	intern_text(p, INTERNED_ANNOTATION, NAMED_PATH, "path");
	for (unsigned i = 0; i < PLUMB_FACT_COUNT; i++)
		intern_text(p, INTERNED_ANNOTATION, NAMED_FACTS + i, plumb_fact_names[i]);
	intern_text(p, INTERNED_TEXT, first_pass_iid(p) + PLUMB_CONTEXT_BACKWARD, "backward");
	intern_text(p, INTERNED_TEXT, first_pass_iid(p) + PLUMB_CONTEXT_ACCUMULATION,
	            "gradient accumulation");
}

static void
annotate_context(struct plumb_packets *p, uint32_t context)
{
	const struct plumb_profile *profile = p->profile;
	uint32_t flags = p->flags[context];

	if (p->python[context]) {
		uint32_t frame = profile->contexts[p->python[context]].frame;
		if (first_time(p->placed, frame))
			intern_made(p, 2 * (uint64_t)frame + 1, frame, append_place);
		annotate_text(p, NAMED_LINE, 2 * (uint64_t)frame + 1);
	}
	if (p->op[context]) {
		uint32_t frame = profile->contexts[p->op[context]].frame;
		/* Its own name, as the name of events, is another table of texts. */
		if (first_time(p->operated, frame))
			intern_text(p, INTERNED_TEXT, 2 * (uint64_t)frame + 2,
			            plumb_frame_label(profile, frame));
		annotate_text(p, NAMED_OPERATOR, 2 * (uint64_t)frame + 2);
	}
	if (flags & PLUMB_CONTEXT_ACCUMULATION)
		annotate_text(p, NAMED_PASS, first_pass_iid(p) + PLUMB_CONTEXT_ACCUMULATION);
	else if (flags & PLUMB_CONTEXT_BACKWARD)
		annotate_text(p, NAMED_PASS, first_pass_iid(p) + PLUMB_CONTEXT_BACKWARD);
	if (first_time(p->pathed, context))
		intern_made(p, first_path_iid(p) + context, context, append_path);
	annotate_text(p, NAMED_PATH, first_path_iid(p) + context);
}

void
plumb_event_span(struct plumb_packets *packets, const struct plumb_span *span, bool first)
{
	struct plumb_packets *p = packets;
	uint32_t frame = p->profile->contexts[span->context].frame;
	uint32_t kind = p->profile->frames[frame].kind;

	intern_words(p);
	if (!(p->kinds >> kind & 1)) {
		p->kinds |= 1u << kind;
		intern_text(p, INTERNED_CATEGORY, kind + 1, plumb_frame_kind_names[kind]);
	}
	if (first_time(p->named, frame))
		intern_text(p, INTERNED_NAME, (uint64_t)frame + 1,
		            plumb_frame_label(p->profile, frame));
	plumb_protobuf_number(&p->packet, EVENT_CATEGORY, kind + 1);
	plumb_protobuf_number(&p->packet, EVENT_NAME_NUMBER, (uint64_t)frame + 1);
	annotate_context(p, span->context);
	plumb_perfetto_facts_put(&p->facts, &p->packet, span, first);
}
_Static_assert(PLUMB_FRAME_KIND_COUNT <= 32, "bits of kinds");
