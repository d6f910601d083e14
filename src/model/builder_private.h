/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What builder.c (taking rows in) and finish.c (putting them in order) share. Private to model/.
 */
#ifndef PLUMB_MODEL_BUILDER_PRIVATE_H
#define PLUMB_MODEL_BUILDER_PRIVATE_H

#include "base/map.h"
#include "base/strtab.h"
#include "model/builder.h"
#include "model/rows.h"

/* The columns of a table that are asked for with every row, and from their keys to the row. */
#define PLUMB_KEYS_MOST 16
struct plumb_builder_table {
	const struct plumb_row_column *keys[PLUMB_KEYS_MOST];
	uint32_t keys_count;
	const struct plumb_row_column *count, *blob; /* the first of that kind, or NULL */
	struct plumb_map map;
};

struct plumb_builder {
	struct plumb_strtab *strings;
	/* What is there so far, but for the strings. Contexts lie in the order in which they
	 * came. */
	struct plumb_profile profile;
	struct plumb_builder_table tables[PLUMB_TABLES];
	/* The first thing that went wrong; finish reports it. 0: nothing. */
	int code;
	const char *failure; /* NULL: not enough memory */
	char text[80];       /* for FAILURE */
};

#endif
