/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a process become windows of the kind PLUMB_WINDOW_PART. An analysis says later which of
 * them are start-up, which a loop. A part's values refer to records of the region. What refers to
 * something else is left out: the whole has been counted from the records themselves.
 */
#include "settle/settle_private.h"

#include <math.h>

/* Every call of an operator has a duration, so the calls are not recorded as well. */
static void
add_calls(struct plumb_settle_region *region, const struct plumb_window_value *duration)
{
	struct plumb_window_value calls = *duration;

	calls.metric = PLUMB_METRIC_OP_CALLS;
	calls.sum = (int64_t)duration->count;
	calls.m2 = 0;
	plumb_builder_window_value(region->settler->builder, &calls);
}

static void
take_value(struct plumb_settle_region *region, uint32_t window,
           const struct plumb_part_value *gained, const struct plumb_record_value *record)
{
	struct plumb_value place;
	struct plumb_window_value value = {
		.window = window, .sum = gained->sum, .count = gained->count, .m2 = gained->m2
	};

	if (!plumb_settle_value_place(region, record, &place) || gained->sum == PLUMB_UNKNOWN)
		return;
	value.context = place.context;
	value.metric = place.metric;
	value.track = place.track;
	value.ends = place.ends;
	plumb_builder_window_value(region->settler->builder, &value);
	if (value.metric == PLUMB_METRIC_OP_DURATION)
		add_calls(region, &value);
}

static void
take_variant(struct plumb_settle_region *region, uint32_t window,
             const struct plumb_part_value *gained, struct plumb_variant *variant)
{
	struct plumb_window_variant row = { .window = window };

	variant->count = gained->count;
	variant->time = gained->sum;
	variant->min = variant->max = PLUMB_UNKNOWN;
	row.variant = *variant;
	if (variant->time >= 0)
		plumb_builder_window_variant(region->settler->builder, &row);
}

static void
take_gain(struct plumb_settle_region *region, uint32_t window,
          const struct plumb_part_value *gained)
{
	const struct plumb_region_reader *reader = region->reader;
	const struct plumb_record_value *value =
		plumb_region_get(reader, gained->record, PLUMB_RECORD_VALUE, sizeof *value);
	const struct plumb_record_variant *variant =
		plumb_region_get(reader, gained->record, PLUMB_RECORD_VARIANT, sizeof *variant);
	const struct plumb_record_shape *shape =
		plumb_region_get(reader, gained->record, PLUMB_RECORD_SHAPE, sizeof *shape);
	struct plumb_variant place;

	if (!gained->count || gained->count > INT64_MAX || !isfinite(gained->m2) || gained->m2 < 0)
		return;
	if (value)
		take_value(region, window, gained, value);
	else if (variant && plumb_settle_variant_place(region, variant, &place))
		take_variant(region, window, gained, &place);
	else if (shape && plumb_settle_shape_place(region, shape, &place))
		take_variant(region, window, gained, &place);
}

static void
take_device(struct plumb_settle_region *region, uint32_t window,
            const struct plumb_part_device *gained)
{
	struct plumb_window_device row = {
		.window = window,
		.device = plumb_settle_device(region, gained->device),
		.kernels = plumb_settle_number(gained->kernels),
		.kernel_ns = plumb_settle_number(gained->kernel_ns),
		.copies = plumb_settle_number(gained->copies),
		.copy_ns = plumb_settle_number(gained->copy_ns),
		.copy_bytes = plumb_settle_number(gained->copy_bytes),
		.sets = plumb_settle_number(gained->sets),
		.set_ns = plumb_settle_number(gained->set_ns),
		.set_bytes = plumb_settle_number(gained->set_bytes),
		.busy_ns = plumb_settle_number(gained->busy_ns),
	};

	if (row.device != PLUMB_NONE)
		plumb_builder_window_device(region->settler->builder, &row);
}

void
plumb_settle_parts(struct plumb_settle_region *region, const struct plumb_parts *parts)
{
	struct plumb_builder *builder = region->settler->builder;

	for (uint32_t i = 0; i < parts->count; i++) {
		const struct plumb_part *part = &parts->items[i];
		struct plumb_window window = { .process = region->process,
			                       .kind = PLUMB_WINDOW_PART,
			                       .number = i + 1,
			                       .iterations = PLUMB_UNKNOWN };
		struct plumb_window_stretch stretch = { .start_ns = (int64_t)part->start,
			                                .end_ns = (int64_t)part->end };
		uint32_t id = plumb_builder_window(builder, &window);
		if (id == PLUMB_NONE)
			return; /* kept in the builder */
		stretch.window = id;
		plumb_builder_window_stretch(builder, &stretch);
		for (uint32_t v = 0; v < part->value_count; v++)
			take_gain(region, id, &part->values[v]);
		for (uint32_t d = 0; d < part->device_count; d++)
			take_device(region, id, &part->devices[d]);
	}
	plumb_settle_count(region, PLUMB_SOURCE_LOOK, PLUMB_FATE_RECEIVED, NULL, parts->looks);
	plumb_settle_count(region, PLUMB_SOURCE_LOOK, PLUMB_FATE_ATTRIBUTED, NULL, parts->count);
	plumb_settle_count(region, PLUMB_SOURCE_LOOK, PLUMB_FATE_OVERFLOWED, NULL,
	                   parts->looks > parts->count ? parts->looks - parts->count : 0);
}
