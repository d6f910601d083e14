/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of a run's processes, mapped while the processes write them. All who look at running
 * processes share one.
 *
 *	struct plumb_watch_regions regions = { .folder = folder };
 *	plumb_watch_regions_find(&regions);         // now and then: adds what is new
 *	plumb_watch_regions_free(&regions);
 */
#ifndef PLUMB_WATCH_REGIONS_H
#define PLUMB_WATCH_REGIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "watch/tree.h"

struct plumb_watch_region {
	ino_t inode; /* of its file */
	struct plumb_watch_tree tree;
	bool over; /* its process called exec, and has a newer region */
};

/* Set `folder`, which must outlive it. Regions are only added, so their numbers stay. */
struct plumb_watch_regions {
	const char *folder;
	PLUMB_VEC(struct plumb_watch_region *) regions;
	uint64_t folder_change; /* the folder's time stamp when it was read */
};

static inline struct plumb_region_header *
plumb_watch_region_header(const struct plumb_watch_region *region)
{
	return region->tree.region.header;
}

/* The THREAD record ID of the program's region, or NULL if none can lie there. */
struct plumb_record_thread *
plumb_watch_region_thread(const struct plumb_watch_region *region, plumb_id id);

void plumb_watch_regions_find(struct plumb_watch_regions *regions);
void plumb_watch_regions_free(struct plumb_watch_regions *regions);

#endif
