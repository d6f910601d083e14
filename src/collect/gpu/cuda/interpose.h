/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI functions that plumb stands in for, so that it notices when the program wants the slot. */
#ifndef PLUMB_COLLECT_GPU_CUDA_INTERPOSE_H
#define PLUMB_COLLECT_GPU_CUDA_INTERPOSE_H

/* What a look-up of SYMBOL by the program should find instead of CUPTI's own; NULL: its own. */
void *plumb_cuda_interpose(const char *symbol);

/* The same of NVSHMEM's functions that allocate (nvshmem.c). */
void *plumb_nvshmem_interpose(const char *symbol);

#endif
