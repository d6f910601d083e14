/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answers.h"

int
plumb_answer_ranks(struct plumb_question *question, struct plumb_error *error)
{
	int64_t top = plumb_query_number(question->query, "top");

	question->remedy = PLUMB_REMEDY_RANKS;
	return plumb_view_ranks(question->profile, (uint32_t)(top < PLUMB_NONE ? top : 0),
	                        question->format, question->out, error);
}
