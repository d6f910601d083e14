/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of plumb traffic: how answers are printed. */
#ifndef PLUMB_CLI_TRAFFIC_TRAFFIC_H
#define PLUMB_CLI_TRAFFIC_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/table.h"
#include "view/traffic.h"

struct plumb_traffic_printer {
	const struct plumb_traffic_answer *answer;
	const char *path;
	FILE *out;
	int width;
	bool colour;
	uint32_t top; /* rows of each list; 0: all */
	bool failed;  /* no memory */
};

/* For people. WHOLE: all lists; else only that of the query. Negative: no memory. */
int plumb_traffic_print(const struct plumb_traffic_answer *answer, const char *path, uint32_t top,
                        bool whole, FILE *out);

/* Private to cli/traffic/. A heading and a table each, nothing if there is nothing. */
void plumb_traffic_print_matrices(struct plumb_traffic_printer *t);
void plumb_traffic_print_pairs(struct plumb_traffic_printer *t);
void plumb_traffic_print_objects(struct plumb_traffic_printer *t);
void plumb_traffic_print_lines(struct plumb_traffic_printer *t);
void plumb_traffic_print_kernels(struct plumb_traffic_printer *t);
void plumb_traffic_print_collectives(struct plumb_traffic_printer *t);
void plumb_traffic_print_routes(struct plumb_traffic_printer *t);
void plumb_traffic_print_waits(struct plumb_traffic_printer *t);

/* "1.50 GiB", of a sample "1.50 GiB ± 12.0 MiB". Returns TEXT. */
#define PLUMB_TRAFFIC_BYTES 96
const char *
plumb_traffic_bytes(const struct plumb_traffic_sum *sum, char text[PLUMB_TRAFFIC_BYTES]);
/* LABEL, then TEXT in lines that begin at column INDENT. */
void plumb_traffic_paragraph(const struct plumb_traffic_printer *t, const char *label, int indent,
                             const char *text);

/* How many of COUNT rows are shown. */
uint32_t plumb_traffic_rows_shown(const struct plumb_traffic_printer *t, uint32_t count);
/* Prints TABLE and frees it; LEFT rows were left out. */
void
plumb_traffic_end_table(struct plumb_traffic_printer *t, struct plumb_table *table, uint32_t left);

#endif
