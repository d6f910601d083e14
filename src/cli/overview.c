/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overview.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/counter_series.h"
#include "analyze/overlap.h"
#include "base/format.h"
#include "cli/cost.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "view/gpu_shares.h"

#define LABEL "  %-10s"
#define SHARERS 8     /* processes of a shared device that are named */
#define RANKS_NAMED 8 /* of a list */

static void
print_run(const struct plumb_profile *p, const struct plumb_overview *overview, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	const char *command = plumb_text(p, p->run.command);

	if (overview->imported) {
		fprintf(out, LABEL, "imported");
		plumb_text_print(out, overview->imported);
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
	if (overview->recorded_ns != PLUMB_UNKNOWN)
		fprintf(out, "recorded %s of ", plumb_format_time(text, overview->recorded_ns));
	fputs(plumb_format_time(text, p->run.wall_ns), out);
	plumb_cost_print(p, "; ", out);
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

/* "computing 51 %, in collectives 49 % (waiting for other ranks 47 %), idle 0 % of 1.2 s" */
static void
print_shares(const struct plumb_gpu_share *share, bool all, FILE *out)
{
	const struct plumb_rank_sums *sums = &share->sums;
	char text[PLUMB_FORMAT_SIZE];
	double whole = (double)sums->whole_ns;

	fprintf(out, ": computing %s", plumb_format_share(text, (double)sums->compute_ns, whole));
	fprintf(out, ", in collectives %s",
	        plumb_format_share(text, (double)sums->collectives_ns, whole));
	if (sums->waiting_ns != PLUMB_UNKNOWN)
		fprintf(out, " (waiting for other ranks %s)",
		        plumb_format_share(text, (double)sums->waiting_ns, whole));
	if (sums->copies_ns)
		fprintf(out, ", copying %s",
		        plumb_format_share(text, (double)sums->copies_ns, whole));
	fprintf(out, ", idle %s", plumb_format_share(text, (double)sums->idle_ns, whole));
	fprintf(out, " of %s (%s); ", plumb_format_time(text, sums->whole_ns),
	        all ? "first to last work" : "the newest work");
}

static void
print_device(const struct plumb_profile *p, const struct plumb_device *d,
             const struct plumb_overview_device *times, const struct plumb_gpu_shares *shares,
             FILE *out)
{
	const struct plumb_gpu_share *share =
		plumb_gpu_shares_of(shares, (uint32_t)(d - p->devices));
	char text[PLUMB_FORMAT_SIZE];
	const char *name = plumb_text(p, d->name);
	int64_t span = times->span_ns;
	bool known = d->busy_ns != PLUMB_UNKNOWN && span != PLUMB_UNKNOWN;

	fprintf(out, LABEL, "device");
	plumb_text_print(out, name ? name : "unnamed");
	if (d->ordinal != PLUMB_UNKNOWN)
		fprintf(out, " #%" PRId64, d->ordinal);
	if (d->rank != PLUMB_UNKNOWN)
		fprintf(out, " (rank %" PRId64 ")", d->rank);
	if (share) {
		print_shares(share, plumb_gpu_share_is_all(shares, share, d), out);
	} else if (known) {
		fprintf(out, ": busy %s of ",
		        plumb_format_share(text, (double)d->busy_ns, (double)span));
		fprintf(out, "%s (%s); ", plumb_format_time(text, span),
		        span == times->work_ns ? "first to last work" : "recorded");
	} else {
		fputs(": busy time unknown; ", out);
	}
	print_work(d->kernels, "kernel", "kernels", d->kernel_ns, out);
	fputs(", ", out);
	print_work(d->copies, "copy", "copies", d->copy_ns, out);
	fprintf(out, " (%s)\n", plumb_format_bytes(text, d->copy_bytes));
}

/* Means of its counters over the run: "sampled  sm_active 43 %, dram_read_bytes 1.2 TB/s". */
static bool
print_counters(const struct plumb_profile *p, uint32_t device, FILE *out)
{
	struct plumb_counter_series series;
	char text[PLUMB_FORMAT_SIZE], clause[160];
	int width = plumb_terminal_width(out), column = 0;
	bool any = false;

	for (uint32_t at = 0; plumb_counter_series_next(p, &at, &series);) {
		struct plumb_counter_summary all = plumb_counter_series_summary(&series);

		if (series.device != device || !series.name)
			continue;
		snprintf(clause, sizeof clause, "%.100s %s", series.name,
		         plumb_counter_series_text(text, series.unit, all.mean));
		if (any)
			column += fprintf(out, ",");
		if (!any || column + 1 + (int)strlen(clause) >= width)
			column = fprintf(out, "%s" LABEL, any ? "\n" : "", any ? "" : "sampled") -
			         any;
		else
			column += fprintf(out, " ");
		any = true;
		plumb_text_print(out, clause);
		column += (int)strlen(clause);
	}
	if (any)
		fputc('\n', out);
	return any;
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

static void
print_balance(const struct plumb_overview_balance *b, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	double whole = (double)b->whole_ns;

	fprintf(out, "; %s %s", b->gpu ? "GPU busy" : "in operators",
	        plumb_format_share(text, (double)b->least_ns, whole));
	fprintf(out, " (rank %" PRId64 ") to ", b->least->rank);
	fprintf(out, "%s", plumb_format_share(text, (double)b->most_ns, whole));
	fprintf(out, " (rank %" PRId64 ") of the time; the busiest is %s above the mean",
	        b->most->rank,
	        plumb_format_share(text, (double)b->most_ns - b->mean_ns, b->mean_ns));
}

/* "computing 50.8 % (rank 0) to 53.8 % (rank 1)": the shares PART of all ranks. */
static void
print_range(const struct plumb_gpu_shares *shares, const char *what, size_t part, FILE *out)
{
	const struct plumb_gpu_share *least = NULL, *most = NULL;
	double lowest = 0, highest = 0;
	char text[PLUMB_FORMAT_SIZE];

	for (uint32_t i = 0; i < shares->count; i++) {
		const struct plumb_gpu_share *s = &shares->items[i];
		int64_t ns = *(const int64_t *)((const char *)&s->sums + part);
		double share = (double)ns / (double)s->sums.whole_ns;

		if (ns == PLUMB_UNKNOWN)
			return;
		if (!least || share < lowest)
			least = s, lowest = share;
		if (!most || share > highest)
			most = s, highest = share;
	}
	fprintf(out, "%s %s", what, plumb_format_share(text, lowest, 1));
	fprintf(out, " (rank %" PRId64 ") to ", least->rank);
	fprintf(out, "%s (rank %" PRId64 ")", plumb_format_share(text, highest, 1), most->rank);
}

static void
print_ranks(const struct plumb_profile *p, const struct plumb_gpu_shares *shares, FILE *out)
{
	struct plumb_overview_balance balance;
	struct plumb_ranks ranks;

	if (!plumb_ranks_find(p, &ranks))
		return;
	if (ranks.count > 1) {
		fprintf(out, LABEL "%" PRIu32, "ranks", ranks.count);
		if (plumb_gpu_shares_are_even(shares)) {
			print_range(shares, "; their GPUs are computing",
			            offsetof(struct plumb_rank_sums, compute_ns), out);
			print_range(shares, ", waiting for other ranks",
			            offsetof(struct plumb_rank_sums, waiting_ns), out);
			fputs(" of their time", out);
		} else if (plumb_overview_balance(p, &ranks, &balance)) {
			print_balance(&balance, out);
		}
		fputc('\n', out);
	}
	plumb_ranks_free(&ranks);
}

/* "rank 0: ", "ranks 0 to 3: ", "ranks 0, 2, 5: ": those of GROUP NUMBER. */
static void
print_rank_list(const struct plumb_overlaps *overlaps, const uint32_t *group, uint32_t number,
                FILE *out)
{
	const struct plumb_overlap *last = NULL;
	uint32_t first = 0, count = 0, shown = 1;

	while (group[first] != number)
		first++;
	for (uint32_t i = first; i < overlaps->count; i++)
		if (group[i] == number) {
			last = &overlaps->items[i];
			count++;
		}
	fprintf(out, "rank%s %" PRId64, count > 1 ? "s" : "", overlaps->items[first].rank);
	if (count > 2 && last->rank - overlaps->items[first].rank == count - 1) {
		fprintf(out, " to %" PRId64, last->rank);
		shown = count;
	}
	for (uint32_t i = first + 1; shown < count && shown < RANKS_NAMED; i++)
		if (group[i] == number) {
			fprintf(out, ", %" PRId64, overlaps->items[i].rank);
			shown++;
		}
	if (shown < count)
		fprintf(out, " and %" PRIu32 " more", count - shown);
	fputs(": ", out);
}

/* "42.3 ms", or "42.3 ms (rank 1) to 96.8 ms (rank 0)" if the ranks of a group differ. */
static void
print_communication(const struct plumb_overlaps *overlaps, const uint32_t *group, uint32_t number,
                    FILE *out)
{
	const struct plumb_overlap *least = NULL, *most = NULL;
	char low[PLUMB_FORMAT_SIZE], high[PLUMB_FORMAT_SIZE];

	for (uint32_t i = 0; i < overlaps->count; i++) {
		const struct plumb_overlap *o = &overlaps->items[i];
		if (group[i] != number)
			continue;
		if (!least || o->communication_ns < least->communication_ns)
			least = o;
		if (!most || o->communication_ns > most->communication_ns)
			most = o;
	}
	plumb_format_time(low, least->communication_ns);
	plumb_format_time(high, most->communication_ns);
	if (strcmp(low, high) == 0)
		fprintf(out, "%s of communication", low);
	else
		fprintf(out, "%s (rank %" PRId64 ") to %s (rank %" PRId64 ") of communication", low,
		        least->rank, high, most->rank);
}

/* How much of its communication is hidden, as it is printed. */
static const char *
hidden_text(const struct plumb_overlap *o, char text[PLUMB_FORMAT_SIZE])
{
	return plumb_format_share(text, (double)o->hidden_ns, (double)o->communication_ns);
}

/* Numbers the ranks by what their line says: those that hide the same share have one line. */
static void
group_overlaps(const struct plumb_overlaps *overlaps, uint32_t *group)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < overlaps->count; i++) {
		const struct plumb_overlap *o = &overlaps->items[i];
		char own[PLUMB_FORMAT_SIZE], other[PLUMB_FORMAT_SIZE];
		uint32_t same = 0;
		hidden_text(o, own);
		while (same < i &&
		       (o->rank == PLUMB_UNKNOWN || overlaps->items[same].rank == PLUMB_UNKNOWN ||
		        strcmp(own, hidden_text(&overlaps->items[same], other)) != 0))
			same++;
		group[i] = same < i ? group[same] : count++;
	}
}

/* What communication costs: how much of it computation does not hide. */
static void
print_overlap(const struct plumb_profile *p, FILE *out, uint32_t most)
{
	char text[PLUMB_FORMAT_SIZE];
	struct plumb_overlaps overlaps;
	struct plumb_error error;
	uint32_t *group, shown = 0, left = 0;

	if (plumb_overlaps_find(p, &overlaps, &error))
		return;
	group = calloc(overlaps.count + 1u, sizeof *group);
	if (group)
		group_overlaps(&overlaps, group);
	for (uint32_t i = 0; group && i < overlaps.count; i++) {
		const struct plumb_overlap *o = &overlaps.items[i];
		left += group[i] >= most;
		if (group[i] != shown || shown >= most) /* it is in a line already, or in none */
			continue;
		fprintf(out, LABEL, shown ? "" : "overlap");
		if (o->rank != PLUMB_UNKNOWN)
			print_rank_list(&overlaps, group, shown, out);
		print_communication(&overlaps, group, shown++, out);
		fprintf(out, "%s, %s of it hidden behind computation\n",
		        overlaps.newest ? " (of the newest work)" : "", hidden_text(o, text));
	}
	if (left)
		fprintf(out, LABEL "and %" PRIu32 " more ranks (see plumb report --json)\n", "",
		        left);
	free(group);
	plumb_overlaps_free(&overlaps);
}

void
plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices)
{
	uint32_t most = most_devices > 0 ? (uint32_t)most_devices : 0, lines = 0, shown = 0;
	struct plumb_overview overview = plumb_overview_make(profile);

	struct plumb_gpu_shares shares;

	plumb_gpu_shares_find(profile, &shares);
	print_run(profile, &overview, out);
	print_ranks(profile, &shares, out);
	if (overview.no_gpu)
		fprintf(out, LABEL "%s\n", "GPU", overview.no_gpu);
	for (; shown < profile->devices_count && lines < most; shown++) {
		struct plumb_overview_device times = plumb_overview_device(profile, shown);

		print_device(profile, &profile->devices[shown], &times, &shares, out);
		lines++;
		lines += print_counters(profile, shown, out);
		if (times.users > 1 && lines < most) {
			print_sharing(profile, shown, times.users, out);
			lines++;
		}
	}
	if (profile->devices_count > shown)
		fprintf(out, LABEL "and %" PRIu32 " more (see plumb report --json)\n", "",
		        profile->devices_count - shown);
	plumb_gpu_shares_free(&shares);
	print_overlap(profile, out, most);
	print_memory(profile, out, most);
	for (uint32_t i = 0; i < overview.note_count; i++) {
		fprintf(out, LABEL, "note");
		plumb_text_print(out, overview.notes[i]);
		fputc('\n', out);
	}
}
