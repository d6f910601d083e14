/* SPDX-License-Identifier: Apache-2.0 */
/* The operators and lines that a compiler made kernels from. */
#ifndef PLUMB_VIEW_REPORT_FROM_H
#define PLUMB_VIEW_REPORT_FROM_H

#include "base/json.h"
#include "base/vec.h"
#include "model/fused.h"
#include "view/report.h"

struct plumb_report_parts {
	PLUMB_VEC(struct plumb_fused_part)
	list; /* free it with plumb_vec_free; empty: the kernel was not made from others */
};

struct plumb_report_parts
plumb_report_from_context(const struct plumb_report *report, uint32_t context);
/* The same for all compiled code in the row. */
struct plumb_report_parts plumb_report_from_row(const struct plumb_report *report, uint32_t row);

/* Have the frames A and B, which may be PLUMB_NONE, the same file and line? */
bool plumb_report_same_line(const struct plumb_profile *profile, uint32_t a, uint32_t b);

/* Write the key "from" with the parts, if there are any. */
void plumb_report_from_context_json(const struct plumb_report *report, struct plumb_json *json,
                                    uint32_t context);
void plumb_report_from_row_json(const struct plumb_report *report, struct plumb_json *json,
                                uint32_t row);

#endif
