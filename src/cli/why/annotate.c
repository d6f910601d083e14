/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why --annotate: each instruction with its control fields, samples and dependences, under
 * its line of source. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/source.h"
#include "cli/columns.h"
#include "cli/table.h"
#include "cli/why/why.h"

#define EDGES_MOST 16
#define TEXT_SIZE 600
#define ASSEMBLY_WIDTH 46

struct lister {
	const struct plumb_why_kernel *k;
	struct plumb_sources *sources;
	FILE *out;
	char **texts; /* of nvdisasm, of the function that is printed; NULL: none */
	uint32_t text_count;
};

static void
add_text(char *text, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, TEXT_SIZE - used, "%s%s", used ? " " : "", more);
}

static const char *
counter_of(const struct lister *l, unsigned counter)
{
	return l->k->code.input.isa->counter_name(counter);
}

/* What the instruction waits for before it begins, and what it raises. */
static void
control_words(const struct lister *l, const struct plumb_insn *insn, char *waits, char *sets)
{
	char one[64];

	*waits = *sets = '\0';
	for (uint32_t w = 0; w < insn->waits_count && w < PLUMB_INSN_WAITS; w++)
		for (unsigned c = 0; c < 64; c++) {
			if (!(insn->waits[w].counters >> c & 1))
				continue;
			snprintf(one, sizeof one, "%s", counter_of(l, c));
			if (insn->waits[w].threshold)
				snprintf(one + strlen(one), sizeof one - strlen(one), "<=%u",
				         insn->waits[w].threshold);
			add_text(waits, one);
		}
	for (uint32_t s = 0; s < insn->signals_count && s < PLUMB_INSN_SIGNALS; s++) {
		snprintf(one, sizeof one, "%s%s", counter_of(l, insn->signals[s].counter),
		         insn->signals[s].part == PLUMB_SYNC_SOURCES ? "r" : "");
		add_text(sets, one);
	}
}

static void
edge_words(const struct lister *l, struct plumb_slice_place place, char *text)
{
	struct plumb_slice_edge edges[EDGES_MOST];
	uint32_t count = plumb_slice_edges(&l->k->slice, place, edges, EDGES_MOST);
	char one[128];

	*text = '\0';
	for (uint32_t i = 0; i < count && i < EDGES_MOST; i++) {
		const struct plumb_insn *from = plumb_kernel_insn(&l->k->code, edges[i].from);
		const char *via = edges[i].via == PLUMB_HOP_COUNTER
		                          ? counter_of(l, edges[i].counter)
		                          : plumb_why_via_name(edges[i].via);

		snprintf(one, sizeof one, "%s+0x%" PRIx32 "%s (%s%s)", i ? ", " : "", from->offset,
		         edges[i].from.function == place.function ? "" : " of another function",
		         via ? via : "?", edges[i].proved ? "" : ", possible");
		size_t used = strlen(text);
		snprintf(text + used, TEXT_SIZE - used, "%s", one);
	}
}

/* "long_scoreboard 1,200, wait 30 hidden" */
static void
reason_words(const struct lister *l, struct plumb_slice_place place, char *text)
{
	const struct plumb_kernel_code *code = &l->k->code;
	char number[PLUMB_FORMAT_SIZE];
	uint32_t count;
	const struct plumb_kernel_sample *s =
		plumb_kernel_samples_at(code, place.function, place.insn, &count);

	*text = '\0';
	for (; count--; s++) {
		size_t used = strlen(text);

		snprintf(text + used, TEXT_SIZE - used, "%s%s %s%s", used ? ", " : "",
		         plumb_kernel_reason_word(code, s->reason),
		         plumb_format_count(number, (int64_t)s->count), s->issued ? " hidden" : "");
	}
}

static void
print_insn(const struct lister *l, struct plumb_slice_place place)
{
	const struct plumb_insn *insn = plumb_kernel_insn(&l->k->code, place);
	struct plumb_why_heat heat = plumb_why_heat(l->k, place.function, place.insn);
	char waits[TEXT_SIZE], sets[TEXT_SIZE], reasons[TEXT_SIZE], edges[TEXT_SIZE];
	char assembly[PLUMB_WHY_ASSEMBLY], number[PLUMB_FORMAT_SIZE];
	const char *text = l->texts && insn->offset / 16 < l->text_count
	                           ? l->texts[insn->offset / 16]
	                           : plumb_why_assembly(&l->k->code, place, assembly);
	int columns = plumb_columns(text);

	control_words(l, insn, waits, sets);
	edge_words(l, place, edges);
	*reasons = '\0';
	if (heat.all)
		reason_words(l, place, reasons);
	fprintf(l->out, "%10s  %06" PRIx32 "  ",
	        heat.all ? plumb_format_count(number, (int64_t)heat.all) : "", insn->offset);
	plumb_text_print(l->out, text);
	fprintf(l->out, "%*s  %-11s %-7s %2u",
	        columns < ASSEMBLY_WIDTH ? ASSEMBLY_WIDTH - columns : 0, "", waits, sets,
	        insn->issue);
	if (*reasons)
		fprintf(l->out, "  %s", reasons);
	if (*edges)
		fprintf(l->out, "  from %s", edges);
	fputc('\n', l->out);
}

/* The line of source, with the calls that were inlined there. */
static void
print_line(const struct lister *l, const struct plumb_code_line *lines, uint32_t count)
{
	const struct plumb_profile *p = l->k->code.profile;

	for (uint32_t i = 0; i < count; i++) {
		const char *file = plumb_text(p, lines[i].file);
		const char *text = plumb_source_line(l->sources, file, lines[i].line);

		fputs(i ? " inlined at " : "", l->out);
		plumb_text_print(l->out, file ? plumb_path_base(file) : "?");
		fprintf(l->out, ":%" PRIu32, lines[i].line);
		if (text && !i) {
			fputs("  ", l->out);
			plumb_text_print(l->out, text + strspn(text, " \t"));
		}
	}
	fputc('\n', l->out);
}

static void
print_function(struct lister *l, uint32_t function)
{
	const struct plumb_kernel_code *code = &l->k->code;
	const struct plumb_code_line *last = NULL;

	for (uint32_t i = 0; i < code->insns[function].count; i++) {
		uint32_t count = 0;
		const struct plumb_code_line *lines =
			plumb_code_lines_at(code->profile, code->rows[function],
		                            code->insns[function].items[i].offset, &count);

		if (lines && lines != last)
			print_line(l, lines, count);
		last = lines;
		print_insn(l, (struct plumb_slice_place){ function, i });
	}
}

static void
print_kernel(const struct plumb_invocation *invocation, struct lister *l)
{
	const struct plumb_kernel_code *code = &l->k->code;
	struct plumb_error why;
	bool told = false;

	fputc('\n', l->out);
	plumb_text_print(l->out, l->k->name);
	fputc('\n', l->out);
	if (code->problem) {
		fprintf(l->out, "no listing: %s\n", code->problem);
		return;
	}
	for (uint32_t f = 0; f < code->function_count; f++) {
		const struct plumb_blob *text = &code->profile->code_functions[code->rows[f]].text;

		if (!code->insns[f].count)
			continue;
		l->texts = plumb_why_disassemble(code->input.architecture, text->data, text->bytes,
		                                 &l->text_count, &why);
		if (!l->texts && !told)
			plumb_cli_note(invocation,
			               "%s; the instructions are as plumb itself decodes them",
			               why.message);
		told |= !l->texts;
		if (f) {
			fputs("\nfunction ", l->out);
			plumb_text_print(l->out, code->functions[f].name);
			fputc('\n', l->out);
		}
		fprintf(l->out, "%10s  %-6s  %-*s  %-11s %-7s %s\n", "samples", "offset",
		        ASSEMBLY_WIDTH,
		        l->texts ? "instruction (nvdisasm)" : "instruction (plumb's decoder)",
		        "waits for", "raises",
		        "cycles, samples by reason, from: what it depends on");
		print_function(l, f);
		plumb_why_free_texts(l->texts, l->text_count);
		l->texts = NULL;
	}
}

int
plumb_why_print_listing(const struct plumb_invocation *invocation, const struct plumb_why *why,
                        FILE *out)
{
	struct plumb_sources *sources = plumb_sources_new();

	for (uint32_t i = 0; i < why->count; i++) {
		struct lister l = { .k = &why->kernels[i], .sources = sources, .out = out };

		print_kernel(invocation, &l);
	}
	plumb_sources_free(sources);
	return 0;
}
