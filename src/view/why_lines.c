/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's stalls, samples and accesses put together by line. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "view/why.h"

/* ---- stalls ---- */

struct kinds {
	const struct plumb_why_kernel *k;
	struct plumb_map map;
	PLUMB_VEC(struct plumb_why_kind) found;
};

/* What the stalls of one kind have in common. */
struct kind_key {
	uint32_t line, item, reason, matches;
};

/* False: STALL is told of alone. */
static bool
kind_of(const struct plumb_why_kernel *k, uint32_t stall, struct kind_key *key)
{
	const struct plumb_why_stall *s = &k->stalls[stall];

	if (!s->from || !s->from->cause_count)
		return false;
	*key = (struct kind_key){ k->code.lines[s->function][s->insn],
		                  k->causes.of[k->causes.first[s->number]], s->reason, s->matches };
	return key->line != 0;
}

static bool
add_stall(struct kinds *kinds, uint32_t stall)
{
	const struct plumb_why_stall *s = &kinds->k->stalls[stall];
	struct plumb_why_kind *kind = NULL;
	struct plumb_map_cursor at;
	struct kind_key key, other;
	bool shared = kind_of(kinds->k, stall, &key);
	uint64_t hash = shared ? plumb_hash_bytes(&key, sizeof key) : 0;

	if (shared) {
		for (uint32_t id = plumb_map_first(&kinds->map, hash, &at); id != PLUMB_MAP_NONE;
		     id = plumb_map_next(&kinds->map, &at))
			if (kind_of(kinds->k, kinds->found.items[id].stall, &other) &&
			    !memcmp(&key, &other, sizeof key))
				kind = &kinds->found.items[id];
		if (kind) {
			kind->more++;
			kind->samples += s->samples;
			kind->hidden += s->hidden;
			return true;
		}
	}
	kind = plumb_vec_add(&kinds->found);
	if (!kind)
		return false;
	*kind = (struct plumb_why_kind){ stall, 0, s->samples, s->hidden };
	return !shared || !plumb_map_add(&kinds->map, hash, kinds->found.count - 1);
}

static int
compare_kinds(const void *a, const void *b)
{
	const struct plumb_why_kind *one = a, *two = b;

	if (one->samples != two->samples)
		return one->samples > two->samples ? -1 : 1;
	return one->stall < two->stall ? -1 : one->stall > two->stall;
}

struct plumb_why_kind *
plumb_why_kinds(const struct plumb_why_kernel *k, uint32_t *count)
{
	struct kinds kinds = { .k = k };
	bool ok = true;

	for (uint32_t i = 0; ok && i < k->stall_count; i++)
		ok = add_stall(&kinds, i);
	plumb_map_free(&kinds.map);
	*count = ok ? kinds.found.count : 0;
	if (!ok) {
		plumb_vec_free(&kinds.found);
		return NULL;
	}
	if (*count)
		qsort(kinds.found.items, *count, sizeof *kinds.found.items, compare_kinds);
	return kinds.found.items ? kinds.found.items : calloc(1, sizeof *kinds.found.items);
}

/* ---- samples ---- */

struct plumb_why_heat
plumb_why_heat(const struct plumb_why_kernel *k, uint32_t function, uint32_t insn)
{
	struct plumb_why_heat heat = { 0 };
	uint32_t count;
	const struct plumb_kernel_sample *samples =
		plumb_kernel_samples_at(&k->code, function, insn, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_kernel_sample *s = &samples[i];
		const char *word = plumb_kernel_reason_word(&k->code, s->reason);
		enum plumb_stall_class class = plumb_stall_reason_find(word)->class;

		heat.all += s->count;
		heat.by_class[class] += s->count;
		heat.exposed[class] += s->issued ? 0 : s->count;
		if (class != PLUMB_STALL_NONE)
			*(s->issued ? &heat.hidden : &heat.waiting) += s->count;
	}
	return heat;
}

/* ---- accesses ---- */

static bool
is_told(const struct plumb_insn *insn)
{
	switch (insn->class) {
	case PLUMB_INSN_LOAD:
	case PLUMB_INSN_STORE:
	case PLUMB_INSN_ATOMIC:
	case PLUMB_INSN_COPY:
	case PLUMB_INSN_TEXTURE:
	case PLUMB_INSN_BARRIER:
		return true;
	default:
		return false;
	}
}

struct accesses {
	const struct plumb_why_kernel *k;
	struct plumb_map map;
	PLUMB_VEC(struct plumb_why_access) found;
};

static uint32_t
line_of(const struct plumb_why_kernel *k, struct plumb_slice_place place)
{
	const uint32_t *lines = k->code.lines[place.function];

	return lines ? lines[place.insn] : 0;
}

static bool
add_access(struct accesses *a, struct plumb_slice_place place)
{
	const struct plumb_insn *insn = plumb_kernel_insn(&a->k->code, place);
	uint32_t line = line_of(a->k, place);
	uint64_t hash = (uint64_t)insn->class << 56 | (uint64_t)insn->space << 48 |
	                (uint64_t)insn->width << 32 | line;
	struct plumb_map_cursor at;
	struct plumb_why_access *item;

	for (uint32_t id = plumb_map_first(&a->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&a->map, &at)) {
		item = &a->found.items[id];
		if (item->class == insn->class && item->space == insn->space &&
		    item->width == insn->width && line_of(a->k, item->place) == line) {
			item->count++;
			return true;
		}
	}
	item = plumb_vec_add(&a->found);
	if (!item || plumb_map_add(&a->map, hash, a->found.count - 1))
		return false;
	*item = (struct plumb_why_access){ place, insn->class, insn->space, insn->width, 1 };
	return true;
}

struct plumb_why_access *
plumb_why_accesses(const struct plumb_why_kernel *k, uint32_t *count)
{
	struct accesses a = { .k = k };
	bool ok = true;

	*count = 0;
	for (uint32_t f = 0; !k->code.problem && f < k->code.function_count; f++)
		for (uint32_t i = 0; ok && i < k->code.insns[f].count; i++)
			if (is_told(&k->code.insns[f].items[i]))
				ok = add_access(&a, (struct plumb_slice_place){ f, i });
	plumb_map_free(&a.map);
	if (!ok) {
		plumb_vec_free(&a.found);
		return NULL;
	}
	*count = a.found.count;
	return a.found.items ? a.found.items : calloc(1, sizeof *a.found.items);
}
