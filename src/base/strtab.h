/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string table: equal texts have equal ids, ids count from 0, texts never move.
 */
#ifndef PLUMB_BASE_STRTAB_H
#define PLUMB_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

#define PLUMB_STRTAB_NONE UINT32_MAX

struct plumb_strtab;

struct plumb_strtab *plumb_strtab_new(void);
void plumb_strtab_free(struct plumb_strtab *table);

/* The id of the BYTES bytes at TEXT, which are copied when new; PLUMB_STRTAB_NONE when memory is
 * out or BYTES is 4 GiB or more. Stored texts are terminated. */
uint32_t plumb_strtab_add(struct plumb_strtab *table, const char *text, size_t bytes);
/* NULL for an id that there is not. */
const char *plumb_strtab_text(const struct plumb_strtab *table, uint32_t id);
uint32_t plumb_strtab_count(const struct plumb_strtab *table);

/* BYTES bytes that live as long as the texts; NULL when memory is out. */
char *plumb_strtab_room(struct plumb_strtab *table, size_t bytes);

/* Hands over the array of texts (the caller frees it with free) and the pool that holds all texts.
 * After this the table is empty, and only plumb_strtab_free may be called. */
void plumb_strtab_release(struct plumb_strtab *table, const char ***texts, uint32_t *count,
                          struct plumb_pool **pool);

#endif
