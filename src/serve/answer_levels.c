/* SPDX-License-Identifier: Apache-2.0 */
/* What looking costs, level by level. */
#include "serve/answers.h"
#include "view/view.h"

int
plumb_answer_levels(struct plumb_question *question, struct plumb_error *error)
{
	enum { SHOWN, LEVEL, LAYER, GPU, ALL };
	static const enum plumb_levels_rows rows[] = {
		[SHOWN] = PLUMB_LEVELS_SHOWN,  [LEVEL] = PLUMB_LEVELS_SHOWN,
		[LAYER] = PLUMB_LEVELS_LAYERS, [GPU] = PLUMB_LEVELS_KERNELS,
		[ALL] = PLUMB_LEVELS_ALL,
	};
	uint32_t by = plumb_query_choice(question->query, "by");
	int64_t top = plumb_query_number(question->query, "top");
	const struct plumb_levels_query wanted = {
		.verb = "levels",
		.which = rows[by],
		.top = (uint32_t)(top > 0 && top < PLUMB_NONE ? top : 0),
		.measured = by == LEVEL,
	};

	question->remedy = PLUMB_REMEDY_LEVELS;
	return plumb_view_levels(question->profile, &wanted, question->format, question->out,
	                         error);
}
