/* SPDX-License-Identifier: Apache-2.0 */
#include "import/walk.h"

bool
plumb_walk_enter(struct plumb_pull *pull, char open)
{
	bool entered = false;
	PLUMB_PULL_WHOLE(pull)
	entered = plumb_pull_enter(pull, open);
	if (!entered && !plumb_pull_failed(pull))
		plumb_pull_skip_long(pull);
	return entered && !plumb_pull_failed(pull);
}

bool
plumb_walk_member(struct plumb_pull *pull, struct plumb_walk_key *key)
{
	struct plumb_slice name;
	bool more = false;
	key->text[0] = '\0';
	if (plumb_pull_failed(pull))
		return false;
	PLUMB_PULL_WHOLE(pull)
	more = plumb_pull_member(pull, &name);
	if (!more || plumb_pull_failed(pull))
		return false;
	/* The key is not for long: what reads the value moves the window. */
	size_t bytes = name.bytes < sizeof key->text ? name.bytes : 0;
	memcpy(key->text, name.at, bytes);
	key->text[bytes] = '\0';
	return true;
}

bool
plumb_walk_item(struct plumb_pull *pull, char open)
{
	for (;;) {
		bool more = false, entered = false;
		if (plumb_pull_failed(pull))
			return false;
		PLUMB_PULL_WHOLE(pull)
		{
			entered = false;
			more = plumb_pull_item(pull);
			if (more)
				entered = plumb_pull_enter(pull, open);
		}
		if (!more || plumb_pull_failed(pull))
			return false;
		if (entered)
			return true;
		plumb_pull_skip_long(pull);
	}
}
