/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile knows of each piece of GPU work, which it keeps as sums. Private to export/. */
#ifndef PLUMB_EXPORT_WORK_H
#define PLUMB_EXPORT_WORK_H

#include "model/profile.h"

/* By context: the launch that all kernels there had, as a row of `variants`. PLUMB_NONE if they
 * differ or there are none. The caller frees the array; NULL: no memory. */
uint32_t *plumb_export_launches(const struct plumb_profile *profile);

/* The value of METRIC that SPAN is a part of: of its context, track and ends; NULL: there is none.
 * All parts are the same where min is max. */
const struct plumb_value *plumb_export_value(const struct plumb_profile *profile,
                                             const struct plumb_span *span, uint32_t metric);
/* Do all observations of VALUE, which may be NULL, have one known size? Its least one is that. */
static inline bool
plumb_export_is_even(const struct plumb_value *value)
{
	return value && value->min == value->max && value->min != PLUMB_UNKNOWN;
}

#endif
