/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ names as people write them. __cxa_demangle is linked statically into the command-line
 * program, and only there: the collector has no C++ runtime.
 */
#ifndef PLUMB_CLI_DEMANGLE_H
#define PLUMB_CLI_DEMANGLE_H

/* The demangled form of NAME, malloced; NULL: NAME is not mangled. AMD marks kernels with ".kd" or
 * " [clone .kd]" at the end: this is cut off. */
char *plumb_demangle(const char *name);

#endif
