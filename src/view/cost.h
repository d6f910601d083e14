/* SPDX-License-Identifier: Apache-2.0 */
/* What recording costs: measured, estimated, or not known. */
#ifndef PLUMB_VIEW_COST_H
#define PLUMB_VIEW_COST_H

#include "analyze/cost_estimate.h"
#include "base/json.h"
#include "model/profile.h"

enum plumb_cost_kind {
	PLUMB_COST_UNKNOWN = 0,
	PLUMB_COST_ESTIMATED = 1,
	PLUMB_COST_MEASURED = 2,
};
struct plumb_cost_answer {
	enum plumb_cost_kind kind;
	bool tried;             /* it was to be measured, and could not be */
	bool hidden;            /* an estimate: the host does its part while the GPU works */
	struct plumb_cost cost; /* `why` is not used; an estimate has no interval and no pairs */
	const char *why;        /* it is not known; lives as long as the profile */
	struct plumb_cost_estimate parts; /* of an estimate */
};

struct plumb_cost_answer plumb_cost_answer(const struct plumb_profile *profile);

/* The key "cost". */
void plumb_cost_json(const struct plumb_profile *profile, struct plumb_json *json);

#endif
