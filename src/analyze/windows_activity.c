/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/windows_activity.h"

#include <math.h>

#define SAME_TIME 0.8
#define SAME_CALLS 0.95
#define MIXED 0.8
#define NO_HOST 0.05 /* of the time and of the calls: next to none */
#define AGREE 0.8
#define ONCE 0.05        /* of the time: called once in an iteration */
#define CANDIDATE 0.01   /* of the time: a context whose calls may be the iterations */
#define CANDIDATES 64    /* tried at most */
#define LEAST 4          /* iterations */
#define LEAST_CONTEXTS 3 /* that agree, or … */
#define LEAST_ALONE 64   /* … so many iterations */

bool
plumb_activity_take(struct plumb_activity *activity, const struct plumb_window_value *value)
{
	bool gpu = value->metric == PLUMB_METRIC_GPU_TIME;
	double ns = gpu || value->metric == PLUMB_METRIC_OP_TIME ? (double)value->sum : 0;
	double calls = gpu                                      ? (double)value->count
	               : value->metric == PLUMB_METRIC_OP_CALLS ? (double)value->sum
	                                                        : 0;
	struct plumb_activity_entry *entry = NULL;

	if (!(ns > 0) && !(calls > 0))
		return true;
	for (uint32_t i = activity->entries.count; i-- > 0 && !entry;) {
		struct plumb_activity_entry *at = &activity->entries.items[i];
		if (at->context != value->context)
			break;
		if (at->gpu == gpu)
			entry = at;
	}
	if (!entry) {
		entry = plumb_vec_add(&activity->entries);
		if (!entry)
			return false;
		*entry = (struct plumb_activity_entry){ value->context, gpu, 0, 0 };
	}
	entry->ns += ns;
	entry->calls += calls;
	activity->ns += ns;
	activity->calls += calls;
	return true;
}

void
plumb_activity_free(struct plumb_activity *activity)
{
	plumb_vec_free(&activity->entries);
	activity->ns = activity->calls = 0;
}

/* ---- walking two of them ---- */

static uint64_t
place_of(const struct plumb_activity *activity, uint32_t i)
{
	const struct plumb_activity_entry *entry;

	if (i >= activity->entries.count)
		return UINT64_MAX;
	entry = &activity->entries.items[i];
	return (uint64_t)entry->context << 1 | entry->gpu;
}

/* The entries of A and B in the next context; one of them may be zero. False: no more. */
static bool
next_of(const struct plumb_activity *a, const struct plumb_activity *b, uint32_t at[2],
        struct plumb_activity_entry *x, struct plumb_activity_entry *y)
{
	uint64_t p = place_of(a, at[0]), q = place_of(b, at[1]);

	if (p == UINT64_MAX && q == UINT64_MAX)
		return false;
	*x = p <= q ? a->entries.items[at[0]++] : (struct plumb_activity_entry){ 0 };
	*y = q <= p ? b->entries.items[at[1]++] : (struct plumb_activity_entry){ 0 };
	return true;
}

bool
plumb_activity_add(struct plumb_activity *into, const struct plumb_activity *from)
{
	struct plumb_activity sum = { .ns = into->ns + from->ns,
		                      .calls = into->calls + from->calls };
	struct plumb_activity_entry x, y;
	uint32_t at[2] = { 0, 0 };

	while (next_of(into, from, at, &x, &y)) {
		struct plumb_activity_entry *entry = plumb_vec_add(&sum.entries);
		if (!entry) {
			plumb_activity_free(&sum);
			return false;
		}
		*entry = x.ns > 0 || x.calls > 0 ? x : y;
		entry->ns = x.ns + y.ns;
		entry->calls = x.calls + y.calls;
	}
	plumb_activity_free(into);
	*into = sum;
	return true;
}

bool
plumb_activity_differs(const struct plumb_activity *b, const struct plumb_activity *others)
{
	struct plumb_activity_entry x, y;
	uint32_t at[2] = { 0, 0 };

	while (next_of(b, others, at, &x, &y))
		if (x.calls > 0 && !(y.calls > 0))
			return true;
	return false;
}

/* ---- shares ---- */

static double
share_of(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* The GPU's part. */
static struct plumb_activity_entry
sum_gpu(const struct plumb_activity *activity)
{
	struct plumb_activity_entry sum = { .gpu = true };

	for (uint32_t i = 0; i < activity->entries.count; i++) {
		sum.ns += activity->entries.items[i].gpu ? activity->entries.items[i].ns : 0;
		sum.calls += activity->entries.items[i].gpu ? activity->entries.items[i].calls : 0;
	}
	return sum;
}

static bool
is_without_host(const struct plumb_activity *activity, const struct plumb_activity_entry *gpu)
{
	return activity->calls > 0 && activity->ns - gpu->ns <= NO_HOST * activity->ns &&
	       activity->calls - gpu->calls <= NO_HOST * activity->calls;
}

bool
plumb_activity_same(const struct plumb_activity *a, const struct plumb_activity *b)
{
	struct plumb_activity_entry all_a = sum_gpu(a), all_b = sum_gpu(b), x, y;
	bool gpu = is_without_host(a, &all_a) || is_without_host(b, &all_b);
	double time = 0, calls = 0;
	uint32_t at[2] = { 0, 0 };

	if (!gpu) {
		all_a = (struct plumb_activity_entry){ .ns = a->ns, .calls = a->calls };
		all_b = (struct plumb_activity_entry){ .ns = b->ns, .calls = b->calls };
	}
	while (next_of(a, b, at, &x, &y)) {
		if (gpu && !x.gpu && !y.gpu)
			continue;
		time += fmin(share_of(x.ns, all_a.ns), share_of(y.ns, all_b.ns));
		calls += fmin(share_of(x.calls, all_a.calls), share_of(y.calls, all_b.calls));
	}
	return time >= SAME_TIME || calls >= SAME_CALLS;
}

static double
share_in(const struct plumb_activity *activity, uint64_t place, uint32_t *at)
{
	while (place_of(activity, *at) < place)
		++*at;
	return place_of(activity, *at) == place
	               ? share_of(activity->entries.items[*at].calls, activity->calls)
	               : 0;
}

/* How many of the calls of WHAT are the same as PART of A and the rest of B. */
static double
overlap_mixture(const struct plumb_activity *what, const struct plumb_activity *a,
                const struct plumb_activity *b, double part)
{
	uint32_t in_a = 0, in_b = 0;
	double overlap = 0;

	for (uint32_t i = 0; i < what->entries.count; i++) {
		uint64_t place = place_of(what, i);
		overlap += fmin(share_of(what->entries.items[i].calls, what->calls),
		                part * share_in(a, place, &in_a) +
		                        (1 - part) * share_in(b, place, &in_b));
	}
	return overlap;
}

double
plumb_activity_mixture(const struct plumb_activity *what, const struct plumb_activity *a,
                       const struct plumb_activity *b)
{
	double best = 0, part = NAN;

	for (int i = 0; i <= 20; i++) {
		double overlap = overlap_mixture(what, a, b, i / 20.0);
		if (overlap > best) {
			best = overlap;
			part = i / 20.0;
		}
	}
	return best >= MIXED ? part : NAN;
}

/* ---- iterations ---- */

/* How many calls of a context are in each of N iterations; 0: they do not fit. */
static double
calls_each(double calls, double n, uint32_t stretches)
{
	double k = round(calls / n);

	if (k < 1 || (k > 1 && k > n / 4))
		return 0;
	return fabs(calls - k * n) <= fmin((k + 1) * stretches, n / 3) ? k : 0;
}

struct fit {
	double ns, once; /* that agree with N iterations, and of these once in each */
	uint32_t contexts;
};

static struct fit
try_iterations(const struct plumb_activity *activity, bool gpu, double n, uint32_t stretches)
{
	struct fit fit = { 0 };

	for (uint32_t i = 0; i < activity->entries.count; i++) {
		const struct plumb_activity_entry *entry = &activity->entries.items[i];
		double k = entry->gpu == gpu ? calls_each(entry->calls, n, stretches) : 0;
		fit.ns += k ? entry->ns : 0;
		fit.once += k == 1 ? entry->ns : 0;
		fit.contexts += k && entry->ns > 0;
	}
	return fit;
}

static double
time_of(const struct plumb_activity *activity, bool gpu)
{
	double ns = 0;

	for (uint32_t i = 0; i < activity->entries.count; i++)
		ns += activity->entries.items[i].gpu == gpu ? activity->entries.items[i].ns : 0;
	return ns;
}

bool
plumb_activity_fits(const struct plumb_activity *activity, double n, uint32_t stretches)
{
	return try_iterations(activity, false, n, stretches).ns >= AGREE * time_of(activity, false);
}

/* Kernels end later than the host's work, so each side counts for itself. */
static bool
side_repeats(const struct plumb_activity *activity, bool gpu, uint32_t stretches,
             int64_t *iterations)
{
	double whole = time_of(activity, gpu);
	uint32_t tried = 0;
	bool repeats = false;

	for (uint32_t i = 0; i < activity->entries.count && tried < CANDIDATES; i++) {
		const struct plumb_activity_entry *entry = &activity->entries.items[i];
		double n = entry->calls;
		struct fit fit;
		if (entry->gpu != gpu || n < LEAST || !(entry->ns > CANDIDATE * whole))
			continue;
		tried++;
		fit = try_iterations(activity, gpu, n, stretches);
		if (fit.ns < AGREE * whole || (fit.contexts < LEAST_CONTEXTS && n < LEAST_ALONE))
			continue;
		repeats = true;
		if (fit.once >= ONCE * whole && n < 9e18 &&
		    (*iterations == PLUMB_UNKNOWN || n < (double)*iterations))
			*iterations = (int64_t)n;
	}
	return repeats;
}

bool
plumb_activity_repeats(const struct plumb_activity *activity, uint32_t stretches,
                       int64_t *iterations)
{
	*iterations = PLUMB_UNKNOWN;
	return side_repeats(activity, false, stretches, iterations) ||
	       side_repeats(activity, true, stretches, iterations);
}
