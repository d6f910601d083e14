/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are of the same thing become one: a value, a variant, a count of the ledger. */
#ifndef PLUMB_MODEL_ROW_MERGE_H
#define PLUMB_MODEL_ROW_MERGE_H

#include <string.h>

#include "model/columns.h"

/* Puts FROM to INTO, which has the same keys. NULL for a table whose second row is dropped. */
typedef void plumb_row_merge_fn(void *into, const void *from);
extern plumb_row_merge_fn *const plumb_row_merges[PLUMB_TABLES];

/* Makes one row of those of TABLE with the same keys, and puts all into the table's order. 0, or
 * PLUMB_ESYSTEM: no memory; some may be merged then. */
int plumb_row_merge(struct plumb_profile *profile,
                    const struct plumb_row_table *table) PLUMB_MUST_CHECK;

/* A key column of ROW as a number. */
static inline uint64_t
plumb_row_key(const struct plumb_row_column *column, const void *row)
{
	const char *field = (const char *)row + column->offset;
	uint32_t id;
	uint64_t number;

	if (plumb_row_width(column) == sizeof id) {
		memcpy(&id, field, sizeof id);
		return id;
	}
	memcpy(&number, field, sizeof number);
	return number;
}

#endif
