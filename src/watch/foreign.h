/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of another process of this user. The kernel reads it, so an address that does not
 * exist gives an error and no fault. Do not trust what was read.
 *
 *	plumb_foreign_open(&memory, pid);       // forgets what was read before
 *	if (plumb_foreign_read(&memory, address, &value, sizeof value))
 *		…
 */
#ifndef PLUMB_WATCH_FOREIGN_H
#define PLUMB_WATCH_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLUMB_FOREIGN_PAGE = 4096, PLUMB_FOREIGN_PAGES = 64 };

/* Pages are kept from their first read until the next open: use it for memory that does not change
 * in between. */
struct plumb_foreign {
	uint32_t pid;
	int error; /* why the last read failed: EFAULT, EPERM, ESRCH, … */
	uint64_t at[PLUMB_FOREIGN_PAGES];
	char pages[PLUMB_FOREIGN_PAGES][PLUMB_FOREIGN_PAGE];
};

void plumb_foreign_open(struct plumb_foreign *memory, uint32_t pid);
/* Reads the pages that are kept again, in one call. Those that are gone are forgotten. */
void plumb_foreign_refresh(struct plumb_foreign *memory);
/* False: not all of it can be read, and what TO holds is undefined. */
bool plumb_foreign_read(struct plumb_foreign *memory, uint64_t address, void *to, size_t bytes);

static inline bool
plumb_foreign_pointer(struct plumb_foreign *memory, uint64_t address, uint64_t *value)
{
	return plumb_foreign_read(memory, address, value, sizeof *value);
}

#endif
