/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <string.h>

static const char usual[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char address[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *
plumb_base64(const void *data, size_t bytes, bool url, char *text)
{
	const unsigned char *at = data;
	const char *alphabet = url ? address : usual;
	char *out = text;

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		unsigned long word = (unsigned long)at[i] << 16;

		word |= left > 1 ? (unsigned long)at[i + 1] << 8 : 0;
		word |= left > 2 ? at[i + 2] : 0;
		for (size_t c = 0; c < 4; c++)
			if (c <= left)
				*out++ = alphabet[word >> (18 - 6 * c) & 63];
			else if (!url)
				*out++ = '=';
	}
	*out = '\0';
	return text;
}

void
plumb_base64_write(const void *data, size_t bytes, FILE *out)
{
	char text[PLUMB_BASE64_SIZE(3072)];
	const unsigned char *at = data;

	for (size_t part; bytes; bytes -= part, at += part) {
		part = bytes < 3072 ? bytes : 3072;
		fputs(plumb_base64(at, part, false, text), out);
	}
}
