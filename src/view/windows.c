/* SPDX-License-Identifier: Apache-2.0 */
#include "view/windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/iterations.h"
#include "analyze/rank_waits.h"

#define EXACT_LEAST 4  /* iterations that show a spread */
#define EXACT_NEAR 1.5 /* they must be about as long as the loop's */

/* ---- one iteration ---- */

static const struct plumb_iteration_level *
level_of(const struct plumb_iteration_track *track)
{
	return track->role == PLUMB_ROLE_MAIN && track->level_count ? &track->levels[0] : NULL;
}

/* The deviation of the iterations with known times, if these are iterations of the loop. */
static int64_t
find_spread(const struct plumb_iteration_level *level, int64_t mean_ns)
{
	double mean = 0, m2 = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];
		double time, delta;

		if (item->interval_ns == PLUMB_UNKNOWN)
			continue;
		time = (double)plumb_iteration_time(item);
		delta = time - mean;
		mean += delta / ++count;
		m2 += delta * (time - mean);
	}
	if (count < EXACT_LEAST || mean > (double)mean_ns * EXACT_NEAR ||
	    mean < (double)mean_ns / EXACT_NEAR)
		return PLUMB_UNKNOWN;
	return llround(fmin(sqrt(m2 / (count - 1)), 9e18));
}

static int64_t
part_of(int64_t ns, int64_t iterations)
{
	return ns == PLUMB_UNKNOWN || iterations <= 0 ? PLUMB_UNKNOWN
	                                              : llround((double)ns / (double)iterations);
}

/* What is known of single iterations: TRACK has some whose times are known. */
static void
add_waits(struct plumb_window_loop *loop, const struct plumb_iteration_track *track,
          const struct plumb_rank_waits *waits)
{
	const struct plumb_iteration_level *level = &track->levels[0];
	int64_t from = level->items[0].start_ns, to = level->items[level->count - 1].start_ns;

	for (uint32_t r = 0; r < waits->count; r++) {
		const struct plumb_waiting_rank *rank = &waits->ranks[r];
		struct plumb_rank_sums sums;

		if (rank->device != track->device || rank->process != track->process)
			continue;
		sums = plumb_rank_waits_sum(waits, r, from, to);
		for (uint32_t d = 0; d < loop->device_count; d++) {
			struct plumb_window_loop_device *device = &loop->devices[d];
			if (device->device != rank->device)
				continue;
			device->copy_ns = part_of(sums.copies_ns, level->count - 1);
			device->wait_ns =
				rank->all ? part_of(sums.waiting_ns, level->count - 1) : 0;
		}
	}
}

static void
add_exact(struct plumb_window_loop *loop, const struct plumb_iterations *found,
          const struct plumb_rank_waits *waits)
{
	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_level *level = level_of(&found->tracks[t]);
		int64_t spread = level ? find_spread(level, loop->mean_ns) : PLUMB_UNKNOWN;

		if (spread == PLUMB_UNKNOWN)
			continue;
		if (loop->spread_ns == PLUMB_UNKNOWN)
			loop->spread_ns = spread;
		add_waits(loop, &found->tracks[t], waits);
	}
}

static int
add_devices(struct plumb_window_loop *loop, const struct plumb_profile *window)
{
	int64_t wall = loop->sum.wall_ns, iterations = loop->sum.iterations;

	loop->devices = calloc(window->devices_count + 1u, sizeof *loop->devices);
	if (!loop->devices)
		return PLUMB_ESYSTEM;
	for (uint32_t d = 0; d < window->devices_count; d++) {
		const struct plumb_device *device = &window->devices[d];
		int64_t busy = device->busy_ns;

		if (!busy || (busy == PLUMB_UNKNOWN && device->kernels <= 0))
			continue;
		if (busy > wall)
			busy = wall;
		loop->devices[loop->device_count++] = (struct plumb_window_loop_device){
			.device = d,
			.busy_ns = part_of(busy, iterations),
			.idle_ns = busy == PLUMB_UNKNOWN ? PLUMB_UNKNOWN
			                                 : part_of(wall - busy, iterations),
			.wait_ns = PLUMB_UNKNOWN,
			.copy_ns = PLUMB_UNKNOWN,
		};
	}
	return PLUMB_OK;
}

static int
describe_loop(struct plumb_window_loop *loop, const struct plumb_profile *profile,
              const struct plumb_rank_waits *waits, bool detailed, struct plumb_error *error)
{
	const struct plumb_window_choice choice = { PLUMB_WINDOW_LOOP, loop->sum.number };
	struct plumb_iterations found = { 0 };
	struct plumb_profile window;
	int code;

	if (!detailed)
		return 0;
	code = plumb_window_profile(profile, &choice, &window, error);
	if (code < 0)
		return code;
	if (add_devices(loop, &window) < 0)
		code = plumb_fail_memory(error, "for a window");
	if (!code && loop->mean_ns != PLUMB_UNKNOWN) {
		code = plumb_iterations_find(&window, NULL, &found, error);
		if (!code)
			add_exact(loop, &found, waits);
	}
	plumb_iterations_free(&found);
	plumb_profile_free(&window);
	return code;
}

/* ---- all of them ---- */

static int
describe_startup(struct plumb_windows *w, const struct plumb_profile *profile,
                 struct plumb_error *error)
{
	const struct plumb_window_choice choice = { PLUMB_WINDOW_STARTUP, 0 };
	struct plumb_profile window;
	int code = plumb_window_profile(profile, &choice, &window, error);

	if (!code && plumb_startup_find(&window, &w->startup) < 0)
		code = plumb_fail_memory(error, "for start-up");
	for (uint32_t d = 0; d < window.devices_count; d++)
		if (window.devices[d].busy_ns > w->startup_busy_ns)
			w->startup_busy_ns = window.devices[d].busy_ns;
	plumb_profile_free(&window);
	return code;
}

static int
add_loop(struct plumb_windows *w, const struct plumb_profile *profile,
         const struct plumb_rank_waits *waits, const struct plumb_window_sum *sum,
         struct plumb_error *error)
{
	bool detailed = w->main == w->loop_count ||
	                w->loop_count + (w->main == PLUMB_NONE) < PLUMB_WINDOWS_DETAILED;
	struct plumb_window_loop *loop = &w->loops[w->loop_count++];

	loop->sum = *sum;
	loop->mean_ns = part_of(sum->wall_ns, sum->iterations);
	loop->spread_ns = PLUMB_UNKNOWN;
	plumb_window_name(profile, sum->kind, sum->number, loop->name);
	return describe_loop(loop, profile, waits, detailed, error);
}

static int
describe_all(struct plumb_windows *w, const struct plumb_profile *profile,
             const struct plumb_rank_waits *waits, struct plumb_error *error)
{
	int code = 0;

	for (uint32_t i = 0; !code && i < w->sums.count; i++) {
		const struct plumb_window_sum *sum = &w->sums.items[i];

		if (sum->kind == PLUMB_WINDOW_STARTUP) {
			w->startup_ns = sum->wall_ns;
			code = describe_startup(w, profile, error);
		} else if (sum->kind == PLUMB_WINDOW_REST) {
			w->rest_ns = sum->wall_ns;
		} else if (sum->kind == PLUMB_WINDOW_LOOP) {
			if (i == w->sums.main)
				w->main = w->loop_count;
			code = add_loop(w, profile, waits, sum, error);
		}
	}
	return code;
}

int
plumb_windows_find(const struct plumb_profile *profile, struct plumb_windows *w,
                   struct plumb_error *error)
{
	struct plumb_rank_waits waits = { 0 };
	int code;

	*w = (struct plumb_windows){ .main = PLUMB_NONE,
		                     .whole_ns = profile->run.wall_ns,
		                     .startup_ns = PLUMB_UNKNOWN,
		                     .startup_busy_ns = PLUMB_UNKNOWN,
		                     .rest_ns = PLUMB_UNKNOWN };
	if (plumb_window_sums(profile, &w->sums) < 0)
		return plumb_fail_memory(error, "for the windows");
	if (w->sums.main == PLUMB_NONE)
		return 0;
	w->loops = calloc(w->sums.count, sizeof *w->loops);
	/* Of the whole: a window begins at another moment on each rank. */
	if (!w->loops || plumb_rank_waits_find(profile, &waits) < 0)
		code = plumb_fail_memory(error, "for the windows");
	else
		code = describe_all(w, profile, &waits, error);
	plumb_rank_waits_free(&waits);
	return code;
}

void
plumb_windows_free(struct plumb_windows *w)
{
	for (uint32_t i = 0; i < w->loop_count; i++)
		free(w->loops[i].devices);
	free(w->loops);
	plumb_window_sums_free(&w->sums);
	*w = (struct plumb_windows){ .main = PLUMB_NONE };
}

/* ---- words and JSON ---- */

char *
plumb_window_words(const struct plumb_profile *profile, char text[PLUMB_WINDOW_WORDS])
{
	const struct plumb_profile_window *w = &profile->window;

	if (w->kind == PLUMB_WINDOW_STARTUP)
		snprintf(text, PLUMB_WINDOW_WORDS, "start-up");
	else if (w->kind == PLUMB_WINDOW_REST)
		snprintf(text, PLUMB_WINDOW_WORDS, "the rest of the run");
	else if (w->kind == PLUMB_WINDOW_LOOP && w->is_main)
		snprintf(text, PLUMB_WINDOW_WORDS, "the main loop");
	else if (w->kind == PLUMB_WINDOW_LOOP)
		snprintf(text, PLUMB_WINDOW_WORDS, "loop %u", w->number);
	else
		snprintf(text, PLUMB_WINDOW_WORDS, "the run");
	return text;
}

static void
write_window(struct plumb_json *json, const char *name, int64_t start, int64_t end,
             int64_t iterations)
{
	plumb_json_key_text(json, "name", name);
	plumb_json_key_quantity(json, "start_ns", start);
	plumb_json_key_quantity(json, "end_ns", end);
	plumb_json_key_quantity(json, "iterations", iterations);
}

void
plumb_window_json(const struct plumb_profile *p, struct plumb_json *json)
{
	const struct plumb_profile_window *w = &p->window;
	int64_t end;

	plumb_json_key_object(json, "window");
	if (w->kind) {
		write_window(json, w->name, w->start_ns, w->end_ns, w->iterations);
	} else {
		if (p->run.start_ns == PLUMB_UNKNOWN || p->run.wall_ns == PLUMB_UNKNOWN ||
		    __builtin_add_overflow(p->run.start_ns, p->run.wall_ns, &end))
			end = PLUMB_UNKNOWN;
		write_window(json, "all", p->run.start_ns, end, PLUMB_UNKNOWN);
	}
	plumb_json_end(json);
}

static void
write_device(struct plumb_json *json, const struct plumb_window_loop_device *device)
{
	plumb_json_object(json);
	plumb_json_key_quantity(json, "device", device->device);
	plumb_json_key_quantity(json, "busy_ns", device->busy_ns);
	plumb_json_key_quantity(json, "idle_ns", device->idle_ns);
	plumb_json_key_quantity(json, "wait_ns", device->wait_ns);
	plumb_json_key_quantity(json, "copy_ns", device->copy_ns);
	plumb_json_end(json);
}

static void
write_loop(struct plumb_json *json, const struct plumb_window_loop *loop)
{
	plumb_json_key_object(json, "iteration");
	plumb_json_key_quantity(json, "mean_ns", loop->mean_ns);
	plumb_json_key_quantity(json, "std_ns", loop->spread_ns);
	plumb_json_key_array(json, "devices");
	for (uint32_t d = 0; d < loop->device_count; d++)
		write_device(json, &loop->devices[d]);
	plumb_json_end(json);
	plumb_json_end(json);
}

static void
write_startup(struct plumb_json *json, const struct plumb_startup *startup)
{
	plumb_json_key_array(json, "parts");
	for (int k = 0; k < PLUMB_STARTUP_KINDS; k++) {
		if (startup->ns[k] <= 0)
			continue;
		plumb_json_object(json);
		plumb_json_key_text(json, "name", plumb_startup_words[k]);
		plumb_json_key_quantity(json, "ns", startup->ns[k]);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

void
plumb_windows_json(const struct plumb_profile *profile, struct plumb_json *json)
{
	struct plumb_windows w;
	char name[PLUMB_WINDOW_NAME];
	uint32_t loop = 0;
	int code = plumb_windows_find(profile, &w, NULL);

	plumb_json_key_array(json, "windows");
	for (uint32_t i = 0; !code && i < w.sums.count; i++) {
		const struct plumb_window_sum *sum = &w.sums.items[i];

		plumb_json_object(json);
		write_window(json, plumb_window_name(profile, sum->kind, sum->number, name),
		             sum->start_ns, sum->end_ns, sum->iterations);
		plumb_json_key_quantity(json, "wall_ns", sum->wall_ns);
		plumb_json_key_quantity(json, "stretches", sum->stretches);
		plumb_json_key_bool(json, "main", i == w.sums.main);
		if (sum->kind == PLUMB_WINDOW_LOOP && loop < w.loop_count)
			write_loop(json, &w.loops[loop++]);
		else if (sum->kind == PLUMB_WINDOW_STARTUP)
			write_startup(json, &w.startup);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_windows_free(&w);
}
