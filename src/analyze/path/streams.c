/* SPDX-License-Identifier: Apache-2.0 */
/* GPU work: after its driver call, and after the work before it on its stream. */
#include <stdlib.h>

#include "analyze/path/path_private.h"
#include "base/runs.h"
#include "base/sort.h"

/* ---- the order of a stream ---- */

/* A work comes after the one of its stream that was over last when it began. Works of one stream
 * may run at once (nodes of a graph). */
static bool
order_stream(struct plumb_path *path, uint32_t from, uint32_t to)
{
	struct plumb_path_node *nodes = path->nodes;
	struct plumb_sort_item *ends = malloc(2 * (size_t)(to - from) * sizeof *ends);
	uint32_t next = 0, count = 0;

	if (!ends)
		return false;
	for (uint32_t i = from, last = PLUMB_NONE; i < to; i++) {
		if (nodes[plumb_path_begin(i)].flags & PLUMB_PATH_LEFT_OUT)
			continue;
		/* Two that only touch, by rounding. */
		if (last != PLUMB_NONE) {
			int64_t over =
				nodes[plumb_path_end(last)].at - nodes[plumb_path_begin(i)].at;

			if (over > 0 && over <= PLUMB_PATH_ROUNDING_NS &&
			    nodes[plumb_path_begin(last)].at < nodes[plumb_path_begin(i)].at)
				nodes[plumb_path_end(last)].at = nodes[plumb_path_begin(i)].at;
		}
		last = i;
	}
	for (uint32_t i = from; i < to; i++)
		if (!(nodes[plumb_path_begin(i)].flags & PLUMB_PATH_LEFT_OUT))
			ends[count++] = (struct plumb_sort_item){
				plumb_sort_signed(nodes[plumb_path_end(i)].at), i
			};
	plumb_sort(ends, ends + count, count);
	for (uint32_t i = from; i < to; i++) {
		uint32_t begin = plumb_path_begin(i), end = plumb_path_end(i);

		if (nodes[begin].flags & PLUMB_PATH_LEFT_OUT)
			continue;
		while (next < count && ends[next].key <= plumb_sort_signed(nodes[begin].at) &&
		       ends[next].index < i)
			next++;
		nodes[begin].before = next ? plumb_path_end(ends[next - 1].index) : PLUMB_NONE;
		nodes[begin].owner = i;
		nodes[end].before = begin;
		nodes[end].owner = i;
	}
	free(ends);
	return true;
}

/* ---- calls ---- */

/* The call that started the work, if that began before it; a negative delay is a clock's. */
static int64_t
find_launch(struct plumb_path *path, uint32_t work)
{
	const struct plumb_span *span = &path->profile->spans[work];
	uint32_t call = plumb_path_call(path, plumb_path_process(path, work), span->correlation);

	if (call == PLUMB_NONE)
		return -1;
	int64_t delay =
		path->nodes[plumb_path_begin(work)].at - path->nodes[plumb_path_begin(call)].at;
	if (delay < 0) {
		path->facts.impossible++;
		return -1;
	}
	path->launch[work] = call;
	path->facts.launches++;
	return delay;
}

/* No work of the stream began sooner after its call than LEAST: that long a launch takes. */
static bool
launch_stream(struct plumb_path *path, uint32_t from, uint32_t to)
{
	int64_t least = INT64_MAX, latest = INT64_MIN;

	for (uint32_t i = from; i < to; i++) {
		bool sound = !(path->nodes[plumb_path_begin(i)].flags & PLUMB_PATH_LEFT_OUT);
		int64_t delay = sound ? find_launch(path, i) : -1;

		if (delay >= 0 && delay < least)
			least = delay;
		if (path->launch[i] != PLUMB_NONE) {
			int64_t at = path->nodes[plumb_path_begin(path->launch[i])].at;

			latest = at > latest ? at : latest;
		}
		path->submitted[i] = latest;
	}
	for (uint32_t i = from; i < to; i++)
		if (path->launch[i] != PLUMB_NONE &&
		    !plumb_path_edge(path, plumb_path_begin(path->launch[i]), plumb_path_begin(i),
		                     PLUMB_PATH_BY_LAUNCH, least, i))
			return false;
	return true;
}

/* ---- what was over when ---- */

static struct plumb_path_place *
place_of(struct plumb_path *path, uint32_t process, uint32_t device)
{
	struct plumb_path_place *added;

	for (uint32_t i = 0; i < path->places.count; i++)
		if (path->places.items[i].process == process &&
		    path->places.items[i].device == device)
			return &path->places.items[i];
	added = plumb_vec_add(&path->places);
	if (added)
		*added = (struct plumb_path_place){ process, device, NULL, 0, 0 };
	return added;
}

static bool
ends_later(const void *x, const void *y, const void *data)
{
	(void)data;
	return ((const struct plumb_path_done *)x)->at > ((const struct plumb_path_done *)y)->at;
}

static bool
count_done(struct plumb_path *path, bool fill)
{
	const struct plumb_profile *p = path->profile;

	for (uint32_t t = 0; t < p->tracks_count; t++) {
		const struct plumb_track *track = &p->tracks[t];
		struct plumb_path_place *place;

		if (track->kind != PLUMB_TRACK_STREAM ||
		    path->first_span[t] == path->first_span[t + 1])
			continue;
		place = place_of(path, track->process, track->device);
		if (!place)
			return false;
		place->streams += !fill;
		for (uint32_t i = path->first_span[t]; i < path->first_span[t + 1]; i++) {
			const struct plumb_path_node *end = &path->nodes[plumb_path_end(i)];

			if (end->flags & PLUMB_PATH_LEFT_OUT)
				continue;
			if (fill)
				place->done[place->count] = (struct plumb_path_done){ end->at, i };
			place->count++;
		}
	}
	return true;
}

static bool
find_done(struct plumb_path *path)
{
	if (!count_done(path, false))
		return false;
	for (uint32_t i = 0; i < path->places.count; i++) {
		struct plumb_path_place *place = &path->places.items[i];

		place->done = malloc(((size_t)place->count + 1) * sizeof *place->done);
		if (!place->done)
			return false;
		place->count = 0;
	}
	count_done(path, true);
	for (uint32_t i = 0; i < path->places.count; i++)
		if (plumb_runs_sort(path->places.items[i].done, path->places.items[i].count,
		                    sizeof *path->places.items[i].done, ends_later, NULL) < 0)
			return false;
	return true;
}

bool
plumb_path_streams(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;

	for (uint32_t t = 0; t < p->tracks_count; t++) {
		uint32_t from = path->first_span[t], to = path->first_span[t + 1];

		if (p->tracks[t].kind == PLUMB_TRACK_STREAM && from < to &&
		    (!order_stream(path, from, to) || !launch_stream(path, from, to)))
			return false;
	}
	return find_done(path);
}
