/* SPDX-License-Identifier: Apache-2.0 */
#include "view/coverage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "model/metric.h"
#include "view/overview.h"
#include "view/windows.h"

/* By process. */
struct times {
	double operators, cpu, main;
};

static void
add_value(const struct plumb_profile *p, const struct plumb_value *v, struct times *times)
{
	uint32_t process =
		v->track < p->tracks_count ? p->tracks[v->track].process : p->processes_count;
	bool cpu = v->metric == PLUMB_METRIC_CPU_TIME;

	if (process >= p->processes_count || v->sum < 0)
		return;
	if (v->metric == PLUMB_METRIC_OP_TIME)
		times[process].operators += (double)v->sum;
	if (cpu)
		times[process].cpu += (double)v->sum;
	if ((cpu || v->metric == PLUMB_METRIC_WAIT_TIME) &&
	    plumb_profile_main_of(p, v->track) == process)
		times[process].main += (double)v->sum;
}

/* Takes the process that computed most, because a launcher only waits. */
static void
choose_process(const struct plumb_profile *p, const struct times *times,
               struct plumb_coverage *coverage)
{
	double most = -1;

	for (uint32_t i = 0; i < p->processes_count; i++) {
		coverage->operators = fmax(coverage->operators, times[i].operators);
		coverage->cpu = fmax(coverage->cpu, times[i].cpu);
		if (times[i].main > 0 && times[i].cpu > most) {
			most = times[i].cpu;
			coverage->main = times[i].main;
			coverage->process = i;
		}
	}
}

static bool
is_imported(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);

		if (key && !strcmp(key, "import.files"))
			return true;
	}
	return false;
}

static double
part_of(double ns, int64_t whole_ns)
{
	return whole_ns > 0 ? fmin(ns / (double)whole_ns, 1) : NAN;
}

bool
plumb_coverage_find(const struct plumb_profile *p, struct plumb_coverage *coverage)
{
	struct times *times = calloc(p->processes_count + 1u, sizeof *times);
	int64_t recorded = plumb_overview_recorded(p);
	struct plumb_coverage c = { .process = PLUMB_NONE,
		                    .profile = p,
		                    .imported = is_imported(p) };
	bool unknown = false;

	if (!times)
		return false;
	c.whole_ns = recorded == PLUMB_UNKNOWN ? p->run.wall_ns : recorded;
	for (uint32_t i = 0; i < p->values_count; i++)
		add_value(p, &p->values[i], times);
	choose_process(p, times, &c);
	for (uint32_t i = 0; i < p->devices_count; i++)
		if (p->devices[i].busy_ns != PLUMB_UNKNOWN)
			c.gpu = fmax(c.gpu, (double)p->devices[i].busy_ns);
		else if (p->devices[i].kernels > 0)
			unknown = true; /* processes that share the device, in a window */
	c.sampled = c.cpu > 0 || c.main > 0 || plumb_profile_is_sampled(p);
	c.gpu = unknown && !(c.gpu > 0) ? NAN : part_of(c.gpu, c.whole_ns);
	c.operators = plumb_profile_is_lean(p) ? NAN : part_of(c.operators, c.whole_ns);
	c.cpu = part_of(c.cpu, c.whole_ns);
	c.main = part_of(c.main, c.whole_ns);
	free(times);
	*coverage = c;
	return true;
}

/* The part that METRIC covers. NAN: plumb does not know it of this metric. */
static double
covered_part(const struct plumb_coverage *c, uint32_t metric)
{
	return metric == PLUMB_METRIC_GPU_TIME   ? c->gpu
	       : metric == PLUMB_METRIC_OP_TIME  ? c->operators
	       : metric == PLUMB_METRIC_CPU_TIME ? c->cpu
	                                         : NAN;
}

uint32_t
plumb_coverage_choose(const struct plumb_coverage *c, uint32_t metric, bool *main_only)
{
	double own = covered_part(c, metric);

	*main_only = false;
	if (isnan(own) || own >= PLUMB_COVERS_MOST)
		return metric;
	if (c->cpu < PLUMB_COVERS_MOST && c->main > c->cpu && c->main > own) {
		*main_only = true;
		return PLUMB_METRIC_CPU_TIME;
	}
	return c->cpu > own ? PLUMB_METRIC_CPU_TIME : metric;
}

/* Writes what covers more of the time, or that nothing does. */
static void
print_others(const struct plumb_coverage *c, uint32_t metric, double own, char *text, size_t size)
{
	char share[PLUMB_FORMAT_SIZE];
	double best = fmax(c->main, c->cpu);

	if (own >= PLUMB_COVERS_MOST)
		return;
	if (best > own && best >= c->operators)
		snprintf(text, size, "; the samples cover %s (--metric %s)",
		         plumb_format_share(share, best, 1),
		         c->cpu >= PLUMB_COVERS_MOST || metric == PLUMB_METRIC_CPU_TIME
		                 ? "cpu.time"
		                 : "cpu.time and wait.time");
	else if (metric == PLUMB_METRIC_GPU_TIME && c->operators >= PLUMB_COVERS_MOST)
		snprintf(text, size, "; operators and ranges cover %s (--metric op.time)",
		         plumb_format_share(share, c->operators, 1));
	if (c->sampled || c->imported || fmax(fmax(own, best), c->operators) >= PLUMB_COVERS_MOST)
		return;
	size_t used = strlen(text);
	snprintf(text + used, size - used,
	         "; for most of the time nothing was recorded (plumb run --cpu samples it)");
}

const char *
plumb_coverage_text(const struct plumb_coverage *c, uint32_t metric, char text[PLUMB_COVERAGE_SIZE])
{
	char share[PLUMB_FORMAT_SIZE], time[PLUMB_FORMAT_SIZE], words[PLUMB_WINDOW_WORDS];
	double own = covered_part(c, metric);
	size_t used;

	text[0] = '\0';
	if (isnan(own) || c->whole_ns <= 0)
		return text;
	plumb_window_words(c->profile, words);
	snprintf(text, PLUMB_COVERAGE_SIZE, "%s %s of %s's %s",
	         metric == PLUMB_METRIC_GPU_TIME  ? "the GPU was busy for"
	         : metric == PLUMB_METRIC_OP_TIME ? "operators and ranges cover"
	                                          : "samples cover",
	         plumb_format_share(share, own, 1),
	         c->imported && !c->profile->window.kind ? "the trace" : words,
	         plumb_format_time(time, c->whole_ns));
	used = strlen(text);
	print_others(c, metric, own, text + used, PLUMB_COVERAGE_SIZE - used);
	return text;
}
