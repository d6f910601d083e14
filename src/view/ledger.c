/* SPDX-License-Identifier: Apache-2.0 */
#include "view/ledger.h"

#include <stdlib.h>

#include "base/format.h"

static void
add_count(int64_t *total, int64_t count)
{
	if (*total == PLUMB_UNKNOWN)
		*total = 0;
	if (__builtin_add_overflow(*total, count, total))
		*total = INT64_MAX;
}

struct plumb_ledger_total
plumb_ledger_total(const struct plumb_profile *profile, uint32_t source)
{
	struct plumb_ledger_total total = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, 0, false };

	for (uint32_t i = 0; i < profile->ledger_count; i++) {
		const struct plumb_ledger_row *row = &profile->ledger[i];

		if (row->source != source)
			continue;
		total.any = true;
		if (row->fate == PLUMB_FATE_RECEIVED)
			add_count(&total.received, row->count);
		else if (row->fate == PLUMB_FATE_ATTRIBUTED)
			add_count(&total.attributed, row->count);
		else if (plumb_fate_is_drop[row->fate])
			add_count(&total.dropped, row->count);
	}
	return total;
}

const char *
plumb_ledger_reason(const struct plumb_profile *profile, const struct plumb_ledger_row *row,
                    char text[PLUMB_LEDGER_REASON_SIZE])
{
	const char *reason = plumb_fate_reasons[row->fate];
	const char *detail = plumb_text(profile, row->detail);

	if (!reason || !detail)
		return reason ? reason : detail;
	snprintf(text, PLUMB_LEDGER_REASON_SIZE, "%s: %s", reason, detail);
	return text;
}

/* Writes "12: its launch had left the correlation ring; 3: …" for all drops of SOURCE. */
static void
json_reasons(const struct plumb_profile *profile, uint32_t source, struct plumb_json *json)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	const char *gap = "";

	for (uint32_t i = 0; memory && i < profile->ledger_count; i++) {
		const struct plumb_ledger_row *row = &profile->ledger[i];
		char number[PLUMB_FORMAT_SIZE], reason[PLUMB_LEDGER_REASON_SIZE];
		const char *why = plumb_ledger_reason(profile, row, reason);

		if (row->source != source || !plumb_fate_is_drop[row->fate] || !row->count)
			continue;
		fprintf(memory, "%s%s: %s", gap, plumb_format_count(number, row->count),
		        why ? why : "");
		gap = "; ";
	}
	if (memory)
		fclose(memory);
	plumb_json_key_text(json, "reason", text && *text ? text : NULL);
	free(text);
}

static void
json_fates(const struct plumb_profile *profile, uint32_t source, struct plumb_json *json)
{
	plumb_json_key_array(json, "fates");
	for (uint32_t i = 0; i < profile->ledger_count; i++) {
		const struct plumb_ledger_row *row = &profile->ledger[i];

		if (row->source != source || row->fate == PLUMB_FATE_RECEIVED ||
		    row->fate == PLUMB_FATE_ATTRIBUTED)
			continue;
		plumb_json_object(json);
		plumb_json_key_quantity(json, "pid",
		                        row->process < profile->processes_count
		                                ? profile->processes[row->process].pid
		                                : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "count", row->count);
		plumb_json_key_bool(json, "dropped", plumb_fate_is_drop[row->fate]);
		plumb_json_key_text(json, "reason", plumb_fate_reasons[row->fate]);
		plumb_json_key_text(json, "detail", plumb_text(profile, row->detail));
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

void
plumb_ledger_json(const struct plumb_profile *profile, struct plumb_json *json)
{
	plumb_json_array(json);
	for (uint32_t source = 0; source < PLUMB_SOURCE_COUNT; source++) {
		struct plumb_ledger_total total = plumb_ledger_total(profile, source);

		if (!total.any)
			continue;
		plumb_json_object(json);
		plumb_json_key_text(json, "source", plumb_source_names[source]);
		plumb_json_key_text(json, "unit", plumb_source_units[source]);
		plumb_json_key_quantity(json, "received", total.received);
		plumb_json_key_quantity(json, "attributed", total.attributed);
		plumb_json_key_quantity(json, "dropped", total.dropped);
		json_reasons(profile, source, json);
		json_fates(profile, source, json);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}
