/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that appears whole or not at all: it is written under another name beside it and
 * renamed at the end. A pipe or a device is written as it is.
 *
 * What is there already is replaced only if the rule allows it. A symbolic link is followed (its
 * target is replaced) if it belongs to us or to root; anybody else's is refused. The new file never
 * has wider permissions than the one that it replaces, unless the rule says so.
 *
 *	struct plumb_output output;
 *	if (plumb_output_open(&output, path, &rule, &error) < 0) …
 *	fprintf(output.file, …);
 *	code = plumb_output_close(&output, &error);     // or plumb_output_drop(&output)
 */
#ifndef PLUMB_BASE_OUTPUT_H
#define PLUMB_BASE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

struct plumb_output_rule {
	/* May the file PATH, which is there and not empty, be replaced? NULL: any file may. */
	bool (*ours)(const char *path);
	const char *kind;   /* what `ours` looks for: "a plumb profile" */
	const char *option; /* that names the output, for messages; NULL: "-o" */
	bool force;         /* replace any file */
	bool private;       /* only its owner may read a new file; else the umask decides */
	bool widen;         /* the new file's permissions do not depend on the old file's */
	bool plain;         /* it must be a file, not a pipe or a device */
	bool durable;       /* on disk when close returns */
};

struct plumb_output {
	FILE *file;
	char temporary[PATH_MAX]; /* what is written meanwhile; "": the file itself */
	/* private */
	char path[PATH_MAX]; /* where links led to */
	const char *option;
	bool durable;
	bool limited; /* by the old file's permissions */
	mode_t old_mode;
};

/* Could PATH be written by RULE (which may be NULL) now? Errors as of plumb_output_open. */
int plumb_output_check(const char *path, const struct plumb_output_rule *rule,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
/* Errors: PLUMB_EUSAGE (PATH names no file, or one that may not be replaced), PLUMB_ESYSTEM; each
 * names PATH. */
int
plumb_output_open(struct plumb_output *output, const char *path,
                  const struct plumb_output_rule *rule, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Gives the file its name. PLUMB_ESYSTEM when something could not be written; then nothing is
 * left. */
int plumb_output_close(struct plumb_output *output, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Leaves nothing. */
void plumb_output_drop(struct plumb_output *output);

/* For a signal handler that ends the process: removes what is being written. */
void plumb_output_abandon(void);

#endif
