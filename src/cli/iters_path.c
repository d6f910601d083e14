/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/iters_path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "analyze/path/path.h"
#include "analyze/path/rows.h"
#include "analyze/path/steps.h"
#include "base/format.h"
#include "cli/label.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "model/user_code.h"

#define ROWS_PRINTED 8
#define ROWS_MOST 20

struct plumb_iters_path {
	const struct plumb_profile *profile;
	struct plumb_path *path;
	unsigned char *user;
	uint32_t *user_of;
};

void
plumb_iters_path_free(struct plumb_iters_path *paths)
{
	if (!paths)
		return;
	plumb_path_free(paths->path);
	free(paths->user);
	free(paths->user_of);
	free(paths);
}

/* What is the person's own code, as the run was told; NULL. */
static const char *
rule_of(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->environment_count; i++)
		if (!strcmp(plumb_text(p, p->environment[i].key), "run.user_code"))
			return plumb_text(p, p->environment[i].value);
	return NULL;
}

struct plumb_iters_path *
plumb_iters_path_new(const struct plumb_profile *profile, const struct plumb_iterations *found,
                     int *code, struct plumb_error *error)
{
	struct plumb_iters_path *paths;

	*code = 0;
	if (found->newest || !profile->spans_count)
		return NULL;
	paths = calloc(1, sizeof *paths);
	if (paths) {
		paths->profile = profile;
		paths->path = plumb_path_new(profile, error);
		paths->user = plumb_user_code_frames(profile, rule_of(profile), error);
		if (paths->user)
			paths->user_of = plumb_user_contexts(profile, paths->user);
	}
	if (!paths || !paths->path || !paths->user_of) {
		plumb_iters_path_free(paths);
		*code = plumb_fail(error, PLUMB_ESYSTEM, "not enough memory; close other programs");
		return NULL;
	}
	return paths;
}

/* What is shown of a path. */
struct shown {
	struct plumb_path_window window; /* the median iteration's, or the whole profile's */
	uint32_t iteration;              /* PLUMB_NONE: the whole */
	struct plumb_path_row rows[ROWS_MOST];
	int64_t savings[ROWS_MOST]; /* of a step, or of the whole; unknown of what is no span */
	int count;
};

/* In the whole window, which the savings of steps come from, or in the one that is shown. */
static int
find_savings(const struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
             const struct plumb_path_window *w, struct shown *shown)
{
	unsigned char *gone = calloc(paths->profile->contexts_count + 1u, 1);
	uint32_t nodes[2] = { PLUMB_NONE, PLUMB_NONE };
	int code = gone ? 0 : PLUMB_ESYSTEM;

	if (track)
		plumb_path_step_nodes(paths->path, track, nodes);
	for (int i = 0; !code && i < shown->count; i++) {
		int64_t saved[2];

		shown->savings[i] = PLUMB_UNKNOWN;
		if (shown->rows[i].frame == PLUMB_NONE)
			continue;
		plumb_path_row_contexts(paths->profile, paths->user_of, &shown->rows[i], gone);
		if (!track)
			shown->savings[i] = plumb_path_saving(w, gone);
		else if (plumb_path_savings(w, gone, nodes, 2, saved))
			shown->savings[i] = plumb_path_step_saving(track, saved);
		else
			code = PLUMB_ESYSTEM;
	}
	free(gone);
	return code;
}

/* TRACK NULL or without a loop: the whole profile. Its window is closed then. */
static int
look(const struct plumb_iters_path *paths, const struct plumb_iteration_track *track, int rows,
     struct shown *shown)
{
	struct plumb_error error;
	struct plumb_path_window whole = { 0 };
	uint32_t process = PLUMB_NONE;
	int code;

	*shown = (struct shown){ .iteration = track ? plumb_path_median_step(track) : PLUMB_NONE };
	if (shown->iteration == PLUMB_NONE)
		track = NULL;
	if (track) {
		process = paths->profile->tracks[track->track].process;
		code = plumb_path_open_step(paths->path, track, shown->iteration, &shown->window,
		                            &error);
	} else {
		code = plumb_path_open_whole(paths->path, PLUMB_NONE, &shown->window, &error);
	}
	if (!code) {
		shown->count = plumb_path_rows(&shown->window, paths->user_of, shown->rows, rows);
		code = shown->count < 0 ? shown->count : 0;
	}
	if (!code && !track)
		code = find_savings(paths, NULL, &shown->window, shown);
	plumb_path_close(&shown->window);
	if (!code && track) {
		code = plumb_path_open_whole(paths->path, process, &whole, &error);
		if (!code)
			code = find_savings(paths, track, &whole, shown);
		plumb_path_close(&whole);
	}
	return code;
}

/* ---- for people ---- */

static void
print_facts(const struct plumb_path_facts *facts, FILE *out)
{
	struct {
		uint64_t count;
		const char *what;
	} inferred[] = { { facts->inferred_syncs, "waits of the host" },
		         { facts->inferred_events, "waits of streams" },
		         { facts->inferred_threads, "stretches of autograd's threads" } };
	char text[PLUMB_FORMAT_SIZE];
	bool any = false;

	for (size_t i = 0; i < sizeof inferred / sizeof *inferred; i++)
		if (inferred[i].count) {
			fprintf(out, "%s%s %s", any ? ", " : "    inferred, not recorded: ",
			        plumb_format_count(text, (int64_t)inferred[i].count),
			        inferred[i].what);
			any = true;
		}
	if (any)
		fputc('\n', out);
}

static void
print_sums(const struct plumb_path_window *w, uint32_t iteration, FILE *out)
{
	int64_t length = w->end_ns - w->start_ns;
	char text[PLUMB_FORMAT_SIZE];
	bool any = false;

	fputs("  critical path of ", out);
	if (iteration == PLUMB_NONE)
		fputs("the whole", out);
	else
		fprintf(out, "iteration %" PRIu32 ", the median,", iteration);
	fprintf(out, " (%s):", plumb_format_time(text, length));
	for (int k = 0; k < PLUMB_PATH_KINDS; k++)
		if (w->sums[k]) {
			fprintf(out, "%s %s %s", any ? "," : "", plumb_path_kinds[k],
			        plumb_format_share(text, (double)w->sums[k], (double)length));
			any = true;
		}
	fputc('\n', out);
	if (w->peer_ns)
		fprintf(out, "    of it on other ranks, which this one waits for: %s\n",
		        plumb_format_time(text, w->peer_ns));
}

static void
cell_where(const struct plumb_profile *p, uint32_t frame, struct plumb_table *table)
{
	const char *file = frame == PLUMB_NONE ? NULL : plumb_text(p, p->frames[frame].file);
	char *text = NULL;

	if (file &&
	    asprintf(&text, "%s:%" PRIu32, plumb_label_base(file), p->frames[frame].line) < 0)
		text = NULL;
	plumb_table_cell(table, text ? text : "");
	free(text);
}

static int
print_rows(const struct plumb_iters_path *paths, const struct shown *shown, FILE *out)
{
	static const struct plumb_column columns[] = {
		{ "    on the path", PLUMB_RIGHT }, { "share", PLUMB_RIGHT },
		{ "would save", PLUMB_RIGHT },      { "kind", PLUMB_LEFT },
		{ "what", PLUMB_SHORTEN_MIDDLE },   { "line", PLUMB_SHORTEN_START },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	double length = (double)(shown->window.end_ns - shown->window.start_ns);
	char text[PLUMB_FORMAT_SIZE];
	int code;

	for (int i = 0; i < shown->count; i++) {
		const struct plumb_path_row *row = &shown->rows[i];

		plumb_table_cell(table, plumb_format_time(text, row->ns));
		plumb_table_cell(table, plumb_format_share(text, (double)row->ns, length));
		plumb_table_cell(table, plumb_format_time(text, shown->savings[i]));
		plumb_table_cell(table, plumb_path_kinds[row->kind]);
		plumb_table_cell(table, row->frame == PLUMB_NONE
		                                ? "(between two spans of a thread)"
		                                : plumb_frame_label(paths->profile, row->frame));
		cell_where(paths->profile, row->user, table);
	}
	code = plumb_table_print(table, out, plumb_terminal_width(out), plumb_terminal_colour(out));
	plumb_table_free(table);
	return code;
}

int
plumb_iters_path_print(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                       FILE *out)
{
	struct shown shown;
	int code;

	if (!paths || track->role != PLUMB_ROLE_MAIN)
		return 0;
	code = look(paths, track, ROWS_PRINTED, &shown);
	if (!code) {
		print_sums(&shown.window, shown.iteration, out);
		print_facts(plumb_path_facts(paths->path), out);
		code = print_rows(paths, &shown, out);
	}
	return code == PLUMB_EEMPTY ? 0 : code;
}

/* ---- for programs ---- */

static void
write_sums(struct plumb_json *json, const struct plumb_path_window *w)
{
	char key[32];

	plumb_json_key_quantity(json, "start_ns", w->start_ns);
	plumb_json_key_quantity(json, "end_ns", w->end_ns);
	for (int k = 0; k < PLUMB_PATH_KINDS; k++) {
		snprintf(key, sizeof key, "%s_ns", plumb_path_kinds[k]);
		plumb_json_key_quantity(json, key, w->sums[k]);
	}
	plumb_json_key_quantity(json, "peer_ns", w->peer_ns);
}

static void
write_rows(const struct plumb_iters_path *paths, const struct shown *shown, struct plumb_json *json)
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

/* Of every iteration of the outermost level; null for one without work that is over in time. */
static int
write_iterations(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                 struct plumb_json *json)
{
	struct plumb_error error;
	int code = 0;

	plumb_json_key(json, "iterations");
	plumb_json_array(json);
	for (uint32_t i = 0; !code && track->level_count && i < track->levels[0].count; i++) {
		struct plumb_path_window window;

		code = plumb_path_open_step(paths->path, track, i, &window, &error);
		if (code) {
			plumb_json_null(json);
		} else {
			plumb_json_object(json);
			write_sums(json, &window);
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
	struct shown shown;
	int code = PLUMB_EEMPTY;

	plumb_json_key(json, "path");
	if (paths && (!track || (track->role == PLUMB_ROLE_MAIN && track->level_count)))
		code = look(paths, track, ROWS_MOST, &shown);
	if (code) {
		plumb_json_null(json);
		return code == PLUMB_EEMPTY ? 0 : code;
	}
	plumb_json_object(json);
	if (track)
		plumb_json_key_quantity(json, "iteration", shown.iteration);
	write_sums(json, &shown.window);
	if (!track)
		write_facts(plumb_path_facts(paths->path), json);
	write_rows(paths, &shown, json);
	if (track)
		code = write_iterations(paths, track, json);
	plumb_json_end(json);
	return code;
}
