/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a stretch of time: what its end waited for, and what that waited for, back to its
 * beginning; and how much earlier it would have ended without some of the work.
 *
 * Nodes are the begins and ends of spans. A node comes after the one before it on its thread or stream;
 * GPU work after its driver call begins, a call that waits after the work that it waits for, work on a
 * stream after the events that the stream waits for, a collective's end after its last rank began, an
 * autograd thread's work after the call of backward, and that call's end after this work. Of those, the
 * one that was over last is what a node waited for. Waiting itself is no work: it has no length of its own.
 *
 * What a profile does not record is inferred, and counted as such (struct plumb_path_facts).
 *
 *	struct plumb_path *path = plumb_path_new(profile, &error);
 *	struct plumb_path_window window;
 *	if (plumb_path_open(path, track, start_ns, end_ns, &window, &error) == 0) {
 *		window.sums[PLUMB_PATH_HOST] …
 *		saved = plumb_path_saving(&window, gone);
 *	}
 *	plumb_path_close(&window);
 *	plumb_path_free(path);
 */
#ifndef PLUMB_ANALYZE_PATH_PATH_H
#define PLUMB_ANALYZE_PATH_PATH_H

#include "analyze/collectives.h"

enum plumb_path_kind {
	PLUMB_PATH_HOST,   /* a thread: in a span, or between two */
	PLUMB_PATH_LAUNCH, /* from a driver call's begin to its work's, the stream being idle */
	PLUMB_PATH_KERNEL, /* a kernel */
	PLUMB_PATH_COPY,   /* a copy or set */
	PLUMB_PATH_COMMUNICATION, /* a collective, from the arrival of its last rank on */
	PLUMB_PATH_GAP,     /* on the device, between two works of which one waited for the other */
	PLUMB_PATH_UNKNOWN, /* nothing in the profile says what was waited for */
	PLUMB_PATH_KINDS,
};
/* "host", "launch", "kernel", "copy", "communication", "gap", "unknown". */
extern const char *const plumb_path_kinds[PLUMB_PATH_KINDS];

/* Of what the graph is made. */
struct plumb_path_facts {
	uint64_t launches;    /* works with their driver call */
	uint64_t syncs;       /* calls that waited for work, as recorded */
	uint64_t events;      /* works that waited for another stream, as recorded */
	uint64_t collectives; /* of several ranks */
	uint64_t collectives_by[PLUMB_COLLECTIVES_BY]; /* of them, by enum plumb_collectives_by */
	uint64_t inferred_syncs, inferred_events, inferred_threads;
	uint64_t unmatched;  /* waits whose call or work is not in the profile */
	uint64_t impossible; /* what was waited for was over only afterwards: left out */
};

struct plumb_path;

/* Of more spans there is no path: it takes 400 bytes for each. */
#define PLUMB_PATH_SPANS_MOST (UINT32_C(1) << 22)

/* NULL with ERROR filled: PLUMB_EEMPTY (no spans, or too many), PLUMB_ESYSTEM. PROFILE must stay. */
struct plumb_path *plumb_path_new(const struct plumb_profile *profile, struct plumb_error *error);
void plumb_path_free(struct plumb_path *path);
const struct plumb_path_facts *plumb_path_facts(const struct plumb_path *path);

struct plumb_path_segment {
	uint32_t
		context; /* whose time it is; of launch delays and gaps the work that came; PLUMB_NONE:
	                     between two spans of a thread, unknown */
	uint32_t track; /* PLUMB_NONE: unknown */
	uint32_t kind;  /* enum plumb_path_kind */
	int64_t start_ns, end_ns;
};

struct plumb_path_window {
	int64_t start_ns, end_ns;
	/* From its beginning to its end without a hole, each as long as it is. */
	struct plumb_path_segment *segments;
	uint32_t count;
	int64_t sums[PLUMB_PATH_KINDS]; /* they add up to end_ns - start_ns */
	int64_t peer_ns; /* of it, on other processes than where it ends: what it waited for them */
	/* private: */
	struct plumb_path *path;
	uint32_t *order, *binding;
	int64_t *at, *delay;
	uint32_t nodes, last; /* how many; the place of the end */
	int64_t floor_ns;     /* nothing is earlier */
	bool whole;
};

/*
 * The path that ends with the last work of TRACK that is over by END_NS and goes back to START_NS. One window
 * of a path is open at a time. For plumb_path_close in any case. PLUMB_EEMPTY: TRACK has no work there;
 * PLUMB_ESYSTEM.
 */
int plumb_path_open(struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns,
                    struct plumb_path_window *window, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Likewise the path that ends where all do; it begins where what led there does. The window holds all work, too, and
 * what any process ended with (plumb_path_end_of), so that what it saves for each can be told. */
int plumb_path_open_whole(struct plumb_path *path, struct plumb_path_window *window,
                          struct plumb_error *error) PLUMB_MUST_CHECK;
/* Its times and sums stay. */
void plumb_path_close(struct plumb_path_window *window);

/* Has the window spans of contexts with GONE (by context) not 0? */
bool plumb_path_has(const struct plumb_path_window *window, const unsigned char *gone);

/*
 * How much earlier the window would end if the spans of the contexts with GONE (by context) not 0 took no
 * time, and those that are calls waited for nothing. The rest keeps its order, lengths and delays, and
 * what was before the window stays as it was: an upper bound, 0 where the work hides behind other work.
 * Linear in the window. PLUMB_UNKNOWN: memory is out.
 */
int64_t plumb_path_saving(const struct plumb_path_window *window, const unsigned char *gone);
/* The same for PLUMB_PATH_PLAYS sets of contexts at once: bit K of GONE is the K-th set's. How much earlier each of
 * COUNT nodes would be there without set K, into SAVED[node * PLUMB_PATH_PLAYS + K]; PLUMB_UNKNOWN for what is not
 * in the window. False: memory is out. */
#define PLUMB_PATH_PLAYS 8
bool plumb_path_savings(const struct plumb_path_window *window, const unsigned char *gone,
                        const uint32_t *nodes, uint32_t count, int64_t *saved);
/* The node that PROCESS ends with: its GPU work, or what its busiest thread does, not a thread that polls until the
 * end. PLUMB_NONE: there is none. */
uint32_t plumb_path_end_of(const struct plumb_path *path, uint32_t process);
/* The node at which the last work of TRACK that is over by END_NS, and began at START_NS or later, is over;
 * PLUMB_NONE: there is none. */
uint32_t
plumb_path_last(const struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns);

#endif
