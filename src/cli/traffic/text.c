/* SPDX-License-Identifier: Apache-2.0 */
/* plumb traffic for people: the cause first, then who, what, from where, and what was not seen. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/format.h"
#include "cli/columns.h"
#include "cli/help.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/traffic/traffic.h"
#include "view/ledger.h"

#define WIDEST 120
#define FINDINGS_MOST 3
#define UNSEEN_MOST 8

const char *
plumb_traffic_bytes(const struct plumb_traffic_sum *sum, char text[PLUMB_TRAFFIC_BYTES])
{
	char bytes[PLUMB_FORMAT_SIZE], error[PLUMB_FORMAT_SIZE];
	double deviation = plumb_traffic_sum_error(sum);

	plumb_format_bytes(bytes, sum->bytes);
	if (isnan(deviation))
		snprintf(text, PLUMB_TRAFFIC_BYTES, "%s \xc2\xb1 ?", bytes);
	else if (deviation >= 0.5)
		snprintf(text, PLUMB_TRAFFIC_BYTES, "%s \xc2\xb1 %s", bytes,
		         plumb_format_bytes(error,
		                            deviation < 9e18 ? (int64_t)deviation : INT64_MAX));
	else
		snprintf(text, PLUMB_TRAFFIC_BYTES, "%s", bytes);
	return text;
}

void
plumb_traffic_paragraph(const struct plumb_traffic_printer *t, const char *label, int indent,
                        const char *text)
{
	char *clean = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&clean, &bytes);
	int column = plumb_columns(label);

	if (!memory)
		return;
	plumb_text_print(memory, text);
	if (!fclose(memory)) {
		fprintf(t->out, "%s%*s", label, column < indent ? indent - column : 0, "");
		plumb_help_wrap(t->out, clean, indent, column < indent ? indent : column, t->width);
	}
	free(clean);
}

/* ---- the head ---- */

static void
print_total(const struct plumb_traffic_printer *t, const char *what,
            const struct plumb_traffic_sum *sum)
{
	char text[PLUMB_TRAFFIC_BYTES];

	if (sum->accesses)
		fprintf(t->out, "; %s %s", what, plumb_traffic_bytes(sum, text));
}

static void
print_head(const struct plumb_traffic_printer *t)
{
	const struct plumb_traffic *traffic = &t->answer->traffic;
	const char *mode = plumb_traffic_mode(t->answer->profile);
	uint32_t devices = t->answer->profile->devices_count;

	fputs("plumb traffic ", t->out);
	plumb_text_print(t->out, t->path);
	fprintf(t->out, ": %" PRIu32 " GPU%s", devices, devices == 1 ? "" : "s");
	print_total(t, "moved by kernels", &traffic->in_kernels);
	print_total(t, "moved by copies", &traffic->copies);
	print_total(t, "asked of collectives, sends and receives", &traffic->logical);
	fputc('\n', t->out);
	if (mode && !strcmp(mode, "calls"))
		fputs("accesses of kernels were not recorded: plumb run --traffic=full has them\n",
		      t->out);
	else if (mode && !strncmp(mode, "sampled", 7))
		fprintf(t->out,
		        "of a part of the launches (%s): bytes are estimates, \xc2\xb1 is one "
		        "standard error\n",
		        mode);
}

/* ---- findings ---- */

/* A number of the evidence, which plumb wrote; PLUMB_UNKNOWN: it is not there. */
static int64_t
evidence_number(const char *evidence, const char *key)
{
	char quoted[64];
	const char *at;
	char *end;
	long long number;

	snprintf(quoted, sizeof quoted, "\"%s\":", key);
	at = evidence ? strstr(evidence, quoted) : NULL;
	if (!at)
		return PLUMB_UNKNOWN;
	number = strtoll(at + strlen(quoted), &end, 10);
	return end == at + strlen(quoted) ? PLUMB_UNKNOWN : number;
}

static void
print_finding(const struct plumb_traffic_printer *t, const struct plumb_finding *f)
{
	const struct plumb_profile *p = t->answer->profile;
	const char *title = plumb_text(p, f->title), *advice = plumb_text(p, f->advice);
	int64_t bytes = evidence_number(plumb_text(p, f->evidence), "saving_bytes");
	char label[32], amount[PLUMB_FORMAT_SIZE], time[PLUMB_FORMAT_SIZE];

	snprintf(label, sizeof label, " %-8s", plumb_severity_name(f->severity));
	plumb_traffic_paragraph(t, label, 10, title ? title : PLUMB_DASH);
	if (advice && *advice)
		plumb_traffic_paragraph(t, "", 10, advice);
	fputs("          saving: ", t->out);
	if (bytes == PLUMB_UNKNOWN && f->saving_ns == PLUMB_UNKNOWN)
		fputs("unknown", t->out);
	if (bytes != PLUMB_UNKNOWN)
		fprintf(t->out, "up to %s", plumb_format_bytes(amount, bytes));
	if (f->saving_ns != PLUMB_UNKNOWN)
		fprintf(t->out, "%sup to %s", bytes == PLUMB_UNKNOWN ? "" : ", ",
		        plumb_format_time(time, f->saving_ns));
	if (!isnan(f->confidence))
		fprintf(t->out, " (confidence %.2g)", f->confidence);
	fputc('\n', t->out);
}

static void
print_findings(const struct plumb_traffic_printer *t)
{
	const struct plumb_profile *p = t->answer->profile;
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->findings_count; i++) {
		if (!plumb_traffic_finding_is(p, i))
			continue;
		if (!count)
			fputc('\n', t->out);
		if (count++ < FINDINGS_MOST)
			print_finding(t, &p->findings[i]);
	}
	if (count > FINDINGS_MOST)
		fprintf(t->out, "          %" PRIu32 " more: plumb report --findings shows all\n",
		        count - FINDINGS_MOST);
	if (!count)
		fputs("\nnothing unusual was found\n", t->out);
}

/* ---- what was not seen ---- */

/* What the collector says of a kind of traffic that it cannot see. NULL: nothing. */
static const char *
gap_of(const struct plumb_profile *p, const struct plumb_environment_row *row)
{
	const char *key = plumb_text(p, row->key), *dot = key ? strrchr(key, '.') : NULL;

	if (!dot || !plumb_traffic_environment_is(p, row))
		return NULL;
	return strcmp(dot, ".gap") && strcmp(dot, ".off") ? NULL : plumb_text(p, row->value);
}

/* Prints one line of what was not seen; *COUNT of them so far. */
static void
print_gap(const struct plumb_traffic_printer *t, const char *text, uint32_t *count)
{
	if (!*count)
		fputs("\nnot seen, or only in part\n", t->out);
	if ((*count)++ < UNSEEN_MOST)
		plumb_traffic_paragraph(t, "   ", 6, text);
}

static void
print_unseen(const struct plumb_traffic_printer *t)
{
	const struct plumb_profile *p = t->answer->profile;
	char text[PLUMB_LEDGER_REASON_SIZE], count[PLUMB_FORMAT_SIZE], line[900];
	uint32_t all = 0;
	bool any = false;

	for (uint32_t i = 0; i < p->environment_count; i++)
		if (gap_of(p, &p->environment[i]))
			print_gap(t, gap_of(p, &p->environment[i]), &all);
	for (uint32_t i = 0; i < p->ledger_count; i++) {
		const struct plumb_ledger_row *row = &p->ledger[i];
		const char *reason;

		if (!plumb_traffic_ledger_is(p, row))
			continue;
		any = true;
		reason = plumb_ledger_reason(p, row, text);
		if (!plumb_fate_is_drop[row->fate] && !reason)
			continue;
		snprintf(line, sizeof line, "%s %s: %s", plumb_format_count(count, row->count),
		         plumb_source_units[row->source], reason ? reason : "no reason was kept");
		print_gap(t, line, &all);
	}
	if (all > UNSEEN_MOST)
		fprintf(t->out, "   and %" PRIu32 " more: plumb report --ledger shows all\n",
		        all - UNSEEN_MOST);
	if (!all)
		fprintf(t->out, "\n%s\n",
		        any ? "nothing of what was recorded was dropped"
		            : "the profile does not say what was not seen");
}

/* ---- all of it ---- */

int
plumb_traffic_print(const struct plumb_traffic_answer *answer, const char *path, uint32_t top,
                    bool whole, FILE *out)
{
	static void (*const lists[])(struct plumb_traffic_printer *) = {
		[PLUMB_TRAFFIC_BY_PAIR] = plumb_traffic_print_pairs,
		[PLUMB_TRAFFIC_BY_OBJECT] = plumb_traffic_print_objects,
		[PLUMB_TRAFFIC_BY_LINE] = plumb_traffic_print_lines,
		[PLUMB_TRAFFIC_BY_KERNEL] = plumb_traffic_print_kernels,
		[PLUMB_TRAFFIC_BY_COLLECTIVE] = plumb_traffic_print_collectives,
		[PLUMB_TRAFFIC_BY_ROUTE] = plumb_traffic_print_routes,
	};
	int width = plumb_terminal_width(out);
	struct plumb_traffic_printer t = {
		.answer = answer,
		.path = path,
		.out = out,
		.width = width <= 0 || width > WIDEST ? WIDEST : width,
		.colour = plumb_terminal_colour(out),
		.top = top,
	};

	print_head(&t);
	if (!whole) {
		lists[answer->query.by](&t);
		return t.failed ? -1 : 0;
	}
	if (answer->join.stalls)
		plumb_traffic_print_waits(&t);
	print_findings(&t);
	if (!answer->profile->transfers_count && answer->profile->objects_count)
		fprintf(out,
		        "\nno data went between devices; --by object shows %" PRIu32 " objects\n",
		        answer->profile->objects_count);
	plumb_traffic_print_matrices(&t);
	plumb_traffic_print_objects(&t);
	plumb_traffic_print_lines(&t);
	plumb_traffic_print_collectives(&t);
	print_unseen(&t);
	return t.failed ? -1 : 0;
}
