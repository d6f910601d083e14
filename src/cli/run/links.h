/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the GPUs of this machine are linked with each other and with the host, by NVML. It is asked
 * in a child process, after the program has ended.
 */
#ifndef PLUMB_CLI_RUN_LINKS_H
#define PLUMB_CLI_RUN_LINKS_H

#include "region/writer.h"

/* Writes a DEVICE_LINK record for each pair, or why there are none into the environment. */
void plumb_links_write(struct plumb_arena *arena);

#endif
