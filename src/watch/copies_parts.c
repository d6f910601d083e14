/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/copies_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* A clear border costs so much of what the clearest one does, or so often as much as one between
 * two looks at the same loop. */
#define CLEAR_SHARE 0.3
#define CLEAR_TIMES 10
#define ENTRIES_MOST (PLUMB_PARTS_MEMORY / sizeof(struct plumb_part_entry))

/* ---- memory ---- */

static bool
reserve(struct plumb_parts *parts, uint64_t bytes)
{
	if (bytes > parts->bytes_bound || parts->bytes > parts->bytes_bound - bytes) {
		parts->fate = PLUMB_FATE_MEMORY_BOUND;
		return false;
	}
	parts->bytes += bytes;
	if (parts->bytes > parts->bytes_most)
		parts->bytes_most = parts->bytes;
	return true;
}

/* Room for CAPACITY entries. */
static struct plumb_part_entry *
new_entries(struct plumb_parts *parts, uint32_t capacity)
{
	uint64_t bytes = capacity * sizeof(struct plumb_part_entry);
	struct plumb_part_entry *entries = reserve(parts, bytes) ? malloc(bytes + 1) : NULL;

	if (!entries && !parts->fate) {
		parts->bytes -= bytes;
		parts->fate = PLUMB_FATE_NO_MEMORY;
	}
	return entries;
}

static void
free_entries(struct plumb_parts *parts, struct plumb_part *part)
{
	free(part->entries);
	part->entries = NULL;
	parts->bytes -= part->capacity * sizeof *part->entries;
	part->count = part->capacity = 0;
}

/* Gives back what it has no entries for. */
static void
trim(struct plumb_parts *parts, struct plumb_part *part)
{
	void *less =
		part->count ? realloc(part->entries, part->count * sizeof *part->entries) : NULL;

	if (!less)
		return;
	part->entries = less;
	parts->bytes -= (part->capacity - part->count) * sizeof *part->entries;
	part->capacity = part->count;
}

void *
plumb_parts_grow(struct plumb_parts *parts, void *items, uint32_t *capacity, size_t size)
{
	uint64_t room = (uint64_t)*capacity * 2 + 64, more = (room - *capacity) * size;
	void *grown = reserve(parts, more) ? plumb_vec_grow(items, capacity, room, size) : NULL;

	if (!grown && !parts->fate) {
		parts->bytes -= more;
		parts->fate = PLUMB_FATE_NO_MEMORY;
	}
	return grown;
}

/* ---- joining ---- */

double
plumb_parts_joined_m2(const struct plumb_part_entry *a, const struct plumb_part_entry *b)
{
	double an = (double)a->count, bn = (double)b->count;
	double delta = (double)b->sum / bn - (double)a->sum / an;

	return a->m2 + b->m2 + delta * delta * (an * bn / (an + bn));
}

static int
compare_entries(const struct plumb_part_entry *a, const struct plumb_part_entry *b)
{
	if (a->region != b->region)
		return a->region < b->region ? -1 : 1;
	return (a->item > b->item) - (a->item < b->item);
}

/* Part of the time; a long operator that ends in a short part counts there as all of it. */
static double
rate_of(const struct plumb_part_entry *entry, double ns)
{
	return entry->is_time ? fmin((double)entry->sum / ns, 1) : 0;
}

/* How much is lost if A and B become one. Roots, so that work of many contexts counts as much as
 * the same time in one, and a part with little work has borders, too. */
static double
cost_of(const struct plumb_part *a, const struct plumb_part *b)
{
	double an = (double)(a->end - a->start) + 1, bn = (double)(b->end - b->start) + 1, sum = 0;

	for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
		int order = i == a->count   ? 1
		            : k == b->count ? -1
		                            : compare_entries(&a->entries[i], &b->entries[k]);
		double difference = 0;
		if (order <= 0)
			difference += sqrt(rate_of(&a->entries[i++], an));
		if (order >= 0)
			difference -= sqrt(rate_of(&b->entries[k++], bn));
		sum += difference * difference;
	}
	return an * bn / (an + bn) * sum;
}

/* BEFORE ns of an item must lie before the end of PART. How many of them must lie before PART, too?
 * OWN: what the item has in PART; NULL: nothing. */
static int64_t
still_before(const struct plumb_part *part, const struct plumb_part_entry *own, int64_t before)
{
	int64_t room = (int64_t)(part->end - part->start) - (own ? own->sum - own->before : 0);

	return before > room ? before - (room > 0 ? room : 0) : 0;
}

/* Part I takes in the one after it. */
static void
join_parts(struct plumb_parts *parts, uint32_t i)
{
	struct plumb_part *a = &parts->items[i], *b = a + 1, both = { 0 };

	both.start = a->start;
	both.end = b->end;
	both.first_work = a->first_work ? a->first_work : b->first_work;
	both.last_work = b->last_work ? b->last_work : a->last_work;
	both.cost = a->cost;
	both.entries = new_entries(parts, a->count + b->count);
	both.capacity = both.entries ? a->count + b->count : 0;
	for (uint32_t m = 0, n = 0; both.entries && (m < a->count || n < b->count);) {
		int order = m == a->count   ? 1
		            : n == b->count ? -1
		                            : compare_entries(&a->entries[m], &b->entries[n]);
		struct plumb_part_entry *to = &both.entries[both.count++];
		*to = order <= 0 ? a->entries[m] : b->entries[n];
		if (order >= 0)
			to->before = (order ? 0 : a->entries[m].before) +
			             still_before(a, order ? NULL : &a->entries[m],
			                          b->entries[n].before);
		if (!order) {
			to->m2 = plumb_parts_joined_m2(&a->entries[m], &b->entries[n]);
			to->sum += b->entries[n].sum;
			to->count += b->entries[n].count;
		}
		m += order <= 0;
		n += order >= 0;
	}
	trim(parts, &both);
	free_entries(parts, a);
	free_entries(parts, b);
	*a = both;
	parts->count--;
	memmove(b, b + 1, (parts->count - i - 1) * sizeof *b);
	if (i)
		a->cost = cost_of(a - 1, a);
	if (i + 1 < parts->count)
		b->cost = cost_of(a, b);
}

uint64_t
plumb_parts_entries(const struct plumb_parts *parts)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < parts->count; i++)
		count += parts->items[i].count;
	return count;
}

static uint32_t
least_border(const struct plumb_parts *parts)
{
	uint32_t least = 1;

	for (uint32_t i = 2; i < parts->count; i++)
		if (parts->items[i].cost < parts->items[least].cost)
			least = i;
	return least;
}

static void
thin_out(struct plumb_parts *parts)
{
	while (parts->count > 1 && !parts->fate &&
	       (parts->count > PLUMB_COPIES_PARTS || plumb_parts_entries(parts) > ENTRIES_MOST))
		join_parts(parts, least_border(parts) - 1);
}

/* ---- the newest part ---- */

void
plumb_parts_begin(struct plumb_parts *parts, uint64_t start)
{
	parts->items[parts->count] = (struct plumb_part){ .start = start };
}

bool
plumb_parts_add(struct plumb_parts *parts, const struct plumb_part_entry *entry)
{
	struct plumb_part *part = &parts->items[parts->count];

	if (part->count == part->capacity) {
		void *grown = plumb_parts_grow(parts, part->entries, &part->capacity,
		                               sizeof *part->entries);
		if (!grown)
			return false;
		part->entries = grown;
	}
	part->entries[part->count++] = *entry;
	return true;
}

void
plumb_parts_end(struct plumb_parts *parts, uint64_t end, bool has_work)
{
	struct plumb_part *part = &parts->items[parts->count++];

	part->end = end;
	if (has_work) {
		part->first_work = part->start;
		part->last_work = end;
	}
	trim(parts, part);
	if (parts->count > 1)
		part->cost = cost_of(part - 1, part);
	thin_out(parts);
}

/* ---- at the end ---- */

/* The same parts, with entries of their own. */
static void
copy_parts(const struct plumb_parts *parts, struct plumb_parts *to)
{
	*to = *parts;
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct plumb_part *from = &parts->items[i];
		struct plumb_part *part = &to->items[i];
		part->entries = new_entries(to, from->count);
		part->count = part->capacity = part->entries ? from->count : 0;
		if (part->count)
			memcpy(part->entries, from->entries, part->count * sizeof *part->entries);
	}
}

/* How many parts differ clearly. All parts are joined, one after another: first those that do not
 * differ, such as waits in which nothing ended, then those that differ by chance. */
static uint32_t
count_clear_parts(struct plumb_parts *parts)
{
	struct plumb_parts trial;
	double costs[PLUMB_COPIES_PARTS + 2] = { 0 }, most = 0, chance;
	uint32_t differ = 0, clear = 1;

	copy_parts(parts, &trial);
	while (trial.count > 1 && !trial.fate) {
		uint32_t least = least_border(&trial);
		costs[trial.count] = trial.items[least].cost;
		most = fmax(most, trial.items[least].cost);
		join_parts(&trial, least - 1);
	}
	for (uint32_t count = 2; count <= parts->count; count++)
		if (costs[count] > 0)
			differ = count;
	chance = costs[differ - differ / 4];
	for (uint32_t count = 2; count <= differ; count++)
		if (costs[count] >= fmin(CLEAR_SHARE * most, CLEAR_TIMES * chance))
			clear = count;
	parts->bytes_most = trial.bytes_most;
	plumb_parts_free(&trial);
	return trial.fate ? parts->count : clear;
}

void
plumb_parts_drop_small_borders(struct plumb_parts *parts)
{
	uint32_t clear = parts->fate ? 0 : count_clear_parts(parts);

	while (clear && parts->count > clear && !parts->fate)
		join_parts(parts, least_border(parts) - 1);
}

void
plumb_parts_move_back(struct plumb_parts *parts)
{
	for (uint32_t p = parts->count; p-- > 0;) {
		struct plumb_part *part = &parts->items[p], *last = p ? part - 1 : NULL;
		uint32_t k = 0;

		for (uint32_t i = 0; i < part->count; i++) {
			struct plumb_part_entry *e = &part->entries[i], *own = NULL;
			while (last && k < last->count && compare_entries(&last->entries[k], e) < 0)
				k++;
			if (last && k < last->count && !compare_entries(&last->entries[k], e))
				own = &last->entries[k];
			if (own) {
				int64_t before = still_before(last, own, e->before);
				own->sum += e->before;
				own->before += before;
			}
			e->sum -= e->before;
			e->before = 0;
		}
	}
}

void
plumb_parts_free(struct plumb_parts *parts)
{
	for (uint32_t i = 0; i < parts->count; i++)
		free_entries(parts, &parts->items[i]);
	parts->count = 0;
}
