/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of a program without GPU work, for people: the steps that it marks on its threads. */
#include <inttypes.h>
#include <math.h>

#include "base/format.h"
#include "cli/iters/iters.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define ROWS_MOST 20

static int
print_steps(const struct plumb_host_steps *host, FILE *out)
{
	static const struct plumb_column columns[] = { { "iteration", PLUMB_RIGHT },
		                                       { "duration", PLUMB_RIGHT } };
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char text[PLUMB_FORMAT_SIZE];
	int code;

	for (uint32_t i = 0; i < host->starts && i < ROWS_MOST; i++) {
		plumb_table_cell(table, plumb_format_count(text, i));
		plumb_table_cell(table,
		                 plumb_format_time(text, plumb_iters_host_duration(host, i)));
	}
	code = plumb_table_print(table, out, plumb_terminal_width(out), plumb_terminal_colour(out));
	plumb_table_free(table);
	if (host->starts > ROWS_MOST)
		fprintf(out, "… and %" PRIu32 " more: --json and --csv have all\n",
		        host->starts - ROWS_MOST);
	return code;
}

int
plumb_iters_host_print(const struct plumb_iters *iters, FILE *out)
{
	const struct plumb_host_steps *host = &iters->host;
	struct plumb_iteration_stat stat;
	char count[PLUMB_FORMAT_SIZE];

	if (plumb_iters_host_measure(host, &stat) < 0)
		return -1;
	fprintf(out, "%s iterations, ", plumb_format_count(count, llround(host->count)));
	if (*host->name) {
		fputs("one for each ", out);
		plumb_text_print(out, host->name);
		fputs(" (there is no GPU work, in whose order they would be found)\n", out);
	} else {
		fputs("found in the order of operators and ranges (there is no GPU work)\n", out);
	}
	if (host->starts < 2) {
		fputs("  the time of each is not known; record it with --trace\n", out);
		return 0;
	}
	fprintf(out, "  track %" PRIu32 ", from the start of one to the start of the next:\n",
	        host->track);
	plumb_iters_stat_print(out, "duration", &stat, "ns");
	return print_steps(host, out);
}
