/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a pair come one after the other, and every second pair the other way round, so that a
 * machine that becomes slower meets both kinds alike. The first run is in no pair: it prints, it
 * may compile and fill caches, and no other run does the same again.
 */
#include "cli/run/measure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/finish.h"
#include "cli/run/rundir.h"
#include "region/launches.h"
#include "region/reader.h"

/* ---- begin ---- */

/* The first reason counts. */
static void __attribute__((format(printf, 2, 3)))
give_up(struct plumb_measure *m, const char *format, ...)
{
	va_list args;

	if (m->why[0])
		return;
	va_start(args, format);
	vsnprintf(m->why, sizeof m->why, format, args);
	va_end(args);
}

/* What the runs read: the first run as it came to us, the others a file again, else nothing. */
static int
look_at_input(struct plumb_measure *m, struct plumb_error *error)
{
	struct stat status;

	m->input = -1;
	if (fstat(STDIN_FILENO, &status) != 0)
		return 0;
	if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--measure-cost runs the program several times, but standard "
		                  "input is a pipe, which can be read only once; add </dev/null, "
		                  "or read a file");
	m->reads_file = S_ISREG(status.st_mode);
	m->offset = m->reads_file ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	return 0;
}

/* By a link in our folder, where LD_PRELOAD cannot hold its path. */
static int
find_counter(struct plumb_measure *m, const char *collector, struct plumb_error *error)
{
	char own[PATH_MAX], real[PATH_MAX], place[PATH_MAX + 32];

	if (!realpath(collector, real))
		return plumb_fail_errno(error, "cannot read the collector %s", collector);
	plumb_folder_of(real, own, sizeof own);
	snprintf(place, sizeof place, "%s/" PLUMB_COUNTER_NAME, own);
	if (!realpath(place, m->library) || access(m->library, R_OK) != 0)
		return plumb_fail_errno(error, "cannot use %s, which --measure-cost needs", place);
	if (plumb_preloadable(m->library))
		return 0;
	strcpy(real, m->library);
	snprintf(place, sizeof place, "%s/" PLUMB_COUNTER_NAME, m->folder);
	if (!plumb_preloadable(place) || strlen(place) >= sizeof m->library)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "the paths %s and %s have a space, colon or dollar sign, which "
		                  "LD_PRELOAD does not allow; choose another place with --folder",
		                  real, m->folder);
	strcpy(m->library, place);
	return symlink(real, place) == 0 ? 0 : plumb_fail_errno(error, "cannot make %s", place);
}

int
plumb_measure_begin(struct plumb_measure *m, const char *collector, const char *beside,
                    uint32_t pairs, struct plumb_error *error)
{
	int code = look_at_input(m, error);

	if (code < 0)
		return code;
	m->pairs = pairs;
	m->recorded = true;
	if ((size_t)snprintf(m->folder, sizeof m->folder, "%s.cost", beside) >= sizeof m->folder ||
	    mkdir(m->folder, 0700) != 0) {
		code = plumb_fail_errno(error, "cannot make the folder %s.cost", beside);
		m->folder[0] = '\0';
		return code;
	}
	return find_counter(m, collector, error);
}

const char *const *
plumb_measure_variables(struct plumb_measure *m)
{
	snprintf(m->variable, sizeof m->variable, PLUMB_ENV_LAUNCHES "=%s/%u-", m->folder,
	         m->number);
	m->variables[0] = m->variable;
	return m->variables;
}

/* ---- runs ---- */

static void
end_input(struct plumb_measure *m)
{
	if (m->input >= 0)
		close(m->input);
	m->input = -1;
}

bool
plumb_measure_next(struct plumb_measure *m, struct plumb_program *program)
{
	uint32_t pair = (m->number - 1) / 2;

	if (program->interrupted && m->number <= 2 * m->pairs)
		give_up(m, "it was interrupted after run %u of %u", m->number, 2 * m->pairs + 1);
	if (m->why[0] || m->number > 2 * m->pairs)
		return false;
	m->recorded = (m->number - 1 + pair) % 2 == 0;
	if (m->reads_file) {
		m->input = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
		if (m->input < 0 || lseek(m->input, m->offset, SEEK_SET) < 0) {
			give_up(m, "standard input cannot be read again: %s", strerror(errno));
			return false;
		}
	}
	program->is_silent = true;
	program->input = m->input;
	return true;
}

void
plumb_measure_ran(struct plumb_measure *m, const struct plumb_measure_run *run)
{
	m->runs[m->number] = (struct plumb_cost_run){ .recorded = m->recorded,
		                                      .exit_code = run->program->exit_code,
		                                      .wall_ns = run->wall_ns };
	end_input(m);
	m->number++;
	if (run->program->interrupted)
		give_up(m, "it was interrupted in run %u of %u", m->number, 2 * m->pairs + 1);
	else if (run->program->signal)
		give_up(m, "signal %d (%s) ended the program in run %u", run->program->signal,
		        strsignal(run->program->signal), m->number);
	/* The rest would tell nothing more. */
	else if (run->program->exit_code != m->runs[0].exit_code)
		give_up(m,
		        "the program ended with exit code %d in run %u (%s plumb), and with %d "
		        "in the first",
		        run->program->exit_code, m->number, m->recorded ? "with" : "without",
		        m->runs[0].exit_code);
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

/* Which process of a run is wanted. */
struct wanted {
	int64_t pid;  /* PLUMB_UNKNOWN: any */
	int64_t rank; /* likewise */
};

static bool
is_wanted(const struct plumb_launches_header *header, const struct wanted *wanted)
{
	return (wanted->pid == PLUMB_UNKNOWN || header->pid == wanted->pid) &&
	       (wanted->rank == PLUMB_UNKNOWN || header->rank == wanted->rank);
}

/* A file, and how large it is. */
struct mapped {
	const struct plumb_launches_header *header;
	size_t bytes;
};

/* The launches of run NUMBER. Of several processes, the one that launched most. */
static struct mapped
find_launches(const struct plumb_measure *m, uint32_t number, const struct wanted *wanted)
{
	char path[2 * PATH_MAX], start[16];
	struct mapped best = { NULL, 0 }, other;
	DIR *folder = opendir(m->folder);
	struct dirent *entry;

	snprintf(start, sizeof start, "%u-", number);
	while (folder && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, start, strlen(start)) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", m->folder, entry->d_name);
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

static void
take_launches(struct plumb_cost_run *run, const struct mapped *file)
{
	const struct plumb_launches_header *header = file->header;
	uint64_t room = (file->bytes - PLUMB_LAUNCHES_HEADER_SIZE) / sizeof(uint64_t);

	run->launches = header->count;
	run->timed = run->launches < header->room ? run->launches : header->room;
	run->timed = run->timed < room ? run->timed : room;
	run->entries = (const uint64_t *)((const char *)header + PLUMB_LAUNCHES_HEADER_SIZE);
	run->start_ns = (int64_t)header->start;
}

/* ---- the end ---- */

static void
nothing_known(struct plumb_cost *cost)
{
	*cost = (struct plumb_cost){ .process = PLUMB_NONE,
		                     .scope = PLUMB_COST_OF_RUN,
		                     .pairs = 0,
		                     .steps = PLUMB_UNKNOWN,
		                     .recorded_ns = PLUMB_UNKNOWN,
		                     .plain_ns = PLUMB_UNKNOWN,
		                     .ratio = __builtin_nan(""),
		                     .low = __builtin_nan(""),
		                     .high = __builtin_nan("") };
}

static int
compare(struct plumb_measure *m, const struct plumb_profile *profile, struct plumb_cost *cost,
        struct plumb_error *error)
{
	struct mapped *files = calloc(m->number, sizeof *files);
	struct wanted wanted = { PLUMB_UNKNOWN, PLUMB_UNKNOWN };
	struct plumb_cost_loop loop;
	int code = files ? plumb_cost_loop_find(profile, &loop, error)
	                 : plumb_fail_memory(error, "to compare the runs");

	if (!code && loop.process != PLUMB_NONE) {
		wanted.pid = profile->processes[loop.process].pid;
		wanted.rank = profile->processes[loop.process].rank;
	}
	for (uint32_t i = 0; !code && i < m->number; i++) {
		files[i] = find_launches(m, i, &wanted);
		if (files[i].header)
			take_launches(&m->runs[i], &files[i]);
		else if (files[0].header)
			give_up(m,
			        "the launches of run %u (%s plumb) were not counted: there were "
			        "none, or the disk is full",
			        i + 1, m->runs[i].recorded ? "with" : "without");
		wanted.pid = PLUMB_UNKNOWN; /* each run has its own */
	}
	if (!code && !m->why[0])
		code = plumb_cost_compare(&loop, m->runs, m->number, cost, m->why, error);
	for (uint32_t i = 0; files && i < m->number; i++)
		if (files[i].header)
			munmap((void *)files[i].header, files[i].bytes);
	free(files);
	return code;
}

int
plumb_measure_conclude(struct plumb_measure *m, struct plumb_profile *profile,
                       struct plumb_error *error)
{
	struct plumb_cost cost;
	int code = 0;

	nothing_known(&cost);
	if (!m->why[0])
		code = compare(m, profile, &cost, error);
	return code < 0 ? code
	                : plumb_profile_set_cost(profile, &cost, m->why[0] ? m->why : NULL, error);
}

void
plumb_measure_end(struct plumb_measure *m)
{
	DIR *folder = m->folder[0] ? opendir(m->folder) : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (plumb_region_name_ends(entry->d_name, PLUMB_LAUNCHES_SUFFIX) ||
		    !strcmp(entry->d_name, PLUMB_COUNTER_NAME))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder) {
		closedir(folder);
		rmdir(m->folder);
	}
	m->folder[0] = '\0';
}
