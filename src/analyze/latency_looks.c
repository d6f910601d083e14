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
	uint32_t process = plumb_profile_main_of(p, track);

	if (process == PLUMB_NONE)
		return false;
	for (uint32_t i = 0; i < p->device_processes_count; i++)
		if (p->device_processes[i].process == process)
			return true;
	return !p->device_processes_count;
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
		own += user != PLUMB_NONE && plumb_is_same_function(s->profile, user, line) ? ns
		                                                                            : 0;
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
	if (plumb_tally_join_functions(l->study, (struct plumb_tally *[]){ &tally, NULL })) {
		plumb_tally_free(&tally);
		return PLUMB_ESYSTEM;
	}
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
