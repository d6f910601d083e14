/* SPDX-License-Identifier: Apache-2.0 */
/* What the page asks first: what is open, and what can be asked of it. */
#include <stdlib.h>

#include "analyze/group.h"
#include "base/json.h"
#include "serve/answers.h"
#include "view/levels.h"
#include "view/overview.h"
#include "view/rank_rows.h"
#include "view/traffic.h"
#include "view/windows.h"

static void
write_metrics(const struct plumb_profile *p, const struct plumb_stat *totals,
              struct plumb_json *json)
{
	uint32_t usual = plumb_metric_default(p);

	plumb_json_key_array(json, "metrics");
	for (uint32_t m = 0; m < plumb_metric_slots(p); m++) {
		uint32_t number = plumb_metric_at(m);
		struct plumb_metric_info info = plumb_profile_metric(p, number);

		if (!totals[m].count || !info.name)
			continue;
		plumb_json_object(json);
		plumb_json_key_text(json, "name", info.name);
		plumb_json_key_text(json, "unit", info.unit);
		plumb_json_key_text(json, "words", info.meaning);
		plumb_json_key_quantity(json, "total", plumb_stat_amount(number, &totals[m]));
		plumb_json_key_bool(json, "adds_up", plumb_metric_aggregation(number) == PLUMB_SUM);
		plumb_json_key_bool(json, "is_default", number == usual);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static bool
has_layers(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->frames_count; i++)
		if (p->frames[i].kind == PLUMB_FRAME_MODULE ||
		    p->frames[i].kind == PLUMB_FRAME_OPERATOR)
			return true;
	return false;
}

static void
write_has(const struct plumb_profile *p, struct plumb_json *json)
{
	plumb_json_key_object(json, "has");
	plumb_json_key_bool(json, "gpu", p->devices_count);
	plumb_json_key_bool(json, "spans", p->spans_count);
	plumb_json_key_bool(json, "gpu_work", p->work_count);
	plumb_json_key_bool(json, "samples", p->cpu_samples_count);
	plumb_json_key_bool(json, "counter_series", p->counter_series_count);
	/* There are times in which they can be looked for. The answer says whether there are
	 * some. */
	plumb_json_key_bool(json, "iterations", p->spans_count || p->work_count);
	plumb_json_key_bool(json, "layers", has_layers(p));
	plumb_json_key_bool(json, "memory", p->memory_count || p->memory_series_count);
	plumb_json_key_bool(json, "code_samples", p->code_samples_count);
	plumb_json_key_bool(json, "traffic", plumb_traffic_has(p));
	plumb_json_key_bool(json, "levels", plumb_levels_are_known(p));
	plumb_json_key_bool(json, "ranks", plumb_rank_rows_has(p));
	plumb_json_key_bool(json, "findings", p->findings_count);
	plumb_json_end(json);
}

int
plumb_answer_about(struct plumb_question *question, struct plumb_error *error)
{
	const struct plumb_profile *p = question->file->whole;
	struct plumb_stat *totals = calloc(plumb_metric_slots(p), sizeof *totals);
	struct plumb_json *json = totals ? plumb_json_new(question->out) : NULL;

	for (uint32_t i = 0; totals && i < p->values_count; i++) {
		struct plumb_stat stat = plumb_value_stat(&p->values[i]);
		plumb_stat_merge(&totals[plumb_metric_slot(p->values[i].metric)], &stat);
	}
	plumb_json_object(json);
	plumb_json_key_quantity(json, "schema", 1);
	plumb_json_key_text(json, "plumb", PLUMB_VERSION);
	plumb_json_key_array(json, "files");
	for (uint32_t i = 0; i < question->answers->count; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "name", question->answers->files[i].name);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key_quantity(json, "before",
	                        question->answers->count > 1 ? question->answers->before
	                                                     : PLUMB_UNKNOWN);
	plumb_windows_json(p, json);
	if (totals)
		write_metrics(p, totals, json);
	write_has(p, json);
	plumb_json_key_text(json, "user_code", plumb_profile_environment(p, "run.user_code"));
	plumb_json_end(json);
	free(totals);
	return json && !plumb_json_finish(json) ? 0 : plumb_fail_memory(error, "for an answer");
}
