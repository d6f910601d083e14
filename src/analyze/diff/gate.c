/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates. One holds or not by the change itself, the best guess that there is, held against the
 * limit; the interval says how sure that is. A gate that asked for certainty would hold more often
 * the noisier the runs are, which is what a gate is there to stop.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/diff_private.h"
#include "analyze/group.h"

/* ---- grammar ---- */

static const struct {
	const char *text, *unit;
	double factor;
} units[] = {
	{ "ns", "ns", 1 },          { "us", "ns", 1e3 },        { "\xc2\xb5s", "ns", 1e3 },
	{ "\xce\xbcs", "ns", 1e3 }, { "ms", "ns", 1e6 },        { "s", "ns", 1e9 },
	{ "B", "byte", 1 },         { "KiB", "byte", 1 << 10 }, { "MiB", "byte", 1 << 20 },
	{ "GiB", "byte", 1 << 30 }, { "", "count", 1 },
};

static int
refuse_gate(struct plumb_error *error, const char *text, const char *why)
{
	return plumb_fail(
		error, PLUMB_EUSAGE,
		"gate \"%.200s\": %s; write METRIC[@NAME]<LIMIT, such as gpu.time<+5%% or "
		"iteration.time<+2ms",
		text, why);
}

/* The limit's text is a number and a unit. */
static int
parse_limit(const char *text, struct plumb_gate *gate, struct plumb_error *error)
{
	char *end;
	const char *digits = text + (*text == '+' || *text == '-');

	if (!isdigit((unsigned char)*digits) && *digits != '.')
		return refuse_gate(error, gate->text, "its limit is not a number");
	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		return refuse_gate(error, gate->text, "its limit is not a decimal number");
	gate->limit = strtod(text, &end);
	while (*end == ' ')
		end++;
	if (!isfinite(gate->limit))
		return refuse_gate(error, gate->text, "its limit is not a number");
	if (!strcmp(end, "%")) {
		gate->relative = true;
		return 0;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(end, units[i].text)) {
			gate->unit = units[i].unit;
			gate->limit *= units[i].factor;
			return 0;
		}
	return refuse_gate(
		error, gate->text,
		"the unit of its limit is not one of %, ns, us, ms, s, B, KiB, MiB and GiB");
}

/* A name may hold any character, so the last comparison counts that a limit follows. */
static const char *
find_comparison(const char *text)
{
	const char *found = NULL;

	for (const char *at = text; *at; at++)
		if (*at == '<' || *at == '>')
			found = at;
	return found;
}

int
plumb_gate_parse(const char *text, struct plumb_gate *gate, struct plumb_error *error)
{
	const char *comparison = find_comparison(text), *at, *limit;
	size_t bytes;

	*gate = (struct plumb_gate){ .text = text };
	if (!comparison)
		return refuse_gate(error, text, "it has no < or >");
	gate->above = *comparison == '>';
	at = memchr(text, '@', (size_t)(comparison - text));
	bytes = (size_t)((at ? at : comparison) - text);
	while (bytes && text[bytes - 1] == ' ')
		bytes--;
	if (!bytes || bytes >= sizeof gate->name)
		return refuse_gate(error, text, "its metric is missing or too long");
	memcpy(gate->name, text, bytes);
	if (at) {
		gate->row = at + 1;
		gate->row_bytes = (size_t)(comparison - gate->row);
		while (gate->row_bytes && gate->row[gate->row_bytes - 1] == ' ')
			gate->row_bytes--;
		if (!gate->row_bytes)
			return refuse_gate(error, text, "the name after @ is missing");
	}
	limit = comparison + 1;
	limit += strspn(limit, " ");
	return parse_limit(limit, gate, error);
}

/* ---- decision ---- */

/* Does the list "a, b" of names hold NAME? */
static bool
has_name(const char *list, const char *name, size_t bytes)
{
	for (const char *at = list; at; at = strstr(at, ", ")) {
		at += at != list ? 2 : 0;
		if (!strncmp(at, name, bytes) && (!at[bytes] || !strncmp(at + bytes, ", ", 2)))
			return true;
		if (!*at)
			return false;
	}
	return false;
}

static bool
is_named(const struct plumb_diff_row *row, const struct plumb_gate *gate)
{
	size_t bytes = gate->row_bytes;

	return (!strncmp(row->name, gate->row, bytes) && !row->name[bytes]) ||
	       has_name(row->before_names, gate->row, bytes) ||
	       has_name(row->after_names, gate->row, bytes);
}

static int
find_row(const struct plumb_diff *diff, const struct plumb_gate *gate,
         struct plumb_gate_result *result, struct plumb_error *error)
{
	struct plumb_diff_table table;
	int code = plumb_diff_table(diff, gate->name, &table, error);
	uint32_t found = 0;

	result->why = "no row has this name";
	for (uint32_t i = 0; !code && i < table.count; i++)
		if (is_named(&table.rows[i], gate)) {
			result->amount = table.rows[i].amount;
			result->why = found++ ? "several rows have this name" : NULL;
		}
	result->statistic = table.each                   ? "mean of iterations"
	                    : plumb_diff_is_normal(diff) ? "sum of an iteration"
	                                                 : "sum";
	plumb_diff_table_free(&table);
	return code;
}

/* -1 below the limit, 1 above; on it is neither. */
static int
side_of(double value, double limit)
{
	return (value > limit) - (value < limit);
}

static void
decide_gate(const struct plumb_gate *gate, struct plumb_gate_result *result)
{
	const struct plumb_change *c = &result->amount;
	/* What is exactly the limit is not to be decided by how a quotient is rounded. */
	double change = gate->relative ? c->change * 100 : c->change;
	double limit = gate->relative ? gate->limit * c->before : gate->limit;
	double scale = gate->relative ? c->before * 100 : c->before;
	int wanted = gate->above ? 1 : -1;

	if (isnan(c->before) || isnan(c->after))
		result->why = isnan(c->before) && isnan(c->after) ? "it is unknown on both sides"
		              : isnan(c->before) ? "it is unknown on the first side"
		                                 : "it is unknown on the second side";
	else if (gate->relative && !(c->before > 0) && c->after != c->before)
		result->why = "it was 0 before, so the change has no percentage; give the limit "
			      "as an amount";
	if (result->why)
		return;
	if (gate->relative && !(c->before > 0))
		limit = gate->limit; /* nothing became nothing */
	result->holds = side_of(change, limit) == wanted;
	if (isnan(c->low))
		return;
	int low = side_of(c->low * scale, limit), high = side_of(c->high * scale, limit);
	result->certain = low == high;
}

static const char *
unit_words(const char *unit)
{
	return !strcmp(unit, "ns")      ? "a time"
	       : !strcmp(unit, "byte")  ? "a number of bytes"
	       : !strcmp(unit, "count") ? "a plain number"
	                                : unit;
}

int
plumb_gate_decide(const struct plumb_diff *diff, const struct plumb_gate *gate,
                  struct plumb_gate_result *result, struct plumb_error *error)
{
	struct plumb_diff_measure measure;
	int code = plumb_diff_measure(diff, gate->name, &measure, error);

	*result = (struct plumb_gate_result){ .certain = -1 };
	if (code)
		return code;
	result->unit = measure.unit;
	result->statistic = measure.statistic;
	result->amount = measure.amount;
	if (!gate->relative && strcmp(gate->unit, measure.unit) &&
	    !(!strcmp(gate->unit, "count") && strcmp(measure.unit, "ns") &&
	      strcmp(measure.unit, "byte")))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "gate \"%.200s\": %s is %s, but its limit is %s; write it as "
		                  "+5%% or +2%s",
		                  gate->text, gate->name, unit_words(measure.unit),
		                  unit_words(gate->unit),
		                  !strcmp(measure.unit, "ns")     ? "ms"
		                  : !strcmp(measure.unit, "byte") ? "MiB"
		                                                  : "");
	if (gate->row) {
		for (uint32_t m = 0; plumb_diff_measures[m]; m++)
			if (!strcmp(plumb_diff_measures[m], gate->name))
				return plumb_fail(error, PLUMB_EUSAGE,
				                  "gate \"%.200s\": %s has a value for the run "
				                  "only, not for a row; leave out @NAME",
				                  gate->text, gate->name);
		code = find_row(diff, gate, result, error);
	}
	if (!code && !result->why)
		decide_gate(gate, result);
	return code;
}
