/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-up gets findings of its own: what took it. The outermost frame that says what it is for
 * counts, because compiling may import, and loading may compile. But an import says least, and
 * tuning is a part of compiling that has its own remedy.
 */
#include "analyze/startup.h"

#include <stdlib.h>

#include "analyze/study.h"
#include "base/format.h"

const char *const plumb_startup_words[PLUMB_STARTUP_KINDS] = {
	[PLUMB_STARTUP_OTHER] = "other work",
	[PLUMB_STARTUP_IMPORTS] = "imports",
	[PLUMB_STARTUP_COMPILING] = "compiling",
	[PLUMB_STARTUP_TUNING] = "trying variants of kernels",
	[PLUMB_STARTUP_CAPTURE] = "capturing GPU graphs",
	[PLUMB_STARTUP_MODEL] = "making and loading the model",
	[PLUMB_STARTUP_DATA] = "loading data",
	[PLUMB_STARTUP_GPU] = "starting the GPU",
	[PLUMB_STARTUP_RANKS] = "meeting the other ranks",
};

/* The cause in ids. */
static const char *const causes[PLUMB_STARTUP_KINDS] = {
	[PLUMB_STARTUP_IMPORTS] = "imports", [PLUMB_STARTUP_COMPILING] = "compiling",
	[PLUMB_STARTUP_TUNING] = "tuning",   [PLUMB_STARTUP_CAPTURE] = "capture",
	[PLUMB_STARTUP_MODEL] = "model",     [PLUMB_STARTUP_DATA] = "data",
	[PLUMB_STARTUP_GPU] = "gpu",         [PLUMB_STARTUP_RANKS] = "ranks",
};

static const char *const advice[PLUMB_STARTUP_KINDS] = {
	[PLUMB_STARTUP_IMPORTS] =
		"Import what this program needs, and the rest where it is used. "
		"python -X importtime shows what each module takes. On a slow or shared file "
		"system, keep the environment on a local disk.",
	[PLUMB_STARTUP_COMPILING] =
		"Keep the compiler's cache between runs, and do not put it into a folder that each "
		"run makes anew. Compile the part that repeats (one layer of many), and keep "
		"shapes the same, so that nothing is compiled twice.",
	[PLUMB_STARTUP_TUNING] =
		"Keep the results between runs (the caches of Inductor and Triton), or try fewer "
		"variants. A short run may not earn back what it takes.",
	[PLUMB_STARTUP_CAPTURE] = "Capture fewer graphs: the batch sizes and shapes that occur.",
	[PLUMB_STARTUP_MODEL] =
		"Make the model on the device or without memory (the device \"meta\"), instead of "
		"filling weights that are then loaded. Load from a local disk, in a format that "
		"can be mapped.",
	[PLUMB_STARTUP_DATA] = "Prepare the data once, store what comes out, and load that.",
	[PLUMB_STARTUP_GPU] =
		"Let the driver load code when it is used (CUDA_MODULE_LOADING=LAZY), and keep "
		"the driver's persistence mode on, so that it stays loaded between programs.",
	[PLUMB_STARTUP_RANKS] =
		"Look at which rank comes last, and why: its own start-up is what others wait for.",
};

/* ---- which thread ---- */

bool
plumb_startup_is_metric(const struct plumb_startup *startup, uint32_t metric)
{
	return metric == startup->metric ||
	       (metric == PLUMB_METRIC_WAIT_TIME && startup->metric == PLUMB_METRIC_CPU_TIME);
}

/* By process: how much of METRIC its main thread has. Malloced. */
static int64_t *
add_main_threads(const struct plumb_profile *p, uint32_t metric)
{
	int64_t *sums = calloc(p->processes_count + 1u, sizeof *sums);

	for (uint32_t i = 0; sums && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		const struct plumb_track *t =
			v->track < p->tracks_count ? &p->tracks[v->track] : NULL;
		if (t && v->metric == metric && v->sum > 0 && t->kind == PLUMB_TRACK_THREAD &&
		    t->process < p->processes_count && t->tid == p->processes[t->process].pid)
			sums[t->process] = plumb_add(sums[t->process], v->sum);
	}
	return sums;
}

/* A launcher waits, and a compiler's worker computes for another process: what counts are processes
 * that use a GPU or, if none does, that call operators. */
static bool *
find_candidates(const struct plumb_profile *p, const int64_t *operators)
{
	bool *candidates = calloc(p->processes_count + 1u, sizeof *candidates), any = false;

	for (uint32_t i = 0; candidates && i < p->device_processes_count; i++)
		any = candidates[p->device_processes[i].process] = true;
	for (uint32_t i = 0; candidates && !any && i < p->processes_count; i++)
		candidates[i] = operators[i] > 0;
	for (uint32_t i = 0; candidates && i < p->processes_count; i++)
		any |= candidates[i];
	for (uint32_t i = 0; candidates && !any && i < p->processes_count; i++)
		candidates[i] = true;
	return candidates;
}

/* The process with the most of SUMS, or PLUMB_NONE. */
static uint32_t
find_most(const struct plumb_profile *p, const int64_t *sums, const bool *candidates)
{
	uint32_t best = PLUMB_NONE;

	for (uint32_t i = 0; i < p->processes_count; i++)
		if (candidates[i] && sums[i] > 0 && (best == PLUMB_NONE || sums[i] > sums[best]))
			best = i;
	return best;
}

/* Sets the process whose main thread does most, and by what that is known: the first that tells
 * anything. False: no memory. */
static bool
choose_process(const struct plumb_profile *p, struct plumb_startup *startup)
{
	static const uint32_t metrics[] = { PLUMB_METRIC_CPU_TIME, PLUMB_METRIC_HOST_TIME,
		                            PLUMB_METRIC_OP_TIME };
	int64_t *operators = add_main_threads(p, PLUMB_METRIC_OP_TIME);
	bool *candidates = operators ? find_candidates(p, operators) : NULL;
	bool ok = candidates;

	for (size_t i = 0;
	     ok && startup->process == PLUMB_NONE && i < sizeof metrics / sizeof *metrics; i++) {
		int64_t *sums = add_main_threads(p, metrics[i]);
		startup->metric = metrics[i];
		if (sums)
			startup->process = find_most(p, sums, candidates);
		ok = sums;
		free(sums);
	}
	free(operators);
	free(candidates);
	return ok;
}

/* ---- what for ---- */

/* By context, from the root on; parents come first. WHERE: the frame that decided. False: no
 * memory. */
static PLUMB_MUST_CHECK bool
find_kinds(const struct plumb_profile *p, unsigned char *kinds, uint32_t *where)
{
	unsigned char *of_frame = malloc(p->frames_count + 1u);

	for (uint32_t f = 0; of_frame && f < p->frames_count; f++)
		of_frame[f] = (unsigned char)plumb_framework_startup(p, f);
	for (uint32_t c = 1; of_frame && c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;
		enum plumb_startup_kind own = of_frame[p->contexts[c].frame];

		kinds[c] = kinds[parent];
		where[c] = where[parent];
		if (own == PLUMB_STARTUP_OTHER || own == kinds[c])
			continue;
		if (kinds[c] == PLUMB_STARTUP_OTHER || kinds[c] == PLUMB_STARTUP_IMPORTS ||
		    (kinds[c] == PLUMB_STARTUP_COMPILING && own == PLUMB_STARTUP_TUNING)) {
			kinds[c] = (unsigned char)own;
			where[c] = c;
		}
	}
	free(of_frame);
	return of_frame != NULL;
}

unsigned char *
plumb_startup_kinds(const struct plumb_profile *p)
{
	unsigned char *kinds = calloc(p->contexts_count + 1u, 1);
	uint32_t *where = calloc(p->contexts_count + 1u, sizeof *where);

	if (!kinds || !where || !find_kinds(p, kinds, where)) {
		free(kinds);
		kinds = NULL;
	}
	free(where);
	return kinds;
}

/* Is it time of the thread that counts? host.time at the root is of no known place. */
static bool
is_counted(const struct plumb_profile *p, const struct plumb_value *v,
           const struct plumb_startup *startup)
{
	const struct plumb_track *t = v->track < p->tracks_count ? &p->tracks[v->track] : NULL;

	return t && plumb_startup_is_metric(startup, v->metric) && v->sum > 0 &&
	       (v->context || v->metric != PLUMB_METRIC_HOST_TIME) &&
	       t->kind == PLUMB_TRACK_THREAD && t->process == startup->process &&
	       t->process < p->processes_count && t->tid == p->processes[t->process].pid;
}

static void
add_times(const struct plumb_profile *p, const unsigned char *kinds, const uint32_t *where,
          int64_t *at, struct plumb_startup *startup)
{
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (!is_counted(p, v, startup))
			continue;
		startup->ns[kinds[v->context]] = plumb_add(startup->ns[kinds[v->context]], v->sum);
		startup->samples[kinds[v->context]] += v->count;
		if (kinds[v->context])
			at[where[v->context]] = plumb_add(at[where[v->context]], v->sum);
	}
	for (uint32_t c = 1; c < p->contexts_count; c++)
		if (at[c] > 0 && (startup->context[kinds[c]] == PLUMB_NONE ||
		                  at[c] > at[startup->context[kinds[c]]]))
			startup->context[kinds[c]] = c;
}

/* From the begin of start-up to the first record of the thread. */
static int64_t
time_before(const struct plumb_profile *p, uint32_t process)
{
	int64_t first = PLUMB_UNKNOWN, start = p->window.start_ns;

	for (uint32_t i = 0; i < p->tracks_count; i++) {
		const struct plumb_track *t = &p->tracks[i];
		if (t->kind == PLUMB_TRACK_THREAD && t->process == process &&
		    t->start_ns != PLUMB_UNKNOWN && (first == PLUMB_UNKNOWN || t->start_ns < first))
			first = t->start_ns;
	}
	if (first == PLUMB_UNKNOWN || start == PLUMB_UNKNOWN || first <= start ||
	    first > p->window.end_ns)
		return 0;
	return first - start;
}

int
plumb_startup_find(const struct plumb_profile *p, struct plumb_startup *startup)
{
	unsigned char *kinds = calloc(p->contexts_count + 1u, 1);
	uint32_t *where = calloc(p->contexts_count + 1u, sizeof *where);
	int64_t *at = calloc(p->contexts_count + 1u, sizeof *at);
	bool ok;

	*startup = (struct plumb_startup){ .wall_ns = p->run.wall_ns, .process = PLUMB_NONE };
	for (int k = 0; k < PLUMB_STARTUP_KINDS; k++)
		startup->context[k] = PLUMB_NONE;
	ok = kinds && where && at && choose_process(p, startup);
	if (ok && startup->process != PLUMB_NONE) {
		ok = find_kinds(p, kinds, where);
		if (ok)
			add_times(p, kinds, where, at, startup);
		if (ok && startup->metric != PLUMB_METRIC_CPU_TIME)
			startup->before_ns = time_before(p, startup->process);
	}
	free(at);
	free(where);
	free(kinds);
	return ok ? PLUMB_OK : PLUMB_ESYSTEM;
}

bool
plumb_startup_is_known(const struct plumb_startup *startup)
{
	double known = (double)startup->before_ns;

	if (startup->process != PLUMB_NONE && startup->metric == PLUMB_METRIC_CPU_TIME)
		return true;
	for (int k = 0; k < PLUMB_STARTUP_KINDS; k++)
		known += (double)startup->ns[k];
	return 2 * known >= (double)startup->wall_ns;
}

/* ---- findings ---- */

static void
add_evidence(const struct plumb_study *study, const struct plumb_startup *startup,
             struct plumb_draft *draft)
{
	plumb_json_key_quantity(draft->evidence, "startup_ns", startup->wall_ns);
	plumb_json_key_quantity(draft->evidence, "run_ns", study->whole_ns);
	plumb_json_key_text(draft->evidence, "metric",
	                    startup->metric == PLUMB_METRIC_CPU_TIME
	                            ? "cpu.time + wait.time"
	                            : plumb_metrics[startup->metric].name);
	for (int k = 1; k < PLUMB_STARTUP_KINDS; k++) {
		char key[40];
		if (startup->ns[k] <= startup->wall_ns / 100)
			continue;
		snprintf(key, sizeof key, "%s_ns", causes[k]);
		plumb_json_key_quantity(draft->evidence, key, startup->ns[k]);
	}
	if (startup->metric != PLUMB_METRIC_CPU_TIME)
		plumb_json_key_quantity(draft->evidence, "before_records_ns", startup->before_ns);
}

/* Programs are run for their loop. */
static uint32_t
severity_of(const struct plumb_study *study, int64_t ns)
{
	return 2 * (double)ns >= (double)study->whole_ns ? PLUMB_WARNING : PLUMB_NOTE;
}

/* FEW looks may all have met the same moment. */
static double
confidence_of(const struct plumb_startup *startup, uint64_t samples)
{
	enum { FEW = 20 };

	return startup->metric == PLUMB_METRIC_CPU_TIME  ? 0.8
	       : startup->metric == PLUMB_METRIC_OP_TIME ? 0.7
	       : samples > FEW                           ? 0.8
	                                                 : 0.6;
}

static int
draft_cause(struct plumb_study *study, const struct plumb_startup *startup, int kind)
{
	uint32_t context = startup->context[kind];
	uint32_t line = context == PLUMB_NONE ? PLUMB_NONE : study->user_of[context];
	char time[PLUMB_FORMAT_SIZE], startup_time[PLUMB_FORMAT_SIZE], run[PLUMB_FORMAT_SIZE];
	char where[420];
	struct plumb_draft draft;

	plumb_draft_begin(&draft, causes[kind], context);
	plumb_draft_key(&draft, "%s", causes[kind]);
	plumb_study_under(study, " at ", line, where, sizeof where);
	plumb_draft_title(&draft, "start-up: %s of its %s go to %s%s; the run took %s",
	                  plumb_format_time(time, startup->ns[kind]),
	                  plumb_format_time(startup_time, startup->wall_ns),
	                  plumb_startup_words[kind], where,
	                  plumb_format_time(run, study->whole_ns));
	plumb_draft_advice(&draft, "%s", advice[kind]);
	add_evidence(study, startup, &draft);
	if (startup->metric == PLUMB_METRIC_HOST_TIME)
		plumb_json_key_quantity(draft.evidence, "looks", (int64_t)startup->samples[kind]);
	plumb_study_line_json(study, draft.evidence, line);
	draft.saving_ns = startup->ns[kind];
	draft.confidence = confidence_of(startup, startup->samples[kind]);
	draft.severity = severity_of(study, startup->ns[kind]);
	return plumb_draft_end(study, &draft);
}

/* The line of your code with the most of what no cause explains, if that is much. */
static int
draft_line(struct plumb_study *study, const struct plumb_startup *startup, bool *found)
{
	const struct plumb_profile *p = study->profile;
	double least = plumb_study_threshold(study, "startup.cause") * (double)startup->wall_ns;
	char time[PLUMB_FORMAT_SIZE], startup_time[PLUMB_FORMAT_SIZE], run[PLUMB_FORMAT_SIZE];
	unsigned char *kinds = plumb_startup_kinds(p);
	uint32_t line = PLUMB_NONE;
	struct plumb_tally tally = { 0 };
	struct plumb_draft draft;
	char text[420];
	int code = kinds ? plumb_tally_new(study, &tally) : PLUMB_ESYSTEM;

	if (!code) {
		for (uint32_t i = 0; i < p->values_count; i++) {
			const struct plumb_value *v = &p->values[i];
			if (is_counted(p, v, startup) && !kinds[v->context])
				plumb_tally_add(&tally, study->user_of[v->context], v->sum,
				                v->count);
		}
		line = plumb_tally_top(&tally);
	}
	if (line != PLUMB_NONE && (double)tally.ns[line] >= least) {
		*found = true;
		plumb_study_line(study, line, text, sizeof text);
		plumb_draft_begin(&draft, "line", PLUMB_NONE);
		plumb_draft_key(&draft, "%s", text);
		plumb_draft_title(&draft, "start-up: %s of its %s go to %s; the run took %s",
		                  plumb_format_time(time, tally.ns[line]),
		                  plumb_format_time(startup_time, startup->wall_ns), text,
		                  plumb_format_time(run, study->whole_ns));
		plumb_draft_advice(&draft,
		                   "Look at what this line does before the loop: plumb report "
		                   "--window startup --by context shows the calls below it. What "
		                   "gives the same result in each run can be stored.");
		add_evidence(study, startup, &draft);
		plumb_json_key_quantity(draft.evidence, "line_ns", tally.ns[line]);
		plumb_study_line_json(study, draft.evidence, line);
		draft.saving_ns = tally.ns[line];
		draft.confidence = 0.5;
		draft.severity = severity_of(study, tally.ns[line]);
		code = plumb_draft_end(study, &draft);
	}
	plumb_tally_free(&tally);
	free(kinds);
	return code;
}

static int
draft_unknown(struct plumb_study *study, const struct plumb_startup *startup)
{
	char startup_time[PLUMB_FORMAT_SIZE], run[PLUMB_FORMAT_SIZE];
	struct plumb_draft draft;

	plumb_draft_begin(&draft, "unknown", PLUMB_NONE);
	plumb_draft_key(&draft, "unknown");
	plumb_draft_title(&draft,
	                  "start-up takes %s of the run's %s, and most of it was not "
	                  "recorded",
	                  plumb_format_time(startup_time, startup->wall_ns),
	                  plumb_format_time(run, study->whole_ns));
	plumb_draft_advice(&draft, "Record with plumb run --cpu: samples say whether it imports, "
	                           "compiles or loads, and at which line.");
	add_evidence(study, startup, &draft);
	draft.confidence = 0.5;
	draft.severity = PLUMB_NOTE;
	return plumb_draft_end(study, &draft);
}

static int
find_startup(struct plumb_study *study)
{
	struct plumb_startup startup;
	double wall;
	bool found = false;
	int code;

	if (study->profile->window.kind != PLUMB_WINDOW_STARTUP)
		return 0;
	code = plumb_startup_find(study->profile, &startup);
	wall = (double)startup.wall_ns;
	if (code || startup.wall_ns == PLUMB_UNKNOWN || study->whole_ns <= 0 ||
	    wall < plumb_study_threshold(study, "startup.time") ||
	    wall < plumb_study_threshold(study, "startup.share") * (double)study->whole_ns)
		return code;
	for (int k = 1; !code && k < PLUMB_STARTUP_KINDS; k++) {
		if ((double)startup.ns[k] < plumb_study_threshold(study, "startup.cause") * wall)
			continue;
		code = draft_cause(study, &startup, k);
		found = true;
	}
	if (!code)
		code = draft_line(study, &startup, &found);
	if (!code && !found && !plumb_startup_is_known(&startup))
		code = draft_unknown(study, &startup);
	return code;
}

static const struct plumb_threshold thresholds[] = {
	{ "startup.share", 0.2, "share", "least share of the run that start-up takes" },
	{ "startup.time", 1e9, "ns", "least time that start-up takes" },
	{ "startup.cause", 0.2, "share", "least share of start-up that a cause takes" },
	{ 0 },
};

const struct plumb_analysis plumb_analysis_startup = {
	"startup",
	"What takes the time before the program's loop: imports, compiling, trying variants of "
	"kernels, loading data or a model, starting the GPU.",
	thresholds,
	find_startup,
};
