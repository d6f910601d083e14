/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that appears whole or not at all: written under another name beside it, renamed at
 * the end. What is no regular file (a pipe, /dev/null) is written as it is.
 *
 *	struct plumb_output output;
 *	if (plumb_output_open(&output, path, &error) < 0) …
 *	fprintf(output.file, …);
 *	code = plumb_output_close(&output, &error);     // or plumb_output_drop(&output)
 */
#ifndef PLUMB_CLI_OUTPUT_H
#define PLUMB_CLI_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct plumb_output {
	FILE *file;
	/* private */
	char path[PATH_MAX], temporary[PATH_MAX]; /* temporary "": written as it is */
};

/* Errors: PLUMB_EUSAGE (PATH names no file), PLUMB_ESYSTEM; each names PATH. */
int plumb_output_open(struct plumb_output *output, const char *path,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* Gives the file its name. PLUMB_ESYSTEM when something could not be written; then nothing is left. */
int plumb_output_close(struct plumb_output *output, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Leaves nothing. */
void plumb_output_drop(struct plumb_output *output);

#endif
