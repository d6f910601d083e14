/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answers.h"

/* Explains the iteration that the query names. */
static int
explain_one(struct plumb_question *question, const struct plumb_iters *iters,
            struct plumb_error *error)
{
	struct plumb_iters_explained explained;
	int64_t level = plumb_query_number(question->query, "level");
	int code = plumb_iters_explain(iters, (uint32_t)(level < 1000 ? level : 1000),
	                               plumb_query_number(question->query, "iteration"), &explained,
	                               error);

	question->remedy = NULL;
	if (!code && plumb_iters_explained_json(iters, &explained, question->out) < 0)
		code = plumb_fail_memory(error, "for the iteration");
	plumb_iters_explained_free(&explained);
	return code;
}

static int
answer(struct plumb_question *question, bool explains, struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const struct plumb_iters_query wanted = {
		.one = plumb_query_given(q, "track"),
		.track = plumb_query_number(q, "track"),
		.loop = plumb_query_given(q, "loop") ? plumb_query_number(q, "loop") : 0,
		.explains = explains,
		.paths = explains || question->format != PLUMB_VIEW_JSON ? PLUMB_ITERS_NO_PATHS
		                                                         : PLUMB_ITERS_ALL_PATHS,
	};
	struct plumb_iters iters;
	const char *why;
	int code;

	if (plumb_query_given(q, "loop") && !wanted.loop)
		return plumb_fail(error, PLUMB_EUSAGE, "loops are counted from 1");
	code = plumb_iters_make(question->profile, &wanted, &iters, error);
	why = code ? NULL : plumb_iters_why_empty(&iters, explains);
	if (why) {
		code = plumb_fail(error, PLUMB_EEMPTY, "%s", why);
		question->remedy = PLUMB_REMEDY_TRACE;
	} else if (!code && explains) {
		code = explain_one(question, &iters, error);
	} else if (!code) {
		code = plumb_iters_write(&iters, question->format, question->out, error);
	}
	plumb_iters_free(&iters);
	return code;
}

int
plumb_answer_iters(struct plumb_question *question, struct plumb_error *error)
{
	return answer(question, false, error);
}

int
plumb_answer_explain(struct plumb_question *question, struct plumb_error *error)
{
	if (!plumb_query_given(question->query, "iteration"))
		return plumb_fail(error, PLUMB_EUSAGE, "the query needs iteration=NUMBER");
	return answer(question, true, error);
}

int
plumb_answer_path(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const struct plumb_path_query wanted = {
		.one = plumb_query_given(q, "track"),
		.track = plumb_query_number(q, "track"),
		.loop = plumb_query_given(q, "loop") ? plumb_query_number(q, "loop") : 0,
		.with_iteration = plumb_query_given(q, "iteration"),
		.iteration = plumb_query_number(q, "iteration"),
		.px = plumb_query_given(q, "px") ? plumb_query_real(q, "px") : 0,
	};

	if (plumb_query_given(q, "loop") && !wanted.loop)
		return plumb_fail(error, PLUMB_EUSAGE, "loops are counted from 1");
	question->remedy = question->profile->spans_count ? NULL : PLUMB_REMEDY_TRACE;
	return plumb_view_path(question->profile, &wanted, question->format, question->out, error);
}

/* Numbers that no profile has become the largest that a query can hold. */
static uint32_t
read_small(const struct plumb_query *q, const char *key)
{
	int64_t number = plumb_query_number(q, key);

	return number < PLUMB_NONE ? (uint32_t)number : PLUMB_NONE - 1;
}

int
plumb_answer_states(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const struct plumb_states_query wanted = {
		.one = plumb_query_given(q, "track"),
		.track = plumb_query_number(q, "track"),
		.loop = plumb_query_given(q, "loop") ? plumb_query_number(q, "loop") : 0,
		.level = read_small(q, "level"),
		.with_history = plumb_query_given(q, "history"),
		.history = plumb_query_given(q, "history") ? read_small(q, "history") : 0,
		.most = read_small(q, "most"),
	};

	if (plumb_query_given(q, "loop") && !wanted.loop)
		return plumb_fail(error, PLUMB_EUSAGE, "loops are counted from 1");
	question->remedy = PLUMB_REMEDY_TRACE;
	return plumb_view_states(question->profile, &wanted, question->format, question->out,
	                         error);
}
