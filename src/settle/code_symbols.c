/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions. At the first question about an object its symbols are sorted by address. Each
 * later question costs a binary search. Names are only read of the symbols that an answer needs: a
 * large library has some 100 MB of names.
 */
#include "settle/code_private.h"

#include <lzma.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"

#define MINI_MAX ((size_t)256 << 20) /* bytes of .gnu_debugdata unpacked */
#define NESTED_MAX 32                /* functions that begin before an address and may hold it */

/* ---- one symbol ---- */

static const struct plumb_code_table *
table_of(const struct plumb_code *code, const struct plumb_sort_item *symbol)
{
	return &code->tables[symbol->index >= PLUMB_CODE_SECOND];
}

static const Elf64_Sym *
entry_of(const struct plumb_code *code, const struct plumb_sort_item *symbol)
{
	return &table_of(code, symbol)->symbols[symbol->index & ~PLUMB_CODE_SECOND];
}

/* NULL: it has none. */
static const char *
name_in(const struct plumb_code_table *table, const Elf64_Sym *entry)
{
	const char *name = elf_strptr(table->elf, table->names, entry->st_name);

	return name && *name ? name : NULL;
}

static const char *
name_of(const struct plumb_code *code, const struct plumb_sort_item *symbol)
{
	return name_in(table_of(code, symbol), entry_of(code, symbol));
}

static bool
is_local(const Elf64_Sym *entry)
{
	return ELF64_ST_BIND(entry->st_info) == STB_LOCAL;
}

/* The order of several names of one function: global, weak, local, then fewer underscores first. */
static unsigned
rank_of(const Elf64_Sym *entry, const char *name)
{
	static const uint8_t by_binding[] = { [STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1 };
	unsigned binding = ELF64_ST_BIND(entry->st_info);
	size_t underscores = strncmp(name, "_Z", 2) ? strspn(name, "_") : 0;

	return (binding < 3 ? by_binding[binding] : 2) * 16u +
	       (underscores < 15 ? (unsigned)underscores : 15);
}

/* Where the symbol ends. Without a size: where its section does, which is the most it can be. */
static uint64_t
end_of(const struct plumb_code *code, const struct plumb_sort_item *symbol)
{
	const Elf64_Sym *entry = entry_of(code, symbol);
	Elf *elf = table_of(code, symbol)->elf;
	GElf_Shdr head;

	if (entry->st_size)
		return entry->st_value <= UINT64_MAX - entry->st_size
		               ? entry->st_value + entry->st_size
		               : 0;
	return gelf_getshdr(elf_getscn(elf, entry->st_shndx), &head) ? head.sh_addr + head.sh_size
	                                                             : 0;
}

/* ---- the index ---- */

static bool
is_function(const Elf64_Sym *entry)
{
	unsigned type = ELF64_ST_TYPE(entry->st_info);

	return entry->st_shndx != SHN_UNDEF && entry->st_name &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC);
}

/* Takes the functions of the symbol table in SECTION. */
static void
take_table(struct plumb_code *code, struct plumb_elf *file, Elf_Scn *section, const GElf_Shdr *head)
{
	/* libelf hands it out in this machine's byte order, and aligned. */
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && data->d_buf && data->d_type == ELF_T_SYM
	                       ? data->d_size / sizeof(Elf64_Sym)
	                       : 0;
	const Elf64_Sym *entries = count ? data->d_buf : NULL;
	uint32_t first = code->tables_count ? PLUMB_CODE_SECOND : 0;
	struct plumb_sort_item *grown;

	if (!count || count > INT32_MAX - code->symbols_count ||
	    !(grown = realloc(code->symbols, (code->symbols_count + count) * sizeof *grown)))
		return;
	code->symbols = grown;
	for (size_t i = 0; i < count; i++)
		if (is_function(&entries[i]))
			code->symbols[code->symbols_count++] =
				(struct plumb_sort_item){ entries[i].st_value,
				                          first | (uint32_t)i };
	code->tables[code->tables_count++] =
		(struct plumb_code_table){ file->elf, entries, count, head->sh_link };
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

void
plumb_code_index(struct plumb_code *code)
{
	struct plumb_sort_item *spare;

	if (code->indexed)
		return;
	code->indexed = true;
	if (!take_type(code, &code->debug, SHT_SYMTAB) &&
	    !take_type(code, &code->file, SHT_SYMTAB)) {
		take_type(code, &code->file, SHT_DYNSYM);
		if (unpack_mini(code))
			take_type(code, &code->mini, SHT_SYMTAB);
	}
	spare = malloc((code->symbols_count + (size_t)1) * sizeof *spare);
	if (spare)
		plumb_sort(code->symbols, spare, code->symbols_count);
	else
		code->symbols_count = 0;
	free(spare);
}

/* ---- local functions of one name ---- */

#define GROUP_BITS 16
#define GROUPS (1u << GROUP_BITS)

static uint64_t
hash_name(const char *name)
{
	return plumb_hash_bytes(name, strlen(name));
}

static uint32_t
group_of(uint64_t hash)
{
	return (uint32_t)(hash >> (64 - GROUP_BITS));
}

/* Groups the COUNT hashes of UNSORTED by their first bits. */
static void
group_names(struct plumb_code *code, const uint64_t *unsorted, uint32_t count)
{
	uint32_t *ends = code->local_starts + 1;

	for (uint32_t i = 0; i < count; i++)
		ends[group_of(unsorted[i])]++;
	for (uint32_t g = 1; g < GROUPS; g++)
		ends[g] += ends[g - 1];
	/* Each end moves back to the start of its group, which is the end of the one before. */
	for (uint32_t i = count; i-- > 0;)
		code->local_names[--ends[group_of(unsorted[i])]] = unsorted[i];
	memmove(code->local_starts, ends, GROUPS * sizeof *ends);
	code->local_starts[GROUPS] = count;
}

/* False: no memory. */
static bool
hash_names(struct plumb_code *code)
{
	uint64_t *unsorted = malloc(code->symbols_count * sizeof *unsorted);
	uint32_t count = 0;

	code->local_names = malloc(code->symbols_count * sizeof *code->local_names);
	code->local_starts = calloc(GROUPS + 1, sizeof *code->local_starts);
	if (!unsorted || !code->local_names || !code->local_starts) {
		free(unsorted);
		free(code->local_names);
		free(code->local_starts);
		code->local_names = NULL;
		code->local_starts = NULL;
		return false;
	}
	/* In the order of the file, in which names follow one another. */
	for (uint32_t t = 0; t < code->tables_count; t++) {
		const struct plumb_code_table *table = &code->tables[t];
		for (size_t i = 0; i < table->count && count < code->symbols_count; i++) {
			const Elf64_Sym *entry = &table->symbols[i];
			const char *name = is_function(entry) && is_local(entry)
			                           ? name_in(table, entry)
			                           : NULL;
			if (name)
				unsorted[count++] = hash_name(name);
		}
	}
	group_names(code, unsorted, count);
	free(unsorted);
	return true;
}

/* Does a second local function at another address have the NAME? */
static bool
is_shared(struct plumb_code *code, const char *name)
{
	uint64_t own = hash_name(name);
	uint32_t found = 0;

	if (!code->local_names && !hash_names(code))
		return false;
	for (uint32_t i = code->local_starts[group_of(own)];
	     i < code->local_starts[group_of(own) + 1]; i++)
		found += code->local_names[i] == own;
	return found > 1;
}

/* ---- questions ---- */

/* Is A, whose name is A_NAME, to be shown rather than B at the same address? */
static bool
is_better(const struct plumb_code *code, const struct plumb_sort_item *a, const char *a_name,
          const struct plumb_sort_item *b, const char *b_name)
{
	const Elf64_Sym *x = entry_of(code, a), *y = entry_of(code, b);
	unsigned x_rank = rank_of(x, a_name), y_rank = rank_of(y, b_name);

	if (!x->st_size != !y->st_size)
		return x->st_size;
	if (x_rank != y_rank)
		return x_rank < y_rank;
	return strcmp(a_name, b_name) < 0;
}

/* Of the symbols from FIRST up to END, which are at one address, the best that holds ADDRESS, or
 * NULL. SIZED: only those with a size. *ANY: one of them has a name. */
static const struct plumb_sort_item *
find_best(const struct plumb_code *code, uint32_t first, uint32_t end, uint64_t address, bool sized,
          bool *any)
{
	const struct plumb_sort_item *best = NULL;
	const char *best_name = NULL;

	*any = false;
	for (uint32_t i = first; i < end; i++) {
		const struct plumb_sort_item *symbol = &code->symbols[i];
		const char *name = name_of(code, symbol);
		*any |= name != NULL;
		if (!name || address >= end_of(code, symbol) ||
		    (sized && !entry_of(code, symbol)->st_size) ||
		    (best && !is_better(code, symbol, name, best, best_name)))
			continue;
		best = symbol;
		best_name = name;
	}
	return best;
}

/* The symbol of the function that ADDRESS is in. A symbol without a size reaches to the next
 * one. */
static const struct plumb_sort_item *
find_symbol(const struct plumb_code *code, uint64_t address)
{
	const struct plumb_sort_item *all = code->symbols;
	uint32_t end = plumb_search(i, code->symbols_count, all[i].key <= address);

	for (int nested = 0; end && nested < NESTED_MAX;) {
		uint32_t first = end - 1;
		bool any;
		while (first && all[first - 1].key == all[end - 1].key)
			first--;
		const struct plumb_sort_item *best =
			find_best(code, first, end, address, nested > 0, &any);
		if (best)
			return best;
		nested += any;
		end = first;
	}
	return NULL;
}

void
plumb_code_symbol(struct plumb_code *code, uint64_t address, struct plumb_code_place *place)
{
	const struct plumb_sort_item *found;
	const char *name, *version;

	plumb_code_index(code);
	found = find_symbol(code, address);
	if (!found)
		return;
	name = name_of(code, found);
	place->symbol = name;
	place->start = found->key;
	place->bounded = true;
	place->shared_name = is_local(entry_of(code, found)) && is_shared(code, name);
	/* "name@@VERSION", as some tables have it. */
	version = strchr(name, '@');
	if (version && version != name && (size_t)(version - name) < sizeof place->stub) {
		memcpy(place->stub, name, (size_t)(version - name));
		place->stub[version - name] = '\0';
		place->symbol = place->stub;
	}
}
