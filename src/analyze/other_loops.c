/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that trains and evaluates in turns has two loops, and either may be what is slow. A
 * loop that takes little time cannot save much of the run, so it gets no findings of its own.
 */
#include "analyze/other_loops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/study_private.h"
#include "model/window.h"

static const struct plumb_threshold thresholds[] = {
	{ "loops.share", 0.1, "share",
	  "least share of the time in all loops, of a loop that gets findings next to the "
	  "main one" },
	{ 0 },
};

const struct plumb_analysis plumb_analysis_loops = {
	.name = "loops",
	.summary = "which loops get findings next to the main one, at most three",
	.thresholds = thresholds,
};

/* ---- which ---- */

/* The longest loop that is neither the main one nor TAKEN; PLUMB_NONE: none takes LEAST. */
static uint32_t
find_longest(const struct plumb_window_sums *sums, const bool *taken, double least)
{
	uint32_t best = PLUMB_NONE;

	for (uint32_t i = 0; i < sums->count; i++)
		if (sums->items[i].kind == PLUMB_WINDOW_LOOP && i != sums->main && !taken[i] &&
		    sums->items[i].wall_ns > 0 && (double)sums->items[i].wall_ns >= least &&
		    (best == PLUMB_NONE || sums->items[i].wall_ns > sums->items[best].wall_ns))
			best = i;
	return best;
}

int
plumb_other_loops_find(const struct plumb_profile *profile, const struct plumb_thresholds *given,
                       uint32_t numbers[PLUMB_OTHER_LOOPS], uint32_t *count)
{
	struct plumb_window_sums sums;
	int code = plumb_window_sums(profile, &sums);
	bool *taken = code ? NULL : calloc((size_t)sums.count + 1, sizeof *taken);
	double all = 0, share = plumb_thresholds_get(given, "loops.share");
	uint32_t next;

	*count = 0;
	for (uint32_t i = 0; taken && i < sums.count; i++)
		if (sums.items[i].kind == PLUMB_WINDOW_LOOP)
			all += (double)sums.items[i].wall_ns;
	while (taken && *count < PLUMB_OTHER_LOOPS &&
	       (next = find_longest(&sums, taken, share * all)) != PLUMB_NONE) {
		taken[next] = true;
		numbers[(*count)++] = sums.items[next].number;
	}
	code = taken ? 0 : PLUMB_ESYSTEM;
	free(taken);
	plumb_window_sums_free(&sums);
	return code;
}

/* ---- what several have ---- */

struct joining {
	struct plumb_study *study;
	struct plumb_finding_text *rows;
	uint32_t count;
	double (*weigh)(const struct plumb_finding_text *finding);
};

static bool
is_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Is it the same as FIRST, of another window, or FIRST itself? */
static bool
is_same(const struct plumb_finding_text *row, const struct plumb_finding_text *first)
{
	return row == first ||
	       (row->id && is_text(row->id, first->id) && !is_text(row->window, first->window));
}

/* The evidence of row BEST, with the windows of the others that are the same as FIRST. Malloced. */
static char *
write_others(const struct joining *j, uint32_t first, uint32_t best)
{
	const char *evidence = j->rows[best].evidence, *before = "";
	size_t bytes = evidence ? strlen(evidence) : 0;
	bool object = bytes >= 2 && evidence[bytes - 1] == '}';
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%.*s%s\"also_in\": [", object ? (int)bytes - 1 : 1, object ? evidence : "{",
	        bytes > 2 ? ", " : "");
	for (uint32_t i = first; i < j->count; i++) {
		const struct plumb_finding_text *row = &j->rows[i];

		if (i == best || !is_same(row, &j->rows[first]))
			continue;
		/* A window's name is made of letters, a colon and digits. */
		fprintf(out, "%s{\"window\": \"%s\", \"saving_ns\": ", before,
		        row->window ? row->window : "all");
		if (row->saving_ns == PLUMB_UNKNOWN)
			fputs("null}", out);
		else
			fprintf(out, "%" PRId64 "}", row->saving_ns);
		before = ", ";
	}
	fputs("]}", out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Makes FIRST the best of those that are the same, and takes the others out. */
static bool
join_row(struct joining *j, uint32_t first)
{
	uint32_t best = first, alike = 0, kept = first + 1;
	struct plumb_finding_text row;
	char *evidence;

	for (uint32_t i = first; i < j->count; i++) {
		if (!is_same(&j->rows[i], &j->rows[first]))
			continue;
		alike++;
		if (j->weigh(&j->rows[i]) > j->weigh(&j->rows[best]))
			best = i;
	}
	if (alike < 2)
		return true;
	evidence = write_others(j, first, best);
	row = j->rows[best];
	row.evidence = evidence ? plumb_study_keep(j->study, evidence) : NULL;
	free(evidence);
	for (uint32_t i = first + 1; i < j->count; i++)
		if (!is_same(&j->rows[i], &j->rows[first]))
			j->rows[kept++] = j->rows[i];
		else if (j->rows[i].severity > row.severity)
			row.severity = j->rows[i].severity;
	if (j->rows[first].severity > row.severity)
		row.severity = j->rows[first].severity;
	j->rows[first] = row;
	j->count = kept;
	return row.evidence;
}

int
plumb_other_loops_join(struct plumb_study *study, struct plumb_finding_text *rows, uint32_t *count,
                       double (*weigh)(const struct plumb_finding_text *finding))
{
	struct joining j = { study, rows, *count, weigh };

	for (uint32_t i = 0; i < j.count; i++)
		if (!join_row(&j, i))
			return PLUMB_ESYSTEM;
	*count = j.count;
	return 0;
}
