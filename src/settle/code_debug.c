/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the debug information of a code object is: in itself, in a separate file found by its build
 * id or its .gnu_debuglink, or at a debuginfod server.
 */
#include "settle/code_private.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECKED_MAX ((int64_t)4 << 30) /* bytes of which a checksum is made */

const char *plumb_code_debug_folder = "/usr/lib/debug";

static bool
has_lines(const struct plumb_elf *file)
{
	GElf_Shdr head;

	return (plumb_elf_section(file, ".debug_info", 0, &head) && head.sh_type != SHT_NOBITS) ||
	       plumb_elf_section(file, ".zdebug_info", 0, &head);
}

/* ---- is it the right one? ---- */

static uint32_t
checksum(int fd)
{
	unsigned char buffer[16384];
	uint32_t table[256], sum = UINT32_MAX;
	ssize_t got;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (off_t at = 0; (got = pread(fd, buffer, sizeof buffer, at)) > 0; at += got)
		for (ssize_t i = 0; i < got; i++)
			sum = sum >> 8 ^ table[(sum ^ buffer[i]) & 0xff];
	return ~sum;
}

/* Compares build ids if the code object has one, else the checksum that it names. */
static bool
is_right(const struct plumb_code *code, const struct plumb_elf *debug, const GElf_Word *sum)
{
	unsigned char id[PLUMB_BUILD_ID_MAX];

	if (code->build_id_bytes)
		return plumb_elf_build_id(debug, id) == code->build_id_bytes &&
		       !memcmp(id, code->build_id, code->build_id_bytes);
	return sum && debug->status.st_size <= CHECKED_MAX && checksum(debug->fd) == *sum;
}

/* Takes the debug file at PATH if it belongs to the object. SUM is its checksum, or NULL. */
static bool
try_file(struct plumb_code *code, const char *path, const GElf_Word *sum)
{
	struct plumb_elf debug;

	if (plumb_elf_open(&debug, path))
		return false;
	bool itself = debug.status.st_dev == code->file.status.st_dev &&
	              debug.status.st_ino == code->file.status.st_ino;
	if (!itself && is_right(code, &debug, sum) && (code->debug_path = strdup(path))) {
		code->debug = debug;
		return true;
	}
	plumb_elf_close(&debug);
	return false;
}

/* ---- places ---- */

static bool
try_build_id(struct plumb_code *code)
{
	char path[4096];
	int n;

	if (code->build_id_bytes < 2)
		return false;
	n = snprintf(path, sizeof path, "%s/.build-id/%02x/", plumb_code_debug_folder,
	             code->build_id[0]);
	for (uint32_t i = 1; i < code->build_id_bytes && n > 0 && (size_t)n < sizeof path; i++)
		n += snprintf(path + n, sizeof path - (size_t)n, "%02x", code->build_id[i]);
	if (n < 0 || (size_t)n + sizeof ".debug" > sizeof path)
		return false;
	memcpy(path + n, ".debug", sizeof ".debug");
	return try_file(code, path, NULL);
}

static bool
try_link(struct plumb_code *code)
{
	GElf_Word sum = 0;
	const char *name = dwelf_elf_gnu_debuglink(code->file.elf, &sum);
	const char *end = strrchr(code->path, '/');
	int folder = end ? (int)(end - code->path) : 0;
	char path[4096];

	/* It must be a name: a path could lead anywhere. */
	if (!name || !*name || strchr(name, '/') || !end)
		return false;
	for (int where = 0; where < 3; where++) {
		int n = snprintf(path, sizeof path, "%s%.*s/%s%s",
		                 where == 2 ? plumb_code_debug_folder : "", folder, code->path,
		                 where == 1 ? ".debug/" : "", name);
		if (n > 0 && (size_t)n < sizeof path && try_file(code, path, &sum))
			return true;
	}
	return false;
}

static bool
try_fetch(struct plumb_code *code)
{
	char *path = NULL;
	int fd = code->fetch && code->build_id_bytes
	                 ? plumb_debuginfod_fetch(code->build_id, code->build_id_bytes, &path)
	                 : -1;

	if (fd < 0)
		return false;
	close(fd);
	code->fetched = path && try_file(code, path, NULL);
	free(path);
	return code->fetched;
}

void
plumb_code_find_debug(struct plumb_code *code)
{
	if (code->looked_for_debug)
		return;
	code->looked_for_debug = true;
	if (!has_lines(&code->file) && !try_build_id(code) && !try_link(code))
		try_fetch(code);
	struct plumb_elf *file = has_lines(&code->file) ? &code->file : &code->debug;
	if (file->elf && has_lines(file))
		code->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
}
