/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/memory.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/framework/framework.h"

#define BACKWARD (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION)

/* Where a context is, as rows tell it. */
struct place {
	uint32_t user, op;
	bool backward;
};

/* The engine's frame around a backward operator, which is the one to name. */
static bool
is_engine(const struct plumb_profile *p, uint32_t frame)
{
	const char *name = plumb_text(p, p->frames[frame].name);

	return name && plumb_framework_node(name) != name;
}

/* The place of CONTEXT, from its parent's. */
static struct place
step_into(const struct plumb_profile *p, const unsigned char *user, uint32_t context,
          struct place place)
{
	const struct plumb_context *c = &p->contexts[context];

	if (user[c->frame]) {
		place.user = c->frame;
		place.op = PLUMB_NONE;
		return place;
	}
	/* Backward work hangs under the forward operator, and is done by another one. */
	if (c->flags & BACKWARD && !place.backward) {
		place.backward = true;
		place.op = PLUMB_NONE;
	}
	if (p->frames[c->frame].kind == PLUMB_FRAME_OPERATOR &&
	    (place.op == PLUMB_NONE || is_engine(p, place.op)))
		place.op = c->frame;
	return place;
}

struct maker {
	const struct plumb_profile *profile;
	struct place *places; /* by context */
	uint32_t *memory_of;  /* by track, PLUMB_NONE none */
	PLUMB_VEC(struct plumb_memory_row) rows;
	struct plumb_map map;
};

static struct plumb_memory_row *
row_of(struct maker *maker, uint32_t memory, const struct place *place)
{
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(place->user, place->op),
	                               (uint64_t)memory << 1 | place->backward);
	struct plumb_map_cursor at;
	struct plumb_memory_row *row;

	for (uint32_t r = plumb_map_first(&maker->map, hash, &at); r != PLUMB_MAP_NONE;
	     r = plumb_map_next(&maker->map, &at)) {
		row = &maker->rows.items[r];
		if (row->memory == memory && row->user == place->user && row->op == place->op &&
		    row->backward == place->backward)
			return row;
	}
	row = plumb_vec_add(&maker->rows);
	if (!row || plumb_map_add(&maker->map, hash, maker->rows.count - 1) < 0)
		return NULL;
	*row = (struct plumb_memory_row){
		.memory = memory, .user = place->user, .op = place->op, .backward = place->backward
	};
	return row;
}

static struct plumb_stat *
stat_of(struct plumb_memory_row *row, uint32_t metric)
{
	switch (metric) {
	case PLUMB_METRIC_MEM_HELD:
		return &row->held;
	case PLUMB_METRIC_MEM_PEAK:
		return &row->peak;
	case PLUMB_METRIC_MEM_ALLOC:
		return &row->allocated;
	case PLUMB_METRIC_MEM_FREE:
		return &row->freed;
	default:
		return NULL;
	}
}

const struct plumb_stat *
plumb_memory_row_stat(const struct plumb_memory_row *row, uint32_t metric)
{
	return stat_of((struct plumb_memory_row *)row, metric);
}

int64_t
plumb_memory_row_live(const struct plumb_memory_row *row)
{
	int64_t live;

	return __builtin_sub_overflow(row->allocated.sum, row->freed.sum, &live) ? PLUMB_UNKNOWN
	                                                                         : live;
}

static bool
take_values(struct maker *maker)
{
	const struct plumb_profile *p = maker->profile;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		struct plumb_stat stat = plumb_value_stat(v);
		struct plumb_memory_row *row, any;

		if (!stat_of(&any, v->metric) || v->track >= p->tracks_count ||
		    maker->memory_of[v->track] == PLUMB_NONE)
			continue;
		row = row_of(maker, maker->memory_of[v->track], &maker->places[v->context]);
		if (!row)
			return false;
		plumb_stat_merge(stat_of(row, v->metric), &stat);
	}
	return true;
}

int
plumb_memory_rows_make(const struct plumb_profile *profile, const unsigned char *user,
                       struct plumb_memory_rows *rows)
{
	struct maker maker = {
		.profile = profile,
		.places = calloc(profile->contexts_count + 1u, sizeof *maker.places),
		.memory_of = calloc(profile->tracks_count + 1u, sizeof *maker.memory_of),
	};
	struct place outside = { PLUMB_NONE, PLUMB_NONE, false };
	bool ok = maker.places && maker.memory_of;

	*rows = (struct plumb_memory_rows){ NULL, 0 };
	for (uint32_t t = 0; ok && t < profile->tracks_count; t++)
		maker.memory_of[t] = PLUMB_NONE;
	for (uint32_t m = 0; ok && m < profile->memory_count; m++)
		maker.memory_of[profile->memory[m].track] = m;
	for (uint32_t c = 0; ok && c < profile->contexts_count; c++)
		maker.places[c] = step_into(
			profile, user, c, c ? maker.places[profile->contexts[c].parent] : outside);
	ok = ok && take_values(&maker);
	free(maker.places);
	free(maker.memory_of);
	plumb_map_free(&maker.map);
	if (!ok) {
		plumb_vec_free(&maker.rows);
		return PLUMB_ESYSTEM;
	}
	rows->items = maker.rows.items;
	rows->count = maker.rows.count;
	return 0;
}

void
plumb_memory_rows_free(struct plumb_memory_rows *rows)
{
	free(rows->items);
	*rows = (struct plumb_memory_rows){ NULL, 0 };
}
