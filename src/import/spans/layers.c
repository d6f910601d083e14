/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of one name that are not the same layer. XSP numbers the layers of a run
 * ("layer_sequence_index"), and frameworks call all of a kind by one name ("Conv2D"). Where one run
 * holds a name with several numbers, each number is a layer of its own: frames of the same name and
 * type, told apart by their line. Where a name has one number in a run it is one layer, whatever
 * the number is in other runs: some frameworks count in the order of completion.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "import/spans/spans_private.h"

struct layer {
	const char *index;
	uint32_t frame, parent, row;
};

/* By the numbers in them: "0-2" before "0-10". */
static int
by_index(const char *a, const char *b)
{
	while (*a && *b) {
		if (!isdigit((unsigned char)*a) || !isdigit((unsigned char)*b)) {
			if (*a != *b)
				break;
			a++;
			b++;
			continue;
		}
		char *end_a, *end_b;
		unsigned long long x = strtoull(a, &end_a, 10), y = strtoull(b, &end_b, 10);
		if (x != y)
			return x < y ? -1 : 1;
		a = end_a;
		b = end_b;
	}
	return strcmp(a, b);
}

static int
by_run(const void *x, const void *y)
{
	const struct layer *a = x, *b = y;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return (a->parent > b->parent) - (a->parent < b->parent);
}

static int
by_layer(const void *x, const void *y)
{
	const struct layer *a = x, *b = y;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return by_index(a->index, b->index);
}

/* Keeps the layers whose frame has several numbers in one run. */
static uint32_t
keep_several(struct layer *layers, uint32_t count)
{
	uint32_t kept = 0;
	for (uint32_t i = 0, next; i < count; i = next) {
		bool several = false;
		for (next = i; next < count && layers[next].frame == layers[i].frame; next++)
			several |= next > i && layers[next].parent == layers[next - 1].parent &&
			           strcmp(layers[next].index, layers[next - 1].index) != 0;
		if (several && kept != i)
			memmove(layers + kept, layers + i, (next - i) * sizeof *layers);
		kept += several ? next - i : 0;
	}
	return kept;
}

/* A frame like FRAME that is the layer NUMBER of its name. */
static uint32_t
layer_frame(struct plumb_spans *spans, uint32_t frame, uint32_t number)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	struct plumb_frame own = *plumb_builder_get_frame(builder, frame);
	return plumb_builder_frame(builder, own.kind, own.name, own.file, number);
}

static int
tell_apart(struct plumb_spans *spans, struct layer *layers, uint32_t count)
{
	uint32_t number = 0, made = PLUMB_NONE;
	if (count)
		qsort(layers, count, sizeof *layers, by_layer);
	for (uint32_t i = 0; i < count; i++) {
		bool same_name = i && layers[i].frame == layers[i - 1].frame;
		if (!same_name)
			number = 0;
		if (!same_name || by_index(layers[i].index, layers[i - 1].index))
			made = layer_frame(spans, layers[i].frame, ++number);
		if (made == PLUMB_NONE)
			return PLUMB_ESYSTEM;
		spans->rows.items[layers[i].row].frame = made;
	}
	return 0;
}

int
plumb_spans_layers(struct plumb_spans *spans)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	struct layer *layers = malloc(((size_t)spans->rows.count + 1) * sizeof *layers);
	uint32_t count = 0;
	int code = layers ? 0 : PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->rows.count && !code; i++) {
		const struct plumb_spans_row *row = &spans->rows.items[i];
		const char *index = row->index == PLUMB_NONE
		                            ? NULL
		                            : plumb_builder_get_text(builder, row->index);
		if (index && row->kind == PLUMB_FRAME_MODULE)
			layers[count++] = (struct layer){ index, row->frame,
				                          spans->times.items[i].parent, i };
	}
	if (count)
		qsort(layers, count, sizeof *layers, by_run);
	if (!code)
		code = tell_apart(spans, layers, keep_several(layers, count));
	free(layers);
	return code;
}
