/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard tables of one or more profiles, as a value:
 *
 *	struct plumb_tables *tables = plumb_tables_new(&query);
 *	if (plumb_tables_add(tables, &(struct plumb_tables_profile){ &profile }, &error) < 0) …
 *	if (plumb_tables_make(tables, &error) < 0) …
 *	… tables->answers[i] …
 *	plumb_tables_free(tables);
 */
#ifndef PLUMB_VIEW_TABLES_H
#define PLUMB_VIEW_TABLES_H

#include <stdio.h>

#include "analyze/peaks.h"
#include "analyze/tables.h"

#define PLUMB_TABLES_PROFILES 64 /* at most so many at a time */

struct plumb_tables_query {
	/* In the order of the answers. If there are none, see plumb_tables_want_default. */
	const struct plumb_tables_kind *kinds[PLUMB_TABLES_KINDS];
	uint32_t kind_count;
	struct plumb_layers_options layers;
	enum plumb_precision precision; /* whose peak rooflines use */
	double peak_gflops;             /* use it instead of the known peak; 0: use the known one */
	double bandwidth;               /* bytes per second; 0: use the known one */
	enum plumb_tables_key key;
	bool as_given;     /* profiles stay in the order they were added; else by batch size */
	bool against_best; /* compare: ratios to the highest throughput, else to the first */
	struct plumb_constraints constraints; /* on the batch size that A1 chooses */
};

struct plumb_tables_profile {
	const struct plumb_profile *profile;
	const char *file; /* its name, or NULL */
	int64_t batch;    /* 0: what the profile says */
	/* another run of the same program, in which every launch waited; or NULL. Read at once. */
	const struct plumb_profile *serialised;
	const char *serialised_file;
};

struct plumb_tables {
	struct plumb_tables_query query;
	struct plumb_tables_input input;
	struct plumb_answer answers[PLUMB_TABLES_KINDS]; /* of the query's kinds */
	uint64_t rows;                                   /* of all answers */
	uint32_t count;                                  /* of profiles */
	struct plumb_layers layers[PLUMB_TABLES_PROFILES];
	struct plumb_roof roofs[PLUMB_TABLES_PROFILES];
	const char *files[PLUMB_TABLES_PROFILES];
	int64_t batches[PLUMB_TABLES_PROFILES];
	const char *batch_sources[PLUMB_TABLES_PROFILES];
};

/* Add kinds that the query does not have: KIND; or all that are not `aside`. The third adds kinds
 * only if there are none: A1 for several PROFILES, all for one. */
void plumb_tables_want(struct plumb_tables_query *query, const struct plumb_tables_kind *kind);
void plumb_tables_want_all(struct plumb_tables_query *query);
void plumb_tables_want_default(struct plumb_tables_query *query, uint32_t profiles);

/* NULL: no memory. plumb_tables_free takes NULL. */
struct plumb_tables *plumb_tables_new(const struct plumb_tables_query *query);
void plumb_tables_free(struct plumb_tables *tables);
/* Errors: PLUMB_EEMPTY if the profile has no layers; the message begins with the file's name. */
int plumb_tables_add(struct plumb_tables *tables, const struct plumb_tables_profile *profile,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
/* Makes the answers. Call it when all profiles are added. */
int plumb_tables_make(struct plumb_tables *tables, struct plumb_error *error) PLUMB_MUST_CHECK;

/* The GPU that the first profile ran on, or NULL. */
const char *plumb_tables_device(const struct plumb_tables *tables);

/* Writes the points of ANSWER (A9 or A14) under the roof, as SVG. Returns how many points there
 * are. If there are none, it writes nothing. */
uint32_t
plumb_roofline_svg(const struct plumb_tables *tables, const struct plumb_answer *answer, FILE *out);
/* Is the file PATH such a picture? */
bool plumb_roofline_drew(const char *path);

#endif
