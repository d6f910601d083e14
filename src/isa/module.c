/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cubin is an ELF file. Each function has a section .text.NAME, and the other sections that are
 * about it end in its name, too. A kernel's section also has the functions that the compiler kept
 * local to it (division, for example); they are part of the kernel here, and calls of them are
 * calls within it.
 *
 * Cubins for Blackwell have copies of their code in another form (.nv.capmerc.text.NAME), which
 * never runs. Their names do not begin with .text.
 */
#include "isa/module.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

enum { NONE = -1 };
/* Types of sections of a module that is not linked yet; they have no bytes in the file. */
enum { CUDA_GLOBAL = 0x70000007, CUDA_LOCAL = 0x70000008, CUDA_SHARED = 0x7000000a };
/* Entries of .nv.info: how they store their value, and those that are used. */
enum { INFO_WORD = 3, INFO_BYTES = 4 };
enum { INFO_FRAME_SIZE = 0x11, INFO_REGISTERS = 0x2f };
enum { KERNEL = 0x10 };       /* bit of st_other */
enum { NEW_ABI = 8 };         /* from CUDA 12.8 on, e_flags has the architecture elsewhere */
enum { ACCELERATED = 0x800 }; /* of the old ABI: sm_90a */

struct section {
	const char *name;
	const char *bytes; /* NULL: it has none in the file */
	uint64_t size;
	uint32_t type, link, name_offset;
};

struct function {
	struct plumb_module_function seen;
	uint32_t symbol; /* its number in .symtab; 0: none */
	uint32_t section;
	uint32_t lines; /* its number in the line table, or UINT32_MAX */
};

struct plumb_module {
	const char *bytes;
	size_t size;
	char architecture[16];
	bool damaged;
	PLUMB_VEC(struct section) sections;
	PLUMB_VEC(struct function) functions;
	struct plumb_map names;
	struct plumb_module_reference *references;
	struct plumb_gpu_lines *lines;
};

/* ---- sections ---- */

/* SIZE bytes at OFFSET of the file; NULL: it is shorter. */
static const char *
part(const struct plumb_module *module, uint64_t offset, uint64_t size)
{
	if (offset > module->size || size > module->size - offset)
		return NULL;
	return module->bytes + offset;
}

/* The text at OFFSET of SECTION; "": there is none that ends. */
static const char *
text_at(const struct section *section, uint64_t offset)
{
	if (!section->bytes || offset >= section->size ||
	    !memchr(section->bytes + offset, 0, section->size - offset))
		return "";
	return section->bytes + offset;
}

static bool
read_section(struct plumb_module *module, const char *at)
{
	struct section *section = plumb_vec_add(&module->sections);
	Elf64_Shdr header;

	if (!section)
		return false;
	memcpy(&header, at, sizeof header);
	section->type = header.sh_type;
	section->link = header.sh_link;
	section->size = header.sh_size;
	section->name_offset = header.sh_name;
	if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL ||
	    header.sh_type == CUDA_GLOBAL || header.sh_type == CUDA_LOCAL ||
	    header.sh_type == CUDA_SHARED)
		return true;
	section->bytes = part(module, header.sh_offset, header.sh_size);
	if (!section->bytes) {
		section->size = 0;
		module->damaged = true;
	}
	return true;
}

static int
read_sections(struct plumb_module *module, const Elf64_Ehdr *head, struct plumb_error *error)
{
	uint32_t count = head->e_shnum;
	const char *at = part(module, head->e_shoff, (uint64_t)count * sizeof(Elf64_Shdr));

	if (!at || head->e_shentsize != sizeof(Elf64_Shdr)) {
		module->damaged = true;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!read_section(module, at + i * sizeof(Elf64_Shdr)))
			return plumb_fail_memory(error, "to read a module of GPU code");
	for (uint32_t i = 0; i < count; i++) {
		struct section *own = &module->sections.items[i];
		own->name = head->e_shstrndx < count
		                    ? text_at(&module->sections.items[head->e_shstrndx],
		                              own->name_offset)
		                    : "";
	}
	return 0;
}

/* NULL: there is none. */
static const struct section *
find_section(const struct plumb_module *module, const char *name)
{
	for (uint32_t i = 0; i < module->sections.count; i++)
		if (!strcmp(module->sections.items[i].name, name))
			return &module->sections.items[i];
	return NULL;
}

/* ---- functions ---- */

static uint64_t
hash_name(const char *name)
{
	return plumb_hash_bytes(name, strlen(name));
}

uint32_t
plumb_module_find(const struct plumb_module *module, const char *name)
{
	struct plumb_map_cursor at;

	for (uint32_t id = plumb_map_first(&module->names, hash_name(name), &at);
	     id != PLUMB_MAP_NONE; id = plumb_map_next(&module->names, &at))
		if (!strcmp(module->functions.items[id].seen.name, name))
			return id;
	return UINT32_MAX;
}

/* NAME of a section without PREFIX; NULL: it does not begin with it. */
static const char *
name_after(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(name, prefix, length) || !name[length] ? NULL : name + length;
}

static struct function *
function_of(const struct plumb_module *module, const char *name)
{
	uint32_t id = name ? plumb_module_find(module, name) : UINT32_MAX;

	return id == UINT32_MAX ? NULL : &module->functions.items[id];
}

static int
read_functions(struct plumb_module *module, struct plumb_error *error)
{
	for (uint32_t i = 0; i < module->sections.count; i++) {
		const struct section *section = &module->sections.items[i];
		const char *name = name_after(section->name, ".text.");
		struct function *function;

		if (!name || section->type != SHT_PROGBITS || function_of(module, name))
			continue;
		function = plumb_vec_add(&module->functions);
		if (!function ||
		    plumb_map_add(&module->names, hash_name(name), module->functions.count - 1) < 0)
			return plumb_fail_memory(error, "to read a module of GPU code");
		function->section = i;
		function->lines = UINT32_MAX;
		function->seen = (struct plumb_module_function){
			.name = name,
			.text = section->bytes ? section->bytes : "",
			.bytes = section->size,
			.registers = NONE,
			.stack_bytes = NONE,
			.shared_bytes = 0,
		};
	}
	return 0;
}

/* Symbol NUMBER. False: there is none. */
static bool
read_symbol(const struct section *symbols, uint64_t number, Elf64_Sym *symbol)
{
	if (!symbols || !symbols->bytes || (number + 1) * sizeof *symbol > symbols->size)
		return false;
	memcpy(symbol, symbols->bytes + number * sizeof *symbol, sizeof *symbol);
	return true;
}

static const char *
symbol_name(const struct plumb_module *module, const struct section *symbols,
            const Elf64_Sym *symbol)
{
	if (symbols->link >= module->sections.count)
		return "";
	return text_at(&module->sections.items[symbols->link], symbol->st_name);
}

/* Which functions are kernels, and the number of each function's symbol. */
static void
read_symbols(struct plumb_module *module, const struct section *symbols)
{
	Elf64_Sym symbol;

	for (uint32_t i = 1; read_symbol(symbols, i, &symbol); i++) {
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		struct function *function =
			function_of(module, symbol_name(module, symbols, &symbol));
		if (!function || function->section != symbol.st_shndx)
			continue;
		function->symbol = i;
		function->seen.is_kernel = symbol.st_other & KERNEL;
	}
}

/* ---- resources ---- */

static int64_t *
info_value(struct function *function, unsigned attribute)
{
	switch (attribute) {
	case INFO_REGISTERS:
		return &function->seen.registers;
	case INFO_FRAME_SIZE:
		return &function->seen.stack_bytes;
	default:
		return NULL;
	}
}

/* A value of the function with SYMBOL. */
static void
keep_info(struct plumb_module *module, const struct section *symbols, unsigned attribute,
          const char *at)
{
	uint32_t words[2];
	Elf64_Sym symbol;
	struct function *function;

	memcpy(words, at, sizeof words);
	if (!read_symbol(symbols, words[0], &symbol))
		return;
	function = function_of(module, symbol_name(module, symbols, &symbol));
	if (function && info_value(function, attribute))
		*info_value(function, attribute) = words[1];
}

/* .nv.info: entries of two bytes, form and attribute, then the value (2 bytes), or its size and
 * then the value. */
static void
read_info(struct plumb_module *module, const struct section *symbols)
{
	const struct section *info = find_section(module, ".nv.info");
	uint64_t at = 0;

	while (info && info->bytes && info->size - at >= 4) {
		const unsigned char *head = (const unsigned char *)info->bytes + at;
		uint64_t size = head[0] == INFO_BYTES ? head[2] | head[3] << 8 : 0;

		at += 4;
		if (!head[0] || head[0] > INFO_BYTES || size > info->size - at) {
			module->damaged = true;
			return;
		}
		if (size >= 8 && (head[1] == INFO_REGISTERS || head[1] == INFO_FRAME_SIZE))
			keep_info(module, symbols, head[1], info->bytes + at);
		at += size;
	}
}

static void
read_shared(struct plumb_module *module)
{
	for (uint32_t i = 0; i < module->sections.count; i++) {
		const struct section *section = &module->sections.items[i];
		struct function *function =
			function_of(module, name_after(section->name, ".nv.shared."));

		if (function && section->size <= UINT32_MAX)
			function->seen.shared_bytes = (int64_t)section->size;
	}
}

/* ---- references ---- */

static const char *
relocations_of(const struct section *section, size_t *size)
{
	*size = section->type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
	if (!section->bytes || (section->type != SHT_REL && section->type != SHT_RELA))
		return NULL;
	const char *name =
		name_after(section->name, section->type == SHT_REL ? ".rel.text." : ".rela.text.");
	return name;
}

/* A reference, and the number of the function that it is in. */
struct found {
	uint32_t function;
	struct plumb_module_reference reference;
};

static int
compare_found(const void *a, const void *b)
{
	const struct found *one = a, *two = b;

	if (one->function != two->function)
		return one->function > two->function ? 1 : -1;
	return (one->reference.offset > two->reference.offset) -
	       (one->reference.offset < two->reference.offset);
}

/* Fills FOUND with the references in SECTION, which are in FUNCTION; returns how many. */
static uint32_t
read_relocations(const struct plumb_module *module, const struct section *symbols,
                 const struct section *section, uint32_t function, struct found *found)
{
	uint32_t count = 0;
	Elf64_Rel one;
	Elf64_Sym symbol;
	size_t size;

	relocations_of(section, &size);
	for (uint64_t at = 0; section->size - at >= size; at += size) {
		memcpy(&one, section->bytes + at, sizeof one);
		if (one.r_offset > UINT32_MAX ||
		    !read_symbol(symbols, ELF64_R_SYM(one.r_info), &symbol))
			continue;
		const char *name = symbol_name(module, symbols, &symbol);
		if (*name)
			found[count++] =
				(struct found){ function, { (uint32_t)one.r_offset, name } };
	}
	return count;
}

/* Gives each function its part of FOUND, which is sorted. */
static bool
keep_references(struct plumb_module *module, const struct found *found, uint64_t count)
{
	module->references = malloc((count + 1) * sizeof *module->references);
	if (!module->references)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct plumb_module_function *function =
			&module->functions.items[found[i].function].seen;
		module->references[i] = found[i].reference;
		if (!function->reference_count++)
			function->references = &module->references[i];
	}
	return true;
}

/* A function may have sections of both forms. */
static int
read_references(struct plumb_module *module, const struct section *symbols,
                struct plumb_error *error)
{
	uint64_t room = 0, used = 0;
	struct found *found;
	size_t size;
	bool is_kept;

	for (uint32_t i = 0; i < module->sections.count; i++)
		if (relocations_of(&module->sections.items[i], &size))
			room += module->sections.items[i].size / size;
	found = malloc((room + 1) * sizeof *found);
	if (!found)
		return plumb_fail_memory(error, "to read a module of GPU code");
	for (uint32_t i = 0; i < module->sections.count; i++) {
		const struct section *section = &module->sections.items[i];
		const char *name = relocations_of(section, &size);
		uint32_t function = name ? plumb_module_find(module, name) : UINT32_MAX;
		if (function != UINT32_MAX)
			used += read_relocations(module, symbols, section, function, found + used);
	}
	qsort(found, used, sizeof *found, compare_found);
	is_kept = keep_references(module, found, used);
	free(found);
	return is_kept ? 0 : plumb_fail_memory(error, "to read a module of GPU code");
}

/* ---- lines ---- */

static int
read_lines(struct plumb_module *module, const struct section *symbols, struct plumb_error *error)
{
	const struct section *relocations = find_section(module, ".rela.debug_line");
	struct plumb_gpu_sections sections = { .short_relocations = !relocations };
	struct plumb_gpu_line first;
	const char *name;

	if (!relocations)
		relocations = find_section(module, ".rel.debug_line");
	const struct section *const found[PLUMB_GPU_SECTIONS] = {
		[PLUMB_GPU_LINES] = find_section(module, ".debug_line"),
		[PLUMB_GPU_RELOCATIONS] = relocations,
		[PLUMB_GPU_SYMBOLS] = symbols,
		[PLUMB_GPU_NAMES] = symbols && symbols->link < module->sections.count
		                            ? &module->sections.items[symbols->link]
		                            : NULL,
		[PLUMB_GPU_STRINGS] = find_section(module, ".debug_str"),
	};
	for (int i = 0; i < PLUMB_GPU_SECTIONS; i++)
		if (found[i] && found[i]->bytes && found[i]->size <= UINT32_MAX) {
			sections.bytes[i] = found[i]->bytes;
			sections.size[i] = (uint32_t)found[i]->size;
		}
	if (!sections.size[PLUMB_GPU_LINES])
		return 0;
	module->lines = plumb_gpu_lines_new(&sections);
	if (!module->lines)
		return plumb_fail_memory(error, "to read a module of GPU code");
	for (uint32_t i = 0; (name = plumb_gpu_lines_function(module->lines, i, &first)); i++) {
		struct function *function = function_of(module, name);
		if (function && function->lines == UINT32_MAX)
			function->lines = i;
	}
	return 0;
}

uint32_t
plumb_module_lines(const struct plumb_module *module, uint32_t function, uint64_t offset,
                   struct plumb_gpu_line *chain, uint32_t max)
{
	if (function >= module->functions.count ||
	    module->functions.items[function].lines == UINT32_MAX)
		return 0;
	return plumb_gpu_lines_at(module->lines, module->functions.items[function].lines, offset,
	                          chain, max);
}

/* ---- module ---- */

static void
name_architecture(struct plumb_module *module, const Elf64_Ehdr *head)
{
	bool is_new = head->e_ident[EI_ABIVERSION] >= NEW_ABI;
	unsigned number = is_new ? head->e_flags >> 8 & 0xff : head->e_flags & 0xff;

	snprintf(module->architecture, sizeof module->architecture, "sm_%u%s", number,
	         !is_new && head->e_flags & ACCELERATED ? "a" : "");
}

static int
read_module(struct plumb_module *module, const Elf64_Ehdr *head, struct plumb_error *error)
{
	const struct section *symbols;
	int code;

	name_architecture(module, head);
	if ((code = read_sections(module, head, error)) < 0 ||
	    (code = read_functions(module, error)) < 0)
		return code;
	symbols = find_section(module, ".symtab");
	read_symbols(module, symbols);
	read_info(module, symbols);
	read_shared(module);
	if ((code = read_references(module, symbols, error)) < 0)
		return code;
	return read_lines(module, symbols, error);
}

int
plumb_module_open(const void *bytes, size_t size, struct plumb_module **module,
                  struct plumb_error *error)
{
	Elf64_Ehdr head;
	int code;

	*module = NULL;
	if (size < sizeof head)
		return plumb_fail(
			error, PLUMB_EINPUT,
			"this is no module of GPU code; give a cubin, or a file with one");
	memcpy(&head, bytes, sizeof head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_CUDA)
		return plumb_fail(
			error, PLUMB_EINPUT,
			"this is no module of GPU code; give a cubin, or a file with one");
	struct plumb_module *made = calloc(1, sizeof *made);
	if (!made)
		return plumb_fail_memory(error, "to read a module of GPU code");
	made->bytes = bytes;
	made->size = size;
	code = read_module(made, &head, error);
	if (code < 0) {
		plumb_module_free(made);
		return code;
	}
	*module = made;
	return 0;
}

void
plumb_module_free(struct plumb_module *module)
{
	if (!module)
		return;
	plumb_gpu_lines_free(module->lines);
	plumb_map_free(&module->names);
	plumb_vec_free(&module->sections);
	plumb_vec_free(&module->functions);
	free(module->references);
	free(module);
}

const char *
plumb_module_architecture(const struct plumb_module *module)
{
	return module->architecture;
}

bool
plumb_module_damaged(const struct plumb_module *module)
{
	return module->damaged;
}

uint32_t
plumb_module_count(const struct plumb_module *module)
{
	return module->functions.count;
}

const struct plumb_module_function *
plumb_module_function(const struct plumb_module *module, uint32_t function)
{
	return &module->functions.items[function].seen;
}
