/* SPDX-License-Identifier: Apache-2.0 */
/* Where traffic comes from: lines of GPU code with what they were inlined into, else the line of
 * your code that launched or called; and which kernels. */
#include <stdlib.h>
#include <string.h>

#include "analyze/kernel_code.h"
#include "analyze/traffic/traffic.h"
#include "base/hash.h"
#include "base/map.h"
#include "model/metric.h"

struct finder {
	struct plumb_traffic *traffic;
	const struct plumb_profile *profile;
	struct plumb_map map;
};

/* ---- places ---- */

static bool
is_same_chain(const struct plumb_profile *p, uint32_t one, uint32_t two, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_code_line *a = &p->code_lines[one + i];
		const struct plumb_code_line *b = &p->code_lines[two + i];

		if (a->file != b->file || a->line != b->line || a->inlined != b->inlined)
			return false;
	}
	return true;
}

static uint64_t
hash_of(const struct plumb_profile *p, const struct plumb_traffic_place *place)
{
	uint64_t hash = plumb_hash_mix(place->line_count, place->user);

	hash = plumb_hash_mix(hash, place->frame);
	for (uint32_t i = 0; i < place->line_count; i++) {
		const struct plumb_code_line *l = &p->code_lines[place->first_line + i];

		hash = plumb_hash_mix(hash, (uint64_t)l->file << 32 | l->line);
		hash = plumb_hash_mix(hash, l->inlined);
	}
	return hash;
}

/* The number of PLACE in the list; PLUMB_NONE: no memory. */
static uint32_t
intern_place(struct finder *f, const struct plumb_traffic_place *place)
{
	uint64_t hash = hash_of(f->profile, place);
	struct plumb_map_cursor at;
	struct plumb_traffic_place *added;

	for (uint32_t i = plumb_map_first(&f->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&f->map, &at)) {
		const struct plumb_traffic_place *had = &f->traffic->places.items[i];

		if (had->line_count == place->line_count &&
		    (had->line_count ? is_same_chain(f->profile, had->first_line, place->first_line,
		                                     had->line_count)
		                     : had->user == place->user && had->frame == place->frame))
			return i;
	}
	added = plumb_vec_add(&f->traffic->places);
	if (!added || plumb_map_add(&f->map, hash, f->traffic->places.count - 1))
		return PLUMB_NONE;
	*added = *place;
	return f->traffic->places.count - 1;
}

/* The first code line of the instruction of T, and how many; 0: none is known. */
static uint32_t
lines_of(const struct plumb_profile *p, const struct plumb_transfer_row *t, uint32_t *first)
{
	const struct plumb_code_line *lines;
	uint32_t count = 0;

	if (t->function == PLUMB_NONE || t->offset < 0)
		return 0;
	lines = plumb_code_lines_at(p, t->function, t->offset, &count);
	if (!lines || !lines->line)
		return 0;
	*first = (uint32_t)(lines - p->code_lines);
	return count;
}

bool
plumb_traffic_find_places(struct plumb_traffic *traffic, const uint32_t *user_of)
{
	const struct plumb_profile *p = traffic->profile;
	struct finder f = { .traffic = traffic, .profile = p };
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		struct plumb_traffic_place place = { .user = PLUMB_NONE,
			                             .frame = PLUMB_NONE,
			                             .function = t->function,
			                             .context = t->context,
			                             .most = -1 };
		uint32_t number;

		if (traffic->facts[i].local)
			continue;
		place.line_count = lines_of(p, t, &place.first_line);
		if (!place.line_count && t->context != PLUMB_NONE) {
			place.user = user_of[t->context];
			place.frame = p->contexts[t->context].frame;
		}
		number = intern_place(&f, &place);
		traffic->facts[i].place = number;
		ok = number != PLUMB_NONE;
		if (ok && t->bytes > traffic->places.items[number].most) {
			struct plumb_traffic_place *had = &traffic->places.items[number];

			had->most = t->bytes;
			had->function = t->function;
			had->context = t->context;
			if (t->context != PLUMB_NONE) {
				had->user = user_of[t->context];
				had->frame = p->contexts[t->context].frame;
			}
		}
	}
	plumb_map_free(&f.map);
	return ok;
}

/* ---- kernels ---- */

/* The kernel that T is of: its frame, else PLUMB_NONE; *NAME is its name or PLUMB_NONE. */
static uint32_t
kernel_of(const struct plumb_profile *p, const struct plumb_transfer_row *t, uint32_t *name)
{
	for (uint32_t c = t->context; c != PLUMB_NONE; c = p->contexts[c].parent) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);

		if (frame->kind != PLUMB_FRAME_KERNEL)
			continue;
		*name = frame->name;
		return p->contexts[c].frame;
	}
	*name = t->function == PLUMB_NONE ? PLUMB_NONE : p->code_functions[t->function].name;
	return PLUMB_NONE;
}

static uint32_t
intern_kernel(struct finder *f, uint32_t name, uint32_t frame, uint32_t context)
{
	uint64_t hash = plumb_hash_mix(0, name);
	struct plumb_map_cursor at;
	struct plumb_traffic_kernel *added;

	for (uint32_t i = plumb_map_first(&f->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&f->map, &at))
		if (f->traffic->kernels.items[i].name == name)
			return i;
	added = plumb_vec_add(&f->traffic->kernels);
	if (!added || plumb_map_add(&f->map, hash, f->traffic->kernels.count - 1))
		return PLUMB_NONE;
	*added = (struct plumb_traffic_kernel){ .name = name,
		                                .frame = frame,
		                                .context = context,
		                                .launches = PLUMB_UNKNOWN,
		                                .gpu_ns = PLUMB_UNKNOWN };
	return f->traffic->kernels.count - 1;
}

/* Adds the times of launches, which are of all contexts with the kernel's name. */
static void
add_times(struct finder *f)
{
	const struct plumb_profile *p = f->profile;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		const struct plumb_frame *frame;
		struct plumb_map_cursor at;

		if (v->metric != PLUMB_METRIC_GPU_TIME)
			continue;
		frame = plumb_context_frame(p, v->context);
		if (frame->kind != PLUMB_FRAME_KERNEL)
			continue;
		for (uint32_t k = plumb_map_first(&f->map, plumb_hash_mix(0, frame->name), &at);
		     k != PLUMB_MAP_NONE; k = plumb_map_next(&f->map, &at)) {
			struct plumb_traffic_kernel *kernel = &f->traffic->kernels.items[k];

			if (kernel->name != frame->name)
				continue;
			if (kernel->gpu_ns == PLUMB_UNKNOWN)
				kernel->gpu_ns = kernel->launches = 0;
			if (v->sum > 0 &&
			    __builtin_add_overflow(kernel->gpu_ns, v->sum, &kernel->gpu_ns))
				kernel->gpu_ns = INT64_MAX;
			if (v->count <= INT64_MAX &&
			    __builtin_add_overflow(kernel->launches, (int64_t)v->count,
			                           &kernel->launches))
				kernel->launches = INT64_MAX;
		}
	}
}

bool
plumb_traffic_find_kernels(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;
	struct finder f = { .traffic = traffic, .profile = p };
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->transfers_count; i++) {
		const struct plumb_transfer_row *t = &p->transfers[i];
		uint32_t name, frame;

		traffic->facts[i].kernel = PLUMB_NONE;
		if (!plumb_access_is_code(t->kind) || traffic->facts[i].local)
			continue;
		frame = kernel_of(p, t, &name);
		if (name == PLUMB_NONE)
			continue;
		traffic->facts[i].kernel = intern_kernel(&f, name, frame, t->context);
		ok = traffic->facts[i].kernel != PLUMB_NONE;
	}
	if (ok)
		add_times(&f);
	plumb_map_free(&f.map);
	return ok;
}
