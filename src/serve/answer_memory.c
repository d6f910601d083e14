/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time, and who holds it. */
#include "serve/answers.h"
#include "view/memory.h"

static int
answer_table(struct plumb_question *question, enum plumb_memory_table table,
             struct plumb_error *error)
{
	const struct plumb_query *q = question->query;
	const char *by = plumb_query_has(q, "by") ? plumb_query_text(q, "by") : NULL;
	bool one = plumb_query_has(q, "memory") && plumb_query_given(q, "memory");
	int64_t memory = one ? plumb_query_number(q, "memory") : 0;
	int64_t top = plumb_query_has(q, "top") ? plumb_query_number(q, "top") : 0;
	const struct plumb_memory_query wanted = {
		.table = table,
		.one = one,
		.memory = (uint32_t)(memory < PLUMB_NONE ? memory : PLUMB_NONE),
		.by = by ? plumb_group_by_name(by) : PLUMB_BY_DEFAULT,
		.top = (uint32_t)(top < PLUMB_NONE ? top : PLUMB_NONE),
		.user_code = plumb_profile_environment(question->file->whole, "run.user_code"),
	};

	question->remedy = PLUMB_REMEDY_MEMORY;
	return plumb_view_memory(question->file->whole, &wanted, question->format, question->out,
	                         error);
}

int
plumb_answer_memory_devices(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_MEMORY_DEVICES, error);
}

int
plumb_answer_memory_series(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_MEMORY_SERIES, error);
}

int
plumb_answer_memory_holders(struct plumb_question *question, struct plumb_error *error)
{
	return answer_table(question, PLUMB_MEMORY_HOLDERS, error);
}
