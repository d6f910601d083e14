/* SPDX-License-Identifier: Apache-2.0 */
/* The part of your line that work is in, in JSON (analyze/divide.h). */
#ifndef PLUMB_VIEW_PART_H
#define PLUMB_VIEW_PART_H

#include "analyze/divide.h"
#include "base/json.h"

/* The key "divided_by": {kind, name, file, line, count} of the frame PART; null for PLUMB_NONE. */
void plumb_part_json(struct plumb_json *json, const struct plumb_profile *profile,
                     const struct plumb_division *division, uint32_t part);

#endif
