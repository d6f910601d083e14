/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/diff/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistic.h"
#include "base/error.h"

#define MEDIAN 1.2533    /* error of a median over that of a mean, of a normal distribution */
#define CLIP 3.0         /* deviations from where on an outlier counts as one there */
#define ALIKE_MOST 0.98  /* of neighbours */
#define SAMPLES_LEAST 3u /* that tell a spread */

const char *const plumb_spread_names[] = { NULL, "series", "calls", "iterations", "runs" };

struct plumb_estimate
plumb_estimate_unknown(void)
{
	return (struct plumb_estimate){ NAN, NAN, NAN, PLUMB_SPREAD_NONE };
}

/* ---- samples ---- */

static double
deviation_of(const double *samples, uint32_t count, double middle)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += (samples[i] - middle) * (samples[i] - middle);
	return sqrt(sum / (count - 1));
}

static double
clip_sample(double sample, double middle, double deviation)
{
	return fmin(fmax(sample - middle, -CLIP * deviation), CLIP * deviation);
}

/* How many samples that have nothing to do with each other tell as much as these. */
static double
count_effective(const double *samples, uint32_t count, double middle, double deviation)
{
	double sum = 0, next = 0, alike;

	for (uint32_t i = 0; i < count; i++) {
		double d = clip_sample(samples[i], middle, deviation);

		sum += d * d;
		if (i)
			next += d * clip_sample(samples[i - 1], middle, deviation);
	}
	alike = sum > 0 ? next / sum : 0;
	/* What few samples tell of it is too low by about this much. */
	alike += (1 + 4 * alike) / count;
	alike = fmin(fmax(alike, 0), ALIKE_MOST);
	return fmax(count * (1 - alike) / (1 + alike), 2);
}

static void
set_error(struct plumb_estimate *estimate, const double *samples, uint32_t count, double deviation,
          double factor)
{
	double alone = count_effective(samples, count, estimate->value, deviation);

	estimate->error = factor * deviation / sqrt(alone);
	estimate->freedom = alone - 1;
	estimate->basis = PLUMB_SPREAD_ITERATIONS;
}

int
plumb_estimate_median(const double *samples, uint32_t count, struct plumb_estimate *estimate)
{
	double *room, deviation;

	*estimate = plumb_estimate_unknown();
	if (!count)
		return 0;
	room = malloc(count * sizeof *room);
	if (!room)
		return PLUMB_ESYSTEM;
	memcpy(room, samples, count * sizeof *room);
	estimate->value = plumb_median(room, count);
	if (count >= SAMPLES_LEAST) {
		deviation = plumb_median_deviation(room, count, estimate->value);
		/* More than half are the same: the others have to tell. */
		if (deviation == 0)
			deviation = deviation_of(samples, count, estimate->value);
		set_error(estimate, samples, count, deviation, MEDIAN);
	}
	free(room);
	return 0;
}

struct plumb_estimate
plumb_estimate_mean(const double *samples, uint32_t count)
{
	struct plumb_estimate estimate = plumb_estimate_unknown();

	if (!count)
		return estimate;
	estimate.value = 0;
	for (uint32_t i = 0; i < count; i++)
		estimate.value += samples[i];
	estimate.value /= count;
	if (count >= SAMPLES_LEAST)
		set_error(&estimate, samples, count, deviation_of(samples, count, estimate.value),
		          1);
	return estimate;
}

struct plumb_estimate
plumb_estimate_runs(const struct plumb_estimate *runs, uint32_t count)
{
	struct plumb_estimate estimate = plumb_estimate_unknown();
	double sum = 0, squares = 0;

	if (count == 1)
		return *runs;
	for (uint32_t i = 0; i < count; i++)
		sum += runs[i].value; /* one that is unknown makes all unknown */
	sum /= count;
	if (!count || isnan(sum))
		return estimate;
	for (uint32_t i = 0; i < count; i++)
		squares += (runs[i].value - sum) * (runs[i].value - sum);
	estimate.value = sum;
	estimate.error = sqrt(squares / (count - 1) / count);
	estimate.freedom = count - 1;
	estimate.basis = PLUMB_SPREAD_RUNS;
	return estimate;
}

/* ---- changes ---- */

/* By the logarithm of the ratio, whose error is that of both sides' relative errors. */
static void
set_interval(struct plumb_change *c, const struct plumb_estimate *before,
             const struct plumb_estimate *after)
{
	double a = before->error / before->value, b = after->error / after->value;
	double error = sqrt(a * a + b * b), width, freedom;

	if (!(before->value > 0 && after->value > 0) || !isfinite(error))
		return;
	freedom = error > 0 ? pow(error, 4) /
	                              (pow(a, 4) / before->freedom + pow(b, 4) / after->freedom)
	                    : 1;
	width = plumb_student(freedom) * error;
	if (!isfinite(c->ratio * exp(width)))
		return; /* so wide that it says nothing */
	c->low = c->ratio * exp(-width) - 1;
	c->high = c->ratio * exp(width) - 1;
	c->basis = before->basis < after->basis ? before->basis : after->basis;
}

/* A side of one run next to one of several: what differs from run to run is taken to be alike. */
static struct plumb_estimate
as_one_of(const struct plumb_estimate *one, const struct plumb_estimate *several)
{
	struct plumb_estimate estimate = *one;

	if (one->basis == PLUMB_SPREAD_RUNS || several->basis != PLUMB_SPREAD_RUNS ||
	    !(several->value > 0))
		return estimate;
	/* Of a mean of n the error is that of one over the square root of n. */
	estimate.error = several->error / several->value * sqrt(several->freedom + 1) * one->value;
	estimate.freedom = several->freedom;
	estimate.basis = PLUMB_SPREAD_RUNS;
	return estimate;
}

struct plumb_change
plumb_change(const struct plumb_estimate *before, const struct plumb_estimate *after)
{
	struct plumb_change c = { before->value, after->value, NAN, NAN, NAN, NAN, 0 };
	struct plumb_estimate a = as_one_of(before, after), b = as_one_of(after, before);

	c.change = c.after - c.before;
	if (c.before > 0)
		c.ratio = c.after / c.before;
	set_interval(&c, &a, &b);
	return c;
}

int
plumb_change_is_clear(const struct plumb_change *change)
{
	return change->low > 0 || change->high < 0;
}
