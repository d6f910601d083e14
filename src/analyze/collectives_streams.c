/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds communicators that have no name. A communicator's operations run on one stream of each
 * rank, and each of them ends on all ranks together. Operations of two communicators end together
 * only now and then. So plumb links streams whose kernels of one name end together in 7 of 8 cases.
 * Then it joins them, the closest link first, as long as each is linked with each, no rank is there
 * twice, and the next link is about as close as those before.
 */
#include "analyze/collectives.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/search.h"

#define CHANNELS_MOST 4096
#define LOOK_AHEAD 512 /* kernels that end together with one, at most */
#define CLOSE_NS 5000
#define CLOSE_TIMES 4

struct channel { /* a stream's kernels of one name */
	uint32_t track, name, rank;
	uint32_t first, count; /* in ends */
	uint32_t next;         /* of the same communicator, in a ring */
	uint32_t of;           /* one of them, for all of them the same */
	double apart;          /* how far ends are apart there */
};

struct link {
	uint32_t a, b; /* channels, a < b */
	uint32_t together;
	int64_t apart; /* all added up */
};

struct streams {
	struct plumb_collectives *found;
	PLUMB_VEC(struct channel) channels;
	PLUMB_VEC(struct link) links;
	struct plumb_map map; /* of links */
	uint32_t *channel_of; /* by member, or PLUMB_NONE */
	int64_t *ends;        /* by channel, ascending */
};

/* ---- channels ---- */

/* For sorting. */
struct keyed {
	uint32_t track, name, member, rank;
	int64_t end;
};

static int
by_channel(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

/* False: memory is out. */
static bool
find_channels(struct streams *s)
{
	const struct plumb_collective_member *m = s->found->members.items;
	uint32_t count = s->found->members.count, n = 0;
	struct keyed *keyed = malloc(((size_t)count + 1) * sizeof *keyed);

	for (uint32_t i = 0; keyed && i < count; i++) {
		s->channel_of[i] = PLUMB_NONE;
		if (m[i].group == PLUMB_NONE && m[i].set == PLUMB_NONE)
			keyed[n++] =
				(struct keyed){ m[i].track, m[i].name, i, m[i].rank, m[i].end_ns };
	}
	if (keyed && n)
		qsort(keyed, n, sizeof *keyed, by_channel);
	for (uint32_t i = 0; keyed && i < n; i++) {
		if (!i || keyed[i].track != keyed[i - 1].track ||
		    keyed[i].name != keyed[i - 1].name) {
			struct channel *added = plumb_vec_add(&s->channels);

			if (!added) {
				free(keyed);
				return false;
			}
			*added = (struct channel){ .track = keyed[i].track,
				                   .name = keyed[i].name,
				                   .rank = keyed[i].rank,
				                   .first = i,
				                   .next = s->channels.count - 1,
				                   .of = s->channels.count - 1 };
		}
		s->channels.items[s->channels.count - 1].count++;
		s->channel_of[keyed[i].member] = s->channels.count - 1;
		s->ends[i] = keyed[i].end;
	}
	free(keyed);
	return keyed != NULL;
}

/* ---- links ---- */

static uint64_t
hash_of(uint32_t a, uint32_t b)
{
	return plumb_hash_mix(plumb_hash_mix(a, 0), b);
}

static struct link *
find_link(const struct streams *s, uint32_t a, uint32_t b)
{
	struct plumb_map_cursor at;

	for (uint32_t i = plumb_map_first(&s->map, hash_of(a, b), &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&s->map, &at))
		if (s->links.items[i].a == a && s->links.items[i].b == b)
			return &s->links.items[i];
	return NULL;
}

static bool
count_pair(struct streams *s, uint32_t x, uint32_t y, int64_t apart)
{
	uint32_t a = x < y ? x : y, b = x < y ? y : x;
	struct link *link = find_link(s, a, b);

	if (!link) {
		link = plumb_vec_add(&s->links);
		if (!link || plumb_map_add(&s->map, hash_of(a, b), s->links.count - 1) < 0)
			return false;
		*link = (struct link){ a, b, 0, 0 };
	}
	link->together++;
	if (__builtin_add_overflow(link->apart, apart, &link->apart))
		link->apart = INT64_MAX;
	return true;
}

/* Places of members by name, then end. */
struct ended {
	uint32_t name, member;
	int64_t end;
};

static int
by_name_and_end(const void *x, const void *y)
{
	const struct ended *a = x, *b = y;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

/* Counts the pairs of ENDED[I] with those that end after it. */
static bool
count_pairs(struct streams *s, const struct ended *ended, uint32_t i, uint32_t count)
{
	const struct plumb_collective_member *m = s->found->members.items,
					     *own = &m[ended[i].member];
	int64_t length = own->end_ns - own->start_ns,
		most = plumb_collectives_apart(s->found, length);

	for (uint32_t k = i + 1;
	     k < count && k - i <= LOOK_AHEAD && ended[k].name == ended[i].name &&
	     ended[k].end - ended[i].end <= most;
	     k++) {
		const struct plumb_collective_member *other = &m[ended[k].member];
		int64_t apart = other->end_ns - own->end_ns;
		int64_t theirs = other->end_ns - other->start_ns;

		if (other->rank == own->rank || other->start_ns >= own->end_ns ||
		    apart > plumb_collectives_apart(s->found, theirs < length ? theirs : length))
			continue;
		if (!count_pair(s, s->channel_of[ended[i].member], s->channel_of[ended[k].member],
		                apart))
			return false;
	}
	return true;
}

static bool
find_links(struct streams *s)
{
	const struct plumb_collective_member *m = s->found->members.items;
	uint32_t count = s->found->members.count, n = 0;
	struct ended *ended = malloc(((size_t)count + 1) * sizeof *ended);
	bool done = ended;

	for (uint32_t i = 0; done && i < count; i++)
		if (s->channel_of[i] != PLUMB_NONE)
			ended[n++] = (struct ended){ m[i].name, i, m[i].end_ns };
	if (done && n)
		qsort(ended, n, sizeof *ended, by_name_and_end);
	for (uint32_t i = 0; done && i < n; i++)
		done = count_pairs(s, ended, i, n);
	free(ended);
	return done;
}

/* How many of the channel's kernels end from FROM to TO. */
static uint32_t
count_ends(const struct streams *s, const struct channel *channel, int64_t from, int64_t to)
{
	const int64_t *ends = s->ends + channel->first;
	uint32_t bounds[2];

	for (int k = 0; k < 2; k++) {
		uint32_t low = plumb_search(i, channel->count, k ? ends[i] <= to : ends[i] < from);
		bounds[k] = low;
	}
	return bounds[1] > bounds[0] ? bounds[1] - bounds[0] : 0;
}

/* Do they end together while both are recorded? */
static bool
is_firm(const struct streams *s, const struct link *link)
{
	const struct channel *a = &s->channels.items[link->a], *b = &s->channels.items[link->b];
	const int64_t *x = s->ends + a->first, *y = s->ends + b->first;
	int64_t from = (x[0] > y[0] ? x[0] : y[0]);
	int64_t to = x[a->count - 1] < y[b->count - 1] ? x[a->count - 1] : y[b->count - 1];
	int64_t slack = plumb_collectives_apart(s->found, 0);
	uint32_t n = count_ends(s, a, from - slack, to + slack);
	uint32_t others = count_ends(s, b, from - slack, to + slack);

	return link->together * UINT64_C(8) >= (n > others ? n : others) * UINT64_C(7);
}

/* ---- communicators ---- */

static double
apart_of(const struct link *link)
{
	return (double)link->apart / link->together;
}

static int
by_apart(const void *x, const void *y)
{
	const struct link *a = x, *b = y;
	double first = apart_of(a), second = apart_of(b);

	if (first != second)
		return first < second ? -1 : 1;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return (a->b > b->b) - (a->b < b->b);
}

/* Each channel of A's communicator with each of B's: linked, and of different ranks. */
static bool
channels_fit(const struct streams *s, uint32_t a, uint32_t b)
{
	const struct channel *channels = s->channels.items;
	uint32_t x = a;

	do {
		uint32_t y = b;

		do {
			const struct link *link = find_link(s, x < y ? x : y, x < y ? y : x);

			if (channels[x].rank == channels[y].rank || !link || !is_firm(s, link))
				return false;
			y = channels[y].next;
		} while (y != b);
		x = channels[x].next;
	} while (x != a);
	return true;
}

static void
put_together(struct streams *s, uint32_t a, uint32_t b, double apart)
{
	struct channel *channels = s->channels.items;
	uint32_t next = channels[a].next, at = a;

	channels[a].next = channels[b].next;
	channels[b].next = next;
	do {
		channels[at].apart = apart;
		channels[at].of = a;
		at = channels[at].next;
	} while (at != a);
}

static bool
find_communicators(struct streams *s)
{
	const struct channel *channels = s->channels.items;
	uint32_t count = s->links.count;
	struct link *links = malloc(((size_t)count + 1) * sizeof *links);

	if (!links)
		return false;
	if (count) { /* a copy: the map knows the places of the others */
		memcpy(links, s->links.items, count * sizeof *links);
		qsort(links, count, sizeof *links, by_apart);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t a = links[i].a, b = links[i].b;
		double apart = apart_of(&links[i]);
		double before = channels[a].apart > channels[b].apart ? channels[a].apart
		                                                      : channels[b].apart;
		bool single = channels[a].next == a && channels[b].next == b;

		if (channels[a].of != channels[b].of &&
		    (single || apart <= CLOSE_TIMES * before + CLOSE_NS) && channels_fit(s, a, b))
			put_together(s, a, b, apart > before ? apart : before);
	}
	free(links);
	return true;
}

/* Members have a channel of their communicator. */
static void
number_members(struct streams *s)
{
	struct plumb_collective_member *m = s->found->members.items;
	const struct channel *channels = s->channels.items;

	for (uint32_t i = 0; i < s->found->members.count; i++) {
		uint32_t own = s->channel_of[i];

		if (own != PLUMB_NONE && channels[own].next != own)
			m[i].among = channels[own].of;
	}
}

bool
plumb_collectives_streams(struct plumb_collectives *found)
{
	struct streams s = { .found = found };
	size_t room = (size_t)found->members.count + 1;
	bool done;

	for (uint32_t i = 0; i < found->members.count; i++)
		found->members.items[i].among = PLUMB_NONE;
	s.channel_of = malloc(room * sizeof *s.channel_of);
	s.ends = malloc(room * sizeof *s.ends);
	done = s.channel_of && s.ends && find_channels(&s);
	if (done && s.channels.count <= CHANNELS_MOST) {
		done = find_links(&s) && find_communicators(&s);
		if (done)
			number_members(&s);
	}
	plumb_vec_free(&s.channels);
	plumb_vec_free(&s.links);
	plumb_map_free(&s.map);
	free(s.channel_of);
	free(s.ends);
	return done;
}
