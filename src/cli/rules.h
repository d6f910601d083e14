/* SPDX-License-Identifier: Apache-2.0 */
/* Runs rules that you wrote in Python with python3, and adds what they flag. */
#ifndef PLUMB_CLI_RULES_H
#define PLUMB_CLI_RULES_H

#include "model/profile.h"

/*
 * Runs the rule files RULES (separated by commas) on the profile at PATH, which PROFILE was read
 * from, and adds what they flag to PROFILE's findings. Python is $PLUMB_PYTHON, else python3 on
 * PATH. The package `plumb` is the one beside this program, else the one that this Python has.
 * What a rule prints goes to standard error. Errors: PLUMB_EINPUT with file and line if a rule
 * fails, PLUMB_ESYSTEM if no Python can run it.
 */
int plumb_rules_run(struct plumb_profile *profile, const char *path, const char *rules,
                    struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
