/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that read a code object:
 *
 *   code_file.c     opens it safely, compares its build id, reads its bytes by address
 *   code_symbols.c  names of functions: symbol tables, .gnu_debugdata, stubs of the PLT
 *   code_debug.c    finds separate debug files; debuginfod.c fetches them
 *   code_lines.c    DWARF: functions, what was inlined into them, lines
 */
#ifndef PLUMB_SETTLE_CODE_PRIVATE_H
#define PLUMB_SETTLE_CODE_PRIVATE_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/sort.h"
#include "base/vec.h"
#include "settle/code.h"

/* An ELF file that is open. */
struct plumb_elf {
	int fd;   /* -1: in memory */
	Elf *elf; /* NULL: not open */
	void *memory;
	struct stat status;
};

/* A symbol table. All else of a symbol is read when it is asked for. */
struct plumb_code_table {
	Elf *elf;
	const Elf64_Sym *symbols;
	size_t count;
	size_t names; /* the section with their names */
};
#define PLUMB_CODE_SECOND (UINT32_C(1) << 31)

/* A range of addresses of a DIE. */
struct plumb_code_range {
	uint64_t low, high;
	uint64_t die; /* offset in .debug_info */
};
struct plumb_code_ranges {
	struct plumb_code_range *items;
	uint32_t count, capacity;
};

/* A schema of PyTorch's: "add.Tensor", in the file's own memory. */
struct plumb_code_operator {
	const char *name;
	uint32_t bytes;
};

/* The functions of a compilation unit. */
struct plumb_code_unit {
	uint64_t die;
	bool deep; /* those inside functions, too */
	struct plumb_code_ranges functions;
};

struct plumb_code {
	char *path;
	struct plumb_elf file, debug;
	bool looked_for_debug, fetch, fetched;
	char *debug_path;
	unsigned char build_id[PLUMB_BUILD_ID_MAX]; /* of the file */
	uint32_t build_id_bytes;
	unsigned machine;
	struct plumb_elf mini; /* what .gnu_debugdata holds */
	bool indexed;
	struct plumb_code_table tables[2];
	uint32_t tables_count;
	/* Functions by address, with their number in the first table. PLUMB_CODE_SECOND: in the
	 * other. */
	struct plumb_sort_item *symbols;
	uint32_t symbols_count;
	/* Hashes of the names of local symbols, made when first needed: by their first bits, and
	 * where each group of these begins. */
	uint64_t *local_names;
	uint32_t *local_starts;
	Dwarf *dwarf;
	struct plumb_code_ranges units;
	PLUMB_VEC(struct plumb_code_unit) unit_functions;
	bool knows_operators;
	struct plumb_elf schemas; /* the library with the schemas, if it is another one */
	PLUMB_VEC(struct plumb_code_operator) operators;
	struct plumb_map operator_map; /* by "add_Tensor" */
};

/* ---- code_file.c ---- */
/* Opens PATH if it is a regular file and an ELF program, library or debug file. */
enum plumb_code_state plumb_elf_open(struct plumb_elf *file, const char *path);
void plumb_elf_close(struct plumb_elf *file);
/* BYTES bytes at ADDRESS, as the file has them. False: the file does not have them. */
bool plumb_elf_read(const struct plumb_elf *file, uint64_t address, void *into, size_t bytes);
/* The section NAME with its header; if NAME is NULL, the section of TYPE. NULL: there is none. */
Elf_Scn *
plumb_elf_section(const struct plumb_elf *file, const char *name, uint32_t type, GElf_Shdr *head);
uint32_t plumb_elf_build_id(const struct plumb_elf *file, unsigned char id[PLUMB_BUILD_ID_MAX]);

/* ---- code_symbols.c ---- */
void plumb_code_index(struct plumb_code *code);
void plumb_code_symbol(struct plumb_code *code, uint64_t address, struct plumb_code_place *place);

/* ---- code_stubs.c ---- */
/* A stub of the procedure linkage table: fills PLACE as "function@plt". */
bool plumb_code_stub(struct plumb_code *code, uint64_t address, struct plumb_code_place *place);
/* Where the function at ADDRESS begins, from the unwind tables. */
bool plumb_code_bounds(struct plumb_code *code, uint64_t address, uint64_t *start);

/* ---- code_debug.c ---- */
/* Finds the debug information, once. */
void plumb_code_find_debug(struct plumb_code *code);

/* ---- code_operators.c ---- */
void plumb_code_operators_free(struct plumb_code *code);

/* ---- debuginfod.c ---- */
/* The debug file of a build id: an open descriptor and its path (malloced), or -1. */
int plumb_debuginfod_fetch(const unsigned char *build_id, uint32_t bytes, char **path);

/* ---- code_lines.c ---- */
void plumb_code_lines(struct plumb_code *code, uint64_t address, struct plumb_code_place *place);
void plumb_code_lines_free(struct plumb_code *code);

#endif
