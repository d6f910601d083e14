/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of GPU code that the program loads, kept in files beside the region (region/code.h), for
 * whatever needs the machine code later: samples of program counters do. It knows no vendor's
 * tool: whoever sees a module being loaded hands its image over.
 */
#ifndef PLUMB_COLLECT_GPU_CODE_H
#define PLUMB_COLLECT_GPU_CODE_H

#include "collect/collector.h"

/* The module at IMAGE was loaded; returns its hash, which is its name among samples. Writes the
 * file and the record if they are not there yet. Any thread, outside of plumb_enter. */
uint64_t plumb_code_keep(const void *image, size_t size);
/* Writes the records that plumb_code_keep could not, because its thread was in a callback. */
void plumb_code_tell(struct plumb_thread *thread);
/* Another recording: forgets what was kept. A forked child: likewise, and what the parent held. */
void plumb_code_renew(void);

#endif
