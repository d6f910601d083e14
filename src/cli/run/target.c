/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/run/executable.h"

#define MAX_CHAIN 12 /* the kernel follows five "#!", env(1) adds a step to each */

/* Is PATH a file that execve would take? Else errno says why not. */
static bool
can_execute(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0)
		return false;
	if (!S_ISREG(status.st_mode)) {
		errno = EACCES;
		return false;
	}
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* Finds NAME as execvp does. 0, or the errno that execvp would end with. */
static int
find_program(const char *name, const char *search, char path[PATH_MAX])
{
	if (*name == '\0')
		return ENOENT;
	if (strchr(name, '/')) {
		if (strlen(name) >= PATH_MAX)
			return ENAMETOOLONG;
		strcpy(path, name);
		return can_execute(path) ? 0 : errno;
	}
	char standard[256];
	if (!search) {
		size_t need = confstr(_CS_PATH, standard, sizeof(standard));
		search = need > 0 && need <= sizeof(standard) ? standard : "/bin:/usr/bin";
	}
	int error = ENOENT;
	for (const char *entry = search;; entry++) {
		size_t length = strcspn(entry, ":");
		int n = length ? snprintf(path, PATH_MAX, "%.*s/%s", (int)length, entry, name)
		               : snprintf(path, PATH_MAX, "./%s", name);
		if (n > 0 && n < PATH_MAX) {
			if (can_execute(path))
				return 0;
			if (errno == EACCES)
				error = EACCES;
		}
		entry += length;
		if (*entry == '\0')
			return error;
	}
}

static void refuse_program(struct plumb_target *target, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
refuse_program(struct plumb_target *target, const char *path, const char *format, ...)
{
	va_list args;
	target->refused = true;
	int n = snprintf(target->reason, sizeof(target->reason), "%s ", path);
	if (n < 0 || (size_t)n >= sizeof(target->reason))
		return;
	va_start(args, format);
	vsnprintf(target->reason + n, sizeof(target->reason) - (size_t)n, format, args);
	va_end(args);
}

/* Will the loader run PATH in secure mode, in which it preloads no library? */
static bool
look_privileges(int descriptor, const char *path, struct plumb_target *target)
{
	struct stat status;
	struct statvfs filesystem;
	if (fstat(descriptor, &status) != 0)
		return false;
	/* There the kernel gives no privileges either, and the program runs as anyone's. */
	if ((fstatvfs(descriptor, &filesystem) == 0 && filesystem.f_flag & ST_NOSUID) ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	const char *remedy = "so the loader preloads nothing into it; run a copy without that bit";
	if (status.st_mode & S_ISUID && status.st_uid != getuid())
		refuse_program(target, path, "is set-user-ID, %s", remedy);
	else if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	         status.st_gid != getgid())
		refuse_program(target, path, "is set-group-ID, %s", remedy);
	else if (getuid() != 0 && fgetxattr(descriptor, "security.capability", NULL, 0) > 0)
		refuse_program(
			target, path,
			"has file capabilities, so the loader preloads nothing into it; run a copy "
			"without them");
	return target->refused;
}

static void
look_elf(const struct plumb_executable *found, const char *path, struct plumb_target *target)
{
	const char *loader = strrchr(found->interpreter, '/');
	loader = loader ? loader + 1 : found->interpreter;
	const char *file = plumb_path_base(path);
	if (found->machine != plumb_machine_own()) {
		const char *name = found->machine ? plumb_machine_name(found->machine) : NULL;
		refuse_program(
			target, path,
			"is a %u-bit program for %s, but plumb's collector is a 64-bit library for "
			"%s",
			found->bits, name ? name : "another machine",
			plumb_machine_name(plumb_machine_own()));
	} else if (found->bits == 32) {
		refuse_program(target, path,
		               "is a 32-bit program, but plumb's collector is a 64-bit library");
	} else if (*loader == '\0') {
		/* The loader run as a program has none itself, and preloads for what it runs. */
		if (strncmp(file, "ld-linux", 8) != 0) {
			refuse_program(
				target, path,
				"is statically linked, so plumb's collector cannot be loaded into "
				"it; link it dynamically");
			/* To it LD_PRELOAD is a variable like any other, which it hands on:
			 * launchers are often linked so. */
			target->refused = false;
			target->outside = true;
		}
	} else if (strncmp(loader, "ld-musl", 7) == 0) {
		refuse_program(target, path,
		               "is linked with musl, but plumb's collector needs glibc");
		target->musl = true;
	} else if (strncmp(loader, "ld-linux", 8) != 0 && strncmp(loader, "ld-lsb", 6) != 0 &&
	           strncmp(loader, "ld64.so", 7) != 0) {
		refuse_program(target, path,
		               "is loaded by %s, but plumb's collector needs glibc's loader",
		               found->interpreter);
	}
	if (target->refused || !found->asan)
		return;
	/* A runtime in the program itself is first already. A shared one checks that it is. Its
	 * name, as the program gives it, is looked up just as the program's own need is. */
	if (found->asan_library[0] && !strpbrk(found->asan_library, " :")) {
		memcpy(target->preload, found->asan_library, sizeof(target->preload));
		snprintf(target->adapted, sizeof(target->adapted),
		         "%s is built with AddressSanitizer, so its runtime %s is preloaded before "
		         "plumb's collector",
		         path, found->asan_library);
	}
}

/* env(1) starts another program: the first argument that is neither an option nor a variable. SPLIT
 * takes the words of "-S" (or of a "#!" line, which is one argument) apart in place. */
static const char *
env_command(char *const *argv, char *split, size_t size)
{
	for (size_t i = 1; argv[i]; i++) {
		const char *word = argv[i];
		const char *rest = NULL;
		if (strcmp(word, "--") == 0)
			return argv[i + 1];
		if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0) {
			if (!argv[++i])
				return NULL;
			continue;
		}
		if (strncmp(word, "-S", 2) == 0)
			rest = word[2] ? word + 2 : argv[i + 1];
		else if (strncmp(word, "-vS", 3) == 0)
			rest = word[3] ? word + 3 : argv[i + 1];
		else if (strncmp(word, "--split-string=", 15) == 0)
			rest = word + 15;
		if (rest) {
			snprintf(split, size, "%s", rest);
			char *save = NULL;
			for (char *part = strtok_r(split, " \t", &save); part;
			     part = strtok_r(NULL, " \t", &save))
				if (*part != '-' && !strchr(part, '='))
					return part;
			return NULL;
		}
		if (*word != '-' && !strchr(word, '='))
			return word;
	}
	return NULL;
}

static bool
is_env(const char *path)
{
	return strcmp(plumb_path_base(path), "env") == 0;
}

/* Looks at the file PATH. True: NEXT (of PATH_MAX) is to be looked at too. */
static bool
look_step(const char *path, char *const *argv, const char *search, char *next,
          struct plumb_target *target)
{
	struct plumb_executable found;
	char split[1024];
	const char *command = NULL;
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (descriptor < 0)
		return false;
	plumb_executable_look(descriptor, &found);
	/* The kernel takes no privileges from a script. */
	bool privileged =
		(found.kind == PLUMB_EXECUTABLE_ELF || found.kind == PLUMB_EXECUTABLE_DAMAGED) &&
		look_privileges(descriptor, path, target);
	close(descriptor);
	if (privileged)
		return false;
	switch (found.kind) {
	case PLUMB_EXECUTABLE_DAMAGED:
		return false; /* execve will say what it thinks of it */
	case PLUMB_EXECUTABLE_ELF:
		look_elf(&found, path, target);
		if (target->refused || !argv || !is_env(path))
			return false;
		command = env_command(argv, split, sizeof(split));
		break;
	case PLUMB_EXECUTABLE_SCRIPT:
		if (is_env(found.interpreter)) {
			/* env itself is looked at too: it is the process that loads the library. */
			char *words[] = { found.interpreter, found.argument, NULL };
			if (look_step(found.interpreter, NULL, search, next, target) ||
			    target->refused)
				return false;
			/* The kernel hands env the whole rest of the line as one argument. */
			command = env_command(words, split, sizeof(split));
			break;
		}
		snprintf(next, PATH_MAX, "%s", found.interpreter);
		return true;
	case PLUMB_EXECUTABLE_OTHER:
		snprintf(next, PATH_MAX, "/bin/sh");
		return true;
	}
	return command && find_program(command, search, next) == 0;
}

void
plumb_target_look(char *const *argv, const char *search, struct plumb_target *target)
{
	char path[PATH_MAX], next[PATH_MAX];
	memset(target, 0, sizeof(*target));
	target->error = find_program(argv[0], search, target->path);
	if (target->error)
		return;
	memcpy(path, target->path, sizeof(path));
	for (int step = 0; step < MAX_CHAIN; step++) {
		/* ARGV has the arguments of env only if the command line itself names env. */
		if (!look_step(path, step == 0 ? argv : NULL, search, next, target) ||
		    target->refused)
			return;
		memcpy(path, next, sizeof(path));
	}
}

void
plumb_target_find(const char *program, struct plumb_target *target)
{
	char *argv[] = { (char *)(uintptr_t)program, NULL };

	plumb_target_look(argv, getenv("PATH"), target);
}
