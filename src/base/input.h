/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file of any size from front to back, as it is or unpacked: gzip, zstd and xz are told by
 * their first bytes. A pipe or a packed file is read and unpacked ahead by a thread of its own, so
 * that it and the caller use a core each.
 *
 *	struct plumb_input *input;
 *	if (plumb_input_open(&input, path, &error) < 0) …
 *	while ((bytes = plumb_input_read(input, buffer, sizeof buffer, &error)) > 0) …
 *	plumb_input_close(input);
 *
 * A pipe is read like a file. Who must look at what comes before reading it remembers, and goes
 * back:
 *
 *	plumb_input_remember(input);
 *	… plumb_input_read(input, …) …
 *	plumb_input_rewind(input);
 *
 * Errors name the path: PLUMB_ESYSTEM (cannot be read, memory), PLUMB_EINPUT (packed data that is
 * damaged or ends too early, with the byte of the packed file).
 */
#ifndef PLUMB_BASE_INPUT_H
#define PLUMB_BASE_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct plumb_input;

int plumb_input_open(struct plumb_input **input, const char *path,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
/* NULL does nothing. */
void plumb_input_close(struct plumb_input *input);

/* Reads up to ROOM bytes into TO. Fewer only at the end of the file, and 0 after that. Negative: an
 * error, which every later call returns too. */
ssize_t plumb_input_read(struct plumb_input *input, void *to, size_t room,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

/* The first bytes, at most PLUMB_INPUT_HEAD, which are still to be read; before any is read
 * only. */
#define PLUMB_INPUT_HEAD ((size_t)64 << 10)
int plumb_input_head(struct plumb_input *input, const char **head, size_t *bytes,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

/* What is read from here on is kept, up to PLUMB_INPUT_REMEMBERED bytes, where reading ends.
 * Nothing may have been read. plumb_input_rewind goes back to the beginning, and keeps nothing
 * more. */
#define PLUMB_INPUT_REMEMBERED ((size_t)256 << 20)
void plumb_input_remember(struct plumb_input *input);
void plumb_input_rewind(struct plumb_input *input);

/* "gzip", "zstd", "xz"; NULL: the file is as it is. */
const char *plumb_input_packing(const struct plumb_input *input);
const char *plumb_input_path(const struct plumb_input *input);

/*
 * For what needs a file (SQLite): a path that holds the unpacked bytes: the input's own when
 * nothing is packed, else a temporary file, which plumb_input_close removes. Nothing may have been
 * read.
 */
const char *plumb_input_file(struct plumb_input *input, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
