/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of CPU time in Perfetto's traces: traced_perf's have an interned call stack, outermost
 * frame first, and its sequence says once which event was counted, and how often one was taken.
 * Where that event is a clock of the CPU, a sample stands for so much time. Those of Chrome's
 * sampling profiler are taken by the wall clock, whether the thread computes or not: they tell no
 * CPU time.
 *
 * What is interned may stand in any order, so that a number is looked up when a sample needs it,
 * and once.
 */
#include <stdio.h>

#include "base/perfetto.h"
#include "import/perfetto/perfetto.h"

#define SECOND INT64_C(1000000000)

/* ---- what a sample stands for ---- */

bool
perfetto_sample_defaults(struct perfetto_sequence *sequence, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes), timebase;
	struct plumb_protobuf_field f, inner;
	int64_t ns = 0;
	/* An event that is not named is the CPU's clock. */
	bool clock = true;

	while (plumb_protobuf_next(&view, &f)) {
		if (!plumb_protobuf_is(&f, SAMPLE_TIMEBASE, PLUMB_PROTOBUF_BYTES))
			continue;
		timebase = plumb_protobuf_view(f.bytes);
		while (plumb_protobuf_next(&timebase, &inner)) {
			uint64_t value = inner.value;

			if (inner.number == TIMEBASE_TRACEPOINT || inner.number == TIMEBASE_RAW)
				clock = false;
			if (inner.wire != PLUMB_PROTOBUF_VARINT)
				continue;
			if (inner.number == TIMEBASE_PERIOD)
				ns = value <= INT64_MAX ? (int64_t)value : 0;
			else if (inner.number == TIMEBASE_FREQUENCY)
				ns = value && value <= SECOND ? SECOND / (int64_t)value : 0;
			else if (inner.number == TIMEBASE_POLLED)
				ns = 0;
			else if (inner.number == TIMEBASE_COUNTER)
				clock = value == COUNTER_CPU_CLOCK || value == COUNTER_TASK_CLOCK;
		}
		if (timebase.why)
			return false;
	}
	sequence->sample_ns = clock ? ns : 0;
	return !view.why;
}

/* ---- call stacks ---- */

/* The interned text, or none. */
static struct plumb_slice
text_of(const struct perfetto_sequence *sequence, enum perfetto_table table, uint64_t number)
{
	const struct perfetto_entry *entry = number ? perfetto_find(sequence, table, number) : NULL;

	return entry ? perfetto_text(sequence, entry) : (struct plumb_slice){ NULL, 0 };
}

/* Appends PART to PATH of SIZE; false: it is full. */
static bool
append_part(char *path, size_t size, size_t *used, struct plumb_slice part)
{
	bool slash = part.bytes && *part.at != '/' && (*used || *part.at != '[');

	if (part.bytes >= size - *used - 1)
		return false;
	*used += (size_t)snprintf(path + *used, size - *used, "%s%.*s", slash ? "/" : "",
	                          (int)part.bytes, part.at);
	return true;
}

/* A mapping's file, a string; its name lies in several parts. */
static uint32_t
mapping_of(struct perfetto *reader, struct perfetto_sequence *sequence, uint64_t number)
{
	struct perfetto_entry *entry =
		number ? perfetto_find(sequence, PERFETTO_MAPPING, number) : NULL;
	struct plumb_protobuf_view view, packed;
	struct plumb_protobuf_field f;
	char path[4096];
	size_t used = 0;
	uint64_t part;
	bool room = true;

	if (!entry || entry->second != PLUMB_NONE)
		return entry ? entry->second : PLUMB_NONE;
	view = plumb_protobuf_view(perfetto_text(sequence, entry));
	while (room && plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, MAPPING_PATH, PLUMB_PROTOBUF_VARINT))
			room = append_part(path, sizeof path, &used,
			                   text_of(sequence, PERFETTO_PATH, f.value));
		if (!plumb_protobuf_is(&f, MAPPING_PATH, PLUMB_PROTOBUF_BYTES))
			continue;
		packed = plumb_protobuf_view(f.bytes);
		while (room && plumb_protobuf_next_packed(&packed, &part))
			room = append_part(path, sizeof path, &used,
			                   text_of(sequence, PERFETTO_PATH, part));
	}
	entry->second = plumb_builder_string(plumb_trace_builder(reader->trace), path, used);
	return entry->second;
}

/* The function NUMBER; PLUMB_NONE: the file does not have it. */
static uint32_t
function_of(struct perfetto *reader, struct perfetto_sequence *sequence, uint64_t number)
{
	struct perfetto_entry *entry = perfetto_find(sequence, PERFETTO_STACK_FRAME, number);
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct plumb_protobuf_view view;
	struct plumb_protobuf_field f;
	struct plumb_slice name = { NULL, 0 }, source = { NULL, 0 }, file = { NULL, 0 };
	uint64_t mapping = 0, line = 0;

	if (!entry || entry->second != PLUMB_NONE)
		return entry ? entry->second : PLUMB_NONE;
	view = plumb_protobuf_view(perfetto_text(sequence, entry));
	while (plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_VARINT)
			continue;
		if (f.number == FRAME_FUNCTION)
			name = text_of(sequence, PERFETTO_FUNCTION, f.value);
		else if (f.number == FRAME_MAPPING)
			mapping = f.value;
		else if (f.number == FRAME_SOURCE)
			source = text_of(sequence, PERFETTO_SOURCE, f.value);
		else if (f.number == FRAME_LINE)
			line = f.value;
	}
	if (source.bytes) {
		entry->second = plumb_samples_frame(reader->trace, name, source,
		                                    line <= INT64_MAX ? (int64_t)line : 0);
		return entry->second;
	}
	const char *path = plumb_builder_get_text(builder, mapping_of(reader, sequence, mapping));
	if (path && *path)
		file = (struct plumb_slice){ path, strlen(path) };
	entry->second = plumb_samples_frame(reader->trace, name, file, 0);
	return entry->second;
}

static void
append_frame(struct perfetto *reader, struct perfetto_sequence *sequence,
             struct plumb_samples_chain *chain, uint64_t number)
{
	static const struct plumb_slice none = { NULL, 0 };
	uint32_t frame = function_of(reader, sequence, number);

	chain->lost |= frame == PLUMB_NONE;
	plumb_samples_under(&reader->samples, chain,
	                    frame == PLUMB_NONE ? plumb_samples_frame(reader->trace, none, none, 0)
	                                        : frame);
}

/* The call stack NUMBER, for a while; 0: there is none. */
static struct plumb_samples_chain
chain_of(struct perfetto *reader, struct perfetto_sequence *sequence, uint64_t number)
{
	struct perfetto_entry *entry =
		number ? perfetto_find(sequence, PERFETTO_STACK, number) : NULL;
	struct plumb_protobuf_view view, packed;
	struct plumb_protobuf_field f;
	struct plumb_samples_chain chain = { .lost = number && !entry }, *kept;
	uint64_t frame;

	if (!entry)
		return chain;
	if (entry->second != PLUMB_NONE)
		return sequence->chains.items[entry->second];
	view = plumb_protobuf_view(perfetto_text(sequence, entry));
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, STACK_FRAMES, PLUMB_PROTOBUF_VARINT))
			append_frame(reader, sequence, &chain, f.value);
		if (!plumb_protobuf_is(&f, STACK_FRAMES, PLUMB_PROTOBUF_BYTES))
			continue;
		packed = plumb_protobuf_view(f.bytes);
		while (plumb_protobuf_next_packed(&packed, &frame))
			append_frame(reader, sequence, &chain, frame);
	}
	kept = plumb_vec_add(&sequence->chains);
	reader->no_memory |= !kept;
	if (kept) {
		*kept = chain;
		entry->second = sequence->chains.count - 1;
	}
	return chain;
}

/* ---- samples ---- */

static void
count_lost(struct perfetto *reader, uint32_t fate, const char *detail, uint64_t number)
{
	plumb_trace_count(reader->trace, fate, detail,
	                  number < INT64_MAX ? (int64_t)number : INT64_MAX);
}

static void
take_sample(struct perfetto *reader, struct perfetto_sequence *sequence, int64_t ns, uint64_t pid,
            uint64_t tid, uint64_t stack)
{
	struct plumb_samples_chain chain;
	uint32_t process;

	if (!tid || pid > UINT32_MAX || tid > UINT32_MAX) {
		count_lost(reader, PLUMB_FATE_UNUSED, "CPU samples without a thread", 1);
		return;
	}
	process = plumb_trace_process(reader->trace, (int64_t)pid);
	chain = chain_of(reader, sequence, stack);
	plumb_samples_take(&reader->samples,
	                   plumb_trace_thread(reader->trace, process, (int64_t)tid), &chain, ns,
	                   sequence->sample_ns ? sequence->sample_ns : PLUMB_UNKNOWN);
}

bool
perfetto_sample(struct perfetto *reader, struct perfetto_sequence *sequence, int64_t ns,
                struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	uint64_t numbers[SAMPLE_SKIPPED + 1] = { 0 };
	bool skipped = false, of_profiler = false;

	while (plumb_protobuf_next(&view, &f)) {
		of_profiler |= f.number == SAMPLE_OF_PROFILER;
		if (f.wire != PLUMB_PROTOBUF_VARINT || f.number > SAMPLE_SKIPPED)
			continue;
		numbers[f.number] = f.value;
		skipped |= f.number == SAMPLE_SKIPPED;
	}
	if (view.why || of_profiler)
		return !view.why;
	if (numbers[SAMPLE_LOST])
		count_lost(reader, PLUMB_FATE_OVERWRITTEN, "records of the kernel's perf buffers",
		           numbers[SAMPLE_LOST]);
	else if (skipped && numbers[SAMPLE_SKIPPED] == SKIPPED_OUT_OF_SCOPE)
		count_lost(reader, PLUMB_FATE_UNUSED, "CPU samples of other processes", 1);
	else if (skipped)
		count_lost(reader, PLUMB_FATE_OVERWRITTEN, "CPU samples that the profiler skipped",
		           1);
	else
		take_sample(reader, sequence, ns, numbers[SAMPLE_PROCESS], numbers[SAMPLE_THREAD],
		            numbers[SAMPLE_STACK]);
	return true;
}

bool
perfetto_streamed_samples(struct perfetto *reader, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes), packed;
	struct plumb_protobuf_field f;
	uint64_t stack;

	while (plumb_protobuf_next(&view, &f)) {
		if (f.number != STREAMED_STACKS)
			continue;
		if (f.wire == PLUMB_PROTOBUF_VARINT)
			reader->samples.timeless++;
		if (f.wire != PLUMB_PROTOBUF_BYTES)
			continue;
		packed = plumb_protobuf_view(f.bytes);
		while (plumb_protobuf_next_packed(&packed, &stack))
			reader->samples.timeless++;
	}
	return !view.why;
}
