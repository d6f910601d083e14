/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that ran: their contexts, configurations and metrics. What repeats (the kernel of a call,
 * the configuration of a kernel) is found in a cache.
 */
#include <string.h>

#include "collect/comm/comm.h"
#include "collect/gpu/activity.h"
#include "collect/table.h"

#define VARIANTS_A_NODE 512u /* further configurations share one without numbers */

/* The kernel's context under PARENT. A name's pointer may come again for another kernel when its
 * module was unloaded, so the text is compared. */
static plumb_id
find_kernel(struct plumb_gpu_activity *activity, struct plumb_thread *thread, plumb_id parent,
            const char *name)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t hash = plumb_mix(parent, (uint64_t)(uintptr_t)name);
	__typeof__(&activity->kernels[0]) entry = &activity->kernels[hash % PLUMB_KERNEL_NAMES];
	size_t length = strlen(name);
	if (length > PLUMB_STRING_MAX)
		length = PLUMB_STRING_MAX;
	if (entry->node && entry->parent == parent && entry->name == name) {
		const struct plumb_record_node *node = plumb_region_at(region, entry->node);
		const struct plumb_record_string *text = plumb_region_at(region, node->name);
		if (node->name && text->bytes == length && !memcmp(text + 1, name, length))
			return entry->node;
	}
	struct plumb_key key = {
		.kind = PLUMB_FRAME_KERNEL,
		.name = plumb_intern(thread, name, length),
	};
	plumb_id node = plumb_child(thread, parent, &key);
	if (node != PLUMB_LOST) {
		entry->parent = parent;
		entry->node = node;
		entry->name = name;
	}
	return node;
}

/* ---- configurations ---- */

static bool
is_same(const struct plumb_record_variant *a, const struct plumb_record_variant *b)
{
	return !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) && a->registers == b->registers &&
	       a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared;
}

/* The VARIANT of NODE on TRACK with WANTED's configuration, made if missing. NULL: no room. */
static struct plumb_record_variant *
make_variant(struct plumb_thread *thread, plumb_id node_id, plumb_id track,
             const struct plumb_record_variant *wanted)
{
	static const struct plumb_record_variant other;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_node *node = plumb_region_at(arena->region, node_id);
	struct plumb_record_variant *variant;
	unsigned count = 0;
	for (plumb_id id = node->first_variant; id; id = variant->next) {
		variant = plumb_region_at(arena->region, id);
		if (variant->track == track && is_same(variant, wanted))
			return variant;
		count++;
	}
	if (count >= VARIANTS_A_NODE && wanted->block[0])
		return make_variant(thread, node_id, track, &other);
	variant = plumb_arena_append(arena, PLUMB_RECORD_VARIANT, sizeof *variant);
	if (!variant) {
		plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
		return NULL;
	}
	struct plumb_record head = variant->head;
	*variant = *wanted;
	variant->head = head;
	variant->node = node_id;
	variant->track = track;
	variant->next = node->first_variant;
	if (!wanted->block[0])
		variant->occupancy = UINT32_MAX;
	plumb_arena_commit(arena, variant);
	node->first_variant = plumb_region_id(arena->region, variant);
	return variant;
}

static struct plumb_record_variant *
find_variant(struct plumb_gpu_activity *activity, struct plumb_thread *thread, plumb_id node,
             plumb_id track, const struct plumb_record_variant *wanted)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t hash = plumb_mix((uint64_t)node << 32 | track,
	                          (uint64_t)wanted->grid[0] << 32 | wanted->grid[1] << 16 |
	                                  (wanted->dynamic_shared ^ wanted->block[0]));
	__typeof__(&activity->variants[0]) entry = &activity->variants[hash % PLUMB_KERNEL_SHAPES];
	if (entry->variant && entry->node == node && entry->track == track) {
		struct plumb_record_variant *variant = plumb_region_at(region, entry->variant);
		if (is_same(variant, wanted))
			return variant;
	}
	struct plumb_record_variant *variant = make_variant(thread, node, track, wanted);
	if (variant) {
		entry->node = node;
		entry->track = track;
		entry->variant = plumb_region_id(region, variant);
	}
	return variant;
}

static void
add_time(struct plumb_record_variant *variant, int64_t ns)
{
	plumb_sequence_begin(&variant->sequence);
	variant->time += ns;
	variant->count++;
	if (ns < variant->min || variant->count == 1)
		variant->min = ns;
	if (ns > variant->max || variant->count == 1)
		variant->max = ns;
	plumb_sequence_end(&variant->sequence);
}

/* ---- kernels ---- */

static uint64_t
volume_of(const uint32_t size[3])
{
	return (uint64_t)size[0] * size[1] * size[2];
}

void
plumb_gpu_kernel(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                 const struct plumb_gpu_record *record, struct plumb_gpu_device *device,
                 const char *name, const struct plumb_record_variant *configuration, uint32_t warp)
{
	plumb_id node = find_kernel(activity, thread, record->launch.node, name);
	plumb_id track = plumb_gpu_place(thread, record, device, node);
	if (plumb_unlikely(plumb_comm_wanted))
		plumb_comm_ran(record->correlation, track, record->start, record->end);
	uint64_t blocks = volume_of(configuration->grid);
	uint64_t warps = (volume_of(configuration->block) + warp - 1) / warp;
	int64_t ns = (int64_t)(record->end - record->start);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_TIME, track, ns);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_BLOCKS, track, (int64_t)blocks);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_WARPS, track, (int64_t)(blocks * warps));
	plumb_observe(thread, node, PLUMB_METRIC_GPU_REGISTERS, track, configuration->registers);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_SHARED_BYTES, track,
	              configuration->static_shared + configuration->dynamic_shared);
	if (configuration->occupancy != UINT32_MAX)
		plumb_observe(thread, node, PLUMB_METRIC_GPU_OCCUPANCY, track,
		              configuration->occupancy);
	if (node == PLUMB_LOST)
		return;
	struct plumb_record_variant *variant =
		find_variant(activity, thread, node, track, configuration);
	if (variant)
		add_time(variant, ns);
}
