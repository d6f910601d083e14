/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/share.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/hash.h"
#include "region/layout.h"

#define ANONYMOUS_FILES 0x09041934 /* ANON_INODE_FS_MAGIC: one inode for all of them */

uint64_t
plumb_share_file_key(int fd)
{
	struct stat status;
	struct statfs system;
	int saved = errno;
	uint64_t key = PLUMB_KEY_OF_FILE;
	if (!fstat(fd, &status) && !S_ISCHR(status.st_mode) && status.st_ino &&
	    !fstatfs(fd, &system) && system.f_type != ANONYMOUS_FILES) {
		uint64_t file[] = { status.st_dev, status.st_ino };
		key = plumb_hash_bytes(file, sizeof file) | 1;
	}
	errno = saved;
	return key;
}
