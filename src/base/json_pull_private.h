/* SPDX-License-Identifier: Apache-2.0 */
/* What the window (json_pull.c) does for values (json_values.c). */
#ifndef PLUMB_BASE_JSON_PULL_PRIVATE_H
#define PLUMB_BASE_JSON_PULL_PRIVATE_H

#include "base/json_pull.h"

/* A scan stopped at a zero. After the window's end: more of the file is needed. Within it: the
 * file has a zero byte, which is not JSON. */
void plumb_pull_out_of_bytes(struct plumb_pull *pull);

/* Room for a text of at most BYTES, until the next mark. It is kept once plumb_pull_scratch_used
 * says how long it is. NULL: memory is out, and the reader has failed. */
char *plumb_pull_scratch(struct plumb_pull *pull, size_t bytes);
void plumb_pull_scratch_used(struct plumb_pull *pull, size_t bytes);

#endif
