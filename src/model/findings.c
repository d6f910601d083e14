/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/utf8.h"
#include "model/metric.h"
#include "model/row_merge.h"
#include "model/rows.h"

#define TEXTS 6

static const char *
text_of(const struct plumb_finding_text *finding, int which)
{
	const char *const texts[TEXTS] = { finding->id,     finding->rule,     finding->title,
		                           finding->advice, finding->evidence, finding->window };
	return texts[which];
}

static uint32_t *
place_of(struct plumb_finding *finding, int which)
{
	uint32_t *const places[TEXTS] = { &finding->id,     &finding->rule,     &finding->title,
		                          &finding->advice, &finding->evidence, &finding->window };
	return places[which];
}

/* A valid copy of TEXT that lives as long as the profile. */
static const char *
keep_text(struct plumb_pool *pool, const char *text)
{
	size_t bytes = strlen(text);
	char *copy;

	if (plumb_utf8_valid(text, bytes)) {
		copy = plumb_pool_take(pool, bytes + 1);
		return copy ? memcpy(copy, text, bytes + 1) : NULL;
	}
	copy = plumb_pool_take(pool, 3 * bytes + 1);
	if (copy)
		copy[plumb_utf8_repair(copy, text, bytes)] = '\0';
	return copy;
}

/* A string more, the text copied; PLUMB_NONE: no memory. */
static uint32_t
add_text(struct plumb_profile *profile, const char *text)
{
	const char **grown =
		realloc(profile->strings, (profile->strings_count + 1ul) * sizeof *grown);

	if (!grown)
		return PLUMB_NONE;
	profile->strings = grown;
	if (!profile->storage)
		profile->storage = plumb_pool_new();
	grown[profile->strings_count] = profile->storage ? keep_text(profile->storage, text) : NULL;
	return grown[profile->strings_count] ? profile->strings_count++ : PLUMB_NONE;
}

int
plumb_profile_set_cost(struct plumb_profile *profile, const struct plumb_cost *cost,
                       const char *why, struct plumb_error *error)
{
	struct plumb_cost *row = malloc(sizeof *row);
	uint32_t text = row && why ? add_text(profile, why) : PLUMB_NONE;

	if (!row || (why && text == PLUMB_NONE)) {
		free(row);
		return plumb_fail_memory(error, "for the cost");
	}
	*row = *cost;
	row->why = text;
	free(profile->costs);
	profile->costs = row;
	profile->costs_count = profile->costs_room = 1;
	return 0;
}

int
plumb_profile_set_levels(struct plumb_profile *profile, const struct plumb_level_row *levels,
                         const char *const *whys, uint32_t count, struct plumb_level_value *values,
                         uint32_t values_count, struct plumb_error *error)
{
	struct plumb_level_row *rows = calloc((size_t)count + 1, sizeof *rows);
	uint32_t strings = profile->strings_count;
	const char **grown =
		realloc(profile->strings, ((size_t)strings + count + 1) * sizeof *grown);
	bool ok = rows && grown;

	if (grown)
		profile->strings = grown; /* more room, nothing new in it yet */
	if (ok && !profile->storage)
		profile->storage = plumb_pool_new();
	ok = ok && profile->storage;
	for (uint32_t i = 0; ok && i < count; i++) {
		rows[i] = levels[i];
		rows[i].why = PLUMB_NONE;
		if (!whys[i])
			continue;
		grown[strings] = keep_text(profile->storage, whys[i]);
		ok = grown[strings] != NULL;
		rows[i].why = strings++;
	}
	if (!ok) {
		free(rows);
		free(values);
		return plumb_fail_memory(error, "for the levels");
	}
	free(profile->levels);
	free(profile->level_values);
	profile->levels = rows;
	profile->levels_count = profile->levels_room = count;
	profile->level_values = values;
	profile->level_values_count = profile->level_values_room = values_count;
	profile->strings_count = strings;
	return plumb_row_order(profile, &plumb_row_tables[PLUMB_TABLE_LEVEL_VALUES])
	               ? plumb_fail_memory(error, "for the levels")
	               : 0;
}

/* The number of the metric NAME, made if missing; 0: it cannot be. */
static uint32_t
metric_of(struct plumb_profile *profile, const char *name, const char *unit)
{
	uint32_t number = plumb_profile_metric_find(profile, name);
	struct plumb_user_metric metric, *added;

	if (number)
		return number;
	metric = (struct plumb_user_metric){ .name = add_text(profile, name),
		                             .unit = unit ? add_text(profile, unit) : PLUMB_NONE };
	if (metric.name == PLUMB_NONE || (unit && metric.unit == PLUMB_NONE) ||
	    profile->user_metrics_count >= PLUMB_USER_METRICS_MOST)
		return 0;
	added = plumb_profile_add_metric(profile);
	if (!added)
		return 0;
	*added = metric;
	return PLUMB_METRIC_USER + profile->user_metrics_count - 1;
}

int
plumb_profile_add_counts(struct plumb_profile *profile, const struct plumb_profile_count *counts,
                         uint32_t count, struct plumb_error *error)
{
	const struct plumb_row_table *table = &plumb_row_tables[PLUMB_TABLE_VALUES];

	for (uint32_t i = 0; i < count; i++) {
		uint32_t metric = metric_of(profile, counts[i].name, counts[i].unit);
		struct plumb_value *value = metric ? plumb_row_add(profile, table) : NULL;

		if (!value)
			return plumb_fail_memory(error, "for the counters");
		*value = counts[i].value;
		value->metric = metric;
		value->ends = (struct plumb_ends){ 0 };
	}
	return plumb_row_merge(profile, table) ? plumb_fail_memory(error, "for the counters") : 0;
}

int
plumb_profile_set_findings(struct plumb_profile *profile, const struct plumb_finding_text *findings,
                           uint32_t count, struct plumb_error *error)
{
	struct plumb_finding *rows = calloc((size_t)count + 1, sizeof *rows);
	uint32_t strings = profile->strings_count;
	const char **grown = NULL;
	bool ok = rows && strings < UINT32_MAX - TEXTS * (uint64_t)count;

	if (ok && !profile->storage)
		profile->storage = plumb_pool_new();
	if (ok && profile->storage)
		grown = realloc(profile->strings,
		                (strings + TEXTS * (size_t)count + 1) * sizeof *grown);
	if (grown)
		profile->strings = grown; /* more room, nothing new in it yet */
	ok = grown != NULL;
	for (uint32_t i = 0; ok && i < count; i++) {
		const struct plumb_finding_text *from = &findings[i];

		for (int t = 0; ok && t < TEXTS; t++) {
			*place_of(&rows[i], t) = PLUMB_NONE;
			if (!text_of(from, t))
				continue;
			grown[strings] = keep_text(profile->storage, text_of(from, t));
			ok = grown[strings] != NULL;
			*place_of(&rows[i], t) = strings++;
		}
		rows[i].severity = from->severity >= PLUMB_NOTE && from->severity <= PLUMB_SERIOUS
		                           ? from->severity
		                           : PLUMB_NOTE;
		rows[i].context =
			from->context < profile->contexts_count ? from->context : PLUMB_NONE;
		rows[i].saving_ns = from->saving_ns;
		rows[i].confidence = from->confidence;
	}
	if (!ok) {
		free(rows);
		return plumb_fail_memory(error, "for the findings");
	}
	free(profile->findings);
	profile->findings = rows;
	profile->findings_count = profile->findings_room = count;
	profile->strings_count = strings;
	return 0;
}
