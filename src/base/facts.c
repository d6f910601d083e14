/* SPDX-License-Identifier: Apache-2.0 */
#include "base/facts.h"

const char *const plumb_fact_names[PLUMB_FACT_COUNT] = {
#define X(id, name) [PLUMB_FACT_##id] = name,
	PLUMB_FACTS(X)
#undef X
};
