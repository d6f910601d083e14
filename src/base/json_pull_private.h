/* SPDX-License-Identifier: Apache-2.0 */
/* What the window (json_pull.c) does for values (json_values.c). */
#ifndef PLUMB_BASE_JSON_PULL_PRIVATE_H
#define PLUMB_BASE_JSON_PULL_PRIVATE_H

#include "base/json_pull.h"

/* A scan stopped at a zero. After the window's end: more of the file is needed. Within it: the
 * file has a zero byte, which is not JSON. */
void plumb_pull_out_of_bytes(struct plumb_pull *pull);

/* Room for a text of at most BYTES, until the next mark. It is kept once plumb_pull_scratch_used
 * says how long it is. NULL: memory is out, and the reader has failed. */
char *plumb_pull_scratch(struct plumb_pull *pull, size_t bytes);
void plumb_pull_scratch_used(struct plumb_pull *pull, size_t bytes);

/* ---- numbers as programs usually write them ---- */

static inline bool
plumb_pull_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Does C end a number? The zero at the end of the window does not, because the number may go on. */
static inline bool
plumb_pull_ends_number(char c)
{
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Takes the number at *FROM and its value, times 10^SCALE, in one pass over its characters. False:
 * it is something else, longer than 18 characters or finer; nothing is then read. */
static inline bool
plumb_pull_take_number(const char **from, int scale, int64_t *number)
{
	const char *at = *from, *first;
	bool negative = *at == '-';
	uint64_t value = 0;
	at += negative;
	for (first = at; plumb_pull_is_digit(*at); at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (at == first)
		return false;
	if (*at == '.')
		for (at++; plumb_pull_is_digit(*at) && scale; at++, scale--)
			value = value * 10 + (uint64_t)(*at - '0');
	if (at - first > 18 || !plumb_pull_ends_number(*at))
		return false;
	int64_t scaled = (int64_t)value;
	for (; scale; scale--)
		if (__builtin_mul_overflow(scaled, (int64_t)10, &scaled))
			return false;
	*number = negative ? -scaled : scaled;
	*from = at;
	return true;
}

/* Skips a usual number of any length. False: it is something else, and nothing is read. */
static inline bool
plumb_pull_skip_number(const char **from)
{
	const char *at = *from + (**from == '-'), *first = at;
	while (plumb_pull_is_digit(*at))
		at++;
	if (at == first)
		return false;
	if (*at == '.')
		for (at++; plumb_pull_is_digit(*at);)
			at++;
	if (!plumb_pull_ends_number(*at))
		return false;
	*from = at;
	return true;
}

/* ---- json_memo.c ---- */

/* Notes that the number from FROM up to here may be another one in the next object of this kind.
 * It goes times 10^SCALE to INTO; NULL: it is skipped. */
void plumb_pull_note(struct plumb_pull *pull, const char *from, int scale, int64_t *into);

#endif
