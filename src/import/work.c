/* SPDX-License-Identifier: Apache-2.0 */
/* GPU work hangs under the calls that were met on threads. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/trace_private.h"
#include "model/collective.h"

/* ---- calls ---- */

static uint64_t
call_hash(uint64_t correlation)
{
	return plumb_hash_mix(correlation, 0);
}

static const struct plumb_trace_span *
span_of(const struct plumb_trace *trace, const struct plumb_trace_call *call)
{
	return plumb_trace_spans_of(&trace->spans.items[call->track]) + call->span;
}

static uint32_t
process_of(const struct plumb_trace *trace, uint32_t track)
{
	return plumb_builder_get_track(trace->builder, track)->process;
}

/* OTHERS: of another process, if only one has it. */
static struct plumb_trace_call *
plumb_trace_call_find(struct plumb_trace *trace, uint32_t process, uint64_t correlation,
                      bool others)
{
	struct plumb_map_cursor at;
	struct plumb_trace_call *other = NULL;
	bool several = false;
	for (uint32_t i = plumb_map_first(&trace->call_map, call_hash(correlation), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&trace->call_map, &at)) {
		struct plumb_trace_call *call = &trace->calls.items[i];
		if (span_of(trace, call)->correlation != correlation)
			continue;
		if (process_of(trace, call->track) == process)
			return call;
		several = other != NULL;
		other = call;
	}
	return others && !several ? other : NULL;
}

/* A runtime call and the driver call within it share a number: the inner one counts. */
int
plumb_trace_call_add(struct plumb_trace *trace, uint32_t process, uint32_t track, uint32_t at,
                     bool waits)
{
	const struct plumb_trace_span *span = plumb_trace_spans_of(&trace->spans.items[track]) + at;
	struct plumb_trace_call *call =
		plumb_trace_call_find(trace, process, span->correlation, false);
	const struct plumb_trace_span *outer = call ? span_of(trace, call) : NULL;
	if (outer && (span->start_ns < outer->start_ns || span->start_ns >= outer->end_ns)) {
		plumb_trace_count(trace, PLUMB_FATE_AMBIGUOUS,
		                  "calls whose correlation is used twice", 1);
		return 0;
	}
	if (!call && (!(call = plumb_vec_add(&trace->calls)) ||
	              plumb_map_add(&trace->call_map, call_hash(span->correlation),
	                            trace->calls.count - 1) < 0))
		return plumb_trace_no_memory(trace);
	*call = (struct plumb_trace_call){ track, at, 0, waits };
	return 0;
}

/* ---- GPU work ---- */

/* Under PARENT the operation of a communication library that KERNEL is of, else PARENT. */
static uint32_t
collective_of(struct plumb_trace *trace, uint32_t parent, const struct plumb_trace_item *item)
{
	const struct plumb_frame *kernel =
		plumb_builder_get_frame(trace->builder, item->span.frame);
	const char *text = plumb_builder_get_text(trace->builder, kernel->name);
	const char *known = text ? plumb_collective_name(text) : NULL;
	uint32_t name = item->collective;
	if (known && (name == PLUMB_NONE || strcmp(known, "Generic")))
		name = plumb_builder_text(trace->builder, known);
	if (name == PLUMB_NONE)
		return parent;
	uint32_t frame =
		plumb_builder_frame(trace->builder, PLUMB_FRAME_COLLECTIVE, name, PLUMB_NONE, 0);
	return plumb_builder_context(trace->builder, parent, frame, 0);
}

/* What a block has of shared memory, or PLUMB_UNKNOWN. */
static int64_t
shared_bytes(const struct plumb_trace_launch *l)
{
	int64_t both;
	if (l->static_shared == PLUMB_UNKNOWN || l->dynamic_shared == PLUMB_UNKNOWN)
		return l->shared;
	return __builtin_add_overflow(l->static_shared, l->dynamic_shared, &both) ? PLUMB_UNKNOWN
	                                                                          : both;
}

static int
launch_values(struct plumb_trace *trace, const struct plumb_trace_item *item,
              struct plumb_trace_near *near)
{
	uint32_t context = item->span.context, track = item->span.track;
	int64_t length = item->span.end_ns - item->span.start_ns, blocks, shared;
	if (item->launch == PLUMB_NONE)
		return 0;
	const struct plumb_trace_launch *l = &trace->launches.items[item->launch];
	struct plumb_variant variant = {
		.context = context,
		.track = track,
		.shapes = PLUMB_NONE,
		.grid = { l->grid[0], l->grid[1], l->grid[2] },
		.block = { l->block[0], l->block[1], l->block[2] },
		.registers = l->registers,
		.static_shared = l->static_shared,
		.dynamic_shared = l->dynamic_shared,
		.occupancy = l->occupancy,
		.count = 1,
		.time = length,
		.min = length,
		.max = length,
		.first_ns = item->span.start_ns,
		.last_ns = item->span.start_ns,
	};
	int code = plumb_builder_row_near(trace->builder, PLUMB_TABLE_VARIANTS, &variant,
	                                  &near->variant) < 0
	                   ? plumb_trace_no_memory(trace)
	                   : 0;
	if (l->grid[0] != PLUMB_UNKNOWN &&
	    !__builtin_mul_overflow(l->grid[0], l->grid[1], &blocks) &&
	    !__builtin_mul_overflow(blocks, l->grid[2], &blocks))
		code |= plumb_trace_observe(trace, track, context, PLUMB_METRIC_GPU_BLOCKS, blocks,
		                            &near->values[1]);
	if (l->registers != PLUMB_UNKNOWN)
		code |= plumb_trace_observe(trace, track, context, PLUMB_METRIC_GPU_REGISTERS,
		                            l->registers, &near->values[2]);
	shared = shared_bytes(l);
	if (shared != PLUMB_UNKNOWN)
		code |= plumb_trace_observe(trace, track, context, PLUMB_METRIC_GPU_SHARED_BYTES,
		                            shared, &near->values[3]);
	if (l->occupancy != PLUMB_UNKNOWN)
		code |= plumb_trace_observe(trace, track, context, PLUMB_METRIC_GPU_OCCUPANCY,
		                            l->occupancy, &near->values[4]);
	return code;
}

static int
work_values(struct plumb_trace *trace, struct plumb_trace_item *item, uint32_t kind)
{
	const struct plumb_trace_span *span = &item->span;
	int64_t length = span->end_ns - span->start_ns;
	if (kind == PLUMB_FRAME_KERNEL) {
		struct plumb_trace_near *near = plumb_trace_near(trace, span->context);
		return plumb_trace_observe(trace, span->track, span->context, PLUMB_METRIC_GPU_TIME,
		                           length, &near->values[0]) |
		       launch_values(trace, item, near);
	}
	int code = plumb_trace_span_value(trace, span, PLUMB_METRIC_GPU_COPY_TIME, length);
	if (item->bytes > 0)
		item->span.bytes = (uint64_t)item->bytes;
	if (item->bytes != PLUMB_UNKNOWN)
		code |= plumb_trace_span_value(trace, span, PLUMB_METRIC_GPU_COPY_BYTES,
		                               item->bytes);
	return code;
}

static void
move_end(struct plumb_trace *trace, uint32_t *end, uint32_t process)
{
	if (*end) {
		int64_t ordinal = plumb_builder_get_device(trace->builder, *end - 1)->ordinal;
		*end = plumb_trace_device(trace, process, ordinal, NULL) + 1;
	}
}

/* A file of several processes whose GPU events name none: it is on that process's device and
 * stream. */
static int
move_to(struct plumb_trace *trace, struct plumb_trace_item *item, uint32_t process)
{
	struct plumb_track old = *plumb_builder_get_track(trace->builder, item->span.track);
	int64_t ordinal = plumb_builder_get_device(trace->builder, old.device)->ordinal;
	uint32_t device = plumb_trace_device(trace, process, ordinal, NULL);
	uint32_t track = plumb_trace_stream(trace, process, device, old.gpu_context, old.stream);
	if (track == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	item->span.track = track;
	move_end(trace, &item->span.ends.from, process);
	move_end(trace, &item->span.ends.to, process);
	return 0;
}

/* The call that started ITEM, or NULL. */
static struct plumb_trace_call *
call_of(struct plumb_trace *trace, const struct plumb_trace_item *item)
{
	const struct plumb_track *track = plumb_builder_get_track(trace->builder, item->span.track);
	if ((item->placed != PLUMB_NONE && !item->whole) || !item->span.correlation)
		return NULL;
	return plumb_trace_call_find(trace, track->process, item->span.correlation, !item->here);
}

/* Has PROCESS another device with the number of DEVICE? */
static bool
has_own(const struct plumb_trace *trace, uint32_t process, uint32_t device)
{
	int64_t ordinal = plumb_builder_get_device(trace->builder, device)->ordinal;
	uint32_t own = plumb_trace_has_device(trace, process, ordinal);
	return own != PLUMB_NONE && own != device;
}

/* A device all of whose work was started by other processes belongs to the first of these: else it
 * would stay with nothing on it. */
static int
adopt_devices(struct plumb_trace *trace)
{
	struct plumb_builder *builder = trace->builder;
	uint32_t devices = plumb_builder_device_count(builder);
	uint32_t *adopters = malloc((devices + 1u) * sizeof *adopters);
	bool *stays = calloc(devices + 1u, sizeof *stays), some = false;

	for (uint32_t i = 0; adopters && i < devices; i++)
		adopters[i] = PLUMB_NONE;
	for (uint32_t i = 0; adopters && stays && i < trace->works.count; i++) {
		const struct plumb_trace_item *item = &trace->works.items[i];
		const struct plumb_track *track =
			plumb_builder_get_track(builder, item->span.track);
		uint32_t device = track->device;
		if (stays[device])
			continue;
		const struct plumb_trace_call *call = call_of(trace, item);
		uint32_t home = call ? process_of(trace, call->track) : track->process;
		if (home == track->process || has_own(trace, home, device)) {
			stays[device] = true;
			adopters[device] = PLUMB_NONE;
		} else if (adopters[device] == PLUMB_NONE) {
			adopters[device] = home;
			some = true;
		}
	}
	if (some)
		plumb_trace_adopt(trace, adopters);
	int code = adopters && stays ? 0 : plumb_trace_no_memory(trace);
	free(adopters);
	free(stays);
	return code;
}

/* What the file says of it as a collective. */
static int
group_of(struct plumb_trace *trace, const struct plumb_trace_item *item)
{
	const struct plumb_trace_group *group = plumb_trace_get_group(trace, item->group);
	if (!group || (group->name == PLUMB_NONE && group->ranks == PLUMB_NONE))
		return 0;
	struct plumb_collective row = {
		PLUMB_COLLECTIVE_UNTOLD,     .track = item->span.track,       .group = group->name,
		.ranks = group->ranks,       .start_ns = item->span.start_ns, .size = group->size,
		.sequence = group->sequence,
	};
	return plumb_builder_collective(trace->builder, &row) < 0 ? plumb_trace_no_memory(trace)
	                                                          : 0;
}

static void
count_work(struct plumb_trace *trace, uint32_t process, uint32_t source, uint32_t fate,
           uint32_t *near)
{
	struct plumb_ledger_row row = { process, source, fate, PLUMB_NONE, 1 };
	plumb_builder_row_near(trace->builder, PLUMB_TABLE_LEDGER, &row, near);
}

static int
place_work(struct plumb_trace *trace, struct plumb_trace_item *item)
{
	struct plumb_builder *builder = trace->builder;
	struct plumb_track *track = plumb_builder_get_track(builder, item->span.track);
	uint32_t kind = plumb_builder_get_frame(builder, item->span.frame)->kind;
	uint32_t source = kind == PLUMB_FRAME_KERNEL ? PLUMB_SOURCE_KERNEL
	                  : kind == PLUMB_FRAME_COPY ? PLUMB_SOURCE_COPY
	                                             : PLUMB_SOURCE_SET;
	struct plumb_trace_call *call = call_of(trace, item);
	uint32_t parent = item->placed != PLUMB_NONE ? item->placed
	                  : call                     ? span_of(trace, call)->context
	                                             : 0;
	bool matched = call || item->placed != PLUMB_NONE;
	if (call && process_of(trace, call->track) != track->process) {
		if (move_to(trace, item, process_of(trace, call->track)) < 0)
			return PLUMB_ESYSTEM;
		track = plumb_builder_get_track(builder, item->span.track);
	}
	if (call)
		call->works++;
	count_work(trace, track->process, source, PLUMB_FATE_RECEIVED, &trace->ledger_near[0]);
	count_work(trace, track->process, source,
	           matched ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_UNMATCHED, &trace->ledger_near[1]);
	plumb_trace_add_work(trace, item, kind);
	for (unsigned i = 0; i < PLUMB_TRACE_INNER && !item->whole; i++)
		if (item->inner[i])
			parent = plumb_builder_context(builder, parent, item->inner[i], 0);
	if (kind == PLUMB_FRAME_KERNEL && !item->whole)
		parent = collective_of(trace, parent, item);
	plumb_trace_put(&item->span,
	                item->whole ? item->placed
	                            : plumb_builder_context(builder, parent, item->span.frame, 0));
	if (item->span.context == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	return work_values(trace, item, kind) | group_of(trace, item) |
	       plumb_trace_add_span(trace, &item->span);
}

/* Calls that started something are launches; one that started several is a graph's. */
static int
count_launches(struct plumb_trace *trace)
{
	int code = 0;
	for (uint32_t i = 0; i < trace->calls.count && !code; i++) {
		const struct plumb_trace_call *call = &trace->calls.items[i];
		uint32_t context = span_of(trace, call)->context;
		if (call->works)
			code = plumb_trace_observe(trace, call->track, context,
			                           call->works == 1 ? PLUMB_METRIC_GPU_LAUNCHES
			                                            : PLUMB_METRIC_GPU_REPLAYS,
			                           1, &plumb_trace_near(trace, context)->values[0]);
	}
	return code;
}

static int
place_pauses(struct plumb_trace *trace)
{
	int code = 0;
	for (uint32_t i = 0; i < trace->pauses.count && !code; i++) {
		const struct plumb_trace_pause *pause = &trace->pauses.items[i];
		const struct plumb_trace_call *call =
			pause->correlation ? plumb_trace_call_find(trace, pause->process,
		                                                   pause->correlation, false)
					   : NULL;
		plumb_trace_ledger(trace, pause->process, PLUMB_SOURCE_SYNC, PLUMB_FATE_RECEIVED,
		                   1);
		plumb_trace_ledger(trace, pause->process, PLUMB_SOURCE_SYNC,
		                   call ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_UNMATCHED, 1);
		if (call && !call->waits && pause->ns > 0)
			code = plumb_trace_value(trace, call->track, span_of(trace, call)->context,
			                         PLUMB_METRIC_HOST_WAIT, pause->ns);
	}
	return code;
}

/* Waits of calls and for streams that the file has; there is nothing to wait for on others. */
static int
place_syncs(struct plumb_trace *trace)
{
	int code = 0;
	for (uint32_t i = 0; i < trace->syncs.count && !code; i++) {
		const struct plumb_trace_sync *s = &trace->syncs.items[i];
		const struct plumb_trace_call *call =
			plumb_trace_call_find(trace, s->process, s->call, true);
		if (!call)
			continue;
		uint32_t process = process_of(trace, call->track);
		bool all = s->awaited == PLUMB_UNKNOWN, thread = s->stream == PLUMB_UNKNOWN;
		struct plumb_wait wait = {
			.track = thread ? call->track
			                : plumb_trace_has_stream(trace, process, s->ordinal,
			                                         s->gpu_context, s->stream),
			.awaited = all ? PLUMB_NONE
			               : plumb_trace_has_stream(trace, process, s->awaited_ordinal,
			                                        s->awaited_context, s->awaited),
			.device = plumb_trace_has_device(trace, process,
			                                 all ? s->ordinal : s->awaited_ordinal),
			.call = s->call,
			.after = s->after,
		};
		if (wait.track != PLUMB_NONE && (all || wait.awaited != PLUMB_NONE) &&
		    plumb_builder_wait(trace->builder, &wait) < 0)
			code = plumb_trace_no_memory(trace);
	}
	return code;
}

int
plumb_trace_place_work(struct plumb_trace *trace)
{
	int code = adopt_devices(trace);
	for (uint32_t i = 0; i < trace->works.count && !code; i++)
		code = place_work(trace, &trace->works.items[i]);
	if (!code)
		code = plumb_trace_place_readings(trace);
	plumb_vec_free(&trace->works);
	if (!code)
		code = place_pauses(trace);
	if (!code)
		code = place_syncs(trace);
	if (!code)
		code = count_launches(trace);
	plumb_vec_free(&trace->calls);
	plumb_map_free(&trace->call_map);
	return code;
}
