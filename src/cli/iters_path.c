/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/iters_path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/path/path.h"
#include "analyze/path/summary.h"
#include "base/format.h"
#include "cli/label.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define ROWS_PRINTED 8

struct plumb_iters_path {
	const struct plumb_profile *profile;
	const struct plumb_iterations *found;
	struct plumb_path *path;
	struct plumb_path_window whole;
	struct plumb_path_summaries summaries;
};

void
plumb_iters_path_free(struct plumb_iters_path *paths)
{
	if (!paths)
		return;
	plumb_path_summaries_free(&paths->summaries);
	if (paths->path)
		plumb_path_close(&paths->whole);
	plumb_path_free(paths->path);
	free(paths);
}

/* Of as many spans as are wished for, and what of it. */
static int
make(struct plumb_iters_path *paths, const uint32_t *user_of,
     const struct plumb_iters_path_wish *wish, struct plumb_error *error)
{
	uint32_t track = wish->track < 0 ? PLUMB_NONE : (uint32_t)wish->track;
	uint32_t most = wish->spans < UINT32_MAX ? (uint32_t)wish->spans : UINT32_MAX;
	struct plumb_path_asked asked = { wish->json ? PLUMB_PATH_ROWS_MOST : ROWS_PRINTED, track,
		                          wish->json };
	struct plumb_path_part part;
	int code = plumb_path_part_find(paths->profile, paths->found, track, most, &part, error);

	if (code)
		return code;
	paths->path = plumb_path_new(paths->profile, &part, error);
	if (!paths->path)
		return error->code;
	code = plumb_path_open_whole(paths->path, &paths->whole, error);
	return code ? code
	            : plumb_path_summarize(&paths->whole, paths->found, user_of, &asked,
	                                   &paths->summaries, error);
}

struct plumb_iters_path *
plumb_iters_path_new(const struct plumb_profile *profile, const struct plumb_iterations *found,
                     const uint32_t *user_of, const struct plumb_iters_path_wish *wish, int *code,
                     struct plumb_error *error)
{
	struct plumb_iters_path *paths;

	*code = 0;
	if (found->newest || !profile->spans_count)
		return NULL;
	paths = calloc(1, sizeof *paths);
	if (paths) {
		paths->profile = profile;
		paths->found = found;
		*code = make(paths, user_of, wish, error);
	}
	if (!paths || *code) {
		plumb_iters_path_free(paths);
		*code = paths && *code == PLUMB_EEMPTY
		                ? 0
		                : plumb_fail(error, PLUMB_ESYSTEM,
		                             "not enough memory; close other programs");
		return NULL;
	}
	return paths;
}

/* Of TRACK, one of those found; NULL: the whole profile's. */
static const struct plumb_path_summary *
summary_of(const struct plumb_iters_path *paths, const struct plumb_iteration_track *track)
{
	return track ? &paths->summaries.tracks[track - paths->found->tracks]
	             : &paths->summaries.whole;
}

/* ---- for people ---- */

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

/* Of which part it is, where it is of one. TRACK is the one with a loop whose it is, else NULL. */
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
cell_where(const struct plumb_profile *p, uint32_t frame, struct plumb_table *table)
{
	const char *file = frame == PLUMB_NONE ? NULL : plumb_text(p, p->frames[frame].file);
	char *text = NULL;

	if (file &&
	    asprintf(&text, "%s:%" PRIu32, plumb_path_base(file), p->frames[frame].line) < 0)
		text = NULL;
	plumb_table_cell(table, text ? text : "");
	free(text);
}

static int
print_rows(const struct plumb_iters_path *paths, const struct plumb_path_summary *shown, FILE *out)
{
	static const struct plumb_column columns[] = {
		{ "    on the path", PLUMB_RIGHT }, { "share", PLUMB_RIGHT },
		{ "would save", PLUMB_RIGHT },      { "kind", PLUMB_LEFT },
		{ "what", PLUMB_SHORTEN_MIDDLE },   { "line", PLUMB_SHORTEN_START },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	double length = (double)(shown->end_ns - shown->start_ns);
	char text[PLUMB_FORMAT_SIZE];
	int code;

	for (int i = 0; i < shown->count && i < ROWS_PRINTED; i++) {
		const struct plumb_path_row *row = &shown->rows[i];

		plumb_table_cell(table, plumb_format_time(text, row->ns));
		plumb_table_cell(table, plumb_format_share(text, (double)row->ns, length));
		plumb_table_cell(table, plumb_format_time(text, shown->savings[i]));
		plumb_table_cell(table, plumb_path_kinds[row->kind]);
		cell_what(paths->profile, row, table);
		cell_where(paths->profile, row->frame == PLUMB_NONE ? row->sampled_user : row->user,
		           table);
	}
	code = plumb_table_print(table, out, plumb_terminal_width(out), plumb_terminal_colour(out));
	plumb_table_free(table);
	return code;
}

/* Around this track's own iterations, or one of them alone does not fit. */
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
plumb_iters_path_print(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                       FILE *out)
{
	const struct plumb_path_summary *shown;

	if (!paths || track->role != PLUMB_ROLE_MAIN)
		return 0;
	track = track->level_count ? track : NULL;
	shown = summary_of(paths, track);
	if (track && !shown->steps.count)
		print_outside(plumb_path_part(paths->path), track->track, out);
	if (!shown->known)
		return 0;
	print_sums(shown, plumb_path_part(paths->path)->whole, out);
	print_part(paths, shown, track, out);
	print_facts(plumb_path_facts(paths->path), out);
	return print_rows(paths, shown, out);
}

/* ---- for programs ---- */

static void
write_sums(struct plumb_json *json, int64_t start_ns, int64_t end_ns, const int64_t *sums,
           int64_t peer_ns)
{
	char key[32];

	plumb_json_key_quantity(json, "start_ns", start_ns);
	plumb_json_key_quantity(json, "end_ns", end_ns);
	for (int k = 0; k < PLUMB_PATH_KINDS; k++) {
		snprintf(key, sizeof key, "%s_ns", plumb_path_kinds[k]);
		plumb_json_key_quantity(json, key, sums[k]);
	}
	plumb_json_key_quantity(json, "peer_ns", peer_ns);
}

static void
write_rows(const struct plumb_iters_path *paths, const struct plumb_path_summary *shown,
           struct plumb_json *json)
{
	const struct plumb_profile *p = paths->profile;

	plumb_json_key(json, "top");
	plumb_json_array(json);
	for (int i = 0; i < shown->count; i++) {
		const struct plumb_path_row *row = &shown->rows[i];
		const struct plumb_frame *frame =
			row->frame == PLUMB_NONE ? NULL : &p->frames[row->frame];
		const struct plumb_frame *user =
			row->user == PLUMB_NONE ? NULL : &p->frames[row->user];

		plumb_json_object(json);
		plumb_json_key_text(json, "path_kind", plumb_path_kinds[row->kind]);
		plumb_json_key_text(json, "kind",
		                    frame ? plumb_frame_kind_names[frame->kind] : NULL);
		plumb_json_key_text(json, "name", frame ? plumb_frame_label(p, row->frame) : NULL);
		plumb_json_key_text(json, "user_file", user ? plumb_text(p, user->file) : NULL);
		plumb_json_key_quantity(json, "user_line",
		                        user && user->line ? (int64_t)user->line : PLUMB_UNKNOWN);
		user = row->sampled_user == PLUMB_NONE ? NULL : &p->frames[row->sampled_user];
		plumb_json_key_text(
			json, "sampled",
			row->sampled == PLUMB_NONE ? NULL : plumb_frame_label(p, row->sampled));
		plumb_json_key_text(json, "sampled_file", user ? plumb_text(p, user->file) : NULL);
		plumb_json_key_quantity(json, "sampled_line",
		                        user && user->line ? (int64_t)user->line : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "path_ns", row->ns);
		plumb_json_key_quantity(json, "saving_ns", shown->savings[i]);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_facts(const struct plumb_path_facts *f, struct plumb_json *json)
{
	const struct {
		const char *key;
		uint64_t count;
	} rows[] = {
		{ "launches", f->launches },
		{ "syncs", f->syncs },
		{ "events", f->events },
		{ "collectives", f->collectives },
		{ "collectives_by_sequence", f->collectives_by[PLUMB_COLLECTIVES_BY_SEQUENCE] },
		{ "collectives_by_group", f->collectives_by[PLUMB_COLLECTIVES_BY_GROUP] },
		{ "collectives_by_stream", f->collectives_by[PLUMB_COLLECTIVES_BY_STREAM] },
		{ "collectives_by_name", f->collectives_by[PLUMB_COLLECTIVES_BY_NAME] },
		{ "inferred_syncs", f->inferred_syncs },
		{ "inferred_events", f->inferred_events },
		{ "inferred_threads", f->inferred_threads },
		{ "unmatched", f->unmatched },
		{ "impossible", f->impossible },
	};

	plumb_json_key(json, "edges");
	plumb_json_object(json);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		plumb_json_key_quantity(json, rows[i].key, (int64_t)rows[i].count);
	plumb_json_end(json);
}

/* "part" of the whole; null where it is all. */
static void
write_part(const struct plumb_path_part *part, struct plumb_json *json)
{
	bool loop = part->track != PLUMB_NONE;

	plumb_json_key(json, "part");
	if (part->whole) {
		plumb_json_null(json);
		return;
	}
	plumb_json_object(json);
	plumb_json_key_quantity(json, "start_ns", part->start_ns);
	plumb_json_key_quantity(json, "end_ns", part->end_ns);
	plumb_json_key_quantity(json, "spans_most", part->most);
	plumb_json_key_quantity(json, "track", loop ? part->track : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "first_iteration", loop ? part->first : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "last_iteration", loop ? part->last : PLUMB_UNKNOWN);
	plumb_json_end(json);
}

/* Of every iteration of the outermost level; null for one without work that is over in time, or
 * outside of the part. */
static int
write_iterations(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                 struct plumb_json *json)
{
	struct plumb_path_steps steps = plumb_path_steps(paths->path, track);
	struct plumb_error error;
	int code = 0;

	plumb_json_key(json, "iterations");
	plumb_json_array(json);
	for (uint32_t i = 0; !code && track->level_count && i < track->levels[0].count; i++) {
		struct plumb_path_window window;

		if (i - steps.first >= steps.count) {
			plumb_json_null(json);
			continue;
		}
		code = plumb_path_step(&paths->whole, track, i, &window, &error);
		if (code) {
			plumb_json_null(json);
		} else {
			plumb_json_object(json);
			write_sums(json, window.start_ns, window.end_ns, window.sums,
			           window.peer_ns);
			plumb_json_end(json);
		}
		plumb_path_close(&window);
		code = code == PLUMB_EEMPTY ? 0 : code;
	}
	plumb_json_end(json);
	return code;
}

int
plumb_iters_path_json(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                      struct plumb_json *json)
{
	const struct plumb_path_summary *shown = paths ? summary_of(paths, track) : NULL;
	int code = 0;

	plumb_json_key(json, "path");
	if (!shown || !shown->known) {
		plumb_json_null(json);
		return 0;
	}
	plumb_json_object(json);
	if (track) {
		plumb_json_key_quantity(json, "iteration", shown->iteration);
		plumb_json_key_quantity(json, "first_iteration", shown->steps.first);
		plumb_json_key_quantity(json, "last_iteration",
		                        shown->steps.first + shown->steps.count - 1);
	} else {
		write_part(plumb_path_part(paths->path), json);
	}
	write_sums(json, shown->start_ns, shown->end_ns, shown->sums, shown->peer_ns);
	if (!track)
		write_facts(plumb_path_facts(paths->path), json);
	write_rows(paths, shown, json);
	if (track)
		code = write_iterations(paths, track, json);
	plumb_json_end(json);
	return code;
}
