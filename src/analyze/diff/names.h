/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator is, whatever its vendor, framework or version calls it: the map by which
 * operators of two profiles meet that have no name in common. docs/diff.md is generated from it.
 */
#ifndef PLUMB_ANALYZE_DIFF_NAMES_H
#define PLUMB_ANALYZE_DIFF_NAMES_H

#include <stddef.h>

/* NAMES are separated by spaces, without what plumb_operator_base takes away; "*" at an end stands
 * for anything. The first row with a name that fits counts. */
struct plumb_operator_family {
	const char *family;
	const char *names;
};
extern const struct plumb_operator_family plumb_operator_families[]; /* ends with NULL */

/* The family of an operator, or NULL. */
const char *plumb_operator_family(const char *name);

/*
 * NAME as the map has it, into TEXT of SIZE bytes: lower case; without a namespace ("aten::"), the
 * path of a JAX function ("jit(f)/…/"), brackets, "autograd::engine::evaluate_function: ",
 * underscores in front and at the end, and the numbers that XLA puts behind a dot. Returns TEXT.
 */
char *plumb_operator_base(const char *name, char *text, size_t size);

/* A kernel's name without the number that a compiler puts behind it (triton_…_12, fusion_3), into
 * TEXT. Returns TEXT, or NULL where the name has none. */
char *plumb_kernel_base(const char *name, char *text, size_t size);

#endif
