/* SPDX-License-Identifier: Apache-2.0 */
#include "view/traffic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "model/user_code.h"

/* ---- the value ---- */

static bool
has_told_collectives(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->collectives_count; i++)
		if (p->collectives[i].operation != PLUMB_NONE)
			return true;
	return false;
}

bool
plumb_traffic_has(const struct plumb_profile *profile)
{
	return profile->transfers_count || profile->objects_count || has_told_collectives(profile);
}

static int
make(struct plumb_traffic_answer *answer, struct plumb_error *error)
{
	const struct plumb_profile *p = answer->profile;
	int code;

	if (!plumb_traffic_has(p))
		return plumb_fail(error, PLUMB_EEMPTY,
		                  plumb_traffic_mode(p)
		                          ? "nothing was moved between devices while it was "
		                            "recorded"
		                          : "the profile has no traffic between devices; record "
		                            "it with plumb run --traffic");
	answer->user = plumb_user_code_frames(p, answer->query.user_code, error);
	if (!answer->user)
		return error->code;
	answer->user_of = plumb_user_contexts(p, answer->user);
	if (!answer->user_of)
		return plumb_fail_memory(error, "for the traffic");
	if (plumb_collective_facts_find(p, &answer->collectives))
		return plumb_fail_memory(error, "for the collectives");
	code = plumb_traffic_make(p, answer->user_of, &answer->traffic, error);
	if (!code && plumb_traffic_physicals_find(&answer->traffic, &answer->collectives,
	                                          &answer->physicals))
		code = plumb_fail_memory(error, "for the collectives");
	if (!code && answer->query.stalls)
		code = plumb_traffic_join_make(&answer->traffic, answer->query.stalls,
		                               &answer->join, error);
	return code;
}

int
plumb_traffic_answer_make(const struct plumb_profile *profile,
                          const struct plumb_traffic_query *query,
                          struct plumb_traffic_answer *answer, struct plumb_error *error)
{
	int code;

	*answer = (struct plumb_traffic_answer){ .profile = profile, .query = *query };
	code = make(answer, error);
	if (code)
		plumb_traffic_answer_free(answer);
	return code;
}

void
plumb_traffic_answer_free(struct plumb_traffic_answer *answer)
{
	plumb_traffic_join_free(&answer->join);
	plumb_traffic_physicals_free(&answer->physicals);
	plumb_collective_facts_free(&answer->collectives);
	plumb_traffic_free(&answer->traffic);
	free(answer->user_of);
	free(answer->user);
	*answer = (struct plumb_traffic_answer){ 0 };
}

/* ---- what it is of ---- */

bool
plumb_traffic_finding_is(const struct plumb_profile *profile, uint32_t finding)
{
	const char *rule = plumb_text(profile, profile->findings[finding].rule);

	return rule && (!strcmp(rule, "traffic") || !strcmp(rule, "ranks"));
}

bool
plumb_traffic_ledger_is(const struct plumb_profile *profile, const struct plumb_ledger_row *row)
{
	(void)profile;
	switch (row->source) {
	case PLUMB_SOURCE_OBJECT:
	case PLUMB_SOURCE_ACCESS:
	case PLUMB_SOURCE_COLLECTIVE:
	case PLUMB_SOURCE_TRAFFIC_LAUNCH:
		return row->count > 0;
	default:
		return false;
	}
}

bool
plumb_traffic_environment_is(const struct plumb_profile *profile,
                             const struct plumb_environment_row *row)
{
	const char *key = plumb_text(profile, row->key);

	return key && !strncmp(key, "traffic.", 8);
}

/* ---- words ---- */

char *
plumb_traffic_kernel_name(const struct plumb_traffic_answer *answer,
                          const struct plumb_traffic_kernel *kernel)
{
	const struct plumb_profile *p = answer->profile;
	const char *name = plumb_text(p, kernel->name);
	char *shown = NULL;

	if (kernel->frame != PLUMB_NONE && p->frames[kernel->frame].display != PLUMB_NONE)
		return strdup(plumb_frame_label(p, kernel->frame));
	if (name && answer->query.demangle)
		shown = answer->query.demangle(name);
	return shown ? shown : strdup(name ? name : "?");
}

const char *
plumb_traffic_route_name(uint32_t route)
{
	return route < PLUMB_ROUTE_COUNT ? plumb_route_names[route] : NULL;
}

const char *
plumb_traffic_kind_name(uint32_t kind)
{
	return kind < PLUMB_ACCESS_KIND_COUNT ? plumb_access_kind_names[kind] : NULL;
}

double
plumb_traffic_route_speed(const struct plumb_traffic *traffic,
                          const struct plumb_traffic_cell *route)
{
	return route->part[PLUMB_ROUTE_PART_KIND] == PLUMB_ACCESS_COPY
	               ? plumb_traffic_alike_speed(traffic, route->part[PLUMB_ROUTE_PART_LINK])
	               : NAN;
}

const char *
plumb_traffic_direction(const struct plumb_traffic_cell *pair)
{
	bool from = pair->part[PLUMB_PAIR_FROM] == pair->part[PLUMB_PAIR_OWNER];
	bool to = pair->part[PLUMB_PAIR_TO] == pair->part[PLUMB_PAIR_OWNER];

	return from == to ? NULL : to ? "to owner" : "from owner";
}
