/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are verbs: the query's keys are the verb's options. */
#include <string.h>

#include "serve/answers.h"
#include "view/findings.h"
#include "view/overview.h"

#define TOP_MOST INT64_C(0xffffffff)

static uint32_t
read_top(const struct plumb_query *query)
{
	int64_t top = plumb_query_number(query, "top");

	return (uint32_t)(top < TOP_MOST ? top : TOP_MOST);
}

int
plumb_answer_overview(struct plumb_question *question, struct plumb_error *error)
{
	return plumb_view_overview(question->profile, question->out, error);
}

int
plumb_answer_shares(struct plumb_question *question, struct plumb_error *error)
{
	return plumb_view_shares(question->profile, question->format, question->out, error);
}

int
plumb_answer_findings(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_findings_query wanted = {
		.top = read_top(question->query),
		.user_code = plumb_profile_environment(question->profile, "run.user_code"),
	};

	return plumb_view_findings(question->profile, &wanted, question->format, question->out,
	                           error);
}

int
plumb_answer_report(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const char *by = plumb_query_text(q, "by");
	const struct plumb_report_query wanted = {
		.by = by ? plumb_group_by_name(by) : PLUMB_BY_DEFAULT,
		.metric = plumb_query_text(q, "metric"),
		.top = read_top(q),
		.inverted = plumb_query_flag(q, "inverted"),
		.folded = plumb_query_flag(q, "folded"),
		.filter = plumb_query_text(q, "filter"),
		.user_code = plumb_query_text(q, "user_code"),
		.per_iteration = plumb_query_flag(q, "per_iteration"),
	};

	if (wanted.per_iteration && wanted.by == PLUMB_BY_MEMORY)
		return plumb_fail(error, PLUMB_EUSAGE, "by=memory has no per_iteration");
	if (plumb_report_check(&wanted, error) < 0)
		return error->code;
	return plumb_view_report(question->profile, &wanted, question->format, question->out,
	                         error);
}

/* ---- tables ---- */

static int
read_kinds(struct plumb_question *question, uint32_t files, struct plumb_tables_query *wanted,
           struct plumb_error *error)
{
	const char *name;

	for (uint32_t i = 0; (name = plumb_query_each(question->query, "kind", i)); i++) {
		const struct plumb_tables_kind *kind = plumb_tables_find(name);
		if (!kind)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "there is no table \"%.40s\"; use A1 to A15, stages, "
			                  "compare or swapped",
			                  name);
		plumb_tables_want(wanted, kind);
		if (files > 1 && !kind->several)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "%s is of one profile; leave out files=all", kind->id);
		if (files == 1 && !strcmp(kind->id, "swapped"))
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "swapped needs two or more profiles; add files=all");
	}
	plumb_tables_want_default(wanted, files);
	return 0;
}

static int
read_tables_query(struct plumb_question *question, uint32_t files,
                  struct plumb_tables_query *wanted, struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const char *optimal = plumb_query_text(q, "optimal");
	int64_t runs = plumb_query_number(q, "runs");
	int64_t peak = plumb_query_number(q, "peak");
	int64_t bandwidth = plumb_query_number(q, "bandwidth");

	if (!plumb_statistic_read(plumb_query_text(q, "stat"), &wanted->layers.statistic))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "there is no statistic \"%.40s\"; use trimmed, "
		                  "trimmed:PERCENT (below 50), mean, median, min, max, or p0 to "
		                  "p100",
		                  plumb_query_text(q, "stat"));
	if (optimal && !plumb_constraints_read(optimal, &wanted->constraints))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "optimal takes limits such as latency<50ms, not \"%.80s\"",
		                  optimal);
	wanted->layers.kind = plumb_query_choice(q, "layer");
	wanted->layers.model = plumb_query_text(q, "model");
	wanted->layers.whole = plumb_query_flag(q, "whole");
	wanted->layers.serialised = plumb_query_flag(q, "serialised");
	wanted->layers.runs = runs > 0 ? runs : 0;
	wanted->precision = plumb_query_choice(q, "precision");
	wanted->peak_gflops = peak > 0 ? (double)peak : 0;
	wanted->bandwidth = bandwidth > 0 ? (double)bandwidth * 1e9 : 0;
	wanted->key = plumb_query_given(q, "key") ? plumb_query_choice(q, "key") : 0;
	wanted->as_given = plumb_query_given(q, "key") && wanted->key != PLUMB_KEY_IS_BATCH;
	wanted->against_best = plumb_query_choice(q, "base") == 1;
	return read_kinds(question, files, wanted, error);
}

int
plumb_answer_tables(struct plumb_question *question, struct plumb_error *error)
{
	struct plumb_answers *answers = question->answers;
	bool all = plumb_query_choice(question->query, "files") == 1;
	int64_t batch = plumb_query_number(question->query, "batch");
	struct plumb_tables_profile profiles[PLUMB_TABLES_PROFILES];
	struct plumb_tables_query wanted = { 0 };
	uint32_t count = all ? answers->count : 1;

	if (count > PLUMB_TABLES_PROFILES)
		return plumb_fail(error, PLUMB_EUSAGE, "tables are of at most %d profiles",
		                  PLUMB_TABLES_PROFILES);
	if (all && (question->windowed || batch > 0))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "files=all has no window and no batch; leave them out");
	if (read_tables_query(question, count, &wanted, error) < 0)
		return error->code;
	for (uint32_t i = 0; i < count; i++)
		profiles[i] = (struct plumb_tables_profile){
			.profile = all ? answers->files[i].whole : question->profile,
			.file = all ? answers->files[i].name : question->file->name,
			.batch = batch > 0 ? batch : 0,
		};
	question->remedy = PLUMB_REMEDY_RUN;
	return plumb_view_tables(profiles, count, &wanted, question->format, question->out, error);
}

/* ---- diff ---- */

static int
compare(struct plumb_question *question, const struct plumb_window_choice *window,
        const struct plumb_diff_query *wanted, struct plumb_error *error)
{
	struct plumb_answers *answers = question->answers;
	const struct plumb_profile *profiles[PLUMB_SERVED_FILES];
	const char *names[PLUMB_SERVED_FILES];

	for (uint32_t i = 0; i < answers->count; i++) {
		names[i] = answers->files[i].name;
		if (plumb_served_window(answers, &answers->files[i], window, false, &profiles[i],
		                        error) < 0)
			return plumb_fail_in(error, "%s", names[i]);
	}
	return plumb_view_diff(profiles, names, answers->before, answers->count, wanted,
	                       question->format, question->out, error);
}

int
plumb_answer_diff(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const char *by = plumb_query_text(q, "by");
	const struct plumb_diff_query wanted = {
		.by = by ? plumb_diff_by_named(by) : 0,
		.metric = plumb_query_text(q, "metric"),
		.top = read_top(q),
		.total = plumb_query_flag(q, "total"),
	};
	struct plumb_window_choice window;

	if (plumb_window_parse(plumb_query_text(q, "window"), &window, error) < 0)
		return plumb_fail_in(error, "window");
	question->remedy = "plumb view BEFORE AFTER";
	if (question->answers->count < 2)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "one profile is open; open two to compare them");
	return compare(question, &window, &wanted, error);
}
