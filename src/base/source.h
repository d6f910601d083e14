/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of source files, if these are on this machine.
 *
 *	struct plumb_sources *sources = plumb_sources_new();
 *	const char *text = plumb_source_line(sources, "/home/me/softmax.cu", 41);
 *	plumb_sources_free(sources);
 *
 * A profile may come from somebody else and name any file. Only files with the ending of a source
 * file are read.
 */
#ifndef PLUMB_BASE_SOURCE_H
#define PLUMB_BASE_SOURCE_H

#include <stdint.h>

struct plumb_sources;

/* NULL: no memory; the others take NULL. */
struct plumb_sources *plumb_sources_new(void);
void plumb_sources_free(struct plumb_sources *sources);
/* The line without its end, until the sources are freed. NULL: it cannot be read. */
const char *plumb_source_line(struct plumb_sources *sources, const char *file, uint32_t line);
/* How many lines FILE has; 0: it cannot be read. */
uint32_t plumb_source_count(struct plumb_sources *sources, const char *file);

#endif
