/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/path/rows.h"

#include <stdlib.h>

#include "analyze/path/path_private.h"
#include "base/hash.h"
#include "base/map.h"

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
	};
}

static bool
add(struct tally *t, const struct plumb_path_row *row)
{
	uint64_t hash = plumb_hash_mix((uint64_t)row->frame << 32 | row->user, row->kind);
	struct plumb_map_cursor at;
	struct plumb_path_row *added;

	for (uint32_t i = plumb_map_first(&t->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&t->map, &at)) {
		struct plumb_path_row *r = &t->rows.items[i];

		if (r->frame == row->frame && r->user == row->user && r->kind == row->kind) {
			r->ns += row->ns;
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

static bool
tally(void *data, const struct plumb_path_segment *segment)
{
	struct tally *t = data;
	struct plumb_path_row row = row_of(t, segment);

	return row.kind == PLUMB_PATH_LAUNCH || row.kind == PLUMB_PATH_GAP ||
	       row.kind == PLUMB_PATH_UNKNOWN || add(t, &row);
}

int
plumb_path_rows(const struct plumb_path_window *window, const uint32_t *user_of,
                struct plumb_path_row *rows, int most)
{
	struct tally t = { .window = window, .user_of = user_of };
	int count = PLUMB_ESYSTEM;

	if (plumb_path_walk(window, tally, &t)) {
		if (t.rows.count)
			qsort(t.rows.items, t.rows.count, sizeof *t.rows.items, longest_first);
		for (count = 0; count < most && (uint32_t)count < t.rows.count; count++)
			rows[count] = t.rows.items[count];
	}
	plumb_vec_free(&t.rows);
	plumb_map_free(&t.map);
	return count;
}
