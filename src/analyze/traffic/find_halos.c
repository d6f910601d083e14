/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that kernels fill from other devices, again and again, and of which kernels read little:
 * a halo that is too wide. Two ways:
 *
 *   pushed   kernels of other devices store into the object
 *   pulled   a kernel of its own device stores as often into memory of this device as it loads from
 *            other ones: it copies. What it stores into the object came from there
 *
 * Bins say which parts are filled and which are read. A bin of which a byte is read counts as read,
 * so the finding errs to the side of silence. Copies that take data from the object read what
 * nobody knows, so nothing is said of it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analyze/traffic/findings.h"
#include "base/format.h"

#define TIMES_LEAST 4     /* that each part is filled, in the mean */
#define FILLED_LEAST 4096 /* bytes */
#define ALIKE 0.1         /* part by which loads and stores of a copying kernel may differ */

/* What comes into an object. */
struct incoming {
	int64_t bytes, most;
	uint32_t from, source; /* device and object with MOST of it */
	bool pushed, pulled, copied_out;
};

static void
add_incoming(struct incoming *in, int64_t bytes, int64_t weight, uint32_t from, uint32_t source)
{
	in->bytes = plumb_add(in->bytes, bytes);
	if (in->most >= weight)
		return;
	in->most = weight;
	in->from = from;
	in->source = source;
}

/* ---- what is pushed ---- */

static void
find_pushed(const struct plumb_traffic_finder *f, struct incoming *incoming)
{
	const struct plumb_profile *p = f->study->profile;

	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		const struct plumb_traffic_fact *fact = &f->traffic.facts[i];

		if (t->kind == PLUMB_ACCESS_COPY && t->from_object != PLUMB_NONE)
			incoming[t->from_object].copied_out = true;
		if (!plumb_access_is_code(t->kind) || plumb_access_reads(t->kind) ||
		    t->kind == PLUMB_ACCESS_ATOMIC || t->to_object == PLUMB_NONE ||
		    fact->initiator >= f->traffic.host || fact->owner >= f->traffic.host ||
		    fact->initiator == fact->owner)
			continue;
		incoming[t->to_object].pushed = true;
		add_incoming(&incoming[t->to_object], t->bytes, t->bytes, fact->initiator,
		             PLUMB_NONE);
	}
}

/* ---- what is pulled ---- */

/* Rows of one kernel's context on one device are together. */
struct moved {
	uint32_t context, device;
	uint32_t transfer;
};

static int
compare_moved(const void *a, const void *b)
{
	const struct moved *one = a, *two = b;

	if (one->context != two->context)
		return one->context < two->context ? -1 : 1;
	if (one->device != two->device)
		return one->device < two->device ? -1 : 1;
	return one->transfer < two->transfer ? -1 : one->transfer > two->transfer;
}

/* A kernel that loads from other devices as often as it stores at home. */
static void
add_kernel(const struct plumb_traffic_finder *f, struct incoming *incoming,
           const struct moved *first, const struct moved *end)
{
	const struct plumb_profile *p = f->study->profile;
	double loads = 0, stores = 0;
	int64_t most = 0;
	uint32_t from = PLUMB_NONE, source = PLUMB_NONE;

	for (const struct moved *m = first; m < end; m++) {
		const struct plumb_transfer_row *t = &p->transfers[m->transfer];

		if (f->traffic.facts[m->transfer].local) {
			stores += plumb_access_reads(t->kind) ? 0 : (double)t->accesses;
			continue;
		}
		loads += (double)t->accesses;
		if (t->bytes > most) {
			most = t->bytes;
			from = f->traffic.facts[m->transfer].owner;
			source = t->from_object;
		}
	}
	if (loads <= 0 || stores < (1 - ALIKE) * loads || stores > (1 + ALIKE) * loads)
		return;
	for (const struct moved *m = first; m < end; m++) {
		const struct plumb_transfer_row *t = &p->transfers[m->transfer];

		if (!f->traffic.facts[m->transfer].local || plumb_access_reads(t->kind) ||
		    t->to_object == PLUMB_NONE)
			continue;
		incoming[t->to_object].pulled = true;
		add_incoming(&incoming[t->to_object], t->bytes, most, from, source);
	}
}

static int
find_pulled(const struct plumb_traffic_finder *f, struct incoming *incoming)
{
	const struct plumb_profile *p = f->study->profile;
	struct moved *moved = calloc((size_t)p->transfers_count + 1, sizeof *moved);
	uint32_t count = 0;

	if (!moved)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		const struct plumb_traffic_fact *fact = &f->traffic.facts[i];
		bool pulls = plumb_access_reads(t->kind) && fact->owner < f->traffic.host &&
		             fact->initiator < f->traffic.host && fact->owner != fact->initiator;

		if (plumb_access_is_code(t->kind) && t->context != PLUMB_NONE &&
		    (fact->local || pulls))
			moved[count++] = (struct moved){ t->context, fact->initiator, i };
	}
	if (count)
		qsort(moved, count, sizeof *moved, compare_moved);
	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && moved[end].context == moved[i].context &&
		                  moved[end].device == moved[i].device;
		     end++)
			;
		add_kernel(f, incoming, &moved[i], &moved[end]);
	}
	free(moved);
	return 0;
}

/* ---- which parts ---- */

struct part {
	int64_t offset, width;
	bool filled, read;
};

static int
compare_parts(const void *a, const void *b)
{
	const struct part *one = a, *two = b;

	if (one->offset != two->offset)
		return one->offset < two->offset ? -1 : 1;
	return one->width < two->width ? -1 : one->width > two->width;
}

/* *FILLED: bytes of the parts into which data comes; *READ: of those that somebody reads. */
static int
find_parts(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
           const struct incoming *in, int64_t *filled, int64_t *read)
{
	const struct plumb_profile *p = f->study->profile;
	uint32_t own = p->objects[object->object].device, count = object->bin_count;
	struct part *parts = calloc((size_t)count + 1, sizeof *parts);

	*filled = *read = 0;
	if (!parts)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_object_bin *bin = &p->object_bins[object->first_bin + i];
		bool reads = plumb_access_reads(bin->kind) || bin->kind == PLUMB_ACCESS_ATOMIC;

		parts[i] = (struct part){ bin->offset, bin->width,
			                  !reads && (bin->device == own ? in->pulled : in->pushed),
			                  reads };
	}
	if (count)
		qsort(parts, count, sizeof *parts, compare_parts);
	for (uint32_t i = 0, end; i < count; i = end) {
		bool is_filled = false, is_read = false;

		for (end = i; end < count && !compare_parts(&parts[i], &parts[end]); end++) {
			is_filled |= parts[end].filled;
			is_read |= parts[end].read;
		}
		if (is_filled)
			*filled = plumb_add(*filled, parts[i].width);
		if (is_filled && is_read)
			*read = plumb_add(*read, parts[i].width);
	}
	free(parts);
	return 0;
}

/* ---- the finding ---- */

static int
draft_filled(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
             const struct incoming *in, int64_t filled, int64_t read)
{
	char words[PLUMB_TRAFFIC_WORDS], bytes[PLUMB_FORMAT_SIZE], part[PLUMB_FORMAT_SIZE];
	char used[PLUMB_FORMAT_SIZE], from[PLUMB_PARTY_SIZE], line[PLUMB_OBJECT_LABEL];
	int64_t saving =
		(int64_t)((double)in->bytes * (1 - (double)read / (double)filled) * 0.999999);
	const struct plumb_traffic_place *place;
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "halo", object->object);
	plumb_traffic_party(&f->traffic, in->from, from);
	plumb_traffic_object_json(f, draft.evidence, object->object);
	plumb_json_key_text(draft.evidence, "from", from);
	plumb_json_key_text(draft.evidence, "by", in->pushed ? "stores" : "loads");
	plumb_json_key_quantity(draft.evidence, "bytes", in->bytes);
	plumb_json_key_quantity(draft.evidence, "filled_bytes", filled);
	plumb_json_key_quantity(draft.evidence, "read_bytes", read);
	plumb_json_key_quantity(draft.evidence, "saving_bytes", saving);
	place = plumb_traffic_lines_json(f, draft.evidence,
	                                 in->pushed || in->source == PLUMB_NONE ? object->object
	                                                                        : in->source);
	plumb_draft_title(&draft,
	                  "kernels move %s from %s into %s%s%s, and read only %s of the %s that "
	                  "they fill",
	                  plumb_format_bytes(bytes, in->bytes), from,
	                  plumb_traffic_object_words(f, object->object, words),
	                  place ? ", at " : "",
	                  place ? plumb_traffic_place_text(&f->traffic, place, line) : "",
	                  plumb_format_bytes(used, read), plumb_format_bytes(part, filled));
	plumb_draft_advice(&draft, "Move only the part that kernels read: the rows or planes at "
	                           "the border.");
	draft.saving_ns = plumb_traffic_time(
		f, in->from, plumb_traffic_owner(&f->traffic, object->object), saving);
	draft.confidence = plumb_traffic_trust(f, 0.7);
	return plumb_draft_end(f->study, &draft);
}

static int
judge(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
      const struct incoming *in)
{
	int64_t filled, read;
	int code;

	if ((double)in->bytes < plumb_study_threshold(f->study, "traffic.large") ||
	    in->copied_out || in->from == PLUMB_NONE)
		return 0;
	code = find_parts(f, object, in, &filled, &read);
	if (code || filled < FILLED_LEAST || (double)in->bytes < TIMES_LEAST * (double)filled ||
	    (double)read > plumb_study_threshold(f->study, "traffic.halo") * (double)filled)
		return code;
	return draft_filled(f, object, in, filled, read);
}

int
plumb_traffic_find_filled(struct plumb_traffic_finder *f)
{
	struct incoming *incoming;
	int code;

	if (plumb_traffic_is_sampled(f) || !plumb_traffic_sees_local(f))
		return 0;
	incoming = calloc((size_t)f->study->profile->objects_count + 1, sizeof *incoming);
	if (!incoming)
		return PLUMB_ESYSTEM;
	find_pushed(f, incoming);
	code = find_pulled(f, incoming);
	for (uint32_t i = 0; !code && i < f->traffic.objects.count; i++) {
		const struct plumb_traffic_object *object = &f->traffic.objects.items[i];

		code = judge(f, object, &incoming[object->object]);
	}
	free(incoming);
	return code;
}
