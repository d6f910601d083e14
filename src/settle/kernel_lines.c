/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where GPU kernels were written: the line that each begins at, from the line tables of the modules
 * that the program loaded.
 */
#include <limits.h>
#include <string.h>

#include "isa/lines.h"
#include "model/generated.h"
#include "settle/settle_private.h"

#define SECTION_MAX (64u << 10) /* the collector keeps no larger section */

static void
add_kernel(struct plumb_settler *settler, const char *name, const struct plumb_gpu_line *line)
{
	/* The file that Inductor put a kernel into says nothing. The kernel's origins do. */
	if (!line->file || strlen(line->file) >= PATH_MAX || !line->line ||
	    plumb_generated_by_inductor(line->file))
		return;
	struct plumb_settle_kernel_line *added = plumb_vec_add(&settler->kernel_lines);
	if (!added) {
		settler->no_memory = true;
		return;
	}
	added->name = plumb_builder_text(settler->builder, name);
	added->file = plumb_builder_text(settler->builder, line->file);
	added->line = line->line;
}

void
plumb_settle_gpu_lines(struct plumb_settle_region *region,
                       const struct plumb_record_gpu_lines *record)
{
	struct plumb_gpu_sections sections = {
		.short_relocations = record->head.flags & PLUMB_GPU_LINES_REL,
	};
	const char *at = (const char *)(record + 1);
	uint64_t left = record->head.length - sizeof *record;
	struct plumb_gpu_line first;
	const char *name;

	for (size_t i = 0; i < sizeof record->bytes / sizeof *record->bytes; i++) {
		if (record->bytes[i] > left || record->bytes[i] > SECTION_MAX) {
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "lines of GPU code", 1);
			return;
		}
		sections.bytes[i] = at;
		sections.size[i] = record->bytes[i];
		at += record->bytes[i];
		left -= record->bytes[i];
	}
	struct plumb_gpu_lines *lines = plumb_gpu_lines_new(&sections);
	region->settler->no_memory = region->settler->no_memory || !lines;
	for (uint32_t f = 0; lines && (name = plumb_gpu_lines_function(lines, f, &first)); f++)
		add_kernel(region->settler, name, &first);
	plumb_gpu_lines_free(lines);
}

/* If kernels of one name were written in several places, the place is unknown. */
void
plumb_settle_kernel_lines(struct plumb_settler *settler)
{
	struct plumb_builder *builder = settler->builder;
	uint32_t frames = plumb_builder_frame_count(builder);

	for (uint32_t f = 0; f < frames; f++) {
		const struct plumb_frame *frame = plumb_builder_get_frame(builder, f);
		const struct plumb_settle_kernel_line *found = NULL;
		bool contradict = false;
		if (frame->kind != PLUMB_FRAME_KERNEL)
			continue;
		for (uint32_t i = 0; i < settler->kernel_lines.count; i++) {
			const struct plumb_settle_kernel_line *own =
				&settler->kernel_lines.items[i];
			if (own->name != frame->name)
				continue;
			contradict =
				contradict ||
				(found && (found->file != own->file || found->line != own->line));
			found = own;
		}
		if (found && !contradict)
			plumb_builder_frame_source(builder, f, found->file, found->line);
	}
}
