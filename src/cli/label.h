/* SPDX-License-Identifier: Apache-2.0 */
/* The line that a tree shows for a context or a chain of contexts. */
#ifndef PLUMB_CLI_LABEL_H
#define PLUMB_CLI_LABEL_H

#include "view/report.h"

/* The label of NODE, indented by its depth; malloced. NULL: no memory. WHOLE: long names of kernels
 * are as they are, not compact (model/kernel_name.h). */
char *
plumb_label_node(const struct plumb_report *report, const struct plumb_tree_node *node, bool whole);

#endif
