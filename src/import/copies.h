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

/* The kind of memory that TEXT begins with, in lower case ("device_static"); NONE: with none. */
enum plumb_memory_kind plumb_import_memory(struct plumb_slice text);
/* Likewise; NONE too if it tells only "host" or "unknown". */
static inline enum plumb_memory_kind
plumb_import_exact_memory(struct plumb_slice text)
{
	enum plumb_memory_kind kind = plumb_import_memory(text);
	return kind <= PLUMB_MEMORY_MANAGED ? kind : PLUMB_MEMORY_NONE;
}
/* As unitrace writes it, "(M2D)": M is memory of the host's own, H what the driver allocated there,
 * S moves by itself, D is the device's. */
enum plumb_memory_kind plumb_import_memory_letter(char letter);

/* The ends of work on TRACK if its FRAME is a copy to another device: from TRACK's to the device
 * TO of its process; PLUMB_UNKNOWN: the file does not say. */
struct plumb_ends
plumb_import_ends(struct plumb_trace *trace, uint32_t frame, uint32_t track, int64_t to);

/* The string of a collective's name: "allreduce", "_allgather_base", "ncclAllReduce" → "AllReduce",
 * …; one that is not known stays as it is. */
uint32_t plumb_import_collective(struct plumb_trace *trace, struct plumb_slice name);

/* The frame of an NVTX or roctx range. torch.autograd.profiler.emit_nvtx writes "aten::mm, seq = 3,
 * op_id = 7, sizes = …". These numbers would make a context for each call, so they are cut off. A
 * range with a sequence number, or with a name space and no spaces, is an operator. All others
 * (record_function, steps) are ranges. */
uint32_t plumb_import_range(struct plumb_trace *trace, struct plumb_slice name);

#endif
