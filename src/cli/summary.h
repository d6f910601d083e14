/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary that `plumb run` prints when the program has ended: at most 40 lines with the device
 * busy share, the top operators, kernels and lines of your code, what recording costs,
 * and the ledger.
 */
#ifndef PLUMB_CLI_SUMMARY_H
#define PLUMB_CLI_SUMMARY_H

#include <stdio.h>

#include "model/profile.h"

struct plumb_summary_options {
	const char *path;      /* the profile's file, for the last line; may be NULL */
	const char *user_code; /* the rule that tells your code; NULL: the default */
	int width;             /* columns; 0: OUT's terminal, else 100 */
};

#define PLUMB_SUMMARY_LINES 40

/* OPTIONS may be NULL. */
void plumb_summary_print(const struct plumb_profile *profile, FILE *out,
                         const struct plumb_summary_options *options);

#endif
