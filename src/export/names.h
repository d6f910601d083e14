/* SPDX-License-Identifier: Apache-2.0 */
/* What contexts and tracks are called in exports. Private to export/. */
#ifndef PLUMB_EXPORT_NAMES_H
#define PLUMB_EXPORT_NAMES_H

#include "base/vec.h"
#include "model/counter_series.h"

/* Text that grows. `failed`: memory was out. */
struct plumb_export_text {
	PLUMB_VEC(char) bytes; /* not terminated */
	bool failed;
};
void plumb_export_append(struct plumb_export_text *text, const char *more);

/* What a context says that its parent does not: 0 … PLUMB_EXPORT_MARKS - 1. */
#define PLUMB_EXPORT_MARKS 8u
unsigned plumb_export_mark(const struct plumb_profile *profile, uint32_t context);
/* " [backward]", …; "" for 0. */
extern const char *const plumb_export_mark_texts[PLUMB_EXPORT_MARKS];

/* Is it a frame of Python's import system? A stack goes from the import statement to the module
 * without it, and its own time is the statement's. */
bool plumb_export_folds(const struct plumb_profile *profile, uint32_t context);

/* The part of PATH after its last slash. */
const char *plumb_export_base(const char *path);
/* The file and line of the frame's code; NULL and 0 if unknown. */
const char *
plumb_export_source(const struct plumb_profile *profile, uint32_t frame, uint32_t *line);

/* Appends a context as one line of text: "step (train.py:22)", "aten::mm", "MmBackward0
 * [backward]". */
void plumb_export_label(const struct plumb_profile *profile, uint32_t context,
                        struct plumb_export_text *text);

/* "thread 4242 (python3)", "stream 7 on device 0". If the profile has several processes, the text
 * names the process too. */
void
plumb_export_track(const struct plumb_profile *profile, uint32_t track, char *name, size_t size);

/* "memory of cuda:0: allocated" of a track of memory; WHAT is the last word. */
void plumb_export_memory(const struct plumb_profile *profile, uint32_t track, const char *what,
                         char *name, size_t size);

/* As plumb_counter_series_next, for series with a name, a device and a process. Values divided by
 * DIVISOR are in UNIT, which is one that people read: shares are percentages. NULL: there is no
 * unit. */
bool
plumb_export_counter_next(const struct plumb_profile *profile, uint32_t *at,
                          struct plumb_counter_series *series, const char **unit, double *divisor);

/* Does a metric's sum over contexts mean something? METRIC is one that the profile has. */
bool plumb_export_adds_up(uint32_t metric);

#endif
