/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/format.h"
#include "base/json.h"
#include "cli/columns.h"
#include "cli/help.h"
#include "cli/label.h"
#include "cli/overview.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define INDENT 13
#define WIDEST 120
#define MOST_DEVICES 16
#define LISTED 3 /* elements of a list in the evidence */
#define NAME_MOST 60

/* ---- evidence on one line: {"gpu_time_ns": 5, …} as "gpu_time 5 ns, …" ---- */

/* The end of the JSON value at TEXT, which is valid. */
static const char *
value_end(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		if (*text == '"') {
			for (text++; *text && *text != '"'; text++)
				text += *text == '\\' && text[1];
			if (!*text)
				return text;
			if (!depth)
				return text + 1;
			continue;
		}
		if (*text == '{' || *text == '[') {
			depth++;
		} else if (*text == '}' || *text == ']') {
			if (!depth)
				return text;
			if (!--depth)
				return text + 1;
		} else if (!depth && (*text == ',' || *text == ' ' || *text == '\n')) {
			return text;
		}
	}
	return text;
}

static const char *
skip(const char *text)
{
	return text + strspn(text, " \t\r\n:,");
}

static bool
ends_with(const char *text, size_t bytes, const char *end)
{
	return bytes >= strlen(end) && !memcmp(text + bytes - strlen(end), end, strlen(end));
}

static bool
is_key(const char *text, size_t bytes, const char *key)
{
	return bytes == strlen(key) && !memcmp(text, key, bytes);
}

/* A name of a list, without what makes kernels' names long: from *TEXT on; returns its bytes. */
static size_t
core_of_name(const char **text, size_t bytes)
{
	const char *angle;

	if (bytes > 5 && !memcmp(*text, "void ", 5)) {
		*text += 5;
		bytes -= 5;
	}
	angle = memchr(*text, '<', bytes);
	return angle && angle > *text ? (size_t)(angle - *text) : bytes;
}

/* Keys whose words are not plain by themselves; of others "_" is a blank. */
static const struct {
	const char *key, *words;
} plain_keys[] = {
	{ "host_ns", "CPU busy" },
	{ "gpu_ns", "GPU busy with it" },
	{ "gpu_time_ns", "GPU time" },
	{ "cores", "processors" },
	{ "device_busy_ns", "GPU busy" },
	{ "device_span_ns", "from first to last GPU work" },
	{ "idle_share", "GPU idle" },
	{ "step_saving_ns", "saving per iteration" },
	{ "saving_bound", "limited by" },
	{ "hides_behind", "hidden behind" },
	{ "mean_ns", "mean" },
	{ "equal_share", "run equally often" },
	{ "gaps_ns", "gaps that would go" },
	{ "gb_per_s", "GB/s" },
	{ "pinned_gb_per_s", "GB/s of pinned copies" },
	{ "host_wait_ns", "host waits" },
	{ "waited_ns", "GPU waits" },
	{ "filled", "meanwhile" },
	{ "slope_ns", "slope in ns per iteration" },
	{ "slope_error_ns", "\xc2\xb1 ns" },
	{ "kernels_more", "more kernels per iteration" },
	{ "duration_ns", "mean duration" },
	{ "interval_ns", "mean interval" },
	{ "contended_ns", "shared" },
	{ "ns", "time" },
};

/* A key without its unit, which the value has. */
static void
write_key(FILE *out, const char *key, size_t bytes)
{
	for (size_t i = 0; i < sizeof plain_keys / sizeof *plain_keys; i++)
		if (is_key(key, bytes, plain_keys[i].key)) {
			fputs(plain_keys[i].words, out);
			return;
		}
	if (ends_with(key, bytes, "_ns"))
		bytes -= 3;
	for (size_t i = 0; i < bytes; i++)
		putc(key[i] == '_' ? ' ' : key[i], out);
}

/* What has no name in a list: what was outside all of those. */
static const char *
unnamed(const char *key, size_t bytes)
{
	if (is_key(key, bytes, "operators"))
		return "outside any operator";
	return is_key(key, bytes, "lines") ? "outside your code" : "unknown";
}

static void
write_name(FILE *out, const char *text, size_t bytes)
{
	fprintf(out, "%.*s%s", (int)(bytes <= NAME_MOST ? bytes : NAME_MOST), text,
	        bytes <= NAME_MOST ? "" : PLUMB_ELLIPSIS);
}

/* A number with the unit that its key names. */
static void
write_number(FILE *out, const char *key, size_t bytes, const char *value)
{
	char text[PLUMB_FORMAT_SIZE];
	bool share = ends_with(key, bytes, "share");
	double number = strtod(value, NULL);

	write_key(out, key, bytes);
	putc(' ', out);
	if (ends_with(key, bytes, "_ns") && !strstr(key, "slope"))
		fputs(plumb_format_time(text, strtoll(value, NULL, 10)), out);
	else if (ends_with(key, bytes, "bytes"))
		fputs(plumb_format_bytes(text, llround(fmin(number, 9e18))), out);
	else if (share)
		fputs(plumb_format_share(text, number, 1), out);
	else
		fprintf(out, fabs(number) < 1000 && number != round(number) ? "%.3g" : "%.0f",
		        number);
}

/* The first texts of a list's elements; of names that are the same in short the first. */
static void
write_list(FILE *out, const char *key, size_t bytes, const char *list, const char *end)
{
	struct {
		const char *text;
		size_t bytes;
	} listed[LISTED];
	int count = 0;

	write_key(out, key, bytes);
	putc(' ', out);
	for (const char *at = list + 1; at < end - 1; at = skip(value_end(skip(at)))) {
		const char *value = skip(at), *stop = value_end(value);
		bool known = false;

		if (*value == '{') {
			value = skip(value_end(skip(value + 1)));
			stop = value_end(value);
		}
		if (stop <= value)
			continue;
		const char *text = *value == '"'   ? value + 1
		                   : *value == 'n' ? unnamed(key, bytes)
		                                   : value;
		size_t length = *value == '"'   ? core_of_name(&text, (size_t)(stop - value - 2))
		                : *value == 'n' ? strlen(text)
		                                : (size_t)(stop - value);
		for (int i = 0; i < count && i < LISTED; i++)
			known |= listed[i].bytes == length && !memcmp(listed[i].text, text, length);
		if (known || count++ >= LISTED)
			continue;
		listed[count - 1].text = text;
		listed[count - 1].bytes = length;
		fputs(count > 1 ? "; " : "", out);
		write_name(out, text, length);
	}
	if (count > LISTED)
		fprintf(out, " and %d more", count - LISTED);
	else if (!count)
		fputs(PLUMB_DASH, out);
}

/* A list of one element without a name: nothing is known of what it lists. */
static bool
says_nothing(const char *value, const char *stop)
{
	const char *first, *name;

	if (*value != '[')
		return false;
	first = skip(value + 1);
	name = *first == '{' ? skip(value_end(skip(first + 1))) : first;
	return *name == 'n' && skip(value_end(first)) >= stop - 1;
}

static void
write_evidence(FILE *out, const char *evidence)
{
	bool first = true;

	if (!evidence || !plumb_json_valid(evidence) || *skip(evidence) != '{')
		return;
	for (const char *at = skip(skip(evidence) + 1); *at == '"';) {
		const char *end = value_end(at), *value = skip(end), *stop = value_end(value);
		const char *key = at + 1;
		size_t bytes = (size_t)(end - at - 2);

		at = skip(stop);
		if (*value == 'n' || says_nothing(value, stop) || is_key(key, bytes, "cause") ||
		    is_key(key, bytes, "name") || ends_with(key, bytes, "_file") ||
		    ends_with(key, bytes, "_line"))
			continue; /* unknown, or in the title */
		fputs(first ? "" : ", ", out);
		first = false;
		if (*value == '[' || *value == '{')
			write_list(out, key, bytes, value, stop);
		else if (*value == '"' || *value == 't' || *value == 'f') {
			bool text = *value == '"';

			write_key(out, key, bytes);
			fprintf(out, " %.*s", (int)(stop - value) - 2 * text, value + text);
		} else
			write_number(out, key, bytes, value);
	}
}

/* ---- in full ---- */

/* TEXT in lines under a label; control characters must not steer the terminal. */
static void
paragraph(FILE *out, const char *label, const char *text, int width)
{
	char *clean = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&clean, &bytes);

	if (memory)
		plumb_text_print(memory, text);
	if (!memory || fclose(memory))
		return;
	fprintf(out, "    %-*s", INDENT - 4, label);
	plumb_help_wrap(out, clean, INDENT, INDENT, width);
	free(clean);
}

static void
print_saving(const struct plumb_profile *p, const struct plumb_finding *f, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];

	fprintf(out, "    %-*s", INDENT - 4, "saving");
	if (f->saving_ns == PLUMB_UNKNOWN) {
		fputs("unknown\n", out);
		return;
	}
	if (!f->saving_ns)
		fputs("none", out);
	else
		fprintf(out, "up to %s", plumb_format_time(text, f->saving_ns));
	if (f->saving_ns && p->run.wall_ns > 0)
		fprintf(out, " of %s", plumb_format_time(text, p->run.wall_ns));
	if (!isnan(f->confidence))
		fprintf(out, " (confidence %.2g)", f->confidence);
	fputc('\n', out);
}

/* A call path, of which a frame takes a line at most: kernels' names fill pages. */
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
		paragraph(out, "where", text, width);
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
	label = plumb_label_node(report, &node);
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
	write_evidence(memory, plumb_text(p, f->evidence));
	if (fclose(memory))
		return -1;
	if (bytes)
		paragraph(out, "why", text, width);
	free(text);
	return 0;
}

int
plumb_findings_text(const struct plumb_report *report, const char *path, FILE *out, int width)
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
	plumb_overview_print(p, out, MOST_DEVICES);
	if (!p->findings_count)
		fputs("\nno findings\n", out);
	for (uint32_t i = 0; i < shown && !result; i++) {
		const struct plumb_finding *f = &p->findings[i];
		const char *title = plumb_text(p, f->title), *advice = plumb_text(p, f->advice);
		const char *rule = plumb_text(p, f->rule), *id = plumb_text(p, f->id);

		fputc('\n', out);
		paragraph(out, plumb_severity_name(f->severity), title ? title : PLUMB_DASH, width);
		print_saving(p, f, out);
		result = print_evidence(f, p, out, width);
		if (!result)
			result = print_where(report, f->context, out, width);
		if (advice && *advice)
			paragraph(out, "advice", advice, width);
		paragraph(out, "id", id ? id : rule ? rule : PLUMB_DASH, width);
	}
	if (shown < p->findings_count)
		fprintf(out, "\n%" PRIu32 " more (--top 0 shows all)\n", p->findings_count - shown);
	return result;
}

/* ---- CSV ---- */

static void
cell(FILE *out, const char *text, char end)
{
	bool quote = text && strpbrk(text, ",\"\r\n");

	if (quote)
		fputc('"', out);
	for (; text && *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	if (quote)
		fputc('"', out);
	fputc(end, out);
}

int
plumb_findings_csv(const struct plumb_report *report, FILE *out)
{
	const struct plumb_profile *p = report->profile;

	fputs("id,rule,severity,confidence,saving_ns,title,user_file,user_line,advice,evidence\n",
	      out);
	for (uint32_t i = 0; i < p->findings_count; i++) {
		const struct plumb_finding *f = &p->findings[i];
		uint32_t frame =
			f->context < p->contexts_count ? report->user_of[f->context] : PLUMB_NONE;

		if (report->top && i >= report->top)
			break;
		cell(out, plumb_text(p, f->id), ',');
		cell(out, plumb_text(p, f->rule), ',');
		cell(out, plumb_severity_name(f->severity), ',');
		if (!isnan(f->confidence))
			fprintf(out, "%.6g", f->confidence);
		fputc(',', out);
		if (f->saving_ns != PLUMB_UNKNOWN)
			fprintf(out, "%" PRId64, f->saving_ns);
		fputc(',', out);
		cell(out, plumb_text(p, f->title), ',');
		cell(out, frame == PLUMB_NONE ? NULL : plumb_text(p, p->frames[frame].file), ',');
		if (frame != PLUMB_NONE && p->frames[frame].line)
			fprintf(out, "%" PRIu32, p->frames[frame].line);
		fputc(',', out);
		cell(out, plumb_text(p, f->advice), ',');
		cell(out, plumb_text(p, f->evidence), '\n');
	}
	return ferror(out) ? -1 : 0;
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
		char piece[8];

		fprintf(out, "  %-10s%s: ", "finding", severity);
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
