/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An access counts for the innermost call of the library that it is under. What several facts have
 * at one call path cannot be told apart; nor can operations of which the newest alone are known.
 */
#include "analyze/traffic/physical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIXED (UINT32_MAX - 1)

struct finding {
	const struct plumb_traffic *traffic;
	const struct plumb_collective_facts *facts;
	struct plumb_traffic_physicals *physicals;
	/* By context, of operations that were called there: their fact, or PLUMB_NONE or MIXED; how
	 * many are known one by one, and how many there were. */
	uint32_t *fact;
	uint64_t *known, *told;
};

/* ---- computed ---- */

static void
compute(const struct finding *f, uint32_t i)
{
	const struct plumb_collective_fact *fact = &f->facts->items.items[i];
	const struct plumb_profile *p = f->traffic->profile;
	struct plumb_traffic_physical *physical = &f->physicals->items[i];

	physical->sent = plumb_collective_sent_bytes(
		plumb_text(p, fact->operation), plumb_text(p, fact->algorithm),
		plumb_text(p, fact->protocol), fact->size, fact->bytes);
	physical->sent_ratio = fact->bytes > 0 ? physical->sent / (double)fact->bytes : NAN;
	physical->measured_ratio = NAN;
}

/* ---- measured ---- */

static void
mark_contexts(struct finding *f)
{
	const struct plumb_profile *p = f->traffic->profile;

	for (uint32_t i = 0; i < p->contexts_count; i++)
		f->fact[i] = PLUMB_NONE;
	for (uint32_t i = 0; i < p->collectives_count; i++) {
		uint32_t context = p->collectives[i].context, fact = f->facts->of_row[i];

		if (context == PLUMB_NONE || fact == PLUMB_NONE)
			continue;
		f->known[context]++;
		f->fact[context] =
			f->fact[context] == PLUMB_NONE || f->fact[context] == fact ? fact : MIXED;
	}
	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];

		if (plumb_access_is_logical(t->kind) && t->context != PLUMB_NONE)
			f->told[t->context] += t->accesses;
	}
}

/* The fact whose operation's kernel accessed at CONTEXT. */
static uint32_t
fact_above(const struct finding *f, uint32_t context)
{
	const struct plumb_profile *p = f->traffic->profile;

	while (context && !f->known[context] && !f->told[context])
		context = p->contexts[context].parent;
	return f->known[context] && f->known[context] == f->told[context] ? f->fact[context]
	                                                                  : PLUMB_NONE;
}

static bool
measure(struct finding *f)
{
	const struct plumb_traffic *traffic = f->traffic;
	const struct plumb_profile *p = traffic->profile;

	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		const struct plumb_traffic_fact *ends = &traffic->facts[i];
		uint32_t fact;

		if (!plumb_access_is_code(t->kind) || t->context == PLUMB_NONE ||
		    ends->from == ends->to)
			continue;
		fact = fact_above(f, t->context);
		if (fact >= f->facts->items.count)
			continue;
		struct plumb_traffic_sum sum = plumb_traffic_sum_of(t);
		uint32_t part[] = { fact, ends->from, ends->to };

		plumb_traffic_sum_add(&f->physicals->items[fact].measured, &sum);
		if (!plumb_traffic_cell_add(&f->physicals->pairs, part, 3, &sum))
			return false;
	}
	return true;
}

/* A fact of which a part was called where nothing can be told apart is not measured. */
static void
drop_parts(struct finding *f)
{
	const struct plumb_profile *p = f->traffic->profile;

	for (uint32_t i = 0; i < p->collectives_count; i++) {
		uint32_t context = p->collectives[i].context, fact = f->facts->of_row[i];

		if (fact == PLUMB_NONE)
			continue;
		if (context == PLUMB_NONE || f->fact[context] == MIXED ||
		    f->known[context] != f->told[context])
			f->physicals->items[fact].measured = (struct plumb_traffic_sum){ 0 };
	}
}

static void
end_measuring(struct finding *f)
{
	struct plumb_traffic_physicals *physicals = f->physicals;
	uint32_t at = 0;

	drop_parts(f);
	plumb_traffic_cells_join(&physicals->pairs);
	plumb_traffic_cells_rank(&physicals->pairs, 1);
	for (uint32_t i = 0; i < f->facts->items.count; i++) {
		const struct plumb_collective_fact *fact = &f->facts->items.items[i];
		struct plumb_traffic_physical *physical = &physicals->items[i];

		physical->first_pair = at;
		while (at < physicals->pairs.count &&
		       physicals->pairs.items[at].part[PLUMB_PHYSICAL_FACT] == i)
			at++;
		if (!physical->measured.accesses)
			continue;
		physical->pair_count = at - physical->first_pair;
		if (fact->bytes > 0 && fact->calls)
			physical->measured_ratio = (double)physical->measured.bytes /
			                           (double)fact->calls / (double)fact->bytes;
	}
}

int
plumb_traffic_physicals_find(const struct plumb_traffic *traffic,
                             const struct plumb_collective_facts *facts,
                             struct plumb_traffic_physicals *physicals)
{
	size_t contexts = (size_t)traffic->profile->contexts_count + 1;
	struct finding f = { .traffic = traffic, .facts = facts, .physicals = physicals };
	int code = PLUMB_ESYSTEM;

	*physicals = (struct plumb_traffic_physicals){ 0 };
	physicals->items = calloc((size_t)facts->items.count + 1, sizeof *physicals->items);
	if (!physicals->items)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < facts->items.count; i++)
		compute(&f, i);
	if (!facts->items.count)
		return 0;
	f.fact = malloc(contexts * sizeof *f.fact);
	f.known = calloc(contexts, sizeof *f.known);
	f.told = calloc(contexts, sizeof *f.told);
	if (f.fact && f.known && f.told) {
		mark_contexts(&f);
		if (measure(&f)) {
			end_measuring(&f);
			code = 0;
		}
	}
	free(f.fact);
	free(f.known);
	free(f.told);
	return code;
}

void
plumb_traffic_physicals_free(struct plumb_traffic_physicals *physicals)
{
	free(physicals->items);
	plumb_vec_free(&physicals->pairs);
	*physicals = (struct plumb_traffic_physicals){ 0 };
}
