/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: https://protobuf.dev/programming-guides/encoding/ */
#include "base/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };
#define VARINT_MOST 10

void
plumb_protobuf_clear(struct plumb_protobuf *message)
{
	message->size = 0;
	message->depth = 0;
	message->failed = false;
}

void
plumb_protobuf_free(struct plumb_protobuf *message)
{
	free(message->data);
	*message = (struct plumb_protobuf){ 0 };
}

bool
plumb_protobuf_failed(const struct plumb_protobuf *message)
{
	return message->failed || message->depth;
}

/* Makes room for BYTES more bytes; NULL: no memory. */
static unsigned char *
make_room(struct plumb_protobuf *message, size_t bytes)
{
	if (message->failed || bytes > SIZE_MAX / 4 - message->size) {
		message->failed = true;
		return NULL;
	}
	if (message->size + bytes > message->capacity) {
		size_t capacity = (message->size + bytes) * 2 + 64;
		unsigned char *grown = realloc(message->data, capacity);
		if (!grown) {
			message->failed = true;
			return NULL;
		}
		message->data = grown;
		message->capacity = capacity;
	}
	return message->data + message->size;
}

/* VALUE in groups of seven bits, the least first; returns how many bytes. */
static size_t
put_varint(unsigned char *at, uint64_t value)
{
	size_t bytes = 0;

	for (; value >= 0x80; value >>= 7)
		at[bytes++] = (unsigned char)(value | 0x80);
	at[bytes++] = (unsigned char)value;
	return bytes;
}

void
plumb_protobuf_packed(struct plumb_protobuf *message, uint64_t value)
{
	unsigned char *at = make_room(message, VARINT_MOST);

	if (at)
		message->size += put_varint(at, value);
}

static void
put_key(struct plumb_protobuf *message, uint32_t field, unsigned type)
{
	plumb_protobuf_packed(message, (uint64_t)field << 3 | type);
}

static void
put_bytes(struct plumb_protobuf *message, const void *data, size_t bytes)
{
	unsigned char *at = make_room(message, bytes);

	if (!at || !bytes)
		return;
	memcpy(at, data, bytes);
	message->size += bytes;
}

void
plumb_protobuf_number(struct plumb_protobuf *message, uint32_t field, uint64_t value)
{
	put_key(message, field, VARINT);
	plumb_protobuf_packed(message, value);
}

void
plumb_protobuf_fixed64(struct plumb_protobuf *message, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	put_key(message, field, FIXED64);
	put_bytes(message, bytes, sizeof bytes);
}

void
plumb_protobuf_double(struct plumb_protobuf *message, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	plumb_protobuf_fixed64(message, field, bits);
}

void
plumb_protobuf_bytes(struct plumb_protobuf *message, uint32_t field, const void *data, size_t bytes)
{
	put_key(message, field, LENGTH);
	plumb_protobuf_packed(message, bytes);
	put_bytes(message, data, bytes);
}

void
plumb_protobuf_text(struct plumb_protobuf *message, uint32_t field, const char *text)
{
	plumb_protobuf_bytes(message, field, text, text ? strlen(text) : 0);
}

void
plumb_protobuf_begin(struct plumb_protobuf *message, uint32_t field)
{
	put_key(message, field, LENGTH);
	if (message->depth == PLUMB_PROTOBUF_DEPTH)
		message->failed = true;
	else
		message->open[message->depth++] = message->size;
}

/* The length stands before the message and is known only now: what was written moves up. */
void
plumb_protobuf_end(struct plumb_protobuf *message)
{
	unsigned char length[VARINT_MOST];
	size_t start, bytes, digits;

	if (!message->depth) {
		message->failed = true;
		return;
	}
	start = message->open[--message->depth];
	if (message->failed)
		return;
	bytes = message->size - start;
	digits = put_varint(length, bytes);
	if (!make_room(message, digits))
		return;
	memmove(message->data + start + digits, message->data + start, bytes);
	memcpy(message->data + start, length, digits);
	message->size += digits;
}
