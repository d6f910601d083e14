/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUMB_COLLECT_MONITOR_TORCH_MEMORY_H
#define PLUMB_COLLECT_MONITOR_TORCH_MEMORY_H

#include "collect/collector.h"

/* Once PyTorch is loaded: writes what is off of its memory, and why, into the environment. */
void plumb_torch_memory_describe(struct plumb_thread *thread);

#endif
