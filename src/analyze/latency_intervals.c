/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations that wait for the host, and what the launching thread did meanwhile. */
#include <stdlib.h>

#include "analyze/latency.h"
#include "analyze/steps/filled.h"
#include "analyze/steps/words.h"
#include "base/format.h"

#define NAMED_MOST 5
#define SINGLE 0.25 /* of the time: what is worth doing elsewhere by itself */

static int
draft_level(struct latency *l, const struct plumb_iteration_level *level,
            const struct plumb_moments *moments, const struct plumb_filled *filled)
{
	static const char *const what[] = { NULL, "between iterations", "within iterations", NULL };
	struct plumb_study *s = l->study;
	struct plumb_step_shown shown[PLUMB_STEP_SHOWN];
	uint32_t count = plumb_step_rows_show(moments, &filled->all.rows, NAMED_MOST, shown);
	char name[700], about[700], time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE];
	struct plumb_draft draft;

	if (!count || shown[0].kind != PLUMB_SHOWN_KEY)
		return 0;
	const struct plumb_step_key *key = &moments->keys.items[shown[0].key];
	plumb_step_name(moments, key, name, sizeof name);
	plumb_draft_begin(&draft, "intervals", key->context == PLUMB_NONE ? 0 : key->context);
	plumb_draft_key(&draft, "%s", plumb_step_about(moments, key, about, sizeof about));
	plumb_draft_title(
		&draft, "the GPU waits %s for the host %s; the longest part, %s of it, is %s",
		plumb_format_time(time, filled->all.ns), what[filled->what],
		plumb_format_share(share, (double)shown[0].ns, (double)filled->all.ns), name);
	plumb_draft_advice(
		&draft, "%s",
		(double)shown[0].ns >= SINGLE * (double)filled->all.ns
			? "The GPU has no work until the host launches the next kernel. Do the "
			  "work named here earlier or in other processes: load data in workers, "
			  "keep results on the GPU, and do not wait for it in each step. plumb "
			  "iters shows each iteration."
			: "The GPU has no work until the host launches the next kernel. The time "
			  "is spread over many calls, so fewer and larger ones help: a larger "
			  "batch, fused operators, or a graph (CUDA or HIP). plumb iters shows "
			  "each iteration.");
	plumb_json_key_quantity(draft.evidence, "iterations", level->count);
	plumb_json_key_quantity(draft.evidence, "waited_ns", filled->all.ns);
	plumb_json_key(draft.evidence, "filled");
	plumb_json_array(draft.evidence);
	for (uint32_t i = 0; i < count; i++) {
		plumb_json_object(draft.evidence);
		plumb_json_key_text(draft.evidence, "name",
		                    shown[i].kind == PLUMB_SHOWN_KEY
		                            ? plumb_step_name(moments,
		                                              &moments->keys.items[shown[i].key],
		                                              name, sizeof name)
		                    : shown[i].kind == PLUMB_SHOWN_GAPS ? "nothing recorded"
		                                                        : "other");
		plumb_json_key_quantity(draft.evidence, "ns", shown[i].ns);
		plumb_json_end(draft.evidence);
	}
	plumb_json_end(draft.evidence);
	plumb_latency_evidence(l, draft.evidence);
	plumb_study_line_json(s, draft.evidence, key->line);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = plumb_latency_bound(l, filled->all.ns);
	draft.host = true;
	draft.confidence = 0.6;
	l->found++;
	return plumb_draft_end(s, &draft);
}

static int
look_at(struct latency *l, const struct plumb_iteration_track *track,
        struct plumb_moments_shared *shared)
{
	struct plumb_moments moments = { 0 };
	struct plumb_filled filled = { 0 };
	int code = 0;

	if (!track->level_count || track->levels[0].verdict != PLUMB_HOST_BOUND)
		return 0;
	if (!shared->profile)
		code = plumb_moments_share(l->study->profile, l->study->place_of,
		                           l->study->division, shared);
	if (!code)
		code = plumb_moments_new(shared, track->device, track->process, track->track,
		                         &moments);
	if (!code)
		code = plumb_filled_find(&moments, &track->levels[0], &plumb_iteration_limits,
		                         &filled);
	if (!code && filled.all.ns > 0 &&
	    (double)filled.all.ns >=
	            plumb_study_threshold(l->study, "latency.share") * (double)l->study->span_ns)
		code = draft_level(l, &track->levels[0], &moments, &filled);
	plumb_filled_free(&filled);
	plumb_moments_free(&moments);
	return code;
}

int
plumb_latency_intervals(struct latency *l)
{
	const struct plumb_iterations *found = plumb_study_iterations(l->study);
	struct plumb_moments_shared shared = { 0 };
	int code = found ? 0 : PLUMB_ESYSTEM;

	for (uint32_t t = 0; !code && t < found->count; t++)
		code = look_at(l, &found->tracks[t], &shared);
	plumb_moments_unshare(&shared);
	return code;
}
