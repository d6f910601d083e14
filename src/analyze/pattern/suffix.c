/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suffix sorting by induction (SA-IS: Nong, Zhang, Chan 2009). A suffix is of type S when it is
 * less than the one that follows it, else L; an LMS suffix is an S after an L. Sorted LMS suffixes
 * induce the order of all others in two scans. The LMS suffixes themselves are sorted by naming the
 * pieces between them, and sorting the sequence of these names, at most half as long, in the same
 * way. It lies in the result's own room.
 *
 * A scan needs the type of the suffix before each one. It is known when a suffix is put down, from
 * two neighbouring symbols; so a suffix is stored inverted (~) when the scan at hand shall pass it
 * by, which spares a read in random order. An end of text is less than every symbol and takes no
 * place: the last suffix is of type L, and the first to be put down.
 */
#include "analyze/pattern/suffix.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/pattern/equal.h"

#define AHEAD 24 /* places that a scan asks for what it will need, for it comes in random order */

/* Brings in what stands where order[I + AHEAD], or its complement, says. */
static inline void
prefetch_ahead(const int32_t *of, const int32_t *order, int32_t i, int32_t count)
{
	if (i >= 0 && i + AHEAD < count) {
		int32_t place = order[i + AHEAD];

		__builtin_prefetch(&of[place < 0 ? ~place : place]);
	}
}

struct level {
	const int32_t *text;
	int32_t *sa;
	int32_t count, alphabet;
	int32_t *bucket; /* where the next suffix of each symbol goes */
	uint64_t *lms;   /* a bit for each suffix */
};

/* Counts symbols; bucket[c] becomes the first place of symbol c, or with ENDS the place after its
 * last. */
static void
fill_buckets(struct level *level, bool ends)
{
	int32_t *bucket = level->bucket, sum = 0;

	memset(bucket, 0, (size_t)level->alphabet * sizeof *bucket);
	for (int32_t i = 0; i < level->count; i++)
		bucket[level->text[i]]++;
	for (int32_t c = 0; c < level->alphabet; c++) {
		int32_t size = bucket[c];

		bucket[c] = ends ? sum + size : sum;
		sum += size;
	}
}

static bool
is_lms(const struct level *level, int32_t i)
{
	return level->lms[i >> 6] >> (i & 63) & 1;
}

/* Marks LMS suffixes; returns how many there are. */
static int32_t
mark_lms(struct level *level)
{
	const int32_t *text = level->text;
	bool after_is_s = false; /* the last suffix is of type L */
	int32_t found = 0;

	for (int32_t i = level->count - 2; i >= 0; i--) {
		bool is_s = text[i] < text[i + 1] || (text[i] == text[i + 1] && after_is_s);

		if (!is_s && after_is_s) {
			level->lms[(i + 1) >> 6] |= UINT64_C(1) << ((i + 1) & 63);
			found++;
		}
		after_is_s = is_s;
	}
	return found;
}

/* From LMS suffixes at the ends of their buckets, and 0 elsewhere, the order of all. */
static void
induce(struct level *level)
{
	const int32_t *text = level->text;
	int32_t *sa = level->sa, *bucket = level->bucket, n = level->count, j = n - 1;

	fill_buckets(level, false);
	sa[bucket[text[j]]++] = j > 0 && text[j - 1] < text[j] ? ~j : j;
	for (int32_t i = 0; i < n; i++) {
		prefetch_ahead(text, sa, i, n);
		j = sa[i];
		sa[i] = ~j;
		if (j <= 0)
			continue;
		j--;
		sa[bucket[text[j]]++] = j > 0 && text[j - 1] < text[j] ? ~j : j;
	}
	fill_buckets(level, true);
	for (int32_t i = n - 1; i >= 0; i--) {
		prefetch_ahead(text, sa, i - 2 * AHEAD, n);
		j = sa[i];
		if (j <= 0) {
			sa[i] = ~j;
			continue;
		}
		j--;
		sa[--bucket[text[j]]] = j == 0 || text[j - 1] > text[j] ? ~j : j;
	}
}

/* Puts the FOUND suffixes at the front of sa, which are in order, to the ends of their buckets. */
static void
spread_suffixes(struct level *level, int32_t found)
{
	int32_t *sa = level->sa;

	fill_buckets(level, true);
	memset(sa + found, 0, (size_t)(level->count - found) * sizeof *sa);
	for (int32_t i = found - 1; i >= 0; i--) {
		int32_t j = sa[i];

		sa[i] = 0;
		sa[--level->bucket[level->text[j]]] = j;
	}
}

/* The pieces from one LMS suffix to the next that are now in order at the front of sa get names,
 * equal ones the same; the names in the order of the text come to lie at the end of sa. Returns
 * their number. */
static int32_t
name_pieces(struct level *level, int32_t found)
{
	const int32_t *text = level->text;
	int32_t n = level->count, names = 0, last = -1, last_length = 0, next = n;
	int32_t *sa = level->sa, *by_place = sa + found; /* two LMS are never neighbours: i / 2 */

	memset(by_place, 0, (size_t)(n - found) * sizeof *sa);
	for (int32_t i = n - 1; i > 0; i--)
		if (is_lms(level, i)) {
			/* up to and with the next LMS symbol; the last one ends with the text, as
			 * no other does */
			by_place[i >> 1] = next == n ? n - i + 1 : next - i + 1;
			next = i;
		}
	for (int32_t i = 0; i < found; i++) {
		int32_t at = sa[i], length = by_place[at >> 1];
		bool same = last >= 0 && length == last_length && at + length <= n &&
		            last + length <= n &&
		            !memcmp(text + at, text + last, (size_t)length * sizeof *text);

		if (!same) {
			names++;
			last = at;
			last_length = length;
		}
		by_place[at >> 1] = names;
	}
	for (int32_t i = n - found - 1, to = n - 1; i >= 0; i--)
		if (by_place[i])
			sa[to--] = by_place[i] - 1;
	return names;
}

static int sort_suffixes(const int32_t *text, int32_t *sa, int32_t n, int32_t alphabet);

/* Orders the LMS suffixes by the names of their pieces; they come to lie at the front of sa. */
static int
order_lms(struct level *level, int32_t found, int32_t names)
{
	int32_t n = level->count, *sa = level->sa, *reduced = sa + n - found, to = n;
	int code = 0;

	if (names < found) {
		free(level->bucket); /* the inner level has its own */
		level->bucket = NULL;
		code = sort_suffixes(reduced, sa, found, names);
		level->bucket = malloc((size_t)level->alphabet * sizeof *level->bucket);
		if (code < 0 || !level->bucket)
			return PLUMB_ESYSTEM;
	} else {
		for (int32_t i = 0; i < found; i++)
			sa[reduced[i]] = i;
	}
	for (int32_t i = n - 1; i > 0; i--)
		if (is_lms(level, i))
			sa[--to] = i;
	for (int32_t i = 0; i < found; i++)
		sa[i] = reduced[sa[i]];
	return 0;
}

static int
sort_level(struct level *level)
{
	int32_t n = level->count, *sa = level->sa, found = mark_lms(level), kept = 0;

	memset(sa, 0, (size_t)n * sizeof *sa);
	if (found > 1) {
		fill_buckets(level, true);
		for (int32_t i = 1; i < n; i++)
			if (is_lms(level, i))
				sa[--level->bucket[level->text[i]]] = i;
		induce(level);
		for (int32_t i = 0; i < n; i++)
			if (is_lms(level, sa[i]))
				sa[kept++] = sa[i];
		int code = order_lms(level, found, name_pieces(level, found));
		if (code < 0)
			return code;
	} else {
		for (int32_t i = 1; i < n; i++)
			if (is_lms(level, i))
				sa[0] = i;
	}
	spread_suffixes(level, found);
	induce(level);
	return 0;
}

/* Recursion halves N each time. */
static int
sort_suffixes(const int32_t *text, int32_t *sa, int32_t n, int32_t alphabet)
{
	struct level level = { .text = text, .sa = sa, .count = n, .alphabet = alphabet };
	int code = PLUMB_ESYSTEM;

	level.bucket = malloc((size_t)alphabet * sizeof *level.bucket);
	level.lms = calloc((size_t)n / 64 + 1, sizeof *level.lms);
	if (level.bucket && level.lms)
		code = sort_level(&level);
	free(level.bucket);
	free(level.lms);
	return code;
}

int
plumb_suffix_array(const int32_t *text, int32_t count, int32_t alphabet, int32_t *suffixes)
{
	for (int32_t i = 0; i < count; i++)
		if (text[i] < 0 || text[i] >= alphabet)
			return PLUMB_EUSAGE;
	return count > 0 ? sort_suffixes(text, suffixes, count, alphabet) : 0;
}

/* Kärkkäinen, Manzini, Puglisi 2009: in the order of the text, the length in common with the suffix
 * sorted before shrinks by one at most, and is read and written in that order. */
void
plumb_suffix_common(const int32_t *text, const int32_t *suffixes, int32_t count, int32_t *common,
                    int32_t *before)
{
	int32_t length = 0;

	for (int32_t i = 0; i < count; i++) {
		prefetch_ahead(before, suffixes, i, count);
		before[suffixes[i]] = i ? suffixes[i - 1] : -1;
	}
	for (int32_t i = 0; i < count; i++) {
		int32_t other = before[i], most = other < 0 ? 0 : count - (i > other ? i : other);

		if (length < most)
			length += plumb_equal(text + i + length, text + other + length,
			                      most - length);
		before[i] = other < 0 ? 0 : length;
		length = before[i] > 0 ? before[i] - 1 : 0;
	}
	for (int32_t i = 0; i < count; i++) {
		prefetch_ahead(before, suffixes, i, count);
		common[i] = before[suffixes[i]];
	}
}

int32_t
plumb_suffix_stretches(const int32_t *suffixes, const int32_t *common, int32_t count,
                       int32_t length, int32_t *number)
{
	int32_t next = -1;

	for (int32_t i = 0; i < count; i++) {
		prefetch_ahead(number, suffixes, i, count);
		if (!i || common[i] < length)
			next++;
		number[suffixes[i]] = next;
	}
	return next + 1;
}
