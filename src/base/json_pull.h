/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON of any size and unknown origin from a plumb_input, at about a GB/s. Nothing of the
 * file is kept but a window on it: what lies within one PLUMB_PULL_WHOLE is read whole, or again
 * from its beginning once more of the file is there. So its body must do nothing but read, into
 * variables that it sets anew:
 *
 *	PLUMB_PULL_WHOLE(pull)
 *		enter = plumb_pull_enter(pull, '[');
 *	while (enter) {
 *		PLUMB_PULL_WHOLE(pull) {
 *			event = (struct event){ 0 };
 *			more = plumb_pull_item(pull);
 *			if (more)
 *				read_event(pull, &event);
 *		}
 *		if (!more || plumb_pull_failed(pull)) break;
 *		take(&event);
 *	}
 *
 * Texts (struct plumb_slice) are not terminated and hold until the next PLUMB_PULL_WHOLE begins.
 *
 * Every function may be called after a failure, and then gives nothing: check once. More than JSON
 * is taken where tools write it: NaN and Infinity (as unknown), raw control characters in texts, a
 * comma before an end.
 */
#ifndef PLUMB_BASE_JSON_PULL_H
#define PLUMB_BASE_JSON_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/input.h"

struct plumb_slice {
	const char *at; /* NULL: there was none */
	size_t bytes;
};

struct plumb_pull {
	const char *at, *end; /* the window; readable and 0 for a while from `end` on */
	unsigned char state;  /* enum plumb_pull_state */
	bool first;           /* nothing of the array or object that was entered is read */
	char part[64];        /* json_fields.h: the key of a part; empty if it is longer */
	/* private */
	const char *mark;
	bool mark_first, ended;
	struct plumb_input *input;
	char *window;
	size_t room;
	uint64_t offset;                    /* of window[0] in the file */
	struct plumb_pull_scratch *scratch; /* texts with escapes, since the mark */
	struct plumb_pull_notes *notes; /* json_memo.h: of the object that is read; NULL: none */
	const char *why;
	uint64_t why_at;
	struct plumb_error error; /* of the input */
};

enum plumb_pull_state { PLUMB_PULL_OK, PLUMB_PULL_SHORT, PLUMB_PULL_BAD };

/* A single item (an event, a value outside of the items) may be so long. */
#define PLUMB_PULL_ITEM_MAX ((size_t)256 << 20)

/* Reads INPUT, from which nothing may have been read. INPUT must outlive the reader. */
int plumb_pull_open(struct plumb_pull *pull, struct plumb_input *input,
                    struct plumb_error *error) PLUMB_MUST_CHECK;
/* The BYTES at TEXT, all there is; TEXT is copied. */
int plumb_pull_open_text(struct plumb_pull *pull, const char *text, size_t bytes,
                         struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_pull_close(struct plumb_pull *pull);

#define PLUMB_PULL_WHOLE(pull)                                                                     \
	for (bool whole_ = (plumb_pull_mark(pull), false); !whole_;                                \
	     whole_ = !plumb_pull_again(pull))
void plumb_pull_mark(struct plumb_pull *pull);
bool plumb_pull_again(struct plumb_pull *pull);

/* Once true it stays so. */
static inline bool
plumb_pull_failed(const struct plumb_pull *pull)
{
	return pull->state == PLUMB_PULL_BAD;
}
/* The reader's own complaint: WHY (a literal) at the value read last. */
void plumb_pull_reject(struct plumb_pull *pull, const char *why);
/* After a failure: "PATH: WHY at byte N"; returns ERROR's code. PATH NULL: the input's. */
int plumb_pull_error(const struct plumb_pull *pull, const char *path, struct plumb_error *error);

/* ---- within PLUMB_PULL_WHOLE ---- */

/* The first character of the next value ('{', '[', '"', 't', 'f', 'n', a digit or '-'). Nothing is
 * read. 0: the file has ended. */
char plumb_pull_next(struct plumb_pull *pull);
/* Enters an object or array. False if the value is something else; nothing is then read. */
bool plumb_pull_enter(struct plumb_pull *pull, char open);
/* In an object: the next member's key; its value must be read next. False: the object has ended. */
bool plumb_pull_member(struct plumb_pull *pull, struct plumb_slice *key);
/* In an array: there is another item, which must be read next. False: the array has ended. */
bool plumb_pull_item(struct plumb_pull *pull);

/* Nothing of the file is left but white space, and maybe a comma before it: a list that its writer
 * never closed. Nothing is read. */
bool plumb_pull_is_over(struct plumb_pull *pull);

/* Each reads one value. False if the value is something else; it is then skipped, and nothing is
 * stored. */
bool plumb_pull_text(struct plumb_pull *pull, struct plumb_slice *text);
/* A whole number, or a text that is one; a fraction is cut off. False also beyond int64_t. */
bool plumb_pull_integer(struct plumb_pull *pull, int64_t *number);
/* As it is written times 10^SCALE, exactly; what is finer is rounded to the nearest. "1.5", scale
 * 3: 1500. */
bool plumb_pull_decimal(struct plumb_pull *pull, int scale, int64_t *number);
/* Any value, whatever is in it. */
void plumb_pull_skip(struct plumb_pull *pull);

/* ---- outside ---- */

/* Any value, however long. */
void plumb_pull_skip_long(struct plumb_pull *pull);

/* ---- texts ---- */

static inline bool
plumb_slice_is(struct plumb_slice slice, const char *text)
{
	return slice.bytes == strlen(text) && !memcmp(slice.at, text, slice.bytes);
}
static inline bool
plumb_slice_begins(struct plumb_slice slice, const char *text)
{
	return slice.bytes >= strlen(text) && !memcmp(slice.at, text, strlen(text));
}
/* The number that the BYTES at TEXT are; as plumb_pull_decimal. */
bool plumb_slice_decimal(struct plumb_slice text, int scale, int64_t *number);

#endif
