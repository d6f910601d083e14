/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUMB_COLLECT_MONITOR_NVTX_H
#define PLUMB_COLLECT_MONITOR_NVTX_H

/* Makes the environment name us as NVTX's tool, when it names none. */
void plumb_nvtx_offer(void);

#endif
