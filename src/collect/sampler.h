/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples CPU time (`plumb run --cpu`). Each thread has a timer on its own CPU clock, so the timer
 * never interrupts a thread that waits. The handler adds the CPU time since the last sample to the
 * context that it interrupted: Python, operators and native frames, as far as it can read them.
 *
 * Everything here that runs in the handler is async-signal-safe: it neither locks nor allocates.
 */
#ifndef PLUMB_COLLECT_SAMPLER_H
#define PLUMB_COLLECT_SAMPLER_H

#include "collect/collector.h"

/* Prepares the calling thread when the library is loaded, if the run takes samples. */
void plumb_sampler_begin(void);
/* The same in a forked child. */
void plumb_sampler_forked(void);
/* The process ends: records the CPU time that no sample covers. */
void plumb_sampler_end(void);

#endif
