/* SPDX-License-Identifier: Apache-2.0 */
/* Each difference in words. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analyze/steps/explain_private.h"
#include "analyze/steps/words.h"
#include "base/format.h"
#include "model/collective.h"

#define TEXT 900
#define GROWN 1.5        /* times the bytes or blocks: a larger batch */
#define TIMES_LEAST 0.05 /* from here on it is worth saying how many times as long */

static char *
format_difference(const struct plumb_difference *row, char *text, size_t size)
{
	char time[PLUMB_FORMAT_SIZE];
	int64_t ns = row->ns - row->usual_ns;

	snprintf(text, size, "%s %s", plumb_format_time(time, llabs(ns)), ns < 0 ? "less" : "more");
	return text;
}

static char *
name_of(const struct plumb_comparison *c, const struct plumb_difference *row, char *text,
        size_t size)
{
	if (row->key == PLUMB_NONE)
		snprintf(text, size, "many places");
	else
		plumb_step_name(c->moments, &c->moments->keys.items[row->key], text, size);
	return text;
}

/* Bytes of all copies of the iteration against what is usual; 0 not known. */
static double
bytes_grow(const struct plumb_comparison *c)
{
	double own = 0, usual = 0;

	for (uint32_t k = 0; k < c->keys; k++) {
		const struct plumb_usual *one = &c->critical[k];

		if (c->moments->keys.items[k].sort != PLUMB_STEP_COPY)
			continue;
		if (one->bytes == PLUMB_UNKNOWN || one->usual_bytes == PLUMB_UNKNOWN)
			return 0;
		own += (double)one->bytes;
		usual += (double)one->usual_bytes;
	}
	return usual > 0 ? own / usual : 0;
}

static double
add_up_contended(const struct plumb_comparison *c)
{
	double ns = 0;

	for (uint32_t k = 0; k < c->keys; k++)
		if (c->moments->keys.items[k].sort == PLUMB_STEP_OTHER)
			ns += (double)(c->critical[k].count - c->critical[k].usual_count);
	return ns;
}

/* "each takes 2.1x as long: a larger batch (grid 4.0x, 4.0x the bytes copied)" */
static void
tell_all_longer(const struct plumb_comparison *c, const struct plumb_difference *row, char *text,
                size_t size)
{
	double grid = plumb_explain_grid(c), bytes = bytes_grow(c);
	char more[80], evidence[80] = "";

	if (grid >= GROWN && bytes >= GROWN)
		snprintf(evidence, sizeof evidence,
		         "a larger batch (grid %.1fx, %.1fx the bytes copied)", grid, bytes);
	else if (grid >= GROWN)
		snprintf(evidence, sizeof evidence, "a larger batch (grid %.1fx)", grid);
	else if (bytes >= GROWN)
		snprintf(evidence, sizeof evidence, "a larger batch (%.1fx the bytes copied)",
		         bytes);
	else if (add_up_contended(c) > 0)
		snprintf(evidence, sizeof evidence, "another process works on the device");
	else
		snprintf(evidence, sizeof evidence, "more work in each, or a slower device");
	snprintf(text, size, "kernels: %s; they take %.1fx as long: %s",
	         format_difference(row, more, sizeof more), (double)row->ns / (double)row->usual_ns,
	         evidence);
}

static void
tell_kernels(const struct plumb_comparison *c, const struct plumb_difference *row, char *text,
             size_t size)
{
	double times = (double)row->ns / (double)row->usual_ns;
	char more[80], name[500];

	format_difference(row, more, sizeof more);
	name_of(c, row, name, sizeof name);
	if (row->count > row->usual_count && row->ns > row->usual_ns)
		snprintf(text, size, "kernels: %s, %" PRId64 " inserted: %s", more,
		         row->count - row->usual_count, name);
	else if (row->count < row->usual_count && row->ns < row->usual_ns)
		snprintf(text, size, "kernels: %s, %" PRId64 " missing: %s", more,
		         row->usual_count - row->count, name);
	else if (row->usual_ns > 0 && fabs(times - 1) >= TIMES_LEAST)
		snprintf(text, size, "kernels: %s in %s, %.1fx as long", more, name, times);
	else
		snprintf(text, size, "kernels: %s in %s", more, name);
}

static void
tell_copy(const struct plumb_comparison *c, const struct plumb_difference *row, char *text,
          size_t size)
{
	char more[80], name[500], bytes[160] = "", own[PLUMB_FORMAT_SIZE], usual[PLUMB_FORMAT_SIZE];

	if (row->bytes == 0 && row->usual_bytes > 0)
		snprintf(bytes, sizeof bytes, ", without the %s that the others copy",
		         plumb_format_bytes(usual, row->usual_bytes));
	else if (row->bytes != PLUMB_UNKNOWN && row->usual_bytes != PLUMB_UNKNOWN &&
	         row->bytes != row->usual_bytes && row->usual_bytes > 0)
		snprintf(bytes, sizeof bytes, ", %.3gx the bytes (%s, usually %s)",
		         (double)row->bytes / (double)row->usual_bytes,
		         plumb_format_bytes(own, row->bytes),
		         plumb_format_bytes(usual, row->usual_bytes));
	else if (row->bytes != PLUMB_UNKNOWN && row->usual_bytes == 0 && row->bytes > 0)
		snprintf(bytes, sizeof bytes, ", %s that the others do not copy",
		         plumb_format_bytes(own, row->bytes));
	snprintf(text, size, "copy: %s%s: %s", format_difference(row, more, sizeof more), bytes,
	         name_of(c, row, name, sizeof name));
}

static void
tell_host(const struct plumb_comparison *c, const struct plumb_difference *row, char *text,
          size_t size)
{
	char more[80], name[600];

	snprintf(text, size, "host: %s in %s", format_difference(row, more, sizeof more),
	         name_of(c, row, name, sizeof name));
}

static void
tell_rank(struct plumb_comparison *c, struct plumb_difference *row, char *text, size_t size)
{
	const struct plumb_profile *p = c->moments->profile;
	uint32_t frame = c->moments->keys.items[row->key].frame;
	const char *kernel = plumb_text(p, p->frames[frame].name);
	const char *name = kernel ? plumb_collective_name(kernel) : NULL;
	char more[80], late[PLUMB_FORMAT_SIZE], *reason = NULL;
	int64_t late_ns = 0;

	format_difference(row, more, sizeof more);
	if (!name)
		name = "the collectives";
	row->rank =
		row->ns > row->usual_ns ? plumb_explain_late(c, &late_ns, &reason) : PLUMB_UNKNOWN;
	if (row->rank != PLUMB_UNKNOWN)
		snprintf(text, size, "rank %" PRId64 " came %s late to %s: %s waiting for it%s%s",
		         row->rank, plumb_format_time(late, late_ns), name, more,
		         reason ? "; there " : "", reason ? reason : "");
	else if (c->peer_count || row->ns <= row->usual_ns)
		snprintf(text, size, "collectives: %s in %s", more, name);
	else
		snprintf(text, size,
		         "collectives: %s in %s: waits for a rank that is not in the profile, or "
		         "sends more",
		         more, name);
	free(reason);
}

char *
plumb_explain_words(struct plumb_comparison *c, struct plumb_difference *row)
{
	char text[TEXT] = "", more[80];

	format_difference(row, more, sizeof more);
	switch (row->cause) {
	case PLUMB_CAUSE_HOST:
		tell_host(c, row, text, sizeof text);
		break;
	case PLUMB_CAUSE_COPY:
		tell_copy(c, row, text, sizeof text);
		break;
	case PLUMB_CAUSE_KERNELS:
		if (row->whole)
			tell_all_longer(c, row, text, sizeof text);
		else
			tell_kernels(c, row, text, sizeof text);
		break;
	case PLUMB_CAUSE_RANK:
		tell_rank(c, row, text, sizeof text);
		break;
	case PLUMB_CAUSE_CONTENTION:
		snprintf(text, sizeof text, "contention: another process had work on the device %s",
		         more);
		break;
	default:
		snprintf(text, sizeof text,
		         "idle: %s without work on the device; what the host did meanwhile is not "
		         "in the profile",
		         more);
	}
	return strdup(text);
}
