/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a process launched work on a GPU: a file that the counter (count/) fills in, launch by
 * launch, and `plumb run --measure-cost` reads. The file has its full size from the beginning, but
 * only the first `room` entries have a place on the disk: pages are made present before they are
 * written, so a full disk ends the counting and nothing else.
 *
 *   struct plumb_launches_header | uint64_t entries[]          (base/launch_entry.h)
 *
 * Everything in it is untrusted input to a reader.
 */
#ifndef PLUMB_REGION_LAUNCHES_H
#define PLUMB_REGION_LAUNCHES_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/launch_entry.h"

/* The variable that tells the counter where its files go: what they begin with. Unset: it counts
 * nothing. "<that><pid>-<number>.launches" is the file of a process. */
#define PLUMB_ENV_LAUNCHES "PLUMB_LAUNCHES"
#define PLUMB_LAUNCHES_SUFFIX ".launches"
#define PLUMB_LAUNCHES_MAGIC "PLUMBLN\n"
#define PLUMB_LAUNCHES_VERSION 1u
#define PLUMB_LAUNCHES_HEADER_SIZE 4096u
/* 256 MiB; later launches are counted and have no time. */
#define PLUMB_LAUNCHES_MOST (UINT64_C(1) << 25)

struct plumb_launches_header {
	char magic[8];
	uint32_t version;
	uint32_t pid;
	int32_t rank; /* -1: none */
	uint32_t pad;
	uint64_t start;         /* CLOCK_MONOTONIC ns of the first launch */
	_Atomic uint64_t count; /* launches */
	_Atomic uint64_t room;  /* entries that may be written */
};
_Static_assert(sizeof(struct plumb_launches_header) <= PLUMB_LAUNCHES_HEADER_SIZE, "one page");

#endif
