/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executable file is. This is read from its first bytes and ELF headers, and is enough to
 * tell if a library can be preloaded into it. Everything is checked, because a file may hold any
 * bytes.
 */
#ifndef PLUMB_CLI_RUN_EXECUTABLE_H
#define PLUMB_CLI_RUN_EXECUTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plumb_executable_kind {
	PLUMB_EXECUTABLE_OTHER,  /* something else: execvp gives it to /bin/sh */
	PLUMB_EXECUTABLE_SCRIPT, /* starts with "#!" */
	PLUMB_EXECUTABLE_ELF,
	PLUMB_EXECUTABLE_DAMAGED, /* ELF with headers that point nowhere */
};

struct plumb_executable {
	enum plumb_executable_kind kind;
	/* of a script: the interpreter and the rest of the line as one argument (may be empty) */
	char interpreter[256]; /* of an ELF file: its loader; empty if it is static */
	char argument[256];
	/* of an ELF file */
	unsigned bits;    /* 32 or 64 */
	unsigned machine; /* EM_…; 0 if the byte order is not ours */
	bool asan;        /* AddressSanitizer is linked in */
	char asan_library
		[256]; /* the runtime it needs, as its DT_NEEDED says; empty: linked statically */
};

/* Looks at SIZE bytes in memory. It never fails: a file that cannot be read is
 * PLUMB_EXECUTABLE_DAMAGED. */
void plumb_executable_look_memory(const void *data, size_t size, struct plumb_executable *found);

/* Looks at an open file. */
void plumb_executable_look(int descriptor, struct plumb_executable *found);

/* "x86-64", "AArch64", …, or NULL. */
const char *plumb_machine_name(unsigned machine);
/* The machine that this program was built for. */
unsigned plumb_machine_own(void);

#endif
