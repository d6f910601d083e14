/* SPDX-License-Identifier: Apache-2.0 */
/* plumb traffic as JSON: collectives, and the stalls that wait for traffic. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "view/view.h"

static void
key_unsigned(struct plumb_json *json, const char *key, uint64_t value)
{
	plumb_json_key(json, key);
	plumb_json_unsigned(json, value);
}

/* ---- collectives ---- */

static void
write_ranks(const struct plumb_traffic_answer *answer, const struct plumb_collective_fact *fact,
            struct plumb_json *json)
{
	const struct plumb_profile *p = answer->profile;

	plumb_json_key_array(json, "ranks");
	for (uint32_t i = 0; i < fact->rank_count; i++) {
		const struct plumb_collective_fact_rank *rank =
			&answer->collectives.ranks.items[fact->first_rank + i];
		bool known = rank->process < p->processes_count;

		plumb_json_object(json);
		plumb_json_key_quantity(json, "rank", rank->rank);
		plumb_json_key_quantity(json, "pid",
		                        known ? p->processes[rank->process].pid : PLUMB_UNKNOWN);
		key_unsigned(json, "calls", rank->calls);
		plumb_json_key_quantity(json, "wait_ns",
		                        fact->timed ? rank->waited_ns : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "last",
		                        fact->timed && !fact->pairs ? (int64_t)rank->last
		                                                    : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "late_ns",
		                        fact->timed && !fact->pairs ? rank->late_ns
		                                                    : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "most_late_ns",
		                        fact->timed && !fact->pairs ? rank->most_late_ns
		                                                    : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "caused_ns",
		                        fact->timed && !fact->pairs ? rank->caused_ns
		                                                    : PLUMB_UNKNOWN);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* What it takes on the links. */
static void
write_physical(const struct plumb_traffic_answer *answer, uint32_t number, struct plumb_json *json)
{
	const struct plumb_traffic_physical *physical = &answer->physicals.items[number];
	const uint32_t *index_of = answer->traffic.index_of;
	bool known = physical->measured.accesses;

	plumb_json_key_number(json, "sent_bytes", physical->sent);
	plumb_json_key_number(json, "sent_ratio", physical->sent_ratio);
	plumb_json_key_quantity(json, "measured_bytes",
	                        known ? physical->measured.bytes : PLUMB_UNKNOWN);
	plumb_json_key_number(json, "measured_error_bytes",
	                      known ? plumb_traffic_sum_error(&physical->measured) : NAN);
	plumb_json_key_number(json, "measured_ratio", physical->measured_ratio);
	plumb_json_key_array(json, "measured_pairs");
	for (uint32_t i = 0; i < physical->pair_count; i++) {
		const struct plumb_traffic_cell *pair =
			&answer->physicals.pairs.items[physical->first_pair + i];

		plumb_json_object(json);
		key_unsigned(json, "from", index_of[pair->part[PLUMB_PHYSICAL_FROM]]);
		key_unsigned(json, "to", index_of[pair->part[PLUMB_PHYSICAL_TO]]);
		plumb_json_key_quantity(json, "bytes", pair->sum.bytes);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_fact(const struct plumb_traffic_answer *answer, const struct plumb_collective_fact *fact,
           struct plumb_json *json)
{
	const struct plumb_profile *p = answer->profile;
	uint32_t link = plumb_traffic_link_of_group(&answer->traffic, fact->group);
	double bandwidth = plumb_traffic_link_bandwidth(&answer->traffic, link);
	char text[PLUMB_LINK_WORDS];

	plumb_json_object(json);
	plumb_json_key_text(json, "name", plumb_text(p, fact->operation));
	plumb_json_key_text(json, "group", plumb_text(p, fact->group));
	plumb_json_key_text(json, "group_ranks", plumb_text(p, fact->ranks));
	plumb_json_key_quantity(json, "size", fact->size);
	plumb_json_key_text(json, "datatype", plumb_text(p, fact->datatype));
	plumb_json_key_text(json, "algorithm", plumb_text(p, fact->algorithm));
	plumb_json_key_text(json, "protocol", plumb_text(p, fact->protocol));
	key_unsigned(json, "count", fact->operations);
	key_unsigned(json, "calls", fact->calls);
	plumb_json_key_quantity(json, "bytes", fact->bytes);
	plumb_json_key_quantity(json, "all_bytes", fact->all_bytes);
	key_unsigned(json, "matched", fact->matched);
	key_unsigned(json, "timed", fact->timed);
	key_unsigned(json, "shared", fact->shared);
	plumb_json_key_quantity(json, "moving_ns", fact->timed ? fact->moving_ns : PLUMB_UNKNOWN);
	plumb_json_key_number(json, "algbw", fact->algorithm_bandwidth);
	plumb_json_key_number(json, "busbw", fact->bus_bandwidth);
	plumb_json_key_text(json, "link", plumb_traffic_link_words(&answer->traffic, link, text));
	plumb_json_key_number(json, "link_bytes_per_second", bandwidth);
	plumb_json_key_number(json, "link_share", fact->bus_bandwidth / bandwidth);
	write_physical(answer, (uint32_t)(fact - answer->collectives.items.items), json);
	plumb_json_key_array(json, "wait_ns");
	for (uint32_t i = 0; i < fact->rank_count; i++)
		plumb_json_quantity(
			json,
			fact->timed
				? answer->collectives.ranks.items[fact->first_rank + i].waited_ns
				: PLUMB_UNKNOWN);
	plumb_json_end(json);
	write_ranks(answer, fact, json);
	plumb_json_end(json);
}

void
plumb_traffic_collectives_json(const struct plumb_traffic_answer *answer, struct plumb_json *json)
{
	uint32_t count = answer->collectives.items.count;
	uint32_t shown = plumb_traffic_shown(&answer->query, count);

	plumb_json_key_array(json, "collectives");
	for (uint32_t i = 0; i < shown; i++)
		write_fact(answer, &answer->collectives.items.items[i], json);
	plumb_json_end(json);
	key_unsigned(json, "collectives_left_out", count - shown);
}

/* ---- stalls ---- */

/* The line of the instruction at OFFSET of FUNCTION of the stalls, else of OTHER of the traffic:
 * only one of both may have lines. *OF is the profile that has the line. NULL: none is known. */
static const struct plumb_code_line *
line_of(const struct plumb_traffic_answer *answer, uint32_t function, uint32_t other,
        int64_t offset, const struct plumb_profile **of)
{
	uint32_t count = 0;
	const struct plumb_code_line *line =
		plumb_code_lines_at(answer->join.stalls, function, offset, &count);

	*of = answer->join.stalls;
	if ((line && line->line) || other == PLUMB_NONE)
		return line;
	*of = answer->profile;
	return plumb_code_lines_at(answer->profile, other, offset, &count);
}

static void
write_place(const struct plumb_traffic_answer *answer, const char *key, uint32_t function,
            uint32_t other, int64_t offset, const char *instruction, struct plumb_json *json)
{
	const struct plumb_profile *p = answer->join.stalls, *of;
	const struct plumb_code_line *line = line_of(answer, function, other, offset, &of);

	plumb_json_key_object(json, key);
	plumb_json_key_text(json, "function", plumb_text(p, p->code_functions[function].name));
	plumb_json_key_quantity(json, "offset", offset);
	plumb_json_key_text(json, "file", line ? plumb_text(of, line->file) : NULL);
	plumb_json_key_line(json, "line", line ? line->line : 0);
	plumb_json_key_text(json, "instruction", *instruction ? instruction : NULL);
	plumb_json_end(json);
}

static void
write_wait(const struct plumb_traffic_answer *answer, const struct plumb_traffic_wait *wait,
           struct plumb_json *json)
{
	const struct plumb_traffic_join *join = &answer->join;
	const struct plumb_traffic *traffic = &answer->traffic;
	uint32_t function = join->kernels.items[wait->kernel].function;
	char label[PLUMB_OBJECT_LABEL], at[PLUMB_OBJECT_LABEL] = "", text[PLUMB_WAIT_SENTENCE];

	plumb_json_object(json);
	plumb_json_key_text(json, "summary",
	                    plumb_traffic_wait_sentence(answer, wait, text, sizeof text));
	plumb_json_key_text(json, "kernel",
	                    plumb_text(join->stalls, join->stalls->code_functions[function].name));
	write_place(answer, "access", wait->function, wait->traffic_function, wait->offset,
	            wait->instruction, json);
	write_place(answer, "stall", wait->stall_function, wait->stall_traffic_function,
	            wait->stall_offset, wait->stalled, json);
	plumb_json_key_text(json, "reason", wait->reason);
	key_unsigned(json, "stalls", wait->stalls);
	key_unsigned(json, "samples", wait->samples);
	plumb_json_key_number(json, "share", wait->share);
	plumb_json_key_quantity(json, "part_ns", wait->part_ns);
	plumb_json_key_number(json, "confidence", wait->confidence);
	plumb_json_key_text(json, "kind", plumb_traffic_kind_name(wait->kind));
	plumb_json_key_quantity(json, "initiator", traffic->index_of[wait->initiator]);
	plumb_json_key_quantity(json, "owner", traffic->index_of[wait->owner]);
	key_unsigned(json, "pairs", wait->pairs);
	plumb_json_key_quantity(json, "object",
	                        wait->object == PLUMB_NONE ? PLUMB_UNKNOWN : (int64_t)wait->object);
	plumb_json_key_text(json, "object_label",
	                    wait->object == PLUMB_NONE
	                            ? NULL
	                            : plumb_traffic_object_label(traffic, answer->user_of,
	                                                         wait->object, label));
	if (wait->object != PLUMB_NONE)
		plumb_traffic_allocated_at(traffic, answer->user_of, wait->object, at);
	plumb_json_key_text(json, "allocated_at", *at ? at : NULL);
	plumb_json_key_quantity(json, "bytes", wait->sum.bytes);
	key_unsigned(json, "accesses", wait->sum.accesses);
	plumb_json_end(json);
}

static void
write_kernel(const struct plumb_traffic_join *join, const struct plumb_traffic_joined_kernel *k,
             struct plumb_json *json)
{
	plumb_json_object(json);
	plumb_json_key_text(
		json, "name",
		plumb_text(join->stalls, join->stalls->code_functions[k->function].name));
	key_unsigned(json, "waiting", k->waiting);
	key_unsigned(json, "for_traffic", k->remote);
	plumb_json_key_quantity(json, "gpu_ns", k->gpu_ns);
	plumb_json_key_text(json, "problem", k->problem);
	plumb_json_end(json);
}

void
plumb_traffic_join_json(const struct plumb_traffic_answer *answer, struct plumb_json *json)
{
	const struct plumb_traffic_join *join = &answer->join;
	uint32_t shown = plumb_traffic_shown(&answer->query, join->waits.count);

	plumb_json_key(json, "stalls");
	if (!join->stalls) {
		plumb_json_null(json);
		return;
	}
	plumb_json_object(json);
	key_unsigned(json, "functions", join->functions);
	key_unsigned(json, "functions_missing", join->functions_missing);
	key_unsigned(json, "builds", join->builds);
	key_unsigned(json, "builds_missing", join->builds_missing);
	plumb_json_key_array(json, "kernels");
	for (uint32_t i = 0; i < join->kernels.count; i++)
		write_kernel(join, &join->kernels.items[i], json);
	plumb_json_end(json);
	plumb_json_key_array(json, "waits");
	for (uint32_t i = 0; i < shown; i++)
		write_wait(answer, &join->waits.items[i], json);
	plumb_json_end(json);
	key_unsigned(json, "waits_left_out", join->waits.count - shown);
	plumb_json_end(json);
}

/* The file and line of an instruction, or its offset. */
static void
place_text(const struct plumb_traffic_answer *answer, uint32_t function, uint32_t other,
           int64_t offset, char *text, size_t size)
{
	const struct plumb_profile *of;
	const struct plumb_code_line *line = line_of(answer, function, other, offset, &of);
	const char *file = line ? plumb_text(of, line->file) : NULL;

	if (line && line->line)
		snprintf(text, size, "%.120s:%" PRIu32, file ? plumb_path_base(file) : "?",
		         line->line);
	else
		snprintf(text, size, "+0x%" PRIx64, (uint64_t)offset);
}

char *
plumb_traffic_wait_sentence(const struct plumb_traffic_answer *answer,
                            const struct plumb_traffic_wait *wait, char *text, size_t size)
{
	char share[PLUMB_FORMAT_SIZE], stall[160], access[160], owner[PLUMB_PARTY_SIZE];
	char label[PLUMB_OBJECT_LABEL] = "", at[PLUMB_OBJECT_LABEL] = "";
	const char *kind = plumb_traffic_kind_name(wait->kind);

	place_text(answer, wait->stall_function, wait->stall_traffic_function, wait->stall_offset,
	           stall, sizeof stall);
	place_text(answer, wait->function, wait->traffic_function, wait->offset, access,
	           sizeof access);
	plumb_traffic_party(&answer->traffic, wait->owner, owner);
	if (wait->object != PLUMB_NONE) {
		plumb_traffic_object_label(&answer->traffic, answer->user_of, wait->object, label);
		plumb_traffic_allocated_at(&answer->traffic, answer->user_of, wait->object, at);
	}
	snprintf(text, size,
	         "%s of the waiting: %s waits for the %s at %s, which reaches %s%s%s%s%s%s",
	         plumb_format_share(share, wait->share, 1), stall, kind ? kind : "access", access,
	         *label ? label : "memory", *label ? " on " : " of ", owner,
	         *at && !strstr(label, at) ? ", allocated at " : "",
	         *at && !strstr(label, at) ? at : "",
	         wait->pairs > 1 ? " (and other pairs of devices)" : "");
	return text;
}
