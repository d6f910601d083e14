/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/newest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store.h"

static bool
is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A copy; a name like an option's does not stay one. */
static char *
copy_of(const char *name)
{
	char *copy = malloc(strlen(name) + 3);

	if (copy)
		stpcpy(stpcpy(copy, *name == '-' ? "./" : ""), name);
	return copy;
}

/* It opens only files that are newer than the one that it has found. */
static char *
find_newest(void)
{
	struct timespec newest = { 0 };
	struct dirent *entry;
	char *found = NULL;
	DIR *folder = opendir(".");

	while (folder && (entry = readdir(folder))) {
		struct stat status;
		if (fstatat(dirfd(folder), entry->d_name, &status, 0) || !S_ISREG(status.st_mode) ||
		    (found && !is_later(&status.st_mtim, &newest)) ||
		    strstr(entry->d_name, ".tmp-") || !plumb_store_is_profile(entry->d_name))
			continue;
		free(found);
		found = copy_of(entry->d_name);
		newest = status.st_mtim;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* run.plumb.3: the profile of one rank of a job. */
static bool
is_rank(const char *name)
{
	const char *end = strstr(name, ".plumb.");

	return end && end[7] && !end[7 + strspn(end + 7, "0123456789")];
}

char *
plumb_newest_profile(const struct plumb_invocation *invocation, int *result)
{
	char *name = find_newest();

	if (!name) {
		*result = plumb_cli_usage(invocation,
		                          "%s found no profile in this folder; name a FILE, or "
		                          "record one with: plumb run -- python train.py",
		                          invocation->verb->name);
		return NULL;
	}
	*result = PLUMB_EXIT_DONE;
	plumb_cli_note(invocation, "reading %s, the newest profile in this folder%s", name,
	               is_rank(name) ? " (of one rank; plumb settle joins ranks)" : "");
	return name;
}
