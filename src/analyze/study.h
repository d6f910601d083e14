/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all analyses use: the profile's sums, the user's own lines, and drafts of findings.
 *
 *	struct plumb_draft draft;
 *
 *	plumb_draft_begin(&draft, "layout", context);
 *	plumb_draft_title(&draft, "layout conversions take %s …", …);
 *	plumb_json_key_quantity(draft.evidence, "gpu_time_ns", ns);
 *	plumb_draft_advice(&draft, "…");
 *	draft.saving_ns = ns;
 *	draft.confidence = 0.9;
 *	return plumb_draft_end(study, &draft);
 */
#ifndef PLUMB_ANALYZE_STUDY_H
#define PLUMB_ANALYZE_STUDY_H

#include <stdio.h>

#include "analyze/analyze.h"
#include "analyze/divide.h"
#include "base/json.h"

struct plumb_iterations;

struct plumb_study {
	const struct plumb_profile *profile;
	const struct plumb_profile *whole; /* that `profile` is a window of, or `profile` */
	const unsigned char *user;         /* by frame: is it the user's own code? */
	const uint32_t *user_of;           /* by context: the innermost such frame, or PLUMB_NONE */
	/* by context: the same, or what divides it (divide.h). Titles name places. */
	const uint32_t *place_of;
	struct plumb_division *division;
	/* by context: the innermost operator's context, or PLUMB_NONE */
	const uint32_t *operator_of;
	/* gpu.time, exclusive, by context: where count is not 0 there is a kernel. */
	const struct plumb_stat *kernels;
	int64_t whole_ns; /* the wall time of the run, also in a profile of a window */
	int64_t gpu_ns;   /* gpu.time of the whole profile */
	int64_t copy_ns;  /* gpu.copy_time likewise */
	int64_t busy_ns;  /* of all devices; PLUMB_UNKNOWN when one of them is, or there is none */
	int64_t span_ns;  /* likewise, from each device's first work to its last */
	/* The whole that a saving is compared with: span_ns, else the wall time, else gpu_ns +
	 * copy_ns. */
	int64_t scale_ns;
	/* Of a loop next to the main one: what savings of the main one are compared with. Then what
	 * saves as much is as severe in both. 0: it is no such loop. */
	int64_t main_scale_ns;
	uint32_t path_spans; /* max spans in the path */
	bool traced; /* there are spans of threads and of streams, so their path bounds savings */
	struct plumb_study_findings *findings; /* study_private.h */
};

/* NULL with ERROR filled: PLUMB_EUSAGE (bad THRESHOLDS or USER_CODE), PLUMB_ESYSTEM. */
struct plumb_study *
plumb_study_new(const struct plumb_profile *profile, const struct plumb_thresholds *thresholds,
                const char *user_code, struct plumb_error *error);
void plumb_study_free(struct plumb_study *study);
/* The findings drafted so far; valid until the study is freed. */
const struct plumb_finding_text *
plumb_study_findings(const struct plumb_study *study, uint32_t *count);
/* The analysis whose findings come next. */
void plumb_study_rule(struct plumb_study *study, const char *rule);

/* Fills STATS with METRIC of every context, exclusive. Only a damaged or foreign profile has a
 * negative sum; it counts as no observation. */
void
plumb_study_load(const struct plumb_profile *profile, uint32_t metric, struct plumb_stat *stats);

double plumb_study_threshold(const struct plumb_study *study, const char *name);

/* scale_ns in words, for a share of it: "the run's 8.84 s". */
const char *plumb_study_scale(const struct plumb_study *study, char *text, size_t size);

/* The iterations of the profile, found when the first analysis asks. They belong to the study.
 * NULL: no memory. */
const struct plumb_iterations *plumb_study_iterations(const struct plumb_study *study);

/* Time not busy on the devices; PLUMB_UNKNOWN where that is not known. */
int64_t plumb_study_idle(const struct plumb_study *study);

/* ---- words for titles ---- */

/* These write to TEXT of SIZE bytes and return it, as those of base/format.h do. */

/* "train.py:41" of a Python frame; "no line of your code" for PLUMB_NONE; of another place what
 * plumb_division_text says. */
char *plumb_study_line(const struct plumb_study *study, uint32_t frame, char *text, size_t size);
/* The same for the key of a finding: without numbers of layers. */
char *plumb_study_key(const struct plumb_study *study, uint32_t frame, char *text, size_t size);
/* LINE, and if it is divided the place of CONTEXT, which has the most of what is told. */
char *plumb_study_line_at(const struct plumb_study *study, uint32_t line, uint32_t context,
                          char *text, size_t size);
/* BEFORE and that line. For PLUMB_NONE nothing: such a title names no line. */
char *plumb_study_under(const struct plumb_study *study, const char *before, uint32_t frame,
                        char *text, size_t size);
/* A frame's name without template arguments and parameters. Of a kernel that a general template
 * runs it is the name of what is computed. */
char *plumb_study_name(const struct plumb_study *study, uint32_t frame, char *text, size_t size);
/* The same, but a long name loses its middle. */
char *plumb_study_short(const struct plumb_study *study, uint32_t frame, char *text, size_t size);
/* Writes user_file, user_line and divided_by (the place, if it is no line of your code) of a place
 * into EVIDENCE; null when there is none. */
void
plumb_study_line_json(const struct plumb_study *study, struct plumb_json *evidence, uint32_t frame);

/* ---- drafts ---- */

/* What a finding says of the time in which devices have no work. Each explains those before it
 * (explains.h). */
enum plumb_tells {
	PLUMB_TELLS_NOTHING,
	PLUMB_TELLS_IDLE, /* that there is such time */
	PLUMB_TELLS_WHY,  /* why a device has none: its host, or copies */
	PLUMB_TELLS_RANK, /* that other ranks wait for this device */
};

struct plumb_draft {
	const char *cause; /* which of the rule's causes; part of the id; may be NULL */
	uint32_t context;
	char *key; /* what it is about, malloced; NULL: the path of CONTEXT */
	char *title, *advice;
	struct plumb_json *evidence; /* an open object */
	int64_t saving_ns;           /* PLUMB_UNKNOWN at first */
	double confidence;
	uint32_t severity; /* 0: the saving decides */
	/* What would vanish together with the cause: */
	unsigned char *about; /* what plumb_draft_about returned, */
	bool host;            /* or all that threads do, recorded or not, */
	bool device;          /* or all work of the device DEVICE_GONE */
	uint32_t device_gone;
	uint32_t tells;  /* enum plumb_tells */
	int64_t idle_ns; /* of how much of that time, of all devices; 0: as much as it saves */
	FILE *evidence_out;
	char *evidence_text;
	size_t evidence_bytes;
	bool failed;
};

void plumb_draft_begin(struct plumb_draft *draft, const char *cause, uint32_t context);
void plumb_draft_key(struct plumb_draft *draft, const char *format, ...) PLUMB_PRINTF(2, 3);
void plumb_draft_title(struct plumb_draft *draft, const char *format, ...) PLUMB_PRINTF(2, 3);
void plumb_draft_advice(struct plumb_draft *draft, const char *format, ...) PLUMB_PRINTF(2, 3);
/* Returns a mark for each context, all 0. The caller sets the mark to 1 where the work would vanish
 * together with the cause. NULL: the study is not traced, so nobody asks. If a draft without a key
 * has no marks, its context and all under it would vanish. See bound.c. */
unsigned char *plumb_draft_about(const struct plumb_study *study, struct plumb_draft *draft);
/* CPU samples may meet a context of ABOUT where no span of that context is. Adds the span around
 * the sample to ABOUT, or the time between two spans. ABOUT may be NULL. */
void plumb_draft_about_samples(const struct plumb_study *study, struct plumb_draft *draft,
                               unsigned char *about);
/* Adds the finding. If the draft sets no severity, the saving decides: serious from a fifth of
 * scale_ns, a warning from a twentieth, else a note. A confidence below 0.3 makes it a note. In a
 * loop next to the main one the saving decides in any case. */
int plumb_draft_end(struct plumb_study *study, struct plumb_draft *draft);

/* bound.c: no finding saves more than the critical path would. PLUMB_ESYSTEM: no memory. */
int plumb_study_bound(struct plumb_study *study);

/* ---- tallies: an amount by frame ---- */

struct plumb_tally {
	int64_t *ns;     /* by frame */
	uint64_t *count; /* by frame; number frames_count is for PLUMB_NONE */
	uint32_t frames;
};
int plumb_tally_new(const struct plumb_study *study, struct plumb_tally *tally);
void plumb_tally_free(struct plumb_tally *tally);
void plumb_tally_add(struct plumb_tally *tally, uint32_t frame, int64_t ns, uint64_t count);
/* Are these lines of one function? */
bool plumb_is_same_function(const struct plumb_profile *profile, uint32_t a, uint32_t b);
/* Joins the lines of each function, in all TALLIES (NULL at the end), at the line that has the most
 * time in the first one. PLUMB_ESYSTEM: no memory. */
int plumb_tally_join_functions(const struct plumb_study *study, struct plumb_tally *const *tallies);
/* The frame with the most time, or PLUMB_NONE. Ties go to the lower number. */
uint32_t plumb_tally_top(const struct plumb_tally *tally);
/* Writes the MOST greatest to EVIDENCE under KEY, as [{"name" or "line": …, "ns": …, "count": …}],
 * and takes them out of the tally. */
void plumb_tally_json(const struct plumb_study *study, struct plumb_tally *tally,
                      struct plumb_json *evidence, const char *key, int most);

/* A + B. A sum that is too large becomes the largest number. */
static inline int64_t
plumb_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN + 1 : INT64_MAX) : sum;
}

#endif
