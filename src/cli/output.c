/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
fail_write(const char *path, int number, struct plumb_error *error)
{
	errno = number;
	if (number == ENOSPC || number == EDQUOT)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s: no space left there; free some, or give another place with "
		                  "-o",
		                  path);
	if (number == EFBIG)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s: the file would be larger than allowed; raise ulimit -f, or "
		                  "give another place with -o",
		                  path);
	return plumb_fail_errno(error, "cannot write %s", path);
}

/* A new file beside the output; -1 with errno. */
static int
open_beside(struct plumb_output *output)
{
	for (unsigned attempt = 0; attempt < 1000; attempt++) {
		int used = snprintf(output->temporary, sizeof output->temporary, "%s.tmp-%ld-%u",
		                    output->path, (long)getpid(), attempt);
		if (used < 0 || (size_t)used >= sizeof output->temporary) {
			errno = ENAMETOOLONG;
			return -1;
		}
		/* 0666: the user's umask decides, as for any output. */
		int fd = open(output->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

int
plumb_output_open(struct plumb_output *output, const char *path, struct plumb_error *error)
{
	/* A link is followed: its target is replaced, not the link. */
	char *real = realpath(path, NULL);
	struct stat status;
	size_t length = strlen(path);
	int fd;

	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like others */
	output->file = NULL;
	output->temporary[0] = '\0';
	snprintf(output->path, sizeof output->path, "%s", real ? real : path);
	free(real);
	if (!length || path[length - 1] == '/' || length >= sizeof output->path)
		return plumb_fail(error, PLUMB_EUSAGE, "%s names no file; give -o a file's name",
		                  path);
	if (!stat(output->path, &status) && S_ISDIR(status.st_mode))
		return plumb_fail(error, PLUMB_EUSAGE, "%s is a folder; give -o a file's name",
		                  path);
	if (!stat(output->path, &status) && !S_ISREG(status.st_mode))
		fd = open(output->path, O_WRONLY | O_CLOEXEC);
	else
		fd = open_beside(output);
	if (fd < 0)
		return fail_write(path, errno, error);
	output->file = fdopen(fd, "w");
	if (!output->file) {
		int number = errno;
		close(fd);
		if (output->temporary[0])
			unlink(output->temporary);
		return fail_write(path, number, error);
	}
	return PLUMB_OK;
}

void
plumb_output_drop(struct plumb_output *output)
{
	fclose(output->file);
	if (output->temporary[0])
		unlink(output->temporary);
}

int
plumb_output_close(struct plumb_output *output, struct plumb_error *error)
{
	bool failed;
	int number;

	errno = 0;
	failed = fflush(output->file) != 0;
	number = errno;
	/* What failed before is not in errno any more; a write that fails again says it. */
	if (!failed && ferror(output->file)) {
		failed = true;
		number = fputc(0, output->file) == EOF || fflush(output->file) ? errno : EIO;
	}
	if (fclose(output->file) && !failed) {
		failed = true;
		number = errno;
	}
	if (!failed && output->temporary[0] && rename(output->temporary, output->path)) {
		failed = true;
		number = errno;
	}
	if (failed && output->temporary[0])
		unlink(output->temporary);
	return failed ? fail_write(output->path, number, error) : PLUMB_OK;
}
