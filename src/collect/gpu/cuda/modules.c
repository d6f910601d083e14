/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of GPU code as they are loaded. One that has line information (Triton's kernels always,
 * nvcc's with -lineinfo) leaves it in the region, so that settle can say where each kernel was
 * written. What libraries ship has none: of theirs only the table of sections is looked at.
 */
#include <elf.h>
#include <string.h>

#include "collect/gpu/cuda/runtime.h"

#define LINES_MAX ((size_t)64 << 10)     /* bytes of one module */
#define ALL_LINES_MAX ((size_t)16 << 20) /* of all that a process loads */

static _Atomic size_t kept;

/* What of a module is kept, in this order. */
struct sections {
	const Elf64_Shdr *lines, *relocations, *symbols, *names;
};

/* The bytes of section HEADER; NULL: they do not lie in the image. */
static const char *
bytes_of(const char *image, size_t size, const Elf64_Shdr *header)
{
	return header->sh_type != SHT_NOBITS && header->sh_offset <= size &&
	                       header->sh_size <= size - header->sh_offset
	               ? image + header->sh_offset
	               : NULL;
}

static bool
is_named(const char *names, const Elf64_Shdr *table, const Elf64_Shdr *header, const char *name)
{
	size_t bytes = strlen(name) + 1;
	return header->sh_name < table->sh_size && table->sh_size - header->sh_name >= bytes &&
	       !memcmp(names + header->sh_name, name, bytes);
}

/* False: it is no module of ours, or has no lines. */
static bool
find_sections(const char *image, size_t size, struct sections *found)
{
	const Elf64_Ehdr *head = (const void *)image;
	*found = (struct sections){ 0 };
	if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(Elf64_Shdr) ||
	    head->e_shoff % 8 || head->e_shoff > size ||
	    head->e_shnum > (size - head->e_shoff) / sizeof(Elf64_Shdr) ||
	    head->e_shstrndx >= head->e_shnum)
		return false;
	const Elf64_Shdr *headers = (const void *)(image + head->e_shoff);
	const Elf64_Shdr *table = &headers[head->e_shstrndx];
	const char *names = bytes_of(image, size, table);
	for (unsigned i = 0; names && i < head->e_shnum; i++) {
		const Elf64_Shdr *h = &headers[i];
		if (is_named(names, table, h, ".debug_line"))
			found->lines = h;
		else if (is_named(names, table, h, ".rela.debug_line") ||
		         is_named(names, table, h, ".rel.debug_line")) /* before Hopper */
			found->relocations = h;
		else if (h->sh_type == SHT_SYMTAB && h->sh_link < head->e_shnum) {
			found->symbols = h;
			found->names = &headers[h->sh_link];
		}
	}
	return found->lines && found->symbols;
}

static void
keep_lines(struct plumb_thread *thread, const char *image, size_t size,
           const struct sections *found)
{
	const Elf64_Shdr *parts[4] = { found->lines, found->relocations, found->symbols,
		                       found->names };
	const char *bytes[4];
	size_t length = 0;
	for (int i = 0; i < 4; i++) {
		bytes[i] = parts[i] ? bytes_of(image, size, parts[i]) : "";
		if (!bytes[i] || (parts[i] && parts[i]->sh_size > LINES_MAX))
			return;
		length += parts[i] ? parts[i]->sh_size : 0;
	}
	if (length > LINES_MAX ||
	    atomic_fetch_add_explicit(&kept, length, memory_order_relaxed) > ALL_LINES_MAX)
		return;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_gpu_lines *record =
		plumb_arena_append(arena, PLUMB_RECORD_GPU_LINES, sizeof *record + length);
	if (!record)
		return;
	if (found->relocations && found->relocations->sh_type == SHT_REL)
		record->head.flags |= PLUMB_GPU_LINES_REL;
	char *to = (char *)(record + 1);
	for (int i = 0; i < 4; i++) {
		record->bytes[i] = parts[i] ? (uint32_t)parts[i]->sh_size : 0;
		memcpy(to, bytes[i], record->bytes[i]);
		to += record->bytes[i];
	}
	plumb_arena_commit(arena, record);
}

void
plumb_cuda_image_loaded(const void *image)
{
	const Elf64_Ehdr *head = image;
	/* Else it is text (PTX) or a package of modules, of which CUPTI alone could tell which was
	 * taken. */
	if (!image || (uintptr_t)image % 8 || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(Elf64_Shdr))
		return;
	/* ptxas puts the tables behind everything else. What lies behind them is not looked at. */
	plumb_cuda_module_loaded(image, head->e_shoff + head->e_shnum * sizeof(Elf64_Shdr));
}

void
plumb_cuda_module_loaded(const void *image, size_t size)
{
	struct sections found;
	if (!image || (uintptr_t)image % 8 || !find_sections(image, size, &found))
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	keep_lines(thread, image, size, &found);
	plumb_leave(thread);
}
