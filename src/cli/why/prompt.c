/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why --prompt: a report of one kernel for a language model, in three settings: its code; its
 * code and stalls; its code, stalls and causes. It is bounded in size. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/source.h"
#include "base/vec.h"
#include "cli/table.h"
#include "cli/why/why.h"

#define CODE_MOST 12000 /* bytes of source or assembly */
#define STALLS_MOST 12
#define CAUSES_MOST 6
#define HOPS_MOST 4
#define AROUND 4          /* lines of source around those that have code */
#define JOIN 6            /* a hole of so many lines is shown as well */
#define ASSEMBLY_MOST 200 /* instructions, if there is no source */

struct writer {
	const struct plumb_why *why;
	const struct plumb_why_kernel *k;
	struct plumb_sources *sources;
	FILE *out;
};

/* ---- source ---- */

struct line_of_source {
	uint32_t file, line;
};

static int
compare_source(const void *a, const void *b)
{
	const struct line_of_source *one = a, *two = b;

	if (one->file != two->file)
		return one->file < two->file ? -1 : 1;
	return one->line < two->line ? -1 : one->line > two->line;
}

/* Prints the lines FROM to TO of FILE. Returns how many bytes; it prints no more than LEFT. */
static size_t
print_lines(const struct writer *w, const char *file, uint64_t from, uint64_t to, size_t left)
{
	size_t used = 0;

	for (uint64_t line = from; line <= to && line < UINT32_MAX; line++) {
		const char *text = plumb_source_line(w->sources, file, (uint32_t)line);

		if (!text)
			break;
		if (used + strlen(text) + 8 > left)
			return left;
		used += (size_t)fprintf(w->out, "%5" PRIu64 "  ", line) + strlen(text) + 1;
		fputs(text, w->out); /* the filter of the output takes care of what it is */
		fputc('\n', w->out);
	}
	return used;
}

/* All source lines that the kernel's code has, in order. */
static struct line_of_source *
list_source(const struct plumb_kernel_code *code, uint32_t *count)
{
	const struct plumb_profile *p = code->profile;
	PLUMB_VEC(struct line_of_source) found = { 0 };

	for (uint32_t f = 0; f < code->function_count; f++) {
		for (uint32_t i = 0; i < code->insns[f].count; i++) {
			uint32_t depth = 0;
			const struct plumb_code_line *lines = plumb_code_lines_at(
				p, code->rows[f], code->insns[f].items[i].offset, &depth);

			for (uint32_t d = 0; lines && d < depth; d++) {
				struct line_of_source *to =
					lines[d].file == PLUMB_NONE || !lines[d].line
						? NULL
						: plumb_vec_add(&found);

				if (to)
					*to = (struct line_of_source){ lines[d].file,
						                       lines[d].line };
			}
		}
	}
	if (found.count)
		qsort(found.items, found.count, sizeof *found.items, compare_source);
	*count = found.count;
	return found.items;
}

/* The source of the kernel, from disk. False: it cannot be read. */
static bool
print_source(const struct writer *w)
{
	const struct plumb_profile *p = w->why->profile;
	uint32_t count, at = 0;
	struct line_of_source *lines = list_source(&w->k->code, &count);
	size_t left = CODE_MOST;
	bool any = false;

	while (at < count && left) {
		const char *file = plumb_text(p, lines[at].file);
		uint64_t from = lines[at].line, to = from;
		uint32_t end = at;
		size_t used;

		while (end < count && lines[end].file == lines[at].file &&
		       lines[end].line <= to + JOIN)
			to = lines[end++].line;
		from = from > AROUND ? from - AROUND : 1;
		if (plumb_source_line(w->sources, file, lines[at].line)) {
			fprintf(w->out, "\n%s:\n```\n", plumb_path_base(file));
			used = print_lines(w, file, from, to + AROUND, left);
			fputs("```\n", w->out);
			left -= used < left ? used : left;
			any = true;
		}
		at = end;
	}
	if (any && !left)
		fputs("(more source was left out)\n", w->out);
	free(lines);
	return any;
}

static void
print_assembly(const struct writer *w)
{
	const struct plumb_kernel_code *code = &w->k->code;
	char text[PLUMB_WHY_ASSEMBLY], where[PLUMB_PLACE_SIZE];
	uint32_t printed = 0;

	fputs("\nThe source is not on this machine. Machine code:\n```\n", w->out);
	for (uint32_t f = 0; f < code->function_count; f++)
		for (uint32_t i = 0; i < code->insns[f].count && printed < ASSEMBLY_MOST; i++) {
			struct plumb_slice_place place = { f, i };

			fprintf(w->out, "%06" PRIx32 "  ", code->insns[f].items[i].offset);
			plumb_text_print(w->out, plumb_why_assembly(code, place, text));
			if (plumb_kernel_line(code, place)) {
				fputs("  // ", w->out);
				plumb_text_print(w->out, plumb_kernel_place(code, place, where,
				                                            sizeof where));
			}
			fputc('\n', w->out);
			printed++;
		}
	fputs("```\n", w->out);
	if (printed == ASSEMBLY_MOST)
		fputs("(more machine code was left out)\n", w->out);
}

/* ---- facts, stalls, causes ---- */

static void
print_known(FILE *out, const char *what, uint32_t number)
{
	if (number)
		fprintf(out, "%s: %" PRIu32 "\n", what, number);
}

static void
print_facts(const struct writer *w)
{
	const struct plumb_slice_launch *launch = &w->k->code.input.launch;
	const struct plumb_profile *p = w->why->profile;
	uint32_t device = w->k->kernel->device;
	const char *architecture = w->k->code.input.architecture;
	char text[PLUMB_FORMAT_SIZE];

	fputs("# GPU kernel ", w->out);
	plumb_text_print(w->out, w->k->name);
	fputs("\n\n", w->out);
	if (device < p->devices_count && plumb_text(p, p->devices[device].name)) {
		fputs("GPU: ", w->out);
		plumb_text_print(w->out, plumb_text(p, p->devices[device].name));
		fputc('\n', w->out);
	}
	fprintf(w->out, "architecture: %s\n", architecture ? architecture : "unknown");
	if (w->k->kernel->gpu_ns != PLUMB_UNKNOWN)
		fprintf(w->out, "GPU time of all its launches: %s\n",
		        plumb_format_time(text, w->k->kernel->gpu_ns));
	print_known(w->out, "blocks of a launch", launch->blocks);
	print_known(w->out, "threads of a block", launch->threads);
	print_known(w->out, "registers of a thread", launch->registers);
	print_known(w->out, "bytes of shared memory of a block", launch->shared_bytes);
	if (launch->occupancy_ppm)
		fprintf(w->out, "theoretical occupancy: %.0f %%\n", launch->occupancy_ppm / 1e4);
}

static void
print_stall(const struct writer *w, const struct plumb_why_kind *kind)
{
	const struct plumb_why_kernel *k = w->k;
	const struct plumb_why_stall *s = &k->stalls[kind->stall];
	const char *word = plumb_kernel_reason_word(&k->code, s->reason);
	char share[PLUMB_FORMAT_SIZE], where[PLUMB_PLACE_SIZE], text[PLUMB_WHY_ASSEMBLY] = "";

	if (s->from) {
		plumb_kernel_place(&k->code, s->from->place, where, sizeof where);
		plumb_why_assembly(&k->code, s->from->place, text);
	} else {
		snprintf(where, sizeof where, "+0x%" PRIx64, (uint64_t)s->offset);
	}
	fprintf(w->out, "- %s at ",
	        plumb_format_share(share, (double)kind->samples, (double)k->waiting));
	plumb_text_print(w->out, where);
	if (*text)
		fprintf(w->out, " `%s`", text);
	if (kind->more)
		fprintf(w->out, " and %" PRIu32 " more instructions of this line", kind->more);
	fprintf(w->out, ": %s, waited %s\n", word, plumb_stall_reason_find(word)->meaning);
}

static void
print_stalls(const struct writer *w)
{
	uint32_t count;
	struct plumb_why_kind *kinds = plumb_why_kinds(w->k, &count);

	fputs("\n## Where its warps wait\n\n", w->out);
	for (uint32_t i = 0; i < count && i < STALLS_MOST; i++)
		print_stall(w, &kinds[i]);
	free(kinds);
}

/* Has it at least a fiftieth of the waiting? */
static bool
is_notable(const struct plumb_why_kernel *k, const struct plumb_kernel_cause *item)
{
	return (double)item->samples * 50 >= (double)k->waiting;
}

static void
print_cause(const struct writer *w, const struct plumb_kernel_cause *item)
{
	const struct plumb_why_kernel *k = w->k;
	const struct plumb_stall *stall = &k->slice.stalls[item->stall];
	const struct plumb_stall_cause *c = &stall->causes[item->cause];
	char share[PLUMB_FORMAT_SIZE], text[PLUMB_WHY_SENTENCE], where[PLUMB_PLACE_SIZE];

	fprintf(w->out, "- %s of the waiting is ",
	        plumb_format_share(share, (double)item->samples, (double)k->waiting));
	plumb_text_print(w->out, plumb_kernel_cause_sentence(&k->code, stall, item->cause, text,
	                                                     sizeof text));
	fprintf(w->out, ". Cause: %s, confidence %.2g.%s%s\n",
	        c->named ? c->named->name : plumb_cause_kind_names[c->kind], item->confidence,
	        *c->evidence ? " Evidence: " : "", c->evidence);
	for (uint32_t i = 1; i < c->chain_count && i <= HOPS_MOST && i < PLUMB_CHAIN_MOST; i++) {
		fprintf(w->out, "  - it waits for ");
		plumb_text_print(w->out, plumb_kernel_place(&k->code, c->chain[i].place, where,
		                                            sizeof where));
		fprintf(w->out, " `%s`\n", plumb_why_assembly(&k->code, c->chain[i].place, text));
	}
	if (c->named)
		fprintf(w->out, "  - what helps: %s\n", c->named->advice);
	if (!isnan(item->saving))
		fprintf(w->out, "  - saves at most %s of the kernel's time\n",
		        plumb_format_share(share, item->saving, 1));
}

void
plumb_why_print_prompt(const struct plumb_why *why, enum plumb_why_prompt what, FILE *out)
{
	struct writer w = { .why = why, .k = &why->kernels[0], .out = out };

	w.sources = plumb_sources_new();
	print_facts(&w);
	fputs("\n## Code\n", out);
	if (w.k->code.problem)
		fprintf(out, "\nnot known: %s\n", w.k->code.problem);
	else if (!print_source(&w))
		print_assembly(&w);
	if (what >= PLUMB_PROMPT_STALLS)
		print_stalls(&w);
	if (what >= PLUMB_PROMPT_CAUSES && w.k->causes.count) {
		fputs("\n## Why they wait\n\n", out);
		for (uint32_t i = 0; i < w.k->causes.count && i < CAUSES_MOST; i++)
			if (!i || is_notable(w.k, &w.k->causes.items[i]))
				print_cause(&w, &w.k->causes.items[i]);
	}
	fputs("\n## Task\n\nMake this kernel faster without changing what it computes. Say which "
	      "line you change and why.\n",
	      out);
	plumb_sources_free(w.sources);
}
