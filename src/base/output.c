/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40

static const char *
option_of(const struct plumb_output_rule *rule)
{
	return rule && rule->option ? rule->option : "-o";
}

/* OPTION names the output. */
static int
fail_write(const char *path, int number, const char *option, struct plumb_error *error)
{
	errno = number;
	if (number == ENOSPC || number == EDQUOT)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s: no space left; free some, or choose another place with %s",
		                  path, option);
	if (number == EFBIG)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s: the file would be larger than allowed; raise ulimit -f, or "
		                  "choose another place with %s",
		                  path, option);
	return plumb_fail_errno(error, "cannot write %s", path);
}

/* ---- signals: a file that is not finished must not stay ---- */

static char unfinished[PATH_MAX];
static volatile sig_atomic_t is_unfinished;

void
plumb_output_abandon(void)
{
	if (is_unfinished)
		unlink(unfinished);
}

static void
abandon_and_die(int number)
{
	plumb_output_abandon();
	raise(number); /* SA_RESETHAND: now it ends us */
}

/* A signal that ends us also removes the unfinished file. Handlers of others are left alone. */
static void
guard_unfinished(const char *path)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = abandon_and_die, .sa_flags = SA_RESETHAND };

	strcpy(unfinished, path);
	is_unfinished = 1;
	for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
		struct sigaction before;
		if (!sigaction(ending[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(ending[i], &action, NULL);
	}
}

/* ---- what is there ---- */

/* Is PATH, followed, something else than a file that lies on a disk? */
static bool
is_special(const char *path, struct stat *status)
{
	return !stat(path, status) && !S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode);
}

static int
fail_link(const char *path, const char *given, struct plumb_error *error)
{
	return plumb_fail(error, PLUMB_EUSAGE,
	                  "%s is a symbolic link of another user%s%s; plumb does not write through "
	                  "it; give -o another name",
	                  path, strcmp(path, given) ? ", reached from " : "",
	                  strcmp(path, given) ? given : "");
}

/*
 * Reads the link PATH into TARGET: 1, or 0 where it is none, or an error code. The link's owner and
 * its target are read from one inode, so nobody can exchange it in between.
 */
static int
read_link(const char *path, const char *given, char target[PATH_MAX], const char *option,
          struct plumb_error *error)
{
	struct stat status;
	ssize_t length = -1;
	int code = 0, fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return 0; /* there is nothing, or writing will say what is wrong */
	if (fstat(fd, &status) || !S_ISLNK(status.st_mode))
		code = 0;
	else if (status.st_uid != geteuid() && status.st_uid != 0)
		code = fail_link(path, given, error);
	else if ((length = readlinkat(fd, "", target, PATH_MAX - 1)) < 0)
		code = fail_write(path, errno, option, error);
	close(fd);
	if (length < 0)
		return code;
	target[length] = '\0';
	return 1;
}

/* Follows the links at PATH's end into REAL. */
static int
follow_links(const char *path, char real[PATH_MAX], const char *option, struct plumb_error *error)
{
	char target[PATH_MAX], next[2 * PATH_MAX];
	struct stat status;

	snprintf(real, PATH_MAX, "%s", path);
	for (int links = 0; links < MAX_LINKS; links++) {
		int code = read_link(real, path, target, option, error);
		if (code <= 0)
			return code;
		/* A link like this in /proc does not name a path. */
		if (is_special(real, &status))
			return PLUMB_OK;
		const char *slash = strrchr(real, '/');
		if (*target == '/' || !slash)
			snprintf(next, sizeof next, "%s", target);
		else
			snprintf(next, sizeof next, "%.*s/%s", (int)(slash - real), real, target);
		if (strlen(next) >= PATH_MAX)
			return fail_write(path, ENAMETOOLONG, option, error);
		strcpy(real, next);
	}
	return fail_write(path, ELOOP, option, error);
}

static int
check_file(const char *path, const char *real, const struct stat *status,
           const struct plumb_output_rule *rule, struct plumb_error *error)
{
	if (!rule || rule->force || !rule->ours || !status->st_size || rule->ours(real))
		return PLUMB_OK;
	return plumb_fail(error, PLUMB_EUSAGE,
	                  "%s exists and is not %s; give %s another name, or --force to replace it",
	                  path, rule->kind, option_of(rule));
}

/* Finds where PATH leads, and whether what is there may be replaced. *THERE: is there a file? */
static int
find_target(const char *path, const struct plumb_output_rule *rule, char real[PATH_MAX],
            bool *there, struct stat *status, struct plumb_error *error)
{
	size_t length = strlen(path);

	*there = false;
	if (!length || path[length - 1] == '/')
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "%s does not name a file; give %s the name of a file", path,
		                  option_of(rule));
	if (length >= PATH_MAX)
		return fail_write(path, ENAMETOOLONG, option_of(rule), error);
	int code = follow_links(path, real, option_of(rule), error);
	if (code)
		return code;
	if (stat(real, status))
		return PLUMB_OK;
	if (S_ISDIR(status->st_mode))
		return plumb_fail(error, PLUMB_EUSAGE, "%s is a folder; give %s the name of a file",
		                  path, option_of(rule));
	if (!S_ISREG(status->st_mode))
		return rule && rule->plain
		               ? plumb_fail(error, PLUMB_EUSAGE,
		                            "%s is a device or pipe; give %s the name of a file",
		                            path, option_of(rule))
		               : PLUMB_OK;
	*there = true;
	return check_file(path, real, status, rule, error);
}

int
plumb_output_check(const char *path, const struct plumb_output_rule *rule,
                   struct plumb_error *error)
{
	char real[PATH_MAX];
	struct stat status;
	bool there;

	return find_target(path, rule, real, &there, &status, error);
}

/* ---- writing ---- */

/* A new file beside the output; -1 with errno. */
static int
open_beside(struct plumb_output *output, mode_t mode)
{
	for (unsigned attempt = 0; attempt < 1000; attempt++) {
		int used = snprintf(output->temporary, sizeof output->temporary, "%s.tmp-%ld-%u",
		                    output->path, (long)getpid(), attempt);
		if (used < 0 || (size_t)used >= sizeof output->temporary) {
			errno = ENAMETOOLONG;
			return -1;
		}
		int fd = open(output->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

int
plumb_output_open(struct plumb_output *output, const char *path,
                  const struct plumb_output_rule *rule, struct plumb_error *error)
{
	struct stat status;
	bool there;
	int fd, code;

	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like others */
	*output = (struct plumb_output){ .durable = rule && rule->durable,
		                         .option = option_of(rule) };
	code = find_target(path, rule, output->path, &there, &status, error);
	if (code)
		return code;
	output->limited = there && !(rule && rule->widen);
	output->old_mode = there ? status.st_mode & 07777 : 0;
	if (is_special(output->path, &status)) {
		fd = open(output->path, O_WRONLY | O_CLOEXEC);
	} else {
		fd = open_beside(output, rule && rule->private ? 0600 : 0666);
		if (fd >= 0)
			guard_unfinished(output->temporary);
	}
	if (fd < 0) {
		output->temporary[0] = '\0';
		return fail_write(path, errno, output->option, error);
	}
	output->file = fdopen(fd, "w");
	if (!output->file) {
		int number = errno;
		close(fd);
		plumb_output_abandon();
		is_unfinished = 0;
		return fail_write(path, number, output->option, error);
	}
	return PLUMB_OK;
}

/* The file is not there any more, or has its name. */
static void
forget_temporary(struct plumb_output *output, bool remove_it)
{
	if (!output->temporary[0])
		return;
	if (remove_it)
		unlink(output->temporary);
	is_unfinished = 0;
}

void
plumb_output_drop(struct plumb_output *output)
{
	fclose(output->file);
	forget_temporary(output, true);
}

/* Hands all written bytes to the system. 0, or errno. */
static int
flush_file(struct plumb_output *output)
{
	errno = 0;
	if (fflush(output->file))
		return errno;
	/* What failed before is not in errno any more; a write that fails again says it. */
	if (ferror(output->file))
		return fputc(0, output->file) == EOF || fflush(output->file) ? errno : EIO;
	return 0;
}

/* EINVAL: a file system that has no notion of it. */
static bool
is_synced(int fd)
{
	return !fsync(fd) || errno == EINVAL || errno == EROFS;
}

static int
sync_folder(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash)
		strcpy(folder, ".");
	else
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path),
		         path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* A folder that may be written but not read is no reason to fail. */
	int number = fd < 0 || is_synced(fd) ? 0 : errno;
	if (fd >= 0)
		close(fd);
	return number;
}

/* Never grants more than the old file did: whoever could not read it still cannot. */
static int
narrow_mode(struct plumb_output *output)
{
	struct stat status;
	int fd = fileno(output->file);

	if (!output->temporary[0] || !output->limited)
		return 0;
	if (fstat(fd, &status) || fchmod(fd, status.st_mode & output->old_mode & 0777))
		return errno;
	return 0;
}

int
plumb_output_close(struct plumb_output *output, struct plumb_error *error)
{
	int number = flush_file(output);

	if (!number)
		number = narrow_mode(output);
	if (!number && output->durable && !is_synced(fileno(output->file)))
		number = errno;
	if (fclose(output->file) && !number)
		number = errno;
	if (!number && output->temporary[0] && rename(output->temporary, output->path))
		number = errno;
	forget_temporary(output, number != 0);
	if (!number && output->durable)
		number = sync_folder(output->path);
	return number ? fail_write(output->path, number, output->option, error) : PLUMB_OK;
}
