/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the values in the region of a running process now and then, and so cuts its run into
 * parts (segments.h). The program notices nothing: plumb only reads memory that both have mapped.
 */
#ifndef PLUMB_WATCH_PARTS_H
#define PLUMB_WATCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "region/layout.h"

struct plumb_watch_parts;

/* HEADER: of the region, mapped with SIZE bytes while the result lives. NULL: no memory. */
struct plumb_watch_parts *
plumb_watch_parts_new(const struct plumb_region_header *header, size_t size);
/* Ends a part now. False: it takes too much memory, and plumb gives up on this process. */
bool plumb_watch_parts_look(struct plumb_watch_parts *parts);
/* Ends the last part, and writes all into PATH. If that fails, the windows of the process are
 * unknown. */
void plumb_watch_parts_finish(struct plumb_watch_parts *parts, const char *path);
void plumb_watch_parts_free(struct plumb_watch_parts *parts);

#endif
