/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/phase.h"
#include "base/sort.h"
#include "cli/cli.h"
#include "cli/findings.h"
#include "cli/label.h"
#include "cli/load.h"
#include "cli/rules.h"
#include "cli/terminal.h"
#include "model/user_code.h"
#include "store/store.h"

static const struct plumb_option options[] = {
	{ .name = "by",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .fallback = "operator",
	  .choices = "context|kernel|operator|range|module|python|line|phase|shape|native|library|"
	             "thread|process|rank|collective|memory",
	  .help = "what a row is. context: the tree of call paths; range: an NVTX or user range; "
	          "module: an nn.Module by its qualified name; python: a Python function; line: a "
	          "Python line; phase: data, forward, loss, backward, optimizer or other; shape: "
	          "an operator with the shapes of its inputs and outputs, if the run had --shapes; "
	          "native: a native function; library: the program or library of native functions; "
	          "thread: a host thread or a GPU stream; process: a process; rank: the processes "
	          "of a rank; collective: an operation of NCCL or RCCL; memory: who holds each "
	          "device's memory at its peak, by line of your code and operator. A profile "
	          "without operators has another default: kernel, range, context or function. All "
	          "values" },
	{ .name = "top",
	  .letter = 'n',
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "20",
	  .help = "show the N largest rows; 0 shows all" },
	{ .name = "metric",
	  .letter = 'm',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "METRIC",
	  .help = "sort by METRIC, and show shares of it; \"plumb help metrics\" lists them, and "
	          "metrics of your program work too. Default: the first of gpu.time, op.time, "
	          "cpu.time and your program's metrics that was recorded" },
	{ .name = "inverted",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "bottom-up: under each row, the callers that its time came through" },
	{ .name = "filter",
	  .letter = 'f',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RE",
	  .help = "show only rows with a name or FILE:LINE that matches the extended regular "
	          "expression RE; in a tree also what is above and below them. The numbers do not "
	          "change" },
	{ .name = "user-code",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RULE",
	  .help = "change what counts as your code: entries +PREFIX (files under PREFIX are yours) "
	          "and -PREFIX (are not), separated by colons; the last that matches counts. "
	          "Default: everything but installed packages and the standard library" },
	{ .name = "findings",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "show findings instead of rows, the most important first: what, why, where, "
	          "what to do, and what that saves at most (see \"plumb help findings\")" },
	{ .name = "threshold",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "NAME=VALUE,...",
	  .help = "change thresholds of the analyses, for example "
	          "hotspot.share=5%,fusion.kernel_time=20us" },
	{ .name = "rule",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE,...",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "run rules of your own, in Python, and show what they find among the findings" },
	{ .name = "ledger",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "show the whole ledger: what was received, attributed and dropped from each "
	          "source, and why" },
	{ .name = "width",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "COLUMNS",
	  .help = "shorten names to fit COLUMNS; 0: never shorten. Default: the width of the "
	          "terminal" },
	{ .name = "compat",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "TOOL",
	  .choices = "hta",
	  .help = "also show TOOL's figures for the trace. They differ from the exact ones: hta "
	          "(HolisticTraceAnalysis 0.5) drops the last ProfilerStep and rounds every event "
	          "to µs. Known tools" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write CSV" },
	{ 0 },
};

/* ---- places ---- */

static const char *
none_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

static void
set_user(const struct plumb_report *report, uint32_t frame, struct plumb_report_place *place)
{
	const struct plumb_profile *p = report->profile;

	if (frame >= p->frames_count)
		return;
	place->user_file = plumb_text(p, p->frames[frame].file);
	place->user_line = p->frames[frame].line;
}

/* The path of the code object that FRAME lies in. Its file is the object's build id, or the
 * path. */
static const char *
library_of(const struct plumb_profile *p, const struct plumb_frame *frame)
{
	if (frame->kind != PLUMB_FRAME_NATIVE || frame->file == PLUMB_NONE)
		return NULL;
	for (uint32_t i = 0; i < p->code_objects_count; i++)
		if (p->code_objects[i].build_id == frame->file ||
		    p->code_objects[i].path == frame->file)
			return plumb_text(p, p->code_objects[i].path);
	return NULL;
}

static void
set_frame(const struct plumb_report *report, uint32_t frame, struct plumb_report_place *place)
{
	const struct plumb_frame *f = &report->profile->frames[frame];

	place->name = plumb_frame_label(report->profile, frame);
	place->kind = plumb_frame_kind_names[f->kind];
	place->file = none_if_empty(plumb_text(report->profile, f->file));
	place->line = f->line;
	place->source_file = none_if_empty(plumb_text(report->profile, f->source_file));
	place->source_line = f->source_line;
	place->library = library_of(report->profile, f);
}

static void
set_process(const struct plumb_process *process, struct plumb_report_place *place)
{
	place->pid = process ? process->pid : PLUMB_UNKNOWN;
	place->rank = process ? process->rank : PLUMB_UNKNOWN;
}

/* The process or the ROW's rank. */
static void
set_where(const struct plumb_report *report, const struct plumb_group_row *row,
          struct plumb_report_place *place)
{
	const struct plumb_profile *p = report->profile;
	const struct plumb_process *process;
	const char *command;
	size_t used;

	place->name = place->buffer;
	if (row->process >= p->processes_count) {
		place->kind = "rank";
		place->rank = row->rank;
		snprintf(place->buffer, sizeof place->buffer, "rank %" PRId64, row->rank);
		return;
	}
	process = &p->processes[row->process];
	command = none_if_empty(plumb_text(p, process->command));
	set_process(process, place);
	place->kind = "process";
	snprintf(place->buffer, sizeof place->buffer, "process %" PRId64, process->pid);
	used = strlen(place->buffer);
	if (process->rank != PLUMB_UNKNOWN)
		used += (size_t)snprintf(place->buffer + used, sizeof place->buffer - used,
		                         " (rank %" PRId64 ")", process->rank);
	if (command)
		snprintf(place->buffer + used, sizeof place->buffer - used, " %s", command);
}

static void
set_track(const struct plumb_report *report, uint32_t track, struct plumb_report_place *place)
{
	const struct plumb_profile *p = report->profile;
	const struct plumb_track *t = &p->tracks[track];
	const char *name = none_if_empty(plumb_text(p, t->name));
	const struct plumb_process *own =
		t->process < p->processes_count ? &p->processes[t->process] : NULL;
	int64_t ordinal =
		t->device < p->devices_count ? p->devices[t->device].ordinal : PLUMB_UNKNOWN;
	char process[80] = "", device[40] = "";

	if (own && own->pid != PLUMB_UNKNOWN && p->processes_count > 1)
		snprintf(process, sizeof process, " of process %" PRId64, own->pid);
	if (process[0] && own->rank != PLUMB_UNKNOWN)
		snprintf(strchr(process, '\0'), 40, " (rank %" PRId64 ")", own->rank);
	set_process(own, place);
	if (ordinal != PLUMB_UNKNOWN)
		snprintf(device, sizeof device, " on device %" PRId64, ordinal);
	place->kind = t->kind == PLUMB_TRACK_STREAM   ? "stream"
	              : t->kind == PLUMB_TRACK_MEMORY ? "memory"
	                                              : "thread";
	if (t->kind == PLUMB_TRACK_MEMORY)
		snprintf(place->buffer, sizeof place->buffer, "memory of %.60s%s",
		         name ? name : "?", process);
	else if (t->kind == PLUMB_TRACK_STREAM)
		snprintf(place->buffer, sizeof place->buffer, "stream %" PRId64 "%s%s", t->stream,
		         device, process);
	else
		snprintf(place->buffer, sizeof place->buffer, "thread %" PRId64 "%s%.60s%s%s",
		         t->tid, name ? " (" : "", name ? name : "", name ? ")" : "", process);
	place->name = place->buffer;
}

static void
clear_place(struct plumb_report_place *place)
{
	memset(place, 0, sizeof *place);
	place->pid = place->rank = PLUMB_UNKNOWN;
}

void
plumb_report_row_place(const struct plumb_report *report, uint32_t row,
                       struct plumb_report_place *place)
{
	const struct plumb_group_row *r = &plumb_grouping_rows(report->grouping)[row];

	clear_place(place);
	if (r->track != PLUMB_NONE)
		set_track(report, r->track, place);
	else if (r->phase != PLUMB_NONE)
		place->name = plumb_phase_names[r->phase], place->kind = "phase";
	else if (r->frame == PLUMB_NONE)
		set_where(report, r, place);
	else
		set_frame(report, r->frame, place);
	place->shapes = plumb_text(report->profile, r->shapes);
	place->line = r->line;
	/* Native rows are of a whole function; a kernel's is where it begins. */
	if (r->line == 0 && strcmp(report->by, "kernel"))
		place->source_line = 0;
	if (!strcmp(report->by, "library")) {
		place->source_file = NULL;
		if (place->library)
			place->name = plumb_label_base(place->library);
	}
	set_user(report, report->row_user[row], place);
}

void
plumb_report_context_place(const struct plumb_report *report, uint32_t context,
                           struct plumb_report_place *place)
{
	clear_place(place);
	set_frame(report, report->profile->contexts[context].frame, place);
	set_user(report, report->user_of[context], place);
}

void
plumb_report_node_place(const struct plumb_report *report, const struct plumb_tree_node *node,
                        struct plumb_report_place *place)
{
	if (node->row != PLUMB_NONE)
		plumb_report_row_place(report, node->row, place);
	else
		plumb_report_context_place(report, node->context, place);
}

bool
plumb_report_is_where(const char *by)
{
	return !strcmp(by, "thread") || !strcmp(by, "process") || !strcmp(by, "rank");
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

static bool
matches(const regex_t *filter, const struct plumb_report_place *place)
{
	char where[1200];

	if (!regexec(filter, place->name, 0, NULL, 0) ||
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

		set_frame(report, f, &place);
		match[f] = matches(filter, &place) || (name && !regexec(filter, name, 0, NULL, 0));
	}
	return match;
}

/* ---- working it out ---- */

static int
no_memory(struct plumb_error *error)
{
	return plumb_fail(error, PLUMB_ESYSTEM, "no memory left for the report");
}

static int
make_grouping(struct plumb_report *report, struct plumb_error *error)
{
	uint32_t count;

	report->grouping =
		plumb_grouping_new(report->profile, plumb_group_by_name(report->by), report->user);
	if (!report->grouping)
		return no_memory(error);
	count = plumb_grouping_count(report->grouping);
	report->exclusive = calloc(count + 1u, sizeof *report->exclusive);
	report->inclusive = calloc(count + 1u, sizeof *report->inclusive);
	report->row_user = calloc(count + 1u, sizeof *report->row_user);
	report->order = calloc(count + 1u, sizeof *report->order);
	if (!report->exclusive || !report->inclusive || !report->row_user || !report->order ||
	    plumb_grouping_values(report->grouping, report->metric, report->exclusive,
	                          report->inclusive, &report->outside) < 0 ||
	    plumb_grouping_user(report->grouping, report->metric, report->user_of,
	                        report->row_user) < 0)
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
		if (filter && !matches(filter, &place))
			continue;
		if (report->top && !report->exclusive[r].count && !report->inclusive[r].count)
			continue;
		items[kept++].index = r;
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

static bool
matches_row(const void *filter, const char *name, const char *file, uint32_t line)
{
	struct plumb_report_place place = { .name = name, .file = file, .line = line };

	return matches(filter, &place);
}

static int
make_memory(struct plumb_report *report, const regex_t *filter, struct plumb_error *error)
{
	report->is_memory = true;
	if (plumb_memory_rows_make(report->profile, report->user, &report->memory) < 0 ||
	    plumb_report_memory_order(report, filter ? matches_row : NULL, filter) < 0)
		return no_memory(error);
	return 0;
}

static int
work_out(struct plumb_report *report, const struct plumb_invocation *invocation,
         const regex_t *filter, struct plumb_error *error)
{
	const struct plumb_options *o = invocation->options;
	bool machine = plumb_options_flag(o, "json") || plumb_options_flag(o, "csv");
	bool contexts = !strcmp(report->by, "context");
	int result;

	report->user =
		plumb_user_code_frames(report->profile, plumb_options_text(o, "user-code"), error);
	if (!report->user)
		return error->code;
	report->user_of = plumb_user_contexts(report->profile, report->user);
	if (!report->user_of)
		return no_memory(error);
	for (uint32_t i = 0; i < report->profile->values_count; i++) {
		const struct plumb_value *v = &report->profile->values[i];
		struct plumb_stat stat = { v->sum, v->count, v->min, v->max, v->mean, v->m2 };

		if (v->metric == report->metric)
			plumb_stat_merge(&report->total, &stat);
		if (v->metric == report->metric && contexts && !v->context)
			plumb_stat_merge(&report->outside, &stat);
	}
	if (!strcmp(report->by, "memory"))
		return make_memory(report, filter, error);
	report->is_tree = contexts || report->inverted;
	if (!contexts) {
		result = make_grouping(report, error);
		if (result < 0)
			return result;
	}
	if (plumb_report_calls_make(report) < 0)
		return no_memory(error);
	if (report->is_tree)
		return make_tree(report, filter, !machine, error);
	return order_rows(report, filter, error);
}

static void
clear(struct plumb_report *report)
{
	free(report->user);
	free(report->user_of);
	plumb_tree_free(&report->tree);
	plumb_grouping_free(report->grouping);
	plumb_memory_rows_free(&report->memory);
	free(report->exclusive);
	free(report->inclusive);
	free(report->row_user);
	free(report->order);
	free(report->calls);
	free(report->row_calls);
}

/* ---- the verb ---- */

static int
print(const struct plumb_invocation *invocation, const struct plumb_report *report)
{
	const struct plumb_options *o = invocation->options;
	int64_t width = plumb_options_number(o, "width");
	struct plumb_error error;
	int result;

	if (width < 0)
		width = plumb_terminal_width(invocation->out);
	if (plumb_options_flag(o, "json"))
		result = plumb_report_json(report, invocation->out);
	else if (plumb_options_flag(o, "findings") && plumb_options_flag(o, "csv"))
		result = plumb_findings_csv(report, invocation->out);
	else if (plumb_options_flag(o, "findings"))
		result = plumb_findings_text(report, invocation->out,
		                             (int)(width < 10000 ? width : 0));
	else if (plumb_options_flag(o, "csv"))
		result = plumb_report_csv(report, invocation->out);
	else
		result = plumb_report_text(report, invocation->out,
		                           width < 10000 ? (int)width : 10000);
	/* A failed write is the frame's to report: it knows whether the reader just left. */
	if (result < 0 && !ferror(invocation->out)) {
		no_memory(&error);
		return plumb_cli_fail(invocation, &error);
	}
	if (report->tree.count || report->order_count)
		return PLUMB_EXIT_DONE;
	plumb_cli_note(invocation, "nothing to show: %s",
	               plumb_report_why_empty(report, plumb_options_given(o, "filter")));
	return PLUMB_EXIT_EMPTY;
}

static bool
is_under_operators(const struct plumb_profile *p, uint32_t metric)
{
	for (uint32_t i = 0; i < p->values_count; i++) {
		uint32_t context = p->values[i].metric == metric ? p->values[i].context : 0;

		for (; context; context = p->contexts[context].parent)
			if (plumb_context_frame(p, context)->kind == PLUMB_FRAME_OPERATOR)
				return true;
	}
	return false;
}

/* What rows are when nobody said: operators, or kernels where no operator has any, or ranges, or
 * functions. */
static const char *
default_rows(const struct plumb_profile *profile, uint32_t metric)
{
	bool seen[PLUMB_FRAME_KIND_COUNT] = { false };
	for (uint32_t i = 0; i < profile->frames_count; i++)
		if (profile->frames[i].kind < PLUMB_FRAME_KIND_COUNT)
			seen[profile->frames[i].kind] = true;
	/* Kernels may all be launched beside the operators. */
	if (seen[PLUMB_FRAME_OPERATOR] &&
	    (!seen[PLUMB_FRAME_KERNEL] || is_under_operators(profile, metric)))
		return "operator";
	if (seen[PLUMB_FRAME_KERNEL])
		return metric == PLUMB_METRIC_GPU_TIME ? "kernel" : "operator";
	if (seen[PLUMB_FRAME_RANGE])
		return "range";
	if (metric < PLUMB_METRIC_USER && metric != PLUMB_METRIC_CPU_TIME)
		return "operator";
	return seen[PLUMB_FRAME_NATIVE] && seen[PLUMB_FRAME_PYTHON] ? "context"
	       : seen[PLUMB_FRAME_PYTHON]                           ? "python"
	                                                            : "native";
}

static int
report_profile(const struct plumb_invocation *invocation, const struct plumb_profile *profile,
               const regex_t *filter)
{
	const struct plumb_options *o = invocation->options;
	const char *metric = plumb_options_text(o, "metric");
	int64_t top = plumb_options_number(o, "top");
	struct plumb_report report = {
		.profile = profile,
		.path = invocation->operands[0],
		.by = plumb_options_text(o, "by"),
		.metric = metric ? plumb_profile_metric_find(profile, metric)
		                 : plumb_metric_default(profile),
		.top = top < UINT32_MAX ? (uint32_t)top : UINT32_MAX,
		.ledger = plumb_options_flag(o, "ledger"),
		.inverted = plumb_options_flag(o, "inverted"),
		.compat = plumb_options_given(o, "compat"),
	};
	struct plumb_error error;
	int result;

	if (!report.metric)
		return plumb_cli_usage(invocation, "report: the profile has no metric \"%s\"",
		                       metric);
	if (!plumb_options_given(o, "by"))
		report.by = default_rows(profile, report.metric);
	if (!metric && !strcmp(report.by, "memory"))
		report.metric = PLUMB_METRIC_MEM_HELD;
	if (!metric && !strcmp(report.by, "shape"))
		report.metric = PLUMB_METRIC_OP_TIME;
	result = work_out(&report, invocation, filter, &error);
	result = result < 0 ? plumb_cli_fail(invocation, &error) : print(invocation, &report);
	clear(&report);
	return result;
}

/* Findings come from the profile. They are made again if it has none, if older analyses made them,
 * or if what they depend on is asked for otherwise. */
static int
make_findings(const struct plumb_invocation *invocation, struct plumb_profile *profile,
              struct plumb_error *error)
{
	const struct plumb_options *o = invocation->options;
	struct plumb_analyze_options wanted = { plumb_options_text(o, "threshold"),
		                                plumb_options_text(o, "user-code") };
	const char *rules = plumb_options_text(o, "rule");
	bool shown = plumb_options_flag(o, "findings") || plumb_options_flag(o, "json");
	bool anew = wanted.thresholds || wanted.user_code ||
	            (shown && plumb_findings_are_old(profile));
	int code = 0;

	if (anew && shown && profile->spans_count && plumb_store_is_ours(invocation->operands[0])) {
		/* The critical path wants what threads did, too; another tool's trace came
		 * whole. */
		plumb_profile_free(profile);
		*profile = (struct plumb_profile){ 0 };
		code = plumb_load(profile, invocation->operands[0], PLUMB_LOAD_ALL, error);
		if (code < 0)
			return code;
	}
	if (anew)
		code = plumb_analyze(profile, &wanted, error);
	if (!code && rules)
		code = plumb_rules_run(profile, invocation->operands[0], rules, error);
	return code;
}

static int
check_use(const struct plumb_invocation *invocation)
{
	const struct plumb_options *o = invocation->options;
	const char *metric = plumb_options_text(o, "metric"), *by = plumb_options_text(o, "by");

	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "report: choose --json or --csv");
	if (plumb_options_flag(o, "inverted") && !strcmp(plumb_options_text(o, "by"), "memory"))
		return plumb_cli_usage(invocation, "report: --by memory has no --inverted; --by "
		                                   "operator --metric mem.held has");
	if (metric && !strcmp(by, "memory") &&
	    (strncmp(metric, "mem.", 4) || !plumb_metric_find(metric)))
		return plumb_cli_usage(invocation, "report: --by memory sorts by mem.held, "
		                                   "mem.peak, mem.alloc or mem.free");
	if (plumb_options_flag(o, "inverted") &&
	    (plumb_report_is_where(by) || !strcmp(by, "phase") || !strcmp(by, "shape")))
		return plumb_cli_usage(invocation, "report: a %s has no callers to invert", by);
	return 0;
}

int
plumb_cmd_report(struct plumb_invocation *invocation)
{
	const char *expression = plumb_options_text(invocation->options, "filter");
	struct plumb_profile profile = { 0 };
	struct plumb_error error;
	regex_t filter;
	int result = check_use(invocation);

	if (result)
		return result;
	if (expression) {
		int code = regcomp(&filter, expression, REG_EXTENDED | REG_NOSUB);
		if (code) {
			char why[120];
			regerror(code, &filter, why, sizeof why);
			return plumb_cli_usage(invocation, "report: --filter \"%s\": %s",
			                       expression, why);
		}
	}
	bool compat = plumb_options_given(invocation->options, "compat");
	if (plumb_load(&profile, invocation->operands[0],
	               compat ? PLUMB_LOAD_ALL : PLUMB_LOAD_STREAMS, &error) < 0 ||
	    make_findings(invocation, &profile, &error) < 0)
		result = plumb_cli_fail(invocation, &error);
	else
		result = report_profile(invocation, &profile, expression ? &filter : NULL);
	plumb_profile_free(&profile);
	if (expression)
		regfree(&filter);
	return result;
}

static const char *const examples[] = {
	"plumb report train.plumb",
	"the operators that take the most time",
	"plumb report train.plumb --by context",
	"call paths, from the Python line to the kernel",
	"plumb report train.plumb --by kernel --inverted --top 40",
	"the kernels, and under each what launched it",
	"plumb report train.plumb --by line --filter 'model\\.py:'",
	"the lines of one file",
	"plumb report train.plumb --by memory",
	"who holds each device's memory at its peak",
	"plumb report train.plumb --findings",
	"what is wrong, and what to do about it",
	"plumb report train.plumb --findings --rule small.py --threshold hotspot.share=5%",
	"with a rule of your own, and another threshold",
	"plumb report train.plumb --by kernel --json --top 0",
	"every kernel, as JSON",
	NULL,
};

const struct plumb_verb plumb_verb_report = {
	.name = "report",
	.summary = "show where the time of a profile goes, as a table or a tree",
	.synopsis = "[FILE]",
	.description =
		"Reads a profile. The head names the command, its wall time, an estimate of "
		"plumb's own cost, and how busy each device was. The ledger at the end says what "
		"was dropped, and why.\n\n"
		"\"self\" is a row alone, without deeper rows of the same kind: self times add up "
		"to the total. \"total\" is a row with everything below it; a recursive frame "
		"counts once. \"share\" is self over the total, in a tree total over the total. "
		"\"line of your code\" is the line that most of the row comes from.",
	.options = options,
	.examples = examples,
	.max_operands = 1,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_report,
};
