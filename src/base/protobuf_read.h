/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads protobuf messages of unknown origin: out of memory field by field, or as a stream of any
 * size, of which a window is kept. Nothing is copied; what the messages mean is the caller's.
 *
 * In memory:
 *
 *	struct plumb_protobuf_view m = plumb_protobuf_view(bytes);
 *	struct plumb_protobuf_field f;
 *	while (plumb_protobuf_next(&m, &f))
 *		if (plumb_protobuf_is(&f, 2, PLUMB_PROTOBUF_BYTES)) …f.bytes…
 *	if (m.why) …                              // damaged; what was read before is sound
 *
 * As a stream: plumb_protobuf_stream_next gives the fields of the message that is open. The bytes
 * of one of type BYTES are still to be read: plumb_protobuf_take gives them whole,
 * plumb_protobuf_enter opens the message that they are, and without either the next call passes
 * over them. At the end of a message plumb_protobuf_stream_next is false, once, and the message
 * around it is open again.
 */
#ifndef PLUMB_BASE_PROTOBUF_READ_H
#define PLUMB_BASE_PROTOBUF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/input.h"
#include "base/json_pull.h"

enum plumb_protobuf_wire {
	PLUMB_PROTOBUF_VARINT = 0,
	PLUMB_PROTOBUF_FIXED64 = 1,
	PLUMB_PROTOBUF_BYTES = 2,
	PLUMB_PROTOBUF_FIXED32 = 5,
};

struct plumb_protobuf_field {
	uint32_t number;
	uint32_t wire;            /* enum plumb_protobuf_wire */
	uint64_t value;           /* of a number, as it stands; of BYTES in a stream, how many */
	struct plumb_slice bytes; /* of BYTES in memory; never at NULL */
};

static inline bool
plumb_protobuf_is(const struct plumb_protobuf_field *field, uint32_t number, uint32_t wire)
{
	return field->number == number && field->wire == wire;
}

double plumb_protobuf_real(const struct plumb_protobuf_field *field);

/* ---- in memory ---- */

struct plumb_protobuf_view {
	const unsigned char *at, *end;
	const char *why; /* what is wrong, once something is */
};

struct plumb_protobuf_view plumb_protobuf_view(struct plumb_slice bytes);
bool plumb_protobuf_next(struct plumb_protobuf_view *view, struct plumb_protobuf_field *field);
/* The next of packed numbers. */
bool plumb_protobuf_next_packed(struct plumb_protobuf_view *view, uint64_t *value);

/* ---- a stream ---- */

#define PLUMB_PROTOBUF_STREAM_DEPTH 8
/* A message that is taken whole may be so long. */
#define PLUMB_PROTOBUF_TAKE_MAX ((size_t)64 << 20)

struct plumb_protobuf_stream {
	/* private */
	struct plumb_input *input;
	unsigned char *window;
	size_t room, at, filled;
	uint64_t offset; /* of window[0] in the file */
	uint64_t ends[PLUMB_PROTOBUF_STREAM_DEPTH];
	unsigned depth;
	uint64_t pending; /* bytes of the last field that nobody asked for */
	bool ended;
	const char *why;
	uint64_t why_at;
	struct plumb_error error; /* of the input */
};

/* Reads INPUT, from which nothing may have been read. INPUT must outlive the reader. */
int plumb_protobuf_stream_open(struct plumb_protobuf_stream *stream, struct plumb_input *input,
                               struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_protobuf_stream_close(struct plumb_protobuf_stream *stream);

bool plumb_protobuf_stream_next(struct plumb_protobuf_stream *stream,
                                struct plumb_protobuf_field *field);
/* What follows a next that gave BYTES. False: the stream failed. A slice holds until the next
 * call. */
bool plumb_protobuf_enter(struct plumb_protobuf_stream *stream);
bool plumb_protobuf_take(struct plumb_protobuf_stream *stream, struct plumb_slice *bytes);

/* Once true it stays so. */
static inline bool
plumb_protobuf_stream_failed(const struct plumb_protobuf_stream *stream)
{
	return stream->why != NULL;
}
/* The caller finds what it took damaged: WHY lives for ever. */
void plumb_protobuf_stream_fail(struct plumb_protobuf_stream *stream, const char *why);
/* Fills ERROR: the path, the byte, the reason. Returns its code. */
int plumb_protobuf_stream_error(const struct plumb_protobuf_stream *stream, const char *path,
                                struct plumb_error *error);

#endif
