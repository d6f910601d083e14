/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting what a builder took in into order. Every step is linear but the ordering of frames by
 * their texts; nothing recurses, because trees may be very deep.
 */
#include "model/builder_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/order.h"

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
	const struct plumb_frame *a = &builder->frames.items[*(const uint32_t *)x];
	const struct plumb_frame *b = &builder->frames.items[*(const uint32_t *)y];
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
	uint32_t count = builder->frames.count;
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
	uint32_t count = builder->contexts.count;
	struct plumb_sort_item *items = malloc(2 * (size_t)count * sizeof *items);
	if (!items)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_builder_node *c = &builder->contexts.items[i];
		items[i].key = (uint64_t)rank[c->frame] << 32 | c->flags;
		items[i].index = i;
	}
	plumb_sort(items, items + count, count);
	memset(links->first, 0xff, count * sizeof *links->first);
	/* From the last, so that each list begins with the first in order. */
	for (uint32_t i = count; i-- > 0;) {
		uint32_t id = items[i].index;
		uint32_t parent = builder->contexts.items[id].parent;
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
	const struct plumb_builder_node *nodes = builder->contexts.items;
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
	uint32_t count = builder->contexts.count;
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

/* ---- rows in order ---- */

static uint64_t
value_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_value *v = row;
	return which == 0 ? v->context : (uint64_t)v->metric << 32 | v->track;
}

static uint64_t
variant_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_variant *v = row;
	switch (which) {
	case 0:
		return (uint64_t)v->context << 32 | v->track;
	case 1:
		return ~plumb_sort_signed(v->time); /* the longest first */
	default:
		return ~v->count;
	}
}

static uint64_t
origin_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_origin *o = row;
	return which == 0 ? o->context : (uint64_t)o->reason << 32 | o->origin;
}

static uint64_t
series_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_series_bin *s = row;
	return which == 0 ? (uint64_t)s->device << 32 | s->process : plumb_sort_signed(s->start_ns);
}

static uint64_t
device_process_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_device_process *d = row;
	return which == 0 ? d->device : d->process;
}

static uint64_t
ledger_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_ledger_row *l = row;
	/* The profile as a whole (PLUMB_NONE) comes first. */
	return which == 0 ? (uint32_t)(l->process + 1) : (uint64_t)l->source << 32 | l->fate;
}

static uint64_t
cpu_sample_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_cpu_sample *s = row;
	return which == 0   ? s->track
	       : which == 1 ? plumb_sort_signed(s->at_ns)
	                    : (uint64_t)s->context;
}

#define ORDER(vec, key, keys)                                                                      \
	plumb_sort_rows((vec).items, (vec).count, sizeof *(vec).items, key, keys, NULL)

static int
order_all(struct plumb_builder *builder)
{
	int code = ORDER(builder->values, value_key, 2);
	if (!code)
		code = ORDER(builder->variants, variant_key, 3);
	if (!code)
		code = ORDER(builder->origins, origin_key, 2);
	if (!code)
		code = plumb_order_work(builder->work.items, builder->work.count,
		                        builder->tracks.items);
	if (!code)
		code = ORDER(builder->series, series_key, 2);
	if (!code)
		code = ORDER(builder->device_processes, device_process_key, 2);
	if (!code)
		code = ORDER(builder->ledger, ledger_key, 2);
	if (!code)
		code = ORDER(builder->cpu_samples, cpu_sample_key, 3);
	if (!code)
		code = plumb_order_spans(builder->spans.items, builder->spans.count);
	return code;
}

static void
renumber(struct plumb_builder *builder, const uint32_t *number)
{
	for (uint32_t i = 0; i < builder->values.count; i++)
		builder->values.items[i].context = number[builder->values.items[i].context];
	for (uint32_t i = 0; i < builder->variants.count; i++)
		builder->variants.items[i].context = number[builder->variants.items[i].context];
	for (uint32_t i = 0; i < builder->origins.count; i++) {
		builder->origins.items[i].context = number[builder->origins.items[i].context];
		builder->origins.items[i].origin = number[builder->origins.items[i].origin];
	}
	for (uint32_t i = 0; i < builder->work.count; i++)
		builder->work.items[i].context = number[builder->work.items[i].context];
	for (uint32_t i = 0; i < builder->spans.count; i++)
		builder->spans.items[i].context = number[builder->spans.items[i].context];
	for (uint32_t i = 0; i < builder->cpu_samples.count; i++)
		builder->cpu_samples.items[i].context =
			number[builder->cpu_samples.items[i].context];
	for (uint32_t i = 0; i < builder->findings.count; i++)
		if (builder->findings.items[i].context != PLUMB_NONE)
			builder->findings.items[i].context =
				number[builder->findings.items[i].context];
}

#define MOVE(column)                                                                               \
	do {                                                                                       \
		profile->column = builder->column.items;                                           \
		profile->column##_count = builder->column.count;                                   \
		builder->column.items = NULL;                                                      \
		builder->column.count = builder->column.capacity = 0;                              \
	} while (0)

int
plumb_builder_finish(struct plumb_builder *builder, struct plumb_profile *profile,
                     struct plumb_error *error)
{
	*profile = (struct plumb_profile){ 0 };
	if (builder->code)
		return plumb_fail(error, builder->code, "%s", builder->failure);
	struct plumb_context *contexts;
	uint32_t *number;
	int code = finish_contexts(builder, &contexts, &number);
	if (!code) {
		uint32_t count = builder->contexts.count;
		renumber(builder, number);
		free(number);
		code = order_all(builder);
		if (!code) {
			profile->contexts = contexts;
			profile->contexts_count = count;
		} else {
			free(contexts);
		}
	}
	if (code) {
		/* Half renumbered: of no further use. */
		builder->code = code;
		builder->failure = "not enough memory to build the profile; close other programs";
		return plumb_fail(error, code, "%s", builder->failure);
	}
	MOVE(frames);
	MOVE(values);
	MOVE(user_metrics);
	MOVE(variants);
	MOVE(origins);
	MOVE(processes);
	MOVE(tracks);
	MOVE(devices);
	MOVE(device_processes);
	MOVE(clocks);
	MOVE(ledger);
	MOVE(environment);
	MOVE(findings);
	MOVE(code_objects);
	MOVE(work);
	MOVE(series);
	MOVE(memory);
	MOVE(spans);
	MOVE(waits);
	MOVE(collectives);
	MOVE(cpu_samples);
	profile->run = builder->run;
	struct plumb_pool *pool;
	plumb_strtab_release(builder->strings, &profile->strings, &profile->strings_count, &pool);
	profile->storage = pool;
	builder->code = PLUMB_EINPUT;
	builder->failure = "the profile is already built";
	return PLUMB_OK;
}
