/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of pointers on the wrong device, and pairs of devices that have traffic although the
 * pattern of all others does not need it.
 *
 * A pattern is a set of distances between devices in a ring (1: the next one, -1: the one before)
 * that most devices share, as rings and halos have, and at most half of all distances. What goes
 * the other way of such a distance is acknowledgement. All-to-all, trees and gathers have no such
 * pattern, or reach each byte only once, so nothing is said of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traffic/findings.h"
#include "base/format.h"

#define POINTER_BYTES 8
#define WEAK 0.1 /* of the strongest pair of a device in the middle: what is no part of a pattern */
#define MOST_SHARE 0.75 /* of the devices have a distance that belongs to the pattern */
#define AGAIN 8         /* times that each byte of the object is reached */
#define DEVICES_MOST 512
#define NAMED_MOST 4

/* ---- pointers ---- */

struct loads {
	struct plumb_traffic_sum pointers; /* loads of POINTER_BYTES from other devices */
	uint64_t others;                   /* other accesses from other devices */
};

static bool
is_remote(const struct plumb_traffic_finder *f, uint32_t i)
{
	const struct plumb_traffic_fact *fact = &f->traffic.facts[i];

	return fact->initiator < f->traffic.host && fact->owner < f->traffic.host &&
	       fact->initiator != fact->owner;
}

static uint32_t
object_of(const struct plumb_traffic_finder *f, uint32_t i)
{
	const struct plumb_transfer_row *t = &f->study->profile->transfers[i];
	const struct plumb_traffic_fact *fact = &f->traffic.facts[i];

	return fact->owner == fact->from ? t->from_object : t->to_object;
}

static void
add_loads(const struct plumb_traffic_finder *f, struct loads *loads)
{
	const struct plumb_profile *p = f->study->profile;

	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		uint32_t object = object_of(f, i);
		struct plumb_traffic_sum sum = { t->bytes, t->accesses,
			                         t->warps < 0 ? PLUMB_UNKNOWN : t->warps, 0 };

		if (object == PLUMB_NONE || !plumb_access_is_code(t->kind) || !is_remote(f, i))
			continue;
		if (t->kind == PLUMB_ACCESS_LOAD && t->width == POINTER_BYTES)
			plumb_traffic_sum_add(&loads[object].pointers, &sum);
		else if (__builtin_add_overflow(loads[object].others, t->accesses,
		                                &loads[object].others))
			loads[object].others = UINT64_MAX;
	}
}

/* How often the object's own device accessed it, as far as that is known. */
static uint64_t
local_accesses(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object)
{
	const struct plumb_profile *p = f->study->profile;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < object->bin_count; i++) {
		const struct plumb_object_bin *bin = &p->object_bins[object->first_bin + i];

		if (bin->device == p->objects[object->object].device &&
		    __builtin_add_overflow(sum, bin->accesses, &sum))
			return UINT64_MAX;
	}
	return sum;
}

static bool
is_pointers(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
            const struct loads *loads)
{
	const struct plumb_object *o = &f->study->profile->objects[object->object];
	const struct plumb_traffic_sum *sum = &loads->pointers;
	double lanes = sum->warps > 0 ? (double)sum->accesses / (double)sum->warps : NAN;

	return (double)sum->accesses >= plumb_study_threshold(f->study, "traffic.accesses") &&
	       lanes <= plumb_study_threshold(f->study, "traffic.lanes") && o->bytes > 0 &&
	       (double)o->bytes / (double)(o->allocations ? o->allocations : 1) <=
	               plumb_study_threshold(f->study, "traffic.small") &&
	       loads->others <= sum->accesses && local_accesses(f, object) < sum->accesses;
}

/* "GPU 0, GPU 1 and 2 more": the devices that reach OBJECT; *COUNT of them, *MOST the one with the
 * most bytes. */
static void
name_users(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
           char *text, size_t size, uint32_t *count, uint32_t *most)
{
	char party[PLUMB_PARTY_SIZE];
	uint32_t owner = plumb_traffic_owner(&f->traffic, object->object);

	*text = '\0';
	*count = 0;
	*most = PLUMB_NONE;
	for (uint32_t i = 0; i < plumb_traffic_uses(object); i++) {
		const struct plumb_traffic_cell *use =
			&f->traffic.uses.items[object->uses.first + i];
		uint32_t who = use->part[PLUMB_USE_INITIATOR];
		bool had = who == owner;

		for (uint32_t k = 0; k < i && !had; k++)
			had = f->traffic.uses.items[object->uses.first + k]
			              .part[PLUMB_USE_INITIATOR] == who;
		if (had)
			continue;
		if (*most == PLUMB_NONE)
			*most = who;
		if ((*count)++ < NAMED_MOST)
			snprintf(text + strlen(text), size - strlen(text), "%s%s",
			         *count > 1 ? ", " : "",
			         plumb_traffic_party(&f->traffic, who, party));
	}
	if (*count > NAMED_MOST)
		snprintf(text + strlen(text), size - strlen(text), " and %" PRIu32 " more",
		         *count - NAMED_MOST);
}

static void
write_sum(struct plumb_json *json, const struct plumb_traffic_sum *sum)
{
	plumb_json_key(json, "accesses");
	plumb_json_unsigned(json, sum->accesses);
	plumb_json_key_quantity(json, "bytes", sum->bytes);
	plumb_json_key_quantity(json, "saving_bytes", sum->bytes);
}

static int
draft_pointers(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
               const struct plumb_traffic_sum *sum)
{
	char words[PLUMB_TRAFFIC_WORDS], users[NAMED_MOST * PLUMB_PARTY_SIZE + 40],
		line[PLUMB_OBJECT_LABEL], count[PLUMB_FORMAT_SIZE], party[PLUMB_PARTY_SIZE];
	const struct plumb_traffic_place *place;
	uint32_t devices, most;
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "pointers", object->object);
	name_users(f, object, users, sizeof users, &devices, &most);
	plumb_traffic_object_json(f, draft.evidence, object->object);
	write_sum(draft.evidence, sum);
	plumb_json_key_number(draft.evidence, "lanes_per_warp",
	                      (double)sum->accesses / (double)sum->warps);
	plumb_json_key_text(draft.evidence, "readers", users);
	place = plumb_traffic_lines_json(f, draft.evidence, object->object);
	plumb_draft_title(
		&draft,
		"%s loads of %d bytes by single lanes of %s go to %s%s%s: addresses on the wrong "
		"GPU",
		plumb_format_count(count,
	                           sum->accesses > INT64_MAX ? INT64_MAX : (int64_t)sum->accesses),
		POINTER_BYTES, users, plumb_traffic_object_words(f, object->object, words),
		place ? ", at " : "",
		place ? plumb_traffic_place_text(&f->traffic, place, line) : "");
	plumb_draft_advice(
		&draft,
		devices == 1 ? "Allocate it on %s, which reads it. Or pass the addresses as an "
			       "argument of the kernel, and read each once before the loop."
			     : "Give each GPU that reads it a copy of its own (the main reader is "
			       "%s). Or pass the addresses as an argument of the kernel, and read "
			       "each once before the loop.",
		most == PLUMB_NONE ? "the GPU" : plumb_traffic_party(&f->traffic, most, party));
	draft.severity = PLUMB_WARNING;
	draft.confidence = 0.9;
	return plumb_draft_end(f->study, &draft);
}

int
plumb_traffic_find_pointers(struct plumb_traffic_finder *f)
{
	const struct plumb_profile *p = f->study->profile;
	struct loads *loads = calloc((size_t)p->objects_count + 1, sizeof *loads);
	int code = 0;

	if (!loads)
		return PLUMB_ESYSTEM;
	add_loads(f, loads);
	for (uint32_t i = 0; !code && i < f->traffic.objects.count; i++) {
		const struct plumb_traffic_object *object = &f->traffic.objects.items[i];

		if (!is_pointers(f, object, &loads[object->object]))
			continue;
		f->pointers[object->object] = 1;
		code = draft_pointers(f, object, &loads[object->object].pointers);
	}
	free(loads);
	return code;
}

/* ---- the pattern ---- */

struct pattern {
	uint32_t n;
	double *bytes;          /* by initiator and owner */
	unsigned char *logical; /* likewise: a send or receive says that they are neighbours */
	double weak;            /* bytes below which a pair is no part of the pattern */
	unsigned char *has;     /* by distance: it is part of the pattern, or goes back */
};

static int
compare_numbers(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return one < two ? -1 : one > two;
}

static void
add_bytes(const struct plumb_traffic_finder *f, struct pattern *pattern)
{
	const struct plumb_profile *p = f->study->profile;

	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_traffic_fact *fact = &f->traffic.facts[i];
		uint32_t object = object_of(f, i);

		if (fact->logical && fact->from < pattern->n && fact->to < pattern->n) {
			pattern->logical[(size_t)fact->from * pattern->n + fact->to] = 1;
			pattern->logical[(size_t)fact->to * pattern->n + fact->from] = 1;
		} else if (is_remote(f, i) && (object == PLUMB_NONE || !f->pointers[object])) {
			pattern->bytes[(size_t)fact->initiator * pattern->n + fact->owner] +=
				(double)p->transfers[i].bytes;
		}
	}
}

/* Sets WEAK: by the strongest pair of each device. False: fewer than three devices reach others. */
static bool
find_weak(struct pattern *pattern, double *strongest, uint32_t *active)
{
	*active = 0;
	for (uint32_t i = 0; i < pattern->n; i++) {
		double most = 0;

		for (uint32_t k = 0; k < pattern->n; k++)
			if (pattern->bytes[(size_t)i * pattern->n + k] > most)
				most = pattern->bytes[(size_t)i * pattern->n + k];
		if (most > 0)
			strongest[(*active)++] = most;
	}
	if (*active < 3)
		return false;
	qsort(strongest, *active, sizeof *strongest, compare_numbers);
	pattern->weak = WEAK * strongest[*active / 2];
	return true;
}

/* False: there is no pattern. */
static bool
find_distances(struct pattern *pattern, uint32_t active)
{
	uint32_t n = pattern->n, distances = 0;

	for (uint32_t d = 1; d < n; d++) {
		uint32_t strong = 0;

		for (uint32_t i = 0; i < n; i++)
			strong += pattern->bytes[(size_t)i * n + (i + d) % n] >= pattern->weak;
		if ((double)strong < MOST_SHARE * active)
			continue;
		pattern->has[d] = pattern->has[n - d] = 1;
		distances++;
	}
	return distances && distances <= (n - 1) / 2;
}

static bool
is_unexpected(const struct pattern *pattern, const struct plumb_traffic_fact *fact)
{
	uint32_t n = pattern->n;
	size_t cell = (size_t)fact->initiator * n + fact->owner;

	return pattern->bytes[cell] < pattern->weak && !pattern->logical[cell] &&
	       !pattern->has[(fact->owner + n - fact->initiator) % n];
}

/* ---- unexpected pairs ---- */

static int
draft_unexpected(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
                 const struct plumb_traffic_sum *sum)
{
	char words[PLUMB_TRAFFIC_WORDS], users[NAMED_MOST * PLUMB_PARTY_SIZE + 40],
		line[PLUMB_OBJECT_LABEL], amount[PLUMB_FORMAT_SIZE];
	const struct plumb_traffic_place *place;
	uint32_t devices, most;
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "pair", object->object);
	name_users(f, object, users, sizeof users, &devices, &most);
	plumb_traffic_object_json(f, draft.evidence, object->object);
	write_sum(draft.evidence, sum);
	plumb_json_key_text(draft.evidence, "initiators", users);
	place = plumb_traffic_lines_json(f, draft.evidence, object->object);
	plumb_draft_title(
		&draft,
		"%s go to %s%s%s, over pairs of GPUs that the pattern of all other traffic "
		"does not have; it is reached from %s",
		plumb_format_bytes(amount, sum->bytes),
		plumb_traffic_object_words(f, object->object, words), place ? ", at " : "",
		place ? plumb_traffic_place_text(&f->traffic, place, line) : "", users);
	plumb_draft_advice(
		&draft, "Check whether these GPUs must exchange data. If they only read what does "
			"not change, give each one a copy; if they synchronise, use memory of "
			"the GPU that waits.");
	draft.confidence = 0.6;
	return plumb_draft_end(f->study, &draft);
}

static int
draft_all(struct plumb_traffic_finder *f, const struct pattern *pattern)
{
	const struct plumb_profile *p = f->study->profile;
	struct plumb_traffic_sum *sums = calloc((size_t)p->objects_count + 1, sizeof *sums);
	double least = plumb_study_threshold(f->study, "traffic.accesses");
	int code = 0;

	if (!sums)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->transfers_count; i++) {
		uint32_t object = object_of(f, i);
		struct plumb_traffic_sum sum = { p->transfers[i].bytes, p->transfers[i].accesses,
			                         PLUMB_UNKNOWN, 0 };

		if (object != PLUMB_NONE && !f->pointers[object] &&
		    plumb_access_is_code(p->transfers[i].kind) && is_remote(f, i) &&
		    is_unexpected(pattern, &f->traffic.facts[i]))
			plumb_traffic_sum_add(&sums[object], &sum);
	}
	for (uint32_t i = 0; !code && i < f->traffic.objects.count; i++) {
		const struct plumb_traffic_object *object = &f->traffic.objects.items[i];
		const struct plumb_traffic_sum *sum = &sums[object->object];

		if ((double)sum->accesses >= least && p->objects[object->object].bytes > 0 &&
		    (double)sum->bytes >= AGAIN * (double)p->objects[object->object].bytes)
			code = draft_unexpected(f, object, sum);
	}
	free(sums);
	return code;
}

int
plumb_traffic_find_unexpected(struct plumb_traffic_finder *f)
{
	struct pattern pattern = { .n = f->study->profile->devices_count };
	size_t n = pattern.n;
	double *strongest;
	uint32_t active;
	int code = 0;

	if (n < 4 || n > DEVICES_MOST)
		return 0;
	pattern.bytes = calloc(n * n, sizeof *pattern.bytes);
	pattern.logical = calloc(n * n, 1);
	pattern.has = calloc(n + 1, 1);
	strongest = calloc(n, sizeof *strongest);
	if (!pattern.bytes || !pattern.logical || !pattern.has || !strongest) {
		code = PLUMB_ESYSTEM;
	} else {
		add_bytes(f, &pattern);
		if (find_weak(&pattern, strongest, &active) && find_distances(&pattern, active))
			code = draft_all(f, &pattern);
	}
	free(strongest);
	free(pattern.has);
	free(pattern.logical);
	free(pattern.bytes);
	return code;
}
