/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb's own exports in this format say beside PyTorch's profiler. */
#include "import/kineto.h"

uint32_t
plumb_kineto_own(struct plumb_pull *pull, struct plumb_kineto_bytes *bytes, uint32_t room)
{
	struct plumb_slice key;
	uint32_t count = 0;
	bool object = plumb_pull_enter(pull, '{');
	if (!object)
		plumb_pull_skip(pull);
	while (object && plumb_pull_member(pull, &key)) {
		if (!plumb_slice_is(key, "bytes") || !plumb_pull_enter(pull, '[')) {
			plumb_pull_skip(pull);
			continue;
		}
		while (plumb_pull_item(pull)) {
			struct plumb_kineto_bytes row = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, 0, 0 };
			bool inner = plumb_pull_enter(pull, '{');
			if (!inner)
				plumb_pull_skip(pull);
			while (inner && plumb_pull_member(pull, &key))
				if (plumb_slice_is(key, "process"))
					plumb_pull_integer(pull, &row.process);
				else if (plumb_slice_is(key, "device"))
					plumb_pull_integer(pull, &row.device);
				else if (plumb_slice_is(key, "copied"))
					plumb_pull_integer(pull, &row.copied);
				else if (plumb_slice_is(key, "set"))
					plumb_pull_integer(pull, &row.set);
				else
					plumb_pull_skip(pull);
			if (count < room)
				bytes[count++] = row;
		}
	}
	return count;
}
