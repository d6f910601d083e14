/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a stretch of time: what its end waited for, and what that waited for, back
 * to its beginning; and how much earlier it would have ended without some of the work.
 *
 * Nodes are the begins and ends of spans. A node comes after the one before it on its thread or
 * stream; GPU work after its driver call begins, a call that waits after the work that it waits
 * for, work on a stream after the events that the stream waits for, a collective's end after its
 * last rank began, an autograd thread's work after the call of backward, and that call's end after
 * this work. Of those, the one that was over last is what a node waited for. Waiting itself is no
 * work: it has no length of its own.
 *
 * What a profile does not record is inferred, and counted as such (struct plumb_path_facts).
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
struct plumb_path_part; /* part.h */

/* Of PART of the profile; NULL: of all of it. NULL with ERROR filled: PLUMB_EEMPTY (no spans, or
 * too many for any graph), PLUMB_ESYSTEM. PROFILE must stay. */
struct plumb_path *plumb_path_new(const struct plumb_profile *profile,
                                  const struct plumb_path_part *part, struct plumb_error *error);
void plumb_path_free(struct plumb_path *path);
const struct plumb_path_facts *plumb_path_facts(const struct plumb_path *path);
/* Of what it is made. Its spans are those of the part, and what reaches beyond it is cut; all else
 * is the profile's. */
const struct plumb_path_part *plumb_path_part(const struct plumb_path *path);
const struct plumb_profile *plumb_path_profile(const struct plumb_path *path);

struct plumb_path_segment {
	/* whose time it is; of launch delays and gaps the work that came; PLUMB_NONE: between two
	 * spans of a thread, unknown */
	uint32_t context;
	uint32_t track; /* PLUMB_NONE: unknown */
	uint32_t kind;  /* enum plumb_path_kind */
	int64_t start_ns, end_ns;
};

struct plumb_path_window {
	int64_t start_ns, end_ns;
	int64_t sums[PLUMB_PATH_KINDS]; /* they add up to end_ns - start_ns */
	int64_t peer_ns; /* of it, on other processes than where it ends: what it waited for them */
	/* From plumb_path_list, from its beginning to its end without a hole, each as long as it
	 * is. */
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
 * The path that ends with the last work of TRACK that is over by END_NS and goes back to START_NS.
 * One window of a path is open at a time. For plumb_path_close in any case. PLUMB_EEMPTY: TRACK has
 * no work there; PLUMB_ESYSTEM.
 */
int plumb_path_open(struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns,
                    struct plumb_path_window *window, struct plumb_error *error) PLUMB_MUST_CHECK;
/* The same path, of a window within WHOLE (plumb_path_open_whole), which stays open until this one
 * is closed: it takes as long as the path is, however much else there is at that time. What it
 * would save cannot be asked. */
int plumb_path_within(const struct plumb_path_window *whole, uint32_t track, int64_t start_ns,
                      int64_t end_ns, struct plumb_path_window *window,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* Likewise the path that ends where all do; it begins where what led there does. The window holds
 * all work, too, and what any process ended with (plumb_path_end_of), so that what it saves for
 * each can be told. */
int plumb_path_open_whole(struct plumb_path *path, struct plumb_path_window *window,
                          struct plumb_error *error) PLUMB_MUST_CHECK;
/* The path from its end back to its beginning without a hole; of what follows each other, some may
 * be the same. False: VISIT was not content. */
bool
plumb_path_walk(const struct plumb_path_window *window,
                bool (*visit)(void *data, const struct plumb_path_segment *segment), void *data);
/* Fills in the window's segments. False: memory is out. */
bool plumb_path_list(struct plumb_path_window *window);
/* Its times and sums stay. */
void plumb_path_close(struct plumb_path_window *window);

/* Has the window spans of contexts with GONE (by context) not 0? Or is what lies between two spans
 * gone? */
bool plumb_path_has(const struct plumb_path_window *window, const unsigned char *gone);

/*
 * How much earlier the window would end if the spans of the contexts with GONE (by context) not 0
 * took no time, and those that are calls waited for nothing. The rest keeps its order, lengths and
 * delays, and what was before the window stays as it was: an upper bound, 0 where the work hides
 * behind other work. Linear in the window. PLUMB_UNKNOWN: memory is out.
 */
int64_t plumb_path_saving(struct plumb_path_window *window, const unsigned char *gone);
/* The same for PLUMB_PATH_PLAYS sets of contexts at once: bit K of GONE is the K-th set's; behind
 * the contexts GONE has one more, which stands for the time of threads between two spans. How much
 * earlier each of COUNT nodes would be there without set K, into SAVED[node * PLUMB_PATH_PLAYS +
 * K]; PLUMB_UNKNOWN for what is not in the window. False: memory is out. */
#define PLUMB_PATH_PLAYS 8
bool plumb_path_savings(struct plumb_path_window *window, const unsigned char *gone,
                        const uint32_t *nodes, uint32_t count, int64_t *saved);
/* The node that TRACK ends with; PLUMB_NONE: it has no spans, or is a thread that others of its
 * process have more spans than, which may poll until the end. */
uint32_t plumb_path_end_of(const struct plumb_path *path, uint32_t track);
/* When the node was there. */
int64_t plumb_path_at(const struct plumb_path *path, uint32_t node);
/* The node at which the last work of TRACK that is over by END_NS, and began at START_NS or later,
 * is over; PLUMB_NONE: there is none. */
uint32_t
plumb_path_last(const struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns);

#endif
