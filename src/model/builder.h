/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a profile: interns strings and frames, joins equal contexts, adds up values, and at the
 * end numbers contexts in preorder (siblings ordered by kind, name, file, line, flags, so that
 * equal input gives equal output whatever its order).
 *
 * Until plumb_builder_finish the ids of contexts are provisional: valid for this builder's calls
 * only. Ids of strings, frames, tracks, processes and devices are final at once. All functions
 * return PLUMB_NONE (or a negative code) when memory is out, remembered in the builder, so callers
 * may check once at the end: plumb_builder_finish then fails with PLUMB_ESYSTEM.
 */
#ifndef PLUMB_MODEL_BUILDER_H
#define PLUMB_MODEL_BUILDER_H

#include "model/profile.h"

struct plumb_builder;

/* A longer text is an error that plumb_builder_finish returns. */
#define PLUMB_TEXT_MAX ((size_t)16 * 1024 * 1024)

struct plumb_builder *plumb_builder_new(void);
void plumb_builder_free(struct plumb_builder *builder);

/* TEXT of BYTES bytes need not be terminated; embedded NULs end it. NULL gives PLUMB_NONE. Invalid
 * UTF-8 bytes are replaced by U+FFFD, so that every text in a profile is valid UTF-8. */
uint32_t plumb_builder_string(struct plumb_builder *builder, const char *text, size_t bytes);
uint32_t plumb_builder_text(struct plumb_builder *builder, const char *text);
/* As plumb_builder_string, for a command line: what looks like a secret is masked
 * (base/secret.h). */
uint32_t plumb_builder_command(struct plumb_builder *builder, const char *text, size_t bytes);

uint32_t plumb_builder_frame(struct plumb_builder *builder, uint32_t kind, uint32_t name,
                             uint32_t file, uint32_t line);
void plumb_builder_frame_display(struct plumb_builder *builder, uint32_t frame, uint32_t display);
/* Frames whose names are symbols show what DEMANGLE makes of them (malloced, or NULL: the name
 * stays). */
void plumb_builder_demangle(struct plumb_builder *builder, char *(*demangle)(const char *name));
/* Where the frame's code stands; see struct plumb_frame. */
void plumb_builder_frame_source(struct plumb_builder *builder, uint32_t frame, uint32_t file,
                                uint32_t line);
const struct plumb_frame *
plumb_builder_get_frame(const struct plumb_builder *builder, uint32_t frame);
uint32_t plumb_builder_frame_count(const struct plumb_builder *builder);
const char *plumb_builder_get_text(const struct plumb_builder *builder, uint32_t string);

/* The root is context 0 and exists from the start. Equal (parent, frame, flags) give equal ids. */
uint32_t plumb_builder_context(struct plumb_builder *builder, uint32_t parent, uint32_t frame,
                               uint32_t flags);

/* As it was made; `last` and `depth` are not known yet. */
struct plumb_context
plumb_builder_get_context(const struct plumb_builder *builder, uint32_t context);

/* The number of the metric of the program's own that has this name (strings; NAME PLUMB_NONE: "?"),
 * made when missing. One with the name of a metric of plumb's gets "user." before it. 0: no
 * more. */
uint32_t plumb_builder_metric(struct plumb_builder *builder, uint32_t name, uint32_t unit);

/* Merges VALUE into the one of the same (context, metric, track). */
int plumb_builder_value(struct plumb_builder *builder, const struct plumb_value *value);
/* Merges VARIANT into an equal one (everything but count, time, min, max). */
int plumb_builder_variant(struct plumb_builder *builder, const struct plumb_variant *variant);
/* Duplicates are dropped. */
int plumb_builder_origin(struct plumb_builder *builder, const struct plumb_origin *origin);

uint32_t plumb_builder_process(struct plumb_builder *builder, const struct plumb_process *process);
uint32_t plumb_builder_track(struct plumb_builder *builder, const struct plumb_track *track);
uint32_t plumb_builder_device(struct plumb_builder *builder, const struct plumb_device *device);
/* For amending a row later; valid until the next row of the kind is added. */
struct plumb_process *plumb_builder_get_process(struct plumb_builder *builder, uint32_t process);
struct plumb_device *plumb_builder_get_device(struct plumb_builder *builder, uint32_t device);
struct plumb_track *plumb_builder_get_track(struct plumb_builder *builder, uint32_t track);
uint32_t plumb_builder_device_count(const struct plumb_builder *builder);

int
plumb_builder_device_process(struct plumb_builder *builder, const struct plumb_device_process *row);
int plumb_builder_clock(struct plumb_builder *builder, const struct plumb_clock *clock);
/* Adds to the row of the same (process, source, fate, detail). */
int plumb_builder_ledger(struct plumb_builder *builder, uint32_t process, uint32_t source,
                         uint32_t fate, uint32_t detail, int64_t count);
/* The first value of a (process, key) stands; a row of PLUMB_NONE is the run's. */
int plumb_builder_environment(struct plumb_builder *builder, uint32_t process, const char *key,
                              const char *value);
int plumb_builder_work(struct plumb_builder *builder, const struct plumb_work_item *item);
/* A profile holds PLUMB_SPANS_MAX; 1 when it is full, and the caller counts what is not taken. */
#define PLUMB_SPANS_MAX (UINT32_C(1) << 26)
int plumb_builder_span(struct plumb_builder *builder, const struct plumb_span *span);
int plumb_builder_wait(struct plumb_builder *builder, const struct plumb_wait *wait);
int plumb_builder_collective(struct plumb_builder *builder, const struct plumb_collective *row);
/* Likewise at most PLUMB_CPU_SAMPLES_MAX. */
#define PLUMB_CPU_SAMPLES_MAX (UINT32_C(1) << 24)
int plumb_builder_cpu_sample(struct plumb_builder *builder, const struct plumb_cpu_sample *sample);
/* Those so far, until the next one is added. */
const struct plumb_cpu_sample *
plumb_builder_get_cpu_samples(const struct plumb_builder *builder, uint32_t *count);
int plumb_builder_series(struct plumb_builder *builder, const struct plumb_series_bin *bin);
/* One for each track. */
int plumb_builder_memory(struct plumb_builder *builder, const struct plumb_memory *memory);
int plumb_builder_finding(struct plumb_builder *builder, const struct plumb_finding *finding);
/* A row that is there already (same process, path and build id) is dropped. */
int
plumb_builder_code_object(struct plumb_builder *builder, const struct plumb_code_object *object);
struct plumb_run *plumb_builder_run(struct plumb_builder *builder);

/* Moves everything into PROFILE, which the caller frees. The builder is empty afterwards. */
int plumb_builder_finish(struct plumb_builder *builder, struct plumb_profile *profile,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
