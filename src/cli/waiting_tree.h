/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb run` itself writes into a process's region while that runs: contexts and values, in
 * an arena of its own. Chunks are taken atomically, so the program and plumb write side by side.
 */
#ifndef PLUMB_CLI_WAITING_TREE_H
#define PLUMB_CLI_WAITING_TREE_H

#include "base/map.h"
#include "region/writer.h"

/* Zero it, set region.header and size (what is mapped), and free it in the end. */
struct plumb_waiting_tree {
	struct plumb_region region;
	uint64_t size;
	struct plumb_arena arena; /* made when first used */
	struct plumb_map strings, nodes, values;
};

/* Ids of the tree's own; 0: no room. */
plumb_id plumb_waiting_string(struct plumb_waiting_tree *tree, const char *text);
/* KEY: a node's parent, kind, flags, name, file and line. */
plumb_id plumb_waiting_node(struct plumb_waiting_tree *tree, const struct plumb_record_node *key);
/* Adds NS of wait.time at NODE on TRACK, which may be the program's, and counts it as FATE. */
void plumb_waiting_add(struct plumb_waiting_tree *tree, plumb_id node, plumb_id track, uint64_t ns,
                       enum plumb_fate fate);
void plumb_waiting_tell(struct plumb_waiting_tree *tree, const char *key, const char *value);
void plumb_waiting_tree_free(struct plumb_waiting_tree *tree);

#endif
