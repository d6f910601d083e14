/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions. All symbols of an object are read and sorted at the first question about it.
 * Each later question costs a binary search.
 */
#include "settle/code_private.h"

#include <lzma.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"

#define MINI_MAX ((size_t)256 << 20) /* bytes of .gnu_debugdata unpacked */
#define NESTED_MAX 32                /* functions that begin before an address and may hold it */

/* ---- the index ---- */

/* The order of several names of one function: global, weak, local, then fewer underscores first. */
static uint8_t
rank_of(const GElf_Sym *symbol, const char *name)
{
	static const uint8_t by_binding[] = { [STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1 };
	unsigned binding = GELF_ST_BIND(symbol->st_info);
	size_t underscores = strncmp(name, "_Z", 2) ? strspn(name, "_") : 0;

	return (uint8_t)((binding < 3 ? by_binding[binding] : 2) * 16 +
	                 (underscores < 15 ? underscores : 15));
}

/* Where SYMBOL ends, at the latest. */
static uint64_t
end_of(const struct plumb_elf *file, const GElf_Sym *symbol)
{
	GElf_Shdr head;

	if (symbol->st_size)
		return symbol->st_value <= UINT64_MAX - symbol->st_size
		               ? symbol->st_value + symbol->st_size
		               : 0;
	return gelf_getshdr(elf_getscn(file->elf, symbol->st_shndx), &head)
	               ? head.sh_addr + head.sh_size
	               : 0;
}

/* Takes the functions of the symbol table in SECTION. */
static void
take_table(struct plumb_code *code, struct plumb_elf *file, Elf_Scn *section, const GElf_Shdr *head)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && head->sh_entsize ? data->d_size / head->sh_entsize : 0;

	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		struct plumb_code_symbol *added;
		const char *name;
		GElf_Sym symbol;
		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    (GELF_ST_TYPE(symbol.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC))
			continue;
		name = elf_strptr(file->elf, head->sh_link, symbol.st_name);
		if (!name || !*name || !(added = plumb_vec_add(&code->symbols)))
			continue;
		added->address = symbol.st_value;
		added->end = end_of(file, &symbol);
		added->sized = symbol.st_size;
		added->name = name;
		added->rank = rank_of(&symbol, name);
		added->local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
	}
}

static bool
take_type(struct plumb_code *code, struct plumb_elf *file, uint32_t type)
{
	GElf_Shdr head;
	Elf_Scn *section = plumb_elf_section(file, NULL, type, &head);

	if (section)
		take_table(code, file, section, &head);
	return section != NULL;
}

/* Unpacks what .gnu_debugdata holds: the symbol table of a stripped object, as an ELF file. */
static bool
unpack_mini(struct plumb_code *code)
{
	GElf_Shdr head;
	Elf_Scn *section = plumb_elf_section(&code->file, ".gnu_debugdata", 0, &head);
	Elf_Data *packed = section ? elf_rawdata(section, NULL) : NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = LZMA_OK;
	unsigned char *out = NULL;
	size_t room = 0;

	if (!packed || !packed->d_buf || lzma_stream_decoder(&stream, MINI_MAX, 0) != LZMA_OK)
		return false;
	stream.next_in = packed->d_buf;
	stream.avail_in = packed->d_size;
	while (result == LZMA_OK && room < MINI_MAX) {
		size_t wanted = room ? 2 * room : 4 * packed->d_size + 4096;
		unsigned char *grown = realloc(out, wanted);
		if (!grown)
			break;
		out = grown;
		stream.next_out = out + room;
		stream.avail_out = wanted - room;
		room = wanted;
		result = lzma_code(&stream, LZMA_FINISH);
	}
	lzma_end(&stream);
	if (result == LZMA_STREAM_END)
		code->mini.elf = elf_memory((char *)out, stream.total_out);
	if (code->mini.elf)
		code->mini.memory = out;
	else
		free(out);
	return code->mini.elf != NULL;
}

static int
by_address(const void *x, const void *y)
{
	const struct plumb_code_symbol *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->sized != b->sized)
		return a->sized ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->name, b->name);
}

void
plumb_code_index(struct plumb_code *code)
{
	if (code->indexed)
		return;
	code->indexed = true;
	if (!take_type(code, &code->debug, SHT_SYMTAB) &&
	    !take_type(code, &code->file, SHT_SYMTAB)) {
		take_type(code, &code->file, SHT_DYNSYM);
		if (unpack_mini(code))
			take_type(code, &code->mini, SHT_SYMTAB);
	}
	if (code->symbols.count)
		qsort(code->symbols.items, code->symbols.count, sizeof *code->symbols.items,
		      by_address);
}

/* ---- local functions of one name ---- */

static int
by_number(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

static uint64_t
hash_name(const char *name)
{
	return plumb_hash_bytes(name, strlen(name));
}

/* Does a second function at another address have the name? */
static bool
is_shared(struct plumb_code *code, const struct plumb_code_symbol *symbol)
{
	uint64_t own = hash_name(symbol->name);
	uint32_t low, found = 0;

	if (!code->local_names) {
		code->local_names = malloc(code->symbols.count * sizeof *code->local_names);
		if (!code->local_names)
			return false;
		for (uint32_t i = 0; i < code->symbols.count; i++)
			if (code->symbols.items[i].local)
				code->local_names[code->local_names_count++] =
					hash_name(code->symbols.items[i].name);
		qsort(code->local_names, code->local_names_count, sizeof *code->local_names,
		      by_number);
	}
	low = plumb_search(i, code->local_names_count, code->local_names[i] < own);
	while (low < code->local_names_count && code->local_names[low++] == own)
		found++;
	return found > 1;
}

/* ---- questions ---- */

/* The symbol of the function that ADDRESS is in. A symbol without a size reaches to the next
 * one. */
static const struct plumb_code_symbol *
find_symbol(const struct plumb_code *code, uint64_t address)
{
	const struct plumb_code_symbol *all = code->symbols.items;
	uint32_t end = plumb_search(i, code->symbols.count, all[i].address <= address);

	for (int nested = 0; end && nested < NESTED_MAX; nested++) {
		uint32_t first = end - 1;
		while (first && all[first - 1].address == all[end - 1].address)
			first--;
		/* The best name comes first, those without a size last. */
		for (uint32_t i = first; i < end; i++)
			if (address < all[i].end && (all[i].sized || !nested))
				return &all[i];
		end = first;
	}
	return NULL;
}

void
plumb_code_symbol(struct plumb_code *code, uint64_t address, struct plumb_code_place *place)
{
	const struct plumb_code_symbol *found;
	const char *version;

	plumb_code_index(code);
	found = find_symbol(code, address);
	if (!found)
		return;
	place->symbol = found->name;
	place->start = found->address;
	place->bounded = true;
	place->shared_name = found->local && is_shared(code, found);
	/* "name@@VERSION", as some tables have it. */
	version = strchr(found->name, '@');
	if (version && version != found->name &&
	    (size_t)(version - found->name) < sizeof place->stub) {
		memcpy(place->stub, found->name, (size_t)(version - found->name));
		place->stub[version - found->name] = '\0';
		place->symbol = place->stub;
	}
}
