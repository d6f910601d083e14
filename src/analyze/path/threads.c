/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did: begins and ends of spans one after another, and whose time lies between. */
#include <stdlib.h>

#include "analyze/path/path_private.h"

struct thread {
	struct plumb_path *path;
	PLUMB_VEC(uint32_t) open; /* spans, the innermost last */
	uint32_t last;            /* node */
};

static void
pass_node(struct thread *thread, uint32_t node)
{
	struct plumb_path *path = thread->path;

	path->nodes[node].before = thread->last;
	path->nodes[node].owner =
		thread->open.count ? thread->open.items[thread->open.count - 1] : PLUMB_NONE;
	thread->last = node;
}

static void
close_until(struct thread *thread, int64_t at)
{
	struct plumb_path_node *nodes = thread->path->nodes;

	while (thread->open.count) {
		uint32_t end = plumb_path_end(thread->open.items[thread->open.count - 1]);

		if (nodes[end].at > at)
			break;
		pass_node(thread, end);
		thread->open.count--;
	}
}

static bool
open_span(struct thread *thread, uint32_t span)
{
	struct plumb_path_node *nodes = thread->path->nodes;
	uint32_t *top = thread->open.count ? &thread->open.items[thread->open.count - 1] : NULL;
	uint32_t end = plumb_path_end(span);

	/* It cannot outlast what it is in: two clocks, or rounding. */
	if (top && nodes[plumb_path_end(*top)].at < nodes[end].at)
		nodes[end].at = nodes[plumb_path_end(*top)].at;
	pass_node(thread, plumb_path_begin(span));
	top = plumb_vec_add(&thread->open);
	if (top)
		*top = span;
	return top != NULL;
}

bool
plumb_path_threads(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;
	struct thread thread = { .path = path };
	bool done = true;

	for (uint32_t t = 0; done && t < p->tracks_count; t++) {
		thread.last = path->last_node[t] = PLUMB_NONE;
		if (p->tracks[t].kind == PLUMB_TRACK_STREAM)
			continue;
		for (uint32_t i = path->first_span[t]; done && i < path->first_span[t + 1]; i++) {
			if (path->nodes[plumb_path_begin(i)].flags & PLUMB_PATH_LEFT_OUT)
				continue;
			close_until(&thread, p->spans[i].start_ns);
			done = open_span(&thread, i);
		}
		close_until(&thread, INT64_MAX);
		path->last_node[t] = thread.last;
	}
	plumb_vec_free(&thread.open);
	return done;
}
