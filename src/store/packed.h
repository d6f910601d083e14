/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the rows of long tables, for quick reading: SQLite needs more than a second for three
 * million rows of values. A table with fewer than PLUMB_PACKED_LEAST rows has no copy. The rows
 * themselves are there for everybody else. If somebody changes one by SQL, triggers delete the copy
 * of its table.
 *
 * A piece is at most PLUMB_PACKED_ROWS rows, as one zstd frame. In it, each column has one byte,
 * which says what its numbers are the difference to: 0 the row before (the first: 0), K column K
 * (from 1) of the same row. The differences follow, all little endian: 4 bytes of ids and small
 * numbers, 8 bytes of all else. A real number is its bits. Private to store/.
 */
#ifndef PLUMB_STORE_PACKED_H
#define PLUMB_STORE_PACKED_H

#include "store/reader.h"
#include "store/writer.h"

#define PLUMB_PACKED_LEAST 65536u
#define PLUMB_PACKED_ROWS 65536u
#define PLUMB_PACKED_CODEC "zstd"

/* After all rows of all tables. */
int plumb_packed_write(struct plumb_writer *writer, struct plumb_error *error);
/* Reads the rows of TABLE from the copy, if there is a usable one: *DONE says so. */
int plumb_packed_read(struct plumb_reader *reader, const struct plumb_row_table *table, bool *done);

#endif
