/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/terminal.h"

#define BAR 30
#define PERIOD_NS 100000000

struct plumb_progress {
	FILE *out;
	const char *what;
	uint64_t drawn_ns;
	int percent; /* last drawn, -1 none */
};

struct plumb_progress *
plumb_progress_new(FILE *out, const char *what)
{
	const char *term = getenv("TERM");
	struct plumb_progress *progress;

	if (!plumb_terminal_is(out) || !term || !strcmp(term, "dumb"))
		return NULL;
	progress = calloc(1, sizeof *progress);
	if (!progress)
		return NULL;
	progress->out = out;
	progress->what = what;
	progress->percent = -1;
	return progress;
}

void
plumb_progress_set(void *data, double part)
{
	struct plumb_progress *progress = data;
	int percent, filled;

	if (!progress || !(part >= 0))
		return;
	percent = part >= 1 ? 100 : (int)(part * 100);
	/* A bar that is done is wiped at once, so its last state need not be drawn. */
	if (percent == progress->percent || plumb_clock_ns() - progress->drawn_ns < PERIOD_NS)
		return;
	progress->percent = percent;
	progress->drawn_ns = plumb_clock_ns();
	filled = percent * BAR / 100;
	plumb_terminal_steer(progress->out, "\r");
	fprintf(progress->out, "%s [", progress->what);
	for (int i = 0; i < BAR; i++)
		fputc(i < filled ? '#' : ' ', progress->out);
	fprintf(progress->out, "] %3d %%", percent);
	fflush(progress->out);
}

void
plumb_progress_free(struct plumb_progress *progress)
{
	if (!progress)
		return;
	if (progress->percent >= 0) {
		plumb_terminal_steer(progress->out, "\r\033[K");
	}
	free(progress);
}
