/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence of findings in words: {"gpu_time_ns": 5, …} as "GPU time 5 ns, …". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "view/findings.h"

#define LISTED 3 /* elements of a list */
#define NAME_MOST 60

/* The end of the JSON value at TEXT, which is valid. */
static const char *
value_end(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		if (*text == '"') {
			for (text++; *text && *text != '"'; text++)
				text += *text == '\\' && text[1];
			if (!*text)
				return text;
			if (!depth)
				return text + 1;
			continue;
		}
		if (*text == '{' || *text == '[') {
			depth++;
		} else if (*text == '}' || *text == ']') {
			if (!depth)
				return text;
			if (!--depth)
				return text + 1;
		} else if (!depth && (*text == ',' || *text == ' ' || *text == '\n')) {
			return text;
		}
	}
	return text;
}

static const char *
skip_space(const char *text)
{
	return text + strspn(text, " \t\r\n:,");
}

static bool
ends_with(const char *text, size_t bytes, const char *end)
{
	return bytes >= strlen(end) && !memcmp(text + bytes - strlen(end), end, strlen(end));
}

static bool
is_key(const char *text, size_t bytes, const char *key)
{
	return bytes == strlen(key) && !memcmp(text, key, bytes);
}

/* Shortens a name of a list by the parts that make names of kernels long. *TEXT is then its start;
 * returns its bytes. */
static size_t
core_of_name(const char **text, size_t bytes)
{
	const char *angle;

	if (bytes > 5 && !memcmp(*text, "void ", 5)) {
		*text += 5;
		bytes -= 5;
	}
	angle = memchr(*text, '<', bytes);
	return angle && angle > *text ? (size_t)(angle - *text) : bytes;
}

/* Keys that are not plain words. In all other keys, "_" is written as a blank. A share says of what
 * it is. */
static const struct {
	const char *key, *words, *of;
} plain_keys[] = {
	{ "host_ns", "CPU busy" },
	{ "gpu_ns", "GPU busy with it" },
	{ "gpu_time_ns", "GPU time" },
	{ "cores", "processors" },
	{ "device_busy_ns", "GPU busy" },
	{ "device_span_ns", "from first to last GPU work" },
	{ "idle_share", "GPU idle", "of that" },
	{ "hidden_share", "hidden", "of the communication" },
	{ "overlap_share", "copies take", "of the intervals" },
	{ "interval_share", "intervals take", "of the loop" },
	{ "looked_at_share", "looked at", "of the collectives" },
	{ "step_saving_ns", "saving per iteration" },
	{ "saving_bound", "limited by" },
	{ "hides_behind", "hidden behind" },
	{ "waiting_share", "waiting", "of the samples" },
	{ "covered_share", "waiting while another warp issued", "of the samples" },
	{ "cause_share", "this cause", "of the waiting" },
	{ "mean_ns", "mean" },
	{ "equal_share", "run equally often", "of the time" },
	{ "gaps_ns", "gaps that would go" },
	{ "gb_per_s", "GB/s" },
	{ "pinned_gb_per_s", "GB/s of pinned copies" },
	{ "host_wait_ns", "host waits" },
	{ "waited_ns", "GPU waits" },
	{ "filled", "meanwhile" },
	{ "explains", "this explains" },
	{ "slope_ns", "slope in ns per iteration" },
	{ "slope_error_ns", "\xc2\xb1 ns" },
	{ "kernels_more", "more kernels per iteration" },
	{ "duration_ns", "mean duration" },
	{ "interval_ns", "mean interval" },
	{ "contended_ns", "shared" },
	{ "ns", "time" },
};

/* Writes a key without its unit, because the value has the unit. */
static void
write_key(FILE *out, const char *key, size_t bytes)
{
	for (size_t i = 0; i < sizeof plain_keys / sizeof *plain_keys; i++)
		if (is_key(key, bytes, plain_keys[i].key)) {
			fputs(plain_keys[i].words, out);
			return;
		}
	if (ends_with(key, bytes, "_ns"))
		bytes -= 3;
	for (size_t i = 0; i < bytes; i++)
		putc(key[i] == '_' ? ' ' : key[i], out);
}

static void
write_of(FILE *out, const char *key, size_t bytes)
{
	for (size_t i = 0; i < sizeof plain_keys / sizeof *plain_keys; i++)
		if (plain_keys[i].of && is_key(key, bytes, plain_keys[i].key))
			fprintf(out, " %s", plain_keys[i].of);
}

/* The name of a list's element that has none: it is what was outside all the others. */
static const char *
name_of_unnamed(const char *key, size_t bytes)
{
	if (is_key(key, bytes, "operators"))
		return "outside any operator";
	return is_key(key, bytes, "lines") ? "outside your code" : "unknown";
}

static void
write_name(FILE *out, const char *text, size_t bytes)
{
	fprintf(out, "%.*s%s", (int)(bytes <= NAME_MOST ? bytes : NAME_MOST), text,
	        bytes <= NAME_MOST ? "" : PLUMB_ELLIPSIS);
}

/* A number with the unit that its key names. */
static void
write_number(FILE *out, const char *key, size_t bytes, const char *value)
{
	char text[PLUMB_FORMAT_SIZE];
	bool share = ends_with(key, bytes, "share");
	double number = strtod(value, NULL);

	write_key(out, key, bytes);
	putc(' ', out);
	if (ends_with(key, bytes, "_ns") && !strstr(key, "slope"))
		fputs(plumb_format_time(text, strtoll(value, NULL, 10)), out);
	else if (ends_with(key, bytes, "bytes"))
		fputs(plumb_format_bytes(text, llround(fmin(number, 9e18))), out);
	else if (share)
		fputs(plumb_format_share(text, number, 1), out);
	else
		fprintf(out, fabs(number) < 1000 && number != round(number) ? "%.3g" : "%.0f",
		        number);
	if (share)
		write_of(out, key, bytes);
}

/* Writes the first texts of a list's elements. Names that are equal when shortened are written
 * once. */
static void
write_list(FILE *out, const char *key, size_t bytes, const char *list, const char *end)
{
	struct {
		const char *text;
		size_t bytes;
	} listed[LISTED];
	int count = 0;

	write_key(out, key, bytes);
	putc(' ', out);
	for (const char *at = list + 1; at < end - 1; at = skip_space(value_end(skip_space(at)))) {
		const char *value = skip_space(at), *stop = value_end(value);
		bool known = false;

		if (*value == '{') {
			value = skip_space(value_end(skip_space(value + 1)));
			stop = value_end(value);
		}
		if (stop <= value)
			continue;
		const char *text = *value == '"'   ? value + 1
		                   : *value == 'n' ? name_of_unnamed(key, bytes)
		                                   : value;
		size_t length = *value == '"'   ? core_of_name(&text, (size_t)(stop - value - 2))
		                : *value == 'n' ? strlen(text)
		                                : (size_t)(stop - value);
		for (int i = 0; i < count && i < LISTED; i++)
			known |= listed[i].bytes == length && !memcmp(listed[i].text, text, length);
		if (known || count++ >= LISTED)
			continue;
		listed[count - 1].text = text;
		listed[count - 1].bytes = length;
		fputs(count > 1 ? "; " : "", out);
		write_name(out, text, length);
	}
	if (count > LISTED)
		fprintf(out, " and %d more", count - LISTED);
	else if (!count)
		fputs(PLUMB_DASH, out);
}

/* Is it a list of one element without a name? Such a list says nothing. */
static bool
says_nothing(const char *value, const char *stop)
{
	const char *first, *name;

	if (*value != '[')
		return false;
	first = skip_space(value + 1);
	name = *first == '{' ? skip_space(value_end(skip_space(first + 1))) : first;
	return *name == 'n' && skip_space(value_end(first)) >= stop - 1;
}

void
plumb_findings_why(const char *evidence, FILE *out)
{
	bool first = true;

	if (!evidence || !plumb_json_valid(evidence) || *skip_space(evidence) != '{')
		return;
	for (const char *at = skip_space(skip_space(evidence) + 1); *at == '"';) {
		const char *end = value_end(at), *value = skip_space(end), *stop = value_end(value);
		const char *key = at + 1;
		size_t bytes = (size_t)(end - at - 2);

		at = skip_space(stop);
		if (*value == 'n' || says_nothing(value, stop) || is_key(key, bytes, "cause") ||
		    is_key(key, bytes, "name") || is_key(key, bytes, "share") ||
		    is_key(key, bytes, "divided_by") || ends_with(key, bytes, "_file") ||
		    ends_with(key, bytes, "_line"))
			continue; /* unknown, or in the title */
		fputs(first ? "" : ", ", out);
		first = false;
		if (*value == '[' || *value == '{')
			write_list(out, key, bytes, value, stop);
		else if (*value == '"' || *value == 't' || *value == 'f') {
			bool text = *value == '"';

			write_key(out, key, bytes);
			fprintf(out, " %.*s", (int)(stop - value) - 2 * text, value + text);
		} else
			write_number(out, key, bytes, value);
	}
}
