/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/kernel_causes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/peaks.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/vec.h"

#define NAMED_MOST 3 /* causes that a sentence names, if the hardware cannot tell them apart */

const char *const plumb_stall_class_names[PLUMB_STALL_CLASS_COUNT] = {
#define X(id, name, meaning) name,
	PLUMB_STALL_CLASSES(X)
#undef X
};

/* ---- put together ---- */

struct maker {
	const struct plumb_kernel_code *code;
	const struct plumb_sliced *slice;
	struct plumb_map map;
	PLUMB_VEC(struct plumb_kernel_cause) found;
	uint32_t *first, *of; /* as in the result, but numbers of FOUND */
};

struct key {
	const struct plumb_named_cause *named;
	uint32_t kind, line, function, insn, sort;
};

/* Instructions of one line that one noun can stand for: plain arithmetic is one sort. */
static uint32_t
sort_of(const struct plumb_insn *insn)
{
	switch (insn->class) {
	case PLUMB_INSN_INTEGER:
	case PLUMB_INSN_FLOAT16:
	case PLUMB_INSN_FLOAT32:
	case PLUMB_INSN_OTHER:
		return PLUMB_INSN_INTEGER;
	default:
		return insn->class | (uint32_t)insn->space << 8;
	}
}

static struct key
key_of(const struct maker *m, const struct plumb_stall_cause *cause)
{
	struct key key = { .named = cause->named, .kind = cause->named ? 0 : cause->kind };
	uint32_t line;

	if (!cause->has_place)
		return key;
	line = m->code->lines[cause->place.function][cause->place.insn];
	if (line) {
		key.line = line;
		if (!cause->named || !cause->named->noun)
			key.sort = sort_of(plumb_kernel_insn(m->code, cause->place));
	} else {
		key.function = cause->place.function + 1;
		key.insn = cause->place.insn;
	}
	return key;
}

static bool
is_same_key(const struct key *a, const struct key *b)
{
	return a->named == b->named && a->kind == b->kind && a->line == b->line &&
	       a->function == b->function && a->insn == b->insn && a->sort == b->sort;
}

static const struct plumb_stall_cause *
greatest_of(const struct maker *m, uint32_t id)
{
	const struct plumb_kernel_cause *item = &m->found.items[id];

	return &m->slice->stalls[item->stall].causes[item->cause];
}

/* The number of the item that CAUSE belongs to, made when missing; PLUMB_NONE: no memory. */
static uint32_t
item_of(struct maker *m, uint32_t stall, uint32_t cause)
{
	const struct plumb_stall_cause *c = &m->slice->stalls[stall].causes[cause];
	struct key key = key_of(m, c);
	uint64_t hash = plumb_hash_mix((uintptr_t)key.named, key.kind);
	struct plumb_kernel_cause *item;
	struct plumb_map_cursor at;

	hash = plumb_hash_mix(plumb_hash_mix(hash, key.line + ((uint64_t)key.sort << 32)),
	                      (uint64_t)key.function << 32 | key.insn);
	for (uint32_t id = plumb_map_first(&m->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&m->map, &at)) {
		struct key other = key_of(m, greatest_of(m, id));

		if (is_same_key(&key, &other))
			return id;
	}
	item = plumb_vec_add(&m->found);
	if (!item || plumb_map_add(&m->map, hash, m->found.count - 1))
		return PLUMB_NONE;
	*item = (struct plumb_kernel_cause){ .stall = stall, .cause = cause, .saving = NAN };
	return m->found.count - 1;
}

/* The samples of STALL that CAUSE has together with those that it cannot be told apart from. 0: one
 * before it of the same item told of them. */
static uint64_t
together_of(struct maker *m, uint32_t stall, uint32_t cause, const uint32_t *items)
{
	const struct plumb_stall *s = &m->slice->stalls[stall];
	uint32_t group = s->causes[cause].ambiguity;
	uint64_t samples = 0;

	if (!group)
		return s->causes[cause].samples;
	for (uint32_t i = 0; i < s->cause_count; i++) {
		if (s->causes[i].ambiguity != group)
			continue;
		if (i < cause && items[i] == items[cause])
			return 0;
		samples += s->causes[i].samples;
	}
	return samples;
}

static void
add_cause(struct maker *m, uint32_t stall, uint32_t cause, const uint32_t *items)
{
	const struct plumb_stall_cause *c = &m->slice->stalls[stall].causes[cause];
	struct plumb_kernel_cause *item = &m->found.items[items[cause]];

	if (c->samples > greatest_of(m, items[cause])->samples) {
		item->stall = stall;
		item->cause = cause;
	}
	item->samples += c->samples;
	item->together += together_of(m, stall, cause, items);
	item->stalls++;
	item->confidence += c->confidence * (double)c->samples;
	if (!isnan(c->saving) && c->samples)
		item->saving = (isnan(item->saving) ? 0 : item->saving) +
		               c->saving / (double)c->samples *
		                       (double)together_of(m, stall, cause, items);
}

static int
add_stall(struct maker *m, uint32_t stall)
{
	const struct plumb_stall *s = &m->slice->stalls[stall];
	uint32_t *items = &m->of[m->first[stall]];

	for (uint32_t i = 0; i < s->cause_count; i++) {
		items[i] = item_of(m, stall, i);
		if (items[i] == PLUMB_NONE)
			return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < s->cause_count; i++)
		add_cause(m, stall, i, items);
	return 0;
}

/* Room for which cause belongs to which item. */
static int
make_room(struct maker *m)
{
	uint64_t causes = 0;

	m->first = calloc(m->slice->stall_count + 1u, sizeof *m->first);
	if (!m->first)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < m->slice->stall_count; i++) {
		m->first[i] = (uint32_t)causes;
		causes += m->slice->stalls[i].cause_count;
	}
	m->of = causes < UINT32_MAX ? malloc((causes + 1) * sizeof *m->of) : NULL;
	if (m->of)
		memset(m->of, 0xff, (causes + 1) * sizeof *m->of);
	m->first[m->slice->stall_count] = (uint32_t)causes;
	return m->of ? 0 : PLUMB_ESYSTEM;
}

static int
compare_causes(const void *a, const void *b)
{
	const struct plumb_kernel_cause *one = a, *two = b;

	if (one->together != two->together)
		return one->together > two->together ? -1 : 1;
	if (one->samples != two->samples)
		return one->samples > two->samples ? -1 : 1;
	if (one->stall != two->stall)
		return one->stall < two->stall ? -1 : 1;
	return one->cause < two->cause ? -1 : one->cause > two->cause;
}

/* ---- savings ---- */

#define REACHED 0.9 /* of the peak: what kernels get that only move memory */
#define CACHED 1.1  /* of the peak: more than that cannot come from memory */

static void
find_memory(const struct plumb_kernel_code *code, const struct plumb_sliced *slice,
            struct plumb_kernel_memory *memory)
{
	const struct plumb_profile *p = code->profile;
	const struct plumb_slice_launch *launch = &code->input.launch;
	double warps = (double)launch->blocks * ((launch->threads + 31) / 32);
	uint32_t device = code->kernel->device;
	const struct plumb_peak *peak =
		device < p->devices_count ? plumb_peak_of(plumb_text(p, p->devices[device].name))
					  : NULL;

	*memory = (struct plumb_kernel_memory){ NAN, NAN, NAN, NAN };
	if (peak && peak->terabytes > 0)
		memory->peak = peak->terabytes * 1e12;
	if (warps > 0)
		memory->rate = slice->warp_bytes * warps / (code->launch_ns / 1e9);
	memory->part = memory->rate / memory->peak;
	if (memory->part > CACHED)
		memory->rate = memory->part = NAN;
	memory->headroom = isnan(memory->part) ? NAN : fmax(0, 1 - memory->part / REACHED);
}

/* The line of a cause; 0: unknown. */
static uint32_t
line_of(const struct maker *m, const struct plumb_stall_cause *c)
{
	return c->has_place ? m->code->lines[c->place.function][c->place.insn] : 0;
}

/* What one line saves of stall S: all samples of its own causes, and of those that they cannot be
 * told apart from. CAUSE is the first one at this line, or the rest are told of already: 0. */
static double
saving_of_line(const struct maker *m, const struct plumb_stall *s, uint32_t cause)
{
	uint32_t line = line_of(m, &s->causes[cause]), group = 0;
	double sum = 0, most = 0;
	uint64_t together = 0;

	for (uint32_t i = 0; i < s->cause_count; i++) {
		const struct plumb_stall_cause *c = &s->causes[i];

		if (line_of(m, c) != line)
			continue;
		if (i < cause)
			return 0;
		if (isnan(c->saving) || !c->samples)
			continue;
		if (!c->ambiguity)
			sum += c->saving;
		else if (c->saving / (double)c->samples > most)
			most = c->saving / (double)c->samples;
		group |= c->ambiguity;
	}
	for (uint32_t i = 0; group && i < s->cause_count; i++)
		together += s->causes[i].ambiguity ? s->causes[i].samples : 0;
	return sum + most * (double)together;
}

static int
find_savings(struct maker *m, double headroom)
{
	uint32_t lines = 1;
	double *savings;

	for (uint32_t f = 0; f < m->code->function_count; f++)
		for (uint32_t i = 0; i < m->code->insns[f].count; i++)
			if (m->code->lines[f][i] >= lines)
				lines = m->code->lines[f][i] + 1;
	savings = calloc(lines, sizeof *savings);
	if (!savings)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < m->slice->stall_count; i++)
		for (uint32_t c = 0; c < m->slice->stalls[i].cause_count; c++)
			savings[line_of(m, &m->slice->stalls[i].causes[c])] +=
				m->slice->stalls[i].class == PLUMB_STALL_NONE
					? 0
					: saving_of_line(m, &m->slice->stalls[i], c);
	for (uint32_t i = 0; i < m->found.count; i++) {
		struct plumb_kernel_cause *item = &m->found.items[i];
		uint32_t line = line_of(m, greatest_of(m, i));

		item->saving_line = line ? savings[line] : item->saving;
		if (item->saving > 1)
			item->saving = 1;
		if (item->saving_line > 1)
			item->saving_line = 1;
		item->saving_fewer_bytes = item->saving_line > headroom ? item->saving_line : NAN;
		if (item->saving > headroom)
			item->saving = headroom;
		if (item->saving_line > headroom)
			item->saving_line = headroom;
	}
	free(savings);
	return 0;
}

/* Puts the items in order, and what refers to them. */
static int
put_in_order(struct plumb_kernel_causes *causes, uint32_t stalls)
{
	uint32_t *to = calloc(causes->count + 1u, sizeof *to);

	if (!to)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < causes->count; i++)
		causes->items[i].number = i;
	if (causes->count)
		qsort(causes->items, causes->count, sizeof *causes->items, compare_causes);
	for (uint32_t i = 0; i < causes->count; i++)
		to[causes->items[i].number] = i;
	for (uint32_t i = 0; i < causes->first[stalls]; i++)
		if (causes->of[i] != PLUMB_NONE)
			causes->of[i] = to[causes->of[i]];
	free(to);
	return 0;
}

int
plumb_kernel_causes_make(const struct plumb_kernel_code *code, const struct plumb_sliced *slice,
                         struct plumb_kernel_causes *causes, struct plumb_error *error)
{
	struct maker m = { .code = code, .slice = slice };
	int result = make_room(&m);

	*causes = (struct plumb_kernel_causes){ 0 };
	for (uint32_t i = 0; !result && i < slice->stall_count; i++) {
		if (slice->stalls[i].class == PLUMB_STALL_NONE)
			continue;
		causes->waiting += slice->stalls[i].samples;
		result = add_stall(&m, i);
	}
	for (uint32_t i = 0; i < m.found.count; i++) {
		struct plumb_kernel_cause *item = &m.found.items[i];

		item->confidence = item->samples ? item->confidence / (double)item->samples : 0;
	}
	find_memory(code, slice, &causes->memory);
	if (!result)
		result = find_savings(&m, causes->memory.headroom);
	plumb_map_free(&m.map);
	causes->items = m.found.items;
	causes->count = m.found.count;
	causes->first = m.first;
	causes->of = m.of;
	if (!result)
		result = put_in_order(causes, slice->stall_count);
	if (!result)
		return 0;
	plumb_kernel_causes_free(causes);
	return plumb_fail_memory(error, "for the causes of stalls");
}

double
plumb_kernel_saving(const struct plumb_kernel_causes *causes, double saving)
{
	return saving > causes->memory.headroom ? causes->memory.headroom : saving;
}

void
plumb_kernel_causes_free(struct plumb_kernel_causes *causes)
{
	free(causes->items);
	free(causes->first);
	free(causes->of);
	*causes = (struct plumb_kernel_causes){ 0 };
}

const struct plumb_kernel_cause *
plumb_kernel_causes_lead(const struct plumb_kernel_causes *causes, const struct plumb_sliced *slice)
{
	for (uint32_t i = 0; i < causes->count; i++) {
		const struct plumb_kernel_cause *item = &causes->items[i];

		if (item->together * 5 < causes->waiting)
			break;
		if (slice->stalls[item->stall].causes[item->cause].kind != PLUMB_CAUSE_UNKNOWN)
			return item;
	}
	return causes->count && causes->items->together ? causes->items : NULL;
}

/* ---- words ---- */

const struct plumb_code_line *
plumb_kernel_line(const struct plumb_kernel_code *code, struct plumb_slice_place place)
{
	uint32_t count;
	const struct plumb_code_line *line =
		plumb_code_lines_at(code->profile, code->rows[place.function],
	                            plumb_kernel_insn(code, place)->offset, &count);

	if (line)
		line += plumb_code_own_line(code->profile, line, count);
	return line && line->line && line->file != PLUMB_NONE ? line : NULL;
}

char *
plumb_kernel_place(const struct plumb_kernel_code *code, struct plumb_slice_place place, char *text,
                   size_t size)
{
	const struct plumb_code_line *line = plumb_kernel_line(code, place);
	uint32_t offset = plumb_kernel_insn(code, place)->offset;
	const char *name;

	if (line) {
		snprintf(text, size, "%s:%" PRIu32,
		         plumb_path_base(plumb_text(code->profile, line->file)), line->line);
	} else if (!place.function) {
		snprintf(text, size, "+0x%" PRIx32, offset);
	} else {
		name = code->functions[place.function].name;
		snprintf(text, size, "+0x%" PRIx32 " of %s", offset, name ? name : "?");
	}
	return text;
}

static const char *
load_noun(const struct plumb_insn *insn)
{
	switch (insn->space) {
	case PLUMB_SPACE_LOCAL:
		return "load from the thread's stack";
	case PLUMB_SPACE_SHARED:
		return "load from shared memory";
	case PLUMB_SPACE_CONSTANT:
		return "load of a constant";
	case PLUMB_SPACE_DISTRIBUTED:
		return "load from another block's shared memory";
	default:
		return "load";
	}
}

const char *
plumb_insn_noun(const struct plumb_insn *insn)
{
	static const char *const nouns[PLUMB_INSN_CLASS_COUNT] = {
		[PLUMB_INSN_INTEGER] = "arithmetic",
		[PLUMB_INSN_FLOAT16] = "arithmetic",
		[PLUMB_INSN_FLOAT32] = "arithmetic",
		[PLUMB_INSN_FLOAT64] = "double-precision arithmetic",
		[PLUMB_INSN_CONVERT] = "conversion",
		[PLUMB_INSN_SPECIAL] = "special function",
		[PLUMB_INSN_TENSOR] = "matrix instruction",
		[PLUMB_INSN_STORE] = "store",
		[PLUMB_INSN_ATOMIC] = "atomic operation",
		[PLUMB_INSN_COPY] = "copy",
		[PLUMB_INSN_CACHE] = "cache operation",
		[PLUMB_INSN_TEXTURE] = "texture fetch",
		[PLUMB_INSN_SHUFFLE] = "exchange between lanes",
		[PLUMB_INSN_REGISTER] = "read of a special register",
		[PLUMB_INSN_BARRIER] = "barrier",
		[PLUMB_INSN_MEMORY_BARRIER] = "memory barrier",
		[PLUMB_INSN_WAIT] = "wait",
		[PLUMB_INSN_BRANCH] = "branch",
		[PLUMB_INSN_CALL] = "call",
		[PLUMB_INSN_RETURN] = "return",
		[PLUMB_INSN_EXIT] = "end of the kernel",
		[PLUMB_INSN_RECONVERGE] = "meeting point of divergent lanes",
		[PLUMB_INSN_SLEEP] = "sleep",
	};

	if (insn->class == PLUMB_INSN_LOAD)
		return load_noun(insn);
	return insn->class < PLUMB_INSN_CLASS_COUNT && nouns[insn->class] ? nouns[insn->class]
	                                                                  : "instruction";
}

char *
plumb_kernel_cause_noun(const struct plumb_kernel_code *code, const struct plumb_stall_cause *cause,
                        char *text, size_t size)
{
	char place[PLUMB_PLACE_SIZE];

	if (!cause->has_place)
		snprintf(text, size, "%s", cause->named ? cause->named->name : "an unknown cause");
	else
		snprintf(text, size, "the %s at %s",
		         cause->named && cause->named->noun
		                 ? cause->named->noun
		                 : plumb_insn_noun(plumb_kernel_insn(code, cause->place)),
		         plumb_kernel_place(code, cause->place, place, sizeof place));
	return text;
}

/* Adds " or NOUN" to TEXT; only the place of it if the noun before is the same: LAST, which becomes
 * NOUN. */
static void
add_noun(char *text, size_t size, char *last, const char *noun)
{
	const char *place = strstr(noun, " at ");
	size_t used = strlen(text), shared = place ? (size_t)(place - noun) + 4 : 0;
	bool same = shared && !strncmp(last, noun, shared);

	snprintf(text + used, size - used, " or %s", same ? noun + shared : noun);
	snprintf(last, PLUMB_PLACE_SIZE + 64, "%s", noun);
}

/* Of causes that the hardware cannot tell apart. */
static char *
ambiguous_sentence(const struct plumb_kernel_code *code, const struct plumb_stall *stall,
                   uint32_t cause, char *text, size_t size)
{
	uint32_t group = stall->causes[cause].ambiguity, named = 1, more = 0;
	char noun[PLUMB_PLACE_SIZE + 64], last[PLUMB_PLACE_SIZE + 64];
	size_t used;

	snprintf(text, size, "for %s",
	         plumb_kernel_cause_noun(code, &stall->causes[cause], last, sizeof last));
	for (uint32_t i = 0; i < stall->cause_count; i++) {
		if (i == cause || stall->causes[i].ambiguity != group)
			continue;
		plumb_kernel_cause_noun(code, &stall->causes[i], noun, sizeof noun);
		if (strstr(text, noun) || !strcmp(last, noun)) /* another one of the same line */
			continue;
		if (named++ < NAMED_MOST)
			add_noun(text, size, last, noun);
		else
			more++;
	}
	used = strlen(text);
	if (more)
		snprintf(text + used, size - used, " or %" PRIu32 " more", more);
	used = strlen(text);
	if (named > 1)
		snprintf(text + used, size - used, " (the hardware does not show which)");
	return text;
}

char *
plumb_kernel_cause_sentence(const struct plumb_kernel_code *code, const struct plumb_stall *stall,
                            uint32_t cause, char *text, size_t size)
{
	const struct plumb_stall_cause *c = &stall->causes[cause];
	char noun[PLUMB_PLACE_SIZE + 64], place[PLUMB_PLACE_SIZE] = "";

	plumb_kernel_cause_noun(code, c, noun, sizeof noun);
	if (c->has_place)
		plumb_kernel_place(code, c->place, place, sizeof place);
	switch (c->kind) {
	case PLUMB_CAUSE_DATA:
	case PLUMB_CAUSE_SYNC:
		if (c->ambiguity)
			return ambiguous_sentence(code, stall, cause, text, size);
		snprintf(text, size, "for %s", noun);
		break;
	case PLUMB_CAUSE_BARRIER:
		if (c->has_place)
			snprintf(text, size, "at a barrier, for warps that still execute %s",
			         place);
		else
			snprintf(text, size, "at a barrier, for warps that come late");
		break;
	case PLUMB_CAUSE_FETCH:
		snprintf(text, size, "for instructions or constants to be fetched%s%s",
		         c->has_place ? ", at " : "", place);
		break;
	case PLUMB_CAUSE_THROTTLE:
		if (c->has_place)
			snprintf(text, size, "for a unit whose queue %s fills", noun);
		else
			snprintf(text, size, "for a unit whose queue is full");
		break;
	case PLUMB_CAUSE_STRUCTURAL:
		snprintf(text, size, "for the instruction itself%s%s", c->has_place ? ", " : "",
		         c->has_place ? noun : "");
		break;
	case PLUMB_CAUSE_UNKNOWN:
		snprintf(text, size, "for something that plumb cannot explain");
		break;
	}
	return text;
}
