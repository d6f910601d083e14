/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON of unknown origin in place: nothing is allocated, nothing is kept, and what is not
 * JSON ends the reading instead of the program.
 *
 *	struct plumb_json_reader json = { text, text + bytes, false };
 *	char *key;
 *
 *	if (plumb_json_enter(&json, '{'))
 *		while ((key = plumb_json_member(&json)))
 *			if (!strcmp(key, "name"))
 *				name = plumb_json_read_text(&json);
 *			else
 *				plumb_json_skip(&json);
 *	if (json.failed) …
 *
 * Texts are decoded where they stand and terminated, so TEXT is changed and must outlive them.
 */
#ifndef PLUMB_BASE_JSON_READ_H
#define PLUMB_BASE_JSON_READ_H

#include <stdbool.h>
#include <stdint.h>

struct plumb_json_reader {
	char *at, *end; /* *end is not read */
	bool failed;
};

/* Goes into an object or array ('{' or '['). False, with nothing read, where something else
 * stands. */
bool plumb_json_enter(struct plumb_json_reader *json, char open);
/* In an object: the next member's key; its value must be read next. NULL: the object has ended. */
char *plumb_json_member(struct plumb_json_reader *json);
/* In an array: there is another item, which must be read next. False: the array has ended. */
bool plumb_json_item(struct plumb_json_reader *json);
/* A text. NULL where something else stands, which is skipped. */
char *plumb_json_read_text(struct plumb_json_reader *json);
/* A whole number. INT64_MIN where something else stands, which is skipped. */
int64_t plumb_json_read_integer(struct plumb_json_reader *json);
/* Any value, whatever is in it. */
void plumb_json_skip(struct plumb_json_reader *json);

#endif
