/* SPDX-License-Identifier: Apache-2.0 */
/* What filled the intervals between iterations, for people and as JSON. */
#include "cli/iters_steps.h"

#include <inttypes.h>

#include "analyze/group.h"
#include "analyze/steps/words.h"
#include "base/format.h"
#include "cli/table.h"
#include "model/user_code.h"

#define ROWS_TEXT 6
#define ROWS_JSON 8

int
plumb_iters_steps_new(const struct plumb_profile *p, const struct plumb_iterations *found,
                      const struct plumb_iteration_limits *limits, bool explains,
                      struct plumb_iters_steps *steps, struct plumb_error *error)
{
	unsigned char *user =
		plumb_user_code_frames(p, plumb_profile_environment(p, "run.user_code"), error);
	int code = 0;

	*steps = (struct plumb_iters_steps){ 0 };
	if (!user)
		return error->code;
	steps->user_of = plumb_user_contexts(p, user);
	steps->tracks = calloc((size_t)found->count + 1, sizeof *steps->tracks);
	steps->moments = calloc((size_t)found->count + 1, sizeof *steps->moments);
	steps->marked = calloc((size_t)found->count + 1, sizeof *steps->marked);
	free(user);
	if (!steps->user_of || !steps->tracks || !steps->moments || !steps->marked)
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory; close other programs");
	steps->count = found->count;
	code = plumb_moments_share(p, steps->user_of, &steps->shared);
	for (uint32_t t = 0; !code && t < found->count; t++) {
		const struct plumb_iteration_track *track = &found->tracks[t];
		struct plumb_iters_track *own = &steps->tracks[t];

		if (!track->level_count)
			continue;
		steps->moments[t] = &own->moments;
		code = plumb_moments_new(&steps->shared, track->device, track->process,
		                         track->track, &own->moments);
		if (!code)
			code = plumb_filled_find(&own->moments, &track->levels[0], limits,
			                         &own->filled);
		if (!code)
			code = plumb_marked_find(&own->moments, &track->levels[0],
			                         &steps->marked[t]);
		own->contended =
			code ? NULL
			     : plumb_contended_find(&own->moments, &track->levels[0], &own->others);
		if (!own->contended)
			code = PLUMB_ESYSTEM;
	}
	if (!code)
		code = plumb_ranks_match(p, found, steps->moments, steps->marked, &steps->match);
	for (uint32_t t = 0; !explains && t < found->count; t++)
		plumb_moments_finish(&steps->tracks[t].moments);
	if (!explains)
		plumb_moments_unshare(&steps->shared);
	return code ? plumb_fail(error, PLUMB_ESYSTEM, "not enough memory; close other programs")
	            : 0;
}

void
plumb_iters_steps_free(struct plumb_iters_steps *steps)
{
	for (uint32_t t = 0; t < steps->count; t++) {
		plumb_filled_free(&steps->tracks[t].filled);
		free(steps->tracks[t].contended);
		if (steps->marked)
			plumb_marked_free(&steps->marked[t]);
		if (steps->tracks[t].moments.profile)
			plumb_moments_free(&steps->tracks[t].moments);
	}
	plumb_moments_unshare(&steps->shared);
	plumb_rank_match_free(&steps->match);
	free(steps->moments);
	free(steps->marked);
	free(steps->tracks);
	free(steps->user_of);
	*steps = (struct plumb_iters_steps){ 0 };
}

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
	const struct plumb_iters_track *own = &iters->steps->tracks[t];
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
			plumb_step_name(iters->profile, &own->moments.keys.items[shown[i].key],
			                text, sizeof text);
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
plumb_iters_line_json(const struct plumb_profile *p, uint32_t frame, struct plumb_json *json)
{
	static const struct plumb_frame none = { .file = PLUMB_NONE, .source_file = PLUMB_NONE };
	const struct plumb_frame *f = frame < p->frames_count ? &p->frames[frame] : &none;
	bool python = f->kind == PLUMB_FRAME_PYTHON;
	uint32_t line = python ? f->line : f->source_line;

	plumb_json_key_text(json, "file", plumb_text(p, python ? f->file : f->source_file));
	plumb_json_key_quantity(json, "line", line ? (int64_t)line : PLUMB_UNKNOWN);
}

static void
write_row(const struct plumb_iters *iters, const struct plumb_moments *line,
          const struct plumb_step_shown *shown, int64_t all, struct plumb_json *json)
{
	const struct plumb_profile *p = iters->profile;
	const struct plumb_step_key *key =
		shown->kind == PLUMB_SHOWN_KEY ? &line->keys.items[shown->key] : NULL;
	bool gap = shown->kind == PLUMB_SHOWN_GAPS || (key && key->sort == PLUMB_STEP_GAP);
	bool sample = key && key->sort == PLUMB_STEP_SAMPLE;
	char text[700];

	plumb_json_object(json);
	plumb_json_key_text(json, "name",
	                    key && key->frame != PLUMB_NONE ? plumb_frame_label(p, key->frame)
	                                                    : NULL);
	plumb_json_key_text(json, "kind",
	                    gap      ? "gap"
	                    : !key   ? "other"
	                    : sample ? "sample"
	                             : plumb_frame_kind_names[p->frames[key->frame].kind]);
	plumb_iters_line_json(p, key ? plumb_step_line(key) : PLUMB_NONE, json);
	plumb_json_key_text(json, "text", key ? plumb_step_name(p, key, text, sizeof text) : NULL);
	plumb_json_key_quantity(json, "ns", shown->ns);
	plumb_json_key_quantity(json, "samples", sample ? (int64_t)shown->count : PLUMB_UNKNOWN);
	plumb_json_key(json, "share");
	plumb_json_number(json, all > 0 ? (double)shown->ns / (double)all : 0);
	plumb_json_end(json);
}

static void
write_one(const struct plumb_iters *iters, uint32_t t, const struct plumb_filled_one *one,
          struct plumb_json *json)
{
	struct plumb_step_shown shown[PLUMB_STEP_SHOWN];
	uint32_t count = plumb_step_rows_show(&iters->steps->tracks[t].moments, &one->rows,
	                                      ROWS_JSON, shown);

	plumb_json_key(json, "filled");
	plumb_json_array(json);
	for (uint32_t i = 0; i < count; i++)
		write_row(iters, &iters->steps->tracks[t].moments, &shown[i], one->ns, json);
	plumb_json_end(json);
}

void
plumb_iters_filled_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json)
{
	static const char *const what[] = { NULL, "intervals", "idle", NULL };
	const struct plumb_filled *filled = &iters->steps->tracks[t].filled;

	plumb_json_key_text(json, "filled_what", what[filled->what]);
	write_one(iters, t, &filled->all, json);
}

void
plumb_iters_filled_item(const struct plumb_iters *iters, uint32_t t, uint32_t i,
                        struct plumb_json *json)
{
	static const struct plumb_filled_one none = { .thread = PLUMB_NONE };
	const struct plumb_filled *filled = &iters->steps->tracks[t].filled;
	const struct plumb_filled_one *one = i < filled->count ? &filled->items[i] : &none;

	plumb_json_key_quantity(json, "launch_thread",
	                        one->thread == PLUMB_NONE ? PLUMB_UNKNOWN : one->thread);
	write_one(iters, t, one, json);
	plumb_json_key_quantity(json, "contended_ns", iters->steps->tracks[t].contended[i]);
}
