/* SPDX-License-Identifier: Apache-2.0 */
#include "export/chrome_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"

static const struct {
	const char *kind, *word;
	char letter;
} memories[] = {
	{ "pageable", "Pageable", 'H' },  { "pinned", "Pinned", 'H' },
	{ "host", "Host", 'H' },          { "device", "Device", 'D' },
	{ "peer device", "Device", 'P' }, { "managed", "Managed", 'D' },
	{ "array", "Array", 'A' },        { "unknown", "Unknown", 0 },
};
#define MEMORIES (sizeof memories / sizeof *memories)

static size_t
memory_of(const char *kind, size_t bytes)
{
	for (size_t i = 0; i < MEMORIES; i++)
		if (strlen(memories[i].kind) == bytes && !memcmp(memories[i].kind, kind, bytes))
			return i;
	return MEMORIES;
}

void
plumb_chrome_transfer(const char *name, char *text, size_t size)
{
	static const char arrow[] = "→";
	const char *middle = strstr(name, arrow);
	size_t from = MEMORIES, to = MEMORIES;

	snprintf(text, size, "%s", name);
	if (!strncmp(name, "set ", 4)) {
		to = memory_of(name + 4, strlen(name + 4));
		if (to < MEMORIES)
			snprintf(text, size, "Memset (%s)", memories[to].word);
		return;
	}
	if (strncmp(name, "copy ", 5) != 0 || !middle)
		return;
	from = memory_of(name + 5, (size_t)(middle - name) - 5);
	to = memory_of(middle + sizeof arrow - 1, strlen(middle + sizeof arrow - 1));
	if (from == MEMORIES || to == MEMORIES)
		return;
	if (memories[to].letter == 'P')
		snprintf(text, size, "Memcpy PtoP (%s -> %s)", memories[from].word,
		         memories[to].word);
	else if (memories[from].letter && memories[to].letter)
		snprintf(text, size, "Memcpy %cto%c (%s -> %s)", memories[from].letter,
		         memories[to].letter, memories[from].word, memories[to].word);
	else
		snprintf(text, size, "Memcpy (%s -> %s)", memories[from].word, memories[to].word);
}

const char *
plumb_chrome_category(uint32_t kind, const char *name)
{
	switch (kind) {
	case PLUMB_FRAME_PYTHON:
	case PLUMB_FRAME_MODULE:
		return "python_function";
	case PLUMB_FRAME_OPERATOR:
		return "cpu_op";
	case PLUMB_FRAME_RANGE:
		return "user_annotation";
	case PLUMB_FRAME_GPU_API:
		return !strncmp(name, "cu", 2) && strncmp(name, "cuda", 4) != 0 ? "cuda_driver"
		                                                                : "cuda_runtime";
	case PLUMB_FRAME_KERNEL:
		return "kernel";
	case PLUMB_FRAME_COPY:
		return "gpu_memcpy";
	case PLUMB_FRAME_SET:
		return "gpu_memset";
	default:
		return "native";
	}
}
