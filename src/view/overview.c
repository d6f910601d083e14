/* SPDX-License-Identifier: Apache-2.0 */
#include "view/overview.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/counter_series.h"
#include "view/cost.h"
#include "view/findings.h"
#include "view/gpu_shares.h"
#include "view/ledger.h"
#include "view/render.h"
#include "view/report_private.h"
#include "view/view.h"
#include "view/windows.h"

int64_t
plumb_overview_recorded(const struct plumb_profile *p)
{
	int64_t most = PLUMB_UNKNOWN;

	if (p->window.kind) /* that was of the whole */
		return most;
	/* Joined profiles may differ; as with the wall time, the longest counts. */
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);
		const char *value = plumb_text(p, p->environment[i].value);
		int64_t number;
		if (!key || !value || strcmp(key, "plumb.recorded_ns"))
			continue;
		number =
			*value && strspn(value, "0123456789") == strlen(value) && strlen(value) < 19
				? strtoll(value, NULL, 10)
				: -1;
		if (number >= 0 && number > most)
			most = number;
	}
	return most;
}

/* END - START, unknown when either is. */
static int64_t
subtract_times(int64_t start, int64_t end)
{
	int64_t result;

	if (start == PLUMB_UNKNOWN || end == PLUMB_UNKNOWN ||
	    __builtin_sub_overflow(end, start, &result))
		return PLUMB_UNKNOWN;
	return result;
}

/* What other tool's trace the profile is made of; NULL: it was recorded. */
static const char *
imported_from(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);
		if (p->environment[i].process == PLUMB_NONE && key && !strcmp(key, "import.files"))
			return plumb_text(p, p->environment[i].value);
	}
	return NULL;
}

/* Why there is no device. */
static const char *
why_no_gpu(const struct plumb_profile *p)
{
	const char *said = plumb_profile_environment(p, "run.no_gpu");

	if (said && *said)
		return "not recorded (--no-gpu)";
	if (imported_from(p))
		return "no work in the trace";
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);
		size_t length = key ? strlen(key) : 0;

		/* Its runtime was met, and could not be followed. */
		if (length > 8 && !strncmp(key, "gpu.", 4) && !strcmp(key + length - 4, ".off"))
			return "not recorded";
	}
	return "not used";
}

/* What part of the collector was off, or gave way, says so under a key that ends like this. */
static bool
is_note(const char *key)
{
	const char *dot = key ? strrchr(key, '.') : NULL;
	return dot && (!strcmp(dot, ".off") || !strcmp(dot, ".kept") || !strcmp(dot, ".gap"));
}

#define SLOWER                                                                                     \
	"counting launches (--counters) made the program slower. A run without it has the real "   \
	"times, and says why the GPU idles"

static const char *
counting_note(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->ledger_count; i++)
		if (p->ledger[i].source == PLUMB_SOURCE_COUNTER &&
		    p->ledger[i].fate == PLUMB_FATE_TOO_SLOW && p->ledger[i].count > 0)
			return SLOWER
				". To limit that, some kernels were counted less often, or not "
				"at all: --counters-cost=0 has no limit";
	return SLOWER;
}

/* The notes of OVERVIEW; several processes may have the same. */
static void
find_notes(const struct plumb_profile *p, struct plumb_overview *o)
{
	uint32_t found[PLUMB_OVERVIEW_NOTES] = { PLUMB_NONE };

	if (plumb_profile_is_counted(p))
		o->notes[o->note_count++] = counting_note(p);
	for (uint32_t i = 0; i < p->environment_count && o->note_count < PLUMB_OVERVIEW_NOTES;
	     i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		bool said = false;

		if (!is_note(plumb_text(p, row->key)) || !plumb_text(p, row->value))
			continue;
		for (uint32_t k = 0; k < o->note_count; k++)
			said = said || found[k] == row->value;
		if (said)
			continue;
		found[o->note_count] = row->value;
		o->notes[o->note_count++] = plumb_text(p, row->value);
	}
}

struct plumb_overview
plumb_overview_make(const struct plumb_profile *p)
{
	int64_t recorded = plumb_overview_recorded(p);
	struct plumb_overview o = {
		.imported = imported_from(p),
		.recorded_ns = recorded,
		.no_gpu = p->devices_count ? NULL : why_no_gpu(p),
	};

	find_notes(p, &o);
	return o;
}

struct plumb_overview_device
plumb_overview_device(const struct plumb_profile *p, uint32_t device)
{
	const struct plumb_device *d = &p->devices[device];
	struct plumb_overview_device times = { .work_ns = subtract_times(d->first_ns, d->last_ns) };
	int64_t recorded = plumb_overview_recorded(p);

	/* A window may have come and gone several times meanwhile. */
	if (p->window.kind && p->run.wall_ns > 0 && times.work_ns > p->run.wall_ns)
		times.work_ns = p->run.wall_ns;
	times.span_ns =
		recorded != PLUMB_UNKNOWN && recorded < times.work_ns ? recorded : times.work_ns;
	for (uint32_t i = 0; i < p->device_processes_count; i++)
		times.users += p->device_processes[i].device == device;
	return times;
}

bool
plumb_overview_balance(const struct plumb_profile *p, const struct plumb_ranks *ranks,
                       struct plumb_overview_balance *balance)
{
	struct plumb_overview_balance b = { .gpu = p->devices_count > 0,
		                            .whole_ns = plumb_overview_recorded(p) };

	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct plumb_rank *rank = &ranks->items[i];
		int64_t busy = b.gpu ? rank->gpu_busy_ns : rank->op_time_ns;

		if (busy == PLUMB_UNKNOWN)
			return false;
		if (!b.least || busy < b.least_ns)
			b.least = rank, b.least_ns = busy;
		if (!b.most || busy > b.most_ns)
			b.most = rank, b.most_ns = busy;
		b.mean_ns += (double)busy;
	}
	if (b.whole_ns == PLUMB_UNKNOWN)
		b.whole_ns = p->run.wall_ns;
	if (b.mean_ns <= 0 || b.whole_ns <= 0)
		return false;
	b.mean_ns /= ranks->count;
	*balance = b;
	return true;
}

/* ---- JSON ---- */

static void
write_environment(struct plumb_json *json, const struct plumb_profile *p, uint32_t process)
{
	plumb_json_key_object(json, "environment");
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		const char *key = plumb_text(p, row->key);

		if (row->process == process && key)
			plumb_json_key_text(json, key, plumb_text(p, row->value));
	}
	plumb_json_end(json);
}

void
plumb_overview_json_run(const struct plumb_profile *p, struct plumb_json *json)
{
	int64_t recorded = plumb_overview_recorded(p);

	plumb_json_key_object(json, "run");
	plumb_json_key_text(json, "command", plumb_text(p, p->run.command));
	plumb_json_key_quantity(json, "wall_ns", p->run.wall_ns);
	plumb_json_key_quantity(json, "recorded_ns",
	                        recorded == PLUMB_UNKNOWN ? p->run.wall_ns : recorded);
	plumb_json_key_quantity(json, "overhead_ns", p->run.overhead_ns);
	plumb_cost_json(p, json);
	plumb_json_key_quantity(json, "exit_code", p->run.exit_code);
	plumb_json_key_text(json, "tool_version", plumb_text(p, p->run.tool_version));
	write_environment(json, p, PLUMB_NONE);
	plumb_json_end(json);
}

static void
write_processes(struct plumb_json *json, const struct plumb_profile *p)
{
	plumb_json_key_array(json, "processes");
	for (uint32_t i = 0; i < p->processes_count; i++) {
		const struct plumb_process *process = &p->processes[i];

		plumb_json_object(json);
		plumb_json_key_quantity(json, "pid", process->pid);
		plumb_json_key_quantity(json, "ppid", process->ppid);
		plumb_json_key_quantity(json, "rank", process->rank);
		plumb_json_key_quantity(json, "local_rank", process->local_rank);
		plumb_json_key_text(json, "host", plumb_text(p, process->host));
		plumb_json_key_text(json, "command", plumb_text(p, process->command));
		plumb_json_key_quantity(json, "wall_ns",
		                        subtract_times(process->start_ns, process->end_ns));
		plumb_json_key_quantity(json, "exit_code", process->exit_code);
		plumb_json_key_quantity(json, "overhead_ns", process->overhead_ns);
		write_environment(json, p, i);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_work(struct plumb_json *json, const char *key, int64_t count, int64_t ns, bool has_bytes,
           int64_t bytes)
{
	plumb_json_key_object(json, key);
	plumb_json_key_quantity(json, "count", count);
	plumb_json_key_quantity(json, "ns", ns);
	if (has_bytes)
		plumb_json_key_quantity(json, "bytes", bytes);
	plumb_json_end(json);
}

static void
write_device_processes(struct plumb_json *json, const struct plumb_profile *p, uint32_t device)
{
	plumb_json_key_array(json, "processes");
	for (uint32_t i = 0; i < p->device_processes_count; i++) {
		const struct plumb_device_process *row = &p->device_processes[i];
		const struct plumb_process *process =
			row->process < p->processes_count ? &p->processes[row->process] : NULL;

		if (row->device != device)
			continue;
		plumb_json_object(json);
		plumb_json_key_quantity(json, "pid", process ? process->pid : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "rank", process ? process->rank : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "busy_ns", row->busy_ns);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_ranks(struct plumb_json *json, const struct plumb_profile *p)
{
	struct plumb_ranks ranks;

	plumb_json_key_array(json, "ranks");
	if (plumb_ranks_find(p, &ranks)) {
		for (uint32_t i = 0; i < ranks.count; i++) {
			const struct plumb_rank *rank = &ranks.items[i];

			plumb_json_object(json);
			plumb_json_key_quantity(json, "rank", rank->rank);
			plumb_json_key_quantity(json, "processes", rank->processes);
			plumb_json_key_quantity(json, "gpu_busy_ns", rank->gpu_busy_ns);
			plumb_json_key_quantity(json, "op_time_ns", rank->op_time_ns);
			plumb_json_end(json);
		}
		plumb_ranks_free(&ranks);
	}
	plumb_json_end(json);
}

/* Hardware counters over time, if there are any. */
static void
write_counters(struct plumb_json *json, const struct plumb_profile *p, uint32_t device)
{
	struct plumb_counter_series series;

	if (!p->counter_series_count)
		return;
	plumb_json_key_array(json, "counters");
	for (uint32_t at = 0; plumb_counter_series_next(p, &at, &series);) {
		struct plumb_counter_summary all = plumb_counter_series_summary(&series);

		if (series.device != device)
			continue;
		plumb_json_object(json);
		plumb_json_key_text(json, "name", series.name);
		plumb_json_key_text(json, "unit", series.unit);
		plumb_json_key_number(json, "mean", all.mean);
		plumb_json_key_number(json, "min", all.min);
		plumb_json_key_number(json, "max", all.max);
		plumb_json_key_quantity(json, "samples", all.samples);
		plumb_json_key_quantity(json, "sampled_ns", all.sampled_ns);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_devices(struct plumb_json *json, const struct plumb_profile *p)
{
	plumb_json_key_array(json, "devices");
	for (uint32_t i = 0; i < p->devices_count; i++) {
		const struct plumb_device *d = &p->devices[i];
		struct plumb_overview_device times = plumb_overview_device(p, i);

		plumb_json_object(json);
		plumb_json_key_quantity(json, "id", i);
		plumb_json_key_text(json, "name", plumb_text(p, d->name));
		plumb_json_key_text(json, "uuid", plumb_text(p, d->uuid));
		plumb_json_key_quantity(json, "ordinal", d->ordinal);
		plumb_json_key_quantity(json, "rank", d->rank);
		write_work(json, "kernels", d->kernels, d->kernel_ns, false, 0);
		write_work(json, "copies", d->copies, d->copy_ns, true, d->copy_bytes);
		write_work(json, "sets", d->sets, d->set_ns, true, d->set_bytes);
		plumb_json_key_quantity(json, "busy_ns", d->busy_ns);
		plumb_json_key_quantity(json, "idle_ns", subtract_times(d->busy_ns, times.span_ns));
		plumb_json_key_quantity(json, "span_ns", times.work_ns);
		plumb_json_key_quantity(json, "late", d->late);
		write_device_processes(json, p, i);
		plumb_json_key_quantity(json, "contended_ns", d->contended_ns);
		write_counters(json, p, i);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_memory(struct plumb_json *json, const struct plumb_profile *p)
{
	plumb_json_key_array(json, "memory");
	for (uint32_t m = 0; m < p->memory_count; m++) {
		const struct plumb_memory *memory = &p->memory[m];
		struct plumb_report_device at = plumb_report_device(p, memory);

		plumb_json_object(json);
		plumb_json_key_text(json, "name", at.name);
		plumb_json_key_quantity(json, "device",
		                        at.device ? at.device - p->devices : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "pid", at.process ? at.process->pid : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "rank",
		                        at.process ? at.process->rank : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "peak_bytes", memory->peak_bytes);
		plumb_json_key_quantity(json, "peak_ns", at.peak_since_ns);
		plumb_json_key_quantity(json, "allocations", memory->allocations);
		plumb_json_key_quantity(json, "allocated_bytes", memory->allocated_bytes);
		plumb_json_key_quantity(json, "frees", memory->frees);
		plumb_json_key_quantity(json, "freed_bytes", memory->freed_bytes);
		plumb_json_key_quantity(json, "live_bytes", memory->live_bytes);
		plumb_json_key_quantity(json, "peak_allocated_bytes", memory->peak_allocated_bytes);
		plumb_json_key_quantity(json, "peak_reserved_bytes", memory->peak_reserved_bytes);
		plumb_json_key_quantity(json, "most_reserved_bytes", memory->most_reserved_bytes);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

void
plumb_overview_json_parts(const struct plumb_profile *profile, struct plumb_json *json)
{
	write_processes(json, profile);
	write_devices(json, profile);
	write_memory(json, profile);
	write_ranks(json, profile);
	plumb_gpu_shares_json(profile, json);
}

int
plumb_view_overview(const struct plumb_profile *profile, FILE *out, struct plumb_error *error)
{
	struct plumb_overview overview = plumb_overview_make(profile);
	struct plumb_json *json = plumb_view_json_new(out, "report");

	plumb_overview_json_run(profile, json);
	plumb_window_json(profile, json);
	plumb_windows_json(profile, json);
	plumb_json_key_text(json, "imported", overview.imported);
	plumb_json_key_text(json, "no_gpu", overview.no_gpu);
	plumb_json_key_array(json, "notes");
	for (uint32_t i = 0; i < overview.note_count; i++)
		plumb_json_text(json, overview.notes[i]);
	plumb_json_end(json);
	plumb_overview_json_parts(profile, json);
	plumb_json_key(json, "overlap");
	plumb_report_json_overlap(profile, json);
	plumb_json_key(json, "findings");
	plumb_findings_json(profile, 0, json);
	plumb_json_key(json, "ledger");
	plumb_ledger_json(profile, json);
	plumb_json_end(json);
	return plumb_json_finish(json) < 0
	               ? plumb_fail(error, PLUMB_ESYSTEM, "the overview cannot be written")
	               : 0;
}
