/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb run` itself writes into the region of a running process: contexts and values, in an
 * arena of its own. Chunks are taken atomically, so the program and plumb write side by side.
 */
#ifndef PLUMB_WATCH_TREE_H
#define PLUMB_WATCH_TREE_H

#include "base/map.h"
#include "region/writer.h"

/* Zero it, set region.header and size (of the mapping), and free it at the end. */
struct plumb_watch_tree {
	struct plumb_region region;
	uint64_t size;
	struct plumb_arena arena; /* made at its first use */
	struct plumb_map strings, nodes, values;
	uint64_t used, most; /* bytes of records; MOST 0: no bound but the region's size */
};

/* These return ids of the tree's own records; 0: no room. */
plumb_id plumb_watch_tree_string(struct plumb_watch_tree *tree, const char *text);
/* KEY: a node's parent, kind, flags, name, file and line. */
plumb_id plumb_watch_tree_node(struct plumb_watch_tree *tree, const struct plumb_record_node *key);
/* A time that plumb sees from outside: its metric, and what the ledger calls one sample of it. */
struct plumb_watch_kind {
	enum plumb_metric metric;
	enum plumb_source source;
};
/* Adds NS of KIND at NODE (0: the root) on TRACK, which may be the program's, counted as FATE. */
void plumb_watch_tree_add(struct plumb_watch_tree *tree, struct plumb_watch_kind kind,
                          plumb_id node, plumb_id track, uint64_t ns, enum plumb_fate fate);
void plumb_watch_tree_tell(struct plumb_watch_tree *tree, const char *key, const char *value);
void plumb_watch_tree_free(struct plumb_watch_tree *tree);

#endif
