/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency: the GPU idles because the CPU does not keep up. Causes, each a finding of its own:
 *
 *   workers  more DataLoader worker processes at once than the host has processors
 *   loading  the training process itself spends its time in the DataLoader
 *   wait     a line waits for the GPU (reads a result) while the GPU goes idle
 *   host     a part of the program keeps the CPU busy far longer than the GPU
 *   intervals  iterations wait for the host, and spans tell what it did
 *   idle     the GPU idles, and none of these was seen
 *
 * All but `workers` need devices that idle. CPU time comes from samples where the profile has them,
 * else from the operators' self time, of which each context's longest call is left out: the first
 * call of an operator loads code and is no part of what repeats. Python's own time is then not
 * seen. No saving is greater than the time that the devices idled.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/latency.h"
#include "analyze/startup.h"
#include "base/format.h"

static const struct plumb_threshold thresholds[] = {
	{ "latency.idle", 0.30, "share",
	  "minimum share of the time from first to last work in which the devices idle" },
	{ "latency.share", 0.10, "share",
	  "minimum share of that time in which the CPU is busy or waits under one part of the "
	  "program" },
	{ "latency.ratio", 5, "ratio", "minimum ratio of CPU time to GPU time in that part" },
	{ "latency.workers", 1, "ratio", "maximum DataLoader workers per processor" },
	{ 0 },
};

/* ---- what is worked out once ---- */

static bool
mark_places(struct latency *l)
{
	const struct plumb_profile *p = l->study->profile;
	unsigned char *purposes = calloc(p->frames_count + 1u, 1);

	for (uint32_t f = 0; purposes && f < p->frames_count; f++) {
		const char *name = plumb_text(p, p->frames[f].name);
		const struct plumb_framework_names *of = NULL;

		/* What a file does when it is imported is none of its functions. */
		if (name && !strcmp(name, "<module>"))
			continue;
		purposes[f] = (unsigned char)plumb_framework_place(p, f, &of);
		if (purposes[f] == PLUMB_PURPOSE_WORKER || purposes[f] == PLUMB_PURPOSE_LOADER)
			l->framework = of;
	}
	for (uint32_t c = 1; purposes && c < p->contexts_count; c++) {
		unsigned purpose = purposes[p->contexts[c].frame];

		l->place[c] = l->place[p->contexts[c].parent];
		if (purpose == PLUMB_PURPOSE_WORKER)
			l->place[c] = PLUMB_IN_WORKER;
		else if (l->place[c] == PLUMB_IN_PROGRAM && purpose == PLUMB_PURPOSE_LOADER)
			l->place[c] = PLUMB_IN_LOADER;
	}
	free(purposes);
	return purposes;
}

static bool
load_host(struct latency *l)
{
	const struct plumb_profile *p = l->study->profile;
	struct plumb_stat *stats = calloc(p->contexts_count + 1u, sizeof *stats);

	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_CPU_TIME && p->values[i].sum > 0)
			l->sampled = true;
	if (!stats)
		return false;
	plumb_study_load(p, l->sampled ? PLUMB_METRIC_CPU_TIME : PLUMB_METRIC_OP_TIME, stats);
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		l->host[c] = stats[c].sum > 0 ? stats[c].sum : 0;
		if (!l->sampled && stats[c].count) {
			/* In a window the longest is unknown. */
			int64_t most = stats[c].max == PLUMB_UNKNOWN
			                       ? stats[c].sum / (int64_t)stats[c].count
			                       : stats[c].max;
			l->host[c] -= most < l->host[c] ? most : l->host[c];
		}
	}
	if (l->sampled) {
		plumb_study_load(p, PLUMB_METRIC_WAIT_TIME, stats);
		for (uint32_t c = 0; c < p->contexts_count; c++)
			l->waiting[c] = stats[c].sum > 0 ? stats[c].sum : 0;
	}
	free(stats);
	return true;
}

static bool
load_study(struct latency *l)
{
	const struct plumb_profile *p = l->study->profile;
	size_t room = p->contexts_count + 1u;
	const char *cpus = plumb_profile_environment(p, "host.cpus");
	int64_t idle = plumb_study_idle(l->study);

	l->place = calloc(room, 1);
	l->host = calloc(room, sizeof *l->host);
	l->waiting = calloc(room, sizeof *l->waiting);
	l->cores = cpus && strtoll(cpus, NULL, 10) > 0 ? strtoll(cpus, NULL, 10) : PLUMB_UNKNOWN;
	l->idle_ns = idle;
	l->idles = idle != PLUMB_UNKNOWN && l->study->span_ns > 0 &&
	           (double)idle >= plumb_study_threshold(l->study, "latency.idle") *
	                                   (double)l->study->span_ns;
	return l->place && l->host && l->waiting && load_host(l) && mark_places(l);
}

void
plumb_latency_evidence(const struct latency *l, struct plumb_json *json)
{
	const struct plumb_study *s = l->study;

	plumb_json_key_quantity(json, "cores", l->cores);
	plumb_json_key_quantity(json, "device_busy_ns", s->busy_ns);
	plumb_json_key_quantity(json, "device_span_ns", s->span_ns);
	plumb_json_key(json, "idle_share");
	if (l->idle_ns == PLUMB_UNKNOWN || s->span_ns <= 0)
		plumb_json_null(json);
	else
		plumb_json_number(json, (double)l->idle_ns / (double)s->span_ns);
}

int64_t
plumb_latency_bound(const struct latency *l, int64_t ns)
{
	return l->idle_ns != PLUMB_UNKNOWN && ns > l->idle_ns ? l->idle_ns : ns;
}

/* ---- the CPU busy for itself ---- */

struct busy {
	int64_t host, gpu;
	uint32_t best; /* the context with the most CPU time */
};

/* As for fusion: the innermost unit that passes; the rest is counted for the unit around it. */
static void
sum_units(const struct latency *l, const struct plumb_units *units, const struct plumb_stat *copies,
          struct busy *busy)
{
	for (uint32_t c = 0; c < l->study->profile->contexts_count; c++) {
		struct busy *b = units->of[c] == PLUMB_NONE ? NULL : &busy[units->of[c]];

		if (!b || l->place[c] == PLUMB_IN_WORKER ||
		    (l->loading && l->place[c] == PLUMB_IN_LOADER))
			continue;
		b->gpu = plumb_add(b->gpu, plumb_add(l->study->kernels[c].sum, copies[c].sum));
		b->host = plumb_add(b->host, l->host[c]);
		if (l->host[c] && (!b->best || l->host[c] > l->host[b->best]))
			b->best = c;
	}
}

/* What the host does in the unit and in those within. */
static void
tell_unit(const struct latency *l, const struct plumb_units *units, uint32_t unit,
          struct plumb_draft *draft)
{
	const struct plumb_profile *p = l->study->profile;
	unsigned char *about = plumb_draft_about(l->study, draft);
	unsigned char *within = about ? calloc(units->count + 1u, 1) : NULL;

	draft->failed = draft->failed || (about && !within);
	for (uint32_t u = unit; within && u < units->count; u++) {
		uint32_t parent = units->items[u].parent;
		within[u] = u == unit || (parent != PLUMB_NONE && within[parent]);
	}
	for (uint32_t c = 1; within && c < p->contexts_count; c++) {
		uint32_t kind = plumb_context_frame(p, c)->kind, of = units->of[c];
		about[c] = of != PLUMB_NONE && within[of] && kind != PLUMB_FRAME_KERNEL &&
		           kind != PLUMB_FRAME_COPY && kind != PLUMB_FRAME_SET;
	}
	free(within);
	if (l->sampled)
		plumb_draft_about_samples(l->study, draft, about);
}

/* Is CONTEXT compiling or trying kernels? That has a remedy of its own. */
static enum plumb_startup_kind
find_compiling(const struct plumb_profile *p, uint32_t context)
{
	for (uint32_t c = context; c && c != PLUMB_NONE; c = p->contexts[c].parent) {
		enum plumb_startup_kind kind = plumb_framework_startup(p, p->contexts[c].frame);
		if (kind == PLUMB_STARTUP_COMPILING || kind == PLUMB_STARTUP_TUNING)
			return kind;
	}
	return PLUMB_STARTUP_OTHER;
}

static int
draft_busy(struct latency *l, const struct plumb_units *units, uint32_t unit, const struct busy *b)
{
	char name[900], host[PLUMB_FORMAT_SIZE], gpu[PLUMB_FORMAT_SIZE], idle[PLUMB_FORMAT_SIZE];
	char span[PLUMB_FORMAT_SIZE];
	struct plumb_study *s = l->study;
	const struct plumb_framework_names *framework = plumb_framework_of_operators(s->profile);
	uint32_t member = plumb_units_member(s, units, unit, b->best);
	enum plumb_startup_kind kind = find_compiling(s->profile, b->best ? b->best : member);
	struct plumb_draft draft;

	plumb_draft_begin(&draft, "host", member);
	plumb_units_key(s, units, unit, &draft);
	plumb_draft_title(
		&draft,
		"%s%s%s keeps the CPU busy for %s and the GPU %s%s; the GPU idles %s of the %s "
		"from its first work to its last",
		kind ? plumb_startup_words[kind] : "", kind ? ": " : "",
		plumb_units_title(s, member, name, sizeof name), plumb_format_time(host, b->host),
		b->gpu > 0 ? "for " : "not at all",
		b->gpu > 0 ? plumb_format_time(gpu, b->gpu) : "",
		plumb_format_share(idle, (double)l->idle_ns, (double)s->span_ns),
		plumb_format_time(span, s->span_ns));
	plumb_draft_advice(
		&draft, "%s",
		kind ? "A new shape, type or constant compiles again. Pad batches to a few sizes, "
		       "tell the compiler what changes (torch.compile(dynamic=True)), and keep its "
		       "cache between runs."
		: framework && framework->slow_host
			? framework->slow_host
			: "The GPU waits for this code to give it work. Give it more at a time (a "
			  "larger batch, fewer and larger kernels, a CUDA or HIP graph), or move "
			  "what does not need the GPU out of the loop or to worker processes.");
	plumb_json_key_text(draft.evidence, "metric", l->sampled ? "cpu.time" : "op.time");
	plumb_json_key_quantity(draft.evidence, "host_ns", b->host);
	plumb_json_key_quantity(draft.evidence, "gpu_ns", b->gpu);
	plumb_latency_evidence(l, draft.evidence);
	plumb_study_line_json(s, draft.evidence, s->place_of[member]);
	tell_unit(l, units, unit, &draft);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = plumb_latency_bound(l, b->host > b->gpu ? b->host - b->gpu : 0);
	/* Next to no GPU work: then nothing but the host's is in the way. */
	draft.confidence = l->sampled ? 0.7 : b->gpu < b->host / 10 ? 0.6 : 0.5;
	return plumb_draft_end(s, &draft);
}

static int
find_busy(struct latency *l)
{
	const struct plumb_profile *p = l->study->profile;
	double least = plumb_study_threshold(l->study, "latency.share") * (double)l->study->span_ns;
	double ratio = plumb_study_threshold(l->study, "latency.ratio");
	struct plumb_stat *copies = calloc(p->contexts_count + 1u, sizeof *copies);
	struct plumb_units units;
	struct busy *busy;
	int code = plumb_units_new(l->study, &units);

	busy = calloc(units.count + 1u, sizeof *busy);
	if (!copies || !busy)
		code = PLUMB_ESYSTEM;
	if (!code) {
		plumb_study_load(p, PLUMB_METRIC_GPU_COPY_TIME, copies);
		sum_units(l, &units, copies, busy);
	}
	for (uint32_t u = units.count; !code && u-- > 0;) {
		struct busy *b = &busy[u], *outer;

		if (b->host > 0 && (double)b->host >= least &&
		    (double)b->host >= ratio * (double)b->gpu) {
			code = draft_busy(l, &units, u, b);
			l->found++;
			continue;
		}
		if (units.items[u].parent == PLUMB_NONE)
			continue;
		outer = &busy[units.items[u].parent];
		outer->gpu = plumb_add(outer->gpu, b->gpu);
		outer->host = plumb_add(outer->host, b->host);
		if (b->best && (!outer->best || l->host[b->best] > l->host[outer->best]))
			outer->best = b->best;
	}
	plumb_units_free(&units);
	free(copies);
	free(busy);
	return code;
}

/* ---- waiting for results ---- */

/* Is CONTEXT a copy from pageable memory? Its wait is the hotspot analysis' matter. */
static bool
is_upload(const struct plumb_profile *p, uint32_t context)
{
	return plumb_context_frame(p, context)->transfer.from == PLUMB_MEMORY_PAGEABLE;
}

/* The calls that wait, and copies that were waited for with theirs. */
static void
tell_waits(const struct plumb_study *s, uint32_t line, const struct plumb_stat *waits,
           struct plumb_draft *draft)
{
	const struct plumb_profile *p = s->profile;
	unsigned char *about = plumb_draft_about(s, draft);

	for (uint32_t c = 1; about && c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;

		if (!waits[c].count || s->user_of[c] != line || is_upload(p, c))
			continue;
		about[c] = 1;
		if (plumb_context_frame(p, c)->kind == PLUMB_FRAME_COPY &&
		    plumb_context_frame(p, parent)->kind == PLUMB_FRAME_GPU_API)
			about[parent] = 1;
	}
}

static int
draft_wait(struct latency *l, uint32_t line, const struct plumb_stat *wait, uint32_t context,
           const struct plumb_stat *waits, struct plumb_tally *calls)
{
	char where[420], count[PLUMB_FORMAT_SIZE], time[PLUMB_FORMAT_SIZE], idle[PLUMB_FORMAT_SIZE];
	char span[PLUMB_FORMAT_SIZE];
	struct plumb_study *s = l->study;
	struct plumb_draft draft;

	plumb_draft_begin(&draft, "wait", context);
	plumb_study_line(s, line, where, sizeof where);
	plumb_draft_key(&draft, "%s", where);
	plumb_study_line_at(s, line, context, where, sizeof where);
	plumb_draft_title(
		&draft,
		"%s waits for the GPU %s times, %s in all; the GPU idles %s of the %s from its "
		"first work to its last",
		line == PLUMB_NONE ? "the program" : where,
		plumb_format_count(count, (int64_t)wait->count), plumb_format_time(time, wait->sum),
		plumb_format_share(idle, (double)l->idle_ns, (double)s->span_ns),
		plumb_format_time(span, s->span_ns));
	plumb_draft_advice(
		&draft, "While the host waits it starts nothing, and then the GPU has nothing to "
			"do until new work arrives. Read results (.item(), .cpu(), print, a "
			"comparison in an if) less often or later, and keep sums on the GPU.");
	plumb_json_key_quantity(draft.evidence, "host_wait_ns", wait->sum);
	plumb_json_key(draft.evidence, "count");
	plumb_json_unsigned(draft.evidence, wait->count);
	plumb_latency_evidence(l, draft.evidence);
	plumb_study_line_json(s, draft.evidence, line);
	plumb_tally_json(s, calls, draft.evidence, "calls", 5);
	tell_waits(s, line, waits, &draft);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = plumb_latency_bound(l, wait->sum);
	draft.confidence = 0.4;
	return plumb_draft_end(s, &draft);
}

static int
find_waits(struct latency *l)
{
	const struct plumb_study *s = l->study;
	const struct plumb_profile *p = s->profile;
	double least = plumb_study_threshold(s, "latency.share") * (double)s->span_ns;
	struct plumb_stat *waits = calloc(p->contexts_count + 1u, sizeof *waits);
	struct plumb_stat *lines = calloc(p->frames_count + 1u, sizeof *lines);
	struct plumb_tally calls = { 0 };
	int code = waits && lines ? 0 : PLUMB_ESYSTEM;

	if (!code)
		plumb_study_load(p, PLUMB_METRIC_HOST_WAIT, waits);
	for (uint32_t c = 0; !code && c < p->contexts_count; c++)
		if (waits[c].count && s->user_of[c] < p->frames_count && !is_upload(p, c))
			plumb_stat_merge(&lines[s->user_of[c]], &waits[c]);
	for (uint32_t f = 0; !code && f < p->frames_count; f++) {
		uint32_t best = 0;

		if (lines[f].sum <= 0 || (double)lines[f].sum < least)
			continue;
		code = plumb_tally_new(s, &calls);
		for (uint32_t c = 0; !code && c < p->contexts_count; c++) {
			if (!waits[c].count || s->user_of[c] != f || is_upload(p, c))
				continue;
			plumb_tally_add(&calls, p->contexts[c].frame, waits[c].sum, waits[c].count);
			if (!best || waits[c].sum > waits[best].sum)
				best = c;
		}
		if (!code)
			code = draft_wait(l, f, &lines[f], best, waits, &calls);
		plumb_tally_free(&calls);
		l->found++;
	}
	free(waits);
	free(lines);
	return code;
}

/* ---- idle for no known reason ---- */

static int
draft_idle(struct latency *l)
{
	char idle[PLUMB_FORMAT_SIZE], span[PLUMB_FORMAT_SIZE], where[420], looked[500] = "";
	struct plumb_study *s = l->study;
	struct plumb_latency_looks looks;
	struct plumb_draft draft;
	int64_t host = 0;

	if (plumb_latency_looks_find(l, &looks))
		return PLUMB_ESYSTEM;
	if (l->found && (looks.line == PLUMB_NONE || looks.launches))
		return 0;
	if (looks.line != PLUMB_NONE) {
		plumb_study_line(s, looks.line, where, sizeof where);
		snprintf(looked, sizeof looked,
		         "; the main thread was at %s in %" PRIu64 " of %" PRIu64 " looks", where,
		         looks.at, looks.count);
	}

	bool is_cause = looks.line != PLUMB_NONE && !looks.launches;
	for (uint32_t c = 0; c < s->profile->contexts_count; c++)
		host = plumb_add(host, l->host[c]);
	plumb_draft_begin(&draft, "idle", 0);
	/* Loops may idle for reasons of their own. The line is by chance, its function less. */
	plumb_draft_key(&draft, "idle%s%s", is_cause ? " " : "",
	                is_cause ? plumb_frame_label(s->profile, looks.line) : "");
	plumb_draft_title(&draft, "the GPU idles %s of the %s from its first work to its last%s",
	                  plumb_format_share(idle, (double)l->idle_ns, (double)s->span_ns),
	                  plumb_format_time(span, s->span_ns), looked);
	plumb_draft_advice(
		&draft, "%s",
		l->sampled ? "No single part of the program explains it: it may be start-up, "
			     "input, or CPU work that is spread out. In a short program "
			     "start-up alone can be the reason."
		: plumb_profile_environment(s->profile, "import.format")
			? "The trace does not say what the CPU did meanwhile. Record CPU samples "
			  "too, or record with plumb run --trace --cpu. In a short program "
			  "start-up alone can be the reason."
		: looks.line != PLUMB_NONE
			? "The GPU waits for what the main thread does at this line. plumb report "
			  "--metric host.time --by context shows the calls below it, and plumb run "
			  "--cpu says whether it computes or waits."
			: "The profile has only operators, not what else the CPU did meanwhile. "
			  "Record again with plumb run --cpu. In a short program start-up alone "
			  "can be the reason.");
	plumb_json_key_text(draft.evidence, "metric", l->sampled ? "cpu.time" : "op.time");
	plumb_json_key_quantity(draft.evidence, "host_ns", host);
	plumb_latency_evidence(l, draft.evidence);
	draft.tells = is_cause ? PLUMB_TELLS_WHY : PLUMB_TELLS_IDLE;
	if (looks.line != PLUMB_NONE) {
		plumb_study_line_json(s, draft.evidence, looks.line);
		plumb_json_key_quantity(draft.evidence, "line_ns", looks.ns);
		plumb_json_key_quantity(draft.evidence, "line_looks", (int64_t)looks.at);
		plumb_json_key_quantity(draft.evidence, "looks", (int64_t)looks.count);
	}
	draft.saving_ns = l->idle_ns;
	/* Without the host's work its critical path cannot say what the GPU waits for. */
	draft.host = host >= l->idle_ns / 10;
	draft.confidence = 0.5;
	/* In a whole run, nobody knows how much of it is start-up. */
	draft.severity = is_cause ? PLUMB_SERIOUS : PLUMB_WARNING;
	return plumb_draft_end(s, &draft);
}

/* Do the findings so far account for half of the time? */
static bool
is_explained(const struct latency *l)
{
	const struct plumb_finding_text *found;
	int64_t sum = 0;
	uint32_t count;

	found = plumb_study_findings(l->study, &count);
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(found[i].rule, "latency") && found[i].saving_ns > 0)
			sum = plumb_add(sum, found[i].saving_ns);
	return sum >= l->idle_ns / 2;
}

static int
find_latency(struct plumb_study *study)
{
	struct latency l = { .study = study };
	int code = load_study(&l) ? 0 : PLUMB_ESYSTEM;

	if (!code)
		code = plumb_latency_workers(&l);
	if (!code)
		code = plumb_latency_loading(&l);
	if (!code && l.idles)
		code = find_waits(&l);
	if (!code && l.idles)
		code = find_busy(&l);
	if (!code && l.idles && !is_explained(&l))
		code = plumb_latency_intervals(&l);
	if (!code && l.idles && (!l.found || !is_explained(&l)))
		code = draft_idle(&l);
	free(l.place);
	free(l.host);
	free(l.waiting);
	return code;
}

const struct plumb_analysis plumb_analysis_latency = {
	.name = "latency",
	.summary = "the GPU idles because of the CPU: too many workers, loading, waiting, or code "
		   "that keeps the CPU busy far longer than the GPU",
	.thresholds = thresholds,
	.run = find_latency,
	.waits = true,
};
