/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8: checking text, and making any bytes into text.
 */
#ifndef PLUMB_BASE_UTF8_H
#define PLUMB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The length of the valid character at TEXT, within BYTES bytes; 0 if there is none. */
size_t plumb_utf8_character(const char *text, size_t bytes);

/* The number of the valid character at TEXT, which is LENGTH bytes long. */
static inline uint32_t
plumb_utf8_code(const char *text, size_t length)
{
	const unsigned char *t = (const unsigned char *)text;
	uint32_t code = length < 2 ? t[0] : t[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (t[i] & 0x3f);
	return code;
}

bool plumb_utf8_valid(const char *text, size_t bytes);

/* Copies BYTES bytes of TEXT to OUT (room for 3 * BYTES) with every byte that is not part of a
 * valid character replaced by U+FFFD. Returns the length. Nothing is terminated. */
size_t plumb_utf8_repair(char *out, const char *text, size_t bytes);

/* How many bytes of TEXT to keep so that they are at most MOST and no character is cut in two. */
static inline size_t
plumb_utf8_cut(const char *text, size_t most)
{
	size_t bytes = strnlen(text, most);
	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

/* Puts CHARACTER into OUT, which has room for 4; returns how many bytes it took. What is no
 * character, or would end a string, becomes U+FFFD. */
static inline size_t
plumb_utf8_put(uint32_t character, char *out)
{
	if (character == 0 || character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
		character = 0xfffd;
	if (character < 0x80) {
		out[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		out[0] = (char)(0xc0 | character >> 6);
		out[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		out[0] = (char)(0xe0 | character >> 12);
		out[1] = (char)(0x80 | (character >> 6 & 0x3f));
		out[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | character >> 18);
	out[1] = (char)(0x80 | (character >> 12 & 0x3f));
	out[2] = (char)(0x80 | (character >> 6 & 0x3f));
	out[3] = (char)(0x80 | (character & 0x3f));
	return 4;
}

#endif
