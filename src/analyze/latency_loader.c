/* SPDX-License-Identifier: Apache-2.0 */
/* Loaders of data: worker processes against processors, and loading in the training
 * process. */
#include <stdlib.h>

#include "analyze/latency.h"
#include "base/format.h"
#include "base/vec.h"

/* ---- workers ---- */

struct edge {
	uint32_t host; /* string */
	int64_t time;
	int change; /* +1 a worker begins, -1 it ends */
};

static int
by_host_and_time(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->change - b->change; /* ends first */
}

struct workers {
	unsigned char *is_worker; /* by process */
	uint32_t all;             /* worker processes */
	int64_t most;             /* at once, on one host */
	uint32_t context;         /* the one with the most CPU time of a worker, else the first */
	int64_t host_ns;
};

static bool
count_workers(const struct latency *l, struct workers *w)
{
	const struct plumb_profile *p = l->study->whole;
	PLUMB_VEC(struct edge) edges = { 0 };
	int64_t now = 0;
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->processes_count; i++) {
		const struct plumb_process *process = &p->processes[i];
		struct edge *edge;

		if (!w->is_worker[i])
			continue;
		w->all++;
		edge = plumb_vec_add(&edges);
		if (edge)
			*edge = (struct edge){ process->host, process->start_ns, 1 };
		ok = edge != NULL;
		edge = ok ? plumb_vec_add(&edges) : NULL;
		if (edge)
			*edge = (struct edge){ process->host,
				               process->end_ns == PLUMB_UNKNOWN ? INT64_MAX
				                                                : process->end_ns,
				               -1 };
		ok = edge != NULL;
	}
	if (edges.count)
		qsort(edges.items, edges.count, sizeof *edges.items, by_host_and_time);
	for (uint32_t i = 0; i < edges.count; i++) {
		now += edges.items[i].change;
		if (now > w->most)
			w->most = now;
	}
	plumb_vec_free(&edges);
	return ok;
}

/* In the whole run: workers have no loop of their own, so they have no part in a window of one. */
static void
find_workers(const struct latency *l, struct workers *w)
{
	const struct plumb_profile *p = l->study->whole;

	w->context = PLUMB_NONE;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (l->place[v->context] != PLUMB_IN_WORKER || v->track >= p->tracks_count ||
		    p->tracks[v->track].process >= p->processes_count)
			continue;
		w->is_worker[p->tracks[v->track].process] = 1;
		if (p != l->study->profile && v->sum > 0 &&
		    v->metric == (l->sampled ? PLUMB_METRIC_CPU_TIME : PLUMB_METRIC_OP_TIME))
			w->host_ns = plumb_add(w->host_ns, v->sum);
	}
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		if (l->place[c] != PLUMB_IN_WORKER)
			continue;
		if (p == l->study->profile)
			w->host_ns = plumb_add(w->host_ns, l->host[c]);
		if (w->context == PLUMB_NONE || l->host[c] > l->host[w->context])
			w->context = c;
	}
}

static int
draft_workers(struct latency *l, const struct workers *w)
{
	struct plumb_study *s = l->study;
	const struct plumb_profile *p = s->profile;
	uint32_t context = w->context, line;
	struct plumb_draft draft;
	char where[420];

	/* A forked worker's stack begins with its parent's: there is the line that made the loader
	 * run. That of a spawned one does not: then it is where the training process uses the
	 * loader. */
	while (context && l->place[context] == PLUMB_IN_WORKER)
		context = p->contexts[context].parent;
	for (uint32_t c = 0; c < p->contexts_count && l->place[context] != PLUMB_IN_LOADER; c++)
		if (l->place[c] == PLUMB_IN_LOADER)
			context = c;
	line = s->place_of[context];
	plumb_draft_begin(&draft, "workers", context);
	plumb_draft_key(&draft, "%s", plumb_study_key(s, line, where, sizeof where));
	plumb_study_line(s, line, where, sizeof where);
	plumb_draft_title(&draft, "%lld %s workers share %lld processors%s%s", (long long)w->most,
	                  l->framework->loader, (long long)l->cores,
	                  line == PLUMB_NONE ? "" : ", started at ",
	                  line == PLUMB_NONE ? "" : where);
	plumb_draft_advice(&draft, "%s", l->framework->workers);
	plumb_json_key_quantity(draft.evidence, "workers", w->most);
	plumb_json_key_quantity(draft.evidence, "worker_processes", w->all);
	plumb_json_key_quantity(draft.evidence, "processes", p->processes_count);
	plumb_json_key_text(draft.evidence, "metric", l->sampled ? "cpu.time" : "op.time");
	plumb_json_key_quantity(draft.evidence, "worker_host_ns", w->host_ns);
	plumb_latency_evidence(l, draft.evidence);
	plumb_study_line_json(s, draft.evidence, line);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = l->idle_ns;
	draft.host = true;
	draft.confidence = 0.7;
	if (l->idle_ns == PLUMB_UNKNOWN)
		draft.severity = PLUMB_WARNING;
	return plumb_draft_end(s, &draft);
}

int
plumb_latency_workers(struct latency *l)
{
	const struct plumb_profile *p = l->study->profile;
	struct workers w = { .is_worker = calloc(p->processes_count + 1u, 1) };
	int code = PLUMB_ESYSTEM;

	if (w.is_worker) {
		find_workers(l, &w);
		code = count_workers(l, &w) ? 0 : PLUMB_ESYSTEM;
	}
	if (!code && l->cores != PLUMB_UNKNOWN && w.context != PLUMB_NONE &&
	    (double)w.most >
	            plumb_study_threshold(l->study, "latency.workers") * (double)l->cores) {
		code = draft_workers(l, &w);
		l->found++;
	}
	free(w.is_worker);
	return code;
}

/* ---- loading in the training process ---- */

int
plumb_latency_loading(struct latency *l)
{
	struct plumb_study *s = l->study;
	const struct plumb_profile *p = s->profile;
	char where[420], time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], whole[120];
	uint32_t best = PLUMB_NONE, line;
	struct plumb_draft draft;
	int64_t ns = 0;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		int64_t own = plumb_add(l->host[c], l->waiting[c]);

		if (l->place[c] != PLUMB_IN_LOADER || !own)
			continue;
		ns = plumb_add(ns, own);
		if (best == PLUMB_NONE || own > plumb_add(l->host[best], l->waiting[best]))
			best = c;
	}
	if (best == PLUMB_NONE || s->scale_ns <= 0 ||
	    (l->idle_ns != PLUMB_UNKNOWN ? !l->idles : s->gpu_ns > 0) ||
	    (double)ns < plumb_study_threshold(s, "latency.share") * (double)s->scale_ns)
		return 0;
	/* The outermost frame of the loader, and the line that asks it for a batch. */
	while (l->place[p->contexts[best].parent] == PLUMB_IN_LOADER)
		best = p->contexts[best].parent;
	line = s->place_of[p->contexts[best].parent];
	plumb_draft_begin(&draft, "loading", best);
	plumb_draft_key(&draft, "%s", plumb_study_key(s, line, where, sizeof where));
	plumb_study_under(s, " at ", line, where, sizeof where);
	plumb_draft_title(&draft, "loading data%s takes the training process %s, %s of %s", where,
	                  plumb_format_time(time, ns),
	                  plumb_format_share(share, (double)ns, (double)s->scale_ns),
	                  plumb_study_scale(s, whole, sizeof whole));
	plumb_draft_advice(&draft, "%s", l->framework->loading);
	plumb_json_key_text(draft.evidence, "metric",
	                    l->sampled ? "cpu.time + wait.time" : "op.time");
	plumb_json_key_quantity(draft.evidence, "loading_ns", ns);
	plumb_json_key(draft.evidence, "share");
	plumb_json_number(draft.evidence, (double)ns / (double)s->scale_ns);
	plumb_latency_evidence(l, draft.evidence);
	plumb_study_line_json(s, draft.evidence, line);
	unsigned char *about = plumb_draft_about(s, &draft);
	for (uint32_t c = 0; about && c < p->contexts_count; c++)
		about[c] = l->place[c] == PLUMB_IN_LOADER;
	if (l->sampled)
		plumb_draft_about_samples(s, &draft, about);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = plumb_latency_bound(l, ns);
	draft.confidence = 0.7;
	l->loading = true;
	l->found++;
	return plumb_draft_end(s, &draft);
}
