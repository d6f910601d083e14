/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process did at each moment, on a device and on the threads that gave it work.
 *
 *	struct plumb_moments_shared shared;       // by all lines of a profile
 *	struct plumb_moments line;
 *	if (plumb_moments_share(profile, place_of, division, &shared) < 0) …
 *	if (plumb_moments_new(&shared, device, process, &line) < 0) …
 *	plumb_moments_device(&line, from, to, &rows);
 *	plumb_moments_host(&line, thread, from, to, &rows);
 *	plumb_step_rows_sum(&rows);               // a row for each key
 *	line.keys.items[rows.items[i].key].sort …
 *	plumb_moments_free(&line);
 *	plumb_moments_unshare(&shared);
 *
 * On the device computation counts before communication, then come copies, then the work of other
 * processes. So each moment belongs to one thing, and shares add up. On a thread the innermost span
 * counts. If a thread has no span, or only a range that the user set, its samples of CPU time say
 * what it computed. Where there are no samples, the calls before and after say where the program
 * was.
 */
#ifndef PLUMB_ANALYZE_STEPS_MOMENTS_H
#define PLUMB_ANALYZE_STEPS_MOMENTS_H

#include "analyze/divide.h"
#include "analyze/steps/sweep.h"
#include "analyze/steps/tracks.h"
#include "base/map.h"
#include "model/gpu_work.h"
#include "model/launches.h"

enum plumb_step_sort {
	PLUMB_STEP_KERNEL,
	PLUMB_STEP_COLLECTIVE,
	PLUMB_STEP_COPY,   /* or set */
	PLUMB_STEP_OTHER,  /* another process had the device */
	PLUMB_STEP_IDLE,   /* nothing had it */
	PLUMB_STEP_HOST,   /* a span of a thread */
	PLUMB_STEP_GAP,    /* of a thread: no span, or a range's own time */
	PLUMB_STEP_SAMPLE, /* likewise, and samples of CPU time tell what it computed */
	PLUMB_STEP_SORTS,
};

/* What time belongs to: the innermost frame and the user's line. */
struct plumb_step_key {
	uint32_t sort;  /* enum plumb_step_sort */
	uint32_t frame; /* PLUMB_NONE: no span */
	uint32_t line;  /* the place: a frame of your code, or what divides it; or PLUMB_NONE */
	/* Of a gap: the line, else the outermost call, on either side. Of a host's span without a
	 * line: `before` is the outermost call that it is in, where that is another. */
	uint32_t before, after;
	uint32_t context; /* one of those it stands for, or PLUMB_NONE */
	bool copies;      /* of a host's span: it copies to or from a device */
};

struct plumb_step_row {
	uint32_t key;
	uint32_t count; /* operations of the device that begin; samples that were taken */
	int64_t ns;     /* when it was what counts: none of a copy behind a kernel */
	int64_t bytes;  /* of the copies that begin; PLUMB_UNKNOWN */
};
struct plumb_step_rows {
	struct plumb_step_row *items;
	uint32_t count, capacity;
};

/* One operation of a device. There may be tens of millions of them. */
struct plumb_step_op {
	uint32_t place : 30; /* in the spans of `gpu` */
	uint32_t sort : 2;   /* enum plumb_step_sort, up to PLUMB_STEP_OTHER */
};

/* What does not depend on the device. */
struct plumb_moments_shared {
	const struct plumb_profile *profile;
	const uint32_t *place_of;              /* by context: your line, or what divides it */
	const struct plumb_division *division; /* which of these divide it; NULL: none does */
	struct plumb_track_index tracks;
	struct plumb_gpu_work gpu;
	uint32_t *outer_of;           /* by context: frame of the outermost call */
	unsigned char *copies;        /* by context: under a copy */
	unsigned char *sorts;         /* by context: 1 more than its sort, once it is known */
	int64_t *sizes;               /* of copies, by context */
	uint32_t *usual;              /* by process: track that has most launches, or PLUMB_NONE */
	struct plumb_pieces *threads; /* by track, made when they are asked for; id: span */
	/* by frame: that of its function's line that most samples met; likewise */
	uint32_t *sampled_as;
};

/* PLACE_OF as of a division, or of plumb_user_contexts where DIVISION is NULL. All stay the
 * caller's; DIVISION is used until the moments are freed. For plumb_moments_unshare in any case.
 * PLUMB_ESYSTEM: memory is out. */
int plumb_moments_share(const struct plumb_profile *profile, const uint32_t *place_of,
                        const struct plumb_division *division,
                        struct plumb_moments_shared *shared) PLUMB_MUST_CHECK;
void plumb_moments_unshare(struct plumb_moments_shared *shared);

struct plumb_moments {
	const struct plumb_profile *profile;
	struct plumb_moments_shared *shared;
	const struct plumb_division *division;
	uint32_t device, process;
	uint32_t main_track;       /* whose kernels make the iterations, or PLUMB_NONE */
	struct plumb_step_op *ops; /* of the device, by start; see plumb_moments_span */
	uint32_t ops_count;
	struct plumb_pieces busy; /* of the device, once they are asked for; id: op */
	struct plumb_launches *launches;
	bool launched;                           /* the process has launches */
	uint32_t usual_thread;                   /* track that has most of them, or PLUMB_NONE */
	PLUMB_VEC(struct plumb_sampled) sampled; /* threads that were asked for; see samples.h */
	struct {
		struct plumb_step_key *items;
		uint32_t count, capacity;
	} keys;
	struct plumb_map map;
};

/* MAIN_TRACK: of the process on the device, or PLUMB_NONE. For plumb_moments_free in any case;
 * SHARED must stay until then. PLUMB_ESYSTEM: memory is out. */
int plumb_moments_new(struct plumb_moments_shared *shared, uint32_t device, uint32_t process,
                      uint32_t main_track, struct plumb_moments *line) PLUMB_MUST_CHECK;
/* Frees all but the keys, which name the rows. Nothing else may be asked after this. */
void plumb_moments_finish(struct plumb_moments *line);
void plumb_moments_free(struct plumb_moments *line);

/* Adds what the device did from FROM to TO. */
int plumb_moments_device(struct plumb_moments *line, int64_t from, int64_t to,
                         struct plumb_step_rows *rows) PLUMB_MUST_CHECK;
/* Adds what the thread of track THREAD did. */
int plumb_moments_host(struct plumb_moments *line, uint32_t thread, int64_t from, int64_t to,
                       struct plumb_step_rows *rows) PLUMB_MUST_CHECK;
/* Adds what the thread that launched the work after OP's start (a place in ops) did. */
int plumb_moments_waited(struct plumb_moments *line, uint32_t op, int64_t from, int64_t to,
                         struct plumb_step_rows *rows) PLUMB_MUST_CHECK;
/* Like plumb_moments_device. But where nothing had the device, it adds what the thread did that
 * launched the next work. */
int plumb_moments_both(struct plumb_moments *line, int64_t from, int64_t to,
                       struct plumb_step_rows *rows) PLUMB_MUST_CHECK;

/* When and where op OP of the device ran. */
static inline const struct plumb_span *
plumb_moments_span(const struct plumb_moments *line, uint32_t op)
{
	return &line->shared->gpu.spans[line->ops[op].place];
}
/* The op's span of the profile; PLUMB_NONE: it is of the newest work. */
static inline uint32_t
plumb_moments_span_of(const struct plumb_moments *line, uint32_t op)
{
	return line->shared->gpu.newest ? PLUMB_NONE : line->ops[op].place;
}
/* What had the device; NULL: memory is out. */
const struct plumb_pieces *plumb_moments_busy(struct plumb_moments *line);

/* The first of LINE's ops that starts at NS or later. */
uint32_t plumb_moments_op(const struct plumb_moments *line, int64_t ns);
/* From place OP on the first of them that is a kernel of the main track; ops_count: there is
 * none. */
uint32_t plumb_moments_kernel(const struct plumb_moments *line, uint32_t op);
/* The span that launched OP; PLUMB_NONE: it is not in the profile, or there is no such op. */
uint32_t plumb_moments_call(const struct plumb_moments *line, uint32_t op);
/* The track that launched OP; the one that launches most where that is not known; or PLUMB_NONE. */
uint32_t plumb_moments_thread(const struct plumb_moments *line, uint32_t op);

/* Of a thread: pieces of its innermost spans; NULL: memory is out. */
const struct plumb_pieces *plumb_moments_pieces(struct plumb_moments *line, uint32_t track);
/* Has piece AT of a thread no span, or only a range's own time? Then *KEY says where the program
 * was. */
bool plumb_moments_gap(const struct plumb_moments *line, const struct plumb_pieces *pieces,
                       uint32_t at, struct plumb_step_key *key);
/* A key for CONTEXT (PLUMB_NONE: for none), and the place of one in LINE's keys; PLUMB_NONE: memory
 * is out. */
struct plumb_step_key
plumb_moments_key_of(const struct plumb_moments *line, uint32_t sort, uint32_t context);
uint32_t plumb_moments_key(struct plumb_moments *line, const struct plumb_step_key *key);

/* Of sizes of copies; PLUMB_UNKNOWN where one is, or where no number holds the sum. */
int64_t plumb_step_bytes(int64_t a, int64_t b);

/* Adds up rows of one key; the greatest first. */
void plumb_step_rows_sum(struct plumb_step_rows *rows);

#endif
