/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a stretch of time: what its end waited for, what that waited for, and so on
 * back to the beginning. It also says how much earlier the end would come without some of the work.
 *
 * Nodes are the begins and ends of spans. A node comes after the previous one on its thread or
 * stream. In addition:
 *
 * - GPU work comes after the begin of its driver call.
 * - A call that waits ends after the work that it waits for.
 * - Work on a stream comes after the events that the stream waits for.
 * - A collective ends after its last rank began.
 * - Work of an autograd thread comes after the call of backward, which ends after this work.
 *
 * A node waited for the one of these that was over last. Waiting is no work, so it has no length of
 * its own.
 *
 * plumb infers what a profile does not record, and counts it (struct plumb_path_facts).
 *
 *	struct plumb_path *path = plumb_path_new(profile, NULL, &error);
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
	PLUMB_PATH_LAUNCH, /* from a driver call's begin to its work's begin, with an idle stream */
	PLUMB_PATH_KERNEL, /* a kernel */
	PLUMB_PATH_COPY,   /* a copy or set */
	PLUMB_PATH_COMMUNICATION, /* a collective, from the arrival of its last rank on */
	PLUMB_PATH_GAP,           /* on the device, from one work to another that waited for it */
	PLUMB_PATH_UNKNOWN,       /* the profile does not say what the program waited for */
	PLUMB_PATH_KINDS,
};
/* "host", "launch", "kernel", "copy", "communication", "gap", "unknown". */
extern const char *const plumb_path_kinds[PLUMB_PATH_KINDS];

/* What the graph is made of. */
struct plumb_path_facts {
	uint64_t launches;    /* works with their driver call */
	uint64_t syncs;       /* calls that waited for work, as recorded */
	uint64_t events;      /* works that waited for another stream, as recorded */
	uint64_t collectives; /* of several ranks */
	uint64_t collectives_by[PLUMB_COLLECTIVES_BY]; /* of them, by enum plumb_collectives_by */
	uint64_t inferred_syncs, inferred_events, inferred_threads;
	uint64_t unmatched;  /* waits whose call or work is not in the profile */
	uint64_t impossible; /* left out: waits for what was over only after the wait */
};

struct plumb_path;
struct plumb_path_part; /* part.h */

/* Makes the graph of PART of the profile; PART NULL: of all. Returns NULL with ERROR filled:
 * PLUMB_EEMPTY (no spans, or too many for any graph), PLUMB_ESYSTEM. PROFILE must outlive it. */
struct plumb_path *plumb_path_new(const struct plumb_profile *profile,
                                  const struct plumb_path_part *part, struct plumb_error *error);
/* The same if nobody needs PROFILE's spans any more. The graph of a part takes them, also if it
 * fails: PROFILE has none afterwards. So the part's spans are not there twice, and the others are
 * freed. */
struct plumb_path *
plumb_path_new_last(struct plumb_profile *profile, const struct plumb_path_part *part,
                    struct plumb_error *error);
void plumb_path_free(struct plumb_path *path);
const struct plumb_path_facts *plumb_path_facts(const struct plumb_path *path);
/* The part that the graph is made of. The profile has only the part's spans, cut at its ends; all
 * else is as in the original. */
const struct plumb_path_part *plumb_path_part(const struct plumb_path *path);
const struct plumb_profile *plumb_path_profile(const struct plumb_path *path);

struct plumb_path_segment {
	/* whose time it is; for launch delays and gaps the work that came next; PLUMB_NONE: between
	 * two spans of a thread, or unknown */
	uint32_t context;
	uint32_t track; /* PLUMB_NONE: unknown */
	uint32_t kind;  /* enum plumb_path_kind */
	int64_t start_ns, end_ns;
};

struct plumb_path_window {
	int64_t start_ns, end_ns;
	int64_t sums[PLUMB_PATH_KINDS]; /* they add up to end_ns - start_ns */
	int64_t peer_ns;                /* the part of it on other processes than the last one */
	/* From plumb_path_list: from the beginning to the end without a hole. */
	struct plumb_path_segment *segments;
	uint32_t count;
	/* private: */
	struct plumb_path *path;
	uint32_t *order;
	uint32_t nodes, end; /* how many; the one where it ends */
	uint32_t *slot,
		slots;    /* by place: where a play keeps its times; how many it keeps at once */
	int64_t floor_ns; /* nothing is earlier */
	bool whole;
};

/*
 * Finds the path back to START_NS from the last work of TRACK that is over by END_NS. Only one
 * window of a path may be open. Call plumb_path_close even after an error. PLUMB_EEMPTY: TRACK has
 * no work there; PLUMB_ESYSTEM.
 */
int plumb_path_open(struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns,
                    struct plumb_path_window *window, struct plumb_error *error) PLUMB_MUST_CHECK;
/* The same for a window inside WHOLE (plumb_path_open_whole), which must stay open until this one
 * is closed. The cost depends only on the length of the path, not on what else happens at that
 * time. Do not ask it for savings. */
int plumb_path_within(const struct plumb_path_window *whole, uint32_t track, int64_t start_ns,
                      int64_t end_ns, struct plumb_path_window *window,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* The same for the path that ends at the end of everything. The window also holds all other work
 * and the last work of each process (plumb_path_end_of), so that it knows the saving for each
 * process. */
int plumb_path_open_whole(struct plumb_path *path, struct plumb_path_window *window,
                          struct plumb_error *error) PLUMB_MUST_CHECK;
/* Calls VISIT for each segment from the end of the path back to its beginning, without a hole. Two
 * segments in a row may be alike. False: VISIT returned false. */
bool
plumb_path_walk(const struct plumb_path_window *window,
                bool (*visit)(void *data, const struct plumb_path_segment *segment), void *data);
/* Fills in the window's segments. False: memory is out. */
bool plumb_path_list(struct plumb_path_window *window);
/* Its times and sums stay. */
void plumb_path_close(struct plumb_path_window *window);

/* Does the window have spans of contexts with GONE (by context) not 0? Or is the time between two
 * spans gone? */
bool plumb_path_has(const struct plumb_path_window *window, const unsigned char *gone);

/*
 * How much earlier the window would end if the spans of some contexts took no time, and waited for
 * nothing. These are the contexts with GONE (by context) not 0. The rest keeps its order, lengths
 * and delays, and what was before the window does not change. The result is an upper bound; it is 0
 * if the work hides behind other work. Linear in the window. PLUMB_UNKNOWN: no memory.
 */
int64_t plumb_path_saving(struct plumb_path_window *window, const unsigned char *gone);
/* The same for PLUMB_PATH_PLAYS sets of contexts at once. Bit K of GONE says that a context is in
 * set K. GONE has one more entry after the contexts, for the time of threads between two spans.
 * SAVED[node * PLUMB_PATH_PLAYS + K] gets how much earlier each of the COUNT nodes would come
 * without set K, or PLUMB_UNKNOWN if the node is not in the window. False: no memory. */
#define PLUMB_PATH_PLAYS 8
bool plumb_path_savings(struct plumb_path_window *window, const unsigned char *gone,
                        const uint32_t *nodes, uint32_t count, int64_t *saved);
/* The node that TRACK ends with. PLUMB_NONE: TRACK has no spans, or another thread of its process
 * has more. Such a thread may poll until the end. */
uint32_t plumb_path_end_of(const struct plumb_path *path, uint32_t track);
/* When the node was there. */
int64_t plumb_path_at(const struct plumb_path *path, uint32_t node);
/* The node at which the last work of TRACK that is over by END_NS, and began at START_NS or later,
 * is over; PLUMB_NONE: there is none. */
uint32_t
plumb_path_last(const struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns);

#endif
