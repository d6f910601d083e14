/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which launches are drawn, and what they stand for.
 *
 * Launches in turn are one unit: a single one, or more where switching the patches on and off takes
 * long. Each unit is drawn with the probability RATE, whatever it does. A unit that is drawn and
 * has counted Y stands for Y / RATE (Horvitz and Thompson). The sum over the units that were drawn
 * is unbiased, however unequal they are. Its variance is the sum of (1 - RATE) Y² over all units,
 * by RATE; an unbiased estimate of that is the sum of (1 - RATE) Y² / RATE² over those that were
 * drawn.
 */
#ifndef PLUMB_COLLECT_GPU_SANITIZER_ESTIMATE_H
#define PLUMB_COLLECT_GPU_SANITIZER_ESTIMATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct plumb_draw {
	uint64_t state;
	uint32_t left; /* launches of this unit that are still to come */
	bool drawn;    /* it is counted */
};

static inline uint64_t
plumb_draw_next(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Draws the next unit, of LAUNCHES launches. */
static inline void
plumb_draw_unit(struct plumb_draw *draw, double rate, uint32_t launches)
{
	draw->left = launches;
	draw->drawn = (double)(plumb_draw_next(&draw->state) >> 11) * 0x1p-53 < rate;
}

static inline uint64_t
plumb_estimate(uint64_t counted, double rate)
{
	return (uint64_t)((double)counted / rate + 0.5);
}

static inline double
plumb_estimate_variance(uint64_t counted, double rate)
{
	return (1 - rate) / (rate * rate) * (double)counted * (double)counted;
}

#endif
