/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at an executable file, short enough for the child of a vfork: a few system calls, a small
 * buffer on the stack, no memory that anybody else sees. What cannot be read or told fits.
 */
#include "collect/exec.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#endif

enum {
	SCRIPTS_MAX = 5,  /* "#!" lines that the kernel follows */
	HEADERS_MAX = 64, /* program headers that are looked at */
};

/* Will the loader take no preloaded library for this file? */
static bool
is_secure(int file)
{
	struct stat status;
	struct statvfs filesystem;
	if (fstat(file, &status))
		return false;
	bool user = status.st_mode & S_ISUID && status.st_uid != getuid();
	bool group = (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	             status.st_gid != getgid();
	bool gains = user || group ||
	             (getuid() != 0 && fgetxattr(file, "security.capability", NULL, 0) > 0);
	return gains && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	       !(fstatvfs(file, &filesystem) == 0 && filesystem.f_flag & ST_NOSUID);
}

static enum plumb_exec_kind
look_elf(int file, const Elf64_Ehdr *header)
{
	Elf64_Phdr segment;
	char loader[128];
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OWN_MACHINE)
		return PLUMB_EXEC_FOREIGN;
	if (is_secure(file))
		return PLUMB_EXEC_SECURE;
	if (header->e_phentsize != sizeof segment || !header->e_phnum)
		return PLUMB_EXEC_FITS;
	for (unsigned i = 0; i < header->e_phnum && i < HEADERS_MAX; i++) {
		off_t at = (off_t)(header->e_phoff + i * sizeof segment);
		if (pread(file, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
			return PLUMB_EXEC_FITS;
		if (segment.p_type != PT_INTERP)
			continue;
		ssize_t got = pread(file, loader, sizeof loader - 1, (off_t)segment.p_offset);
		loader[got > 0 ? got : 0] = '\0';
		return strstr(loader, "/ld-musl") ? PLUMB_EXEC_MUSL : PLUMB_EXEC_FITS;
	}
	return PLUMB_EXEC_STATIC;
}

/* The interpreter of the "#!" line that BYTES begin with, which stand in LINE; NULL: there is
 * none. */
static const char *
find_interpreter(char *line, size_t bytes)
{
	line[bytes] = '\0';
	if (bytes < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	char *path = line + 2 + strspn(line + 2, " \t");
	path[strcspn(path, " \t\r\n")] = '\0';
	return *path ? path : NULL;
}

/* *next gets the interpreter of a script, in LINE. */
static enum plumb_exec_kind
look_at(int file, char line[256], const char **next)
{
	union {
		Elf64_Ehdr header;
		char bytes[sizeof(Elf64_Ehdr)];
	} head;
	ssize_t got = pread(file, line, 255, 0);
	*next = NULL;
	if (got < (ssize_t)sizeof head || memcmp(line, ELFMAG, SELFMAG)) {
		*next = find_interpreter(line, got > 0 ? (size_t)got : 0);
		return PLUMB_EXEC_FITS;
	}
	memcpy(head.bytes, line, sizeof head);
	return look_elf(file, &head.header);
}

enum plumb_exec_kind
plumb_exec_look_open(int file)
{
	char line[256];
	const char *next;
	enum plumb_exec_kind kind = look_at(file, line, &next);
	return next ? plumb_exec_look(AT_FDCWD, next) : kind;
}

enum plumb_exec_kind
plumb_exec_look(int folder, const char *path)
{
	char line[256];
	enum plumb_exec_kind kind = PLUMB_EXEC_FITS;
	for (int i = 0; path && i < SCRIPTS_MAX; i++) {
		/* A pipe of that name would wait for a writer. */
		int file = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (file < 0)
			return PLUMB_EXEC_FITS;
		const char *slash = strrchr(path, '/');
		bool loader = !strncmp(slash ? slash + 1 : path, "ld-linux", 8);
		kind = look_at(file, line, &path);
		close(file);
		if (kind == PLUMB_EXEC_STATIC && loader)
			return PLUMB_EXEC_FITS; /* run as a program, it preloads for what it runs */
		folder = AT_FDCWD;
	}
	return kind;
}

enum plumb_exec_kind
plumb_exec_look_named(const char *name)
{
	char path[PATH_MAX];
	size_t length = strlen(name);
	const char *list = getenv("PATH");
	if (!length || strchr(name, '/'))
		return plumb_exec_look(AT_FDCWD, name);
	for (const char *entry = list ? list : "/bin:/usr/bin";; entry++) {
		size_t folder = strcspn(entry, ":");
		if (folder + length + 2 <= sizeof path) {
			memcpy(path, entry, folder);
			path[folder] = '/';
			memcpy(path + folder + (folder != 0), name, length + 1);
			if (!faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
				return plumb_exec_look(AT_FDCWD, path);
		}
		entry += folder;
		if (!*entry)
			return PLUMB_EXEC_FITS;
	}
}
