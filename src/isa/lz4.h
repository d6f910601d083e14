/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks one block of LZ4, the form in which CUDA's tools before 12.8 pack modules.
 */
#ifndef PLUMB_ISA_LZ4_H
#define PLUMB_ISA_LZ4_H

#include <stddef.h>

/* Writes at most ROOM bytes TO. Returns how many; 0: the block is damaged, or larger. */
size_t plumb_lz4_unpack(const void *block, size_t size, void *to, size_t room);

#endif
