/* SPDX-License-Identifier: Apache-2.0 */
#include "import/samples.h"

#include "base/hash.h"

#define STRING_OF_MACRO(number) #number
#define STRING_OF(macro) STRING_OF_MACRO(macro)

uint32_t
plumb_samples_frame(struct plumb_trace *trace, struct plumb_slice name, struct plumb_slice file,
                    int64_t line)
{
	if (!name.at || !name.bytes)
		name = (struct plumb_slice){ "[unknown code]", 14 };
	if (!file.bytes)
		file.at = NULL;
	return plumb_trace_frame_at(trace, PLUMB_FRAME_NATIVE, name, file, line);
}

void
plumb_samples_under(struct plumb_samples *samples, struct plumb_samples_chain *chain,
                    uint32_t frame)
{
	if (chain->depth == PLUMB_SAMPLES_DEPTH_MAX) {
		chain->cut = true;
		return;
	}
	/* Without memory the builder says so. */
	uint32_t under = frame == PLUMB_NONE || chain->context == PLUMB_NONE
	                         ? PLUMB_NONE
	                         : plumb_builder_context(plumb_trace_builder(samples->trace),
	                                                 chain->context, frame, 0);
	chain->context = under;
	chain->depth++;
}

void
plumb_samples_take(struct plumb_samples *samples, uint32_t track,
                   const struct plumb_samples_chain *chain, int64_t at_ns, int64_t ns)
{
	static const struct plumb_slice none = { NULL, 0 };
	struct plumb_samples_chain own = *chain;

	if (ns < 0) {
		samples->timeless++;
		return;
	}
	if (!own.context)
		plumb_samples_under(samples, &own,
		                    plumb_samples_frame(samples->trace, none, none, 0));
	samples->too_deep += own.cut;
	samples->lost += own.lost;
	if (track == PLUMB_NONE || own.context == PLUMB_NONE)
		return; /* without memory */
	plumb_trace_cpu_sample(samples->trace, track, own.context, at_ns, ns);
}

void
plumb_samples_end(struct plumb_samples *samples)
{
	struct plumb_trace *trace = samples->trace;

	plumb_trace_count(trace, PLUMB_FATE_UNUSED, "CPU samples without a CPU time",
	                  samples->timeless);
	plumb_trace_count(trace, PLUMB_FATE_UNUSED, "samples of idle threads", samples->idle);
	plumb_trace_count(trace, PLUMB_FATE_UNUSED,
	                  "call chains of CPU samples that were cut after the outermost " STRING_OF(
				  PLUMB_SAMPLES_DEPTH_MAX) " frames",
	                  samples->too_deep);
	plumb_trace_count(trace, PLUMB_FATE_OVERWRITTEN, "frames of call chains of CPU samples",
	                  samples->lost);
}

/* ---- frames with numbers and parents ---- */

static uint64_t
node_hash(uint64_t owner, int64_t number)
{
	return plumb_hash_mix(owner, (uint64_t)number);
}

static uint32_t
find_node(const struct plumb_samples_tree *tree, uint64_t owner, int64_t number)
{
	struct plumb_map_cursor at;

	for (uint32_t i = plumb_map_first(&tree->map, node_hash(owner, number), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&tree->map, &at))
		if (tree->nodes.items[i].owner == owner && tree->nodes.items[i].number == number)
			return i;
	return PLUMB_NONE;
}

bool
plumb_samples_node(struct plumb_samples *samples, struct plumb_samples_tree *tree, uint64_t owner,
                   int64_t number, int64_t parent, const struct plumb_samples_function *function,
                   bool idle)
{
	struct plumb_builder *builder = plumb_trace_builder(samples->trace);
	struct plumb_samples_node *node;

	if (find_node(tree, owner, number) != PLUMB_NONE)
		return true;
	node = plumb_vec_add(&tree->nodes);
	if (!node || plumb_map_add(&tree->map, node_hash(owner, number), tree->nodes.count - 1) < 0)
		return false;
	node->owner = owner;
	node->number = number;
	node->parent = parent;
	node->idle = idle;
	node->shown = function != NULL;
	if (function) {
		node->name = plumb_builder_string(builder, function->name.at, function->name.bytes);
		node->file = plumb_builder_string(builder, function->file.at, function->file.bytes);
		node->line = function->line;
	}
	return true;
}

static uint32_t
frame_of(struct plumb_trace *trace, const struct plumb_samples_node *node)
{
	struct plumb_builder *builder = plumb_trace_builder(trace);
	const char *name = plumb_builder_get_text(builder, node->name);
	const char *file = plumb_builder_get_text(builder, node->file);

	return plumb_samples_frame(trace, (struct plumb_slice){ name, name ? strlen(name) : 0 },
	                           (struct plumb_slice){ file, file ? strlen(file) : 0 },
	                           node->line);
}

/* Up from node I to where the chain is known, and down again. Each node is walked once, also where
 * they go round. */
static bool
find_chain(struct plumb_samples *samples, struct plumb_samples_tree *tree, uint32_t i)
{
	struct plumb_samples_chain chain = { 0 };

	tree->walk.count = 0;
	for (;;) {
		struct plumb_samples_node *node = &tree->nodes.items[i];
		uint32_t *step;

		if (node->found) {
			chain = node->chain;
			break;
		}
		chain.lost = node->walked;
		if (node->walked)
			break;
		if (!(step = plumb_vec_add(&tree->walk)))
			return false;
		*step = i;
		node->walked = true;
		if (node->parent == PLUMB_UNKNOWN)
			break;
		i = find_node(tree, node->owner, node->parent);
		chain.lost = i == PLUMB_NONE;
		if (chain.lost)
			break;
	}
	for (uint32_t k = tree->walk.count; k--;) {
		struct plumb_samples_node *node = &tree->nodes.items[tree->walk.items[k]];

		if (node->shown)
			plumb_samples_under(samples, &chain, frame_of(samples->trace, node));
		node->chain = chain;
		node->found = true;
	}
	return true;
}

bool
plumb_samples_take_at(struct plumb_samples *samples, struct plumb_samples_tree *tree,
                      uint64_t owner, int64_t number, uint32_t track, int64_t at_ns, int64_t ns)
{
	uint32_t i = find_node(tree, owner, number);

	if (i == PLUMB_NONE) {
		plumb_samples_take(samples, track, &(struct plumb_samples_chain){ .lost = true },
		                   at_ns, ns);
		return true;
	}
	if (tree->nodes.items[i].idle) {
		samples->idle++;
		return true;
	}
	if (!tree->nodes.items[i].found && !find_chain(samples, tree, i))
		return false;
	plumb_samples_take(samples, track, &tree->nodes.items[i].chain, at_ns, ns);
	return true;
}

void
plumb_samples_tree_free(struct plumb_samples_tree *tree)
{
	plumb_vec_free(&tree->nodes);
	plumb_map_free(&tree->map);
	plumb_vec_free(&tree->walk);
}
