/* SPDX-License-Identifier: Apache-2.0 */
/* Where the main threads were in the loop, seen from outside (host.time): for GPUs that idle where
 * nothing else says what the CPU did. */
#include "analyze/latency.h"

enum { LEAST = 5 }; /* looks at a function. Fewer may be chance */
#define CLEAR 0.3   /* of the time */

/* Is it of the main thread of a process that uses a GPU, as far as that is known? */
static bool
is_of_main(const struct plumb_profile *p, uint32_t track)
{
	const struct plumb_track *t = track < p->tracks_count ? &p->tracks[track] : NULL;

	if (!t || t->kind != PLUMB_TRACK_THREAD || t->process >= p->processes_count ||
	    t->tid != p->processes[t->process].pid)
		return false;
	for (uint32_t i = 0; i < p->device_processes_count; i++)
		if (p->device_processes[i].process == t->process)
			return true;
	return !p->device_processes_count;
}

static bool
is_same_function(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	return p->frames[a].kind == p->frames[b].kind && p->frames[a].name == p->frames[b].name &&
	       p->frames[a].file == p->frames[b].file;
}

/* Adds to the line of each function that has most of the function's other lines. */
static void
join_lines(const struct plumb_profile *p, struct plumb_tally *tally)
{
	for (uint32_t a = 0; a < p->frames_count; a++) {
		if (!tally->ns[a])
			continue;
		uint32_t most = a;
		for (uint32_t b = a + 1; b < p->frames_count; b++)
			if (tally->ns[b] > tally->ns[most] && is_same_function(p, a, b))
				most = b;
		for (uint32_t b = a; b < p->frames_count; b++) {
			if (b == most || !tally->ns[b] || !is_same_function(p, most, b))
				continue;
			tally->ns[most] = plumb_add(tally->ns[most], tally->ns[b]);
			tally->count[most] += tally->count[b];
			tally->ns[b] = 0;
			tally->count[b] = 0;
		}
	}
}

/* Does the function of LINE give the GPU most of its work? Then being there says little. */
static bool
launches_most(const struct plumb_study *s, uint32_t line)
{
	double own = 0, all = 0;

	for (uint32_t c = 0; c < s->profile->contexts_count; c++) {
		double ns = (double)s->kernels[c].sum;
		uint32_t user = s->user_of[c];
		all += ns;
		own += user != PLUMB_NONE && is_same_function(s->profile, user, line) ? ns : 0;
	}
	return own > 0.5 * all;
}

int
plumb_latency_looks_find(const struct latency *l, struct plumb_latency_looks *looks)
{
	const struct plumb_profile *p = l->study->profile;
	struct plumb_tally tally = { 0 };
	int64_t whole = 0;
	uint32_t line;

	*looks = (struct plumb_latency_looks){ .line = PLUMB_NONE };
	if (p->window.kind != PLUMB_WINDOW_LOOP || l->sampled)
		return 0;
	if (plumb_tally_new(l->study, &tally))
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		if (v->metric != PLUMB_METRIC_HOST_TIME || v->sum <= 0 || !is_of_main(p, v->track))
			continue;
		whole = plumb_add(whole, v->sum);
		looks->count += v->count;
		plumb_tally_add(&tally, l->study->user_of[v->context], v->sum, v->count);
	}
	join_lines(p, &tally);
	line = plumb_tally_top(&tally);
	if (line != PLUMB_NONE && tally.count[line] >= LEAST &&
	    (double)tally.ns[line] >= CLEAR * (double)whole) {
		looks->launches = launches_most(l->study, line);
		looks->line = line;
		looks->at = tally.count[line];
		looks->ns = tally.ns[line];
	}
	plumb_tally_free(&tally);
	return 0;
}
