/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of a profile that has levels: the model's time from M, layers' from M/L, kernels' from
 * M/L/G. A time of this profile is multiplied by what its contexts take at their level, relative to
 * what they take in this profile, so that it stays a time of one run of the model. */
#include <math.h>
#include <stdlib.h>

#include "analyze/layer_calls.h"
#include "analyze/levels.h"

/* What something takes at its level, and in this profile. */
struct pair {
	double at_level, here;
	bool unknown; /* a part of it was left out */
};

static void
add(struct pair *pair, const struct plumb_level_value *v)
{
	pair->here += (double)v->own_recorded_ns;
	if (v->own_ns == PLUMB_UNKNOWN)
		pair->unknown = true;
	else
		pair->at_level += (double)v->own_ns;
}

/* NAN: nothing is known of its level. */
static double
ratio_of(const struct pair *pair)
{
	return pair->here > 0 && !pair->unknown ? pair->at_level / pair->here : NAN;
}

struct pairs {
	struct pair *host, *serialised, *device, *backward; /* by layer */
	struct pair *kernels;                               /* by kernel */
	struct pair model_device, model_backward;
};

static void
take(struct plumb_layers_making *m, struct pairs *pairs, const struct plumb_level_value *v)
{
	uint32_t layer = m->layer_of[v->context], kernel = m->kernel_of[v->context];
	bool backward = m->backward[v->context];

	if (v->metric == PLUMB_METRIC_OP_TIME && layer != PLUMB_NONE && !backward)
		add(v->level == PLUMB_LEVEL_SERIALISED ? &pairs->serialised[layer]
		                                       : &pairs->host[layer],
		    v);
	if (v->metric != PLUMB_METRIC_GPU_TIME)
		return;
	if (layer != PLUMB_NONE)
		add(backward ? &pairs->backward[layer] : &pairs->device[layer], v);
	if (kernel != PLUMB_NONE)
		add(&pairs->kernels[kernel], v);
	if (plumb_layers_in_model(m, v->context))
		add(backward ? &pairs->model_backward : &pairs->model_device, v);
}

static void
scale(double *us, const struct pair *pair)
{
	double ratio = ratio_of(pair);

	if (!isnan(ratio))
		*us *= ratio;
}

static void
scale_layer(struct plumb_layer_row *row, const struct pairs *pairs, uint32_t i)
{
	double serialised = row->host_us * ratio_of(&pairs->serialised[i]);

	scale(&row->device_us, &pairs->device[i]);
	scale(&row->backward_us, &pairs->backward[i]);
	if (!isnan(serialised)) {
		row->serialised_us = serialised;
		if (row->latency == PLUMB_LATENCY_UNKNOWN)
			plumb_layer_serialised(row, serialised);
	}
	if (isnan(ratio_of(&pairs->host[i])))
		return;
	row->host_us *= ratio_of(&pairs->host[i]);
	row->host = PLUMB_LATENCY_ML;
}

/* How often the model is called in an iteration; NAN: unknown. */
static double
calls_in_iteration(const struct plumb_layers_making *m, const struct plumb_level_row *row)
{
	const struct plumb_profile *p = m->layers->profile;
	double modules = 0, ranges = 0;
	struct plumb_cost_loop loop;
	struct plumb_error error;

	if (p->window.kind) /* of the main loop, its calls are all there are */
		return p->window.is_main && row->steps > 0 ? m->model_calls / (double)row->steps
		                                           : NAN;
	if (plumb_cost_loop_find(p, &loop, &error) < 0 || loop.process == PLUMB_NONE)
		return NAN;
	for (uint32_t i = 0; i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		if (v->window != loop.window || !m->calls_model[v->context])
			continue;
		modules += v->metric == PLUMB_METRIC_MODULE_CALLS ? (double)v->sum : 0;
		ranges += v->metric == PLUMB_METRIC_OP_DURATION ? (double)v->count : 0;
	}
	return fmax(modules, ranges) / (double)p->windows[loop.window].iterations;
}

static void
take_model(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_level_row *row = plumb_levels_row(layers->profile, PLUMB_LEVEL_M);
	double calls;

	if (!row || row->time_ns == PLUMB_UNKNOWN || row->scope != PLUMB_COST_OF_STEP ||
	    layers->model == PLUMB_NONE)
		return;
	calls = calls_in_iteration(m, row);
	if (!(calls > 0))
		return;
	layers->model_us = (double)row->time_ns / 1e3 / calls * plumb_layers_model_times(m);
	layers->model_kind = PLUMB_LATENCY_M;
}

int
plumb_layers_levels(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	size_t count = layers->count + 1u;
	struct pair *all = calloc(4 * count + layers->kernel_count + 1, sizeof *all);
	struct pairs pairs = { .host = all,
		               .serialised = all + count,
		               .device = all + 2 * count,
		               .backward = all + 3 * count,
		               .kernels = all + 4 * count };

	if (!all)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->level_values_count; i++)
		take(m, &pairs, &p->level_values[i]);
	for (uint32_t i = 0; i < layers->count; i++)
		scale_layer(&layers->items[i], &pairs, i);
	for (uint32_t k = 0; k < layers->kernel_count; k++) {
		scale(&layers->kernels[k].us, &pairs.kernels[k]);
		scale(&layers->kernels[k].total, &pairs.kernels[k]);
	}
	scale(&layers->device_us, &pairs.model_device);
	scale(&layers->backward_us, &pairs.model_backward);
	take_model(m);
	free(all);
	return 0;
}
