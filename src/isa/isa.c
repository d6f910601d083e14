/* SPDX-License-Identifier: Apache-2.0 */
#include "isa/isa.h"

#include <stdlib.h>

#include "isa/sass/sass.h"

const char *const plumb_insn_class_names[PLUMB_INSN_CLASS_COUNT] = {
#define X(id, name) [PLUMB_INSN_##id] = name,
	PLUMB_INSN_CLASSES(X)
#undef X
};

const char *const plumb_pipe_names[PLUMB_PIPE_COUNT] = {
#define X(id, name) [PLUMB_PIPE_##id] = name,
	PLUMB_PIPES(X)
#undef X
};

static const struct plumb_isa *const isas[] = { &plumb_isa_sass };

const struct plumb_isa *
plumb_isa_find(const char *architecture)
{
	for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
		if (isas[i]->decodes(architecture))
			return isas[i];
	return NULL;
}

enum { LONGEST_TEXT = 1 << 28 };

int
plumb_isa_decode(const struct plumb_isa *isa, const char *architecture, const void *text,
                 size_t bytes, struct plumb_insns *insns, struct plumb_error *error)
{
	unsigned size;

	*insns = (struct plumb_insns){ 0 };
	if (!bytes)
		return 0;
	if (bytes > LONGEST_TEXT)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%zu bytes are too many for a function of %s; the module may be "
		                  "damaged",
		                  bytes, architecture);
	insns->items = malloc((bytes / isa->shortest + 1) * sizeof *insns->items);
	if (!insns->items)
		return plumb_fail_memory(error, "to decode machine code");
	for (size_t at = 0; at < bytes; at += size) {
		struct plumb_insn *insn = &insns->items[insns->count];
		size = isa->decode(architecture, (const char *)text + at, bytes - at, (uint32_t)at,
		                   insn);
		if (!size) {
			plumb_insns_free(insns);
			return plumb_fail(error, PLUMB_EINPUT,
			                  "the code of %s ends within an instruction; the module "
			                  "may be damaged",
			                  architecture);
		}
		insns->count++;
		insns->unknown += insn->class == PLUMB_INSN_UNKNOWN;
	}
	return 0;
}

void
plumb_insns_free(struct plumb_insns *insns)
{
	free(insns->items);
	*insns = (struct plumb_insns){ 0 };
}
