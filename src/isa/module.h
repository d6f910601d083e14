/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of GPU code (an ELF image: NVIDIA's cubin): its functions, with code, resources,
 * references and lines.
 *
 *	struct plumb_module *module = plumb_module_open(bytes, size, &error);
 *	for (uint32_t f = 0; f < plumb_module_count(module); f++)
 *		const struct plumb_module_function *function = plumb_module_function(module, f);
 *	plumb_module_free(module);
 *
 * The bytes may be anything: what cannot be read is left out, and DAMAGED says so. They must
 * outlive the module, and the module its texts.
 */
#ifndef PLUMB_ISA_MODULE_H
#define PLUMB_ISA_MODULE_H

#include "base/error.h"
#include "isa/lines.h"

struct plumb_module;

struct plumb_module_reference {
	uint32_t offset;  /* in the function */
	const char *name; /* mangled */
};

struct plumb_module_function {
	const char *name; /* mangled */
	const void *text;
	size_t bytes;
	bool is_kernel;
	int64_t registers, stack_bytes, shared_bytes;    /* -1: unknown */
	const struct plumb_module_reference *references; /* ascending by offset */
	uint32_t reference_count;
};

/* PLUMB_EINPUT: it is no module of GPU code. PLUMB_ESYSTEM: no memory. */
int plumb_module_open(const void *bytes, size_t size, struct plumb_module **module,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_module_free(struct plumb_module *module);
const char *plumb_module_architecture(const struct plumb_module *module); /* "sm_90" */
bool plumb_module_damaged(const struct plumb_module *module);
uint32_t plumb_module_count(const struct plumb_module *module);
const struct plumb_module_function *
plumb_module_function(const struct plumb_module *module, uint32_t function);
/* PLUMB_NONE (UINT32_MAX): there is no such function. */
uint32_t plumb_module_find(const struct plumb_module *module, const char *name);
/* As plumb_gpu_lines_at, by the number of a function here. */
uint32_t plumb_module_lines(const struct plumb_module *module, uint32_t function, uint64_t offset,
                            struct plumb_gpu_line *chain, uint32_t max);

/*
 * The modules that a file has: a cubin itself, a fatbin (also compressed), an executable or library
 * with fatbins in it. Calls EACH with the bytes of each module, which are valid during the call;
 * a result that is not 0 ends it and is returned. PLUMB_EEMPTY: the file has none (a fatbin with
 * PTX only says so).
 */
int plumb_modules_in(const void *bytes, size_t size,
                     int (*each)(void *own, const void *module, size_t size), void *own,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
