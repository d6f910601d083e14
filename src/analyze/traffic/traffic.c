/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/traffic/traffic.h"

#include <math.h>

#include "model/metric.h"

/* ---- who ---- */

uint32_t
plumb_traffic_owner(const struct plumb_traffic *traffic, uint32_t object)
{
	const struct plumb_object *o;

	if (object == PLUMB_NONE)
		return traffic->unknown;
	o = &traffic->profile->objects[object];
	if (o->device != PLUMB_NONE)
		return o->device;
	return o->kind == PLUMB_OBJECT_PINNED ? traffic->host : traffic->unknown;
}

bool
plumb_traffic_is_host_memory(uint16_t kind)
{
	return kind == PLUMB_MEMORY_PAGEABLE || kind == PLUMB_MEMORY_PINNED ||
	       kind == PLUMB_MEMORY_HOST;
}

/* The party at one end of T. END is a device + 1. Without a device it is the host only if something
 * says so: the object, the route, or the copy's name. */
static uint32_t
party_of(const struct plumb_traffic *traffic, const struct plumb_transfer_row *t, uint32_t end,
         uint32_t object, bool to)
{
	const struct plumb_profile *p = traffic->profile;
	uint32_t owner = plumb_traffic_owner(traffic, object);

	if (end)
		return end - 1;
	if (owner != traffic->unknown)
		return owner;
	if (t->route == PLUMB_ROUTE_HOST_MEMORY)
		return traffic->host;
	if (t->kind == PLUMB_ACCESS_COPY && t->context != PLUMB_NONE) {
		struct plumb_transfer name = plumb_context_frame(p, t->context)->transfer;

		if (plumb_traffic_is_host_memory(to ? name.to : name.from))
			return traffic->host;
	}
	return traffic->unknown;
}

/* Whose memory it is that the initiator reached. A copy reaches the end that its engine's device
 * does not have; a third device's copy counts for where it wrote. */
static uint32_t
owner_of(uint32_t kind, const struct plumb_traffic_fact *fact)
{
	if (kind == PLUMB_ACCESS_COPY)
		return fact->initiator == fact->to ? fact->from : fact->to;
	return plumb_access_reads(kind) ? fact->from : fact->to;
}

static void
find_facts(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;

	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		struct plumb_traffic_fact *fact = &traffic->facts[i];

		fact->initiator = t->initiator == PLUMB_NONE ? traffic->unknown : t->initiator;
		fact->from = party_of(traffic, t, t->ends.from, t->from_object, false);
		fact->to = party_of(traffic, t, t->ends.to, t->to_object, true);
		/* Its result is this device's too, but the data goes to all ranks. */
		if (t->kind == PLUMB_ACCESS_COLLECTIVE && !t->ends.to)
			fact->to = traffic->group;
		fact->owner = owner_of(t->kind, fact);
		fact->logical = plumb_access_is_logical(t->kind);
		fact->local = plumb_access_is_code(t->kind) && fact->from == fact->to &&
		              fact->from < traffic->host;
	}
}

struct plumb_traffic_sum
plumb_traffic_sum_of(const struct plumb_transfer_row *t)
{
	return (struct plumb_traffic_sum){
		.bytes = t->bytes,
		.accesses = t->accesses,
		.warps = t->warps < 0 ? PLUMB_UNKNOWN : t->warps,
		.variance = t->error_bytes * t->error_bytes,
	};
}

/* ---- what ---- */

/* OFFSET or WIDTH as a part of a cell. */
static uint32_t
small(int64_t number)
{
	return number < 0 || number >= UINT32_MAX ? PLUMB_NONE : (uint32_t)number;
}

static bool
add_uses(struct plumb_traffic *traffic, const struct plumb_transfer_row *t,
         const struct plumb_traffic_fact *fact, const struct plumb_traffic_sum *sum)
{
	uint32_t from[] = { t->from_object, fact->initiator, t->kind, 0, fact->to };
	uint32_t to[] = { t->to_object, fact->initiator, t->kind, 1, fact->from };

	return (t->from_object == PLUMB_NONE ||
	        plumb_traffic_cell_add(&traffic->uses, from, 5, sum)) &&
	       (t->to_object == PLUMB_NONE || plumb_traffic_cell_add(&traffic->uses, to, 5, sum));
}

static bool
add_transfer(struct plumb_traffic *traffic, uint32_t i)
{
	const struct plumb_transfer_row *t = &traffic->profile->transfers[i];
	const struct plumb_traffic_fact *f = &traffic->facts[i];
	struct plumb_traffic_sum sum = plumb_traffic_sum_of(t);
	uint32_t object = f->owner == f->from ? t->from_object : t->to_object;
	uint32_t pair[] = { f->initiator, f->owner, f->from, f->to, t->kind, t->route };
	uint32_t move[] = { f->place, object, f->initiator, f->owner, f->from, f->to, t->kind };
	uint32_t insn[] = { f->place, t->function, small(t->offset), t->kind, small(t->width) };
	uint32_t kernel[] = { f->kernel, f->initiator, f->owner, t->kind };
	uint32_t route[] = { t->route, t->kind, plumb_traffic_link_of(traffic, i) };

	if (f->local)
		return true;
	if (f->from != f->to)
		plumb_traffic_sum_add(f->logical                     ? &traffic->logical
		                      : t->kind == PLUMB_ACCESS_COPY ? &traffic->copies
		                                                     : &traffic->in_kernels,
		                      &sum);
	return plumb_traffic_cell_add(&traffic->pairs, pair, 6, &sum) &&
	       plumb_traffic_cell_add(&traffic->moves, move, 7, &sum) &&
	       (t->function == PLUMB_NONE ||
	        plumb_traffic_cell_add(&traffic->instructions, insn, 5, &sum)) &&
	       (f->kernel == PLUMB_NONE ||
	        plumb_traffic_cell_add(&traffic->kernel_moves, kernel, 4, &sum)) &&
	       plumb_traffic_cell_add(&traffic->routes, route, 3, &sum) &&
	       add_uses(traffic, t, f, &sum);
}

/* The cells of CELLS, which is joined, with NUMBER as their first part. */
static struct plumb_traffic_range
range_of(const plumb_traffic_cells *cells, uint32_t number, uint32_t *at)
{
	struct plumb_traffic_range range = { .first = *at };

	while (*at < cells->count && cells->items[*at].part[0] == number)
		plumb_traffic_sum_add(&range.sum, &cells->items[(*at)++].sum);
	range.count = *at - range.first;
	return range;
}

static int
compare_sums(const struct plumb_traffic_sum *a, const struct plumb_traffic_sum *b)
{
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->accesses == b->accesses ? 0 : a->accesses > b->accesses ? -1 : 1;
}

static int
compare_objects(const void *a, const void *b)
{
	const struct plumb_traffic_object *one = a, *two = b;
	int order = compare_sums(&one->uses.sum, &two->uses.sum);

	return order ? order : one->object < two->object ? -1 : one->object > two->object;
}

static bool
find_objects(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;
	uint32_t at = 0, bin = 0;

	for (uint32_t o = 0; o < p->objects_count; o++) {
		struct plumb_traffic_object *object = plumb_vec_add(&traffic->objects);

		if (!object)
			return false;
		object->object = o;
		object->uses = range_of(&traffic->uses, o, &at);
		for (uint32_t i = 0; i < object->uses.count; i++) {
			const struct plumb_traffic_cell *use =
				&traffic->uses.items[object->uses.first + i];

			plumb_traffic_sum_add(use->part[PLUMB_USE_WRITES] ? &object->written
			                                                  : &object->read,
			                      &use->sum);
		}
		object->first_bin = bin; /* bins are ordered by object */
		while (bin < p->object_bins_count && p->object_bins[bin].object == o)
			bin++;
		object->bin_count = bin - object->first_bin;
	}
	if (traffic->objects.count)
		qsort(traffic->objects.items, traffic->objects.count,
		      sizeof *traffic->objects.items, compare_objects);
	return true;
}

static int
compare_places(const void *a, const void *b)
{
	const struct plumb_traffic_place *one = a, *two = b;
	int order = compare_sums(&one->moves.sum, &two->moves.sum);

	return order ? order : one->moves.first < two->moves.first ? -1 : 1;
}

static int
compare_kernels(const void *a, const void *b)
{
	const struct plumb_traffic_kernel *one = a, *two = b;
	int order = compare_sums(&one->moves.sum, &two->moves.sum);

	return order ? order : one->moves.first < two->moves.first ? -1 : 1;
}

/* After this the numbers of places and kernels in cells and facts are those of before. Nobody asks
 * for them but by ranges. */
static void
rank_things(struct plumb_traffic *traffic)
{
	uint32_t moves = 0, instructions = 0, kernel_moves = 0;

	for (uint32_t i = 0; i < traffic->places.count; i++) {
		struct plumb_traffic_place *place = &traffic->places.items[i];

		place->moves = range_of(&traffic->moves, i, &moves);
		place->instructions = range_of(&traffic->instructions, i, &instructions);
	}
	for (uint32_t i = 0; i < traffic->kernels.count; i++)
		traffic->kernels.items[i].moves =
			range_of(&traffic->kernel_moves, i, &kernel_moves);
	if (traffic->places.count)
		qsort(traffic->places.items, traffic->places.count, sizeof *traffic->places.items,
		      compare_places);
	if (traffic->kernels.count)
		qsort(traffic->kernels.items, traffic->kernels.count,
		      sizeof *traffic->kernels.items, compare_kernels);
}

/* ---- who takes part ---- */

/* Marks, then lists them. */
static bool
find_parties(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;
	uint32_t all = p->devices_count + 3;

	traffic->parties = calloc(all, sizeof *traffic->parties);
	traffic->index_of = malloc(all * sizeof *traffic->index_of);
	if (!traffic->parties || !traffic->index_of)
		return false;
	for (uint32_t i = 0; i < all; i++)
		traffic->index_of[i] = i < p->devices_count ? 0 : PLUMB_NONE;
	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_traffic_fact *fact = &traffic->facts[i];

		traffic->index_of[fact->initiator] = traffic->index_of[fact->from] =
			traffic->index_of[fact->to] = 0;
	}
	traffic->index_of[traffic->group] = PLUMB_NONE;
	for (uint32_t i = 0; i < all; i++)
		if (traffic->index_of[i] != PLUMB_NONE) {
			traffic->index_of[i] = traffic->party_count;
			traffic->parties[traffic->party_count++] = i;
		}
	return true;
}

/* ---- all of it ---- */

static bool
make(struct plumb_traffic *traffic, const uint32_t *user_of)
{
	const struct plumb_profile *p = traffic->profile;

	traffic->host = p->devices_count;
	traffic->unknown = p->devices_count + 1;
	traffic->group = p->devices_count + 2;
	traffic->facts = calloc((size_t)p->transfers_count + 1, sizeof *traffic->facts);
	if (!traffic->facts)
		return false;
	find_facts(traffic);
	if (!find_parties(traffic) || !plumb_traffic_find_links(traffic) ||
	    !plumb_traffic_find_places(traffic, user_of) || !plumb_traffic_find_kernels(traffic))
		return false;
	for (uint32_t i = 0; i < p->transfers_count; i++)
		if (!add_transfer(traffic, i))
			return false;
	plumb_traffic_cells_join(&traffic->pairs);
	plumb_traffic_cells_join(&traffic->routes);
	plumb_traffic_cells_join(&traffic->uses);
	plumb_traffic_cells_join(&traffic->moves);
	plumb_traffic_cells_join(&traffic->instructions);
	plumb_traffic_cells_join(&traffic->kernel_moves);
	if (!find_objects(traffic))
		return false;
	rank_things(traffic);
	plumb_traffic_cells_rank(&traffic->pairs, 0);
	plumb_traffic_cells_rank(&traffic->routes, 0);
	plumb_traffic_cells_rank(&traffic->uses, 1);
	plumb_traffic_cells_rank(&traffic->moves, 1);
	plumb_traffic_cells_rank(&traffic->instructions, 1);
	plumb_traffic_cells_rank(&traffic->kernel_moves, 1);
	return true;
}

int
plumb_traffic_make(const struct plumb_profile *profile, const uint32_t *user_of,
                   struct plumb_traffic *traffic, struct plumb_error *error)
{
	*traffic = (struct plumb_traffic){ .profile = profile };
	return make(traffic, user_of) ? 0 : plumb_fail_memory(error, "for the traffic");
}

void
plumb_traffic_free(struct plumb_traffic *traffic)
{
	free(traffic->parties);
	free(traffic->index_of);
	free(traffic->facts);
	free(traffic->link_of_context);
	plumb_vec_free(&traffic->links);
	plumb_vec_free(&traffic->members);
	plumb_vec_free(&traffic->pairs);
	plumb_vec_free(&traffic->routes);
	plumb_vec_free(&traffic->uses);
	plumb_vec_free(&traffic->moves);
	plumb_vec_free(&traffic->instructions);
	plumb_vec_free(&traffic->kernel_moves);
	plumb_vec_free(&traffic->objects);
	plumb_vec_free(&traffic->places);
	plumb_vec_free(&traffic->kernels);
	*traffic = (struct plumb_traffic){ 0 };
}

/* ---- matrices ---- */

static void
add_to(int64_t *cell, int64_t bytes)
{
	if (__builtin_add_overflow(*cell, bytes, cell))
		*cell = INT64_MAX;
}

/* Adds the pairs of KIND; 0: of all kinds that are not logical. */
static void
add_pairs(const struct plumb_traffic *traffic, uint32_t kind, int row, int column, int64_t *cells)
{
	for (uint32_t i = 0; i < traffic->pairs.count; i++) {
		const struct plumb_traffic_cell *pair = &traffic->pairs.items[i];
		uint32_t its = pair->part[PLUMB_PAIR_KIND];
		uint32_t one = traffic->index_of[pair->part[row]];
		uint32_t other = traffic->index_of[pair->part[column]];

		if ((kind ? its == kind : !plumb_access_is_logical(its)) && one != PLUMB_NONE &&
		    other != PLUMB_NONE)
			add_to(&cells[(size_t)one * traffic->party_count + other], pair->sum.bytes);
	}
}

int64_t *
plumb_traffic_matrix(const struct plumb_traffic *traffic, enum plumb_traffic_matrix which)
{
	size_t n = traffic->party_count;
	int64_t *cells, *received;

	if (n > PLUMB_TRAFFIC_PARTIES_MOST)
		return NULL;
	cells = calloc(n * n + 1, sizeof *cells);
	if (!cells || which != PLUMB_MATRIX_LOGICAL) {
		if (cells && which == PLUMB_MATRIX_INITIATED)
			add_pairs(traffic, 0, PLUMB_PAIR_INITIATOR, PLUMB_PAIR_OWNER, cells);
		else if (cells)
			add_pairs(traffic, 0, PLUMB_PAIR_FROM, PLUMB_PAIR_TO, cells);
		return cells;
	}
	received = calloc(n * n + 1, sizeof *received);
	if (!received) {
		free(cells);
		return NULL;
	}
	add_pairs(traffic, PLUMB_ACCESS_SEND, PLUMB_PAIR_FROM, PLUMB_PAIR_TO, cells);
	add_pairs(traffic, PLUMB_ACCESS_RECEIVE, PLUMB_PAIR_FROM, PLUMB_PAIR_TO, received);
	for (size_t i = 0; i < n * n; i++)
		if (received[i] > cells[i])
			cells[i] = received[i];
	free(received);
	add_pairs(traffic, PLUMB_ACCESS_COLLECTIVE, PLUMB_PAIR_FROM, PLUMB_PAIR_TO, cells);
	return cells;
}

/* ---- measured speed ---- */

#define LARGE_COPY (INT64_C(1) << 20) /* smaller ones measure the latency */

/* Values are ordered by context. */
const struct plumb_value *
plumb_traffic_copy_time(const struct plumb_profile *p, const struct plumb_value *bytes)
{
	const struct plumb_value *first = bytes, *end = p->values + p->values_count;

	while (first > p->values && first[-1].context == bytes->context)
		first--;
	for (; first < end && first->context == bytes->context; first++)
		if (first->metric == PLUMB_METRIC_GPU_COPY_TIME && first->sum > 0 &&
		    first->track == bytes->track && first->ends.from == bytes->ends.from &&
		    first->ends.to == bytes->ends.to)
			return first;
	return NULL;
}

double
plumb_traffic_bandwidth(const struct plumb_profile *p, uint32_t from, uint32_t to)
{
	double best = NAN;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *bytes = &p->values[i], *time;
		double speed;

		if (bytes->metric != PLUMB_METRIC_GPU_COPY_BYTES || bytes->ends.from != from + 1 ||
		    bytes->ends.to != to + 1 || bytes->mean < (double)LARGE_COPY)
			continue;
		time = plumb_traffic_copy_time(p, bytes);
		if (!time)
			continue;
		speed = (double)bytes->sum / (double)time->sum * 1e9;
		if (isnan(best) || speed > best)
			best = speed;
	}
	return best;
}
