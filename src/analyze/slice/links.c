/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All links by instruction, and which of them are kept.
 *
 * What a counter proves is kept, whatever registers say. A register alone says little of a result
 * that takes a variable time: if its counter is not pending, somebody has waited for it before. A
 * result of a fixed time is waited for only by an instruction that comes as early as it can. The
 * compiler keeps at least that many cycles between, so the least that it ever keeps between two
 * kinds of instructions is the time that is needed.
 */
#include "analyze/slice/slice_private.h"

#include "base/sort.h"

static uint64_t
by_key(const void *row, int which, const void *data)
{
	const struct slice_link *link = row;

	(void)data;
	if (which == 0)
		return link->to;
	if (which == 1)
		return link->from;
	return link->via == PLUMB_HOP_SPILL || link->via == PLUMB_HOP_SHARED ? link->via : 0;
}

static bool
is_memory(const struct slice_link *link)
{
	return link->via == PLUMB_HOP_SPILL || link->via == PLUMB_HOP_SHARED;
}

static void
join(struct slice_link *to, const struct slice_link *link)
{
	uint8_t shadowed;

	/* The counter stays next to the register, so it stays a proof. */
	if ((link->flags & SLICE_BY_COUNTER) &&
	    (!(to->flags & SLICE_BY_COUNTER) || (link->parts & ~to->parts & PLUMB_SYNC_RESULT))) {
		to->counter = link->counter;
		to->distance = link->distance;
	} else if ((link->flags & SLICE_BY_COUNTER) && link->distance < to->distance) {
		to->distance = link->distance;
	}
	if (link->flags & SLICE_BY_COUNTER)
		to->parts |= link->parts;
	if ((link->flags & SLICE_BY_REGISTER) && !(to->flags & SLICE_BY_REGISTER)) {
		to->regs = link->regs;
		to->via = PLUMB_HOP_REGISTER;
	} else if ((link->flags & SLICE_BY_REGISTER) && link->regs.file == to->regs.file &&
	           link->regs.first >= to->regs.first) {
		uint32_t end = link->regs.first + (uint32_t)link->regs.count - to->regs.first;

		if (end > to->regs.count && end <= UINT16_MAX)
			to->regs.count = (uint16_t)end;
	}
	shadowed = to->flags & link->flags & SLICE_SHADOWED;
	if (!(to->flags & SLICE_BY_COUNTER) || !(link->flags & SLICE_BY_COUNTER))
		shadowed = (to->flags | link->flags) & SLICE_SHADOWED;
	to->flags = (uint8_t)(((to->flags | link->flags) & ~SLICE_SHADOWED) | shadowed);
}

int
plumb_slice_links_sort(const struct slice_graph *g, struct slice_links *links)
{
	uint32_t kept = 0;
	int result = plumb_sort_rows(links->all.items, links->all.count, sizeof *links->all.items,
	                             by_key, 3, NULL);

	if (result < 0)
		return result;
	for (uint32_t i = 0; i < links->all.count; i++) {
		const struct slice_link *link = &links->all.items[i];
		struct slice_link *last = kept ? &links->all.items[kept - 1] : NULL;

		if (last && last->to == link->to && last->from == link->from &&
		    (is_memory(link) ? last->via == link->via : !is_memory(last)))
			join(last, link);
		else
			links->all.items[kept++] = *link;
	}
	links->all.count = kept;
	if (!links->first)
		links->first = malloc((g->insn_count + 1) * sizeof *links->first);
	if (!links->first)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0, l = 0; i <= g->insn_count; i++) {
		while (l < kept && links->all.items[l].to < i)
			l++;
		links->first[i] = l;
	}
	return 0;
}

/* ---- times ---- */

struct slice_latency
plumb_slice_latency(const struct plumb_insn *insn)
{
	switch (slice_kind(insn)) {
	case SLICE_FIXED:
		return (struct slice_latency){ insn->latency ? insn->latency : 4,
			                       insn->latency ? insn->latency : 32 };
	case SLICE_LONG:
		if (insn->class == PLUMB_INSN_STORE)
			return (struct slice_latency){ 40, 400 };
		if (insn->class == PLUMB_INSN_COPY)
			return (struct slice_latency){ 600, 2000 };
		if (insn->space == PLUMB_SPACE_LOCAL)
			return (struct slice_latency){ 100, 1000 };
		return (struct slice_latency){ 400, 2000 };
	default:
		break;
	}
	switch (insn->class) {
	case PLUMB_INSN_LOAD:
	case PLUMB_INSN_ATOMIC:
	case PLUMB_INSN_COPY:
		return insn->space == PLUMB_SPACE_CONSTANT ? (struct slice_latency){ 40, 400 }
		                                           : (struct slice_latency){ 30, 210 };
	case PLUMB_INSN_OTHER: /* LDGDEPBAR: the copies before it */
		return insn->pipe == PLUMB_PIPE_LOCAL_GLOBAL ? (struct slice_latency){ 600, 2000 }
		                                             : (struct slice_latency){ 24, 64 };
	case PLUMB_INSN_TENSOR:
		return (struct slice_latency){ 64, 256 };
	case PLUMB_INSN_FLOAT64:
		return (struct slice_latency){ insn->latency ? insn->latency : 48, 128 };
	default:
		return (struct slice_latency){ 24, 64 };
	}
}

#define FEW 3    /* pairs say how long a result takes */
#define PLAIN 12 /* cycles of a result of which nothing is known */
#define APART 4u /* cycles that it may be there later for one kind of reader than for another */
#define ANY 0xff

/* The least distance between a kind of producer and a kind of reader. */
struct learned {
	const char *opcode;
	uint8_t file, reader;
	uint16_t distance;
	uint32_t count;
};

struct learning {
	PLUMB_VEC(struct learned) items;
	uint32_t slots[256]; /* index + 1 */
	bool failed;         /* no memory */
};

/* READER: a class, or ANY. */
static struct learned *
learned(struct learning *learning, const struct slice_graph *g, const struct slice_link *link,
        uint8_t reader)
{
	const struct plumb_insn *from = g->insns[link->from];
	uint64_t hash = ((uint64_t)(uintptr_t)from->opcode ^ (uint64_t)link->regs.file << 3 ^
	                 (uint64_t)reader << 9) *
	                UINT64_C(0x9e3779b97f4a7c15);
	struct learned *new;

	for (uint32_t at = hash >> 56, n = 0; n < 256; at = (at + 1) & 255, n++) {
		if (!learning->slots[at]) {
			new = plumb_vec_add(&learning->items);
			learning->failed |= !new;
			if (!new)
				return NULL;
			*new = (struct learned){ from->opcode, link->regs.file, reader, SLICE_FAR,
				                 0 };
			learning->slots[at] = learning->items.count;
			return new;
		}
		new = &learning->items.items[learning->slots[at] - 1];
		if (new->opcode == from->opcode &&new->file == link->regs.file &&new->reader ==
		    reader)
			return new;
	}
	return NULL;
}

static bool
is_timed(const struct slice_graph *g, const struct slice_link *link)
{
	return !(link->flags & (SLICE_BY_COUNTER | SLICE_CALLED)) && (link->flags & SLICE_FRESH) &&
	       !is_memory(link) && slice_kind(g->insns[link->from]) == SLICE_FIXED;
}

static int
learn(const struct slice_graph *g, struct slice_links *links, struct learning *learning)
{
	struct slice_distances distances = { 0 };
	int result = 0;

	for (uint32_t l = 0; !result && l < links->all.count; l++) {
		struct slice_link *link = &links->all.items[l];

		if (link->flags & SLICE_BY_COUNTER)
			continue;
		if (is_memory(link)) {
			link->distance = SLICE_FAR;
			continue;
		}
		result = plumb_slice_distance(g, &distances, link->from, link->to, &link->distance);
		if (result < 0 || !is_timed(g, link))
			continue;
		for (int any = 0; any < 2; any++) {
			struct learned *least =
				learned(learning, g, link, any ? ANY : g->insns[link->to]->class);

			if (least && link->distance < least->distance)
				least->distance = link->distance;
			if (least)
				least->count++;
		}
	}
	plumb_slice_distances_free(&distances);
	return learning->failed ? PLUMB_ESYSTEM : result;
}

/* Cycles after which the result of FROM was there for TO, so that TO did not wait. */
static uint32_t
needed(struct learning *learning, const struct slice_graph *g, const struct slice_link *link)
{
	uint32_t latency = g->insns[link->from]->latency;
	const struct learned *least = learned(learning, g, link, g->insns[link->to]->class);
	const struct learned *any;

	/* Without encoded times the hardware waits on its own, and each instruction takes a cycle
	 * at least. */
	if (!g->insns[link->from]->issue)
		return latency ? latency - 1 : 8;
	/* Of few pairs, each may have come late for another reason. */
	if (least && least->count >= FEW && least->distance <= (latency ? latency + 3u : 40))
		return least->distance;
	if (least && latency && least->distance <= latency + 1u)
		return least->distance;
	if (latency)
		return latency;
	any = learned(learning, g, link, ANY);
	return any && any->distance + APART < PLAIN ? any->distance + APART : PLAIN;
}

static bool
is_kept(struct learning *learning, const struct slice_graph *g, const struct slice_link *link)
{
	const struct plumb_insn *from = g->insns[link->from];

	if ((link->flags & SLICE_BY_COUNTER) || is_memory(link))
		return true;
	if (!(link->flags & SLICE_FRESH))
		return false;
	if (link->flags & SLICE_CALLED)
		return true;
	if (from->class == PLUMB_INSN_UNKNOWN)
		return link->distance < SLICE_FAR;
	if (from->signals_count)
		return false;
	if (slice_kind(from) != SLICE_FIXED)
		return link->distance < plumb_slice_latency(from).upper;
	/* One cycle after the instruction before, nobody waited on purpose. */
	if (link->to > g->blocks.items[g->block_of[link->to]].first &&
	    g->insns[link->to - 1]->issue == 1)
		return false;
	return link->distance <= needed(learning, g, link);
}

/* Whatever a counter waits for takes longer than this. */
#define QUICKEST 16u

/* Cycles before which TO cannot begin, counted from when it is reached: what a counter proves to be
 * pending on all ways, because it is in the same block, takes so long at least. */
static uint32_t
held_for(const struct slice_graph *g, const struct slice_links *links, uint32_t to)
{
	uint32_t most = 0;

	for (uint32_t l = links->first[to]; l < links->first[to + 1]; l++) {
		const struct slice_link *link = &links->all.items[l];

		if ((link->flags & (SLICE_BY_COUNTER | SLICE_PROVED)) ==
		            (SLICE_BY_COUNTER | SLICE_PROVED) &&
		    link->parts & PLUMB_SYNC_RESULT && g->insns[link->from]->variable &&
		    g->insns[link->from]->guard == PLUMB_INSN_ALWAYS && link->from < to &&
		    g->block_of[link->from] == g->block_of[to] && link->distance < QUICKEST &&
		    QUICKEST - link->distance > most)
			most = QUICKEST - link->distance;
	}
	return most;
}

/* Loads of shared memory come back in the order in which a warp started them: compilers rely on it,
 * and let only the last one of several raise a counter. A pipe reads its instructions' sources in
 * order, too. 0: neither; else links with equal numbers are in order. */
static uint32_t
order_of(const struct slice_graph *g, const struct slice_link *link)
{
	const struct plumb_insn *from = g->insns[link->from];

	if (from->class == PLUMB_INSN_LOAD && from->space == PLUMB_SPACE_SHARED &&
	    (link->flags & SLICE_BY_REGISTER || link->parts & PLUMB_SYNC_RESULT))
		return 1;
	if ((link->flags & SLICE_BY_COUNTER) && link->parts == PLUMB_SYNC_SOURCES &&
	    from->pipe != PLUMB_PIPE_NONE)
		return 2u + from->pipe;
	return 0;
}

/* Is there surely another one that is later in the order of L, and that its reader waits for, too?
 * Both are in one block, so no way leads from the one past the other. */
static bool
is_overtaken(const struct slice_graph *g, const struct slice_links *links, uint32_t l)
{
	const struct slice_link *link = &links->all.items[l];
	uint32_t order = order_of(g, link), to = link->to;

	for (uint32_t k = l + 1; order && k < links->first[to + 1]; k++) {
		const struct slice_link *other = &links->all.items[k];

		if (other->from > link->from &&
		    g->block_of[other->from] == g->block_of[link->from] &&
		    !(link->from < to && to <= other->from) &&
		    g->insns[other->from]->guard == PLUMB_INSN_ALWAYS &&
		    (other->flags & SLICE_BY_COUNTER) && (other->flags & SLICE_PROVED) &&
		    order_of(g, other) == order)
			return true;
	}
	return false;
}

/* What another producer surely outlasts. Only the reason of a stall can show that it was waited for
 * nevertheless. */
static int
find_hidden(struct learning *learning, const struct slice_graph *g, struct slice_links *links)
{
	links->hidden = calloc(links->all.count / 64 + 1, sizeof *links->hidden);
	for (uint32_t to = 0; links->hidden && to < g->insn_count; to++) {
		uint32_t held = held_for(g, links, to);

		for (uint32_t l = links->first[to]; l < links->first[to + 1]; l++) {
			const struct slice_link *link = &links->all.items[l];

			if (!(link->flags & SLICE_KEPT) || is_memory(link))
				continue;
			if ((held && is_timed(g, link) &&
			     needed(learning, g, link) <= link->distance + held) ||
			    is_overtaken(g, links, l))
				slice_set(links->hidden, l);
		}
	}
	return links->hidden ? 0 : PLUMB_ESYSTEM;
}

int
plumb_slice_links_finish(const struct slice_graph *g, struct slice_links *links)
{
	struct learning *learning = calloc(1, sizeof *learning);
	int result = learning ? plumb_slice_links_sort(g, links) : PLUMB_ESYSTEM;

	if (!result)
		result = learn(g, links, learning);
	for (uint32_t l = 0; !result && l < links->all.count; l++)
		if (is_kept(learning, g, &links->all.items[l])) {
			links->all.items[l].flags |= SLICE_KEPT;
			links->kept++;
		}
	if (!result)
		result = find_hidden(learning, g, links);
	if (learning)
		plumb_vec_free(&learning->items);
	free(learning);
	return result;
}

void
plumb_slice_links_free(struct slice_links *links)
{
	plumb_vec_free(&links->all);
	free(links->first);
	links->first = NULL;
	free(links->hidden);
	links->hidden = NULL;
}
