/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include <stddef.h>

#include "base/json_escape.h"

/* The next character that is no space; 0 at the end. */
static char
next(struct plumb_json_reader *json)
{
	while (!json->failed && json->at < json->end &&
	       (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
		json->at++;
	return json->failed || json->at >= json->end ? '\0' : *json->at;
}

bool
plumb_json_enter(struct plumb_json_reader *json, char open)
{
	if (next(json) != open)
		return false;
	json->at++;
	return true;
}

/* ---- texts ---- */

/* The text whose quote has been read. */
static char *
text(struct plumb_json_reader *json)
{
	char *start = json->at, *to = start, *at = start;

	while (at < json->end && *at != '"') {
		if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		const char *escape = at + 1;
		size_t length = plumb_json_unescape(&escape, json->end, to);
		if (!length) {
			at = json->end;
			break;
		}
		to += length;
		at += escape - at;
	}
	if (at >= json->end) {
		json->failed = true;
		return NULL;
	}
	json->at = at + 1;
	*to = '\0';
	return start;
}

char *
plumb_json_read_text(struct plumb_json_reader *json)
{
	if (next(json) != '"') {
		plumb_json_skip(json);
		return NULL;
	}
	json->at++;
	return text(json);
}

/* ---- what is in brackets ---- */

/* True: something follows before CLOSE, and what parts it from the item before it is read. */
static bool
follows(struct plumb_json_reader *json, char close)
{
	char c = next(json);

	if (c == close) {
		json->at++;
		return false;
	}
	if (c == ',') {
		json->at++;
		c = next(json);
	}
	if (!c)
		json->failed = true;
	return c != '\0';
}

char *
plumb_json_member(struct plumb_json_reader *json)
{
	char *key;

	if (!follows(json, '}'))
		return NULL;
	if (next(json) != '"') {
		json->failed = true;
		return NULL;
	}
	json->at++;
	key = text(json);
	if (key && next(json) != ':') {
		json->failed = true;
		return NULL;
	}
	json->at += key != NULL;
	return key;
}

bool
plumb_json_item(struct plumb_json_reader *json)
{
	return follows(json, ']');
}

/* ---- numbers, and what is not wanted ---- */

int64_t
plumb_json_read_integer(struct plumb_json_reader *json)
{
	char c = next(json), *at = json->at;
	bool negative = c == '-';
	int64_t number = 0;

	at += negative;
	if (at >= json->end || *at < '0' || *at > '9') {
		plumb_json_skip(json);
		return INT64_MIN;
	}
	for (; at < json->end && *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *at - '0', &number)) {
			plumb_json_skip(json);
			return INT64_MIN;
		}
	if (at < json->end && (*at == '.' || *at == 'e' || *at == 'E')) {
		plumb_json_skip(json);
		return INT64_MIN;
	}
	json->at = at;
	return negative ? -number : number;
}

void
plumb_json_skip(struct plumb_json_reader *json)
{
	uint32_t depth = 0;

	do {
		char c = next(json);
		if (c == '"') {
			json->at++;
			text(json);
		} else if (c == '{' || c == '[') {
			json->at++;
			depth++;
		} else if (c == '}' || c == ']') {
			if (!depth)
				json->failed = true; /* a value was to stand here */
			json->at++;
			depth -= depth > 0;
		} else if ((c == ',' || c == ':') && depth) {
			json->at++;
			continue;
		} else if ((c >= '0' && c <= '9') || c == '-' || (c >= 'a' && c <= 'z') ||
		           (c >= 'A' && c <= 'Z')) {
			/* A number, true, null, or Python's NaN. */
			while (json->at < json->end &&
			       ((*json->at >= '0' && *json->at <= '9') ||
			        (*json->at >= 'a' && *json->at <= 'z') ||
			        (*json->at >= 'A' && *json->at <= 'Z') || *json->at == '-' ||
			        *json->at == '+' || *json->at == '.'))
				json->at++;
		} else {
			json->failed = true;
		}
	} while (depth && !json->failed);
}
