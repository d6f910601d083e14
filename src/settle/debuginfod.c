/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from the servers that DEBUGINFOD_URLS names. libdebuginfod is loaded when it is first
 * needed, and never linked. All fetches of a process may take SECONDS seconds together, and a file
 * may have MEGABYTES. The variables of the library (DEBUGINFOD_MAXTIME, …) come before these
 * limits.
 */
#include "settle/code_private.h"

#include <dlfcn.h>
#include <time.h>

#define LIBRARY "libdebuginfod.so.1"
#define SECONDS 60
#define MEGABYTES "512"

typedef struct debuginfod_client client;
typedef client *(*call_begin)(void);
typedef int (*call_progress)(client *, long, long);
typedef void (*call_set_progress)(client *, call_progress);
typedef int (*call_find)(client *, const unsigned char *, int, char **);

static time_t spent; /* seconds */
static time_t started;

static time_t
read_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

/* Called again and again during a fetch: anything but 0 ends it. */
static int
limit_fetch(client *of, long a, long b)
{
	(void)of, (void)a, (void)b;
	return spent + (read_seconds() - started) > SECONDS;
}

static bool
is_wanted(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

int
plumb_debuginfod_state(void)
{
	void *library = is_wanted() ? dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL) : NULL;

	if (library)
		dlclose(library);
	return !is_wanted() ? 0 : library ? 1 : -1;
}

int
plumb_debuginfod_fetch(const unsigned char *build_id, uint32_t bytes, char **path)
{
	static void *library;
	static client *one;
	static call_find find;
	int fd;

	*path = NULL;
	if (!is_wanted() || spent > SECONDS)
		return -1;
	if (!library) {
		library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
		if (!library) {
			spent = SECONDS + 1;
			return -1;
		}
		call_begin begin = (call_begin)dlsym(library, "debuginfod_begin");
		call_set_progress set =
			(call_set_progress)dlsym(library, "debuginfod_set_progressfn");
		find = (call_find)dlsym(library, "debuginfod_find_debuginfo");
		setenv("DEBUGINFOD_MAXSIZE", MEGABYTES "000000", 0);
		one = begin && find ? begin() : NULL;
		if (one && set)
			set(one, limit_fetch);
	}
	if (!one)
		return -1;
	started = read_seconds();
	fd = find(one, build_id, (int)bytes, path);
	spent += read_seconds() - started;
	return fd;
}
