/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, sets, collectives and ranges as tools name them → as plumb names them. */
#ifndef PLUMB_IMPORT_COPIES_H
#define PLUMB_IMPORT_COPIES_H

#include "import/trace.h"

/*
 * The frame of a copy or set by NAME: "Memcpy HtoD (Pageable -> Device)", "[CUDA memcpy HtoD]",
 * "CopyHostToDevice", "MEMORY_COPY_HOST_TO_DEVICE", "Memset (Device)", "FillBuffer". One that
 * cannot be told is a copy from and to unknown.
 */
uint32_t plumb_import_copy(struct plumb_trace *trace, struct plumb_slice name);

/* The string of a collective's name: "allreduce", "_allgather_base", "ncclAllReduce" → "AllReduce",
 * …; one that is not known stays as it is. */
uint32_t plumb_import_collective(struct plumb_trace *trace, struct plumb_slice name);

/* The frame of an NVTX or roctx range. torch.autograd.profiler.emit_nvtx writes "aten::mm, seq = 3,
 * op_id = 7, sizes = …". These numbers would make a context for each call, so they are cut off. A
 * range with a sequence number, or with a name space and no spaces, is an operator. All others
 * (record_function, steps) are ranges. */
uint32_t plumb_import_range(struct plumb_trace *trace, struct plumb_slice name);

#endif
