/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that need not be: data that a device or the host passes on as it came, and copies into an
 * object of which kernels touch little.
 *
 * A ring in which each device passes on what it received is how collectives by hand work, so
 * nothing is said of a device whose two neighbours pass data on, too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traffic/findings.h"
#include "base/format.h"

#define COPIES_LEAST 4
#define COPY_LEAST 4096 /* bytes of one copy into a halo */
#define RELAYS_MOST 64

/* Marks the contexts of the copies into or out of OBJECT: they would go. */
static void
mark_copies(const struct plumb_traffic_finder *f, struct plumb_draft *draft, uint32_t object,
            bool into)
{
	const struct plumb_profile *p = f->study->profile;
	unsigned char *about = plumb_draft_about(f->study, draft);

	for (uint32_t i = 0; about && i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];

		if (t->kind == PLUMB_ACCESS_COPY && t->context != PLUMB_NONE &&
		    (into ? t->to_object : t->from_object) == object)
			about[t->context] = 1;
	}
}

/* ---- relays ---- */

struct relay {
	const struct plumb_traffic_object *object;
	uint32_t from, by, to; /* parties */
	int64_t bytes;         /* of the second copies */
	uint64_t copies;
	bool known; /* that no kernel changed it meanwhile */
};

/* Do kernels write to the object, as far as that is known? */
static bool
is_written(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
           bool *known)
{
	const struct plumb_profile *p = f->study->profile;

	*known = p->objects[object->object].touched_bytes != PLUMB_UNKNOWN;
	for (uint32_t i = 0; i < object->bin_count; i++) {
		uint32_t kind = p->object_bins[object->first_bin + i].kind;

		if (plumb_access_is_code(kind) && !plumb_access_reads(kind))
			return true;
	}
	for (uint32_t i = 0; i < plumb_traffic_uses(object); i++) {
		const uint32_t *part = f->traffic.uses.items[object->uses.first + i].part;

		if (part[PLUMB_USE_WRITES] && plumb_access_is_code(part[PLUMB_USE_KIND]))
			return true;
	}
	return false;
}

static bool
is_same_size(const struct plumb_traffic_sum *in, const struct plumb_traffic_sum *out)
{
	return in->bytes == out->bytes && in->accesses == out->accesses;
}

/* The copies of OBJECT that bring in as much as others take away, to a third party. */
static bool
find_relay(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
           struct relay *relay)
{
	uint32_t by = plumb_traffic_owner(&f->traffic, object->object);
	const struct plumb_traffic_cell *uses = &f->traffic.uses.items[object->uses.first];
	bool known;

	if (by == f->traffic.unknown || is_written(f, object, &known))
		return false;
	for (uint32_t i = 0; i < plumb_traffic_uses(object); i++) {
		uint32_t from = uses[i].part[PLUMB_USE_OTHER];

		if (uses[i].part[PLUMB_USE_KIND] != PLUMB_ACCESS_COPY ||
		    !uses[i].part[PLUMB_USE_WRITES] || from == by || from >= f->traffic.host)
			continue;
		for (uint32_t k = 0; k < plumb_traffic_uses(object); k++) {
			uint32_t to = uses[k].part[PLUMB_USE_OTHER];

			if (uses[k].part[PLUMB_USE_KIND] != PLUMB_ACCESS_COPY ||
			    uses[k].part[PLUMB_USE_WRITES] || to == by || to == from ||
			    to >= f->traffic.host || !is_same_size(&uses[i].sum, &uses[k].sum))
				continue;
			*relay = (struct relay){
				object, from, by, to, uses[k].sum.bytes, uses[k].sum.accesses, known
			};
			return true;
		}
	}
	return false;
}

static int
draft_relay(struct plumb_traffic_finder *f, const struct relay *r)
{
	char words[PLUMB_TRAFFIC_WORDS], amount[PLUMB_FORMAT_SIZE], count[PLUMB_FORMAT_SIZE];
	char from[PLUMB_PARTY_SIZE], by[PLUMB_PARTY_SIZE], to[PLUMB_PARTY_SIZE];
	struct plumb_draft draft;

	plumb_traffic_party(&f->traffic, r->from, from);
	plumb_traffic_party(&f->traffic, r->by, by);
	plumb_traffic_party(&f->traffic, r->to, to);
	plumb_traffic_begin(f, &draft, "relay", r->object->object);
	plumb_draft_title(
		&draft,
		"%s passes on %s from %s to %s through %s: as many copies with as many bytes "
		"come as go (%s)%s",
		by, plumb_format_bytes(amount, r->bytes), from, to,
		plumb_traffic_object_words(f, r->object->object, words),
		plumb_format_count(count, r->copies > INT64_MAX ? INT64_MAX : (int64_t)r->copies),
		r->known ? ", and no kernel writes to it" : "");
	plumb_draft_advice(
		&draft,
		r->by == f->traffic.host
			? "Copy from %s to %s directly: enable peer access and use "
			  "cudaMemcpyPeerAsync."
			: "Copy from %s to %s directly, or let a collective (broadcast) send "
			  "it to all that need it.",
		from, to);
	plumb_traffic_object_json(f, draft.evidence, r->object->object);
	plumb_json_key_text(draft.evidence, "from", from);
	plumb_json_key_text(draft.evidence, "by", by);
	plumb_json_key_text(draft.evidence, "to", to);
	plumb_json_key(draft.evidence, "copies");
	plumb_json_unsigned(draft.evidence, r->copies);
	plumb_json_key_quantity(draft.evidence, "bytes", r->bytes);
	plumb_json_key_quantity(draft.evidence, "saving_bytes", r->bytes);
	plumb_json_key_bool(draft.evidence, "unchanged", r->known);
	mark_copies(f, &draft, r->object->object, false);
	draft.saving_ns = plumb_traffic_time(f, r->by, r->to, r->bytes);
	draft.confidence = r->known ? 0.8 : 0.4;
	return plumb_draft_end(f->study, &draft);
}

int
plumb_traffic_find_relays(struct plumb_traffic_finder *f)
{
	double least = plumb_study_threshold(f->study, "traffic.relayed");
	unsigned char *relays = calloc((size_t)f->traffic.unknown + 1, 1);
	struct relay found[RELAYS_MOST];
	uint32_t count = 0;
	int code = 0;

	if (!relays)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < f->traffic.objects.count && count < RELAYS_MOST; i++)
		if (find_relay(f, &f->traffic.objects.items[i], &found[count]) &&
		    (double)found[count].bytes >= least)
			relays[found[count++].by] = 1;
	for (uint32_t i = 0; !code && i < count; i++)
		if (!relays[found[i].from] || !relays[found[i].to])
			code = draft_relay(f, &found[i]);
	free(relays);
	return code;
}

/* ---- halos ---- */

struct halo {
	int64_t bytes;
	uint64_t copies;
	uint32_t from; /* with most of it */
};

static bool
find_halo(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
          struct halo *halo)
{
	const struct plumb_object *o = &f->study->profile->objects[object->object];
	uint32_t owner = plumb_traffic_owner(&f->traffic, object->object);
	double each;

	*halo = (struct halo){ .from = PLUMB_NONE };
	for (uint32_t i = 0; i < plumb_traffic_uses(object); i++) {
		const struct plumb_traffic_cell *use =
			&f->traffic.uses.items[object->uses.first + i];
		uint32_t from = use->part[PLUMB_USE_OTHER];

		if (use->part[PLUMB_USE_KIND] != PLUMB_ACCESS_COPY ||
		    !use->part[PLUMB_USE_WRITES] || from >= f->traffic.host || from == owner)
			continue;
		if (halo->from == PLUMB_NONE)
			halo->from = from;
		halo->bytes = plumb_add(halo->bytes, use->sum.bytes);
		halo->copies += use->sum.accesses;
	}
	if (halo->copies < COPIES_LEAST || o->touched_bytes <= 0)
		return false;
	each = (double)halo->bytes / (double)halo->copies;
	return (double)halo->bytes >= plumb_study_threshold(f->study, "traffic.large") &&
	       each >= COPY_LEAST &&
	       (double)o->touched_bytes <= plumb_study_threshold(f->study, "traffic.halo") * each;
}

static int
draft_halo(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
           const struct halo *halo)
{
	const struct plumb_object *o = &f->study->profile->objects[object->object];
	uint32_t owner = plumb_traffic_owner(&f->traffic, object->object);
	double each = (double)halo->bytes / (double)halo->copies;
	int64_t saving =
		(int64_t)((double)halo->bytes * (1 - (double)o->touched_bytes / each) * 0.999999);
	char words[PLUMB_TRAFFIC_WORDS], size[PLUMB_FORMAT_SIZE], touched[PLUMB_FORMAT_SIZE];
	char count[PLUMB_FORMAT_SIZE], from[PLUMB_PARTY_SIZE];
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "halo", object->object);
	plumb_draft_title(&draft,
	                  "each of %s copies moves %s from %s into %s, and kernels touch %s of it",
	                  plumb_format_count(count, (int64_t)halo->copies),
	                  plumb_format_bytes(size, (int64_t)each),
	                  plumb_traffic_party(&f->traffic, halo->from, from),
	                  plumb_traffic_object_words(f, object->object, words),
	                  plumb_format_bytes(touched, o->touched_bytes));
	plumb_draft_advice(&draft,
	                   "Copy only the part that kernels need: the rows or planes at the "
	                   "border. cudaMemcpy2DAsync and cudaMemcpy3DPeerAsync copy parts "
	                   "that are not in one piece.");
	plumb_traffic_object_json(f, draft.evidence, object->object);
	plumb_json_key_quantity(draft.evidence, "bytes", halo->bytes);
	plumb_json_key_quantity(draft.evidence, "copies", (int64_t)halo->copies);
	plumb_json_key_quantity(draft.evidence, "touched_bytes", o->touched_bytes);
	plumb_json_key_quantity(draft.evidence, "saving_bytes", saving);
	plumb_traffic_lines_json(f, draft.evidence, object->object);
	mark_copies(f, &draft, object->object, true);
	draft.saving_ns = plumb_traffic_time(f, halo->from, owner, saving);
	draft.confidence = plumb_traffic_trust(f, 0.7);
	return plumb_draft_end(f->study, &draft);
}

int
plumb_traffic_find_halos(struct plumb_traffic_finder *f)
{
	struct halo halo;
	int code = 0;

	if (plumb_traffic_is_sampled(f) || !plumb_traffic_sees_local(f))
		return 0;
	for (uint32_t i = 0; !code && i < plumb_traffic_looked_at(f); i++)
		if (find_halo(f, &f->traffic.objects.items[i], &halo))
			code = draft_halo(f, &f->traffic.objects.items[i], &halo);
	return code;
}
