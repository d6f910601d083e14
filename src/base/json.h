/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming JSON writer: nothing is kept but the stack of open brackets.
 *
 *	struct plumb_json *json = plumb_json_new(out);
 *	plumb_json_object(json);
 *	plumb_json_key(json, "schema");
 *	plumb_json_integer(json, 1);
 *	plumb_json_key(json, "rows");
 *	plumb_json_array(json);
 *	…
 *	plumb_json_end(json);                      // of the array
 *	plumb_json_end(json);                      // of the object
 *	if (plumb_json_finish(json) < 0) …         // output failed; also frees
 *
 * - Text is strict UTF-8: each byte that is not is written as U+FFFD.
 * - Integers are exact over all 64 bits; a double that is no number (NaN, infinity) is null.
 * - Brackets may nest to any depth. Wrong use (a value without its key, an end too many) makes the
 *   writer fail: it then writes nothing more and plumb_json_finish says so.
 */
#ifndef PLUMB_BASE_JSON_H
#define PLUMB_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct plumb_json;

/* Writes to OUT, which stays the caller's. NULL: no memory; every function takes NULL. */
struct plumb_json *plumb_json_new(FILE *out);
/* Ends the text with a newline and frees. Negative: wrong use, no memory, unclosed brackets or a
 * failed write. */
int plumb_json_finish(struct plumb_json *json);

void plumb_json_object(struct plumb_json *json);
void plumb_json_array(struct plumb_json *json);
void plumb_json_end(struct plumb_json *json);
void plumb_json_key(struct plumb_json *json, const char *key);

void plumb_json_null(struct plumb_json *json);
void plumb_json_bool(struct plumb_json *json, bool value);
void plumb_json_integer(struct plumb_json *json, int64_t value);
void plumb_json_unsigned(struct plumb_json *json, uint64_t value);
/* An integer that may be unknown: INT64_MIN (PLUMB_UNKNOWN) is null. */
void plumb_json_quantity(struct plumb_json *json, int64_t value);
void plumb_json_number(struct plumb_json *json, double value);
/* NULL is null. */
void plumb_json_text(struct plumb_json *json, const char *text);
/* TEXT is JSON already; null when it is NULL or not one JSON value. */
void plumb_json_raw(struct plumb_json *json, const char *text);

/* Key and value in one; an array or object stays open. */
void plumb_json_key_array(struct plumb_json *json, const char *key);
void plumb_json_key_object(struct plumb_json *json, const char *key);
void plumb_json_key_bool(struct plumb_json *json, const char *key, bool value);
void plumb_json_key_number(struct plumb_json *json, const char *key, double value);
/* The number of a line; 0 is null. */
void plumb_json_key_line(struct plumb_json *json, const char *key, uint32_t line);
void plumb_json_key_text(struct plumb_json *json, const char *key, const char *text);
void plumb_json_key_quantity(struct plumb_json *json, const char *key, int64_t value);

/* Is TEXT one JSON value (RFC 8259) in UTF-8, at most 500 brackets deep? */
bool plumb_json_valid(const char *text);

#endif
