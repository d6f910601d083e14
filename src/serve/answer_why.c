/* SPDX-License-Identifier: Apache-2.0 */
/* Why kernels wait. What is found out of a kernel is kept, for pages ask about one kernel many
 * times. */
#include <inttypes.h>
#include <stdlib.h>

#include "serve/answers.h"
#include "view/why_code.h"

#define COUNT_MOST INT64_C(0xfffffffe)

/* ---- those that are kept ---- */

static void
forget(struct plumb_kept_why *kept)
{
	if (kept->used)
		plumb_why_free(&kept->why);
	kept->used = 0;
}

static void
keep(struct plumb_answers *answers, const struct plumb_why *why)
{
	struct plumb_kept_why *place = answers->whys;

	for (int i = 1; i < PLUMB_SERVED_WHYS; i++)
		if (answers->whys[i].used < place->used)
			place = &answers->whys[i];
	forget(place);
	*place = (struct plumb_kept_why){ *why, answers->questions };
}

static const struct plumb_why *
kept_of(struct plumb_answers *answers, const struct plumb_profile *profile, uint32_t kernel)
{
	for (int i = 0; i < PLUMB_SERVED_WHYS; i++) {
		struct plumb_kept_why *kept = &answers->whys[i];

		if (kept->used && kept->why.profile == profile &&
		    kept->why.query.number == kernel) {
			kept->used = answers->questions;
			return &kept->why;
		}
	}
	return NULL;
}

/* ---- finding out ---- */

/* What came out of it. */
struct made {
	struct plumb_why why;
	struct plumb_error error;
	int code;
};

static void *
make_why(const void *data)
{
	const struct plumb_answers *answers = data;
	const struct plumb_why_query wanted = {
		.one = true,
		.number = answers->sliced,
		.demangle = answers->demangle,
	};
	struct made *made = calloc(1, sizeof *made);

	if (made)
		made->code =
			plumb_why_make(answers->sliced_from, &wanted, &made->why, &made->error);
	return made;
}

/* Keeps what the job found out. Returns the error of its kernel. */
static int
take(struct plumb_answers *answers, struct made *made, struct plumb_error *error)
{
	int code = made ? made->code : plumb_fail_memory(error, "for the stalls");

	if (made && code)
		*error = made->error;
	else if (made)
		keep(answers, &made->why);
	free(made);
	return code;
}

void
plumb_whys_forget(struct plumb_answers *answers)
{
	struct plumb_error unread;

	if (answers->slicing)
		take(answers, plumb_job_end(answers->slicing), &unread);
	answers->slicing = NULL;
	for (int i = 0; i < PLUMB_SERVED_WHYS; i++)
		forget(&answers->whys[i]);
	plumb_sources_free(answers->sources);
	answers->sources = NULL;
}

static uint32_t
number_of(const struct plumb_question *question, const char *key)
{
	int64_t number = plumb_query_number(question->query, key);

	return (uint32_t)(number < 0 ? 0 : number < COUNT_MOST ? number : COUNT_MOST);
}

/* Looks at a kernel beside other questions: a large one takes seconds. Sets `later` of the question
 * until it is done. */
static int
make_beside(struct plumb_question *question, uint32_t kernel, struct plumb_error *error)
{
	struct plumb_answers *answers = question->answers;
	bool mine;
	int code;

	if (answers->slicing) {
		question->later = !plumb_job_is_done(answers->slicing);
		if (question->later)
			return 0;
		mine = answers->sliced_from == question->profile && answers->sliced == kernel;
		code = take(answers, plumb_job_end(answers->slicing), error);
		answers->slicing = NULL;
		if (mine)
			return code;
	}
	answers->sliced_from = question->profile;
	answers->sliced = kernel;
	if (answers->wake >= 0)
		answers->slicing = plumb_job_start(make_why, answers, answers->wake);
	question->later = answers->slicing != NULL;
	return question->later ? 0 : take(answers, make_why(answers), error);
}

/* The kernel that the query names. NULL with ERROR filled, or with `later` of the question set; its
 * code is 0 then. */
static const struct plumb_why *
find_why(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_profile *p = question->profile;
	uint32_t kernel = number_of(question, "kernel");
	const struct plumb_why *why = kept_of(question->answers, p, kernel);
	int code = why ? 0 : make_beside(question, kernel, error);

	if (!why && !code)
		why = kept_of(question->answers, p, kernel);
	error->code = code;
	question->remedy = PLUMB_REMEDY_STALLS;
	if (code == PLUMB_EEMPTY && (p->code_samples_count || p->code_functions_count))
		plumb_fail(error, PLUMB_EUSAGE, "there is no kernel %" PRIu32, kernel);
	return why;
}

/* ---- the answers ---- */

int
plumb_answer_why_kernels(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_why_query wanted = { .demangle = question->answers->demangle };

	if (!question->profile->code_samples_count && !question->profile->code_functions_count) {
		question->remedy = PLUMB_REMEDY_STALLS;
		return plumb_fail(error, PLUMB_EEMPTY, "the profile has no samples of GPU code");
	}
	return plumb_view_why_kernels(question->profile, &wanted, question->format, question->out,
	                              error);
}

/* Of the kernel's stalls only those at the instruction NUMBER. Returns how many there are. */
static uint32_t
choose_stalls(const struct plumb_why_kernel *k, uint32_t number, struct plumb_why_stall *chosen)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < k->stall_count; i++)
		if (k->stalls[i].insn != PLUMB_NONE &&
		    plumb_why_number(&k->code, k->stalls[i].function, k->stalls[i].insn) == number)
			chosen[count++] = k->stalls[i];
	return count;
}

int
plumb_answer_why(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_why *why = find_why(question, error);
	uint32_t top = number_of(question, "top"), count;
	struct plumb_why_stall *chosen = NULL;
	struct plumb_why_kernel kernel;
	struct plumb_why shown;
	int code;

	if (!why)
		return error->code;
	shown = *why;
	kernel = why->kernels[0];
	shown.kernels = &kernel;
	count = kernel.stall_count;
	if (plumb_query_given(question->query, "number")) {
		chosen = calloc(count + 1u, sizeof *chosen);
		if (!chosen)
			return plumb_fail_memory(error, "for the stalls");
		kernel.stalls = chosen;
		kernel.stall_count =
			choose_stalls(&why->kernels[0], number_of(question, "number"), chosen);
	} else if (top && top < count) {
		kernel.stall_count = top;
	}
	kernel.stalls_left = count - kernel.stall_count;
	code = plumb_why_write(&shown, question->format, question->out, error);
	free(chosen);
	return code;
}

int
plumb_answer_why_code(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_why *why = find_why(question, error);
	const struct plumb_why_range range = {
		.first = number_of(question, "first"),
		.count = number_of(question, "count"),
		.hot = plumb_query_flag(question->query, "hot"),
		.around = !plumb_query_given(question->query, "first"),
	};

	return why ? plumb_why_code_write(why->kernels, &range, question->format, question->out,
	                                  error)
	           : error->code;
}

static const char *
read_line(void *data, const char *file, uint32_t line)
{
	return plumb_source_line(data, file, line);
}

static uint32_t
count_lines(void *data, const char *file)
{
	return plumb_source_count(data, file);
}

int
plumb_answer_why_source(struct plumb_question *question, struct plumb_error *error)
{
	struct plumb_answers *answers = question->answers;
	const struct plumb_why *why = find_why(question, error);
	const struct plumb_why_range range = {
		.first = number_of(question, "first"),
		.count = number_of(question, "count"),
		.around = !plumb_query_given(question->query, "first"),
		.near = plumb_query_flag(question->query, "near"),
	};
	struct plumb_why_reader reader = { read_line, count_lines, NULL };

	if (!why)
		return error->code;
	if (!answers->sources)
		answers->sources = plumb_sources_new();
	reader.data = answers->sources;
	if (!plumb_query_given(question->query, "source"))
		return plumb_why_files_write(why->kernels, &reader, question->format, question->out,
		                             error);
	return plumb_why_source_write(why->kernels, number_of(question, "source"), &range, &reader,
	                              question->format, question->out, error);
}
