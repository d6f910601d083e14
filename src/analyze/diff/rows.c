/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/diff/rows.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "analyze/group.h"
#include "analyze/phase.h"
#include "base/hash.h"

#define KEY_MOST 4096u /* bytes; what is longer is cut, and told apart by its hash */

char *
diff_keys_text(struct diff_keys *keys, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = plumb_pool_take(keys->pool, bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

/* ---- what a frame is, as text that is the same in other runs ---- */

static const char *
library_of(const struct plumb_profile *p, uint32_t file)
{
	for (uint32_t i = 0; file != PLUMB_NONE && i < p->code_objects_count; i++)
		if (p->code_objects[i].build_id == file || p->code_objects[i].path == file) {
			const char *path = plumb_text(p, p->code_objects[i].path);
			const char *slash = path ? strrchr(path, '/') : NULL;

			return slash ? slash + 1 : path ? path : "?";
		}
	const char *text = plumb_text(p, file);
	return text ? text : "?";
}

/* "ProfilerStep#12" → "ProfilerStep"; the number is of one call. */
static int
range_bytes(const char *name)
{
	size_t bytes = strlen(name), end = bytes;

	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	return (int)(end < bytes && end > 1 && name[end - 1] == '#' ? end - 1 : bytes);
}

static void
python_text(const struct diff_run *run, uint32_t frame, uint32_t by, char *text)
{
	const struct plumb_frame *f = &run->profile->frames[frame];
	uint32_t line = run->line[frame];
	uint32_t file = f->file < run->profile->strings_count ? run->file[f->file] : PLUMB_NONE;
	/* A line that no line of the first run is has a place of its own. */
	const char *own = line == PLUMB_NONE ? "new " : "";

	if (line == PLUMB_NONE)
		line = f->line;
	int used;
	if (by == PLUMB_BY_PYTHON)
		used = snprintf(text, KEY_MOST, "%" PRIu32 "|", file);
	else
		used = snprintf(text, KEY_MOST, "%" PRIu32 "|%s%" PRIu32 "|", file, own, line);
	if (by != PLUMB_BY_LINE)
		diff_plain_name(plumb_frame_label(run->profile, frame), text + used,
		                KEY_MOST - (size_t)used);
}

static void
frame_text(const struct diff_run *run, uint32_t frame, uint32_t by, char *text)
{
	const struct plumb_profile *p = run->profile;
	const struct plumb_frame *f = &p->frames[frame];
	const char *name = plumb_frame_label(p, frame);
	const char *class = plumb_text(p, f->file);

	switch (f->kind) {
	case PLUMB_FRAME_PYTHON:
		python_text(run, frame, by, text);
		break;
	case PLUMB_FRAME_MODULE:
		snprintf(text, KEY_MOST, "%s|%s", name, class ? class : "");
		break;
	case PLUMB_FRAME_RANGE:
		snprintf(text, KEY_MOST, "%.*s", range_bytes(name), name);
		break;
	case PLUMB_FRAME_NATIVE:
		snprintf(text, KEY_MOST, "%s|%s", library_of(p, f->file),
		         by == PLUMB_BY_LIBRARY ? "" : name);
		break;
	default:
		snprintf(text, KEY_MOST, "%s", name);
	}
}

static void
row_text(const struct diff_run *run, const struct plumb_group_row *row, uint32_t by, char *text)
{
	const char *shapes = plumb_text(run->profile, row->shapes);

	if (row->phase != PLUMB_NONE)
		snprintf(text, KEY_MOST, "%s", plumb_phase_names[row->phase]);
	else if (row->frame == PLUMB_NONE)
		snprintf(text, KEY_MOST, "rank %" PRId64, row->rank);
	else
		frame_text(run, row->frame, by, text);
	if (by == PLUMB_BY_SHAPE && shapes) {
		size_t used = strlen(text);
		snprintf(text + used, KEY_MOST - used, " %s", shapes);
	}
}

/* ---- keys ---- */

static uint32_t
find_key(const struct diff_keys *keys, uint64_t hash, uint32_t parent, const char *text,
         bool backward)
{
	struct plumb_map_cursor at;
	uint32_t id;

	for (id = plumb_map_first(&keys->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&keys->map, &at)) {
		const struct diff_key *key = &keys->items.items[id];

		if (key->parent == parent && key->backward == backward && !strcmp(key->text, text))
			return id;
	}
	return PLUMB_NONE;
}

/* What is shown for a row that is no frame is its key's text. */
static void
describe_key(const struct plumb_diff *diff, const struct diff_run *run, uint32_t frame,
             struct diff_key *key)
{
	const struct plumb_profile *p = run->profile;
	uint32_t by = diff->options.by;

	key->name = key->text;
	if (frame == PLUMB_NONE) {
		key->kind = by == PLUMB_BY_PHASE ? "phase" : "rank";
		return;
	}
	const struct plumb_frame *f = &p->frames[frame];
	key->kind = plumb_frame_kind_names[f->kind];
	if (f->kind == PLUMB_FRAME_ROOT) {
		key->name = "all";
		return;
	}
	if (by == PLUMB_BY_LIBRARY)
		key->name = library_of(p, f->file);
	else if (f->kind != PLUMB_FRAME_RANGE && by != PLUMB_BY_SHAPE)
		key->name = plumb_frame_label(p, frame);
	if (f->kind == PLUMB_FRAME_PYTHON || f->kind == PLUMB_FRAME_MODULE)
		key->file = plumb_text(p, f->file);
	if (f->kind == PLUMB_FRAME_NATIVE)
		key->file = library_of(p, f->file);
	if (f->kind == PLUMB_FRAME_PYTHON && by != PLUMB_BY_PYTHON)
		key->line = f->line;
}

static uint32_t
key_of(const struct plumb_diff *diff, uint32_t r, struct diff_keys *keys, uint32_t parent,
       const char *text, uint32_t frame, bool backward)
{
	const struct diff_run *run = &diff->runs[r];
	uint64_t hash = plumb_hash_mix(plumb_hash_bytes(text, strlen(text)),
	                               (uint64_t)parent << 1 | backward);
	uint32_t id = find_key(keys, hash, parent, text, backward);

	if (id == PLUMB_NONE) {
		struct diff_key *key = plumb_vec_add(&keys->items);

		if (!key || plumb_map_add(&keys->map, hash, keys->items.count - 1) < 0)
			return PLUMB_NONE;
		id = keys->items.count - 1;
		key->parent = parent;
		key->backward = backward;
		key->text = diff_keys_text(keys, text);
		if (!key->text)
			return PLUMB_NONE;
		describe_key(diff, run, frame, key);
		if (!strcmp(key->kind, plumb_frame_kind_names[PLUMB_FRAME_PYTHON])) {
			char name[KEY_MOST];
			diff_plain_name(key->name, name, sizeof name);
			key->name = diff_keys_text(keys, name);
			if (!key->name)
				return PLUMB_NONE;
		}
	}
	struct diff_key *key = &keys->items.items[id];
	if (r >= diff->before && !key->after_line && key->line)
		key->after_line = run->profile->frames[frame].line;
	return id;
}

/* ---- rows of a run ---- */

static bool
context_rows(const struct plumb_diff *diff, uint32_t r, struct diff_keys *keys,
             struct diff_rows *rows)
{
	const struct plumb_profile *p = diff->runs[r].profile;
	char text[KEY_MOST + 40];

	rows->count = p->contexts_count;
	rows->key = malloc((rows->count + (size_t)1) * sizeof *rows->key);
	rows->owner = malloc((rows->count + (size_t)1) * sizeof *rows->owner);
	for (uint32_t c = 0; rows->key && rows->owner && c < rows->count; c++) {
		const struct plumb_context *context = &p->contexts[c];
		size_t used =
			(size_t)snprintf(text, 20, "%" PRIu32 " ", p->frames[context->frame].kind);

		frame_text(&diff->runs[r], context->frame, PLUMB_DIFF_CONTEXT, text + used);
		rows->owner[c] = c;
		rows->key[c] = key_of(
			diff, r, keys, c ? rows->key[context->parent] : PLUMB_NONE, c ? text : "",
			context->frame,
			context->flags & (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION));
		if (rows->key[c] == PLUMB_NONE)
			return false;
	}
	return rows->key && rows->owner;
}

static bool
group_rows(const struct plumb_diff *diff, uint32_t r, struct diff_keys *keys,
           struct diff_rows *rows)
{
	const struct diff_run *run = &diff->runs[r];
	const struct plumb_profile *p = run->profile;
	uint32_t by = diff->options.by;
	char text[KEY_MOST];

	rows->grouping = plumb_grouping_new(p, (enum plumb_group_by)by, NULL);
	if (!rows->grouping)
		return false;
	rows->count = plumb_grouping_count(rows->grouping);
	rows->key = malloc((rows->count + (size_t)1) * sizeof *rows->key);
	for (uint32_t i = 0; rows->key && i < rows->count; i++) {
		const struct plumb_group_row *row = &plumb_grouping_rows(rows->grouping)[i];

		row_text(run, row, by, text);
		rows->key[i] = key_of(diff, r, keys, PLUMB_NONE, text, row->frame, false);
		if (rows->key[i] == PLUMB_NONE)
			return false;
	}
	if (by == PLUMB_BY_RANK || by == PLUMB_BY_SHAPE)
		return rows->key;
	rows->owner = malloc((p->contexts_count + (size_t)1) * sizeof *rows->owner);
	for (uint32_t c = 0; rows->owner && c < p->contexts_count; c++)
		rows->owner[c] = plumb_grouping_owner(rows->grouping, c);
	return rows->key && rows->owner;
}

/* The frames of run R, each with its key. */
static bool
number_frames(const struct plumb_diff *diff, uint32_t r, struct diff_keys *keys, uint32_t *numbers)
{
	const struct plumb_profile *p = diff->runs[r].profile;
	char text[KEY_MOST + 40];

	for (uint32_t f = 0; f < p->frames_count; f++) {
		size_t used = (size_t)snprintf(text, 20, "%" PRIu32 " ", p->frames[f].kind);

		frame_text(&diff->runs[r], f, PLUMB_DIFF_CONTEXT, text + used);
		numbers[f] = key_of(diff, r, keys, PLUMB_NONE, text, f, false);
		if (numbers[f] == PLUMB_NONE)
			return false;
	}
	return true;
}

int
plumb_diff_frames(const struct plumb_diff *diff, uint32_t **numbers, uint32_t *count,
                  struct plumb_error *error)
{
	struct diff_keys keys = { .pool = plumb_pool_new() };
	bool ok = keys.pool;

	for (uint32_t r = 0; r < diff->count; r++) {
		size_t frames = diff->runs[r].profile->frames_count + (size_t)1;

		numbers[r] = malloc(frames * sizeof **numbers);
		ok = ok && numbers[r] && number_frames(diff, r, &keys, numbers[r]);
	}
	*count = keys.items.count;
	plumb_pool_free(keys.pool);
	plumb_vec_free(&keys.items);
	plumb_map_free(&keys.map);
	for (uint32_t r = 0; !ok && r < diff->count; r++) {
		free(numbers[r]);
		numbers[r] = NULL;
	}
	return ok ? 0 : diff_no_memory(error);
}

bool
diff_rows_make(const struct plumb_diff *diff, uint32_t run, struct diff_keys *keys,
               struct diff_rows *rows)
{
	*rows = (struct diff_rows){ 0 };
	if (!keys->pool)
		keys->pool = plumb_pool_new();
	if (!keys->pool)
		return false;
	return diff->options.by == PLUMB_DIFF_CONTEXT ? context_rows(diff, run, keys, rows)
	                                              : group_rows(diff, run, keys, rows);
}

void
diff_rows_free(struct diff_rows *rows)
{
	plumb_grouping_free(rows->grouping);
	free(rows->key);
	free(rows->owner);
}
