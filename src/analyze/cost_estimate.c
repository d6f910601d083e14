/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a process are added up: PyTorch's backward pass has a thread of its own, and the main
 * thread waits for it. The step cannot become longer by more than the time in which the GPU waits
 * for the host: what the host does meanwhile is hidden.
 *
 * Hosts differ: the same code takes two to three times as long where other programs use the caches
 * and the memory. plumb's own time is measured in the run itself, so it shows how fast this host is
 * (find_slowness), and the rates of the others are taken times that.
 */
#include "analyze/cost_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/cost.h"
#include "model/metric.h"

/*
 * What others do for plumb, ns, that the collector cannot see, and what plumb itself does. All are
 * of one quiet host with an NVIDIA H200, driver 580, CUDA 13.0, CUPTI 13.0 and PyTorch 2.11, from
 * docs/performance.md; bench/cost.py compares the estimate with the measured cost.
 */
static const struct {
	double operator_ns; /* PyTorch, beyond the empty callback that the collector calibrates:
	                     * 195 ns a call in "Where the time goes", of which 53 are calibrated,
	                     * and a fifth more by the programs of "The estimate of a run" */
	double launch_ns; /* CUPTI, the driver and the libraries below, for a launch: 1.3 to 1.7 ms
	                     * of 974 launches, and a tenth more, likewise */
	double node_ns;   /* a node of a graph that is recorded as a whole: 62 us of 974 nodes */
	double record_ns; /* by how much the GPU works longer for a record: 0.46 ms of 974 nodes of
	                     * a graph that have one each */
	double own_operator_ns, own_launch_ns; /* plumb itself: 143 to 169 ns for the callbacks of
	                                        * an operator, and the rest of 1.0 ms of 3850
	                                        * operators and 974 launches */
} rates = { 170, 1650, 64, 475, 150, 430 };

/* Beyond these, plumb's own time tells something else than how slow the host is. */
#define SLOWNESS_LEAST 0.5
#define SLOWNESS_MOST 4.0

/* A thread with at least this share of the loop's events works in the loop. */
#define SHARE_OF_WORKER 0.2

/* What a process did in the loop and in the whole run, on its threads. */
struct events {
	double calls, launches, nodes; /* in the loop */
	double loop, all;              /* of any kind, on one thread */
};

static bool
is_event(uint32_t metric)
{
	return metric == PLUMB_METRIC_OP_DURATION || metric == PLUMB_METRIC_GPU_LAUNCHES ||
	       metric == PLUMB_METRIC_GPU_REPLAYS;
}

/* How many events a value tells of. */
static double
events_of(uint32_t metric, int64_t sum, uint64_t count)
{
	return metric == PLUMB_METRIC_OP_DURATION ? (double)count : (double)sum;
}

/* Which thread of PROCESS it is; PLUMB_NONE: of another process, or no thread. */
static uint32_t
thread_of(const struct plumb_profile *p, uint32_t track, uint32_t process)
{
	return track < p->tracks_count && p->tracks[track].process == process &&
	                       p->tracks[track].kind == PLUMB_TRACK_THREAD
	               ? track
	               : PLUMB_NONE;
}

/* Fills the events of each track; those of the loop in all are returned. */
static struct events
count_events(const struct plumb_profile *p, uint32_t window, struct events *tracks)
{
	uint32_t process = p->windows[window].process;
	struct events sum = { 0 };

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t track = thread_of(p, v->track, process);

		if (track != PLUMB_NONE && is_event(v->metric))
			tracks[track].all += events_of(v->metric, v->sum, v->count);
	}
	for (uint32_t i = 0; i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		uint32_t track = thread_of(p, v->track, process);
		double events = events_of(v->metric, v->sum, v->count);

		if (v->window != window)
			continue;
		if (v->metric == PLUMB_METRIC_GPU_NODES)
			sum.nodes += events;
		if (track == PLUMB_NONE || !is_event(v->metric))
			continue;
		tracks[track].loop += events;
		if (v->metric == PLUMB_METRIC_OP_DURATION)
			sum.calls += events;
		else
			sum.launches += events;
	}
	return sum;
}

/* plumb's own time in the loop: of each thread, as much as it has of the thread's events. NAN: not
 * known. */
static double
own_time(const struct plumb_profile *p, const struct events *tracks)
{
	double own = 0;

	for (uint32_t t = 0; t < p->tracks_count; t++) {
		if (tracks[t].loop <= 0)
			continue;
		if (p->tracks[t].overhead_ns == PLUMB_UNKNOWN || tracks[t].all <= 0)
			return NAN;
		own += (double)p->tracks[t].overhead_ns * fmin(tracks[t].loop / tracks[t].all, 1);
	}
	return own;
}

/* How slow the host is: plumb's own time in the loop, divided by what it is on the host of the
 * rates. NAN: not known. */
static double
find_slowness(double own_ns, const struct events *sum)
{
	double usual = sum->calls * rates.own_operator_ns + sum->launches * rates.own_launch_ns;

	if (isnan(own_ns) || usual <= 0)
		return NAN;
	return fmin(fmax(own_ns / usual, SLOWNESS_LEAST), SLOWNESS_MOST);
}

/* ---- what is not known ---- */

/* The extra cost of compiled code and of other frameworks lies outside of plumb's callbacks. */
static const char *
find_unknown(const struct plumb_profile *p)
{
	if (plumb_profile_is_counted(p))
		return "launches were counted, which costs far more than the rest";
	for (uint32_t i = 0; i < p->origins_count; i++)
		if (p->origins[i].reason == PLUMB_ORIGIN_OF_FUSED)
			return "the program is compiled";
	for (uint32_t i = 0; i < p->frames_count; i++) {
		const char *name = plumb_text(p, p->frames[i].name),
			   *file = plumb_text(p, p->frames[i].file);

		if (name && !strncmp(name, "Torch-Compiled Region", 21))
			return "the program is compiled";
		if (p->frames[i].kind != PLUMB_FRAME_PYTHON || !file)
			continue;
		if (strstr(file, "/jax/_src/"))
			return "the program uses JAX";
		if (strstr(file, "/tensorflow/python/"))
			return "the program uses TensorFlow";
	}
	return NULL;
}

/* Threads that work at the same time hide what they cost, or wait for each other. PyTorch's threads
 * for the backward pass do not: the thread that called it waits. */
static bool
has_workers(const struct plumb_profile *p, const struct events *tracks, double all)
{
	unsigned workers = 0;

	for (uint32_t t = 0; t < p->tracks_count; t++) {
		const char *name = plumb_text(p, p->tracks[t].name);

		if (tracks[t].loop >= SHARE_OF_WORKER * all &&
		    !(name && !strncmp(name, "pt_autograd_", 12)))
			workers++;
	}
	return workers > 1;
}

/* ---- the GPU ---- */

/* How long the GPU of the loop waits for the host, and its records. NAN: not known. */
struct gpu {
	double idle_ns, records;
	bool is_used;
};

static struct gpu
find_gpu(const struct plumb_profile *p, uint32_t window, double wall)
{
	struct gpu gpu = { .idle_ns = wall };

	for (uint32_t i = 0; i < p->window_devices_count; i++) {
		const struct plumb_window_device *d = &p->window_devices[i];

		if (d->window != window || d->kernels <= 0)
			continue;
		gpu.is_used = true;
		gpu.records = fmax(gpu.records, (double)d->kernels);
		gpu.idle_ns = d->busy_ns == PLUMB_UNKNOWN
		                      ? NAN
		                      : fmin(gpu.idle_ns, fmax(wall - (double)d->busy_ns, 0));
	}
	return gpu;
}

/* ---- the estimate ---- */

static void
estimate_loop(const struct plumb_profile *p, const struct plumb_cost_loop *loop,
              struct events *tracks, struct plumb_cost_estimate *e)
{
	double steps = (double)p->windows[loop->window].iterations, host;
	struct events sum = count_events(p, loop->window, tracks);
	struct gpu gpu = find_gpu(p, loop->window, loop->step_ns * steps);
	double own = own_time(p, tracks), slowness = find_slowness(own, &sum);

	e->process = loop->process;
	e->steps = p->windows[loop->window].iterations;
	e->step_ns = loop->step_ns;
	e->own_ns = own / steps;
	e->framework_ns = slowness * sum.calls * rates.operator_ns / steps;
	e->driver_ns =
		slowness * (sum.launches * rates.launch_ns + sum.nodes * rates.node_ns) / steps;
	/* A graph that is recorded as a whole has one record for all its nodes. */
	e->gpu_ns = fmax(gpu.records - sum.nodes, 0) * rates.record_ns / steps;
	host = e->own_ns + e->framework_ns + e->driver_ns;
	if (sum.calls + sum.launches <= 0)
		e->why = "the loop has no operators and no launches";
	else if (sum.calls > 0 && !plumb_profile_environment(p, "torch.version"))
		e->why = "its operators are not PyTorch's";
	else if (has_workers(p, tracks, sum.calls + sum.launches))
		e->why = "several threads work in it at the same time";
	else if (isnan(e->own_ns))
		e->why = "plumb's own time in it is not known";
	else if (isnan(gpu.idle_ns))
		e->why = "the GPU's busy time in the loop is not known";
	if (e->why)
		return;
	e->is_hidden = gpu.is_used && host > gpu.idle_ns / steps;
	e->cost_ns = gpu.is_used ? fmax(fmin(host, gpu.idle_ns / steps), e->gpu_ns) : host;
	e->is_known = e->cost_ns < e->step_ns;
	if (!e->is_known)
		e->why = "the estimate exceeds the step";
}

int
plumb_cost_estimate_find(const struct plumb_profile *p, struct plumb_cost_estimate *e,
                         struct plumb_error *error)
{
	struct plumb_cost_loop loop;
	struct events *tracks;
	int code = plumb_cost_loop_find(p, &loop, error);

	*e = (struct plumb_cost_estimate){ .process = PLUMB_NONE };
	if (code < 0)
		return code;
	if (loop.process == PLUMB_NONE)
		e->why = p->windows_count ? "the steps of the loop are not known"
		                          : "no loop was found";
	else
		e->why = find_unknown(p);
	if (e->why)
		return 0;
	tracks = calloc(p->tracks_count + 1u, sizeof *tracks);
	if (!tracks)
		return plumb_fail_memory(error, "to estimate the cost");
	estimate_loop(p, &loop, tracks, e);
	free(tracks);
	return 0;
}
