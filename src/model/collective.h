/* SPDX-License-Identifier: Apache-2.0 */
/* Which collective operation a kernel of NCCL or RCCL runs. */
#ifndef PLUMB_MODEL_COLLECTIVE_H
#define PLUMB_MODEL_COLLECTIVE_H

/*
 * The operation that the KERNEL (its name, mangled or not) is named after: "AllReduce",
 * "AllGather", "ReduceScatter", "Broadcast", "Reduce", "SendRecv", "AlltoAll", "Gather", "Scatter";
 * "Generic" for one that stands for any operation, and for one of a name that is not known. NULL:
 * no kernel of these libraries.
 */
const char *plumb_collective_name(const char *kernel);

#endif
