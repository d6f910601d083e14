/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native nodes. A node has a code object and an offset. Here it becomes the function that was
 * called there, and the functions that are inlined into it. Each place is looked up once, even if
 * several processes and threads have it.
 */
#include "settle/settle_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define NAME_BYTES 4352 /* of a file, in a frame's name */

/* ---- code objects ---- */

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool
is_vdso(const char *path)
{
	return !strcmp(path, "[vdso]") || !strncmp(path, "linux-vdso.", 11) ||
	       !strncmp(path, "linux-gate.", 11);
}

/* The latest that a file of the region's process can have changed; 0 unknown. */
static int64_t
newest_change(const struct plumb_settle_region *region)
{
	const struct plumb_region_header *header = &region->reader->header;
	uint64_t end = atomic_load(&header->end_monotonic), time;

	if (!end || end < header->start_monotonic ||
	    __builtin_add_overflow(header->start_realtime, end - header->start_monotonic, &time) ||
	    time > INT64_MAX)
		return 0;
	return (int64_t)time;
}

/* The symbolizer's number for the file. PLUMB_NONE: there is no file to read. */
static uint32_t
make_object(struct plumb_settle_region *region, const struct plumb_record_code *record,
            const char *path)
{
	struct plumb_settler *settler = region->settler;
	struct plumb_code_wanted wanted = {
		.path = path,
		.build_id_bytes = record->build_id_bytes,
		.newest = newest_change(region),
		.fetch = true,
	};

	if (path[0] != '/')
		return PLUMB_NONE;
	if (wanted.build_id_bytes > PLUMB_BUILD_ID_MAX)
		wanted.build_id_bytes = PLUMB_BUILD_ID_MAX;
	memcpy(wanted.build_id, record->build_id, wanted.build_id_bytes);
	if (!settler->symbolizer)
		settler->symbolizer = plumb_symbolizer_new();
	return settler->symbolizer ? plumb_symbolizer_object(settler->symbolizer, &wanted)
	                           : PLUMB_NONE;
}

/* The build id in hexadecimal as a string, or PLUMB_NONE. */
static uint32_t
build_id_text(struct plumb_builder *builder, const struct plumb_record_code *record)
{
	char text[2 * PLUMB_BUILD_ID_MAX + 1];
	uint32_t bytes = record->build_id_bytes;

	bytes = bytes > PLUMB_BUILD_ID_MAX ? PLUMB_BUILD_ID_MAX : bytes;
	for (uint32_t i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", record->build_id[i]);
	return bytes ? plumb_builder_string(builder, text, 2 * bytes) : PLUMB_NONE;
}

static uint32_t
add_code(struct plumb_settle_region *region, const struct plumb_record_code *record, uint32_t path)
{
	struct plumb_settler *settler = region->settler;
	uint32_t build_id = build_id_text(settler->builder, record);
	uint64_t hash = plumb_hash_mix(path, build_id);
	struct plumb_map_cursor at;
	struct plumb_settle_code *code;

	for (uint32_t i = plumb_map_first(&settler->code_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&settler->code_map, &at))
		if (settler->codes.items[i].path == path &&
		    settler->codes.items[i].build_id == build_id)
			return i;
	code = plumb_vec_add(&settler->codes);
	if (!code || plumb_map_add(&settler->code_map, hash, settler->codes.count - 1)) {
		settler->no_memory = true;
		return PLUMB_NONE;
	}
	code->path = path;
	code->build_id = build_id;
	code->file = build_id == PLUMB_NONE ? path : build_id;
	code->object = make_object(region, record, plumb_builder_get_text(settler->builder, path));
	return settler->codes.count - 1;
}

/* The code object of a CODE record; PLUMB_NONE: there is no such record. */
static uint32_t
settle_code(struct plumb_settle_region *region, plumb_id id)
{
	struct plumb_settler *settler = region->settler;
	const struct plumb_record_code *record =
		plumb_region_get(region->reader, id, PLUMB_RECORD_CODE, sizeof *record);
	struct plumb_settle_mapped *mapped;
	uint32_t path, code;

	if (!record)
		return PLUMB_NONE;
	if (region->known[id])
		return region->known[id] == PLUMB_SETTLE_NOTHING ? PLUMB_NONE
		                                                 : region->known[id] - 1;
	path = plumb_settle_string(region, record->path);
	code = path == PLUMB_NONE ? PLUMB_NONE : add_code(region, record, path);
	region->known[id] = code == PLUMB_NONE ? PLUMB_SETTLE_NOTHING : code + 1;
	if (code == PLUMB_NONE)
		return PLUMB_NONE;
	mapped = plumb_vec_add(&settler->mapped);
	if (mapped)
		*mapped = (struct plumb_settle_mapped){ region->process, code };
	return code;
}

/* ---- frames of a place ---- */

static bool
add_frame(struct plumb_settler *settler, struct plumb_settle_site *site, uint32_t frame)
{
	uint32_t *added = frame == PLUMB_NONE ? NULL : plumb_vec_add(&settler->site_frames);

	if (!added) {
		settler->no_memory = true;
		return false;
	}
	*added = frame;
	site->count++;
	return true;
}

static void
set_source(struct plumb_builder *builder, uint32_t frame, const struct plumb_code_frame *source)
{
	if (source->file)
		plumb_builder_frame_source(builder, frame,
		                           plumb_builder_text(builder, source->file), source->line);
}

/* The function itself. Its name is its symbol, else the file and offset. */
static void
add_function(struct plumb_settler *settler, struct plumb_settle_site *site,
             const struct plumb_settle_code *code, const struct plumb_code_place *place)
{
	struct plumb_builder *builder = settler->builder;
	const struct plumb_code_frame *source = place->count ? &place->frames[0] : NULL;
	const char *name = place->symbol ? place->symbol : source ? source->name : NULL;
	uint64_t start =
		place->bounded && place->start <= site->offset ? place->start : site->offset;
	char text[NAME_BYTES];
	uint32_t frame;

	site->named = name != NULL;
	if (!name) {
		snprintf(text, sizeof text, "%.4000s+0x%" PRIx64,
		         base_name(plumb_builder_get_text(builder, code->path)), start);
		name = text;
	}
	frame = plumb_builder_frame(
		builder, PLUMB_FRAME_NATIVE, plumb_builder_text(builder, name), code->file,
		place->shared_name ? site->offset : (uint32_t)(site->offset - start));
	if (!add_frame(settler, site, frame) || !source)
		return;
	/* "f.cold" and "f.constprop.0" are f. */
	if (source->name && strcmp(source->name, name))
		plumb_builder_frame_display(builder, frame,
		                            plumb_builder_text(builder, source->name));
	set_source(builder, frame, source);
}

/* A function that was inlined. The place of its source is its identity. */
static void
add_inlined(struct plumb_settler *settler, struct plumb_settle_site *site,
            const struct plumb_code_frame *source)
{
	struct plumb_builder *builder = settler->builder;
	uint32_t frame = plumb_builder_frame(
		builder, PLUMB_FRAME_INLINE, plumb_builder_text(builder, source->name),
		plumb_builder_text(builder, source->file), source->line);

	if (add_frame(settler, site, frame))
		set_source(builder, frame, source);
}

static void
look_up(struct plumb_settler *settler, struct plumb_settle_site *site, uint32_t function)
{
	struct plumb_code_place place;
	struct plumb_settle_code *code = &settler->codes.items[site->code];
	const char *path = plumb_builder_get_text(settler->builder, code->path);

	site->from = settler->site_frames.count;
	if (code->object == PLUMB_NONE) {
		const char *name = is_vdso(path) ? "[vdso]" : path;
		site->named = true;
		add_frame(settler, site,
		          plumb_builder_frame(settler->builder, PLUMB_FRAME_NATIVE,
		                              plumb_builder_text(settler->builder, name),
		                              code->file, 0));
		return;
	}
	code->state =
		plumb_symbolizer_look(settler->symbolizer, code->object, site->offset, &place);
	if (function == PLUMB_NONE) {
		add_function(settler, site, code, &place);
	} else {
		site->named = place.symbol || place.count;
		add_frame(settler, site, function);
	}
	for (uint32_t i = 1; i < place.count; i++)
		add_inlined(settler, site, &place.frames[i]);
}

static const struct plumb_settle_site *
find_site(struct plumb_settler *settler, uint32_t code, uint32_t offset, bool interrupted);

/* The frame of the function with the instruction at OFFSET. It is the frame of the function's
 * beginning, so that all instructions have the same one. PLUMB_NONE: the beginning is unknown. */
static uint32_t
function_of(struct plumb_settler *settler, uint32_t code, uint32_t offset)
{
	struct plumb_code_place place;
	uint32_t object = settler->codes.items[code].object;
	const struct plumb_settle_site *site;

	if (object == PLUMB_NONE)
		return PLUMB_NONE;
	plumb_symbolizer_look(settler->symbolizer, object, offset, &place);
	if (!place.bounded || place.start > offset)
		return PLUMB_NONE;
	site = find_site(settler, code, (uint32_t)place.start, false);
	return site && site->count ? settler->site_frames.items[site->from] : PLUMB_NONE;
}

static const struct plumb_settle_site *
find_site(struct plumb_settler *settler, uint32_t code, uint32_t offset, bool interrupted)
{
	uint64_t hash = plumb_hash_mix(code, (uint64_t)interrupted << 32 | offset);
	uint32_t function;
	struct plumb_map_cursor at;
	struct plumb_settle_site *site;

	for (uint32_t i = plumb_map_first(&settler->site_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&settler->site_map, &at))
		if (settler->sites.items[i].code == code &&
		    settler->sites.items[i].offset == offset &&
		    settler->sites.items[i].interrupted == interrupted)
			return &settler->sites.items[i];
	function = interrupted ? function_of(settler, code, offset) : PLUMB_NONE;
	site = plumb_vec_add(&settler->sites);
	if (!site || plumb_map_add(&settler->site_map, hash, settler->sites.count - 1)) {
		settler->no_memory = true;
		return NULL;
	}
	site->code = code;
	site->offset = offset;
	site->interrupted = interrupted;
	look_up(settler, site, function);
	return site;
}

/* ---- nodes ---- */

static void
count_site(struct plumb_settle_region *region, const struct plumb_settle_site *site)
{
	static const char *const whys[PLUMB_CODE_STATES] = {
		[PLUMB_CODE_FINE] = "it has no symbol at that place",
		[PLUMB_CODE_ABSENT] = "its file is gone or cannot be read",
		[PLUMB_CODE_IRREGULAR] = "its path is not a regular file",
		[PLUMB_CODE_DAMAGED] = "its file is not a 64-bit ELF program or library",
		[PLUMB_CODE_REPLACED] = "its file has changed since it ran",
		[PLUMB_CODE_FAILED] = "reading its file failed",
	};
	const struct plumb_settle_code *code = &region->settler->codes.items[site->code];
	char detail[400];

	plumb_settle_count(region, PLUMB_SOURCE_SYMBOL, PLUMB_FATE_RECEIVED, NULL, 1);
	if (site->named) {
		plumb_settle_count(region, PLUMB_SOURCE_SYMBOL, PLUMB_FATE_ATTRIBUTED, NULL, 1);
		return;
	}
	snprintf(detail, sizeof detail, "%.300s: %s",
	         base_name(plumb_builder_get_text(region->settler->builder, code->path)),
	         whys[code->state]);
	plumb_settle_count(region, PLUMB_SOURCE_SYMBOL, PLUMB_FATE_NO_SYMBOL, detail, 1);
}

uint32_t
plumb_settle_native_code(struct plumb_settle_region *region, const struct plumb_record_node *node)
{
	return node->file ? settle_code(region, node->file) : PLUMB_NONE;
}

uint32_t
plumb_settle_native(struct plumb_settle_region *region, const struct plumb_record_node *node,
                    const uint32_t **frames)
{
	struct plumb_settler *settler = region->settler;
	uint32_t code = plumb_settle_native_code(region, node);
	const struct plumb_settle_site *site;

	if (code == PLUMB_NONE) {
		/* Generated code moves from run to run, so an offset would say nothing. */
		if (node->file)
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "code objects", 1);
		settler->single_frame =
			plumb_builder_frame(settler->builder, PLUMB_FRAME_NATIVE,
		                            plumb_settle_string(region, node->name), PLUMB_NONE, 0);
		*frames = &settler->single_frame;
		return 1;
	}
	site = find_site(settler, code, node->line, node->flags & PLUMB_CONTEXT_INTERRUPTED);
	if (!site || !site->count)
		return 0;
	count_site(region, site);
	*frames = settler->site_frames.items + site->from;
	return site->count;
}

/* ---- the end ---- */

void
plumb_settle_code_objects(struct plumb_settler *settler)
{
	struct plumb_builder *builder = settler->builder;

	for (uint32_t i = 0; i < settler->codes.count; i++) {
		const struct plumb_settle_code *code = &settler->codes.items[i];
		if (code->object != PLUMB_NONE &&
		    plumb_symbolizer_fetched(settler->symbolizer, code->object))
			plumb_settle_warn(settler,
			                  "the debug information of %s was fetched from debuginfod",
			                  plumb_builder_get_text(builder, code->path));
	}
	for (uint32_t i = 0; i < settler->mapped.count; i++) {
		const struct plumb_settle_mapped *mapped = &settler->mapped.items[i];
		const struct plumb_settle_code *code = &settler->codes.items[mapped->code];
		uint64_t bytes =
			code->object == PLUMB_NONE
				? 0
				: plumb_symbolizer_bytes(settler->symbolizer, code->object);
		struct plumb_code_object object = {
			.process = mapped->process,
			.kind = plumb_builder_text(builder, "elf"),
			.path = code->path,
			.build_id = code->build_id,
			.hash = PLUMB_NONE,
			.bytes = bytes ? plumb_settle_number(bytes) : PLUMB_UNKNOWN,
		};
		plumb_builder_code_object(builder, &object);
	}
}

void
plumb_settle_native_free(struct plumb_settler *settler)
{
	plumb_symbolizer_free(settler->symbolizer);
	plumb_settle_operations_free(settler);
	plumb_vec_free(&settler->codes);
	plumb_vec_free(&settler->sites);
	plumb_vec_free(&settler->mapped);
	plumb_vec_free(&settler->site_frames);
	plumb_map_free(&settler->code_map);
	plumb_map_free(&settler->site_map);
}
