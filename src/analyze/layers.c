/* SPDX-License-Identifier: Apache-2.0 */
/* Which contexts are layers, and what the profile's totals say of them; layer_calls.c has what
 * spans say. */
#include "analyze/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layer_calls.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/framework/framework.h"
#include "model/metric.h"

const char *
plumb_latency_kind_name(enum plumb_latency_kind kind)
{
	static const char *const names[] = { NULL,         "host span",   "operators", "complete",
		                             "serialised", "device span", "M/L",       "M" };

	return names[kind];
}

void
plumb_layers_free(struct plumb_layers *layers)
{
	free(layers->items);
	free(layers->kernels);
	*layers = (struct plumb_layers){ 0 };
}

/* ---- which contexts ---- */

/* Tells for each context whether a module lies under it, and for each frame whether one lies under
 * any of its. */
static void
find_inner(const struct plumb_profile *p, unsigned char *inner, unsigned char *frame_inner)
{
	for (uint32_t i = p->contexts_count; i-- > 1;) {
		const struct plumb_context *context = &p->contexts[i];
		bool module = p->frames[context->frame].kind == PLUMB_FRAME_MODULE;
		if (inner[i] && module)
			frame_inner[context->frame] = 1;
		inner[context->parent] |= inner[i] || module;
	}
}

/* Is it a module in none of whose calls another is seen? */
static bool
is_leaf(const struct plumb_profile *p, uint32_t context, const unsigned char *frame_inner)
{
	uint32_t frame = p->contexts[context].frame;

	return p->frames[frame].kind == PLUMB_FRAME_MODULE && !frame_inner[frame];
}

static uint32_t
find_common(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	while (a != b) {
		if (p->contexts[a].depth >= p->contexts[b].depth)
			a = p->contexts[a].parent;
		else
			b = p->contexts[b].parent;
	}
	return a;
}

/* The innermost module or range around all leaf modules, or PLUMB_NONE. */
static uint32_t
find_around(const struct plumb_layers_making *m, const unsigned char *frame_inner)
{
	const struct plumb_profile *p = m->layers->profile;
	uint32_t model = PLUMB_NONE;

	for (uint32_t i = 1; i < p->contexts_count; i++)
		if (is_leaf(p, i, frame_inner) && !m->backward[i])
			model = model == PLUMB_NONE ? i : find_common(p, model, i);
	uint32_t inmost = model;
	/* Of one module alone what is around it, if anything is. */
	if (model != PLUMB_NONE && is_leaf(p, model, frame_inner))
		model = p->contexts[model].parent;
	for (; model != PLUMB_NONE; model = p->contexts[model].parent) {
		uint32_t kind = plumb_context_frame(p, model)->kind;
		if (kind == PLUMB_FRAME_MODULE || kind == PLUMB_FRAME_RANGE)
			return model;
	}
	return inmost != PLUMB_NONE && is_leaf(p, inmost, frame_inner) ? inmost : PLUMB_NONE;
}

/* The frame of the outermost module over every leaf module, or PLUMB_NONE: it may be called in many
 * places. */
static uint32_t
find_outermost(const struct plumb_layers_making *m, const unsigned char *frame_inner,
               uint32_t *outer)
{
	const struct plumb_profile *p = m->layers->profile;
	uint32_t model = PLUMB_NONE;

	outer[0] = PLUMB_NONE;
	for (uint32_t i = 1; i < p->contexts_count; i++) {
		uint32_t frame = p->contexts[i].frame;
		outer[i] = outer[p->contexts[i].parent];
		if (outer[i] == PLUMB_NONE && p->frames[frame].kind == PLUMB_FRAME_MODULE)
			outer[i] = frame;
		if (!is_leaf(p, i, frame_inner) || m->backward[i])
			continue;
		if (model != PLUMB_NONE && model != outer[i])
			return PLUMB_NONE;
		model = outer[i];
	}
	return model != PLUMB_NONE && frame_inner[model] ? model : PLUMB_NONE;
}

/* A frame that may be the model by its NAME: of a layer above operators, or an operator. NULL: the
 * name of a framework's steps. */
static bool
is_named(const struct plumb_profile *p, uint32_t frame, const char *name)
{
	uint32_t kind = p->frames[frame].kind;
	const char *label = plumb_frame_label(p, frame);

	if (kind != PLUMB_FRAME_MODULE && kind != PLUMB_FRAME_RANGE && kind != PLUMB_FRAME_PYTHON &&
	    kind != PLUMB_FRAME_OPERATOR)
		return false;
	name = name ? name : plumb_framework_step(label);
	return name && !strcmp(label, name);
}

static bool
starts_layer(const struct plumb_profile *p, enum plumb_layer_kind kind, uint32_t context,
             const unsigned char *inner, const unsigned char *frame_inner)
{
	uint32_t frame = p->contexts[context].frame;

	if (p->frames[frame].kind == PLUMB_FRAME_MODULE)
		return kind != PLUMB_LAYER_IS_OPERATOR && !frame_inner[frame];
	if (p->frames[frame].kind == PLUMB_FRAME_OPERATOR)
		return kind == PLUMB_LAYER_IS_OPERATOR ||
		       (kind == PLUMB_LAYER_IS_EITHER && !inner[context]);
	return false;
}

/* The contexts that call the model: of FRAME, else AROUND, else those of NAME. */
static void
mark_model(struct plumb_layers_making *m, uint32_t frame, uint32_t around, const char *name)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;

	for (uint32_t i = 1; i < p->contexts_count; i++) {
		bool inside = m->in_model[p->contexts[i].parent];
		uint32_t own = p->contexts[i].frame;
		m->calls_model[i] = !inside && !m->backward[i] &&
		                    (frame != PLUMB_NONE    ? own == frame
		                     : around != PLUMB_NONE ? i == around
		                                            : is_named(p, own, name));
		m->in_model[i] = inside || m->calls_model[i];
		if (m->calls_model[i] && layers->model == PLUMB_NONE)
			layers->model = i;
	}
}

/* A step is no model if modules run outside it alone: in other threads, or before the first
 * step. */
static void
check_steps(struct plumb_layers_making *m, const unsigned char *inner,
            const unsigned char *frame_inner)
{
	const struct plumb_profile *p = m->layers->profile;
	bool modules = false, operators = false, outside = false;

	for (uint32_t i = 1; i < p->contexts_count; i++) {
		bool module = p->frames[p->contexts[i].frame].kind == PLUMB_FRAME_MODULE;
		if (m->backward[i] || !starts_layer(p, m->options->kind, i, inner, frame_inner))
			continue;
		modules |= module && m->in_model[i];
		operators |= !module && m->in_model[i];
		outside |= module && !m->in_model[i];
	}
	if (modules || (operators && !outside))
		return;
	memset(m->calls_model, 0, p->contexts_count);
	memset(m->in_model, 0, p->contexts_count);
	m->layers->model = PLUMB_NONE;
}

/* The model by name where one is given, else by modules, else what a framework's profiler marks as
 * a step. */
static int
find_model(struct plumb_layers_making *m, const unsigned char *inner,
           const unsigned char *frame_inner)
{
	const struct plumb_profile *p = m->layers->profile;
	const char *name = m->options->model;
	uint32_t *outer = malloc((p->contexts_count + 1u) * sizeof *outer);

	if (!outer)
		return PLUMB_ESYSTEM;
	uint32_t frame = name ? PLUMB_NONE : find_outermost(m, frame_inner, outer);
	uint32_t around = name || frame != PLUMB_NONE ? PLUMB_NONE : find_around(m, frame_inner);
	free(outer);
	bool steps = frame == PLUMB_NONE && around == PLUMB_NONE && !name;
	mark_model(m, frame, around, name);
	if (steps)
		check_steps(m, inner, frame_inner);
	return 0;
}

static const struct plumb_layer_row blank = {
	.shapes = PLUMB_NONE,
	.calls = 0,
	.host_us = NAN,
	.latency_us = NAN,
	.serialised_us = NAN,
	.idle_us = NAN,
	.busy_us = NAN,
	.allocated = NAN,
	.peak = NAN,
	.counters = { NAN, NAN, NAN, NAN, NAN, false },
};

/* For each context in the model the first that has the same place in it, of all places that call
 * the model: one path, however it came there. For others itself. NULL: no memory. */
static uint32_t *
find_twins(const struct plumb_layers_making *m)
{
	const struct plumb_profile *p = m->layers->profile;
	uint32_t *twin = malloc((p->contexts_count + 1u) * sizeof *twin);
	struct plumb_map map = { 0 };

	for (uint32_t i = 0; twin && i < p->contexts_count; i++) {
		const struct plumb_context *c = &p->contexts[i];
		struct plumb_map_cursor at;
		twin[i] = m->calls_model[i] ? m->layers->model : i;
		if (!m->in_model[i] || m->calls_model[i])
			continue;
		uint64_t hash = plumb_hash_mix(plumb_hash_mix(twin[c->parent], c->frame), c->flags);
		uint32_t other = plumb_map_first(&map, hash, &at);
		for (; other != PLUMB_MAP_NONE; other = plumb_map_next(&map, &at))
			if (twin[p->contexts[other].parent] == twin[c->parent] &&
			    p->contexts[other].frame == c->frame &&
			    p->contexts[other].flags == c->flags)
				break;
		if (other != PLUMB_MAP_NONE) {
			twin[i] = other;
		} else if (plumb_map_add(&map, hash, i)) {
			free(twin);
			twin = NULL;
		}
	}
	plumb_map_free(&map);
	return twin;
}

/* Makes the layers, and tells for each context which it is in. A module is one layer wherever it is
 * called, an operator in each place of the model. */
static int
assign_layers(struct plumb_layers_making *m, const unsigned char *inner,
              const unsigned char *frame_inner)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	bool bounded = layers->model != PLUMB_NONE && !m->options->whole;
	PLUMB_VEC(struct plumb_layer_row) rows = { 0 };
	uint32_t *of_frame = malloc((p->frames_count + 1u) * sizeof *of_frame);
	uint32_t *twin = find_twins(m);
	int code = 0;

	if (!of_frame || !twin) {
		free(of_frame);
		free(twin);
		return PLUMB_ESYSTEM;
	}
	memset(of_frame, 0xff, (p->frames_count + 1u) * sizeof *of_frame);
	for (uint32_t i = 1; i < p->contexts_count; i++) {
		uint32_t frame = p->contexts[i].frame;
		m->layer_of[i] = m->layer_of[p->contexts[i].parent];
		if (m->layer_of[i] != PLUMB_NONE || m->backward[i] ||
		    !starts_layer(p, m->options->kind, i, inner, frame_inner) ||
		    (bounded && !m->in_model[i]))
			continue;
		m->starts[i] = 1;
		bool module = p->frames[frame].kind == PLUMB_FRAME_MODULE;
		if (module && of_frame[frame] != PLUMB_NONE) {
			m->layer_of[i] = of_frame[frame];
			continue;
		}
		if (!module && twin[i] < i && m->starts[twin[i]]) {
			m->layer_of[i] = m->layer_of[twin[i]];
			continue;
		}
		struct plumb_layer_row *row = plumb_vec_add(&rows);
		if (!row) {
			code = PLUMB_ESYSTEM;
			break;
		}
		*row = blank;
		row->frame = frame;
		row->context = i;
		m->layer_of[i] = rows.count - 1;
		of_frame[frame] = module ? rows.count - 1 : PLUMB_NONE;
	}
	free(of_frame);
	free(twin);
	layers->items = rows.items;
	layers->count = rows.count;
	return code;
}

/* ---- totals ---- */

static bool
is_device_memory(const struct plumb_profile *p, uint32_t track)
{
	return track == PLUMB_NONE || p->tracks[track].kind != PLUMB_TRACK_MEMORY ||
	       p->tracks[track].device != PLUMB_NONE;
}

static void
add_known(double *sum, double value)
{
	*sum = isnan(*sum) ? value : *sum + value;
}

/* Sums of one layer, not yet by run. */
struct totals {
	double module_calls, op_calls, durations, duration, op_time;
};

static void
take_value(struct plumb_layers_making *m, struct totals *t, const struct plumb_value *v)
{
	struct plumb_layer_row *row = &m->layers->items[m->layer_of[v->context]];
	bool starts = m->starts[v->context];

	if (v->metric == PLUMB_METRIC_GPU_TIME) {
		*(m->backward[v->context] ? &row->backward_us : &row->device_us) +=
			(double)v->sum / 1e3;
	} else if (m->backward[v->context]) {
		return;
	} else if (v->metric == PLUMB_METRIC_OP_TIME) {
		add_known(&t->op_time, (double)v->sum / 1e3);
	} else if (v->metric == PLUMB_METRIC_MODULE_CALLS && starts) {
		add_known(&t->module_calls, (double)v->sum);
	} else if (v->metric == PLUMB_METRIC_OP_CALLS && starts) {
		add_known(&t->op_calls, (double)v->sum);
	} else if (v->metric == PLUMB_METRIC_OP_DURATION && starts) {
		add_known(&t->durations, (double)v->count);
		add_known(&t->duration, v->mean * (double)v->count / 1e3);
	} else if (v->metric == PLUMB_METRIC_MEM_ALLOC &&
	           is_device_memory(m->layers->profile, v->track)) {
		add_known(&row->allocated, (double)v->sum);
	} else if (v->metric == PLUMB_METRIC_MEM_PEAK &&
	           is_device_memory(m->layers->profile, v->track)) {
		row->peak = fmax(row->peak, (double)v->max);
	}
}

/* Launches wait, so that the host's time holds the device's. */
void
plumb_layer_serialised(struct plumb_layer_row *row, double us)
{
	row->latency = PLUMB_LATENCY_SERIALISED;
	row->latency_us = us;
	row->busy_us = isnan(row->device_us) ? NAN : fmin(row->device_us, us);
	row->idle_us = us - row->busy_us;
}

/* What of the totals is of all calls becomes of one run. */
static void
finish_row(struct plumb_layers_making *m, struct plumb_layer_row *row, const struct totals *t)
{
	double runs = (double)m->layers->runs;
	const struct plumb_profile *p = m->layers->profile;

	row->calls = (!isnan(t->module_calls) ? t->module_calls
	              : !isnan(t->op_calls)   ? t->op_calls
	                                      : t->durations) /
	             runs;
	row->host_us = (isnan(t->duration) ? t->op_time : t->duration) / runs;
	row->host = isnan(row->host_us)  ? PLUMB_LATENCY_UNKNOWN
	            : isnan(t->duration) ? PLUMB_LATENCY_OPERATORS
	                                 : PLUMB_LATENCY_HOST_SPAN;
	row->device_us = p->devices_count ? row->device_us / runs : NAN;
	row->backward_us = m->tells_backward ? row->backward_us / runs : NAN;
	row->allocated /= runs;
	if (m->options->serialised && row->host != PLUMB_LATENCY_UNKNOWN) {
		row->host = PLUMB_LATENCY_SERIALISED;
		plumb_layer_serialised(row, row->host_us);
	}
}

bool
plumb_layers_in_model(const struct plumb_layers_making *m, uint32_t context)
{
	bool bounded = m->layers->model != PLUMB_NONE && !m->options->whole;

	return !bounded || m->in_model[context] || m->layer_of[context] != PLUMB_NONE;
}

/* The time of the model's kernels, whether they lie in layers or not. */
static void
take_model(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	double runs = (double)layers->runs;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		if (v->metric == PLUMB_METRIC_GPU_TIME && plumb_layers_in_model(m, v->context))
			*(m->backward[v->context] ? &layers->backward_us : &layers->device_us) +=
				(double)v->sum / 1e3;
	}
	layers->device_us = p->devices_count ? layers->device_us / runs : NAN;
	layers->backward_us = m->tells_backward ? layers->backward_us / runs : NAN;
}

static int
take_totals(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	struct totals *totals = malloc((layers->count + 1u) * sizeof *totals);

	if (!totals)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < layers->count; i++)
		totals[i] = (struct totals){ NAN, NAN, NAN, NAN, NAN };
	for (uint32_t i = 0; i < p->values_count; i++)
		if (m->layer_of[p->values[i].context] != PLUMB_NONE)
			take_value(m, &totals[m->layer_of[p->values[i].context]], &p->values[i]);
	for (uint32_t i = 0; i < layers->count; i++)
		finish_row(m, &layers->items[i], &totals[i]);
	take_model(m);
	free(totals);
	return 0;
}

/* ---- the model ---- */

double
plumb_layers_model_times(const struct plumb_layers_making *m)
{
	return m->model_calls >= 1 ? m->model_calls / (double)m->layers->runs : 1;
}

static void
measure_model(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	double calls = 0, durations = 0, duration = 0, op_time = NAN;
	uint32_t model = layers->model;

	for (uint32_t i = 0; i < p->values_count && model != PLUMB_NONE; i++) {
		const struct plumb_value *v = &p->values[i];
		if (m->calls_model[v->context] && v->metric == PLUMB_METRIC_MODULE_CALLS)
			calls += (double)v->sum;
		if (m->calls_model[v->context] && v->metric == PLUMB_METRIC_OP_DURATION) {
			durations += (double)v->count;
			duration += v->mean * (double)v->count / 1e3;
		}
		if (v->metric == PLUMB_METRIC_OP_TIME && m->in_model[v->context] &&
		    !m->backward[v->context])
			add_known(&op_time, (double)v->sum / 1e3);
	}
	calls = fmax(calls, durations);
	m->model_calls = calls;
	layers->runs = m->options->runs > 0 ? m->options->runs
	               : calls >= 1         ? (int64_t)fmin(calls, 1e15)
	                                    : 1;
	layers->model_us = NAN;
	if (durations > 0) {
		layers->model_us = duration / durations * plumb_layers_model_times(m);
		layers->model_kind = PLUMB_LATENCY_HOST_SPAN;
	} else if (!isnan(op_time)) {
		layers->model_us = op_time / (double)layers->runs;
		layers->model_kind = PLUMB_LATENCY_OPERATORS;
	}
	for (uint32_t i = 0; i < p->devices_count && model == PLUMB_NONE; i++) {
		const struct plumb_device *d = &p->devices[i];
		if (d->first_ns == PLUMB_UNKNOWN || d->last_ns == PLUMB_UNKNOWN)
			continue;
		layers->model_us =
			fmax(layers->model_us, ((double)d->last_ns - (double)d->first_ns) / 1e3 /
		                                       (double)layers->runs);
		layers->model_kind = PLUMB_LATENCY_DEVICE;
	}
	if (m->options->serialised && layers->model_kind != PLUMB_LATENCY_DEVICE &&
	    layers->model_kind != PLUMB_LATENCY_UNKNOWN)
		layers->model_kind = PLUMB_LATENCY_SERIALISED;
}

/* ---- order ---- */

static int
by_layer(const void *a, const void *b)
{
	const struct plumb_layer_kernel *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

/* Numbers layers by their first spans; those without any come last. */
static int
put_in_order(struct plumb_layers_making *m)
{
	struct plumb_layers *layers = m->layers;
	uint32_t count = layers->count;
	struct plumb_sort_item *order = malloc((2 * (size_t)count + 1) * sizeof *order);
	uint32_t *place = malloc((count + 1u) * sizeof *place);
	struct plumb_layer_row *rows = malloc((count + 1u) * sizeof *rows);
	int code = order && place && rows ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < count && !code; i++) {
		order[i] = (struct plumb_sort_item){ plumb_sort_signed(m->first_ns[i]), i };
		layers->in_order |= m->first_ns[i] != INT64_MAX;
	}
	if (!code) {
		plumb_sort(order, order + count, count);
		for (uint32_t i = 0; i < count; i++) {
			rows[i] = layers->items[order[i].index];
			place[order[i].index] = i;
		}
		for (uint32_t i = 0; i < layers->kernel_count; i++)
			if (layers->kernels[i].layer != PLUMB_NONE)
				layers->kernels[i].layer = place[layers->kernels[i].layer];
		if (layers->kernel_count)
			qsort(layers->kernels, layers->kernel_count, sizeof *layers->kernels,
			      by_layer);
		free(layers->items);
		layers->items = rows;
		rows = NULL;
	}
	free(order);
	free(place);
	free(rows);
	return code;
}

/* ---- all of it ---- */

/* What another tool recorded has backward work where some is marked; else its time is not known. */
static void
mark_backward(struct plumb_layers_making *m)
{
	const struct plumb_profile *p = m->layers->profile;
	bool tells = !plumb_profile_environment(p, "import.format");

	for (uint32_t i = 1; i < p->contexts_count; i++) {
		m->backward[i] = m->backward[p->contexts[i].parent] ||
		                 (p->contexts[i].flags &
		                  (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION));
		tells |= m->backward[i];
	}
	m->tells_backward = tells && p->devices_count;
}

static int
make_layers(struct plumb_layers_making *m, unsigned char *inner, unsigned char *frame_inner)
{
	struct plumb_layers *layers = m->layers;
	const struct plumb_profile *p = layers->profile;
	int code;

	mark_backward(m);
	find_inner(p, inner, frame_inner);
	if (find_model(m, inner, frame_inner))
		return PLUMB_ESYSTEM;
	code = assign_layers(m, inner, frame_inner);
	m->first_ns = malloc((layers->count + 1u) * sizeof *m->first_ns);
	if (code || !m->first_ns)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i <= layers->count; i++)
		m->first_ns[i] = INT64_MAX;
	measure_model(m);
	code = take_totals(m);
	if (!code)
		code = plumb_layers_kernels(m);
	if (!code && p->spans_count)
		code = plumb_layers_calls(m);
	if (!code)
		code = plumb_layers_counters(m);
	if (!code && p->levels_count)
		code = plumb_layers_levels(m);
	return code ? code : put_in_order(m);
}

int
plumb_layers_make(const struct plumb_profile *profile, const struct plumb_layers_options *options,
                  struct plumb_layers *layers, struct plumb_error *error)
{
	size_t contexts = profile->contexts_count + 1u;
	struct plumb_layers_making m = {
		.layers = layers,
		.options = options,
		.layer_of = malloc(contexts * sizeof *m.layer_of),
		.kernel_of = malloc(contexts * sizeof *m.kernel_of),
		.backward = calloc(contexts, 1),
		.starts = calloc(contexts, 1),
		.calls_model = calloc(contexts, 1),
		.in_model = calloc(contexts, 1),
	};
	unsigned char *inner = calloc(contexts, 1);
	unsigned char *frame_inner = calloc(profile->frames_count + 1u, 1);
	int code = PLUMB_ESYSTEM;

	*layers = (struct plumb_layers){ .profile = profile, .model = PLUMB_NONE, .model_us = NAN };
	if (m.layer_of && m.kernel_of && m.backward && m.starts && m.calls_model && m.in_model &&
	    inner && frame_inner) {
		memset(m.layer_of, 0xff, contexts * sizeof *m.layer_of);
		memset(m.kernel_of, 0xff, contexts * sizeof *m.kernel_of);
		code = make_layers(&m, inner, frame_inner);
	}
	free(m.layer_of);
	free(m.kernel_of);
	free(m.backward);
	free(m.starts);
	free(m.calls_model);
	free(m.in_model);
	free(m.first_ns);
	free(inner);
	free(frame_inner);
	if (code)
		code = plumb_fail_memory(error, NULL);
	else if (options->model && layers->model == PLUMB_NONE)
		code = plumb_fail(error, PLUMB_EEMPTY,
		                  "there is no module, range, operator or function \"%s\"; plumb "
		                  "report --by module (or range, operator, python) lists them",
		                  options->model);
	else if (!layers->count && options->model)
		code = plumb_fail(error, PLUMB_EEMPTY,
		                  "there is no layer: \"%s\" holds neither modules nor "
		                  "operators; use --whole to take layers from the whole recording",
		                  options->model);
	else if (!layers->count)
		code = plumb_fail(error, PLUMB_EEMPTY,
		                  "there is no layer: the profile holds neither modules nor "
		                  "operators");
	if (code)
		plumb_layers_free(layers);
	return code;
}
