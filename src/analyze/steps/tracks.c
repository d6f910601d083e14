/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/tracks.h"

static uint32_t
group_of(const struct plumb_track_groups *groups, uint32_t group)
{
	return group < groups->count ? group : groups->count;
}

/* Streams by device, or all tracks by process. */
static bool
make_groups(const struct plumb_profile *p, bool by_device, struct plumb_track_groups *groups)
{
	groups->count = by_device ? p->devices_count : p->processes_count;
	groups->at = calloc((size_t)groups->count + 3, sizeof *groups->at);
	groups->items = malloc(((size_t)p->tracks_count + 1) * sizeof *groups->items);
	if (!groups->at || !groups->items)
		return false;
	/* Counted two places on, so that what is filled in ends where the next one begins. */
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t t = 0; t < p->tracks_count; t++) {
			const struct plumb_track *track = &p->tracks[t];
			uint32_t group =
				group_of(groups, by_device ? track->device : track->process);

			if (by_device && track->kind != PLUMB_TRACK_STREAM)
				continue;
			if (fill)
				groups->items[groups->at[group + 1]++] = t;
			else
				groups->at[group + 2]++;
		}
		for (uint32_t g = 0; !fill && g <= groups->count; g++)
			groups->at[g + 2] += groups->at[g + 1];
	}
	return true;
}

int
plumb_track_index_new(const struct plumb_profile *p, struct plumb_track_index *index)
{
	uint32_t track = 0;

	*index = (struct plumb_track_index){ .profile = p };
	index->first_span = malloc(((size_t)p->tracks_count + 2) * sizeof *index->first_span);
	if (!index->first_span || !make_groups(p, true, &index->streams) ||
	    !make_groups(p, false, &index->of_process))
		return PLUMB_ESYSTEM;
	for (; track <= p->tracks_count; track++)
		index->first_span[track] = plumb_profile_first_span(p, track);
	return 0;
}

void
plumb_track_index_free(struct plumb_track_index *index)
{
	free(index->first_span);
	free(index->streams.at);
	free(index->streams.items);
	free(index->of_process.at);
	free(index->of_process.items);
	plumb_vec_free(&index->launches);
	plumb_marks_free(&index->marks);
	*index = (struct plumb_track_index){ 0 };
}

const uint32_t *
plumb_track_group(const struct plumb_track_groups *groups, uint32_t group, uint32_t *count)
{
	uint32_t g = group_of(groups, group);

	*count = groups->at[g + 1] - groups->at[g];
	return &groups->items[groups->at[g]];
}

struct plumb_launches *
plumb_track_index_launches(struct plumb_track_index *index)
{
	if (!index->have_launches &&
	    plumb_launches_find(index->profile, PLUMB_NONE, &index->launches) < 0)
		return NULL;
	index->have_launches = true;
	return &index->launches;
}

const struct plumb_marks *
plumb_track_index_marks(struct plumb_track_index *index, uint32_t process)
{
	uint32_t count;
	const struct plumb_track *all = index->profile->tracks;
	const uint32_t *tracks = plumb_track_group(&index->of_process, process, &count);

	if (index->have_marks && index->marks_of == process)
		return &index->marks;
	index->marks.count = index->marks.groups.count = 0;
	index->marks_of = process;
	index->have_marks = true;
	for (uint32_t i = 0; i < count; i++)
		if (all[tracks[i]].kind == PLUMB_TRACK_THREAD &&
		    all[tracks[i]].process == process &&
		    plumb_marks_add(index->profile, index->first_span[tracks[i]],
		                    index->first_span[tracks[i] + 1], &index->marks) < 0)
			index->have_marks = false;
	if (index->have_marks && plumb_marks_group(index->profile, process, &index->marks) < 0)
		index->have_marks = false;
	return index->have_marks ? &index->marks : NULL;
}
