/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE ((size_t)2 << 20) /* the pages that a system has for large rooms */

void *
plumb_pages_grow(struct plumb_pages *pages, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = pages->room + pages->room / 2 + bytes;
	bool large = room >= 2 * LARGE;
	char *data;
	page = large ? LARGE : page;
	room = (room + page - 1) / page * page;
	if (room < pages->room || pages->dropped) /* nothing is added to what is being given back */
		return NULL;
	data = pages->data ? mremap(pages->data, pages->room, room, MREMAP_MAYMOVE)
	                   : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                          -1, 0);
	if (data == MAP_FAILED)
		return NULL;
	if (large)
		madvise(data, room, MADV_HUGEPAGE); /* a wish: the system has far less to do */
	pages->data = data;
	pages->room = room;
	pages->bytes += bytes;
	return data + pages->bytes - bytes;
}

void
plumb_pages_drop(struct plumb_pages *pages, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), upto = bytes / page * page;
	if (upto > pages->dropped && upto <= pages->room) {
		munmap(pages->data + pages->dropped, upto - pages->dropped);
		pages->dropped = upto;
	}
}

void
plumb_pages_free(struct plumb_pages *pages)
{
	if (pages->room > pages->dropped)
		munmap(pages->data + pages->dropped, pages->room - pages->dropped);
	*pages = (struct plumb_pages){ 0 };
}
