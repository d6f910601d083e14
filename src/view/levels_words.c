/* SPDX-License-Identifier: Apache-2.0 */
/* The levels in words, the same for the terminal and for a page. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "model/metric.h"
#include "view/levels.h"

int64_t
plumb_levels_per_step(const struct plumb_profile *p, int64_t ns)
{
	int64_t steps = p->levels_count ? p->levels[0].steps : PLUMB_UNKNOWN;

	return ns == PLUMB_UNKNOWN || steps == PLUMB_UNKNOWN || steps < 1
	               ? ns
	               : llround((double)ns / (double)steps);
}

const char *
plumb_levels_unit(const struct plumb_profile *p)
{
	return p->levels_count && p->levels[0].scope == PLUMB_COST_OF_STEP ? "an iteration"
	                                                                   : "the run";
}

const char *
plumb_levels_sees(const struct plumb_level_row *row)
{
	static const char *const sees[] = { NULL,
		                            "the program alone",
		                            "modules and operators",
		                            "GPU work and call paths",
		                            "the same, every launch waits",
		                            "the same, counters of kernels" };

	if (row->level == PLUMB_LEVEL_M && row->bounds == PLUMB_LEVEL_BY_LOOP)
		return "ranges alone";
	return row->level < sizeof sees / sizeof *sees ? sees[row->level] : NULL;
}

const char *
plumb_levels_interval(char *text, int64_t low, int64_t high)
{
	char from[PLUMB_FORMAT_SIZE], to[PLUMB_FORMAT_SIZE];

	if (low == PLUMB_UNKNOWN || high == PLUMB_UNKNOWN)
		return strcpy(text, PLUMB_DASH);
	snprintf(text, PLUMB_LEVELS_INTERVAL, "%s to %s", plumb_format_time(from, low),
	         plumb_format_time(to, high));
	return text;
}

/* ---- sentences ---- */

char *
plumb_levels_program(const struct plumb_profile *p)
{
	static const char *const bounds[] = { NULL, "bounded by its launches",
		                              "bounded by its ranges", "as a whole" };
	const struct plumb_level_row *m = plumb_levels_row(p, PLUMB_LEVEL_M);
	char time[PLUMB_FORMAT_SIZE], range[PLUMB_LEVELS_INTERVAL], steps[PLUMB_FORMAT_SIZE] = "";
	char *text;

	if (!m || m->time_ns == PLUMB_UNKNOWN)
		return strdup("time without plumb unknown");
	if (m->steps != PLUMB_UNKNOWN)
		plumb_format_count(steps, m->steps);
	if (asprintf(&text, "%s %s, %s (95 %%: %s; %s%s%" PRId64 " %s, %s)",
	             plumb_format_time(time, m->time_ns), plumb_levels_unit(p),
	             m->bounds == PLUMB_LEVEL_BY_LOOP ? "with its ranges alone recorded"
	                                              : "without plumb",
	             plumb_levels_interval(range, m->low_ns, m->high_ns), steps,
	             *steps ? " iterations; " : "", m->kept, m->kept == 1 ? "run" : "runs",
	             bounds[m->bounds]) < 0)
		return NULL;
	return text;
}

const char *
plumb_levels_note(const struct plumb_profile *p)
{
	const struct plumb_level_row *m = plumb_levels_row(p, PLUMB_LEVEL_M);

	if (!m || m->time_ns == PLUMB_UNKNOWN || m->bounds != PLUMB_LEVEL_BY_RUN)
		return NULL;
	return "No iterations are known without looking at operators, so the runs are compared as "
	       "a whole, with their start. Put plumb.span around an iteration to change that.";
}

char *
plumb_levels_added(const struct plumb_profile *p, const struct plumb_level_row *row)
{
	const struct plumb_level_row *m = plumb_levels_row(p, PLUMB_LEVEL_M);
	char time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], range[PLUMB_LEVELS_INTERVAL];
	bool noise = row->added_low_ns != PLUMB_UNKNOWN && row->added_low_ns <= 0 &&
	             row->added_high_ns >= 0;
	bool known = m && m->time_ns > 0;
	char *text;

	if (row->added_ns == PLUMB_UNKNOWN)
		return strdup("what looking at them adds is unknown");
	if (known)
		plumb_format_share(share, (double)row->added_ns, (double)m->time_ns);
	if (asprintf(&text, "looking at them adds %s%s%s%s (95 %%: %s)",
	             noise ? "no more than what the runs differ by: " : "",
	             plumb_format_time(time, row->added_ns), known ? ", " : "", known ? share : "",
	             plumb_levels_interval(range, row->added_low_ns, row->added_high_ns)) < 0)
		return NULL;
	return text;
}

char *
plumb_levels_passes(const struct plumb_profile *p, const struct plumb_level_value *v)
{
	char measured[PLUMB_FORMAT_SIZE], corrected[PLUMB_FORMAT_SIZE];
	char *name = plumb_levels_name(p, v->context);
	char *other = plumb_levels_name(p, v->passed), *text = NULL;

	if (name && other &&
	    asprintf(&text, "%s (%s, corrected %s) seems to cost more than %s, and costs less",
	             name, plumb_format_time(measured, plumb_levels_per_step(p, v->measured_ns)),
	             plumb_format_time(corrected, plumb_levels_per_step(p, v->corrected_ns)),
	             other) < 0)
		text = NULL;
	free(name);
	free(other);
	return text;
}

/* ---- contexts ---- */

char *
plumb_levels_name(const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *label = plumb_frame_label(p, p->contexts[context].frame);
	const char *file = plumb_text(p, frame->file), *dot = file ? strrchr(file, '.') : NULL;
	char *name = NULL;
	int code;

	if (!context)
		code = asprintf(&name, "all call paths");
	else if (frame->kind == PLUMB_FRAME_PYTHON && frame->line)
		code = asprintf(&name, "%s  %s:%u", label, file ? plumb_path_base(file) : "?",
		                frame->line);
	else if (frame->kind == PLUMB_FRAME_MODULE && file)
		code = asprintf(&name, "%s (%s)", label, dot ? dot + 1 : file);
	else
		code = asprintf(&name, "%s", label);
	return code < 0 ? NULL : name;
}

int64_t
plumb_levels_time_of(const struct plumb_level_value *v)
{
	return v->own_ns != PLUMB_UNKNOWN && v->metric != PLUMB_METRIC_OP_TIME ? v->own_ns
	                                                                       : v->corrected_ns;
}

double
plumb_levels_whole(const struct plumb_profile *p, bool host)
{
	double most = 0, sum = 0;

	for (uint32_t i = 0; i < p->level_values_count; i++) {
		const struct plumb_level_value *v = &p->level_values[i];
		if (v->level == PLUMB_LEVEL_SERIALISED || v->corrected_ns == PLUMB_UNKNOWN ||
		    (v->metric == PLUMB_METRIC_OP_TIME) != host)
			continue;
		if (host)
			most = fmax(most, (double)v->corrected_ns);
		else
			sum += v->own_ns > 0 ? (double)v->own_ns : 0;
	}
	return host ? most : sum;
}
