/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that PyTorch's profiler gives steps. */
#include <inttypes.h>
#include <stdio.h>

#include "base/sort.h"
#include "import/kineto.h"

uint32_t
plumb_kineto_annotation(struct plumb_trace *trace, struct plumb_kineto_steps *steps,
                        struct plumb_slice name)
{
	static const char step[] = "ProfilerStep#";
	int64_t number, *added;

	if (!plumb_slice_begins(name, step) || name.bytes > sizeof step + 18)
		return plumb_trace_frame(trace, PLUMB_FRAME_RANGE, name);
	struct plumb_slice digits = { name.at + sizeof step - 1, name.bytes - (sizeof step - 1) };
	if (plumb_slice_decimal(digits, 0, &number) && (added = plumb_vec_add(steps)))
		*added = number; /* else the steps have no numbers: there is one less than steps */
	name.bytes = sizeof step - 2;
	return plumb_trace_frame(trace, PLUMB_FRAME_RANGE, name);
}

/* "2 3 4"; where that is long, "2..904" if none is missing, else what there is room for. */
static void
write_numbers(const struct plumb_kineto_steps *steps, char *text, size_t size)
{
	const int64_t *items = steps->items;
	size_t used = 0;
	uint32_t i = 0;

	for (; i < steps->count && used + 24 < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? " " : "",
		                         items[i]);
	for (uint32_t k = 1; k < steps->count && i < steps->count; k++)
		if (items[k] - items[k - 1] != 1) /* none is below 0, and they ascend */
			return;
	if (i < steps->count)
		snprintf(text, size, "%" PRId64 "..%" PRId64, items[0], items[steps->count - 1]);
}

void
plumb_kineto_steps_tell(struct plumb_trace *trace, struct plumb_kineto_steps *steps,
                        uint32_t process)
{
	char text[400];

	if (!steps->count)
		return;
	plumb_sort_numbers(steps->items, steps->count);
	write_numbers(steps, text, sizeof text);
	plumb_builder_environment(plumb_trace_builder(trace), process, PLUMB_PROFILER_STEPS, text);
}
