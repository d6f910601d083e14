/* SPDX-License-Identifier: Apache-2.0 */
/* The names and places of a report's rows and nodes. */
#include <inttypes.h>
#include <string.h>

#include "analyze/phase.h"
#include "base/format.h"
#include "model/user_code.h"
#include "view/report_private.h"

static const char *
none_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

char *
plumb_report_user_text(const struct plumb_report_place *place, char *text, size_t size)
{
	const struct plumb_user_place *shown = &place->shown;

	if (shown->file || shown->function)
		return plumb_user_place_text(shown, !shown->function, text, size);
	snprintf(text, size, "%s", PLUMB_DASH);
	return text;
}

static void
set_user(const struct plumb_report *report, uint32_t frame, struct plumb_report_place *place)
{
	struct plumb_user_place user = plumb_user_place(report->profile, frame);

	place->user_file = user.file;
	place->user_line = user.line;
	place->user_function = user.function;
	place->shown = user;
}

/* The path of FRAME's code object. The frame's file is the object's build id or its path. */
static const char *
library_of(const struct plumb_profile *p, const struct plumb_frame *frame)
{
	if (frame->kind != PLUMB_FRAME_NATIVE || frame->file == PLUMB_NONE)
		return NULL;
	for (uint32_t i = 0; i < p->code_objects_count; i++)
		if (p->code_objects[i].build_id == frame->file ||
		    p->code_objects[i].path == frame->file)
			return plumb_text(p, p->code_objects[i].path);
	return NULL;
}

void
plumb_report_frame_place(const struct plumb_report *report, uint32_t frame,
                         struct plumb_report_place *place)
{
	const struct plumb_frame *f = &report->profile->frames[frame];

	place->name = plumb_frame_label(report->profile, frame);
	place->kind = plumb_frame_kind_names[f->kind];
	place->file = none_if_empty(plumb_text(report->profile, f->file));
	place->line = f->line;
	place->source_file = none_if_empty(plumb_text(report->profile, f->source_file));
	place->source_line = f->source_line;
	place->library = library_of(report->profile, f);
}

static void
set_process(const struct plumb_process *process, struct plumb_report_place *place)
{
	place->pid = process ? process->pid : PLUMB_UNKNOWN;
	place->rank = process ? process->rank : PLUMB_UNKNOWN;
}

/* The process or the ROW's rank. */
static void
set_where(const struct plumb_report *report, const struct plumb_group_row *row,
          struct plumb_report_place *place)
{
	const struct plumb_profile *p = report->profile;
	const struct plumb_process *process;
	const char *command;
	size_t used;

	place->name = place->buffer;
	if (row->process >= p->processes_count) {
		place->kind = "rank";
		place->rank = row->rank;
		snprintf(place->buffer, sizeof place->buffer, "rank %" PRId64, row->rank);
		return;
	}
	process = &p->processes[row->process];
	command = none_if_empty(plumb_text(p, process->command));
	set_process(process, place);
	place->kind = "process";
	snprintf(place->buffer, sizeof place->buffer, "process %" PRId64, process->pid);
	used = strlen(place->buffer);
	if (process->rank != PLUMB_UNKNOWN)
		used += (size_t)snprintf(place->buffer + used, sizeof place->buffer - used,
		                         " (rank %" PRId64 ")", process->rank);
	if (command)
		snprintf(place->buffer + used, sizeof place->buffer - used, " %s", command);
}

static void
set_track(const struct plumb_report *report, uint32_t track, struct plumb_report_place *place)
{
	const struct plumb_profile *p = report->profile;
	const struct plumb_track *t = &p->tracks[track];
	const char *name = none_if_empty(plumb_text(p, t->name));
	const struct plumb_process *own =
		t->process < p->processes_count ? &p->processes[t->process] : NULL;
	int64_t ordinal =
		t->device < p->devices_count ? p->devices[t->device].ordinal : PLUMB_UNKNOWN;
	char process[80] = "", device[40] = "";

	if (own && own->pid != PLUMB_UNKNOWN && p->processes_count > 1)
		snprintf(process, sizeof process, " of process %" PRId64, own->pid);
	if (process[0] && own->rank != PLUMB_UNKNOWN)
		snprintf(strchr(process, '\0'), 40, " (rank %" PRId64 ")", own->rank);
	set_process(own, place);
	if (ordinal != PLUMB_UNKNOWN)
		snprintf(device, sizeof device, " on device %" PRId64, ordinal);
	place->kind = t->kind == PLUMB_TRACK_STREAM   ? "stream"
	              : t->kind == PLUMB_TRACK_MEMORY ? "memory"
	                                              : "thread";
	if (t->kind == PLUMB_TRACK_MEMORY)
		snprintf(place->buffer, sizeof place->buffer, "memory of %.60s%s",
		         name ? name : "?", process);
	else if (t->kind == PLUMB_TRACK_STREAM)
		snprintf(place->buffer, sizeof place->buffer, "stream %" PRId64 "%s%s", t->stream,
		         device, process);
	else
		snprintf(place->buffer, sizeof place->buffer, "thread %" PRId64 "%s%.60s%s%s",
		         t->tid, name ? " (" : "", name ? name : "", name ? ")" : "", process);
	place->name = place->buffer;
}

static void
clear_place(struct plumb_report_place *place)
{
	memset(place, 0, sizeof *place);
	place->pid = place->rank = PLUMB_UNKNOWN;
	place->part = PLUMB_NONE;
	place->folded = 1;
}

void
plumb_report_row_place(const struct plumb_report *report, uint32_t row,
                       struct plumb_report_place *place)
{
	const struct plumb_group_row *r = &plumb_grouping_rows(report->grouping)[row];

	clear_place(place);
	if (r->track != PLUMB_NONE)
		set_track(report, r->track, place);
	else if (r->phase != PLUMB_NONE)
		place->name = plumb_phase_names[r->phase], place->kind = "phase";
	else if (r->frame == PLUMB_NONE)
		set_where(report, r, place);
	else
		plumb_report_frame_place(report, r->frame, place);
	place->shapes = plumb_text(report->profile, r->shapes);
	place->line = r->line;
	/* A native row is a whole function. A kernel's line is where it begins. */
	if (r->line == 0 && report->by != PLUMB_BY_KERNEL)
		place->source_line = 0;
	if ((report->by == PLUMB_BY_LINE || report->by == PLUMB_BY_USER_LINE) &&
	    r->kind == PLUMB_FRAME_NATIVE)
		place->file = r->line ? place->source_file : place->library;
	if (report->by == PLUMB_BY_LIBRARY) {
		place->source_file = NULL;
		if (place->library)
			place->name = plumb_path_base(place->library);
	}
	set_user(report, report->row_user[row], place);
	place->shown = plumb_user_place(report->profile, report->row_place[row]);
	if (plumb_division_is_part(report->division, report->row_place[row]))
		place->part = report->row_place[row];
	if (report->by == PLUMB_BY_USER_LINE && place->part != PLUMB_NONE) {
		place->name = plumb_division_name(report->profile, report->division, place->part);
		place->folded = plumb_division_count(report->division, place->part);
	}
	if (report->folds.label && report->folds.label[row]) {
		place->name = report->folds.label[row];
		place->folded = report->folds.count[row];
	}
	place->usual = report->folds.usual ? report->folds.usual[row] : 0;
}

void
plumb_report_context_place(const struct plumb_report *report, uint32_t context,
                           struct plumb_report_place *place)
{
	clear_place(place);
	plumb_report_frame_place(report, report->profile->contexts[context].frame, place);
	set_user(report, report->user_of[context], place);
}

void
plumb_report_node_place(const struct plumb_report *report, const struct plumb_tree_node *node,
                        struct plumb_report_place *place)
{
	if (node->row != PLUMB_NONE)
		plumb_report_row_place(report, node->row, place);
	else
		plumb_report_context_place(report, node->context, place);
}
