/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the environment. If all processes state the same, it is a fact of the run. Other facts
 * stay with their process.
 */
#include "settle/settle_private.h"

void
plumb_settle_fact(struct plumb_settle_region *region, const struct plumb_record_environment *record)
{
	struct plumb_settler *settler = region->settler;
	uint32_t key = plumb_settle_string(region, record->key);
	uint32_t value = plumb_settle_string(region, record->value);
	struct plumb_settle_fact *fact;

	if (key == PLUMB_NONE || value == PLUMB_NONE) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, "environment",
		                   1);
		return;
	}
	fact = plumb_vec_add(&settler->facts);
	if (!fact) {
		settler->no_memory = true;
		return;
	}
	*fact = (struct plumb_settle_fact){ region->process, key, value, settler->facts.count };
}

static int
by_key(const void *x, const void *y)
{
	const struct plumb_settle_fact *a = x, *b = y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	/* The run's own (PLUMB_NONE) first. */
	if (a->process != b->process)
		return a->process + 1 < b->process + 1 ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Stores the COUNT facts of one key. If a process has several, the first counts. */
static void
store_key(struct plumb_settler *settler, const struct plumb_settle_fact *facts, uint32_t count)
{
	struct plumb_builder *builder = settler->builder;
	const char *key = plumb_builder_get_text(builder, facts->key);
	uint32_t said = 0, previous = PLUMB_NONE, own = 0;
	bool alike = true;

	while (own < count && facts[own].process == PLUMB_NONE)
		own++;
	if (own)
		plumb_builder_environment(builder, PLUMB_NONE, key,
		                          plumb_builder_get_text(builder, facts->value));
	for (uint32_t i = own; i < count; i++) {
		if (facts[i].process == previous)
			continue;
		previous = facts[i].process;
		said++;
		alike = alike && facts[i].value == facts[own ? 0 : own].value;
	}
	/* If the run has the fact itself, that of a process is only kept if it differs. */
	if (said && alike && said == settler->processes.count) {
		plumb_builder_environment(builder, PLUMB_NONE, key,
		                          plumb_builder_get_text(builder, facts[own].value));
		return;
	}
	for (uint32_t i = own; i < count; i++)
		if (!own || facts[i].value != facts->value)
			plumb_builder_environment(builder, facts[i].process, key,
			                          plumb_builder_get_text(builder, facts[i].value));
}

void
plumb_settle_environment(struct plumb_settler *settler)
{
	struct plumb_settle_fact *facts = settler->facts.items;
	uint32_t count = settler->facts.count, end;

	if (!count)
		return;
	qsort(facts, count, sizeof *facts, by_key);
	for (uint32_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && facts[end].key == facts[i].key; end++)
			;
		store_key(settler, facts + i, end - i);
	}
}
