/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/marks.h"

int
plumb_marks_add(const struct plumb_profile *p, uint32_t first, uint32_t end,
                struct plumb_marks *marks)
{
	for (uint32_t i = first; i < end; i++) {
		const struct plumb_span *s = &p->spans[i];
		struct plumb_mark *mark;

		if (plumb_context_frame(p, s->context)->kind != PLUMB_FRAME_RANGE)
			continue;
		mark = plumb_vec_add(marks);
		if (!mark)
			return PLUMB_ESYSTEM;
		*mark = (struct plumb_mark){ p->contexts[s->context].frame, s->start_ns,
			                     s->end_ns };
	}
	return 0;
}
