/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaching definitions, register by register: bit sets over a register's definitions, forward to a
 * fixpoint. A guarded write leaves earlier definitions in force, but not for a reader behind it
 * that has the same guard. Slots of the stack and words of shared memory are registers here, too,
 * once it is known which addresses are equal.
 *
 * A second set has the definitions that nothing has read yet. A later reader need not wait for what
 * an earlier one on its way has waited for.
 */
#include "analyze/slice/slice_private.h"

#include "base/sort.h"

#define MOST_LINKS 64   /* of one use of one register */
#define MOST_POSSIBLE 8 /* of a load whose address is not known */

enum event_flags {
	EVENT_USE = 1,
	EVENT_DEF = 2,
	EVENT_MAY = 4, /* a definition that leaves earlier ones in force */
	EVENT_ADDRESS = 8,
	EVENT_CALLED = 16,
};

struct event {
	uint32_t insn;
	uint32_t key;
	uint8_t flags;
	uint8_t file;
	uint16_t number;
};

typedef PLUMB_VEC(struct event) event_vec;

struct flow {
	const struct slice_graph *graph;
	struct slice_links *links;
	uint8_t via;   /* of the links */
	uint8_t flags; /* of the links */
	uint32_t most_links;
	/* Of one key. Sets have WORDS words: first a bit for each definition, then one for each
	 * procedure, of what it began with. */
	const struct event *events;
	uint32_t count, defs, words, bits_room;
	uint32_t *def_insns;
	uint8_t *def_flags;
	uint32_t *first_event; /* by block; its events are from there to that of the next */
	uint64_t *in[2];       /* by block: [0] all, [1] those that nothing has read */
	uint64_t *returned;    /* by procedure: definitions in it */
	uint8_t *open;         /* by procedure: bit n: in[n] passes it */
	uint64_t *dirty;       /* by rank */
	uint64_t *now[2];
};

/* ---- one register ---- */

static bool
is_pseudo_word(const struct flow *f, uint32_t word)
{
	return word >= (f->defs + 63) / 64;
}

static uint32_t
pseudo(const struct flow *f, uint32_t procedure)
{
	return (f->defs + 63) / 64 * 64 + procedure;
}

static uint64_t *
set_of(const struct flow *f, int which, uint32_t block)
{
	return &f->in[which][(size_t)block * f->words];
}

static void
apply(struct flow *f, const struct event *event, uint32_t def)
{
	if (event->flags & EVENT_USE)
		memset(f->now[1], 0, f->words * sizeof *f->now[1]);
	if (!(event->flags & EVENT_DEF))
		return;
	for (int which = 0; which < 2; which++) {
		if (!(event->flags & EVENT_MAY))
			memset(f->now[which], 0, f->words * sizeof *f->now[which]);
		slice_set(f->now[which], def);
	}
}

/* How many definitions are in instructions before INSN. */
static uint32_t
defs_before(const struct flow *f, uint32_t insn)
{
	uint32_t low = 0, high = f->defs;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (f->def_insns[middle] < insn)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t
passing(const struct flow *f, const struct slice_arc *arc, int which, uint32_t word)
{
	uint64_t bits = f->now[which][word];

	switch (arc->kind) {
	case SLICE_ARC_CALL:
		return is_pseudo_word(f, word) ? 0 : bits;
	case SLICE_ARC_RETURN:
		if (is_pseudo_word(f, word))
			return 0;
		return bits & f->returned[(size_t)arc->procedure * f->words + word];
	case SLICE_ARC_OVER:
		return f->open[arc->procedure] >> which & 1 ? bits : 0;
	default:
		return bits;
	}
}

static void
mark_dirty(struct flow *f, uint32_t block)
{
	slice_set(f->dirty, f->graph->blocks.items[block].rank);
}

static void
open_procedures(struct flow *f)
{
	for (uint32_t p = 0; p < f->graph->procedures.count; p++) {
		uint8_t open = f->open[p];

		for (int which = 0; which < 2; which++)
			if (slice_bit(f->now[which], pseudo(f, p)))
				open |= (uint8_t)(1 << which);
		if (open == f->open[p])
			continue;
		f->open[p] = open;
		for (uint32_t a = 0; a < f->graph->arcs.count; a++)
			if (f->graph->arcs.items[a].kind == SLICE_ARC_OVER &&
			    f->graph->arcs.items[a].procedure == p)
				mark_dirty(f, f->graph->arcs.items[a].from);
	}
}

static void
play(struct flow *f, uint32_t b)
{
	const struct slice_block *block = &f->graph->blocks.items[b];
	uint32_t first = f->first_event[b], end = f->first_event[b + 1];
	uint32_t def = first < end ? defs_before(f, f->events[first].insn) : 0;

	for (int which = 0; which < 2; which++)
		memcpy(f->now[which], set_of(f, which, b), f->words * sizeof *f->now[which]);
	for (uint32_t e = first; e < end; e++) {
		apply(f, &f->events[e], def);
		def += f->events[e].flags & EVENT_DEF ? 1 : 0;
	}
	if (block->returns && f->graph->procedures.count)
		open_procedures(f);
	for (uint32_t i = 0; i < block->out_count; i++) {
		const struct slice_arc *arc =
			&f->graph->arcs.items[f->graph->arcs_out[block->out + i]];
		bool changed = false;

		for (int which = 0; which < 2; which++) {
			uint64_t *to = set_of(f, which, arc->to);

			for (uint32_t w = 0; w < f->words; w++) {
				uint64_t bits = passing(f, arc, which, w) & ~to[w];

				to[w] |= bits;
				changed |= bits != 0;
			}
		}
		if (changed)
			mark_dirty(f, arc->to);
	}
}

static void
to_fixpoint(struct flow *f)
{
	uint32_t words = f->graph->blocks.count / 64 + 1;

	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t w = 0; w < words; w++)
			while (f->dirty[w]) {
				uint32_t rank = w * 64 + (uint32_t)__builtin_ctzll(f->dirty[w]);

				f->dirty[w] &= f->dirty[w] - 1;
				changed = true;
				play(f, f->graph->order[rank]);
			}
	}
}

/* Is predicate NUMBER of FILE written by INSN? */
static bool
writes_guard(const struct plumb_insn *insn, uint8_t file, uint16_t number)
{
	for (uint8_t r = 0; r < insn->writes_count; r++)
		if (insn->writes[r].file == file && insn->writes[r].first <= number &&
		    number < insn->writes[r].first + insn->writes[r].count)
			return true;
	return false;
}

/* What is written under a guard is all that those lanes have that read it under the same guard. The
 * last such definition before event E in its block; 0: there is none. */
static uint32_t
same_guard(const struct flow *f, uint32_t e)
{
	const struct slice_graph *g = f->graph;
	const struct plumb_insn *to = g->insns[f->events[e].insn];
	uint32_t first = g->blocks.items[g->block_of[f->events[e].insn]].first;
	uint32_t at = f->events[e].insn;

	if (to->guard == PLUMB_INSN_ALWAYS)
		return 0;
	while (e-- && f->events[e].insn >= first) {
		const struct plumb_insn *from = g->insns[f->events[e].insn];

		if (!(f->events[e].flags & EVENT_DEF) || f->events[e].insn >= at)
			continue;
		while (at > f->events[e].insn)
			if (writes_guard(g->insns[--at], to->guard_file, to->guard))
				return 0;
		if (from->guard == to->guard && from->guard_file == to->guard_file &&
		    from->guard_not == to->guard_not && !(f->events[e].flags & EVENT_CALLED))
			return f->events[e].insn + 1;
	}
	return 0;
}

static int
add_links(struct flow *f, uint32_t e)
{
	const struct event *event = &f->events[e];
	uint32_t added = 0, since = same_guard(f, e);

	/* Those that nothing has read come first. */
	for (int turn = 0; turn < 2; turn++)
		for (uint32_t w = 0; !is_pseudo_word(f, w); w++) {
			uint64_t bits = turn ? f->now[0][w] & ~f->now[1][w] : f->now[1][w];

			for (; bits && added < f->most_links; bits &= bits - 1) {
				uint32_t def = w * 64 + (uint32_t)__builtin_ctzll(bits);
				struct slice_link *link;

				if (since && (f->def_insns[def] + 1 < since ||
				              f->def_insns[def] >= event->insn))
					continue;
				added++;
				link = plumb_vec_add(&f->links->all);
				if (!link)
					return PLUMB_ESYSTEM;
				*link = (struct slice_link){
					.from = f->def_insns[def],
					.to = event->insn,
					.regs = { event->file, 0, event->number, 1 },
					.via = f->via,
					.flags = f->flags,
				};
				if (!turn)
					link->flags |= SLICE_FRESH;
				if (event->flags & EVENT_ADDRESS)
					link->flags |= SLICE_ADDRESS;
				if (f->def_flags[def] & EVENT_CALLED)
					link->flags |= SLICE_CALLED;
			}
		}
	return 0;
}

static int
emit(struct flow *f)
{
	uint32_t def = 0;

	for (uint32_t e = 0, block = PLUMB_NONE; e < f->count; e++) {
		const struct event *event = &f->events[e];

		if (f->graph->block_of[event->insn] != block) {
			block = f->graph->block_of[event->insn];
			for (int which = 0; which < 2; which++)
				memcpy(f->now[which], set_of(f, which, block),
				       f->words * sizeof *f->now[which]);
		}
		if ((event->flags & EVENT_USE) && add_links(f, e) < 0)
			return PLUMB_ESYSTEM;
		apply(f, event, def);
		def += event->flags & EVENT_DEF ? 1 : 0;
	}
	return 0;
}

static int
make_room(struct flow *f)
{
	size_t blocks = f->graph->blocks.count, procedures = f->graph->procedures.count;

	if (f->words <= f->bits_room)
		return 0;
	for (int which = 0; which < 2; which++) {
		free(f->in[which]);
		free(f->now[which]);
		f->in[which] = malloc((blocks + 1) * f->words * sizeof(uint64_t));
		f->now[which] = malloc(f->words * sizeof(uint64_t));
	}
	free(f->returned);
	f->returned = malloc((procedures + 1) * f->words * sizeof(uint64_t));
	f->bits_room = f->in[0] && f->in[1] && f->now[0] && f->now[1] && f->returned ? f->words : 0;
	return f->bits_room ? 0 : PLUMB_ESYSTEM;
}

/* Numbers definitions, and finds each block's events. */
static void
index_events(struct flow *f)
{
	uint32_t def = 0, block = 0;

	for (uint32_t e = 0; e < f->count; e++) {
		uint32_t of = f->graph->block_of[f->events[e].insn];

		while (block <= of)
			f->first_event[block++] = e;
		if (f->events[e].flags & EVENT_DEF) {
			f->def_insns[def] = f->events[e].insn;
			f->def_flags[def++] = f->events[e].flags;
		}
	}
	while (block <= f->graph->blocks.count)
		f->first_event[block++] = f->count;
}

/* Links of the events of one key, which are in the order of instructions. */
static int
flow_key(struct flow *f, const struct event *events, uint32_t count)
{
	const struct slice_graph *g = f->graph;
	uint32_t uses = 0;

	f->events = events;
	f->count = count;
	f->defs = 0;
	for (uint32_t e = 0; e < count; e++) {
		f->defs += events[e].flags & EVENT_DEF ? 1 : 0;
		uses += events[e].flags & EVENT_USE;
	}
	if (!uses || !f->defs)
		return 0;
	f->words = (f->defs + 63) / 64 + (g->procedures.count + 63) / 64;
	if (make_room(f) < 0)
		return PLUMB_ESYSTEM;
	index_events(f);
	for (int which = 0; which < 2; which++)
		memset(f->in[which], 0, (size_t)g->blocks.count * f->words * sizeof(uint64_t));
	memset(f->dirty, 0, (g->blocks.count / 64 + 1) * sizeof *f->dirty);
	memset(f->returned, 0, (size_t)g->procedures.count * f->words * sizeof(uint64_t));
	for (uint32_t p = 0; p < g->procedures.count; p++) {
		const struct slice_procedure *procedure = &g->procedures.items[p];

		f->open[p] = 0;
		for (int which = 0; which < 2; which++)
			slice_set(set_of(f, which, procedure->entry), pseudo(f, p));
		mark_dirty(f, procedure->entry);
		for (uint32_t d = 0; d < f->defs; d++)
			if (slice_bit(procedure->blocks, g->block_of[f->def_insns[d]]))
				slice_set(&f->returned[(size_t)p * f->words], d);
	}
	for (uint32_t d = 0; d < f->defs; d++)
		mark_dirty(f, g->block_of[f->def_insns[d]]);
	to_fixpoint(f);
	return emit(f);
}

static uint64_t
by_key(const void *row, int which, const void *data)
{
	(void)which;
	(void)data;
	return ((const struct event *)row)->key;
}

/* EVENTS are in the order of instructions. */
static int
flow_events(const struct slice_graph *g, struct slice_links *links, event_vec *events, uint8_t via,
            uint8_t flags, uint32_t most_links)
{
	struct flow f = {
		.graph = g, .links = links, .via = via, .flags = flags, .most_links = most_links
	};
	uint32_t most = 0;
	int result = plumb_sort_rows(events->items, events->count, sizeof *events->items, by_key, 1,
	                             NULL);

	for (uint32_t i = 0, from = 0; i < events->count; i++) {
		if (events->items[i].key != events->items[from].key)
			from = i;
		if (i - from + 1 > most)
			most = i - from + 1;
	}
	f.def_insns = malloc((most + 1) * sizeof *f.def_insns);
	f.def_flags = malloc(most + 1);
	f.first_event = malloc((g->blocks.count + 2) * sizeof *f.first_event);
	f.open = malloc(g->procedures.count + 1);
	f.dirty = malloc((g->blocks.count / 64 + 1) * sizeof *f.dirty);
	if (!f.def_insns || !f.def_flags || !f.first_event || !f.open || !f.dirty)
		result = PLUMB_ESYSTEM;
	for (uint32_t from = 0, to; !result && from < events->count; from = to) {
		for (to = from + 1;
		     to < events->count && events->items[to].key == events->items[from].key;)
			to++;
		result = flow_key(&f, &events->items[from], to - from);
	}
	for (int which = 0; which < 2; which++) {
		free(f.in[which]);
		free(f.now[which]);
	}
	free(f.returned);
	free(f.def_insns);
	free(f.def_flags);
	free(f.first_event);
	free(f.open);
	free(f.dirty);
	return result;
}

/* ---- registers ---- */

static int
add_event(event_vec *events, uint32_t insn, uint32_t key, uint8_t flags, uint8_t file,
          uint16_t number)
{
	struct event *event = plumb_vec_add(events);

	if (!event)
		return PLUMB_ESYSTEM;
	*event = (struct event){ insn, key, flags, file, number };
	return 0;
}

static int
add_range(event_vec *events, uint32_t insn, const struct plumb_regs *regs, uint8_t flags)
{
	for (uint32_t i = 0; i < regs->count; i++) {
		uint16_t number = (uint16_t)(regs->first + i);

		if (add_event(events, insn, (uint32_t)regs->file << 16 | number, flags, regs->file,
		              number) < 0)
			return PLUMB_ESYSTEM;
	}
	return 0;
}

/* A call of nobody knows what may write all registers that are read anywhere. */
static int
add_unknown_calls(const struct slice_graph *g, event_vec *events)
{
	static const uint8_t flags = EVENT_DEF | EVENT_MAY | EVENT_CALLED;
	uint64_t seen[65536 / 64] = { 0 };
	uint32_t count = events->count;
	PLUMB_VEC(uint32_t) calls = { 0 };
	int result = 0;

	for (uint32_t b = 0; !result && b < g->blocks.count; b++)
		if (g->blocks.items[b].calls_unknown) {
			uint32_t *call = plumb_vec_add(&calls);

			if (call)
				*call = g->blocks.items[b].first + g->blocks.items[b].count - 1;
			else
				result = PLUMB_ESYSTEM;
		}
	for (uint32_t e = 0; !result && calls.count && e < count; e++) {
		struct event event = events->items[e];

		if (event.file != PLUMB_REG_VECTOR || !(event.flags & EVENT_USE) ||
		    slice_bit(seen, event.number))
			continue;
		slice_set(seen, event.number);
		for (uint32_t c = 0; !result && c < calls.count; c++)
			result = add_event(events, calls.items[c], event.key, flags, event.file,
			                   event.number);
	}
	plumb_vec_free(&calls);
	return result;
}

static uint64_t
by_insn(const void *row, int which, const void *data)
{
	(void)which;
	(void)data;
	return ((const struct event *)row)->insn;
}

static int
flow_registers(const struct slice_graph *g, struct slice_links *links)
{
	event_vec events = { 0 };
	int result = 0;

	for (uint32_t i = 0; !result && i < g->insn_count; i++) {
		const struct plumb_insn *insn = g->insns[i];
		bool guarded = insn->guard != PLUMB_INSN_ALWAYS;
		uint8_t def = guarded ? EVENT_DEF | EVENT_MAY : EVENT_DEF;

		if (guarded)
			result = add_event(&events, i,
			                   (uint32_t)insn->guard_file << 16 | insn->guard,
			                   EVENT_USE, insn->guard_file, insn->guard);
		for (uint8_t r = 0; !result && r < insn->reads_count; r++)
			result = add_range(&events, i, &insn->reads[r],
			                   insn->reads[r].role == PLUMB_REG_ADDRESS
			                           ? EVENT_USE | EVENT_ADDRESS
			                           : EVENT_USE);
		for (uint8_t r = 0; !result && r < insn->writes_count; r++)
			result = add_range(&events, i, &insn->writes[r], def);
	}
	if (!result)
		result = add_unknown_calls(g, &events);
	if (!result)
		result = plumb_sort_rows(events.items, events.count, sizeof *events.items, by_insn,
		                         1, NULL);
	if (!result)
		result = flow_events(g, links, &events, PLUMB_HOP_REGISTER, SLICE_BY_REGISTER,
		                     MOST_LINKS);
	plumb_vec_free(&events);
	return result;
}

/* ---- memory ---- */

/* What the base registers of an access hold: a number that is equal where they hold the same. */
static uint64_t
base_value(const struct slice_graph *g, const struct slice_links *links, uint32_t insn,
           bool *is_single)
{
	const struct plumb_insn *it = g->insns[insn];
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	*is_single = true;
	for (uint8_t r = 0; r < it->reads_count; r++)
		if (it->reads[r].role == PLUMB_REG_ADDRESS)
			hash = (hash ^ ((uint64_t)it->reads[r].file << 16 | it->reads[r].first)) *
			       UINT64_C(0x100000001b3);
	for (uint32_t l = links->first[insn]; l < links->first[insn + 1]; l++) {
		const struct slice_link *link = &links->all.items[l];

		if (!(link->flags & SLICE_BY_REGISTER) || !(link->flags & SLICE_ADDRESS))
			continue;
		for (uint32_t k = links->first[insn]; k < l; k++)
			if ((links->all.items[k].flags & SLICE_ADDRESS) &&
			    links->all.items[k].regs.first == link->regs.first)
				*is_single = false;
		hash = (hash ^ (link->from + UINT64_C(0x9e3779b9))) * UINT64_C(0x100000001b3);
	}
	return hash ^ (uint64_t)it->space << 61;
}

static bool
is_shared(const struct plumb_insn *insn)
{
	return insn->space == PLUMB_SPACE_SHARED || insn->space == PLUMB_SPACE_DISTRIBUTED;
}

/* Copies into shared memory have two addresses. */
static bool
touches(const struct plumb_insn *insn, bool shared)
{
	return shared ? is_shared(insn) || insn->class == PLUMB_INSN_COPY
	              : insn->space == PLUMB_SPACE_LOCAL;
}

static bool
reads_memory(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_LOAD || insn->class == PLUMB_INSN_ATOMIC;
}

static bool
writes_memory(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_STORE || insn->class == PLUMB_INSN_ATOMIC ||
	       insn->class == PLUMB_INSN_COPY;
}

struct slot {
	uint64_t value;
	uint32_t insn;
	bool is_single;
};

static uint64_t
by_value(const void *row, int which, const void *data)
{
	(void)which;
	(void)data;
	return ((const struct slot *)row)->value;
}

static uint64_t
by_slot_insn(const void *row, int which, const void *data)
{
	(void)which;
	(void)data;
	return ((const struct slot *)row)->insn;
}

typedef PLUMB_VEC(struct slot) slot_vec;

/* Words of SPACE that accesses name, as events. What is not known to be equal has the key 0. */
static int
add_slots(const struct slice_graph *g, const struct slice_links *links, bool shared,
          slot_vec *slots)
{
	for (uint32_t i = 0; i < g->insn_count; i++) {
		const struct plumb_insn *insn = g->insns[i];
		uint32_t words = insn->width > 4 ? insn->width / 4 : 1;
		bool is_single;
		uint64_t base;

		if (!touches(insn, shared) || (!reads_memory(insn) && !writes_memory(insn)))
			continue;
		base = base_value(g, links, i, &is_single);
		for (uint32_t w = 0; w < words; w++) {
			struct slot *slot = plumb_vec_add(slots);
			int64_t word = (insn->displacement >> 2) + (int64_t)w;

			if (!slot)
				return PLUMB_ESYSTEM;
			slot->insn = i;
			slot->is_single = is_single;
			slot->value = (base ^ (uint64_t)word) * UINT64_C(0x9e3779b97f4a7c15);
		}
	}
	return 0;
}

static int
slot_events(const struct slice_graph *g, slot_vec *slots, event_vec *events)
{
	uint64_t last = 0;
	uint32_t key = 0;
	int result = plumb_sort_rows(slots->items, slots->count, sizeof *slots->items, by_value, 1,
	                             NULL);

	for (uint32_t i = 0; i < slots->count; i++) {
		key += !i || slots->items[i].value != last;
		last = slots->items[i].value;
		slots->items[i].value = key;
	}
	if (!result)
		result = plumb_sort_rows(slots->items, slots->count, sizeof *slots->items,
		                         by_slot_insn, 1, NULL);
	for (uint32_t i = 0; !result && i < slots->count; i++) {
		const struct slot *slot = &slots->items[i];
		const struct plumb_insn *insn = g->insns[slot->insn];
		uint8_t def = insn->guard != PLUMB_INSN_ALWAYS ? EVENT_DEF | EVENT_MAY : EVENT_DEF;

		if (!slot->is_single)
			continue;
		if (reads_memory(insn))
			result = add_event(events, slot->insn, (uint32_t)slot->value, EVENT_USE, 0,
			                   0);
		if (!result && writes_memory(insn))
			result = add_event(events, slot->insn, (uint32_t)slot->value, def, 0, 0);
	}
	return result;
}

/* Loads for which no equal address was found may read what any store wrote. LOCAL memory: only if
 * neither address is known, because slots with different displacements differ. */
static int
possible_events(const struct slice_graph *g, const struct slice_links *links, uint32_t proved_from,
                bool shared, const slot_vec *slots, event_vec *events)
{
	uint64_t *proved = calloc(g->insn_count / 64 + 1, sizeof *proved);
	int result = proved ? 0 : PLUMB_ESYSTEM;

	for (uint32_t l = proved_from; proved && l < links->all.count; l++)
		slice_set(proved, links->all.items[l].to);
	for (uint32_t i = 0; !result && i < slots->count; i++) {
		const struct slot *slot = &slots->items[i];
		const struct plumb_insn *insn = g->insns[slot->insn];

		if ((i && slots->items[i - 1].insn == slot->insn) || (!shared && slot->is_single))
			continue;
		if (reads_memory(insn) && !slice_bit(proved, slot->insn))
			result = add_event(events, slot->insn, 0, EVENT_USE, 0, 0);
		if (!result && writes_memory(insn))
			result = add_event(events, slot->insn, 0, EVENT_DEF | EVENT_MAY, 0, 0);
	}
	free(proved);
	return result;
}

static int
flow_memory(const struct slice_graph *g, struct slice_links *links, bool shared)
{
	uint8_t via = shared ? PLUMB_HOP_SHARED : PLUMB_HOP_SPILL;
	uint32_t proved_from = links->all.count;
	event_vec events = { 0 };
	slot_vec slots = { 0 };
	int result = add_slots(g, links, shared, &slots);

	if (!result)
		result = slot_events(g, &slots, &events);
	if (!result)
		result = flow_events(g, links, &events, via, SLICE_PROVED, MOST_LINKS);
	events.count = 0;
	if (!result)
		result = possible_events(g, links, proved_from, shared, &slots, &events);
	if (!result)
		result = flow_events(g, links, &events, via, 0, MOST_POSSIBLE);
	plumb_vec_free(&events);
	plumb_vec_free(&slots);
	return result;
}

int
plumb_slice_flow(const struct slice_graph *g, struct slice_links *links)
{
	int result = flow_registers(g, links);

	/* Bases of addresses are looked up in the links of registers. */
	if (!result)
		result = plumb_slice_links_sort(g, links);
	if (!result)
		result = plumb_slice_arrivals(g, links);
	if (!result)
		result = flow_memory(g, links, false);
	if (!result)
		result = flow_memory(g, links, true);
	return result;
}
