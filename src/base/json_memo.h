/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that a program writes over and over, alike but for some numbers, such as the events of a
 * loop. An object that is alike is compared with the text of one that was read before, and only
 * its numbers are read. What is not alike is read as ever.
 *
 * Which numbers these are: members of a table with `.varies = true` (json_fields.h), and what is
 * skipped. All else must be equal byte for byte, so whatever was found out about one object holds
 * for the next one:
 *
 *	PLUMB_PULL_WHOLE(pull) {
 *		more = plumb_pull_item(pull);
 *		known = more ? plumb_memos_find(memos, pull) : NULL;  // its numbers are stored
 *		if (more && !known)
 *			plumb_pull_object(pull, fields, &event, own);
 *	}
 *	…
 *	if (known)
 *		do_what(known);
 *	else {
 *		struct what what = find_out(&event);
 *		do_what(&what);
 *		plumb_memos_keep(memos, pull, &what);
 *	}
 *
 * The numbers go where they went for the first object, so their places must outlive the memos. A
 * member that is missing stores nothing.
 */
#ifndef PLUMB_BASE_JSON_MEMO_H
#define PLUMB_BASE_JSON_MEMO_H

#include "base/json_pull.h"

struct plumb_memos;

/* KEY is a member that stands after what tells the objects apart, with its quotation marks, as
 * "\"ts\"": 4 characters. What is kept of an object has BYTES. NULL: memory is out. */
struct plumb_memos *plumb_memos_new(const char *key, size_t bytes);
void plumb_memos_free(struct plumb_memos *memos);

/* Reads an object that is alike one that was kept, and returns what was kept of it. NULL: nothing
 * is read; the object is to be read now, and may then be kept. */
const void *plumb_memos_find(struct plumb_memos *memos, struct plumb_pull *pull);
/* The object that was read last (until the next PLUMB_PULL_WHOLE begins). It is not kept if it is
 * unusual, or memory is out. */
void plumb_memos_keep(struct plumb_memos *memos, struct plumb_pull *pull, const void *what);
/* What was found out does not hold any more. */
void plumb_memos_forget(struct plumb_memos *memos);

#endif
