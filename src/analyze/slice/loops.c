/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of the control-flow graph, how often blocks run, and ways back from an instruction.
 *
 * A loop is what lies between an arc to a block that dominates the arc's start and that block. A
 * cycle that can be entered in several places is none.
 */
#include "analyze/slice/slice_private.h"

#include <math.h>

#define LOOP_TURNS 10 /* how often a loop runs, as far as nothing is known */
#define DEEPEST 6     /* deeper loops do not count more */

/* ---- dominators ---- */

struct dominators {
	uint32_t *parent; /* by block; ROOT: the entry of all; PLUMB_NONE: not known yet */
	uint32_t *rank;   /* by block, of ORDER; ROOT has the least */
	uint32_t *order;
	uint32_t root;
};

static uint32_t
meet(const struct dominators *d, uint32_t a, uint32_t b)
{
	while (a != b)
		if (d->rank[a] > d->rank[b])
			a = d->parent[a];
		else
			b = d->parent[b];
	return a;
}

/* The nearest block through which all ways to B go. If only blocks behind B lead to it, it is not
 * reached from the entry, and this is the root: a parent has a lower rank than its block. */
static uint32_t
nearest(const struct slice_graph *g, const struct dominators *d, uint32_t b)
{
	const struct slice_block *block = &g->blocks.items[b];
	uint32_t found = PLUMB_NONE;
	bool led = false;

	for (uint32_t i = 0; i < block->in_count; i++) {
		const struct slice_arc *arc = &g->arcs.items[g->arcs_in[block->in + i]];

		if (!(SLICE_ARCS_WITHIN >> arc->kind & 1))
			continue;
		led |= d->rank[arc->from] < d->rank[b];
		if (d->parent[arc->from] != PLUMB_NONE)
			found = found == PLUMB_NONE ? arc->from : meet(d, found, arc->from);
	}
	return !led || found == PLUMB_NONE || !b ? d->root : found;
}

static int
find_dominators(const struct slice_graph *g, struct dominators *d)
{
	uint32_t n = g->blocks.count;
	bool changed = true;

	d->root = n;
	d->order = malloc((n + 1) * sizeof *d->order);
	d->rank = malloc((n + 1) * sizeof *d->rank);
	d->parent = malloc((n + 1) * sizeof *d->parent);
	if (!d->order || !d->rank || !d->parent)
		return PLUMB_ESYSTEM;
	int result = plumb_slice_order(g, SLICE_ARCS_WITHIN, d->order);

	if (result < 0)
		return result;
	for (uint32_t i = 0; i < n; i++) {
		d->rank[d->order[i]] = i + 1;
		d->parent[i] = PLUMB_NONE;
	}
	d->rank[n] = 0;
	d->parent[n] = n;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t b = d->order[i], parent = nearest(g, d, b);

			changed |= parent != d->parent[b];
			d->parent[b] = parent;
		}
	}
	return 0;
}

static bool
dominates(const struct dominators *d, uint32_t above, uint32_t b)
{
	while (d->rank[b] > d->rank[above])
		b = d->parent[b];
	return b == above;
}

static void
free_dominators(struct dominators *d)
{
	free(d->parent);
	free(d->rank);
	free(d->order);
}

/* ---- loops ---- */

/* Marks the blocks of the loop of HEADER in BITS. STACK has room for all blocks. */
static void
fill_loop(struct slice_graph *g, const struct dominators *d, uint32_t header, uint64_t *bits,
          uint32_t *stack)
{
	uint32_t n = 0;

	memset(bits, 0, (g->blocks.count / 64 + 1) * sizeof *bits);
	slice_set(bits, header);
	for (uint32_t at = header;;) {
		const struct slice_block *block = &g->blocks.items[at];

		for (uint32_t i = 0; i < block->in_count; i++) {
			const struct slice_arc *arc = &g->arcs.items[g->arcs_in[block->in + i]];

			if (!(SLICE_ARCS_WITHIN >> arc->kind & 1) || slice_bit(bits, arc->from) ||
			    !dominates(d, header, arc->from))
				continue;
			slice_set(bits, arc->from);
			stack[n++] = arc->from;
		}
		if (!n)
			return;
		at = stack[--n];
	}
}

static bool
is_header(const struct slice_graph *g, const struct dominators *d, uint32_t b)
{
	const struct slice_block *block = &g->blocks.items[b];

	for (uint32_t i = 0; i < block->in_count; i++) {
		const struct slice_arc *arc = &g->arcs.items[g->arcs_in[block->in + i]];

		if ((SLICE_ARCS_WITHIN >> arc->kind & 1) && dominates(d, b, arc->from))
			return true;
	}
	return false;
}

/* Headers come in an order in which outer loops are before inner ones. */
static int
add_loops(struct slice_graph *g, const struct dominators *d, uint64_t *bits, uint32_t *stack)
{
	for (uint32_t i = 0; i < g->blocks.count; i++) {
		struct slice_loop *loop;
		uint32_t header = d->order[i];

		if (!is_header(g, d, header))
			continue;
		loop = plumb_vec_add(&g->loops);
		if (!loop)
			return PLUMB_ESYSTEM;
		loop->header = header;
		loop->parent = g->blocks.items[header].loop;
		fill_loop(g, d, header, bits, stack);
		for (uint32_t b = 0; b < g->blocks.count; b++) {
			struct slice_block *block = &g->blocks.items[b];

			if (!slice_bit(bits, b))
				continue;
			block->loop = g->loops.count - 1;
			block->depth++;
			loop->blocks++;
			loop->insns += block->count;
			for (uint32_t k = 0; k < block->count; k++)
				loop->bytes += g->insns[block->first + k]->size;
		}
	}
	return 0;
}

int
plumb_slice_loops(struct slice_graph *g)
{
	struct dominators d = { 0 };
	uint64_t *bits = malloc((g->blocks.count / 64 + 1) * sizeof *bits);
	uint32_t *stack = malloc((g->blocks.count + 1) * sizeof *stack);
	int result = bits && stack ? find_dominators(g, &d) : PLUMB_ESYSTEM;

	for (uint32_t b = 0; !result && b < g->blocks.count; b++)
		g->blocks.items[b].above = d.parent[b] == d.root ? PLUMB_NONE : d.parent[b];
	if (!result)
		result = add_loops(g, &d, bits, stack);
	free_dominators(&d);
	free(bits);
	free(stack);
	return result;
}

/* ---- how often blocks run ---- */

static bool
is_above(const struct slice_graph *g, uint32_t above, uint32_t b)
{
	while (b != PLUMB_NONE && b != above)
		b = g->blocks.items[b].above;
	return b == above;
}

#define JOINED_WITHIN 4 /* blocks after a call */

/* Is the call at the end of block FROM one of a helper that the compiler put into the same function
 * and that most threads go around? So are the slow ways of a division and of a square root. */
static bool
is_seldom(const struct slice_graph *g, uint32_t from, uint32_t entry)
{
	uint32_t b = from;

	if (g->blocks.items[from].function != g->blocks.items[entry].function)
		return false;
	for (int i = 0; i < JOINED_WITHIN; i++) {
		const struct slice_block *block = &g->blocks.items[b];
		uint32_t next = PLUMB_NONE;

		for (uint32_t k = 0; k < block->out_count; k++) {
			const struct slice_arc *arc = &g->arcs.items[g->arcs_out[block->out + k]];

			if (arc->kind != SLICE_ARC_NEXT && arc->kind != SLICE_ARC_OVER)
				continue;
			if (next != PLUMB_NONE)
				return false;
			next = arc->to;
		}
		if (next == PLUMB_NONE)
			return false;
		if (!is_above(g, from, next))
			return true;
		b = next;
	}
	return false;
}

/* By depth. What is called runs as often as it is called from. */
static void
guess(struct slice_graph *g)
{
	for (uint32_t b = 0; b < g->blocks.count; b++) {
		struct slice_block *block = &g->blocks.items[b];

		block->frequency = pow(LOOP_TURNS, block->depth < DEEPEST ? block->depth : DEEPEST);
	}
	for (uint32_t turn = 0; turn < g->procedures.count && turn < DEEPEST; turn++)
		for (uint32_t p = 0; p < g->procedures.count; p++) {
			const struct slice_procedure *procedure = &g->procedures.items[p];
			const struct slice_block *entry = &g->blocks.items[procedure->entry];
			double calls = 0, factor;

			for (uint32_t i = 0; i < entry->in_count; i++) {
				const struct slice_arc *arc =
					&g->arcs.items[g->arcs_in[entry->in + i]];

				if (arc->kind == SLICE_ARC_CALL &&
				    !slice_bit(procedure->blocks, arc->from))
					calls += g->blocks.items[arc->from].frequency /
					         (is_seldom(g, arc->from, procedure->entry)
					                  ? LOOP_TURNS
					                  : 1);
			}
			factor = calls / entry->frequency;
			if (!(calls > 0) || calls > pow(LOOP_TURNS, DEEPEST))
				continue;
			for (uint32_t b = 0; b < g->blocks.count; b++)
				if (slice_bit(procedure->own, b))
					g->blocks.items[b].frequency *= factor;
		}
}

void
plumb_slice_frequencies(struct slice_graph *g, const uint64_t *issued, const uint64_t *silent)
{
	uint64_t all = 0;

	guess(g);
	for (uint32_t i = 0; issued && i < g->insn_count; i++)
		all += issued[i];
	/* Few samples say less than the loops. */
	if (all < g->blocks.count * UINT64_C(4) || all < 64)
		return;
	g->counted = true;
	for (uint32_t b = 0; b < g->blocks.count; b++) {
		struct slice_block *block = &g->blocks.items[b];
		double sum = 0;

		if (slice_bit(silent, block->function))
			continue;
		for (uint32_t k = 0; k < block->count; k++)
			sum += (double)issued[block->first + k];
		/* A block without samples ran less often than a sample. */
		block->frequency = (sum > 0 ? sum : 0.5) / block->count;
	}
}

/* ---- ways back ---- */

struct front {
	uint32_t block, away;
};

int
plumb_slice_back(const struct slice_graph *g, uint32_t insn, uint32_t most,
                 bool (*visit)(void *own, uint32_t insn, uint32_t away), void *own)
{
	uint64_t *seen = calloc(g->blocks.count / 64 + 1, sizeof *seen);
	PLUMB_VEC(struct front) queue = { 0 };
	uint32_t start = g->block_of[insn], from = insn, visited = 0, at = 0;
	uint32_t block = start, away = 0;
	int result = seen ? 0 : PLUMB_ESYSTEM;

	while (!result && visited < most) {
		const struct slice_block *it = &g->blocks.items[block];
		bool on = true;

		for (uint32_t i = from; on && i-- > it->first && visited < most; visited++)
			on = visit(own, i, away++);
		for (uint32_t k = 0; on && !result && k < it->in_count; k++) {
			const struct slice_arc *arc = &g->arcs.items[g->arcs_in[it->in + k]];
			struct front *front;

			if (slice_bit(seen, arc->from))
				continue;
			slice_set(seen, arc->from);
			front = plumb_vec_add(&queue);
			if (front)
				*front = (struct front){ arc->from, away };
			else
				result = PLUMB_ESYSTEM;
		}
		if (at == queue.count)
			break;
		block = queue.items[at].block;
		away = queue.items[at++].away;
		it = &g->blocks.items[block];
		from = it->first + it->count;
	}
	plumb_vec_free(&queue);
	free(seen);
	return result;
}

/* ---- distances ---- */

#define FARTHEST 128 /* cycles between blocks that anybody asks for */

static int
push(struct slice_distances *d, uint64_t cycles, uint32_t block)
{
	uint64_t *slot = plumb_vec_add(&d->heap);
	uint32_t at = d->heap.count - 1;

	if (!slot)
		return PLUMB_ESYSTEM;
	for (; at && d->heap.items[(at - 1) / 2] > (cycles << 32 | block); at = (at - 1) / 2)
		d->heap.items[at] = d->heap.items[(at - 1) / 2];
	d->heap.items[at] = cycles << 32 | block;
	return 0;
}

static uint64_t
pop(struct slice_distances *d)
{
	uint64_t top = d->heap.items[0], last = d->heap.items[--d->heap.count];
	uint32_t at = 0, n = d->heap.count;

	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && d->heap.items[child + 1] < d->heap.items[child])
			child++;
		if (d->heap.items[child] >= last)
			break;
		d->heap.items[at] = d->heap.items[child];
	}
	if (n)
		d->heap.items[at] = last;
	return top;
}

static uint64_t
cycles_of(const struct slice_graph *g, const struct slice_block *block)
{
	return g->clock[block->first + block->count] - g->clock[block->first];
}

/* From the ends of blocks to the start of TO's. */
static int
fill_distances(const struct slice_graph *g, struct slice_distances *d, uint32_t to)
{
	uint32_t visited = 0;

	if (!d->cycles) {
		d->cycles = malloc((g->blocks.count + 1) * sizeof *d->cycles);
		if (!d->cycles)
			return PLUMB_ESYSTEM;
		for (uint32_t b = 0; b < g->blocks.count; b++)
			d->cycles[b] = SLICE_FAR;
	}
	for (uint32_t i = 0; i < d->touched.count; i++)
		d->cycles[d->touched.items[i]] = SLICE_FAR;
	d->touched.count = d->heap.count = 0;
	d->block = to;
	/* The heap holds blocks whose start is so far away. */
	if (push(d, 0, to) < 0)
		return PLUMB_ESYSTEM;
	while (d->heap.count && visited++ < 1024) {
		uint64_t top = pop(d);
		const struct slice_block *block = &g->blocks.items[(uint32_t)top];

		for (uint32_t i = 0; i < block->in_count; i++) {
			uint32_t from = g->arcs.items[g->arcs_in[block->in + i]].from, *touched;
			uint64_t start = (top >> 32) + cycles_of(g, &g->blocks.items[from]);

			if (top >> 32 >= d->cycles[from])
				continue;
			if (d->cycles[from] == SLICE_FAR) {
				touched = plumb_vec_add(&d->touched);
				if (!touched)
					return PLUMB_ESYSTEM;
				*touched = from;
			}
			d->cycles[from] = (uint32_t)(top >> 32);
			/* Times that instructions encode are far shorter. */
			if (start <= FARTHEST && push(d, start, from) < 0)
				return PLUMB_ESYSTEM;
		}
	}
	return 0;
}

int
plumb_slice_distance(const struct slice_graph *g, struct slice_distances *d, uint32_t from,
                     uint32_t to, uint16_t *cycles)
{
	uint32_t a = g->block_of[from], b = g->block_of[to];
	uint64_t sum;

	if (a == b && from < to) {
		sum = g->clock[to] - g->clock[from];
	} else {
		if ((!d->cycles || d->block != b) && fill_distances(g, d, b) < 0)
			return PLUMB_ESYSTEM;
		sum = g->clock[g->blocks.items[a].first + g->blocks.items[a].count] -
		      g->clock[from] + d->cycles[a] + g->clock[to] -
		      g->clock[g->blocks.items[b].first];
	}
	*cycles = (uint16_t)(sum < SLICE_FAR ? sum : SLICE_FAR);
	return 0;
}

void
plumb_slice_distances_free(struct slice_distances *d)
{
	free(d->cycles);
	plumb_vec_free(&d->touched);
	plumb_vec_free(&d->heap);
}
