/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic between devices. */
#include <string.h>

#include "serve/answers.h"
#include "view/view.h"

/* So many uses and parts of objects, so many moves and instructions of lines, and so many moves of
 * kernels: an answer has a few megabytes at most, whatever the number of devices. */
#define PARTS_MOST 20000

static enum plumb_traffic_by
by_of(const struct plumb_query *query)
{
	static const char *const names[] = {
		[PLUMB_TRAFFIC_BY_PAIR] = "pair",
		[PLUMB_TRAFFIC_BY_OBJECT] = "object",
		[PLUMB_TRAFFIC_BY_LINE] = "line",
		[PLUMB_TRAFFIC_BY_KERNEL] = "kernel",
		[PLUMB_TRAFFIC_BY_COLLECTIVE] = "collective",
		[PLUMB_TRAFFIC_BY_ROUTE] = "route",
	};
	const char *by = plumb_query_text(query, "by");

	for (size_t i = 0; by && i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], by))
			return (enum plumb_traffic_by)i;
	return PLUMB_TRAFFIC_BY_PAIR;
}

int
plumb_answer_traffic(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_profile *p = question->profile;
	int64_t top = plumb_query_number(question->query, "top");
	const struct plumb_traffic_query wanted = {
		.by = by_of(question->query),
		.top = (uint32_t)(top > 0 && top < PLUMB_NONE ? top : 0),
		.parts = PARTS_MOST,
		.user_code = plumb_profile_environment(p, "run.user_code"),
		.demangle = question->answers->demangle,
	};

	question->remedy = PLUMB_REMEDY_TRAFFIC;
	return plumb_view_traffic(p, &wanted, question->format, question->out, error);
}
