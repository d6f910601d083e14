/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/path/rows.h"

#include <stdlib.h>

#include "analyze/path/path_private.h"
#include "base/hash.h"
#include "base/map.h"

#define UNMET 0.1 /* of what lies between spans: less was no computing worth a name */

struct tally {
	const struct plumb_path_window *window;
	const uint32_t *user_of;
	PLUMB_VEC(struct plumb_path_row) rows;
	struct plumb_map map;
};

static struct plumb_path_row
row_of(const struct tally *t, const struct plumb_path_segment *segment)
{
	const struct plumb_profile *p = t->window->path->profile;
	uint32_t context = segment->context;

	return (struct plumb_path_row){
		segment->kind,
		context == PLUMB_NONE ? PLUMB_NONE : p->contexts[context].frame,
		context == PLUMB_NONE ? PLUMB_NONE : t->user_of[context],
		segment->end_ns - segment->start_ns,
		PLUMB_NONE,
		PLUMB_NONE,
		false,
	};
}

static bool
add_row(struct tally *t, const struct plumb_path_row *row)
{
	uint64_t hash = plumb_hash_mix((uint64_t)row->frame << 32 | row->user, row->kind);
	struct plumb_map_cursor at;
	struct plumb_path_row *added;

	for (uint32_t i = plumb_map_first(&t->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&t->map, &at)) {
		struct plumb_path_row *r = &t->rows.items[i];

		if (r->frame == row->frame && r->user == row->user && r->kind == row->kind) {
			if (__builtin_add_overflow(r->ns, row->ns, &r->ns))
				r->ns = INT64_MAX; /* samples of a file may have any times */
			return true;
		}
	}
	added = plumb_vec_add(&t->rows);
	if (!added || plumb_map_add(&t->map, hash, t->rows.count - 1) < 0)
		return false;
	*added = *row;
	return true;
}

static int
longest_first(const void *x, const void *y)
{
	const struct plumb_path_row *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->frame != b->frame ? (a->frame < b->frame ? -1 : 1)
	                            : (a->user > b->user) - (a->user < b->user);
}

void
plumb_path_row_contexts(const struct plumb_profile *p, const uint32_t *user_of,
                        const struct plumb_path_row *row, unsigned char *contexts)
{
	for (uint32_t c = 0; c < p->contexts_count; c++)
		contexts[c] = p->contexts[c].frame == row->frame && user_of[c] == row->user;
}

/* What CPU samples met in SEGMENT, between two spans. */
static bool
add_samples(struct tally *sampled, const struct plumb_path_segment *segment)
{
	const struct plumb_profile *p = sampled->window->path->profile;
	uint32_t i = plumb_profile_first_sample(p, segment->track, segment->start_ns);
	uint32_t end = plumb_profile_first_sample(p, segment->track, segment->end_ns);
	bool done = true;

	for (; done && i < end; i++) {
		const struct plumb_cpu_sample *sample = &p->cpu_samples[i];
		struct plumb_path_row row = { PLUMB_PATH_HOST,
			                      p->contexts[sample->context].frame,
			                      sampled->user_of[sample->context],
			                      sample->ns < segment->end_ns - segment->start_ns
			                              ? sample->ns
			                              : segment->end_ns - segment->start_ns,
			                      PLUMB_NONE,
			                      PLUMB_NONE,
			                      false };

		done = add_row(sampled, &row);
	}
	return done;
}

/* What was computed in SEGMENT if no sample met it. */
static double
computed_unmet(const struct plumb_profile *p, const struct plumb_path_segment *segment)
{
	uint32_t next = plumb_profile_first_sample(p, segment->track, segment->start_ns);

	if (next == p->cpu_samples_count || p->cpu_samples[next].track != segment->track ||
	    p->cpu_samples[next].at_ns < segment->end_ns)
		return 0;
	return plumb_profile_sampled_within(p, next, segment->start_ns, segment->end_ns);
}

struct both {
	struct tally rows, sampled;
	double unmet; /* ns */
};

static bool
tally_segment(void *data, const struct plumb_path_segment *segment)
{
	struct both *both = data;
	struct plumb_path_row row = row_of(&both->rows, segment);

	if (row.kind == PLUMB_PATH_LAUNCH || row.kind == PLUMB_PATH_GAP ||
	    row.kind == PLUMB_PATH_UNKNOWN)
		return true;
	if (row.kind == PLUMB_PATH_HOST && row.frame == PLUMB_NONE) {
		if (!add_samples(&both->sampled, segment))
			return false;
		both->unmet += computed_unmet(both->rows.window->path->profile, segment);
	}
	return add_row(&both->rows, &row);
}

/* The row of what lies between two spans, by the most that was sampled there. */
static void
name_between(struct plumb_path_row *rows, int count, const struct both *both)
{
	const struct plumb_path_row *all = both->sampled.rows.items, *most = all;

	for (uint32_t i = 1; i < both->sampled.rows.count; i++)
		if (longest_first(&all[i], most) < 0)
			most = &all[i];
	for (int i = 0; i < count; i++)
		if (plumb_path_row_between(&rows[i])) {
			rows[i].sampled = most ? most->frame : PLUMB_NONE;
			rows[i].sampled_user = most ? most->user : PLUMB_NONE;
			rows[i].unmet = !most && both->unmet > UNMET * (double)rows[i].ns;
		}
}

int
plumb_path_rows(const struct plumb_path_window *window, const uint32_t *user_of,
                struct plumb_path_row *rows, int most)
{
	struct both both = { .rows = { .window = window, .user_of = user_of } };
	struct tally *t = &both.rows;
	int count = PLUMB_ESYSTEM;

	both.sampled = both.rows;
	if (plumb_path_walk(window, tally_segment, &both)) {
		if (t->rows.count)
			qsort(t->rows.items, t->rows.count, sizeof *t->rows.items, longest_first);
		for (count = 0; count < most && (uint32_t)count < t->rows.count; count++)
			rows[count] = t->rows.items[count];
		name_between(rows, count, &both);
	}
	plumb_vec_free(&t->rows);
	plumb_map_free(&t->map);
	plumb_vec_free(&both.sampled.rows);
	plumb_map_free(&both.sampled.map);
	return count;
}
