/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic between devices: which device moves which object to which device, and from which line.
 *
 *	struct plumb_traffic_answer answer;
 *	if (plumb_traffic_answer_make(profile, &query, &answer, &error) < 0) …
 *	… answer.traffic.pairs …
 *	plumb_traffic_answer_free(&answer);
 */
#ifndef PLUMB_VIEW_TRAFFIC_H
#define PLUMB_VIEW_TRAFFIC_H

#include "analyze/collective_facts.h"
#include "analyze/traffic/join.h"
#include "analyze/traffic/physical.h"
#include "analyze/traffic/traffic.h"
#include "base/json.h"

/* What rows are of, in CSV and binary columns. JSON has all of them. */
enum plumb_traffic_by {
	PLUMB_TRAFFIC_BY_PAIR,
	PLUMB_TRAFFIC_BY_OBJECT,
	PLUMB_TRAFFIC_BY_LINE,
	PLUMB_TRAFFIC_BY_KERNEL,
	PLUMB_TRAFFIC_BY_COLLECTIVE,
	PLUMB_TRAFFIC_BY_ROUTE,
};

struct plumb_traffic_query {
	enum plumb_traffic_by by;
	uint32_t top; /* of each list at most so many, the worst first; 0: all */
	/* JSON: of what all objects, lines and kernels have, each together, at most about so many
	 * rows; 0: all. The worst have theirs first, and each has some. So many pairs are written,
	 * whatever `top` is. */
	uint32_t parts;
	const char *user_code; /* the rule that tells your code, or NULL */
	/* A recording of the same program with samples of GPU code (plumb run --stalls), or NULL:
	 * what waits for which traffic. */
	const struct plumb_profile *stalls;
	char *(*demangle)(const char *name); /* malloced, or NULL; may be NULL */
};

struct plumb_traffic_answer {
	const struct plumb_profile *profile;
	struct plumb_traffic_query query;
	struct plumb_traffic traffic;
	unsigned char *user; /* by frame */
	uint32_t *user_of;   /* by context */
	struct plumb_collective_facts collectives;
	struct plumb_traffic_physicals physicals; /* of the collectives */
	struct plumb_traffic_join join;           /* empty without query.stalls */
};

/* PLUMB_EEMPTY: the profile has neither transfers, objects nor told collectives; or no stall can be
 * joined. PLUMB_EUSAGE: the rule of user code is wrong. PLUMB_ESYSTEM: no memory. */
int plumb_traffic_answer_make(const struct plumb_profile *profile,
                              const struct plumb_traffic_query *query,
                              struct plumb_traffic_answer *answer,
                              struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_traffic_answer_free(struct plumb_traffic_answer *answer);

/* Does the profile have something to show? */
bool plumb_traffic_has(const struct plumb_profile *profile);

/* ---- pieces ---- */

/* What a query shows of COUNT. */
static inline uint32_t
plumb_traffic_shown(const struct plumb_traffic_query *query, uint32_t count)
{
	return query->top && query->top < count ? query->top : count;
}

/* Is this finding about traffic, or about ranks that others wait for? */
bool plumb_traffic_finding_is(const struct plumb_profile *profile, uint32_t finding);
/* Is this row of the ledger about traffic? Of the environment? */
bool
plumb_traffic_ledger_is(const struct plumb_profile *profile, const struct plumb_ledger_row *row);
bool plumb_traffic_environment_is(const struct plumb_profile *profile,
                                  const struct plumb_environment_row *row);
/* A kernel's name as people read it. Malloced; NULL: no memory. */
char *plumb_traffic_kernel_name(const struct plumb_traffic_answer *answer,
                                const struct plumb_traffic_kernel *kernel);
/* "peer access", …; NULL: there is no such number. Likewise for kinds. */
const char *plumb_traffic_route_name(uint32_t route);
const char *plumb_traffic_kind_name(uint32_t kind);
/* What copies over the links of a route reached, bytes per second; NAN: not known, or no
 * copies. */
double plumb_traffic_route_speed(const struct plumb_traffic *traffic,
                                 const struct plumb_traffic_cell *route);
/* "to owner", "from owner"; NULL: neither end is the owner's alone. */
const char *plumb_traffic_direction(const struct plumb_traffic_cell *pair);

/* "62.0 % of the waiting: halo.cu:44 waits for the load at halo.cu:41, which reaches field on
 * GPU 3, allocated at halo.cu:12". Returns TEXT. */
#define PLUMB_WAIT_SENTENCE 1200
char *plumb_traffic_wait_sentence(const struct plumb_traffic_answer *answer,
                                  const struct plumb_traffic_wait *wait, char *text, size_t size);

void plumb_traffic_json(const struct plumb_traffic_answer *answer, struct plumb_json *json);
void
plumb_traffic_collectives_json(const struct plumb_traffic_answer *answer, struct plumb_json *json);
void plumb_traffic_join_json(const struct plumb_traffic_answer *answer, struct plumb_json *json);

#endif
