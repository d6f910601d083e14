/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: what each source received, attributed and dropped. */
#ifndef PLUMB_VIEW_LEDGER_H
#define PLUMB_VIEW_LEDGER_H

#include "base/json.h"
#include "model/profile.h"

struct plumb_ledger_total {
	int64_t received, attributed; /* PLUMB_UNKNOWN: nobody counted */
	int64_t dropped;
	bool any; /* there are rows of this source */
};

/* The totals of SOURCE (enum plumb_source) over all processes. */
struct plumb_ledger_total plumb_ledger_total(const struct plumb_profile *profile, uint32_t source);

/* The reason for the fate of ROW, with its detail; NULL: none is needed. */
#define PLUMB_LEDGER_REASON_SIZE 400
const char *
plumb_ledger_reason(const struct plumb_profile *profile, const struct plumb_ledger_row *row,
                    char text[PLUMB_LEDGER_REASON_SIZE]);

/* The array `ledger` of `report --json`: one object for each source that has rows. */
void plumb_ledger_json(const struct plumb_profile *profile, struct plumb_json *json);

#endif
