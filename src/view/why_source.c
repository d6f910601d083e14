/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of source as tables, with the samples of the instructions that come from them. An
 * instruction counts at its innermost line. */
#include <stdlib.h>

#include "base/vec.h"
#include "view/why_code.h"

#define NEAR 10 /* lines */

/* A line that code comes from. */
struct line {
	uint32_t file, line; /* string; number */
	uint32_t first;      /* the number of its first instruction; PLUMB_NONE */
	uint32_t count;      /* of instructions */
	struct plumb_why_heat heat;
};

struct file {
	uint32_t file;         /* string */
	uint32_t first, count; /* of its lines */
	uint64_t waiting, hidden;
};

struct source {
	const struct plumb_why_kernel *k;
	PLUMB_VEC(struct line) lines; /* by file and line */
	PLUMB_VEC(struct file) files; /* most waiting first */
};

static void
add_heat(struct plumb_why_heat *sum, const struct plumb_why_heat *heat)
{
	sum->all += heat->all;
	sum->waiting += heat->waiting;
	sum->hidden += heat->hidden;
	for (int c = 0; c < PLUMB_STALL_CLASS_COUNT; c++) {
		sum->by_class[c] += heat->by_class[c];
		sum->exposed[c] += heat->exposed[c];
	}
}

/* Adds what is at OFFSET; true: also if nobody knows its line. False: no memory. */
static bool
add_at(struct source *s, uint32_t function, int64_t offset, uint32_t number,
       const struct plumb_why_heat *heat)
{
	const struct plumb_kernel_code *code = &s->k->code;
	uint32_t count;
	const struct plumb_code_line *at =
		plumb_code_lines_at(code->profile, code->rows[function], offset, &count);
	struct line *last = s->lines.count ? &s->lines.items[s->lines.count - 1] : NULL;

	if (!at || !at->line || at->file == PLUMB_NONE)
		return true;
	if (!last || last->file != at->file || last->line != at->line) {
		last = plumb_vec_add(&s->lines);
		if (!last)
			return false;
		*last = (struct line){ .file = at->file, .line = at->line, .first = number };
	}
	last->count += number != PLUMB_NONE;
	add_heat(&last->heat, heat);
	return true;
}

/* Stalls of code that cannot be read. */
static bool
add_stalls(struct source *s)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < s->k->stall_count; i++) {
		const struct plumb_why_stall *stall = &s->k->stalls[i];
		struct plumb_why_heat heat = { .all = stall->samples + stall->hidden,
			                       .waiting = stall->samples,
			                       .hidden = stall->hidden };

		heat.by_class[stall->class] = heat.all;
		heat.exposed[stall->class] = stall->samples;
		ok = add_at(s, stall->function, stall->offset, PLUMB_NONE, &heat);
	}
	return ok;
}

static bool
add_insns(struct source *s)
{
	const struct plumb_kernel_code *code = &s->k->code;
	uint32_t number = 0;
	bool ok = true;

	for (uint32_t f = 0; ok && f < code->function_count; f++)
		for (uint32_t i = 0; ok && i < code->insns[f].count; i++, number++) {
			struct plumb_why_heat heat = plumb_why_heat(s->k, f, i);

			ok = add_at(s, f, code->insns[f].items[i].offset, number, &heat);
		}
	return ok;
}

static int
compare_lines(const void *a, const void *b)
{
	const struct line *one = a, *two = b;

	if (one->file != two->file)
		return one->file < two->file ? -1 : 1;
	if (one->line != two->line)
		return one->line < two->line ? -1 : 1;
	return one->first < two->first ? -1 : one->first > two->first;
}

static int
compare_files(const void *a, const void *b)
{
	const struct file *one = a, *two = b;

	if (one->waiting != two->waiting)
		return one->waiting > two->waiting ? -1 : 1;
	if (one->hidden != two->hidden)
		return one->hidden > two->hidden ? -1 : 1;
	return one->first < two->first ? -1 : one->first > two->first;
}

/* Puts rows of one line together, and finds the files. */
static bool
fold(struct source *s)
{
	uint32_t kept = 0;

	if (s->lines.count)
		qsort(s->lines.items, s->lines.count, sizeof *s->lines.items, compare_lines);
	for (uint32_t i = 0; i < s->lines.count; i++) {
		struct line *line = &s->lines.items[i];
		struct line *last = kept ? &s->lines.items[kept - 1] : NULL;

		if (last && last->file == line->file && last->line == line->line) {
			last->count += line->count;
			add_heat(&last->heat, &line->heat);
		} else {
			s->lines.items[kept++] = *line;
		}
	}
	s->lines.count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		const struct line *line = &s->lines.items[i];
		struct file *file = s->files.count ? &s->files.items[s->files.count - 1] : NULL;

		if (!file || file->file != line->file) {
			file = plumb_vec_add(&s->files);
			if (!file)
				return false;
			*file = (struct file){ .file = line->file, .first = i };
		}
		file->count++;
		file->waiting += line->heat.waiting;
		file->hidden += line->heat.hidden;
	}
	if (s->files.count)
		qsort(s->files.items, s->files.count, sizeof *s->files.items, compare_files);
	return true;
}

static void
free_source(struct source *s)
{
	plumb_vec_free(&s->lines);
	plumb_vec_free(&s->files);
}

static int
make_source(const struct plumb_why_kernel *k, struct source *s, struct plumb_error *error)
{
	*s = (struct source){ .k = k };
	if ((k->code.problem ? add_stalls(s) : add_insns(s)) && fold(s))
		return 0;
	free_source(s);
	return plumb_fail_memory(error, "for the lines");
}

/* ---- files ---- */

int
plumb_why_files_write(const struct plumb_why_kernel *k, const struct plumb_why_reader *reader,
                      enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer = { .id = "why.files", .title = "source files" };
	struct source s;
	int code = make_source(k, &s, error);

	if (code)
		return code;
	plumb_answer_column(&answer, "source", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "file", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "lines", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "lines_with_code", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "waiting", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "hidden", "count", PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; i < s.files.count; i++) {
		const struct file *file = &s.files.items[i];
		const char *name = plumb_text(k->code.profile, file->file);
		uint32_t lines = reader->count(reader->data, name);

		plumb_answer_integer(&answer, i);
		plumb_answer_text(&answer, name);
		plumb_answer_integer(&answer, lines ? lines : PLUMB_UNKNOWN);
		plumb_answer_integer(&answer, file->count);
		plumb_answer_integer(&answer, (int64_t)file->waiting);
		plumb_answer_integer(&answer, (int64_t)file->hidden);
	}
	free_source(&s);
	code = plumb_answer_end(&answer, error);
	if (!code)
		code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}

/* ---- lines ---- */

static void
add_line(struct plumb_answer *answer, uint32_t number, const char *text, const struct line *line)
{
	static const struct plumb_why_heat cold;

	plumb_answer_integer(answer, number);
	plumb_answer_copy(answer, text);
	plumb_answer_integer(answer, line ? line->count : 0);
	plumb_answer_integer(answer,
	                     line && line->first != PLUMB_NONE ? line->first : PLUMB_UNKNOWN);
	plumb_why_heat_cells(answer, line ? &line->heat : &cold);
}

/* The first of COUNT lines around the one with most waiting. */
static uint32_t
first_around(const struct line *lines, uint32_t count, uint32_t most)
{
	const struct line *hottest = lines;

	for (uint32_t i = 1; i < count; i++)
		if (lines[i].heat.waiting > hottest->heat.waiting)
			hottest = &lines[i];
	return most && hottest->line > most / 2 ? hottest->line - most / 2 : 1;
}

/* Is a line that code comes from near line NUMBER? LINE is the first one at or behind it. */
static bool
is_near(const struct line *first, const struct line *line, const struct line *end, uint32_t number)
{
	return (line < end && line->line - number <= NEAR) ||
	       (line > first && number - line[-1].line <= NEAR);
}

static void
add_lines(struct plumb_answer *answer, const struct source *s, const struct file *file,
          const struct plumb_why_range *range, const struct plumb_why_reader *reader)
{
	const char *name = plumb_text(s->k->code.profile, file->file);
	const struct line *line = &s->lines.items[file->first], *end = line + file->count;
	const struct line *begin = line;
	uint32_t all = reader->count(reader->data, name);
	uint32_t first = range->around  ? first_around(line, file->count, range->count)
	                 : range->first ? range->first
	                                : 1;
	uint64_t last = range->count ? (uint64_t)first + range->count - 1 : UINT32_MAX;

	/* A file that was changed may be shorter than its code says. */
	for (; line < end && line->line < first; line++)
		;
	for (uint32_t number = first; number <= all && number <= last; number++) {
		bool shown = !range->near || is_near(begin, line, end, number);
		const struct line *here = line < end && line->line == number ? line++ : NULL;

		add_line(answer, number, shown ? reader->line(reader->data, name, number) : NULL,
		         here);
	}
	for (; line < end && line->line <= last; line++)
		add_line(answer, line->line, NULL, line);
}

int
plumb_why_source_write(const struct plumb_why_kernel *k, uint32_t file,
                       const struct plumb_why_range *range, const struct plumb_why_reader *reader,
                       enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer = { .id = "why.source", .title = "lines of source" };
	struct source s;
	int code = make_source(k, &s, error);

	if (code)
		return code;
	if (file >= s.files.count) {
		free_source(&s);
		return plumb_fail(error, PLUMB_EUSAGE, "the kernel has no such source file");
	}
	plumb_answer_column(&answer, "line", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "text", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "instructions", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(&answer, "first", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_why_heat_columns(&answer);
	add_lines(&answer, &s, &s.files.items[file], range, reader);
	free_source(&s);
	code = plumb_answer_end(&answer, error);
	if (!code)
		code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}
