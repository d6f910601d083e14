/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

size_t
plumb_utf8_character(const char *text, size_t bytes)
{
	const unsigned char *t = (const unsigned char *)text;
	if (!bytes)
		return 0;
	if (t[0] < 0x80)
		return 1;
	size_t length = t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf5 ? 4 : 0;
	if (!length || length > bytes)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((t[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and beyond U+10FFFF show in the second byte. */
	if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f) ||
	    (t[0] == 0xf0 && t[1] < 0x90) || (t[0] == 0xf4 && t[1] > 0x8f))
		return 0;
	return length;
}

bool
plumb_utf8_valid(const char *text, size_t bytes)
{
	size_t at = 0;
	while (at < bytes) {
		uint64_t word;
		if (bytes - at >= sizeof word) {
			memcpy(&word, text + at, sizeof word);
			if (!(word & 0x8080808080808080u)) {
				at += sizeof word;
				continue;
			}
		}
		size_t length = plumb_utf8_character(text + at, bytes - at);
		if (!length)
			return false;
		at += length;
	}
	return true;
}

size_t
plumb_utf8_repair(char *out, const char *text, size_t bytes)
{
	char *end = out;
	for (size_t at = 0; at < bytes;) {
		size_t length = plumb_utf8_character(text + at, bytes - at);
		if (length) {
			memcpy(end, text + at, length);
			end += length;
			at += length;
		} else {
			memcpy(end, "\xef\xbf\xbd", 3);
			end += 3;
			at++;
		}
	}
	return (size_t)(end - out);
}
