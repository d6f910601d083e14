/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/communication.h"

#include <math.h>
#include <string.h>

#include "analyze/rank_waits.h"
#include "base/format.h"
#include "model/collective.h"
#include "model/framework/framework.h"

#define MUCH 0.5      /* of the communication: it is mostly waiting, or mostly hidden */
#define SMALL_NS 50e3 /* a shorter operation takes about as long as a call of it */
#define MANY 100

/* Of all GPUs together. */
struct communication {
	double ns, hidden, waiting; /* in collectives, without waiting that is hidden */
	double own_ns;              /* of all operations, added up, without waiting */
	uint64_t count;
	bool known; /* the waiting */
};

static bool
measure(const struct plumb_study *study, struct communication *c)
{
	struct plumb_rank_waits waits;
	bool done = plumb_rank_waits_find(study->whole, &waits) == 0;

	*c = (struct communication){ .known = done && waits.count > 0 };
	for (uint32_t r = 0; done && r < waits.count; r++) {
		const struct plumb_waiting_rank *rank = &waits.ranks[r];
		struct plumb_rank_sums s =
			plumb_rank_waits_sum(&waits, r, rank->first_ns, rank->last_ns);

		if (!rank->all)
			continue;
		c->ns += (double)s.collectives_ns + (double)s.hidden_ns;
		c->hidden += (double)s.hidden_ns;
		c->count += rank->all;
		c->known &= s.waiting_ns != PLUMB_UNKNOWN;
		if (s.waiting_ns != PLUMB_UNKNOWN)
			c->waiting += (double)s.waiting_ns;
	}
	for (uint32_t i = 0; done && i < waits.together.sets.count; i++)
		c->own_ns += (double)waits.together.sets.items[i].shortest_ns *
		             waits.together.sets.items[i].count;
	plumb_rank_waits_free(&waits);
	return done;
}

static bool
is_any(const char *operation, const char *first, const char *second)
{
	return operation && (!strcmp(operation, first) || !strcmp(operation, second));
}

bool
plumb_communication_advice(const struct plumb_study *study, const char *kernel,
                           struct plumb_draft *draft)
{
	const struct plumb_framework_names *f = plumb_framework_of_operators(study->profile);
	const char *operation = kernel ? plumb_collective_name(kernel) : NULL;
	const char *overlap = NULL, *small = NULL, *bytes = NULL;
	char text[PLUMB_FORMAT_SIZE], waiting[200] = "", hidden[120] = "", often[200] = "";
	struct communication c;
	double each;

	if (!measure(study, &c))
		return false;
	each = c.count && c.own_ns > 0 ? c.own_ns / (double)c.count : NAN;
	if (!c.known)
		snprintf(waiting, sizeof waiting,
		         "How much of it waits for the slowest rank is unknown, because other "
		         "ranks are not in the profile. ");
	else if (c.waiting >= MUCH * c.ns && c.ns > 0)
		snprintf(waiting, sizeof waiting,
		         "%s of all communication is waiting for ranks that come late, so look for "
		         "why they do first. ",
		         plumb_format_share(text, c.waiting, c.ns));
	if (c.ns > 0)
		snprintf(hidden, sizeof hidden, "Computation hides %s of all communication. ",
		         plumb_format_share(text, c.hidden, c.ns));
	if (f && c.hidden < MUCH * c.ns)
		overlap = is_any(operation, "AllGather", "ReduceScatter") ? f->communication.gather
		          : is_any(operation, "AllReduce", "Reduce")      ? f->communication.reduce
		                                                          : NULL;
	if (c.known && c.count >= MANY && each < SMALL_NS) {
		snprintf(
			often, sizeof often,
			" Operations are short (%s in the mean, without waiting): fewer and larger "
			"ones take less time.",
			plumb_format_time(text, llround(each)));
		small = f ? f->communication.small : NULL;
	}
	bytes = f ? f->communication.bytes : NULL;
	plumb_draft_advice(
		draft,
		"GPUs exchange data here. %s%s%s%s%s%s %s Check how the GPUs are connected: "
		"nvidia-smi topo -m shows NVLink, and NCCL_DEBUG=INFO what NCCL uses.",
		waiting, hidden,
		overlap                  ? overlap
		: c.hidden < MUCH * c.ns ? "Start it earlier, so that it runs while GPUs compute."
					 : "Most of it costs nothing while the GPU computes.",
		often, small ? " " : "", small ? small : "",
		bytes ? bytes : "Send fewer bytes, or less often.");
	plumb_json_key_quantity(draft->evidence, "communication_ns", llround(c.ns));
	plumb_json_key_quantity(draft->evidence, "waiting_ns",
	                        c.known ? llround(c.waiting) : PLUMB_UNKNOWN);
	plumb_json_key(draft->evidence, "hidden_share");
	if (c.ns > 0)
		plumb_json_number(draft->evidence, c.hidden / c.ns);
	else
		plumb_json_null(draft->evidence);
	plumb_json_key_quantity(draft->evidence, "operation_ns",
	                        c.known && !isnan(each) ? llround(each) : PLUMB_UNKNOWN);
	return true;
}
