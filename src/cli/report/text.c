/* SPDX-License-Identifier: Apache-2.0 */
/* A report for people: head, table or tree, what was left out, ledger. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hta.h"
#include "base/format.h"
#include "cli/divided.h"
#include "cli/label.h"
#include "cli/ledger.h"
#include "cli/overview.h"
#include "cli/report/text.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/windows.h"
#include "view/coverage.h"

#define MOST_DEVICES 16
#define MOST_DROPS 12
#define MOST_LOOPS 8

/* What a cell of a row shows. */
enum cell {
	SHARE,
	SELF,
	SPREAD, /* of an iteration's SELF */
	TOTAL,
	COUNT,
	MEAN,
	CALLS, /* of the row's own frame */
	EACH,  /* mean time of one of them */
	MIN,
	MAX,
	DEVIATION,
	REGISTERS,
	OCCUPANCY,
	NAME,
	PLACE,
	SHAPES,
	LIBRARY,
	USER,
	CELLS
};

static const struct plumb_column all_columns[CELLS] = {
	[SHARE] = { "share", PLUMB_RIGHT },
	[SELF] = { "self", PLUMB_RIGHT },
	[SPREAD] = { "\xc2\xb1", PLUMB_RIGHT },
	[TOTAL] = { "total", PLUMB_RIGHT },
	[COUNT] = { "count", PLUMB_RIGHT },
	[MEAN] = { "mean", PLUMB_RIGHT },
	[CALLS] = { "calls", PLUMB_RIGHT },
	[EACH] = { "mean", PLUMB_RIGHT },
	[MIN] = { "min", PLUMB_RIGHT },
	[MAX] = { "max", PLUMB_RIGHT },
	[DEVIATION] = { "std", PLUMB_RIGHT },
	[REGISTERS] = { "regs", PLUMB_RIGHT },
	[OCCUPANCY] = { "occupancy", PLUMB_RIGHT },
	[NAME] = { "", PLUMB_SHORTEN_MIDDLE },
	[PLACE] = { "file", PLUMB_SHORTEN_START },
	[SHAPES] = { "shapes", PLUMB_SHORTEN_MIDDLE },
	[LIBRARY] = { "library", PLUMB_SHORTEN_START },
	[USER] = { "line of your code", PLUMB_SHORTEN_START },
};

struct layout {
	struct plumb_column columns[CELLS];
	enum cell cells[CELLS];
	size_t count;
};

static void
add_column(struct layout *layout, enum cell cell, const char *title)
{
	layout->columns[layout->count] = all_columns[cell];
	if (title)
		layout->columns[layout->count].title = title;
	layout->cells[layout->count++] = cell;
}

/* How often, in an iteration if the report is of one: "12", "0.25". */
static const char *
format_each_count(const struct plumb_report *report, char *text, int64_t count)
{
	double each = (double)count / (double)(report->iterations ? report->iterations : 1);

	if (count == PLUMB_UNKNOWN || each >= 100 || fabs(each - round(each)) < 0.005)
		return plumb_format_count(text, count == PLUMB_UNKNOWN ? count : llround(each));
	snprintf(text, PLUMB_FORMAT_SIZE, "%.2f", each);
	return text;
}

static const char *
format_stat(const struct plumb_report *report, const struct plumb_stat *stat, enum cell cell,
            char *text)
{
	const char *unit = plumb_profile_metric(report->profile, report->metric).unit;
	int64_t value = PLUMB_UNKNOWN;

	if (cell == COUNT)
		return format_each_count(
			report, text, stat->count < INT64_MAX ? (int64_t)stat->count : INT64_MAX);
	if (!stat->count && plumb_metric_aggregation(report->metric) != PLUMB_SUM)
		return strcpy(text, PLUMB_DASH);
	if (cell == SELF || cell == TOTAL)
		value = plumb_report_each(report, plumb_stat_amount(report->metric, stat));
	else if (!stat->count)
		value = PLUMB_UNKNOWN;
	else if (cell == MIN)
		value = stat->min;
	else if (cell == MAX)
		value = stat->max;
	else if (cell == MEAN)
		value = fabs(stat->mean) < 9e18 ? llround(stat->mean) : PLUMB_UNKNOWN;
	else if (cell == DEVIATION && isnan(stat->m2))
		value = PLUMB_UNKNOWN;
	else if (cell == DEVIATION)
		value = llround(fmin(plumb_stat_deviation(stat), 9e18));
	return plumb_format_quantity(text, unit, value);
}

static void
stat_cell(struct plumb_table *table, const struct plumb_report *report,
          const struct plumb_stat *stat, enum cell cell)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, format_stat(report, stat, cell, text));
}

static void
share_cell(struct plumb_table *table, const struct plumb_report *report,
           const struct plumb_stat *stat)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, plumb_format_share(text, plumb_report_share(report, stat), 1));
}

static void
calls_cell(struct plumb_table *table, const struct plumb_report *report,
           const struct plumb_calls *calls)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, format_each_count(report, text, plumb_report_calls_count(calls)));
}

static void
spread_cell(struct plumb_table *table, const struct plumb_report *report, uint32_t row)
{
	double deviation = report->spreads[row].deviation;
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(
		table, plumb_format_quantity(
			       text, plumb_profile_metric(report->profile, report->metric).unit,
			       isnan(deviation) ? PLUMB_UNKNOWN : llround(fmin(deviation, 9e18))));
}

static void
each_cell(struct plumb_table *table, const struct plumb_calls *calls)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, plumb_format_time(text, plumb_report_calls_mean(calls)));
}

/* ---- rows ---- */

/* What only kernels have: mean of a metric of one call, for each row. */
struct extras {
	struct plumb_stat *registers, *occupancy;
};

static int
load_extras(const struct plumb_report *report, struct extras *extras)
{
	uint32_t count = plumb_grouping_count(report->grouping);

	extras->registers = calloc(count + 1u, sizeof *extras->registers);
	extras->occupancy = calloc(count + 1u, sizeof *extras->occupancy);
	if (!extras->registers || !extras->occupancy)
		return -1;
	if (plumb_grouping_values(report->grouping, PLUMB_METRIC_GPU_REGISTERS, extras->registers,
	                          NULL, NULL) < 0)
		return -1;
	return plumb_grouping_values(report->grouping, PLUMB_METRIC_GPU_OCCUPANCY,
	                             extras->occupancy, NULL, NULL);
}

/* What one observation of the metric is. */
static const char *
count_title(const struct plumb_report *report)
{
	switch (report->metric) {
	case PLUMB_METRIC_GPU_TIME:
		return "kernels";
	case PLUMB_METRIC_OP_TIME:
		return "calls";
	default:
		return NULL;
	}
}

/* Adds how often rows were entered, and how long one call took, if this is known for any row. If
 * nobody enters the rows, it adds how many operators were called in them. */
static void
choose_calls(const struct plumb_report *report, struct layout *layout)
{
	bool known = false, means = false, operators = false;

	for (uint32_t i = 0; i < report->order_count; i++) {
		uint32_t row = report->order[i];

		known |= report->row_calls[row].known;
		means |= plumb_report_calls_mean(&report->row_calls[row]) != PLUMB_UNKNOWN;
		operators |= report->exclusive[row].count > 0;
	}
	if (known)
		add_column(layout, CALLS, NULL);
	else if (operators)
		add_column(layout, COUNT, "op.calls");
	if (means)
		add_column(layout, EACH, NULL);
}

/* Whether a row of modules has an output's shape. */
static bool
has_outputs(const struct plumb_report *report)
{
	for (uint32_t r = 0; r < plumb_grouping_count(report->grouping); r++)
		if (plumb_grouping_rows(report->grouping)[r].shapes != PLUMB_NONE)
			return true;
	return false;
}

static bool
has_metric(const struct plumb_report *report, uint32_t metric)
{
	for (uint32_t i = 0; i < report->profile->values_count; i++)
		if (report->profile->values[i].metric == metric && report->profile->values[i].count)
			return true;
	return false;
}

static void
choose_columns(const struct plumb_report *report, struct layout *layout)
{
	bool kernel = report->by == PLUMB_BY_KERNEL;
	bool module = report->by == PLUMB_BY_MODULE, shape = report->by == PLUMB_BY_SHAPE;
	/* Rows that do not lie in each other. */
	bool thread = shape || plumb_report_is_where(report->by) || report->by == PLUMB_BY_PHASE;
	bool sum = plumb_metric_aggregation(report->metric) == PLUMB_SUM;

	if (sum)
		add_column(layout, SHARE, NULL);
	if (!sum || kernel || thread)
		add_column(layout, SELF, sum ? "time" : "value");
	else
		add_column(layout, SELF, NULL), add_column(layout, TOTAL, NULL);
	if (sum && strcmp(plumb_profile_metric(report->profile, report->metric).unit, "ns"))
		layout->columns[1].title = kernel || thread ? "sum" : "self";
	if (report->spreads)
		add_column(layout, SPREAD, NULL);
	if (plumb_report_counts_entries(report)) {
		choose_calls(report, layout);
	} else {
		add_column(layout, COUNT, count_title(report));
		if (sum)
			add_column(layout, MEAN, NULL);
	}
	if (kernel || !sum) {
		add_column(layout, MIN, NULL);
		add_column(layout, MAX, NULL);
		add_column(layout, DEVIATION, NULL);
	}
	/* Names need the room that unknown numbers would take. */
	if (kernel && has_metric(report, PLUMB_METRIC_GPU_REGISTERS))
		add_column(layout, REGISTERS, NULL);
	if (kernel && has_metric(report, PLUMB_METRIC_GPU_OCCUPANCY))
		add_column(layout, OCCUPANCY, NULL);
	if (report->by == PLUMB_BY_LINE || report->by == PLUMB_BY_PYTHON) {
		add_column(layout, NAME, "function");
		add_column(layout, PLACE, report->by == PLUMB_BY_LINE ? "line" : NULL);
	} else if (report->by == PLUMB_BY_NATIVE) {
		add_column(layout, NAME, "function");
		add_column(layout, LIBRARY, NULL);
	} else {
		add_column(layout, NAME, shape ? "operator" : plumb_group_by_names[report->by]);
		if (module)
			add_column(layout, PLACE, "class");
		if (shape || (module && has_outputs(report)))
			add_column(layout, SHAPES, shape ? NULL : "output");
	}
	add_column(layout, USER, plumb_report_is_divided(report) ? PLUMB_PART_TITLE : NULL);
}

/* Rows are told apart by their names. */
static void
style_names(const struct plumb_report *report, struct layout *layout)
{
	bool function = report->by == PLUMB_BY_KERNEL || report->by == PLUMB_BY_NATIVE;

	for (size_t i = 0; i < layout->count; i++)
		if (layout->cells[i] == NAME)
			layout->columns[i].style =
				function ? PLUMB_SHORTEN_KERNEL : PLUMB_SHORTEN_NAME;
}

/* FILE:LINE; FILE if there is no line. */
static void
place_cell(struct plumb_table *table, const char *file, uint32_t line)
{
	char text[1500];

	if (file && line) {
		snprintf(text, sizeof text, "%s:%" PRIu32, file, line);
		file = text;
	}
	plumb_table_cell(table, file);
}

/* The name; of folded rows how many, and the mean of one; of one that stands out how much. */
static void
name_cell(struct plumb_table *table, const struct plumb_report *report,
          const struct plumb_report_place *place, const struct plumb_stat *stat)
{
	char text[1500], each[PLUMB_FORMAT_SIZE];
	const char *unit = plumb_profile_metric(report->profile, report->metric).unit;
	int64_t amount = plumb_stat_amount(report->metric, stat);

	if (place->folded > 1)
		snprintf(text, sizeof text, "%.1400s  %" PRIu32 " \xc3\x97 %s", place->name,
		         place->folded, plumb_format_quantity(each, unit, amount / place->folded));
	else if (place->usual > 0)
		snprintf(text, sizeof text, "%.1400s  %.1f \xc3\x97 its like", place->name,
		         (double)amount / (double)place->usual);
	plumb_table_cell(table, place->folded > 1 || place->usual > 0 ? text : place->name);
}

static void
user_cell(struct plumb_table *table, const struct plumb_report *report,
          const struct plumb_report_place *place)
{
	char text[1500];

	if (place->part == PLUMB_NONE)
		plumb_table_cell(table, plumb_report_user_text(place, text, sizeof text));
	else
		plumb_table_cell(table, plumb_division_text(report->profile, report->division,
		                                            place->part, true, text, sizeof text));
}

static void
extra_cell(struct plumb_table *table, const struct plumb_stat *stat, const char *unit)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, stat->count ? plumb_format_quantity(text, unit, llround(stat->mean))
	                                    : NULL);
}

static void
fill_row(struct plumb_table *table, const struct plumb_report *report, const struct layout *layout,
         const struct extras *extras, uint32_t row)
{
	struct plumb_report_place place;
	bool module = report->by == PLUMB_BY_MODULE;

	plumb_report_row_place(report, row, &place);
	for (size_t i = 0; i < layout->count; i++) {
		switch (layout->cells[i]) {
		case SHARE:
			share_cell(table, report, &report->exclusive[row]);
			break;
		case SPREAD:
			spread_cell(table, report, row);
			break;
		case NAME:
			name_cell(table, report, &place, &report->inclusive[row]);
			break;
		case PLACE:
			place_cell(table, place.file, place.line);
			break;
		case SHAPES:
			plumb_table_cell(table,
			                 module && place.shapes ? place.shapes + 3 : place.shapes);
			break;
		case LIBRARY:
			if (place.library)
				plumb_table_cell(table, plumb_path_base(place.library));
			else
				plumb_table_cell(table,
				                 strcmp(place.kind, "inline") ? NULL : "(inlined)");
			break;
		case USER:
			user_cell(table, report, &place);
			break;
		case REGISTERS:
			extra_cell(table, &extras->registers[row], "count");
			break;
		case OCCUPANCY:
			extra_cell(table, &extras->occupancy[row], "ppm");
			break;
		case TOTAL:
			stat_cell(table, report, &report->inclusive[row], TOTAL);
			break;
		case CALLS:
			calls_cell(table, report, &report->row_calls[row]);
			break;
		case EACH:
			each_cell(table, &report->row_calls[row]);
			break;
		default:
			stat_cell(table, report, &report->exclusive[row], layout->cells[i]);
		}
	}
}

static int
print_rows(const struct plumb_report *report, FILE *out, int width)
{
	struct layout layout = { .count = 0 };
	struct extras extras = { NULL, NULL };
	struct plumb_table *table;
	int result;

	choose_columns(report, &layout);
	style_names(report, &layout);
	table = plumb_table_new(layout.columns, layout.count);
	result = load_extras(report, &extras);
	for (uint32_t i = 0; !result && i < report->order_count; i++)
		fill_row(table, report, &layout, &extras, report->order[i]);
	if (!result)
		result = plumb_table_print(table, out, width, plumb_terminal_colour(out));
	plumb_table_free(table);
	free(extras.registers);
	free(extras.occupancy);
	return result;
}

/* ---- trees ---- */

/* Those of the innermost of a node's chain of contexts that are known. */
static const struct plumb_calls *
chain_calls(const struct plumb_report *report, const struct plumb_tree_node *node)
{
	uint32_t context = node->context;

	for (uint32_t i = 1; i < node->length && !report->calls[context].known; i++)
		context = report->profile->contexts[context].parent;
	return &report->calls[context];
}

/* The calls of a node's own frame. Bottom-up, for a caller: the calls that came through it. */
static void
node_calls_cell(struct plumb_table *table, const struct plumb_report *report,
                const struct plumb_tree_node *node, bool *direct)
{
	static const struct plumb_calls unknown;
	const struct plumb_calls *calls = plumb_report_node_calls(report, node);

	/* Bottom-up, what is counted came through the caller; calls, if all of it is of the row
	 * itself. */
	if (report->inverted && !node->depth)
		*direct = !report->grouping || calls->own.count == node->exclusive.count;
	if (!report->inverted)
		calls_cell(table, report, chain_calls(report, node));
	else if (*direct)
		stat_cell(table, report, &node->inclusive, COUNT);
	else
		calls_cell(table, report, node->depth ? &unknown : calls);
}

static int
print_tree(const struct plumb_report *report, FILE *out, int width)
{
	struct layout layout = { .count = 0 };
	struct plumb_table *table;
	bool whole = true; /* memory held for every label */
	bool entries = plumb_report_counts_entries(report), direct = false;
	int result = -1;

	add_column(&layout, SHARE, NULL);
	add_column(&layout, TOTAL, report->inverted ? "time" : NULL);
	if (!report->inverted)
		add_column(&layout, SELF, NULL);
	add_column(&layout, COUNT, count_title(report));
	add_column(&layout, NAME,
	           report->inverted ? "callee, with its callers below it" : "context");
	table = plumb_table_new(layout.columns, layout.count);
	for (uint32_t i = 0; i < report->tree.count; i++) {
		const struct plumb_tree_node *node = &report->tree.nodes[i];
		char *label = plumb_label_node(report, node, !width);

		share_cell(table, report, &node->inclusive);
		stat_cell(table, report, &node->inclusive, TOTAL);
		if (!report->inverted)
			stat_cell(table, report, &node->exclusive, SELF);
		if (entries)
			node_calls_cell(table, report, node, &direct);
		else
			stat_cell(table, report, &node->inclusive, COUNT);
		plumb_table_cell(table, label);
		whole = whole && label;
		free(label);
	}
	if (whole)
		result = plumb_table_print(table, out, width, plumb_terminal_colour(out));
	plumb_table_free(table);
	return result;
}

/* ---- the figures of HTA ---- */

static void
print_hta(const struct plumb_profile *profile, bool include_last, FILE *out)
{
	struct plumb_hta *items;
	uint32_t count;
	struct plumb_error error;
	if (plumb_hta_find(profile, include_last, &items, &count, &error) < 0) {
		fprintf(out, "  HTA: %s\n", error.message);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_hta *h = &items[i];
		double whole = h->kernel_us > 0 ? (double)h->kernel_us : NAN;
		fprintf(out, "  HTA       %s", include_last ? "with the last step: " : "");
		if (h->rank != PLUMB_UNKNOWN)
			fprintf(out, "rank %" PRId64 ": ", h->rank);
		fprintf(out,
		        "idle %" PRId64 " µs (%.2f %%), compute %" PRId64
		        " µs (%.2f %%), non-compute %" PRId64 " µs (%.2f %%), of %" PRId64
		        " µs; overlap ",
		        h->idle_us, 100 * (double)h->idle_us / whole, h->compute_us,
		        100 * (double)h->compute_us / whole, h->non_compute_us,
		        100 * (double)h->non_compute_us / whole, h->kernel_us);
		if (isnan(h->overlap_percent))
			fputs("unknown\n", out);
		else
			fprintf(out, "%.2f %%\n", h->overlap_percent);
	}
	free(items);
}

/* ---- the whole ---- */

/* What a row is, for a sentence. */
static const char *
noun_of(enum plumb_group_by by)
{
	if (by == PLUMB_BY_PYTHON)
		return "Python function";
	if (by == PLUMB_BY_LINE)
		return "Python line";
	if (by == PLUMB_BY_NATIVE || by == PLUMB_BY_LIBRARY)
		return "native function";
	return plumb_group_by_names[by];
}

/* The metric's value under no row, and how many rows were not shown. */
static void
print_rest(const struct plumb_report *report, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	uint64_t shown = plumb_report_count(report);

	if (report->available > shown)
		fprintf(out, "%" PRIu64 " more (--top 0 shows all)\n", report->available - shown);
	else if (!report->available && shown)
		fputs("there is more (--top 0 shows all)\n", out);
	if (!report->outside.count)
		return;
	fprintf(out, "outside any %s: ", noun_of(report->by));
	fprintf(out, "%s", format_stat(report, &report->outside, SELF, text));
	fprintf(out, " (%s)\n",
	        plumb_format_share(text, plumb_report_share(report, &report->outside), 1));
}

/* How much of the time the table covers. */
static void
print_coverage(const struct plumb_report *report, FILE *out)
{
	struct plumb_coverage coverage;
	char text[PLUMB_COVERAGE_SIZE];

	if (report->total.count && plumb_coverage_find(report->profile, &coverage) &&
	    *plumb_coverage_text(&coverage, report->metric, text))
		fprintf(out, "%s\n", text);
}

static void
print_ledger(const struct plumb_report *report, bool all, FILE *out, int width, int *result)
{
	fputs("\nledger\n", out);
	if (all && !*result)
		*result =
			plumb_ledger_print(report->profile, out, width, plumb_terminal_colour(out));
	else
		plumb_ledger_print_short(report->profile, out, 2, MOST_DROPS);
}

int
plumb_report_text(const struct plumb_report *report, const struct plumb_profile *whole,
                  const char *path, bool ledger, FILE *out, int width)
{
	struct plumb_metric_info metric;
	char text[PLUMB_FORMAT_SIZE];
	const char *estimate;
	int result = 0;

	fputs("plumb report ", out);
	plumb_text_print(out, path);
	fputc('\n', out);
	plumb_overview_print(whole, out, MOST_DEVICES);
	plumb_windows_print(whole, MOST_LOOPS, out);
	if (report->compat) {
		print_hta(report->profile, false, out);
		print_hta(report->profile, true, out);
	}
	if (report->is_memory) {
		result = plumb_report_memory_text(report, out, width);
		print_ledger(report, ledger, out, width, &result);
		return result;
	}
	metric = plumb_profile_metric(report->profile, report->metric);
	plumb_windows_print_choice(report->profile, out);
	fprintf(out, "%s%s by %s%s", report->profile->window.kind ? "" : "\n", metric.name,
	        plumb_group_by_names[report->by], report->inverted ? ", bottom-up" : "");
	if (plumb_metric_aggregation(report->metric) == PLUMB_SUM && report->total.count)
		fprintf(out, ", %s in %s", format_stat(report, &report->total, SELF, text),
		        report->iterations ? "an iteration" : "total");
	if (metric.meaning)
		fprintf(out, " (%s)", metric.meaning);
	fputc('\n', out);
	estimate = plumb_profile_metric_estimate(report->profile, report->metric);
	if (estimate)
		fprintf(out, "%s\n", estimate);
	print_coverage(report, out);
	if (report->why[0])
		fprintf(out, "%s\n", report->why);
	plumb_divided_print(report, out);
	fputc('\n', out);
	if (report->is_tree && report->tree.count)
		result = print_tree(report, out, width);
	else if (report->order_count)
		result = print_rows(report, out, width);
	print_rest(report, out);
	if (report->order_count)
		plumb_from_print_rows(report, out);
	print_ledger(report, ledger, out, width, &result);
	return result;
}
