/* SPDX-License-Identifier: Apache-2.0 */
/* What study.c (drafting findings) and bound.c (bounding what they save) share. Private to
 * analyze/. */
#ifndef PLUMB_ANALYZE_STUDY_PRIVATE_H
#define PLUMB_ANALYZE_STUDY_PRIVATE_H

#include "analyze/iterations.h"
#include "analyze/study.h"
#include "base/pool.h"
#include "base/vec.h"

/* Beside a finding. */
struct plumb_study_about {
	/* By context, and one more for the time between two spans: would it vanish with the cause?
	 * NULL: unknown. */
	unsigned char *gone;
	bool whole;        /* the finding's context and all under it would vanish */
	bool host, device; /* as of a draft */
	uint32_t device_gone;
	uint32_t tells; /* as of a draft */
	int64_t idle_ns;
	bool judged; /* the saving decided the severity */
};

struct plumb_study_findings {
	PLUMB_VEC(struct plumb_finding_text) rows;
	PLUMB_VEC(struct plumb_study_about) about; /* one for each */
	struct plumb_pool *texts;
	const struct plumb_thresholds *thresholds;
	const char *rule;
	struct plumb_iterations iterations;
	bool have_iterations;
};

/* The severity that the saving gives; see plumb_draft_end. */
uint32_t
plumb_study_severity(const struct plumb_study *study, int64_t saving_ns, double confidence);
/* TEXT, kept with the study; NULL: no memory. */
const char *plumb_study_keep(struct plumb_study *study, const char *text);

#endif
