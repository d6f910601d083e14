/* SPDX-License-Identifier: Apache-2.0 */
/* Help for people on a terminal, and the verb that shows it. All of it comes from the verbs'
 * tables. */
#include <string.h>

#include "base/words.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/findings.h"
#include "cli/help.h"
#include "cli/suggest.h"
#include "cli/terminal.h"

#define WIDEST 100 /* longer lines are hard to read */
#define HELP_COLUMN 26

void
plumb_help_wrap(FILE *out, const char *text, int indent, int column, int width)
{
	bool fresh = true; /* nothing on this line yet */

	while (*text) {
		size_t bytes = strcspn(text, " \n");
		char word[256];
		int columns;

		if (!bytes) {
			if (text[0] == '\n' && text[1] == '\n') {
				fprintf(out, "\n\n%*s", indent, "");
				column = indent;
				fresh = true;
			}
			text++;
			continue;
		}
		if (bytes >= sizeof word)
			bytes = sizeof word - 1;
		memcpy(word, text, bytes);
		word[bytes] = '\0';
		columns = plumb_columns(word);
		if (!fresh && column + 1 + columns > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			fresh = true;
		}
		fprintf(out, "%s%s", fresh ? "" : " ", word);
		column += columns + !fresh;
		fresh = false;
		text += bytes;
	}
	fputc('\n', out);
}

void
plumb_help_option_form(char *text, size_t bytes, const struct plumb_option *option)
{
	char letter[8] = "";

	if (option->letter)
		snprintf(letter, sizeof letter, "-%c, ", option->letter);
	if (option->bare)
		snprintf(text, bytes, "%s--%s[=%s]", letter, option->name, option->argument);
	else
		snprintf(text, bytes, "%s--%s%s%s", letter, option->name,
		         option->argument ? " " : "", option->argument ? option->argument : "");
}

void
plumb_help_option_text(char *text, size_t bytes, const struct plumb_option *option)
{
	int used = snprintf(text, bytes, "%s", option->help);

	if (option->choices && (size_t)used < bytes) {
		used += snprintf(text + used, bytes - (size_t)used, ": ");
		for (const char *c = option->choices; *c && (size_t)used + 3 < bytes; c++)
			used += snprintf(text + used, bytes - (size_t)used, "%.*s",
			                 *c == '|' ? 2 : 1, *c == '|' ? ", " : c);
	}
	if (option->fallback && (size_t)used < bytes)
		snprintf(text + used, bytes - (size_t)used, " (default: %s)", option->fallback);
}

static void
print_options(const struct plumb_option *option, FILE *out, int width)
{
	char form[80], text[1000];

	for (; option && option->name; option++) {
		int column;

		plumb_help_option_form(form, sizeof form, option);
		plumb_help_option_text(text, sizeof text, option);
		column = 2 + plumb_columns(form);
		fprintf(out, "  %s", form);
		if (column + 2 > HELP_COLUMN) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%*s", HELP_COLUMN - column, "");
		plumb_help_wrap(out, text, HELP_COLUMN, HELP_COLUMN, width);
	}
}

void
plumb_help_print(const struct plumb_verb *verb, FILE *out, int width)
{
	if (width > WIDEST)
		width = WIDEST;
	fprintf(out, "plumb %s: %s\n\nUsage: plumb %s [OPTIONS]%s%s\n", verb->name, verb->summary,
	        verb->name, verb->synopsis && *verb->synopsis ? " " : "",
	        verb->synopsis ? verb->synopsis : "");
	if (verb->description) {
		fputc('\n', out);
		plumb_help_wrap(out, verb->description, 0, 0, width);
	}
	if (verb->newest)
		fputs("\n" PLUMB_HELP_NEWEST "\n", out);
	fputs("\nOptions:\n", out);
	print_options(verb->options, out, width);
	print_options(plumb_common_options, out, width);
	if (verb->examples)
		fputs("\nExamples:\n", out);
	for (const char *const *example = verb->examples; example && *example; example += 2) {
		fprintf(out, "  %s\n      ", example[0]);
		plumb_help_wrap(out, example[1], 6, 6, width);
	}
	fputs("\nExit code: ", out);
	plumb_help_wrap(out, verb->exits ? verb->exits : plumb_common_exits, 0, 11, width);
}

void
plumb_help_overview(const struct plumb_verb *const *verbs, FILE *out, int width)
{
	if (width > WIDEST)
		width = WIDEST;
	fputs("plumb shows where a GPU program's time goes, from the Python line to the kernel.\n\n"
	      "Usage: plumb VERB [OPTIONS] …\n\nVerbs:\n",
	      out);
	for (; *verbs; verbs++) {
		if ((*verbs)->hidden)
			continue;
		fprintf(out, "  %-12s", (*verbs)->name);
		plumb_help_wrap(out, (*verbs)->summary, 14, 14, width);
	}
	fputs("\nStart with: plumb run -- python train.py\n"
	      "Details:    plumb help VERB, plumb help metrics, plumb help findings\n",
	      out);
}

static void
print_metrics(FILE *out, int width)
{
	static const char *const aggregations[] = {
		[PLUMB_SUM] = "sum",
		[PLUMB_MAX] = "max",
		[PLUMB_CALL] = "call",
	};

	if (width > WIDEST)
		width = WIDEST;
	fputs("Metrics: name, unit, and how values combine (sum: they add up; max: the greatest "
	      "counts;\ncall: each is of one call)\n\n",
	      out);
	for (int i = 0; i < PLUMB_METRIC_COUNT; i++) {
		const struct plumb_metric_info *metric = &plumb_metrics[i];

		if (!metric->name)
			continue;
		fprintf(out, "  %-20s %-6s %-5s ", metric->name, metric->unit,
		        aggregations[metric->aggregation]);
		plumb_help_wrap(out, metric->meaning, 36, 36, width);
	}
}

int
plumb_cmd_help(struct plumb_invocation *invocation)
{
	int width = plumb_terminal_width(invocation->out);
	const char *name = invocation->operand_count ? invocation->operands[0] : NULL;
	const struct plumb_verb *verb;

	if (!name) {
		plumb_help_overview(invocation->verbs, invocation->out, width);
		return PLUMB_EXIT_DONE;
	}
	if (!strcmp(name, "metrics")) {
		print_metrics(invocation->out, width);
		return PLUMB_EXIT_DONE;
	}
	if (!strcmp(name, "findings")) {
		plumb_findings_help(invocation->out, width);
		return PLUMB_EXIT_DONE;
	}
	verb = plumb_verb_find(invocation->verbs, name);
	if (!verb) {
		verb = plumb_suggest_nearest(invocation->verbs, name);
		return plumb_cli_usage(invocation, "help: there is no verb \"%s\"%s%s%s", name,
		                       verb ? "; did you mean \"" : "", verb ? verb->name : "",
		                       verb ? "\"?" : "");
	}
	plumb_help_print(verb, invocation->out, width);
	return PLUMB_EXIT_DONE;
}

static const char *const examples[] = {
	"plumb help report",
	"what `plumb report` does and all its options",
	NULL,
};

const struct plumb_verb plumb_verb_help = {
	.name = "help",
	.summary = "explain a verb and its options",
	.synopsis = "[VERB|metrics|findings]",
	.description =
		"Without an argument it lists the verbs. \"metrics\" lists every metric with "
		"its unit, how its values combine and what it means. \"findings\" lists the "
		"analyses and their thresholds.",
	.examples = examples,
	.max_operands = 1,
	.complete = PLUMB_COMPLETE_VERB,
	.run = plumb_cmd_help,
};
