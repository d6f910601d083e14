/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence for a cause: which rank came last, how much larger the launches are. */

#include "analyze/steps/explain_private.h"

#define LATE_SHARE 0.5 /* of the waiting, by one rank */

/* ---- ranks ---- */

/* The first collective of the iteration from op AT on that is not known to be one with others, or
 * ops_count. */
static uint32_t
next_alone(const struct plumb_moments *m, const struct plumb_iteration *item,
           const struct plumb_collectives *together, uint32_t at)
{
	while (at < m->ops_count && plumb_moments_span(m, at)->start_ns < item->end_ns &&
	       (m->ops[at].sort != PLUMB_STEP_COLLECTIVE ||
	        plumb_collectives_of(together, plumb_moments_span_of(m, at))))
		at++;
	return at < m->ops_count && plumb_moments_span(m, at)->start_ns < item->end_ns
	               ? at
	               : m->ops_count;
}

/* The part of rank THERE in SPAN; NULL: it has none, or that is not known. */
static const struct plumb_collective_member *
part_of(const struct plumb_collectives *together, uint32_t span, const struct plumb_moments *there)
{
	const struct plumb_profile *p = there->profile;
	const struct plumb_collective_set *set = plumb_collectives_of(together, span);

	for (uint32_t i = 0; set && i < set->count; i++) {
		const struct plumb_collective_member *m = &together->members.items[set->first + i];
		const struct plumb_track *track = &p->tracks[p->spans[m->span].track];

		if (track->process == there->process && track->device == there->device)
			return m;
	}
	return NULL;
}

/* A collective lasts LENGTH here and begins LATE sooner than at PEER, where it lasts THEIRS. */
static void
add_longer(const struct plumb_explain_peer *peer, int64_t length, int64_t theirs, int64_t late,
           int64_t *sum, int64_t *most)
{
	int64_t longer = length - theirs;

	late = peer->common_clock ? late : longer;
	*sum += longer > 0 ? longer : 0;
	if (longer > 0 && late > *most)
		*most = late;
}

/* How much longer the iteration's collectives last here than at PEER, where they end together;
 * *MOST is the greatest of them, by start where clocks are common. Those not known to be one are,
 * by their order. */
static int64_t
waited_for(const struct plumb_comparison *c, const struct plumb_explain_peer *peer, int64_t *most)
{
	const struct plumb_moments *here = c->moments, *there = peer->moments;
	const struct plumb_iteration *own = &c->level->items[c->number];
	const struct plumb_iteration *theirs = &peer->level->items[peer->iteration];
	uint32_t first = plumb_moments_op(here, plumb_iteration_from(own));
	uint32_t a = next_alone(here, own, peer->together, first);
	uint32_t b = next_alone(there, theirs, peer->together,
	                        plumb_moments_op(there, plumb_iteration_from(theirs)));
	int64_t sum = 0;

	*most = 0;
	for (uint32_t i = first; i < here->ops_count; i++) {
		const struct plumb_span *x = plumb_moments_span(here, i);
		const struct plumb_collective_member *y = NULL;

		if (x->start_ns >= own->end_ns)
			break;
		if (here->ops[i].sort == PLUMB_STEP_COLLECTIVE)
			y = part_of(peer->together, plumb_moments_span_of(here, i), there);

		if (y)
			add_longer(peer, x->end_ns - x->start_ns, y->end_ns - y->start_ns,
			           y->start_ns - x->start_ns, &sum, most);
	}
	while (a < here->ops_count && b < there->ops_count) {
		const struct plumb_span *x = plumb_moments_span(here, a);
		const struct plumb_span *y = plumb_moments_span(there, b);

		add_longer(peer, x->end_ns - x->start_ns, y->end_ns - y->start_ns,
		           y->start_ns - x->start_ns, &sum, most);
		a = next_alone(here, own, peer->together, a + 1);
		b = next_alone(there, theirs, peer->together, b + 1);
	}
	return sum;
}

/* What the late rank did more, malloced, or NULL. Where an iteration begins with what follows the
 * collectives, it was in the one before. */
static char *
why_late(const struct plumb_explain_peer *last)
{
	int64_t most = 0;
	char *reason = NULL;

	for (uint32_t back = 0; back < 2 && back <= last->iteration; back++) {
		struct plumb_explained told;

		if (!plumb_explain(last->moments, last->level, last->iteration - back, last->rank,
		                   NULL, 0, &told) &&
		    told.rows.count && !told.rows.items[0].hidden &&
		    told.rows.items[0].ns - told.rows.items[0].usual_ns > most) {
			most = told.rows.items[0].ns - told.rows.items[0].usual_ns;
			free(reason);
			reason = strdup(told.rows.items[0].text);
		}
		plumb_explained_free(&told);
	}
	return reason;
}

int64_t
plumb_explain_late(struct plumb_comparison *c, int64_t *late_ns, char **reason)
{
	const struct plumb_explain_peer *last = NULL;
	int64_t waited = 0, all = 0;

	for (uint32_t k = 0; k < c->keys; k++)
		if (c->moments->keys.items[k].sort == PLUMB_STEP_COLLECTIVE)
			all += c->critical[k].ns - c->critical[k].usual_ns;
	for (uint32_t i = 0; i < c->peer_count; i++) {
		int64_t most, ns = waited_for(c, &c->peers[i], &most);

		if (ns > waited) {
			waited = ns;
			last = &c->peers[i];
			*late_ns = most;
		}
	}
	if (!last || (double)waited < LATE_SHARE * (double)all)
		return PLUMB_UNKNOWN;
	*reason = why_late(last);
	return last->rank;
}

/* ---- launches ---- */

static double
count_blocks(const struct plumb_variant *v)
{
	double product = 1;

	for (int i = 0; i < 3; i++) {
		if (v->grid[i] == PLUMB_UNKNOWN || v->grid[i] <= 0)
			return 0;
		product *= (double)v->grid[i];
	}
	return product;
}

/* Of the launches of CONTEXT those that are rarer than the usual ones and last about NS: blocks of
 * these against the usual; 0 there are none. */
static double
rare_blocks(const struct plumb_profile *p, uint32_t context, int64_t ns)
{
	const struct plumb_variant *usual = NULL, *rare = NULL;

	for (uint32_t i = 0; i < p->variants_count; i++)
		if (p->variants[i].context == context && p->variants[i].count &&
		    count_blocks(&p->variants[i]) > 0 &&
		    (!usual || p->variants[i].count > usual->count))
			usual = &p->variants[i];
	for (uint32_t i = 0; usual && i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];

		if (v->context == context && v->count && v != usual && count_blocks(v) > 0 &&
		    v->min <= ns && ns <= v->max && v->count * 2 <= usual->count)
			rare = v;
	}
	return rare ? count_blocks(rare) / count_blocks(usual) : 0;
}

double
plumb_explain_grid(const struct plumb_comparison *c)
{
	const struct plumb_moments *m = c->moments;
	const struct plumb_iteration *item = &c->level->items[c->number];
	int64_t longest = 0;
	double best = 0;

	/* Of the longest kernels that have such launches. */
	for (uint32_t i = plumb_moments_op(m, item->start_ns), tried = 0;
	     i < m->ops_count && plumb_moments_span(m, i)->start_ns < item->end_ns && tried < 2000;
	     i++) {
		const struct plumb_span *span = plumb_moments_span(m, i);
		int64_t ns = span->end_ns - span->start_ns;
		double ratio;

		if (m->ops[i].sort != PLUMB_STEP_KERNEL || ns <= longest)
			continue;
		tried++;
		ratio = rare_blocks(m->profile, span->context, ns);
		if (ratio > 0) {
			longest = ns;
			best = ratio;
		}
	}
	return best;
}
