/* SPDX-License-Identifier: Apache-2.0 */
/* The same layers in two profiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layer_calls.h"
#include "analyze/table_rows.h"
#include "base/hash.h"
#include "base/sort.h"

struct matching {
	uint32_t *partner; /* by layer of the one, a layer of the other or PLUMB_NONE */
	unsigned char *a_taken, *b_taken;
};

static const char *
layer_text(const struct plumb_layers *layers, uint32_t layer, bool by_type)
{
	const char *text =
		by_type ? plumb_layer_type(layers, layer) : plumb_layer_name(layers, layer);

	return text ? text : "";
}

/* The layers that are not TAKEN, sorted by a hash of their text and then as they ran. NULL: no
 * memory. */
static struct plumb_sort_item *
by_text(const struct plumb_layers *layers, bool by_type, const unsigned char *taken,
        uint32_t *count)
{
	struct plumb_sort_item *order = malloc((2 * (size_t)layers->count + 1) * sizeof *order);

	*count = 0;
	for (uint32_t i = 0; order && i < layers->count; i++) {
		const char *text = layer_text(layers, i, by_type);
		if (!taken[i])
			order[(*count)++] =
				(struct plumb_sort_item){ plumb_hash_bytes(text, strlen(text)), i };
	}
	if (order && *count)
		plumb_sort(order, order + *count, *count);
	return order;
}

/* Of the layers of A and B that are not taken yet those of one text, in their order. */
static int
match_texts(const struct plumb_layers *a, const struct plumb_layers *b, bool by_type,
            struct matching *matching)
{
	uint32_t a_count, b_count;
	struct plumb_sort_item *of_a = by_text(a, by_type, matching->a_taken, &a_count);
	struct plumb_sort_item *of_b = by_text(b, by_type, matching->b_taken, &b_count);
	int code = of_a && of_b ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0, j = 0; i < a_count && j < b_count && !code;) {
		uint32_t x = of_a[i].index, y = of_b[j].index;
		if (of_a[i].key != of_b[j].key) {
			of_a[i].key < of_b[j].key ? i++ : j++;
			continue;
		}
		i++;
		j++;
		/* Two texts of one hash stay without a partner. */
		if (strcmp(layer_text(a, x, by_type), layer_text(b, y, by_type)))
			continue;
		matching->partner[x] = y;
		matching->a_taken[x] = matching->b_taken[y] = 1;
	}
	free(of_a);
	free(of_b);
	return code;
}

int
plumb_layers_match(const struct plumb_layers *a, const struct plumb_layers *b, bool types,
                   uint32_t *partner)
{
	struct matching matching = {
		.partner = partner,
		.a_taken = calloc(a->count + 1u, 1),
		.b_taken = calloc(b->count + 1u, 1),
	};
	int code = matching.a_taken && matching.b_taken ? 0 : PLUMB_ESYSTEM;

	memset(partner, 0xff, a->count * sizeof *partner);
	if (!code)
		code = match_texts(a, b, false, &matching);
	if (!code && types)
		code = match_texts(a, b, true, &matching);
	free(matching.a_taken);
	free(matching.b_taken);
	return code;
}

int
plumb_layers_take_serialised(struct plumb_layers *layers, const struct plumb_layers *serialised)
{
	uint32_t *partner = malloc((layers->count + 1u) * sizeof *partner);
	int code = partner ? plumb_layers_match(layers, serialised, false, partner) : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < layers->count && !code; i++) {
		struct plumb_layer_row *row = &layers->items[i];
		if (partner[i] == PLUMB_NONE)
			continue;
		row->serialised_us = serialised->items[partner[i]].host_us;
		if (isnan(row->latency_us) && !isnan(row->serialised_us))
			plumb_layer_serialised(row, row->serialised_us);
	}
	free(partner);
	return code;
}
