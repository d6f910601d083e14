/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds names that differ in an index only: "h.0.mlp" … "h.11.mlp" are "h.*.mlp", twelve of them.
 * An index is a number between dots. Of a name with several, all may differ.
 *
 *	struct plumb_folds folds;
 *	if (plumb_folds_make(items, count, total, &folds) < 0) …
 *	folds.first[i]                 // the item that stands for i; i itself if it is not folded
 *	folds.count[folds.first[i]]    // how many it stands for
 *	folds.label[folds.first[i]]    // "h.*.mlp"
 *	plumb_folds_free(&folds);
 *
 * Folded names have the same kind. One that takes much more than its like is not folded, so that it
 * can be seen: more than PLUMB_FOLD_RATIO times their median, and that by at least PLUMB_FOLD_SHARE
 * of the total.
 */
#ifndef PLUMB_ANALYZE_FOLD_H
#define PLUMB_ANALYZE_FOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PLUMB_FOLD_RATIO 1.5
#define PLUMB_FOLD_SHARE 0.005

struct plumb_fold_item {
	const char *name; /* NULL: is not folded */
	const char *kind; /* or NULL */
	int64_t amount;
};

struct plumb_pool;
struct plumb_folds {
	uint32_t *first;    /* by item */
	uint32_t *count;    /* by item: 0 if another one stands for it */
	const char **label; /* by item: NULL if it is not the first of a fold */
	int64_t *usual;     /* by item that takes much more than its like: their median; else 0 */
	struct plumb_pool *texts;
};

/* PLUMB_ESYSTEM: no memory. Call plumb_folds_free in any case. */
int plumb_folds_make(const struct plumb_fold_item *items, uint32_t count, int64_t total,
                     struct plumb_folds *folds) PLUMB_MUST_CHECK;
void plumb_folds_free(struct plumb_folds *folds);

/* Writes NAME to TEXT with a star for each index and returns how many there are. A name that is too
 * long for SIZE bytes has none. */
uint32_t plumb_fold_pattern(const char *name, char *text, size_t size);

#endif
