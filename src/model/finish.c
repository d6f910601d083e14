/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting what a builder took in into order. Every step is linear but the ordering of frames by
 * their texts; nothing recurses, because trees may be very deep.
 */
#include "model/builder_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

/* ---- frames in the order of their kind, name, file and line ---- */

static int
compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int
compare_frames(const void *x, const void *y, void *data)
{
	const struct plumb_builder *builder = data;
	const struct plumb_frame *a = &builder->profile.frames[*(const uint32_t *)x];
	const struct plumb_frame *b = &builder->profile.frames[*(const uint32_t *)y];
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	int order = 0;
	if (a->name != b->name)
		order = compare_texts(plumb_builder_get_text(builder, a->name),
		                      plumb_builder_get_text(builder, b->name));
	if (!order && a->file != b->file)
		order = compare_texts(plumb_builder_get_text(builder, a->file),
		                      plumb_builder_get_text(builder, b->file));
	if (!order)
		order = (a->line > b->line) - (a->line < b->line);
	return order;
}

/* The place of each frame in that order; malloced, NULL when memory is out. */
static uint32_t *
rank_frames(struct plumb_builder *builder)
{
	uint32_t count = builder->profile.frames_count;
	uint32_t *order = malloc(count * sizeof *order);
	uint32_t *rank = malloc(count * sizeof *rank);
	if (order && rank) {
		for (uint32_t i = 0; i < count; i++)
			order[i] = i;
		qsort_r(order, count, sizeof *order, compare_frames, builder);
		for (uint32_t i = 0; i < count; i++)
			rank[order[i]] = i;
	} else {
		free(rank);
		rank = NULL;
	}
	free(order);
	return rank;
}

/* ---- contexts in preorder ---- */

/* The tree as linked lists of siblings. */
struct links {
	uint32_t *first, *next;
};

static int
link_siblings(const struct plumb_builder *builder, const uint32_t *rank, const struct links *links)
{
	uint32_t count = builder->profile.contexts_count;
	struct plumb_sort_item *items = malloc(2 * (size_t)count * sizeof *items);
	if (!items)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_context *c = &builder->profile.contexts[i];
		items[i].key = (uint64_t)rank[c->frame] << 32 | c->flags;
		items[i].index = i;
	}
	plumb_sort(items, items + count, count);
	memset(links->first, 0xff, count * sizeof *links->first);
	/* From the last, so that each list begins with the first in order. */
	for (uint32_t i = count; i-- > 0;) {
		uint32_t id = items[i].index;
		uint32_t parent = builder->profile.contexts[id].parent;
		if (parent == PLUMB_NONE)
			continue;
		links->next[id] = links->first[parent];
		links->first[parent] = id;
	}
	free(items);
	return PLUMB_OK;
}

/* Walks the tree and fills OUT; NUMBER[provisional id] becomes the final id. */
static void
number_contexts(const struct plumb_builder *builder, const struct links *links,
                struct plumb_context *out, uint32_t *number)
{
	const struct plumb_context *nodes = builder->profile.contexts;
	uint32_t id = 0, depth = 0;
	links->next[0] = PLUMB_NONE;
	for (uint32_t place = 0;; place++) {
		uint32_t parent = nodes[id].parent;
		number[id] = place;
		out[place] = (struct plumb_context){
			.parent = parent == PLUMB_NONE ? PLUMB_NONE : number[parent],
			.frame = nodes[id].frame,
			.flags = nodes[id].flags,
			.depth = depth,
		};
		if (links->first[id] != PLUMB_NONE) {
			id = links->first[id];
			depth++;
			continue;
		}
		/* Up to the nearest ancestor with a sibling left; what is left behind is
		 * complete. */
		for (;;) {
			out[number[id]].last = place;
			if (links->next[id] != PLUMB_NONE)
				break;
			id = nodes[id].parent;
			if (id == PLUMB_NONE)
				return;
			depth--;
		}
		id = links->next[id];
	}
}

static int
finish_contexts(struct plumb_builder *builder, struct plumb_context **contexts, uint32_t **number)
{
	uint32_t count = builder->profile.contexts_count;
	uint32_t *rank = rank_frames(builder);
	struct links links = {
		.first = malloc(count * sizeof *links.first),
		.next = malloc(count * sizeof *links.next),
	};
	*contexts = malloc(count * sizeof **contexts);
	*number = malloc(count * sizeof **number);
	int code = PLUMB_ESYSTEM;
	if (rank && links.first && links.next && *contexts && *number)
		code = link_siblings(builder, rank, &links);
	if (!code) {
		number_contexts(builder, &links, *contexts, *number);
	} else {
		free(*contexts);
		free(*number);
	}
	free(rank);
	free(links.first);
	free(links.next);
	return code;
}

/* ---- rows ---- */

/* The ids of contexts in the rows of TABLE become final. */
static void
renumber_rows(struct plumb_profile *profile, const struct plumb_row_table *table,
              const uint32_t *number)
{
	struct plumb_row_array rows = plumb_row_array_of(profile, table);
	for (uint32_t c = 0; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		if ((column->cell != PLUMB_ROW_ID && column->cell != PLUMB_ROW_ID_OR_NONE) ||
		    column->limit != PLUMB_TABLE_CONTEXTS)
			continue;
		for (uint32_t i = 0; i < rows.count; i++) {
			char *field = rows.items + (size_t)i * table->row_size + column->offset;
			uint32_t id;
			memcpy(&id, field, sizeof id);
			if (id != PLUMB_NONE)
				memcpy(field, &number[id], sizeof id);
		}
	}
}

/* All tables but that of contexts, which are in their order. */
static int
finish_rows(struct plumb_profile *profile, const uint32_t *number)
{
	int code = PLUMB_OK;
	for (int t = 0; !code && t < PLUMB_TABLES; t++) {
		if (t == PLUMB_TABLE_CONTEXTS)
			continue;
		renumber_rows(profile, &plumb_row_tables[t], number);
		code = plumb_row_order(profile, &plumb_row_tables[t]);
	}
	return code;
}

static int
report_failure(const struct plumb_builder *builder, struct plumb_error *error)
{
	return builder->failure ? plumb_fail(error, builder->code, "%s", builder->failure)
	                        : plumb_fail_memory(error, "to build the profile");
}

int
plumb_builder_finish(struct plumb_builder *builder, struct plumb_profile *profile,
                     struct plumb_error *error)
{
	*profile = (struct plumb_profile){ 0 };
	if (builder->code)
		return report_failure(builder, error);
	struct plumb_context *contexts;
	uint32_t *number;
	int code = finish_contexts(builder, &contexts, &number);
	if (!code) {
		code = finish_rows(&builder->profile, number);
		free(number);
		free(builder->profile.contexts);
		builder->profile.contexts = contexts;
	}
	if (code) {
		/* Half renumbered: of no further use. */
		builder->code = code;
		return report_failure(builder, error);
	}
	*profile = builder->profile;
	builder->profile = (struct plumb_profile){ 0 };
	struct plumb_pool *pool;
	plumb_strtab_release(builder->strings, &profile->strings, &profile->strings_count, &pool);
	profile->storage = pool;
	builder->code = PLUMB_EINPUT;
	builder->failure = "the profile is already built";
	return PLUMB_OK;
}
