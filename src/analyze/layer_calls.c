/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of layers one by one, from a profile's spans. A call ends on the host when it returns, and
 * as a whole when the last work ends that was launched in it. That a kernel is of a call is told by
 * when its launch began: an asynchronous engine runs it when the host is in a later layer.
 */
#include "analyze/layer_calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"
#include "model/launches.h"

struct call {
	uint32_t layer; /* layers->count: the model */
	uint32_t track;
	int64_t start, end, last; /* last: of its GPU work, too */
	int64_t busy, until;      /* union of its GPU work so far, and where that ends */
};

struct work {
	uint32_t call;
	int64_t start, end;
};

struct sample {
	uint32_t group;
	double us;
};

typedef PLUMB_VEC(struct call) calls_of;
typedef PLUMB_VEC(struct work) works_of;
typedef PLUMB_VEC(struct sample) samples_of;

static int
by_place(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int
by_start(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int
by_group(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->group > y->group) - (x->group < y->group);
}

/* The call of LAYER on TRACK that TIME lies in, or PLUMB_NONE. */
static uint32_t
call_at(const calls_of *calls, uint32_t layer, uint32_t track, int64_t time)
{
	struct call key = { .layer = layer, .track = track, .start = time };
	uint32_t low = plumb_search(i, calls->count, by_place(&calls->items[i], &key) <= 0);
	if (!low)
		return PLUMB_NONE;
	const struct call *found = &calls->items[low - 1];
	return found->layer == layer && found->track == track && time <= found->end ? low - 1
	                                                                            : PLUMB_NONE;
}

static bool
is_thread(const struct plumb_profile *profile, uint32_t track)
{
	return profile->tracks[track].kind == PLUMB_TRACK_THREAD;
}

static bool
is_work(uint32_t kind)
{
	return kind == PLUMB_FRAME_KERNEL || kind == PLUMB_FRAME_COPY || kind == PLUMB_FRAME_SET;
}

static int
add_call(calls_of *calls, uint32_t layer, const struct plumb_span *span)
{
	struct call *call = plumb_vec_add(calls);

	if (call)
		*call = (struct call){ .layer = layer,
			               .track = span->track,
			               .start = span->start_ns,
			               .end = span->end_ns,
			               .last = span->end_ns,
			               .until = span->start_ns };
	return call ? 0 : PLUMB_ESYSTEM;
}

/*
 * plumb's own traces have no spans of modules. Where as many outermost operators ran in each call,
 * the calls are told by them: from the entry of the first to the exit of the last. PIECES are their
 * spans, of the layers (and the model) that have no call yet.
 */
static int
join_pieces(const struct plumb_layers_making *making, calls_of *calls, calls_of *pieces,
            unsigned char *by_operators)
{
	const struct plumb_layers *layers = making->layers;
	int code = 0;

	if (pieces->count)
		qsort(pieces->items, pieces->count, sizeof *pieces->items, by_place);
	for (uint32_t i = 0, next; i < pieces->count && !code; i = next) {
		const struct call *first = &pieces->items[i];
		uint32_t layer = first->layer;
		for (next = i; next < pieces->count && pieces->items[next].layer == layer;)
			next++;
		double times = (layer == layers->count ? plumb_layers_model_times(making)
		                                       : layers->items[layer].calls) *
		               (double)layers->runs;
		if (pieces->items[next - 1].track != first->track || !(times >= 1) ||
		    times > next - i || (next - i) % (uint32_t)llround(times))
			continue;
		uint32_t each = (next - i) / (uint32_t)llround(times);
		by_operators[layer] = 1;
		for (uint32_t at = i; at < next && !code; at += each) {
			struct call *call = plumb_vec_add(calls);
			if (!call) {
				code = PLUMB_ESYSTEM;
				break;
			}
			*call = pieces->items[at];
			call->end = call->last = pieces->items[at + each - 1].end;
		}
	}
	return code;
}

/* The spans of outermost operators in what has no calls of its own. */
static int
gather_pieces(const struct plumb_layers_making *making, calls_of *calls,
              unsigned char *by_operators)
{
	const struct plumb_layers *layers = making->layers;
	const struct plumb_profile *profile = layers->profile;
	unsigned char *known = calloc(layers->count + 1u, 1);
	unsigned char *under = calloc(profile->contexts_count + 1u, 1); /* an operator */
	calls_of pieces = { 0 };
	int code = known && under ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < calls->count && !code; i++)
		known[calls->items[i].layer] = 1;
	for (uint32_t i = 1; i < profile->contexts_count && !code; i++) {
		uint32_t parent = profile->contexts[i].parent;
		under[i] = under[parent] ||
		           plumb_context_frame(profile, parent)->kind == PLUMB_FRAME_OPERATOR;
	}
	for (uint32_t i = 0; i < profile->spans_count && !code; i++) {
		const struct plumb_span *span = &profile->spans[i];
		uint32_t context = span->context, layer = making->layer_of[context];
		if (!is_thread(profile, span->track) || under[context] ||
		    making->backward[context] ||
		    plumb_context_frame(profile, context)->kind != PLUMB_FRAME_OPERATOR)
			continue;
		if (layer != PLUMB_NONE && !known[layer])
			code = add_call(&pieces, layer, span);
		if (!code && making->in_model[context] && !known[layers->count])
			code = add_call(&pieces, layers->count, span);
	}
	if (!code)
		code = join_pieces(making, calls, &pieces, by_operators);
	if (calls->count)
		qsort(calls->items, calls->count, sizeof *calls->items, by_place);
	plumb_vec_free(&pieces);
	free(known);
	free(under);
	return code;
}

/* Calls of layers and of the model. */
static int
gather_calls(struct plumb_layers_making *making, calls_of *calls)
{
	const struct plumb_layers *layers = making->layers;
	const struct plumb_profile *profile = layers->profile;
	int code = 0;

	for (uint32_t i = 0; i < profile->spans_count && !code; i++) {
		const struct plumb_span *span = &profile->spans[i];
		uint32_t context = span->context;
		if (!is_thread(profile, span->track))
			continue;
		if (making->calls_model[context])
			code = add_call(calls, layers->count, span);
		uint32_t layer = making->layer_of[context];
		if (!code && layer != PLUMB_NONE && making->starts[context])
			code = add_call(calls, layer, span);
		if (layer != PLUMB_NONE && span->start_ns < making->first_ns[layer])
			making->first_ns[layer] = span->start_ns;
	}
	if (calls->count)
		qsort(calls->items, calls->count, sizeof *calls->items, by_place);
	return code;
}

static int
add_work(works_of *works, uint32_t call, const struct plumb_span *span)
{
	struct work *work = plumb_vec_add(works);

	if (work)
		*work = (struct work){ call, span->start_ns, span->end_ns };
	return work ? 0 : PLUMB_ESYSTEM;
}

/* GPU work by the call that launched it. LOST[layer] is set where some of it has no call. */
static int
gather_work(struct plumb_layers_making *making, const calls_of *calls,
            struct plumb_launches *launches, works_of *works, unsigned char *lost)
{
	const struct plumb_layers *layers = making->layers;
	const struct plumb_profile *profile = layers->profile;
	int code = 0;

	for (uint32_t i = 0; i < profile->spans_count && !code; i++) {
		const struct plumb_span *span = &profile->spans[i];
		uint32_t layer = making->layer_of[span->context], call;
		if (is_thread(profile, span->track) || making->backward[span->context] ||
		    !is_work(plumb_context_frame(profile, span->context)->kind))
			continue;
		uint32_t launch =
			plumb_launch_before(launches, profile->tracks[span->track].process,
		                            span->correlation, span->start_ns);
		const struct plumb_span *by = launch == PLUMB_NONE ? NULL : &profile->spans[launch];
		if (making->in_model[span->context]) {
			call = by ? call_at(calls, layers->count, by->track, by->start_ns)
			          : PLUMB_NONE;
			if (call != PLUMB_NONE)
				code = add_work(works, call, span);
			else
				lost[layers->count] = 1;
		}
		if (layer == PLUMB_NONE || code)
			continue;
		call = by ? call_at(calls, layer, by->track, by->start_ns) : PLUMB_NONE;
		if (call != PLUMB_NONE)
			code = add_work(works, call, span);
		else
			lost[layer] = 1;
	}
	return code;
}

/* The union of each call's work; what lies before the call (clocks differ) is cut off. */
static void
join_work(calls_of *calls, works_of *works)
{
	if (works->count)
		qsort(works->items, works->count, sizeof *works->items, by_start);
	for (uint32_t i = 0; i < works->count; i++) {
		const struct work *work = &works->items[i];
		struct call *call = &calls->items[work->call];
		int64_t from = work->start > call->until ? work->start : call->until;
		if (work->end > from) {
			call->busy += work->end - from;
			call->until = work->end;
		}
		if (work->end > call->last)
			call->last = work->end;
	}
}

/* The statistic of each group of SAMPLES into MEANS; a group without any stays as it is. */
static int
reduce_samples(const struct plumb_layers_making *making, samples_of *samples, double *means)
{
	double *values = malloc((samples->count + 1u) * sizeof *values);

	if (!values)
		return PLUMB_ESYSTEM;
	if (samples->count)
		qsort(samples->items, samples->count, sizeof *samples->items, by_group);
	for (uint32_t i = 0; i < samples->count;) {
		uint32_t group = samples->items[i].group;
		size_t count = 0;
		for (; i < samples->count && samples->items[i].group == group; i++)
			values[count++] = samples->items[i].us;
		means[group] = plumb_statistic_of(&making->options->statistic, values, count);
	}
	free(values);
	samples->count = 0;
	return 0;
}

enum what { HOST, WHOLE, BUSY };

static int
reduce_calls(const struct plumb_layers_making *making, const calls_of *calls, enum what what,
             double *means)
{
	samples_of samples = { 0 };
	int code = 0;

	for (uint32_t i = 0; i < calls->count && !code; i++) {
		const struct call *call = &calls->items[i];
		struct sample *sample = plumb_vec_add(&samples);
		if (!sample) {
			code = PLUMB_ESYSTEM;
			break;
		}
		int64_t ns = what == HOST    ? call->end - call->start
		             : what == WHOLE ? call->last - call->start
		                             : call->busy;
		*sample = (struct sample){ call->layer, (double)ns / 1e3 };
	}
	if (!code)
		code = reduce_samples(making, &samples, means);
	plumb_vec_free(&samples);
	return code;
}

static int
reduce_kernels(struct plumb_layers_making *making)
{
	struct plumb_layers *layers = making->layers;
	const struct plumb_profile *profile = layers->profile;
	double *means = malloc((layers->kernel_count + 1u) * sizeof *means);
	samples_of samples = { 0 };
	int code = means ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < profile->spans_count && !code; i++) {
		const struct plumb_span *span = &profile->spans[i];
		uint32_t kernel = making->kernel_of[span->context];
		if (kernel == PLUMB_NONE || is_thread(profile, span->track))
			continue;
		struct sample *sample = plumb_vec_add(&samples);
		if (!sample)
			code = PLUMB_ESYSTEM;
		else
			*sample = (struct sample){ kernel,
				                   (double)(span->end_ns - span->start_ns) / 1e3 };
	}
	for (uint32_t i = 0; i < layers->kernel_count && !code; i++)
		means[i] = layers->kernels[i].us;
	if (!code)
		code = reduce_samples(making, &samples, means);
	for (uint32_t i = 0; i < layers->kernel_count && !code; i++)
		layers->kernels[i].us = means[i];
	plumb_vec_free(&samples);
	free(means);
	return code;
}

/* What the means say of the layers. MEANS has a row of count + 1 for each `what`. */
static void
take_means(struct plumb_layers_making *making, double *const *means, const unsigned char *lost,
           const unsigned char *by_operators)
{
	struct plumb_layers *layers = making->layers;
	bool serialised = making->options->serialised;

	for (uint32_t i = 0; i < layers->count; i++) {
		struct plumb_layer_row *row = &layers->items[i];
		if (isnan(means[HOST][i]))
			continue;
		double times = isnan(row->calls) ? 1 : row->calls;
		row->host_us = means[HOST][i] * times;
		row->host = serialised        ? PLUMB_LATENCY_SERIALISED
		            : by_operators[i] ? PLUMB_LATENCY_OPERATORS
		                              : PLUMB_LATENCY_HOST_SPAN;
		if (lost[i])
			continue;
		/* Means of both by themselves: neither may exceed the other after trimming. */
		row->latency_us = fmax(means[WHOLE][i], means[BUSY][i]) * times;
		row->busy_us = means[BUSY][i] * times;
		row->idle_us = row->latency_us - row->busy_us;
		row->latency = serialised ? PLUMB_LATENCY_SERIALISED : PLUMB_LATENCY_COMPLETE;
	}
	if (!isnan(means[HOST][layers->count])) {
		bool whole = !lost[layers->count];
		layers->model_us = means[whole ? WHOLE : HOST][layers->count] *
		                   plumb_layers_model_times(making);
		layers->model_kind = serialised                    ? PLUMB_LATENCY_SERIALISED
		                     : whole                       ? PLUMB_LATENCY_COMPLETE
		                     : by_operators[layers->count] ? PLUMB_LATENCY_OPERATORS
		                                                   : PLUMB_LATENCY_HOST_SPAN;
	}
}

int
plumb_layers_calls(struct plumb_layers_making *making)
{
	struct plumb_layers *layers = making->layers;
	size_t rows = layers->count + 1u;
	double *room = malloc(3 * rows * sizeof *room), *means[3];
	unsigned char *lost = calloc(rows, 1), *by_operators = calloc(rows, 1);
	calls_of calls = { 0 };
	struct plumb_launches launches = { 0 };
	works_of works = { 0 };
	int code = room && lost && by_operators ? 0 : PLUMB_ESYSTEM;

	for (size_t i = 0; i < 3; i++)
		means[i] = room ? room + i * rows : NULL;
	for (size_t i = 0; !code && i < 3 * rows; i++)
		room[i] = NAN;
	if (!code)
		code = gather_calls(making, &calls);
	if (!code)
		code = plumb_launches_find(layers->profile, PLUMB_NONE, &launches);
	if (!code)
		code = gather_pieces(making, &calls, by_operators);
	if (!code)
		code = gather_work(making, &calls, &launches, &works, lost);
	if (!code)
		join_work(&calls, &works);
	for (int what = HOST; what <= BUSY && !code; what++)
		code = reduce_calls(making, &calls, (enum what)what, means[what]);
	if (!code)
		take_means(making, means, lost, by_operators);
	if (!code)
		code = reduce_kernels(making);
	plumb_vec_free(&calls);
	plumb_vec_free(&launches);
	plumb_vec_free(&works);
	free(lost);
	free(by_operators);
	free(room);
	return code;
}
