/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which native functions are your code, in programs without Python (C, C++, Rust, Go).
 *
 * A native function is your code unless one of these is true:
 *   - Python called it, a process that loaded its program or library ran Python, or the profile has
 *     Python frames and does not say which process loaded it. There the Python line is the line of
 *     your code.
 *   - Its program or library belongs to the system, to a vendor or to a package manager: it is
 *     under /lib, /usr, /opt/…, site-packages and so on, or is called like a well-known library.
 *   - It has a source file under such a folder: templates of C++, Rust's crates, Go's own packages.
 *   - It has no source file, and another function of its program or library has one of yours. A
 *     runtime that is linked statically is told from your code by that.
 *   - Its name is that of a well-known library (cudaLaunchKernel, std::, at::, runtime.), it is the
 *     stub that nvcc makes for a kernel, or it has no name.
 * A function that was inlined counts by its source file, and by the program or library around it.
 */
#ifndef PLUMB_MODEL_USER_NATIVE_H
#define PLUMB_MODEL_USER_NATIVE_H

#include "model/user_code.h"

/* Is FILE, a source file, one of a system, a package or a well-known library? */
bool plumb_user_is_library_file(const char *file);

/* Sets OWN, by frame, for native functions. Entries of the rule USER_CODE match the source file, or
 * the path of the program or library if there is none. False: no memory. */
bool plumb_user_native(const struct plumb_profile *profile, const struct plumb_user_code *user_code,
                       unsigned char *own);

#endif
