/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking rows in. What a row must be, and which rows are one, say the descriptors (columns.h).
 * Putting things in order is left to finish.c.
 */
#include "model/builder_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/secret.h"
#include "base/utf8.h"
#include "model/metric.h"
#include "model/row_merge.h"

static int
out_of_memory(struct plumb_builder *builder)
{
	if (!builder->code)
		builder->code = PLUMB_ESYSTEM;
	return PLUMB_ESYSTEM;
}

/* A caller's mistake, never a user's: kept for finish, so that no profile with a bad reference
 * leaves the builder. */
static int
bad_row(struct plumb_builder *builder, const char *what)
{
	if (!builder->code) {
		builder->code = PLUMB_EINPUT;
		builder->failure = what;
	}
	return PLUMB_EINPUT;
}

/* The same: COLUMN of a row of TABLE has an id, word or number that cannot be. */
static int
bad_column(struct plumb_builder *builder, const struct plumb_row_table *table,
           const struct plumb_row_column *column)
{
	if (!builder->code)
		snprintf(builder->text, sizeof builder->text, "a row of %s has an impossible %s",
		         table->name, column->name);
	return bad_row(builder, builder->text);
}

static void *
add_row(struct plumb_builder *builder, enum plumb_table_number number)
{
	return plumb_row_add(&builder->profile, &plumb_row_tables[number]);
}

static void
find_columns(struct plumb_builder_table *kept, const struct plumb_row_table *table)
{
	kept->count = plumb_row_column_of(table, PLUMB_ROW_COUNT);
	kept->blob = plumb_row_column_of(table, PLUMB_ROW_BLOB);
	for (uint32_t c = 0; c < table->columns_count && kept->keys_count < PLUMB_KEYS_MOST; c++)
		if (table->columns[c].key)
			kept->keys[kept->keys_count++] = &table->columns[c];
}

struct plumb_builder *
plumb_builder_new(void)
{
	struct plumb_builder *builder = calloc(1, sizeof *builder);
	if (!builder)
		return NULL;
	builder->profile.run = (struct plumb_run){
		.command = PLUMB_NONE,
		.tool_version = PLUMB_NONE,
		.start_ns = PLUMB_UNKNOWN,
		.wall_ns = PLUMB_UNKNOWN,
		.exit_code = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
		.analyses = PLUMB_UNKNOWN,
	};
	for (int t = 0; t < PLUMB_TABLES; t++)
		find_columns(&builder->tables[t], &plumb_row_tables[t]);
	builder->strings = plumb_strtab_new();
	uint32_t frame = PLUMB_NONE;
	if (builder->strings)
		frame = plumb_builder_frame(builder, PLUMB_FRAME_ROOT, PLUMB_NONE, PLUMB_NONE, 0);
	struct plumb_context *root =
		frame != PLUMB_NONE ? add_row(builder, PLUMB_TABLE_CONTEXTS) : NULL;
	if (!root) {
		plumb_builder_free(builder);
		return NULL;
	}
	*root = (struct plumb_context){ PLUMB_NONE, frame, 0, PLUMB_NONE, 0 };
	return builder;
}

void
plumb_builder_free(struct plumb_builder *builder)
{
	if (!builder)
		return;
	plumb_strtab_free(builder->strings);
	plumb_profile_free(&builder->profile);
	for (int t = 0; t < PLUMB_TABLES; t++)
		plumb_map_free(&builder->tables[t].map);
	free(builder);
}

/* ---- strings ---- */

uint32_t
plumb_builder_string(struct plumb_builder *builder, const char *text, size_t bytes)
{
	if (!text)
		return PLUMB_NONE;
	bytes = strnlen(text, bytes);
	if (bytes > PLUMB_TEXT_MAX) {
		bad_row(builder, "a text is longer than a profile holds (16 MiB)");
		return PLUMB_NONE;
	}
	uint32_t id;
	if (plumb_utf8_valid(text, bytes)) {
		id = plumb_strtab_add(builder->strings, text, bytes);
	} else {
		char *repaired = malloc(3 * bytes);
		id = PLUMB_NONE;
		if (repaired)
			id = plumb_strtab_add(builder->strings, repaired,
			                      plumb_utf8_repair(repaired, text, bytes));
		free(repaired);
	}
	if (id == PLUMB_STRTAB_NONE)
		out_of_memory(builder);
	return id;
}

uint32_t
plumb_builder_command(struct plumb_builder *builder, const char *text, size_t bytes)
{
	char *copy = text ? strndup(text, bytes) : NULL;
	if (text && !copy) {
		out_of_memory(builder);
		return PLUMB_NONE;
	}
	if (copy)
		plumb_secret_mask_line(copy);
	uint32_t id = plumb_builder_text(builder, copy);
	free(copy);
	return id;
}

uint32_t
plumb_builder_text(struct plumb_builder *builder, const char *text)
{
	return text ? plumb_builder_string(builder, text, strlen(text)) : PLUMB_NONE;
}

const char *
plumb_builder_get_text(const struct plumb_builder *builder, uint32_t string)
{
	return plumb_strtab_text(builder->strings, string);
}

static bool
is_string(const struct plumb_builder *builder, uint32_t id)
{
	return id == PLUMB_NONE || id < plumb_strtab_count(builder->strings);
}

/* ---- frames and contexts ---- */

uint32_t
plumb_builder_frame(struct plumb_builder *builder, uint32_t kind, uint32_t name, uint32_t file,
                    uint32_t line)
{
	if (kind >= PLUMB_FRAME_KIND_COUNT || !is_string(builder, name) ||
	    !is_string(builder, file)) {
		bad_row(builder, "a frame has an unknown kind or text");
		return PLUMB_NONE;
	}
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(kind, name), (uint64_t)file << 32 | line);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->tables[PLUMB_TABLE_FRAMES].map, hash, &at);
	     id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->tables[PLUMB_TABLE_FRAMES].map, &at)) {
		const struct plumb_frame *f = &builder->profile.frames[id];
		if (f->kind == kind && f->name == name && f->file == file && f->line == line)
			return id;
	}
	struct plumb_frame *frame = add_row(builder, PLUMB_TABLE_FRAMES);
	if (!frame || plumb_map_add(&builder->tables[PLUMB_TABLE_FRAMES].map, hash,
	                            builder->profile.frames_count - 1)) {
		builder->profile.frames_count -= frame != NULL;
		out_of_memory(builder);
		return PLUMB_NONE;
	}
	*frame = (struct plumb_frame){ kind, name, file, line, PLUMB_NONE, PLUMB_NONE, 0, { 0 } };
	plumb_frame_set_transfer(frame, plumb_builder_get_text(builder, name));
	return builder->profile.frames_count - 1;
}

void
plumb_builder_frame_display(struct plumb_builder *builder, uint32_t frame, uint32_t display)
{
	if (frame >= builder->profile.frames_count || !is_string(builder, display)) {
		if (frame != PLUMB_NONE)
			bad_row(builder, "a display name is for an unknown frame or text");
		return;
	}
	builder->profile.frames[frame].display = display;
}

void
plumb_builder_frame_source(struct plumb_builder *builder, uint32_t frame, uint32_t file,
                           uint32_t line)
{
	if (frame >= builder->profile.frames_count || !is_string(builder, file)) {
		if (frame != PLUMB_NONE)
			bad_row(builder, "a source line is for an unknown frame or file");
		return;
	}
	builder->profile.frames[frame].source_file = file;
	builder->profile.frames[frame].source_line = line;
}

const struct plumb_frame *
plumb_builder_get_frame(const struct plumb_builder *builder, uint32_t frame)
{
	return frame < builder->profile.frames_count ? &builder->profile.frames[frame] : NULL;
}

uint32_t
plumb_builder_frame_count(const struct plumb_builder *builder)
{
	return builder->profile.frames_count;
}

uint32_t
plumb_builder_context(struct plumb_builder *builder, uint32_t parent, uint32_t frame,
                      uint32_t flags)
{
	if (parent >= builder->profile.contexts_count || frame >= builder->profile.frames_count) {
		bad_row(builder, "a context has an unknown parent or frame");
		return PLUMB_NONE;
	}
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(flags, parent), frame);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->tables[PLUMB_TABLE_CONTEXTS].map, hash, &at);
	     id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->tables[PLUMB_TABLE_CONTEXTS].map, &at)) {
		const struct plumb_context *c = &builder->profile.contexts[id];
		if (c->parent == parent && c->frame == frame && c->flags == flags)
			return id;
	}
	struct plumb_context *node = add_row(builder, PLUMB_TABLE_CONTEXTS);
	if (!node || plumb_map_add(&builder->tables[PLUMB_TABLE_CONTEXTS].map, hash,
	                           builder->profile.contexts_count - 1)) {
		builder->profile.contexts_count -= node != NULL;
		out_of_memory(builder);
		return PLUMB_NONE;
	}
	*node = (struct plumb_context){ parent, frame, flags, PLUMB_NONE, 0 };
	return builder->profile.contexts_count - 1;
}

struct plumb_context
plumb_builder_get_context(const struct plumb_builder *builder, uint32_t context)
{
	return builder->profile.contexts[context];
}

/* ---- metrics ---- */

/* NAME, or one that begins with "user." where it would pass for a metric of plumb's. */
static uint32_t
metric_name(struct plumb_builder *builder, uint32_t name)
{
	const char *text = plumb_builder_get_text(builder, name);
	char *longer;
	if (!text || !*text)
		return plumb_builder_text(builder, "?");
	if (!plumb_metric_find(text))
		return name;
	if (asprintf(&longer, "user.%s", text) < 0) {
		out_of_memory(builder);
		return PLUMB_NONE;
	}
	name = plumb_builder_text(builder, longer);
	free(longer);
	return name;
}

uint32_t
plumb_builder_metric(struct plumb_builder *builder, uint32_t name, uint32_t unit)
{
	name = metric_name(builder, name);
	if (name == PLUMB_NONE || !is_string(builder, unit))
		return 0;
	for (uint32_t i = 0; i < builder->profile.user_metrics_count; i++)
		if (builder->profile.user_metrics[i].name == name)
			return PLUMB_METRIC_USER + i;
	if (builder->profile.user_metrics_count >= PLUMB_USER_METRICS_MOST)
		return 0;
	struct plumb_user_metric *added = plumb_profile_add_metric(&builder->profile);
	if (!added) {
		out_of_memory(builder);
		return 0;
	}
	*added = (struct plumb_user_metric){ name, unit };
	return PLUMB_METRIC_USER + builder->profile.user_metrics_count - 1;
}

/* ---- rows ---- */

static uint64_t
hash_keys(const struct plumb_builder_table *table, const char *row)
{
	uint64_t hash = table->keys_count;
	for (uint32_t k = 0; k < table->keys_count; k++)
		hash = plumb_hash_mix(hash, plumb_row_key(table->keys[k], row));
	return hash;
}

static bool
same_keys(const struct plumb_builder_table *table, const char *a, const char *b)
{
	for (uint32_t k = 0; k < table->keys_count; k++)
		if (plumb_row_key(table->keys[k], a) != plumb_row_key(table->keys[k], b))
			return false;
	return true;
}

/* The row of TABLE that has the keys of ROW, or PLUMB_MAP_NONE. */
static uint32_t
find_row(struct plumb_builder *builder, enum plumb_table_number number, uint64_t hash,
         const void *row)
{
	const struct plumb_builder_table *table = &builder->tables[number];
	size_t size = plumb_row_tables[number].row_size;
	char *rows = plumb_row_array_of(&builder->profile, &plumb_row_tables[number]).items;
	struct plumb_map_cursor at;
	uint32_t id;
	for (id = plumb_map_first(&table->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&table->map, &at))
		if (same_keys(table, rows + id * size, row))
			break;
	return id;
}

/* *AT becomes the number of the row with these keys, if there is one. */
static int
add_or_merge(struct plumb_builder *builder, enum plumb_table_number number, const void *row,
             uint32_t *at)
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	const struct plumb_row_column *fault = plumb_row_fault(
		&builder->profile, plumb_strtab_count(builder->strings), table, row);
	if (fault)
		return bad_column(builder, table, fault);
	struct plumb_builder_table *kept = &builder->tables[number];
	/* A row of values whose count is 0 tells of no observation: there is nothing to add. */
	if (kept->count && !plumb_row_key(kept->count, row))
		return PLUMB_OK;
	uint64_t hash = hash_keys(kept, row);
	struct plumb_row_array rows = plumb_row_array_of(&builder->profile, table);
	uint32_t there = kept->keys_count ? find_row(builder, number, hash, row) : PLUMB_MAP_NONE;
	if (there != PLUMB_MAP_NONE) {
		*at = there;
		if (plumb_row_merges[number])
			plumb_row_merges[number](rows.items + there * (size_t)table->row_size, row);
		return PLUMB_OK;
	}
	uint32_t count = rows.count;
	if (table->most && count >= table->most)
		return 1;
	void *added = add_row(builder, number);
	if (!added)
		return out_of_memory(builder);
	memcpy(added, row, table->row_size);
	int code = PLUMB_OK;
	if (kept->blob)
		code = plumb_row_keep_blobs(&builder->profile, builder->strings, table, added);
	if (!code && kept->keys_count)
		code = plumb_map_add(&kept->map, hash, count);
	*at = count;
	if (code)
		plumb_row_set_count(&builder->profile, table, count);
	return code < 0 ? out_of_memory(builder) : code;
}

int
plumb_builder_row(struct plumb_builder *builder, enum plumb_table_number number, const void *row)
{
	uint32_t at;
	return add_or_merge(builder, number, row, &at);
}

int
plumb_builder_row_near(struct plumb_builder *builder, enum plumb_table_number number,
                       const void *row, uint32_t *near)
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	const struct plumb_builder_table *kept = &builder->tables[number];
	struct plumb_row_array rows = plumb_row_array_of(&builder->profile, table);
	size_t offset = *near * (size_t)table->row_size;
	bool there = *near < rows.count && same_keys(kept, rows.items + offset, row);
	if (!there || (kept->count && !plumb_row_key(kept->count, row)))
		return add_or_merge(builder, number, row, near);
	plumb_row_merges[number](rows.items + offset, row);
	return PLUMB_OK;
}

int
plumb_builder_room(struct plumb_builder *builder, enum plumb_table_number number, uint64_t count)
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	if (table->most && count > table->most)
		count = table->most;
	if (plumb_row_array_of(&builder->profile, table).room || !count || count > UINT32_MAX - 1)
		return PLUMB_OK; /* it grows */
	return plumb_row_room(&builder->profile, table, (uint32_t)count) ? PLUMB_OK
	                                                                 : out_of_memory(builder);
}

int64_t
plumb_builder_rows(struct plumb_builder *builder, enum plumb_table_number number, const void *rows,
                   uint32_t count)
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	const struct plumb_row_column *fault = plumb_row_faults(
		&builder->profile, plumb_strtab_count(builder->strings), table, rows, count);
	uint32_t have = plumb_row_array_of(&builder->profile, table).count;
	if (fault)
		return bad_column(builder, table, fault);
	if (table->most && count > table->most - have)
		count = table->most - have;
	void *to = plumb_row_reserve(&builder->profile, table, count);
	if (!to)
		return out_of_memory(builder);
	memcpy(to, rows, (size_t)count * table->row_size);
	plumb_row_set_count(&builder->profile, table, have + count);
	return count;
}

/* ---- rows with ids, or of other shapes ---- */

uint32_t
plumb_builder_process(struct plumb_builder *builder, const struct plumb_process *process)
{
	return plumb_builder_row(builder, PLUMB_TABLE_PROCESSES, process)
	               ? PLUMB_NONE
	               : builder->profile.processes_count - 1;
}

uint32_t
plumb_builder_track(struct plumb_builder *builder, const struct plumb_track *track)
{
	return plumb_builder_row(builder, PLUMB_TABLE_TRACKS, track)
	               ? PLUMB_NONE
	               : builder->profile.tracks_count - 1;
}

uint32_t
plumb_builder_window(struct plumb_builder *builder, const struct plumb_window *window)
{
	return plumb_builder_row(builder, PLUMB_TABLE_WINDOWS, window)
	               ? PLUMB_NONE
	               : builder->profile.windows_count - 1;
}

uint32_t
plumb_builder_object(struct plumb_builder *builder, const struct plumb_object *object)
{
	return plumb_builder_row(builder, PLUMB_TABLE_OBJECTS, object)
	               ? PLUMB_NONE
	               : builder->profile.objects_count - 1;
}

uint32_t
plumb_builder_device(struct plumb_builder *builder, const struct plumb_device *device)
{
	return plumb_builder_row(builder, PLUMB_TABLE_DEVICES, device)
	               ? PLUMB_NONE
	               : builder->profile.devices_count - 1;
}

struct plumb_process *
plumb_builder_get_process(struct plumb_builder *builder, uint32_t process)
{
	return process < builder->profile.processes_count ? &builder->profile.processes[process]
	                                                  : NULL;
}

struct plumb_device *
plumb_builder_get_device(struct plumb_builder *builder, uint32_t device)
{
	return device < builder->profile.devices_count ? &builder->profile.devices[device] : NULL;
}

struct plumb_track *
plumb_builder_get_track(struct plumb_builder *builder, uint32_t track)
{
	return track < builder->profile.tracks_count ? &builder->profile.tracks[track] : NULL;
}

uint32_t
plumb_builder_device_count(const struct plumb_builder *builder)
{
	return builder->profile.devices_count;
}

uint32_t
plumb_builder_code_functions(const struct plumb_builder *builder)
{
	return builder->profile.code_functions_count;
}

int
plumb_builder_memory(struct plumb_builder *builder, const struct plumb_memory *memory)
{
	if (memory->track < builder->profile.tracks_count &&
	    builder->profile.tracks[memory->track].kind != PLUMB_TRACK_MEMORY)
		return bad_row(builder, "a row of memory has a track of another kind");
	return plumb_builder_row(builder, PLUMB_TABLE_MEMORY, memory);
}

int
plumb_builder_ledger(struct plumb_builder *builder, uint32_t process, uint32_t source,
                     uint32_t fate, uint32_t detail, int64_t count)
{
	struct plumb_ledger_row row = { process, source, fate, detail, count };
	return plumb_builder_row(builder, PLUMB_TABLE_LEDGER, &row);
}

int
plumb_builder_environment(struct plumb_builder *builder, uint32_t process, const char *key,
                          const char *value)
{
	struct plumb_environment_row row = { process, plumb_builder_text(builder, key),
		                             plumb_builder_text(builder, value) };
	if (!key || !value)
		return bad_row(builder, "an environment row has no key or value");
	if (row.key == PLUMB_NONE || row.value == PLUMB_NONE)
		return builder->code;
	return plumb_builder_row(builder, PLUMB_TABLE_ENVIRONMENT, &row);
}

const struct plumb_cpu_sample *
plumb_builder_get_cpu_samples(const struct plumb_builder *builder, uint32_t *count)
{
	*count = builder->profile.cpu_samples_count;
	return builder->profile.cpu_samples;
}

struct plumb_run *
plumb_builder_run(struct plumb_builder *builder)
{
	return &builder->profile.run;
}
