/* SPDX-License-Identifier: Apache-2.0 */
/* plumb traffic as rows, for CSV and binary columns. */
#include <math.h>
#include <stdlib.h>

#include "model/user_code.h"
#include "view/view.h"

#define MEASURED PLUMB_SOURCE_IS_MEASURED
#define DERIVED PLUMB_SOURCE_IS_DERIVED

struct column {
	const char *name, *unit;
	enum plumb_answer_source source;
};

static void
add_columns(struct plumb_answer *out, const struct column *columns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		plumb_answer_column(out, columns[i].name, columns[i].unit, columns[i].source);
}
#define ADD_COLUMNS(out, columns) add_columns(out, columns, sizeof(columns) / sizeof *(columns))

static void
add_party(struct plumb_answer *out, const struct plumb_traffic *traffic, uint32_t party)
{
	char text[PLUMB_PARTY_SIZE];

	plumb_answer_copy(out, plumb_traffic_party(traffic, party, text));
}

static void
add_count(struct plumb_answer *out, uint64_t count)
{
	plumb_answer_integer(out, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

#define SUM_COLUMNS                                                                                \
	{ "bytes", "byte", MEASURED }, { "accesses", "count", MEASURED },                          \
		{ "warps", "count", MEASURED },                                                    \
	{                                                                                          \
		"error_bytes", "byte", DERIVED                                                     \
	}

static void
add_sum(struct plumb_answer *out, const struct plumb_traffic_sum *sum)
{
	plumb_answer_integer(out, sum->bytes);
	add_count(out, sum->accesses);
	plumb_answer_integer(out, sum->accesses ? sum->warps : PLUMB_UNKNOWN);
	plumb_answer_number(out, plumb_traffic_sum_error(sum));
}

static void
add_user(struct plumb_answer *out, const struct plumb_profile *p, uint32_t frame)
{
	struct plumb_user_place place = { 0 };

	if (frame != PLUMB_NONE)
		place = plumb_user_place(p, frame);
	plumb_answer_text(out, place.file);
	plumb_answer_integer(out, place.line ? (int64_t)place.line : PLUMB_UNKNOWN);
}

/* ---- lists ---- */

static void
make_pairs(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	static const struct column columns[] = {
		{ "initiator", NULL, MEASURED }, { "owner", NULL, MEASURED },
		{ "from", NULL, MEASURED },      { "to", NULL, MEASURED },
		{ "direction", NULL, MEASURED }, { "kind", NULL, MEASURED },
		{ "route", NULL, MEASURED },     SUM_COLUMNS,
	};
	const struct plumb_traffic *traffic = &answer->traffic;
	uint32_t shown = plumb_traffic_shown(&answer->query, traffic->pairs.count);

	out->title = "pairs of devices";
	ADD_COLUMNS(out, columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *pair = &traffic->pairs.items[i];

		add_party(out, traffic, pair->part[PLUMB_PAIR_INITIATOR]);
		add_party(out, traffic, pair->part[PLUMB_PAIR_OWNER]);
		add_party(out, traffic, pair->part[PLUMB_PAIR_FROM]);
		add_party(out, traffic, pair->part[PLUMB_PAIR_TO]);
		plumb_answer_text(out, plumb_traffic_direction(pair));
		plumb_answer_text(out, plumb_traffic_kind_name(pair->part[PLUMB_PAIR_KIND]));
		plumb_answer_text(out, plumb_traffic_route_name(pair->part[PLUMB_PAIR_ROUTE]));
		add_sum(out, &pair->sum);
	}
}

static void
make_objects(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	static const struct column columns[] = {
		{ "object", NULL, MEASURED },
		{ "label", NULL, MEASURED },
		{ "kind", NULL, MEASURED },
		{ "owner", NULL, MEASURED },
		{ "user_file", NULL, MEASURED },
		{ "user_line", NULL, MEASURED },
		{ "allocations", "count", MEASURED },
		{ "allocated_bytes", "byte", MEASURED },
		{ "most_bytes", "byte", MEASURED },
		{ "touched_bytes", "byte", MEASURED },
		{ "touchable_bytes", "byte", MEASURED },
		{ "read_bytes", "byte", MEASURED },
		{ "written_bytes", "byte", MEASURED },
		{ "accesses", "count", MEASURED },
		{ "error_bytes", "byte", DERIVED },
	};
	const struct plumb_traffic *traffic = &answer->traffic;
	const struct plumb_profile *p = answer->profile;
	uint32_t shown = plumb_traffic_shown(&answer->query, traffic->objects.count);
	char text[PLUMB_OBJECT_LABEL];

	out->title = "objects";
	ADD_COLUMNS(out, columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_object *object = &traffic->objects.items[i];
		const struct plumb_object *o = &p->objects[object->object];

		plumb_answer_integer(out, object->object);
		plumb_answer_copy(out, plumb_traffic_object_label(traffic, answer->user_of,
		                                                  object->object, text));
		plumb_answer_text(out, o->kind < PLUMB_OBJECT_KIND_COUNT
		                               ? plumb_object_kind_names[o->kind]
		                               : NULL);
		add_party(out, traffic, plumb_traffic_owner(traffic, object->object));
		add_user(out, p,
		         o->context == PLUMB_NONE ? PLUMB_NONE : answer->user_of[o->context]);
		add_count(out, o->allocations);
		plumb_answer_integer(out, o->bytes);
		plumb_answer_integer(out, o->most);
		plumb_answer_integer(out, o->touched_bytes);
		plumb_answer_integer(out, o->touchable_bytes);
		plumb_answer_integer(out, object->read.bytes);
		plumb_answer_integer(out, object->written.bytes);
		add_count(out, object->uses.sum.accesses);
		plumb_answer_number(out, plumb_traffic_sum_error(&object->uses.sum));
	}
}

static void
make_lines(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	static const struct column columns[] = {
		{ "line", NULL, MEASURED },
		{ "user_file", NULL, MEASURED },
		{ "user_line", NULL, MEASURED },
		{ "function", NULL, MEASURED },
		{ "initiator", NULL, MEASURED },
		{ "owner", NULL, MEASURED },
		{ "from", NULL, MEASURED },
		{ "to", NULL, MEASURED },
		{ "kind", NULL, MEASURED },
		{ "object", NULL, MEASURED },
		SUM_COLUMNS,
	};
	const struct plumb_traffic *traffic = &answer->traffic;
	const struct plumb_profile *p = answer->profile;
	uint32_t shown = plumb_traffic_shown(&answer->query, traffic->places.count);
	char text[PLUMB_OBJECT_LABEL];

	out->title = "lines";
	ADD_COLUMNS(out, columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_place *place = &traffic->places.items[i];

		for (uint32_t m = 0; m < place->moves.count; m++) {
			const struct plumb_traffic_cell *move =
				&traffic->moves.items[place->moves.first + m];
			uint32_t object = move->part[PLUMB_MOVE_OBJECT];

			plumb_answer_copy(out, plumb_traffic_place_text(traffic, place, text));
			add_user(out, p, place->user);
			plumb_answer_text(
				out,
				place->function == PLUMB_NONE
					? NULL
					: plumb_text(p, p->code_functions[place->function].name));
			add_party(out, traffic, move->part[PLUMB_MOVE_INITIATOR]);
			add_party(out, traffic, move->part[PLUMB_MOVE_OWNER]);
			add_party(out, traffic, move->part[PLUMB_MOVE_FROM]);
			add_party(out, traffic, move->part[PLUMB_MOVE_TO]);
			plumb_answer_text(out,
			                  plumb_traffic_kind_name(move->part[PLUMB_MOVE_KIND]));
			plumb_answer_copy(out, object == PLUMB_NONE
			                               ? NULL
			                               : plumb_traffic_object_label(traffic,
			                                                            answer->user_of,
			                                                            object, text));
			add_sum(out, &move->sum);
		}
	}
}

static void
make_kernels(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	static const struct column columns[] = {
		{ "kernel", NULL, MEASURED },
		{ "user_file", NULL, MEASURED },
		{ "user_line", NULL, MEASURED },
		{ "launches", "count", MEASURED },
		{ "gpu_ns", "ns", MEASURED },
		{ "initiator", NULL, MEASURED },
		{ "owner", NULL, MEASURED },
		{ "kind", NULL, MEASURED },
		SUM_COLUMNS,
	};
	const struct plumb_traffic *traffic = &answer->traffic;
	uint32_t shown = plumb_traffic_shown(&answer->query, traffic->kernels.count);

	out->title = "kernels";
	ADD_COLUMNS(out, columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_kernel *k = &traffic->kernels.items[i];
		char *name = plumb_traffic_kernel_name(answer, k);

		for (uint32_t m = 0; m < k->moves.count; m++) {
			const struct plumb_traffic_cell *move =
				&traffic->kernel_moves.items[k->moves.first + m];

			plumb_answer_copy(out, name);
			add_user(out, answer->profile,
			         k->context == PLUMB_NONE ? PLUMB_NONE
			                                  : answer->user_of[k->context]);
			plumb_answer_integer(out, k->launches);
			plumb_answer_integer(out, k->gpu_ns);
			add_party(out, traffic, move->part[PLUMB_KERNEL_MOVE_INITIATOR]);
			add_party(out, traffic, move->part[PLUMB_KERNEL_MOVE_OWNER]);
			plumb_answer_text(
				out, plumb_traffic_kind_name(move->part[PLUMB_KERNEL_MOVE_KIND]));
			add_sum(out, &move->sum);
		}
		free(name);
	}
}

static void
make_collectives(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	static const struct column columns[] = {
		{ "collective", NULL, MEASURED },
		{ "group", NULL, MEASURED },
		{ "size", "count", MEASURED },
		{ "datatype", NULL, MEASURED },
		{ "algorithm", NULL, MEASURED },
		{ "protocol", NULL, MEASURED },
		{ "count", "count", MEASURED },
		{ "bytes", "byte", MEASURED },
		{ "algbw", "byte/s", DERIVED },
		{ "busbw", "byte/s", DERIVED },
		{ "rank", NULL, MEASURED },
		{ "calls", "count", MEASURED },
		{ "wait_ns", "ns", DERIVED },
		{ "last", "count", DERIVED },
		{ "late_ns", "ns", DERIVED },
		{ "link", NULL, MEASURED },
		{ "link_bytes_per_second", "byte/s", MEASURED },
		{ "sent_bytes", "byte", DERIVED },
		{ "measured_bytes", "byte", MEASURED },
	};
	char text[PLUMB_LINK_WORDS];
	const struct plumb_collective_facts *facts = &answer->collectives;
	const struct plumb_profile *p = answer->profile;
	uint32_t shown = plumb_traffic_shown(&answer->query, facts->items.count);

	out->title = "collectives";
	ADD_COLUMNS(out, columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_collective_fact *f = &facts->items.items[i];
		const struct plumb_traffic_physical *physical = &answer->physicals.items[i];
		uint32_t link = plumb_traffic_link_of_group(&answer->traffic, f->group);

		for (uint32_t r = 0; r < f->rank_count; r++) {
			const struct plumb_collective_fact_rank *rank =
				&facts->ranks.items[f->first_rank + r];
			bool late = f->timed && !f->pairs;

			plumb_answer_text(out, plumb_text(p, f->operation));
			plumb_answer_text(out, plumb_text(p, f->group));
			plumb_answer_integer(out, f->size);
			plumb_answer_text(out, plumb_text(p, f->datatype));
			plumb_answer_text(out, plumb_text(p, f->algorithm));
			plumb_answer_text(out, plumb_text(p, f->protocol));
			add_count(out, f->operations);
			plumb_answer_integer(out, f->bytes);
			plumb_answer_number(out, f->algorithm_bandwidth);
			plumb_answer_number(out, f->bus_bandwidth);
			plumb_answer_integer(out, rank->rank);
			add_count(out, rank->calls);
			plumb_answer_integer(out, f->timed ? rank->waited_ns : PLUMB_UNKNOWN);
			plumb_answer_integer(out, late ? (int64_t)rank->last : PLUMB_UNKNOWN);
			plumb_answer_integer(out, late ? rank->late_ns : PLUMB_UNKNOWN);
			plumb_answer_copy(out,
			                  plumb_traffic_link_words(&answer->traffic, link, text));
			plumb_answer_number(out,
			                    plumb_traffic_link_bandwidth(&answer->traffic, link));
			plumb_answer_number(out, physical->sent);
			plumb_answer_integer(out, physical->measured.accesses
			                                  ? physical->measured.bytes
			                                  : PLUMB_UNKNOWN);
		}
	}
}

static void
make_routes(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	static const struct column columns[] = {
		{ "route", NULL, MEASURED },    { "kind", NULL, MEASURED },
		{ "link", NULL, MEASURED },     SUM_COLUMNS,
		{ "speed", "byte/s", DERIVED }, { "link_bytes_per_second", "byte/s", MEASURED },
	};
	const struct plumb_traffic *traffic = &answer->traffic;
	char text[PLUMB_LINK_WORDS];

	out->title = "routes";
	ADD_COLUMNS(out, columns);
	for (uint32_t i = 0; i < answer->traffic.routes.count; i++) {
		const struct plumb_traffic_cell *route = &answer->traffic.routes.items[i];

		plumb_answer_text(out,
		                  plumb_traffic_route_name(route->part[PLUMB_ROUTE_PART_ROUTE]));
		plumb_answer_text(out, plumb_traffic_kind_name(route->part[PLUMB_ROUTE_PART_KIND]));
		plumb_answer_copy(out, plumb_traffic_link_words(
					       traffic, route->part[PLUMB_ROUTE_PART_LINK], text));
		add_sum(out, &route->sum);
		plumb_answer_number(out, plumb_traffic_route_speed(traffic, route));
		plumb_answer_number(out, plumb_traffic_link_bandwidth(
						 traffic, route->part[PLUMB_ROUTE_PART_LINK]));
	}
}

static const struct column wait_columns[] = {
	{ "kernel", NULL, MEASURED },
	{ "access_function", NULL, MEASURED },
	{ "access_offset", "byte", MEASURED },
	{ "stall_offset", "byte", MEASURED },
	{ "reason", NULL, MEASURED },
	{ "samples", "count", MEASURED },
	{ "share", NULL, DERIVED },
	{ "part_ns", "ns", DERIVED },
	{ "initiator", NULL, MEASURED },
	{ "owner", NULL, MEASURED },
	{ "kind", NULL, MEASURED },
	{ "object", NULL, MEASURED },
	{ "allocated_at", NULL, MEASURED },
	{ "bytes", "byte", MEASURED },
	{ "confidence", NULL, DERIVED },
	{ "summary", NULL, DERIVED },
};

static void
make_waits(const struct plumb_traffic_answer *answer, struct plumb_answer *out)
{
	const struct plumb_traffic_join *join = &answer->join;
	const struct plumb_profile *p = join->stalls;
	uint32_t shown = plumb_traffic_shown(&answer->query, join->waits.count);

	out->title = "stalls that wait for traffic";
	ADD_COLUMNS(out, wait_columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_wait *w = &join->waits.items[i];
		char label[PLUMB_OBJECT_LABEL], at[PLUMB_OBJECT_LABEL] = "";
		char text[PLUMB_WAIT_SENTENCE];
		bool known = w->object != PLUMB_NONE;

		if (known)
			plumb_traffic_allocated_at(&answer->traffic, answer->user_of, w->object,
			                           at);
		plumb_answer_text(
			out,
			plumb_text(
				p,
				p->code_functions[join->kernels.items[w->kernel].function].name));
		plumb_answer_text(out, plumb_text(p, p->code_functions[w->function].name));
		plumb_answer_integer(out, w->offset);
		plumb_answer_integer(out, w->stall_offset);
		plumb_answer_text(out, w->reason);
		add_count(out, w->samples);
		plumb_answer_number(out, w->share);
		plumb_answer_integer(out, w->part_ns);
		add_party(out, &answer->traffic, w->initiator);
		add_party(out, &answer->traffic, w->owner);
		plumb_answer_text(out, plumb_traffic_kind_name(w->kind));
		plumb_answer_copy(out, known ? plumb_traffic_object_label(&answer->traffic,
		                                                          answer->user_of,
		                                                          w->object, label)
		                             : NULL);
		plumb_answer_copy(out, *at ? at : NULL);
		plumb_answer_integer(out, w->sum.bytes);
		plumb_answer_number(out, w->confidence);
		plumb_answer_copy(out, plumb_traffic_wait_sentence(answer, w, text, sizeof text));
	}
}

/* ---- all of it ---- */

static int
make_rows(const struct plumb_traffic_answer *answer, struct plumb_answer *out,
          struct plumb_error *error)
{
	static void (*const makers[])(const struct plumb_traffic_answer *,
	                              struct plumb_answer *) = {
		[PLUMB_TRAFFIC_BY_PAIR] = make_pairs,
		[PLUMB_TRAFFIC_BY_OBJECT] = make_objects,
		[PLUMB_TRAFFIC_BY_LINE] = make_lines,
		[PLUMB_TRAFFIC_BY_KERNEL] = make_kernels,
		[PLUMB_TRAFFIC_BY_COLLECTIVE] = make_collectives,
		[PLUMB_TRAFFIC_BY_ROUTE] = make_routes,
	};

	*out = (struct plumb_answer){ .id = "traffic" };
	if (answer->join.stalls)
		make_waits(answer, out);
	else
		makers[answer->query.by](answer, out);
	return plumb_answer_end(out, error);
}

int
plumb_traffic_write(const struct plumb_traffic_answer *answer, enum plumb_view_format format,
                    FILE *out, struct plumb_error *error)
{
	struct plumb_answer rows;
	struct plumb_json *json;
	int code;

	if (format == PLUMB_VIEW_JSON) {
		json = plumb_view_json_new(out, "traffic");
		plumb_traffic_json(answer, json);
		plumb_json_end(json);
		if (plumb_json_finish(json) < 0 || ferror(out))
			return plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
		return 0;
	}
	code = make_rows(answer, &rows, error);
	if (code)
		return code;
	code = plumb_view_answer(&rows, format, out, error);
	plumb_answer_free(&rows);
	return code;
}

int
plumb_view_traffic(const struct plumb_profile *profile, const struct plumb_traffic_query *query,
                   enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_traffic_answer answer;
	int code = plumb_traffic_answer_make(profile, query, &answer, error);

	if (code)
		return code;
	code = plumb_traffic_write(&answer, format, out, error);
	plumb_traffic_answer_free(&answer);
	return code;
}
