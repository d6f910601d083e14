/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of layers, and what counters or shapes say of them. Counters are metrics of the names
 * that XSP gives them (flop_count_sp, dram_read_bytes, …), at the kernel or at the call that
 * launched it alone. Work that no counter tells is derived from the shapes of matrix products,
 * convolutions and attention; other operators have next to none, and count as none; a layer with
 * such an operator whose shapes tell nothing is unknown. Of operators within one another, as
 * linear's addmm, the outermost whose work is known counts; a kernel has the work of any that runs
 * it alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layer_calls.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/metric.h"

/* The kernel of (LAYER, FRAME), made when missing; PLUMB_NONE: no memory. */
static uint32_t
kernel_of(struct plumb_map *map, struct plumb_layers *layers, uint32_t *capacity, uint32_t layer,
          uint32_t frame)
{
	uint64_t hash = plumb_hash_mix(layer, frame);
	struct plumb_map_cursor at;

	for (uint32_t k = plumb_map_first(map, hash, &at); k != PLUMB_MAP_NONE;
	     k = plumb_map_next(map, &at))
		if (layers->kernels[k].layer == layer && layers->kernels[k].frame == frame)
			return k;
	if (layers->kernel_count == *capacity) {
		void *grown = plumb_vec_grow(layers->kernels, capacity, layers->kernel_count + 1ul,
		                             sizeof *layers->kernels);
		if (!grown)
			return PLUMB_NONE;
		layers->kernels = grown;
	}
	if (plumb_map_add(map, hash, layers->kernel_count))
		return PLUMB_NONE;
	layers->kernels[layers->kernel_count] = (struct plumb_layer_kernel){
		.layer = layer,
		.frame = frame,
		.counters = { NAN, NAN, NAN, NAN, NAN, false },
	};
	return layers->kernel_count++;
}

/* ---- counters ---- */

struct counted {
	double sum, count;
};

/* Work of single, double and half precision and of tensor cores adds up; flop_count_sp_add and the
 * like are parts of these. */
enum counter { SINGLE, DOUBLE, HALF, TENSOR, READ, WRITTEN, ACHIEVED, THEORETICAL, COUNTERS };

static enum counter
counter_of(const struct plumb_profile *p, uint32_t metric)
{
	const char *name;

	if (metric == PLUMB_METRIC_GPU_OCCUPANCY)
		return THEORETICAL;
	if (metric < PLUMB_METRIC_USER)
		return COUNTERS;
	name = plumb_profile_metric(p, metric).name;
	return !name                                 ? COUNTERS
	       : !strcmp(name, "flop_count_sp")      ? SINGLE
	       : !strcmp(name, "flop_count_dp")      ? DOUBLE
	       : !strcmp(name, "flop_count_hp")      ? HALF
	       : !strcmp(name, "flop_count_tensor")  ? TENSOR
	       : !strcmp(name, "dram_read_bytes")    ? READ
	       : !strcmp(name, "dram_write_bytes")   ? WRITTEN
	       : !strcmp(name, "achieved_occupancy") ? ACHIEVED
	                                             : COUNTERS;
}

/* The kernel that a value at CONTEXT tells of: its own, or the only one under the call. */
static uint32_t
counted_kernel(const struct plumb_layers_making *m, uint32_t context)
{
	const struct plumb_profile *p = m->layers->profile;
	uint32_t found = m->kernel_of[context];

	if (found != PLUMB_NONE || plumb_context_frame(p, context)->kind != PLUMB_FRAME_GPU_API)
		return found;
	for (uint32_t i = context + 1; i <= p->contexts[context].last; i++) {
		if (m->kernel_of[i] == PLUMB_NONE)
			continue;
		if (found != PLUMB_NONE)
			return PLUMB_NONE;
		found = m->kernel_of[i];
	}
	return found;
}

static double
mean_of(const struct counted *counted, double scale)
{
	return counted->count > 0 ? counted->sum / counted->count * scale : NAN;
}

/* The work of those precisions that are counted. */
static double
flops_of(const struct counted *counted)
{
	double flops = NAN;

	for (int i = SINGLE; i <= TENSOR; i++)
		if (counted[i].count > 0)
			flops = (isnan(flops) ? 0 : flops) + mean_of(&counted[i], 1);
	return flops;
}

static int
read_counters(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	struct counted(*sums)[COUNTERS] = calloc(layers->kernel_count + 1u, sizeof *sums);

	if (!sums)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		enum counter counter = counter_of(p, v->metric);
		uint32_t kernel = counter < COUNTERS ? counted_kernel(m, v->context) : PLUMB_NONE;
		if (kernel == PLUMB_NONE)
			continue;
		struct counted *counted = &sums[kernel][counter];
		counted->sum += v->mean * (double)v->count;
		counted->count += (double)v->count;
	}
	for (uint32_t k = 0; k < layers->kernel_count; k++)
		layers->kernels[k].counters =
			(struct plumb_counters){ flops_of(sums[k]),
			                         mean_of(&sums[k][READ], 1),
			                         mean_of(&sums[k][WRITTEN], 1),
			                         mean_of(&sums[k][ACHIEVED], 1e-6),
			                         mean_of(&sums[k][THEORETICAL], 1e-6),
			                         false };
	free(sums);
	return 0;
}

/* ---- work derived from shapes ---- */

/* By operator context; COUNT -1: some of its calls have shapes that tell nothing. */
static void
derive_operators(const struct plumb_profile *p, const struct plumb_layers_making *m,
                 struct counted *operators)
{
	for (uint32_t i = 0; i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];
		if (v->shapes == PLUMB_NONE || m->backward[v->context] ||
		    plumb_context_frame(p, v->context)->kind != PLUMB_FRAME_OPERATOR)
			continue;
		const char *name = plumb_text(p, plumb_context_frame(p, v->context)->name);
		double flops = plumb_flops_of(name, plumb_text(p, v->shapes));
		struct counted *counted = &operators[v->context];
		if (isnan(flops)) {
			counted->count = -1;
		} else if (counted->count >= 0) {
			counted->sum += flops * (double)v->count;
			counted->count += (double)v->count;
		}
	}
}

/* The only kernel under OPERATOR, all of whose contexts lie there; else PLUMB_NONE. */
static uint32_t
only_kernel(const struct plumb_layers_making *m, uint32_t operator, const uint32_t * contexts_of)
{
	const struct plumb_profile *p = m->layers->profile;
	uint32_t found = PLUMB_NONE;

	for (uint32_t i = operator+ 1; i <= p->contexts[operator].last; i++) {
		if (m->kernel_of[i] == PLUMB_NONE)
			continue;
		if (found != PLUMB_NONE)
			return PLUMB_NONE;
		found = m->kernel_of[i];
	}
	return found != PLUMB_NONE && contexts_of[found] == 1 ? found : PLUMB_NONE;
}

/* Marks the layers in which an operator has work that neither its shapes nor those within it
 * tell. */
static int
find_unknown(struct plumb_layers_making *m, const struct counted *operators)
{
	enum { TOLD = 1, UNTOLD = 2 };
	const struct plumb_profile *p = m->layers->profile;
	unsigned char *state = calloc(p->contexts_count + 1u, 1);

	for (uint32_t i = p->contexts_count; state && i-- > 1;) {
		const struct plumb_frame *frame = plumb_context_frame(p, i);
		if (m->backward[i])
			continue;
		if (operators[i].count > 0)
			state[i] = TOLD;
		else if (!(state[i] & TOLD) && frame->kind == PLUMB_FRAME_OPERATOR &&
		         plumb_flops_has(plumb_text(p, frame->name)))
			state[i] = UNTOLD;
		state[p->contexts[i].parent] |= state[i];
		if (m->starts[i] && (state[i] & UNTOLD))
			m->layers->items[m->layer_of[i]].work_unknown = true;
	}
	int code = state ? 0 : PLUMB_ESYSTEM;
	free(state);
	return code;
}

/* Adds the work of the outermost operators to their layers. */
static void
derive_layers(struct plumb_layers_making *m, const struct counted *operators, unsigned char *within)
{
	const struct plumb_profile *p = m->layers->profile;

	for (uint32_t i = 1; i < p->contexts_count; i++) {
		bool known = operators[i].count > 0, inner = within[p->contexts[i].parent];
		within[i] = known || inner;
		if (m->layer_of[i] == PLUMB_NONE || !known || inner)
			continue;
		struct plumb_layer_row *row = &m->layers->items[m->layer_of[i]];
		double flops = operators[i].sum / (double)m->layers->runs;
		if (row->work_unknown)
			continue;
		row->counters.flops =
			isnan(row->counters.flops) ? flops : row->counters.flops + flops;
		row->counters.derived = true;
	}
}

static int
derive_flops(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	struct counted *operators = calloc(p->contexts_count + 1u, sizeof *operators);
	uint32_t *contexts_of = calloc(layers->kernel_count + 1u, sizeof *contexts_of);
	unsigned char *within =
		calloc(p->contexts_count + 1u, 1); /* an operator whose work is known */
	int code = operators && contexts_of && within ? 0 : PLUMB_ESYSTEM;

	if (!code) {
		derive_operators(p, m, operators);
		code = find_unknown(m, operators);
	}
	if (!code)
		derive_layers(m, operators, within);
	for (uint32_t i = 0; i < p->contexts_count && !code; i++)
		if (m->kernel_of[i] != PLUMB_NONE)
			contexts_of[m->kernel_of[i]]++;
	for (uint32_t i = 0; i < p->contexts_count && !code; i++) {
		if (m->layer_of[i] == PLUMB_NONE || !(operators[i].count > 0))
			continue;
		uint32_t kernel = only_kernel(m, i, contexts_of);
		if (kernel == PLUMB_NONE || !isnan(layers->kernels[kernel].counters.flops))
			continue;
		/* An operator may run it several times, each time for a part. */
		double times = round(layers->kernels[kernel].count * (double)layers->runs);
		layers->kernels[kernel].counters.flops =
			operators[i].sum / fmax(operators[i].count, times);
		layers->kernels[kernel].counters.derived = true;
	}
	free(operators);
	free(contexts_of);
	free(within);
	return code;
}

/* ---- the parts that layers.c calls ---- */

static void
choose_shapes(struct plumb_layers_making *m, uint64_t *most)
{
	const struct plumb_profile *p = m->layers->profile;

	for (uint32_t i = 0; i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];
		uint32_t layer = m->layer_of[v->context];
		if (layer == PLUMB_NONE || v->shapes == PLUMB_NONE || !m->starts[v->context] ||
		    v->count <= most[layer])
			continue;
		most[layer] = v->count;
		m->layers->items[layer].shapes = v->shapes;
	}
}

int
plumb_layers_kernels(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	struct plumb_map map = { 0 };
	uint32_t capacity = 0;
	uint64_t *most = calloc(layers->count + 1u, sizeof *most);
	int code = most ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < p->values_count && !code; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t layer = m->layer_of[v->context];
		if (v->metric != PLUMB_METRIC_GPU_TIME || !plumb_layers_in_model(m, v->context) ||
		    m->backward[v->context] ||
		    plumb_context_frame(p, v->context)->kind != PLUMB_FRAME_KERNEL)
			continue;
		uint32_t kernel =
			kernel_of(&map, layers, &capacity, layer, p->contexts[v->context].frame);
		if (kernel == PLUMB_NONE) {
			code = PLUMB_ESYSTEM;
			break;
		}
		m->kernel_of[v->context] = kernel;
		layers->kernels[kernel].total += (double)v->sum / 1e3;
		layers->kernels[kernel].count += (double)v->count;
	}
	for (uint32_t k = 0; k < layers->kernel_count && !code; k++) {
		struct plumb_layer_kernel *kernel = &layers->kernels[k];
		kernel->us = kernel->count > 0 ? kernel->total / kernel->count : NAN;
		kernel->count /= (double)layers->runs;
		kernel->total /= (double)layers->runs;
	}
	if (!code)
		choose_shapes(m, most);
	if (!code)
		code = read_counters(m);
	if (!code)
		code = derive_flops(m);
	free(most);
	plumb_map_free(&map);
	return code;
}

int
plumb_layers_counters(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	struct plumb_counters_sum *tallies = calloc(layers->count + 1u, sizeof *tallies);

	if (!tallies)
		return PLUMB_ESYSTEM;
	for (uint32_t k = 0; k < layers->kernel_count; k++)
		if (layers->kernels[k].layer != PLUMB_NONE)
			plumb_counters_add(&tallies[layers->kernels[k].layer],
			                   &layers->kernels[k].counters, layers->kernels[k].count,
			                   layers->kernels[k].total);
	for (uint32_t i = 0; i < layers->count; i++) {
		struct plumb_counters sum = plumb_counters_end(&tallies[i]);
		/* What the operators tell is whole where a kernel's may lack some. */
		if (isnan(sum.flops) || sum.derived) {
			sum.flops = layers->items[i].counters.flops;
			sum.derived = layers->items[i].counters.derived;
		}
		layers->items[i].counters = sum;
	}
	free(tallies);
	return 0;
}

/* ---- counters together ---- */

void
plumb_counters_add(struct plumb_counters_sum *tally, const struct plumb_counters *counters,
                   double times, double us)
{
	tally->some = true;
	tally->sum.flops += counters->flops * times;
	tally->sum.dram_read += counters->dram_read * times;
	tally->sum.dram_write += counters->dram_write * times;
	tally->sum.achieved += counters->achieved * us;
	tally->sum.theoretical += counters->theoretical * us;
	tally->sum.derived |= counters->derived;
	tally->us += us;
}

struct plumb_counters
plumb_counters_end(const struct plumb_counters_sum *tally)
{
	struct plumb_counters sum = tally->sum;

	if (!tally->some)
		return (struct plumb_counters){ NAN, NAN, NAN, NAN, NAN, false };
	sum.achieved = tally->us > 0 ? sum.achieved / tally->us : NAN;
	sum.theoretical = tally->us > 0 ? sum.theoretical / tally->us : NAN;
	return sum;
}
