/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"
#include "cli/run/launch.h"
#include "collect/collector.h"

#define PRELOAD "LD_PRELOAD"
#define INJECTION "CUDA_INJECTION64_PATH"
#define NVTX_INJECTION "NVTX_INJECTION64_PATH"
#define NCCL_PLUGIN "NCCL_PROFILER_PLUGIN"
#define ASAN "ASAN_OPTIONS"
#define ASAN_ORDER "verify_asan_link_order"
#define COMPILE_TRACE "TORCH_TRACE" /* PyTorch logs its compiler into that folder */

/* Only we set these. An outer `plumb run` may have left its own. */
static const char *const own[] = {
	PLUMB_ENV_FOLDER,      PLUMB_ENV_LIMIT,           PLUMB_ENV_GPU,
	PLUMB_ENV_FLUSH,       PLUMB_ENV_KEEP_CUPTI,      PLUMB_ENV_LAYERS,
	PLUMB_ENV_CPU,         PLUMB_ENV_EVENTS,          PLUMB_ENV_MEMORY,
	PLUMB_ENV_SHAPES,      PLUMB_ENV_TRACE,           PLUMB_ENV_FOLLOW,
	PLUMB_ENV_PAUSED,      PLUMB_ENV_REPLAYS,         PLUMB_ENV_TOOLS,
	PLUMB_ENV_COMMAND,     PLUMB_ENV_STALLS,          PLUMB_ENV_STALLS_MODE,
	PLUMB_ENV_TRAFFIC,     PLUMB_ENV_TRAFFIC_KERNELS, PLUMB_ENV_TRAFFIC_OBJECTS,
	PLUMB_ENV_TRAFFIC_OWN,
};
/* At most so many are added to what was there. */
#define ADDED 32

static const char *
find_variable(char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; *environment; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static bool
is_named(const char *entry, const char *name)
{
	size_t length = strlen(name);
	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool
is_replaced(const char *entry, bool gpu, bool nccl)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (is_named(entry, own[i]))
			return true;
	return is_named(entry, PRELOAD) || is_named(entry, ASAN) ||
	       is_named(entry, NVTX_INJECTION) || is_named(entry, PLUMB_ENV_CHAIN_NVTX) ||
	       (gpu && (is_named(entry, INJECTION) || is_named(entry, PLUMB_ENV_CHAIN_CUDA))) ||
	       (nccl && (is_named(entry, NCCL_PLUGIN) || is_named(entry, PLUMB_ENV_CHAIN_NCCL)));
}

/* Does the path's last part begin with START? */
static bool
file_begins(const char *path, size_t length, const char *start)
{
	const char *slash = memrchr(path, '/', length);
	const char *file = slash ? slash + 1 : path;
	size_t rest = length - (size_t)(file - path);
	return rest >= strlen(start) && strncmp(file, start, strlen(start)) == 0;
}

/* Is the library FILE, by any path, in the LIST? */
static bool
lists_file(const char *list, const char *file)
{
	for (const char *p = list; *p;) {
		size_t length = strcspn(p, ": ");
		if (file_begins(p, length, file))
			return true;
		p += length;
		p += *p != '\0';
	}
	return false;
}

/*
 * "FIRST:what was there:LIBRARY:TOOLS:COUNTER". A collector that an outer `plumb run` put there
 * goes. Where somebody placed FIRST already, it stays in that place.
 */
static char *
preload_list(const char *before, const struct plumb_environment_settings *settings)
{
	const char *first = settings->preload_first ? settings->preload_first : "";
	const char *tools = settings->tools, *counter = settings->counter;
	if (before && *first && lists_file(before, first))
		first = "";
	size_t size = strlen(PRELOAD "=") + strlen(first) + (before ? strlen(before) : 0) +
	              (settings->library ? strlen(settings->library) : 0) +
	              (tools ? strlen(tools) : 0) + (counter ? strlen(counter) : 0) + 6;
	char *entry = malloc(size), *end = entry;
	if (!entry)
		return NULL;
	end = stpcpy(end, PRELOAD "=");
	if (*first)
		end = stpcpy(stpcpy(end, first), ":");
	for (const char *p = before ? before : ""; *p;) {
		size_t length = strcspn(p, ": ");
		if (length && !file_begins(p, length, "libplumb.so")) {
			end = mempcpy(end, p, length);
			*end++ = ':';
		}
		p += length;
		p += *p != '\0';
	}
	if (settings->library)
		end = stpcpy(end, settings->library);
	if (tools && *tools)
		end = stpcpy(stpcpy(end, ":"), tools);
	if (counter)
		stpcpy(stpcpy(end, settings->library ? ":" : ""), counter);
	return entry;
}

/* Adds "NAME=…" at *NEXT; false when memory is out. */
static bool __attribute__((format(printf, 2, 3)))
add_variable(char ***next, const char *format, ...)
{
	va_list args;
	char *entry;
	va_start(args, format);
	int n = vasprintf(&entry, format, args);
	va_end(args);
	if (n < 0)
		return false;
	*(*next)++ = entry;
	return true;
}

/*
 * A program built with AddressSanitizer that the program starts would find the collector before its
 * runtime and refuse to run. Its interceptors come before libc all the same, which is what it
 * checks.
 */
static bool
add_asan(char ***next, const char *before)
{
	if (before && strstr(before, ASAN_ORDER))
		return add_variable(next, ASAN "=%s", before);
	return add_variable(next, ASAN "=%s%s" ASAN_ORDER "=0", before ? before : "",
	                    before && *before ? ":" : "");
}

/* Puts the collector into VARIABLE; what was there goes into CHAIN, by which the collector calls
 * it. */
static bool
add_injection(char ***next, char *const *environment, const char *variable, const char *chain,
              const char *library)
{
	const char *before = find_variable(environment, variable);
	if (before && file_begins(before, strlen(before), "libplumb.so"))
		before = find_variable(environment, chain); /* an outer run's: whom it chains */
	if (before && *before && !add_variable(next, "%s=%s", chain, before))
		return false;
	return add_variable(next, "%s=%s", variable, library);
}

/* Has the file at PATH a struct that the collector can call? It looks for the names alone: a plugin
 * is not loaded here. True also if it cannot be read. */
static bool
has_known_version(const char *path)
{
	static const char *const names[] = { "ncclProfiler_v3", "ncclProfiler_v4",
		                             "ncclProfiler_v5" };
	struct stat about;
	int file = plumb_regular_open(AT_FDCWD, path, O_CLOEXEC);
	void *bytes = MAP_FAILED;
	bool found = false;
	if (file >= 0 && !fstat(file, &about) && about.st_size > 0)
		bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (file >= 0)
		close(file);
	if (bytes == MAP_FAILED)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
		found = memmem(bytes, (size_t)about.st_size, names[i], strlen(names[i]) + 1);
	munmap(bytes, (size_t)about.st_size);
	return found;
}

const char *
plumb_environment_nccl_kept(char *const *environment)
{
	const char *plugin = find_variable(environment, NCCL_PLUGIN);
	/* One without a slash is looked for by the loader: the collector asks for it. */
	return plugin && strchr(plugin, '/') && !has_known_version(plugin) ? plugin : NULL;
}

/* "none" switches profilers off, which --traffic takes back. */
static bool
add_nccl(char ***next, char *const *environment, const char *library)
{
	const char *before = find_variable(environment, NCCL_PLUGIN);
	if (before && !strcasecmp(before, "none"))
		return add_variable(next, NCCL_PLUGIN "=%s", library);
	return add_injection(next, environment, NCCL_PLUGIN, PLUMB_ENV_CHAIN_NCCL, library);
}

static bool
add_ours(char ***next, char *const *environment, const struct plumb_environment_settings *settings)
{
	char *list = preload_list(find_variable(environment, PRELOAD), settings);
	if (!list)
		return false;
	*(*next)++ = list;
	if (!add_asan(next, find_variable(environment, ASAN)) ||
	    !add_variable(next, PLUMB_ENV_FOLDER "=%s", settings->folder) ||
	    !add_variable(next, PLUMB_ENV_LIMIT "=%lld", settings->limit))
		return false;
	if (settings->flush_ms >= 0 &&
	    !add_variable(next, PLUMB_ENV_FLUSH "=%lld", settings->flush_ms))
		return false;
	/* Of nested runs the outer one's folder is gone when the inner one reads it. */
	if (plumb_environment_own_trace(environment) &&
	    !add_variable(next, COMPILE_TRACE "=%s/" PLUMB_COMPILE_LOGS, settings->folder))
		return false;
	for (const char *const *v = settings->variables; v && *v; v++)
		if (!add_variable(next, "%s", *v))
			return false;
	for (const char *const *v = settings->counter_variables; v && *v; v++)
		if (!add_variable(next, "%s", *v))
			return false;
	if (!add_injection(next, environment, NVTX_INJECTION, PLUMB_ENV_CHAIN_NVTX,
	                   settings->library))
		return false;
	if (settings->traffic && !plumb_environment_nccl_kept(environment) &&
	    !add_nccl(next, environment, settings->library))
		return false;
	if (settings->gpu != PLUMB_GPU_ACTIVITY &&
	    !add_variable(next, PLUMB_ENV_GPU "=%u", (unsigned)settings->gpu))
		return false;
	if (settings->gpu == PLUMB_GPU_OFF)
		return true;
	if (settings->keep_cupti && !add_variable(next, PLUMB_ENV_KEEP_CUPTI "=1"))
		return false;
	return add_injection(next, environment, INJECTION, PLUMB_ENV_CHAIN_CUDA, settings->library);
}

char **
plumb_environment_plain(char *const *environment, const struct plumb_environment_settings *settings)
{
	size_t count = 0;
	while (environment[count])
		count++;
	char **copy = calloc(count + ADDED + 1, sizeof(*copy)), **next = copy;
	char *list = preload_list(find_variable(environment, PRELOAD), settings);
	bool ok = copy && list;
	for (size_t i = 0; ok && i < count; i++) {
		if (is_named(environment[i], PRELOAD) || is_named(environment[i], ASAN))
			continue;
		ok = (*next = strdup(environment[i])) != NULL;
		next += ok;
	}
	if (ok)
		*next++ = list;
	else
		free(list);
	ok = ok && add_asan(&next, find_variable(environment, ASAN));
	for (const char *const *v = settings->counter_variables; ok && v && *v; v++)
		ok = add_variable(&next, "%s", *v);
	if (ok)
		return copy;
	plumb_environment_free(copy);
	return NULL;
}

bool
plumb_environment_own_trace(char *const *environment)
{
	const char *before = find_variable(environment, COMPILE_TRACE);
	const char *folder = find_variable(environment, PLUMB_ENV_FOLDER);
	size_t length = folder ? strlen(folder) : 0;
	/* One that is empty asks for no log; PyTorch itself would stumble over it. */
	return !before || (length && !strncmp(before, folder, length) &&
	                   !strcmp(before + length, "/" PLUMB_COMPILE_LOGS));
}

char **
plumb_environment_new(char *const *environment, const struct plumb_environment_settings *settings)
{
	size_t count = 0;
	while (environment[count])
		count++;
	char **copy = calloc(count + ADDED + 1, sizeof(*copy)), **next = copy;
	const char *kept = plumb_environment_nccl_kept(environment);
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (is_replaced(environment[i], settings->gpu != PLUMB_GPU_OFF,
		                settings->traffic && !kept) ||
		    (is_named(environment[i], COMPILE_TRACE) &&
		     (plumb_environment_own_trace(environment) ||
		      !environment[i][sizeof COMPILE_TRACE])))
			continue;
		if (!(*next = strdup(environment[i])))
			goto out_of_memory;
		next++;
	}
	if (add_ours(&next, environment, settings))
		return copy;
out_of_memory:
	plumb_environment_free(copy);
	return NULL;
}

void
plumb_environment_free(char **environment)
{
	for (char **entry = environment; entry && *entry; entry++)
		free(*entry);
	free(environment);
}
