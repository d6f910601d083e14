/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that PyTorch's profiler gives steps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sort.h"
#include "import/kineto/kineto.h"

static const char step[] = "ProfilerStep#";

/* The number of a step's name; false: it is no step's, or the number does not fit. */
static bool
number_of(struct plumb_slice name, int64_t *number)
{
	struct plumb_slice digits = { name.at + sizeof step - 1, name.bytes - (sizeof step - 1) };

	return plumb_slice_begins(name, step) && name.bytes <= sizeof step + 18 &&
	       plumb_slice_decimal(digits, 0, number);
}

uint32_t
plumb_kineto_annotation(struct plumb_trace *trace, struct plumb_kineto_steps *steps,
                        struct plumb_slice name)
{
	int64_t number, *added;

	if (!plumb_slice_begins(name, step) || name.bytes > sizeof step + 18)
		return plumb_trace_frame(trace, PLUMB_FRAME_RANGE, name);
	if (number_of(name, &number) && (added = plumb_vec_add(steps)))
		*added = number; /* else the steps have no numbers: there is one less than steps */
	name.bytes = sizeof step - 2;
	return plumb_trace_frame(trace, PLUMB_FRAME_RANGE, name);
}

void
plumb_kineto_gpu_step(struct plumb_kineto_steps *steps, struct plumb_slice name, int64_t start,
                      int64_t end)
{
	int64_t number, *added;

	if (start == PLUMB_UNKNOWN || end == PLUMB_UNKNOWN || !number_of(name, &number) ||
	    !(added = plumb_vec_add(&steps->gpu)))
		return;
	*added = number;
	steps->gpu_start =
		steps->gpu.count == 1 || start > steps->gpu_start ? start : steps->gpu_start;
	steps->gpu_end = steps->gpu.count == 1 || end > steps->gpu_end ? end : steps->gpu_end;
}

void
plumb_kineto_steps_free(struct plumb_kineto_steps *steps)
{
	plumb_vec_free(&steps->gpu);
	plumb_vec_free(steps);
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

/* Numbers that STEPS has, on a thread or on a GPU, each once. */
static uint32_t
count_names(const struct plumb_kineto_steps *steps)
{
	uint32_t all = steps->count + steps->gpu.count, names = 0;
	int64_t *numbers = malloc(((size_t)all + 1) * sizeof *numbers);

	for (uint32_t i = 0; numbers && i < all; i++)
		numbers[i] =
			i < steps->count ? steps->items[i] : steps->gpu.items[i - steps->count];
	if (numbers)
		plumb_sort_numbers(numbers, all);
	for (uint32_t i = 0; numbers && i < all; i++)
		names += !i || numbers[i] != numbers[i - 1];
	free(numbers);
	return names;
}

static void
tell_gpu(struct plumb_trace *trace, const struct plumb_kineto_steps *steps, uint32_t process)
{
	char text[100];

	if (!steps->gpu.count)
		return;
	snprintf(text, sizeof text, "%" PRIu32 " %" PRId64 " %" PRId64, count_names(steps),
	         steps->gpu_start, steps->gpu_end);
	plumb_builder_environment(plumb_trace_builder(trace), process, PLUMB_PROFILER_GPU_STEPS,
	                          text);
}

void
plumb_kineto_steps_tell(struct plumb_trace *trace, struct plumb_kineto_steps *steps,
                        uint32_t process)
{
	char text[400];

	tell_gpu(trace, steps, process);
	if (!steps->count)
		return;
	plumb_sort_numbers(steps->items, steps->count);
	write_numbers(steps, text, sizeof text);
	plumb_builder_environment(plumb_trace_builder(trace), process, PLUMB_PROFILER_STEPS, text);
}
