/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of a profile, in their order: what analyses and rules concluded. They are made when
 * a profile is settled. plumb_analyze (analyze/analyze.h) makes them again. */
#ifndef PLUMB_VIEW_FINDINGS_H
#define PLUMB_VIEW_FINDINGS_H

#include <stdio.h>

#include "analyze/answer.h"
#include "base/json.h"
#include "model/profile.h"

struct plumb_findings_query {
	uint32_t top;          /* 0: all */
	const char *user_code; /* the rule that tells your code, or NULL */
};

/* What the saving of a finding is of. */
struct plumb_finding_part {
	const char *name;   /* of the window; NULL: what the profile is of */
	uint32_t loop;      /* the number of a loop that is not the main one; 0: it is of none */
	int64_t whole_ns;   /* how long that took */
	int64_t iterations; /* in it, or PLUMB_UNKNOWN */
	int64_t each_ns;    /* the saving for one of them, or PLUMB_UNKNOWN */
};
struct plumb_finding_part
plumb_finding_part(const struct plumb_profile *profile, const struct plumb_finding *finding);

/* One row for each finding. USER_OF (plumb_user_contexts) tells which line of your code a finding
 * is about. */
int
plumb_findings_answer(const struct plumb_profile *profile, const uint32_t *user_of, uint32_t top,
                      struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;
/* The array `findings` of `report --json`: the first TOP of them; 0: all. */
void
plumb_findings_json(const struct plumb_profile *profile, uint32_t top, struct plumb_json *json);

/* One of them: the number FINDING. */
void
plumb_finding_json(const struct plumb_profile *profile, uint32_t finding, struct plumb_json *json);

/* Writes EVIDENCE, the JSON object of a finding, in words on one line. It writes nothing if there
 * is no evidence. */
void plumb_findings_why(const char *evidence, FILE *out);

#endif
