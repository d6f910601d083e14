/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a profile went, lane by lane: what the host of each process did, and what each
 * GPU did. Ask for a window's profile to have one phase of a run. The parts of a lane add up to its
 * whole, which is how long the profile took.
 */
#ifndef PLUMB_VIEW_SHARES_H
#define PLUMB_VIEW_SHARES_H

#include "analyze/answer.h"
#include "model/profile.h"

/* Fills the table `shares`, to be freed: `lane` (host, gpu), `pid`, `rank`, `device`, `name`,
 * `part`, `ns`, `whole_ns`. PLUMB_ESYSTEM. */
int plumb_shares_answer(const struct plumb_profile *profile, struct plumb_answer *answer,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
