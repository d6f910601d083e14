/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with the rows of any table, by its descriptor (columns.h). For the builder, and for
 * whoever else makes, maps or stores rows without knowing which.
 */
#ifndef PLUMB_MODEL_ROWS_H
#define PLUMB_MODEL_ROWS_H

#include <string.h>

#include "base/strtab.h"
#include "model/columns.h"

/* What a PLUMB_COLUMN is, with any type of row. */
struct plumb_row_array {
	char *items;
	uint32_t count, room;
};

/* The rows of TABLE in PROFILE. */
struct plumb_row_array
plumb_row_array_of(const struct plumb_profile *profile, const struct plumb_row_table *table);

/* Makes room for COUNT more rows after the present ones, which may move. The new rows do not count
 * yet. NULL: no memory. */
void *plumb_row_reserve(struct plumb_profile *profile, const struct plumb_row_table *table,
                        uint32_t count);
/* Room for COUNT rows, of a table that has none yet. False: no memory. */
bool
plumb_row_room(struct plumb_profile *profile, const struct plumb_row_table *table, uint32_t count);
/* A row more, all bytes 0; NULL: no memory. */
void *plumb_row_add(struct plumb_profile *profile, const struct plumb_row_table *table);
/* From here on the table has COUNT rows. */
void plumb_row_set_count(struct plumb_profile *profile, const struct plumb_row_table *table,
                         uint32_t count);
/* PROFILE has no rows afterwards. */
void plumb_row_free_all(struct plumb_profile *profile);

/* Fills in what NAME, the frame's, says of a copy or set. */
static inline void
plumb_frame_set_transfer(struct plumb_frame *frame, const char *name)
{
	if (frame->kind == PLUMB_FRAME_COPY || frame->kind == PLUMB_FRAME_SET)
		frame->transfer = plumb_transfer_of(name);
}

/* A metric of the program's own more; NULL: no memory. */
struct plumb_user_metric *plumb_profile_add_metric(struct plumb_profile *profile);

/* The column of ROW that has an impossible id, word or number, or NULL. STRINGS: how many there
 * are. */
const struct plumb_row_column *
plumb_row_fault(const struct plumb_profile *profile, uint32_t strings,
                const struct plumb_row_table *table, const void *row);
/* The same of COUNT rows. */
const struct plumb_row_column *
plumb_row_faults(const struct plumb_profile *profile, uint32_t strings,
                 const struct plumb_row_table *table, const void *rows, uint32_t count);
/* Are COUNT cells of COLUMN possible? The first is at CELLS, each STEP bytes after the one before.
 * Of an end it is not asked if it comes after its beginning. */
bool plumb_row_cells_possible(const struct plumb_profile *profile, uint32_t strings,
                              const struct plumb_row_column *column, const char *cells, size_t step,
                              uint32_t count);

/* The blobs of ROW become copies that live as long as STRINGS. 1: PROFILE holds no more of them.
 * PLUMB_ESYSTEM: no memory. */
int plumb_row_keep_blobs(struct plumb_profile *profile, struct plumb_strtab *strings,
                         const struct plumb_row_table *table, void *row);

/* How ids of one profile become ids of another, by table. NULL for a table whose ids stay. */
struct plumb_row_maps {
	struct plumb_row_map {
		uint32_t *ids;
		uint32_t count;
	} strings, user_metrics, tables[PLUMB_TABLES];
};

/* Translates ROW. An id that is not in its map becomes PLUMB_NONE. False: it has a metric that the
 * other profile has not. */
bool
plumb_row_map(const struct plumb_row_table *table, void *row, const struct plumb_row_maps *maps);
static inline uint32_t
plumb_row_mapped(const struct plumb_row_map *map, uint32_t id)
{
	return id < map->count ? map->ids[id] : PLUMB_NONE;
}

/* By so many columns a table is ordered at most. */
#define PLUMB_ORDERS_MOST 8
/* Puts the rows of a table into its order. 0, or PLUMB_ESYSTEM: no memory. */
int plumb_row_order(struct plumb_profile *profile, const struct plumb_row_table *table);

#endif
