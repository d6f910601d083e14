/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels of a layer one profile has and the next has not, as when a library chooses another
 * algorithm for another batch size.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/table_rows.h"
#include "base/sort.h"
#include "base/vec.h"

/* A kernel that went, one that came, or both: the longest of either, then the next ones. */
struct swap {
	uint32_t layer; /* of the first profile */
	const struct plumb_layer_kernel *before, *after;
};

typedef PLUMB_VEC(struct swap) swaps_of;
typedef PLUMB_VEC(const struct plumb_layer_kernel *) kernels_of;

/* Longest first. */
static int
by_time(const void *a, const void *b)
{
	const struct plumb_layer_kernel *const *x = a, *const *y = b;

	if ((*x)->total != (*y)->total)
		return (*x)->total < (*y)->total ? 1 : -1;
	return (*x > *y) - (*x < *y);
}

/* The kernels of layer I of A that layer J of B has none of the same name of. */
static int
find_missing(const struct plumb_layers *a, const uint32_t *from_a, uint32_t i,
             const struct plumb_layers *b, const uint32_t *from_b, uint32_t j, kernels_of *found)
{
	found->count = 0;
	for (uint32_t k = from_a[i]; k < from_a[i + 1]; k++) {
		const char *name = plumb_frame_label(a->profile, a->kernels[k].frame);
		bool same = false;
		for (uint32_t l = from_b[j]; l < from_b[j + 1] && !same; l++)
			same = !strcmp(plumb_frame_label(b->profile, b->kernels[l].frame), name);
		if (same)
			continue;
		const struct plumb_layer_kernel **kernel = plumb_vec_add(found);
		if (!kernel)
			return PLUMB_ESYSTEM;
		*kernel = &a->kernels[k];
	}
	if (found->count)
		qsort(found->items, found->count, sizeof *found->items, by_time);
	return 0;
}

/* Where each layer's kernels begin, and their end; they are sorted by layer. NULL: no memory. */
static uint32_t *
index_kernels(const struct plumb_layers *layers)
{
	uint32_t *from = calloc(layers->count + 2u, sizeof *from);

	for (uint32_t k = 0; from && k < layers->kernel_count; k++)
		if (layers->kernels[k].layer != PLUMB_NONE)
			from[layers->kernels[k].layer + 1]++;
	for (uint32_t i = 0; from && i < layers->count; i++)
		from[i + 1] += from[i];
	return from;
}

static int
collect_swaps(const struct plumb_layers *a, const struct plumb_layers *b, const uint32_t *partner,
              swaps_of *swaps)
{
	uint32_t *from_a = index_kernels(a), *from_b = index_kernels(b);
	kernels_of gone = { 0 }, came = { 0 };
	int code = from_a && from_b ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < a->count && !code; i++) {
		uint32_t j = partner[i];
		if (j == PLUMB_NONE)
			continue;
		code = find_missing(a, from_a, i, b, from_b, j, &gone);
		if (!code)
			code = find_missing(b, from_b, j, a, from_a, i, &came);
		for (uint32_t k = 0; (k < gone.count || k < came.count) && !code; k++) {
			struct swap *swap = plumb_vec_add(swaps);
			if (!swap)
				code = PLUMB_ESYSTEM;
			else
				*swap = (struct swap){ i, k < gone.count ? gone.items[k] : NULL,
					               k < came.count ? came.items[k] : NULL };
		}
	}
	plumb_vec_free(&gone);
	plumb_vec_free(&came);
	free(from_a);
	free(from_b);
	return code;
}

static double
total_of(const struct plumb_layer_kernel *kernel)
{
	return kernel ? kernel->total : NAN;
}

static void
put_kernel(struct plumb_answer *answer, const struct plumb_layers *layers,
           const struct plumb_layer_kernel *kernel)
{
	plumb_answer_text(answer,
	                  kernel ? plumb_frame_label(layers->profile, kernel->frame) : NULL);
	plumb_answer_number(answer, total_of(kernel));
}

/* From profile I to the next. */
static int
put_swaps(const struct plumb_tables_input *input, struct plumb_answer *answer, uint32_t i,
          const swaps_of *swaps)
{
	const struct plumb_layers *a = &input->layers[i], *b = a + 1;
	struct plumb_sort_item *order = malloc((2 * (size_t)swaps->count + 1) * sizeof *order);

	if (!order)
		return PLUMB_ESYSTEM;
	for (uint32_t s = 0; s < swaps->count; s++) {
		const struct swap *swap = &swaps->items[s];
		double us = fmax(total_of(swap->before), total_of(swap->after));
		order[s] =
			(struct plumb_sort_item){ UINT64_MAX - (uint64_t)fmin(us * 1000, 9e18), s };
	}
	if (swaps->count)
		plumb_sort(order, order + swaps->count, swaps->count);
	for (uint32_t s = 0; s < swaps->count; s++) {
		const struct swap *swap = &swaps->items[order[s].index];
		plumb_key_cell(answer, input, i);
		plumb_key_cell(answer, input, i + 1);
		plumb_layer_cells(answer, a, swap->layer);
		put_kernel(answer, a, swap->before);
		put_kernel(answer, b, swap->after);
	}
	free(order);
	return 0;
}

static int
compare_kernels(const struct plumb_tables_input *input, struct plumb_answer *answer, uint32_t i)
{
	const struct plumb_layers *a = &input->layers[i], *b = a + 1;
	uint32_t *partner = malloc((a->count + 1u) * sizeof *partner);
	swaps_of swaps = { 0 };
	int code = partner ? plumb_layers_match(a, b, true, partner) : PLUMB_ESYSTEM;

	if (!code)
		code = collect_swaps(a, b, partner, &swaps);
	if (!code)
		code = put_swaps(input, answer, i, &swaps);
	plumb_vec_free(&swaps);
	free(partner);
	return code;
}

void
plumb_table_swapped(const struct plumb_tables_input *input, struct plumb_answer *a)
{
	const char *unit = input->key == PLUMB_KEY_IS_BATCH ? "count" : NULL;

	plumb_answer_column(a, "from", unit, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "to", unit, PLUMB_SOURCE_IS_MEASURED);
	plumb_layer_columns(a);
	plumb_answer_column(a, "kernel_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "kernel_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "new_kernel_name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "new_kernel_duration (us)", "us", PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; i + 1 < input->count && !a->failed; i++)
		a->failed = compare_kernels(input, a, i) != 0;
}
