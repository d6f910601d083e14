/* SPDX-License-Identifier: Apache-2.0 */
/* Differences become rows: what is small is put together, what has one cause is one row. */
#include <math.h>

#include "analyze/steps/explain_private.h"

#define SMALL 0.02       /* of the difference: not worth a row of its own */
#define LONGER 1.15      /* all kernels together: from here on each may be told as longer */
#define MOST_KERNELS 0.6 /* of their usual time, by kernels that take longer too */

static int64_t
more_than_usual(const struct plumb_usual *usual)
{
	return usual->ns - usual->usual_ns;
}

static void
add_usual(struct plumb_usual *sum, const struct plumb_usual *one)
{
	sum->ns += one->ns;
	sum->usual_ns += one->usual_ns;
	sum->count += one->count;
	sum->usual_count += one->usual_count;
	sum->bytes = plumb_step_bytes(sum->bytes, one->bytes);
	sum->usual_bytes = plumb_step_bytes(sum->usual_bytes, one->usual_bytes);
}

static uint32_t
cause_of(const struct plumb_step_key *key)
{
	static const uint32_t causes[] = {
		[PLUMB_STEP_KERNEL] = PLUMB_CAUSE_KERNELS,
		[PLUMB_STEP_COLLECTIVE] = PLUMB_CAUSE_RANK,
		[PLUMB_STEP_COPY] = PLUMB_CAUSE_COPY,
		[PLUMB_STEP_OTHER] = PLUMB_CAUSE_CONTENTION,
		[PLUMB_STEP_IDLE] = PLUMB_CAUSE_IDLE,
		[PLUMB_STEP_HOST] = PLUMB_CAUSE_HOST,
		[PLUMB_STEP_GAP] = PLUMB_CAUSE_HOST,
		[PLUMB_STEP_SAMPLE] = PLUMB_CAUSE_HOST,
	};

	return key->sort == PLUMB_STEP_HOST && key->copies ? PLUMB_CAUSE_COPY : causes[key->sort];
}

static double
least_worth(const struct plumb_comparison *c)
{
	double difference = fabs((double)(c->told->ns - c->told->usual_ns));

	return fmax(SMALL * difference, 1000);
}

/* Do all kernels take longer, and most of them? */
static bool
all_longer(const struct plumb_comparison *c, struct plumb_usual *all)
{
	double usual = 0, longer = 0, ratio;

	*all = (struct plumb_usual){ 0 };
	for (uint32_t k = 0; k < c->keys; k++)
		if (c->moments->keys.items[k].sort == PLUMB_STEP_KERNEL)
			add_usual(all, &c->critical[k]);
	if (all->usual_ns <= 0 || all->ns < LONGER * (double)all->usual_ns)
		return false;
	ratio = (double)all->ns / (double)all->usual_ns;
	for (uint32_t k = 0; k < c->keys; k++) {
		const struct plumb_usual *one = &c->critical[k];

		if (c->moments->keys.items[k].sort != PLUMB_STEP_KERNEL || !one->usual_ns ||
		    !one->ns)
			continue;
		usual += (double)one->usual_ns;
		if ((double)one->ns >= (1 + (ratio - 1) / 3) * (double)one->usual_ns &&
		    one->count <= one->usual_count + one->usual_count / 4)
			longer += (double)one->usual_ns;
	}
	return usual > 0 && longer >= MOST_KERNELS * usual &&
	       llabs(all->count - all->usual_count) * 10 <= all->usual_count;
}

/* Of a copy's line all that copies: the driver's call and the work. */
static int
add_copies(struct plumb_comparison *c, unsigned char *done)
{
	for (uint32_t k = 0; k < c->keys; k++) {
		const struct plumb_step_key *key = &c->moments->keys.items[k];
		struct plumb_usual all = { 0 };
		struct plumb_difference *row;
		uint32_t name = k;

		if (done[k] || cause_of(key) != PLUMB_CAUSE_COPY)
			continue;
		for (uint32_t other = k; other < c->keys; other++) {
			const struct plumb_step_key *own = &c->moments->keys.items[other];

			if (cause_of(own) != PLUMB_CAUSE_COPY || own->line != key->line)
				continue;
			done[other] = 1;
			/* Spans are no copies; only these have bytes, and are counted. */
			struct plumb_usual one = c->critical[other];
			if (own->sort == PLUMB_STEP_HOST)
				one.count = one.usual_count = one.bytes = one.usual_bytes = 0;
			add_usual(&all, &one);
			if (llabs(more_than_usual(&c->critical[other])) >
			    llabs(more_than_usual(&c->critical[name])))
				name = other;
		}
		if (fabs((double)more_than_usual(&all)) < least_worth(c))
			continue;
		row = plumb_explain_row(c, PLUMB_CAUSE_COPY, name, &all);
		if (!row)
			return PLUMB_ESYSTEM;
	}
	return 0;
}

/* Everything of one cause in one row. */
static int
add_together(struct plumb_comparison *c, uint32_t cause, unsigned char *done)
{
	struct plumb_usual all = { 0 };
	struct plumb_difference *row;
	uint32_t name = PLUMB_NONE;

	for (uint32_t k = 0; k < c->keys; k++) {
		if (done[k] || cause_of(&c->moments->keys.items[k]) != cause)
			continue;
		done[k] = 1;
		add_usual(&all, &c->critical[k]);
		if (name == PLUMB_NONE || llabs(more_than_usual(&c->critical[k])) >
		                                  llabs(more_than_usual(&c->critical[name])))
			name = k;
	}
	if (name == PLUMB_NONE || fabs((double)more_than_usual(&all)) < least_worth(c))
		return 0;
	row = plumb_explain_row(c, cause, name, &all);
	return row ? 0 : PLUMB_ESYSTEM;
}

/* A row for each key that is worth it, and one for the rest. */
static int
add_each(struct plumb_comparison *c, uint32_t cause, const unsigned char *done)
{
	struct plumb_usual rest = { 0 };
	uint32_t several = 0;

	for (uint32_t k = 0; k < c->keys; k++) {
		if (done[k] || cause_of(&c->moments->keys.items[k]) != cause)
			continue;
		if (fabs((double)more_than_usual(&c->critical[k])) < least_worth(c)) {
			several += more_than_usual(&c->critical[k]) != 0;
			add_usual(&rest, &c->critical[k]);
		} else if (!plumb_explain_row(c, cause, k, &c->critical[k])) {
			return PLUMB_ESYSTEM;
		}
	}
	if (!several || fabs((double)more_than_usual(&rest)) < least_worth(c))
		return 0;
	return plumb_explain_row(c, cause, PLUMB_NONE, &rest) ? 0 : PLUMB_ESYSTEM;
}

/* What the host did more while the device worked. */
static int
add_hidden(struct plumb_comparison *c)
{
	for (uint32_t k = 0; k < c->keys; k++) {
		struct plumb_usual hidden = c->host[k];
		struct plumb_difference *row;

		hidden.ns -= c->critical[k].ns < hidden.ns ? c->critical[k].ns : hidden.ns;
		hidden.usual_ns -= c->critical[k].usual_ns < hidden.usual_ns
		                           ? c->critical[k].usual_ns
		                           : hidden.usual_ns;
		/* Of what is critical too the windows of host and device differ at their ends. */
		if (fabs((double)more_than_usual(&hidden)) < 5 * least_worth(c) ||
		    llabs(more_than_usual(&c->critical[k])) > llabs(more_than_usual(&hidden)))
			continue;
		row = plumb_explain_row(c, cause_of(&c->moments->keys.items[k]), k, &hidden);
		if (!row)
			return PLUMB_ESYSTEM;
		row->hidden = true;
	}
	return 0;
}

/* What differs most first, be it more or less: what is missing here may be there under another
 * line. */
static int
by_part(const void *x, const void *y)
{
	const struct plumb_difference *a = x, *b = y;
	int64_t first = llabs(a->ns - a->usual_ns), second = llabs(b->ns - b->usual_ns);

	if (a->hidden != b->hidden)
		return a->hidden ? 1 : -1;
	if (first != second)
		return first > second ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

static int
finish_rows(struct plumb_comparison *c)
{
	struct plumb_explained *told = c->told;

	if (told->rows.count)
		qsort(told->rows.items, told->rows.count, sizeof *told->rows.items, by_part);
	for (uint32_t i = 0; i < told->rows.count; i++) {
		told->rows.items[i].text = plumb_explain_words(c, &told->rows.items[i]);
		if (!told->rows.items[i].text)
			return PLUMB_ESYSTEM;
	}
	return 0;
}

int
plumb_explain_rows(struct plumb_comparison *c)
{
	unsigned char *done = calloc((size_t)c->keys + 1, 1);
	struct plumb_usual all;
	int code = done ? 0 : PLUMB_ESYSTEM;

	if (!code && all_longer(c, &all)) {
		for (uint32_t k = 0; k < c->keys; k++)
			done[k] = c->moments->keys.items[k].sort == PLUMB_STEP_KERNEL;
		struct plumb_difference *row =
			plumb_explain_row(c, PLUMB_CAUSE_KERNELS, PLUMB_NONE, &all);
		if (row)
			row->whole = true;
		code = row ? 0 : PLUMB_ESYSTEM;
	}
	if (!code)
		code = add_copies(c, done);
	if (!code)
		code = add_together(c, PLUMB_CAUSE_RANK, done);
	if (!code)
		code = add_together(c, PLUMB_CAUSE_CONTENTION, done);
	if (!code)
		code = add_together(c, PLUMB_CAUSE_IDLE, done);
	if (!code)
		code = add_each(c, PLUMB_CAUSE_KERNELS, done);
	if (!code)
		code = add_each(c, PLUMB_CAUSE_HOST, done);
	if (!code)
		code = add_hidden(c);
	if (!code)
		code = finish_rows(c);
	free(done);
	return code;
}
