/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the members of a JSON object by a table. Each row names a member, the kind of its value and
 * where the value goes. The last row has no key: it is for all other members, and skips them if it
 * is { 0 }.
 *
 *	static const struct plumb_pull_field symbol_fields[] = {
 *		PLUMB_PULL_FIELD("kernel_id", INTEGER, PLUMB_PULL_AT(struct symbol, id)),
 *		PLUMB_PULL_FIELD("name", TEXT, PLUMB_PULL_AT(struct symbol, name)),
 *		PLUMB_PULL_FIELD("node", OBJECT, .inner = node_fields),
 *		{ 0 },
 *	};
 *	struct symbol symbol;
 *	while (plumb_pull_row(&pull, symbol_fields, &symbol, &no_symbol, sizeof symbol, NULL))
 *		take(&symbol);
 *
 * Members come in any order. If a key comes twice, the last value stands. A value of another kind
 * is skipped and stores nothing. A table must not lead back to itself: then a file decides how
 * deep the stack becomes.
 */
#ifndef PLUMB_BASE_JSON_FIELDS_H
#define PLUMB_BASE_JSON_FIELDS_H

#include "base/json_pull.h"

enum plumb_pull_kind {
	PLUMB_PULL_SKIP,
	PLUMB_PULL_INTEGER, /* int64_t. With `inner`: or an object that has the number */
	PLUMB_PULL_MICROS,  /* int64_t: ns, from µs with any number of digits */
	PLUMB_PULL_TEXT,    /* struct plumb_slice */
	PLUMB_PULL_RAW,     /* struct plumb_slice: the value as it is written */
	PLUMB_PULL_EITHER,  /* int64_t, and behind it a struct plumb_slice: a text fills both if
	                       it is a number */
	PLUMB_PULL_SEEN,    /* bool: the member is there, with any value */
	PLUMB_PULL_OBJECT,  /* by `inner`, into the same place */
	PLUMB_PULL_LIST,    /* each item by `read` or `inner`, into the same place */
	PLUMB_PULL_CALL,    /* `read` reads the value, whatever it is */
};

/* Reads one value. INTO is the row's place, OWN what the caller of plumb_pull_object gave. */
typedef void plumb_pull_read(struct plumb_pull *pull, void *into, void *own);

struct plumb_pull_field {
	const char *key;
	uint64_t word;  /* the first 8 bytes of key, the first one lowest */
	uint16_t bytes; /* of key */
	uint8_t kind;   /* enum plumb_pull_kind */
	bool varies;    /* json_memo.h: the number is another one in each object */
	uint32_t offset;
	const struct plumb_pull_field *inner;
	plumb_pull_read *read;
};
#define PLUMB_PULL_BYTE(text, i)                                                                   \
	((uint64_t)(unsigned char)(text)[(i) < sizeof text ? (i) : sizeof text - 1] << 8 * (i))
#define PLUMB_PULL_WORD(text)                                                                      \
	(PLUMB_PULL_BYTE(text, 0) | PLUMB_PULL_BYTE(text, 1) | PLUMB_PULL_BYTE(text, 2) |          \
	 PLUMB_PULL_BYTE(text, 3) | PLUMB_PULL_BYTE(text, 4) | PLUMB_PULL_BYTE(text, 5) |          \
	 PLUMB_PULL_BYTE(text, 6) | PLUMB_PULL_BYTE(text, 7))
#define PLUMB_PULL_FIELD(text, what, ...)                                                          \
	{ .key = text,                                                                             \
	  .word = PLUMB_PULL_WORD(text),                                                           \
	  .bytes = sizeof text - 1,                                                                \
	  .kind = PLUMB_PULL_##what,                                                               \
	  __VA_ARGS__ }
#define PLUMB_PULL_AT(type, member) .offset = offsetof(type, member)

/* ---- within PLUMB_PULL_WHOLE ---- */

/* False if the value is not an object; the value is then skipped. */
bool plumb_pull_object(struct plumb_pull *pull, const struct plumb_pull_field *fields, void *into,
                       void *own);

/* Reads one member, whose KEY was read. The search begins at *NEXT, which is FIELDS at first. */
void plumb_pull_value(struct plumb_pull *pull, const struct plumb_pull_field *fields,
                      const struct plumb_pull_field **next, struct plumb_slice key, void *into,
                      void *own);

/* Reads the next member if it is the one that NEXT names, and moves NEXT on. Else false, and
 * nothing is read. */
bool plumb_pull_next_field(struct plumb_pull *pull, const struct plumb_pull_field **next,
                           void *into, void *own);

/* ---- outside ---- */

/* Enters a list or object of any length. False if the value is something else; the value is then
 * skipped. */
bool plumb_pull_enter_long(struct plumb_pull *pull, char open);
/* The next item of a list that was entered. ROW has BYTES, which are those of INITIAL before it is
 * read. 0: there is none, or reading failed. Negative: it is no object, and ROW is as INITIAL. */
int plumb_pull_row(struct plumb_pull *pull, const struct plumb_pull_field *fields, void *row,
                   const void *initial, size_t bytes, void *own);
/* Enters the next item of a list that was entered, if the item is an object. Other items are
 * skipped. False if there is no more item, or reading failed. */
bool plumb_pull_item_long(struct plumb_pull *pull);

/* A member of an object that is too long to be read whole: `read` reads its value. */
struct plumb_pull_part {
	const char *key; /* NULL: any other */
	void (*read)(void *own);
};
/* The members of an object that was entered go to PARTS, whose last one has no key. If that has no
 * `read` either, others are skipped. pull->part is the member's key. */
void plumb_pull_parts(struct plumb_pull *pull, const struct plumb_pull_part *parts, void *own);
/* One member: pull->part is its key. */
void plumb_pull_part(struct plumb_pull *pull, const struct plumb_pull_part *parts, void *own);

#endif
