/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): frames once, and
 * profiles of stacks with weights, which the viewer offers in a list. Without a metric asked for
 * there is one for each metric that is a time; with one, all tracks together and then, where there
 * are several, each track.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "export/export.h"
#include "export/names.h"
#include "model/metric.h"

struct speedscope {
	const struct plumb_profile *profile;
	struct plumb_json *json;
	FILE *out;
	uint32_t *frames; /* by frame and mark: its number in the file, + 1 */
	uint32_t *stack;  /* of contexts */
};

/* ---- frames ---- */

static void
write_frame(struct speedscope *s, uint32_t frame, unsigned mark)
{
	struct plumb_export_text name = { 0 };
	uint32_t line;
	const char *file = plumb_export_source(s->profile, frame, &line);

	plumb_export_append(&name, plumb_frame_label(s->profile, frame));
	plumb_export_append(&name, plumb_export_mark_texts[mark]);
	char *end = plumb_vec_add(&name.bytes); /* zeroed: terminates */
	plumb_json_object(s->json);
	plumb_json_key_text(s->json, "name", end && !name.failed ? name.bytes.items : "?");
	if (file)
		plumb_json_key_text(s->json, "file", file);
	if (line)
		plumb_json_key_quantity(s->json, "line", line);
	plumb_json_end(s->json);
	plumb_vec_free(&name.bytes);
}

static void
write_frames(struct speedscope *s)
{
	uint32_t count = 0;

	plumb_json_key(s->json, "shared");
	plumb_json_object(s->json);
	plumb_json_key(s->json, "frames");
	plumb_json_array(s->json);
	for (uint32_t c = 1; c < s->profile->contexts_count; c++) {
		uint32_t frame = s->profile->contexts[c].frame;
		unsigned mark = plumb_export_mark(s->profile, c);
		uint32_t *number = &s->frames[(size_t)frame * PLUMB_EXPORT_MARKS + mark];
		if (*number)
			continue;
		*number = ++count;
		write_frame(s, frame, mark);
	}
	plumb_json_end(s->json);
	plumb_json_end(s->json);
}

/* ---- profiles ---- */

static bool
belongs_to(const struct plumb_value *value, uint32_t metric, uint32_t track)
{
	return value->metric == metric && (track == PLUMB_NONE || value->track == track) &&
	       value->sum > 0;
}

static void
write_stack(struct speedscope *s, uint32_t context)
{
	uint32_t depth = s->profile->contexts[context].depth;

	for (uint32_t i = depth; i > 0; i--) {
		s->stack[i - 1] = context;
		context = s->profile->contexts[context].parent;
	}
	plumb_json_array(s->json);
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t c = s->stack[i];
		if (plumb_export_folds(s->profile, c))
			continue;
		size_t key = (size_t)s->profile->contexts[c].frame * PLUMB_EXPORT_MARKS +
		             plumb_export_mark(s->profile, c);
		plumb_json_unsigned(s->json, s->frames[key] - 1);
	}
	plumb_json_end(s->json);
}

/* The sum at the context of VALUES[*AT], over all values that belong to it. *AT moves to the next
 * context. */
static int64_t
next_context(const struct speedscope *s, uint32_t metric, uint32_t track, uint32_t *at)
{
	uint32_t context = s->profile->values[*at].context;
	struct plumb_stat sum = { 0 };

	for (; *at < s->profile->values_count && s->profile->values[*at].context == context;
	     ++*at) {
		const struct plumb_value *v = &s->profile->values[*at];
		struct plumb_stat one = plumb_value_stat(v);
		if (belongs_to(v, metric, track))
			plumb_stat_merge(&sum, &one);
	}
	return sum.sum;
}

static int64_t
total_of(const struct speedscope *s, uint32_t metric, uint32_t track)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < s->profile->values_count; i++)
		if (belongs_to(&s->profile->values[i], metric, track) &&
		    __builtin_add_overflow(total, s->profile->values[i].sum, &total))
			return INT64_MAX;
	return total;
}

static const char *
unit_of(const struct plumb_profile *profile, uint32_t metric)
{
	const char *unit = plumb_profile_metric(profile, metric).unit;

	return !strcmp(unit, "ns") ? "nanoseconds" : !strcmp(unit, "byte") ? "bytes" : "none";
}

static void
write_profile(struct speedscope *s, uint32_t metric, uint32_t track, int64_t total)
{
	const char *of = plumb_profile_metric(s->profile, metric).name;
	char name[512], place[200];

	snprintf(name, sizeof name, "%.300s", of);
	if (track != PLUMB_NONE) {
		plumb_export_track(s->profile, track, place, sizeof place);
		snprintf(name, sizeof name, "%.300s, %s", of, place);
	}
	plumb_json_object(s->json);
	plumb_json_key_text(s->json, "type", "sampled");
	plumb_json_key_text(s->json, "name", name);
	plumb_json_key_text(s->json, "unit", unit_of(s->profile, metric));
	plumb_json_key_quantity(s->json, "startValue", 0);
	plumb_json_key_quantity(s->json, "endValue", total);
	plumb_json_key(s->json, "samples");
	plumb_json_array(s->json);
	for (uint32_t at = 0; at < s->profile->values_count && !ferror(s->out);) {
		uint32_t context = s->profile->values[at].context;
		if (next_context(s, metric, track, &at) > 0)
			write_stack(s, context);
	}
	plumb_json_end(s->json);
	plumb_json_key(s->json, "weights");
	plumb_json_array(s->json);
	for (uint32_t at = 0; at < s->profile->values_count && !ferror(s->out);) {
		int64_t sum = next_context(s, metric, track, &at);
		if (sum > 0)
			plumb_json_integer(s->json, sum);
	}
	plumb_json_end(s->json);
	plumb_json_end(s->json);
}

/* Over all tracks, and then each track where there are several. */
static void
write_metric(struct speedscope *s, uint32_t metric, bool each_track)
{
	int64_t total = total_of(s, metric, PLUMB_NONE);
	uint32_t tracks = 0;

	if (total <= 0)
		return;
	write_profile(s, metric, PLUMB_NONE, total);
	for (uint32_t t = 0; each_track && t < s->profile->tracks_count; t++)
		tracks += total_of(s, metric, t) > 0;
	for (uint32_t t = 0; tracks > 1 && t < s->profile->tracks_count; t++) {
		total = total_of(s, metric, t);
		if (total > 0)
			write_profile(s, metric, t, total);
	}
}

static bool
is_shown(const struct plumb_export_options *options, uint32_t metric)
{
	if (options->metric)
		return metric == options->metric;
	return metric < PLUMB_METRIC_COUNT && plumb_metrics[metric].name &&
	       plumb_export_adds_up(metric) && !strcmp(plumb_metrics[metric].unit, "ns");
}

static int
write_all(struct speedscope *s, const struct plumb_export_options *options)
{
	const char *command = plumb_text(s->profile, s->profile->run.command);
	uint32_t first = options->metric ? options->metric : options->main;

	plumb_json_object(s->json);
	plumb_json_key_text(s->json, "$schema",
	                    "https://www.speedscope.app/file-format-schema.json");
	plumb_json_key_text(s->json, "exporter", "plumb");
	if (command)
		plumb_json_key_text(s->json, "name", command);
	plumb_json_key_quantity(s->json, "activeProfileIndex", 0);
	write_frames(s);
	plumb_json_key(s->json, "profiles");
	plumb_json_array(s->json);
	if (is_shown(options, first))
		write_metric(s, first, options->metric != 0);
	for (uint32_t m = 1; m < PLUMB_METRIC_COUNT; m++)
		if (m != first && is_shown(options, m))
			write_metric(s, m, false);
	plumb_json_end(s->json);
	plumb_json_end(s->json);
	return plumb_json_finish(s->json);
}

static int
speedscope_write(const struct plumb_profile *profile, const struct plumb_export_options *options,
                 FILE *out, struct plumb_error *error)
{
	struct speedscope s = { .profile = profile, .out = out };
	int64_t any = 0;
	uint32_t deepest = 0;
	int code = 0;

	for (uint32_t m = 1; !any && m < PLUMB_METRIC_COUNT; m++)
		if (is_shown(options, m))
			any = total_of(&s, m, PLUMB_NONE);
	if (options->metric)
		any = total_of(&s, options->metric, PLUMB_NONE);
	if (!any)
		return plumb_fail(
			error, PLUMB_EEMPTY,
			"there are no values of %s in this profile; choose another --metric",
			options->metric ? plumb_profile_metric(profile, options->metric).name
					: "any metric of time");
	for (uint32_t c = 0; c < profile->contexts_count; c++)
		if (profile->contexts[c].depth > deepest)
			deepest = profile->contexts[c].depth;
	s.frames = calloc((size_t)profile->frames_count * PLUMB_EXPORT_MARKS + 1, sizeof *s.frames);
	s.stack = calloc((size_t)deepest + 1, sizeof *s.stack);
	s.json = s.frames && s.stack ? plumb_json_new(out) : NULL;
	if (!s.json || (write_all(&s, options) < 0 && !ferror(out)))
		code = plumb_fail_memory(error, "to export the profile");
	free(s.frames);
	free(s.stack);
	return code;
}

const struct plumb_export_format plumb_export_speedscope = {
	.name = "speedscope",
	.metric = true,
	.write = speedscope_write,
};
