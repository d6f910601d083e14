/* SPDX-License-Identifier: Apache-2.0 */
#include "view/part.h"

void
plumb_part_json(struct plumb_json *json, const struct plumb_profile *p,
                const struct plumb_division *division, uint32_t part)
{
	const struct plumb_frame *frame;

	plumb_json_key(json, "divided_by");
	if (part >= p->frames_count) {
		plumb_json_null(json);
		return;
	}
	frame = &p->frames[part];
	plumb_json_object(json);
	plumb_json_key_text(json, "kind", plumb_frame_kind_names[frame->kind]);
	plumb_json_key_text(json, "name",
	                    frame->kind == PLUMB_FRAME_PYTHON
	                            ? plumb_frame_label(p, part)
	                            : plumb_division_name(p, division, part));
	plumb_json_key_text(json, "file", plumb_text(p, frame->file));
	plumb_json_key_line(json, "line", frame->kind == PLUMB_FRAME_PYTHON ? frame->line : 0);
	plumb_json_key_quantity(json, "count", plumb_division_count(division, part));
	plumb_json_end(json);
}
