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

struct plumb_builder {
	struct plumb_strtab *strings;
	/* What is there so far, but for the strings. Contexts lie in the order in which they came. */
	struct plumb_profile profile;
	struct plumb_map maps[PLUMB_TABLES]; /* from the keys of a row to its place */
	/* The first thing that went wrong; finish reports it. 0: nothing. */
	int code;
	const char *failure;
	char text[80]; /* for FAILURE */
};

#endif
