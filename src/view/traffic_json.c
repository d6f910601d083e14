/* SPDX-License-Identifier: Apache-2.0 */
/* plumb traffic as JSON. */
#include <math.h>
#include <stdlib.h>

#include "model/columns.h"
#include "model/user_code.h"
#include "view/ledger.h"
#include "view/view.h"

struct writer {
	const struct plumb_traffic_answer *answer;
	const struct plumb_traffic *traffic;
	const struct plumb_profile *profile;
	struct plumb_json *json;
	uint32_t left; /* so many parts may still be written of this list */
};

static void
key_unsigned(struct plumb_json *json, const char *key, uint64_t value)
{
	plumb_json_key(json, key);
	plumb_json_unsigned(json, value);
}

static void
key_id(struct plumb_json *json, const char *key, uint32_t id)
{
	plumb_json_key_quantity(json, key, id == PLUMB_NONE ? PLUMB_UNKNOWN : (int64_t)id);
}

/* A party by its place in `parties`. */
static void
key_party(const struct writer *w, const char *key, uint32_t party)
{
	key_id(w->json, key, w->traffic->index_of[party]);
}

static void
write_sum(struct plumb_json *json, const struct plumb_traffic_sum *sum)
{
	plumb_json_key_quantity(json, "bytes", sum->bytes);
	key_unsigned(json, "accesses", sum->accesses);
	plumb_json_key_quantity(json, "warps", sum->accesses ? sum->warps : PLUMB_UNKNOWN);
	plumb_json_key_number(json, "error_bytes", plumb_traffic_sum_error(sum));
}

/* ---- parts of a row ---- */

#define PARTS_LEAST 16 /* of each row, even if the list has had its share */

/* How many of COUNT parts of a row are written. */
static uint32_t
take_parts(struct writer *w, uint32_t count)
{
	uint32_t shown = count;

	if (!w->answer->query.parts)
		return count;
	if (shown > w->left)
		shown = w->left > PARTS_LEAST ? w->left : PARTS_LEAST;
	if (shown > count)
		shown = count;
	w->left -= shown < w->left ? shown : w->left;
	return shown;
}

/* After the parts: how many were left out. */
static void
key_left_out(const struct writer *w, const char *key, uint32_t left)
{
	if (w->answer->query.parts)
		key_unsigned(w->json, key, left);
}

/* The labels from the root to CONTEXT; null: not known. */
static void
write_context(const struct writer *w, uint32_t context)
{
	const struct plumb_profile *p = w->profile;
	uint32_t length = context == PLUMB_NONE ? 0 : p->contexts[context].depth, *path;

	plumb_json_key(w->json, "context");
	path = context == PLUMB_NONE ? NULL : calloc((size_t)length + 1, sizeof *path);
	if (!path) {
		plumb_json_null(w->json);
		return;
	}
	for (uint32_t i = length; i-- > 0; context = p->contexts[context].parent)
		path[i] = context;
	plumb_json_array(w->json);
	for (uint32_t i = 0; i < length; i++)
		plumb_json_text(w->json, plumb_frame_label(p, p->contexts[path[i]].frame));
	plumb_json_end(w->json);
	free(path);
}

/* user_file and user_line: the line of your code that CONTEXT is under. */
static void
write_user(const struct writer *w, uint32_t frame)
{
	struct plumb_user_place place = { 0 };

	if (frame != PLUMB_NONE)
		place = plumb_user_place(w->profile, frame);
	plumb_json_key_text(w->json, "user_file", place.file);
	plumb_json_key_line(w->json, "user_line", place.line);
	plumb_json_key_text(w->json, "user_function", place.function);
}

static uint32_t
user_of(const struct writer *w, uint32_t context)
{
	return context == PLUMB_NONE ? PLUMB_NONE : w->answer->user_of[context];
}

/* ---- who ---- */

static void
write_parties(const struct writer *w)
{
	const struct plumb_profile *p = w->profile;
	struct plumb_json *json = w->json;
	char text[PLUMB_PARTY_SIZE];

	plumb_json_key_array(json, "parties");
	for (uint32_t i = 0; i < w->traffic->party_count; i++) {
		uint32_t party = w->traffic->parties[i];
		const struct plumb_device *d = party < p->devices_count ? &p->devices[party] : NULL;

		plumb_json_object(json);
		plumb_json_key_text(json, "label", plumb_traffic_party(w->traffic, party, text));
		plumb_json_key_text(json, "kind",
		                    d                           ? "device"
		                    : party == w->traffic->host ? "host"
		                                                : "unknown");
		key_id(json, "device", d ? party : PLUMB_NONE);
		plumb_json_key_text(json, "name", d ? plumb_text(p, d->name) : NULL);
		plumb_json_key_text(json, "uuid", d ? plumb_text(p, d->uuid) : NULL);
		plumb_json_key_quantity(json, "ordinal", d ? d->ordinal : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "rank", d ? d->rank : PLUMB_UNKNOWN);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_matrix(const struct writer *w, const char *key, enum plumb_traffic_matrix which)
{
	int64_t *cells = plumb_traffic_matrix(w->traffic, which);
	uint32_t n = w->traffic->party_count;

	plumb_json_key(w->json, key);
	if (!cells) {
		plumb_json_null(w->json);
		return;
	}
	plumb_json_array(w->json);
	for (uint32_t row = 0; row < n; row++) {
		plumb_json_array(w->json);
		for (uint32_t column = 0; column < n; column++)
			plumb_json_integer(w->json, cells[(size_t)row * n + column]);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
	free(cells);
}

static void
write_ends(const struct writer *w, const struct plumb_traffic_cell *pair)
{
	key_party(w, "initiator", pair->part[PLUMB_PAIR_INITIATOR]);
	key_party(w, "owner", pair->part[PLUMB_PAIR_OWNER]);
	key_party(w, "from", pair->part[PLUMB_PAIR_FROM]);
	key_party(w, "to", pair->part[PLUMB_PAIR_TO]);
}

static void
write_pairs(const struct writer *w)
{
	const plumb_traffic_cells *pairs = &w->traffic->pairs;
	uint32_t shown = plumb_traffic_shown(&w->answer->query, pairs->count);
	uint32_t parts = w->answer->query.parts;

	if (shown < parts) /* they are short */
		shown = parts < pairs->count ? parts : pairs->count;

	plumb_json_key_array(w->json, "pairs");
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *pair = &pairs->items[i];

		plumb_json_object(w->json);
		write_ends(w, pair);
		plumb_json_key_text(w->json, "direction", plumb_traffic_direction(pair));
		plumb_json_key_text(w->json, "kind",
		                    plumb_traffic_kind_name(pair->part[PLUMB_PAIR_KIND]));
		plumb_json_key_text(w->json, "route",
		                    plumb_traffic_route_name(pair->part[PLUMB_PAIR_ROUTE]));
		write_sum(w->json, &pair->sum);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
	key_unsigned(w->json, "pairs_left_out", pairs->count - shown);
}

/* ---- objects ---- */

static void
write_uses(struct writer *w, const struct plumb_traffic_object *object)
{
	uint32_t shown = take_parts(w, object->uses.count);

	plumb_json_key_array(w->json, "uses");
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *use =
			&w->traffic->uses.items[object->uses.first + i];

		plumb_json_object(w->json);
		key_party(w, "initiator", use->part[PLUMB_USE_INITIATOR]);
		key_party(w, "other", use->part[PLUMB_USE_OTHER]);
		plumb_json_key_text(w->json, "kind",
		                    plumb_traffic_kind_name(use->part[PLUMB_USE_KIND]));
		plumb_json_key_bool(w->json, "writes", use->part[PLUMB_USE_WRITES]);
		write_sum(w->json, &use->sum);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
	key_left_out(w, "uses_left_out", object->uses.count - shown);
}

static void
write_histogram(struct writer *w, const struct plumb_traffic_object *object)
{
	uint32_t shown = take_parts(w, object->bin_count);

	plumb_json_key_array(w->json, "histogram");
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_object_bin *bin =
			&w->profile->object_bins[object->first_bin + i];

		plumb_json_object(w->json);
		key_party(w, "initiator",
		          bin->device == PLUMB_NONE ? w->traffic->unknown : bin->device);
		plumb_json_key_text(w->json, "kind", plumb_traffic_kind_name(bin->kind));
		plumb_json_key_quantity(w->json, "offset", bin->offset);
		plumb_json_key_quantity(w->json, "width", bin->width);
		key_unsigned(w->json, "accesses", bin->accesses);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
	key_left_out(w, "histogram_left_out", object->bin_count - shown);
}

static void
write_object(struct writer *w, const struct plumb_traffic_object *object)
{
	const struct plumb_profile *p = w->profile;
	const struct plumb_object *o = &p->objects[object->object];
	struct plumb_json *json = w->json;
	char text[PLUMB_OBJECT_LABEL];
	bool known = o->touched_bytes >= 0 && o->touchable_bytes > 0;

	plumb_json_object(json);
	key_id(json, "id", object->object);
	plumb_json_key_text(
		json, "label",
		plumb_traffic_object_label(w->traffic, w->answer->user_of, object->object, text));
	plumb_json_key_text(json, "name", plumb_text(p, o->name));
	plumb_json_key_text(json, "kind",
	                    o->kind < PLUMB_OBJECT_KIND_COUNT ? plumb_object_kind_names[o->kind]
	                                                      : NULL);
	key_party(w, "owner", plumb_traffic_owner(w->traffic, object->object));
	plumb_json_key_quantity(json, "pid",
	                        o->process == PLUMB_NONE ? PLUMB_UNKNOWN
	                                                 : p->processes[o->process].pid);
	key_id(json, "within", o->within);
	plumb_json_key_text(
		json, "allocated_at",
		*plumb_traffic_allocated_at(w->traffic, w->answer->user_of, object->object, text)
			? text
			: NULL);
	write_user(w, user_of(w, o->context));
	write_context(w, o->context);
	key_unsigned(json, "allocations", o->allocations);
	plumb_json_key_quantity(json, "bytes", o->bytes);
	plumb_json_key_quantity(json, "most_bytes", o->most);
	plumb_json_key_quantity(json, "touched_bytes", o->touched_bytes);
	plumb_json_key_quantity(json, "touchable_bytes", o->touchable_bytes);
	plumb_json_key_number(json, "touched_share",
	                      known ? (double)o->touched_bytes / (double)o->touchable_bytes : NAN);
	plumb_json_key_quantity(json, "read_bytes", object->read.bytes);
	plumb_json_key_quantity(json, "written_bytes", object->written.bytes);
	key_unsigned(json, "accesses", object->uses.sum.accesses);
	plumb_json_key_number(json, "error_bytes", plumb_traffic_sum_error(&object->uses.sum));
	write_uses(w, object);
	write_histogram(w, object);
	plumb_json_end(json);
}

static void
write_objects(struct writer *w)
{
	uint32_t count = w->traffic->objects.count;
	uint32_t shown = plumb_traffic_shown(&w->answer->query, count);

	w->left = w->answer->query.parts;
	plumb_json_key_array(w->json, "objects");
	for (uint32_t i = 0; i < shown; i++)
		write_object(w, &w->traffic->objects.items[i]);
	plumb_json_end(w->json);
	key_unsigned(w->json, "objects_left_out", count - shown);
}

/* ---- lines ---- */

static void
write_inlined(const struct writer *w, const struct plumb_traffic_place *place)
{
	const struct plumb_profile *p = w->profile;

	plumb_json_key_array(w->json, "inlined");
	for (uint32_t i = 1; i < place->line_count; i++) {
		const struct plumb_code_line *line = &p->code_lines[place->first_line + i];

		plumb_json_object(w->json);
		plumb_json_key_text(w->json, "function", plumb_text(p, line[-1].inlined));
		plumb_json_key_text(w->json, "file", plumb_text(p, line->file));
		plumb_json_key_line(w->json, "line", line->line);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
}

static void
write_moves(struct writer *w, const struct plumb_traffic_range *range)
{
	uint32_t shown = take_parts(w, range->count);

	plumb_json_key_array(w->json, "moves");
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *move = &w->traffic->moves.items[range->first + i];

		plumb_json_object(w->json);
		key_party(w, "initiator", move->part[PLUMB_MOVE_INITIATOR]);
		key_party(w, "owner", move->part[PLUMB_MOVE_OWNER]);
		key_party(w, "from", move->part[PLUMB_MOVE_FROM]);
		key_party(w, "to", move->part[PLUMB_MOVE_TO]);
		plumb_json_key_text(w->json, "kind",
		                    plumb_traffic_kind_name(move->part[PLUMB_MOVE_KIND]));
		key_id(w->json, "object", move->part[PLUMB_MOVE_OBJECT]);
		write_sum(w->json, &move->sum);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
	key_left_out(w, "moves_left_out", range->count - shown);
}

static void
write_instructions(struct writer *w, const struct plumb_traffic_range *range)
{
	const struct plumb_profile *p = w->profile;
	uint32_t shown = take_parts(w, range->count);

	plumb_json_key_array(w->json, "instructions");
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *insn =
			&w->traffic->instructions.items[range->first + i];
		uint32_t function = insn->part[PLUMB_INSTRUCTION_FUNCTION];

		plumb_json_object(w->json);
		plumb_json_key_text(w->json, "function",
		                    plumb_text(p, p->code_functions[function].name));
		key_id(w->json, "offset", insn->part[PLUMB_INSTRUCTION_OFFSET]);
		plumb_json_key_text(w->json, "kind",
		                    plumb_traffic_kind_name(insn->part[PLUMB_INSTRUCTION_KIND]));
		key_id(w->json, "width", insn->part[PLUMB_INSTRUCTION_WIDTH]);
		write_sum(w->json, &insn->sum);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
	key_left_out(w, "instructions_left_out", range->count - shown);
}

static void
write_line(struct writer *w, const struct plumb_traffic_place *place)
{
	const struct plumb_profile *p = w->profile;
	const struct plumb_code_line *line =
		place->line_count ? &p->code_lines[place->first_line] : NULL;
	const struct plumb_traffic_sum *sum = &place->moves.sum;
	struct plumb_json *json = w->json;
	char text[PLUMB_OBJECT_LABEL];

	plumb_json_object(json);
	plumb_json_key_text(json, "label", plumb_traffic_place_text(w->traffic, place, text));
	plumb_json_key_text(json, "file", line ? plumb_text(p, line->file) : NULL);
	plumb_json_key_line(json, "line", line ? line->line : 0);
	write_inlined(w, place);
	plumb_json_key_text(json, "function",
	                    place->function == PLUMB_NONE
	                            ? NULL
	                            : plumb_text(p, p->code_functions[place->function].name));
	plumb_json_key_text(json, "frame",
	                    place->frame == PLUMB_NONE ? NULL : plumb_frame_label(p, place->frame));
	write_user(w, place->user);
	write_context(w, place->context);
	write_sum(json, sum);
	plumb_json_key_number(json, "lanes_per_warp",
	                      sum->warps > 0 ? (double)sum->accesses / (double)sum->warps : NAN);
	write_moves(w, &place->moves);
	write_instructions(w, &place->instructions);
	plumb_json_end(json);
}

static void
write_lines(struct writer *w)
{
	uint32_t count = w->traffic->places.count;
	uint32_t shown = plumb_traffic_shown(&w->answer->query, count);

	w->left = w->answer->query.parts;
	plumb_json_key_array(w->json, "lines");
	for (uint32_t i = 0; i < shown; i++)
		write_line(w, &w->traffic->places.items[i]);
	plumb_json_end(w->json);
	key_unsigned(w->json, "lines_left_out", count - shown);
}

/* ---- kernels and routes ---- */

static void
write_kernel(struct writer *w, const struct plumb_traffic_kernel *kernel)
{
	struct plumb_json *json = w->json;
	char *name = plumb_traffic_kernel_name(w->answer, kernel);
	uint32_t shown = take_parts(w, kernel->moves.count);

	plumb_json_object(json);
	plumb_json_key_text(json, "name", name);
	free(name);
	plumb_json_key_text(json, "mangled", plumb_text(w->profile, kernel->name));
	write_user(w, user_of(w, kernel->context));
	write_context(w, kernel->context);
	plumb_json_key_quantity(json, "launches", kernel->launches);
	plumb_json_key_quantity(json, "gpu_ns", kernel->gpu_ns);
	write_sum(json, &kernel->moves.sum);
	plumb_json_key_array(json, "moves");
	for (uint32_t i = 0; i < shown; i++) {
		const struct plumb_traffic_cell *move =
			&w->traffic->kernel_moves.items[kernel->moves.first + i];

		plumb_json_object(json);
		key_party(w, "initiator", move->part[PLUMB_KERNEL_MOVE_INITIATOR]);
		key_party(w, "owner", move->part[PLUMB_KERNEL_MOVE_OWNER]);
		plumb_json_key_text(json, "kind",
		                    plumb_traffic_kind_name(move->part[PLUMB_KERNEL_MOVE_KIND]));
		write_sum(json, &move->sum);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	key_left_out(w, "moves_left_out", kernel->moves.count - shown);
	plumb_json_end(json);
}

static void
write_kernels(struct writer *w)
{
	uint32_t count = w->traffic->kernels.count;
	uint32_t shown = plumb_traffic_shown(&w->answer->query, count);

	w->left = w->answer->query.parts;
	plumb_json_key_array(w->json, "kernels");
	for (uint32_t i = 0; i < shown; i++)
		write_kernel(w, &w->traffic->kernels.items[i]);
	plumb_json_end(w->json);
	key_unsigned(w->json, "kernels_left_out", count - shown);
}

/* A speed, and which part of the link's bandwidth that is. */
static void
write_use(struct plumb_json *json, const char *key, double speed, double bandwidth)
{
	plumb_json_key_number(json, key, speed);
	plumb_json_key_number(json, "link_bytes_per_second", bandwidth);
	plumb_json_key_number(json, "link_share", speed / bandwidth);
}

static void
write_direction(const struct writer *w, const char *key, const struct plumb_traffic_link *link,
                int back)
{
	double speed = plumb_traffic_link_speed(link, back);
	double bandwidth = plumb_traffic_link_bandwidth(w->traffic,
	                                                (uint32_t)(link - w->traffic->links.items));

	plumb_json_key_object(w->json, key);
	plumb_json_key_quantity(w->json, "copied_bytes",
	                        link->copy_ns[back] ? link->copied[back] : PLUMB_UNKNOWN);
	plumb_json_key_quantity(w->json, "copy_ns",
	                        link->copy_ns[back] ? link->copy_ns[back] : PLUMB_UNKNOWN);
	plumb_json_key_number(w->json, "speed", speed);
	plumb_json_key_number(w->json, "link_share", speed / bandwidth);
	plumb_json_end(w->json);
}

/* Between those that take part. */
static void
write_links(const struct writer *w)
{
	struct plumb_json *json = w->json;
	char text[PLUMB_LINK_WORDS];

	plumb_json_key_array(json, "links");
	for (uint32_t i = 0; i < w->traffic->links.count; i++) {
		const struct plumb_traffic_link *link = &w->traffic->links.items[i];
		const struct plumb_device_link *row = plumb_traffic_link_row(w->traffic, i);

		if (w->traffic->index_of[link->one] == PLUMB_NONE ||
		    w->traffic->index_of[link->other] == PLUMB_NONE)
			continue;
		plumb_json_object(json);
		key_party(w, "one", link->one);
		key_party(w, "other", link->other);
		plumb_json_key_text(json, "label", plumb_traffic_link_words(w->traffic, i, text));
		plumb_json_key_text(json, "kind", plumb_link_kind_names[row->kind]);
		plumb_json_key_text(json, "path", plumb_text(w->profile, row->path));
		plumb_json_key_quantity(json, "links", row->links);
		plumb_json_key_quantity(json, "generation", row->generation);
		plumb_json_key_quantity(json, "bytes_per_second", row->bytes_per_second);
		plumb_json_key(json, "peer_access");
		if (row->peer_access < 0)
			plumb_json_null(json);
		else
			plumb_json_bool(json, row->peer_access);
		write_direction(w, "there", link, 0);
		write_direction(w, "back", link, 1);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key_text(json, "links_missing", plumb_traffic_links_missing(w->traffic));
}

static void
write_routes(const struct writer *w)
{
	char text[PLUMB_LINK_WORDS];

	plumb_json_key_array(w->json, "routes");
	for (uint32_t i = 0; i < w->traffic->routes.count; i++) {
		const struct plumb_traffic_cell *route = &w->traffic->routes.items[i];

		plumb_json_object(w->json);
		plumb_json_key_text(w->json, "route",
		                    plumb_traffic_route_name(route->part[PLUMB_ROUTE_PART_ROUTE]));
		plumb_json_key_text(w->json, "kind",
		                    plumb_traffic_kind_name(route->part[PLUMB_ROUTE_PART_KIND]));
		plumb_json_key_text(w->json, "link",
		                    plumb_traffic_link_words(
					    w->traffic, route->part[PLUMB_ROUTE_PART_LINK], text));
		write_sum(w->json, &route->sum);
		write_use(w->json, "speed", plumb_traffic_route_speed(w->traffic, route),
		          plumb_traffic_link_bandwidth(w->traffic,
		                                       route->part[PLUMB_ROUTE_PART_LINK]));
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
}

/* ---- what was not seen, and what it is of ---- */

static void
write_coverage(const struct writer *w)
{
	const struct plumb_profile *p = w->profile;
	char text[PLUMB_LEDGER_REASON_SIZE];

	plumb_json_key_array(w->json, "coverage");
	for (uint32_t i = 0; i < p->ledger_count; i++) {
		const struct plumb_ledger_row *row = &p->ledger[i];

		if (!plumb_traffic_ledger_is(p, row))
			continue;
		plumb_json_object(w->json);
		plumb_json_key_text(w->json, "source", plumb_source_names[row->source]);
		plumb_json_key_text(w->json, "fate", plumb_fate_names[row->fate]);
		plumb_json_key_text(w->json, "reason", plumb_ledger_reason(p, row, text));
		plumb_json_key_text(w->json, "unit", plumb_source_units[row->source]);
		plumb_json_key_bool(w->json, "seen", !plumb_fate_is_drop[row->fate]);
		plumb_json_key_quantity(w->json, "count", row->count);
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
}

static void
write_environment(const struct writer *w)
{
	const struct plumb_profile *p = w->profile;

	plumb_json_key_array(w->json, "environment");
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const struct plumb_environment_row *row = &p->environment[i];

		if (!plumb_traffic_environment_is(p, row))
			continue;
		plumb_json_object(w->json);
		plumb_json_key_quantity(w->json, "pid",
		                        row->process == PLUMB_NONE
		                                ? PLUMB_UNKNOWN
		                                : p->processes[row->process].pid);
		plumb_json_key_text(w->json, "key", plumb_text(p, row->key));
		plumb_json_key_text(w->json, "value", plumb_text(p, row->value));
		plumb_json_end(w->json);
	}
	plumb_json_end(w->json);
}

static void
write_findings(const struct writer *w)
{
	plumb_json_key_array(w->json, "findings");
	for (uint32_t i = 0; i < w->profile->findings_count; i++)
		if (plumb_traffic_finding_is(w->profile, i))
			plumb_finding_json(w->profile, i, w->json);
	plumb_json_end(w->json);
}

static void
write_total(const struct writer *w, const char *key, const struct plumb_traffic_sum *sum)
{
	plumb_json_key_object(w->json, key);
	write_sum(w->json, sum);
	plumb_json_end(w->json);
}

void
plumb_traffic_json(const struct plumb_traffic_answer *answer, struct plumb_json *json)
{
	struct writer w = { answer, &answer->traffic, answer->profile, json, 0 };

	plumb_json_key_text(json, "mode", plumb_traffic_mode(answer->profile));
	plumb_json_key_object(json, "totals");
	write_total(&w, "kernels", &answer->traffic.in_kernels);
	write_total(&w, "copies", &answer->traffic.copies);
	write_total(&w, "logical", &answer->traffic.logical);
	plumb_json_end(json);
	write_parties(&w);
	plumb_json_key_object(json, "matrices");
	write_matrix(&w, "initiated", PLUMB_MATRIX_INITIATED);
	write_matrix(&w, "flow", PLUMB_MATRIX_FLOW);
	write_matrix(&w, "logical", PLUMB_MATRIX_LOGICAL);
	plumb_json_end(json);
	write_findings(&w);
	write_pairs(&w);
	write_objects(&w);
	write_lines(&w);
	write_kernels(&w);
	plumb_traffic_collectives_json(answer, json);
	write_routes(&w);
	write_links(&w);
	write_coverage(&w);
	write_environment(&w);
	plumb_traffic_join_json(answer, json);
}
