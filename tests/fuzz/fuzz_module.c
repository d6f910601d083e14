/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file with modules of GPU code: each is read, decoded and printed.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"
#include "isa/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_insn(const struct plumb_isa *isa, const char *architecture, const char *text,
           const struct plumb_insn *insn)
{
	char assembly[64];

	isa->print(architecture, text + insn->offset, insn, assembly, sizeof assembly);
	if (memchr(assembly, 0, sizeof assembly) == NULL || insn->class >= PLUMB_INSN_CLASS_COUNT ||
	    insn->pipe >= PLUMB_PIPE_COUNT || insn->reads_count > PLUMB_INSN_REGS ||
	    insn->writes_count > PLUMB_INSN_REGS || insn->waits_count > PLUMB_INSN_WAITS ||
	    insn->signals_count > PLUMB_INSN_SIGNALS)
		abort();
}

static void
check_function(const struct plumb_module *module, uint32_t number)
{
	const struct plumb_module_function *function = plumb_module_function(module, number);
	const char *architecture = plumb_module_architecture(module);
	const struct plumb_isa *isa = plumb_isa_find(architecture);
	struct plumb_gpu_line chain[4];
	struct plumb_insns insns;

	if (plumb_module_find(module, function->name) != number)
		abort();
	for (uint32_t i = 0; i < function->reference_count; i++)
		if (strlen(function->references[i].name) > UINT16_MAX * 64u)
			abort();
	plumb_module_lines(module, number, 16, chain, 4);
	if (!isa ||
	    plumb_isa_decode(isa, architecture, function->text, function->bytes, &insns, NULL) < 0)
		return;
	for (uint32_t i = 0; i < insns.count; i++)
		check_insn(isa, architecture, function->text, &insns.items[i]);
	plumb_insns_free(&insns);
}

static int
check_module(void *own, const void *bytes, size_t size)
{
	struct plumb_module *module;

	(void)own;
	if (plumb_module_open(bytes, size, &module, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < plumb_module_count(module); i++)
		check_function(module, i);
	plumb_module_free(module);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* In memory of its own, so that a sanitizer sees a read past its end. */
	uint8_t *bytes = malloc(size ? size : 1);

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	(void)!plumb_modules_in(bytes, size, check_module, NULL, NULL);
	free(bytes);
	return 0;
}
