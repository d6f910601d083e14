/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row is taken over through the builder, with its ids mapped; the builder does the merging.
 * Only devices, the environment and the run need rules of their own.
 */
#include "settle/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/builder.h"
#include "settle/contention.h"

/* Ids of one profile → ids of the builder. */
struct mapping {
	uint32_t *strings, *frames, *contexts, *processes, *tracks, *devices, *user_metrics;
};

/* Work on a device that several profiles used, from a profile that holds all of its work. */
struct joined_use {
	uint32_t device;
	struct plumb_use use;
};

struct joining {
	struct plumb_builder *builder;
	PLUMB_VEC(struct joined_use) uses;
	PLUMB_VEC(unsigned char) incomplete; /* by device: a profile does not hold all its work */
	bool no_memory;
	const struct plumb_profile *from;
	struct mapping to;
};

static uint32_t
mapped(const uint32_t *map, uint32_t count, uint32_t id)
{
	return id < count ? map[id] : PLUMB_NONE;
}

/* ID of one kind, translated. */
#define TO(joining, kind, id) mapped((joining)->to.kind, (joining)->from->kind##_count, (id))

static void
mapping_free(struct mapping *map)
{
	free(map->strings);
	free(map->frames);
	free(map->contexts);
	free(map->processes);
	free(map->tracks);
	free(map->devices);
	free(map->user_metrics);
}

static bool
mapping_new(struct mapping *map, const struct plumb_profile *from)
{
	memset(map, 0, sizeof(*map));
	return (map->strings = calloc(from->strings_count + 1ul, sizeof(uint32_t))) &&
	       (map->frames = calloc(from->frames_count + 1ul, sizeof(uint32_t))) &&
	       (map->contexts = calloc(from->contexts_count + 1ul, sizeof(uint32_t))) &&
	       (map->processes = calloc(from->processes_count + 1ul, sizeof(uint32_t))) &&
	       (map->tracks = calloc(from->tracks_count + 1ul, sizeof(uint32_t))) &&
	       (map->devices = calloc(from->devices_count + 1ul, sizeof(uint32_t))) &&
	       (map->user_metrics = calloc(from->user_metrics_count + 1ul, sizeof(uint32_t)));
}

/* ---- devices ---- */

/* a + b where both are known. */
static int64_t
plus(int64_t a, int64_t b)
{
	int64_t sum;
	if (a == PLUMB_UNKNOWN || b == PLUMB_UNKNOWN || __builtin_add_overflow(a, b, &sum))
		return PLUMB_UNKNOWN;
	return sum;
}

static int64_t
least(int64_t a, int64_t b)
{
	if (a == PLUMB_UNKNOWN || b == PLUMB_UNKNOWN)
		return a == PLUMB_UNKNOWN ? b : a;
	return a < b ? a : b;
}

static int64_t
greatest(int64_t a, int64_t b)
{
	return a > b ? a : b; /* unknown is the least of all numbers */
}

/* Where one of them did nothing, or they worked at different times, the union is the sum. */
static int64_t
busy_of_both(const struct plumb_device *a, const struct plumb_device *b)
{
	if (a->busy_ns == 0)
		return b->busy_ns;
	if (b->busy_ns == 0)
		return a->busy_ns;
	if (a->first_ns == PLUMB_UNKNOWN || b->first_ns == PLUMB_UNKNOWN ||
	    a->last_ns == PLUMB_UNKNOWN || b->last_ns == PLUMB_UNKNOWN)
		return PLUMB_UNKNOWN;
	if (a->last_ns <= b->first_ns || b->last_ns <= a->first_ns)
		return plus(a->busy_ns, b->busy_ns);
	return PLUMB_UNKNOWN;
}

static int64_t
contended_of_both(const struct plumb_device *a, const struct plumb_device *b)
{
	if (!a->busy_ns || !b->busy_ns ||
	    (a->last_ns != PLUMB_UNKNOWN && b->last_ns != PLUMB_UNKNOWN &&
	     (a->last_ns <= b->first_ns || b->last_ns <= a->first_ns)))
		return plus(a->contended_ns, b->contended_ns);
	return PLUMB_UNKNOWN;
}

static void
merge_device(struct plumb_device *into, const struct plumb_device *from)
{
	into->contended_ns = contended_of_both(into, from);
	into->busy_ns = busy_of_both(into, from);
	into->kernels = plus(into->kernels, from->kernels);
	into->kernel_ns = plus(into->kernel_ns, from->kernel_ns);
	into->copies = plus(into->copies, from->copies);
	into->copy_ns = plus(into->copy_ns, from->copy_ns);
	into->copy_bytes = plus(into->copy_bytes, from->copy_bytes);
	into->sets = plus(into->sets, from->sets);
	into->set_ns = plus(into->set_ns, from->set_ns);
	into->set_bytes = plus(into->set_bytes, from->set_bytes);
	into->late = plus(into->late, from->late);
	into->first_ns = least(into->first_ns, from->first_ns);
	into->last_ns = greatest(into->last_ns, from->last_ns);
	if (into->rank != from->rank)
		into->rank = PLUMB_UNKNOWN;
	if (into->ordinal != from->ordinal)
		into->ordinal = PLUMB_UNKNOWN;
}

static void
take_devices(struct joining *j)
{
	uint32_t before = plumb_builder_device_count(j->builder);
	for (uint32_t i = 0; i < j->from->devices_count; i++) {
		struct plumb_device device = j->from->devices[i];
		device.name = TO(j, strings, device.name);
		device.uuid = TO(j, strings, device.uuid);
		uint32_t same = PLUMB_NONE;
		for (uint32_t k = 0; device.uuid != PLUMB_NONE && k < before; k++)
			if (plumb_builder_get_device(j->builder, k)->uuid == device.uuid)
				same = k;
		if (same == PLUMB_NONE)
			same = plumb_builder_device(j->builder, &device);
		else
			merge_device(plumb_builder_get_device(j->builder, same), &device);
		j->to.devices[i] = same;
	}
}

/* Keeps the work of the device OF the profile for when all profiles are in, if it is all there. */
static void
keep_work(struct joining *j, uint32_t of)
{
	const struct plumb_device *device = &j->from->devices[of];
	uint32_t to = j->to.devices[of];
	int64_t pieces = plus(plus(device->kernels, device->copies), device->sets), held = 0;

	while (j->incomplete.count <= to) {
		unsigned char *flag = plumb_vec_add(&j->incomplete);
		if (!flag) {
			j->no_memory = true;
			return;
		}
		*flag = 0;
	}
	for (uint32_t i = 0; i < j->from->work_count; i++)
		held += j->from->tracks[j->from->work[i].track].device == of;
	if (held != pieces) {
		j->incomplete.items[to] = 1;
		return;
	}
	for (uint32_t i = 0; i < j->from->work_count; i++) {
		const struct plumb_work_item *item = &j->from->work[i];
		const struct plumb_track *track = &j->from->tracks[item->track];
		struct joined_use *kept;
		if (track->device != of)
			continue;
		kept = plumb_vec_add(&j->uses);
		if (!kept) {
			j->no_memory = true;
			return;
		}
		kept->device = to;
		kept->use = (struct plumb_use){ item->start_ns, item->end_ns,
			                        TO(j, processes, track->process) };
	}
}

/* Busy time where work of several profiles may overlap, but all of it is known. */
static void
find_contention(struct joining *j, uint32_t id)
{
	struct plumb_device *device = plumb_builder_get_device(j->builder, id);
	struct plumb_contention result;
	struct plumb_use *uses;
	size_t count = 0;

	if (device->busy_ns != PLUMB_UNKNOWN || device->uuid == PLUMB_NONE ||
	    id >= j->incomplete.count || j->incomplete.items[id])
		return;
	uses = malloc((j->uses.count + 1) * sizeof *uses);
	for (uint32_t i = 0; uses && i < j->uses.count; i++)
		if (j->uses.items[i].device == id)
			uses[count++] = j->uses.items[i].use;
	if (uses && count && plumb_contention_find(uses, count, &result)) {
		device->busy_ns = result.busy;
		device->contended_ns = result.contended;
	}
	free(uses);
}

/* ---- processes ---- */

static uint32_t
take_process(struct joining *j, const struct plumb_process *from, uint32_t before,
             struct plumb_error *error)
{
	struct plumb_process process = *from;
	process.host = TO(j, strings, process.host);
	process.command = TO(j, strings, process.command);
	for (uint32_t i = 0; i < before; i++) {
		const struct plumb_process *other = plumb_builder_get_process(j->builder, i);
		if (other->pid != process.pid || other->host != process.host ||
		    other->start_ns != process.start_ns || process.start_ns == PLUMB_UNKNOWN)
			continue;
		const char *host = plumb_builder_get_text(j->builder, process.host);
		plumb_fail(error, PLUMB_EUSAGE,
		           "process %lld of %s is given twice; name each run once",
		           (long long)process.pid, host ? host : "an unknown host");
		return PLUMB_NONE;
	}
	return plumb_builder_process(j->builder, &process);
}

static int
take_processes(struct joining *j, uint32_t before, struct plumb_error *error)
{
	struct plumb_error why = { 0 };
	for (uint32_t i = 0; i < j->from->processes_count; i++) {
		j->to.processes[i] = take_process(j, &j->from->processes[i], before, &why);
		if (why.code)
			return plumb_fail(error, why.code, "%s", why.message);
	}
	return 0;
}

static void
take_tracks(struct joining *j)
{
	for (uint32_t i = 0; i < j->from->tracks_count; i++) {
		struct plumb_track track = j->from->tracks[i];
		track.process = TO(j, processes, track.process);
		track.device = TO(j, devices, track.device);
		track.name = TO(j, strings, track.name);
		j->to.tracks[i] = plumb_builder_track(j->builder, &track);
	}
}

/* ---- contexts and what was measured there ---- */

static void
take_contexts(struct joining *j)
{
	for (uint32_t i = 0; i < j->from->frames_count; i++) {
		const struct plumb_frame *frame = &j->from->frames[i];
		j->to.frames[i] =
			plumb_builder_frame(j->builder, frame->kind, TO(j, strings, frame->name),
		                            TO(j, strings, frame->file), frame->line);
		uint32_t display = TO(j, strings, frame->display);
		if (display != PLUMB_NONE && j->to.frames[i] != PLUMB_NONE)
			plumb_builder_frame_display(j->builder, j->to.frames[i], display);
		if (frame->source_file != PLUMB_NONE && j->to.frames[i] != PLUMB_NONE)
			plumb_builder_frame_source(j->builder, j->to.frames[i],
			                           TO(j, strings, frame->source_file),
			                           frame->source_line);
	}
	/* In preorder a parent comes before its children; the root is always context 0. */
	for (uint32_t i = 1; i < j->from->contexts_count; i++) {
		const struct plumb_context *context = &j->from->contexts[i];
		j->to.contexts[i] =
			plumb_builder_context(j->builder, j->to.contexts[context->parent],
		                              j->to.frames[context->frame], context->flags);
	}
}

/* A metric's number; PLUMB_NONE: the joined profile has no room for it. */
static uint32_t
to_metric(const struct joining *j, uint32_t number)
{
	if (number < PLUMB_METRIC_USER)
		return number;
	number = TO(j, user_metrics, number - PLUMB_METRIC_USER);
	return number ? number : PLUMB_NONE;
}

static void
take_measured(struct joining *j)
{
	const struct plumb_profile *from = j->from;
	for (uint32_t i = 0; i < from->user_metrics_count; i++)
		j->to.user_metrics[i] =
			plumb_builder_metric(j->builder, TO(j, strings, from->user_metrics[i].name),
		                             TO(j, strings, from->user_metrics[i].unit));
	for (uint32_t i = 0; i < from->values_count; i++) {
		struct plumb_value value = from->values[i];
		value.context = TO(j, contexts, value.context);
		value.track = TO(j, tracks, value.track);
		value.metric = to_metric(j, value.metric);
		if (value.metric != PLUMB_NONE)
			plumb_builder_value(j->builder, &value);
	}
	for (uint32_t i = 0; i < from->variants_count; i++) {
		struct plumb_variant variant = from->variants[i];
		variant.context = TO(j, contexts, variant.context);
		variant.track = TO(j, tracks, variant.track);
		variant.shapes = TO(j, strings, variant.shapes);
		plumb_builder_variant(j->builder, &variant);
	}
	for (uint32_t i = 0; i < from->origins_count; i++) {
		struct plumb_origin origin = from->origins[i];
		origin.context = TO(j, contexts, origin.context);
		origin.origin = TO(j, contexts, origin.origin);
		plumb_builder_origin(j->builder, &origin);
	}
	for (uint32_t i = 0; i < from->findings_count; i++) {
		struct plumb_finding finding = from->findings[i];
		finding.id = TO(j, strings, finding.id);
		finding.rule = TO(j, strings, finding.rule);
		finding.title = TO(j, strings, finding.title);
		finding.advice = TO(j, strings, finding.advice);
		finding.evidence = TO(j, strings, finding.evidence);
		finding.context = TO(j, contexts, finding.context);
		plumb_builder_finding(j->builder, &finding);
	}
}

static void
count_lost(struct joining *j, uint32_t source, int64_t lost)
{
	if (lost)
		plumb_builder_ledger(j->builder, PLUMB_NONE, source, PLUMB_FATE_OVERWRITTEN,
		                     plumb_builder_text(j->builder, "a profile cannot hold more"),
		                     lost);
}

static void
take_cpu_samples(struct joining *j)
{
	const struct plumb_profile *from = j->from;
	int64_t lost = 0;
	for (uint32_t i = 0; i < from->cpu_samples_count; i++) {
		struct plumb_cpu_sample sample = from->cpu_samples[i];
		sample.context = TO(j, contexts, sample.context);
		sample.track = TO(j, tracks, sample.track);
		if (plumb_builder_cpu_sample(j->builder, &sample) == 1)
			lost++;
	}
	count_lost(j, PLUMB_SOURCE_SAMPLE_TIME, lost);
}

static void
take_times(struct joining *j)
{
	const struct plumb_profile *from = j->from;
	int64_t lost = 0;
	for (uint32_t i = 0; i < from->clocks_count; i++) {
		struct plumb_clock clock = from->clocks[i];
		clock.process = TO(j, processes, clock.process);
		clock.device = TO(j, devices, clock.device);
		plumb_builder_clock(j->builder, &clock);
	}
	for (uint32_t i = 0; i < from->work_count; i++) {
		struct plumb_work_item item = from->work[i];
		item.context = TO(j, contexts, item.context);
		item.track = TO(j, tracks, item.track);
		plumb_builder_work(j->builder, &item);
	}
	for (uint32_t i = 0; i < from->spans_count; i++) {
		struct plumb_span span = from->spans[i];
		span.context = TO(j, contexts, span.context);
		span.track = TO(j, tracks, span.track);
		if (plumb_builder_span(j->builder, &span) == 1)
			lost++;
	}
	for (uint32_t i = 0; i < from->waits_count; i++) {
		struct plumb_wait wait = from->waits[i];
		wait.track = TO(j, tracks, wait.track);
		wait.awaited = TO(j, tracks, wait.awaited);
		wait.device = TO(j, devices, wait.device);
		plumb_builder_wait(j->builder, &wait);
	}
	for (uint32_t i = 0; i < from->collectives_count; i++) {
		struct plumb_collective row = from->collectives[i];
		row.track = TO(j, tracks, row.track);
		row.group = TO(j, strings, row.group);
		row.ranks = TO(j, strings, row.ranks);
		plumb_builder_collective(j->builder, &row);
	}
	take_cpu_samples(j);
	count_lost(j, PLUMB_SOURCE_SPAN, lost);
	for (uint32_t i = 0; i < from->code_objects_count; i++) {
		struct plumb_code_object object = from->code_objects[i];
		object.process = TO(j, processes, object.process);
		object.kind = TO(j, strings, object.kind);
		object.path = TO(j, strings, object.path);
		object.build_id = TO(j, strings, object.build_id);
		object.hash = TO(j, strings, object.hash);
		plumb_builder_code_object(j->builder, &object);
	}
	for (uint32_t i = 0; i < from->series_count; i++) {
		struct plumb_series_bin bin = from->series[i];
		bin.process = TO(j, processes, bin.process);
		bin.device = TO(j, devices, bin.device);
		plumb_builder_series(j->builder, &bin);
	}
	for (uint32_t i = 0; i < from->memory_count; i++) {
		struct plumb_memory memory = from->memory[i];
		memory.track = TO(j, tracks, memory.track);
		plumb_builder_memory(j->builder, &memory);
	}
	for (uint32_t i = 0; i < from->device_processes_count; i++) {
		struct plumb_device_process row = from->device_processes[i];
		row.process = TO(j, processes, row.process);
		row.device = TO(j, devices, row.device);
		plumb_builder_device_process(j->builder, &row);
	}
	for (uint32_t i = 0; i < from->devices_count; i++)
		keep_work(j, i);
	for (uint32_t i = 0; i < from->ledger_count; i++) {
		const struct plumb_ledger_row *row = &from->ledger[i];
		plumb_builder_ledger(j->builder, TO(j, processes, row->process), row->source,
		                     row->fate, TO(j, strings, row->detail), row->count);
	}
}

/* ---- environment ---- */

/* What PROFILE as a whole states about KEY, or NULL. */
static const char *
run_fact(const struct plumb_profile *profile, const char *key)
{
	for (uint32_t i = 0; i < profile->environment_count; i++) {
		const struct plumb_environment_row *row = &profile->environment[i];
		const char *name = plumb_text(profile, row->key);
		if (row->process == PLUMB_NONE && name && strcmp(name, key) == 0)
			return plumb_text(profile, row->value);
	}
	return NULL;
}

static bool
all_agree(const struct plumb_profile *const *profiles, size_t count, const char *key,
          const char *value)
{
	for (size_t i = 0; i < count; i++) {
		const char *other = run_fact(profiles[i], key);
		if (other && strcmp(other, value) != 0)
			return false;
	}
	return true;
}

static void
take_environment(struct joining *j, const struct plumb_profile *const *profiles, size_t count)
{
	for (uint32_t i = 0; i < j->from->environment_count; i++) {
		const struct plumb_environment_row *row = &j->from->environment[i];
		const char *key = plumb_text(j->from, row->key),
			   *value = plumb_text(j->from, row->value);
		if (!key || !value)
			continue;
		if (row->process != PLUMB_NONE || all_agree(profiles, count, key, value)) {
			plumb_builder_environment(j->builder, TO(j, processes, row->process), key,
			                          value);
			continue;
		}
		for (uint32_t k = 0; k < j->from->processes_count; k++)
			plumb_builder_environment(j->builder, j->to.processes[k], key, value);
	}
}

/* ---- the run ---- */

/* The one host of all processes, in the builder's ids; PLUMB_NONE when there are several. */
static bool
on_one_host(struct plumb_builder *builder, uint32_t processes)
{
	uint32_t host = PLUMB_NONE;
	for (uint32_t i = 0; i < processes; i++) {
		uint32_t own = plumb_builder_get_process(builder, i)->host;
		if (own == PLUMB_NONE || (host != PLUMB_NONE && own != host))
			return false;
		host = own;
	}
	return host != PLUMB_NONE;
}

static void
join_run(struct joining *j, struct plumb_run *run, int64_t *end)
{
	const struct plumb_run *from = &j->from->run;
	if (run->command == PLUMB_NONE)
		run->command = TO(j, strings, from->command);
	if (run->tool_version == PLUMB_NONE)
		run->tool_version = TO(j, strings, from->tool_version);
	if (run->exit_code == PLUMB_UNKNOWN || (run->exit_code == 0 && from->exit_code > 0))
		run->exit_code = from->exit_code;
	run->overhead_ns = greatest(run->overhead_ns, from->overhead_ns);
	run->wall_ns = greatest(run->wall_ns, from->wall_ns);
	run->start_ns = least(run->start_ns, from->start_ns);
	*end = greatest(*end, plus(from->start_ns, from->wall_ns));
}

/* ---- all of it ---- */

static uint32_t
process_count(struct plumb_builder *builder)
{
	uint32_t count = 0;
	while (plumb_builder_get_process(builder, count))
		count++;
	return count;
}

static int
take(struct joining *j, const struct plumb_profile *const *profiles, size_t count,
     struct plumb_error *error)
{
	uint32_t before = process_count(j->builder);
	if (!mapping_new(&j->to, j->from))
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory to join the profiles");
	for (uint32_t i = 0; i < j->from->strings_count; i++)
		j->to.strings[i] = plumb_builder_text(j->builder, j->from->strings[i]);
	int code = take_processes(j, before, error);
	if (code < 0)
		return code;
	take_devices(j);
	take_tracks(j);
	take_contexts(j);
	take_measured(j);
	take_times(j);
	take_environment(j, profiles, count);
	return 0;
}

int
plumb_join(const struct plumb_profile *const *profiles, size_t count, struct plumb_profile *out,
           struct plumb_error *error)
{
	if (count == 0)
		return plumb_fail(error, PLUMB_EUSAGE, "give at least one profile to join");
	struct joining joining = { .builder = plumb_builder_new() };
	int64_t end = PLUMB_UNKNOWN;
	int code = 0;
	if (!joining.builder)
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory to join the profiles");
	for (size_t i = 0; i < count && code == 0; i++) {
		joining.from = profiles[i];
		code = take(&joining, profiles, count, error);
		if (code == 0)
			join_run(&joining, plumb_builder_run(joining.builder), &end);
		mapping_free(&joining.to);
	}
	if (code == 0 && joining.no_memory)
		code = plumb_fail(error, PLUMB_ESYSTEM, "not enough memory to join the profiles");
	for (uint32_t i = 0; code == 0 && i < plumb_builder_device_count(joining.builder); i++)
		find_contention(&joining, i);
	if (code == 0) {
		struct plumb_run *run = plumb_builder_run(joining.builder);
		if (on_one_host(joining.builder, process_count(joining.builder)) &&
		    end != PLUMB_UNKNOWN && run->start_ns != PLUMB_UNKNOWN)
			run->wall_ns = end - run->start_ns;
		code = plumb_builder_finish(joining.builder, out, error);
	}
	plumb_vec_free(&joining.uses);
	plumb_vec_free(&joining.incomplete);
	plumb_builder_free(joining.builder);
	return code;
}
