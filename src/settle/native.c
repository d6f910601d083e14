/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames: their code objects, which nodes name where others name a file. */
#include "settle/settle_private.h"

uint32_t
plumb_settle_code(struct plumb_settle_region *region, plumb_id id)
{
	static const char digits[] = "0123456789abcdef";
	const struct plumb_record_code *code =
		plumb_region_get(region->reader, id, PLUMB_RECORD_CODE, sizeof *code);
	char text[2 * sizeof code->build_id];
	uint32_t bytes;

	if (!id)
		return PLUMB_NONE; /* code that no file holds */
	if (!code || code->build_id_bytes > sizeof code->build_id) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, "code objects",
		                   1);
		return PLUMB_NONE;
	}
	bytes = code->build_id_bytes;
	if (!bytes)
		return PLUMB_NONE;
	for (uint32_t i = 0; i < bytes; i++) {
		text[2 * i] = digits[code->build_id[i] >> 4];
		text[2 * i + 1] = digits[code->build_id[i] & 15];
	}
	return plumb_builder_string(region->settler->builder, text, (size_t)2 * bytes);
}
