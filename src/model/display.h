/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions, as people write them. */
#ifndef PLUMB_MODEL_DISPLAY_H
#define PLUMB_MODEL_DISPLAY_H

#include <stddef.h>

/* How many bytes of a demangled NAME come before its parameters; all if it has none. "operator()"
 * and "(anonymous namespace)" are part of a name. */
size_t plumb_name_without_parameters(const char *name);

#endif
