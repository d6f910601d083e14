/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations as JSON, and as one typed table with the same words. */
#include <math.h>

#include "view/iters_private.h"
#include "view/render.h"
#include "view/view.h"
#include "view/windows.h"

static double
overlap_ratio(const struct plumb_iteration *item)
{
	return item->interval_ns > 0 ? (double)item->overlap_ns / (double)item->interval_ns : NAN;
}

/* A level of found.tracks[T]; of level 0 of the main loop more is known. */
struct level {
	const struct plumb_iteration_level *at;
	uint32_t t;
	bool outermost;
};

static void
write_item(struct plumb_json *json, const struct plumb_iters *iters, const struct level *level,
           uint32_t i)
{
	const struct plumb_iteration *item = &level->at->items[i];

	plumb_json_object(json);
	if (level->outermost)
		plumb_json_key_quantity(json, "step", plumb_iters_step(iters, level->t, i));
	plumb_json_key_quantity(json, "start_ns", item->start_ns);
	plumb_json_key_quantity(json, "end_ns", item->end_ns);
	plumb_json_key_quantity(json, "duration_ns", item->end_ns - item->start_ns);
	plumb_json_key_quantity(json, "ops", item->ops);
	plumb_json_key_quantity(json, "edits", item->edits);
	plumb_json_key_quantity(json, "interval_ns", item->interval_ns);
	plumb_json_key_quantity(json, "overlap_ns", item->overlap_ns);
	plumb_json_key_quantity(json, "elsewhere_ns", item->elsewhere_ns);
	plumb_json_key_number(json, "overlap_ratio", overlap_ratio(item));
	plumb_json_key_quantity(json, "idle_ns", item->idle_ns);
	plumb_json_key_quantity(json, "op_gap_ns", item->op_gap_ns);
	plumb_json_key_quantity(json, "op_time_ns", item->op_time_ns);
	plumb_json_key_quantity(json, "copy_bytes", item->copy_bytes);
	plumb_json_key_bool(json, "outlier", item->outlier);
	if (level->outermost)
		plumb_iters_filled_item(iters, level->t, i, json);
	plumb_iters_counters_item(iters, level->t, item, json);
	plumb_json_end(json);
}

void
plumb_iters_stat_json(struct plumb_json *json, const char *key,
                      const struct plumb_iteration_stat *stat)
{
	plumb_json_key_object(json, key);
	plumb_json_key_quantity(json, "avg", stat->average);
	plumb_json_key_quantity(json, "max", stat->most);
	plumb_json_key_quantity(json, "p50", stat->p50);
	plumb_json_key_quantity(json, "p95", stat->p95);
	plumb_json_end(json);
}

static void
write_summary(struct plumb_json *json, const struct plumb_iters *iters, const struct level *of)
{
	const struct plumb_iteration_level *level = of->at;

	plumb_json_key_object(json, "summary");
	plumb_iters_stat_json(json, "duration_ns", &level->duration);
	plumb_iters_stat_json(json, "interval_ns", &level->interval);
	plumb_iters_stat_json(json, "overlap_ns", &level->overlap);
	plumb_iters_stat_json(json, "op_gap_ns", &level->op_gap);
	plumb_iters_stat_json(json, "op_time_ns", &level->op_time);
	plumb_iters_stat_json(json, "copy_bytes", &level->copy_bytes);
	plumb_json_key_number(json, "overlap_ratio", level->overlap_ratio);
	plumb_json_key_quantity(json, "outliers", level->outliers);
	/* of the time from end to end, an iteration; half its interval of 95 % */
	plumb_json_key_number(json, "slope_ns", level->slope_ns);
	plumb_json_key_number(json, "slope_error_ns", level->slope_error_ns);
	plumb_json_key_number(json, "ops_slope", level->ops_slope);
	if (of->outermost)
		plumb_iters_filled_json(iters, of->t, json);
	plumb_iters_counters_json(iters, of->t, level, json);
	plumb_json_end(json);
}

static void
write_odd(struct plumb_json *json, const struct plumb_iters *iters,
          const struct plumb_iteration_level *level)
{
	plumb_json_key_array(json, "odd");
	for (uint32_t i = 0; i < level->odd_count; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "where", plumb_iters_odd[level->odd[i].kind]);
		plumb_json_key_text(json, "name",
		                    plumb_frame_label(iters->profile, level->odd[i].frame));
		plumb_json_key_quantity(json, "count", level->odd[i].count);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key_quantity(json, "before_period_ops",
	                        level->before_period ? level->before_period : PLUMB_UNKNOWN);
}

static void
write_level(struct plumb_json *json, const struct plumb_iters *iters, const struct level *of)
{
	const struct plumb_iteration_level *level = of->at;

	plumb_json_object(json);
	plumb_json_key_quantity(json, "period_ops", level->period_ops);
	plumb_json_key_quantity(json, "occurrences", level->count);
	plumb_json_key_text(json, "first_op",
	                    plumb_frame_label(iters->profile, level->first_frame));
	plumb_json_key_text(json, "phase", plumb_iters_phases[level->phase]);
	plumb_json_key_bool(json, "growing", level->growing);
	plumb_json_key_number(json, "match", level->match);
	plumb_json_key_number(json, "coverage", level->coverage);
	plumb_json_key_text(json, "verdict", plumb_iters_verdicts[level->verdict]);
	plumb_json_key_number(json, "interval_share", level->interval_share);
	plumb_json_key_number(json, "overlap_share", level->overlap_share);
	plumb_json_key_number(json, "elsewhere_share", level->elsewhere_share);
	plumb_json_key_number(json, "idle_share", level->idle_share);
	if (of->outermost)
		plumb_iters_marked_json(iters, of->t, json);
	write_summary(json, iters, of);
	write_odd(json, iters, level);
	plumb_json_key_array(json, "iterations");
	for (uint32_t i = 0; i < level->count; i++)
		write_item(json, iters, of, i);
	plumb_json_end(json);
	plumb_json_end(json);
}

/* The levels of the main loop are the track's. */
static void
write_loops(struct plumb_json *json, const struct plumb_iters *iters, uint32_t t)
{
	const struct plumb_iteration_track *track = &iters->found.tracks[t];

	plumb_json_key_quantity(json, "cycles", track->cycles ? track->cycles : PLUMB_UNKNOWN);
	plumb_json_key_array(json, "loops");
	for (uint32_t o = 0; o < track->loop_count; o++) {
		const struct plumb_iteration_loop *loop = &track->loops[o];
		const struct plumb_iteration_level *level = &loop->levels[0];
		bool main_loop = o == track->main_loop;

		plumb_json_object(json);
		plumb_json_key_quantity(json, "loop", o + 1);
		plumb_json_key_bool(json, "main", main_loop);
		plumb_json_key_quantity(json, "start_ns", loop->start_ns);
		plumb_json_key_quantity(json, "end_ns", loop->end_ns);
		plumb_json_key_quantity(json, "time_ns", loop->time_ns);
		plumb_json_key_quantity(json, "kernels", loop->kernels);
		plumb_json_key_quantity(json, "period_ops", level->period_ops);
		plumb_json_key_quantity(json, "occurrences", level->count);
		plumb_json_key_text(json, "verdict", plumb_iters_verdicts[level->verdict]);
		plumb_json_key_array(json, "stretches");
		for (uint32_t s = 0; s < track->stretch_count; s++) {
			const struct plumb_iteration_stretch *stretch = &track->stretches[s];

			if (stretch->loop != o)
				continue;
			plumb_json_object(json);
			plumb_json_key_quantity(json, "start_ns", stretch->start_ns);
			plumb_json_key_quantity(json, "end_ns", stretch->end_ns);
			plumb_json_key_quantity(json, "kernels", stretch->end - stretch->first);
			plumb_json_key_quantity(json, "first_iteration", stretch->item);
			plumb_json_key_quantity(json, "iterations", stretch->items);
			plumb_json_end(json);
		}
		plumb_json_end(json);
		plumb_json_key_array(json, "levels");
		for (uint32_t l = 0; !main_loop && l < loop->level_count; l++)
			write_level(json, iters, &(struct level){ &loop->levels[l], t, false });
		plumb_json_end(json);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_outside(struct plumb_json *json, const struct plumb_iters *iters,
              const struct plumb_iteration_track *track)
{
	plumb_json_key_array(json, "outside");
	for (uint32_t s = 0; s < track->stretch_count; s++) {
		const struct plumb_iteration_stretch *stretch = &track->stretches[s];

		if (stretch->loop != PLUMB_NONE)
			continue;
		plumb_json_object(json);
		plumb_json_key_text(json, "where", plumb_iters_odd[plumb_iters_where(track, s)]);
		plumb_json_key_quantity(json, "start_ns", stretch->start_ns);
		plumb_json_key_quantity(json, "end_ns", stretch->end_ns);
		plumb_json_key_quantity(json, "kernels", stretch->end - stretch->first);
		plumb_json_key_quantity(json, "kernel_ns", stretch->kernel_ns);
		plumb_json_key_text(json, "name",
		                    plumb_frame_label(iters->profile, stretch->frame));
		plumb_json_key_quantity(json, "name_ns", stretch->frame_ns);
		plumb_json_key_quantity(json, "period_ops",
		                        stretch->period ? stretch->period : PLUMB_UNKNOWN);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static int
write_track(struct plumb_json *json, const struct plumb_iters *iters, uint32_t t)
{
	const struct plumb_iteration_track *track = &iters->found.tracks[t];
	const struct plumb_profile *p = iters->profile;
	const struct plumb_track *place = &p->tracks[track->track];
	bool known = place->process < p->processes_count;

	plumb_json_object(json);
	plumb_json_key_quantity(json, "track", track->track);
	plumb_json_key_text(json, "role", plumb_iters_roles[track->role]);
	plumb_json_key_quantity(json, "rank",
	                        known ? p->processes[place->process].rank : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "process",
	                        known ? p->processes[place->process].pid : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "device",
	                        track->device < p->devices_count ? track->device : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "stream", place->stream);
	plumb_json_key_quantity(json, "contended_ns",
	                        track->device < p->devices_count
	                                ? p->devices[track->device].contended_ns
	                                : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "ops", track->ops);
	plumb_json_key_quantity(json, "copies", track->copies);
	plumb_json_key_number(json, "op_gap_ns", track->op_gap_ns);
	plumb_json_key_quantity(json, "copy_bytes", track->copy_bytes);
	plumb_json_key_array(json, "levels");
	for (uint32_t l = 0; l < track->level_count; l++)
		write_level(json, iters, &(struct level){ &track->levels[l], t, !l });
	plumb_json_end(json);
	write_loops(json, iters, t);
	write_outside(json, iters, track);
	int code = plumb_iters_path_json(iters->paths, track, json);
	plumb_json_end(json);
	return code;
}

static int
write_json(const struct plumb_iters *iters, FILE *out)
{
	struct plumb_json *json = plumb_view_json_new(out, "iters");
	int code;

	plumb_window_json(iters->profile, json);
	plumb_json_key_bool(json, "newest", iters->found.newest);
	code = plumb_iters_path_json(iters->paths, NULL, json);
	plumb_json_key_array(json, "tracks");
	for (uint32_t t = 0; !code && t < iters->found.count; t++)
		if (plumb_iters_shown(iters, &iters->found.tracks[t]))
			code = write_track(json, iters, t);
	plumb_json_end(json);
	plumb_iters_ranks_json(iters, json);
	if (!code)
		code = plumb_iters_host_json(iters, json);
	plumb_json_end(json);
	return plumb_json_finish(json) < 0 ? -1 : code;
}

/* ---- as a table ---- */

static void
add_item(const struct plumb_iters *iters, uint32_t t, uint32_t loop, uint32_t depth, uint32_t i,
         struct plumb_answer *answer)
{
	const struct plumb_iteration_track *track = &iters->found.tracks[t];
	const struct plumb_iteration *item = &track->loops[loop].levels[depth].items[i];
	const int64_t cells[] = {
		track->track,
		depth,
		i,
		item->start_ns,
		item->end_ns,
		item->end_ns - item->start_ns,
		item->ops,
		item->edits,
		item->interval_ns,
		item->overlap_ns,
		item->elsewhere_ns,
		item->idle_ns,
		item->op_gap_ns,
		item->op_time_ns,
		item->copy_bytes,
		item->outlier,
		depth || loop != track->main_loop ? PLUMB_UNKNOWN : plumb_iters_step(iters, t, i),
		loop + 1,
	};

	for (size_t c = 0; c < sizeof cells / sizeof *cells; c++)
		plumb_answer_integer(answer, cells[c]);
	plumb_iters_counters_cells(iters, t, item, answer);
}

/* Of one loop, if the query says which. */
static void
add_loop(const struct plumb_iters *iters, uint32_t t, uint32_t o, struct plumb_answer *answer)
{
	const struct plumb_iteration_track *track = &iters->found.tracks[t];
	const struct plumb_iteration_loop *loop = &track->loops[o];

	if (iters->loop && iters->loop != o + 1)
		return;
	for (uint32_t l = 0; l < loop->level_count; l++)
		for (uint32_t i = 0; i < loop->levels[l].count; i++)
			add_item(iters, t, o, l, i, answer);
}

/* A step of the host: of the last one it is not known when it ends. */
static void
add_host_step(const struct plumb_iters *iters, uint32_t i, struct plumb_answer *answer)
{
	const struct plumb_host_steps *host = &iters->host;
	int64_t ns = plumb_iters_host_duration(host, i);

	plumb_answer_integer(answer, host->track);
	plumb_answer_integer(answer, 0);
	plumb_answer_integer(answer, i);
	plumb_answer_integer(answer, host->start[i]);
	plumb_answer_integer(answer, ns == PLUMB_UNKNOWN ? ns : host->start[i] + ns);
	plumb_answer_integer(answer, ns);
	for (int c = 6; c < 18; c++)
		plumb_answer_integer(answer, PLUMB_UNKNOWN);
	plumb_iters_counters_cells(iters, 0, NULL, answer);
}

static int
make_answer(const struct plumb_iters *iters, struct plumb_answer *answer, struct plumb_error *error)
{
	static const struct {
		const char *name, *unit;
	} columns[] = {
		{ "track", NULL },      { "level", NULL },        { "iteration", NULL },
		{ "start_ns", "ns" },   { "end_ns", "ns" },       { "duration_ns", "ns" },
		{ "ops", "count" },     { "edits", "count" },     { "interval_ns", "ns" },
		{ "overlap_ns", "ns" }, { "elsewhere_ns", "ns" }, { "idle_ns", "ns" },
		{ "op_gap_ns", "ns" },  { "op_time_ns", "ns" },   { "copy_bytes", "byte" },
		{ "outlier", NULL },    { "step", NULL },         { "loop", NULL },
	};

	*answer = (struct plumb_answer){ .id = "iters", .title = "iterations" };
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
		plumb_answer_column(answer, columns[c].name, columns[c].unit,
		                    PLUMB_SOURCE_IS_MEASURED);
	plumb_iters_counters_columns(iters, answer);
	for (uint32_t i = 0; plumb_iters_host_shown(iters) && i < iters->host.starts; i++)
		add_host_step(iters, i, answer);
	for (uint32_t t = 0; t < iters->found.count; t++) {
		const struct plumb_iteration_track *track = &iters->found.tracks[t];

		for (uint32_t o = 0; plumb_iters_shown(iters, track) && o < track->loop_count; o++)
			add_loop(iters, t, o, answer);
	}
	return plumb_answer_end(answer, error);
}

int
plumb_iters_write(const struct plumb_iters *iters, enum plumb_view_format format, FILE *out,
                  struct plumb_error *error)
{
	struct plumb_answer answer;
	int code;

	if (format == PLUMB_VIEW_JSON)
		return write_json(iters, out) < 0
		               ? plumb_fail(error, PLUMB_ESYSTEM,
		                            "the iterations could not be written")
		               : 0;
	code = make_answer(iters, &answer, error);
	if (!code)
		code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}

int
plumb_view_iters(const struct plumb_profile *profile, const struct plumb_iters_query *query,
                 enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_iters_query wanted = *query;
	struct plumb_iters iters;
	int code;

	if (format != PLUMB_VIEW_JSON) /* which alone has paths */
		wanted.paths = PLUMB_ITERS_NO_PATHS;
	code = plumb_iters_make(profile, &wanted, &iters, error);
	if (!code)
		code = plumb_iters_write(&iters, format, out, error);
	plumb_iters_free(&iters);
	return code;
}
