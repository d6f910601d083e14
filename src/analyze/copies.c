/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"

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
	static const char *const kinds[] = { "copy pageable\xe2\x86\x92", "copy pinned\xe2\x86\x92",
		                             "copy host\xe2\x86\x92" };
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = frame->kind == PLUMB_FRAME_COPY ? plumb_text(p, frame->name) : NULL;

	for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return !strcmp(name + strlen(kinds[i]), "device");
	return false;
}
