/* SPDX-License-Identifier: Apache-2.0 */
/* What a verb is given: a profile, or another tool's trace, which is imported on the fly. */
#ifndef PLUMB_CLI_LOAD_H
#define PLUMB_CLI_LOAD_H

#include "model/profile.h"

/* Reads PATH; TOTALS: without a profile's spans, for who needs none. Errors as of plumb_store_read and
 * plumb_import. */
int plumb_load(struct plumb_profile *profile, const char *path, bool totals,
               struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
