/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums have 64 bits. A table of a few megabytes cannot make them overflow, whatever it holds.
 */
#include "watch/python_lines.h"

enum { FIRST_RANGES = 10, FIRST_LOCATIONS = 11, NO_LINE = -128 };

/* PEP 657: the kinds of an entry, from the first that is not short. */
enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, WITHOUT_LINE = 15 };

static uint32_t
valid_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* 3.9: pairs (bytes to go, lines to go). */
static uint32_t
line_by_steps(const unsigned char *table, size_t bytes, int64_t line, int32_t lasti)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		at += table[i];
		if (at > lasti)
			break;
		line += (signed char)table[i + 1];
	}
	return valid_line(line);
}

/* 3.10: pairs (bytes of the range, its line minus the line before). */
static uint32_t
line_by_ranges(const unsigned char *table, size_t bytes, int64_t line, int32_t lasti)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int step = (signed char)table[i + 1];
		end += table[i];
		if (step != NO_LINE)
			line += step;
		if (lasti < end)
			return step == NO_LINE ? 0 : valid_line(line);
	}
	return 0;
}

/* The signed number at *AT, in groups of six bits, lowest first. Its lowest bit is the sign. */
static int64_t
read_signed(const unsigned char *table, size_t bytes, size_t *at)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (*at < bytes) {
		unsigned char group = table[(*at)++];
		if (shift < 32)
			value |= (uint64_t)(group & 63) << shift;
		shift += 6;
		if (!(group & 64))
			break;
	}
	value &= UINT32_MAX;
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* 3.11: entries of a first byte (1, kind, units of two bytes - 1) and others, whose top bit is
 * clear. */
static uint32_t
line_by_locations(const unsigned char *table, size_t bytes, int64_t line, int32_t lasti)
{
	int64_t end = 0;

	for (size_t i = 0; i < bytes;) {
		unsigned kind = table[i] >> 3 & 15;
		end += 2 * ((table[i] & 7) + 1);
		i++;
		if (kind == LONG || kind == NO_COLUMNS)
			line += read_signed(table, bytes, &i);
		else if (kind >= ONE_LINE && kind < NO_COLUMNS)
			line += kind - ONE_LINE;
		if (lasti < end)
			return kind == WITHOUT_LINE ? 0 : valid_line(line);
		while (i < bytes && !(table[i] & 128))
			i++;
	}
	return 0;
}

uint32_t
plumb_python_line(int minor, const unsigned char *table, size_t bytes, int32_t first_line,
                  int32_t lasti)
{
	if (lasti < 0)
		return valid_line(first_line);
	if (minor >= FIRST_LOCATIONS)
		return line_by_locations(table, bytes, first_line, lasti);
	if (minor >= FIRST_RANGES)
		return line_by_ranges(table, bytes, first_line, lasti);
	return line_by_steps(table, bytes, first_line, lasti);
}
