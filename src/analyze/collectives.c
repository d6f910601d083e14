/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/collectives.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/search.h"
#include "model/collective.h"

#define TOGETHER_NS 20000 /* that far apart ends may lie, or a quarter of the shortest */
#define CLOCKS_NS 1000000 /* at most, by each clock */
#define RANKS_MOST 512

int64_t
plumb_collectives_apart(const struct plumb_collectives *found, int64_t shortest)
{
	return found->clocks_ns + (shortest / 4 > TOGETHER_NS ? shortest / 4 : TOGETHER_NS);
}

/* How far the clocks of two processes may be off: the two greatest residuals. 0 if all ranks are on
 * one host. */
static int64_t
clocks_of(const struct plumb_profile *p, const struct plumb_collectives *found)
{
	unsigned char *is = calloc((size_t)p->processes_count + 1, 1);
	int64_t most[2] = { 0, 0 };
	uint32_t host = PLUMB_NONE;
	bool several = false;

	for (uint32_t t = 0; is && t < p->tracks_count; t++) {
		uint32_t process = p->tracks[t].process;

		if (found->rank_of[t] == PLUMB_NONE || process >= p->processes_count)
			continue;
		is[process] = 1;
		several |= host != PLUMB_NONE && host != p->processes[process].host;
		host = p->processes[process].host;
	}
	for (uint32_t i = 0; is && several && i < p->clocks_count; i++) {
		const struct plumb_clock *clock = &p->clocks[i];

		if (clock->process >= p->processes_count || !is[clock->process] ||
		    clock->device != PLUMB_NONE || clock->residual_ns <= most[1])
			continue;
		most[1] = clock->residual_ns;
		if (most[1] > most[0]) {
			most[1] = most[0];
			most[0] = clock->residual_ns;
		}
	}
	free(is);
	/* Clocks that are off by more say nothing of what ends together. */
	most[0] = most[0] < CLOCKS_NS ? most[0] : CLOCKS_NS;
	most[1] = most[1] < CLOCKS_NS ? most[1] : CLOCKS_NS;
	return !is ? -1 : most[0] + most[1];
}

/* ---- which spans are collectives ---- */

unsigned char *
plumb_collective_contexts(const struct plumb_profile *p)
{
	unsigned char *is = calloc((size_t)p->contexts_count + 1, 1);

	for (uint32_t c = 0; is && c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);
		const char *name = plumb_text(p, frame->name);
		uint32_t parent = p->contexts[c].parent;

		is[c] = frame->kind == PLUMB_FRAME_COLLECTIVE ||
		        (parent != PLUMB_NONE && is[parent]) ||
		        (frame->kind == PLUMB_FRAME_KERNEL && name && plumb_collective_name(name));
		if (frame->kind == PLUMB_FRAME_COPY || frame->kind == PLUMB_FRAME_SET)
			is[c] = 0;
	}
	return is;
}

/* A number for the device and process of each stream that has spans, malloced, by track; *COUNT of
 * them. */
static uint32_t *
find_ranks(const struct plumb_gpu_work *work, uint32_t *count)
{
	const struct plumb_profile *p = work->profile;
	uint32_t *ranks = malloc(((size_t)p->tracks_count + 1) * sizeof *ranks);
	struct plumb_map map = { 0 };
	bool done = ranks;

	*count = 0;
	for (uint32_t t = 0; done && t < p->tracks_count; t++) {
		const struct plumb_track *track = &p->tracks[t];
		uint64_t hash = plumb_hash_mix(plumb_hash_mix(track->process, 0), track->device);
		struct plumb_map_cursor at;
		uint32_t same;

		ranks[t] = PLUMB_NONE;
		if (track->kind != PLUMB_TRACK_STREAM || work->first[t] == work->first[t + 1])
			continue;
		for (same = plumb_map_first(&map, hash, &at); same != PLUMB_MAP_NONE;
		     same = plumb_map_next(&map, &at))
			if (p->tracks[same].process == track->process &&
			    p->tracks[same].device == track->device)
				break;
		ranks[t] = same == PLUMB_MAP_NONE ? (*count)++ : ranks[same];
		done = same != PLUMB_MAP_NONE || !plumb_map_add(&map, hash, t);
	}
	plumb_map_free(&map);
	if (done)
		return ranks;
	free(ranks);
	return NULL;
}

static bool
add_track(const struct plumb_gpu_work *work, uint32_t track, uint32_t rank, const unsigned char *is,
          struct plumb_collectives *found)
{
	const struct plumb_profile *p = work->profile;

	for (uint32_t i = work->first[track]; i < work->first[track + 1]; i++) {
		const struct plumb_span *span = &work->spans[i];
		struct plumb_collective_member *m;

		if (!is[span->context] || !plumb_is_time(span->start_ns, span->end_ns))
			continue;
		m = plumb_vec_add(&found->members);
		if (!m)
			return false;
		*m = (struct plumb_collective_member){
			.start_ns = span->start_ns,
			.end_ns = span->end_ns,
			.sequence = PLUMB_UNKNOWN,
			.span = i,
			.track = track,
			.name = plumb_context_frame(p, span->context)->name,
			.group = PLUMB_NONE,
			.row = PLUMB_NONE,
			.size = UINT32_MAX,
			.rank = rank,
			.set = PLUMB_NONE,
			.among = PLUMB_NONE,
		};
	}
	return true;
}

/* ---- groups ---- */

static int
by_place(const void *x, const void *y)
{
	const struct plumb_collective *a = *(const struct plumb_collective *const *)x;
	const struct plumb_collective *b = *(const struct plumb_collective *const *)y;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a > b) - (a < b); /* one kernel may run several operations */
}

static int
by_group(const void *x, const void *y)
{
	const struct plumb_collective *a = *(const struct plumb_collective *const *)x;
	const struct plumb_collective *b = *(const struct plumb_collective *const *)y;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->ranks != b->ranks)
		return a->ranks < b->ranks ? -1 : 1;
	return by_place(x, y);
}

/* The operation of CONTEXT, as a collective's frame around the kernel says it. */
static uint32_t
operation_of(const struct plumb_profile *p, uint32_t context)
{
	uint32_t parent = p->contexts[context].parent;

	if (parent != PLUMB_NONE && plumb_context_frame(p, parent)->kind == PLUMB_FRAME_COLLECTIVE)
		context = parent;
	return plumb_context_frame(p, context)->name;
}

/* Do ranks send to each other in the operation NAME? */
static bool
is_pair(const struct plumb_profile *p, uint32_t string)
{
	const char *name = plumb_text(p, string);
	const char *operation = name ? plumb_collective_name(name) : NULL;

	operation = operation ? operation : name;
	return operation && !strcmp(operation, "SendRecv");
}

/* What the recording says of members, which are in the order of spans. ROWS, of the profile's, is
 * room. */
static void
take_groups(const struct plumb_gpu_work *work, struct plumb_collectives *found,
            const struct plumb_collective **rows, uint32_t *groups)
{
	const struct plumb_profile *p = work->profile;
	uint32_t count = p->collectives_count, group = 0;

	for (uint32_t i = 0; i < count; i++)
		rows[i] = &p->collectives[i];
	qsort(rows, count, sizeof *rows, by_group);
	for (uint32_t i = 0; i < count; i++) {
		group += i && (rows[i]->group != rows[i - 1]->group ||
		               rows[i]->ranks != rows[i - 1]->ranks);
		groups[rows[i] - p->collectives] = group;
	}
	qsort(rows, count, sizeof *rows, by_place);
	for (uint32_t i = 0, at = 0; i < found->members.count; i++) {
		struct plumb_collective_member *m = &found->members.items[i];
		uint32_t track = m->track;

		while (at < count &&
		       (rows[at]->track < track ||
		        (rows[at]->track == track && rows[at]->start_ns < m->start_ns)))
			at++;
		if (at == count || rows[at]->track != track || rows[at]->start_ns != m->start_ns)
			continue;
		m->row = (uint32_t)(rows[at] - p->collectives);
		if (rows[at]->group != PLUMB_NONE || rows[at]->ranks != PLUMB_NONE)
			m->group = groups[m->row];
		m->name = operation_of(p, work->spans[m->span].context);
		/* Those of a library that told of them are of one direction between two ranks. */
		m->sequence = rows[at]->operation != PLUMB_NONE && is_pair(p, m->name)
		                      ? PLUMB_UNKNOWN
		                      : rows[at]->sequence;
		if (rows[at]->size > 0 && rows[at]->size < UINT32_MAX)
			m->size = (uint32_t)rows[at]->size;
	}
}

/* ---- rule 1 ---- */

static int
by_sequence(const void *x, const void *y)
{
	const struct plumb_collective_member *a = x, *b = y;

	if (a->among != b->among)
		return a->among < b->among ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* One operation may be several kernels on each rank: the K-th ones are a set. COUNT members of one
 * number. */
static bool
take_number(struct plumb_collectives *found, struct plumb_collective_member *members,
            uint32_t count)
{
	uint32_t first = found->sets.count, before = 0;

	for (uint32_t i = 0; i < count; i++) {
		before = i && members[i].rank == members[i - 1].rank ? before + 1 : 0;
		if (before == found->sets.count - first) {
			struct plumb_collective_set *added = plumb_vec_add(&found->sets);

			if (!added)
				return false;
			*added = (struct plumb_collective_set){ 0, 0, PLUMB_COLLECTIVES_BY_SEQUENCE,
				                                0 };
		}
		members[i].set = first + before;
		found->sets.items[first + before].count++;
	}
	/* The last ones, which one rank alone has, are none. */
	while (found->sets.count > first && found->sets.items[found->sets.count - 1].count < 2)
		found->sets.count--;
	for (uint32_t i = 0; i < count; i++)
		if (members[i].set >= found->sets.count)
			members[i].set = PLUMB_NONE;
	return true;
}

static bool
match_sequences(const struct plumb_profile *p, struct plumb_collectives *found)
{
	struct plumb_collective_member *m = found->members.items;
	uint32_t count = found->members.count;

	for (uint32_t i = 0; i < count; i++) {
		bool pairs = is_pair(p, m[i].name) && m[i].size != 2;

		m[i].among = m[i].sequence == PLUMB_UNKNOWN || pairs ? PLUMB_NONE : m[i].group;
	}
	qsort(m, count, sizeof *m, by_sequence);
	for (uint32_t i = 0, n; i < count && m[i].among != PLUMB_NONE; i += n) {
		for (n = 1; i + n < count && m[i + n].among == m[i].among &&
		            m[i + n].sequence == m[i].sequence && m[i + n].name == m[i].name;
		     n++)
			;
		if (!take_number(found, &m[i], n))
			return false;
	}
	return true;
}

/* ---- rules 2 to 4 ---- */

static int
by_end(const void *x, const void *y)
{
	const struct plumb_collective_member *a = x, *b = y;

	if (a->among != b->among)
		return a->among < b->among ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

/* How many from M on are one. CLOSE: their ends must be close. */
static uint32_t
count_together(const struct plumb_collectives *found, const struct plumb_collective_member *m,
               uint32_t count, bool close)
{
	int64_t shortest = m->end_ns - m->start_ns;
	uint32_t n = 1;

	for (; n < count && n < RANKS_MOST && n < m->size && m[n].among == m->among &&
	       m[n].name == m->name;
	     n++) {
		int64_t length = m[n].end_ns - m[n].start_ns, apart;
		bool again = false;

		length = length < shortest ? length : shortest;
		apart = plumb_collectives_apart(found, length);
		for (uint32_t i = 0; i < n && !again; i++)
			again = m[i].rank == m[n].rank;
		if (!close && length > apart)
			apart = length;
		if (again || m[n].start_ns >= m->end_ns || m[n].end_ns - m->end_ns > apart)
			break;
		shortest = length;
	}
	return n;
}

static bool
match_ends(const struct plumb_profile *p, struct plumb_collectives *found, uint32_t by)
{
	struct plumb_collective_member *m = found->members.items;
	uint32_t count = found->members.count;

	for (uint32_t i = 0; i < count; i++)
		if (m[i].set != PLUMB_NONE)
			m[i].among = PLUMB_NONE;
	qsort(m, count, sizeof *m, by_end);
	for (uint32_t i = 0, n; i < count && m[i].among != PLUMB_NONE; i += n) {
		bool serial = by == PLUMB_COLLECTIVES_BY_GROUP && !is_pair(p, m[i].name);
		struct plumb_collective_set *set;

		n = count_together(found, &m[i], count - i, !serial);
		if (n < 2)
			continue;
		set = plumb_vec_add(&found->sets);
		if (!set)
			return false;
		*set = (struct plumb_collective_set){ 0, n, by, 0 };
		for (uint32_t k = 0; k < n; k++)
			m[i + k].set = found->sets.count - 1;
	}
	return true;
}

static bool
match_members(const struct plumb_profile *p, struct plumb_collectives *found)
{
	struct plumb_collective_member *m = found->members.items;

	if (!match_sequences(p, found))
		return false;
	for (uint32_t i = 0; i < found->members.count; i++)
		m[i].among = m[i].group;
	if (!match_ends(p, found, PLUMB_COLLECTIVES_BY_GROUP) ||
	    !plumb_collectives_streams(found) || !match_ends(p, found, PLUMB_COLLECTIVES_BY_STREAM))
		return false;
	for (uint32_t i = 0; i < found->members.count; i++)
		m[i].among = m[i].group == PLUMB_NONE ? 0 : PLUMB_NONE;
	return match_ends(p, found, PLUMB_COLLECTIVES_BY_NAME);
}

/* ---- the whole ---- */

static int
by_set(const void *x, const void *y)
{
	const struct plumb_collective_member *a = x, *b = y;

	if (a->set != b->set)
		return a->set < b->set ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

struct placed {
	uint32_t span, place;
};

static int
by_span(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;

	return (a->span > b->span) - (a->span < b->span);
}

/* Members by set, and where the spans are among them. */
static bool
place_members(struct plumb_collectives *found)
{
	uint32_t count = found->members.count;
	struct placed *placed = malloc(((size_t)count + 1) * sizeof *placed);

	found->by_span = malloc(((size_t)count + 1) * sizeof *found->by_span);
	if (!placed || !found->by_span) {
		free(placed);
		return false;
	}
	if (count)
		qsort(found->members.items, count, sizeof *found->members.items, by_set);
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_collective_member *m = &found->members.items[i];
		struct plumb_collective_set *set =
			m->set == PLUMB_NONE ? NULL : &found->sets.items[m->set];

		if (set && (!i || m[-1].set != m->set)) {
			set->first = i;
			set->shortest_ns = m->end_ns - m->start_ns;
		} else if (set && m->end_ns - m->start_ns < set->shortest_ns) {
			set->shortest_ns = m->end_ns - m->start_ns;
		}
		placed[i] = (struct placed){ m->span, i };
	}
	if (count)
		qsort(placed, count, sizeof *placed, by_span);
	for (uint32_t i = 0; i < count; i++)
		found->by_span[i] = placed[i].place;
	free(placed);
	return true;
}

static bool
add_groups(const struct plumb_gpu_work *work, struct plumb_collectives *found)
{
	const struct plumb_profile *p = work->profile;
	size_t room = (size_t)p->collectives_count + 1;
	const struct plumb_collective **rows = malloc(room * sizeof(struct plumb_collective *));
	uint32_t *groups = malloc(room * sizeof *groups);
	bool done = rows && groups;

	if (done && p->collectives_count)
		take_groups(work, found, rows, groups);
	free(rows);
	free(groups);
	return done;
}

int
plumb_collectives_find_in(const struct plumb_gpu_work *work, struct plumb_collectives *found)
{
	const struct plumb_profile *p = work->profile;
	unsigned char *is = plumb_collective_contexts(p);
	bool done;

	*found = (struct plumb_collectives){ 0 };
	found->rank_of = find_ranks(work, &found->rank_count);
	found->clocks_ns = found->rank_of ? clocks_of(p, found) : -1;
	done = found->clocks_ns >= 0 && is;
	for (uint32_t t = 0; done && found->rank_count > 1 && t < p->tracks_count; t++)
		if (found->rank_of[t] != PLUMB_NONE)
			done = add_track(work, t, found->rank_of[t], is, found);
	free(is);
	if (done && found->members.count)
		done = add_groups(work, found) && match_members(p, found) && place_members(found);
	return done ? 0 : PLUMB_ESYSTEM;
}

int
plumb_collectives_find(const struct plumb_profile *p, struct plumb_collectives *found)
{
	struct plumb_gpu_work work;
	int code = plumb_gpu_work_find(p, &work);

	*found = (struct plumb_collectives){ 0 };
	/* Callers know spans of the profile by their numbers. */
	if (!code && !work.newest)
		code = plumb_collectives_find_in(&work, found);
	plumb_gpu_work_free(&work);
	return code;
}

void
plumb_collectives_free(struct plumb_collectives *found)
{
	plumb_vec_free(&found->members);
	plumb_vec_free(&found->sets);
	free(found->by_span);
	free(found->rank_of);
	found->by_span = found->rank_of = NULL;
}

const struct plumb_collective_member *
plumb_collectives_member(const struct plumb_collectives *found, uint32_t span)
{
	const struct plumb_collective_member *m = found->members.items;
	uint32_t low = plumb_search(i, found->by_span ? found->members.count : 0,
	                            m[found->by_span[i]].span < span);
	return found->by_span && low < found->members.count && m[found->by_span[low]].span == span
	               ? &m[found->by_span[low]]
	               : NULL;
}

const struct plumb_collective_set *
plumb_collectives_of(const struct plumb_collectives *found, uint32_t span)
{
	const struct plumb_collective_member *m = plumb_collectives_member(found, span);

	return m && m->set != PLUMB_NONE ? &found->sets.items[m->set] : NULL;
}
