/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/label.h"
#include "cli/report/text.h"
#include "model/display.h"
#include "model/generated.h"
#include "model/kernel_name.h"
#include "model/user_code.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

#define INDENT_MOST 24 /* levels; deeper ones say their number */
#define LONG_KERNEL 60 /* bytes */
#define SHORT_CHAIN 4  /* frames of a chain that is shown whole */
#define ARROW " \xe2\x80\xba "

/* Says which pass of a model a context belongs to, if its parent belongs to another one. */
static void
write_flags(const struct plumb_profile *p, uint32_t context, FILE *out)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} names[] = {
		{ PLUMB_CONTEXT_BACKWARD, "[backward]" },
		{ PLUMB_CONTEXT_ACCUMULATION, "[gradient accumulation]" },
		{ PLUMB_CONTEXT_TRUNCATED, "[deeper frames not kept]" },
	};
	uint32_t parent = p->contexts[context].parent;
	uint32_t before = parent == PLUMB_NONE ? 0 : p->contexts[parent].flags;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (p->contexts[context].flags & ~before & names[i].flag)
			fprintf(out, " %s", names[i].text);
}

/* "shapes::area at shapes.cpp:12", "cublasGemmEx in libcublas.so.12", "libm.so.6+0x1200". */
static void
write_native(const struct plumb_report_place *place, FILE *out)
{
	fwrite(place->name, 1, plumb_name_without_parameters(place->name), out);
	if (place->source_file && place->source_line)
		fprintf(out, " at %s:%" PRIu32, plumb_path_base(place->source_file),
		        place->source_line);
	else if (place->library) {
		const char *library = plumb_path_base(place->library);
		if (strncmp(place->name, library, strlen(library)))
			fprintf(out, " in %s", library);
	}
}

/* A long kernel's name would take the room of the path to it. */
static void
write_name(const struct plumb_report_place *place, bool whole, FILE *out)
{
	char *compact =
		!whole && !strcmp(place->kind, "kernel") && strlen(place->name) > LONG_KERNEL
			? plumb_kernel_name_compact(place->name)
			: NULL;

	fputs(compact ? compact : place->name, out);
	free(compact);
}

static void
write_context(const struct plumb_report *report, uint32_t context, bool whole, FILE *out)
{
	struct plumb_report_place place;

	plumb_report_context_place(report, context, &place);
	if (!strcmp(place.kind, "native") || !strcmp(place.kind, "inline")) {
		write_native(&place, out);
		write_flags(report->profile, context, out);
		return;
	}
	write_name(&place, whole, out);
	if (!strcmp(place.kind, "python") && place.file) {
		/* A hash tells a person nothing. */
		fprintf(out, " %s",
		        plumb_generated_by_inductor(place.file) ? "generated"
		                                                : plumb_path_base(place.file));
		if (place.line)
			fprintf(out, ":%" PRIu32, place.line);
	}
	if (!strcmp(place.kind, "module") && place.line) /* the number of the call */
		fprintf(out, " #%" PRIu32, place.line);
	if (!strcmp(place.kind, "kernel"))
		plumb_from_print_context(report, context, out);
	write_flags(report->profile, context, out);
}

/* Marks which frames of a long chain are shown: its two ends, and the two ends of your code. */
static void
mark_shown(const struct plumb_report *report, const uint32_t *chain, uint32_t length,
           unsigned char *shown)
{
	const struct plumb_profile *p = report->profile;
	uint32_t first = length, last = length;

	shown[0] = shown[length - 1] = shown[length - 2] = 1;
	for (uint32_t i = 0; i < length; i++) {
		if (length <= SHORT_CHAIN)
			shown[i] = 1;
		if (!report->user[p->contexts[chain[i]].frame])
			continue;
		first = first == length ? i : first;
		last = i;
	}
	if (last < length)
		shown[first] = shown[last] = 1;
}

static void
write_chain(const struct plumb_report *report, const uint32_t *chain, uint32_t length,
            unsigned char *shown, bool whole, FILE *out)
{
	uint32_t hidden = 0;

	if (length > 1)
		mark_shown(report, chain, length, shown);
	else
		shown[0] = 1;
	/* Saying that one frame is hidden takes as much room as the frame. */
	for (uint32_t i = 1; i + 1 < length; i++)
		if (shown[i - 1] && shown[i + 1])
			shown[i] = 1;
	for (uint32_t i = 0; i < length; i++) {
		if (!shown[i]) {
			hidden++;
			continue;
		}
		if (i)
			fputs(ARROW, out);
		if (hidden)
			fprintf(out, "(%" PRIu32 " more)" ARROW, hidden);
		hidden = 0;
		write_context(report, chain[i], whole, out);
	}
}

char *
plumb_label_node(const struct plumb_report *report, const struct plumb_tree_node *node, bool whole)
{
	const struct plumb_profile *p = report->profile;
	uint32_t *chain = calloc(node->length, sizeof *chain);
	unsigned char *shown = calloc(node->length, 1);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	uint32_t context = node->context;
	bool ok = chain && shown && out;

	/* From the root down a chain reads outermost first, bottom-up the other way round. */
	for (uint32_t i = 0; ok && i < node->length; i++) {
		chain[report->inverted ? i : node->length - 1 - i] = context;
		context = p->contexts[context].parent;
	}
	if (ok) {
		if (node->depth > INDENT_MOST)
			fprintf(out, "%*s(%" PRIu32 ") ", 2 * INDENT_MOST, "", node->depth);
		else
			fprintf(out, "%*s", 2 * (int)node->depth, "");
		write_chain(report, chain, node->length, shown, whole, out);
	}
	if (out && fclose(out))
		ok = false;
	free(chain);
	free(shown);
	if (ok)
		return text;
	free(text);
	return NULL;
}
