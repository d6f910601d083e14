/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/traffic/traffic.h"
#include "base/format.h"
#include "model/user_code.h"

/* ---- parties ---- */

/* Is there another device with the ordinal of DEVICE? Then the number alone says too little. */
static bool
is_shared(const struct plumb_profile *p, uint32_t device)
{
	for (uint32_t i = 0; i < p->devices_count; i++)
		if (i != device && p->devices[i].ordinal == p->devices[device].ordinal)
			return true;
	return false;
}

char *
plumb_traffic_party(const struct plumb_traffic *traffic, uint32_t party,
                    char text[PLUMB_PARTY_SIZE])
{
	const struct plumb_profile *p = traffic->profile;
	const struct plumb_device *device;

	if (party >= p->devices_count) {
		snprintf(text, PLUMB_PARTY_SIZE, "%s",
		         party == traffic->host    ? "host"
		         : party == traffic->group ? "its group"
		                                   : "unknown");
		return text;
	}
	device = &p->devices[party];
	if (device->ordinal >= 0 && !is_shared(p, party))
		snprintf(text, PLUMB_PARTY_SIZE, "GPU %" PRId64, device->ordinal);
	else if (device->rank != PLUMB_UNKNOWN)
		snprintf(text, PLUMB_PARTY_SIZE, "GPU of rank %" PRId64, device->rank);
	else
		snprintf(text, PLUMB_PARTY_SIZE, "device %" PRIu32, party);
	return text;
}

/* ---- objects ---- */

char *
plumb_traffic_allocated_at(const struct plumb_traffic *traffic, const uint32_t *user_of,
                           uint32_t object, char text[PLUMB_OBJECT_LABEL])
{
	const struct plumb_profile *p = traffic->profile;
	uint32_t context = p->objects[object].context;

	*text = '\0';
	if (context == PLUMB_NONE)
		return text;
	if (user_of[context] != PLUMB_NONE) {
		struct plumb_user_place place = plumb_user_place(p, user_of[context]);

		return plumb_user_place_text(&place, false, text, PLUMB_OBJECT_LABEL);
	}
	if (context)
		snprintf(text, PLUMB_OBJECT_LABEL, "%s",
		         plumb_frame_label(p, p->contexts[context].frame));
	return text;
}

char *
plumb_traffic_object_label(const struct plumb_traffic *traffic, const uint32_t *user_of,
                           uint32_t object, char text[PLUMB_OBJECT_LABEL])
{
	const struct plumb_profile *p = traffic->profile;
	const struct plumb_object *o = &p->objects[object];
	const char *name = plumb_text(p, o->name), *kind = plumb_object_kind_names[o->kind];
	char at[PLUMB_OBJECT_LABEL], size[PLUMB_FORMAT_SIZE];

	if (name && *name) {
		snprintf(text, PLUMB_OBJECT_LABEL, "%s", name);
		return text;
	}
	plumb_traffic_allocated_at(traffic, user_of, object, at);
	if (*at)
		snprintf(text, PLUMB_OBJECT_LABEL, "%s from %.180s", kind ? kind : "memory", at);
	else
		snprintf(text, PLUMB_OBJECT_LABEL, "%s, %s, object %" PRIu32,
		         kind ? kind : "memory", plumb_format_bytes(size, o->bytes), object);
	return text;
}

/* ---- places ---- */

char *
plumb_traffic_place_text(const struct plumb_traffic *traffic,
                         const struct plumb_traffic_place *place, char text[PLUMB_OBJECT_LABEL])
{
	const struct plumb_profile *p = traffic->profile;
	const char *label = place->frame == PLUMB_NONE ? NULL : plumb_frame_label(p, place->frame);
	char at[PLUMB_OBJECT_LABEL] = "";

	if (place->line_count) {
		const struct plumb_code_line *line = &p->code_lines[place->first_line];
		const char *file = plumb_text(p, line->file);

		snprintf(text, PLUMB_OBJECT_LABEL, "%.90s:%" PRIu32,
		         file ? plumb_path_base(file) : "?", line->line);
		if (place->line_count > 1) {
			const char *outer = plumb_text(p, line[place->line_count - 1].file);
			size_t used = strlen(text);

			snprintf(text + used, PLUMB_OBJECT_LABEL - used,
			         ", inlined at %.90s:%" PRIu32,
			         outer ? plumb_path_base(outer) : "?",
			         line[place->line_count - 1].line);
		}
		return text;
	}
	if (place->user != PLUMB_NONE) {
		struct plumb_user_place user = plumb_user_place(p, place->user);

		plumb_user_place_text(&user, false, at, sizeof at);
	}
	if (!label && place->function != PLUMB_NONE)
		label = plumb_text(p, p->code_functions[place->function].name);
	if (label && *at)
		snprintf(text, PLUMB_OBJECT_LABEL, "%.100s at %.120s", label, at);
	else
		snprintf(text, PLUMB_OBJECT_LABEL, "%s", label ? label : *at ? at : "unknown");
	return text;
}

/* ---- how it was recorded ---- */

const char *
plumb_traffic_mode(const struct plumb_profile *profile)
{
	return plumb_profile_environment(profile, PLUMB_TRAFFIC_MODE);
}
