/* SPDX-License-Identifier: Apache-2.0 */
/* What filled the intervals between iterations, what marks in the program say of these, and other
 * processes on the device; for people. */
#include <inttypes.h>
#include <string.h>

#include "analyze/steps/words.h"
#include "base/format.h"
#include "cli/iters/iters.h"
#include "cli/table.h"

#define ROWS_TEXT 6
#define WITH 0.5    /* of an iteration's time, shared with another process */
#define WITHOUT 0.1 /* and not */

static void
print_thread(const struct plumb_profile *p, uint32_t thread, FILE *out)
{
	const char *name = thread < p->tracks_count ? plumb_text(p, p->tracks[thread].name) : NULL;

	if (name) {
		fputs(strncmp(name, "thread ", 7) ? " on thread " : " on ", out);
		plumb_text_print(out, name);
	} else if (thread < p->tracks_count) {
		fprintf(out, " on thread %" PRId64, p->tracks[thread].tid);
	}
}

void
plumb_iters_filled_print(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	static const char *const what[] = { NULL, "the intervals", "the time without work", NULL };
	const struct plumb_iters_track *own = &iters->steps.tracks[t];
	struct plumb_step_shown shown[PLUMB_STEP_SHOWN];
	char text[700], share[PLUMB_FORMAT_SIZE], time[PLUMB_FORMAT_SIZE];
	uint32_t count;

	if (own->filled.what == PLUMB_FILLED_UNKNOWN)
		fputs("    what the host did meanwhile is unknown: the profile has no spans of "
		      "threads\n",
		      out);
	if (!what[own->filled.what] || !own->filled.all.ns)
		return;
	fprintf(out, "    what filled %s", what[own->filled.what]);
	print_thread(iters->profile, own->filled.all.thread, out);
	fputs(":\n", out);
	count = plumb_step_rows_show(&own->moments, &own->filled.all.rows, ROWS_TEXT, shown);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = text;

		if (shown[i].kind == PLUMB_SHOWN_KEY)
			plumb_step_name(&own->moments, &own->moments.keys.items[shown[i].key], text,
			                sizeof text);
		else
			name = shown[i].kind == PLUMB_SHOWN_GAPS ? "nothing recorded" : "other";
		fprintf(out, "      %7s  %8s  ",
		        plumb_format_share(share, (double)shown[i].ns, (double)own->filled.all.ns),
		        plumb_format_time(time, shown[i].ns));
		plumb_text_print(out, name);
		fputc('\n', out);
	}
}

void
plumb_iters_marked_print(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	const struct plumb_marked *marked = &iters->steps.marked[t];

	if (marked->frame == PLUMB_NONE || !marked->steps)
		return;
	fprintf(out, "    %" PRIu32 " of %" PRIu32 " steps marked by ", marked->agree,
	        marked->steps);
	plumb_text_print(out, marked->name);
	fputs(" agree\n", out);
}

void
plumb_iters_contended_print(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	const struct plumb_iteration_track *track = &iters->found.tracks[t];
	const struct plumb_iteration_level *level = &track->levels[0];
	const struct plumb_iters_track *own = &iters->steps.tracks[t];
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
