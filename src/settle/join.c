/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row goes through the builder, with its ids mapped, and the builder merges equal rows. Only
 * devices, the environment and the run need rules of their own.
 */
#include "settle/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/builder.h"
#include "model/rows.h"
#include "settle/contention.h"

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
	struct plumb_row_maps to; /* ids of FROM → ids of the builder */
};

/* ID of a row of TABLE, translated. */
static uint32_t
to_row(const struct joining *j, enum plumb_table_number table, uint32_t id)
{
	return plumb_row_mapped(&j->to.tables[table], id);
}

static uint32_t
to_string(const struct joining *j, uint32_t id)
{
	return plumb_row_mapped(&j->to.strings, id);
}

/* The tables whose rows other rows refer to. */
static const enum plumb_table_number referred[] = {
	PLUMB_TABLE_PROCESSES,    PLUMB_TABLE_DEVICES,        PLUMB_TABLE_TRACKS,
	PLUMB_TABLE_FRAMES,       PLUMB_TABLE_CONTEXTS,       PLUMB_TABLE_WINDOWS,
	PLUMB_TABLE_CODE_OBJECTS, PLUMB_TABLE_CODE_FUNCTIONS, PLUMB_TABLE_OBJECTS
};
#define REFERRED (sizeof referred / sizeof *referred)

static void
free_maps(struct plumb_row_maps *maps)
{
	free(maps->strings.ids);
	free(maps->user_metrics.ids);
	for (size_t i = 0; i < REFERRED; i++)
		free(maps->tables[referred[i]].ids);
}

static bool
make_map(struct plumb_row_map *map, uint32_t count)
{
	map->ids = calloc(count + 1ul, sizeof *map->ids);
	map->count = count;
	return map->ids != NULL;
}

static bool
make_maps(struct plumb_row_maps *maps, const struct plumb_profile *from)
{
	memset(maps, 0, sizeof *maps);
	bool ok = make_map(&maps->strings, from->strings_count) &&
	          make_map(&maps->user_metrics, from->user_metrics_count);
	for (size_t i = 0; ok && i < REFERRED; i++)
		ok = make_map(&maps->tables[referred[i]],
		              plumb_row_array_of(from, &plumb_row_tables[referred[i]]).count);
	return ok;
}

/* ---- devices ---- */

static int64_t
min_known(int64_t a, int64_t b)
{
	if (a == PLUMB_UNKNOWN || b == PLUMB_UNKNOWN)
		return a == PLUMB_UNKNOWN ? b : a;
	return a < b ? a : b;
}

static int64_t
max_known(int64_t a, int64_t b)
{
	return a > b ? a : b; /* unknown is the least of all numbers */
}

/* If one of them did nothing, or they worked at different times, the union is the sum. */
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
		return plumb_add_known(a->busy_ns, b->busy_ns);
	return PLUMB_UNKNOWN;
}

static int64_t
contended_of_both(const struct plumb_device *a, const struct plumb_device *b)
{
	if (!a->busy_ns || !b->busy_ns ||
	    (a->last_ns != PLUMB_UNKNOWN && b->last_ns != PLUMB_UNKNOWN &&
	     (a->last_ns <= b->first_ns || b->last_ns <= a->first_ns)))
		return plumb_add_known(a->contended_ns, b->contended_ns);
	return PLUMB_UNKNOWN;
}

static void
merge_device(struct plumb_device *into, const struct plumb_device *from)
{
	into->contended_ns = contended_of_both(into, from);
	into->busy_ns = busy_of_both(into, from);
	plumb_device_work_add(&into->work, &from->work);
	into->late = plumb_add_known(into->late, from->late);
	into->first_ns = min_known(into->first_ns, from->first_ns);
	into->last_ns = max_known(into->last_ns, from->last_ns);
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
		plumb_row_map(&plumb_row_tables[PLUMB_TABLE_DEVICES], &device, &j->to);
		uint32_t same = PLUMB_NONE;
		for (uint32_t k = 0; device.uuid != PLUMB_NONE && k < before; k++)
			if (plumb_builder_get_device(j->builder, k)->uuid == device.uuid)
				same = k;
		if (same == PLUMB_NONE)
			same = plumb_builder_device(j->builder, &device);
		else
			merge_device(plumb_builder_get_device(j->builder, same), &device);
		j->to.tables[PLUMB_TABLE_DEVICES].ids[i] = same;
	}
}

/* Keeps the work of the device OF the profile for when all profiles are in, if it is all there. */
static void
keep_work(struct joining *j, uint32_t of)
{
	const struct plumb_device *device = &j->from->devices[of];
	uint32_t to = to_row(j, PLUMB_TABLE_DEVICES, of);
	int64_t pieces = plumb_add_known(plumb_add_known(device->kernels, device->copies),
	                                 device->sets),
		held = 0;

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
			                        to_row(j, PLUMB_TABLE_PROCESSES, track->process) };
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
	plumb_row_map(&plumb_row_tables[PLUMB_TABLE_PROCESSES], &process, &j->to);
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
		j->to.tables[PLUMB_TABLE_PROCESSES].ids[i] =
			take_process(j, &j->from->processes[i], before, &why);
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
		plumb_row_map(&plumb_row_tables[PLUMB_TABLE_TRACKS], &track, &j->to);
		j->to.tables[PLUMB_TABLE_TRACKS].ids[i] = plumb_builder_track(j->builder, &track);
	}
}

static void
take_windows(struct joining *j)
{
	for (uint32_t i = 0; i < j->from->windows_count; i++) {
		struct plumb_window window = j->from->windows[i];
		plumb_row_map(&plumb_row_tables[PLUMB_TABLE_WINDOWS], &window, &j->to);
		j->to.tables[PLUMB_TABLE_WINDOWS].ids[i] =
			plumb_builder_window(j->builder, &window);
	}
}

/* ---- contexts and what was measured there ---- */

static void
take_contexts(struct joining *j)
{
	uint32_t *frames = j->to.tables[PLUMB_TABLE_FRAMES].ids;
	uint32_t *contexts = j->to.tables[PLUMB_TABLE_CONTEXTS].ids;
	for (uint32_t i = 0; i < j->from->frames_count; i++) {
		struct plumb_frame frame = j->from->frames[i];
		plumb_row_map(&plumb_row_tables[PLUMB_TABLE_FRAMES], &frame, &j->to);
		frames[i] = plumb_builder_frame(j->builder, frame.kind, frame.name, frame.file,
		                                frame.line);
		if (frame.display != PLUMB_NONE && frames[i] != PLUMB_NONE)
			plumb_builder_frame_display(j->builder, frames[i], frame.display);
		if (frame.source_file != PLUMB_NONE && frames[i] != PLUMB_NONE)
			plumb_builder_frame_source(j->builder, frames[i], frame.source_file,
			                           frame.source_line);
	}
	/* In preorder a parent comes before its children; the root is always context 0. */
	for (uint32_t i = 1; i < j->from->contexts_count; i++) {
		const struct plumb_context *context = &j->from->contexts[i];
		contexts[i] = plumb_builder_context(j->builder, contexts[context->parent],
		                                    frames[context->frame], context->flags);
	}
}

/* If the joined profile has no room for a metric, the metric has no number. */
static void
take_metrics(struct joining *j)
{
	for (uint32_t i = 0; i < j->from->user_metrics_count; i++) {
		const struct plumb_user_metric *metric = &j->from->user_metrics[i];
		uint32_t number = plumb_builder_metric(j->builder, to_string(j, metric->name),
		                                       to_string(j, metric->unit));
		j->to.user_metrics.ids[i] = number ? number : PLUMB_NONE;
	}
}

/* ---- code ---- */

/* Takes the rows of a table in whose rows others refer to and which may be there already. */
static void
take_referred(struct joining *j, enum plumb_table_number number)
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	struct plumb_row_array rows = plumb_row_array_of(j->from, table);
	char *row = malloc(table->row_size);

	j->no_memory |= !row;
	for (uint32_t i = 0; row && i < rows.count; i++) {
		uint32_t to = PLUMB_NONE;
		memcpy(row, rows.items + (size_t)i * table->row_size, table->row_size);
		plumb_row_map(table, row, &j->to);
		if (plumb_builder_row_near(j->builder, number, row, &to))
			to = PLUMB_NONE;
		j->to.tables[number].ids[i] = to;
	}
	free(row);
}

/* Code that another profile had already brought stays as that one has it. The rows below it would
 * only come twice: they are left out. */
static void
take_code(struct joining *j)
{
	uint32_t before = plumb_builder_code_functions(j->builder);

	take_referred(j, PLUMB_TABLE_CODE_OBJECTS);
	take_referred(j, PLUMB_TABLE_CODE_FUNCTIONS);
	const uint32_t *functions = j->to.tables[PLUMB_TABLE_CODE_FUNCTIONS].ids;
	for (uint32_t i = 0; i < j->from->code_references_count; i++) {
		struct plumb_code_reference row = j->from->code_references[i];
		if (functions[row.function] < before || functions[row.function] == PLUMB_NONE)
			continue;
		plumb_row_map(&plumb_row_tables[PLUMB_TABLE_CODE_REFERENCES], &row, &j->to);
		plumb_builder_code_reference(j->builder, &row);
	}
	for (uint32_t i = 0; i < j->from->code_lines_count; i++) {
		struct plumb_code_line row = j->from->code_lines[i];
		if (functions[row.function] < before || functions[row.function] == PLUMB_NONE)
			continue;
		plumb_row_map(&plumb_row_tables[PLUMB_TABLE_CODE_LINES], &row, &j->to);
		plumb_builder_code_line(j->builder, &row);
	}
}

/* Each is of one process, so that none is there already. Those that others are within come first.
 * What a rank imported from another one stays memory of another process: a profile has no keys of
 * handles. Settling the runs' folders together joins it. */
static void
take_objects(struct joining *j)
{
	uint32_t *ids = j->to.tables[PLUMB_TABLE_OBJECTS].ids;

	for (uint32_t i = 0; i < j->from->objects_count; i++)
		ids[i] = PLUMB_NONE;
	for (int inner = 0; inner < 2; inner++) {
		for (uint32_t i = 0; i < j->from->objects_count; i++) {
			struct plumb_object row = j->from->objects[i];
			if ((row.within != PLUMB_NONE) != inner)
				continue;
			plumb_row_map(&plumb_row_tables[PLUMB_TABLE_OBJECTS], &row, &j->to);
			ids[i] = plumb_builder_object(j->builder, &row);
		}
	}
}

/* Rows that the joined profile has no room for are counted. */
static void
take_rows(struct joining *j, enum plumb_table_number number)
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	struct plumb_row_array rows = plumb_row_array_of(j->from, table);
	char *row = malloc(table->row_size);
	int64_t lost = 0;
	j->no_memory |= !row;
	for (uint32_t i = 0; row && i < rows.count; i++) {
		memcpy(row, rows.items + (size_t)i * table->row_size, table->row_size);
		if (plumb_row_map(table, row, &j->to))
			lost += plumb_builder_row(j->builder, number, row) == 1;
	}
	free(row);
	if (lost)
		plumb_builder_ledger(j->builder, PLUMB_NONE, table->lost_as, PLUMB_FATE_OVERWRITTEN,
		                     plumb_builder_text(j->builder, "a profile cannot hold more"),
		                     lost);
}

static void
take_all_rows(struct joining *j)
{
	for (int t = PLUMB_TABLE_RUN + 1; t < PLUMB_TABLES; t++)
		if (!j->to.tables[t].ids && t != PLUMB_TABLE_ENVIRONMENT &&
		    t != PLUMB_TABLE_CODE_REFERENCES && t != PLUMB_TABLE_CODE_LINES)
			take_rows(j, t);
	for (uint32_t i = 0; i < j->from->devices_count; i++)
		keep_work(j, i);
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
			plumb_builder_environment(j->builder,
			                          to_row(j, PLUMB_TABLE_PROCESSES, row->process),
			                          key, value);
			continue;
		}
		for (uint32_t k = 0; k < j->from->processes_count; k++)
			plumb_builder_environment(j->builder, to_row(j, PLUMB_TABLE_PROCESSES, k),
			                          key, value);
	}
}

/* ---- the run ---- */

/* The host of all processes, as a string of the builder. PLUMB_NONE: there are several hosts. */
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
		run->command = to_string(j, from->command);
	if (run->tool_version == PLUMB_NONE)
		run->tool_version = to_string(j, from->tool_version);
	if (run->exit_code == PLUMB_UNKNOWN || (run->exit_code == 0 && from->exit_code > 0))
		run->exit_code = from->exit_code;
	run->overhead_ns = max_known(run->overhead_ns, from->overhead_ns);
	run->wall_ns = max_known(run->wall_ns, from->wall_ns);
	run->start_ns = min_known(run->start_ns, from->start_ns);
	*end = max_known(*end, plumb_add_known(from->start_ns, from->wall_ns));
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
take_profile(struct joining *j, const struct plumb_profile *const *profiles, size_t count,
             struct plumb_error *error)
{
	uint32_t before = process_count(j->builder);
	if (!make_maps(&j->to, j->from))
		return plumb_fail_memory(error, "to join the profiles");
	for (uint32_t i = 0; i < j->from->strings_count; i++)
		j->to.strings.ids[i] = plumb_builder_text(j->builder, j->from->strings[i]);
	int code = take_processes(j, before, error);
	if (code < 0)
		return code;
	take_devices(j);
	take_tracks(j);
	take_windows(j);
	take_contexts(j);
	take_metrics(j);
	take_code(j);
	take_objects(j);
	take_all_rows(j);
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
		return plumb_fail_memory(error, "to join the profiles");
	for (size_t i = 0; i < count && code == 0; i++) {
		joining.from = profiles[i];
		code = take_profile(&joining, profiles, count, error);
		if (code == 0)
			join_run(&joining, plumb_builder_run(joining.builder), &end);
		free_maps(&joining.to);
	}
	if (code == 0 && joining.no_memory)
		code = plumb_fail_memory(error, "to join the profiles");
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
