/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of docs/ in Markdown. */
#include "analyze/diff/names.h"
#include "base/words.h"
#include "cli/generate.h"
#include "cli/help.h"

/* Text of a table's cell. */
static void
write_cell(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputs("\\|", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
}

static void
option_rows(const struct plumb_option *option, FILE *out)
{
	char form[80], text[1000];

	for (; option && option->name; option++) {
		plumb_help_option_form(form, sizeof form, option);
		plumb_help_option_text(text, sizeof text, option);
		fprintf(out, "| `%s` | ", form);
		write_cell(out, text);
		fputs(" |\n", out);
	}
}

void
plumb_generate_options(const struct plumb_verb *verb, FILE *out)
{
	fprintf(out, "    plumb %s [OPTIONS]%s%s\n\n%s| option | |\n|---|---|\n", verb->name,
	        verb->synopsis && *verb->synopsis ? " " : "", verb->synopsis ? verb->synopsis : "",
	        verb->newest ? PLUMB_HELP_NEWEST "\n\n" : "");
	option_rows(verb->options, out);
	option_rows(plumb_common_options, out);
	fputs("\nExit code: ", out);
	write_cell(out, verb->exits ? verb->exits : plumb_common_exits);
	fputs(".\n", out);
}

void
plumb_generate_metrics(FILE *out)
{
	static const char *const aggregations[] = {
		[PLUMB_SUM] = "sum",
		[PLUMB_MAX] = "max",
		[PLUMB_CALL] = "call",
	};

	fputs("| metric | unit | aggregation | source | meaning |\n|---|---|---|---|---|\n", out);
	for (int i = 0; i < PLUMB_METRIC_COUNT; i++) {
		const struct plumb_metric_info *m = &plumb_metrics[i];

		if (m->name)
			fprintf(out, "| `%s` | %s | %s | %s | %s |\n", m->name, m->unit,
			        aggregations[m->aggregation], m->source, m->meaning);
	}
}

void
plumb_generate_operators(FILE *out)
{
	fputs("| what it is | names |\n|---|---|\n", out);
	for (const struct plumb_operator_family *f = plumb_operator_families; f->family; f++)
		fprintf(out, "| %s | `%s` |\n", f->family, f->names);
}
