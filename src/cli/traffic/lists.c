/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of plumb traffic as tables. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/columns.h"
#include "cli/table.h"
#include "cli/traffic/traffic.h"
#include "model/user_code.h"

#define PAIRS_MOST 1 /* named in one cell */
#define USERS_MOST 2
#define LOOKED_MOST 2048 /* moves of a line that are looked through for different pairs */

uint32_t
plumb_traffic_rows_shown(const struct plumb_traffic_printer *t, uint32_t count)
{
	return t->top && t->top < count ? t->top : count;
}

void
plumb_traffic_end_table(struct plumb_traffic_printer *t, struct plumb_table *table, uint32_t left)
{
	t->failed |= plumb_table_print(table, t->out, t->width, t->colour) < 0;
	plumb_table_free(table);
	if (left)
		fprintf(t->out, "   and %" PRIu32 " more (--top 0 shows all)\n", left);
}

/* Adds the words "GPU 0 → GPU 3" to TEXT. */
static void
add_pair(const struct plumb_traffic *traffic, uint32_t one, uint32_t other, const char *before,
         char *text, size_t size)
{
	char a[PLUMB_PARTY_SIZE], b[PLUMB_PARTY_SIZE];
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s \xe2\x86\x92 %s", before,
	         plumb_traffic_party(traffic, one, a), plumb_traffic_party(traffic, other, b));
}

/* ---- matrices ---- */

/* Parties with traffic in CELLS, by their places; *COUNT of them. NULL: no memory. */
static uint32_t *
active(const struct plumb_traffic *traffic, const int64_t *cells, uint32_t *count)
{
	uint32_t n = traffic->party_count, *places = calloc((size_t)n + 1, sizeof *places);

	*count = 0;
	for (uint32_t i = 0; places && i < n; i++) {
		bool any = false;

		for (uint32_t k = 0; k < n; k++)
			any |= cells[(size_t)i * n + k] || cells[(size_t)k * n + i];
		if (any)
			places[(*count)++] = i;
	}
	return places;
}

static void
print_matrix(struct plumb_traffic_printer *t, const char *heading, const char *corner,
             const int64_t *cells, const uint32_t *places, uint32_t count)
{
	const struct plumb_traffic *traffic = &t->answer->traffic;
	struct plumb_column *columns = calloc((size_t)count + 1, sizeof *columns);
	char(*names)[PLUMB_PARTY_SIZE] = calloc((size_t)count + 1, sizeof *names);
	struct plumb_table *table = NULL;
	char text[PLUMB_FORMAT_SIZE];

	if (columns && names) {
		columns[0] = (struct plumb_column){ corner, PLUMB_LEFT };
		for (uint32_t i = 0; i < count; i++) {
			plumb_traffic_party(traffic, traffic->parties[places[i]], names[i]);
			columns[i + 1] = (struct plumb_column){ names[i], PLUMB_RIGHT };
		}
		table = plumb_table_new(columns, (size_t)count + 1);
	}
	t->failed |= !table;
	for (uint32_t row = 0; table && row < count; row++) {
		plumb_table_cell(table, names[row]);
		for (uint32_t column = 0; column < count; column++) {
			int64_t bytes =
				cells[(size_t)places[row] * traffic->party_count + places[column]];

			plumb_table_cell(table, bytes ? plumb_format_bytes(text, bytes) : ".");
		}
	}
	if (table) {
		fprintf(t->out, "\n %s\n", heading);
		plumb_traffic_end_table(t, table, 0);
	}
	free(names);
	free(columns);
}

struct entry {
	uint32_t row, column; /* places */
	int64_t bytes;
};

static int
compare_entries(const void *a, const void *b)
{
	const struct entry *one = a, *two = b;

	if (one->bytes != two->bytes)
		return one->bytes > two->bytes ? -1 : 1;
	if (one->row != two->row)
		return one->row < two->row ? -1 : 1;
	return one->column < two->column ? -1 : one->column > two->column;
}

/* The greatest cells of a matrix that is wider than the terminal. */
static void
print_entries(struct plumb_traffic_printer *t, const char *heading, const int64_t *cells)
{
	static const struct plumb_column columns[] = {
		{ "bytes", PLUMB_RIGHT },
		{ "share", PLUMB_RIGHT },
		{ "pair", PLUMB_LEFT },
	};
	const struct plumb_traffic *traffic = &t->answer->traffic;
	uint32_t n = traffic->party_count, count = 0;
	struct entry *entries = calloc((size_t)n * n + 1, sizeof *entries);
	struct plumb_table *table = plumb_table_new(columns, 3);
	char text[PLUMB_FORMAT_SIZE];
	double all = 0;

	for (size_t i = 0; entries && i < (size_t)n * n; i++) {
		if (!cells[i])
			continue;
		entries[count++] = (struct entry){ (uint32_t)(i / n), (uint32_t)(i % n), cells[i] };
		all += (double)cells[i];
	}
	if (entries && table) {
		qsort(entries, count, sizeof *entries, compare_entries);
		for (uint32_t i = 0; i < plumb_traffic_rows_shown(t, count); i++) {
			char pair[2 * PLUMB_PARTY_SIZE + 8] = "";

			plumb_table_cell(table, plumb_format_bytes(text, entries[i].bytes));
			plumb_table_cell(table,
			                 plumb_format_share(text, (double)entries[i].bytes, all));
			add_pair(traffic, traffic->parties[entries[i].row],
			         traffic->parties[entries[i].column], "", pair, sizeof pair);
			plumb_table_cell(table, pair);
		}
		fprintf(t->out, "\n %s: the greatest of %" PRIu32 " pairs\n", heading, count);
		plumb_traffic_end_table(t, table, count - plumb_traffic_rows_shown(t, count));
	} else {
		plumb_table_free(table);
		t->failed = true;
	}
	free(entries);
}

static void
print_one(struct plumb_traffic_printer *t, const char *heading, const char *corner,
          const int64_t *cells)
{
	uint32_t count, *places = active(&t->answer->traffic, cells, &count);

	if (!places)
		t->failed = true;
	else if (count && 12 + 11 * count <= (uint32_t)t->width)
		print_matrix(t, heading, corner, cells, places, count);
	else if (count)
		print_entries(t, heading, cells);
	free(places);
}

static bool
is_empty(const int64_t *cells, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (cells[i])
			return false;
	return true;
}

void
plumb_traffic_print_matrices(struct plumb_traffic_printer *t)
{
	const struct plumb_traffic *traffic = &t->answer->traffic;
	static const char who[] = "who initiates (row) reaches whose memory (column)";
	static const char both[] =
		"who initiates (row) reaches whose memory (column); the data flows "
		"the same way";
	size_t cells = (size_t)traffic->party_count * traffic->party_count;
	int64_t *initiated, *flow, *logical;

	if (traffic->party_count > PLUMB_TRAFFIC_PARTIES_MOST) {
		plumb_traffic_print_pairs(t);
		return;
	}
	initiated = plumb_traffic_matrix(traffic, PLUMB_MATRIX_INITIATED);
	flow = plumb_traffic_matrix(traffic, PLUMB_MATRIX_FLOW);
	logical = plumb_traffic_matrix(traffic, PLUMB_MATRIX_LOGICAL);
	if (!initiated || !flow || !logical) {
		t->failed = true;
	} else {
		bool same = !memcmp(initiated, flow, cells * sizeof *flow);

		if (!is_empty(initiated, cells))
			print_one(t, same ? both : who, "", initiated);
		if (!same && !is_empty(flow, cells))
			print_one(t, "data flows from (row) to (column)", "", flow);
		if (!is_empty(logical, cells))
			print_one(
				t,
				"collectives, sends and receives were asked to move from (row) to "
				"(column)",
				"", logical);
	}
	free(logical);
	free(flow);
	free(initiated);
}

void
plumb_traffic_print_pairs(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "bytes", PLUMB_RIGHT }, { "accesses", PLUMB_RIGHT }, { "initiator", PLUMB_LEFT },
		{ "owner", PLUMB_LEFT },  { "data flow", PLUMB_LEFT }, { "kind", PLUMB_LEFT },
		{ "route", PLUMB_LEFT },
	};
	const struct plumb_traffic *traffic = &t->answer->traffic;
	uint32_t shown = plumb_traffic_rows_shown(t, traffic->pairs.count);
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char text[PLUMB_TRAFFIC_BYTES], party[PLUMB_PARTY_SIZE], flow[2 * PLUMB_PARTY_SIZE + 8];

	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *pair = &traffic->pairs.items[i];

		plumb_table_cell(table, plumb_traffic_bytes(&pair->sum, text));
		plumb_table_cell(table, plumb_format_count(text, (int64_t)pair->sum.accesses));
		plumb_table_cell(table, plumb_traffic_party(
						traffic, pair->part[PLUMB_PAIR_INITIATOR], party));
		plumb_table_cell(table,
		                 plumb_traffic_party(traffic, pair->part[PLUMB_PAIR_OWNER], party));
		*flow = '\0';
		add_pair(traffic, pair->part[PLUMB_PAIR_FROM], pair->part[PLUMB_PAIR_TO], "", flow,
		         sizeof flow);
		plumb_table_cell(table, flow);
		plumb_table_cell(table, plumb_traffic_kind_name(pair->part[PLUMB_PAIR_KIND]));
		plumb_table_cell(table, plumb_traffic_route_name(pair->part[PLUMB_PAIR_ROUTE]));
	}
	fputs("\n pairs\n", t->out);
	plumb_traffic_end_table(t, table, traffic->pairs.count - shown);
}

/* ---- objects ---- */

/* Who reached the object, the most first: "GPU 1 load, GPU 3 store". NULL: nobody. */
static const char *
users_of(const struct plumb_traffic *traffic, const struct plumb_traffic_object *object, char *text,
         size_t size)
{
	const struct plumb_traffic_cell *uses = &traffic->uses.items[object->uses.first];
	uint32_t looked = object->uses.count < LOOKED_MOST ? object->uses.count : LOOKED_MOST;
	uint32_t named = 0;
	char party[PLUMB_PARTY_SIZE];

	*text = '\0';
	for (uint32_t i = 0; i < looked; i++) {
		const uint32_t *part = uses[i].part;
		const char *kind = plumb_traffic_kind_name(part[PLUMB_USE_KIND]);
		bool had = false;

		for (uint32_t k = 0; k < i && !had; k++)
			had = uses[k].part[PLUMB_USE_INITIATOR] == part[PLUMB_USE_INITIATOR] &&
			      uses[k].part[PLUMB_USE_KIND] == part[PLUMB_USE_KIND];
		if (had || named++ >= USERS_MOST)
			continue;
		snprintf(text + strlen(text), size - strlen(text), "%s%s %s", named > 1 ? ", " : "",
		         plumb_traffic_party(traffic, part[PLUMB_USE_INITIATOR], party),
		         kind ? kind : "?");
	}
	if (named > USERS_MOST)
		snprintf(text + strlen(text), size - strlen(text), " and %" PRIu32 " more",
		         named - USERS_MOST);
	return *text ? text : NULL;
}

/* Objects that text shows as one row: those of one line, kind and name, but for a number at the end
 * of the name. */
struct family {
	const struct plumb_traffic_object *first; /* with most traffic */
	uint32_t objects, owners, initiators;
	struct plumb_traffic_sum moved;
	int64_t bytes, touched, touchable;
	bool named_apart; /* their names differ in the number at the end */
};

/* The bytes of NAME before the digits at its end. */
static size_t
stem_of(const char *name)
{
	size_t bytes = strlen(name);

	while (bytes && name[bytes - 1] >= '0' && name[bytes - 1] <= '9')
		bytes--;
	return bytes;
}

static bool
is_of_family(const struct plumb_profile *p, uint32_t object, uint32_t other)
{
	const struct plumb_object *a = &p->objects[object], *b = &p->objects[other];
	const char *one = plumb_text(p, a->name), *two = plumb_text(p, b->name);

	if (object == other)
		return true;
	if (a->context == PLUMB_NONE || a->context != b->context || a->kind != b->kind)
		return false;
	if (!one || !two || a->name == b->name)
		return a->name == b->name;
	return stem_of(one) && stem_of(one) == stem_of(two) && !memcmp(one, two, stem_of(one));
}

/* Adds OBJECT. SEEN has two marks for each party: it owns one of the family, it reaches one. */
static void
add_member(const struct plumb_traffic_printer *t, const struct plumb_traffic_object *object,
           unsigned char *seen, struct family *family)
{
	const struct plumb_traffic *traffic = &t->answer->traffic;
	const struct plumb_object *o = &t->answer->profile->objects[object->object];
	uint32_t owner = plumb_traffic_owner(traffic, object->object);

	family->objects++;
	family->named_apart |= o->name != t->answer->profile->objects[family->first->object].name;
	family->owners += !(seen[owner] & 1);
	seen[owner] |= 1;
	for (uint32_t i = 0; i < object->uses.count; i++) {
		uint32_t who =
			traffic->uses.items[object->uses.first + i].part[PLUMB_USE_INITIATOR];

		family->initiators += !(seen[who] & 2);
		seen[who] |= 2;
	}
	plumb_traffic_sum_add(&family->moved, &object->uses.sum);
	family->bytes = plumb_add_known(family->bytes, o->bytes);
	if (o->touched_bytes >= 0 && o->touchable_bytes > 0) {
		family->touched = plumb_add_known(family->touched, o->touched_bytes);
		family->touchable = plumb_add_known(family->touchable, o->touchable_bytes);
	}
}

static void
print_family(struct plumb_traffic_printer *t, struct plumb_table *table,
             const struct family *family)
{
	const struct plumb_traffic *traffic = &t->answer->traffic;
	const uint32_t *user_of = t->answer->user_of;
	const struct plumb_traffic_object *first = family->first;
	char text[PLUMB_OBJECT_LABEL], party[PLUMB_PARTY_SIZE], users[600];

	plumb_table_cell(table,
	                 first->uses.count ? plumb_traffic_bytes(&family->moved, text) : NULL);
	plumb_traffic_object_label(traffic, user_of, first->object, text);
	if (family->named_apart)
		snprintf(text + stem_of(text), sizeof text - stem_of(text), "*");
	plumb_table_cell(table, text);
	snprintf(party, sizeof party, "%" PRIu32 " GPUs", family->owners);
	plumb_table_cell(table,
	                 family->owners > 1
	                         ? party
	                         : plumb_traffic_party(traffic,
	                                               plumb_traffic_owner(traffic, first->object),
	                                               party));
	plumb_traffic_allocated_at(traffic, user_of, first->object, text);
	plumb_table_cell(table, *text ? text : NULL);
	plumb_table_cell(table, plumb_format_bytes(text, family->bytes));
	plumb_table_cell(table, family->touchable > 0
	                                ? plumb_format_share(text, (double)family->touched,
	                                                     (double)family->touchable)
	                                : NULL);
	users_of(traffic, first, users, sizeof users);
	if (family->objects > 1)
		snprintf(users, sizeof users, "%" PRIu32 " GPU%s, %" PRIu32 " objects",
		         family->initiators, family->initiators == 1 ? "" : "s", family->objects);
	plumb_table_cell(table, *users ? users : NULL);
}

/* Puts objects of one family together from the number FIRST on, unless --by object wants each. */
static void
find_family(const struct plumb_traffic_printer *t, uint32_t first, uint32_t count,
            unsigned char *done, unsigned char *seen, struct family *family)
{
	const struct plumb_traffic *traffic = &t->answer->traffic;
	bool each = t->answer->query.by == PLUMB_TRAFFIC_BY_OBJECT;

	*family = (struct family){ .first = &traffic->objects.items[first] };
	memset(seen, 0, (size_t)traffic->group + 1);
	for (uint32_t i = first; i < count && i < first + LOOKED_MOST; i++) {
		const struct plumb_traffic_object *object = &traffic->objects.items[i];

		if (done[i] || (i > first && each) ||
		    !is_of_family(t->answer->profile, family->first->object, object->object))
			continue;
		done[i] = 1;
		add_member(t, object, seen, family);
	}
}

void
plumb_traffic_print_objects(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "moved", PLUMB_RIGHT },       { "object", PLUMB_SHORTEN_MIDDLE },
		{ "owner", PLUMB_LEFT },        { "allocated at", PLUMB_SHORTEN_MIDDLE },
		{ "allocated", PLUMB_RIGHT },   { "touched", PLUMB_RIGHT },
		{ "by", PLUMB_SHORTEN_MIDDLE },
	};
	const struct plumb_traffic *traffic = &t->answer->traffic;
	uint32_t count = 0, shown = 0, left = 0;
	unsigned char *done, *seen;
	struct plumb_table *table;

	while (count < traffic->objects.count && (t->answer->query.by == PLUMB_TRAFFIC_BY_OBJECT ||
	                                          traffic->objects.items[count].uses.count))
		count++; /* objects that nobody reached come last */
	if (!count)
		return;
	done = calloc(count, 1);
	seen = calloc((size_t)traffic->group + 1, 1);
	table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	t->failed |= !done || !seen;
	for (uint32_t i = 0; done && seen && i < count; i++) {
		struct family family;

		if (done[i])
			continue;
		if (t->top && shown == t->top) {
			left++;
			continue;
		}
		find_family(t, i, count, done, seen, &family);
		print_family(t, table, &family);
		shown++;
	}
	free(done);
	free(seen);
	fputs("\n objects\n", t->out);
	plumb_traffic_end_table(t, table, left);
}

/* ---- lines and kernels ---- */

/* "GPU 0 → GPU 1, GPU 1 → GPU 2": who reached whom, the most first, once each. */
static const char *
pairs_of(const struct plumb_traffic *traffic, const plumb_traffic_cells *cells,
         const struct plumb_traffic_range *range, int initiator, char *text, size_t size)
{
	uint32_t looked = range->count < LOOKED_MOST ? range->count : LOOKED_MOST, named = 0;

	*text = '\0';
	for (uint32_t i = 0; i < looked; i++) {
		const uint32_t *part = &cells->items[range->first + i].part[initiator];
		bool had = false;

		for (uint32_t k = 0; k < i && !had; k++)
			had = !memcmp(&cells->items[range->first + k].part[initiator], part,
			              2 * sizeof *part);
		if (had)
			continue;
		if (named++ < PAIRS_MOST)
			add_pair(traffic, part[0], part[1], "", text, size);
	}
	if (named > PAIRS_MOST)
		snprintf(text + strlen(text), size - strlen(text), " and %" PRIu32 " more",
		         named - PAIRS_MOST);
	return text;
}

void
plumb_traffic_print_lines(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "moved", PLUMB_RIGHT },
		{ "line", PLUMB_SHORTEN_MIDDLE },
		{ "kind", PLUMB_LEFT },
		{ "lanes", PLUMB_RIGHT },
		{ "pairs", PLUMB_SHORTEN_MIDDLE },
		{ "object", PLUMB_SHORTEN_MIDDLE },
	};
	const struct plumb_traffic *traffic = &t->answer->traffic;
	uint32_t shown = plumb_traffic_rows_shown(t, traffic->places.count);
	struct plumb_table *table;
	char text[PLUMB_OBJECT_LABEL], pairs[5 * 2 * PLUMB_PARTY_SIZE];

	if (!traffic->places.count)
		return;
	table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_place *p = &traffic->places.items[i];
		const struct plumb_traffic_sum *sum = &p->moves.sum;
		const uint32_t *first = traffic->moves.items[p->moves.first].part;

		plumb_table_cell(table, plumb_traffic_bytes(sum, text));
		plumb_table_cell(table, plumb_traffic_place_text(traffic, p, text));
		plumb_table_cell(table, plumb_traffic_kind_name(first[PLUMB_MOVE_KIND]));
		if (sum->warps > 0)
			snprintf(text, sizeof text, "%.3g",
			         (double)sum->accesses / (double)sum->warps);
		plumb_table_cell(table, sum->warps > 0 ? text : NULL);
		plumb_table_cell(table, pairs_of(traffic, &traffic->moves, &p->moves,
		                                 PLUMB_MOVE_INITIATOR, pairs, sizeof pairs));
		plumb_table_cell(table, first[PLUMB_MOVE_OBJECT] == PLUMB_NONE
		                                ? NULL
		                                : plumb_traffic_object_label(
							  traffic, t->answer->user_of,
							  first[PLUMB_MOVE_OBJECT], text));
	}
	fputs("\n lines; lanes of a warp that access at once\n", t->out);
	plumb_traffic_end_table(t, table, traffic->places.count - shown);
}

void
plumb_traffic_print_kernels(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "moved", PLUMB_RIGHT },          { "kernel", PLUMB_SHORTEN_KERNEL },
		{ "launches", PLUMB_RIGHT },       { "GPU time", PLUMB_RIGHT },
		{ "pairs", PLUMB_SHORTEN_MIDDLE }, { "launched at", PLUMB_SHORTEN_MIDDLE },
	};
	const struct plumb_traffic *traffic = &t->answer->traffic;
	const struct plumb_profile *p = t->answer->profile;
	uint32_t shown = plumb_traffic_rows_shown(t, traffic->kernels.count);
	struct plumb_table *table;
	char text[PLUMB_OBJECT_LABEL], pairs[5 * 2 * PLUMB_PARTY_SIZE];

	if (!traffic->kernels.count) {
		fputs("\nno kernel's accesses were recorded; plumb run --traffic=full has them\n",
		      t->out);
		return;
	}
	table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_kernel *k = &traffic->kernels.items[i];
		uint32_t user =
			k->context == PLUMB_NONE ? PLUMB_NONE : t->answer->user_of[k->context];
		char *name = plumb_traffic_kernel_name(t->answer, k);

		plumb_table_cell(table, plumb_traffic_bytes(&k->moves.sum, text));
		plumb_table_cell(table, name);
		free(name);
		plumb_table_cell(table, plumb_format_count(text, k->launches));
		plumb_table_cell(table, plumb_format_time(text, k->gpu_ns));
		plumb_table_cell(table, pairs_of(traffic, &traffic->kernel_moves, &k->moves,
		                                 PLUMB_KERNEL_MOVE_INITIATOR, pairs, sizeof pairs));
		if (user != PLUMB_NONE) {
			struct plumb_user_place place = plumb_user_place(p, user);

			plumb_user_place_text(&place, false, text, sizeof text);
		}
		plumb_table_cell(table, user == PLUMB_NONE ? NULL : text);
	}
	fputs("\n kernels\n", t->out);
	plumb_traffic_end_table(t, table, traffic->kernels.count - shown);
}

/* ---- stalls ---- */

void
plumb_traffic_print_waits(struct plumb_traffic_printer *t)
{
	const struct plumb_traffic_join *join = &t->answer->join;
	uint32_t shown = plumb_traffic_rows_shown(t, join->waits.count);
	uint32_t kernel = PLUMB_NONE;
	char text[PLUMB_WAIT_SENTENCE], part[PLUMB_FORMAT_SIZE], whole[PLUMB_FORMAT_SIZE];

	fputs("\n stalls that wait for this traffic\n", t->out);
	if (!join->waits.count)
		fputs("   none: no sampled stall waits for an access to another GPU's memory\n",
		      t->out);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_wait *w = &join->waits.items[i];
		const struct plumb_traffic_joined_kernel *k = &join->kernels.items[w->kernel];
		const char *name =
			plumb_text(join->stalls, join->stalls->code_functions[k->function].name);
		char *shorter =
			name && t->answer->query.demangle ? t->answer->query.demangle(name) : NULL;

		if (kernel != w->kernel) {
			fputs(" ", t->out);
			plumb_text_print_short(t->out,
			                       shorter ? shorter
			                       : name  ? name
			                               : "?",
			                       t->width - 1);
			fprintf(t->out, "\n   %s of its waiting is for traffic\n",
			        plumb_format_share(part, (double)k->remote, (double)k->waiting));
			kernel = w->kernel;
		}
		free(shorter);
		plumb_traffic_paragraph(
			t, "   ", 6, plumb_traffic_wait_sentence(t->answer, w, text, sizeof text));
		snprintf(text, sizeof text,
		         "%s at %s; the access is %s, which moved %s; %" PRIu64 " samples%s%s",
		         w->reason, *w->stalled ? w->stalled : "?",
		         *w->instruction ? w->instruction : "?",
		         plumb_format_bytes(part, w->sum.bytes), w->samples,
		         w->part_ns == PLUMB_UNKNOWN ? "" : ", up to ",
		         w->part_ns == PLUMB_UNKNOWN ? "" : plumb_format_time(whole, w->part_ns));
		plumb_traffic_paragraph(t, "      ", 6, text);
	}
	if (join->waits.count > shown)
		fprintf(t->out, "   and %" PRIu32 " more (--top 0 shows all)\n",
		        join->waits.count - shown);
	if (join->builds_missing)
		fprintf(t->out,
		        "   note: the profile of --stalls lacks %" PRIu32 " of %" PRIu32
		        " modules with traffic: another build, or they did not run\n",
		        join->builds_missing, join->builds);
	for (uint32_t i = 0; i < join->kernels.count; i++)
		if (join->kernels.items[i].problem)
			plumb_traffic_paragraph(t, "   note: ", 9, join->kernels.items[i].problem);
}
