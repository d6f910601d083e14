/* SPDX-License-Identifier: Apache-2.0 */
/* What marks in the program say of the iterations, and other processes on the device. */
#include <inttypes.h>

#include "base/format.h"
#include "cli/iters_steps.h"
#include "cli/table.h"

#define WITH 0.5    /* of an iteration's time, shared with another process */
#define WITHOUT 0.1 /* and not */

void
plumb_iters_marked_print(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	const struct plumb_marked *marked = &iters->steps->marked[t];

	if (marked->frame == PLUMB_NONE || !marked->steps)
		return;
	fprintf(out, "    %" PRIu32 " of %" PRIu32 " steps marked by ", marked->agree,
	        marked->steps);
	plumb_text_print(out, marked->name);
	fputs(" agree\n", out);
}

void
plumb_iters_marked_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json)
{
	const struct plumb_marked *marked = &iters->steps->marked[t];

	plumb_json_key(json, "marked");
	if (marked->frame == PLUMB_NONE || !marked->steps) {
		plumb_json_null(json);
		return;
	}
	plumb_json_object(json);
	plumb_json_key_text(json, "name", marked->name);
	plumb_json_key_quantity(json, "steps", marked->steps);
	plumb_json_key_quantity(json, "agree", marked->agree);
	plumb_json_end(json);
}

int64_t
plumb_iters_step(const struct plumb_iters *iters, uint32_t t, uint32_t i)
{
	const int64_t *numbers = iters->steps->marked ? iters->steps->marked[t].numbers : NULL;

	return numbers ? numbers[i] : PLUMB_UNKNOWN;
}

bool
plumb_iters_steps_differ(const struct plumb_iters *iters, uint32_t t)
{
	for (uint32_t i = 0; i < iters->found->tracks[t].levels[0].count; i++) {
		int64_t step = plumb_iters_step(iters, t, i);

		if (step != PLUMB_UNKNOWN && step != i)
			return true;
	}
	return false;
}

void
plumb_iters_contended_print(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	const struct plumb_iteration_track *track = &iters->found->tracks[t];
	const struct plumb_iteration_level *level = &track->levels[0];
	const struct plumb_iters_track *own = &iters->steps->tracks[t];
	double with = 0, without = 0;
	uint32_t with_count = 0, without_count = 0;
	int64_t all = 0;
	char text[PLUMB_FORMAT_SIZE];

	for (uint32_t i = 0; i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];
		double share = (double)own->contended[i] / (double)(item->op_time_ns + 1);

		all += own->contended[i];
		if (share > WITH) {
			with += (double)item->op_time_ns;
			with_count++;
		} else if (share < WITHOUT) {
			without += (double)item->op_time_ns;
			without_count++;
		}
	}
	if (!own->others || !all)
		return;
	fprintf(out,
	        "    contention: another process had work on the device for %s of the iterations' "
	        "time",
	        plumb_format_time(text, all));
	if (with_count && without_count && without > 0)
		fprintf(out,
		        "; kernels take %.2gx as long in the %" PRIu32
		        " iterations with most of it",
		        with / with_count / (without / without_count), with_count);
	fputc('\n', out);
}
