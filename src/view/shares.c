/* SPDX-License-Identifier: Apache-2.0 */
/* The host's times are added up over the threads of a process, to no more than the whole: while one
 * of them works for another, as in a backward pass, the other one waits and does nothing. */
#include "view/shares.h"

#include <stdlib.h>
#include <string.h>

#include "model/metric.h"
#include "view/gpu_shares.h"
#include "view/overview.h"
#include "view/render.h"
#include "view/view.h"

struct host {
	int64_t operators;   /* op.time */
	int64_t waits;       /* host.wait */
	int64_t waits_in_op; /* the part of it that is also op.time */
	int64_t cpu, wait;   /* of the main thread, sampled */
};

struct maker {
	const struct plumb_profile *profile;
	struct plumb_answer *answer;
	int64_t whole; /* ns */
};

static void
add_row(const struct maker *m, const char *lane, int64_t pid, int64_t rank, int64_t device,
        const char *part, int64_t ns)
{
	const struct plumb_profile *p = m->profile;

	plumb_answer_text(m->answer, lane);
	plumb_answer_integer(m->answer, pid);
	plumb_answer_integer(m->answer, rank);
	plumb_answer_integer(m->answer, device);
	plumb_answer_text(m->answer, device >= 0 && device < p->devices_count
	                                     ? plumb_text(p, p->devices[device].name)
	                                     : NULL);
	plumb_answer_text(m->answer, part);
	plumb_answer_integer(m->answer, ns);
	plumb_answer_integer(m->answer, m->whole);
}

/* ---- hosts ---- */

static bool
is_time(uint32_t kind)
{
	return kind == PLUMB_FRAME_OPERATOR || kind == PLUMB_FRAME_RANGE;
}

static void
add_up(int64_t *sum, int64_t ns)
{
	if (ns > 0 && __builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

/* HOSTS by process. */
static int
find_hosts(const struct plumb_profile *p, struct host *hosts)
{
	unsigned char *within = calloc(p->contexts_count + 1u, 1); /* an operator or a range */

	if (!within)
		return PLUMB_ESYSTEM;
	for (uint32_t c = 0; c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;

		within[c] =
			is_time(plumb_context_frame(p, c)->kind) || (parent < c && within[parent]);
	}
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t process = v->track < p->tracks_count ? p->tracks[v->track].process
		                                              : p->processes_count;
		bool main_thread;

		if (process >= p->processes_count || v->context >= p->contexts_count)
			continue;
		main_thread = plumb_profile_main_of(p, v->track) == process;
		if (v->metric == PLUMB_METRIC_OP_TIME)
			add_up(&hosts[process].operators, v->sum);
		if (v->metric == PLUMB_METRIC_HOST_WAIT) {
			add_up(&hosts[process].waits, v->sum);
			add_up(&hosts[process].waits_in_op, within[v->context] ? v->sum : 0);
		}
		if (main_thread && v->metric == PLUMB_METRIC_CPU_TIME)
			add_up(&hosts[process].cpu, v->sum);
		if (main_thread && v->metric == PLUMB_METRIC_WAIT_TIME)
			add_up(&hosts[process].wait, v->sum);
	}
	free(within);
	return 0;
}

/* NS, but no more than is LEFT, from which it is taken. */
static int64_t
take(int64_t ns, int64_t *left)
{
	int64_t taken = ns < *left ? ns : *left;

	*left -= taken;
	return taken;
}

static void
add_host(const struct maker *m, uint32_t i, const struct host *host)
{
	const struct plumb_process *process = &m->profile->processes[i];
	int64_t left = m->whole, pid = process->pid, rank = process->rank, none = PLUMB_UNKNOWN;

	if (host->operators > 0 && !plumb_profile_is_lean(m->profile)) {
		int64_t waits = take(host->waits, &left);
		int64_t works = host->operators > host->waits_in_op
		                        ? host->operators - host->waits_in_op
		                        : 0;

		add_row(m, "host", pid, rank, none, "operators and ranges", take(works, &left));
		add_row(m, "host", pid, rank, none, "waits for the GPU", waits);
		add_row(m, "host", pid, rank, none, "other code", left);
	} else if (host->cpu > 0 || host->wait > 0) {
		add_row(m, "host", pid, rank, none, "computes", take(host->cpu, &left));
		add_row(m, "host", pid, rank, none, "waits", take(host->wait, &left));
		add_row(m, "host", pid, rank, none, "nothing recorded", left);
	}
}

static int
add_hosts(const struct maker *m)
{
	const struct plumb_profile *p = m->profile;
	struct host *hosts = calloc(p->processes_count + 1u, sizeof *hosts);
	int code = hosts ? find_hosts(p, hosts) : PLUMB_ESYSTEM;

	for (uint32_t i = 0; !code && i < p->processes_count; i++)
		add_host(m, i, &hosts[i]);
	free(hosts);
	return code;
}

/* ---- GPUs ---- */

/* All that one process did on a device, from its work piece by piece. */
static void
add_work(const struct maker *m, const struct plumb_gpu_share *share)
{
	const struct plumb_rank_sums *s = &share->sums;
	const struct plumb_profile *p = m->profile;
	int64_t pid = p->processes[share->process].pid;
	int64_t left = m->whole, waiting = s->waiting_ns > 0 ? s->waiting_ns : 0;
	int64_t talks = s->collectives_ns - s->hidden_ns - waiting;

	add_row(m, "gpu", pid, share->rank, share->device, "computes", take(s->compute_ns, &left));
	add_row(m, "gpu", pid, share->rank, share->device, "communication",
	        take(talks > 0 ? talks : 0, &left));
	add_row(m, "gpu", pid, share->rank, share->device, "waits for other ranks",
	        take(waiting, &left));
	add_row(m, "gpu", pid, share->rank, share->device, "copies", take(s->copies_ns, &left));
	add_row(m, "gpu", pid, share->rank, share->device, "idle", left);
}

/* What is known if the work is not, or only the newest is: how long the device was busy. */
static void
add_busy(const struct maker *m, int64_t pid, int64_t rank, uint32_t device, int64_t busy)
{
	int64_t left = m->whole;

	if (busy == PLUMB_UNKNOWN)
		return;
	add_row(m, "gpu", pid, rank, device, "busy", take(busy, &left));
	add_row(m, "gpu", pid, rank, device, "idle", left);
}

/* The device's processes whose work is not known piece by piece, or the device as a whole. */
static void
add_device(const struct maker *m, uint32_t d, const unsigned char *done)
{
	const struct plumb_profile *p = m->profile;
	bool any = false;

	for (uint32_t i = 0; i < p->device_processes_count; i++) {
		const struct plumb_device_process *row = &p->device_processes[i];
		const struct plumb_process *process =
			row->process < p->processes_count ? &p->processes[row->process] : NULL;

		if (row->device != d || !process)
			continue;
		any = true;
		if (!done[row->process])
			add_busy(m, process->pid, process->rank, d, row->busy_ns);
	}
	for (uint32_t i = 0; i < p->processes_count; i++)
		any |= done[i];
	if (!any)
		add_busy(m, PLUMB_UNKNOWN, p->devices[d].rank, d, p->devices[d].busy_ns);
}

static int
add_gpus(const struct maker *m)
{
	const struct plumb_profile *p = m->profile;
	struct plumb_gpu_shares shares;
	bool found = plumb_gpu_shares_find(p, &shares);
	unsigned char *done = calloc(p->processes_count + 1u, 1);

	for (uint32_t d = 0; found && done && d < p->devices_count; d++) {
		memset(done, 0, p->processes_count);
		for (uint32_t i = 0; i < shares.count; i++) {
			const struct plumb_gpu_share *share = &shares.items[i];

			if (share->device != d || share->sums.whole_ns <= 0 ||
			    share->process >= p->processes_count ||
			    !plumb_gpu_share_is_all(&shares, share, &p->devices[d]))
				continue;
			done[share->process] = 1;
			add_work(m, share);
		}
		add_device(m, d, done);
	}
	plumb_gpu_shares_free(&shares);
	found = found && done;
	free(done);
	return found ? 0 : PLUMB_ESYSTEM;
}

int
plumb_shares_answer(const struct plumb_profile *profile, struct plumb_answer *answer,
                    struct plumb_error *error)
{
	static const char *const columns[][2] = {
		{ "lane", NULL }, { "pid", NULL },  { "rank", NULL }, { "device", NULL },
		{ "name", NULL }, { "part", NULL }, { "ns", "ns" },   { "whole_ns", "ns" },
	};
	int64_t recorded = plumb_overview_recorded(profile);
	struct maker m = { profile, answer,
		           recorded == PLUMB_UNKNOWN ? profile->run.wall_ns : recorded };
	int code = 0;

	*answer = (struct plumb_answer){ .id = "shares", .title = "where the time went" };
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		plumb_answer_column(answer, columns[i][0], columns[i][1], PLUMB_SOURCE_IS_MEASURED);
	if (m.whole > 0) /* else there are no shares */
		code = add_hosts(&m);
	if (!code && m.whole > 0)
		code = add_gpus(&m);
	if (!code)
		return plumb_answer_end(answer, error);
	plumb_answer_free(answer);
	return plumb_fail_memory(error, "for the shares of the time");
}

int
plumb_view_shares(const struct plumb_profile *profile, enum plumb_view_format format, FILE *out,
                  struct plumb_error *error)
{
	struct plumb_answer answer;
	int code = plumb_shares_answer(profile, &answer, error);

	if (code)
		return code;
	code = plumb_view_answers(&answer, 1, "shares", format, out, error);
	plumb_answer_free(&answer);
	return code;
}
