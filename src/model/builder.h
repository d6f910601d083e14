/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a profile: interns strings and frames, joins equal contexts, adds up values, and at the
 * end numbers contexts in preorder (siblings ordered by kind, name, file, line, flags, so that
 * equal input gives equal output whatever its order).
 *
 * Until plumb_builder_finish the ids of contexts are provisional: valid for this builder's calls
 * only. Ids of strings, frames, tracks, processes, devices and windows are final at once. All
 * functions return PLUMB_NONE (or a negative code) when memory is out, remembered in the builder,
 * so callers may check once at the end: plumb_builder_finish then fails with PLUMB_ESYSTEM.
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
/* For frames whose names are symbols, the profile shows what DEMANGLE returns (malloced; NULL: the
 * name itself). */
void plumb_builder_demangle(struct plumb_builder *builder, char *(*demangle)(const char *name));
/* Sets where the frame's code is written; see struct plumb_frame. */
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

/*
 * Adds ROW to a table. Its ids, words and numbers must be possible (columns.h). A row whose keys
 * are there already is dropped; but values and variants are merged, and counts of the ledger add
 * up. 1: the profile holds no more of them, and the caller counts what is not taken.
 */
int
plumb_builder_row(struct plumb_builder *builder, enum plumb_table_number table, const void *row);

/* The same, for a table whose rows are merged, if one row is added to again and again. *NEAR is
 * where that row may be: any number at first, then as this function leaves it. In other tables it
 * must be PLUMB_NONE at first, and becomes the row's number. What is put to a row
 * that is there must be possible. */
int plumb_builder_row_near(struct plumb_builder *builder, enum plumb_table_number table,
                           const void *row, uint32_t *near);

/* Room for COUNT rows of an empty table, if the caller knows how many there will be. */
int
plumb_builder_room(struct plumb_builder *builder, enum plumb_table_number table, uint64_t count);
/* COUNT rows at once, of a table without keys and blobs. Returns how many of them it took: the
 * first ones. */
int64_t plumb_builder_rows(struct plumb_builder *builder, enum plumb_table_number table,
                           const void *rows, uint32_t count);

/* plumb_builder_value(builder, value), and so on: the same, with the type checked. */
#define PLUMB_BUILDER_ROW(noun, type, number)                                                      \
	static inline int plumb_builder_##noun(struct plumb_builder *builder, const type *noun)    \
	{                                                                                          \
		return plumb_builder_row(builder, PLUMB_TABLE_##number, noun);                     \
	}
PLUMB_BUILDER_ROW(value, struct plumb_value, VALUES)
PLUMB_BUILDER_ROW(variant, struct plumb_variant, VARIANTS)
PLUMB_BUILDER_ROW(origin, struct plumb_origin, ORIGINS)
PLUMB_BUILDER_ROW(clock, struct plumb_clock, CLOCKS)
PLUMB_BUILDER_ROW(finding, struct plumb_finding, FINDINGS)
PLUMB_BUILDER_ROW(code_object, struct plumb_code_object, CODE_OBJECTS)
PLUMB_BUILDER_ROW(code_function, struct plumb_code_function, CODE_FUNCTIONS)
PLUMB_BUILDER_ROW(code_reference, struct plumb_code_reference, CODE_REFERENCES)
PLUMB_BUILDER_ROW(code_line, struct plumb_code_line, CODE_LINES)
PLUMB_BUILDER_ROW(code_sample, struct plumb_code_sample, CODE_SAMPLES)
PLUMB_BUILDER_ROW(series, struct plumb_series_bin, SERIES)
PLUMB_BUILDER_ROW(memory_series, struct plumb_memory_series_bin, MEMORY_SERIES)
PLUMB_BUILDER_ROW(counter_series, struct plumb_counter_series_bin, COUNTER_SERIES)
PLUMB_BUILDER_ROW(device_process, struct plumb_device_process, DEVICE_PROCESSES)
PLUMB_BUILDER_ROW(wait, struct plumb_wait, WAITS)
PLUMB_BUILDER_ROW(collective, struct plumb_collective, COLLECTIVES)
PLUMB_BUILDER_ROW(object_range, struct plumb_object_range, OBJECT_RANGES)
PLUMB_BUILDER_ROW(object_bin, struct plumb_object_bin, OBJECT_BINS)
PLUMB_BUILDER_ROW(transfer, struct plumb_transfer_row, TRANSFERS)
PLUMB_BUILDER_ROW(device_link, struct plumb_device_link, DEVICE_LINKS)
PLUMB_BUILDER_ROW(window_stretch, struct plumb_window_stretch, WINDOW_STRETCHES)
PLUMB_BUILDER_ROW(window_value, struct plumb_window_value, WINDOW_VALUES)
PLUMB_BUILDER_ROW(window_variant, struct plumb_window_variant, WINDOW_VARIANTS)
PLUMB_BUILDER_ROW(window_device, struct plumb_window_device, WINDOW_DEVICES)
PLUMB_BUILDER_ROW(cost, struct plumb_cost, COSTS)
PLUMB_BUILDER_ROW(cpu_sample, struct plumb_cpu_sample, CPU_SAMPLES)
PLUMB_BUILDER_ROW(work, struct plumb_work_item, WORK)
PLUMB_BUILDER_ROW(span, struct plumb_span, SPANS)
#undef PLUMB_BUILDER_ROW

uint32_t plumb_builder_process(struct plumb_builder *builder, const struct plumb_process *process);
uint32_t plumb_builder_track(struct plumb_builder *builder, const struct plumb_track *track);
uint32_t plumb_builder_window(struct plumb_builder *builder, const struct plumb_window *window);
uint32_t plumb_builder_device(struct plumb_builder *builder, const struct plumb_device *device);
uint32_t plumb_builder_object(struct plumb_builder *builder, const struct plumb_object *object);
/* For amending a row later; valid until the next row of the kind is added. */
struct plumb_process *plumb_builder_get_process(struct plumb_builder *builder, uint32_t process);
struct plumb_device *plumb_builder_get_device(struct plumb_builder *builder, uint32_t device);
struct plumb_track *plumb_builder_get_track(struct plumb_builder *builder, uint32_t track);
uint32_t plumb_builder_device_count(const struct plumb_builder *builder);
/* How many rows of code functions there are. */
uint32_t plumb_builder_code_functions(const struct plumb_builder *builder);

/* Adds to the row of the same (process, source, fate, detail). */
int plumb_builder_ledger(struct plumb_builder *builder, uint32_t process, uint32_t source,
                         uint32_t fate, uint32_t detail, int64_t count);
/* Of several values of one (process, key), the first is kept. PLUMB_NONE as the process means the
 * run. */
int plumb_builder_environment(struct plumb_builder *builder, uint32_t process, const char *key,
                              const char *value);
/* Those so far, until the next one is added. */
const struct plumb_cpu_sample *
plumb_builder_get_cpu_samples(const struct plumb_builder *builder, uint32_t *count);
/* One for each track. */
int plumb_builder_memory(struct plumb_builder *builder, const struct plumb_memory *memory);
struct plumb_run *plumb_builder_run(struct plumb_builder *builder);

/* Moves everything into PROFILE, which the caller frees. The builder is empty afterwards. */
int plumb_builder_finish(struct plumb_builder *builder, struct plumb_profile *profile,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
