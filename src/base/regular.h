/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files whose names come from somebody else: a pipe or device of that name must not make us
 * wait. */
#ifndef PLUMB_BASE_REGULAR_H
#define PLUMB_BASE_REGULAR_H

/* Opens the regular file PATH of the open folder FOLDER (or AT_FDCWD) for reading. MORE: O_NOFOLLOW
 * or 0. -1 with errno; EINVAL: it is another kind of file, EISDIR: a folder, ELOOP: a link. */
int plumb_regular_open(int folder, const char *path, int more);

#endif
