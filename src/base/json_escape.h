/* SPDX-License-Identifier: Apache-2.0 */
/* The escapes of JSON's texts. */
#ifndef PLUMB_BASE_JSON_ESCAPE_H
#define PLUMB_BASE_JSON_ESCAPE_H

#include <stdbool.h>

#include "base/utf8.h"

static inline int
plumb_json_hexadecimal(const char *at)
{
	int code = 0;
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

/* What stands at *AT, behind a backslash, goes to TO as UTF-8, which is never longer than the
 * escape; *AT moves behind it. Half a pair, or a zero that would end the text, becomes U+FFFD.
 * Returns the length, 0: there is no such escape before END. */
static inline size_t
plumb_json_unescape(const char **at, const char *end, char *to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	int code, low;
	if (*at >= end)
		return 0;
	for (int i = 0; from[i]; i++)
		if (from[i] == **at) {
			*to = into[i];
			++*at;
			return 1;
		}
	if (**at != 'u' || end - *at < 5 || (code = plumb_json_hexadecimal(*at + 1)) < 0)
		return 0;
	*at += 5;
	if (code >= 0xd800 && code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
	    (*at)[1] == 'u') {
		low = plumb_json_hexadecimal(*at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			*at += 6;
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		}
	}
	return plumb_utf8_put((uint32_t)code, to);
}

#endif
