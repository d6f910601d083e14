/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state graph of a loop (analyze/steps/state_graph.h) as four tables: `states`,
 * `states.kernels`, `states.transitions` and `states.total`.
 */
#ifndef PLUMB_VIEW_STATES_H
#define PLUMB_VIEW_STATES_H

#include "analyze/answer.h"
#include "model/profile.h"

enum plumb_states_table {
	PLUMB_STATES_STATES,
	PLUMB_STATES_KERNELS,
	PLUMB_STATES_TRANSITIONS,
	PLUMB_STATES_TOTAL,
	PLUMB_STATES_TABLES
};

struct plumb_states_query {
	bool one; /* only TRACK; else the first main track with such a level */
	int64_t track;
	int64_t loop;      /* from 1; 0: the main loop */
	uint32_t level;    /* 0: the outermost */
	bool with_history; /* as HISTORY says; else what gives the smallest graph */
	uint32_t history;
	uint32_t most; /* states; 0: PLUMB_STATES_SHOWN */
};
#define PLUMB_STATES_SHOWN 100

/* Fills the tables, each to be freed. PLUMB_EUSAGE: a history above PLUMB_STATES_HISTORY_MOST, or
 * fewer than 4 states. PLUMB_EEMPTY: there is no such loop; PLUMB_ESYSTEM. */
int plumb_states_answer(const struct plumb_profile *profile, const struct plumb_states_query *query,
                        struct plumb_answer answers[PLUMB_STATES_TABLES],
                        struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
