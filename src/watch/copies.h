/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the values in the regions of running programs now and then, and cuts the run into parts
 * where what the programs do changes. The programs notice nothing. Memory and time are bounded: at
 * most PLUMB_COPIES_PARTS parts and PLUMB_COPIES_MEMORY bytes. The parts that differ least become
 * one. If there are more values than the memory holds, there are no parts.
 *
 *	struct plumb_copies *c = plumb_copies_new(&regions, host);
 *	while (…)
 *		milliseconds = plumb_copies_look(c);
 *	told = plumb_copies_end(c);           // after the program's end: writes the file
 */
#ifndef PLUMB_WATCH_COPIES_H
#define PLUMB_WATCH_COPIES_H

#include <stdint.h>

#include "base/words.h"
#include "watch/host.h"
#include "watch/regions.h"

#define PLUMB_COPIES_MEMORY (UINT64_C(256) << 20)

struct plumb_copies;

/* REGIONS are the run's, and HOST looks at them before each look; it may be NULL. Both must outlive
 * the result. The first part begins now. NULL: no memory. */
struct plumb_copies *plumb_copies_new(struct plumb_watch_regions *regions, struct plumb_host *host);
/* Looks if it is time. Returns the milliseconds until the next look. */
int plumb_copies_look(struct plumb_copies *copies);

/* For the ledger. */
struct plumb_copies_told {
	enum plumb_fate fate; /* of the looks: ATTRIBUTED, or why windows are unknown */
	uint64_t looks;
	uint64_t bytes, bytes_most, bytes_bound; /* at the end; at most; allowed */
};
/* Looks for the last time, writes `copies` into the folder, and frees. Without memory or room there
 * is no file, and windows are unknown. NULL is what plumb_copies_new gave without memory. */
struct plumb_copies_told plumb_copies_end(struct plumb_copies *copies);

#endif
