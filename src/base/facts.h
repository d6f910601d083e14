/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb says of the slices in its Perfetto traces so that they can be imported again: entries
 * of the debug annotation "plumb", a dictionary. See docs/export.md.
 */
#ifndef PLUMB_BASE_FACTS_H
#define PLUMB_BASE_FACTS_H

/* X(identifier, name); the first is the dictionary itself. */
#define PLUMB_FACTS(X)                                                                             \
	X(PLUMB, "plumb")                                                                          \
	X(CONTEXT, "context")                                                                      \
	X(CORRELATION, "correlation")                                                              \
	X(BYTES, "bytes")                                                                          \
	X(ALL_BYTES, "all_bytes") /* of all copies of the context on the track: a dictionary */    \
	X(COPIES, "count")                                                                         \
	X(LEAST, "least")                                                                          \
	X(MOST, "most")                                                                            \
	X(SQUARES, "squares") /* sum of squared differences from the mean */                       \
	X(FRAMES, "frames")   /* a list of dictionaries */                                         \
	X(FRAME, "frame")                                                                          \
	X(KIND, "kind")                                                                            \
	X(NAME, "name")                                                                            \
	X(FILE, "file")                                                                            \
	X(LINE, "line")                                                                            \
	X(DISPLAY, "display")                                                                      \
	X(SOURCE, "source")                                                                        \
	X(SOURCE_LINE, "source_line")                                                              \
	X(CONTEXTS, "contexts") /* a list of dictionaries */                                       \
	X(PARENT, "parent")                                                                        \
	X(FLAGS, "flags")                                                                          \
	X(APART, "apart") /* 1: others may cross it */                                             \
	X(GRID, "grid")   /* lists of three */                                                     \
	X(BLOCK, "block")                                                                          \
	X(REGISTERS, "registers")                                                                  \
	X(STATIC_SHARED, "static_shared")                                                          \
	X(DYNAMIC_SHARED, "dynamic_shared")                                                        \
	X(OCCUPANCY, "occupancy_ppm")                                                              \
	X(TRACK, "track") /* a dictionary, of the first slice of each track */                     \
	X(INDEX, "index") /* the same on all tracks of one thread or stream */                     \
	X(PID, "pid")                                                                              \
	X(RANK, "rank")                                                                            \
	X(HOST, "host")                                                                            \
	X(THREAD, "thread")                                                                        \
	X(STREAM, "stream")                                                                        \
	X(GPU_CONTEXT, "gpu_context")                                                              \
	X(ORDINAL, "ordinal")                                                                      \
	X(UUID, "uuid")                                                                            \
	X(MODEL, "model")                                                                          \
	X(DRAWN, "drawn") /* 1: was not recorded, and encloses what was */

enum plumb_fact {
#define X(id, name) PLUMB_FACT_##id,
	PLUMB_FACTS(X)
#undef X
		PLUMB_FACT_COUNT
};

extern const char *const plumb_fact_names[PLUMB_FACT_COUNT];

#endif
