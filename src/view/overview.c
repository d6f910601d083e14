/* SPDX-License-Identifier: Apache-2.0 */
#include "view/overview.h"

#include <stdlib.h>
#include <string.h>

int64_t
plumb_overview_recorded(const struct plumb_profile *p)
{
	int64_t most = PLUMB_UNKNOWN;

	/* Joined profiles may differ; as with the wall time, the longest counts. */
	for (uint32_t i = 0; i < p->environment_count; i++) {
		const char *key = plumb_text(p, p->environment[i].key);
		const char *value = plumb_text(p, p->environment[i].value);
		int64_t number;
		if (!key || !value || strcmp(key, "plumb.recorded_ns"))
			continue;
		number =
			*value && strspn(value, "0123456789") == strlen(value) && strlen(value) < 19
				? strtoll(value, NULL, 10)
				: -1;
		if (number >= 0 && number > most)
			most = number;
	}
	return most;
}

int64_t
plumb_overview_span(const struct plumb_profile *p, int64_t span)
{
	int64_t recorded = plumb_overview_recorded(p);

	return recorded == PLUMB_UNKNOWN || span == PLUMB_UNKNOWN || span < recorded ? span
	                                                                             : recorded;
}
