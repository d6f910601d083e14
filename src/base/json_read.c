/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include <stddef.h>

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

/* Four hexadecimal digits at AT, or -1. */
static int
hexadecimal(const char *at, const char *end)
{
	int code = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : -1;
		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

/* Writes CODE as UTF-8, at most four bytes, which its escape was longer than. */
static char *
put(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 63));
	} else if (code < 0x10000) {
		*to++ = (char)(0xe0 | code >> 12);
		*to++ = (char)(0x80 | (code >> 6 & 63));
		*to++ = (char)(0x80 | (code & 63));
	} else {
		*to++ = (char)(0xf0 | code >> 18);
		*to++ = (char)(0x80 | (code >> 12 & 63));
		*to++ = (char)(0x80 | (code >> 6 & 63));
		*to++ = (char)(0x80 | (code & 63));
	}
	return to;
}

/* The character after a backslash and "u"; moves AT behind it. -1: there is none. */
static int32_t
escaped(char **at, const char *end)
{
	int32_t code = hexadecimal(*at, end);

	if (code < 0)
		return -1;
	*at += 4;
	if (code >= 0xd800 && code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
	    (*at)[1] == 'u') {
		int32_t low = hexadecimal(*at + 2, end);
		if (low >= 0xdc00 && low < 0xe000) {
			*at += 6;
			return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	/* Half a pair, or a zero that would end the text. */
	return (code >= 0xd800 && code < 0xe000) || !code ? 0xfffd : code;
}

/* The text whose quote has been read. */
static char *
text(struct plumb_json_reader *json)
{
	static const char from[] = "\"\\/bfnrt", to_char[] = "\"\\/\b\f\n\r\t";
	char *start = json->at, *to = start, *at = start;

	while (at < json->end && *at != '"') {
		if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		if (++at >= json->end)
			break;
		if (*at == 'u') {
			at++;
			int32_t code = escaped(&at, json->end);
			if (code < 0)
				goto failed;
			to = put(to, (uint32_t)code);
			continue;
		}
		size_t i = 0;
		while (from[i] && from[i] != *at)
			i++;
		if (!from[i])
			goto failed;
		*to++ = to_char[i];
		at++;
	}
	if (at >= json->end)
		goto failed;
	json->at = at + 1;
	*to = '\0';
	return start;
failed:
	json->failed = true;
	return NULL;
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
