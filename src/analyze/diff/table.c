/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all runs, put together: what each amounts to on either side, and what changed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/cells.h"
#include "analyze/diff/names.h"
#include "analyze/group.h"
#include "base/hash.h"

/* A row on both sides. */
struct pair {
	struct plumb_estimate before, after, own_before, own_after;
	const char *base; /* the name by which it may meet one of the other side, or NULL */
	uint32_t joined;  /* the key whose row has this one's numbers; its own */
	unsigned sides;   /* of all that have its base: 1 the first, 2 the second */
	char *names[2];
};

/* ---- both sides ---- */

/* Of the runs of a side: where none has the row it is unknown, and where one did not record the
 * metric; where some have not, it is 0 in these. */
static struct plumb_estimate
side_of(const struct diff_making *m, uint32_t key, bool after, bool own,
        struct plumb_estimate *room)
{
	uint32_t from = after ? m->diff->before : 0;
	uint32_t to = after ? m->diff->count : m->diff->before;
	bool any = false;

	for (uint32_t r = from; r < to; r++) {
		const struct diff_cell *cell = &m->cells[(size_t)r * m->keys.items.count + key];

		any |= cell->there;
		room[r - from] = own ? cell->own : cell->amount;
		if (!m->known[r])
			room[r - from] = plumb_estimate_unknown();
		else if (!cell->there)
			room[r - from] = (struct plumb_estimate){ 0, NAN, NAN, 0 };
	}
	return any ? plumb_estimate_runs(room, to - from) : plumb_estimate_unknown();
}

static bool
is_nothing(const struct plumb_change *c)
{
	return (isnan(c->before) || c->before == 0) && (isnan(c->after) || c->after == 0);
}

/* What two rows come to together. */
static struct plumb_estimate
add_estimates(const struct plumb_estimate *a, const struct plumb_estimate *b)
{
	struct plumb_estimate e = *a;

	if (isnan(a->value))
		return *b;
	if (isnan(b->value))
		return *a;
	e.value += b->value;
	e.error = sqrt(a->error * a->error + b->error * b->error);
	e.freedom = fmin(a->freedom, b->freedom);
	e.basis = a->basis < b->basis ? a->basis : b->basis;
	return e;
}

/* ---- rows that have other names on the other side ---- */

/* "a, b" */
static bool
add_name(char **list, const char *name)
{
	size_t bytes = *list ? strlen(*list) : 0, more = strlen(name);
	char *grown = realloc(*list, bytes + more + 3);

	if (!grown)
		return false;
	if (bytes) {
		memcpy(grown + bytes, ", ", 2);
		bytes += 2;
	}
	memcpy(grown + bytes, name, more + 1);
	*list = grown;
	return true;
}

static const char *
base_of(struct diff_keys *keys, const struct diff_key *key, uint32_t by)
{
	char text[512];
	const char *family;

	if (by == PLUMB_BY_KERNEL)
		return plumb_kernel_base(key->name, text, sizeof text) ? diff_keys_text(keys, text)
		                                                       : NULL;
	if (by != PLUMB_BY_OPERATOR && by != PLUMB_BY_COLLECTIVE)
		return NULL;
	family = plumb_operator_family(key->name);
	return family ? family
	              : diff_keys_text(keys, plumb_operator_base(key->name, text, sizeof text));
}

/* Rows that are on one side alone are put under the first one that has their base. */
static bool
gather_names(struct diff_making *m, struct pair *pairs)
{
	struct plumb_map map = { 0 };
	bool ok = true;

	for (uint32_t k = 0; ok && k < m->keys.items.count; k++) {
		struct pair *own = &pairs[k];
		struct plumb_map_cursor at;
		uint64_t hash;
		uint32_t id;

		/* On both sides, or nothing of it on its side. */
		if (isnan(own->before.value) == isnan(own->after.value) || own->before.value == 0 ||
		    own->after.value == 0)
			continue;
		own->base = base_of(&m->keys, &m->keys.items.items[k], m->diff->options.by);
		if (!own->base)
			continue;
		hash = plumb_hash_bytes(own->base, strlen(own->base));
		for (id = plumb_map_first(&map, hash, &at); id != PLUMB_MAP_NONE;
		     id = plumb_map_next(&map, &at))
			if (!strcmp(pairs[id].base, own->base))
				break;
		if (id == PLUMB_MAP_NONE) {
			ok = plumb_map_add(&map, hash, k) >= 0;
			id = k;
		}
		own->joined = id;
		pairs[id].sides |= isnan(own->after.value) ? 1 : 2;
	}
	plumb_map_free(&map);
	return ok;
}

/* Where both sides have some of a base, they are one row. */
static bool
join_names(struct diff_making *m, struct pair *pairs)
{
	if (!gather_names(m, pairs))
		return false;
	for (uint32_t k = 0; k < m->keys.items.count; k++) {
		struct pair *own = &pairs[k], *into = &pairs[own->joined];
		bool after = isnan(own->before.value);

		if (!own->base || into->sides != 3) {
			own->joined = k;
			continue;
		}
		if (!add_name(&into->names[after], m->keys.items.items[k].name))
			return false;
		if (own == into)
			continue;
		into->before = add_estimates(&into->before, &own->before);
		into->after = add_estimates(&into->after, &own->after);
	}
	return true;
}

/* ---- rows ---- */

static struct plumb_diff_row
row_of(const struct diff_key *key, const struct pair *pair)
{
	struct plumb_diff_row row = {
		.name = key->name,
		.kind = key->kind,
		.file = key->file,
		.line = key->line,
		.after_line = key->after_line ? key->after_line : key->line,
		.amount = plumb_change(&pair->before, &pair->after),
		.own = plumb_change(&pair->own_before, &pair->own_after),
		.parent = PLUMB_NONE,
		.backward = key->backward,
		.before_names = pair->names[0],
		.after_names = pair->names[1],
	};

	if (pair->base && pair->names[0])
		row.name = pair->base;
	return row;
}

/* How much a row matters: by what changed; where one side is unknown, by all of the other. */
static double
weight_of(const struct plumb_change *c)
{
	if (!isnan(c->change))
		return fabs(c->change);
	return isnan(c->before) ? isnan(c->after) ? 0 : fabs(c->after) : fabs(c->before);
}

static int
by_weight(const void *x, const void *y)
{
	const struct plumb_diff_row *a = x, *b = y;
	double left = weight_of(&a->amount), right = weight_of(&b->amount);

	if (left != right)
		return left > right ? -1 : 1;
	return strcmp(a->name, b->name);
}

double
plumb_diff_weight(const struct plumb_diff_row *row)
{
	return weight_of(&row->amount);
}

static bool
flat_rows(struct diff_making *m, struct pair *pairs)
{
	struct plumb_diff_table *table = m->table;

	for (uint32_t k = 0; k < m->keys.items.count; k++) {
		struct plumb_diff_row row = row_of(&m->keys.items.items[k], &pairs[k]);

		if (pairs[k].joined != k || is_nothing(&row.amount))
			continue;
		if (m->diff->options.by == PLUMB_BY_OPERATOR)
			row.family = plumb_operator_family(row.name);
		if (row.before_names && m->diff->options.by == PLUMB_BY_OPERATOR)
			row.family = plumb_operator_family(m->keys.items.items[k].name);
		pairs[k].names[0] = pairs[k].names[1] = NULL; /* the row's now */
		table->rows[table->count++] = row;
	}
	qsort(table->rows, table->count, sizeof *table->rows, by_weight);
	return true;
}

/* ---- call paths ---- */

struct branch {
	uint32_t key;
	uint32_t parent;
	double weight;
	const char *name;
};

static int
by_parent(const void *x, const void *y)
{
	const struct branch *a = x, *b = y;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	int names = strcmp(a->name, b->name);
	return names ? names : (a->key > b->key) - (a->key < b->key);
}

/* In preorder, of siblings the greatest change first. */
static bool
tree_rows(struct diff_making *m, struct pair *pairs)
{
	uint32_t keys = m->keys.items.count;
	struct branch *branches = calloc(keys + (size_t)1, sizeof *branches);
	uint32_t *first = calloc(keys + (size_t)2, sizeof *first); /* of a key's children */
	uint32_t *at_row = calloc(keys + (size_t)1, sizeof *at_row);
	PLUMB_VEC(uint32_t) open = { 0 };
	bool ok = branches && first && at_row;

	for (uint32_t k = 0; ok && k < keys; k++) {
		struct plumb_change c = plumb_change(&pairs[k].before, &pairs[k].after);
		const struct diff_key *key = &m->keys.items.items[k];

		/* The root's parent is numbered 0, key K is K + 1. */
		branches[k] = (struct branch){ k, key->parent == PLUMB_NONE ? 0 : key->parent + 1,
			                       weight_of(&c), key->name };
	}
	if (ok)
		qsort(branches, keys, sizeof *branches, by_parent);
	for (uint32_t i = 0, parent = 0; ok && parent < keys + 1; parent++) {
		first[parent] = i;
		while (i < keys && branches[i].parent == parent)
			i++;
		first[parent + 1] = i;
	}
	for (uint32_t i = ok ? first[1] : 0; ok && i-- > 0;) {
		uint32_t *top = plumb_vec_add(&open);
		ok = top;
		if (ok)
			*top = branches[i].key;
	}
	while (ok && open.count) {
		uint32_t k = open.items[--open.count];
		const struct diff_key *key = &m->keys.items.items[k];
		struct plumb_diff_row row = row_of(key, &pairs[k]);

		if (is_nothing(&row.amount) && is_nothing(&row.own))
			continue;
		row.parent = key->parent == PLUMB_NONE ? PLUMB_NONE : at_row[key->parent];
		at_row[k] = m->table->count;
		m->table->rows[m->table->count++] = row;
		for (uint32_t i = first[k + 2]; ok && i-- > first[k + 1];) {
			uint32_t *top = plumb_vec_add(&open);
			ok = top;
			if (ok)
				*top = branches[i].key;
		}
	}
	plumb_vec_free(&open);
	free(branches);
	free(first);
	free(at_row);
	return ok;
}

/* ---- families ---- */

static bool
find_families(struct diff_making *m, const struct pair *pairs)
{
	struct plumb_diff_table *table = m->table;
	uint32_t most = 0;

	while (plumb_operator_families[most].family)
		most++;
	table->families = calloc(most + (size_t)1, sizeof *table->families);
	struct pair *sums = calloc(most + (size_t)1, sizeof *sums);
	for (uint32_t i = 0; sums && i < most; i++)
		sums[i].before = sums[i].after = sums[i].own_before = sums[i].own_after =
			plumb_estimate_unknown();
	for (uint32_t k = 0; sums && table->families && k < m->keys.items.count; k++) {
		const char *family = plumb_operator_family(m->keys.items.items[k].name);

		/* A row that others were joined to has all of theirs, and they have their own. */
		for (uint32_t i = 0; family && i < most && pairs[k].joined == k; i++)
			if (plumb_operator_families[i].family == family) {
				sums[i].before = add_estimates(&sums[i].before, &pairs[k].before);
				sums[i].after = add_estimates(&sums[i].after, &pairs[k].after);
			}
	}
	for (uint32_t i = 0; sums && table->families && i < most; i++) {
		struct diff_key key = { .name = plumb_operator_families[i].family,
			                .kind = "family" };
		struct plumb_diff_row row = row_of(&key, &sums[i]);

		if (!is_nothing(&row.amount))
			table->families[table->family_count++] = row;
	}
	if (table->family_count)
		qsort(table->families, table->family_count, sizeof *table->families, by_weight);
	free(sums);
	return sums && table->families;
}

/* ---- all ---- */

static struct pair *
make_pairs(const struct diff_making *m)
{
	struct pair *pairs = calloc(m->keys.items.count + (size_t)1, sizeof *pairs);
	struct plumb_estimate *room = calloc(m->diff->count + (size_t)1, sizeof *room);

	for (uint32_t k = 0; pairs && room && k < m->keys.items.count; k++) {
		pairs[k].joined = k;
		pairs[k].before = side_of(m, k, false, false, room);
		pairs[k].after = side_of(m, k, true, false, room);
		pairs[k].own_before = side_of(m, k, false, true, room);
		pairs[k].own_after = side_of(m, k, true, true, room);
	}
	free(room);
	if (!room) {
		free(pairs);
		return NULL;
	}
	return pairs;
}

static bool
make_rows(struct diff_making *m)
{
	struct pair *pairs = make_pairs(m);
	uint32_t by = m->diff->options.by;
	bool ok = pairs && join_names(m, pairs);

	m->table->rows = calloc(m->keys.items.count + (size_t)1, sizeof *m->table->rows);
	ok = ok && m->table->rows;
	if (ok && by == PLUMB_BY_OPERATOR)
		ok = find_families(m, pairs);
	if (ok)
		ok = by == PLUMB_DIFF_CONTEXT ? tree_rows(m, pairs) : flat_rows(m, pairs);
	for (uint32_t k = 0; pairs && k < m->keys.items.count; k++) {
		free(pairs[k].names[0]);
		free(pairs[k].names[1]);
	}
	free(pairs);
	return ok;
}

static void
set_outside(struct diff_making *m)
{
	const struct plumb_diff *diff = m->diff;
	struct plumb_estimate before = plumb_estimate_runs(m->outside, diff->before);
	struct plumb_estimate after =
		plumb_estimate_runs(m->outside + diff->before, diff->count - diff->before);

	m->table->outside = plumb_change(&before, &after);
}

/* ---- iteration by iteration ---- */

/* The time of iteration NUMBER, counted from the first, or from the last where only the newest are
 * known. */
static struct plumb_estimate
iteration_of(const struct plumb_diff *diff, uint32_t r, uint32_t number, uint32_t most, bool newest)
{
	struct plumb_estimate e = plumb_estimate_unknown();
	uint32_t windows = diff_windows_count(diff, r);
	uint32_t missing = newest ? most - windows : 0;

	if (number >= missing && number - missing < windows)
		e.value = diff_iteration_time(&diff->runs[r].steps, number - missing, windows);
	return e;
}

static bool
iteration_rows(struct diff_making *m)
{
	const struct plumb_diff *diff = m->diff;
	struct plumb_estimate *room = calloc(diff->count, sizeof *room);
	uint32_t most = 0;
	bool newest = false;

	for (uint32_t r = 0; r < diff->count; r++) {
		uint32_t windows = diff_windows_count(diff, r);

		most = windows > most ? windows : most;
		newest |= diff->facts[r].newest;
	}
	m->keys.pool = plumb_pool_new();
	m->table->rows = calloc(most + (size_t)1, sizeof *m->table->rows);
	bool ok = room && m->keys.pool && m->table->rows;
	for (uint32_t i = 0; ok && i < most; i++) {
		char name[40];
		struct diff_key key = { .kind = "iteration" };
		struct pair pair;

		snprintf(name, sizeof name, "iteration %" PRId64,
		         newest ? (int64_t)i - (int64_t)most : (int64_t)i);
		key.name = diff_keys_text(&m->keys, name);
		ok = key.name;
		for (uint32_t r = 0; r < diff->count; r++)
			room[r] = iteration_of(diff, r, i, most, newest);
		pair = (struct pair){ .own_before = plumb_estimate_unknown(),
			              .own_after = plumb_estimate_unknown() };
		pair.before = plumb_estimate_runs(room, diff->before);
		pair.after = plumb_estimate_runs(room + diff->before, diff->count - diff->before);
		if (ok)
			m->table->rows[m->table->count++] = row_of(&key, &pair);
	}
	if (m->table->count)
		qsort(m->table->rows, m->table->count, sizeof *m->table->rows, by_weight);
	free(room);
	return ok;
}

static bool
other_rows(struct diff_making *m)
{
	const struct plumb_diff *diff = m->diff;
	uint32_t by = diff->options.by;
	int each = diff_sums_known(diff, m->metric);
	bool ok = each >= 0;

	/* The newest work alone leaves out too much to be what the rows of a recording are. */
	m->each = each && !diff->options.total && diff->from != PLUMB_STEPS_GIVEN &&
	          by != PLUMB_BY_RANK && by != PLUMB_BY_SHAPE;
	for (uint32_t r = 0; r < diff->count; r++)
		m->each = m->each && !diff->facts[r].newest;
	for (uint32_t r = 0; ok && r < diff->count; r++)
		ok = diff_rows_make(diff, r, &m->keys, &m->rows[r]);
	m->cells =
		ok ? calloc((size_t)m->keys.items.count * diff->count + 1, sizeof *m->cells) : NULL;
	ok = m->cells;
	for (uint32_t r = 0; ok && r < diff->count; r++)
		ok = !diff_cells_fill(m, r);
	m->table->each = m->each;
	ok = ok && make_rows(m) && !diff_fused_find(diff, m->metric, m->table);
	if (ok)
		set_outside(m);
	return ok;
}

int
plumb_diff_table(const struct plumb_diff *diff, const char *metric, struct plumb_diff_table *table,
                 struct plumb_error *error)
{
	struct diff_making m = { .diff = diff, .metric = metric, .table = table };
	struct plumb_estimate unknown = plumb_estimate_unknown();
	bool ok;

	*table = (struct plumb_diff_table){ 0 };
	m.rows = calloc(diff->count, sizeof *m.rows);
	m.outside = calloc(diff->count, sizeof *m.outside);
	m.known = calloc(diff->count, sizeof *m.known);
	table->outside = plumb_change(&unknown, &unknown);
	ok = m.rows && m.outside && m.known &&
	     (diff->options.by == PLUMB_DIFF_ITERATION ? iteration_rows(&m) : other_rows(&m));
	for (uint32_t r = 0; m.rows && r < diff->count; r++)
		diff_rows_free(&m.rows[r]);
	table->storage = m.keys.pool;
	plumb_vec_free(&m.keys.items);
	plumb_map_free(&m.keys.map);
	free(m.rows);
	free(m.outside);
	free(m.known);
	free(m.cells);
	return ok ? 0 : diff_no_memory(error);
}

void
plumb_diff_table_free(struct plumb_diff_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		free(table->rows[i].before_names);
		free(table->rows[i].after_names);
		free(table->rows[i].fused_in);
	}
	free(table->rows);
	free(table->families);
	plumb_pool_free(table->storage);
	*table = (struct plumb_diff_table){ 0 };
}
