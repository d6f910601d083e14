/* SPDX-License-Identifier: Apache-2.0 */
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int
plumb_regular_open(int folder, const char *path, int more)
{
	struct stat status;
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more);

	if (fd < 0)
		return -1;
	int why = fstat(fd, &status) < 0     ? errno
	          : S_ISDIR(status.st_mode)  ? EISDIR
	          : !S_ISREG(status.st_mode) ? EINVAL
	                                     : 0;
	if (!why)
		return fd;
	close(fd);
	errno = why;
	return -1;
}
