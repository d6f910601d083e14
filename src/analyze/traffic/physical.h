/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What collectives take on the links, beside what was asked of them: computed from algorithm and
 * protocol, and measured by the accesses of their kernels, if these were looked at.
 *
 *	struct plumb_traffic_physicals physicals;
 *	if (plumb_traffic_physicals_find(&traffic, &facts, &physicals) < 0) …
 *	… physicals.items[fact] …
 *	plumb_traffic_physicals_free(&physicals);
 */
#ifndef PLUMB_ANALYZE_TRAFFIC_PHYSICAL_H
#define PLUMB_ANALYZE_TRAFFIC_PHYSICAL_H

#include "analyze/collective_facts.h"
#include "analyze/traffic/traffic.h"

struct plumb_traffic_physical {
	/* Computed: bytes that a rank sends in one operation, the mean over the ranks. NAN: not
	 * known for this algorithm. */
	double sent;
	double sent_ratio; /* to the bytes that one call asks for; NAN */
	/* Measured: of all calls together. No accesses: not measured, or operations of several
	 * facts have one call path. */
	struct plumb_traffic_sum measured;
	double measured_ratio; /* of one call, likewise; NAN */
	uint32_t first_pair, pair_count;
};

/* Parts of a pair. */
enum {
	PLUMB_PHYSICAL_FACT,
	PLUMB_PHYSICAL_FROM,
	PLUMB_PHYSICAL_TO,
};

struct plumb_traffic_physicals {
	struct plumb_traffic_physical *items; /* one for each of the facts */
	plumb_traffic_cells pairs;            /* of a fact: most bytes first */
};

/* PLUMB_ESYSTEM: no memory; free it even then. */
int plumb_traffic_physicals_find(const struct plumb_traffic *traffic,
                                 const struct plumb_collective_facts *facts,
                                 struct plumb_traffic_physicals *physicals) PLUMB_MUST_CHECK;
void plumb_traffic_physicals_free(struct plumb_traffic_physicals *physicals);

#endif
