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

/* NULL where OUT is no terminal (or memory is out): the other functions then do nothing. */
struct plumb_progress *plumb_progress_new(FILE *out, const char *what);
/* PROGRESS is a struct plumb_progress; PART is 0…1. Draws at most ten times a second. */
void plumb_progress_set(void *progress, double part);
void plumb_progress_free(struct plumb_progress *progress);

#endif
