/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread computed where it has no span, by its samples of CPU time.
 *
 * A sample says what the thread computed at one moment, and how much CPU time passed since the
 * previous sample. plumb assumes that it passed evenly. So it knows the CPU time of a stretch, and
 * shares it out by the samples in the stretch. The rest of the stretch was sleep or waiting.
 *
 * Stretches are often shorter than the time between two samples. Then plumb pools the stretches
 * between the same two lines of the program, and each has the shares of the pool. A short part of a
 * long stretch has the shares of its neighbourhood.
 *
 * All lines of a Python function count as one: the line that most samples met.
 */
#ifndef PLUMB_ANALYZE_STEPS_SAMPLES_H
#define PLUMB_ANALYZE_STEPS_SAMPLES_H

#include "analyze/steps/moments.h"

/* CPU time of samples, by what they met, in gaps of one kind. */
struct plumb_pooled {
	uint32_t gap, key; /* of the moments */
	int64_t ns, all;   /* in short ones; in all */
};

struct plumb_sampled {
	uint32_t thread;
	bool ready;
	int64_t period; /* CPU time of a sample on average; 0: the thread has none */
	struct {
		struct plumb_pooled *items;
		uint32_t count, capacity;
	} pool;                     /* by gap, then key, each once */
	PLUMB_VEC(int64_t) lengths; /* of all short gaps of a kind, by key */
};

/*
 * Adds what THREAD did from FROM to TO, a part of a gap (GAP) from START to END: rows of
 * PLUMB_STEP_SAMPLE, and one of GAP for the rest. False: memory is out.
 */
bool plumb_samples_fill(struct plumb_moments *line, uint32_t thread,
                        const struct plumb_step_key *gap, int64_t start, int64_t end, int64_t from,
                        int64_t to, struct plumb_step_rows *rows) PLUMB_MUST_CHECK;

void plumb_samples_free(struct plumb_moments *line);

#endif
