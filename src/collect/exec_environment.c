/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/exec_environment.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "collect/collector.h"

#define PRELOAD "LD_PRELOAD"
#define ASAN "ASAN_OPTIONS"
#define ASAN_ORDER "verify_asan_link_order"
#define COMPILE_TRACE "TORCH_TRACE"

/* ---- what this process got ---- */

static char library[PATH_MAX], folder[PATH_MAX];
static uid_t first_user;         /* who this process was when it began */
static char front[3 * PATH_MAX]; /* the library, and the tools of `plumb run --tool` */

static char texts[32768]; /* of the variables below */
static size_t texts_used;
static const char *kept[PLUMB_EXEC_VARIABLES]; /* "NAME=VALUE" */
static unsigned kept_count;

/* Variables that name the collector, and where it finds what the program put there itself. */
static struct injection {
	const char *name, *chain;
	bool ours; /* it named the collector when this process began */
} injections[] = { { "CUDA_INJECTION64_PATH", PLUMB_ENV_CHAIN_CUDA, false },
	           { "NVTX_INJECTION64_PATH", PLUMB_ENV_CHAIN_NVTX, false },
	           { "NCCL_PROFILER_PLUGIN", PLUMB_ENV_CHAIN_NCCL, false } };
#define INJECTIONS (sizeof injections / sizeof *injections)

/* The value of NAME in ENTRY, or NULL: it is another's. */
static const char *
value_of(const char *entry, const char *name)
{
	size_t length = strlen(name);
	return !strncmp(entry, name, length) && entry[length] == '=' ? entry + length + 1 : NULL;
}

static const char *
find_value(char *const *envp, const char *name)
{
	const char *value = NULL;
	for (; envp && *envp && !value; envp++)
		value = value_of(*envp, name);
	return value;
}

/* Does ENVP have the variable that ENTRY sets? */
static bool
has_variable(char *const *envp, const char *entry)
{
	size_t length = strcspn(entry, "=") + 1;
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, entry, length))
			return true;
	return false;
}

static size_t
token_bytes(const char *list)
{
	return strcspn(list, ": ");
}

static bool
is_library(const char *path, size_t length)
{
	return length == strlen(library) && !memcmp(path, library, length);
}

/* Is the collector in LIST, as LD_PRELOAD has it? */
static bool
is_preloaded(const char *list)
{
	for (; list && *list; list += token_bytes(list), list += *list != '\0')
		if (is_library(list, token_bytes(list)))
			return true;
	return false;
}

static void
keep_entry(const char *entry)
{
	size_t bytes = strlen(entry) + 1;
	if (kept_count == PLUMB_EXEC_VARIABLES || bytes > sizeof texts - texts_used)
		return;
	kept[kept_count++] = memcpy(texts + texts_used, entry, bytes);
	texts_used += bytes;
}

void
plumb_exec_environment_load(char *const *envp, const char *run)
{
	Dl_info own;
	const char *tools = find_value(envp, PLUMB_ENV_TOOLS);
	size_t length;
	if (!dladdr(&library, &own) || !own.dli_fname || own.dli_fname[0] != '/' ||
	    strpbrk(own.dli_fname, " :$\t\n") || strlen(own.dli_fname) >= sizeof library ||
	    strlen(run) >= sizeof folder)
		return;
	strcpy(library, own.dli_fname);
	strcpy(folder, run);
	first_user = geteuid();
	strcpy(front, library);
	if (tools && *tools && strlen(tools) < sizeof front - PATH_MAX - 1)
		strcat(strcat(front, ":"), tools);
	for (size_t i = 0; i < INJECTIONS; i++) {
		const char *value = find_value(envp, injections[i].name);
		injections[i].ours = value && is_library(value, strlen(value));
	}
	length = strlen(folder);
	for (; *envp; envp++) {
		const char *trace = value_of(*envp, COMPILE_TRACE);
		if (!strncmp(*envp, "PLUMB_", 6) ||
		    (trace && !strncmp(trace, folder, length) && trace[length] == '/'))
			keep_entry(*envp);
	}
}

bool
plumb_exec_environment_known(void)
{
	return library[0] != '\0';
}

/* Do the permissions of PATH give the calling user those of BITS (S_IROTH, …)? The kernel's own
 * answer would count capabilities that end with the exec. Access control lists are trusted, not
 * read. */
static bool
is_permitted(const char *path, mode_t bits)
{
	struct stat status;
	if (stat(path, &status))
		return false;
	if (getxattr(path, "system.posix_acl_access", NULL, 0) > 0)
		return true;
	mode_t mode = status.st_uid == geteuid()   ? status.st_mode >> 6
	              : status.st_gid == getegid() ? status.st_mode >> 3
	                                           : status.st_mode;
	return (mode & bits) == bits;
}

/* May the calling user, who is not root, come to PATH after the exec? */
static bool
is_open_to_user(const char *path, mode_t bits)
{
	char part[PATH_MAX];
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		if (!is_permitted(part, S_IXOTH))
			return false;
	}
	return is_permitted(path, bits);
}

enum plumb_exec_reach
plumb_exec_environment_reach(void)
{
	struct stat status;
	uid_t user = geteuid();
	if (user && user != first_user && !stat(folder, &status) && status.st_uid != user) {
		if (!is_open_to_user(library, S_IROTH))
			return PLUMB_EXEC_NO_LIBRARY;
		return is_open_to_user(folder, S_IWOTH | S_IXOTH) ? PLUMB_EXEC_REACHED
		                                                  : PLUMB_EXEC_NO_FOLDER;
	}
	if (faccessat(AT_FDCWD, library, R_OK, AT_EACCESS))
		return errno == EACCES ? PLUMB_EXEC_NO_LIBRARY : PLUMB_EXEC_GONE;
	if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		return errno == EACCES ? PLUMB_EXEC_NO_FOLDER : PLUMB_EXEC_GONE;
	return PLUMB_EXEC_REACHED;
}

/* ---- the change ---- */

static bool
lacks_order(const char *asan)
{
	return !asan || !strstr(asan, ASAN_ORDER);
}

/* Does the program name another library in the injection's variable, or none? */
static bool
lacks_injection(const struct injection *injection, char *const *envp)
{
	const char *value = injection->ours ? find_value(envp, injection->name) : library;
	return !value || !is_library(value, strlen(value));
}

static bool
is_right(char *const *envp)
{
	if (!is_preloaded(find_value(envp, PRELOAD)) || lacks_order(find_value(envp, ASAN)))
		return false;
	for (size_t i = 0; i < INJECTIONS; i++)
		if (lacks_injection(&injections[i], envp))
			return false;
	for (unsigned i = 0; i < kept_count; i++)
		if (!has_variable(envp, kept[i]))
			return false;
	return true;
}

/* Whoever names another folder has another run, or wants none. */
static bool
is_other_run(char *const *envp)
{
	const char *named = find_value(envp, PLUMB_ENV_FOLDER);
	return named && strcmp(named, folder) != 0;
}

static bool
names_library(char *const *envp)
{
	bool named = is_preloaded(find_value(envp, PRELOAD));
	for (size_t i = 0; i < INJECTIONS; i++) {
		const char *value = find_value(envp, injections[i].name);
		named |= value && is_library(value, strlen(value));
	}
	return named;
}

static size_t
length_of(const char *text)
{
	return text ? strlen(text) : 0;
}

size_t
plumb_exec_environment_room(char *const *envp, enum plumb_exec_change change)
{
	size_t entries = 0;
	if (change == PLUMB_EXEC_LEAVE || is_other_run(envp) ||
	    (change == PLUMB_EXEC_PUT ? is_right(envp) : !names_library(envp)))
		return 0;
	while (envp && envp[entries])
		entries++;
	size_t bytes = (entries + kept_count + 2 + 2 * INJECTIONS + 1) * sizeof(char *);
	bytes += sizeof PRELOAD + 2 + strlen(front) + length_of(find_value(envp, PRELOAD));
	bytes += sizeof ASAN + sizeof ASAN_ORDER + 4 + length_of(find_value(envp, ASAN));
	for (size_t i = 0; i < INJECTIONS; i++)
		bytes += strlen(injections[i].name) + strlen(injections[i].chain) +
		         strlen(library) + length_of(find_value(envp, injections[i].name)) + 4;
	return bytes;
}

struct writer {
	char **next; /* entry */
	char *text;
};

/* Begins an entry "NAME="; the rest follows with add_text. */
static void
begin_entry(struct writer *to, const char *name)
{
	*to->next++ = to->text;
	to->text = stpcpy(stpcpy(to->text, name), "=");
}

static void
add_text(struct writer *to, const char *text, size_t length)
{
	to->text = mempcpy(to->text, text, length);
	*to->text = '\0';
}

/* LD_PRELOAD: what was there but the collector, behind FIRST. */
static void
add_preload(struct writer *to, const char *first, const char *before)
{
	char *entry = to->text;
	begin_entry(to, PRELOAD);
	const char *empty = to->text;
	add_text(to, first, strlen(first));
	for (size_t length; before && *before; before += length, before += *before != '\0') {
		length = token_bytes(before);
		if (!length || is_library(before, length))
			continue;
		if (to->text != empty)
			add_text(to, ":", 1);
		add_text(to, before, length);
	}
	if (to->text == empty) { /* nothing is left of it */
		to->next--;
		to->text = entry;
		return;
	}
	to->text++;
}

static void
add_asan(struct writer *to, const char *before)
{
	begin_entry(to, ASAN);
	add_text(to, before ? before : "", length_of(before));
	if (before && *before)
		add_text(to, ":", 1);
	add_text(to, ASAN_ORDER "=0", sizeof ASAN_ORDER "=0" - 1);
	to->text++;
}

static void
add_injection(struct writer *to, const struct injection *injection, const char *before)
{
	begin_entry(to, injection->name);
	add_text(to, library, strlen(library));
	to->text++;
	if (!before || !*before)
		return;
	begin_entry(to, injection->chain);
	add_text(to, before, strlen(before));
	to->text++;
}

/* Is ENTRY of the program's environment written anew? */
static bool
is_replaced(const char *entry, char *const *envp, enum plumb_exec_change change)
{
	if (value_of(entry, PRELOAD))
		return true;
	if (change == PLUMB_EXEC_PUT && value_of(entry, ASAN))
		return lacks_order(value_of(entry, ASAN));
	for (size_t i = 0; i < INJECTIONS; i++) {
		const char *value = value_of(entry, injections[i].name);
		if (change == PLUMB_EXEC_TAKE) {
			if (value && is_library(value, strlen(value)))
				return true;
			continue;
		}
		if ((value || value_of(entry, injections[i].chain)) &&
		    lacks_injection(&injections[i], envp) && find_value(envp, injections[i].name))
			return true;
	}
	return false;
}

static void
put_ours(struct writer *to, char *const *envp)
{
	const char *preloaded = find_value(envp, PRELOAD);
	add_preload(to, is_preloaded(preloaded) ? "" : front, preloaded);
	if (lacks_order(find_value(envp, ASAN)))
		add_asan(to, find_value(envp, ASAN));
	for (size_t i = 0; i < INJECTIONS; i++)
		if (lacks_injection(&injections[i], envp))
			add_injection(to, &injections[i], find_value(envp, injections[i].name));
}

char *const *
plumb_exec_environment_fill(char *const *envp, enum plumb_exec_change change, char *room)
{
	char **entries = (char **)(void *)room;
	size_t count = 0;
	while (envp && envp[count])
		count++;
	struct writer to = { entries, room + (count + kept_count + 2 + 2 * INJECTIONS + 1) *
		                                      sizeof(char *) };
	for (size_t i = 0; i < count; i++)
		if (!is_replaced(envp[i], envp, change))
			*to.next++ = envp[i];
	if (change == PLUMB_EXEC_TAKE) {
		add_preload(&to, "", find_value(envp, PRELOAD));
		*to.next = NULL;
		return entries;
	}
	put_ours(&to, envp);
	for (unsigned i = 0; i < kept_count; i++) {
		*to.next = NULL;
		if (!has_variable(entries, kept[i]))
			*to.next++ = (char *)(uintptr_t)kept[i];
	}
	*to.next = NULL;
	return entries;
}

/* ---- the process's own ---- */

extern char **environ;

static void
set_variable(const char *entry, const char *value)
{
	char name[128];
	size_t length = strcspn(entry, "=");
	if (length >= sizeof name)
		return;
	memcpy(name, entry, length);
	name[length] = '\0';
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

void
plumb_exec_environment_lend(struct plumb_exec_own *own)
{
	int saved = errno;
	*own = (struct plumb_exec_own){ 0 };
	size_t bytes = plumb_exec_environment_reach() == PLUMB_EXEC_REACHED
	                       ? plumb_exec_environment_room(environ, PLUMB_EXEC_PUT)
	                       : 0;
	own->memory = bytes ? malloc(bytes) : NULL;
	if (own->memory) {
		size_t count = 0;
		while (environ && environ[count])
			count++;
		char *const *entries =
			plumb_exec_environment_fill(environ, PLUMB_EXEC_PUT, own->memory);
		/* What was there comes first, and is the same pointers. */
		for (size_t at = 0; *entries; entries++) {
			while (at < count && environ[at] != *entries)
				at++;
			if (at < count)
				continue;
			if (own->count == PLUMB_EXEC_VARIABLES)
				break;
			own->variables[own->count++].entry = *entries;
		}
	}
	for (unsigned i = 0; i < own->count; i++) {
		const char *entry = own->variables[i].entry;
		const char *value = strchr(entry, '=') + 1;
		const char *before = NULL;
		for (char **e = environ; e && *e && !before; e++)
			if (!strncmp(*e, entry, (size_t)(value - entry)))
				before = *e + (value - entry);
		own->variables[i].before = before ? strdup(before) : NULL;
		set_variable(entry, value);
	}
	errno = saved;
}

void
plumb_exec_environment_return(struct plumb_exec_own *own)
{
	int saved = errno;
	for (unsigned i = 0; i < own->count; i++) {
		set_variable(own->variables[i].entry, own->variables[i].before);
		free(own->variables[i].before);
	}
	free(own->memory);
	errno = saved;
}
