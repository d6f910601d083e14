/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event says. All that does not depend on its numbers is found out first, into a memo: the
 * thread, the frame, the shapes. Most events of a file are alike others, and have their memo.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/copies.h"
#include "import/kineto/reader.h"

/* What torch.autograd.profiler writes, also where PyTorch was built without Kineto, has no
 * categories: processes are called "CPU functions" and "CUDA functions", and the thread of the
 * latter is the device. Ranges are told from operators by their names, where these have
 * namespaces. */
static enum plumb_kineto_category
category_without_name(struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event)
{
	if (!event->pid_text.at || event->phase != 'X')
		return PLUMB_KINETO_OTHER;
	if (plumb_slice_is(event->pid_text, "CUDA functions")) {
		reader->arguments.device = event->tid;
		return PLUMB_KINETO_KERNEL;
	}
	if (!plumb_slice_is(event->pid_text, "CPU functions"))
		return PLUMB_KINETO_OTHER;
	return reader->namespaces && event->name.at &&
	                       !memmem(event->name.at, event->name.bytes, "::", 2) &&
	                       !memmem(event->name.at, event->name.bytes, "Backward", 8)
	               ? PLUMB_KINETO_ANNOTATION
	               : PLUMB_KINETO_OPERATOR;
}

/* ---- where ---- */

/* The process with the number PID of the event's rank. PLUMB_UNKNOWN: the process that its GPU
 * events belong to. */
static struct plumb_kineto_process *
known_process(struct plumb_kineto_reader *reader, int64_t pid)
{
	return plumb_kineto_process(reader->trace, &reader->processes, reader->arguments.rank, pid,
	                            reader->arguments.raw_pid);
}

uint32_t
plumb_kineto_process_of(struct plumb_kineto_reader *reader, int64_t pid)
{
	const struct plumb_kineto_process *process = known_process(reader, pid);
	return process ? process->process : PLUMB_NONE;
}

/* Where an event on a thread belongs: 0 is the Python tracer's word for a process that it does not
 * know. */
static int64_t
pid_of(const struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event)
{
	return event->pid && reader->arguments.raw_pid ? event->pid : PLUMB_UNKNOWN;
}

/* A number of the event's that only its rank knows: other ranks of the file may have it, too. */
static int64_t
of_rank(int64_t rank, int64_t number)
{
	if (rank == PLUMB_UNKNOWN || number == PLUMB_UNKNOWN)
		return number;
	return (int64_t)(plumb_hash_mix((uint64_t)rank, (uint64_t)number) >> 1);
}

static uint32_t
thread_of(struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event)
{
	int64_t tid = event->tid;
	if (tid == PLUMB_UNKNOWN) /* a word: any number that others do not have */
		tid = (int64_t)(plumb_hash_bytes(event->tid_text.at ? event->tid_text.at : "",
		                                 event->tid_text.bytes) >>
		                1);
	uint32_t process = plumb_kineto_process_of(reader, pid_of(reader, event));
	uint32_t track = plumb_trace_thread(reader->trace, process, tid);
	if (event->tid == PLUMB_UNKNOWN && event->tid_text.at && track != PLUMB_NONE) {
		struct plumb_builder *builder = plumb_trace_builder(reader->trace);
		plumb_builder_get_track(builder, track)->name =
			plumb_builder_string(builder, event->tid_text.at, event->tid_text.bytes);
	}
	return track;
}

/* "torch/nn/modules/module.py(1518): _call_impl", "nn.Module: Linear_0", "<built-in function
 * linear>" */
static uint32_t
python_frame(struct plumb_kineto_reader *reader, struct plumb_slice name)
{
	static const char module[] = "nn.Module: ";
	const char *open, *close = NULL;
	if (plumb_slice_begins(name, module)) {
		struct plumb_slice own = { name.at + sizeof module - 1,
			                   name.bytes - (sizeof module - 1) };
		struct plumb_slice class = own;
		while (class.bytes && class.at[class.bytes - 1] >= '0' &&
		       class.at[class.bytes - 1] <= '9')
			class.bytes--;
		if (class.bytes && class.bytes < own.bytes && class.at[class.bytes - 1] == '_')
			class.bytes--;
		else
			class = own;
		return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_MODULE, own, class, 0);
	}
	open = memrchr(name.at, '(', name.bytes);
	for (const char *at = open ? open + 1 : name.at; open && at < name.at + name.bytes; at++)
		if (*at < '0' || *at > '9') {
			close = at;
			break;
		}
	/* The last "(" may be of the function's own name: "…(12): <lambda>(x)". */
	if (open && (!close || close == open + 1 || *close != ')' ||
	             close + 3 > name.at + name.bytes || memcmp(close, "): ", 3))) {
		close = memmem(name.at, name.bytes, "): ", 3);
		open = close ? memrchr(name.at, '(', (size_t)(close - name.at)) : NULL;
	}
	if (open && open > name.at) {
		struct plumb_slice file = { name.at, (size_t)(open - name.at) };
		struct plumb_slice digits = { open + 1, (size_t)(close - open - 1) };
		struct plumb_slice function = { close + 3,
			                        (size_t)(name.at + name.bytes - close - 3) };
		int64_t line = 0;
		if (plumb_slice_decimal(digits, 0, &line))
			return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_PYTHON, function,
			                            file, line);
	}
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_PYTHON, name);
}

/* ORDINAL of the process with the number PID (PLUMB_UNKNOWN: the first). */
uint32_t
plumb_kineto_device_of(struct plumb_kineto_reader *reader, int64_t pid, uint32_t process,
                       int64_t ordinal)
{
	const char *uuid = plumb_kineto_devices_uuid(&reader->devices, pid, ordinal);

	return plumb_trace_device(reader->trace, process, ordinal, uuid);
}

static uint64_t
known_correlation(int64_t correlation)
{
	return correlation > 0 ? (uint64_t)correlation : 0;
}

/* ---- what ---- */

static bool
find_work(struct plumb_kineto_reader *reader, enum plumb_kineto_category category,
          const struct plumb_chrome_event *event, struct plumb_kineto_memo *memo)
{
	struct plumb_trace *trace = reader->trace;
	const struct plumb_kineto_arguments *arguments = &reader->arguments;
	int64_t ordinal = arguments->device != PLUMB_UNKNOWN    ? arguments->device
	                  : arguments->raw_pid != PLUMB_UNKNOWN ? arguments->raw_pid
	                                                        : event->pid;
	int64_t stream = arguments->stream;
	if (stream == PLUMB_UNKNOWN && event->tid != PLUMB_UNKNOWN)
		stream = event->tid;
	if (stream == PLUMB_UNKNOWN && event->tid_text.at &&
	    plumb_slice_begins(event->tid_text, "stream "))
		plumb_slice_decimal(
			(struct plumb_slice){ event->tid_text.at + 7, event->tid_text.bytes - 7 },
			0, &stream);
	uint32_t process = plumb_kineto_process_of(reader, arguments->process);
	uint32_t device = plumb_kineto_device_of(reader, arguments->process, process, ordinal);
	struct plumb_trace_work *work = &memo->work;
	memo->what = PLUMB_KINETO_WORK;
	memo->sized = arguments->bytes != PLUMB_UNKNOWN;
	memo->correlated = arguments->correlation != PLUMB_UNKNOWN;
	memo->launched = memcmp(&arguments->launch, &plumb_trace_no_launch,
	                        sizeof plumb_trace_no_launch) != 0;
	memo->launch = arguments->launch;
	*work = (struct plumb_trace_work){
		.track = plumb_trace_stream(trace, process, device, arguments->context, stream),
		.here = arguments->process != PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (category == PLUMB_KINETO_KERNEL) {
		bool nccl = memmem(event->name.at, event->name.bytes, "nccl", 4) != NULL;
		work->frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, event->name);
		if (arguments->collective.at)
			work->collective = plumb_import_collective(trace, arguments->collective);
		if (!arguments->collective.at && !nccl)
			return true;
		work->group = plumb_kineto_group(trace, &reader->comms, &arguments->group, true);
		return false;
	}
	int64_t from = arguments->from_device, to = arguments->to_device;
	work->frame = plumb_import_copy(trace, event->name);
	if (from != PLUMB_UNKNOWN && to != PLUMB_UNKNOWN && from != to)
		work->ends = plumb_trace_ends(
			plumb_kineto_device_of(reader, arguments->process, process, from),
			plumb_kineto_device_of(reader, arguments->process, process, to));
	return true;
}

static uint32_t
annotation_frame(struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event)
{
	struct plumb_kineto_process *process = known_process(reader, pid_of(reader, event));
	return process ? plumb_kineto_annotation(reader->trace, &process->steps, event->name)
	               : PLUMB_NONE;
}

/* What happened on a thread. */
static bool
find_span(struct plumb_kineto_reader *reader, enum plumb_kineto_category category,
          const struct plumb_chrome_event *event, struct plumb_kineto_memo *memo)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_slice name = event->name;
	bool step = plumb_slice_begins(name, "ProfilerStep#");
	if (category == PLUMB_KINETO_OPERATOR && step)
		category = PLUMB_KINETO_ANNOTATION; /* to 2021 */
	bool is_op = category == PLUMB_KINETO_OPERATOR;
	bool joins = is_op && plumb_slice_is(name, "record_param_comms");
	if (category == PLUMB_KINETO_PYTHON)
		memo->frame = python_frame(reader, name);
	else if (category == PLUMB_KINETO_ANNOTATION)
		memo->frame = annotation_frame(reader, event);
	else if (category == PLUMB_KINETO_NATIVE)
		memo->frame = plumb_trace_frame(trace, PLUMB_FRAME_NATIVE, name);
	else
		memo->frame = plumb_trace_frame(
			trace, is_op ? PLUMB_FRAME_OPERATOR : PLUMB_FRAME_GPU_API, name);
	if (joins)
		plumb_kineto_group(trace, &reader->comms, &reader->arguments.group, false);
	if (is_op && reader->arguments.inputs.types.at)
		memo->shapes =
			plumb_import_shapes(trace, &reader->shapes, &reader->arguments.inputs);
	memo->what = PLUMB_KINETO_SPAN;
	memo->track = thread_of(reader, event);
	memo->correlated =
		category == PLUMB_KINETO_CALL && reader->arguments.correlation != PLUMB_UNKNOWN;
	return !joins && !step; /* each of these adds to a list */
}

static void
take_sync(struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event)
{
	const struct plumb_kineto_arguments *a = &reader->arguments;
	plumb_kineto_sync(reader->trace, event,
	                  &(struct plumb_trace_sync){
				  .process = plumb_kineto_process_of(reader, PLUMB_UNKNOWN),
				  .ordinal = a->device,
				  .gpu_context = a->context,
				  .stream = a->stream,
				  .awaited = a->awaited,
				  .call = known_correlation(a->correlation),
				  .after = known_correlation(a->recorded),
			  });
}

/* What is on a GPU as well as on a thread. */
static void
take_repeated(struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event)
{
	struct plumb_kineto_process *process = known_process(reader, PLUMB_UNKNOWN);
	reader->repeated++;
	if (process)
		plumb_kineto_gpu_step(&process->steps, event->name, event->start,
		                      plumb_chrome_end(event));
}

static bool
find_flow(struct plumb_kineto_reader *reader, const struct plumb_chrome_event *event,
          struct plumb_kineto_memo *memo)
{
	if ((event->phase != 's' && event->phase != 'f') || event->id == PLUMB_UNKNOWN ||
	    event->start == PLUMB_UNKNOWN)
		return false;
	memo->what = PLUMB_KINETO_FLOW;
	memo->track = thread_of(reader, event);
	memo->finish = event->phase == 'f';
	return true;
}

/* Finds out what EVENT says. True: the same holds for events that are alike. */
static bool
find_out(struct plumb_kineto_reader *reader, enum plumb_kineto_category category,
         const struct plumb_chrome_event *event, struct plumb_kineto_memo *memo)
{
	if (category == PLUMB_KINETO_FLOW_BACKWARD)
		return find_flow(reader, event, memo);
	if (category == PLUMB_KINETO_FLOW_GPU)
		return true;
	if (category == PLUMB_KINETO_INSTANT && event->phase &&
	    plumb_slice_is(event->name, "[memory]") &&
	    plumb_kineto_memory(reader, event->start,
	                        plumb_kineto_process_of(reader, pid_of(reader, event)),
	                        &reader->arguments.memory))
		return false;
	if (category == PLUMB_KINETO_REPEATED) {
		take_repeated(reader, event);
	} else if (event->phase != 'X' || category == PLUMB_KINETO_OTHER ||
	           category == PLUMB_KINETO_INSTANT) {
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED,
		                        event->category.at ? event->category : event->name,
		                        event->phase ? 1 : 0);
	} else if (event->start == PLUMB_UNKNOWN || !event->name.at) {
		plumb_trace_count(reader->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
	} else if (category == PLUMB_KINETO_SYNC) {
		take_sync(reader, event);
	} else {
		bool work = category == PLUMB_KINETO_KERNEL || category == PLUMB_KINETO_COPY ||
		            category == PLUMB_KINETO_SET;
		bool alike = work ? find_work(reader, category, event, memo)
		                  : find_span(reader, category, event, memo);
		return alike && event->duration != PLUMB_UNKNOWN;
	}
	return false;
}

/* ---- events ---- */

/* Hands over what MEMO says, with EVENT's numbers. */
static void
hand_over(struct plumb_kineto_reader *reader, const struct plumb_kineto_memo *memo,
          const struct plumb_chrome_event *event)
{
	struct plumb_trace *trace = reader->trace;
	int64_t start = event->start, end = plumb_chrome_end(event);
	uint64_t correlation =
		memo->correlated ? known_correlation(reader->arguments.correlation) : 0;
	if (memo->what == PLUMB_KINETO_SPAN && memo->shapes != PLUMB_NONE) {
		plumb_trace_shaped(trace, memo->track, memo->frame, start, end, memo->shapes);
	} else if (memo->what == PLUMB_KINETO_SPAN) {
		plumb_trace_host(trace, memo->track, memo->frame, start, end, correlation);
	} else if (memo->what == PLUMB_KINETO_WORK) {
		struct plumb_trace_work work = memo->work;
		work.start_ns = start;
		work.end_ns = end;
		work.correlation = correlation;
		work.bytes = memo->sized ? reader->arguments.bytes : PLUMB_UNKNOWN;
		work.launch = memo->launched ? &memo->launch : NULL;
		plumb_trace_work(trace, &work);
	} else if (memo->what == PLUMB_KINETO_FLOW) {
		struct plumb_kineto_flow *flow = plumb_vec_add(&reader->flows);
		if (flow) /* else the links of the rest are missing: their work stands where it
		             ran */
			*flow = (struct plumb_kineto_flow){ of_rank(memo->rank, event->id), start,
				                            memo->track, memo->finish };
	}
}

void
plumb_kineto_take(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct plumb_kineto_reader *reader = chrome->own;
	struct plumb_kineto_arguments *a = &reader->arguments;
	enum plumb_kineto_category category = event->category.at
	                                              ? plumb_kineto_category(event->category)
	                                              : category_without_name(reader, event);
	reader->rankless |= a->rank == PLUMB_UNKNOWN && category != PLUMB_KINETO_OTHER;
	if (a->rank == PLUMB_UNKNOWN)
		a->rank = plumb_kineto_rank_named(&reader->processes, chrome, event->pid);
	a->group.external = of_rank(a->rank, a->group.external);
	struct plumb_kineto_memo memo = { .shapes = PLUMB_NONE, .rank = a->rank };
	bool alike = find_out(reader, category, event, &memo);
	hand_over(reader, &memo, event);
	/* A thread without a number is named anew by each event. */
	if (alike && event->tid != PLUMB_UNKNOWN)
		plumb_chrome_keep(chrome, &memo);
}

void
plumb_kineto_again(struct plumb_chrome *chrome, const void *memo)
{
	hand_over(chrome->own, memo, &chrome->read);
}

/* ---- forward and backward ---- */

static int
by_id(const void *x, const void *y)
{
	const struct plumb_kineto_flow *a = x, *b = y;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (int)a->finish - (int)b->finish;
}

void
plumb_kineto_link_flows(struct plumb_kineto_reader *reader)
{
	if (reader->flows.count)
		qsort(reader->flows.items, reader->flows.count, sizeof *reader->flows.items, by_id);
	for (uint32_t i = 0; i + 1 < reader->flows.count; i++) {
		const struct plumb_kineto_flow *a = &reader->flows.items[i], *b = a + 1;
		if (a->id == b->id && !a->finish && b->finish)
			plumb_trace_link(reader->trace, a->track, a->at, b->track, b->at);
	}
}
