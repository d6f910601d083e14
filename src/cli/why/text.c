/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why for people: what each kernel waits for, then its stalls one by one. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/columns.h"
#include "cli/help.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/why/why.h"

#define WIDEST 120
#define CAUSES_MOST 6       /* of a kernel, by line */
#define STALL_CAUSES_MOST 4 /* of a stall */
#define ACCESSES_MOST 12
#define LINE_SIZE 1600

struct printer {
	const struct plumb_why *why;
	FILE *out;
	int width;
	bool is_static; /* of kernels without samples */
};

/* LABEL, then TEXT in lines that begin at column INDENT. Control characters are replaced. */
static void
print_at(const struct printer *t, const char *label, int indent, const char *text)
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

static const char *
share_of(char *text, uint64_t part, uint64_t whole)
{
	return plumb_format_share(text, (double)part, (double)whole);
}

/* ---- what a kernel waits for ---- */

static void
print_facts(const struct printer *t, const struct plumb_why_kernel *k)
{
	const struct plumb_profile *p = t->why->profile;
	const struct plumb_code_function *function = &p->code_functions[k->code.rows[0]];
	const char *architecture = plumb_text(p, function->architecture);
	char text[PLUMB_FORMAT_SIZE], more[PLUMB_FORMAT_SIZE];
	double share = plumb_why_share(t->why, k);

	if (k->kernel->gpu_ns != PLUMB_UNKNOWN && !isnan(share))
		fprintf(t->out, "   %s of the GPU time (%s)", plumb_format_share(text, share, 1),
		        plumb_format_time(more, k->kernel->gpu_ns));
	else if (!t->is_static && !isnan(share))
		fprintf(t->out, "   %s of the samples", plumb_format_share(text, share, 1));
	else
		fprintf(t->out, "   %s bytes of code", plumb_format_count(text, function->bytes));
	if (!t->is_static)
		fprintf(t->out, ", %s samples, %s of them waiting",
		        plumb_format_count(text, (int64_t)k->kernel->samples),
		        share_of(more, k->kernel->waiting + k->kernel->hidden, k->kernel->samples));
	if (architecture) {
		fputs(", ", t->out);
		plumb_text_print(t->out, architecture);
	}
	if (k->kernel->device < p->devices_count &&
	    plumb_text(p, p->devices[k->kernel->device].name)) {
		fputs(" on ", t->out);
		plumb_text_print(t->out, plumb_text(p, p->devices[k->kernel->device].name));
	} else if (k->kernel->devices > 1) {
		fprintf(t->out, " on %" PRIu32 " devices", k->kernel->devices);
	}
	if (function->registers != PLUMB_UNKNOWN)
		fprintf(t->out, ", %s registers", plumb_format_count(text, function->registers));
	fputc('\n', t->out);
}

/* PART of the kernel's time as time, else as a share. */
static const char *
part_of(const struct plumb_why_kernel *k, double part, char text[PLUMB_FORMAT_SIZE])
{
	if (k->kernel->gpu_ns == PLUMB_UNKNOWN)
		return plumb_format_share(text, part, 1);
	return plumb_format_time(text, (int64_t)(part * (double)k->kernel->gpu_ns));
}

static void
print_saving(const struct printer *t, const struct plumb_why_kernel *k,
             const struct plumb_kernel_cause *item)
{
	char text[PLUMB_FORMAT_SIZE];

	fputs("   saving  ", t->out);
	if (isnan(item->saving))
		fputs("unknown", t->out);
	else if (k->kernel->gpu_ns == PLUMB_UNKNOWN)
		fprintf(t->out, "up to %s of the kernel", part_of(k, item->saving, text));
	else
		fprintf(t->out, "up to %s of ", part_of(k, item->saving, text));
	if (!isnan(item->saving) && k->kernel->gpu_ns != PLUMB_UNKNOWN)
		fputs(plumb_format_time(text, k->kernel->gpu_ns), t->out);
	fprintf(t->out, " (confidence %.2g)", item->confidence);
	if (item->saving_line > item->saving * 1.1)
		fprintf(t->out, "; all causes at this line: up to %s",
		        part_of(k, item->saving_line, text));
	fputc('\n', t->out);
}

/* What memory allows, if that is known and is less than the saving of the first cause. */
static void
print_memory(const struct printer *t, const struct plumb_why_kernel *k,
             const struct plumb_kernel_cause *item)
{
	const struct plumb_kernel_memory *memory = &k->causes.memory;
	char text[LINE_SIZE], part[PLUMB_FORMAT_SIZE], more[PLUMB_FORMAT_SIZE];

	if (isnan(memory->part) || (item && isnan(item->saving_fewer_bytes)))
		return;
	snprintf(text, sizeof text, "%sit moves %.2f TB a second, about %s of the GPU's peak",
	         memory->part >= PLUMB_MEMORY_SATURATED ? "no headroom: " : "", memory->rate / 1e12,
	         plumb_format_share(part, memory->part, 1));
	if (item)
		snprintf(text + strlen(text), sizeof text - strlen(text),
		         ". Only a kernel that moves fewer bytes saves more, up to %s: join it "
		         "with the kernels before and after it, or use narrower types",
		         part_of(k, item->saving_fewer_bytes, more));
	print_at(t, "   memory", 11, text);
}

/* Lines about what is not as it should be. */
static void
print_troubles(const struct printer *t, const struct plumb_why_kernel *k)
{
	char text[LINE_SIZE], number[PLUMB_FORMAT_SIZE];

	if (k->code.problem)
		print_at(t, "   note", 11, k->code.problem);
	if (!k->code.problem && k->code.outside) {
		snprintf(
			text, sizeof text,
			"%s samples are outside the machine code that the profile has, and have no "
			"causes: the code may have changed while it ran",
			plumb_format_count(number, (int64_t)k->code.outside));
		print_at(t, "   note", 11, text);
	}
	if (k->code.unknown) {
		snprintf(text, sizeof text,
		         "plumb cannot decode %s instructions, so causes may be missing; a newer "
		         "plumb may know them",
		         plumb_format_count(number, k->code.unknown));
		print_at(t, "   note", 11, text);
	}
	if (k->code.without_text) {
		snprintf(text, sizeof text,
		         "the code of %" PRIu32 " functions that it calls is not known",
		         k->code.without_text);
		print_at(t, "   note", 11, text);
	}
	if (k->kernel->unplaced) {
		snprintf(text, sizeof text,
		         "CUPTI does not say where %s of the samples are. The functions that the "
		         "kernel calls have none, so they are taken for theirs, and what they wait "
		         "for is an estimate from their code",
		         plumb_format_count(number, (int64_t)k->kernel->unplaced));
		print_at(t, "   note", 11, text);
	}
	if (k->kernel->is_estimate)
		print_at(t, "   note", 11,
		         "other kernels call its functions too; their samples are divided "
		         "by an estimate. --stalls-mode=serialised measures them");
}

static void
print_head(const struct printer *t, const struct plumb_why_kernel *k)
{
	const struct plumb_kernel_cause *item = plumb_kernel_causes_lead(&k->causes, &k->slice);
	char sentence[PLUMB_WHY_SENTENCE];
	const struct plumb_stall_cause *cause;

	fputc('\n', t->out);
	plumb_text_print_short(t->out, k->name, t->width);
	fputc('\n', t->out);
	print_facts(t, k);
	print_at(t, "", 3, plumb_why_sentence(k, sentence, sizeof sentence));
	if (item) {
		cause = &k->slice.stalls[item->stall].causes[item->cause];
		/* What moves memory as fast as it can need not wait less for it. */
		if (cause->named && !(k->causes.memory.part >= PLUMB_MEMORY_SATURATED))
			print_at(t, "   advice", 11, cause->named->advice);
		if (cause->kind != PLUMB_CAUSE_UNKNOWN)
			print_saving(t, k, item);
	}
	print_memory(t, k, item);
	print_troubles(t, k);
}

/* ---- its causes by line ---- */

/* Of a cause: time, else a part of the kernel; NULL: unknown. Else it returns TEXT. */
static const char *
saving_of(const struct plumb_why_kernel *k, double saving, char text[PLUMB_FORMAT_SIZE])
{
	int64_t ns = plumb_why_saving(k, saving);

	if (isnan(saving))
		return NULL;
	return ns == PLUMB_UNKNOWN ? plumb_format_share(text, saving, 1)
	                           : plumb_format_time(text, ns);
}

static const struct plumb_named_cause *
name_of(const struct plumb_why_kernel *k, uint32_t item)
{
	const struct plumb_kernel_cause *cause = &k->causes.items[item];

	return k->slice.stalls[cause->stall].causes[cause->cause].named;
}

/* What helps with the other causes, if they have at least a twentieth of the waiting. The first one
 * was told of. */
static void
print_advice(const struct printer *t, const struct plumb_why_kernel *k)
{
	for (uint32_t i = 1; i < k->causes.count && i < CAUSES_MOST; i++) {
		const struct plumb_named_cause *named = name_of(k, i);
		char label[96];
		bool told = false;

		for (uint32_t j = 0; j < i; j++)
			told |= name_of(k, j) == named;
		if (!named || told || (double)k->causes.items[i].samples * 20 < (double)k->waiting)
			continue;
		snprintf(label, sizeof label, "   %s:", named->name);
		print_at(t, label, plumb_columns(label) + 1, named->advice);
	}
}

static int
print_causes(const struct printer *t, const struct plumb_why_kernel *k)
{
	static const struct plumb_column columns[] = {
		{ "share", PLUMB_RIGHT },      { "saves up to", PLUMB_RIGHT },
		{ "cause", PLUMB_LEFT },       { "where", PLUMB_SHORTEN_MIDDLE },
		{ "confidence", PLUMB_RIGHT }, { "evidence", PLUMB_SHORTEN_MIDDLE },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char text[PLUMB_FORMAT_SIZE], where[PLUMB_PLACE_SIZE];
	int code;

	for (uint32_t i = 0; i < k->causes.count && i < CAUSES_MOST; i++) {
		const struct plumb_kernel_cause *item = &k->causes.items[i];
		const struct plumb_stall_cause *c =
			&k->slice.stalls[item->stall].causes[item->cause];

		plumb_table_cell(table, share_of(text, item->samples, k->waiting));
		plumb_table_cell(table, saving_of(k, item->saving, text));
		plumb_table_cell(table,
		                 c->named ? c->named->name : plumb_cause_kind_names[c->kind]);
		plumb_table_cell(table, c->has_place ? plumb_kernel_place(&k->code, c->place, where,
		                                                          sizeof where)
		                                     : NULL);
		snprintf(text, sizeof text, "%.2g%s", item->confidence,
		         item->together > item->samples ? ", one of" : "");
		plumb_table_cell(table, text);
		plumb_table_cell(table, *c->evidence ? c->evidence : NULL);
	}
	fputs("\n causes by line, of its waiting\n", t->out);
	code = plumb_table_print(table, t->out, t->width, plumb_terminal_colour(t->out));
	plumb_table_free(table);
	if (k->causes.count > CAUSES_MOST)
		fprintf(t->out, "   … and %" PRIu32 " more: --json has all\n",
		        k->causes.count - CAUSES_MOST);
	print_advice(t, k);
	return code;
}

/* ---- its stalls ---- */

/* "softmax.cu:44 +0x1e0 FFMA R1, R2, R3, by cuda_fp16.hpp:7, inlined at main.cu:80". Returns TEXT
 * of LINE_SIZE. */
static char *
place_words(const struct plumb_why_kernel *k, struct plumb_slice_place place, char *text)
{
	const struct plumb_insn *insn = plumb_kernel_insn(&k->code, place);
	const struct plumb_profile *p = k->code.profile;
	char where[PLUMB_PLACE_SIZE], assembly[PLUMB_WHY_ASSEMBLY];
	uint32_t count = 0, own;
	const struct plumb_code_line *lines =
		plumb_code_lines_at(p, k->code.rows[place.function], insn->offset, &count);
	size_t used;

	plumb_kernel_place(&k->code, place, where, sizeof where);
	snprintf(text, LINE_SIZE, "%s", where);
	used = strlen(text);
	if (*where != '+')
		snprintf(text + used, LINE_SIZE - used, " +0x%" PRIx32, insn->offset);
	used = strlen(text);
	snprintf(text + used, LINE_SIZE - used, "  %s",
	         plumb_why_assembly(&k->code, place, assembly));
	own = lines ? plumb_code_own_line(p, lines, count) : 0;
	for (uint32_t i = own ? 0 : 1; i < count && i < own + 4; i++) {
		const char *file = plumb_text(p, lines[i].file);

		if (i && i <= own)
			continue;
		used = strlen(text);
		snprintf(text + used, LINE_SIZE - used, "%s%s:%" PRIu32,
		         !i             ? ", by "
		         : i == own + 1 ? ", inlined at "
		                        : ", at ",
		         file ? plumb_path_base(file) : "?", lines[i].line);
	}
	return text;
}

/* The chain in one paragraph: "softmax.cu:41 +0x1d0 IMAD … ← +0x1c0 LDG … ← softmax.cu:40 …". A
 * place is said once for the steps that have it. */
static void
print_chain(const struct printer *t, const struct plumb_why_kernel *k,
            const struct plumb_stall_cause *c)
{
	char text[LINE_SIZE] = "waits in turn for ", where[PLUMB_PLACE_SIZE],
	     last[PLUMB_PLACE_SIZE];
	char assembly[PLUMB_WHY_ASSEMBLY];

	*last = '\0';
	for (uint32_t i = 1; i < c->chain_count && i < PLUMB_CHAIN_MOST; i++) {
		const struct plumb_slice_hop *hop = &c->chain[i];
		bool lined = plumb_kernel_line(&k->code, hop->place);
		const char *via = plumb_why_via_name(hop->via);
		size_t used = strlen(text);

		plumb_kernel_place(&k->code, hop->place, where, sizeof where);
		snprintf(text + used, sizeof text - used, "%s%s%s", i == 1 ? "" : " \xe2\x86\x90 ",
		         strcmp(where, last) ? where : "", strcmp(where, last) && lined ? " " : "");
		used = strlen(text);
		if (lined)
			snprintf(text + used, sizeof text - used, "+0x%" PRIx32,
			         plumb_kernel_insn(&k->code, hop->place)->offset);
		used = strlen(text);
		snprintf(text + used, sizeof text - used, " %s",
		         plumb_why_assembly(&k->code, hop->place, assembly));
		used = strlen(text);
		if (hop->via != PLUMB_HOP_REGISTER)
			snprintf(text + used, sizeof text - used, " (by %s)",
			         hop->via == PLUMB_HOP_COUNTER
			                 ? k->code.input.isa->counter_name(hop->counter)
			         : via ? via
			               : "?");
		snprintf(last, sizeof last, "%s", where);
	}
	if (c->chain_count > 1)
		print_at(t, "", 12, text);
}

static void
print_cause(const struct printer *t, const struct plumb_why_kernel *k,
            const struct plumb_stall *stall, uint32_t number)
{
	const struct plumb_stall_cause *c = &stall->causes[number];
	char text[LINE_SIZE], noun[PLUMB_PLACE_SIZE + 64], share[PLUMB_FORMAT_SIZE];
	char label[PLUMB_FORMAT_SIZE + 8];
	bool named = c->named && c->has_place;

	plumb_kernel_cause_noun(&k->code, c, noun, sizeof noun);
	if (!c->has_place && !c->named)
		snprintf(noun, sizeof noun, "%s",
		         c->kind == PLUMB_CAUSE_UNKNOWN ? "nothing that plumb can name"
		                                        : plumb_cause_kind_names[c->kind]);
	snprintf(text, sizeof text, "%s%s%s (%s, confidence %.2g%s)%s", noun, named ? ": " : "",
	         named ? c->named->name : "", plumb_cause_kind_names[c->kind], c->confidence,
	         c->proved ? ", proved" : "",
	         c->ambiguity ? "; one of several that the hardware cannot tell apart" : "");
	snprintf(label, sizeof label, "   %7s", plumb_format_share(share, c->share, 1));
	print_at(t, label, 12, text);
	if (c->has_place)
		print_at(t, "", 12, place_words(k, c->place, text));
	if (*c->evidence)
		print_at(t, "", 12, c->evidence);
	print_chain(t, k, c);
}

/* The stalls of KIND, of which that with most samples stands for all. */
static void
print_stall(const struct printer *t, const struct plumb_why_kernel *k, uint32_t number,
            const struct plumb_why_kind *kind)
{
	const struct plumb_why_stall *s = &k->stalls[kind->stall];
	const char *word = plumb_kernel_reason_word(&k->code, s->reason);
	char text[LINE_SIZE], share[PLUMB_FORMAT_SIZE], a[PLUMB_FORMAT_SIZE], b[PLUMB_FORMAT_SIZE];
	char label[PLUMB_FORMAT_SIZE + 16];
	uint32_t causes = s->from ? s->from->cause_count : 0;

	snprintf(label, sizeof label, "%2" PRIu32 " %7s", number,
	         share_of(share, kind->samples, k->waiting));
	if (s->from)
		place_words(k, s->from->place, text);
	else
		snprintf(text, sizeof text, "+0x%" PRIx64, (uint64_t)s->offset);
	print_at(t, label, 11, text);
	snprintf(text, sizeof text, "%s (%s): the warp waited %s; %s %s%s%s", word,
	         plumb_stall_class_names[s->class], plumb_stall_reason_find(word)->meaning,
	         plumb_format_count(a, (int64_t)kind->samples),
	         t->is_static ? "cycles" : "samples exposed, ",
	         t->is_static ? "" : plumb_format_count(b, (int64_t)kind->hidden),
	         t->is_static ? "" : " hidden");
	print_at(t, "", 11, text);
	if (kind->more) {
		snprintf(text, sizeof text,
		         "so do %" PRIu32 " more instructions of this line; this one has %s",
		         kind->more, share_of(share, s->samples, k->waiting));
		print_at(t, "", 11, text);
	}
	if (s->matches == PLUMB_WHY_BY_LINE)
		print_at(t, "", 11, "your line causes this stall");
	for (uint32_t c = 0; c < causes && c < STALL_CAUSES_MOST; c++)
		print_cause(t, k, s->from, c);
	if (causes > STALL_CAUSES_MOST)
		fprintf(t->out, "            … and %" PRIu32 " causes more: --json has all\n",
		        causes - STALL_CAUSES_MOST);
}

/* ---- memory accesses ---- */

/* Loads of parameters and other constants are in every kernel, and seldom the cause. */
static uint32_t
without_constants(struct plumb_why_access *items, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (items[i].space != PLUMB_SPACE_CONSTANT)
			items[kept++] = items[i];
	return kept;
}

static int
print_accesses(const struct printer *t, const struct plumb_why_kernel *k)
{
	static const struct plumb_column columns[] = {
		{ "instructions", PLUMB_RIGHT },
		{ "what", PLUMB_LEFT },
		{ "bytes of a lane", PLUMB_RIGHT },
		{ "where", PLUMB_SHORTEN_MIDDLE },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char text[PLUMB_FORMAT_SIZE], where[PLUMB_PLACE_SIZE];
	uint32_t count;
	struct plumb_why_access *items = plumb_why_accesses(k, &count);
	int code;

	count = items ? without_constants(items, count) : 0;
	for (uint32_t i = 0; i < count && i < ACCESSES_MOST; i++) {
		const struct plumb_insn *insn = plumb_kernel_insn(&k->code, items[i].place);
		const char *space = plumb_why_space_name(items[i].space);
		char what[96];

		plumb_table_cell(table, plumb_format_count(text, items[i].count));
		snprintf(what, sizeof what, "%s%s%s%s", plumb_insn_class_names[items[i].class],
		         space ? ", " : "", space ? space : "", space ? " memory" : "");
		plumb_table_cell(table, what);
		snprintf(text, sizeof text, "%u", insn->width);
		plumb_table_cell(table, insn->width ? text : NULL);
		plumb_table_cell(table,
		                 plumb_kernel_place(&k->code, items[i].place, where, sizeof where));
	}
	if (count)
		fputs("\n memory and barriers\n", t->out);
	code = !items   ? -1
	       : !count ? 0
	                : plumb_table_print(table, t->out, t->width, plumb_terminal_colour(t->out));
	if (count > ACCESSES_MOST)
		fprintf(t->out, "   … and %" PRIu32 " more: --json has all\n",
		        count - ACCESSES_MOST);
	plumb_table_free(table);
	free(items);
	return code;
}

/* ---- all of it ---- */

/* The first TOP kinds of stalls; 0: all. */
static int
print_stalls(const struct printer *t, const struct plumb_why_kernel *k, uint32_t top)
{
	uint32_t count;
	struct plumb_why_kind *kinds = plumb_why_kinds(k, &count);
	uint32_t shown = top && top < count ? top : count;

	if (count)
		fprintf(t->out, "\n stalls, of its %s\n",
		        t->is_static ? "estimated waiting" : "waiting");
	for (uint32_t i = 0; i < shown; i++)
		print_stall(t, k, i + 1, &kinds[i]);
	if (shown < count)
		fprintf(t->out, "   … and %" PRIu32 " more: --top 0 shows all\n", count - shown);
	free(kinds);
	return kinds ? 0 : -1;
}

static int
print_details(const struct printer *t, const struct plumb_why_kernel *k, uint32_t top)
{
	int code = 0;

	if (t->why->count > 1) {
		fputs("\n-- ", t->out);
		plumb_text_print_short(t->out, k->name, t->width - 3);
		fputc('\n', t->out);
	}
	if (k->causes.count && !t->why->query.file)
		code = print_causes(t, k);
	if (!code)
		code = print_stalls(t, k, top);
	if (!code && t->why->query.by)
		code = plumb_why_print_groups(t->why, k, t->out);
	if (!code && t->is_static && !k->code.problem)
		code = print_accesses(t, k);
	return code;
}

static void
print_title(const struct printer *t, const char *path)
{
	char text[PLUMB_FORMAT_SIZE];

	fputs("plumb why ", t->out);
	plumb_text_print(t->out, path);
	if (t->is_static) {
		fprintf(t->out, ": %" PRIu32 " kernel%s\n", t->why->count + t->why->left,
		        t->why->count + t->why->left == 1 ? "" : "s");
		print_at(t, "", 2,
		         "There are no samples: plumb run --stalls records them. Shares are "
		         "estimates, from tables of latencies and from the loops of the code.");
	} else {
		fprintf(t->out, ": %s samples of %" PRIu32 " kernel%s, %s\n",
		        plumb_format_count(text, (int64_t)t->why->samples), t->why->found.count,
		        t->why->found.count == 1 ? "" : "s",
		        plumb_sampling_names[t->why->found.count ? t->why->found.items->sampling
		                                                 : 0]);
	}
	if (!t->why->profile->code_lines_count)
		print_at(t, "", 2, "The code has no lines of source; nvcc -lineinfo adds them.");
}

int
plumb_why_print(const struct plumb_why *why, const char *path, uint32_t top, FILE *out)
{
	int width = plumb_terminal_width(out), code = 0;
	struct printer t = { .why = why,
		             .out = out,
		             .width = width <= 0 || width > WIDEST ? WIDEST : width,
		             .is_static = !why->profile->code_samples_count };

	print_title(&t, path);
	for (uint32_t i = 0; i < why->count; i++)
		print_head(&t, &why->kernels[i]);
	if (why->left)
		fprintf(out, "\n… and %" PRIu32 " more: --kernels 0 shows all\n", why->left);
	for (uint32_t i = 0; !code && i < why->count; i++)
		code = print_details(&t, &why->kernels[i], top);
	return code;
}
