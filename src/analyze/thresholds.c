/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/format.h"

#define MOST 64 /* thresholds of all analyses together */

struct plumb_thresholds {
	double values[MOST];
};

/* The threshold named by the BYTES bytes at NAME and its number; NULL: there is none. */
static const struct plumb_threshold *
find_threshold(const char *name, size_t bytes, size_t *number)
{
	*number = 0;
	for (size_t a = 0; plumb_analyses[a]; a++) {
		const struct plumb_threshold *t = plumb_analyses[a]->thresholds;

		for (; t && t->name && *number < MOST; t++, ++*number)
			if (strlen(t->name) == bytes && !memcmp(t->name, name, bytes))
				return t;
	}
	return NULL;
}

/* What a value's unit multiplies it by; 0: that unit does not fit. */
static double
find_factor(const char *unit, const char *kind)
{
	static const struct {
		const char *unit, *kind;
		double factor;
	} units[] = {
		{ "%", "share", 0.01 }, { "ns", "ns", 1 },        { "us", "ns", 1e3 },
		{ "ms", "ns", 1e6 },    { "s", "ns", 1e9 },       { "\xc2\xb5s", "ns", 1e3 },
		{ "K", "byte", 1024 },  { "M", "byte", 1048576 }, { "G", "byte", 1073741824.0 },
		{ "x", "ratio", 1 },
	};

	if (!*unit)
		return 1;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(units[i].unit, unit) && !strcmp(units[i].kind, kind))
			return units[i].factor;
	return 0;
}

static bool
parse_value(const struct plumb_threshold *threshold, const char *text, double *value)
{
	char *end;
	double scale;

	/* strtod takes "inf", "nan" and hexadecimal as well, which nobody means here. */
	if (strspn(text, "0123456789.") == 0)
		return false;
	errno = 0;
	*value = strtod(text, &end);
	scale = find_factor(end, threshold->unit);
	*value *= scale;
	return !errno && end != text && scale > 0 && isfinite(*value) && *value >= 0;
}

static int
set_threshold(struct plumb_thresholds *thresholds, const char *entry, size_t bytes,
              struct plumb_error *error)
{
	const char *equals = memchr(entry, '=', bytes);
	const struct plumb_threshold *threshold;
	char value[64];
	size_t number, name = equals ? (size_t)(equals - entry) : bytes;

	threshold = find_threshold(entry, name, &number);
	if (!threshold)
		return plumb_fail(
			error, PLUMB_EUSAGE,
			"there is no threshold \"%.*s\"; \"plumb help findings\" lists them",
			(int)(name < 80 ? name : 80), entry);
	snprintf(value, sizeof value, "%.*s", equals ? (int)(bytes - name - 1) : 0,
	         equals ? equals + 1 : "");
	if (!equals || bytes - name - 1 >= sizeof value ||
	    !parse_value(threshold, value, &thresholds->values[number]))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "threshold %s needs %s=NUMBER, in the unit \"%s\"",
		                  threshold->name, threshold->name, threshold->unit);
	return 0;
}

struct plumb_thresholds *
plumb_thresholds_new(const char *text, struct plumb_error *error)
{
	struct plumb_thresholds *thresholds = calloc(1, sizeof *thresholds);
	size_t number = 0;

	if (!thresholds) {
		plumb_fail_memory(error, "for the analyses");
		return NULL;
	}
	for (size_t a = 0; plumb_analyses[a]; a++) {
		const struct plumb_threshold *t = plumb_analyses[a]->thresholds;

		for (; t && t->name && number < MOST; t++)
			thresholds->values[number++] = t->fallback;
	}
	while (text && *text) {
		size_t bytes = strcspn(text, ",");

		if (bytes && set_threshold(thresholds, text, bytes, error) < 0) {
			free(thresholds);
			return NULL;
		}
		text += bytes;
		text += *text == ',';
	}
	return thresholds;
}

void
plumb_thresholds_free(struct plumb_thresholds *thresholds)
{
	free(thresholds);
}

double
plumb_thresholds_get(const struct plumb_thresholds *thresholds, const char *name)
{
	size_t number;

	return find_threshold(name, strlen(name), &number) ? thresholds->values[number] : NAN;
}

char *
plumb_threshold_format(char *text, size_t size, const char *unit, double value)
{
	char number[PLUMB_FORMAT_SIZE];

	if (!strcmp(unit, "share"))
		snprintf(text, size, "%g %%", 100 * value);
	else if (!strcmp(unit, "ns") && value >= 1e3 && value < 1e6)
		snprintf(text, size, "%g \xc2\xb5s", value / 1e3);
	else if (!strcmp(unit, "ratio"))
		snprintf(text, size, "%g\xc3\x97", value);
	else if (!strcmp(unit, "byte") && value >= 1024 && fmod(value, 1024) == 0)
		snprintf(text, size, "%g KiB", value / 1024);
	else if (!strcmp(unit, "ns"))
		snprintf(text, size, "%s", plumb_format_time(number, (int64_t)value));
	else
		snprintf(text, size, "%g", value);
	return text;
}
