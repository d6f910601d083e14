/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/divide.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "base/format.h"
#include "model/generated.h"
#include "model/metric.h"
#include "model/user_code.h"

#define MOST 0.5  /* of the metric: a place with more is divided */
#define LESS 0.05 /* of the metric: from here on a line divides what is above it */

/* What holds for a context from the frames above it. */
struct walk {
	uint32_t place;
	double held;       /* by the place that was divided last */
	bool own;          /* there is a line of your code above */
	bool divides;      /* the line of your code is divided */
	bool line, module; /* the place is settled: no further line, no further module */
	bool inside;       /* a module is above, also above the line */
	bool python;       /* a Python frame is above */
};

struct dividing {
	const struct plumb_profile *profile;
	struct plumb_division *division;
	const uint32_t *user_of;
	unsigned char *starts; /* by context: a line of your code, or what was compiled from one */
	unsigned char *candidates; /* by frame: a package's line that can be a place */
	double *inside;     /* by context: its metric and that below, up to lines of your code */
	double *lines;      /* by frame: what is under it as a line of your code; +1: no line */
	double *frames;     /* by frame of a package's line: what is under it */
	double *modules;    /* by number of the module that stands for it */
	struct walk *walks; /* by context */
	double whole;
};

/* ---- modules ---- */

/* Numbers the modules, and folds those that differ in an index only. */
static bool
number_modules(struct dividing *d, uint32_t metric)
{
	const struct plumb_profile *p = d->profile;
	struct plumb_grouping *g = plumb_grouping_new(p, PLUMB_BY_MODULE, NULL);
	uint32_t count = g ? plumb_grouping_count(g) : 0;
	struct plumb_fold_item *items = calloc(count + (size_t)1, sizeof *items);
	struct plumb_stat *stats = calloc(count + (size_t)1, sizeof *stats);
	bool ok = g && items && stats && plumb_grouping_values(g, metric, NULL, stats, NULL) >= 0;

	for (uint32_t r = 0; ok && r < count; r++) {
		const struct plumb_frame *frame = &p->frames[plumb_grouping_rows(g)[r].frame];

		items[r] = (struct plumb_fold_item){ stats[r].count ? plumb_text(p, frame->name)
			                                            : NULL,
			                             plumb_text(p, frame->file), stats[r].sum };
	}
	ok = ok && plumb_folds_make(items, count, (int64_t)d->whole, &d->division->folds) >= 0;
	for (uint32_t f = 0; f < p->frames_count; f++)
		d->division->module_of[f] = PLUMB_NONE;
	for (uint32_t c = 0; ok && c < p->contexts_count; c++)
		if (plumb_context_frame(p, c)->kind == PLUMB_FRAME_MODULE)
			d->division->module_of[p->contexts[c].frame] = plumb_grouping_owner(g, c);
	d->modules = calloc(count + (size_t)1, sizeof *d->modules);
	plumb_grouping_free(g);
	free(items);
	free(stats);
	return ok && d->modules;
}

/* The module that stands for that of FRAME. */
static uint32_t
module_of(const struct plumb_division *division, uint32_t frame)
{
	uint32_t module = division->module_of[frame];

	return module == PLUMB_NONE ? PLUMB_NONE : division->folds.first[module];
}

/* ---- what each frame holds ---- */

enum { NO_CANDIDATE, OF_STANDARD, OF_PACKAGE };

static unsigned char
candidate(const struct plumb_profile *p, const unsigned char *user, uint32_t frame)
{
	const char *file = plumb_text(p, p->frames[frame].file);
	bool standard;

	if (p->frames[frame].kind != PLUMB_FRAME_PYTHON || user[frame] || !file ||
	    !p->frames[frame].line || !plumb_user_code_package(file, &standard) ||
	    plumb_generated_file(file) != PLUMB_NOT_GENERATED)
		return NO_CANDIDATE;
	return standard ? OF_STANDARD : OF_PACKAGE;
}

static void
add_values(struct dividing *d, uint32_t metric)
{
	const struct plumb_profile *p = d->profile;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (v->metric != metric || v->sum <= 0)
			continue;
		d->inside[v->context] += (double)v->sum;
		d->whole += (double)v->sum;
	}
}

/* Adds up what is under the lines of your code, and makes `inside` hold what is below. */
static void
add_up(struct dividing *d)
{
	const struct plumb_profile *p = d->profile;
	uint32_t none = p->frames_count;

	for (uint32_t c = p->contexts_count; c-- > 0;) {
		uint32_t own = d->user_of[c] == PLUMB_NONE ? none : d->user_of[c];

		if (!c || d->starts[c])
			d->lines[own] += d->inside[c];
		else
			d->inside[p->contexts[c].parent] += d->inside[c];
	}
}

/* Marks the contexts at which a line of your code begins. */
static void
mark_starts(struct dividing *d)
{
	const struct plumb_profile *p = d->profile;

	for (uint32_t c = 1; c < p->contexts_count; c++) {
		uint32_t above = d->user_of[p->contexts[c].parent];

		d->starts[c] = d->division->user[p->contexts[c].frame] || d->user_of[c] != above;
	}
}

/* Adds what is under the modules and the packages' lines. A frame inside another one of the same
 * kind counts once. */
static bool
add_frames(struct dividing *d)
{
	const struct plumb_profile *p = d->profile;
	/* By context: the one at which its line of your code begins. By frame and by module: the
	 * latest context that was counted. */
	uint32_t *start = calloc(p->contexts_count + (size_t)1, sizeof *start);
	uint32_t *lines = calloc(p->frames_count + (size_t)1, sizeof *lines);
	uint32_t *modules = calloc(p->frames_count + (size_t)1, sizeof *modules);
	bool ok = start && lines && modules;

	for (uint32_t c = 1; ok && c < p->contexts_count; c++) {
		uint32_t frame = p->contexts[c].frame, module = module_of(d->division, frame);
		uint32_t *latest;
		double *sum;

		start[c] = d->starts[c] ? c : start[p->contexts[c].parent];
		if (d->starts[c] || (module == PLUMB_NONE && !d->candidates[frame]))
			continue;
		latest = module == PLUMB_NONE ? &lines[frame] : &modules[module];
		sum = module == PLUMB_NONE ? &d->frames[frame] : &d->modules[module];
		if (*latest && p->contexts[*latest].last >= c && start[*latest] == start[c])
			continue;
		*latest = c;
		*sum += d->inside[c];
	}
	free(start);
	free(lines);
	free(modules);
	return ok;
}

/* ---- the place of each context ---- */

static void
enter_module(const struct dividing *d, uint32_t frame, struct walk *w)
{
	uint32_t module = module_of(d->division, frame);
	double held = module == PLUMB_NONE ? 0 : d->modules[module];
	bool large = held > MOST * d->whole;

	/* Without Python frames nobody asked for lines. */
	w->divides = w->divides || (large && w->python && !w->inside);
	if (w->divides && w->python && !w->module) {
		if (!large || !w->inside || w->held - held >= LESS * d->whole) {
			w->place = frame;
			w->held = held;
		}
		w->module = !large;
		w->line = false;
	}
	w->inside = true;
}

static void
enter_line(const struct dividing *d, uint32_t frame, struct walk *w)
{
	double held = d->frames[frame];
	bool large = held > MOST * d->whole;

	w->python = true;
	if (d->candidates[frame] < (w->own ? OF_STANDARD : OF_PACKAGE) || !w->divides ||
	    w->module || w->line)
		return;
	if (!large || w->held - held >= LESS * d->whole) {
		w->place = frame;
		w->held = held;
	}
	w->line = !large;
}

static void
find_places(struct dividing *d)
{
	const struct plumb_profile *p = d->profile;
	uint32_t none = p->frames_count;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t frame = p->contexts[c].frame, kind = p->frames[frame].kind;
		struct walk *w = &d->walks[c];

		if (c)
			*w = d->walks[p->contexts[c].parent];
		if (!c || d->starts[c]) {
			uint32_t own = d->user_of[c] == PLUMB_NONE ? none : d->user_of[c];

			*w = (struct walk){ .place = d->user_of[c],
				            .held = d->lines[own],
				            .own = d->user_of[c] != PLUMB_NONE,
				            .divides = d->lines[own] > MOST * d->whole,
				            .inside = w->inside,
				            .python = c != 0 };
		} else if (kind == PLUMB_FRAME_MODULE) {
			enter_module(d, frame, w);
		} else if (kind == PLUMB_FRAME_PYTHON) {
			enter_line(d, frame, w);
		}
		d->division->place_of[c] = w->place;
	}
}

/* Which places there are, and which line is divided. The place of a fold is one frame. */
static bool
name_places(struct dividing *d)
{
	const struct plumb_profile *p = d->profile;
	struct plumb_division *division = d->division;
	uint32_t *frames = calloc(p->frames_count + (size_t)1, sizeof *frames);
	unsigned char *divided = calloc(p->frames_count + (size_t)1, 1);

	for (uint32_t f = 0; f < p->frames_count; f++) {
		division->owner[f] = PLUMB_NONE;
		if (frames)
			frames[f] = PLUMB_NONE;
	}
	for (uint32_t c = 0; frames && divided && c < p->contexts_count; c++) {
		uint32_t place = division->place_of[c], own = d->user_of[c], module;

		if (place == PLUMB_NONE || place == own)
			continue;
		module = module_of(division, place);
		if (module != PLUMB_NONE) {
			if (frames[module] == PLUMB_NONE)
				frames[module] = place;
			place = division->place_of[c] = frames[module];
		}
		if (division->owner[place] == PLUMB_NONE)
			division->owner[place] = own;
		own = own == PLUMB_NONE ? p->frames_count : own;
		if (divided[own])
			continue;
		divided[own] = 1;
		division->lines += own < p->frames_count;
		division->share += d->whole > 0 ? d->lines[own] / d->whole : 0;
		if (own < p->frames_count &&
		    (division->line == PLUMB_NONE || d->lines[own] > d->lines[division->line]))
			division->line = own;
	}
	free(frames);
	free(divided);
	return frames && divided;
}

static bool
divide(struct dividing *d, uint32_t metric)
{
	const struct plumb_profile *p = d->profile;
	size_t contexts = p->contexts_count + (size_t)1, frames = p->frames_count + (size_t)2;
	struct plumb_division *division = d->division;

	division->place_of = calloc(contexts, sizeof *division->place_of);
	division->owner = calloc(frames, sizeof *division->owner);
	division->module_of = calloc(frames, sizeof *division->module_of);
	d->starts = calloc(contexts, 1);
	d->candidates = calloc(frames, 1);
	d->inside = calloc(contexts, sizeof *d->inside);
	d->lines = calloc(frames, sizeof *d->lines);
	d->frames = calloc(frames, sizeof *d->frames);
	d->walks = calloc(contexts, sizeof *d->walks);
	if (!division->place_of || !division->owner || !division->module_of || !d->starts ||
	    !d->candidates || !d->inside || !d->lines || !d->frames || !d->walks)
		return false;
	add_values(d, metric);
	if (!number_modules(d, metric))
		return false;
	for (uint32_t f = 0; f < p->frames_count; f++)
		d->candidates[f] = candidate(p, division->user, f);
	mark_starts(d);
	add_up(d);
	if (!add_frames(d))
		return false;
	find_places(d);
	return name_places(d);
}

struct plumb_division *
plumb_division_new(const struct plumb_profile *profile, const unsigned char *user,
                   const uint32_t *user_of, uint32_t metric)
{
	struct plumb_division *division = calloc(1, sizeof *division);
	struct dividing d = { .profile = profile, .division = division, .user_of = user_of };
	bool ok;

	if (!division)
		return NULL;
	if (plumb_metric_aggregation(metric) != PLUMB_SUM)
		metric = plumb_metric_default(profile);
	division->user = user;
	division->line = PLUMB_NONE;
	ok = divide(&d, metric);
	free(d.starts);
	free(d.candidates);
	free(d.inside);
	free(d.lines);
	free(d.frames);
	free(d.modules);
	free(d.walks);
	if (ok)
		return division;
	plumb_division_free(division);
	return NULL;
}

void
plumb_division_free(struct plumb_division *division)
{
	if (!division)
		return;
	free(division->place_of);
	free(division->owner);
	free(division->module_of);
	plumb_folds_free(&division->folds);
	free(division);
}

/* ---- words ---- */

bool
plumb_division_is_part(const struct plumb_division *division, uint32_t frame)
{
	return division && frame != PLUMB_NONE && !division->user[frame];
}

uint32_t
plumb_division_line(const struct plumb_division *division, uint32_t frame)
{
	return plumb_division_is_part(division, frame) ? division->owner[frame] : frame;
}

uint32_t
plumb_division_count(const struct plumb_division *division, uint32_t frame)
{
	uint32_t module = division ? module_of(division, frame) : PLUMB_NONE;

	return module == PLUMB_NONE ? 1 : division->folds.count[module];
}

const char *
plumb_division_name(const struct plumb_profile *profile, const struct plumb_division *division,
                    uint32_t frame)
{
	const struct plumb_frame *f = &profile->frames[frame];
	const char *file = plumb_text(profile, f->file), *rest;
	uint32_t module = division ? module_of(division, frame) : PLUMB_NONE;
	bool standard;

	if (module != PLUMB_NONE && division->folds.label[module])
		return division->folds.label[module];
	if (f->kind != PLUMB_FRAME_PYTHON)
		return plumb_frame_label(profile, frame);
	rest = file ? plumb_user_code_package(file, &standard) : NULL;
	return !file ? "?" : rest && !(division && division->user[frame]) ? rest : file;
}

char *
plumb_division_text(const struct plumb_profile *profile, const struct plumb_division *division,
                    uint32_t frame, bool full, char *text, size_t size)
{
	const char *name = plumb_division_name(profile, division, frame), *dot;
	const char *file = plumb_text(profile, profile->frames[frame].file);
	uint32_t count = plumb_division_count(division, frame);
	bool standard = false, part = plumb_division_is_part(division, frame);

	if (profile->frames[frame].kind != PLUMB_FRAME_PYTHON) {
		/* A name with several indexes is not of layers alone. */
		dot = count > 1 ? strchr(name, '*') : NULL;
		if (count > 1)
			snprintf(text, size, "%s, %" PRIu32 " %s", name, count,
			         dot && strchr(dot + 1, '*') ? "modules" : "layers");
		else
			snprintf(text, size, "%s", name);
		return text;
	}
	if (part && file)
		plumb_user_code_package(file, &standard);
	snprintf(text, size, "%s:%" PRIu32 "%s", full || part ? name : plumb_path_base(name),
	         profile->frames[frame].line,
	         !part      ? ""
	         : standard ? " (standard library)"
	                    : " (package)");
	return text;
}
