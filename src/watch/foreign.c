/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/foreign.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define NOTHING UINT64_MAX /* no page begins there */

void
plumb_foreign_open(struct plumb_foreign *memory, uint32_t pid)
{
	memory->pid = pid;
	memory->error = 0;
	for (int i = 0; i < PLUMB_FOREIGN_PAGES; i++)
		memory->at[i] = NOTHING;
}

static bool
read_now(struct plumb_foreign *memory, uint64_t address, void *to, size_t bytes)
{
	struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)address, bytes };
	ssize_t got = process_vm_readv((pid_t)memory->pid, &here, 1, &there, 1, 0);

	if (got == (ssize_t)bytes)
		return true;
	memory->error = got < 0 ? errno : EFAULT;
	return false;
}

void
plumb_foreign_refresh(struct plumb_foreign *memory)
{
	struct iovec here[PLUMB_FOREIGN_PAGES], there[PLUMB_FOREIGN_PAGES];
	int slots[PLUMB_FOREIGN_PAGES];
	unsigned long count = 0;

	for (int i = 0; i < PLUMB_FOREIGN_PAGES; i++) {
		if (memory->at[i] == NOTHING)
			continue;
		here[count] = (struct iovec){ memory->pages[i], PLUMB_FOREIGN_PAGE };
		there[count] =
			(struct iovec){ (void *)(uintptr_t)(memory->at[i] * PLUMB_FOREIGN_PAGE),
			                PLUMB_FOREIGN_PAGE };
		slots[count++] = i;
	}
	ssize_t got = process_vm_readv((pid_t)memory->pid, here, count, there, count, 0);
	size_t whole = got > 0 ? (size_t)got / PLUMB_FOREIGN_PAGE : 0;
	for (size_t i = whole; i < count; i++)
		memory->at[slots[i]] = NOTHING;
}

static const char *
page_at(struct plumb_foreign *memory, uint64_t address)
{
	uint64_t page = address / PLUMB_FOREIGN_PAGE, slot = page % PLUMB_FOREIGN_PAGES;

	if (memory->at[slot] != page) {
		memory->at[slot] = NOTHING;
		if (!read_now(memory, page * PLUMB_FOREIGN_PAGE, memory->pages[slot],
		              PLUMB_FOREIGN_PAGE))
			return NULL;
		memory->at[slot] = page;
	}
	return memory->pages[slot];
}

bool
plumb_foreign_read(struct plumb_foreign *memory, uint64_t address, void *to, size_t bytes)
{
	char *out = to;

	if (address < PLUMB_FOREIGN_PAGE || address + bytes < address) {
		memory->error = EFAULT;
		return false;
	}
	if (bytes > PLUMB_FOREIGN_PAGE)
		return read_now(memory, address, to, bytes);
	while (bytes) {
		size_t at = address % PLUMB_FOREIGN_PAGE, some = PLUMB_FOREIGN_PAGE - at;
		const char *page = page_at(memory, address);
		if (!page)
			return false;
		if (some > bytes)
			some = bytes;
		memcpy(out, page + at, some);
		out += some;
		address += some;
		bytes -= some;
	}
	return true;
}
