/* SPDX-License-Identifier: Apache-2.0 */
#include "view/iters_path.h"

#include <stdlib.h>

#include "analyze/path/part.h"
#include "model/user_code.h"
#include "view/iters_private.h"
#include "view/part.h"

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

/* Finds the paths in as many spans as the query allows, and summarizes them. */
static int
make_path(struct plumb_iters_path *paths, const struct plumb_iters *iters,
          const struct plumb_iters_query *query, struct plumb_error *error)
{
	uint32_t track = iters->track < 0 ? PLUMB_NONE : (uint32_t)iters->track;
	int64_t spans = query->path_spans ? query->path_spans : PLUMB_PATH_SPANS_MOST;
	uint32_t most = spans < UINT32_MAX ? (uint32_t)spans : UINT32_MAX;
	bool some = query->paths == PLUMB_ITERS_SHORT_PATHS;
	struct plumb_path_asked asked = {
		.most = some ? PLUMB_ITERS_PATH_ROWS : PLUMB_PATH_ROWS_MOST,
		.track = track,
		.whole_always = query->paths == PLUMB_ITERS_ALL_PATHS ||
		                (query->paths == PLUMB_ITERS_ONE_PATH && track == PLUMB_NONE),
		.has_iteration = query->path_one,
		.iteration = query->path_iteration,
	};
	struct plumb_path_part part;
	int code = plumb_path_part_find(paths->profile, paths->found, track, most, &part, error);

	if (code)
		return code;
	paths->path = query->last ? plumb_path_new_last(query->last, &part, error)
	                          : plumb_path_new(paths->profile, &part, error);
	if (!paths->path)
		return error->code;
	code = plumb_path_open_whole(paths->path, &paths->whole, error);
	return code ? code
	            : plumb_path_summarize(&paths->whole, paths->found,
	                                   iters->steps.division->place_of, &asked,
	                                   &paths->summaries, error);
}

struct plumb_iters_path *
plumb_iters_path_new(const struct plumb_iters *iters, const struct plumb_iters_query *query,
                     int *code, struct plumb_error *error)
{
	struct plumb_iters_path *paths;

	*code = 0;
	if (iters->found.newest || !iters->profile->spans_count)
		return NULL;
	paths = calloc(1, sizeof *paths);
	if (paths) {
		paths->profile = iters->profile;
		paths->found = &iters->found;
		paths->division = iters->steps.division;
		*code = make_path(paths, iters, query, error);
	}
	if (!paths || *code) {
		plumb_iters_path_free(paths);
		*code = paths && *code == PLUMB_EEMPTY ? 0 : plumb_fail_memory(error, NULL);
		return NULL;
	}
	return paths;
}

const struct plumb_path_summary *
plumb_iters_path_summary(const struct plumb_iters_path *paths,
                         const struct plumb_iteration_track *track)
{
	return track ? &paths->summaries.tracks[track - paths->found->tracks]
	             : &paths->summaries.whole;
}

/* ---- JSON ---- */

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

	plumb_json_key_array(json, "top");
	for (int i = 0; i < shown->count; i++) {
		const struct plumb_path_row *row = &shown->rows[i];
		const struct plumb_frame *frame =
			row->frame == PLUMB_NONE ? NULL : &p->frames[row->frame];
		struct plumb_user_place user =
			plumb_user_place(p, plumb_division_line(paths->division, row->user));
		uint32_t place = plumb_path_row_between(row) ? row->sampled_user : row->user;

		plumb_json_object(json);
		plumb_json_key_text(json, "path_kind", plumb_path_kinds[row->kind]);
		plumb_json_key_text(json, "kind",
		                    frame ? plumb_frame_kind_names[frame->kind] : NULL);
		plumb_json_key_text(json, "name", frame ? plumb_frame_label(p, row->frame) : NULL);
		plumb_json_key_text(json, "user_file", user.file);
		plumb_json_key_line(json, "user_line", user.line);
		user = plumb_user_place(p, plumb_division_line(paths->division, row->sampled_user));
		plumb_json_key_text(
			json, "sampled",
			row->sampled == PLUMB_NONE ? NULL : plumb_frame_label(p, row->sampled));
		plumb_json_key_text(json, "sampled_file", user.file);
		plumb_json_key_line(json, "sampled_line", user.line);
		plumb_part_json(json, p, paths->division,
		                plumb_division_is_part(paths->division, place) ? place
		                                                               : PLUMB_NONE);
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

	plumb_json_key_object(json, "edges");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		plumb_json_key_quantity(json, rows[i].key, (int64_t)rows[i].count);
	plumb_json_end(json);
}

/* Writes "part": the part of the profile that was used; null: all of it. */
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

/* Writes every iteration of the outermost level. It is null for an iteration outside of the part,
 * or without work that ends in time. */
static int
write_iterations(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                 struct plumb_json *json)
{
	struct plumb_path_steps steps = plumb_path_steps(paths->path, track);
	struct plumb_error error;
	int code = 0;

	plumb_json_key_array(json, "iterations");
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
	const struct plumb_path_summary *shown =
		paths ? plumb_iters_path_summary(paths, track) : NULL;
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
