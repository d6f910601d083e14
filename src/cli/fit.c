/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a name that does not fit, the places count where it leaves the way of another name: behind
 * the part that both begin with. The longest such part is that of its nearest relative, so what
 * follows it is shown in any case. The other places, those that tell it from most names first, and
 * its beginning are shown as far as there is room.
 */
#include "cli/fit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/columns.h"

enum {
	RELATIVES = 256, /* that a name is compared with, on each side in the order of names */
	PLACES = 24,     /* of a name */
	SHORT_GAP = 12,  /* characters */
	BEGINNING = 9,   /* columns of it that are worth more than further places */
};

/* A character of a name. */
struct glyph {
	const char *at;
	unsigned char bytes, columns;
	bool kept;
};

struct text {
	struct plumb_fit_name *name;
	const char *source; /* what is shortened */
	struct glyph *glyphs;
	size_t count, room; /* of glyphs */
};

/* Where a name leaves others, and how many of them. */
struct place {
	size_t at, others;
};

/* ---- characters ---- */

static bool
split(struct text *text)
{
	const char *at = text->source;
	size_t bytes = strlen(at);

	text->glyphs = calloc(bytes + 1, sizeof *text->glyphs);
	while (text->glyphs && bytes) {
		int columns;
		size_t length = plumb_columns_next(at, bytes, &columns);

		text->glyphs[text->count++] =
			(struct glyph){ at, (unsigned char)length, (unsigned char)columns, false };
		at += length;
		bytes -= length;
	}
	return text->glyphs != NULL;
}

static bool
same_glyph(const struct glyph *a, const struct glyph *b)
{
	return a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes);
}

static size_t
shared(const struct text *a, const struct text *b)
{
	size_t at = 0;

	while (at < a->count && at < b->count && same_glyph(&a->glyphs[at], &b->glyphs[at]))
		at++;
	return at;
}

static bool
is_word(const struct glyph *glyph)
{
	return isalnum((unsigned char)*glyph->at) || *glyph->at & 0x80;
}

/* ---- places ---- */

static void
add_place(struct place *places, int *count, size_t at)
{
	for (int i = 0; i < *count; i++)
		if (places[i].at == at) {
			places[i].others++;
			return;
		}
	if (*count < PLACES)
		places[(*count)++] = (struct place){ at, 1 };
}

/* Where the name at WHICH of the sorted TEXTS leaves the others. Neighbours in this order share
 * most, so the part shared with those further on is the least on the way. */
static int
find_places(struct text *const *texts, size_t count, size_t which, struct place *places)
{
	int found = 0;

	for (int side = -1; side <= 1; side += 2) {
		size_t least = SIZE_MAX, at = which;

		for (int i = 0; i < RELATIVES && (side > 0 ? at + 1 < count : at > 0); i++) {
			at += (size_t)side;
			size_t with = shared(texts[which], texts[at]);
			bool same = with == texts[which]->count && with == texts[at]->count;
			if (same)
				continue;
			least = with < least ? with : least;
			add_place(places, &found, least);
		}
	}
	return found;
}

/* ---- what is kept ---- */

/* The columns that the kept characters take, with an ellipsis for each gap. */
static int
kept_columns(const struct text *text)
{
	int columns = 0;
	bool gap = false;

	for (size_t i = 0; i < text->count; i++) {
		if (text->glyphs[i].kept)
			columns += text->glyphs[i].columns;
		else
			columns += !gap;
		gap = !text->glyphs[i].kept;
	}
	return columns;
}

/* Keeps the characters FROM … TO as far as WIDTH allows, from the first on. */
static void
keep(struct text *text, size_t from, size_t to, int width)
{
	for (size_t i = from; i < to && i < text->count; i++) {
		if (text->glyphs[i].kept)
			continue;
		text->glyphs[i].kept = true;
		/* The first one may cost an ellipsis, which the next one gets back. */
		if (kept_columns(text) > width) {
			text->glyphs[i].kept = false;
			return;
		}
	}
}

/* The word, or the number in a word, that the place AT lies in: MT16x32x512 differs from
 * MT16x32x256 in a number, and only the whole word tells which. */
static void
find_word(const struct text *text, size_t at, size_t *from, size_t *to)
{
	*from = *to = at < text->count ? at : text->count;
	while (*from && is_word(&text->glyphs[*from - 1]))
		--*from;
	while (*to < text->count && is_word(&text->glyphs[*to]))
		++*to;
	if (*to == *from && *to < text->count)
		++*to;
}

/* Keeps what the place AT tells: the character there, its word, and then what follows. */
static void
keep_place(struct text *text, size_t at, int width)
{
	size_t from, to;

	if (at >= text->count) { /* another name goes on where this one ends */
		for (size_t i = text->count; i && kept_columns(text) <= width; i--) {
			bool was = text->glyphs[i - 1].kept;
			text->glyphs[i - 1].kept = true;
			if (kept_columns(text) > width) {
				text->glyphs[i - 1].kept = was;
				return;
			}
			if (!is_word(&text->glyphs[i - 1]))
				return;
		}
		return;
	}
	find_word(text, at, &from, &to);
	keep(text, at, at + 1, width);
	/* The beginning of the word, from its end backwards, as far as there is room. */
	for (size_t i = at; i > from; i--) {
		text->glyphs[i - 1].kept = true;
		if (kept_columns(text) > width) {
			text->glyphs[i - 1].kept = false;
			break;
		}
	}
	keep(text, at + 1, to, width);
}

static int
by_others(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->others != b->others)
		return a->others > b->others ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* Keeps short gaps too, from the left, if all of one fits: an ellipsis for two characters tells
 * nothing. */
static void
close_gaps(struct text *text, int width)
{
	for (size_t from = 0, to; from < text->count; from = to) {
		to = from + 1;
		if (text->glyphs[from].kept)
			continue;
		while (to < text->count && !text->glyphs[to].kept)
			to++;
		if (to - from > SHORT_GAP || to == text->count)
			continue;
		for (size_t i = from; i < to; i++)
			text->glyphs[i].kept = true;
		if (kept_columns(text) <= width)
			continue;
		for (size_t i = from; i < to; i++)
			text->glyphs[i].kept = false;
	}
}

/* Fills WIDTH: goes on behind what is kept, first behind the last place, because what is before a
 * place is shared. */
static void
fill(struct text *text, int width)
{
	for (size_t i = text->count; i-- > 1;)
		if (!text->glyphs[i].kept && text->glyphs[i - 1].kept)
			keep(text, i, text->count, width);
}

static void
choose(struct text *text, struct place *places, int count, int width)
{
	size_t nearest = 0;

	for (int i = 0; i < count; i++)
		nearest = places[i].at > nearest ? places[i].at : nearest;
	if (count)
		keep_place(text, nearest, width - 2);
	keep(text, 0, BEGINNING, width - 1);
	qsort(places, (size_t)count, sizeof *places, by_others);
	for (int i = 0; i < count; i++)
		keep_place(text, places[i].at, width - 1);
	if (!text->name->compact) /* modules, files: the end says what it is */
		keep_place(text, text->count, width);
	close_gaps(text, width);
	fill(text, width);
}

/* The kept characters, and "…" for those between them. */
static char *
write_kept(const struct text *text)
{
	char *result = malloc(strlen(text->source) * 4 + 8), *at = result;
	bool gap = false;

	for (size_t i = 0; result && i < text->count; i++) {
		const struct glyph *glyph = &text->glyphs[i];
		if (glyph->kept) {
			memcpy(at, glyph->at, glyph->bytes);
			at += glyph->bytes;
		} else if (!gap) {
			memcpy(at, PLUMB_ELLIPSIS, strlen(PLUMB_ELLIPSIS));
			at += strlen(PLUMB_ELLIPSIS);
		}
		gap = !glyph->kept;
	}
	if (result)
		*at = '\0';
	return result;
}

/* ---- all names ---- */

static int
by_source(const void *left, const void *right)
{
	const struct text *a = *(struct text *const *)left, *b = *(struct text *const *)right;

	return strcmp(a->source, b->source);
}

static int
by_shown(const void *left, const void *right)
{
	const struct text *a = *(struct text *const *)left, *b = *(struct text *const *)right;
	int order = strcmp(a->name->shown, b->name->shown);

	return order ? order : strcmp(a->name->name, b->name->name);
}

/* Compact names that are the same though the names differ give way to the names. SORTED by them. */
static void
undo_same(struct text **sorted, size_t count)
{
	for (size_t from = 0, to; from < count; from = to) {
		bool differ = false;

		for (to = from + 1; to < count && !strcmp(sorted[from]->source, sorted[to]->source);
		     to++)
			differ = differ ||
			         strcmp(sorted[from]->name->name, sorted[to]->name->name) != 0;
		/* Their compact form is the source of all of them: look before changing any. */
		for (size_t i = from; differ && i < to; i++)
			sorted[i]->room = 1;
	}
	for (size_t i = 0; i < count; i++)
		if (sorted[i]->room)
			sorted[i]->source = sorted[i]->name->name;
}

static bool
is_taken(struct text *const *texts, size_t count, const char *shown)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(texts[i]->name->shown, shown))
			return true;
	return false;
}

/* SHOWN, cut so that it ends with "#NUMBER" within WIDTH columns. */
static char *
with_number(const char *shown, unsigned long number, int width)
{
	char suffix[24], *result = NULL;
	int room = width - snprintf(suffix, sizeof suffix, "#%lu", number), used = 0;
	const char *at = shown;

	while (*at) {
		int columns;
		size_t length = plumb_columns_next(at, strlen(at), &columns);

		if (used + columns > room)
			break;
		used += columns;
		at += length;
	}
	return asprintf(&result, "%.*s%s", (int)(at - shown), shown, suffix) < 0 ? NULL : result;
}

/* Different names that came out alike get numbers. */
static bool
number_same(struct text **texts, size_t count, int width)
{
	qsort(texts, count, sizeof(struct text *), by_shown);
	for (size_t from = 0, to; from < count; from = to) {
		unsigned long number = 1;
		const char *previous = texts[from]->name->name, *given = NULL;
		char *first = strdup(texts[from]->name->shown);

		if (!first)
			return false;
		for (to = from + 1; to < count && !strcmp(first, texts[to]->name->shown); to++)
			continue;
		for (size_t i = from + 1; i < to; i++) {
			const char *name = texts[i]->name->name;
			char *shown;

			if (!strcmp(name, previous) && !given)
				continue; /* the same name as the first */
			if (!strcmp(name, previous)) {
				shown = strdup(given);
			} else {
				do {
					shown = with_number(first, ++number, width);
					if (!shown || !is_taken(texts, count, shown))
						break;
					free(shown);
				} while (true);
			}
			if (!shown) {
				free(first);
				return false;
			}
			free(texts[i]->name->shown);
			texts[i]->name->shown = shown;
			given = shown;
			previous = name;
		}
		free(first);
	}
	return true;
}

/* Shows the sorted TEXTS, as they are if they fit. */
static bool
shorten(struct text **sorted, size_t count, int width)
{
	for (size_t i = 0; i < count; i++) {
		struct text *text = sorted[i];
		struct place places[PLACES];

		if (plumb_columns(text->source) <= width) {
			text->name->shown = strdup(text->source);
		} else {
			int found = find_places(sorted, count, i, places);
			choose(text, places, found, width);
			text->name->shown = write_kept(text);
		}
		if (!text->name->shown)
			return false;
	}
	return true;
}

bool
plumb_fit_names(struct plumb_fit_name *names, size_t count, int width)
{
	struct text *texts = calloc(count + 1, sizeof *texts);
	struct text **sorted = calloc(count + 1, sizeof *sorted);
	bool ok = texts && sorted;

	if (width < PLUMB_FIT_LEAST)
		width = PLUMB_FIT_LEAST;
	for (size_t i = 0; ok && i < count; i++) {
		names[i].shown = NULL;
		texts[i].name = &names[i];
		texts[i].source = names[i].compact && plumb_columns(names[i].name) > width
		                          ? names[i].compact
		                          : names[i].name;
		sorted[i] = &texts[i];
	}
	if (ok) {
		qsort(sorted, count, sizeof(struct text *), by_source);
		undo_same(sorted, count);
		qsort(sorted, count, sizeof(struct text *), by_source);
	}
	for (size_t i = 0; ok && i < count; i++)
		ok = split(&texts[i]);
	ok = ok && shorten(sorted, count, width) && number_same(sorted, count, width);
	for (size_t i = 0; texts && i < count; i++)
		free(texts[i].glyphs);
	free(texts);
	free(sorted);
	return ok;
}
