/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/format.h"
#include "cli/columns.h"
#include "cli/help.h"
#include "cli/label.h"
#include "cli/overview.h"
#include "cli/table.h"
#include "cli/windows.h"
#include "view/findings.h"
#include "view/windows.h"

#define INDENT 13
#define WIDEST 120
#define MOST_DEVICES 16
#define MOST_LOOPS 8

/* BEFORE and TEXT in lines under a label; control characters must not steer the terminal. */
static void
print_after(FILE *out, const char *label, const char *before, const char *text, int width)
{
	char *clean = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&clean, &bytes);

	if (memory) {
		fputs(before, memory);
		plumb_text_print(memory, text);
	}
	if (!memory || fclose(memory))
		return;
	fprintf(out, "    %-*s", INDENT - 4, label);
	plumb_help_wrap(out, clean, INDENT, INDENT, width);
	free(clean);
}

static void
print_paragraph(FILE *out, const char *label, const char *text, int width)
{
	print_after(out, label, "", text, width);
}

#define WORDS (PLUMB_WINDOW_WORDS + 4)

/* Of which part of the run a finding is: " in loop 2"; "" if of the whole. Returns TEXT. */
static char *
words_of(const struct plumb_profile *p, const struct plumb_finding_part *part, char text[WORDS])
{
	char window[PLUMB_WINDOW_WORDS];

	if (p->window.kind)
		snprintf(text, WORDS, " %s %s", p->window.kind == PLUMB_WINDOW_LOOP ? "in" : "of",
		         plumb_window_words(p, window));
	else if (part->loop)
		snprintf(text, WORDS, " in loop %" PRIu32, part->loop);
	else
		snprintf(text, WORDS, "%s",
		         !part->name                     ? ""
		         : strcmp(part->name, "startup") ? " in the main loop"
		                                         : " of start-up");
	return text;
}

/* What a title begins with: "loop 2: ", if it is of a loop that is not the main one. Returns
 * TEXT. */
static char *
loop_of(const struct plumb_profile *p, const struct plumb_finding *f, char text[WORDS])
{
	struct plumb_finding_part part = plumb_finding_part(p, f);

	*text = '\0';
	if (part.loop)
		snprintf(text, WORDS, "loop %" PRIu32 ": ", part.loop);
	return text;
}

static void
print_saving(const struct plumb_profile *p, const struct plumb_finding *f, FILE *out)
{
	struct plumb_finding_part part = plumb_finding_part(p, f);
	char text[PLUMB_FORMAT_SIZE], words[WORDS];

	words_of(p, &part, words);
	fprintf(out, "    %-*s", INDENT - 4, "saving");
	if (f->saving_ns == PLUMB_UNKNOWN) {
		fprintf(out, "unknown%s\n", words);
		return;
	}
	if (!f->saving_ns)
		fputs("none", out);
	else
		fprintf(out, "up to %s", plumb_format_time(text, f->saving_ns));
	if (f->saving_ns && part.whole_ns > 0)
		fprintf(out, " of %s", plumb_format_time(text, part.whole_ns));
	fputs(words, out);
	if (f->saving_ns && part.each_ns != PLUMB_UNKNOWN)
		fprintf(out, ", %s of each iteration", plumb_format_time(text, part.each_ns));
	if (!isnan(f->confidence))
		fprintf(out, " (confidence %.2g)", f->confidence);
	fputc('\n', out);
}

/* A call path. A frame gets at most one line, because names of kernels can fill pages. */
static void
path_paragraph(FILE *out, char *path, int width)
{
	static const char between[] = " \xe2\x80\xba ";
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (!memory)
		return;
	for (char *next; path; path = next) {
		next = strstr(path, between);
		if (next) {
			*next = '\0';
			next += sizeof between - 1;
		}
		plumb_text_print_short(memory, path, width - INDENT);
		fputs(next ? between : "", memory);
	}
	if (!fclose(memory))
		print_paragraph(out, "where", text, width);
	free(text);
}

static int
print_where(const struct plumb_report *report, uint32_t context, FILE *out, int width)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_tree_node node = { .context = context,
		                        .row = PLUMB_NONE,
		                        .parent = PLUMB_NONE };
	char *label;

	if (context >= p->contexts_count || !context)
		return 0;
	node.length = p->contexts[context].depth;
	label = plumb_label_node(report, &node, false);
	if (!label)
		return -1;
	path_paragraph(out, label, width);
	free(label);
	return 0;
}

static int
print_evidence(const struct plumb_finding *f, const struct plumb_profile *p, FILE *out, int width)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (!memory)
		return -1;
	plumb_findings_why(plumb_text(p, f->evidence), memory);
	if (fclose(memory))
		return -1;
	if (bytes)
		print_paragraph(out, "why", text, width);
	free(text);
	return 0;
}

int
plumb_findings_text(const struct plumb_report *report, const struct plumb_profile *whole,
                    const char *path, FILE *out, int width)
{
	const struct plumb_profile *p = report->profile;
	uint32_t shown = p->findings_count;
	int result = 0;

	if (width <= 0 || width > WIDEST)
		width = WIDEST;
	if (report->top && report->top < shown)
		shown = report->top;
	fputs("plumb report ", out);
	plumb_text_print(out, path);
	fputc('\n', out);
	plumb_overview_print(whole, out, MOST_DEVICES);
	plumb_windows_print(whole, MOST_LOOPS, out);
	plumb_windows_print_choice(p, out);
	if (!p->findings_count)
		fputs("\nno findings\n", out);
	for (uint32_t i = 0; i < shown && !result; i++) {
		const struct plumb_finding *f = &p->findings[i];
		const char *title = plumb_text(p, f->title), *advice = plumb_text(p, f->advice);
		const char *rule = plumb_text(p, f->rule), *id = plumb_text(p, f->id);
		char loop[WORDS];

		fputc('\n', out);
		print_after(out, plumb_severity_name(f->severity), loop_of(p, f, loop),
		            title ? title : PLUMB_DASH, width);
		print_saving(p, f, out);
		result = print_evidence(f, p, out, width);
		if (!result)
			result = print_where(report, f->context, out, width);
		if (advice && *advice)
			print_paragraph(out, "advice", advice, width);
		print_paragraph(out, "id", id ? id : rule ? rule : PLUMB_DASH, width);
	}
	if (shown < p->findings_count)
		fprintf(out, "\n%" PRIu32 " more (--top 0 shows all)\n", p->findings_count - shown);
	return result;
}

/* ---- in a line ---- */

void
plumb_findings_brief(const struct plumb_profile *p, FILE *out, int most, int width)
{
	for (uint32_t i = 0; i < p->findings_count && most-- > 0; i++) {
		const struct plumb_finding *f = &p->findings[i];
		const char *title = plumb_text(p, f->title), *at = title ? title : PLUMB_DASH;
		const char *severity = plumb_severity_name(f->severity);
		int left = width - 12 - (int)strlen(severity) - 2;
		char piece[8], loop[WORDS];

		left -= (int)strlen(loop_of(p, f, loop));
		fprintf(out, "  %-10s%s: %s", "finding", severity, loop);
		if (plumb_columns(at) <= left) {
			plumb_text_print(out, at);
			fputc('\n', out);
			continue;
		}
		while (*at) {
			int columns;
			size_t bytes = plumb_columns_next(at, strlen(at), &columns);

			left -= columns;
			if (left < 1 || bytes >= sizeof piece)
				break;
			memcpy(piece, at, bytes);
			piece[bytes] = '\0';
			plumb_text_print(out, piece);
			at += bytes;
		}
		fputs(PLUMB_ELLIPSIS "\n", out);
	}
}

/* ---- help ---- */

void
plumb_findings_help(FILE *out, int width)
{
	char value[40];

	if (width > 100)
		width = 100;
	fputs("Analyses and their thresholds (plumb report --findings --threshold NAME=VALUE,…):\n",
	      out);
	for (size_t i = 0; plumb_analyses[i]; i++) {
		const struct plumb_threshold *t = plumb_analyses[i]->thresholds;

		fprintf(out, "\n%s\n  ", plumb_analyses[i]->name);
		plumb_help_wrap(out, plumb_analyses[i]->summary, 2, 2, width);
		for (; t && t->name; t++) {
			plumb_threshold_format(value, sizeof value, t->unit, t->fallback);
			fprintf(out, "  %-24s %s%*s", t->name, value, 9 - plumb_columns(value), "");
			plumb_help_wrap(out, t->help, 36, 36, width);
		}
	}
}

void
plumb_findings_docs(FILE *out)
{
	char value[40];

	fputs("| threshold | default | meaning |\n|---|---|---|\n", out);
	for (size_t i = 0; plumb_analyses[i]; i++) {
		const struct plumb_threshold *t = plumb_analyses[i]->thresholds;

		for (; t && t->name; t++)
			fprintf(out, "| `%s` | %s | %s |\n", t->name,
			        plumb_threshold_format(value, sizeof value, t->unit, t->fallback),
			        t->help);
	}
}
