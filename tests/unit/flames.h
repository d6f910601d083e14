/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of flame graphs share: profiles of a few contexts, and the columns of boxes. */
#ifndef PLUMB_TESTS_FLAMES_H
#define PLUMB_TESTS_FLAMES_H

#include "model/builder.h"
#include "view/view.h"

enum { NODE, PARENT, DEPTH, X0, X1, NAME, LAYER, VALUE, SELF, MANY, FLAGS, FRAME, COLUMNS };

struct made {
	struct plumb_builder *b;
	uint32_t track;
};

static inline struct made
begin(void)
{
	struct made m = { .b = plumb_builder_new() };

	m.track = plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                          .process = PLUMB_NONE,
	                                                          .device = PLUMB_NONE,
	                                                          .name = PLUMB_NONE });
	return m;
}

static inline uint32_t
at(struct made *m, uint32_t parent, uint32_t kind, const char *name, const char *file,
   uint32_t flags)
{
	uint32_t frame = plumb_builder_frame(m->b, kind, plumb_builder_text(m->b, name),
	                                     plumb_builder_text(m->b, file), file ? 7 : 0);

	return plumb_builder_context(m->b, parent, frame, flags);
}

static inline void
value(struct made *m, uint32_t context, uint32_t metric, int64_t sum)
{
	assert_int_equal(plumb_builder_value(m->b, &(struct plumb_value){ .context = context,
	                                                                  .metric = metric,
	                                                                  .track = m->track,
	                                                                  .sum = sum,
	                                                                  .count = 1,
	                                                                  .min = sum,
	                                                                  .max = sum,
	                                                                  .mean = (double)sum }),
	                 0);
}

static inline void
end(struct made *m, struct plumb_profile *profile)
{
	struct plumb_error error = { 0 };

	if (plumb_builder_finish(m->b, profile, &error) < 0)
		fail_msg("%s", error.message);
	plumb_builder_free(m->b);
}

#endif
