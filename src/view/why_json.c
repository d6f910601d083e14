/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/view.h"

#define EDGES_MOST 64 /* dependences of one instruction */

static const char *const via_names[] = {
	[PLUMB_HOP_REGISTER] = "register", [PLUMB_HOP_COUNTER] = "counter",
	[PLUMB_HOP_SPILL] = "spill",       [PLUMB_HOP_SHARED] = "shared memory",
	[PLUMB_HOP_CALL] = "call",         [PLUMB_HOP_CONTROL] = "control",
};
static const char *const space_names[] = {
	[PLUMB_SPACE_GLOBAL] = "global",   [PLUMB_SPACE_LOCAL] = "local",
	[PLUMB_SPACE_SHARED] = "shared",   [PLUMB_SPACE_CONSTANT] = "constant",
	[PLUMB_SPACE_GENERIC] = "generic", [PLUMB_SPACE_DISTRIBUTED] = "distributed",
};

#define NAME_OF(names, number)                                                                     \
	((size_t)(number) < sizeof(names) / sizeof *(names) ? (names)[number] : NULL)

const char *
plumb_why_via_name(unsigned via)
{
	return NAME_OF(via_names, via);
}

const char *
plumb_why_space_name(unsigned space)
{
	return NAME_OF(space_names, space);
}

static void
write_unsigned(struct plumb_json *json, const char *key, uint64_t value)
{
	plumb_json_key(json, key);
	plumb_json_unsigned(json, value);
}

uint32_t
plumb_why_number(const struct plumb_kernel_code *code, uint32_t function, uint32_t insn)
{
	for (uint32_t f = 0; f < function; f++)
		insn += code->insns[f].count;
	return insn;
}

void
plumb_why_place_json(const struct plumb_kernel_code *code, uint32_t function, int64_t offset,
                     struct plumb_json *json)
{
	const struct plumb_profile *p = code->profile;
	uint32_t count = 0, own;
	const struct plumb_code_line *lines =
		plumb_code_lines_at(p, code->rows[function], offset, &count);

	own = plumb_code_own_line(p, lines, count);
	plumb_json_key_quantity(json, "offset", offset);
	plumb_json_key_text(json, "function",
	                    plumb_text(p, p->code_functions[code->rows[function]].name));
	plumb_json_key_text(json, "file", lines ? plumb_text(p, lines[own].file) : NULL);
	plumb_json_key_line(json, "line", lines ? lines[own].line : 0);
	plumb_json_key_text(json, "library_file", own ? plumb_text(p, lines->file) : NULL);
	plumb_json_key_line(json, "library_line", own ? lines->line : 0);
	plumb_json_key_array(json, "inlined");
	for (uint32_t i = own + 1; i < count; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "function", plumb_text(p, lines[i - 1].inlined));
		plumb_json_key_text(json, "file", plumb_text(p, lines[i].file));
		plumb_json_key_line(json, "line", lines[i].line);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_place(const struct plumb_kernel_code *code, struct plumb_slice_place place,
            struct plumb_json *json)
{
	plumb_why_place_json(code, place.function, plumb_kernel_insn(code, place)->offset, json);
	plumb_json_key_quantity(json, "number", plumb_why_number(code, place.function, place.insn));
}

const char *
plumb_why_assembly(const struct plumb_kernel_code *code, struct plumb_slice_place place,
                   char text[PLUMB_WHY_ASSEMBLY])
{
	const struct plumb_insn *insn = plumb_kernel_insn(code, place);
	const struct plumb_code_function *function =
		&code->profile->code_functions[code->rows[place.function]];

	*text = '\0';
	code->input.isa->print(code->input.architecture,
	                       (const char *)function->text.data + insn->offset, insn, text,
	                       PLUMB_WHY_ASSEMBLY);
	return text;
}

/* ---- causes ---- */

static void
write_hop(const struct plumb_kernel_code *code, const struct plumb_slice_hop *hop,
          struct plumb_json *json)
{
	char text[PLUMB_WHY_ASSEMBLY];

	plumb_json_object(json);
	write_place(code, hop->place, json);
	plumb_json_key_text(json, "instruction", plumb_why_assembly(code, hop->place, text));
	plumb_json_key_text(json, "via", NAME_OF(via_names, hop->via));
	plumb_json_key_text(
		json, "counter",
		hop->via == PLUMB_HOP_COUNTER ? code->input.isa->counter_name(hop->counter) : NULL);
	plumb_json_end(json);
}

/* The numbers of the other causes of STALL that the hardware cannot tell apart from this one. */
static void
write_ambiguity(const struct plumb_stall *stall, uint32_t cause, struct plumb_json *json)
{
	uint32_t group = stall->causes[cause].ambiguity;

	plumb_json_key_array(json, "ambiguous_with");
	for (uint32_t i = 0; group && i < stall->cause_count; i++)
		if (i != cause && stall->causes[i].ambiguity == group)
			plumb_json_unsigned(json, i);
	plumb_json_end(json);
}

static void
write_cause(const struct plumb_why_kernel *k, const struct plumb_stall *stall, uint32_t number,
            struct plumb_json *json)
{
	const struct plumb_stall_cause *c = &stall->causes[number];
	char text[PLUMB_WHY_ASSEMBLY];

	plumb_json_object(json);
	plumb_json_key_text(json, "kind", plumb_cause_kind_names[c->kind]);
	plumb_json_key_text(json, "name", c->named ? c->named->name : NULL);
	plumb_json_key_text(json, "id", c->named ? c->named->id : NULL);
	if (c->has_place) {
		write_place(&k->code, c->place, json);
		plumb_json_key_text(json, "instruction",
		                    plumb_why_assembly(&k->code, c->place, text));
	} else {
		plumb_json_key_quantity(json, "offset", PLUMB_UNKNOWN);
		plumb_json_key_text(json, "file", NULL);
		plumb_json_key_line(json, "line", 0);
	}
	write_unsigned(json, "samples", c->samples);
	plumb_json_key_number(json, "share", c->share);
	plumb_json_key_object(json, "factors");
	plumb_json_key_number(json, "distance", c->factors.distance);
	plumb_json_key_number(json, "efficiency", c->factors.efficiency);
	plumb_json_key_number(json, "issue", c->factors.issue);
	plumb_json_key_number(json, "match", c->factors.match);
	plumb_json_end(json);
	plumb_json_key_array(json, "chain");
	for (uint32_t i = 0; i < c->chain_count && i < PLUMB_CHAIN_MOST; i++)
		write_hop(&k->code, &c->chain[i], json);
	plumb_json_end(json);
	plumb_json_key_number(json, "confidence", c->confidence);
	plumb_json_key_bool(json, "proved", c->proved);
	write_ambiguity(stall, number, json);
	plumb_json_key_text(json, "evidence", *c->evidence ? c->evidence : NULL);
	plumb_json_key_text(json, "advice", c->named ? c->named->advice : NULL);
	plumb_json_key_number(json, "saving", plumb_kernel_saving(&k->causes, c->saving));
	plumb_json_key_quantity(json, "saving_ns", plumb_why_saving(k, c->saving));
	plumb_json_end(json);
}

/* ---- stalls ---- */

static void
write_stall(const struct plumb_why *why, const struct plumb_why_kernel *k,
            const struct plumb_why_stall *s, struct plumb_json *json)
{
	const char *word = plumb_kernel_reason_word(&k->code, s->reason);
	char text[PLUMB_WHY_ASSEMBLY];

	plumb_json_object(json);
	plumb_why_place_json(&k->code, s->function, s->offset, json);
	plumb_json_key_quantity(json, "number",
	                        s->insn == PLUMB_NONE
	                                ? PLUMB_UNKNOWN
	                                : plumb_why_number(&k->code, s->function, s->insn));
	plumb_json_key_text(json, "instruction",
	                    s->from ? plumb_why_assembly(&k->code, s->from->place, text) : NULL);
	plumb_json_key_text(json, "reason", word);
	plumb_json_key_text(json, "class", plumb_stall_class_names[s->class]);
	write_unsigned(json, "samples", s->samples);
	write_unsigned(json, "hidden", s->hidden);
	plumb_json_key_number(json, "share",
	                      k->waiting ? (double)s->samples / (double)k->waiting : NAN);
	if (why->query.file) {
		plumb_json_key_bool(json, "at_line", s->matches & PLUMB_WHY_AT_LINE);
		plumb_json_key_bool(json, "caused_by_line", s->matches & PLUMB_WHY_BY_LINE);
	}
	plumb_json_key_array(json, "causes");
	for (uint32_t c = 0; s->from && c < s->from->cause_count; c++)
		write_cause(k, s->from, c, json);
	plumb_json_end(json);
	plumb_json_end(json);
}

/* ---- a kernel ---- */

/* The causes put together, by line. */
static void
write_causes(const struct plumb_why_kernel *k, struct plumb_json *json)
{
	plumb_json_key_array(json, "causes");
	for (uint32_t i = 0; i < k->causes.count; i++) {
		const struct plumb_kernel_cause *item = &k->causes.items[i];
		const struct plumb_stall *stall = &k->slice.stalls[item->stall];
		const struct plumb_stall_cause *c = &stall->causes[item->cause];

		plumb_json_object(json);
		plumb_json_key_text(json, "kind", plumb_cause_kind_names[c->kind]);
		plumb_json_key_text(json, "name", c->named ? c->named->name : NULL);
		plumb_json_key_text(json, "id", c->named ? c->named->id : NULL);
		if (c->has_place)
			write_place(&k->code, c->place, json);
		write_unsigned(json, "samples", item->samples);
		write_unsigned(json, "together", item->together);
		plumb_json_key_number(json, "share",
		                      k->waiting ? (double)item->samples / (double)k->waiting
		                                 : NAN);
		plumb_json_key_quantity(json, "stalls", item->stalls);
		plumb_json_key_number(json, "confidence", item->confidence);
		plumb_json_key_bool(json, "ambiguous", item->together > item->samples);
		plumb_json_key_text(json, "evidence", *c->evidence ? c->evidence : NULL);
		plumb_json_key_text(json, "advice", c->named ? c->named->advice : NULL);
		plumb_json_key_number(json, "saving", item->saving);
		plumb_json_key_quantity(json, "saving_ns", plumb_why_saving(k, item->saving));
		plumb_json_key_number(json, "saving_line", item->saving_line);
		plumb_json_key_number(json, "saving_fewer_bytes", item->saving_fewer_bytes);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_memory(const struct plumb_why_kernel *k, struct plumb_json *json)
{
	static const struct plumb_kernel_memory none = { NAN, NAN, NAN, NAN };
	const struct plumb_kernel_memory *memory = k->code.problem ? &none : &k->causes.memory;

	plumb_json_key_object(json, "memory");
	plumb_json_key_number(json, "bytes_per_second", memory->rate);
	plumb_json_key_number(json, "peak_bytes_per_second", memory->peak);
	plumb_json_key_number(json, "part", memory->part);
	plumb_json_key_number(json, "headroom", memory->headroom);
	plumb_json_end(json);
}

static void
write_accesses(const struct plumb_why_kernel *k, struct plumb_json *json)
{
	uint32_t count;
	struct plumb_why_access *items = plumb_why_accesses(k, &count);

	plumb_json_key_array(json, "accesses");
	for (uint32_t i = 0; items && i < count; i++) {
		plumb_json_object(json);
		write_place(&k->code, items[i].place, json);
		plumb_json_key_text(json, "class", plumb_insn_class_names[items[i].class]);
		plumb_json_key_text(json, "space", NAME_OF(space_names, items[i].space));
		plumb_json_key_quantity(json, "bytes",
		                        items[i].width ? items[i].width : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "instructions", items[i].count);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	free(items);
}

static void
write_groups(const struct plumb_why *why, const struct plumb_why_kernel *k, struct plumb_json *json)
{
	if (!why->query.by)
		return;
	plumb_json_key_text(json, "by", why->query.by == PLUMB_WHY_BY_RANK ? "rank" : "iteration");
	plumb_json_key_array(json, "groups");
	for (uint32_t g = 0; g < k->group_count; g++) {
		const struct plumb_why_group *group = &k->groups[g];

		plumb_json_object(json);
		plumb_json_key_quantity(json, "number", group->number);
		plumb_json_key_quantity(json, "pid", group->pid);
		write_unsigned(json, "waiting", group->waiting);
		plumb_json_key_array(json, "causes"); /* in the order of the kernel's causes */
		for (uint32_t c = 0; c < k->causes.count; c++)
			plumb_json_number(json, group->samples[c]);
		plumb_json_end(json);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_devices(const struct plumb_why *why, const struct plumb_why_kernel *k,
              struct plumb_json *json)
{
	const struct plumb_profile *p = why->profile;
	uint32_t device = k->kernel->device;

	plumb_json_key_text(json, "device",
	                    device < p->devices_count ? plumb_text(p, p->devices[device].name)
	                                              : NULL);
	plumb_json_key_quantity(json, "devices", k->kernel->devices);
}

static void
write_kernel(const struct plumb_why *why, const struct plumb_why_kernel *k, struct plumb_json *json)
{
	const struct plumb_profile *p = why->profile;
	const struct plumb_code_function *function = &p->code_functions[k->code.rows[0]];
	char sentence[PLUMB_WHY_SENTENCE];

	plumb_json_object(json);
	plumb_json_key_text(json, "name", k->name);
	plumb_json_key_text(json, "mangled", plumb_text(p, function->name));
	write_devices(why, k, json);
	plumb_json_key_text(json, "architecture", plumb_text(p, function->architecture));
	plumb_json_key_text(json, "mode", plumb_sampling_names[k->kernel->sampling]);
	write_unsigned(json, "samples", k->kernel->samples);
	write_unsigned(json, "waiting", k->waiting);
	write_unsigned(json, "hidden", k->kernel->hidden);
	write_unsigned(json, "outside", k->code.outside);
	write_unsigned(json, "unplaced", k->kernel->unplaced);
	plumb_json_key_bool(json, "estimated", k->kernel->is_estimate || k->kernel->unplaced);
	plumb_json_key_quantity(json, "gpu_ns", k->kernel->gpu_ns);
	plumb_json_key_number(json, "gpu_share", plumb_why_share(why, k));
	plumb_json_key_quantity(json, "registers", function->registers);
	plumb_json_key_quantity(json, "stack_bytes", function->stack_bytes);
	plumb_json_key_quantity(json, "shared_bytes", function->shared_bytes);
	plumb_json_key_number(json, "coverage", k->code.problem ? NAN : k->slice.coverage);
	plumb_json_key_number(json, "coverage_weighted",
	                      k->code.problem ? NAN : k->slice.coverage_weighted);
	plumb_json_key_quantity(json, "edges", k->code.problem ? PLUMB_UNKNOWN : k->slice.edges);
	plumb_json_key_quantity(json, "edges_kept",
	                        k->code.problem ? PLUMB_UNKNOWN : k->slice.edges_kept);
	plumb_json_key_quantity(json, "unknown_instructions",
	                        k->code.problem ? PLUMB_UNKNOWN : k->code.unknown);
	write_memory(k, json);
	plumb_json_key_text(json, "problem", k->code.problem);
	plumb_json_key_text(json, "summary", plumb_why_sentence(k, sentence, sizeof sentence));
	write_causes(k, json);
	plumb_json_key_array(json, "stalls");
	for (uint32_t i = 0; i < k->stall_count; i++)
		write_stall(why, k, &k->stalls[i], json);
	plumb_json_end(json);
	plumb_json_key_quantity(json, "stalls_left_out", k->stalls_left);
	write_accesses(k, json);
	write_groups(why, k, json);
	if (why->query.listing)
		plumb_why_listing_json(k, json);
	plumb_json_end(json);
}

void
plumb_why_json(const struct plumb_why *why, struct plumb_json *json)
{
	write_unsigned(json, "samples", why->samples);
	plumb_json_key_quantity(json, "kernels_left_out", why->left);
	plumb_json_key_array(json, "kernels");
	for (uint32_t i = 0; i < why->count; i++)
		write_kernel(why, &why->kernels[i], json);
	plumb_json_end(json);
}

/* ---- the listing ---- */

static void
write_edges(const struct plumb_why_kernel *k, struct plumb_slice_place place,
            struct plumb_json *json)
{
	struct plumb_slice_edge edges[EDGES_MOST];
	uint32_t count = plumb_slice_edges(&k->slice, place, edges, EDGES_MOST);

	plumb_json_key_array(json, "waits_for");
	for (uint32_t i = 0; i < count && i < EDGES_MOST; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "function",
		                    k->code.functions[edges[i].from.function].name);
		plumb_json_key_quantity(json, "offset",
		                        plumb_kernel_insn(&k->code, edges[i].from)->offset);
		plumb_json_key_text(json, "via", NAME_OF(via_names, edges[i].via));
		plumb_json_key_text(json, "counter",
		                    edges[i].via == PLUMB_HOP_COUNTER
		                            ? k->code.input.isa->counter_name(edges[i].counter)
		                            : NULL);
		plumb_json_key_bool(json, "proved", edges[i].proved);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_heat(const struct plumb_why_heat *heat, struct plumb_json *json)
{
	write_unsigned(json, "samples", heat->all);
	write_unsigned(json, "waiting", heat->waiting);
	write_unsigned(json, "hidden", heat->hidden);
	plumb_json_key_object(json, "classes");
	for (uint32_t c = 0; c < PLUMB_STALL_CLASS_COUNT; c++)
		if (heat->by_class[c])
			write_unsigned(json, plumb_stall_class_names[c], heat->by_class[c]);
	plumb_json_end(json);
}

void
plumb_why_listing_json(const struct plumb_why_kernel *k, struct plumb_json *json)
{
	char text[PLUMB_WHY_ASSEMBLY];

	plumb_json_key_array(json, "listing");
	for (uint32_t f = 0; !k->code.problem && f < k->code.function_count; f++)
		for (uint32_t i = 0; i < k->code.insns[f].count; i++) {
			struct plumb_slice_place place = { f, i };
			struct plumb_why_heat heat = plumb_why_heat(k, f, i);

			plumb_json_object(json);
			write_place(&k->code, place, json);
			plumb_json_key_text(json, "instruction",
			                    plumb_why_assembly(&k->code, place, text));
			write_heat(&heat, json);
			write_edges(k, place, json);
			plumb_json_end(json);
		}
	plumb_json_end(json);
}
