/* SPDX-License-Identifier: Apache-2.0 */
/* Where the critical path of iterations runs, for people. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/format.h"
#include "cli/iters/iters.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "model/user_code.h"
#include "view/iters_path.h"

static void
print_facts(const struct plumb_path_facts *facts, FILE *out)
{
	struct {
		uint64_t count;
		const char *one, *more;
	} inferred[] = {
		{ facts->inferred_syncs, "wait of the host", "waits of the host" },
		{ facts->inferred_events, "wait of a stream", "waits of streams" },
		{ facts->inferred_threads, "piece of work of autograd's threads",
		  "pieces of work of autograd's threads" },
	};
	char text[PLUMB_FORMAT_SIZE];
	bool any = false;

	for (size_t i = 0; i < sizeof inferred / sizeof *inferred; i++)
		if (inferred[i].count) {
			fprintf(out, "%s%s %s", any ? ", " : "    inferred, because not recorded: ",
			        plumb_format_count(text, (int64_t)inferred[i].count),
			        inferred[i].count == 1 ? inferred[i].one : inferred[i].more);
			any = true;
		}
	if (any)
		fputc('\n', out);
}

/* "iterations 180 to 420 of 2,000" */
static void
print_steps(const struct plumb_path_steps *steps, const struct plumb_iteration_track *track,
            FILE *out)
{
	fprintf(out, "iteration%s %" PRIu32, steps->count == 1 ? "" : "s", steps->first);
	if (steps->count > 1)
		fprintf(out, " to %" PRIu32, steps->first + steps->count - 1);
	fprintf(out, " of %" PRIu32, track->levels[0].count);
}

/* Says which part of the profile was searched, if not all of it. TRACK is the track with a loop
 * that the path belongs to, else NULL. */
static void
print_part(const struct plumb_iters_path *paths, const struct plumb_path_summary *shown,
           const struct plumb_iteration_track *track, FILE *out)
{
	const struct plumb_path_part *part = plumb_path_part(paths->path);
	char text[PLUMB_FORMAT_SIZE], most[PLUMB_FORMAT_SIZE];
	bool last = part->track == PLUMB_NONE;

	if (part->whole)
		return;
	fputs("    ", out);
	if (track)
		print_steps(&shown->steps, track, out);
	else
		fprintf(out, "the %s%s of the profile", last ? "last " : "",
		        plumb_format_time(text, part->end_ns - part->start_ns));
	if (!track && !last)
		fprintf(out, " with iterations %" PRIu32 " to %" PRIu32 " of track %" PRIu32,
		        part->first, part->last, part->track);
	fprintf(out, ": only this part is searched, because the profile has more than %s spans\n",
	        plumb_format_count(most, part->most));
}

static void
print_sums(const struct plumb_path_summary *w, bool whole, FILE *out)
{
	int64_t length = w->end_ns - w->start_ns;
	char text[PLUMB_FORMAT_SIZE];
	bool any = false;

	fputs("  critical path of ", out);
	if (w->iteration == PLUMB_NONE)
		fputs(whole ? "the whole profile" : "a part of the profile", out);
	else
		fprintf(out, "iteration %" PRIu32 ", the median", w->iteration);
	fprintf(out, " (%s):", plumb_format_time(text, length));
	for (int k = 0; k < PLUMB_PATH_KINDS; k++)
		if (w->sums[k]) {
			fprintf(out, "%s %s %s", any ? "," : "", plumb_path_kinds[k],
			        plumb_format_share(text, (double)w->sums[k], (double)length));
			any = true;
		}
	fputc('\n', out);
	if (w->peer_ns)
		fprintf(out, "    on other ranks that this one waits for: %s of it\n",
		        plumb_format_time(text, w->peer_ns));
}

static void
cell_what(const struct plumb_profile *p, const struct plumb_path_row *row,
          struct plumb_table *table)
{
	const char *between = "(between two spans of a thread)";
	char *text = NULL;

	if (row->frame == PLUMB_NONE && row->sampled != PLUMB_NONE &&
	    asprintf(&text, "(between two spans, most sampled: %s)",
	             plumb_frame_label(p, row->sampled)) < 0)
		text = NULL;
	plumb_table_cell(table, text                       ? text
	                        : row->frame == PLUMB_NONE ? between
	                                                   : plumb_frame_label(p, row->frame));
	free(text);
}

static void
cell_where(const struct plumb_iters_path *paths, uint32_t frame, struct plumb_table *table)
{
	struct plumb_user_place place = plumb_user_place(paths->profile, frame);
	char text[1500];

	if (plumb_division_is_part(paths->division, frame)) {
		plumb_division_text(paths->profile, paths->division, frame, true, text,
		                    sizeof text);
		plumb_table_cell(table, text);
		return;
	}
	plumb_table_cell(table,
	                 place.file ? plumb_user_place_text(&place, false, text, sizeof text) : "");
}

static int
print_rows(const struct plumb_iters_path *paths, const struct plumb_path_summary *shown, FILE *out)
{
	static const struct plumb_column columns[] = {
		{ "    on the path", PLUMB_RIGHT }, { "share", PLUMB_RIGHT },
		{ "would save", PLUMB_RIGHT },      { "kind", PLUMB_LEFT },
		{ "what", PLUMB_SHORTEN_NAME },     { "line", PLUMB_SHORTEN_START },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	double length = (double)(shown->end_ns - shown->start_ns);
	char text[PLUMB_FORMAT_SIZE];
	int code;

	for (int i = 0; i < shown->count && i < PLUMB_ITERS_PATH_ROWS; i++) {
		const struct plumb_path_row *row = &shown->rows[i];

		plumb_table_cell(table, plumb_format_time(text, row->ns));
		plumb_table_cell(table, plumb_format_share(text, (double)row->ns, length));
		plumb_table_cell(table, plumb_format_time(text, shown->savings[i]));
		plumb_table_cell(table, plumb_path_kinds[row->kind]);
		cell_what(paths->profile, row, table);
		cell_where(paths, row->frame == PLUMB_NONE ? row->sampled_user : row->user, table);
	}
	code = plumb_table_print(table, out, plumb_terminal_width(out), plumb_terminal_colour(out));
	plumb_table_free(table);
	return code;
}

/* Says why TRACK has no path: one iteration is too large, or all are outside the part. */
static void
print_outside(const struct plumb_path_part *part, uint32_t track, FILE *out)
{
	char most[PLUMB_FORMAT_SIZE];

	fputs("  no critical path: ", out);
	if (part->track == PLUMB_NONE)
		fprintf(out, "one iteration has more than %s spans; use a larger --path-spans\n",
		        plumb_format_count(most, part->most));
	else
		fprintf(out,
		        "its iterations are outside the part that is searched; use --track=%" PRIu32
		        " to search around them\n",
		        track);
}

int
plumb_iters_path_print(const struct plumb_iters_path *paths,
                       const struct plumb_iteration_track *track, FILE *out)
{
	const struct plumb_path_summary *shown;

	if (!paths || track->role != PLUMB_ROLE_MAIN)
		return 0;
	track = track->level_count ? track : NULL;
	shown = plumb_iters_path_summary(paths, track);
	if (track && !shown->steps.count)
		print_outside(plumb_path_part(paths->path), track->track, out);
	if (!shown->known)
		return 0;
	print_sums(shown, plumb_path_part(paths->path)->whole, out);
	print_part(paths, shown, track, out);
	print_facts(plumb_path_facts(paths->path), out);
	return print_rows(paths, shown, out);
}
