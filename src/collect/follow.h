/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes of a run are profiled (`plumb run --follow`). Private to src/collect. */
#ifndef PLUMB_COLLECT_FOLLOW_H
#define PLUMB_COLLECT_FOLLOW_H

#include <stdbool.h>

/* Call it when the library is loaded, with the option's value: "", "all", "none" or an extended
 * regular expression. */
void plumb_follow_load(const char *which);
/* Is the calling process profiled? The program that `plumb run` started always is. */
bool plumb_follow_process(void);
/* May processes that the program starts be profiled? */
bool plumb_follow_others(void);

#endif
