/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/table.h"

static void
add(int64_t *total, int64_t count)
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
			add(&total.received, row->count);
		else if (row->fate == PLUMB_FATE_ATTRIBUTED)
			add(&total.attributed, row->count);
		else if (plumb_fate_is_drop[row->fate])
			add(&total.dropped, row->count);
	}
	return total;
}

/* Why a row's units came to their fate, with its detail; NULL for what needs no reason. */
static const char *
reason_of(const struct plumb_profile *profile, const struct plumb_ledger_row *row, char *text,
          size_t bytes)
{
	const char *reason = plumb_fate_reasons[row->fate];
	const char *detail = plumb_text(profile, row->detail);

	if (!reason || !detail)
		return reason ? reason : detail;
	snprintf(text, bytes, "%s: %s", reason, detail);
	return text;
}

/* A detail that has a line of its own: shortened in the middle, the two texts would read as one. */
static const char *
detail_apart(const struct plumb_profile *profile, const struct plumb_ledger_row *row)
{
	enum { TOGETHER_MOST = 48 };
	const char *reason = plumb_fate_reasons[row->fate];
	const char *detail = plumb_text(profile, row->detail);

	return reason && detail && strlen(reason) + strlen(detail) > TOGETHER_MOST ? detail : NULL;
}

static void
print_drop(const struct plumb_profile *profile, FILE *out, int indent,
           const struct plumb_ledger_row *row)
{
	char count[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], text[400];
	struct plumb_ledger_total total = plumb_ledger_total(profile, row->source);
	const char *reason = reason_of(profile, row, text, sizeof text);

	fprintf(out, "%*sdropped %s %s", indent, "", plumb_format_count(count, row->count),
	        plumb_source_units[row->source]);
	if (total.received > 0)
		fprintf(out, " (%s)",
		        plumb_format_share(share, (double)row->count, (double)total.received));
	fputs(": ", out);
	plumb_text_print(out, reason ? reason : "no reason was kept");
	fputc('\n', out);
}

void
plumb_ledger_print_short(const struct plumb_profile *profile, FILE *out, int indent, int most)
{
	int drops = 0, printed = 0;

	for (uint32_t i = 0; i < profile->ledger_count; i++)
		drops += profile->ledger[i].count && plumb_fate_is_drop[profile->ledger[i].fate];
	if (!drops)
		fprintf(out, "%*s%s\n", indent, "",
		        profile->ledger_count ? "nothing was dropped"
		                              : "the profile has no ledger");
	for (uint32_t i = 0; i < profile->ledger_count; i++) {
		const struct plumb_ledger_row *row = &profile->ledger[i];

		if (!row->count || !plumb_fate_is_drop[row->fate])
			continue;
		if (printed + 1 == most && drops > most) {
			fprintf(out, "%*sand %d more (see plumb report --ledger)\n", indent, "",
			        drops - printed);
			return;
		}
		print_drop(profile, out, indent, row);
		printed++;
	}
}

int
plumb_ledger_print(const struct plumb_profile *profile, FILE *out, int width, bool colour)
{
	static const struct plumb_column columns[] = {
		{ "source", PLUMB_LEFT },         { "received", PLUMB_RIGHT },
		{ "attributed", PLUMB_RIGHT },    { "dropped", PLUMB_RIGHT },
		{ "what", PLUMB_SHORTEN_MIDDLE },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char text[PLUMB_FORMAT_SIZE], reason[400], what[480];
	int result;

	for (uint32_t source = 0; source < PLUMB_SOURCE_COUNT; source++) {
		struct plumb_ledger_total total = plumb_ledger_total(profile, source);

		if (!total.any)
			continue;
		plumb_table_cell(table, plumb_source_names[source]);
		plumb_table_cell(table, plumb_format_count(text, total.received));
		plumb_table_cell(table, plumb_format_count(text, total.attributed));
		plumb_table_cell(table, plumb_format_count(text, total.dropped));
		plumb_table_cell(table, plumb_source_units[source]);
		for (uint32_t i = 0; i < profile->ledger_count; i++) {
			const struct plumb_ledger_row *row = &profile->ledger[i];
			const char *why = reason_of(profile, row, reason, sizeof reason);

			if (row->source != source || !why)
				continue;
			for (int c = 0; c < 4; c++)
				plumb_table_cell(table, "");
			const char *apart = detail_apart(profile, row);
			snprintf(what, sizeof what, "  %s %s%s",
			         plumb_format_count(text, row->count),
			         plumb_fate_is_drop[row->fate] ? "dropped: " : "",
			         apart ? plumb_fate_reasons[row->fate] : why);
			plumb_table_cell(table, what);
			for (int c = 0; apart && c < 4; c++)
				plumb_table_cell(table, "");
			if (apart) {
				snprintf(what, sizeof what, "    %s", apart);
				plumb_table_cell(table, what);
			}
		}
	}
	result = plumb_table_print(table, out, width, colour);
	plumb_table_free(table);
	return result;
}

/* "12: its launch had left the correlation ring; 3: …" over all drops of SOURCE. */
static void
json_reasons(const struct plumb_profile *profile, uint32_t source, struct plumb_json *json)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	const char *gap = "";

	for (uint32_t i = 0; memory && i < profile->ledger_count; i++) {
		const struct plumb_ledger_row *row = &profile->ledger[i];
		char number[PLUMB_FORMAT_SIZE], reason[400];
		const char *why = reason_of(profile, row, reason, sizeof reason);

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
	plumb_json_key(json, "fates");
	plumb_json_array(json);
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
		plumb_json_key(json, "dropped");
		plumb_json_bool(json, plumb_fate_is_drop[row->fate]);
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
