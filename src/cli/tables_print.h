/* SPDX-License-Identifier: Apache-2.0 */
/* How the standard tables are printed. */
#ifndef PLUMB_CLI_TABLES_PRINT_H
#define PLUMB_CLI_TABLES_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyze/tables.h"

/* One table for people: TOP rows (0: all), columns of which nothing is known named below. Negative:
 * no memory. */
int plumb_tables_text(const struct plumb_answer *answer, FILE *out, int64_t top);

/* All as one JSON object. Negative: output failed. */
int plumb_tables_json(const struct plumb_answer *answers, uint32_t count,
                      const struct plumb_layers *layers, FILE *out);

/* One table as CSV; unknown is empty. TITLED puts a line with id and title before it. */
void plumb_tables_csv(const struct plumb_answer *answer, FILE *out, bool titled);

/* The points of A9 or A14 under the roof, as a picture. How many points it has, of which 0 writes
 * nothing. */
uint32_t plumb_roofline_svg(const struct plumb_answer *answer,
                            const struct plumb_tables_input *input, const char *device, FILE *out);

/* Is the file PATH such a picture? */
bool plumb_roofline_drew(const char *path);

#endif
