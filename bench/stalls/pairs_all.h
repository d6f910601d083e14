/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of pairs, a file each. */
#ifndef PLUMB_BENCH_STALLS_PAIRS_ALL_H
#define PLUMB_BENCH_STALLS_PAIRS_ALL_H

#include "pairs.h"

void pairs_loops(pairs &all); /* pairs_loops.cu */
void pairs_apps(pairs &all);  /* pairs_apps.cu */

#endif
