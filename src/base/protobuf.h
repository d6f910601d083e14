/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf messages, written into memory one after the other.
 *
 *	struct plumb_protobuf m = { 0 };
 *	plumb_protobuf_number(&m, 1, 42);
 *	plumb_protobuf_text(&m, 2, "name");
 *	plumb_protobuf_begin(&m, 3);               // a message inside, or packed numbers
 *	…
 *	plumb_protobuf_end(&m);
 *	if (!plumb_protobuf_failed(&m))
 *		fwrite(m.data, 1, m.size, out);
 *	plumb_protobuf_clear(&m);                  // keeps the memory for the next one
 *	plumb_protobuf_free(&m);
 *
 * Fields come out in the order of the calls; nothing is left out for being 0.
 */
#ifndef PLUMB_BASE_PROTOBUF_H
#define PLUMB_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUMB_PROTOBUF_DEPTH 16 /* messages within messages */

/* Zero it to start. */
struct plumb_protobuf {
	unsigned char *data;
	size_t size;
	/* private */
	size_t capacity;
	size_t open[PLUMB_PROTOBUF_DEPTH]; /* where the messages begin that are not ended */
	unsigned depth;
	bool failed;
};

void plumb_protobuf_clear(struct plumb_protobuf *message);
void plumb_protobuf_free(struct plumb_protobuf *message);
/* Memory was out, or begin and end do not match: what there is, is no message. */
bool plumb_protobuf_failed(const struct plumb_protobuf *message);

/* uint32, uint64, bool and enum; int32 and int64 too, cast to uint64_t (not sint32, sint64). */
void plumb_protobuf_number(struct plumb_protobuf *message, uint32_t field, uint64_t value);
void plumb_protobuf_fixed64(struct plumb_protobuf *message, uint32_t field, uint64_t value);
void plumb_protobuf_double(struct plumb_protobuf *message, uint32_t field, double value);
/* A string; NULL is "". */
void plumb_protobuf_text(struct plumb_protobuf *message, uint32_t field, const char *text);
void plumb_protobuf_bytes(struct plumb_protobuf *message, uint32_t field, const void *data,
                          size_t bytes);

void plumb_protobuf_begin(struct plumb_protobuf *message, uint32_t field);
void plumb_protobuf_end(struct plumb_protobuf *message);
/* A number without its field, between begin and end: one of a packed repeated field. */
void plumb_protobuf_packed(struct plumb_protobuf *message, uint64_t value);

#endif
