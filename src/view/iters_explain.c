/* SPDX-License-Identifier: Apache-2.0 */
/* plumb iters --explain N: what makes an iteration differ from the others. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyze/steps/words.h"
#include "view/iters_private.h"
#include "view/render.h"
#include "view/windows.h"

/* The track that is asked for, else the first main track that has this level; PLUMB_NONE: none. */
static uint32_t
choose_track(const struct plumb_iters *iters, uint32_t depth)
{
	for (uint32_t t = 0; t < iters->found.count; t++)
		if (plumb_iters_shown(iters, &iters->found.tracks[t]) &&
		    iters->found.tracks[t].level_count > depth)
			return t;
	return PLUMB_NONE;
}

static void
write_row(const struct plumb_iters *iters, const struct plumb_moments *moments,
          const struct plumb_difference *row, struct plumb_json *json)
{
	const struct plumb_profile *p = iters->profile;
	const struct plumb_step_key *key =
		row->key == PLUMB_NONE ? NULL : &moments->keys.items[row->key];

	plumb_json_object(json);
	plumb_json_key_text(json, "cause", plumb_cause_names[row->cause]);
	plumb_json_key_text(json, "text", row->text);
	plumb_json_key_quantity(json, "difference_ns", row->ns - row->usual_ns);
	plumb_json_key_quantity(json, "ns", row->ns);
	plumb_json_key_quantity(json, "median_ns", row->usual_ns);
	plumb_json_key_quantity(json, "count", row->count);
	plumb_json_key_quantity(json, "median_count", row->usual_count);
	plumb_json_key_quantity(json, "bytes",
	                        row->cause == PLUMB_CAUSE_COPY ? row->bytes : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "median_bytes",
	                        row->cause == PLUMB_CAUSE_COPY ? row->usual_bytes : PLUMB_UNKNOWN);
	plumb_json_key_bool(json, "hidden", row->hidden);
	plumb_json_key_text(json, "name",
	                    key && key->frame != PLUMB_NONE ? plumb_frame_label(p, key->frame)
	                                                    : NULL);
	plumb_iters_line_json(iters, key, json);
	plumb_json_key_quantity(json, "rank", row->rank);
	plumb_json_end(json);
}

int
plumb_iters_explained_json(const struct plumb_iters *iters,
                           const struct plumb_iters_explained *explained, FILE *out)
{
	const struct plumb_explained *told = &explained->told;
	uint32_t t = explained->place;
	struct plumb_json *json = plumb_view_json_new(out, "iters");

	plumb_window_json(iters->profile, json);
	plumb_json_key_object(json, "explain");
	plumb_json_key_quantity(json, "track", iters->found.tracks[t].track);
	plumb_json_key_quantity(json, "level", explained->depth);
	plumb_json_key_quantity(json, "iteration", told->iteration);
	plumb_json_key_quantity(json, "step", explained->step);
	plumb_json_key_quantity(json, "median_iteration", told->median);
	plumb_json_key_quantity(json, "ns", told->ns);
	plumb_json_key_quantity(json, "median_ns", told->usual_ns);
	plumb_json_key_array(json, "rows");
	for (uint32_t i = 0; i < told->rows.count; i++)
		write_row(iters, &iters->steps.tracks[t].moments, &told->rows.items[i], json);
	plumb_json_end(json);
	plumb_json_end(json);
	plumb_json_end(json);
	return plumb_json_finish(json);
}

int
plumb_iters_explain(const struct plumb_iters *iters, uint32_t depth, int64_t number,
                    struct plumb_iters_explained *explained, struct plumb_error *error)
{
	const struct plumb_iters_steps *steps = &iters->steps;
	uint32_t t = choose_track(iters, depth), count = 0;
	struct plumb_explain_peer *peers;
	int code;

	*explained = (struct plumb_iters_explained){ 0 };
	if (t == PLUMB_NONE)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "there is no level %" PRIu32 " of iterations; run without "
		                  "--explain to list the levels",
		                  depth);
	const struct plumb_iteration_track *track = &iters->found.tracks[t];
	const struct plumb_iteration_level *level = &track->levels[depth];
	if (number < 0 || number >= level->count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "there is no iteration %" PRId64 ": level %" PRIu32
		                  " has 0 to %" PRIu32,
		                  number, depth, level->count - 1);
	peers = calloc((size_t)steps->match.rank_count + 1, sizeof *peers);
	if (!peers)
		return plumb_fail_memory(error, NULL);
	if (!depth)
		count = plumb_rank_peers(&steps->match, &iters->found, steps->moments, t,
		                         (uint32_t)number, peers);
	code = plumb_explain(steps->moments[t], level, (uint32_t)number,
	                     track->process < iters->profile->processes_count
	                             ? iters->profile->processes[track->process].rank
	                             : PLUMB_UNKNOWN,
	                     peers, count, &explained->told);
	free(peers);
	explained->place = t;
	explained->depth = depth;
	explained->step = depth ? PLUMB_UNKNOWN : plumb_iters_step(iters, t, (uint32_t)number);
	return code < 0 ? plumb_fail_memory(error, NULL) : 0;
}

void
plumb_iters_explained_free(struct plumb_iters_explained *explained)
{
	plumb_explained_free(&explained->told);
}
