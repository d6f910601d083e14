/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb run` noted of all regions while the program ran: the file `copies` of the run folder.
 * The run is cut into parts, one after another. An entry says what one record of a region added up
 * in one part.
 *
 *   struct plumb_copies_header | parts | regions | entries, by region, then part, then id
 *
 * Everything in it is untrusted input to a reader.
 */
#ifndef PLUMB_REGION_COPIES_H
#define PLUMB_REGION_COPIES_H

#include "region/layout.h"

#define PLUMB_COPIES_NAME "copies"
#define PLUMB_COPIES_MAGIC "PLUMBCP\n"
#define PLUMB_COPIES_VERSION 2u
#define PLUMB_COPIES_PARTS 48u /* more parts are not kept */

struct plumb_copies_header {
	char magic[8];
	uint32_t version, parts, regions, entries;
	uint64_t looks;
};
struct plumb_copies_part {
	uint64_t start, end;            /* CLOCK_MONOTONIC ns */
	uint64_t first_work, last_work; /* where operators or GPU work ended; both 0: nowhere */
};
struct plumb_copies_region {
	uint64_t start_monotonic; /* as its header says */
	uint32_t pid;
	uint32_t entries;
};

/* What of a record an entry is of. */
enum plumb_copies_which {
	PLUMB_COPIES_ALL = 0, /* of VALUE, VARIANT and SHAPE: all there is */
	/* Of DEVICE_TOTAL: */
	PLUMB_COPIES_KERNELS = 1, /* count and ns; likewise the next two */
	PLUMB_COPIES_COPIES = 2,
	PLUMB_COPIES_SETS = 3,
	PLUMB_COPIES_COPY_BYTES = 4,
	PLUMB_COPIES_SET_BYTES = 5,
	PLUMB_COPIES_BUSY = 6,
	/* Of MEMORY: */
	PLUMB_COPIES_ALLOCATED = 7,
	PLUMB_COPIES_FREED = 8,
};
struct plumb_copies_entry {
	plumb_id id;
	uint16_t part, which;
	int64_t sum;
	uint64_t count;
	double m2;
};
_Static_assert(sizeof(struct plumb_copies_entry) == 32, "entry of copies");

#endif
