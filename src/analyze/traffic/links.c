/* SPDX-License-Identifier: Apache-2.0 */
/* What lies between parties, and the times of copies over it. */
#include "analyze/traffic/traffic.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/study.h"
#include "base/search.h"
#include "model/metric.h"

#define MIXED (UINT32_MAX - 1) /* several links, which are not alike */

/* ---- links ---- */

static uint32_t
device_of(const struct plumb_profile *p, uint32_t uuid)
{
	for (uint32_t i = 0; uuid != PLUMB_NONE && i < p->devices_count; i++)
		if (p->devices[i].uuid == uuid)
			return i;
	return PLUMB_NONE;
}

static int
by_ends(const void *x, const void *y)
{
	const struct plumb_traffic_link *a = x, *b = y;

	if (a->one != b->one)
		return a->one < b->one ? -1 : 1;
	return a->other < b->other ? -1 : a->other > b->other;
}

static bool
is_alike(const struct plumb_device_link *a, const struct plumb_device_link *b)
{
	return a->kind == b->kind && a->path == b->path && a->links == b->links &&
	       a->generation == b->generation && a->bytes_per_second == b->bytes_per_second &&
	       a->peer_access == b->peer_access;
}

static bool
list_links(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;

	for (uint32_t i = 0; i < p->device_links_count; i++) {
		const struct plumb_device_link *row = &p->device_links[i];
		uint32_t one = device_of(p, row->uuid), other = device_of(p, row->peer);
		struct plumb_traffic_link *link;

		if (row->peer == PLUMB_NONE)
			other = traffic->host;
		if (one == PLUMB_NONE || other == PLUMB_NONE || one == other)
			continue;
		link = plumb_vec_add(&traffic->links);
		if (!link)
			return false;
		*link = (struct plumb_traffic_link){ .row = i,
			                             .one = one < other ? one : other,
			                             .other = one < other ? other : one };
	}
	if (traffic->links.count)
		qsort(traffic->links.items, traffic->links.count, sizeof *traffic->links.items,
		      by_ends);
	for (uint32_t i = 0; i < traffic->links.count; i++) {
		struct plumb_traffic_link *link = &traffic->links.items[i];

		while (link->alike < i &&
		       !is_alike(&p->device_links[traffic->links.items[link->alike].row],
		                 &p->device_links[link->row]))
			link->alike++;
	}
	return true;
}

uint32_t
plumb_traffic_link_between(const struct plumb_traffic *traffic, uint32_t a, uint32_t b)
{
	const struct plumb_traffic_link wanted = { .one = a < b ? a : b, .other = a < b ? b : a };
	uint32_t low = plumb_search(i, traffic->links.count,
	                            by_ends(&traffic->links.items[i], &wanted) < 0);

	return low < traffic->links.count && !by_ends(&traffic->links.items[low], &wanted)
	               ? low
	               : PLUMB_NONE;
}

/* ---- times of copies ---- */

/* The ends of the copies that VALUE is of. False: they are not known, or none. */
static bool
ends_of(const struct plumb_traffic *traffic, const struct plumb_value *value, uint32_t *from,
        uint32_t *to)
{
	const struct plumb_profile *p = traffic->profile;
	struct plumb_transfer name = plumb_context_frame(p, value->context)->transfer;
	uint32_t device =
		value->track < p->tracks_count ? p->tracks[value->track].device : PLUMB_NONE;

	*from = value->ends.from                          ? value->ends.from - 1
	        : plumb_traffic_is_host_memory(name.from) ? traffic->host
	                                                  : device;
	*to = value->ends.to                          ? value->ends.to - 1
	      : plumb_traffic_is_host_memory(name.to) ? traffic->host
	                                              : device;
	return *from != PLUMB_NONE && *to != PLUMB_NONE && *from != *to;
}

static void
add_copies(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;

	for (uint32_t i = 0; i < p->values_count && traffic->links.count; i++) {
		const struct plumb_value *bytes = &p->values[i], *time;
		uint32_t from, to, link;

		if (bytes->metric != PLUMB_METRIC_GPU_COPY_BYTES || bytes->sum <= 0 ||
		    !ends_of(traffic, bytes, &from, &to))
			continue;
		link = plumb_traffic_link_between(traffic, from, to);
		time = plumb_traffic_copy_time(p, bytes);
		if (link == PLUMB_NONE || !time)
			continue;
		struct plumb_traffic_link *of = &traffic->links.items[link];
		int back = from != of->one;

		of->copied[back] = plumb_add(of->copied[back], bytes->sum);
		of->copy_ns[back] = plumb_add(of->copy_ns[back], time->sum);
	}
}

/* ---- groups of collectives ---- */

static int
by_member(const void *x, const void *y)
{
	const struct plumb_traffic_member *a = x, *b = y;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

/* The members of groups, of which the library told. */
static bool
list_members(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->collectives_count; i++) {
		const struct plumb_collective *row = &p->collectives[i];
		struct plumb_traffic_member *member;

		if (row->operation == PLUMB_NONE || row->group == PLUMB_NONE || row->rank < 0 ||
		    row->track >= p->tracks_count || p->tracks[row->track].device == PLUMB_NONE)
			continue;
		member = plumb_vec_add(&traffic->members);
		if (!member)
			return false;
		*member = (struct plumb_traffic_member){ row->group, p->tracks[row->track].device,
			                                 row->rank, row->size };
	}
	if (!traffic->members.count)
		return true;
	qsort(traffic->members.items, traffic->members.count, sizeof *traffic->members.items,
	      by_member);
	for (uint32_t i = 0; i < traffic->members.count; i++)
		if (!kept ||
		    by_member(&traffic->members.items[kept - 1], &traffic->members.items[i]))
			traffic->members.items[kept++] = traffic->members.items[i];
	traffic->members.count = kept;
	return true;
}

const struct plumb_traffic_member *
plumb_traffic_members(const struct plumb_traffic *traffic, uint32_t group, uint32_t *count)
{
	const struct plumb_traffic_member *all = traffic->members.items;
	uint32_t first = plumb_search(i, traffic->members.count, all[i].group < group);

	*count = 0;
	while (first + *count < traffic->members.count && all[first + *count].group == group) {
		if (all[first + *count].rank != *count) /* one is not known, or on two devices */
			return NULL;
		++*count;
	}
	return *count && *count == (uint64_t)all[first].size ? &all[first] : NULL;
}

uint32_t
plumb_traffic_link_of_group(const struct plumb_traffic *traffic, uint32_t group)
{
	uint32_t count, found = PLUMB_NONE;
	const struct plumb_traffic_member *members =
		group == PLUMB_NONE || !traffic->links.count
			? NULL
			: plumb_traffic_members(traffic, group, &count);

	for (uint32_t i = 0; members && i < count; i++)
		for (uint32_t k = 0; k < i; k++) {
			uint32_t link = plumb_traffic_link_between(traffic, members[i].device,
			                                           members[k].device);

			link = link == PLUMB_NONE ? PLUMB_NONE : traffic->links.items[link].alike;
			if (link == PLUMB_NONE || (found != PLUMB_NONE && found != link))
				return PLUMB_NONE;
			found = link;
		}
	return found;
}

/* By context: the link of the groups whose operations were called there. */
static bool
find_group_links(struct plumb_traffic *traffic)
{
	const struct plumb_profile *p = traffic->profile;
	uint32_t group = PLUMB_NONE, link = PLUMB_NONE;

	if (!traffic->links.count || !traffic->members.count)
		return true;
	traffic->link_of_context = malloc(p->contexts_count * sizeof *traffic->link_of_context);
	if (!traffic->link_of_context)
		return false;
	for (uint32_t i = 0; i < p->contexts_count; i++)
		traffic->link_of_context[i] = PLUMB_NONE;
	for (uint32_t i = 0; i < p->collectives_count; i++) {
		const struct plumb_collective *row = &p->collectives[i];
		uint32_t *of;

		if (row->operation == PLUMB_NONE || row->context == PLUMB_NONE)
			continue;
		if (row->group != group) {
			group = row->group;
			link = plumb_traffic_link_of_group(traffic, group);
		}
		of = &traffic->link_of_context[row->context];
		*of = link == PLUMB_NONE || (*of != PLUMB_NONE && *of != link) ? MIXED : link;
	}
	return true;
}

uint32_t
plumb_traffic_link_of(const struct plumb_traffic *traffic, uint32_t transfer)
{
	const struct plumb_transfer_row *t = &traffic->profile->transfers[transfer];
	const struct plumb_traffic_fact *fact = &traffic->facts[transfer];
	uint32_t link = PLUMB_NONE;

	if (fact->to == traffic->group && traffic->link_of_context && t->context != PLUMB_NONE)
		link = traffic->link_of_context[t->context];
	else if (fact->from != fact->to)
		link = plumb_traffic_link_between(traffic, fact->from, fact->to);
	return link < traffic->links.count ? traffic->links.items[link].alike : PLUMB_NONE;
}

bool
plumb_traffic_find_links(struct plumb_traffic *traffic)
{
	if (!list_links(traffic) || !list_members(traffic) || !find_group_links(traffic))
		return false;
	add_copies(traffic);
	return true;
}

/* ---- what is said of them ---- */

const struct plumb_device_link *
plumb_traffic_link_row(const struct plumb_traffic *traffic, uint32_t link)
{
	return link < traffic->links.count
	               ? &traffic->profile->device_links[traffic->links.items[link].row]
	               : NULL;
}

double
plumb_traffic_link_bandwidth(const struct plumb_traffic *traffic, uint32_t link)
{
	const struct plumb_device_link *row = plumb_traffic_link_row(traffic, link);

	return row && row->bytes_per_second > 0 ? (double)row->bytes_per_second : NAN;
}

double
plumb_traffic_link_speed(const struct plumb_traffic_link *link, int back)
{
	return link->copy_ns[back] > 0
	               ? (double)link->copied[back] / (double)link->copy_ns[back] * 1e9
	               : NAN;
}

double
plumb_traffic_alike_speed(const struct plumb_traffic *traffic, uint32_t link)
{
	double bytes = 0, ns = 0;

	for (uint32_t i = 0; link < traffic->links.count && i < traffic->links.count; i++) {
		const struct plumb_traffic_link *of = &traffic->links.items[i];

		if (of->alike != traffic->links.items[link].alike)
			continue;
		bytes += (double)of->copied[0] + (double)of->copied[1];
		ns += (double)of->copy_ns[0] + (double)of->copy_ns[1];
	}
	return ns > 0 ? bytes / ns * 1e9 : NAN;
}

/* "PCIe 5 x16 through the host bridge, without peer access: by way of the host" */
static void
describe_pcie(const struct plumb_profile *p, const struct plumb_device_link *row, char *text,
              size_t size)
{
	const char *path = plumb_text(p, row->path);
	bool board = path && !strcmp(path, plumb_link_path_names[PLUMB_LINK_PATH_BOARD]);
	char generation[24] = "", lanes[24] = "";

	if (row->generation >= 0)
		snprintf(generation, sizeof generation, " %" PRId64, row->generation);
	if (row->links >= 0)
		snprintf(lanes, sizeof lanes, " x%" PRId64, row->links);
	snprintf(text, size, "PCIe%s%s%s%s%s", generation, lanes,
	         !path   ? ""
	         : board ? " on "
	                 : " through ",
	         path ? path : "",
	         row->peer_access == 0 ? ", without peer access: by way of the host" : "");
}

const char *
plumb_traffic_link_words(const struct plumb_traffic *traffic, uint32_t link,
                         char text[PLUMB_LINK_WORDS])
{
	const struct plumb_device_link *row = plumb_traffic_link_row(traffic, link);
	const char *many = row && row->links == 1 ? "" : "s";

	if (!row)
		return NULL;
	switch (row->kind) {
	case PLUMB_LINK_NVSWITCH:
	case PLUMB_LINK_NVLINK:
		if (row->links < 0)
			snprintf(text, PLUMB_LINK_WORDS, "NVLink%s",
			         row->kind == PLUMB_LINK_NVSWITCH ? " through NVSwitch" : "");
		else
			snprintf(text, PLUMB_LINK_WORDS, "%" PRId64 " NVLink%s%s", row->links, many,
			         row->kind == PLUMB_LINK_NVSWITCH ? " through NVSwitch" : "");
		break;
	case PLUMB_LINK_PCIE:
		describe_pcie(traffic->profile, row, text, PLUMB_LINK_WORDS);
		break;
	default:
		snprintf(text, PLUMB_LINK_WORDS, "C2C");
	}
	return text;
}

const char *
plumb_traffic_links_missing(const struct plumb_traffic *traffic)
{
	const char *why;

	if (traffic->links.count)
		return NULL;
	why = plumb_profile_environment(traffic->profile, "traffic.links");
	return why ? why : "the recording does not say";
}
