/* SPDX-License-Identifier: Apache-2.0 */
/* What the archives of elfutils 0.192 lack on Debian 13: their search trees are in an archive
 * that no package has. A program that links libdw.a and libelf.a (STATIC=1) needs them. A tree
 * begins with the root of a tree of glibc; elfutils locks it only if it was built with
 * --enable-thread-safety, which is not the default. They are weak: where an archive has them,
 * or libdw is a shared library, these do nothing. */
#include <search.h>
#include <stddef.h>

struct tree {
	void *root;
};

typedef int plumb_tree_compare(const void *, const void *);

#define WEAK __attribute__((weak))

WEAK void *eu_tsearch(const void *key, struct tree *tree, plumb_tree_compare *compare);
WEAK void *eu_tfind(const void *key, struct tree *tree, plumb_tree_compare *compare);
WEAK void *eu_tdelete(const void *key, struct tree *tree, plumb_tree_compare *compare);
WEAK void eu_tdestroy(struct tree *tree, void (*free_node)(void *));
WEAK void eu_search_tree_init(struct tree *tree);
WEAK void eu_search_tree_fini(struct tree *tree, void (*free_node)(void *));

void *
eu_tsearch(const void *key, struct tree *tree, plumb_tree_compare *compare)
{
	return tsearch(key, &tree->root, compare);
}

void *
eu_tfind(const void *key, struct tree *tree, plumb_tree_compare *compare)
{
	return tfind(key, &tree->root, compare);
}

void *
eu_tdelete(const void *key, struct tree *tree, plumb_tree_compare *compare)
{
	return tdelete(key, &tree->root, compare);
}

void
eu_tdestroy(struct tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

void
eu_search_tree_init(struct tree *tree)
{
	tree->root = NULL;
}

void
eu_search_tree_fini(struct tree *tree, void (*free_node)(void *))
{
	eu_tdestroy(tree, free_node);
}
