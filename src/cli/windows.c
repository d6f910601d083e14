/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/windows.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/format.h"
#include "view/windows.h"

#define LABEL "  %-10s"
#define PARTS 3 /* of start-up that are named */

/* ---- start-up ---- */

/* The kind with the most time after those that are TOLD; 0: none takes a twentieth of start-up. */
static int
find_next(const struct plumb_startup *startup, const bool *told)
{
	int best = 0;

	for (int k = 1; k < PLUMB_STARTUP_KINDS; k++)
		if (!told[k] && startup->ns[k] > 0 && startup->ns[k] > startup->wall_ns / 20 &&
		    (!best || startup->ns[k] > startup->ns[best]))
			best = k;
	return best;
}

static void
print_startup(const struct plumb_profile *p, const struct plumb_windows *w, FILE *out)
{
	const struct plumb_startup *startup = &w->startup;
	bool told[PLUMB_STARTUP_KINDS] = { false };
	char text[PLUMB_FORMAT_SIZE];
	int kind, count = 0;

	fprintf(out, LABEL "%s", "start-up", plumb_format_time(text, w->startup_ns));
	fprintf(out, " of the run's %s", plumb_format_time(text, w->whole_ns));
	for (; count < PARTS && (kind = find_next(startup, told)); count++) {
		told[kind] = true;
		fprintf(out, "%s %s %s", count ? "," : ":", plumb_startup_words[kind],
		        plumb_format_time(text, startup->ns[kind]));
	}
	if (startup->before_ns > startup->wall_ns / 20)
		fprintf(out, "%s %s before the first record", count++ ? "," : ":",
		        plumb_format_time(text, startup->before_ns));
	if (!count && w->startup_busy_ns > w->startup_ns / 2)
		fprintf(out, "; a GPU works for %s of it",
		        plumb_format_time(text, w->startup_busy_ns));
	else if (!plumb_startup_is_known(startup))
		fprintf(out, "; %s %s", count ? "the rest" : "what took it",
		        plumb_profile_is_sampled(p) ? "is unknown"
		        : plumb_profile_environment(p, "import.format")
		                ? "was not recorded"
		                : "was not recorded (plumb run --cpu samples it)");
	fputc('\n', out);
}

/* ---- loops ---- */

/* "8.10 ms", or "7.90 ms to 8.10 ms"; false: unknown for one of them. */
static bool
print_range(const struct plumb_window_loop *loop, const char *before, size_t member, FILE *out)
{
	int64_t least = INT64_MAX, most = 0;
	char text[PLUMB_FORMAT_SIZE];

	for (uint32_t d = 0; d < loop->device_count; d++) {
		int64_t ns;
		memcpy(&ns, (const char *)&loop->devices[d] + member, sizeof ns);
		if (ns == PLUMB_UNKNOWN)
			return false;
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	if (!most)
		return false;
	fprintf(out, "%s %s", before, plumb_format_time(text, least));
	if (most - least > most / 100)
		fprintf(out, " to %s", plumb_format_time(text, most));
	return true;
}

/* "; in each GPU 0 is busy 48 ms, waits for the host 12 ms". What waits in a collective is busy. */
static void
print_devices(const struct plumb_profile *p, const struct plumb_window_loop *loop, FILE *out)
{
	bool several = loop->device_count > 1;
	char before[60];

	if (!loop->device_count)
		return;
	if (several)
		snprintf(before, sizeof before, "; in each %" PRIu32 " GPUs are busy",
		         loop->device_count);
	else if (p->devices[loop->devices[0].device].ordinal == PLUMB_UNKNOWN)
		snprintf(before, sizeof before, "; in each the GPU is busy");
	else
		snprintf(before, sizeof before, "; in each GPU %" PRId64 " is busy",
		         p->devices[loop->devices[0].device].ordinal);
	if (!print_range(loop, before, offsetof(struct plumb_window_loop_device, busy_ns), out))
		return;
	if (print_range(loop, " (waiting for other ranks",
	                offsetof(struct plumb_window_loop_device, wait_ns), out))
		fputc(')', out);
	if (print_range(loop, " (only copying", offsetof(struct plumb_window_loop_device, copy_ns),
	                out))
		fputc(')', out);
	print_range(loop, several ? ", wait for the host" : ", waits for the host",
	            offsetof(struct plumb_window_loop_device, idle_ns), out);
}

static void
print_loop(const struct plumb_profile *p, const struct plumb_windows *w, uint32_t number, FILE *out)
{
	const struct plumb_window_loop *loop = &w->loops[number];
	char text[PLUMB_FORMAT_SIZE], label[32];

	snprintf(label, sizeof label, "loop %" PRIu32, loop->sum.number);
	fprintf(out, LABEL, number == w->main ? "main loop" : label);
	if (number == w->main && w->loop_count > 1)
		fprintf(out, "(%s) ", label);
	fputs(plumb_format_time(text, loop->sum.wall_ns), out);
	if (loop->sum.stretches > 1)
		fprintf(out, " in %" PRIu32 " stretches", loop->sum.stretches);
	if (loop->mean_ns == PLUMB_UNKNOWN) {
		fputs(", an unknown number of iterations", out);
		return;
	}
	fprintf(out, ": %s iterations of ", plumb_format_count(text, loop->sum.iterations));
	fputs(plumb_format_time(text, loop->mean_ns), out);
	if (loop->spread_ns != PLUMB_UNKNOWN)
		fprintf(out, " (\xc2\xb1 %s)", plumb_format_time(text, loop->spread_ns));
	print_devices(p, loop, out);
}

/* The only loop beside the main one: findings may be of it. */
static void
print_hidden(const struct plumb_windows *w, FILE *out)
{
	const struct plumb_window_sum *sum = &w->loops[w->main ? 0 : 1].sum;
	char text[PLUMB_FORMAT_SIZE];

	fprintf(out, "; loop %" PRIu32 " takes %s", sum->number,
	        plumb_format_time(text, sum->wall_ns));
}

static void
print_loops(const struct plumb_profile *p, const struct plumb_windows *w, int most, FILE *out)
{
	uint32_t room = (uint32_t)most - 1; /* beside the main loop */
	uint32_t hidden = w->loop_count - 1 > room ? w->loop_count - 1 - room : 0;

	for (uint32_t i = 0; i < w->loop_count; i++) {
		if (i != w->main && !room)
			continue;
		room -= i != w->main;
		print_loop(p, w, i, out);
		if (i == w->main && hidden == 1)
			print_hidden(w, out);
		else if (i == w->main && hidden)
			fprintf(out, "; %" PRIu32 " more loops (plumb iters)", hidden);
		fputc('\n', out);
	}
}

void
plumb_windows_print(const struct plumb_profile *profile, int most, FILE *out)
{
	struct plumb_windows w;
	struct plumb_error error;
	char text[PLUMB_FORMAT_SIZE];

	if (plumb_windows_find(profile, &w, &error) < 0) {
		fprintf(out, LABEL "%s\n", "loops", error.message);
	} else if (w.main != PLUMB_NONE) {
		if (w.startup_ns != PLUMB_UNKNOWN)
			print_startup(profile, &w, out);
		print_loops(profile, &w, most, out);
		if (most > 1 && w.rest_ns != PLUMB_UNKNOWN && w.rest_ns > 0)
			fprintf(out, LABEL "%s\n", "rest", plumb_format_time(text, w.rest_ns));
	}
	plumb_windows_free(&w);
}

void
plumb_windows_print_choice(const struct plumb_profile *profile, FILE *out)
{
	char words[PLUMB_WINDOW_WORDS];

	if (profile->window.kind)
		fprintf(out, "\nof %s only (plumb report --window all: of the whole run)\n",
		        plumb_window_words(profile, words));
}

void
plumb_windows_print_tables(const struct plumb_profile *profile, FILE *out)
{
	char words[PLUMB_WINDOW_WORDS];

	if (profile->window.kind)
		fprintf(out, LABEL "of %s only (plumb report --window all: of the whole run)\n",
		        "tables", plumb_window_words(profile, words));
}

void
plumb_windows_print_only(const struct plumb_profile *profile, FILE *out)
{
	char words[PLUMB_WINDOW_WORDS];

	if (profile->window.kind)
		fprintf(out, "of %s only\n", plumb_window_words(profile, words));
}
