/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window on the file. After its end come zeros, and each scan stops at a zero. So reading needs
 * no other check for the end. If a scan stops there, the state becomes SHORT, and until the end of
 * the body all functions give nothing. Then plumb_pull_again moves what was read since the mark to
 * the front, reads more of the file after it, and the body runs again.
 */
#include "base/json_pull_private.h"

#include <stdlib.h>

#define WINDOW_BYTES ((size_t)1 << 20)
#define PADDING 64 /* a scan reads so far beyond the end */

/* ---- the window ---- */

static int
open_window(struct plumb_pull *pull, size_t room, struct plumb_error *error)
{
	*pull = (struct plumb_pull){ .room = room };
	pull->window = malloc(room + PADDING);
	if (!pull->window)
		return plumb_fail_memory(error, NULL);
	memset(pull->window, 0, PADDING);
	pull->at = pull->end = pull->mark = pull->window;
	return 0;
}

int
plumb_pull_open(struct plumb_pull *pull, struct plumb_input *input, struct plumb_error *error)
{
	int code = open_window(pull, WINDOW_BYTES, error);
	pull->input = input;
	/* A byte order mark is not JSON, but editors write it. */
	if (!code)
		PLUMB_PULL_WHOLE(pull)
		{
			if (pull->end - pull->at < 3 && !pull->ended)
				pull->state = PLUMB_PULL_SHORT;
			else if (pull->end - pull->at >= 3 && !memcmp(pull->at, "\xef\xbb\xbf", 3))
				pull->at += 3;
		}
	return code;
}

int
plumb_pull_open_text(struct plumb_pull *pull, const char *text, size_t bytes,
                     struct plumb_error *error)
{
	int code = open_window(pull, bytes, error);
	if (code)
		return code;
	memcpy(pull->window, text, bytes);
	memset(pull->window + bytes, 0, PADDING);
	pull->end += bytes;
	pull->ended = true;
	return 0;
}

void
plumb_pull_reject(struct plumb_pull *pull, const char *why)
{
	if (pull->state != PLUMB_PULL_OK)
		return;
	pull->state = PLUMB_PULL_BAD;
	pull->why = why;
	pull->why_at = pull->offset + (uint64_t)(pull->at - pull->window);
}

void
plumb_pull_out_of_bytes(struct plumb_pull *pull)
{
	if (pull->at < pull->end)
		plumb_pull_reject(pull, "a zero byte, which is not JSON");
	else if (pull->state == PLUMB_PULL_OK)
		pull->state = PLUMB_PULL_SHORT;
}

int
plumb_pull_error(const struct plumb_pull *pull, const char *path, struct plumb_error *error)
{
	if (pull->error.code)
		return plumb_fail(error, pull->error.code, "%s", pull->error.message);
	const char *packing = pull->input ? plumb_input_packing(pull->input) : NULL;
	return plumb_fail(error, PLUMB_EINPUT, "%s: %s at byte %llu%s",
	                  path ? path : plumb_input_path(pull->input),
	                  pull->why ? pull->why : "it cannot be read",
	                  (unsigned long long)pull->why_at, packing ? " of the unpacked text" : "");
}

/* Texts with escapes. Only the newest of these has room. What was handed out stays where it is. */
struct plumb_pull_scratch {
	struct plumb_pull_scratch *next;
	size_t room, used;
	char bytes[];
};

static void
reset_scratch(struct plumb_pull *pull)
{
	struct plumb_pull_scratch *newest = pull->scratch;
	if (!newest)
		return;
	newest->used = 0;
	while (newest->next) {
		struct plumb_pull_scratch *next = newest->next;
		newest->next = next->next;
		free(next);
	}
}

void
plumb_pull_close(struct plumb_pull *pull)
{
	free(pull->window);
	while (pull->scratch) {
		struct plumb_pull_scratch *next = pull->scratch->next;
		free(pull->scratch);
		pull->scratch = next;
	}
	*pull = (struct plumb_pull){ .state = PLUMB_PULL_BAD };
}

char *
plumb_pull_scratch(struct plumb_pull *pull, size_t bytes)
{
	struct plumb_pull_scratch *newest = pull->scratch;
	if (!newest || newest->room - newest->used < bytes) {
		size_t room = bytes * 2 + 4096;
		struct plumb_pull_scratch *more = malloc(sizeof *more + room);
		if (!more) {
			plumb_pull_reject(pull, "not enough memory for a text");
			return NULL;
		}
		*more = (struct plumb_pull_scratch){ newest, room, 0 };
		pull->scratch = newest = more;
	}
	return newest->bytes + newest->used;
}

void
plumb_pull_scratch_used(struct plumb_pull *pull, size_t bytes)
{
	pull->scratch->used += bytes;
}

void
plumb_pull_mark(struct plumb_pull *pull)
{
	pull->mark = pull->at;
	pull->mark_first = pull->first;
	reset_scratch(pull);
}

/* Reads more of the file. What comes after the mark is kept. */
static bool
refill_window(struct plumb_pull *pull)
{
	size_t kept = (size_t)(pull->end - pull->mark);
	pull->offset += (uint64_t)(pull->mark - pull->window);
	memmove(pull->window, pull->mark, kept);
	if (kept > pull->room / 2) {
		char *grown = kept < PLUMB_PULL_ITEM_MAX
		                      ? realloc(pull->window, pull->room * 2 + PADDING)
		                      : NULL;
		if (grown) {
			pull->window = grown;
			pull->room *= 2;
		}
		if (!grown || kept >= PLUMB_PULL_ITEM_MAX) {
			pull->at = pull->mark = pull->window;
			pull->end = pull->window + kept;
			pull->state = PLUMB_PULL_OK;
			plumb_pull_reject(pull, "an item of more than 256 MB, or not enough memory "
			                        "for it,");
			return false;
		}
	}
	ssize_t got =
		plumb_input_read(pull->input, pull->window + kept, pull->room - kept, &pull->error);
	size_t more = got > 0 ? (size_t)got : 0;
	pull->ended = kept + more < pull->room;
	pull->end = pull->window + kept + more;
	memset(pull->window + kept + more, 0, PADDING);
	pull->at = pull->mark = pull->window;
	if (got < 0) {
		pull->state = PLUMB_PULL_BAD;
		return false;
	}
	return true;
}

bool
plumb_pull_again(struct plumb_pull *pull)
{
	if (pull->state != PLUMB_PULL_SHORT)
		return false;
	if (pull->ended) {
		pull->state = PLUMB_PULL_OK;
		pull->at = pull->end;
		plumb_pull_reject(pull, "the file is cut off: it ends in the middle,");
		return false;
	}
	if (!refill_window(pull))
		return false;
	pull->state = PLUMB_PULL_OK;
	pull->first = pull->mark_first;
	reset_scratch(pull);
	return true;
}
