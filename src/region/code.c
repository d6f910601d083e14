/* SPDX-License-Identifier: Apache-2.0 */
#include "region/code.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4400

/* ---- names ---- */

static uint64_t
mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xe7037ed1a0b428dbu);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two chains, so that the multiplications of one need not wait for those of the other. */
uint64_t
plumb_code_hash(const void *image, size_t size)
{
	const char *at = image;
	uint64_t first = size, second = ~(uint64_t)size, words[4];

	for (; size >= sizeof words; at += sizeof words, size -= sizeof words) {
		memcpy(words, at, sizeof words);
		first = mix(first ^ words[0], words[1]);
		second = mix(second ^ words[2], words[3]);
	}
	memset(words, 0, sizeof words);
	memcpy(words, at, size);
	first = mix(first ^ words[0], words[1]);
	second = mix(second ^ words[2], words[3]);
	return mix(first, second);
}

const char *
plumb_code_name(uint64_t hash, char name[PLUMB_CODE_NAME])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 16; i++)
		name[i] = digits[hash >> (60 - 4 * i) & 15];
	strcpy(name + 16, PLUMB_CODE_SUFFIX);
	return name;
}

static bool
path_of(char path[PATH_BYTES], const char *folder, uint64_t hash)
{
	char name[PLUMB_CODE_NAME];

	return snprintf(path, PATH_BYTES, "%s/%s", folder, plumb_code_name(hash, name)) <
	       PATH_BYTES;
}

bool
plumb_code_has(const char *folder, uint64_t hash)
{
	char path[PATH_BYTES];
	int before = errno;
	bool has = path_of(path, folder, hash) && !access(path, F_OK);

	errno = before;
	return has;
}

/* ---- writing ---- */

/* False: errno says why. */
static bool
write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t wrote = write(fd, bytes, size);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return false;
		bytes += wrote;
		size -= (size_t)wrote;
	}
	return true;
}

/* The same; beyond a limit of the size of files it fails, and no SIGXFSZ reaches the program. */
static bool
write_quietly(int fd, const void *bytes, size_t size)
{
	sigset_t block, before, pending;
	struct timespec no_wait = { 0, 0 };

	sigemptyset(&block);
	sigaddset(&block, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &block, &before);
	bool was_pending = !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
	bool fine = write_all(fd, bytes, size);
	int why = errno;
	/* Take our own signal away, but not one that waited there before. */
	if (!fine && why == EFBIG && !was_pending)
		while (sigtimedwait(&block, NULL, &no_wait) < 0 && errno == EINTR)
			;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return fine;
}

static enum plumb_fate
fate_of(int why)
{
	return why == ENOSPC || why == EDQUOT || why == EFBIG ? PLUMB_FATE_NO_SPACE
	                                                      : PLUMB_FATE_CODE_NOT_WRITTEN;
}

enum plumb_fate
plumb_code_write(const char *folder, uint64_t hash, const void *image, size_t size, bool *made)
{
	char path[PATH_BYTES], other[PATH_BYTES + 64];
	enum plumb_fate fate = PLUMB_FATE_CODE_NOT_WRITTEN;
	int before = errno;

	*made = false;
	if (!path_of(path, folder, hash))
		return fate;
	/* With the same end, so that whoever removes the folder removes it. */
	snprintf(other, sizeof other, "%s.%ld" PLUMB_CODE_SUFFIX, path, (long)syscall(SYS_gettid));
	int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		fate = fate_of(errno);
		errno = before;
		return fate;
	}
	bool fine = write_quietly(fd, image, size);
	if (!fine)
		fate = fate_of(errno);
	close(fd);
	/* Not over a file that another process made meanwhile: that one is counted there. */
	if (fine && !link(other, path))
		*made = true;
	else if (fine && errno != EEXIST)
		*made = fine = !rename(other, path); /* a file system without links */
	unlink(other);
	errno = before;
	return fine ? PLUMB_FATE_ATTRIBUTED : fate;
}
