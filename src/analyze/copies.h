/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes single copies moved. */
#ifndef PLUMB_ANALYZE_COPIES_H
#define PLUMB_ANALYZE_COPIES_H

#include "model/profile.h"

/* What each copy of a context moved, where all of them moved as much, else PLUMB_UNKNOWN; malloced,
 * by context. NULL: no memory. */
int64_t *plumb_copies_sizes(const struct plumb_profile *profile);

/* What the copy SPAN moved; PLUMB_UNKNOWN where neither it nor SIZES tell. */
static inline int64_t
plumb_copies_size(const int64_t *sizes, const struct plumb_span *span)
{
	return span->bytes && span->bytes <= INT64_MAX ? (int64_t)span->bytes
	                                               : sizes[span->context];
}

/* Is it a copy from the host to a device ("copy pageable→device")? */
bool plumb_copies_from_host(const struct plumb_profile *profile, uint32_t context);

#endif
