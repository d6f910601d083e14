/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/executable.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any real program has; a file that says more is not believed. */
#define MAX_SEGMENTS 4096
#define MAX_DYNAMIC (64u << 10) /* bytes of the dynamic section */
#define MAX_STRINGS (64u << 20) /* bytes of the dynamic strings that are searched */
#define SCRIPT_LINE 256         /* as many as the kernel looks at */

/* Bytes from memory or from a file. Files are read, not mapped: one that shrinks meanwhile gives a
 * short read and no signal. */
struct source {
	const unsigned char *data; /* NULL: descriptor */
	int descriptor;
	uint64_t size;
};

static bool
source_read(const struct source *source, uint64_t offset, void *to, size_t bytes)
{
	if (offset > source->size || bytes > source->size - offset)
		return false;
	if (source->data) {
		memcpy(to, source->data + offset, bytes);
		return true;
	}
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pread(source->descriptor, (char *)to + done, bytes - done,
		                  (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* As much as there is, up to BYTES. */
static size_t
source_read_some(const struct source *source, uint64_t offset, void *to, size_t bytes)
{
	if (offset >= source->size)
		return 0;
	if (bytes > source->size - offset)
		bytes = (size_t)(source->size - offset);
	return source_read(source, offset, to, bytes) ? bytes : 0;
}

/* Reads a terminated string that must fit into TO. */
static bool
source_text(const struct source *source, uint64_t offset, char *to, size_t size)
{
	size_t got = source_read_some(source, offset, to, size);
	if (got == 0 || !memchr(to, '\0', got)) {
		to[0] = '\0';
		return false;
	}
	return true;
}

static void
look_script(const char *line, size_t bytes, struct plumb_executable *found)
{
	const char *end = memchr(line, '\n', bytes);
	if (!end)
		end = line + bytes;
	const char *p = line + 2;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	const char *name = p;
	while (p < end && *p != ' ' && *p != '\t' && *p != '\0')
		p++;
	size_t length = (size_t)(p - name);
	if (length == 0 || length >= sizeof(found->interpreter))
		return; /* the kernel refuses it, and execvp gives it to /bin/sh */
	memcpy(found->interpreter, name, length);
	found->interpreter[length] = '\0';
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	length = strnlen(p, (size_t)(end - p));
	if (length >= sizeof(found->argument))
		length = sizeof(found->argument) - 1;
	memcpy(found->argument, p, length);
	found->argument[length] = '\0';
	found->kind = PLUMB_EXECUTABLE_SCRIPT;
}

struct segments {
	Elf64_Phdr *rows;
	size_t count;
};

/* The file offset of virtual ADDRESS. False: no loaded segment holds it in the file. */
static bool
offset_of(const struct segments *segments, uint64_t address, uint64_t *offset)
{
	for (size_t i = 0; i < segments->count; i++) {
		const Elf64_Phdr *row = &segments->rows[i];
		if (row->p_type != PT_LOAD || address < row->p_vaddr ||
		    address - row->p_vaddr >= row->p_filesz)
			continue;
		uint64_t within = address - row->p_vaddr;
		if (row->p_offset > UINT64_MAX - within)
			return false;
		*offset = row->p_offset + within;
		return true;
	}
	return false;
}

/* Is NAME one of the terminated strings at OFFSET? */
static bool
strings_hold(const struct source *source, uint64_t offset, uint64_t size, const char *name)
{
	char block[65536];
	size_t length = strlen(name) + 1; /* with its end */
	size_t kept = 0;
	bool first = true;
	if (size > MAX_STRINGS)
		size = MAX_STRINGS;
	for (uint64_t at = 0; at < size;) {
		size_t want = sizeof(block) - kept;
		if (want > size - at)
			want = (size_t)(size - at);
		size_t got = source_read_some(source, offset + at, block + kept, want);
		if (got == 0)
			return false;
		at += got;
		size_t have = kept + got;
		/* A string starts at the block's start or after a NUL. */
		if (first && have >= length && memcmp(block, name, length) == 0)
			return true;
		first = false;
		for (char *p = block; (p = memchr(p, '\0', have - (size_t)(p - block)));) {
			p++;
			if (have - (size_t)(p - block) < length)
				break;
			if (memcmp(p, name, length) == 0)
				return true;
		}
		kept = have < length ? have : length;
		memmove(block, block + have - kept, kept);
	}
	return false;
}

static bool
is_asan_runtime(const char *library)
{
	return strncmp(library, "libasan.so", 10) == 0 ||
	       (strncmp(library, "libclang_rt.asan", 16) == 0 && strstr(library, ".so"));
}

static void
look_dynamic(const struct source *source, const struct segments *segments,
             const Elf64_Phdr *dynamic, struct plumb_executable *found)
{
	uint64_t bytes = dynamic->p_filesz < MAX_DYNAMIC ? dynamic->p_filesz : MAX_DYNAMIC;
	size_t count = (size_t)(bytes / sizeof(Elf64_Dyn));
	Elf64_Dyn *rows = count ? malloc(count * sizeof(*rows)) : NULL;
	if (!rows)
		return;
	uint64_t strings = 0, strings_size = 0;
	if (!source_read(source, dynamic->p_offset, rows, count * sizeof(*rows)))
		goto out;
	for (size_t i = 0; i < count; i++) {
		if (rows[i].d_tag == DT_NULL)
			count = i;
		else if (rows[i].d_tag == DT_STRTAB &&
		         !offset_of(segments, rows[i].d_un.d_ptr, &strings))
			goto out;
		else if (rows[i].d_tag == DT_STRSZ)
			strings_size = rows[i].d_un.d_val;
	}
	if (strings == 0)
		goto out;
	for (size_t i = 0; i < count; i++) {
		char library[sizeof(found->asan_library)];
		if (rows[i].d_tag != DT_NEEDED || rows[i].d_un.d_val >= strings_size ||
		    strings > UINT64_MAX - rows[i].d_un.d_val ||
		    !source_text(source, strings + rows[i].d_un.d_val, library, sizeof(library)))
			continue;
		if (is_asan_runtime(library)) {
			found->asan = true;
			memcpy(found->asan_library, library, sizeof(library));
		}
	}
	if (!found->asan)
		found->asan = strings_hold(source, strings, strings_size, "__asan_init");
out:
	free(rows);
}

/* Fills SEGMENTS (for the caller to free); false when the table leads nowhere. */
static bool
read_segments(const struct source *source, const Elf64_Ehdr *head, struct segments *segments)
{
	if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phnum == 0 ||
	    head->e_phnum > MAX_SEGMENTS)
		return false;
	size_t bytes = (size_t)head->e_phnum * sizeof(Elf64_Phdr);
	segments->rows = malloc(bytes);
	segments->count = head->e_phnum;
	return segments->rows && source_read(source, head->e_phoff, segments->rows, bytes);
}

static void
look_elf(const struct source *source, const unsigned char *start, size_t got,
         struct plumb_executable *found)
{
	const int own_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	found->kind = PLUMB_EXECUTABLE_DAMAGED;
	if (got < EI_NIDENT + 4)
		return;
	if (start[EI_CLASS] != ELFCLASS32 && start[EI_CLASS] != ELFCLASS64)
		return;
	found->bits = start[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	if (start[EI_DATA] == own_order) {
		Elf64_Half machine;
		memcpy(&machine, start + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
		found->machine = machine;
	}
	if (found->bits == 32 || found->machine != plumb_machine_own()) {
		found->kind = PLUMB_EXECUTABLE_ELF; /* enough is known to refuse it by name */
		return;
	}
	Elf64_Ehdr head;
	struct segments segments = { NULL, 0 };
	if (!source_read(source, 0, &head, sizeof(head)) ||
	    !read_segments(source, &head, &segments)) {
		free(segments.rows);
		return;
	}
	found->kind = PLUMB_EXECUTABLE_ELF;
	for (size_t i = 0; i < segments.count; i++) {
		const Elf64_Phdr *row = &segments.rows[i];
		if (row->p_type == PT_INTERP &&
		    !source_text(source, row->p_offset, found->interpreter,
		                 sizeof(found->interpreter)))
			found->kind = PLUMB_EXECUTABLE_DAMAGED;
		else if (row->p_type == PT_DYNAMIC)
			look_dynamic(source, &segments, row, found);
	}
	free(segments.rows);
}

static void
look_at_source(const struct source *source, struct plumb_executable *found)
{
	unsigned char start[SCRIPT_LINE];
	memset(found, 0, sizeof(*found));
	size_t got = source_read_some(source, 0, start, sizeof(start));
	if (got >= 4 && memcmp(start, ELFMAG, SELFMAG) == 0)
		look_elf(source, start, got, found);
	else if (got >= 3 && start[0] == '#' && start[1] == '!')
		look_script((const char *)start, got, found);
}

void
plumb_executable_look_memory(const void *data, size_t size, struct plumb_executable *found)
{
	struct source source = { .data = data ? data : (const void *)"",
		                 .descriptor = -1,
		                 .size = data ? size : 0 };
	look_at_source(&source, found);
}

void
plumb_executable_look(int descriptor, struct plumb_executable *found)
{
	struct stat status;
	struct source source = { .descriptor = descriptor };
	if (fstat(descriptor, &status) == 0 && status.st_size > 0)
		source.size = (uint64_t)status.st_size;
	look_at_source(&source, found);
}

const char *
plumb_machine_name(unsigned machine)
{
	switch (machine) {
	case EM_386:
		return "i386";
	case EM_X86_64:
		return "x86-64";
	case EM_ARM:
		return "ARM";
	case EM_AARCH64:
		return "AArch64";
	case EM_PPC64:
		return "PowerPC 64";
	case EM_S390:
		return "S/390";
	case EM_RISCV:
		return "RISC-V";
	default:
		return NULL;
	}
}

unsigned
plumb_machine_own(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#elif defined(__riscv)
	return EM_RISCV;
#elif defined(__powerpc64__)
	return EM_PPC64;
#else
#error "add this machine's EM_ number"
#endif
}
