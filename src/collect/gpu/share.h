/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of memory that processes share by the file descriptor of a handle. */
#ifndef PLUMB_COLLECT_GPU_SHARE_H
#define PLUMB_COLLECT_GPU_SHARE_H

#include <stdint.h>

/*
 * The same in each process that has the file, whatever its number there. Files of an own inode (of
 * memory, DMA buffers) are known by it. Others share theirs: a GPU driver's device file, of which
 * each open one may stand for other memory. Their key is PLUMB_KEY_OF_FILE: settle goes by device
 * and size.
 */
uint64_t plumb_share_file_key(int fd);

#endif
