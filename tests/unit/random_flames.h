/* SPDX-License-Identifier: Apache-2.0 */
/* Random profiles for tests of flame graphs, and the paths of their contexts in each view. */
#ifndef PLUMB_TESTS_RANDOM_FLAMES_H
#define PLUMB_TESTS_RANDOM_FLAMES_H

#include "flames.h"

#define STEPS 64 /* of a path */
#define NAMES 7

struct step {
	uint32_t frame;
	bool back;
};

/* The path of CONTEXT as QUERY shows it, outermost first. */
static inline uint32_t
path_of(const struct plumb_profile *p, const struct plumb_flame_query *q, uint32_t context,
        struct step *path)
{
	struct step all[STEPS];
	uint32_t count = 0, length = 0;
	bool backward = false;
	bool marked = q->view == PLUMB_FLAME_DOWN && !q->collapse;

	for (uint32_t c = context; c; c = p->contexts[c].parent) {
		all[count++] =
			(struct step){ p->contexts[c].frame, marked && p->contexts[c].flags };
		backward |= p->contexts[c].flags != 0;
	}
	if (q->apart)
		path[length++] = (struct step){ backward ? UINT32_MAX : UINT32_MAX - 1, false };
	while (count--) {
		uint32_t kind = p->frames[all[count].frame].kind, same = length;

		if (q->hidden >> plumb_flame_layer_of(kind) & 1)
			continue;
		for (uint32_t i = 0; q->collapse && i < length; i++)
			if (path[i].frame == all[count].frame)
				same = i;
		path[same] = all[count];
		length = same + 1;
	}
	return length;
}

/* The same as the view has it. */
static inline uint32_t
turn_path(const struct plumb_flame_query *q, struct step *path, uint32_t length)
{
	uint32_t first = 0;

	if (q->view == PLUMB_FLAME_CALLERS || q->view == PLUMB_FLAME_CALLEES) {
		while (first < length && path[first].frame != q->of)
			first++;
		if (first == length)
			return PLUMB_NONE;
	}
	if (q->view == PLUMB_FLAME_CALLEES) {
		memmove(path, path + first, (length - first) * sizeof *path);
		return length - first;
	}
	if (q->view == PLUMB_FLAME_CALLERS)
		length = first + 1;
	for (uint32_t i = 0; i < length / 2 && q->view >= PLUMB_FLAME_UP; i++) {
		struct step swap = path[i];
		path[i] = path[length - 1 - i];
		path[length - 1 - i] = swap;
	}
	return length;
}

/* A tree of random frames. What backward work does has the flag, too, but for kernels. NEGATIVE:
 * some values are. */
static inline void
make_random(struct plumb_profile *p, bool negative)
{
	static const uint32_t kinds[NAMES] = { PLUMB_FRAME_PYTHON,   PLUMB_FRAME_PYTHON,
		                               PLUMB_FRAME_OPERATOR, PLUMB_FRAME_OPERATOR,
		                               PLUMB_FRAME_NATIVE,   PLUMB_FRAME_KERNEL,
		                               PLUMB_FRAME_RANGE };
	struct made m = begin();
	uint32_t contexts[80] = { 0 }, depths[80] = { 0 }, count = 1;
	bool backs[80] = { false };

	for (uint32_t size = 2 + (uint32_t)rand() % 78; count < size; count++) {
		uint32_t above = rand() % 2 ? count - 1 : (uint32_t)rand() % count;
		uint32_t name = (uint32_t)rand() % NAMES;
		char text[8];

		above = depths[above] > 30 ? 0 : above;
		snprintf(text, sizeof text, "f%u", name);
		backs[count] = backs[above] || rand() % 8 == 0;
		depths[count] = depths[above] + 1;
		contexts[count] = at(&m, contexts[above], kinds[name], text, NULL,
		                     backs[count] && kinds[name] != PLUMB_FRAME_KERNEL
		                             ? PLUMB_CONTEXT_BACKWARD
		                             : 0);
		if (rand() % 3)
			value(&m, contexts[count], PLUMB_METRIC_OP_TIME,
			      rand() % 100 - (negative ? 50 : 0));
	}
	if (rand() % 2)
		value(&m, 0, PLUMB_METRIC_OP_TIME, 13);
	value(&m, contexts[1], PLUMB_METRIC_GPU_TIME, 5);
	end(&m, p);
}

#endif
