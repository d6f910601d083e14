/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the line table of a module of GPU code: the size of each section in two bytes, then
 * the sections one after the other. The top bit of the second size says that relocations are short.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUNCTIONS = 64, CHAIN = 32 };

/* No text is longer than what all of them come from. */
static void
check_texts(const struct plumb_gpu_line *line)
{
	if ((line->file && strlen(line->file) > UINT16_MAX) ||
	    (line->function && strlen(line->function) > UINT16_MAX))
		abort();
}

static void
check(const struct plumb_gpu_sections *sections)
{
	struct plumb_gpu_lines *lines = plumb_gpu_lines_new(sections);
	struct plumb_gpu_line first, chain[CHAIN];
	const char *name;

	if (!lines)
		return;
	for (uint32_t f = 0; f < FUNCTIONS && (name = plumb_gpu_lines_function(lines, f, &first));
	     f++) {
		check_texts(&first);
		if (strlen(name) >= sections->size[PLUMB_GPU_NAMES])
			abort();
		for (uint64_t offset = 0; offset < 4096; offset += 16) {
			uint32_t count = plumb_gpu_lines_at(lines, f, offset, chain, CHAIN);
			for (uint32_t i = 0; i < count; i++)
				check_texts(&chain[i]);
		}
	}
	plumb_gpu_lines_free(lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plumb_gpu_sections sections = { 0 };
	char *bytes[PLUMB_GPU_SECTIONS] = { 0 };
	uint16_t wanted[PLUMB_GPU_SECTIONS];

	if (size < sizeof wanted)
		return 0;
	memcpy(wanted, data, sizeof wanted);
	sections.short_relocations = wanted[PLUMB_GPU_RELOCATIONS] >> 15;
	wanted[PLUMB_GPU_RELOCATIONS] &= INT16_MAX;
	data += sizeof wanted;
	size -= sizeof wanted;
	/* Each in memory of its own, so that a sanitizer sees a read past its end. */
	for (int i = 0; i < PLUMB_GPU_SECTIONS; i++) {
		uint32_t own = wanted[i] < size ? wanted[i] : (uint32_t)size;
		bytes[i] = malloc(own + 1u);
		if (bytes[i])
			bytes[i] = realloc(memcpy(bytes[i], data, own), own ? own : 1);
		sections.bytes[i] = bytes[i];
		sections.size[i] = bytes[i] ? own : 0;
		data += own;
		size -= own;
	}
	check(&sections);
	for (int i = 0; i < PLUMB_GPU_SECTIONS; i++)
		free(bytes[i]);
	return 0;
}
