/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ names as people write them. __cxa_demangle is linked statically into the command-line
 * program, and only there: the collector has no C++ runtime.
 */
#ifndef PLUMB_CLI_DEMANGLE_H
#define PLUMB_CLI_DEMANGLE_H

/* The demangled form of NAME, malloced, or NULL where it is not a mangled name. ".kd" and " [clone
 * .kd]" at its end, by which AMD marks kernels, are cut off. */
char *plumb_demangle(const char *name);

#endif
