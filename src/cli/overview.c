/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overview.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/overlap.h"
#include "analyze/ranks.h"
#include "base/format.h"
#include "cli/table.h"
#include "view/overview.h"

#define LABEL "  %-10s"
#define SHARERS 8 /* processes of a shared device that are named */

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

/* How long things can have been recorded on the thread that the cost is of: at most WHOLE. */
static int64_t
recorded_on_busiest(const struct plumb_profile *p, int64_t whole)
{
	for (uint32_t i = 0; i < p->tracks_count; i++) {
		const struct plumb_track *t = &p->tracks[i];
		int64_t end = t->end_ns, length;

		if (t->overhead_ns != p->run.overhead_ns)
			continue;
		if (end == PLUMB_UNKNOWN && t->process < p->processes_count)
			end = p->processes[t->process].end_ns;
		if (end == PLUMB_UNKNOWN || t->start_ns == PLUMB_UNKNOWN ||
		    __builtin_sub_overflow(end, t->start_ns, &length) || length <= 0)
			return whole;
		return whole > 0 && whole < length ? whole : length;
	}
	return whole;
}

/* An estimate: what callbacks take is measured, what they do to caches and to the GPU is not. */
static void
print_cost(const struct plumb_profile *p, int64_t whole, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];

	if (p->run.overhead_ns == PLUMB_UNKNOWN) {
		fputs("plumb's own cost: unknown", out);
		return;
	}
	fprintf(out, "plumb's own cost: about %s", plumb_format_time(text, p->run.overhead_ns));
	whole = recorded_on_busiest(p, whole);
	if (whole > 0)
		fprintf(out, ", %s of the time recorded",
		        plumb_format_share(text, (double)p->run.overhead_ns, (double)whole));
	fputs(" (estimate)", out);
}

static void
print_run(const struct plumb_profile *p, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	const char *command = plumb_text(p, p->run.command);
	int64_t recorded = plumb_overview_recorded(p), whole = p->run.wall_ns;

	if (imported_from(p)) {
		fprintf(out, LABEL, "imported");
		plumb_text_print(out, imported_from(p));
		fprintf(out, "\n" LABEL "%s", "wall time", plumb_format_time(text, p->run.wall_ns));
		if (p->processes_count > 1)
			fprintf(out, "; %" PRIu32 " processes", p->processes_count);
		fputc('\n', out);
		return;
	}
	fprintf(out, LABEL, "command");
	plumb_text_print(out, command ? command : PLUMB_DASH);
	if (p->run.exit_code == PLUMB_UNKNOWN)
		fputs("  (exit code unknown)\n", out);
	else
		fprintf(out, "  (exit code %" PRId64 ")\n", p->run.exit_code);
	fprintf(out, LABEL, "wall time");
	if (recorded != PLUMB_UNKNOWN) {
		fprintf(out, "recorded %s of ", plumb_format_time(text, recorded));
		whole = recorded;
	}
	fprintf(out, "%s; ", plumb_format_time(text, p->run.wall_ns));
	print_cost(p, whole, out);
	if (p->processes_count > 1)
		fprintf(out, "; %" PRIu32 " processes", p->processes_count);
	fputc('\n', out);
}

/* "5,616 kernels in 58.4 ms" */
static void
print_work(int64_t count, const char *one, const char *several, int64_t ns, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];

	fprintf(out, "%s %s in ", plumb_format_count(text, count), count == 1 ? one : several);
	fputs(plumb_format_time(text, ns), out);
}

static void
print_device(const struct plumb_profile *p, const struct plumb_device *d, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	const char *name = plumb_text(p, d->name);
	int64_t work, span;
	bool known;

	if (d->first_ns == PLUMB_UNKNOWN || d->last_ns == PLUMB_UNKNOWN ||
	    __builtin_sub_overflow(d->last_ns, d->first_ns, &work))
		work = PLUMB_UNKNOWN;
	span = plumb_overview_span(p, work);
	known = d->busy_ns != PLUMB_UNKNOWN && span != PLUMB_UNKNOWN;

	fprintf(out, LABEL, "device");
	plumb_text_print(out, name ? name : "unnamed");
	if (d->ordinal != PLUMB_UNKNOWN)
		fprintf(out, " #%" PRId64, d->ordinal);
	if (d->rank != PLUMB_UNKNOWN)
		fprintf(out, " (rank %" PRId64 ")", d->rank);
	if (known) {
		fprintf(out, ": busy %s of ",
		        plumb_format_share(text, (double)d->busy_ns, (double)span));
		fprintf(out, "%s (%s); ", plumb_format_time(text, span),
		        span == work ? "first to last work" : "recorded");
	} else {
		fputs(": busy time unknown; ", out);
	}
	print_work(d->kernels, "kernel", "kernels", d->kernel_ns, out);
	fputs(", ", out);
	print_work(d->copies, "copy", "copies", d->copy_ns, out);
	fprintf(out, " (%s)\n", plumb_format_bytes(text, d->copy_bytes));
}

/* The peak of each device's memory, on one line. */
static void
print_memory(const struct plumb_profile *p, FILE *out, uint32_t most)
{
	char text[PLUMB_FORMAT_SIZE];

	if (!p->memory_count)
		return;
	fprintf(out, LABEL "peak of tensor memory: ", "memory");
	for (uint32_t i = 0; i < p->memory_count && i < most; i++) {
		const char *name = plumb_text(p, p->tracks[p->memory[i].track].name);

		if (i)
			fputs(", ", out);
		plumb_text_print(out, name ? name : "?");
		fprintf(out, " %s", plumb_format_bytes(text, p->memory[i].peak_bytes));
	}
	if (p->memory_count > most)
		fprintf(out, " and %" PRIu32 " more", p->memory_count - most);
	fputs(" (see plumb report --by memory)\n", out);
}

/* How many processes used a device. */
static uint32_t
users_of(const struct plumb_profile *p, uint32_t device)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->device_processes_count; i++)
		count += p->device_processes[i].device == device;
	return count;
}

/* Which processes share a device, and how much they are in each other's way. */
static void
print_sharing(const struct plumb_profile *p, uint32_t device, uint32_t users, FILE *out)
{
	const struct plumb_device *d = &p->devices[device];
	char text[PLUMB_FORMAT_SIZE];
	uint32_t shown = 0;

	fprintf(out, LABEL "shared by %" PRIu32 " processes (busy for", "", users);
	for (uint32_t i = 0; i < p->device_processes_count && shown < SHARERS; i++) {
		const struct plumb_device_process *row = &p->device_processes[i];
		const struct plumb_process *process = &p->processes[row->process];
		if (row->device != device)
			continue;
		fprintf(out, "%s %s by %s %" PRId64, shown++ ? "," : "",
		        plumb_format_time(text, row->busy_ns),
		        process->rank == PLUMB_UNKNOWN ? "process" : "rank",
		        process->rank == PLUMB_UNKNOWN ? process->pid : process->rank);
	}
	fprintf(out, "%s); ", users > shown ? ", …" : "");
	if (d->contended_ns == PLUMB_UNKNOWN) {
		fputs("unknown for how long several of them had work at once\n", out);
		return;
	}
	fprintf(out, "several of them had work at once for %s",
	        plumb_format_time(text, d->contended_ns));
	if (d->busy_ns > 0)
		fprintf(out, ", %s of the busy time",
		        plumb_format_share(text, (double)d->contended_ns, (double)d->busy_ns));
	fputc('\n', out);
}

static int64_t
busy_of(const struct plumb_rank *rank, bool gpu)
{
	return gpu ? rank->gpu_busy_ns : rank->op_time_ns;
}

/* How even the ranks' work is: on their GPUs, or without GPUs in operators. */
static void
print_balance(const struct plumb_profile *p, const struct plumb_ranks *ranks, FILE *out)
{
	const struct plumb_rank *least = &ranks->items[0], *most = least;
	int64_t whole = plumb_overview_recorded(p);
	char text[PLUMB_FORMAT_SIZE];
	double sum = 0;
	bool gpu = p->devices_count > 0;

	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct plumb_rank *rank = &ranks->items[i];
		if (busy_of(rank, gpu) == PLUMB_UNKNOWN)
			return;
		least = busy_of(rank, gpu) < busy_of(least, gpu) ? rank : least;
		most = busy_of(rank, gpu) > busy_of(most, gpu) ? rank : most;
		sum += (double)busy_of(rank, gpu);
	}
	if (whole == PLUMB_UNKNOWN)
		whole = p->run.wall_ns;
	if (sum <= 0 || whole <= 0)
		return;
	fprintf(out, "; %s %s", gpu ? "GPU busy" : "in operators",
	        plumb_format_share(text, (double)busy_of(least, gpu), (double)whole));
	fprintf(out, " (rank %" PRId64 ") to ", least->rank);
	fprintf(out, "%s", plumb_format_share(text, (double)busy_of(most, gpu), (double)whole));
	fprintf(out, " (rank %" PRId64 ") of the time; the busiest is %s above the mean",
	        most->rank,
	        plumb_format_share(text, (double)busy_of(most, gpu) - sum / ranks->count,
	                           sum / ranks->count));
}

static void
print_ranks(const struct plumb_profile *p, FILE *out)
{
	struct plumb_ranks ranks;

	if (!plumb_ranks_find(p, &ranks))
		return;
	if (ranks.count > 1) {
		fprintf(out, LABEL "%" PRIu32, "ranks", ranks.count);
		print_balance(p, &ranks, out);
		fputc('\n', out);
	}
	plumb_ranks_free(&ranks);
}

/* What communication costs: how much of it computation does not hide. */
static void
print_overlap(const struct plumb_profile *p, FILE *out, uint32_t most)
{
	char text[PLUMB_FORMAT_SIZE];
	struct plumb_overlaps overlaps;
	struct plumb_error error;

	if (plumb_overlaps_find(p, &overlaps, &error))
		return;
	for (uint32_t i = 0; i < overlaps.count && i < most; i++) {
		const struct plumb_overlap *o = &overlaps.items[i];
		fprintf(out, LABEL, i ? "" : "overlap");
		if (o->rank != PLUMB_UNKNOWN)
			fprintf(out, "rank %" PRId64 ": ", o->rank);
		fprintf(out, "%s of communication%s", plumb_format_time(text, o->communication_ns),
		        overlaps.newest ? " (of the newest work)" : "");
		fprintf(out, ", %s of it hidden behind computation\n",
		        plumb_format_share(text, (double)o->hidden_ns,
		                           (double)o->communication_ns));
	}
	if (overlaps.count > most)
		fprintf(out, LABEL "and %" PRIu32 " more ranks (see plumb report --json)\n", "",
		        overlaps.count - most);
	plumb_overlaps_free(&overlaps);
}

/* Why there is no device. */
static const char *
no_gpu(const struct plumb_profile *p)
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

static void
print_notes(const struct plumb_profile *p, FILE *out)
{
	uint32_t printed[PLUMB_OVERVIEW_NOTES], count = 0;

	for (uint32_t i = 0; i < p->environment_count && count < PLUMB_OVERVIEW_NOTES; i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		bool said = false;

		if (!is_note(plumb_text(p, row->key)) || !plumb_text(p, row->value))
			continue;
		for (uint32_t k = 0; k < count; k++) /* by another process */
			said = said || p->environment[printed[k]].value == row->value;
		if (said)
			continue;
		printed[count++] = i;
		fprintf(out, LABEL, "note");
		plumb_text_print(out, plumb_text(p, row->value));
		fputc('\n', out);
	}
}

void
plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices)
{
	uint32_t most = most_devices > 0 ? (uint32_t)most_devices : 0, lines = 0, shown = 0;

	print_run(profile, out);
	print_ranks(profile, out);
	if (!profile->devices_count)
		fprintf(out, LABEL "%s\n", "GPU", no_gpu(profile));
	for (; shown < profile->devices_count && lines < most; shown++) {
		uint32_t users = users_of(profile, shown);

		print_device(profile, &profile->devices[shown], out);
		lines++;
		if (users > 1 && lines < most) {
			print_sharing(profile, shown, users, out);
			lines++;
		}
	}
	if (profile->devices_count > shown)
		fprintf(out, LABEL "and %" PRIu32 " more (see plumb report --json)\n", "",
		        profile->devices_count - shown);
	print_overlap(profile, out, most);
	print_memory(profile, out, most);
	print_notes(profile, out);
}
