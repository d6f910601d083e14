/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"

#include <endian.h>

#include "base/json_pull_private.h"

#define KEY_MAX 48 /* longer keys are not looked for before they are read */

/* Eight bytes can be read from where any text begins: see json_pull.c. */
static inline uint64_t
word_of(struct plumb_slice key)
{
	uint64_t word;
	memcpy(&word, key.at, sizeof word);
	word = le64toh(word);
	return key.bytes < sizeof word ? word & ((UINT64_C(1) << 8 * key.bytes) - 1) : word;
}

static inline bool
is_key(const struct plumb_pull_field *field, struct plumb_slice key, uint64_t word)
{
	return field->word == word && field->bytes == key.bytes &&
	       (key.bytes <= 8 || !memcmp(field->key + 8, key.at + 8, key.bytes - 8));
}

/* The field that KEY names, or the last row. A program writes the members of its objects in the
 * same order each time, so the search begins at NEXT, behind the field that was found last. */
static inline const struct plumb_pull_field *
find_field(const struct plumb_pull_field *fields, const struct plumb_pull_field *next,
           struct plumb_slice key)
{
	const struct plumb_pull_field *field, *last;
	uint64_t word = word_of(key);
	for (field = next; field->key; field++)
		if (is_key(field, key, word))
			return field;
	last = field;
	for (field = fields; field < next; field++)
		if (is_key(field, key, word))
			return field;
	return last;
}

/* ---- values ---- */

static void
read_raw(struct plumb_pull *pull, struct plumb_slice *raw)
{
	struct plumb_pull_notes *notes = pull->notes;
	plumb_pull_next(pull);
	const char *at = pull->at;
	pull->notes = NULL; /* each number in it counts */
	plumb_pull_skip(pull);
	pull->notes = notes;
	*raw = (struct plumb_slice){ at, (size_t)(pull->at - at) };
}

static void
read_either(struct plumb_pull *pull, char *at)
{
	int64_t *number = (int64_t *)(void *)at;
	struct plumb_slice *text = (struct plumb_slice *)(void *)(at + sizeof *number);
	if (plumb_pull_next(pull) != '"')
		plumb_pull_integer(pull, number);
	else if (plumb_pull_text(pull, text))
		plumb_slice_decimal(*text, 0, number);
}

static void
read_list(struct plumb_pull *pull, const struct plumb_pull_field *field, void *at, void *own)
{
	if (!plumb_pull_enter(pull, '[')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_item(pull))
		if (field->read)
			field->read(pull, at, own);
		else
			plumb_pull_object(pull, field->inner, at, own);
}

/* A number that the objects of a kind do not share. */
static void
note_value(struct plumb_pull *pull, const struct plumb_pull_field *field, void *at)
{
	plumb_pull_next(pull);
	const char *from = pull->at;
	if (field->kind == PLUMB_PULL_MICROS)
		plumb_pull_decimal(pull, 3, at);
	else if (field->kind == PLUMB_PULL_EITHER)
		read_either(pull, at);
	else
		plumb_pull_integer(pull, at);
	plumb_pull_note(pull, from, field->kind == PLUMB_PULL_MICROS ? 3 : 0, at);
}

static inline void
read_value(struct plumb_pull *pull, const struct plumb_pull_field *field, void *into, void *own)
{
	void *at = (char *)into + field->offset;
	if (field->varies && pull->notes) {
		note_value(pull, field, at);
		return;
	}
	switch ((enum plumb_pull_kind)field->kind) {
	case PLUMB_PULL_SEEN:
		*(bool *)at = true;
		plumb_pull_skip(pull);
		return;
	case PLUMB_PULL_SKIP:
		plumb_pull_skip(pull);
		return;
	case PLUMB_PULL_INTEGER:
		if (field->inner && plumb_pull_next(pull) == '{')
			plumb_pull_object(pull, field->inner, at, own);
		else
			plumb_pull_integer(pull, at);
		return;
	case PLUMB_PULL_MICROS:
		plumb_pull_decimal(pull, 3, at);
		return;
	case PLUMB_PULL_TEXT:
		plumb_pull_text(pull, at);
		return;
	case PLUMB_PULL_RAW:
		read_raw(pull, at);
		return;
	case PLUMB_PULL_EITHER:
		read_either(pull, at);
		return;
	case PLUMB_PULL_OBJECT:
		plumb_pull_object(pull, field->inner, at, own);
		return;
	case PLUMB_PULL_LIST:
		read_list(pull, field, at, own);
		return;
	case PLUMB_PULL_CALL:
		field->read(pull, at, own);
		return;
	}
}

void
plumb_pull_value(struct plumb_pull *pull, const struct plumb_pull_field *fields,
                 const struct plumb_pull_field **next, struct plumb_slice key, void *into,
                 void *own)
{
	const struct plumb_pull_field *field = find_field(fields, *next, key);
	if (field->key)
		*next = field + 1;
	read_value(pull, field, into, own);
}

static inline const char *
after_space(const char *at)
{
	while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
		at++;
	return at;
}

/* Is FIELD's the next key? Then it is read, up to its colon. Else nothing is: whatever is unusual,
 * or cut off by the end of the window, is for plumb_pull_member. So many bytes can be read from
 * where a key begins: see json_pull.c. */
static inline bool
take_key(struct plumb_pull *pull, const struct plumb_pull_field *field)
{
	const char *at = pull->at;
	struct plumb_slice key;
	if (pull->state != PLUMB_PULL_OK || field->bytes > KEY_MAX || (!pull->first && *at != ','))
		return false;
	at = after_space(at + !pull->first);
	if (*at != '"')
		return false;
	key = (struct plumb_slice){ at + 1, field->bytes };
	if (!is_key(field, key, word_of(key)) || at[1 + key.bytes] != '"')
		return false;
	at = after_space(at + 2 + key.bytes);
	if (*at != ':')
		return false;
	pull->at = at + 1;
	pull->first = false;
	return true;
}

bool
plumb_pull_next_field(struct plumb_pull *pull, const struct plumb_pull_field **next, void *into,
                      void *own)
{
	const struct plumb_pull_field *field = *next;
	if (!field->key || !take_key(pull, field))
		return false;
	*next = field + 1;
	read_value(pull, field, into, own);
	return true;
}

bool
plumb_pull_object(struct plumb_pull *pull, const struct plumb_pull_field *fields, void *into,
                  void *own)
{
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return false;
	}
	const struct plumb_pull_field *next = fields;
	struct plumb_slice key;
	for (;;) {
		if (plumb_pull_next_field(pull, &next, into, own))
			continue;
		if (!plumb_pull_member(pull, &key))
			return true;
		plumb_pull_value(pull, fields, &next, key, into, own);
	}
}

/* ---- what is too long to be read whole ---- */

bool
plumb_pull_enter_long(struct plumb_pull *pull, char open)
{
	bool entered = false;
	PLUMB_PULL_WHOLE(pull)
	entered = plumb_pull_enter(pull, open);
	if (!entered && !plumb_pull_failed(pull))
		plumb_pull_skip_long(pull);
	return entered && !plumb_pull_failed(pull);
}

int
plumb_pull_row(struct plumb_pull *pull, const struct plumb_pull_field *fields, void *row,
               const void *initial, size_t bytes, void *own)
{
	int got = 0;
	PLUMB_PULL_WHOLE(pull)
	{
		memcpy(row, initial, bytes);
		got = plumb_pull_item(pull);
		if (got && !plumb_pull_object(pull, fields, row, own))
			got = -1;
	}
	return plumb_pull_failed(pull) ? 0 : got;
}

bool
plumb_pull_item_long(struct plumb_pull *pull)
{
	for (;;) {
		bool more = false, entered = false;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_item(pull);
			entered = more && plumb_pull_enter(pull, '{');
		}
		if (!more || plumb_pull_failed(pull))
			return false;
		if (entered)
			return true;
		plumb_pull_skip_long(pull);
	}
}

void
plumb_pull_part(struct plumb_pull *pull, const struct plumb_pull_part *parts, void *own)
{
	while (parts->key && strcmp(parts->key, pull->part) != 0)
		parts++;
	if (parts->read)
		parts->read(own);
	else
		plumb_pull_skip_long(pull);
}

void
plumb_pull_parts(struct plumb_pull *pull, const struct plumb_pull_part *parts, void *own)
{
	for (;;) {
		struct plumb_slice key;
		bool more = false;
		PLUMB_PULL_WHOLE(pull)
		more = plumb_pull_member(pull, &key);
		if (!more || plumb_pull_failed(pull))
			return;
		/* What reads the value moves the window, and the key with it. */
		size_t bytes = key.bytes < sizeof pull->part ? key.bytes : 0;
		memcpy(pull->part, key.at, bytes);
		pull->part[bytes] = '\0';
		plumb_pull_part(pull, parts, own);
	}
}
