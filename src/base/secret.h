/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks what looks like a secret in command lines: the values of options and variables that are
 * named like one (--api-key=…, --token …, PASSWORD=…), headers (Authorization: Bearer …), passwords
 * in URLs, and tokens of known shapes (hf_…, sk-…, ghp_…, AKIA…). Each becomes "***". It errs
 * towards masking.
 *
 *	struct plumb_secret state = { 0 };
 *	for (char **word = argv; *word; word++)
 *		plumb_secret_mask(&state, *word);
 *
 * It works in place (text never grows), without the heap: the collector uses it, too.
 */
#ifndef PLUMB_BASE_SECRET_H
#define PLUMB_BASE_SECRET_H

#include <stdbool.h>

struct plumb_secret {
	bool value; /* the next word is an option's value and is secret */
	bool user;  /* the next word may be USER:PASSWORD */
};

/* Masks the next WORD of an argument vector. */
void plumb_secret_mask(struct plumb_secret *state, char *word);
/* Masks a whole command line, in which spaces separate the words. */
void plumb_secret_mask_line(char *line);

#endif
