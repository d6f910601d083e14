/* SPDX-License-Identifier: Apache-2.0 */
/* What JSON has about iterations besides their times: what filled the intervals, marks, and steps
 * of the host. */
#include <math.h>

#include "analyze/steps/words.h"
#include "view/iters_private.h"
#include "view/part.h"

#define ROWS_JSON 8

void
plumb_iters_line_json(const struct plumb_iters *iters, const struct plumb_step_key *key,
                      struct plumb_json *json)
{
	static const struct plumb_frame none = { .file = PLUMB_NONE, .source_file = PLUMB_NONE };
	const struct plumb_division *division = iters->steps.division;
	const struct plumb_profile *p = iters->profile;
	bool part = key && plumb_division_is_part(division, key->line);
	uint32_t frame = part  ? plumb_division_line(division, key->line)
	                 : key ? plumb_step_line(key)
	                       : PLUMB_NONE;
	const struct plumb_frame *f = frame < p->frames_count ? &p->frames[frame] : &none;
	bool python = f->kind == PLUMB_FRAME_PYTHON;

	plumb_json_key_text(json, "file", plumb_text(p, python ? f->file : f->source_file));
	plumb_json_key_line(json, "line", python ? f->line : f->source_line);
	plumb_part_json(json, p, division, part ? key->line : PLUMB_NONE);
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
	plumb_iters_line_json(iters, key, json);
	plumb_json_key_text(json, "text",
	                    key ? plumb_step_name(line, key, text, sizeof text) : NULL);
	plumb_json_key_quantity(json, "ns", shown->ns);
	plumb_json_key_quantity(json, "samples", sample ? (int64_t)shown->count : PLUMB_UNKNOWN);
	plumb_json_key_number(json, "share", all > 0 ? (double)shown->ns / (double)all : 0);
	plumb_json_end(json);
}

static void
write_one(const struct plumb_iters *iters, uint32_t t, const struct plumb_filled_one *one,
          struct plumb_json *json)
{
	struct plumb_step_shown shown[PLUMB_STEP_SHOWN];
	uint32_t count =
		plumb_step_rows_show(&iters->steps.tracks[t].moments, &one->rows, ROWS_JSON, shown);

	plumb_json_key_array(json, "filled");
	for (uint32_t i = 0; i < count; i++)
		write_row(iters, &iters->steps.tracks[t].moments, &shown[i], one->ns, json);
	plumb_json_end(json);
}

void
plumb_iters_filled_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json)
{
	static const char *const what[] = { NULL, "intervals", "idle", NULL };
	const struct plumb_filled *filled = &iters->steps.tracks[t].filled;

	plumb_json_key_text(json, "filled_what", what[filled->what]);
	write_one(iters, t, &filled->all, json);
}

void
plumb_iters_filled_item(const struct plumb_iters *iters, uint32_t t, uint32_t i,
                        struct plumb_json *json)
{
	static const struct plumb_filled_one none = { .thread = PLUMB_NONE };
	const struct plumb_filled *filled = &iters->steps.tracks[t].filled;
	const struct plumb_filled_one *one = i < filled->count ? &filled->items[i] : &none;

	plumb_json_key_quantity(json, "launch_thread",
	                        one->thread == PLUMB_NONE ? PLUMB_UNKNOWN : one->thread);
	write_one(iters, t, one, json);
	plumb_json_key_quantity(json, "contended_ns", iters->steps.tracks[t].contended[i]);
}

void
plumb_iters_marked_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json)
{
	const struct plumb_marked *marked = &iters->steps.marked[t];

	plumb_json_key(json, "marked");
	if (marked->frame == PLUMB_NONE || !marked->steps) {
		plumb_json_null(json);
		return;
	}
	plumb_json_object(json);
	plumb_json_key_text(json, "name", marked->name);
	plumb_json_key_quantity(json, "steps", marked->steps);
	plumb_json_key_quantity(json, "agree", marked->agree);
	plumb_json_end(json);
}

int
plumb_iters_host_json(const struct plumb_iters *iters, struct plumb_json *json)
{
	const struct plumb_host_steps *host = &iters->host;
	struct plumb_iteration_stat stat;

	plumb_json_key(json, "host");
	if (!plumb_iters_host_shown(iters)) {
		plumb_json_null(json);
		return 0;
	}
	if (plumb_iters_host_measure(host, &stat) < 0) {
		plumb_json_null(json);
		return -1;
	}
	plumb_json_object(json);
	plumb_json_key_text(json, "marker", *host->name ? host->name : NULL);
	plumb_json_key_quantity(json, "count", llround(host->count));
	plumb_json_key_quantity(json, "track",
	                        host->track == PLUMB_NONE ? PLUMB_UNKNOWN : host->track);
	plumb_iters_stat_json(json, "duration_ns", &stat);
	plumb_json_key_array(json, "iterations");
	for (uint32_t i = 0; i < host->starts; i++) {
		plumb_json_object(json);
		plumb_json_key_quantity(json, "start_ns", host->start[i]);
		plumb_json_key_quantity(json, "duration_ns", plumb_iters_host_duration(host, i));
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
	return 0;
}
