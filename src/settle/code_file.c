/* SPDX-License-Identifier: Apache-2.0 */
#include "settle/code_private.h"

#include <elfutils/libdwelf.h>
#include <elfutils/version.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((int64_t)1 << 36) /* 64 GiB: no code object is this large */

/*
 * Opens a regular file, and nothing else. The path may come from a damaged region: opening a FIFO
 * would wait, and opening a device may do anything. So the path is first opened with O_PATH and
 * checked, and then opened through that descriptor.
 */
static enum plumb_code_state
open_regular(const char *path, int *fd, struct stat *status)
{
	char held[40];
	int hold = open(path, O_PATH | O_CLOEXEC);

	*fd = -1;
	if (hold < 0)
		return PLUMB_CODE_ABSENT;
	if (fstat(hold, status) || !S_ISREG(status->st_mode) || status->st_size > BYTES_MAX) {
		close(hold);
		return PLUMB_CODE_IRREGULAR;
	}
	snprintf(held, sizeof held, "/proc/self/fd/%d", hold);
	*fd = open(held, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(hold);
	return *fd < 0 ? PLUMB_CODE_ABSENT : PLUMB_CODE_FINE;
}

enum plumb_code_state
plumb_elf_open(struct plumb_elf *file, const char *path)
{
	enum plumb_code_state state;
	GElf_Ehdr head;

	elf_version(EV_CURRENT);
	file->elf = NULL;
	file->memory = NULL;
	state = open_regular(path, &file->fd, &file->status);
	if (state)
		return state;
	file->elf = elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF && gelf_getehdr(file->elf, &head) &&
	    gelf_getclass(file->elf) == ELFCLASS64 &&
	    (head.e_type == ET_EXEC || head.e_type == ET_DYN) &&
	    /* These come last, so a file that is cut short lacks them. */
	    head.e_shoff < (uint64_t)file->status.st_size)
		return PLUMB_CODE_FINE;
	plumb_elf_close(file);
	return PLUMB_CODE_DAMAGED;
}

void
plumb_elf_close(struct plumb_elf *file)
{
	if (!file->elf && !file->memory && file->fd <= 0)
		return;
	elf_end(file->elf);
	free(file->memory);
	if (file->fd > 0)
		close(file->fd);
	file->elf = NULL;
	file->memory = NULL;
	file->fd = -1;
}

bool
plumb_elf_read(const struct plumb_elf *file, uint64_t address, void *into, size_t bytes)
{
	size_t count = 0;

	if (elf_getphdrnum(file->elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;
		if (!gelf_getphdr(file->elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz ||
		    bytes > segment.p_filesz - (address - segment.p_vaddr) ||
		    segment.p_offset > (uint64_t)BYTES_MAX)
			continue;
		off_t at = (off_t)(segment.p_offset + (address - segment.p_vaddr));
		return at >= 0 && pread(file->fd, into, bytes, at) == (ssize_t)bytes;
	}
	return false;
}

Elf_Scn *
plumb_elf_section(const struct plumb_elf *file, const char *name, uint32_t type, GElf_Shdr *head)
{
	size_t names = 0;

	if (!file->elf || elf_getshdrstrndx(file->elf, &names))
		return NULL;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		if (!gelf_getshdr(section, head))
			continue;
		const char *own = name ? elf_strptr(file->elf, names, head->sh_name) : NULL;
		if (name ? own && !strcmp(own, name) : head->sh_type == type)
			return section;
	}
	return NULL;
}

uint32_t
plumb_elf_build_id(const struct plumb_elf *file, unsigned char id[PLUMB_BUILD_ID_MAX])
{
	const void *found = NULL;
	ssize_t bytes = dwelf_elf_gnu_build_id(file->elf, &found);

	if (bytes <= 0 || !found)
		return 0;
	bytes = bytes < PLUMB_BUILD_ID_MAX ? bytes : PLUMB_BUILD_ID_MAX;
	memcpy(id, found, (size_t)bytes);
	return (uint32_t)bytes;
}

/* Is the file the one that ran? Without a build id, we only know if it has changed since then. */
static bool
is_wanted(const struct plumb_code *code, const struct plumb_code_wanted *wanted)
{
	const struct stat *status = &code->file.status;
	int64_t changed;

	if (wanted->build_id_bytes)
		return code->build_id_bytes == wanted->build_id_bytes &&
		       !memcmp(code->build_id, wanted->build_id, wanted->build_id_bytes);
	if (!wanted->newest ||
	    __builtin_mul_overflow((int64_t)status->st_ctim.tv_sec, 1000000000, &changed))
		return true;
	return changed + status->st_ctim.tv_nsec <= wanted->newest;
}

struct plumb_code *
plumb_code_open(const struct plumb_code_wanted *wanted, enum plumb_code_state *state)
{
	struct plumb_code *code = calloc(1, sizeof *code);

	*state = PLUMB_CODE_FAILED;
	if (!code)
		return NULL;
	code->file.fd = code->debug.fd = code->mini.fd = code->schemas.fd = -1;
	code->fetch = wanted->fetch;
	code->path = strdup(wanted->path);
	*state = code->path ? plumb_elf_open(&code->file, wanted->path) : PLUMB_CODE_FAILED;
	if (!*state) {
		GElf_Ehdr head;
		code->machine = gelf_getehdr(code->file.elf, &head) ? head.e_machine : EM_NONE;
		code->build_id_bytes = plumb_elf_build_id(&code->file, code->build_id);
		*state = is_wanted(code, wanted) ? PLUMB_CODE_FINE : PLUMB_CODE_REPLACED;
	}
	if (!*state)
		return code;
	plumb_code_close(code);
	return NULL;
}

void
plumb_code_close(struct plumb_code *code)
{
	if (!code)
		return;
	plumb_code_lines_free(code);
	plumb_code_operators_free(code);
	free(code->symbols);
	free(code->local_names);
	free(code->local_starts);
	plumb_elf_close(&code->mini);
	plumb_elf_close(&code->debug);
	plumb_elf_close(&code->file);
	free(code->debug_path);
	free(code->path);
	free(code);
}

void
plumb_code_look(struct plumb_code *code, uint64_t address, struct plumb_code_place *place)
{
	place->symbol = NULL;
	place->start = 0;
	place->bounded = place->shared_name = false;
	place->count = 0;
	plumb_code_find_debug(code);
	plumb_code_symbol(code, address, place);
	if (!place->symbol && plumb_code_stub(code, address, place))
		return;
	plumb_code_lines(code, address, place);
	if (!place->bounded)
		place->bounded = plumb_code_bounds(code, address, &place->start);
}

void
plumb_code_facts(struct plumb_code *code, struct plumb_code_facts *facts)
{
	plumb_code_find_debug(code);
	plumb_code_index(code);
	*facts = (struct plumb_code_facts){
		.bytes = (uint64_t)code->file.status.st_size,
		.functions = code->symbols_count,
		.lines = code->dwarf != NULL,
		.fetched = code->fetched,
		.debug = code->dwarf ? code->debug_path : NULL,
	};
}

const char *
plumb_code_library(void)
{
	static char text[24];

	snprintf(text, sizeof text, "%d.%d", _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000);
	return text;
}
