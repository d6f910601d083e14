/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of a program without GPU work: the steps that it marks on its threads. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/statistic.h"
#include "base/format.h"
#include "cli/iters.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define ROWS_MOST 20

bool
plumb_iters_host_shown(const struct plumb_iters *iters)
{
	const struct plumb_host_steps *host = iters->host;

	return !iters->found->count && host && host->count >= 1 &&
	       (iters->track < 0 || iters->track == host->track);
}

/* From the start of step I to that of the next one. */
static int64_t
duration(const struct plumb_host_steps *host, uint32_t i)
{
	return i + 1 < host->starts ? host->start[i + 1] - host->start[i] : PLUMB_UNKNOWN;
}

static int
measure(const struct plumb_host_steps *host, struct plumb_iteration_stat *stat)
{
	uint32_t count = host->starts ? host->starts - 1 : 0;
	double *values = malloc((count + (size_t)1) * sizeof *values), sum = 0;

	*stat = (struct plumb_iteration_stat){ PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		                               PLUMB_UNKNOWN };
	if (!values)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		sum += values[i] = (double)duration(host, i);
	if (count) {
		stat->average = llround(sum / count);
		stat->p50 = plumb_whole(plumb_median(values, count));
		stat->p95 = plumb_whole(plumb_percentile(values, count, 95));
		stat->most = plumb_whole(plumb_percentile(values, count, 100));
	}
	free(values);
	return 0;
}

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
		plumb_table_cell(table, plumb_format_time(text, duration(host, i)));
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
	const struct plumb_host_steps *host = iters->host;
	struct plumb_iteration_stat stat;
	char count[PLUMB_FORMAT_SIZE];

	if (measure(host, &stat) < 0)
		return -1;
	fprintf(out, "%s iterations, one for each ",
	        plumb_format_count(count, llround(host->count)));
	plumb_text_print(out, host->name);
	fputs(" (there is no GPU work, in whose order they would be found)\n", out);
	if (host->starts < 2) {
		fputs("  the time of each is not known; record it with --trace\n", out);
		return 0;
	}
	fprintf(out, "  track %" PRIu32 ", from the start of one to the start of the next:\n",
	        host->track);
	plumb_iters_stat_print(out, "duration", &stat, "ns");
	return print_steps(host, out);
}

int
plumb_iters_host_json(const struct plumb_iters *iters, struct plumb_json *json)
{
	const struct plumb_host_steps *host = iters->host;
	struct plumb_iteration_stat stat;

	plumb_json_key(json, "host");
	if (!plumb_iters_host_shown(iters)) {
		plumb_json_null(json);
		return 0;
	}
	if (measure(host, &stat) < 0) {
		plumb_json_null(json);
		return -1;
	}
	plumb_json_object(json);
	plumb_json_key_text(json, "marker", host->name);
	plumb_json_key_quantity(json, "count", llround(host->count));
	plumb_json_key_quantity(json, "track",
	                        host->track == PLUMB_NONE ? PLUMB_UNKNOWN : host->track);
	plumb_iters_stat_json(json, "duration_ns", &stat);
	plumb_json_key(json, "iterations");
	plumb_json_array(json);
	for (uint32_t i = 0; i < host->starts; i++) {
		plumb_json_object(json);
		plumb_json_key_quantity(json, "start_ns", host->start[i]);
		plumb_json_key_quantity(json, "duration_ns", duration(host, i));
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
	return 0;
}

void
plumb_iters_host_csv(const struct plumb_iters *iters, FILE *out)
{
	const struct plumb_host_steps *host = iters->host;

	for (uint32_t i = 0; i < host->starts; i++) {
		int64_t ns = duration(host, i);

		fprintf(out, "%" PRIu32 ",0,%" PRIu32 ",%" PRId64 ",", host->track, i,
		        host->start[i]);
		if (ns != PLUMB_UNKNOWN)
			fprintf(out, "%" PRId64 ",%" PRId64, host->start[i] + ns, ns);
		else
			fputc(',', out);
		fputs(",,,,,,,,,,,\n", out);
	}
}
