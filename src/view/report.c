/* SPDX-License-Identifier: Apache-2.0 */
/* Making a report: the filter, the order of display. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/user_code.h"
#include "view/render.h"
#include "view/report_private.h"
#include "view/view.h"

bool
plumb_report_is_where(enum plumb_group_by by)
{
	return by == PLUMB_BY_THREAD || by == PLUMB_BY_PROCESS || by == PLUMB_BY_RANK;
}

double
plumb_report_share(const struct plumb_report *report, const struct plumb_stat *part)
{
	double whole = (double)plumb_stat_amount(report->metric, &report->total);

	if (plumb_metric_aggregation(report->metric) != PLUMB_SUM || whole == 0)
		return NAN;
	return (double)plumb_stat_amount(report->metric, part) / whole;
}

/* ---- the filter ---- */

bool
plumb_report_matches(const regex_t *filter, const struct plumb_report_place *place)
{
	char where[1200];

	if (!regexec(filter, place->name ? place->name : "", 0, NULL, 0) ||
	    (place->library && !regexec(filter, place->library, 0, NULL, 0)))
		return true;
	if (place->shapes && !regexec(filter, place->shapes, 0, NULL, 0))
		return true;
	for (int i = 0; i < 2; i++) {
		const char *file = i ? place->source_file : place->file;
		if (!file)
			continue;
		snprintf(where, sizeof where, "%s:%" PRIu32, file,
		         i ? place->source_line : place->line);
		if (!regexec(filter, where, 0, NULL, 0))
			return true;
	}
	return false;
}

/* By frame: does the filter match it? NULL: no memory. */
static unsigned char *
match_frames(const struct plumb_report *report, const regex_t *filter)
{
	const struct plumb_profile *p = report->profile;
	unsigned char *match = calloc(p->frames_count + 1u, 1);

	for (uint32_t f = 0; match && f < p->frames_count; f++) {
		struct plumb_report_place place = { 0 };
		const char *name = plumb_text(p, p->frames[f].name);

		plumb_report_frame_place(report, f, &place);
		match[f] = plumb_report_matches(filter, &place) ||
		           (name && !regexec(filter, name, 0, NULL, 0));
	}
	return match;
}

/* ---- working it out ---- */

static int
no_memory(struct plumb_error *error)
{
	return plumb_fail_memory(error, "for the report");
}

static int
make_grouping(struct plumb_report *report, struct plumb_error *error)
{
	uint32_t count;

	report->division =
		plumb_division_new(report->profile, report->user, report->user_of, report->metric);
	if (!report->division)
		return no_memory(error);
	report->grouping =
		report->by == PLUMB_BY_USER_LINE
			? plumb_grouping_places(report->profile, report->division->place_of)
			: plumb_grouping_new(report->profile, report->by, report->user);
	if (!report->grouping)
		return no_memory(error);
	count = plumb_grouping_count(report->grouping);
	report->exclusive = calloc(count + 1u, sizeof *report->exclusive);
	report->inclusive = calloc(count + 1u, sizeof *report->inclusive);
	report->row_user = calloc(count + 1u, sizeof *report->row_user);
	report->row_place = calloc(count + 1u, sizeof *report->row_place);
	report->order = calloc(count + 1u, sizeof *report->order);
	if (!report->exclusive || !report->inclusive || !report->row_user || !report->row_place ||
	    !report->order ||
	    plumb_grouping_values(report->grouping, report->metric, report->exclusive,
	                          report->inclusive, &report->outside) < 0 ||
	    plumb_grouping_user(report->grouping, report->metric, report->user_of,
	                        report->row_user) < 0 ||
	    plumb_report_places_make(report) < 0)
		return no_memory(error);
	return 0;
}

/* Puts rows in the order of display: the most exclusive part first, then inclusive, then name. */
static int
order_rows(struct plumb_report *report, const regex_t *filter, struct plumb_error *error)
{
	uint32_t count = plumb_grouping_count(report->grouping), kept = 0;
	struct plumb_sort_item *items = calloc(count + 1u, sizeof *items);
	struct plumb_sort_item *spare = calloc(count + 1u, sizeof *spare);

	for (uint32_t r = 0; items && spare && r < count; r++) {
		struct plumb_report_place place;

		plumb_report_row_place(report, r, &place);
		if (filter && !plumb_report_matches(filter, &place))
			continue;
		if (report->top && !report->exclusive[r].count && !report->inclusive[r].count)
			continue;
		items[kept++].index = r;
	}
	if (items && spare && report->folding && plumb_report_fold(report, items, &kept) < 0) {
		free(items);
		free(spare);
		return no_memory(error);
	}
	for (int pass = 0; items && spare && pass < 2; pass++) {
		const struct plumb_stat *stats = pass ? report->exclusive : report->inclusive;

		for (uint32_t i = 0; i < kept; i++)
			items[i].key = ~plumb_sort_signed(
				plumb_stat_amount(report->metric, &stats[items[i].index]));
		plumb_sort(items, spare, kept);
	}
	report->available = kept;
	report->order_count = report->top && kept > report->top ? report->top : kept;
	for (uint32_t i = 0; items && spare && i < report->order_count; i++)
		report->order[i] = items[i].index;
	free(items);
	free(spare);
	return items && spare ? 0 : no_memory(error);
}

static int
make_tree(struct plumb_report *report, const regex_t *filter, bool compact,
          struct plumb_error *error)
{
	unsigned char *match = filter ? match_frames(report, filter) : NULL;
	struct plumb_tree_options wanted = { report->metric, report->top, compact, match };
	int result;

	if (filter && !match)
		return no_memory(error);
	if (report->inverted)
		result = plumb_tree_inverted(report->profile, report->grouping, &wanted,
		                             &report->tree);
	else
		result = plumb_tree_contexts(report->profile, &wanted, &report->tree);
	free(match);
	report->available = report->tree.available;
	return result < 0 ? no_memory(error) : 0;
}

static int
work_out(struct plumb_report *report, const struct plumb_report_query *query, const regex_t *filter,
         struct plumb_error *error)
{
	bool contexts = report->by == PLUMB_BY_CONTEXT;
	int result;

	report->user = plumb_user_code_frames(report->profile, query->user_code, error);
	if (!report->user)
		return error->code;
	report->user_of = plumb_user_contexts(report->profile, report->user);
	if (!report->user_of)
		return no_memory(error);
	for (uint32_t i = 0; i < report->profile->values_count; i++) {
		const struct plumb_value *v = &report->profile->values[i];
		struct plumb_stat stat = plumb_value_stat(v);

		if (v->metric == report->metric)
			plumb_stat_merge(&report->total, &stat);
		if (v->metric == report->metric && contexts && !v->context)
			plumb_stat_merge(&report->outside, &stat);
	}
	report->is_memory = report->by == PLUMB_BY_MEMORY;
	if (report->is_memory)
		return plumb_report_memory_make(report, filter) < 0 ? no_memory(error) : 0;
	report->is_tree = contexts || report->inverted;
	if (!contexts) {
		result = make_grouping(report, error);
		if (result < 0)
			return result;
	}
	if (plumb_report_calls_make(report) < 0)
		return no_memory(error);
	if (report->is_tree)
		return make_tree(report, filter, query->compact, error);
	return order_rows(report, filter, error);
}

/* ---- the whole ---- */

static int
compile_filter(const char *expression, regex_t *filter, struct plumb_error *error)
{
	int code = regcomp(filter, expression, REG_EXTENDED | REG_NOSUB);
	char why[120];

	if (!code)
		return 0;
	regerror(code, filter, why, sizeof why);
	return plumb_fail(error, PLUMB_EUSAGE, "--filter \"%s\": %s", expression, why);
}

int
plumb_report_check(const struct plumb_report_query *query, struct plumb_error *error)
{
	const char *metric = query->metric;
	bool memory = query->by == PLUMB_BY_MEMORY;

	if (query->inverted && memory)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--by memory has no --inverted; --by operator --metric mem.held "
		                  "has");
	if (metric && memory && (strncmp(metric, "mem.", 4) || !plumb_metric_find(metric)))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--by memory sorts by mem.held, mem.peak, mem.alloc or mem.free");
	if (query->inverted && (plumb_report_is_where(query->by) || query->by == PLUMB_BY_PHASE ||
	                        query->by == PLUMB_BY_SHAPE))
		return plumb_fail(error, PLUMB_EUSAGE, "a %s has no callers to invert",
		                  plumb_group_by_names[query->by]);
	if (query->filter) {
		regex_t filter;
		if (compile_filter(query->filter, &filter, error))
			return PLUMB_EUSAGE;
		regfree(&filter);
	}
	return 0;
}

int
plumb_report_make(const struct plumb_profile *profile, const struct plumb_report_query *query,
                  struct plumb_report *report, struct plumb_error *error)
{
	struct plumb_error unread;
	regex_t filter;
	int code;

	error = error ? error : &unread;
	code = plumb_report_check(query, error);
	*report = (struct plumb_report){
		.profile = profile,
		.by = query->by,
		.metric = query->metric ? plumb_profile_metric_find(profile, query->metric)
		                        : plumb_metric_default(profile),
		.top = query->top,
		.inverted = query->inverted,
		.filtered = query->filter != NULL,
		.compat = query->compat,
		.folding = query->folded && query->by == PLUMB_BY_MODULE && !query->inverted,
	};
	if (!code && !report->metric)
		code = plumb_fail(error, PLUMB_EUSAGE, "the profile has no metric \"%s\"",
		                  query->metric);
	if (!code && query->filter)
		code = compile_filter(query->filter, &filter, error);
	if (code)
		return code;
	if (report->by == PLUMB_BY_DEFAULT) {
		struct plumb_report_choice choice;

		code = plumb_report_choose(profile, report->metric, &choice) < 0 ? no_memory(error)
		                                                                 : 0;
		report->by = choice.by;
		memcpy(report->why, choice.why, sizeof report->why);
	}
	if (!query->metric && report->by == PLUMB_BY_MEMORY)
		report->metric = PLUMB_METRIC_MEM_HELD;
	if (!query->metric && report->by == PLUMB_BY_SHAPE)
		report->metric = PLUMB_METRIC_OP_TIME;
	if (!code)
		code = work_out(report, query, query->filter ? &filter : NULL, error);
	if (!code && query->per_iteration)
		code = plumb_report_iterations_make(report, error);
	if (query->filter)
		regfree(&filter);
	return code;
}

void
plumb_report_free(struct plumb_report *report)
{
	free(report->user);
	free(report->user_of);
	plumb_tree_free(&report->tree);
	plumb_grouping_free(report->grouping);
	plumb_division_free(report->division);
	plumb_folds_free(&report->folds);
	free(report->row_place);
	plumb_memory_rows_free(&report->memory);
	free(report->exclusive);
	free(report->inclusive);
	free(report->row_user);
	free(report->order);
	free(report->calls);
	free(report->row_calls);
	free(report->spreads);
}

/* ---- for programs ---- */

/* CSV is written piece by piece: a tree may have a million nodes. */
static int
write_csv(const struct plumb_report *report, FILE *out, struct plumb_error *error)
{
	enum { PIECE = 1024 };
	struct plumb_answer answer = { .id = "report" };
	uint32_t count = plumb_report_count(report);
	int code = 0;

	plumb_report_columns(report, &answer);
	plumb_view_names_csv(&answer, out);
	for (uint32_t i = 0; i < count && !code; i++) {
		plumb_report_cells(report, i, &answer);
		if ((i + 1) % PIECE && i + 1 < count)
			continue;
		code = plumb_answer_end(&answer, error);
		plumb_view_rows_csv(&answer, out);
		plumb_answer_clear(&answer);
	}
	plumb_answer_free(&answer);
	return code;
}

int
plumb_report_write(const struct plumb_report *report, enum plumb_view_format format, FILE *out,
                   struct plumb_error *error)
{
	struct plumb_answer answer;
	int code;

	if (format == PLUMB_VIEW_JSON) {
		code = plumb_report_json(report, out) < 0 ? no_memory(error) : 0;
	} else if (format == PLUMB_VIEW_CSV) {
		code = write_csv(report, out, error);
	} else if (!(code = plumb_report_answer(report, &answer, error))) {
		code = plumb_view_answer_columns(&answer, out, error);
		plumb_answer_free(&answer);
	}
	return ferror(out) ? plumb_fail(error, PLUMB_ESYSTEM, "the report cannot be written")
	                   : code;
}

int
plumb_view_report(const struct plumb_profile *profile, const struct plumb_report_query *query,
                  enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_report report;
	int code = plumb_report_make(profile, query, &report, error);

	if (!code)
		code = plumb_report_write(&report, format, out, error);
	plumb_report_free(&report);
	return code;
}
