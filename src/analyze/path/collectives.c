/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective runs on several ranks at once, and none is through before the last has begun: a
 * gate. Which kernels are one collective analyze/collectives.h tells.
 */
#include "analyze/collectives.h"
#include "analyze/path/path_private.h"

/* Does each begin before any is over? Else their clocks are not one, and nothing says who waited
 * how long. */
static bool
is_possible(const struct plumb_path *path, const struct plumb_collective_member *members,
            uint32_t count)
{
	int64_t start = INT64_MIN, end = INT64_MAX;

	for (uint32_t i = 0; i < count; i++) {
		int64_t begins = path->nodes[plumb_path_begin(members[i].span)].at;
		int64_t ends = path->nodes[plumb_path_end(members[i].span)].at;

		start = begins > start ? begins : start;
		end = ends < end ? ends : end;
	}
	return start < end;
}

static bool
add_gate(struct plumb_path *path, const struct plumb_collective_member *members, uint32_t count)
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
	return true;
}

bool
plumb_path_collectives(struct plumb_path *path)
{
	struct plumb_collectives found = { 0 };
	bool done = plumb_collectives_find(path->profile, &found) == 0;

	for (uint32_t i = 0; done && i < found.sets.count; i++) {
		const struct plumb_collective_set *set = &found.sets.items[i];
		const struct plumb_collective_member *members = &found.members.items[set->first];

		if (!is_possible(path, members, set->count)) {
			path->facts.impossible++;
			continue;
		}
		done = add_gate(path, members, set->count);
		path->facts.collectives++;
		path->facts.collectives_by[set->by]++;
	}
	plumb_collectives_free(&found);
	return done;
}
