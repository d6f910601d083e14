/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binaries of GPU code that the user gave in a folder (--binaries), found by their content. What a
 * file is called decides nothing: another tool's trace says which content it has samples of.
 *
 *	struct plumb_binaries *binaries;
 *	if (plumb_binaries_open("gpubins", &binaries, &error) < 0) …
 *	const struct plumb_binary *binary = plumb_binaries_find(binaries, md5);
 *	plumb_binaries_free(binaries);
 */
#ifndef PLUMB_IMPORT_BINARIES_H
#define PLUMB_IMPORT_BINARIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/md5.h"

struct plumb_binaries;

struct plumb_binary {
	const char *path;
	char md5[PLUMB_MD5_DIGITS + 1];
	const void *bytes; /* NULL: not asked for yet */
	size_t size;
};

/* Looks at the files of FOLDER and of the folders in it. Those that are modules of GPU code, or are
 * named like one by HPCToolkit (32 digits), are read. PLUMB_EINPUT, PLUMB_ESYSTEM: it is no folder,
 * or cannot be read. */
int plumb_binaries_open(const char *folder, struct plumb_binaries **binaries,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_binaries_free(struct plumb_binaries *binaries);

/* The binary with the content MD5, mapped until BINARIES is freed. NULL: there is none. */
const struct plumb_binary *plumb_binaries_find(struct plumb_binaries *binaries, const char *md5);
/* A file that is named MD5, if it has another content. NULL: there is none. */
const struct plumb_binary *
plumb_binaries_misnamed(const struct plumb_binaries *binaries, const char *md5);
/* Was anything looked for? */
bool plumb_binaries_used(const struct plumb_binaries *binaries);

#endif
