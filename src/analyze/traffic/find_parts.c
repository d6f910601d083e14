/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which parts of objects are accessed: memory that nothing touches, lines of memory that several
 * devices write to, and managed memory that moves to and fro.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traffic/findings.h"
#include "base/format.h"

#define LINE_BYTES 128
#define PAGE_BYTES 4096
#define PART 0.1 /* of the accesses: a device takes part */

bool
plumb_traffic_sees_local(const struct plumb_traffic_finder *f)
{
	const struct plumb_profile *p = f->study->profile;

	for (uint32_t i = 0; i < p->object_bins_count; i++)
		if (p->object_bins[i].device != PLUMB_NONE &&
		    p->object_bins[i].device == p->objects[p->object_bins[i].object].device)
			return true;
	return false;
}

/* ---- untouched ---- */

static bool
is_untouched(const struct plumb_traffic_finder *f, uint32_t object)
{
	const struct plumb_object *o = &f->study->profile->objects[object];

	return o->within == PLUMB_NONE && o->touched_bytes > 0 && o->touchable_bytes > 0 &&
	       (double)o->touchable_bytes >= plumb_study_threshold(f->study, "traffic.large") &&
	       (double)o->touched_bytes <= plumb_study_threshold(f->study, "traffic.touched") *
	                                           (double)o->touchable_bytes;
}

static int
draft_untouched(struct plumb_traffic_finder *f, uint32_t object, uint32_t alike, int64_t touched,
                int64_t touchable)
{
	char words[PLUMB_TRAFFIC_WORDS], most[PLUMB_FORMAT_SIZE], part[PLUMB_FORMAT_SIZE];
	char more[64] = "";
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "untouched", object);
	if (alike > 1)
		snprintf(more, sizeof more, " and %" PRIu32 " objects like it", alike - 1);
	plumb_draft_title(&draft, "kernels touch %s of the %s of %s%s",
	                  plumb_format_bytes(part, touched), plumb_format_bytes(most, touchable),
	                  plumb_traffic_object_words(f, object, words), more);
	plumb_draft_advice(&draft,
	                   "Allocate only what is used, or allocate it where it is used. What the "
	                   "host and copies reach does not count as touched.");
	plumb_traffic_object_json(f, draft.evidence, object);
	plumb_json_key_quantity(draft.evidence, "objects", alike);
	plumb_json_key_quantity(draft.evidence, "touched_bytes", touched);
	plumb_json_key_quantity(draft.evidence, "touchable_bytes", touchable);
	plumb_json_key_quantity(draft.evidence, "saving_bytes",
	                        touchable > touched ? touchable - touched : 0);
	plumb_traffic_lines_json(f, draft.evidence, object);
	draft.severity = PLUMB_NOTE;
	draft.confidence = plumb_traffic_trust(f, 0.6);
	return plumb_draft_end(f->study, &draft);
}

/* Objects of one line are one finding. */
int
plumb_traffic_find_untouched(struct plumb_traffic_finder *f)
{
	const struct plumb_profile *p = f->study->profile;
	uint32_t most = plumb_traffic_looked_at(f);
	unsigned char *done = calloc((size_t)p->objects_count + 1, 1);
	int code = done ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0;
	     !code && !plumb_traffic_is_sampled(f) && plumb_traffic_sees_local(f) && i < most;
	     i++) {
		uint32_t object = f->traffic.objects.items[i].object, alike = 0;
		int64_t touched = 0, touchable = 0;

		if (done[object] || !is_untouched(f, object))
			continue;
		for (uint32_t k = i; k < most; k++) {
			uint32_t other = f->traffic.objects.items[k].object;

			if (done[other] || !plumb_traffic_is_alike(f, object, other) ||
			    !is_untouched(f, other))
				continue;
			done[other] = 1;
			alike++;
			touched = plumb_add(touched, p->objects[other].touched_bytes);
			touchable = plumb_add(touchable, p->objects[other].touchable_bytes);
		}
		code = draft_untouched(f, object, alike, touched, touchable);
	}
	free(done);
	return code;
}

/* ---- shared lines ---- */

struct written {
	int64_t line, offset;
	uint32_t device;
	uint64_t accesses;
};

struct shared {
	uint64_t writes, on_shared; /* accesses */
	uint64_t lines;
	int64_t size; /* of a line or page */
};

static int
compare_written(const void *a, const void *b)
{
	const struct written *one = a, *two = b;

	if (one->line != two->line)
		return one->line < two->line ? -1 : 1;
	if (one->offset != two->offset)
		return one->offset < two->offset ? -1 : 1;
	return one->device < two->device ? -1 : one->device > two->device;
}

static uint64_t
add_count(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Adds one line, whose parts are FIRST to END. It is shared falsely if several devices write to it,
 * but none to the part of another. */
static void
add_line(struct shared *shared, const struct written *first, const struct written *end)
{
	uint64_t accesses = 0;
	bool several = false, same = false;

	for (const struct written *w = first; w < end; w++) {
		accesses = add_count(accesses, w->accesses);
		several |= w->device != first->device;
		same |= w > first && w[-1].offset == w->offset && w[-1].device != w->device;
	}
	shared->writes = add_count(shared->writes, accesses);
	if (!several || same)
		return;
	shared->on_shared = add_count(shared->on_shared, accesses);
	shared->lines++;
}

static int
find_shared(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
            struct shared *shared)
{
	const struct plumb_profile *p = f->study->profile;
	struct written *written = calloc((size_t)object->bin_count + 1, sizeof *written);
	uint32_t count = 0;

	*shared = (struct shared){
		.size = p->objects[object->object].kind == PLUMB_OBJECT_MANAGED ? PAGE_BYTES
		                                                                : LINE_BYTES,
	};
	if (!written)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < object->bin_count; i++) {
		const struct plumb_object_bin *bin = &p->object_bins[object->first_bin + i];

		if (!plumb_access_is_code(bin->kind) || plumb_access_reads(bin->kind))
			continue;
		if (bin->width > shared->size / 2) {
			shared->writes = add_count(shared->writes, bin->accesses);
			continue; /* too coarse to tell */
		}
		written[count++] = (struct written){ bin->offset / shared->size, bin->offset,
			                             bin->device, bin->accesses };
	}
	if (count)
		qsort(written, count, sizeof *written, compare_written);
	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && written[end].line == written[i].line; end++)
			;
		add_line(shared, &written[i], &written[end]);
	}
	free(written);
	return 0;
}

static int
draft_shared(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
             const struct shared *shared)
{
	char words[PLUMB_TRAFFIC_WORDS], part[PLUMB_FORMAT_SIZE], lines[PLUMB_FORMAT_SIZE];
	bool page = shared->size == PAGE_BYTES;
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "sharing", object->object);
	plumb_draft_title(
		&draft,
		"%s of the writes to %s fall on %s %s%s of %" PRId64
		" bytes that several GPUs write to, each to another part",
		plumb_format_share(part, (double)shared->on_shared, (double)shared->writes),
		plumb_traffic_object_words(f, object->object, words),
		plumb_format_count(lines, (int64_t)shared->lines), page ? "page" : "line",
		shared->lines == 1 ? "" : "s", shared->size);
	plumb_draft_advice(&draft,
	                   "Give each GPU its own %s: align and pad what each of them writes to "
	                   "%" PRId64 " bytes.",
	                   page ? "pages" : "lines", shared->size);
	plumb_traffic_object_json(f, draft.evidence, object->object);
	plumb_json_key(draft.evidence, "accesses");
	plumb_json_unsigned(draft.evidence, shared->on_shared);
	plumb_json_key_number(draft.evidence, "share",
	                      (double)shared->on_shared / (double)shared->writes);
	plumb_json_key_quantity(draft.evidence, "shared_lines", (int64_t)shared->lines);
	plumb_traffic_lines_json(f, draft.evidence, object->object);
	draft.confidence = page ? 0.8 : 0.5;
	return plumb_draft_end(f->study, &draft);
}

int
plumb_traffic_find_sharing(struct plumb_traffic_finder *f)
{
	double least = plumb_study_threshold(f->study, "traffic.accesses");
	double part = plumb_study_threshold(f->study, "traffic.sharing");
	int code = 0;

	for (uint32_t i = 0; !code && i < f->traffic.objects.count; i++) {
		const struct plumb_traffic_object *object = &f->traffic.objects.items[i];
		struct shared shared;

		if (object->bin_count < 2)
			continue;
		code = find_shared(f, object, &shared);
		if (!code && (double)shared.on_shared >= least &&
		    (double)shared.on_shared >= part * (double)shared.writes)
			code = draft_shared(f, object, &shared);
	}
	return code;
}

/* ---- managed memory ---- */

struct thrash {
	uint32_t devices; /* that take part */
	bool writes;      /* one of them writes */
	struct plumb_traffic_sum sum;
};

static void
find_thrash(const struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
            struct thrash *thrash)
{
	const struct plumb_traffic_cell *uses = &f->traffic.uses.items[object->uses.first];

	*thrash = (struct thrash){ 0 };
	for (uint32_t i = 0; i < plumb_traffic_uses(object); i++)
		if (plumb_access_is_code(uses[i].part[PLUMB_USE_KIND]))
			plumb_traffic_sum_add(&thrash->sum, &uses[i].sum);
	for (uint32_t i = 0; i < plumb_traffic_uses(object); i++) {
		uint64_t accesses = 0;
		bool had = false;

		for (uint32_t k = 0; k < plumb_traffic_uses(object); k++) {
			if (uses[k].part[PLUMB_USE_INITIATOR] !=
			            uses[i].part[PLUMB_USE_INITIATOR] ||
			    !plumb_access_is_code(uses[k].part[PLUMB_USE_KIND]))
				continue;
			had |= k < i;
			accesses = add_count(accesses, uses[k].sum.accesses);
		}
		if (uses[i].part[PLUMB_USE_WRITES] &&
		    plumb_access_is_code(uses[i].part[PLUMB_USE_KIND]))
			thrash->writes |=
				(double)uses[i].sum.accesses >= PART * (double)thrash->sum.accesses;
		thrash->devices +=
			!had && accesses && (double)accesses >= PART * (double)thrash->sum.accesses;
	}
}

static int
draft_thrash(struct plumb_traffic_finder *f, const struct plumb_traffic_object *object,
             const struct thrash *thrash)
{
	char words[PLUMB_TRAFFIC_WORDS], amount[PLUMB_FORMAT_SIZE], line[PLUMB_OBJECT_LABEL];
	const struct plumb_traffic_place *place;
	struct plumb_draft draft;

	plumb_traffic_begin(f, &draft, "thrash", object->object);
	plumb_traffic_object_json(f, draft.evidence, object->object);
	plumb_json_key_quantity(draft.evidence, "devices", thrash->devices);
	plumb_json_key(draft.evidence, "accesses");
	plumb_json_unsigned(draft.evidence, thrash->sum.accesses);
	plumb_json_key_quantity(draft.evidence, "bytes", thrash->sum.bytes);
	place = plumb_traffic_lines_json(f, draft.evidence, object->object);
	plumb_draft_title(
		&draft,
		"%" PRIu32 " GPUs access %s of the managed object %s, and not only to read%s%s: "
		"its pages may move to and fro",
		thrash->devices, plumb_format_bytes(amount, thrash->sum.bytes),
		plumb_traffic_object_words(f, object->object, words), place ? ", at " : "",
		place ? plumb_traffic_place_text(&f->traffic, place, line) : "");
	plumb_draft_advice(&draft,
	                   "Give each GPU its own part, aligned to pages, and prefetch it "
	                   "(cudaMemPrefetchAsync). Or set a preferred location and "
	                   "cudaMemAdviseSetAccessedBy, so that pages stay where they are.");
	draft.confidence = 0.5;
	return plumb_draft_end(f->study, &draft);
}

int
plumb_traffic_find_thrash(struct plumb_traffic_finder *f)
{
	const struct plumb_profile *p = f->study->profile;
	double least = plumb_study_threshold(f->study, "traffic.accesses");
	double times = plumb_study_threshold(f->study, "traffic.thrash");
	int code = 0;

	for (uint32_t i = 0; !code && i < plumb_traffic_looked_at(f); i++) {
		const struct plumb_traffic_object *object = &f->traffic.objects.items[i];
		const struct plumb_object *o = &p->objects[object->object];
		struct thrash thrash;

		if (o->kind != PLUMB_OBJECT_MANAGED || o->bytes <= 0)
			continue;
		find_thrash(f, object, &thrash);
		if (thrash.devices >= 2 && thrash.writes && (double)thrash.sum.accesses >= least &&
		    (double)thrash.sum.bytes >= times * (double)o->bytes)
			code = draft_thrash(f, object, &thrash);
	}
	return code;
}
