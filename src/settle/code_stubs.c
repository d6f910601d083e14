/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without a symbol. A stub of the procedure linkage table is named after what it calls.
 * For a function of a stripped object, the unwind tables say where it begins.
 */
#include "settle/code_private.h"

#include <stdio.h>
#include <string.h>

#include "base/search.h"

/* ---- stubs ---- */

/* The section ".plt…" that holds ADDRESS. */
static bool
find_plt(const struct plumb_elf *file, uint64_t address, GElf_Shdr *head)
{
	size_t names = 0;

	if (elf_getshdrstrndx(file->elf, &names))
		return false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		const char *name;
		if (!gelf_getshdr(section, head) || address < head->sh_addr ||
		    address - head->sh_addr >= head->sh_size || !(head->sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(file->elf, names, head->sh_name);
		return name && !strncmp(name, ".plt", 4);
	}
	return false;
}

/* The slot that `jmp *displacement(%rip)` of the stub goes through. */
static bool
slot_of_x86(const unsigned char *code, size_t bytes, uint64_t start, uint64_t *slot)
{
	for (size_t i = 0; i + 6 <= bytes; i++) {
		int32_t displacement;
		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&displacement, code + i + 2, sizeof displacement);
		*slot = start + i + 6 + (uint64_t)(int64_t)displacement;
		return true;
	}
	return false;
}

/* The slot of `adrp x16, page; ldr x17, [x16, #offset]`. */
static bool
slot_of_aarch64(const unsigned char *code, size_t bytes, uint64_t start, uint64_t *slot)
{
	for (size_t i = 0; i + 8 <= bytes; i += 4) {
		uint32_t page, load;
		memcpy(&page, code + i, sizeof page);
		memcpy(&load, code + i + 4, sizeof load);
		if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
			continue;
		int64_t pages = (int64_t)((uint64_t)(page >> 5 & 0x7ffff) << 45) >> 43;
		pages |= page >> 29 & 3;
		*slot = ((start + i) & ~0xfffull) + ((uint64_t)pages << 12) +
		        (load >> 10 & 0xfff) * 8;
		return true;
	}
	return false;
}

/* The name of the symbol that the loader puts into SLOT. */
static const char *
name_of_slot(const struct plumb_elf *file, const char *relocations, uint64_t slot)
{
	GElf_Shdr head, table;
	Elf_Scn *section = plumb_elf_section(file, relocations, 0, &head);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t count = data && head.sh_entsize ? data->d_size / head.sh_entsize : 0;

	for (size_t i = 0; i < count && head.sh_type == SHT_RELA && i < INT32_MAX; i++) {
		GElf_Rela entry;
		GElf_Sym symbol;
		Elf_Scn *symbols;
		if (!gelf_getrela(data, (int)i, &entry) || entry.r_offset != slot)
			continue;
		symbols = elf_getscn(file->elf, head.sh_link);
		if (!symbols || !gelf_getshdr(symbols, &table) ||
		    !gelf_getsym(elf_getdata(symbols, NULL), (int)GELF_R_SYM(entry.r_info),
		                 &symbol))
			return NULL;
		return elf_strptr(file->elf, table.sh_link, symbol.st_name);
	}
	return NULL;
}

bool
plumb_code_stub(struct plumb_code *code, uint64_t address, struct plumb_code_place *place)
{
	unsigned char bytes[24];
	uint64_t start, slot = 0;
	const char *name;
	GElf_Shdr head;
	bool found = false;

	if (!find_plt(&code->file, address, &head))
		return false;
	uint64_t size = head.sh_entsize == 8 || head.sh_entsize == 24 ? head.sh_entsize : 16;
	start = address - (address - head.sh_addr) % size;
	if (!plumb_elf_read(&code->file, start, bytes, size))
		return false;
	if (code->machine == EM_X86_64)
		found = slot_of_x86(bytes, size, start, &slot);
	else if (code->machine == EM_AARCH64)
		found = slot_of_aarch64(bytes, size, start, &slot);
	if (!found)
		return false;
	name = name_of_slot(&code->file, ".rela.plt", slot);
	if (!name)
		name = name_of_slot(&code->file, ".rela.dyn", slot);
	if (!name || !*name)
		return false;
	snprintf(place->stub, sizeof place->stub, "%s@plt", name);
	place->symbol = place->stub;
	place->start = start;
	place->bounded = true;
	return true;
}

/* ---- bounds of functions ---- */

#define TABLE_ENCODING 0x3b /* of .eh_frame_hdr: 4 bytes, signed, from the section's begin */

struct eh_entry {
	int32_t begin, entry;
};

/* Is ADDRESS in the function of the unwind entry at ENTRY, which begins at BEGIN? Only the usual
 * encoding (pcrel, sdata4) is read. If the entry has it, it gives the same begin. */
static bool
entry_holds(const struct plumb_elf *file, uint64_t entry, uint64_t begin, uint64_t address)
{
	struct {
		uint32_t length, cie;
		int32_t begin;
		uint32_t range;
	} head;

	return plumb_elf_read(file, entry, &head, sizeof head) && head.length != UINT32_MAX &&
	       entry + 8 + (uint64_t)(int64_t)head.begin == begin && address - begin < head.range;
}

bool
plumb_code_bounds(struct plumb_code *code, uint64_t address, uint64_t *start)
{
	const struct plumb_elf *file = &code->file;
	struct {
		uint8_t version, pointer, count_encoding, table;
		int32_t eh_frame;
		uint32_t count;
	} head;
	struct eh_entry entry;
	uint64_t base = 0;
	size_t segments = 0;

	if (elf_getphdrnum(file->elf, &segments))
		return false;
	for (size_t i = 0; i < segments; i++) {
		GElf_Phdr segment;
		if (gelf_getphdr(file->elf, (int)i, &segment) && segment.p_type == PT_GNU_EH_FRAME)
			base = segment.p_vaddr;
	}
	if (!base || !plumb_elf_read(file, base, &head, sizeof head) || head.version != 1 ||
	    head.count_encoding != 3 || head.table != TABLE_ENCODING)
		return false;
	bool read = true;
	uint32_t behind = plumb_search(
		i, head.count,
		(read = read && plumb_elf_read(file, base + 12 + 8ull * i, &entry, sizeof entry)) &&
			base + (uint64_t)(int64_t)entry.begin <= address);
	if (!read || !behind ||
	    !plumb_elf_read(file, base + 12 + 8ull * (behind - 1), &entry, sizeof entry))
		return false;
	*start = base + (uint64_t)(int64_t)entry.begin;
	return entry_holds(file, base + (uint64_t)(int64_t)entry.entry, *start, address);
}
