/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions → profile: joins the regions of one or several run folders (or of ranks) into one
 * profile, demangles kernel names, aligns clocks, names threads, adds up the ledger.
 */
#ifndef PLUMB_SETTLE_SETTLE_H
#define PLUMB_SETTLE_SETTLE_H

#include "model/profile.h"

struct plumb_settle_options {
	/* Mangled → demangled name, malloced; NULL if the name is not mangled. May be NULL. */
	char *(*demangle)(const char *name);
	void (*progress)(void *data, double part); /* may be NULL */
	void *data;
};

/*
 * Settles the COUNT folders in FOLDERS, each with `*.region` files. A region that cannot be read is
 * left out, counted in the ledger and named in WARNINGS (lines, malloced, NULL when there are none;
 * the caller frees it); a damaged one gives what it holds. Errors: PLUMB_EINPUT (no folder holds a
 * region), PLUMB_ESYSTEM. PLUMB_EEMPTY: regions were there, and nothing was captured; PROFILE is
 * filled (run, environment, ledger) all the same.
 */
int plumb_settle(const char *const *folders, size_t count,
                 const struct plumb_settle_options *options, struct plumb_profile *profile,
                 char **warnings, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
