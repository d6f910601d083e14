/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procstat.h"
#include "region/code.h"
#include "region/control.h"
#include "region/copies.h"
#include "region/reader.h"

#define PAUSE_MS 5 /* between two looks at whether a flush is done */

static bool
is_region_name(const char *name)
{
	return plumb_region_name_ends(name, PLUMB_REGION_SUFFIX);
}

/* Puts FOLDER/NAME into PATH. False with ENAMETOOLONG: it does not fit. */
static bool
join_path(char path[PATH_MAX], const char *folder, const char *name)
{
	int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
	if (n > 0 && n < PATH_MAX)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

int
plumb_rundir_create(struct plumb_rundir *run, const char *parent, struct plumb_error *error)
{
	char absolute[PATH_MAX];
	memset(run, 0, sizeof(*run));
	if (!realpath(parent, absolute))
		return plumb_fail_errno(error, "cannot use the folder %s", parent);
	for (unsigned number = 1; number < 1000; number++) {
		char name[64];
		/* On a shared file system another host may have a process of this number. */
		if (number == 1)
			snprintf(name, sizeof(name), ".plumb-%ld.run", (long)getpid());
		else
			snprintf(name, sizeof(name), ".plumb-%ld-%u.run", (long)getpid(), number);
		if (join_path(run->path, strcmp(absolute, "/") == 0 ? "" : absolute, name) &&
		    mkdir(run->path, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	int code = plumb_fail_errno(error,
	                            "cannot make the run folder in %s; choose another place with "
	                            "--folder or -o",
	                            absolute);
	run->path[0] = '\0';
	return code;
}

/* ---- the way to the library ---- */

bool
plumb_preloadable(const char *path)
{
	/* Spaces and colons separate the entries of the list, and ld.so expands $ORIGIN and the
	 * like. */
	return path[0] == '/' && !strpbrk(path, " :$\t\n");
}

static bool
find_library(char path[PATH_MAX], struct plumb_error *error)
{
	const char *named = getenv("PLUMB_LIBRARY");
	if (named && *named) {
		if (realpath(named, path))
			return true;
		plumb_fail_errno(error, "cannot use PLUMB_LIBRARY=%s", named);
		return false;
	}
	char own[PATH_MAX], place[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	if (length <= 0) {
		plumb_fail_errno(error,
		                 "cannot find plumb's own folder; set PLUMB_LIBRARY to the path of "
		                 "its collector libplumb.so");
		return false;
	}
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	if (join_path(place, own, PLUMB_LIBRARY_NAME) && realpath(place, path))
		return true;
	plumb_fail(error, PLUMB_ESYSTEM,
	           "the collector " PLUMB_LIBRARY_NAME " is not in %s, next to plumb; install it "
	           "there, or set PLUMB_LIBRARY to its path",
	           own);
	return false;
}

int
plumb_rundir_library(struct plumb_rundir *run, struct plumb_error *error)
{
	char real[PATH_MAX];
	if (!find_library(real, error))
		return PLUMB_ESYSTEM;
	if (access(real, R_OK) != 0)
		return plumb_fail_errno(error, "cannot read the collector %s", real);
	if (plumb_preloadable(real)) {
		strcpy(run->library, real);
		return 0;
	}
	if (plumb_preloadable(run->path)) {
		if (join_path(run->library, run->path, PLUMB_LIBRARY_NAME) &&
		    symlink(real, run->library) == 0)
			return 0;
	}
	const char *bases[] = { getenv("XDG_RUNTIME_DIR"), "/tmp" };
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (!bases[i] || !plumb_preloadable(bases[i]) ||
		    !join_path(run->alias, bases[i], "plumb-XXXXXX") || !mkdtemp(run->alias))
			continue;
		if (join_path(run->library, run->alias, PLUMB_LIBRARY_NAME) &&
		    symlink(real, run->library) == 0)
			return 0;
		rmdir(run->alias);
	}
	run->alias[0] = run->library[0] = '\0';
	return plumb_fail_errno(error,
	                        "the path %s has a space, colon or dollar sign, which LD_PRELOAD "
	                        "does not allow, and plumb could not make a link to it in /tmp; "
	                        "move plumb to another folder",
	                        real);
}

void
plumb_rundir_remove_alias(struct plumb_rundir *run)
{
	if (!run->alias[0])
		return;
	unlink(run->library);
	rmdir(run->alias);
	run->alias[0] = '\0';
}

uint64_t
plumb_rundir_space(const char *path)
{
	struct statvfs filesystem;
	if (statvfs(path, &filesystem) != 0 || filesystem.f_blocks == 0)
		return UINT64_MAX;
	return (uint64_t)filesystem.f_bavail * filesystem.f_frsize;
}

/* ---- regions of living processes ---- */

/* Maps a region's header shared. NULL: PATH is not a region. */
static struct plumb_region_header *
map_header(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	struct stat status;
	void *header = MAP_FAILED;
	/* Its first page is present, see the writer; a hole there would cost us a SIGBUS. */
	char magic[8];
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_size >= PLUMB_REGION_HEADER_SIZE &&
	    pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	    memcmp(magic, PLUMB_REGION_MAGIC, sizeof(magic)) == 0)
		header = mmap(NULL, PLUMB_REGION_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		              fd, 0);
	close(fd);
	if (header == MAP_FAILED)
		return NULL;
	const struct plumb_region_header *h = header;
	if (h->min_version <= PLUMB_REGION_VERSION && h->endian == PLUMB_REGION_ENDIAN)
		return header;
	munmap(header, PLUMB_REGION_HEADER_SIZE);
	return NULL;
}

/* Also false if the process is dead and only waits to be reaped. */
static bool
is_alive(const struct plumb_region_header *header, char name[64])
{
	char path[64];
	struct plumb_procstat stat;
	snprintf(path, sizeof(path), "/proc/%u/stat", header->pid);
	if (!plumb_procstat_read(path, &stat) || stat.state == 'Z' || stat.state == 'X' ||
	    atomic_load(&header->state) != PLUMB_REGION_RECORDING || !stat.start ||
	    (header->start_boottime_ticks && header->start_boottime_ticks != stat.start))
		return false;
	if (name)
		strcpy(name, stat.name);
	return true;
}

/* The next region of the open folder, mapped; NULL at the end. */
static struct plumb_region_header *
next_region(DIR *folder, const char *path)
{
	struct dirent *entry;
	while ((entry = readdir(folder))) {
		char file[PATH_MAX];
		if (!is_region_name(entry->d_name) ||
		    strcmp(entry->d_name, PLUMB_RUN_REGION) == 0 ||
		    !join_path(file, path, entry->d_name))
			continue;
		struct plumb_region_header *header = map_header(file);
		if (header)
			return header;
	}
	return NULL;
}

unsigned
plumb_rundir_living(const struct plumb_rundir *run, pid_t self, struct plumb_rundir_alive *first)
{
	unsigned count = 0;
	struct plumb_region_header *header;
	char name[64];
	DIR *folder = opendir(run->path);
	if (!folder)
		return 0;
	while ((header = next_region(folder, run->path))) {
		if ((pid_t)header->pid != self && is_alive(header, name)) {
			if (count++ == 0 && first) {
				first->pid = (pid_t)header->pid;
				memcpy(first->name, name, sizeof(first->name));
			}
		}
		munmap(header, PLUMB_REGION_HEADER_SIZE);
	}
	closedir(folder);
	return count;
}

struct wanted {
	struct plumb_region_header *header;
	uint32_t number;
};

static bool
all_served(const struct wanted *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((int32_t)(atomic_load(&list[i].header->flush_done) - list[i].number) < 0 &&
		    is_alive(list[i].header, NULL))
			return false;
	return true;
}

void
plumb_rundir_flush(const struct plumb_rundir *run, unsigned milliseconds,
                   bool (*pause)(void *data, unsigned milliseconds), void *data)
{
	struct wanted list[256]; /* more processes than that are not waited for */
	size_t count = 0;
	struct plumb_region_header *header;
	DIR *folder = opendir(run->path);
	if (!folder)
		return;
	while (count < sizeof(list) / sizeof(list[0]) &&
	       (header = next_region(folder, run->path))) {
		if (atomic_load(&header->flush_served) && is_alive(header, NULL)) {
			list[count].header = header;
			list[count++].number = atomic_fetch_add(&header->flush_wanted, 1) + 1;
		} else {
			munmap(header, PLUMB_REGION_HEADER_SIZE);
		}
	}
	closedir(folder);
	for (int64_t end = plumb_clock_ms() + milliseconds;
	     plumb_clock_ms() < end && !all_served(list, count);)
		if (!pause(data, PAUSE_MS))
			break;
	for (size_t i = 0; i < count; i++)
		munmap(list[i].header, PLUMB_REGION_HEADER_SIZE);
}

/* ---- the end ---- */

/* The compiler's logs, and nothing else that somebody put there. */
static void
remove_compile_logs(const char *path)
{
	char logs[PATH_MAX];
	struct dirent *entry;
	DIR *folder = join_path(logs, path, PLUMB_COMPILE_LOGS) ? opendir(logs) : NULL;
	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (plumb_region_name_ends(entry->d_name, ".log"))
			unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
	rmdir(logs);
}

bool
plumb_rundir_remove(const char *path)
{
	struct dirent *entry;
	DIR *folder = opendir(path);
	if (!folder)
		return errno == ENOENT;
	while ((entry = readdir(folder))) {
		struct stat status;
		bool link =
			strcmp(entry->d_name, PLUMB_LIBRARY_NAME) == 0 &&
			fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(status.st_mode);
		if (link || is_region_name(entry->d_name) ||
		    strcmp(entry->d_name, PLUMB_CONTROL_NAME) == 0 ||
		    strcmp(entry->d_name, PLUMB_COPIES_NAME) == 0 ||
		    plumb_region_name_ends(entry->d_name, PLUMB_CODE_SUFFIX) ||
		    plumb_region_name_ends(entry->d_name, PLUMB_REFUSAL_SUFFIX))
			unlinkat(dirfd(folder), entry->d_name, 0);
	}
	closedir(folder);
	remove_compile_logs(path);
	return rmdir(path) == 0;
}
