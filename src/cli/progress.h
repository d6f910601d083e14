/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress bar, drawn only on a terminal, on one line that it clears when it is done.
 *
 *	struct plumb_progress *bar = plumb_progress_new(stderr, "settling");
 *	plumb_progress_set(bar, 0.4);         // also as a callback: (void *, double)
 *	plumb_progress_free(bar);             // wipes the line
 */
#ifndef PLUMB_CLI_PROGRESS_H
#define PLUMB_CLI_PROGRESS_H

#include <stdio.h>

struct plumb_progress;

/* NULL: OUT is not a terminal, or no memory. The other functions take NULL and do nothing. */
struct plumb_progress *plumb_progress_new(FILE *out, const char *what);
/* PROGRESS is a struct plumb_progress; PART is from 0 to 1. Draws at most ten times per second. */
void plumb_progress_set(void *progress, double part);
void plumb_progress_free(struct plumb_progress *progress);

#endif
