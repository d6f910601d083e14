/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by iteration or rank. The causes of a stall share its samples alike in every group: what
 * differs is how often warps stood there. */
#include <stdlib.h>
#include <string.h>

#include "analyze/iterations.h"
#include "base/search.h"
#include "base/vec.h"
#include "view/why.h"

#define GROUPS_MOST 65536u

struct grouper {
	struct plumb_why *why;
	const struct plumb_profile *p;
	struct plumb_iterations found; /* by iteration */
};

/* The iteration of the kernel that began at NS on DEVICE in PROCESS, of the main loop's outermost
 * level; -1: none. */
static int64_t
iteration_of(const struct grouper *g, const struct plumb_code_sample *s)
{
	for (uint32_t t = 0; t < g->found.count; t++) {
		const struct plumb_iteration_track *track = &g->found.tracks[t];
		const struct plumb_iteration_level *level = track->levels;
		uint32_t after;

		if (track->role != PLUMB_ROLE_MAIN || !track->level_count ||
		    (s->device != PLUMB_NONE && s->device != track->device) ||
		    (s->process != PLUMB_NONE && s->process != track->process))
			continue;
		after = plumb_search(i, level->count, level->items[i].start_ns <= s->launch_ns);
		if (!after ||
		    (after == level->count && level->items[after - 1].end_ns < s->launch_ns))
			return -1;
		return after - 1;
	}
	return -1;
}

/* The group of KERNEL that SAMPLE belongs to; NULL: to none. *FAILED: no memory. */
static struct plumb_why_group *
group_of(struct grouper *g, struct plumb_why_kernel *k, const struct plumb_code_sample *s,
         uint32_t *room, bool *failed)
{
	int64_t number, pid = PLUMB_UNKNOWN;
	struct plumb_why_group *group;
	uint32_t at;

	if (g->why->query.by == PLUMB_WHY_BY_ITERATION) {
		number = s->launch_ns == PLUMB_UNKNOWN ? -1 : iteration_of(g, s);
		if (number < 0)
			return NULL;
	} else {
		if (s->process >= g->p->processes_count)
			return NULL;
		number = g->p->processes[s->process].rank;
		pid = number == PLUMB_UNKNOWN ? g->p->processes[s->process].pid : PLUMB_UNKNOWN;
	}
	at = plumb_search(i, k->group_count,
	                  k->groups[i].number < number ||
	                          (k->groups[i].number == number && k->groups[i].pid < pid));
	if (at < k->group_count && k->groups[at].number == number && k->groups[at].pid == pid)
		return &k->groups[at];
	if (k->group_count == GROUPS_MOST)
		return NULL;
	if (k->group_count == *room) {
		group = plumb_vec_grow(k->groups, room, k->group_count + 1u, sizeof *group);
		*failed = !group;
		if (!group)
			return NULL;
		k->groups = group;
	}
	group = &k->groups[at];
	memmove(group + 1, group, (k->group_count - at) * sizeof *group);
	*group = (struct plumb_why_group){ .number = number, .pid = pid };
	group->samples = calloc(k->causes.count + 1u, sizeof *group->samples);
	k->group_count++;
	*failed = !group->samples;
	return *failed ? NULL : group;
}

/* The stall of the slice at a place, for a reason, by place and reason in ORDER; PLUMB_NONE. */
struct stall_order {
	struct plumb_slice_place place;
	uint16_t reason;
	uint32_t stall;
};

static int
compare_order(const void *a, const void *b)
{
	const struct stall_order *one = a, *two = b;

	if (one->place.function != two->place.function)
		return one->place.function < two->place.function ? -1 : 1;
	if (one->place.insn != two->place.insn)
		return one->place.insn < two->place.insn ? -1 : 1;
	return one->reason < two->reason ? -1 : one->reason > two->reason;
}

static struct stall_order *
order_stalls(const struct plumb_why_kernel *k)
{
	struct stall_order *order = calloc(k->slice.stall_count + 1u, sizeof *order);

	for (uint32_t i = 0; order && i < k->slice.stall_count; i++)
		order[i] = (struct stall_order){ k->slice.stalls[i].place,
			                         k->slice.stalls[i].reason, i };
	if (order && k->slice.stall_count)
		qsort(order, k->slice.stall_count, sizeof *order, compare_order);
	return order;
}

static void
add_sample(const struct plumb_why_kernel *k, struct plumb_why_group *group,
           const struct stall_order *order, struct stall_order wanted, uint64_t count)
{
	uint32_t at = plumb_search(i, k->slice.stall_count, compare_order(&order[i], &wanted) < 0);
	const struct plumb_stall *stall;

	if (at == k->slice.stall_count || compare_order(&order[at], &wanted) ||
	    k->slice.stalls[order[at].stall].class == PLUMB_STALL_NONE)
		return;
	stall = &k->slice.stalls[order[at].stall];
	group->waiting += count;
	for (uint32_t c = 0; c < stall->cause_count; c++) {
		uint32_t item = k->causes.of[k->causes.first[order[at].stall] + c];

		if (item != PLUMB_NONE && stall->samples)
			group->samples[item] += (double)count * (double)stall->causes[c].samples /
			                        (double)stall->samples;
	}
}

static int
group_part(struct grouper *g, struct plumb_why_kernel *k, uint32_t function,
           const struct stall_order *order, uint32_t *room)
{
	const struct plumb_kernels *found = &g->why->found;
	const struct plumb_kernel_part *part = &k->kernel->parts[function];
	const struct plumb_insns *insns = &k->code.insns[function];
	bool failed = false;

	for (uint32_t row = part->function; row != PLUMB_NONE; row = found->next[row])
		for (uint32_t i = plumb_code_first_sample(g->p, row);
		     i < g->p->code_samples_count && g->p->code_samples[i].function == row; i++) {
			const struct plumb_code_sample *s = &g->p->code_samples[i];
			const char *word = plumb_text(g->p, s->reason);
			uint64_t count = plumb_kernel_has(found, k->kernel, part, s);
			struct plumb_why_group *group;
			uint32_t after;

			if (s->issued || !count)
				continue;
			after = plumb_search(n, insns->count, insns->items[n].offset <= s->offset);
			group = after ? group_of(g, k, s, room, &failed) : NULL;
			if (failed)
				return PLUMB_ESYSTEM;
			if (group)
				add_sample(k, group, order,
				           (struct stall_order){ { function, after - 1 },
				                                 (uint16_t)plumb_stall_reason_find(
									 word ? word : "")
				                                         ->reason,
				                                 0 },
				           count);
		}
	return 0;
}

static int
group_kernel(struct grouper *g, struct plumb_why_kernel *k)
{
	struct stall_order *order;
	uint32_t room = 0;
	int code = 0;

	if (k->code.problem)
		return 0;
	order = order_stalls(k);
	if (!order)
		return PLUMB_ESYSTEM;
	for (uint32_t f = 0; !code && f < k->code.function_count; f++)
		code = group_part(g, k, f, order, &room);
	free(order);
	return code;
}

/* Can samples be told apart by what is asked for? */
static int
check_by(const struct plumb_why *why, struct plumb_error *error)
{
	const struct plumb_profile *p = why->profile;

	if (!p->code_samples_count)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--by needs samples; record them with plumb run --stalls");
	for (uint32_t i = 0; i < p->code_samples_count; i++)
		if (why->query.by == PLUMB_WHY_BY_ITERATION
		            ? p->code_samples[i].launch_ns != PLUMB_UNKNOWN
		            : p->code_samples[i].process != PLUMB_NONE)
			return 0;
	if (why->query.by == PLUMB_WHY_BY_RANK)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "the samples do not say which process they are of");
	return plumb_fail(error, PLUMB_EUSAGE,
	                  "--by iteration needs samples that belong to launches; record them "
	                  "with plumb run --stalls --stalls-mode=serialised");
}

int
plumb_why_find_groups(struct plumb_why *why, struct plumb_error *error)
{
	struct grouper g = { .why = why, .p = why->profile };
	uint32_t groups = 0;
	int code = check_by(why, error);

	if (!code && why->query.by == PLUMB_WHY_BY_ITERATION)
		code = plumb_iterations_find(why->profile, NULL, &g.found, error);
	for (uint32_t i = 0; !code && i < why->count; i++) {
		code = group_kernel(&g, &why->kernels[i]);
		if (code)
			plumb_fail_memory(error, "for the stalls");
		groups += why->kernels[i].group_count;
	}
	plumb_iterations_free(&g.found);
	if (!code && !groups)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "no sample is in an iteration; plumb iters says which "
		                  "iterations the profile has");
	return code;
}
