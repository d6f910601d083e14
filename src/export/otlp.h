/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile's spans as OpenTelemetry's (OTLP/JSON), whole or in parts that each are a request of
 * their own:
 *
 *	struct plumb_otlp *otlp = plumb_otlp_new(profile, &error);
 *	for (uint32_t at = 0; at < profile->spans_count; at += 5000)
 *		plumb_otlp_write(otlp, at, 5000, out);
 *	plumb_otlp_free(otlp);
 *
 * The same profile has the same ids, whenever it is written.
 */
#ifndef PLUMB_EXPORT_OTLP_H
#define PLUMB_EXPORT_OTLP_H

#include <stdio.h>

#include "model/profile.h"

struct plumb_otlp;

/* NULL with PLUMB_EEMPTY (it has no spans), PLUMB_EINPUT (times before 1970) or PLUMB_ESYSTEM
 * (memory). PROFILE must outlive it. */
struct plumb_otlp *
plumb_otlp_new(const struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_otlp_free(struct plumb_otlp *otlp);

/* COUNT spans from number FROM on, or as many as there are. Negative: memory is out, or OUT
 * failed. */
int plumb_otlp_write(const struct plumb_otlp *otlp, uint32_t from, uint32_t count, FILE *out);

#endif
