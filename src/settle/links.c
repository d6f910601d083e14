/* SPDX-License-Identifier: Apache-2.0 */
/* How GPUs are linked, as `plumb run` read it on each host → rows of the profile, as far as one end
 * is a device of the run. */
#include "settle/settle_private.h"

void
plumb_settle_link(struct plumb_settle_region *region, const struct plumb_record_device_link *record)
{
	struct plumb_settler *settler = region->settler;
	struct plumb_device_link *added, row = {
		.uuid = plumb_settle_uuid(settler->builder, record->uuid),
		.peer = plumb_settle_uuid(settler->builder, record->peer),
		.kind = record->kind,
		.path = PLUMB_NONE,
		.links = plumb_settle_number32(record->links),
		.generation = plumb_settle_number32(record->generation),
		.bytes_per_second = plumb_settle_number(record->bytes_per_second),
		.peer_access = plumb_settle_number32(record->peer_access),
	};

	if (row.uuid == PLUMB_NONE || !row.kind || row.kind >= PLUMB_LINK_KIND_COUNT ||
	    record->path >= PLUMB_LINK_PATH_COUNT || row.peer_access > 1) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
		                   "links of devices", 1);
		return;
	}
	if (record->path)
		row.path =
			plumb_builder_text(settler->builder, plumb_link_path_names[record->path]);
	added = plumb_vec_add(&settler->links);
	if (added)
		*added = row;
	else
		settler->no_memory = true;
}

static bool
is_device(struct plumb_builder *builder, uint32_t uuid)
{
	uint32_t count = plumb_builder_device_count(builder);

	for (uint32_t i = 0; uuid != PLUMB_NONE && i < count; i++)
		if (plumb_builder_get_device(builder, i)->uuid == uuid)
			return true;
	return false;
}

void
plumb_settle_links(struct plumb_settler *settler)
{
	for (uint32_t i = 0; i < settler->links.count; i++) {
		const struct plumb_device_link *link = &settler->links.items[i];

		/* Several ranks' launchers read the same: equal rows become one. */
		if (is_device(settler->builder, link->uuid) ||
		    is_device(settler->builder, link->peer))
			plumb_builder_device_link(settler->builder, link);
	}
}
