/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a reader of nested JSON that keeps none of it: for levels that are too long to be read
 * whole. */
#ifndef PLUMB_IMPORT_WALK_H
#define PLUMB_IMPORT_WALK_H

#include "base/json_pull.h"

struct plumb_walk_key {
	char text[64]; /* terminated; empty when it was longer */
};

/* Goes into an object or array; what else stands there is skipped, and false. */
bool plumb_walk_enter(struct plumb_pull *pull, char open);
/* The next member's key, or false: the object has ended, or reading failed. */
bool plumb_walk_member(struct plumb_pull *pull, struct plumb_walk_key *key);
/* Another item comes, an object or array that is entered; others are skipped. False: there is
 * none. */
bool plumb_walk_item(struct plumb_pull *pull, char open);

#endif
