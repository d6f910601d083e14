/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/table.h"

#include <sys/mman.h>

void *
plumb_map(size_t bytes, bool reserve)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (reserve ? MAP_NORESERVE : MAP_POPULATE);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void
table_insert(struct plumb_id_table *table, uint32_t hash, uint32_t id)
{
	uint32_t at = hash & table->mask;
	while (table->slots[at].id)
		at = (at + 1) & table->mask;
	table->slots[at] = (struct plumb_id_table_slot){ hash, id };
	table->count++;
}

bool
plumb_id_table_add(struct plumb_id_table *table, uint32_t hash, uint32_t id)
{
	/* At most half full, so that a walk is short. */
	if (!table->slots || table->count >= table->mask / 2) {
		uint32_t slots = table->slots ? (table->mask + 1) * 2 : 1024;
		struct plumb_id_table larger = {
			.slots = plumb_map(slots * sizeof *larger.slots, true),
			.mask = slots - 1,
		};
		if (!larger.slots)
			return false;
		for (uint32_t i = 0; table->slots && i <= table->mask; i++)
			if (table->slots[i].id)
				table_insert(&larger, table->slots[i].hash, table->slots[i].id);
		if (table->slots)
			munmap(table->slots, (table->mask + 1) * sizeof *table->slots);
		*table = larger;
	}
	table_insert(table, hash, id);
	return true;
}
