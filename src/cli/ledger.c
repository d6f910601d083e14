/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ledger.h"

#include <string.h>

#include "base/format.h"
#include "cli/table.h"
#include "view/ledger.h"

/* A detail that gets its own line. On one line, both would be shortened in the middle and read as
 * one text. */
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
	char count[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], text[PLUMB_LEDGER_REASON_SIZE];
	struct plumb_ledger_total total = plumb_ledger_total(profile, row->source);
	const char *reason = plumb_ledger_reason(profile, row, text);

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
	char text[PLUMB_FORMAT_SIZE], reason[PLUMB_LEDGER_REASON_SIZE], what[480];
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
			const char *why = plumb_ledger_reason(profile, row, reason);

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
