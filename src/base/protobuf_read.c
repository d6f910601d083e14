/* SPDX-License-Identifier: Apache-2.0 */
#include "base/protobuf_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)1 << 20)
#define VARINT_MAX 10u
#define NUMBER_MAX ((UINT32_C(1) << 29) - 1)

static const char ends_early[] = "a message ends in the middle of a field";
static const char long_number[] = "a number of more than 64 bits";
static const char no_field[] = "a field of an unknown type";
static const char field_out_of_range[] = "a field whose number is out of range";

/* How many bytes the varint at AT has. 0: it is cut off. More than VARINT_MAX: it is not a
 * varint. */
static size_t
varint(const unsigned char *at, const unsigned char *end, uint64_t *value)
{
	uint64_t sum = 0;
	for (unsigned i = 0; at + i < end; i++) {
		if (i == VARINT_MAX - 1 && at[i] > 1)
			return VARINT_MAX + 1;
		sum |= (uint64_t)(at[i] & 0x7f) << (7 * i);
		if (!(at[i] & 0x80)) {
			*value = sum;
			return i + 1;
		}
	}
	return 0;
}

static uint64_t
little_endian(const unsigned char *at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

double
plumb_protobuf_real(const struct plumb_protobuf_field *field)
{
	double number;
	memcpy(&number, &field->value, sizeof number);
	return number;
}

struct plumb_protobuf_view
plumb_protobuf_view(struct plumb_slice bytes)
{
	const unsigned char *at = (const unsigned char *)(bytes.at ? bytes.at : "");
	return (struct plumb_protobuf_view){ at, at + (bytes.at ? bytes.bytes : 0), NULL };
}

static bool
view_fail(struct plumb_protobuf_view *view, const char *why)
{
	view->why = why;
	view->at = view->end;
	return false;
}

bool
plumb_protobuf_next_packed(struct plumb_protobuf_view *view, uint64_t *value)
{
	if (view->at == view->end)
		return false;
	size_t bytes = varint(view->at, view->end, value);
	if (!bytes || bytes > VARINT_MAX)
		return view_fail(view, bytes ? long_number : ends_early);
	view->at += bytes;
	return true;
}

/* The key's number and type into FIELD; NULL, or what is wrong with it. */
static const char *
split_key(uint64_t key, struct plumb_protobuf_field *field)
{
	*field = (struct plumb_protobuf_field){ .wire = key & 7, .bytes = { "", 0 } };
	if (key >> 3 == 0 || key >> 3 > NUMBER_MAX)
		return field_out_of_range;
	field->number = (uint32_t)(key >> 3);
	return field->wire <= PLUMB_PROTOBUF_BYTES || field->wire == PLUMB_PROTOBUF_FIXED32
	               ? NULL
	               : no_field;
}

bool
plumb_protobuf_next(struct plumb_protobuf_view *view, struct plumb_protobuf_field *field)
{
	uint64_t key;
	if (!plumb_protobuf_next_packed(view, &key))
		return false;
	const char *why = split_key(key, field);
	if (why)
		return view_fail(view, why);
	if (field->wire == PLUMB_PROTOBUF_FIXED64 || field->wire == PLUMB_PROTOBUF_FIXED32) {
		unsigned bytes = field->wire == PLUMB_PROTOBUF_FIXED64 ? 8 : 4;
		if ((size_t)(view->end - view->at) < bytes)
			return view_fail(view, ends_early);
		field->value = little_endian(view->at, bytes);
		view->at += bytes;
		return true;
	}
	if (!plumb_protobuf_next_packed(view, &field->value))
		return view_fail(view, view->why ? view->why : ends_early);
	if (field->wire == PLUMB_PROTOBUF_VARINT)
		return true;
	if (field->value > (size_t)(view->end - view->at))
		return view_fail(view, ends_early);
	field->bytes = (struct plumb_slice){ (const char *)view->at, (size_t)field->value };
	view->at += field->value;
	return true;
}

/* ---- a stream ---- */

int
plumb_protobuf_stream_open(struct plumb_protobuf_stream *stream, struct plumb_input *input,
                           struct plumb_error *error)
{
	*stream = (struct plumb_protobuf_stream){ .input = input, .room = WINDOW };
	stream->window = malloc(stream->room);
	if (!stream->window)
		return plumb_fail_memory(error, "to read %s", plumb_input_path(input));
	return 0;
}

void
plumb_protobuf_stream_close(struct plumb_protobuf_stream *stream)
{
	free(stream->window);
	stream->window = NULL;
}

static uint64_t
position_of(const struct plumb_protobuf_stream *stream)
{
	return stream->offset + stream->at;
}

void
plumb_protobuf_stream_fail(struct plumb_protobuf_stream *stream, const char *why)
{
	if (stream->why)
		return;
	stream->why = why;
	stream->why_at = position_of(stream);
}

static bool
stream_fail(struct plumb_protobuf_stream *stream, const char *why)
{
	plumb_protobuf_stream_fail(stream, why);
	return false;
}

/* Reads until the window has BYTES, or the file ends. Returns how many bytes it has. */
static size_t
fill_window(struct plumb_protobuf_stream *stream, size_t bytes)
{
	if (stream->filled - stream->at >= bytes || stream->ended)
		return stream->filled - stream->at;
	memmove(stream->window, stream->window + stream->at, stream->filled - stream->at);
	stream->offset += stream->at;
	stream->filled -= stream->at;
	stream->at = 0;
	while (stream->filled < bytes && !stream->ended) {
		if (stream->filled == stream->room) {
			/* By doubling, as the file really has them: a length alone takes no
			 * memory. */
			unsigned char *grown = realloc(stream->window, stream->room * 2);
			if (!grown) {
				stream_fail(stream, "not enough memory");
				return 0;
			}
			stream->window = grown;
			stream->room *= 2;
		}
		ssize_t got = plumb_input_read(stream->input, stream->window + stream->filled,
		                               stream->room - stream->filled, &stream->error);
		if (got < 0) {
			stream_fail(stream, stream->error.message);
			return 0;
		}
		stream->ended = got == 0;
		stream->filled += (size_t)got;
	}
	return stream->filled;
}

static bool
skip_bytes(struct plumb_protobuf_stream *stream, uint64_t bytes)
{
	while (bytes && !stream->why) {
		size_t there = fill_window(stream, 1);
		if (!there)
			return stream_fail(stream, "the file ends in the middle of a field");
		size_t now = bytes < there ? (size_t)bytes : there;
		stream->at += now;
		bytes -= now;
	}
	return !stream->why;
}

static uint64_t
end_of(const struct plumb_protobuf_stream *stream)
{
	return stream->depth ? stream->ends[stream->depth - 1] : UINT64_MAX;
}

static bool
stream_varint(struct plumb_protobuf_stream *stream, uint64_t *value)
{
	size_t there = fill_window(stream, VARINT_MAX);
	uint64_t left = end_of(stream) - position_of(stream);
	bool cut = there > left;
	if (cut)
		there = (size_t)left;
	if (stream->why)
		return false;
	const unsigned char *at = stream->window + stream->at;
	size_t bytes = varint(at, at + there, value);
	if (bytes > VARINT_MAX)
		return stream_fail(stream, long_number);
	if (!bytes)
		return stream_fail(stream, cut || left == 0
		                                   ? ends_early
		                                   : "the file ends in the middle of a field");
	stream->at += bytes;
	return true;
}

bool
plumb_protobuf_stream_next(struct plumb_protobuf_stream *stream, struct plumb_protobuf_field *field)
{
	uint64_t key;
	uint64_t pending = stream->pending;
	stream->pending = 0;
	if (stream->why || (pending && !skip_bytes(stream, pending)))
		return false;
	if (stream->depth && position_of(stream) == end_of(stream)) {
		stream->depth--;
		return false;
	}
	if (!stream->depth && !fill_window(stream, 1))
		return false;
	if (!stream_varint(stream, &key))
		return false;
	const char *why = split_key(key, field);
	if (why)
		return stream_fail(stream, why);
	if (field->wire == PLUMB_PROTOBUF_VARINT)
		return stream_varint(stream, &field->value);
	uint64_t bytes = field->wire == PLUMB_PROTOBUF_FIXED64 ? 8 : 4;
	if (field->wire == PLUMB_PROTOBUF_BYTES && !stream_varint(stream, &bytes))
		return false;
	if (bytes > end_of(stream) - position_of(stream))
		return stream_fail(stream, ends_early);
	if (field->wire == PLUMB_PROTOBUF_BYTES) {
		field->value = stream->pending = bytes;
		return true;
	}
	if (fill_window(stream, bytes) < bytes)
		return stream_fail(stream, "the file ends in the middle of a field");
	field->value = little_endian(stream->window + stream->at, (unsigned)bytes);
	stream->at += bytes;
	return true;
}

bool
plumb_protobuf_enter(struct plumb_protobuf_stream *stream)
{
	uint64_t end = position_of(stream) + stream->pending;
	if (stream->why)
		return false;
	if (stream->depth == PLUMB_PROTOBUF_STREAM_DEPTH || end < stream->pending)
		return stream_fail(stream, "messages nested too deep");
	stream->ends[stream->depth++] = end;
	stream->pending = 0;
	return true;
}

bool
plumb_protobuf_take(struct plumb_protobuf_stream *stream, struct plumb_slice *bytes)
{
	uint64_t wanted = stream->pending;
	*bytes = (struct plumb_slice){ "", 0 };
	if (stream->why)
		return false;
	if (wanted > PLUMB_PROTOBUF_TAKE_MAX)
		return stream_fail(stream, "a message of impossible length");
	if (fill_window(stream, (size_t)wanted) < wanted)
		return stream_fail(stream, "the file ends in the middle of a field");
	*bytes = (struct plumb_slice){ (const char *)stream->window + stream->at, (size_t)wanted };
	stream->at += (size_t)wanted;
	stream->pending = 0;
	return true;
}

int
plumb_protobuf_stream_error(const struct plumb_protobuf_stream *stream, const char *path,
                            struct plumb_error *error)
{
	if (stream->error.code)
		return plumb_fail(error, stream->error.code, "%s", stream->error.message);
	return plumb_fail(error, PLUMB_EINPUT, "%s: byte %" PRIu64 ": %s", path, stream->why_at,
	                  stream->why);
}
