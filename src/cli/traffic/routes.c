/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of plumb traffic about what libraries were asked to move, and over which links. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/format.h"
#include "cli/columns.h"
#include "cli/table.h"
#include "cli/traffic/traffic.h"

/* ---- collectives ---- */

static const char *
speed(double bytes_per_second, char text[PLUMB_TRAFFIC_BYTES])
{
	if (!(bytes_per_second >= 0))
		return NULL;
	snprintf(text, PLUMB_TRAFFIC_BYTES, "%.3g GB/s", bytes_per_second / 1e9);
	return text;
}

/* "42.1 %" of what the link can carry. NULL: not known. */
static const char *
share_of_link(double speed, double bandwidth, char text[PLUMB_TRAFFIC_BYTES])
{
	return speed >= 0 && bandwidth > 0 ? plumb_format_share(text, speed, bandwidth) : NULL;
}

/* "rank 3, 41 times, 1.20 ms". NULL: nobody, or not known. */
static const char *
last_of(const struct plumb_traffic_printer *t, const struct plumb_collective_fact *fact,
        char text[PLUMB_TRAFFIC_BYTES])
{
	const struct plumb_collective_fact_rank *most = NULL;
	char times[PLUMB_FORMAT_SIZE], late[PLUMB_FORMAT_SIZE];

	for (uint32_t i = 0; fact->timed && !fact->pairs && i < fact->rank_count; i++) {
		const struct plumb_collective_fact_rank *rank =
			&t->answer->collectives.ranks.items[fact->first_rank + i];

		if (rank->last && (!most || rank->late_ns > most->late_ns))
			most = rank;
	}
	if (!most)
		return NULL;
	snprintf(text, PLUMB_TRAFFIC_BYTES, "rank %" PRId64 ", %s times, %s", most->rank,
	         plumb_format_count(times, (int64_t)most->last),
	         plumb_format_time(late, most->late_ns));
	return text;
}

/* The longest waiting of a rank. */
static int64_t
most_waiting(const struct plumb_traffic_printer *t, const struct plumb_collective_fact *fact)
{
	int64_t most = PLUMB_UNKNOWN;

	for (uint32_t i = 0; fact->timed && i < fact->rank_count; i++) {
		int64_t waited = t->answer->collectives.ranks.items[fact->first_rank + i].waited_ns;

		if (waited > most)
			most = waited;
	}
	return most;
}

/* "RING SIMPLE"; NULL: not known. */
static const char *
how_of(const struct plumb_profile *p, const struct plumb_collective_fact *fact,
       char text[PLUMB_TRAFFIC_BYTES])
{
	const char *algorithm = plumb_text(p, fact->algorithm);
	const char *protocol = plumb_text(p, fact->protocol);

	snprintf(text, PLUMB_TRAFFIC_BYTES, "%.40s%s%.40s", algorithm ? algorithm : "",
	         algorithm && protocol ? " " : "", protocol ? protocol : "");
	return *text ? text : NULL;
}

static const char *
ratio(double number, char text[PLUMB_TRAFFIC_BYTES])
{
	if (isnan(number))
		return NULL;
	snprintf(text, PLUMB_TRAFFIC_BYTES, "%.2f", number);
	return text;
}

/* What they take on the links, beside what was asked. */
static void
print_physical(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "asked", PLUMB_RIGHT }, { "a rank sends", PLUMB_RIGHT },
		{ "ratio", PLUMB_RIGHT }, { "measured", PLUMB_RIGHT },
		{ "ratio", PLUMB_RIGHT }, { "operation", PLUMB_SHORTEN_MIDDLE },
		{ "how", PLUMB_LEFT },    { "link", PLUMB_SHORTEN_MIDDLE },
	};
	const struct plumb_collective_facts *facts = &t->answer->collectives;
	const struct plumb_profile *p = t->answer->profile;
	uint32_t shown = plumb_traffic_rows_shown(t, facts->items.count);
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char text[PLUMB_TRAFFIC_BYTES], words[PLUMB_LINK_WORDS];

	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_collective_fact *f = &facts->items.items[i];
		const struct plumb_traffic_physical *physical = &t->answer->physicals.items[i];
		uint32_t link = plumb_traffic_link_of_group(&t->answer->traffic, f->group);

		plumb_table_cell(table, plumb_format_bytes(text, f->bytes));
		plumb_table_cell(table,
		                 isnan(physical->sent)
		                         ? NULL
		                         : plumb_format_bytes(text, (int64_t)physical->sent));
		plumb_table_cell(table, ratio(physical->sent_ratio, text));
		plumb_table_cell(table, physical->measured.accesses
		                                ? plumb_traffic_bytes(&physical->measured, text)
		                                : NULL);
		plumb_table_cell(table, ratio(physical->measured_ratio, text));
		plumb_table_cell(table, plumb_text(p, f->operation));
		plumb_table_cell(table, how_of(p, f, text));
		plumb_table_cell(table, plumb_traffic_link_words(&t->answer->traffic, link, words));
	}
	fputs("\n what goes over the links for one call: computed for one rank, from algorithm and "
	      "protocol;\n measured for all calls, by --traffic=full\n",
	      t->out);
	plumb_traffic_end_table(t, table, facts->items.count - shown);
}

void
plumb_traffic_print_collectives(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "bytes", PLUMB_RIGHT },        { "operation", PLUMB_SHORTEN_MIDDLE },
		{ "ranks", PLUMB_RIGHT },        { "times", PLUMB_RIGHT },
		{ "how", PLUMB_LEFT },           { "algorithm", PLUMB_RIGHT },
		{ "bus", PLUMB_RIGHT },          { "of the link", PLUMB_RIGHT },
		{ "a rank waits", PLUMB_RIGHT }, { "last", PLUMB_LEFT },
	};
	const struct plumb_collective_facts *facts = &t->answer->collectives;
	const struct plumb_profile *p = t->answer->profile;
	uint32_t shown = plumb_traffic_rows_shown(t, facts->items.count);
	struct plumb_table *table;
	char text[PLUMB_TRAFFIC_BYTES];

	if (!facts->items.count) {
		if (t->answer->query.by == PLUMB_TRAFFIC_BY_COLLECTIVE)
			fputs("\nno collective operations were recorded\n", t->out);
		return;
	}
	table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_collective_fact *f = &facts->items.items[i];

		plumb_table_cell(table, plumb_format_bytes(text, f->bytes));
		plumb_table_cell(table, plumb_text(p, f->operation));
		plumb_table_cell(table, plumb_format_count(text, f->size));
		plumb_table_cell(table, plumb_format_count(text, (int64_t)f->operations));
		plumb_table_cell(table, how_of(p, f, text));
		plumb_table_cell(table, speed(f->algorithm_bandwidth, text));
		plumb_table_cell(table, speed(f->bus_bandwidth, text));
		plumb_table_cell(table,
		                 share_of_link(f->bus_bandwidth,
		                               plumb_traffic_link_bandwidth(
						       &t->answer->traffic,
						       plumb_traffic_link_of_group(
							       &t->answer->traffic, f->group)),
		                               text));
		plumb_table_cell(table, plumb_format_time(text, most_waiting(t, f)));
		plumb_table_cell(table, last_of(t, f, text));
	}
	fputs("\n collectives; bytes of one call, bandwidth by algorithm and by bus\n", t->out);
	plumb_traffic_end_table(t, table, facts->items.count - shown);
	if (t->answer->query.by == PLUMB_TRAFFIC_BY_COLLECTIVE)
		print_physical(t);
}

/* ---- routes ---- */

void
plumb_traffic_print_routes(struct plumb_traffic_printer *t)
{
	static const struct plumb_column columns[] = {
		{ "bytes", PLUMB_RIGHT },         { "accesses", PLUMB_RIGHT },
		{ "route", PLUMB_LEFT },          { "kind", PLUMB_LEFT },
		{ "copies at", PLUMB_RIGHT },     { "of the link", PLUMB_RIGHT },
		{ "link", PLUMB_SHORTEN_MIDDLE },
	};
	const struct plumb_traffic *traffic = &t->answer->traffic;
	uint32_t shown = plumb_traffic_rows_shown(t, traffic->routes.count);
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	const char *missing = plumb_traffic_links_missing(traffic);
	char text[PLUMB_TRAFFIC_BYTES], words[PLUMB_LINK_WORDS];

	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *route = &traffic->routes.items[i];
		uint32_t link = route->part[PLUMB_ROUTE_PART_LINK];
		double at = plumb_traffic_route_speed(traffic, route);

		plumb_table_cell(table, plumb_traffic_bytes(&route->sum, text));
		plumb_table_cell(table, plumb_format_count(text, (int64_t)route->sum.accesses));
		plumb_table_cell(table,
		                 plumb_traffic_route_name(route->part[PLUMB_ROUTE_PART_ROUTE]));
		plumb_table_cell(table,
		                 plumb_traffic_kind_name(route->part[PLUMB_ROUTE_PART_KIND]));
		plumb_table_cell(table, speed(at, text));
		plumb_table_cell(
			table,
			share_of_link(at, plumb_traffic_link_bandwidth(traffic, link), text));
		plumb_table_cell(table, plumb_traffic_link_words(traffic, link, words));
	}
	fputs("\n routes\n", t->out);
	plumb_traffic_end_table(t, table, traffic->routes.count - shown);
	if (missing) {
		fputs("   how the GPUs are linked is not known: ", t->out);
		plumb_text_print(t->out, missing);
		fputc('\n', t->out);
	}
}
