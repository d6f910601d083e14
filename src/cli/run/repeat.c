/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/repeat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/finish.h"
#include "cli/run/rundir.h"
#include "model/profile.h"
#include "region/reader.h"

/* ---- begin ---- */

/* What the runs read: the first run as it came to us, the others a file again, else nothing. */
static int
look_at_input(struct plumb_repeat *r, const char *who, struct plumb_error *error)
{
	struct stat status;

	r->input = -1;
	if (fstat(STDIN_FILENO, &status) != 0)
		return 0;
	if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "%s runs the program several times, but standard input is a "
		                  "pipe, which can be read only once; add </dev/null, or read a "
		                  "file",
		                  who);
	r->reads_file = S_ISREG(status.st_mode);
	r->offset = r->reads_file ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	return 0;
}

/* By a link in our folder, where LD_PRELOAD cannot hold its path. */
static int
find_counter(struct plumb_repeat *r, const char *who, const char *collector,
             struct plumb_error *error)
{
	char own[PATH_MAX], real[PATH_MAX], place[PATH_MAX + 32];

	if (!realpath(collector, real))
		return plumb_fail_errno(error, "cannot read the collector %s", collector);
	plumb_folder_of(real, own, sizeof own);
	snprintf(place, sizeof place, "%s/" PLUMB_COUNTER_NAME, own);
	if (!realpath(place, r->library) || access(r->library, R_OK) != 0)
		return plumb_fail_errno(error, "cannot use %s, which %s needs", place, who);
	if (plumb_preloadable(r->library))
		return 0;
	strcpy(real, r->library);
	snprintf(place, sizeof place, "%s/" PLUMB_COUNTER_NAME, r->folder);
	if (!plumb_preloadable(place) || strlen(place) >= sizeof r->library)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "the paths %s and %s have a space, colon or dollar sign, which "
		                  "LD_PRELOAD does not allow; choose another place with --folder",
		                  real, r->folder);
	strcpy(r->library, place);
	return symlink(real, place) == 0 ? 0 : plumb_fail_errno(error, "cannot make %s", place);
}

int
plumb_repeat_begin(struct plumb_repeat *r, const char *who, const char *collector,
                   const char *beside, struct plumb_error *error)
{
	int code = look_at_input(r, who, error);

	if (code < 0)
		return code;
	if ((size_t)snprintf(r->folder, sizeof r->folder, "%s.again", beside) >= sizeof r->folder ||
	    mkdir(r->folder, 0700) != 0) {
		code = plumb_fail_errno(error, "cannot make the folder %s.again", beside);
		r->folder[0] = '\0';
		return code;
	}
	return find_counter(r, who, collector, error);
}

const char *const *
plumb_repeat_variables(struct plumb_repeat *r)
{
	snprintf(r->variable, sizeof r->variable, PLUMB_ENV_LAUNCHES "=%s/%u-", r->folder,
	         r->number);
	r->variables[0] = r->variable;
	return r->variables;
}

/* ---- runs ---- */

bool
plumb_repeat_next(struct plumb_repeat *r, struct plumb_program *program, char *why, size_t size)
{
	if (r->reads_file) {
		r->input = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
		if (r->input < 0 || lseek(r->input, r->offset, SEEK_SET) < 0) {
			snprintf(why, size, "standard input cannot be read again: %s",
			         strerror(errno));
			return false;
		}
	}
	program->is_silent = true;
	program->input = r->input;
	return true;
}

void
plumb_repeat_ran(struct plumb_repeat *r)
{
	if (r->input >= 0)
		close(r->input);
	r->input = -1;
	r->number++;
}

/* ---- launches ---- */

/* Maps the file of a process. NULL: the file is not one of a process. */
static const struct plumb_launches_header *
map_launches(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const struct plumb_launches_header *header;
	struct stat status;
	void *mapped = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_size > PLUMB_LAUNCHES_HEADER_SIZE)
		mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		return NULL;
	*bytes = (size_t)status.st_size;
	header = mapped;
	if (!memcmp(header->magic, PLUMB_LAUNCHES_MAGIC, sizeof header->magic) &&
	    header->version == PLUMB_LAUNCHES_VERSION && header->start < INT64_MAX / 2)
		return header;
	munmap(mapped, *bytes);
	return NULL;
}

static bool
is_wanted(const struct plumb_launches_header *header, const struct plumb_repeat_wanted *wanted)
{
	return (wanted->pid == PLUMB_UNKNOWN || header->pid == wanted->pid) &&
	       (wanted->rank == PLUMB_UNKNOWN || header->rank == wanted->rank);
}

struct plumb_repeat_launches
plumb_repeat_launches(const struct plumb_repeat *r, uint32_t number,
                      const struct plumb_repeat_wanted *wanted)
{
	char path[2 * PATH_MAX], start[16];
	struct plumb_repeat_launches best = { NULL, 0 }, other;
	DIR *folder = opendir(r->folder);
	struct dirent *entry;

	snprintf(start, sizeof start, "%u-", number);
	while (folder && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, start, strlen(start)) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", r->folder, entry->d_name);
		other.header = map_launches(path, &other.bytes);
		if (!other.header)
			continue;
		if (is_wanted(other.header, wanted) &&
		    (!best.header || other.header->count > best.header->count)) {
			if (best.header)
				munmap((void *)best.header, best.bytes);
			best = other;
		} else {
			munmap((void *)other.header, other.bytes);
		}
	}
	if (folder)
		closedir(folder);
	return best;
}

void
plumb_repeat_take(struct plumb_cost_run *run, const struct plumb_repeat_launches *file)
{
	const struct plumb_launches_header *header = file->header;
	uint64_t room = (file->bytes - PLUMB_LAUNCHES_HEADER_SIZE) / sizeof(uint64_t);

	run->launches = header->count;
	run->timed = run->launches < header->room ? run->launches : header->room;
	run->timed = run->timed < room ? run->timed : room;
	run->entries = (const uint64_t *)((const char *)header + PLUMB_LAUNCHES_HEADER_SIZE);
	run->start_ns = (int64_t)header->start;
}

/* ---- end ---- */

void
plumb_repeat_end(struct plumb_repeat *r)
{
	DIR *folder = r->folder[0] ? opendir(r->folder) : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (plumb_region_name_ends(entry->d_name, PLUMB_LAUNCHES_SUFFIX) ||
		    !strcmp(entry->d_name, PLUMB_COUNTER_NAME))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder) {
		closedir(folder);
		rmdir(r->folder);
	}
	r->folder[0] = '\0';
}
