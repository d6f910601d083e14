/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process group a collective is of, and its number there: kernels of NCCL say the group since
 * PyTorch 2.3, the operator that launches them more.
 */
#include "import/kineto/kineto.h"

static uint32_t
text_of(struct plumb_trace *trace, struct plumb_slice text)
{
	if (!text.bytes || plumb_slice_is(text, "[]"))
		return PLUMB_NONE;
	return plumb_builder_string(plumb_trace_builder(trace), text.at, text.bytes);
}

uint32_t
plumb_kineto_group(struct plumb_trace *trace, struct plumb_kineto_comms *comms,
                   const struct plumb_kineto_group *group, bool kernel)
{
	/* "[0, 1]" as a text, or as an array. */
	struct plumb_slice ranks = group->ranks;
	if (ranks.bytes >= 2 && *ranks.at == '"')
		ranks = (struct plumb_slice){ ranks.at + 1, ranks.bytes - 2 };
	struct plumb_trace_group made = { text_of(trace, group->name), text_of(trace, ranks),
		                          group->size, group->sequence };
	uint32_t number = kernel ? plumb_trace_group(trace, &made) : 0;
	struct plumb_kineto_comm *comm = group->external != PLUMB_UNKNOWN && group->external > 0
	                                         ? plumb_vec_add(&comms->items)
	                                         : NULL;

	if (comm) /* else the kernel has only what it says itself */
		*comm = (struct plumb_kineto_comm){ group->external, made, number };
	return number;
}

/* Operators before kernels. */
static int
by_external(const void *x, const void *y)
{
	const struct plumb_kineto_comm *a = x, *b = y;

	if (a->external != b->external)
		return a->external < b->external ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

void
plumb_kineto_comms_join(struct plumb_trace *trace, struct plumb_kineto_comms *comms)
{
	struct plumb_kineto_comm *items = comms->items.items;
	uint32_t count = comms->items.count;

	if (count)
		qsort(items, count, sizeof *items, by_external);
	for (uint32_t i = 1; i < count; i++) {
		const struct plumb_trace_group *from = &items[i - 1].group;
		struct plumb_trace_group *to = plumb_trace_get_group(trace, items[i].number);

		if (!to || items[i - 1].external != items[i].external)
			continue;
		if (to->name == PLUMB_NONE && to->ranks == PLUMB_NONE) {
			to->name = from->name;
			to->ranks = from->ranks;
		}
		to->size = to->size == PLUMB_UNKNOWN ? from->size : to->size;
		to->sequence = to->sequence == PLUMB_UNKNOWN ? from->sequence : to->sequence;
		items[i].group = *to; /* for the next kernel of this operator */
	}
	plumb_vec_free(&comms->items);
}
