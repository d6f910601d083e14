/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time outside operators, in programs that use no GPU: the function that the main thread was in for
 * much of the loop, though it ran next to no operator there. That is a sleep, input, plain Python,
 * or a library that has no operators. Programs with a GPU have the latency analysis.
 *
 * With --mode lean, nothing says when operators ran, so there is no finding.
 *
 * What is under a framework's loader is left out: the latency analysis tells of that, with or
 * without a GPU. If most operators run on other threads of the process, there is no finding.
 *
 * Where the main thread was comes from CPU samples with waiting, else from looks from outside
 * (host.time). In a profile without loops, what start-up does is left out: it has findings of its
 * own (startup.c).
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/startup.h"
#include "analyze/study.h"
#include "base/format.h"

enum { LEAST = 5 }; /* looks or samples. Fewer may be chance */

static const struct plumb_threshold thresholds[] = {
	{ "outside.share", 0.25, "share",
	  "minimum share of the main thread's time that it spends in one function, outside "
	  "operators; only without GPU work" },
	{ "outside.operators", 0.5, "share",
	  "maximum share of the time in that function in which operators run" },
	{ 0 },
};

struct outside {
	struct plumb_study *study;
	struct plumb_startup main;      /* which process, and by what its time is known */
	struct plumb_tally time, calls; /* by your line: the main thread's time; operators' time */
	int64_t whole;                  /* the main thread's time that counts */
	int64_t own, others; /* operators' time of the main thread; of the process's other ones */
};

/* By context: is it under a framework's loader? */
static unsigned char *
mark_loading(const struct plumb_profile *p)
{
	unsigned char *loading = calloc(p->contexts_count + 1u, 1);

	for (uint32_t c = 1; loading && c < p->contexts_count; c++) {
		enum plumb_purpose purpose = plumb_framework_place(p, p->contexts[c].frame, NULL);
		loading[c] = loading[p->contexts[c].parent] || purpose == PLUMB_PURPOSE_LOADER;
	}
	return loading;
}

static void
add_values(struct outside *o, const unsigned char *kinds, const unsigned char *loading)
{
	const struct plumb_profile *p = o->study->profile;
	bool is_loop = p->window.kind == PLUMB_WINDOW_LOOP;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t line = o->study->user_of[v->context];

		if (v->sum <= 0 || v->track >= p->tracks_count ||
		    p->tracks[v->track].process != o->main.process)
			continue;
		if (plumb_profile_main_of(p, v->track) == PLUMB_NONE) {
			if (v->metric == PLUMB_METRIC_OP_TIME)
				o->others = plumb_add(o->others, v->sum);
			continue;
		}
		if (v->metric == PLUMB_METRIC_OP_TIME) {
			o->own = plumb_add(o->own, v->sum);
			plumb_tally_add(&o->calls, line, v->sum, v->count);
		}
		if (!plumb_startup_is_metric(&o->main, v->metric) ||
		    (!is_loop && kinds[v->context]))
			continue;
		o->whole = plumb_add(o->whole, v->sum);
		if (!loading[v->context])
			plumb_tally_add(&o->time, line, v->sum, v->count);
	}
}

/* "augment (train.py:12)", or only the line if it is in no function. */
static void
name_function(const struct plumb_study *s, uint32_t frame, char *text, size_t size)
{
	const char *name = plumb_text(s->profile, s->profile->frames[frame].name);
	char line[420];

	plumb_study_line(s, frame, line, sizeof line);
	if (s->profile->frames[frame].kind != PLUMB_FRAME_PYTHON || !name || *name == '<')
		snprintf(text, size, "%s", line);
	else
		snprintf(text, size, "%s (%s)", name, line);
}

/* The function that the main thread was in most often under LINE's, if it is half of that time:
 * your line may only call a package. PLUMB_NONE: it is LINE's own. */
static int
find_inner(const struct outside *o, uint32_t line, uint32_t *inner)
{
	const struct plumb_profile *p = o->study->profile;
	struct plumb_tally tally;
	int code = plumb_tally_new(o->study, &tally);

	*inner = PLUMB_NONE;
	for (uint32_t i = 0; !code && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t user = o->study->user_of[v->context], c = v->context;

		if (v->sum <= 0 || plumb_profile_main_of(p, v->track) != o->main.process ||
		    !plumb_startup_is_metric(&o->main, v->metric) || user == PLUMB_NONE ||
		    !plumb_is_same_function(p, user, line))
			continue;
		while (c && plumb_context_frame(p, c)->kind != PLUMB_FRAME_PYTHON)
			c = p->contexts[c].parent;
		plumb_tally_add(&tally, p->contexts[c].frame, v->sum, v->count);
	}
	if (!code)
		code = plumb_tally_join_functions(o->study,
		                                  (struct plumb_tally *[]){ &tally, NULL });
	if (!code) {
		*inner = plumb_tally_top(&tally);
		if (*inner != PLUMB_NONE && (tally.ns[*inner] < o->time.ns[line] / 2 ||
		                             plumb_is_same_function(p, *inner, line)))
			*inner = PLUMB_NONE;
	}
	plumb_tally_free(&tally);
	return code;
}

static int
draft_function(const struct outside *o, uint32_t line)
{
	struct plumb_study *s = o->study;
	int64_t ns = o->time.ns[line], operators = o->calls.ns[line];
	bool sampled = o->main.metric == PLUMB_METRIC_CPU_TIME;
	char where[900], within[900] = "";
	char time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], of[PLUMB_FORMAT_SIZE];
	struct plumb_draft draft;
	uint32_t inner;

	if (find_inner(o, line, &inner))
		return PLUMB_ESYSTEM;
	if (inner != PLUMB_NONE)
		name_function(s, inner, within, sizeof within);
	plumb_draft_begin(&draft, "host", 0);
	plumb_draft_key(&draft, "%s", plumb_study_key(s, line, where, sizeof where));
	name_function(s, line, where, sizeof where);
	plumb_draft_title(
		&draft, "%s takes %s of the main thread's time, %s%s%s; operators run for %s of it",
		where, plumb_format_share(share, (double)ns, (double)o->whole),
		plumb_format_time(time, ns), *within ? ", mostly in " : "", within,
		operators ? plumb_format_time(of, operators) : "none");
	plumb_draft_advice(
		&draft,
		"Look at what this function calls: plumb report %s--by context shows %s. "
		"Leave it out, do it less often, or do it on another thread or process.",
		sampled ? "" : "--metric host.time ",
		sampled ? "where it computes and where it waits"
			: "it, and plumb run --cpu says whether it computes or waits");
	plumb_json_key_text(draft.evidence, "metric",
	                    sampled ? "cpu.time + wait.time" : "host.time");
	plumb_json_key_quantity(draft.evidence, "main_ns", o->whole);
	plumb_json_key_quantity(draft.evidence, "line_ns", ns);
	plumb_json_key_quantity(draft.evidence, "operators_ns", operators);
	plumb_json_key_quantity(draft.evidence, sampled ? "samples" : "looks",
	                        (int64_t)o->time.count[line]);
	plumb_study_line_json(s, draft.evidence, line);
	draft.saving_ns = operators < ns ? ns - operators : 0;
	draft.host = true;
	draft.confidence = 0.6;
	return plumb_draft_end(s, &draft);
}

static int
draft_functions(const struct outside *o)
{
	const struct plumb_study *s = o->study;
	double share = plumb_study_threshold(s, "outside.share"),
	       most = plumb_study_threshold(s, "outside.operators");
	int code = 0;

	for (uint32_t f = 0; !code && f < s->profile->frames_count; f++) {
		double ns = (double)o->time.ns[f], operators = (double)o->calls.ns[f];

		if (o->time.count[f] >= LEAST && operators <= most * ns &&
		    ns - operators >= share * (double)o->whole)
			code = draft_function(o, f);
	}
	return code;
}

static int
find_outside(struct plumb_study *study)
{
	const struct plumb_profile *p = study->profile;
	struct outside o = { .study = study };
	unsigned char *kinds, *loading;
	int code;

	if (p->devices_count || study->gpu_ns || study->copy_ns || plumb_profile_is_lean(p))
		return 0;
	code = plumb_startup_find(p, &o.main);
	if (code || o.main.process == PLUMB_NONE || o.main.metric == PLUMB_METRIC_OP_TIME)
		return code;
	kinds = plumb_startup_kinds(p);
	loading = mark_loading(p);
	if (!kinds || !loading || plumb_tally_new(study, &o.time) ||
	    plumb_tally_new(study, &o.calls)) {
		code = PLUMB_ESYSTEM;
	} else {
		add_values(&o, kinds, loading);
		code = plumb_tally_join_functions(
			study, (struct plumb_tally *[]){ &o.time, &o.calls, NULL });
		/* If other threads do the work, as in a server, the main one may well wait. */
		if (!code && o.others <= o.own)
			code = draft_functions(&o);
	}
	plumb_tally_free(&o.time);
	plumb_tally_free(&o.calls);
	free(kinds);
	free(loading);
	return code;
}

const struct plumb_analysis plumb_analysis_outside = {
	.name = "outside",
	.summary = "without a GPU: a function that the main thread is in for much of its time, "
		   "outside operators",
	.thresholds = thresholds,
	.run = find_outside,
	.waits = true,
};
