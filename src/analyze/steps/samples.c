/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/samples.h"

#include <math.h>

#include "base/search.h"

#define LONG 4 /* periods: from here on a stretch is told by its own samples */

/* Samples of one thread. */
struct range {
	const struct plumb_cpu_sample *items;
	uint32_t first, end; /* of a stretch */
	uint32_t last;       /* of the thread, not in it */
};

/* What samples say of a stretch of NS; other stretches may be like it. */
struct shares {
	struct plumb_step_rows rows; /* CPU time by key, each once */
	int64_t ns;
};

static struct range
samples_of(const struct plumb_profile *p, uint32_t thread, int64_t from, int64_t to)
{
	return (struct range){ p->cpu_samples, plumb_profile_first_sample(p, thread, from),
		               plumb_profile_first_sample(p, thread, to),
		               plumb_profile_first_sample(p, thread + 1, INT64_MIN) };
}

static uint32_t
key_of(struct plumb_moments *line, const struct plumb_cpu_sample *sample)
{
	struct plumb_step_key key = plumb_moments_key_of(line, PLUMB_STEP_SAMPLE, sample->context);

	key.copies = false;
	if (key.line == key.frame)
		key.line = line->shared->sampled_as[key.line];
	key.frame = line->shared->sampled_as[key.frame];
	if (key.line == PLUMB_NONE && line->shared->outer_of[key.context] != key.frame)
		key.before = line->shared->outer_of[key.context];
	return plumb_moments_key(line, &key);
}

static bool
add_row(struct plumb_step_rows *rows, uint32_t key, int64_t ns, uint32_t count)
{
	struct plumb_step_row *row = key == PLUMB_NONE ? NULL : plumb_vec_add(rows);

	if (row)
		*row = (struct plumb_step_row){ key, count, ns, 0 };
	return row != NULL;
}

/* A file may hold any numbers. */
static int64_t
add_times(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ---- functions ---- */

static int
by_function(const void *x, const void *y, void *data)
{
	const struct plumb_frame *frames = data;
	const struct plumb_frame *a = &frames[*(const uint32_t *)x];
	const struct plumb_frame *b = &frames[*(const uint32_t *)y];

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->file > b->file) - (a->file < b->file);
}

/* ORDER: COUNT Python frames, NS: CPU time of samples, by frame. */
static void
choose_lines(const struct plumb_profile *p, uint32_t *order, uint32_t count, const int64_t *ns,
             uint32_t *as)
{
	if (count)
		qsort_r(order, count, sizeof *order, by_function, p->frames);
	for (uint32_t i = 0, end; i < count; i = end) {
		uint32_t most = order[i];

		for (end = i; end < count && !by_function(&order[i], &order[end], p->frames); end++)
			if (ns[order[end]] > ns[most])
				most = order[end];
		for (uint32_t k = i; k < end; k++)
			as[order[k]] = most;
	}
}

static bool
find_functions(struct plumb_moments *line)
{
	const struct plumb_profile *p = line->profile;
	uint32_t *order = malloc(((size_t)p->frames_count + 1) * sizeof *order), count = 0;
	int64_t *ns = calloc((size_t)p->frames_count + 1, sizeof *ns);
	bool done;

	line->shared->sampled_as =
		malloc(((size_t)p->frames_count + 1) * sizeof *line->shared->sampled_as);
	done = order && ns && line->shared->sampled_as;
	for (uint32_t i = 0; done && i < p->cpu_samples_count; i++) {
		uint32_t frame = p->contexts[p->cpu_samples[i].context].frame;

		ns[frame] = add_times(ns[frame], p->cpu_samples[i].ns);
	}
	for (uint32_t f = 0; done && f < p->frames_count; f++) {
		line->shared->sampled_as[f] = f;
		if (p->frames[f].kind == PLUMB_FRAME_PYTHON)
			order[count++] = f;
	}
	if (done)
		choose_lines(p, order, count, ns, line->shared->sampled_as);
	free(order);
	free(ns);
	return done;
}

/* What is known of THREAD, one of the few that work for a device; NULL: memory is out. */
static struct plumb_sampled *
sampled_of(struct plumb_moments *line, uint32_t thread)
{
	struct plumb_sampled *added;

	for (uint32_t i = 0; i < line->sampled.count; i++)
		if (line->sampled.items[i].thread == thread)
			return &line->sampled.items[i];
	added = plumb_vec_add(&line->sampled);
	if (added)
		added->thread = thread;
	return added;
}

/* ---- stretches that are short ---- */

static int
by_gap(const void *x, const void *y)
{
	const struct plumb_pooled *a = x, *b = y;

	if (a->gap != b->gap)
		return a->gap < b->gap ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

static void
add_up(struct plumb_sampled *own)
{
	struct plumb_pooled *items = own->pool.items;
	uint32_t n = 0;

	if (own->pool.count)
		qsort(items, own->pool.count, sizeof *items, by_gap);
	for (uint32_t i = 0; i < own->pool.count; i++) {
		if (n && !by_gap(&items[n - 1], &items[i])) {
			items[n - 1].ns = add_times(items[n - 1].ns, items[i].ns);
			items[n - 1].all = add_times(items[n - 1].all, items[i].all);
		} else {
			items[n++] = items[i];
		}
	}
	own->pool.count = n;
}

static bool
pool_piece(struct plumb_moments *line, uint32_t thread, const struct plumb_piece *piece,
           const struct plumb_step_key *key)
{
	struct plumb_sampled *own = sampled_of(line, thread);
	struct range range = samples_of(line->profile, thread, piece->start_ns, piece->end_ns);
	uint32_t gap = plumb_moments_key(line, key);
	bool is_short = piece->end_ns - piece->start_ns < LONG * own->period;

	while (gap != PLUMB_NONE && own->lengths.count <= gap) {
		int64_t *length = plumb_vec_add(&own->lengths);

		if (!length)
			return false;
		*length = 0;
	}
	if (gap == PLUMB_NONE)
		return false;
	if (is_short)
		own->lengths.items[gap] += piece->end_ns - piece->start_ns;
	for (uint32_t i = range.first; i < range.end; i++) {
		uint32_t met = key_of(line, &range.items[i]);
		struct plumb_pooled *item = met == PLUMB_NONE ? NULL : plumb_vec_add(&own->pool);

		if (!item)
			return false;
		*item = (struct plumb_pooled){ gap, met, is_short ? range.items[i].ns : 0,
			                       range.items[i].ns };
	}
	return true;
}

static int64_t
average_time(const struct range *range)
{
	double sum = 0;

	for (uint32_t i = range->first; i < range->end; i++)
		sum += (double)range->items[i].ns;
	sum /= range->end > range->first ? range->end - range->first : 1;
	return sum < 1                                ? range->end > range->first
	       : sum < (double)PLUMB_TIME_MOST / LONG ? (int64_t)sum
	                                              : PLUMB_TIME_MOST / LONG;
}

static bool
prepare_thread(struct plumb_moments *line, uint32_t thread)
{
	struct plumb_sampled *own = sampled_of(line, thread);
	struct range all = samples_of(line->profile, thread, INT64_MIN, PLUMB_TIME_MOST);
	const struct plumb_pieces *pieces;

	if (!own || own->ready)
		return own;
	own->ready = true;
	own->period = average_time(&all);
	if (!own->period)
		return true;
	if (!line->shared->sampled_as && !find_functions(line))
		return false;
	pieces = plumb_moments_pieces(line, thread);
	for (uint32_t i = 0; pieces && i < pieces->count; i++) {
		struct plumb_step_key key;

		if (plumb_moments_gap(line, pieces, i, &key) &&
		    !pool_piece(line, thread, &pieces->items[i], &key))
			return false;
	}
	add_up(own);
	return pieces != NULL;
}

/* The first of the pool for gaps of KEY, or the pool's end. */
static uint32_t
first_of_kind(const struct plumb_sampled *own, uint32_t key)
{
	return plumb_search(i, own->pool.count, own->pool.items[i].gap < key);
}

/* All short gaps of the kind together. */
static bool
share_of_kind(struct plumb_moments *line, uint32_t thread, const struct plumb_step_key *gap,
              struct shares *shares)
{
	const struct plumb_sampled *own = sampled_of(line, thread);
	uint32_t key = plumb_moments_key(line, gap), low = first_of_kind(own, key);

	if (key == PLUMB_NONE)
		return false;
	shares->ns = key < own->lengths.count ? own->lengths.items[key] : 0;
	for (; low < own->pool.count && own->pool.items[low].gap == key; low++)
		if (!add_row(&shares->rows, own->pool.items[low].key, own->pool.items[low].ns, 0))
			return false;
	return true;
}

/* ---- stretches that are long ---- */

/* A stretch in which the thread computed for NS without any sample: as others of its kind. */
static bool
share_as_others(struct plumb_moments *line, uint32_t thread, const struct plumb_step_key *gap,
                double ns, struct shares *shares)
{
	const struct plumb_sampled *own = sampled_of(line, thread);
	uint32_t key = plumb_moments_key(line, gap), first = first_of_kind(own, key);
	double all = 0;

	for (uint32_t i = first; i < own->pool.count && own->pool.items[i].gap == key; i++)
		all += (double)own->pool.items[i].all;
	for (uint32_t i = first; all > 0 && i < own->pool.count && own->pool.items[i].gap == key;
	     i++)
		if (!add_row(&shares->rows, own->pool.items[i].key,
		             (int64_t)(ns * ((double)own->pool.items[i].all / all)), 0))
			return false;
	return key != PLUMB_NONE;
}

static bool
share_of_stretch(struct plumb_moments *line, uint32_t thread, const struct plumb_step_key *gap,
                 int64_t from, int64_t to, struct shares *shares)
{
	struct range range = samples_of(line->profile, thread, from, to);
	bool done = true;
	double tail = 0;

	shares->ns = to - from;
	for (uint32_t i = range.first; done && i < range.end; i++)
		done = add_row(&shares->rows, key_of(line, &range.items[i]),
		               llround(plumb_profile_sampled_within(line->profile, i, from, to)),
		               0);
	/* The next one tells of its end. */
	if (range.end < range.last)
		tail = plumb_profile_sampled_within(line->profile, range.end, from, to);
	if (done && range.first < range.end)
		done = add_row(&shares->rows, key_of(line, &range.items[range.end - 1]),
		               llround(tail), 0);
	else if (done && tail >= (double)sampled_of(line, thread)->period)
		done = share_as_others(line, thread, gap, tail, shares);
	plumb_step_rows_sum(&shares->rows);
	return done;
}

/* ---- filling ---- */

/* No more than the thread can have computed from FROM to TO: the sample behind it tells of what
 * came since the last one in it. */
static int64_t
most_of(const struct range *range, int64_t period, int64_t length)
{
	int64_t most = range->end < range->last ? range->items[range->end].ns : period;

	for (uint32_t i = range->first; i < range->end && most < length; i++)
		most += range->items[i].ns < length ? range->items[i].ns : length;
	return most < length ? most : length;
}

static bool
share_out(struct plumb_moments *line, const struct shares *shares, int64_t length, int64_t most,
          const struct plumb_step_key *gap, struct plumb_step_rows *rows)
{
	double all = 0, scale, part = shares->ns > 0 ? (double)length / (double)shares->ns : 0;
	int64_t left = length;

	for (uint32_t r = 0; r < shares->rows.count; r++)
		all += (double)shares->rows.items[r].ns * part;
	scale = all > (double)most ? (double)most / all : 1;
	for (uint32_t r = 0; r < shares->rows.count; r++) {
		int64_t ns = (int64_t)((double)shares->rows.items[r].ns * part * scale);

		ns = ns < left ? ns : left;
		left -= ns;
		if (ns > 0 && !add_row(rows, shares->rows.items[r].key, ns, 0))
			return false;
	}
	return !left || add_row(rows, plumb_moments_key(line, gap), left, 0);
}

bool
plumb_samples_fill(struct plumb_moments *line, uint32_t thread, const struct plumb_step_key *gap,
                   int64_t start, int64_t end, int64_t from, int64_t to,
                   struct plumb_step_rows *rows)
{
	const struct plumb_sampled *own;
	struct shares shares = { 0 };
	bool done = prepare_thread(line, thread);
	int64_t wide;

	own = done ? sampled_of(line, thread) : NULL;
	if (!done || !own->period)
		return done && add_row(rows, plumb_moments_key(line, gap), to - from, 0);
	wide = LONG * own->period;
	if (end - start < wide) {
		done = share_of_kind(line, thread, gap, &shares);
	} else if (to - from < wide) {
		int64_t begin = from - (wide - (to - from)) / 2;

		begin = begin > start ? begin : start;
		begin = begin + wide < end ? begin : end - wide;
		done = share_of_stretch(line, thread, gap, begin, begin + wide, &shares);
	} else {
		done = share_of_stretch(line, thread, gap, from, to, &shares);
	}
	struct range range = samples_of(line->profile, thread, from, to);
	int64_t most = end - start < wide ? most_of(&range, own->period, to - from) : to - from;
	done = done && share_out(line, &shares, to - from, most, gap, rows);
	for (uint32_t i = range.first; done && i < range.end; i++)
		done = add_row(rows, key_of(line, &range.items[i]), 0, 1);
	plumb_vec_free(&shares.rows);
	return done;
}

void
plumb_samples_free(struct plumb_moments *line)
{
	for (uint32_t i = 0; i < line->sampled.count; i++) {
		plumb_vec_free(&line->sampled.items[i].pool);
		plumb_vec_free(&line->sampled.items[i].lengths);
	}
	plumb_vec_free(&line->sampled);
}
