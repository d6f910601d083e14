/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger for people and for programs: what each source received, attributed and dropped. */
#ifndef PLUMB_CLI_LEDGER_H
#define PLUMB_CLI_LEDGER_H

#include <stdio.h>

#include "base/json.h"
#include "model/profile.h"

struct plumb_ledger_total {
	int64_t received, attributed; /* PLUMB_UNKNOWN where nobody counted */
	int64_t dropped;
	bool any; /* there are rows of this source */
};

/* SOURCE (enum plumb_source) over all processes. */
struct plumb_ledger_total plumb_ledger_total(const struct plumb_profile *profile, uint32_t source);

/* At most MOST lines, each INDENT columns in: what was dropped and why, or that nothing was. */
void plumb_ledger_print_short(const struct plumb_profile *profile, FILE *out, int indent, int most);
/* A table of all sources and every fate. Negative: no memory. */
int plumb_ledger_print(const struct plumb_profile *profile, FILE *out, int width, bool colour);
/* The array `ledger` of `report --json`: one object for each source that has rows. */
void plumb_ledger_json(const struct plumb_profile *profile, struct plumb_json *json);

#endif
