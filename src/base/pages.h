/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for very many bytes that grows without a second copy of itself, and whose front is given
 * back while the rest is still read.
 *
 *	struct plumb_pages pages = { 0 };
 *	struct span *span = plumb_pages_add(&pages, sizeof *span);  // zeroed; NULL: no memory
 *	(struct span *)pages.data, pages.bytes
 *	plumb_pages_drop(&pages, bytes);  // the first bytes are not read any more
 *	plumb_pages_free(&pages);
 */
#ifndef PLUMB_BASE_PAGES_H
#define PLUMB_BASE_PAGES_H

#include <stddef.h>

struct plumb_pages {
	char *data; /* moves when it grows */
	size_t bytes;
	size_t room, dropped; /* private; multiples of a page */
};

void *plumb_pages_grow(struct plumb_pages *pages, size_t bytes);
void plumb_pages_drop(struct plumb_pages *pages, size_t bytes);
void plumb_pages_free(struct plumb_pages *pages);

static inline void *
plumb_pages_add(struct plumb_pages *pages, size_t bytes)
{
	if (pages->room - pages->bytes < bytes)
		return plumb_pages_grow(pages, bytes);
	pages->bytes += bytes;
	return pages->data + pages->bytes - bytes;
}

#endif
