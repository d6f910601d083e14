/* SPDX-License-Identifier: Apache-2.0 */
/* How much communication overlaps computation: exactly, and as another tool (HTA) counts it. */
#include <stdlib.h>

#include "analyze/hta.h"
#include "analyze/overlap.h"
#include "view/report_private.h"

void
plumb_report_json_overlap(const struct plumb_profile *profile, struct plumb_json *json)
{
	struct plumb_overlaps overlaps;
	struct plumb_error error;
	plumb_json_array(json);
	if (!plumb_overlaps_find(profile, &overlaps, &error)) {
		for (uint32_t i = 0; i < overlaps.count; i++) {
			const struct plumb_overlap *o = &overlaps.items[i];
			plumb_json_object(json);
			plumb_json_key_quantity(json, "rank", o->rank);
			plumb_json_key_quantity(json, "communication_ns", o->communication_ns);
			plumb_json_key_quantity(json, "compute_ns", o->compute_ns);
			plumb_json_key_quantity(json, "hidden_ns", o->hidden_ns);
			plumb_json_key(json, "ratio");
			if (o->communication_ns)
				plumb_json_number(json, (double)o->hidden_ns /
				                                (double)o->communication_ns);
			else
				plumb_json_null(json);
			plumb_json_key_text(json, "from", overlaps.newest ? "newest" : "spans");
			plumb_json_end(json);
		}
		plumb_overlaps_free(&overlaps);
	}
	plumb_json_end(json);
}

/* ---- HTA ---- */

static void
write_hta(struct plumb_json *json, const struct plumb_profile *profile, bool include_last)
{
	struct plumb_hta *items;
	uint32_t count;
	struct plumb_error error;
	plumb_json_array(json);
	if (!plumb_hta_find(profile, include_last, &items, &count, &error)) {
		for (uint32_t i = 0; i < count; i++) {
			plumb_json_object(json);
			plumb_json_key_quantity(json, "rank", items[i].rank);
			plumb_json_key_quantity(json, "idle_time_us", items[i].idle_us);
			plumb_json_key_quantity(json, "compute_time_us", items[i].compute_us);
			plumb_json_key_quantity(json, "non_compute_time_us",
			                        items[i].non_compute_us);
			plumb_json_key_quantity(json, "kernel_time_us", items[i].kernel_us);
			plumb_json_key_number(json, "comp_comm_overlap_pctg",
			                      items[i].overlap_percent);
			plumb_json_end(json);
		}
		free(items);
	}
	plumb_json_end(json);
}

void
plumb_report_json_compat(const struct plumb_profile *profile, struct plumb_json *json)
{
	plumb_json_object(json);
	plumb_json_key_text(json, "tool", "hta");
	plumb_json_key(json, "default");
	write_hta(json, profile, false);
	plumb_json_key(json, "include_last_profiler_step");
	write_hta(json, profile, true);
	plumb_json_end(json);
}
