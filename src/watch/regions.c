/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/regions.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "region/reader.h"

#define SETTLED UINT64_C(100000000) /* ns after which a folder's time stamp can be trusted */

static bool
is_known(const struct plumb_watch_regions *regions, ino_t inode)
{
	for (uint32_t i = 0; i < regions->regions.count; i++)
		if (regions->regions.items[i]->inode == inode)
			return true;
	return false;
}

/* A process that called exec has a region for each program that it ran: only the newest counts. */
static void
end_same_process(struct plumb_watch_regions *regions, struct plumb_watch_region *newer)
{
	for (uint32_t i = 0; i < regions->regions.count; i++) {
		struct plumb_watch_region *region = regions->regions.items[i];
		const struct plumb_region_header *a = plumb_watch_region_header(region);
		const struct plumb_region_header *b = plumb_watch_region_header(newer);
		if (region == newer || a->pid != b->pid)
			continue;
		(a->start_monotonic < b->start_monotonic ? region : newer)->over = true;
	}
}

/* False: the file is there, and the region in it is not yet. */
static bool
open_region(struct plumb_watch_regions *regions, int folder, const char *name)
{
	struct stat status = { 0 };
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return true;
	void *map = MAP_FAILED;
	bool known = fstat(fd, &status) == 0 && is_known(regions, status.st_ino);
	if (!known && S_ISREG(status.st_mode) && status.st_size > PLUMB_REGION_HEADER_SIZE)
		map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return known;
	struct plumb_region_header *header = map;
	struct plumb_watch_region *region = NULL, **place = NULL;
	if (!memcmp(header->magic, PLUMB_REGION_MAGIC, sizeof(header->magic)) &&
	    header->size == (uint64_t)status.st_size && header->pid)
		region = calloc(1, sizeof(*region));
	if (region)
		place = plumb_vec_add(&regions->regions);
	if (!place) {
		free(region);
		munmap(map, (size_t)status.st_size);
		return false;
	}
	*place = region;
	region->inode = status.st_ino;
	region->tree.size = (uint64_t)status.st_size;
	region->tree.region.header = header;
	end_same_process(regions, region);
	return true;
}

void
plumb_watch_regions_find(struct plumb_watch_regions *regions)
{
	struct timespec now;
	struct stat status;
	struct dirent *entry;
	if (stat(regions->folder, &status) != 0)
		return;
	uint64_t change =
		(uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
	DIR *folder = change == regions->folder_change ? NULL : opendir(regions->folder);
	if (!folder)
		return;
	/* A file that is made within the same tick of the file system's clock changes no time
	 * stamp. */
	clock_gettime(CLOCK_REALTIME, &now);
	if ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > change + SETTLED)
		regions->folder_change = change;
	while ((entry = readdir(folder)))
		if (plumb_region_name_ends(entry->d_name, PLUMB_REGION_SUFFIX) &&
		    !open_region(regions, dirfd(folder), entry->d_name))
			regions->folder_change = 0; /* making it may take long on a slow disk */
	closedir(folder);
}

struct plumb_record_thread *
plumb_watch_region_thread(const struct plumb_watch_region *region, plumb_id id)
{
	uint64_t offset = (uint64_t)id << 3;
	if (offset < PLUMB_REGION_HEADER_SIZE ||
	    offset + sizeof(struct plumb_record_thread) > region->tree.size)
		return NULL;
	struct plumb_record_thread *record = plumb_region_at(&region->tree.region, id);
	return record->head.type == PLUMB_RECORD_THREAD ? record : NULL;
}

void
plumb_watch_regions_free(struct plumb_watch_regions *regions)
{
	for (uint32_t i = 0; i < regions->regions.count; i++) {
		struct plumb_watch_region *region = regions->regions.items[i];
		munmap(plumb_watch_region_header(region), region->tree.size);
		plumb_watch_tree_free(&region->tree);
		free(region);
	}
	plumb_vec_free(&regions->regions);
}
