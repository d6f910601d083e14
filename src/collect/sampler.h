/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time by samples (`plumb run --cpu`). Each thread has a timer on its own CPU clock, so a
 * thread that waits is never interrupted; the handler adds the CPU time since the last sample to
 * the context that was interrupted: Python, operators and native frames as far as they can be read
 * there.
 *
 * Everything here that runs in the handler is async-signal-safe: it neither locks nor allocates.
 */
#ifndef PLUMB_COLLECT_SAMPLER_H
#define PLUMB_COLLECT_SAMPLER_H

#include "collect/collector.h"

/* At load: prepares the calling thread when samples are asked for. */
void plumb_sampler_begin(void);
/* Likewise in a forked child. */
void plumb_sampler_forked(void);
/* The process ends: tells the CPU time that no sample stands for. */
void plumb_sampler_end(void);

#endif
