/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cost.h"

#include <inttypes.h>
#include <math.h>

#include "base/format.h"
#include "cli/table.h"
#include "view/cost.h"

#define TIMES "\xc3\x97"
#define TO "\xe2\x80\x93"

/* "1.20 ms a step of 9.40 ms", "310 ms of the run's 12.1 s" */
static void
print_times(const struct plumb_profile *p, const struct plumb_cost *c, double cost, FILE *out)
{
	char text[PLUMB_FORMAT_SIZE];
	bool step = c->scope == PLUMB_COST_OF_STEP;
	int64_t rank =
		c->process < p->processes_count ? p->processes[c->process].rank : PLUMB_UNKNOWN;

	fprintf(out, "%s ", plumb_format_time(text, llround(cost)));
	fprintf(out, step ? "a step of %s" : "of the run's %s",
	        plumb_format_time(text, c->plain_ns));
	if (rank != PLUMB_UNKNOWN)
		fprintf(out, " on rank %" PRId64, rank);
}

static void
print_measured(const struct plumb_profile *p, const struct plumb_cost *c, FILE *out)
{
	double cost = (double)c->plain_ns * (c->ratio - 1);

	/* Also if there is no interval, which may be a single pair. */
	if (c->low <= 1 || cost <= 0)
		fputs("recording costs no more than what the runs differ by", out);
	else
		fputs("recording costs ", out);
	if (!(c->low <= 1 || cost <= 0))
		print_times(p, c, cost, out);
	fprintf(out, ": %.3f" TIMES, c->ratio);
	fprintf(out, c->scope == PLUMB_COST_OF_STEP ? " (measured" : " (the whole run, measured");
	if (isfinite(c->low) && isfinite(c->high))
		fprintf(out, "; 95 %%: %.3f" TO "%.3f", c->low, c->high);
	fprintf(out, "; %" PRId64 " %s of runs)", c->pairs, c->pairs == 1 ? "pair" : "pairs");
}

void
plumb_cost_print(const struct plumb_profile *p, const char *before, FILE *out)
{
	struct plumb_cost_answer a = plumb_cost_answer(p);
	char text[PLUMB_FORMAT_SIZE];

	/* Of counted launches a note tells. */
	if ((p->window.kind || plumb_profile_is_counted(p)) && a.kind == PLUMB_COST_UNKNOWN)
		return;
	fputs(before, out);
	if (a.kind == PLUMB_COST_MEASURED) {
		print_measured(p, &a.cost, out);
	} else if (a.kind == PLUMB_COST_ESTIMATED) {
		fputs("recording costs about ", out);
		print_times(p, &a.cost, (double)(a.cost.recorded_ns - a.cost.plain_ns), out);
		fputs(a.hidden ? " (estimate; the host's part is hidden behind the GPU)"
		               : " (estimate)",
		      out);
	} else if (a.tried) {
		fputs("cost of recording unknown: ", out);
		plumb_text_print(out, a.why);
	} else {
		if (p->run.overhead_ns != PLUMB_UNKNOWN)
			fprintf(out, "plumb's own time %s; ",
			        plumb_format_time(text, p->run.overhead_ns));
		fprintf(out, "cost of recording unknown: %s (try plumb run --measure-cost)", a.why);
	}
}
