/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks run the same code: the same rows come again on each. So paths are looked up first, then the
 * run is played again without each different row once, for all tracks.
 */
#include "analyze/path/summary.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/path/path_private.h"

#define TRIES_MOST 512 /* runs played again */

struct summarizer {
	struct plumb_path *path;
	struct plumb_path_window *window; /* the whole */
	const struct plumb_iterations *found;
	const uint32_t *user_of;
	struct plumb_path_summaries *to;
	const struct plumb_path_asked *asked;
	uint32_t *nodes;           /* of steps, two for each track; then the whole's last */
	int64_t *saved;            /* by those and play */
	int64_t *taken;            /* by track and play: what its steps can save at most */
	unsigned char *gone, *one; /* by context: of all rows that wait to be taken out, of one */
	unsigned char *done;       /* by row of all tracks */
	uint32_t tries;
	/* The rows that wait, and where the saving of the whole goes; NULL: nowhere. */
	const struct plumb_path_row *rows[PLUMB_PATH_PLAYS];
	int64_t *whole[PLUMB_PATH_PLAYS];
	unsigned waiting;
};

static int
take_summary(const struct summarizer *s, const struct plumb_path_window *w,
             struct plumb_path_summary *summary)
{
	summary->start_ns = w->start_ns;
	summary->end_ns = w->end_ns;
	summary->peer_ns = w->peer_ns;
	memcpy(summary->sums, w->sums, sizeof summary->sums);
	summary->count = plumb_path_rows(w, s->user_of, summary->rows, s->asked->most);
	for (int i = 0; i < summary->count; i++)
		summary->savings[i] = PLUMB_UNKNOWN;
	summary->known = summary->count >= 0;
	return summary->known ? 0 : PLUMB_ESYSTEM;
}

/* Samples are often further apart than one iteration is long: a row of which none tells has what
 * the whole loop has there. */
static int
name_unmet(const struct summarizer *s, const struct plumb_iteration_track *track,
           struct plumb_path_summary *summary)
{
	struct plumb_path_row *row = NULL, rows[PLUMB_PATH_ROWS_MOST];
	struct plumb_path_window loop;
	struct plumb_error error;
	int code, count = 0;

	for (int i = 0; i < summary->count; i++)
		if (summary->rows[i].unmet)
			row = &summary->rows[i];
	if (!row)
		return 0;
	code = plumb_path_loop(s->window, track, summary->steps.first, summary->steps.count, &loop,
	                       &error);
	if (!code)
		count = plumb_path_rows(&loop, s->user_of, rows, PLUMB_PATH_ROWS_MOST);
	plumb_path_close(&loop);
	for (int i = 0; i < count; i++)
		if (plumb_path_row_between(&rows[i])) {
			row->sampled = rows[i].sampled;
			row->sampled_user = rows[i].sampled_user;
		}
	return count < 0 ? count : code;
}

static bool
is_asked(const struct summarizer *s, const struct plumb_iteration_track *track)
{
	return track->role == PLUMB_ROLE_MAIN &&
	       (s->asked->track == PLUMB_NONE || s->asked->track == track->track);
}

/* The iteration of TRACK that is looked at; PLUMB_NONE: none. */
static uint32_t
iteration_of(const struct summarizer *s, const struct plumb_iteration_track *track)
{
	struct plumb_path_steps steps;

	if (!is_asked(s, track))
		return PLUMB_NONE;
	if (!s->asked->has_iteration || track->track != s->asked->track)
		return plumb_path_median_step(s->path, track);
	steps = plumb_path_steps(s->path, track);
	return s->asked->iteration - steps.first < steps.count ? s->asked->iteration : PLUMB_NONE;
}

static int
take_track(const struct summarizer *s, uint32_t t)
{
	const struct plumb_iteration_track *track = &s->found->tracks[t];
	struct plumb_path_summary *summary = &s->to->tracks[t];
	struct plumb_path_window w;
	struct plumb_error error;
	int code;

	summary->iteration = iteration_of(s, track);
	summary->steps = plumb_path_steps(s->path, track);
	s->nodes[2 * t] = s->nodes[2 * t + 1] = PLUMB_NONE;
	if (summary->iteration == PLUMB_NONE)
		return 0;
	plumb_path_step_nodes(s->path, track, &s->nodes[2 * t]);
	code = plumb_path_step(s->window, track, summary->iteration, &w, &error);
	if (!code)
		code = take_summary(s, &w, summary);
	plumb_path_close(&w);
	if (!code)
		code = name_unmet(s, track, summary);
	return code == PLUMB_EEMPTY ? 0 : code;
}

/* ---- savings ---- */

static bool
same_row(const struct plumb_path_row *a, const struct plumb_path_row *b)
{
	return a->frame == b->frame && a->user == b->user;
}

/* ROW is taken out for all tracks at once. */
static void
mark_done(struct summarizer *s, const struct plumb_path_row *row)
{
	for (uint32_t t = 0; t < s->found->count; t++)
		for (int i = 0; i < s->to->tracks[t].count; i++)
			if (same_row(row, &s->to->tracks[t].rows[i]))
				s->done[t * PLUMB_PATH_ROWS_MOST + (uint32_t)i] = 1;
}

/* The saving of the row that was taken out in play K, wherever it stands. */
static void
put_saving(struct summarizer *s, unsigned k)
{
	for (uint32_t t = 0; t < s->found->count; t++) {
		struct plumb_path_summary *summary = &s->to->tracks[t];
		int64_t ends[2] = { s->saved[2 * t * PLUMB_PATH_PLAYS + k],
			            s->saved[(2 * t + 1) * PLUMB_PATH_PLAYS + k] };

		for (int i = 0; summary->known && i < summary->count; i++)
			if (same_row(s->rows[k], &summary->rows[i]))
				summary->savings[i] =
					plumb_path_step_saving(s->path, &s->found->tracks[t], ends,
				                               s->taken[t * PLUMB_PATH_PLAYS + k]);
	}
	if (s->whole[k])
		*s->whole[k] = s->saved[2 * s->found->count * PLUMB_PATH_PLAYS + k];
}

/* Plays the run again without each row that waits. */
static int
play_waiting(struct summarizer *s, struct plumb_path_window *w)
{
	if (!s->waiting)
		return 0;
	if (!plumb_path_savings(w, s->gone, s->nodes, 2 * s->found->count + 1, s->saved))
		return PLUMB_ESYSTEM;
	plumb_path_steps_taken(s->path, s->found, s->gone, s->nodes, s->taken);
	for (unsigned k = 0; k < s->waiting; k++)
		put_saving(s, k);
	memset(s->gone, 0, s->path->profile->contexts_count);
	s->tries += s->waiting;
	s->to->tries = s->tries;
	s->waiting = 0;
	return 0;
}

static int
take_out(struct summarizer *s, struct plumb_path_window *w, const struct plumb_path_row *row,
         int64_t *whole)
{
	mark_done(s, row);
	plumb_path_row_contexts(s->path->profile, s->user_of, row, s->one);
	for (uint32_t c = 0; c < s->path->profile->contexts_count; c++)
		s->gone[c] |= (unsigned char)(s->one[c] << s->waiting);
	s->rows[s->waiting] = row;
	s->whole[s->waiting++] = whole;
	return s->waiting < PLUMB_PATH_PLAYS ? 0 : play_waiting(s, w);
}

/* Does anybody want to know what rows of the whole save? */
static bool
wants_whole(const struct summarizer *s)
{
	bool wanted = s->asked->whole_always;

	for (uint32_t t = 0; t < s->found->count; t++)
		wanted |= is_asked(s, &s->found->tracks[t]) && !s->found->tracks[t].level_count;
	return wanted;
}

/* Each row once: those of the whole, then those of tracks. */
static int
find_savings(struct summarizer *s, struct plumb_path_window *w)
{
	struct plumb_path_summary *whole = &s->to->whole;
	bool wanted = wants_whole(s);
	int code = take_summary(s, w, whole);

	s->nodes[2 * s->found->count] = w->end;
	for (int i = 0; !code && wanted && i < whole->count; i++)
		if (whole->rows[i].frame != PLUMB_NONE)
			code = take_out(s, w, &whole->rows[i], &whole->savings[i]);
	for (uint32_t t = 0; !code && t < s->found->count; t++) {
		const struct plumb_path_summary *summary = &s->to->tracks[t];

		for (int i = 0; !code && summary->known && i < summary->count &&
		                s->tries + s->waiting < TRIES_MOST;
		     i++)
			if (!s->done[t * PLUMB_PATH_ROWS_MOST + (uint32_t)i] &&
			    summary->rows[i].frame != PLUMB_NONE)
				code = take_out(s, w, &summary->rows[i], NULL);
	}
	return code ? code : play_waiting(s, w);
}

int
plumb_path_summarize(struct plumb_path_window *whole, const struct plumb_iterations *found,
                     const uint32_t *user_of, const struct plumb_path_asked *asked,
                     struct plumb_path_summaries *summaries, struct plumb_error *error)
{
	size_t tracks = found->count;
	struct summarizer s = { .path = whole->path,
		                .window = whole,
		                .found = found,
		                .user_of = user_of,
		                .to = summaries,
		                .asked = asked };
	int code = PLUMB_ESYSTEM;

	*summaries = (struct plumb_path_summaries){ .count = found->count };
	summaries->whole.iteration = PLUMB_NONE;
	summaries->tracks = calloc(tracks + 1, sizeof *summaries->tracks);
	s.nodes = calloc(2 * tracks + 1, sizeof *s.nodes);
	s.saved = calloc((2 * tracks + 1) * PLUMB_PATH_PLAYS, sizeof *s.saved);
	s.taken = calloc(tracks * PLUMB_PATH_PLAYS + 1, sizeof *s.taken);
	s.gone = calloc(whole->path->profile->contexts_count + 1u, 1);
	s.one = calloc(whole->path->profile->contexts_count + 1u, 1);
	s.done = calloc(tracks * PLUMB_PATH_ROWS_MOST + 1, 1);
	if (summaries->tracks && s.nodes && s.saved && s.taken && s.gone && s.one && s.done) {
		code = 0;
		for (uint32_t t = 0; !code && t < found->count; t++)
			code = take_track(&s, t);
		if (!code)
			code = find_savings(&s, whole);
	}
	free(s.nodes);
	free(s.saved);
	free(s.taken);
	free(s.gone);
	free(s.one);
	free(s.done);
	return code ? plumb_fail_memory(error, "for the critical path") : 0;
}

void
plumb_path_summaries_free(struct plumb_path_summaries *summaries)
{
	free(summaries->tracks);
	*summaries = (struct plumb_path_summaries){ 0 };
}
