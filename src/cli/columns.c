/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/columns.h"

#include <string.h>

#include "base/utf8.h"
#include "cli/terminal.h"

struct range {
	uint32_t first, last;
};

/* Take no column: combining marks of the common scripts, variation selectors. */
static const struct range zero[] = {
	{ 0x0300, 0x036f },   { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
	{ 0x064b, 0x065f },   { 0x093c, 0x093c }, { 0x0941, 0x0948 }, { 0x094d, 0x094d },
	{ 0x0e31, 0x0e31 },   { 0x0e34, 0x0e3a }, { 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff },
	{ 0x1dc0, 0x1dff },   { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
	{ 0xe0100, 0xe01ef },
};

/* Take two: East Asian wide and fullwidth, and the emoji that terminals draw so. */
static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x2614, 0x2615 },
	{ 0x26a1, 0x26a1 },   { 0x2705, 0x2705 },   { 0x274c, 0x274c },   { 0x2e80, 0x303e },
	{ 0x3041, 0x4dbf },   { 0x4e00, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
	{ 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static int
in_ranges(uint32_t code, const struct range *ranges, size_t count)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (code > ranges[middle].last)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && code >= ranges[low].first;
}

size_t
plumb_columns_next(const char *text, size_t bytes, int *columns)
{
	size_t length = plumb_utf8_character(text, bytes);
	uint32_t code;

	*columns = 1;
	if (length < 2)
		return 1;
	code = plumb_utf8_code(text, length);
	if (plumb_terminal_hides(code))
		return length;
	if (in_ranges(code, zero, sizeof zero / sizeof *zero))
		*columns = 0;
	else if (in_ranges(code, wide, sizeof wide / sizeof *wide))
		*columns = 2;
	return length;
}

int
plumb_columns(const char *text)
{
	size_t bytes = strlen(text);
	int total = 0;

	while (bytes) {
		int columns;
		size_t length = plumb_columns_next(text, bytes, &columns);

		total += columns;
		text += length;
		bytes -= length;
	}
	return total;
}
