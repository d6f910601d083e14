/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control-flow graph of a kernel and what it calls. Calls are arcs, too: from the call to the
 * procedure, and from where the procedure returns to the block after the call. What passes a
 * procedure untouched takes the arc OVER it, so callers do not mix.
 *
 * An indirect branch may go to each block that nothing else leads to. If there is no such block, it
 * may go to all blocks of its function.
 */
#include "analyze/slice/slice_private.h"

static bool
ends_block(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_BRANCH || insn->class == PLUMB_INSN_CALL ||
	       insn->class == PLUMB_INSN_RETURN || insn->class == PLUMB_INSN_EXIT;
}

static bool
falls_through(const struct plumb_insn *insn)
{
	return !ends_block(insn) || insn->guard != PLUMB_INSN_ALWAYS || insn->is_conditional ||
	       insn->class == PLUMB_INSN_CALL;
}

static uint32_t
at_offset(const struct plumb_insns *insns, uint32_t offset)
{
	uint32_t low = 0, high = insns->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (insns->items[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < insns->count && insns->items[low].offset == offset ? low : PLUMB_NONE;
}

static uint32_t
called_function(const struct plumb_slice_function *function, uint32_t insn)
{
	for (uint32_t i = 0; i < function->call_count; i++)
		if (function->calls[i].insn == insn)
			return function->calls[i].function;
	return PLUMB_NONE;
}

static int
add_insns(struct slice_graph *g)
{
	const struct plumb_slice_input *in = g->input;
	uint64_t total = 0, clock = 0;

	g->base = malloc((in->function_count + 1) * sizeof *g->base);
	if (!g->base)
		return PLUMB_ESYSTEM;
	for (uint32_t f = 0; f < in->function_count; f++) {
		g->base[f] = (uint32_t)total;
		total += in->functions[f].insns->count;
	}
	if (total >= PLUMB_VEC_MAX / 2)
		return PLUMB_ESYSTEM;
	g->base[in->function_count] = g->insn_count = (uint32_t)total;
	g->insns = malloc((total + 1) * sizeof *g->insns);
	g->block_of = malloc((total + 1) * sizeof *g->block_of);
	g->clock = malloc((total + 1) * sizeof *g->clock);
	if (!g->insns || !g->block_of || !g->clock)
		return PLUMB_ESYSTEM;
	for (uint32_t f = 0; f < in->function_count; f++)
		for (uint32_t i = 0; i < in->functions[f].insns->count; i++) {
			uint32_t at = g->base[f] + i;

			g->insns[at] = &in->functions[f].insns->items[i];
			g->clock[at] = clock;
			clock += slice_issue(g->insns[at]);
		}
	g->clock[total] = clock;
	return 0;
}

/* Target of a branch or call in its own function, as an instruction; PLUMB_NONE: not known. */
static uint32_t
target_of(const struct slice_graph *g, uint32_t function, uint32_t insn)
{
	const struct plumb_insn *it = g->insns[insn];
	uint32_t at;

	if (!it->has_target ||
	    called_function(&g->input->functions[function], insn - g->base[function]) != PLUMB_NONE)
		return PLUMB_NONE;
	at = at_offset(g->input->functions[function].insns, it->target);
	return at == PLUMB_NONE ? at : g->base[function] + at;
}

static int
add_blocks(struct slice_graph *g)
{
	uint64_t *leaders = calloc(g->insn_count / 64 + 1, sizeof *leaders);

	if (!leaders)
		return PLUMB_ESYSTEM;
	for (uint32_t f = 0; f < g->input->function_count; f++) {
		if (g->base[f] < g->base[f + 1])
			slice_set(leaders, g->base[f]);
		for (uint32_t i = g->base[f]; i < g->base[f + 1]; i++) {
			uint32_t target = target_of(g, f, i);

			if (target != PLUMB_NONE)
				slice_set(leaders, target);
			if (ends_block(g->insns[i]) && i + 1 < g->base[f + 1])
				slice_set(leaders, i + 1);
		}
	}
	for (uint32_t f = 0; f < g->input->function_count; f++)
		for (uint32_t i = g->base[f]; i < g->base[f + 1]; i++) {
			struct slice_block *block;

			if (slice_bit(leaders, i)) {
				block = plumb_vec_add(&g->blocks);
				if (!block) {
					free(leaders);
					return PLUMB_ESYSTEM;
				}
				block->first = i;
				block->function = f;
				block->loop = PLUMB_NONE;
			}
			g->block_of[i] = g->blocks.count - 1;
			g->blocks.items[g->blocks.count - 1].count++;
		}
	free(leaders);
	return 0;
}

static int
add_arc(struct slice_graph *g, uint32_t from, uint32_t to, uint8_t kind, uint32_t procedure)
{
	struct slice_arc *arc = plumb_vec_add(&g->arcs);

	if (!arc)
		return PLUMB_ESYSTEM;
	*arc = (struct slice_arc){ from, to, kind, procedure };
	return 0;
}

static uint32_t
procedure_at(struct slice_graph *g, uint32_t entry)
{
	struct slice_procedure *procedure;

	for (uint32_t i = 0; i < g->procedures.count; i++)
		if (g->procedures.items[i].entry == entry)
			return i;
	procedure = plumb_vec_add(&g->procedures);
	if (!procedure)
		return PLUMB_NONE;
	procedure->entry = entry;
	return g->procedures.count - 1;
}

static uint32_t
last_of(const struct slice_block *block)
{
	return block->first + block->count - 1;
}

/* The procedure that block B calls at its end; PLUMB_NONE: it calls none that is known. */
static int
called_procedure(struct slice_graph *g, uint32_t b, uint32_t *procedure)
{
	const struct slice_block *block = &g->blocks.items[b];
	uint32_t last = last_of(block);
	uint32_t function = called_function(&g->input->functions[block->function],
	                                    last - g->base[block->function]);
	uint32_t to = PLUMB_NONE;

	*procedure = PLUMB_NONE;
	if (function != PLUMB_NONE && function < g->input->function_count &&
	    g->base[function] < g->base[function + 1])
		to = g->base[function];
	else if (g->insns[last]->class == PLUMB_INSN_CALL)
		to = target_of(g, block->function, last);
	if (to == PLUMB_NONE)
		return 0;
	*procedure = procedure_at(g, g->block_of[to]);
	return *procedure == PLUMB_NONE ? PLUMB_ESYSTEM : 0;
}

/* Arcs of one block, without those of indirect branches and returns. */
static int
add_block_arcs(struct slice_graph *g, uint32_t b)
{
	struct slice_block *block = &g->blocks.items[b];
	uint32_t last = last_of(block), procedure, target;
	const struct plumb_insn *insn = g->insns[last];
	bool is_last = last + 1 == g->base[block->function + 1];
	int result = called_procedure(g, b, &procedure);

	block->returns = insn->class == PLUMB_INSN_RETURN;
	if (result < 0)
		return result;
	if (procedure != PLUMB_NONE) {
		result = add_arc(g, b, g->procedures.items[procedure].entry, SLICE_ARC_CALL,
		                 procedure);
		if (!result && falls_through(insn) && !is_last)
			result = add_arc(g, b, b + 1, SLICE_ARC_OVER, procedure);
		return result;
	}
	if (insn->class == PLUMB_INSN_CALL)
		block->calls_unknown = true;
	target =
		insn->class == PLUMB_INSN_BRANCH ? target_of(g, block->function, last) : PLUMB_NONE;
	if (target != PLUMB_NONE)
		result = add_arc(g, b, g->block_of[target], SLICE_ARC_NEXT, PLUMB_NONE);
	if (!result && falls_through(insn) && !is_last)
		result = add_arc(g, b, b + 1, SLICE_ARC_NEXT, PLUMB_NONE);
	return result;
}

static bool
is_indirect(const struct slice_graph *g, const struct slice_block *block)
{
	const struct plumb_insn *insn = g->insns[last_of(block)];

	return insn->class == PLUMB_INSN_BRANCH && (insn->is_indirect || !insn->has_target) &&
	       called_function(&g->input->functions[block->function],
	                       last_of(block) - g->base[block->function]) == PLUMB_NONE;
}

/* A block with only this in it is padding after the end of the code. */
static bool
is_padding(const struct slice_graph *g, const struct slice_block *block)
{
	const struct plumb_insn *last = g->insns[last_of(block)];

	for (uint32_t i = block->first; i < last_of(block); i++)
		if (g->insns[i]->class != PLUMB_INSN_NOP)
			return false;
	return last->class == PLUMB_INSN_NOP ||
	       (last->class == PLUMB_INSN_BRANCH && last->has_target &&
	        last->target == g->insns[block->first]->offset);
}

static int
add_indirect_arcs(struct slice_graph *g)
{
	uint32_t *led = calloc(g->blocks.count + 1, sizeof *led);
	int result = led ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; led && i < g->arcs.count; i++)
		led[g->arcs.items[i].to]++;
	for (uint32_t b = 0; !result && b < g->blocks.count; b++) {
		const struct slice_block *from = &g->blocks.items[b];
		bool all = true;

		if (!is_indirect(g, from))
			continue;
		for (int turn = 0; turn < 2 && all && !result; turn++)
			for (uint32_t t = 0; !result && t < g->blocks.count; t++) {
				const struct slice_block *to = &g->blocks.items[t];

				if (to->function != from->function || is_padding(g, to) ||
				    (!turn && (led[t] || to->first == g->base[to->function])))
					continue;
				all = false;
				result = add_arc(g, b, t, SLICE_ARC_NEXT, PLUMB_NONE);
			}
	}
	free(led);
	return result;
}

static int
index_arcs(struct slice_graph *g)
{
	free(g->arcs_in);
	free(g->arcs_out);
	g->arcs_in = malloc((g->arcs.count + 1) * sizeof *g->arcs_in);
	g->arcs_out = malloc((g->arcs.count + 1) * sizeof *g->arcs_out);
	if (!g->arcs_in || !g->arcs_out)
		return PLUMB_ESYSTEM;
	for (uint32_t b = 0; b < g->blocks.count; b++)
		g->blocks.items[b].in_count = g->blocks.items[b].out_count = 0;
	for (uint32_t i = 0; i < g->arcs.count; i++) {
		g->blocks.items[g->arcs.items[i].to].in_count++;
		g->blocks.items[g->arcs.items[i].from].out_count++;
	}
	for (uint32_t b = 0, in = 0, out = 0; b < g->blocks.count; b++) {
		struct slice_block *block = &g->blocks.items[b];

		block->in = in;
		block->out = out;
		in += block->in_count;
		out += block->out_count;
		block->in_count = block->out_count = 0;
	}
	for (uint32_t i = 0; i < g->arcs.count; i++) {
		struct slice_block *to = &g->blocks.items[g->arcs.items[i].to];
		struct slice_block *from = &g->blocks.items[g->arcs.items[i].from];

		g->arcs_in[to->in + to->in_count++] = i;
		g->arcs_out[from->out + from->out_count++] = i;
	}
	return 0;
}

/* Which blocks a procedure has (OWN), and with those that it calls (BLOCKS). */
static int
fill_procedure(struct slice_graph *g, struct slice_procedure *procedure, uint32_t *stack)
{
	uint32_t words = g->blocks.count / 64 + 1;

	procedure->own = calloc(words, sizeof *procedure->own);
	procedure->blocks = calloc(words, sizeof *procedure->blocks);
	if (!procedure->own || !procedure->blocks)
		return PLUMB_ESYSTEM;
	for (int turn = 0; turn < 2; turn++) {
		uint64_t *bits = turn ? procedure->blocks : procedure->own;
		uint32_t n = 0;

		slice_set(bits, procedure->entry);
		stack[n++] = procedure->entry;
		while (n) {
			const struct slice_block *block = &g->blocks.items[stack[--n]];
			bool over = false;

			for (uint32_t i = 0; i < block->out_count; i++) {
				uint32_t arc = g->arcs_out[block->out + i];

				over |= g->arcs.items[arc].kind == SLICE_ARC_OVER;
			}
			for (uint32_t i = 0; i < block->out_count; i++) {
				const struct slice_arc *arc =
					&g->arcs.items[g->arcs_out[block->out + i]];

				/* A call after which nothing comes is a jump: what it calls returns
				 * for it. */
				if ((arc->kind == SLICE_ARC_CALL && !turn && over) ||
				    slice_bit(bits, arc->to))
					continue;
				slice_set(bits, arc->to);
				stack[n++] = arc->to;
			}
		}
	}
	return 0;
}

static int
add_returns(struct slice_graph *g)
{
	uint32_t *stack = malloc((g->blocks.count + 1) * sizeof *stack);
	uint32_t count = g->arcs.count;
	int result = stack ? 0 : PLUMB_ESYSTEM;

	for (uint32_t p = 0; !result && p < g->procedures.count; p++)
		result = fill_procedure(g, &g->procedures.items[p], stack);
	free(stack);
	for (uint32_t i = 0; !result && i < count; i++) {
		struct slice_arc over = g->arcs.items[i];

		if (over.kind != SLICE_ARC_OVER)
			continue;
		for (uint32_t b = 0; !result && b < g->blocks.count; b++)
			if (g->blocks.items[b].returns &&
			    slice_bit(g->procedures.items[over.procedure].own, b))
				result = add_arc(g, b, over.to, SLICE_ARC_RETURN, over.procedure);
	}
	return result;
}

static bool
is_led(const struct slice_graph *g, uint32_t b, unsigned kinds)
{
	const struct slice_block *block = &g->blocks.items[b];

	for (uint32_t i = 0; i < block->in_count; i++)
		if (kinds >> g->arcs.items[g->arcs_in[block->in + i]].kind & 1)
			return true;
	return false;
}

struct visit {
	uint32_t block, next;
};

/* From ROOT; fills ORDER from PLACE down. Returns the new place. */
static uint32_t
order_from(const struct slice_graph *g, uint32_t root, unsigned kinds, struct visit *stack,
           uint8_t *seen, uint32_t *order, uint32_t place)
{
	uint32_t n = 0;

	seen[root] = 1;
	stack[n++] = (struct visit){ root, 0 };
	while (n) {
		struct visit *top = &stack[n - 1];
		const struct slice_block *block = &g->blocks.items[top->block];
		const struct slice_arc *arc;

		if (top->next == block->out_count) {
			order[--place] = top->block;
			n--;
			continue;
		}
		arc = &g->arcs.items[g->arcs_out[block->out + top->next++]];
		if ((kinds >> arc->kind & 1) && !seen[arc->to]) {
			seen[arc->to] = 1;
			stack[n++] = (struct visit){ arc->to, 0 };
		}
	}
	return place;
}

int
plumb_slice_order(const struct slice_graph *g, unsigned kinds, uint32_t *order)
{
	struct visit *stack = malloc((g->blocks.count + 1) * sizeof *stack);
	uint8_t *seen = calloc(g->blocks.count + 1, 1);
	uint32_t place = g->blocks.count;

	/* What is finished last comes first, so the kernel's entry is the last root of the first
	 * turn. The second is for loops that nothing leads to. */
	if (stack && seen)
		for (int turn = 0; turn < 2; turn++)
			for (uint32_t r = g->blocks.count; r-- > 0;)
				if (!seen[r] && (turn || !r || !is_led(g, r, kinds)))
					place = order_from(g, r, kinds, stack, seen, order, place);
	free(stack);
	free(seen);
	return place ? PLUMB_ESYSTEM : 0;
}

int
plumb_slice_graph_make(const struct plumb_slice_input *input, struct slice_graph *g)
{
	int result;

	*g = (struct slice_graph){ .input = input };
	result = add_insns(g);
	if (!result)
		result = add_blocks(g);
	for (uint32_t b = 0; !result && b < g->blocks.count; b++)
		result = add_block_arcs(g, b);
	if (!result)
		result = add_indirect_arcs(g);
	if (!result)
		result = index_arcs(g);
	if (!result)
		result = add_returns(g);
	if (!result)
		result = index_arcs(g);
	if (!result) {
		g->order = malloc((g->blocks.count + 1) * sizeof *g->order);
		result = g->order ? plumb_slice_order(g, SLICE_ARCS_ALL, g->order) : PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; !result && i < g->blocks.count; i++)
		g->blocks.items[g->order[i]].rank = i;
	if (!result)
		result = plumb_slice_loops(g);
	return result;
}

void
plumb_slice_graph_free(struct slice_graph *g)
{
	for (uint32_t i = 0; i < g->procedures.count; i++) {
		free(g->procedures.items[i].own);
		free(g->procedures.items[i].blocks);
	}
	free(g->base);
	free(g->insns);
	free(g->block_of);
	free(g->clock);
	free(g->arcs_in);
	free(g->arcs_out);
	free(g->order);
	plumb_vec_free(&g->blocks);
	plumb_vec_free(&g->arcs);
	plumb_vec_free(&g->procedures);
	plumb_vec_free(&g->loops);
}
