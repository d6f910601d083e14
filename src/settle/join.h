/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles → profile: joins what the ranks of a job, or several runs, wrote each on its own.
 */
#ifndef PLUMB_SETTLE_JOIN_H
#define PLUMB_SETTLE_JOIN_H

#include "model/profile.h"

/*
 * Joins the COUNT profiles into OUT, which the caller frees.
 *
 * - Equal contexts become one; processes, and so ranks, stay apart as tracks of their own.
 * - A GPU with a UUID is one device, whoever used it. Its busy time is unknown where two profiles
 *   used it at the same time, because the union of their intervals cannot be made from the sums.
 * - A fact of the environment stays the run's where all profiles that state it agree; else it
 *   becomes a fact of each profile's processes.
 * - Of the run: command of the first, exit code the first that is not 0, the greatest overhead;
 *   wall time from the first start to the last end where all ran on one host, else the longest.
 *
 * Errors: PLUMB_EUSAGE (none given, or one process comes twice), PLUMB_ESYSTEM (memory).
 */
int plumb_join(const struct plumb_profile *const *profiles, size_t count, struct plumb_profile *out,
               struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
