/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An analysis reads a profile and draws conclusions. All analyses have one contract, and one table
 * lists them:
 *
 *	static int
 *	find_hotspots(struct plumb_study *study)
 *	{
 *		double share = plumb_study_threshold(study, "hotspot.share");
 *		…                                  // study.h: sums, lines, how to draft a finding
 *		return 0;                          // or PLUMB_ESYSTEM
 *	}
 *	const struct plumb_analysis plumb_analysis_hotspot = {
 *		"hotspot", "…", thresholds, find_hotspots
 *	};
 *
 * To add one, write a file with such a constant and add a row to analyze.c. Help, docs and the
 * option --threshold follow from it. The same profile and thresholds give the same findings in the
 * same order. Two runs of one program give a finding the same id: plumb makes it from the rule, the
 * cause and what the finding is about (names, files without their folder, lines), and never from a
 * measured number.
 *
 * saving_ns is an upper bound: the time that you would save if the cause vanished and nothing took
 * its place.
 */
#ifndef PLUMB_ANALYZE_ANALYZE_H
#define PLUMB_ANALYZE_ANALYZE_H

#include "model/profile.h"

struct plumb_study;

/* Units: "share" (0…1, shown in per cent), "ratio", "ns", "byte", "count". */
struct plumb_threshold {
	const char *name; /* "hotspot.share"; NULL ends the table */
	double fallback;
	const char *unit;
	const char *help; /* lower case, no full stop */
};

struct plumb_analysis {
	const char *name; /* the rule of its findings */
	const char *summary;
	const struct plumb_threshold *thresholds;
	/* NULL: it is only thresholds that several analyses share. */
	int (*run)(struct plumb_study *study);
	/* It reads the whole run, also if there is a main loop: it compares ranks, and a window
	 * begins and ends at another moment on each. */
	bool whole;
	/* It asks why the program waits. If launches were counted, that is why. */
	bool waits;
};

/* All of them; ends with NULL. */
extern const struct plumb_analysis *const plumb_analyses[];

/* Values for thresholds, by name. */
struct plumb_thresholds;

/* TEXT is "NAME=VALUE,NAME=VALUE…" (NULL: every default). A value may carry a unit: 5%, 20us, 1ms,
 * 64K. NULL with ERROR filled: PLUMB_EUSAGE, PLUMB_ESYSTEM. */
struct plumb_thresholds *plumb_thresholds_new(const char *text, struct plumb_error *error);
void plumb_thresholds_free(struct plumb_thresholds *thresholds);
/* The value of NAME, which must be in some analysis' table. */
double plumb_thresholds_get(const struct plumb_thresholds *thresholds, const char *name);
/* A value as help shows it: "10 %", "10 µs", "64 KiB", "5". Returns TEXT of SIZE bytes. */
char *plumb_threshold_format(char *text, size_t size, const char *unit, double value);

struct plumb_analyze_options {
	const char *thresholds; /* as above */
	const char *user_code;  /* which code is the user's own; NULL: as the run was told */
	uint32_t path_spans;    /* max spans in the critical path; 0: PLUMB_PATH_SPANS_MOST */
	bool whole;             /* of the whole, even if the profile has a main loop */
};

/* Raise it when an analysis changes what it answers. plumb then makes findings with a lower number
 * again when somebody reads them. */
#define PLUMB_ANALYSES 9

/* Did older analyses make the findings of PROFILE, or none at all? */
static inline bool
plumb_findings_are_old(const struct plumb_profile *profile)
{
	return profile->run.analyses < PLUMB_ANALYSES;
}

/*
 * Runs every analysis. If the profile has a main loop (model/window.h), they read that, then each
 * other large loop (other_loops.h), and what takes start-up is found apart. What they find replaces
 * the findings that PROFILE has under their names; those of other rules stay. OPTIONS may be NULL.
 * PLUMB_EUSAGE: OPTIONS are wrong. PLUMB_ESYSTEM: no memory. After an error PROFILE is as it was.
 */
int plumb_analyze(struct plumb_profile *profile, const struct plumb_analyze_options *options,
                  struct plumb_error *error) PLUMB_MUST_CHECK;

/* Adds COUNT findings of other rules and puts all in their order: the most severe first, then those
 * with the greatest saving weighed by confidence. Idle time without a known reason comes after what
 * is as severe, and what explains another finding comes before that (explains.h). PLUMB_ESYSTEM: no
 * memory, nothing changed. */
int plumb_findings_add(struct plumb_profile *profile, const struct plumb_finding_text *findings,
                       uint32_t count, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Makes the id of a finding into TEXT of PLUMB_FINDING_ID bytes: "RULE-CAUSE-0123456789ab". CAUSE
 * may be NULL. KEY says what it is about; NULL: the path of CONTEXT. Returns TEXT. */
#define PLUMB_FINDING_ID 120
char *plumb_finding_id(char *text, const struct plumb_profile *profile, const char *rule,
                       const char *cause, const char *key, uint32_t context);

/* "note", "warning", "serious". */
const char *plumb_severity_name(uint32_t severity);

#endif
