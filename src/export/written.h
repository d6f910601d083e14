/* SPDX-License-Identifier: Apache-2.0 */
/* Tells files that `plumb export` wrote from others, so that only those are replaced unasked. */
#ifndef PLUMB_EXPORT_WRITTEN_H
#define PLUMB_EXPORT_WRITTEN_H

#include <stdbool.h>

#define PLUMB_EXPORT_MARK "plumb" /* pprof: the comment in gzip's header */

/* Did `plumb export` write the file PATH, in any format? False if the file cannot be read. Folded
 * stacks have no mark, so those of other tools look the same. */
bool plumb_export_wrote(const char *path);

#endif
