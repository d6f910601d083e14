/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of CPU time in Chrome trace events, of two kinds: a profiler's of the operating system,
 * in the file's own lists ("stackFrames", "samples"), and V8's, in events ("Profile",
 * "ProfileChunk"). A dialect hands over what it meets, as far as it wants it; what frames, threads
 * and profiles they are of may come later in the file.
 */
#ifndef PLUMB_IMPORT_CHROME_SAMPLES_H
#define PLUMB_IMPORT_CHROME_SAMPLES_H

#include "import/chrome/event.h"
#include "import/samples.h"

/* Of the event that is read: it may be read twice. */
struct plumb_chrome_v8_node {
	int64_t number, parent, line;
	struct plumb_slice name, url;
};

struct plumb_chrome_v8_event {
	PLUMB_VEC(struct plumb_chrome_v8_node) nodes;
	PLUMB_VEC(int64_t) samples; /* nodes */
	PLUMB_VEC(int64_t) deltas;  /* ns since the sample before */
	int64_t start;
};

/* A profile of a thread; its chunks come from another one. */
struct plumb_chrome_v8_profile {
	int64_t id, start;
	uint32_t process, track; /* track PLUMB_NONE: its beginning has not been met */
};

struct plumb_chrome_v8_sample {
	int64_t node, delta;
};

struct plumb_chrome_v8_chunk {
	int64_t at;
	uint32_t profile, first, count; /* in `moments` */
	bool uneven;                    /* not as many times as samples */
};

struct plumb_chrome_system_sample {
	int64_t pid, tid, at, ns, frame;
};

/* Zero it to start, but for `shared.trace`. */
struct plumb_chrome_samples {
	struct plumb_samples shared;
	struct plumb_samples_tree functions;
	PLUMB_VEC(struct plumb_chrome_system_sample) system;
	struct plumb_chrome_v8_event event;
	PLUMB_VEC(struct plumb_chrome_v8_profile) profiles;
	struct plumb_map profile_map;
	PLUMB_VEC(struct plumb_chrome_v8_chunk) chunks;
	PLUMB_VEC(struct plumb_chrome_v8_sample) moments;
	bool no_memory;
};

/* For a dialect's own functions of these names (chrome_event.h). Begin: before each event, if it
 * asks for arguments. */
void plumb_chrome_samples_begin(struct plumb_chrome_samples *samples);
/* For its tables: the argument with a V8 profile, and the file's own lists. OWN of all is the
 * struct plumb_chrome, which has `samples`. */
plumb_pull_read plumb_chrome_samples_data;
void plumb_chrome_samples_frames(void *own);
void plumb_chrome_samples_list(void *own);
/* False: the event is none of V8's profiler. */
bool plumb_chrome_samples_take(struct plumb_chrome_samples *samples, struct plumb_chrome *chrome,
                               const struct plumb_chrome_event *event);
/* All is read: samples are handed over. */
void plumb_chrome_samples_end(struct plumb_chrome_samples *samples);
void plumb_chrome_samples_free(struct plumb_chrome_samples *samples);

#endif
