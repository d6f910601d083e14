/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What allocators of PyTorch handed out over time: an event "[memory]" for each allocation and free
 * has what was allocated and reserved after it, on its device and in its process. They become bins
 * as the collector makes them: of 4 ms, which double until a bounded number of them reaches.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/sort.h"
#include "import/kineto/reader.h"

#define WIDTH INT64_C(4000000) /* ns, at first */
#define BINS_MOST 1024

/* PyTorch's numbers of types of devices. */
enum { TYPE_CPU = 0, TYPE_CUDA = 1, TYPE_XPU = 12 };

static uint32_t
add_track(struct plumb_kineto_reader *reader, uint32_t process,
          const struct plumb_kineto_memory *memory)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	bool cpu = memory->type == TYPE_CPU;
	const char *kind = memory->type == TYPE_CUDA  ? "cuda"
	                   : memory->type == TYPE_XPU ? "xpu"
	                                              : "device";
	char name[60];

	snprintf(name, sizeof name, "%s:%lld", kind, (long long)memory->device);
	return plumb_builder_track(
		builder, &(struct plumb_track){
				 .kind = PLUMB_TRACK_MEMORY,
				 .process = process,
				 .device = cpu ? PLUMB_NONE
	                                       : plumb_kineto_device_of(reader, PLUMB_UNKNOWN,
	                                                                process, memory->device),
				 .name = plumb_builder_text(builder, cpu ? "CPU" : name),
				 .tid = PLUMB_UNKNOWN,
				 .stream = PLUMB_UNKNOWN,
				 .gpu_context = PLUMB_UNKNOWN,
				 .start_ns = PLUMB_UNKNOWN,
				 .end_ns = PLUMB_UNKNOWN,
				 .overhead_ns = PLUMB_UNKNOWN,
			 });
}

static uint32_t
track_of(struct plumb_kineto_reader *reader, uint32_t process,
         const struct plumb_kineto_memory *memory)
{
	struct plumb_kineto_memories *all = &reader->memories;
	struct plumb_kineto_memory_track *track;

	for (uint32_t i = 0; i < all->tracks.count; i++) {
		track = &all->tracks.items[i];
		if (track->process == process && track->type == memory->type &&
		    track->device == memory->device)
			return track->track;
	}
	track = plumb_vec_add(&all->tracks);
	if (!track)
		return PLUMB_NONE;
	*track = (struct plumb_kineto_memory_track){ process, add_track(reader, process, memory),
		                                     memory->type, memory->device };
	return track->track;
}

bool
plumb_kineto_memory(struct plumb_kineto_reader *reader, int64_t at_ns, uint32_t process,
                    const struct plumb_kineto_memory *memory)
{
	struct plumb_kineto_memory_event *event;
	bool cpu = memory->type == TYPE_CPU;

	if (at_ns == PLUMB_UNKNOWN || process == PLUMB_NONE || memory->allocated < 0 ||
	    memory->type == PLUMB_UNKNOWN || (!cpu && memory->device < 0))
		return false;
	event = plumb_vec_add(&reader->memories.events);
	if (!event) {
		reader->memories.no_memory = true;
		return true;
	}
	/* The CPU's allocator reserves nothing, and says 0. */
	*event = (struct plumb_kineto_memory_event){
		.at_ns = at_ns,
		.allocated = memory->allocated,
		.reserved = cpu || memory->reserved < 0 ? PLUMB_UNKNOWN : memory->reserved,
		.track = track_of(reader, process, memory),
	};
	reader->memories.no_memory |= event->track == PLUMB_NONE;
	return true;
}

/* ---- bins ---- */

static uint64_t
key_of(const void *row, int which, const void *data)
{
	const struct plumb_kineto_memory_event *event = row;

	(void)data;
	return which ? plumb_sort_signed(event->at_ns) : event->track;
}

static int64_t
width_of(int64_t ns)
{
	int64_t width = WIDTH;

	while (ns / width >= BINS_MOST)
		width *= 2;
	return width;
}

static void
add_to(struct plumb_memory_series_bin *bin, const struct plumb_kineto_memory_event *event)
{
	if (event->allocated < bin->min_bytes)
		bin->min_bytes = event->allocated;
	if (event->allocated > bin->max_bytes)
		bin->max_bytes = event->allocated;
	bin->last_bytes = event->allocated;
	if (event->reserved == PLUMB_UNKNOWN)
		return;
	if (bin->max_reserved_bytes == PLUMB_UNKNOWN || event->reserved > bin->max_reserved_bytes)
		bin->max_reserved_bytes = event->reserved;
	bin->last_reserved_bytes = event->reserved;
}

/* The COUNT events of one track. In a bin without an event, all stays as it was. */
static void
add_bins(struct plumb_builder *builder, const struct plumb_kineto_memory_event *events,
         uint32_t count, int64_t base)
{
	int64_t first = events[0].at_ns, length, start;

	if (__builtin_sub_overflow(events[count - 1].at_ns, first, &length) ||
	    length > INT64_MAX / 4 || __builtin_add_overflow(first, base, &start) ||
	    __builtin_add_overflow(start, 2 * length + 2 * WIDTH, &(int64_t){ 0 }))
		return;
	struct plumb_memory_series_bin bin = {
		.track = events[0].track,
		.start_ns = start,
		.width_ns = width_of(length),
		.min_bytes = events[0].allocated,
		.max_bytes = events[0].allocated,
		.last_bytes = events[0].allocated,
		.max_reserved_bytes = events[0].reserved,
		.last_reserved_bytes = events[0].reserved,
	};
	for (uint32_t i = 1; i < count; i++) {
		while (events[i].at_ns - first >= bin.start_ns - start + bin.width_ns) {
			plumb_builder_memory_series(builder, &bin);
			bin.start_ns += bin.width_ns;
			bin.min_bytes = bin.max_bytes = bin.last_bytes;
			bin.max_reserved_bytes = bin.last_reserved_bytes;
		}
		add_to(&bin, &events[i]);
	}
	plumb_builder_memory_series(builder, &bin);
}

int
plumb_kineto_memories_end(struct plumb_kineto_reader *reader)
{
	struct plumb_kineto_memories *all = &reader->memories;
	struct plumb_kineto_memory_event *events = all->events.items;

	if (all->no_memory ||
	    plumb_sort_rows(events, all->events.count, sizeof *events, key_of, 2, NULL))
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0, n; i < all->events.count; i += n) {
		for (n = 1; i + n < all->events.count && events[i + n].track == events[i].track;
		     n++)
			;
		add_bins(plumb_trace_builder(reader->trace), &events[i], n,
		         reader->processes.base_ns);
	}
	return 0;
}

void
plumb_kineto_memories_free(struct plumb_kineto_reader *reader)
{
	plumb_vec_free(&reader->memories.events);
	plumb_vec_free(&reader->memories.tracks);
}
