/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file that a verb is given: a profile, or another tool's trace, which is imported at
 * once. */
#ifndef PLUMB_CLI_LOAD_H
#define PLUMB_CLI_LOAD_H

#include "model/profile.h"

enum plumb_load_part {
	PLUMB_LOAD_ALL,
	PLUMB_LOAD_STREAMS, /* spans of streams, but no other spans */
	PLUMB_LOAD_TOTALS,  /* no spans */
};

/* Reads PATH: only PART of a profile, but all of a trace. The errors are those of plumb_store_read
 * and plumb_import. */
int plumb_load(struct plumb_profile *profile, const char *path, enum plumb_load_part part,
               struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
