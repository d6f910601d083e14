/* SPDX-License-Identifier: Apache-2.0 */
#include "export/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/metric.h"

#define BACKWARD " [backward]"
#define ACCUMULATION " [gradient accumulation]"
#define TRUNCATED " [deeper frames not kept]"

/* Indexed by PLUMB_CONTEXT_*. */
const char *const plumb_export_mark_texts[PLUMB_EXPORT_MARKS] = {
	"",        BACKWARD,           ACCUMULATION,           BACKWARD ACCUMULATION,
	TRUNCATED, BACKWARD TRUNCATED, ACCUMULATION TRUNCATED, BACKWARD ACCUMULATION TRUNCATED,
};

void
plumb_export_append(struct plumb_export_text *text, const char *more)
{
	size_t length = strlen(more);
	uint64_t wanted = (uint64_t)text->bytes.count + length;

	if (wanted > text->bytes.capacity) {
		char *grown = plumb_vec_grow(text->bytes.items, &text->bytes.capacity, wanted, 1);
		if (!grown) {
			text->failed = true;
			return;
		}
		text->bytes.items = grown;
	}
	if (length)
		memcpy(text->bytes.items + text->bytes.count, more, length);
	text->bytes.count = (uint32_t)wanted;
}

unsigned
plumb_export_mark(const struct plumb_profile *profile, uint32_t context)
{
	const struct plumb_context *c = &profile->contexts[context];
	uint32_t before = c->parent == PLUMB_NONE ? 0 : profile->contexts[c->parent].flags;

	return c->flags & ~before & (PLUMB_EXPORT_MARKS - 1);
}

bool
plumb_export_folds(const struct plumb_profile *profile, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(profile, context);
	const char *file =
		frame->kind == PLUMB_FRAME_PYTHON ? plumb_text(profile, frame->file) : NULL;

	return file &&
	       (!strncmp(file, "<frozen importlib.", 18) || !strcmp(file, "<frozen zipimport>"));
}

const char *
plumb_export_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *
plumb_export_source(const struct plumb_profile *profile, uint32_t frame, uint32_t *line)
{
	const struct plumb_frame *f = &profile->frames[frame];
	bool own = f->kind != PLUMB_FRAME_NATIVE && f->kind != PLUMB_FRAME_MODULE;
	const char *file = plumb_text(profile, f->source_file);

	*line = f->source_line;
	if (!file && own) {
		*line = f->line;
		file = plumb_text(profile, f->file);
	}
	if (file && *file)
		return file;
	*line = 0;
	return NULL;
}

void
plumb_export_label(const struct plumb_profile *profile, uint32_t context,
                   struct plumb_export_text *text)
{
	uint32_t frame = profile->contexts[context].frame, line;
	const char *file = plumb_export_source(profile, frame, &line);
	char number[16];

	plumb_export_append(text, plumb_frame_label(profile, frame));
	if (file && profile->frames[frame].kind != PLUMB_FRAME_KERNEL) {
		plumb_export_append(text, " (");
		plumb_export_append(text, plumb_export_base(file));
		snprintf(number, sizeof number, line ? ":%" PRIu32 ")" : ")", line);
		plumb_export_append(text, number);
	}
	plumb_export_append(text, plumb_export_mark_texts[plumb_export_mark(profile, context)]);
}

void
plumb_export_track(const struct plumb_profile *profile, uint32_t track, char *name, size_t size)
{
	const struct plumb_track *t = &profile->tracks[track];
	const char *own = plumb_text(profile, t->name);
	const struct plumb_process *process =
		t->process < profile->processes_count ? &profile->processes[t->process] : NULL;
	char of[64] = "", device[40] = "";

	if (process && profile->processes_count > 1 && process->rank != PLUMB_UNKNOWN)
		snprintf(of, sizeof of, " of rank %" PRId64, process->rank);
	else if (process && profile->processes_count > 1 && process->pid != PLUMB_UNKNOWN)
		snprintf(of, sizeof of, " of process %" PRId64, process->pid);
	if (t->device < profile->devices_count &&
	    profile->devices[t->device].ordinal != PLUMB_UNKNOWN)
		snprintf(device, sizeof device, " on device %" PRId64,
		         profile->devices[t->device].ordinal);
	if (t->kind == PLUMB_TRACK_STREAM && t->stream != PLUMB_UNKNOWN)
		snprintf(name, size, "stream %" PRId64 "%s%s", t->stream, device, of);
	else if (t->kind == PLUMB_TRACK_STREAM)
		snprintf(name, size, "stream%s%s", device, of);
	else if (t->tid != PLUMB_UNKNOWN)
		snprintf(name, size, "thread %" PRId64 "%s%.60s%s%s", t->tid, own ? " (" : "",
		         own ? own : "", own ? ")" : "", of);
	else
		snprintf(name, size, "thread %.60s%s", own ? own : "?", of);
}

void
plumb_export_memory(const struct plumb_profile *profile, uint32_t track, const char *what,
                    char *name, size_t size)
{
	const char *own = plumb_text(profile, profile->tracks[track].name);
	bool driver = own && !strcmp(own, "driver");

	snprintf(name, size, "memory of %s%.100s: %s", driver ? "the " : "", own ? own : "?", what);
}

bool
plumb_export_counter_next(const struct plumb_profile *profile, uint32_t *at,
                          struct plumb_counter_series *series, const char **unit, double *divisor)
{
	while (plumb_counter_series_next(profile, at, series)) {
		bool ppm = series->unit && !strcmp(series->unit, "ppm");

		if (!series->name || series->device >= profile->devices_count ||
		    series->process >= profile->processes_count)
			continue;
		*unit = ppm ? "%" : series->unit;
		*divisor = ppm ? 1e4 : 1;
		return true;
	}
	return false;
}

bool
plumb_export_adds_up(uint32_t metric)
{
	return metric && plumb_metric_aggregation(metric) == PLUMB_SUM;
}
