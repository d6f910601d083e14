/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that becomes another user (setpriv, su, os.setuid) loses the run folder, which belongs
 * to the user of `plumb run`. While it still may, it lets the new user in: the access control lists
 * of the run folder and of the control file get an entry for that one user. Where the file system
 * has no such lists, programs that cannot record are counted (exec.c, process.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/exec.h"
#include "region/control.h"

/* ---- access control lists, as Linux takes them: little-endian, entries in this order ---- */

#define ACCESS_LIST "system.posix_acl_access"
enum { VERSION = 2, OWNER = 1, USER = 2, GROUP = 4, MASK = 16, OTHER = 32, ANYBODY = -1 };
enum { USERS_MOST = 64 };

struct entry {
	uint16_t tag, permissions;
	uint32_t id;
};
struct list {
	uint32_t version;
	struct entry entries[USERS_MOST + 4];
};

/* Where USER's entry is or belongs among the COUNT ones. */
static size_t
place_of(const struct list *list, size_t count, uint32_t user)
{
	size_t at = 0;
	while (at < count && (list->entries[at].tag == OWNER ||
	                      (list->entries[at].tag == USER && list->entries[at].id < user)))
		at++;
	return at;
}

/* Fills in the list that a file of MODE has without one; returns how many entries. */
static size_t
list_of_mode(struct list *list, mode_t mode)
{
	list->version = VERSION;
	list->entries[0] = (struct entry){ OWNER, mode >> 6 & 7, (uint32_t)ANYBODY };
	list->entries[1] = (struct entry){ GROUP, mode >> 3 & 7, (uint32_t)ANYBODY };
	list->entries[2] = (struct entry){ MASK, 7, (uint32_t)ANYBODY };
	list->entries[3] = (struct entry){ OTHER, mode & 7, (uint32_t)ANYBODY };
	return 4;
}

static void
allow_user(const char *path, uint32_t user, uint16_t permissions)
{
	struct list list;
	struct stat status;
	ssize_t bytes = getxattr(path, ACCESS_LIST, &list, sizeof list);
	size_t count;
	if (bytes > (ssize_t)sizeof list.version && list.version == VERSION)
		count = ((size_t)bytes - sizeof list.version) / sizeof *list.entries;
	else if (!lstat(path, &status) && !S_ISLNK(status.st_mode))
		count = list_of_mode(&list, status.st_mode);
	else
		return;
	size_t at = place_of(&list, count, user);
	if (at < count && list.entries[at].tag == USER && list.entries[at].id == user)
		return;
	if (count < 4 || count >= sizeof list.entries / sizeof *list.entries)
		return;
	memmove(&list.entries[at + 1], &list.entries[at], (count - at) * sizeof *list.entries);
	list.entries[at] = (struct entry){ USER, permissions, user };
	(void)setxattr(path, ACCESS_LIST, &list,
	               sizeof list.version + (count + 1) * sizeof *list.entries, 0);
}

void
plumb_exec_allow(unsigned user)
{
	const char *folder = plumb_collector_options()->folder;
	char path[PATH_MAX + 16];
	int saved = errno;
	struct stat status;
	if (!folder[0] || user == (unsigned)-1 || user == geteuid() || stat(folder, &status) ||
	    status.st_uid == user) {
		errno = saved;
		return;
	}
	if (geteuid() == status.st_uid || !geteuid()) {
		allow_user(folder, user, 7);
		snprintf(path, sizeof path, "%s/" PLUMB_CONTROL_NAME, folder);
		allow_user(path, user, 6);
	}
	errno = saved;
}

/* ---- what programs call ---- */

PLUMB_EXPORT int user_set(uid_t) __asm__("setuid");
PLUMB_EXPORT int user_set_effective(uid_t) __asm__("seteuid");
PLUMB_EXPORT int user_set_two(uid_t, uid_t) __asm__("setreuid");
PLUMB_EXPORT int user_set_three(uid_t, uid_t, uid_t) __asm__("setresuid");

static void *
find_real(void *_Atomic *function, const char *name)
{
	if (!*function)
		*function = plumb_real_dlsym(RTLD_NEXT, name);
	return *function;
}

int
user_set(uid_t user)
{
	static void *_Atomic found;
	plumb_exec_allow(user);
	return ((int (*)(uid_t))find_real(&found, "setuid"))(user);
}

int
user_set_effective(uid_t user)
{
	static void *_Atomic found;
	plumb_exec_allow(user);
	return ((int (*)(uid_t))find_real(&found, "seteuid"))(user);
}

int
user_set_two(uid_t own, uid_t effective)
{
	static void *_Atomic found;
	plumb_exec_allow(own);
	plumb_exec_allow(effective);
	return ((int (*)(uid_t, uid_t))find_real(&found, "setreuid"))(own, effective);
}

int
user_set_three(uid_t own, uid_t effective, uid_t saved)
{
	static void *_Atomic found;
	plumb_exec_allow(own);
	plumb_exec_allow(effective);
	return ((int (*)(uid_t, uid_t, uid_t))find_real(&found, "setresuid"))(own, effective,
	                                                                      saved);
}
