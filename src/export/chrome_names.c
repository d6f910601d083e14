/* SPDX-License-Identifier: Apache-2.0 */
#include "export/chrome_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* By kind of memory. */
static const struct {
	const char *word;
	char letter;
} memories[] = {
	[PLUMB_MEMORY_PAGEABLE] = { "Pageable", 'H' }, [PLUMB_MEMORY_PINNED] = { "Pinned", 'H' },
	[PLUMB_MEMORY_DEVICE] = { "Device", 'D' },     [PLUMB_MEMORY_ARRAY] = { "Array", 'A' },
	[PLUMB_MEMORY_MANAGED] = { "Managed", 'D' },   [PLUMB_MEMORY_UNKNOWN] = { "Unknown", 0 },
	[PLUMB_MEMORY_HOST] = { "Host", 'H' },
};

void
plumb_chrome_transfer(struct plumb_transfer transfer, const char *name, char *text, size_t size)
{
	unsigned from = transfer.from & ~PLUMB_MEMORY_PEER;
	unsigned to = transfer.to & ~PLUMB_MEMORY_PEER;

	if (!to)
		snprintf(text, size, "%s", name);
	else if (!from)
		snprintf(text, size, "Memset (%s)", memories[to].word);
	else if (transfer.to & PLUMB_MEMORY_PEER)
		snprintf(text, size, "Memcpy PtoP (%s -> %s)", memories[from].word,
		         memories[to].word);
	else if (memories[from].letter && memories[to].letter)
		snprintf(text, size, "Memcpy %cto%c (%s -> %s)",
		         transfer.from & PLUMB_MEMORY_PEER ? 'P' : memories[from].letter,
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
