/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic: data that goes between devices and need not. Causes, each a finding by object:
 *
 *   pointers   a small object with addresses lies on a device whose threads are not those that read
 *   pair       a pair of devices has traffic that the pattern of all others does not have
 *   relay      a device, or the host, passes on by copies what it received by copies
 *   halo       copies, or kernels, move far more of an object than kernels touch
 *   untouched  an object that is far larger than what is touched of it
 *   sharing    several devices write to different parts of one line of memory
 *   thrash     several devices write and read one managed object
 *
 * The saving in bytes is in the evidence: an upper bound. It is a time only where the profile has
 * large copies between the same devices, whose bandwidth then counts.
 */
#include "analyze/traffic/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

#define LINES_MOST 3

static const struct plumb_threshold thresholds[] = {
	{ "traffic.accesses", 1000, "count",
	  "minimum number of accesses for pointers, pairs, shared lines and managed memory" },
	{ "traffic.small", 65536, "byte",
	  "maximum size of an object that may be an array of pointers" },
	{ "traffic.lanes", 2, "count",
	  "maximum number of lanes of a warp that load a pointer at once, in the mean" },
	{ "traffic.relayed", 1048576, "byte", "minimum number of bytes that a device passes on" },
	{ "traffic.halo", 0.25, "share",
	  "maximum share of what copies move into an object that kernels touch" },
	{ "traffic.large", 4194304, "byte",
	  "minimum size of an object for untouched memory, and of all copies of a halo" },
	{ "traffic.touched", 0.1, "share", "maximum share of a large object that is touched" },
	{ "traffic.sharing", 0.2, "share",
	  "minimum share of an object's remote writes that fall on shared lines" },
	{ "traffic.thrash", 4, "ratio",
	  "minimum number of times that a managed object's bytes are accessed by several devices" },
	{ 0 },
};

/* ---- what they share ---- */

uint32_t
plumb_traffic_looked_at(const struct plumb_traffic_finder *f)
{
	return f->traffic.objects.count < PLUMB_TRAFFIC_OBJECTS_MOST ? f->traffic.objects.count
	                                                             : PLUMB_TRAFFIC_OBJECTS_MOST;
}

bool
plumb_traffic_is_alike(const struct plumb_traffic_finder *f, uint32_t object, uint32_t other)
{
	const struct plumb_object *a = &f->study->profile->objects[object];
	const struct plumb_object *b = &f->study->profile->objects[other];

	return object == other ||
	       (a->context != PLUMB_NONE && a->context == b->context && a->kind == b->kind);
}

void
plumb_traffic_begin(const struct plumb_traffic_finder *f, struct plumb_draft *draft,
                    const char *cause, uint32_t object)
{
	const struct plumb_profile *p = f->study->profile;
	const struct plumb_object *o = &p->objects[object];
	const char *name = plumb_text(p, o->name), *kind = plumb_object_kind_names[o->kind];
	char at[PLUMB_OBJECT_LABEL];

	plumb_traffic_allocated_at(&f->traffic, f->study->user_of, object, at);
	plumb_draft_begin(draft, cause, o->context == PLUMB_NONE ? 0 : o->context);
	plumb_draft_key(draft, "%s %s %s", cause, *at ? at : name ? name : "", kind ? kind : "");
	draft->confidence = 0.8;
}

void
plumb_traffic_object_json(const struct plumb_traffic_finder *f, struct plumb_json *json,
                          uint32_t object)
{
	const struct plumb_object *o = &f->study->profile->objects[object];
	char text[PLUMB_OBJECT_LABEL], party[PLUMB_PARTY_SIZE];

	plumb_json_key_text(
		json, "object",
		plumb_traffic_object_label(&f->traffic, f->study->user_of, object, text));
	plumb_json_key_text(
		json, "owner",
		plumb_traffic_party(&f->traffic, plumb_traffic_owner(&f->traffic, object), party));
	plumb_traffic_allocated_at(&f->traffic, f->study->user_of, object, text);
	plumb_json_key_text(json, "allocated_at", *text ? text : NULL);
	plumb_json_key_quantity(json, "allocated_bytes", o->bytes);
	plumb_study_line_json(f->study, json,
	                      o->context == PLUMB_NONE ? PLUMB_NONE
	                                               : f->study->place_of[o->context]);
}

struct reaching {
	const struct plumb_traffic_place *place;
	struct plumb_traffic_sum sum;
};

static void
insert(struct reaching best[LINES_MOST], struct reaching one)
{
	for (int i = 0; i < LINES_MOST; i++) {
		struct reaching had = best[i];

		if (had.place && had.sum.bytes >= one.sum.bytes)
			continue;
		best[i] = one;
		one = had;
		if (!one.place)
			return;
	}
}

const struct plumb_traffic_place *
plumb_traffic_lines_json(const struct plumb_traffic_finder *f, struct plumb_json *json,
                         uint32_t object)
{
	struct reaching best[LINES_MOST] = { 0 };
	char text[PLUMB_OBJECT_LABEL];

	for (uint32_t i = 0; i < f->traffic.places.count; i++) {
		const struct plumb_traffic_place *place = &f->traffic.places.items[i];
		struct reaching one = { .place = place };

		for (uint32_t m = 0; m < place->moves.count; m++) {
			const struct plumb_traffic_cell *move =
				&f->traffic.moves.items[place->moves.first + m];

			if (move->part[PLUMB_MOVE_OBJECT] == object)
				plumb_traffic_sum_add(&one.sum, &move->sum);
		}
		if (one.sum.accesses)
			insert(best, one);
	}
	plumb_json_key_array(json, "reached_at");
	for (int i = 0; i < LINES_MOST && best[i].place; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "line",
		                    plumb_traffic_place_text(&f->traffic, best[i].place, text));
		plumb_json_key_quantity(json, "bytes", best[i].sum.bytes);
		plumb_json_key(json, "accesses");
		plumb_json_unsigned(json, best[i].sum.accesses);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	return best[0].place;
}

int64_t
plumb_traffic_time(const struct plumb_traffic_finder *f, uint32_t from, uint32_t to, int64_t bytes)
{
	double speed = plumb_traffic_bandwidth(f->study->profile, from, to);
	double ns = speed > 0 ? (double)bytes / speed * 1e9 : NAN;

	return ns >= 0 && ns < 9e18 ? (int64_t)ns : PLUMB_UNKNOWN;
}

char *
plumb_traffic_object_words(const struct plumb_traffic_finder *f, uint32_t object,
                           char text[PLUMB_TRAFFIC_WORDS])
{
	char label[PLUMB_OBJECT_LABEL], at[PLUMB_OBJECT_LABEL], party[PLUMB_PARTY_SIZE];
	char size[PLUMB_FORMAT_SIZE];

	plumb_traffic_object_label(&f->traffic, f->study->user_of, object, label);
	plumb_traffic_allocated_at(&f->traffic, f->study->user_of, object, at);
	snprintf(text, PLUMB_TRAFFIC_WORDS, "%.150s (%s, %s%s%.150s)", label,
	         plumb_format_bytes(size, f->study->profile->objects[object].bytes),
	         plumb_traffic_party(&f->traffic, plumb_traffic_owner(&f->traffic, object), party),
	         *at && !strstr(label, at) ? ", allocated at " : "",
	         *at && !strstr(label, at) ? at : "");
	return text;
}

double
plumb_traffic_trust(const struct plumb_traffic_finder *f, double confidence)
{
	return plumb_profile_environment(f->study->profile, "traffic.tensor.gap") ? confidence / 2
	                                                                          : confidence;
}

bool
plumb_traffic_is_sampled(const struct plumb_traffic_finder *f)
{
	const char *mode = plumb_traffic_mode(f->study->profile);

	if (mode && !strncmp(mode, "sampled", 7))
		return true;
	return f->traffic.in_kernels.variance != 0; /* or NAN */
}

/* ---- all of them ---- */

static int
find_traffic(struct plumb_study *study)
{
	static int (*const causes[])(struct plumb_traffic_finder *) = {
		plumb_traffic_find_pointers, plumb_traffic_find_unexpected,
		plumb_traffic_find_relays,   plumb_traffic_find_halos,
		plumb_traffic_find_filled,   plumb_traffic_find_untouched,
		plumb_traffic_find_sharing,  plumb_traffic_find_thrash,
	};
	struct plumb_traffic_finder f = { .study = study };
	struct plumb_error error;
	int code;

	if (!study->profile->transfers_count && !study->profile->object_bins_count)
		return 0;
	code = plumb_traffic_make(study->profile, study->user_of, &f.traffic, &error);
	f.pointers = calloc((size_t)study->profile->objects_count + 1, 1);
	if (!f.pointers)
		code = PLUMB_ESYSTEM;
	for (size_t i = 0; !code && i < sizeof causes / sizeof *causes; i++)
		code = causes[i](&f);
	free(f.pointers);
	plumb_traffic_free(&f.traffic);
	return code;
}

const struct plumb_analysis plumb_analysis_traffic = {
	.name = "traffic",
	.summary = "data that goes between GPUs and need not, by object and line; needs plumb run "
		   "--traffic",
	.thresholds = thresholds,
	.run = find_traffic,
	.whole = true,
};
