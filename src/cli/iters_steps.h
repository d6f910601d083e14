/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb iters tells beside the iterations themselves. Private to cli/iters*.c. */
#ifndef PLUMB_CLI_ITERS_STEPS_H
#define PLUMB_CLI_ITERS_STEPS_H

#include "analyze/steps/filled.h"
#include "analyze/steps/marked.h"
#include "analyze/steps/ranks.h"
#include "base/json.h"
#include "cli/iters.h"

/* Of a main track that has iterations; NULLs and zeros elsewhere. */
struct plumb_iters_track {
	struct plumb_moments moments;
	/* of level 0: */
	struct plumb_filled filled;
	int64_t *contended; /* by iteration, or NULL */
	bool others;        /* another process has work on the device */
};

struct plumb_iters_steps {
	uint32_t *user_of; /* by context */
	struct plumb_moments_shared shared;
	struct plumb_iters_track *tracks; /* by place in found->tracks */
	struct plumb_moments **moments;   /* likewise: each of tracks' own, or NULL */
	struct plumb_marked *marked;      /* likewise, of level 0 */
	uint32_t count;
	struct plumb_rank_match match;
};

/* EXPLAINS: plumb_iters_explain may be called; else what only that asks is let go. For
 * plumb_iters_steps_free in any case. Errors: PLUMB_ESYSTEM, PLUMB_EBAD. */
int plumb_iters_steps_new(const struct plumb_profile *profile, const struct plumb_iterations *found,
                          const struct plumb_iteration_limits *limits, bool explains,
                          struct plumb_iters_steps *steps, struct plumb_error *error);
void plumb_iters_steps_free(struct plumb_iters_steps *steps);

/* What filled the intervals of found->tracks[T]: of all together for people; as "filled" of all,
 * and of iteration I. */
void plumb_iters_filled_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_filled_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json);
void plumb_iters_filled_item(const struct plumb_iters *iters, uint32_t t, uint32_t i,
                             struct plumb_json *json);

/* What marks say of the iterations, and other processes on the device. */
void plumb_iters_marked_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_contended_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_marked_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json);

/* The program's own number for iteration I of level 0 of found->tracks[T]; PLUMB_UNKNOWN. */
int64_t plumb_iters_step(const struct plumb_iters *iters, uint32_t t, uint32_t i);
/* Does it number any of them otherwise than they are counted here? */
bool plumb_iters_steps_differ(const struct plumb_iters *iters, uint32_t t);

/* Sets iteration NUMBER of level DEPTH against the others, on the track that is asked for, else the
 * first main track. Errors: PLUMB_EEMPTY (there is none such), PLUMB_ESYSTEM. */
int plumb_iters_explain(const struct plumb_iters *iters, uint32_t depth, int64_t number,
                        bool as_json, FILE *out, struct plumb_error *error);

/* Ranks side by side, where there are several; as "ranks". */
void plumb_iters_ranks_print(const struct plumb_iters *iters, FILE *out);
void plumb_iters_ranks_json(const struct plumb_iters *iters, struct plumb_json *json);

/* "file" and "line" of a frame of the person's own code, null for another. */
void
plumb_iters_line_json(const struct plumb_profile *profile, uint32_t frame, struct plumb_json *json);

#endif
