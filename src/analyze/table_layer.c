/* SPDX-License-Identifier: Apache-2.0 */
/* A2 to A7: layers, and layers by type. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/table_rows.h"
#include "base/sort.h"

const char *
plumb_layer_name(const struct plumb_layers *layers, uint32_t layer)
{
	return plumb_frame_label(layers->profile, layers->items[layer].frame);
}

const char *
plumb_layer_type(const struct plumb_layers *layers, uint32_t layer)
{
	const struct plumb_frame *frame = &layers->profile->frames[layers->items[layer].frame];
	const char *type = frame->kind == PLUMB_FRAME_MODULE
	                           ? plumb_text(layers->profile, frame->file)
	                           : plumb_text(layers->profile, frame->name);
	const char *dot = type ? strrchr(type, '.') : NULL;

	return frame->kind == PLUMB_FRAME_MODULE && dot && dot[1] ? dot + 1 : type;
}

/* The time that stands for a layer: the best that there is, of one kind for all layers that have
 * it. */
double
plumb_layer_us(const struct plumb_layer_row *row, enum plumb_latency_kind *kind)
{
	bool whole = !isnan(row->latency_us);

	*kind = whole ? row->latency : row->host;
	return whole ? row->latency_us : row->host_us;
}

static void
latency_columns(struct plumb_answer *a)
{
	plumb_answer_column(a, "layer_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_host_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_host_duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_device_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_serialised_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_backward_device_duration (us)", "us",
	                    PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_calls", "count", PLUMB_SOURCE_IS_MEASURED);
}

static void
latency_cells(struct plumb_answer *a, const struct plumb_layer_row *row)
{
	enum plumb_latency_kind kind;
	double us = plumb_layer_us(row, &kind);
	bool serialised = row->host == PLUMB_LATENCY_SERIALISED;

	plumb_answer_number(a, us);
	plumb_answer_text(a, plumb_latency_kind_name(kind));
	plumb_answer_number(a, serialised ? NAN : row->host_us);
	plumb_answer_text(a, serialised ? NULL : plumb_latency_kind_name(row->host));
	plumb_answer_number(a, row->device_us);
	plumb_answer_number(a, serialised ? row->host_us : row->serialised_us);
	plumb_answer_number(a, row->backward_us);
	plumb_answer_number(a, row->calls);
}

void
plumb_layer_columns(struct plumb_answer *a)
{
	plumb_answer_column(a, "layer_index", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_type", NULL, PLUMB_SOURCE_IS_MEASURED);
}

void
plumb_layer_cells(struct plumb_answer *a, const struct plumb_layers *layers, uint32_t layer)
{
	bool known = layer != PLUMB_NONE;

	plumb_answer_number(a, known ? layer : NAN);
	plumb_answer_text(a, known ? plumb_layer_name(layers, layer) : NULL);
	plumb_answer_text(a, known ? plumb_layer_type(layers, layer) : NULL);
}

/* Its output: what stands behind the arrow of the shapes. */
static const char *
layer_shape(const struct plumb_layers *layers, const struct plumb_layer_row *row)
{
	const char *shapes = plumb_text(layers->profile, row->shapes);
	const char *arrow = shapes ? strstr(shapes, "-> ") : NULL;

	return arrow ? arrow + 3 : NULL;
}

void
plumb_table_layer_information(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	const struct plumb_layers *layers = input->layers;

	plumb_layer_columns(a);
	plumb_answer_column(a, "layer_shape", NULL, PLUMB_SOURCE_IS_MEASURED);
	latency_columns(a);
	plumb_answer_column(a, "layer_allocated_bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_peak_allocated_bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; i < layers->count; i++) {
		const struct plumb_layer_row *row = &layers->items[i];
		plumb_layer_cells(a, layers, i);
		plumb_answer_text(a, layer_shape(layers, row));
		latency_cells(a, row);
		plumb_answer_number(a, row->allocated);
		plumb_answer_number(a, row->peak);
	}
}

void
plumb_table_layer_latency(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_layer_columns(a);
	latency_columns(a);
	for (uint32_t i = 0; i < input->layers->count; i++) {
		plumb_layer_cells(a, input->layers, i);
		latency_cells(a, &input->layers->items[i]);
	}
}

void
plumb_table_layer_memory(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_layer_columns(a);
	plumb_answer_column(a, "layer_allocated_bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "layer_peak_allocated_bytes", "byte", PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; i < input->layers->count; i++) {
		plumb_layer_cells(a, input->layers, i);
		plumb_answer_number(a, input->layers->items[i].allocated);
		plumb_answer_number(a, input->layers->items[i].peak);
	}
}

/* ---- by type ---- */

struct type {
	const char *name;
	double occurrences, us, device_us, bytes;
	enum plumb_latency_kind kind;
	bool mixed; /* times of several kinds do not add up */
};

enum by { OCCURRENCES, LATENCY, MEMORY };

static double
pick_amount(const struct type *type, enum by by)
{
	return by == OCCURRENCES ? type->occurrences
	       : by == LATENCY   ? (type->mixed ? NAN : type->us)
	                         : type->bytes;
}

static void
add_layer(struct type *type, const struct plumb_layer_row *row)
{
	enum plumb_latency_kind kind;
	double us = plumb_layer_us(row, &kind);

	type->occurrences++;
	type->us = isnan(type->us) ? us : type->us + (isnan(us) ? 0 : us);
	if (!isnan(row->device_us))
		type->device_us = (isnan(type->device_us) ? 0 : type->device_us) + row->device_us;
	if (!isnan(row->allocated))
		type->bytes = isnan(type->bytes) ? row->allocated : type->bytes + row->allocated;
	if (kind != PLUMB_LATENCY_UNKNOWN) {
		type->mixed |= type->kind != PLUMB_LATENCY_UNKNOWN && type->kind != kind;
		type->kind = kind;
	}
}

/* The most first; the unknown last. */
static uint64_t
key_of(double value)
{
	return isnan(value) ? UINT64_MAX : UINT64_MAX - 1 - (uint64_t)fmin(value * 1000, 9e18);
}

/* Types are told apart by the string that names them; PLACE holds a number for each string, and one
 * more. */
static uint32_t
gather_types(const struct plumb_layers *layers, struct type *types, uint32_t *place)
{
	const struct plumb_profile *p = layers->profile;
	uint32_t count = 0;

	memset(place, 0xff, (p->strings_count + 1u) * sizeof *place);
	for (uint32_t i = 0; i < layers->count; i++) {
		const struct plumb_frame *frame = &p->frames[layers->items[i].frame];
		uint32_t id = frame->kind == PLUMB_FRAME_MODULE ? frame->file : frame->name;
		uint32_t *at = &place[id < p->strings_count ? id : p->strings_count];
		if (*at == PLUMB_NONE) {
			*at = count++;
			types[*at] = (struct type){ .name = plumb_layer_type(layers, i),
				                    .us = NAN,
				                    .device_us = NAN,
				                    .bytes = NAN };
		}
		add_layer(&types[*at], &layers->items[i]);
	}
	return count;
}

struct share {
	double sum;
	bool mixed;
};

/* Of all types; times of several kinds have no sum. */
static struct share
sum_types(const struct type *types, uint32_t count, enum by by)
{
	struct share share = { 0 };
	enum plumb_latency_kind kind = PLUMB_LATENCY_UNKNOWN;

	for (uint32_t t = 0; t < count; t++) {
		if (!isnan(pick_amount(&types[t], by)))
			share.sum += pick_amount(&types[t], by);
		if (by != LATENCY || types[t].kind == PLUMB_LATENCY_UNKNOWN)
			continue;
		share.mixed |=
			types[t].mixed || (kind != PLUMB_LATENCY_UNKNOWN && kind != types[t].kind);
		kind = types[t].kind;
	}
	return share;
}

static void
by_type(const struct plumb_layers *layers, struct plumb_answer *a, enum by by)
{
	struct type *types = calloc(layers->count + 1u, sizeof *types);
	struct plumb_sort_item *order = malloc((2 * (size_t)layers->count + 1) * sizeof *order);
	uint32_t *place = malloc((layers->profile->strings_count + 1u) * sizeof *place);
	uint32_t count = 0;

	if (!types || !order || !place)
		a->failed = true;
	else
		count = gather_types(layers, types, place);
	struct share share = sum_types(types, count, by);
	double device_us = 0;
	for (uint32_t t = 0; t < count; t++) {
		order[t] = (struct plumb_sort_item){ key_of(pick_amount(&types[t], by)), t };
		device_us += isnan(types[t].device_us) ? 0 : types[t].device_us;
	}
	if (count)
		plumb_sort(order, order + count, count);
	for (uint32_t t = 0; t < count; t++) {
		const struct type *type = &types[order[t].index];
		plumb_answer_text(a, type->name);
		plumb_answer_number(a, pick_amount(type, by));
		plumb_answer_number(a, share.sum > 0 && !share.mixed
		                               ? pick_amount(type, by) / share.sum * 100
		                               : NAN);
		if (by != LATENCY)
			continue;
		plumb_answer_text(a, type->mixed ? "mixed" : plumb_latency_kind_name(type->kind));
		plumb_answer_number(a, type->device_us);
		plumb_answer_number(a, device_us > 0 ? type->device_us / device_us * 100 : NAN);
	}
	free(types);
	free(order);
	free(place);
}

void
plumb_table_type_occurrence(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_answer_column(a, "type", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "occurrences", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "occurrence percentage (%)", "%", PLUMB_SOURCE_IS_MEASURED);
	by_type(input->layers, a, OCCURRENCES);
}

void
plumb_table_type_latency(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_answer_column(a, "type", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration percentage (%)", "%", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "duration_kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "device_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "device_duration percentage (%)", "%", PLUMB_SOURCE_IS_MEASURED);
	by_type(input->layers, a, LATENCY);
}

void
plumb_table_type_memory(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	plumb_answer_column(a, "type", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "allocated memory (bytes)", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "allocated memory percentage (%)", "%", PLUMB_SOURCE_IS_MEASURED);
	by_type(input->layers, a, MEMORY);
}
