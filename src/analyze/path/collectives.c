/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective runs on several ranks at once, and none is through before the last has begun. Which kernels
 * are one collective is told by their name and by their ending together: the ranks of one name that end
 * within a short time of each other, while all of them run, are one.
 */
#include <stdlib.h>

#include "analyze/path/path_private.h"

#define TOGETHER_NS 20000 /* that far apart ends may lie, or a quarter of the shortest */

struct member {
	int64_t end;
	uint32_t name, span;
};

static int
by_name_and_end(const void *x, const void *y)
{
	const struct member *a = x, *b = y;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->end != b->end ? (a->end > b->end ? 1 : -1)
	                        : (a->span > b->span) - (a->span < b->span);
}

/* Two devices of a process, or two processes, are two ranks. */
static bool
same_rank(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	const struct plumb_track *x = &p->tracks[p->spans[a].track];
	const struct plumb_track *y = &p->tracks[p->spans[b].track];

	return x->process == y->process && x->device == y->device;
}

/* How many from MEMBERS on are one collective. */
static uint32_t
group_of(const struct plumb_path *path, const struct member *members, uint32_t count)
{
	enum { RANKS_MOST = 512 };
	const struct plumb_path_node *nodes = path->nodes;
	int64_t shortest = members->end - nodes[plumb_path_begin(members->span)].at;
	uint32_t n = 1;

	for (; n < count && n < RANKS_MOST && members[n].name == members->name; n++) {
		int64_t begin = nodes[plumb_path_begin(members[n].span)].at;
		int64_t length = members[n].end - begin;
		int64_t apart = shortest < length ? shortest / 4 : length / 4;
		bool again = false;

		for (uint32_t i = 0; i < n && !again; i++)
			again = same_rank(path->profile, members[i].span, members[n].span);
		if (again || begin >= members->end ||
		    members[n].end - members->end > (apart > TOGETHER_NS ? apart : TOGETHER_NS))
			break;
		if (length < shortest)
			shortest = length;
	}
	return n;
}

static bool
add_gate(struct plumb_path *path, const struct member *members, uint32_t count)
{
	struct plumb_path_node *gate = plumb_vec_add(&path->gates);
	uint32_t number = path->count + path->gates.count - 1;

	if (!gate)
		return false;
	*gate = path->nodes[plumb_path_begin(members->span)];
	gate->before = gate->edge = PLUMB_NONE;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t begin = plumb_path_begin(members[i].span);
		struct plumb_path_edge edge = { .from = begin,
			                        .owner = PLUMB_NONE,
			                        .kind = PLUMB_PATH_BY_PEER };

		if (!plumb_path_add_edge(path, gate, number, edge))
			return false;
		if (path->nodes[begin].at > gate->at)
			gate->at = path->nodes[begin].at;
		path->nodes[plumb_path_end(members[i].span)].before = number;
	}
	path->facts.collectives++;
	return true;
}

bool
plumb_path_collectives(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;
	PLUMB_VEC(struct member) members = { 0 };
	bool done = true;

	for (uint32_t i = 0; done && path->places.count > 1 && i < p->spans_count; i++) {
		const struct plumb_path_node *end = &path->nodes[plumb_path_end(i)];
		struct member *added;

		if (!(end->flags & PLUMB_PATH_WORK) ||
		    path->kinds[p->spans[i].context] != PLUMB_PATH_COMMUNICATION)
			continue;
		added = plumb_vec_add(&members);
		done = added;
		if (added)
			*added = (struct member){ end->at,
				                  plumb_context_frame(p, p->spans[i].context)->name,
				                  i };
	}
	if (members.count)
		qsort(members.items, members.count, sizeof *members.items, by_name_and_end);
	for (uint32_t i = 0; done && i < members.count;) {
		uint32_t n = group_of(path, &members.items[i], members.count - i);

		if (n > 1)
			done = add_gate(path, &members.items[i], n);
		i += n;
	}
	plumb_vec_free(&members);
	return done;
}
