/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/marks.h"

static bool
add_track(const struct plumb_profile *p, uint32_t track, struct plumb_marks *marks)
{
	uint32_t end = plumb_profile_first_span(p, track + 1);

	for (uint32_t i = plumb_profile_first_span(p, track); i < end; i++) {
		const struct plumb_span *s = &p->spans[i];
		struct plumb_mark *mark;

		if (plumb_context_frame(p, s->context)->kind != PLUMB_FRAME_RANGE)
			continue;
		mark = plumb_vec_add(marks);
		if (!mark)
			return false;
		*mark = (struct plumb_mark){ p->contexts[s->context].frame, s->start_ns,
			                     s->end_ns };
	}
	return true;
}

int
plumb_marks_find(const struct plumb_profile *p, uint32_t process, struct plumb_marks *marks)
{
	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (p->tracks[t].kind == PLUMB_TRACK_THREAD && p->tracks[t].process == process &&
		    !add_track(p, t, marks))
			return PLUMB_ESYSTEM;
	return 0;
}
