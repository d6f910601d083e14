/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of an HPCToolkit database, and the unit and scale in which their values are kept.
 *
 * A metric's name ends in its unit: "GKER (sec)" in older versions, "GKER (s)" now; likewise "(B)"
 * and "(b)". Times become whole ns. A metric without a counterpart in plumb keeps its name.
 * Profiles hold whole numbers, so the values of such a metric are looked at first: if one of them
 * has a fraction, all are kept in millionths.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/hpctoolkit/hpctoolkit.h"

#define METRICS_SECTION 0x30
#define MILLION 1e6
#define VALUE_MOST 4e18
enum { METRIC_BYTES = 32, INSTANCE_BYTES = 16 };
enum scope { AS_MEASURED = 1, INCLUSIVE = 2 };

/* ---- names and units ---- */

enum quantity { COUNT, TIME, BYTES, CYCLES, OTHER };

static enum quantity
quantity_of(struct plumb_slice unit, double *scale)
{
	static const struct {
		const char *name;
		enum quantity quantity;
		double scale;
	} units[] = { { "", COUNT, 1 },       { "s", TIME, 1e9 },    { "sec", TIME, 1e9 },
		      { "ms", TIME, 1e6 },    { "msec", TIME, 1e6 }, { "us", TIME, 1e3 },
		      { "usec", TIME, 1e3 },  { "ns", TIME, 1 },     { "nsec", TIME, 1 },
		      { "b", BYTES, 1 },      { "B", BYTES, 1 },     { "byte", BYTES, 1 },
		      { "bytes", BYTES, 1 },  { "cyc", CYCLES, 1 },  { "cycle", CYCLES, 1 },
		      { "cycles", CYCLES, 1 } };
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (plumb_slice_is(unit, units[i].name)) {
			*scale = units[i].scale;
			return units[i].quantity;
		}
	*scale = 1;
	return OTHER;
}

static bool
in_family(struct plumb_slice name, const char *family)
{
	size_t bytes = strlen(family);
	return plumb_slice_begins(name, family) && name.bytes > bytes && name.at[bytes] == ':';
}

/* What of plumb's the metric NAME is; 0: nothing. */
static uint32_t
known_metric(struct plumb_slice name, enum quantity quantity)
{
	static const struct {
		const char *name;
		enum quantity quantity;
		uint32_t metric;
	} known[] = {
		{ "GKER", TIME, PLUMB_METRIC_GPU_TIME },
		{ "GXCOPY", TIME, PLUMB_METRIC_GPU_COPY_TIME },
		{ "GICOPY", TIME, PLUMB_METRIC_GPU_COPY_TIME },
		{ "GMSET", TIME, PLUMB_METRIC_GPU_COPY_TIME },
		{ "GSYNC", TIME, PLUMB_METRIC_HOST_WAIT },
		{ "GKER:COUNT", COUNT, PLUMB_METRIC_GPU_LAUNCHES },
		{ "GXCOPY:COUNT", COUNT, PLUMB_METRIC_GPU_LAUNCHES },
		{ "GMSET:COUNT", COUNT, PLUMB_METRIC_GPU_LAUNCHES },
		{ "CPUTIME", TIME, PLUMB_METRIC_CPU_TIME },
		{ "cycles", COUNT, PLUMB_METRIC_CPU_CYCLES },
		{ "instructions", COUNT, PLUMB_METRIC_CPU_INSTRUCTIONS },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (plumb_slice_is(name, known[i].name) && quantity == known[i].quantity)
			return known[i].metric;
	if (quantity == BYTES &&
	    (in_family(name, "GXCOPY") || in_family(name, "GICOPY") || in_family(name, "GMSET")))
		return PLUMB_METRIC_GPU_COPY_BYTES;
	return 0;
}

/* "GKER:STMEM_ACUMU (B)" → name and unit. A unit that is not known stays in the name, which differs
 * in nothing else for some ("GGMEM:ST (b)" and "GGMEM:ST (L2T)"). */
static struct hpct_metric
metric_of(struct plumb_slice full)
{
	struct hpct_metric metric = { .name = full, .unit = { "", 0 } };
	const char *open = full.bytes ? memrchr(full.at, '(', full.bytes) : NULL;
	if (open && open > full.at + 1 && open[-1] == ' ' && full.at[full.bytes - 1] == ')') {
		metric.name.bytes = (size_t)(open - 1 - full.at);
		metric.unit =
			(struct plumb_slice){ open + 1, (size_t)(full.at + full.bytes - open - 2) };
	}
	enum quantity quantity = quantity_of(metric.unit, &metric.scale);
	metric.number = known_metric(metric.name, quantity);
	/* What kernels are made of, summed over their launches: nothing without the division. */
	metric.accumulator =
		!metric.number && memmem(metric.name.at, metric.name.bytes, "_ACUMU", 6) != NULL;
	metric.open = !metric.number && !metric.accumulator;
	if (quantity == OTHER)
		metric.name = full;
	return metric;
}

/* ---- meta.db ---- */

/* The metric at OFFSET, by the number that its inclusive values have, else those as measured. */
static void
read_metric(struct hpct_reader *reader, uint64_t offset, uint64_t stride)
{
	struct hpct_file *meta = &reader->meta;
	const unsigned char *at = plumb_hpct_get(reader, meta, offset, 1, METRIC_BYTES), *instance;
	const unsigned char *chosen = NULL;
	uint32_t number = 0;
	if (!at)
		return;
	struct plumb_slice name = plumb_hpct_text(reader, meta, hpct_u64(at));
	uint64_t instances = hpct_u64(at + 8);
	for (uint32_t i = 0; i < hpct_u16(at + 24) && !reader->why; i++) {
		instance = plumb_hpct_take(reader, meta, instances + i * stride, 1, INSTANCE_BYTES);
		const unsigned char *scope =
			instance ? plumb_hpct_get(reader, meta, hpct_u64(instance), 1, 10) : NULL;
		if (scope && (scope[8] == INCLUSIVE || (scope[8] == AS_MEASURED && !chosen)))
			chosen = scope;
		if (scope && chosen == scope)
			number = hpct_u16(instance + 8);
	}
	if (!chosen || reader->why)
		return;
	reader->metrics[number] = metric_of(name);
	reader->metrics[number].inclusive = chosen[8] == INCLUSIVE;
}

static void
read_names(struct hpct_reader *reader)
{
	uint64_t offset;
	const unsigned char *head =
		plumb_hpct_section(reader, &reader->meta, METRICS_SECTION, 27, &offset);
	if (!head)
		return;
	uint64_t count = hpct_u32(head + 8), size = head[12], instance = head[13];
	if (count && (size < METRIC_BYTES || instance < INSTANCE_BYTES))
		plumb_hpct_fail(reader, &reader->meta, offset, "a metric is too short");
	for (uint64_t i = 0; i < count && !reader->why; i++)
		read_metric(reader, hpct_u64(head) + i * size, instance);
}

/* ---- what their values are ---- */

static void
look_at(struct hpct_metric *metric, double value)
{
	if (!metric->open || !isfinite(value))
		return;
	metric->fraction |= value * metric->scale != round(value * metric->scale);
	metric->most = fmax(metric->most, fabs(value));
}

/* All values of all profiles, for those metrics whose form depends on them. */
static void
look_at_values(struct hpct_reader *reader)
{
	struct hpct_file *file = &reader->profile;
	uint64_t offset;
	const unsigned char *head =
		plumb_hpct_section(reader, file, HPCT_PROFILES_SECTION, 13, &offset);
	uint64_t count = head ? hpct_u32(head + 8) : 0, size = head ? head[12] : 0;
	if (count && size < HPCT_PROFILE_BYTES)
		plumb_hpct_fail(reader, file, offset, "a profile is too short");
	for (uint64_t i = 0; i < count && !reader->why; i++) {
		const unsigned char *at = plumb_hpct_get(reader, file, hpct_u64(head) + i * size, 1,
		                                         HPCT_PROFILE_BYTES);
		uint64_t values = at && !(hpct_u32(at + 40) & 1) ? hpct_u64(at) : 0;
		const unsigned char *value =
			values ? plumb_hpct_take(reader, file, hpct_u64(at + 8), values,
		                                 HPCT_VALUE_BYTES)
			       : NULL;
		for (uint64_t v = 0; value && v < values; v++, value += HPCT_VALUE_BYTES) {
			uint64_t bits = hpct_u64(value + 2);
			double number;
			memcpy(&number, &bits, sizeof number);
			look_at(&reader->metrics[hpct_u16(value)], number);
		}
	}
	file->taken = 0; /* they are read again */
}

/* The metric of its own name that METRIC becomes. */
static void
add_metric(struct hpct_reader *reader, struct hpct_metric *metric)
{
	static const char *const words[] = { "count", "ns", "byte", "cycles", NULL };
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	double scale;
	enum quantity quantity = quantity_of(metric->unit, &scale);
	const char *word = words[quantity];
	char name[512], unit[64];
	/* Where millionths do not fit, fractions are nothing beside such numbers. */
	bool parts = metric->fraction && quantity != TIME && metric->most < VALUE_MOST / MILLION;
	snprintf(name, sizeof name, "%.*s%s",
	         metric->name.bytes < 400 ? (int)metric->name.bytes : 400, metric->name.at,
	         parts ? " [1e-6]" : "");
	if (word)
		snprintf(unit, sizeof unit, "%s%s", parts ? "1e-6 " : "", word);
	else
		snprintf(unit, sizeof unit, "%s%.*s", parts ? "1e-6 " : "",
		         metric->unit.bytes < 40 ? (int)metric->unit.bytes : 40, metric->unit.at);
	metric->number = plumb_builder_metric(builder, plumb_builder_text(builder, name),
	                                      plumb_builder_text(builder, unit));
	metric->scale = parts ? MILLION : scale;
}

void
plumb_hpct_metrics(struct hpct_reader *reader)
{
	read_names(reader);
	if (!reader->why)
		look_at_values(reader);
	for (uint32_t i = 0; i < HPCT_METRICS && !reader->why; i++)
		if (reader->metrics[i].open)
			add_metric(reader, &reader->metrics[i]);
}
