/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw reads the tables, NVIDIA's additions for inlined calls included. Three things are left to
 * do here:
 *
 * - All functions of a module begin at address 0 until relocations are applied, and libdw does not
 *   know those of GPU code. So relocation number N sets its address to (N + 1) << 32. Then the
 *   upper half of an address says which function it is of, and the lower half is the offset.
 * - libdw wants an ELF file. It gets a small one, made here from the sections. Nothing in it but
 *   the sections' bytes comes from the module.
 * - A row of an inlined call names the row of the call by its number. NVIDIA's compilers (11.8 to
 *   13.2) count the rows of each function from 1. libdw takes the number for one of the whole
 *   table.
 */
#include "isa/lines.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

/* libdw also reads version 5, which needs sections that no compiler for GPUs writes yet. */
enum { FIRST_VERSION = 2, LAST_VERSION = 4, UNIT_HEAD = 6 };
enum { PADDING = 16 }; /* zeros: libdw reads a few bytes behind a table that is cut off */

/* A function's rows in a table, by offset. The row that ends it is not counted. */
struct function {
	const char *name;
	Dwarf_Lines *table;
	uint32_t from, count;
};

struct plumb_gpu_lines {
	char *image;
	Elf *elf;
	Dwarf *dwarf;
	PLUMB_VEC(struct function) functions;
	bool no_memory;
};

/* ---- the file ---- */

enum { LINES = 1, STRINGS, SECTION_NAMES, SECTIONS };

struct image {
	Elf64_Ehdr head;
	Elf64_Shdr sections[SECTIONS];
	char lines_name[12], strings_name[11], names_name[10];
};

#define NAME_OFFSET(name) (offsetof(struct image, name) - offsetof(struct image, lines_name))

/* Without the two sections, which lie behind it. */
static const struct image blank_image = {
	.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
	                       EV_CURRENT },
	          .e_type = ET_EXEC,
	          .e_machine = EM_CUDA,
	          .e_version = EV_CURRENT,
	          .e_shoff = offsetof(struct image, sections),
	          .e_ehsize = sizeof(Elf64_Ehdr),
	          .e_shentsize = sizeof(Elf64_Shdr),
	          .e_shnum = SECTIONS,
	          .e_shstrndx = SECTION_NAMES },
	.sections = { [LINES] = { .sh_type = SHT_PROGBITS, .sh_name = NAME_OFFSET(lines_name) },
	              [STRINGS] = { .sh_type = SHT_PROGBITS, .sh_name = NAME_OFFSET(strings_name) },
	              [SECTION_NAMES] = { .sh_type = SHT_STRTAB,
	                                  .sh_name = NAME_OFFSET(names_name),
	                                  .sh_offset = offsetof(struct image, lines_name),
	                                  .sh_size = sizeof(struct image) -
	                                             offsetof(struct image, lines_name) } },
	.lines_name = ".debug_line",
	.strings_name = ".debug_str",
	.names_name = ".shstrtab",
};

/* Reads relocation NUMBER, without its addend. False: there are fewer. */
static bool
read_relocation(const struct plumb_gpu_sections *sections, uint64_t number, Elf64_Rel *relocation)
{
	uint64_t bytes = sections->short_relocations ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);

	if ((number + 1) * bytes > sections->size[PLUMB_GPU_RELOCATIONS])
		return false;
	memcpy(relocation, sections->bytes[PLUMB_GPU_RELOCATIONS] + number * bytes,
	       sizeof *relocation);
	return true;
}

/* Sets the address of each sequence of rows, as the comment at the top says. */
static void
relocate_lines(char *bytes, const struct plumb_gpu_sections *sections)
{
	uint32_t size = sections->size[PLUMB_GPU_LINES];
	Elf64_Rel one;

	for (uint64_t i = 0; read_relocation(sections, i, &one); i++) {
		uint64_t address = (i + 1) << 32;
		if (size >= sizeof address && one.r_offset <= size - sizeof address)
			memcpy(bytes + one.r_offset, &address, sizeof address);
	}
}

/* The ELF file for libdw, of *BYTES bytes. NULL: no memory. */
static char *
make_image(const struct plumb_gpu_sections *sections, size_t *bytes)
{
	uint32_t lines = sections->size[PLUMB_GPU_LINES];
	uint32_t strings = sections->size[PLUMB_GPU_STRINGS];
	struct image image = blank_image;
	uint64_t at = sizeof image;
	char *whole = calloc(1, *bytes = at + lines + strings + PADDING);

	if (!whole)
		return NULL;
	image.sections[LINES].sh_offset = at;
	image.sections[LINES].sh_size = lines;
	image.sections[STRINGS].sh_offset = at + lines;
	image.sections[STRINGS].sh_size = strings;
	memcpy(whole, &image, sizeof image);
	if (lines)
		memcpy(whole + at, sections->bytes[PLUMB_GPU_LINES], lines);
	if (strings)
		memcpy(whole + at + lines, sections->bytes[PLUMB_GPU_STRINGS], strings);
	relocate_lines(whole + at, sections);
	return whole;
}

/* ---- functions ---- */

/* The name of the function that ADDRESS is in; NULL: unknown. */
static const char *
function_name(const struct plumb_gpu_sections *sections, uint64_t address)
{
	const char *names = sections->bytes[PLUMB_GPU_NAMES];
	uint64_t number = address >> 32, at, names_size = sections->size[PLUMB_GPU_NAMES];
	Elf64_Rel relocation;
	Elf64_Sym symbol;

	if (!number || !read_relocation(sections, number - 1, &relocation))
		return NULL;
	at = ELF64_R_SYM(relocation.r_info) * sizeof symbol;
	if (at + sizeof symbol > sections->size[PLUMB_GPU_SYMBOLS])
		return NULL;
	memcpy(&symbol, sections->bytes[PLUMB_GPU_SYMBOLS] + at, sizeof symbol);
	return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_name < names_size &&
	                       memchr(names + symbol.st_name, 0, names_size - symbol.st_name)
	               ? names + symbol.st_name
	               : NULL;
}

static uint64_t
row_address(Dwarf_Lines *table, size_t row)
{
	Dwarf_Addr address = 0;

	dwarf_lineaddr(dwarf_onesrcline(table, row), &address);
	return address;
}

static void
add_functions(struct plumb_gpu_lines *lines, const struct plumb_gpu_sections *sections,
              Dwarf_Lines *table, size_t rows)
{
	for (uint32_t row = 0, from = 0; row < rows; row++) {
		bool ends = true;
		dwarf_lineendsequence(dwarf_onesrcline(table, row), &ends);
		if (!ends)
			continue;
		const char *name =
			row > from ? function_name(sections, row_address(table, from)) : NULL;
		struct function *added = name ? plumb_vec_add(&lines->functions) : NULL;
		if (added)
			*added = (struct function){ name, table, from, row - from };
		lines->no_memory = lines->no_memory || (name && !added);
		from = row + 1;
	}
}

/* A unit that cannot be read costs its own functions only. */
static void
read_units(struct plumb_gpu_lines *lines, const struct plumb_gpu_sections *sections)
{
	const char *bytes = sections->bytes[PLUMB_GPU_LINES];
	uint64_t size = sections->size[PLUMB_GPU_LINES];
	uint32_t length;

	for (uint64_t at = 0; at + UNIT_HEAD <= size; at += sizeof length + length) {
		uint16_t version;
		Dwarf_Lines *table = NULL;
		Dwarf_Off next;
		Dwarf_CU *unit = NULL;
		size_t rows = 0;
		memcpy(&length, bytes + at, sizeof length);
		memcpy(&version, bytes + at + sizeof length, sizeof version);
		if (length > size - at - sizeof length)
			return;
		if (version >= FIRST_VERSION && version <= LAST_VERSION &&
		    !dwarf_next_lines(lines->dwarf, at, &next, &unit, NULL, NULL, &table, &rows))
			add_functions(lines, sections, table, rows);
	}
}

struct plumb_gpu_lines *
plumb_gpu_lines_new(const struct plumb_gpu_sections *sections)
{
	struct plumb_gpu_lines *lines = calloc(1, sizeof *lines);
	size_t bytes;

	if (!lines)
		return NULL;
	elf_version(EV_CURRENT);
	lines->image = make_image(sections, &bytes);
	lines->elf = lines->image ? elf_memory(lines->image, bytes) : NULL;
	lines->dwarf = lines->elf ? dwarf_begin_elf(lines->elf, DWARF_C_READ, NULL) : NULL;
	lines->no_memory = !lines->elf;
	if (lines->dwarf)
		read_units(lines, sections);
	if (!lines->no_memory)
		return lines;
	plumb_gpu_lines_free(lines);
	return NULL;
}

void
plumb_gpu_lines_free(struct plumb_gpu_lines *lines)
{
	if (!lines)
		return;
	plumb_vec_free(&lines->functions);
	dwarf_end(lines->dwarf);
	elf_end(lines->elf);
	free(lines->image);
	free(lines);
}

/* ---- lines ---- */

static struct plumb_gpu_line
read_row(const struct plumb_gpu_lines *lines, Dwarf_Line *row)
{
	struct plumb_gpu_line line = { .file = dwarf_linesrc(row, NULL, NULL),
		                       .function = dwarf_linefunctionname(lines->dwarf, row) };
	int number = 0;

	if (line.file && !strcmp(line.file, "???")) /* libdw's word for file number 0 */
		line.file = NULL;
	if (!dwarf_lineno(row, &number) && number > 0)
		line.line = (uint32_t)number;
	return line;
}

const char *
plumb_gpu_lines_function(const struct plumb_gpu_lines *lines, uint32_t index,
                         struct plumb_gpu_line *first)
{
	if (index >= lines->functions.count)
		return NULL;
	const struct function *function = &lines->functions.items[index];
	*first = read_row(lines, dwarf_onesrcline(function->table, function->from));
	return function->name;
}

/* The row of the call that ROW of FUNCTION was inlined at; FUNCTION->count: none. */
static uint32_t
find_caller(const struct function *function, uint32_t row)
{
	Dwarf_Line *own = dwarf_onesrcline(function->table, function->from + row);
	/* The row of the whole table that has the number is one of its first, as far as rows of
	 * the function go. */
	Dwarf_Line *named = dwarf_linecontext(function->table, own);
	uint32_t caller = named ? plumb_search(i, function->count,
	                                       (uintptr_t)dwarf_onesrcline(function->table, i) <
	                                               (uintptr_t)named)
	                        : function->count;

	return caller < row ? caller : function->count; /* calls come first, or it is damaged */
}

uint32_t
plumb_gpu_lines_at(const struct plumb_gpu_lines *lines, uint32_t index, uint64_t offset,
                   struct plumb_gpu_line *chain, uint32_t max)
{
	const struct function *function =
		index < lines->functions.count ? &lines->functions.items[index] : NULL;
	uint32_t count = 0;

	if (!function ||
	    offset >= (uint32_t)row_address(function->table, function->from + function->count))
		return 0;
	/* Of several rows at one offset, the last one is the instruction's. */
	uint32_t row =
		plumb_search(i, function->count,
	                     (uint32_t)row_address(function->table, function->from + i) <= offset);
	if (!row)
		return 0;
	for (row--; row < function->count && count < max; row = find_caller(function, row))
		chain[count++] =
			read_row(lines, dwarf_onesrcline(function->table, function->from + row));
	return count;
}
