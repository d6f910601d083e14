/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/copies.h"

#include <stdlib.h>

int64_t *
plumb_copies_sizes(const struct plumb_profile *profile)
{
	int64_t *sizes = malloc(((size_t)profile->contexts_count + 1) * sizeof *sizes);

	for (uint32_t c = 0; sizes && c < profile->contexts_count; c++)
		sizes[c] = PLUMB_UNKNOWN;
	for (uint32_t i = 0; sizes && i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i];

		if (v->metric != PLUMB_METRIC_GPU_COPY_BYTES || !v->count)
			continue;
		bool first = !i || v[-1].context != v->context || v[-1].metric != v->metric;
		int64_t size = v->min == v->max ? v->min : PLUMB_UNKNOWN;
		if (first || sizes[v->context] != size)
			sizes[v->context] = first ? size : PLUMB_UNKNOWN;
	}
	return sizes;
}

bool
plumb_copies_from_host(const struct plumb_profile *p, uint32_t context)
{
	struct plumb_transfer transfer = plumb_context_frame(p, context)->transfer;

	return transfer.to == PLUMB_MEMORY_DEVICE &&
	       (transfer.from == PLUMB_MEMORY_PAGEABLE || transfer.from == PLUMB_MEMORY_PINNED ||
	        transfer.from == PLUMB_MEMORY_HOST);
}
