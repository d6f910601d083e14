/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where work is, in the person's words: the innermost line of your own code, or, if one line holds
 * most of the time, the first frames below it that divide it.
 *
 *	struct plumb_division *d = plumb_division_new(profile, user, user_of, metric, &error);
 *	d->place_of[context]                             // a frame, or PLUMB_NONE
 *	plumb_division_text(profile, d, frame, text, size)
 *	    // "train.py:10", "encoder.layer.*.attention, 24 layers", "transformers/trainer.py:23
 *	    // (package)"
 *
 * A line of your code is divided if it holds more than half of the metric, alone, or together with
 * other lines in one model: a module that is called from them, and in which there is no line of
 * yours. `trainer.fit()` is such a line, and so are two lines that train and evaluate one model.
 * The work under it has as its place the first of these that holds at most half of the metric:
 *   1. a module, by its qualified name. Modules that differ in an index only are one (fold.h).
 *   2. below no such module, a Python line of an installed package.
 * If there is neither, the place is what divided the work last: the innermost module that holds
 * more than half, else a line of a package at which the share became less, else your line. Work
 * that lies under no line of your code, but under lines of packages, is divided likewise. What
 * starts a thread (the standard library) does not divide it.
 */
#ifndef PLUMB_ANALYZE_DIVIDE_H
#define PLUMB_ANALYZE_DIVIDE_H

#include "analyze/fold.h"
#include "model/profile.h"

struct plumb_division {
	uint32_t *place_of; /* by context: a frame, or PLUMB_NONE */
	uint32_t *owner;    /* by frame: if it is a place, its line of your code, or PLUMB_NONE */
	const unsigned char *user; /* by frame; the caller's */
	uint32_t line;  /* the line of your code with the most that is divided, or PLUMB_NONE */
	uint32_t lines; /* how many are divided */
	double share;   /* of the metric, in lines that are divided; 0: none is */
	/* Modules: which rows there are, and which are folded. */
	uint32_t *module_of;      /* by frame of a module: its number; else PLUMB_NONE */
	struct plumb_folds folds; /* by number */
};

/* USER as of plumb_user_code_frames, USER_OF of plumb_user_contexts. A METRIC whose sum means
 * nothing counts as the default one. NULL: no memory. */
struct plumb_division *
plumb_division_new(const struct plumb_profile *profile, const unsigned char *user,
                   const uint32_t *user_of, uint32_t metric);
void plumb_division_free(struct plumb_division *division);

/* Is FRAME a place that is no line of your code? DIVISION may be NULL: then nothing is. */
bool plumb_division_is_part(const struct plumb_division *division, uint32_t frame);

/* Your line: FRAME itself, or the one that the part FRAME is in, or PLUMB_NONE. */
uint32_t plumb_division_line(const struct plumb_division *division, uint32_t frame);

/* How many modules a place stands for; 1: it is no fold. */
uint32_t plumb_division_count(const struct plumb_division *division, uint32_t frame);

/* The name of a place: "encoder.layer.*.attention", "transformers/trainer.py", else its file. */
const char *plumb_division_name(const struct plumb_profile *profile,
                                const struct plumb_division *division, uint32_t frame);

/* The whole, as above, in SIZE bytes. A line of your code has its file's whole path if FULL is set,
 * else its name. Returns TEXT. */
char *
plumb_division_text(const struct plumb_profile *profile, const struct plumb_division *division,
                    uint32_t frame, bool full, char *text, size_t size);

#endif
