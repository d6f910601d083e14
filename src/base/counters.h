/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of kernels: what `plumb run --counters` can ask for. A counter has a short name
 * of ours, which is also its metric's name in a profile, and by family of chips an expression of
 * names as Nsight Compute has them: "1*a.sum + 2*b.sum". Values are whole numbers in the counter's
 * unit; shares are in parts per million, as everywhere in a profile.
 *
 * The collector evaluates expressions, `plumb run` and `plumb doctor` check names. Any metric of
 * Nsight Compute's may be asked for as well: it is an expression of itself.
 */
#ifndef PLUMB_BASE_COUNTERS_H
#define PLUMB_BASE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

/* Families of chips whose expressions differ. A chip belongs to one by its name's beginning. */
enum plumb_counter_family {
	PLUMB_COUNTER_TURING,          /* TU10x, TU11x */
	PLUMB_COUNTER_AMPERE,          /* GA100 */
	PLUMB_COUNTER_AMPERE_SMALL,    /* GA10x */
	PLUMB_COUNTER_ADA,             /* AD10x */
	PLUMB_COUNTER_HOPPER,          /* GH100 */
	PLUMB_COUNTER_BLACKWELL,       /* GB100, GB110 */
	PLUMB_COUNTER_BLACKWELL_SMALL, /* GB20x */
	PLUMB_COUNTER_FAMILIES,
};

struct plumb_counter {
	const char *name, *unit, *what;
	bool roofline; /* --counters=roofline asks for it */
	const char *expressions[PLUMB_COUNTER_FAMILIES];
	unsigned sampled;      /* its place in --counters-series without a list, from 1; 0: none */
	const char *otherwise; /* if it cannot be sampled like that: another expression, or NULL */
};
extern const struct plumb_counter plumb_counters[]; /* up to one without a name */

/* The family of CHIP ("GH100"); PLUMB_COUNTER_FAMILIES: not known. */
enum plumb_counter_family plumb_counter_family(const char *chip);
/* The counter NAME of LENGTH bytes, or NULL. */
const struct plumb_counter *plumb_counter_find(const char *name, size_t length);
/* Can NAME be one of Nsight Compute's ("dram__bytes_read.sum")? Then it has a unit in front of two
 * underscores, and a dot behind. Only a GPU's driver knows whether there is such a metric. */
bool plumb_counter_is_foreign(const char *name, size_t length);

/* One part of an expression: FACTOR times the metric NAME, which is not terminated. */
struct plumb_counter_term {
	double factor;
	const char *name;
	size_t length;
};
/* The next part of the expression at *AT, which moves on. False: it has ended. */
bool plumb_counter_term(const char **at, struct plumb_counter_term *term);

/* The next name of the list at *AT, separated by commas. "roofline" is one name here. */
bool plumb_counter_listed(const char **at, const char **name, size_t *length);

#define PLUMB_COUNTERS_ROOFLINE "roofline"
#define PLUMB_COUNTERS_MOST 32u        /* counters of a run */
#define PLUMB_COUNTERS_TERMS_MOST 128u /* metrics of their expressions */
#define PLUMB_COUNTERS_KERNELS_MOST 256u
#define PLUMB_COUNTERS_KERNELS_DEFAULT 20
/* Of a kernel at a context, the first launch, the second, the fourth, … up to this one. */
#define PLUMB_COUNTERS_LAUNCHES_MOST (1u << 20)
#define PLUMB_COUNTERS_LAUNCHES_DEFAULT 8
#define PLUMB_COUNTERS_COST_MOST 1000u
#define PLUMB_COUNTERS_COST_DEFAULT 3

/* Samples of the whole GPU: one every so many microseconds. */
#define PLUMB_SERIES_DEFAULT "default"
#define PLUMB_SERIES_MOST 16u /* counters of a run */
#define PLUMB_SERIES_US_LEAST 100u
#define PLUMB_SERIES_US_MOST 1000000u
#define PLUMB_SERIES_US_DEFAULT 1000
#define PLUMB_SERIES_US_TEXT "1000"

#endif
