/* SPDX-License-Identifier: Apache-2.0 */
/* Where the loops of a track lie, and what lies outside of them; for people. */
#include <inttypes.h>

#include "base/format.h"
#include "cli/iters/iters.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define BETWEEN_SHARE 0.01 /* of the track's time, that one line is about */
#define NAME_ROOM 40       /* columns at least */

/* From the first to the last kernel. */
static int64_t
time_of(const struct plumb_iteration_track *track)
{
	int64_t end = track->stretches[0].end_ns;

	for (uint32_t s = 1; s < track->stretch_count; s++)
		if (track->stretches[s].end_ns > end)
			end = track->stretches[s].end_ns;
	return end - track->stretches[0].start_ns;
}

static void
print_turns(const struct plumb_iteration_track *track, FILE *out)
{
	if (track->cycles)
		fprintf(out, "  the loops take turns: %" PRIu32 " times\n", track->cycles);
}

void
plumb_iters_loop_print(const struct plumb_iteration_track *track, uint32_t loop, FILE *out)
{
	const struct plumb_iteration_loop *own = &track->loops[loop];
	int64_t from = own->start_ns - track->stretches[0].start_ns;
	char time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], since[PLUMB_FORMAT_SIZE];

	if (track->loop_count < 2)
		return;
	if (!loop)
		print_turns(track, out);
	fprintf(out, "  loop %" PRIu32 " of %" PRIu32 "%s: %s (%s) from %s on", loop + 1,
	        track->loop_count, loop == track->main_loop ? ", shown in full" : "",
	        plumb_format_time(time, own->time_ns),
	        plumb_format_share(share, (double)own->time_ns, (double)time_of(track)),
	        plumb_format_time(since, from));
	if (own->stretches > 1)
		fprintf(out, ", in %" PRIu32 " parts", own->stretches);
	fputc('\n', out);
}

void
plumb_iters_outside_print(const struct plumb_iters *iters,
                          const struct plumb_iteration_track *track, uint32_t s, FILE *out)
{
	static const char *const where[] = { "before the first loop", "between",
		                             "after the last loop" };
	const struct plumb_iteration_stretch *stretch = &track->stretches[s];
	enum plumb_odd_kind kind = plumb_iters_where(track, s);
	uint32_t kernels = stretch->end - stretch->first;
	int64_t took = stretch->end_ns - stretch->start_ns;
	char count[PLUMB_FORMAT_SIZE], time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE];
	int used;

	if (!track->loop_count || stretch->loop != PLUMB_NONE ||
	    (kind == PLUMB_ODD_BETWEEN && (double)took < BETWEEN_SHARE * (double)time_of(track)))
		return;
	used = fprintf(out, "  %s: %s kernel%s in %s", where[kind],
	               plumb_format_count(count, kernels), kernels == 1 ? "" : "s",
	               plumb_format_time(time, took));
	used += fprintf(
		out, ", %s of their time in ",
		plumb_format_share(share, (double)stretch->frame_ns, (double)stretch->kernel_ns));
	if (plumb_terminal_width(out) - used < NAME_ROOM)
		used = fprintf(out, "\n    ") - 1;
	plumb_text_print_short(out, plumb_frame_label(iters->profile, stretch->frame),
	                       plumb_terminal_width(out) - used);
	fputc('\n', out);
}
