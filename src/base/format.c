/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *
format_unknown(char *text)
{
	return strcpy(text, PLUMB_DASH);
}

const char *
plumb_format_count(char *text, int64_t count)
{
	char digits[24];
	char *end = text;
	size_t length;

	if (count == INT64_MIN)
		return format_unknown(text);
	if (count < 0)
		*end++ = '-';
	length = (size_t)snprintf(digits, sizeof digits, "%" PRId64, count < 0 ? -count : count);
	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*end++ = ',';
		*end++ = digits[i];
	}
	*end = '\0';
	return text;
}

/* Writes VALUE with three significant digits, in the largest of UNITS that leaves at least 1. */
static const char *
format_scaled(char *text, int64_t value, double step, const char *const *units, size_t count)
{
	double rest = fabs((double)value);
	const char *sign = value < 0 ? "-" : "";
	size_t unit = 0;

	if (value == INT64_MIN)
		return format_unknown(text);
	/* What rounds up to a full step belongs to the next unit. */
	while (unit + 1 < count && rest >= step - (unit ? 0.5 : 0)) {
		rest /= step;
		unit++;
	}
	if (!unit) {
		snprintf(text, PLUMB_FORMAT_SIZE, "%s%.0f %s", sign, rest, units[unit]);
	} else if (rest >= 999.5) {
		char number[PLUMB_FORMAT_SIZE];
		plumb_format_count(number, (int64_t)(rest + 0.5));
		snprintf(text, PLUMB_FORMAT_SIZE, "%s%.26s %s", sign, number, units[unit]);
	} else {
		int digits = rest < 9.995 ? 2 : rest < 99.95 ? 1 : 0;
		snprintf(text, PLUMB_FORMAT_SIZE, "%s%.*f %s", sign, digits, rest, units[unit]);
	}
	return text;
}

const char *
plumb_format_time(char *text, int64_t ns)
{
	static const char *const units[] = { "ns", "\xc2\xb5s", "ms", "s" };

	return format_scaled(text, ns, 1000, units, sizeof units / sizeof *units);
}

const char *
plumb_format_bytes(char *text, int64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };

	return format_scaled(text, bytes, 1024, units, sizeof units / sizeof *units);
}

const char *
plumb_format_share(char *text, double part, double whole)
{
	double share = 100 * part / whole;

	if (!isfinite(share) || whole == 0)
		return format_unknown(text);
	snprintf(text, PLUMB_FORMAT_SIZE, "%.1f %%", share);
	return text;
}

const char *
plumb_format_quantity(char *text, const char *unit, int64_t value)
{
	if (value == INT64_MIN)
		return format_unknown(text);
	if (!strcmp(unit, "ns"))
		return plumb_format_time(text, value);
	if (!strcmp(unit, "byte"))
		return plumb_format_bytes(text, value);
	if (!strcmp(unit, "ppm"))
		return plumb_format_share(text, (double)value, 1e6);
	return plumb_format_count(text, value);
}

const char *
plumb_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}
