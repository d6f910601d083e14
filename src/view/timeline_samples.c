/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU samples as spans. A sample says where a thread was at one moment, and for how long it had
 * computed since the sample before. So its frames are drawn for that long. Frames that the next
 * sample has, too, are one span if no time lies between both.
 */
#include <stdlib.h>

#include "view/timeline_private.h"

/* Samples have no time between them if it is a smaller part of one: clocks are no more exact. */
#define APART 0.1

struct sampler {
	struct plumb_lanes *lanes;
	uint32_t *open, *items; /* by depth from 1: a context of the newest sample, and its span */
	uint32_t *path;
	uint32_t depth;
	int64_t end_ns; /* of the newest sample */
};

/* Ends the spans below DEPTH. */
static void
close_below(struct sampler *s, uint32_t depth)
{
	for (uint32_t k = s->depth; k > depth; k--)
		s->lanes->sampled.items[s->items[k]].end_ns = s->end_ns;
	s->depth = depth < s->depth ? depth : s->depth;
}

static bool
add_sample(struct sampler *s, const struct plumb_cpu_sample *sample)
{
	const struct plumb_profile *p = s->lanes->profile;
	int64_t ns = sample->ns > 0 ? sample->ns : 0, start, at = sample->at_ns;
	uint32_t context = sample->context, k = p->contexts[context].depth, depth = k;

	if (__builtin_sub_overflow(at, ns, &start) || !plumb_is_time(start, at) || at < s->end_ns)
		return true;
	if (start < s->end_ns)
		start = s->end_ns;
	if (s->end_ns == INT64_MIN || (double)start - (double)s->end_ns > APART * (double)ns)
		close_below(s, 0);
	else
		start = s->end_ns;
	for (; k && !(k <= s->depth && s->open[k] == context); k--) {
		s->path[k] = context;
		context = p->contexts[context].parent;
	}
	close_below(s, k);
	for (k++; k <= depth; k++) {
		struct plumb_span *span = plumb_vec_add(&s->lanes->sampled);

		if (!span)
			return false;
		*span = (struct plumb_span){ .context = s->path[k],
			                     .track = sample->track,
			                     .start_ns = start,
			                     .end_ns = at };
		s->open[k] = s->path[k];
		s->items[k] = s->lanes->sampled.count - 1;
	}
	s->depth = depth;
	s->end_ns = at;
	return true;
}

int
plumb_lanes_add_samples(struct plumb_lanes *l)
{
	const struct plumb_profile *p = l->profile;
	struct sampler s = { .lanes = l, .end_ns = INT64_MIN };
	size_t room = 2;
	uint32_t i = 0;
	bool ok;

	for (uint32_t c = 0; c < p->contexts_count; c++)
		if (p->contexts[c].depth + (size_t)2 > room)
			room = p->contexts[c].depth + (size_t)2;
	s.open = malloc(room * sizeof *s.open);
	s.items = malloc(room * sizeof *s.items);
	s.path = malloc(room * sizeof *s.path);
	l->sampled_first = calloc(p->tracks_count + (size_t)1, sizeof *l->sampled_first);
	ok = s.open && s.items && s.path && l->sampled_first;
	for (uint32_t t = 0; ok && t < p->tracks_count; t++) {
		l->sampled_first[t] = l->sampled.count;
		for (; ok && i < p->cpu_samples_count && p->cpu_samples[i].track == t; i++)
			ok = add_sample(&s, &p->cpu_samples[i]);
		if (ok)
			close_below(&s, 0);
		s.end_ns = INT64_MIN;
		l->sampled_first[t + 1] = l->sampled.count;
	}
	free(s.open);
	free(s.items);
	free(s.path);
	return ok ? 0 : PLUMB_ESYSTEM;
}
