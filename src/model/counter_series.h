/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table counter_series, counter by counter. */
#ifndef PLUMB_MODEL_COUNTER_SERIES_H
#define PLUMB_MODEL_COUNTER_SERIES_H

#include "model/profile.h"

/* One counter of one device: rows of the profile, in order of time. */
struct plumb_counter_series {
	uint32_t device, process;
	const char *name, *unit; /* NULL: not known */
	const struct plumb_counter_series_bin *bins;
	uint32_t count; /* at least 1 */
};

/* The series that begins at row *AT, which moves on. False: there are no more. */
bool plumb_counter_series_next(const struct plumb_profile *profile, uint32_t *at,
                               struct plumb_counter_series *series);

#endif
