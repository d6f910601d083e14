/* SPDX-License-Identifier: Apache-2.0 */
#include "import/sequence.h"

int
plumb_sequences_note(struct plumb_sequences *sequences, uint32_t process, uint32_t track,
                     int64_t start_ns, struct plumb_slice name)
{
	static const char mark[] = ", seq = ";
	const char *found = name.at ? memmem(name.at, name.bytes, mark, sizeof mark - 1) : NULL;
	int64_t number;
	size_t count = 0;
	/* The engine's own range around a node has the node's number too. */
	if (!found || plumb_slice_begins(name, "autograd::engine::"))
		return 0;
	const char *digits = found + sizeof mark - 1, *end = name.at + name.bytes;
	while (digits + count < end && digits[count] >= '0' && digits[count] <= '9')
		count++;
	if (!count || !plumb_slice_decimal((struct plumb_slice){ digits, count }, 0, &number))
		return 0;
	struct plumb_sequence *item = plumb_vec_add(&sequences->items);
	if (!item)
		return PLUMB_ESYSTEM;
	*item = (struct plumb_sequence){
		.number = number,
		.start_ns = start_ns,
		.process = process,
		.track = track,
		.backward = memmem(name.at, (size_t)(found - name.at), "Backward", 8) != NULL,
	};
	return 0;
}

/* By process and number; there what is forward first, in time. */
static int
by_number(const void *x, const void *y)
{
	const struct plumb_sequence *a = x, *b = y;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	if (a->backward != b->backward)
		return a->backward ? 1 : -1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* The COUNT ranges at ITEMS have one number. */
static void
link_number(struct plumb_trace *trace, const struct plumb_sequence *items, uint32_t count)
{
	uint32_t forward = 0, last = 0;
	bool several = false;
	while (forward < count && !items[forward].backward)
		several |= items[forward++].track != items->track;
	for (uint32_t i = forward; i < count && forward; i++) {
		while (last + 1 < forward && items[last + 1].start_ns < items[i].start_ns)
			last++;
		if (items[last].start_ns >= items[i].start_ns)
			continue;
		if (several) /* each thread counts for itself, and the range does not say which */
			plumb_trace_count(trace, PLUMB_FATE_AMBIGUOUS,
			                  "backward ranges of several forward threads", 1);
		else
			plumb_trace_link(trace, items[last].track, items[last].start_ns,
			                 items[i].track, items[i].start_ns);
	}
}

void
plumb_sequences_link(struct plumb_sequences *sequences, struct plumb_trace *trace)
{
	struct plumb_sequence *items = sequences->items.items;
	uint32_t count = sequences->items.count, next;
	if (count)
		qsort(items, count, sizeof *items, by_number);
	for (uint32_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && items[next].process == items[i].process &&
		                   items[next].number == items[i].number;
		     next++)
			;
		link_number(trace, items + i, next - i);
	}
	plumb_vec_free(&sequences->items);
}
