/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/constraint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum plumb_constraint_kind kind;
} names[] = {
	{ "latency", PLUMB_CONSTRAINT_IS_LATENCY },
	{ "throughput", PLUMB_CONSTRAINT_IS_THROUGHPUT },
	{ "memory", PLUMB_CONSTRAINT_IS_MEMORY },
};

static const struct {
	const char *name;
	enum plumb_constraint_kind kind;
	double of;
} units[] = {
	{ "ns", PLUMB_CONSTRAINT_IS_LATENCY, 1e-3 },
	{ "us", PLUMB_CONSTRAINT_IS_LATENCY, 1 },
	{ "ms", PLUMB_CONSTRAINT_IS_LATENCY, 1e3 },
	{ "s", PLUMB_CONSTRAINT_IS_LATENCY, 1e6 },
	{ "", PLUMB_CONSTRAINT_IS_THROUGHPUT, 1 },
	{ "/s", PLUMB_CONSTRAINT_IS_THROUGHPUT, 1 },
	{ "B", PLUMB_CONSTRAINT_IS_MEMORY, 1 },
	{ "KB", PLUMB_CONSTRAINT_IS_MEMORY, 1e3 },
	{ "MB", PLUMB_CONSTRAINT_IS_MEMORY, 1e6 },
	{ "GB", PLUMB_CONSTRAINT_IS_MEMORY, 1e9 },
	{ "KiB", PLUMB_CONSTRAINT_IS_MEMORY, 1024.0 },
	{ "MiB", PLUMB_CONSTRAINT_IS_MEMORY, 1024.0 * 1024 },
	{ "GiB", PLUMB_CONSTRAINT_IS_MEMORY, 1024.0 * 1024 * 1024 },
};

/* One, without spaces. */
static bool
read_one(char *text, struct plumb_constraint *constraint)
{
	char *sign = strpbrk(text, "<>"), *number, *end;
	bool known = false;

	if (!sign)
		return false;
	constraint->above = *sign == '>';
	constraint->equal = sign[1] == '=';
	number = sign + 1 + constraint->equal;
	*sign = '\0';
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(text, names[i].name))
			continue;
		constraint->kind = names[i].kind;
		known = true;
	}
	/* Digits and a point: neither "inf" nor "0x10" is meant. */
	size_t digits = strspn(number, "0123456789.");
	if (!known || !digits || digits > 18)
		return false;
	char unit[4] = "";
	if (strlen(number + digits) >= sizeof unit)
		return false;
	strcpy(unit, number + digits);
	number[digits] = '\0';
	constraint->value = strtod(number, &end);
	if (*end)
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (units[i].kind == constraint->kind && !strcmp(units[i].name, unit)) {
			constraint->value *= units[i].of;
			return true;
		}
	return false;
}

bool
plumb_constraints_read(const char *text, struct plumb_constraints *constraints)
{
	char plain[128];
	size_t length = 0;

	*constraints = (struct plumb_constraints){ 0 };
	for (; *text; text++) {
		if (*text == ' ')
			continue;
		if (length == sizeof plain - 1)
			return false;
		plain[length++] = *text;
	}
	plain[length] = '\0';
	for (char *at = plain, *next; at; at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		if (constraints->count == sizeof constraints->items / sizeof *constraints->items ||
		    !read_one(at, &constraints->items[constraints->count++]))
			return false;
	}
	return true;
}

int
plumb_constraints_hold(const struct plumb_constraints *constraints,
                       const double values[PLUMB_CONSTRAINT_KINDS])
{
	int holds = 1;

	for (uint32_t i = 0; i < constraints->count; i++) {
		const struct plumb_constraint *c = &constraints->items[i];
		double value = values[c->kind];
		if (isnan(value))
			holds = holds ? -1 : 0;
		else if (!(value == c->value ? c->equal : c->above == (value > c->value)))
			holds = 0;
	}
	return holds;
}
