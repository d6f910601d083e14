/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking rows in. Every kind of row that can come twice has a map from its identity to its index;
 * putting things in order is left to finish.c.
 */
#include "model/builder_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/secret.h"
#include "base/utf8.h"
#include "model/metric.h"

static int
out_of_memory(struct plumb_builder *builder)
{
	if (!builder->code) {
		builder->code = PLUMB_ESYSTEM;
		builder->failure = "not enough memory to build the profile; close other programs";
	}
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

struct plumb_builder *
plumb_builder_new(void)
{
	struct plumb_builder *builder = calloc(1, sizeof *builder);
	if (!builder)
		return NULL;
	builder->run = (struct plumb_run){
		.command = PLUMB_NONE,
		.tool_version = PLUMB_NONE,
		.start_ns = PLUMB_UNKNOWN,
		.wall_ns = PLUMB_UNKNOWN,
		.exit_code = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};
	builder->strings = plumb_strtab_new();
	uint32_t frame = PLUMB_NONE;
	if (builder->strings)
		frame = plumb_builder_frame(builder, PLUMB_FRAME_ROOT, PLUMB_NONE, PLUMB_NONE, 0);
	struct plumb_builder_node *root =
		frame != PLUMB_NONE ? plumb_vec_add(&builder->contexts) : NULL;
	if (!root) {
		plumb_builder_free(builder);
		return NULL;
	}
	*root = (struct plumb_builder_node){ .parent = PLUMB_NONE, .frame = frame };
	return builder;
}

void
plumb_builder_free(struct plumb_builder *builder)
{
	if (!builder)
		return;
	plumb_strtab_free(builder->strings);
	plumb_vec_free(&builder->frames);
	plumb_vec_free(&builder->contexts);
	plumb_vec_free(&builder->values);
	plumb_vec_free(&builder->user_metrics);
	plumb_vec_free(&builder->variants);
	plumb_vec_free(&builder->origins);
	plumb_vec_free(&builder->processes);
	plumb_vec_free(&builder->tracks);
	plumb_vec_free(&builder->devices);
	plumb_vec_free(&builder->clocks);
	plumb_vec_free(&builder->ledger);
	plumb_vec_free(&builder->environment);
	plumb_vec_free(&builder->findings);
	plumb_vec_free(&builder->code_objects);
	plumb_vec_free(&builder->work);
	plumb_vec_free(&builder->series);
	plumb_vec_free(&builder->memory);
	plumb_vec_free(&builder->device_processes);
	plumb_vec_free(&builder->spans);
	plumb_vec_free(&builder->waits);
	plumb_vec_free(&builder->collectives);
	plumb_vec_free(&builder->cpu_samples);
	plumb_map_free(&builder->frame_map);
	plumb_map_free(&builder->context_map);
	plumb_map_free(&builder->value_map);
	plumb_map_free(&builder->variant_map);
	plumb_map_free(&builder->origin_map);
	plumb_map_free(&builder->ledger_map);
	plumb_map_free(&builder->environment_map);
	plumb_map_free(&builder->code_map);
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

static bool
is_process(const struct plumb_builder *builder, uint32_t id)
{
	return id == PLUMB_NONE || id < builder->processes.count;
}

static bool
is_device(const struct plumb_builder *builder, uint32_t id)
{
	return id == PLUMB_NONE || id < builder->devices.count;
}

static bool
is_track(const struct plumb_builder *builder, uint32_t id)
{
	return id == PLUMB_NONE || id < builder->tracks.count;
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
	for (uint32_t id = plumb_map_first(&builder->frame_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->frame_map, &at)) {
		const struct plumb_frame *f = &builder->frames.items[id];
		if (f->kind == kind && f->name == name && f->file == file && f->line == line)
			return id;
	}
	struct plumb_frame *frame = plumb_vec_add(&builder->frames);
	if (!frame || plumb_map_add(&builder->frame_map, hash, builder->frames.count - 1)) {
		builder->frames.count -= frame != NULL;
		out_of_memory(builder);
		return PLUMB_NONE;
	}
	*frame = (struct plumb_frame){ kind, name, file, line, PLUMB_NONE, PLUMB_NONE, 0 };
	return builder->frames.count - 1;
}

void
plumb_builder_frame_display(struct plumb_builder *builder, uint32_t frame, uint32_t display)
{
	if (frame >= builder->frames.count || !is_string(builder, display)) {
		if (frame != PLUMB_NONE)
			bad_row(builder, "a display name is for an unknown frame or text");
		return;
	}
	builder->frames.items[frame].display = display;
}

void
plumb_builder_frame_source(struct plumb_builder *builder, uint32_t frame, uint32_t file,
                           uint32_t line)
{
	if (frame >= builder->frames.count || !is_string(builder, file)) {
		if (frame != PLUMB_NONE)
			bad_row(builder, "a source line is for an unknown frame or file");
		return;
	}
	builder->frames.items[frame].source_file = file;
	builder->frames.items[frame].source_line = line;
}

const struct plumb_frame *
plumb_builder_get_frame(const struct plumb_builder *builder, uint32_t frame)
{
	return frame < builder->frames.count ? &builder->frames.items[frame] : NULL;
}

uint32_t
plumb_builder_frame_count(const struct plumb_builder *builder)
{
	return builder->frames.count;
}

uint32_t
plumb_builder_context(struct plumb_builder *builder, uint32_t parent, uint32_t frame,
                      uint32_t flags)
{
	if (parent >= builder->contexts.count || frame >= builder->frames.count) {
		bad_row(builder, "a context has an unknown parent or frame");
		return PLUMB_NONE;
	}
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(flags, parent), frame);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->context_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->context_map, &at)) {
		const struct plumb_builder_node *c = &builder->contexts.items[id];
		if (c->parent == parent && c->frame == frame && c->flags == flags)
			return id;
	}
	struct plumb_builder_node *node = plumb_vec_add(&builder->contexts);
	if (!node || plumb_map_add(&builder->context_map, hash, builder->contexts.count - 1)) {
		builder->contexts.count -= node != NULL;
		out_of_memory(builder);
		return PLUMB_NONE;
	}
	*node = (struct plumb_builder_node){ parent, frame, flags };
	return builder->contexts.count - 1;
}

struct plumb_context
plumb_builder_get_context(const struct plumb_builder *builder, uint32_t context)
{
	const struct plumb_builder_node *node = &builder->contexts.items[context];
	return (struct plumb_context){ node->parent, node->frame, node->flags, PLUMB_NONE, 0 };
}

/* ---- what was measured at a context ---- */

static void
merge_value(struct plumb_value *into, const struct plumb_value *from)
{
	struct plumb_stat a = {
		into->sum, into->count, into->min, into->max, into->mean, into->m2
	};
	struct plumb_stat b = {
		from->sum, from->count, from->min, from->max, from->mean, from->m2
	};
	plumb_stat_merge(&a, &b);
	into->sum = a.sum;
	into->count = a.count;
	into->min = a.min;
	into->max = a.max;
	into->mean = a.mean;
	into->m2 = a.m2;
}

static bool
is_metric(const struct plumb_builder *builder, uint32_t number)
{
	if (number < PLUMB_METRIC_USER)
		return number && number < PLUMB_METRIC_COUNT;
	return number - PLUMB_METRIC_USER < builder->user_metrics.count;
}

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
	for (uint32_t i = 0; i < builder->user_metrics.count; i++)
		if (builder->user_metrics.items[i].name == name)
			return PLUMB_METRIC_USER + i;
	if (builder->user_metrics.count >= PLUMB_USER_METRICS_MOST)
		return 0;
	struct plumb_user_metric *added = plumb_vec_add(&builder->user_metrics);
	if (!added) {
		out_of_memory(builder);
		return 0;
	}
	*added = (struct plumb_user_metric){ name, unit };
	return PLUMB_METRIC_USER + builder->user_metrics.count - 1;
}

int
plumb_builder_value(struct plumb_builder *builder, const struct plumb_value *value)
{
	if (value->context >= builder->contexts.count || !is_track(builder, value->track) ||
	    !is_metric(builder, value->metric))
		return bad_row(builder, "a value has an unknown context, metric or track");
	if (!value->count)
		return PLUMB_OK; /* no observation: nothing to add */
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(value->metric, value->context), value->track);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->value_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->value_map, &at)) {
		struct plumb_value *v = &builder->values.items[id];
		if (v->context == value->context && v->metric == value->metric &&
		    v->track == value->track) {
			merge_value(v, value);
			return PLUMB_OK;
		}
	}
	struct plumb_value *added = plumb_vec_add(&builder->values);
	if (!added || plumb_map_add(&builder->value_map, hash, builder->values.count - 1)) {
		builder->values.count -= added != NULL;
		return out_of_memory(builder);
	}
	*added = *value;
	return PLUMB_OK;
}

static bool
same_variant(const struct plumb_variant *a, const struct plumb_variant *b)
{
	return a->context == b->context && a->track == b->track && a->shapes == b->shapes &&
	       !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) && a->registers == b->registers &&
	       a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared &&
	       a->occupancy == b->occupancy;
}

static uint64_t
hash_variant(const struct plumb_variant *v)
{
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(v->context, v->track), v->shapes);
	for (int i = 0; i < 3; i++)
		hash = plumb_hash_mix(hash, (uint64_t)v->grid[i] * 31 + (uint64_t)v->block[i]);
	hash = plumb_hash_mix(hash, (uint64_t)v->registers);
	hash = plumb_hash_mix(hash, (uint64_t)v->static_shared);
	return plumb_hash_mix(hash, (uint64_t)v->dynamic_shared);
}

static void
merge_variant(struct plumb_variant *into, const struct plumb_variant *from)
{
	struct plumb_stat a = {
		.sum = into->time, .count = into->count, .min = into->min, .max = into->max
	};
	struct plumb_stat b = {
		.sum = from->time, .count = from->count, .min = from->min, .max = from->max
	};
	plumb_stat_merge(&a, &b);
	into->time = a.sum;
	into->count = a.count;
	into->min = a.min;
	into->max = a.max;
}

int
plumb_builder_variant(struct plumb_builder *builder, const struct plumb_variant *variant)
{
	if (variant->context >= builder->contexts.count || !is_track(builder, variant->track) ||
	    !is_string(builder, variant->shapes))
		return bad_row(builder, "a variant has an unknown context, track or text");
	if (!variant->count)
		return PLUMB_OK;
	uint64_t hash = hash_variant(variant);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->variant_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->variant_map, &at))
		if (same_variant(&builder->variants.items[id], variant)) {
			merge_variant(&builder->variants.items[id], variant);
			return PLUMB_OK;
		}
	struct plumb_variant *added = plumb_vec_add(&builder->variants);
	if (!added || plumb_map_add(&builder->variant_map, hash, builder->variants.count - 1)) {
		builder->variants.count -= added != NULL;
		return out_of_memory(builder);
	}
	*added = *variant;
	return PLUMB_OK;
}

int
plumb_builder_origin(struct plumb_builder *builder, const struct plumb_origin *origin)
{
	if (origin->context >= builder->contexts.count ||
	    origin->origin >= builder->contexts.count ||
	    origin->reason < PLUMB_ORIGIN_OF_BACKWARD_CALL ||
	    origin->reason > PLUMB_ORIGIN_OF_INLINED)
		return bad_row(builder, "an origin has an unknown context or reason");
	uint64_t hash =
		plumb_hash_mix(plumb_hash_mix(origin->reason, origin->context), origin->origin);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->origin_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->origin_map, &at)) {
		const struct plumb_origin *o = &builder->origins.items[id];
		if (o->context == origin->context && o->origin == origin->origin &&
		    o->reason == origin->reason)
			return PLUMB_OK;
	}
	struct plumb_origin *added = plumb_vec_add(&builder->origins);
	if (!added || plumb_map_add(&builder->origin_map, hash, builder->origins.count - 1)) {
		builder->origins.count -= added != NULL;
		return out_of_memory(builder);
	}
	*added = *origin;
	return PLUMB_OK;
}

/* ---- where it was measured ---- */

uint32_t
plumb_builder_process(struct plumb_builder *builder, const struct plumb_process *process)
{
	struct plumb_process *added = NULL;
	if (!is_string(builder, process->host) || !is_string(builder, process->command))
		bad_row(builder, "a process has an unknown text");
	else if (!(added = plumb_vec_add(&builder->processes)))
		out_of_memory(builder);
	if (!added)
		return PLUMB_NONE;
	*added = *process;
	return builder->processes.count - 1;
}

uint32_t
plumb_builder_track(struct plumb_builder *builder, const struct plumb_track *track)
{
	struct plumb_track *added = NULL;
	if (track->kind < PLUMB_TRACK_THREAD || track->kind > PLUMB_TRACK_MEMORY ||
	    !is_process(builder, track->process) || !is_device(builder, track->device) ||
	    !is_string(builder, track->name))
		bad_row(builder, "a track has an unknown kind, process, device or text");
	else if (!(added = plumb_vec_add(&builder->tracks)))
		out_of_memory(builder);
	if (!added)
		return PLUMB_NONE;
	*added = *track;
	return builder->tracks.count - 1;
}

uint32_t
plumb_builder_device(struct plumb_builder *builder, const struct plumb_device *device)
{
	struct plumb_device *added = NULL;
	if (!is_string(builder, device->name) || !is_string(builder, device->uuid))
		bad_row(builder, "a device has an unknown text");
	else if (!(added = plumb_vec_add(&builder->devices)))
		out_of_memory(builder);
	if (!added)
		return PLUMB_NONE;
	*added = *device;
	return builder->devices.count - 1;
}

struct plumb_process *
plumb_builder_get_process(struct plumb_builder *builder, uint32_t process)
{
	return process < builder->processes.count ? &builder->processes.items[process] : NULL;
}

struct plumb_device *
plumb_builder_get_device(struct plumb_builder *builder, uint32_t device)
{
	return device < builder->devices.count ? &builder->devices.items[device] : NULL;
}

struct plumb_track *
plumb_builder_get_track(struct plumb_builder *builder, uint32_t track)
{
	return track < builder->tracks.count ? &builder->tracks.items[track] : NULL;
}

uint32_t
plumb_builder_device_count(const struct plumb_builder *builder)
{
	return builder->devices.count;
}

int
plumb_builder_clock(struct plumb_builder *builder, const struct plumb_clock *clock)
{
	if (!is_process(builder, clock->process) || !is_device(builder, clock->device))
		return bad_row(builder, "a clock has an unknown process or device");
	struct plumb_clock *added = plumb_vec_add(&builder->clocks);
	if (!added)
		return out_of_memory(builder);
	*added = *clock;
	return PLUMB_OK;
}

/* ---- the run ---- */

int
plumb_builder_ledger(struct plumb_builder *builder, uint32_t process, uint32_t source,
                     uint32_t fate, uint32_t detail, int64_t count)
{
	if (!is_process(builder, process) || !is_string(builder, detail) || !source ||
	    source >= PLUMB_SOURCE_COUNT || fate >= PLUMB_FATE_COUNT)
		return bad_row(builder,
		               "a ledger row has an unknown process, source, fate or text");
	uint64_t hash =
		plumb_hash_mix(plumb_hash_mix((uint64_t)source << 32 | fate, process), detail);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->ledger_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->ledger_map, &at)) {
		struct plumb_ledger_row *row = &builder->ledger.items[id];
		if (row->process != process || row->source != source || row->fate != fate ||
		    row->detail != detail)
			continue;
		if (__builtin_add_overflow(row->count, count, &row->count))
			row->count = count < 0 ? INT64_MIN + 1 : INT64_MAX;
		return PLUMB_OK;
	}
	struct plumb_ledger_row *added = plumb_vec_add(&builder->ledger);
	if (!added || plumb_map_add(&builder->ledger_map, hash, builder->ledger.count - 1)) {
		builder->ledger.count -= added != NULL;
		return out_of_memory(builder);
	}
	*added = (struct plumb_ledger_row){ process, source, fate, detail, count };
	return PLUMB_OK;
}

int
plumb_builder_environment(struct plumb_builder *builder, uint32_t process, const char *key,
                          const char *value)
{
	uint32_t k = plumb_builder_text(builder, key);
	uint32_t v = plumb_builder_text(builder, value);
	if (!is_process(builder, process) || !key || !value)
		return bad_row(builder,
		               "an environment row has no key or value, or an unknown process");
	if (k == PLUMB_NONE || v == PLUMB_NONE)
		return builder->code;
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(k, process), 1);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->environment_map, hash, &at);
	     id != PLUMB_MAP_NONE; id = plumb_map_next(&builder->environment_map, &at))
		if (builder->environment.items[id].process == process &&
		    builder->environment.items[id].key == k)
			return PLUMB_OK;
	struct plumb_environment_row *added = plumb_vec_add(&builder->environment);
	if (!added ||
	    plumb_map_add(&builder->environment_map, hash, builder->environment.count - 1)) {
		builder->environment.count -= added != NULL;
		return out_of_memory(builder);
	}
	*added = (struct plumb_environment_row){ process, k, v };
	return PLUMB_OK;
}

int
plumb_builder_work(struct plumb_builder *builder, const struct plumb_work_item *item)
{
	if (item->context >= builder->contexts.count || item->track >= builder->tracks.count ||
	    item->end_ns < item->start_ns)
		return bad_row(builder,
		               "GPU work has an unknown context or track or ends too early");
	struct plumb_work_item *added = plumb_vec_add(&builder->work);
	if (!added)
		return out_of_memory(builder);
	*added = *item;
	return PLUMB_OK;
}

int
plumb_builder_span(struct plumb_builder *builder, const struct plumb_span *span)
{
	if (span->context >= builder->contexts.count || span->track >= builder->tracks.count ||
	    span->end_ns < span->start_ns)
		return bad_row(builder, "a span has an unknown context or track or ends too early");
	if (builder->spans.count >= PLUMB_SPANS_MAX)
		return 1;
	struct plumb_span *added = plumb_vec_add(&builder->spans);
	if (!added)
		return out_of_memory(builder);
	*added = *span;
	return PLUMB_OK;
}

int
plumb_builder_wait(struct plumb_builder *builder, const struct plumb_wait *wait)
{
	if (wait->track >= builder->tracks.count || !is_track(builder, wait->awaited) ||
	    !is_device(builder, wait->device))
		return bad_row(builder, "a wait has an unknown track or device");
	struct plumb_wait *added = plumb_vec_add(&builder->waits);
	if (!added)
		return out_of_memory(builder);
	*added = *wait;
	return PLUMB_OK;
}

int
plumb_builder_collective(struct plumb_builder *builder, const struct plumb_collective *row)
{
	if (row->track >= builder->tracks.count || !is_string(builder, row->group) ||
	    !is_string(builder, row->ranks))
		return bad_row(builder, "a collective has an unknown track or text");
	struct plumb_collective *added = plumb_vec_add(&builder->collectives);
	if (!added)
		return out_of_memory(builder);
	*added = *row;
	return PLUMB_OK;
}

int
plumb_builder_cpu_sample(struct plumb_builder *builder, const struct plumb_cpu_sample *sample)
{
	if (sample->context >= builder->contexts.count || sample->track >= builder->tracks.count ||
	    sample->ns < 0)
		return bad_row(builder, "a CPU sample has an unknown context or track or no time");
	if (builder->cpu_samples.count >= PLUMB_CPU_SAMPLES_MAX)
		return 1;
	struct plumb_cpu_sample *added = plumb_vec_add(&builder->cpu_samples);
	if (!added)
		return out_of_memory(builder);
	*added = *sample;
	return PLUMB_OK;
}

const struct plumb_cpu_sample *
plumb_builder_get_cpu_samples(const struct plumb_builder *builder, uint32_t *count)
{
	*count = builder->cpu_samples.count;
	return builder->cpu_samples.items;
}

int
plumb_builder_series(struct plumb_builder *builder, const struct plumb_series_bin *bin)
{
	if (!is_process(builder, bin->process) || !is_device(builder, bin->device))
		return bad_row(builder, "a bin of a series has an unknown process or device");
	struct plumb_series_bin *added = plumb_vec_add(&builder->series);
	if (!added)
		return out_of_memory(builder);
	*added = *bin;
	return PLUMB_OK;
}

int
plumb_builder_memory(struct plumb_builder *builder, const struct plumb_memory *memory)
{
	if (memory->track >= builder->tracks.count ||
	    builder->tracks.items[memory->track].kind != PLUMB_TRACK_MEMORY)
		return bad_row(builder, "a row of memory has an unknown track");
	struct plumb_memory *added = plumb_vec_add(&builder->memory);
	if (!added)
		return out_of_memory(builder);
	*added = *memory;
	return PLUMB_OK;
}

int
plumb_builder_device_process(struct plumb_builder *builder, const struct plumb_device_process *row)
{
	if (row->process >= builder->processes.count || row->device >= builder->devices.count)
		return bad_row(builder, "a device's process or a process's device is unknown");
	struct plumb_device_process *added = plumb_vec_add(&builder->device_processes);
	if (!added)
		return out_of_memory(builder);
	*added = *row;
	return PLUMB_OK;
}

int
plumb_builder_finding(struct plumb_builder *builder, const struct plumb_finding *finding)
{
	if ((finding->context != PLUMB_NONE && finding->context >= builder->contexts.count) ||
	    !is_string(builder, finding->id) || !is_string(builder, finding->rule) ||
	    !is_string(builder, finding->title) || !is_string(builder, finding->advice) ||
	    !is_string(builder, finding->evidence) || finding->severity < 1 ||
	    finding->severity > 3)
		return bad_row(builder, "a finding has an unknown context, text or severity");
	struct plumb_finding *added = plumb_vec_add(&builder->findings);
	if (!added)
		return out_of_memory(builder);
	*added = *finding;
	return PLUMB_OK;
}

int
plumb_builder_code_object(struct plumb_builder *builder, const struct plumb_code_object *object)
{
	if (!is_process(builder, object->process) || !is_string(builder, object->kind) ||
	    !is_string(builder, object->path) || !is_string(builder, object->build_id) ||
	    !is_string(builder, object->hash))
		return bad_row(builder, "a code object has an unknown process or text");
	uint64_t hash =
		plumb_hash_mix(plumb_hash_mix(object->path, object->build_id), object->process);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&builder->code_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&builder->code_map, &at)) {
		const struct plumb_code_object *o = &builder->code_objects.items[id];
		if (o->process == object->process && o->path == object->path &&
		    o->build_id == object->build_id)
			return PLUMB_OK;
	}
	struct plumb_code_object *added = plumb_vec_add(&builder->code_objects);
	if (!added || plumb_map_add(&builder->code_map, hash, builder->code_objects.count - 1)) {
		builder->code_objects.count -= added != NULL;
		return out_of_memory(builder);
	}
	*added = *object;
	return PLUMB_OK;
}

struct plumb_run *
plumb_builder_run(struct plumb_builder *builder)
{
	return &builder->run;
}
