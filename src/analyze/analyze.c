/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: runs the analyses, names their findings and puts them in order. */
#include "analyze/analyze.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/explains.h"
#include "analyze/other_loops.h"
#include "analyze/path/part.h"
#include "analyze/study.h"
#include "model/window.h"

extern const struct plumb_analysis plumb_analysis_hotspot, plumb_analysis_fusion,
	plumb_analysis_balance, plumb_analysis_latency, plumb_analysis_iterations,
	plumb_analysis_ranks, plumb_analysis_stalls, plumb_analysis_startup, plumb_analysis_traffic;
extern const struct plumb_analysis plumb_analysis_loops, plumb_analysis_outside;

const struct plumb_analysis *const plumb_analyses[] = {
	&plumb_analysis_hotspot, &plumb_analysis_fusion,  &plumb_analysis_balance,
	&plumb_analysis_latency, &plumb_analysis_outside, &plumb_analysis_iterations,
	&plumb_analysis_ranks,   &plumb_analysis_stalls,  &plumb_analysis_traffic,
	&plumb_analysis_startup, &plumb_analysis_loops,   NULL,
};

const char *
plumb_severity_name(uint32_t severity)
{
	static const char *const names[] = { "note", "note", "warning", "serious" };

	return names[severity <= PLUMB_SERIOUS ? severity : PLUMB_NOTE];
}

/* ---- ids ---- */

/* FNV-1a, written out here because ids outlive versions of plumb, which base/hash.h does not
 * promise. */
static uint64_t
hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t
hash_text(uint64_t hash, const char *text)
{
	return text ? hash_bytes(hash, text, strlen(text) + 1) : hash_bytes(hash, "\1", 1);
}

/* By files without their folder, so that a program that moved keeps its findings. */
static uint64_t
hash_frame(uint64_t hash, const struct plumb_profile *p, const struct plumb_frame *frame)
{
	const char *file = plumb_text(p, frame->file);
	const char *slash = file ? strrchr(file, '/') : NULL;
	char line[16];

	snprintf(line, sizeof line, "%" PRIu32, frame->line);
	hash = hash_text(hash, plumb_frame_kind_names[frame->kind]);
	hash = hash_text(hash, plumb_text(p, frame->name));
	hash = hash_text(hash, slash ? slash + 1 : file);
	return hash_text(hash, line);
}

char *
plumb_finding_id(char *text, const struct plumb_profile *p, const char *rule, const char *cause,
                 const char *key, uint32_t context)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	hash = hash_text(hash_text(hash, rule), cause);
	if (key) {
		hash = hash_text(hash, key);
	} else {
		for (; context < p->contexts_count && context;
		     context = p->contexts[context].parent) {
			unsigned char flags = (unsigned char)(p->contexts[context].flags &
			                                      (PLUMB_CONTEXT_BACKWARD |
			                                       PLUMB_CONTEXT_ACCUMULATION));
			hash = hash_frame(hash, p, plumb_context_frame(p, context));
			hash = hash_bytes(hash, &flags, 1);
		}
	}
	snprintf(text, PLUMB_FINDING_ID, "%.60s%s%.30s-%012" PRIx64, rule, cause ? "-" : "",
	         cause ? cause : "", (hash ^ hash >> 48) & UINT64_C(0xffffffffffff));
	return text;
}

/* ---- order ---- */

static double
weigh_finding(const struct plumb_finding_text *f)
{
	if (f->saving_ns == PLUMB_UNKNOWN || f->saving_ns < 0)
		return -1;
	return (double)f->saving_ns * (isnan(f->confidence) ? 0.5 : f->confidence);
}

/* A finding and its place before sorting: what is equally important stays in order. */
struct ranked {
	struct plumb_finding_text finding;
	uint32_t place;
};

/* Programs are run for their loop, so what is of that comes first. */
static bool
is_of_startup(const struct plumb_finding_text *finding)
{
	return finding->rule && !strcmp(finding->rule, plumb_analysis_startup.name);
}

/* Causes, then idle time of the loop for no known reason, then start-up. Without a loop, start-up
 * may be the reason, so it comes first. */
static int
kind_of(const struct plumb_finding_text *finding)
{
	if (plumb_explains_nothing(finding))
		return finding->window ? 1 : 3;
	return is_of_startup(finding) ? 2 : 0;
}

static int
by_importance(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;
	double x = weigh_finding(&a->finding), y = weigh_finding(&b->finding);

	if (a->finding.severity != b->finding.severity)
		return a->finding.severity > b->finding.severity ? -1 : 1;
	if (kind_of(&a->finding) != kind_of(&b->finding))
		return kind_of(&a->finding) < kind_of(&b->finding) ? -1 : 1;
	if (x < y || x > y)
		return x > y ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* Moves each finding that explains another one before that. */
static void
put_causes_first(struct ranked *ranked, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = i + 1; k < count; k++) {
			struct ranked cause = ranked[k];

			if (!plumb_explains(&cause.finding, &ranked[i].finding))
				continue;
			memmove(&ranked[i + 1], &ranked[i], (k - i) * sizeof *ranked);
			ranked[i] = cause;
			k = i; /* what explains this one */
		}
}

static int
put_in_order(struct plumb_finding_text *rows, uint32_t count)
{
	struct ranked *ranked = calloc((size_t)count + 1, sizeof *ranked);

	if (!ranked)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < count; i++)
		ranked[i] = (struct ranked){ rows[i], i };
	qsort(ranked, count, sizeof *ranked, by_importance);
	put_causes_first(ranked, count);
	for (uint32_t i = 0; i < count; i++)
		rows[i] = ranked[i].finding;
	free(ranked);
	return 0;
}

static bool
is_ours(const char *rule)
{
	for (size_t i = 0; rule && plumb_analyses[i]; i++)
		if (!strcmp(plumb_analyses[i]->name, rule))
			return true;
	return false;
}

/* PROFILE's findings (without those of the registry's rules if REPLACE is set) and COUNT more. */
static int
merge_findings(struct plumb_profile *p, const struct plumb_finding_text *more, uint32_t count,
               bool replace, struct plumb_error *error)
{
	struct plumb_finding_text *rows =
		calloc((size_t)p->findings_count + count + 1, sizeof *rows);
	uint32_t kept = 0;
	int code;

	if (!rows)
		return plumb_fail_memory(error, "for the findings");
	for (uint32_t i = 0; i < p->findings_count; i++) {
		const struct plumb_finding *f = &p->findings[i];
		const char *rule = plumb_text(p, f->rule);

		if (replace && is_ours(rule))
			continue;
		rows[kept++] = (struct plumb_finding_text){ .id = plumb_text(p, f->id),
			                                    .rule = rule,
			                                    .title = plumb_text(p, f->title),
			                                    .advice = plumb_text(p, f->advice),
			                                    .evidence = plumb_text(p, f->evidence),
			                                    .window = plumb_text(p, f->window),
			                                    .severity = f->severity,
			                                    .context = f->context,
			                                    .saving_ns = f->saving_ns,
			                                    .confidence = f->confidence };
	}
	for (uint32_t i = 0; i < count; i++)
		rows[kept++] = more[i];
	if (put_in_order(rows, kept) < 0)
		code = plumb_fail_memory(error, "for the findings");
	else
		code = plumb_profile_set_findings(p, rows, kept, error);
	free(rows);
	return code;
}

int
plumb_findings_add(struct plumb_profile *profile, const struct plumb_finding_text *findings,
                   uint32_t count, struct plumb_error *error)
{
	return merge_findings(profile, findings, count, false, error);
}

/* ---- all of them ---- */

/* What is analysed: the whole, or the main loop, other large loops, then start-up, and what needs
 * the whole. */
enum part_kind { ALL_OF_WHOLE, OF_LOOP, OF_OTHER_LOOP, OF_STARTUP, OF_WHOLE };
struct part {
	struct plumb_profile window; /* all zeros: the whole */
	struct plumb_study *study;
	enum part_kind kind;
};
#define PARTS (3 + PLUMB_OTHER_LOOPS)

struct analysing {
	struct part parts[PARTS];
	uint32_t count;
	struct plumb_thresholds *thresholds;
};

static bool
is_run(const struct plumb_analysis *analysis, const struct plumb_profile *whole,
       enum part_kind kind)
{
	if (!analysis->run || (analysis->waits && plumb_profile_is_counted(whole)))
		return false;
	switch (kind) {
	case OF_LOOP:
	case OF_OTHER_LOOP:
		return !analysis->whole;
	case OF_STARTUP:
		return analysis == &plumb_analysis_startup;
	case OF_WHOLE:
		return analysis->whole;
	default:
		return true;
	}
}

/* Several ranks of a window cannot be held against each other, as the critical path does. */
static bool
has_path(const struct plumb_profile *p)
{
	for (uint32_t i = 1; p->window.kind && i < p->device_processes_count; i++)
		if (p->device_processes[i].process != p->device_processes[0].process)
			return false;
	return true;
}

static int
run_all(struct plumb_study *study, enum part_kind kind, struct plumb_error *error)
{
	for (size_t i = 0; plumb_analyses[i]; i++) {
		if (!is_run(plumb_analyses[i], study->whole, kind))
			continue;
		plumb_study_rule(study, plumb_analyses[i]->name);
		if (plumb_analyses[i]->run(study) < 0)
			return plumb_fail_memory(error, "for the analyses");
	}
	if (has_path(study->profile) && plumb_study_bound(study) < 0)
		return plumb_fail_memory(error, "for the critical path");
	return 0;
}

static void
free_parts(struct analysing *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		plumb_study_free(a->parts[i].study);
		plumb_profile_free(&a->parts[i].window);
	}
	plumb_thresholds_free(a->thresholds);
}

/* Adds a window of PROFILE, if it has it. */
static int
add_window(struct analysing *a, const struct plumb_profile *profile,
           struct plumb_window_choice choice, enum part_kind kind, struct plumb_error *error)
{
	struct part *part = &a->parts[a->count];
	int code = plumb_window_profile(profile, &choice, &part->window, error);

	if (code == PLUMB_EEMPTY)
		return 0;
	part->kind = kind;
	a->count += !code;
	return code;
}

static int
find_parts(struct analysing *a, const struct plumb_profile *profile, bool whole,
           struct plumb_error *error)
{
	uint32_t numbers[PLUMB_OTHER_LOOPS], count = 0;
	int code = 0;

	if (!whole && profile->windows_count)
		code = add_window(a, profile, (struct plumb_window_choice){ PLUMB_WINDOW_LOOP, 0 },
		                  OF_LOOP, error);
	if (code)
		return code;
	if (!a->count) {
		a->parts[a->count++].kind = ALL_OF_WHOLE;
		return 0;
	}
	if (plumb_other_loops_find(profile, a->thresholds, numbers, &count) < 0)
		return plumb_fail_memory(error, "for the analyses");
	for (uint32_t i = 0; !code && i < count; i++)
		code = add_window(a, profile,
		                  (struct plumb_window_choice){ PLUMB_WINDOW_LOOP, numbers[i] },
		                  OF_OTHER_LOOP, error);
	if (!code)
		code = add_window(a, profile,
		                  (struct plumb_window_choice){ PLUMB_WINDOW_STARTUP, 0 },
		                  OF_STARTUP, error);
	if (!code)
		a->parts[a->count++].kind = OF_WHOLE;
	return code;
}

static int
analyze_part(const struct analysing *a, struct part *part, const struct plumb_profile *whole,
             const struct plumb_analyze_options *options, struct plumb_error *error)
{
	const struct plumb_profile *profile = part->window.window.kind ? &part->window : whole;

	part->study = plumb_study_new(profile, a->thresholds, options->user_code, error);
	if (!part->study)
		return error->code;
	part->study->whole = whole;
	if (part->kind == OF_OTHER_LOOP) /* the main loop comes first */
		part->study->main_scale_ns =
			a->parts[0].study->scale_ns > 0 ? a->parts[0].study->scale_ns : 1;
	part->study->path_spans = options->path_spans ? options->path_spans : PLUMB_PATH_SPANS_MOST;
	return run_all(part->study, part->kind, error);
}

/* All that was found, in one list, which replaces what PROFILE has. */
static int
take_findings(const struct analysing *a, struct plumb_profile *profile, struct plumb_error *error)
{
	const struct plumb_finding_text *found[PARTS];
	uint32_t counts[PARTS] = { 0 }, count = 0;
	struct plumb_study *studies[PARTS];
	struct plumb_finding_text *rows;
	int code;

	for (uint32_t i = 0; i < a->count; i++)
		studies[i] = a->parts[i].study;
	if (plumb_explains_find(studies, a->count) < 0)
		return plumb_fail_memory(error, "for the findings");
	for (uint32_t i = 0; i < a->count; i++) {
		found[i] = plumb_study_findings(a->parts[i].study, &counts[i]);
		count += counts[i];
	}
	rows = calloc((size_t)count + 1, sizeof *rows);
	if (!rows)
		return plumb_fail_memory(error, "for the findings");
	count = 0;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct plumb_profile *of = a->parts[i].study->profile;
		for (uint32_t k = 0; k < counts[i]; k++) {
			if (a->parts[i].kind == OF_OTHER_LOOP && found[i][k].saving_ns <= 0)
				continue; /* or PLUMB_UNKNOWN, which is less */
			rows[count] = found[i][k];
			rows[count++].window = of->window.kind ? of->window.name : NULL;
		}
	}
	code = plumb_other_loops_join(a->parts[0].study, rows, &count, weigh_finding) < 0
	               ? plumb_fail_memory(error, "for the findings")
	               : 0;
	if (!code)
		code = merge_findings(profile, rows, count, true, error);
	free(rows);
	return code;
}

int
plumb_analyze(struct plumb_profile *profile, const struct plumb_analyze_options *options,
              struct plumb_error *error)
{
	static const struct plumb_analyze_options none;
	struct analysing a = { 0 };
	struct plumb_error local;
	int code;

	if (!options)
		options = &none;
	if (!error)
		error = &local;
	a.thresholds = plumb_thresholds_new(options->thresholds, error);
	if (!a.thresholds)
		return error->code;
	code = find_parts(&a, profile, options->whole, error);
	for (uint32_t i = 0; !code && i < a.count; i++)
		code = analyze_part(&a, &a.parts[i], profile, options, error);
	if (!code)
		code = take_findings(&a, profile, error);
	if (!code)
		profile->run.analyses = PLUMB_ANALYSES;
	free_parts(&a);
	return code;
}
