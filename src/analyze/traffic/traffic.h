/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic between devices, put together: by pair of devices, object, line, kernel and route.
 *
 *	struct plumb_traffic traffic;
 *	if (plumb_traffic_make(profile, user_of, &traffic, &error) < 0) …
 *	for (uint32_t i = 0; i < traffic.pairs.count; i++)
 *		… traffic.pairs.items[i] …
 *	plumb_traffic_free(&traffic);
 *
 * A party is who has memory: a device by its id, then the host, then "unknown", then the group of a
 * collective. Logical bytes are
 * what collectives, sends and receives were asked to move. They are kept apart, because the
 * accesses of a communication library's kernels may count the same bytes.
 */
#ifndef PLUMB_ANALYZE_TRAFFIC_TRAFFIC_H
#define PLUMB_ANALYZE_TRAFFIC_TRAFFIC_H

#include "base/vec.h"
#include "model/profile.h"

/* Sums that are too large stay at the largest number. */
struct plumb_traffic_sum {
	int64_t bytes;
	uint64_t accesses;
	int64_t warps;   /* PLUMB_UNKNOWN: of one of them it is not known */
	double variance; /* of BYTES, of what was sampled; 0: exact, NAN: not known */
};

/* Rows that are equal in PART are one cell. What the parts are depends on the list. */
#define PLUMB_TRAFFIC_PARTS 7
struct plumb_traffic_cell {
	uint32_t part[PLUMB_TRAFFIC_PARTS];
	struct plumb_traffic_sum sum;
};
typedef PLUMB_VEC(struct plumb_traffic_cell) plumb_traffic_cells;

/* Parts of a pair. */
enum {
	PLUMB_PAIR_INITIATOR,
	PLUMB_PAIR_OWNER,
	PLUMB_PAIR_FROM,
	PLUMB_PAIR_TO,
	PLUMB_PAIR_KIND,
	PLUMB_PAIR_ROUTE,
};
/* Parts of a use of an object. */
enum {
	PLUMB_USE_OBJECT,
	PLUMB_USE_INITIATOR,
	PLUMB_USE_KIND,
	PLUMB_USE_WRITES, /* 1: the data went to the object */
	PLUMB_USE_OTHER,  /* party at the other end */
};
/* Parts of what a place moves. */
enum {
	PLUMB_MOVE_PLACE,
	PLUMB_MOVE_OBJECT, /* PLUMB_NONE */
	PLUMB_MOVE_INITIATOR,
	PLUMB_MOVE_OWNER,
	PLUMB_MOVE_FROM,
	PLUMB_MOVE_TO,
	PLUMB_MOVE_KIND,
};
/* Parts of an instruction. OFFSET and WIDTH are PLUMB_NONE where they are not known. */
enum {
	PLUMB_INSTRUCTION_PLACE,
	PLUMB_INSTRUCTION_FUNCTION,
	PLUMB_INSTRUCTION_OFFSET,
	PLUMB_INSTRUCTION_KIND,
	PLUMB_INSTRUCTION_WIDTH,
};
/* Parts of what a kernel moves. */
enum {
	PLUMB_KERNEL_MOVE_KERNEL,
	PLUMB_KERNEL_MOVE_INITIATOR,
	PLUMB_KERNEL_MOVE_OWNER,
	PLUMB_KERNEL_MOVE_KIND,
};
/* Parts of a route. */
enum {
	PLUMB_ROUTE_PART_ROUTE,
	PLUMB_ROUTE_PART_KIND,
	PLUMB_ROUTE_PART_LINK, /* the first of those alike, in `links`; PLUMB_NONE: not known */
};

/* Which cells of a list are of one thing, and their sum. */
struct plumb_traffic_range {
	uint32_t first, count;
	struct plumb_traffic_sum sum;
};

struct plumb_traffic_object {
	uint32_t object;
	struct plumb_traffic_range uses;
	struct plumb_traffic_sum read, written;
	uint32_t first_bin, bin_count; /* in the profile's object_bins */
};

/* Where traffic comes from. With lines of code: what the chain from code_lines row FIRST_LINE on
 * says, which is COUNT rows, the innermost first. Without: what FRAME (a kernel or call) does that
 * the line USER of your code asked for. */
struct plumb_traffic_place {
	uint32_t first_line, line_count; /* 0: no lines are known */
	uint32_t user;                   /* frame of your code, or PLUMB_NONE */
	uint32_t frame;                  /* PLUMB_NONE: not known */
	uint32_t function;               /* code function with the most bytes, or PLUMB_NONE */
	uint32_t context;                /* with the most bytes, or PLUMB_NONE */
	struct plumb_traffic_range moves, instructions;
	int64_t most; /* private */
};

struct plumb_traffic_kernel {
	uint32_t name;  /* string */
	uint32_t frame; /* kernel, or PLUMB_NONE */
	uint32_t context;
	int64_t launches, gpu_ns; /* PLUMB_UNKNOWN: not recorded */
	struct plumb_traffic_range moves;
};

/* What lies between two parties. [0] is from ONE to OTHER, [1] the other way. */
struct plumb_traffic_link {
	uint32_t row;                  /* of the profile's device_links */
	uint32_t one, other;           /* parties: ONE is less; OTHER may be the host */
	uint32_t alike;                /* the first link that is described in the same way */
	int64_t copied[2], copy_ns[2]; /* bytes and times of copies whose times are known */
};

/* The device of a rank of a group of collectives. */
struct plumb_traffic_member {
	uint32_t group; /* string */
	uint32_t device;
	int64_t rank, size;
};

/* What is known of one row of the profile's transfers. */
struct plumb_traffic_fact {
	uint32_t initiator, owner, from, to; /* parties */
	uint32_t place, kernel;              /* in the lists; kernel: PLUMB_NONE */
	bool logical;
	bool local; /* code of a device reaches its own memory: in no list */
};

struct plumb_traffic {
	const struct plumb_profile *profile;
	uint32_t host, unknown; /* the numbers of these parties */
	uint32_t group;    /* likewise: all ranks that a collective is of; it is in no matrix */
	uint32_t *parties; /* who takes part in anything, ascending */
	uint32_t party_count;
	uint32_t *index_of;               /* by party: where it is in PARTIES, or PLUMB_NONE */
	struct plumb_traffic_fact *facts; /* by transfer */
	plumb_traffic_cells pairs;        /* most bytes first */
	plumb_traffic_cells routes;       /* likewise */
	PLUMB_VEC(struct plumb_traffic_link) links;                  /* by ONE, then OTHER */
	PLUMB_VEC(struct plumb_traffic_member) members;              /* by group, then rank */
	uint32_t *link_of_context;                                   /* private */
	plumb_traffic_cells uses, moves, instructions, kernel_moves; /* of a thing: most first */
	/* Most bytes between parties first. */
	PLUMB_VEC(struct plumb_traffic_object) objects; /* all of the profile */
	PLUMB_VEC(struct plumb_traffic_place) places;
	PLUMB_VEC(struct plumb_traffic_kernel) kernels;
	struct plumb_traffic_sum in_kernels, copies, logical; /* between different parties */
};

/* USER_OF is from plumb_user_contexts. Without transfers and objects all is empty. Call
 * plumb_traffic_free even after an error. PLUMB_ESYSTEM: no memory. */
int plumb_traffic_make(const struct plumb_profile *profile, const uint32_t *user_of,
                       struct plumb_traffic *traffic, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_traffic_free(struct plumb_traffic *traffic);

/* ---- pieces ---- */

static inline bool
plumb_access_is_logical(uint32_t kind)
{
	return kind == PLUMB_ACCESS_COLLECTIVE || kind == PLUMB_ACCESS_SEND ||
	       kind == PLUMB_ACCESS_RECEIVE;
}
static inline bool
plumb_access_reads(uint32_t kind)
{
	return kind == PLUMB_ACCESS_LOAD || kind == PLUMB_ACCESS_ASYNC_COPY ||
	       kind == PLUMB_ACCESS_BULK_LOAD || kind == PLUMB_ACCESS_RECEIVE;
}
/* Of code in a kernel, and not of a call. */
static inline bool
plumb_access_is_code(uint32_t kind)
{
	return kind && kind < PLUMB_ACCESS_COPY;
}

/* Of one transfer. */
struct plumb_traffic_sum plumb_traffic_sum_of(const struct plumb_transfer_row *transfer);
void plumb_traffic_sum_add(struct plumb_traffic_sum *into, const struct plumb_traffic_sum *from);
/* The standard error of the bytes; NAN: not known. */
double plumb_traffic_sum_error(const struct plumb_traffic_sum *sum);

/* "GPU 3", "GPU of rank 9" if several have the number; "host", "its group", "unknown". Returns
 * TEXT. */
#define PLUMB_PARTY_SIZE 96
char *plumb_traffic_party(const struct plumb_traffic *traffic, uint32_t party,
                          char text[PLUMB_PARTY_SIZE]);

/* A matrix of bytes, row by row, by the places of parties in PARTIES: who initiates × whose memory
 * it is; from × to; and from × to of logical bytes, where a send and its receive are one movement.
 * Malloced; NULL: no memory, or there are more than PLUMB_TRAFFIC_PARTIES_MOST. */
enum plumb_traffic_matrix {
	PLUMB_MATRIX_INITIATED,
	PLUMB_MATRIX_FLOW,
	PLUMB_MATRIX_LOGICAL,
};
#define PLUMB_TRAFFIC_PARTIES_MOST 512
int64_t *plumb_traffic_matrix(const struct plumb_traffic *traffic, enum plumb_traffic_matrix which);

/* Who owns the memory of OBJECT (an id, or PLUMB_NONE). */
uint32_t plumb_traffic_owner(const struct plumb_traffic *traffic, uint32_t object);

/* What to call an object: its name, else "buffer allocated at halo.cu:12", else "device memory of
 * 64.0 MiB". USER_OF as above. Returns TEXT. */
#define PLUMB_OBJECT_LABEL 240
char *plumb_traffic_object_label(const struct plumb_traffic *traffic, const uint32_t *user_of,
                                 uint32_t object, char text[PLUMB_OBJECT_LABEL]);
/* Where it was allocated: "halo.cu:12"; else the innermost frame that is known; "": nothing is. */
char *plumb_traffic_allocated_at(const struct plumb_traffic *traffic, const uint32_t *user_of,
                                 uint32_t object, char text[PLUMB_OBJECT_LABEL]);
/* "halo.cu:41", "the launch of kernel ncclKernel at train.py:7", "kernel x". Returns TEXT. */
char *
plumb_traffic_place_text(const struct plumb_traffic *traffic,
                         const struct plumb_traffic_place *place, char text[PLUMB_OBJECT_LABEL]);

/* The bytes per second that large copies between FROM and TO reached, as this profile measured;
 * NAN: there were none. */
double plumb_traffic_bandwidth(const struct plumb_profile *profile, uint32_t from, uint32_t to);

/* The link between two parties, in `links`; PLUMB_NONE: it is not known. */
uint32_t plumb_traffic_link_between(const struct plumb_traffic *traffic, uint32_t a, uint32_t b);
/* Over what a transfer went, or all pairs of a collective's group: the first link that is described
 * so. PLUMB_NONE: it is not known, or pairs differ. */
uint32_t plumb_traffic_link_of(const struct plumb_traffic *traffic, uint32_t transfer);
uint32_t plumb_traffic_link_of_group(const struct plumb_traffic *traffic, uint32_t group);
/* The devices of all ranks of the group (a string), in the order of ranks. NULL: not all are
 * known. */
const struct plumb_traffic_member *
plumb_traffic_members(const struct plumb_traffic *traffic, uint32_t group, uint32_t *count);
/* NULL: there is no such link. */
const struct plumb_device_link *
plumb_traffic_link_row(const struct plumb_traffic *traffic, uint32_t link);
/* "18 NVLinks through NVSwitch", "PCIe 5 x16 through the host bridge". Returns TEXT; NULL: there is
 * no such link. */
#define PLUMB_LINK_WORDS 160
const char *plumb_traffic_link_words(const struct plumb_traffic *traffic, uint32_t link,
                                     char text[PLUMB_LINK_WORDS]);
/* Bytes per second: what a link can carry in one direction; what copies over it reached, in one
 * direction, or over all links alike. NAN: not known. */
double plumb_traffic_link_bandwidth(const struct plumb_traffic *traffic, uint32_t link);
double plumb_traffic_link_speed(const struct plumb_traffic_link *link, int back);
double plumb_traffic_alike_speed(const struct plumb_traffic *traffic, uint32_t link);
/* Why no link is known; NULL: some are. */
const char *plumb_traffic_links_missing(const struct plumb_traffic *traffic);

/* How it was recorded: "calls", "full", "sampled:0.1". NULL: the profile does not say, or has no
 * traffic. */
const char *plumb_traffic_mode(const struct plumb_profile *profile);

/* ---- private to traffic/ ---- */

/* Adds a row to CELLS. False: no memory. */
bool plumb_traffic_cell_add(plumb_traffic_cells *cells, const uint32_t *part, int parts,
                            const struct plumb_traffic_sum *sum);
/* Makes equal cells one, in the order of their parts. */
void plumb_traffic_cells_join(plumb_traffic_cells *cells);
/* Puts the cells of equal parts up to PARTS in order: most bytes first. */
void plumb_traffic_cells_rank(plumb_traffic_cells *cells, int parts);
bool plumb_traffic_find_places(struct plumb_traffic *traffic, const uint32_t *user_of);
bool plumb_traffic_find_kernels(struct plumb_traffic *traffic);
bool plumb_traffic_find_links(struct plumb_traffic *traffic);
bool plumb_traffic_is_host_memory(uint16_t kind);
/* The value with the time of the copies that BYTES are of; NULL: there is none. */
const struct plumb_value *
plumb_traffic_copy_time(const struct plumb_profile *profile, const struct plumb_value *bytes);

#endif
