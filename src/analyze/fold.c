/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/fold.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/sort.h"

#define LONGEST 1000

/* How many bytes of COMPONENT are before the next dot or the end; INDEX: they are all digits. */
static size_t
measure(const char *component, bool *index)
{
	size_t length = strcspn(component, ".");

	*index = length && strspn(component, "0123456789") == length;
	return length;
}

uint32_t
plumb_fold_pattern(const char *name, char *text, size_t size)
{
	uint32_t stars = 0;

	if (strlen(name) >= size)
		return 0;
	for (const char *at = name; *at;) {
		bool index;
		size_t length = measure(at, &index);

		stars += index;
		memcpy(text, index ? "*" : at, index ? 1 : length);
		text += index ? 1 : length;
		at += length;
		if (*at)
			*text++ = *at++;
	}
	*text = '\0';
	return stars;
}

/* ---- which are alike ---- */

struct entry {
	const char *pattern, *kind;
	uint32_t item;
};

static int
by_pattern(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = strcmp(a->pattern, b->pattern);

	if (!order)
		order = strcmp(a->kind, b->kind);
	return order ? order : a->item < b->item ? -1 : a->item > b->item;
}

static const char *
keep(struct plumb_folds *folds, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = plumb_pool_take(folds->texts, bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

/* The entries of items with an index, in order. Negative: no memory. */
static int64_t
list_entries(const struct plumb_fold_item *items, uint32_t count, struct plumb_folds *folds,
             struct entry *entries)
{
	char text[LONGEST];
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!items[i].name || !plumb_fold_pattern(items[i].name, text, sizeof text))
			continue;
		entries[found] =
			(struct entry){ keep(folds, text), items[i].kind ? items[i].kind : "", i };
		if (!entries[found++].pattern)
			return -1;
	}
	if (found)
		qsort(entries, found, sizeof *entries, by_pattern);
	return found;
}

/* ---- one fold ---- */

/* The name of the first entry, with a star where the folded ones differ. */
static const char *
make_label(const struct plumb_fold_item *items, const struct entry *entries, uint32_t count,
           struct plumb_folds *folds)
{
	uint32_t first = folds->first[entries[count - 1].item];
	const char *name = items[first].name;
	char text[LONGEST], *to = text;

	for (uint32_t number = 0; *name; number++) {
		bool index, same = true;
		size_t length = measure(name, &index);

		for (uint32_t i = 0; index && same && i < count; i++) {
			const char *other = items[entries[i].item].name;

			if (folds->first[entries[i].item] != first)
				continue;
			for (uint32_t skip = number; skip; skip--)
				other = strchr(other, '.') + 1;
			same = strcspn(other, ".") == length && !strncmp(other, name, length);
		}
		memcpy(to, same ? name : "*", same ? length : 1);
		to += same ? length : 1;
		name += length;
		if (*name)
			*to++ = *name++;
	}
	*to = '\0';
	return keep(folds, text);
}

/* Folds ENTRIES, which are alike, except those that take much more. NUMBERS is scratch room. */
static bool
fold(const struct plumb_fold_item *items, const struct entry *entries, uint32_t count,
     int64_t total, int64_t *numbers, struct plumb_folds *folds)
{
	uint32_t first = UINT32_MAX, last = 0;
	int64_t median;

	for (uint32_t i = 0; i < count; i++)
		numbers[i] = items[entries[i].item].amount;
	plumb_sort_numbers(numbers, count);
	median = numbers[(count - 1) / 2];
	for (uint32_t i = 0; i < count; i++) {
		uint32_t item = entries[i].item;
		double amount = (double)items[item].amount;

		if (amount > PLUMB_FOLD_RATIO * (double)median &&
		    amount - (double)median >= PLUMB_FOLD_SHARE * (double)total) {
			folds->usual[item] = median;
			continue;
		}
		if (first == UINT32_MAX)
			first = item;
		last = i;
		folds->first[item] = first;
		folds->count[first] += item != first;
		folds->count[item] *= item == first;
	}
	/* The smallest one is always left. */
	if (folds->count[first] < 2)
		return true;
	folds->label[first] = make_label(items, entries, last + 1, folds);
	return folds->label[first] != NULL;
}

int
plumb_folds_make(const struct plumb_fold_item *items, uint32_t count, int64_t total,
                 struct plumb_folds *folds)
{
	struct entry *entries = calloc(count + (size_t)1, sizeof *entries);
	int64_t *numbers = calloc(count + (size_t)1, sizeof *numbers);
	int64_t found = -1;
	bool ok;

	*folds = (struct plumb_folds){
		.first = calloc(count + (size_t)1, sizeof *folds->first),
		.count = calloc(count + (size_t)1, sizeof *folds->count),
		.label = calloc(count + (size_t)1, sizeof *folds->label),
		.usual = calloc(count + (size_t)1, sizeof *folds->usual),
		.texts = plumb_pool_new(),
	};
	ok = entries && numbers && folds->first && folds->count && folds->label && folds->usual &&
	     folds->texts;
	for (uint32_t i = 0; ok && i < count; i++)
		folds->first[i] = i, folds->count[i] = 1;
	if (ok)
		found = list_entries(items, count, folds, entries);
	ok = found >= 0;
	for (int64_t i = 0, end; ok && i < found; i = end) {
		for (end = i + 1; end < found &&
		                  !strcmp(entries[i].pattern, entries[end].pattern) &&
		                  !strcmp(entries[i].kind, entries[end].kind);)
			end++;
		if (end - i > 1)
			ok = fold(items, &entries[i], (uint32_t)(end - i), total, numbers, folds);
	}
	free(entries);
	free(numbers);
	return ok ? 0 : PLUMB_ESYSTEM;
}

void
plumb_folds_free(struct plumb_folds *folds)
{
	free(folds->first);
	free(folds->count);
	free(folds->label);
	free(folds->usual);
	plumb_pool_free(folds->texts);
	*folds = (struct plumb_folds){ 0 };
}
