/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an executable file. A first byte of 1 puts our own machine's ELF identity in front,
 * so that the tables behind it are reached.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/executable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plumb_executable found;
	if (size == 0)
		return 0;
	unsigned char *copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (data[0] == 1 && size > sizeof(Elf64_Ehdr)) {
		Elf64_Ehdr *head = (Elf64_Ehdr *)copy;
		memcpy(head->e_ident, ELFMAG, SELFMAG);
		head->e_ident[EI_CLASS] = ELFCLASS64;
		head->e_ident[EI_DATA] = ELFDATA2LSB;
		head->e_machine = (Elf64_Half)plumb_machine_own();
		head->e_phentsize = sizeof(Elf64_Phdr);
	}
	plumb_executable_look_memory(copy, size - 1, &found);
	/* What is promised to every caller. */
	if (!memchr(found.interpreter, 0, sizeof(found.interpreter)) ||
	    !memchr(found.argument, 0, sizeof(found.argument)) ||
	    !memchr(found.asan_library, 0, sizeof(found.asan_library)))
		abort();
	free(copy);
	return 0;
}
